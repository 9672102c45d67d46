"""What the grammar reads, and what it says of text that is no path query."""

from __future__ import annotations

import contextlib
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import PathQueryInvalid
from byokg.graph.pathql.grammar import parse
from byokg.graph.pathql.query import (
    Alternatives,
    Inverse,
    Link,
    LiteralTerm,
    NameTerm,
    Repeat,
    Restrictor,
    Selector,
    Sequence,
    TriplePattern,
    Variable,
)
from tests.corpora import each_of

PREFIX = "PATHS START ?x END ?y VIA "


def test_a_query_with_everything() -> None:
    query = parse(
        "PREFIX ex: <http://e/> PATHS SHORTEST 3 TRAIL CYCLIC FROM <g> START ?s = ex:a END ?e = <Tom Hanks> "
        "MATCHING (:a|^:b)+/:c{2,3} MAX LENGTH 7 OFFSET 1 LIMIT 2 COST :km # the end"
    )
    assert (query.selector, query.count, query.restrictor) == (Selector.SHORTEST, 3, Restrictor.TRAIL)
    assert query.cyclic and query.whole and not query.undirected
    assert query.start.names == (NameTerm("a", "ex"),) and query.end.names == (NameTerm("Tom Hanks"),)
    assert (query.max_length, query.offset, query.limit, query.cost) == (7, 1, 2, NameTerm("km", ""))
    assert query.graphs == (NameTerm("g"),) and query.prefixes == {"ex": "http://e/"}
    a, b, c = (Link(NameTerm(name, "")) for name in "abc")
    assert query.via == Sequence((Repeat(Alternatives((a, Inverse(b))), 1, None), Repeat(c, 2, 3)))


@each_of(
    ("mode", "selector", "count"),
    [
        ("", Selector.ALL_SHORTEST, 1),
        ("SHORTEST", Selector.ALL_SHORTEST, 1),
        ("ALL", Selector.ALL, 1),
        ("any", Selector.ANY, 1),
        ("ANY 4", Selector.ANY, 4),
        ("ANY SHORTEST", Selector.ANY_SHORTEST, 1),
        ("ALL SHORTEST WALK", Selector.ALL_SHORTEST, 1),
        ("SHORTEST 5", Selector.SHORTEST, 5),
        ("SHORTEST 5 GROUPS", Selector.SHORTEST_GROUPS, 5),
        ("SHORTEST GROUP", Selector.SHORTEST_GROUPS, 1),
    ],
)
def test_selectors(mode: str, selector: Selector, count: int) -> None:
    query = parse(f"PATHS {mode} START ?x END ?y VIA ?p")
    assert (query.selector, query.count) == (selector, count)


@each_of("word", ["WALK", "walks", "TRAIL", "TRAILS", "ACYCLIC", "SIMPLE"])
def test_restrictors(word: str) -> None:
    assert parse(f"PATHS {word} START ?x END ?y VIA ?p").restrictor.value == word.upper().removesuffix("S")


def test_a_less_sign_is_no_name() -> None:
    query = parse(PREFIX + "{ ?x :km ?a ; :to ?y . FILTER(?a < 3 && 2 > ?a) FILTER(<Tom Hanks> != ?x) }")
    assert len(query.via.elements) == 4  # type: ignore[union-attr]


def test_literals_and_annotations() -> None:
    query = parse(
        PREFIX + "{ ?x :knows ?y {| :since ?d ; :weight -2.5 |} . ?x :name 'O\\'Hara'@en, \"1\"^^xsd:integer }"
    )
    first, *others = query.via.elements  # type: ignore[union-attr]
    assert isinstance(first, TriplePattern)
    assert first.annotations == ((NameTerm("since", ""), Variable("d")), (NameTerm("weight", ""), LiteralTerm(-2.5)))
    assert [each.object for each in others if isinstance(each, TriplePattern)] == [
        LiteralTerm("O'Hara", language="en"),
        LiteralTerm(1, "integer"),
    ]


