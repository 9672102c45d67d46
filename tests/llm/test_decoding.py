"""Tests of `byokg.llm.decoding`."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from byokg.errors import ConfigError, LlmOffChoice, NoCandidates
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.decoding import (
    DEAD,
    ConstrainedRanker,
    GuidedRanker,
    HasQuery,
    NumberRanker,
    Server,
    TokenTrie,
    TrieStates,
    constrain,
    guided_request,
)
from byokg.llm.model import LanguageModel
from byokg.llm.providers import OpenAICompatible
from byokg.retrieval.candidates import literal
from tests.llm.servers.model_server import ModelServer
from tests.llm.servers.protocols import Answered, Asked

END = 0


@dataclass(frozen=True)
class Query:
    query: str


def queries(count: int, seed: int = 0) -> list[str]:
    """Return made-up queries that share long prefixes, some with quotes, backslashes and letters of other scripts."""
    draw = random.Random(seed)
    names = ["Ann", "O'Neil", 'say "hi"', "back\\slash", "Łódź", "東京", "a`b", "🎬", "Ann Lee"]
    relations = ["directed_by", "starred_actors", "written_by", "has genre", "`odd`"]
    made = []
    for _ in range(count):
        hops = draw.randint(1, 3)
        path = "".join(f"-[:{draw.choice(relations)}]-(x{hop})" for hop in range(hops))
        made.append(f"MATCH (a {{name: {draw.choice(names)!r}}}){path} RETURN x{hops - 1}")
    return list(dict.fromkeys(made))


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<end>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(queries(200), trainer)
    return tokenizer


def sentence_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=["<end>", "<unk>"], unk_token="<unk>")
    tokenizer.train_from_iterator(queries(200), trainer)
    return tokenizer


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["<end>", "<unk>"])
    tokenizer.train_from_iterator(queries(200), trainer)
    return tokenizer


@pytest.fixture(scope="module", params=[byte_level, sentence_piece, word_piece])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    make: Callable[[], Tokenizer] = request.param
    return make()


def brute_force(sequences: list[list[int]], prefix: list[int]) -> set[int]:
    """Return the tokens that the paper's mask allows: those of a candidate that starts with what was generated."""
    ended = [[*sequence, END] for sequence in sequences]
    return {each[len(prefix)] for each in ended if len(each) > len(prefix) and each[: len(prefix)] == prefix}


class TestTokenTrie:
    @pytest.mark.parametrize("seed", range(3))
    def test_masks_are_those_that_comparing_all_candidates_gives(self, tokenizer: Tokenizer, seed: int) -> None:
        texts = queries(120, seed)
        sequences = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
        trie = TokenTrie(sequences, END)
        draw = random.Random(seed)
        for sequence in [*sequences, *(draw.sample(each, len(each)) for each in sequences[:20])]:
            state = 0
            for length in range(len(sequence) + 1):
                prefix = sequence[:length]
                assert set(trie.allowed(state).tolist()) == brute_force(sequences, prefix)
                assert (state == DEAD) == (not brute_force(sequences, prefix) and prefix != [*sequence, END])
                state = trie.step(state, ([*sequence, END])[length])

    def test_each_candidate_is_found_at_its_end(self, tokenizer: Tokenizer) -> None:
        texts = queries(120)
        sequences = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
        trie = TokenTrie(sequences, END)
        found = [trie.candidate(trie.walk([*sequence, END])) for sequence in sequences]
        # WordPiece writes what it does not know, and capitals, alike: then the first of equal sequences is found.
        assert found == [sequences.index(sequence) for sequence in sequences]

    def test_one_candidate_may_be_the_beginning_of_another(self) -> None:
        trie = TokenTrie([[5, 6], [5], [5, 6, 7]], END)
        assert trie.allowed(trie.walk([5])).tolist() == [END, 6]
        assert [trie.candidate(trie.walk([*each, END])) for each in ([5], [5, 6], [5, 6, 7])] == [1, 0, 2]
        assert trie.candidate(trie.walk([5])) is None
        assert trie.walk([5, 7]) == DEAD and trie.step(DEAD, 5) == DEAD and trie.candidate(DEAD) is None

    def test_nothing_to_choose_from_is_an_error(self) -> None:
        with pytest.raises(NoCandidates, match="no candidate query"):
            TokenTrie([], END)

    def test_a_candidate_that_holds_the_end_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="holds the token 0"):
            TokenTrie([[1, 0, 2]], END)

    def test_beams_are_followed_however_they_are_reordered(self) -> None:
        np = pytest.importorskip("numpy")
        trie = TokenTrie([[1, 2, 3], [1, 4, 3], [2, 2, 2]], END)
        states = TrieStates(trie, prompt_tokens=2)
        assert states.after(np.array([[9, 9], [9, 9]])) == [0, 0]
        assert states.after(np.array([[9, 9, 1], [9, 9, 2]])) == [trie.walk([1]), trie.walk([2])]
        # The second beam dies, and the first is copied over it.
        assert states.after(np.array([[9, 9, 1, 2], [9, 9, 2, 7]])) == [trie.walk([1, 2]), DEAD]
        assert states.after(np.array([[9, 9, 1, 4, 3], [9, 9, 1, 2, 3]])) == [
            trie.walk([1, 4, 3]),
            trie.walk([1, 2, 3]),
        ]


