"""Small files in the layouts of other programs, content our own: as many nodes and edges as a second library finds.

Ann (n0) knows Bob (n1) twice, since 1990 and since 2000; Ann lives in Oslo (n2), Bob in Riga (n3): 4 nodes, 4 edges.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from byokg.errors import ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.importers.formats import FORMATS
from tests.graph.contract import facts

networkx = pytest.importorskip("networkx")
pyoxigraph = pytest.importorskip("pyoxigraph")

Counts = tuple[int, int]
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Layout:
    """A file or a folder of files, and what it holds."""

    name: str
    files: Files
    nodes: int = 4
    edges: int = 4
    relations: Sequence[str] = ("knows", "lives_in")
    types: Mapping[str, int] | None = None
    names: Sequence[str] = ()
    """Names of some nodes, in their order."""
    second: Callable[[Path], Counts] | None = None
    """Reads the source with another library."""
    refused: str = ""
    """Part of the message, if it is refused."""


def people() -> Any:
    graph = networkx.MultiDiGraph()
    for id_, name, kind in [
        ("n0", "Ann", "Person"),
        ("n1", "Bob", "Person"),
        ("n2", "Oslo", "City"),
        ("n3", "Riga", "City"),
    ]:
        graph.add_node(id_, name=name, type=kind)
    graph.add_edge("n0", "n1", relation="knows", since=1990)
    graph.add_edge("n0", "n1", relation="knows", since=2000)
    graph.add_edge("n0", "n2", relation="lives_in")
    graph.add_edge("n1", "n3", relation="lives_in")
    return graph


def written(write: Callable[[Any, Any], object]) -> bytes:
    stream = io.BytesIO()
    write(people(), stream)
    return stream.getvalue()


def counted(read: Callable[[str], Any]) -> Callable[[Path], Counts]:
    def count(path: Path) -> Counts:
        graph = read(str(path))
        return graph.number_of_nodes(), graph.number_of_edges()

    return count


def of_json(read: Callable[[Any], Any]) -> Callable[[Path], Counts]:
    return counted(lambda path: read(json.loads(Path(path).read_text())))


def of_rdf(path: Path) -> Counts:
    kind = pyoxigraph.RdfFormat.from_extension(path.suffix[1:])
    quads = list(pyoxigraph.parse(path=str(path), format=kind))
    links = {(quad.subject, quad.predicate, quad.object) for quad in quads if quad.predicate.value.endswith(KNOWN)}
    ends = {quad.subject for quad in quads} | {end for _, _, end in links}
    return len(ends), len(links)


KNOWN = ("knows", "lives_in")
TYPES = {"City": 2, "Person": 2}
NAMES = ("Ann", "Bob", "Oslo", "Riga")


def table(columns: Mapping[str, Sequence[object]]) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(dict(columns)), sink)
    return sink.getvalue()


def archive(files: Files, compression: int = zipfile.ZIP_STORED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", compression) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
    return sink.getvalue()


NODE_LINK = json.dumps(networkx.node_link_data(people(), edges="links"), indent=1)
GEXF, GML, GRAPHML = (written(write) for write in (networkx.write_gexf, networkx.write_gml, networkx.write_graphml))

APOC_ROWS: list[dict[str, Any]] = [
    {"type": "node", "id": "0", "labels": ["Person"], "properties": {"name": "Ann", "tags": ["a", "b"]}},
    {"type": "node", "id": "1", "labels": ["Person", "Poet"], "properties": {"name": "Bob"}},
    {"type": "relationship", "id": "0", "label": "KNOWS", "start": {"id": "0"}, "end": {"id": "1"}},
]

APOC_SCRIPT = """:begin
CREATE CONSTRAINT UNIQUE_IMPORT_NAME FOR (node:`UNIQUE IMPORT LABEL`) REQUIRE (node.`UNIQUE IMPORT ID`) IS UNIQUE;
:commit
CALL db.awaitIndexes(300);
:begin
UNWIND [{_id:0, properties:{name:"Ann; the first", born:date("1970-01-02")}}, {_id:1, properties:{name:"Bob"}}] AS row
CREATE (n:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`: row._id}) SET n += row.properties SET n:Person:Poet;
CREATE (:City:`UNIQUE IMPORT LABEL` {name:"Oslo", `UNIQUE IMPORT ID`:2});
:commit
:begin
UNWIND [{start: {_id:0}, end: {_id:1}, properties:{since:1990}}, {start: {_id:0}, end: {_id:1}, properties:{}}] AS row
MATCH (start:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`: row.start._id})
MATCH (end:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`: row.end._id})
CREATE (start)-[r:KNOWS]->(end) SET r += row.properties;
MATCH (n1:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`:2}), (n2:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`:0})
CREATE (n1)<-[r:`LIVES IN` {since:1999}]-(n2);
:commit
:begin
MATCH (n:`UNIQUE IMPORT LABEL`)  WITH n LIMIT 20000 REMOVE n:`UNIQUE IMPORT LABEL` REMOVE n.`UNIQUE IMPORT ID`;
:commit
DROP CONSTRAINT UNIQUE_IMPORT_NAME;
"""

SCRIPT = """// example data; by hand
CREATE (Ann:Person {name:'Ann', tags:['x', 'y']})
CREATE (Bob:Person {name:'Bob'}), (Oslo:City {name:'O\\'slo'})
CREATE
  (Ann)-[:KNOWS {since: -5}]->(Bob),
  (Bob)-[:KNOWS]->(Ann)-[:LIVES_IN]->(Oslo)
WITH Ann AS a
MATCH (a)-[:KNOWS]->(b) RETURN a, b LIMIT 10;
MERGE (b:Person {name: 'Bob'}) ON MATCH SET b.seen = true ON CREATE SET b.wrong = 1;
MERGE (c:Person {name: 'Cid'}) ON CREATE SET c.fresh = true, c:Poet ON MATCH SET c.wrong = 1;
MATCH (a:Person {name: 'Ann'}), (b:Person {name: 'Bob'}) MERGE (a)-[:KNOWS]->(b);
"""

JSON_LD = json.dumps(
    {
        "@context": {
            "ex": "http://example.org/",
            "name": "http://www.w3.org/2000/01/rdf-schema#label",
            "knows": {"@id": "ex:knows", "@type": "@id"},
            "home": {"@id": "ex:lives_in", "@type": "@id"},
        },
        "@graph": [
            {"@id": "ex:n0", "name": "Ann", "knows": "ex:n1", "home": "ex:n2"},
            {"@id": "ex:n1", "name": "Bob", "home": "ex:n3"},
        ],
    }
)
N3 = """@prefix ex: <http://example.org/> .
ex:n0 ex:knows ex:n1 ; ex:lives_in ex:n2 . ex:n1 ex:lives_in ex:n3 .
"""

OWL = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY owl "http://www.w3.org/2002/07/owl#">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#" xml:base="http://example.org/soup">
<owl:ObjectProperty rdf:about="#contains"/><owl:Class rdf:about="#Dish"/><owl:Class rdf:about="#Leek"/>
<owl:Class rdf:about="#Pea"/>
<owl:Class rdf:about="#LeekSoup">
  <rdfs:subClassOf rdf:resource="#Dish"/>
  <rdfs:subClassOf><owl:Restriction><owl:onProperty rdf:resource="#contains"/>
    <owl:someValuesFrom rdf:resource="#Leek"/></owl:Restriction></rdfs:subClassOf>
</owl:Class>
<owl:Class rdf:about="#GreenSoup"><owl:equivalentClass><owl:Class>
  <owl:intersectionOf rdf:parseType="Collection"><rdf:Description rdf:about="#Dish"/>
    <owl:Restriction><owl:onProperty rdf:resource="#contains"/><owl:allValuesFrom><owl:Class>
      <owl:unionOf rdf:parseType="Collection"><rdf:Description rdf:about="#Leek"/><rdf:Description rdf:about="#Pea"/>
      </owl:unionOf></owl:Class></owl:allValuesFrom></owl:Restriction></owl:intersectionOf>
</owl:Class></owl:equivalentClass></owl:Class>
</rdf:RDF>
"""

OBO = """format-version: 1.4
ontology: soup

[Term]
id: S:1
name: dish
def: "Something \\"cooked\\"." [us:1]

[Term]
id: S:2
name: soup
synonym: "broth" EXACT []
is_a: S:1 ! dish
relationship: has_part S:3 ! leek

[Term]
id: S:4
name: old
is_obsolete: true

[Typedef]
id: has_part
name: has part
"""


def statement(value: object, rank: str = "normal", **more: object) -> dict[str, object]:
    return {"mainsnak": {"snaktype": "value", "datavalue": {"value": value}}, "rank": rank, **more}


YEAR = {"snaktype": "value", "datavalue": {"value": {"time": "+1990-00-00T00:00:00Z", "precision": 9}}}
MARRIED = statement({"id": "Q2"}, qualifiers={"P580": [YEAR]})
WIKIDATA = "[\n{}\n]\n".format(
    ",\n".join(
        json.dumps(entity, separators=(",", ":"))
        for entity in [
            {
                "type": "item",
                "id": "Q1",
                "labels": {"de": {"value": "Anna"}, "en": {"value": "Ann"}},
                "aliases": {"en": [{"value": "Annie"}]},
                "claims": {
                    "P31": [statement({"id": "Q5"})],
                    "P26": [
                        statement({"id": "Q2"}, qualifiers={"P580": [YEAR]}),
                        statement({"id": "Q9"}, "deprecated"),
                    ],
                    "P569": [statement({"time": "+1970-01-02T00:00:00Z", "precision": 11})],
                    "P2048": [statement({"amount": "+1.7", "unit": "1"})],
                    "P18": [{"mainsnak": {"snaktype": "novalue"}, "rank": "normal"}],
                },
            },
            {"type": "item", "id": "Q5", "labels": {"en": {"value": "human"}}, "claims": []},
            {"type": "property", "id": "P26", "labels": {"en": {"value": "spouse"}}, "claims": {}},
        ]
    )
)

DOT = """/* people */ strict digraph "People" {
  rankdir=LR; node [shape=box]
  n0 [label="Ann", type=Person]; n1 [label=<<b>Bob</b>>, type=Person]
  n0 -> n1 [label=knows]; n0 -> n1 [label="knows", since=2000]
  subgraph cluster_0 { label="cities"; n2; n3 } // two
  n0 -> n2 [label=lives_in]; n1:port:n -> n3 [label=lives_in]
}
"""

PRIMEKG = """relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source
contains,contains,0,D1,dish,Soup,own,1,V1,vegetable,Leek,own
contains,contains,0,D1,dish,Soup,own,2,V2,vegetable,Pea,own
"""

GENES = {
    "metanode_kinds": ["Gene", "Disease"],
    "nodes": [
        {"kind": "Gene", "identifier": 1, "name": "G1", "data": {"chromosome": "X"}},
        {"kind": "Disease", "identifier": "D:1", "name": "Cold", "data": {}},
    ],
    "edges": [
        {"source_id": ["Gene", 1], "target_id": ["Disease", "D:1"], "kind": "causes", "direction": "both", "data": {}}
    ],
}

LAYOUTS = [
    Layout("NetworkX GEXF", {"g.gexf": GEXF}, types=TYPES, names=NAMES, second=counted(networkx.read_gexf)),
    Layout("GEXF as .xml", {"g.xml": GEXF}, types=TYPES, names=NAMES),
    Layout("NetworkX GML", {"g.gml": GML}, types=TYPES, names=NAMES, second=counted(networkx.read_gml)),
    Layout(
        "GML in UTF-8",
        {"g.gml": 'graph [\n directed 1\n node [ id 1 label "Zoë" ]\n node [ id 2 ]\n edge [ source 1 target 2 ]\n]\n'},
        2,
        1,
        ["related_to"],
        names=["Zoë", "2"],
    ),
    Layout(
        "Pajek",
        {"g.net": '*Vertices 3\n1 "Ann" 0.1 0.2\n2 "Bob"\n3 "Cid D"\n*Arcs\n1 2 2.0\n2 3 1\n*Edges\n1 3 1\n'},
        3,
        3,
        ["related_to"],
        names=["Ann", "Bob", "Cid D"],
        second=counted(networkx.read_pajek),
    ),
    Layout("DOT", {"g.dot": DOT}, names=["Ann", "Bob", "n2", "n3"]),
    Layout("undirected DOT", {"g.gv": "graph { a -- b -- c; c -- {d e} }"}, 5, 4, ["related_to"]),
    Layout("GraphML", {"g.graphml": GRAPHML}, types=TYPES, second=counted(networkx.read_graphml)),
    Layout(
        "node-link",
        {"g.json": NODE_LINK},
        types=TYPES,
        names=NAMES,
        second=of_json(lambda data: networkx.node_link_graph(data, edges="links")),
    ),
    Layout("node-link, compressed", {"g.json.gz": gzip.compress(NODE_LINK.encode())}, types=TYPES),
    Layout(
        "D3, ends by place",
        {"g.json": json.dumps({"nodes": [{"name": "Ann"}, {"name": "Bob"}], "links": [{"source": 0, "target": 1}]})},
        2,
        1,
        ["related_to"],
        names=["Ann", "Bob"],
    ),
    Layout(
        "Cytoscape",
        {"g.json": json.dumps(networkx.cytoscape_data(people()))},
        types=TYPES,
        names=NAMES,
        second=of_json(networkx.cytoscape_graph),
    ),
    Layout(
        "Cytoscape without groups",
        {"g.cyjs": json.dumps({"elements": [
            {"data": {"id": "a"}}, {"data": {"id": "b"}, "position": {"x": 1}},
            {"data": {"id": "e", "source": "a", "target": "b", "interaction": "pp"}},
        ]})},
        2, 1, ["pp"],
    ),
    Layout(
        "Graphology",
        {"g.json": json.dumps({
            "options": {"type": "undirected"},
            "nodes": [{"key": "a", "attributes": {"label": "Ann"}}, {"key": "b"}],
            "edges": [{"key": "e", "source": "a", "target": "b"}],
        })},
        2, 1, ["related_to"], names=["Ann", "b"],
    ),
    Layout(
        "JSON Graph",
        {"g.json": json.dumps({"graph": {"nodes": {"a": {"label": "Ann", "metadata": {"k": 1}}, "b": {}},
                                         "edges": [{"source": "a", "target": "b", "relation": "knows"}]}})},
        2, 1, ["knows"], names=["Ann", "b"],
    ),
    Layout(
        "OBO Graphs",
        {"g.json": json.dumps({"graphs": [{"nodes": [{"id": "http://x/A", "lbl": "dish"}, {"id": "http://x/B"}],
                                           "edges": [{"sub": "http://x/B", "pred": "is_a", "obj": "http://x/A"}]}]})},
        2, 1, ["is_a"], names=["dish", "http://x/B"],
    ),
    Layout("Hetionet JSON", {"h.json": json.dumps(GENES)}, 2, 1, ["causes"], {"Disease": 1, "Gene": 1}, ["G1", "Cold"]),
    Layout(
        "Hetionet tables",
        {"h-v1-nodes.tsv": "id\tname\tkind\nGene::1\tG1\tGene\nDisease::1\tCold\tDisease\n",
         "h-v1-edges.sif": "source\tmetaedge\ttarget\nGene::1\tGcD\tDisease::1\n"},
        2, 1, ["GcD"], {"Disease": 1, "Gene": 1},
    ),
    Layout("APOC JSON lines", {"a.json": "".join(f"{json.dumps(row)}\n" for row in APOC_ROWS)}, 2, 1, ["KNOWS"],
           {"Person": 2, "Poet": 1}, ["Ann", "Bob"]),
    Layout("APOC JSON", {"a.json": json.dumps({"nodes": APOC_ROWS[:2], "rels": APOC_ROWS[2:]})}, 2, 1, ["KNOWS"],
           {"Person": 2, "Poet": 1}, ["Ann", "Bob"]),
    Layout("APOC JSON array", {"a.json": json.dumps(APOC_ROWS)}, 2, 1, ["KNOWS"], {"Person": 2, "Poet": 1}),
    Layout(
        "APOC JSON by id",
        {"a.json": json.dumps({"nodes": {row["id"]: row for row in APOC_ROWS[:2]}, "rels": {"0": APOC_ROWS[2]}})},
        2, 1, ["KNOWS"], {"Person": 2, "Poet": 1},
    ),
    Layout("APOC script", {"a.cypher": APOC_SCRIPT}, 3, 3, ["KNOWS", "LIVES IN"], {"City": 1, "Person": 2, "Poet": 2},
           ["Ann; the first", "Bob", "Oslo"]),
    Layout("script by hand", {"a.cql": SCRIPT}, 4, 3, ["KNOWS", "LIVES_IN"], {"City": 1, "Person": 3, "Poet": 1},
           ["Ann", "Bob", "O'slo", "Cid"]),
    Layout("JSON-LD", {"g.jsonld": JSON_LD}, 4, 3, ["ex:knows", "ex:lives_in"], second=of_rdf),
    Layout("JSON-LD as .json", {"g.json": JSON_LD}, 4, 3, ["ex:knows", "ex:lives_in"]),
    Layout("N3", {"g.n3": N3}, 4, 3, ["ex:knows", "ex:lives_in"], second=of_rdf),
    Layout("OWL with restrictions", {"soup.owl": OWL}, 6, 5, ["rdfs:subClassOf", "soup:contains"]),
    Layout("OBO", {"soup.obo": OBO}, 4, 2, ["is_a", "has part"], names=["dish", "soup", "old"]),
    Layout("SIF", {"g.sif": "Ann knows Bob Cid\nBob\tlives in\tRiga\nDan\n"}, 5, 3, ["knows", "lives in"]),
    Layout("Wikidata dump", {"w.json.bz2": bz2.compress(WIKIDATA.encode())}, 3, 2, ["P31", "spouse"],
           {"": 2, "human": 1}, ["Ann", "human"]),
    Layout("KGTK", {"k.tsv": "id\tnode1\tlabel\tnode2\ne1\tQ1\tP31\tQ5\ne2\tQ2\tP31\tQ5\n"}, 3, 2, ["P31"]),
    Layout("PrimeKG", {"kg.csv": PRIMEKG}, 3, 2, ["contains"], {"dish": 1, "vegetable": 2}, ["Soup", "Leek", "Pea"]),
    Layout(
        "Microsoft GraphRAG",
        {"entities.parquet": table({"id": ["u1", "u2"], "title": ["ANN", "BOB"], "type": ["person", "person"]}),
         "relationships.parquet": table({"id": ["r"], "source": ["ANN"], "target": ["BOB"], "weight": [1.0]}),
         "text_units.parquet": table({"id": ["t"], "text": ["Ann knows Bob."]})},
        2, 1, ["related_to"], {"person": 2}, ["ANN", "BOB"],
    ),
    Layout(
        "Gephi tables",
        {"les-nodes.csv": "Id,Label,timeset\n1,Ann,\n2,Bob,\n",
         "les-edges.csv": "Source,Target,Type,Id,Label,timeset,Weight\n1,2,Undirected,0,,,1.0\n"},
        2, 1, ["related_to"], names=["Ann", "Bob"],
    ),
    Layout("zipped GEXF", {"g.zip": archive({"people/g.gexf": GEXF, "__MACOSX/._g": "x"})}, types=TYPES, names=NAMES),
    Layout("zipped tables", {"g.zip": archive({"x/nodes.csv": "id,name\n1,Ann\n2,Bob\n",
                                               "x/edges.csv": "head,relation,tail\n1,knows,2\n"})}, 2, 1, ["knows"]),
    Layout("CypherBench", {"g.json": json.dumps({
        "entities": [{"eid": "Q1", "label": "Person", "name": "Ann", "aliases": [], "properties": {"age": 3}},
                     {"eid": "Q2", "label": "City", "name": "Ulm", "properties": {}}],
        "relations": [{"rid": "r1", "label": "livesIn", "subj_id": "Q1", "obj_id": "Q2", "properties": {}}],
    })}, 2, 1, ["livesIn"], {"City": 1, "Person": 1}, ["Ann", "Ulm"]),
    Layout("KQA Pro", {"kb.json": json.dumps({
        "concepts": {"C1": {"name": "human", "instanceOf": []}},
        "entities": {
            "Q1": {"name": "Ann", "instanceOf": ["C1"],
                   "attributes": [{"key": "height", "value": {"type": "quantity", "value": 1.7, "unit": "metre"}}],
                   "relations": [{"predicate": "spouse", "object": "Q2", "direction": "forward",
                                  "qualifiers": {"start time": [{"type": "year", "value": 1990}]}}]},
            "Q2": {"name": "Bob", "instanceOf": ["C1"], "attributes": [],
                   "relations": [{"predicate": "spouse", "object": "Q1", "direction": "backward", "qualifiers": {}}]},
        },
    })}, 3, 3, ["instance of", "spouse"], {"human": 2, "concept": 1}, ["human", "Ann", "Bob"]),
    Layout("a list of triples", {"g.json": '[["a","knows","b"],["b","knows","c"]]'}, 3, 2, ["knows"]),
    # Refused, with the reason
    Layout("Neo4j dump", {"neo4j.dump": b"DZV1\0\1"}, refused="neo4j-admin database load"),
    Layout("Neo4j store", {"neostore": b"", "neostore.nodestore.db": b""}, refused="store of Neo4j's own"),
    Layout("OWL functional syntax", {"o.owl": "Prefix(:=<http://x/>)\nOntology(<http://x>)\n"}, refused="robot"),
    Layout("GML that is geography", {"g.gml": "<?xml version='1.0'?><gml:Map/>"}, refused="Geography Markup"),
    Layout("a page of HTML", {"g.csv": "<!DOCTYPE html><html></html>"}, refused="a page of HTML"),
    Layout("questions", {"q.json": '{"questions": [{"id": 1}]}'}, refused="no lists of nodes.*it holds questions"),
    Layout("questions with graphs", {"q.parquet": table({"question": ["?"], "graph": [[["a", "r", "b"]]]})},
           refused="byokg eval dataset=rog"),
    Layout("entities in GEXF", {"g.gexf": '<!DOCTYPE g [<!ENTITY a "x">]><gexf/>'}, refused="declares the entity 'a'"),
    Layout("entities within entities", {"g.rdf": '<!DOCTYPE r [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><r/>'},
           refused="the entity 'b' refers to others"),
    Layout("deep JSON", {"g.json": "[" * 1_000_000}, refused="nested too deep|no JSON"),
    Layout("deep DOT", {"g.dot": f"digraph {{{'{' * 20_000}{'}' * 20_000}}}"}, refused="nested too deep"),
    Layout("a context on the web", {"g.jsonld": '{"@context": "https://schema.org/", "@id": "http://x/a"}'},
           refused="nothing is fetched"),
    Layout("an archive that leads out", {"g.zip": archive({"../../evil.csv": "a"})}, refused="leads out of"),
    Layout("an archive that fills the disk", {"g.zip": archive({"g.csv": bytes(1 << 27)}, zipfile.ZIP_DEFLATED)},
           refused="as if to fill the disk"),
    Layout("a script that reads files", {"a.cypher": "CREATE (:P);\nLOAD CSV FROM 'x' AS r CREATE (:P);"},
           refused="a.cypher:2: at 'LOAD': this clause is not read"),
    Layout("a script cut short", {"a.cypher": "CREATE (:P);\nCREATE (:P {n:'x"}, refused="a.cypher:2: .*never ends"),
    Layout("an unknown node", {"g.json": '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}'},
           refused="'2', which is no node"),
]  # fmt: skip

GOOD = [layout for layout in LAYOUTS if not layout.refused]


def laid(folder: Path, files: Files) -> Path:
    """Write the files of a source; return the file, or the folder of several."""
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / next(iter(files)) if len(files) == 1 else folder


@pytest.mark.parametrize("layout", GOOD, ids=lambda layout: layout.name)
def test_a_layout_gives_the_counts_that_a_second_library_gives(tmp_path: Path, layout: Layout) -> None:
    source = laid(tmp_path, layout.files)
    graph = import_graph(source)
    assert (graph.node_count, graph.edge_count) == (layout.nodes, layout.edges)
    assert list(graph.relations) == list(layout.relations)
    if layout.types is not None:
        assert graph.schema().node_types == layout.types
    names = [node.name for node in graph.nodes(list(graph.entities()))]
    assert names[: len(layout.names)] == list(layout.names)
    if layout.second:
        assert layout.second(source) == (layout.nodes, layout.edges)


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.refused], ids=lambda layout: layout.name)
def test_what_is_no_graph_is_refused_with_the_true_reason(tmp_path: Path, layout: Layout) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ImportFailed, match=layout.refused):
        build_graph(laid(tmp_path / "in", layout.files), tmp_path / "out" / "graph")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("layout", GOOD, ids=lambda layout: layout.name)
def test_a_file_cut_short_or_in_another_encoding_gives_a_typed_error_if_any(tmp_path: Path, layout: Layout) -> None:
    name, content = next(iter(layout.files.items()))
    data = content if isinstance(content, bytes) else content.encode()
    for changed in (data[: len(data) // 2], data[: len(data) - 3], data.replace(b"n", b"\xe9"), b"", b"\0" + data):
        with suppress(ImportFailed):
            import_graph(laid(tmp_path, {**layout.files, name: changed}))


def test_a_graph_in_memory_and_one_in_a_folder_are_alike(tmp_path: Path) -> None:
    source = laid(tmp_path, {"a.cypher": APOC_SCRIPT})
    assert facts(build_graph(source, tmp_path / "g")) == facts(import_graph(source))


def test_values_of_a_script_and_of_wikidata_are_kept(tmp_path: Path) -> None:
    script = import_graph(laid(tmp_path, {"a.cql": SCRIPT}))
    assert facts(script) == [("0", "KNOWS", "1", {"since": -5}), ("0", "LIVES_IN", "2", {}), ("1", "KNOWS", "0", {})]
    kept = {node.name: dict(node.properties) for node in script.nodes(list(script.entities()))}
    assert kept == {"Ann": {"tags": "x;y"}, "Bob": {"seen": True}, "O'slo": {}, "Cid": {"fresh": True}}
    dump = import_graph(laid(tmp_path, {"w.json": WIKIDATA}))
    assert facts(dump) == [("Q1", "P31", "Q5", {}), ("Q1", "spouse", "Q2", {"P580": "1990"})]
    [ann] = dump.nodes([next(iter(dump.entities()))])
    assert dict(ann.properties) == {"aliases": "Annie", "P569": "1970-01-02", "P2048": 1.7}


@pytest.mark.parametrize("comment", ["", "/* read token by token */ "])
def test_a_literal_of_a_script_is_the_same_as_a_whole_and_token_by_token(tmp_path: Path, comment: str) -> None:
    literal = (
        r"""{name: 'O\'Hara "x"', n: -2.5e3, `odd key`: "q\"uote", 'quoted': TRUE, true: 1, gone: Null, """
        "text: 'line\nbreak', deep: [1, 'a;b', {c: [], d: {}}]}"
    )
    script = f"UNWIND [{comment}{literal}, {comment}{{name: 'Zoë', deep: [[[[1]]]]}}] AS row CREATE (n:P) SET n = row;"
    graph = import_graph(laid(tmp_path, {"a.cypher": script}))
    assert {node.name: dict(node.properties) for node in graph.nodes(list(graph.entities()))} == {
        "O'Hara \"x\"": {
            "n": -2500.0, "odd key": 'q"uote', "quoted": True, "true": 1, "text": "line\nbreak",
            "deep": "1;a;b;{c: [], d: {}}",
        },
        "Zoë": {"deep": "[[[1]]]"},
    }  # fmt: skip


def test_a_name_without_an_ending_is_read_by_its_content(tmp_path: Path) -> None:
    for content, kind in ((GEXF, "GEXF"), (NODE_LINK.encode(), "JSON document"), (DOT.encode(), "DOT")):
        (tmp_path / "graph").write_bytes(content if kind != "DOT" else content.replace(b"/* people */ ", b""))
        graph: ColumnarGraph = import_graph(tmp_path / "graph")
        assert graph.source["kind"] == kind


def test_each_format_has_a_name_an_ending_and_a_library() -> None:
    assert all(one.name and one.endings and one.library for one in FORMATS)
    assert all(ending.startswith(".") and ending == ending.lower() for one in FORMATS for ending in one.endings)
