"""Tests of `byokg.offline.pipeline`: questions answered from end to end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import SentenceTransformerEmbedder, Vectors
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.text import RerankRetriever, TextRetriever
from byokg.types import Answer, Artifacts, EntityId, Mention, Node, PathEvidence, Question, Triple
from tests.linking.graphs import EMBEDDER, FILMS, countries, films, marriages

ROOT = Path(__file__).resolve().parents[2]

FILM_GRAPH = films()
FILM_PIPELINE = offline_pipeline(Parts(FILM_GRAPH, embedder=EMBEDDER))

FILM_QUESTIONS = [
    "who directed Alien",
    "which actors starred in Titanic",
    "when was Blade Runner released",
    "what is the genre of Aliens",
    "which films did James Cameron direct",
    "who starred in films directed by Ridley Scott",
    "what are the genres of the films starred by Sigourney Weaver actors",
    "nothing at all",
]


def ask(pipeline: Loop, text: str, *topics: str, hops: int | None = None) -> Answer:
    return pipeline.run(Question("q", text, tuple(map(EntityId, topics)), hops))


def names(answer: Answer) -> list[str]:
    return [item.name for item in answer.items]


def evidence(answer: Answer) -> list[PathEvidence]:
    return [item for one in answer.rounds for item in one.evidence if isinstance(item, PathEvidence)]


# Peru ◀─ in_country ─ Lima ◀─ located_in ─ Works and Press, two factories, and Shop, a customer.
#                         Lima ◀─ located_in ─ Mill, a supplier. ISO ◀─ holds ─ Works, Mill.
SITES = {
    "Peru": "Country",
    "Lima": "City",
    "ISO": "Certificate",
    "Works": "Factory",
    "Press": "Factory",
    "Shop": "Customer",
    "Mill": "Supplier",
}
SITE_EDGES = [("Lima", "in_country", "Peru"), ("Works", "holds", "ISO"), ("Mill", "holds", "ISO")]
SITE_EDGES += [(name, "located_in", "Lima") for name in ("Works", "Press", "Shop", "Mill")]


@pytest.mark.parametrize(
    ("text", "topic", "answers"),
    [
        ("Which factories hold ISO?", "ISO", ["Works"]),
        ("Which of our factories are in Peru?", "Peru", ["Press", "Works"]),
        ("customers in Peru", "Peru", ["Shop"]),
        ("Show me the suppliers in Lima", "Lima", ["Mill"]),
    ],
)
def test_only_nodes_of_the_type_that_is_asked_for_are_answers(text: str, topic: str, answers: list[str]) -> None:
    nodes = [Node(EntityId(name), name, type) for name, type in SITES.items()]
    edges = [Triple(EntityId(head), label, EntityId(tail)) for head, label, tail in SITE_EDGES]
    pipeline = offline_pipeline(Parts(ColumnarGraph.from_records(nodes, edges)))
    assert sorted(names(ask(pipeline, text, topic))) == answers


class Transformer(SentenceTransformerEmbedder):
    """Stands for a model that takes long: counts the texts that it embeds."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    @property
    def name(self) -> str:
        return "stand-in"

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return EMBEDDER.encode(texts)


@pytest.mark.parametrize("usable", [True, False])
def test_a_transformer_embeds_what_lies_at_the_ends_of_relations_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usable: bool
) -> None:
    if not usable:
        (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path if usable else tmp_path / "file"))
    first, again = Transformer(), Transformer()
    answers = [ask(offline_pipeline(Parts(FILM_GRAPH, embedder=each)), "who directed Alien") for each in (first, again)]
    assert [item.name for item in answers[1].items] == ["Ridley Scott"] and answers[0] == answers[1]
    assert "Ridley Scott" in first.embedded
    assert ("Ridley Scott" in again.embedded) is not usable


