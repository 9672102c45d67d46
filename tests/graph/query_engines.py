"""An engine for the tests of `Worker`, which misbehaves on demand. It runs in the worker's process."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from byokg.errors import EntityNotFound, QueryRefused

NAME = "tests.graph.query_engines:Misbehaving"


class Misbehaving:
    """Does what its settings and the calls say."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.hoard: list[bytes] = []

    def open(self) -> None:
        if "says" in self.settings:
            print(self.settings["says"], flush=True)
            os.write(1, b"straight to the descriptor\n")
        if self.settings.get("dies"):
            print("cannot go on", file=sys.stderr, flush=True)
            os._exit(7)
        if self.settings.get("dawdles"):
            time.sleep(60)
        if self.settings.get("lacks"):
            raise EntityNotFound("Alien", "the engine")

    def close(self) -> None:
        if "goodbye" in self.settings:
            with open(self.settings["goodbye"], "w") as file:
                file.write("closed")

    def echo(self, value: Any) -> Any:
        return value

    def pid(self) -> int:
        return os.getpid()

    def setting(self, name: str) -> Any:
        return self.settings[name]

    def prints(self, text: str) -> None:
        print(text)
        os.write(1, text.encode())

    def sleeps(self, seconds: float, tell: str = "") -> None:
        if tell:
            open(tell, "w").close()
        time.sleep(seconds)

    def computes(self) -> None:
        """Never let go of the interpreter: one call of a C function that takes for ever."""
        sum(range(10**15))

    def eats(self) -> None:
        while True:
            self.hoard.append(b"x" * (8 << 20))
            time.sleep(0.002)

    def crashes(self, last_words: str) -> None:
        print(last_words, file=sys.stderr, flush=True)
        os._exit(9)

    def refuses(self) -> None:
        raise QueryRefused("SET", 2, 5, "it writes")

    def fails(self) -> None:
        raise ZeroDivisionError("by the engine")
