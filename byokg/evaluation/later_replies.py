"""Runs whose replies come later: in batches at half price, or from another machine.

Each pass answers every question as far as the replies go that are there. What is missing is put aside, so one pass
collects the calls of one stage of all questions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from byokg.errors import RunIncomplete
from byokg.evaluation.metrics import Metrics
from byokg.llm.batches import AnthropicBatches, count_replies
from byokg.llm.pending import PendingCalls
from byokg.llm.records import Meter
from byokg.llm.request_files import OWN, remove_requests, write_requests

_TRIES = 3
"""Times that a call is sent whose batch came back without an answer or an error."""


def run_in_batches(
    run: Callable[[], Metrics],
    pending: PendingCalls,
    batches: AnthropicBatches,
    meter: Meter | None,
    note: Callable[[str], None],
) -> Metrics:
    """Run stage by stage until every question is answered.

    Args:
        run: one pass of the evaluation, as by `run_evaluation`; its language model puts calls aside in `pending`.
        pending: what the pass collected.
        batches: has the calls answered.
        meter: asked before a batch is sent, and told what came; None counts nothing.
        note: told in one line what happens.

    Raises:
        RunIncomplete: the budget is spent, or the service lets requests expire again and again. What was answered is
            recorded; the same run continues.
        LlmError: the service cannot be used.
    """
    expired: dict[str, int] = {}
    while True:
        try:
            return run()
        except RunIncomplete as stop:
            if stop.cause is not None:
                raise
            calls = [each for each in pending.take() if pending.store.get(each.call) is None]
            if meter is not None:
                for each in calls:
                    meter.before(each.call, each.stage, each.question_id)
            note(f"{stop.answered:,} of {stop.total:,} questions are answered; {len(calls):,} replies pending")
            try:
                unanswered = batches.answer(calls, note)
            finally:
                if meter is not None:
                    count_replies(meter, calls, pending.store)
            for key, reason in unanswered.items():
                expired[key] = expired.get(key, 0) + 1
                if reason.startswith("errored"):
                    pending.failed[key] = reason  # sending it again would end the same way
                elif expired[key] == _TRIES:
                    raise RunIncomplete(
                        stop.answered, stop.total, stop.pending, f"requests come back unanswered ({reason})"
                    ) from stop


def run_deferred(run: Callable[[], Metrics], pending: PendingCalls, requests: Path) -> Metrics:
    """Run as far as the replies go that are there, and write down what is missing.

    Args:
        run: one pass of the evaluation, as by `run_evaluation`; its language model puts calls aside in `pending`.
        pending: what the pass collected.
        requests: folder for the files of requests; removed when nothing is missing any more.

    Raises:
        RunIncomplete: replies are missing; the message says how many, and where the requests are.
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
