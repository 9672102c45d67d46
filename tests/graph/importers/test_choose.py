from __future__ import annotations

import datetime
import gzip
import json
import lzma
import os
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from byokg.errors import GraphError, GraphExists, ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers import delimited
from byokg.graph.importers.choose import build_graph, import_graph, import_into, source_files
from byokg.graph.importers.python_graphs import from_networkx, from_pandas, from_record
from byokg.graph.store import Direction
from byokg.types import EntityId, Node
from tests.graph.contract import facts, ids, spelled

EDGES_HEADER = b"head,relation,tail\n"


def written(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def packed(content: bytes, ending: str) -> bytes:
    if ending == ".gz":
        return gzip.compress(content)
    if ending == ".zst":
        stream = pa.BufferOutputStream()
        with pa.CompressedOutputStream(stream, "zstd") as compressed:
            compressed.write(content)
        return bytes(stream.getvalue())
    return lzma.compress(content) if ending == ".xz" else content


def records(folder: Path, nodes: bytes, edges: bytes = EDGES_HEADER) -> Path:
    written(folder, "nodes.csv", nodes)
    written(folder, "edges.csv", edges)
    return folder


def triples_of(graph: ColumnarGraph) -> list[tuple[str, str, str]]:
    batch = graph.edges(np.arange(graph.node_count), Direction.OUT)
    return [(head, label, tail) for _, _, head, label, tail in spelled(graph, batch)]


def refused(source: Path, line: int | None, reason: str) -> ImportFailed:
    """Import, expect a refusal at that line for a reason that matches, and hand back the error."""
    with pytest.raises(ImportFailed, match=reason) as caught:
        import_graph(source)
    assert caught.value.line == line, str(caught.value)
    return caught.value


class TestTriples:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("kb.txt", b"a|is a|b\nb|is a|c\n"),
            ("graph.tsv", b"a\tis a\tb\nb\tis a\tc\n"),
            ("graph.csv", b"a,is a,b\nb,is a,c\n"),
            ("graph.csv", b"head,relation,tail\na,is a,b\nb,is a,c\n"),
            ("graph.tsv", b"Head\tRelation\tTail\na\tis a\tb\nb\tis a\tc\n"),
            ("no_final_newline.txt", b"a|is a|b\nb|is a|c"),
            ("windows.txt", b"a|is a|b\r\nb|is a|c\r\n"),
            ("marked.txt", b"\xef\xbb\xbfa|is a|b\nb|is a|c\n"),
            ("marked.csv", b'\xef\xbb\xbf"a",is a,b\nb,is a,"c"\n'),
            ("marked_header.csv", b"\xef\xbb\xbfhead,relation,tail\r\na,is a,b\r\nb,is a,c\r\n"),
            ("empty_lines.txt", b"\n\na|is a|b\n\n\nb|is a|c\n\n\n"),
        ],
    )
    @pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
    def test_every_format_plain_or_compressed_gives_the_same_graph(
        self, tmp_path: Path, name: str, content: bytes, ending: str
    ) -> None:
        graph = import_graph(written(tmp_path, name + ending, packed(content, ending)))
        assert triples_of(graph) == [("a", "is a", "b"), ("b", "is a", "c")]
        assert list(graph.entities()) == ["a", "b", "c"]
        assert graph.nodes(ids("a")) == [Node(EntityId("a"), "a")]

    @pytest.mark.parametrize("name", ["kb.txt", "graph.tsv", "graph.csv", "kb.txt.xz", "graph.tsv.gz"])
    def test_a_folder_is_searched_for_its_triple_file(self, tmp_path: Path, name: str) -> None:
        separator = {".txt": b"|", ".tsv": b"\t", ".csv": b","}["." + name.split(".")[1]]
        content = separator.join([b"a", b"r", b"b"])
        written(tmp_path, name, packed(content, Path(name).suffix))
        written(tmp_path, "README.md", b"not a graph")
        assert triples_of(import_graph(tmp_path)) == [("a", "r", "b")]

    def test_exact_repetitions_are_dropped_and_counted(self, tmp_path: Path) -> None:
        graph = import_graph(written(tmp_path, "kb.txt", b"a|r|b\na|s|b\na|r|b\na|r|b\nb|r|a\n"))
        assert triples_of(graph) == [("a", "r", "b"), ("a", "s", "b"), ("b", "r", "a")]
        assert graph.dropped_duplicates == 2

    def test_nodes_and_relations_are_numbered_by_first_appearance(self, tmp_path: Path) -> None:
        graph = import_graph(written(tmp_path, "kb.txt", b"z|q|m\nb|r|z\na|q|b\n"))
        assert list(graph.entities()) == ["z", "m", "b", "a"]
        assert list(graph.relations) == ["q", "r"]

    def test_numbering_does_not_depend_on_how_the_file_is_cut_into_blocks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = random.Random(3)
        triples = [(f"n{rng.randrange(300)}", f"r{rng.randrange(9)}", f"n{rng.randrange(300)}") for _ in range(3000)]
        source = written(tmp_path, "kb.txt", "".join("|".join(triple) + "\n" for triple in triples).encode())
        monkeypatch.setattr(delimited, "_BLOCK_BYTES", 500)
        monkeypatch.setattr(delimited, "_PARSE_BYTES", 64)
        imported, expected = import_graph(source), ColumnarGraph.from_triples(triples)
        assert list(imported.entities()) == list(expected.entities())
        assert list(imported.relations) == list(expected.relations)
        assert triples_of(imported) == triples_of(expected)
        assert imported.dropped_duplicates == expected.dropped_duplicates

    @pytest.mark.parametrize("block_bytes", [64, 1 << 20])
    def test_a_record_longer_than_a_block_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
    ) -> None:
        monkeypatch.setattr(delimited, "_BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(delimited, "_PARSE_BYTES", 64)
        graph = import_graph(written(tmp_path, "kb.txt", b"a|r|b\n" * 5 + b"x" * 500 + b"|r|b\n"))
        assert list(graph.entities()) == ["a", "b", "x" * 500]

    def test_quotes_are_ordinary_characters_where_a_bar_or_tab_separates(self, tmp_path: Path) -> None:
        graph = import_graph(written(tmp_path, "kb.txt", b'"a|r|b"\n""|"|\'\n'))
        assert triples_of(graph) == [('"a', "r", 'b"'), ('""', '"', "'")]

    def test_csv_quoting_allows_separators_quotes_and_newlines(self, tmp_path: Path) -> None:
        graph = import_graph(written(tmp_path, "graph.csv", b'"a, b","say ""r""","two\nlines"\n'))
        assert triples_of(graph) == [("a, b", 'say "r"', "two\nlines")]

    def test_texts_that_look_like_missing_values_or_numbers_stay_texts(self, tmp_path: Path) -> None:
        graph = import_graph(written(tmp_path, "kb.txt", b"NA|null|nan\n007|1e3|true\n"))
        assert triples_of(graph) == [("NA", "null", "nan"), ("007", "1e3", "true")]

    def test_only_newlines_and_carriage_returns_end_a_line(self, tmp_path: Path) -> None:
        tail = "b\u2028\x0b\x85\x00c"
        graph = import_graph(written(tmp_path, "kb.txt", f"a|r|{tail}\n".encode()))
        assert triples_of(graph) == [("a", "r", tail)]

    def test_the_source_names_the_file_with_size_and_checksum(self, tmp_path: Path) -> None:
        graph = import_graph(written(tmp_path, "kb.txt", b"a|r|b\n"))
        assert graph.source == {
            "kind": "triples",
            "files": [
                {
                    "name": "kb.txt",
                    "bytes": 6,
                    "sha256": "334a4314892210cf878d6c04c6aed2bae7cf019a1744cd2e8fe2007d4d57f731",
                    "read_as": "'|', no header; source=column 1, relation=column 2, target=column 3",
                    "rows": 1,
                }
            ],
        }


class TestBadTriples:
    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            (b"a|r|b\n\na|r\n", 3, "expected 3 fields separated by '|', found 2; complete the line"),
            (b"a|r|b\na|r|b|c\n", 2, "found 4; a value cannot contain the separator"),
            (b"a|r|b\r\n\r\n|r|b\r\n", 3, "the head is empty"),
            (b"a|r|b\n \t|r|b\n", 2, "the head is empty"),
            (b"a||b\n", 1, "the relation is empty"),
            (b"a|r|b\na|r|\n", 2, "the tail is empty"),
            (b"a|r|b\nb|r|\n|r|b\n", 2, "the tail is empty"),
            (b"a|r|b\nb\xe9|r|c\n", 2, "byte 0xe9 is not UTF-8"),
            (b"\xe9|r|c\n", 1, "byte 0xe9 is not UTF-8"),
            (b"a|r|b\nc\ts\td\n", 2, "found 1; a tab would give 3: correct the line, or decide with --delimiter"),
            (b"", None, "the file is empty"),
            (b"\n\n", None, "the file is empty"),
            (b"head|relation|tail\n", None, "holds no triples"),
        ],
    )
    def test_a_bad_line_is_named_with_the_reason(
        self, tmp_path: Path, content: bytes, line: int | None, reason: str
    ) -> None:
        error = refused(written(tmp_path, "kb.txt", content), line, re.escape(reason))
        assert error.file.endswith("kb.txt")

    @pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
    def test_lines_count_in_the_decompressed_text(self, tmp_path: Path, ending: str) -> None:
        content = packed(b"a|r|b\n" * 9 + b"oops\n", ending)
        refused(written(tmp_path, f"kb.txt{ending}", content), 10, "found 1")

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            (b'head,relation,tail\n"a\nb",r,c\nx,r\n', 4, "expected 3 fields separated by ',', found 2"),
            (b"a,r,b, c\n", 1, 'found 4; put values that contain a comma in quotes, as in "a, b"'),
            (b'a,r,b\n"c\nd",r,""\n', 2, "the tail is empty"),
            (b'a,r,"b\nc,r,d\n', 1, "the quoting is wrong"),
            (b'a,r,b\nc,r,"d\n', 2, "a quote is misplaced or never closed"),
            (b'a,r,b\n"c"x,r,d\n', 2, "a quote is misplaced or never closed"),
            (b'a,r,b\n\nc,r,5" nail\n', 3, "a quote is misplaced or never closed"),
        ],
    )
    def test_in_csv_the_line_is_where_the_record_starts(
        self, tmp_path: Path, content: bytes, line: int, reason: str
    ) -> None:
        refused(written(tmp_path, "graph.csv", content), line, re.escape(reason))

    @pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
    def test_damaged_compression_is_named(self, tmp_path: Path, ending: str) -> None:
        name = f"kb.txt{ending}"
        rng = random.Random(1)
        whole = packed("".join(f"{rng.random()}|r|{rng.random()}\n" for _ in range(2000)).encode(), ending)
        middle = len(whole) // 2
        # What Arrow writes as .zst has no checksum, so changed bytes may pass there.
        changed = [whole[:middle] + b"XXXX" + whole[middle + 4 :]] if ending != ".zst" else []
        for damaged in (b"this is not compressed", whole[:middle], whole[:-5], *changed):
            refused(written(tmp_path, name, damaged), None, "compressed data is damaged")

    def test_what_the_system_refuses_to_read_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "kb.txt").mkdir()
        refused(tmp_path, None, "cannot be read: Is a directory")

    def test_a_name_that_tells_no_format_is_refused(self, tmp_path: Path) -> None:
        refused(written(tmp_path, "graph.doc", b"a|r|b\n"), None, "end the name in one of .txt, .csv, .tsv")

    def test_a_missing_source_is_refused(self, tmp_path: Path) -> None:
        refused(tmp_path / "nowhere", None, "no such file or folder")

    def test_endings_may_be_in_capitals(self, tmp_path: Path) -> None:
        source = written(tmp_path, "GRAPH.TSV.GZ", gzip.compress(b"a\tr\tb\n"))
        assert triples_of(import_graph(source)) == [("a", "r", "b")]

    def test_a_folder_must_hold_exactly_one_graph(self, tmp_path: Path) -> None:
        refused(tmp_path, None, "holds neither nodes.csv with edges.csv nor edges.parquet nor one of kb.txt")
        written(tmp_path, "nodes.csv", b"id\n")
        refused(tmp_path, None, "holds nodes.csv but no edges.csv; both are needed")
        written(tmp_path, "kb.txt", b"a|r|b\n")
        refused(tmp_path, None, r"several graphs \(nodes.csv, kb.txt\)")
        (tmp_path / "nodes.csv").unlink()
        written(tmp_path, "kb.txt.xz", lzma.compress(b"a|r|b\n"))
        refused(tmp_path, None, r"several graphs \(kb.txt, kb.txt.xz\)")

    def test_the_files_of_a_source_are_told(self, tmp_path: Path) -> None:
        source = records(tmp_path / "in", b"id\na\n")
        written(source, "README.csv", b"not,ours\n")
        assert [path.name for path in source_files(source)] == ["edges.csv", "nodes.csv"]
        kb = written(tmp_path / "kb", "kb.txt", b"a|r|b\n")
        assert source_files(kb) == source_files(tmp_path / "kb") == [kb]

    def test_rdf_is_handed_on(self, tmp_path: Path) -> None:
        pytest.importorskip("pyoxigraph")
        line = b"<http://example.org/a> <http://example.org/r> <http://example.org/b> .\n"
        graph = import_graph(written(tmp_path, "graph.nt.gz", gzip.compress(line)))
        assert (graph.node_count, graph.edge_count) == (2, 1)

    def test_a_built_graph_is_no_source(self, tmp_path: Path) -> None:
        build_graph(written(tmp_path, "kb.txt", b"a|r|b\n"), tmp_path / "graph")
        refused(tmp_path / "graph", None, "built graph already")


