"""Tests of `byokg.linking.entities`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph import name_indexes as name_index
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.names import NameMatch
from byokg.linking.entities import EntityLinker, Fusion, Method
from byokg.types import Artifacts, EntityId, LinkedEntity, LinkedLiteral, LinkMatch, Mention, Node, Triple
from tests.graph.contract import node
from tests.linking.graphs import EMBEDDER, films

#   n1 "Turkey" (a bird)   n2 "turkey"   n3 "Turkey" (a country)   n4 "Türkei"
NAMESAKES = [("n1", "Turkey"), ("n2", "turkey"), ("n3", "Turkey"), ("n4", "Türkei")]


@pytest.fixture
def linker() -> EntityLinker:
    return EntityLinker(films())


@pytest.fixture
def namesakes() -> ColumnarGraph:
    return ColumnarGraph.from_records([Node(EntityId(id), name) for id, name in NAMESAKES], [])


class CountingGraph(ColumnarGraph):
    """Counts how often all entities are listed."""

    listed = 0

    def entities(self) -> Iterator[EntityId]:
        self.listed += 1
        return super().entities()

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        assert len(ids) <= 5, "names are read a few at a time"
        return super().nodes(ids)


def found(linker: EntityLinker, text: str) -> list[tuple[str, str, float]]:
    return [(one.id, one.method, one.score) for one in linker.candidates(Mention(text))]


class TestCandidates:
    def test_the_names_of_one_thing_are_one_mention_by_resemblance_only_without_an_equal_one(
        self, linker: EntityLinker
    ) -> None:
        assert found(linker, "Ridley Scot | Alien | ALIEN") == [("Alien", "exact", 1.0)]
        assert [id for id, *_ in found(linker, "Ridley Scot | Nobody of this Name")] == ["Ridley Scott"]
        assert found(linker, "Ridley Scot | Alien") == [("Alien", "exact", 1.0)]
        whole = ColumnarGraph.from_records([Node(EntityId("w"), "Alien | Aliens"), Node(EntityId("a"), "Alien")], [])
        assert found(EntityLinker(whole), "Alien | Aliens") == [("w", "exact", 1.0)]

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("Ministries of Foreign Affair", "Ministry of Foreign Affairs"),
            ("war & peace", "War and Peace"),
            ("Harry Truman", "Harry S. Truman"),
        ],
    )
    def test_forms_of_words_connectives_and_initials_make_no_other_name(self, text: str, name: str) -> None:
        graph = ColumnarGraph.from_records([Node(EntityId("x"), name), Node(EntityId("y"), f"The {name} Trust")], [])
        assert found(EntityLinker(graph), text)[0] == ("x", "exact", 1.0)

    @pytest.mark.parametrize(("question", "start"), [("Titanic film director", 0), ("which film Titanic", 11)])
    def test_a_class_beside_the_mention_separates_namesakes(self, question: str, start: int) -> None:
        nodes = [Node(EntityId("a"), "Titanic", "Ship"), Node(EntityId("b"), "Titanic", "Film")]
        linker = EntityLinker(ColumnarGraph.from_records(nodes, []))
        ids = [one.id for one in linker.candidates(Mention("Titanic", start, start + 7), question)]
        assert ids[0] == "b"

    def test_a_name_is_found_whatever_its_case(self, linker: EntityLinker) -> None:
        mention = Mention("ALIEN", 3, 8)
        match = LinkMatch("exact", "ALIEN", 1.0, 1)
        assert linker.candidates(mention) == (
            LinkedEntity(EntityId("Alien"), "Alien", mention, "exact", 1.0, (match,)),
        )

    def test_a_misspelt_name_is_found_by_resemblance(self, linker: EntityLinker) -> None:
        ((entity, method, score),) = found(linker, "Ridly Scot")
        # "ridly scot" and "ridley scott": 10 letters in common of 22.
        assert (entity, method) == ("Ridley Scott", "fuzzy")
        assert score == pytest.approx(20 / 22)

    def test_given_ids_are_taken_without_searching(self, linker: EntityLinker) -> None:
        mention = Mention("whatever", ids=(EntityId("Titanic"), EntityId("Aliens")))
        assert [(one.id, one.name, one.method, one.score) for one in linker.candidates(mention)] == [
            ("Titanic", "Titanic", "given", 1.0),
            ("Aliens", "Aliens", "given", 1.0),
        ]

    def test_a_given_id_that_is_unknown_raises(self, linker: EntityLinker) -> None:
        with pytest.raises(EntityNotFound, match="'Predator'"):
            linker.candidates(Mention("Alien", ids=(EntityId("Predator"),)))

    def test_a_name_in_other_letters_also_means_a_far_better_known_node(self) -> None:
        # A song Mozart of one edge; Wolfgang Amadeus Mozart of ten, Leopold Mozart of one.
        works = [("Wolfgang Amadeus Mozart", "wrote", f"work {number}") for number in range(10)]
        graph = ColumnarGraph.from_triples(
            [("Mozart", "by", "Band"), ("Leopold Mozart", "born_in", "Augsburg"), *works]
        )
        linker = EntityLinker(graph)
        assert [one.id for one in linker.candidates(Mention("mozart"))] == ["Mozart", "Wolfgang Amadeus Mozart"]
        assert [one.id for one in linker.candidates(Mention("Mozart"))] == ["Mozart"]

    def test_of_many_nodes_with_one_word_the_best_known_is_found(self) -> None:
        # Thirty people called Obama, one edge each; Barack Hussein Obama, whose name is longer, has three.
        people = [(f"A{number} Obama", "lives_in", "Nyang'oma") for number in range(30)]
        known = [("Barack Hussein Obama", "wrote", f"book {number}") for number in range(3)]
        linker = EntityLinker(ColumnarGraph.from_triples([*people, *known]))
        assert linker.candidates(Mention("obama"))[0].id == "Barack Hussein Obama"

    @pytest.mark.parametrize("text", ["", "?!", "zzzzzz"])
    def test_what_resembles_nothing_has_no_candidates(self, linker: EntityLinker, text: str) -> None:
        assert linker.candidates(Mention(text)) == ()

    def test_ids_come_back_where_names_differ_from_them(self, namesakes: ColumnarGraph) -> None:
        assert found(EntityLinker(namesakes), "Türkei") == [("n4", "exact", 1.0)]

    def test_of_namesakes_those_written_alike_come_first(self, namesakes: ColumnarGraph) -> None:
        linker = EntityLinker(namesakes)
        assert [id for id, *_ in found(linker, "turkey")] == ["n2", "n1", "n3"]
        assert [id for id, *_ in found(linker, "Turkey")] == ["n1", "n3", "n2"]

    def test_no_more_than_top_k_are_given(self, namesakes: ColumnarGraph) -> None:
        assert [id for id, *_ in found(EntityLinker(namesakes, top_k=1), "turkey")] == ["n2"]
        assert [id for id, *_ in found(EntityLinker(namesakes, top_k=2), "turkeys")] == ["n1", "n2"]

    def test_the_cutoff_decides_what_resembles(self) -> None:
        assert found(EntityLinker(films(), cutoff=0.95), "Ridly Scot") == []


class TestLink:
    def test_mentions_and_drafts_stay_apart(self, linker: EntityLinker) -> None:
        linked = linker.link(Artifacts(mentions=(Mention("Alien"), Mention("Drama")), draft_answers=("Titanic",)))
        assert [(one.id, one.mention.text) for one in linked.entities] == [("Alien", "Alien"), ("Drama", "Drama")]
        assert [one.id for one in linked.drafts] == ["Titanic"]

    def test_nothing_is_linked_from_nothing(self, linker: EntityLinker) -> None:
        assert linker.link(Artifacts()).entities == linker.link(Artifacts()).drafts == ()

    def test_values_are_kept_beside_the_nodes(self, linker: EntityLinker) -> None:
        year, nobody, name = Mention("1979"), Mention("m.0abc"), Mention("Alien")
        linked = linker.link(Artifacts(mentions=(year, nobody, name)))
        assert [one.id for one in linked.entities] == ["1979", "Alien"]
        assert linked.literals == (LinkedLiteral(1979, "year", year), LinkedLiteral("m.0abc", "id", nobody))


@pytest.fixture(scope="module")
def places() -> EntityLinker:
    names = ("Los Angeles", "Angel", "Angeles", "Cher", "John", "Center", "Highland", "J. R. R. Tolkien")
    return EntityLinker(ColumnarGraph.from_triples([(name, "in", "somewhere") for name in names]))


class TestSeeds:
    """What a mention or a draft answer merely contains is not what it means."""

    @pytest.mark.parametrize("text", ["Los Angeles", "los angeles", "Los Angelos"])
    def test_no_piece_of_a_mention_is_an_entity_where_the_whole_matched(self, places: EntityLinker, text: str) -> None:
        assert [one.id for one in places.link(Artifacts(mentions=(Mention(text),))).entities] == ["Los Angeles"]

    @pytest.mark.parametrize("text", ["Cherwell", "Hollywood and Highland Center", "John Ronald Reuel", "Archangel"])
    def test_a_draft_answer_that_only_holds_a_name_seeds_nothing(self, places: EntityLinker, text: str) -> None:
        assert places.link(Artifacts(draft_answers=(text,))).drafts == ()

    @pytest.mark.parametrize("text", ["Los Angeles", "Los Angelos", "j.r.r. tolkien"])
    def test_a_draft_answer_that_matches_well_is_a_seed(self, places: EntityLinker, text: str) -> None:
        assert [one.id for one in places.link(Artifacts(draft_answers=(text,))).drafts][:1] in (
            [EntityId("Los Angeles")],
            [EntityId("J. R. R. Tolkien")],
        )


#   d1 -born-> "1990-05-12"   f1 "1984" (a film)   y1 "1984" (a year)   n1 "1991"   n2 "12,000"   x "m.0real"
#   "17" has an id that is a number;  q "Q500" is a film;  /m/0slash has an id written with slashes
VALUES = [
    ("d1", "1990-05-12"),
    ("f1", "1984"),
    ("y1", "1984"),
    ("n1", "1991"),
    ("n2", "12,000"),
    ("m.0real", "m.0real"),
    ("17", "Seventeenth row"),
    ("q", "Q500"),
    ("/m/0slash", "Slash"),
    ("http://example.org/a", "Anna"),
    ("bell-x1", "Bell"),
]


class TestValuesAndIds:
    @pytest.fixture
    def linker(self) -> EntityLinker:
        graph = ColumnarGraph.from_records([Node(EntityId(id), name) for id, name in VALUES], [])
        return EntityLinker(graph, "both", embedder=EMBEDDER, extend=True, dense_cutoff=0.0)

    @pytest.mark.parametrize("text", ["12 May 1990", "May 12, 1990", "12/05/1990", "1990-05-12"])
    def test_a_date_is_found_however_it_is_written(self, linker: EntityLinker, text: str) -> None:
        assert found(linker, text) == [("d1", "exact", 1.0)]

    def test_everything_called_like_a_year_is_found(self, linker: EntityLinker) -> None:
        assert found(linker, "1984") == [("f1", "exact", 1.0), ("y1", "exact", 1.0)]
        assert linker.literal(Mention("1984")) == LinkedLiteral(1984, "year", Mention("1984"))

    @pytest.mark.parametrize("text", ["1990", "1992", "12 May 1991", "1,991", "11000", "12:30"])
    def test_a_value_is_never_taken_for_one_that_resembles_it(self, linker: EntityLinker, text: str) -> None:
        assert [one.id for one in linker.candidates(Mention(text)) if one.method in ("fuzzy", "dense")] == []
        assert text == "1,991" or found(linker, text) == []

    def test_a_number_is_found_with_other_separators(self, linker: EntityLinker) -> None:
        assert found(linker, "12000") == found(linker, "12.000,0") == [("n2", "exact", 1.0)]

    @pytest.mark.parametrize(
        ("text", "id"),
        [
            ("m.0real", "m.0real"),
            ("/m/0real", "m.0real"),
            ("m.0slash", "/m/0slash"),
            ("<http://example.org/a>", "http://example.org/a"),
            ("bell-x1", "bell-x1"),
        ],
    )
    def test_an_id_is_found_in_any_of_its_spellings(self, linker: EntityLinker, text: str, id: str) -> None:
        assert found(linker, text)[0] == (id, "id", 1.0)

    def test_an_id_that_is_a_number_is_no_name(self, linker: EntityLinker) -> None:
        assert found(linker, "17") == []

    def test_what_looks_like_an_id_may_be_a_name(self, linker: EntityLinker) -> None:
        assert found(linker, "Q500") == [("q", "exact", 1.0)]

    def test_an_unknown_id_is_carried_on_and_resembles_nothing(self, linker: EntityLinker) -> None:
        assert found(linker, "m.0reel") == []
        assert linker.link(Artifacts(mentions=(Mention("m.0reel"),))).literals[0].kind == "id"

    def test_a_mention_given_by_id_is_no_value(self, linker: EntityLinker) -> None:
        assert linker.literal(Mention("1984", ids=(EntityId("f1"),))) is None


class Scripted:
    """Finds what it was told to, whatever is asked; counts the calls."""

    def __init__(self, *matches: tuple[int, float]) -> None:
        self.matches = matches
        self.calls = 0

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        self.calls += 1
        return [[NameMatch(owner, f"name {owner}", score) for owner, score in self.matches[:k]] for _ in texts]


# a -r-> b; c -r-> b, c -r-> d; "Stone" is a, "Stones" is b, the rest are called otherwise
STONES = ColumnarGraph.from_records(
    [Node(EntityId(id), name) for id, name in zip("abcd", ["Stone", "Stones", "Rock", "Pebble"], strict=True)],
    [Triple(EntityId(head), "r", EntityId(tail)) for head, tail in ("ab", "cb", "cd")],
)


class TestUnion:
    def linker(
        self, method: Method, *dense: tuple[int, float], fusion: Fusion = "union", extend: bool = False, top_k: int = 3
    ) -> EntityLinker:
        return EntityLinker(STONES, method, top_k, 0.8, 0.3, fusion, extend, dense=lambda: Scripted(*dense))

    def test_each_node_comes_once_with_what_every_method_made_of_it(self) -> None:
        found = self.linker("both", (2, 0.9), (0, 0.5)).candidates(Mention("Stome"))
        by_id = {one.id: one for one in found}
        # ratio of "stome" with "stone" 8/10, with "stones" 8/11 (beneath the cutoff).
        assert [(match.method, match.score, match.rank) for match in by_id[EntityId("a")].matches] == [
            ("fuzzy", pytest.approx(0.8), 1),
            ("dense", 0.5, 2),
        ]
        assert [(match.method, match.rank) for match in by_id[EntityId("c")].matches] == [("dense", 1)]
        assert [one.id for one in found] == ["c", "a"]
        assert [one.score for one in found] == [0.9, pytest.approx(0.8)]
        assert by_id[EntityId("a")].method == "fuzzy" and by_id[EntityId("c")].method == "dense"

    def test_fusion_sums_reciprocal_ranks_of_the_most_that_is_possible(self) -> None:
        found = self.linker("both", (2, 0.9), (0, 0.5), fusion="rrf").candidates(Mention("Stome"))
        # a is first and second, c first once: of 2/61 at most.
        assert [one.id for one in found] == ["a", "c"]
        assert [one.score for one in found] == [
            pytest.approx((1 / 61 + 1 / 62) / (2 / 61)),
            pytest.approx((1 / 61) / (2 / 61)),
        ]

    def test_a_union_has_up_to_twice_as_many_and_a_method_no_more_than_asked(self) -> None:
        both = self.linker("both", (2, 0.9), (3, 0.8), (1, 0.7), top_k=1).candidates(Mention("Stome"))
        assert [one.id for one in both] == ["c", "a"]
        dense = self.linker("dense", (2, 0.9), (3, 0.8), (1, 0.7), top_k=2).candidates(Mention("Stome"))
        assert [one.id for one in dense] == ["c", "d"]

    def test_ties_go_to_the_higher_degree_and_then_to_the_lesser_id(self) -> None:
        # Degrees: b 2, c 2, a 1, d 1.
        found = self.linker("dense", (3, 0.5), (2, 0.5), (1, 0.5), (0, 0.5), top_k=4).candidates(Mention("gravel"))
        assert [one.id for one in found] == ["b", "c", "a", "d"]
        assert [one.matches[0].rank for one in found] == [1, 2, 3, 4]

    def test_an_equal_name_decides_unless_more_is_wanted(self) -> None:
        assert [one.id for one in self.linker("dense", (2, 0.9)).candidates(Mention("stone"))] == ["a"]
        extended = self.linker("dense", (2, 0.9), (0, 0.8), extend=True).candidates(Mention("stone"))
        assert [(one.id, one.method) for one in extended] == [("a", "exact"), ("c", "dense")]
        assert [match.method for match in extended[0].matches] == ["exact", "dense"]

    def test_the_cutoffs_keep_out_what_scores_nothing(self) -> None:
        assert self.linker("dense", (2, 0.29), (3, 0.0)).candidates(Mention("gravel")) == ()
        nothing = EntityLinker(STONES, "dense", dense_cutoff=0.0, dense=lambda: Scripted((2, 0.0), (3, -0.5)))
        assert nothing.candidates(Mention("gravel")) == ()

    def test_by_default_a_fuzzy_match_scores_086_and_a_dense_one_05(self) -> None:
        # The ratio of "stome" and "stone" is 0.8; of "stoness" and "stones" 12/13, and "stone" 10/12.
        assert EntityLinker(STONES).candidates(Mention("Stome")) == ()
        assert [one.id for one in EntityLinker(STONES).candidates(Mention("Stoness"))] == ["b"]
        dense = EntityLinker(STONES, "dense", dense=lambda: Scripted((2, 0.5), (3, 0.49)))
        assert [one.id for one in dense.candidates(Mention("gravel"))] == ["c"]

    def test_all_mentions_are_asked_about_at_once_and_stay_apart(self) -> None:
        index = Scripted((2, 0.9))
        linker = EntityLinker(STONES, "dense", dense=lambda: index)
        found = linker.link_all(
            [Mention("gravel"), Mention("Pebble"), Mention("sand"), Mention("x", ids=(EntityId("b"),))]
        )
        assert [[(one.id, one.mention.text) for one in some] for some in found] == [
            [("c", "gravel")],
            [("d", "Pebble")],
            [("c", "sand")],
            [("b", "x")],
        ]
        assert index.calls == 1

    def test_exact_looks_for_nothing_that_resembles(self) -> None:
        assert self.linker("exact", (2, 0.9)).candidates(Mention("Stome")) == ()

    def test_the_question_is_asked_only_where_there_is_a_choice(self) -> None:
        linker = EntityLinker(STONES, "exact", disambiguate=True, embedder=EMBEDDER)
        ((only,),) = linker.link_all([Mention("Rock")], "what is Rock")
        assert only.context is None and only.score == 1.0


@pytest.mark.parametrize("method", ["exact", "fuzzy", "dense", "both"])
@pytest.mark.parametrize(
    "text",
    ["", " ", "\t\n", "?!", "...", "\x00\x01\x1b[[", "\u202e\u200f", "😀🎉", "\ud800", "a" * 10_000, "1" * 10_000],
    ids=lambda text: repr(text[:12]),
)
def test_nasty_mentions_find_nothing(method: Method, text: str) -> None:
    linker = EntityLinker(films(), method, embedder=EMBEDDER, extend=True, dense_cutoff=0.0, disambiguate=True)
    assert linker.candidates(Mention(text), f"who directed {text}?") == ()


def test_right_to_left_names_are_found(namesakes: ColumnarGraph) -> None:
    graph = ColumnarGraph.from_triples([("ירדן", "בירה", "עמאן"), ("الأردن", "عاصمة", "عمان")])
    linker = EntityLinker(graph, "both", embedder=EMBEDDER)
    assert found(linker, "ירדן")[0] == ("ירדן", "exact", 1.0)
    assert found(linker, "الأردنن")[0][0] == "الأردن"


def test_names_are_read_once_and_a_few_at_a_time_by_however_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "_NODES_AT_ONCE", 5)
    graph = CountingGraph.from_triples([(f"a{i}", "r", f"b{i}") for i in range(500)])
    assert isinstance(graph, CountingGraph)
    linker = EntityLinker(graph)
    barrier = Barrier(8)

    def look_up(number: int) -> list[tuple[str, str, float]]:
        barrier.wait()
        return found(linker, f"B{number}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(look_up, range(8))) == [[(f"b{number}", "exact", 1.0)] for number in range(8)]
    assert graph.listed == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("top_k", 0), ("cutoff", 1.5), ("cutoff", -0.1), ("dense_cutoff", 2.0), ("context_weight", np.nan)),
        *(("method", "vague"), ("fusion", "sum"), ("method", "dense"), ("method", "both")),
    ],
)
def test_settings_out_of_range_are_named(setting: str, value: float | str) -> None:
    with pytest.raises(ConfigError, match=f"{setting}={value}"):
        EntityLinker(films(), **{setting: value})  # type: ignore[arg-type]


def test_an_rdf_store_is_linked_to_like_a_folder_whatever_the_text_holds(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")
    from byokg.graph.engines.oxigraph import build_oxigraph

    #   jo "Jordan" -capital-> am "Amman"      jr "Jordan" -flows near-> am
    graph = ColumnarGraph.from_records(
        [
            Node(EntityId("jo"), "Jordan", "Country"),
            Node(EntityId("jr"), "Jordan", "River"),
            Node(EntityId("am"), "Amman"),
        ],
        [Triple(EntityId("jo"), "capital", EntityId("am")), Triple(EntityId("jr"), "flows near", EntityId("am"))],
    )
    with build_oxigraph(graph, tmp_path / "rdf") as store:
        linker = EntityLinker(store, "both", embedder=EMBEDDER, disambiguate=True)
        found = linker.candidates(Mention("Jordan", 23, 29), "What is the capital of Jordan?")
        assert [(one.id, one.method) for one in found] == [("jo", "exact"), ("jr", "exact")]
        assert [one.id for one in linker.candidates(Mention("am"))] == ["am"]
        for text in (
            "<http://x.org/a b>",
            'http://x.org/"> } #',
            "{ ?s ?p ?o }",
            "<>",
            "\x00\x1b",
            "\ud800",
            "a" * 5000,
        ):
            assert linker.candidates(Mention(text)) == ()


def test_mentions_that_are_values_link_to_nodes_and_constraints() -> None:
    nodes = [node("o1", "Officer", badge="70-5119724"), node("o2", "Officer", badge="11-2345678")]
    linked = EntityLinker(ColumnarGraph.from_records(nodes, [])).link(Artifacts(mentions=(Mention("70-5119742"),)))
    assert [(one.id, one.method) for one in linked.entities] == [("o1", "value")]
    assert [str(one) for one in linked.values] == ["Officer.badge = 70-5119724"]


def test_a_value_is_no_similar_name_unless_it_is_a_part_of_the_names_of_its_nodes() -> None:
    # France is the country of three customers, one of which has it in its name; Powell is a surname.
    shops, officers = ("France restauration", "Bon app", "Vins"), ("Ann Powell", "Bea Powell")
    nodes = [node(name, "Customer", country="France") for name in shops]
    nodes += [node(name, "Officer", surname="Powell") for name in officers]
    linker = EntityLinker(ColumnarGraph.from_records(nodes, []), top_k=2)
    assert linker.candidates(Mention("France")) == ()
    assert [one.id for one in linker.candidates(Mention("Frances restauration"))] == ["France restauration"]
    assert [one.id for one in linker.candidates(Mention("Powell"))] == list(officers)


class TestWellKnownNodes:
    @pytest.fixture
    def graph(self) -> ColumnarGraph:
        cities = [(f"city {number}", "in_country", "United States of America") for number in range(40)]
        films = [(f"film {number}", "starring", "Tupac Shakur") for number in range(40)]
        codes = [("United States of America", "code", "US"), ("United States of America", "short_name", "us")]
        return ColumnarGraph.from_triples([*cities, *films, *codes, ("Biography", "image", "Tupac")])

    def test_spellings_of_one_value_are_no_seeds_beside_the_entity(self, graph: ColumnarGraph) -> None:
        linker = EntityLinker(graph)
        assert [one.id for one in linker.candidates(Mention("the US"))] == ["United States of America"]

    def test_a_far_better_known_node_replaces_a_value_of_the_short_name(self, graph: ColumnarGraph) -> None:
        linker = EntityLinker(graph)
        assert [one.id for one in linker.candidates(Mention("Tupac"))] == ["Tupac Shakur"]

    def test_a_name_with_the_words_in_its_middle_is_not_meant(self) -> None:
        edges = [("national film registry", "lists", f"film {number}") for number in range(40)]
        linker = EntityLinker(ColumnarGraph.from_triples([*edges, ("a", "has_tag", "film")]))
        assert [one.id for one in linker.candidates(Mention("film"))] == ["film"]

    def test_namesakes_stay_however_little_known(self) -> None:
        nodes = [Node(EntityId("n1"), "Jordan", "Country"), Node(EntityId("n2"), "Jordan", "Person")]
        cities = [Node(EntityId(f"c{number}"), f"city {number}") for number in range(40)]
        edges = [Triple(city.id, "in", EntityId("n1")) for city in cities]
        linker = EntityLinker(ColumnarGraph.from_records([*nodes, *cities], edges))
        assert [one.id for one in linker.candidates(Mention("Jordan"))] == ["n1", "n2"]
