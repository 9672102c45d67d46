"""Operations over a small graph, compared with what is worked out by hand, and values of properties as answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.property_view import PropertyView, is_value, viewed
from byokg.graph.store import Direction
from byokg.linking.parts import Parts
from byokg.offline.execute import ExecutionSettings
from byokg.offline.facts import passes, period
from byokg.offline.parse_constraints import TemporalConstraint
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.verbalize import verbalize
from byokg.text.dates import read_date
from byokg.types import ComputedEvidence, EntityId, Question
from tests.linking.graphs import EMBEDDER

NODES = """id,name,type,salary:int,founded:date,population:int
p1,Ada,Person,5000,,
p2,Ben,Person,4000,,
p3,Cleo,Person,6500,,
c1,Acme,Company,,1906-04-18,
c2,Initech,Company,,1950-01-02,
t1,Arlen,City,,,90000
t2,Bergen,City,,,280000
"""
EDGES = """head,relation,tail,start:int,end:int
p1,works_for,c1,2001,2005
p1,works_for,c2,2006,
p2,works_for,c1,1999,2003
p3,works_for,c1,2010,
c1,based_in,t1,,
c2,based_in,t2,,
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> ColumnarGraph:
    folder: Path = tmp_path_factory.mktemp("firm")
    (folder / "nodes.csv").write_text(NODES, "utf-8")
    (folder / "edges.csv").write_text(EDGES, "utf-8")
    return import_graph(folder)


BRIDGES = """id,name,type,opened
b1,Iron Bridge,Bridge,1890-05-01
b2,Stone Bridge,Bridge,1790
b3,Glass Bridge,Bridge,2011-09-10T12:00:00Z
b4,Rope Bridge,Bridge,1950-02
m1,Museum of Salt,Museum,1890
r1,Lark River,River,
t1,Avon City,City,
p1,Ann Berg,Person,
p2,Bob Carr,Person,
p3,Cy Dole,Person,
"""
OVER = """head,relation,tail,start,end
b1,crosses,r1,,
b2,crosses,r1,,
b1,located_in,t1,,
b3,located_in,t1,,
b4,located_in,t1,,
m1,located_in,t1,,
p1,mayor_of,t1,1990-03-01,1998-02-28
p2,mayor_of,t1,1998-03-01,2006
p3,painted,r1,1995,1995
p3,painted,t1,2001,2001
"""
"""Nodes say when they were opened, in a word that no list of times has; edges when they hold."""


@pytest.fixture(scope="module")
def bridges(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder: Path = tmp_path_factory.mktemp("bridges")
    (folder / "nodes.csv").write_text(BRIDGES, "utf-8")
    (folder / "edges.csv").write_text(OVER, "utf-8")
    return offline_pipeline(Parts(import_graph(folder)))


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which bridges were opened before 1900?", ["Iron Bridge", "Stone Bridge"]),
        ("What is the oldest bridge?", ["Stone Bridge"]),
        ("Which bridges in Avon City were opened after 1900?", ["Glass Bridge", "Rope Bridge"]),
        ("Which bridges in Avon City do not cross the Lark River?", ["Glass Bridge", "Rope Bridge"]),
        ("How many museums are in Avon City?", ["1"]),
        ("How many mayors has Avon City had?", ["2"]),
        ("Who was mayor of Avon City in May 1998?", ["Bob Carr"]),
        ("Who was mayor of Avon City when Cy Dole painted the Lark River?", ["Ann Berg"]),
        ("When did Ann Berg become mayor of Avon City?", ["1990-03-01"]),
        ("When did Ann Berg leave office as mayor of Avon City?", ["1998-02-28"]),
    ],
)
def test_kinds_and_properties_are_those_that_the_question_names(
    bridges: Loop, question: str, answers: list[str]
) -> None:
    assert sorted(item.name for item in bridges.run(Question("ask", question)).items) == answers