class TestNodesAndEdges:
    def test_typed_properties_survive_and_empty_cells_are_absent(self, tmp_path: Path) -> None:
        source = records(
            tmp_path,
            b"id,name,type,people:int,area:float,capital:bool,founded:date,motto\n"
            b'Q90,Paris,City,2100000,105.4,TRUE,1800-02-17,"Fluctuat,\nnec"\n'
            b"Q142,,Country,-1,.5,false,0001-01-01,NA\n"
            b"x,,,,,,,\n",
            b"head,relation,tail,since:int,source:string\nQ90,capital of,Q142,987,\nx,is,x,,a\n",
        )
        graph = import_graph(source)
        assert graph.nodes(ids("Q90", "Q142", "x")) == [
            Node(
                EntityId("Q90"),
                "Paris",
                "City",
                {"people": 2100000, "area": 105.4, "capital": True, "founded": "1800-02-17", "motto": "Fluctuat,\nnec"},
            ),
            Node(
                EntityId("Q142"),
                "Q142",
                "Country",
                {"people": -1, "area": 0.5, "capital": False, "founded": "0001-01-01", "motto": "NA"},
            ),
            Node(EntityId("x"), "x"),
        ]
        assert triples_of(graph) == [("Q90", "capital of", "Q142"), ("x", "is", "x")]
        assert graph.edge_properties(np.arange(2)) == [{"since": 987}, {"source": "a"}]

    def test_properties_survive_saving_and_opening(self, tmp_path: Path) -> None:
        source = records(tmp_path / "in", b"id,born:date\na,2001-09-30\n", b"head,relation,tail,w:float\na,r,a,1.5\n")
        graph = build_graph(source, tmp_path / "out")
        assert graph.nodes(ids("a"))[0].properties == {"born": "2001-09-30"}
        assert graph.edge_properties(np.array([0])) == [{"w": 1.5}]
        assert graph.schema().node_properties == {"": ("born",)}
        assert graph.schema().relations[0].properties == ("w",)

    def test_only_the_id_column_is_needed_and_columns_may_come_in_any_order(self, tmp_path: Path) -> None:
        graph = import_graph(records(tmp_path, b"type,pop:int,id:string\nT,5,a\n,,b\n", b"tail,head,relation\nb,a,r\n"))
        assert graph.nodes(ids("a", "b")) == [Node(EntityId("a"), "a", "T", {"pop": 5}), Node(EntityId("b"), "b")]
        assert triples_of(graph) == [("a", "r", "b")]

    def test_nodes_without_edges_and_in_file_order_are_kept(self, tmp_path: Path) -> None:
        graph = import_graph(records(tmp_path, b"id\nz\na\nm\n", b"head,relation,tail\nm,r,a\n"))
        assert list(graph.entities()) == ["z", "a", "m"]

    def test_parallel_edges_are_kept_also_identical_ones_in_file_order(self, tmp_path: Path) -> None:
        edges = b"head,relation,tail,year:int\na,r,a,2001\na,r,a,1999\na,r,a,2001\n"
        graph = import_graph(records(tmp_path, b"id\na\n", edges))
        assert [row["year"] for row in graph.edge_properties(np.arange(3))] == [2001, 1999, 2001]
        assert graph.dropped_duplicates == 0

    def test_the_same_row_may_come_twice(self, tmp_path: Path) -> None:
        nodes = b"id,name,type,x:int\na,A,T,1\nb,,,\na,A,T,1\nb,,,\nc,,,\n"
        graph = import_graph(records(tmp_path, nodes, b"head,relation,tail\nc,r,b\n"))
        assert list(graph.entities()) == ["a", "b", "c"]
        assert triples_of(graph) == [("c", "r", "b")]

    def test_headers_alone_make_an_empty_graph(self, tmp_path: Path) -> None:
        graph = import_graph(records(tmp_path, b"id,name,type,x:int\n", b"head,relation,tail,y:date\n"))
        assert (graph.node_count, graph.edge_count, graph.relations) == (0, 0, ())

    def test_a_property_may_have_a_colon_when_its_type_is_given(self, tmp_path: Path) -> None:
        graph = import_graph(records(tmp_path, b"id,dc:title:string\na,x\n"))
        assert graph.nodes(ids("a"))[0].properties == {"dc:title": "x"}

    def test_compressed_files_are_found(self, tmp_path: Path) -> None:
        written(tmp_path, "nodes.csv.gz", gzip.compress(b"id\na\n"))
        written(tmp_path, "edges.csv.xz", lzma.compress(b"head,relation,tail\na,r,a\n"))
        assert triples_of(import_graph(tmp_path)) == [("a", "r", "a")]


