"""Components that settings name by `_target_`: their signatures validate the settings, and they are called with them.

A component is a mapping with `_target_`, the import path of a class or function, and its arguments beside it, which may
be components themselves. Its signature is the schema: names, types and defaults of the settings. A mapping of several
by name, such as a pipeline's retrievers, is passed as factories.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import metadata, resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import yaml
from hydra.core.config_store import ConfigStore
from hydra.utils import get_object
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from byokg.errors import ByokgError, ConfigError
from byokg.files import has_separator
from byokg.open import is_address, mask

CONFIG_DIR = "BYOKG_CONFIG_DIR"
"""Environment variable that names a folder of the user's own options; `--config-dir` sets it."""

GIVEN = {
    "graph": frozenset({"username", "password", "client"}),
    "linking": frozenset({"store", "embedder", "known_names", "dense"}),
}
"""By group, arguments that are no settings: other components, clients and credentials."""

RETRIEVERS = "pipeline/retrievers"

_GIVEN_FIRST = ("graph", "pipeline", RETRIEVERS)
"""Groups with a first argument that is no setting: the place of a graph, or the `Parts` of a pipeline."""

KINDS = {
    "graph": "byokg.graph.store.GraphStore",
    "embedding": "byokg.index.embedders.Embedder",
    "linking": "byokg.linking.entities.EntityLinker",
    "llm": "byokg.llm.providers.Provider",
    "pipeline": "byokg.evaluation.runner.Pipeline",
    "dataset": "byokg.evaluation.datasets.base.Dataset",
}
"""Required protocol of the component chosen from a group."""

TARGET = "_target_"
MISSING = "???"
SECRET = re.compile(r"key(?!_variable)|token(?!s)|secret|password|credential", re.IGNORECASE)
"""Names of settings whose values are neither shown nor recorded."""

_LISTS = (list, tuple, Collection, Sequence)
_LOOSE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


ENTRY_POINTS = {
    "pipeline": "byokg.pipelines",
    RETRIEVERS: "byokg.retrievers",
    "graph": "byokg.stores",
    "dataset": "byokg.datasets",
}
"""By group, the entry points of installed packages that are options of it."""

_FOLDER_HINTS = {
    "graph": "graph.path={}",
    "dataset": "dataset=folder dataset.root={}",
    "embedding": "embedding=static embedding.path={}",
}
"""Correct option in place of a folder given to a group."""


class Typed(str):
    """A value from the command line, of which the type is not known yet."""


# Options


def config_dirs() -> list[Path]:
    """Return the folders of YAML files: byokg's own, inside an installed package or beside it, then the user's.

    Raises:
        ConfigError: the user's is no folder, or an option in it has the name of one of byokg's.
    """
    package = Path(str(resources.files("byokg")))
    places = (package / "configs", package.parent / "configs")
    own = next((folder for folder in places if (folder / "config.yaml").is_file()), None)
    if own is None:
        raise ConfigError(f"no configs in {str(package)!r} or beside it; run: pip install --force-reinstall byokg")
    given = os.environ.get(CONFIG_DIR)
    if not given:
        return [own]
    theirs = Path(given).expanduser().resolve()
    if not theirs.is_dir():
        raise ConfigError(f"--config-dir {given} is no folder; name one that holds GROUP/OPTION.yaml")
    for file in theirs.rglob("*.yaml"):
        if (own / file.relative_to(theirs)).exists():
            raise ConfigError(f"{str(file)!r} has the name of an option of byokg; give it another")
    return [own, theirs]


def groups() -> list[str]:
    """Return the names of all groups."""
    return sorted({folder.name for place in config_dirs() for folder in place.iterdir() if folder.is_dir()})


def options(group: str) -> list[str]:
    """Return the names of a group's options."""
    files = {file.stem for folder in config_dirs() for file in (folder / group).glob("*.yaml")}
    return sorted(files | entry_points(group).keys())


def option_file(group: str, option: str) -> Path | None:
    """Return the YAML file of an option; None if an installed package adds it."""
    files = (folder / group / f"{option}.yaml" for folder in config_dirs())
    return next((file for file in files if file.is_file()), None)


def about(group: str, option: str) -> str:
    """Return an option's own description in one line."""
    file = option_file(group, option)
    if file is None:
        return f"{entry_points(group)[option]}, of an installed package"
    lines = file.read_text("utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ") and "@package" not in line), "")


