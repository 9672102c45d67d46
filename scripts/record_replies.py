"""Record the replies that `byokg demo` replays, prompt by prompt, from people or programs that write files.

    python scripts/record_replies.py --folder DIR [--shard 1/5]     until its exit status is 0
    python scripts/record_replies.py --merge DIR DIR …              then

Each pass runs the pipelines of the comparison over their part of the questions as far as replies go. Every prompt
without a reply becomes a file DIR/NNN.prompt.txt (system and user text in full); the reply belongs into
DIR/NNN.reply.txt, as the model writes it. The next pass takes all replies in and writes the prompts that follow from
them. Exit status: 3 while replies are pending, 0 when none is, 1 if a question failed for another reason. Gold answers
are never in DIR. Shards divide the questions, so several people can record at the same time, each in a folder; with
five shards (one a pipeline), nobody meets a question in two pipelines.

Replies of the shipped recording whose prompts are unchanged are kept; with `--anew` all are recorded.

`--merge` writes byokg/data/replies/atlas.jsonl.xz from complete folders; without all replies it fails and writes
nothing. `--draw` writes the ids of the questions, chosen by type and a hash of the seed alone. Tokens are estimated, at
four bytes a token.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from byokg.cli.evaluation import evaluate
from byokg.cli.reproduce_commands import PIPELINES, QUESTIONS, RECORDING, replay_settings
from byokg.cli.terminal import Output
from byokg.errors import RunIncomplete
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import atlas
from byokg.evaluation.records import read_predictions, reply_keys
from byokg.files import json_line, write_file
from byokg.llm.messages import Message, Reply, Usage, estimated_tokens, read_call
from byokg.llm.reply_files import export_replies, import_replies
from byokg.llm.reply_store import RecordedReplies

SEED = 42
PER_TYPE, FEWER, FEWER_TYPES = 4, 3, 4
"""Questions of each type, and of each of the types with the fewest questions: 40 in all."""

CALLS = "calls.jsonl"
"""Each prompt's number and call, in the folder of a recording."""


