"""What a query names, and where: labels, relation types and properties, or predicates and classes.

Which procedures and functions a query may call, and the words that write or reach outside.

The existing names nearest to a wrong one, for messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from rapidfuzz import fuzz, process


def _by_lower_case(names: str) -> dict[str, str]:
    return {name.lower(): name for name in names.split()}


WRITES = {
    "CREATE": "CREATE adds to the graph",
    "MERGE": "MERGE adds to the graph what it does not find",
    "SET": "SET changes the graph",
    "DELETE": "DELETE removes from the graph",
    "DETACH": "DETACH DELETE removes from the graph",
    "NODETACH": "NODETACH DELETE removes from the graph",
    "REMOVE": "REMOVE changes the graph",
    "INSERT": "INSERT adds to the graph",
    "FOREACH": "FOREACH only serves to change the graph; read lists with UNWIND or a list comprehension",
    "DROP": "DROP changes the database",
    "ALTER": "ALTER changes the database",
    "RENAME": "RENAME changes the database",
    "GRANT": "GRANT changes the database",
    "DENY": "DENY changes the database",
    "REVOKE": "REVOKE changes the database",
    "TRUNCATE": "TRUNCATE removes from the graph",
    "UPDATE": "UPDATE changes the graph",
}
"""Cypher words that change something where a clause may begin, with what to tell the writer."""

OUTSIDE = {
    "LOAD": "LOAD CSV reads files and addresses outside the graph; ask the graph itself with MATCH",
    "USE": "USE leaves the graph that was given; leave it out",
    "TERMINATE": "TERMINATE acts on the server; only reading queries run",
    "SHOW": "SHOW asks about the server; to see labels use CALL db.labels(), otherwise leave it out",
    "START": "START is not a reading clause here; begin with MATCH",
    "STOP": "STOP acts on the server; only reading queries run",
    "BEGIN": "transactions are not for queries; leave it out",
    "COMMIT": "transactions are not for queries; leave it out",
    "ROLLBACK": "transactions are not for queries; leave it out",
    "SESSION": "SESSION acts on the server; only reading queries run",
    "DEFINE": "DEFINE adds procedures or functions; write the query without them",
    "USING": "USING is a hint directly behind a MATCH pattern; PERIODIC COMMIT and others are not allowed",
    "ENABLE": "ENABLE acts on the server; only reading queries run",
    "DEALLOCATE": "DEALLOCATE acts on the server; only reading queries run",
    "REALLOCATE": "REALLOCATE acts on the server; only reading queries run",
    "DRYRUN": "DRYRUN acts on the server; only reading queries run",
    "ANALYZE": "ANALYZE acts on the server; only reading queries run",
    "IMPORT": "IMPORT brings data in; only reading queries run",
    "EXPORT": "EXPORT writes data out; only reading queries run",
    "COPY": "COPY moves data in or out; only reading queries run",
    "INSTALL": "INSTALL acts on the server; only reading queries run",
    "ATTACH": "ATTACH opens another database; only the graph that was given is read",
}
"""Cypher words that reach past the graph or act on the server, with what to tell the writer."""

PROCEDURES = _by_lower_case(
    """
    db.labels db.relationshipTypes db.propertyKeys db.indexes db.constraints db.info db.ping
    dbms.components dbms.functions dbms.procedures
    db.schema.visualization db.schema.nodeTypeProperties db.schema.relTypeProperties
    db.index.fulltext.queryNodes db.index.fulltext.queryRelationships db.index.fulltext.listAvailableAnalyzers
    db.index.vector.queryNodes db.index.vector.queryRelationships

    meta.data meta.graph meta.graphSample meta.nodeTypeProperties meta.relTypeProperties meta.schema meta.stats
    path.expand path.expandConfig path.spanningTree path.subgraphAll path.subgraphNodes
    neighbors.athop neighbors.byhop neighbors.tohop neighbors.athop.count neighbors.byhop.count neighbors.tohop.count

    algo.adamicAdar algo.allSimplePaths algo.apsp algo.articleRank algo.articulationPoints algo.assortativity
    algo.astar algo.bellmanford algo.betweenness algo.bfs algo.biconnectedComponents algo.bipartite
    algo.bipartiteMatching algo.bridges algo.cch.shortestPath algo.clique algo.closeness algo.commonNeighbors
    algo.conductance algo.cover algo.cycleDetection algo.degree algo.densestSubgraph algo.dfs algo.dijkstra
    algo.dijkstra.singleSource algo.eccentricity algo.eigenvector algo.graphColoring algo.graphSummary algo.harmonic
    algo.hierarchicalClustering algo.hits algo.influenceMaximization algo.jaccard algo.katz algo.kcore algo.knn
    algo.kShortestPaths algo.kTruss algo.labelpropagation algo.leiden algo.localClusteringCoefficient
    algo.longestPath algo.louvain algo.maxFlow algo.modularityScore algo.mst algo.pagerank
    algo.personalizedPageRank algo.preferentialAttachment algo.randomWalk algo.resourceAllocation algo.richClub
    algo.sameCommunity algo.scc algo.simRank algo.slpa algo.topologicalSort algo.totalNeighbors algo.triangleCount
    algo.voteRank algo.wcc

    neptune.graph.pg_schema neptune.algo.bfs neptune.algo.bfs.levels neptune.algo.bfs.parents neptune.algo.bfs.tree
    neptune.algo.sssp.bellmanFord neptune.algo.sssp.bellmanFord.parents neptune.algo.sssp.bellmanFord.path
    neptune.algo.sssp.deltaStepping neptune.algo.sssp.deltaStepping.parents neptune.algo.sssp.deltaStepping.path
    neptune.algo.topkssp neptune.algo.egonet neptune.algo.degree neptune.algo.degreeDistribution
    neptune.algo.pageRank neptune.algo.closenessCentrality neptune.algo.wcc neptune.algo.scc
    neptune.algo.labelPropagation neptune.algo.louvain neptune.algo.overlapSimilarity
    neptune.algo.jaccardSimilarity neptune.algo.neighbors.common neptune.algo.neighbors.total
    neptune.algo.vectors.get neptune.algo.vectors.topKByNode neptune.algo.vectors.topKByEmbedding
    neptune.algo.vectors.topK.byNode neptune.algo.vectors.topK.byEmbedding
    neptune.algo.vectors.topKByEmbeddingWithFiltering neptune.algo.vectors.topKByNodeWithFiltering
    neptune.algo.vectors.distanceByEmbedding neptune.algo.vectors.distanceByNode
    neptune.algo.vectors.distance.byEmbedding neptune.algo.vectors.distance.byNode
    """
)
"""Procedures that only read, without ``apoc.`` in front; how to write each, by its name in lower case."""

FUNCTIONS = _by_lower_case(
    """
    date.realtime date.statement date.transaction date.truncate
    datetime.fromepoch datetime.fromepochmillis datetime.realtime datetime.statement datetime.transaction
    datetime.truncate
    localdatetime.realtime localdatetime.statement localdatetime.transaction localdatetime.truncate
    localtime.realtime localtime.statement localtime.transaction localtime.truncate
    time.realtime time.statement time.transaction time.truncate
    duration.between duration.inDays duration.inMonths duration.inSeconds
    point.distance point.withinBBox point.x point.y
    vector.similarity.cosine vector.similarity.euclidean
    create.uuid create.uuidBase64
    label.exists hashing.fingerprint
    meta.cypher.isType meta.cypher.type meta.cypher.types meta.isType meta.type meta.typeName meta.types
    schema.node.constraintExists schema.node.indexExists
    util.md5 util.sha1 util.sha256 util.sha384 util.sha512
    xml.parse json.path data.url
    """
)
"""Functions with a namespace that only compute or read, without ``apoc.`` in front; by name in lower case."""

FUNCTION_NAMESPACES = frozenset(
    """
    agg any bitwise coll convert date diff geo map math node nodes number path rel scoring temporal text vector
    """.split()
)
"""Namespaces all of whose functions only compute or read, without ``apoc.`` in front."""

SPARQL_FUNCTIONS = frozenset(
    """
    COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT
    STR LANG LANGMATCHES DATATYPE BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE
    ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW
    UUID STRUUID MD5 SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISURI ISBLANK ISLITERAL
    ISNUMERIC REGEX SUBSTR REPLACE
    TRIPLE SUBJECT PREDICATE OBJECT ISTRIPLE LANGDIR HASLANG HASLANGDIR STRLANGDIR SAMEVALUE ADJUST
    """.split()
)

SPARQL_FUNCTION_IRIS = (
    "http://www.w3.org/2001/XMLSchema#",
    "http://www.w3.org/2005/xpath-functions#",
    "http://www.w3.org/2005/xpath-functions/math#",
    "http://www.opengis.net/def/function/geosparql/",
    "http://jena.apache.org/ARQ/function#",
    "http://www.ontotext.com/sparql/functions/",
    "http://spinrdf.org/spif#",
)
"""Beginnings of the IRIs of functions that only compute."""

SPARQL_UPDATES = {
    "INSERT": "INSERT adds to the graph",
    "DELETE": "DELETE removes from the graph",
    "LOAD": "LOAD fetches a document from outside",
    "CLEAR": "CLEAR empties a graph",
    "DROP": "DROP removes a graph",
    "CREATE": "CREATE adds a graph",
    "ADD": "ADD copies one graph into another",
    "MOVE": "MOVE replaces a graph",
    "COPY": "COPY replaces a graph",
    "WITH": "WITH begins an update",
    "USING": "USING belongs to an update",
}

SPARQL_OUTSIDE = {
    "SERVICE": "SERVICE calls another server; ask this graph only (labels are behind rdfs:label)",
}


_SIGNS = re.compile(r"[\W_]")


def nearest_names(name: str, known: Iterable[str], count: int = 3, cutoff: float = 60.0) -> list[str]:
    """Return up to `count` of the known names, the most similar first.

    Similarity goes from 0 to 100: how much of the spelling is shared, or nearly as much where all words of one name
    are in the other. Case and signs between words do not count.
    """
    candidates = sorted(set(known))
    asked, folded = [_folded(name)], list(map(_folded, candidates))
    spelling = process.cdist(asked, folded, scorer=fuzz.ratio, dtype=np.float64)[0]
    words = process.cdist(asked, folded, scorer=fuzz.token_set_ratio, dtype=np.float64)[0]
    scores = np.maximum(spelling, 0.9 * words)
    return [candidates[at] for at in np.argsort(-scores, kind="stable")[:count].tolist() if scores[at] >= cutoff]


@lru_cache(1 << 14)
def _folded(name: str) -> str:
    return _SIGNS.sub(" ", name.casefold())


End = Literal["node", "edge"]


@dataclass(frozen=True)
class Name:
    """A label, relation type or property key as written, and the character where it starts."""

    text: str
    start: int


@dataclass(frozen=True)
class Binding:
    """What a pattern says of a variable: one of these labels or types, none when it does not say."""

    kind: End
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelUse:
    """A label or relation type that a query names; `kind` is None on a variable whose kind is unknown."""

    name: Name
    kind: End | None


@dataclass(frozen=True)
class PropertyUse:
    """A property asked of a variable, or of an anonymous pattern part."""

    name: Name
    owner: Binding


@dataclass(frozen=True)
class EdgeUse:
    """One step of a pattern, head to tail; `directed` is false where it may be walked either way."""

    types: tuple[Name, ...]
    head: Binding
    tail: Binding
    directed: bool
    single: bool
    """One edge, so both ends are its ends; false for variable length."""


@dataclass(frozen=True)
class IriUse:
    """A predicate, or the class behind ``a``: the full IRI and where it stands."""

    iri: str
    start: int
