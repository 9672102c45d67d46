"""CONSTRUCT and DESCRIBE as the SELECT of the same triples, one triple in a row: ?subject ?predicate ?object.

The pattern of the query becomes a subquery; behind it, each of its solutions is repeated for each triple of the
template, whose terms are then put together. What makes no triple (an unbound variable, a literal as a subject) makes no
row. A blank node of the template is another one in each solution, as the standard says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

COLUMNS = "SELECT DISTINCT ?subject ?predicate ?object "


class Frame(NamedTuple):
    """What stands before a pattern and behind it; `COLUMNS`, and FROM where there is one, stand before that."""

    before: str
    behind: str


def constructed(triples: Sequence[tuple[str, str, str]], taken: Collection[str]) -> Frame:
    """Frame the pattern of a CONSTRUCT.

    Args:
        triples: the template: variables ``?x`` or ``$x``, blank nodes ``_:b``, and other terms as written.
        taken: names of the variables in the query, without ``?``.
    """
    columns, rows, sources = _solutions(triples, taken)
    binds = " ".join(
        f"BIND({_chosen(column, rows)} AS {name})"
        for column, name in zip(columns, ("?subject", "?predicate", "?object"), strict=True)
    )
    numbers = " ".join(map(str, range(len(triples))))
    made = "FILTER(!isLITERAL(?subject) && isIRI(?predicate) && BOUND(?object))"
    return Frame(f"WHERE {{ {{ SELECT {sources} ", f" }} VALUES {rows} {{ {numbers} }} {binds} {made} }}")


def described(terms: Sequence[str], pattern: bool, taken: Collection[str]) -> Frame:
    """Frame the pattern of a DESCRIBE: what is described are the triples that begin with a node.

    Args:
        terms: variables and IRIs.
        pattern: there is one; otherwise the frame is the whole.
        taken: names of the variables in the query, without ``?``.
    """
    if not pattern:
        iris = " ".join(term for term in terms if term[0] not in "?$")
        return Frame("WHERE { ", f"VALUES ?subject {{ {iris} }} ?subject ?predicate ?object }}")
    (column,), rows, sources = _solutions([(term,) for term in terms], taken)
    numbers = " ".join(map(str, range(len(terms))))
    subject = f"VALUES {rows} {{ {numbers} }} BIND({_chosen(column, rows)} AS ?subject) FILTER(BOUND(?subject))"
    return Frame(f"WHERE {{ {{ {{ SELECT {sources} ", f" }} {subject} }} ?subject ?predicate ?object }}")


def _solutions(triples: Sequence[tuple[str, ...]], taken: Collection[str]) -> tuple[list[tuple[str, ...]], str, str]:
    """Give each variable and blank node a name that nothing else has.

    Returns:
        The terms by column, the name of the variable that counts triples, and what the subquery is to select.
    """
    stem = "row"
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    names: dict[str, str] = {}
    sources: list[str] = []
    spelled = [[f"?{term[1:]}" if term[0] == "$" else term for term in triple] for triple in triples]
    for term in (term for triple in spelled for term in triple):
        if term not in names and term.startswith(("?", "_:")):
            names[term] = f"?{stem}{len(names)}"
            sources.append(f"({term if term[0] == '?' else 'BNODE()'} AS {names[term]})")
    columns = [tuple(names.get(term, term) for term in column) for column in zip(*spelled, strict=True)]
    return columns or [(), (), ()], f"?{stem}", " ".join(sources) or f"(1 AS ?{stem}0)"


def _chosen(terms: Sequence[str], rows: str, first: int = 0) -> str:
    """Write the expression for the term of row number `rows`, the first of which is `first`; halving keeps it flat."""
    if len(set(terms)) <= 1:
        return next(iter(terms), "1")
    middle = len(terms) // 2
    low, high = _chosen(terms[:middle], rows, first), _chosen(terms[middle:], rows, first + middle)
    return f"IF({rows} < {first + middle}, {low}, {high})"
