"""Settings of query graphs: sizes of the search, and similarities that its parts compare with.

All were chosen on the dev halves of ZOGRASCOPE, Mind-the-Query `er` and atlas.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SchemaSettings:
    """How a typed schema is read."""

    first_year: int = 1000
    """Least whole number of a property of years, and"""
    last_year: int = 2100
    """greatest."""
    values: int = 200
    """Distinct values from which the kind of a text property is read."""
    edges: int = 4_000_000
    """Edges up to which all are read for the types at their ends, and"""
    sampled: int = 500
    """edges of each relation that are read beyond."""
    remembered: int = 1 << 10
    """Steps whose start nodes are remembered."""


@dataclass(frozen=True)
class LabelMatchSettings:
    """How words are compared with labels; all similarities are in [0, 1]."""

    equal: float = 1.0
    """The same word."""
    stem: float = 0.9
    """A common stem."""
    synonym: float = 0.8
    """A synonym."""
    abbreviation: float = 0.8
    """A label's word that begins the word (`reg`, `registration`), or initials (`LW`, `lives with`)."""
    person: float = 0.7
    """A pronoun and a type of persons, `where` and a type of places."""
    unlike: float = 0.3
    """Cosine that counts as none."""
    like: float = 0.75
    """Worth of the largest cosine."""
    modifier: float = 0.8
    """Worth of a word that is not the head of a label, against its head."""
    heard: float = 0.5
    """Similarity from which a word may mean an element."""
    some: float = 0.4
    """Similarity from which a word names the step of a query graph, if none names it better."""
    named: float = 0.6
    """Similarity from which a word names a type."""
    typo: float = 0.8
    """Similarity from which a word is a misspelt word of a label."""
    again: float = 0.3
    """Worth of a word for a second element of one kind."""
    far: int = 8
    """Words from which a distance no longer grows."""
    remembered: int = 1 << 13
    """Words whose similarities are remembered."""


@dataclass(frozen=True)
class ValueSettings:
    """How values and names are found in a question."""

    longest: int = 8
    """Words of a name."""
    window: int = 5
    """Words of a misspelt value, and of a date."""
    letters: int = 3
    """Letters of a misspelt value at least."""
    value: float = 0.74
    """Lowest similarity of a misspelt value, in [0, 1], and"""
    name: float = 0.88
    """of a misspelt name."""
    longer: float = 0.84
    """Lowest similarity of a misspelt value that holds an equal one."""
    counted: int = 10_000
    """Number from which things are not counted, but measured."""
    naming: int = 2
    """Words before an unknown value among which its property, type or relation stands."""
    nearest: float = 0.5
    """Lowest similarity of a value that is shown for one that is nowhere."""
    compared: int = 16
    """Spans that are compared with values, the longest ones."""
    near: int = 4
    """Words between a value and the name of its property, at most."""
    alternatives: int = 6
    """Properties that a span may name a value of, the best ones."""
    spans: int = 6
    """Spans of values of one question."""
    type: float = 0.8
    """Similarity of a word and a type from which a lower-case word is no value."""


@dataclass(frozen=True)
class SearchSettings:
    """Sizes of the beam search."""

    hops: int = 4
    """Steps of a metapath between two constraints."""
    of_length: tuple[int, ...] = (0, 4, 4, 3, 2)
    """Metapaths between two types that are tried, by their steps."""
    partial: int = 60
    """Partial metapaths that are continued."""
    beam: int = 40
    """Query graphs that are continued, and"""
    per_root: int = 8
    """those of one root type."""
    grown: int = 90
    """Query graphs that are scored after each extension, the likeliest ones."""
    roots: int = 8
    """Types that the answer may have, the likeliest ones."""
    named: int = 2
    """Types or relations that are added because the question names them."""
    executed: int = 60
    """Query graphs that are executed for a question."""
    alternatives: int = 3
    """Further query graphs that the trace shows."""
    nearest: int = 3
    """Values that are shown for one that is nowhere."""
    covered: float = 0.33
    """Share of the question's content that a query graph must explain."""
    margin: float = 0.9
    """Log-odds by which query graphs must be likelier right than paths."""
    surely: float = 0.01
    """Probabilities closer to 0 or 1 count as this close."""
    remembered: int = 1 << 7
    """Questions whose answers are remembered."""
    grid: float = 2.0**20
    """Features and weights are multiples of its inverse, so that their sums are equal on every CPU."""


SCHEMA, WORDS, VALUES, SEARCH = SchemaSettings(), LabelMatchSettings(), ValueSettings(), SearchSettings()
