"""Messy replies of strong and weak models, each read as a person would read it.

Tables, nested bullets, numbered JSON, tags left open, thoughts, apologies, fences, calls of tools, citations in words
and in other scripts' brackets, answers that were taken back, and the ways to say that there is none.
"""

from __future__ import annotations

from byokg.llm.parsing import read_answers, read_list, read_paths, read_query
from tests.corpora import each_of

PARIS = {"Paris": ("e3",)}
BOTH = {"Paris": ("e3",), "Lyon": ("e4",)}


@each_of(
    ("text", "said"),
    [
        (
            "<answers>\n| Answer | Evidence |\n|---|---|\n| Paris | e3 |\n| Lyon | e4, e5 |\n</answers>",
            {"Paris": ("e3",), "Lyon": ("e4", "e5")},
        ),
        (
            "<answers>\n| # | Answer | Supporting facts |\n|:-:|:--|:--|\n| 1 | **Paris** | [e3] |\n"
            "| 2 | Lyon | [e4] |\n</answers>",
            BOTH,
        ),
        (
            "<answers>\n| Name | Citation | Reason |\n|---|---|---|\n| Paris | [e3] | capital of France |\n</answers>",
            PARIS,
        ),
        ("<answers>\n- Cities:\n  - Paris [e3]\n  - Lyon [e4]\n</answers>", BOTH),
        ("<answers>\n1. Paris\n   - Evidence: [e3]\n2. Lyon\n   - Evidence: [e4]\n</answers>", BOTH),
        ("<answers>\n* **Paris** [e3]\n    * capital of France\n</answers>", PARIS),
        ("<answers>\n**1. Paris** [e3]\n**2. Lyon** [e4]\n</answers>", BOTH),
        (
            '```json\n[{"id": 1, "answer": "Paris", "citations": ["e3"]}, '
            '{"id": 2, "answer": "Lyon", "citations": ["e4"]}]\n```',
            BOTH,
        ),
        ('{"1": {"answer": "Paris", "citations": ["e3"]}, "2": {"answer": "Lyon", "citations": ["e4"]}}', BOTH),
        ('<answers>\n{"1": "Paris [e3]", "2": "Lyon [e4]"}\n</answers>', BOTH),
        ("<answers>\n<answer>Paris [e3]</answer>\n<answer>Lyon [e4]</answer>\n</answers>", BOTH),
        ("<answers>\n<answer><name>Paris</name><citation>e3</citation></answer>\n</answers>", PARIS),
        ("<answers>\n<item>Paris [e3]\n<item>Lyon [e4]\n", BOTH),
        ("<answers>Paris [e3]\nLyon [e4]", BOTH),
        (
            "<think>The answer could be <answers>London [e1]</answers>, no.</think>\n<answers>\nParis [e3]\n</answers>",
            PARIS,
        ),
        ("London? no.\n</think>\n\n<answers>\nParis [e3]\n</answers>", PARIS),
        ("<thinking>Look at e1.</thinking><answers>Paris [e3]</answers>", PARIS),
        ("<reasoning>\nParis is the capital.\n</reasoning>\n<answers>\nParis [e3]\n</answers>", PARIS),
        (
            "I apologize for the confusion in my earlier reply. Here is the corrected answer:\n\n"
            "<answers>\nParis [e3]\n</answers>\n\nLet me know if you need more!",
            PARIS,
        ),
        ("Sorry about that!\n<answers>\nParis [e3]\n</answers>", PARIS),
        ("```xml\n<answers>\nParis [e3]\n</answers>\n```", PARIS),
        ("```\n<answers>\nParis [e3]\n</answers>\n```", PARIS),
        ("```markdown\n## Answers\n- Paris [e3]\n- Lyon [e4]\n```", BOTH),
        ('{"name": "submit_answer", "arguments": {"answers": [{"answer": "Paris", "citations": ["e3"]}]}}', PARIS),
        ('<tool_call>\n{"name": "answer", "arguments": {"answers": ["Paris [e3]"]}}\n</tool_call>', PARIS),
        (
            '{"tool_calls": [{"function": {"name": "answers", "arguments": "{\\"answers\\": [\\"Paris [e3]\\"]}"}}]}',
            PARIS,
        ),
        ("<answers>\nParis [1-3]\n</answers>", {"Paris": ("e1", "e2", "e3")}),
        ("<answers>\nParis (1, 2)\n</answers>", {"Paris": ("e1", "e2")}),
        ("<answers>\nParis 【1】\n</answers>", {"Paris": ("e1",)}),
        ("<answers>\nParis 【e3†source】\n</answers>", PARIS),
        ("<answers>\nParis (lines 2 and 4)\n</answers>", {"Paris": ("e2", "e4")}),
        ("<answers>\nParis [lines 2 and 4]\n</answers>", {"Paris": ("e2", "e4")}),
        ("<answers>\nParis (line 3)\n</answers>", PARIS),
        ("<answers>\nParis, lines 2 and 4\n</answers>", {"Paris": ("e2", "e4")}),
        ("<answers>\nParis — see facts 2 and 4\n</answers>", {"Paris": ("e2", "e4")}),
        ("<answers>\nParis (facts e3)\n</answers>", PARIS),
        ("<answers>\nParis [fact 3]\n</answers>", PARIS),
        ("<answers>\nParis [^3]\n</answers>", PARIS),
        ("<answers>\nParis ^[e3]^\n</answers>", PARIS),
        ("<answers>\nParis<sup>e3</sup>\n</answers>", PARIS),
        ("<answers>\nParis [e3]<br>Lyon [e4]\n</answers>", BOTH),
        (
            "<answers>\nLondon [e1]\n</answers>\n\nActually, that is wrong: e3 says the capital is Paris.\n\n"
            "<answers>\nParis [e3]\n</answers>",
            PARIS,
        ),
        ("<answers>\nLondon [e1]\nActually, Paris [e3]\n</answers>", PARIS),
        ("<answers>\nLondon [e1]\nWait, no: Paris [e3]\n</answers>", PARIS),
        ("<answers>\n~~London [e1]~~ Paris [e3]\n</answers>", PARIS),
        ("<answers>\nLondon [e1] — correction: Paris [e3]\n</answers>", PARIS),
        ("<answers>\nThe graph does not contain this information.\n</answers>", {}),
        ("<answers>\n</answers>", {}),
        ("<answers/>", {}),
        ("<answers>\n(empty)\n</answers>", {}),
        ("<answers>\n[]\n</answers>", {}),
        ("<answers>\nNo answer found.\n</answers>", {}),
        ("<answers>\nI'm sorry, but the facts don't say.\n</answers>", {}),
        ("<answers>\nKeine Antwort\n</answers>", {}),
        ("<answers>\n无法回答\n</answers>", {}),
        ("<answers>\nAucune réponse\n</answers>", {}),
        ("<answers>\nNo se puede determinar\n</answers>", {}),
        ("<answers>\nN/A [e3]\n</answers>", {}),
        ("<answers>\nUnknown [e3]\n</answers>", {}),
        ("<answers>\nCannot be determined from the given facts [e1-e5]\n</answers>", {}),
        ("<answers>\nParis[e3]\n</answers>", PARIS),
        ("<answers>\nParis ｛e3｝\n</answers>", PARIS),
        ("<answers>\nParis（e3）\n</answers>", PARIS),
        ("<answers>\nParis ［e3］\n</answers>", PARIS),
        ("<answers>\n「Paris」[e3]\n</answers>", PARIS),
        ("<answers>\n1、Paris [e3]\n2、Lyon [e4]\n</answers>", BOTH),
        ("<answers>\n① Paris [e3]\n② Lyon [e4]\n</answers>", BOTH),
        ("<answers>\na) Paris [e3]\nb) Lyon [e4]\n</answers>", BOTH),
        ("<answers>\n✅ Paris [e3]\n</answers>", PARIS),
        ("<answers>\n→ Paris [e3]\n</answers>", PARIS),
        ("<answers>\nParis ⟵ [e3]\n</answers>", PARIS),
        ("<answers>\nAnswer 1: Paris [e3]\nAnswer 2: Lyon [e4]\n</answers>", BOTH),
        ("<answers>\nParis | [e3]\nLyon | [e4]\n</answers>", BOTH),
        ("<answers>\nParis\t[e3]\n</answers>", PARIS),
        ('<answers>\n"Paris": ["e3"],\n"Lyon": ["e4"]\n</answers>', BOTH),
        ("**Answer:** Paris [e3]", PARIS),
        ("### Final Answer\n\nParis [e3]", PARIS),
        ("Final answer: Paris [e3]", PARIS),
        ("The answer is **Paris** [e3].", PARIS),
        ("Réponse : Paris [e3]", PARIS),
        ("Antwort: Paris [e3]", PARIS),
        ("答案：Paris [e3]", PARIS),
        ("\\boxed{Paris} [e3]", PARIS),
        ("$\\boxed{\\text{Paris}}$ [e3]", PARIS),
        ("<answer>\nParis\n</answer>\n<citations>\ne3\n</citations>", PARIS),
        ("<answers>\nParis\n</answers>\nEvidence: [e3]", PARIS),
        ("<answers>\nParis\n</answers>\n[e3]", PARIS),
        ("<answers>\nParis [e3] ✓\n</answers>", PARIS),
        ("<answers>\nParis [e3] (confidence: 0.9)\n</answers>", PARIS),
        ("<answers>\nParis (confidence 95%) [e3]\n</answers>", PARIS),
        ("<answers>\nParis [e3] (high confidence)\n</answers>", PARIS),
        ("<|start_header_id|>assistant<|end_header_id|>\n<answers>\nParis [e3]\n</answers><|eot_id|>", PARIS),
        ("<answers>\nParis [e3]</s>\n</answers>", PARIS),
        ("<answers>\nParis [e3]<|im_end|>", PARIS),
        ("<|channel|>final<|message|><answers>\nParis [e3]\n</answers>", PARIS),
        ("[ANSWERS]\nParis [e3]\n[/ANSWERS]", PARIS),
        ("{answers}\nParis [e3]\n{/answers}", PARIS),
        ("answers:\n  - name: Paris\n    citations: [e3]\n  - name: Lyon\n    citations: [e4]", BOTH),
        ("```yaml\nanswers:\n  - Paris [e3]\n  - Lyon [e4]\n```", BOTH),
        ("<ANSWERS>\nParis [E3]\n</ANSWERS>", PARIS),
        ("<answers>\nParis [e03]\n</answers>", PARIS),
        ("<answers>\nParis [e 3]\n</answers>", PARIS),
        ("<answers>\nParis [e3, e3]\n</answers>", PARIS),
        ("<answers>\nParis [e3 & e4]\n</answers>", {"Paris": ("e3", "e4")}),
        ("<answers>\nParis [e3 / e4]\n</answers>", {"Paris": ("e3", "e4")}),
        ("<answers>\nParis [e3: France → capital → Paris]\n</answers>", PARIS),
        (
            "<answers>\nSt. Louis [e3]\nWashington, D.C. [e4]\n</answers>",
            {"St. Louis": ("e3",), "Washington, D.C.": ("e4",)},
        ),
        ("<answers>\n1984 [e3]\n</answers>", {"1984": ("e3",)}),
        ("<answers>\n$1,000 [e3]\n</answers>", {"$1,000": ("e3",)}),
        ("<answers>\n2 [e3]\n</answers>", {"2": ("e3",)}),
        ("<answers>\n1. 1999 [e3]\n2. 2001 [e4]\n</answers>", {"1999": ("e3",), "2001": ("e4",)}),
        ("<answers>\nParis (France) [e3]\n</answers>", {"Paris (France)": ("e3",)}),
        ("<answers>\nI Am Not There [e3]\n</answers>", {"I Am Not There": ("e3",)}),
        ("<answers>\nNobody [e3]\n</answers>", {"Nobody": ("e3",)}),
    ],
)
def test_answers_of_messy_replies(text: str, said: dict[str, tuple[str, ...]]) -> None:
    assert {answer.name: answer.citations for answer in read_answers(text)} == said


