"""Tests of `byokg.llm.parsing`."""

from __future__ import annotations

import html
import json
import time

from hypothesis import given
from hypothesis import strategies as st

from byokg.llm.parsing import Listing, read_answers, read_list, read_object, read_paths, read_query, read_score
from byokg.llm.reply_blocks import TAGS, blocks
from byokg.llm.reply_lines import WrittenAnswer
from byokg.llm.shown_names import ShownNames
from tests.corpora import each_of

ANY_TAG = st.sampled_from(sorted(TAGS))

PIECES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            f"<{slash}{word}{end}>"
            for words in TAGS.values()
            for word in words
            for slash in ("", "/")
            for end in ("", "/", " x=1")
        ]
    ),
    st.sampled_from(
        ["```", "```cypher\n", "\n", "- ", "1. ", "->", "→", "<-", "{", "}", "[", "]", '"', "'", ",", "//", "/*"]
    ),
    st.sampled_from(
        ["&lt;", "&#0;", "&#xFFFFFF;", "&amp;", "<think>", "</think>", "FINISH", "^", "?x", "[e1]", "\\", "#"]
    ),
)
"""What replies are made of, in an order that makes no sense."""

WORD = st.from_regex(r"[A-Za-zÀ-ÿ0-9][\w'.&/()-]{0,11}", fullmatch=True)
NAME = (
    st.lists(WORD, min_size=1, max_size=4)
    .map(" ".join)
    .filter(
        lambda name: (
            name.lower() not in {"none", "n/a", "null", "empty"}
            and "finish" not in name.lower()
            and html.unescape(name) == name
            and not name.split()[0].rstrip(".)").isdigit()
            and not name.endswith((".", *"⁰¹²³⁴⁵⁶⁷⁸⁹"))  # a superscript cites
        )
    )
)
"""A name that no reader has a reason to touch: no bullet, no number in front, no escape."""

RELATION = st.from_regex(r"\^?[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*){0,2}", fullmatch=True).filter(
    lambda name: "inverse" not in name
)


@given(st.lists(PIECES, max_size=30).map("".join), ANY_TAG)
def test_no_text_makes_a_reader_fail(text: str, tag: str) -> None:
    assert all(isinstance(content, str) for content in blocks(text, tag))
    listing = read_list(text, tag, bare=True)
    assert all(listing.items) and len(set(listing.items)) == len(listing.items)
    assert all(answer.name for answer in read_answers(text))
    assert all(all(path) for path in read_paths(text))
    for language in ("opencypher", "sparql", "pathql"):
        query = read_query(text, language)
        assert query is None or query.strip() == query != ""
    found = read_object(text, tag)
    assert found is None or isinstance(found, dict)
    assert read_score(text) in (None, 0.0, 0.5, 1.0)


@each_of(
    "unit",
    ["[", '{"a":[', "(", "<think>", "```", "`a", "~", " ", "\n", "a -> ", "e1, ", "; ", "-", "<![CDATA[", "\u202b"],
)
def test_a_long_hostile_reply_takes_linear_time(unit: str) -> None:
    known = ShownNames(f"Name {number}, of {number} and more" for number in range(100))
    began = time.process_time()
    text = (unit * 20_000)[:20_000]
    for wrapped in (text, f"<entities>{text}</entities><answers>{text}</answers><paths>{text}</paths>"):
        read_object(wrapped, "bfsql")
        read_list(wrapped, "entities", bare=True, known=known)
        read_paths(wrapped)
        read_query(wrapped, "opencypher")
        read_answers(wrapped, known=known)
    assert time.process_time() - began < 5, "quadratic time takes ten times as long"


@given(
    ANY_TAG,
    # A sentence speaks of tags: between <answers> and </answers>, from <answers> … </answers>.
    st.text().filter(lambda text: "<" not in text and text.strip(" \t.…`'\"").lower() not in ("and", "or", "to", "")),
    st.text().filter(lambda text: "<" not in text),
)
def test_what_is_inside_well_formed_tags_comes_back_unchanged(tag: str, content: str, prose: str) -> None:
    for word in TAGS[tag]:
        assert blocks(f"{prose}<{word}>{content}</{word}>{prose}", tag) == [content]


@given(st.lists(st.tuples(ANY_TAG, st.text().filter(lambda text: "<" not in text)), min_size=1, max_size=6))
def test_blocks_of_several_kinds_are_told_apart(written: list[tuple[str, str]]) -> None:
    text = "\n".join(f"<{tag}>{content}</{tag}>" for tag, content in written)
    for tag in TAGS:
        assert blocks(text, tag) == [content for kind, content in written if kind == tag]


