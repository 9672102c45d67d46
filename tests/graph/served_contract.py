"""What any server with a graph promises, from the copy in files to the answer. Subclass `ServedContract`.

Two graphs are served, each as its server would hold it: what is around one node of the shipped atlas, and around one of
Freebase (as RDF with ids `ns:m.…` and names `type.object.name`, and as a property graph).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.servers import in_memory, n_triples, read
from byokg import Byokg
from byokg.cli.main import main
from byokg.errors import ByokgError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.rdf.files import graph_quads
from byokg.graph.store import Direction
from byokg.graph.traversal import triples
from byokg.linking.entities import EntityLinker
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.open import open_graph
from byokg.types import EntityId, Feedback, Mention, Node, Triple
from tests.graph.guard.corpus_cypher import WRITES as CYPHER_WRITES
from tests.graph.guard.corpus_sparql import WRITES as SPARQL_WRITES

ATLAS = Path(__file__).parents[2] / "byokg" / "data" / "atlas"
CENTRE = "Justin Bieber"


@dataclass(frozen=True)
class Asked:
    """A question, and what a model says on the way to its answer."""

    question: str
    topic: str
    misspelt: str
    relation: str
    answer: str
    cypher: str
    sparql: str


ASKED = {
    "atlas": Asked(
        "What is the capital of Portugal?",
        "Portugal",
        "Portugl",
        "capital",
        "Lisbon",
        "MATCH (c {name: 'Portugal'})-[:capital]->(x) RETURN x.name",
        'SELECT ?name { ?c rdfs:label "Portugal" ; kg:capital/rdfs:label ?name }',
    ),
    "freebase": Asked(
        "Where was Justin Bieber born?",
        CENTRE,
        "Justin Beiber",
        "people.person.place_of_birth",
        "London",
        "MATCH (p {name: 'Justin Bieber'})-[:`people.person.place_of_birth`]->(x) RETURN x.name",
        'SELECT ?name { ?p fb:type.object.name "Justin Bieber"@en ; '
        "fb:people.person.place_of_birth/fb:type.object.name ?name }",
    ),
}


@dataclass(frozen=True)
class Holding:
    """A graph as a server is to hold it: in memory, and as lines of N-Triples."""

    graph: ColumnarGraph
    lines: Sequence[str]

    @property
    def records(self) -> tuple[list[Node], list[Triple]]:
        """Return its nodes and edges."""
        ids = list(self.graph.entities())
        return self.graph.nodes(ids), triples(self.graph, self.graph.edges(self.graph.numbers(ids), Direction.OUT))


@dataclass(frozen=True)
class Served:
    """A server that holds a graph."""

    name: str
    graph: ColumnarGraph
    """What the server should give."""
    address: str
    settings: dict[str, Any]
    """Of the store."""
    content: Callable[[], object]
    """Reads everything that the server has, past the code under test."""

    def open(self) -> Any:
        """Open a new store."""
        return open_graph(self.address, **self.settings)


Hold = Callable[[str, Holding], Served]


@cache
def holding(name: str, rdf: bool) -> Holding:
    """Return a graph to serve; skips where its data are not here."""
    if name == "atlas":
        atlas = import_graph(ATLAS)
        near = np.unique(atlas.edges(atlas.numbers([EntityId("country/portugal")])).other)
        inside = {str(entity) for entity in atlas.ids(near)} | {"country/portugal"}
        walked = triples(atlas, atlas.edges(near, Direction.OUT))
        kept = [each for each in walked if each.head in inside and each.tail in inside]
        kept += triples(atlas, atlas.edges(atlas.numbers([EntityId("country/portugal")]), Direction.OUT))
        graph = ColumnarGraph.from_records(atlas.nodes(sorted(map(EntityId, inside))), kept)
        return Holding(graph, [f"{quad.subject} {quad.predicate} {quad.object} .\n" for quad in graph_quads(graph)])
    ids, edges = _around(CENTRE)
    return Holding(in_memory(ids, edges, rdf), list(n_triples(ids, edges)))


@cache
def _around(centre: str) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return the ids and edges of a node of Freebase, its neighbours, and the edges between these."""
    file = Path(os.environ.get("BYOKG_DATA", Path(__file__).parents[3] / "shared" / "data"))
    file = file / "freebase_core" / "graph_full.tsv.xz"
    if not file.exists():
        pytest.skip(f"no {file}: set BYOKG_DATA to the folder that has freebase_core")
    ids, edges = read(file)
    near = {end for head, _, tail in edges if centre in (head, tail) for end in (head, tail)}
    near = {centre, "London", *sorted(near)[::4]}
    kept = [edge for edge in edges if edge[0] in near and edge[2] in near]
    return {name: ids[name] for name in ids if name in near}, kept


