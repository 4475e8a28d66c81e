"""What a snapshot holds beside the structures: settings, totals, and how far sources are read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bloomtide.durable.disk import storage_errors
from bloomtide.errors import NotASnapshotError
from bloomtide.format import pack_json, read_json
from bloomtide.monitor.settings import Given, Settings
from bloomtide.monitor.structures import Structures
from bloomtide.records import Applied
from bloomtide.store import Ledger

_STATE = "monitor.json"


@dataclass(slots=True)
class Totals:
    """What a monitor counts of the stream as a whole; instants in microseconds."""

    since: float
    events: int = 0
    new: int = 0
    late: int = 0
    ahead: int = 0
    aside: int = 0
    first: int | None = None
    """The earliest event."""
    newest: int | None = None
    lag: float = 0.0
    """How many seconds after its own time the newest event came."""
    positions: dict[str, Any] = field(default_factory=dict)
    time: Any = None
    """What is known of the times of events: `Intake.time`."""

    def count(self, applied: Applied, time: Any) -> None:
        """One more block."""
        self.time = time
        self.events += applied.events
        self.new += applied.new
        self.late += applied.late
        self.ahead += applied.ahead
        self.aside = applied.aside
        newest = applied.newest
        if newest is not None and (self.newest is None or newest > self.newest):
            self.lag = (applied.arrived - newest) / 1e6
            self.newest = newest
        if applied.first is not None and (self.first is None or applied.first < self.first):
            self.first = applied.first
        if applied.note:
            source, position = json.loads(applied.note)
            self.positions[source] = position

    def copy(self) -> Totals:
        """As they are now."""
        return replace(self, positions=dict(self.positions))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def open_ledger(ledger: Ledger, given: Given, now: float) -> tuple[Settings, Structures, Totals]:
    """What the newest snapshot has; of a new ledger, empty structures and one that says so."""
    if ledger.snapshot is None:
        settings = Settings.create(given, None, on_disk=True)
        structures, totals = Structures.create(settings), Totals(now)

        # So that sizes are what they are from the first event on; there is nothing else to keep.
        ledger.rewrite(lambda directory: write_state(directory, settings, totals))
        return settings, structures, totals
    path = ledger.snapshot / _STATE
    if not path.exists():
        raise NotASnapshotError(
            f"{ledger.snapshot} holds no monitor", hint="is this another program's directory?",
            path=str(path), offset=None,
        )  # fmt: skip
    with storage_errors(path, "read"):
        state = read_json(path.read_bytes(), "monitor", path)
    stored, counted = state["settings"], state["totals"]
    settings = Settings.create(given, stored, on_disk=True)
    if state["files"] is None:
        return settings, Structures.create(settings), Totals(**counted)
    structures = Structures.load(ledger.snapshot, settings, state["files"])
    return settings, structures, Totals(**counted)


def write_state(
    directory: Path, settings: Settings, totals: Totals, files: dict[str, str] | None = None
) -> None:
    """The file beside those of the structures, which it names by their digests; before the first
    event there are none."""
    state = {"settings": settings.as_dict(), "totals": totals.as_dict(), "files": files}
    (directory / _STATE).write_bytes(pack_json("monitor", state))
