"""What language models take: prices, tokens, what each question and stage spent, a run's budget, and estimates of it.

`UsageMeter` counts calls and stops a run at its `Budget`. Prices come from a table that ships with byokg
(`prices.yaml`) and from the user's own, which goes before it.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from byokg.errors import BudgetExceeded, ConfigError, import_extra
from byokg.llm.messages import Call, Reply, Usage
from byokg.text.names import ESTIMATE, estimate_tokens
from byokg.types import Consumption, Spending

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

MILLION = 1_000_000

_RATES = ("input", "output", "cache_read", "cache_write")
_FIELDS = ("models", *_RATES, "batch", "long_prompt", "date", "source")

_REGION = re.compile(r"(?:us-gov|us|eu|apac|ap|au|ca|jp|global)\.(?=[a-z0-9-]+\.)")
_VENDOR = re.compile(r"(?:anthropic|openai)[./]")
_SUFFIX = r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|default))?(?:-v\d+)?(?::\d+)?(?::\d+k)?"
"""Suffix of a model's id: a date, a version, a context length."""


@dataclass(frozen=True)
class Rates:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True)
class Price:
    """Price of one model.

    `long_rates` hold for calls whose whole prompt has more than `long_above` tokens. `batch` is the share of the
    price that a batch costs, in (0, 1].
    """

    rates: Rates
    long_above: int | None = None
    long_rates: Rates | None = None
    batch: float = 1.0
    date: str = ""
    source: str = ""

    def usd(self, usage: Usage, batch: bool = False) -> float:
        """Return the cost of a call."""
        rates = self.rates
        if self.long_above is not None and self.long_rates is not None and usage.input_tokens > self.long_above:
            rates = self.long_rates
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        paid = (
            fresh * rates.input
            + usage.cache_read_tokens * rates.cache_read
            + usage.cache_write_tokens * rates.cache_write
            + usage.output_tokens * rates.output
        )
        return paid / MILLION * (self.batch if batch else 1.0)

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """Return the highest cost of a call of these tokens, for any state of the provider's cache."""
        both = [self.rates, *([self.long_rates] if self.long_rates else [])]
        dearest = max(max(rates.input, rates.cache_write) for rates in both)
        return (input_tokens * dearest + output_tokens * max(rates.output for rates in both)) / MILLION


class PriceTable:
    """Prices by model id. The first entry that names a model counts; names without `*` go before those with.

    Args:
        own: the user's file, which goes before the table that ships; None for that table alone.

    Raises:
        ConfigError: the file cannot be read, or an entry is wrong; file and entry are named.
    """

    def __init__(self, own: str | Path | None = None) -> None:
        tables = [] if own is None else [_read_prices(Path(own).expanduser())]
        self._tables = [*tables, _shipped()]
        self._found: dict[str, Price | None] = {}

    def find(self, model: str) -> Price | None:
        """Return the price of a model by its id; None when none is known."""
        if model not in self._found:
            name = canonical_model(model)
            matching = (price for table in self._tables for pattern, price in table if pattern.fullmatch(name))
            self._found[model] = next(matching, None)
        return self._found[model]


def canonical_model(model: str) -> str:
    """Return a model's id without its location: an ARN, Bedrock's region, the vendor's name."""
    name = model.lower()
    if name.startswith("arn:"):
        name = name.rpartition("/")[2]
    return _VENDOR.sub("", _REGION.sub("", name, count=1), count=1)


_Patterns = Sequence[tuple[re.Pattern[str], Price]]


@cache
def _shipped() -> _Patterns:
    text = (resources.files("byokg.llm") / "prices.yaml").read_text("utf-8")
    return _table(yaml.safe_load(text), "byokg/llm/prices.yaml")


def _read_prices(path: Path) -> _Patterns:
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"prices {str(path)!r} cannot be read: {reason}; see byokg/llm/prices.yaml") from error
    return _table(content, str(path))