class TestBadNodesAndEdges:
    @pytest.mark.parametrize(
        ("nodes", "line", "reason"),
        [
            (b"", None, "the file is empty; expected a header such as id,name,type"),
            (b"name,type\n", 1, "has no column 'id'"),
            (b"\n\ntag,name\n", 3, "has no column 'id'"),
            (b"id,x:integer\n", 1, "unknown type 'integer'; types are string, int, float, bool, date"),
            (b"id,name:int\n", 1, "column 'name' is always text"),
            (b"id,x,x:int\n", 1, "column 'x' stands twice"),
            (b"id,,x\n", 1, "a column without a name"),
            (b"id,name\na,A\n\nb\n", 4, "expected 2 fields separated by ',', found 1"),
            (b"id,name\n,A\n", 2, "the id is empty"),
            (b"id,name\na,A\n  ,A\n", 3, "the id is empty"),
            (b"id,x:int\na,1\nb,1.5\n", 3, "'1.5' in column 'x' is not a whole number"),
            (b"id,x:int\na,0x1F\n", 2, "'0x1F' in column 'x' is not a whole number"),
            (b"id,x:int\na,9223372036854775807\nb,9223372036854775808\n", 3, "not a whole number"),
            (b"id,x:float\na,1e3\nb,nan\n", 3, "'nan' in column 'x' is not a finite number"),
            (b"id,x:float\na,1e999\n", 2, "'1e999' in column 'x' is not a finite number"),
            (b"id,x:bool\na,yes\n", 2, "'yes' in column 'x' is not true or false"),
            (b"id,x:date\na,2004-02-29\nb,2001-02-29\n", 3, "'2001-02-29' in column 'x' is not a date"),
            (b"id,x:date\na,0000-00-01\n", 2, "'0000-00-01' in column 'x' is not a date"),
            (b"id,x:date\na,30.9.2001\n", 2, "'30.9.2001' in column 'x' is not a date"),
            (b"id,x:int,y:bool\na,1,true\nb,1,oui\nc,un,true\n", 3, "'oui' in column 'y'"),
            (b'id,name\n"a\nb",A\nc,\xff\n', 4, "byte 0xff is not UTF-8"),
            (b"id,name\na,A\nb,B\na,A\na,C\n", 5, "node id 'a' is on line 2 already, with name 'A', here with 'C'"),
            (b"id,x:int\na,1\na,\n", 3, "node id 'a' is on line 2 already, with x 1, here with None"),
            (b"id,type\na,T\na,U\n", 3, "node id 'a' is on line 2 already, with type 'T', here with 'U'"),
        ],
    )
    def test_a_bad_node_is_named_with_line_and_reason(
        self, tmp_path: Path, nodes: bytes, line: int | None, reason: str
    ) -> None:
        assert refused(records(tmp_path, nodes), line, re.escape(reason)).file.endswith("nodes.csv")

    @pytest.mark.parametrize(
        ("edges", "line", "reason"),
        [
            (b"", None, "the file is empty; expected lines of head, relation, tail, or a header such as"),
            (b"head,middle,tail\na,r,a\n", 1, "may be an edge, or a header, 'middle' being the relation or a property"),
            (b"head,relation,tail\na,r,a\n\na,r,b\n", 4, "tail 'b' is not an id in nodes.csv"),
            (b"head,relation,tail\nA,r,a\n", 2, "head 'A' is not an id in nodes.csv"),
            (b"head,relation,tail\na,,a\nb,r,a\n", 2, "the relation is empty"),
            (b"head,relation,tail\na,r,\n", 2, "the tail is empty"),
            (b"head,relation,tail\na,r\n", 2, "expected 3 fields"),
            (b"head,relation,tail,x:int\na,r,a,1\na,r,a,one\n", 3, "'one' in column 'x' is not a whole number"),
        ],
    )
    def test_a_bad_edge_is_named_with_line_and_reason(
        self, tmp_path: Path, edges: bytes, line: int | None, reason: str
    ) -> None:
        source = records(tmp_path, b"id,name\na,Anna\n", edges)
        assert refused(source, line, re.escape(reason)).file.endswith("edges.csv")