@pytest.fixture(scope="module")
def local() -> tuple[Any, Any]:
    """A model of random weights, which writes nonsense when left alone, with a byte-level tokenizer."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'byokg[local]'")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="<end>")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(fast), n_positions=256, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config).eval(), fast


class TestLocalModels:
    TEXTS = queries(60)

    def candidates(self) -> list[HasQuery]:
        return [Query(text) for text in self.TEXTS]

    @pytest.mark.parametrize("beams", [1, 5, 200])
    def test_beam_search_finds_candidates_only_each_once(self, local: tuple[Any, Any], beams: int) -> None:
        ranked = ConstrainedRanker(local, beams=beams).rank("who directed Heat?", self.candidates())
        positions = [position for position, _ in ranked]
        assert len(set(positions)) == len(positions) == min(beams, len(self.TEXTS))
        assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)

    def test_more_beams_than_ways_to_go_on_recover(self, local: tuple[Any, Any]) -> None:
        # All share one beginning, so at first every beam but one is a copy, and none may be lost for it.
        few = [Query("MATCH (a) RETURN a"), Query("MATCH (a) RETURN b"), Query("MATCH (a) RETURN a.name")]
        ranked = ConstrainedRanker(local, beams=5).rank("who?", few)
        assert sorted(position for position, _ in ranked) == [0, 1, 2]

    def test_a_dead_beam_may_only_end_and_says_nothing_that_is_no_number(self, local: tuple[Any, Any]) -> None:
        import torch

        processor = constrain(TokenTrie([[5, 6], [7]], END), prompt_tokens=1)
        masked = processor(torch.tensor([[9, 8], [9, 5]]), torch.zeros(2, 10))
        assert torch.isfinite(masked).tolist() == [[True] + [False] * 9, [False] * 6 + [True] + [False] * 3]

    def test_an_unconstrained_model_of_random_weights_writes_no_candidate(self, local: tuple[Any, Any]) -> None:
        model, fast = local
        ids = fast("Question: who?\nQuery: ", return_tensors="pt")["input_ids"]
        text = fast.decode(model.generate(ids, max_new_tokens=40, do_sample=False)[0, ids.shape[1] :])
        assert text not in self.TEXTS

    def test_nothing_to_choose_from_is_an_error(self, local: tuple[Any, Any]) -> None:
        with pytest.raises(NoCandidates, match="'who\\?'"):
            ConstrainedRanker(local).rank("who?", [])

    def test_a_served_model_has_no_tokens_to_constrain(self) -> None:
        with pytest.raises(ConfigError, match="llm=hf_local"):
            ConstrainedRanker(LanguageModel(ScriptedChatModel(rules=(Rule("x"),))))

    def test_a_prompt_without_the_question_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="does not show the question"):
            ConstrainedRanker(path="model", prompt="Query: ")


@pytest.mark.parametrize("make", [byte_level, sentence_piece, word_piece])
def test_what_a_tokenizer_cannot_spell_is_left_out_and_what_it_writes_alike_is_kept(
    make: Callable[[], Tokenizer], caplog: pytest.LogCaptureFixture
) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    marks = {} if make is byte_level else {"unk_token": "<unk>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=make(), eos_token="<end>", **marks)
    config = transformers.GPT2Config(
        vocab_size=len(fast), n_positions=256, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    names = ["Ann", "ann", "\u16a0 runes", "the <end>", "Lee"]
    candidates = [Query(f'MATCH (a {{name: "{name}"}})-[:written_by]-(x0) RETURN x0') for name in names]
    ranked = ConstrainedRanker((model, fast)).rank("who is <end> \u16a0?", candidates)
    spelled = {byte_level: [0, 1, 2, 3, 4], sentence_piece: [0, 1, 4], word_piece: [0, 1, 4]}[make]
    assert sorted(position for position, _ in ranked) == spelled
    scores = dict(ranked)
    assert (scores[0] == scores[1]) == (make is word_piece)  # which knows no capitals
    assert ("cannot spell" in caplog.text) == (make is not byte_level)
    if make is not byte_level:
        assert ConstrainedRanker((model, fast)).rank("who?", [candidates[2]]) == []


CHOICES = ['say "hi"\n', "a|b (c)", "back\\slash", "tab\t", "b\x08"]


class TestGuidedRequests:
    def test_servers_are_told_in_their_own_words(self) -> None:
        assert guided_request(["a", "b", "a"], "vllm") == {"structured_outputs": {"choice": ["a", "b"]}}
        assert guided_request(["a"], "vllm_guided") == {"guided_choice": ["a"]}
        assert guided_request(["a(b)", 'c"\\'], "sglang") == {"regex": '(a\\(b\\)|c"\\\\)'}
        assert guided_request(['a"b', "c\\\x08"], "llama_cpp") == {"grammar": 'root ::= "a\\"b" | "c\\\\\\x08"'}

    def test_a_grammar_says_the_choices_and_nothing_else(self) -> None:
        choices = [*CHOICES, *NAMES, *map(literal, NAMES)]
        assert read_gbnf(str(guided_request(choices, "llama_cpp")["grammar"])) == choices

    def test_xgrammar_lets_the_choices_through_and_nothing_else(self) -> None:
        xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is not installed, which vLLM and SGLang mask with")
        signs = xgrammar.TokenizerInfo([bytes([byte]) for byte in range(256)] + [b""], stop_token_ids=[256])
        compiler = xgrammar.GrammarCompiler(signs)
        choices = [*CHOICES, *NAMES, *map(literal, NAMES)]
        for compiled in (
            compiler.compile_regex(str(guided_request(choices, "sglang")["regex"])),
            compiler.compile_grammar(str(guided_request(choices, "llama_cpp")["grammar"])),
        ):
            for text in [*choices, *(choice[:-1] for choice in choices), *(f"{choice}x" for choice in choices)]:
                matcher = xgrammar.GrammarMatcher(compiled)
                taken = all(matcher.accept_token(byte) for byte in text.encode())
                assert (taken and matcher.accept_token(256)) == (text in choices), text

    def test_a_regular_expression_fits_the_choices_and_nothing_else(self) -> None:
        pattern = re.compile(str(guided_request(CHOICES, "sglang")["regex"]))
        assert all(pattern.fullmatch(choice) for choice in CHOICES)
        assert not any(pattern.fullmatch(other) for other in ("a", "b (c)", 'say "hi"', "back/slash"))

    def test_what_cannot_be_asked_is_refused(self) -> None:
        with pytest.raises(NoCandidates):
            guided_request([], "vllm")
        with pytest.raises(ConfigError, match="server=other is not known"):
            guided_request(["a"], "other")  # type: ignore[arg-type]


NAMES = [
    'say "hi"',
    "it's",
    "back\\slash \\b \\f \\n \\u0041",
    "line\nend\r\ttab",
    "🎬 東京",
    "a|b (c) [d] {e} .*+?^$ -/",
    "bell\x07 delete\x7f",
    "`tick`",
]
"""Names that grammars, expressions and JSON each write in a way of their own."""


def named(name: str) -> tuple[Query, ...]:
    """Return queries that differ at one sign after a name, or are that name alone."""
    return (Query(f"MATCH (a {{name: {name}}}) RETURN a"), Query(f"MATCH (a {{name: {name}}}) RETURN b"), Query(name))


def read_gbnf(grammar: str) -> list[str]:
    """Return the texts of `root ::= "…" | "…"`, read as llama.cpp's grammar parser reads literals."""
    rule, _, rest = grammar.partition(" ::= ")
    assert rule == "root"
    escape = r'\\(?:x[0-9A-Fa-f]{2}|[tnr"\\\[\]])'
    literal = rf'"(?:[^"\\\x00-\x1f]|{escape})*"'
    assert re.fullmatch(rf"{literal}(?: \| {literal})*", rest), "no list of literals"
    signs = {"t": "\t", "n": "\n", "r": "\r"}

    def plain(found: re.Match[str]) -> str:
        sign = found[0][1:]
        return chr(int(sign[1:], 16)) if sign[0] == "x" else signs.get(sign, sign)

    return [re.sub(escape, plain, text[1:-1]) for text in re.findall(literal, rest)]


