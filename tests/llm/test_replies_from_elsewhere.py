"""Replies as models write them elsewhere: other languages' bullets, quotes, words and brackets, emoji that count,
LaTeX, boxes to tick, superscripts, footnotes, half-closed tags, calls of tools, triples in the place of paths.
"""

from __future__ import annotations

from byokg.llm.parsing import read_answers, read_list, read_paths, read_query
from tests.corpora import each_of


@each_of(
    ("text", "said"),
    [
        ("<answers>\n・Paris [e3]\n・Lyon [e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\n一、北京 [e1]\n二、上海 [e2]\n</answers>", {"北京": ("e1",), "上海": ("e2",)}),
        ("<answers>\n1️⃣ Paris [e3]\n2️⃣ Lyon [e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\n- France:\n  - Paris [e3]\n  - Lyon [e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        (
            "<answers>\n| Answer | Evidence |\n|:---|---:|\n| Paris | e3 |\n| Lyon | e4, e5 |\n</answers>",
            {"Paris": ("e3",), "Lyon": ("e4", "e5")},
        ),
        ("<answers>\n$\\text{Paris}$ [e3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\n\\boxed{\\text{Paris}} [e3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\n\\textbf{Paris} [e3]\n</answers>", {"Paris": ("e3",)}),
        ("The answer is $\\boxed{Paris}$.", {"Paris": ()}),
        (
            '{"name": "a", "arguments": "{\\"answers\\": [{\\"answer\\": \\"Paris\\", \\"citations\\": [\\"e3\\"]}]}"}',
            {"Paris": ("e3",)},
        ),
        (
            '<tool_call>\n{"name": "submit", "arguments": {"answers": ["Paris [e3]", "Lyon [e4]"]}}\n</tool_call>',
            {"Paris": ("e3",), "Lyon": ("e4",)},
        ),
        ('{"tool_calls":[{"function":{"name":"answer","arguments":{"answers":["Paris [e3]"]}}}]}', {"Paris": ("e3",)}),
        ("<answers>\nParis [e3]\n</answer", {"Paris": ("e3",)}),
        ("<answers>\nParis [e3]\n</", {"Paris": ("e3",)}),
        ("<answers\nParis [e3]\n</answers>", {"Paris": ("e3",)}),
        ("answers>\nParis [e3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis [1-3]\n</answers>", {"Paris": ("e1", "e2", "e3")}),
        ("<answers>\nParis (1)\nLyon (2)\n</answers>", {"Paris": ("e1",), "Lyon": ("e2",)}),
        ("<answers>\nParis¹\nLyon² ³\n</answers>", {"Paris": ("e1",), "Lyon": ("e2", "e3")}),
        ("<answers>\nParis ¹²\n</answers>", {"Paris": ("e12",)}),
        ("<answers>\nParis „1“\n</answers>", {"Paris": ("e1",)}),
        ("<answers>\n„Paris“ [e3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\n›Paris‹ [e3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\n»Paris« [e3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\n❶ Paris [e3]\n❷ Lyon [e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\n🥇 Paris [e3]\n🥈 Lyon [e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        (
            "<answers>\ni. Paris [e3]\nii. Lyon [e4]\niii. Nice [e5]\n</answers>",
            {"Paris": ("e3",), "Lyon": ("e4",), "Nice": ("e5",)},
        ),
        ("<answers>\na. Paris [e3]\nb. Lyon [e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\nParis [^3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis[^e3]\n\n[^e3]: Paris → capital_of → France\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis {e3}\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis \\cite{e3,e4}\n</answers>", {"Paris": ("e3", "e4")}),
        ("<answers>\nParis $^{[3]}$\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis [e3][e4], [e5]\n</answers>", {"Paris": ("e3", "e4", "e5")}),
        ("<answers>\nParis [E3]–[E5]\n</answers>", {"Paris": ("e3", "e4", "e5")}),
        ("<answers>\nParis [e3 bis e5]\n</answers>", {"Paris": ("e3", "e4", "e5")}),
        ("<answers>\nParis [e3 und e5]\n</answers>", {"Paris": ("e3", "e5")}),
        ("<answers>\nParis [e3 et e5]\n</answers>", {"Paris": ("e3", "e5")}),
        ("<answers>\nParis [Fakt 3]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis (Quelle: e3)\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\nParis（e3、e4）\n</answers>", {"Paris": ("e3", "e4")}),
        ("<answers>\n巴黎（证据：e3）\n</answers>", {"巴黎": ("e3",)}),
        ("## Antwort\n- Paris [e3]\n", {"Paris": ("e3",)}),
        ("**Réponse :** Paris [e3]", {"Paris": ("e3",)}),
        ("<answers>\n- [x] Paris [e3]\n- [ ] Lyon [e4]\n</answers>", {"Paris": ("e3",)}),
        ("<answers>\n<li>Paris [e3]</li>\n<li>Lyon [e4]</li>\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\n<ul><li>Paris [e3]</li><li>Lyon [e4]</li></ul>\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        (
            '<answers><answer cite="e3">Paris</answer><answer cite="e4">Lyon</answer></answers>',
            {"Paris": ("e3",), "Lyon": ("e4",)},
        ),
        (
            "<answers>\nanswer: Paris\ncitations: [e3, e4]\n\nanswer: Lyon\ncitations: [e5]\n</answers>",
            {"Paris": ("e3", "e4"), "Lyon": ("e5",)},
        ),
        (
            "<answers>\n- name: Paris\n  cites: e3\n- name: Lyon\n  cites: e4\n</answers>",
            {"Paris": ("e3",), "Lyon": ("e4",)},
        ),
        ("```yaml\nanswers:\n  - Paris [e3]\n  - Lyon [e4]\n```", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\nParis,[e3]\nLyon,[e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\nParis\t[e3]\nLyon\t[e4]\n</answers>", {"Paris": ("e3",), "Lyon": ("e4",)}),
        ("<answers>\nWashington, D.C. [e3]\n</answers>", {"Washington, D.C.": ("e3",)}),
        ("<answers>\n1984 [e3]\n</answers>", {"1984": ("e3",)}),
        ("<answers>\n3 [e2]\n</answers>", {"3": ("e2",)}),
        ("<answers>\nUnited States Dollar ($) [e3]\n</answers>", {"United States Dollar ($)": ("e3",)}),
        ("<answers>\nH₂O [e3]\n</answers>", {"H₂O": ("e3",)}),
        ("<answers>\nm² [e3]\n</answers>", {"m²": ("e3",)}),
        ("<answers>\nApollo 11 (e3)\n</answers>", {"Apollo 11": ("e3",)}),
        ("<answers>\nBoeing 747 [e3]\n</answers>", {"Boeing 747": ("e3",)}),
        ("<answers>\nKeine Antwort im Graphen gefunden.\n</answers>", {}),
        ("<answers>\nLa réponse ne figure pas dans les faits.\n</answers>", {}),
        ("<answers>\n🤷 Unknown\n</answers>", {}),
        ("<answers>\n∅\n</answers>", {}),
    ],
)
def test_answers_of_replies_from_elsewhere(text: str, said: dict[str, tuple[str, ...]]) -> None:
    assert {one.name: one.citations for one in read_answers(text)} == said


@each_of(
    ("text", "items"),
    [
        ("<entities>\n・東京\n・大阪\n</entities>", ("東京", "大阪")),
        ("<entities>\n1️⃣ Paris\n2️⃣ Lyon\n</entities>", ("Paris", "Lyon")),
        ("<entities>\n- Cities\n    - Paris\n    - Lyon\n</entities>", ("Cities", "Paris", "Lyon")),
        ("<entities>\n• „Paris“\n• „Lyon“\n</entities>", ("Paris", "Lyon")),
        ("<entities>Paris; Lyon; Nice</entities>", ("Paris", "Lyon", "Nice")),
        ("<entities>\n* **Paris** – the capital\n* **Lyon** – a city\n</entities>", ("Paris", "Lyon")),
        ("<entities>\nParis (city)\nLyon (city)\n</entities>", ("Paris (city)", "Lyon (city)")),
        ("<entities>\n- entity: Paris\n- entity: Lyon\n</entities>", ("Paris", "Lyon")),
        ("<entities>\n<entity>Paris</entity>\n<entity>Lyon</entity>\n</entities>", ("Paris", "Lyon")),
        ("<entities>\n🔹 Paris\n🔹 Lyon\n</entities>", ("Paris", "Lyon")),
        ("Entités :\n- Paris\n- Lyon\n", ("Paris", "Lyon")),
        ("<entities>\nKeine\n</entities>", ()),
        ("<entities>\nFERTIG\n</entities>", ("FERTIG",)),
    ],
)
def test_entities_of_replies_from_elsewhere(text: str, items: tuple[str, ...]) -> None:
    assert read_list(text, "entities").items == items


@each_of(
    ("text", "paths"),
    [
        (
            "<paths>\n`film.film.directed_by` ⇒ `people.person.nationality`\n</paths>",
            (("film.film.directed_by", "people.person.nationality"),),
        ),
        (
            "<paths>\n$film.film.directed\\_by \\rightarrow people.person.nationality$\n</paths>",
            (("film.film.directed_by", "people.person.nationality"),),
        ),
        ("<paths>\n| Path |\n|---|\n| directed_by -> nationality |\n</paths>", (("directed_by", "nationality"),)),
        (
            "<paths>\n1️⃣ directed_by → nationality\n2️⃣ written_by → nationality\n</paths>",
            (("directed_by", "nationality"), ("written_by", "nationality")),
        ),
        ("<paths>\n- directed_by\n  - nationality\n</paths>", (("directed_by",), ("nationality",))),
        ("<paths>\nHeat —[directed_by]→ Michael Mann —[nationality]→ ?\n</paths>", (("directed_by", "nationality"),)),
        ("<paths>\n?film directed_by ?d . ?d nationality ?x\n</paths>", (("directed_by", "nationality"),)),
        ("<paths>\n(Heat, directed_by, ?d), (?d, nationality, ?x)\n</paths>", (("directed_by", "nationality"),)),
        ("<paths>\ndirected_by ⟶ nationality  [e3]\n</paths>", (("directed_by", "nationality"),)),
        ("<paths>\ndirected_by | nationality\n</paths>", (("directed_by", "nationality"),)),
        ("<paths>\nHeat ==directed_by==> Michael Mann ==nationality==> ?\n</paths>", (("directed_by", "nationality"),)),
        ('<paths>\n["directed_by" → "nationality"]\n</paths>', (("directed_by", "nationality"),)),
    ],
)
def test_paths_of_replies_from_elsewhere(text: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert read_paths(text) == paths


@each_of(
    ("text", "query"),
    [
        ("<opencypher>\n```\ncypher\nMATCH (n) RETURN n\n```\n</opencypher>", "MATCH (n) RETURN n"),
        ("<opencypher>\n$$MATCH (n) RETURN n$$\n</opencypher>", "MATCH (n) RETURN n"),
        ("<opencypher>\nHier ist die Abfrage:\nMATCH (n) RETURN n\n</opencypher>", "MATCH (n) RETURN n"),
        ("<opencypher>MATCH (n) RETURN n</opencypher", "MATCH (n) RETURN n"),
        (
            "<opencypher>\nMATCH (n)\nRETURN n\n\nDiese Abfrage findet alle Knoten.\n</opencypher>",
            "MATCH (n)\nRETURN n",
        ),
        ('{"tool":"run_query","arguments":{"opencypher":"MATCH (n)\\nRETURN n"}}', "MATCH (n)\nRETURN n"),
        ("> MATCH (n)\n> RETURN n\n", "MATCH (n)\nRETURN n"),
        ("<opencypher>\n1. MATCH (n) RETURN n\n</opencypher>", "MATCH (n) RETURN n"),
    ],
)
def test_queries_of_replies_from_elsewhere(text: str, query: str) -> None:
    assert read_query(text, "opencypher") == query
