"""Recognising strings that are machine identifiers, not names: what a person would never say."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(
    r"[mg]\.[0-9a-z_]{2,}"  # Freebase MID
    r"|/[mg]/[0-9a-z_]{2,}"
    r"|[QP][1-9][0-9]{2,}"  # Wikidata
    r"|_:.+"  # RDF blank node
    r"|(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",  # UUID
)


def is_identifier(text: str) -> bool:
    """Tell whether a string is a Freebase MID, a Wikidata id, a blank node label or a UUID.

    A node whose name is one has no name of its own: in Freebase mostly a mediator (CVT) node that stands for an
    event or a role between other nodes.
    """
    return _IDENTIFIER.fullmatch(text) is not None
