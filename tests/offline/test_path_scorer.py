"""Tests of `byokg.offline.path_scorer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.offline.parse import parse_question
from byokg.offline.path_scorer import PLACE, AlignmentSettings, PathScorer, QuestionScorer, Weights
from byokg.offline.schema_linking import RelationSimilarity
from byokg.text.names import locate
from byokg.types import INVERSE
from tests.linking.graphs import EMBEDDER, countries, films, marriages

GRAPHS = {"films": films(), "countries": countries(), "marriages": marriages()}
SCORERS = {name: PathScorer(RelationSimilarity(graph, EMBEDDER), EMBEDDER) for name, graph in GRAPHS.items()}


def steps(graph: ColumnarGraph, *metapaths: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number the steps of metapaths of equal length."""
    return np.array(
        [
            [2 * graph.relations.index(label.removeprefix(INVERSE)) + label.startswith(INVERSE) for label in metapath]
            for metapath in metapaths
        ],
        np.int64,
    )


def weigh(worth: Mapping[str, float], word: str) -> float:
    return worth.get(word, 1.0)


def ask(graph: str, text: str, topic: str) -> QuestionScorer:
    return SCORERS[graph].question(parse_question(text, [locate(topic, text, ())]))


def feature(scorer: QuestionScorer, name: str, metapath: Sequence[str]) -> float:
    """Return one feature of one metapath through the films."""
    at = [field.name for field in fields(Weights)].index(name)
    return float(scorer.extract_features(steps(GRAPHS["films"], metapath)).features[0, at])


def best(graph: str, text: str, topic: str, *metapaths: Sequence[str]) -> tuple[str, ...]:
    """Return the metapath of the highest score; lengths may differ."""
    scorer = ask(graph, text, topic)
    parts = [scorer.extract_features(steps(GRAPHS[graph], metapath)) for metapath in metapaths]
    return tuple(metapaths[int(np.argmax([scores[0] for scores in scorer.scores(parts)]))])


class TestWhatIsPreferred:
    def test_the_hop_whose_relation_is_named(self) -> None:
        steps = [["directed_by"], ["starred_actors"], ["release_year"], ["has_genre"]]
        assert best("films", "who directed Alien", "Alien", *steps) == ("directed_by",)
        assert best("films", "which actors are in Alien", "Alien", *steps) == ("starred_actors",)
        assert best("films", "when was Alien released", "Alien", *steps) == ("release_year",)

    def test_words_near_the_topic_explain_the_first_hop(self) -> None:
        ways = [["^starred_actors", "has_genre"], ["^directed_by", "has_genre"], ["^directed_by", "starred_actors"]]
        asked = "what are the genres of films directed by Ridley Scott"
        assert best("films", asked, "Ridley Scott", *ways) == ("^directed_by", "has_genre")
        asked = "the actors of films directed by Ridley Scott"
        assert best("films", asked, "Ridley Scott", *ways) == ("^directed_by", "starred_actors")

    def test_one_hop_where_one_explains_everything(self) -> None:
        assert best("films", "who directed Alien", "Alien", ["directed_by"], ["directed_by", "^directed_by"]) == (
            "directed_by",
        )

    def test_going_back_twice_is_hardly_ever_meant(self) -> None:
        ways = [["directed_by"], ["directed_by", "^directed_by", "directed_by"]]
        asked = "who is the director of Alien"
        assert best("films", asked, "Alien", *ways) == ("directed_by",)

    def test_the_direction_that_leads_to_what_is_asked_for(self) -> None:
        both = [["capital"], ["^capital"]]
        assert best("countries", "what is the capital of Peru", "Peru", *both) == ("capital",)
        assert best("countries", "which country has the capital Lima", "Lima", *both) == ("^capital",)

    def test_a_year_when_a_time_is_asked_for(self) -> None:
        married = ["people.person.spouse_s", "people.marriage.spouse"]
        wedding = ["people.person.spouse_s", "people.marriage.from"]
        assert best("marriages", "who is the spouse of Ann", "Ann", married, wedding) == tuple(married)
        assert best("marriages", "when did Ann marry", "Ann", married, wedding) == tuple(wedding)


