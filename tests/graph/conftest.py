"""Servers that the tests of several stores share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.graph import bolt_server


@pytest.fixture(scope="session")
def bolt_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bolt_server.BoltDatabases]:
    """One Bolt server for the whole run."""
    with bolt_server.running(tmp_path_factory.mktemp("bolt")) as server:
        yield server


@pytest.fixture
def bolt(bolt_process: bolt_server.BoltDatabases) -> Iterator[bolt_server.BoltDatabases]:
    """The Bolt server; databases made by a test are dropped after it."""
    yield bolt_process
    bolt_process.drop_databases()
