"""Folders of path-scorer weights: those of the package, and those that `byokg fit` writes.

A folder holds `weights.json`, after a fit to a graph its calibration `confidence.json` (`offline.calibration`), and the
files of a trained ranker, if any (`path_ranker`). Features are cosines, whose distribution depends on the embedder:
weights belong to the embedder that they were fitted with. The defaults of `path_scorer.Weights` are those of the
shipped static embedder; those of others lie in `data/weights`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from byokg.errors import ConfigError
from byokg.files import write_json
from byokg.index.embedders import Embedder, folder_name, is_multilingual, shipped_embedder
from byokg.offline.path_scorer import Weights

SHIPPED = Path(__file__).resolve().parent.parent / "data" / "weights"
"""A folder for each embedder, under its name."""

STATIC = "static-128-int8-65d26be1dd0e"
"""The embedder that ships with the package."""

SCHEMA = 1
FILE = "weights.json"
RANKER_FILE = "ranker.json"
CONFIDENCE_FILE = "confidence.json"

_FEATURE_NAMES = tuple(field.name for field in fields(Weights))
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FittedWeights:
    """Content of a folder of weights."""

    weights: Weights
    ranker: Path | None
    """The folder itself, if it holds a ranker of paths, too."""
    confidence: Path | None
    """The file of calibration weights, if any."""


def save_weights(folder: Path, weights: Weights, embedder: str, record: Mapping[str, object]) -> None:
    """Write weights into a folder that exists; `record` describes their training data and quality."""
    write_json(folder / FILE, {"schema": SCHEMA, "embedder": embedder, **record, "weights": asdict(weights)})


def read_weights(folder: str | Path, embedder: str) -> FittedWeights:
    """Read what `byokg fit` wrote.

    Args:
        folder: the folder, or its `weights.json`.
        embedder: name of the embedder that they are to be used with.

    Raises:
        ConfigError: there are no weights, or they belong to another embedder or to other features.
    """
    folder = Path(folder).expanduser()
    folder = folder.parent if folder.name == FILE else folder
    fit = "fit them anew with: byokg fit dataset=… --out DIR"
    try:
        held = json.loads((folder / FILE).read_text("utf-8"))
        schema, fitted_with = held["schema"], held["embedder"]
        values = {str(name): float(value) for name, value in held["weights"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"no weights can be read in {str(folder)!r} ({error}); {fit}") from error
    if fitted_with != embedder:
        raise ConfigError(
            f"the weights in {str(folder)!r} were fitted with the embedder {fitted_with!r}, and this run has "
            f"{embedder!r}; choose that embedding, or {fit}"
        )
    if schema != SCHEMA or set(values) != set(_FEATURE_NAMES):
        other = ", ".join(sorted(set(values) ^ set(_FEATURE_NAMES))) or "none"
        raise ConfigError(
            f"the weights in {str(folder)!r} are of another version of byokg (schema {schema}, and {SCHEMA} here; "
            f"features that only one has: {other}); {fit}"
        )
    ranker, confidence = (folder / name for name in (RANKER_FILE, CONFIDENCE_FILE))
    return FittedWeights(
        Weights(**values), folder if ranker.is_file() else None, confidence if confidence.is_file() else None
    )


def weights_for(embedder: Embedder) -> Weights:
    """Return the shipped weights of an embedder.

    Those of the shipped static embedder replace missing ones of another; the log reports it, once.
    """
    return _shipped(embedder.name)


def scoring_embedder(embedder: Embedder, shipped: bool) -> Embedder:
    """Return the embedder that scores paths: the shipped one in place of a multilingual one without fitted weights.

    Questions are translated before, so that words and labels are English. Without `shipped`, the weights are others.
    """
    fitted = not shipped or embedder.name == STATIC or (SHIPPED / folder_name(embedder.name) / FILE).is_file()
    return embedder if fitted or not is_multilingual(embedder) else shipped_embedder()


@lru_cache(64)
def _shipped(name: str) -> Weights:
    if name == STATIC:
        return Weights()
    folder = SHIPPED / folder_name(name)
    if (folder / FILE).is_file():
        return read_weights(folder, name).weights
    _logger.warning(
        "no weights were fitted with the embedder %r: relation paths are scored with those of %r; fit some with "
        "byokg fit dataset=… embedding=… --out DIR, and use them with pipeline.weights=DIR",
        name,
        STATIC,
    )
    return Weights()