def entry_points(group: str) -> dict[str, str]:
    """Return the import path of each option that installed packages add to a group."""
    found = metadata.entry_points(group=ENTRY_POINTS[group]) if group in ENTRY_POINTS else ()
    return {each.name: each.value.replace(":", ".") for each in found}


def quote_path(path: Path) -> str:
    """Write a path as Hydra's grammar takes any text: in quotes, and without references to other settings."""
    escaped = re.sub(r"(\\*)(?='|$)", r"\1\1", str(path)).replace("'", "\\'")
    return f"'{escaped}'".replace("${", r"\${")


def show_entry_points_to_hydra() -> None:
    for group in ENTRY_POINTS:
        for name, target in entry_points(group).items():
            ConfigStore.instance().store(name, {TARGET: target}, group)


def check_option(group: str, option: str) -> None:
    """Make sure that a group has an option of this name. Raises `ConfigError`."""
    if option_file(group, option) is not None:
        return
    known, text, key = options(group), mask(option), group.replace("/", ".")
    if option in known:
        show_entry_points_to_hydra()
        return
    if group == "graph" and is_address(text):
        hint = f"for a server write graph.path={text}"
    elif group in _FOLDER_HINTS and (has_separator(text) or "." in text or Path(text).exists()):
        hint = f"for a folder write {_FOLDER_HINTS[group].format(text)}"
    else:
        hint = nearest(text, known)
    raise ConfigError(f"{key}={text} is no option{hint and '; '}{hint}; options of {key}: {join_words(known)}")


# Checking settings