class TestNothingHalfWritten:
    def test_a_refused_import_writes_nothing_at_all(self, tmp_path: Path) -> None:
        source = written(tmp_path, "kb.txt", b"a|r|b\noops\n")
        with pytest.raises(ImportFailed):
            build_graph(source, tmp_path / "parent" / "graph")
        assert os.listdir(tmp_path) == ["kb.txt"]

    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
    def test_an_interrupted_save_leaves_nothing_and_keeps_the_old_graph(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
    ) -> None:
        source, out = written(tmp_path / "in", "kb.txt", b"a|r|b\n"), tmp_path / "out"
        build_graph(source, out)
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        written(tmp_path / "in", "kb.txt", b"x|r|y\n")
        synced: list[int] = []

        def interrupt(descriptor: int) -> None:
            synced.append(descriptor)
            if len(synced) == 4:  # in the middle of the files
                raise interruption

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(BaseException):  # noqa: B017, PT011  an OSError comes as GraphError
            build_graph(source, out, overwrite=True)
        assert len(synced) == 4
        assert sorted(os.listdir(tmp_path)) == ["in", "out"]
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
        synced.clear()
        with pytest.raises(BaseException):  # noqa: B017, PT011
            build_graph(source, tmp_path / "fresh")
        assert sorted(os.listdir(tmp_path)) == ["in", "out"]

    def test_a_taken_place_is_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        build_graph(written(tmp_path, "kb.txt", b"a|r|b\n"), tmp_path / "graph")
        with pytest.raises(GraphExists, match="overwrite=True"):
            build_graph(tmp_path / "nowhere", tmp_path / "graph")

    def test_building_again_over_a_graph_gives_the_same_bytes(self, tmp_path: Path) -> None:
        source = written(tmp_path, "kb.txt", b"a|r|b\nb|s|c\nc|r|a\n")
        build_graph(source, tmp_path / "graph")
        first = {path.name: path.read_bytes() for path in (tmp_path / "graph").iterdir()}
        build_graph(source, tmp_path / "graph", overwrite=True)
        assert {path.name: path.read_bytes() for path in (tmp_path / "graph").iterdir()} == first


