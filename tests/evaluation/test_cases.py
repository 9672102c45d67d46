"""Tests of `byokg.evaluation.cases`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.cases import join, read_external
from byokg.evaluation.compare import score_cases
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.records import Prediction
from byokg.types import EntityId

ASKED = (Example("a", "Where?", ("Oslo",), type="x"), Example("b", "Who?", ("Ann",), aliases=(("Annie",),)))


def test_cases_are_in_the_order_asked_and_a_missing_prediction_is_a_failed_one() -> None:
    first, second = join(ASKED, [Prediction("b", "ok", ("Ann",), ("n1",), drafts=("Bob",))])
    assert (first.id, first.status, first.answers, first.type) == ("a", "failed", (), "x")
    assert (second.answers, second.ranked_ids, second.drafts, second.aliases) == (
        ("Ann",),
        ("n1",),
        ("Bob",),
        (("Annie",),),
    )


def test_a_prediction_for_a_question_that_was_not_asked_is_refused() -> None:
    with pytest.raises(RunError, match="prediction for 'z'"):
        join(ASKED, [Prediction("z", "ok")])


def written(path: Path, *records: object) -> Path:
    """Write records as JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a test writes its file."""
    return tmp_path / "predictions.jsonl"


def test_a_list_is_answers_and_a_text_is_lines(file: Path) -> None:
    written(
        file,
        {"id": "a", "prediction": ["Oslo", "Rome"], "ground_truth": ["Oslo"]},
        {"id": "b", "prediction": "I think:\nans: Rome", "ground_truth": ["Rome"], "question": "Where?", "type": "x"},
    )
    first, second = read_external(file)
    assert (first.answers, first.written, first.gold) == (("Oslo", "Rome"), False, ("Oslo",))
    assert (second.answers, second.written) == (("I think:", "ans: Rome"), True)
    assert (second.question, second.type) == ("Where?", "x")


def test_a_null_is_no_prediction_and_an_empty_text_is_one_without_answers(file: Path) -> None:
    written(
        file, {"id": "a", "prediction": None, "ground_truth": ["Oslo"]}, {"id": 7, "prediction": "", "answer": "Rome"}
    )
    first, second = read_external(file)
    assert (first.status, second.status) == ("failed", "ok")
    assert (second.id, second.answers, second.gold) == ("7", (), ("Rome",))


def test_a_json_list_is_read_and_questions_stand_for_ids(file: Path) -> None:
    file.write_text(json.dumps([{"question": "Where?", "results": "{Oslo}", "gold": ["Oslo"]}]), "utf-8")
    [case] = read_external(file)
    assert (case.id, case.question, case.answers, case.reply) == ("where", "Where?", ("Oslo",), "{Oslo}")


@pytest.mark.parametrize(
    ("results", "answers"),
    [
        ('{"A": {"Sufficient": "Yes", "Answer": "Oslo"}, "R": "It is {Oslo}."}', ("Oslo",)),
        ('{"A": {"Known": "Yes", "Answer": ["Oslo", "Bergen", ""]}}', ("Oslo", "Bergen")),
        ('{"A": {"Known": "No", "Answer": null}}', ()),
        ('{"A": {"Answer": ""}}', ()),
        ('{"Answer": 1994}', ("1994",)),
        ("{Yes}. By the triplets given, the answer is {Oslo}.", ("Oslo",)),
        ("The answer to the question is { Oslo }, and {Bergen} is another town.", ("Oslo",)),
        ("I do not know.", ("I do not know.",)),
        ('{"A": {"Answer": ["Oslo", "Ber', ('{"A": {"Answer": ["Oslo", "Ber',)),
    ],
)
def test_results_of_the_tog_family_are_read_as_it_writes_them(
    file: Path, results: str, answers: tuple[str, ...]
) -> None:
    [case] = read_external(written(file, {"RawQuestion": "Where?", "results": results, "gold": ["Oslo"]}))
    assert case.answers == answers
    assert case.written


def test_predictions_without_ids_are_for_the_questions_of_the_same_text(file: Path) -> None:
    said = [{"RawQuestion": f"  Where is  town {number}", "results": "{Oslo}"} for number in range(30)]
    examples = [Example(f"q{number}", f"where is town {number} ?", ("Oslo",)) for number in range(29)]
    notes: list[str] = []
    cases = read_external(written(file, *said, said[3]), examples, note=notes.append)
    assert [case.id for case in cases] == [f"q{number}" for number in range(29)]
    assert {case.answers for case in cases} == {("Oslo",)}
    assert notes == [
        "predictions.jsonl: 1 predictions stand there twice, and count once: 'where is town 3'",
        "predictions.jsonl: 1 questions are not in the data set, and passed over: 'where is town 29'",
    ]
    with pytest.raises(RunError, match=r"is not in the data set, nor are 9 more"):
        read_external(file, examples[:20])


def test_an_empty_line_is_no_answer(file: Path) -> None:
    [case] = read_external(written(file, {"id": "a", "prediction": "Paris\n", "ground_truth": ["Paris"]}))
    [strict] = score_cases([case], [PROFILES["strict"]], resamples=2)
    assert (case.answers, case.lines, strict.estimates["em"].value) == (("Paris",), ("Paris", ""), 1.0)


def test_ids_of_answers_are_read_beside_them(file: Path) -> None:
    written(file, {"id": "a", "prediction": ["Oslo"], "answer_ids": ["o"], "ground_truth": ["Oslo"], "gold_ids": ["o"]})
    [case] = read_external(file)
    assert (case.answer_ids, case.gold_ids) == (("o",), ("o",))


def test_the_data_sets_gold_answers_go_first_and_questions_left_out_count_as_failed(file: Path) -> None:
    written(file, {"id": "b", "prediction": ["Rome"], "ground_truth": ["Lima"]})
    examples = [Example("a", "Where?", ("Oslo",)), Example("b", "And?", ("Rome",), (EntityId("r"),))]
    first, second = read_external(file, examples)
    assert (first.id, first.status) == ("a", "failed")
    assert (second.gold, second.gold_ids, second.question) == (("Rome",), ("r",), "And?")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "holds no prediction"),
        (["a"], ":1: is 'a'; a prediction is an object"),
        ([{"prediction": ["x"], "gold": ["x"]}], "has no id; it is read from id, qid"),
        ([{"id": "a", "gold": ["x"]}], "has no prediction; it is read from prediction"),
        ([{"id": "a", "prediction": ["x"]}], "has no gold answers in ground_truth.*name the data set"),
        ([{"id": "a", "prediction": [["x"]], "gold": ["x"]}], "field 'prediction' should list texts"),
        ([{"id": "a", "prediction": ["x"], "answer_ids": ["1", "2"], "gold": ["x"]}], "has 2 ids for 1 answers"),
        (
            [{"id": "a", "prediction": [said], "gold": ["x"]} for said in "xy"],
            "id 'a' is already used in .*:1, for another prediction",
        ),
    ],
)
def test_a_record_of_another_shape_is_refused_with_its_place(file: Path, records: list[object], message: str) -> None:
    with pytest.raises(RunError, match=message):
        read_external(written(file, *records))


def test_text_that_is_no_json_is_refused(file: Path) -> None:
    file.write_text("id,prediction\n", "utf-8")
    with pytest.raises(RunError, match="neither JSON lines nor a JSON list"):
        read_external(file)


def test_predictions_for_questions_that_the_data_set_leaves_out_are_passed_over(file: Path) -> None:
    written(file, {"id": "a", "prediction": ["Oslo"]}, {"id": "z", "prediction": ["x"]})
    examples = [Example("a", "Where?", ("Oslo",))]
    assert [case.id for case in read_external(file, examples, left_out=1)] == ["a"]
    with pytest.raises(RunError, match="question 'z' is not in the data set"):
        read_external(file, examples)


def test_a_prediction_for_a_question_that_was_not_asked_is_refused_in_a_file_too(file: Path) -> None:
    written(file, {"id": "z", "prediction": ["x"]})
    with pytest.raises(RunError, match=r":1: question 'z' is not in the data set, nor are 0 more"):
        read_external(file, [Example("a", "Where?", ("Oslo",))])


def test_lone_surrogates_are_read_and_scored_under_every_profile(file: Path) -> None:
    gold = Example("q\ud800", "Where is \ud800?", ("\ud800 town", "b"), (EntityId("m\ud800"),), rows=(("\ud800",),))
    for said in (["\ud800 town"], "ans: \ud800 town\n{\ud800}"):
        written(file, {"id": "q\ud800", "prediction": said})
        cases = read_external(file, [gold])
        assert cases[0].answers[0].endswith("\ud800 town")
        [strict, *others] = score_cases(cases, list(PROFILES.values()), resamples=2)
        assert strict.estimates["hit"].value == float(isinstance(said, list))
        assert all(one.n == 1 for one in others if one.profile.name not in ("webqsp-official", "stark"))
