"""Checks of `byokg doctor`: fitness of this machine, optional packages, and remedies.

No connection is opened, except to a server whose address is given, and no key is ever read into a message.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from rich.console import Console
from rich.text import Text

from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import stdout
from byokg.errors import ByokgError
from byokg.evaluation.tables import labels, table
from byokg.files import open_file_limits
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import StaticEmbedder
from byokg.llm.model import tracing_variable
from byokg.open import mask, use_graph

State = Literal["ok", "off", "warn", "fail"]
"""`off` is optional and not there; `warn` limits something; `fail` breaks the core."""

OLDEST_PYTHON = (3, 11)
ARCADEDB_GLIBC = (2, 34)
OPEN_FILES = 6144
"""ArcadeDB keeps one file open for each relation type, and public graphs have up to about 6,000."""

FREE_BYTES_WANTED = 2 * 1024**3

DISTRIBUTION = "byokg"
BUNDLES = frozenset({"all", "dev"})
"""Extras that repeat others or serve only those who change byokg."""


@expand_records
def doctor(
    *,
    graph: Annotated[
        str | None, typer.Argument(metavar="GRAPH", help="A graph to check as well: a folder, or a server's address.")
    ] = None,
    server: ServerOptions,
) -> None:
    """Check this machine, the installed extras, keys (set or not, never shown) and a graph.

    Prints a remedy for everything missing or wrong.
    """
    settings = {} if graph is None else server.settings(graph)
    checks = diagnose(graph, settings=settings)
    show(checks, stdout())
    raise typer.Exit(exit_code(checks))


@dataclass(frozen=True)
class Credential:
    """Possible places of a provider's credential (any one is enough), and its use."""

    name: str
    variables: tuple[str, ...]
    purpose: str
    files: tuple[str, ...] = ()
    """Paths below the home folder."""


CREDENTIALS = (
    Credential("Anthropic key", ("ANTHROPIC_API_KEY",), "llm=anthropic"),
    Credential("OpenAI key", ("OPENAI_API_KEY",), "llm=openai_compatible with OpenAI's own service"),
    Credential(
        "AWS credentials",
        (
            *("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_WEB_IDENTITY_TOKEN_FILE"),
            *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        ),
        "llm=bedrock and graph=neptune",
        (".aws/credentials", ".aws/config"),
    ),
    Credential("Neo4j password", ("NEO4J_PASSWORD",), "graphs behind neo4j:// and bolt://"),
    Credential(
        "SPARQL credentials", ("BYOKG_SPARQL_TOKEN", "BYOKG_SPARQL_USER"), "SPARQL endpoints that want to know who asks"
    ),
)


@dataclass(frozen=True)
class Check:
    """One check: the finding, and a remedy if one is needed."""

    name: str
    state: State
    found: str
    advice: str = ""


