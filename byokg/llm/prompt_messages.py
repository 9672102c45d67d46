"""A filled prompt as messages."""

from __future__ import annotations

from byokg.llm.records import Message
from byokg.prompts.template import Filled


def prompt_messages(filled: Filled) -> list[Message]:
    """Return a prompt as messages; its system part is the same for many questions, so providers may keep it."""
    system = [Message("system", filled.system, cache=True)] if filled.system else []
    return [*system, Message("user", filled.user)]
