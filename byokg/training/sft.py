"""Fine-tuning of a language model on question and query pairs, from the labels of `byokg train labels`.

Labels with `rivals` train a model that chooses among queries by their results: see `Pair.rivals`.

LoRA over any causal model of the hub, or all weights of a small one: gradient accumulation, batches of similar lengths,
a learning curve with the loss of held-out pairs, and resumption of a killed run from its last checkpoint. The output is
read by `llm.decoding.ConstrainedRanker`, with the same tokens of questions and queries.

Source: GraphRAFT (arXiv:2504.05478), "Synthesize ground-truth cypher" and "Implementation details".
Differs: the softmax of the loss compares the tokens of all queries and a sample of the others, not the whole vocabulary
(`SftSettings.vocabulary`).
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from byokg.errors import ConfigError, DatasetError, at_least, import_extra, one_of
from byokg.evaluation.datasets.base import read_json_lines
from byokg.files import json_line, write_file, write_json
from byokg.llm.decoding import PROMPT, encode, encode_prompts, load_tuned, yes_odds
from byokg.llm.local_weights import SFT_RECORD, weights_digest, weights_place

_CHECKPOINTS = "checkpoints"
_CURVE = "curve.jsonl"
_PURPOSE = "fine-tuning"
IGNORED = -100
"""Label of tokens that are not learnt."""
Target = Literal["query", "plan"]


@dataclass(frozen=True)
class Pair:
    """A question and the query that answers it best."""

    question: str
    query: str
    rivals: tuple[str, ...] = ()
    """Prompts of the question's wrong queries, `question` being that of the right one (`graphraft.check_prompt`): the
    loss is then the cross-entropy of the softmax over their `yes_odds`, and `query` is not written."""


@dataclass(frozen=True)
class SftSettings:
    """Settings of fine-tuning.

    Args:
        model: folder, of LoRA's as well, GGUF file, package of weights, or name on the model hub (`weights_place`),
            which may be large: its weights are loaded as `dtype`
        rank: of LoRA's matrices; 0 trains all weights
        alpha: LoRA's scale
        dropout: LoRA's
        targets: modules that LoRA changes: `all-linear`, or names separated by commas
        epochs: passes over the pairs
        batch: pairs in memory together
        accumulate: batches per weight update
        rate: highest learning rate
        held_out: share of pairs that are not trained on, but give the evaluation loss
        longest: tokens of a pair at most; longer ones are left out
        save_every: weight updates between two checkpoints
        seed: of the order of pairs, of dropout and of LoRA's first weights
        prompt: text before a query, with {question}; null takes that of ConstrainedRanker
        device: cpu or cuda; null takes a GPU if there is one
        dtype: bfloat16, float16, float32; null takes the type of the saved weights; all weights (rank=0) are float32
        target: what the model writes: the `query` of a label, or its `plan` (see `CandidateQuery.plan`)
        vocabulary: tokens that the softmax of the loss compares: those of all queries, and others drawn at random;
            0 compares all, which for 262,144 tokens and a small model takes longer than the rest
        threads: of the processor; null leaves the number to torch
    """

    model: str | None = None
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.05
    targets: str = "all-linear"
    epochs: float = 3.0
    batch: int = 4
    accumulate: int = 4
    rate: float = 2e-4
    held_out: float = 0.05
    longest: int = 512
    save_every: int = 200
    seed: int = 0
    prompt: str | None = None
    device: str | None = None
    dtype: str | None = None
    target: Target = "query"
    vocabulary: int = 32768
    threads: int | None = None

    def __post_init__(self) -> None:
        at_least(0, "is no rank", rank=self.rank)
        at_least(1, "trains nothing", batch=self.batch, accumulate=self.accumulate, longest=self.longest)
        at_least(1, "is no distance between checkpoints", save_every=self.save_every)
        at_least(0, "is no size of a vocabulary", vocabulary=self.vocabulary)
        one_of("target=", self.target, get_args(Target))
        if not (0 <= self.held_out < 1 and self.epochs > 0 and self.rate > 0):
            raise ConfigError(
                f"held_out={self.held_out}, epochs={self.epochs} and rate={self.rate} do not fit together; "
                "use a share below 1, and two numbers above 0"
            )


@dataclass(frozen=True)
class Tuned:
    """Result of fine-tuning."""

    trained: int
    """Pairs."""
    held_out: int
    left_out: int
    """Pairs that are too long."""
    loss_before: float
    """Mean loss per query token of the held-out pairs; of the training pairs if none is held out."""
    loss_after: float


def read_pairs(path: str | Path, target: Target = "query") -> tuple[list[Pair], str]:
    """Read what `byokg train labels` wrote: each question with its best query; those without one are left out.

    Args:
        path: JSON lines.
        target: what the model is to write: the query, or its plan, which is shorter.

    Returns:
        The pairs, and the digest of the file's content.

    Raises:
        DatasetError: the file cannot be read, or holds no pair.
    """
    file = read_json_lines(Path(path))
    pairs = []
    for record in file.records:
        queries = record.several("queries")
        if queries:
            best = queries[0]
            if not isinstance(best, dict) or not isinstance(best.get(target), str):
                raise record.wrong(f"holds a query that is no object with the text `{target}`; make labels anew")
            rivals = tuple(map(str, record.several("rivals")))
            pairs.append(Pair(record.text("question"), best[target], rivals))
    if not pairs:
        raise DatasetError(path, None, "holds no question with a query; make labels with: byokg train labels dataset=…")
    if len({bool(pair.rivals) for pair in pairs}) > 1:
        raise DatasetError(path, None, "holds labels with `rivals` and without; train on one kind in a file of its own")
    return pairs, file.checksum


def token_rows(tokenizer: Any, pairs: Sequence[Pair], prompt: str = PROMPT) -> list[dict[str, list[Any]]]:
    """Return the training rows: `input_ids`, and as `labels` the query and its end alone.

    The tokens are those of constrained decoding: the prompt's, then the query's by itself, then the end. With rivals,
    `rivals` are the tokens of all prompts, the right one first, and `input_ids` the longest.

    Raises:
        ConfigError: the tokenizer has no token that ends a text.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise ConfigError("the tokenizer has no token that ends a text (eos_token), so a model cannot learn to stop")
    texts = [text for pair in pairs for text in (pair.question, *pair.rivals)]
    prompts = iter(encode_prompts(tokenizer, [prompt.replace("{question}", text) for text in texts]))
    rows: list[_Row] = []
    for pair, write in zip(pairs, encode(tokenizer, [pair.query for pair in pairs]), strict=True):
        ask, *rivals = islice(prompts, 1 + len(pair.rivals))
        if rivals:
            rows.append({"input_ids": max(ask, *rivals, key=len), "labels": [write[0]], "rivals": [ask, *rivals]})
        else:
            rows.append({"input_ids": [*ask, *write, end], "labels": [*[IGNORED] * len(ask), *write, end]})
    return rows


