"""Names for nodes without one: a display template for each type, such as `{firstName} {lastName}`.

A template names properties in braces; `{name}` is the node's own property of that name. A node that lacks some of them
is named by the others, and one that lacks all keeps its name, or else its id. Templates are chosen by statistics of
the properties, of all nodes of a type or of a sample:

| candidate | example | weight |
|---|---|---|
| a name or title | `{title}`, `{productName}` | 1 |
| given name and surname | `{name} {surname}` | 1 |
| make, model and registration | `{make} {model} {reg}` | 1 |
| an address | `{address}` | 0.8 |
| a key: a short value that no other node of the type has | `{phoneNo}`, `Order {orderID}` | 0.7 |
| a descriptive text of several words | `{charge}` | 0.6 |

The one with the highest product of weight, coverage (share of nodes that have it) and the root of uniqueness (distinct
values over values) is taken; none below 0.2. A key of digits alone has the type before it, since it says nothing
by itself. Nodes that have a name keep it, unless it is a given name with a surname beside it. On a Cypher server a
type without a property of names is sampled once, at its first node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ConfigError
from byokg.graph.store import GraphStore
from byokg.index.values import IndexedProperty
from byokg.text.names import split_label, split_words
from byokg.types import EntityId, Value

NAME = "name"
"""Placeholder, and property, of a node's own name."""

_TEXT = pa.large_string()
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_LEAST = 0.2
_MOSTLY, _NEARLY_ALL = 0.5, 0.98
"""Shares of nodes or values."""

_KEY_CHARACTERS, _TEXT_CHARACTERS = 64, 60
"""Mean lengths of keys and of descriptive texts at most."""

_SAMPLED = 100_000
"""Nodes of a type that a template is chosen by."""

_NAMES = frozenset(("name", "title", "label", "caption", "heading"))
_OF_OTHERS = frozenset(
    "user file host domain middle maiden nick short login contact ship first given last family".split()
)
"""Words before `name` that do not name the node itself."""
_GIVEN = frozenset(("first name", "given name", "firstname", "givenname", "forename", "forenames", "given names"))
_SURNAMES = frozenset(("surname", "last name", "family name", "lastname", "familyname"))
_MAKES = frozenset(("make", "brand", "manufacturer"))
_REGISTRATIONS = frozenset(
    "reg registration plate vin serial license licence registrationnumber licenseplate serialnumber".split()
)
_KEYS = frozenset("id no nr number code key num isbn sku reg registration plate email".split())
"""Last words of properties that identify a node."""

_MANY = 20
"""Different values that make a key of a property with another name."""

_SEVERAL = 1.5
"""Mean words of a descriptive text at least."""


@dataclass(frozen=True)
class PropertyStatistics:
    """Statistics of one property over the nodes of one type."""

    name: str
    count: int
    """Number of values."""
    coverage: float
    """Share of the nodes that have it, in [0, 1]."""
    uniqueness: float
    """Distinct values over values, in [0, 1]; 0 without any."""
    length: float
    """Mean characters of its values."""
    words: float
    """Mean words of its values."""
    text: bool
    whole: bool
    """True for whole numbers, as numbers or as texts."""

    @property
    def label(self) -> str:
        """Return the words of its name in lower case."""
        return _label(self.name)


def statistics(name: str, values: pa.Array) -> PropertyStatistics:
    """Return the statistics of a property, given its value for each node, null for nodes without."""
    held = values.drop_null()
    texts = _as_text(held)
    count = len(held)
    if not count:
        return PropertyStatistics(name, 0, 0.0, 0.0, 0.0, 0.0, False, False)
    spaces = pc.sum(pc.count_substring(texts, " ")).as_py()
    return PropertyStatistics(
        name,
        count,
        count / len(values),
        pc.count_distinct(texts).as_py() / count,
        pc.mean(pc.utf8_length(texts)).as_py(),
        1 + spaces / count,
        pa.types.is_large_string(values.type) or pa.types.is_string(values.type),
        bool(pc.all(pc.match_substring_regex(texts, r"^[0-9]+$")).as_py()),
    )


