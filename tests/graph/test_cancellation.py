"""Tests of `byokg.graph.cancellation`: work that is over ends, wherever it is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from byokg.errors import CallStopped
from byokg.graph.cancellation import CancelToken, check, left_s
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import connecting
from byokg.graph.paths import follow
from byokg.graph.traversal import k_hop_edges
from byokg.types import EntityId

A, B = EntityId("a"), EntityId("b")
STORE = ColumnarGraph.from_triples([("a", "r", "b")])


def test_nothing_is_stopped_where_nobody_may_stop_it() -> None:
    check()
    assert left_s(7) == 7


def test_work_goes_on_until_it_is_ended_and_what_follows_is_free_again() -> None:
    stop = CancelToken(timeout_s=60)
    with stop.work():
        check()
        assert 0 < left_s(7) <= 7 and 7 < left_s(70) <= 60
        stop.end()
        assert left_s(7) == 0
        with pytest.raises(CallStopped, match="ended before"):
            check()
    check()


def test_time_that_is_over_ends_work_as_well() -> None:
    with CancelToken(timeout_s=-1).work(), pytest.raises(CallStopped):
        check()


def test_other_threads_go_on() -> None:
    done: list[bool] = []

    def work() -> None:
        check()
        done.append(True)

    with CancelToken(timeout_s=-1).work():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert done == [True]


@pytest.mark.parametrize(
    "work",
    [
        lambda: k_hop_edges(STORE, [A], 2),
        lambda: follow(STORE, [A], ["r"]),
        lambda: paths(STORE, connecting([A], [B])),
        lambda: paths(STORE, "PATHS ALL START ?x = <a> END ?y = <b> VIA <r>"),
        lambda: STORE.edges_among(STORE.numbers([A, B])),
    ],
)
def test_traversal_and_path_search_look_whether_they_are_over(work: Callable[[], object]) -> None:
    work()
    with CancelToken(timeout_s=-1).work(), pytest.raises(CallStopped):
        work()
