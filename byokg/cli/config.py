"""Settings: Hydra composes YAML files and words of the command line, and signatures validate and complete them.

Hydra merges the chosen options (`dataset=metaqa`). Single values (`dataset.root=/a, b/c=d`) are put into the composed
result, so its grammar, to which commas, quotes, brackets and `=` mean something, never sees them.

Options are YAML files, byokg's own or in a folder of the user's (`--config-dir`), and entry points of installed
packages (`ENTRY_POINTS`). A file lists differences from the class or function in its `_target_`, whose signature has
the rest (`components`). The settings of the run itself are `RunOptions`.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.defaults_list import DefaultsList, create_defaults_list
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathElement
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, TypeAdapter, ValidationError

from byokg.cli.components import (
    RETRIEVERS,
    SECRET,
    TARGET,
    Typed,
    check_option,
    config_dirs,
    describe_misfit,
    entry_points,
    first_argument,
    first_line,
    flatten,
    groups,
    import_target,
    instantiate,
    join_words,
    missing_keys,
    nearest,
    open_ended,
    option_file,
    options,
    settings_of,
    show_entry_points_to_hydra,
    split_list,
    validate,
)
from byokg.errors import ConfigError
from byokg.files import has_separator
from byokg.graph.store import GraphStore
from byokg.open import EXAMPLES, SCHEMES, is_address, mask, open_graph, server_kind
from byokg.prompts import VARIABLES
from byokg.text.languages import LanguageChoice

Requirement = Literal["answers_in_graph", "executable"]
"""Conditions on questions that depend on the graph."""

COMPONENTS = ("graph", "embedding", "llm", "linking", "budget", "pipeline", "dataset", "train")
"""Groups whose chosen option may build something."""

_SERVERS = frozenset(SCHEMES.values())
_ENGINES = frozenset({"columnar", "arcadedb", "oxigraph", "both_engines"})

_PLACES_IN = {
    "graph": "path cache region endpoint_url ca_file user_agent timeout_hint timeout_s patience_s attempts page_rows "
    "fetch_size reply_mb heap_mb memory_mb",
    "dataset": "root graph",
    "embedding": "path base_url region profile endpoint_url device batch_size timeout_s max_retries",
    "llm": "base_url region profile device key_variable streaming prompt_caching batch timeout_s attempts concurrency "
    "tokens_per_minute",
}
_NOT_RECORDED = frozenset(
    (
        *"out shard workers budget train replies prices prompts deadline_s tracing".split(),
        *(f"{group}.{name}" for group, names in _PLACES_IN.items() for name in names.split()),
    )
)
"""Settings left out of a run's record. Places of files and services, and patience with them, change no answer
(checksums identify the content of files). A run that has used up its budget is continued with a higher one, recorded
replies are the same at any place, and of prompts the content counts, which is recorded apart."""


# The settings of the run itself


@dataclass(frozen=True)
class GraphPlace:
    """The graph of a run.

    Args:
        path: folder written by `byokg graph build`, or a server (neo4j://…); null takes the data set's own
        per_question: each question has its own subgraph; null: if the data set has them (dataset=rog) and no other
            graph is named
        cache: folder of built graphs of data sets; null is the user's cache folder
    """

    path: Path | str | None = None
    per_question: bool | None = None
    cache: Path | None = None


@dataclass(frozen=True)
class OracleSettings:
    """Annotations of a data set granted to a pipeline.

    Args:
        entities: linked: found in the question; gold: topic entities granted from the data set
        hops: predicted: decided from the question; gold: hop count granted from the data set
    """

    entities: Literal["linked", "gold"] = "linked"
    hops: Literal["predicted", "gold"] = "predicted"


@dataclass(frozen=True)
class Replies:
    """Recording and replay of language models' replies.

    Args:
        mode: auto: recorded replies are used, others requested; record: all requested anew; replay: recorded only; off
        path: file of recorded replies; null is the user's cache folder
    """

    mode: Literal["auto", "record", "replay", "off"] = "auto"
    path: Path | None = None


@dataclass(frozen=True)
class RunOptions:
    """Settings of a run that belong to no component.

    Args:
        out: run folder; null names one under runs/ after the data set and the settings
        ids: questions of these ids only, ID,ID,…, or @FILE with one a line
        types: questions of these types only
        require: answers_in_graph: an answer is a node; executable: the gold query returns rows, which are gold then
        per_type: number of each type, drawn by seed
        sample: number of questions, drawn by seed; a larger sample contains the smaller ones
        limit: number of first questions
        repeats: number of times each question is run with a language model, each time with another sample
        shard: 3/16: every 16th of them from the third on; byokg merge puts all together
        seed: of the confidence intervals, and of draws
        language: of the questions: en, de, es, zh; auto detects that of each
        workers: number of questions answered concurrently
        tracing: otlp sends a span of each question, stage and call to OTEL_EXPORTER_OTLP_ENDPOINT
        deadline_s: longest wait of one question for language models, in seconds; null for any time
        prices: YAML file of models' prices, read before byokg's own (byokg/llm/prices.yaml)
        prompts: files that replace byokg's own by name; NAME.md in prompts.folder replaces the prompt NAME
    """

    out: Path | None = None
    ids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    require: tuple[Requirement, ...] = ()
    per_type: Annotated[int, Field(ge=1)] | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    repeats: Annotated[int, Field(ge=1)] = 1
    shard: str | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    language: LanguageChoice = "auto"
    workers: Annotated[int, Field(ge=1)] = 1
    tracing: Literal["none", "otlp"] = "none"
    deadline_s: Annotated[float, Field(gt=0)] | None = None
    prices: Path | None = None
    graph: GraphPlace = field(default_factory=GraphPlace)
    linking: OracleSettings = field(default_factory=OracleSettings)
    replies: Replies = field(default_factory=Replies)
    prompts: Mapping[str, Path | None] = field(default_factory=dict)


_RUN_GROUPS = {"graph": GraphPlace, "linking": OracleSettings, "replies": Replies}


@dataclass(frozen=True)
class Settings:
    """A composed and checked configuration."""

    run: RunOptions
    options: Mapping[str, str | None]
    """Chosen option of each group, or the import path given in its place."""
    components: Mapping[str, Mapping[str, Any]]
    """By group, `_target_` and all of its settings; groups whose option builds nothing are left out."""
    values: Mapping[str, Any]
    """Everything, as nested mappings with checked values."""

    def build(self, group: str, *place: object, **given: object) -> Any:
        """Make the component that was chosen from a group.

        Args:
            group: of the component.
            place: place of a graph, or parts of a pipeline; empty for other groups.
            given: shared components, by name.

        Raises:
            ConfigError: none was chosen, a required setting is missing, it rejects its arguments, or it does not
                implement the group's protocol.
            MissingExtra: it needs a package that is not installed.
        """
        if group not in self.components:
            raise ConfigError(
                f"no {group} is chosen; choose one of {join_words(f'{group}={o}' for o in options(group))}"
            )
        missing = list(missing_keys(self.components[group], group))
        if missing:
            example = " ".join(f"{key}=…" for key in missing)
            raise ConfigError(f"{group}={self.options[group]} needs {join_words(missing)}; add {example}")
        return instantiate(self.components[group], group, place, **given)

    def open_graph(self, place: Path | str | None) -> GraphStore:
        """Open a graph with the chosen store and settings; a user's own store defines its place.

        Raises:
            ConfigError: there is no place, and the store needs one. Otherwise the errors of `open.open_graph`.
        """
        target = self.components["graph"][TARGET]
        if place is None and (name := first_argument(import_target(target, "graph"))):
            raise ConfigError(
                f"graph={self.options['graph']} needs graph.path, for {name!r} of {target}; add graph.path=…"
            )
        places = () if place is None else (place,)
        if not target.startswith("byokg."):
            return cast(GraphStore, self.build("graph", *places))
        return open_graph(str(place), opener=lambda place: cast(GraphStore, self.build("graph", place)))

    def recorded(self) -> dict[str, Any]:
        """Return the settings for a run's record: all that can change an answer, no places of files and no secrets.

        The address of a graph's server is kept: nothing else identifies the graph.
        """
        values = {key: _without_places(value, key) for key, value in self.values.items() if key not in _NOT_RECORDED}
        if isinstance(self.run.graph.path, str):
            values["graph"] = {"path": self.run.graph.path, **values["graph"]}
        # An experiment is a way of choosing these.
        chosen = {group: self.options[group] for group in COMPONENTS if group not in _NOT_RECORDED}
        return {"options": chosen, **_masked({key: value for key, value in values.items() if value != {}})}


# Reading


def read_settings(words: Sequence[str]) -> Settings:
    """Compose the configuration for words from the command line.

    Args:
        words: `KEY=VALUE`, of which a later one replaces an earlier one. `GROUP=OPTION` chooses an option,
            `pipeline.retrievers.NAME=OPTION` adds one. The value `null` stands for nothing.

    Raises:
        ConfigError: a key or option does not exist (the message names the nearest), or a value has the wrong type.
    """
    chosen: dict[str, str] = {}
    added: dict[str, str] = {}
    values: dict[str, str] = {}
    known = groups()
    for word in words:
        key, text = read_setting(word)
        if key in known:
            check_option(key, text)
            chosen[key] = text
        elif _names_retriever(key) and text != "null":
            check_option(RETRIEVERS, text)
            added[key] = text
        else:
            values[key] = text
    plain, selected = _composed(chosen, added)
    place = values.get("graph.path", (plain.get("graph") or {}).get("path"))
    own = f"graph.{TARGET}" not in values
    if own and (opens := _option_for(place, selected["graph"], "graph" in chosen)) != selected["graph"]:
        plain, selected = _composed({**chosen, "graph": opens}, added)
    for key, text in values.items():
        if key.rpartition(".")[2] == TARGET:
            _change_target(plain, selected, key, text)
    return _checked_settings(_overlaid(plain, values, selected), selected)


def read_setting(word: str) -> tuple[str, str]:
    """Return key and value of a word of the command line.

    Raises:
        ConfigError: it has no value, or its key is that of a path, or written as Hydra's own programs have it.
    """
    key, equals, text = word.partition("=")
    plain = key.lstrip("+~")
    if plain != key:
        meant, known = plain if _names_retriever(plain) else nearest_key(plain) or plain, groups()
        nothing = "OPTION" if meant in known and "none" not in options(meant) else "none" if meant in known else "null"
        raise ConfigError(
            f"{word!r} begins with {key[: len(key) - len(plain)]!r}, which settings here do without; "
            f"write {meant}={text if equals else nothing}"
        )
    if has_separator(key):
        raise ConfigError(f"{word!r} is a path where a setting is wanted; settings are written KEY=VALUE")
    if not equals:
        near = nearest_key(key)
        example = f"{near}={'OPTION' if near in groups() else 'VALUE'}" if near else "limit=100"
        raise ConfigError(f"{word!r} is no setting; settings are written KEY=VALUE, for instance {example}")
    return key, text


def _names_retriever(key: str) -> bool:
    return key.replace(".", "/").rpartition("/")[0] == RETRIEVERS


def _composed(
    chosen: Mapping[str, str | None], added: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Let Hydra merge the chosen options; return the configuration, and the option of each group.

    Args:
        chosen: option by group.
        added: option of a retriever by its place.
    """
    own, *theirs = config_dirs()
    places = {f"{RETRIEVERS}@{key}": option for key, option in added.items()}
    named = {**chosen, **places}.items()
    if theirs or not all(option_file(group.partition("@")[0], str(option)) for group, option in named):
        show_entry_points_to_hydra()
        _merged.cache_clear()  # the user's own options may have changed
        _config_files.cache_clear()
    return deepcopy(_merged(own.resolve(), tuple(theirs), tuple(chosen.items()), tuple(places.items())))


@functools.lru_cache(maxsize=256)  # a sweep and a reproduction compose the same options many times
def _merged(
    own: Path, theirs: Sequence[Path], chosen: Sequence[tuple[str, str | None]], places: Sequence[tuple[str, str]]
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Compose as `hydra.compose` does, without the settings of Hydra's own programs, which take most of its time."""
    loader, files = _config_files(own, theirs)
    overrides = [f"{group}={option}" for group, option in chosen]
    try:
        defaults = _defaults(files, overrides)
        if places:
            known = defaults.overrides.known_choices
            overrides += [f"{'+' * (key not in known)}{key}={name}" for key, name in places]
            defaults = _defaults(files, overrides)
        config = OmegaConf.to_container(loader._compose_config_from_defaults_list(defaults.defaults, files))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"the configuration {' '.join(overrides)} cannot be composed: {first_line(error)}") from error
    composed = cast("dict[str, Any]", config)
    composed.pop("hydra", None)  # the grid of an experiment
    return composed, {group: defaults.overrides.known_choices.get(group) for group in groups()}


@functools.lru_cache(maxsize=8)
def _config_files(own: Path, theirs: Sequence[Path]) -> tuple[ConfigLoaderImpl, CachingConfigRepository]:
    """Return what reads and merges the YAML files of some folders, each once."""
    version.setbase("1.3")
    places = create_config_search_path(str(own))
    for folder in theirs:
        places.get_path().insert(-1, SearchPathElement("--config-dir", str(folder)))  # entry points are last
    loader = ConfigLoaderImpl(places)
    return loader, CachingConfigRepository(loader.repository)


def _defaults(files: CachingConfigRepository, overrides: list[str]) -> DefaultsList:
    """Return the files that make up the configuration, in order."""
    parsed = OverridesParser.create().parse_overrides(overrides)
    return create_defaults_list(files, "config", parsed, prepend_hydra=False, skip_missing=False)


def _option_for(place: str | None, option: str | None, chosen: bool) -> str | None:
    """Return the graph option that opens a place: for an address its server's, unless one was chosen.

    Raises:
        ConfigError: the option that was chosen is not for such a place.
    """
    if option not in _SERVERS | _ENGINES or place in (None, "null"):
        return option
    kind = server_kind(str(place)) if is_address(str(place)) else None
    if kind is not None and option == "columnar" and not chosen:
        return kind
    if kind is not None and option != kind:
        what = "opens folders" if option in _ENGINES else f"opens {EXAMPLES[option]}"
        raise ConfigError(
            f"graph={option} {what}, and graph.path={mask(str(place))} is for graph={kind}; leave graph= out"
        )
    if kind is None and option in _SERVERS:
        raise ConfigError(
            f"graph={option} opens {EXAMPLES[option]}, and graph.path={place} is a folder; leave graph= out, or give "
            "an address"
        )
    return option


def _change_target(plain: dict[str, Any], selected: dict[str, str | None], key: str, target: str) -> None:
    """Keep, of the settings beside a target that is replaced, those that the new one takes, too."""
    group, *inside = place = key.split(".")[:-1]
    node: Any = plain
    for word in place:
        node = node.get(word) if isinstance(node, Mapping) else None
    if isinstance(node, dict) and node.get(TARGET) != target:
        kept = {*settings_of(import_target(target, ".".join(place)), "" if inside else group), *_run_keys(group)}
        for name in [name for name in node if name not in kept]:
            del node[name]
        if not inside:
            selected[group] = target
    elif not inside and selected.get(group) is None:
        selected[group] = target


def _overlaid(plain: dict[str, Any], values: Mapping[str, str], selected: Mapping[str, str | None]) -> dict[str, Any]:
    """Put values from the command line into a configuration, and resolve references of YAML files."""
    for key, text in values.items():
        # Words of the command line are literal: only YAML files may refer to other settings.
        _put(plain, key, text.replace("${", r"\${"), selected)
    try:
        resolved = cast("dict[str, Any]", OmegaConf.to_container(OmegaConf.create(plain), resolve=True))
    except OmegaConfBaseException as error:
        raise ConfigError(first_line(error)) from error
    for key, text in values.items():
        _put(resolved, key, Typed(text), selected)
    return resolved


def _put(plain: dict[str, Any], key: str, text: str, selected: Mapping[str, str | None]) -> None:
    """Set one value, unless several settings stand at its place."""
    *place, name = key.split(".")
    node = plain
    for word in place:
        if not isinstance(node.get(word), dict):
            node[word] = {}
        node = node[word]
    if text == "null" and _names_retriever(key) and name not in node:
        raise _unknown(key, selected, [f"{'.'.join(place)}.{each}" for each in node])
    if text != "null" and isinstance(node.get(name), dict) and node[name]:
        raise _holds_several(key, list(dict(flatten(node[name], f"{key}."))))
    node[name] = None if text == "null" else text


def _checked_settings(plain: Mapping[str, Any], selected: Mapping[str, str | None]) -> Settings:
    """Check every value, and complete them by the defaults."""
    components = {}
    for group in COMPONENTS:
        node = {key: value for key, value in (plain.get(group) or {}).items() if key not in _run_keys(group)}
        known = []
        if TARGET in node and node[TARGET] not in (None, "???"):
            target = import_target(node[TARGET], group)
            known = list(node) if open_ended(target) else [TARGET, *settings_of(target, group)]
        for key, value in node.items():
            if key not in known and (TARGET not in node or selected.get(group) != node[TARGET]):
                names = [f"{group}.{name}" for name in known if name != TARGET]
                raise _unknown(next(flatten({key: value}, f"{group}."))[0], selected, names)
        if TARGET in node:
            components[group] = validate(node, group, group)
    run = _run_options(plain, selected)
    values = asdict(run)
    values["prompts"] = dict.fromkeys(("folder", *VARIABLES)) | dict(values["prompts"])
    for group in COMPONENTS:
        if group in components or group in plain:
            values[group] = values.get(group, {}) | components.get(group, {})
    return Settings(run, selected, components, values)


@functools.cache
def _run_kinds() -> dict[str, Any]:
    """Return the types of the run's own settings by dotted name."""
    kinds: dict[str, Any] = {}
    for name, kind in typing.get_type_hints(RunOptions).items():
        inside = typing.get_type_hints(kind) if name in _RUN_GROUPS else {}
        inside |= dict.fromkeys(("folder", *VARIABLES), Path) if name == "prompts" else {}
        kinds |= {f"{name}.{key}": each for key, each in inside.items()} or {name: kind}
    return kinds


def _run_keys(group: str) -> list[str]:
    """Return which settings inside a group are the run's own."""
    return [key.removeprefix(f"{group}.") for key in _run_kinds() if key.startswith(f"{group}.")]


def _run_options(plain: Mapping[str, Any], selected: Mapping[str, str | None]) -> RunOptions:
    """Check the run's own settings."""
    kinds = _run_kinds()
    given: dict[str, Any] = {"prompts": {}}
    for key, value in flatten(plain):
        group, _, name = key.partition(".")
        if key in kinds:
            inside = given.setdefault(group, {}) if name else given
            inside[name or key] = _run_value(value, kinds[key], key)
        elif value != {} and (keys := _run_keys(key)):
            raise _holds_several(key, [f"{key}.{each}" for each in keys])
        elif group not in COMPONENTS or key.rpartition(".")[0] in kinds:
            raise _unknown(key, selected, list(kinds))
    given["prompts"] = {name: file for name, file in given["prompts"].items() if file is not None}
    try:
        return TypeAdapter(RunOptions).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"] if str(part).isidentifier())
        raise ConfigError(describe_misfit(key, first["input"], first["msg"])) from error


def _run_value(value: Any, kind: Any, key: str) -> Any:
    """Read typed text as a list or a path, where such a thing is wanted; pydantic does the rest."""
    if not isinstance(value, str):
        return value
    if typing.get_origin(kind) is tuple:
        return [value] if value[:1] == "@" and Path(value[1:]).expanduser().is_file() else split_list(value)
    if Path not in (kind, *typing.get_args(kind)):
        return str(value)
    if value == "":
        raise ConfigError(f"{key} is empty; name a folder, or leave it out")
    return str(value) if key == "graph.path" and is_address(value) else Path(value).expanduser()


# Messages


def _holds_several(key: str, inside: Sequence[str]) -> ConfigError:
    return ConfigError(f"{key} holds several settings; set one of them: {join_words(inside)}")


def _unknown(key: str, selected: Mapping[str, str | None], known: Sequence[str]) -> ConfigError:
    """Describe an unknown key, given the existing keys at its place."""
    group, _, rest = key.partition(".")
    if not rest and (hint := nearest(key, [*known, *selected])):
        return ConfigError(f"no setting {key!r}; {hint}")
    every = _every_key()
    if elsewhere := [name for name in every if key in (name, name.partition(".")[2])]:
        found = join_words(_found_with(name, every) for name in elsewhere)
        return ConfigError(f"no setting {key!r} here; there is {found}")
    if rest and selected.get(group):
        own = [f"{group}.{name}" for name in _run_keys(group)]
        names = [name.removeprefix(f"{group}.") for name in dict.fromkeys([*known, *own])]
        names = [name for name in names if "." not in name or name.startswith("retrievers")]
        hint = nearest(rest, names, f"{group}.") or _nearest_of_all(key, selected, every)
        hint = hint or f"it has {join_words(f'{group}.{name}' for name in names) or 'none'}"
        return ConfigError(f"{group}={selected[group]} has no setting {key!r}; {hint}")
    if hint := _nearest_of_all(key, selected, every):
        return ConfigError(f"no setting {key!r}; {hint}")
    if rest and group in selected:
        choices = join_words(f"{group}={option}" for option in options(group))
        return ConfigError(f"{key} is set, but no {group} is chosen; choose one of {choices}")
    return ConfigError(f"no setting {key!r}; see all with: byokg eval --show")


_ALIKE = 0.8
"""Least similarity (0 to 1) of a proposed key."""


def _nearest_of_all(key: str, selected: Mapping[str, str | None], every: Mapping[str, Sequence[str]]) -> str:
    """Propose the most similar key, with the options that have it unless the chosen option does."""
    known, group = [*_run_kinds(), *every], key.partition(".")[0]
    inside = {name.partition(".")[2]: name for name in known if name.startswith(f"{group}.")}
    found = [inside[name] for name in get_close_matches(key.partition(".")[2], inside, 1, _ALIKE)]
    for near in found or ([] if inside else get_close_matches(key, known, 1, _ALIKE)):
        group = near.partition(".")[0]
        here = near not in every or f"{group}={selected.get(group)}" in every[near]
        return f"nearest: {near if here else _found_with(near, every)}"
    return ""


def nearest_key(word: str) -> str:
    """Return the group or setting most similar to a word; empty if none is similar."""
    known = [*groups(), *_run_kinds()]
    if word not in known and "." in word:
        known += _every_key()
    return next(iter(get_close_matches(word, known, 1, _ALIKE)), "")


def _every_key() -> dict[str, list[str]]:
    """Return all settings of all options of groups, with the options that have each."""
    found: dict[str, list[str]] = {}
    for group in COMPONENTS:
        for option in options(group):
            for name in _names(group, option):
                found.setdefault(f"{group}.{name}", []).append(f"{group}={option}")
    return found


def _found_with(name: str, every: Mapping[str, Sequence[str]]) -> str:
    return f"{name} with {' or '.join(every[name])}"


def _names(group: str, option: str) -> list[str]:
    """Return the names of an option's settings."""
    file = option_file(group, option)
    node = {TARGET: entry_points(group)[option]} if file is None else yaml.safe_load(file.read_text("utf-8")) or {}
    return list(settings_of(import_target(node[TARGET], group), group)) if TARGET in node else []


# Showing and recording


def show_settings(settings: Settings) -> str:
    """Return the whole configuration as YAML with the purpose of each setting, secrets masked."""
    content = {"options": dict(settings.options), **_masked(settings.values)}
    return "\n".join(_lines(content, descriptions(settings))) + "\n"


def _lines(values: Mapping[str, Any], descriptions: Mapping[str, str], place: str = "") -> Iterator[str]:
    """Write nested mappings as YAML, each setting with its description behind it."""
    indent = "  " * place.count(".")
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:"
            yield from _lines(value, descriptions, f"{place}{name}.")
        else:
            # On one line, of which the braces go.
            line = yaml.safe_dump({name: value}, default_flow_style=True, allow_unicode=True, width=10**6).strip()[1:-1]
            text = descriptions.get(f"{place}{name}", "").partition(". ")[0].rstrip(".")
            text = text.replace("`", "").replace("None", "null")
            yield f"{indent}{line}{f'  # {text}' if text else ''}"


def descriptions(settings: Settings) -> dict[str, str]:
    """Return descriptions of settings by dotted name, from docstrings and comments of YAML files."""
    found = describe_arguments(RunOptions)
    for group, kind in _RUN_GROUPS.items():
        found |= {f"{group}.{name}": text for name, text in describe_arguments(kind).items()}

    def add(place: str, node: Mapping[str, Any]) -> None:
        if node.get(TARGET) not in (None, "???"):
            texts = describe_arguments(import_target(node[TARGET], place))
            found.update({f"{place}.{name}": text for name, text in texts.items()})
        for name, value in node.items():
            if isinstance(value, Mapping):
                add(f"{place}.{name}", value)

    for group, node in settings.components.items():
        add(group, node)
        file = option_file(group, settings.options[group] or "")
        if file is not None:
            comments = re.findall(r"^# (\w+): (.+)$", file.read_text("utf-8"), re.MULTILINE)
            found.update({f"{group}.{name}": text for name, text in comments})
    return found


def describe_arguments(target: Any) -> dict[str, str]:
    """Return the descriptions of arguments in the docstrings of a function, or of a class and its bases."""
    found: dict[str, str] = {}
    for source in [*reversed(target.__mro__), vars(target).get("__init__")] if isinstance(target, type) else [target]:
        section = re.search(
            r"^(?:Args|Attributes):\n((?: {4}.+\n?)+)", inspect.cleandoc(source.__doc__ or ""), re.MULTILINE
        )
        for entry in re.split(r"\n(?= {4}\S)", section[1]) if section else ():
            names, colon, text = " ".join(entry.split()).partition(": ")
            found |= dict.fromkeys(names.split(", ") if colon else (), text)
    return found


def _without_places(value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without_places(each, f"{place}.{name}")
        for name, each in value.items()
        if f"{place}.{name}" not in _NOT_RECORDED
    }


def _masked(value: Any, name: str = "") -> Any:
    """Replace apparent secrets, and paths by text."""
    if isinstance(value, Mapping):
        return {key: _masked(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(each, name) for each in value]
    if value is not None and SECRET.search(name):
        return "(not recorded)"
    return mask(str(value)) if isinstance(value, str | Path) else value