class TestCuts:
    def test_a_hop_straight_back_takes_over_what_explains_the_hop_before(self) -> None:
        # "directors" explains directed_by fully, and four fifths of that go to the way back.
        scorer = ask("films", "directors like Alien", "Alien")
        assert feature(scorer, "weakest", ["directed_by", "^directed_by"]) == pytest.approx(0.8)
        assert feature(scorer, "weakest", ["directed_by", "has_genre"]) < 0.5

    def test_reading_in_another_order_has_its_price(self) -> None:
        # Right to left it is the genre of a director, left to right the director of a genre.
        reading = parse_question("genre Alien directed", [locate("Alien", "genre Alien directed", ())])
        assert len(reading.orders) == 2
        steps_of = SCORERS["films"].steps
        ways = ["has_genre", "directed_by"]
        weakest = [
            feature(PathScorer(steps_of, EMBEDDER, settings=settings).question(asked), "weakest", ways)
            for settings, asked in (
                (AlignmentSettings(reorder=0.0), reading),
                (AlignmentSettings(reorder=9.0), reading),
                (AlignmentSettings(), replace(reading, orders=reading.orders[:1])),
            )
        ]
        assert weakest[0] == pytest.approx(1.0)
        assert weakest[1] == weakest[2] < 0.5


class TestHops:
    def test_two_edges_joined_by_a_nameless_node_make_one_hop(self) -> None:
        graph = GRAPHS["marriages"]
        married, born = ("people.person.spouse_s", "people.marriage.spouse"), "people.person.place_of_birth"
        (a, b, c), (d, e, f) = rows = steps(graph, (*married, born), (born, INVERSE + born, INVERSE + married[1]))
        assert cut("marriages", rows) == [((a, b), (c,)), ((d,), (e,), (f,))]

    def test_the_place_of_the_nameless_node_counts(self) -> None:
        graph, parents = GRAPHS["marriages"], "people.person.parents"
        married = ("people.person.spouse_s", "people.marriage.spouse")
        (a, b, c), _, (d, e, f) = rows = steps(
            graph, (*married, parents), (parents, INVERSE + parents, parents), (parents, *married)
        )
        assert cut("marriages", rows) == [((a, b), (c,)), ((d,), (c ^ 1,), (d,)), ((d,), (e, f))]
        found = ask("marriages", "who are the parents of Ann", "Ann").extract_features(rows)
        assert found.features[:, PLACE["backtracks"]].tolist() == [0, 2, 0]
        assert found.features[:, PLACE["zigzag"]].tolist() == [0, 1, 0]

    def test_hops_are_counted_beyond_those_that_a_question_speaks_of(self) -> None:
        scorer = ask("films", "who directed Alien", "Alien")
        ways = ["directed_by", "^directed_by", "has_genre", "^has_genre"]
        counted = {
            name: [feature(scorer, name, ways[:length]) for length in range(1, 5)]
            for name in ("hop", "third", "extra_hops", "missing_hops")
        }
        assert counted["hop"] == [1, 2, 3, 4]
        assert counted["third"] == [0, 0, 1, 1]
        assert counted["extra_hops"][0] == 0
        assert counted["extra_hops"][3] == counted["extra_hops"][2] + 1 < 4
        assert counted["missing_hops"] == [0, 0, 0, 0]

    def test_a_step_is_named_by_a_content_word_of_the_question(self) -> None:
        scorer = ask("films", "who directed Alien", "Alien")
        one, two = steps(GRAPHS["films"], ["directed_by"], ["has_genre"]).T[0].tolist()
        assert scorer.named(np.array([one, two, one], np.int64)).tolist() == [True, False, True]

    def test_a_mediated_hop_is_explained_as_one(self) -> None:
        scorer = ask("marriages", "who is the spouse of Ann", "Ann")
        mediated = scorer.extract_features(
            steps(GRAPHS["marriages"], ["people.person.spouse_s", "people.marriage.spouse"])
        )
        plain = scorer.extract_features(steps(GRAPHS["marriages"], ["people.person.parents"]))
        assert mediated.features[0, PLACE["unexplained"]] == 0  # and not 1 for either edge
        assert 0 < plain.features[0, PLACE["unexplained"]] <= 1

    def test_without_nameless_nodes_every_edge_is_a_hop(self) -> None:
        rows = steps(GRAPHS["films"], ("directed_by", "^directed_by"))
        assert cut("films", rows) == [((int(rows[0, 0]),), (int(rows[0, 1]),))]


