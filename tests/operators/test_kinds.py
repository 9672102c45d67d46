"""What kind of node a question asks for, told from some of the nodes at the end of a path."""

from __future__ import annotations

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.operators.kinds import Kinds
from byokg.types import EntityId, Mention, Node, Triple

# 50 nodes n00 … n49 lead to s: every third is a Country, every third from the second on a City, the others untyped
IDS = [EntityId(f"n{number:02}") for number in range(50)]


def kinds(types: tuple[str, str, str], by_need: bool = True) -> Kinds:
    nodes = [Node(id, id, types[number % 3]) for number, id in enumerate(IDS)]
    edges = [Triple(id, "speaks", EntityId("s")) for id in IDS]
    return Kinds(ColumnarGraph.from_records([*nodes, Node(EntityId("s"), "s", "Language")], edges), by_need)


def test_whether_a_path_fits_does_not_depend_on_the_order_of_its_ends() -> None:
    of_two = kinds(("Country", "City", "City"))
    countries_first = IDS[::3] + IDS[1::3] + IDS[2::3]
    cities_first = countries_first[::-1]
    assert not of_two.fits(countries_first, "Country") and not of_two.fits(cities_first, "Country")
    assert of_two.fits(countries_first, "City") and of_two.fits(cities_first, "City")


def test_a_third_is_enough_where_the_others_have_no_type() -> None:
    mostly_untyped = kinds(("Country", "", ""))
    assert mostly_untyped.fits(IDS[:6], "Country") and not mostly_untyped.fits(IDS[:6], "City")
    assert not mostly_untyped.fits(IDS[1:6], "Country")  # one of five
    assert not kinds(("", "", "")).fits(IDS, "Country")


def test_a_type_is_asked_for_wherever_its_nodes_stand_among_the_ends() -> None:
    some = kinds(("Country", "City", ""))
    mention = Mention("English", 20, 27)
    for ends in (IDS, IDS[::-1], IDS[::3] + IDS[1::3], IDS[1::3] + IDS[::3]):
        assert some.asked("what countries speak English", (mention,), [ends]) == "Country"
