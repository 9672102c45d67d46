"""OWL restrictions read as edges: a class whose instances have a part of class C gets the edge *has part* to C.

`X subClassOf [onProperty p; someValuesFrom C]` becomes `X p C`, within intersections, too, whose named members become
superclasses; the nameless nodes are dropped. Classes that are defined in other ways stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byokg.errors import import_extra
from byokg.files import TextFile
from byokg.graph.rdf.terms import RDF

_OWL = "http://www.w3.org/2002/07/owl#"
_SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_DEFINING = (_SUBCLASS, f"{_OWL}equivalentClass")
_FILLERS = [f"{_OWL}{name}" for name in ("someValuesFrom", "allValuesFrom", "hasValue", "onClass")]
_FIRST, _REST, _NIL = f"{RDF}first", f"{RDF}rest", f"{RDF}nil"
_READ_BYTES = 1 << 20


def defines_restrictions(file: TextFile) -> bool:
    """Return True if a document names OWL's namespace and restrictions. Raises `ImportFailed`."""
    with file.reading(), file.open() as stream:
        before = stream.read(_READ_BYTES)
        if _OWL.encode() not in before:
            return False
        while before and b"Restriction" not in before:
            more = stream.read(_READ_BYTES)
            before = before[-20:] + more if more else b""
        return bool(before)


def read_restrictions(quads: Iterator[Any]) -> Iterator[Any]:
    """Yield pyoxigraph's quads, restrictions changed as described above; those of nameless nodes come last."""
    pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
    definitions = _Definitions(pyoxigraph)
    uses: list[Any] = []
    for quad in quads:
        if isinstance(quad.subject, pyoxigraph.BlankNode):
            definitions.about.setdefault(quad.subject, []).append(quad)
        elif isinstance(quad.object, pyoxigraph.BlankNode):
            uses.append(quad)
        else:
            yield quad
    dropped: set[Any] = set()
    for quad in uses:
        seen: set[Any] = set()
        edges = definitions.edges(quad.object, seen) if quad.predicate.value in _DEFINING else None
        if edges is None:
            yield quad
            continue
        dropped |= seen
        for predicate, end in edges:
            yield pyoxigraph.Quad(quad.subject, predicate, end, quad.graph_name)
    for subject, about in definitions.about.items():
        if subject not in dropped:
            yield from about


class _Definitions:
    """The quads about the nameless nodes of a document."""

    def __init__(self, pyoxigraph: Any) -> None:
        self._pyoxigraph = pyoxigraph
        self.about: dict[Any, list[Any]] = {}

    def edges(self, node: Any, seen: set[Any]) -> list[tuple[Any, Any]] | None:
        """Return property and class of the edges that a nameless class stands for; None if it is another definition.

        The nameless nodes of the definition are added to `seen`.
        """
        if node in seen:
            return None
        seen.add(node)
        said = {quad.predicate.value: quad.object for quad in self.about.get(node, ())}
        relation = said.get(f"{_OWL}onProperty")
        filler = next((said[key] for key in _FILLERS if key in said), None)
        if isinstance(relation, self._pyoxigraph.NamedNode) and filler is not None:
            ends = self._named(filler, seen)
            return None if ends is None else [(relation, end) for end in ends]
        members = self._members(said.get(f"{_OWL}intersectionOf"), seen)
        edges: list[tuple[Any, Any]] = []
        for member in members or ():
            if isinstance(member, self._pyoxigraph.BlankNode):
                inner = self.edges(member, seen)
                if inner is None:
                    return None
                edges += inner
            else:
                edges.append((self._pyoxigraph.NamedNode(_SUBCLASS), member))
        return edges or None

    def _named(self, filler: Any, seen: set[Any]) -> list[Any] | None:
        """Return the classes or the value of a restriction; the members of a nameless union or intersection."""
        if not isinstance(filler, self._pyoxigraph.BlankNode):
            return [filler]
        seen.add(filler)
        said = {quad.predicate.value: quad.object for quad in self.about.get(filler, ())}
        listed = next((said[key] for key in (f"{_OWL}unionOf", f"{_OWL}intersectionOf") if key in said), None)
        members = self._members(listed, seen)
        named = members and not any(isinstance(member, self._pyoxigraph.BlankNode) for member in members)
        return members if named else None

    def _members(self, node: Any, seen: set[Any]) -> list[Any] | None:
        """Return the members of an RDF list; None if it is none."""
        found: list[Any] = []
        while isinstance(node, self._pyoxigraph.BlankNode) and node not in seen:
            seen.add(node)
            said = {quad.predicate.value: quad.object for quad in self.about.get(node, ())}
            found.append(said.get(_FIRST))
            node = said.get(_REST)
        return found if node is not None and getattr(node, "value", "") == _NIL and None not in found else None