DRUGS = """id,name,type,year:int
d1,Vantol,Drug,
d2,Serap,Drug,
g1,Gout,Disease,
s1,Gout in the north,Study,1994
s2,Gout in the south,Study,2003
s3,Gout at sea,Study,2011
"""
TRIED = """head,relation,tail,confidence:float
d1,TREATS,g1,0.9
d2,TREATS,g1,0.7
s1,DISCUSSES,g1,0.8
s2,DISCUSSES,g1,0.8
s3,DISCUSSES,g1,0.8
"""


@pytest.fixture(scope="module")
def drugs(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder: Path = tmp_path_factory.mktemp("drugs")
    (folder / "nodes.csv").write_text(DRUGS, "utf-8")
    (folder / "edges.csv").write_text(TRIED, "utf-8")
    return offline_pipeline(Parts(import_graph(folder)))


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What treats Gout?", ["Serap", "Vantol"]),
        ("Which of the studies that discuss Gout have a year after 2000?", ["Gout at sea", "Gout in the south"]),
        ("Of the studies that discuss Gout, which have a year earlier than 2003?", ["Gout in the north"]),
        ("Of the studies that discuss Gout, which has the latest year?", ["Gout at sea"]),
    ],
)
def test_a_relation_asks_for_nodes_and_not_for_what_its_edges_say(
    drugs: Loop, question: str, answers: list[str]
) -> None:
    assert sorted(item.name for item in drugs.run(Question("ask", question)).items) == answers


@pytest.fixture(scope="module")
def pipeline(graph: ColumnarGraph) -> Loop:
    return offline_pipeline(Parts(graph))


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What is Ada's salary?", ["5000"]),
        ("When was Acme founded?", ["1906-04-18"]),
        ("How many companies has Ada worked for?", ["2"]),
        ("Which person that works for Acme has the highest salary?", ["Cleo"]),
        ("Who worked for Acme in 2000?", ["Ben"]),
        ("Who works for Acme with a salary above 4500?", ["Ada", "Cleo"]),
        ("Who has the higher salary, Ada or Ben?", ["Ada"]),
    ],
)
def test_questions_beyond_a_path_are_answered(pipeline: Loop, question: str, answers: list[str]) -> None:
    answer = pipeline.run(Question("ask", question))
    assert sorted(item.name for item in answer.items) == answers
    assert all(item.grounded for item in answer.items)


def test_a_count_says_what_was_counted(pipeline: Loop) -> None:
    answer = pipeline.run(Question("ask", "How many companies has Ada worked for?"))
    (item,) = [each for step in answer.rounds for each in step.evidence if isinstance(each, ComputedEvidence)]
    assert item.operation == "count"
    assert item.text.startswith("count of 2: ")
    assert {"Acme", "Initech"} <= set(item.text.replace("|", " ").split())


def test_values_are_nodes_that_nothing_leads_out_of(graph: ColumnarGraph) -> None:
    view = viewed(graph)
    assert isinstance(view, PropertyView)
    ada = view.numbers([EntityId("p1")])
    batch = view.edges(ada)
    told = {
        (view.relations[relation], node.name)
        for relation, node in zip(batch.relation.tolist(), view.nodes(view.ids(batch.other)), strict=True)
    }
    assert ("salary", "5000") in told and ("works_for.start", "2001") in told and ("works_for", "Acme") in told
    values = np.array([node for node in batch.tail.tolist() if is_value(view.ids(np.array([node]))[0])])
    assert len(view.edges(values)) == 0
    assert view.ids(view.numbers([EntityId('"5000"'), EntityId("p1")])) == ['"5000"', "p1"]


def test_real_edges_are_those_of_the_store(graph: ColumnarGraph) -> None:
    view = viewed(graph)
    everything = graph.numbers(list(graph.entities()))
    real = graph.edges(everything, Direction.BOTH)
    shown = view.edges(everything, Direction.BOTH, np.arange(len(graph.relations)))
    for name in ("head", "relation", "tail", "edge", "origin", "inverse"):
        assert getattr(shown, name).tolist() == getattr(real, name).tolist()


def test_a_graph_without_properties_is_shown_as_it_is() -> None:
    plain = ColumnarGraph.from_triples([("a", "r", "b")])
    assert viewed(plain) is plain


