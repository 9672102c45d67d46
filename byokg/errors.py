"""Every error byokg raises. The tree of classes comes first, for callers that catch them.

ByokgError
├── ConfigError            a setting is wrong or missing
├── MissingExtra           an optional package is not installed
├── NoCandidates           there is no query to choose from
├── EmbedderFailed         a remote embedding model raised or replied nonsense
├── IndexUnusable          a saved index of names is missing, damaged, or made for another graph
├── CacheUnusable          the cache of vectors cannot be read or written
├── LlmError               a language model gave no usable reply
│   ├── LlmUnavailable     no connection, or the service failed (retryable)
│   │   ├── LlmOverloaded  the service has too much to do for everybody
│   │   └── LlmTimeout     one attempt took too long
│   ├── LlmRateLimited     the rate of requests is too high (retryable)
│   ├── LlmBadReply        the response is no reply in the service's own terms (retryable)
│   ├── LlmAuthFailed      the key is wrong, or does not permit this
│   ├── LlmInvalidRequest  the service will never answer this request
│   ├── LlmDeadline        the time for the question is over
│   ├── LlmUnusable        a reply came and was paid, but is unusable; it is in `reply`
│   │   ├── LlmTruncated   it ends at the limit of tokens
│   │   ├── LlmRefused     the model, or a filter, declines
│   │   ├── LlmEmpty       it has neither text nor tool calls
│   │   └── LlmOffChoice   it is none of the texts that the server was to choose from
│   ├── ReplyMissing       replies are replayed only, and this one was never recorded
│   ├── ReplyPending       the reply comes later: the call was put aside to be answered with others
│   └── BudgetExceeded     the call would cost more than the run may
├── GraphError
│   ├── ImportFailed       an input file cannot become a graph (file, line, reason)
│   ├── GraphNotFound      no graph at that place
│   ├── GraphExists        a graph would be written over something else
│   ├── GraphCorrupt       the folder is there but not readable as a graph
│   ├── EntityNotFound     an id is not in the store
│   ├── RelationNotFound   a relation label is not in the store
│   ├── StoresMixed        edges of two stores would be joined, whose numbers have nothing in common
│   ├── OpenFileLimit      a graph has more relations than files may be open
│   ├── StoreUnavailable   a server or engine cannot be reached (retryable)
│   ├── CallStopped        nobody waits for the result any more: given up, or out of time
│   ├── RequestInvalid     a request for a subgraph, or of a graph tool, is malformed
│   └── QueryFailed        a query gave no answer
│       ├── QueryRefused   the guard does not let it run (writes, calls out, several statements)
│       ├── QueryInvalid   the engine does not understand it
│       ├── QueryTimeout   it took too long
│       └── QueryTooLarge  it needed too much memory
├── ReplyStoreError        recorded replies cannot be opened, read, written or imported (file, line, reason)
├── FetchFailed            a file of a data set could not be downloaded, or its digest is wrong (url, reason)
├── DatasetError           a question file is missing or malformed (file, line, reason)
└── RunError               a run folder cannot be used (another configuration, torn records)
    └── RunIncomplete      a run stopped before its last question, and can be continued
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from byokg.llm.messages import Reply

Word = TypeVar("Word", bound=str)


class ByokgError(Exception):
    """Base of all. `retryable` is True if the same call may succeed later.

    >>> from byokg import KnowledgeGraph
    >>> try:
    ...     KnowledgeGraph.open("nowhere")
    ... except ByokgError as error:
    ...     print(type(error).__name__, error.retryable)
    GraphNotFound False
    """

    retryable: bool = False


class _InFile(ByokgError):
    """Something is wrong with a file, or with one line of it."""

    def __init__(self, file: str | Path, line: int | None, reason: str) -> None:
        super().__init__(f"{file}: {reason}" if line is None else f"{file}:{line}: {reason}")
        self.file = str(file)
        self.line = line
        self.reason = reason


class ConfigError(ByokgError):
    """A setting is wrong; the message names it and the nearest valid choice."""


def at_least(least: float, otherwise: str, **settings: float) -> None:
    """Raise `ConfigError` for the first of some settings that is lower; `otherwise` states the consequence."""
    for name, value in settings.items():
        if value < least:
            raise ConfigError(f"{name}={value} {otherwise}; use {least} or more")


def shares(**settings: float) -> None:
    """Raise `ConfigError` for a setting outside of [0, 1]."""
    for name, value in settings.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{name}={value} is no share; use a number from 0 to 1")


def one_of(setting: str, value: str, known: Iterable[Word]) -> Word:
    """Return the word of `known` that a value is; `setting` ends with what stands before it: `method=`, `--method `.

    Raises:
        ConfigError: it is none of them.
    """
    words = tuple(known)
    if value not in words:
        raise ConfigError(f"{setting}{value} is not known; use one of {', '.join(words)}")
    return words[words.index(value)]


class MissingExtra(ByokgError):
    """A missing optional package."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed; run: pip install 'byokg[{extra}]'")
        self.package = package
        self.extra = extra


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a package that only one of byokg's extras installs. Raises `MissingExtra` if it is not installed."""
    with requires(module, extra, purpose):
        found = importlib.import_module(module)
    return found


