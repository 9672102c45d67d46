"""CandidateQuery queries: enumeration time, executability, and accuracy of their ranking.

python benchmarks/graphraft.py [--data DIR] [--json FILE] [--questions N]
                               [--parts enumerate,shortlist,hub,execute,write,link,answer,plans] [--neo4j URI]

`enumerate`: all candidates with their statistics around the gold topics of N WebQSP dev questions on
`freebase_core/graph_full`, and the quality of the best candidate. `shortlist`: the best of the 50 candidates that a
model would be shown, and the gold that all of them reach, on WebQSP and CWQ dev. `hub`: candidates around a node of
`--hub` edges, and of one with three times as many, beyond the budget: CPU seconds, and memory beyond the graph.
`execute`: every
candidate of `--executed` questions of MetaQA and of WebQSP goes through the guard, runs in ArcadeDB as literal text
and with parameters, and is walked in the arrays; each ranker (beam search over tokens,
guided requests, numbers, meaning) must return only candidates. For comparison, free queries of a strong
language model (`llm_replies`). `write`: a small model, trained on weak Cypher labels of MetaQA's
dev questions, writes queries for test questions, with the constraint and without. `link`: quality of the best
candidate with entities by the words of the question, by exact names, or as the nodes nearest in meaning. `answer`:
`pipeline=graphraft_offline` on test questions with gold topics. `plans`: one join of MetaQA's graph, begun at its
rare end and at its hub, in ArcadeDB and in the Neo4j of `--neo4j`, **whose database is emptied**, with the
planner's plan and forced ones.
"""

from __future__ import annotations

import functools
import json
import os
import random
import statistics
import tempfile
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.decoding import trained
from benchmarks.offline import Bench
from benchmarks.rows import Row, make_parser, show
from byokg.errors import QueryFailed, QueryRefused
from byokg.evaluation.cases import Case
from byokg.evaluation.datasets.base import Example, read_text
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import Folder, holds
from byokg.evaluation.profiles import STARK
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore, build_arcade
from byokg.graph.guard.guard import lint_query
from byokg.graph.store import Direction, QueryLimits
from byokg.index.embedders import StaticEmbedder
from byokg.linking.entities import EntityLinker, Method
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.decoding import PROMPT, ROOT, ConstrainedRanker, NumberRanker, TokenTrie, encode, guided_request
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_query
from byokg.offline.candidate_ranker import meaning_ranker
from byokg.pipelines.graphraft import CandidateScope, Mentions, graphraft_offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.retrieval.candidates import (
    TEMPLATES,
    CandidateQuery,
    CandidateRanker,
    Conditions,
    Templates,
    best_first,
    shortlist,
)
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.retrieval.subgraph import results
from byokg.training.labels import labels
from byokg.training.sft import Pair, SftSettings, fine_tune
from byokg.types import Context, EntityId, NodeCell, Question
from byokg.types import best_first as best_entities

WRITTEN = ("scoring_web", "scoring_cwq", "full_cwq")
LIMITS = QueryLimits(timeout_s=30.0, max_rows=20_000)


def freebase(bench: Bench, split: str, questions: str = "webqsp") -> tuple[ColumnarGraph, list[Example]]:
    """Return the whole assembled graph and the questions of a split of WebQSP or CWQ that have a topic in it."""
    source = bench.options.data / "freebase_core" / "graph_full.tsv.xz"
    graph = bench.graph("freebase_full", source)
    examples = Folder(bench.options.data / questions, split=split, graph=source, ids="names").examples()
    return graph, [one for one in examples if holds(graph, one.topic_ids)]


def enumerate_(bench: Bench) -> None:
    """Measure the time of one enumeration, in CPU seconds of its thread, and what the best candidate is worth."""
    graph, examples = freebase(bench, "dev")
    finder = CandidateFinder(graph)
    seconds, counts, best, recalls = [], [], [], []
    for example in examples[: bench.options.questions or None]:
        began = time.thread_time()
        found = finder.find(example.topic_ids, example.answer_ids).items
        seconds.append(time.thread_time() - began)
        counts.append(len(found))
        top = max(found, key=lambda one: one.f1, default=None)
        best.append(top.f1 if top else 0.0)
        recalls.append(top.recall if top else 0.0)
    for name, share in (("median", 50), ("p95", 95), ("slowest", 100)):
        bench.add(Row(f"enumeration_{name}", float(np.percentile(seconds, share)) * 1000, "ms"))
    bench.add(Row("candidates_median", float(np.median(counts)), "candidates"))
    bench.add(Row("best_candidate_f1", float(np.mean(best)), "share"))
    bench.add(Row("best_candidate_recall", float(np.mean(recalls)), "share"))


