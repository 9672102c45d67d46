"""Tests of `byokg.prompts` and of the prompts themselves.

`prompt_snapshots/` shows each prompt as it is sent. After a change that is meant, write them anew with
BYOKG_WRITE_SNAPSHOTS=1 and read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import ConfigError
from byokg.prompts import VARIABLES, PromptLibrary, load_prompt, parse_prompt

SNAPSHOTS = Path(__file__).parent / "prompt_snapshots"

FIRST_ROUND = ("task_entities", "task_paths", "task_opencypher", "task_answers")

SAMPLE = {
    "schema": "Node types:\nFilm (4)\n  released: int, e.g. 1995\nRelations:\n(Film)-[directed_by]->(Person) 4",
    "names": "Heat",
    "history": "Who directed {Heat}?\n= Michael Mann",
    "question": "Who directed {Heat}, and what is {{schema}}?",
    "graph_context": "[e1] Heat → directed_by → Michael Mann\n[e2] Heat → starred_actors → Al Pacino | Robert De Niro",
    "limit": "5",
    "most": "20",
    "request_part": "Otherwise write no answers.",
    "last_part": "Nothing more can be retrieved.\n\n",
    "schema_part": "Relations:\n[directed_by] 17\n\n",
    "explored": "Ali: directed_by",
    "relations": "Heat\n  directed_by\n  starred_actors\nAl Pacino\n  ^starred_actors",
    "entities": "f1 Heat (Film)\np2 Al Pacino (Person)",
    "query": "MATCH (f:Movie {name: 'Heat'}) RETURN f",
    "problem": "no node type 'Movie'; nearest: 'Film'",
    "calls": "10",
    "max_hops": "2",
    "picks": "5",
    "candidates": "1. MATCH (a {name: 'Heat'})-[:directed_by]->(x) RETURN x\n2. MATCH (a)-[:acts_in]->(x) RETURN x",
    "expected": '[{"name": "Michael Mann"}]',
    "given": "Michael Mann",
}


@pytest.fixture(scope="module")
def library() -> PromptLibrary:
    """Return the prompts that ship with byokg."""
    return PromptLibrary()


def sent(library: PromptLibrary, name: str) -> str:
    """Render a prompt with the sample values, in the form of its snapshot."""
    later = ("task_entities_context", *FIRST_ROUND[1:], "task_bfsql")
    tasks = {"kg_linker": FIRST_ROUND, "entities": ("task_entities",)}.get(name, later)
    values = {**SAMPLE, "tasks": library.tasks(tasks, max_hops=SAMPLE["max_hops"])}
    filled = library[name].fill(**{variable: values[variable] for variable in VARIABLES[name]})
    system = f"=== system ===\n{filled.system}\n" if filled.system else ""
    return f"{system}=== user ===\n{filled.user}\n"


@pytest.mark.parametrize("name", VARIABLES)
def test_each_prompt_is_sent_as_its_snapshot_shows(library: PromptLibrary, name: str) -> None:
    snapshot = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("BYOKG_WRITE_SNAPSHOTS"):
        snapshot.write_text(sent(library, name), "utf-8")
    assert sent(library, name) == snapshot.read_text("utf-8")


def test_every_file_is_a_prompt_and_every_snapshot_is_of_one() -> None:
    package = Path(load_prompt.__code__.co_filename).parent / "data" / "prompts"
    assert {path.stem for path in package.glob("*.md")} == set(VARIABLES)
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(VARIABLES)


@pytest.mark.parametrize("name", [name for name in VARIABLES if "question" in VARIABLES[name]])
def test_what_varies_by_question_comes_after_all_that_can_be_cached(library: PromptLibrary, name: str) -> None:
    prompt = library[name]
    varying = {"question", "graph_context", "entities", "relations", "query", "problem", "expected", "given"}
    assert not [variable for variable in varying if f"{{{{{variable}}}}}" in prompt.system]
    assert "{{tasks}}" not in prompt.user
    if "schema" in VARIABLES[name] and "graph_context" in VARIABLES[name]:
        assert prompt.user.index("{{graph_context}}") < prompt.user.index("{{schema}}")
    elif "schema" in VARIABLES[name]:
        assert prompt.system.endswith("{{schema}}")


def test_examples_show_one_entry_a_line(library: PromptLibrary) -> None:
    assert "<entities>\nentity 1 | alias | another alias\nentity 2\n</entities>" in library["task_entities"].user
    assert "<paths>\nrelation1\nrelation1 -> relation2\n</paths>" in library["task_paths"].user


def test_tags_in_each_prompt_are_closed(library: PromptLibrary) -> None:
    for name in VARIABLES:
        text = f"{library[name].system}\n{library[name].user}"
        opened = re.findall(r"^<([a-z-]+)>$", text, re.MULTILINE)
        assert opened == re.findall(r"^</([a-z-]+)>$", text, re.MULTILINE), name


def test_a_task_that_is_left_out_leaves_no_trace(library: PromptLibrary) -> None:
    system = library["kg_linker"].fill(tasks=library.tasks(["task_entities"]), schema="S", question="Q").system
    assert "<entities>" in system
    assert "<opencypher>" not in system and "<paths>" not in system and "<answers>" not in system


def test_values_are_text_and_not_searched_for_variables(library: PromptLibrary) -> None:
    question = 'What is {{question}}? {"a": {"b": 1}} \\1 \\g<0>'
    assert library["direct"].fill(question=question).user == question


def test_single_braces_in_a_prompt_stay() -> None:
    text = b'MATCH (n {name: \'x\', m: {a: 1}}) {{question}} {"a": {"b": {}}} {}'
    filled = parse_prompt("direct", text, "own.md").fill(question="Q")
    assert filled.user == 'MATCH (n {name: \'x\', m: {a: 1}}) Q {"a": {"b": {}}} {}'
    assert filled.system == ""


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_value_comes_through_unchanged(value: str) -> None:
    prompt = replace(parse_prompt("direct", b"<!-- user -->\nbefore {{question}} after", "own.md"), language="en")
    assert prompt.fill(question=value).user == f"before {value} after"


def test_filling_in_other_than_the_variables_is_a_mistake(library: PromptLibrary) -> None:
    with pytest.raises(TypeError, match="prompt direct takes question, not questoin"):
        library["direct"].fill(questoin="Q")


def test_newlines_are_kept_and_those_of_windows_are_made_plain() -> None:
    text = "<!-- about -->\r\n<!-- system -->\r\na\r\n\r\n  b\r\n<!-- user -->\r\n{{question}}\r\n"
    prompt = parse_prompt("direct", b"\xef\xbb\xbf" + text.encode(), "own.md")
    assert (prompt.system, prompt.user) == ("a\n\n  b", "{{question}}")
    assert prompt.digest == parse_prompt("direct", text.replace("\r\n", "\n").encode(), "other.md").digest


def test_the_digest_changes_with_what_is_sent_and_only_with_that() -> None:
    one = parse_prompt("direct", b"<!-- why -->\nAnswer: {{question}}", "one.md")
    assert one.digest == parse_prompt("direct", b"Answer: {{question}}\n", "two.md").digest
    assert one.digest != parse_prompt("direct", b"Answer:  {{question}}", "three.md").digest
    assert (
        parse_prompt("direct", b"<!-- system -->\nx\n<!-- user -->\n{{question}}", "a").digest
        != parse_prompt("direct", b"<!-- user -->\nx\n{{question}}", "b").digest
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Answer: {{qestion}}", r"own.md: prompt direct has no variable \{\{qestion\}\}; nearest: question"),
        (b"Answer {{question}} by {{zzz}}", r"no variable \{\{zzz\}\}; it is given question"),
        (b"Answer!", r"own.md: variable \{\{question\}\} is missing"),
        (b"<!-- user -->\n{{question}}\n<!-- system -->\nx", "its parts are user, system; write"),
        (b"<!-- system -->\n{{question}}", "its parts are system; write"),
        (b"stray\n<!-- user -->\n{{question}}", "its parts are user; write"),
        (b"<!-- user -->\n{{question}}\n<!-- assistant -->\n", "own.md:3: <!-- assistant --> is no part"),
        (b"<!-- two\nlines -->\n<!-- user -->\n{{question}}\n<!-- tool -->", "own.md:5: <!-- tool --> is no part"),
        (b"\xff\xfe{{question}}", "is not UTF-8"),
        (b"<!-- system -->\n{{question}}\n<!-- user -->\n \n", "no text to send"),
    ],
)
def test_a_bad_file_is_refused_when_it_is_loaded(content: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_prompt("direct", content, "own.md")


def test_users_replace_prompts_by_folder_and_by_file_and_the_file_goes_first(tmp_path: Path) -> None:
    (tmp_path / "direct.md").write_text("folder: {{question}}", "utf-8")
    (tmp_path / "direct_cot.md").write_text("cot: {{question}}", "utf-8")
    (tmp_path / "README.md").write_text("about these prompts", "utf-8")
    file = tmp_path / "mine.txt"
    file.write_text("file: {{question}}", "utf-8")
    library = PromptLibrary(tmp_path, {"direct": file, "answer": None})
    assert library["direct"].fill(question="Q").user == "file: Q"
    assert library["direct_cot"].fill(question="Q").user == "cot: Q"
    assert library["answer"].digest == load_prompt("answer").digest
    changed = {name for name, digest in library.digests().items() if digest != PromptLibrary().digests()[name]}
    assert changed == {"direct", "direct_cot"}
    assert list(library.digests(["direct_cot", "direct"])) == ["direct", "direct_cot"]


def test_a_file_or_setting_for_no_prompt_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "kg_linkr.md").write_text("x", "utf-8")
    with pytest.raises(ConfigError, match=r"kg_linkr.md: there is no prompt 'kg_linkr'; nearest: kg_linker"):
        PromptLibrary(tmp_path)
    with pytest.raises(ConfigError, match=r"prompts.judje=x.md: there is no prompt 'judje'; nearest: judge"):
        PromptLibrary(files={"judje": "x.md"})
    with pytest.raises(ConfigError, match=r"prompts.judge='.*x.md' cannot be read: No such file"):
        PromptLibrary(files={"judge": tmp_path / "x.md"})
    with pytest.raises(ConfigError, match="does not exist"):
        PromptLibrary(tmp_path / "none")


CHECKLIST = {
    "task_entities": ("add full names, abbreviations and aliases", "the most important first"),
    "task_entities_context": (
        "Leave out every entity of which the graph context already says all",
        "the aliases,\n  full names or abbreviations",
        "most to the least important",
        "FINISH",
    ),
    "task_paths": ("others that differ in kind", "relations with ->", "the facts show"),
    "task_opencypher": (
        "Spell node types, relation types and properties as the schema does",
        "filtering, counting, sorting",
        "graph context",
    ),
    "task_sparql": (
        "Write classes, predicates and prefixes as the schema does",
        "filtering, counting, sorting",
        "graph context",
    ),
    "task_answers": (
        "Write only the answers",
        "no reasons",
        "Prefer what the graph context says",
        "leave the tags empty",
    ),
    "relation_selection": ("Be frugal", "leave out nothing"),
    "entity_selection": ("Leave out entities of which everything needed is known", "most important first", "FINISH"),
}
"""What the paper's prompts demand. Source: ByoKG-RAG (arXiv:2507.04127v1), Figures 4 to 9."""


@pytest.mark.parametrize("name", CHECKLIST)
def test_what_the_paper_s_prompt_demands_is_demanded(library: PromptLibrary, name: str) -> None:
    text = f"{library[name].system}\n{library[name].user}"
    assert [demand for demand in CHECKLIST[name] if demand not in text] == []
