"""Constrained decoding over enumerated candidate queries.

`TokenTrie` holds the candidates as token sequences and returns the allowed next tokens; `constrain` makes it a
transformers `LogitsProcessor`. The rankers order candidates for a question: `ConstrainedRanker` by a search with a
local model (`TrieSearch`), `GuidedRanker` by a served model whose server masks its tokens, `NumberRanker` by the
numbers that any model picks from a list. All return positions in the list of candidates, so the executed query is a
candidate as given, character for character.

Source: GraphRAFT (arXiv:2504.05478), "Grounded constrained decoding".
Differs: the paper compares every candidate at every step; here a step costs the same for any number of them.
"""

from __future__ import annotations

import heapq
import json
import logging
import re
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int32, Int64
from byokg.errors import ConfigError, LlmOffChoice, NoCandidates, at_least, import_extra, one_of
from byokg.llm.chat_models import LocalChatModel
from byokg.llm.local_weights import ADAPTER, SFT_RECORD, check_folder, weights_digest, weights_place
from byokg.llm.messages import JSON, Message, prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.reply_blocks import blocks, without_thought
from byokg.prompts import PromptLibrary

_log = logging.getLogger(__name__)


DEAD = -1
"""The state after tokens that no candidate starts with."""
ROOT = 0
STAGE = "candidates"


class HasQuery(Protocol):
    """Something with a query: `retrieval.candidates.CandidateQuery`, for one."""

    @property
    def query(self) -> str:
        """Return the text that is run."""


