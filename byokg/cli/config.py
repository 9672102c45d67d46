"""Settings from YAML files and the command line, and the parts they name.

Hydra composes the groups (`dataset=metaqa`). Single values (`dataset.root=/a, b/c=d`) are set on what it composed,
so its grammar, to which commas, quotes, brackets and `=` mean something, never sees them. An option of a component
group names a class or function in `_target_`, whose signature says which settings there are and of which type; a
mapping of several such components by name, such as a pipeline's retrievers, is handed over as what makes each. The
settings of the run itself are `RunOptions`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, TypeAdapter, ValidationError

from byokg.cli.components import (
    SECRET,
    TARGET,
    build,
    checked_component,
    first_line,
    holds_components,
    listed,
    located,
    misfit,
    missing_keys,
    nearest,
    parts,
)
from byokg.errors import ConfigError
from byokg.graph.store import GraphStore
from byokg.open import EXAMPLES, SCHEMES, ServerKind, is_address, masked, open_graph, server_kind

Requirement = Literal["answers_in_graph", "executable"]
"""What a question must fulfil to be asked, which only the graph can tell."""

COMPONENTS = ("graph", "embedding", "llm", "linking", "budget", "pipeline", "dataset")
"""Groups whose chosen option may be built."""

_SINGLE = (
    *("out", "limit", "sample", "per_type", "ids", "types", "require", "shard", "seed", "workers", "deadline_s"),
    "prices",
)
"""Settings of the run that stand in no group."""
_LISTED = ("ids", "types", "require")
"""Those of them that are lists; on the command line their entries are separated by commas, in brackets or without."""
_WORD = re.compile(r"[^\W\d]\w*")
_PATH_KEYS = {
    "graph": "graph.path={}",
    "dataset": "dataset=folder dataset.root={}",
    "embedding": "embedding=static embedding.path={}",
}
"""How to say it, where a folder is given to a group."""

_FOLDERS = "columnar"
"""The graph option that opens folders; an address chooses another one by itself."""
_SERVERS = frozenset(SCHEMES.values())
_OURS = _SERVERS | {_FOLDERS, "arcadedb", "oxigraph", "both_engines"}
"""Graph options that know which places they open."""

_PLACES_IN = {
    "graph": (
        *("path", "cache", "region", "endpoint_url", "ca_file", "user_agent", "timeout_hint", "timeout_s"),
        *("patience_s", "attempts", "page_rows", "fetch_size", "reply_mb", "heap_mb", "memory_mb"),
    ),
    "dataset": ("root", "graph"),
    "embedding": (
        *("path", "base_url", "region", "profile", "endpoint_url", "device"),
        *("batch_size", "timeout_s", "max_retries"),
    ),
    "llm": (
        *("base_url", "region", "profile", "device", "key_variable", "streaming", "prompt_caching", "batch"),
        *("timeout_s", "attempts", "concurrency", "tokens_per_minute"),
    ),
}
_PLACES = frozenset(
    {"out", "shard", "workers", *(f"{group}.{name}" for group, names in _PLACES_IN.items() for name in names)}
)
"""Left out of a run's record: where files and services lie, and how patient one is with them, changes no answer
(checksums say what was in the files)."""

_LIMITS = frozenset({"budget", "replies", "prices", "prompts", "deadline_s"})
"""Left out, too: a run that has used up its budget is continued with a higher one, recorded replies are the same
wherever they lie, and of prompts it is the content that counts, which is recorded apart."""


@dataclass(frozen=True)
class GraphPlace:
    """Which graph a run reads; see `configs/config.yaml`."""

    path: Path | str | None = None
    """A folder, or as text the address of a server."""
    cache: Path | None = None
    per_question: bool = False


@dataclass(frozen=True)
class Grants:
    """What a pipeline is given of a data set's annotations."""

    entities: Literal["linked", "gold"] = "linked"
    hops: Literal["predicted", "gold"] = "predicted"


@dataclass(frozen=True)
class Replies:
    """Where replies of language models are recorded, and when they are used."""

    path: Path | None = None
    mode: Literal["auto", "record", "replay", "off"] = "auto"


@dataclass(frozen=True)
class RunOptions:
    """Settings of a run that belong to no component. `configs/config.yaml` holds the same defaults."""

    out: Path | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    per_type: Annotated[int, Field(ge=1)] | None = None
    ids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    require: tuple[Requirement, ...] = ()
    shard: str | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    workers: Annotated[int, Field(ge=1)] = 1
    deadline_s: Annotated[float, Field(gt=0)] | None = None
    prices: Path | None = None
    replies: Replies = field(default_factory=Replies)
    prompts: Mapping[str, Path | None] = field(default_factory=dict)
    """A file by prompt name, and `folder`; those that are given."""
    graph: GraphPlace = field(default_factory=GraphPlace)
    linking: Grants = field(default_factory=Grants)