def shortlisted(bench: Bench) -> None:
    """Measure the candidates that a model would be shown."""
    for name in ("webqsp", "cwq"):
        graph, examples = freebase(bench, "dev", name)
        finder, ranker = CandidateFinder(graph), meaning_ranker(graph)
        drawn = random.Random(0).sample(examples, min(bench.options.questions or 500, len(examples)))
        best, reached = [], []
        for example in drawn:
            found = finder.find(example.topic_ids, example.answer_ids, Conditions.of(example.question)).items
            order = [position for position, _ in ranker.rank(example.question, found)]
            shown = [found[position] for position in shortlist(found, order, 50)]
            best.append(max((one.f1 for one in shown), default=0.0))
            gold = {id for one in shown if one.hits for id in results(graph, one)} & {*example.answer_ids}
            reached.append(len(gold) / len(set(example.answer_ids)))
        bench.add(Row(f"{name}_shortlist_f1", float(np.mean(best)), "share"))
        bench.add(Row(f"{name}_shortlist_reach", float(np.mean(reached)), "share"))


def hub(bench: Bench) -> None:
    """Measure enumerations that start at a hub, and that meet it on their way."""
    for times in (1, 3):
        graph = bench.graph(f"hub{times}", hub_tables(bench.folder / f"hub{times}", times * bench.options.hub))
        finder = CandidateFinder(graph)
        finder.find([EntityId("city")], (), HUB_ASKED)
        for name, anchors in (("at", ["hub"]), ("near", ["film7"]), ("both", ["hub", "film7"])):
            for asked in (Conditions(), HUB_ASKED):
                row = f"hub_{times * bench.options.hub}_edges_{name}{'_with_conditions' if asked is HUB_ASKED else ''}"
                began = time.thread_time()
                found = finder.find([EntityId(one) for one in anchors], (), asked)
                bench.add(Row(row, time.thread_time() - began, "s"))
                bench.console.print(f"  {len(found.items)} candidates; {'; '.join(found.truncated)}", highlight=False)
                tracemalloc.start()
                finder.find([EntityId(one) for one in anchors], (), asked)
                bench.add(Row(f"{row}_memory", tracemalloc.get_traced_memory()[1] / 1e6, "MB"))
                tracemalloc.stop()


HUB_ASKED = Conditions.of("how many of the first films in 1998?")


def hub_tables(folder: Path, edges: int) -> Path:
    """Write films and persons that lead to one node over five relations, to other films, and by it to a city."""
    folder.mkdir()
    kinds = ("Film", "Person")
    nodes = [f"film{at},Film {at},{kinds[at % 2]},{1900 + at % 120}\n" for at in range(edges)]
    lines = [f"film{at},r{at % 5},hub,{1900 + at % 100}\n" for at in range(edges)]
    lines += [f"film{7 * at},cites,film{11 * at + 1},\n" for at in range(2000)]
    (folder / "nodes.csv").write_text("".join(["id,name,type,year\nhub,Hub,Country,\ncity,City,City,1950\n", *nodes]))
    (folder / "edges.csv").write_text("".join(["head,relation,tail,since\nhub,capital,city,\n", *lines]))
    return folder


def trie_texts(trie: TokenTrie, tokenizer: Any) -> list[str]:
    """Return every text that a trie lets through."""
    texts: list[str] = []
    waiting: list[tuple[int, list[int]]] = [(ROOT, [])]
    while waiting:
        state, tokens = waiting.pop()
        for token in trie.allowed(state).tolist():
            if token == trie.end:
                texts.append(tokenizer.decode(tokens, clean_up_tokenization_spaces=False))
            else:
                waiting.append((trie.step(state, token), [*tokens, token]))
    return texts


