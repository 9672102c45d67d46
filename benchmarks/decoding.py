"""Time of masking candidates' tokens: the trie, and llguidance and xgrammar if installed.

python benchmarks/decoding.py [--json FILE] [--candidates N ...] [--beams N] [--walks N]

Made-up Cypher queries over 40,000 names and 200 relations, a byte-level BPE tokenizer trained on a sample of them. A
step advances all beams by one token and returns the next permitted tokens of each; beams walk random candidates, and
every tenth step one dies or is copied over another, as in beam search. Peers get the same queries as a flat
choice; if they refuse it, the row has 0. `processor` is the whole LogitsProcessor, and `fill` its part for writing the
numbers. All but the peers is CPU time of one thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmarks.rows import Row, make_parser, show
from byokg.llm.decoding import TokenTrie, TrieStates, constrain, guided_request

END = 0
PROMPT = 64


def queries(count: int) -> list[str]:
    """Return distinct queries, shuffled."""
    draw = random.Random(0)
    words = ["".join(draw.choice("aeiou" if at % 2 else "bcdfghklmnprst") for at in range(6)) for _ in range(3000)]
    names = [" ".join(draw.sample(words, 2)).title() for _ in range(40_000)]
    relations = [f"{draw.choice(words)}_{draw.choice(words)}" for _ in range(200)]
    made: dict[str, None] = {}
    while len(made) < count:
        hops = [f"-[:`{draw.choice(relations)}`]-" for _ in range(draw.randint(1, 2))]
        path = "(y)".join(hops)
        made[f'MATCH (a {{name: "{draw.choice(names)}"}}){path}(x) WHERE x <> a RETURN DISTINCT x'] = None
    return list(made)


def trained(texts: Sequence[str]) -> Tokenizer:
    """Return a byte-level tokenizer of 8,000 tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=8000, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts[:20_000], trainer)
    return tokenizer


def walks(sequences: Sequence[list[int]], beams: int, count: int) -> list[list[np.ndarray[Any, Any]]]:
    """Return generations: for each step the tokens of all beams, (B, PROMPT + T)."""
    draw = random.Random(1)
    out = []
    for _ in range(count):
        chosen = [[*draw.choice(sequences), END] for _ in range(beams)]
        steps = []
        for length in range(max(map(len, chosen))):
            if length % 10 == 9:
                chosen[draw.randrange(beams)] = chosen[draw.randrange(beams)]
            rows = [[1] * PROMPT + (each[:length] + [END] * max(0, length - len(each))) for each in chosen]
            steps.append(np.array(rows, np.int64))
        out.append(steps)
    return out


def p95_ms(run: Callable[[], list[float]]) -> float:
    """Return the 95th percentile of seconds, in milliseconds, of a second run after a warm-up."""
    run()
    return float(np.percentile(run(), 95)) * 1000


def trie_rows(name: str, sequences: Sequence[list[int]], beams: int, count: int) -> list[Row]:
    """Measure the trie, its steps, and the whole processor on scores of 32,000 and 128,000 tokens."""
    taken = []
    for _ in range(3):
        began = time.thread_time()
        trie = TokenTrie(sequences, END)
        taken.append(time.thread_time() - began)
    rows = [Row(f"trie_{name}_build_best_of_3", min(taken), "s")]
    generations = walks(sequences, beams, count)

    def run() -> list[float]:
        taken = []
        for generation in generations:
            states = TrieStates(trie, PROMPT)
            for step in generation:
                began = time.thread_time()
                for state in states.after(step):
                    trie.allowed(state)
                taken.append(time.thread_time() - began)
        return taken

    rows.append(Row(f"trie_{name}_beams{beams}_step_p95", p95_ms(run), "ms"))
    try:
        import torch
    except ImportError:
        return rows
    torch.set_num_threads(1)
    for vocabulary in (32_000, 128_000):
        scores = torch.zeros(beams, vocabulary)
        whole: list[float] = []
        filled: list[float] = []
        for generation in generations:
            processor = constrain(trie, PROMPT)
            for step in generation:
                ids = torch.from_numpy(step)
                began = time.thread_time()
                processor(ids, scores)
                between = time.thread_time()
                torch.full_like(scores, -torch.inf)
                whole.append(between - began)
                filled.append(time.thread_time() - between)
        for part, times in (("processor", whole), ("fill", filled)):
            for told, share in (("median", 50), ("p95", 95)):
                label = f"{part}_{name}_beams{beams}_vocabulary{vocabulary}_{told}"
                rows.append(Row(label, float(np.percentile(times, share)) * 1000, "ms"))
    return rows


