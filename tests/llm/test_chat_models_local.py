"""Tests of `byokg.llm.chat_models` with a tiny model of random weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from byokg.errors import ConfigError, LlmInvalidRequest, LlmUnusable
from byokg.llm.chat_models import LocalChatModel
from byokg.llm.messages import Message, Reply
from byokg.llm.model import LanguageModel
from byokg.llm.providers import HfLocal

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None,
    reason="torch or transformers is not installed: pip install 'byokg[local]'",
)

WORDS = ["who", "directed", "heat", "michael", "mann", "?", "user", ":"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with 2 layers, 64 positions and a vocabulary of a few words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    place = tmp_path_factory.mktemp("tiny")
    vocabulary = {word: number for number, word in enumerate(["<unk>", "<end>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>")
    fast.save_pretrained(place)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1
    )
    GPT2LMHeadModel(config).save_pretrained(place)
    return place


def ask(model: LanguageModel, text: str = "who directed heat ?", sample: int = 0) -> Reply:
    """Return what the model says, whether or not it came to an end."""
    try:
        return model.reply([Message("user", text)], stage="s", question_id="q", sample=sample)
    except LlmUnusable as error:
        return error.reply


def test_the_likeliest_tokens_are_always_the_same(folder: Path) -> None:
    model = HfLocal(str(folder), max_tokens=8, device="cpu").language_model()
    first, second = ask(model), ask(model)
    assert first.text == second.text
    assert first.usage.input_tokens == 4
    assert 1 <= first.usage.output_tokens <= 8
    assert first.stop == ("length" if first.usage.output_tokens == 8 else "end")


def test_sampling_is_seeded_by_prompt_and_sample(folder: Path) -> None:
    model = HfLocal(str(folder), temperature=1.5, max_tokens=16, device="cpu").language_model()
    texts = [ask(model, sample=sample).text for sample in range(4)]
    assert texts == [ask(model, sample=sample).text for sample in range(4)]
    assert len(set(texts)) > 1


def test_a_chat_template_writes_the_prompt(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    chat_model = LocalChatModel(model=str(folder), max_tokens=2, device="cpu")
    _, tokenizer = chat_model.load()
    assert isinstance(tokenizer, type(AutoTokenizer.from_pretrained(folder)))
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }} : {{ m.content }} {% endfor %}"
    # "user", ":", and four words.
    assert ask(LanguageModel(chat_model)).usage.input_tokens == 6


def test_a_prompt_that_does_not_fit_is_refused(folder: Path) -> None:
    with pytest.raises(LlmInvalidRequest, match=r"the prompt has 80 tokens.*exceeds the model's 64"):
        ask(HfLocal(str(folder), max_tokens=8, device="cpu").language_model(), "heat " * 80)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be loaded on cpu"):
        ask(HfLocal(str(tmp_path), device="cpu").language_model())
    with pytest.raises(ConfigError, match="unknown to torch"):
        ask(HfLocal(str(tmp_path), device="cpu", dtype="float17").language_model())


TURNS = "{% for message in messages %}{{ message.role }} : {{ message.content }} {% endfor %}"


def test_a_template_of_the_settings_writes_the_prompt(folder: Path) -> None:
    model = HfLocal(str(folder), max_tokens=2, device="cpu", template=TURNS).language_model()
    assert ask(model).usage.input_tokens == 6  # "user", ":", and four words
    broken = HfLocal(str(folder), device="cpu", template="{{ messages.system.content }}{{ raise('no') }}")
    with pytest.raises(ConfigError, match=r"template of llm\.model=.* fails: .*set llm\.template"):
        ask(broken.language_model())


def test_a_stop_text_ends_a_reply_and_is_no_part_of_it(folder: Path) -> None:
    whole = ask(HfLocal(str(folder), max_tokens=8, device="cpu").language_model())
    words = whole.text.split()
    stopped = ask(HfLocal(str(folder), max_tokens=8, device="cpu", stop=(words[1],)).language_model())
    before = whole.text[: whole.text.index(words[1])]
    assert stopped.text == before and stopped.usage.output_tokens < whole.usage.output_tokens
    assert stopped.stop == "end"


def test_log_probabilities_are_those_of_the_model(folder: Path) -> None:
    import torch

    model = HfLocal(str(folder), max_tokens=4, device="cpu", logprobs=2).language_model()
    reply = ask(model)
    assert model.chat_model is not None
    weights, tokenizer = model.chat_model.load()  # type: ignore[attr-defined]
    ids = tokenizer("who directed heat ?", return_tensors="pt")["input_ids"]
    for token in reply.tokens:
        with torch.inference_mode():
            expected = weights(ids).logits[0, -1].log_softmax(-1)
        best = int(expected.argmax())
        assert token.text == tokenizer.decode([best])
        assert token.logprob == pytest.approx(float(expected[best]), abs=1e-5)
        assert list(token.alternatives.values()) == pytest.approx(expected.topk(2).values.tolist(), abs=1e-5)
        ids = torch.cat([ids, ids.new_tensor([[best]])], 1)
    assert "".join(token.text for token in reply.tokens) == reply.text.replace(" ", "")
    assert ask(HfLocal(str(folder), max_tokens=4, device="cpu").language_model()).tokens == ()


def test_settings_that_decide_a_reply_are_part_of_its_key(folder: Path) -> None:
    plain, stopped, scored = (
        HfLocal("m", **given).parameters() for given in ({}, {"stop": ["x"], "template": "y"}, {"logprobs": 0})
    )
    assert plain == {"temperature": 0.0, "max_tokens": 1024}
    assert stopped == {**plain, "stop": ["x"], "template": "y"} and scored == {**plain, "logprobs": 0}
    with pytest.raises(ConfigError, match=r"llm\.logprobs=-1 is below 0"):
        HfLocal("m", logprobs=-1).parameters()
