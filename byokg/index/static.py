"""Static token embeddings: a text is the mean of its tokens' vectors. No torch, tens of microseconds a text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from byokg.errors import ConfigError
from byokg.index.embedder import Vectors

SHIPPED = Path(__file__).resolve().parent.parent / "data" / "embedder"
"""The embedder that comes with the package (see its README)."""

USUAL_LENGTH = 100.0
"""Length of an ordinary content word's vector in the shipped model; function words have about half of it."""

TEXTS_AT_ONCE = 4096
"""Bounds memory: about 20 tokens a text and 128 dimensions make 40 MB of gathered vectors."""

_BY_WORD, _WORDS_KEPT = 1024, 20_000
"""Texts up to which words are looked up one by one, which is quicker for a few, and words whose tokens are kept."""


class StaticEmbedder:
    """Encodes texts with a model2vec folder.

    Args:
        path: a folder holding `model.safetensors`, `tokenizer.json` and `config.json`; None means the
            shipped one (all-MiniLM-L6-v2 distilled to 128 dimensions in int8).

    Raises:
        ConfigError: `path` holds no such model.
    """

    def __init__(self, path: Path | None = None) -> None:
        folder = SHIPPED if path is None else Path(path)
        weights_file = folder / "model.safetensors"
        # Checked first: given a folder that is missing, model2vec would look for it on a model hub.
        if not weights_file.is_file():
            raise ConfigError(
                f"no static embedder in {str(folder)!r}: {weights_file.name} is missing; "
                "leave the path out for the shipped one, or make one with: byokg embedder distill MODEL --out DIR"
            )
        try:
            model = StaticModel.from_pretrained(folder)
        except Exception as error:  # tokenizers raises a bare Exception, safetensors one of its own
            raise ConfigError(f"the static embedder in {str(folder)!r} cannot be read: {error}") from error
        rows = cast("npt.NDArray[np.float32]", model.embedding.astype(np.float32))
        if model.token_mapping is not None:
            rows = rows[model.token_mapping]
        if model.weights is not None:
            rows = rows * model.weights.astype(np.float32)[:, None]
        self._rows: Vectors = np.ascontiguousarray(rows)
        self._tokenizer: Tokenizer = model.tokenizer
        # Averaged whole: a static embedding has no length limit, so nothing of a text is dropped.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Such a tokenizer never joins what a space parts, so the tokens of a text are those of its words.
        self._words_apart = isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer)
        self._ids_of_word: dict[str, list[int]] = {}
        self._unknown: int | None = model.unk_token_id
        digest = hashlib.sha256(weights_file.read_bytes()).hexdigest()[:12]
        self._name = f"static-{self._rows.shape[1]}-{model.embedding.dtype.name}-{digest}"

    @property
    def name(self) -> str:
        """Identify dimensions, number type and content (`static-128-int8-<digest>`)."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Return the length D of a vector."""
        return int(self._rows.shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the normalised mean of each text's token vectors.

        Each row depends on its own text only: alone or in a batch, the bytes are the same, because sums
        of int8 values are exact.

        Args:
            texts: N texts of any length.

        Returns:
            (N, D) float32, rows of length 1; zeros for a text without any known token.
        """
        out = np.zeros((len(texts), self._rows.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            chunk = texts[start : start + TEXTS_AT_ONCE]
            if len(chunk) == 1:
                token_ids: Sequence[Sequence[int]] = [self._tokenizer.encode(chunk[0], add_special_tokens=False).ids]
            elif self._words_apart and len(texts) <= _BY_WORD:
                token_ids = self._ids_by_word(chunk)
            else:
                token_ids = self._ids(chunk)
            self._mean_into(out[start : start + len(chunk)], token_ids)
        return out

    def tokens(self, text: str) -> tuple[list[str], Vectors]:
        """Split one text into the pieces that `encode` averages.

        Args:
            text: any text; lower-cased and cut into word pieces (a leading `##` continues a word).

        Returns:
            T tokens, and their vectors (T, D) float32 in the same order, not normalised: a row's length
            is the token's weight, and the normalised sum of the rows is `encode([text])[0]`. Unknown
            tokens are left out.
        """
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids: list[int] = encoding.ids
        pieces: list[str] = encoding.tokens
        if self._unknown in ids:
            kept = [i for i, token in enumerate(ids) if token != self._unknown]
            ids = [ids[i] for i in kept]
            pieces = [pieces[i] for i in kept]
        return pieces, self._rows[np.asarray(ids, dtype=np.int64)]

    def importance(self, word: str) -> float:
        """Tell how much a word says, about 1 on average: rarer words have longer vectors; unknown ones count 1."""
        _, rows = self.tokens(word)
        return float(np.linalg.norm(rows.mean(axis=0))) / USUAL_LENGTH if len(rows) else 1.0

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _ids_by_word(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what `_ids` does, cutting into tokens only words that were not met lately."""
        words_of = [text.split(" ") for text in texts]
        ids = self._ids_of_word  # another thread may put a new one in its place; this one only grows
        new = [word for word in dict.fromkeys(chain.from_iterable(words_of)) if word not in ids]
        if len(ids) + len(new) > _WORDS_KEPT:
            ids = self._ids_of_word = {}
            new = list(dict.fromkeys(chain.from_iterable(words_of)))
        ids.update(zip(new, self._ids(new), strict=True))
        return [list(chain.from_iterable(map(ids.__getitem__, words))) for words in words_of]

    def _mean_into(self, out: Vectors, token_ids: Sequence[Sequence[int]]) -> None:
        """Fill `out` (N, D), zeros so far, with the unit mean of each of N texts' token vectors."""
        lengths = np.fromiter(map(len, token_ids), dtype=np.int64, count=len(token_ids))
        flat = np.fromiter(chain.from_iterable(token_ids), dtype=np.int64, count=int(lengths.sum()))
        if self._unknown is not None:
            known = flat != self._unknown
            if not known.all():
                owner = np.repeat(np.arange(len(token_ids)), lengths)
                lengths = np.bincount(owner[known], minlength=len(token_ids))
                flat = flat[known]
        starts = np.cumsum(lengths) - lengths
        # Texts of equal token count are summed together: several times faster than `np.add.reduceat`.
        for length in np.unique(lengths[lengths > 0]):
            rows = np.flatnonzero(lengths == length)
            sums = self._rows[flat[starts[rows, None] + np.arange(length)]].sum(axis=1)
            # Direction only: dividing by the token count would cancel out in the normalisation.
            norms = np.sqrt(np.einsum("ij,ij->i", sums, sums, dtype=np.float64))
            np.maximum(norms, np.finfo(np.float32).tiny, out=norms)
            out[rows] = sums / norms[:, None]
