"""Small files in the forms that graphs have in the wild: read with the right counts, or refused with the reason."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from byokg.errors import ConfigError, ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers import delimited, dialects
from byokg.graph.importers.choose import build_graph, files_read, import_graph
from byokg.graph.importers.dialects import TableOptions
from tests.graph.contract import facts

Fact = tuple[str, str, str, Mapping[str, Any]]
FILE = "edges.csv"


@dataclass(frozen=True)
class Form:
    """A source, and what it is."""

    name: str
    files: Mapping[str, str | bytes]
    """Content of each file; one alone is imported by itself, and of several the folder."""
    facts: Sequence[Fact] = ()
    """All edges, by node and relation number."""
    nodes: int = 0
    repeated: int = 0
    undirected: int = 0
    """How many of the edges lead both ways; `facts` holds them from either end."""
    read_as: Sequence[str] = ()
    """How each file was read, or the beginning of that."""
    refused: str = ""
    """Part of the error, if there is one."""
    line: int | None = 1
    options: TableOptions = field(default_factory=TableOptions)
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of some nodes, by id."""


def one(content: str | bytes, name: str = FILE) -> Mapping[str, str | bytes]:
    return {name: content}


def zstd(content: bytes) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as compressed:
        compressed.write(content)
    return bytes(stream.getvalue())


def parquet_bytes(columns: Mapping[str, Sequence[object]]) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(dict(columns)), sink)
    return sink.getvalue()


R = "related_to"
NO_RELATION = '(none: "related_to")'
KNOWS: list[Fact] = [("ann", "knows", "bob", {}), ("bob", "likes", "cid", {})]
LINKS: list[Fact] = [("a", R, "b", {}), ("b", R, "c", {})]
BOTH: list[Fact] = [("ann", R, "bob", {}), ("bob", R, "ann", {})]
WEIGHED = [("a", R, "b", {"weight": 0.5}), ("b", R, "c", {"weight": 2.0})]

