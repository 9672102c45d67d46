"""Patterns of atlas questions beyond a path: properties, comparisons, differences, unions and more.

Each is a `Pattern` of `build_atlas_questions.py`, given as keyword arguments so that this file does not import it.
Wordings are natural, not written around the word lists of a program.
"""

# ruff: noqa: C408  keyword arguments read as those of `Pattern`, which they become

from __future__ import annotations

from typing import Any

# Neither the first nor the second of an order may be close to what follows it: populations and areas are estimates.
CLOSE = (
    "SELECT 1 FROM (SELECT {what} p, LAG({what}) OVER (ORDER BY {what} DESC) q, "
    "ROW_NUMBER() OVER (ORDER BY {what} DESC) r FROM {table} WHERE {where}) WHERE p IS NULL OR (r IN (2, 3) AND "
    "q-p<0.06*q)"
)


def pair(table: str, what: str, share: float = 0.7) -> str:
    """Return a query for two nodes of which one clearly has less of something, in the order of their ids."""
    return (
        f"SELECT x.id, y.id FROM node x JOIN node y ON x.type=y.type AND x.id<y.id WHERE x.type='{table}' "
        f"AND MIN(x.{what}, y.{what})<{share}*MAX(x.{what}, y.{what}) AND MIN(x.{what}, y.{what})>0 "
        "AND (x.id, y.id) IN (SELECT a, b FROM near)"
    )


def either(what: str, order: str = "DESC") -> str:
    """Return a query for the one of two nodes that has more of something."""
    return f"SELECT id FROM node WHERE id IN ('{{0}}', '{{1}}') ORDER BY {what} {order} LIMIT 1"