def choose_template(type: str, properties: Mapping[str, pa.Array], named: float = 0.0) -> str:
    """Choose the display template of a node type; empty if no property names its nodes.

    Args:
        type: the node type.
        properties: by name, the value for each node of the type, null for nodes without.
        named: share of these nodes that have a name, in [0, 1]; the name is then a property, too.
    """
    found = [statistics(name, values) for name, values in properties.items()]
    by_label = {one.label: one for one in reversed(found)}
    surname = _first(by_label, _SURNAMES)
    if named >= _MOSTLY:
        own = properties.get(NAME)
        if surname is None or own is None or surname.coverage < _MOSTLY or _holds(own, properties[surname.name]):
            return ""
        return f"{{{NAME}}} {{{surname.name}}}"
    best, score = "", _LEAST
    for template, parts, weight in _candidates(type, found, by_label, surname):
        values = fill(template, properties)
        held = values.drop_null()
        if not len(held):
            continue
        coverage = min(one.coverage for one in parts)
        worth = weight * coverage * math.sqrt(pc.count_distinct(held).as_py() / len(held))
        if worth > score + 1e-9:
            best, score = template, worth
    return best


def _candidates(
    type: str,
    found: list[PropertyStatistics],
    by_label: Mapping[str, PropertyStatistics],
    surname: PropertyStatistics | None,
) -> Iterator[tuple[str, list[PropertyStatistics], float]]:
    """Yield templates with their properties and weights."""
    given, make, model = _first(by_label, _GIVEN), _first(by_label, _MAKES), by_label.get("model")
    if surname and (first := given or by_label.get(NAME)):
        yield f"{{{first.name}}} {{{surname.name}}}", [first, surname], 1.0
    if make and model:
        parts = [make, model, *filter(None, [_first(by_label, _REGISTRATIONS)])]
        yield " ".join(f"{{{one.name}}}" for one in parts), parts, 1.0
    for one in found:
        words = one.label.split() or [""]
        if one.text and words[-1] in _NAMES and not names_another(one.name):
            yield f"{{{one.name}}}", [one], 1.0
        elif one.text and words[-1] == "address":
            yield f"{{{one.name}}}", [one], 0.8
        elif one.uniqueness >= _NEARLY_ALL and one.length <= _KEY_CHARACTERS and _may_be_key(one, words):
            yield f"{type} {{{one.name}}}".strip() if one.whole else f"{{{one.name}}}", [one], 0.7
        elif one.text and one.words >= _SEVERAL and one.count > 1 and one.length <= _TEXT_CHARACTERS:
            yield f"{{{one.name}}}", [one], 0.6


def _label(name: str) -> str:
    return " ".join(split_words(split_label(name).replace("_", " ")))


def names_another(property: str) -> bool:
    """Return True if a property holds a part of a name, or the name of something else: `surname`, `shipName`."""
    *before, _ = _label(property).split() or [""]
    return not _OF_OTHERS.isdisjoint(before) or _label(property) in _SURNAMES


def _may_be_key(one: PropertyStatistics, words: list[str]) -> bool:
    """Return True if a property of different values identifies its nodes, rather than measures them."""
    if words[-1] in _KEYS or words[-1].endswith("id"):
        return one.whole or one.words < _SEVERAL
    return one.text and not one.whole and one.words < _SEVERAL and one.count >= _MANY


def key_of(columns: Iterable[IndexedProperty]) -> str:
    """Return the property that identifies the nodes of a type: every node has it, and no two share a value.

    Of several the one that is called a key, or else holds codes; empty if there is none.
    """
    found = []
    for column in columns:
        words = _label(column.property).split() or [""]
        called = words[-1] in _KEYS or words[-1].endswith("id")
        if column.coverage == 1 and 1 < column.distinct == column.nodes and (called or column.kind == "identifier"):
            found.append((not called, column.property))
    return min(found, key=lambda one: one[0])[1] if found else ""


def _first(by_label: Mapping[str, PropertyStatistics], labels: Collection[str]) -> PropertyStatistics | None:
    return next((one for label, one in by_label.items() if label in labels), None)


