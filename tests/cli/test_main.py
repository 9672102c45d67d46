"""Tests of `byokg.cli.main`: what the commands print, and how they end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from byokg.cli.main import BUG, COMMANDS, INTERRUPTED, load
from byokg.cli.terminal import DEBUG, WRONG
from byokg.evaluation.datasets.folder import SHIPPED
from byokg.evaluation.run_folder import code_version
from byokg.graph.columnar.graph import ColumnarGraph
from tests.cli.conftest import PROGRAM, ROOT, Run, finish, start

HEAVY = {"hydra", "omegaconf", "numpy", "pyarrow", "model2vec", "tokenizers", "pydantic", "faiss", "langchain_core"}


def one_line(text: str) -> bool:
    """Tell whether an error takes exactly one line."""
    return text.count("\n") == 1 and text.endswith("\n")


# Starting


@pytest.mark.parametrize("statement", ["import byokg", "import byokg.cli.main; byokg.cli.main.main(['--help'])"])
def test_starting_imports_nothing_heavy(statement: str) -> None:
    program = f"import sys; {statement}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.splitlines()[-1]
    # Typer itself depends on pydantic from some version on.
    assert loaded in ("[]", "['pydantic']")


def test_help_lists_every_command_with_what_its_own_help_says(byokg: Run) -> None:
    listed = " ".join(byokg("--help").out.replace("│", " ").split())
    assert [name for name in COMMANDS if f" {name} " in listed] == list(COMMANDS)
    for name, (_, text) in COMMANDS.items():
        said = " ".join((load(name).help or "").split())
        assert said.startswith(text.rstrip(".")), name


def test_h_asks_for_help_of_every_command(byokg: Run) -> None:
    for words in [["-h"], ["graph", "-h"], ["graph", "build", "-h"], *([name, "-h"] for name in COMMANDS)]:
        outcome = byokg(*words)
        assert (outcome.code, outcome.err) == (0, "") and "Usage:" in outcome.out, words


@pytest.mark.parametrize(
    ("shell", "typed", "offered"),
    [
        ("bash", "byokg gr", "graph"),
        ("bash", "byokg eval --sh", "--show"),
        ("bash", "byokg eval pip", "pipeline="),
        ("bash", "byokg eval pipeline = off", "offline"),
        ("zsh", "byokg eval pipeline=off", '"pipeline=offline"'),
    ],
)
def test_the_shell_completes_commands_options_and_settings(shell: str, typed: str, offered: str) -> None:
    asked = {"_BYOKG_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": typed}
    asked |= {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    outcome = finish(start([], **asked))
    assert offered in outcome.out.replace("(", " ").replace(")", " ").split(), outcome


def test_the_version_is_printed(byokg: Run) -> None:
    outcome = byokg("--version")
    assert outcome.code == 0
    code = code_version()
    assert outcome.out.startswith(f"byokg {code.version} (code {code.digest}")


@pytest.mark.parametrize("words", [("--help",), ("graph", "--help"), ("eval", "--help"), ("ask", "--help")])
def test_help_is_no_error(byokg: Run, words: tuple[str, ...]) -> None:
    outcome = byokg(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert "Usage:" in outcome.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate",), "No such command 'evaluate'"),
        (("eval", "--quite"), "No such option: --quite"),
        (("graph", "build", "x"), "Missing option '--out'"),
        (("graph", "info"), "Missing argument"),
        (("ask",), "Missing argument"),
        (("ask", "x", "--hops", "many"), "--hops"),
    ],
)
def test_a_wrong_word_gives_one_line_and_exit_code_2(byokg: Run, words: tuple[str, ...], message: str) -> None:
    outcome = byokg(*words)
    assert (outcome.code, outcome.out) == (WRONG, "")
    assert message in outcome.err
    assert one_line(outcome.err)


@pytest.mark.parametrize(
    ("words", "command"),
    [(("evaluate",), "byokg"), (("ask", "x", "--graph", "y"), "byokg ask"), (("graph", "info"), "byokg graph info")],
)
def test_a_wrong_word_is_told_whose_help_to_read(byokg: Run, words: tuple[str, ...], command: str) -> None:
    assert byokg(*words).err.rstrip().endswith(f"see: {command} --help")


@pytest.mark.parametrize("words", [(), ("graph",)])
def test_no_command_prints_the_commands(byokg: Run, words: tuple[str, ...]) -> None:
    outcome = byokg(*words)
    assert outcome.code == WRONG
    assert "Usage:" in outcome.out + outcome.err
    assert "error" not in outcome.err


# Errors


def test_an_error_is_one_line_with_its_type_and_exit_code_2(byokg: Run) -> None:
    outcome = byokg("eval", "limt=5")
    assert (outcome.code, outcome.out) == (WRONG, "")
    assert outcome.err == "error: ConfigError: no setting 'limt'; nearest: limit\n"


def test_a_traceback_is_shown_when_asked_for_by_option_or_environment(
    byokg: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for outcome in (finish(start(["--debug", "eval", "limt=5"])), finish(start(["eval", "limt=5"], BYOKG_DEBUG="1"))):
        assert outcome.code == WRONG and "Traceback" in outcome.err
        assert outcome.err.endswith("error: ConfigError: no setting 'limt'; nearest: limit\n")
    monkeypatch.setenv(DEBUG, "0")
    assert "Traceback" not in byokg("eval", "limt=5").err


def test_what_the_system_refuses_is_one_line_too(byokg: Run, films: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", f"out={tmp_path / 'file' / 'run'}")
    assert outcome.code == WRONG
    assert outcome.err.splitlines()[-1].startswith("error: RunError: cannot use run folder")


def test_a_bug_is_told_apart_from_a_wrong_setting(
    byokg: Run, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(
        "class Pipeline:\n    def __init__(self, parts): ...\n    def run(self, question):\n        None.nothing\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    outcome = byokg("ask", "Who directed Heat?", f"graph.path={graph}", "pipeline._target_=broken.Pipeline")
    assert outcome.code == BUG
    assert "AttributeError" in outcome.err and "BYOKG_DEBUG=1" in outcome.err
    assert one_line(outcome.err)


def test_a_reader_that_stops_early_gets_no_complaint(graph: Path) -> None:
    process = start(["graph", "info", graph, "--json"])
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == INTERRUPTED
    process.stderr.close()


# byokg graph


def test_a_graph_is_built_and_described(byokg: Run, films: Path) -> None:
    built = byokg("graph", "build", films, "--out", "g")
    assert (built.code, built.err) == (0, "")
    table, result, *_ = built.out.splitlines()
    assert table == "kb.txt: '|', no header; source=column 1, relation=column 2, target=column 3; 11 rows"
    assert result.startswith("built g: 11 nodes, 11 edges, 3 relations, in ")
    info = byokg("graph", "info", "g")
    assert (info.code, info.err) == (0, "")
    lines = [" ".join(line.split()) for line in info.out.splitlines()]
    assert lines[:4] == ["graph g", "nodes 11", "edges 11", "relations 3"]
    assert "source triples: kb.txt (345 bytes)" in lines
    assert "verified every file agrees with its checksum" in lines
    first = lines.index("directed_by 4")
    assert lines[first : first + 3] == ["directed_by 4", "starred_actors 4", "release_year 3"]


def test_repeated_triples_are_counted(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("a|r|b\na|r|b\na|r|b\n", "utf-8")
    assert ", 2 repeated triples left out, " in byokg("graph", "build", "kb.txt", "--out", "g").out
    assert "left out   2 repeated triples" in byokg("graph", "info", "g").out


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("kb.txt", b"a|r|b\na|r\n", "kb.txt:2: expected 3 fields"),
        ("kb.txt", b"a|r|b\n|r|b\n", "kb.txt:2: the head is empty"),
        ("graph.tsv", b"a\tr\tb\na\tr\t\xff\n", "graph.tsv:2: "),
        ("graph.tsv", b"", "graph.tsv: the file is empty"),
        ("graph.xyz", b"a r b\n", "graph.xyz: no format has the ending '.xyz'"),
    ],
)
def test_bad_input_stops_with_file_line_and_reason_and_leaves_nothing(
    byokg: Run, tmp_path: Path, name: str, content: bytes, place: str
) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = byokg("graph", "build", name, "--out", "g")
    assert (outcome.code, outcome.out) == (WRONG, "")
    assert outcome.err.startswith(f"error: ImportFailed: {place}")
    assert one_line(outcome.err)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_node_given_twice_with_different_properties_stops_the_import(byokg: Run, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "nodes.csv").write_text("id,name,height:int\na,A,5\nb,B,6\na,A,7\n", "utf-8")
    (source / "edges.csv").write_text("head,relation,tail\na,r,b\n", "utf-8")
    outcome = byokg("graph", "build", source, "--out", "g")
    assert outcome.code == WRONG
    assert "nodes.csv:4: node id 'a' is on line 2 already, with height 5, here with 7" in outcome.err
    assert not (tmp_path / "g").exists()


def test_a_graph_is_replaced_only_when_told_so(byokg: Run, films: Path, graph: Path) -> None:
    before = ColumnarGraph.open(graph).checksum
    (films / "kb.txt").write_text("a|r|b\n", "utf-8")
    refused = byokg("graph", "build", films, "--out", graph)
    assert refused.code == WRONG
    assert "GraphExists" in refused.err and "--overwrite" in refused.err
    assert ColumnarGraph.open(graph).checksum == before
    assert byokg("graph", "build", films, "--out", graph, "--overwrite").code == 0
    assert ColumnarGraph.open(graph).edge_count == 1


def test_names_are_indexed_with_the_graph_and_anew_with_aliases(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "nodes.csv").write_text(
        "id,name,type,also\n1,New York City,City,Big Apple|NYC\n2,Boston,City,\n"
    )
    (tmp_path / "src" / "edges.csv").write_text("head,relation,tail\n1,near,2\n")
    built = byokg("graph", "build", str(tmp_path / "src"), "--out", "g", "--aliases", "also")
    assert built.code == 0 and "indexed 4 different names" in built.out
    assert json.loads(byokg("graph", "info", "g", "--json").out)["names"]["entries"] == 4
    assert "indexed 2 different names" in byokg("graph", "names", "g").out
    wrong = byokg("graph", "names", "g", "--aliases", "alias")
    assert wrong.code == WRONG and one_line(wrong.err) and "'alias'" in wrong.err


def test_a_damaged_index_of_names_is_found(byokg: Run, films: Path, tmp_path: Path) -> None:
    byokg("graph", "build", films, "--out", "g")
    (path,) = tmp_path.rglob("name_owners.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    damaged = byokg("graph", "info", "g")
    assert damaged.code == WRONG and "name_owners.npy has changed" in damaged.err
    shutil.rmtree(path.parent)
    assert "not indexed" in byokg("graph", "info", "g").out


def test_a_changed_file_is_found_by_its_checksum(byokg: Run, graph: Path) -> None:
    path = graph / "other.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)
    outcome = byokg("graph", "info", graph)
    assert (outcome.code, outcome.out) == (WRONG, "")
    assert outcome.err.startswith("error: GraphCorrupt: ") and "other.npy has changed" in outcome.err


def test_a_help_is_broken_where_the_terminal_ends_and_examples_stand_alone() -> None:
    graph = load("graph").commands["build"].help
    assert "or a folder with one of these, with nodes.csv and edges.csv or with" in graph
    assert "\n\nFiles may be larger than memory." in graph
    assert graph.endswith("\nbyokg graph engine DIR --cypher")


def test_the_description_says_what_was_left_out_and_no_list_is_endless(
    byokg: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["<http://x/a> <http://x/knows> <http://x/b> ."] * 2
    lines += [f'<http://x/a> <http://x/p{number}> "v" .' for number in range(30)]
    Path("g.nt").write_text("\n".join(lines) + "\n")
    byokg("graph", "build", "g.nt", "--out", "g", "--no-edge-properties")
    shown = " ".join(byokg("graph", "info", "g").out.split())
    assert "left out 1 repeated triples; what is said of edges (--no-edge-properties)" in shown
    assert "x:p19: string, +10" in shown and "x:p20" not in shown
    assert "x:p29: string" in " ".join(byokg("graph", "info", "g", "--all").out.split())
    assert json.loads(byokg("graph", "info", "g", "--json").out)["edge_properties_left_out"] is True


def test_the_description_as_json_holds_every_relation(byokg: Run, graph: Path) -> None:
    outcome = byokg("graph", "info", graph, "--json")
    record = json.loads(outcome.out)
    assert (record["nodes"], record["edges"], record["dropped_duplicates"]) == (11, 11, 0)
    assert [(relation["name"], relation["count"]) for relation in record["relations"]] == [
        ("directed_by", 4),
        ("starred_actors", 4),
        ("release_year", 3),
    ]
    assert record["checksum"] == ColumnarGraph.open(graph).checksum


def test_of_many_relations_the_most_frequent_are_shown_unless_all_are_asked_for(byokg: Run, tmp_path: Path) -> None:
    # a -r01-> b … a -r30-> b
    lines = "".join(f"a|r{number:02}|b\n" for number in range(1, 31))
    (tmp_path / "kb.txt").write_text(lines + "b|r30|a\n", "utf-8")
    byokg("graph", "build", "kb.txt", "--out", "g")
    few = byokg("graph", "info", "g").out
    assert "r30" in few and "r01" in few and "r25" not in few
    assert "the 20 most frequent of 30 relations; all of them: --all" in few
    everything = byokg("graph", "info", "g", "--all").out
    assert "r25" in everything and "--all" not in everything


def test_types_and_properties_of_a_typed_graph_are_described(byokg: Run) -> None:
    byokg("graph", "build", SHIPPED, "--out", "g")
    lines = [" ".join(line.split()) for line in byokg("graph", "info", "g").out.splitlines()]
    assert "Country 193 iso2: string, population: int, area_km2: float" in lines
    assert any(line.startswith("capital ") and " Country City start: " in line for line in lines)


# byokg ask


def test_an_answer_comes_with_its_link_and_its_path(byokg: Run, graph: Path) -> None:
    outcome = byokg("ask", "Who directed Heat?", f"graph.path={graph}", "--hops", "1")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Michael Mann\n\nlinked 'Heat' to Heat  (exact)\n\nevidence e1: a path, score ")
    assert "\n  Heat → directed_by → Michael Mann\n" in outcome.out


def test_an_inverse_relation_is_drawn_as_it_is_stored_and_further_answers_are_counted(byokg: Run, graph: Path) -> None:
    outcome = byokg("ask", "Which films were directed by Michael Mann?", f"graph.path={graph}", "--hops", "1")
    assert outcome.out.startswith("Heat\nCollateral\nThe Insider\nAli\n\n")
    assert (
        "\n  Michael Mann ← directed_by ← Heat\n"
        "  Michael Mann ← directed_by ← Collateral\n"
        "  Michael Mann ← directed_by ← The Insider\n"
        "  (+1 more answer)\n"
    ) in outcome.out


def test_a_language_model_alone_needs_no_graph(byokg: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("- reply: <answers>Michael Mann</answers>\n", "utf-8")
    outcome = byokg("ask", "Who directed Heat?", "pipeline=direct", "llm=scripted", f"llm.rules={rules}")
    assert (outcome.code, outcome.out) == (0, "Michael Mann\n")


def test_a_terminal_without_unicode_gets_plain_arrows(graph: Path) -> None:
    words = ["ask", "Which films were directed by Michael Mann?", f"graph.path={graph}", "--hops", "1"]
    outcome = finish(start(words, PYTHONIOENCODING="ascii"))
    assert outcome.code == 0
    assert "  Michael Mann <- directed_by <- Heat\n" in outcome.out


def test_a_misspelt_name_is_linked_with_its_similarity(byokg: Run, graph: Path) -> None:
    outcome = byokg("ask", "Which films were directed by Michael Man?", f"graph.path={graph}")
    assert "linked 'Michael Man' to Michael Mann  (fuzzy, 0.9" in outcome.out


def test_a_question_about_nothing_in_the_graph_says_so(byokg: Run, graph: Path) -> None:
    outcome = byokg("ask", "xyzzy?", f"graph.path={graph}")
    assert outcome.code == 1
    assert outcome.out.startswith("no answer: nothing in the question names a node of the graph")


def test_the_node_may_be_given_by_id(byokg: Run, graph: Path) -> None:
    outcome = byokg("ask", "who directed it?", f"graph.path={graph}", "--entity", "Collateral", "--hops", "1")
    assert outcome.out.startswith("Michael Mann\n")
    assert "linked 'Collateral' to Collateral  (given)" in outcome.out


def test_a_name_given_for_an_id_is_answered_with_the_id(byokg: Run) -> None:
    outcome = byokg("ask", "What is its capital?", "dataset=atlas", "--entity", "Peru")
    assert outcome.code == WRONG
    assert outcome.err.endswith(
        "error: ConfigError: --entity Peru: no node has this id; nodes with such a name: country/peru (Peru)\n"
    )


def test_the_shipped_graph_needs_no_path(byokg: Run) -> None:
    outcome = byokg("ask", "What is the capital of Peru?", "dataset=atlas")
    assert outcome.out.startswith("Lima  city/lima\n\nlinked 'Peru' to Peru  country/peru  (exact)\n")
    assert "\n  Peru → capital [source: common-knowledge] → Lima\n" in outcome.out


def test_an_answer_as_json_has_names_ids_citations_and_rounds(byokg: Run, graph: Path) -> None:
    record = json.loads(byokg("ask", "Who directed Heat?", f"graph.path={graph}", "--hops", "1", "--json").out)
    [answer] = record["answers"]
    assert (answer["name"], answer["id"], answer["citations"]) == ("Michael Mann", "Michael Mann", ["e1"])
    assert record["rounds"][0]["evidence"][0]["relations"] == ["directed_by"]


def test_a_trace_shows_how_the_answer_came_about(byokg: Run, graph: Path) -> None:
    outcome = byokg("ask", "Who directed Heat?", f"graph.path={graph}", "--hops", "1", "--trace")
    assert (outcome.code, outcome.err) == (0, "")
    assert "│   │   └── 'Heat' to Heat  (exact, 1.00)\n" in outcome.out
    assert "│       ├── e1 " in outcome.out and "Heat → directed_by → Michael Mann\n" in outcome.out
    assert outcome.out.endswith("└── answers\n    └── Michael Mann  e1\n")
    assert max(map(len, outcome.out.splitlines())) <= 100, "the width of the terminal"


def test_a_recorded_question_shows_its_trace(byokg: Run, films: Path, graph: Path) -> None:
    words = ("dataset=folder", f"dataset.root={films}", f"graph.path={graph}", "out=run", "-q")
    assert byokg("eval", *words).code == 0
    outcome = byokg("trace", "run", "q1", "--graph", str(graph))
    assert outcome.out.startswith("question q1\n├── round 1\n")
    assert json.loads(byokg("trace", "run", "q1", "--json").out)["answers"][0]["name"] == "Michael Mann"
    missing = byokg("trace", "run", "q9")
    assert (missing.code, missing.out) == (WRONG, "") and "no question 'q9'; there are q1, q2" in missing.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Who?",), "no graph is named; add graph.path=DIR, or dataset=atlas for the graph that ships with byokg"),
        (("Who?", "graph.path=nowhere"), "GraphNotFound: no graph in 'nowhere'; build one with: byokg graph build"),
        (("Who?", "graph=nowhere/g"), "for a folder write graph.path=nowhere/g"),
        (("Who?", "graph.path=films/kb.txt"), "is a file; build a graph from it: byokg graph build films/kb.txt"),
        (("Who", "directed", "Heat?"), "put the whole question in quotes"),
        ((" ",), "the question is empty"),
    ],
)
def test_a_question_that_cannot_be_asked_says_why(
    byokg: Run, films: Path, words: tuple[str, ...], message: str
) -> None:
    outcome = byokg("ask", *words)
    assert outcome.code == WRONG
    assert message in outcome.err
    assert one_line(outcome.err)


# byokg doctor


def test_the_doctor_exits_0_when_the_core_works_and_1_for_a_broken_graph(
    byokg: Run, graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # the graph's path may be long, and nothing is to be cut
    healthy = byokg("doctor", graph)
    assert healthy.code == 0
    assert "checksums agree" in healthy.out
    (graph / "other.npy").unlink()
    assert byokg("doctor", graph).code == 1


# Installed


def test_an_installed_package_finds_the_configs_inside_itself(tmp_path: Path) -> None:
    # As the wheel lays it out: the configs within the package, and no repository around it.
    site = tmp_path / "site"
    shutil.copytree(ROOT / "byokg", site / "byokg", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "configs", site / "byokg" / "configs")
    words = ["eval", "dataset=atlas", "debug=quick", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(site)!r}); {PROGRAM}", *words],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 questions, 0 failed" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "runs", "site"]
