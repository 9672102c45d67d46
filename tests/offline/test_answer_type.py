"""What kind of node a question asks for, told from some of the nodes at the end of a path."""

from __future__ import annotations

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.offline.answer_type import AnswerType, AnswerTypePredictor
from byokg.offline.schema_linking import SampledStatistics, SchemaStatistics
from byokg.types import EntityId, Mention, Node, Triple

# 50 nodes n00 … n49 lead to s: every third is a Country, every third from the second on a City, the others untyped
IDS = [EntityId(f"n{number:02}") for number in range(50)]


def typed(*types: str) -> AnswerType:
    return AnswerType(frozenset(types))


def kinds(types: tuple[str, str, str], walked: bool = True) -> AnswerTypePredictor:
    nodes = [Node(id, id, types[number % 3]) for number, id in enumerate(IDS)]
    edges = [Triple(id, "speaks", EntityId("s")) for id in IDS]
    graph = ColumnarGraph.from_records([*nodes, Node(EntityId("s"), "s", "Language")], edges)
    return AnswerTypePredictor(SchemaStatistics(graph) if walked else SampledStatistics(graph))


def test_whether_a_path_fits_does_not_depend_on_the_order_of_its_ends() -> None:
    of_two = kinds(("Country", "City", "City"))
    countries_first = IDS[::3] + IDS[1::3] + IDS[2::3]
    cities_first = countries_first[::-1]
    assert not of_two.is_compatible(countries_first, typed("Country")) and not of_two.is_compatible(
        cities_first, typed("Country")
    )
    assert of_two.is_compatible(countries_first, typed("City")) and of_two.is_compatible(cities_first, typed("City"))


def test_a_third_is_enough_where_the_others_have_no_type() -> None:
    mostly_untyped = kinds(("Country", "", ""))
    assert mostly_untyped.is_compatible(IDS[:6], typed("Country")) and not mostly_untyped.is_compatible(
        IDS[:6], typed("City")
    )
    assert not mostly_untyped.is_compatible(IDS[1:6], typed("Country"))  # one of five
    assert not kinds(("", "", "")).is_compatible(IDS, typed("Country"))


def test_a_type_is_asked_for_wherever_its_nodes_stand_among_the_ends() -> None:
    some = kinds(("Country", "City", ""))
    mention = Mention("English", 20, 27)
    for ends in (IDS, IDS[::-1], IDS[::3] + IDS[1::3], IDS[1::3] + IDS[::3]):
        assert some.predict("what countries speak English", (mention,), [ends]) == typed("Country")


# Ann and Ben play in Red, who are coached by Cid; the film Up was made by Dora, who was born in 1950.
UNTYPED = [("Ann", "plays_in_club", "Red"), ("Ben", "plays_in_club", "Red"), ("Red", "is_coached_by", "Cid")]
UNTYPED += [("Up", "film__film__director", "Dora"), ("Dora", "born", "1950")]


def test_without_types_relations_say_what_their_ends_are() -> None:
    graph = ColumnarGraph.from_triples(UNTYPED)
    of = AnswerTypePredictor(SampledStatistics(graph))
    ends = [EntityId(name) for name in ("Ann", "Ben", "Red", "Cid", "Up", "Dora", "1950")]
    found = {
        noun: of.filter(ends, of.predict(f"which {noun} are there", (), ()))
        for noun in ("players", "clubs", "films", "directors", "rivers")
    }
    assert found == {
        "players": ("Ann", "Ben"),
        "clubs": ("Red",),
        "films": ("Up",),
        "directors": ("Dora",),
        "rivers": (),
    }
    assert of.filter_candidates(ends[:3], AnswerType(heads=frozenset([0]))) == tuple(ends[:3])
    assert of.filter_candidates(ends[2:], AnswerType(heads=frozenset([0]))) == ()


def test_nobody_is_a_date() -> None:
    of = AnswerTypePredictor(SampledStatistics(ColumnarGraph.from_triples(UNTYPED)))
    assert of.may_answer("Who made Dora?", [[EntityId("1950")]]) == [False]
    assert of.may_answer("Who made Up?", [[EntityId("1950"), EntityId("Dora")]]) == [True]
    assert of.may_answer("When was Dora born?", [[EntityId("1950")]]) == [True]


def test_a_type_may_be_meant_by_another_noun() -> None:
    nodes = [Node(EntityId(type), type, type) for type in ("Manufacturer", "DrugClass", "Medicine")]
    graph = ColumnarGraph.from_records(nodes, [])
    near = {("company", "manufacturer"): 0.7, ("drug", "medicine"): 0.7, ("drug", "class"): 0.1}
    of = AnswerTypePredictor(SampledStatistics(graph), likeness=lambda noun, other: near.get((noun, other), 0.0))
    assert of.predict("which companies are there", (), ()) == AnswerType(frozenset({"Manufacturer"}), similarity=0.7)
    assert of.predict("which drugs are there", (), ()) == AnswerType(frozenset({"Medicine"}), similarity=0.7)
    assert not of.predict("which rivers are there", (), ())


def test_of_relations_with_one_verb_those_say_less_whose_heads_are_called_otherwise() -> None:
    league = [("Red", "plays_in_league", "First"), ("Blue", "plays_in_league", "First")]
    both = AnswerTypePredictor(
        SampledStatistics(ColumnarGraph.from_triples([*UNTYPED, ("Cay", "plays_in_club", "Blue"), *league]))
    )
    alone = AnswerTypePredictor(SampledStatistics(ColumnarGraph.from_triples(league)))
    people, clubs = [EntityId(name) for name in ("Ann", "Ben", "Cay")], [EntityId("Red"), EntityId("Blue")]
    asked = both.predict("which players are there", (), ())
    assert both.filter([*people, *clubs], asked) == tuple(people)
    assert alone.filter(clubs, alone.predict("which players are there", (), ())) == tuple(clubs)


SHOP = [Node(EntityId(type), type, type) for type in ("Order", "Customer", "Warehouse", "Product")]


def test_who_and_where_ask_for_what_may_be_a_person_or_a_place() -> None:
    of = AnswerTypePredictor(SampledStatistics(ColumnarGraph.from_records([*SHOP, Node(EntityId("x"), "x", "")], [])))
    ends = [*(node.id for node in SHOP), EntityId("x")]
    assert of.filter(ends, of.predict("Who has ordered it?", (), ())) == ("Customer", "x")
    assert of.filter(ends, of.predict("To whom was it sold?", (), ())) == ("Customer", "x")
    assert of.filter(ends, of.predict("Whose order is it?", (), ())) == ("Customer", "x")
    assert of.filter(ends, of.predict("Where is it kept?", (), ())) == ("Warehouse", "x")
    assert not of.predict("What was ordered?", (), ())
    people = AnswerTypePredictor(
        SampledStatistics(ColumnarGraph.from_records([Node(EntityId("a"), "a", "Person")], []))
    )
    assert not people.predict("Who knows her?", (), ())  # where all may be, nothing is told


def test_no_place_is_a_date() -> None:
    of = AnswerTypePredictor(SampledStatistics(ColumnarGraph.from_triples(UNTYPED)))
    assert of.may_answer("Where was Dora born?", [[EntityId("1950")]]) == [False]


def test_nodes_that_relations_call_by_a_synonym_are_meant_a_little() -> None:
    of = AnswerTypePredictor(SampledStatistics(ColumnarGraph.from_triples(UNTYPED)))
    meant = of.predict("which movies are there", (), ())
    assert of.filter([EntityId("Up"), EntityId("Dora")], meant) == ("Up",)
    assert not meant.exact
