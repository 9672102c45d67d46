"""Tests of what `byokg.llm.model` does for several threads, and of what it says about tracing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from byokg.errors import LlmDeadline, LlmInvalidRequest
from byokg.llm.model import TRACING_VARIABLES, SingleFlight, tracing_notice, tracing_variable
from byokg.llm.retry import Deadline

Outcome = tuple[str, bool]


def together(flights: SingleFlight[str], works: list[Callable[[], str]]) -> list[Future[Outcome]]:
    """Let the first work begin, the others come, and all end."""
    begun, go = threading.Event(), threading.Event()

    def first() -> str:
        begun.set()
        go.wait(10)
        return works[0]()

    with ThreadPoolExecutor(len(works)) as pool:
        outcomes = [pool.submit(flights.run, "key", first, "m")]
        begun.wait(10)
        outcomes += [pool.submit(flights.run, "key", work, "m") for work in works[1:]]
        time.sleep(0.05)  # the others are let come; if one is late, it works for itself, which is allowed
        go.set()
    return outcomes


def test_what_several_want_at_the_same_time_is_done_once() -> None:
    flights: SingleFlight[str] = SingleFlight()
    done: list[int] = []

    def work() -> str:
        done.append(1)
        return "outcome"

    outcomes = [each.result() for each in together(flights, [work] * 5)]
    assert outcomes[0] == ("outcome", True)
    assert [outcome for outcome, _ in outcomes] == ["outcome"] * 5
    assert len(done) == sum(own for _, own in outcomes)


def test_afterwards_it_is_done_anew() -> None:
    flights: SingleFlight[str] = SingleFlight()
    assert flights.run("key", lambda: "a", "m") == ("a", True)
    assert flights.run("key", lambda: "b", "m") == ("b", True)


def test_other_keys_do_not_wait() -> None:
    flights: SingleFlight[str] = SingleFlight()
    assert flights.run("a", lambda: flights.run("b", lambda: "inner", "m")[0], "m") == ("inner", True)


def test_an_error_of_the_work_is_everybodys() -> None:
    def work() -> str:
        raise LlmInvalidRequest("m", "no")

    for outcome in together(SingleFlight(), [work] * 3):
        with pytest.raises(LlmInvalidRequest):
            outcome.result()


@pytest.mark.parametrize("stopped", [LlmDeadline("m", "late"), KeyboardInterrupt()])
def test_when_the_one_who_works_is_stopped_the_next_one_works(stopped: BaseException) -> None:
    def interrupted() -> str:
        raise stopped

    first, *others = together(SingleFlight(), [interrupted, lambda: "done", lambda: "done"])
    with pytest.raises(type(stopped)):
        first.result()
    assert [each.result()[0] for each in others] == ["done", "done"]


def test_nobody_waits_beyond_their_own_deadline() -> None:
    flights: SingleFlight[str] = SingleFlight()
    go, begun = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        go.wait(10)
        return "late"

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(flights.run, "key", slow, "m")
        begun.wait(10)
        with pytest.raises(LlmDeadline, match="under way"):
            flights.run("key", lambda: "never", "m", Deadline.after(0.01))
        go.set()
        assert first.result() == ("late", True)


# Tracing


@pytest.mark.parametrize("variable", TRACING_VARIABLES)
def test_each_variable_that_langsmith_reads_switches_tracing_on(variable: str) -> None:
    assert tracing_variable({variable: "true"}) == variable
    assert tracing_variable({variable: "False"}) is None
    assert tracing_variable({}) is None


def test_the_notice_says_that_data_leaves_and_how_to_stop_it() -> None:
    assert tracing_notice({"LANGSMITH_TRACING": "true"}) == (
        "LangSmith tracing is on (LANGSMITH_TRACING): questions, graph facts and replies leave this machine; "
        "to stop it: unset LANGSMITH_TRACING"
    )


def test_nothing_is_said_when_it_is_off() -> None:
    assert tracing_notice({}) is None
