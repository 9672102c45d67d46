"""Parts of the user's own: by import path, in a folder of configs, and as entry points of an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.cli.components import CONFIG_DIR, options
from byokg.cli.config import read_settings
from byokg.cli.terminal import WRONG
from byokg.errors import ConfigError
from tests.cli.conftest import Run

MODULE = '''
from pathlib import Path

from byokg.evaluation.datasets.base import Example
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.types import Answer, AnswerItem, TripleEvidence


class Shouts:
    """Answers with the first name in the graph, in capitals."""

    def __init__(self, parts, marks: int = 1):
        self.store, self.marks = parts.store, marks

    def run(self, question):
        first = next(self.store.entities())
        return Answer(question.id, (AnswerItem(first.upper() + "!" * self.marks, None, 1.0),), ())


class Finds:
    """Brings the first edges of the graph."""

    def __init__(self, parts, k: int = 2):
        self.store, self.k = parts.store, k

    def retrieve(self, request):
        return []


class Two:
    """Two questions about films."""

    name, checksum = "two", "0" * 64

    def __init__(self, folder: Path, split: str = "test"):
        self.folder = folder

    def examples(self):
        return [Example("1", "Who directed Heat?", ("Michael Mann",)), Example("2", "Who?", ("MICHAEL MANN!",))]

    def left_out(self):
        return {}

    def graph_source(self):
        return self.folder / "kb.txt"


def triples(place):
    """Read a graph from a file of lines: head relation tail."""
    return ColumnarGraph.from_triples(line.split() for line in Path(place).read_text().splitlines())


def small(size: int = 2):
    """Make a graph that lies nowhere."""
    return ColumnarGraph.from_triples([(f"n{i}", "next", f"n{i + 1}") for i in range(size)])


def nothing(*given, **also):
    """Make nothing of the kind."""
    return "nothing"
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a module of the user's own on the import path; return its folder."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "my_parts.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def installed(module: Path) -> None:
    """Install the module as a package with entry points."""
    info = module / "my_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n", "utf-8")
    points = {
        "byokg.pipelines": "shouts = my_parts:Shouts",
        "byokg.retrievers": "finds = my_parts:Finds",
        "byokg.stores": "small = my_parts:small\ntriples = my_parts:triples",
        "byokg.datasets": "two = my_parts:Two",
    }
    text = "\n".join(f"[{group}]\n{names}\n" for group, names in points.items())
    (info / "entry_points.txt").write_text(text, "utf-8")


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """Return a folder with options of the user's own."""
    files = {
        "pipeline/shouting.yaml": "# Answers loudly.\n_target_: my_parts.Shouts\nmarks: 3\n",
        "pipeline/finding.yaml": (
            "# ByoKG-RAG with one retriever more.\ndefaults:\n  - byokg\n  - retrievers@retrievers.finds: finding\n"
            "rounds:\n  most: 1\nretrievers:\n  text: null\n"
        ),
        "pipeline/retrievers/finding.yaml": "# The first edges.\n_target_: my_parts.Finds\nk: 5\n",
        "graph/lines.yaml": "# A file of lines.\n_target_: my_parts.triples\n",
        "dataset/two.yaml": "# Two questions.\n_target_: my_parts.Two\nfolder: ???\n",
        "experiment/loud.yaml": "# @package _global_\n# Does it help?\ndefaults:\n  - override /pipeline: shouting\n",
    }
    for name, text in files.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text, "utf-8")
    return tmp_path / "own"


def refusal(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_settings(words)
    return str(caught.value)


# By import path


def test_a_pipeline_replaces_the_one_that_was_chosen(byokg: Run, graph: Path) -> None:
    words = ["ask", "Who?", f"graph.path={graph}", "pipeline._target_=my_parts.Shouts"]
    assert byokg(*words).out == "HEAT!\n"
    assert byokg(*words, "pipeline.marks=2").out == "HEAT!!\n"
    assert byokg(*words, "pipeline=byokg", "llm=anthropic", "llm.model=m").out == "HEAT!\n"
    assert (
        "my_parts.Shouts takes no 'mark', which pipeline.mark sets; nearest: marks"
        in byokg(*words, "pipeline.mark=2").err
    )
    assert (
        "pipeline.marks=many does not fit: input should be a valid integer" in byokg(*words, "pipeline.marks=many").err
    )


def test_a_data_set_and_a_store_need_no_other_to_be_chosen(byokg: Run, films: Path) -> None:
    words = ["eval", "dataset._target_=my_parts.Two", f"dataset.folder={films}", "-q", "out=run"]
    assert "2 questions, 0 failed" in byokg(*words).out
    (films / "edges.txt").write_text("a to b\n", "utf-8")
    ask = ["ask", "Who?", "pipeline._target_=my_parts.Shouts", "graph._target_=my_parts.triples"]
    assert byokg(*ask, f"graph.path={films / 'edges.txt'}").out == "A!\n"
    assert byokg("ask", "Who?", "pipeline._target_=my_parts.Shouts", "graph._target_=my_parts.small").out == "N0!\n"
    assert "graph=my_parts.triples needs graph.path, for 'place' of my_parts.triples" in byokg(*ask).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["pipeline._target_=my_partz.Shouts"],
            "pipeline._target_=my_partz.Shouts cannot be imported: No module named",
        ),
        (["pipeline._target_=my_parts.Shout"], "cannot be imported: No module named 'my_parts.Shout'"),
        (["dataset._target_=my_parts.name"], "dataset._target_=my_parts.name cannot be imported"),
        (["graph._target_=my_parts.Path.anchor"], "is not callable; name a class or a function"),
    ],
)
def test_what_cannot_be_imported_is_said(words: list[str], message: str) -> None:
    assert message in refusal(*words)


