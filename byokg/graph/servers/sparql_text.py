"""SPARQL 1.1 texts for RDF stores, embedded and remote alike, and parsing of their results.

Edges are the triples between two IRIs, except `rdf:type`, which is a node's type. Properties are the triples that end
in a literal. An edge that has properties of its own, or parallel ones, is described by statements besides its triple:
`?statement rdf:subject ?head ; rdf:predicate ?relation ; rdf:object ?tail`, one for each parallel edge, each with its
properties.

A pattern function returns the inside of a WHERE clause; its docstring lists the bound variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeAlias

from byokg.errors import StoreUnavailable
from byokg.graph.rdf.literals import Literal, language_rank, of_value
from byokg.graph.rdf.terms import (
    GENERIC_TYPES,
    RDF_OBJECT,
    RDF_PREDICATE,
    RDF_REIFIES,
    RDF_SUBJECT,
    RDF_TYPE,
    TYPE_OBJECT_TYPE,
    node_id,
)
from byokg.graph.store import Direction

STATEMENT_PARTS = (RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT, RDF_REIFIES)

_FEW_RELATIONS = 8
"""Up to so many relations are looked up one by one; of more, each node's edges are read and filtered."""

_EDGE = "isIRI(?o) && !isBlank(?s)"
"""Both ends are nodes: testing all subjects for being IRIs, which is the same, takes a minute in one engine."""

_EXTREMES = "(MIN(?v) AS ?least) (MAX(?v) AS ?most)"


def select(variables: str, where: str, limit: int | None = None, offset: int | None = None) -> str:
    """Write a query; with an offset, rows are ordered so that pages fit together.

    They are ordered inside and cut outside: Virtuoso orders no more than 10,000 rows that it also has to cut.
    """
    if offset is not None:
        where = f"{{ SELECT {variables} WHERE {{ {where} }} ORDER BY {variables} }}"
    text = f"{_prologue(where)}SELECT {variables} WHERE {{ {where} }}"
    if limit is not None:
        text += f" LIMIT {limit}"
    return text if not offset else f"{text} OFFSET {offset}"


def count(where: str) -> str:
    """Write the query that counts the rows of a pattern as ?rows, a name that no pattern here has."""
    return f"{_prologue(where)}SELECT (COUNT(*) AS ?rows) WHERE {{ {where} }}"


def _prologue(where: str) -> str:
    """Have nodes that are given looked up in the order that is written; else it may begin with all triples."""
    looked_up = VIRTUOSO.by_head in where or VIRTUOSO.by_tail in where  # no literal can hold their quotation marks
    return 'DEFINE sql:select-option "order" ' if looked_up else ""


# Patterns


@dataclass(frozen=True)
class Lookup:
    """Engine hint for the lookup of the triples of given nodes."""

    table: bool = False
    """The nodes are given with a second column, so that an engine joins them instead of testing each triple."""
    by_head: str = ""
    """Stands behind a triple whose head is given,"""
    by_tail: str = ""
    """and behind one whose tail is."""

    def given(self, variable: str, iris: Sequence[str]) -> str:
        """Write the nodes."""
        if not self.table:
            return _bind_values(variable, iris)
        return f"VALUES ({variable} ?given) {{ {' '.join(f'(<{iri}> 1)' for iri in iris)} }}"

    def triple(self, head: str, relation: str, tail: str, by_tail: bool) -> str:
        """Write a triple, one end of which is given."""
        return f"{head} {relation} {tail}{self.by_tail if by_tail else self.by_head}"

    def part(self, variables: str, where: str) -> str:
        """Write a part of a union that begins with nodes that are given."""
        return f"{{ SELECT {variables} WHERE {{ {where} }} }}" if self.table else f"{{ {where} }}"


PLAIN = Lookup()
VIRTUOSO = Lookup(True, ' OPTION (TABLE_OPTION "index RDF_QUAD_SP")', ' OPTION (TABLE_OPTION "index RDF_QUAD_OP")')
"""By default, Virtuoso may read all triples of each relation of a node, depending on its sampling."""


