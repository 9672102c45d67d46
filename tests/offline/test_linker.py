"""Tests of `byokg.linking.llm_linker`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import follow
from byokg.linking.entities import EntityLinker
from byokg.offline.linker import GrowthLimits, OfflineLinker
from byokg.offline.mentions import MentionSpotter
from byokg.offline.path_scorer import UNIT, PathScorer, Weights
from byokg.offline.schema_linking import RelationSimilarity, SampledStatistics, SchemaStatistics
from byokg.types import Artifacts, Context, EntityId, Linked, Mention, Question
from tests.linking.graphs import EMBEDDER, countries, films, marriages


def linker(graph: ColumnarGraph, walked: bool = False, **settings: Any) -> OfflineLinker:
    entities = EntityLinker(graph)
    statistics = SchemaStatistics(graph) if walked else SampledStatistics(graph)
    steps = RelationSimilarity(graph, EMBEDDER, statistics=statistics)
    spotter = MentionSpotter(
        entities, lambda word: 1.0, lambda word: float(steps.label_similarity(word).max(initial=0.0))
    )
    return OfflineLinker(graph, entities, spotter, PathScorer(steps, EMBEDDER), GrowthLimits(**settings))


def propose(linker: OfflineLinker, text: str, *topics: str, hops: int | None = None) -> Artifacts:
    return linker.propose(Question("q", text, tuple(map(EntityId, topics)), hops), Context())


@pytest.fixture(scope="module")
def film_linker() -> OfflineLinker:
    return linker(films())


class TestWhatIsProposed:
    def test_the_best_metapath_comes_first_with_its_start(self, film_linker: OfflineLinker) -> None:
        first = propose(film_linker, "who directed Alien").paths[0]
        assert (first.relations, first.source) == (("directed_by",), "Alien")

    def test_relations_may_be_learnt_while_they_are_walked(self, film_linker: OfflineLinker) -> None:
        walked = linker(films(), walked=True)
        for text in ("who directed Alien", "when did the films directed by Ridley Scott come out"):
            assert propose(walked, text).paths[0].relations == propose(film_linker, text).paths[0].relations
            assert propose(walked, text) == propose(linker(films(), walked=True), text)

    def test_mentions_are_given_where_they_stand(self, film_linker: OfflineLinker) -> None:
        assert propose(film_linker, "who directed Alien").mentions == (Mention("Alien", 13, 18),)
        given = propose(film_linker, "who directed alien", "Alien")
        assert given.mentions == (Mention("alien", 13, 18, (EntityId("Alien"),)),)

    def test_every_metapath_exists_and_never_comes_back_to_a_topic(self, film_linker: OfflineLinker) -> None:
        graph = films()
        topics = [EntityId("Ridley Scott"), EntityId("Drama")]
        paths = propose(film_linker, "which actors are in drama films by Ridley Scott", *topics).paths
        assert len({(path.source, path.relations) for path in paths}) == len(paths)
        for path in paths:
            assert path.source in topics
            assert len(follow(graph, [path.source], path.relations, avoid=topics).ends)

    def test_a_metapath_that_leads_to_another_topic_only_is_left_out(self, film_linker: OfflineLinker) -> None:
        text = "did Ridley Scott direct Alien"
        alone = [path.relations for path in propose(film_linker, text, "Alien").paths]
        beside = propose(film_linker, text, "Alien", "Ridley Scott").paths
        assert ("directed_by",) in alone
        assert ("directed_by",) not in [path.relations for path in beside if path.source == "Alien"]

    def test_metapaths_come_in_order_of_score_and_few_for_each_topic(self) -> None:
        proposed = propose(linker(films(), top_k=2), "films of Ridley Scott and Sigourney Weaver")
        paths, joined = proposed.paths, proposed.joined
        assert [path.score for path in paths] == sorted((path.score for path in paths), reverse=True)
        assert {path.source for path in paths} == {"Ridley Scott", "Sigourney Weaver"}
        assert 1 <= len(joined) <= 2
        assert joined[0].score == max(two.score for two in joined)
        for source in ("Ridley Scott", "Sigourney Weaver"):
            of_pairs = {path for two in joined for path in two.paths if path.source == source}
            assert 2 <= len([path for path in paths if path.source == source]) <= 2 + len(of_pairs)
        assert all(set(two.paths) <= set(paths) for two in joined)
        assert [two.relations for two in joined[0].paths] == [("^directed_by",), ("^starred_actors",)]

    def test_a_narrow_beam_still_finds_a_way(self) -> None:
        narrow = linker(films(), beam=1, sample=1, top_k=1)
        assert [path.relations for path in propose(narrow, "who directed Alien").paths] == [("directed_by",)]

    def test_without_a_topic_nothing_is_proposed(self, film_linker: OfflineLinker) -> None:
        assert propose(film_linker, "who is it") == Artifacts()

    def test_a_topic_without_edges_has_no_metapaths(self) -> None:
        lonely = linker(ColumnarGraph.from_triples([("a", "r", "a")]))
        assert propose(lonely, "what is r", "a").paths == ()

    def test_one_round_is_all_it_has_to_say(self, film_linker: OfflineLinker) -> None:
        context = Context().add(Artifacts(), Linked(), [])
        assert film_linker.propose(Question("q", "who directed Alien"), context) == Artifacts(finished=True)


class TestHops:
    @pytest.mark.parametrize("hops", [1, 2, 3])
    def test_a_given_number_is_kept_to(self, film_linker: OfflineLinker, hops: int) -> None:
        paths = propose(film_linker, "who directed Alien", "Alien", hops=hops).paths
        assert paths and {len(path.relations) for path in paths} == {hops}

    def test_otherwise_all_lengths_up_to_max_hops_compete(self) -> None:
        for most in (1, 2, 3):
            some = linker(films(), max_hops=most, top_k=100)
            grown = some.score_candidates(Question("q", "who directed Alien")).growths
            assert {growth.steps.shape[1] for growth in grown} == set(range(1, most + 1))

    def test_those_far_below_the_best_are_not_proposed(self, film_linker: OfflineLinker) -> None:
        scores = [path.score for path in propose(film_linker, "who directed Alien", "Alien").paths]
        assert min(scores) >= max(scores) - 7.5 * UNIT

    def test_a_number_out_of_range_names_the_question(self, film_linker: OfflineLinker) -> None:
        for hops in (0, 4, -1):
            with pytest.raises(ConfigError, match=f"question 'q' asks for {hops} hops"):
                propose(film_linker, "who directed Alien", hops=hops)


class TestTopics:
    def test_given_topics_that_are_unknown_are_dropped_when_one_is_known(self, film_linker: OfflineLinker) -> None:
        artifacts = propose(film_linker, "who directed Alien", "Predator", "Alien")
        assert artifacts == propose(film_linker, "who directed Alien", "Alien")

    def test_given_topics_that_are_all_unknown_raise_the_first(self, film_linker: OfflineLinker) -> None:
        with pytest.raises(EntityNotFound, match="'Predator'"):
            propose(film_linker, "who directed Alien", "Predator", "E.T.")

    def test_a_topic_given_twice_counts_once(self, film_linker: OfflineLinker) -> None:
        twice = propose(film_linker, "who directed Alien", "Alien", "Alien")
        assert twice == propose(film_linker, "who directed Alien", "Alien")

    def test_a_topic_mentioned_twice_is_walked_from_once(self, film_linker: OfflineLinker) -> None:
        artifacts = propose(film_linker, "who directed Alien and who starred in Alien")
        assert [mention.start for mention in artifacts.mentions] == [13, 38]
        starts = [(path.source, path.relations) for path in artifacts.paths]
        assert len(set(starts)) == len(starts)

    def test_a_given_topic_whose_name_is_not_in_the_text_is_used_all_the_same(self) -> None:
        artifacts = propose(linker(countries()), "what is the capital", "pe")
        assert artifacts.mentions == (Mention("Peru", ids=(EntityId("pe"),)),)
        assert artifacts.paths[0].relations == ("capital",)


class TestNamelessNodes:
    def test_metapaths_do_not_end_there_and_go_on_through_them(self) -> None:
        paths = propose(linker(marriages(), beam=1), "who is the spouse of Ann", "Ann").paths
        assert paths[0].relations == ("people.person.spouse_s", "people.marriage.spouse")
        assert ("people.person.spouse_s",) not in [path.relations for path in paths]

    def test_a_narrow_beam_does_not_stop_at_them(self) -> None:
        # Of three steps out of Ann the question names two, which leaves a beam of one no room for the third.
        graph = marriages()
        question = Question("q", "parents and place of birth of Ann")
        growths = linker(graph, beam=1, max_hops=2).score_candidates(question).growths
        married = 2 * graph.relations.index("people.person.spouse_s")
        assert married in growths[1].steps[:, 0]


class TestConsidered:
    def test_it_lists_metapaths_with_features_and_whether_their_ends_have_names(self) -> None:
        found = linker(marriages()).score_candidates(Question("q", "who is the spouse of Ann"))
        count = sum(map(len, found.growths))
        assert found.features.shape == (count, len(fields(Weights)))
        assert found.named.shape == (count,)
        # Ann -> m.0m1, Lima, Eva: one of three ends has no name.
        assert found.named[: len(found.growths[0])].tolist().count(False) == 1

    def test_it_is_empty_without_a_topic(self, film_linker: OfflineLinker) -> None:
        found = film_linker.score_candidates(Question("q", "who is it"))
        assert (found.growths, found.features.shape, len(found.named)) == ([], (0, len(fields(Weights))), 0)

    def test_a_node_to_start_from_may_stand_in_for_the_topic(self, film_linker: OfflineLinker) -> None:
        start = int(films().numbers([EntityId("Alien")])[0])
        own = film_linker.score_candidates(Question("q", "who directed Alien", (EntityId("Alien"),)))
        other = film_linker.score_candidates(Question("q", "who directed Jaws"), (Mention("Jaws", 13, 17), start))
        assert other.features.tolist() == own.features.tolist()


@pytest.mark.parametrize(
    ("setting", "value"), [("max_hops", 0), ("max_hops", 4), ("beam", 0), ("sample", 0), ("top_k", 0)]
)
def test_settings_out_of_range_are_named(setting: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{setting}={value}"):
        linker(films(), False, **{setting: value})