def emitted(
    question: str, candidates: Sequence[CandidateQuery], local: tuple[Any, Any], by_meaning: CandidateRanker
) -> dict[str, list[str]]:
    """Return all texts that each way to choose among candidates lets through, or comes out with."""
    texts = [one.query for one in candidates]
    tokenizer = local[1]
    listed = "\n".join(str(number) for number in range(1, len(texts) + 1))
    model = LanguageModel(ScriptedChatModel(rules=(Rule(listed),)))
    rankers: dict[str, CandidateRanker] = {
        "beam_search": ConstrainedRanker(local, beams=20),
        "numbers": NumberRanker(model, len(texts), len(texts)),
        "meaning": by_meaning,
    }
    found = {name: [texts[at] for at, _ in ranker.rank(question, candidates)] for name, ranker in rankers.items()}
    found["trie"] = trie_texts(TokenTrie(encode(tokenizer, texts), tokenizer.eos_token_id), tokenizer)
    found["guided"] = list(guided_request(texts, "vllm_guided")["guided_choice"])  # type: ignore[arg-type]
    return found


def writer(texts: Sequence[str], width: int = 16, layers: int = 1) -> tuple[Any, Any]:
    """Return a language model of random weights that writes Cypher, with a byte-level tokenizer trained on texts."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=trained(texts), eos_token="<end>", pad_token="<end>")
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(fast), n_positions=512, n_embd=width, n_layer=layers, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config).eval(), fast


def execute(bench: Bench) -> None:
    """Run all candidates of some questions, and queries that were written freely."""
    graph, examples = freebase(bench, "dev")
    kb = bench.graph("metaqa", MetaQA(bench.options.data / "metaqa", hops=1).graph_source())
    hops = [one for count in (1, 2, 3) for one in MetaQA(bench.options.data / "metaqa", count, "dev").examples()[:2000]]
    for name, store, finder, questions in (
        ("metaqa", kb, CandidateFinder(kb, Templates(TEMPLATES)), hops),
        ("freebase", graph, CandidateFinder(graph), examples),
    ):
        build_arcade(store, bench.folder / f"{name}.arcade")
        with ArcadeStore.open(bench.folder / f"{name}.arcade", limits=LIMITS) as engine:
            engine.run("RETURN 1")
            drawn = random.Random(0).sample(list(questions), min(bench.options.executed, len(questions)))
            executed(bench, name, store, finder, engine, drawn)
            if name == "freebase":
                free: Counter[str] = Counter(outcome(engine, text) for text in written(bench.options.data))
                shares(bench, "free_queries", free)


def executed(
    bench: Bench,
    name: str,
    graph: ColumnarGraph,
    finder: CandidateFinder,
    engine: ArcadeStore,
    examples: Sequence[Example],
) -> None:
    """Run every candidate of some questions in all ways, and look up what each way to choose comes out with."""
    by_meaning = meaning_ranker(graph)
    outcomes: Counter[str] = Counter()
    chosen: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        found = finder.find(example.topic_ids, (), Conditions.of(example.question)).items
        told: dict[str, str] = {}
        for one in found:
            told[one.query] = said = outcome(engine, one.query, one)
            rows = engine.run(one.text, one.parameters, LIMITS).rows
            walked = results(graph, one)
            ids = [cell.id if isinstance(cell, NodeCell) else cell for (cell, *_) in rows]
            if said == "right" and ids != ([len(walked)] if one.count else walked):
                said = "differs"
            outcomes[said] += 1
        local = writer([one.query for one in found])
        for way, texts in emitted(example.question, found, local, by_meaning).items():
            chosen[way].update(told.get(text, "no_candidate") for text in texts)
    shares(bench, f"{name}_candidates", outcomes)
    for way in sorted(chosen):
        shares(bench, f"{name}_{way}", chosen[way])


def shares(bench: Bench, name: str, outcomes: Counter[str]) -> None:
    """Keep how many queries there were, and the share of each outcome."""
    bench.add(Row(f"{name}_run", outcomes.total(), "queries"))
    for said in sorted(outcomes):
        bench.add(Row(f"{name}_{said}", outcomes[said] / outcomes.total(), "share"))


def write(bench: Bench) -> None:
    """Train a small model on weak labels, and have it write with the constraint and without."""
    root = bench.options.data / "metaqa"
    kb = bench.graph("metaqa", MetaQA(root, hops=1).graph_source())
    finder = CandidateFinder(kb)
    dev, tested = (
        [one for hops in (1, 2) for one in random.Random(0).sample(list(MetaQA(root, hops, split).examples()), count)]
        for split, count in (("dev", 3000), ("test", min(150, bench.options.questions or 150)))
    )
    made = labels(kb, dev, lambda one: one.topic_ids, lambda one: one.answer_ids)
    pairs = [Pair(label.example.question, label.best[0].query) for label in made if label.best]
    random.Random(0).shuffle(pairs)
    build_arcade(kb, bench.folder / "metaqa-write.arcade")
    with ArcadeStore.open(bench.folder / "metaqa-write.arcade", limits=LIMITS) as engine:
        for share in (0.0, 0.1, 1.0):
            local = writer([text for pair in pairs for text in (pair.question, pair.query)], width=128, layers=2)
            if share:
                few = pairs[: int(share * len(pairs))]
                settings = SftSettings(
                    rank=0,
                    epochs=STEPS * 32 / len(few),
                    batch=32,
                    accumulate=1,
                    rate=2e-3,
                    save_every=STEPS,
                    held_out=0.02,
                    device="cpu",
                )
                fine_tune(few, bench.folder / f"writer-{share}", settings, local)
            outcomes: dict[str, Counter[str]] = {"free": Counter(), "constrained": Counter()}
            scores: dict[str, list[tuple[float, ...]]] = defaultdict(list)
            for one in tested:
                found = finder.find(one.topic_ids, one.answer_ids).items
                ranked = [found[at].query for at, _ in ConstrainedRanker(local).rank(one.question, found)]
                for way, texts in (("free", [freely(local, one.question)]), ("constrained", ranked)):
                    outcomes[way][outcome(engine, texts[0])] += 1
                    case = Case(one.id, one.answers, gold_ids=one.answer_ids, answers=first_nodes(engine, texts))
                    scores[way].append(STARK.score(case))
            for way, told in outcomes.items():
                name = f"{way}_trained_on_{share:.0%}".replace("%", "_percent")
                shares(bench, name, told)
                for metric, each in zip(STARK.metrics, zip(*scores[way], strict=True), strict=True):
                    bench.add(Row(f"{name}_{metric.name}", float(np.mean(each)), "share"))


STEPS = 400


def freely(local: tuple[Any, Any], question: str) -> str:
    """Return what greedy decoding writes when nothing constrains it."""
    import torch

    model, tokenizer = local
    ids = tokenizer(PROMPT.replace("{question}", question), return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        out = model.eval().generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=120, do_sample=False, pad_token_id=0
        )
    return str(tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True))


def first_nodes(engine: ArcadeStore, texts: Iterable[str], nodes: int = 20) -> tuple[EntityId, ...]:
    """Return the ids of the first nodes that some queries return, one query after the other until there are enough."""
    found: dict[EntityId, None] = {}
    for text in texts:
        if len(found) >= nodes:
            break
        try:
            rows = engine.run(text, limits=LIMITS).rows
        except QueryFailed:
            continue
        found.update(dict.fromkeys(cell.id for row in rows for cell in row if isinstance(cell, NodeCell)))
    return tuple(found)[:nodes]


def link(bench: Bench) -> None:
    """Measure the best candidate's worth by how entities were found, as Figure 5 of the paper does."""
    graph, of_webqsp = freebase(bench, "dev")
    root = bench.options.data / "metaqa"
    kb = bench.graph("metaqa", MetaQA(root, hops=1).graph_source())
    of_metaqa = [one for hops in (1, 2) for one in MetaQA(root, hops, "dev").examples()]
    for name, store, examples in (("webqsp", graph, of_webqsp), ("metaqa", kb, of_metaqa)):
        drawn = random.Random(0).sample(list(examples), min(bench.options.questions or 500, len(examples)))
        embedder = StaticEmbedder()
        ways: dict[str, Callable[[Example], Sequence[EntityId]]] = {"gold": lambda one: one.topic_ids}
        for way, method, top_k, cutoff, mentions in LINKED:
            linker = EntityLinker(store, method, top_k, dense_cutoff=cutoff, embedder=embedder)
            pipeline = graphraft_offline_pipeline(Parts(store, embedder=embedder, entities=linker), mentions=mentions)
            ways[way] = functools.partial(linked, pipeline)
        finder = CandidateFinder(store)
        for way, anchors in ways.items():
            best = []
            for one in drawn:
                found = best_first(finder.find(anchors(one), one.answer_ids).items)
                best.append(found[0] if found and found[0].hits else None)
            for metric in ("precision", "recall", "f1"):
                value = float(np.mean([getattr(each, metric) if each else 0.0 for each in best]))
                bench.add(Row(f"{name}_{way}_best_{metric}", value, "share"))