def fine_tune(
    pairs: Sequence[Pair],
    out: str | Path,
    settings: SftSettings | None = None,
    model: tuple[Any, Any] | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Fine-tune a model and write it, with its tokenizer, into a folder.

    The folder belongs to one model, one list of pairs and one setting: an interrupted run continues from its last
    checkpoint with the same losses, and any other is refused. `curve.jsonl` there is the learning curve: a line for
    each checkpoint, with the mean loss of a target token since the last one.

    Args:
        pairs: training pairs.
        out: the folder; with LoRA it holds the adapter, which names its base model.
        settings: hyperparameters; None takes the defaults.
        model: model and tokenizer, in the place of `settings.model`.
        report: receives lines on the progress; the first estimates the time, from two batches.

    Raises:
        MissingExtra: torch, transformers or peft is not installed.
        ConfigError: no model is named, or it cannot be loaded, no pair is short enough, or the folder belongs to
            another run.
    """
    settings = settings or SftSettings()
    if model is None and not settings.model:
        raise ConfigError("there is no model to fine-tune; name one: train.model=FOLDER, or a name on the model hub")
    torch = import_extra("torch", "train", _PURPOSE)
    transformers = import_extra("transformers", "train", _PURPOSE)
    out = Path(out)
    base = None if model is not None else weights_digest(weights_place(str(settings.model)))
    _claim(out, pairs, settings.model if model is None else type(model[0]).__name__, settings, base)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    transformers.set_seed(settings.seed)
    network, tokenizer = model or load_tuned(str(settings.model), settings.device, settings.dtype)
    rows = [
        row
        for row in token_rows(tokenizer, pairs, settings.prompt or PROMPT)
        if len(row["input_ids"]) <= settings.longest
    ]
    if not rows:
        raise ConfigError(f"no pair has at most longest={settings.longest} tokens; allow more")
    random.Random(settings.seed).shuffle(rows)
    held = rows[: int(settings.held_out * len(rows))]
    training = rows[len(held) :]
    network = _adapted(network, settings) if settings.rank else network.float()
    run = _TrainingRun(torch, network, tokenizer, training, held, settings, out / _CHECKPOINTS)
    before, after = run.train(report)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return Tuned(len(training), len(held), len(pairs) - len(rows), before, after)


_Row = dict[str, list[Any]]


class _TrainingRun:
    """One training: its batches are drawn from the seed, so a checkpoint needs weights and their number alone."""

    def __init__(
        self,
        torch: Any,
        network: Any,
        tokenizer: Any,
        training: list[_Row],
        held: list[_Row],
        settings: SftSettings,
        folder: Path,
    ) -> None:
        self._torch, self._network, self._settings, self._folder = torch, network, settings, folder
        self._tokenizer = tokenizer
        self._training, self._checked = training, held or training
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        wanted = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
        network.to(wanted)
        self._device = wanted
        causal = network.get_base_model() if settings.rank else network
        self._body, self._head = causal.base_model, causal.get_output_embeddings()
        self._cap = getattr(causal.config, "final_logit_softcapping", None)
        self._columns = self._vocabulary([*training, *held])
        self._trained = {name: part for name, part in network.named_parameters() if part.requires_grad}
        self._optimizer = torch.optim.AdamW(self._trained.values(), lr=settings.rate, weight_decay=0.0)
        batches = self._batches(0)
        self._updates = max(1, round(settings.epochs * len(batches) / settings.accumulate))

    def _vocabulary(self, rows: Sequence[_Row]) -> Any:
        """Return the tokens that the softmax of the loss compares, ascending: those of targets, and drawn ones."""
        size = self._head.weight.shape[0]
        own = sorted({token for row in rows for token in row["labels"] if token != IGNORED})
        if not 0 < self._settings.vocabulary < size:
            return None
        others = random.Random(self._settings.seed).sample(range(size), min(size, self._settings.vocabulary))
        most = max(len(own), self._settings.vocabulary)
        chosen = list(dict.fromkeys([*own, *others]))[:most]
        return self._torch.tensor(sorted(chosen), device=self._device)

    def _batches(self, epoch: int) -> list[list[_Row]]:
        """Return the batches of one pass, of pairs of similar lengths, in random order."""
        draw = random.Random(f"{self._settings.seed} {epoch}")
        rows = draw.sample(self._training, len(self._training))
        size = self._settings.batch
        lengths = {id(row): _length(row) + draw.uniform(0, _MIXED) for row in rows}
        pools = [
            sorted(rows[at : at + 16 * size], key=lambda row: lengths[id(row)]) for at in range(0, len(rows), 16 * size)
        ]
        batches = [pool[at : at + size] for pool in pools for at in range(0, len(pool), size)]
        draw.shuffle(batches)
        return batches

    def _loss(self, batch: Sequence[_Row]) -> tuple[Any, int]:
        """Return the sum of the losses of a batch's target tokens, or of its choices, and their number."""
        torch, functional = self._torch, self._torch.nn.functional
        if "rivals" in batch[0]:
            odds = yes_odds(self._network, self._tokenizer, [prompt for row in batch for prompt in row["rivals"]])
            choices = odds.split([len(row["rivals"]) for row in batch])
            return -torch.stack([choice.log_softmax(0)[0] for choice in choices]).sum(), len(batch)
        longest = max(map(_length, batch))
        ids, labels = torch.full((len(batch), longest), self._pad), torch.full((len(batch), longest), IGNORED)
        mask = torch.zeros((len(batch), longest), dtype=torch.long)
        for at, row in enumerate(batch):
            size = _length(row)
            ids[at, :size], labels[at, :size] = torch.tensor(row["input_ids"]), torch.tensor(row["labels"])
            mask[at, :size] = 1
        ids, labels, mask = ids.to(self._device), labels.to(self._device), mask.to(self._device)
        hidden = self._body(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, :-1]
        wanted = labels[:, 1:]
        learnt = wanted != IGNORED
        wanted, weight, bias = wanted[learnt], self._head.weight, self._head.bias
        if self._columns is not None:
            wanted = torch.searchsorted(self._columns, wanted)
            weight, bias = weight[self._columns], None if bias is None else bias[self._columns]
        logits = functional.linear(hidden[learnt], weight, bias).float()
        if self._cap:
            logits = self._cap * torch.tanh(logits / self._cap)
        return functional.cross_entropy(logits, wanted, reduction="sum"), len(wanted)

    def _evaluate(self) -> float:
        """Return the mean loss of a target token of the held-out pairs."""
        self._network.eval()
        size = self._settings.batch
        rows = sorted(self._checked, key=_length)
        with self._torch.inference_mode():
            parts = [self._loss(rows[at : at + size]) for at in range(0, len(rows), size)]
        self._network.train()
        return float(sum(float(loss) for loss, _ in parts) / sum(tokens for _, tokens in parts))

    def train(self, report: Callable[[str], None]) -> tuple[float, float]:
        """Train, from the last checkpoint if there is one; return the held-out loss before and after."""
        settings, torch = self._settings, self._torch
        path = self._folder / "last.pt"
        first, epoch = 0, -1
        batches: Iterator[list[_Row]] = iter(())
        if path.is_file():
            held = torch.load(path, map_location=self._device, weights_only=True)
            with torch.no_grad():
                for name, part in self._trained.items():
                    part.copy_(held["weights"][name])
            self._optimizer.load_state_dict(held["optimizer"])
            first, curve = held["updates"], held["curve"]
            report(f"continues after {first:,} of {self._updates:,} updates")
        else:
            self._estimate(report)
            curve = [{"updates": 0, "loss": None, "held_out_loss": self._evaluate(), "seconds": 0.0}]
        self._network.train()
        total, tokens, began = 0.0, 0, time.monotonic() - curve[-1]["seconds"]
        for update in range(self._updates):
            taken: list[list[_Row]] = []
            while len(taken) < settings.accumulate:
                if (batch := next(batches, None)) is None:
                    epoch += 1
                    batches = iter(self._batches(epoch))
                else:
                    taken.append(batch)
            if update < first:
                continue
            torch.manual_seed(settings.seed * 1_000_003 + update)  # of dropout
            for group in self._optimizer.param_groups:
                group["lr"] = settings.rate * _share(update, self._updates)
            count = sum(label != IGNORED for batch in taken for row in batch for label in row["labels"])
            for batch in taken:
                loss, _ = self._loss(batch)
                (loss / count).backward()
                total += float(loss.detach())
            torch.nn.utils.clip_grad_norm_(self._trained.values(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            tokens += count
            done = update + 1
            if done % settings.save_every == 0 or done == self._updates:
                point = {"updates": done, "loss": total / tokens, "held_out_loss": self._evaluate()}
                curve.append({**point, "seconds": round(time.monotonic() - began, 1)})
                self._save(path, done, curve)
                total, tokens = 0.0, 0
                report(f"{done:,} of {self._updates:,} updates: {json.dumps(curve[-1])}")
        return curve[0]["held_out_loss"], curve[-1]["held_out_loss"]

    def _estimate(self, report: Callable[[str], None]) -> None:
        """Time two batches, and report how long all will take; no weight changes."""
        batches = sorted(self._batches(0), key=lambda batch: max(map(_length, batch)))
        middle = batches[len(batches) // 2]
        self._network.train()
        for _ in range(2):  # the first one also warms up
            began = time.monotonic()
            self._loss(middle)[0].backward()
            seconds = time.monotonic() - began
        self._optimizer.zero_grad(set_to_none=True)
        size = sum(part.numel() for part in self._trained.values())
        minutes = seconds * self._updates * self._settings.accumulate / 60
        report(
            f"{len(self._training):,} pairs, {self._updates:,} updates of {size:,} weights, {seconds:.2f} s a batch: "
            f"about {minutes:.1f} minutes"
        )

    def _save(self, path: Path, updates: int, curve: list[dict[str, Any]]) -> None:
        """Write a checkpoint in the place of the last one, whole or not at all, and the learning curve."""
        self._folder.mkdir(parents=True, exist_ok=True)
        weights = {name: part.detach() for name, part in self._trained.items()}
        state = {"updates": updates, "curve": curve, "weights": weights, "optimizer": self._optimizer.state_dict()}
        self._torch.save(state, new := path.with_suffix(".new"))
        new.replace(path)
        write_file(self._folder.parent / _CURVE, map(json_line, curve))


_MIXED = 8
"""Tokens by which lengths in a batch differ at least: pairs of exactly one length are often of one kind."""


def _length(row: _Row) -> int:
    return len(row["input_ids"])


def _share(update: int, updates: int) -> float:
    """Return the learning rate of an update as a share of the highest: up for a twentieth, then down to 0."""
    warm = max(1, updates // 20)
    return min((update + 1) / warm, (updates - update) / max(1, updates - warm + 1))


def _claim(out: Path, pairs: Sequence[Pair], model: str | None, settings: SftSettings, base: str | None) -> None:
    """Write the identity of a folder, with the digest of the base weights, or check it. Raises `ConfigError` if it
    differs."""
    digest = hashlib.sha256(b"".join(json_line(asdict(pair)) for pair in pairs)).hexdigest()
    record = {"schema": 1, "model": model, "pairs": len(pairs), "digest": digest, "settings": asdict(settings)}
    record["base"] = base
    path = out / SFT_RECORD
    if path.is_file():
        there = json.loads(path.read_text(encoding="utf-8"))
        differing = [name for name, value in record.items() if there.get(name) != value]
        if differing:
            raise ConfigError(
                f"{str(out)!r} belongs to a training with another {', '.join(differing)}; choose another folder"
            )
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, record)


def _adapted(network: Any, settings: SftSettings) -> Any:
    peft = import_extra("peft", "train", _PURPOSE)
    targets = settings.targets if settings.targets == "all-linear" else settings.targets.split(",")
    config = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    adapted = peft.get_peft_model(network, config)
    if settings.model:  # as it was named, and not the place in a cache
        adapted.peft_config["default"].base_model_name_or_path = settings.model
    return adapted
