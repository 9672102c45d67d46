"""Prompts as Markdown files: loading, checks, rendering and digests.

A file looks like this:

    <!-- Purpose of the prompt. This first comment is not sent. -->
    <!-- system -->
    Answer from the schema below.

    {{schema}}
    <!-- user -->
    {{question}}

`{{name}}` is a variable, and the only syntax: single braces stay as they are, so Cypher maps and JSON need no escaping.
Inserted text is never searched for variables again. The system part comes first and changes least, so that providers
can cache it; a file without these two lines is one user message, or a section of another prompt. Newlines are kept as
they are (Windows' become plain ones); blank lines around a part are not.

`VARIABLES` lists every prompt with its variables. A file, ours or a user's, has to use exactly these.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from byokg.errors import ConfigError
from byokg.text.languages import LanguageChoice, language_instruction

VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # The KG-Linker: a frame for each kind of round, and a section for each task.
        "kg_linker": ("tasks", "schema", "question"),
        "kg_linker_context": ("tasks", "schema", "graph_context", "question"),
        "task_entities": (),
        "task_entities_context": (),
        "task_paths": (),
        "task_pathql": (),
        "task_opencypher": (),
        "task_sparql": (),
        "task_answers": (),
        "task_bfsql": ("max_hops",),
        # Agentic retrieval.
        "relation_selection": ("limit", "graph_context", "explored", "relations", "question"),
        "entity_selection": ("limit", "most", "explored", "graph_context", "question"),
        "bfs_agent": ("calls", "question"),
        # Answering.
        "answer": ("graph_context", "question"),
        "lean": ("request_part", "schema_part", "graph_context", "last_part", "question"),
        "lean_request": ("tasks",),
        "lean_last": (),
        "direct": ("question",),
        "direct_cot": ("question",),
        "subgraph_answer": ("graph_context", "question"),
        "entities": ("tasks", "question"),
        "entities_prime": ("question",),
        "entities_mag": ("question",),
        "judge": ("expected", "given", "question"),
        # Choosing among queries that exist.
        "candidate_numbers": ("picks", "candidates", "question"),
        "candidate_choice": ("question",),
        # A question that leans on earlier ones, completed.
        "follow_up": ("history", "question"),
        # Questions made from a graph, in other words.
        "rewrite": ("names", "question"),
        # Query languages.
        "cypher_generation": ("schema", "entities", "question"),
        "cypher_repair": ("schema", "query", "problem", "question"),
        "sparql_generation": ("schema", "entities", "question"),
        "sparql_repair": ("schema", "query", "problem", "question"),
    }
)

SUFFIX = ".md"

_VARIABLE = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")
_LEADING_COMMENT = re.compile(r"\s*<!--(?!\s*(?:system|user)\s*-->).*?-->[ \t]*\n?", re.DOTALL)
_PART = re.compile(r"^<!--[ \t]*(system|user)[ \t]*-->[ \t]*(?:\n|\Z)", re.MULTILINE)
_CLOSING = re.compile(r"^</([a-z-]+)>[ \t]*$", re.MULTILINE)
_MARK_LIKE = re.compile(r"^<!--[ \t]*\w+[ \t]*-->[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Filled:
    """A prompt with its values, ready to be sent. `system` may be empty; all that differs by question is in `user`."""

    system: str
    user: str


@dataclass(frozen=True)
class Prompt:
    """A loaded prompt."""

    name: str
    system: str
    user: str
    file: str
    """Where it came from, for messages."""
    language: LanguageChoice = "auto"
    """Of the questions; for one that is not English, an instruction ends the prompt."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags between which the prompt wants results: those closed on a line of their own, in order."""
        return tuple(dict.fromkeys(_CLOSING.findall(f"{self.system}\n{self.user}")))

    @property
    def digest(self) -> str:
        """Return a sha256 of the text that is sent: comments, line ends and blank edges change nothing."""
        return hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()

    def fill(self, **values: str) -> Filled:
        """Replace variables by values; `{{…}}` inside a value is left as it is.

        A question in another language than English stays as it is, and an instruction ends the prompt: to write names
        as the graph has them.

        Raises:
            TypeError: the values are not exactly the prompt's variables.
        """
        if values.keys() != set(VARIABLES[self.name]):
            raise TypeError(f"prompt {self.name} takes {', '.join(VARIABLES[self.name])}, not {', '.join(values)}")

        def value(found: re.Match[str]) -> str:
            return values[found[1]]

        instruction = language_instruction(values.get("question", ""), self.language)
        system = _VARIABLE.sub(value, self.system).rstrip("\n")  # a value at the end may be empty
        return Filled(system, _VARIABLE.sub(value, self.user) + instruction)


