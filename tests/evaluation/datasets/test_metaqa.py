"""Tests of `byokg.evaluation.datasets.benchmarks`."""

from __future__ import annotations

import gzip
import hashlib
import lzma
from pathlib import Path
from typing import Literal

import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA

LINES = "what does [Grégoire Colin] appear in\tBefore the Rain\n[Jaws] was directed by whom\tA|B\n"


def write(root: Path, name: str, content: str | bytes = LINES) -> Path:
    """Write one file of the data set."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def packed(text: str, suffix: str) -> bytes:
    """Return the text as a file with this suffix holds it."""
    content = text.encode()
    return {"": content, ".xz": lzma.compress(content), ".gz": gzip.compress(content)}[suffix]


def test_brackets_mark_the_topic_and_are_dropped_from_the_question(tmp_path: Path) -> None:
    write(tmp_path, "2-hop/qa_test.txt")
    first, second = MetaQA(tmp_path, hops=2).examples()
    assert first == Example(
        id="metaqa-2-test-00001",
        question="what does Grégoire Colin appear in",
        answers=("Before the Rain",),
        answer_ids=("Before the Rain",),  # type: ignore[arg-type]
        topic_entities=("Grégoire Colin",),
        topic_ids=("Grégoire Colin",),  # type: ignore[arg-type]
        hops=2,
        split="test",
    )
    assert (second.id, second.question, second.answers) == (
        "metaqa-2-test-00002",
        "Jaws was directed by whom",
        ("A", "B"),
    )


@pytest.mark.parametrize("folder", ["1-hop", "1-hop/vanilla"])
@pytest.mark.parametrize("suffix", ["", ".xz", ".gz"])
def test_every_layout_and_compression_reads_alike(tmp_path: Path, folder: str, suffix: str) -> None:
    write(tmp_path, f"{folder}/qa_dev.txt{suffix}", packed(LINES, suffix))
    dataset = MetaQA(tmp_path, hops=1, split="dev")
    assert [example.id for example in dataset.examples()] == ["metaqa-1-dev-00001", "metaqa-1-dev-00002"]
    assert dataset.checksum == hashlib.sha256(LINES.encode()).hexdigest()
    assert dataset.name == "metaqa 1-hop dev"


def test_ids_count_lines_of_the_file_so_a_question_can_be_found_in_it(tmp_path: Path) -> None:
    write(tmp_path, "1-hop/qa_test.txt", "\ufeff\r\n[a] b\tc\r\n")
    (example,) = MetaQA(tmp_path, hops=1).examples()
    assert (example.id, example.question, example.answers) == ("metaqa-1-test-00002", "a b", ("c",))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("who is Ann\tBob", "does not have exactly one [topic]"),
        ("who are [Ann] and [Eve]\tBob", "does not have exactly one [topic]"),
        ("who is []\tBob", "does not have exactly one [topic]"),
        ("who is ]Ann[\tBob", "does not have exactly one [topic]"),
        ("who is [Ann]", "has 0 tabs"),
        ("who is [Ann]\tBob\tEve", "has 2 tabs"),
        ("who is [Ann]\t", "has an empty answer"),
        ("who is [Ann]\tBob||Eve", "has an empty answer"),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path, "1-hop/qa_test.txt", f"[a] b\tc\n{line}\n")
    with pytest.raises(DatasetError) as raised:
        MetaQA(tmp_path, hops=1).examples()
    assert str(raised.value).startswith(f"{path}:2: ")
    assert reason in str(raised.value)


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path, "1-hop/qa_test.txt", "[a] b\tc\n[é] b\tc\n".encode("latin-1"))
    with pytest.raises(DatasetError) as raised:
        MetaQA(tmp_path, hops=1).examples()
    assert str(raised.value).startswith(f"{path}:2: is not UTF-8")


@pytest.mark.parametrize("suffix", [".xz", ".gz"])
def test_a_broken_compressed_file_is_named(tmp_path: Path, suffix: str) -> None:
    for content in (packed(LINES, suffix)[:-10], b"not compressed"):
        path = write(tmp_path, f"1-hop/qa_test.txt{suffix}", content)
        with pytest.raises(DatasetError, match=f"{path.name}: cannot be read"):
            MetaQA(tmp_path, hops=1).examples()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"3-hop: holds no qa_train\.txt"):
        MetaQA(tmp_path, hops=3, split="train").examples()
    with pytest.raises(DatasetError, match=r"holds no kb\.txt"):
        MetaQA(tmp_path, hops=3).graph_source()


def test_only_existing_parts_can_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.hops=4"):
        MetaQA(tmp_path, hops=4)
    with pytest.raises(ConfigError, match=r"dataset\.split='valid'"):
        MetaQA(tmp_path, hops=1, split="valid")


@pytest.mark.parametrize(
    ("hops", "split", "count", "checksum", "first", "last"),
    [
        (
            1,
            "dev",
            9992,
            "3c68fa73a14d9b9616e49f08e2d8b65e024af417708306874fe4d398634620d3",
            ("what movies did Temuera Morrison act in", ("Once Were Warriors", "Tracker", "River Queen")),
            ("what movies was Ryan Rowe the writer of", ("Charlie's Angels",)),
        ),
        (
            1,
            "test",
            9947,
            "c57e9c2c4c05e5eec4503460042c09bfa3e80ea1a5ecaf361c92dd81d6c7bece",
            ("what does Grégoire Colin appear in", ("Before the Rain",)),
            (
                "what films was Nigel Balchin a writer on",
                ("Separate Lies", "The Man Who Never Was", "23 Paces to Baker Street"),
            ),
        ),
        (
            2,
            "dev",
            14872,
            "a713ae6b4a7cdccfdda57ac99092f4114a1f8b0c4ba51b4466a15496a4ff6fbd",
            ("what are the languages spoken in the films directed by Joel Zwick", ("Greek",)),
            ("what languages are the movies directed by Ágúst Guðmundsson in", ("Icelandic",)),
        ),
        (
            2,
            "test",
            14872,
            "b1c4f1ad77f34a27e0e5a13c08b436c6f4c9a49dccd8d43639a569ee5cd906a1",
            (
                "which person directed the movies starred by John Krasinski",
                ("Nancy Meyers", "Sam Mendes", "George Clooney", "Ken Kwapis", "Luke Greenfield"),
            ),
            ("which person wrote the movies starred by Paul McCartney", ("Alun Owen",)),
        ),
        (
            3,
            "dev",
            14274,
            "c638b99f97db93112f7a9ceec47675066cc9efc93b7ecd43e22c54ab531741d9",
            (
                "the films that share directors with the film Black Snake Moan were in which genres",
                ("Drama", "Music"),
            ),
            (
                "what genres do the movies that share screenwriters with The Designated Mourner fall under",
                ("Drama",),
            ),
        ),
        (
            3,
            "test",
            14274,
            "f4c2a801f864e80e809655a20b4b8c9904f4a2885a7f23850b2fabd8d38a6540",
            (
                "the films that share directors with the film Catch Me If You Can were in which languages",
                ("German", "Polish", "Mende", "Japanese"),
            ),
            ("when did the movies release whose writers also wrote Parineeta", ("2009",)),
        ),
    ],
)
def test_the_real_files_have_the_published_counts(
    real_data: Path,
    hops: int,
    split: Literal["dev", "test"],
    count: int,
    checksum: str,
    first: tuple[str, tuple[str, ...]],
    last: tuple[str, tuple[str, ...]],
) -> None:
    dataset: Dataset = MetaQA(real_data / "metaqa", hops=hops, split=split)
    examples = dataset.examples()
    assert len(examples) == count
    assert dataset.checksum == checksum
    assert [(example.question, example.answers) for example in (examples[0], examples[-1])] == [first, last]
    assert examples[-1].id == f"metaqa-{hops}-{split}-{count:05d}"
    assert len({example.id for example in examples}) == count
    assert dataset.graph_source().name.startswith("kb.txt")