class TokenTrie:
    """The prefixes of N token sequences, as three flat arrays; a state is the number of a prefix.

    Building takes time in proportion to all tokens together, a step in proportion to the tokens that may come next.
    A sequence ends with the token `end`, so one candidate may be the beginning of another.

    Args:
        sequences: token ids of each candidate.
        end: token that ends a sequence, and stands in none.

    Raises:
        NoCandidates: there are none.
        ConfigError: a sequence holds `end`.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], end: int) -> None:
        if not sequences:
            raise NoCandidates()
        self.end = end
        lengths = np.array([len(sequence) + 1 for sequence in sequences], np.int64)
        bounds = np.concatenate(([0], np.cumsum(lengths)))
        flat = np.full(bounds[-1], end, np.int64)
        inside = np.ones(len(flat), np.bool_)
        inside[bounds[1:] - 1] = False
        flat[inside] = np.fromiter(chain.from_iterable(sequences), np.int64, len(flat) - len(sequences))
        if (flat[inside] == end).any():
            raise ConfigError(f"a candidate holds the token {end}, which ends candidates; give another end")
        # As bytes, most significant first, sequences compare like lists of numbers, and many times faster.
        written, places = flat.astype(">u4").tobytes(), (4 * bounds).tolist()
        keys = [written[first:last] for first, last in pairwise(places)]
        order = sorted(range(len(sequences)), key=keys.__getitem__)
        starts, lengths = bounds[:-1][order], lengths[order]
        rows, state = np.arange(len(order)), np.zeros(len(order), np.int64)
        tokens, parents, count = [], [], 1
        for depth in range(int(lengths.max())):
            rows = rows[lengths[rows] > depth]
            token, parent = flat[starts[rows] + depth], state[rows]
            new = np.ones(len(rows), np.bool_)
            new[1:] = (parent[1:] != parent[:-1]) | (token[1:] != token[:-1])
            state[rows] = count - 1 + np.cumsum(new)
            tokens.append(token[new])
            parents.append(parent[new])
            count += int(new.sum())
        # Children are numbered in the order of their parents, so child n is reached by token n - 1.
        self.tokens: Int32 = np.concatenate(tokens).astype(np.int32)
        """(S - 1,) the token that leads to state 1, 2, …; ascending among the children of a state."""
        self.bounds: Int64 = np.searchsorted(np.concatenate(parents), np.arange(count + 1))
        """(S + 1,) the children of state s are bounds[s] + 1 up to bounds[s + 1]."""
        self._candidates = dict(zip(reversed(state.tolist()), reversed(order), strict=True))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def allowed(self, state: int) -> Int32:
        """Return the tokens that may come next, ascending: a view, none after the end of a candidate."""
        if state == DEAD:
            return self.tokens[:0]
        return self.tokens[self.bounds[state] : self.bounds[state + 1]]

    def step(self, state: int, token: int) -> int:
        """Return the state after a token; `DEAD` if no candidate continues with it."""
        if state == DEAD:
            return DEAD
        first, last = self.bounds[state], self.bounds[state + 1]
        at = int(first + self.tokens[first:last].searchsorted(token))
        return at + 1 if at < last and self.tokens[at] == token else DEAD

    def walk(self, tokens: Iterable[int], state: int = ROOT) -> int:
        """Return the state after several tokens."""
        for token in tokens:
            state = self.step(state, token)
        return state

    def candidate(self, state: int) -> int | None:
        """Return the position of the candidate that a state ends; of equal sequences the first. None elsewhere."""
        return self._candidates.get(state)


class TrieStates:
    """Follows the beams of one generation through a trie, one step at a time, whichever way they are reordered.

    Args:
        trie: the candidates.
        prompt_tokens: tokens that stand before the first generated one, the same for all beams.
    """

    def __init__(self, trie: TokenTrie, prompt_tokens: int) -> None:
        self._trie = trie
        self._prompt_tokens = prompt_tokens
        self._states: dict[Hashable, int] = {}

    def after(self, rows: npt.NDArray[np.integer]) -> list[int]:
        """Return the state of each beam: (B, T) tokens, prompts and all, to B states."""
        generated = np.ascontiguousarray(rows[:, self._prompt_tokens :])
        now: dict[Hashable, int] = {}
        states = []
        for row in generated:
            key = row.tobytes()
            if key not in now:
                before = self._states.get(row[:-1].tobytes()) if len(row) else None
                # A beam that was not seen a step ago, as when a generation goes on from saved tokens, is walked anew.
                walked = self._trie.walk(row.tolist()) if before is None else self._trie.step(before, row[-1])
                now[key] = walked
            states.append(now[key])
        self._states = now
        return states


def constrain(trie: TokenTrie, prompt_tokens: int) -> Any:
    """Return a transformers `LogitsProcessor` that lets candidates through alone, for greedy and beam search.

    After the end of a candidate only the end may follow. A dead beam, which search keeps for want of others, may only
    end as well: its likelihood is zero already, so any live beam takes its place at the next step.

    Args:
        trie: the candidates.
        prompt_tokens: length of the prompt, the same for all rows.

    Raises:
        MissingExtra: torch or transformers is not installed.
    """
    torch = import_extra("torch", "local", "constrained decoding")
    transformers = import_extra("transformers", "local", "constrained decoding")
    states = TrieStates(trie, prompt_tokens)
    end = np.array([trie.end], np.int64)

    class Constrained(transformers.LogitsProcessor):  # type: ignore[misc,name-defined]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            rows = [trie.allowed(state) for state in states.after(input_ids.cpu().numpy())]
            width = scores.shape[-1]
            kept = np.concatenate([beam * width + (tokens if len(tokens) else end) for beam, tokens in enumerate(rows)])
            places = torch.from_numpy(kept).to(scores.device)
            masked = torch.full_like(scores, -torch.inf)
            masked.view(-1)[places] = scores.reshape(-1)[places]
            return masked

    return Constrained()


class TrieSearch:
    """Searches a trie for its likeliest sequences, best first, with one key-value cache for all; not thread-safe.

    The prompt is encoded once. Then prefixes are encoded in batches, likeliest first, each with the tokens that no
    alternative branches off from, in one sequence in which a prefix attends to the prompt and to its own beginning
    alone. The likelihood of a prefix never grows, so the search ends, with the exact order, once enough whole sequences
    are likelier than every open prefix.

    Args:
        model: a causal model of transformers, with LoRA or without, whose positions can be given.
        width: prefixes encoded together, besides those between two branches.
        budget: tokens encoded at most for a question; the best sequences so far are returned then.
        whole: compare all tokens of the vocabulary, not those of the trie alone.

    Raises:
        ConfigError: a setting is out of range.
        MissingExtra: torch is not installed.

    Source: GraphRAFT (arXiv:2504.05478), "Grounded constrained decoding" with beam search.
    Differs: best first instead of level by level; a softmax over the tokens of the trie alone, which costs a few
    multiplications where that over a vocabulary of 262,144 tokens costs more than the model.
    """

    def __init__(self, model: Any, width: int = 16, budget: int = 2000, whole: bool = False) -> None:
        at_least(1, "encodes nothing", width=width, budget=budget)
        self._torch = import_extra("torch", "local", "constrained decoding")
        causal = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._body, self._head, self._config = causal.base_model, causal.get_output_embeddings(), causal.config
        self._width, self._budget, self._whole = width, budget, whole

    def search(self, prompt: Sequence[int], trie: TokenTrie, most: int) -> list[tuple[int, float]]:
        """Return at most so many candidates of a trie with the logarithm of their likelihood, best first."""
        with self._torch.inference_mode():
            return _Search(self, self._torch, list(prompt), trie, self._width, self._budget, self._whole).run(most)


class _Search:
    def __init__(
        self, of: TrieSearch, torch: Any, prompt: list[int], trie: TokenTrie, width: int, budget: int, whole: bool
    ) -> None:
        self._torch, self._trie, self._body, self._width, self._budget = torch, trie, of._body, width, budget
        used = np.unique(trie.tokens)
        head = of._head
        self._device = head.weight.device
        columns = torch.from_numpy(used.astype(np.int64)).to(self._device)
        self._columns = used
        self._pick = columns if whole else None
        self._weight = head.weight if whole else head.weight[columns]
        self._bias = head.bias if whole or head.bias is None else head.bias[columns]
        self._cap = getattr(of._config, "final_logit_softcapping", None)
        self._prompt = len(prompt)
        self._fed: list[list[int]] = []
        """For each fed token the places of its beginning in the cache, its own last."""
        ids = torch.tensor([prompt], device=self._device)
        out = self._body(input_ids=ids, use_cache=True)
        self._cache = out.past_key_values
        self._heap: list[tuple[float, int, int]] = []
        """Open prefixes: minus the likelihood, the state, and the place of the token before (-1: the prompt)."""
        self._done: list[tuple[float, int]] = []
        self._branch(ROOT, 0.0, -1, self._logs(out.last_hidden_state[0, -1:])[0])

    def _logs(self, hidden: Any) -> np.ndarray:
        """Return the logarithms of the likelihoods of the trie's tokens: (N, W) to (N, K)."""
        logits = self._torch.nn.functional.linear(hidden, self._weight, self._bias).float()
        if self._cap:
            logits = self._cap * self._torch.tanh(logits / self._cap)
        logs = self._torch.log_softmax(logits, -1)
        found: np.ndarray = (logs if self._pick is None else logs[:, self._pick]).cpu().numpy()
        return found

    def _branch(self, state: int, score: float, place: int, logs: np.ndarray) -> None:
        """Open the children of a state whose next tokens' likelihoods are known."""
        tokens = self._trie.allowed(state)
        first = int(self._trie.bounds[state]) + 1
        scores = score + logs[np.searchsorted(self._columns, tokens)]
        for at, (token, worth) in enumerate(zip(tokens.tolist(), scores.tolist(), strict=True)):
            if token == self._trie.end:
                self._done.append((worth, first + at))
            else:
                heapq.heappush(self._heap, (-worth, first + at, place))

    def run(self, most: int) -> list[tuple[int, float]]:
        """Encode prefixes until the order of the best is known."""
        while self._heap and len(self._fed) < self._budget:
            least = heapq.nlargest(most, self._done)[-1][0] if len(self._done) >= most else -np.inf
            chosen: list[tuple[float, int, int]] = []
            while self._heap and len(chosen) < self._width and -self._heap[0][0] > least:
                chosen.append(heapq.heappop(self._heap))
            if not chosen:
                break
            self._feed(chosen)
        best = sorted(self._done, key=lambda one: (-one[0], one[1]))[:most]
        return [(candidate, score) for score, state in best if (candidate := self._trie.candidate(state)) is not None]

    def _feed(self, chosen: Sequence[tuple[float, int, int]]) -> None:
        """Encode prefixes, and the tokens after each up to the next branch."""
        torch, trie, before = self._torch, self._trie, len(self._fed)
        tokens, states = list[int](), list[int]()
        scores: list[float] = []
        for worth, state, place in chosen:
            beginning = [] if place < 0 else self._fed[place]
            score = -worth
            while True:
                beginning = [*beginning, len(self._fed)]
                self._fed.append(beginning)
                tokens.append(int(trie.tokens[state - 1]))
                states.append(state)
                scores.append(score)
                following = trie.allowed(state)
                if len(following) != 1 or following[0] == trie.end:
                    break
                state, score = int(trie.bounds[state]) + 1, np.nan
        new = self._fed[before:]
        mask = torch.zeros((len(new), self._prompt + len(self._fed)), dtype=torch.bool)
        mask[:, : self._prompt] = True
        for row, beginning in enumerate(new):
            mask[row, [self._prompt + at for at in beginning]] = True
        dtype = self._weight.dtype
        shut = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)[None, None]
        places = torch.tensor([[self._prompt + len(beginning) - 1 for beginning in new]], device=self._device)
        shut = shut.to(self._device)
        layered = getattr(self._body.config, "layer_types", None)
        out = self._body(
            input_ids=torch.tensor([tokens], device=self._device),
            attention_mask=dict.fromkeys(layered, shut) if layered else shut,
            position_ids=places,
            past_key_values=self._cache,
            use_cache=True,
        )
        self._cache = out.past_key_values
        logs = self._logs(out.last_hidden_state[0])
        for row, (state, known) in enumerate(zip(states, scores, strict=True)):
            if np.isnan(known):  # the only token after the one before
                token = np.searchsorted(self._columns, tokens[row])
                scores[row] = scores[row - 1] + float(logs[row - 1][token])
            following = trie.allowed(state)
            if len(following) != 1 or following[0] == trie.end:
                self._branch(state, scores[row], before + row, logs[row])


