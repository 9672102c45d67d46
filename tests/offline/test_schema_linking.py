"""Tests of `byokg.offline.schema_linking`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import grow, start
from byokg.offline.parse import Role
from byokg.offline.schema_linking import RelationSimilarity, SchemaStatistics
from byokg.types import INVERSE
from tests.linking.graphs import EMBEDDER, countries, films, marriages

FILM_STEPS = RelationSimilarity(films(), EMBEDDER)


class Labelled:
    """Steps whose values are asked for by label, `^` against the arrow."""

    def __init__(self, graph: ColumnarGraph) -> None:
        self.steps = RelationSimilarity(graph, EMBEDDER)
        self._place = {
            label: 2 * number + inverse
            for number, relation in enumerate(graph.relations)
            for inverse, label in enumerate((relation, INVERSE + relation))
        }

    def of(self, values: npt.NDArray[np.float32], *labels: str) -> list[float]:
        return [float(values[self._place[label]]) for label in labels]


def one_relation(label: str) -> RelationSimilarity:
    return RelationSimilarity(ColumnarGraph.from_triples([("Ann", label, "Lima"), ("Bob", label, "Cusco")]), EMBEDDER)


def test_steps_of_a_relation_that_was_not_told_of_are_learnt_when_it_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = countries()
    all_labels = graph.relations
    with monkeypatch.context() as fewer:
        fewer.setattr(ColumnarGraph, "relations", all_labels[:1])
        steps = RelationSimilarity(graph, EMBEDDER, statistics=SchemaStatistics(graph))
    assert steps.count == 2
    growth = grow(graph, start(0), np.zeros(1, np.int64), np.empty(0, np.int64), 10)
    assert growth.steps.max() >= 2
    told = RelationSimilarity(graph, EMBEDDER, statistics=SchemaStatistics(graph)).observe(growth)
    assert steps.observe(growth).count == 2 * len(all_labels)
    assert np.array_equal(steps.observe(growth).name_vectors, told.name_vectors)


class TestRelation:
    def test_a_word_of_the_label_explains_both_ways_of_walking_it_fully(self) -> None:
        graph = Labelled(countries())
        assert graph.of(graph.steps.label_similarity("capital"), "capital", "^capital", "borders") == [1.0, 1.0, 0.0]

    def test_a_word_of_the_same_stem_explains_more_than_another(self) -> None:
        graph = Labelled(films())
        directed, starred = graph.of(graph.steps.label_similarity("director"), "directed_by", "starred_actors")
        assert directed > 0.5 > starred

    def test_a_word_of_the_namespace_counts_less_than_one_of_the_relation_itself(self) -> None:
        graph = Labelled(marriages())
        own, namespace = graph.of(
            graph.steps.label_similarity("marriage"), "people.marriage.spouse", "people.marriage.from"
        )
        assert 0 < namespace < 1
        assert graph.of(graph.steps.label_similarity("spouse"), "people.marriage.spouse") == [1.0]
        assert own > namespace  # a synonym

    @pytest.mark.parametrize(
        ("word", "label"), [("wife", "spouse"), ("kids", "children"), ("sex", "gender"), ("jobs", "profession")]
    )
    def test_a_synonym_is_nearly_the_word_itself(self, word: str, label: str) -> None:
        assert one_relation(label).label_similarity(word).min() > 0.6
        assert one_relation(label).label_similarity("treaty").max() < 0.3

    @pytest.mark.parametrize(
        "label",
        ["birthPlace", "place_of_birth", "PLACE-OF-BIRTH", "http://example.org/ontology/birthPlace", "ns:person.birth"],
    )
    def test_labels_are_read_in_any_spelling(self, label: str) -> None:
        assert one_relation(label).label_similarity("birth").tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("label", ["???", "of", "東京", "_", "^up"])
    def test_any_label_can_be_read(self, label: str) -> None:
        assert one_relation(label).label_similarity("birth").shape == (2,)


class TestEnds:
    def test_the_type_of_the_nodes_reached_is_a_kind(self) -> None:
        graph = Labelled(countries())
        assert graph.of(graph.steps.type_similarity("city"), "capital") == [1.0]
        assert graph.of(graph.steps.type_similarity("countries"), "^capital", "borders", "^borders") == [1.0, 1.0, 1.0]
        assert max(graph.of(graph.steps.type_similarity("city"), "^capital", "borders", "official_language")) < 0.2

    def test_a_relation_names_its_tail_and_not_its_head(self) -> None:
        # "which capital" asks for what `capital` leads to; `^capital` leads to countries.
        graph = Labelled(countries())
        assert graph.of(graph.steps.range_similarity("capital"), "capital") == [1.0]
        assert max(graph.of(graph.steps.range_similarity("capital"), "^capital", "borders")) < 0.2
        assert graph.of(graph.steps.range_similarity("country"), "^capital") == [1.0]

    def test_a_namespace_names_its_head(self) -> None:
        graph = Labelled(marriages())
        tail, head = graph.of(graph.steps.range_similarity("marriage"), "people.marriage.from", "^people.marriage.from")
        assert head > tail

    def test_names_at_the_ends_tell_what_a_step_leads_to(self) -> None:
        graph = Labelled(films())
        year, director = graph.of(graph.steps.instance_similarity("year"), "release_year", "directed_by")
        assert year > 0.5 > director

    def test_resembling_the_names_at_the_ends_counts_a_little_more_than_half(self) -> None:
        # Genres have no type here, and no relations. Of 0.57 · cosine, what exceeds 0.3 is stretched to [0, 1].
        graph = Labelled(films())
        (cosine,) = graph.of(graph.steps.instance_similarity("horror"), "has_genre")
        assert graph.of(graph.steps.type_similarity("horror"), "has_genre") == pytest.approx(
            [(0.57 * cosine - 0.3) / 0.7]
        )
        assert cosine > 0.6

    def test_a_kind_that_is_found_nearly_everywhere_says_nothing(self) -> None:
        # A third of the films, directors and actors are topics as well: among the ends of six steps of eight.
        pairs = [(f"film {at}", f"director {at}", f"actor {at}") for at in range(6)]
        triples = [(film, "film.film.director", director) for film, director, _ in pairs]
        triples += [(film, "film.film.actor", actor) for film, _, actor in pairs]
        triples += [(director, "people.person.birth", f"city {at}") for at, (_, director, _) in enumerate(pairs)]
        triples += [(node, "common.topic.alias", f"alias of {node}") for some in pairs[:2] for node in some]
        graph = Labelled(ColumnarGraph.from_triples(triples))
        assert graph.of(graph.steps.type_similarity("topic"), "film.film.director", "film.film.actor") == [0.0, 0.0]

    def test_steps_to_nodes_without_a_name_are_known(self) -> None:
        graph = Labelled(marriages())
        nameless = ("people.person.spouse_s", "^people.marriage.spouse", "^people.marriage.from")
        named = ("^people.person.spouse_s", "people.marriage.spouse", "people.person.parents")
        assert graph.of(graph.steps.nameless, *nameless, *named) == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]

    def test_steps_to_years_and_dates_are_known(self) -> None:
        graph = Labelled(
            ColumnarGraph.from_triples(
                [("a", "born", "1999-05-31"), ("b", "born", "-0044"), ("a", "age", "44"), ("a", "code", "19999")]
            )
        )
        assert graph.of(graph.steps.years, "born", "^born", "age", "code") == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("graph", [films, countries, marriages])
@given(word=st.text(max_size=12))
def test_values_are_bounded_for_any_word(graph: Callable[[], ColumnarGraph], word: str) -> None:
    steps = {films: FILM_STEPS}.get(graph) or STEPS.setdefault(graph, RelationSimilarity(graph(), EMBEDDER))
    for values in (steps.label_similarity(word), steps.type_similarity(word), steps.range_similarity(word)):
        assert values.shape == (steps.count,)
        assert ((values >= 0) & (values <= 1)).all()
    assert (np.abs(steps.instance_similarity(word)) <= 1 + 1e-5).all()


STEPS: dict[Callable[[], ColumnarGraph], RelationSimilarity] = {}


def test_a_graph_without_relations_has_no_steps() -> None:
    steps = RelationSimilarity(ColumnarGraph.from_triples([]), EMBEDDER)
    assert steps.count == 0
    assert len(steps.label_similarity("film")) == len(steps.nameless) == 0


def test_two_instances_and_many_threads_say_the_same() -> None:
    words = ["film", "director", "year", "who", "horror", "1979", "zzz"] * 20
    alone = [FILM_STEPS.type_similarity(word) for word in words]
    other = RelationSimilarity(films(), EMBEDDER)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(other.type_similarity, words))
    assert all(np.array_equal(one, two) for one, two in zip(alone, together, strict=True))


@pytest.mark.parametrize("make", [films, countries, marriages])
def test_lazy_statistics_cover_the_walked_steps(make: Callable[[], ColumnarGraph]) -> None:
    graph = make()
    sampled, unread = (
        RelationSimilarity(graph, EMBEDDER),
        RelationSimilarity(graph, EMBEDDER, statistics=SchemaStatistics(graph)),
    )
    assert not unread.name_vectors.any() and np.array_equal(
        unread.relations.text_vectors, sampled.relations.text_vectors
    )
    from_all = [grow(graph, start(node), [0], np.empty(0, np.int64), 9) for node in range(graph.node_count)]
    first = unread.observe(from_all[0])
    walked = np.unique(from_all[0].steps)
    others = np.setdiff1d(np.arange(unread.count), walked)
    assert first.name_vectors[walked].any(axis=1).sum() + (first.nameless[walked] == 1).sum() >= len(walked)
    assert not first.name_vectors[others].any() and not unread.name_vectors.any()
    assert first.observe(from_all[0]) is first
    assert np.array_equal(first.nameless[walked] > 0.5, sampled.nameless[walked] > 0.5)
    assert np.array_equal(first.label_similarity("city"), sampled.label_similarity("city"))
    known = first.observe(from_all[-1])
    assert np.array_equal(known.name_vectors[walked], first.name_vectors[walked])


def test_a_relation_is_called_by_its_words_by_those_for_the_same_and_by_those_for_its_other_end() -> None:
    steps = one_relation("parents")
    assert [steps.has_relation(word) for word in ("parent", "father", "child", "grandparent", "film")] == [
        *(True, True, True, False, False)
    ]


class TestAgainst:
    # Ann -label-> Bob -label-> Cid -label-> Dea, and who a label leads to is the one further up
    @pytest.mark.parametrize(
        ("label", "word", "tie", "against"),
        [
            ("reportsTo", "boss", Role("noun", outward=True), "^"),
            ("reportsTo", "boss", Role("noun", outward=False), ""),
            ("reportsTo", "reporting", Role("oblique", outward=False), ""),
            ("reportsTo", "report", Role("oblique", outward=True), "^"),
            ("managed_by", "managed", Role("passive", outward=False), ""),
            ("managed_by", "manages", Role("active", outward=False), "^"),
            ("manager", "manages", Role("active", outward=False), "^"),
            ("manages", "manages", Role("active", outward=False), ""),
            ("manages", "managed", Role("passive", outward=False), "^"),
            ("manages", "manager", Role("noun", outward=True), ""),
            ("manager_of", "manager", Role("noun", outward=True), ""),
        ],
    )
    def test_a_word_points_one_way_along_a_relation_that_goes_on(
        self, label: str, word: str, tie: Role, against: str
    ) -> None:
        chain = ColumnarGraph.from_triples([("Ann", label, "Bob"), ("Bob", label, "Cid"), ("Cid", label, "Dea")])
        assert RelationSimilarity(chain, EMBEDDER).direction_mismatch(word, tie).tolist() == [
            against == "",
            against == "^",
        ]

    def test_a_relation_between_different_things_has_no_other_way(self) -> None:
        assert not FILM_STEPS.direction_mismatch("directed", Role("passive", outward=False)).any()

    def test_a_word_that_ties_nothing_points_nowhere(self) -> None:
        chain = ColumnarGraph.from_triples([("Ann", "boss", "Bob"), ("Bob", "boss", "Cid")])
        assert not RelationSimilarity(chain, EMBEDDER).direction_mismatch("boss", Role()).any()


def test_what_one_relation_calls_its_end_it_is_wherever_else_it_is_met() -> None:
    # Sea -performer-> Ann -hometown-> Lima; a town leads back to performers, which only `performer` says.
    graph = Labelled(
        ColumnarGraph.from_triples(
            [("Sea", "performer", "Ann"), ("Sky", "performer", "Bob"), ("Ann", "hometown", "Lima"),
             ("Bob", "hometown", "Cusco"), ("Sea", "genre", "Waltz"), ("Sky", "genre", "Polka")]
        )
    )  # fmt: skip
    performers, songs, towns = graph.of(graph.steps.type_similarity("performers"), "^hometown", "^genre", "hometown")
    assert performers > max(songs, towns)
