"""Time of scoring predictions under every metric profile, intervals included.

python benchmarks/scoring.py [--questions 10000] [--json FILE]

Questions have 1 to 8 gold answers and 0 to 12 predicted ones of two or three words, with ids, gold rows, drafts and
types, so that every profile counts every question; every fiftieth has no prediction. A second line gives the time of
each profile alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from benchmarks.measure import timed
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.cases import Case
from byokg.evaluation.compare import score_cases
from byokg.evaluation.profiles import PROFILES, select_profiles

SEED = 0
BAR_S = 5.0
SYLLABLES = ("ba", "lo", "ri", "ten", "mas", "ku", "vel", "dor", "san", "pi", "qua", "zer")
TYPES = ("simple_entity", "simple_time", "before_after", "first_last", "time_join")


def cases(count: int) -> Iterator[Case]:
    """Yield questions with predictions, about half of them right."""
    chance = random.Random(SEED)

    def name() -> str:
        words = ("".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(chance.randint(2, 3)))
        return " ".join(words).title()

    for number in range(count):
        gold = [name() for _ in range(chance.randint(1, 8))]
        said = [chance.choice(gold) if chance.random() < 0.5 else name() for _ in range(chance.randint(0, 12))]
        yield Case(
            id=f"q{number}",
            gold=tuple(gold),
            answers=tuple(said),
            status="failed" if number % 50 == 0 else "ok",
            answer_ids=tuple(f"m.{node_id(text)}" for text in said),
            drafts=tuple(said[:1]),
            gold_ids=tuple(f"m.{node_id(text)}" for text in gold),
            rows=tuple((text,) for text in gold),
            type=chance.choice(TYPES),
            answer_type=chance.choice(("entity", "time")),
        )


def node_id(text: str) -> str:
    """Return an id that depends on the text alone."""
    return text.replace(" ", "_").lower()


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=10_000)
    options = parser.parse_args()
    made = list(cases(options.questions))
    rows = []
    began, worked = time.perf_counter(), time.process_time()
    scored = score_cases(made, select_profiles(["all"]))
    took = {"": time.perf_counter() - began, ", processor time": time.process_time() - worked}
    rows += [Row(f"{len(made)} predictions, all profiles{what}", s, "s") for what, s in took.items()]
    if any(one.n + one.skipped != len(made) for one in scored):
        raise SystemExit("a profile left questions out, so the time is not that of scoring them all")
    for name, profile in PROFILES.items():
        rows.append(Row(f"{name} alone", timed(lambda: score_cases(made, [profile]))[0], "s"))  # noqa: B023
    show(rows, f"scoring; the bar for 10,000 under all profiles is {BAR_S:g} s", options.json)


if __name__ == "__main__":
    main()
