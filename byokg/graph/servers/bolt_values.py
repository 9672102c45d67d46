"""Values as Bolt's driver gives them, turned into plain ones; moments as the server itself writes them; errors as ours.

The driver has no dates outside of the years 1 to 9999, and its zones end in 2037, so both are computed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

from byokg.errors import (
    ByokgError,
    ConfigError,
    QueryFailed,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
)
from byokg.graph.servers.cypher_schema import ServerEdge, ServerNode, ServerPath

_SCALARS = (bool, int, float, str, type(None))
_NANOSECONDS = re.compile(r"\.(\d{9})")

_DAY_S = 86_400
_CYCLE_DAYS = 146_097
"""Days of 400 years, after which the calendar repeats."""
_EPOCH = date(1970, 1, 1).toordinal()


class BoltValues:
    """Turns values of the driver into what `CypherServer` promises."""

    def __init__(self, neo4j: ModuleType) -> None:
        """Take the driver's module."""
        self._graph, self._point = neo4j.graph, neo4j.spatial.Point

    def plain(self, value: Any) -> Any:
        """Turn one value, with all that is in it."""
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is list:
            return [item if type(item) in _SCALARS else self.plain(item) for item in value]
        if kind is dict:
            return {key: self.plain(item) for key, item in value.items()} if value else value
        if isinstance(value, self._graph.Node):
            return self.node(value)
        if isinstance(value, self._graph.Relationship):  # each type is a class of its own
            return self.edge(value)
        if isinstance(value, self._graph.Path):
            return ServerPath(tuple(map(self.node, value.nodes)), tuple(map(self.edge, value.relationships)))
        if isinstance(value, self._point):
            return {**dict(zip("xyz", value, strict=False)), "srid": value.srid}
        if hasattr(value, "iso_format"):  # dates, times, and durations, which are tuples too
            return moment(value)
        if isinstance(value, bytes | bytearray):
            return value.hex()
        raw = getattr(value, "raw_data", None)  # what the driver could not read
        return str(value) if raw is None else unread(raw.tag, raw.fields)

    def node(self, node: Any) -> ServerNode:
        """Turn a node."""
        return ServerNode(node.element_id, tuple(sorted(node.labels)), self.plain(dict(node)))

    def edge(self, edge: Any) -> ServerEdge:
        """Turn a relationship."""
        ends = edge.start_node.element_id, edge.end_node.element_id
        return ServerEdge(edge.element_id, edge.type, *ends, self.plain(dict(edge)))


def moment(value: Any) -> str:
    """Write a date, time or duration of the driver as ISO 8601, a zone that has a name behind it."""
    zone = getattr(getattr(value, "tzinfo", None), "zone", None) or getattr(value, "tzinfo", None)
    name = zone if isinstance(zone, str) else getattr(zone, "key", None)
    if name in (None, "UTC") or not hasattr(value, "year"):
        return _short(value.iso_format())
    whole = int(value.second)
    seconds = (date(value.year, value.month, value.day).toordinal() - _EPOCH) * _DAY_S
    seconds += value.hour * 3600 + value.minute * 60 + whole - round(value.utcoffset().total_seconds())
    return _zoned(seconds, value.nanosecond, name)


def unread(tag: bytes, fields: Sequence[Any]) -> str:
    """Format a date or time that the driver could not read, from the server's raw fields.

    Args:
        tag: D for a date, d for a local time, I with an offset, i with a zone; F and f are the older forms of these.
        fields: days, or seconds and nanoseconds, since 1970; then seconds east of Greenwich, or the zone's name.
    """
    if tag == b"D":
        return _date(fields[0])
    if tag == b"d":
        return _local(fields[0], fields[1])
    if tag in (b"I", b"F"):
        local = fields[0] + (fields[2] if tag == b"I" else 0)
        return _local(local, fields[1]) + _offset(fields[2])
    if tag == b"i":
        return _zoned(fields[0], fields[1], fields[2])
    if tag == b"f":
        return f"{_local(fields[0], fields[1])}[{fields[2]}]"
    return " ".join(map(str, fields))


def _zoned(seconds: int, nanoseconds: int, zone: str) -> str:
    """Write a moment, given in seconds since 1970 in Greenwich, as clocks in a zone show it."""
    try:
        offset = _east(seconds, zone)
    except (KeyError, ValueError, OSError):
        return f"{_local(seconds, nanoseconds)}Z"  # no such zone is known here
    return f"{_local(seconds + offset, nanoseconds)}{_offset(offset)}[{zone}]"


