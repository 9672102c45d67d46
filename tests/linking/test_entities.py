"""Tests of `byokg.linking.entities`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph import name_index
from byokg.graph.columnar import ColumnarGraph
from byokg.linking.entities import EntityLinker
from byokg.types import Artifacts, EntityId, LinkedEntity, Mention, Node
from tests.linking.graphs import films

#   n1 "Turkey" (a bird)   n2 "turkey"   n3 "Turkey" (a country)   n4 "Türkei"
NAMESAKES = [("n1", "Turkey"), ("n2", "turkey"), ("n3", "Turkey"), ("n4", "Türkei")]


@pytest.fixture
def linker() -> EntityLinker:
    return EntityLinker(films())


@pytest.fixture
def namesakes() -> ColumnarGraph:
    return ColumnarGraph.from_records([Node(EntityId(id), name) for id, name in NAMESAKES], [])


class CountingGraph(ColumnarGraph):
    """Counts how often all entities are listed."""

    listed = 0

    def entities(self) -> Iterator[EntityId]:
        self.listed += 1
        return super().entities()

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        assert len(ids) <= 5, "names are read a few at a time"
        return super().nodes(ids)


def found(linker: EntityLinker, text: str) -> list[tuple[str, str, float]]:
    return [(one.id, one.method, one.score) for one in linker.candidates(Mention(text))]


class TestCandidates:
    def test_a_name_is_found_whatever_its_case(self, linker: EntityLinker) -> None:
        mention = Mention("ALIEN", 3, 8)
        assert linker.candidates(mention) == (LinkedEntity(EntityId("Alien"), "Alien", mention, "exact", 1.0),)

    def test_a_misspelt_name_is_found_by_resemblance(self, linker: EntityLinker) -> None:
        ((entity, method, score),) = found(linker, "Ridly Scot")
        # "ridly scot" and "ridley scott": 10 letters in common of 22.
        assert (entity, method) == ("Ridley Scott", "fuzzy")
        assert score == pytest.approx(20 / 22)

    def test_given_ids_are_taken_without_searching(self, linker: EntityLinker) -> None:
        mention = Mention("whatever", ids=(EntityId("Titanic"), EntityId("Aliens")))
        assert [(one.id, one.name, one.method, one.score) for one in linker.candidates(mention)] == [
            ("Titanic", "Titanic", "given", 1.0),
            ("Aliens", "Aliens", "given", 1.0),
        ]

    def test_a_given_id_that_is_unknown_raises(self, linker: EntityLinker) -> None:
        with pytest.raises(EntityNotFound, match="'Predator'"):
            linker.candidates(Mention("Alien", ids=(EntityId("Predator"),)))

    @pytest.mark.parametrize("text", ["", "?!", "zzzzzz"])
    def test_what_resembles_nothing_has_no_candidates(self, linker: EntityLinker, text: str) -> None:
        assert linker.candidates(Mention(text)) == ()

    def test_ids_come_back_where_names_differ_from_them(self, namesakes: ColumnarGraph) -> None:
        assert found(EntityLinker(namesakes), "Türkei") == [("n4", "exact", 1.0)]

    def test_of_namesakes_those_written_alike_come_first(self, namesakes: ColumnarGraph) -> None:
        linker = EntityLinker(namesakes)
        assert [id for id, *_ in found(linker, "turkey")] == ["n2", "n1", "n3"]
        assert [id for id, *_ in found(linker, "Turkey")] == ["n1", "n3", "n2"]

    def test_no_more_than_top_k_are_given(self, namesakes: ColumnarGraph) -> None:
        assert [id for id, *_ in found(EntityLinker(namesakes, top_k=1), "turkey")] == ["n2"]
        assert [id for id, *_ in found(EntityLinker(namesakes, top_k=2), "turkeys")] == ["n1", "n2"]

    def test_the_cutoff_decides_what_resembles(self) -> None:
        assert found(EntityLinker(films(), cutoff=0.95), "Ridly Scot") == []


class TestLink:
    def test_mentions_and_drafts_stay_apart(self, linker: EntityLinker) -> None:
        linked = linker.link(Artifacts(mentions=(Mention("Alien"), Mention("Drama")), draft_answers=("Titanic",)))
        assert [(one.id, one.mention.text) for one in linked.entities] == [("Alien", "Alien"), ("Drama", "Drama")]
        assert [one.id for one in linked.drafts] == ["Titanic"]

    def test_nothing_is_linked_from_nothing(self, linker: EntityLinker) -> None:
        assert linker.link(Artifacts()).entities == linker.link(Artifacts()).drafts == ()


def test_names_are_read_once_and_a_few_at_a_time_by_however_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "_NODES_AT_ONCE", 5)
    graph = CountingGraph.from_triples([(f"a{i}", "r", f"b{i}") for i in range(500)])
    assert isinstance(graph, CountingGraph)
    linker = EntityLinker(graph)
    barrier = Barrier(8)

    def look_up(number: int) -> list[tuple[str, str, float]]:
        barrier.wait()
        return found(linker, f"B{number}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(look_up, range(8))) == [[(f"b{number}", "exact", 1.0)] for number in range(8)]
    assert graph.listed == 1


@pytest.mark.parametrize(("setting", "value"), [("top_k", 0), ("cutoff", 1.5), ("cutoff", -0.1)])
def test_settings_out_of_range_are_named(setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{setting}={value}"):
        EntityLinker(films(), **{setting: value})  # type: ignore[arg-type]