# fmt: off
PATTERNS: tuple[dict[str, Any], ...] = (
    # Properties
    dict(
        slug="population-of", kind="properties", hops=1, topics="SELECT id FROM big",
        gold="SELECT population FROM node WHERE id='{0}'", values=True,
        wordings=(
            "What is the population of {0}?",
            "How many people live in {0}?",
            "How many inhabitants does {0} have?",
            "{0} is home to how many people?",
        ),
    ),
    dict(
        slug="area-of", kind="properties", hops=1,
        topics="SELECT id FROM node WHERE type='Country' AND area_km2>1000 AND area_km2=CAST(area_km2 AS INTEGER)",
        gold="SELECT CAST(area_km2 AS INTEGER) FROM node WHERE id='{0}'", values=True,
        wordings=(
            "How large is {0} in square kilometres?",
            "What is the area of {0}?",
            "How many square kilometres does {0} cover?",
            "What is the size of {0} in km²?",
        ),
    ),
    dict(
        slug="length-of", kind="properties", hops=1,
        topics="SELECT id FROM node WHERE type='River' AND length_km IS NOT NULL",
        gold="SELECT length_km FROM node WHERE id='{0}'", values=True,
        wordings=(
            "How long is {0}?",
            "What is the length of {0} in kilometres?",
            "For how many kilometres does {0} run?",
            "How many km long is {0}?",
        ),
    ),
    dict(
        slug="depth-of", kind="properties", hops=1,
        topics="SELECT id FROM node WHERE type='Lake' AND depth_m IS NOT NULL",
        gold="SELECT depth_m FROM node WHERE id='{0}'", values=True,
        wordings=(
            "How deep is {0}?",
            "What depth does {0} reach, in metres?",
            "How many metres deep is {0}?",
            "How far down is the bottom of {0}, that is, what is its depth?",
        ),
    ),
    dict(
        slug="height-of", kind="properties", hops=1,
        topics="SELECT id FROM node WHERE type='Mountain' AND elevation_m IS NOT NULL",
        gold="SELECT elevation_m FROM node WHERE id='{0}'", values=True,
        wordings=(
            "How tall is {0}?",
            "What height does {0} reach?",
            "What is the altitude of the top of {0}?",
            "How high does {0} rise above the sea, in metres?",
        ),
    ),
    dict(
        slug="code-of", kind="properties", hops=1, topics="SELECT id FROM big WHERE id<>'country/kosovo'",
        gold="SELECT iso2 FROM node WHERE id='{0}'", values=True,
        wordings=(
            "What is the ISO code of {0}?",
            "Which ISO 3166 code of two letters does {0} have?",
            "Under what ISO code is {0} listed?",
        ),
    ),
    dict(
        slug="birth-year", kind="properties", hops=1,
        topics="SELECT id FROM node WHERE type='Person' AND year IS NOT NULL",
        gold="SELECT year FROM node WHERE id='{0}'", values=True,
        wordings=(
            "When was {0} born?",
            "In which year was {0} born?",
            "What is {0:'s} year of birth?",
            "In what year did {0} come into the world?",
        ),
    ),
    dict(
        slug="capital-country-population", kind="properties", hops=2, topics="SELECT city FROM plain_capital",
        gold="SELECT population FROM capital JOIN node ON id=country WHERE city='{0}'", values=True,
        wordings=(
            "How many people live in the country whose capital is {0}?",
            "What is the population of the country governed from {0}?",
            "{0} is the capital of a country with how many inhabitants?",
        ),
    ),
    dict(
        slug="main-river-length", kind="properties", hops=2, topics="SELECT river FROM tributary",
        gold="SELECT length_km FROM tributary JOIN node ON id=main WHERE river='{0}'", values=True,
        wordings=(
            "How long is the river that {0} joins?",
            "What is the length of the river of which {0} is a tributary?",
            "{0} is a tributary of a river; how many kilometres long is that?",
        ),
    ),
    # Comparisons
    dict(
        slug="which-larger", kind="comparison", hops=1, topics=pair("Country", "area_km2"), gold=either("area_km2"),
        choice=True,
        wordings=(
            "Which is larger by area, {0} or {1}?",
            "Of {0} and {1}, which country covers more square kilometres?",
            "Which country has the greater area: {0} or {1}?",
            "By area, is {0} or {1} the bigger country?",
        ),
    ),
    dict(
        slug="which-more-people", kind="comparison", hops=1, topics=pair("Country", "population"),
        gold=either("population"), choice=True,
        wordings=(
            "Which country has more people, {0} or {1}?",
            "Where do more people live, in {0} or in {1}?",
            "Which is more populous, {0} or {1}?",
            "Of {0} and {1}, which has the larger population?",
        ),
    ),
    dict(
        slug="which-longer", kind="comparison", hops=1, topics=pair("River", "length_km"), gold=either("length_km"),
        choice=True,
        wordings=(
            "Which river is longer, {0} or {1}?",
            "Of {0} and {1}, which one is the longer?",
            "Is {0} or {1} the longer river?",
        ),
    ),
    dict(
        slug="which-shorter", kind="comparison", hops=1, topics=pair("River", "length_km"),
        gold=either("length_km", "ASC"), choice=True,
        wordings=(
            "Which of the two rivers is shorter, {0} or {1}?",
            "Between {0} and {1}, which is the shorter river?",
            "Which runs for fewer kilometres, {0} or {1}?",
        ),
    ),
    dict(
        slug="which-higher", kind="comparison", hops=1, topics=pair("Mountain", "elevation_m", 0.93),
        gold=either("elevation_m"), choice=True,
        wordings=(
            "Which mountain is higher, {0} or {1}?",
            "Of {0} and {1}, which is the taller?",
            "Which stands taller: {0} or {1}?",
        ),
    ),
    dict(
        slug="who-older", kind="comparison", hops=1,
        topics="SELECT x.id, y.id FROM node x JOIN node y ON x.id<y.id WHERE x.type='Person' AND y.type='Person' "
        "AND ABS(x.year-y.year)>2 AND (x.id, y.id) IN (SELECT a, b FROM near)",
        gold=either("year", "ASC"), choice=True,
        wordings=(
            "Who was born earlier, {0} or {1}?",
            "Who is the older of the two, {0} or {1}?",
            "Which of them is older: {0} or {1}?",
        ),
    ),
    dict(
        slug="more-people-than", kind="comparison", hops=1, topics="SELECT id FROM settled",
        gold="SELECT b FROM neighbour JOIN node ON id=b WHERE a='{0}' AND population>(SELECT population FROM node "
        "WHERE id='{0}')",
        unless="SELECT 1 FROM neighbour JOIN node y ON y.id=b JOIN node x ON x.id=a WHERE a='{0}' "
        "AND (y.population IS NULL OR ABS(y.population-x.population)<0.1*x.population)",
        wordings=(
            "Which neighbours of {0} are more populous than {0} itself?",
            "Bordering {0}, which countries are more populous than {0}?",
            "Name the countries next to {0} that are more populous than {0}.",
        ),
    ),
    dict(
        slug="rivers-longer-than", kind="comparison", hops=1,
        topics="SELECT country, n FROM river JOIN (SELECT 500 n UNION SELECT 1000 UNION SELECT 2000) "
        "GROUP BY 1, 2 HAVING COUNT(*)>2",
        gold="SELECT river FROM river JOIN node ON id=river WHERE country='{0}' AND length_km>{1}",
        unless="SELECT 1 FROM river JOIN node ON id=river WHERE country='{0}' AND (length_km IS NULL "
        "OR ABS(length_km-{1})<0.08*{1})",
        wordings=(
            "Which major rivers that flow through {0} are longer than {1:,} kilometres?",
            "What big rivers of {0} have a length of more than {1:,} km?",
            "Which great rivers of {0} run for over {1:,} kilometres?",
        ),
    ),
    dict(
        slug="mountains-higher-than", kind="comparison", hops=1,
        topics="SELECT country, n FROM mountain JOIN (SELECT 2000 n UNION SELECT 3000 UNION SELECT 4000) "
        "GROUP BY 1, 2 HAVING COUNT(*)>2",
        gold="SELECT mountain FROM mountain JOIN node ON id=mountain WHERE country='{0}' AND elevation_m>{1}",
        unless="SELECT 1 FROM mountain JOIN node ON id=mountain WHERE country='{0}' AND (elevation_m IS NULL "
        "OR ABS(elevation_m-{1})<20) UNION ALL SELECT 1 FROM mountain JOIN node ON id=mountain WHERE country='{0}' "
        "GROUP BY country HAVING MIN(elevation_m)>{1}",
        wordings=(
            "Which well-known mountains of {0} are higher than {1:,} metres?",
            "Which of the great peaks in {0} rise above {1:,} m?",
            "What famous mountains in {0} stand at over {1:,} metres?",
        ),
    ),
    # Differences and unions
    dict(
        slug="neighbour-not-currency", kind="difference", hops=1,
        topics="SELECT a, currency FROM neighbour JOIN currency ON country=b WHERE a IN settled GROUP BY 1, 2 "
        "HAVING COUNT(*)>1",
        gold="SELECT b FROM neighbour WHERE a='{0}' AND b NOT IN (SELECT country FROM currency WHERE currency='{1}')",
        wordings=(
            "Which neighbours of {0} do not use {1}?",
            "In which countries bordering {0} does one not pay with {1}?",
            "Apart from those that use {1}, which countries share a border with {0}?",
        ),
    ),
    dict(
        slug="region-not-language", kind="difference", hops=1,
        topics="SELECT region, language FROM in_region JOIN language USING (country) GROUP BY 1, 2 HAVING COUNT(*)>1",
        gold="SELECT country FROM in_region WHERE region='{0}' AND country NOT IN (SELECT country FROM language "
        "WHERE language='{1}')",
        wordings=(
            "Which countries in {0} do not have {1} as an official language?",
            "Where in {0} is {1} not an official language?",
            "List the countries of {0} except those where {1} is official.",
        ),
    ),
    dict(
        slug="region-not-currency", kind="difference", hops=1,
        topics="SELECT region, currency FROM in_region JOIN currency USING (country) GROUP BY 1, 2 HAVING COUNT(*)>1",
        gold="SELECT country FROM in_region WHERE region='{0}' AND country NOT IN (SELECT country FROM currency "
        "WHERE currency='{1}')",
        wordings=(
            "Which countries in {0} do not use {1}?",
            "In {0}, which countries pay with something other than {1}?",
            "Name the countries of {0} without {1} as their money.",
        ),
    ),
    dict(
        slug="river-besides", kind="difference", hops=1,
        topics="SELECT river, country FROM river WHERE river IN (SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>2)",
        gold="SELECT country FROM river WHERE river='{0}' AND country<>'{1}'",
        wordings=(
            "Apart from {1}, which countries does {0} flow through?",
            "Which countries other than {1} does {0} cross?",
            "{0} runs through which countries, leaving aside {1}?",
        ),
    ),
    dict(
        slug="rivers-not-through", kind="difference", hops=1,
        topics="SELECT x.country, y.country FROM river x JOIN river y ON x.river=y.river AND x.country<>y.country "
        "GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 1 AND 4",
        gold="SELECT river FROM river WHERE country='{0}' AND river NOT IN (SELECT river FROM river "
        "WHERE country='{1}')",
        wordings=(
            "Which major rivers of {0} do not flow through {1}?",
            "What big rivers run through {0} but not through {1}?",
            "Name the great rivers of {0} that do not cross {1}.",
        ),
    ),
    dict(
        slug="either-neighbour", kind="union", hops=1,
        topics="SELECT x.id, y.id FROM settled x JOIN settled y ON x.id<y.id WHERE (x.id, y.id) IN (SELECT a, b FROM "
        "near) "
        "AND (x.id, y.id) NOT IN (SELECT a, b FROM neighbour)",
        gold="SELECT b FROM neighbour WHERE a='{0}' UNION SELECT b FROM neighbour WHERE a='{1}'",
        wordings=(
            "Which countries border {0} or {1}?",
            "What countries share a land border with {0} or {1}?",
            "Name all countries bordering either {0} or {1}.",
        ),
    ),
    dict(
        slug="either-language", kind="union", hops=1,
        topics="SELECT x.language, y.language FROM (SELECT language FROM language GROUP BY 1 HAVING COUNT(*) BETWEEN 2 "
        "AND 12) x JOIN (SELECT language FROM language GROUP BY 1 HAVING COUNT(*) BETWEEN 2 AND 12) y "
        "ON x.language<y.language",
        gold="SELECT country FROM language WHERE language='{0}' UNION SELECT country FROM language WHERE "
        "language='{1}'",
        wordings=(
            "In which countries is {0} or {1} an official language?",
            "Which countries have {0} or {1} as an official language?",
            "Where is either {0} or {1} official?",
        ),
    ),
    dict(
        slug="either-currency", kind="union", hops=1,
        topics="SELECT x.currency, y.currency FROM shared_currency x JOIN shared_currency y ON x.currency<y.currency",
        gold="SELECT country FROM currency WHERE currency='{0}' UNION SELECT country FROM currency WHERE "
        "currency='{1}'",
        wordings=(
            "Which countries use {0} or {1}?",
            "In which countries does one pay with {0} or {1}?",
        ),
    ),
    # Counts
    dict(
        slug="count-region-language", kind="count", hops=1,
        topics="SELECT region, language FROM in_region JOIN language USING (country) GROUP BY 1, 2 HAVING COUNT(*)>1",
        gold="SELECT COUNT(*) FROM in_region JOIN language USING (country) WHERE region='{0}' AND language='{1}'",
        values=True,
        wordings=(
            "How many countries in {0} have {1} as an official language?",
            "In how many UN member countries of {0} is {1} official?",
            "What is the number of countries in {0} where {1} is an official language?",
        ),
    ),
    dict(
        slug="count-region-currency", kind="count", hops=1,
        topics="SELECT region, currency FROM in_region JOIN currency USING (country) GROUP BY 1, 2 HAVING COUNT(*)>1",
        gold="SELECT COUNT(*) FROM in_region JOIN currency USING (country) WHERE region='{0}' AND currency='{1}'",
        values=True,
        wordings=(
            "How many countries in {0} use {1}?",
            "How many UN members in {0} pay with {1}?",
            "Give the number of countries in {0} whose currency is {1}.",
        ),
    ),
    dict(
        slug="count-river-language", kind="count", hops=1,
        topics="SELECT river, language FROM river JOIN language USING (country) GROUP BY 1, 2 HAVING COUNT(*)>1",
        gold="SELECT COUNT(*) FROM river JOIN language USING (country) WHERE river='{0}' AND language='{1}'",
        values=True,
        wordings=(
            "How many of the countries that {0} flows through have {1} as an official language?",
            "In how many countries along {0} is {1} official?",
        ),
    ),
    dict(
        slug="count-neighbour-not-language", kind="count", hops=1,
        topics="SELECT a, language FROM neighbour JOIN language ON country=b WHERE a IN settled GROUP BY 1, 2 "
        "HAVING COUNT(*)>1",
        gold="SELECT COUNT(*) FROM neighbour WHERE a='{0}' AND b NOT IN (SELECT country FROM language "
        "WHERE language='{1}')",
        values=True,
        wordings=(
            "How many countries bordering {0} do not have {1} as an official language?",
            "In how many countries that border {0} is {1} not official?",
        ),
    ),
    dict(
        slug="count-region-area", kind="count", hops=1,
        topics="SELECT DISTINCT region, n FROM in_region JOIN (SELECT 100000 n UNION SELECT 300000 UNION SELECT "
        "600000)",
        gold="SELECT COUNT(*) FROM in_region JOIN node ON id=country WHERE region='{0}' AND area_km2>{1}",
        values=True,
        unless="SELECT 1 FROM in_region JOIN node ON id=country WHERE region='{0}' AND (area_km2 IS NULL "
        "OR ABS(area_km2-{1})<0.08*{1} OR country='country/morocco')",
        wordings=(
            "How many countries in {0} are larger than {1:,} square kilometres?",
            "How many UN members in {0} have an area of more than {1:,} km²?",
            "In {0}, how many countries cover over {1:,} square kilometres?",
        ),
    ),
    # Superlatives
    dict(
        slug="region-smallest", kind="superlative", hops=1, topics="SELECT region FROM in_region GROUP BY 1 HAVING "
        "COUNT(*)>2",
        gold="SELECT country FROM in_region JOIN node ON id=country WHERE region='{0}'", rank="area_km2 ASC",
        wordings=(
            "What is the smallest country by area in {0}?",
            "Which country in {0} has the least area?",
            "Which is the smallest of the countries in {0}, by area?",
        ),
    ),
    dict(
        slug="neighbour-second-people", kind="superlative", hops=1,
        topics="SELECT id FROM settled JOIN neighbour ON a=id GROUP BY 1 HAVING COUNT(*)>2",
        gold="SELECT b FROM (SELECT b, population FROM neighbour JOIN node ON id=b WHERE a='{0}' ORDER BY population "
        "DESC "
        "LIMIT 2) ORDER BY population LIMIT 1",
        unless=CLOSE.format(what="population", table="neighbour JOIN node ON id=b", where="a='{0}'").replace("{{", "{"),
        wordings=(
            "What is the second most populous country bordering {0}?",
            "Which country that borders {0} has the second largest population?",
            "By population, which country bordering {0} is the second largest?",
        ),
    ),
    dict(
        slug="region-second-largest", kind="superlative", hops=1,
        topics="SELECT region FROM in_region GROUP BY 1 HAVING COUNT(*)>3",
        gold="SELECT country FROM (SELECT country, area_km2 FROM in_region JOIN node ON id=country WHERE region='{0}' "
        "ORDER BY area_km2 DESC LIMIT 2) ORDER BY area_km2 LIMIT 1",
        unless=CLOSE.format(what="area_km2", table="in_region JOIN node ON id=country", where="region='{0}'"),
        wordings=(
            "Which is the second largest country in {0} by area?",
            "In {0}, which country has the second largest area?",
        ),
    ),
    dict(
        slug="longest-tributary", kind="superlative", hops=1, topics="SELECT main FROM tributary GROUP BY 1 HAVING "
        "COUNT(*)>1",
        gold="SELECT river FROM tributary JOIN node ON id=river WHERE main='{0}'", rank="length_km DESC",
        wordings=(
            "What is the longest of the great tributaries of {0}?",
            "Which major tributary of {0} is the longest?",
            "Of the big rivers that join {0}, which has the greatest length?",
        ),
    ),
    dict(
        slug="language-region-largest", kind="superlative", hops=1,
        topics="SELECT continent, language FROM in_continent JOIN language USING (country) WHERE country NOT IN "
        "odd_continent "
        "GROUP BY 1, 2 HAVING COUNT(*)>2",
        gold="SELECT country FROM in_continent JOIN language USING (country) JOIN node ON id=country "
        "WHERE continent='{0}' AND language='{1}'", rank="area_km2 DESC",
        unless="SELECT 1 FROM in_continent JOIN language USING (country) WHERE continent='{0}' AND language='{1}' "
        "AND country IN odd_continent",
        wordings=(
            "What is the largest country by area in {0} where {1} is an official language?",
            "Of the countries in {0} with {1} as an official language, which has the greatest area?",
        ),
    ),
    dict(
        slug="oldest-winner", kind="superlative", hops=1,
        topics="SELECT DISTINCT award, x.y, z.y FROM won, year x JOIN year z ON z.y=x.y+9 WHERE x.y%10=1 "
        "AND x.y BETWEEN 1951 AND 2011",
        gold="SELECT person FROM won JOIN node ON id=person WHERE award='{0}' AND won.year BETWEEN {1} AND {2}",
        rank="node.year ASC", margin=0.0,
        wordings=(
            "Of the people who won {0} from {1} to {2}, who was born first?",
            "Who is the oldest person that won {0} between {1} and {2}?",
            "Which winner of {0} between {1} and {2} has the earliest year of birth?",
        ),
    ),
    # Time
    dict(
        slug="leaders-of-decade", kind="temporal", hops=1,
        topics="SELECT DISTINCT country, x.y FROM led, year x WHERE x.y IN (1990, 2000, 2010)",
        gold="SELECT DISTINCT person FROM led WHERE country='{0}' AND since<={1}+9 AND until>={1}",
        wordings=(
            "Who was {0:office} in the {1}s?",
            "Which people headed the government of {0} during the {1}s?",
            "Name the heads of government that {0} had in the {1}s.",
        ),
    ),
    dict(
        slug="winner-origins", kind="temporal", hops=2,
        topics="SELECT DISTINCT award, year FROM won JOIN native USING (person)",
        gold="SELECT DISTINCT country FROM won JOIN born USING (person) WHERE award='{0}' AND won.year={1}",
        wordings=(
            "In which countries were the people born who won {0} in {1}?",
            "What are the countries of birth of those who won {0} in {1}?",
            "Where were the winners of {0} in {1} born, by today's borders?",
        ),
    ),
    dict(
        slug="euro-before-after", kind="temporal", hops=1,
        topics="SELECT DISTINCT currency, y FROM currency, year WHERE currency='currency/euro' "
        "AND y IN (2005, 2006, 2008, 2010, 2012, 2014)",
        gold="SELECT country FROM currency WHERE currency='{0}' AND since>{1}",
        wordings=(
            "Which countries adopted {0} after {1}?",
            "Which countries have joined {0} since the end of {1}?",
            "Later than {1}, which countries took up {0}?",
        ),
    ),
    dict(
        slug="first-leader-since", kind="temporal", hops=1,
        topics="SELECT DISTINCT country, y FROM led, year WHERE y IN (1992, 1997, 2002, 2007, 2012)",
        gold="SELECT person FROM led WHERE country='{0}' AND since>={1}", rank="since ASC", margin=0.0,
        wordings=(
            "Since {1}, who was the first to become {0:office}?",
            "Who was first to take office as head of the government of {0} from {1} on?",
        ),
    ),
    # Several constraints
    dict(
        slug="shared-mountains", kind="multi-constraint", hops=1,
        topics="SELECT x.country, y.country FROM mountain x JOIN mountain y ON x.mountain=y.mountain "
        "AND x.country<y.country GROUP BY 1, 2",
        gold="SELECT mountain FROM mountain WHERE country='{0}' INTERSECT SELECT mountain FROM mountain "
        "WHERE country='{1}'",
        wordings=(
            "Which mountains belong to both {0} and {1}?",
            "What well-known peaks do {0} and {1} share?",
            "On the territory of {0} as well as {1}, which famous mountains rise?",
        ),
    ),
    dict(
        slug="shared-lakes", kind="multi-constraint", hops=1,
        topics="SELECT x.country, y.country FROM lake x JOIN lake y ON x.lake=y.lake AND x.country<y.country "
        "GROUP BY 1, 2",
        gold="SELECT lake FROM lake WHERE country='{0}' INTERSECT SELECT lake FROM lake WHERE country='{1}'",
        wordings=(
            "Which lakes lie in both {0} and {1}?",
            "What large lakes do {0} and {1} have in common?",
            "Name the lakes that are partly in {0} and partly in {1}.",
        ),
    ),
    dict(
        slug="neighbour-region", kind="multi-constraint", hops=1,
        topics="SELECT a, region FROM neighbour JOIN in_region ON country=b WHERE a IN settled GROUP BY 1, 2 "
        "HAVING COUNT(*)>1",
        gold="SELECT b FROM neighbour JOIN in_region ON country=b WHERE a='{0}' AND region='{1}'",
        wordings=(
            "Which countries in {1} border {0}?",
            "Which countries that share a border with {0} are in {1}?",
            "Of the countries of {1}, which ones border {0}?",
        ),
    ),
)
# fmt: on
