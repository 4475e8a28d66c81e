"""`QuestionCounts`: what a guard was asked and answered, and whether it is worth its while.

Counts are plain integers, changed by one statement each. Under the GIL none is lost; without it a
few may be, and they decide nothing but when `mode="auto"` looks again.
"""

from __future__ import annotations

from typing import Literal, get_args

from bloomtide.errors import require

Mode = Literal["on", "shadow", "auto", "off"]

_LOOK = 1000
"""Questions after which `mode="auto"` decides."""
_USELESS = 0.9
"""The share of questions that went on to the database from which on the guard is of no use."""
_REST = 10_000
"""Questions that it then lets pass before it looks again."""


class QuestionCounts:
    """Counts questions and answers; `bypass` says when a filter need not be asked."""

    __slots__ = (
        "_avoided",
        "_begun",
        "_span",
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
        self._span = _LOOK
        self._begun = self._avoided = 0
        """`asked` and `avoided` when the present look, or rest, began."""

    @property
    def passed(self) -> int:
        return self.asked - self.avoided

    def look(self) -> None:
        """`mode="auto"` only, before each question: is the guard of any use?"""
        asked = self.asked - self._begun
        if asked < self._span:
            return
        if self.bypass:
            self.bypass, self._span = False, _LOOK
        elif self.avoided - self._avoided < (1 - _USELESS) * asked:
            self.bypass, self._span = True, _REST
        self._begun, self._avoided = self.asked, self.avoided
