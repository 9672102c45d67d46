"""Questions in several languages are answered over one English graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.evaluation.datasets.folder import atlas
from byokg.graph.importers.choose import build_graph
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.types import Mention, Question


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder: Path = tmp_path_factory.mktemp("languages")
    return offline_pipeline(Parts(build_graph(atlas().graph_source(), folder / "atlas.graph")))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wie heißt die Hauptstadt von Frankreich?", "Paris"),
        ("In welchem Land liegt Koeln?", "Germany"),
        ("Wie viele Nachbarländer hat Österreich?", "8"),
        ("Welcher ist der längste Fluss in Afrika?", "Nile"),
        ("Wer gewann 1954 den Literaturnobelpreis?", "Ernest Hemingway"),
        ("¿Cuál es el río más largo de África?", "Nile"),
        ("¿Cuántos países limitan con Alemania?", "9"),
        ("¿Qué es más largo, el Rin o el Danubio?", "Danube"),
        ("法国的首都是什么？", "Paris"),
        ("1954年谁获得了诺贝尔文学奖？", "Ernest Hemingway"),
        ("长江和黄河哪条更长？", "Yangtze"),
    ],
)
def test_a_question_in_another_language_is_answered(loop: Loop, question: str, answer: str) -> None:
    given = loop.run(Question("asked", question))
    assert given.items[0].name == answer
    assert given.translation


def test_an_english_question_is_not_translated(loop: Loop) -> None:
    assert loop.run(Question("asked", "What is the capital of France?")).translation == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Deutschland", "Germany"),
        ("德国", "Germany"),
        ("Alemania", "Germany"),
        ("Köln", "Cologne"),
        ("Koeln", "Cologne"),
        ("Koln", "Cologne"),
        ("México", "Mexico"),
        ("Rumania", "Romania"),
        ("多瑙河", "Danube"),
    ],
)
def test_foreign_names_link_to_english_nodes(loop: Loop, text: str, name: str) -> None:
    linked = loop.entities.link_all([Mention(text)])[0]
    assert linked[0].name == name


def test_accents_and_umlauts_are_optional_in_a_graph_of_another_language() -> None:
    from byokg.graph.columnar.graph import ColumnarGraph

    store = ColumnarGraph.from_triples([("Köln", "liegt in", "Deutschland"), ("México", "r", "北京"), ("A", "r", "B")])
    links = EntityLinker(store).link_all([Mention(text) for text in ("Koln", "Koeln", "KÖLN", "Mexico", "北京")])
    assert [found[0].name for found in links] == ["Köln", "Köln", "Köln", "México", "北京"]
