"""What queries do to a throwaway ArcadeDB that may be written: run as a program of its own, since it holds a JVM.

Reads a JSON list of queries from standard input, and writes a JSON list of [error or null, changed] to the file named
by the second argument. The database lies in the folder named by the first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

GRAPH = """
CREATE (a:Person {name: 'Ann', x: 0, url: 'http://a'}), (b:Person {name: 'Bob', age: 40}),
       (m:Movie {title: 'Alien', name: 'Alien'}), (:Person {name: 'x', note: '/*'}), (:Movie {name: 'SET', note: '//'}),
       (a)-[:KNOWS {since: 1}]->(b), (b)-[:KNOWS]->(a), (a)-[:ACTED_IN]->(m)
"""
ROWS = [{"name": "new", "delete": 1, "list": []}]
PARAMETERS = dict.fromkeys(("delete", "set", "rows", "create", "merge"), ROWS) | {
    **dict.fromkeys(("limit", "l", "age", "to", "0", "SET n.x = 1"), 1),
    **dict.fromkeys(("skip", "s", "i", "from"), 0),
    **{name: {"a": 1, "id": 1, "name": "x"} for name in ("events", "m", "map", "param", "props", "x")},
    **{name: ["Person", "Movie"] for name in ("list", "keys", "labels", "types", "v", "expr")},
    **dict.fromkeys(("k", "key", "re", "a b"), "name"),
    **dict.fromkeys(("1", "p1", "idx", "skipAmount"), 1),
    "p2": [1],
    "percentile": 0.5,
    "name": "x",
    "label": "Person",
    "p": 0.5,
}


def main() -> None:
    """Run every query on the same small graph and say which changed it."""
    from arcadedb_embedded import create_database
    from arcadedb_embedded.jvm import start_jvm

    # Without this setting, the engine logs into the current folder.
    start_jvm(heap_size="512m", jvm_args=["-Djava.util.logging.config.file=/dev/null"])
    database = create_database(sys.argv[1])

    def write(text: str) -> None:
        with database.transaction():
            database.command("opencypher", text)

    def rows(language: str, text: str) -> list[str]:
        found = database.query(language, text).to_list()
        return sorted(json.dumps(row, default=str, sort_keys=True) for row in found)

    def content() -> Any:
        return (
            rows("opencypher", "MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties"),
            rows(
                "opencypher", "MATCH (a)-[r]->(b) RETURN a.name AS a, type(r) AS type, properties(r) AS p, b.name AS b"
            ),
        )

    def schema() -> Any:
        return rows("sql", "SELECT name, properties, indexes FROM schema:types")

    for kind, name in (("VERTEX", "Person"), ("VERTEX", "Movie"), ("EDGE", "KNOWS"), ("EDGE", "ACTED_IN")):
        database.command("sql", f"CREATE {kind} TYPE {name}")
    write(GRAPH)
    filled = content()
    results: list[tuple[str | None, bool]] = []
    for query in json.load(sys.stdin):
        error = None
        types = schema()
        try:
            with database.transaction():
                answer = database.command("opencypher", query, PARAMETERS)
                if answer is not None:
                    answer.to_list()
        except Exception as caught:  # whatever the engine raises is an answer here
            error = str(caught).partition("\n")[0]
        changed = content() != filled
        results.append((error, changed or schema() != types))
        if changed:
            write("MATCH (n) DETACH DELETE n")
            write(GRAPH)
            assert content() == filled
    database.close()
    Path(sys.argv[2]).write_text(json.dumps(results), "utf-8")


if __name__ == "__main__":
    main()