def _table(content: object, file: str) -> _Patterns:
    if not isinstance(content, list):
        raise ConfigError(f"{file}: prices are a list of entries with models, input and output")
    table = [pair for number, entry in enumerate(content, start=1) for pair in _entry(entry, f"{file}, entry {number}")]
    # A sort keeps the order of equals: exact names first, then as they stand in the file.
    table.sort(key=lambda pair: ".*" in pair[0].pattern)
    return table


def _entry(entry: object, place: str) -> _Patterns:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place}: is no mapping; write models, input and output")
    unknown = [str(name) for name in entry if name not in _FIELDS]
    if unknown:
        raise ConfigError(f"{place}: has no field {', '.join(unknown)}; there are {', '.join(_FIELDS)}")
    models = entry.get("models")
    if not isinstance(models, list) or not models or not all(isinstance(model, str) for model in models):
        raise ConfigError(f"{place}: models is no list of ids; write models: [my-model]")
    batch = entry.get("batch", 1)
    if not _is_number(batch) or not 0 < batch <= 1:
        raise ConfigError(f"{place}: batch={batch!r} is no share in (0, 1]; half price is 0.5")
    long = entry.get("long_prompt")
    if long is not None and not (isinstance(long, Mapping) and isinstance(long.get("above"), int)):
        raise ConfigError(f"{place}: long_prompt needs above, a number of tokens, and prices")
    price = Price(
        _rates(entry, place),
        None if long is None else long["above"],
        None if long is None else _rates(long, f"{place}, long_prompt"),
        float(batch),
        str(entry.get("date", "")),
        str(entry.get("source", "")),
    )
    return [(_pattern(model), price) for model in models]


def _pattern(model: str) -> re.Pattern[str]:
    parts = ".*".join(re.escape(part) for part in canonical_model(model).split("*"))
    return re.compile(parts + _SUFFIX)


def _rates(entry: Mapping[Any, Any], place: str) -> Rates:
    given: dict[str, float] = {}
    for name in _RATES:
        value = entry.get(name, entry.get("input"))
        if not _is_number(value) or value < 0:
            raise ConfigError(f"{place}: {name}={value!r} is no price; give US dollars per million tokens")
        given[name] = float(value)
    if "output" not in entry:
        raise ConfigError(f"{place}: output is missing; give US dollars per million tokens")
    return Rates(**given)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


MODEL = "model"
"""Counts with the tokenizer of a model that runs in this process."""


def token_counter(name: str = ESTIMATE, model: BaseChatModel | None = None) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text.

    The choice decides which evidence fits a prompt, so it is made by name and never by installed packages.

    Args:
        name: `estimate`; `model`, for models that run in this process; or an encoding of tiktoken (`o200k_base`,
            `cl100k_base`), which is downloaded once, or read from the folder named by `TIKTOKEN_CACHE_DIR`.
        model: owner of the tokenizer for `model`.

    Raises:
        MissingExtra: an encoding is named, and tiktoken is not installed.
        ConfigError: there is no such encoding, it cannot be loaded, or `model` has no tokenizer here.
    """
    if name == ESTIMATE:
        return estimate_tokens
    if name != MODEL:
        encoding = _encoding(name)
        return lambda text: len(encoding.encode_ordinary(text))
    # LangChain's default counts with the tokenizer of GPT-2, whatever the model is, and downloads it.
    from langchain_core.language_models.base import BaseLanguageModel

    if model is None or type(model).get_token_ids is BaseLanguageModel.get_token_ids:
        raise ConfigError(
            "tokens=model needs a language model that brings its tokenizer (llm=hf_local); "
            f"use tokens={ESTIMATE}, or an encoding of tiktoken such as tokens=o200k_base"
        )
    return model.get_num_tokens


@lru_cache(maxsize=4)
def _encoding(name: str) -> Any:
    tiktoken = import_extra("tiktoken", "openai", f"counting tokens with {name}")
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise ConfigError(f"tokens={name} is no way to count; choose {ESTIMATE}, {MODEL}, {', '.join(known)}")
    try:
        return tiktoken.get_encoding(name)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"the encoding {name} cannot be downloaded: {reason}; copy its file into the folder named by "
            f"TIKTOKEN_CACHE_DIR, or use tokens={ESTIMATE}"
        ) from error


OUTPUT_ASSUMED = 4096
"""Longest reply, in tokens, if the call has no limit."""

_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "maxTokens")
_TOKENS_PER_MESSAGE = 10
"""Tokens of a message's role and delimiters, a generous estimate."""


