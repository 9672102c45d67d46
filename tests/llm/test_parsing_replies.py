"""Replies as models of several families write them, each read as a person would.

The layouts are those that were met, or are known of chat models that were asked for tags: citations anywhere,
revisions, thoughts, tables, JSON, headings, fences, entities in paths, any arrow, words for nothing.
"""

from __future__ import annotations

from byokg.llm.parsing import read_answers, read_list, read_object, read_paths, read_queries, read_query
from tests.corpora import each_of

Said = dict[str, tuple[str, ...]]


def cited(text: str) -> Said:
    return {answer.name: answer.citations for answer in read_answers(text)}


@each_of(
    ("line", "said"),
    [
        ("Paris [e3]", {"Paris": ("e3",)}),
        ("Paris [3]", {"Paris": ("e3",)}),
        ("Paris [3, 7]", {"Paris": ("e3", "e7")}),
        ("Paris [E3,E7]", {"Paris": ("e3", "e7")}),
        ("Paris [e3][e7]", {"Paris": ("e3", "e7")}),
        ("Paris [e3] [e7]", {"Paris": ("e3", "e7")}),
        ("Paris [e3; e7]", {"Paris": ("e3", "e7")}),
        ("Paris [e3 and e7]", {"Paris": ("e3", "e7")}),
        ("Paris [e3-e5]", {"Paris": ("e3", "e4", "e5")}),
        ("Paris [e3–e5, e9]", {"Paris": ("e3", "e4", "e5", "e9")}),
        ("Paris [e3-5]", {"Paris": ("e3", "e4", "e5")}),
        ("Paris [e3 to e5]", {"Paris": ("e3", "e4", "e5")}),
        ("Paris [e3..e5]", {"Paris": ("e3", "e4", "e5")}),
        ("[e3] Paris", {"Paris": ("e3",)}),
        ("[e3, e7] Paris", {"Paris": ("e3", "e7")}),
        ("[e3] [e7] Paris", {"Paris": ("e3", "e7")}),
        ("e3: Paris", {"Paris": ("e3",)}),
        ("- [e3]: **Paris**", {"Paris": ("e3",)}),
        ("Paris [e3] (the capital of France)", {"Paris": ("e3",)}),
        ("Paris [e3] - the capital of France", {"Paris": ("e3",)}),
        ("Paris [e3]: the capital since 987.", {"Paris": ("e3",)}),
        ("Paris [e3] because it is the capital", {"Paris": ("e3",)}),
        ("Paris [e3], the capital of France [e7]", {"Paris": ("e3", "e7")}),
        ("Paris [e3].", {"Paris": ("e3",)}),
        ("Paris. [e3]", {"Paris": ("e3",)}),
        ("Paris, [e3]", {"Paris": ("e3",)}),
        ("Paris: [e3]", {"Paris": ("e3",)}),
        ("Paris — [e3]", {"Paris": ("e3",)}),
        ("Paris → [e3]", {"Paris": ("e3",)}),
        ("Paris (e3)", {"Paris": ("e3",)}),
        ("Paris (e3, e7)", {"Paris": ("e3", "e7")}),
        ("Paris ([e3], [e7])", {"Paris": ("e3", "e7")}),
        ("Paris (see [e3])", {"Paris": ("e3",)}),
        ("Paris (source: e3)", {"Paris": ("e3",)}),
        ("Paris [evidence: e3]", {"Paris": ("e3",)}),
        ("Paris [facts 3 and 7]", {"Paris": ("e3", "e7")}),
        ("Paris 【e3】", {"Paris": ("e3",)}),
        ("Paris{e3}", {"Paris": ("e3",)}),
        ("Paris [^e3]", {"Paris": ("e3",)}),
        ("[Paris](e3)", {"Paris": ("e3",)}),
        ("Paris - e3", {"Paris": ("e3",)}),
        ("Paris: e3, e7", {"Paris": ("e3", "e7")}),
        ("Paris | e3", {"Paris": ("e3",)}),
        ("| Paris | [e3] |", {"Paris": ("e3",)}),
        ("| 1 | Paris | e3, e7 |", {"Paris": ("e3", "e7")}),
        ("| Answer | Citation |\n|---|---|\n| Paris | [e3] |\n| Lyon | [e4] |", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("Paris [e3]; Lyon [e4]", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("Paris [e3], Lyon [e4] and Nice [e5]", {"Paris": ("e3",), "Lyon": ("e4",), "Nice": ("e5",)}),
        ("[e3] Paris; [e4] Lyon", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("Paris; Lyon; Nice", {"Paris": (), "Lyon": (), "Nice": ()}),
        ("Paris | Lyon [e3]", {"Paris": ("e3",), "Lyon": ("e3",)}),
        ("Paris\n[e3]\nLyon\n[e4]", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("Paris\nLyon\n[e3]", {"Paris": ("e3",), "Lyon": ("e3",)}),
        ("Paris\nEvidence: e3, e7", {"Paris": ("e3", "e7")}),
        ("- Paris\n  - Citations: [e3]\n  - Reason: the capital", {"Paris": ("e3",)}),
        ("**Paris** [e3]\n*Note: there may be more.*", {"Paris": ("e3",)}),
        ('1. "Paris" [e3]\n2. "Lyon" [e4]', {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("Answer: Paris [e3]", {"Paris": ("e3",)}),
        ("Answer 1: Paris [e3]\nAnswer 2: Lyon [e4]", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("The answer is Paris [e3].", {"Paris": ("e3",)}),
        ("The answer is **Paris** [e3].", {"Paris": ("e3",)}),
        ("The capital of France is Paris [e3].", {"Paris": ("e3",)}),
        ("The capital of France is **Paris** (see [e3]).", {"Paris": ("e3",)}),
        ("The answers are Paris, Lyon and Nice [e3].", {"Paris": ("e3",), "Lyon": ("e3",), "Nice": ("e3",)}),
        ("Based on the facts: Paris [e3]", {"Paris": ("e3",)}),
        ("\\boxed{Paris}", {"Paris": ()}),
        ("France → capital → Paris [e3]", {"Paris": ("e3",)}),
        ("Here are the answers:\nParis [e3]", {"Paris": ("e3",)}),
        ("Paris [e3]\nThe facts do not hold any other city.", {"Paris": ("e3",)}),
        ("Paris [e3]\n\nParis is the capital of France, as e3 says.", {"Paris": ("e3",)}),
        ('["Paris [e3]", "Lyon"]', {"Paris": ("e3",), "Lyon": ()}),
        ('[{"answer": "Paris", "citations": ["e3", "e7"]}]', {"Paris": ("e3", "e7")}),
        ('{"answers": [{"name": "Paris", "evidence": "[e3]"}]}', {"Paris": ("e3",)}),
        ('{"answer": "Paris", "citations": [3]}', {"Paris": ("e3",)}),
        ('{"Paris": ["e3"], "Lyon": ["e4"]}', {"Paris": ("e3",), "Lyon": ("e4",)}),
        ('{"name": "Paris"}\n{"name": "Lyon"}', {"Paris": (), "Lyon": ()}),
        # What looks like one of these and is none
        ("Blade Runner (1982) [e5]", {"Blade Runner (1982)": ("e5",)}),
        ("Blade Runner [1982]", {"Blade Runner [1982]": ()}),
        ("Paris, Texas [e3]", {"Paris, Texas": ("e3",)}),
        ("Washington, D.C. [e3]", {"Washington, D.C.": ("e3",)}),
        ("Apollo 13", {"Apollo 13": ()}),
        ("Star Wars: Episode IV [e3]", {"Star Wars: Episode IV": ("e3",)}),
        ("Unknown (2011 film) [e3]", {"Unknown (2011 film)": ("e3",)}),
        ("The World Is Not Enough [e3]", {"The World Is Not Enough": ("e3",)}),
        ("No Country for Old Men", {"No Country for Old Men": ()}),
        ("Martin Luther King Jr.", {"Martin Luther King Jr.": ()}),
        ("Mission: Impossible - Fallout [e3]", {"Mission: Impossible - Fallout": ("e3",)}),
        ("1990-05-12 [e3]", {"1990-05-12": ("e3",)}),
        ("$1,200,000 [e3]", {"$1,200,000": ("e3",)}),
        ("Simon & Garfunkel [e3]", {"Simon & Garfunkel": ("e3",)}),
    ],
)
def test_answers_and_what_they_cite(line: str, said: Said) -> None:
    assert cited(f"<answers>\n{line}\n</answers>") == said


@each_of(
    ("text", "said"),
    [
        ("<answers>Lyon [e1]</answers>\nWait, e3 says otherwise.\n<answers>Paris [e3]</answers>", {"Paris": ("e3",)}),
        ("<answer>Paris [e3]</answer>\n<answer>Lyon [e4]</answer>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answer>Paris</answer> [e3]\n<answer>Lyon</answer> [e4]", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers><answer>Paris</answer><answer>Lyon</answer></answers>", {"Paris": (), "Lyon": ()}),
        ("<answers>Paris</answers>\nAlso possible:\n<answers>Lyon</answers>", {"Paris": (), "Lyon": ()}),
        ("I write the answer in <answers> tags.\n\n<answers>\nParis [e3]\n</answers>", {"Paris": ("e3",)}),
        ("It goes between <answers> and </answers>.\n<answers>Paris</answers>", {"Paris": ()}),
        ("The `<answers>` block holds e3's city:\n<answers>\nParis\n</answers>", {"Paris": ()}),
        ("<answers>\nParis\n</answers>\nThe <answers> above cite e3.", {"Paris": ()}),
        ("So the final answer is <answers>Paris [e3]</answers>.", {"Paris": ("e3",)}),
        ("<think>Lyon? <answers>Lyon</answers></think>\n<answers>Paris</answers>", {"Paris": ()}),
        ("Maybe <answers>Lyon</answers>, no.\n</think>\n<answers>Paris</answers>", {"Paris": ()}),
        ("Sure!\n<reasoning>Lyon is no capital.</reasoning>\n<answers>Paris</answers>", {"Paris": ()}),
        ("<final_answer>Paris [e3]</final_answer>", {"Paris": ("e3",)}),
        ("<Answers>\nParis [e3]\n<answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis [e3]", {"Paris": ("e3",)}),
        ("```xml\n<answers>\nParis [e3]\n</answers>\n```", {"Paris": ("e3",)}),
        ("```answers\nParis [e3]\n```", {"Paris": ("e3",)}),
        ("## Answers\n- Paris [e3]\n- Lyon [e4]\n\n## Reasoning\nBoth are large.", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("**Answer:** Paris [e3]", {"Paris": ("e3",)}),
        ("**Final Answer**\n\nParis [e3]", {"Paris": ("e3",)}),
        ("The facts name two cities.\n\nAnswer: Paris [e3]", {"Paris": ("e3",)}),
        ("[answers]\nParis [e3]\n[/answers]", {"Paris": ("e3",)}),
        ('```json\n{"answers": ["Paris [e3]", "Lyon"]}\n```', {"Paris": ("e3",), "Lyon": ()}),
        ('{"answers": [{"answer": "Paris", "citations": ["e3"]}], "reasoning": "x"}', {"Paris": ("e3",)}),
        ('{"result": {"answers": "Paris"}}', {"Paris": ()}),
        ("The answer is Paris [e3].", {"Paris": ("e3",)}),
        ("Paris [e3]", {"Paris": ("e3",)}),
        ("&lt;answers&gt;\nParis [e3]\n&lt;/answers&gt;", {"Paris": ("e3",)}),
    ],
)
def test_where_the_answers_of_a_reply_stand(text: str, said: Said) -> None:
    assert cited(text) == said


@each_of(
    "line",
    [
        "",
        "None",
        "None.",
        "N/A",
        "(none)",
        "Unknown",
        "Unknown.",
        "No answer",
        "No answer found.",
        "The facts do not hold the answer.",
        "The facts don't contain the answer to this question.",
        "The graph does not contain this information.",
        "The provided facts do not mention who directed the film.",
        "I don't know.",
        "I cannot answer this from the facts.",
        "Not found in the graph",
        "Cannot be determined from the given facts.",
        "There is no answer in the facts.",
        "Insufficient information",
        "No facts support an answer [e3].",
        "Unfortunately, the evidence does not say.",
        "Based on the facts, the answer cannot be determined.",
        "*No relevant facts were found.*",
    ],
)
def test_a_reply_that_abstains_has_no_answer(line: str) -> None:
    for text in (f"<answers>\n{line}\n</answers>", line or "<answers/>"):
        assert read_answers(text) == ()


@each_of(
    ("content", "finished", "items"),
    [
        ("FINISH - the context contains the answer", True, ()),
        ("FINISH: The Answer is in e3.", True, ()),
        ("FINISH (Paris is named in e3)", True, ()),
        ("FINISH\nThe graph context contains the answer: Paris.", True, ()),
        ("**FINISH** – nothing is missing", True, ()),
        ("`FINISH`", True, ()),
        ("Finish.", True, ()),
        ("Finish - all is known", True, ()),
        ("<FINISH>", True, ()),
        ('"FINISH"', True, ()),
        ('["FINISH"]', True, ()),
        ("No further entities are needed. FINISH", True, ()),
        ("FINISH as the context is enough", True, ()),
        ("Michael Mann\nFINISH", True, ("Michael Mann",)),
        ("None.", False, ()),
        ("none needed", False, ()),
        ("None (the question names no entity)", False, ()),
        ("No further entities need to be explored.", False, ()),
        ("N/A - nothing is named", False, ()),
        ("There are no entities to explore.", False, ()),
        ("The entities are:\n1. Paris\n2. France", False, ("Paris", "France")),
        ("Paris\nFrance\n\nThese have to be found in the graph.", False, ("Paris", "France")),
        ('[{"entity": "Paris"}, {"entity": "France"}]', False, ("Paris", "France")),
        ("**1.** Paris\n**2.** France", False, ("Paris", "France")),
        ("No Doubt\nNothing but Thieves", False, ("No Doubt", "Nothing but Thieves")),
    ],
)
def test_entities_and_the_end_of_the_search(content: str, finished: bool, items: tuple[str, ...]) -> None:
    listing = read_list(f"<entities>\n{content}\n</entities>", "entities")
    assert (listing.finished, listing.items) == (finished, items)


@each_of("text", ["FINISH - nothing is missing", "FINISH\n\nThe context holds the answer."])
def test_finish_alone_is_a_reply(text: str) -> None:
    for tag in ("entities", "next-entities"):
        listing = read_list(text, tag, bare=True)
        assert (listing.finished, listing.items) == (True, ())


CAPITAL, BORN = "location.country.capital", "people.person.place_of_birth"


@each_of(
    ("line", "path"),
    [
        (f"{CAPITAL} {arrow} {BORN}", (CAPITAL, BORN))
        for arrow in [
            "->",
            "–>",
            "—>",
            "→",
            ">",
            ">>",
            "=>",
            "==>",
            "-->",
            "➜",
            "⇒",
            "⟶",
            "»",
            "\\rightarrow",
            "$\\to$",
        ]
    ]
    + [
        (f"{CAPITAL}>{BORN}", (CAPITAL, BORN)),
        (f"{CAPITAL} / {BORN}", (CAPITAL, BORN)),
        (f"{CAPITAL}/{BORN}", (CAPITAL, BORN)),
        (f"<{CAPITAL}>/<{BORN}>", (CAPITAL, BORN)),
        (f"<{CAPITAL}> -> ^<{BORN}>", (CAPITAL, f"^{BORN}")),
        (f"{CAPITAL}, {BORN}", (CAPITAL, BORN)),
        (f"{CAPITAL}, then {BORN}", (CAPITAL, BORN)),
        (f"`{CAPITAL}` -> `{BORN}`", (CAPITAL, BORN)),
        (f"**{CAPITAL}** → **{BORN}**", (CAPITAL, BORN)),
        (f"France -> {CAPITAL} -> Paris", (CAPITAL,)),
        (f"France → {CAPITAL} → Paris ← {BORN} ← [answer]", (CAPITAL, f"^{BORN}")),
        (f"France -> {CAPITAL} -> ?city -> {BORN} -> ?x", (CAPITAL, BORN)),
        (f"(France) -[{CAPITAL}]-> (Paris)", (CAPITAL,)),
        (f"France -[{CAPITAL}]-> Paris <-[{BORN}]- ?person", (CAPITAL, f"^{BORN}")),
        (f"France --{CAPITAL}--> Paris", (CAPITAL,)),
        (f"France -{CAPITAL}-> Paris", (CAPITAL,)),
        (f"{{entity}} -> {CAPITAL} -> {{answer}}", (CAPITAL,)),
        (f"2010 World Series -> {CAPITAL}", (CAPITAL,)),
        ("euro -> finance.currency.countries_used", ("euro", "finance.currency.countries_used")),  # may be a relation
        ("France -> capital -> Paris", ("capital",)),
        ("France -> PART_OF -> Europe", ("PART_OF",)),
        ("SUPPLIES -> PART_OF", ("SUPPLIES", "PART_OF")),
        ("Directed By -> Born In", ("Directed By", "Born In")),
        (f"Path 1: {CAPITAL} -> {BORN}", (CAPITAL, BORN)),
        (f"From France: {CAPITAL} -> {BORN}", (CAPITAL, BORN)),
        (f"1. {CAPITAL} -> {BORN}", (CAPITAL, BORN)),
        (f"{CAPITAL} -> {BORN} (finds the people)", (CAPITAL, BORN)),
        (f"{CAPITAL} -> {BORN} # finds the people", (CAPITAL, BORN)),
        (f"{CAPITAL} - the capital", (CAPITAL,)),
        (f"{CAPITAL} (inverse) -> {BORN}", (f"^{CAPITAL}", BORN)),
        (f"{CAPITAL}⁻¹ -> {BORN}", (f"^{CAPITAL}", BORN)),
        (f"reverse({CAPITAL}) -> {BORN}", (f"^{CAPITAL}", BORN)),
        (f'["{CAPITAL}", "{BORN}"]', (CAPITAL,)),  # a list of two paths
        (f'[["{CAPITAL}", "{BORN}"]]', (CAPITAL, BORN)),
        (f'[{{"path": "{CAPITAL} -> {BORN}"}}]', (CAPITAL, BORN)),
        (f"{CAPITAL} -&gt; {BORN}", (CAPITAL, BORN)),
        ("location.country..capital_s -> a.b", ("location.country..capital_s", "a.b")),
        ("None.", ()),
        ("No relation has to be followed.", ()),
        ("The relation paths that lead to the answer are:", ()),
    ],
)
def test_paths_in_any_notation(line: str, path: tuple[str, ...]) -> None:
    assert next(iter(read_paths(f"<paths>\n{line}\n</paths>")), ()) == path


def test_what_the_reply_lists_as_an_entity_is_no_step_of_a_path() -> None:
    text = "<entities>euro</entities><paths>euro -> finance.currency.countries_used</paths>"
    assert read_paths(text) == (("finance.currency.countries_used",),)


def test_relations_of_the_graph_are_steps_however_they_are_spelled() -> None:
    known = {"Capital", "capital", "born in"}.__contains__
    assert read_paths("<paths>france -> capital -> paris</paths>", known) == (("capital",),)
    assert read_paths("<paths>Capital -> born in</paths>", known) == (("Capital", "born in"),)
    assert read_paths("<paths>capitol -> born in</paths>", known) == (("capitol", "born in"),)


QUERY = 'MATCH (c:Country {name: "France"})-[:capital]->(x)\nRETURN x.name'


@each_of(
    "text",
    [
        f"<opencypher>\n{QUERY}\n</opencypher>",
        f"<opencypher>\n```sql\n{QUERY}\n```\n</opencypher>",
        f"<opencypher>\ncypher\n{QUERY}\n</opencypher>",
        f"<opencypher>\nHere is the query:\n\n{QUERY}\n\nThis returns the capital of France.\n</opencypher>",
        f"<opencypher>\n{QUERY}\nIt finds the capital.\n</opencypher>",
        f"<opencypher>\n{QUERY};\n</opencypher>",
        f"```sql\n{QUERY}\n```",
        f"```\n{QUERY}\n```",
        f"~~~cypher\n{QUERY}\n~~~",
        f"```neo4j\n{QUERY}\n```\nThis query finds it.",
        f"I would ask:\n\n{QUERY}\n\nThis should return one row.",
        f"### Query\n\n{QUERY}\n\n### Answers\nParis",
        f"**openCypher query:**\n```cypher\n{QUERY}\n```",
        f"<entities>France</entities>\n```cypher\n{QUERY}\n```",
        f"<query>{QUERY}</query>\n<opencypher>{QUERY}</opencypher>",
        f"The <opencypher> tag holds the query.\n<opencypher>\n{QUERY}\n</opencypher>",
    ],
)
def test_the_query_of_a_reply(text: str) -> None:
    query = read_query(text, "opencypher")
    assert query is not None and query.rstrip(";") == QUERY


def test_two_statements_are_two_queries() -> None:
    other = "MATCH (n) WHERE n.name = 'a;b' RETURN n"
    for between in (";\n", "\n\n", ";\n\n// or\n"):
        assert [
            each.split("\n", 1)[-1] if each.startswith("//") else each
            for each in (read_queries(f"<opencypher>\n{QUERY}{between}{other}\n</opencypher>", "opencypher"))
        ] == [QUERY, other]
    union = f"{QUERY}\nUNION\n{other}"
    assert read_queries(f"<opencypher>{union}</opencypher>", "opencypher") == (union,)
    nested = "CALL {\n  MATCH (a) RETURN a\n}\nMATCH (b) RETURN b"
    assert read_queries(f"<opencypher>{nested}</opencypher>", "opencypher") == (nested,)
    later = "MATCH (a)\nWITH a\nMATCH (a)-->(b)\nRETURN b"
    assert read_queries(f"<opencypher>{later}</opencypher>", "opencypher") == (later,)


def test_sparql_in_the_same_layouts() -> None:
    query = "PREFIX kg: <http://e.org/>\nSELECT ?x WHERE {\n  ?x kg:a ?y ; kg:b ?z .\n}"
    for text in (f"<sparql>{query}</sparql>", f"```\n{query}\n```", f"Query:\n\n{query}\n\nIt selects all of them."):
        assert read_queries(text, "sparql") == (query,)
    assert read_queries(f"<sparql>\n{query}\n\n{query}2\n</sparql>", "sparql") == (query, f"{query}2")


WHOLE = f"""```json
{{
  "entities": ["France", "Paris"],
  "relation_paths": [["{CAPITAL}", "{BORN}"], "{CAPITAL}"],
  "openCypher": "MATCH (n) RETURN n",
  "draft_answers": ["Paris"],
  "bfsql": {{"seeds": ["France"], "max_hops": 1}}
}}
```"""

HEADED = f"""Let me work through the tasks.

## Task 1: Entity extraction
- France
- Paris

## Relation paths
1. {CAPITAL} -> {BORN}
2. {CAPITAL}

## openCypher query
```cypher
MATCH (n) RETURN n
```

## Draft answers
Paris

## Subgraph request
```json
{{"seeds": ["France"], "max_hops": 1}}
```
"""

BOLD = f"""**Entities:**
France
Paris

**Paths:**
{CAPITAL} -> {BORN}
{CAPITAL}

**Query:** `MATCH (n) RETURN n`

**Answers:** Paris

**BFS-QL:** {{"seeds": ["France"], "max_hops": 1}}"""


@each_of("text", [WHOLE, HEADED, BOLD])
def test_all_artifacts_are_found_in_json_and_under_headings(text: str) -> None:
    assert read_list(text, "entities").items == ("France", "Paris")
    assert read_paths(text) == ((CAPITAL, BORN), (CAPITAL,))
    assert read_query(text, "opencypher") == "MATCH (n) RETURN n"
    assert [answer.name for answer in read_answers(text)] == ["Paris"]
    assert read_object(text, "bfsql") == {"seeds": ["France"], "max_hops": 1}


def test_relations_and_entities_that_are_selected() -> None:
    for text in (
        f"<selected>\n1. {CAPITAL}\n2. {BORN}\n</selected>",
        f"Selected relations:\n- `{CAPITAL}`\n- `{BORN}`",
        f'{{"selected": ["{CAPITAL}", "{BORN}"]}}',
        f"I would follow these:\n\n- {CAPITAL}\n- {BORN}",
    ):
        assert read_list(text, "selected", bare=True).items == (CAPITAL, BORN)
    for text in ("<next_entities>\nFrance\n</next_entities>", "**Next entities:** France", "- France"):
        assert read_list(text, "next-entities", bare=True).items == ("France",)