LINKED: tuple[tuple[str, Method, int, float, Mentions], ...] = (
    ("exact", "exact", 3, 0.5, "spotted"),
    ("fuzzy", "fuzzy", 3, 0.5, "spotted"),
    ("dense", "dense", 3, 0.5, "spotted"),
    ("2nn", "dense", 2, 0.0, "question"),
    ("5nn", "dense", 5, 0.0, "question"),
)


def linked(pipeline: Loop, example: Example) -> list[EntityId]:
    """Return the entities that a pipeline starts from, ten at most."""
    question = Question(example.id, example.question)
    found = pipeline.entities.link(pipeline.stages[0].linker.propose(question, Context()), question.text)
    return best_entities(found.entities)[:10]


def outcome(engine: ArcadeStore, text: str, candidate: CandidateQuery | None = None) -> str:
    """Say what became of a query: unreadable, forbidden, failed, unknown names, no rows, miscounted, or right."""
    try:
        rows = engine.run(text, limits=LIMITS)
    except QueryRefused as error:
        return "forbidden" if error.forbidden else "unreadable"
    except QueryFailed:
        return "failed"
    if candidate is not None:
        return "right" if candidate.count or len(rows) == candidate.total else "miscounted"
    if not rows.rows:
        return "unknown_names" if lint_query(engine, text) else "no_rows"
    return "with_rows"


