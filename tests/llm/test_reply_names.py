"""Names come out of replies as they were written, in every layout that prompts ask for or the readers accept."""

from __future__ import annotations

import csv
import functools
import json
import os
import random
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reply_names import LAYOUTS, ReplyLayout, every_name, measured
from byokg.evaluation.datasets.folder import SHIPPED
from byokg.llm.parsing import read_answers, read_list, read_object, read_paths
from byokg.llm.reply_lines import WrittenAnswer, answers
from byokg.llm.shown_names import Hiding, ShownNames, question_names
from tests.corpora import each_of

DATA = Path(os.environ.get("BYOKG_DATA") or Path(__file__).parents[3] / "shared" / "data")

HARD = (
    *("Au bord d'une source", "The Source", "Source", "Open source", "Fun facts", "Where I Come From", "Per", "And"),
    *("Can't You See", "The Way It Is", "Not Enough", "I Don't Know How She Does It", "Villarreal CF", "Wait, no"),
    *("None", "Unknown", "No answer", "Yes", "FINISH", "I don't know", "Nothing", "N/A", "Sorry, Wrong Number"),
    *("1. FC Köln", "10 Things I Hate About You", "2001: A Space Odyssey", "#1 Fan", "(500) Days of Summer", "- Spain"),
    *("Crosby, Stills, Nash and Young", "Simon & Garfunkel", "A | B", "Jackson Pollock; drawings", "AC/DC", "x -> y"),
    *('"Weird Al" Yankovic', '"Heroes"', "**bold**", "__init__", "`code`", "S**t", "'Baby Lola'", "“Quoted”"),
    *("Sammy Davis Jr.", "Monsters, Inc.", "When Harry Met Sally...", "Beloved.", "Mighty Christ:", "Common Grace;"),
    *("AT&amp;T", "a < b", "[e1]", "Untitled [3]", "Facts [e1, e2]", "Gen¹³", "Highway, lines 2 and 4", "Ship (2)"),
    *("שלום", "\u200fשלום עולם\u200f", "Zero\u200bWidth", "Cafe\u0301 Paris", "北京", "E7", "The answer is Paris"),
    *("From Star Wars to Jedi: The Making of a Saga", "Robert Burns - a life", "Ohio: a history", "GoldenEye: Source"),
    *("The candidate was Richard M. Nixon.", "word " * 400 + "end", '{"a": 1}', "{}", "3"),
    *("Answer: Heat", "Final answer: Heat", "Note: Heat", "Foo, [e1] Bar", "…", "## Heat", "- [x] Heat"),
    *(
        "\\textbf{Heat}",
        "~~Heat~~",
        "Heat [e1",
        "<b>Heat</b>",
        "عربي [e1] نص",
        "Heat\u2028Bar",
        "(1)",
        "Actually, Heat",
    ),
)
"""Names that look like something else in a reply."""

WORD = st.one_of(
    st.sampled_from("source facts is from and per The None [e1] (e2) 1. : ; — -> ,".split()),
    st.from_regex(r"[A-Za-zÀ-ÿ0-9\"'*_`|#&.!?;:,()/-]{1,8}", fullmatch=True),
)
ANY_NAME = st.one_of(st.sampled_from(HARD), st.lists(WORD, min_size=1, max_size=6).map(" ".join)).filter(
    lambda name: any(map(str.isalpha, name))
)


