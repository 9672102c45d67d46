"""Tests of `byokg.pipeline.context`, `folding` and `lines`: what a prompt is shown of the evidence."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.pipeline.context import NOTHING, PROBLEMS, ContextWriter
from byokg.retrieval.path import PathRetriever
from byokg.text import estimate_tokens
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Feedback,
    Linked,
    LinkedEntity,
    Mention,
    Node,
    NodeEvidence,
    ProposedPath,
    Question,
    Request,
    RowsEvidence,
    Triple,
    TripleEvidence,
)
from tests.linking.graphs import FILMS, MARRIAGES, films


def words(text: str) -> int:
    return len(text.split())


def paths(store: ColumnarGraph, source: str, *relations: tuple[str, ...]) -> list[Evidence]:
    """Return what the path retriever finds."""
    entity = LinkedEntity(EntityId(source), source, Mention(source), "exact", 1.0)
    artifacts = Artifacts(paths=tuple(map(ProposedPath, relations)))
    return list(PathRetriever(store).retrieve(Request(Question("q", ""), artifacts, Linked((entity,)), Context())))


def triples(*found: tuple[str, str, str], retriever: str = "text", stub: bool = False) -> list[Evidence]:
    return [
        TripleEvidence(retriever, 1.0, Triple(EntityId(head), relation, EntityId(tail)), stub)
        for head, relation, tail in found
    ]


def gathered(*rounds: Sequence[Evidence]) -> Context:
    """Return a context with these rounds of evidence."""
    context = Context()
    for evidence in rounds:
        context = context.add(Artifacts(), Linked(), [evidence])
    return context


def written(store: ColumnarGraph, *rounds: Sequence[Evidence]) -> list[str]:
    return ContextWriter(store).write(gathered(*rounds)).text.splitlines()


class TestFacts:
    def test_each_item_is_a_line_with_its_number(self) -> None:
        found = paths(films(), "Alien", ("directed_by",), ("directed_by", "^directed_by"))
        assert written(films(), found) == [
            "[e1] Alien → directed_by → Ridley Scott",
            "[e2] Alien → directed_by → Ridley Scott ← directed_by ← Blade Runner",
        ]

    def test_an_edge_that_three_retrievers_found_is_one_line_that_stands_for_all_three(self) -> None:
        edge = ("Alien", "directed_by", "Ridley Scott")
        context = gathered(
            [*triples(edge, retriever="agentic"), *triples(edge)], paths(films(), "Ridley Scott", ("^directed_by",))
        )
        found = ContextWriter(films()).write(context)
        assert found.text == "[e1] Ridley Scott ← directed_by ← Alien | Blade Runner"
        assert found.items == {"e1": ("e1", "e2", "e3")} and found.shown == ("e1",)
        assert found.left_out == 0

    def test_an_edge_inside_a_walk_that_is_written_out_is_not_said_again(self) -> None:
        found = paths(films(), "Alien", ("directed_by", "^directed_by"))
        context = gathered([*found, *triples(("Blade Runner", "directed_by", "Ridley Scott"))])
        shown = ContextWriter(films()).write(context)
        assert shown.text == "[e1] Alien → directed_by → Ridley Scott ← directed_by ← Blade Runner"
        assert shown.items == {"e1": ("e1", "e2")}

    def test_edges_fold_on_the_side_where_they_have_more_in_common(self) -> None:
        found = triples(*(triple for triple in FILMS if triple[1] in ("directed_by", "has_genre")))
        assert written(films(), found) == [
            "[e1] Ridley Scott ← directed_by ← Alien | Blade Runner",
            "[e2] Alien → has_genre → Horror",
            "[e4] Drama ← has_genre ← Blade Runner | Titanic",
            "[e5] James Cameron ← directed_by ← Aliens | Titanic",
            "[e6] Aliens → has_genre → Action",
        ]

    def test_many_ends_are_folded_and_counted(self) -> None:
        found = gathered(paths(films(), "Drama", ("^has_genre",)))
        assert ContextWriter(films(), shown=1)(found) == "[e1] Drama ← has_genre ← Blade Runner | … (+1 more)"

    def test_ends_that_no_walk_is_known_to_may_be_reached_through_other_nodes(self) -> None:
        # a -r-> b1 … b4, each -s-> its own c; the path retriever keeps three walks
        store = ColumnarGraph.from_triples([t for n in "1234" for t in (("a", "r", f"b{n}"), (f"b{n}", "s", f"c{n}"))])
        found = paths(store, "a", ("r", "s"))
        assert written(store, found)[-1] == "[e1] a → r → … → s → c4"

    def test_times_of_edges_stand_by_what_they_are_true_of(self) -> None:
        held = [("Pym", 1979, 1983), ("Per", 1973, 1979)]
        store = ColumnarGraph.from_records(
            [Node(EntityId(name), name) for name in ("Pym", "Per", "Minister")],
            [
                Triple(EntityId(name), "held", EntityId("Minister"), properties={"start": start, "end": end})
                for name, start, end in held
            ],
        )
        assert written(store, paths(store, "Minister", ("^held",))) == [
            "[e1] Minister ← held ← Pym [1979 – 1983] | Per [1973 – 1979]"
        ]
        assert written(store, paths(store, "Pym", ("held",))) == ["[e1] Pym → held [1979 – 1983] → Minister"]

    def test_parallel_edges_with_different_times_are_both_said(self) -> None:
        store = ColumnarGraph.from_triples([("Pym", "held", "Minister")])
        terms = [Triple(EntityId("Pym"), "held", EntityId("Minister"), n, {"time": 1970 + n}) for n in (1, 2)]
        found = [TripleEvidence("text", 1.0, term) for term in terms]
        assert written(store, found) == ["[e1] Pym → held → Minister [1971] | Minister [1972]"]

    def test_a_node_shows_what_it_says_and_others_of_a_type_share_a_line(self) -> None:
        nodes = [Node(EntityId("a"), "Ann", "Person", {"born": 1970}), *(Node(EntityId(n), n, "City") for n in "xy")]
        store = ColumnarGraph.from_records(nodes, [])
        found = [NodeEvidence("bfsql", 1.0, node) for node in nodes]
        assert written(store, found) == ["[e1] Ann (Person) born: 1970", "[e2] (City) x | y"]

    def test_a_query_that_ran_twice_is_one_table(self) -> None:
        rows = RowsEvidence("query", 1.0, language="cypher", query="RETURN 1", columns=("n",), rows=((3,), (4,)))
        assert written(films(), [rows], [rows]) == ["[e1] RETURN 1", "  n", "  3", "  4"]

    def test_edges_that_only_show_how_a_subgraph_hangs_together_come_last(self) -> None:
        stubs = triples(("Alien", "has_genre", "Horror"), ("Alien", "directed_by", "Ridley Scott"), stub=True)
        found = [*stubs, *triples(("Aliens", "has_genre", "Action"), ("Alien", "directed_by", "Ridley Scott"))]
        assert written(films(), found) == [
            "[e2] Alien → directed_by → Ridley Scott",
            "[e3] Aliens → has_genre → Action",
            "[e1] Alien → has_genre → Horror",
        ]

    def test_nothing_found_is_said(self) -> None:
        assert ContextWriter(films())(Context()) == NOTHING


class TestMediators:
    def marriages(self) -> ColumnarGraph:
        return ColumnarGraph.from_triples(MARRIAGES)

    def test_a_walk_goes_through_them(self) -> None:
        found = paths(self.marriages(), "Ann", ("people.person.spouse_s", "people.marriage.spouse"))
        assert written(self.marriages(), found) == ["[e1] Ann → people.person.spouse_s / people.marriage.spouse → Bob"]

    def test_all_that_was_found_of_one_is_one_line_whoever_found_it(self) -> None:
        found = [
            *paths(self.marriages(), "Ann", ("people.person.spouse_s",)),
            *triples(("m.0m1", "people.marriage.spouse", "Bob"), ("m.0m1", "people.marriage.from", "1999")),
        ]
        shown = ContextWriter(self.marriages()).write(gathered(found))
        assert shown.text == (
            "[e1] Ann → people.person.spouse_s / people.marriage.spouse → Bob; people.marriage.from → 1999"
        )
        assert shown.items == {"e1": ("e1", "e2", "e3")}

    def test_those_that_say_the_same_fold(self) -> None:
        edges = [
            edge for name in "BC" for edge in (("Ann", "r", f"m.0{name.lower()}"), (f"m.0{name.lower()}", "s", name))
        ]
        store = ColumnarGraph.from_triples(edges)
        assert written(store, triples(*edges)) == ["[e1] Ann → r / s → B | C"]
        assert written(store, paths(store, "Ann", ("r", "s"))) == ["[e1] Ann → r / s → B | C"]

    def test_those_of_which_nothing_else_is_known_are_counted_and_come_last(self) -> None:
        edges = [("Ann", "spouse_s", "m.0m1"), ("Ann", "spouse_s", "m.0m2"), ("Ann", "born", "Lima")]
        store = ColumnarGraph.from_triples(edges)
        assert written(store, triples(*edges)) == ["[e3] Ann → born → Lima", "[e1] Ann → spouse_s → (2 unnamed nodes)"]


class TestBudget:
    def test_where_not_everything_fits_the_newest_round_stays(self) -> None:
        context = gathered(paths(films(), "Alien", ("directed_by",)), paths(films(), "Alien", ("has_genre",)))
        assert ContextWriter(films(), 13, count_tokens=words).write(context).shown == ("e1", "e2")
        found = ContextWriter(films(), 9, count_tokens=words).write(context)
        assert (found.shown, found.left_out, found.tokens) == (("e2",), 1, 6)

    def test_no_retriever_crowds_out_another(self) -> None:
        many = triples(*((f"h{n}", f"r{n}", f"t{n}") for n in range(50)))
        few = triples(("x", "first", "y"), ("x", "second", "z"), retriever="agentic")
        nodes = {node for item in [*many, *few] if isinstance(item, TripleEvidence) for node in _ends(item)}
        store = ColumnarGraph.from_records([Node(EntityId(node), node) for node in sorted(nodes)], [])
        context = Context().add(Artifacts(), Linked(), [many, few])
        assert ContextWriter(store, 24, count_tokens=words).write(context).shown == ("e1", "e2", "e51", "e52")

    def test_a_line_without_room_is_shortened_before_it_is_left_out(self) -> None:
        edges = [("hub", "r", f"t{number}") for number in range(16)]
        store = ColumnarGraph.from_triples(edges)
        text = ContextWriter(store, 17, count_tokens=words).write(gathered(triples(*edges))).text
        assert text == "[e1] hub → r → t0 | t1 | t2 | t3 | … (+12 more)"

    def test_a_hub_costs_neither_more_than_the_budget_nor_the_reading_of_all_its_edges(self) -> None:
        store = _Counting(ColumnarGraph.from_triples([("hub", "r", f"t{number}") for number in range(20_000)]))
        found = triples(*(("hub", "r", f"t{number}") for number in range(20_000)))
        shown = ContextWriter(store, 400).write(gathered(found))  # type: ignore[arg-type]
        assert shown.tokens <= 400 and store.asked <= 101
        assert shown.text.endswith(" | … (+19980 more)") and shown.left_out == 0

    def test_never_more_than_the_budget(self) -> None:
        store = ColumnarGraph.from_triples([*FILMS, *MARRIAGES])
        everything: list[Evidence] = [
            *triples(*FILMS, *MARRIAGES),
            *paths(store, "Alien", ("directed_by", "^directed_by", "starred_actors"), ("has_genre",)),
            RowsEvidence("query", 1.0, language="cypher", query="RETURN 1", columns=("n",), rows=((3,), (4,))),
            Feedback("query", 0.0, subject="RETURN", problem="nothing is returned"),
        ]
        chance = random.Random(0)
        for budget in range(1, 200, 3):
            chance.shuffle(everything)
            writer = ContextWriter(store, budget)
            for found in (writer.write(gathered(everything)), writer.write_for_round(gathered(everything))):
                assert estimate_tokens(found.text) == found.tokens <= budget

    def test_tokenizers_that_make_more_of_the_whole_than_of_its_parts_are_minded(self) -> None:
        context = gathered(paths(films(), "Alien", ("directed_by",), ("has_genre",)))
        found = ContextWriter(films(), 100, count_tokens=lambda text: len(text) ** 2 // 40).write(context)
        assert found.tokens <= 100 and found.shown == ("e1",)

    def test_settings_that_show_nothing_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="budget_tokens=0"):
            ContextWriter(films(), 0)
        with pytest.raises(ConfigError, match="shown=0"):
            ContextWriter(films(), shown=0)


class TestFeedback:
    FAILED = Feedback("query", 0.0, subject="MATCH (n:Fim)", problem="no label `Fim`; did you mean `Film`?")

    def test_the_next_round_is_told_in_a_part_of_its_own(self) -> None:
        context = gathered([self.FAILED, *paths(films(), "Alien", ("directed_by",)), self.FAILED])
        assert ContextWriter(films())(context).splitlines() == [
            "[e2] Alien → directed_by → Ridley Scott",
            "",
            PROBLEMS,
            "- MATCH (n:Fim): no label `Fim`; did you mean `Film`?",
        ]

    def test_it_is_no_ground_for_an_answer(self) -> None:
        found = ContextWriter(films()).write(gathered([self.FAILED]))
        assert found.text == NOTHING and found.left_out == 0

    def test_what_went_wrong_before_the_last_round_is_forgotten(self) -> None:
        assert PROBLEMS not in ContextWriter(films())(gathered([self.FAILED], paths(films(), "Alien", ("has_genre",))))

    def test_it_takes_a_quarter_of_the_budget_at_most(self) -> None:
        problems = [Feedback("query", 0.0, subject=f"Q{n}", problem="went wrong") for n in range(100)]
        found = ContextWriter(films(), 100, count_tokens=words).write_for_round(gathered(problems))
        assert found.problems == tuple(f"e{n}" for n in range(1, 6))


def test_the_text_does_not_depend_on_what_was_written_before() -> None:
    context = gathered(triples(*FILMS), paths(films(), "Alien", ("directed_by", "^directed_by")))
    writer = ContextWriter(films(), 60)
    first = writer.write(context)
    writer.write(gathered(triples(*FILMS[:3])))
    assert writer.write(context) == first


def _ends(item: TripleEvidence) -> tuple[str, str]:
    return item.triple.head, item.triple.tail


class _Counting:
    """A store that counts the nodes it was asked for."""

    def __init__(self, store: ColumnarGraph) -> None:
        self._store = store
        self.asked = 0

    def nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        self.asked += len(ids)
        return self._store.nodes(ids)
