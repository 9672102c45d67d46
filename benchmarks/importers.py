"""Readers of delimited files compared: ours (Arrow in blocks, checked), pyarrow.csv alone, DuckDB and polars.

python benchmarks/importers.py [--triples N] [--repeat N] [--folder DIR] [--json FILE]

The first table uses generated triples as `.tsv`, `.csv`, `.tsv.gz` and property edges as `.csv`: seconds, CPU
seconds of all threads and the highest memory of a process that turns the file into columns of text. The second has
the results of small files with a quirk: the rows by RFC 4180 and our rules, or an error that names the
line. DuckDB and polars are no dependency: `pip install duckdb polars`. Each figure is from a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import run_apart
from benchmarks.rows import Row, labelled, make_parser, write_rows
from benchmarks.synthetic_graph import Size, write, write_as

Rows = list[tuple[str | None, ...]]


def read_ours(path: Path, width: int) -> Any:
    """Read as `import_graph` does, block by block; return the number of rows and the last block."""
    import pyarrow as pa

    from byokg.graph.importers.delimited import RecordFile

    rows, table = 0, None
    fields = [str(number) for number in range(width)]
    for table in replace(RecordFile.at(path), titled=False).blocks(fields, [pa.large_string()] * width):
        rows += table.num_rows
    return rows, table


def read_pyarrow(path: Path, width: int) -> Any:
    """Read with pyarrow.csv alone."""
    from pyarrow import csv

    quoted = ".csv" in path.name
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=[str(number) for number in range(width)]),
        csv.ParseOptions(
            delimiter="," if quoted else "\t", quote_char='"' if quoted else False, newlines_in_values=quoted
        ),
        csv.ConvertOptions(column_types={str(number): "string" for number in range(width)}, strings_can_be_null=True),
    )
    return table.num_rows, table


def read_duckdb(path: Path, width: int) -> Any:
    """Read with DuckDB's `read_csv`, strict, into Arrow."""
    import duckdb

    quoted = ".csv" in path.name
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(width))
    separator, quote = (",", '"') if quoted else ("\t", "")
    table = (
        duckdb.connect()
        .execute(
            f"SELECT * FROM read_csv(?, header=false, auto_detect=false, delim=?, quote=?, escape=?, strict_mode=true, "
            f"max_line_size=67108864, columns={{{columns}}})",
            [str(path), separator, quote, quote],
        )
        .to_arrow_table()
    )
    return table.num_rows, table


def read_polars(path: Path, width: int) -> Any:
    """Read with polars' `read_csv`."""
    import polars

    quoted = ".csv" in path.name
    frame = polars.read_csv(
        path,
        has_header=False,
        separator="," if quoted else "\t",
        quote_char='"' if quoted else None,
        schema={f"c{number}": polars.String for number in range(width)},
    )
    return frame.height, frame.to_arrow()


READERS: dict[str, Callable[[Path, int], Any]] = {
    "ours": read_ours,
    "pyarrow.csv": read_pyarrow,
    "DuckDB": read_duckdb,
    "polars": read_polars,
}

QUIRKS: dict[str, tuple[str, bytes, Rows | int]] = {
    "a field with a comma, a quote and a newline": ("q.csv", b'a,"x, ""y""\nz",b\n', [("a", 'x, "y"\nz', "b")]),
    "quotes are text in .tsv": ("q.tsv", b'a\t"x\tb\n', [("a", '"x', "b")]),
    "empty lines are skipped, \\r\\n ends one": (
        "q.tsv",
        b"a\tr\tb\r\n\r\nc\tr\td\r\n",
        [("a", "r", "b"), ("c", "r", "d")],
    ),
    "a byte order mark is no text": ("q.tsv", b"\xef\xbb\xbfa\tr\tb\n", [("a", "r", "b")]),
    "an empty field is null": ("q.tsv", b"a\t\tb\n", [("a", None, "b")]),
    "no newline at the end": ("q.csv", b"a,r,b", [("a", "r", "b")]),
    "a field too few is refused with its line": ("q.tsv", b"a\tr\tb\nc\tr\n", 2),
    "an unquoted comma is refused with its line": ("q.csv", b"a,r,b\nc,r,d, e\n", 2),
    "a byte that is not UTF-8 is refused with its line": ("q.tsv", b"a\tr\tb\nc\tr\t\xe9\n", 2),
    "a quote never closed is refused with its line": ("q.csv", b'a,r,b\nc,"r,d\ne,r,f\n', 2),
    "text behind a closing quote is refused with its line": ("q.csv", b'a,r,b\nc,"r"x,d\n', 2),
    "a quote inside a plain field is refused with its line": ("q.csv", b'a,r,b\nc,r"s,d\n', 2),
    ".xz is read": ("q.tsv.xz", b"a\tr\tb\n", [("a", "r", "b")]),
    ".zst is read": ("q.tsv.zst", b"a\tr\tb\n", [("a", "r", "b")]),
}
"""File name, content, and what reading it gives: rows, or the line that an error names."""