@contextmanager
def requires(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Raise `MissingExtra` for an import within the context that fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(package, extra, purpose) from error


class NoCandidates(ByokgError):
    """A query is to be chosen, and there is none."""

    def __init__(self, question: str = "") -> None:
        about = f" for {question!r}" if question else ""
        super().__init__(
            f"there is no candidate query{about} to choose from; link an entity that the graph has edges of"
        )


class EmbedderFailed(ByokgError):
    """A remote embedding model raised, or its reply does not fit the texts it was given."""

    def __init__(self, embedder: str, reason: str, retryable: bool = False) -> None:
        super().__init__(f"embedder {embedder!r} failed: {reason}; check its address and key, or use embedding=static")
        self.embedder = embedder
        self.retryable = retryable


class IndexUnusable(ByokgError):
    """A saved index of names is missing, damaged, or was made with another embedder or for another graph."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(
            f"the index of names in {str(place)!r} cannot be used: {reason}; "
            "write it anew with: byokg graph embed DIR --overwrite"
        )
        self.place = str(place)


class CacheUnusable(ByokgError):
    """The cache of vectors cannot be read or written."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(
            f"the cache of vectors in {str(place)!r} cannot be used: {reason}; name another folder, or remove it"
        )
        self.place = str(place)


class LlmError(ByokgError):
    """A language model gave no usable reply. A failure never travels as the text of a reply.

    `retries` is the number of repeated attempts before this error.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: {reason}")
        self.model = model
        self.reason = reason
        self.retries = 0

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (given up after {self.retries + 1} attempts)" if self.retries else text


class LlmUnavailable(LlmError):
    """The service cannot be reached, or failed on its side. `retry_after_s` is the wait it asks for, if any."""

    retryable = True

    def __init__(self, model: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(model, reason)
        self.retry_after_s = retry_after_s


class LlmOverloaded(LlmUnavailable):
    """The service has too much to do for everybody."""


class LlmTimeout(LlmUnavailable):
    """One attempt took longer than it may."""


class LlmRateLimited(LlmError):
    """The service wants fewer calls or tokens from us. `retry_after_s` is the wait it asks for, if any."""

    retryable = True

    def __init__(self, model: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(model, f"{reason}; lower llm.concurrency or llm.tokens_per_minute if this stays")
        self.retry_after_s = retry_after_s


class LlmBadReply(LlmError):
    """The response is no reply in the service's own terms: broken JSON, another content type, half a stream."""

    retryable = True


class LlmAuthFailed(LlmError):
    """The service does not accept the key, or the key does not permit this."""


class LlmInvalidRequest(LlmError):
    """The service will never answer this request: no such model, a wrong parameter, a prompt that is too long."""