def yes_odds(model: Any, tokenizer: Any, prompts: Sequence[Sequence[int]]) -> Any:
    """Return the log-odds that a model goes on with `yes`, and not with `no`, after the tokens of N prompts: (N,)."""
    torch = import_extra("torch", "local", "choosing among results")
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    head, longest = causal.get_output_embeddings(), max(map(len, prompts))
    words = [row[0] for row in encode(tokenizer, ["yes", "no"])]
    if words[0] == words[1]:
        raise ConfigError("the tokenizer writes yes and no with the same first token, so a model cannot choose by them")
    rows = [[*prompt, *words[:1] * (longest - len(prompt))] for prompt in prompts]  # of causal models, any padding
    hidden = causal.base_model(input_ids=torch.tensor(rows, device=head.weight.device), use_cache=False)
    ends = hidden.last_hidden_state[range(len(prompts)), [len(prompt) - 1 for prompt in prompts]]
    logits = torch.nn.functional.linear(ends, head.weight[words], None if head.bias is None else head.bias[words])
    return (logits[:, 0] - logits[:, 1]).float()


def encode(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of candidates as a Hugging Face tokenizer writes them, without special ones."""
    return list(tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True)["input_ids"])


def encode_prompts(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of prompts, without the end that some tokenizers give every text."""
    end = tokenizer.eos_token_id
    return [row[:-1] if row and row[-1] == end else row for row in map(list, tokenizer(list(texts))["input_ids"])]


TokenSequences = dict[tuple[int, ...], list[int]]
"""Distinct token sequences, each with the positions of the candidates that the tokenizer writes so."""


def tokenize_candidates(tokenizer: Any, candidates: Sequence[HasQuery], question: str = "") -> TokenSequences:
    """Return the tokens of the candidates that a tokenizer can write.

    One without byte fallback has no tokens for some characters, and some read the name of their last token as that.
    Candidates with such names are left out, with a log line.
    """
    unwritable = {tokenizer.unk_token_id, tokenizer.eos_token_id} - {None}
    spelled: TokenSequences = {}
    out = []
    for position, tokens in enumerate(encode(tokenizer, [one.query for one in candidates])):
        if unwritable.isdisjoint(tokens):
            spelled.setdefault(tuple(tokens), []).append(position)
        else:
            out.append(candidates[position].query)
    if out:
        _log.warning(
            "%r: the tokenizer, without byte fallback, cannot spell %d of %d candidates, which are left out: %s",
            question,
            len(out),
            len(candidates),
            out[0],
        )
    return spelled


PROMPT = "Question: {question}\nQuery: "
"""Text before a candidate, in training as in decoding; GraphRAFT has no schema in it either."""


Loaded = tuple[Any, Any]
"""A transformers model and its tokenizer."""


class ConstrainedRanker:
    """Orders candidates by a best-first search over their tokens; implements `CandidateRanker`; threads may share it.

    Args:
        model: a pipeline's, which is `llm=hf_local`; or model and tokenizer.
        path: folder or name on the model hub of another model, such as one of `byokg train sft`.
        beams: candidates found at most.
        prompt: text before a candidate, with `{question}`.
        device: of `path`: `cpu`, `cuda`; None takes a GPU if there is one.
        dtype: of `path`: `bfloat16`, `float16`, `float32`; None takes the type of the saved weights.
        spelling: what the model writes: the `query` of a candidate, or its `plan`, which is shorter.

    Raises:
        ConfigError: a setting is out of range, or the model of `path` cannot be loaded (`load_tuned`).
        MissingExtra: torch or transformers is not installed.
    """

    def __init__(
        self,
        model: LanguageModel | Loaded | None = None,
        path: str | None = None,
        beams: int = 5,
        prompt: str = PROMPT,
        device: str | None = None,
        dtype: str | None = None,
        spelling: Literal["query", "plan"] = "query",
    ) -> None:
        at_least(1, "finds nothing", beams=beams)
        if "{question}" not in prompt:
            raise ConfigError(f"prompt={prompt!r} does not show the question; write {{question}} where it goes")
        self._prompt = prompt
        if path is not None:
            model = load_tuned(path, device, dtype)  # at once, since all questions would meet the same error
        if isinstance(model, tuple):
            self._load: Callable[[], Loaded] = lambda: model
        elif isinstance(model, LanguageModel) and isinstance(model.chat_model, LocalChatModel):
            self._load = model.chat_model.load
        else:
            raise ConfigError(
                "no model in this process to rank queries with; name one with path=…, or choose llm=hf_local"
            )
        self._beams, self.spelling = beams, spelling
        self._lock = threading.Lock()

    def rank(self, question: str, candidates: Sequence[HasQuery]) -> list[tuple[int, float]]:
        """Return at most `beams` positions with the logarithm of each candidate's likelihood, best first.

        Candidates with equal tokens (a tokenizer without capitals, say) count as one, and share a score; those that the
        tokenizer cannot write are left out: see `tokenize_candidates`.

        Raises:
            NoCandidates: there is nothing to choose from.
        """
        written = candidates
        if self.spelling == "plan":
            written = [Text(getattr(one, "plan", one.query)) for one in candidates]
        with self._lock:
            model, _, prompt, spelled, end = self._ready(question, written)
            if not spelled:
                return []
            found = TrieSearch(model).search(prompt, TokenTrie(list(spelled), end), self._beams)
        positions = list(spelled.values())
        return [(position, score) for row, score in found for position in positions[row]]

    def _ready(self, question: str, candidates: Sequence[HasQuery]) -> tuple[Any, Any, list[int], TokenSequences, int]:
        """Return model, tokenizer, the tokens of the prompt and of the candidates, and the token that ends one."""
        if not candidates:
            raise NoCandidates(question)
        model, tokenizer = self._load()
        end = tokenizer.eos_token_id
        if end is None:
            raise ConfigError("the tokenizer has no token that ends a text (eos_token), so no query can end")
        (prompt,) = encode_prompts(tokenizer, [self._prompt.replace("{question}", question)])
        return model, tokenizer, prompt, tokenize_candidates(tokenizer, candidates, question), end


@dataclass(frozen=True)
class Text:
    """A text in the place of a candidate."""

    query: str


def load_tuned(path: str, device: str | None = None, dtype: str | None = None) -> Loaded:
    """Load a model and its tokenizer, a folder of LoRA's with its base model, into which it is merged.

    Raises:
        ConfigError: there is no such model, a file of the folder is missing, or its adapter belongs to another base
            model.
        MissingExtra: torch, transformers or peft is not installed.
    """
    check_folder(path)
    folder = Path(path).expanduser()
    if not (folder / ADAPTER).is_file():
        return LocalChatModel(model=path, device=device, dtype=dtype).load()
    peft, torch = (import_extra(name, "train", "adapters of byokg train sft") for name in ("peft", "torch"))
    base = str(json.loads((folder / ADAPTER).read_text(encoding="utf-8")).get("base_model_name_or_path"))
    _check_base(folder, base)
    saved, tokenizer = load_tuned(base, device)  # which may be a folder of LoRA's as well
    wanted = saved.dtype if dtype is None else getattr(torch, dtype)
    try:
        adapted = peft.PeftModel.from_pretrained(saved.float(), str(folder))
        used, held = peft.get_peft_model_state_dict(adapted), peft.utils.load_peft_weights(str(folder), device="cpu")
        if set(used) != set(held):  # which peft passes over
            raise ValueError(f"{len(set(used) ^ set(held))} of its weights have no counterpart")
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"the adapter in {path!r} does not fit its base model {base!r}: {reason}; {_ANEW}") from error
    return adapted.merge_and_unload().to(wanted).eval(), tokenizer


