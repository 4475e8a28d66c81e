"""`SharedProgress`: how far shared keys are up with other writers, the same for all processes."""

from __future__ import annotations

from math import inf
from typing import Any

from bloomtide.guard.control import Word
from bloomtide.guard.shared_files import SharedFiles


class SharedProgress:
    """The part of `SharedKeys` that `others.py` uses."""

    files: SharedFiles
    detached: bool
    _words: Any

    @property
    def fresh_until(self) -> float:
        """Until when answers may be given, on the monotonic clock, which all processes share."""
        nanoseconds = self._words[Word.FRESH_UNTIL]
        return nanoseconds / 1e9 if nanoseconds else inf

    @fresh_until.setter
    def fresh_until(self, moment: float) -> None:
        if not self.detached:
            self._words[Word.FRESH_UNTIL] = max(int(moment * 1e9), 1)

    @property
    def built_at(self) -> float:
        """When the scan of the filter in use began, if somebody keeps it up; else 0."""
        return float(self._words[Word.BUILT_AT] / 1e9)

    @built_at.setter
    def built_at(self, moment: float) -> None:
        if not self.detached:
            self._words[Word.BUILT_AT] = int(moment * 1e9)

    @property
    def position(self) -> str | None:
        """How far the changes of others are inside; see `others.py`."""
        return self.files.read_position()

    @position.setter
    def position(self, text: str | None) -> None:
        if not self.detached:
            self.files.write_position(text)

    @property
    def rebuilding(self) -> bool:
        """Whether some process is building; one that died while it did is not."""
        return bool(self._words[Word.BUILDING]) and self.files.is_building()

    def may_follow(self) -> bool:
        """Whether this is the process that reads the changes of others."""
        return not self.detached and self.files.may_follow()
