"""Tests of `byokg.evaluation.compare` and the file of published figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byokg.errors import ConfigError
from byokg.evaluation.compare import Anchor, obstacles, read_anchors
from byokg.evaluation.profiles import PROFILES

ANCHOR = Anchor("webqsp", "X", "", "hit", 0.8, "byokg", 1628, "Freebase", "linked", False, "X 2025, Table 1", True)


def test_every_figure_is_a_share_made_by_a_metric_that_we_have() -> None:
    names = ("webqsp", "cwq", "cronquestions", "medqa", "northwind", "stark", "metaqa")
    anchors = [anchor for name in names for anchor in read_anchors(name)]
    assert len(anchors) > 60
    for anchor in anchors:
        assert 0 < anchor.value < 1, anchor
        assert anchor.source
        assert anchor.n > 0
        assert anchor.graph
        if anchor.profile not in (None, "judge"):
            assert anchor.metric in [metric.name for metric in PROFILES[anchor.profile].metrics], anchor


def test_figures_are_found_by_the_beginning_of_a_data_sets_name() -> None:
    assert {anchor.dataset for anchor in read_anchors("MetaQA")} == {"metaqa 1-hop", "metaqa 2-hop", "metaqa 3-hop"}
    assert {anchor.dataset for anchor in read_anchors("metaqa 2-hop")} == {"metaqa 2-hop"}
    [byokg, *_] = [a for a in read_anchors("webqsp") if a.system == "ByoKG-RAG (agentic)"]
    assert (byokg.value, byokg.profile, byokg.n, byokg.checked) == (0.871, "byokg", 1628, True)


@pytest.mark.parametrize("name", ["atlas", "meta", "", "webqsp2"])
def test_an_unknown_data_set_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ConfigError, match=r"nothing published is recorded about it; there is webqsp, cwq"):
        read_anchors(name)


def test_a_figure_on_the_same_questions_entities_and_graph_is_comparable() -> None:
    assert obstacles(ANCHOR, "WebQSP test", 1628, "linked", published_graph=True) == ()


@pytest.mark.parametrize(
    ("anchor", "dataset", "n", "entities", "same", "why"),
    [
        (ANCHOR, "cwq test", 1628, "linked", True, "these runs asked 'cwq test'"),
        (ANCHOR, "webqsp test", 855, "linked", True, "1,628 questions there, 855 here"),
        (ANCHOR, "webqsp test", 1628, "gold", True, "topic entities linked there, gold here"),
        (
            ANCHOR,
            "webqsp test",
            1628,
            "linked",
            False,
            "the graph there is Freebase; nothing says that ours is the same",
        ),
        (replace(ANCHOR, profile=None), "webqsp", 1628, "linked", True, "how it was scored is not known"),
        (replace(ANCHOR, checked=False), "webqsp", 1628, "linked", True, "the figure was not checked in its source"),
        (replace(ANCHOR, unlike="a subset"), "webqsp", 1628, "linked", True, "a subset"),
    ],
)
def test_whatever_differs_keeps_a_figure_apart(
    anchor: Anchor, dataset: str, n: int, entities: str, same: bool, why: str
) -> None:
    assert obstacles(anchor, dataset, n, entities, same) == (why,)
