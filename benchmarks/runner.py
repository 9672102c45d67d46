"""Time that the runner adds to each question (recording, scoring, ordering, metrics) over a pipeline that does
nothing.

    python benchmarks/runner.py [--questions 5000] [--workers 1 8] [--json FILE]

The pipeline returns a prepared answer, with evidence of two paths. The result is the wall time of the whole
run per question, from an empty folder to `metrics.json`; the best of three runs.
"""

from __future__ import annotations

import platform
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.rows import Row, make_parser, write_rows
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    PathEvidence,
    ProposedPath,
    Question,
    Round,
    Triple,
)
from byokg.types import Path as Walk

REPETITIONS = 3


class Ready:
    """Returns one answer for every question."""

    def __init__(self) -> None:
        source, end = EntityId("Heat"), EntityId("Michael Mann")
        mention = Mention("Heat", 0, 4)
        walk = Walk(source, (Triple(source, "directed_by", end, 7),), (False,))
        paths = [
            PathEvidence(
                "path", 0.9, source=source, relations=("directed_by",), ends=(end,), paths=(walk,), id=f"e{number}"
            )
            for number in (1, 2)
        ]
        first = Round(
            number=0,
            artifacts=Artifacts((mention,), (ProposedPath(("directed_by",), 0.5),)),
            linked=Linked((LinkedEntity(source, source, mention, "exact", 1.0),)),
            evidence=tuple(paths),
        )
        self._answer = Answer("", (AnswerItem(end, end, 0.9, ("e1",)),), (first, replace(first, number=1)))

    def run(self, question: Question) -> Answer:
        """Return the answer under the question's id."""
        return replace(self._answer, question_id=question.id)


def timed(count: int, workers: int) -> float:
    """Return milliseconds per question of one run."""
    examples = [
        Example(f"q{number}", "Who directed Heat?", ("Michael Mann",), type=str(number % 5)) for number in range(count)
    ]
    settings = RunSettings("benchmark", "0" * 64, "1" * 64)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run_evaluation(Ready(), examples, Path(folder) / "run", settings, workers)
        return 1000 * (time.perf_counter() - began) / count


def main() -> None:
    """Measure, print a table, and write the rows where wanted."""
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    arguments = parser.parse_args()
    timed(100, 1)  # imports and caches
    rows = []
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    for workers in arguments.workers:
        best = min(timed(arguments.questions, workers) for _ in range(REPETITIONS))
        print(f"{arguments.questions:,} questions, {workers} workers: {best:.3f} ms per question")
        rows.append(Row(f"runner overhead per question, {workers} workers", best, "ms"))
    write_rows(rows, arguments.json)


if __name__ == "__main__":
    main()
