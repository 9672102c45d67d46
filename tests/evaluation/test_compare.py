"""Tests of `byokg.evaluation.compare`, on run folders as evaluations write them, and of published figures."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from byokg.errors import ConfigError, RunError
from byokg.evaluation.comparability import (
    PublishedResult,
    RunConditions,
    comparison_key,
    find_differences,
    group_by_key,
    mismatch_reasons,
    read_published,
)
from byokg.evaluation.compare import compare_runs
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.report.comparison_tables import comparison_tables
from byokg.evaluation.run_folder import METRICS_FILE, Run, read_runs
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.evaluation.significance import holm
from byokg.types import Answer, AnswerItem, Question

EXAMPLES = (
    Example("a", "Where is Oslo?", ("Norway",), type="x"),
    Example("b", "Where is Rome?", ("Italy",), type="x"),
    Example("c", "Where is Lima?", ("Peru",), type="y"),
    Example("d", "Where is Perth?", ("Australia", "Scotland"), type="y"),
)
SETTINGS = RunSettings("towns test", "0" * 64, "1" * 64, config={"pipeline": {"rounds": 1}})


class Says:
    """Answers each question with what it is given for its id; raises where that is nothing."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    def run(self, question: Question) -> Answer:
        """Return the one answer."""
        return Answer(question.id, (AnswerItem(self._answers[question.id], None, 1.0),), ())


def recorded(folder: Path, answers: Mapping[str, str], settings: RunSettings = SETTINGS, count: int = 4) -> Run:
    """Run an evaluation and read its folder."""
    run_evaluation(Says(answers), EXAMPLES[:count], folder, settings)
    [run] = read_runs([folder])
    return run


@pytest.fixture
def before(tmp_path: Path) -> Run:
    """Return a run with a and d right; c fails."""
    return recorded(tmp_path / "before", {"a": "Norway", "b": "Spain", "d": "Australia"})


@pytest.fixture
def after(tmp_path: Path) -> Run:
    """Return a run with a, b and c right."""
    settings = replace(SETTINGS, config={"pipeline": {"rounds": 2}})
    return recorded(tmp_path / "after", {"a": "norway", "b": "Italy", "c": "Peru", "d": "Austria"}, settings)


def test_questions_won_and_lost_are_listed_and_counted(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=200)
    assert (found.metric, found.won, found.lost) == ("hit", ("b", "c"), ("d",))
    hit = found.differences["hit"]
    assert (hit.value, hit.won, hit.lost, hit.test, hit.p) == (0.25, 2, 1, "McNemar", 1.0)
    recall = found.differences["recall"]  # 1, 0, 0, 1/2 before; 1, 1, 1, 0 after
    assert recall.value == pytest.approx(0.75 - 0.375)
    assert recall.ci95[0] <= recall.value <= recall.ci95[1]


def test_an_interval_beside_an_unlike_p_is_explained(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=200)
    far = replace(found.differences["hit"], ci95=(0.05, 0.4), p=0.5, clusters=(2, 0))
    changed = replace(found, differences={**found.differences, "hit": far}, holm={**found.holm, "hit": 0.5})
    console = Console(width=400)
    with console.capture() as said:
        console.print(comparison_tables(changed, 1))
    assert (
        "Hit: 0 is outside the interval, but p shows no difference: p rests on the 2 clusters that differ, 2 won and "
        "0 lost, and cannot be less than 0.500; p decides"
    ) in said.get()


def test_types_are_compared_one_by_one(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=200)
    assert {name: (one.n, one.first, one.second, one.difference.value) for name, one in found.by_type.items()} == {
        "x": (2, 0.5, 1.0, 0.5),
        "y": (2, 0.5, 0.5, 0.0),
    }


def test_a_pooled_metric_is_pooled_in_each_type_too(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["subgraphrag"], "micro f1", resamples=10)
    for one in found.by_type.values():
        assert one.second - one.first == pytest.approx(one.difference.value)
    assert found.by_type["y"].first == pytest.approx(2 * 1 / (1 + 2 + 1))  # of d; c failed, and has one gold answer


def test_settings_that_differ_are_named(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=10)
    assert found.settings == {"config.pipeline.rounds": ("1", "2")}


def test_runs_under_one_contract_differ_in_settings_alone(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["strict"], resamples=10)
    assert found.apart == ()
    assert group_by_key([comparison_key(run, "strict") for run in (before, after)]) == [[0, 1]]


def test_what_keeps_two_runs_apart_is_said_in_words(before: Run, after: Run) -> None:
    other = replace(
        after,
        config={
            **after.config,
            "graph": {"checksum": "2" * 64},
            "entities": "gold",
            "hops": "gold",
            "code": {"version": "0.1.0", "digest": "f" * 16},
        },
    )
    [found] = compare_runs([before, other], PROFILES["strict"], resamples=10)
    assert found.apart[0] == f"graph {'1' * 12} → {'2' * 12}"
    assert found.apart[1].endswith(" → 0.1.0 ffffffffffff")
    assert found.apart[2:] == ("topic entities linked → gold", "hop counts predicted → gold")
    assert group_by_key([comparison_key(run, "strict") for run in (before, after, other)]) == [[0, 1], [2]]


def test_runs_on_fewer_questions_are_under_another_contract(before: Run, tmp_path: Path) -> None:
    fewer = recorded(tmp_path / "fewer", {"a": "Norway", "b": "Italy", "c": "Peru"}, count=3)
    assert comparison_key(before, "strict").differences(comparison_key(fewer, "rog")) == (
        "4 → 3 questions",
        "metric profile strict → rog",
    )


