"""Answers questions over any knowledge graph, with evidence and a score that can be trusted.

The names below are the library; each is imported when first used, so that `import byokg` costs nothing.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from byokg.api import Byokg, KnowledgeGraph, offline_pipeline
    from byokg.errors import ByokgError
    from byokg.evaluation.datasets.base import Example
    from byokg.evaluation.datasets.benchmarks import MetaQA
    from byokg.evaluation.datasets.folder import Folder, atlas
    from byokg.evaluation.metrics import Metrics
    from byokg.evaluation.runner import RunSettings, run_evaluation
    from byokg.evaluation.tables import metrics_tables
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.importers.choose import import_graph
    from byokg.index.embedders import SentenceTransformerEmbedder, StaticEmbedder
    from byokg.index.hosted_embedders import LangChainEmbedder
    from byokg.linking.entities import EntityLinker
    from byokg.types import Answer, AnswerItem, Question

    __version__: str

_HOMES = {
    "Answer": "byokg.types",
    "AnswerItem": "byokg.types",
    "Byokg": "byokg.api",
    "ByokgError": "byokg.errors",
    "ColumnarGraph": "byokg.graph.columnar.graph",
    "EntityLinker": "byokg.linking.entities",
    "Example": "byokg.evaluation.datasets.base",
    "Folder": "byokg.evaluation.datasets.folder",
    "KnowledgeGraph": "byokg.api",
    "LangChainEmbedder": "byokg.index.hosted_embedders",
    "MetaQA": "byokg.evaluation.datasets.benchmarks",
    "Metrics": "byokg.evaluation.metrics",
    "Question": "byokg.types",
    "RunSettings": "byokg.evaluation.runner",
    "SentenceTransformerEmbedder": "byokg.index.embedders",
    "StaticEmbedder": "byokg.index.embedders",
    "atlas": "byokg.evaluation.datasets.folder",
    "import_graph": "byokg.graph.importers.choose",
    "metrics_tables": "byokg.evaluation.tables",
    "offline_pipeline": "byokg.offline",
    "run_evaluation": "byokg.evaluation.runner",
}

__all__ = [
    "Answer",
    "AnswerItem",
    "Byokg",
    "ByokgError",
    "ColumnarGraph",
    "EntityLinker",
    "Example",
    "Folder",
    "KnowledgeGraph",
    "LangChainEmbedder",
    "MetaQA",
    "Metrics",
    "Question",
    "RunSettings",
    "SentenceTransformerEmbedder",
    "StaticEmbedder",
    "__version__",
    "atlas",
    "import_graph",
    "metrics_tables",
    "offline_pipeline",
    "run_evaluation",
]


def __getattr__(name: str) -> object:
    """Import a public name from where it is defined."""
    if name == "__version__":
        value: object = _version()
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'byokg' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib import metadata  # takes half of the time of `import byokg`

    try:
        return metadata.version("byokg")
    except metadata.PackageNotFoundError:
        return "not installed"