@given(st.lists(NAME, min_size=1, max_size=4, unique=True))
def test_plain_names_come_back_unchanged_in_their_order(names: list[str]) -> None:
    written = "\n".join(names)
    assert read_list(f"Sure!\n<entities>\n{written}\n</entities>", "entities") == Listing(tuple(names), found=True)
    assert [answer.name for answer in read_answers(f"<answers>\n{written}\n</answers>")] == names


@given(
    st.lists(NAME, min_size=2, max_size=4, unique=True),
    st.sampled_from(["- {}", "* {}", "• {}", "{n}. {}", "{n}) {}", "({n}) {}", "- **{}**", '"{}"', "`{}`", "  {}  "]),
)
def test_names_are_found_under_bullets_numbers_and_marks(names: list[str], form: str) -> None:
    written = "\n".join(form.format(name, n=number) for number, name in enumerate(names, 1))
    assert read_list(f"<entities>\n```\n{written}\n```\n</entities>", "entities").items == tuple(names)


@given(
    st.lists(st.lists(RELATION, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique=True),
    st.sampled_from(["->", "→", "-->", "=>", " -> ", " → "]),
)
def test_relation_paths_come_back_unchanged(paths: list[tuple[str, ...]], arrow: str) -> None:
    written = "\n".join(arrow.join(path) for path in paths)
    assert read_paths(f"<paths>\n{written}\n</paths>") == tuple(paths)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ).map(lambda value: {"value": value})
)
def test_json_objects_come_back_unchanged(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=2)
    assert read_object(f"Here it is:\n```json\n{text}\n```\nDone.") == value
    if "<" not in text:
        assert read_object(f"<bfsql>\n{text}\n</bfsql>", "bfsql") == value


@given(
    st.text().filter(
        lambda text: (
            "<" not in text
            and "&" not in text
            and "```" not in text
            and "~~~" not in text
            and any(character.isalpha() for character in text)
            and text.strip().lower()
            not in {"none", "n/a", "null", "[]", "{}", "-", "(none)", "(empty)", "[none]", "empty"}
        )
    )
)
def test_queries_come_back_with_their_line_breaks(query: str) -> None:
    assert read_query(f"<opencypher>\n{query}\n</opencypher>", "opencypher") == query.strip()


@each_of(
    ("text", "expected"),
    [
        ("<entities>\nA\nB", ["\nA\nB"]),  # cut off
        ("<entities>\nA\n<paths>\nr\n</paths>", ["\nA\n"]),  # never closed
        ("<entities>A\n<entities>B</entities>", ["A\n", "B"]),
        ("<ENTITIES >A</Entities>", ["A"]),
        ('<entities type="topic">A</entities>', ["A"]),
        ("<entities>A</entity>", ["A"]),
        ("<entities/>", [""]),
        ("<entities></entities>", [""]),
        ("A</entities>", []),
        ("&lt;entities&gt;A &amp; B&lt;/entities&gt;", ["A & B"]),
        ("<entities>A &amp; B</entities>", ["A &amp; B"]),  # exact: readers unescape
        ("<think>maybe <entities>X</entities></think><entities>A</entities>", ["A"]),
        ("<entities>A</entities> or rather <entities>B</entities>", ["A", "B"]),
        ("no tags", []),
    ],
)
def test_blocks_of_what_models_really_write(text: str, expected: list[str]) -> None:
    assert blocks(text, "entities") == expected


def test_a_comparison_in_a_query_is_no_tag() -> None:
    query = "MATCH (a) WHERE a.x <answer AND 3>a.y RETURN a"
    assert read_query(f"<opencypher>{query}</opencypher>", "opencypher") == query


