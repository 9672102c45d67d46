"""Fine-tuning of a language model on question and query pairs, from the labels of `byokg train labels`.

LoRA over any causal model of the hub, or all weights of a small one, with transformers' own trainer: gradient
accumulation, evaluation loss, checkpoints, and resumption of a killed run from its last checkpoint. The output is read
by `llm.decoding.ConstrainedRanker`, with the same tokens of questions and queries.

Source: GraphRAFT (arXiv:2504.05478), "Synthesize ground-truth cypher" and "Implementation details".
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from byokg.errors import ConfigError, DatasetError, at_least, import_extra
from byokg.evaluation.datasets.base import read_json_lines
from byokg.files import json_line, write_json
from byokg.llm.decoding import PROMPT, encode

_RECORD = "sft.json"
_CHECKPOINTS = "checkpoints"
_PURPOSE = "fine-tuning"
IGNORED = -100
"""Label of tokens that transformers excludes from the loss."""


@dataclass(frozen=True)
class Pair:
    """A question and the query that answers it best."""

    question: str
    query: str


@dataclass(frozen=True)
class SftSettings:
    """Settings of fine-tuning.

    Args:
        model: folder or name on the model hub, which may be large: its weights are loaded as `dtype`
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
        dtype: bfloat16, float16, float32; null takes the type of the saved weights
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

    def __post_init__(self) -> None:
        at_least(0, "is no rank", rank=self.rank)
        at_least(1, "trains nothing", batch=self.batch, accumulate=self.accumulate, longest=self.longest)
        at_least(1, "is no distance between checkpoints", save_every=self.save_every)
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


def read_pairs(path: str | Path) -> tuple[list[Pair], str]:
    """Read what `byokg train labels` wrote: each question with its best query; those without one are left out.

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
            if not isinstance(best, dict) or not isinstance(best.get("query"), str):
                raise record.wrong("holds a query that is no object with the text `query`")
            pairs.append(Pair(record.text("question"), best["query"]))
    if not pairs:
        raise DatasetError(path, None, "holds no question with a query; make labels with: byokg train labels dataset=…")
    return pairs, file.checksum


def token_rows(tokenizer: Any, pairs: Sequence[Pair], prompt: str = PROMPT) -> list[dict[str, list[int]]]:
    """Return the training rows: `input_ids`, and as `labels` the query and its end alone.

    The tokens are those of constrained decoding: the prompt's, then the query's by itself, then the end.

    Raises:
        ConfigError: the tokenizer has no token that ends a text.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise ConfigError("the tokenizer has no token that ends a text (eos_token), so a model cannot learn to stop")
    asked = tokenizer([prompt.replace("{question}", pair.question) for pair in pairs])["input_ids"]
    asked = [row[:-1] if row and row[-1] == end else row for row in asked]
    written = encode(tokenizer, [pair.query for pair in pairs])
    return [
        {"input_ids": [*ask, *write, end], "labels": [*[IGNORED] * len(ask), *write, end]}
        for ask, write in zip(asked, written, strict=True)
    ]


def fine_tune(
    pairs: Sequence[Pair], out: str | Path, settings: SftSettings | None = None, model: tuple[Any, Any] | None = None
) -> Tuned:
    """Fine-tune a model and write it, with its tokenizer, into a folder.

    The folder belongs to one model, one list of pairs and one setting: an interrupted run continues from its last
    checkpoint, and any other is refused.

    Args:
        pairs: training pairs.
        out: the folder; with LoRA it holds the adapter, which names its base model.
        settings: hyperparameters; None takes the defaults.
        model: model and tokenizer, in the place of `settings.model`.

    Raises:
        MissingExtra: torch, transformers, peft or accelerate is not installed.
        ConfigError: no model is named, or it cannot be loaded, no pair is short enough, or the folder belongs to
            another run.
    """
    settings = settings or SftSettings()
    if model is None and not settings.model:
        raise ConfigError("there is no model to fine-tune; name one: train.model=FOLDER, or a name on the model hub")
    torch = import_extra("torch", "train", _PURPOSE)
    transformers = import_extra("transformers", "train", _PURPOSE)
    import_extra("accelerate", "train", _PURPOSE)
    out = Path(out)
    _claim(out, pairs, settings.model if model is None else type(model[0]).__name__, settings)
    transformers.set_seed(settings.seed)
    network, tokenizer = model or _loaded(settings, torch, transformers)
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
    if settings.rank:
        network = _adapted(network, settings)
    arguments = _training_arguments(transformers, out, settings, bool(held), torch.cuda.is_available())
    checked = held or training
    trainer = transformers.Trainer(
        model=network,
        args=arguments,
        train_dataset=training,
        eval_dataset=checked,
        data_collator=_collator(tokenizer, torch),
    )
    before = float(trainer.evaluate()["eval_loss"])
    trainer.train(resume_from_checkpoint=_last_checkpoint(out / _CHECKPOINTS))
    after = float(trainer.evaluate()["eval_loss"])
    trainer.model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return Tuned(len(training), len(held), len(pairs) - len(rows), before, after)