@dataclass(frozen=True)
class Settings:
    """A composed and checked configuration."""

    run: RunOptions
    options: Mapping[str, str | None]
    """Chosen option of each group."""
    components: Mapping[str, Mapping[str, Any]]
    """By group, `_target_` and arguments; groups whose option builds nothing are left out."""
    values: Mapping[str, Any]
    """Everything, as nested mappings with checked values."""

    def build(self, group: str, **given: object) -> Any:
        """Make the component that was chosen from a group, handing it what was made before.

        Raises:
            ConfigError: none was chosen, a setting it needs is missing, or it does not take what is given.
            MissingExtra: it needs a package that is not installed.
        """
        if self.options.get(group) is None:
            raise ConfigError(f"no {group} is chosen; choose one of {listed(f'{group}={o}' for o in options(group))}")
        missing = list(missing_keys(self.components[group], group))
        if missing:
            example = " ".join(f"{key}=…" for key in missing)
            raise ConfigError(f"{group}={self.options[group]} needs {listed(missing)}; add {example}")
        return build(self.components[group], group, given)

    def takes(self, group: str) -> frozenset[str]:
        """Return the names of what the component chosen from a group can be given."""
        return frozenset(inspect.signature(located(self.components[group][TARGET], f"{group}.{TARGET}")).parameters)

    def open_graph(self, place: Path | str) -> GraphStore:
        """Open a graph with the store and the settings that were chosen. Raises what `open.open_graph` does."""
        parameters = inspect.signature(located(self.components["graph"][TARGET], f"graph.{TARGET}")).parameters
        name = next(iter(parameters))  # every store's first argument is the place
        return open_graph(place, opener=lambda place: self.build("graph", **{name: place}))

    def recorded(self) -> dict[str, Any]:
        """Return what a run's record keeps: all that can change an answer, no places of files and no secrets.

        The address of a graph's server is kept: nothing else says which graph it was.
        """
        left_out = _PLACES | _LIMITS
        values = {key: _without_places(value, key) for key, value in self.values.items() if key not in left_out}
        if isinstance(self.run.graph.path, str):
            values["graph"] = {"path": self.run.graph.path, **values["graph"]}
        kept = {key: value for key, value in values.items() if value != {}}
        # An experiment is a way of choosing these.
        chosen = {group: self.options[group] for group in COMPONENTS if group not in left_out}
        return {"options": chosen, **_masked(kept)}


def config_dir() -> Path:
    """Return the folder of the YAML files: inside an installed package, or beside it in a source folder."""
    package = Path(str(resources.files("byokg")))
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError(f"no configs in {str(package)!r} or beside it; run: pip install --force-reinstall byokg")


def groups() -> list[str]:
    """Return the names of all groups."""
    return sorted(folder.name for folder in config_dir().iterdir() if folder.is_dir())


def options(group: str) -> list[str]:
    """Return the names of a group's options."""
    return sorted(file.stem for file in (config_dir() / group).glob("*.yaml"))


def read_settings(words: Sequence[str]) -> Settings:
    """Compose the configuration for words from the command line.

    Args:
        words: `KEY=VALUE`, of which a later one replaces an earlier one. `GROUP=OPTION` chooses an option. The
            value `null` stands for nothing.

    Raises:
        ConfigError: a key or option does not exist (the message names the nearest), or a value has the wrong type.
    """
    chosen: dict[str, str] = {}
    values: dict[str, str] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"{word!r} is no setting; settings are written KEY=VALUE, for instance limit=100")
        if key in groups():
            chosen[key] = _option(key, text)
        else:
            values[key] = text
    config, selected = _compose(chosen)
    place = values.get("graph.path", OmegaConf.select(config, "graph.path"))
    if selected["graph"] in _OURS:
        kind = server_kind(place) if place is not None and is_address(place) else None
        if kind is not None and "graph" not in chosen and selected["graph"] == _FOLDERS:
            config, selected = _compose({**chosen, "graph": kind})
        _check_place(selected["graph"], kind, place)
    for key, text in values.items():
        _set(config, key, text, selected)
    try:
        plain = cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
    except OmegaConfBaseException as error:
        raise ConfigError(first_line(error)) from error
    run = _run_options(plain)
    components = {}
    for group in COMPONENTS:
        node = {key: value for key, value in plain.get(group, {}).items() if key not in _run_keys(group)}
        if TARGET in node:
            components[group] = checked_component(node, group)
    checked = plain | _plain_options(run)
    for group, component in components.items():
        checked[group] = {**checked.get(group, {}), **component}
    return Settings(run, selected, components, checked)


