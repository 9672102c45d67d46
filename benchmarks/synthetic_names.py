"""Synthetic names in any number, and small errors in them; for benchmarks.

Names have two to four words. The vocabulary is English: whole words in the tokenizer of the shipped embedder, which
lists them from the most frequent to the rarest. `zipf` draws from 20,000 of them as often as Zipf's law has it,
`small` from 200 everyday ones equally often, so that every word is in thousands of names. The same seed gives the
same names.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import byokg

_TOKENIZER = Path(byokg.__file__).parent / "data" / "embedder" / "tokenizer.json"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SUFFIXES = (" Inc", " (film)", " Ltd.", ", Jr.", " (band)", " [disambiguation]")
_SHORTEST = 3
_EVERYDAY = slice(100, 300)
VOCABULARIES = ("zipf", "small")


@cache
def vocabulary(kind: str) -> tuple[str, ...]:
    """Return words from the most frequent to the rarest."""
    tokens: dict[str, int] = json.loads(_TOKENIZER.read_text("utf-8"))["model"]["vocab"]
    words = [word for word in sorted(tokens, key=tokens.__getitem__) if word.isascii() and word.isalpha()]
    words = [word.title() for word in words if len(word) >= _SHORTEST]
    return tuple(words[_EVERYDAY]) if kind == "small" else tuple(words[:20_000])


def synthetic_names(count: int, kind: str = "zipf", seed: int = 1) -> pa.LargeStringArray:
    """Return `count` names; some of them come several times, as in real graphs."""
    words = vocabulary(kind)
    rng = np.random.default_rng([seed, count])
    weights = np.ones(len(words)) if kind == "small" else 1 / np.arange(1, len(words) + 1)
    bounds = (weights / weights.sum()).cumsum()
    column, space = pa.array(words, pa.large_string()), pa.scalar(" ", pa.large_string())
    lengths = rng.integers(2, 5, count)
    names = None
    for place in range(4):
        drawn = np.minimum(bounds.searchsorted(rng.random(count)), len(words) - 1)
        part = column.take(pa.array(np.where(lengths > place, drawn, 0), mask=lengths <= place))
        names = part if names is None else pc.binary_join_element_wise(names, part, space, null_handling="skip")
    return names


def typo(name: str, rng: random.Random) -> str:
    """Return a name with one letter or space wrong, missing, too many, or swapped with the next one."""
    at = rng.randrange(len(name) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return name[:at] + rng.choice(_LETTERS) + name[at + 1 :]
    if kind == 1:
        return name[:at] + name[at + 1 :]
    if kind == 2:
        return name[:at] + rng.choice(_LETTERS) + name[at:]
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]


def dropped(name: str, rng: random.Random) -> str:
    """Return a name without one of its words."""
    words = name.split()
    del words[rng.randrange(len(words))]
    return " ".join(words)


def swapped(name: str, rng: random.Random) -> str:
    """Return a name with two neighbouring words swapped."""
    words = name.split()
    at = rng.randrange(len(words) - 1)
    words[at : at + 2] = words[at + 1], words[at]
    return " ".join(words)


def abbreviated(name: str, rng: random.Random) -> str:
    """Return a name with its first word, or all but the last, as first letters: `J. Ronald Smith`, `J. R. Smith`."""
    words = name.split()
    short = 1 if rng.random() < 0.5 else len(words) - 1
    return " ".join([*(f"{word[0]}." for word in words[:short]), *words[short:]])


def suffixed(name: str, rng: random.Random) -> str:
    """Return a name with something behind it that does not belong to it."""
    return name + rng.choice(_SUFFIXES)


MISTAKES: dict[str, Callable[[str, random.Random], str]] = {
    "typo": typo,
    "drop": dropped,
    "swap": swapped,
    "abbreviation": abbreviated,
    "suffix": suffixed,
}
