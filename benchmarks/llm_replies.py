"""Speed of recording and replaying replies: 1,000 questions of 4 calls each, with prompts of realistic length.

python benchmarks/llm_replies.py [--questions N] [--workers N] [--folder DIR] [--json FILE]

Each call has a system message that all share (tasks and schema, 12,000 characters) and one of its own (context and
question, 4,000 characters). Recording waits for the disk after each reply; the plain SQLite row beside it keeps one
transaction per reply, too, with key and text alone. Replaying makes each call anew, so that its key is computed, and
counts it with a meter, as a language model does; every reply is compared with the recorded one.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.measure import timed
from benchmarks.rows import Row, make_parser, show
from byokg.llm.messages import Call, Message, Reply, Usage
from byokg.llm.reply_files import export_replies, import_replies
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.usage import UsageMeter

CALLS = 4
SYSTEM = "Write the relation paths that lead from the entities to the answer. " * 180
CONTEXT = "Heat → directed_by → Michael Mann | starred_actors → Al Pacino. " * 62


def call(question: int, number: int) -> Call:
    """Return one call of a question, made anew."""
    asked = f"{CONTEXT}Question {question}, call {number}: who directed it?"
    return Call(
        "anthropic",
        "claude-sonnet-5",
        (Message("system", SYSTEM, cache=True), Message("user", asked)),
        {"temperature": 0.0, "max_tokens": 1000},
    )


def reply(question: int, number: int) -> Reply:
    """Return the reply to it."""
    text = f"<answers>\nanswer {question} {number}\n</answers>\n" * 10
    return Reply(text, usage=Usage(4000, 120, 3000), model="claude-sonnet-5", seconds=0.5)


def seconds(work: Callable[[int], object], questions: int, workers: int) -> float:
    """Return how long it takes to do the work for all questions."""
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, range(questions)):
            pass
    return time.perf_counter() - began


def measure(folder: Path, questions: int, workers: int) -> list[Row]:
    """Make every measurement."""
    plain = sqlite3.connect(folder / "plain.sqlite", check_same_thread=False, isolation_level=None)
    plain.execute("PRAGMA journal_mode = WAL")
    plain.execute("PRAGMA synchronous = FULL")
    plain.execute("CREATE TABLE t (key TEXT PRIMARY KEY, text TEXT)")
    lock = threading.Lock()

    def insert(question: int) -> None:
        for number in range(CALLS):
            key, text = call(question, number).key, reply(question, number).text
            with lock:
                plain.execute("INSERT INTO t VALUES (?, ?)", (key, text))

    rows = [Row("plain SQLite row", questions * CALLS / seconds(insert, questions, workers), "replies/s")]
    plain.close()
    with RecordedReplies(folder / "replies.sqlite") as store:

        def record(question: int) -> None:
            for number in range(CALLS):
                store.put(call(question, number), reply(question, number), "link")

        rows.append(Row("record", questions * CALLS / seconds(record, questions, workers), "replies/s"))
    size = (folder / "replies.sqlite").stat().st_size
    rows.append(Row("file", size / (questions * CALLS), "bytes/reply"))
    for threads in (1, workers):
        with RecordedReplies(folder / "replies.sqlite", "replay") as store:
            meter = UsageMeter()

            def replay(question: int, store: RecordedReplies = store, meter: UsageMeter = meter) -> None:
                for number in range(CALLS):
                    asked = call(question, number)
                    found = store.get(asked)
                    if found != reply(question, number):
                        raise SystemExit(f"question {question} got another reply than was recorded")
                    meter.after(asked, found, "link", str(question), replayed=True)
                meter.take(str(question))

            rate = questions / seconds(replay, questions, threads)
            rows.append(Row(f"replay, {threads} worker{'s' if threads > 1 else ''}", rate, "questions/s"))
    with RecordedReplies(folder / "replies.sqlite") as store, RecordedReplies(folder / "other.sqlite") as other:
        exported, _ = timed(lambda: export_replies(store, folder / "all.jsonl"))
        imported, _ = timed(lambda: import_replies(other, folder / "all.jsonl"))
        rows += [
            Row(name, questions * CALLS / s, "replies/s") for name, s in (("export", exported), ("import", imported))
        ]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="output folder (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(Path(folder), options.questions, options.workers)
    show(rows, "recorded replies", options.json)


if __name__ == "__main__":
    main()
