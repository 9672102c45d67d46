"""Entity linking: candidate nodes of a mention.

`EntityLinker` finds candidates by name and by id. `ContextScorer` decides between them by their neighbourhood: seven
nodes may be called Jordan, but a question about a capital means one that has a capital.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from byokg.arrays import Float32, Int64
from byokg.errors import ConfigError, EntityNotFound, at_least, one_of, shares
from byokg.graph.name_indexes import has_vector_index, name_index, open_dense_lookup
from byokg.graph.store import GraphStore, RelationCounts
from byokg.index.embedders import Embedder, Vectors, exact
from byokg.index.names import NameIndex, NameMatch, NameSearch, qualifier, unqualified
from byokg.text.languages import foreign_names
from byokg.text.names import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    full_names,
    label_words,
    normalize_name,
    other_names,
    relation_text,
    split_words,
    untitled,
)
from byokg.text.values import is_wordless, read_literal
from byokg.types import (
    Artifacts,
    EntityId,
    Linked,
    LinkedEntity,
    LinkedLiteral,
    LinkedValue,
    LinkMatch,
    LinkMethod,
    Mention,
    Node,
)

if TYPE_CHECKING:
    from byokg.index.values import ValueMatch
    from byokg.linking.values import ValueLinker

_THRESHOLD = 0.3
"""Cosines up to here count as none; the rest is stretched to [0, 1]."""


@dataclass(frozen=True)
class Surroundings:
    """Neighbourhoods of N nodes, as T texts."""

    vectors: Vectors
    """(T, D) unit rows."""
    bounds: Int64
    """(N + 1,) node n is described by texts[bounds[n]] up to texts[bounds[n + 1]]."""
    texts: Int64
    """Rows of `vectors`, node after node."""


class ContextScorer:
    """Rates how well the neighbourhood of a node fits a question.

    Each word of the question outside the mention is compared with everything that describes the node: its type, and
    the relations of its edges in both directions, each by its own name and together with its namespace
    (`government.country.capital` is `capital` and `country capital`). The best counts for the word; all words count
    alike. Edges are counted by the store, so a hub costs no more than its relations.

    Safe to share between threads.

    Args:
        store: the graph, for the labels of its relations.
        embedder: compares words.
    """

    def __init__(self, store: GraphStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._known: dict[str, Float32] = {}

    def around(self, counts: RelationCounts, types: Sequence[Sequence[str]]) -> Surroundings:
        """Describe nodes.

        Args:
            counts: the relations of N nodes.
            types: their types, empty if there is none: (N,).
        """
        described = [list(some) for some in types]
        labels = self._store.relations
        # A relation by its own words, and with its namespace.
        spelled = {
            number: [" ".join(label_words(labels[number])[1]), relation_text(labels[number])]
            for number in np.unique(counts.relation).tolist()
        }
        for origin, number in zip(counts.origin.tolist(), counts.relation.tolist(), strict=True):
            described[origin] += spelled[number]
        row: dict[str, int] = {}
        texts = [[row.setdefault(text, len(row)) for text in dict.fromkeys(own)] for own in described]
        bounds = np.cumsum([0, *map(len, texts)])
        return Surroundings(self._vectors(list(row)), bounds, np.array([n for own in texts for n in own], np.int64))

    def fit(self, question: str, mention: Mention, around: Surroundings, nodes: Sequence[int]) -> Float32:
        """Rate candidate nodes of one mention.

        Args:
            question: its text.
            mention: the piece of it that is left out of account.
            around: descriptions of the nodes.
            nodes: positions in it, N of them.

        Returns:
            (N,) in [0, 1]: mean over the question's words of the best description's fit; 0 for a node without a
            description, and for all without another content word.
        """
        out = np.zeros(len(nodes), np.float32)
        words = _other_words(question, mention)
        if not words or not len(around.vectors):
            return out
        cosines = exact(self._embedder.encode(words)) @ exact(around.vectors).T
        fits = np.clip((cosines - _THRESHOLD) / (1 - _THRESHOLD), 0, 1)
        for place, node in enumerate(nodes):
            texts = around.texts[around.bounds[node] : around.bounds[node + 1]]
            if len(texts):
                out[place] = fits[:, texts].max(axis=1).mean()
        return out

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of descriptions, of which a graph has no more than twice its relations and types."""
        new = [text for text in texts if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else np.empty((0, 0), np.float32)


def _other_words(question: str, mention: Mention) -> list[str]:
    """Return the content words of a question outside the mention and not in it."""
    rest = f"{question[: mention.start]} {question[mention.end :]}" if mention.start >= 0 else question
    left_out = FUNCTION_WORDS | QUESTION_WORDS | set(split_words(mention.text))
    return [word for word in split_words(rest) if word not in left_out]


Method = Literal["exact", "fuzzy", "dense", "both"]
Fusion = Literal["union", "rrf"]
METHODS: tuple[Method, ...] = ("exact", "fuzzy", "dense", "both")


ALIAS = " | "
"""Stands between the names of one mention."""

_NAMESAKES = 1000
"""Nodes of one name that are looked at, to take the best of."""
_SOME = 200
"""Sampled nodes for the form of the graph's ids."""
_HITS = 100
"""Nodes that a server's own index of names may find for a mention, and names with all its words that are looked at."""
_POOL = 20
"""Matches of one method among which the question decides, at least."""
_SPARE = 7
"""Matches beyond those wanted among which ties are broken."""
_BETTER = 3
"""Times as many edges a better known node has."""
_FAR_BETTER = 20
"""Times as many edges a node has that a mention means beside one named just so (`Tupac`, a picture; Tupac Shakur)."""
_DWARFED = 15
"""Times as many edges the best known candidate has where another of equal but differently written name is left out,"""
_DWARFED_FUZZY = 4
"""or where one is that is merely similar."""
_OTHER = 0.95
"""Score of a node that a mention equals by another name (`jamaican`), which the question may outweigh."""
_HELD = 0.85
"""Lowest score of a name that holds all words of a mention."""
_SHORT = 3
"""Letters of a mention that is in too many names."""
_CLEARLY = 0.02
"""Lead in cosine of the nearest name of a foreign word over the next."""
_LONGEST = 1000
"""Characters of a mention; nothing resembles a longer one, though a name may equal it."""
CONTEXT_WEIGHT = 0.2
"""Found on the dev splits of WebQSP, CWQ and atlas: more helps where names are ambiguous, and harms elsewhere."""
_RRF = 60
"""The constant k of reciprocal-rank fusion. Source: Cormack et al., SIGIR 2009, which found 60."""


@dataclass
class _NodeCandidate:
    """A node that one mention may mean, while it is being ranked."""

    number: int
    matches: list[LinkMatch]
    score: float = 0.0
    context: float | None = None

    @property
    def method(self) -> LinkMethod:
        """Return the method that found the node for certain, or else ranked it best; of several the higher score."""
        return min(
            self.matches, key=lambda match: (match.method in ("fuzzy", "dense"), match.rank, -match.score)
        ).method


@dataclass
class _MentionSearch:
    """One mention on its way to its candidates."""

    mention: Mention
    settled: bool = False
    """Nothing that merely resembles the mention is wanted."""
    casual: bool = False
    """Equal names are written otherwise, and far better known nodes may be meant (`mozart`)."""
    candidates: list[_NodeCandidate] = field(default_factory=list)
    """Certain candidates; later also similar ones."""
    found: dict[LinkMethod, list[NameMatch]] = field(default_factory=dict)
    """Similar candidates, as the indexes returned them."""

    @property
    def numbers(self) -> list[int]:
        """Return the nodes in question, each once."""
        resembling = (match.owner for matches in self.found.values() for match in matches)
        return list(dict.fromkeys([*(candidate.number for candidate in self.candidates), *resembling]))


@dataclass(frozen=True)
class _RankingFeatures:
    """What ranking needs to know of N nodes."""

    rows: Mapping[int, int]
    """Position of each node number in the arrays below."""
    nodes: Sequence[Node]
    counts: RelationCounts
    degrees: Sequence[int]

    def node(self, number: int) -> Node:
        """Return the node of a number."""
        return self.nodes[self.rows[number]]

    def key(self, number: int) -> tuple[int, EntityId]:
        """Return the tie-breaker: the node of more edges comes first, then the lesser id."""
        return -self.degrees[self.rows[number]], self.node(number).id


class _NameLookup:
    """Finds the nodes of a name, exactly or by resemblance; a server is asked before all its names are read."""

    def __init__(
        self, store: GraphStore, names: NameIndex | None, dense: Callable[[], NameSearch] | None, by_vectors: bool
    ) -> None:
        self._store = store
        self._names = names
        self._make_dense = dense
        self._dense: NameSearch | None = None
        self._by_vectors = by_vectors
        self._lock = Lock()

    @property
    def remote(self) -> bool:
        """True if names are those of a server and not indexed here."""
        return self._names is None and self._store.remote

    @property
    def names(self) -> NameIndex:
        """Return the index over the names of all nodes, by node number."""
        with self._lock:  # threads that come while it is made wait, instead of making it again
            if self._names is None:
                self._names = name_index(self._store)
            return self._names

    def meanings(self) -> NameSearch | None:
        """Return the index of names by meaning, if there is to be one."""
        with self._lock:
            if self._dense is None and self._make_dense is not None:
                self._dense = self._make_dense()
            return self._dense

    def nearest(self, text: str, cutoff: float) -> str:
        """Return the name that a text is clearly nearest to by meaning; empty without one."""
        dense = self.meanings()
        found = [] if dense is None else dense.search([text], 2)[0]
        second = found[1].score if len(found) > 1 else 0.0
        return found[0].name if found and found[0].score >= max(cutoff, second + _CLEARLY) else ""

    def written_otherwise(self, text: str) -> bool:
        """True if a text is written like none of the names that equal it."""
        if self.remote:
            return False
        return not any(map(self.names.writes, dict.fromkeys((text, untitled(text)))))

    def by_id(self, spellings: Sequence[str]) -> list[_NodeCandidate]:
        """Return the node that has one of these ids; ids are written in one way only, so the first found is it."""
        for spelling in spellings:
            if not spelling.strip():
                continue
            try:
                number = int(self._store.numbers([EntityId(spelling)])[0])
            except EntityNotFound:
                continue
            return [_NodeCandidate(number, [LinkMatch("id", spelling, 1.0, 1)])]
        return []

    def bearers(self, names: Sequence[str]) -> list[tuple[str, list[int]]]:
        """Return each name with the nodes of an equal one.

        A server first looks up the exact spellings, all at once, which needs no index of all names.
        """
        distinct = list(dict.fromkeys(names))
        if self.remote:
            found = [list(numbers[:_NAMESAKES]) for numbers in self._store.named(distinct)]
            by_vectors = self._by_vectors and has_vector_index(self._store)
            if any(found) or by_vectors or self._store.resembling([], 1) is not None:
                return list(zip(distinct, found, strict=True))
        bearing = self.names.bearing(distinct)
        return [(name, owners[:_NAMESAKES].tolist()) for name, owners in zip(distinct, bearing, strict=True)]

    def holding(self, text: str, cutoff: float) -> list[NameMatch]:
        """Return who bears a name with all words of a text but its titles."""
        text = untitled(text)
        return self.names.holding([text], _HITS, cutoff)[0] if len(text) > _SHORT else []

    def loosely(self, text: str) -> list[str]:
        """Return the names that are a text but for forms of words, connectives and initials."""
        words = normalize_name(text).split()
        return sorted(name for *run, name in self.names.loosely(words) if run == [0, len(words) - 1])

    def similar(self, texts: Sequence[str], pool: int, cutoff: float) -> list[list[NameMatch]]:
        """Return who bears names like each text: of those that a server's own index finds, if it has one."""
        if self.remote:
            found = self._store.resembling(texts, _HITS)
            if found is not None:  # ranked by our own score: the server's first results share few letters
                hits = [NameIndex.of(entries) for entries in found]
                return [self._alike(index, [text], pool, cutoff)[0] for index, text in zip(hits, texts, strict=True)]
        return self._alike(self.names, texts, pool, cutoff)

    def _alike(self, names: NameIndex, texts: Sequence[str], pool: int, cutoff: float) -> list[list[NameMatch]]:
        """Return who bears names most like each text, and who bears more with all its words: one may be well known."""
        found = names.search(texts, pool, cutoff)
        held = names.holding([text if len(text) > _SHORT else "" for text in texts], _HITS, min(cutoff, _HELD))
        for matches, more in zip(found, held, strict=True):
            known = {match.owner for match in matches}
            matches += [match for match in more if match.owner not in known]
        return found


@dataclass(eq=False)
class EntityLinker:
    """Finds candidate nodes of a mention, best first, each mention apart.

    In this order: ids given with the mention; a node with the mention as id, if it looks like an identifier; nodes
    with a name equal to it after folding, or a name without its qualifier (`Titanic (film)`); nodes with another
    spelling of the same date, year or number (see `literals`), or with an alias of its place
    (`jamaican`, see `other_names`); a node with the mention as id; nodes with the English name of a foreign one
    (`Deutschland`, see `foreign_names`), or with a name of the same words in other forms (`name_essence`).
    The first of these with a result decides; but a mention in other letters than the name (`mozart`) also means a
    node of three times as many edges, named with all its words or by an alias (`the uk`), and any mention one of
    twenty times as many, whose name begins or ends with it.
    Of equal names in other letters (`US`, `UNITED STATES`) and of similar names, those of nodes far less known than the
    best are left out, unless the question decides. The remaining mentions are matched by letters (`fuzzy`), by meaning
    (`dense`), or by both, the best `top_k` of each. A mention without a letter, or that is an identifier, has no
    approximate matches. The names of one thing (`United States | US`) are one mention, which is searched by resemblance
    only if no node is certain for any of them.

    Ties are broken by degree, then by id. A mention of digits alone is matched to names only, since ids
    that are numbers are too often row numbers.

    Args:
        store: the graph.
        method: search beyond equal names: none (`exact`), similar names (`fuzzy`, `dense`), or `both`.
        top_k: nodes for one mention, of each method; `both` gives up to twice as many.
        cutoff: lowest score of a fuzzy match, in [0, 1].
        dense_cutoff: lowest score of a dense match, in [0, 1].
        fusion: order of the results of `both`: `union` by the better score, `rrf` by the sum of the
            reciprocal ranks.
        extend: search similar names also if some are equal; a mention that is a value or an
            identifier is exempt.
        disambiguate: let the question decide between the candidates of a mention, by their neighbourhoods.
        context_weight: share of that in a candidate's score, in [0, 1].
        embedder: for meanings of names (`dense`, `both`) and of neighbourhoods (`disambiguate`).
        known_names: the names of all nodes, by node number; None reads them from the store on first use.
        dense: makes the dense name index, owners being node numbers; called once, on first use. None uses the vector
            index of a server, if its store names one, or else makes one with the embedder.

    Raises:
        ConfigError: a setting is out of range, or needs an embedder that is not given.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Entity Linking"; m = 3 there and here.
    Differs: an equal name decides unless `extend` is set, as it would be in the paper; matches have a cutoff.

    >>> from byokg import ColumnarGraph
    >>> graph = ColumnarGraph.from_triples([("Danube", "flows_through", "Vienna")])
    >>> [[linked.name for linked in found] for found in EntityLinker(graph).link_all([Mention("Dannube")])]
    [['Danube']]
    """

    store: GraphStore
    method: Method = "fuzzy"
    top_k: int = 3
    cutoff: float = 0.86
    dense_cutoff: float = 0.5
    fusion: Fusion = "union"
    extend: bool = False
    disambiguate: bool = False
    context_weight: float = CONTEXT_WEIGHT
    embedder: Embedder | None = None
    known_names: NameIndex | None = None
    dense: Callable[[], NameSearch] | None = None

    def __post_init__(self) -> None:
        one_of("method=", self.method, METHODS)
        one_of("fusion=", self.fusion, get_args(Fusion))
        at_least(1, "links nothing", top_k=self.top_k)
        shares(cutoff=self.cutoff, dense_cutoff=self.dense_cutoff, context_weight=self.context_weight)
        dense = self.dense
        if dense is None and self.embedder is not None:
            dense = partial(open_dense_lookup, self.store, self.embedder)
        if dense is None and self.method in ("dense", "both"):
            raise ConfigError(
                f"method={self.method} needs an index of names by meaning; give an embedder, or use fuzzy"
            )
        if self.disambiguate and self.embedder is None:
            raise ConfigError("disambiguate=true compares words by meaning; give an embedder, or use false")
        self._lookup = _NameLookup(self.store, self.known_names, dense, self.method == "dense")
        disambiguates = self.disambiguate and self.embedder is not None
        self._context = ContextScorer(self.store, self.embedder) if disambiguates and self.embedder else None
        self._last: tuple[tuple[tuple[Mention, ...], str], list[tuple[LinkedEntity, ...]]] = (((), ""), [])

    @property
    def names(self) -> NameIndex:
        """Return the index over the names of all nodes, by node number."""
        return self._lookup.names

    @cached_property
    def _numbered(self) -> bool:
        """Whether the ids of most nodes are whole numbers: row numbers, or the like."""
        some = list(islice(self.store.entities(), _SOME))
        return 2 * sum(id.isdecimal() for id in some) > len(some)

    def is_row_number(self, text: str) -> bool:
        """Return True for a whole number that is an id and the name of no node, in a graph whose ids are numbers."""
        if not self._numbered:
            return False
        nodes = self.store.nodes(self.store.ids(self.names.exact(text)[:_NAMESAKES]))
        return all(node.name == node.id for node in nodes)

    def link(self, artifacts: Artifacts, question: str = "") -> Linked:
        """Link a round's mentions and draft answers.

        Args:
            artifacts: the KG-Linker's proposals.
            question: its text, for disambiguation.

        Raises:
            EntityNotFound: an id given with a mention is not in the store.
        """
        drafts = [Mention(text) for text in artifacts.draft_answers]
        count = len(artifacts.mentions)
        found = self.link_all([*artifacts.mentions, *drafts], question)
        read = [self.literal(mention) for mention in artifacts.mentions]
        return Linked(
            entities=tuple(one for candidates in found[:count] for one in candidates),
            drafts=tuple(one for candidates in found[count:] for one in candidates if _matches_well(one)),
            literals=tuple(
                one
                for one, candidates in zip(read, found, strict=False)
                if one is not None and not (one.kind == "id" and candidates)
            ),
            values=tuple(
                value
                for mention, candidates in zip(artifacts.mentions, found, strict=False)
                if not any(one.method in _CERTAIN for one in candidates)
                for value in self._constraints(mention, question)
            ),
        )

    @cached_property
    def values(self) -> ValueLinker | None:
        """Return the linker of property values; None for a graph without any, or on a server that has not been read."""
        if not self.store.remote and not any(self.store.schema().node_properties.values()):
            return None
        from byokg.graph.value_indexes import values_at_hand
        from byokg.linking.values import ValueLinker

        index = values_at_hand(self.store)
        return None if index is None else ValueLinker(self.store, index)

    def _constraints(self, mention: Mention, question: str) -> list[LinkedValue]:
        """Return the property values that a mention may mean, best first."""
        if self.values is None or self.method == "exact" or not mention.text.strip():
            return []
        matches = [
            match for each in self._aliases(mention) for match in self.values.link_text(each.text, question, self.top_k)
        ]
        return [
            LinkedValue(one.type, one.property, one.value, mention, one.score, one.count)
            for one in matches
            if one.score >= self.cutoff
        ]

    def _holders(self, mention: Mention, question: str) -> tuple[LinkedEntity, ...]:
        """Return the nodes with the value that a mention means, if they are no more than are wanted."""
        best = self._constraints(mention, question)[:1]
        if not best or best[0].count > self.top_k:
            return ()
        from byokg.graph.value_indexes import nodes_holding

        ids = self.store.ids(nodes_holding(self.store, best[0].type, best[0].property, best[0].value, self.top_k))
        match = LinkMatch("value", str(best[0]), best[0].score, 1)
        return tuple(
            LinkedEntity(node.id, node.name, mention, "value", match.score, (match,)) for node in self.store.nodes(ids)
        )

    def _is_value(self, text: str) -> bool:
        """True if a text is a value of a property, and no part of the names of the nodes with that value."""
        equal = [] if self.values is None or self.method == "exact" else self.values.index.find(text, limit=_POOL)
        held = [one for one in equal if one.exact and isinstance(one.value, str)]
        return bool(held) and not any(map(self._is_part_of_names, held))

    def _is_part_of_names(self, value: ValueMatch) -> bool:
        """True if half of the nodes with a value, or more, have its words in their names, as with a surname."""
        from byokg.graph.value_indexes import nodes_holding

        numbers = nodes_holding(self.store, value.type, value.property, value.value, _POOL)
        words = set(split_words(str(value.value)))
        names = self.store.names_at(np.array(numbers, np.int64))
        return 2 * sum(words <= set(split_words(name)) for name in names) >= len(names)

    def candidates(self, mention: Mention, question: str = "") -> tuple[LinkedEntity, ...]:
        """Return the nodes one mention may mean, best first. See `link_all`."""
        return self.link_all([mention], question)[0]

    def literal(self, mention: Mention) -> LinkedLiteral | None:
        """Return the value or identifier that a mention is; None for a name, and for one that is given by id."""
        read = None if mention.ids else read_literal(mention.text)
        return None if read is None else LinkedLiteral(read.value, read.kind, mention)

    def link_all(self, mentions: Sequence[Mention], question: str = "") -> list[tuple[LinkedEntity, ...]]:
        """Return the candidate nodes of each mention, best first; each index is read once for all mentions.

        The offline KG-Linker links the mentions that it proposes, and the round links them again, so the last result
        is remembered, except on a server.

        Raises:
            EntityNotFound: an id given with a mention is not in the store.
        """
        asked = (tuple(mentions), question)
        known, found = self._last
        if known != asked or self.store.remote:  # a server's content may have changed
            found = self._link_all(mentions, question)
            self._last = asked, found
        return list(found)

    def _link_all(self, mentions: Sequence[Mention], question: str) -> list[tuple[LinkedEntity, ...]]:
        groups = [[_MentionSearch(each) for each in self._aliases(mention)] for mention in mentions]
        for search in (each for group in groups for each in group if not each.mention.ids):
            self._settle(search)
        open_groups = [group for group in groups if len(group) == 1 or not any(each.candidates for each in group)]
        unsettled = [each for group in open_groups for each in group if not each.settled and not each.mention.ids]
        self._approximate([each for each in unsettled if not self._is_value(each.mention.text)])
        searches = [_joined(mention, group) for mention, group in zip(mentions, groups, strict=True)]
        facts = self._facts(searches)
        self._rank(searches, facts, question)
        given = self._given(mentions)
        return [
            tuple(LinkedEntity(id, given[id].name, mention, "given", 1.0) for id in mention.ids)
            if mention.ids
            else self._linked(search, facts) or self._holders(mention, question)
            for mention, search in zip(mentions, searches, strict=True)
        ]

    def nearest_name(self, text: str) -> str:
        """Return the name that a text is clearly nearest to by meaning; empty without one, or without dense search."""
        return self._lookup.nearest(text, self.dense_cutoff) if self.method in ("dense", "both") else ""

    # Exact candidates

    def _aliases(self, mention: Mention) -> list[Mention]:
        """Return a mention by each of its names; ` | ` stands between them, unless it is part of a node's name."""
        names = list(dict.fromkeys(filter(None, map(str.strip, mention.text.split(ALIAS)))))
        if mention.ids or len(names) < 2 or any(found for _, found in self._lookup.bearers((mention.text,))):
            return [mention]
        return [Mention(name) for name in names]

    def _settle(self, search: _MentionSearch) -> None:
        """Look up exact candidates of the mention."""
        text = search.mention.text
        literal = read_literal(text)
        if literal is not None and literal.kind == "id":
            search.settled = True
            search.candidates = self._lookup.by_id(literal.spellings) or _first_named(self._lookup.bearers((text,)))
            return
        spellings = (text,) if literal is None else (text, *literal.spellings)
        wordless = is_wordless(text)
        also = other_names(text) if literal is None else ()
        lazy_schema = self._lookup.remote
        if also and not lazy_schema and not self._lookup.written_otherwise(text):
            also = full_names(text)
        bearers = self._lookup.bearers((*spellings, *also))
        search.candidates = _first_named(bearers[: len(dict.fromkeys(spellings))])
        if lazy_schema and search.candidates:  # an exact name (`Russian`, a language) is meant
            also = full_names(text)
        others = [NameMatch(number, name, _OTHER) for name, numbers in bearers if name in also for number in numbers]
        if not search.candidates and not others and not wordless:
            search.candidates = self._lookup.by_id((text,))
        if not search.candidates and not others and literal is None and (also := foreign_names(text)):
            bearers = self._lookup.bearers(also)
            others = [NameMatch(number, name, _OTHER) for name, numbers in bearers for number in numbers]
        if not search.candidates and not others and literal is None:
            also_read = (unqualified(text), *(() if lazy_schema else self._lookup.loosely(text)))
            search.candidates = _first_named(self._lookup.bearers([name for name in also_read if name]))
        search.casual = bool(search.candidates) and not self.extend and self._lookup.written_otherwise(text)
        if search.candidates and others:
            search.found["exact"] = others
        elif others:
            search.candidates = [_NodeCandidate(one.owner, [LinkMatch("exact", one.name, _OTHER, 1)]) for one in others]
        decided = bool(search.candidates) and not self.extend
        search.settled = decided or wordless or literal is not None or not text.strip() or len(text) > _LONGEST
        if decided and literal is None and not wordless and not lazy_schema and self.method != "exact":
            search.found["fuzzy"] = self._lookup.holding(text, min(self.cutoff, _HELD))

    # Similar candidates

    def _approximate(self, searches: Sequence[_MentionSearch]) -> None:
        """Ask each index about all mentions at once."""
        if not searches or self.method == "exact":
            return
        texts = [search.mention.text for search in searches]
        pool = self.top_k + _SPARE if self._context is None else max(_POOL, self.top_k)
        if self.method != "dense":
            for search, matches in zip(searches, self._lookup.similar(texts, pool, self.cutoff), strict=True):
                search.found["fuzzy"] = [match for match in matches if match.score > 0]
        if self.method != "fuzzy" and (dense := self._lookup.meanings()) is not None:
            least = self.dense_cutoff
            for search, matches in zip(searches, dense.search(texts, pool), strict=True):
                search.found["dense"] = [match for match in matches if match.score >= least and match.score > 0]

    # Ranking

    def _rank(self, searches: Sequence[_MentionSearch], facts: _RankingFeatures, question: str) -> None:
        """Order each mention's candidates, and keep as many as are wanted."""
        asked = self._context if question.strip() else None
        most = self.top_k if asked is None else None  # more candidates for disambiguation by the question
        for search in searches:
            certain = {candidate.number: candidate for candidate in search.candidates}
            if search.candidates and not self.extend:
                search.found = _better_known(search, facts)
            for candidate in self._united(search.found, facts, most):
                if candidate.number in certain:
                    certain[candidate.number].matches += candidate.matches
                else:
                    search.candidates.append(candidate)
        if asked is not None:
            self._consult(asked, searches, facts, question)
        for search in searches:
            for candidate in search.candidates:
                candidate.score = self._score(candidate)
            beside = _beside(question, search.mention)
            search.candidates.sort(key=partial(_order, search.mention, beside, facts))
            search.candidates = _without_pieces(search, facts)
            if asked is None:  # or else the question decides
                search.candidates = _without_dwarfed(search, facts)
            del search.candidates[self.top_k * max(1, len(search.found.keys() - {"exact"})) :]

    def _facts(self, searches: Sequence[_MentionSearch]) -> _RankingFeatures:
        """Read the data of all candidate nodes: one call for each kind of data."""
        numbers = list(dict.fromkeys(number for search in searches for number in search.numbers))
        asked = np.array(numbers, np.int64)
        rivals = any(len(search.numbers) > 1 for search in searches)
        counts = self.store.relation_counts(asked if rivals else asked[:0])
        nodes = self.store.nodes(self.store.ids(asked))
        rows = {number: row for row, number in enumerate(numbers)}
        return _RankingFeatures(rows, nodes, counts, counts.degrees(len(numbers)).tolist())

    def _united(
        self, found: Mapping[LinkMethod, Sequence[NameMatch]], facts: _RankingFeatures, most: int | None
    ) -> list[_NodeCandidate]:
        """Unite the best of what each method found, each node once with what every method made of it."""
        united: dict[int, _NodeCandidate] = {}
        for method, matches in found.items():
            best: dict[int, NameMatch] = {}
            for match in matches:
                if match.owner not in best or match.score > best[match.owner].score:
                    best[match.owner] = match
            ranked = sorted(best.values(), key=lambda match: (-match.score, *facts.key(match.owner)))
            for rank, match in enumerate(ranked[:most], start=1):
                candidate = united.setdefault(match.owner, _NodeCandidate(match.owner, []))
                candidate.matches.append(LinkMatch(method, match.name, min(1.0, match.score), rank))
        return list(united.values())

    def _consult(
        self, context: ContextScorer, searches: Sequence[_MentionSearch], facts: _RankingFeatures, question: str
    ) -> None:
        """Rate the neighbourhood of each candidate by the question; skipped for a single one."""
        around = context.around(facts.counts, [node.types for node in facts.nodes])
        for search in searches:
            if len(search.candidates) > 1:
                rows = [facts.rows[candidate.number] for candidate in search.candidates]
                fits = context.fit(question, search.mention, around, rows)
                for candidate, fit in zip(search.candidates, fits.tolist(), strict=True):
                    candidate.context = fit

    def _score(self, candidate: _NodeCandidate) -> float:
        """Return the ranking score of candidates, in [0, 1]."""
        score = max(match.score for match in candidate.matches)
        if self.fusion == "rrf" and self.method == "both" and candidate.method in ("fuzzy", "dense"):
            # Of the most that is possible: first with both methods.
            score = sum(1 / (_RRF + match.rank) for match in candidate.matches) * (_RRF + 1) / 2
        if candidate.context is None:
            return score
        return (1 - self.context_weight) * score + self.context_weight * candidate.context

    def _linked(self, search: _MentionSearch, facts: _RankingFeatures) -> tuple[LinkedEntity, ...]:
        """Turn the remaining candidates of one mention into records."""
        return tuple(
            LinkedEntity(
                id=facts.node(candidate.number).id,
                name=facts.node(candidate.number).name,
                mention=search.mention,
                method=candidate.method,
                score=candidate.score,
                matches=tuple(candidate.matches),
                context=candidate.context,
            )
            for candidate in search.candidates
        )

    def _given(self, mentions: Iterable[Mention]) -> dict[EntityId, Node]:
        ids = list(dict.fromkeys(id for mention in mentions for id in mention.ids))
        return dict(zip(ids, self.store.nodes(ids), strict=True))


_CERTAIN = ("given", "id", "exact")
"""Methods after which no value is looked for."""

_SAME = ("id", "exact")
"""Exact methods, in contrast to similarity."""

_WELL = 0.9
"""Score from which on a draft answer is taken for a node."""

_MOST_OF_IT = 0.75
"""Share of a text's letters from which on a name is no mere piece of it: a letter may be too many."""


def _joined(mention: Mention, group: Sequence[_MentionSearch]) -> _MentionSearch:
    """Return one search for the names of a mention: of those that nodes are certain for, or else of all."""
    if len(group) == 1:
        return group[0]
    chosen = [each for each in group if each.candidates] or group
    candidates = {one.number: one for each in reversed(chosen) for one in reversed(each.candidates)}
    found: dict[LinkMethod, list[NameMatch]] = {}
    for each in chosen:
        for method, matches in each.found.items():
            found.setdefault(method, []).extend(matches)
    return _MentionSearch(mention, candidates=list(candidates.values())[::-1], found=found)


def _first_named(bearers: Iterable[tuple[str, Sequence[int]]]) -> list[_NodeCandidate]:
    """Return the nodes with the first of some names that any node bears."""
    for name, numbers in bearers:
        if numbers:
            return [_NodeCandidate(number, [LinkMatch("exact", name, 1.0, 1)]) for number in numbers]
    return []


def _better_known(search: _MentionSearch, facts: _RankingFeatures) -> dict[LinkMethod, list[NameMatch]]:
    """Return candidates with far more edges than the exact matches of a mention.

    The best known each of aliases (`the uk`), and of names with all its words but a title.
    """
    if not search.found:
        return {}
    words = set(split_words(untitled(search.mention.text)))
    edges = {number: facts.degrees[row] for number, row in facts.rows.items()}
    own = {candidate.number for candidate in search.candidates}
    known = max(map(edges.__getitem__, own))

    def means(one: NameMatch, method: LinkMethod) -> bool:
        if one.owner in own:
            return False
        if method == "exact" or search.casual:
            return edges[one.owner] >= _BETTER * known and (method == "exact" or words <= set(split_words(one.name)))
        return edges[one.owner] >= _FAR_BETTER * known and _extends(one.name, search.mention.text)

    kept = {method: [one for one in matches if means(one, method)] for method, matches in search.found.items()}
    return {method: [max(matches, key=lambda one: edges[one.owner])] for method, matches in kept.items() if matches}


def _matches_well(one: LinkedEntity) -> bool:
    """True if a draft answer means a node, and does not merely contain its name."""
    return one.method in ("given", "id", "exact") or (one.score >= _WELL and not _piece(one.name, one.mention.text))


def _without_pieces(search: _MentionSearch, facts: _RankingFeatures) -> list[_NodeCandidate]:
    """Leave out candidates that are named like a piece of the mention where others are named like the whole."""
    text = untitled(search.mention.text)
    pieces = [one for one in search.candidates if one.method not in _SAME and _piece(facts.node(one.number).name, text)]
    whole = any(one.method in (*_SAME, "fuzzy") and one not in pieces for one in search.candidates)
    return [one for one in search.candidates if one not in pieces] if whole else search.candidates


def _without_dwarfed(search: _MentionSearch, facts: _RankingFeatures) -> list[_NodeCandidate]:
    """Leave out candidates with far fewer edges than the best known one, unless they have the same name.

    They are other spellings of one value (`US`, `UNITED STATES`), or merely similar.
    """
    edges = [facts.degrees[facts.rows[one.number]] for one in search.candidates]
    times = _DWARFED if any(one.method in _SAME for one in search.candidates) else _DWARFED_FUZZY
    most = max(edges, default=0)
    names = [facts.node(one.number).name for one in search.candidates]
    best = {name for name, own in zip(names, edges, strict=True) if own == most}
    return [
        one
        for one, name, own in zip(search.candidates, names, edges, strict=True)
        if times * own >= most or name in best
    ]


def _extends(name: str, text: str) -> bool:
    """True if a name begins or ends with the words of a text."""
    whole, part = f" {normalize_name(name)} ", f" {normalize_name(untitled(text))} "
    return whole.startswith(part) or whole.endswith(part)


def _piece(name: str, text: str) -> bool:
    """True if a name is a piece of a text, and clearly less than all of it."""
    piece, whole = normalize_name(name), normalize_name(text)
    return piece in whole and len(piece) < _MOST_OF_IT * len(whole)


_NEAR = 2
"""Words before and after a mention that may separate namesakes (`the 1997 film Titanic`)."""


def _beside(question: str, mention: Mention) -> frozenset[str]:
    """Return the words that may separate a mention's node from its namesakes: those next to it, and its qualifier."""
    words = split_words(qualifier(mention.text))
    if mention.start >= 0:
        before, after = split_words(question[: mention.start]), split_words(question[mention.end :])
        words += [word for word in before if word not in FUNCTION_WORDS][-_NEAR:]
        words += [word for word in after if word not in FUNCTION_WORDS][:_NEAR]
    return frozenset(words)


def _order(
    mention: Mention, beside: Collection[str], facts: _RankingFeatures, candidate: _NodeCandidate
) -> tuple[float, bool, bool, bool, int, EntityId]:
    """Return the sort key of a mention's candidates of equal scores.

    First the class in the words beside the mention (`the film Titanic`: `Titanic (film)`, or a film of that name), then
    the same spelling, then a name that is no mere alias.
    """
    node = facts.node(candidate.number)
    told = {word for text in (qualifier(node.name), *node.types) for word in split_words(text)} - FUNCTION_WORDS
    alike = node.name == mention.text
    own = normalize_name(node.name) == normalize_name(mention.text)
    return (-candidate.score, told.isdisjoint(beside), not alike, not own, *facts.key(candidate.number))
