"""A small language model made from nothing, for graphs with few relations: it learns which words ask for which path.

Questions are shown with their mentions masked, so that it learns relations and not names, and it writes the relations
of a path (`^directed_by starred_actors`). Its tokens are whole words: it has no other.

Source: GraphRAFT (arXiv:2504.05478) fine-tunes models of billions of parameters; this shows its method on one core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from byokg.errors import ConfigError, at_least, import_extra
from byokg.training.sft import Pair
from byokg.types import Metapath

MASK = "_"
PROMPT = "{question} ="
"""Text before a path: the masked question, and a sign."""

_UNKNOWN, _END = "<unk>", "<end>"


def masked_question(words: Sequence[str], masked: Sequence[bool]) -> str:
    """Return a question's words with each mention as one sign; `masked` is true for words of a mention."""
    written: list[str] = []
    for word, hidden in zip(words, masked, strict=True):
        if not hidden or written[-1:] != [MASK]:
            written.append(MASK if hidden else word)
    return " ".join(written)


def path_text(metapath: Metapath) -> str:
    """Write a path as the model does. Raises `ConfigError` for a label with a space, which is no single word."""
    if any(len(label.split()) != 1 for label in metapath):
        raise ConfigError(f"the relations {metapath!r} hold spaces; the small model writes labels as single words")
    return " ".join(metapath)


def small_model(
    pairs: Sequence[Pair],
    paths: Iterable[str],
    width: int = 96,
    layers: int = 2,
    heads: int = 4,
    longest: int = 64,
    seed: int = 0,
) -> tuple[Any, Any]:
    """Return a model of random weights, and a tokenizer that knows every word of pairs and paths.

    Args:
        pairs: masked questions and paths.
        paths: further paths.
        width: of a token's vector.
        layers: of the transformer.
        heads: of its attention.
        longest: tokens of a question with its path at most.
        seed: of the weights.

    Raises:
        MissingExtra: torch or transformers is not installed.
    """
    at_least(1, "is no size of a model", width=width, layers=layers, heads=heads, longest=longest)
    torch = import_extra("torch", "train", "training a small model")
    transformers = import_extra("transformers", "train", "training a small model")
    from tokenizers import Tokenizer, models, pre_tokenizers

    texts = [PROMPT, *(text for pair in pairs for text in (pair.question, pair.query)), *paths]
    counts = Counter(word for text in texts for word in text.split())
    words = [_UNKNOWN, _END, *sorted(counts)]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=_UNKNOWN, eos_token=_END, pad_token=_END
    )
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=len(words),
        n_positions=longest,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        bos_token_id=1,
        eos_token_id=1,
    )
    return transformers.GPT2LMHeadModel(config), fast
