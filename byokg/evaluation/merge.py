"""Puts the shards of a run together: the folder that comes out is that of the same run done in one piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.asked import questions_jsonl, read_questions
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import Metrics
from byokg.evaluation.metrics_file import METRICS_FILE
from byokg.evaluation.records import PREDICTIONS, TIMINGS, TRACE, Lines, read_config, read_predictions, read_unfinished
from byokg.evaluation.run_folder import RunFolder, differences, finished_metrics
from byokg.evaluation.runner import measure, question_record
from byokg.evaluation.selection import Shard

_APART = ("shard", "questions")
"""What differs between the shards of one run."""


@dataclass(frozen=True)
class _Part:
    """A finished shard."""

    folder: Path
    shard: Shard
    config: Mapping[str, Any]
    examples: Sequence[Example]


def merge_runs(folders: Sequence[str | Path], out: str | Path) -> Metrics:
    """Write the run folder that all shards make together, and score it.

    Predictions, traces, metrics and `config.yaml` are those of the run in one piece, byte for byte. A merge that was
    interrupted is continued by the same call.

    Args:
        folders: finished shards of one run, each once, in any order.
        out: the folder to write.

    Raises:
        RunError: a folder is no finished shard, shards are missing or doubled, they belong to different runs, or
            `out` belongs to another run.
    """
    parts = sorted(map(_read, map(Path, folders)), key=lambda part: part.shard.number)
    _refuse_incomplete(parts)
    first = parts[0]
    for part in parts[1:]:
        shown = differences(_common(first.config), _common(part.config))
        if shown:
            raise RunError(f"{str(first.folder)!r} and {str(part.folder)!r} are shards of different runs ({shown})")
    count = len(parts)
    examples = [
        parts[place % count].examples[place // count] for place in range(sum(len(part.examples) for part in parts))
    ]
    config = {**first.config, "questions": question_record(examples), "shard": None}
    config.pop("hash", None)
    path = Path(out)
    metrics = finished_metrics(path, config)
    if metrics is not None:
        return metrics
    with RunFolder(path, config, [example.id for example in examples], questions_jsonl(examples)) as folder:
        recorded = {prediction.id for prediction in folder.recorded()}
        for part in parts:
            for id, lines in _lines(part):
                if id not in recorded:
                    folder.append(id, lines)
        folder.complete()
        metrics = measure(examples, read_predictions(path), config["seed"])
        if not folder.unfinished():
            folder.leave(read_unfinished(part.folder) for part in parts)
        folder.finish(metrics)
    return metrics


def _read(folder: Path) -> _Part:
    config = read_config(folder)
    if not config.get("shard"):
        raise RunError(f"{str(folder)!r} is a whole run, no shard of one; name folders of runs with shard=K/N")
    if not (folder / METRICS_FILE).is_file():
        raise RunError(f"the shard in {str(folder)!r} is not finished; start it again, and merge then")
    return _Part(folder, Shard.parse(config["shard"]), config, read_questions(folder))


def _refuse_incomplete(parts: Sequence[_Part]) -> None:
    if not parts:
        raise RunError("no shard is named; give the folders of all shards")
    counts = {part.shard.count for part in parts}
    if len(counts) > 1:
        raise RunError(f"the shards are of {' and '.join(map(str, sorted(counts)))}; name shards of one division")
    numbers = [part.shard.number for part in parts]
    [count] = counts
    doubled = sorted({number for number in numbers if numbers.count(number) > 1})
    missing = sorted(set(range(1, count + 1)) - set(numbers))
    if doubled:
        raise RunError(f"shard {doubled[0]}/{count} is named twice; name each shard once")
    if missing:
        names = ", ".join(f"{number}/{count}" for number in missing)
        raise RunError(f"shards are missing: {names}; run them, and name them, too")


def _common(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in (*_APART, "hash")}


def _lines(part: _Part) -> list[tuple[str, Lines]]:
    files = [(part.folder / name).read_bytes().splitlines(keepends=True) for name in (PREDICTIONS, TRACE, TIMINGS)]
    if {len(lines) for lines in files} != {len(part.examples)}:
        raise RunError(f"the records in {str(part.folder)!r} are damaged; start that shard again")
    # A finished run has its lines in the order of its questions; timings, too.
    return [(example.id, Lines(*lines)) for example, *lines in zip(part.examples, *files, strict=True)]