def _holds(names: pa.Array, surnames: pa.Array) -> bool:
    """Return True if most names end with the surname already."""
    pairs = [(n, s) for n, s in zip(names.to_pylist(), surnames.to_pylist(), strict=True) if n and s]
    return not pairs or sum(str(n).casefold().endswith(str(s).casefold()) for n, s in pairs) >= _MOSTLY * len(pairs)


def name_nodes(
    ids: pa.Array,
    names: pa.Array | None,
    types: pa.DictionaryArray | None,
    properties: Mapping[str, pa.Array],
    given: Mapping[str, str],
) -> tuple[pa.Array | None, dict[str, pa.Array], dict[str, str]]:
    """Name N nodes by the templates of their types.

    Args:
        ids: (N,).
        names: (N,), null for nodes without; None if no node has one.
        types: (N,) the first type of each; None if nodes are untyped.
        properties: (N,) each, null for nodes without.
        given: templates by type, which replace names; the others are chosen.

    Returns:
        Names, as `names`; the properties, with `name` if a template made another name of it; and the templates.

    Raises:
        ConfigError: a given template is of no type of the graph, or names a property that the type lacks.
    """
    labels = [""] if types is None else types.dictionary.to_pylist()
    if unknown := [type for type in given if type not in labels]:
        listed = ", ".join(filter(None, labels)) or "none, since nodes are untyped"
        raise ConfigError(f"no node has the type {unknown[0]!r} of a template; types: {listed}")
    own = pa.nulls(len(ids), _TEXT)
    if names is not None:
        own = pc.if_else(pc.equal(names, ""), own, names)
    codes = None if types is None else pc.fill_null(types.indices, -1).to_numpy()
    place, texts, renamed = np.arange(len(ids)), [own], np.zeros(len(ids), np.bool_)
    templates = dict[str, str]()
    surnames = any(_label(name) in _SURNAMES for name in properties)
    for code, type in enumerate(labels):
        rows = place.copy() if codes is None else np.flatnonzero(codes == code)
        here = own.take(pa.array(rows))
        named = 1 - here.null_count / max(len(rows), 1)
        if not len(rows) or (named >= _MOSTLY and not surnames and type not in given):
            continue
        held = {name: values.take(pa.array(rows)) for name, values in properties.items()}
        held = {name: values for name, values in held.items() if values.null_count < len(rows)}
        if named:
            held.setdefault(NAME, here)
        template = given.get(type) or _chosen(type, held, named)
        if not template:
            continue
        filled = fill(template, _required(type, template, held))
        replaces = type in given or named >= _MOSTLY
        renamed[rows] = replaces and template != f"{{{NAME}}}"
        place[rows] = sum(map(len, texts)) + np.arange(len(rows))
        texts.append(pc.coalesce(filled, here) if replaces else pc.coalesce(here, filled))
        templates[type] = template
    if not templates:
        return names, dict(properties), {}
    kept = {}
    if NAME not in properties and renamed.any():
        kept[NAME] = pc.if_else(pa.array(renamed), own, pa.scalar(None, _TEXT))
    return pa.chunked_array(texts).take(pa.array(place)).combine_chunks(), {**kept, **properties}, templates


