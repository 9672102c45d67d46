"""Components that settings name: checking their values by a signature, and making them.

A component is a mapping with `_target_`, the import path of a class or function, and its arguments beside it, which may
be components themselves. A mapping of several by name, such as a pipeline's retrievers, is handed over as what makes
each of them.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from byokg.errors import ByokgError, ConfigError

TARGET = "_target_"
MISSING = "???"
SECRET = re.compile(r"key(?!_variable)|token(?!s)|secret|password|credential", re.IGNORECASE)
"""Names of settings whose values are neither shown nor recorded."""

_LISTS = (list, tuple, Collection, Sequence)


def holds_components(value: Any) -> bool:
    """Tell whether a value is a mapping of components by name, of which some may be left out."""
    return (
        isinstance(value, Mapping)
        and TARGET not in value
        and any(isinstance(each, Mapping) and TARGET in each for each in value.values())
    )


def checked_component(node: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a component's node with its values converted to what its target's signature says.

    Raises:
        ConfigError: the target cannot be imported, has no such argument, or takes no such value.
    """
    if node[TARGET] == MISSING:
        return dict(node)
    target = located(node[TARGET], f"{place}.{TARGET}")
    if isinstance(target, type) and issubclass(target, BaseModel):
        return dict(node)  # checks itself when it is built, and may take more than its signature says
    parameters = inspect.signature(target).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    checked: dict[str, Any] = {}
    for name, value in node.items():
        key = f"{place}.{name}"
        if name == TARGET or value == MISSING:
            checked[name] = value
        elif isinstance(value, Mapping) and TARGET in value:
            checked[name] = checked_component(value, key)
        elif holds_components(value):
            checked[name] = {each: node and checked_component(node, f"{key}.{each}") for each, node in value.items()}
        elif name in parameters:
            checked[name] = _converted(value, _annotation(target, parameters[name]), key)
        elif open_ended:
            checked[name] = value
        else:
            hint = nearest(name, list(parameters)) or f"it takes {listed(parameters)}"
            raise ConfigError(f"{node[TARGET]} takes no {name!r}, which {key} sets; {hint}")
    return checked


def located(target: str, place: str) -> Callable[..., Any]:
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
        raise ConfigError(f"{place}={target} cannot be imported: {first_line(error)}") from error
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
        value = parts(value)
    try:
        return TypeAdapter(kind).validate_python(value, strict=not isinstance(value, str))
    except ValidationError as error:
        raise ConfigError(misfit(key, value, error.errors()[0]["msg"])) from error
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return value  # a type that pydantic does not know: its owner has to check


def parts(text: str) -> list[str]:
    """Return what a list on the command line holds: `a,b`, or `[a,b]` as YAML and sweeps write it."""
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [part.strip() for part in inside.split(",") if part.strip()]


def misfit(key: str, value: Any, reason: str) -> str:
    shown = "null" if value is None else value
    return f"{key}={shown} does not fit: {reason[:1].lower()}{reason[1:]}"


def missing_keys(node: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the keys that must be given and were not."""
    for name, value in node.items():
        if isinstance(value, Mapping):
            yield from missing_keys(value, f"{place}.{name}")
        elif value == MISSING:
            yield f"{place}.{name}"


def build(node: Mapping[str, Any], place: str, given: Mapping[str, object]) -> Any:
    """Call a component's target with its settings and what is given."""
    name = node[TARGET]
    target = located(name, f"{place}.{TARGET}")
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
        if isinstance(value, Mapping) and TARGET in value:
            value = build(value, f"{place}.{key}", {})
        elif holds_components(value):
            value = {name: each and _maker(each, f"{place}.{key}.{name}") for name, each in value.items()}
        if key != TARGET:
            arguments[key] = value
    return arguments


def _maker(node: Mapping[str, Any], place: str) -> Callable[..., Any]:
    """Return a component's target with its settings; whoever calls it gives the rest."""
    return functools.partial(located(node[TARGET], f"{place}.{TARGET}"), **_arguments(node, place))


def _refusal(error: Exception, arguments: Mapping[str, Any]) -> str:
    """Say why foreign code refused its arguments, without repeating a secret."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    text = f"{type(error).__name__}: {first_line(error)}"
    for key, value in arguments.items():
        if SECRET.search(key) and isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text


# Messages


def nearest(word: str, known: Sequence[str], prefix: str = "") -> str:
    """Propose the known words most like `word`; empty when there is none."""
    near = difflib.get_close_matches(word, known, n=2)
    return f"nearest: {listed(prefix + name for name in near)}" if near else ""


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
