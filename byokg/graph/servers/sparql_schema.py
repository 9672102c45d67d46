"""Schema of an RDF graph: relations, classes and properties with counts.

Every triple is read once or twice, not once for each relation: an engine gets a few queries that count in groups. If
even that takes too long, a sample of triples stands for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.sparql_text import Binding, NamePredicates, read_literal
from byokg.graph.store import PropertySchema, RelationSchema, Schema

Question = tuple[str, str]
"""Variables and the pattern that binds them."""
Ask = Callable[[Sequence[Question]], Sequence[Sequence[Binding]]]
"""Runs queries, perhaps several at a time, and returns all rows of each."""

SAMPLE = 100_000
"""Triples that the schema is read from when reading all takes too long."""

_SHORT = 40
"""Characters of a value that may be an example."""
_FEW_PREDICATES = 200
"""Predicates that are named one by one."""


@dataclass
class SchemaFindings:
    """Counts by IRI; classes get their display names later."""

    relations: Counter[str] = field(default_factory=Counter)
    literals: dict[str, int] = field(default_factory=dict)
    """Predicates that end in literals, with the number of triples."""
    domains: dict[str, Counter[str]] = field(default_factory=dict)
    """Classes of heads by relation; the class ``""`` stands for nodes without one."""
    ranges: dict[str, Counter[str]] = field(default_factory=dict)
    types: Counter[str] = field(default_factory=Counter)
    node_values: list[Binding] = field(default_factory=list)
    """Rows of ?t ?k ?least ?most."""
    edge_values: list[Binding] = field(default_factory=list)
    """Rows of ?p ?k ?least ?most."""
    nodes: int | None = None
    sampled: str = ""

    def schema(
        self, labels: Iterable[tuple[str, str]], label: Callable[[str], str], called: Callable[[str], str], naming: str
    ) -> Schema:
        """Return the findings as a schema.

        Args:
            labels: IRI and label of each relation, in the order of their numbers.
            label: abbreviates the IRI of a property.
            called: returns the name of a class.
            naming: predicate of a node's name, which is no property.
        """
        types = Counter[str]()
        for iri, count in self.types.items():
            types[called(iri) if iri else ""] += count
        of_nodes: dict[str, list[PropertySchema]] = {}
        for row in self.node_values:
            if "k" in row and row["k"]["value"] != naming:
                kind = called(row["t"]["value"]) if "t" in row else ""
                of_nodes.setdefault(kind, []).append(_detail(row, label))
        of_edges: dict[str, list[PropertySchema]] = {}
        for row in self.edge_values:
            of_edges.setdefault(row["p"]["value"], []).append(_detail(row, label))
        details = {kind: _each_once(found) for kind, found in sorted(of_nodes.items())}
        relations = []
        for iri, written in labels:
            properties = _each_once(of_edges.get(iri, []))
            ends = [_by_count(by.get(iri, Counter()), called) for by in (self.domains, self.ranges)]
            names = tuple(detail.name for detail in properties)
            relations.append(RelationSchema(written, self.relations[iri], ends[0], ends[1], names, properties))
        return Schema(
            node_types=dict(sorted((+types).items(), key=lambda item: (-item[1], item[0]))),
            relations=tuple(relations),
            node_properties={kind: tuple(detail.name for detail in found) for kind, found in details.items()},
            node_property_details=details,
            sampled=self.sampled,
        )


def look_at(
    ask: Ask, words: NamePredicates, sample: int | None, repeats: bool, reading: Callable[[str], None]
) -> SchemaFindings:
    """Count relations, classes and properties, over all triples or the first `sample` of them.

    `reading` is called with the part that is read next.
    """
    found = SchemaFindings()
    reading("nodes, classes and relations" if sample is None else f"relations and classes, of {sample:,} triples")
    first: list[Question] = [("?t ?count", sparql.type_counts(words, sample))]
    if sample is None:
        first.append(("?p ?kind ?count", sparql.predicate_kinds(words.reified, repeats)))
        first.append(("?count", sparql.node_count(words.reified)))
        first.append(("?count", sparql.typed_count(words)))
        classes, kinds, (nodes,), (typed,) = ask(first)
        for row in kinds:
            if "p" in row and row["kind"]["value"] == "e":
                found.relations[row["p"]["value"]] += _number(row)
            elif "p" in row and row["kind"]["value"] == "l":
                found.literals[row["p"]["value"]] = _number(row)
        found.nodes = _number(nodes)
        found.types[""] = found.nodes - _number(typed)
        several = sum(map(_number, classes)) > _number(typed)
    else:
        first.append(("?p ?count", sparql.relation_counts(sample, words.reified)))
        classes, counts = ask(first)
        for row in counts:
            found.relations[row["p"]["value"]] += _number(row)
        several = True
        found.sampled = f"{sample:,} triples: all counts are theirs, and anything may be missing"
    for row in classes:
        if "t" in row:
            found.types[row["t"]["value"]] += _number(row)
    found.types = +found.types
    reading(f"properties, and the ends of relations ({len(found.relations):,})")
    _look_further(ask, words, sample, repeats, found, several)
    return found


def _look_further(
    ask: Ask, words: NamePredicates, sample: int | None, repeats: bool, found: SchemaFindings, several: bool
) -> None:
    """Read the ends of relations, and properties.

    `several` is True if a node may have several classes, so that edges whose end has one have to be counted.
    """
    any_type = any(found.types.keys() - {""})
    questions: list[Question] = []
    ends = ("?p ?t ?count", False), ("?p ?count", True)
    for variables, counted in ends if any_type else ():
        if several or not counted:
            questions += [
                (variables, sparql.relation_ends(words, tail, sample, repeats, counted)) for tail in (False, True)
            ]
    of_ends = len(questions)
    literals = sorted(found.literals.keys() - words.names[:1])
    named = literals if sample is None and len(literals) <= _FEW_PREDICATES else None
    if named != []:  # not that of names alone
        if any_type:
            questions.append(("?t ?k ?least ?most", sparql.node_properties(words, True, named, sample, True)))
        questions.append(("?k ?least ?most", sparql.node_properties(words, False, named, sample, any_type)))
    if words.reified:
        questions.append(("?p ?count", sparql.parallel_counts()))
        questions.append(("?p ?k ?least ?most", sparql.edge_properties()))
    answers = list(ask(questions)) if questions else []
    parallel: Sequence[Binding] = ()
    if words.reified:
        found.edge_values, parallel = list(answers.pop()), answers.pop()
    found.node_values = [row for rows in answers[of_ends:] for row in rows]
    for tail, classes in enumerate((found.domains, found.ranges)):
        typed = Counter[str]()
        if any_type:
            for row in answers[tail]:
                if "p" in row:
                    classes.setdefault(row["p"]["value"], Counter())[row["t"]["value"]] += _number(row)
                    typed[row["p"]["value"]] += 0 if several else _number(row)
            for row in answers[2 + tail] if several else ():
                if "p" in row:
                    typed[row["p"]["value"]] = _number(row)
        for relation, count in found.relations.items():
            if count > typed[relation]:
                classes.setdefault(relation, Counter())[""] = count - typed[relation]
    for row in parallel:
        if "p" in row and row["p"]["value"] in found.relations:
            found.relations[row["p"]["value"]] += _number(row)


def _number(row: Binding) -> int:
    return int(float(row["count"]["value"]))


def _detail(row: Binding, label: Callable[[str], str]) -> PropertySchema:
    """Describe the property in a row of ?k ?least ?most; an engine may find no least value among mixed ones."""
    found = [read_literal(row[name]) for name in ("least", "most") if name in row]
    kinds = {literal.kind for literal in found}
    examples = tuple(dict.fromkeys(literal.value for literal in found if len(literal.text) <= _SHORT))
    return PropertySchema(label(row["k"]["value"]), kinds.pop() if len(kinds) == 1 else "", examples)


def _each_once(details: Iterable[PropertySchema]) -> tuple[PropertySchema, ...]:
    """Sort properties by name; of two with one name, which different classes may give, the first stays."""
    return tuple({detail.name: detail for detail in sorted(details, key=lambda detail: detail.name)[::-1]}.values())[
        ::-1
    ]


def _by_count(counts: Counter[str], called: Callable[[str], str]) -> tuple[str, ...]:
    named = Counter[str]()
    for iri, count in counts.items():
        named[called(iri) if iri else ""] += count
    return tuple(sorted(named, key=lambda kind: (-named[kind], kind)))
