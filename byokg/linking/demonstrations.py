"""Few-shot demonstrations: solved questions of a training split for prompts.

A file has one JSON object a line, compressed or not: `question`, and its solution: `path` or `chain` (relations from
the topic entity to the answer, `^r` walked backwards; a list, or text with `->`), or `query` with its `language`
(`cypher`, `sparql`). `topic` (a name) and `mentions` (each with `text` and `name`) give the start of a path, if
present.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, EntityNotFound, QueryFailed, at_least
from byokg.files import open_decompressed
from byokg.graph.guard.guard import check_query, lint_query
from byokg.graph.paths import follow
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.text.names import fold_words, on_one_line, split_words
from byokg.types import INVERSE, EntityId, Metapath

_HUB = 1000
"""Edges of one relation at one node that are walked to see whether a path leads anywhere."""
_LONGEST_QUERY = 2000
"""Characters of a query that is shown."""
_TRIED = 5
"""How many times as many candidates as are shown are checked against the graph, the most similar first."""


@dataclass(frozen=True)
class Demonstration:
    """A question and its solution."""

    question: str
    topic: str
    path: Metapath
    query: str
    language: str
    asks: str
    """The question without its mentions, for similarity."""

    @classmethod
    def of(cls, question: str, topic: str, path: Metapath, named: Sequence[str]) -> Demonstration:
        """Return a question that a path out of a topic solves; `named` are the names in it."""
        return cls(question, topic, path, "", "cypher", _without(question, named))


@dataclass(frozen=True)
class Examples:
    """Solved questions for prompts.

    Args:
        source: the questions, or a file of them; None shows none.
        shown: largest number in a prompt: the most similar ones.
    """

    source: str | Path | Sequence[Demonstration] | None = None
    shown: int = 3

    def writer(self, store: GraphStore, embedder: Embedder) -> Callable[[str], str]:
        """Return a writer of the examples similar to a question; it writes nothing without a source."""
        if self.source is None:
            return lambda question: ""
        return DemonstrationRetriever(self.source, store, embedder, self.shown).text


class DemonstrationRetriever:
    """Finds the demonstrations that are most similar to a question and valid in the graph.

    Only valid solutions are shown: every relation of a path exists, and the path has ends if its topic entity is in the
    graph, too; a query passes the guard and names nothing that the graph lacks. A question never gets its own solution,
    for any capitals or punctuation.

    Args:
        solved: a file of demonstrations, or these themselves.
        store: the graph.
        embedder: compares questions.
        k: demonstrations at most.

    Raises:
        ConfigError: the file cannot be read, holds no demonstration, or `k` allows none.
    """

    def __init__(
        self, solved: str | Path | Sequence[Demonstration], store: GraphStore, embedder: Embedder, k: int = 3
    ) -> None:
        at_least(1, "shows no example", shown=k)
        self._k = k
        self._store = store
        self._embedder = embedder
        self._engines = {engine.language: engine for engine in store.engines}
        self._known = frozenset(store.relations)
        self._solved = list(solved) if not isinstance(solved, str | Path) else _read_demonstrations(Path(solved))
        if not self._solved:
            raise ConfigError(
                f"examples={str(solved)!r} holds no solved question; give `question` with `path` or `query`"
            )
        self._keys = [_key(one.question) for one in self._solved]
        self._holding = lru_cache(1 << 14)(self._holds)

    def similar(self, question: str) -> list[Demonstration]:
        """Return at most k solved questions, the most similar first; equally similar ones in the order of the file."""
        asked = _key(question)
        # Words common in demonstrations carry no meaning, and would outweigh the question's own.
        words = [word for word in split_words(question) if word in self._common]
        scores = self._vectors @ exact(self._embedder.encode([" ".join(words) or question])[0])
        order = np.argsort(-scores, kind="stable")[: self._k * _TRIED + 1].tolist()
        chosen: list[Demonstration] = []
        for place in order:
            solved = self._solved[place] if self._keys[place] != asked else None
            if solved is None or (holding := self._holding(place)) is None:
                continue
            if all((one.path, one.query) != (holding.path, holding.query) for one in chosen):
                chosen.append(holding)
                if len(chosen) == self._k:
                    break
        return chosen

    def text(self, question: str) -> str:
        """Return the demonstrations as text for a prompt; empty if there are none."""
        blocks = []
        for one in self.similar(question):
            lines = [f"Question: {on_one_line(one.question)}"]
            if one.path:
                start = f" from {on_one_line(one.topic)}" if one.topic else ""
                lines.append(f"Path{start}: {' -> '.join(map(on_one_line, one.path))}")
            if one.query:
                lines.append(f"Query: {on_one_line(one.query, _LONGEST_QUERY)}")
            blocks.append("\n".join(lines))
        return "\n\n".join(["# Similar questions, solved over this graph", *blocks]) if blocks else ""

    @cached_property
    def _vectors(self) -> npt.NDArray[np.float64]:
        return exact(self._embedder.encode([one.asks for one in self._solved]))

    @cached_property
    def _common(self) -> frozenset[str]:
        """The words of more than one solved question, names left out."""
        counts = Counter(word for one in self._solved for word in set(split_words(one.asks)))
        return frozenset(word for word, count in counts.items() if count > 1)

    def _holds(self, place: int) -> Demonstration | None:
        """Return a demonstration in this graph's labels, without invalid solutions; None if none is valid."""
        one = self._solved[place]
        path = self._spelled(one.path)
        if path and one.topic and not self._leads_somewhere(one.topic, path):
            path = ()
        query = one.query if self._runs(one) else ""
        return replace(one, path=path, query=query) if path or query else None

    def _spelled(self, path: Metapath) -> Metapath:
        """Return a path in the graph's relations, two that meet in a nameless node as one if only that exists."""
        spelled: list[str] = []
        place = 0
        while place < len(path):
            step = path[place]
            joined = f"{step}..{path[place + 1]}" if place + 1 < len(path) else ""
            if step.removeprefix(INVERSE) in self._known:
                spelled.append(step)
                place += 1
            elif joined in self._known:
                spelled.append(joined)
                place += 2
            else:
                return ()
        return tuple(spelled)

    def _leads_somewhere(self, topic: str, path: Metapath) -> bool:
        """True if a path has ends; also if its start is no node, so that it cannot be checked."""
        try:
            return bool(len(follow(self._store, [EntityId(topic)], path, _HUB, _HUB).ends))
        except EntityNotFound:
            return True

    def _runs(self, one: Demonstration) -> bool:
        """True if the graph's engine takes a query, and has all of its names."""
        engine = next((engine for language, engine in self._engines.items() if language == one.language), None)
        if not one.query or engine is None:
            return False
        try:
            check_query(engine.language, one.query)
            return not lint_query(engine, one.query)
        except QueryFailed:
            return False