class Masking:
    """Answers as a server does that masks tokens: with the last text that a request lets through.

    A request that the server would not take, or that says its constraint elsewhere, is answered with what is wrong:
    vLLM wants one member in `structured_outputs` and no old ones, or one old one; SGLang one of `json_schema`, `regex`
    and `ebnf`; llama.cpp a `grammar`, and no schema beside it.
    """

    OLD: ClassVar = {"guided_choice", "guided_regex", "guided_json", "guided_grammar"}
    SGLANG: ClassVar = {"json_schema", "regex", "ebnf"}

    def __init__(self, told: Server, candidates: Sequence[HasQuery]) -> None:
        self._told = told
        self._texts = [one.query for one in candidates]

    def __call__(self, asked: Asked) -> Answered:
        try:
            return Answered(self._let_through(dict(asked.body))[-1])
        except AssertionError as error:
            return Answered(f"refused: {error}")

    def _let_through(self, body: dict[str, Any]) -> list[str]:
        constraints = body.keys() & (self.OLD | self.SGLANG | {"structured_outputs", "grammar", "response_format"})
        assert len(constraints) == 1, f"one constraint and not {sorted(constraints)}"
        if self._told == "sglang":
            return [text for text in self._texts if re.fullmatch(body["regex"], text)]
        if self._told == "llama_cpp":
            return read_gbnf(body["grammar"])
        told = body.get("structured_outputs", {}) if self._told == "vllm" else body
        assert self._told != "vllm" or list(told) == ["choice"], "one member"
        choice = told["choice" if self._told == "vllm" else "guided_choice"]
        assert choice and all(isinstance(text, str) for text in choice), "texts"
        return list(choice)


