"""All metric profiles by name, in the order in which tables list them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from byokg.errors import ConfigError
from byokg.evaluation.profiles.base import Profile
from byokg.evaluation.profiles.byokg_rag import BYOKG, TEXT2CYPHER
from byokg.evaluation.profiles.one_reply import STRUCTGPT, TOG
from byokg.evaluation.profiles.ranked import CRON, STARK
from byokg.evaluation.profiles.strict import STRICT
from byokg.evaluation.profiles.subgraphrag import SUBGRAPHRAG
from byokg.evaluation.profiles.substring import GCR, GNN_RAG, ROG
from byokg.evaluation.profiles.webqsp_official import WEBQSP_OFFICIAL

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            STRICT,
            BYOKG,
            ROG,
            GNN_RAG,
            GCR,
            SUBGRAPHRAG,
            TOG,
            STRUCTGPT,
            WEBQSP_OFFICIAL,
            CRON,
            STARK,
            TEXT2CYPHER,
        )
    }
)

ALL = "all"


def chosen(names: Sequence[str]) -> tuple[Profile, ...]:
    """Return the profiles of these names, each once; `all` is all of them.

    Raises:
        ConfigError: there is no such profile.
    """
    known = list(PROFILES)
    for name in names:
        if name not in known and name != ALL:
            raise ConfigError(f"--profile {name} is not known; use {ALL}, or some of {', '.join(known)}")
    wanted = known if ALL in names else list(dict.fromkeys(names))
    return tuple(PROFILES[name] for name in wanted)