class TestRealData:
    """Counts as the data's own description states them."""

    @pytest.fixture
    def data(self) -> Path:
        folder = Path(os.environ.get("BYOKG_DATA") or Path(__file__).parents[3].parent / "shared" / "data")
        if not (folder / "metaqa").is_dir():
            pytest.skip(f"no real data in {folder}; point BYOKG_DATA at a folder holding metaqa and freebase_core")
        return folder

    def test_metaqa(self, data: Path, tmp_path: Path) -> None:
        graph = build_graph(data / "metaqa", tmp_path / "metaqa")
        assert (graph.edge_count, graph.node_count, len(graph.relations)) == (133_582, 43_234, 9)
        with lzma.open(data / "metaqa" / "kb.txt.xz", "rt", encoding="utf-8") as lines:
            first = lines.readline().strip().split("|")
        assert graph.ids(np.array([0, 1])) == [first[0], first[2]]
        assert graph.relations[0] == first[1]
        entities = list(graph.entities())
        assert graph.numbers(entities).tolist() == list(range(43_234))
        assert sum(relation.count for relation in graph.schema().relations) == 133_582

    def test_freebase_core(self, data: Path) -> None:
        graph = import_graph(data / "freebase_core" / "graph.tsv.xz")
        assert (graph.edge_count, graph.node_count, len(graph.relations)) == (193_517, 95_953, 3_900)


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".nt"])
def test_a_file_whose_name_is_not_utf8_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"\udcff{ending}"
    path.write_bytes(b"a\tr\tb\n")
    with pytest.raises(ImportFailed, match="the name of the file is not UTF-8; rename it"):
        import_graph(path)
    with pytest.raises(ImportFailed, match="no such file or folder"):
        import_graph(tmp_path / f"\ud800{ending}")