@each_of(
    ("content", "items"),
    [
        ("1. Paris", ["Paris"]),
        ("2. Bundesliga", ["2. Bundesliga"]),  # does not count from 1
        ("10. Mai 1933\n1. FC Köln", ["10. Mai 1933", "1. FC Köln"]),
        ("1. Paris\n2. London\n4. Rome", ["1. Paris", "2. London", "4. Rome"]),
        (
            "1984\n2001: A Space Odyssey\n10 Things I Hate About You",
            ["1984", "2001: A Space Odyssey", "10 Things I Hate About You"],
        ),
        ("Paris, Texas", ["Paris, Texas"]),
        ("Paris,\nLondon,\nRome", ["Paris", "London", "Rome"]),
        ('["Paris", "St. John\'s"]', ["Paris", "St. John's"]),
        ("['Paris',\n 'London',]", ["Paris", "London"]),
        ("[Paris]", ["[Paris]"]),
        ("AT&amp;T\nR&D\nBj&ouml;rk\nB&#246;ll", ["AT&T", "R&D", "Björk", "Böll"]),
        ('"Weird Al" Yankovic', ['"Weird Al" Yankovic']),
        ("“Heroes”\n«Carmen»", ["Heroes", "Carmen"]),
        ("<entity>Paris</entity>\n<entity>London</entity>", ["Paris", "London"]),
        ("<item>Paris</item><item>London</item>", ["Paris", "London"]),
        ("Paris\nParis\nLondon", ["Paris", "London"]),
        ("None", []),
        ("N/A", []),
        ("", []),
        ("**\nParis\n**", ["Paris"]),
        ("Paris\r\nLondon\r\n", ["Paris", "London"]),
        ("-Ology\n+44", ["-Ology", "+44"]),
    ],
)
def test_items_of_a_block(content: str, items: list[str]) -> None:
    listing = read_list(f"<selected>\n{content}\n</selected>", "selected")
    assert listing == Listing(tuple(items), found=True)


def test_items_of_all_blocks_are_put_together() -> None:
    text = "<entities>\nParis\n</entities>\nAlso:\n<entities>\nLondon\nParis\n</entities>"
    assert read_list(text, "entities").items == ("Paris", "London")


@each_of(
    ("text", "finished", "items"),
    [
        ("<entities>FINISH</entities>", True, ()),
        ("<entities>\n**FINISH**.\n</entities>", True, ()),
        ("<entities>\nFinished!\n</entities>", True, ()),
        ("<entities>\n- [finish]\n</entities>", True, ()),
        ("<entities>\n<FINISH>\n</entities>", True, ()),
        ("<entities>FINISH", True, ()),
        ("<entities>\nMichael Mann\nFINISH\n</entities>", True, ("Michael Mann",)),
        ("<entities>\nHeat\nFinish\n</entities>", False, ("Heat", "Finish")),  # may be a title
        ("FINISH", True, ()),
        ("<entities></entities>", False, ()),
        ("We can FINISH here.", False, ()),
    ],
)
def test_finish_in_its_variants(text: str, finished: bool, items: tuple[str, ...]) -> None:
    listing = read_list(text, "entities")
    assert (listing.finished, listing.items) == (finished, items)


@each_of(
    ("text", "items"),
    [
        ("Paris\nLondon", ("Paris", "London")),
        ("These are meant:\n\n- Paris\n- London\n\nI hope this helps.", ("Paris", "London")),
        ("1) Paris\n2) London", ("Paris", "London")),
        ("The capital of France is Paris.", ()),
        ("<paths>r</paths>", ()),  # tags were understood, so the list was left out
    ],
)
def test_a_reply_without_tags_is_read_where_that_is_asked_for(text: str, items: tuple[str, ...]) -> None:
    assert read_list(text, "answers", bare=True) == Listing(items, found=bool(items))
    assert read_list(text, "answers") == Listing()


def test_answers_come_with_their_citations() -> None:
    listed = "1. Michael Mann [e3, e7]\n2. **Heat** (E1)[e02].\n3. Ali\n4. Blade Runner (1982) [e5]\n5. Ali [e9]"
    text = f"<answers>\n{listed}\n</answers>"
    assert read_answers(text) == (
        WrittenAnswer("Michael Mann", ("e3", "e7")),
        WrittenAnswer("Heat", ("e1", "e2")),
        WrittenAnswer("Ali", ("e9",)),
        WrittenAnswer("Blade Runner (1982)", ("e5",)),
    )


@each_of(
    ("line", "path"),
    [
        ("directed_by", ("directed_by",)),
        ("a.b.c->d.e.f", ("a.b.c", "d.e.f")),
        ("Path 1: a -> b", ("a", "b")),
        ("country of citizenship → head of state", ("country of citizenship", "head of state")),
        ("a, b", ("a", "b")),
        ("[a] -> [`b`]", ("a", "b")),
        (":a => :b", ("a", "b")),
        ("^a -> inverse(b) -> ~c -> d^-1 -> inverse of e", ("^a", "^b", "^c", "^d", "^e")),
        ("a <- b", ("a", "^b")),
        ("(Heat)-[:directed_by]->(p:Person)<-[r:`film.cast`]-(f)", ("directed_by", "^film.cast")),
        ("?film -> directed_by -> ?person", ("directed_by",)),
        ("http://ex.org/a -> http://ex.org/b", ("http://ex.org/a", "http://ex.org/b")),
        ("/film/film/directed_by", ("/film/film/directed_by",)),
        ("Here are the paths:", ()),
        ("->", ()),
    ],
)
def test_a_path_in_the_ways_models_write_it(line: str, path: tuple[str, ...]) -> None:
    assert read_paths(f"<paths>\n{line}\n</paths>") == ((path,) if path else ())


