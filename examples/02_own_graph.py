"""Import a graph of your own from a table of triples, print its schema, ask it, and run a path query."""

import tempfile
from pathlib import Path

from byokg import Byokg, KnowledgeGraph

TRIPLES = """\
Heat|directed_by|Michael Mann
Heat|starred_actor|Al Pacino
Heat|starred_actor|Robert De Niro
Ali|directed_by|Michael Mann
Ali|starred_actor|Will Smith
"""

with tempfile.TemporaryDirectory() as folder:
    source = Path(folder, "films.txt")
    source.write_text(TRIPLES, encoding="utf-8")
    graph = KnowledgeGraph.build(source, Path(folder, "graph"))

    for relation in graph.schema().relations:
        print(relation.name, relation.count)

    answer = Byokg(graph).ask("Which actors starred in films by Michael Mann?")
    print(", ".join(item.name for item in answer.items))

    step = ":starred_actor|^:starred_actor|:directed_by|^:directed_by"
    print(graph.paths(f"PATHS START ?x = <Al Pacino> END ?y = <Will Smith> VIA {step}").text())