CLUBS = [
    ("football", "sport.teams", "Reds"),
    ("football", "sport.teams", "Blues"),
    ("football", "sport.teams", "Greens"),
    ("football", "sport.teams", "Whites"),
    ("Reds", "organization.date_founded", "1901-05-02"),
    ("Blues", "organization.date_founded", "1987"),
    ("Greens", "organization.date_founded", "1995-01"),
    ("Reds", "organization.date_dissolved", "1950"),
    ("Reds", "organization.players", "Ann"),
    ("Reds", "organization.players", "Bob"),
    ("Blues", "organization.players", "Cid"),
]
"""Dates that are nodes, as in Freebase and RDF; half of the teams or more say nothing of the last."""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("which of the teams of football have a date founded after 1986?", {"Blues", "Greens"}),
        ("which teams of football were founded before 1950?", {"Reds"}),
        ("which of the teams of football has a date dissolved before 1960?", {"Reds"}),
    ],
)
def test_dates_that_edges_lead_to_are_compared_with_a_time(text: str, names: set[str]) -> None:
    answer = offline_pipeline(Parts(ColumnarGraph.from_triples(CLUBS), embedder=EMBEDDER)).run(Question("ask", text))
    assert {item.name for item in answer.items} == names
    assert any(isinstance(item, ComputedEvidence) for item in answer.rounds[-1].evidence)


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("which teams of football have more than 1 players?", True),
        ("which teams of football have fewer than 5230 players?", False),
        ("which team of football has the most players?", True),
    ],
)
def test_a_number_that_is_no_count_of_edges_is_not_compared_with_one(text: str, done: bool) -> None:
    answer = offline_pipeline(Parts(ColumnarGraph.from_triples(CLUBS), embedder=EMBEDDER)).run(Question("ask", text))
    computed = [item for item in answer.rounds[-1].evidence if isinstance(item, ComputedEvidence)]
    assert bool(computed) == done
    assert not done or {item.name for item in answer.items} == {"Reds"}


def test_nothing_is_the_most_where_all_have_as_many() -> None:
    edges = [("football", "sport.teams", team) for team in ("Reds", "Blues")]
    edges += [(team, "organization.players", f"one of the {team}") for team in ("Reds", "Blues")]
    answer = offline_pipeline(Parts(ColumnarGraph.from_triples(edges), embedder=EMBEDDER)).run(
        Question("ask", "which team of football has the most players?")
    )
    assert not any(isinstance(item, ComputedEvidence) for item in answer.rounds[-1].evidence)


def test_dates_are_equal_across_precisions() -> None:
    exact = read_date("1906-04-18T05:12:00")
    assert exact == read_date("1906-04-18")
    held = period({"date": "1906-04-18T05:12:00"})
    assert held is not None and held.point
    for text in ("1906", "1906-04", "1906-04-18"):
        assert passes(held, TemporalConstraint(text, text))
    assert not passes(held, TemporalConstraint("1907", "1907"))


@pytest.mark.parametrize("year", range(1998, 2012))
def test_a_period_holds_in_every_year_from_its_start_to_its_end(year: int) -> None:
    held = period({"start": 2001, "end": 2005})
    assert held is not None
    assert passes(held, TemporalConstraint(str(year), str(year))) == (2001 <= year <= 2005)
    assert passes(held, TemporalConstraint(str(year), None, strict=True)) == (year < 2001)
    assert passes(held, TemporalConstraint(None, str(year), strict=True)) == (year > 2001)


