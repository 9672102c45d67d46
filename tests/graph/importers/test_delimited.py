from __future__ import annotations

import codecs
import os
import random
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers import delimited
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.importers.delimited import misplaced_quote
from tests.graph.contract import facts


def test_the_quote_check_agrees_with_a_character_by_character_reading_whatever_the_chunks() -> None:
    rng = random.Random(1)
    for _ in range(5000):
        data = bytes(rng.choice(b'"",\na\r') for _ in range(rng.randrange(15)))
        block_bytes = rng.randrange(1, 6)
        assert misplaced_quote(BytesIO(data), block_bytes) == first_misplaced_quote(data), data
        if block_bytes > 3:
            marked = misplaced_quote(BytesIO(codecs.BOM_UTF8 + data), block_bytes)
            assert marked == (None if (place := first_misplaced_quote(data)) is None else place + 3)


def first_misplaced_quote(data: bytes) -> int | None:
    """Find the first quote that RFC 4180 does not allow, the slow way."""
    allowed = b',"\r\n'
    inside, opened = False, 0
    for place, byte in enumerate(data):
        if byte != ord('"'):
            continue
        if not inside:
            if place and data[place - 1] not in allowed:
                return place
            opened = place
        elif place + 1 < len(data) and data[place + 1] not in allowed:
            return place
        inside = not inside
    return opened if inside else None


@pytest.fixture(autouse=True, params=[1 << 26, 30], ids=["one block", "a line a block"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file holds must not depend on where it is cut."""
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", request.param)


def imported(folder: Path, text: str, name: str = "graph.tsv") -> ColumnarGraph:
    (folder / name).write_text(text)
    return import_graph(folder / name)


def test_two_more_columns_are_start_and_end_of_the_edge(tmp_path: Path) -> None:
    graph = imported(tmp_path, "Ann\tled\tAcme\t1990\t1995\nBob\tled\tAcme\t\t\nCid\tled\tAcme\t1999\t\n")
    assert facts(graph) == [
        ("Ann", "led", "Acme", {"start": 1990, "end": 1995}),
        ("Bob", "led", "Acme", {}),
        ("Cid", "led", "Acme", {"start": 1999}),
    ]
    assert graph.source["kind"] == "triples with time"
    assert graph.schema().relations[0].properties == ("start", "end")


def test_one_more_column_is_the_time(tmp_path: Path) -> None:
    graph = imported(tmp_path, "a|met|b|2014-03-01\na|met|b|2013-01-31\n", "kb.txt")
    assert facts(graph) == [("a", "met", "b", {"time": "2014-03-01"}), ("a", "met", "b", {"time": "2013-01-31"})]


def test_a_header_may_name_the_columns(tmp_path: Path) -> None:
    graph = imported(tmp_path, "head,relation,tail,start,end\na,r,b,-44,14\n", "graph.csv")
    assert facts(graph) == [("a", "r", "b", {"start": -44, "end": 14})]


def test_a_column_of_numbers_may_have_longer_ones_than_years(tmp_path: Path) -> None:
    graph = imported(tmp_path, "a\tr\tb\t7\nc\tr\td\t20011231\n")
    assert [row[3] for row in facts(graph)] == [{"time": 7}, {"time": 20011231}]


def test_years_mixed_with_days_are_texts(tmp_path: Path) -> None:
    graph = imported(tmp_path, "a\tr\tb\t1990\t1991-05\nc\tr\td\t2001-02-03T04:05:06Z\t1999\n")
    assert [row[3] for row in facts(graph)] == [
        {"start": "1990", "end": "1991-05"},
        {"start": "2001-02-03T04:05:06Z", "end": "1999"},
    ]


def test_the_same_fact_at_two_times_is_two_edges_and_an_exact_repetition_one(tmp_path: Path) -> None:
    line = "a\tr\tb\t1990\t1991\n"
    graph = imported(tmp_path, line + "a\tr\tb\t1980\t1981\n" + line + "a\tr\tb\t\t\n" + "a\tr\tb\t\t\n")
    assert [row[3] for row in facts(graph)] == [{"start": 1990, "end": 1991}, {"start": 1980, "end": 1981}, {}]
    assert graph.dropped_duplicates == 2


def test_times_survive_saving_and_opening(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("a\tr\tb\t1990\t\n")
    graph = build_graph(tmp_path / "graph.tsv", tmp_path / "out")
    assert facts(graph) == [("a", "r", "b", {"start": 1990})]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a\tr\tb\t1990\tsoon\n", 1, "expected 3 fields separated by a tab, found 5"),
        ("a\tr\tb\t1\t2\nc\tr\td\t1990\tsoon\n", 2, "end 'soon' is neither a year nor an ISO 8601 date"),
        ("a\tr\tb\t1\t2\nc\tr\t\t3\t4\n", 2, "the tail is empty"),
        (
            "a\tr\tb\t1\t2\na\tr\tb\t1\t20011231\nc\tr\td\t3\t1999-05\n",
            2,
            "end '20011231' is neither a year nor an ISO 8601 date",
        ),
        ("a\tr\tb\t1\t2\nc\tr\td\n", 2, "expected 5 fields separated by a tab, found 3"),
    ],
)
def test_a_bad_line_is_named_with_the_reason(tmp_path: Path, text: str, line: int, reason: str) -> None:
    with pytest.raises(ImportFailed, match=re.escape(reason)) as caught:
        imported(tmp_path, text)
    assert caught.value.line == line


@pytest.mark.parametrize("blocks", [1 << 26], indirect=True)
def test_cronquestions_has_the_counts_of_its_description() -> None:
    folder = Path(os.environ.get("BYOKG_DATA") or Path(__file__).parents[3].parent / "shared" / "data")
    source = folder / "cronquestions" / "graph_quads.tsv.xz"
    if not source.is_file():
        pytest.skip(f"no {source}; point BYOKG_DATA at a folder holding cronquestions")
    graph = import_graph(source)
    assert (graph.edge_count, graph.node_count, len(graph.relations)) == (116_856, 36_919, 6)
    times = graph.edge_properties(np.arange(graph.edge_count))
    assert sum("start" in row for row in times) == 26_121
    [event] = [row for row in facts(graph) if row[0] == "1909 Giro d'Italia"]
    assert event == ("1909 Giro d'Italia", "significant event", "occurrence", {"start": 1909, "end": 1909})


def test_lines_are_numbered_alike_in_blocks_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(4)
    lines = [f"{chance.choice('ab')}{chance.randrange(n + 1)}|r|{chance.randrange(n + 1)}b\n" for n in range(600)]
    (tmp_path / "kb.txt").write_text("".join(lines))
    expected = list(dict.fromkeys(end for line in lines for end in line.strip().split("|r|")))
    monkeypatch.setattr(delimited, "_PARSE_BYTES", 300)
    for size in (1, 2000, 1 << 26):  # in small ones most ends are known, and are looked for as they come
        monkeypatch.setattr(delimited, "_BLOCK_BYTES", size)
        graph = import_graph(tmp_path / "kb.txt")
        assert list(graph.entities()) == expected
        assert sorted(f"{head}|r|{tail}\n" for head, _, tail, _ in facts(graph)) == sorted(set(lines))


@pytest.mark.parametrize("bad", ["| r |", " |r|b", "a|r| "])
def test_a_blank_end_behind_many_known_ones_is_named(bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_PARSE_BYTES", 300)
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 1)
    (tmp_path / "kb.txt").write_text("a|r|b\n" * 500 + bad + "\n")
    with pytest.raises(ImportFailed, match="is empty; fill it in") as error:
        import_graph(tmp_path / "kb.txt")
    assert error.value.line == 501