@dataclass(frozen=True)
class Budget:
    """Spending limits of a run; None is no limit. Replayed calls spend nothing.

    Raises:
        ConfigError: a limit is negative.
    """

    max_usd: float | None = None
    max_calls: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("max_usd", self.max_usd), ("max_calls", self.max_calls)):
            if limit is not None and not 0 <= limit < math.inf:
                raise ConfigError(f"budget.{name}={limit} is no budget; give 0 or more, or null for no limit")


@dataclass(frozen=True)
class AnsweredCall:
    """A call with its stage."""

    stage: str
    call: Call


@dataclass(frozen=True)
class QuestionUsage:
    """Usage of one question by stage, and its calls in the order of their replies.

    There are as many calls as `stages` counts as asked and replayed together.
    """

    stages: Mapping[str, Spending] = field(default_factory=dict)
    calls: tuple[AnsweredCall, ...] = ()


class UsageMeter:
    """Counts calls; fulfils `messages.Meter`.

    Before a call is sent, its highest possible cost is reserved: its prompt's estimated tokens and its limit of tokens
    for the reply, at the highest rate. A call that does not fit beside other reservations waits until these are
    settled, and a call that does not fit then ends the run: it and all later ones raise `BudgetExceeded`. So a
    run never spends more than its budget, for any number of workers. Charges of a service for unanswered attempts are
    unknown, and not counted.

    Args:
        prices: of models; None takes the table of the package.
        budget: spending limits; None for no limit.
    """

    def __init__(self, prices: PriceTable | None = None, budget: Budget | None = None) -> None:
        self._prices = prices or PriceTable()
        self._budget = budget or Budget()
        self._settled = threading.Condition()
        self._questions: defaultdict[str, _QuestionSpending] = defaultdict(_QuestionSpending)
        self._before: Spending | None = None
        """Spending of a continued run before this start."""
        self._total = Spending()
        self._reserved: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
        """US dollars held for each call that is under way, by thread and key."""
        self._stopped: str | None = None
        self._unpriced: dict[str, None] = {}

    @property
    def total(self) -> Spending:
        """Return the total since this meter was made."""
        with self._settled:
            return self._total

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Return the models that were called and have no known price."""
        with self._settled:
            return tuple(self._unpriced)

    def carry(self, spent: Spending) -> None:
        """Count earlier spending of a continued run against its budget; later spending is counted as usual."""
        with self._settled:
            if self._before is None:
                self._before = spent

    def check(self, model: str) -> None:
        """Make sure that a budget in dollars can be kept with this model.

        Raises:
            ConfigError: the model's price is not known.
        """
        if self._budget.max_usd is not None and self._prices.find(model) is None:
            raise ConfigError(self._no_price(model))

    def before(self, call: Call, stage: str, question_id: str) -> None:
        """Reserve the cost of a call, waiting for others to be settled if it does not fit beside them.

        Raises:
            BudgetExceeded: it would go over the budget. Nothing more is sent in this run.
        """
        with self._settled:
            while self._stopped is None:
                usd, over = self._most(call)
                if over is None:
                    self._reserved[threading.get_ident(), call.key].append(usd)
                    return
                if self._reserved:
                    self._settled.wait()
                else:
                    self._stop(over)
            raise BudgetExceeded(f"{call.provider}/{call.model}", self._stopped)

    def before_batch(self, calls: Sequence[Call]) -> int:
        """Reserve the cost of calls at the price of a batch.

        Returns:
            Number of them, from the first, within the budget: at least one.

        Raises:
            BudgetExceeded: none is within it.
        """
        with self._settled:
            for number, call in enumerate(calls):
                usd, over = self._most(call, batch=True)
                if over is not None and number:
                    return number
                if over is not None:
                    raise BudgetExceeded(f"{call.provider}/{call.model}", self._stop(over))
                self._reserved[threading.get_ident(), call.key].append(usd)
        return len(calls)

    def after(
        self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool, batch: bool = False
    ) -> None:
        """Count a call that was answered, by itself or in a batch."""
        price = self._prices.find(call.model)
        usage = reply.usage
        took = Consumption(
            1,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            reply.seconds,
            0.0 if price is None else price.usd(usage, batch),
            int(price is None),
        )
        spent = Spending(replayed=took) if replayed else Spending(asked=took, retries=reply.retries)
        with self._settled:
            if price is None:
                self._unpriced.setdefault(f"{call.provider}/{call.model}")
            if not replayed:
                self._release(call)
            question = self._questions[question_id]
            if replayed and call.key in question.bought:
                question.bought.remove(call.key)  # counted when its batch was answered
                question.used.append(call.key)
            else:
                self._count(spent, stage, question_id)
            if batch:
                question.bought.append(call.key)  # the question replays it when it goes on
            else:
                question.calls.append(AnsweredCall(stage, call))

    def failed(self, call: Call, retries: int, stage: str, question_id: str) -> None:
        """Count a call that was never answered."""
        with self._settled:
            self._release(call)
            self._count(Spending(failed=1, retries=retries), stage, question_id)

    def wait(self, question_id: str) -> None:
        """Forget the replays of a question that has to wait: it replays all of them when it continues."""
        with self._settled:
            question = self._questions[question_id]
            for stage, spent in list(question.stages.items()):
                self._total = replace(self._total, replayed=self._total.replayed - spent.replayed)
                question.stages[stage] = replace(spent, replayed=Consumption())
                if question.stages[stage] == Spending():
                    del question.stages[stage]
            question.bought += question.used
            question.used.clear()
            question.calls.clear()

    def take(self, question_id: str) -> QuestionUsage:
        """Return the usage of a question, and forget it; the total keeps it."""
        with self._settled:
            question = self._questions.pop(question_id, _QuestionSpending())
        return QuestionUsage(dict(question.stages), tuple(question.calls))

    def _count(self, spent: Spending, stage: str, question_id: str) -> None:
        self._total += spent
        self._questions[question_id].stages[stage] += spent

    def _release(self, call: Call) -> None:
        if self._reserved.pop((threading.get_ident(), call.key), None) is not None:
            self._settled.notify_all()

    def _most(self, call: Call, batch: bool = False) -> tuple[float, str | None]:
        """Return the highest cost of a call, and the limit it would go over; the costs are 0 without a price."""
        price = self._prices.find(call.model)
        if price is None:
            self._unpriced.setdefault(f"{call.provider}/{call.model}")
            if self._budget.max_usd is not None:
                return 0.0, self._no_price(call.model)
        usd = 0.0 if price is None else price.most(*_most_tokens(call)) * (price.batch if batch else 1.0)
        spent = self._total + (self._before or Spending())
        held = [each for reserved in self._reserved.values() for each in reserved]
        limit = self._budget.max_calls
        calls = spent.asked.calls + spent.failed
        if limit is not None and calls + len(held) + 1 > limit:
            return usd, f"budget.max_calls={limit} is used up ({calls:,} calls)"
        most = self._budget.max_usd
        if most is not None and spent.asked.usd + sum(held) + usd > most:
            allows = f"budget.max_usd={most:g} does not allow a call of up to ${usd:.4f} any more"
            return usd, f"{allows} (${spent.asked.usd:.4f} spent)"
        return usd, None

    def _stop(self, reason: str) -> str:
        """Let no more calls through, and return why."""
        self._stopped = f"{reason}; what is answered is kept: raise the budget and start the same command again"
        self._settled.notify_all()
        return self._stopped

    def _no_price(self, model: str) -> str:
        return f"the price of {model} is not known, so budget.max_usd cannot be kept; add it with prices=FILE"


@dataclass
class _QuestionSpending:
    stages: defaultdict[str, Spending] = field(default_factory=lambda: defaultdict(Spending))
    calls: list[AnsweredCall] = field(default_factory=list)
    bought: list[str] = field(default_factory=list)
    """Keys of calls answered in batches, which were counted then and are still to be replayed; `used` ones were."""
    used: list[str] = field(default_factory=list)


def _most_tokens(call: Call) -> tuple[int, int]:
    """Return how many tokens a call has at most: of its prompt, and of the reply."""
    prompt = sum(estimate_tokens(message.text) + _TOKENS_PER_MESSAGE for message in call.messages)
    prompt += estimate_tokens(json.dumps(call.parameters.get("tools", []), default=str))
    prompt += sum(estimate_tokens(str(message.tool_calls)) for message in call.messages if message.tool_calls)
    limits = [limit for name in _OUTPUT_LIMITS if isinstance(limit := call.parameters.get(name), int)]
    return prompt, max(limits, default=OUTPUT_ASSUMED)


# Estimates of a run

_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom."""


