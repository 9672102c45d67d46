"""Tests of `byokg.cli.inspect_task`, with Inspect where it is installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from byokg.cli.inspect_task import kgqa
from byokg.errors import MissingExtra
from tests.cli.conftest import ROOT, Run

INSTALLED = importlib.util.find_spec("inspect_ai") is not None


@pytest.mark.skipif(INSTALLED, reason="Inspect is installed")
def test_without_inspect_its_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"byokg\[inspect\]"):
        kgqa("dataset=atlas limit=3")


@pytest.mark.skipif(not INSTALLED, reason="byokg[inspect] is not installed")
def test_inspect_asks_the_pipeline_and_scores_as_byokg_does(byokg: Run, tmp_path: Path) -> None:
    task = f"{ROOT / 'byokg/cli/inspect_task.py'}@kgqa"
    words = ["eval", task, "--model", "none", "-T", "settings=dataset=atlas limit=12", "--display", "none"]
    command = [sys.executable, "-m", "inspect_ai", *words, "--log-dir", str(tmp_path / "logs"), "--log-format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [log] = (tmp_path / "logs").glob("*.json")
    record = json.loads(log.read_text("utf-8"))
    found = {one["name"]: one["metrics"]["mean"]["value"] for one in record["results"]["scores"]}
    assert byokg("eval", "-q", "dataset=atlas", "limit=12", "out=run").code == 0
    ours = json.loads(byokg("score", "run", "--json").out)["profiles"]["strict"]["metrics"]
    assert found == pytest.approx({name: ours[name]["value"] for name in ("hit", "hits@1", "f1", "em")})
