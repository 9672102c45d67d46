"""Tests of `byokg.offline.training.fit`; `tests/cli/test_train_commands.py` fits end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import ConfigError
from byokg.evaluation.datasets.base import Example
from byokg.index.embedders import StaticEmbedder
from byokg.linking.parts import Parts
from byokg.offline.answerer import Confidence
from byokg.offline.path_scorer import read_weights
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.ranking import read_weights as read_ranking
from byokg.offline.training.fit import FitTask, fit, split_examples
from byokg.offline.training.ranker import FitSettings
from byokg.pipelines.loop import Loop
from tests.linking.graphs import EMBEDDER, films
from tests.offline.training.test_ranker import FILMS, examples, gold

ASKED = [Example(f"q{n}", "who", ("a",), cluster=f"twins {n // 2}") for n in range(40)]


def test_questions_are_parted_by_clusters_and_the_same_each_time() -> None:
    parts = split_examples(ASKED)
    clusters = [{one.cluster for one in part} for part in (parts.learnt, parts.choosing, parts.held_out)]
    assert sum(map(len, clusters)) == len(set().union(*clusters)) == 20
    assert (len(parts.learnt), len(parts.choosing), len(parts.held_out)) == (22, 10, 8)
    assert split_examples(ASKED[::-1]).held_out and {e.id for e in split_examples(ASKED[::-1]).held_out} == {
        e.id for e in parts.held_out
    }


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_out_of_range_is_named(share: float) -> None:
    with pytest.raises(ConfigError, match=f"--held-out {share}"):
        split_examples(ASKED, share)


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    graph, out = films(), tmp_path / "weights"
    asked = list(examples(graph, FILMS))

    def make(place: Path | None) -> Loop:
        return offline_pipeline(Parts(graph, embedder=EMBEDDER), weights=place)

    task = FitTask(make, EMBEDDER, gold, lambda example: example.to_question("gold"))
    parts, settings = split_examples(asked, 0.25), FitSettings(epochs=2, least=1)
    said: list[str] = []

    def interrupted(text: str) -> None:
        said.append(text)
        if "held out" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(task, parts, out, "films", settings, interrupted)
    assert len(said) == 4 and list(tmp_path.iterdir()) == []
    report = fit(task, parts, out, "films", settings)
    assert report.held_out == 2 and set(report.choice) == {"before", "weights", "weights and ranker"}
    held = read_weights(out, StaticEmbedder().name)
    assert (held.ranker is not None) == (report.chosen == "weights and ranker")
    assert held.confidence is not None and set(report.score) == {"before", "after"}
    judge = make(out).estimator
    assert isinstance(judge, Confidence) and judge.ranker.weights == read_ranking(held.confidence)