class LlmContextExceeded(LlmInvalidRequest):
    """Prompt and reply together exceed the model's context window."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(
            model,
            f"{reason}; give the server a longer context (llama.cpp: --n_ctx, Ollama: num_ctx, vLLM: --max-model-len), "
            "or lower llm.max_tokens, pipeline.budgets.context_tokens and pipeline.budgets.schema_tokens",
        )


class LlmDeadline(LlmError):
    """The time for the whole question is over."""


class LlmUnusable(LlmError):
    """A reply came and was paid for, but is unusable. `reply` holds it.

    Recorded like any other reply, so the same call gives the same error again and costs nothing.
    """

    def __init__(self, model: str, reason: str, reply: Reply) -> None:
        super().__init__(model, reason)
        self.reply = reply


class LlmTruncated(LlmUnusable):
    """The reply ends at the limit of tokens."""

    def __init__(self, model: str, reply: Reply) -> None:
        tokens = f"{reply.usage.output_tokens:,} tokens" if reply.usage.output_tokens else "the limit of tokens"
        super().__init__(model, f"the reply was cut off at {tokens}; raise llm.max_tokens", reply)


class LlmRefused(LlmUnusable):
    """The model, or a filter of its service, declines to answer."""

    def __init__(self, model: str, reply: Reply) -> None:
        said = f": {_start(reply.text)}" if reply.text.strip() else ""
        super().__init__(model, f"the model refused to answer{said}", reply)


class LlmEmpty(LlmUnusable):
    """The reply has neither text nor tool calls."""

    def __init__(self, model: str, reply: Reply) -> None:
        super().__init__(model, "the reply is empty", reply)


class LlmOffChoice(LlmUnusable):
    """The reply is none of the texts that the server was to choose from."""

    def __init__(self, model: str, reply: Reply, server: str) -> None:
        reason = f"it wrote what it was not given to choose from: {_start(reply.text)}"
        super().__init__(model, f"{reason}; does it take constraints as {server!r} does?", reply)


class ReplyMissing(LlmError):
    """Replies are replayed only, and none was recorded for this call. Nothing was sent."""

    def __init__(self, model: str, question_id: str, stage: str, key: str, nearest: str = "") -> None:
        why = nearest or "a prompt, the model or a parameter differs from the recorded run"
        super().__init__(
            model,
            f"no recorded reply for question {question_id!r}, stage {stage!r} (call {key[:12]}…): {why}; "
            "import its replies with: byokg cache import FILE",
        )
        self.question_id = question_id
        self.stage = stage
        self.key = key


class ReplyPending(LlmError):
    """The reply will come later: the call was put aside, to be answered together with others. Nothing went wrong."""

    def __init__(self, model: str, question_id: str, stage: str, key: str) -> None:
        super().__init__(
            model, f"the reply for question {question_id!r}, stage {stage!r} is pending (call {key[:12]}…)"
        )
        self.question_id = question_id
        self.stage = stage
        self.key = key


class BudgetExceeded(LlmError):
    """The call would cost more than the run may. It was not sent; earlier answers are kept."""


class GraphError(ByokgError):
    """Something about a graph."""


class ImportFailed(_InFile, GraphError):
    """An input file cannot become a graph. Nothing was written."""


class GraphNotFound(GraphError):
    """There is no graph at the place given."""

    def __init__(self, place: str | Path) -> None:
        super().__init__(f"no graph in {str(place)!r}; build one with: byokg graph build SOURCE --out {place}")
        self.place = str(place)


class GraphExists(GraphError):
    """A graph would be written over something that is already there. Nothing was changed."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(f"cannot write to {str(place)!r}: {reason}")
        self.place = str(place)


class GraphCorrupt(GraphError):
    """The folder looks like a graph but cannot be read as one."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(
            f"graph in {str(place)!r} cannot be read: {reason}; check it with: byokg graph info, "
            "or rebuild it with: byokg graph build"
        )
        self.place = str(place)


class EntityNotFound(GraphError):
    """The id is not in the store; the message proposes the nearest nodes where somebody has looked for them."""

    def __init__(self, entity: str, store: str, nearest: Sequence[str] = ()) -> None:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "stores take ids; byokg link finds those of a name"
        super().__init__(f"no entity {entity!r} in {store}; {hint}")
        self.entity = entity
        self.store = store


class NameAmbiguous(EntityNotFound):
    """Several nodes have the name that was given in place of an id; the message lists some."""

    def __init__(self, name: str, store: str, candidates: Sequence[str]) -> None:
        super().__init__(name, store)
        self.args = (f"several nodes of {store} have the name {name!r}; use an id: {', '.join(candidates)}",)


class RelationNotFound(GraphError):
    """The relation label is not in the store; the message proposes the nearest ones."""

    def __init__(self, relation: str, store: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(relation, list(known), n=3)
        hint = f"; nearest: {', '.join(map(repr, near))}" if near else "; list them with: byokg graph info"
        super().__init__(f"no relation {relation!r} in {store}{hint}")
        self.relation = relation


class StoresMixed(GraphError):
    """Edges of two stores would be joined. Their numbers have nothing in common."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(
            f"edges of {one} and of {other} cannot be joined: each store numbers its nodes by itself; "
            "spell them out with traversal.triples first"
        )