class TestNetworkX:
    def test_attributes_become_names_types_and_properties(self) -> None:
        networkx = pytest.importorskip("networkx")
        source = networkx.MultiDiGraph()
        source.add_node(1, name="Ann", type="Person", born=1937, gone=None, score=float("nan"))
        source.add_node("film", day=datetime.date(1979, 5, 25))
        source.add_edge(1, "film", relation="starred", role="Ripley")
        source.add_edge(1, "film", key="directed")
        source.add_edge("film", "film", weight=np.float32(0.5))
        graph = from_networkx(source)
        assert graph.nodes(ids("1", "film")) == [
            Node(EntityId("1"), "Ann", "Person", {"born": 1937}),
            Node(EntityId("film"), "film", "", {"day": "1979-05-25"}),
        ]
        assert facts(graph) == [
            ("1", "starred", "film", {"role": "Ripley"}),
            ("1", "directed", "film", {}),
            ("film", "related_to", "film", {"weight": 0.5}),
        ]

    def test_an_edge_of_an_undirected_graph_is_kept_once_and_leads_both_ways(self) -> None:
        networkx = pytest.importorskip("networkx")
        source = networkx.Graph()
        source.add_edge("a", "b", label="near", kind="road")
        graph, other = from_networkx(source), from_networkx(source, relation="kind")
        assert facts(graph) == [("a", "near", "b", {"kind": "road"}), ("b", "near", "a", {"kind": "road"})]
        assert facts(other) == [("a", "road", "b", {"label": "near"}), ("b", "road", "a", {"label": "near"})]
        assert (graph.edge_count, graph.schema().relations[0].undirected) == (1, 1)

    def test_keys_that_read_alike_are_refused(self) -> None:
        networkx = pytest.importorskip("networkx")
        source = networkx.DiGraph([(1, "1")])
        with pytest.raises(GraphError, match="'1' occurs twice"):
            from_networkx(source)


