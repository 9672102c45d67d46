"""English words that say little by themselves."""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    "a an the of in on at by to for from with and or is are was were be been am do does did done has have had "
    "having that this these those there as into also it its their his her he she they them i you me my your we "
    "us our can could would should will s".split()
)
