"""Whether the environment sends traces of every call to LangSmith, and saying so."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

TRACING_VARIABLES = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING")


def tracing_variable(environment: Mapping[str, str]) -> str | None:
    """Return the variable that switches tracing to LangSmith on; None when it is off."""
    for variable in TRACING_VARIABLES:
        if environment.get(variable, "").strip().lower() not in {"", "0", "false"}:
            return variable
    return None


class TracingNotice:
    """Says, once in its life, that traces leave the machine."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._lock = threading.Lock()
        self._said = False

    def give(self, environment: Mapping[str, str] = os.environ) -> None:
        """Say it if tracing is on and it was not said before; called before every request."""
        if self._said:
            return
        with self._lock:
            variable = None if self._said else tracing_variable(environment)
            self._said = True
        if variable is not None:
            self._note(
                f"LangSmith tracing is on ({variable}): questions, graph facts and replies leave this machine; "
                f"to stop it: unset {variable}"
            )