def quirk(reader: str, name: str) -> str:
    """Return what a reader makes of a small file: `yes`, or what is wrong."""
    file, content, expected = QUIRKS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        if file.endswith(".xz"):
            import lzma

            content = lzma.compress(content)
        elif file.endswith(".zst"):
            import pyarrow as pa

            content = bytes(pa.compress(content, "zstd"))
        path.write_bytes(content)
        try:
            _, table = READERS[reader](path, 3)
            rows = [tuple(row.values()) for row in table.to_pylist()]
        except Exception as error:  # whatever a library raises
            text = str(error).replace(str(path), "")
            if isinstance(expected, int):
                return "yes" if re.search(rf"(line:?|:) ?{expected}\b", text, re.IGNORECASE) else "no line"
            return "refused"
    if isinstance(expected, int):
        return "read as if nothing were wrong"
    return "yes" if rows == expected else "other rows"


def measure(reader: str, path: Path, width: int) -> dict[str, float]:
    """Read one file, and return seconds, CPU seconds of all threads and peak memory."""
    with tempfile.TemporaryDirectory() as folder:  # imports are not counted
        small = Path(folder) / "small.tsv"
        small.write_bytes(b"\t".join([b"a"] * width) + b"\n")
        READERS[reader](small, width)
    start, cpu = time.perf_counter(), time.process_time()
    rows, _ = READERS[reader](path, width)
    return {
        "s": time.perf_counter() - start,
        "CPU s": time.process_time() - cpu,
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "rows": rows,
    }


def best_of(repeat: int, reader: str, path: Path, width: int) -> dict[str, float]:
    """Read one file several times, each in a process of its own, and return the least of each figure."""
    runs = [run_apart(__file__, "read", reader, path, width) for _ in range(repeat)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


def main() -> int:
    from rich.console import Console
    from rich.table import Table

    parser = make_parser(__doc__)
    parser.add_argument("--triples", type=int, default=3_000_000, help="lines of the generated files")
    parser.add_argument("--repeat", type=int, default=3, help="times each file is read; the best counts")
    parser.add_argument("--folder", type=Path, help="folder in which generated files are kept and reused")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, reader, *rest = options.step
        print(json.dumps(quirk(reader, rest[0]) if step == "quirk" else measure(reader, Path(rest[0]), int(rest[1]))))
        return 0
    console, rows = Console(width=120), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        table = Table("file", "measurement", *READERS, title=f"{options.triples:,} lines as columns of text")
        for file, width in files(folder, Size(options.triples, options.triples // 3)):
            found = {reader: best_of(options.repeat, reader, file, width) for reader in READERS}
            for key in ("s", "CPU s", "MB"):
                table.add_row(file.name, key, *(f"{found[reader][key]:.3g}" for reader in READERS))
                rows += [labelled(f"{file.name}, {reader}", key, found[reader][key]) for reader in READERS]
            if len({figures["rows"] for figures in found.values()}) > 1:
                raise SystemExit(f"{file}: readers differ in the number of rows: {found}")
    console.print(table)
    table = Table("small file", *READERS)
    for name in QUIRKS:
        said = [run_apart(__file__, "quirk", reader, name) for reader in READERS]
        table.add_row(name, *said)
        for reader, one in zip(READERS, said, strict=True):
            rows.append(Row(f"{name}, {reader}: right", float(one == "yes")))
    console.print(table)
    write_rows(rows, options.json)
    return 0


def files(folder: Path, size: Size) -> list[tuple[Path, int]]:
    """Return the generated files with the number of their columns, made where they are not there yet."""
    triples, packed, quoted = (folder / f"triples-{size.triples}{end}" for end in (".tsv", ".tsv.gz", ".csv"))
    tables = folder / f"tables-{size.triples}"
    if not triples.exists():
        write(triples, size)
    if not packed.exists():
        with triples.open("rb") as source, gzip.open(packed, "wb", 1) as out:
            shutil.copyfileobj(source, out, 1 << 24)
    if not quoted.exists():
        with triples.open("rb") as source, quoted.open("wb") as out:
            for line in source:
                head, label, tail = line.rstrip(b"\n").split(b"\t")
                out.write(b'"%s",%s,"%s"\n' % (head, label, tail))
    if not tables.exists():
        write_as("properties", tables, size)
    return [(triples, 3), (packed, 3), (quoted, 3), (tables / "edges.csv", 5)]


if __name__ == "__main__":
    sys.exit(main())