@dataclass(frozen=True)
class Range:
    """An expected value and its 95 % prediction interval; both ends equal it when all questions were sampled."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class RunEstimate:
    """Estimated usage of a whole run without recorded replies."""

    sampled: int
    questions: int
    calls: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range
    unpriced: bool
    """Some calls were of models whose price is not known; `usd` leaves them out."""


def estimate_run(sample: Sequence[Spending], questions: int) -> RunEstimate:
    """Estimate a run from its questions answered so far.

    Replayed calls count as if they had been sent, so an estimate does not depend on recorded replies.

    Args:
        sample: usage of each sampled question, at least one; drawn at random, or the figures are off.
        questions: of the whole run, at least as many as were sampled.

    Raises:
        ConfigError: the sample is empty, or larger than the run.
    """
    if not 1 <= len(sample) <= questions:
        raise ConfigError(f"{questions:,} questions cannot be estimated from {len(sample):,}; sample between 1 and all")
    took = [each.asked + each.replayed for each in sample]

    def extrapolated(measure: Callable[[Consumption], float]) -> Range:
        return _predicted([float(measure(each)) for each in took], questions)

    return RunEstimate(
        len(sample),
        questions,
        extrapolated(lambda each: each.calls),
        extrapolated(lambda each: each.input_tokens),
        extrapolated(lambda each: each.output_tokens),
        extrapolated(lambda each: each.usd),
        any(each.unpriced for each in took),
    )


def estimate_text(estimate: RunEstimate) -> str:
    """Return an estimate as a few lines of text."""
    lines = [
        f"{estimate.questions:,} questions, estimated from {estimate.sampled:,} (95 % interval in brackets):",
        f"  calls       {_shown(estimate.calls, _count)}",
        f"  tokens in   {_shown(estimate.input_tokens, _count)}",
        f"  tokens out  {_shown(estimate.output_tokens, _count)}",
    ]
    if estimate.unpriced and estimate.usd.expected == 0:
        lines.append("  US dollars  unknown: the model has no price; add it with prices=FILE")
    else:
        some = ", without models that have no price" if estimate.unpriced else ""
        lines.append(f"  US dollars  {_shown(estimate.usd, dollars)}{some}")
    return "\n".join(lines)


def dollars(usd: float) -> str:
    """Return an amount of money with enough digits to differ from zero."""
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def _predicted(values: Sequence[float], total: int) -> Range:
    """Return the sum over `total` draws of which `values` are known.

    The rest is predicted with the uncertainty of the mean and the scatter of the questions themselves (normal theory).
    """
    n, rest = len(values), total - len(values)
    known = sum(values)
    mean = known / n
    expected = known + rest * mean
    if rest == 0:
        return Range(expected, expected, expected)
    if n == 1:
        return Range(expected, known, math.inf)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    t = _T95[n - 2] if n - 1 <= len(_T95) else 1.96 + 2.5 / (n - 1)
    half = t * deviation * math.sqrt(rest * (1 + rest / n))
    return Range(expected, max(known, expected - half), expected + half)


def _shown(found: Range, form: Callable[[float], str]) -> str:
    if found.low == found.high:
        return form(found.expected)
    high = "any number" if found.high == math.inf else form(found.high)
    return f"{form(found.expected)} ({form(found.low)} to {high})"


def _count(value: float) -> str:
    return f"{value:,.0f}"