@dataclass(frozen=True)
class Recording:
    """A folder of prompts and replies."""

    folder: Path

    def prompt(self, number: int) -> Path:
        """Return the file of a prompt."""
        return self.folder / f"{number:03}.prompt.txt"

    def reply(self, number: int) -> str:
        """Return the reply to a prompt; empty if there is none yet."""
        path = self.folder / f"{number:03}.reply.txt"
        return path.read_text("utf-8").strip() if path.is_file() else ""

    def calls(self) -> dict[int, dict[str, Any]]:
        """Return the calls by number."""
        path = self.folder / CALLS
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        return {record.pop("number"): record for record in map(json.loads, lines)}

    def answered(self, into: RecordedReplies) -> int:
        """Put all replies into a store; return their number."""
        count = 0
        for number, record in self.calls().items():
            if text := self.reply(number):
                call = read_call(record["call"])
                sent = estimated_tokens(call.messages, call.parameters)
                usage = Usage(sent, estimated_tokens([Message("assistant", text)], {}))
                into.put(call, Reply(text, usage=usage), record["stage"])
                count += 1
        return count

    def update(self, requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the prompts of pending requests, by key, and remove those of others that have no reply.

        Calls keep their numbers, also after their prompt is gone: a reply that is under way belongs to its own.
        """
        calls, new = self.calls(), dict(requests)
        pending = []
        for number, record in calls.items():
            if new.pop(read_call(record["call"]).key, None) is not None:
                pending.append(number)
            elif not self.reply(number):
                self.prompt(number).unlink(missing_ok=True)
        for number, request in enumerate(new.values(), max(calls, default=0) + 1):
            calls[number] = {name: request[name] for name in ("pipeline", "question", "stage", "call")}
            pending.append(number)
        write_file(self.folder / CALLS, [json_line({"number": number, **each}) for number, each in calls.items()])
        for number in pending:
            parts = [f"=== {part['role']} ===\n\n{part['text']}\n" for part in calls[number]["call"]["messages"]]
            write_file(self.prompt(number), ["\n".join(parts).encode()])


def requests_of(replies: Path, runs: Path, shard: str = "1/1") -> Iterator[dict[str, Any]]:
    """Run all pipelines as far as the replies go, and yield the pending requests of a shard.

    Each pipeline takes another part of the questions for the same shard (a Latin square).
    """
    silent = Output(Console(quiet=True), Console(quiet=True), quiet=True)
    part, parts = map(int, shard.split("/"))
    for place, pipeline in enumerate(PIPELINES):
        folder = runs / pipeline
        words = f"shard={(part - 1 + place) % parts + 1}/{parts}"
        try:
            evaluate(replay_settings(pipeline, folder, replies, "llm=deferred", words), silent)
        except RunIncomplete:
            for line in (folder / "requests" / "requests.jsonl").read_text("utf-8").splitlines():
                record = json.loads(line)
                key, question, stage = (record.pop(name) for name in ("id", "question", "stage"))
                yield {"key": key, "pipeline": pipeline, "question": question, "stage": stage, "call": record}
        failed = [each for each in read_predictions(folder) if not each.has_outcome]
        for each in failed:
            sys.exit(f"pipeline={pipeline}, question {each.id}: {each.error.message if each.error else each.status}")


@contextmanager
def collected(folders: Sequence[Path], earlier: Path | None) -> Iterator[tuple[Path, int]]:
    """Yield a store of the replies in folders, over those of an earlier recording, and the number of the former."""
    with tempfile.TemporaryDirectory() as place:
        replies = Path(place) / "replies.sqlite"
        with RecordedReplies(replies) as store:
            if earlier is not None and earlier.is_file():
                import_replies(store, earlier)
            answered = sum(Recording(folder).answered(store) for folder in folders)
        yield replies, answered


def record(folder: Path, shard: str, earlier: Path | None = None) -> int:
    """Make one pass; return the number of pending replies."""
    folder.mkdir(parents=True, exist_ok=True)
    with collected([folder], earlier) as (replies, answered):
        requests = {each["key"]: each for each in requests_of(replies, replies.parent, shard)}
    pending = len(requests)
    Recording(folder).update(requests)
    print(f"{answered} replies taken in, {pending} prompts pending in {folder}")
    return pending


def merge(folders: Sequence[Path], out: Path, earlier: Path | None = None) -> None:
    """Write the recording from complete folders of all shards, and an earlier recording."""
    with collected(folders, earlier) as (replies, _):
        pending = list(requests_of(replies, replies.parent))
        if pending:
            sys.exit(
                f"{len(pending)} replies are missing (first: question {pending[0]['question']}); record all shards"
            )
        exported = replies.parent / "replies.jsonl"
        keys = set().union(*(reply_keys(replies.parent / pipeline) for pipeline in PIPELINES))
        with RecordedReplies(replies, "replay") as store:
            count = export_replies(store, exported, keys)
        packed = lzma.compress(exported.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    write_file(out, [packed])
    print(f"{count} replies in {out} ({len(packed) / 1e3:,.0f} kB)")


def draw(seed: int = SEED) -> list[str]:
    """Return the ids of the questions: by hash, of each type some, in turn of each pattern, and no fact twice."""

    def rank(text: str) -> str:
        return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()

    by_type: dict[str, list[Example]] = {}
    for example in sorted(atlas("test").examples(), key=lambda example: rank(example.id)):
        by_type.setdefault(example.type, []).append(example)
    smallest = sorted(by_type, key=lambda name: (len(by_type[name]), name))[:FEWER_TYPES]
    drawn = []
    for name, examples in sorted(by_type.items()):
        facts = list({example.cluster: example for example in reversed(examples)}.values())[::-1]
        seen: Counter[str] = Counter()
        ranked = []
        for place, example in enumerate(facts):
            pattern = example.id.rsplit("-", 2)[0]
            ranked.append((seen[pattern], place, example.id))
            seen[pattern] += 1
        drawn += [id for *_, id in sorted(ranked)[: FEWER if name in smallest else PER_TYPE]]
    return drawn


def main() -> None:
    """Read the command line, and do one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="prompts and replies")
    parser.add_argument("--shard", default="1/1", help="part of the questions, as 1/5")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="DIR", help="write the recording from these folders")
    parser.add_argument("--out", type=Path, default=RECORDING, help="of --merge")
    parser.add_argument("--draw", action="store_true", help="write the ids of the questions")
    parser.add_argument("--anew", action="store_true", help="keep nothing of the shipped recording")
    given = parser.parse_args()
    earlier = None if given.anew else RECORDING
    if given.draw:
        write_file(QUESTIONS, [f"{id}\n".encode() for id in draw()])
    elif given.merge:
        merge(given.merge, given.out, earlier)
    elif given.folder:
        sys.exit(3 if record(given.folder, given.shard, earlier) else 0)
    else:
        parser.error("give --folder DIR, --merge DIR …, or --draw")


if __name__ == "__main__":
    main()