def test_p_values_of_several_runs_are_corrected(before: Run, after: Run, tmp_path: Path) -> None:
    third = recorded(tmp_path / "third", {"a": "Norway", "b": "Spain", "d": "Australia", "c": "Peru"})
    found = compare_runs([before, after, third], PROFILES["strict"], resamples=100)
    raw = [one.differences["f1"].p for one in found]
    assert [one.holm["f1"] for one in found] == holm(raw) != raw


def test_another_metric_and_profile_may_be_asked_for(before: Run, after: Run) -> None:
    [found] = compare_runs([before, after], PROFILES["rog"], "recall", resamples=10)
    # rog skips the question that failed in one run, so it is left out of both.
    assert (found.won, found.lost, found.left_out, len(found.scores[1].values)) == (("b",), ("d",), 1, 3)
    with pytest.raises(RunError, match="profile rog has no metric 'em'; it has accuracy, hit"):
        compare_runs([before, after], PROFILES["rog"], "em")


def test_a_profile_that_can_score_nothing_is_refused(before: Run, after: Run) -> None:
    with pytest.raises(RunError, match="stark can score none of the questions in both runs"):
        compare_runs([before, after], PROFILES["stark"])


def test_other_questions_are_refused_unless_forced(before: Run, tmp_path: Path) -> None:
    fewer = recorded(tmp_path / "fewer", {"a": "Norway", "b": "Italy", "c": "Peru"}, count=3)
    with pytest.raises(RunError, match=r"'before' and 'fewer' cannot be compared: .*3 in both, 1 and 0 in one alone"):
        compare_runs([before, fewer], PROFILES["strict"])
    [found] = compare_runs([before, fewer], PROFILES["strict"], force=True, resamples=10)
    assert len(found.scores[0].values) == 3
    assert (found.won, found.lost) == (("b", "c"), ())


def test_another_split_gold_answer_or_an_unfinished_run_is_objected_to(before: Run, after: Run) -> None:
    assert find_differences(before, after) == ()
    for dataset, reason in (
        ({"name": "towns dev", "checksum": "0" * 64}, "one asked 'towns test', the other 'towns dev'"),
        ({"name": "towns test", "checksum": "2" * 64}, "the question files of 'towns test' differ"),
    ):
        assert find_differences(before, replace(after, config={**after.config, "dataset": dataset})) == (reason,)
    assert find_differences(before, replace(after, metrics=None)) == (
        f"'after' is not finished: it has no {METRICS_FILE}",
    )
    changed = (replace(EXAMPLES[0], answers=("Sweden",)), *EXAMPLES[1:])
    assert find_differences(before, replace(after, questions=changed)) == (
        "the gold answers of 1 questions differ ('a' first)",
    )


def test_one_run_alone_is_refused(before: Run) -> None:
    with pytest.raises(RunError, match="give two run folders or more"):
        compare_runs([before], PROFILES["strict"])


def test_runs_that_share_no_question_are_refused(before: Run, after: Run) -> None:
    with pytest.raises(RunError, match="share no question"):
        compare_runs([before, replace(after, questions=(), predictions={})], PROFILES["strict"], force=True)


def test_a_folder_of_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no config.yaml"):
        read_runs([tmp_path])


def test_runs_are_called_by_what_tells_their_folders_apart(before: Run, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    shutil.copytree(tmp_path / "before", tmp_path / "sweep" / "before")
    names = [run.name for run in read_runs([tmp_path / "before", tmp_path / "sweep" / "before"])]
    assert names == [f"{tmp_path.name}/before", "sweep/before"]
    with pytest.raises(RunError, match="is given twice"):
        read_runs([tmp_path / "before", tmp_path / "sweep" / ".." / "before"])


ANCHOR = PublishedResult(
    "webqsp", "X", "", "hit", 0.8, "byokg", 1628, "Freebase", "linked", False, "X 2025, Table 1", True
)


def test_every_figure_is_a_share_made_by_a_metric_that_we_have() -> None:
    names = ("webqsp", "cwq", "cronquestions", "medqa", "northwind", "stark", "metaqa")
    anchors = [anchor for name in names for anchor in read_published(name)]
    assert len(anchors) > 60
    for anchor in anchors:
        assert 0 < anchor.value < 1, anchor
        assert anchor.source
        assert anchor.n > 0
        assert anchor.graph
        if anchor.profile not in (None, "judge"):
            assert anchor.metric in [metric.name for metric in PROFILES[anchor.profile].metrics], anchor


def test_figures_are_found_by_the_beginning_of_a_data_sets_name() -> None:
    assert {anchor.dataset for anchor in read_published("MetaQA")} == {"metaqa 1-hop", "metaqa 2-hop", "metaqa 3-hop"}
    assert {anchor.dataset for anchor in read_published("metaqa 2-hop")} == {"metaqa 2-hop"}
    [byokg, *_] = [a for a in read_published("webqsp") if a.system == "ByoKG-RAG (agentic)"]
    assert (byokg.value, byokg.profile, byokg.n, byokg.checked) == (0.871, "byokg", 1628, True)


@pytest.mark.parametrize("name", ["atlas", "meta", "", "webqsp2"])
def test_an_unknown_data_set_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ConfigError, match=r"nothing published is recorded about it; there is webqsp, cwq"):
        read_published(name)


def test_a_figure_on_the_same_questions_entities_and_graph_is_comparable() -> None:
    assert mismatch_reasons(ANCHOR, RunConditions("run", "WebQSP test", 1628, "linked"), published_graph=True) == ()


@pytest.mark.parametrize(
    ("anchor", "dataset", "n", "entities", "same", "why"),
    [
        (ANCHOR, "cwq test", 1628, "linked", True, "'cwq test' was asked here"),
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
    anchor: PublishedResult, dataset: str, n: int, entities: str, same: bool, why: str
) -> None:
    assert mismatch_reasons(anchor, RunConditions("run", dataset, n, entities), same) == (why,)