def _check_base(folder: Path, base: str) -> None:
    """Check that an adapter's base model is there, and the one that it was trained for. Raises `ConfigError`."""
    record = folder / SFT_RECORD
    trained = json.loads(record.read_text(encoding="utf-8")).get("base") if record.is_file() else None
    try:
        check_folder(base)
        fits = trained in (None, weights_digest(weights_place(base)))
    except ConfigError as error:
        raise ConfigError(f"the adapter in {str(folder)!r} lacks its base model {base!r}; {_ANEW}") from error
    if not fits:
        raise ConfigError(f"the adapter in {str(folder)!r} was trained for other weights than {base!r} holds; {_ANEW}")


_ANEW = f"name its base model in its {ADAPTER}, or train it anew with: byokg train sft"


Server = Literal["vllm", "vllm_guided", "sglang", "llama_cpp"]
"""Who masks tokens: vLLM (0.11 and newer, and older ones that know `guided_choice`), SGLang, llama.cpp's server."""


def guided_request(choices: Sequence[str], server: Server) -> dict[str, JSON]:
    """Return the request members beyond OpenAI's own that restrict the reply to some texts.

    Raises:
        NoCandidates: there are none.
        ConfigError: the server is not known.
    """
    if not choices:
        raise NoCandidates()
    one_of("server=", server, get_args(Server))
    distinct = list(dict.fromkeys(choices))
    if server == "vllm":
        return {"structured_outputs": {"choice": distinct}}
    if server == "vllm_guided":
        return {"guided_choice": distinct}
    if server == "sglang":
        return {"regex": "(" + "|".join(_REGEX_SIGNS.sub(r"\\\g<0>", choice) for choice in distinct) + ")"}
    return {"grammar": "root ::= " + " | ".join(map(_gbnf, distinct))}