def _ways(
    iris: Sequence[str], direction: Direction, relations: Sequence[str] | None, lookup: Lookup
) -> Iterator[tuple[bool, str, str, str, str, str]]:
    """Yield, for each wanted way: True for edges that come in, near and far end, given values, filter and triple."""
    for inverse in (False, True):
        if direction is not (Direction.OUT if inverse else Direction.IN):
            near, far = ("?o", "?s") if inverse else ("?s", "?o")
            given = f"{lookup.given(near, iris)} {_relation_values(relations)}"
            triple = lookup.triple("?s", "?p", "?o", inverse)
            yield inverse, near, far, given, f"isIRI({far}) && {_relation_filter(relations)}", triple


def edges(
    iris: Sequence[str], direction: Direction, relations: Sequence[str] | None, reified: bool, lookup: Lookup = PLAIN
) -> str:
    """Match edges that touch nodes: ?s ?p ?o, and ?e in rows of a statement."""
    parts = []
    for inverse, near, far, given, wanted, triple in _ways(iris, direction, relations, lookup):
        plain = f"{given} {triple} . FILTER({wanted}){_no_statement('?s', reified and inverse)}"
        parts.append(lookup.part("?s ?p ?o", plain))
        if reified:
            end = RDF_OBJECT if inverse else RDF_SUBJECT
            other = RDF_SUBJECT if inverse else RDF_OBJECT
            statement = f"?e <{end}> {near} . ?e <{RDF_PREDICATE}> ?p . ?e <{other}> {far} ."
            parts.append(f"{{ {given} {statement} FILTER({wanted} && isIRI(?e)) }}")
    return " UNION ".join(parts)


def grouped_edges(
    iris: Sequence[str], direction: Direction, relations: Sequence[str] | None, lookup: Lookup = PLAIN
) -> str:
    """Match the edges that touch nodes, those of one relation at one end together: ?near ?p ?way ?count ?ends.

    A row for each edge costs an engine several times as much as the text that all of them make.
    """
    parts = []
    for inverse, near, far, given, wanted, triple in _ways(iris, direction, relations, lookup):
        way, ends = of_value("in" if inverse else "out"), _joined(f"STR({far})")
        select = f"SELECT ({near} AS ?near) ?p ({way} AS ?way) (COUNT(*) AS ?count) ({ends} AS ?ends)"
        parts.append(f"{{ {select} WHERE {{ {given} {triple} . FILTER({wanted}) }} GROUP BY {near} ?p }}")
    return " UNION ".join(parts)


def joined_edges(relations: Sequence[str]) -> str:
    """Match all triples of some relations, those with one tail, ?near, together: ?near ?p ?count ?ends."""
    return (
        f"{{ SELECT (?o AS ?near) ?p (COUNT(*) AS ?count) ({_joined('STR(?s)')} AS ?ends) "
        f"WHERE {{ {_bind_values('?p', relations)} ?s ?p ?o . }} GROUP BY ?o ?p }}"
    )


def joined_nodes() -> str:
    """Match all nodes, those whose IRIs end alike together: ?tail ?count ?ends."""
    return _joined_by_tail(every_node(False), _joined("STR(?n)"))


def joined_values(predicate: str, languages: Collection[str] | None) -> str:
    """Match the texts that a predicate gives to all nodes, a line for each, likewise: ?tail ?count ?ends."""
    line = f'CONCAT(STR(?n), "{BETWEEN}", STR(?v))'
    return _joined_by_tail(all_values([predicate], False, languages), _joined(line, r"\n"))


