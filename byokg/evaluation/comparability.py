"""What two figures must share to be set against each other: those of two runs, and ours and a published one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

import yaml
from pydantic import TypeAdapter

from byokg.errors import ConfigError
from byokg.evaluation.run_folder import METRICS_FILE, Run

_DIGEST_SHOWN = 12
"""Characters."""


_CONDITIONS = {
    "graph": "graph",
    "code": "code",
    "entities": "topic entities",
    "hops": "hop counts",
    "profile": "metric profile",
}
"""Fields of a comparison key that are stated with both values, in words."""


@dataclass(frozen=True)
class ComparisonKey:
    """Conditions of a run's figures; two runs are ranked together only if all of them are equal."""

    dataset: str
    """Name of the data set and its split."""
    questions: str
    """Digest of the questions, gold answers included."""
    n: int
    graph: str
    """Digest of the graph, or its server's own identification; empty if not recorded."""
    entities: str
    """Whether topic entities were given: `gold` or `linked`."""
    hops: str
    """Whether hop counts were given: `gold` or `predicted`."""
    code: str
    """Version and digest of the code."""
    profile: str
    """Metric profile."""

    def differences(self, other: ComparisonKey) -> tuple[str, ...]:
        """Return the differences from this contract to the other in words; empty if the two are equal."""
        found = []
        if self.dataset != other.dataset:
            found.append(f"data set {self.dataset!r} → {other.dataset!r}")
        if self.n != other.n:
            found.append(f"{self.n:,} → {other.n:,} questions")
        elif self.questions != other.questions and self.dataset == other.dataset:
            found.append("other questions, or other gold answers")
        for name, what in _CONDITIONS.items():
            mine, theirs = (str(getattr(key, name)) for key in (self, other))
            if mine != theirs:
                shown = map(_digest, (mine, theirs)) if name in ("graph", "code") else (mine, theirs)
                found.append(f"{what} {' → '.join(shown)}")
        return tuple(found)


def comparison_key(run: Run, profile: str) -> ComparisonKey:
    """Return the conditions of a run's figures under a metric profile."""
    code, graph, asked = (run.config.get(name) or {} for name in ("code", "graph", "questions"))
    return ComparisonKey(
        dataset=run.dataset["name"],
        questions=str(asked.get("checksum", "")),
        n=int(asked.get("n", len(run.questions))),
        graph=str(graph.get("checksum") or ""),
        entities=str(run.config["entities"]),
        hops=str(run.config.get("hops", "predicted")),
        code=f"{code.get('version', '')} {code.get('digest', '')}".strip(),
        profile=profile,
    )


def group_by_key(contracts: Sequence[ComparisonKey]) -> list[list[int]]:
    """Return the positions of equal contracts, the first contract's first."""
    groups: dict[ComparisonKey, list[int]] = {}
    for position, one in enumerate(contracts):
        groups.setdefault(one, []).append(position)
    return list(groups.values())


def ranked_groups(contracts: Sequence[ComparisonKey]) -> list[dict[str, Any]]:
    """Return the groups of equal contracts for a page, each with its differences from the first."""
    groups = group_by_key(contracts)
    return [{"runs": its, "differs": list(contracts[0].differences(contracts[its[0]]))} for its in groups]


def _digest(value: str) -> str:
    *version, digest = value.split(" ") if value else ("unknown",)
    return " ".join((*version, digest[:_DIGEST_SHOWN]))


def find_differences(first: Run, second: Run) -> tuple[str, ...]:
    """Return why two runs are not about the same questions, scored alike; empty if they are."""
    reasons = []
    mine, theirs = ({one.id: one for one in run.questions if not one.repeat} for run in (first, second))
    if first.dataset["name"] != second.dataset["name"]:
        reasons.append(f"one asked {first.dataset['name']!r}, the other {second.dataset['name']!r}")
    elif first.dataset != second.dataset:
        reasons.append(f"the question files of {first.dataset['name']!r} differ")
    if mine.keys() != theirs.keys():
        reasons.append(
            f"the questions differ ({len(mine.keys() & theirs.keys()):,} in both, "
            f"{len(mine.keys() - theirs.keys()):,} and {len(theirs.keys() - mine.keys()):,} in one alone)"
        )
    changed = [id for id in mine if id in theirs and mine[id].answers != theirs[id].answers]
    if changed:
        reasons.append(f"the gold answers of {len(changed):,} questions differ ({changed[0]!r} first)")
    for run in (first, second):
        if run.metrics is None:
            reasons.append(f"{run.name!r} is not finished: it has no {METRICS_FILE}")
    return tuple(reasons)


@dataclass(frozen=True)
class PublishedResult:
    """One published figure."""

    dataset: str
    system: str
    model: str
    """Language model of the published system, if stated."""
    metric: str
    value: float
    """In [0, 1]."""
    profile: str | None
    """Name of the profile with the same figure; None if the publication does not describe its scoring."""
    n: int
    """Questions that it was measured on."""
    graph: str
    entities: Literal["gold", "linked"] | None
    """Whether topic entities were given; None if that is not stated."""
    trained: bool
    """Whether the system was trained on questions of this kind."""
    source: str
    checked: bool
    """Whether the figure was read in its source."""
    unlike: str = ""
    """Why nobody can ask the same questions."""


