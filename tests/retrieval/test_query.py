"""Tests of `byokg.retrieval.query`, over embedded engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ConfigError, LlmEmpty, QueryTimeout, StoreUnavailable
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.engines.oxigraph import OxigraphStore, build_oxigraph
from byokg.graph.store import QueryableGraph, QueryLimits, Rows
from byokg.linking.grounding import LiteralGrounder
from byokg.linking.parts import Parts
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.retrieval.graph_tools import GraphTools
from byokg.retrieval.query import QueryRetriever, ground_by_results
from byokg.retrieval.verbalize import row_text, rows_head, verbalize
from byokg.types import (
    Artifacts,
    Cell,
    Context,
    EntityId,
    Evidence,
    Feedback,
    GraphQuery,
    Language,
    Linked,
    Node,
    NodeCell,
    Question,
    Request,
    RowsEvidence,
)
from tests.graph.published import dev_questions, movies, needed, northwind
from tests.linking.graphs import COUNTRIES, countries, marriages

QUESTION = Question("q1", "What is the capital of Peru?")

CAPITAL = "MATCH (c:Country {name: 'Peru'})-[:capital]->(city:City) RETURN city.name"
MISSPELT = "MATCH (c:Country {name: 'Perru'})-[:capitol]->(city:City) RETURN city.name"


@pytest.fixture(scope="module")
def arcade(arcade_process: ArcadeStore) -> ArcadeStore:
    arcade_process.replace(countries())
    return arcade_process


@pytest.fixture(scope="module")
def oxigraph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphStore]:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    with build_oxigraph(countries(), tmp_path_factory.mktemp("query") / "store") as store:
        yield store


@pytest.fixture(scope="module")
def northwind_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ArcadeStore, OxigraphStore]]:
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    graph = northwind(needed("northwind"))
    folder = tmp_path_factory.mktemp("northwind") / "store"
    with ArcadeStore.hold(graph, heap_mb=512) as one, build_oxigraph(graph, folder) as other:
        yield one, other


def request(*queries: str, language: Language = "cypher", context: Context | None = None) -> Request:
    written = tuple(GraphQuery(language, text) for text in queries)
    return Request(QUESTION, Artifacts(queries=written), Linked(), context or Context())


def retrieved(store: QueryableGraph, *queries: str, language: Language = "cypher", **settings: Any) -> list[Evidence]:
    return QueryRetriever(Parts(store), **settings).retrieve(request(*queries, language=language))


def problem(store: QueryableGraph, query: str, language: Language = "cypher", **settings: Any) -> str:
    """Return the problem of a query that gives nothing but feedback."""
    (item,) = retrieved(store, query, language=language, **settings)
    assert isinstance(item, Feedback) and item.subject == query and item.retriever == "query"
    return item.problem


class TestRows:
    def test_a_query_gives_its_rows(self, arcade: ArcadeStore) -> None:
        assert retrieved(arcade, CAPITAL) == [
            RowsEvidence("query", 1.0, "cypher", CAPITAL, ("city.name",), (("Lima",),), False)
        ]

    def test_nodes_keep_the_ids_by_which_the_graph_is_walked(self, arcade: ArcadeStore) -> None:
        (item,) = retrieved(arcade, "MATCH (:Country {name: 'Peru'})-[:borders]->(c) RETURN c ORDER BY c.name")
        assert isinstance(item, RowsEvidence)
        cells = [cell for row in item.rows for cell in row if isinstance(cell, NodeCell)]
        assert [cell.id for cell in cells] == ["bo", "cl"]
        assert [node.name for node in arcade.nodes([cell.id for cell in cells])] == ["Bolivia", "Chile"]

    def test_a_node_without_a_name_is_told_by_what_it_joins(self, tmp_path: Path) -> None:
        pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
        query = "SELECT ?marriage (STR(?marriage) AS ?text) ?year WHERE { ?marriage kg:people.marriage.from ?year }"
        with build_oxigraph(marriages(), tmp_path / "store") as store:
            item, *_ = retrieved(store, query, language="sparql")
        assert isinstance(item, RowsEvidence) and set(item.joined) == {"m.0m1"}
        (row,) = [row_text(cells, {}, item.joined) for cells in item.rows]
        assert row == "  [spouse: Bob, from: 1999, spouse_s: Ann] | urn:byokg:node:m.0m1 | 1999"

    def test_of_what_only_looks_like_an_id_nothing_is_told(self, arcade: ArcadeStore) -> None:
        (item,) = retrieved(arcade, "MATCH (c:Country {name: 'Peru'}) RETURN c, ['m.0nowhere'] AS ids")
        assert (
            isinstance(item, RowsEvidence) and item.joined == {} and row_text(item.rows[0], {}).endswith("[m.0nowhere]")
        )

    def test_rows_that_a_query_s_own_limit_left_out_are_counted_and_the_first_is_shown(
        self, arcade: ArcadeStore
    ) -> None:
        (item,) = retrieved(arcade, "MATCH (c:Country) RETURN c.name AS name ORDER BY name LIMIT 1")
        assert isinstance(item, RowsEvidence) and len(item.rows) == 1 and not item.truncated
        every = retrieved(arcade, "MATCH (c:Country) RETURN c.name AS name ORDER BY name")[0]
        assert isinstance(every, RowsEvidence)
        assert (1 + item.left_out, item.following) == (len(every.rows), every.rows[1])
        assert f"({len(every.rows)} without LIMIT, the next is {every.rows[1][0]})" in rows_head(item)

    def test_tied_rows_may_change_places_behind_a_limit(
        self, arcade: ArcadeStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def run(store: ArcadeStore, text: str, *more: Any, **named: Any) -> Rows:
            rows = ran(store, text, *more, **named)
            return rows if text == query else replace(rows, rows=rows.rows[::-1])

        ran, query = ArcadeStore.run, "MATCH (c:Country) RETURN c.name AS name ORDER BY 1 LIMIT 2"
        monkeypatch.setattr(ArcadeStore, "run", run)
        (item,) = retrieved(arcade, query)
        assert isinstance(item, RowsEvidence) and item.left_out == len(COUNTRIES) - 2 and item.exact
        assert item.following not in item.rows

    def test_more_rows_than_are_read_behind_a_limit_are_at_least_so_many(self, arcade: ArcadeStore) -> None:
        (item,) = retrieved(arcade, "MATCH (c:Country) RETURN c.name AS name ORDER BY name LIMIT 1", max_rows=2)
        assert isinstance(item, RowsEvidence) and "(at least 2 without LIMIT, the next is" in rows_head(item)

    def test_rows_beyond_the_limit_are_cut_and_told(self, arcade: ArcadeStore) -> None:
        (item,) = retrieved(arcade, "MATCH (c:Country) RETURN c.name", max_rows=2)
        assert isinstance(item, RowsEvidence) and len(item.rows) == 2 and item.truncated
        total = len(COUNTRIES)
        assert (item.total, item.exact, item.beyond) == (total, True, (total - 2, False))
        assert verbalize(item, {}, 1).splitlines()[-1] == f"  … (+{total - 1} more rows)"
        assert rows_head(item).split("\n  ")[1] == f"returned 2 of {total} rows, the next with SKIP 2: c.name"

    def test_rows_are_counted_up_to_a_limit(self, arcade: ArcadeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("byokg.retrieval.query._COUNTED", 3)
        (item,) = retrieved(arcade, "MATCH (c:Country) RETURN c.name", max_rows=2)
        assert isinstance(item, RowsEvidence) and (item.total, item.exact, item.beyond) == (3, False, (1, True))
        assert rows_head(item).split("\n  ")[1] == "returned 2 of more than 3 rows, the next with SKIP 2: c.name"

    def test_a_count_of_zero_is_an_answer(self, arcade: ArcadeStore) -> None:
        (item,) = retrieved(arcade, "MATCH (:City)-[:borders]->(c:City) WHERE c.name = 'x' RETURN count(c) AS n")[:1]
        assert isinstance(item, RowsEvidence) and item.rows == ((0,),)

    def test_equal_queries_run_once(self, arcade: ArcadeStore) -> None:
        assert len(retrieved(arcade, CAPITAL, CAPITAL)) == 1

    @pytest.mark.parametrize("text", ["", "  \n "])
    def test_an_empty_query_is_nothing_at_all(self, arcade: ArcadeStore, text: str) -> None:
        asked = request(text)
        assert QueryRetriever(Parts(arcade)).retrieve(asked) == [] and asked.steps == []

    def test_a_query_in_another_language_is_left_alone(self, arcade: ArcadeStore, oxigraph: OxigraphStore) -> None:
        assert retrieved(arcade, "SELECT ?s WHERE { ?s ?p ?o }", language="sparql") == []
        assert retrieved(oxigraph, CAPITAL) == []

    def test_sparql_runs_on_rdf(self, oxigraph: OxigraphStore) -> None:
        text = "SELECT ?city WHERE { ?c rdfs:label 'Peru' ; kg:capital ?city }"
        (item,) = retrieved(oxigraph, text, language="sparql")
        assert isinstance(item, RowsEvidence)
        ((cell,),) = item.rows
        assert isinstance(cell, NodeCell) and (cell.id, cell.name) == ("lima", "Lima")
        assert oxigraph.nodes([cell.id])[0].name == "Lima"


class TestGrounding:
    """Literals that no value equals as written."""

    MISSPELT = "MATCH (c:Country {name: 'Perru'})-[:capital]->(city:City) RETURN city.name"

    def test_a_certain_reading_is_substituted_and_shown(self, arcade: ArcadeStore) -> None:
        asked = request(self.MISSPELT)
        (item,) = QueryRetriever(Parts(arcade)).retrieve(asked)
        reading = "'Perru' read as 'Peru' (Country.name, 1 node)"
        assert isinstance(item, RowsEvidence) and item.rows == (("Lima",),)
        assert item.query == self.MISSPELT and item.readings == (reading,)
        assert reading in rows_head(item) and reading in verbalize(item, {})
        assert asked.steps[0].got["readings"] == [reading]

    def test_suggestions_leave_the_query_as_written(self, arcade: ArcadeStore) -> None:
        found = problem(arcade, self.MISSPELT, grounding="suggest")
        assert found.startswith("it returned no rows") and "'Perru' read as 'Peru'" in found

    def test_off_reads_nothing(self, arcade: ArcadeStore) -> None:
        assert "read as" not in problem(arcade, self.MISSPELT, grounding="off")

    def test_no_other_mode_exists(self, arcade: ArcadeStore) -> None:
        with pytest.raises(ConfigError, match="grounding=on is not known; use one of off, suggest, substitute"):
            retrieved(arcade, grounding="on")

    def test_a_query_with_rows_keeps_a_literal_that_only_resembles_a_value(self, arcade: ArcadeStore) -> None:
        query = "MATCH (c:Country) WHERE c.name = 'Peru' OR c.name = 'Bolivja' RETURN c.name"
        (item,) = retrieved(arcade, query)
        assert isinstance(item, RowsEvidence) and item.rows == (("Peru",),) and item.readings == ()

    def test_a_query_with_rows_keeps_its_property(self, arcade: ArcadeStore) -> None:
        nodes = [Node(EntityId(f"c{at}"), "", "Country", {"code": code}) for at, code in enumerate(("c1", "c2", "c3"))]
        arcade.replace(ColumnarGraph.from_records(nodes, []))
        try:
            (item,) = retrieved(arcade, "MATCH (c:Country {id: 'c1'}) RETURN c.code")
        finally:
            arcade.replace(countries())
        assert isinstance(item, RowsEvidence) and item.rows == (("c2",),) and item.readings == ()

    def test_a_timeout_ends_the_trial_of_readings(self, arcade: ArcadeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        people = [Node(EntityId(name), "", "Person", {"surname": name}) for name in ("Reed", "Reid")]
        grounder = LiteralGrounder(ColumnarGraph.from_records(people, []))
        (engine,), query, tried = arcade.engines, "MATCH (p:Person {surname: 'Rejd'}) RETURN p", list[str]()

        def time_out(text: str, **settings: object) -> Rows:
            tried.append(text)
            raise QueryTimeout(1.0)

        monkeypatch.setattr(engine, "run", time_out)
        grounded = ground_by_results(grounder, engine, query, QueryLimits(1.0, 10))
        assert grounded.text == query and "nearest: 'Re" in grounded.open[0] and tried == [query]

    def test_sparql(self, oxigraph: OxigraphStore) -> None:
        query = "SELECT ?n { ?c rdfs:label 'PERU' ; kg:capital ?city . ?city rdfs:label ?n }"
        (item,) = retrieved(oxigraph, query, language="sparql")
        assert isinstance(item, RowsEvidence) and item.rows == (("Lima",),)
        assert item.readings == ("'PERU' read as 'Peru' (Country.label, 1 node)",)

    def test_dates_are_read_in_any_format(self, northwind_stores: tuple[ArcadeStore, OxigraphStore]) -> None:
        arcade, oxigraph = northwind_stores
        (item,) = retrieved(arcade, "MATCH (o:Order) WHERE o.orderDate = 'July 4th, 1996' RETURN o.orderID")
        assert isinstance(item, RowsEvidence) and item.rows == (("10248",),)
        query = "SELECT ?n { ?o kg:orderDate 'July 4th, 1996' ; kg:orderID ?n }"
        (item,) = retrieved(oxigraph, query, language="sparql")
        assert isinstance(item, RowsEvidence) and [row[0] for row in item.rows] == ["10248"]


class TestFeedback:
    @pytest.mark.parametrize(
        ("query", "told"),
        [
            ("MATCH (c:Country) SET c.name = 'x' RETURN c", "SET changes the graph"),
            ("MATCH (c:Country RETURN c", "this bracket is never closed"),
            ("Sorry, I cannot write such a query.", "refused at line 1"),
            ("MATCH (c:Country) RETURN d", "d"),
        ],
    )
    def test_a_query_that_is_refused_or_wrong(self, arcade: ArcadeStore, query: str, told: str) -> None:
        assert told in problem(arcade, query)

    def test_one_that_takes_too_long(self, arcade: ArcadeStore) -> None:
        endless = "MATCH (a)-[*1..30]-(b)-[*1..30]-(c)-[*1..30]-(d) RETURN count(*) AS n"
        assert "took longer than 0.5 s" in problem(arcade, endless, timeout_s=0.5)

    def test_no_rows_come_with_the_nearest_names(self, arcade: ArcadeStore) -> None:
        told = problem(arcade, MISSPELT)
        assert told == (
            "it returned no rows; \"(c:Country {name: 'Peru'})-[:capitol]->(city:City)\" is the first pattern that "
            "gives no row; line 1, column 37: this graph has no relation type 'capitol'; nearest: capital; "
            "'Perru' read as 'Peru' (Country.name, 1 node)"
        )

    def test_a_name_that_exists_is_not_held_against_a_query(self, arcade: ArcadeStore) -> None:
        text = "MATCH (c:Country {name: 'Portugal'})-[:capital]->(city) RETURN city"
        pattern = text.removeprefix("MATCH ").removesuffix(" RETURN city")
        told = f'it returned no rows; "{pattern}" is the first pattern that gives no row'
        assert problem(arcade, text) == told

    def test_rows_of_nulls_are_no_rows(self, arcade: ArcadeStore) -> None:
        text = "MATCH (c:Country {name: 'Peru'}) RETURN c.president"
        assert "without a single value" in problem(arcade, text)

    def test_rows_may_come_with_feedback(self, arcade: ArcadeStore) -> None:
        rows, feedback = retrieved(arcade, "MATCH (c:Country {name: 'Peru'})-[:capital|seat]->(x) RETURN x.name")
        assert isinstance(rows, RowsEvidence) and rows.rows == (("Lima",),)
        assert isinstance(feedback, Feedback) and "no relation type 'seat'" in feedback.problem

    def test_sparql_that_finds_nothing(self, oxigraph: OxigraphStore) -> None:
        text = "SELECT ?city WHERE { ?c rdfs:label 'Perru' ; kg:capitol ?city }"
        told = problem(oxigraph, text, "sparql")
        assert "it returned no rows" in told and "kg:capital" in told and "'Perru' read as 'Peru'" in told

    def test_a_count_over_what_the_graph_lacks_is_no_fact(self, arcade: ArcadeStore, oxigraph: OxigraphStore) -> None:
        lacking = "MATCH (c:Country {name: 'Peru'}) OPTIONAL MATCH (c)-[:president]->(p) RETURN count(p) AS n"
        told = problem(arcade, lacking)
        assert told.startswith("it counted nothing") and "no relation type 'president'" in told
        told = problem(oxigraph, "SELECT (COUNT(?p) AS ?n) WHERE { ?c kg:president ?p }", "sparql")
        assert told.startswith("it counted nothing") and "kg:president" in told
        some = retrieved(arcade, "MATCH (c:Country)-[:capital|president]->(p) RETURN count(p) AS n")
        assert isinstance(some[0], RowsEvidence) and some[0].rows != ((0,),)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (
                "PREFIX x: <http://x/>\nSELECT ?city WHERE { ?c a kg:Country ; rdfs:label 'Peru' . "
                "?c kg:borders ?d . ?d rdfs:label 'Spain' ; kg:capital ?city }",
                "'?c kg:borders ?d .' leaves nothing",  # both are there, and share no border
            ),
            (
                "SELECT ?n { ?c a kg:Country . FILTER(CONTAINS(?n, 'zzz') && ?n != 'x') ?c rdfs:label ?n }",
                "\"FILTER(CONTAINS(?n, 'zzz') && ?n != 'x')\" leaves nothing",
            ),
            ("SELECT ?n { ?c rdfs:label 'Spam' . OPTIONAL { ?c kg:capital ?n } }", ""),
            ("SELECT ?n { { ?c rdfs:label 'Spam' } UNION { ?c rdfs:label 'Ham' } }", ""),
        ],
    )
    def test_the_part_of_sparql_that_emptied_it(self, oxigraph: OxigraphStore, text: str, told: str) -> None:
        found = problem(oxigraph, text, "sparql")
        assert found.startswith("it returned no rows") and ("leaves nothing" in found) == bool(told) and told in found

    def test_values_that_their_property_holds_are_not_blamed(
        self, northwind_stores: tuple[ArcadeStore, OxigraphStore]
    ) -> None:
        # A customer is called "France restauration".
        pattern = '(c:Customer {country: "France"})-[:PURCHASED]->(o:Order {shipCountry: "USA"})'
        told = f"it returned no rows; {pattern!r} is the first pattern that gives no row"
        assert problem(northwind_stores[0], f"MATCH {pattern} RETURN o.orderDate") == told

    def test_formats_of_values_are_listed(self, northwind_stores: tuple[ArcadeStore, OxigraphStore]) -> None:
        arcade, oxigraph = northwind_stores
        query = "MATCH (o:Order) WHERE o.orderDate = 'July 4th, 1996' RETURN o.orderID"
        found = problem(arcade, query, grounding="off")
        assert "values of 'Order.orderDate' look like" in found and "1996-07-04" in found
        assert "shipCountry" not in found
        found = problem(oxigraph, "SELECT ?o { ?o kg:orderDate 'July 4th, 1996' }", "sparql", grounding="off")
        assert "values of 'orderDate' look like" in found

    def test_the_nearest_label_is_told_wherever_a_query_is_asked(self, arcade: ArcadeStore) -> None:
        text = "MATCH (n:Countri) RETURN n.name"
        near = "this graph has no label 'Countri'; nearest: Country"  # tests/cli/test_graph_commands.py asks the CLI
        assert near in problem(arcade, text)
        of_mcp = GraphTools(arcade, queries=[arcade]).call("run_query", {"query": text})
        assert any(near in told for told in of_mcp["notes"])

    def test_each_query_is_a_step(self, arcade: ArcadeStore) -> None:
        asked = request(CAPITAL, "MATCH (c) DELETE c")
        QueryRetriever(Parts(arcade)).retrieve(asked)
        ran, refused = asked.steps
        assert ran.given == {"language": "cypher", "query": CAPITAL}
        assert ran.got == {"columns": ["city.name"], "rows": 1, "truncated": False}
        assert set(refused.got) == {"problem"}


class TestEarlierRounds:
    def after(self, store: ArcadeStore, *queries: str) -> Context:
        asked = request(*queries)
        return Context().add(asked.artifacts, asked.linked, [QueryRetriever(Parts(store)).retrieve(asked)])

    @pytest.mark.parametrize(
        ("query", "told"),
        [
            (CAPITAL, "it ran in an earlier round (e1) already and returned 1 rows; write another"),
            (MISSPELT, "it was tried in an earlier round (e1) already: it returned no rows"),
        ],
    )
    def test_what_they_ran_is_not_run_again(
        self, arcade: ArcadeStore, monkeypatch: pytest.MonkeyPatch, query: str, told: str
    ) -> None:
        context = self.after(arcade, query)
        monkeypatch.setattr(arcade, "run", lambda *_, **__: pytest.fail("it ran"), raising=False)
        (item,) = QueryRetriever(Parts(arcade)).retrieve(request(query, context=context))
        assert isinstance(item, Feedback) and item.problem.startswith(told)

    def test_a_third_time_tells_the_first_problem(self, arcade: ArcadeStore) -> None:
        context = self.after(arcade, MISSPELT)
        for _ in range(2):
            asked = request(MISSPELT, context=context)
            found = QueryRetriever(Parts(arcade)).retrieve(asked)
            context = context.add(asked.artifacts, asked.linked, [found])
        _, second, third = context.evidence
        assert isinstance(second, Feedback) and isinstance(third, Feedback)
        assert third.problem == second.problem


class TestRepairs:
    def repaired(self, store: ArcadeStore, *replies: str, repairs: int = 2, query: str = MISSPELT) -> list[Evidence]:
        model = LanguageModel(ScriptedChatModel(replies=replies))
        return QueryRetriever(Parts(store, model), repairs).retrieve(request(query))

    def test_a_correction_is_run(self, arcade: ArcadeStore) -> None:
        feedback, rows = self.repaired(arcade, f"<opencypher>\n{CAPITAL}\n</opencypher>")
        assert isinstance(feedback, Feedback) and feedback.subject == MISSPELT
        assert isinstance(rows, RowsEvidence) and (rows.query, rows.rows) == (CAPITAL, (("Lima",),))

    def test_several_are_asked_for_up_to_the_limit(self, arcade: ArcadeStore) -> None:
        worse = "<opencypher>MATCH (c:Contry) RETURN c</opencypher>"
        assert len(self.repaired(arcade, worse, f"<opencypher>{CAPITAL}</opencypher>")) == 3
        found = self.repaired(arcade, worse, repairs=1)
        assert all(isinstance(item, Feedback) for item in found) and len(found) == 2

    @pytest.mark.parametrize("reply", ["<opencypher></opencypher>", f"<opencypher>{MISSPELT}</opencypher>"])
    def test_no_correction_or_the_same_again_ends_it(self, arcade: ArcadeStore, reply: str) -> None:
        assert len(self.repaired(arcade, reply)) == 1

    def test_a_query_with_rows_is_left_alone(self, arcade: ArcadeStore) -> None:
        assert len(self.repaired(arcade, query=CAPITAL)) == 1

    def test_a_model_that_says_nothing_is_an_error(self, arcade: ArcadeStore) -> None:
        with pytest.raises(LlmEmpty):
            self.repaired(arcade, " ")


class TestWhatItNeeds:
    def test_a_store_without_queries_is_refused_by_name(self) -> None:
        with pytest.raises(ConfigError, match=r"countries runs no queries; choose graph=arcadedb"):
            QueryRetriever(Parts(countries()))

    def test_repairs_need_a_model(self, arcade: ArcadeStore) -> None:
        with pytest.raises(ConfigError, match="calls a language model"):
            QueryRetriever(Parts(arcade), repairs=1)

    @pytest.mark.parametrize("setting", ["timeout_s", "max_rows", "schema_tokens"])
    def test_settings_that_leave_nothing_are_named(self, arcade: ArcadeStore, setting: str) -> None:
        settings: dict[str, Any] = {setting: 0}
        with pytest.raises(ConfigError, match=f"{setting}=0"):
            QueryRetriever(Parts(arcade), **settings)

    def test_a_store_that_cannot_be_reached_raises(self, arcade: ArcadeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def gone(*_: object, **__: object) -> None:
            raise StoreUnavailable("the graph", "it is gone")

        monkeypatch.setattr(arcade, "run", gone, raising=False)
        with pytest.raises(StoreUnavailable):
            retrieved(arcade, CAPITAL)


@pytest.mark.parametrize(
    ("name", "load", "asked", "doubtful"),
    [
        ("northwind", northwind, 328, 1),  # one walks ORDERS backwards, inside NOT EXISTS
        ("movies", movies, 245, 13),  # these sort by `votes`, which no film has
    ],
)
def test_published_gold_queries_give_rows(
    arcade: ArcadeStore, name: str, load: Callable[[Path], ColumnarGraph], asked: int, doubtful: int
) -> None:
    folder = needed(name)
    before = arcade.graph
    arcade.replace(load(folder))
    try:
        retriever = QueryRetriever(Parts(arcade), timeout_s=20)
        questions = dev_questions(folder)
        found = [retriever.retrieve(request(question["cypher"])) for question in questions]
    finally:
        arcade.replace(before)
    answered = [any(isinstance(item, RowsEvidence) for item in items) for items in found]
    told = [
        rows and any(isinstance(item, Feedback) for item in items) for rows, items in zip(answered, found, strict=True)
    ]
    missing = [one["id"] for one, rows in zip(questions, answered, strict=True) if one["gold_rows"] and not rows]
    assert (len(questions), missing, sum(told)) == (asked, [], doubtful)


@pytest.mark.parametrize(
    ("cypher", "sparql"),
    [
        (
            "MATCH (p:Product)-[:PART_OF]->(:Category {categoryName: 'Beverages'}) RETURN p",
            "SELECT ?p WHERE { ?p kg:PART_OF ?c . ?c a kg:Category ; kg:categoryName 'Beverages' }",
        ),
        (
            "MATCH (s:Supplier)-[:SUPPLIES]->(p:Product) WHERE p.discontinued = true RETURN DISTINCT s.companyName",
            "SELECT DISTINCT ?n WHERE { ?s kg:companyName ?n ; kg:SUPPLIES ?p . ?p kg:discontinued true }",
        ),
        (
            "MATCH (p:Product)-[:PART_OF]->(c:Category) RETURN c.categoryName, count(p)",
            "SELECT ?n (COUNT(?p) AS ?products) WHERE { ?p kg:PART_OF ?c . ?c kg:categoryName ?n } GROUP BY ?n",
        ),
        (
            "MATCH (c:Customer)-[:PURCHASED]->(o:Order) WHERE o.shipCountry = 'Norway' RETURN DISTINCT c, count(o)",
            "SELECT ?c (COUNT(?o) AS ?n) WHERE { ?c kg:PURCHASED ?o . ?o kg:shipCountry 'Norway' } GROUP BY ?c",
        ),
    ],
)
def test_the_same_question_gives_the_same_rows_in_either_language(
    northwind_stores: tuple[ArcadeStore, OxigraphStore], cypher: str, sparql: str
) -> None:
    arcade, oxigraph = northwind_stores
    (one,) = retrieved(arcade, cypher)
    (other,) = retrieved(oxigraph, sparql, language="sparql")
    assert isinstance(one, RowsEvidence) and isinstance(other, RowsEvidence)
    assert Counter(map(by_id, one.rows)) == Counter(map(by_id, other.rows)) and one.rows


def by_id(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Put a node's id in its place: the properties that come with it differ."""
    return tuple(cell.id if isinstance(cell, NodeCell) else cell for cell in row)