@each_of(
    "line",
    [
        "I'm sorry, but the facts don't say.",
        "Keine Antwort",
        "无法回答",
        "Aucune réponse",
        "No se puede determinar",
        "нет ответа",
        "該当なし",
        "無",
        "Desconhecido",
        "Unknown [e3]",
    ],
)
def test_no_answer_in_many_words_and_languages(line: str) -> None:
    assert read_answers(f"<answers>\n{line}\n</answers>") == ()


@each_of("arrow", [*"→⟶➔➜⇒⟹⟾↦⟼▶▸►⇢➝➞⭢⮕⇨⤳⇥↠↣⇾➙➛➤🡒", "~>", "|>", "->", "-->", "=>", ">>", "›", "»"])
def test_any_arrow_leads_from_one_relation_to_the_next(arrow: str) -> None:
    path = f"film.directed_by {arrow} person.spouse"
    assert read_paths(f"<paths>\n{path}\n</paths>") == (("film.directed_by", "person.spouse"),)


@each_of("arrow", ["←", "⟵", "⇐", "⇠", "⬅", "<-", "<--", "<~"])
def test_any_arrow_back_walks_a_relation_backwards(arrow: str) -> None:
    path = f"film.directed_by {arrow} film.genre"
    assert read_paths(f"<paths>\n{path}\n</paths>") == (("film.directed_by", "^film.genre"),)