def written(data: Path) -> Iterator[str]:
    """Yield the queries in recorded replies, each once."""
    found: dict[str, None] = {}
    for name in WRITTEN:
        for _, line in read_text(data / "llm_replies" / f"{name}.jsonl.xz").lines:
            query = read_query(json.loads(line)["reply"]["text"], "opencypher")
            found |= {query: None} if query else {}
    yield from found


def answer(bench: Bench) -> None:
    """Measure answers on test questions, gold topics."""
    root = bench.options.data / "metaqa"
    pipeline = graphraft_offline_pipeline(
        Parts(bench.graph("metaqa", MetaQA(root, hops=1).graph_source())), candidates=CandidateScope(hops=3)
    )
    for hops in (1, 2, 3):
        examples = bench.examples(MetaQA(root, hops=hops, split="test"))
        bench.evaluate(f"metaqa_{hops}hop", pipeline, examples, "gold", metrics=("hits@1", "hit", "f1"))
    source = bench.options.data / "freebase_core" / "graph.tsv.xz"
    examples = bench.examples(Folder(bench.options.data / "webqsp", split="test", graph=source, ids="names"))
    graph = bench.graph("freebase_core", source)
    bench.evaluate(
        "webqsp", graphraft_offline_pipeline(Parts(graph)), examples, "gold", metrics=("hits@1", "hit", "f1")
    )


JOIN = "{x1}-[:directed_by]-(x2)-[:has_genre]-{x3}"
BACK = "{x3}-[:has_genre]-(x2)-[:directed_by]-{x1}"
FOUND = "WHERE x2 <> x1 AND x2 <> x3 RETURN DISTINCT x2"
ENDS = {"x1": "Quentin Tarantino", "x3": "Drama"}
KINDS = {
    "Person": ("directed_by", "written_by", "starred_actors"),
    "Genre": ("has_genre",),
    "Year": ("release_year",),
    "Language": ("in_language",),
    "Tag": ("has_tags",),
}