def show_settings(settings: Settings) -> str:
    """Return the whole configuration as YAML, secrets masked."""
    content = {"options": dict(settings.options), **_masked(settings.values)}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


# Composing


def _option(group: str, text: str) -> str:
    """Check that a group has an option of this name."""
    known = options(group)
    if text in known:
        return text
    text = masked(text)
    if group == "graph" and is_address(text):
        hint = f"for a server write graph.path={text}"
    elif group in _PATH_KEYS and ("/" in text or "." in text or Path(text).exists()):
        hint = f"for a folder write {_PATH_KEYS[group].format(text)}"
    else:
        hint = nearest(text, known)
    raise ConfigError(f"{group}={text} is no option{hint and '; '}{hint}; options of {group}: {listed(known)}")


def _check_place(option: str | None, kind: ServerKind | None, place: str | None) -> None:
    """Refuse a graph option that is not for the place that is named."""
    if kind is not None and option != kind:
        what = "opens folders" if option not in _SERVERS else f"opens {EXAMPLES[option]}"
        raise ConfigError(
            f"graph={option} {what}, and graph.path={masked(str(place))} is for graph={kind}; leave graph= out"
        )
    if kind is None and option in _SERVERS and place not in (None, "null"):
        raise ConfigError(
            f"graph={option} opens {EXAMPLES[option]}, and graph.path={place} is a folder; leave graph= out, or give "
            "an address"
        )


def _compose(chosen: Mapping[str, str]) -> tuple[DictConfig, dict[str, str | None]]:
    """Let Hydra merge the chosen options; return the configuration, and the option of each group."""
    overrides = [f"{group}={option}" for group, option in chosen.items()]
    try:
        with initialize_config_dir(str(config_dir().resolve()), version_base="1.3"):
            config = compose("config", overrides, return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"the configuration {' '.join(overrides)} cannot be composed: {first_line(error)}") from error
    choices = config.hydra.runtime.choices
    selected = {group: choices.get(group) for group in groups()}
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    return config, selected


def _set(config: DictConfig, key: str, text: str, selected: Mapping[str, str | None]) -> None:
    """Set one value given as text, where a setting of that name exists."""
    known = list(_keys(config))
    value: Any = None if text == "null" else text
    if key not in known and not (value is None and _is_named_component(config, key, selected)):
        if not _is_open(config, key, selected):
            raise _unknown(key, known, selected)
        value = _natural(text)
    # What is typed is meant literally: only YAML files may refer to other settings.
    OmegaConf.update(config, key, value.replace("${", r"\${") if isinstance(value, str) else value, merge=False)


def _keys(node: DictConfig, place: str = "") -> Iterator[str]:
    """Yield the dotted name of each setting."""
    for name, value in node.items_ex(resolve=False):
        key = f"{place}.{name!s}" if place else str(name)
        if isinstance(value, DictConfig):
            yield from _keys(value, key)
        else:
            yield key


def _is_open(config: DictConfig, key: str, selected: Mapping[str, str | None]) -> bool:
    """Tell whether a key is an argument of something that is not ours, so that any name may be right."""
    place, _, name = key.rpartition(".")
    if _WORD.fullmatch(name) is not None and place in _open_mappings(selected):
        return True
    parent = OmegaConf.select(config, place) if place else None
    if "." in place and _WORD.fullmatch(place.rpartition(".")[2]) is not None:
        # A component inside a component: where one may stand, or one whose signature says what it takes.
        may_stand = parent is None and (place in _keys(config) or place.rpartition(".")[0] in _holders(selected))
        if may_stand if name == TARGET else isinstance(parent, DictConfig) and TARGET in parent:
            return True
    if not isinstance(parent, DictConfig) or TARGET not in dict(parent.items_ex(resolve=False)):
        return False
    # A target that is still missing (`???`) is one that the user will name.
    return _WORD.fullmatch(name) is not None and not str(parent.get(TARGET)).startswith("byokg.")


def _open_mappings(selected: Mapping[str, str | None]) -> set[str]:
    """Return the settings of the chosen options that are mappings to be filled in (`{}` in the YAML file)."""
    found = set()
    for group in COMPONENTS:
        if selected.get(group):
            content = yaml.safe_load((config_dir() / group / f"{selected[group]}.yaml").read_text("utf-8")) or {}
            found |= {f"{group}.{name}" for name, value in content.items() if value == {}}
    return found


def _is_named_component(config: DictConfig, key: str, selected: Mapping[str, str | None]) -> bool:
    """Tell whether a key names one of several components, which can be left out."""
    holder, _, name = key.rpartition(".")
    return holder in _holders(selected) and name in OmegaConf.select(config, holder)


