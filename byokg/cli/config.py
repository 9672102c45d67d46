"""Settings from YAML files and the command line, and the parts they name.

Hydra composes the groups (`dataset=metaqa`). Single values (`dataset.root=/a, b/c=d`) are set on what it composed,
so its grammar, to which commas, quotes, brackets and `=` mean something, never sees them. An option of a component
group names a class or function in `_target_`, whose signature says which settings there are and of which type; a
mapping of several such components by name, such as a pipeline's retrievers, is handed over as what makes each. The
settings of the run itself are `RunOptions`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, cast

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from byokg.errors import ByokgError, ConfigError
from byokg.graph.address import EXAMPLES, SCHEMES, ServerKind, is_address, masked, server_kind

Requirement = Literal["answers_in_graph", "executable"]
"""What a question must fulfil to be asked, which only the graph can tell."""

COMPONENTS = ("graph", "embedding", "llm", "linking", "budget", "pipeline", "dataset")
"""Groups whose chosen option may be built."""

_TARGET = "_target_"
_SINGLE = (
    *("out", "limit", "sample", "per_type", "ids", "types", "require", "shard", "seed", "workers", "deadline_s"),
    "prices",
)
"""Settings of the run that stand in no group."""
_LISTED = ("ids", "types", "require")
"""Those of them that are lists; on the command line their entries are separated by commas."""
_MISSING = "???"
_LISTS = (list, tuple, Collection, Sequence)
_WORD = re.compile(r"[^\W\d]\w*")
_SECRET = re.compile(r"key(?!_variable)|token(?!s)|secret|password|credential", re.IGNORECASE)
_PATH_KEYS = {
    "graph": "graph.path={}",
    "dataset": "dataset=folder dataset.root={}",
    "embedding": "embedding=static embedding.path={}",
}
"""How to say it, where a folder is given to a group."""

_FOLDERS = "columnar"
"""The graph option that opens folders; an address chooses another one by itself."""
_SERVERS = frozenset(SCHEMES.values())
_OURS = _SERVERS | {_FOLDERS, "arcadedb", "oxigraph"}
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
            raise ConfigError(f"no {group} is chosen; choose one of {_listed(f'{group}={o}' for o in options(group))}")
        missing = list(_missing(self.components[group], group))
        if missing:
            example = " ".join(f"{key}=…" for key in missing)
            raise ConfigError(f"{group}={self.options[group]} needs {_listed(missing)}; add {example}")
        return _build(self.components[group], group, given)

    def takes(self, group: str) -> frozenset[str]:
        """Return the names of what the component chosen from a group can be given."""
        return frozenset(inspect.signature(_located(self.components[group][_TARGET], f"{group}.{_TARGET}")).parameters)

    def build_graph(self, place: Path | str) -> Any:
        """Open the graph in a place: the first argument of every graph option's target. Raises what `build` does."""
        parameters = inspect.signature(_located(self.components["graph"][_TARGET], f"graph.{_TARGET}")).parameters
        return self.build("graph", **{next(iter(parameters)): place})

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
        raise ConfigError(_first_line(error)) from error
    run = _run_options(plain)
    components = {}
    for group in COMPONENTS:
        node = {key: value for key, value in plain.get(group, {}).items() if key not in _run_keys(group)}
        if _TARGET in node:
            components[group] = _checked(node, group)
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
        hint = _nearest(text, known)
    raise ConfigError(f"{group}={text} is no option{hint and '; '}{hint}; options of {group}: {_listed(known)}")


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
        raise ConfigError(
            f"the configuration {' '.join(overrides)} cannot be composed: {_first_line(error)}"
        ) from error
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
        if may_stand if name == _TARGET else isinstance(parent, DictConfig) and _TARGET in parent:
            return True
    if not isinstance(parent, DictConfig) or _TARGET not in dict(parent.items_ex(resolve=False)):
        return False
    # A target that is still missing (`???`) is one that the user will name.
    return _WORD.fullmatch(name) is not None and not str(parent.get(_TARGET)).startswith("byokg.")


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
            found |= {f"{group}.{name}" for name, value in content.items() if _holds_components(value)}
    return found


