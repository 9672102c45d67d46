"""Constrained decoding over enumerated candidate queries.

`TokenTrie` holds the candidates as token sequences and returns the allowed next tokens; `constrain` makes it a
transformers `LogitsProcessor`. The rankers order candidates for a question: `ConstrainedRanker` by beam search with a
local model, `LikelihoodRanker` by a local model's likelihood of each candidate, `GuidedRanker` by a served model whose
server masks its tokens, `NumberRanker` by the numbers that any model picks from a list. All return positions in the
list of candidates, so the executed query is a candidate as given, character for character.

Source: GraphRAFT (arXiv:2504.05478), "Grounded constrained decoding".
Differs: the paper compares every candidate at every step; here a step costs the same for any number of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int32, Int64
from byokg.errors import ConfigError, LlmOffChoice, NoCandidates, at_least, import_extra
from byokg.llm.chat_models import LocalChatModel
from byokg.llm.messages import JSON, Message, prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.reply_blocks import blocks
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


def encode(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of candidates as a Hugging Face tokenizer writes them, without special ones."""
    return list(tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True)["input_ids"])


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


class _Local:
    """A model in this process, loaded on first use; see `ConstrainedRanker` for the arguments."""

    def __init__(
        self,
        model: LanguageModel | Loaded | None,
        path: str | None,
        prompt: str,
        device: str | None,
        dtype: str | None,
    ) -> None:
        if "{question}" not in prompt:
            raise ConfigError(f"prompt={prompt!r} does not show the question; write {{question}} where it goes")
        self._prompt = prompt
        if path is not None:
            self._load = LocalChatModel(model=path, device=device, dtype=dtype).load
        elif isinstance(model, tuple):
            self._load = lambda: model
        elif isinstance(model, LanguageModel) and isinstance(model.chat_model, LocalChatModel):
            self._load = model.chat_model.load
        else:
            raise ConfigError(
                "no model in this process to rank queries with; name one with path=…, or choose llm=hf_local"
            )

    def _ready(self, question: str, candidates: Sequence[HasQuery]) -> tuple[Any, Any, list[int], TokenSequences, int]:
        """Return model, tokenizer, the tokens of the prompt and of the candidates, and the token that ends one."""
        if not candidates:
            raise NoCandidates(question)
        model, tokenizer = self._load()
        end = tokenizer.eos_token_id
        if end is None:
            raise ConfigError("the tokenizer has no token that ends a text (eos_token), so no query can end")
        prompt = list(tokenizer(self._prompt.replace("{question}", question))["input_ids"])
        if prompt and prompt[-1] == end:  # some tokenizers end every text
            prompt.pop()
        return model, tokenizer, prompt, tokenize_candidates(tokenizer, candidates, question), end


