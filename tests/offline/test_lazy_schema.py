"""What the offline pipeline asks of a graph on a server, of which it learns by need."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from byokg.evaluation.datasets.folder import atlas
from byokg.graph.importers.choose import import_graph
from byokg.graph.name_indexes import keep_names
from byokg.graph.rdf.files import graph_quads
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Answer, Mention, Question
from tests.graph.slow_line import SlowLine, slow_line
from tests.graph.sparql_server import Endpoint, serving

pyoxigraph = pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")

_ONCE = 3
"""What names nodes, what the question starts from, and what is said of the edges that an answer shows."""
_EACH_HOP = 2
"""Edges, and what they lead to."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    triples = pyoxigraph.Store()
    triples.bulk_extend(graph_quads(import_graph(atlas().graph_source())))
    with serving(triples) as served:
        served.called = "Oxigraph/0.5"
        yield served


ONE_HOP = ("capital-whose-8a66fe-1", "count-river-countries-db4b8e-2", "currency-users-b71929-1")
TWO_HOPS = ("leader-rivers-b23fa7-1", "mountain-capital-8d4225-1", "lake-languages-febf38-1")
"""Questions of the atlas about one node, which ask for a path and nothing else."""


def asked(*names: str) -> list[Question]:
    """Return questions of the atlas with their topics given, and how many edges away their answers are."""
    by_id = {example.id: example for example in atlas().examples()}
    chosen = [by_id[name] for name in names]
    return [Question(example.id, example.question, example.topic_ids, example.hops) for example in chosen]


def answered(endpoint: Endpoint, questions: Sequence[Question]) -> list[Answer]:
    """Answer questions one after the other, over one store."""
    with SparqlEndpoint(endpoint.url) as store:
        pipeline = offline_pipeline(Parts(store))
        return [pipeline.run(question) for question in questions]


def test_a_question_that_names_its_node_needs_no_list_of_relations(endpoint: Endpoint) -> None:
    with SparqlEndpoint(endpoint.url) as store:
        assert offline_pipeline(Parts(store)).run(asked(*ONE_HOP)[0]).items
        met = list(store.met_relations)
        assert 0 < len(met) < len(store.relations)
        assert list(store.relations)[: len(met)] == met


def test_every_node_is_described_once(endpoint: Endpoint) -> None:
    before = len(endpoint.requests)
    answered(endpoint, asked(TWO_HOPS[0]))
    described = [each.query for each in endpoint.requests[before:] if each.query.startswith("SELECT ?n ?k ?v")]
    nodes = Counter(iri for query in described for iri in re.findall(r"<([^>]+)>", query.partition("}")[0]))
    assert max(nodes.values()) == 1


def test_what_was_asked_before_changes_no_answer(endpoint: Endpoint) -> None:
    first, *others = asked(*TWO_HOPS, *ONE_HOP)
    alone, (*_, after) = answered(endpoint, [first])[0], answered(endpoint, [*others, first])
    assert alone.items == after.items
    assert [one.artifacts for one in alone.rounds] == [one.artifacts for one in after.rounds]


def test_another_name_of_a_place_is_asked_for_in_one_request_with_the_mention(endpoint: Endpoint) -> None:
    with SparqlEndpoint(endpoint.url) as store:
        linker = EntityLinker(store)
        linker.candidates(Mention("Russia"))

        def count() -> int:  # others are of stores that are still ending
            return sum('"Russia"' in one.query for one in endpoint.requests)

        before = count()
        assert [one.name for one in linker.candidates(Mention("Russia"))] == ["Russia"]
        alone = count() - before
        assert [one.name for one in linker.candidates(Mention("the russians"))] == ["Russia"]
        assert count() - before - alone == alone


def test_names_that_were_read_tell_without_a_request_whether_a_text_is_one(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with SparqlEndpoint(endpoint.url) as store:
        names = keep_names(store)
        before = len(endpoint.requests)
        assert names.knows("germany") and not names.writes("germany") and names.writes("Germany")
        assert not names.knows("Atlantis")
        assert len(endpoint.requests) == before
        germany, nobody = names.bearing(["germany", "Atlantis"])
        assert len(germany) == 1 and not len(nobody)
        (same,) = names.holding(["germany"], 1)[0]
        assert germany.tolist() == [same.owner]
        assert store.nodes(store.ids(germany))[0].name == "Germany"
        assert len(endpoint.requests) == before + 2  # its number, and its name


@pytest.fixture
def line(endpoint: Endpoint) -> Iterator[SlowLine]:
    with slow_line(endpoint.url, delay_s=0.01) as slow:
        yield slow


@pytest.mark.parametrize(("hops", "names"), [(1, ONE_HOP), (2, TWO_HOPS)])
def test_over_a_slow_line_each_hop_takes_its_edges_and_their_ends(
    line: SlowLine, hops: int, names: Sequence[str]
) -> None:
    for question in asked(*names):
        before = line.round_trips
        with SparqlEndpoint(line.address) as store:
            assert offline_pipeline(Parts(store)).run(question).items
        assert line.round_trips - before <= _ONCE + _EACH_HOP * hops + (hops > 1)  # a path further down meets others