def joined_classes(predicates: Sequence[str]) -> str:
    """Match the classes of all nodes, ?near, the nodes of one of them together: ?near ?k ?count ?ends."""
    select = f"SELECT (?v AS ?near) ?k (COUNT(*) AS ?count) ({_joined('STR(?n)')} AS ?ends)"
    return f"{{ {select} WHERE {{ {all_values(predicates, True, None)} }} GROUP BY ?v ?k }}"


def joined_tagged(predicates: Sequence[str], languages: Collection[str] | None) -> str:
    """Match the texts in a language of all nodes, a line for each: ?tail ?k ?lang ?count ?ends."""
    where = f"{all_values(predicates, False, languages)} {_TAGGED} BIND(LANG(?v) AS ?lang)"
    return _joined_by_tail(where, _joined(f'CONCAT(STR(?n), "{BETWEEN}", STR(?v))', r"\n"), "?k ?lang ")


def untagged_values(predicates: Sequence[str]) -> str:
    """Match the other literals that some predicates give to all nodes: ?n ?k ?v."""
    return f'{all_values(predicates, False, None)} FILTER(LANG(?v) = "")'


_TAGGED = 'FILTER(LANG(?v) != "")'


def _joined_by_tail(where: str, joined: str, by: str = "") -> str:
    tail = "SUBSTR(STR(?n), STRLEN(STR(?n)) - 1)"
    select = f"SELECT ?tail {by}(COUNT(*) AS ?count) ({joined} AS ?ends)"
    return f"{{ {select} WHERE {{ {where} BIND({tail} AS ?tail) }} GROUP BY ?tail {by}}}"


def _joined(text: str, between: str = " ") -> str:
    return f'GROUP_CONCAT({text}; separator="{between}")'


BETWEEN = " "
"""Stands between IRIs, in which there is no space."""


def split(row: Binding, between: str = BETWEEN) -> list[str] | None:
    """Return the IRIs, or the lines, in ?ends of a row; None if their number differs from ?count."""
    found: list[str] = row["ends"]["value"].split(between)
    return found if len(found) == int(row["count"]["value"]) else None


def reached(iri: str, direction: Direction, relations: Sequence[str]) -> str:
    """Match the nodes that edges of some relations lead to from a node, however many of them: ?m."""
    steps = [f"<{relation}>" for relation in relations if direction is not Direction.IN]
    steps += [f"^<{relation}>" for relation in relations if direction is not Direction.OUT]
    return f"<{iri}> ({'|'.join(steps)})+ ?m . FILTER(isIRI(?m))"


def touching_counts(iris: Sequence[str], reified: bool, lookup: Lookup = PLAIN) -> str:
    """Match the number of edges of each relation that leave and enter nodes: ?n ?p ?way ?edges, ?way being "out" or
    "in".

    `BIND` comes last: in first place it makes Virtuoso read the whole graph, and count wrongly.
    """
    parts = []
    for way, near, far in (("out", "?n", "?m"), ("in", "?m", "?n")):
        wanted = f"isIRI(?m) && {_relation_filter(None)}"
        told = f"?e <{RDF_SUBJECT}> {near} . ?e <{RDF_PREDICATE}> ?p . ?e <{RDF_OBJECT}> {far} ."
        triple = lookup.triple(near, "?p", far, way == "in")
        plain = f"{triple} . FILTER({wanted}){_no_statement('?m', reified and way == 'in')}"
        edge = f"{plain} FILTER NOT EXISTS {{ {told} }}" if reified else plain
        given, named = lookup.given("?n", iris), f"BIND({of_value(way)} AS ?way)"
        parts.append(f"{given} {edge} {named}")
        if reified:
            parts.append(f"{given} {told} FILTER({wanted} && isIRI(?e)) {named}")
    united = " UNION ".join(f"{{ {part} }}" for part in parts)
    return f"{{ SELECT ?n ?p ?way (COUNT(*) AS ?edges) WHERE {{ {united} }} GROUP BY ?n ?p ?way }}"


