from __future__ import annotations

import codecs
import random
from io import BytesIO

from byokg.graph.importers.delimited import misplaced_quote


def test_the_quote_check_agrees_with_a_character_by_character_reading_whatever_the_chunks() -> None:
    rng = random.Random(1)
    for _ in range(5000):
        data = bytes(rng.choice(b'"",\na\r') for _ in range(rng.randrange(15)))
        block_bytes = rng.randrange(1, 6)
        assert misplaced_quote(BytesIO(data), block_bytes) == first_misplaced_quote(data), data
        if block_bytes > 3:
            marked = misplaced_quote(BytesIO(codecs.BOM_UTF8 + data), block_bytes)
            assert marked == (None if (place := first_misplaced_quote(data)) is None else place + 3)


def first_misplaced_quote(data: bytes) -> int | None:
    """Find the first quote that RFC 4180 does not allow, the slow way."""
    allowed = b',"\r\n'
    inside, opened = False, 0
    for place, byte in enumerate(data):
        if byte != ord('"'):
            continue
        if not inside:
            if place and data[place - 1] not in allowed:
                return place
            opened = place
        elif place + 1 < len(data) and data[place + 1] not in allowed:
            return place
        inside = not inside
    return opened if inside else None
