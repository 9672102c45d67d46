"""A program that kills runs at random moments and continues them.

Of `QUESTIONS` questions each run is started in a process of its own, killed (SIGKILL) and then continued, `KILLS` times
in all: by turns after a random part of the time that an undisturbed run takes, which includes opening and measuring,
and shortly after a random number of questions was recorded. Printed are the number of runs killed, how many of them had
recorded some questions but not all, and how many ended with other bytes than the undisturbed run.

Processes are forked, so that none of them has to import anything.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from byokg.evaluation.records import CONFIG, PREDICTIONS, TRACE
from byokg.evaluation.run_folder import METRICS_FILE
from byokg.evaluation.runner import run_evaluation
from tests.evaluation.scripted import SETTINGS, Scripted, examples

WORKERS = 4
PAUSE_S = 0.004
SAME = (PREDICTIONS, TRACE, METRICS_FILE, CONFIG)


def start(out: Path, count: int) -> int:
    """Run an evaluation in a process of its own; return its id."""
    child = os.fork()
    if child == 0:
        try:
            run_evaluation(Scripted(PAUSE_S), examples(count), out, SETTINGS, workers=WORKERS)
            os._exit(0)
        finally:
            os._exit(1)
    return child


def lines(out: Path) -> int:
    """Count the predictions that are recorded."""
    path = out / PREDICTIONS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(out: Path, recorded: int) -> None:
    """Return once so many questions are recorded, or after a while."""
    until = time.perf_counter() + 10
    while lines(out) < recorded and time.perf_counter() < until:
        time.sleep(0.0005)


def finish(child: int) -> int:
    """Wait for a process; return its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def content(out: Path) -> list[bytes]:
    """Return the files that equal runs write equal."""
    return [(out / name).read_bytes() for name in SAME]


if __name__ == "__main__":
    root, count, kills = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    moments = random.Random(int(sys.argv[4]))
    began = time.perf_counter()
    if finish(start(root / "undisturbed", count)) != 0:
        sys.exit("the undisturbed run failed")
    whole_s = time.perf_counter() - began
    expected = content(root / "undisturbed")
    killed = partly = different = 0
    while killed < kills:
        out = root / "killed"
        child = start(out, count)
        if killed % 2:
            time.sleep(moments.random() * whole_s)
        else:
            wait_for(out, moments.randrange(count))
            time.sleep(moments.random() * PAUSE_S)
        os.kill(child, signal.SIGKILL)
        if finish(child) == 0:
            shutil.rmtree(out)  # it was quicker; another moment will do
            continue
        killed += 1
        recorded = lines(out)
        partly += 0 < recorded < count
        if finish(start(out, count)) != 0:
            sys.exit(f"the run killed with {recorded} questions recorded cannot be continued")
        different += content(out) != expected
        shutil.rmtree(out)
    print(killed, partly, different)
