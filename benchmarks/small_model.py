"""Gain of constrained decoding with a small model, and its training: MetaQA, from random weights, on one core.

python benchmarks/small_model.py [--data DIR] [--json FILE] [--cache FOLDER] [--split test] [--questions N]

The model sees questions with their topic masked and writes relation paths. It is trained on weak labels from 0, 10 and
100 % of the dev questions (for each the path whose ends fit the gold answers best, found by walking), as often on few
as on many. Gold topics; the hop count is unknown. `constrained` takes the likeliest path among those that exist around
the topic, the result of beam search over their tokens with enough beams; `free` is the output of greedy decoding,
which counts as wrong if no such path starts at the topic (`not_runnable`). Hits@1 is the share of right answers
among the nodes that the path reaches, with at most 256 expanded per hop.
"""

from __future__ import annotations

import pickle
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.offline import Bench
from benchmarks.rows import Row, make_parser, show
from benchmarks.small_transformer import PROMPT, masked_question, path_text, small_model
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.graph.paths import labels
from byokg.linking.parts import Parts
from byokg.llm.decoding import encode
from byokg.offline.linker import OfflineLinker
from byokg.offline.pipeline import offline_pipeline
from byokg.training.sft import Pair, SftSettings, fine_tune

STEPS = 1200
BATCH = 64


@dataclass(frozen=True)
class Asked:
    """A question with the paths that exist around its topic."""

    hops: int
    question: str
    paths: tuple[str, ...]
    precision: tuple[float, ...]
    f1: tuple[float, ...]

    @property
    def label(self) -> str:
        """Return the path whose ends fit the answers best, of equal ones the shortest."""
        best = max(range(len(self.paths)), key=lambda at: (round(self.f1[at], 6), -len(self.paths[at].split())))
        return self.paths[best]


def enumerated(bench: Bench, split: str) -> list[Asked]:
    """Walk all paths around the topics of all questions."""
    kept = bench.options.cache / f"metaqa-{split}.pickle" if bench.options.cache else None
    if kept is not None and kept.is_file():
        return [Asked(*row) for row in pickle.loads(kept.read_bytes())]
    root = bench.options.data / "metaqa"
    graph = bench.graph("metaqa", MetaQA(root, hops=1).graph_source())
    linker = offline_pipeline(Parts(graph)).stages[0].linker
    assert isinstance(linker, OfflineLinker)
    rows = []
    for example in MetaQA(root, "all", split).examples():
        found = linker.score_candidates(example.to_question("gold"))
        gold = graph.numbers(example.answer_ids)
        paths, precision, f1 = [], [], []
        for growth in found.growths:
            sizes = np.diff(growth.bounds)
            hits = np.bincount(np.repeat(np.arange(len(growth)), sizes), np.isin(growth.ends, gold), len(growth))
            paths += [path_text(labels(graph, row)) for row in growth.steps]
            precision += (hits / sizes).tolist()
            f1 += (2 * hits / (sizes + len(gold))).tolist()
        rows.append(
            (
                example.hops or 0,
                masked_question(found.parsed.words, found.parsed.masked),
                tuple(paths),
                tuple(precision),
                tuple(f1),
            )
        )
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(rows))
    return [Asked(*row) for row in rows]


def likelihoods(model: Any, tokenizer: Any, question: str, paths: Sequence[str]) -> list[float]:
    """Return how likely each path is after a question, its end included: the question is read once."""
    import torch

    end = tokenizer.eos_token_id
    asked = tokenizer(PROMPT.replace("{question}", question))["input_ids"]
    rows = [[*tokens, end] for tokens in encode(tokenizer, paths)]
    ids = torch.tensor([[*row, *[end] * (max(map(len, rows)) - len(row))] for row in rows])
    with torch.inference_mode():
        read = model(torch.tensor([asked]), use_cache=True)
        cache = read.past_key_values
        cache.batch_repeat_interleave(len(rows))
        first = torch.log_softmax(read.logits[0, -1], -1)[ids[:, 0]]
        rest = torch.log_softmax(model(ids[:, :-1], past_key_values=cache).logits, -1)
        told = rest.gather(-1, ids[:, 1:, None])[..., 0]
    lengths = torch.tensor([len(row) for row in rows])
    inside = torch.arange(1, ids.shape[1])[None] < lengths[:, None]
    return list((first + (told * inside).sum(-1)).tolist())


def written(model: Any, tokenizer: Any, question: str) -> str:
    """Return what greedy decoding writes when nothing constrains it."""
    import torch

    ids = tokenizer(PROMPT.replace("{question}", question), return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=8,
            do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )
    return " ".join(tokenizer.convert_ids_to_tokens(out[0, ids.shape[1] :].tolist(), skip_special_tokens=True))


def judged(bench: Bench, name: str, model: Any, tokenizer: Any, tested: Sequence[Asked]) -> None:
    """Answer all questions, constrained and free, and keep the figures by hop count."""
    paths: dict[str, dict[str, None]] = defaultdict(dict)
    for one in tested:
        paths[one.question].update(dict.fromkeys(one.paths))
    told = {
        question: dict(zip(each, likelihoods(model, tokenizer, question, list(each)), strict=True))
        for question, each in paths.items()
    }
    free = {question: written(model, tokenizer, question) for question in paths}
    for hops in (1, 2, 3):
        mine = [one for one in tested if one.hops == hops]
        best = [max(range(len(one.paths)), key=lambda at: told[one.question][one.paths[at]]) for one in mine]
        right = [one.precision[at] for one, at in zip(mine, best, strict=True)]
        alone = [dict(zip(one.paths, one.precision, strict=True)).get(free[one.question]) for one in mine]
        bench.add(Row(f"{name}_{hops}hop_constrained_hits@1", float(np.mean(right)), "share"))
        bench.add(Row(f"{name}_{hops}hop_free_hits@1", float(np.mean([each or 0.0 for each in alone])), "share"))
        bench.add(Row(f"{name}_{hops}hop_free_not_runnable", float(np.mean([each is None for each in alone])), "share"))


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--cache", type=Path, help="folder that keeps the paths found around topics")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--questions", type=int, help="number of questions (default: all of the split)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        dev = [one for one in enumerated(bench, "dev") if one.paths]
        tested = [one for one in enumerated(bench, options.split) if one.paths]
        if options.questions:
            tested = random.Random(0).sample(tested, options.questions)
        random.Random(0).shuffle(dev)
        every = sorted({path for one in (*dev, *tested) for path in one.paths})
        pairs = [Pair(one.question, one.label) for one in dev]
        for share in (0.0, 0.1, 1.0):
            model, tokenizer = small_model(pairs, every)
            name = f"trained_on_{share:.0%}".replace("%", "_percent")
            if share:
                chosen = pairs[: int(share * len(pairs))]
                settings = SftSettings(
                    rank=0,
                    epochs=STEPS * BATCH / len(chosen),
                    batch=BATCH,
                    accumulate=1,
                    rate=3e-3,
                    held_out=0.02,
                    save_every=STEPS,
                    prompt=PROMPT,
                    device="cpu",
                )
                began = time.perf_counter()
                fine_tune(chosen, Path(folder) / name, settings, (model, tokenizer))
                bench.add(Row(f"{name}_training", time.perf_counter() - began, "s"))
            else:
                bench.add(Row("parameters", sum(part.numel() for part in model.parameters())))
            judged(bench, name, model.eval(), tokenizer, tested)
    show(bench.rows, f"small model on MetaQA, {options.split} split", options.json)


if __name__ == "__main__":
    main()
