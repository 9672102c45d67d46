"""MkDocs hook for generated pages: start, commands, configuration, Python, and changes.

The first page is README, with its links adapted to the site. The configuration reference shows the composed settings
of each option, with the defaults of signatures and the descriptions in docstrings.
"""

from __future__ import annotations

import json
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from packaging.version import Version

import byokg
from byokg.cli.components import (
    MISSING,
    RETRIEVERS,
    TARGET,
    about,
    annotation_of,
    groups,
    import_target,
    option_file,
    options,
    settings_of,
)
from byokg.cli.config import RunOptions, descriptions, read_settings
from byokg.cli.main import COMMANDS, app, load
from byokg.files import write_file
from byokg.offline.lexicon import all_rules

ROOT = Path(__file__).resolve().parents[1]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
CONFIGURATION = "configuration"

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
        "security.md": _bent((ROOT / "SECURITY.md").read_text("utf-8")),
        "commands.md": commands_page(),
        "api.md": api_page(),
        "rules.md": rules_page(),
        **configuration_pages(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """List the versions in the folder above, if the site is built into a folder named after the version."""
    folder = Path(config.site_dir)
    if folder.name != VERSION:
        return
    built = sorted((path.parent.name for path in folder.parent.glob("*/index.html")), key=Version, reverse=True)
    listed = [{"version": name, "title": name, "aliases": []} for name in built]
    write_file(folder.parent / "versions.json", [json.dumps(listed).encode()])
    latest = f'<!doctype html><meta http-equiv="refresh" content="0; url={built[0]}/index.html">\n'
    write_file(folder.parent / "index.html", [latest.encode()])


def _bent(text: str) -> str:
    """Turn a file's links at the top of the repository into links of the site."""
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\((?:\./)?docs/", "](", text)
    for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY"):
        text = text.replace(f"]({name}.md)", f"]({name.lower()}.md)")
    return text.replace("](README.md", "](index.md")


# Commands


def commands_page() -> str:
    """Return one section for each command, with its `--help`."""
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


# Rules


def rules_page() -> str:
    """Return the table of the offline pipeline's rules."""
    lines = [
        "# Rules of the offline pipeline\n",
        "Hand-made rules, each with a question on which it may fire; mentions stand in braces. `byokg ask … --trace`",
        "lists the fired ones, `pipeline.without=[NAME,…]` leaves some out, and",
        "`python benchmarks/ablate_offline.py` measures the worth of each.\n",
        "| rule | effect | example |\n|---|---|---|",
        *(f"| {one.name} | {_cell(one.effect)} | {_cell(one.example)} |" for one in all_rules().values()),
    ]
    return "\n".join(lines) + "\n"


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
    pages = {f"{CONFIGURATION}/index.md": _overview()}
    for group in _groups():
        parts = [f"# {group}\n\n`{group}=NAME` chooses {GROUPS.get(group, 'one of these')}.\n"]
        parts += [_option(group, option) for option in options(group)]
        if group == "pipeline":
            parts.append("## Retrievers\n\n`pipeline.retrievers.NAME=OPTION` adds one to a pipeline.\n")
            parts += [_retriever(option) for option in options(RETRIEVERS)]
        pages[f"{CONFIGURATION}/{group}.md"] = "\n".join(parts)
    return pages


def _groups() -> list[str]:
    known = list(GROUPS)
    return sorted(groups(), key=lambda name: (known.index(name) if name in known else len(known), name))


def _overview() -> str:
    lines = [
        "# Configuration\n",
        "`byokg ask` and `byokg eval` take settings as `KEY=VALUE`; `byokg eval … --show` prints all of a run.",
        "`GROUP=NAME` chooses one of a group's options, `GROUP.KEY=VALUE` changes a setting in it. A setting's default",
        "stands in the class or function that an option names in `_target_`; an option's file holds what differs.\n",
        "| group | chooses | options |\n|---|---|---|",
    ]
    for group in _groups():
        names = ", ".join(f"`{name}`" for name in options(group))
        lines.append(f"| [{group}]({group}.md) | {GROUPS.get(group, '')} | {names} |")
    rows = _run_rows(RunOptions, RunOptions(), "", descriptions(read_settings([])))
    lines += ["", "## Settings of a run\n", *_table(list(rows))]
    return "\n".join(lines) + "\n"


Row = tuple[str, str, str, str]
"""Key, type, default and meaning of one setting."""


def _run_rows(kind: Any, record: Any, prefix: str, said: Mapping[str, str]) -> Iterator[Row]:
    """List the settings of a run that belong to no component."""
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        key, value = f"{prefix}{each.name}", getattr(record, each.name)
        if is_dataclass(value):
            yield from _run_rows(type(value), value, f"{key}.", said)
        else:
            yield key, _type(hints[each.name]), _value(value), said.get(key, "")


def _option(group: str, option: str) -> str:
    """Describe an option: purpose, result and every setting."""
    file = option_file(group, option)
    text = file.read_text("utf-8") if file else ""
    lines = [f"## {option}\n", *(_introduction(text) or [about(group, option)]), ""]
    if "# @package _global_" in text:  # sets what belongs to other groups
        body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
        return "\n".join([*lines, f"```yaml\n{body.rstrip()}\n```\n"])
    settings = read_settings([f"{group}={option}"])
    node = settings.components.get(group, {})
    return "\n".join([*lines, *_component(node, group, descriptions(settings))])


def _retriever(option: str) -> str:
    settings = read_settings(["pipeline=path", f"pipeline.retrievers.{option}={option}"])
    node = settings.components["pipeline"]["retrievers"][option]
    file = option_file(RETRIEVERS, option)
    lines = [f"### {option} {{ #retriever-{option} }}\n", *_introduction(file.read_text("utf-8") if file else ""), ""]
    return "\n".join([*lines, *_component(node, f"pipeline.retrievers.{option}", descriptions(settings), RETRIEVERS)])


def _introduction(text: str) -> list[str]:
    """Return the comment at the top of a file without lines on single settings, with commands as code."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words = line.removeprefix("#").strip()
        if not words.startswith("@package") and not re.match(r"\w+: ", words):
            lines.append(f"`{words}`<br>" if words.startswith("byokg ") else words)
    return lines


def _component(node: Mapping[str, Any], place: str, said: Mapping[str, str], group: str | None = None) -> list[str]:
    """Describe the target of a component, and list its settings; retrievers are listed by name."""
    target = node.get(TARGET)
    if target in (None, MISSING):
        return []
    lines = [f"Makes `{target}`.\n"]
    retrievers = node.get("retrievers")
    if isinstance(retrievers, Mapping) and retrievers:
        known = options(RETRIEVERS)
        named = (f"[{name}](#retriever-{name})" if name in known else f"`{name}`" for name in retrievers)
        lines += [f"Retrievers: {', '.join(named)}.\n"]
    rows = list(_rows(node, place, said, place if group is None else group))
    return [*lines, *(_table(rows) if rows else []), ""]


def _rows(node: Mapping[str, Any], place: str, said: Mapping[str, str], group: str) -> Iterator[Row]:
    target = import_target(node[TARGET], place) if node.get(TARGET, MISSING) != MISSING else None
    parameters = settings_of(target, group) if target else {}
    for name, value in node.items():
        key = f"{place}.{name}"
        if name == "retrievers" or (name == TARGET and value != MISSING):
            continue
        if isinstance(value, Mapping) and value:
            yield from _rows(value, key, said, "")
            continue
        kind = _type(annotation_of(target, parameters[name])) if target and name in parameters else ""
        yield key, kind, "required" if value == MISSING else _value(value), said.get(key, "")


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
    words = " ".join(words.split()).removesuffix(".").replace("|", "\\|")
    return re.sub(r"\bNone\b", "null", words)