def settings_of(target: Callable[..., Any], group: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a component that are settings. A group of "" is that of components inside others."""
    parameters = inspect.signature(target).parameters
    given = GIVEN.get(group, frozenset())
    if group in _GIVEN_FIRST and (first := first_argument(target)):
        given |= {first}
    return {name: each for name, each in parameters.items() if name not in given and each.kind not in _LOOSE}


def first_argument(target: Callable[..., Any]) -> str | None:
    """Return the first argument of a component, if it has no default."""
    first = next(iter(inspect.signature(target).parameters.values()), None)
    return first.name if first is not None and first.default is first.empty and first.kind not in _LOOSE else None


def open_ended(target: Callable[..., Any]) -> bool:
    """True if a component takes arguments that its signature does not name."""
    if isinstance(target, type) and issubclass(target, BaseModel):
        return True  # it checks itself when it is made
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(target).parameters.values())


def validate(node: Mapping[str, Any], place: str, group: str = "") -> dict[str, Any]:
    """Return a component's node with all settings, converted to the types of the target.

    Args:
        node: `_target_`, and the settings that differ from their defaults.
        place: its place, for messages.
        group: group of the component; see `settings_of`.

    Raises:
        ConfigError: the target cannot be imported, has no such argument, or takes no such value.
    """
    if node[TARGET] == MISSING:
        return dict(node)
    target = import_target(node[TARGET], place)
    if isinstance(target, type) and issubclass(target, BaseModel):
        return {name: _natural(value) for name, value in node.items()}
    parameters = settings_of(target, group)
    settings: dict[str, Any] = {TARGET: str(node[TARGET])}
    components: dict[str, Any] = {}
    for name, parameter in parameters.items():
        kind = annotation_of(target, parameter)
        value = node[name] if name in node else _default(parameter.default, kind)
        if value is not parameter.empty:
            value = _checked_value(value, kind, f"{place}.{name}")
            # Components that may be left out come last: people read numbers first.
            last = _is_component(value) or holds_components(value)
            (components if last and parameter.default is not parameter.empty else settings)[name] = value
    for name in [name for name in node if name != TARGET and name not in parameters]:
        if not open_ended(target):
            hint = nearest(name, list(parameters)) or f"it takes {join_words(parameters)}"
            raise ConfigError(f"{node[TARGET]} takes no {name!r}, which {place}.{name} sets; {hint}")
        settings[name] = _natural(node[name])
    return settings | components


def _of_factory(factory: Any) -> dict[str, Any]:
    """Return the component that a factory makes: a class, or one with some of its settings."""
    made = factory if isinstance(factory, functools.partial) else functools.partial(factory)
    return {TARGET: f"{made.func.__module__}.{made.func.__qualname__}", **made.keywords}


def _checked_value(value: Any, kind: Any, key: str) -> Any:
    if isinstance(value, Mapping) and isinstance(kind, type) and is_dataclass(kind) and TARGET not in value:
        value = {TARGET: f"{kind.__module__}.{kind.__qualname__}", **value}
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) and value == MISSING else _converted(value, kind, key)
    if _is_component(value):
        return validate(value, key)
    group = key.replace(".", "/")
    if group == RETRIEVERS or holds_components(value):
        named = {name: each for name, each in value.items() if each is None or _is_component(each)}
        found = {name: each and validate(each, f"{key}.{name}", group) for name, each in named.items()}
        for name in [name for name in value if name not in named]:
            setting = next(flatten({name: value[name]}))[0]
            hint = nearest(setting, list(dict(flatten(found))), f"{key}.") or f"there is {join_words(found)}"
            raise ConfigError(f"no setting {f'{key}.{setting}'!r}; {hint}")
        return found
    if kind is Any or _is_open_mapping(kind):
        return _natural(value)
    raise ConfigError(f"{key} has no setting {f'{key}.{next(flatten(value))[0]}'!r}; it takes one value")


def _default(value: Any, kind: Any) -> Any:
    """Return a parameter's default as YAML would write it; `empty` if that is not possible."""
    if value is inspect.Parameter.empty:
        return MISSING
    if value is None and _is_open_mapping(kind):
        return {}
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping) and all(map(callable, value.values())):
        return {name: _of_factory(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return list(value)
    return value if isinstance(value, str | int | float | Path | Mapping | None) else inspect.Parameter.empty


def _is_open_mapping(kind: Any) -> bool:
    """True if a type is a mapping with names chosen by the user."""
    return any(typing.get_origin(each) in (Mapping, dict) for each in (kind, *typing.get_args(kind)))


def annotation_of(target: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the type of one argument; `Any` when it has none, or one that exists for type checkers only."""
    if parameter.annotation is parameter.empty:
        return Any
    function = inspect.getattr_static(target, "__init__") if isinstance(target, type) else target
    wanted = SimpleNamespace(__annotations__={"value": parameter.annotation})
    try:
        return typing.get_type_hints(wanted, getattr(function, "__globals__", {}))["value"]
    except (NameError, TypeError):
        return Any


def _converted(value: Any, kind: Any, key: str) -> Any:
    """Convert a value to a type: text from the command line freely, values from YAML only without loss."""
    if kind is Any:
        return _natural(value)
    if isinstance(value, str) and Path in (kind, *typing.get_args(kind)):
        return Path(value).expanduser()
    if isinstance(value, str) and any(typing.get_origin(each) in _LISTS for each in (kind, *typing.get_args(kind))):
        value = split_list(value)
    try:
        plain = str(value) if isinstance(value, str) else value
        return TypeAdapter(kind).validate_python(plain, strict=not isinstance(value, str))
    except ValidationError as error:
        raise ConfigError(describe_misfit(key, value, error.errors()[0]["msg"])) from error
    except (PydanticUserError, PydanticUndefinedAnnotation):
        return _natural(value)  # a type that pydantic does not know: its owner has to check


def _natural(value: Any) -> Any:
    """Read typed text of which no type is known as YAML would: 16 is a number."""
    if isinstance(value, Mapping):
        return {name: _natural(each) for name, each in value.items()}
    if not isinstance(value, Typed):
        return value
    try:
        return yaml.safe_load(value) if value else ""
    except yaml.YAMLError:
        return str(value)


def split_list(text: str) -> list[str]:
    """Return the items of a list on the command line: `a,b`, or `[a,b]` as YAML and sweeps write it."""
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [part.strip() for part in inside.split(",") if part.strip()]


def flatten(node: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted name and value of each setting in nested mappings."""
    for name, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def _is_component(value: Any) -> bool:
    return isinstance(value, Mapping) and TARGET in value


def holds_components(value: Any) -> bool:
    """True if a value is a mapping of components by name, of which some may be left out."""
    return isinstance(value, Mapping) and TARGET not in value and any(map(_is_component, value.values()))


# Making components


def import_target(target: str, place: str) -> Callable[..., Any]:
    """Import the target of a dotted name: a module's class or function, or an attribute of a class."""
    try:
        found = get_object(target)
    except (ImportError, ValueError) as error:
        reason = first_line(error.__cause__ or error)
        raise ConfigError(f"{place}.{TARGET}={target} cannot be imported: {reason}") from error
    if not callable(found):
        raise ConfigError(
            f"{place}.{TARGET}={target} is not callable; name a class or a function by its full import path"
        )
    return cast("Callable[..., Any]", found)


def missing_keys(node: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the keys that must be given and were not."""
    for name, value in node.items():
        if isinstance(value, Mapping):
            yield from missing_keys(value, f"{place}.{name}")
        elif isinstance(value, str) and value == MISSING:
            yield f"{place}.{name}"


def instantiate(node: Mapping[str, Any], place: str, first: Sequence[object] = (), **given: object) -> Any:
    """Call a component's target.

    Args:
        node: `_target_`, and settings as returned by `validate`.
        place: its place, for messages. A group's component has to be one of `KINDS`.
        first: positional arguments.
        given: keyword arguments.

    Raises:
        ConfigError: it rejects the arguments or its settings, or returns something else.
    """
    name = node[TARGET]
    target, arguments = import_target(name, place), _arguments(node, place)
    try:
        inspect.signature(target).bind(*first, **arguments, **given)
    except TypeError as error:
        raise ConfigError(f"{place}: {name} cannot be called: {error}") from error
    if name.startswith("byokg."):
        return target(*first, **arguments, **given)
    try:
        component = target(*first, **arguments, **given)
    except ByokgError:
        raise
    except Exception as error:  # foreign code raises any exception
        raise ConfigError(f"{place}: {name} refused its settings: {_refusal(error, arguments)}") from error
    if place in KINDS:
        _check_kind(component, place, name)
    return component


def component_or_value(value: Any, place: str) -> Any:
    """Return the result of a component; any other value as it is."""
    return instantiate(value, place) if _is_component(value) else value


def _arguments(node: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the arguments of a component: nested ones are made, of several by name the factories."""
    arguments = {}
    for key, value in node.items():
        here = f"{place}.{key}"
        value = component_or_value(value, here)
        if holds_components(value):
            value = {name: each and _maker(each, f"{here}.{name}") for name, each in value.items()}
        if key != TARGET:
            arguments[key] = value
    return arguments


def _maker(node: Mapping[str, Any], place: str) -> Callable[..., Any]:
    """Return a component's target with its settings; whoever calls it gives the rest."""
    return functools.partial(import_target(node[TARGET], place), **_arguments(node, place))


def _check_kind(component: object, group: str, target: str) -> None:
    """Check that a user's own component implements the protocol of its group."""
    kind = cast(type, get_object(KINDS[group]))
    if getattr(kind, "_is_protocol", False):
        lacking = [name for name in vars(kind) if not name.startswith("_") and not hasattr(component, name)]
        fits, wanted = not lacking, f"without {join_words(lacking)}; see {KINDS[group]}"
    else:
        fits, wanted = isinstance(component, kind), f"where a {KINDS[group]} is wanted"
    if not fits:
        raise ConfigError(f"{group}.{TARGET}={target} makes no {group} but a {type(component).__name__}, {wanted}")


def _refusal(error: Exception, arguments: Mapping[str, Any]) -> str:
    """Describe the rejection of arguments by foreign code, without repeating a secret."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    text = f"{type(error).__name__}: {first_line(error)}"
    for key, value in arguments.items():
        if SECRET.search(key) and isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text


# Messages


def describe_misfit(key: str, value: Any, reason: str) -> str:
    """Describe a value of the wrong type for a setting."""
    shown = "null" if value is None else value
    hint = nearest(str(shown), re.findall("'([^']+)'", reason))  # where it lists what it takes
    return f"{key}={shown} does not fit: {reason[:1].lower()}{reason[1:]}{hint and '; '}{hint}"


def nearest(word: str, known: Sequence[str], prefix: str = "") -> str:
    """Propose the known words most like `word`; empty when there is none."""
    near = difflib.get_close_matches(word, known, n=2)
    return f"nearest: {join_words(prefix + name for name in near)}" if near else ""


def join_words(words: Iterable[str]) -> str:
    """Write words with commas between them."""
    return ", ".join(words)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text that is not blank."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
