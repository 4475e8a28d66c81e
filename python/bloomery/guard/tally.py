"""`Tally`: what a guard was asked and what it answered, and whether asking it is worth its while.

Counts are plain integers, changed by one statement each. Under the GIL none is lost; without it a
few may be, and they decide nothing but when `mode="auto"` looks again.
"""

from __future__ import annotations

from typing import Literal, get_args

from bloomery.errors import require

Mode = Literal["on", "shadow", "auto", "off"]

_LOOK = 1000
"""Questions after which `mode="auto"` decides."""
_USELESS = 0.9
"""The share of questions that went on to the database from which on the guard is of no use."""
_REST = 10_000
"""Questions that it then lets pass before it looks again."""


class Tally:
    """Counts questions and answers; `bypass` says when a filter need not be asked."""

    __slots__ = (
        "_end",
        "_looked",
        "asked",
        "avoided",
        "bypass",
        "false_true",
        "mode",
        "true_keys",
        "wrong_false",
    )

    def __init__(self, mode: Mode) -> None:
        require("mode", mode, "one of " + ", ".join(get_args(Mode)), mode in get_args(Mode))
        self.mode = mode
        self.bypass = mode == "off"
        self.asked = 0
        self.avoided = 0
        self.true_keys = 0
        self.false_true = 0
        self.wrong_false = 0
        self._end = _LOOK
        self._looked = 0
        """`avoided` when the present look began."""

    @property
    def passed(self) -> int:
        return self.asked - self.avoided

    def look(self) -> None:
        """`mode="auto"` only, at each question: is the guard of any use?"""
        if self.asked < self._end:
            return
        if self.bypass:
            self.bypass = False
            self._end = self.asked + _LOOK
        elif self.avoided - self._looked < (1 - _USELESS) * _LOOK:
            self.bypass = True
            self._end = self.asked + _REST
        else:
            self._end = self.asked + _LOOK
        self._looked = self.avoided
