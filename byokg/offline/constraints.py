"""Constraints and aggregation of a question, as records filled by `parse_constraints`, and results of `execute`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from byokg.types import EntityId, Value

PeriodPart = Literal["any", "begin", "end"]
"""Which end of a period is meant: any time in it, its beginning, its end."""


@dataclass(frozen=True)
class TemporalConstraint:
    """A period that something has to fall into; both ends belong to it, None is open."""

    first: str | None
    last: str | None
    edge: PeriodPart = "any"
    near: str = ""
    """The word that it stands with (`born` after 1950)."""
    strict: bool = False
    """Whether the ends themselves are left out."""
    words: str = ""
    """Words of the question."""


@dataclass(frozen=True)
class Superlative:
    """The most or the least of something."""

    nouns: tuple[str, ...]
    """Compared property, as words; none compares dates."""
    most: bool
    place: int = 1
    dates: bool = False
    """True if dates are compared when there is no number."""
    words: str = ""
    edge: PeriodPart = "any"
    """End of a period that is ordered, if only one is."""
    counted: bool = False
    """Whether the nouns may also name things to count (`the most neighbours`)."""


@dataclass(frozen=True)
class Threshold:
    """A number that something has to be above or below."""

    nouns: tuple[str, ...]
    more: bool
    value: float
    dates: bool = False
    words: str = ""


@dataclass(frozen=True)
class SuccessorConstraint:
    """Who is next to a mention in time."""

    mentions: tuple[int, ...]
    """Who that may be, the likeliest first."""
    step: Literal[-1, 0, 1]
    """After, before, or at the same time."""
    years: int | None = None
    """Just so many years apart, or else next in order."""
    words: str = ""


@dataclass(frozen=True)
class QueryConstraints:
    """Constraints and aggregation beside the path."""

    rest: str
    """The question without the words that were read, as long as it was."""
    count: str = ""
    """Words of a count; empty without one."""
    counted: str = ""
    """Noun of the counted things."""
    order: Superlative | None = None
    times: tuple[TemporalConstraint, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    next: SuccessorConstraint | None = None
    without: tuple[int, ...] = ()
    """Mentions that are taken away."""
    lacking: str = ""
    """Negated property of the answers (`no land border`)."""
    union: tuple[int, ...] = ()
    """Mentions of which either is enough."""
    verify: bool = False
    """Whether it asks for yes or no about two mentions."""
    grouped: str = ""
    """Noun of the groups, if the question asks for one result of each (`the average price per city`)."""

    @property
    def plain(self) -> bool:
        """True if the question is a path question only."""
        return self == QueryConstraints(self.rest)


@dataclass(frozen=True)
class Outcome:
    """Result of an operation."""

    operation: str
    text: str
    """Description of the operation and its operands."""
    nodes: tuple[EntityId, ...] = ()
    values: tuple[Value, ...] = ()
    uses: tuple[str, ...] = ()
    """Ids of the evidence it was made of."""
    truncated: bool = False
    """Whether that had been cut; then a count is the least there are."""


def listing(names: Sequence[str], count: int | None = None, listed: int = 10) -> str:
    """Write names side by side, and how many are left out, of as many as there are in all."""
    shown = names[:listed]
    more = (len(names) if count is None else count) - len(shown)
    return " | ".join([*shown, *([f"… (+{more} more)"] if more > 0 else [])])