def _key(question: str) -> str:
    return " ".join(fold_words(question))


def _read_demonstrations(path: Path) -> list[Demonstration]:
    read = [_solved(record, f"{path}:{number}") for number, record in _records(path)]
    return [one for one in read if one is not None and (one.path or one.query)]


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with open_decompressed(path.expanduser()) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, json.loads(line)
    except OSError as error:
        raise ConfigError(f"examples={str(path)!r} cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise ConfigError(f"examples={str(path)!r} is no file of JSON lines: {error}") from error


def _solved(record: Any, place: str) -> Demonstration | None:
    """Read one record; None if it has no solution."""
    if not isinstance(record, dict) or not isinstance(record.get("question"), str):
        raise ConfigError(f'{place}: is no solved question; write {{"question": …, "path": […]}}')
    path = record.get("path") or record.get("chain") or ()
    steps: Sequence[Any] = path.split("->") if isinstance(path, str) else path
    mentions = [one for one in record.get("mentions") or () if isinstance(one, dict)]
    named = {one["id"]: one["name"] for one in mentions if one.get("id") and one.get("name")}
    topic = record.get("topic") or named.get(record.get("topic_id"), "")
    question = record["question"].strip()
    return Demonstration(
        question,
        str(topic),
        tuple(str(step).strip() for step in steps),
        str(record.get("query") or "").strip(),
        str(record.get("language") or "cypher"),
        _without(question, [str(mention.get("text") or topic) for mention in mentions]),
    )


def _without(question: str, names: Sequence[str]) -> str:
    """Return a question without some names in it; whole if nothing else would be left."""
    asks = question
    for name in names:
        asks = re.sub(re.escape(name), " ", asks, flags=re.IGNORECASE)
    return " ".join(asks.split()) or question