_REGEX_SIGNS = re.compile(r"[\\.^$*+?{}\[\]|()/-]")


_GBNF_SIGNS = re.compile(r'["\\\x00-\x1f\x7f]')
_GBNF_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _gbnf(text: str) -> str:
    """Write a text as a literal of llama.cpp's grammars."""
    escaped = _GBNF_SIGNS.sub(lambda found: _GBNF_ESCAPES.get(found[0], f"\\x{ord(found[0]):02X}"), text)
    return f'"{escaped}"'


class GuidedRanker:
    """Lets a served model write one of the candidates, with the server masking all other tokens.

    Implements `CandidateRanker`. The model is called again without its earlier choices, until `picks` are chosen.

    Args:
        model: an OpenAI-compatible server (`llm=openai_compatible`).
        server: kind of the server, which decides the request's form.
        picks: candidates chosen, one call each.
        prompts: the prompts; None takes those of the package.
    """

    def __init__(
        self, model: LanguageModel, server: Server = "vllm", picks: int = 1, prompts: PromptLibrary | None = None
    ) -> None:
        at_least(1, "chooses nothing", picks=picks)
        self._model, self._picks, self._server = model, picks, one_of("server=", server, get_args(Server))
        self._prompt = (prompts or PromptLibrary())["candidate_choice"]

    def rank(self, question: str, candidates: Sequence[HasQuery]) -> list[tuple[int, float]]:
        """Return the positions chosen, with scores 1, 1/2, 1/3, ….

        Raises:
            NoCandidates: there is nothing to choose from.
            LlmOffChoice: the reply is no candidate: the server took no notice of the constraint.
            LlmError: the model gave no usable reply.
        """
        if not candidates:
            raise NoCandidates(question)
        places: dict[str, int] = {}
        for position, one in enumerate(candidates):
            places.setdefault(one.query, position)
        messages = prompt_messages(self._prompt.fill(question=question))
        ranked: list[tuple[int, float]] = []
        while places and len(ranked) < self._picks:
            body = guided_request(list(places), self._server)
            reply = self._model.reply(messages, stage=STAGE, body=body)
            chosen = reply.text if reply.text in places else reply.text.strip()
            if chosen not in places:
                raise LlmOffChoice(self._model.name, reply, self._server)
            ranked.append((places.pop(chosen), 1 / (1 + len(ranked))))
        return ranked


