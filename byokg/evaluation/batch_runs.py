"""Runs with delayed replies: in batches at half price, or from another machine.

Each pass answers every question as far as recorded replies allow. Missing calls are put aside, so one pass collects the
calls of one stage of all questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from byokg.errors import BudgetExceeded, RunIncomplete
from byokg.evaluation.metrics import Metrics
from byokg.llm.batch import OWN, AnthropicBatches, PendingCall, PendingCalls, remove_requests, write_requests
from byokg.llm.usage import UsageMeter

_TRIES = 3
"""Times that a call is sent whose batch came back without an answer or an error."""


def run_in_batches(
    run: Callable[[], Metrics],
    pending: PendingCalls,
    batches: AnthropicBatches,
    meter: UsageMeter,
    note: Callable[[str], None],
) -> Metrics:
    """Run stage by stage until every question is answered.

    Args:
        run: one pass of the evaluation, as by `run_evaluation`; its language model puts calls aside in `pending`.
        pending: calls put aside by the pass.
        batches: sends calls as a batch and returns the replies.
        meter: checks the budget before a batch is sent, and counts its replies.
        note: called with one line per event.

    Raises:
        RunIncomplete: the budget is spent, or the service lets requests expire repeatedly. Answered questions are
            recorded; the same run continues.
        LlmError: the service cannot be used.
    """
    unanswered: Counter[str] = Counter()
    while True:
        stopped = None
        try:
            return run()
        except RunIncomplete as stop:
            if stop.cause is not None:
                raise
            stopped = stop
        # Outside of the handler, so that an error here does not appear as its consequence.
        calls = pending.take()
        try:
            calls = calls[: meter.before_batch([each.call for each in calls])]
        except BudgetExceeded as error:
            raise RunIncomplete(stopped.answered, stopped.total, stopped.pending, error) from error
        note(f"{stopped.answered:,} of {stopped.total:,} questions are answered; {len(calls):,} replies pending")
        try:
            failed = batches.answer(calls, note)
        finally:
            _count(meter, calls, pending)
        for key, reason in failed.items():
            unanswered[key] += 1
            if reason.startswith("errored"):
                pending.failed[key] = reason  # sending it again would end the same way
            elif unanswered[key] == _TRIES:
                why = f"the service leaves requests unanswered ({reason})"
                raise RunIncomplete(stopped.answered, stopped.total, stopped.pending, why)


def _count(meter: UsageMeter, calls: Sequence[PendingCall], pending: PendingCalls) -> None:
    """Count the replies that came for calls put aside; a call without one is counted as failed."""
    for each in calls:
        reply = pending.store.get(each.call)
        if reply is None:
            meter.failed(each.call, 0, each.stage, each.question_id)
        else:
            meter.after(each.call, reply, each.stage, each.question_id, replayed=False, batch=True)


def run_deferred(run: Callable[[], Metrics], pending: PendingCalls, requests: Path) -> Metrics:
    """Run as far as recorded replies allow, and write the missing calls to files.

    Args:
        run: one pass of the evaluation, as by `run_evaluation`; its language model puts calls aside in `pending`.
        pending: calls put aside by the pass.
        requests: folder for the files of requests; removed once no reply is missing.

    Raises:
        RunIncomplete: replies are missing; the message has their number and the place of the requests.
    """
    try:
        metrics = run()
    except RunIncomplete as stop:
        if stop.cause is not None:
            raise
        calls = pending.take()
        write_requests(calls, requests)
        raise RunIncomplete(
            stop.answered,
            stop.total,
            stop.pending,
            f"{len(calls):,} replies pending; have the requests in {requests / OWN} answered, take the replies in "
            "with: byokg cache import FILE, and start the same command again",
        ) from stop
    remove_requests(requests)
    return metrics