def _east(seconds: int, zone: str) -> int:
    """Return the seconds that a zone is east of Greenwich at some moment."""
    cycle = _CYCLE_DAYS * _DAY_S
    while seconds > 8 * cycle:  # rules repeat with the calendar
        seconds -= cycle
    seconds = max(seconds, -4 * cycle)  # before there were zones
    found = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).astimezone(_zone(zone)).utcoffset()
    return round(found.total_seconds()) if found is not None else 0


@cache
def _zone(name: str) -> ZoneInfo:
    """Return a zone of the package tzdata, if it is there: its tables are Java's, some machines' differ before 1970."""
    zone = ZoneInfo(name)
    try:
        with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as table:
            return ZoneInfo.from_file(table, key=name)
    except (ImportError, OSError, ValueError):
        return zone


def _local(seconds: int, nanoseconds: int) -> str:
    days, rest = divmod(seconds, _DAY_S)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{_date(days)}T{clock}" + (f".{nanoseconds:09d}".rstrip("0") if nanoseconds else "")


def _date(days: int) -> str:
    """Write a date given in days since 1970, of any year."""
    cycles, rest = divmod(days + _EPOCH - 1, _CYCLE_DAYS)
    within = date.fromordinal(rest + 1)
    year = within.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{within.month:02d}-{within.day:02d}"


def _offset(seconds: int) -> str:
    if seconds == 0:
        return "Z"
    rest = abs(seconds)
    text = f"{'-' if seconds < 0 else '+'}{rest // 3600:02d}:{rest // 60 % 60:02d}"
    return f"{text}:{rest % 60:02d}" if rest % 60 else text


def _short(text: str) -> str:
    """Return an ISO 8601 time without insignificant zeros."""
    return _NANOSECONDS.sub(lambda digits: f".{digits[1]}".rstrip("0").rstrip("."), text).replace("+00:00", "Z")


_TOO_LARGE = ("OutOfMemory", "MemoryLimit", "StackOverFlow", "queryMaxHeapElements", "queryMaxRange")
_TIMED_OUT = ("TransactionTimedOut", "TransactionTimedOutClientConfiguration", "QueryExecutionTimeout")
_CREDENTIALS = frozenset("Unauthorized TokenExpired AuthenticationRateLimit".split())
"""Codes behind `Neo.ClientError.Security.`."""
_FORBIDDEN = frozenset(
    """
    Security.Forbidden Statement.AccessMode General.ForbiddenOnReadOnlyDatabase
    General.WriteOnReadOnlyAccessDatabase
    """.split()
)
"""Codes behind `Neo.ClientError.`."""


def translate(error: Exception, place: str, seconds: float) -> ByokgError:
    """Translate an exception of the driver.

    Args:
        error: a `Neo4jError`, which has a code, or a `DriverError`, which has none.
        place: the server, for the message.
        seconds: run time of the query: a server may have a limit of its own.
    """
    message = str(getattr(error, "message", None) or error).strip() or type(error).__name__
    code = getattr(error, "code", None)
    if code:
        return meaning(code, message, place, seconds)
    if "Configuration" in type(error).__name__:
        return ConfigError(f"the driver cannot connect to {place}: {message}")
    return StoreUnavailable(place, " ".join(message.split())[:300])


def meaning(code: str, message: str, place: str, seconds: float) -> ByokgError:
    """Translate a server's error code; see `translate`."""
    first_line = message.splitlines()[0] if message else code
    if code == "Neo.ClientError.Security.CredentialsExpired":
        return ConfigError(
            f"{place} wants its first password changed before anything else: on the database system, "
            "ALTER CURRENT USER SET PASSWORD FROM 'old' TO 'new'; then set NEO4J_PASSWORD"
        )
    if code.removeprefix("Neo.ClientError.Security.") in _CREDENTIALS:
        return ConfigError(f"{place} does not accept the credentials; check NEO4J_USERNAME and NEO4J_PASSWORD")
    if code == "Neo.ClientError.Database.DatabaseNotFound":
        return ConfigError(f"{place}: no such database; name one after the port, as in neo4j://host:7687/name")
    if code.endswith(_TIMED_OUT):
        return QueryTimeout(seconds)
    if any(word in code or word in message for word in _TOO_LARGE):
        return QueryTooLarge(first_line)
    if code.removeprefix("Neo.ClientError.") in _FORBIDDEN:
        return QueryRefused(first_line[:60], 1, 1, f"{place} does not allow it; only read")
    if code.startswith("Neo.TransientError."):
        return StoreUnavailable(place, f"{first_line} ({code})")
    if code.startswith("Neo.ClientError.") or message.startswith("Unknown procedure"):
        return QueryInvalid(message)
    return QueryFailed(f"{place} failed at the query: {first_line} ({code}); write it another way")
