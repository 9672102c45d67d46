"""Published figures, and what keeps each from being compared with a run of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import yaml

from byokg.errors import ConfigError


@dataclass(frozen=True)
class Anchor:
    """One published figure."""

    dataset: str
    system: str
    model: str
    """The language model it asks, where that is stated."""
    metric: str
    value: float
    """In [0, 1]."""
    profile: str | None
    """Which of our profiles makes the same figure; None where the publication does not say how it scores."""
    n: int
    """Questions that it was measured on."""
    graph: str
    entities: Literal["gold", "linked"] | None
    """Whether topic entities were given; None where that is not stated."""
    trained: bool
    """Whether the system was trained on questions of this kind."""
    source: str
    checked: bool
    """Whether the figure was read in its source."""
    unlike: str = ""
    """Why nobody can ask the same questions."""


def read_anchors(dataset: str) -> list[Anchor]:
    """Return what was published about a data set, in the order of the file.

    Args:
        dataset: the beginning of its name: `webqsp`, `metaqa`, `metaqa 2-hop`.

    Raises:
        ConfigError: nothing is known about such a data set.
    """
    groups = yaml.safe_load((resources.files("byokg.evaluation") / "anchors.yaml").read_text("utf-8"))
    known = [anchor for group in groups for anchor in _anchors(group)]
    wanted = _words(dataset)
    found = [anchor for anchor in known if _words(anchor.dataset)[: len(wanted)] == wanted and wanted]
    if not found:
        names = ", ".join(dict.fromkeys(anchor.dataset for anchor in known))
        raise ConfigError(f"--anchors {dataset}: nothing published is recorded about it; there is {names}")
    return found


def obstacles(anchor: Anchor, dataset: str, n: int, entities: str, published_graph: bool) -> tuple[str, ...]:
    """Return why a run cannot be compared with a published figure; empty where it can.

    Args:
        anchor: the figure.
        dataset: name of the run's data set.
        n: questions of the run.
        entities: whether the run's topic entities were `gold` or `linked`.
        published_graph: the user's word that the run's graph is the published one, which no file tells.
    """
    found = []
    words = _words(anchor.dataset)
    if _words(dataset)[: len(words)] != words:
        found.append(f"these runs asked {dataset!r}")
    elif n != anchor.n:
        found.append(f"{anchor.n:,} questions there, {n:,} here")
    if anchor.unlike:
        found.append(anchor.unlike)
    if anchor.profile is None:
        found.append("how it was scored is not known")
    if anchor.entities is not None and anchor.entities != entities:
        found.append(f"topic entities {anchor.entities} there, {entities} here")
    if not published_graph:
        found.append(f"the graph there is {anchor.graph}; nothing says that ours is the same")
    if not anchor.checked:
        found.append("the figure was not checked in its source")
    return tuple(found)


def _anchors(group: dict[str, Any]) -> list[Anchor]:
    shared = {key: value for key, value in group.items() if key != "figures"}
    return [
        Anchor(**shared, system=each["system"], model=each.get("model", ""), value=round(each["value"] / 100, 6))
        for each in group["figures"]
    ]


def _words(name: str) -> list[str]:
    return re.findall(r"[\w-]+", name.casefold())
