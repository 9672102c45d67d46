"""Tests of `byokg.llm.model`."""

from __future__ import annotations

import pytest

from byokg.llm.model import TRACING_VARIABLES, tracing_notice, tracing_variable


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