class TestGuidedRanker:
    QUERIES = tuple(Query(text) for text in queries(8))

    @pytest.fixture
    def model(self, server: ModelServer) -> LanguageModel:
        server.answer = Masking("vllm", self.QUERIES)
        return OpenAICompatible("local", base_url=f"{server.url}/v1", extra_body={"top_p": 0.5}).language_model()

    @pytest.mark.parametrize("told", get_args(Server))
    def test_what_the_server_lets_through_is_chosen(
        self, model: LanguageModel, server: ModelServer, told: Server
    ) -> None:
        server.answer = Masking(told, self.QUERIES)
        ranked = GuidedRanker(model, told, picks=3).rank("who directed Heat?", self.QUERIES)
        last = len(self.QUERIES) - 1
        assert ranked == [(last, 1.0), (last - 1, 0.5), (last - 2, pytest.approx(1 / 3))]
        assert all(asked.body["top_p"] == 0.5 for asked in server.asked)

    @pytest.mark.parametrize("told", get_args(Server))
    @pytest.mark.parametrize("name", NAMES)
    def test_names_arrive_as_they_are_written(
        self, model: LanguageModel, server: ModelServer, told: Server, name: str
    ) -> None:
        candidates = [*named(name), *named(literal(name))]
        server.answer = Masking(told, candidates)
        ranked = GuidedRanker(model, told, picks=6).rank("who?", candidates)
        assert [position for position, _ in ranked] == [5, 4, 3, 2, 1, 0]

    def test_a_server_that_takes_no_notice_is_an_error(self, model: LanguageModel, server: ModelServer) -> None:
        server.answer = lambda asked: Answered("MATCH (n) RETURN n")
        with pytest.raises(LlmOffChoice, match=r"MATCH \(n\) RETURN n.*'llama_cpp'"):
            GuidedRanker(model, "llama_cpp").rank("who directed Heat?", self.QUERIES)

    def test_no_more_is_picked_than_there_is(self, model: LanguageModel) -> None:
        assert len(GuidedRanker(model, picks=5).rank("who?", self.QUERIES[:2])) == 2
        with pytest.raises(NoCandidates):
            GuidedRanker(model).rank("who?", [])


