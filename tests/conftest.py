"""What holds for all tests."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

if TYPE_CHECKING:
    from byokg.graph.engines.arcadedb import ArcadeStore
    from tests.graph.bolt_server import BoltDatabases
    from tests.graph.genuine_servers import Genuine

# Before any of them is loaded. Test processes share the cores already: threads of BLAS and torch that wait for others
# take several times the processor time, and so does Java's second compiler in a machine that runs for seconds.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
JAVA = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions "
    "-XX:-BytecodeVerificationRemote"
)
os.environ.setdefault("JAVA_TOOL_OPTIONS", JAVA)

# Some 10,000 collected tests are looked through at each full collection of garbage.
gc.set_threshold(50_000, 20, 100)

TESTS = Path(__file__).parent

SLOW_FILES = 10

MANY = 1000
"""Tests for which the cache of Java classes is made if it is not there yet."""

CASES = 40
"""Cases that a property test draws in `make test`, unless it has a number of its own."""
FUZZ_FACTOR = 25
"""How many times as many cases `make fuzz` draws as `make test`."""
FAST_SHARE = 4
"""How many times as many cases `make test` draws as `--fast`."""

# A busy machine must not fail a test, so nothing is timed; the same tests in the same order draw the same cases. Seeds
# are ignored but with the profile `fuzz`.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("byokg", UNTIMED, max_examples=CASES, derandomize=True)
settings.register_profile("fuzz", UNTIMED, max_examples=CASES * FUZZ_FACTOR, print_blob=True)
settings.load_profile("byokg")


SLOW = frozenset(
    "cli data training evaluation/datasets/test_testset.py evaluation/report evaluation/test_profiles.py "
    "evaluation/test_runner.py graph/columnar/test_folder.py graph/columnar/test_node_ids.py "
    "graph/columnar/test_writer.py graph/engines graph/guard/test_guard_engines.py graph/guard/test_guard_size.py "
    "graph/pathql/test_brute_force.py "
    "graph/pathql/test_differential.py graph/servers index/test_reranker_cross_encoder.py "
    "index/test_reranker_layerwise.py index/test_sentence.py llm/test_chat_models_local.py llm/test_decoding.py "
    "llm/test_reply_names.py "
    "offline/test_pipeline.py offline/test_query_graphs.py pipelines/test_case_studies.py pipelines/test_cpus.py "
    "pipelines/test_end_to_end.py pipelines/test_graphraft.py pipelines/test_quality.py test_conformance.py "
    "test_docs.py test_docstrings.py test_documentation.py test_examples.py test_layers.py test_notebooks.py "
    "test_packaging.py test_portability.py test_shape.py "
    "llm/test_parsing.py::test_a_long_hostile_reply_takes_linear_time graph/pathql/test_queries.py "
    "llm/test_model.py::test_each_fault_is_one_attempt_that_may_be_repeated llm/test_providers.py "
    "evaluation/datasets/test_audit.py evaluation/datasets/test_phrasing.py graph/bfsql/test_properties.py "
    "graph/rdf/test_files.py graph/test_display_names.py pipelines/test_planner.py".split()
)
"""Folders, files and tests that `--fast` leaves out: they start engines, servers, browsers, programs, or take long."""

STARTED = frozenset("arcade arcade_process arcadedb atlas_store bolt bolt_process neo4j_server oxigraph server".split())
"""Fixtures of engines and servers, whose tests `--fast` leaves out elsewhere."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test-fast` leave out what starts an engine, a server or a browser, or takes long."""
    parser.addoption("--fast", action="store_true", help="leave out tests of engines, servers, browsers and programs")


def _slow(path: Path) -> bool:
    """True if a file or folder, or one that it is in, is `SLOW`."""
    return any(each.relative_to(TESTS).as_posix() in SLOW for each in (path, *path.parents) if TESTS in each.parents)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out slow folders and files."""
    return True if config.getoption("--fast") and _slow(collection_path) else None


def pytest_configure() -> None:
    """Take Ctrl-C as a terminal would, also in a background job, whose programs start with the signal ignored.

    Programs that a test starts inherit an ignored signal, and the default in the place of a handler.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test marked `seeds(n)` the numbers below n, or below as many times n as `make fuzz` draws cases."""
    fuzz = metafunc.config.getoption("--hypothesis-profile", None) == "fuzz"
    for mark in metafunc.definition.iter_markers("seeds"):
        metafunc.parametrize("seed", range(mark.args[0] * (FUZZ_FACTOR if fuzz else 1)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of engines and servers; let `make fuzz` draw more cases also if a test has a number of its own.

    Slow files come first, so that no test process is left with one when the others have finished.
    """
    slow = {path: _slow(path) for path in {item.path for item in items}}
    items.sort(key=lambda item: not slow[item.path])
    fast, fuzz = config.getoption("--fast"), config.getoption("--hypothesis-profile", None) == "fuzz"
    if fast:
        left = [
            item
            for item in items
            if not STARTED.isdisjoint(getattr(item, "fixturenames", ()))
            or item.nodeid.removeprefix("tests/").partition("[")[0] in SLOW
        ]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
    elif hasattr(config, "cache") and os.environ["JAVA_TOOL_OPTIONS"] == JAVA:
        from tests.graph.java_cache import java_options

        os.environ["JAVA_TOOL_OPTIONS"] = java_options(config.cache.mkdir("java"), JAVA, make=len(items) > MANY)
    drawn = [getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)]
    for test in {test for test in drawn if (fast or fuzz) and is_hypothesis_test(test)}:
        own = test._hypothesis_internal_use_settings
        if fast or own.max_examples < CASES * FUZZ_FACTOR:
            wanted = max(1, own.max_examples // FAST_SHARE) if fast else own.max_examples * FUZZ_FACTOR
            test._hypothesis_internal_use_settings = settings(own, max_examples=wanted)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the files whose tests took longest, fixtures included."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]
    if len(seconds) > 1:
        terminalreporter.section("slowest files")
        for file, taken in seconds.most_common(SLOW_FILES):
            terminalreporter.write_line(f"{taken:7.1f} s  {file}")


@pytest.fixture(scope="session")
def bolt_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoltDatabases]:
    """Start one Bolt server for all tests of this process."""
    from tests.graph import bolt_server

    with bolt_server.running(tmp_path_factory.mktemp("bolt")) as server:
        yield server


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Genuine]:
    """A genuine Neo4j, whose one database each test empties before it; skips where it cannot run."""
    from tests.graph.genuine_servers import started

    with started("neo4j", tmp_path_factory.mktemp("neo4j")) as server:
        yield server


@pytest.fixture
def bolt(bolt_process: BoltDatabases) -> Iterator[BoltDatabases]:
    """Return the Bolt server; the databases that a test makes are dropped after it."""
    yield bolt_process
    bolt_process.drop_databases()


@pytest.fixture(scope="session")
def arcade_process() -> Iterator[ArcadeStore]:
    """Start one ArcadeDB for all tests of this process; whoever uses it puts a graph in with `replace`."""
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.engines.arcadedb import ArcadeStore

    with ArcadeStore.hold(ColumnarGraph.from_triples([]), heap_mb=512) as store:
        yield store


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished `byokg demo`, made by the first test process that needs it."""
    from byokg.cli.main import main
    from byokg.files import lock_file

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "demo"
    with lock_file(folder.with_suffix(".lock"), -1):
        assert main(["demo", "--quiet", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session", autouse=True)
def _read_once() -> Iterator[None]:
    """Read boto3's descriptions of services once, and wait for no disk: no test takes the power away."""
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("botocore"):
            import botocore.session

            patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
