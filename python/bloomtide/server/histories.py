"""The named histories of a server: stores of counts by time, each in a directory of its own.

A store is opened when it is first named and stays open. One that another process writes meanwhile,
such as a stream, is read. All of it happens in threads: a question may read files, and other
clients do not wait for it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from bloomtide.errors import LockedError, ParameterError, StorageError, require
from bloomtide.server.settings import Settings

if TYPE_CHECKING:
    from bloomtide.history import History

_PREFIX = "history-"
_LONGEST = 80


class Histories:
    """Histories by name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[str, History] = {}
        self._gate = threading.Lock()

    def reserve(self, name: str, **options: Any) -> None:
        """Makes a store; refuses a name that is taken."""
        with self._gate:
            path = self._path(name)
            if path.exists():
                raise ParameterError(
                    f"there is a history {name!r} already", hint="choose another name",
                    name="name", got=name, allowed="a new name",
                )  # fmt: skip
            most = self._settings.maxkeys
            if most and len(self.names()) >= most:
                raise ParameterError(
                    f"max number of histories reached: 'maxkeys' is {most}",
                    hint="raise it by CONFIG SET maxkeys", name="maxkeys", got=most,
                    allowed="more than there are histories",
                )  # fmt: skip
            self._open[name] = self._opened(path, options)

    def get(self, name: str) -> History:
        """The store of this name, as it is now."""
        with self._gate:
            found = self._open.get(name)
            if found is None:
                path = self._path(name)
                if not path.exists():
                    raise ParameterError(
                        f"there is no history {name!r}", hint="HISTORY.RESERVE makes one",
                        name="name", got=name, allowed="a history that was reserved",
                    )  # fmt: skip
                try:
                    found = self._opened(path, {})
                except LockedError:  # by a stream, such as Spark's: a store has many readers
                    found = self._opened(path, {"mode": "r"})
                self._open[name] = found
        found.refresh()  # what another process writes is there at the next question
        return found

    def names(self) -> list[str]:
        """All stores there are."""
        root = self._settings.dir / "histories"
        if not self._settings.appendonly or not root.is_dir():
            return []
        return sorted(
            unquote(path.name.removeprefix(_PREFIX))
            for path in root.iterdir()
            if path.name.startswith(_PREFIX)
        )

    def change(self, settings: Settings) -> None:
        """Takes other settings; what is open stays as it is."""
        self._settings = settings

    def close(self) -> None:
        """Brings all of them to the disk and closes them."""
        with self._gate:
            for store in self._open.values():
                store.close()
            self._open.clear()

    def _opened(self, path: Path, options: dict[str, Any]) -> History:
        from bloomtide.history import History

        return History.open(path, sync=self._settings.appendfsync, **options)

    def _path(self, name: str) -> Path:
        require("name", name, f"1 to {_LONGEST} letters", 1 <= len(name) <= _LONGEST)
        if not self._settings.appendonly:
            raise StorageError(
                "there is no data directory: appendonly is off", hint="start with appendonly yes",
                path="", operation="open",
            )  # fmt: skip
        return self._settings.dir / "histories" / (_PREFIX + quote(name, safe=""))