@pytest.mark.parametrize(("counted", "answer"), [(1_000_000, "5"), (5, "5"), (4, "at least 4")])
def test_ends_that_a_path_did_not_keep_are_counted_too(
    counted: int, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byokg.offline.execute._SETTINGS", ExecutionSettings(counted=counted))
    towns = ColumnarGraph.from_triples([("Nordland", "contains_town", f"Town {n}") for n in range(5)])
    pipeline = offline_pipeline(Parts(towns), retrievers={"path": partial(PathRetriever, max_ends=2)})
    found = pipeline.run(Question("ask", "How many towns does Nordland contain?"))
    assert [item.name for item in found.items] == [answer]
    evidence = [item for one in found.rounds for item in one.evidence]
    computed = next(item for item in evidence if isinstance(item, ComputedEvidence))
    assert computed.truncated == (counted < 5)
    assert f"count of {answer}: Town 0 | Town 1 | … (+" in computed.text
    walked = next(item for item in evidence if item.id == computed.uses[0])
    assert verbalize(walked, {}).endswith("Town 0 | Town 1 | … (cut off)")


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which two people that work for Acme have the highest salary?", ["Cleo", "Ada"]),
        ("Which two people that work for Acme have the lowest salary?", ["Ben", "Ada"]),
        ("Who are the first two people that worked for Acme?", ["Ben", "Ada"]),
    ],
)
def test_several_best_ones_come_in_their_order(graph: ColumnarGraph, question: str, answers: list[str]) -> None:
    assert [item.name for item in offline_pipeline(Parts(graph)).run(Question("ask", question)).items] == answers


def test_what_nothing_at_hand_has_any_of_is_no_superlative() -> None:
    graph = ColumnarGraph.from_triples([("Ada", "died of", "fever"), ("Bob", "later known as", "Bobby")])
    answer = offline_pipeline(Parts(graph, embedder=EMBEDDER)).run(Question("ask", "What was Ada most known for?"))
    assert not [item for one in answer.rounds for item in one.evidence if isinstance(item, ComputedEvidence)]


# Ann and Ben play in Red, Cid in Blue; all of them for Peru. Paper A cites B and C, B cites C; all are about Bees.
TEAMS = [("Ann", "plays_in_club", "Red"), ("Ben", "plays_in_club", "Red"), ("Cid", "plays_in_club", "Blue")]
TEAMS += [(name, "plays_for_country", "Peru") for name in ("Ann", "Ben", "Cid")]
TEAMS += [("Ann", "is_aged", "20"), ("Ben", "is_aged", "31"), ("Cid", "is_aged", "25")]
PAPERS = [("A", "cites", "B"), ("A", "cites", "C"), ("B", "cites", "C")]
PAPERS += [(name, "about", "Bees") for name in "ABC"]


@pytest.mark.parametrize(
    ("text", "topics", "answers"),
    [
        ("who is older, Ann or Ben", ("Ann", "Ben"), ["Ben"]),
        ("who is younger, Ann or Ben", ("Ann", "Ben"), ["Ann"]),
        ("who is the oldest player of Peru", ("Peru",), ["Ben"]),
        ("which players of Peru are older than 24", ("Peru",), ["Ben", "Cid"]),
        ("how many years old is Ann", ("Ann",), ["20"]),
        ("which club has the most players of Peru", ("Peru",), ["Red"]),
        ("which paper about Bees has the most citations", ("Bees",), ["C"]),
        ("which paper about Bees is the most cited", ("Bees",), ["C"]),
    ],
)
def test_ages_and_what_is_counted_on_the_way(text: str, topics: tuple[str, ...], answers: list[str]) -> None:
    graph = ColumnarGraph.from_triples([*TEAMS, *PAPERS])
    answer = offline_pipeline(Parts(graph)).run(Question("q", text, tuple(map(EntityId, topics))))
    assert sorted(item.name for item in answer.items) == answers


SHOP = """id,name,type,made:int,pages:int,h_index:int
a,Atlas,Product,1990,42,
b,Bulb,Product,2010,10,
c,Crate,Product,2021,7,
o1,Order 1,Order,,,
o2,Order 2,Order,,,
o3,Order 3,Order,,,
p,Pat,Buyer,,,12
q,Quinn,Buyer,,,30
h,Home,Category,,,
u,Union,Country,,,
v,Valley,Country,,,
t,Town,City,,,
w,Wick,City,,,
"""
SOLD = """head,relation,tail,since:int
a,in_category,h,
b,in_category,h,
c,in_category,h,
o1,placed_by,p,
o2,placed_by,q,
o3,placed_by,q,
p,supplies,a,2012
p,supplies,b,2020
q,supplies,a,2015
t,in_country,u,
w,in_country,v,
p,lives_in,t,
q,lives_in,w,
b,cites,a,
c,cites,a,
c,cites,b,
"""


