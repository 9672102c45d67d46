"""A hook of MkDocs that writes the pages nobody writes by hand: start, commands, configuration, Python, and changes.

The first page is README, with its links bent to the site. The configuration reference puts together what each YAML file
under `configs/` sets and says, and the names, types, defaults and docstrings of what its `_target_` names, so it shows
what a run would really take.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import griffe
import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import byokg
from byokg.cli.components import MISSING as TO_BE_GIVEN
from byokg.cli.components import TARGET, config_dirs, located
from byokg.cli.config import RunOptions, described
from byokg.cli.main import COMMANDS, app, load

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = "configuration"

RUN = "byokg.cli.config.RunOptions"

PLAIN = (bool, int, float, str, Path, type(None), Any)
"""Types that a setting may have; whatever else a constructor takes, byokg gives it."""

GROUPS = {
    "pipeline": "how questions are answered",
    "llm": "which language model is asked",
    "graph": "how the graph is opened",
    "dataset": "which questions are asked",
    "linking": "how mentions are tied to nodes",
    "embedding": "what turns text into vectors",
    "budget": "when a run stops",
    "subset": "draws of data sets that papers use",
    "experiment": "comparisons, as one file each",
    "debug": "runs that are over at once",
}
"""Groups of options in the order in which a reader meets them."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the written pages to those of `docs/`."""
    pages = {
        "index.md": _bent((ROOT / "README.md").read_text("utf-8")),
        "contributing.md": _bent((ROOT / "CONTRIBUTING.md").read_text("utf-8")),
        "changelog.md": _bent((ROOT / "CHANGELOG.md").read_text("utf-8")),
        "commands.md": commands_page(),
        "api.md": api_page(),
        **configuration_pages(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def _bent(text: str) -> str:
    """Turn a file's links at the top of the repository into links of the site."""
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\((?:\./)?docs/", "](", text)
    for name in ("CONTRIBUTING", "CHANGELOG"):
        text = text.replace(f"]({name}.md)", f"]({name.lower()}.md)")
    return text.replace("](README.md", "](index.md")


# Commands


def commands_page() -> str:
    """Return one section for each command, with what its `--help` says."""
    parts = ["# Commands\n\nWhat `byokg COMMAND --help` says, for every command.\n"]
    parts += [f"## byokg\n\n{app.info.help}\n"]
    parts += [_command(path, each) for name in COMMANDS for path, each in _commands(load(name), f"byokg {name}")]
    return "\n".join(parts)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a command and those below it, in the order of the help text."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from _commands(each, f"{path} {name}")


def _command(path: str, command: Any) -> str:
    paragraphs = (command.help or "").replace("\b", "").split("\n\n")
    lines = [f"## {path}\n", "\n\n".join(" ".join(each.split()) for each in paragraphs), ""]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and "--help" not in each.opts]
    words = ["COMMAND …"] if hasattr(command, "commands") else [_name(each) for each in arguments]
    lines.append(f"```text\n{' '.join([path, *(['[OPTIONS]'] if options else []), *words])}\n```\n")
    rows = [(_name(each), each.help) for each in arguments]
    rows += [(", ".join([*each.opts, *each.secondary_opts]), each.help) for each in options if not each.hidden]
    if rows:
        lines += ["| | |\n|---|---|", *(f"| `{name}` | {_cell(words or '')} |" for name, words in rows), ""]
    return "\n".join(lines)


def _name(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


# Python


def api_page() -> str:
    """Return the reference of the public names, in the order of `byokg.__all__`."""
    lines = ["# Python\n", "The public names of `byokg`. Everything else may change between versions.\n"]
    for name in byokg.__all__:
        if name != "__version__":
            value = getattr(byokg, name)
            lines.append(f"::: {value.__module__}.{value.__qualname__}\n")
    return "\n".join(lines)


# Configuration


def configuration_pages() -> dict[str, str]:
    """Return the pages of the configuration reference, by path."""
    docs = Docstrings()
    folder = config_dirs()[0]
    found = {path.name for path in folder.iterdir() if path.is_dir()}
    groups = [*(name for name in GROUPS if name in found), *sorted(found - set(GROUPS))]
    pages = {f"{CONFIGURATION}/index.md": _overview(folder, groups, docs)}
    for group in groups:
        parts = [f"# {group}\n\n`{group}=NAME` chooses {GROUPS.get(group, 'one of these')}.\n"]
        for path in sorted((folder / group).rglob("*.yaml"), key=lambda path: (len(path.parts), path)):
            parts.append(_option(path, folder, docs))
        pages[f"{CONFIGURATION}/{group}.md"] = "\n".join(parts)
    return pages


def _overview(folder: Path, groups: Sequence[str], docs: Docstrings) -> str:
    text = (folder / "config.yaml").read_text("utf-8")
    lines = [
        "# Configuration\n",
        "`byokg ask` and `byokg eval` take settings as `KEY=VALUE`; `byokg eval … --show` prints all of a run.",
        "`GROUP=NAME` chooses one of a group's options, `GROUP.KEY=VALUE` changes a setting in it. What a file",
        "does not set has the default of the class or function that it names in `_target_`.\n",
        "| group | chooses | options |\n|---|---|---|",
    ]
    for group in groups:
        options = ", ".join(f"`{path.stem}`" for path in sorted((folder / group).glob("*.yaml")))
        lines.append(f"| [{group}]({group}.md) | {GROUPS.get(group, '')} | {options} |")
    lines += ["", "## Settings of a run\n", *_table(_run_rows(text, docs))]
    lines += ["", "## config.yaml\n", "What every run starts from:\n", f"```yaml\n{text.rstrip()}\n```\n"]
    return "\n".join(lines)


Row = tuple[str, str, str, str]
"""Key, type, default and meaning of one setting."""


def _run_rows(text: str, docs: Docstrings) -> list[Row]:
    comments = _comments(text)
    return list(_dataclass_rows(RunOptions, "", comments, docs))


def _dataclass_rows(record: type, prefix: str, comments: Mapping[str, str], docs: Docstrings) -> Iterator[Row]:
    hints = typing.get_type_hints(record)
    for each in fields(record):
        key = f"{prefix}{each.name}"
        kind = hints[each.name]
        if is_dataclass(kind):
            yield from _dataclass_rows(typing.cast("type", kind), f"{key}.", comments, docs)
            continue
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        meaning = described(record).get(each.name) or docs.attribute(record, each.name) or comments.get(key, "")
        yield key, _type(kind), "required" if default is MISSING else _value(default), meaning


def _option(path: Path, folder: Path, docs: Docstrings) -> str:
    """Describe one YAML file: what it is for, what it makes, and every setting."""
    text = path.read_text("utf-8")
    name = path.relative_to(folder).with_suffix("").as_posix()
    group, _, option = name.partition("/")
    lines = [f"## {option}\n", *_introduction(text), ""]
    if "# @package _global_" in text:  # chooses and sets what belongs to other groups
        body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
        return "\n".join([*lines, f"```yaml\n{body.rstrip()}\n```\n"])
    values = yaml.safe_load(text) or {}
    comments = _comments(text)
    target = values.get(TARGET)
    if target and target != TO_BE_GIVEN:
        lines += [f"Makes `{target}`.\n"]
    if rows := list(_rows(values, group, comments, docs)):
        lines += [*_table(rows), ""]
    inherited = [each for each in values.get("defaults", []) if isinstance(each, Mapping) or each != "_self_"]
    if inherited:
        lines += [f"```yaml\n{yaml.safe_dump({'defaults': inherited}, sort_keys=False).rstrip()}\n```\n"]
    return "\n".join(lines)


def _introduction(text: str) -> list[str]:
    """Return the comment at the top of a file, its commands as code."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if re.match(r"# \w+: ", line):
            continue  # of one setting, see `_comments`
        words = line.removeprefix("#").strip()
        if not words.startswith("@package"):
            lines.append(f"`{words}`<br>" if words.startswith("byokg ") else words)
    return lines


def _rows(values: Mapping[str, Any], prefix: str, comments: Mapping[str, str], docs: Docstrings) -> Iterator[Row]:
    """List the settings of a component: those of the file, then those that its target takes beside them."""
    target = values.get(TARGET)
    function = located(target, prefix) if target and target != TO_BE_GIVEN else None
    parameters = dict(_settings(function)) if function else {}
    meanings = described(function) if function else {}
    for name in dict.fromkeys([*values, *parameters]):
        value = values.get(name)
        key = f"{prefix}.{name}"
        if name in (TARGET, "defaults", "hydra"):
            continue
        if isinstance(value, Mapping) and value:
            local = {inner.removeprefix(f"{name}."): words for inner, words in comments.items()}
            yield from _rows(value, key, local, docs)
            continue
        kind, default = parameters.get(name, ("", ""))
        if name in values:
            default = "required" if value == TO_BE_GIVEN else _value(value)
        yield key, kind, default, comments.get(name) or meanings.get(name, "")


def _settings(function: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, type and default of those parameters that can be given as a setting."""
    home = inspect.getattr_static(function, "__init__") if isinstance(function, type) else function
    names = getattr(home, "__globals__", {})
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        try:
            kind = eval(parameter.annotation, names) if isinstance(parameter.annotation, str) else parameter.annotation
        except NameError:
            continue  # a type that only type checkers see is an object, which byokg gives
        if _plain(kind):
            default = "required" if parameter.default is parameter.empty else _value(parameter.default)
            yield name, (_type(kind), default)


def _plain(kind: Any) -> bool:
    """Tell whether a value of this type can be written into YAML."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return True
    if origin is typing.Annotated:
        return _plain(inner[0])
    if origin is None:
        return kind in PLAIN
    return all(_plain(each) for each in inner if each is not ...) and origin is not typing.get_origin(
        typing.Callable[..., Any]
    )


def _type(kind: Any) -> str:
    """Name a type as a reader of settings would."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return ", ".join(map(str, inner))
    if origin is typing.Annotated:
        return _type(inner[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(each) for each in inner)
    if kind is type(None):
        return "null"
    if origin is not None and len(inner) and issubclass(origin, Mapping):
        return "mapping"
    if origin is not None:
        return f"list of {_type(inner[0])}"
    return {str: "text", int: "integer", float: "number", bool: "true or false", Path: "path"}.get(kind, "any")


def _value(value: Any) -> str:
    """Write a default as YAML would."""
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (list, tuple, frozenset, set)):
        return f"`[{', '.join(map(str, value))}]`"
    if isinstance(value, Mapping):
        return "`{}`" if not value else f"`{dict(value)}`"
    return f"`{value}`" if value != "" else '`""`'


def _table(rows: Sequence[Row]) -> list[str]:
    lines = ["| setting | type | default | |", "|---|---|---|---|"]
    return lines + [f"| `{key}` | {kind} | {default} | {_cell(words)} |" for key, kind, default, words in rows]


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def _comments(text: str) -> dict[str, str]:
    """Return what comments of a YAML file say of settings, by dotted key: behind a key, or as a line `# KEY: …`."""
    found: dict[str, str] = dict(re.findall(r"^# (\w+): (.+)$", text, re.MULTILINE))
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if match := re.match(r"( *)([\w]+):(?: +(?:[^#\n]|(?<! )#)*)?(?: +# (.*))?$", line):
            depth = len(match[1])
            above = [each for each in above if each[0] < depth] + [(depth, match[2])]
            if match[3]:
                found[".".join(name for _, name in above)] = match[3].strip()
    return found


class Docstrings:
    """What docstrings say about attributes, read without importing anything."""

    def __init__(self) -> None:
        self._package = griffe.load("byokg", search_paths=[str(ROOT)])

    def attribute(self, record: type, name: str) -> str:
        """Return the docstring below a field of a dataclass."""
        member = self._package[f"{record.__module__.removeprefix('byokg.')}.{record.__qualname__}"].members.get(name)
        return member.docstring.value if member is not None and member.docstring else ""