def each(layouts: Sequence[ReplyLayout]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("layout", layouts, ids=lambda layout: layout.name)


PLAIN = [layout for layout in LAYOUTS if not layout.shown_only]
OF_ENTITIES = [layout for layout in LAYOUTS if layout.name.startswith("entities")]


@each_of(
    "name",
    [
        *("Au bord d'une source", "The Source", "Source", "Open source", "Fun facts", "Where I Come From", "#1 Fan"),
        *(
            "GoldenEye: Source",
            "Can't You See",
            "The God Who Is",
            "I Don't Want to Do It",
            "Not Enough",
            "Sorry, Haters",
        ),
        *("We Don't Live Here Anymore", "Ohio: a bicentennial history", "Jackson Pollock; psychoanalytic drawings"),
        *("Paris Métro Line 1", "When Harry Met Sally...", "20 Hrs., 40 Min.", "Was friends with Lafayette."),
        *("Villarreal CF", "P.Y.T. Thugs)", "Sorry, Haters", "$"),
    ],
)
def test_a_name_that_ends_in_a_word_for_evidence_is_whole_before_its_citation(name: str) -> None:
    for text in (f"{name} [e1]", f"{name} (source: e1)", f"{name}, per e1", f"- {name} (e1)", f"1. {name} [e1]"):
        assert answers(text) == (WrittenAnswer(name, ("e1",)),)
    assert answers(name) == (WrittenAnswer(name),)


@each_of(
    "line",
    [
        *("Paris (source: e1)", "Paris (Source: [e1])", "Paris, per e1", "Paris — from [e1]", "Paris, see [e1]"),
        *("Paris; cf. [e1]", "Paris [source: e1]", "Paris (according to e1)", "Paris (as shown in [e1])"),
        *("Paris, as stated in [e1]", "Paris: see [e1]"),
    ],
)
def test_words_that_introduce_a_citation_are_taken_off_behind_a_mark(line: str) -> None:
    assert answers(line) == (WrittenAnswer("Paris", ("e1",)),)


@each(PLAIN)
def test_names_of_atlas_are_whole_without_known_names(layout: ReplyLayout) -> None:
    with (SHIPPED / "nodes.csv").open(encoding="utf-8", newline="") as file:
        names = list(dict.fromkeys(row["name"] for row in csv.DictReader(file) if row["name"]))
    names = names[PLAIN.index(layout) % 6 :: 6]
    count = measured(layout, names, len(names), shown=False)
    assert (count.names, count.altered, count.ambiguous) == (len(names), 0, 0), count.examples[:5]


@functools.cache
def real_names() -> list[str]:
    return sorted(every_name(DATA))


@pytest.mark.skipif(not (DATA / "metaqa").is_dir(), reason="set BYOKG_DATA to a folder with metaqa and freebase_core")
@each_of("shown", [False, True])
def test_a_sample_of_the_names_of_real_graphs_is_whole(shown: bool) -> None:
    names = real_names()
    sample = random.Random(34).sample(names, 100)
    for layout in LAYOUTS if shown else PLAIN:
        count = measured(layout, sample, len(sample), shown)
        assert count.altered == 0, (layout.name, count.examples[:5])
        assert not shown or count.ambiguous == 0


@given(st.lists(ANY_NAME, min_size=1, max_size=5, unique=True), st.sampled_from(LAYOUTS))
def test_any_names_that_were_shown_are_whole_in_every_layout(names: list[str], layout: ReplyLayout) -> None:
    names = names[: layout.size]
    if layout in OF_ENTITIES and "FINISH" in names:
        return  # ends the search
    assert layout.read(layout.write(names), ShownNames(names)) == names


@each(LAYOUTS)
def test_hard_names_that_were_shown_are_whole(layout: ReplyLayout) -> None:
    for name in HARD:
        if layout not in OF_ENTITIES or name != "FINISH":
            assert layout.read(layout.write([name]), ShownNames(["Paris", name])) == [name]


def test_a_shown_name_is_found_in_another_unicode_form_and_as_a_prompt_writes_it() -> None:
    names = ("Café\u200b Noir", "a  b", "[e7] Blues", "x" * 400, "<answers>")
    known = ShownNames(names)
    composed = unicodedata.normalize("NFD", "Café Noir")
    for written, name in zip((composed, "a b", "(e7] Blues", "x" * 299 + "…", "‹answers>"), names, strict=True):
        assert answers(f"{written} [e1]", known) == (WrittenAnswer(name, ("e1",)),)


def test_the_longest_reading_that_was_shown_counts() -> None:
    known = ShownNames(["Heat", "Heat: a film", "Stills", "Crosby, Stills", "Nash", "1. FC Köln", "Unknown"])
    assert [one.name for one in answers("Heat: a film [e1]", known)] == ["Heat: a film"]
    assert [one.name for one in answers("Heat: a film by Michael Mann [e1]", known)] == ["Heat"]
    assert [one.name for one in answers("Crosby, Stills and Nash [e1]", known)] == ["Crosby, Stills", "Nash"]
    assert [one.name for one in answers("1. FC Köln [e1]", known)] == ["1. FC Köln"]
    assert [one.name for one in answers("1. Heat [e1]", known)] == ["Heat"]
    assert [one.name for one in answers("1. 3 [e1]", ShownNames("13"))] == ["3"]
    for text in ("[e1] Heat", "Heat [e1]", '["Heat [e1]"]', '{"answers": ["Heat [e1]"]}', "## Answers\n- Heat [e1]"):
        assert read_answers(text, known=known) == (WrittenAnswer("Heat", ("e1",)),)
    songs = ShownNames(["(Strangers) (session)", "Bavarian Rhapsody"])
    listed = answers("(Strangers) (session), Bavarian Rhapsody", songs)
    assert [one.name for one in listed] == ["(Strangers) (session)", "Bavarian Rhapsody"]
    assert [one.name for one in answers("Unknown", known)] == ["Unknown"]
    assert answers("Unknown", ShownNames(["Heat"])) == ()


def test_the_rule_of_a_table_is_no_name_though_a_node_bears_it() -> None:
    known = ShownNames(["---", "Heat"])
    table = "<answers>\n| # | Answer | Citation |\n|---|:---|---|\n| 1 | Heat | e1 |\n| 2 | --- | e2 |\n</answers>"
    assert read_answers(table, known=known) == (WrittenAnswer("Heat", ("e1",)), WrittenAnswer("---", ("e2",)))
    assert read_answers("<answers>\n--- [e1]\n</answers>", known=known) == (WrittenAnswer("---", ("e1",)),)


def test_names_that_were_not_shown_stay_as_they_are_written() -> None:
    known = ShownNames(["Paris", "Heat"])
    for name in ("Paris, Texas", "Paris Hilton", "Heat and Dust", "The Heat"):
        assert answers(f"{name} [e1]", known) == (WrittenAnswer(name, ("e1",)),)


def test_the_word_that_ends_a_search_is_no_entity_though_a_node_bears_it() -> None:
    listing = read_list("<next-entities>\nFINISH\n</next-entities>", "next-entities", known=ShownNames(["FINISH"]))
    assert (listing.finished, listing.items) == (True, ())


@given(st.text(), st.lists(st.text(max_size=12), max_size=5))
def test_what_is_hidden_comes_back(text: str, names: list[str]) -> None:
    hiding = Hiding(ShownNames(names))
    restored = hiding.restore(hiding.hide(text))
    assert " ".join(_seen(restored).split()) == " ".join(_seen(text).split())


def _seen(text: str) -> str:
    folded = "".join(
        each for each in unicodedata.normalize("NFC", text) if unicodedata.category(each) not in ("Cf", "Cc")
    )
    return folded.replace("‹", "<").replace("(", "[")


LABELS = ("A -> B", "is a, of", "part of / contains", "owns (inverse)", "a|b", "/film/film/directed_by", "x then y")
ANY_PATH = st.lists(st.sampled_from([*LABELS, "capital", "born_in"]), min_size=1, max_size=3)


@given(ANY_PATH, st.sampled_from([" -> ", " → ", "->"]))
def test_relations_with_arrows_and_commas_are_steps(path: list[str], arrow: str) -> None:
    known = {*LABELS, "capital", "born_in"}.__contains__
    for text in (f"<paths>\n{arrow.join(path)}\n</paths>", f"<paths>\n{json.dumps([path])}\n</paths>"):
        assert read_paths(text, known, ShownNames(LABELS)) == (tuple(path),)


@given(st.lists(ANY_NAME, min_size=1, max_size=3))
def test_seeds_of_a_subgraph_request_are_whole(names: list[str]) -> None:
    request = json.dumps({"seeds": names}, ensure_ascii=False)
    assert read_object(f"<bfsql>\n{request}\n</bfsql>", "bfsql") == {"seeds": names}


def test_names_of_a_question_are_any_words_in_a_row() -> None:
    known = question_names("Who directed Nothing, and who wrote Sorry, Wrong Number?")
    assert (known.of("Nothing"), known.of("Sorry, Wrong Number")) == ("Nothing", "Sorry, Wrong Number")
    assert read_list("<entities>\nNothing\n</entities>", "entities", known=known).items == ("Nothing",)


def test_a_long_context_and_a_long_reply_are_read_in_no_time() -> None:
    known = ShownNames(f"Name {number}, of {number} and more" for number in range(5000))
    text = ", ".join(f"Name {number}, of {number} and more" for number in range(300))
    assert len(answers(f"{text} [e1]", known)) == 300
    for hostile in ("Name 1, " * 5000, "a; " * 5000, " — a" * 5000, "e1, " * 5000, "(" * 5000, "the graph no " * 3000):
        assert read_answers(f"<answers>{hostile}</answers>", known=known) is not None