def timed_peer(
    name: str, build: Callable[[], Callable[[], Any]], sequences: Sequence[list[int]], beams: int, console: Console
) -> list[Row]:
    """Measure a peer: `build` compiles the choice and returns what makes a matcher with `fill()` and `take(token)`."""
    try:
        return _timed(name, build, sequences, beams)
    except Exception as error:  # peers refuse large choices each in a way of its own
        console.print(f"{name}: refused: {str(error).splitlines()[0][:150]}", highlight=False)
        return [Row(f"{name}_build", 0.0, "s")]


def _timed(name: str, build: Callable[[], Callable[[], Any]], sequences: Sequence[list[int]], beams: int) -> list[Row]:
    began = time.perf_counter()
    make = build()
    make().fill()
    rows = [Row(f"{name}_build", time.perf_counter() - began, "s")]
    draw = random.Random(1)
    taken = []
    for _ in range(10):
        chosen = [draw.choice(sequences) for _ in range(beams)]
        matchers = [make() for _ in chosen]
        for at in range(min(map(len, chosen))):
            began = time.perf_counter()
            for matcher, tokens in zip(matchers, chosen, strict=True):
                matcher.fill()
                matcher.take(tokens[at])
            taken.append(time.perf_counter() - began)
    return [*rows, Row(f"{name}_beams{beams}_step_p95", float(np.percentile(taken, 95)) * 1000, "ms")]


class Guidance:
    """llguidance over a flat choice."""

    def __init__(self, tokenizer: Any, grammar: str) -> None:
        import llguidance
        import llguidance.numpy

        self._matcher = llguidance.LLMatcher(tokenizer, grammar)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())
        self._mask = llguidance.numpy.allocate_token_bitmask(1, tokenizer.vocab_size)
        self._fill = llguidance.numpy.fill_next_token_bitmask

    def fill(self) -> None:
        """Compute the next mask."""
        self._fill(self._matcher, self._mask, 0)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())

    def take(self, token: int) -> None:
        """Go on by a token."""
        self._matcher.consume_token(token)


class Grammar:
    """xgrammar over a flat choice."""

    def __init__(self, compiled: Any, vocabulary: int) -> None:
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher(compiled)
        self._mask = xgrammar.allocate_token_bitmask(1, vocabulary)

    def fill(self) -> None:
        """Compute the next mask."""
        self._matcher.fill_next_token_bitmask(self._mask)

    def take(self, token: int) -> None:
        """Go on by a token."""
        self._matcher.accept_token(token)


def peers(
    texts: list[str], sequences: list[list[int]], tokenizer: Tokenizer, beams: int, console: Console
) -> list[Row]:
    """Measure what is installed."""
    rows: list[Row] = []
    try:
        import llguidance
        import xgrammar
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        console.print(f"peers are left out: {error.name} is not installed", highlight=False)
        return rows
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    told = llguidance.LLTokenizer(tokenizer.to_str(), n_vocab=len(fast), eos_token=END)
    choice = str(guided_request(texts, "llama_cpp")["grammar"]).removeprefix("root ::= ")

    def guidance() -> Callable[[], Any]:
        grammar = llguidance.LLMatcher.grammar_from_lark(f"start: {choice}")
        return lambda: Guidance(told, grammar)

    def grammar() -> Callable[[], Any]:
        info = xgrammar.TokenizerInfo.from_huggingface(fast)
        compiled = xgrammar.GrammarCompiler(info).compile_grammar(f"root ::= {choice}")
        return lambda: Grammar(compiled, info.vocab_size)

    name = f"{len(texts)}"
    rows += timed_peer(f"llguidance_{name}", guidance, sequences, beams, console)
    return rows + timed_peer(f"xgrammar_{name}", grammar, sequences, beams, console)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--candidates", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--peers-up-to", type=int, default=1000, help="maximum candidates for peers")
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--walks", type=int, default=100, help="generations")
    options = parser.parse_args()
    console = Console()
    every = queries(max(options.candidates))
    tokenizer = trained(every)
    rows: list[Row] = []
    for count in options.candidates:
        texts = every[:count]
        sequences = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
        rows += trie_rows(str(count), sequences, options.beams, options.walks)
        if count <= options.peers_up_to:
            rows += peers(texts, sequences, tokenizer, options.beams, console)
    show(rows, "constrained decoding", options.json)


if __name__ == "__main__":
    main()
