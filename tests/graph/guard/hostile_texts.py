"""Texts of up to 200,000 characters that are meant to cost the guard time: one thing repeated, numbered, nested, or
a query of the corpus blown up. The fuzz test draws from them, and `benchmarks/graph_guard.py` times all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from byokg.graph.guard.tokens import MAX_CHARACTERS
from tests.graph.guard import corpus_cypher, corpus_sparql, corpus_tck


class Text(NamedTuple):
    """One text for one language, and what it is."""

    language: str
    kind: str
    text: str


# Divided by ¦; {i} counts the copies.

CYPHER_FRAGMENTS = (
    ".b¦.b()¦a.b.¦apoc.¦`a.b`.¦gds.a.stream()¦(a)-->()¦(a{i})-->()¦(a:A{i})¦(a:A{i}),¦[r:R{i}|S{i}]-¦-[*1..{i}]-¦"
    "[x¦IN¦[¦[a{i}],¦{a:1,¦a{i}:{¦EXISTS{¦CASE¦WHEN(¦NOT¦--¦-¦\u2014¦+¦!¦|¦&¦:¦::¦;;¦,¦..¦$¦$p{i}¦\\u0041¦\\u0027¦"
    "a{i}=¦`a{i}`¦'{i}'¦'\\u0027'¦\"\\\\u0022\"¦/* */¦//\n¦//\r¦\r¦\u2028¦\u00a0¦\u0301¦a ¦n{i}, ¦n{i}.p, ¦"
    "n{i}:L{i}, ¦(n{i}), ¦(n{i}:L{i}), ¦[x IN n | x], ¦[(n)-->(m{i}) | 1], ¦WITH * ¦WITH *, {i} AS v{i} ¦"
    "MATCH (n{i}) ¦MATCH (n:L{i}) ¦UNION RETURN 1 ¦UNWIND [] AS x{i} ¦CALL { RETURN 1 AS x{i} } ¦"
    "CALL (*) { RETURN 1 } ¦CALL (n) { MATCH (n:A{i}) RETURN 1 } ¦NEXT ¦"
    "OPTIONAL MATCH (n:L{i})-[r:R{i}]->(m:M{i}) WHERE n.p{i} = m.q{i} ¦LET v{i} = {i} ¦FOR x{i} IN [] ¦"
    "WHEN true THEN RETURN 1 ¦ORDER BY n{i} ¦SKIP {i} ¦LIMIT 9 ¦x IS :: LIST<¦INTEGER | ¦AND n:L{i} ¦"
    "n{i} {.p, .*}, ¦f{i}(¦f{i}(), ¦db.f{i}(), ¦a.f{i}(), ¦trim(¦any(x IN ¦count {¦EXISTS { (n)¦0x¦1_¦1e¦9¦"
    "\u0e01\u0e33¦\u0928\u0940¦\U0001f600¦\ud83d¦\ufeff¦\u200d¦<¦<-¦->"
).split("¦")

SPARQL_FRAGMENTS = (
    ".b¦a.b.¦a-b-¦a:b¦a:b.¦a.¦-a¦_:a.¦_:b{i}¦?v{i}¦$v¦<a>¦<a{i}>¦<../>¦<//h{i}/>¦<?a&&?b>¦<<(¦<<¦>>¦{|¦|}¦~¦^¦^^¦!¦"
    "!(¦|¦{¦(¦[¦](¦[]¦()¦,¦;¦.¦..¦=¦!=¦<¦>¦&&¦||¦+¦-¦*¦/¦\\u0041¦\\u0022¦\\U00000027¦%¦%41¦a:%41¦a:\\.¦@en¦@a-b¦"
    "--a¦'a{i}' ¦'''a¦\"\"\"¦\"\"¦'¦'\\''¦# a\n¦#\r¦\r¦\u2028¦\u1680¦a:\u0301¦?\u0928\u0940¦a:\u0e01¦?s ?p ?o . ¦"
    "?s a:p{i} ?o . ¦?s <p{i}> ?o . ¦?s a <c{i}> . ¦?s a:p/a:q|^a:r* ?o . ¦?s ?p a:o, ¦{ ?s ?p ?o } UNION ¦"
    "OPTIONAL { ¦OPTIONAL { ?s ?p{i} ?o } ¦GRAPH ?g { ¦MINUS { } ¦VALUES ?x { 1 } ¦FILTER(?x IN (1)) ¦FILTER(¦"
    "FILTER EXISTS { ¦BIND(1 AS ?v{i}) ¦IF(¦COALESCE(¦f{i}(¦a:f{i}(), ¦PREFIX a{i}: <http://e/{i}/> ¦"
    "PREFIX a: <a{i}/> ¦BASE <a/> ¦FROM <g{i}> ¦FROM <http://h{i}/> ¦SELECT * { ¦(1 AS ?v{i}) ¦(COUNT(*) AS ?c) ¦"
    "ORDER BY ?s ¦LIMIT 9 ¦DESC(?s) ¦UNDEF ¦1 ¦1.e¦1.¦(?a ¦[ a:p ¦<a:b> ¦\u200d¦\U0001f600¦\ud83d¦\ufeff¦a:b:c:¦a-¦"
    "a.-¦_¦\u00b7"
).split("¦")

CYPHER_HEADS = (
    "¦RETURN ¦MATCH ¦MATCH (n) RETURN ¦MATCH (n) ¦CALL ¦RETURN [¦RETURN a¦RETURN a.¦MATCH (n¦MATCH (n:¦MATCH (n)-¦"
    "RETURN 'a¦RETURN `¦RETURN $¦WITH 1 AS x ¦RETURN 1 AS x ¦MATCH (n) WHERE "
).split("¦")

SPARQL_HEADS = (
    "¦SELECT ¦SELECT * { ¦ASK { ?s ?p ¦ASK { ?s ¦CONSTRUCT { ¦DESCRIBE ¦PREFIX a: <http://e/> ASK { ¦"
    "BASE <http://e/" + "a/" * 100 + "> ASK { ?s ¦"
    "SELECT * FROM ¦ASK { FILTER(¦ASK { VALUES ?x { ¦PREFIX ¦"
    "PREFIX a: <http://" + "e/" * 140 + "> ASK { ?s a:p ¦"
    "ASK { ?s ?p '¦ASK { ?s ?p (¦SELECT ?x {} ORDER BY "
).split("¦")

TAILS = ("¦()¦1¦)¦}¦ }¦ RETURN 1¦\r\\u0041¦'¦>¦:¦]¦ RETURN n LIMIT " + "9" * 5000 + "").split("¦")


def repeated(head: str, fragment: str, tail: str, size: int = MAX_CHARACTERS) -> str:
    """Return head, as many copies of a fragment as fit, ``{i}`` in them numbered, and tail."""
    room = size - len(head) - len(tail)
    if "{i}" not in fragment:
        return head + fragment * (room // len(fragment)) + tail
    count = room // (len(fragment) + 2)
    return (head + "".join(fragment.replace("{i}", str(number)) for number in range(count)) + tail)[:size]


def nested(head: str, opening: str, closing: str, tail: str, depth: int) -> str:
    """Return text within so many brackets, padded to full length by what stands inside them."""
    room = MAX_CHARACTERS - len(head) - len(tail) - depth * (len(opening) + len(closing))
    return head + opening * depth + "1" * max(room, 1) + closing * depth + tail


def grown(query: str, random: random.Random) -> str:
    """Return a query of which a part is repeated up to full length, perhaps with another part left out or doubled."""
    first, last = sorted(random.choices(range(len(query) + 1), k=2))
    part = query[first:last] or " "
    count = (MAX_CHARACTERS - len(query)) // len(part)
    rest = query[last:]
    if random.random() < 0.5 and rest:
        at = random.randrange(len(rest))
        rest = rest[:at] + random.choice(["", rest[at], "\r", "\\u0041", "\u0301", "'"]) + rest[at + 1 :]
    return query[:first] + part * max(count, 1) + rest


QUERIES = {
    "cypher": [*corpus_cypher.READS, *corpus_cypher.WRITES, *corpus_cypher.UNREADABLE, *corpus_tck.READS],
    "sparql": [*corpus_sparql.READS, *corpus_sparql.WRITES, *corpus_sparql.UNREADABLE],
}
PARTS = {"cypher": (CYPHER_HEADS, CYPHER_FRAGMENTS), "sparql": (SPARQL_HEADS, SPARQL_FRAGMENTS)}


def texts(seed: int, heads: int, queries: int) -> Iterator[Text]:
    """Yield each fragment behind so many heads, and so many blown-up queries of each language."""
    chance = random.Random(seed)
    for language, (begun, fragments) in PARTS.items():
        for fragment in fragments:
            for head in chance.sample(begun, heads):
                tail = chance.choice(TAILS)
                yield Text(language, f"{head[:30]} {fragment!r} … {tail[:12]}", repeated(head, fragment, tail))
        for _ in range(queries):
            query = chance.choice(QUERIES[language])
            yield Text(language, f"grown {query[:60]!r}", grown(query, chance))