def existing(iris: Sequence[str], reified: bool) -> str:
    """Match as ?n those that are nodes: heads, tails, or bearers of a property or type."""
    return f"{_bind_values('?n', iris)} FILTER EXISTS {{ {_node_triples(reified)} }}"


def every_node(reified: bool) -> str:
    """Match each node once as ?n.

    Each side is made distinct by itself, and subjects are tested for being no blank node: an engine may take minutes to
    test all subjects for being IRIs, which is the same.
    """
    edge = f"FILTER(?q NOT IN ({_iris((RDF_TYPE, *STATEMENT_PARTS))}) && isIRI(?n))"
    heads = f"SELECT DISTINCT ?n WHERE {{ ?n ?p ?v FILTER(!isBlank(?n)){_no_statement('?n', reified)} }}"
    tails = f"SELECT DISTINCT ?n WHERE {{ ?s ?q ?n . {edge}{_no_statement('?s', reified)} }}"
    return f"{{ SELECT DISTINCT ?n WHERE {{ {{ {heads} }} UNION {{ {tails} }} }} }}"


def describe(
    iris: Sequence[str], words: NamePredicates, languages: Collection[str] | None, lookup: Lookup = PLAIN
) -> str:
    """Match properties and types of nodes: ?n ?k ?v."""
    wanted = f"?k IN ({_iris(words.types)}) || (isLiteral(?v){_language_filter(languages)})"
    return f"{lookup.given('?n', iris)} {lookup.triple('?n', '?k', '?v', False)} . FILTER({wanted})"


def met(iris: Sequence[str], words: NamePredicates, languages: Collection[str] | None, lookup: Lookup = PLAIN) -> str:
    """Match properties and types as `describe` does; an IRI that is a relation or class comes in a row without ?k."""
    used = f"FILTER(EXISTS {{ ?head ?n ?tail }} || EXISTS {{ ?member <{RDF_TYPE}> ?n }})"
    told = lookup.part("?n ?k ?v", describe(iris, words, languages, lookup))
    return f"{told} UNION {{ {_bind_values('?n', iris)} {used} }}"


def statements(iris: Sequence[str]) -> str:
    """Match the properties of statements: ?n ?k ?v."""
    return f"{_bind_values('?n', iris)} ?n ?k ?v . FILTER(?k NOT IN ({_iris((RDF_TYPE, *STATEMENT_PARTS))}))"


def some_edges(windows: Sequence[tuple[str, int, int]]) -> str:
    """Match some edges of relations: ?s ?p ?o.

    Args:
        windows: for each, the relation's IRI, how many edges to leave out first, and how many to take then.
    """
    parts = []
    for relation, offset, limit in windows:
        inner = f"VALUES ?p {{ <{relation}> }} ?s ?p ?o . FILTER(isIRI(?s) && isIRI(?o))"
        skip = f" OFFSET {offset}" if offset else ""
        parts.append(f"{{ SELECT ?s ?p ?o WHERE {{ {inner} }} LIMIT {limit}{skip} }}")
    return " UNION ".join(parts)


# Vocabularies


@dataclass(frozen=True)
class NamePredicates:
    """Which predicates name nodes, and lead to their classes."""

    names: tuple[str, ...]
    """Best first."""
    aliases: tuple[str, ...]
    types: tuple[str, ...]
    """A node has the classes that all of them lead to, those of the first of them first."""
    reified: bool = False
    """There are statements about triples."""

    @property
    def names_classes(self) -> bool:
        """True if a class is shown by its name, and not by the end of its IRI."""
        return not {RDF_TYPE, TYPE_OBJECT_TYPE}.issuperset(self.types)


def present(predicates: Sequence[str]) -> str:
    """Match as ?k those predicates that any triple has."""
    return f"{_bind_values('?k', predicates)} FILTER EXISTS {{ ?n ?k ?v }}"


