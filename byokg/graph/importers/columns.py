"""Columns of tables: the role of each, found by its name, and the kind of its values, found by reading them.

Names are compared as words in lower case: `FromNodeId`, `from_node_id` and `:FROM` all name the end `from`. Words
beside that of the end must be the same at both ends: `source_id` goes with `target_id`, `protein1` with `protein2`.

| role               | names, in any case and any order                                                               |
|--------------------|------------------------------------------------------------------------------------------------|
| head and tail      | source/target, src/dst, head/tail, subject/object, from/to, start/end, node1/node2, u/v, …     |
| relation           | relation, relationship, predicate, rel, edge_type, property, interaction, p, r; label or type  |
| directed or not    | `Type` with Directed and Undirected (Gephi), `directed` with true and false                    |
| id of a node       | id, node, entity, key, uri, …; else the first column, if its name ends in id                   |
| name of a node     | name, label, title                                                                             |
| type of a node     | type, class, kind, labels                                                                      |

`columns.toml` lists all names. All other columns are properties, of the kind that their name gives (`weight:float`) or
that all their values fit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Bools
from byokg.graph.columnar.schema import KINDS, TEXT, Problem

Rows = Sequence[Sequence[str]]
"""Records of a file, as texts."""

_KIND = re.compile(r"(\w+)(\[\]|\((?:single|set)\))?", re.IGNORECASE)
"""A kind, of one value or of several, as neo4j-admin and Neptune write it."""

_LISTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _read_list(name: str) -> tuple[str, ...]:
    return tuple(_LISTS[name].split())


def _read_pairs(name: str) -> tuple[tuple[str, str], ...]:
    pairs = (pair.partition("/") for pair in _read_list(name))
    return tuple((head, tail) for head, _, tail in pairs)


KIND_ALIASES = {name: kind for kind, names in _LISTS["kinds"].items() for name in names.split()}

_PAIRS, _LOOSE, _NUMBERED = map(_read_pairs, ("ends", "loose", "numbered"))
_ENDS = frozenset(word for pair in _PAIRS for word in pair if len(word) > 1)
_ID_WORDS, _RELATIONS, _LABELS = map(_read_list, ("identifying", "relations", "labels"))
_NODE_IDS, _NODE_NAMES, _NODE_TYPES = map(_read_list, ("node_ids", "node_names", "node_types"))
_NO_IDS, _KNOWN, _NOUNS = (frozenset(_read_list(name)) for name in ("describing", "properties", "nouns"))
_INITIALS = {tuple(pair.split("/")): relation for pair, relation in _LISTS["initials"].items()}
_DIRECTED, _UNDIRECTED = map(_read_list, ("directed", "undirected"))
_DIRECTIONS = {name: tuple(values.split()) for name, values in _LISTS["directions"].items()}
_SURE = {*_ENDS, *_RELATIONS} - {"edge", "link", "property", "prop", "verb", "interaction"}
"""Names that ends or relations have, and hardly any node."""
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Column:
    """Role of one column of a file."""

    position: int
    name: str
    role: str
    """`id`, `name`, `type`, `head`, `relation`, `tail`, `direction`, `time`, `property`, or empty to leave it out."""
    kind: str = "string"
    """One of `KINDS`, or empty if the values decide."""
    space: str = ""
    """Id space of an id, head or tail."""


class EdgeHeader(NamedTuple):
    """Names of columns read as those of a table of edges."""

    columns: tuple[Column, ...]
    weak: bool
    """True if the ends are single letters, which may as well be two nodes."""
    loose: bool
    """True if a node may well have two properties named like the ends, such as start and end."""
    strange: tuple[int, ...]
    """Positions of properties whose names are unknown."""
    rivals: tuple[str, ...]
    """Names of two columns or more that may each hold the relation."""


def split_kind(field: str) -> tuple[str, str]:
    """Split `weight:float` into name and kind; the kind is empty if the name gives none."""
    plain = field.strip()
    plain = plain.partition("{")[0] if plain.endswith("}") else plain  # options of a type, such as its time zone
    name, colon, kind = plain.rpartition(":")
    match = _KIND.fullmatch(kind)
    element = match[1].lower() if match else ""
    if not colon or not name or match is None or (element not in KINDS and element not in KIND_ALIASES):
        return field.strip(), ""
    several = (match[2] or "").lower() in ("[]", "(set)")
    return name, "string" if several else KIND_ALIASES.get(element, element)


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Return the words of a column's name in lower case: `FromNodeId` is from, node, id."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    found: list[str] = []
    for word in re.findall(r"[^\W\d_]+|[0-9]+", apart.lower()):
        ending = next((end for end in ("id", "node", "name") if word.endswith(end) and word[: -len(end)] in _ENDS), "")
        found += [word[: -len(ending)], ending] if ending else [word]
    return tuple(found)


def edge_header(fields: Sequence[str], rows: Rows = ()) -> EdgeHeader | None:
    """Read names of columns as those of edges; None if they name no two ends.

    Args:
        fields: (C,) the names, with or without kinds.
        rows: some records below, each of C texts, as samples of the columns.
    """
    split = [split_kind(field) for field in fields]
    named = [words(name) for name, _ in split]
    ends = _find_ends(named)
    if ends is None:
        return None
    head, tail, pair = ends
    joined = ["".join(parts) for parts in named]
    held = [[row[at].strip() for row in rows if at < len(row) and row[at].strip()] for at in range(len(fields))]
    free = [at for at in range(len(fields)) if at not in (head, tail)]
    direction = next((at for at in free if is_direction(joined[at], held[at])), None)
    free = [at for at in free if at != direction]
    relation, rivals = _find_relation(free, joined, held, pair, bool(rows))
    columns = []
    for at, (name, kind) in enumerate(split):
        role = {head: "head", tail: "tail", relation: "relation", direction: "direction"}.get(at, "property")
        columns.append(Column(at, name, role, kind))
    strange = tuple(at for at in free if at != relation and joined[at] not in _KNOWN and not split[at][1])
    weak = len(named[head]) == len(named[tail]) == 1 and len(pair[0]) == len(pair[1]) == 1
    return EdgeHeader(tuple(columns), weak, weak or pair in _LOOSE, strange, tuple(split[at][0] for at in rivals))


@lru_cache(maxsize=1024)
def edge_keys(keys: tuple[str, ...]) -> EdgeHeader | None:
    """Read the keys of one record as those of an edge; None if it is none, but a node, for instance."""
    header = edge_header(keys)
    if header is None or (header.loose and any(words(key) == ("id",) for key in keys)):
        return None
    return header


@lru_cache(maxsize=1024)
def direction_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of one record that may state whether an edge is directed."""
    return tuple(key for key in keys if may_state_direction("".join(words(key))))