def _holds_components(value: Any) -> bool:
    """Tell whether a value is a mapping of components by name, of which some may be left out."""
    return (
        isinstance(value, Mapping)
        and _TARGET not in value
        and any(isinstance(each, Mapping) and _TARGET in each for each in value.values())
    )


def _natural(text: str) -> Any:
    """Read a value of which no type is known as YAML would: 16 is a number."""
    try:
        return yaml.safe_load(text) if text else text
    except yaml.YAMLError:
        return text


def _unknown(key: str, known: Sequence[str], selected: Mapping[str, str | None]) -> ConfigError:
    """Say what is wrong with a key that does not exist."""
    keys = [name for name in known if not name.endswith(_TARGET)]
    inside = [name for name in known if name.startswith(f"{key}.")]
    if inside:
        return ConfigError(f"{key} holds several settings; set one of them: {_listed(inside)}")
    elsewhere = _elsewhere(key)
    if elsewhere:
        return ConfigError(f"no setting {key!r} here; there is {_listed(elsewhere)}")
    group, _, rest = key.partition(".")
    if rest and selected.get(group):
        own = {name.removeprefix(f"{group}."): name for name in keys if name.startswith(f"{group}.")}
        hint = _nearest(rest, list(own), f"{group}.") or f"it has {_listed(own.values()) or 'none'}"
        return ConfigError(f"{group}={selected[group]} has no setting {key!r}; {hint}")
    if rest and group in selected:
        choices = _listed(f"{group}={option}" for option in options(group))
        return ConfigError(f"{key} is set, but no {group} is chosen; choose one of {choices}")
    hint = _nearest(key, [*keys, *selected]) or "see all with: byokg eval --show"
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


def _nearest(word: str, known: Sequence[str], prefix: str = "") -> str:
    """Propose the known words most like `word`; empty when there is none."""
    near = difflib.get_close_matches(word, known, n=2)
    return f"nearest: {_listed(prefix + name for name in near)}" if near else ""


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
            given[name] = _parts(given[name])
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
        raise ConfigError(_misfit(key, first["input"], first["msg"])) from error


def _plain_options(run: RunOptions) -> dict[str, Any]:
    numbers = {name: getattr(run, name) for name in ("limit", "sample", "per_type", "seed", "workers", "deadline_s")}
    return numbers | {name: list(getattr(run, name)) for name in _LISTED}


