"""The notebooks run from top to bottom, and hold nothing that could be out of date."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Run each notebook in an empty folder and namespace; return the text that its code cells put out.

    One kernel, which imports everything once, runs all notebooks.
    """
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'byokg[dev]'")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install 'byokg[dev]'")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install 'byokg[dev]'")
    notebooks = {path.stem: nbformat.read(path, as_version=4) for path in NOTEBOOKS}
    folders = {name: tmp_path_factory.mktemp(name) for name in notebooks}
    together = nbformat.v4.new_notebook()
    for name, notebook in notebooks.items():
        together.cells += [nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folders[name]}"), *notebook.cells]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("jupyter")))
        nbclient.NotebookClient(together, timeout=300).execute(env=dict(os.environ))
    assert [path for folder in folders.values() for path in folder.iterdir()] == []
    return {
        name: [output_text(cell) for cell in notebook.cells if cell.cell_type == "code"]
        for name, notebook in notebooks.items()
    }


def output_text(cell: Any) -> str:
    """Return what one executed cell printed or showed, as text; libraries' warnings on stderr left out."""
    text = "".join(
        output["text"] if output["output_type"] == "stream" else output["data"].get("text/plain", "")
        for output in cell["outputs"]
        if output.get("name") != "stderr"
    )
    return COLOUR.sub("", text)


def test_path_queries_find_the_longest_way_on_land(executed: dict[str, list[str]]) -> None:
    _, norway, land, spanish, rivers, rule, _ = executed["path_queries"]
    assert norway.startswith("(<country/norway>)-[:borders]->(<country/russia>)-[:borders]->(<country/north-korea>)")
    assert "the farthest lie 18 borders apart\nlesotho > south-africa" in land
    assert spanish.startswith("bolivia (1), chile (1)") and spanish.rstrip().endswith("mexico (9)")
    assert "(<river/drina>)-[:tributary_of]->(<river/sava>)" in rivers
    assert rule.startswith("(<river/drina>)-[:ends_in]->(<sea/black-sea>)\nDerivation(rule='IF {")


def test_the_quickstart_opens_a_graph_answers_and_scores(executed: dict[str, list[str]]) -> None:
    opened, node, _, capital, languages, tree, _, table, _ = executed["quickstart"]
    assert "2,639 nodes" in opened
    assert "'country/peru'" in node
    assert capital == "[('Lima', 'city/lima', ('e1',))]"
    assert "'German'" in languages
    assert "linked 'Danube' to Danube" in tree
    assert "50 questions in " in table
    assert "0 failed" in table


def test_bfs_ql_shows_full_data_for_what_is_asked_and_stubs_for_the_rest(executed: dict[str, list[str]]) -> None:
    opened, found, nodes, edge, drugs, authored, shared, page = executed["bfs_ql"]
    assert "32 nodes, 52 edges" in opened and "PERSON:ferrand" in found
    stub = "{'id': 'INST:rivermouth', 'entity_type': 'Institution', 'name': 'Rivermouth University Hospital'}"
    assert stub in nodes
    assert "'id': 'PUB:2', 'entity_type': 'Publication', 'name': " in nodes
    assert '"evidence_type": "primary_authorship"' in edge
    assert "25 nodes, 39 edges" in drugs and "'Osilodrostat'" in drugs
    assert "('PERSON:ferrand', 'PUB:2')" in authored and "('PERSON:okoye', 'PUB:2')" in authored
    assert shared == "['PUB:2']"
    assert page.startswith("25 5\n") and "'cursor'" in page and "nearest" in page


def test_a_graph_of_one_s_own_is_built_and_asked_with_and_without_a_model(executed: dict[str, list[str]]) -> None:
    schema, refused, offline, answers, tree = executed["own_graph"]
    assert "'Person': 3" in schema
    assert "broken.tsv:2: expected 3 fields" in refused
    assert "linked 'Colateral' to Collateral" in offline and "Michael Mann" in offline
    assert answers == "[('Michael Mann', 'p1', True)]"
    assert "starring" in tree and "directed_by" in tree


def test_a_trace_tells_what_was_written_tied_found_and_shown(executed: dict[str, list[str]]) -> None:
    answers, links, evidence, tree, relations = executed["reading_a_trace"]
    assert answers == "[('Peru', True)]"
    assert "Limma → Lima city/lima fuzzy" in links and "'relation': 'capital', 'method': 'dense'" in links
    assert "e1 path" in evidence
    assert "draft 'Bolivia' to Bolivia" in tree and "Lima ← capital ← Peru" in tree
    assert relations.count("'capital_of'") == 2


def test_an_ablation_is_run_compared_scored_and_reported(executed: dict[str, list[str]]) -> None:
    table, folders, compared, scored, reported = executed["ablation_sweep"]
    assert "3 runs" in table
    assert folders == "['pipeline.max_hops=1', 'pipeline.max_hops=2', 'pipeline.max_hops=3']"
    assert "pipeline.max_hops=2 against pipeline.max_hops=1" in compared and "McNemar" in compared
    assert "webqsp-official" in scored
    assert "report of 30 questions" in reported


@each_notebook
def test_no_output_is_stored(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    stored = [cell["id"] for cell in cells if cell.get("outputs") or cell.get("execution_count")]
    assert stored == []
