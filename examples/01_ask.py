"""Ask a question over the shipped graph and print the answers with the path behind them."""

import tempfile
from pathlib import Path

from byokg import Byokg, KnowledgeGraph, atlas
from byokg.retrieval.verbalize import names_of, verbalize_path
from byokg.types import PathEvidence

with tempfile.TemporaryDirectory() as folder:
    graph = KnowledgeGraph.build(atlas().graph_source(), Path(folder, "graph"))
    answer = Byokg(graph).ask("Who was born in the country whose capital is Vienna?")
    for item in answer.items[:3]:
        print(f"{item.name} (score {item.score:.2f}, evidence {', '.join(item.citations)})")

    best = answer.rounds[0].evidence[0]
    assert isinstance(best, PathEvidence)
    print(verbalize_path(best.paths[0], names_of(graph.store, [best], shown=1)))
