"""A cache of the classes that ArcadeDB loads: the many Java machines of the tests start faster with it.

`python -m tests.graph.java_cache` runs queries in a machine in this process, which writes the cache at its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Any

from byokg.files import lock_file

ROOT = Path(__file__).resolve().parents[2]

QUERIES = (
    "MATCH (n:Film)-[e:directed_by]->(m) WHERE m.name <> 'x' RETURN n.name, e, m ORDER BY n.name DESC LIMIT 5",
    "MATCH (n)-[:starring]->(m) RETURN m.name, count(*) AS films, collect(n.name) ORDER BY films DESC, m.name",
    "MATCH p = shortestPath((a {name: 'Heat'})-[*..3]-(b {name: 'Ali'})) RETURN p, length(p)",
    "MATCH (n) WHERE toLower(n.name) CONTAINS 'e' OPTIONAL MATCH (n)-[:none]->(m) RETURN DISTINCT n, m",
)


def java_options(folder: Path, options: str, make: bool) -> str:
    """Return the options of Java machines with the cache in a folder, if it is there or can be made."""
    if util.find_spec("arcadedb_embedded") is None:
        return options
    cache = folder / f"arcadedb-{metadata.version('arcadedb-embedded')}.aot"
    with lock_file(cache.with_suffix(".lock"), -1):
        if make and not cache.exists():
            made = cache.with_suffix(".made")
            environment = {
                **os.environ,
                "JAVA_TOOL_OPTIONS": f"{options} -XX:AOTCacheOutput={made} -Xlog:disable",
                "PYTHONPATH": str(ROOT),
            }
            command = [sys.executable, "-m", "tests.graph.java_cache"]
            done = subprocess.run(command, env=environment, capture_output=True, check=False)
            if done.returncode != 0 or not made.exists():  # a Java without such a cache
                made.write_bytes(b"")
            made.rename(cache)
        used = cache.exists() and cache.stat().st_size > 0
    return f"{options} -XX:AOTCache={cache} -Xlog:disable" if used else options


class Here:
    """Stands for `Worker`: the engine is in this process."""

    def __init__(self, _: str, settings: Mapping[str, Any], *__: Any, **___: Any) -> None:
        from byokg.graph.engines.arcadedb_process import ArcadeEngine

        self._engine = ArcadeEngine(**settings)
        self._engine.open()

    def call(self, method: str, *arguments: Any, timeout_s: float | None = None) -> Any:
        return getattr(self._engine, method)(*arguments)

    def update(self, settings: Mapping[str, Any]) -> None:
        """Keep nothing: it is never started anew."""

    def close(self) -> None:
        self._engine.close()


def run() -> None:
    """Load a graph, and query it."""
    from arcadedb_embedded import jvm

    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.engines import arcadedb

    setattr(arcadedb, "Worker", Here)  # noqa: B010
    films = [(film, "directed_by", "Mann") for film in ("Heat", "Ali")]
    with arcadedb.ArcadeStore.hold(ColumnarGraph.from_triples([*films, ("Heat", "starring", "Pacino")])) as store:
        for query in QUERIES:
            store.run(query)
    jvm.jpype.shutdownJVM()


if __name__ == "__main__":
    run()
