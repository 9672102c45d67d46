"""Tests of `byokg.offline.training.ranker` and of `byokg.offline.path_ranker`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Example
from byokg.files import list_files
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import StaticEmbedder
from byokg.linking.parts import Parts
from byokg.offline.linker import OfflineLinker
from byokg.offline.parse import parse_question
from byokg.offline.path_ranker import PathRanker, ngrams, product
from byokg.offline.path_scorer import Weights
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.schema_linking import RelationSimilarity, SchemaStatistics
from byokg.offline.training.ranker import (
    Chain,
    FitSettings,
    RankingExample,
    answer_cases,
    chain_cases,
    fit_ranker,
    read_chains,
    read_inverses,
    write_ranker,
)
from byokg.types import EntityId, Mention, Node, Question, Triple
from tests.linking.graphs import EMBEDDER, films, marriages

# «who blorked X» asks for the director and «who zapped X» for the actors: words that no embedder knows.
MADE_UP = {"blorked": "directed_by", "zapped": "starred_actors"}
FILMS = ("Alien", "Blade Runner", "Aliens", "Titanic")


def examples(graph: ColumnarGraph, titles: tuple[str, ...] = FILMS) -> Iterator[Example]:
    for title in titles:
        for word, relation in MADE_UP.items():
            batch = graph.edges(graph.numbers([EntityId(title)]))
            names = [graph.relations[number] for number in batch.relation]
            answers = tuple(graph.ids(batch.other[[name == relation for name in names]]))
            yield Example(
                f"{word} {title}", f"who {word} {title}", answers, answers, (title,), topic_ids=(EntityId(title),)
            )


def gold(example: Example) -> tuple[EntityId, ...]:
    return example.answer_ids


def linker_of(graph: ColumnarGraph) -> OfflineLinker:
    linker = offline_pipeline(Parts(graph)).stages[0].linker
    assert isinstance(linker, OfflineLinker)
    return linker


def train(out: Path, titles: tuple[str, ...] = FILMS, **settings: float) -> Path:
    graph = films()
    linker = linker_of(graph)
    fit = FitSettings(**{"epochs": 30, "held_out": 0.0, **settings})  # type: ignore[arg-type]
    cases = answer_cases(linker, graph, examples(graph, titles), gold)
    write_ranker(out, fit_ranker(cases, graph, linker.scorer.steps, EMBEDDER, fit), EMBEDDER, fit, "films", Weights())
    return out


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("ranker") / "films", FILMS[:3])


class TestTraining:
    def test_words_that_mean_nothing_are_learnt_and_hold_for_other_topics(self, ranker: Path) -> None:
        trained = offline_pipeline(Parts(films()), weights=ranker)
        answers = [
            [item.name for item in trained.run(Question("q", f"who {word} Titanic", (EntityId("Titanic"),))).items]
            for word in MADE_UP
        ]
        assert answers == [["James Cameron"], ["Kate Winslet"]]

    def test_the_same_seed_makes_the_same_bytes_on_every_cpu(self, ranker: Path, tmp_path: Path) -> None:
        program = (
            "from pathlib import Path; from tests.offline.training.test_ranker import FILMS, train; "
            f"train(Path({str(tmp_path / 'other')!r}), FILMS[:3])"
        )
        # Kernels of the oldest machines, and none that numpy chooses by what the CPU can do.
        plain = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX AVX2 FMA3"}
        environment = {**os.environ, **plain, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
        subprocess.run([sys.executable, "-c", program], check=True, env=environment, capture_output=True)
        assert list_files(tmp_path / "other") == list_files(ranker)

    def test_another_seed_makes_another_ranker(self, ranker: Path, tmp_path: Path) -> None:
        assert list_files(train(tmp_path / "other", FILMS[:3], seed=1)) != list_files(ranker)

    def test_held_out_questions_tell_what_was_gained(self) -> None:
        graph = films()
        linker = linker_of(graph)
        cases = list(answer_cases(linker, graph, examples(graph), gold))
        fit = FitSettings(epochs=30, held_out=0.25)
        fitted = fit_ranker(cases, graph, linker.scorer.steps, EMBEDDER, fit)
        assert (fitted.trained, fitted.held_out) == (6, 2)
        assert 0 <= fitted.before <= fitted.after == 1.0

    def test_questions_without_a_path_to_their_answers_are_an_error_when_there_are_no_others(self) -> None:
        graph = films()
        linker = linker_of(graph)
        lost = Example("q", "who blorked Alien", ("Nobody",), (EntityId("Nobody"),), topic_ids=(EntityId("Alien"),))
        cases = answer_cases(linker, graph, [lost], gold)
        with pytest.raises(ConfigError, match="no question can be learnt from"):
            fit_ranker(cases, graph, linker.scorer.steps, EMBEDDER)

    def test_a_graph_whose_nodes_have_properties_is_learnt(self, tmp_path: Path) -> None:
        nodes = [Node(EntityId(name), name, "City", {"height": 100 + at}) for at, name in enumerate("abcdef")]
        ends = (("a", "twin", "b"), ("a", "near", "c"), ("d", "twin", "e"), ("d", "near", "f"))
        graph = ColumnarGraph.from_records(nodes, [Triple(EntityId(a), name, EntityId(b)) for a, name, b in ends])
        linker = linker_of(graph)
        assert len(linker.store.relations) == 3  # height, too
        word = {"twin": "blorks", "near": "zaps"}
        asked = [
            Example(f"{a}{b}", f"what {word[name]} {a}", (b,), (EntityId(b),), (a,), topic_ids=(EntityId(a),))
            for a, name, b in ends
        ]
        cases = list(answer_cases(linker, linker.store, asked, gold))
        fit = FitSettings(epochs=2, held_out=0.0)
        fitted = fit_ranker(cases, linker.store, linker.scorer.steps, EMBEDDER, fit)
        assert fitted.trained == 4
        write_ranker(tmp_path / "ranker", fitted, EMBEDDER, fit, "towns", Weights())
        assert (
            offline_pipeline(Parts(graph), weights=tmp_path / "ranker")
            .run(Question("q", "what zaps a", (EntityId("a"),)))
            .items
        )

    def test_settings_out_of_range_are_named(self) -> None:
        with pytest.raises(ConfigError, match="rank=0"):
            FitSettings(rank=0)
        with pytest.raises(ConfigError, match="dropout=1"):
            FitSettings(dropout=1)


class TestCases:
    def test_a_path_is_as_right_as_the_answers_it_reaches(self) -> None:
        graph = films()
        question = Example(
            "q", "what has Ridley Scott made", ("Alien",), (EntityId("Alien"),), topic_ids=(EntityId("Ridley Scott"),)
        )
        case = next(answer_cases(linker_of(graph), graph, [question], gold))
        back = 2 * graph.relations.index("directed_by") + 1
        # It reaches Alien and Blade Runner: precision 1/2, recall 1.
        assert case.right[case.placed[:, 0] == back].tolist() == [pytest.approx(2 / 3, abs=1e-6)]

    def test_of_very_many_paths_the_right_ones_stay(self) -> None:
        graph = films()
        cases = list(answer_cases(linker_of(graph), graph, examples(graph), gold, most=3))
        assert [len(case.right) for case in cases] == [3] * len(cases)
        assert all(case.right.max() == 1 for case in cases)

    def test_a_topic_that_the_graph_lacks_makes_no_case(self) -> None:
        graph = films()
        lost = Example("q", "who", ("Alien",), (EntityId("Alien"),), topic_ids=(EntityId("Jaws"),))
        assert list(answer_cases(linker_of(graph), graph, [lost], gold)) == []


class TestChains:
    SPOUSE = ("people.person.spouse_s", "people.marriage.spouse")

    def cases(self, chain: Chain, inverses: dict[str, str] | None = None) -> list[RankingExample]:
        graph = marriages()
        return list(chain_cases(linker_of(graph), graph, [chain], inverses or {}))

    def right(self, case: RankingExample, graph: ColumnarGraph) -> list[list[str]]:
        rows = case.placed[case.right > 0]
        steps = rows % (2 * len(graph.relations))
        return [
            [
                ("^" if step & 1 else "") + graph.relations[step >> 1]
                for step, place in zip(*pair, strict=True)
                if place >= 0
            ]
            for pair in zip(steps.tolist(), rows.tolist(), strict=True)
        ]

    def test_a_node_where_the_chain_starts_stands_in_for_a_topic_that_the_graph_lacks(self) -> None:
        (case,) = self.cases(Chain("1", "who is zoe married to", Mention("zoe", 7, 10), "Zoe", self.SPOUSE))
        assert case.text == "who is married to"
        assert self.right(case, marriages()) == [list(self.SPOUSE)]

    def test_the_topic_itself_is_taken_where_the_graph_has_it(self) -> None:
        (case,) = self.cases(Chain("1", "who is ann married to", Mention("ann", 7, 10), "Ann", self.SPOUSE))
        # Only Ann has a parent; Cid is married, too.
        assert 2 * marriages().relations.index("people.person.parents") in case.placed[:, 0].tolist()

    def test_a_relation_may_be_written_as_its_inverse(self) -> None:
        chain = Chain("1", "whose mother is eva", Mention("eva", 16, 19), "Eva", ("people.person.children",))
        assert self.cases(chain) == []
        (case,) = self.cases(chain, {"people.person.children": "people.person.parents"})
        assert self.right(case, marriages()) == [["^people.person.parents"]]

    def test_chains_that_the_graph_cannot_walk_are_left_out(self) -> None:
        assert self.cases(Chain("1", "q", Mention("q"), "", ("people.person.parents", "people.person.parents"))) == []
        assert self.cases(Chain("1", "q", Mention("q"), "", self.SPOUSE * 2)) == []

    def test_files_of_chains_and_inverses_are_read(self, tmp_path: Path) -> None:
        rows = [
            {"id": "a", "question": "who is ann", "topic_id": "m.1", "chain": ["r", "^s"]}
            | {"mentions": [{"text": "ann", "name": "Ann A.", "id": "m.1"}]},
            {"id": "b", "question": "what", "chain": []},
        ]
        (tmp_path / "chains.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "inverses.tsv").write_text("r\ts\n")
        found, _ = read_chains(tmp_path / "chains.jsonl")
        assert found == [Chain("a", "who is ann", Mention("ann", 7, 10), "Ann A.", ("r", "^s"))]
        assert read_inverses(tmp_path / "inverses.tsv") == {"r": "s", "s": "r"}
        with pytest.raises(DatasetError, match="no other"):
            read_chains(tmp_path / "other")


class TestRanker:
    def test_it_is_refused_with_another_embedder(self, ranker: Path) -> None:
        class Other(StaticEmbedder):
            @property
            def name(self) -> str:
                return "other"

        with pytest.raises(ConfigError, match=r"were fitted with the embedder 'static-.*this run has 'other'"):
            offline_pipeline(Parts(films(), embedder=Other()), weights=ranker)

    def test_a_folder_without_one_is_named(self, tmp_path: Path) -> None:
        graph = films()
        with pytest.raises(ConfigError, match=r"no ranker can be read in .*byokg fit"):
            PathRanker.load(tmp_path, graph, linker_of(graph).scorer.steps, EMBEDDER)

    def test_it_serves_a_graph_with_other_relations(self, ranker: Path) -> None:
        answer = offline_pipeline(Parts(marriages()), weights=ranker).run(
            Question("q", "parents of Ann", (EntityId("Ann"),))
        )
        assert [item.name for item in answer.items] == ["Eva"]

    def test_lazy_and_sampled_statistics_give_equal_scores(self, ranker: Path) -> None:
        graph = films()
        linker = linker_of(graph)
        steps = linker.scorer.steps
        walked = RelationSimilarity(graph, EMBEDDER, statistics=SchemaStatistics(graph))
        found = linker.score_candidates(Question("q", "who zapped Alien", (EntityId("Alien"),)))
        parts = [growth.steps for growth in found.growths]
        for growth in found.growths:
            walked = walked.observe(growth)
        walked.name_vectors[:] = steps.name_vectors
        whole, learnt = (PathRanker.load(ranker, graph, each, EMBEDDER) for each in (steps, walked))
        vector = whole.question(found.parsed)
        known, learned = (one.fits(vector, parts, of) for one, of in ((whole, steps), (learnt, walked)))
        assert np.allclose(known, learned, atol=1e-3)

    def test_its_scores_are_the_same_alone_and_together(self, ranker: Path) -> None:
        graph = films()
        linker = linker_of(graph)
        learnt = PathRanker.load(ranker, graph, linker.scorer.steps, EMBEDDER)
        found = linker.score_candidates(Question("q", "who zapped Alien", (EntityId("Alien"),)))
        vector = learnt.question(found.parsed)
        parts = [growth.steps for growth in found.growths]
        scores = learnt.fits(vector, parts)
        first = learnt.fits(vector, parts[:1])
        assert np.allclose(scores[: len(first)], first, atol=1e-4)

    def test_products_are_exact_in_any_order(self) -> None:
        random = np.random.default_rng(0)
        one, other = random.random((3, 500)) - 0.5, random.random((500, 2)) - 0.5
        order = random.permutation(500)
        assert product(one, other).tolist() == product(one[:, order], other[order]).tolist()
        assert np.allclose(product(one, other), one @ other, atol=1e-5)
        assert product(np.zeros((1, 2)), np.ones((2, 1))).tolist() == [[0.0]]

    def test_a_mention_is_one_sign_in_ngrams(self) -> None:
        reading = parse_question("who directed Blade Runner", [Mention("Blade Runner", 13, 25)])
        assert ngrams(reading)[:4] == ["who", "directed", "_", "^ who"]
        assert "directed _ $" in ngrams(reading)