def _checked(node: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a component's node with its values converted to what its target's signature says.

    Raises:
        ConfigError: the target cannot be imported, has no such argument, or takes no such value.
    """
    if node[_TARGET] == _MISSING:
        return dict(node)
    target = _located(node[_TARGET], f"{place}.{_TARGET}")
    if isinstance(target, type) and issubclass(target, BaseModel):
        return dict(node)  # checks itself when it is built, and may take more than its signature says
    parameters = inspect.signature(target).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    checked: dict[str, Any] = {}
    for name, value in node.items():
        key = f"{place}.{name}"
        if name == _TARGET or value == _MISSING:
            checked[name] = value
        elif isinstance(value, Mapping) and _TARGET in value:
            checked[name] = _checked(value, key)
        elif _holds_components(value):
            checked[name] = {each: node and _checked(node, f"{key}.{each}") for each, node in value.items()}
        elif name in parameters:
            checked[name] = _converted(value, _annotation(target, parameters[name]), key)
        elif open_ended:
            checked[name] = value
        else:
            hint = _nearest(name, list(parameters)) or f"it takes {_listed(parameters)}"
            raise ConfigError(f"{node[_TARGET]} takes no {name!r}, which {key} sets; {hint}")
    return checked


def _located(target: str, place: str) -> Callable[..., Any]:
    """Import what a dotted name means: a module's class or function, or an attribute of a class."""
    words = target.split(".")
    found: Any = None
    try:
        for cut in range(len(words) - 1, 0, -1):
            module = ".".join(words[:cut])
            try:
                found = importlib.import_module(module)
            except ModuleNotFoundError as error:
                if cut == 1 or not f"{module}.".startswith(f"{error.name}."):
                    raise  # what is missing is imported by a module that is there
                continue
            found = functools.reduce(getattr, words[cut:], found)
            break
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{place}={target} cannot be imported: {_first_line(error)}") from error
    if not callable(found):
        raise ConfigError(f"{place}={target} is not callable; name a class or a function by its full import path")
    return cast("Callable[..., Any]", found)


def _annotation(target: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the type of one argument; `Any` when it has none, or one that exists for type checkers only."""
    if parameter.annotation is parameter.empty:
        return Any
    function = inspect.getattr_static(target, "__init__") if isinstance(target, type) else target
    wanted = SimpleNamespace(__annotations__={"value": parameter.annotation})
    try:
        return typing.get_type_hints(wanted, getattr(function, "__globals__", {}))["value"]
    except NameError:
        return Any


def _converted(value: Any, kind: Any, key: str) -> Any:
    """Convert a value to a type: text from the command line freely, values from YAML only without loss."""
    if isinstance(value, str) and Path in typing.get_args(kind):
        return Path(value).expanduser()
    if isinstance(value, str) and any(typing.get_origin(each) in _LISTS for each in (kind, *typing.get_args(kind))):
        value = _parts(value)
    try:
        return TypeAdapter(kind).validate_python(value, strict=not isinstance(value, str))
    except ValidationError as error:
        raise ConfigError(_misfit(key, value, error.errors()[0]["msg"])) from error
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return value  # a type that pydantic does not know: its owner has to check


def _misfit(key: str, value: Any, reason: str) -> str:
    shown = "null" if value is None else value
    return f"{key}={shown} does not fit: {reason[:1].lower()}{reason[1:]}"


def _missing(node: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the keys that must be given and were not."""
    for name, value in node.items():
        if isinstance(value, Mapping):
            yield from _missing(value, f"{place}.{name}")
        elif value == _MISSING:
            yield f"{place}.{name}"


# Building


def _build(node: Mapping[str, Any], place: str, given: Mapping[str, object]) -> Any:
    """Call a component's target with its settings and what is given."""
    name = node[_TARGET]
    target = _located(name, f"{place}.{_TARGET}")
    arguments = _arguments(node, place)
    try:
        inspect.signature(target).bind(**arguments, **given)
    except TypeError as error:
        raise ConfigError(f"{place}: {name} cannot be called: {error}") from error
    if name.startswith("byokg."):
        return target(**arguments, **given)
    try:
        return target(**arguments, **given)
    except ByokgError:
        raise
    except Exception as error:  # code that is not ours raises what it likes
        raise ConfigError(f"{place}: {name} refused its settings: {_refusal(error, arguments)}") from error


def _arguments(node: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the settings of a component, those that are components themselves built."""
    arguments = {}
    for key, value in node.items():
        if isinstance(value, Mapping) and _TARGET in value:
            value = _build(value, f"{place}.{key}", {})
        elif _holds_components(value):
            value = {name: each and _maker(each, f"{place}.{key}.{name}") for name, each in value.items()}
        if key != _TARGET:
            arguments[key] = value
    return arguments


def _maker(node: Mapping[str, Any], place: str) -> Callable[..., Any]:
    """Return a component's target with its settings; whoever calls it gives the rest."""
    return functools.partial(_located(node[_TARGET], f"{place}.{_TARGET}"), **_arguments(node, place))


def _refusal(error: Exception, arguments: Mapping[str, Any]) -> str:
    """Say why foreign code refused its arguments, without repeating a secret."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    text = f"{type(error).__name__}: {_first_line(error)}"
    for key, value in arguments.items():
        if _SECRET.search(key) and isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text


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
    if value is not None and _SECRET.search(name):
        return "(not recorded)"
    return masked(str(value)) if isinstance(value, str | Path) else value


def _parts(text: str) -> list[str]:
    """Return what a list on the command line holds: `a,b`, or `[a,b]` as YAML and sweeps write it."""
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [part.strip() for part in inside.split(",") if part.strip()]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
