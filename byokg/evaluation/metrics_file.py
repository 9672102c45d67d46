"""`metrics.json` of a run folder: what the run scored, and that it is finished.

`schema`, `profile`, `n`, `failed`, each metric with `value` and `ci95`, `by_type`, `by_hops`; `linked` with its own `n`
where topic entities are annotated; `retrieval` by metric, with `n`, `value` and `ci95`, `median_tokens` where prompts
were given graph context, and `loss`, the number of questions that each stage lost (`loss.STAGES`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.loss import STAGES
from byokg.evaluation.metrics import METRICS, PROFILE, RETRIEVAL_METRICS, Estimate, Metrics, PartEstimate, Summary
from byokg.evaluation.records import SCHEMA

METRICS_FILE = "metrics.json"


def metrics_json(metrics: Metrics) -> str:
    """Return the content of `metrics.json`."""
    record = {
        "schema": SCHEMA,
        "profile": PROFILE,
        **_summary(metrics.overall),
        "by_type": {key: _summary(summary) for key, summary in metrics.by_type.items()},
        "by_hops": {key: _summary(summary) for key, summary in metrics.by_hops.items()},
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def read_metrics(folder: Path) -> Metrics:
    """Read `metrics.json` back.

    Raises:
        RunError: the file is missing or not what this version writes.
    """
    path = folder / METRICS_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA or record["profile"] != PROFILE:
            raise RunError(f"{path}: schema {record['schema']}, profile {record['profile']!r} cannot be read here")
        return Metrics(
            overall=_read_summary(record),
            by_type={key: _read_summary(value) for key, value in record["by_type"].items()},
            by_hops={key: _read_summary(value) for key, value in record["by_hops"].items()},
        )
    except FileNotFoundError as error:
        raise RunError(f"no {METRICS_FILE} in {str(folder)!r}; the run is not finished, start it again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: cannot be read ({error!r}); remove it and start the run again") from error


def read_profile(folder: Path) -> str | None:
    """Return the metric profile of `metrics.json`; None where the run is not finished.

    Raises:
        RunError: the file is not what an evaluation writes.
    """
    path = folder / METRICS_FILE
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["profile"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: cannot be read ({error!r}); remove it and start the run again") from error


def _summary(summary: Summary) -> dict[str, object]:
    record: dict[str, object] = {"n": summary.n, "failed": summary.failed}
    for metric, estimate in summary.estimates.items():
        record[metric] = {"value": estimate.value, "ci95": list(estimate.ci95)}
    if summary.linked is not None:
        record["linked"] = _part(summary.linked)
    if summary.loss:
        record["retrieval"] = {name: _part(summary.retrieval[name]) for name in summary.retrieval}
        if summary.median_tokens is not None:
            record["median_tokens"] = summary.median_tokens
        record["loss"] = dict(summary.loss)
    return record


def _part(share: PartEstimate) -> dict[str, object]:
    return {"n": share.n, "value": share.value, "ci95": list(share.ci95)}


def _read_summary(record: Mapping[str, Any]) -> Summary:
    estimates = {}
    for metric in METRICS:
        low, high = record[metric]["ci95"]
        estimates[metric] = Estimate(record[metric]["value"], (low, high))
    retrieval, loss = record.get("retrieval", {}), record.get("loss", {})
    return Summary(
        record["n"],
        record["failed"],
        estimates,
        _read_part(record["linked"]) if "linked" in record else None,
        {name: _read_part(retrieval[name]) for name in RETRIEVAL_METRICS if name in retrieval},
        record.get("median_tokens"),
        {stage: loss[stage] for stage in STAGES if stage in loss},
    )


def _read_part(share: Mapping[str, Any]) -> PartEstimate:
    low, high = share["ci95"]
    return PartEstimate(share["value"], (low, high), share["n"])