class TestPandas:
    def test_edges_alone_are_triples(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"head": ["a", "a"], "relation": ["r", "r"], "tail": [1, 1]})
        graph = from_pandas(frame)
        assert facts(graph) == [("a", "r", "1", {})]
        assert graph.dropped_duplicates == 1

    def test_other_columns_are_properties_and_missing_cells_absent(self) -> None:
        pandas = pytest.importorskip("pandas")
        edges = pandas.DataFrame(
            {
                "subject": ["a", "b"],
                "predicate": ["r", "s"],
                "object": ["b", "a"],
                "since": [1990, None],
                "seen": pandas.array([True, None], "boolean"),
                "at": pandas.to_datetime(["2001-09-30", None]),
            }
        )
        nodes = pandas.DataFrame({"id": ["a", "b"], "label": ["Ann", None], "age": pandas.array([5, None], "Int64")})
        columns = {"head": "subject", "relation": "predicate", "tail": "object", "name": "label"}
        graph = from_pandas(edges, nodes, columns)
        assert graph.nodes(ids("a", "b")) == [Node(EntityId("a"), "Ann", "", {"age": 5}), Node(EntityId("b"), "b")]
        assert facts(graph) == [
            ("a", "r", "b", {"since": 1990.0, "seen": True, "at": "2001-09-30"}),
            ("b", "s", "a", {}),
        ]

    def test_a_missing_column_or_id_is_named(self) -> None:
        pandas = pytest.importorskip("pandas")
        with pytest.raises(GraphError, match="the frame of edges has no column 'relation'; it has head, tail: say"):
            from_pandas(pandas.DataFrame({"head": ["a"], "tail": ["b"]}))
        frame = pandas.DataFrame({"head": [None], "relation": ["r"], "tail": ["b"]})
        with pytest.raises(GraphError, match="a node has the id None"):
            from_pandas(frame)