@each_of(
    ("text", "query"),
    [
        ("<opencypher>\nMATCH (n)\nRETURN n\n</opencypher>", "MATCH (n)\nRETURN n"),
        ("<cypher>MATCH (n) RETURN n</cypher>", "MATCH (n) RETURN n"),
        ("<opencypher>\n```cypher\nMATCH (n) RETURN n\n```\n</opencypher>", "MATCH (n) RETURN n"),
        ("<opencypher>\n```\nMATCH (n) RETURN n\n```\nThis finds all.", "MATCH (n) RETURN n"),
        ("<opencypher>MATCH (n) WHERE n.a &lt; 3 RETURN n</opencypher>", "MATCH (n) WHERE n.a < 3 RETURN n"),
        ("Use this:\n```cypher\nMATCH (n) RETURN n\n```", "MATCH (n) RETURN n"),
        ("```cypher\nMATCH (n) RETURN n", "MATCH (n) RETURN n"),
        ("```python\nprint(1)\n```", None),
        (
            "<opencypher>MATCH (a) RETURN a</opencypher> No: <opencypher>MATCH (b) RETURN b</opencypher>",
            "MATCH (b) RETURN b",
        ),
        ("<opencypher>MATCH (a) RETURN a</opencypher><opencypher></opencypher>", "MATCH (a) RETURN a"),
        ("<opencypher>\n</opencypher>", None),
        ("<opencypher>None</opencypher>", None),
        ("MATCH (n) RETURN n", "MATCH (n) RETURN n"),
        ("Match the node and return it.", None),
    ],
)
def test_a_query_in_the_ways_models_write_it(text: str, query: str | None) -> None:
    assert read_query(text, "opencypher") == query


def test_queries_of_several_languages_are_kept_apart() -> None:
    text = "<opencypher>MATCH (n) RETURN n</opencypher><sparql>SELECT * { ?s <http://e.org/answers> ?o }</sparql>"
    assert read_query(text, "sparql") == "SELECT * { ?s <http://e.org/answers> ?o }"
    assert read_query("```sparql\nSELECT ?s {}\n```", "sparql") == "SELECT ?s {}"


@each_of(
    ("text", "value"),
    [
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": 1 // one\n, /* two */ "b": "//no"}', {"a": 1, "b": "//no"}),
        ("{'a': 'it\\'s', b: True, \"c\": None}", {"a": "it's", "b": True, "c": None}),
        ("{“a”: “b”}", {"a": "b"}),
        ('{"a": {"b": [1', {"a": {"b": [1]}}),
        ('I use {braces} and then {"a": 1}; don\'t you?', {"a": 1}),
        ("&lt;x&gt; {&quot;a&quot;: 1}", {"a": 1}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ("[1, 2]", None),
        ("nothing", None),
        ('{"a": NaN}', {"a": None}),
    ],
)
def test_an_object_in_the_ways_models_write_it(text: str, value: dict[str, object] | None) -> None:
    assert read_object(text) == value
    if value is not None and "&" not in text:
        assert read_object(f"prose {{}}\n<bfsql>\n```json\n{text}\n```</bfsql>", "bfsql") == value


@each_of(
    ("text", "score"),
    [
        ("<reason>1 of 2 is right</reason><score>\n0.5\n</score>", 0.5),
        ("<score>1.0</score>", 1.0),
        ("<score>½</score>", 0.5),
        ("<score>1/2</score>", 0.5),
        ("**Score:** 0", 0.0),
        ("1", 1.0),
        ("<score>0.7</score>", None),
        ("<score>10</score>", None),
        ("All 1 rows match.", None),
        ("", None),
    ],
)
def test_a_score_in_the_ways_models_write_it(text: str, score: float | None) -> None:
    assert read_score(text) == score


def test_other_scores_may_be_allowed() -> None:
    assert read_score("<score>4</score>", (1.0, 2.0, 3.0, 4.0, 5.0)) == 4.0
