"""Detection and translation of questions in other languages than English."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from importlib.resources import files

import pytest

from byokg.errors import ConfigError
from byokg.prompts import VARIABLES, PromptLibrary
from byokg.text.languages import LANGUAGES, QuestionTranslator, detect_language, foreign_names, language_words
from byokg.text.names import normalize_name

FOREIGN = [code for code in LANGUAGES if code != "en"]

NAMES = {
    *("Germany", "France", "Spain", "Mexico", "Austria", "Africa", "Cologne", "Danube", "Oder", "Yangtze", "Hungary"),
    *("Yellow River", "The Matrix", "Rio de Janeiro", "Nobel Prize in Literature", "Nile", "Amazon", "Black Sea"),
    *("北京", "长城"),
}


@pytest.fixture
def translate() -> QuestionTranslator:
    return QuestionTranslator(_among(NAMES))


def _among(names: set[str]) -> Callable[[str], bool]:
    folded = {normalize_name(name) for name in names}
    return lambda text: normalize_name(text) in folded


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("Welche Flüsse fließen durch Deutschland?", "de"),
        ("welche fluesse fliessen durch deutschland", "de"),
        ("In welchem Jahr starb Goethe?", "de"),
        ("Wer spielt in What Women Want?", "de"),
        ("Was ist die Hauptstadt von Frankreich?", "de"),
        ("¿Cuál es el río más largo de África?", "es"),
        ("cual es la capital de Francia", "es"),
        ("¿Quién dirigió The Matrix?", "es"),
        ("法国的首都是什么？", "zh"),
        ("谁导演了The Matrix Reloaded?", "zh"),
        ("Who directed La vita è bella and Los abrazos rotos?", "en"),
        ("was die hard released in 1988", "en"),
        ("Which river flows through 北京?", "en"),
        ("Wien", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_a_question_is_detected(question: str, code: str) -> None:
    assert detect_language(question) == code


def test_english_questions_are_english() -> None:
    lines = files("byokg").joinpath("data/atlas/questions.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    assert {detect_language(question) for question in questions} == {"en"}


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("Wie heißt die Hauptstadt von Frankreich?", "What is the capital of France?"),
        ("In welchem Land liegt Köln?", "In which country is Cologne?"),
        ("In welchem Land liegt Koeln?", "In which country is Cologne?"),
        ("Wie viele Nachbarländer hat Österreich?", "How many neighbouring countries has Austria?"),
        ("Welche deutschen Flüsse münden in die Donau?", "Which German rivers flows into the Danube?"),
        ("Was ist länger, die Oder oder die Donau?", "What is longer, the Oder or the Danube?"),
        ("Wer gewann nach 1990 den Literaturnobelpreis?", "Who won after 1990 the Nobel Prize in Literature?"),
        (
            "Nenne die Flüsse Ungarns, die nicht durch Österreich fließen.",
            "Name the rivers of Hungary, that not flow through Austria.",
        ),
        ("Nenne die Nachbarn der Schweiz.", "Name the neighbours of the Switzerland."),
        (
            "Welche Länder liegen am Fluss, in den die Oder mündet?",
            "Which countries are at river, that the Oder flows into?",
        ),
        ("Wer trat 1995 der EU bei?", "Who joined 1995 the EU?"),
        ("¿Cuál es el río más largo de África?", "What is the longest river of Africa?"),
        ("¿Cuál es más largo, el Nilo o el Amazonas?", "What is longer, the Nile or the Amazon?"),
        ("¿Cuántos países limitan con México?", "How many countries border Mexico?"),
        ("¿Qué presidentes españoles nacieron en Rio de Janeiro?", "What Spanish president born in Rio de Janeiro?"),
        ("法国的首都是什么？", "What is France's capital?"),
        ("非洲最长的河流是哪条？", "What is Africa's longest river?"),
        ("长江和黄河哪条更长？", "Which is longer, Yangtze or Yellow River?"),
        ("墨西哥和法国哪个国家人口更多？", "Which country has more population, Mexico or France?"),
        ("流经德国的河流有哪些？", "What are river that flows through Germany?"),
        ("2010年之后谁获得了诺贝尔文学奖？", "Who after 2010 won Nobel Prize in Literature?"),
        ("谁导演了The Matrix?", "Who directed The Matrix?"),
        ("谁导演了《The Matrix》?", 'Who directed "The Matrix"?'),
    ],
)
def test_a_question_is_translated_word_by_word(translate: QuestionTranslator, question: str, english: str) -> None:
    assert translate(question) == english


def test_names_of_a_graph_in_chinese_are_found_without_spaces(translate: QuestionTranslator) -> None:
    assert translate("长城在北京吗？") == "长城 in 北京?"


def test_an_english_question_stays_as_it_is(translate: QuestionTranslator) -> None:
    question = "Which  countries border Alemania—and Deutschland?"
    assert translate(question) == question


def test_a_foreign_name_stays_if_the_graph_has_no_english_one() -> None:
    assert QuestionTranslator(_among({"Deutschland"}))("Wo liegt Deutschland?") == "Where is Deutschland?"


def test_a_language_that_is_chosen_is_not_detected(translate: QuestionTranslator) -> None:
    chosen = QuestionTranslator(_among(NAMES), "de")
    assert (chosen("Hauptstadt Frankreich"), translate("Hauptstadt Frankreich")) == (
        "Capital France",
        "Hauptstadt Frankreich",
    )
    assert QuestionTranslator(_among(NAMES), "en")("Wo liegt Köln?") == "Wo liegt Köln?"


def test_a_word_in_no_list_becomes_the_nearest_label() -> None:
    translate = QuestionTranslator(_among(NAMES), nearest={"Pegelstand": "water level"}.get)  # type: ignore[arg-type]
    assert translate("Welchen Pegelstand hat die Donau?") == "Which water level has the Danube?"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ConfigError, match="language=fr is not known; use one of auto, en, de, es, zh"):
        QuestionTranslator(_among(NAMES), "fr")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["Deutschland", "Alemania", "德国", "deutschland"])
def test_names_have_english_ones(text: str) -> None:
    assert "Germany" in foreign_names(text)


def test_inflected_names_and_spellings_without_umlauts_have_english_ones() -> None:
    assert foreign_names("Koeln") == foreign_names("Köln") == ("Cologne",)
    assert "Spanish" in foreign_names("españoles") and "German" in foreign_names("deutschen")
    assert foreign_names("Germany") == foreign_names("") == ()


@pytest.mark.parametrize("code", FOREIGN)
def test_each_file_names_its_source_and_licence(code: str) -> None:
    text = files("byokg").joinpath(f"data/languages/{code}.toml").read_text("utf-8")
    comment = text.partition("\nname =")[0]
    assert "Source: " in comment and "Licence: " in comment
    assert tomllib.loads(text)["name"] == LANGUAGES[code]
    assert language_words(code).longest > 2


def test_files_of_english_words_name_their_source_and_licence() -> None:
    tables = [file for file in files("byokg").joinpath("data/operators").iterdir() if file.name.endswith(".toml")]
    assert len(tables) == 8
    assert all("Source: " in file.read_text("utf-8") and "Licence: " in file.read_text("utf-8") for file in tables)


@pytest.mark.parametrize("name", sorted(name for name, variables in VARIABLES.items() if "question" in variables))
def test_prompts_keep_the_language_of_a_question_and_ask_for_the_names_of_the_graph(name: str) -> None:
    prompt, rest = PromptLibrary()[name], {variable: "x" for variable in VARIABLES[name] if variable != "question"}
    german, english = (prompt.fill(question=text, **rest) for text in ("Wo liegt Köln?", "Where is Cologne?"))
    assert german.system == english.system
    instruction = german.user.replace("Wo liegt Köln?", "Where is Cologne?").removeprefix(english.user)
    assert "Wo liegt Köln?" in german.user and "question is in German" in instruction
    assert "as they are spelled in the graph" in instruction and "Think in any language" in instruction
    assert "Wo liegt Köln?" not in PromptLibrary(language="en")["direct"].fill(question="Wo liegt Köln?").user[15:]