def plans(bench: Bench) -> None:
    """Join a director with a genre from either end; the paper's Tables 3 and 4."""
    graph = bench.graph("metaqa", MetaQA(bench.options.data / "metaqa", hops=1).graph_source())
    build_arcade(graph, bench.folder / "metaqa-plans.arcade")
    ends = {x: f'({x} {{name: "{name}"}})' for x, name in ENDS.items()}
    with ArcadeStore.open(bench.folder / "metaqa-plans.arcade", limits=LIMITS) as engine:
        taken: dict[str, list[float]] = defaultdict(list)
        for _ in range(21):
            for name, pattern in (("director", JOIN), ("genre", BACK)):
                began = time.perf_counter()
                engine.run(f"MATCH {pattern.format(**ends)} {FOUND}")
                taken[name].append((time.perf_counter() - began) * 1000)
        for name, times in taken.items():
            bench.add(Row(f"arcadedb_written_from_{name}", statistics.median(times), "ms"))
    if bench.options.neo4j is None:
        bench.console.print("Neo4j is left out; name one to empty and fill with --neo4j URI", highlight=False)
        return
    import neo4j

    account = os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ.get("NEO4J_PASSWORD", "")
    with neo4j.GraphDatabase.driver(bench.options.neo4j, auth=account) as driver:
        fill_neo4j(driver.execute_query, graph)
        for told, label in (
            ("one_label", {"x1": "Entity", "x3": "Entity"}),
            ("kinds", {"x1": "Person", "x3": "Genre"}),
        ):
            ends = {x: f'({x}:{label[x]} {{name: "{name}"}})' for x, name in ENDS.items()}
            hints = {"chosen": "", **{f"from_{x}": f"USING INDEX {x}:{label[x]}(name) " for x in ENDS}}
            for way, hint in hints.items():
                text = f"PROFILE MATCH {JOIN.format(**ends)} {hint}{FOUND}"
                total = 0
                for step in plan_steps(driver.execute_query(text).summary.profile or {}):
                    total += step["dbHits"]
                    said = (step["args"]["Details"], round(step["args"].get("EstimatedRows", 0)), step["rows"])
                    shown = (step["operatorType"].partition("@")[0], *said, step["dbHits"])
                    bench.console.print(" ", *shown, sep=" | ", highlight=False, markup=False, soft_wrap=True)
                bench.add(Row(f"neo4j_{told}_{way}", total, "db hits"))


def plan_steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the operators of a plan, the one executed last first."""
    yield plan
    for child in plan.get("children", ()):
        yield from plan_steps(child)


def fill_neo4j(query: Callable[..., Any], graph: ColumnarGraph) -> None:
    """Put a graph in the place of what is there: every node an Entity, and also of its kind; names are indexed."""
    query("MATCH (n) DETACH DELETE n")
    for label in ("Entity", *KINDS):
        query(f"CREATE INDEX {label.lower()}_names IF NOT EXISTS FOR (n:{label}) ON (n.name)")
    names = [node.name for node in graph.nodes(list(graph.entities()))]
    query("UNWIND range(0, size($names) - 1) AS at CREATE (:Entity {name: $names[at], at: at})", names=names)
    query("CREATE INDEX entity_numbers IF NOT EXISTS FOR (n:Entity) ON (n.at)")
    query("CALL db.awaitIndexes(300)")
    batch = graph.edges(np.arange(graph.node_count), Direction.OUT)
    for number, relation in enumerate(graph.relations):
        pairs = np.stack((batch.head, batch.tail), 1)[batch.relation == number].tolist()
        query(
            "UNWIND $pairs AS pair MATCH (a:Entity {at: pair[0]}), (b:Entity {at: pair[1]}) "
            f"CREATE (a)-[:`{relation}`]->(b)",
            pairs=pairs,
        )
    for kind, relations in KINDS.items():
        query(f"MATCH (n:Entity)<-[:{'|'.join(relations)}]-() SET n:{kind}")
    query("CALL db.awaitIndexes(300)")
    query("CALL db.prepareForReplanning()")


PARTS = {
    "enumerate": enumerate_,
    "shortlist": shortlisted,
    "hub": hub,
    "execute": execute,
    "write": write,
    "link": link,
    "answer": answer,
    "plans": plans,
}


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, help="questions per set (default: all)")
    parser.add_argument("--executed", type=int, default=60, help="questions of each set whose candidates all run")
    parser.add_argument("--hub", type=int, default=1_000_000, help="edges of the smaller hub")
    parser.add_argument("--neo4j", help="address of a Neo4j for `plans`; its database is emptied")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        for part in options.parts.split(","):
            PARTS[part](bench)
    show(bench.rows, "GraphRAFT without training", options.json)


if __name__ == "__main__":
    main()
