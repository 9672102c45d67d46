"""Where a graph is, as text: a folder, or the address of a server. Credentials never stand in an address.

| address                                    | kind      | credentials come from                                |
|--------------------------------------------|-----------|------------------------------------------------------|
| `neo4j://…`, `bolt://…` (`+s`, `+ssc`)     | `neo4j`   | NEO4J_USERNAME, NEO4J_PASSWORD                       |
| `neptune-graph://ID`, `neptune-db://HOST`  | `neptune` | where boto3 finds them                               |
| `sparql+https://…`, `sparql+http://…`      | `sparql`  | BYOKG_SPARQL_TOKEN, or BYOKG_SPARQL_USER, …_PASSWORD |

Anything without `://` is a folder. Nothing heavy is imported here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from byokg.errors import ConfigError

ServerKind = Literal["neo4j", "neptune", "sparql"]

SCHEMES: dict[str, ServerKind] = {
    "neo4j": "neo4j",
    "bolt": "neo4j",
    "neptune-graph": "neptune",
    "neptune-db": "neptune",
    "sparql+https": "sparql",
    "sparql+http": "sparql",
}

EXAMPLES: dict[str | None, str] = {
    "neo4j": "neo4j://HOST:7687/DATABASE",
    "neptune": "neptune-graph://ID or neptune-db://HOST",
    "sparql": "sparql+https://HOST/PATH",
}
"""What an address of each kind looks like."""

_ENVIRONMENT: dict[ServerKind, str] = {
    "neo4j": "NEO4J_USERNAME and NEO4J_PASSWORD",
    "neptune": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sparql": "BYOKG_SPARQL_TOKEN, or BYOKG_SPARQL_USER and BYOKG_SPARQL_PASSWORD",
}

_USER = re.compile(r"(\w://)(?:[^\s/@:]*:\S*|[^\s/@:]+)@")
"""A name and a password, or a token, before a host. Greedy, because a password may hold an @ or a /."""

_PARAMETER = re.compile(
    r"([?&][^=&\s]*(?:key|token|secret|passw|pwd|auth|credential)[^=&\s]*=)[^&\s'\"]+", re.IGNORECASE
)


def is_address(place: str | Path) -> bool:
    """Tell whether a place is a server's address, and not a folder."""
    return "://" in str(place)


def server_kind(address: str) -> ServerKind:
    """Return what kind of server an address is for.

    Raises:
        ConfigError: nothing here speaks its scheme, or credentials stand in it (which the message does not repeat).
    """
    written, _, rest = address.partition("://")
    scheme = written.lower()
    if scheme.startswith(("neo4j+", "bolt+")):
        scheme = scheme.removesuffix("+ssc").removesuffix("+s")
    kind = SCHEMES.get(scheme)
    if "@" in rest.partition("?")[0]:
        variables = _ENVIRONMENT[kind] if kind else "variables of the environment"
        raise ConfigError(
            f"the address {masked_scheme(written)}://… holds an @, as credentials before the host do; leave them out "
            f"and set {variables} (an @ that belongs to the path is written %40)"
        )
    if kind is None:
        raise ConfigError(f"no store speaks {masked_scheme(written)!r}; addresses start with {', '.join(SCHEMES)}")
    return kind


def masked_scheme(scheme: str) -> str:
    """Return a scheme for a message; of one that is none, only that something is there."""
    return scheme if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,19}", scheme) else "…"


def masked(text: str) -> str:
    """Return a text without the credentials that stand in the addresses in it."""
    return _PARAMETER.sub(r"\1…", _USER.sub(r"\1…@", text))