def called(texts: Sequence[str], predicates: Sequence[str], tags: Sequence[str]) -> str:
    """Match as ?n the nodes that a predicate calls one of some texts, just so: ?n ?v."""
    literals = [str(of_value(text)) for text in texts]
    tagged = [f"{literal}@{tag}" for literal in literals for tag in tags]
    values = " ".join([*literals, *tagged])
    return f"VALUES ?v {{ {values} }} {_bind_values('?k', predicates)} ?n ?k ?v . FILTER(isIRI(?n))"


# Patterns for everything


def all_edges(relations: Sequence[str], reified: bool, pure: bool = False) -> str:
    """Match every edge of some relations: ?s ?p ?o, and ?e in rows of a statement.

    `pure` is True if all their triples are edges, which saves an engine a check of every end.
    """
    wanted = "isIRI(?s) && isIRI(?o)"
    given = _bind_values("?p", relations)
    plain = f"{given} ?s ?p ?o .{'' if pure else f' FILTER({wanted})'}{_no_statement('?s', reified)}"
    if not reified:
        return plain
    told = f"?e <{RDF_SUBJECT}> ?s . ?e <{RDF_PREDICATE}> ?p . ?e <{RDF_OBJECT}> ?o ."
    return f"{{ {plain} }} UNION {{ {given} {told} FILTER({wanted} && isIRI(?e)) }}"


def all_values(predicates: Sequence[str], types: bool, languages: Collection[str] | None) -> str:
    """Match the values of some predicates for all nodes: ?n ?k ?v; of `types`, classes, and otherwise literals."""
    wanted = "isIRI(?v)" if types else f"isLiteral(?v){_language_filter(languages)}"
    return f"{_bind_values('?k', predicates)} ?n ?k ?v . FILTER(!isBlank(?n) && {wanted})"


# Patterns for the schema. `sample` is None for all triples, or how many to look at; `repeats` says that one triple may
# be matched several times, once for each graph it is in.


def predicate_kinds(reified: bool, repeats: bool) -> str:
    """Match how many triples of each predicate have an end that is a node or a literal: ?p ?kind ?count.

    One look at all triples: a filter would need several. ?kind is "e" for edges, "l" for literals, "b" for the rest.
    """
    triples = f"?s ?p ?o . FILTER({_relation_filter(None)}){_no_statement('?s', reified)}"
    if repeats:
        triples = f"{{ SELECT DISTINCT ?s ?p ?o WHERE {{ {triples} }} }}"
    kind = 'IF(isBlank(?s), "b", IF(isIRI(?o), "e", IF(isLiteral(?o), "l", "b")))'
    return f"{{ SELECT ?p ?kind (COUNT(*) AS ?count) WHERE {{ {triples} BIND({kind} AS ?kind) }} GROUP BY ?p ?kind }}"


def predicate_samples() -> str:
    """Match each predicate with whether one of its triples, whichever it is, is an edge: ?p ?edge."""
    edge = "isIRI(SAMPLE(?o)) && !isBlank(SAMPLE(?s))"
    triples = f"?s ?p ?o . FILTER({_relation_filter(None)})"
    return f"{{ SELECT ?p (({edge}) AS ?edge) WHERE {{ {triples} }} GROUP BY ?p }}"


def relation_counts(sample: int, reified: bool) -> str:
    """Match each relation once, as often as it is among some triples: ?p ?count."""
    return f"{{ SELECT ?p (COUNT(*) AS ?count) WHERE {{ {_some_triples(sample, reified)} }} GROUP BY ?p }}"


def relation_ends(words: NamePredicates, tail: bool, sample: int | None, repeats: bool, counted: bool = False) -> str:
    """Match the classes at one end of each relation: ?p ?t ?count; `counted` counts edges whose end has a class at all.

    Nodes without a class are left out: the remaining edges of a relation are theirs. An OPTIONAL would include them,
    but Virtuoso groups wrongly by unbound variables.
    """
    end = "?o" if tail else "?s"
    edges = _edge_triples(sample, words.reified, repeats)
    typed = typed_node(end, words)
    if counted:
        typed = f"{{ SELECT DISTINCT {end} WHERE {{ {typed} }} }}"
        return f"{{ SELECT ?p (COUNT(*) AS ?count) WHERE {{ {typed} {edges} }} GROUP BY ?p }}"
    return f"{{ SELECT ?p ?t (COUNT(*) AS ?count) WHERE {{ {typed} {edges} }} GROUP BY ?p ?t }}"