def _facts(graph: ColumnarGraph) -> Counter[tuple[str, str, str, str]]:
    walked = triples(graph, graph.edges(graph.numbers(list(graph.entities())), Direction.OUT))
    return Counter((each.head, each.relation, each.tail, str(sorted(each.properties.items()))) for each in walked)


class ServedContract:
    """The checks. `hold` fills the server."""

    @pytest.fixture(scope="class")
    @classmethod
    def hold(cls) -> Hold:
        raise NotImplementedError("a subclass provides the fixture `hold`")

    @pytest.fixture(scope="class", params=list(ASKED))
    @classmethod
    def served(cls, request: pytest.FixtureRequest, hold: Hold) -> Served:
        return hold(request.param, holding(request.param, rdf=cls.rdf))

    rdf = False

    @pytest.fixture(autouse=True)
    def apart(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def test_it_is_built_into_a_folder_that_has_the_same(self, served: Served, tmp_path: Path) -> None:
        options = [f"--{key.replace('_', '-')}={value}" for key, value in served.settings.items()]
        assert main(["graph", "build", served.address, "--out", str(tmp_path / "copy"), *options]) == 0
        copy = ColumnarGraph.open(tmp_path / "copy")
        ids = sorted(served.graph.entities())
        assert sorted(copy.entities()) == ids
        assert [(each.name, each.type) for each in copy.nodes(ids)] == [
            (each.name, each.type) for each in served.graph.nodes(ids)
        ]
        assert _facts(copy) == _facts(served.graph)

    def test_names_are_linked_as_spelt_and_misspelt(self, served: Served) -> None:
        asked = ASKED[served.name]
        (wanted,) = {each.id for each in EntityLinker(served.graph).candidates(Mention(asked.topic))[:1]}
        with served.open() as store:
            for written in (asked.topic, asked.misspelt):
                assert EntityLinker(store).candidates(Mention(written))[0].id == wanted

    def test_a_model_asks_it_by_paths_and_queries_until_it_has_an_answer(self, served: Served) -> None:
        asked = ASKED[served.name]
        with served.open() as store:
            tag = "opencypher" if store.language == "cypher" else "sparql"
            text = asked.cypher if store.language == "cypher" else asked.sparql
            said = f"<entities>{asked.topic}</entities><paths>{asked.relation}</paths><{tag}>{text}</{tag}>"
            rules = (
                Rule("<selected></selected>", contains=("Select the relations to follow",)),
                Rule(f"<answers>{asked.answer} [e1]</answers>", contains=("Each fact begins",)),
                Rule("<entities>FINISH</entities>", contains=("Next entities",)),
                Rule(said, contains=("Entity extraction",)),
            )
            answer = Byokg(store, llm=ScriptedChatModel(rules=rules)).ask(asked.question)
            assert [(item.name, item.grounded) for item in answer.items] == [(asked.answer, True)]
            evidence = [item for one in answer.rounds for item in one.evidence]
            assert {"path", "query"} <= {item.retriever for item in evidence}
            objections = [item for item in evidence if isinstance(item, Feedback)]
            assert not objections, objections

    def test_it_is_asked_without_a_model(self, served: Served) -> None:
        asked = ASKED[served.name]
        with served.open() as store:
            items = Byokg(store).ask(asked.question).items
        assert [item.name for item in items][:1] == [asked.answer]

    def test_nothing_that_writes_gets_through(self, served: Served) -> None:
        before = served.content()
        with served.open() as store:
            for text in CYPHER_WRITES if store.language == "cypher" else SPARQL_WRITES:
                with pytest.raises(ByokgError):
                    store.run(text)
        assert served.content() == before
