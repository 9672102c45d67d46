"""A pipeline that follows a script, and a program that runs it, for tests that kill it.

Started as a program it evaluates `COUNT` questions into the folder `OUT` with `WORKERS` workers, taking up to
`PAUSE_S` seconds for each, and appends the id of every question asked to `LOG`. `LIMIT` bounds, in bytes, what a
file may grow to; 0 leaves it unbounded.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

from byokg.errors import EntityNotFound
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

SETTINGS = RunSettings(
    dataset="scripted",
    dataset_checksum="0" * 64,
    graph_checksum="1" * 64,
    config={"pipeline": {"name": "scripted", "paths": 3}, "linking": {"entities": "linked"}},
)


class Scripted:
    """Answers question `q<n>` in a way that depends on n alone: mostly right, now and then wrong, nothing, an error.

    Args:
        pause_s: the longest time a question takes; most take less, so that they finish out of order.
        log: file that the ids of the questions asked are appended to.
    """

    def __init__(self, pause_s: float = 0.0, log: Path | None = None) -> None:
        self._pause_s = pause_s
        self._log = log

    def run(self, question: Question) -> Answer:
        """Answer as the script says."""
        number = int(question.id[1:])
        if self._log is not None:
            with self._log.open("ab", buffering=0) as log:
                log.write(f"{question.id}\n".encode())
        time.sleep(self._pause_s * (number * 7 % 5) / 4)
        if number % 10 == 7:
            raise EntityNotFound(f"node {number}", "the script")
        if number % 10 == 8:
            raise ZeroDivisionError("division by zero")
        names = [] if number % 10 == 9 else [f"wrong {number}", f"right {number}"][number % 2 :]
        source, end = EntityId(f"Zürich {number}"), EntityId(f"right {number}")
        mention = Mention(f"Zürich {number}", 0, 8)
        evidence = PathEvidence(
            id="e1",
            retriever="path",
            score=1 / (number + 1),
            source=source,
            relations=("to", "^from"),
            ends=(end,),
            paths=(
                Walk(
                    source,
                    (Triple(source, "to", EntityId("m"), 2), Triple(end, "from", EntityId("m"), 5, {"since": 1999})),
                    (False, True),
                ),
            ),
        )
        round_ = Round(
            number=0,
            artifacts=Artifacts((mention,), (ProposedPath(("to", "^from"), 0.25),)),
            linked=Linked((LinkedEntity(source, source, mention, "exact", 1.0),)),
            evidence=(evidence,),
        )
        items = tuple(AnswerItem(name, EntityId(name), 0.5, ("e1",)) for name in names)
        return Answer(question.id, items, (round_,))


def examples(count: int) -> list[Example]:
    """Return questions `q0`, `q1`, …; the gold answer of `q<n>` is `right <n>`."""
    return [
        Example(
            id=f"q{number}",
            question=f"Where from Zürich {number}?",
            answers=(f"right {number}",),
            hops=number % 3 + 1,
            type=("even", "odd")[number % 2],
        )
        for number in range(count)
    ]


if __name__ == "__main__":
    out, count, workers, pause_s, log, limit = sys.argv[1:]
    if limit != "0":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    metrics = run_evaluation(
        Scripted(float(pause_s), Path(log)), examples(int(count)), Path(out), SETTINGS, workers=int(workers)
    )
    print(os.getpid(), metrics.overall.n)
