"""Front of the offline room: answers without a language model.

Other folders import from here only. Each name is imported when first used, so that a pipeline with a language model
loads nothing of the room.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from byokg.offline.candidate_ranker import MeaningRanker as MeaningRanker
    from byokg.offline.candidate_ranker import meaning_ranker as meaning_ranker
    from byokg.offline.candidate_ranker import subgraph_retriever as subgraph_retriever
    from byokg.offline.linker import GrowthLimits as GrowthLimits
    from byokg.offline.linker import OfflineLinker as OfflineLinker
    from byokg.offline.mentions import MentionSpotter as MentionSpotter
    from byokg.offline.mentions import entity_spotter as entity_spotter
    from byokg.offline.mentions import mention_spotter as mention_spotter
    from byokg.offline.pipeline import build_parser_and_ranker as build_parser_and_ranker
    from byokg.offline.pipeline import offline_pipeline as offline_pipeline
    from byokg.offline.pipeline import query_reader as query_reader
    from byokg.offline.planner import Planner as Planner
    from byokg.offline.training.fit import FitTask as FitTask
    from byokg.offline.training.fit import Report as Report
    from byokg.offline.training.fit import ShareEstimate as ShareEstimate
    from byokg.offline.training.fit import fit as fit
    from byokg.offline.training.fit import linker_of as linker_of
    from byokg.offline.training.fit import split_examples as split_examples
    from byokg.offline.training.ranker import FitSettings as FitSettings
    from byokg.offline.training.ranker import RankingExample as RankingExample
    from byokg.offline.training.ranker import chain_cases as chain_cases
    from byokg.offline.training.ranker import read_chains as read_chains
    from byokg.offline.training.ranker import read_inverses as read_inverses

_HOMES = {
    "candidate_ranker": "MeaningRanker meaning_ranker subgraph_retriever",
    "linker": "GrowthLimits OfflineLinker",
    "mentions": "MentionSpotter entity_spotter mention_spotter",
    "pipeline": "build_parser_and_ranker offline_pipeline query_reader",
    "planner": "Planner",
    "training.fit": "FitTask Report ShareEstimate fit linker_of split_examples",
    "training.ranker": "FitSettings RankingExample chain_cases read_chains read_inverses",
}


def __getattr__(name: str) -> object:
    """Import a name from its module."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'byokg.offline' has no attribute {name!r}")
    return getattr(importlib.import_module(f"byokg.offline.{home}"), name)