@lru_cache(maxsize=1024)
def node_keys(keys: tuple[str, ...]) -> Mapping[str, str]:
    """Return the keys of one record that are id, name and type of a node, in any case; those of this case first."""
    found: dict[str, str] = {}
    for name in ("id", "name", "type"):
        same = [key for key in keys if words(key) == (name,)]
        if same:
            found[name] = name if name in same else same[0]
    return found


def _find_ends(named: Sequence[tuple[str, ...]]) -> tuple[int, int, tuple[str, str]] | None:
    """Return the columns of head and tail, and the words that name them."""
    for pair in (*_PAIRS, *_NUMBERED):
        sides: list[dict[tuple[str, ...], int]] = [{}, {}]
        for at, parts in enumerate(named):
            for side, word in enumerate(pair):
                for place in [place for place, part in enumerate(parts) if part == word][:1]:
                    sides[side].setdefault((*parts[:place], "", *parts[place + 1 :]), at)
        common = [rest for rest in sides[0] if rest in sides[1] and not _NO_IDS.intersection(rest)]
        if pair in _NUMBERED:
            common = [rest for rest in common if len(rest) > 1]
            plain = [rest for rest in common if set(rest) <= {"", *_ID_WORDS}]
            common = plain or (common if len(common) == 1 else [])
        if common:
            best = min(common, key=lambda rest: (len(rest), min(map(_id_rank, rest))))
            return sides[0][best], sides[1][best], pair
    return None