def read_published(dataset: str) -> list[PublishedResult]:
    """Return the published figures for a data set, in the order of the file.

    Args:
        dataset: the beginning of its name: `webqsp`, `metaqa`, `metaqa 2-hop`.

    Raises:
        ConfigError: no figure is listed for the data set.
    """
    groups = yaml.safe_load((resources.files("byokg.evaluation") / "anchors.yaml").read_text("utf-8"))
    known = [anchor for group in groups for anchor in _anchors(group)]
    wanted = _words(dataset)
    found = [anchor for anchor in known if _words(anchor.dataset)[: len(wanted)] == wanted and wanted]
    if not found:
        names = ", ".join(dict.fromkeys(anchor.dataset for anchor in known))
        raise ConfigError(f"--anchors {dataset}: nothing published is recorded about it; there is {names}")
    return found


@dataclass(frozen=True)
class PublishedData:
    """Questions and graph of a column of a published table."""

    settings: tuple[str, ...]
    source: str
    """Name in `datasets/sources.yaml`."""
    graph: str
    n: int
    unlike: str = ""
    """Why nobody can ask the same questions; empty if one can."""


@dataclass(frozen=True)
class PublishedRow:
    """A system of a published table."""

    system: str
    figures: Mapping[str, tuple[float, ...]]
    """By data set: one for each model of the table, or else for each metric of the column."""
    run: tuple[str, ...] = ()
    """Settings of its run; empty for a system that is only quoted."""
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further settings, by data set."""


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper; a case study has a question and its answer in place of rows."""

    title: str
    paper: str
    settings: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    """Metrics by data set: `PROFILE:METRIC`, `calls`, `seconds`, `tokens`, `recall@10`, `questions`, `triples`."""
    rows: tuple[PublishedRow, ...]
    models: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""


def read_tables() -> tuple[dict[str, tuple[int, ...]], dict[str, PublishedData], dict[str, PublishedTable]]:
    """Return rough usage by pipeline (calls, tokens in and out of a question), data by column, and tables by name."""
    text = (resources.files("byokg.evaluation") / "published_tables.yaml").read_text("utf-8")
    content = yaml.safe_load(text)
    usage = {pipeline: tuple(each) for pipeline, each in content["usage"].items()}
    data = TypeAdapter(dict[str, PublishedData]).validate_python(content["datasets"])
    return usage, data, TypeAdapter(dict[str, PublishedTable]).validate_python(content["tables"])


@dataclass(frozen=True)
class RunConditions:
    """Conditions of a run that decide its comparability with published figures."""

    name: str
    dataset: str
    n: int
    """Number of questions."""
    entities: str = ""
    """`gold` or `linked` topic entities; empty if not recorded."""


def run_conditions(run: Run) -> RunConditions:
    """Return the conditions of a run."""
    asked = len({example.first_id for example in run.questions})
    return RunConditions(run.name, run.dataset["name"], asked, run.config["entities"])


def mismatch_reasons(anchor: PublishedResult, ours: RunConditions, published_graph: bool) -> tuple[str, ...]:
    """Return the reasons against a comparison with a published figure; empty if there are none.

    Args:
        anchor: the published figure.
        ours: conditions of our run.
        published_graph: True if the user states that the graph is the published one; no file records that.
    """
    found = []
    words = _words(anchor.dataset)
    if _words(ours.dataset)[: len(words)] != words:
        found.append(f"{ours.dataset!r} was asked here")
    elif ours.n != anchor.n:
        found.append(f"{anchor.n:,} questions there, {ours.n:,} here")
    if anchor.unlike:
        found.append(anchor.unlike)
    if anchor.profile is None:
        found.append("how it was scored is not known")
    if anchor.entities is not None and anchor.entities != ours.entities:
        found.append(f"topic entities {anchor.entities} there, {ours.entities or 'unknown'} here")
    if not published_graph:
        found.append(f"the graph there is {anchor.graph}; nothing says that ours is the same")
    if not anchor.checked:
        found.append("the figure was not checked in its source")
    return tuple(found)


def split_published(
    anchors: Sequence[PublishedResult], subjects: Sequence[RunConditions], published_graph: bool
) -> tuple[list[PublishedResult], list[tuple[PublishedResult, tuple[str, ...]]]]:
    """Part published figures that all of ours can be compared with from the others, these with the reasons."""
    like, unlike = [], []
    for anchor in anchors:
        reasons = dict.fromkeys(reason for one in subjects for reason in mismatch_reasons(anchor, one, published_graph))
        if reasons:
            unlike.append((anchor, tuple(reasons)))
        else:
            like.append(anchor)
    return like, unlike


def _anchors(group: dict[str, Any]) -> list[PublishedResult]:
    shared = {key: value for key, value in group.items() if key != "figures"}
    figures = ({"model": "", **each, "value": round(each["value"] / 100, 6)} for each in group["figures"])
    return [PublishedResult(**shared, **figure) for figure in figures]


def _words(name: str) -> list[str]:
    return re.findall(r"[\w-]+", name.casefold())
