"""Tests of `byokg.evaluation.datasets.labels`: what labels of relations say."""

from __future__ import annotations

import pytest

from byokg.evaluation.datasets.labels import many, plural, read_label


@pytest.mark.parametrize(
    ("label", "noun"),
    [
        ("capital", "capital"),
        ("official_language", "official language"),
        ("placeOfBirth", "place of birth"),
        ("has_genre", "genre"),
        ("hasPart", "part"),
        ("HAS_SYMPTOM", "symptom"),
        ("has_a_pet", "pet"),
        ("in_language", "language"),
        ("starred_actors", "starred actors"),
        ("works_cited", "works cited"),
        ("point_in_time", "point in time"),
        ("breed", "breed"),
        ("date founded", "date founded"),
        ("cities_in", "cities"),
        ("see_also", "see-also reference"),
        ("http://example.org/vocabulary#seeAlso", "see-also reference"),
        ("medicine.disease.causes", "causes"),
        ("law.judicial_tenure.from_date", "from date"),
        ("time.time_zone.locations_in_this_time_zone", "locations in this time zone"),
    ],
)
def test_a_noun_is_what_the_tail_is_of_the_head(label: str, noun: str) -> None:
    said = read_label(label)
    assert (said.noun, said.verb) == (noun, None)


@pytest.mark.parametrize(
    ("label", "one", "several", "asked"),
    [
        ("is_associated_with", "is associated with", "are associated with", "is X associated with"),
        ("is_a_risk_factor_of", "is a risk factor of", "are risk factors of", "is X a risk factor of"),
        ("is_a", "is a kind of", "are kinds of", "is X a kind of"),
        ("isPartOf", "is part of", "are part of", "is X part of"),
        ("part_of", "is part of", "are part of", "is X part of"),
        ("tributary_of", "is a tributary of", "are tributaries of", "is X a tributary of"),
        ("participant_in", "is a participant in", "are participants in", "is X a participant in"),
        ("story_by", "has story by", "have story by", "does X have story by"),
        ("led_to", "led to", "led to", "did X lead to"),
        ("guilty_of", "is guilty of", "are guilty of", "is X guilty of"),
        ("in_front_of", "is in front of", "are in front of", "is X in front of"),
        ("same_as", "is the same as", "are the same as", "is X the same as"),
        ("is_not_related_to", "is not related to", "are not related to", "is X not related to"),
        ("used_to_treat", "is used to treat", "are used to treat", "is X used to treat"),
        ("born_in", "was born in", "were born in", "was X born in"),
        ("was_founded_by", "was founded by", "were founded by", "was X founded by"),
        ("may_cause", "may cause", "may cause", "may X cause"),
        ("may_be_allelic_with", "may be allelic with", "may be allelic with", "may X be allelic with"),
        ("cannot_treat", "cannot treat", "cannot treat", "can X not treat"),
        ("http://example.org/mayTreat", "may treat", "may treat", "may X treat"),
        ("interacts_with", "interacts with", "interact with", "does X interact with"),
        ("interact_with", "interacts with", "interact with", "does X interact with"),
        ("does_not_interact_with", "does not interact with", "do not interact with", "does X not interact with"),
        ("teaches", "teaches", "teach", "does X teach"),
        ("DISCUSSES", "discusses", "discuss", "does X discuss"),
        ("SUPPLIES", "supplies", "supply", "does X supply"),
        ("negatively_regulates", "negatively regulates", "negatively regulate", "does X negatively regulate"),
        ("also_known_as", "is also known as", "are also known as", "is X also known as"),
        ("has_been_treated_with", "has been treated with", "have been treated with", "has X been treated with"),
        ("HAS", "has", "have", "does X have"),
        ("has_effect_on", "has effect on", "have effect on", "does X have effect on"),
        ("PURCHASED", "purchased", "purchased", "has X purchased"),
        ("wrote", "wrote", "wrote", "did X write"),
        ("ACTED_IN", "acted in", "acted in", "did X act in"),
        ("died_in", "died in", "died in", "did X die in"),
    ],
)
def test_a_verb_is_what_the_head_is_or_does_to_the_tail(label: str, one: str, several: str, asked: str) -> None:
    said = read_label(label)
    assert said.verb is not None and not said.noun
    assert (said.verb.one, said.verb.several) == (one, several)
    assert f"{said.verb.auxiliaries[0]} X {said.verb.rest[0]}" == asked


@pytest.mark.parametrize(
    ("label", "one", "tail", "named"),
    [
        ("belongs_to_the_category_of", "belongs to", "category", "the category of"),
        ("belongs_to_drug_super-family", "belongs to", "drug super family", "the drug super family"),
        ("locatedInCountry", "is located in", "country", "the country"),
        ("born_in_city", "was born in", "city", "the city"),
        ("treats_disease", "treats", "disease", "the disease"),
        ("may_treat_disease", "may treat", "disease", "the disease"),
        ("position held", "held", "position", "the position"),
        ("award received", "received", "award", "the award"),
        ("member of sports team", "is a member of", "sports team", "the sports team"),
        ("won_award", "won", "award", "the award"),
        ("award.award_winner.awards_won", "won", "award", "the award"),
        ("sports.competitor.events_competed_in", "competed in", "event", "the event"),
        ("language.human_language.countries_spoken_in", "is spoken in", "country", "the country"),
    ],
)
def test_a_verb_may_say_what_its_tails_are(label: str, one: str, tail: str, named: str) -> None:
    said = read_label(label)
    assert said.verb is not None and (said.verb.one, said.range, said.named) == (one, tail, named)


@pytest.mark.parametrize("label", ["is_a_category", "isCapital", "is_similar", "may_be", "may"])
def test_a_label_that_does_not_say_what_is_what_of_what_cannot_be_said(label: str) -> None:
    assert not read_label(label).sayable


def test_capitals_write_verbs_unless_the_tails_bear_the_name() -> None:
    assert read_label("orders").noun == "orders"
    assert read_label("ORDERS", "order", "product").verb is not None
    assert read_label("ORDERS", "customer", "order").noun == "orders"


def test_a_label_of_three_parts_names_its_ends() -> None:
    said = read_label("author___affiliated_with___institution")
    assert said.verb is not None and said.verb.one == "is affiliated with"
    assert (said.domain, said.range) == ("author", "institution")


def test_of_a_lake_that_is_lake_in_a_country_in_is_enough() -> None:
    said = read_label("lake_in", "lake")
    assert said.verb is not None and (said.verb.one, said.verb.behind) == ("is in", "in")


def test_what_a_head_did_is_said_of_a_date_where_tails_are_dates() -> None:
    assert read_label("sports.sports_team.founded", dated=True).noun == "date founded"
    assert read_label("was_born_on", dated=True).noun == "date born"


def test_plurals_end_before_the_first_preposition() -> None:
    assert plural("risk factor of") == "risk factors of" and plural("place of birth") == "places of birth"
    assert many("units in stock") and not many("unit of mass") and not many("distance in meters")