def end_columns(columns: Sequence[Column]) -> tuple[dict[str, Column], dict[str, Column]] | None:
    """Return the columns of edges that describe their heads and tails, such as `x_name` and `y_name`, by the rest of
    their names; None unless types are among them."""
    head, tail = (next(words(column.name) for column in columns if column.role == role) for role in ("head", "tail"))
    marks = [(one, other) for one, other in zip(head, tail, strict=False) if one != other]
    if len(head) != len(tail) or len(marks) != 1:
        return None
    sides: tuple[dict[str, Column], dict[str, Column]] = {}, {}
    for column in columns:
        parts = words(column.name)
        for side, mark in zip(sides, marks[0], strict=True):
            if column.role == "property" and mark in parts:
                side.setdefault("_".join(part for part in parts if part != mark), column)
    both = sides[0].keys() & sides[1].keys()
    if both.isdisjoint(_NODE_TYPES):
        return None
    head_columns, tail_columns = ({name: column for name, column in side.items() if name in both} for side in sides)
    return head_columns, tail_columns


def node_role(name: str) -> str:
    """Return the role of a column that describes a node: its name, its type or a property."""
    return "name" if name in _NODE_NAMES else "type" if name in _NODE_TYPES else "property"


def _id_rank(word: str) -> int:
    return _ID_WORDS.index(word) if word in _ID_WORDS else len(_ID_WORDS)


def _find_relation(
    free: Sequence[int], joined: Sequence[str], held: Sequence[Sequence[str]], pair: tuple[str, str], seen: bool
) -> tuple[int | None, list[int]]:
    """Return the column of the relation, if any, and those that may all be it."""
    initial = (_INITIALS[pair],) if pair in _INITIALS else ()
    for name in (*_RELATIONS, *initial):
        for at in free:
            if joined[at] == name:
                return at, []
    rivals = [at for at in free if joined[at] in _LABELS and (held[at] or not seen)]
    if len(rivals) > 1:
        return None, rivals
    return (rivals[0], []) if rivals else (None, [])


def is_direction(joined: str, held: Sequence[str]) -> bool:
    """Return True for a column, named by words put together, of which all values state a direction, or any in words."""
    found = {value.strip().lower() for value in held}
    if not found or joined not in _DIRECTIONS:
        return False
    return found <= set(_DIRECTIONS[joined]) or not found.isdisjoint(("directed", "undirected"))


def may_state_direction(joined: str) -> bool:
    """Return True for the name of a column, put together, that may hold whether edges are directed."""
    return joined in _DIRECTIONS


def is_undirected(value: object) -> bool:
    """Return True for a value that states that an edge leads both ways."""
    return str(value).lower() in _UNDIRECTED


def undirected_rows(texts: pa.Array) -> pa.Array:
    """Return True for each cell of a direction column that states an undirected edge, null for one of neither kind."""
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(texts, "")))
    known = pc.is_in(lower, pa.array([*_DIRECTED, *_UNDIRECTED, ""], lower.type))
    return pc.if_else(known, pc.is_in(lower, pa.array(_UNDIRECTED, lower.type)), None)


def read_directions(texts: pa.Array) -> tuple[Bools | None, Problem | None]:
    """Return which rows of a direction column are undirected, None if none is; or the first cell of neither kind."""
    found = undirected_rows(texts)
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        reason = f"the direction {texts[row].as_py()!r} is neither Directed nor Undirected; correct the cell"
        return None, Problem(row, reason)
    flags: Bools = found.to_numpy(zero_copy_only=False)
    return (flags if flags.any() else None), None


def node_header(fields: Sequence[str], rows: Rows = ()) -> list[Column] | None:
    """Read names of columns as those of nodes; None if none of them is an id."""
    split = [split_kind(field) for field in fields]
    joined = ["".join(words(name)) for name, _ in split]
    first = words(split[0][0])[-1:] if split else ()
    id_ = _first(joined, _NODE_IDS, ())
    if id_ is None and first == ("id",):
        id_ = 0
    if id_ is None:
        return None
    type_ = _first(joined, _NODE_TYPES, (id_,))
    marked = [at for at, (name, _) in enumerate(split) if name == "~label"]  # as Neptune names types
    type_ = marked[0] if marked else type_
    name = _first(joined, _NODE_NAMES, (id_, type_))
    if type_ is None and name is not None and joined[name] == "label":
        labels = [row[name] for row in rows if name < len(row)]
        if len(labels) > 3 and 2 * len(set(labels)) <= len(labels):  # as `Person` and `City`
            name, type_ = None, name
    roles = {type_: "type", name: "name", id_: "id"}
    fixed = {split[at][0] for at in roles if at is not None}
    columns = []
    for at, (text, kind) in enumerate(split):
        role = roles.get(at, "property")
        if role == "type" and kind not in ("", "string"):
            role = "property"
        # As `exporter` writes a property that is named like a fixed column.
        own = role == "property" and text.endswith("_") and text[:-1] in fixed
        columns.append(Column(at, text[:-1] if own else text, role, kind))
    return columns


