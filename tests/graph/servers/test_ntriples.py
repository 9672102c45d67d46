"""N-Triples from a server are the terms that were written, and what is none is an error and nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.servers.sparql import TripleLines

Json = dict[str, object]


def objects(*lines: str, most: int = 100) -> list[object]:
    reader = TripleLines(most)
    reader.take("\n".join(f"<http://e/s> <http://e/p> {line}" for line in lines).encode())
    return [row["object"] for row in reader.rows()]


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("<http://e/\\u00e9> .", {"type": "uri", "value": "http://e/é"}),
        ("_:b.0-x .", {"type": "bnode", "value": "b.0-x"}),
        ("_:b0.", {"type": "bnode", "value": "b0"}),
        (r'"a\"\\\n\u0041\U0001F600" . # said', {"type": "literal", "value": 'a"\\\nA😀'}),
        ('"x"@en-GB.', {"type": "literal", "value": "x", "xml:lang": "en-GB"}),
        ('"x"@ar--rtl .', {"type": "literal", "value": "x", "xml:lang": "ar"}),
        ('"1"^^<http://e/int> .', {"type": "literal", "value": "1", "datatype": "http://e/int"}),
    ],
)
def test_terms_are_read(written: str, term: Json) -> None:
    assert objects(written) == [term]


@pytest.mark.parametrize("written", ["<<( <http://e/a> <http://e/b> _:c )>> .", "<< <http://e/a> <http://e/b> _:c>> ."])
def test_triples_within_triples_are_read_in_both_spellings(written: str) -> None:
    ends: Json = {
        "subject": {"type": "uri", "value": "http://e/a"},
        "predicate": {"type": "uri", "value": "http://e/b"},
    }
    assert objects(written) == [{"type": "triple", "value": ends | {"object": {"type": "bnode", "value": "c"}}}]


def test_a_line_counts_once_and_no_more_are_kept_than_wanted() -> None:
    assert len(objects('"a" .', '"b" .', '"a" .', "", most=2)) == 2
    reader = TripleLines(2)
    pieces = [b"<x:a> <x:b", b"> <x:c> .\n<x:a> <x:b> <x:c> .\n# no\n<x:a> <x:", b"b> <x:d> .\n"]
    assert [reader.take(piece) for piece in pieces] == [False, False, True]
    assert [row["object"]["value"] for row in reader.rows()] == ["x:c", "x:d"]


@given(st.lists(st.sampled_from(["<x:a>", '"', "\\", "_:", "<<(", ")>>", " ", ".", "@", "^^", "\n", "é"]), max_size=12))
def test_what_is_no_triple_is_an_error(pieces: list[str]) -> None:
    reader = TripleLines(9)
    reader.take("".join(pieces).encode())
    with contextlib.suppress(ValueError):
        reader.rows()
    with pytest.raises(ValueError, match="triple"):
        objects("<<( " * 5000)