def parallel_counts() -> str:
    """Match how many edges of a relation come on top of its triples: ?p ?count."""
    parts = f"?e <{RDF_SUBJECT}> ?s ; <{RDF_PREDICATE}> ?p ; <{RDF_OBJECT}> ?o ."
    inner = f"{{ SELECT ?s ?p ?o (COUNT(?e) AS ?n) WHERE {{ {parts} }} GROUP BY ?s ?p ?o }}"
    return f"{{ SELECT ?p (SUM(?n - 1) AS ?count) WHERE {{ {inner} }} GROUP BY ?p }}"


def edge_properties() -> str:
    """Match the properties that the statements of a relation have: ?p ?k, and ?least and ?most of their values."""
    where = f"?e <{RDF_PREDICATE}> ?p ; ?k ?v . FILTER(?k NOT IN ({_iris((RDF_TYPE, *STATEMENT_PARTS))}))"
    return f"{{ SELECT ?p ?k {_EXTREMES} WHERE {{ {where} }} GROUP BY ?p ?k }}"


def type_counts(words: NamePredicates, sample: int | None) -> str:
    """Match each class once, as often as a node has it: ?t ?count."""
    inner = f"{typed_node('?n', words)} FILTER(isIRI(?n))"
    if sample is not None:
        inner = f"{{ SELECT ?n ?t WHERE {{ {inner} }} LIMIT {sample} }}"
    return f"{{ SELECT ?t (COUNT(*) AS ?count) WHERE {{ {inner} }} GROUP BY ?t }}"


def typed_count(words: NamePredicates) -> str:
    """Match how many nodes have a class: ?count."""
    return f"{{ SELECT (COUNT(DISTINCT ?n) AS ?count) WHERE {{ {typed_node('?n', words)} FILTER(isIRI(?n)) }} }}"


def node_count(reified: bool) -> str:
    """Match how many nodes there are: ?count."""
    return f"{{ SELECT (COUNT(?n) AS ?count) WHERE {{ {every_node(reified)} }} }}"


def node_properties(
    words: NamePredicates, typed: bool, predicates: Sequence[str] | None, sample: int | None, any_type: bool
) -> str:
    """Match the properties that nodes of a class, or of none, have: ?t ?k, and ?least and ?most of their values.

    Args:
        words: predicates of classes.
        typed: of nodes with a class; otherwise of those without, and ?t stays unbound.
        predicates: those that end in literals; None for any.
        sample: number of triples to read; None for all.
        any_type: True if any node has a class.
    """
    given = "" if predicates is None else _bind_values("?k", predicates)
    inner = f"{given} ?n ?k ?v . FILTER(isLiteral(?v) && !isBlank(?n)){_no_statement('?n', words.reified)}"
    if sample is not None:
        inner = f"{{ SELECT ?n ?k ?v WHERE {{ {inner} }} LIMIT {sample} }}"
    group = "?t ?k" if typed else "?k"
    class_ = typed_node("?n", words)
    where = f"{class_} {inner}" if typed else f"{inner} FILTER NOT EXISTS {{ {class_} }}" if any_type else inner
    return f"{{ SELECT {group} {_EXTREMES} WHERE {{ {where} }} GROUP BY {group} }}"


