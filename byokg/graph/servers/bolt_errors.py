"""Translation of the errors of Bolt servers and of their driver into ours."""

from __future__ import annotations

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