def _training_arguments(transformers: Any, out: Path, settings: SftSettings, evaluated: bool, cuda: bool) -> Any:
    """Return the arguments of transformers' trainer; `evaluated` if pairs are held out."""
    return transformers.TrainingArguments(
        output_dir=str(out / _CHECKPOINTS),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.rate,
        lr_scheduler_type="linear",
        warmup_steps=0.03,
        seed=settings.seed,
        data_seed=settings.seed,
        use_cpu=settings.device == "cpu" or not cuda,
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=2,
        eval_strategy="steps" if evaluated else "no",
        eval_steps=settings.save_every,
        logging_steps=settings.save_every,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


def _collator(tokenizer: Any, torch: Any) -> Callable[[Sequence[dict[str, list[int]]]], dict[str, Any]]:
    """Return a function that pads rows to one length."""
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id

    def collate(batch: Sequence[dict[str, list[int]]]) -> dict[str, Any]:
        longest = max(len(row["input_ids"]) for row in batch)
        ids = torch.full((len(batch), longest), pad)
        labels = torch.full((len(batch), longest), IGNORED)
        mask = torch.zeros((len(batch), longest), dtype=torch.long)
        for at, row in enumerate(batch):
            size = len(row["input_ids"])
            ids[at, :size], labels[at, :size], mask[at, :size] = (
                torch.tensor(row["input_ids"]),
                torch.tensor(row["labels"]),
                1,
            )
        return {"input_ids": ids, "labels": labels, "attention_mask": mask}

    return collate


def _last_checkpoint(folder: Path) -> str | None:
    """Return the last checkpoint that is whole: its state is written last, so one that lacks it was cut off."""
    whole = []
    for state in folder.glob("checkpoint-*/trainer_state.json"):
        try:
            whole.append((json.loads(state.read_text(encoding="utf-8"))["global_step"], str(state.parent)))
        except (ValueError, KeyError):
            continue
    return max(whole, default=(0, None))[1]


def _claim(out: Path, pairs: Sequence[Pair], model: str | None, settings: SftSettings) -> None:
    """Write the identity of a folder, or check it. Raises `ConfigError` if it differs."""
    digest = hashlib.sha256(b"".join(json_line(asdict(pair)) for pair in pairs)).hexdigest()
    record = {"schema": 1, "model": model, "pairs": len(pairs), "digest": digest, "settings": asdict(settings)}
    path = out / _RECORD
    if path.is_file():
        there = json.loads(path.read_text(encoding="utf-8"))
        differing = [name for name, value in record.items() if there.get(name) != value]
        if differing:
            raise ConfigError(
                f"{str(out)!r} belongs to a training with another {', '.join(differing)}; choose another folder"
            )
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, record)


def _loaded(settings: SftSettings, torch: Any, transformers: Any) -> tuple[Any, Any]:
    dtype = "auto" if settings.dtype is None else getattr(torch, settings.dtype, None)
    if dtype is None:
        raise ConfigError(f"dtype={settings.dtype} is unknown to torch; give bfloat16, float16 or float32")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(settings.model)
        return transformers.AutoModelForCausalLM.from_pretrained(settings.model, dtype=dtype), tokenizer
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"model={settings.model} cannot be loaded: {' '.join(str(error).split())[:300]}") from error


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
    return peft.get_peft_model(network, config)
