"""Tests of `byokg.evaluation.profiles`."""

from __future__ import annotations

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles import BYOKG, TEXT2CYPHER


def test_hit_at_2_adds_the_first_draft_to_the_first_answer() -> None:
    assert BYOKG.score(Case("q", ("Rome",), ("Oslo", "Lima"), drafts=("rome", "Quito"))) == (0.0, 1.0)
    assert BYOKG.score(Case("q", ("Rome",), ("Oslo", "Rome"), drafts=("Lima",))) == (1.0, 0.0)


def test_text2cypher_compares_the_values_of_the_gold_rows() -> None:
    rows = (("Chai", 18.0), ("Chang", None))
    assert TEXT2CYPHER.score(Case("q", ("-",), ("chai", "18", "Chang"), rows=rows)) == (1.0, 1.0)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Chai",), rows=rows)) == (0.5, 0.0)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Tofu",), rows=rows)) == (0.0, 0.0)
    assert not TEXT2CYPHER.scorable(Case("q", ("-",), ("Chai",)))


def test_values_within_lists_and_maps_of_a_row_count_each() -> None:
    rows = ((("Chai", "Chang"), {"unit": "box", "price": None}),)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Chang", "Chai", "Box"), rows=rows)) == (1.0, 1.0)
    assert not TEXT2CYPHER.scorable(Case("q", ("-",), rows=((None, (None,)),)))


def test_a_node_in_a_row_is_its_name() -> None:
    node = {"id": "Product/1", "name": "Chai", "type": "Product", "properties": {"unitPrice": 18.0}}
    assert TEXT2CYPHER.score(Case("q", ("-",), ("Chai",), rows=((node,),))) == (1.0, 1.0)
    assert TEXT2CYPHER.score(Case("q", ("-",), ("18",), rows=((node,),))) == (0.0, 0.0)