def diagnose(
    graph: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    settings: Mapping[str, Any] | None = None,
) -> list[Check]:
    """Make every check.

    Args:
        graph: folder of a built graph to open and verify as well, or a server's address; None leaves that out.
        environment: variables to look for keys and tracing in.
        settings: for the server's store, as of `open_graph`.

    Returns:
        The outcomes, always in the same order: machine, packages, keys, embedder, graph.
    """
    checks = [
        check_python(sys.version_info[:3]),
        check_system(platform.system()),
        check_glibc(platform.system(), *platform.libc_ver()),
        check_open_files(*open_file_limits()),
        check_disk(Path.cwd()),
    ]
    try:
        installed = importlib.metadata.metadata(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        checks.append(
            Check("packages", "warn", "byokg runs from a source folder, not installed", "run: pip install -e .")
        )
    else:
        checks += check_packages(installed.get_all("Requires-Dist", []), installed.get_all("Provides-Extra", []))
    checks += check_keys(environment, Path.home())
    checks.append(check_tracing(environment))
    checks.append(check_embedder())
    if graph is not None:
        checks.append(check_graph(graph, **settings or {}))
    return checks


def exit_code(checks: Iterable[Check]) -> int:
    """Return 1 when a check failed, else 0: warnings and missing options leave the core usable."""
    return int(any(check.state == "fail" for check in checks))


def show(checks: Sequence[Check], console: Console) -> None:
    """Print the checks as a table, and how many need attention below it."""
    colours = {"ok": "green", "off": "dim", "warn": "yellow", "fail": "bold red"}
    rows = [(check.name, Text(check.state, colours[check.state]), check.found, check.advice) for check in checks]
    console.print(
        table([*labels("check", "state", one_line=True), *labels("found", "what to do")], rows, "byokg doctor")
    )
    failed = sum(check.state == "fail" for check in checks)
    warned = sum(check.state == "warn" for check in checks)
    console.print(f"{failed} failed, {warned} {'warning' if warned == 1 else 'warnings'}")


def check_python(version: tuple[int, int, int]) -> Check:
    """Compare the interpreter's version with the oldest one supported."""
    found = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Check("python", "fail", found, f"make a virtual environment with Python {wanted} or newer")
    return Check("python", "ok", found)


_LIMITED = {
    "Darwin": "the memory of an embedded engine's process is not limited, and a graph that is replaced is absent for a "
    "moment",
    "Windows": "the memory of an embedded engine's process is not limited, a graph that a process has open cannot be "
    "replaced, and ArcadeDB's process may outlive a byokg that was killed in the middle of a query",
}
"""Features of byokg missing on each system, since they need one of Linux."""


def check_system(system: str) -> Check:
    """Return the limits on a system; byokg is developed and tested on Linux."""
    if system == "Linux":
        return Check("system", "ok", system)
    limits = _LIMITED.get(system, "byokg was never tried here")
    return Check("system", "warn", f"{system}: {limits}", "use Linux, WSL or a container where that matters")


def check_glibc(system: str, library: str, version: str) -> Check:
    """Check that the C library can run the ArcadeDB wheel, needed only by the extra `cypher`."""
    wanted = ".".join(map(str, ARCADEDB_GLIBC))
    advice = f"only graph=arcadedb needs glibc {wanted} or newer: use graph=columnar, or a newer system or container"
    if system != "Linux":
        return Check("glibc", "ok", f"not used on {system}")
    if library != "glibc":
        return Check("glibc", "warn", f"another C library ({library or 'unknown'})", advice)
    if Version(version) < Version(wanted):
        return Check("glibc", "warn", version, advice)
    return Check("glibc", "ok", version)


def check_open_files(soft: int | None, hard: int | None) -> Check:
    """Check that a graph with thousands of relation types can be opened in ArcadeDB.

    Args:
        soft: limit in force; None is unlimited or unknown to this system.
        hard: largest value for `ulimit`; None as above.
    """
    if soft is None or soft >= OPEN_FILES:
        return Check("open files", "ok", "no limit" if soft is None else f"{soft:,}")
    if hard is None or hard >= OPEN_FILES:
        cure = f"run: ulimit -n {OPEN_FILES}"
    else:
        cure = f"have an administrator raise nofile (hard limit {hard:,}) to {OPEN_FILES:,}"
    return Check("open files", "warn", f"{soft:,}", f"graph=arcadedb opens a file for each relation type; {cure}")


def check_disk(folder: Path) -> Check:
    """Check that the file system of `folder` has room for graphs and runs."""
    free = shutil.disk_usage(folder).free
    found = f"{free / 1024**3:.1f} GiB free in {folder}"
    if free < FREE_BYTES_WANTED:
        return Check("disk", "warn", found, "free some space, or work in another folder")
    return Check("disk", "ok", found)


def check_packages(requirements: Sequence[str], extras: Sequence[str]) -> list[Check]:
    """Compare installed packages with the declared ones.

    Args:
        requirements: requirement lines of the distribution, extras as markers (`x>=1; extra == "y"`).
        extras: names of the extras.

    Returns:
        One check for the core, then one for each extra except the bundles, in the order given.
    """
    parsed = [Requirement(line) for line in requirements]
    fitting, unfit, missing = _installed(_members(parsed, ""))
    if wrong := missing + unfit:
        checks = [Check("core packages", "fail", ", ".join(wrong), f"run: pip install --upgrade {DISTRIBUTION}")]
    else:
        checks = [Check("core packages", "ok", f"all {len(fitting)} installed")]
    for extra in (extra for extra in extras if extra not in BUNDLES):
        fitting, unfit, missing = _installed(_members(parsed, extra))
        state: State = "warn" if unfit else "off" if missing else "ok"
        advice = f"run: pip install {'--upgrade ' if unfit else ''}'{DISTRIBUTION}[{extra}]'"
        found = unfit + missing or fitting
        checks.append(Check(f"extra {extra}", state, ", ".join(found), "" if state == "ok" else advice))
    return checks


def check_keys(environment: Mapping[str, str], home: Path) -> list[Check]:
    """Check the providers' credentials. Only the names of variables appear, never their values.

    Args:
        environment: variables to look in.
        home: the user's home folder, for AWS's files.
    """
    checks = []
    for credential in CREDENTIALS:
        places = [variable for variable in credential.variables if environment.get(variable, "").strip()]
        places += [f"~/{file}" for file in credential.files if (home / file).is_file()]
        if places:
            checks.append(Check(credential.name, "ok", f"set ({places[0]})"))
        else:
            advice = f"for {credential.purpose}, set {credential.variables[0]}"
            checks.append(Check(credential.name, "off", "not set", advice))
    return checks


def check_tracing(environment: Mapping[str, str]) -> Check:
    """Warn when LangSmith tracing is on: it sends every prompt, and so parts of the graph, to a service."""
    variable = tracing_variable(environment)
    if variable is not None:
        return Check(
            "LangSmith tracing",
            "warn",
            f"on ({variable})",
            f"questions, graph contents and replies leave this machine; to stop it: unset {variable}",
        )
    return Check("LangSmith tracing", "ok", "not on: prompts are sent to no tracing service")


def check_embedder() -> Check:
    """Load the shipped embedder and encode a word with it."""
    try:
        embedder = StaticEmbedder()
        fault = "" if embedder.encode(["graph"]).any() else f"{embedder.name} encodes 'graph' as zeros"
    except ByokgError as error:
        fault = str(error)
    if fault:
        return Check("shipped embedder", "fail", fault, f"run: pip install --force-reinstall {DISTRIBUTION}")
    return Check("shipped embedder", "ok", embedder.name)


def check_graph(place: str | Path, **settings: Any) -> Check:
    """Open a graph and count it; of a folder, compare the checksums of all its files too."""
    try:
        with use_graph(place, **settings) as graph:
            relations = graph.schema().relations
            verified = ""
            if isinstance(graph, ColumnarGraph):
                graph.verify()
                verified = "; checksums agree"
            sizes = [(graph.node_count, "nodes"), (graph.edge_count, "edges"), (len(relations), "relations")]
            counts = ", ".join(f"{noun} not counted" if size is None else f"{size:,} {noun}" for size, noun in sizes)
            return Check("graph", "ok", f"{graph.name}: {counts}{verified}")
    except ByokgError as error:
        # The messages of graph errors end with the next step already.
        return Check("graph", "fail", mask(str(error)))


def _members(requirements: Sequence[Requirement], extra: str) -> list[Requirement]:
    """Return the packages that one extra ("" is the core) adds on this machine, with nested extras resolved."""
    members: list[Requirement] = []
    for requirement in requirements:
        if _counts(requirement.marker, extra) and (extra == "" or not _counts(requirement.marker, "")):
            if canonicalize_name(requirement.name) == DISTRIBUTION:
                for inner in sorted(requirement.extras):
                    members += _members(requirements, inner)
            else:
                members.append(requirement)
    return members


def _counts(marker: Marker | None, extra: str) -> bool:
    """True if a marker holds on this machine for `extra`."""
    return marker is None or marker.evaluate({"extra": extra})


def _installed(requirements: Sequence[Requirement]) -> tuple[list[str], list[str], list[str]]:
    """Return which packages fit ("x 2.1"), do not ("x 1.0 where >=2 is needed"), or lack ("x not installed")."""
    fitting: list[str] = []
    unfit: list[str] = []
    missing: list[str] = []
    for requirement in requirements:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{requirement.name} not installed")
            continue
        if requirement.specifier.contains(version, prereleases=True):
            fitting.append(f"{requirement.name} {version}")
        else:
            unfit.append(f"{requirement.name} {version} where {requirement.specifier} is needed")
    return fitting, unfit, missing
