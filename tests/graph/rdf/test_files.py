"""N-Triples read as columns are what pyoxigraph reads quad by quad."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg import files
from byokg.errors import ImportFailed
from byokg.graph.rdf import ntriples
from byokg.graph.rdf.files import Document, read_rdf

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

XSD = "http://www.w3.org/2001/XMLSchema#"

IRIS = st.sampled_from(
    [
        "<http://example.org/a>",
        "<http://example.org/ns#b_c>",
        "<https://example.org:8080/x/y?z=1>",
        "<http://example.org/caf\u00e9>",
        "<http://example.org/a%20b>",
        "<urn:isbn:123>",
        "<mailto:a@b.org>",
        "<http://example.org/\\u00e9>",
        "<tag:a,2001:b>",
    ]
)
NODES = st.one_of(IRIS, st.sampled_from(["_:b1", "_:x_2", "_:a-b"]))
TEXTS = st.one_of(
    st.text(st.characters(exclude_characters='"\\\r\n', exclude_categories=["Cs"]), max_size=6),
    st.sampled_from([r"say \"hi\"", r"a\nb", r"\u00e9", "a . b", '" .', "<x>"][:4]),
)
LITERALS = st.builds(
    lambda text, said: f'"{text}"{said}',
    TEXTS,
    st.sampled_from(["", "@en", "@EN-gb", "@de-Latn-DE", f"^^<{XSD}integer>", f"^^<{XSD}string>", "^^<urn:x:y>"]),
)
LINES = st.builds(lambda *terms: " ".join(terms) + " .", NODES, IRIS, st.one_of(NODES, LITERALS))


def rows(document: Document) -> Iterator[tuple[object, ...]]:
    for block, _ in document.blocks():
        columns = [column.dictionary_decode().to_pylist() for column in (block.subject, block.predicate, block.end)]
        kinds = [document.kinds.pairs[kind] if kind >= 0 else None for kind in block.kind.tolist()]
        yield from zip(*columns, kinds, strict=True)


@settings(max_examples=60)
@given(st.lists(LINES, min_size=1, max_size=12))
def test_both_ways_of_reading_give_the_same_quads(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "graph.nt"
    path.write_text("\n".join(lines) + "\n", "utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        found = list(rows(read_rdf(path)))
        patch.setattr(files, "_LINES_BYTES", 100)
        assert list(rows(read_rdf(path))) == found
        patch.setattr(ntriples, "_PLAIN_PREDICATE", "^$")  # so that no line is plain
        assert list(rows(read_rdf(path))) == found


def test_plain_lines_are_not_read_quad_by_quad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.nt"
    path.write_text('<http://a.org/s> <http://a.org/p> "x y"@en .\r\n\n_:b\t<http://a.org/p>\t<http://a.org/o>\t.\n')
    monkeypatch.setattr(ntriples, "columns", None)
    assert [row[2:] for row in rows(read_rdf(path))] == [
        ("x y", ("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en")),
        ("http://a.org/o", None),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "<http://a.org/s> <http://a.org/p> .",
        "<http://a.org/s> <http://a.org/p> <http://a.org/o> . .",
        "<http://a.org/s> _:p <http://a.org/o> .",
        '"s" <http://a.org/p> <http://a.org/o> .',
        '<http://a.org/s> <http://a.org/p> "x"@ .',
        '<http://a.org/s> <http://a.org/p> "x .',
        '<http://a.org/s> <http://a.org/p> "x"^^<y> .',
        "<http://a.org/s s> <http://a.org/p> <http://a.org/o> .",
        "<s> <http://a.org/p> <http://a.org/o> .",
    ],
)
def test_a_wrong_line_is_named_whichever_block_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    good = "<http://a.org/s> <http://a.org/p> <http://a.org/o> .\n"
    path = tmp_path / "graph.nt"
    path.write_text(good * 9 + line + "\n" + good)
    for block_bytes in (1 << 20, 120):
        monkeypatch.setattr(files, "_LINES_BYTES", block_bytes)
        with pytest.raises(ImportFailed) as caught:
            list(rows(read_rdf(path)))
        assert caught.value.line == 10
        assert "line" not in caught.value.reason  # where it is in the block says nothing


def test_a_name_tells_the_format(tmp_path: Path) -> None:
    for name in ("a.ttl", "a.nt.gz", "a.NQ", "c.rdf.zst"):
        (tmp_path / name).write_text("")
        read_rdf(tmp_path / name)
    for name in ("a.tsv", "a.csv.gz", "a.gz", "ttl"):
        with pytest.raises(ImportFailed, match="no RDF format has the ending"):
            read_rdf(tmp_path / name)
