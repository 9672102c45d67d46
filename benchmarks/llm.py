"""Overhead of the language model layer over the provider's own client, and losses during failures of the service.

python benchmarks/llm.py [--questions 1000] [--calls 4] [--workers 64] [--latency 0.5] [--rate 0.05] [--json FILE]

A local server in a process of its own answers after a fixed latency. The bare client is Anthropic's SDK, called from
as many threads; the layer is `LanguageModel` around langchain-anthropic with a store of replies, and so with retries,
limits, deadlines and recording. The two take turns, a quarter of the questions each time, so that other load of the
machine affects both. Then the layer's replies are replayed. Last, other questions go to a server on which
each of ten kinds of faults affects `--rate` of all requests: at 0.05, every second request fails. Lost is a call
without its right reply; duplicated is a request that came after its content was answered. A question's calls follow
one another, as rounds do. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rows import Row, make_parser, show  # noqa: E402
from byokg.errors import LlmError  # noqa: E402
from byokg.llm.messages import Message, ReplyStore  # noqa: E402
from byokg.llm.model import LanguageModel  # noqa: E402
from byokg.llm.reply_store import RecordedReplies  # noqa: E402
from byokg.llm.retry import RateLimits, RetryPolicy  # noqa: E402
from tests.llm.servers.model_server import SECRET  # noqa: E402

MODEL = "claude-test"
SYSTEM = "The graph has films, people and years. " * 40
MAX_TOKENS = 256
TURNS = 4
PATIENCE = 10.0
"""Longest attempt, in latencies: what hangs or drips is given up then."""

Ask = Callable[[str], str]


@contextmanager
def server(latency_s: float, rate: float = 0.0) -> Iterator[str]:
    """Run a server in a process of its own; yields its address."""
    command = [sys.executable, "-m", "tests.llm.servers.model_server", "--latency", str(latency_s)]
    if rate:
        command += ["--faults", "all", "--rate", str(rate)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def counts(url: str) -> dict[str, Any]:
    """Return what a server saw."""
    found: dict[str, Any] = httpx.get(f"{url}/counts", timeout=60.0).json()
    return found


def bare(url: str) -> Ask:
    """Ask with Anthropic's own client."""
    from anthropic import Anthropic

    client = Anthropic(api_key=SECRET, base_url=url, max_retries=0)

    def ask(text: str) -> str:
        message: Any = client.messages.create(
            model=MODEL, max_tokens=MAX_TOKENS, system=SYSTEM, messages=[{"role": "user", "content": text}]
        )
        return str(message.content[0].text)

    return ask


def layer(url: str, store: ReplyStore, options: argparse.Namespace) -> Ask:
    """Ask through the layer."""
    from langchain_anthropic import ChatAnthropic

    timeout_s = options.latency * PATIENCE
    settings: dict[str, Any] = {"model": MODEL, "max_tokens": MAX_TOKENS, "api_key": SECRET, "base_url": url}
    chat_model = ChatAnthropic(**settings, max_retries=0, timeout=timeout_s)
    model = LanguageModel(
        chat_model,
        "anthropic",
        MODEL,
        {"max_tokens": MAX_TOKENS},
        store=store,
        retry=RetryPolicy(attempts=40, first_wait_s=0.05, longest_wait_s=1.0),
        limits=RateLimits(options.workers),
        timeout_s=timeout_s,
    )
    return asking(model)


def asking(model: LanguageModel) -> Ask:
    """Ask a model for the text of a reply."""

    def ask(text: str) -> str:
        messages = [Message("system", SYSTEM, cache=True), Message("user", text)]
        return model.reply(messages, stage="answer", question_id=text.partition(",")[0]).text

    return ask


def run(ask: Ask, kind: str, numbers: range, options: argparse.Namespace) -> tuple[float, int]:
    """Ask questions; return the seconds, and how many calls have not their right reply."""

    def question(number: int) -> int:
        lost = 0
        for call in range(options.calls):
            text = f"{kind} question {number}, call {call}"
            try:
                lost += ask(text) != f"reply {hashlib.sha256(text.encode()).hexdigest()[:16]}"
            except LlmError as error:
                print(f"lost: {text}: {error}", file=sys.stderr)
                lost += 1
        return lost

    began = time.perf_counter()
    with ThreadPoolExecutor(options.workers) as pool:
        lost = sum(pool.map(question, numbers))
    return time.perf_counter() - began, lost


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=4, help="of each question")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5, help="of the server, in seconds")
    parser.add_argument("--rate", type=float, default=0.05, help="share of requests that each kind of fault strikes")
    options = parser.parse_args()
    os.environ.pop("LANGSMITH_TRACING", None)
    console = Console()
    rows: list[Row] = []
    questions = range(options.questions)

    def add(name: str, value: float, unit: str) -> None:
        rows.append(Row(name, value, unit))
        console.print(f"{name} {value:.4g} {unit}", highlight=False)

    with tempfile.TemporaryDirectory() as folder:
        store = RecordedReplies(Path(folder) / "replies.sqlite")
        add("ideal", options.questions * options.calls * options.latency / options.workers, "s")
        with server(options.latency) as url:
            asks = {"bare": bare(url), "layer": layer(url, store, options)}
            for kind, ask in asks.items():
                run(ask, f"warm-up {kind}", range(options.workers), options)
            seconds = dict.fromkeys(asks, 0.0)
            wrong = dict.fromkeys(asks, 0)
            for turn in range(TURNS):
                numbers = range(turn, options.questions, TURNS)
                for kind, ask in asks.items():
                    took, lost = run(ask, kind, numbers, options)
                    seconds[kind] += took
                    wrong[kind] += lost
            for kind in asks:
                add(kind, seconds[kind], "s")
                add(f"{kind}_lost", wrong[kind], "calls")
            add("layer_over_bare", seconds["layer"] / seconds["bare"], "times")
            add("layer_duplicated", counts(url)["again"], "requests")
        replay = LanguageModel(None, "anthropic", MODEL, {"max_tokens": MAX_TOKENS}, store=store)
        replay_s, lost = run(asking(replay), "layer", questions, options)
        add("replay", options.questions / replay_s, "questions/s")
        add("replay_differing", lost, "calls")
        with server(options.latency, options.rate) as url:
            ask = layer(url, RecordedReplies(Path(folder) / "faulty.sqlite"), options)
            faulty_s, lost = run(ask, "faulty", questions, options)
            seen = counts(url)
            add("faulty", faulty_s, "s")
            add("faulty_requests", seen["requests"], "requests")
            for fault, times in seen["faults"].items():
                add(f"faulty_{fault}", times, "requests")
            add("faulty_lost", lost, "calls")
            add("faulty_duplicated", seen["again"], "requests")
    show(rows, f"{options.questions:,} questions of {options.calls} calls", options.json)


if __name__ == "__main__":
    main()