def cut(graph: str, rows: npt.NDArray[np.int64]) -> list[tuple[tuple[int, ...], ...]]:
    hops = SCORERS[graph].hops(rows)
    found = {
        row: tuple(hops.steps[number] for number in numbers)
        for places, group in hops.groups
        for row, numbers in zip(places.tolist(), group.tolist(), strict=True)
    }
    return [found[row] for row in range(len(rows))]


class TestScores:
    def test_they_are_the_weighted_features_of_each_part(self) -> None:
        scorer = ask("films", "who directed films of Ridley Scott", "Ridley Scott")
        parts = [
            scorer.extract_features(steps(GRAPHS["films"], ["^directed_by"], ["^starred_actors"])),
            scorer.extract_features(steps(GRAPHS["films"], ["^directed_by", "directed_by"])),
        ]
        scores = scorer.scores(parts)
        assert [len(part) for part in scores] == [2, 1]
        expected = scorer.features(parts) @ np.array(astuple(Weights()), np.float32)
        np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-5)

    def test_scoring_leaves_the_features_as_they_were(self) -> None:
        scorer = ask("films", "who directed Alien", "Alien")
        part = scorer.extract_features(steps(GRAPHS["films"], ["directed_by"], ["has_genre"]))
        before = part.features.copy()
        assert np.array_equal(scorer.scores([part])[0], scorer.scores([part])[0])
        assert np.array_equal(part.features, before)

    def test_other_weights_make_other_scores(self) -> None:
        none = Weights(**dict.fromkeys((field.name for field in fields(Weights)), 0.0))
        graph = GRAPHS["films"]
        scorer = PathScorer(RelationSimilarity(graph, EMBEDDER), EMBEDDER, weights=none)
        question = scorer.question(parse_question("who directed Alien", []))
        assert question.scores([question.extract_features(steps(graph, ["directed_by"]))])[0].tolist() == [0.0]

    def test_an_important_word_counts_more(self) -> None:
        # A hop explains more of the question where its own word is worth ten times the other.
        graph = GRAPHS["films"]
        both = steps(graph, ["directed_by"], ["has_genre"])
        text = "directed and genre of Alien"
        coverage = []
        for important in ("directed", "genre"):
            scorer = PathScorer(
                RelationSimilarity(graph, EMBEDDER), EMBEDDER, importance=partial(weigh, {important: 10.0})
            )
            question = scorer.question(parse_question(text, [locate("Alien", text, ())]))
            coverage.append(question.features([question.extract_features(both)])[:, 0])
        assert coverage[0][0] > coverage[0][1]
        assert coverage[1][0] < coverage[1][1]


@pytest.mark.parametrize("text", ["", "who is Alien", "Alien", "???", "of the", "alien " * 60, "genre films " * 60])
def test_a_question_of_any_length_and_content_can_be_scored(text: str) -> None:
    scorer = ask("films", text, "Alien")
    scores = scorer.scores(
        [
            scorer.extract_features(steps(GRAPHS["films"], ["directed_by"], ["has_genre"])),
            scorer.extract_features(steps(GRAPHS["films"], ["directed_by", "^directed_by", "has_genre"])),
        ]
    )
    assert [part.shape for part in scores] == [(2,), (1,)]
    assert all(np.isfinite(part).all() for part in scores)


WORDS = st.lists(
    st.sampled_from("who what which when films directed director Alien genre year starred of the by whose".split())
    | st.text(max_size=6),
    max_size=10,
).map(" ".join)
METAPATHS = st.integers(1, 3).flatmap(
    lambda hops: st.lists(st.lists(st.integers(0, 7), min_size=hops, max_size=hops), min_size=2, max_size=8)
)


@given(WORDS, METAPATHS)
def test_a_metapath_is_scored_for_itself_whatever_stands_beside_it(text: str, rows: list[list[int]]) -> None:
    scorer = ask("films", text, "Alien")
    paths = np.array(rows, np.int64)
    together = scorer.extract_features(paths)
    backwards = scorer.extract_features(paths[::-1])
    assert np.isfinite(together.features).all()
    np.testing.assert_allclose(backwards.features[::-1], together.features, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(backwards.best, together.best, rtol=1e-5, atol=1e-5)
    doubled = scorer.extract_features(np.concatenate((paths, paths)))
    np.testing.assert_allclose(doubled.features, np.concatenate((together.features,) * 2), rtol=1e-5, atol=1e-5)