class ConstrainedRanker(_Local):
    """Orders candidates by beam search over their tokens; implements `CandidateRanker`.

    Args:
        model: a pipeline's, which is `llm=hf_local`; or model and tokenizer.
        path: folder or name on the model hub of another model, such as one of `byokg train sft`.
        beams: candidates found at most.
        prompt: text before a candidate, with `{question}`.
        device: of `path`: `cpu`, `cuda`; None takes a GPU if there is one.
        dtype: of `path`: `bfloat16`, `float16`, `float32`; None takes the type of the saved weights.

    Raises:
        ConfigError: a setting is out of range, or there is no such model.
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
    ) -> None:
        super().__init__(model, path, prompt, device, dtype)
        at_least(1, "finds nothing", beams=beams)
        self._beams = beams

    def rank(self, question: str, candidates: Sequence[HasQuery]) -> list[tuple[int, float]]:
        """Return at most `beams` positions with the logarithm of each candidate's likelihood, best first.

        Candidates with equal tokens (a tokenizer without capitals, say) count as one, and share a score; those that the
        tokenizer cannot write are left out: see `tokenize_candidates`.

        Raises:
            NoCandidates: there is nothing to choose from.
        """
        torch = import_extra("torch", "local", "constrained decoding")
        model, tokenizer, prompt, spelled, end = self._ready(question, candidates)
        if not spelled:
            return []
        sequences, positions = list(spelled), list(spelled.values())
        trie = TokenTrie(sequences, end)
        beams = min(self._beams, len(sequences))
        ids = torch.tensor([prompt], device=model.device)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end
        with torch.inference_mode():
            found = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                logits_processor=[constrain(trie, len(prompt))],
                num_beams=beams,
                num_return_sequences=beams,
                max_new_tokens=1 + max(map(len, sequences)),
                do_sample=False,
                length_penalty=0.0,
                early_stopping=False,
                eos_token_id=end,
                pad_token_id=pad,
                return_dict_in_generate=True,
                output_scores=True,
            )
        told = [0.0] * beams if beams == 1 else found.sequences_scores.tolist()
        ranked: dict[int, float] = {}
        for row, score in zip(found.sequences[:, len(prompt) :].tolist(), told, strict=True):
            tokens = row[: row.index(end) + 1] if end in row else row
            found_at = trie.candidate(trie.walk(tokens))
            if found_at is not None and score > _IMPOSSIBLE:
                for position in positions[found_at]:
                    ranked.setdefault(position, score)
        return sorted(ranked.items(), key=lambda each: -each[1])


_IMPOSSIBLE = -1e8
"""Beam search gives beams that copy another one, and those that died, lower scores than this."""


class LikelihoodRanker(_Local):
    """Orders candidates by how likely a local model finds each as a whole; implements `CandidateRanker`.

    It reads every candidate to its end, so it takes time in proportion to their number.

    Args:
        model, path, prompt, device, dtype: see `ConstrainedRanker`.
        batch: candidates read together.
    """

    def __init__(
        self,
        model: LanguageModel | Loaded | None = None,
        path: str | None = None,
        batch: int = 16,
        prompt: str = PROMPT,
        device: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(model, path, prompt, device, dtype)
        at_least(1, "reads nothing", batch=batch)
        self._batch = batch

    def rank(self, question: str, candidates: Sequence[HasQuery]) -> list[tuple[int, float]]:
        """Return positions with each candidate's log-likelihood, best first, of those that `tokenize_candidates` keeps.

        Raises:
            NoCandidates: there is nothing to choose from.
        """
        torch = import_extra("torch", "local", "likelihoods of queries")
        model, _, prompt, spelled, end = self._ready(question, candidates)
        sequences = list(spelled)
        scores: list[float] = []
        for first in range(0, len(sequences), self._batch):
            rows = [[*prompt, *tokens, end] for tokens in sequences[first : first + self._batch]]
            ids = torch.full((len(rows), max(map(len, rows))), end, device=model.device)
            mask = torch.zeros_like(ids)
            for at, row in enumerate(rows):
                ids[at, : len(row)] = torch.tensor(row, device=model.device)
                mask[at, : len(row)] = 1
            with torch.inference_mode():
                logits = model(ids, attention_mask=mask).logits[:, len(prompt) - 1 : -1].float()
            chosen = torch.log_softmax(logits, -1).gather(-1, ids[:, len(prompt) :, None])[..., 0]
            scores += (chosen * mask[:, len(prompt) :]).sum(-1).tolist()
        ranked = [(at, score) for score, positions in zip(scores, spelled.values(), strict=True) for at in positions]
        return sorted(ranked, key=lambda each: (-each[1], each[0]))


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
    distinct = list(dict.fromkeys(choices))
    if server == "vllm":
        return {"structured_outputs": {"choice": distinct}}
    if server == "vllm_guided":
        return {"guided_choice": distinct}
    if server == "sglang":
        return {"regex": "(" + "|".join(_REGEX_SIGNS.sub(r"\\\g<0>", choice) for choice in distinct) + ")"}
    if server == "llama_cpp":
        return {"grammar": "root ::= " + " | ".join(map(_gbnf, distinct))}
    raise ConfigError(f"server={server} is not known; use one of {', '.join(get_args(Server))}")


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
        if server not in get_args(Server):
            raise ConfigError(f"server={server} is not known; use one of {', '.join(get_args(Server))}")
        at_least(1, "chooses nothing", picks=picks)
        self._model, self._server, self._picks = model, server, picks
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
        text = "\n".join(blocks(reply.text, "numbers")) or reply.text
        found = [int(number) for line in text.splitlines() for number in _NUMBER.findall(_NUMBERS.sub("", line))]
        picked = [number - 1 for number in dict.fromkeys(found) if 1 <= number <= len(shown)]
        return [(position, 1 / (1 + place)) for place, position in enumerate(picked[: self._picks])]