def _chosen(type: str, held: Mapping[str, pa.Array], named: float) -> str:
    """Choose a template by a sample of nodes, spread evenly."""
    count = len(next(iter(held.values()), ()))
    if count <= _SAMPLED:
        return choose_template(type, held, named)
    rows = pa.array(np.arange(_SAMPLED) * count // _SAMPLED)
    return choose_template(type, {name: values.take(rows) for name, values in held.items()}, named)


def _required(type: str, template: str, held: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the properties of a template. Raises `ConfigError` for one that no node of the type has."""
    for name in placeholders(template):
        if name not in held:
            listed = ", ".join(held) or "none"
            raise ConfigError(
                f"no node of type {type!r} has the property {name!r} of {template!r}; properties: {listed}"
            )
    return {name: held[name] for name in placeholders(template)}


def placeholders(template: str) -> list[str]:
    """Return the properties that a template names, in its order.

    Raises:
        ConfigError: it names none, or has a brace without its counterpart.
    """
    names = _PLACEHOLDER.findall(template)
    if not names or re.search(r"[{}]", _PLACEHOLDER.sub("", template)):
        raise ConfigError(f"{template!r} is no template of a name; write properties in braces: {{name}} {{surname}}")
    return names


def fill(template: str, properties: Mapping[str, pa.Array]) -> pa.Array:
    """Return the name that a template gives each node: (N,) texts, null for a node without any of its properties.

    Args:
        template: with placeholders that are keys of `properties`.
        properties: the value for each node, null for nodes without.
    """
    texts = {name: _as_text(properties[name]) for name in placeholders(template)}
    literals = _PLACEHOLDER.split(template)[::2]
    parts = []
    for literal, name in zip(literals, texts, strict=False):
        parts += [pa.scalar(literal, _TEXT), texts[name]]
    whole = pc.binary_join_element_wise(*parts, pa.scalar(literals[-1], _TEXT), pa.scalar("", _TEXT))
    # Not with null_handling="skip", which drops the rows that have nothing to join.
    some = pc.binary_join_element_wise(*texts.values(), pa.scalar(" ", _TEXT), null_handling="replace")
    named = pc.utf8_trim_whitespace(pc.coalesce(whole, pc.replace_substring_regex(some, " +", " ")))
    return pc.if_else(pc.equal(named, ""), pa.scalar(None, _TEXT), named)


def fill_one(template: str, properties: Mapping[str, Value]) -> str:
    """Return the name that a template gives one node; empty for a node without any of its properties.

    >>> fill_one("Order {orderID}", {"orderID": 10307})
    'Order 10307'
    """
    texts = {name: str(properties[name]).strip() for name in placeholders(template) if name in properties}
    if len(texts) < len(set(placeholders(template))):
        return " ".join(filter(None, texts.values()))
    return _PLACEHOLDER.sub(lambda found: texts[found[1]], template).strip() if any(texts.values()) else ""


def sampled_template(type: str, sample: Sequence[Mapping[str, Value]]) -> str:
    """Choose the display template of a node type by the properties of some of its nodes; empty if none fits."""
    columns = {}
    for name in sorted({name for properties in sample for name in properties}):
        held = [properties.get(name) for properties in sample]
        kinds = {value.__class__ for value in held if value is not None}
        columns[name] = pa.array(held if len(kinds) == 1 else [None if one is None else str(one) for one in held])
    return choose_template(type, columns)


def _as_text(values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return pc.utf8_trim_whitespace(values.cast(_TEXT))


def key_properties(store: GraphStore) -> dict[str, str]:
    """Return the property that is the key of each type whose nodes are named by type and key (`Order 10307`)."""
    templates = store.display_names
    return {type: found[1] for type, template in templates.items() if (found := _keyed(type).fullmatch(template))}


def key_spellings(store: GraphStore, ids: Sequence[EntityId], texts: Sequence[str]) -> list[str | None]:
    """Return the other spelling of each node that is named by its type and a key; None for other nodes.

    Args:
        store: the graph.
        ids: nodes, N of them.
        texts: (N,) a spelling of each: `10307` of one that is called `Order 10307`, or the reverse.

    Raises:
        EntityNotFound: the store lacks a node.
    """
    keys = key_properties(store)
    if not keys:
        return [None] * len(ids)
    held = [(node, node.properties.get(keys.get(node.type, ""))) for node in store.nodes(ids)]
    return [
        None
        if key is None or node.name != f"{node.type} {key}"
        else node.name
        if text.strip() == str(key)
        else str(key)
        for (node, key), text in zip(held, texts, strict=True)
    ]


def _keyed(type: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(type)} {_PLACEHOLDER.pattern}")


def parse_templates(given: Collection[str]) -> dict[str, str]:
    """Read `TYPE=TEMPLATE` of the command line. Raises `ConfigError`."""
    templates = {}
    for one in given:
        type, equals, template = one.partition("=")
        if not equals or not type.strip():
            raise ConfigError(f"--name {one!r} is not TYPE=TEMPLATE; write, say, --name 'Person={{name}} {{surname}}'")
        placeholders(template)
        templates[type.strip()] = template.strip()
    return templates