class TestNumberRanker:
    QUERIES = tuple(Query(text) for text in queries(6))

    def rank(self, reply: str, shown: int = 100, picks: int = 5) -> list[tuple[int, float]]:
        model = LanguageModel(ScriptedChatModel(rules=(Rule(reply),)))
        return NumberRanker(model, shown, picks).rank("who directed Heat?", self.QUERIES)

    def test_numbers_are_read_in_their_order_each_once(self) -> None:
        assert self.rank("<numbers>\n3\n1.\n3\n</numbers>") == [(2, 1.0), (0, 0.5)]

    def test_numbers_outside_of_the_tags_are_passed_over(self) -> None:
        assert self.rank("1 and 4 come close.\n<numbers>\n2\n</numbers>\n3 does not.") == [(1, 1.0)]
        assert self.rank("<think>\n4\n</think>\n2\n1") == [(1, 1.0), (0, 0.5)]
        assert self.rank("1 and 4 come close, none fits.\n<numbers>\n</numbers>") == []

    def test_numbers_that_are_not_in_the_list_and_queries_are_passed_over(self) -> None:
        assert self.rank("<numbers>\n99\n0\nMATCH\n2\n</numbers>") == [(1, 1.0)]
        assert self.rank("<numbers>\n</numbers>") == []
        assert self.rank("Of these 2 the first fits.\n3. MATCH (a {year: 1})\n- 4\n5, 1") == [
            (2, 1.0),
            (3, 0.5),
            (4, pytest.approx(1 / 3)),
            (0, 0.25),
        ]

    def test_no_more_is_shown_or_picked_than_asked_for(self) -> None:
        assert self.rank("<numbers>\n5\n2\n1\n</numbers>", shown=2) == [(1, 1.0), (0, 0.5)]
        assert self.rank("<numbers>\n5\n2\n1\n</numbers>", picks=1) == [(4, 1.0)]

    def test_nothing_to_choose_from_is_an_error(self) -> None:
        with pytest.raises(NoCandidates):
            NumberRanker(LanguageModel(ScriptedChatModel(rules=(Rule("x"),)))).rank("who?", [])
