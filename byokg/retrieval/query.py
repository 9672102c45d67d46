"""Running the queries that a language model wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from byokg.errors import ConfigError, EntityNotFound, QueryFailed, QueryTimeout, at_least, one_of
from byokg.graph.guard.guard import Finding, check_query, lint_query, strings_in
from byokg.graph.guard.literals import literals_in
from byokg.graph.property_view import node_names
from byokg.graph.store import QueryableGraph, QueryLimits, Rows
from byokg.linking.llm_linker import TAGS
from byokg.linking.parts import Parts
from byokg.llm.messages import prompt_messages
from byokg.llm.parsing import read_query
from byokg.llm.reply_blocks import reply_schema
from byokg.retrieval.frontier import mediators_among
from byokg.retrieval.query_feedback import (
    ComparedProperty,
    compared_properties,
    emptied_by,
    emptied_sparql,
    node_formats,
    quoted_relations,
    strings_left_out,
    value_formats,
)
from byokg.retrieval.verbalize import clean
from byokg.text.names import is_identifier
from byokg.types import Cell, Context, EntityId, Evidence, Feedback, Language, Mention, NodeCell, Request, RowsEvidence

if TYPE_CHECKING:
    from byokg.linking.grounding import LiteralGrounder

RETRIEVER = "query"
REPAIR_STAGE = "query_repair"

Grounding = Literal["off", "suggest", "substitute"]
"""Use of readings: none, feedback for the model alone, or a substitution in the query where one reading is certain."""

_TRIED = "it was tried"
_NO_ROWS = "it returned no rows"
_NO_VALUES = "it returned rows without a single value; a property may be missing, or have another name"

_EMPTY_COUNT = "it counted nothing, since it asks for what this graph does not have: that says nothing about the answer"

_LIMIT = re.compile(r"\bLIMIT\s+\d+[\s;]*$", re.IGNORECASE)
"""The last clause of a query."""

_COUNTED = 10_000
"""Rows up to which those of a query are counted where more were cut than are kept."""

_VALUES = 5
"""Texts of a query that found nothing which are looked up among the names."""

_NAMELESS, _LEGS = 40, 6
"""Nameless nodes in the rows of a query that get a description, and the size of it."""

_Outcome: TypeAlias = RowsEvidence | Feedback


class QueryRetriever:
    """Runs each written query that is in a language of the graph.

    The guard decides whether a query only reads, and the schema whether its names exist; it runs within limits, and its
    rows are evidence. A query that is refused, fails, takes too long or returns nothing becomes `Feedback` with the
    reason and the nearest existing names. Queries of earlier rounds are not run again. Literals that no value of their
    property equals are read as the stored values that they mean (`ground_by_results`).

    Args:
        parts: the graph, which has to run queries; the entity linker finds the names nearest to those in a query
            without rows. Corrections need a language model.
        repairs: corrections at most, for each query without rows.
        timeout_s: time limit of a query.
        max_rows: rows kept of one query.
        schema_tokens: budget of the schema in a prompt.
        grounding: `substitute` puts certain readings into a query, `suggest` only lists readings as feedback, and `off`
            runs queries as written.

    Raises:
        ConfigError: the store runs no queries, there is no model to correct them, or a setting is out of range.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Graph Query Retrieval".
    Differs: the paper runs a query unchecked, and gives the model no feedback on failures.
    """

    def __init__(
        self,
        parts: Parts,
        repairs: int = 0,
        timeout_s: float = 10.0,
        max_rows: int = 200,
        schema_tokens: int = 2000,
        grounding: Grounding = "substitute",
    ) -> None:
        engines = parts.store.engines
        if not engines:
            raise ConfigError(
                f"{parts.store.name} runs no queries; choose graph=arcadedb (openCypher), graph=oxigraph (SPARQL) or a "
                "server"
            )
        at_least(0, "is no number of corrections", repairs=repairs)
        for name, value in (("timeout_s", timeout_s), ("max_rows", max_rows), ("schema_tokens", schema_tokens)):
            if not value > 0:
                raise ConfigError(f"{name}={value} leaves nothing; use a number above 0")
        self._grounding = one_of("grounding=", grounding, get_args(Grounding))
        self._parts = parts
        self._store = parts.store
        self._engines = {engine.language: engine for engine in engines}
        if repairs:
            self._model, self._schema = parts.model, parts.schema
        self._repairs = repairs
        self._limits = QueryLimits(timeout_s, max_rows)
        self._schema_tokens = schema_tokens

    @property
    def languages(self) -> tuple[Language, ...]:
        """Return the languages of the queries it runs."""
        return tuple(self._engines)

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return rows, and feedback on queries without any, in the order written.

        Raises:
            StoreUnavailable: the store cannot be reached.
            LlmError: a correction failed.
        """
        earlier = _outcomes(request.context)
        found: list[Evidence] = []
        for query in dict.fromkeys(request.artifacts.queries):
            text = query.text.strip()
            if query.language == "paths":
                continue  # the path retriever's
            engine = self._engines.get(query.language)
            if engine is not None and text:
                found += self._answered(engine, text, request, earlier)
        return found

    def _answered(
        self, engine: QueryableGraph, text: str, request: Request, earlier: dict[str, _Outcome]
    ) -> list[_Outcome]:
        """Run a query, and corrections of it until one returns rows."""
        found = self._tried(engine, text, request, earlier)
        tried = {text}
        for _ in range(self._repairs):
            if any(isinstance(item, RowsEvidence) for item in found):
                break
            problem = next(item.problem for item in reversed(found) if isinstance(item, Feedback))
            text = self._repaired(engine.language, text, problem, request)
            if not text or text in tried:
                break
            tried.add(text)
            found += self._tried(engine, text, request, earlier)
        return found

    def _tried(
        self, engine: QueryableGraph, text: str, request: Request, earlier: dict[str, _Outcome]
    ) -> list[_Outcome]:
        """Run one query, unless it was run before."""
        language = engine.language
        given = {"language": language, "query": text}
        if text in earlier:
            problem = _repeated(earlier[text])
            request.note(RETRIEVER, given, {"problem": problem})
            return [Feedback(RETRIEVER, 0.0, subject=text, problem=problem)]
        problems: list[str] = []
        found: list[_Outcome] = []
        grounded = GroundedQuery(text)
        try:
            if language == "cypher":
                text = quoted_relations(text)
            checked = check_query(language, text)
            findings = lint_query(engine, text)
            problems += map(_format_finding, findings)
            grounded = self._grounded(engine, text)
            if grounded.lines:
                checked = check_query(language, grounded.text)
            rows = engine.run(checked, limits=self._limits)
        except QueryFailed as error:
            problems.append(str(error))
            request.note(RETRIEVER, given, {"problem": "; ".join(problems)})
        else:
            if _holds_values(rows) and any(one.kind != "direction" for one in findings) and not _holds_anything(rows):
                # A count over unknown names is no fact about the graph.
                problems = [_EMPTY_COUNT, *problems]
            elif _holds_values(rows):
                found.append(replace(self._evidence(engine, text, checked, rows), readings=grounded.lines))
            else:
                bare = strings_left_out(language, checked)
                linked = [one.id for one in request.linked.entities]
                emptied = "" if rows.rows else self._emptied(engine, checked)
                problems = [
                    _NO_VALUES if rows.rows else _NO_ROWS,
                    *([emptied] if emptied else []),
                    *problems,
                    *([*grounded.lines, *grounded.open] or self._misnamed(engine, text)),
                    *value_formats(engine.schema(), self._compared(language, checked)),
                    *node_formats(self._store, linked, bare),
                ]
            got = {"columns": list(rows.columns), "rows": len(rows), "truncated": rows.truncated}
            cut = (one.total for one in found if isinstance(one, RowsEvidence) and one.truncated)
            got |= {"total": total} if (total := next(cut, 0)) else {}
            got |= {"readings": list(grounded.lines)} if grounded.lines else {}
            request.note(RETRIEVER, given, {**got, "problem": "; ".join(problems)} if problems else got)
        if problems:
            found.append(Feedback(RETRIEVER, 0.0, subject=text, problem="; ".join(problems)))
        earlier[text] = found[0]
        return found

    def _grounded(self, engine: QueryableGraph, text: str) -> GroundedQuery:
        """Return a query with certain readings of its literals, as far as they are substituted."""
        if self._grounding == "off":
            return GroundedQuery(text)
        grounded = ground_by_results(self._parts.grounder, engine, text, self._limits)
        if self._grounding == "substitute":
            return grounded
        return GroundedQuery(text, (), (*grounded.lines, *grounded.open))

    def _evidence(self, engine: QueryableGraph, text: str, checked: str, rows: Rows) -> RowsEvidence:
        """Return the rows of a query; if a limit, ours or its own, cut them, they are counted."""
        joined, total, exact = self._joined(rows), 0, True
        unseen: tuple[tuple[Cell, ...], ...] = ()
        if rows.truncated:
            total, exact = len(rows), False
            limits = QueryLimits(self._limits.timeout_s, _COUNTED)
            if self._limits.max_rows < _COUNTED:
                with suppress(QueryFailed):
                    counted = engine.run(checked, limits=limits)
                    total, exact = max(total, len(counted)), not counted.truncated
                    unseen = counted.rows[len(rows) :] if counted.rows[: len(rows)] == rows.rows else ()
        shown = (engine.language, text, rows.columns, rows.rows, rows.truncated, joined)
        behind, exact = ((), exact) if rows.truncated else self._behind(engine, checked, rows)
        following = behind[0] if behind else ()
        return RowsEvidence(
            RETRIEVER, 1.0, *shown, total=total, exact=exact, unseen=unseen, left_out=len(behind), following=following
        )

    def _behind(self, engine: QueryableGraph, checked: str, rows: Rows) -> tuple[Sequence[tuple[Cell, ...]], bool]:
        """Return the rows behind a query's own LIMIT, which show ties, and whether these are all; none if unknown.

        Hardly more are requested than are read, so that an engine may stop there. Which of several tied rows stand
        before a LIMIT may differ between two runs.
        """
        wider = _LIMIT.sub(f"LIMIT {self._limits.max_rows + 1}", checked)
        if wider == checked or len(rows) >= self._limits.max_rows:
            return (), True
        try:
            every = engine.run(wider, limits=self._limits)
        except QueryFailed:
            return (), True
        rest = list(every.rows)
        for row in rows.rows:
            if row not in rest:
                return (), True
            rest.remove(row)
        return rest, not every.truncated

    def _joined(self, rows: Rows) -> dict[EntityId, str]:
        """Describe the first nameless nodes in rows by their neighbours: a model often returns a mediator, and means
        the node behind it. Empty for a text that only looks like an id, or if the store takes too long.
        """
        ids = list(dict.fromkeys(id for row in rows.rows for id in _nameless(row)))[:_NAMELESS]
        if not ids:
            return {}
        try:
            mediators = mediators_among(self._store, ids)
            names = node_names(self._store, dict.fromkeys(other for legs in mediators.values() for _, other in legs))
        except (EntityNotFound, QueryFailed):
            return {}
        joined = {}
        for id, legs in mediators.items():
            relations: dict[EntityId, str] = {}
            for triple, other in legs:  # an edge and its inverse are one
                relations.setdefault(other, triple.relation.rpartition(".")[2])
            said = [f"{clean(relation)}: {clean(names[other])}" for other, relation in relations.items()]
            more = [f"… (+{len(said) - _LEGS} more)"] if len(said) > _LEGS else []
            joined[id] = ", ".join([*said[:_LEGS], *more])
        return joined

    def _emptied(self, engine: QueryableGraph, text: str) -> str:
        """Name the clause of a query that leaves no rows; empty if unknown."""
        emptied = emptied_by if engine.language == "cypher" else emptied_sparql
        return emptied(text, lambda part, limits: engine.run(part, limits=limits), self._limits.timeout_s)

    def _compared(self, language: Language, text: str) -> list[ComparedProperty]:
        """Return the properties in conditions, but for those compared with literals that were grounded."""
        grounded = literals_in(language, text) if self._grounding != "off" else ()
        return compared_properties(language, text, {use.property_start for use in grounded if not use.edge})

    def _misnamed(self, engine: QueryableGraph, text: str) -> list[str]:
        """List texts in a query that equal no name though they resemble one, but for values of other properties."""
        schema = engine.schema()
        values = {
            use.text
            for use in literals_in(engine.language, text)
            if use.edge
            or any(use.property in schema.node_properties.get(type, ()) for type in use.types or schema.node_types)
        }
        written = [each for each in strings_in(engine.language, text) if each not in values][:_VALUES]
        linked = self._parts.entities.link_all([Mention(value) for value in written])
        told = []
        for value, candidates in zip(written, linked, strict=True):
            names = list(dict.fromkeys(one.name for one in candidates))
            if names and value not in names and all(one.method != "id" for one in candidates):
                told.append(f"no node is called {value!r}; nearest: {', '.join(map(repr, names))}")
        return told

    def _repaired(self, language: Language, text: str, problem: str, request: Request) -> str:
        """Return a correction by the model; empty if it has none."""
        prompt = self._parts.prompts[f"{language}_repair"]
        filled = prompt.fill(
            schema=self._schema.render(
                request.question.text, self._schema_tokens, [one.id for one in request.linked.entities]
            ).text,
            query=text,
            problem=problem,
            question=request.question.text,
        )
        reply = self._model.reply(
            prompt_messages(filled),
            stage=REPAIR_STAGE,
            question_id=request.question.id,
            schema=reply_schema(prompt.tags),
        )
        return read_query(reply.text, TAGS[language]) or ""


