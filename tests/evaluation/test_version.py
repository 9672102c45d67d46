"""Tests of `byokg.evaluation.run_folder`."""

from __future__ import annotations

from byokg.evaluation.run_folder import code_version


def test_the_running_code_is_identified() -> None:
    version = code_version()
    assert version.version
    assert len(version.digest) == 16
    assert int(version.digest, 16) >= 0
    assert version.commit is None or len(version.commit.rstrip("+")) == 40


def test_the_same_code_has_the_same_digest() -> None:
    first = code_version()
    code_version.cache_clear()
    assert code_version() == first