def _holders(selected: Mapping[str, str | None]) -> set[str]:
    """Return the settings of the chosen options that hold several components, each by its name."""
    found = set()
    for group in COMPONENTS:
        if selected.get(group):
            content = yaml.safe_load((config_dir() / group / f"{selected[group]}.yaml").read_text("utf-8")) or {}
            found |= {f"{group}.{name}" for name, value in content.items() if holds_components(value)}
    return found


def _natural(text: str) -> Any:
    """Read a value of which no type is known as YAML would: 16 is a number."""
    try:
        return yaml.safe_load(text) if text else text
    except yaml.YAMLError:
        return text


def _unknown(key: str, known: Sequence[str], selected: Mapping[str, str | None]) -> ConfigError:
    """Say what is wrong with a key that does not exist."""
    keys = [name for name in known if not name.endswith(TARGET)]
    inside = [name for name in known if name.startswith(f"{key}.")]
    if inside:
        return ConfigError(f"{key} holds several settings; set one of them: {listed(inside)}")
    elsewhere = _elsewhere(key)
    if elsewhere:
        return ConfigError(f"no setting {key!r} here; there is {listed(elsewhere)}")
    group, _, rest = key.partition(".")
    if rest and selected.get(group):
        own = {name.removeprefix(f"{group}."): name for name in keys if name.startswith(f"{group}.")}
        hint = nearest(rest, list(own), f"{group}.") or f"it has {listed(own.values()) or 'none'}"
        return ConfigError(f"{group}={selected[group]} has no setting {key!r}; {hint}")
    if rest and group in selected:
        choices = listed(f"{group}={option}" for option in options(group))
        return ConfigError(f"{key} is set, but no {group} is chosen; choose one of {choices}")
    hint = nearest(key, [*keys, *selected]) or "see all with: byokg eval --show"
    return ConfigError(f"no setting {key!r}; {hint}")


def _elsewhere(key: str) -> list[str]:
    """Find settings of this name, or of this name without its group, in all options there are."""
    found: dict[str, list[str]] = {}
    for group in COMPONENTS:
        for option in options(group):
            content = yaml.safe_load((config_dir() / group / f"{option}.yaml").read_text("utf-8")) or {}
            for name in content:
                if key in (name, f"{group}.{name}"):
                    found.setdefault(f"{group}.{name}", []).append(f"{group}={option}")
    return [f"{name} with {' or '.join(places)}" for name, places in found.items()]


# Checking values


def _run_keys(group: str) -> frozenset[str]:
    """Return which settings inside a group are the run's own."""
    kinds: dict[str, type[GraphPlace | Grants | Replies]] = {
        "graph": GraphPlace,
        "linking": Grants,
        "replies": Replies,
    }
    return frozenset(each.name for each in fields(kinds[group])) if group in kinds else frozenset()


def _run_options(plain: Mapping[str, Any]) -> RunOptions:
    """Check the run's own settings."""
    given: dict[str, Any] = {name: plain[name] for name in _SINGLE}
    groups_of_it = ("graph", "linking", "replies")
    given |= {group: {name: plain[group][name] for name in _run_keys(group)} for group in groups_of_it}
    for name in _LISTED:
        if isinstance(given[name], str):
            given[name] = parts(given[name])
    given["prompts"] = {name: file for name, file in plain["prompts"].items() if file is not None}
    files = [f"prompts.{name}" for name in given["prompts"]]
    for key in ("out", "prices", "graph.path", "graph.cache", "replies.path", *files):
        group, _, name = key.rpartition(".")
        place = given[group] if group else given
        if place[name] == "":
            raise ConfigError(f"{key} is empty; name a folder, or leave it out")
        if place[name] is not None and not (key == "graph.path" and is_address(str(place[name]))):
            place[name] = Path(str(place[name])).expanduser()
    try:
        return TypeAdapter(RunOptions).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"] if str(part).isidentifier())
        raise ConfigError(misfit(key, first["input"], first["msg"])) from error


def _plain_options(run: RunOptions) -> dict[str, Any]:
    numbers = {name: getattr(run, name) for name in ("limit", "sample", "per_type", "seed", "workers", "deadline_s")}
    return numbers | {name: list(getattr(run, name)) for name in _LISTED}


# Records


def _without_places(value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without_places(each, f"{place}.{name}")
        for name, each in value.items()
        if f"{place}.{name}" not in _PLACES
    }


def _masked(value: Any, name: str = "") -> Any:
    """Replace what looks like a secret, and paths by text."""
    if isinstance(value, Mapping):
        return {key: _masked(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(each, name) for each in value]
    if value is not None and SECRET.search(name):
        return "(not recorded)"
    return masked(str(value)) if isinstance(value, str | Path) else value