@dataclass(frozen=True)
class GroundedQuery:
    """A query with the stored values that its literals mean."""

    text: str
    lines: tuple[str, ...] = ()
    """One for each substitution."""
    open: tuple[str, ...] = ()
    """Problems of literals with several readings, or none."""


def ground_by_results(
    grounder: LiteralGrounder, engine: QueryableGraph, text: str, limits: QueryLimits
) -> GroundedQuery:
    """Return a query with readings in place of literals that no value equals as written.

    A query that has rows as written keeps every literal but those of another case or format: the literal may be one of
    several. Where literals have several readings, each combination is run for one row: the only one with rows is the
    query, and otherwise the literals are left to the model, as they are once a query times out.

    Raises:
        QueryRefused: the text cannot be read.
    """
    literals = grounder.ground(engine.language, text)
    if not literals:
        return GroundedQuery(text)
    single = QueryLimits(limits.timeout_s, 1)

    def has_rows(query: str) -> bool:
        try:
            return _holds_anything(engine.run(check_query(engine.language, query), limits=single))
        except QueryTimeout:
            raise
        except QueryFailed:
            return False

    try:
        if not all(one.exact for one in literals) and has_rows(text):
            literals = [one for one in literals if one.exact]
        queries = list(grounder.substituted(engine.language, text, literals))
        if not all(one.certain for one in literals if one.readings):
            queries = [(query, lines) for query, lines in queries if has_rows(query)]
    except QueryTimeout:
        queries = []
    if len(queries) != 1:
        return GroundedQuery(text, (), tuple(one.format_problem() for one in literals))
    (query, lines), *_ = queries
    return GroundedQuery(query, lines, tuple(one.format_problem() for one in literals if not one.readings))


