"""Pages and tokens until the answer with BFS-QL, and the time of a request on half a million triples.

python benchmarks/bfsql.py [--data DIR] [--json FILE] [--questions N] [--of webqsp|cwq] [--repeat N]

Questions are those of the dev split of WebQSP, or of CWQ, whose annotated chain is one edge from a topic entity to an
answer in the graph. A request has the topic as its seed and one hop, and is paged until a page shows an
answer: with the right predicate as its filter; with the question in addition; and with the question alone, without the
predicate. Tokens are estimated over all whole pages. `values` calls the tool `neighbors`
instead. Requests of two hops have the predicates of an annotated chain of two edges. "agent" is `pipeline=bfs_agent`
with a scripted model that calls five tools for each of the first questions: the tokens of all its prompts.

Times are CPU times of two hops, from the request to the text of the response. "Two hops" are those around each topic
of the questions above, without filters or a question: the best of several runs of each topic, then the median over
topics. The largest hub is the node of most edges. Bars are printed with their outcome; those of times are valid only
on an idle machine, so the time of the search alone is printed, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from pydantic import Field

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.measure import read_labels  # noqa: E402
from benchmarks.rows import Bar, Row, labelled, make_parser, show, show_bars  # noqa: E402
from byokg.evaluation.datasets.base import Example, by_name  # noqa: E402
from byokg.evaluation.datasets.folder import Folder  # noqa: E402
from byokg.graph.bfsql.engine import bfs_query, known_seeds  # noqa: E402
from byokg.graph.bfsql.protocol import BfsRequest, Json, SearchScope, breadth_first, compact  # noqa: E402  # noqa: E402
from byokg.graph.columnar.graph import ColumnarGraph  # noqa: E402
from byokg.graph.importers.choose import import_graph  # noqa: E402
from byokg.graph.paths import follow  # noqa: E402
from byokg.graph.traversal import neighbours  # noqa: E402
from byokg.index.embedders import StaticEmbedder  # noqa: E402
from byokg.linking.entities import EntityLinker  # noqa: E402
from byokg.linking.parts import Parts  # noqa: E402
from byokg.llm.chat_models import Rule, ScriptedChatModel  # noqa: E402
from byokg.llm.model import LanguageModel  # noqa: E402
from byokg.pipelines.bfs_agent import FOLDED_TOKENS, BfsAgent  # noqa: E402
from byokg.retrieval.graph_tools import GraphTools  # noqa: E402
from byokg.text.names import estimate_tokens  # noqa: E402
from byokg.types import EntityId, Question  # noqa: E402

QUESTIONS, MOST_PAGES, AGENT_QUESTIONS = 150, 50, 30

BARS = [
    Bar("1 hop, predicate: answer on page 1", "≥", 145),
    Bar("1 hop, predicate: p90 of tokens", "≤", 1500),
    Bar("two hops, median of topics: 8,000 tokens", "≤", 5),
    Bar("two hops, largest hub: 8,000 tokens", "≤", 25),
]


def seconds(run: Callable[[], object], repeat: int) -> float:
    """Return the CPU time of the quickest of some runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def known(store: ColumnarGraph, ids: Sequence[EntityId]) -> list[EntityId]:
    """Return the ids that the graph has, each once."""
    return known_seeds(store, ids, None)[0]


def times(store: ColumnarGraph, topics: Sequence[EntityId], repeat: int) -> list[Row]:
    """Measure two hops around each topic, and around the largest hub."""
    rows = []

    def answered(seed: EntityId, **bounds: int) -> str:
        return compact(bfs_query(store, BfsRequest.model_validate({"seeds": [seed], "max_hops": 2, **bounds})))

    subgraphs = [breadth_first(store, store.numbers([topic]), SearchScope(2)) for topic in topics]
    rows.append(labelled("two hops, median of topics", "nodes", median(len(each.nodes) for each in subgraphs)))
    rows.append(labelled("two hops, median of topics", "edges", median(len(each.edges) for each in subgraphs)))
    cases: list[tuple[str, Callable[[EntityId], object]]] = [
        ("search alone ms", lambda seed: breadth_first(store, store.numbers([seed]), SearchScope(2))),
        ("20 nodes ms", lambda seed: answered(seed, limit=20)),
        ("8,000 tokens ms", lambda seed: answered(seed, budget_tokens=8000)),
        ("200 nodes ms", lambda seed: answered(seed, limit=200)),
    ]
    degrees = store.degree(np.arange(store.node_count))
    hub = store.ids(np.array([int(degrees.argmax())]))[0]
    for label, run in cases:
        took = [seconds(partial(run, topic), repeat) for topic in topics]
        rows.append(labelled("two hops, median of topics", label, 1000 * median(took)))
        rows.append(labelled("two hops, largest hub", label, 1000 * seconds(partial(run, hub), repeat)))
    rows.append(labelled("two hops, largest hub", "edges of it", float(degrees.max())))
    return rows


@dataclass(frozen=True)
class Case:
    """A question, where to begin, and the right way from there."""

    question: str
    seed: EntityId
    predicates: Sequence[str]
    gold: frozenset[str]


def cases(store: ColumnarGraph, data: Path, examples: Sequence[Example], hops: int) -> Iterator[Case]:
    """Yield the questions of a data set in a folder whose annotated chain has so many edges and leads to an answer."""
    labels = read_labels(data)
    for example in examples:
        label = labels[example.id]
        gold = frozenset(map(str, example.answer_ids))
        for seed, path in [
            (seed, path)
            for path in (label["gold_relation_paths"] if label["hops"] == hops else ())
            for seed in known(store, example.topic_ids)
            if len(path) == hops and all(step in store.relations for step in path)
        ]:
            reached = (
                store.ids(neighbours(store, [seed], relations=path).other)
                if hops == 1
                else store.ids(follow(store, [seed], path).ends)
            )
            if gold.intersection(reached):
                yield Case(example.question, seed, path, gold)
                break