def _first(joined: Sequence[str], names: Iterable[str], taken: Sequence[int | None]) -> int | None:
    found = (at for name in names for at, one in enumerate(joined) if one == name and at not in taken)
    return next(found, None)


def seems_header(fields: Sequence[str], rows: Rows) -> bool:
    """Return True if some fields may well be names of columns, though they name no two ends.

    Args:
        fields: (C,) the first record.
        rows: the records below it.
    """
    named = [words(field) for field in fields]
    if any("".join(parts) in _SURE for parts in named) or all("".join(parts) in _NOUNS for parts in named):
        return True
    if any(len(parts) > 1 and parts[-1] in ("id", "name", "code", "key") for parts in named):
        return True
    if not any(map(is_number, fields)) and all(is_number(cell) for row in rows for cell in row):
        return True
    plain = [all(map(_IDENTIFIER.fullmatch, row)) for row in (fields, *rows)]
    return len(rows) > 1 and plain[0] and not any(plain[1:])


def names_relation(field: str) -> bool:
    """Return True for a name that relations have."""
    return "".join(words(field)) in _RELATIONS


def is_number(text: str) -> bool:
    """Return True for a number as programs write it."""
    return bool(_NUMBER.fullmatch(text.strip()))


def with_kinds(columns: Sequence[Column]) -> list[Column]:
    """Decide the kinds: if one name gives a kind, the others are texts; else the values of properties decide."""
    explicit = any(column.kind for column in columns)
    return [
        replace(column, kind=column.kind or ("string" if explicit or column.role != "property" else ""))
        for column in columns
    ]


class InferredKinds:
    """The kinds that all values of some columns fit so far, best first."""

    _ORDER: Mapping[str, str] = {
        "int": r"^(0|-?[1-9][0-9]*)$",
        "float": r"^-?((0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?|\.[0-9]{1,17})([eE][+-]?[0-9]{1,2})?$",
        "bool": r"^(?i:true|false)$",
        "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    }
    """Kind that a value looks like; a number with leading zeros is a text, such as a postal code."""

    def __init__(self, names: Iterable[str]) -> None:
        self._kinds = {name: list(self._ORDER) for name in names}
        self._held = dict.fromkeys(self._kinds, False)

    @property
    def names(self) -> frozenset[str]:
        """Return the columns."""
        return frozenset(self._kinds)

    def see(self, name: str, texts: pa.Array) -> None:
        """Narrow the kinds of a column by some of its values; null is of every kind."""
        if texts.null_count == len(texts):
            return
        self._held[name] = True
        self._kinds[name] = [kind for kind in self._kinds[name] if self._fits(kind, texts)]

    def _fits(self, kind: str, texts: pa.Array) -> bool:
        if pc.all(pc.match_substring_regex(texts, self._ORDER[kind])).as_py() is False:
            return False
        try:
            texts.cast(KINDS[kind][0])
        except pa.ArrowInvalid:
            return False
        return True

    def kind(self, name: str) -> str:
        """Return the kind of a column."""
        return next(iter(self._kinds[name]), "string") if self._held[name] else "string"

    def types(self) -> dict[str, pa.DataType]:
        """Return the Arrow types of the columns that hold any value."""
        return {name: KINDS[self.kind(name)][0] for name, held in self._held.items() if held}

    def state(self) -> dict[str, Any]:
        """Return the state so far, as JSON."""
        return {"kinds": self._kinds, "held": self._held}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._kinds, self._held = dict(state["kinds"]), dict(state["held"])


def as_kind(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert texts that `InferredKinds` found to fit."""
    return texts if kind == TEXT else texts.cast(kind)