@pytest.mark.parametrize(
    ("text", "topics", "answers"),
    [
        ("Which Home products were made after 2000?", "h", ["Bulb", "Crate"]),
        ("Which product was made earlier, «Atlas» or «Bulb»?", "ab", ["Atlas"]),
        ('Which product was made earlier, "Crate" or "Bulb"?', "cb", ["Bulb"]),
        ("Who has the higher h-index, Pat or Quinn?", "pq", ["Quinn"]),
        ("Who has placed more orders, Pat or Quinn?", "pq", ["Quinn"]),
        ("Since when has Pat supplied Bulb?", "pb", ["2020"]),
        ("How long is Atlas in pages?", "a", ["42"]),
        ("Which of our buyers are in Union or Valley?", "uv", ["Pat", "Quinn"]),
    ],
)
def test_what_people_ask_of_a_shop(
    text: str, topics: str, answers: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "nodes.csv").write_text(SHOP, "utf-8")
    (folder / "edges.csv").write_text(SOLD, "utf-8")
    answer = offline_pipeline(Parts(import_graph(folder))).run(Question("q", text, tuple(map(EntityId, topics))))
    assert sorted(item.name for item in answer.items) == answers


# Ann and Bob, siblings, are children of Carl and Dora, and Carl of Emma; Ann has a daughter, Fay, and a son, Gus.
KIN = """id,name,type,gender,birth_date:date,death_date:date
a,Ann,Person,female,1950-02-01,2020-01-01
b,Bob,Person,male,1952-05-05,2010-01-01
c,Carl,Person,male,1920-01-01,1990-01-01
d,Dora,Person,female,1922-01-01,1985-01-01
e,Emma,Person,female,1899-01-01,1970-01-01
f,Fay,Person,female,1980-01-01,
g,Gus,Person,male,1985-01-01,
"""
BORN_OF = "head,relation,tail\n" + "".join(f"{one[0]},child_of,{one[1]}\n" for one in "ac ad bc bd ce fa ga".split())


@pytest.mark.parametrize(
    ("text", "topics", "answers"),
    [
        ("Who is the father of Ann?", "a", ["Carl"]),
        ("Ann's mother", "a", ["Dora"]),
        ("Who are Ann's parents?", "a", ["Carl", "Dora"]),
        ("Who are the children of Ann?", "a", ["Fay", "Gus"]),
        ("What daughters did Ann have?", "a", ["Fay"]),
        ("How many sons does Ann have?", "a", ["1"]),
        ("Who was the grandmother of Ann?", "a", ["Emma"]),
        ("Who are the brothers and sisters of Ann?", "a", ["Bob"]),
        ("Who died later, Ann or Bob?", "ab", ["Ann"]),
        ("Who was born earlier, Carl or Dora?", "cd", ["Carl"]),
        ("Who had more children, Ann or Emma?", "ae", ["Ann"]),
        ("Which child of Carl was born first?", "c", ["Ann"]),
        ("Which child of Carl died first?", "c", ["Bob"]),
        ("Who were the mother and father of Ann?", "a", ["Carl", "Dora"]),
        ("When was Ann's father born?", "a", ["1920-01-01"]),
        ("On what date did the mother of Ann die?", "a", ["1985-01-01"]),
        ("Which grandchildren did Carl have?", "c", ["Fay", "Gus"]),
        ("Who is the great-grandmother of Fay?", "f", ["Emma"]),
    ],
)
def test_families(text: str, topics: str, answers: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("kin")
    (folder / "nodes.csv").write_text(KIN, "utf-8")
    (folder / "edges.csv").write_text(BORN_OF, "utf-8")
    answer = offline_pipeline(Parts(import_graph(folder))).run(Question("q", text, tuple(map(EntityId, topics))))
    assert sorted(item.name for item in answer.items) == answers
