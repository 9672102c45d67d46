"""Tests of `byokg.llm.model`."""

from __future__ import annotations

import pytest

from byokg.llm.model import TRACING_VARIABLES, TracingNotice, tracing_variable


@pytest.mark.parametrize("variable", TRACING_VARIABLES)
def test_each_variable_that_langsmith_reads_switches_tracing_on(variable: str) -> None:
    assert tracing_variable({variable: "true"}) == variable
    assert tracing_variable({variable: "False"}) is None
    assert tracing_variable({}) is None


def test_it_is_said_once_that_data_leaves() -> None:
    said: list[str] = []
    notice = TracingNotice(said.append)
    for _ in range(3):
        notice.give({"LANGSMITH_TRACING": "true"})
    assert said == [
        "LangSmith tracing is on (LANGSMITH_TRACING): questions, graph facts and replies leave this machine; "
        "to stop it: unset LANGSMITH_TRACING"
    ]


def test_nothing_is_said_when_it_is_off() -> None:
    said: list[str] = []
    TracingNotice(said.append).give({})
    assert said == []