GOOD = [
    # Headers of known names
    Form(
        "a header of ends and a weight",
        one("Source,Target,Weight\n" + "".join(f"n{at},n{at + 1},{at / 4}\n" for at in range(100))),
        [(f"n{at}", R, f"n{at + 1}", {"Weight": at / 4}) for at in range(100)],
        101,
        read_as=[f"comma, header; source=Source, relation={NO_RELATION}, target=Target, property Weight (float)"],
    ),
    Form("subject, predicate, object", one("subject,predicate,object\nann,knows,bob\nbob,likes,cid\n"), KNOWS, 3),
    Form("source, relation, target", one("source,relation,target\nann,knows,bob\nbob,likes,cid\n"), KNOWS, 3),
    Form("another order", one("source,target,relation\nann,bob,knows\nbob,cid,likes\n"), KNOWS, 3),
    Form("capitals and tail first", one("TAIL\tREL\tHEAD\nbob\tknows\tann\ncid\tlikes\tbob\n", "x.tsv"), KNOWS, 3),
    Form("bars", one("subject|predicate|object\nann|knows|bob\nbob|likes|cid\n", "kb.txt"), KNOWS, 3),
    Form("single letters", one("s,p,o\nann,knows,bob\nbob,likes,cid\n"), KNOWS, 3),
    Form("h, r, t with tabs in .txt", one("h\tr\tt\nann\tknows\tbob\nbob\tlikes\tcid\n", "train.txt"), KNOWS, 3),
    Form(
        "u and v with spaces",
        one("u v weight\nann bob 0.5\nbob cid 2\n", "g.edgelist"),
        [("ann", R, "bob", {"weight": 0.5}), ("bob", R, "cid", {"weight": 2.0})],
        3,
        read_as=["space, header"],
    ),
    Form("from and to", one("from;to;weight\na;b;0.5\nb;c;2\n"), WEIGHED, 3, read_as=["semicolon, header"]),
    Form("source_id and target_id", one("source_id,target_id,rel_type\nann,bob,knows\nbob,cid,likes\n"), KNOWS, 3),
    Form(
        "ids beside names of ends",
        one("source_name,source_id,target_name,target_id,type\nAnn,1,Bob,2,knows\n"),
        [("1", "knows", "2", {"source_name": "Ann", "target_name": "Bob"})],
        2,
    ),
    Form(
        "STRING: numbered columns",
        one("protein1 protein2 combined_score\n9606.P1 9606.P2 900\n9606.P2 9606.P3 150\n", "string.txt"),
        [("9606.P1", R, "9606.P2", {"combined_score": 900}), ("9606.P2", R, "9606.P3", {"combined_score": 150})],
        3,
    ),
    Form(
        "BioGRID: lettered columns",
        one("Interactor A\tInteractor B\tScore\nP1\tP2\t-\n", "biogrid.tab"),
        [("P1", R, "P2", {"Score": "-"})],
        2,
    ),
    Form(
        "KGTK",
        one("id\tnode1\tlabel\tnode2\ne1\tQ1\tP31\tQ5\ne2\tQ2\tP31\tQ5\n", "kgtk.tsv"),
        [("Q1", "P31", "Q5", {"id": "e1"}), ("Q2", "P31", "Q5", {"id": "e2"})],
        3,
    ),
    Form(
        "PrimeKG",
        one("relation,display_relation,x_index,x_id,x_name,y_index,y_id,y_name\nppi,interacts,0,97,A,7,56,B\n"),
        [("0", "ppi", "7", {"display_relation": "interacts", "x_id": 97, "x_name": "A", "y_id": 56, "y_name": "B"})],
        2,
    ),
    Form(
        "properties of all kinds",
        one(
            "source,target,date,ok,zip,n,w,note\na,b,2020-01-31,true,00123,5,1e3,NA\nb,c,2021-02-28,FALSE,12345,,.5,\n"
        ),
        [
            ("a", R, "b", {"date": "2020-01-31", "ok": True, "zip": "00123", "n": 5, "w": 1000.0, "note": "NA"}),
            ("b", R, "c", {"date": "2021-02-28", "ok": False, "zip": "12345", "w": 0.5}),
        ],
        3,
        read_as=[
            f"comma, header; source=source, relation={NO_RELATION}, target=target, properties date (date), ok (bool), "
            "zip (text), n (int), w (float), note (text)"
        ],
    ),
    Form(
        "kinds in the header",
        one("head,relation,tail,zip:int,note\na,r,b,00123,7\n"),
        [("a", "r", "b", {"zip": 123, "note": "7"})],
        2,
    ),
    Form(
        "times in the header",
        one("head,relation,tail,start,end\na,r,b,-44,14\n"),
        [("a", "r", "b", {"start": -44, "end": 14})],
        2,
    ),
    Form("German names", one("Quelle;Ziel;Gewicht\na;b;0,5\n"), [("a", R, "b", {"Gewicht": "0,5"})], 2),
    Form(
        "neo4j-admin edges alone",
        one(":START_ID,:END_ID,:TYPE,since:int\nann,bob,knows,1990\n", "rels.csv"),
        [("ann", "knows", "bob", {"since": 1990})],
        2,
    ),
    # Without a header
    Form(
        "MetaQA",
        one("ann|knows|bob\nbob|likes|cid\n", "kb.txt"),
        KNOWS,
        3,
        read_as=["'|', no header (first: ann, knows, bob); source=column 1"],
    ),
    Form(
        "Freebase",
        one("m.01\tpeople.person.parents\tm.02\n", "fb.tsv"),
        [("m.01", "people.person.parents", "m.02", {})],
        2,
    ),
    Form(
        "Wikidata5M",
        one("Q1\tP31\tQ5\nQ2\tP31\tQ5\n", "train.txt"),
        [("Q1", "P31", "Q5", {}), ("Q2", "P31", "Q5", {})],
        3,
    ),
    Form("two columns", one("a,b\nb,c\n"), LINKS, 3, read_as=["comma, no header (first: a, b); source=column 1"]),
    Form("two columns and blanks", one("  a   b\nb \t c  \n", "g.edges"), LINKS, 3),
    Form("OpenKE", one("2\n0 1 0\n1 2 1\n", "train2id.txt"), [("0", "0", "1", {}), ("1", "1", "2", {})], 3),
    Form(
        "an entity that is named Source",
        one("Source,is_a,Target\nTarget,is_a,Thing\n"),
        [("Source", "is_a", "Target", {}), ("Target", "is_a", "Thing", {})],
        3,
    ),
    Form(
        "entities that are named head and tail",
        one("head\tpart_of\tbody\ntail\tpart_of\tbody\n", "x.tsv"),
        [("head", "part_of", "body", {}), ("tail", "part_of", "body", {})],
        3,
    ),
    Form(
        "a relation that is named type",
        one("Berlin,type,City\nBonn,type,City\n"),
        [("Berlin", "type", "City", {}), ("Bonn", "type", "City", {})],
        3,
    ),
    Form(
        "numbers at the end of triples",
        one("Alien|year|1979\nHeat|year|1995\n", "kb.txt"),
        [("Alien", "year", "1979", {}), ("Heat", "year", "1995", {})],
        4,
    ),
    Form(
        "a hash that is no comment",
        one("#MeToo|is_a|Movement\nBLM|is_a|Movement\n", "kb.txt"),
        [("#MeToo", "is_a", "Movement", {}), ("BLM", "is_a", "Movement", {})],
        3,
    ),
    Form(
        "years behind triples",
        one("a\tr\tb\t1990\t1995\n", "x.tsv"),
        [("a", "r", "b", {"start": 1990, "end": 1995})],
        2,
    ),
    # Dialects
    Form("tabs in .csv", one("source\ttarget\na, 1\tb\n"), [("a, 1", R, "b", {})], 2, read_as=["tab, header"]),
    Form("commas in .txt", one("ann,knows,bob\nbob,likes,cid\n", "g.txt"), KNOWS, 3),
    Form("semicolons and commas within", one("source;target;label\na;b;x, y\n"), [("a", "x, y", "b", {})], 2),
    Form(
        "quoted separators, quotes and newlines",
        one('source;target;label\n"a;1";"say ""b""";"two\nlines"\n"x";y;z\n'),
        [("a;1", "two\nlines", 'say "b"', {}), ("x", "z", "y", {})],
        4,
    ),
    Form(
        "quoted header and tabs, as R writes",
        one('"from"\t"to"\t"w"\n"a"\t"b"\t1\n', "r.tsv"),
        [("a", R, "b", {"w": 1})],
        2,
    ),
    Form(
        "a quoted tab",
        one('source\ttarget\trelation\n"a\tb"\tc\tr\nd\te\tr\n', "q.tsv"),
        [("a\tb", "r", "c", {}), ("d", "r", "e", {})],
        4,
    ),
    Form("all quoted, as R writes", one('"ann"\t"knows"\t"bob"\n"bob"\t"likes"\t"cid"\n', "r.tsv"), KNOWS, 3),
    Form("Excel's hint", one("sep=;\r\nsource;target\r\na;b\r\nb;c\r\n"), LINKS, 3),
    Form("Excel's hint without a header", one('"sep=,"\nann,knows,bob\nbob,likes,cid\n'), KNOWS, 3),
    Form(
        "single quotes",
        one("source,target\n'a, b','c'\n"),
        [("a, b", R, "c", {})],
        2,
        read_as=["comma, quote ', header"],
    ),
    Form("a space behind each comma", one("source, relation, target\nann, knows, bob\nbob, likes, cid\n"), KNOWS, 3),
    Form("an UTF-8 mark", one("\ufeffsource,target\na,b\nb,c\n"), LINKS, 3),
    Form(
        "UTF-16",
        one(codecs.BOM_UTF16_LE + "source\ttarget\nä\tö\n".encode("utf-16-le"), "x.tsv"),
        [("ä", R, "ö", {})],
        2,
    ),
    Form(
        "UTF-16, the other way",
        one(codecs.BOM_UTF16_BE + "ann|knows|bob\nbob|likes|cid\n".encode("utf-16-be"), "kb.txt"),
        KNOWS,
        3,
    ),
    Form("CRLF and empty lines", one("\r\nsource,target\r\n\r\na,b\r\n\r\n\r\nb,c"), LINKS, 3),
    Form("gz", one(gzip.compress(b"source,target\na,b\nb,c\n"), "e.csv.gz"), LINKS, 3),
    Form("xz", one(lzma.compress(b"source,target\na,b\nb,c\n"), "e.csv.xz"), LINKS, 3),
    Form("bz2", one(bz2.compress(b"source,target\na,b\nb,c\n"), "e.csv.bz2"), LINKS, 3),
    Form("zst", one(zstd(b"source,target\na,b\nb,c\n"), "e.csv.zst"), LINKS, 3),
    Form(
        "SNAP",
        one("# Directed graph: web.txt\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\na\tb\nb\tc\n", "web.txt"),
        LINKS,
        3,
        read_as=["tab, comments #, header in a comment; source=FromNodeId"],
    ),
    Form("comments among the records", one("# of today\nsource,target\na,b\n# more\nb,c\n"), LINKS, 3),
    Form("a separator at the end of lines", one("source,target,weight,\na,b,0.5,\nb,c,2,\n"), WEIGHED, 3),
    Form("a separator at the end of records", one("source,target,weight\na,b,0.5,\nb,c,2,\n"), WEIGHED, 3),
    Form("numbers of rows, as pandas writes", one(",source,target\n0,a,b\n1,b,c\n"), LINKS, 3),
    Form(
        "repetitions",
        one("source,target,year\na,b,1\na,b,1\na,b,2\n"),
        [("a", R, "b", {"year": 1}), ("a", R, "b", {"year": 2})],
        2,
        1,
    ),
    # Nodes beside edges
    Form(
        "Gephi's tables",
        {
            "Lesmis [Nodes].csv": "Id,Label,timeset,modularity_class\n1,Ann,,0\n2,Bob,,1\n3,Cid,,1\n",
            "Lesmis [Edges].csv": "Source,Target,Type,Id,Label,timeset,Weight\n1,2,Directed,0,,,1.5\n",
        },
        [("1", R, "2", {"Id": 0, "Weight": 1.5})],
        3,
        read_as=[
            "comma, header; id=Id, name=Label, properties timeset (no values), modularity_class (int)",
            f"comma, header; source=Source, relation={NO_RELATION}, target=Target, direction=Type, properties Id (int)",
        ],
        names={"1": "Ann", "3": "Cid"},
    ),
    Form(
        "other names, tabs and semicolons",
        {
            "nodes.tsv": "node_id\tNAME\tclass\tage\n1\tAnn\tPerson\t41\n2\tBob\tPerson\t\n",
            "edges.csv": "from;to;type\n1;2;KNOWS\n",
        },
        [("1", "KNOWS", "2", {})],
        2,
        names={"2": "Bob"},
    ),
    Form(
        "labels that are types",
        {"nodes.csv": "id,label\n1,Person\n2,Person\n3,City\n4,City\n", "edges.csv": "source,target\n1,3\n"},
        [("1", R, "3", {})],
        4,
        names={"1": "1"},
    ),
    Form("edges alone in a folder", {"edges.csv": "source,target\na,b\nb,c\n", "README.md": "text"}, LINKS, 3),
    Form(
        "two files of edges", {"edges-1.csv": "source,target\na,b\n", "edges-2.csv": "target;source\nc;b\n"}, LINKS, 3
    ),
    # Undirected edges
    Form(
        "Gephi's undirected edges",
        {
            "nodes.csv": "Id,Label\n1,Ann\n2,Bob\n3,Cid\n",
            "edges.csv": "Source,Target,Type,Weight\n1,2,Undirected,0.5\n2,3,Directed,2\n",
        },
        [("1", R, "2", {"Weight": 0.5}), ("2", R, "1", {"Weight": 0.5}), ("2", R, "3", {"Weight": 2.0})],
        3,
        undirected=1,
    ),
    Form(
        "an undirected edge from either end is one",
        one("source;target;type\na;b;undirected\nb;a;Undirected\nc;a;directed\n"),
        [("a", R, "b", {}), ("b", R, "a", {}), ("c", R, "a", {})],
        3,
        1,
        undirected=1,
    ),
    Form("a column directed", one("u,v,directed\nann,bob,false\n"), BOTH, 2, undirected=1),
    Form("an option", one("ann bob\n", "g.edges"), BOTH, 2, undirected=1, options=TableOptions(undirected=True)),
    Form("KONECT", one("% sym unweighted\n% 1 2 2\nann bob\n", "out.edges"), BOTH, 2, undirected=1),
    Form("SNAP without directions", one("# Undirected graph: x.txt\nann\tbob\n", "x.txt"), BOTH, 2, undirected=1),
    Form(
        "Parquet",
        one(parquet_bytes({"source": ["ann"], "target": ["bob"], "directed": [False]}), "e.parquet"),
        BOTH,
        2,
        undirected=1,
    ),
    Form(
        "JSON lines, one undirected",
        one('{"source": "ann", "target": "bob", "directed": false}\n', "e.jsonl"),
        BOTH,
        2,
        undirected=1,
    ),
    Form(
        "JSON lines, a type",
        one('{"head": "ann", "relation": "related_to", "tail": "bob", "type": "Undirected"}\n', "e.jsonl"),
        BOTH,
        2,
        undirected=1,
    ),
    Form(
        "GraphML without directions",
        one(
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
            '<node id="ann"/><node id="bob"/><edge source="ann" target="bob"/></graph></graphml>',
            "g.graphml",
        ),
        BOTH,
        2,
        undirected=1,
    ),
    Form(
        "Neptune's tables",
        {
            "vertices.csv": "~id,~label,name:String(single),age:Int\nv1,person,Ann,41\nv2,person,Bob,\n",
            "edges.csv": "~id,~from,~to,~label,weight:Double\ne1,v1,v2,knows,0.5\n",
        },
        [("v1", "knows", "v2", {"~id": "e1", "weight": 0.5})],
        2,
        names={"v1": "Ann"},
    ),
    Form(
        "entities and relations",
        {"entities.csv": "id,name\nann,Ann\nbob,Bob\n", "relations.csv": "source,target,type\nann,bob,knows\n"},
        KNOWS[:1],
        2,
        names={"bob": "Bob"},
    ),
    Form("Wikidata's query service", one("item,property,value\nQ1,P31,Q5\n"), [("Q1", "P31", "Q5", {})], 2),
    Form(
        "quotes and spaces",
        one('"Ann Lee" knows "Bob Day"\n"Bob Day" likes Cid\n', "g.txt"),
        [("Ann Lee", "knows", "Bob Day", {}), ("Bob Day", "likes", "Cid", {})],
        3,
    ),
    # Siblings
    Form(
        "Parquet",
        one(parquet_bytes({"Target": ["b", "c"], "weight": [0.5, 2.0], "Source": ["a", "b"]}), "e.parquet"),
        WEIGHED,
        3,
        read_as=[f"Parquet; source=Source, relation={NO_RELATION}, target=Target, property weight (float)"],
    ),
    Form(
        "Parquet in a folder of its own",
        {
            "nodes.parquet": parquet_bytes({"ID": [1, 2], "Label": ["Ann", "Bob"]}),
            "edges.parquet": parquet_bytes({"src": [1], "dst": [2], "Predicate": ["knows"]}),
        },
        [("1", "knows", "2", {})],
        2,
        names={"1": "Ann"},
    ),
    Form(
        "JSON lines",
        one(
            '{"Source": "ann", "Target": "bob", "Label": "knows"}\n'
            '{"Source": "bob", "Target": "cid", "Label": "likes"}\n',
            "g.jsonl",
        ),
        KNOWS,
        3,
    ),
    Form(
        "JSON lines without a relation",
        one(
            '{"source": "a", "target": "b", "weight": 0.5}\n{"target": "c", "source": "b", "weight": 2.0}\n', "g.jsonl"
        ),
        WEIGHED,
        3,
    ),
    Form(
        "JSON lines with nodes",
        one('{"ID": 1, "Name": "Ann"}\n{"ID": 2, "Name": "Bob"}\n{"from": 1, "to": 2, "type": "knows"}\n', "g.jsonl"),
        [("1", "knows", "2", {})],
        2,
        names={"1": "Ann"},
    ),
    # What the user decides
    Form(
        "columns by number",
        one("0.5,b,a\n2,c,b\n"),
        WEIGHED,
        3,
        options=TableOptions(("weight:float", "target", "source")),
    ),
    Form("a column left out", one("a,x,b\nb,y,c\n"), LINKS, 3, options=TableOptions(("source", "-", "target"))),
    Form(
        "columns by header",
        one("person,likes,friend\nann,knows,bob\nbob,likes,cid\n"),
        KNOWS,
        3,
        options=TableOptions(("source=person", "relation=likes", "target=friend")),
    ),
    Form(
        "no header, though it looks like one",
        one("source,target\nann,bob\n"),
        [("source", R, "target", {}), ("ann", R, "bob", {})],
        4,
        options=TableOptions(header=False),
    ),
    Form(
        "a delimiter",
        one("a;b;0,5\nc;d;0,7\n"),
        [("a", "b", "0,5", {}), ("c", "d", "0,7", {})],
        4,
        options=TableOptions(delimiter=";"),
    ),
    Form("a comment", one("# 1,2,3\na,r,b\n"), [("a", "r", "b", {})], 2, options=TableOptions(comment="#")),
]

