"""Tests of `byokg.evaluation.report.details`: lines kept once, in compressed blocks."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from byokg.evaluation.report.details import MARK, SHORT, Blocks, Texts, packed


def unpacked(text: str) -> Any:
    """Read what `packed` wrote."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def lines(texts: Texts) -> list[str]:
    """Return all lines that are kept, by number."""
    texts.blocks.close()
    return [line for block in texts.blocks.packed for line in unpacked(block)]


def restored(value: Any, kept: list[str]) -> Any:
    """Put texts together again, as the page does."""
    if isinstance(value, str):
        if value.startswith(MARK):
            return "\n".join(kept[int(number, 36)] for number in value[1:].split(","))
        return value
    if isinstance(value, dict):
        return {name: restored(entry, kept) for name, entry in value.items()}
    return [restored(entry, kept) for entry in value] if isinstance(value, list) else value


def test_a_line_that_many_texts_share_is_kept_once() -> None:
    texts = Texts()
    shared = "You answer questions from facts that were retrieved."
    first, second = texts.shared([f"{shared}\nWho directed Heat?", f"{shared}\nWho wrote Ran?"])
    assert (first, second) == (f"{MARK}0,1", f"{MARK}0,2")
    assert lines(texts) == [shared, "Who directed Heat?", "Who wrote Ran?"]


def test_short_texts_stay_where_they_are() -> None:
    texts = Texts()
    value = {"name": "Heat", "year": 1995, "rest": [None, True, 0.5]}
    assert texts.shared(value) == value
    assert lines(texts) == []


def test_a_short_text_that_looks_like_a_reference_is_kept_apart() -> None:
    texts = Texts()
    assert texts.shared(f"{MARK}7") == f"{MARK}0"
    assert lines(texts) == [f"{MARK}7"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text() | st.text(min_size=SHORT, max_size=3 * SHORT),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_every_value_is_put_together_again(value: Any) -> None:
    texts = Texts()
    shared = unpacked(packed(texts.shared(value)))
    assert restored(shared, lines(texts)) == value


def test_half_a_character_survives_and_nothing_of_html_is_left() -> None:
    text = packed(["</script>", "\ud800", "<!--"])
    assert unpacked(text) == ["</script>", "\ud800", "<!--"]
    assert not set(text) & set("<>&'\"")


def test_blocks_say_where_they_start() -> None:
    blocks = Blocks()
    values = [str(number) * 100_000 for number in range(5)]
    assert [blocks.add(value) for value in values] == [0, 1, 2, 3, 4]
    blocks.close()
    assert blocks.starts == [0, 2, 4]
    assert [unpacked(block) for block in blocks.packed] == [values[:2], values[2:4], values[4:]]
