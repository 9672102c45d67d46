"""What calls of language models cost: a table that ships with byokg (`prices.yaml`), and users' own before it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from byokg.errors import ConfigError
from byokg.llm.records import Usage

MILLION = 1_000_000

_RATES = ("input", "output", "cache_read", "cache_write")
_FIELDS = ("models", *_RATES, "batch", "long_prompt", "date", "source")

_REGION = re.compile(r"(?:us-gov|us|eu|apac|ap|au|ca|jp|global)\.(?=[a-z0-9-]+\.)")
_VENDOR = re.compile(r"(?:anthropic|openai)[./]")
_SUFFIX = r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|default))?(?:-v\d+)?(?::\d+)?(?::\d+k)?"
"""What services put behind a model's id: a date, a version, a context length."""


@dataclass(frozen=True)
class Rates:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True)
class Price:
    """What one model costs.

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
        """Return what a call cost."""
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
        """Return what a call of these tokens costs at most, whatever happens in the provider's cache."""
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
        tables = [] if own is None else [_read(Path(own).expanduser())]
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
    """Return a model's id without what says only where it runs: an ARN, Bedrock's region, the vendor's name."""
    name = model.lower()
    if name.startswith("arn:"):
        name = name.rpartition("/")[2]
    return _VENDOR.sub("", _REGION.sub("", name, count=1), count=1)


Table = Sequence[tuple[re.Pattern[str], Price]]


@cache
def _shipped() -> Table:
    text = (resources.files("byokg.llm") / "prices.yaml").read_text("utf-8")
    return _table(yaml.safe_load(text), "byokg/llm/prices.yaml")


def _read(path: Path) -> Table:
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"prices {str(path)!r} cannot be read: {reason}; see byokg/llm/prices.yaml") from error
    return _table(content, str(path))


def _table(content: object, file: str) -> Table:
    if not isinstance(content, list):
        raise ConfigError(f"{file}: prices are a list of entries with models, input and output")
    table = [pair for number, entry in enumerate(content, start=1) for pair in _entry(entry, f"{file}, entry {number}")]
    # A sort keeps the order of equals: exact names first, then as they stand in the file.
    table.sort(key=lambda pair: ".*" in pair[0].pattern)
    return table


def _entry(entry: object, place: str) -> Table:
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
    above, long_rates = None, None
    if "long_prompt" in entry:
        long = entry["long_prompt"]
        if not isinstance(long, Mapping) or not isinstance(long.get("above"), int):
            raise ConfigError(f"{place}: long_prompt needs above, a number of tokens, and prices")
        above, long_rates = long["above"], _rates(long, f"{place}, long_prompt")
    date = entry.get("date", "")
    price = Price(
        _rates(entry, place),
        above,
        long_rates,
        float(batch),
        date.isoformat() if isinstance(date, datetime.date) else str(date),
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
