"""Counts what language models take, by question and stage, and stops a run at its budget."""

from __future__ import annotations

import json
import math
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from byokg.errors import BudgetExceeded, ConfigError
from byokg.graph.schema_text import estimate_tokens
from byokg.llm.prices import Price, PriceTable
from byokg.llm.records import Call, Reply
from byokg.types import Consumption, Spending

OUTPUT_ASSUMED = 4096
"""Tokens that a reply may have at most, where the call does not say."""

_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "maxTokens")
_TOKENS_PER_MESSAGE = 10
"""What marks a message's beginning, role and end, generously."""


@dataclass(frozen=True)
class Budget:
    """What a run may spend at most; None is no limit. Replayed calls spend nothing.

    Raises:
        ConfigError: a limit is negative.
    """

    max_usd: float | None = None
    max_calls: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("max_usd", self.max_usd), ("max_calls", self.max_calls)):
            if limit is not None and not 0 <= limit < math.inf:
                raise ConfigError(f"budget.{name}={limit} is no budget; give 0 or more, or null for no limit")


def usd_budget(max_usd: float, max_calls: int | None = None) -> Budget:
    """Limit the money, and perhaps the calls as well."""
    return Budget(max_usd, max_calls)


def call_budget(max_calls: int, max_usd: float | None = None) -> Budget:
    """Limit the calls, and perhaps the money as well."""
    return Budget(max_usd, max_calls)


@dataclass(frozen=True)
class AnsweredCall:
    """A call, and what it was for."""

    stage: str
    call: Call


@dataclass(frozen=True)
class QuestionUsage:
    """What one question took by stage, and its calls in the order in which they were answered, each once."""

    stages: Mapping[str, Spending] = field(default_factory=dict)
    calls: tuple[AnsweredCall, ...] = ()