def values_of_type(words: NamePredicates, classes: Sequence[str], predicate: str, text: str | None = None) -> str:
    """Match the literals ?v of a property at nodes ?n of some classes, or of none; `text` is what they have to be."""
    class_ = typed_node("?n", words)
    class_ = f"{_bind_values('?t', classes)} {class_}" if classes else f"FILTER NOT EXISTS {{ {class_} }}"
    same = "" if text is None else f" FILTER(STR(?v) = {of_value(text)})"
    return f"?n <{predicate}> ?v . FILTER(isLiteral(?v) && !isBlank(?n)){same} {class_}"


def frequent_values(where: str, most: int) -> str:
    """Match the values ?v of a pattern that most nodes ?n have, each with their number ?count."""
    counted = f"SELECT ?v (COUNT(DISTINCT ?n) AS ?count) WHERE {{ {where} }} GROUP BY ?v"
    return f"{{ {counted} ORDER BY DESC(?count) ?v LIMIT {most} }}"


def typed_node(node: str, words: NamePredicates) -> str:
    """Match a node's classes as ?t, leaving out uninformative ones."""
    path = "|".join(f"<{iri}>" for iri in words.types)
    generic = sorted(GENERIC_TYPES) if {RDF_TYPE, TYPE_OBJECT_TYPE}.intersection(words.types) else []
    # One by one: Virtuoso's planner overflows at NOT IN inside of NOT EXISTS.
    said = f" FILTER({' && '.join(f'?t != <{iri}>' for iri in generic)})" if generic else ""
    return f"{node} {path} ?t .{said}"


def _edge_triples(sample: int | None, reified: bool, repeats: bool) -> str:
    if sample is not None:
        return _some_triples(sample, reified)
    triples = f"?s ?p ?o . FILTER({_EDGE} && {_relation_filter(None)}){_no_statement('?s', reified)}"
    return f"{{ SELECT DISTINCT ?s ?p ?o WHERE {{ {triples} }} }}" if repeats else triples


def _some_triples(sample: int, reified: bool) -> str:
    wanted = f"{_EDGE} && {_relation_filter(None)}"
    return f"{{ SELECT ?s ?p ?o WHERE {{ ?s ?p ?o . FILTER({wanted}){_no_statement('?s', reified)} }} LIMIT {sample} }}"


def _node_triples(reified: bool) -> str:
    """Match ?n in every triple that makes it a node."""
    edge = f"FILTER(?q NOT IN ({_iris((RDF_TYPE, *STATEMENT_PARTS))}))"
    return f"{{ ?n ?p ?v{_no_statement('?n', reified)} }} UNION {{ ?s ?q ?n . {edge}{_no_statement('?s', reified)} }}"


def _no_statement(variable: str, reified: bool) -> str:
    """Leave out statements about triples, if there are any."""
    return f" FILTER NOT EXISTS {{ {variable} <{RDF_PREDICATE}> ?any }}" if reified else ""


def _bind_values(variable: str, iris: Sequence[str]) -> str:
    return f"VALUES {variable} {{ {' '.join(f'<{iri}>' for iri in iris)} }}"


def _iris(iris: Sequence[str]) -> str:
    return ", ".join(f"<{iri}>" for iri in iris)


def _relation_values(relations: Sequence[str] | None) -> str:
    return "" if relations is None or len(relations) > _FEW_RELATIONS else _bind_values("?p", relations)


def _relation_filter(relations: Sequence[str] | None) -> str:
    if relations is None:
        return f"?p NOT IN ({_iris((RDF_TYPE, *STATEMENT_PARTS))})"
    return "true" if len(relations) <= _FEW_RELATIONS else f"?p IN ({_iris(relations)})"


def _language_filter(languages: Collection[str] | None) -> str:
    if languages is None:
        return ""
    tags = ", ".join(str(of_value(tag)) for tag in dict.fromkeys(["", *(tag.lower() for tag in languages)]))
    return f" && LCASE(LANG(?v)) IN ({tags})"


# Answers


Term: TypeAlias = "Mapping[str, Any]"
"""A term as SPARQL's JSON results write it: `type`, `value`, and perhaps `datatype` and `xml:lang`."""

