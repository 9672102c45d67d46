"""Write `byokg/data/languages/names.tsv`: names of places, languages and currencies of Unicode's CLDR.

Run with the package `babel`, which carries the CLDR: `uv run --with babel python scripts/build_language_names.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel import Locale

CODES = ("de", "es", "zh")
OUT = Path(__file__).resolve().parent.parent / "byokg" / "data" / "languages" / "names.tsv"
HEADER = """\
# Names of countries, regions, languages, currencies and cities in English, German, Spanish and simplified Chinese, as
# Unicode's CLDR has them (territories, languages of two letters, current currencies, exemplar cities of time zones).
# Source: https://cldr.unicode.org, by scripts/build_language_names.py. Licence: Unicode License V3, see NOTICE.
"""


def names(locale: Any) -> dict[tuple[str, str], str]:
    """Return the names of one language by their kind and code."""
    cities = {zone: data["city"] for zone, data in locale.time_zones.items() if "city" in data}
    tables = {
        "territory": locale.territories,
        "language": {code: name for code, name in locale.languages.items() if len(code) == 2},
        "currency": {code: name for code, name in locale.currencies.items() if "(" not in name},
        "city": cities,
    }
    return {(kind, code): name for kind, table in tables.items() for code, name in table.items()}


def rows() -> Iterator[str]:
    """Yield the lines of the table, each English name once."""
    english = names(Locale("en"))
    others = [names(Locale.parse(code)) for code in CODES]
    found: dict[str, list[list[str]]] = {}
    for key in sorted({*english, *others[-1]}):
        kind, code = key
        name = english.get(key) or (code.split("/")[-1].replace("_", " ") if kind == "city" else "")
        if not name:
            continue
        of = found.setdefault(name, [[] for _ in CODES])
        for texts, other in zip(of, others, strict=True):
            text = other.get(key, "")
            if text and text != name and text not in texts:
                texts.append(text)
    yield "\t".join(("en", *CODES))
    for name, texts_of in sorted(found.items()):
        if any(texts_of):
            yield "\t".join((name, *("|".join(texts) for texts in texts_of)))


def main() -> None:
    """Write the table."""
    OUT.write_text(HEADER + "".join(f"{row}\n" for row in rows()), "utf-8", newline="\n")


if __name__ == "__main__":
    main()