REFUSED = [
    Form("one weight", one("Ann,Bob,0.5\n"), refused="may be a weight or a node"),
    Form(
        "a direction that is none",
        one("source,target,type\na,b,Directed\nb,c,Both\n"),
        refused="the direction 'Both' is neither Directed nor Undirected",
        line=3,
    ),
    Form("half of a character", one("source,target\na,b\n".encode("utf-16")[:-1]), refused="UTF-16", line=None),
    Form("bars and weights", one("a|b|1\nb|c|2\n", "g.psv"), refused="--columns source,target,weight or"),
    Form(
        "letters above numbers", one("x,y\n1,2\n"), refused="--no-header, or --header and --columns source=x,target=y"
    ),
    Form(
        "splits in a folder",
        {"train.txt": "a\tr\tb\n", "test.txt": "b\tr\tc\n"},
        refused="holds 2 tables (test.txt, train.txt)",
        line=None,
    ),
    Form("a title above the header", one("Nodes of 2020\n\nsource,target\na,b\n"), refused="expected 3 fields"),
    Form(
        "a header or an edge",
        one("Source,is_a,Target\nBook,part_of,Thing\n"),
        refused="--no-header or --columns relation=is_a",
    ),
    Form(
        "a header whose name is an entity, too",
        one("source,relation,target\nsource,is,a\n"),
        refused="decide with --header or --no-header",
    ),
    Form(
        "a header with unknown ends",
        one("person,rel,company\nAnn,works,Acme\n"),
        refused="--columns source=person,relation=rel,target=company",
    ),
    Form(
        "two unknown columns",
        one("user_id,movie_id\n1,2\n3,4\n"),
        refused="--header and --columns source=user_id,target=movie_id",
    ),
    Form(
        "a text above numbers",
        one("Ann,Bob,since\nCid,Dan,1990\nDan,Eva,1991\n"),
        refused="--no-header, or --header and",
    ),
    Form(
        "weights or nodes",
        one("a b 0.5\nb c 0.7\n", "g.edgelist"),
        refused="--columns source,target,weight or --columns source,relation,target",
    ),
    Form(
        "two separators",
        one("a;b;0,5\nc;d;0,7\n"),
        refused="decide with --delimiter ';', for example, or in graph.yaml",
    ),
    Form("two relations", one("source,target,type,label\na,b,x,y\n"), refused="--columns relation=type"),
    Form("a comment or a record", one("# a, b, c\na,r,b\n"), refused="--comment '#' or --comment ''"),
    Form(
        "a ragged record", one("source,target\na,b\nb\n"), refused="expected 2 fields separated by ',', found 1", line=3
    ),
    Form("a quote never closed", one('source,target\n"a,b\nb,c\n'), refused="quot", line=2),
    Form("an end without a name", one("source,target\na,\n"), refused="the tail is empty", line=2),
    Form("a column twice", one("source,target,x,x\na,b,1,2\n"), refused="column 'x' stands twice"),
    Form("NetworkX with attributes", one("1 2 {'weight': 3}\n2 3 {'weight': 5}\n", "g.edgelist"), refused="data=False"),
    Form("an adjacency list", one("a b c\nd e\n", "g.edgelist"), refused="expected 3 fields"),
    Form(
        "Matrix Market",
        one("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 0.5\n", "g.edges"),
        refused="Matrix Market",
    ),
    Form("more columns than triples have", one("a,b,c,d\ne,f,g,h\n"), refused="name the columns with --columns"),
    Form("one column", one("a\nb\n"), refused="found 1"),
    Form("a header alone", one("source,target\n"), refused="holds no triples", line=None),
    Form("nothing", one(""), refused="the file is empty", line=None),
    Form("Latin-1", one("source,target\nZ\xfcrich,Bern\n".encode("latin-1")), refused="byte 0xfc is not UTF-8", line=2),
    Form(
        "an edge without its node",
        {"nodes.csv": "Id\n1\n", "edges.csv": "Source,Target\n1,2\n"},
        refused="tail '2' is not an id in nodes.csv",
        line=2,
    ),
    Form(
        "nodes without an id",
        {"nodes.csv": "colour,size\nred,1\n", "edges.csv": "Source,Target\n1,2\n"},
        refused="explain the tables in a file graph.yaml",
    ),
    Form(
        "too few names for columns",
        one("a,b,c\n"),
        refused="--columns names 2 columns",
        options=TableOptions(("source", "target")),
    ),
    Form(
        "a column that is not there",
        one("a,b\nc,d\n"),
        refused="--columns source=x",
        options=TableOptions(("source=x", "target=b")),
    ),
    Form(
        "JSON lines with two relations",
        one('{"source": "a", "target": "b", "type": "x", "label": "y"}\n', "g.jsonl"),
        refused="may each hold the relation",
    ),
    Form(
        "Parquet without ends",
        one(parquet_bytes({"a": ["x"], "b": ["y"]}), "g.parquet"),
        refused="no two columns for the ends",
        line=None,
    ),
]


