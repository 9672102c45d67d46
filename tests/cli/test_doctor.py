"""Tests of `byokg.cli.doctor`."""

from __future__ import annotations

import importlib.metadata
import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from byokg.cli.doctor import (
    OPEN_FILES,
    Check,
    check_disk,
    check_embedder,
    check_glibc,
    check_graph,
    check_keys,
    check_open_files,
    check_packages,
    check_python,
    check_system,
    check_tracing,
    diagnose,
    exit_code,
    show,
)
from byokg.graph.columnar.graph import ColumnarGraph

SECRET = "sk-do-not-print-me"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Save a -r-> b -s-> c."""
    folder = tmp_path / "graph"
    ColumnarGraph.from_triples([("a", "r", "b"), ("b", "s", "c")]).save(folder)
    return folder


def printed(checks: list[Check]) -> str:
    """Return the table as plain text."""
    target = io.StringIO()
    show(checks, Console(file=target, width=300, color_system=None))
    return target.getvalue()


def test_this_interpreter_passes_and_an_older_one_fails() -> None:
    assert check_python(sys.version_info[:3]).state == "ok"
    old = check_python((3, 10, 13))
    assert (old.state, old.found) == ("fail", "3.10.13")
    assert "3.11" in old.advice


@pytest.mark.parametrize(
    ("system", "library", "version", "state"),
    [
        ("Linux", "glibc", "2.34", "ok"),
        ("Linux", "glibc", "2.100", "ok"),
        ("Linux", "glibc", "2.31", "warn"),
        ("Linux", "", "", "warn"),
        ("Darwin", "", "", "ok"),
    ],
)
def test_glibc_below_2_34_is_a_warning_that_names_the_way_round(
    system: str, library: str, version: str, state: str
) -> None:
    check = check_glibc(system, library, version)
    assert check.state == state
    assert ("graph=columnar" in check.advice) == (state == "warn")


def test_a_low_open_file_limit_says_how_to_raise_it() -> None:
    assert check_open_files(OPEN_FILES, OPEN_FILES).state == "ok"
    assert check_open_files(None, None).state == "ok"
    low = check_open_files(1024, 1_048_576)
    assert (low.state, low.found) == ("warn", "1,024")
    assert f"ulimit -n {OPEN_FILES}" in low.advice
    capped = check_open_files(1024, 4096)
    assert "administrator" in capped.advice
    assert "4,096" in capped.advice


def test_free_disk_space_is_told(tmp_path: Path) -> None:
    assert str(tmp_path) in check_disk(tmp_path).found


def test_an_extra_that_is_not_installed_comes_with_its_command() -> None:
    core, extra = check_packages(["numpy>=1.26", 'no-such-package>=1; extra == "cypher"'], ["cypher"])
    assert (core.state, core.found) == ("ok", "all 1 installed")
    assert extra == Check("extra cypher", "off", "no-such-package not installed", "run: pip install 'byokg[cypher]'")


def test_an_installed_extra_shows_its_version() -> None:
    _, extra = check_packages(['numpy>=1; extra == "arrays"'], ["arrays"])
    assert (extra.state, extra.found) == ("ok", f"numpy {importlib.metadata.version('numpy')}")


def test_an_extra_that_is_too_old_is_a_warning() -> None:
    _, extra = check_packages(['numpy>=999; extra == "arrays"'], ["arrays"])
    assert extra.state == "warn"
    assert extra.found.endswith("where >=999 is needed")
    assert "--upgrade" in extra.advice


def test_an_extra_made_of_other_extras_counts_their_packages() -> None:
    lines = ['no-such-package; extra == "inner"', 'byokg[inner]; extra == "outer"', 'rich; extra == "outer"']
    _, inner, outer = check_packages(lines, ["inner", "outer"])
    assert inner.found == outer.found == "no-such-package not installed"


def test_requirements_for_other_systems_do_not_count() -> None:
    lines = ["rich", 'no-such-package; sys_platform == "plan9"', 'no-such-package; extra == "x" and os_name == "plan9"']
    core, extra = check_packages(lines, ["x"])
    assert (core.state, extra.state) == ("ok", "ok")


def test_a_missing_or_unfit_core_package_fails() -> None:
    missing = check_packages(["no-such-package>=1"], [])[0]
    assert (missing.state, missing.found) == ("fail", "no-such-package not installed")
    assert check_packages(["numpy>=999"], [])[0].state == "fail"


def test_bundles_of_extras_are_not_listed() -> None:
    lines = ['no-such-package; extra == "all"', 'no-such-package; extra == "dev"']
    assert [check.name for check in check_packages(lines, ["all", "dev"])] == ["core packages"]


def test_keys_are_told_by_the_variable_that_holds_them(tmp_path: Path) -> None:
    anthropic, openai, aws, neo4j, sparql = check_keys({"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": " "}, tmp_path)
    assert (anthropic.state, anthropic.found) == ("ok", "set (ANTHROPIC_API_KEY)")
    assert (openai.state, openai.found) == ("off", "not set")
    assert "OPENAI_API_KEY" in openai.advice
    assert (aws.state, neo4j.state, sparql.state) == ("off", "off", "off")


def test_aws_credentials_are_found_in_variables_and_in_the_home_folder(tmp_path: Path) -> None:
    assert check_keys({"AWS_BEARER_TOKEN_BEDROCK": SECRET}, tmp_path)[2].found == "set (AWS_BEARER_TOKEN_BEDROCK)"
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(SECRET, "utf-8")
    assert check_keys({}, tmp_path)[2].found == "set (~/.aws/credentials)"


def test_no_key_is_ever_printed() -> None:
    names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "LANGSMITH_TRACING"]
    output = printed(diagnose(environment=dict.fromkeys(names, SECRET)))
    assert "set (ANTHROPIC_API_KEY)" in output
    assert SECRET not in output


@pytest.mark.parametrize("variable", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_tracing_to_langsmith_is_a_warning_that_data_leaves(variable: str) -> None:
    check = check_tracing({variable: "true"})
    assert check.state == "warn"
    assert variable in check.found
    assert "leave this machine" in check.advice


@pytest.mark.parametrize("value", ["", "false", "False", "0"])
def test_tracing_that_is_switched_off_is_fine(value: str) -> None:
    assert check_tracing({"LANGSMITH_TRACING": value}).state == "ok"
    assert check_tracing({}).state == "ok"


def test_the_shipped_embedder_loads() -> None:
    check = check_embedder()
    assert check.state == "ok"
    assert check.found.startswith("static-128-int8-")


def test_a_sound_graph_is_counted(graph: Path) -> None:
    check = check_graph(graph)
    assert check.state == "ok"
    assert "3 nodes, 2 edges, 2 relations" in check.found


def test_a_graph_with_one_changed_byte_fails(graph: Path) -> None:
    # Of equal length, so opening alone would not see it.
    victim = graph / "other.npy"
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    check = check_graph(graph)
    assert check.state == "fail"
    assert "other.npy" in check.found


def test_a_folder_without_a_graph_fails_and_says_how_to_build_one(tmp_path: Path) -> None:
    check = check_graph(tmp_path / "nothing")
    assert check.state == "fail"
    assert "byokg graph build" in check.found


def test_the_exit_code_is_one_only_when_something_failed() -> None:
    assert exit_code([Check("a", "ok", ""), Check("b", "warn", ""), Check("c", "off", "")]) == 0
    assert exit_code([Check("a", "ok", ""), Check("b", "fail", "")]) == 1
    assert exit_code([]) == 0


def test_everything_is_checked_once_in_a_fixed_order(graph: Path) -> None:
    names = [check.name for check in diagnose(graph, environment={})]
    assert names == [check.name for check in diagnose(graph, environment={})]
    assert len(names) == len(set(names))
    assert names[:5] == ["python", "system", "glibc", "open files", "disk"]
    assert names[-3:] == ["LangSmith tracing", "shipped embedder", "graph"]
    assert "graph" not in [check.name for check in diagnose(environment={})]


def test_this_environment_can_run_the_core(graph: Path) -> None:
    failed = [check for check in diagnose(graph, environment={}) if check.state == "fail"]
    assert failed == []


def test_the_table_shows_every_check_and_counts_the_bad_ones() -> None:
    output = printed(
        [
            Check("first", "ok", "fine"),
            Check("second", "warn", "so so", "pip install 'byokg[cypher]'"),
            Check("third", "fail", "broken", "mend it"),
        ]
    )
    # Square brackets are text here, not markup.
    assert "pip install 'byokg[cypher]'" in output
    assert "mend it" in output
    assert output.rstrip().endswith("1 failed, 1 warning")


@pytest.mark.parametrize(
    ("system", "state", "said"),
    [
        ("Linux", "ok", ""),
        ("Darwin", "warn", "is not limited"),
        ("Windows", "warn", "cannot be replaced"),
        ("Plan9", "warn", "never tried"),
    ],
)
def test_what_a_system_limits_is_stated(system: str, state: str, said: str) -> None:
    check = check_system(system)
    assert check.state == state and said in check.found and bool(check.advice) == (state == "warn")