@each_of(
    ("text", "line", "column", "said", "expected"),
    [
        ("", 1, 1, "the query ends too early", "PATHS"),
        ("SELECT *", 1, 1, "unexpected 'SELECT'", "PATHS"),
        ("PATHS START ?x\nEND ?y", 2, 7, "the query ends too early", "VIA"),
        ("PATHS START ?x END ?y VIA :a OFSET 3", 1, 30, "unexpected 'OFSET'", "OFFSET"),
        ("PATHS START ?x END ?y VIA { ?x :a }", 1, 35, "unexpected '}'", "a variable such as ?x"),
        ("PATHS START ?x = Alice END ?y VIA :a", 1, 18, "unexpected 'Alice'", "a name such as :Alice"),
        (PREFIX + ":a MAX LENGTH x", 1, 41, "unexpected 'x'", "a whole number"),
    ],
)
def test_errors_say_where_and_what_was_expected(text: str, line: int, column: int, said: str, expected: str) -> None:
    with pytest.raises(PathQueryInvalid) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column, caught.value.reason) == (line, column, said)
    assert expected in caught.value.expected
    assert f"line {line}, column {column}: {said}; expected" in str(caught.value)


@each_of(
    ("text", "reason"),
    [
        (PREFIX + ":a{3,2}", "at least 3 and at most 2"),
        (PREFIX + ":a{1000}", "too large"),
        (PREFIX + ":a LIMIT 99999999999999", "too large"),
        (PREFIX + ":a LIMIT 1 LIMIT 2", "LIMIT stands twice"),
        ("PATHS ANY ALL START ?x END ?y VIA :a", "exclude each other"),
        ("PATHS SHORTEST 0 START ?x END ?y VIA :a", "0 paths"),
        ("PATHS ANY SHORTEST 3 START ?x END ?y VIA :a", "not with SHORTEST k"),
        (PREFIX + "UNDIRECTED { ?x :a ?y }", "UNDIRECTED is for expressions"),
        (PREFIX + "{ VALUES (?x ?y) { (:a) } }", "needs 2 values"),
    ],
)
def test_what_parses_but_means_nothing_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PathQueryInvalid, match=reason):
        parse(text)


HOSTILE = [
    "(" * 200_000,
    PREFIX + "(" * 199_000,
    PREFIX + "{" * 199_000,
    PREFIX + ":a|" * 66_000,
    PREFIX + ":a/" * 66_000 + ":a",
    PREFIX + "^" * 199_000,
    PREFIX + "{ ?x :a ?y FILTER(" + "!" * 190_000,
    PREFIX + "{ ?x :a ?y FILTER(1" + "+1" * 5_900 + ")}",
    PREFIX + "{ ?x :a ?y FILTER(" + "year(" * 40_000,
    '"' * 200_000,
    PREFIX + '"' + "\\" * 199_000,
    "x" * 200_000,
    "<" * 200_000,
    ":" * 200_000,
    "PATHS START ?x = " + ":a." * 66_000,
    "PATHS START ?x = :" + "a." * 99_000,
    "PATHS START ?x = :" + "%41" * 66_000,
    "#" * 200_000,
    "PREFIX a: <b> " * 14_000,
    "\0" * 200_000,
    "'" + "\\'" * 99_000,
]


@each_of("number", range(len(HOSTILE)))
def test_hostile_text_is_not_read_in_time_that_grows_with_its_square(number: int) -> None:
    parse(PREFIX + ":a")  # so that building the parser is not counted
    began = time.process_time()
    with contextlib.suppress(PathQueryInvalid):
        parse(HOSTILE[number])
    assert time.process_time() - began < 15


WORDS = (
    "PATHS ALL ANY SHORTEST 3 WALK CYCLIC START ?x END ?y = :a <b c> VIA MATCHING ?p { } ( ) | / ^ * + ? {2,3} ! "
    "UNION FILTER OPTIONAL VALUES BIND AS MAX LENGTH LIMIT OFFSET COST . ; , 'text' 1.5 -2 && || < > = a {| |} @en ^^ #"
).split()


def is_read_or_refused(text: str) -> bool:
    """Tell whether a text is a path query, or is refused at some place."""
    try:
        parse(text)
    except PathQueryInvalid as error:
        return error.line >= 1 and error.column >= 1
    return True


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert is_read_or_refused(text)


@each_of("seed", range(20))
def test_words_in_any_order_are_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        text = PREFIX * chance.randint(0, 1) + " ".join(chance.choices(WORDS, k=chance.randint(1, 25)))
        assert is_read_or_refused(text)