def write(folder: Path, form: Form) -> Path:
    for name, content in form.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / next(iter(form.files)) if len(form.files) == 1 else folder


@pytest.fixture(params=[1 << 26, 30], ids=["one block", "a line a block"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file holds must not depend on where it is cut."""
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("form", GOOD, ids=lambda form: form.name)
def test_a_form_is_read_with_all_its_nodes_and_edges(form: Form, tmp_path: Path) -> None:
    source = write(tmp_path, form)
    graph = import_graph(source, form.options)
    assert sorted(map(repr, facts(graph))) == sorted(map(repr, form.facts))
    assert (graph.node_count, graph.edge_count) == (form.nodes, len(form.facts) - form.undirected)
    assert graph.dropped_duplicates == form.repeated
    assert sum(relation.undirected for relation in graph.schema().relations) == form.undirected
    assert {name: graph.nodes([name])[0].name for name in form.names} == form.names  # type: ignore[list-item]
    told = files_read(graph)
    for line, expected in zip(told, form.read_as, strict=bool(form.read_as)):
        assert expected in line
    check_counts(graph)


def check_counts(graph: ColumnarGraph) -> None:
    """The rows of all files of edges are edges or repetitions, and those of nodes are nodes."""
    files = [file for file in graph.source["files"] if "rows" in file]
    rows = {"id=" in file["read_as"]: 0 for file in files}
    for file in files:
        rows["id=" in file["read_as"]] += file["rows"]
    if files and graph.source["kind"] != "JSON lines":
        assert rows[False] == graph.edge_count + graph.dropped_duplicates
        assert rows.get(True, graph.node_count) == graph.node_count


@pytest.mark.parametrize("form", REFUSED, ids=lambda form: form.name)
def test_a_form_in_doubt_or_damaged_is_refused_with_the_reason(form: Form, tmp_path: Path) -> None:
    source = write(tmp_path, form)
    with pytest.raises(ImportFailed, match=re.escape(form.refused)) as caught:
        import_graph(source, form.options)
    assert caught.value.line == form.line


@pytest.mark.parametrize("form", GOOD[:40:3], ids=lambda form: form.name)
def test_a_saved_graph_is_the_one_in_memory(form: Form, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = write(tmp_path / "in", form)
    saved = build_graph(source, tmp_path / "out", options=form.options)
    assert facts(saved) == facts(import_graph(source, form.options))
    assert files_read(ColumnarGraph.open(tmp_path / "out")) == files_read(saved)


def test_only_the_beginning_of_a_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def count(read_bytes: Any, size: int) -> bytes:
        read.append(size)
        return bytes(read_bytes(size))

    monkeypatch.setattr(dialects, "_read_exactly", count)
    path = tmp_path / "kb.txt"
    path.write_text("ann|knows|bob\n" * 100_000)
    assert import_graph(path).edge_count == 1
    assert read == [1 << 16]


def test_a_kind_that_only_the_last_value_decides(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("source,target,w\n" + "".join(f"a,b{at},{at}\n" for at in range(5000)) + "a,z,high\n")
    graph = import_graph(path)
    assert graph.schema().relations[0].property_details[0].kind == "string"
    assert files_read(graph)[0].endswith("property w (text); 5,001 rows")


def test_the_line_about_a_file_is_one_line_whatever_its_header_holds(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text('source,target,"a\nb\x1b[31m"\nx,y,z\n')
    [line] = files_read(import_graph(path))
    assert line.endswith("property a b [31m (text); 1 row")


@pytest.mark.parametrize("options", [{"delimiter": "ab"}, {"comment": "//"}])
def test_options_that_are_no_characters_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options.values()))):
        TableOptions(**options)  # type: ignore[arg-type]