@each_of(
    ("content", "paths"),
    [
        ("| # | path |\n|---|---|\n| 1 | a.b -> c.d |\n| 2 | a.b |", (("a.b", "c.d"), ("a.b",))),
        ('{"paths": [["a.b", "c.d"], ["a.b"]]}', (("a.b", "c.d"), ("a.b",))),
        ('["a.b", "c.d"]\n["a.b"]', (("a.b", "c.d"), ("a.b",))),
        ("1. `a.b` → `c.d`\n2. `a.b`", (("a.b", "c.d"), ("a.b",))),
        ("(Heat)-[:a.b]->(?)-[:c.d]->(?)", (("a.b", "c.d"),)),
        ("Heat --a.b--> ? --c.d--> ?", (("a.b", "c.d"),)),
        ("a.b⁻¹ → c.d", (("^a.b", "c.d"),)),
        ("No paths are needed.", ()),
    ],
)
def test_paths_of_messy_replies(content: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert read_paths(f"<paths>\n{content}\n</paths>") == paths


QUERY = "MATCH (a:Country {name: 'France'}) RETURN a.capital"


@each_of(
    "text",
    [
        f"<opencypher>\n1. {QUERY}\n</opencypher>",
        f"<opencypher>\nQuery: {QUERY}\n</opencypher>",
        f'<opencypher>\n"{QUERY}"\n</opencypher>',
        f"<opencypher><![CDATA[{QUERY}]]></opencypher>",
        f'{{"name": "run_query", "arguments": {{"query": "{QUERY}"}}}}',
        f'<tool_call>\n{{"name": "cypher", "arguments": {{"opencypher": "{QUERY}"}}}}\n</tool_call>',
        f"<opencypher>{QUERY}",
        f"<openCypher>\n{QUERY}\n</openCypher>\n\nActually I should double check.",
    ],
)
def test_queries_of_messy_replies(text: str) -> None:
    assert read_query(text, "opencypher") == QUERY


@each_of(
    ("content", "items"),
    [
        ("| Entity |\n|---|\n| France |\n| Paris |", ("France", "Paris")),
        ("- **France**\n- *Paris*", ("France", "Paris")),
        ("<entity>France</entity>\n<entity>Paris</entity>", ("France", "Paris")),
        ("a) France\nb) Paris", ("France", "Paris")),
        ("1、France\n2、Paris", ("France", "Paris")),
        ("无", ()),
        ("keine", ()),
        ("aucune", ()),
        ("None (already explored)", ()),
    ],
)
def test_entities_of_messy_replies(content: str, items: tuple[str, ...]) -> None:
    assert read_list(f"<entities>\n{content}\n</entities>", "entities").items == items
