"""Time of the framework per question without the language model: ByoKG-RAG with all retrievers, replies replayed,
on one core; and size of the context at the graph's largest hub against its budget.

python benchmarks/pipeline_overhead.py [--data DIR] [--graph DIR] [--questions 200] [--profile FILE] [--json FILE]

A seeded sample of WebQSP's dev questions on `freebase_core/graph_full` (497,495 triples), with the retrievers path,
query (openCypher in ArcadeDB), agentic, text, rerank (both slots the shipped embedder) and bfsql, two rounds. A
scripted model writes the gold topics, paths and answers; its replies are recorded in a first pass.
The second pass, which is timed, replays them from the file, with all steps of a replayed run: prompts written,
keys computed, replies read and parsed, and the lines of the run folder written. It runs once without the engine and
once with it. `cpu` is the processor time of this process; `median` and `p95` are wall-clock times, including the
engine and other load of the machine. Then the hub: every edge of the node with the most edges as evidence, written
within several budgets.

`--graph` names an existing graph (`byokg graph build … --cypher`). The figures are not comparable with published
ones: see the data's caveats.
"""

from __future__ import annotations

import os

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before the first import that starts threads

import cProfile  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from benchmarks.lean import Gold, GoldModel, read_gold  # noqa: E402
from benchmarks.measure import timed  # noqa: E402
from benchmarks.rows import Row, make_parser, show  # noqa: E402
from byokg.evaluation.records import record_answer  # noqa: E402
from byokg.graph.columnar.graph import ColumnarGraph  # noqa: E402
from byokg.graph.engines.arcadedb import ArcadeStore  # noqa: E402
from byokg.graph.importers.choose import build_graph  # noqa: E402
from byokg.graph.store import GraphStore  # noqa: E402
from byokg.graph.traversal import neighbours, triples  # noqa: E402
from byokg.linking.parts import Budgets, Parts  # noqa: E402
from byokg.llm.model import LanguageModel  # noqa: E402
from byokg.llm.reply_store import RecordedReplies  # noqa: E402
from byokg.llm.usage import UsageMeter  # noqa: E402
from byokg.open import add_engine  # noqa: E402
from byokg.pipelines.byokg import byokg_pipeline  # noqa: E402
from byokg.pipelines.context import ContextWriter  # noqa: E402
from byokg.pipelines.loop import Loop  # noqa: E402
from byokg.retrieval.agentic import AgenticRetriever  # noqa: E402
from byokg.retrieval.bfsql import BfsqlRetriever  # noqa: E402
from byokg.retrieval.path import PathRetriever  # noqa: E402
from byokg.retrieval.query import QueryRetriever  # noqa: E402
from byokg.retrieval.text import RerankRetriever, TextRetriever  # noqa: E402
from byokg.types import Artifacts, Context, Linked, Question, TripleEvidence  # noqa: E402

CONTEXT_TOKENS = 6000
HUB_BUDGETS = (100, 1000, 6000)
WARM_UP = 5
_LISTED = re.compile(r"^  (\S+)", re.MULTILINE)


class KnowingModel(GoldModel):
    """Writes replies in the prompts' formats."""

    def written(self, system: str, user: str) -> str:
        """Return the reply to a prompt."""
        gold: Gold = self.gold[user.strip().splitlines()[-1].removeprefix("Question: ")]
        answers, paths = "\n".join(gold.answers[:3]), _paths(gold)
        if "Select the relations to follow" in system:
            wanted = {relation for path in gold.paths for relation in path}
            listed = list(dict.fromkeys(_LISTED.findall(user)))
            chosen = [relation for relation in listed if relation in wanted] or listed
            return f"<selected>\n{chr(10).join(chosen[:5])}\n</selected>"
        if "Select the entities to explore next" in system:
            return f"<next-entities>\n{answers}\n</next-entities>"
        if "Each fact begins with its number" in system:
            return "<answers>\n" + "\n".join(f"{answer} [e1]" for answer in gold.answers) + "\n</answers>"
        if "Graph context found so far" in user:
            return f"<entities>\n{answers}\n</entities>\n<paths>\n{paths}\n</paths>\n<answers>\n{answers}\n</answers>"
        topics = "\n".join(gold.topics)
        seeds = json.dumps({"seeds": list(gold.topics), "max_hops": 2})
        return (
            f"<entities>\n{topics}\n</entities>\n<paths>\n{paths}\n</paths>\n<opencypher>\n{_cypher(gold)}\n"
            f"</opencypher>\n<answers>\n{answers}\n</answers>\n<bfsql>\n{seeds}\n</bfsql>"
        )


def _paths(gold: Gold) -> str:
    return "\n".join(" -> ".join(path) for path in gold.paths[:3])


def _cypher(gold: Gold) -> str:
    topic = gold.topics[0].replace("\\", "\\\\").replace("'", "\\'")
    relation = gold.paths[0][0].replace("`", "``") if gold.paths else "type.object.name"
    return f"MATCH (a {{name: '{topic}'}})-[:`{relation}`]->(b) RETURN b.name LIMIT 20"


