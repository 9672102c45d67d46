"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine must not fail a test: nothing here is timed.
settings.register_profile("byokg", deadline=None)
settings.load_profile("byokg")
