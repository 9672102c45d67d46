"""Gold Cypher of published questions, run over their graphs in ArcadeDB."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from byokg.errors import QueryFailed
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.store import QueryLimits
from tests.graph.published import comparable, dev_questions, gold_shown, movies, needed, northwind, shown

pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")


@pytest.fixture(scope="module")
def store(arcade_process: ArcadeStore) -> ArcadeStore:
    return arcade_process


@dataclass(frozen=True)
class Tally:
    """How the gold queries of one split ended."""

    asked: int
    ran: int
    comparable: int
    """Those whose gold rows must be the same in every engine, see `comparable`."""
    same: int
    failures: tuple[str, ...]
    """Queries that did not run, or whose rows differ."""


def run_gold(store: ArcadeStore, folder: Path) -> Tally:
    """Run every dev question's gold query."""
    questions = dev_questions(folder)
    ran = compared = same = 0
    failures = []
    for question in questions:
        try:
            rows = store.run(question["cypher"], limits=QueryLimits(timeout_s=20, max_rows=10_000)).rows
        except QueryFailed as error:
            failures.append(f"{question['id']}: {type(error).__name__}: {error}")
            continue
        ran += 1
        if comparable(question):
            compared += 1
            found = Counter(tuple(map(shown, row)) for row in rows)
            gold = Counter(tuple(map(gold_shown, row)) for row in question["gold_rows"])
            same += found == gold
            if found != gold:
                failures.append(f"{question['id']}: {question['cypher']}: {found - gold} instead of {gold - found}")
    return Tally(len(questions), ran, compared, same, tuple(failures))


def test_movies(store: ArcadeStore) -> None:
    folder = needed("movies")
    graph = movies(folder)
    assert (graph.node_count, graph.edge_count) == (171, 253)
    assert graph.schema().node_types == {"Person": 133, "Movie": 38}
    store.replace(graph)
    tally = run_gold(store, folder)
    assert tally.failures == ()
    assert (tally.asked, tally.ran, tally.comparable, tally.same) == (245, 245, 74, 74)


def test_northwind(store: ArcadeStore) -> None:
    folder = needed("northwind")
    graph = northwind(folder)
    assert (graph.node_count, graph.edge_count) == (1035, 3139)
    store.replace(graph)
    tally = run_gold(store, folder)
    assert tally.failures == ()
    assert (tally.asked, tally.ran, tally.comparable, tally.same) == (328, 328, 116, 116)