def pipeline(store: GraphStore, model: LanguageModel) -> Loop:
    """Put together all retrievers that the store allows, except the cross-encoder."""
    retrievers = {
        "path": PathRetriever,
        "query": QueryRetriever,
        "agentic": AgenticRetriever,
        "text": TextRetriever,
        "rerank": RerankRetriever,
        "bfsql": BfsqlRetriever,
    }
    return byokg_pipeline(Parts(store, model), retrievers=retrievers, budgets=Budgets(context_tokens=CONTEXT_TOKENS))


def measure(name: str, store: GraphStore, gold: Sequence[Gold], folder: Path, profile: Path | None) -> list[Row]:
    """Record the replies, then run all questions with replays and time each."""
    file = folder / f"{name}.sqlite"
    known = KnowingModel(gold={one.text: one for one in gold})
    with RecordedReplies(file) as replies:
        recording = pipeline(store, LanguageModel(known, store=replies))
        for one in gold:
            recording.run(Question(one.id, one.text))
    rows = []
    with RecordedReplies(file, "replay") as replies:
        meter = UsageMeter()
        replaying = pipeline(store, LanguageModel(known, store=replies, meter=meter))
        for one in gold[-WARM_UP:]:  # what is remembered of them is forgotten when they come again
            replaying.run(Question(one.id, one.text))
            meter.take(one.id)
        times, busy, calls, rounds, traces = [], [], [], [], []
        stages: dict[str, list[float]] = {}
        profiler = cProfile.Profile() if profile else None
        for one in gold:
            if profiler is not None:
                profiler.enable()
            began, computed = time.perf_counter(), time.process_time()
            answer = replaying.run(Question(one.id, one.text))
            usage = meter.take(one.id)
            lines = record_answer(answer, 0.0, usage)
            busy.append(1000 * (time.process_time() - computed))
            times.append(1000 * (time.perf_counter() - began))
            if profiler is not None:
                profiler.disable()
            calls.append(len(usage.calls))
            rounds.append(sum(bool(each.evidence) for each in answer.rounds))
            traces.append(len(lines.trace))
            for stage, seconds in answer.seconds.items():
                stages.setdefault(stage, []).append(1000 * seconds)
        if profiler is not None and profile is not None:
            profiler.dump_stats(profile.with_stem(f"{profile.stem}-{name}"))
        rows += [
            Row(f"{name}_median", float(np.median(times)), "ms"),
            Row(f"{name}_p95", float(np.percentile(times, 95)), "ms"),
            Row(f"{name}_cpu_median", float(np.median(busy)), "ms"),
            Row(f"{name}_cpu_p95", float(np.percentile(busy, 95)), "ms"),
            *(Row(f"{name}_{stage}_median", float(np.median(each)), "ms") for stage, each in stages.items()),
            Row(f"{name}_calls_mean", float(np.mean(calls)), "calls"),
            Row(f"{name}_rounds_mean", float(np.mean(rounds)), "rounds"),
            Row(f"{name}_trace_median", float(np.median(traces)) / 1000, "kB"),
        ]
    return rows


def hub(store: ColumnarGraph) -> list[Row]:
    """Write all edges of the largest hub as evidence, within several budgets."""
    degrees = store.degree(np.arange(store.node_count))
    [largest] = store.ids(np.asarray([int(degrees.argmax())]))
    found = triples(store, neighbours(store, [largest]))
    evidence = [TripleEvidence("text", 1.0, triple) for triple in found]
    context = Context().add(Artifacts(), Linked(), [evidence])
    rows = [Row("hub_edges", len(found), "triples")]
    for budget in HUB_BUDGETS:
        writer = ContextWriter(store, budget)
        written = writer.write(context)
        milliseconds = 1000 * timed(lambda: writer.write(context))[0]  # noqa: B023
        rows += [
            Row(f"hub_tokens_of_{budget}", written.tokens, "tokens"),
            Row(f"hub_lines_of_{budget}", len(written.shown), "lines"),
            Row(f"hub_time_of_{budget}", milliseconds, "ms"),
        ]
    return rows


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--graph", type=Path, help="graph folder with its openCypher engine (default: built)")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--profile", type=Path, help="write a profile for pstats; slows everything down")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = options.graph
        if place is None:
            place = folder / "full.graph"
            build_graph(options.data / "freebase_core" / "graph_full.tsv.xz", place)
            add_engine(place, "cypher")
        gold = [one for one in read_gold(options.data, "webqsp", "dev", options.questions) if one.topics]
        graph = ColumnarGraph.open(place)
        rows = hub(graph)
        rows += measure("columnar", graph, gold, folder, options.profile)
        engine = ArcadeStore.open(place)
        stack.callback(engine.close)
        rows += measure("with_query", engine, gold, folder, options.profile)
    show(rows, f"overhead of {len(gold)} questions, replies replayed, one core", options.json)


if __name__ == "__main__":
    main()