class PromptLibrary:
    """All prompts: the shipped ones, or the user's own in their place.

    Args:
        folder: `NAME.md` in it replaces the prompt of that name.
        files: one file by prompt name; these go before the folder's.
        language: of the questions, see `byokg.text.languages`; `auto` detects that of each.

    Raises:
        ConfigError: a file cannot be read, is for no prompt, or does not use the prompt's variables.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        files: Mapping[str, str | Path | None] | None = None,
        language: LanguageChoice = "auto",
    ) -> None:
        chosen = _own_files(Path(folder)) if folder is not None else {}
        for name, path in (files or {}).items():
            if path is not None:
                _check_name(name, f"prompts.{name}={path}")
                chosen[name] = Path(path)
        self._prompts = {name: replace(load_prompt(name, chosen.get(name)), language=language) for name in VARIABLES}

    def __getitem__(self, name: str) -> Prompt:
        return self._prompts[name]

    def digests(self, names: Iterable[str] | None = None) -> dict[str, str]:
        """Return the digest of each prompt, or of those named, for the record of a run; sorted by name."""
        return {name: self._prompts[name].digest for name in sorted(VARIABLES if names is None else names)}

    def tags(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the tags of several prompts, each once; see `Prompt.tags`."""
        return tuple(dict.fromkeys(tag for name in names for tag in self._prompts[name].tags))

    def tasks(self, names: Iterable[str], **values: str) -> str:
        """Join the KG-Linker's task sections in the order given, for the variable `tasks`.

        Args:
            names: of the sections.
            values: of their variables; each section takes those that it has.
        """
        filled = (self._prompts[name].fill(**{of: values[of] for of in VARIABLES[name]}) for name in names)
        return "\n\n".join(each.user for each in filled)


def load_prompt(name: str, file: str | Path | None = None) -> Prompt:
    """Read one prompt: ours, or the one in `file`.

    Raises:
        ConfigError: there is no such prompt, the file cannot be read, or its variables are not the prompt's.
    """
    _check_name(name, f"prompt {name!r}")
    if file is None:
        shipped = resources.files("byokg") / "data" / "prompts" / f"{name}{SUFFIX}"
        return parse_prompt(name, shipped.read_bytes(), f"byokg/data/prompts/{name}{SUFFIX}")
    path = Path(file).expanduser()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"prompts.{name}={str(file)!r} cannot be read: {error.strerror}; name a Markdown file"
        ) from error
    return parse_prompt(name, content, str(path))


def parse_prompt(name: str, content: bytes, file: str) -> Prompt:
    """Make a prompt of a file's content.

    Raises:
        ConfigError: it is no UTF-8, its parts are out of order, or its variables are not the prompt's.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    system, user = _parts(text.replace("\r\n", "\n"), file)
    prompt = Prompt(name, system, user, file)
    _check_variables(prompt)
    if not user.strip():
        raise ConfigError(f"{file}: has no text to send; write it, or remove the file to use byokg's own")
    return prompt


def _parts(text: str, file: str) -> tuple[str, str]:
    """Return the system and the user part, without the comment that opens the file."""
    comment = _LEADING_COMMENT.match(text)
    if comment is not None:
        # Blanked, so that the lines keep their numbers.
        text = "\n" * comment[0].count("\n") + text[comment.end() :]
    marks = list(_PART.finditer(text))
    for stray in _MARK_LIKE.finditer(text):
        if not any(mark.start() == stray.start() for mark in marks):
            line = text.count("\n", 0, stray.start()) + 1
            raise ConfigError(
                f"{file}:{line}: {stray[0].strip()} is no part; a prompt has <!-- system --> and <!-- user -->"
            )
    order = [mark[1] for mark in marks]
    if not order:
        return "", text.strip("\n")
    if order not in (["system", "user"], ["user"]) or text[: marks[0].start()].strip():
        raise ConfigError(
            f"{file}: its parts are {', '.join(order)}; write <!-- system --> first, or not at all, then <!-- user -->"
        )
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    parts = {mark[1]: text[mark.end() : end].strip("\n") for mark, end in zip(marks, ends, strict=True)}
    return parts.get("system", ""), parts["user"]


def _check_variables(prompt: Prompt) -> None:
    """Make sure that the text uses the variables it is given, and no others."""
    known = VARIABLES[prompt.name]
    used = _VARIABLE.findall(prompt.system) + _VARIABLE.findall(prompt.user)
    for variable in used:
        if variable not in known:
            near = difflib.get_close_matches(variable, known, n=1)
            hint = f"nearest: {near[0]}" if near else f"it is given {', '.join(known) or 'none'}"
            raise ConfigError(f"{prompt.file}: prompt {prompt.name} has no variable {{{{{variable}}}}}; {hint}")
    for variable in known:
        if variable not in used:
            raise ConfigError(
                f"{prompt.file}: variable {{{{{variable}}}}} is missing, so prompt {prompt.name} would be sent without "
                "it; add it"
            )


def _own_files(folder: Path) -> dict[str, Path]:
    """Find a user's prompts in a folder."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise ConfigError(f"prompts folder {str(folder)!r} does not exist; name a folder of Markdown files")
    found = {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}")) if path.stem.upper() != "README"}
    for name, path in found.items():
        _check_name(name, str(path))
    return found


def _check_name(name: str, place: str) -> None:
    if name not in VARIABLES:
        near = difflib.get_close_matches(name, VARIABLES, n=2)
        hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(VARIABLES)}"
        raise ConfigError(f"{place}: there is no prompt {name!r}; {hint}")