class UsageMeter:
    """Counts calls; fulfils `records.Meter`.

    Before a call is sent, the most that it can cost is reserved: its prompt's estimated tokens and its limit of tokens
    for the reply, at the dearest rate. A call that does not fit beside what others have reserved waits until these are
    settled, and a call that does not fit then ends the run: it and all that come after raise `BudgetExceeded`. So a
    run never spends more than its budget, however many workers it has. What a service may charge for attempts that
    were never answered is not known, and not counted.

    Args:
        prices: what models cost; None takes the table that ships.
        budget: what may be spent; None for no limit.
        spent: what the run spent before, when it is continued.
    """

    def __init__(
        self, prices: PriceTable | None = None, budget: Budget | None = None, spent: Spending | None = None
    ) -> None:
        self._prices = prices or PriceTable()
        self._budget = budget or Budget()
        self._settled = threading.Condition()
        self._questions: dict[str, _Question] = {}
        self._before = spent or Spending()
        self._total = Spending()
        self._reserved: dict[tuple[int, str], _Reserved] = {}
        self._stopped: str | None = None
        self._bought: set[str] = set()
        """Keys of calls answered in batches: their replies come out of the store, and are counted already."""
        self._carried = False
        self._unpriced: dict[str, None] = {}

    @property
    def total(self) -> Spending:
        """Return what was counted since this meter was made."""
        with self._settled:
            return self._total

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Return the models that were asked and have no known price."""
        with self._settled:
            return tuple(self._unpriced)

    def carry(self, spent: Spending) -> None:
        """Count what a continued run spent before against its budget; what comes later, this meter counts itself."""
        with self._settled:
            if not self._carried:
                self._before = spent
            self._carried = True

    def check(self, model: str) -> None:
        """Make sure that a budget in dollars can be kept with this model.

        Raises:
            ConfigError: the model's price is not known.
        """
        if self._budget.max_usd is not None and self._prices.find(model) is None:
            raise ConfigError(self._no_price(model))

    def before(self, call: Call, stage: str, question_id: str) -> None:
        """Reserve what a call may cost, waiting for others to be settled where it does not fit beside them.

        Raises:
            BudgetExceeded: it would go over the budget. Nothing more is sent in this run.
        """
        name = f"{call.provider}/{call.model}"
        price = self._prices.find(call.model)
        with self._settled:
            if price is None:
                self._unpriced.setdefault(name)
                if self._budget.max_usd is not None:
                    self._stop(self._no_price(call.model))
            usd = _most(call, price)
            while self._stopped is None:
                over = self._over(usd)
                if over is None:
                    key = (threading.get_ident(), call.key)
                    held = self._reserved.setdefault(key, _Reserved())
                    held.calls, held.usd = held.calls + 1, held.usd + usd
                    return
                if not self._reserved:
                    self._stop(over)
                else:
                    self._settled.wait()
            raise BudgetExceeded(name, self._stopped)

    def before_batch(self, calls: Sequence[Call]) -> int:
        """Reserve what calls may cost at the price of a batch.

        Returns:
            How many of them, from the first, the budget allows: at least one.

        Raises:
            BudgetExceeded: it allows none.
        """
        reserved = 0
        with self._settled:
            for call in calls:
                price = self._prices.find(call.model)
                usd = _most(call, price) * (price.batch if price else 1.0)
                over = self._over(usd)
                if price is None and self._budget.max_usd is not None:
                    over = self._no_price(call.model)
                if over is not None:
                    if not reserved:
                        self._stop(over)
                        raise BudgetExceeded(f"{call.provider}/{call.model}", self._stopped or over)
                    break
                held = self._reserved.setdefault((threading.get_ident(), call.key), _Reserved())
                held.calls, held.usd = held.calls + 1, held.usd + usd
                reserved += 1
        return reserved

    def after(
        self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool, batch: bool = False
    ) -> None:
        """Count a call that was answered, by itself or in a batch."""
        if replayed and call.key in self._bought:
            return
        if batch:
            self._bought.add(call.key)
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
            self._count(spent, stage, question_id).calls.setdefault((stage, call.key), AnsweredCall(stage, call))

    def failed(self, call: Call, retries: int, stage: str, question_id: str) -> None:
        """Count a call that was never answered."""
        with self._settled:
            self._release(call)
            self._count(Spending(failed=1, retries=retries), stage, question_id)

    def take(self, question_id: str) -> QuestionUsage:
        """Return what a question took, and forget it; the total keeps it."""
        with self._settled:
            return _frozen(self._questions.pop(question_id, None))

    def of(self, question_id: str) -> QuestionUsage:
        """Return what a question took so far."""
        with self._settled:
            return _frozen(self._questions.get(question_id))

    def _count(self, spent: Spending, stage: str, question_id: str) -> _Question:
        self._total += spent
        question = self._questions.setdefault(question_id, _Question())
        question.stages[stage] += spent
        return question

    def _release(self, call: Call) -> None:
        held = self._reserved.pop((threading.get_ident(), call.key), None)
        if held is not None:
            self._settled.notify_all()

    def _over(self, usd: float) -> str | None:
        """Say which limit one more call would go over."""
        spent = self._before + self._total
        limit = self._budget.max_calls
        calls = spent.asked.calls + spent.failed
        if limit is not None and calls + sum(held.calls for held in self._reserved.values()) + 1 > limit:
            return f"budget.max_calls={limit} is used up ({calls:,} calls)"
        most = self._budget.max_usd
        if most is not None and spent.asked.usd + sum(held.usd for held in self._reserved.values()) + usd > most:
            return (
                f"budget.max_usd={most:g} does not allow a call of up to ${usd:.4f} any more "
                f"(${spent.asked.usd:.4f} spent)"
            )
        return None

    def _stop(self, reason: str) -> None:
        self._stopped = f"{reason}; what is answered is kept: raise the budget and start the same command again"
        self._settled.notify_all()

    def _no_price(self, model: str) -> str:
        return f"the price of {model} is not known, so budget.max_usd cannot be kept; add it with prices=FILE"


@dataclass
class _Question:
    stages: defaultdict[str, Spending] = field(default_factory=lambda: defaultdict(Spending))
    calls: dict[tuple[str, str], AnsweredCall] = field(default_factory=dict)


@dataclass
class _Reserved:
    calls: int = 0
    usd: float = 0.0


def _frozen(question: _Question | None) -> QuestionUsage:
    return QuestionUsage() if question is None else QuestionUsage(dict(question.stages), tuple(question.calls.values()))


def _most(call: Call, price: Price | None) -> float:
    """Return what a call costs at most; 0 where its price is not known."""
    if price is None:
        return 0.0
    prompt = sum(estimate_tokens(message.text) + _TOKENS_PER_MESSAGE for message in call.messages)
    prompt += estimate_tokens(json.dumps(call.parameters.get("tools", []), default=str))
    prompt += sum(estimate_tokens(str(message.tool_calls)) for message in call.messages if message.tool_calls)
    limits = [call.parameters[name] for name in _OUTPUT_LIMITS if isinstance(call.parameters.get(name), int)]
    return price.most(prompt, max((limit for limit in limits if isinstance(limit, int)), default=OUTPUT_ASSUMED))