class TestAnswers:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("who directed Alien", ["Ridley Scott"]),
            ("which actors starred in Titanic", ["Kate Winslet"]),
            ("when was Blade Runner released", ["1982"]),
            ("which films did James Cameron direct", ["Aliens", "Titanic"]),
            ("who starred in films directed by Ridley Scott", ["Sigourney Weaver", "Harrison Ford"]),
        ],
    )
    def test_they_are_the_ends_of_the_path_that_the_question_describes(self, text: str, expected: list[str]) -> None:
        assert sorted(names(FILM_PIPELINE.run(Question("ask", text)))) == sorted(expected)

    def test_they_cite_the_path_they_stand_at_the_end_of(self) -> None:
        answer = FILM_PIPELINE.run(Question("ask", "who directed Alien"))
        (item,) = answer.items
        (cited,) = [found for found in evidence(answer) if found.id in item.citations]
        assert (cited.source, cited.relations, cited.ends) == ("Alien", ("directed_by",), (item.id,))
        assert cited.paths[0].nodes == ("Alien", "Ridley Scott")

    def test_a_misspelt_topic_is_understood(self) -> None:
        assert names(FILM_PIPELINE.run(Question("ask", "which films did James Camreon direct"))) == [
            "Aliens",
            "Titanic",
        ]

    def test_ids_are_not_mixed_up_with_names(self) -> None:
        pipeline = offline_pipeline(Parts(countries(), embedder=EMBEDDER))
        (item,) = pipeline.run(Question("ask", "what is the capital of Peru")).items
        assert (item.id, item.name) == ("lima", "Lima")
        assert names(ask(pipeline, "which country has the capital Madrid")) == ["Spain"]

    def test_two_topics_are_answered_by_what_they_agree_on(self) -> None:
        # Peru borders Chile and Bolivia; Quechua is spoken in Peru and Bolivia.
        pipeline = offline_pipeline(Parts(countries(), embedder=EMBEDDER))
        answer = pipeline.run(Question("ask", "which country borders Peru and has the official language Quechua"))
        assert names(answer) == ["Bolivia"]
        assert {item.source for item in evidence(answer) if item.id in answer.items[0].citations} == {"pe", "que"}

    def test_a_question_without_a_topic_has_no_answer(self) -> None:
        assert FILM_PIPELINE.run(Question("ask", "who is it")).items == ()


class TestNamelessNodes:
    def test_they_are_walked_through_and_are_never_answers(self) -> None:
        pipeline = offline_pipeline(Parts(marriages(), embedder=EMBEDDER))
        assert names(pipeline.run(Question("ask", "who is the spouse of Ann"))) == ["Bob"]
        assert names(pipeline.run(Question("ask", "who is the spouse of Dea"))) == ["Cid"]
        assert names(pipeline.run(Question("ask", "when did Ann marry"))) == ["1999"]
        for text in ("who is Ann", "spouse_s of Ann", "marriage of Bob", "m.0m1"):
            assert not any(name.startswith("m.") for name in names(pipeline.run(Question("ask", text))))


class TestWhatIsGiven:
    def test_hops_restrict_the_length_of_paths(self) -> None:
        for hops in (1, 2, 3):
            found = evidence(ask(FILM_PIPELINE, "who directed Alien", "Alien", hops=hops))
            assert {len(item.relations) for item in found} == {hops}

    def test_an_unknown_topic_beside_a_known_one_is_dropped(self) -> None:
        assert names(ask(FILM_PIPELINE, "who directed Alien", "Alien", "Predator")) == ["Ridley Scott"]

    def test_topics_that_are_all_unknown_raise(self) -> None:
        with pytest.raises(EntityNotFound, match="'Predator'"):
            ask(FILM_PIPELINE, "who directed Alien", "Predator")