def _outcomes(context: Context) -> dict[str, _Outcome]:
    """Return what became of each query of earlier rounds, rows before feedback."""
    outcomes: dict[str, _Outcome] = {}
    for item in context.evidence:
        if isinstance(item, RowsEvidence):
            outcomes[item.query] = item
        elif isinstance(item, Feedback) and item.retriever == RETRIEVER:
            outcomes.setdefault(item.subject, item)
    return outcomes


def _repeated(before: _Outcome) -> str:
    """Return the note that a query was run before, with its outcome."""
    place = f"in an earlier round ({before.id})" if before.id else "in this round"
    if isinstance(before, RowsEvidence):
        more, others = before.beyond
        count = f"{'more than ' if others else ''}{len(before.rows) + more:,} rows"
        return f"it ran {place} already and returned {count}; write another query for what is missing"
    if before.problem.startswith(_TRIED):
        return before.problem
    return f"{_TRIED} {place} already: {before.problem}"


def _format_finding(finding: Finding) -> str:
    return f"line {finding.line}, column {finding.column}: {finding.message}"


def _holds_anything(rows: Rows) -> bool:
    """True if any returned value is more than null, 0, false and empty lists."""
    return any(bool(cell) for row in rows.rows for cell in row)


def _holds_values(rows: Rows) -> bool:
    """True if any returned value is not null."""
    return any(cell is not None for row in rows.rows for cell in row)


def _nameless(cells: Cell | Sequence[Cell]) -> Iterator[EntityId]:
    """Yield the nodes without a name that stand in cells, those of lists and maps too."""
    if isinstance(cells, NodeCell):
        if is_identifier(cells.name):
            yield cells.id
    elif isinstance(cells, str):
        if is_identifier(cells):
            yield EntityId(cells)
    elif isinstance(cells, Mapping):
        yield from _nameless(list(cells.values()))
    elif isinstance(cells, Sequence):
        for cell in cells:
            yield from _nameless(cell)
