"""Numbers are given out once and for all."""

from __future__ import annotations

import threading

import pytest

from byokg.graph.columnar.ids import Numbering


def test_keys_are_numbered_in_the_order_they_come_and_only_once() -> None:
    numbering: Numbering[str] = Numbering()
    assert numbering.add(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert numbering.add(["c", "a"]).tolist() == [2, 1]
    assert (len(numbering), list(numbering.keys()), list(numbering.keys(1))) == (3, ["b", "a", "c"], ["a", "c"])
    assert "a" in numbering and "z" not in numbering
    assert numbering.add([]).tolist() == []


def test_numbers_lead_back_to_their_keys() -> None:
    numbering: Numbering[str] = Numbering()
    numbering.add(["a", "b"])
    assert numbering.key(1) == "b"
    for wrong in (2, -1):
        with pytest.raises(IndexError):
            numbering.key(wrong)


def test_threads_agree_on_numbers() -> None:
    numbering: Numbering[int] = Numbering()
    threads = [threading.Thread(target=lambda start=start: numbering.add(range(start, 2000))) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbering) == 2000
    assert all(numbering.add([numbering.key(number)]).tolist() == [number] for number in range(2000))