@pytest.mark.parametrize("group", ["pipeline", "dataset", "graph", "linking"])
def test_a_part_of_the_wrong_shape_is_refused_with_what_it_lacks(byokg: Run, graph: Path, group: str) -> None:
    words = ["eval", "dataset=atlas", "limit=1", f"graph.path={graph}", f"{group}._target_=my_parts.nothing"]
    outcome = byokg(*words)
    assert outcome.code == WRONG
    assert f"error: ConfigError: {group}._target_=my_parts.nothing makes no {group} but a str, " in outcome.err
    lacking = {
        "pipeline": "without run;",
        "dataset": "without name, checksum, examples",
        "graph": "where a byokg.graph.store.GraphStore is wanted",
        "linking": "where a byokg.linking.entities.EntityLinker is wanted",
    }
    assert lacking[group] in outcome.err


def test_a_retriever_of_the_wrong_shape_is_refused(byokg: Run, graph: Path) -> None:
    words = ["ask", "Who?", f"graph.path={graph}", "pipeline.retrievers.mine._target_=my_parts.nothing"]
    assert "ConfigError: retriever 'mine' is a str, which has no method retrieve(request)" in byokg(*words).err


# In a folder of configs


def test_options_of_a_folder_are_chosen_by_name(byokg: Run, graph: Path, films: Path, configs: Path) -> None:
    words = ["--config-dir", str(configs), f"graph.path={graph}"]
    assert byokg("ask", "Who?", *words, "pipeline=shouting").out == "HEAT!!!\n"
    assert byokg("ask", "Who?", *words, "experiment=loud", "pipeline.marks=1").out == "HEAT!\n"
    both = byokg("eval", *words, "pipeline=shouting", "dataset=two", f"dataset.folder={films}", "-q", "out=run")
    assert "2 questions, 0 failed" in both.out
    assert "dataset=two " in byokg("data", "list", "--config-dir", str(configs)).out


def test_a_folder_s_options_build_on_byokg_s(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_DIR, str(configs))
    found = read_settings(["pipeline=finding"]).components["pipeline"]
    assert list(found["retrievers"]) == ["path", "query", "agentic", "text", "bfsql", "finds"]
    assert (found["rounds"]["most"], found["retrievers"]["finds"]["k"], found["retrievers"]["text"]) == (1, 5, None)
    added = read_settings(["pipeline=path", "pipeline.retrievers.mine=finding"]).components["pipeline"]
    assert list(added["retrievers"]) == ["path", "mine"]
    assert "nearest: shouting" in refusal("pipeline=shoutin")


def test_a_folder_that_is_none_or_takes_a_name_of_ours_is_refused(
    byokg: Run, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--config-dir nowhere is no folder" in byokg("eval", "--config-dir", "nowhere", "--show").err
    (configs / "pipeline/byokg.yaml").write_text("_target_: my_parts.Shouts\n", "utf-8")
    monkeypatch.setenv(CONFIG_DIR, str(configs))
    assert "byokg.yaml' has the name of an option of byokg; give it another" in refusal("pipeline=byokg")


# As entry points


@pytest.mark.usefixtures("installed")
def test_entry_points_of_an_installed_package_are_options(byokg: Run, films: Path) -> None:
    assert {"shouts", "offline"} <= set(options("pipeline"))
    (films / "edges.txt").write_text("a to b\n", "utf-8")
    ask = ["ask", "Who?", "pipeline=shouts", "pipeline.marks=2"]
    assert byokg(*ask, "graph=triples", f"graph.path={films / 'edges.txt'}").out == "A!!\n"
    assert byokg(*ask, "graph=small", "graph.size=1").out == "N0!!\n"
    run = byokg("eval", "pipeline=shouts", "dataset=two", f"dataset.folder={films}", "-q", "out=run")
    assert "2 questions, 0 failed" in run.out
    assert "dataset=two " in byokg("data", "list").out
    assert "pipeline=shouts has no setting 'pipeline.mark'; nearest: pipeline.marks" in refusal(
        "pipeline=shouts", "pipeline.mark=2"
    )


@pytest.mark.usefixtures("installed")
def test_a_retriever_of_an_installed_package_is_added_by_its_name() -> None:
    found = read_settings(["pipeline=path", "pipeline.retrievers.mine=finds", "pipeline.retrievers.mine.k=9"])
    assert found.components["pipeline"]["retrievers"]["mine"] == {"_target_": "my_parts.Finds", "k": 9}


@pytest.mark.usefixtures("installed")
def test_an_entry_point_stands_in_a_folder_s_files_too(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (configs / "pipeline/more.yaml").write_text(
        "# More.\ndefaults:\n  - path\n  - retrievers@retrievers.f: finds\n", "utf-8"
    )
    monkeypatch.setenv(CONFIG_DIR, str(configs))
    assert list(read_settings(["pipeline=more"]).components["pipeline"]["retrievers"]) == ["path", "f"]
