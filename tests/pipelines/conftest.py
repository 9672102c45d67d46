"""What tests of whole pipelines share: atlas, in an engine that runs its queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from byokg.graph.engines.arcadedb import ArcadeStore


@pytest.fixture(scope="session")
def atlas_store() -> Iterator[ArcadeStore]:
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    from tests.pipelines.atlas.run import store

    with store() as held:
        yield held
