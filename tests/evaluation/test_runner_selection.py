"""Tests of `byokg.evaluation.runner`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byokg.errors import ConfigError
from byokg.evaluation.datasets.base import sample_examples, select_examples
from byokg.evaluation.runner import Shard
from tests.evaluation.scripted import examples

HUNDRED = examples(100)


def ids(chosen: object) -> list[str]:
    """Return the ids of examples."""
    return [example.id for example in chosen]  # type: ignore[attr-defined]


def test_questions_are_picked_by_id_and_type_in_the_order_of_the_set() -> None:
    assert ids(select_examples(HUNDRED, ["q7", "q2"], [])) == ["q2", "q7"]
    assert ids(select_examples(HUNDRED[:5], [], ["odd"])) == ["q1", "q3"]
    assert ids(select_examples(HUNDRED[:5], ["q3", "q4"], ["odd"])) == ["q3"]
    assert select_examples(HUNDRED, [], []) == HUNDRED


def test_unknown_ids_and_types_are_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match="no question 'q100' among 100"):
        select_examples(HUNDRED, ["q1", "q100"], [])
    with pytest.raises(ConfigError, match=r"'prime'; there are even \(50\), odd \(50\)"):
        select_examples(HUNDRED, [], ["prime"])


def test_a_larger_sample_contains_the_smaller_and_the_seed_chooses() -> None:
    small, large = ids(sample_examples(HUNDRED, sample=10)), ids(sample_examples(HUNDRED, sample=30))
    assert len(small) == 10 and set(small) < set(large)
    assert small == sorted(small, key=lambda id: int(id[1:]))
    assert small != ids(sample_examples(HUNDRED, sample=10, seed=1))
    assert small == ids(sample_examples(HUNDRED[::-1], sample=10))[::-1]


def test_a_draw_is_the_same_on_every_machine() -> None:
    assert ids(sample_examples(HUNDRED, sample=4)) == SAMPLE_OF_FOUR


SAMPLE_OF_FOUR = ["q22", "q71", "q91", "q93"]


def test_ids_with_lone_surrogates_are_drawn_like_others() -> None:
    odd = [*HUNDRED, replace(HUNDRED[0], id="\ud800"), replace(HUNDRED[0], id="\udfff")]
    assert set(ids(sample_examples(odd, sample=30))) - {"\ud800"} <= set(ids(sample_examples(HUNDRED, sample=30)))


def test_each_type_gives_as_many_as_it_has() -> None:
    rare = [*HUNDRED, replace(HUNDRED[0], id="r", type="rare")]
    chosen = sample_examples(rare, per_type=20)
    counts = {type: sum(example.type == type for example in chosen) for type in ("even", "odd", "rare")}
    assert counts == {"even": 20, "odd": 20, "rare": 1}


def test_limit_takes_the_first_of_what_was_drawn() -> None:
    assert sample_examples(HUNDRED, sample=10, limit=3) == sample_examples(HUNDRED, sample=10)[:3]
    assert sample_examples(HUNDRED, sample=1000) == HUNDRED


def test_shards_share_the_questions_out_without_remainder() -> None:
    parts = [ids(Shard.parse(f"{number}/3").of(HUNDRED[:8])) for number in (1, 2, 3)]
    assert parts == [["q0", "q3", "q6"], ["q1", "q4", "q7"], ["q2", "q5"]]
    assert str(Shard(3, 16)) == "3/16"


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/3/5", "", "-1/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no part of a run; the third of 16 is written shard=3/16"):
        Shard.parse(text)


def test_more_shards_than_questions_are_refused() -> None:
    with pytest.raises(ConfigError, match="shard=1/5 divides 3 questions"):
        Shard(1, 5).of(HUNDRED[:3])
