"""A short sample of the W3C's suites and the openCypher TCK; `benchmarks/conformance.py` runs them whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

from benchmarks.conformance import Embedded, rdf, sparql, unpacked
from benchmarks.conformance_tck import Tally, guarded, scenarios


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("BYOKG_SUITES") or Path(__file__).parents[2] / "shared" / "data" / "suites")
    if not folder.is_dir():
        pytest.skip(f"no suites in {folder}; point BYOKG_SUITES at a folder holding w3c and opencypher")
    return unpacked(folder, tmp_path_factory.mktemp("suites"))


def holds(tally: Tally, **at_least: int) -> None:
    assert tally.wrong == []
    for what, count in at_least.items():
        assert tally.counts[what.replace("_", " ")] >= count


def test_right_rdf_is_imported_and_wrong_rdf_refused(suites: Path) -> None:
    holds(rdf(suites, every=20), right_files=30, wrong_files=15)


@pytest.mark.parametrize(("version", "reads"), [("10", 10), ("11", 10)])
def test_sparql_answers_as_the_engine_does_and_updates_are_refused(suites: Path, version: str, reads: int) -> None:
    tally = sparql(suites, version, Embedded(), every=15)
    holds(tally, reads_equal=reads)
    assert version == "10" or tally.counts["updates refused, data unchanged"] >= 8


def test_cypher_that_reads_passes_and_cypher_that_writes_does_not(suites: Path) -> None:
    holds(guarded(suites, every=3), reads_pass=900, writes_refused=90)


def test_every_scenario_is_found(suites: Path) -> None:
    found = list(scenarios(suites))
    assert len({scenario.name for scenario in found}) == len(found) == 3897
    assert not any("<" + name + ">" in scenario.query for scenario in found for name in ("expr", "result", "map"))