def turned(answer: Callable[[Json], Json], request: Json, shown: Callable[[Json], bool]) -> tuple[int, int]:
    """Return pages and tokens until one shows what is looked for; more pages than `MOST_PAGES` where none does."""
    tokens = 0
    for page in range(1, MOST_PAGES + 1):
        response = answer(request)
        tokens += estimate_tokens(compact(response))
        if shown(response):
            return page, tokens
        if "truncated" not in response:
            break
        request = {**request, "cursor": response["truncated"]["cursor"]}
    return MOST_PAGES + 1, tokens


def until_the_answer(tools: GraphTools, name: str, asked: Sequence[Case], make: Callable[[Case], Json]) -> list[Row]:
    """Measure how much is read before an answer is."""
    tool = "neighbors" if name.startswith("values") else "bfs_query"
    found = []
    for case in asked:

        def shown(response: Json, gold: frozenset[str] = case.gold) -> bool:
            nodes: list[Any] = [*response.get("nodes", ())]
            nodes += [value for group in response.get("values", ()) for value in group["values"]]
            names = {node["id"] for node in nodes}
            for node in nodes:
                for told in node.get("about", {}).values():
                    names |= {told} if isinstance(told, str) else set(told)
            return bool(gold & names)

        found.append(turned(partial(tools.call, tool), make(case), shown))
    pages, tokens = zip(*found, strict=True)
    return [
        labelled(name, "questions", len(asked)),
        labelled(name, "answer on page 1", sum(page == 1 for page in pages)),
        labelled(name, "p90 of pages", float(np.percentile(pages, 90, method="higher"))),
        labelled(name, "median tokens", median(tokens)),
        labelled(name, "p90 of tokens", float(np.percentile(tokens, 90, method="higher"))),
    ]


class Script(ScriptedChatModel):
    """Calls tools one after the other, then answers; counts what it is sent."""

    case: Case
    name: str
    sent: list[int] = Field(default_factory=list)

    def _rule(self, prompt: str) -> Rule:
        seed, predicates = self.case.seed, list(self.case.predicates)
        calls: list[tuple[str, Json]] = [
            ("describe_schema", {"question": self.case.question}),
            ("search_entities", {"query": self.name}),
            ("bfs_query", {"seeds": [seed]}),
            ("describe_entity", {"id": seed}),
            ("neighbors", {"id": seed, "predicates": predicates}),
        ]
        at = len(self.sent)
        self.sent.append(estimate_tokens(prompt))
        if at == len(calls):
            return Rule("<answers>\nnone\n</answers>")
        return Rule(stop="tool_use", tool_calls=({"name": calls[at][0], "args": calls[at][1]},))


def agents(store: ColumnarGraph, asked: Sequence[Case]) -> list[Row]:
    """Measure what an agent is sent while old results are folded, and while they stay."""
    entities, embedder = EntityLinker(store), StaticEmbedder()
    rows = []
    for name, folded in (("agent, old results folded", FOLDED_TOKENS), ("agent, all results whole", 1 << 20)):
        sent = []
        for case in asked:
            model = Script(case=case, name=store.nodes([case.seed])[0].name)
            BfsAgent(Parts(store, LanguageModel(model), embedder, entities=entities), folded_tokens=folded).run(
                Question("ask", case.question)
            )
            sent.append(sum(model.sent))
        rows.append(labelled(name, "median tokens sent", median(sent)))
    return rows


def main() -> int:
    parser = make_parser(__doc__, "folder with freebase_core and webqsp")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="number of questions (default: %(default)s)")
    parser.add_argument(
        "--of", choices=("webqsp", "cwq"), default="webqsp", help="data set of the dev split (default: %(default)s)"
    )
    parser.add_argument("--repeat", type=int, default=7, help="runs of each; the best counts")
    options = parser.parse_args()
    store = import_graph(options.data / "freebase_core" / "graph_full.tsv.xz")
    folder = options.data / options.of
    examples = [by_name(example) for example in Folder(folder, split="dev").examples()]
    examples = [example for example in examples if known(store, example.topic_ids)]
    one, two = ([*cases(store, folder, examples, hops)][: options.questions] for hops in (1, 2))
    rows = times(store, list(dict.fromkeys(case.seed for case in one)), options.repeat)
    tools = GraphTools(store)

    def request(case: Case, predicate: bool, question: bool, hops: int) -> Json:
        asked: Json = {"seeds": [case.seed], "max_hops": hops}
        asked |= {"edge_filter": {"predicates": list(case.predicates)}} if predicate else {}
        return asked | ({"question": case.question} if question else {})

    rows += until_the_answer(tools, "1 hop, predicate", one, lambda case: request(case, True, False, 1))
    rows += until_the_answer(tools, "1 hop, predicate and question", one, lambda case: request(case, True, True, 1))
    rows += until_the_answer(tools, "1 hop, question", one, lambda case: request(case, False, True, 1))
    rows += until_the_answer(tools, "1 hop, neither", one, lambda case: request(case, False, False, 1))
    rows += until_the_answer(
        tools, "values of the predicate", one, lambda case: {"id": case.seed, "predicates": list(case.predicates)}
    )
    rows += until_the_answer(tools, "2 hops, predicates", two, lambda case: request(case, True, False, 2))
    rows += until_the_answer(tools, "2 hops, question", two, lambda case: request(case, False, True, 2))
    rows += agents(store, one[:AGENT_QUESTIONS])
    show(rows, "BFS-QL", options.json)
    show_bars(rows, BARS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