class TestRecords:
    def test_the_graph_of_a_question_is_read(self) -> None:
        graph = from_record({"id": "q1", "graph": [["a", "r", "b"], ["a", "r", "b"], ["b", "s", "a"]]})
        assert facts(graph) == [("a", "r", "b", {}), ("b", "s", "a", {})]
        assert graph.dropped_duplicates == 1
        assert from_record({"graph": []}).node_count == 0

    @pytest.mark.parametrize(
        "record", [{"id": "q1"}, {"id": "q1", "graph": "none"}, {"id": "q1", "graph": [["a", "r"]]}]
    )
    def test_a_record_without_triples_is_named(self, record: dict[str, object]) -> None:
        with pytest.raises(GraphError, match="record 'q1'"):
            from_record(record)

    def test_every_sample_gives_a_graph_of_the_size_described(self) -> None:
        folder = Path(os.environ.get("BYOKG_DATA") or Path(__file__).parents[3].parent / "shared" / "data")
        source = folder / "rog_samples" / "webqsp_samples.jsonl.xz"
        if not source.is_file():
            pytest.skip(f"no {source}; point BYOKG_DATA at a folder holding rog_samples")
        with lzma.open(source, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        graphs = [from_record(record) for record in records]
        sizes = [graph.edge_count + graph.dropped_duplicates for graph in graphs]
        assert (len(graphs), min(sizes), max(sizes)) == (18, 348, 7499)
        assert facts(graphs[0])[0][0] == "Jamaica"


class TestSkipBad:
    @pytest.mark.parametrize(
        ("name", "content", "bad"),
        [
            ("kb.txt", "a|r|b\na|r\nb|r|c\n||x\nc|r|a\n", [2, 4]),
            ("graph.csv", 'head,relation,tail\na,r,b\n"b,r\nb,r,c\nc,r,a', [3]),
            (
                "graph.jsonl",
                '["a", "r", ""]\n["a", "r", "b"]\n{"no": 1}\n["b", "r", "c"]\n["c", "r", "a"]\n[',
                [1, 3, 6],
            ),
        ],
    )
    def test_bad_lines_are_left_out_and_told(self, tmp_path: Path, name: str, content: str, bad: list[int]) -> None:
        (tmp_path / name).write_text(content)
        told: list[ImportFailed] = []
        (tmp_path / "out").mkdir()
        graph = import_into(tmp_path / name, tmp_path / "out", len(bad), told.append)
        assert triples_of(graph) == [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")]
        assert sorted(error.line or 0 for error in told) == bad
        (tmp_path / "less").mkdir()
        with pytest.raises(ImportFailed):
            import_into(tmp_path / name, tmp_path / "less", len(bad) - 1)

    def test_so_are_nodes_and_edges_but_no_header(self, tmp_path: Path) -> None:
        (tmp_path / "nodes.csv").write_text("id,age:int\na,1\nb,old\nc,3\n")
        (tmp_path / "edges.csv").write_text("head,relation,tail\na,r,b\na,r,c\n")
        (tmp_path / "out").mkdir()
        told: list[ImportFailed] = []
        graph = import_into(tmp_path, tmp_path / "out", 5, told.append)
        assert triples_of(graph) == [("a", "r", "c")]
        assert [(Path(error.file).name, error.line) for error in told] == [("nodes.csv", 3), ("edges.csv", 2)]
        (tmp_path / "nodes.csv").write_text("name,age:int\na,1\n")
        with pytest.raises(ImportFailed, match="no column 'id'"):
            import_into(tmp_path, tmp_path / "out", 5)