_NUMBERS = re.compile(r"(?<=\d)[^\d\s,;.)\]].*|(?<=\d)[.)\]]*\s+[^\d\s].*|^[^\d]*[^\W\d].*")
"""Text of a line besides numbers: words after them, and all of a line that begins with a word."""
_NUMBER = re.compile(r"\d{1,9}")


class NumberRanker:
    """Lets any model pick the numbers of the best candidates from a list; it never writes a query.

    Implements `CandidateRanker`.

    Args:
        model: picks the numbers.
        shown: candidates in the list at most, the first ones given.
        picks: largest number of picks.
        prompts: the prompts; None takes those of the package.
        describe: writes a candidate for the list; None shows its query.
    """

    def __init__(
        self,
        model: LanguageModel,
        shown: int = 100,
        picks: int = 5,
        prompts: PromptLibrary | None = None,
        describe: Callable[[HasQuery], str] | None = None,
    ) -> None:
        at_least(1, "chooses nothing", shown=shown, picks=picks)
        self._model, self._shown, self._picks = model, shown, picks
        self._prompt = (prompts or PromptLibrary())["candidate_numbers"]
        self._describe = describe or (lambda one: one.query)

    def rank(self, question: str, candidates: Sequence[HasQuery]) -> list[tuple[int, float]]:
        """Return the positions picked, with scores 1, 1/2, 1/3, …; none if the model names no number of the list.

        Raises:
            NoCandidates: there is nothing to choose from.
            LlmError: the model gave no usable reply.
        """
        if not candidates:
            raise NoCandidates(question)
        shown = candidates[: self._shown]
        lines = [f"{number}. {' '.join(self._describe(one).split())}" for number, one in enumerate(shown, start=1)]
        filled = self._prompt.fill(candidates="\n".join(lines), question=question, picks=str(self._picks))
        messages: list[Message] = prompt_messages(filled)
        reply = self._model.reply(messages, stage=STAGE)
        text = "\n".join(blocks(reply.text, "numbers") or [without_thought(reply.text)])
        found = [int(number) for line in text.splitlines() for number in _NUMBER.findall(_NUMBERS.sub("", line))]
        picked = [number - 1 for number in dict.fromkeys(found) if 1 <= number <= len(shown)]
        return [(position, 1 / (1 + place)) for place, position in enumerate(picked[: self._picks])]
