"""Where a server listens."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that no other machine reaches."""
