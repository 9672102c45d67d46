"""Front of the offline room: answers without a language model.

Other folders import from here only. Each name is imported when first used, so that a pipeline with a language model
loads nothing of the room.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from byokg.offline.candidate_ranker import MeaningRanker, meaning_ranker, subgraph_retriever
    from byokg.offline.linker import GrowthLimits, OfflineLinker
    from byokg.offline.mentions import MentionSpotter
    from byokg.offline.pipeline import build_parser_and_ranker, offline_pipeline
    from byokg.offline.spotting import entity_spotter, mention_spotter
    from byokg.offline.training.fit import FitTask, Report, ShareEstimate, fit, linker_of, split_examples
    from byokg.offline.training.ranker import FitSettings, RankingExample, chain_cases, read_chains, read_inverses

_HOMES = {
    "FitSettings": "training.ranker",
    "FitTask": "training.fit",
    "GrowthLimits": "linker",
    "MeaningRanker": "candidate_ranker",
    "MentionSpotter": "mentions",
    "OfflineLinker": "linker",
    "RankingExample": "training.ranker",
    "Report": "training.fit",
    "ShareEstimate": "training.fit",
    "build_parser_and_ranker": "pipeline",
    "chain_cases": "training.ranker",
    "entity_spotter": "spotting",
    "fit": "training.fit",
    "meaning_ranker": "candidate_ranker",
    "linker_of": "training.fit",
    "mention_spotter": "spotting",
    "offline_pipeline": "pipeline",
    "read_chains": "training.ranker",
    "read_inverses": "training.ranker",
    "split_examples": "training.fit",
    "subgraph_retriever": "candidate_ranker",
}

__all__ = [
    "FitSettings",
    "FitTask",
    "GrowthLimits",
    "MeaningRanker",
    "MentionSpotter",
    "OfflineLinker",
    "RankingExample",
    "Report",
    "ShareEstimate",
    "build_parser_and_ranker",
    "chain_cases",
    "entity_spotter",
    "fit",
    "linker_of",
    "meaning_ranker",
    "mention_spotter",
    "offline_pipeline",
    "read_chains",
    "read_inverses",
    "split_examples",
    "subgraph_retriever",
]


def __getattr__(name: str) -> object:
    """Import a name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module 'byokg.offline' has no attribute {name!r}")
    return getattr(importlib.import_module(f"byokg.offline.{_HOMES[name]}"), name)