class OpenFileLimit(GraphError):
    """An engine keeps files open for each relation, type and combination of types, and the system allows fewer."""

    def __init__(self, relations: int, types: int, needed: int, allowed: int) -> None:
        super().__init__(
            f"a graph with {relations:,} relations, and {types:,} types and combinations of types, needs {needed:,} "
            f"open files, and {allowed:,} are allowed; raise the hard limit (ulimit -Hn {needed}, or nofile in "
            "limits.conf), or leave rare relations and types out"
        )
        self.needed = needed
        self.allowed = allowed


class StoreUnavailable(GraphError):
    """A server or engine cannot be reached, or is busy. The same call may succeed later."""

    retryable = True

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store} cannot be reached: {reason}; check its address, and that it runs")
        self.store = store


class CallStopped(GraphError):
    """The caller has given up, or the time for the call is over (see `graph.cancellation`)."""

    def __init__(self) -> None:
        super().__init__("the call was ended before it had a result; ask for fewer hops or nodes, or allow more time")


class RequestInvalid(GraphError):
    """A request for a subgraph is malformed. The message is fit to be shown to the language model that wrote it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"the request cannot be read: {'; '.join(problems)}")
        self.problems = tuple(problems)


class QueryFailed(GraphError):
    """A query gave no answer. The message is fit to be shown to the language model that wrote it."""


class QueryRefused(QueryFailed):
    """The guard does not let the query run. Nothing was executed.

    `forbidden` is True for a recognised forbidden operation, False for text that the guard cannot parse.
    """

    def __init__(self, found: str, line: int, column: int, reason: str, forbidden: bool = True) -> None:
        super().__init__(f"refused at line {line}, column {column}, {found!r}: {reason}")
        self.found = found
        self.line = line
        self.column = column
        self.reason = reason
        self.forbidden = forbidden


class QueryInvalid(QueryFailed):
    """The engine does not understand the query."""


class PathQueryInvalid(QueryInvalid):
    """The text is no path query, or asks for something that cannot be."""

    def __init__(self, reason: str, line: int = 0, column: int = 0, expected: tuple[str, ...] = ()) -> None:
        place = f" at line {line}, column {column}" if line else ""
        shown = ", ".join(expected[:12]) + (", …" if len(expected) > 12 else "")
        super().__init__(f"path query{place}: {reason}" + (f"; expected {shown}" if expected else ""))
        self.reason = reason
        self.line = line
        self.column = column
        self.expected = expected


class QueryTimeout(QueryFailed):
    """The query took longer than its limit."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(
            f"the query took longer than {timeout_s:g} s and was stopped; "
            "name a start node, use fewer hops, or add LIMIT"
        )
        self.timeout_s = timeout_s


class QueryTooLarge(QueryFailed):
    """The query needed more memory than allowed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the query needed too much memory and was stopped ({reason}); ask for less at once")


class ReplyStoreError(_InFile):
    """Recorded replies cannot be opened, read, written or imported."""


class FetchFailed(ByokgError):
    """A file of a data set could not be downloaded, or its digest is wrong."""

    def __init__(self, url: str, reason: str, retryable: bool = False) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.retryable = retryable


class DatasetError(_InFile):
    """A question file is missing or malformed."""


class RunError(ByokgError):
    """A run folder cannot be used."""


class RunIncomplete(RunError):
    """A run stopped before its last question. Answered questions are recorded, and the same run continues there.

    `pending` questions wait for delayed replies; `cause` is the error that stopped the run, if one did.
    """

    def __init__(self, answered: int, total: int, pending: int, why: str | ByokgError = "") -> None:
        reason = str(why) or f"{pending:,} wait for replies"
        super().__init__(f"{answered:,} of {total:,} questions are answered; {reason}")
        self.answered = answered
        self.total = total
        self.pending = pending
        self.cause = why if isinstance(why, ByokgError) else None


def _start(text: str, length: int = 200) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length]}…"
