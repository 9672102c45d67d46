from __future__ import annotations

import pytest

from byokg.graph.columnar.schema import Labels


def test_labels_are_a_tuple_that_knows_its_places() -> None:
    labels = Labels(["b", "a", "^a"])
    assert labels == ("b", "a", "^a")
    assert [labels.index(label) for label in labels] == [0, 1, 2]
    assert "a" in labels and "c" not in labels
    assert labels[1:] == ("a", "^a")


@pytest.mark.parametrize("bounds", [(2,), (0, 1), (-1,)])
def test_a_label_outside_the_bounds_is_not_found(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="no label 'a'"):
        Labels(["b", "a", "^a"]).index("a", *bounds)


def test_an_unknown_label_is_not_found() -> None:
    with pytest.raises(ValueError, match="no label 'c'"):
        Labels([]).index("c")