class TestSameAgain:
    def test_threads_give_what_one_gives_alone(self) -> None:
        questions = [Question(f"q{at}", text) for at, text in enumerate(FILM_QUESTIONS * 10)]
        alone = [FILM_PIPELINE.run(question) for question in questions]
        fresh = offline_pipeline(Parts(films(), embedder=EMBEDDER))
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(fresh.run, questions)) == alone

    def test_processes_with_other_hash_seeds_give_the_same_bytes(self) -> None:
        program = (
            "from tests.linking.graphs import countries, films, marriages\n"
            "from byokg.linking.parts import Parts\n"
            "from byokg.offline.pipeline import offline_pipeline\n"
            "from byokg.types import Question\n"
            "from tests.offline.test_pipeline import FILM_QUESTIONS\n"
            "asked = FILM_QUESTIONS + ['capital of Peru', 'who borders Peru and speaks Quechua', 'spouse of Ann']\n"
            "for graph in (films, countries, marriages):\n"
            "    pipeline = offline_pipeline(Parts(graph()))\n"
            "    for text in asked:\n"
            "        answer = pipeline.run(Question('ask', text))\n"
            "        print(answer.items, answer.rounds)\n"
        )
        outputs = [
            subprocess.run(
                [sys.executable, "-c", program],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        ]
        assert outputs[0] == outputs[1]
        assert outputs[0].count(b"\n") == 33


TEXTS = st.lists(
    st.sampled_from(
        [*sorted({end for head, _, tail in FILMS for end in (head, tail)}), *" ".join(FILM_QUESTIONS).split()]
    )
    | st.text(max_size=6)
    | st.text(st.characters(categories=["Cs", "L"]), max_size=6),
    max_size=12,
).map(" ".join)


@given(TEXTS | st.text())
def test_any_text_is_answered_with_nodes_that_are_no_topics(text: str) -> None:
    answer = FILM_PIPELINE.run(Question("ask", text))
    nodes = {EntityId(end) for head, _, tail in FILMS for end in (head, tail)}
    found = [item for one in answer.rounds for item in one.evidence]
    paths = evidence(answer)
    assert [item.id for item in found] == [f"e{number}" for number in range(1, len(found) + 1)]
    for item in answer.items:
        assert item.id in nodes
        assert set(item.citations) <= {one.id for one in found}
        assert all(item.id in one.ends for one in paths if one.id in item.citations)
    assert len({item.id for item in answer.items}) == len(answer.items)
    # A name may mean several nodes, and one of them may lead to another; different mentions never do.
    for entity in (entity for one in answer.rounds for entity in one.linked.entities):
        reached = {end for one in paths if one.source == entity.id for end in one.ends}
        apart = {other.id for one in answer.rounds for other in one.linked.entities if other.mention != entity.mention}
        assert not reached & (apart | {entity.id})


@pytest.mark.parametrize(
    "text", ["", " ", "???", "who", "\x00", "\ud800", "🎬" * 300, "Alien " * 300, "alein " * 300, "of " * 300]
)
def test_strange_texts_do_no_harm(text: str) -> None:
    for pipeline in (FILM_PIPELINE, EMPTY_PIPELINE, LONELY_PIPELINE):
        assert isinstance(pipeline.run(Question("ask", text)), Answer)


EVERYTHING = offline_pipeline(
    Parts(
        FILM_GRAPH,
        embedder=EMBEDDER,
        entities=EntityLinker(FILM_GRAPH, method="both", embedder=EMBEDDER, extend=True, disambiguate=True),
    ),
    retrievers={"path": PathRetriever, "text": TextRetriever, "bfsql": BfsqlRetriever, "rerank": RerankRetriever},
)


@given(TEXTS, st.lists(st.text(st.characters(categories=["Cs", "L", "P"]), min_size=1, max_size=4), max_size=2))
def test_halves_of_characters_do_no_harm_to_any_part(text: str, names: list[str]) -> None:
    answer = EVERYTHING.run(Question("ask", f"{text} \ud800 Alien\udfff?"))
    assert [step.stage for step in answer.rounds[0].steps if "problem" in step.got] == []
    linked = EVERYTHING.entities.link(Artifacts(tuple(map(Mention, names)), draft_answers=tuple(names)), text)
    assert all(one.id in set(FILM_GRAPH.entities()) for one in linked.entities)


EMPTY_PIPELINE = offline_pipeline(Parts(ColumnarGraph.from_triples([]), embedder=EMBEDDER))

#   a -r-> a and nothing else
LONELY_PIPELINE = offline_pipeline(Parts(ColumnarGraph.from_triples([("Alien", "r", "Alien")]), embedder=EMBEDDER))