Binding: TypeAlias = "Mapping[str, Term]"
"""One row: variable to term, without the variables that are unbound."""


@dataclass(frozen=True)
class SparqlResult:
    """The answer to a query: rows of terms, or the one truth value of an ASK."""

    variables: tuple[str, ...]
    bindings: Sequence[Binding]
    truth: bool | None = None
    cut: bool = False
    """The store left rows out."""


def read_table(reply: object, store: str) -> SparqlResult:
    """Check that a decoded reply is in SPARQL's JSON results format. Raises `StoreUnavailable` when it is not."""
    try:
        head, results = reply["head"], reply.get("results")  # type: ignore[index,attr-defined]
        if results is None:
            truth = reply["boolean"]  # type: ignore[index]
            if not isinstance(truth, bool):
                raise TypeError(f"boolean is {truth!r}")
            return SparqlResult((), (), truth)
        variables, bindings = tuple(head["vars"]), results["bindings"]
        for row in bindings[:1] + bindings[-1:]:
            for term in row.values():
                _ = term["type"], term["value"]
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"its reply is JSON, but not in SPARQL's results format ({type(error).__name__}: {error})"
        raise StoreUnavailable(store, reason) from error
    return SparqlResult(variables, bindings)


def read_csv(body: bytes) -> SparqlResult:
    """Read a reply in SPARQL's CSV format, which loses the kinds of terms. Raises `ValueError` for malformed CSV."""
    import pyarrow.csv as arrow_csv

    names = tuple(name.strip('"') for name in body.partition(b"\n")[0].decode().strip().split(","))
    table = arrow_csv.read_csv(
        BytesIO(body),
        arrow_csv.ReadOptions(block_size=len(body) + 1, use_threads=False),
        arrow_csv.ParseOptions(newlines_in_values=True),
        arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, "string")),
    )
    columns = [column.to_pylist() for column in table.columns]
    return SparqlResult(
        names,
        [
            {name: {"type": "", "value": value} for name, value in zip(names, row, strict=True) if value}
            for row in zip(*columns, strict=True)
        ],
    )


def parts_of(terms: Iterable[Term]) -> Iterator[Term]:
    """Yield terms, and the parts of those that are triples."""
    for term in terms:
        if term["type"] == "triple":
            yield from parts_of(term["value"].values())
        else:
            yield term


def values_of(rows: Iterable[Binding], variable: str) -> list[str]:
    """Return the value of a variable in each row."""
    return [row[variable]["value"] for row in rows]


def read_literal(term: Term) -> Literal:
    """Read a literal; an IRI, which the property of an edge may be, is read as its id."""
    if term["type"] == "uri":
        return Literal(node_id(term["value"]))
    language = term.get("xml:lang", "").lower()
    if language or "datatype" not in term:
        return Literal(term["value"], language=language)
    return Literal(term["value"], term["datatype"])


def best_name(
    values: Mapping[str, Sequence[Term]], predicates: Sequence[str], language: str
) -> tuple[str, Literal] | None:
    """Return the predicate and the literal that name a node best, if any does; the first predicate counts most."""
    candidates = [
        (language_rank(literal, language), rank, predicate, literal)
        for rank, predicate in enumerate(predicates)
        for literal in map(read_literal, values.get(predicate, ()))
        if literal.text
    ]
    return min(candidates, key=lambda item: item[:2])[2:] if candidates else None


def classes_of(values: Mapping[str, Sequence[Term]], predicates: Sequence[str]) -> list[str]:
    """Return the classes of a node, but generic ones: those of the first predicate first, and then by IRI."""
    iris = [
        iri
        for predicate in predicates
        for iri in sorted(str(term["value"]) for term in values.get(predicate, ()) if term["type"] == "uri")
    ]
    return list(dict.fromkeys(iri for iri in iris if iri not in GENERIC_TYPES))
