"""Tests of `byokg.graph.rdf.dumps`, with lines in the very syntax of the published dumps."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from byokg.errors import ConfigError, ImportFailed
from byokg.files import TextFile
from byokg.graph.importers.choose import import_graph
from byokg.graph.rdf.dumps import Filtered, Wanted, dump_of, filter_dump

NS = "http://rdf.freebase.com/ns/"
XSD = "http://www.w3.org/2001/XMLSchema#"
WD = "http://www.wikidata.org/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def fb(subject: str, relation: str, value: str) -> str:
    relation = relation if relation.startswith("<") else f"<{NS}{relation}>"
    return f"<{NS}{subject}>\t{relation}\t{value}\t.\n"


KEPT = [
    fb("m.02mjmr", "type.object.name", '"Barack \\"Barry\\" Obama\\\\ \\u00e9"@en'),
    fb("m.02mjmr", "common.topic.alias", '"Obama"@en-GB'),
    fb("m.02mjmr", "people.person.date_of_birth", f'"1961-08-04"^^<{XSD}date>'),
    fb("m.02mjmr", TYPE, f"<{NS}people.person>"),
    fb("m.02mjmr", "people.person.place_of_birth", f"<{NS}m.02hrh0_>"),
    fb("g.11b6", "film.film.runtime", '"97.5"'),
    fb("m.02mjmr", "user.ann.default_domain.x", f"<{NS}m.01>"),
    fb("m.02hrh0_", "type.object.name", '"Honolulu@de"@en'),
]
LEFT_OUT = [
    fb("m.02mjmr", "type.object.name", '"Obama"@de'),
    fb("m.02mjmr", "type.object.name", '"Obama"@sr-Latn'),
    fb("m.02mjmr", "type.object.key", '"/wikipedia/en/Obama"'),
    fb("m.02mjmr", "<http://rdf.freebase.com/key/wikipedia.en>", '"Obama"'),
    fb("m.02mjmr", LABEL, '"Barack Obama"@en'),
    fb("m.02mjmr", "type.object.type", f"<{NS}people.person>"),
    fb("m.02mjmr", "common.topic.topic_equivalent_webpage", "<http://en.wikipedia.org/wiki/Barack_Obama>"),
    fb("people.person", "type.object.name", '"Person"@en'),
]
BAD = [
    "this is no statement\n",
    f"<{NS}m.01>\t<{NS}a.b.c>\n",
    f'<{NS}m.01>\t<{NS}a.b.c>\t"never closed\t.\n',
    f"<{NS}m.01>\t<{NS}a.b.c>\t<http://a b>\t.\n",
    f"<{NS}m.01>\t<{NS}a b.c>\t<http://a>\t.\n",
    f"m.01\t<{NS}a.b.c>\t<http://a>\t.\n",
    f"<{NS}m.01>\t<{NS}a.b.c>\t<http://a>\n",
]


def mixed(*groups: list[str]) -> list[str]:
    """Put lines between each other, in an order that is always the same."""
    lines = [
        (place / len(group), number, line) for number, group in enumerate(groups) for place, line in enumerate(group)
    ]
    return [line for _, _, line in sorted(lines)]


def filtered(tmp_path: Path, lines: list[str], wanted: Wanted, ending: str = ".nt", skip_bad: int = 0) -> str:
    source, out = tmp_path / "dump.gz", tmp_path / f"out{ending}"
    source.write_bytes(gzip.compress("".join(lines).encode()))
    found = filter_dump(source, out, wanted, skip_bad)
    text = b"".join(TextFile(out).line_blocks()).decode()
    assert found.kept == len(text.splitlines())
    assert found.read == found.kept + found.left_out.total()
    assert found.lines == len(lines)
    return text


@pytest.mark.parametrize("ending", [".nt", ".nt.gz", ".nt.zst"])
@pytest.mark.parametrize("block", [200, 1 << 24])
def test_topics_their_names_and_facts_are_kept_as_they_stand(
    tmp_path: Path, ending: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byokg.files._LINES_BYTES", block)
    assert filtered(tmp_path, mixed(KEPT, LEFT_OUT), Wanted("freebase"), ending) == "".join(KEPT)


def test_languages_users_and_further_relations_by_option(tmp_path: Path) -> None:
    wanted = Wanted("freebase", ("de", "sr-latn"), users=False, also=("type.object.type",))
    text = filtered(tmp_path, mixed(KEPT, LEFT_OUT), wanted)
    assert '"Obama"@de' in text and "@sr-Latn" in text and "type.object.type" in text
    assert "@en" not in text.replace("de>", "") and "user.ann" not in text
    (tmp_path / "none").mkdir()
    assert "@en" not in filtered(tmp_path / "none", KEPT, Wanted("freebase", ()))


def test_lines_that_are_no_statements_are_counted_or_refused(tmp_path: Path) -> None:
    lines = mixed(KEPT, BAD)
    assert filtered(tmp_path, lines, Wanted("freebase"), skip_bad=len(BAD)) == "".join(KEPT)
    source = tmp_path / "dump.gz"
    with pytest.raises(ImportFailed, match=r"dump\.gz:\d+: this is no N-Triples statement: .*--skip-bad N") as caught:
        filter_dump(source, tmp_path / "again.nt", Wanted("freebase"))
    assert lines[(caught.value.line or 0) - 1] == BAD[0]
    with pytest.raises(ImportFailed, match="6 such lines were left out before") as caught:
        filter_dump(source, tmp_path / "again.nt", Wanted("freebase"), 6)
    assert lines[(caught.value.line or 0) - 1] == BAD[-1]
    assert not (tmp_path / "again.nt").exists()
    found = filter_dump(source, tmp_path / "again.nt", Wanted("freebase"), 99)
    assert [(lines[line - 1].strip(), text) for line, text in found.examples] == [
        (bad.strip(), bad.strip()) for bad in BAD[:5]
    ]


def test_what_is_kept_of_freebase_becomes_a_graph_with_names_and_types(tmp_path: Path) -> None:
    filtered(tmp_path, mixed(KEPT, LEFT_OUT), Wanted("freebase"), ".nt.zst")
    graph = import_graph(tmp_path / "out.nt.zst")
    (obama,) = (node for node in graph.nodes(list(graph.entities())) if node.id.endswith("02mjmr"))
    assert (obama.name, obama.type) == ('Barack "Barry" Obama\\ é', "people.person")
    assert obama.properties["fb:people.person.date_of_birth"] == "1961-08-04"
    assert "fb:people.person.place_of_birth" in graph.relations


WIKIDATA = [
    f'<{WD}entity/Q31> {LABEL} "Belgium"@en .\n',
    f'<{WD}entity/Q31> <http://www.w3.org/2004/02/skos/core#altLabel> "Kingdom of Belgium"@en .\n',
    f"<{WD}entity/Q31> <{WD}prop/direct/P31> <{WD}entity/Q3624078> .\n",
    f'<{WD}entity/Q31> <{WD}prop/direct/P571> "1830-10-04T00:00:00Z"^^<{XSD}dateTime> .\n',
    f'<{WD}entity/P31> {LABEL} "instance of"@en .\n',
]
NOT_WIKIDATA = [
    f'<{WD}entity/Q31> <http://schema.org/name> "Belgium"@en .\n',
    f'<{WD}entity/Q31> {LABEL} "Belgien"@de .\n',
    f'<{WD}entity/Q31> <http://schema.org/description> "country in Europe"@en .\n',
    f"<{WD}entity/Q31> <{WD}prop/direct-normalized/P214> <http://viaf.org/1> .\n",
    f"<https://en.wikipedia.org/wiki/Belgium> <http://schema.org/about> <{WD}entity/Q31> .\n",
    f'<{WD}entity/statement/Q31-1> <{WD}prop/direct/P1> "x" .\n',
]


def test_labels_aliases_and_direct_statements_of_wikidata_are_kept(tmp_path: Path) -> None:
    lines = ["# a comment\n", "\n", *mixed(WIKIDATA, NOT_WIKIDATA)]
    assert filtered(tmp_path, lines, Wanted("wikidata")) == "".join(WIKIDATA)
    assert dump_of(tmp_path / "dump.gz") == "wikidata"


def test_descriptions_by_option(tmp_path: Path) -> None:
    assert '"country in Europe"@en' in filtered(tmp_path, NOT_WIKIDATA, Wanted("wikidata", descriptions=True))


def test_which_dump_it_is_is_told_by_its_first_lines(tmp_path: Path) -> None:
    (tmp_path / "fb.nt").write_text("".join(KEPT))
    (tmp_path / "other.nt").write_text("<http://a> <http://b> <http://c> .\n")
    assert dump_of(tmp_path / "fb.nt") == "freebase"
    with pytest.raises(ImportFailed, match="--dump"):
        dump_of(tmp_path / "other.nt")
    with pytest.raises(ImportFailed, match="No such file"):
        dump_of(tmp_path / "nothere.nt")


def test_strange_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="freebase, wikidata"):
        Wanted("dbpedia")
    with pytest.raises(ConfigError, match="no language"):
        Wanted("freebase", ("e|n",))
    with pytest.raises(ConfigError, match=r"end it in \.nt"):
        filter_dump(tmp_path / "a.gz", tmp_path / "b.ttl", Wanted("freebase"))


def test_progress_is_told_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byokg.files._LINES_BYTES", 200)
    (tmp_path / "fb.nt").write_text("".join(KEPT))
    seen: list[int] = []

    def told(done: Filtered) -> None:
        seen.append(done.read)

    filter_dump(tmp_path / "fb.nt", tmp_path / "out.nt", Wanted("freebase"), progress=told)
    assert len(seen) > 2 and seen == sorted(seen) and seen[-1] == len(KEPT)
