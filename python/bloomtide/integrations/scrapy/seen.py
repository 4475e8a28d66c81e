"""`Seen`: what a crawl has seen, in memory and in its job directory. It knows nothing of Scrapy.

    filter     a `ScalableBloomFilter`, a `RecentFilter` or a shared `BloomFilter`
    exact      an `ExactSet` that has the last word on what the filter calls seen, if asked for
    ledger     a snapshot of the filter, and every key since then with the time it came

Invariants:

1. A key that `add` returned for is in the ledger, and so survives a kill.
2. The set on disk is committed before a snapshot replaces its keys in the ledger, so a replay fills
   it up.
3. Whatever is lost or damaged makes a page new again: a damaged record is skipped. Nothing makes a
   page seen that was not added, but the filter's own error; with `exact`, not even that.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from bloomtide import BloomFilter, RecentFilter, ScalableBloomFilter, Stats, system
from bloomtide.durable.disk import Disk
from bloomtide.durable.manifest import read_manifest, write_manifest
from bloomtide.errors import IncompatibleError, SnapshotError, StorageError
from bloomtide.integrations.scrapy.options import Options
from bloomtide.store import ExactSet, Ledger

KEY = 20
_RECORD = struct.Struct("<20sd")
"""A key, and when it came."""
_BYTES = 48
"""What it takes in the journal."""
_CHUNK = 4096
"""Records that are replayed at once."""
_FILE = "seen.bloom"
_LEAST_LOG = 1 << 20
"""A smaller log is not worth a snapshot."""
_EXACT_CACHE = 64 << 10
"""Pages of the set on disk that are kept in memory. The system keeps more of them in its own."""


class Seen:
    """The keys that were seen."""

    def __init__(
        self, options: Options, directory: Path | None, clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:  # fmt: skip
        self.options = options
        self.replayed = 0
        """Keys that the ledger brought back."""
        self.damaged_records = 0
        """Records of it that had to be skipped."""
        self.rescued = 0
        """Pages that the filter called seen and the set on disk did not know."""
        self.snapshots = 0
        self._clock = clock
        self._full_at = 0
        """The record that makes a new snapshot."""
        self._disk = disk or Disk()
        self._ledger: Ledger | None = None
        self._exact: ExactSet | None = None
        self._temporary: TemporaryDirectory[str] | None = None
        self._directory = None if options.shared else directory
        if self._directory is not None:
            system.require_posix("a crawl with a JOBDIR")
            self._disk.make_directory(self._directory)
            self._agree(self._directory / "job.json")
        try:
            if options.verify:
                self._exact = ExactSet(self._exact_path(), cache=_EXACT_CACHE)
            if self._directory is not None:
                self._ledger = Ledger.open(
                    self._directory / "seen", sync=options.sync, skip_damaged=True, disk=self._disk
                )
            self.filter = self._filter()
            if self._ledger is not None:
                self._replay(self._ledger)
        except BaseException:
            self._release()
            raise

    # --- opening ------------------------------------------------------------------------------

    def _agree(self, path: Path) -> None:
        """A job goes on as it was begun: a set made half-way would not know the first half."""
        mine = {"BLOOMTIDE_VERIFY": self.options.verify, "BLOOMTIDE_REVISIT": self.options.revisit}
        hint = f"restore it, or remove {path.parent} to crawl its pages again"
        theirs = read_manifest(path, "crawl", hint=hint)
        if theirs is None:
            write_manifest(self._disk, path, "crawl", mine)
            return
        for name, value in mine.items():
            if theirs.get(name) != value:
                raise IncompatibleError(
                    f"this job was begun with another `{name}`",
                    hint=f"set it back, or begin a new job: remove {path.parent.parent}",
                    field=name, expected=theirs.get(name), got=value,
                )  # fmt: skip

    def _exact_path(self) -> Path:
        if self._directory is not None:
            return self._directory / "exact.sqlite"
        self._temporary = TemporaryDirectory(prefix="bloomtide-")
        return Path(self._temporary.name) / "exact.sqlite"

    def _filter(self) -> ScalableBloomFilter | RecentFilter | BloomFilter:
        options, ledger = self.options, self._ledger
        if options.shared is not None:
            return self._shared(options.shared)
        if ledger is not None and ledger.snapshot is not None:
            path = ledger.snapshot / _FILE
            try:
                if options.revisit is None:
                    return ScalableBloomFilter.load(path)
                return RecentFilter.load(path, clock=self._clock)
            except (SnapshotError, StorageError) as error:
                if self._exact is None or options.revisit is not None:
                    raise SnapshotError(
                        f"{path} cannot be read: {error.message}",
                        hint=f"restore it, or remove {self._directory} to crawl its pages again",
                        path=str(path),
                    ) from error
                # The set on disk has every key that the filter had.
        return self._rebuilt()

    def _shared(self, path: Path) -> BloomFilter:
        """A file knows its own size; what a project has set itself must agree with it."""
        sizes = {"capacity": self.options.capacity, "error_rate": self.options.error_rate}
        if path.exists():
            sizes = {name: size for name, size in sizes.items() if name in self.options.stated}
        try:
            return BloomFilter.open(path, mode="c", **sizes)  # type: ignore[arg-type]
        except IncompatibleError as error:
            name = f"BLOOMTIDE_{error.field.upper()}"
            raise IncompatibleError(
                f"{path} was made with another `{name}`: {error.expected}, not {error.got}",
                hint=f"set {name} to the file's, or leave it out",
                field=name, expected=error.expected, got=error.got,
            ) from error  # fmt: skip

    def _rebuilt(self) -> ScalableBloomFilter | RecentFilter:
        options = self.options
        if options.revisit is not None:
            return RecentFilter(
                options.capacity, options.error_rate, within=options.revisit, clock=self._clock
            )
        made = ScalableBloomFilter(options.capacity, options.error_rate)
        if self._exact is not None:
            made.add_many(iter(self._exact))
        return made

    def _replay(self, ledger: Ledger) -> None:
        records = (_RECORD.unpack(payload) for _, payload in ledger.replay())
        while chunk := list(islice(records, _CHUNK)):
            keys = [key for key, _ in chunk]
            if isinstance(self.filter, RecentFilter):
                self.filter.add_many(keys, [at for _, at in chunk])
            else:
                self.filter.add_many(keys)
            if self._exact is not None:
                self._exact.add_many(keys)
            self.replayed += len(keys)
        self._plan_snapshot(ledger)
        self.damaged_records = ledger.sequence - ledger.snapshot_sequence - self.replayed

    # --- asking and adding --------------------------------------------------------------------

    def __contains__(self, key: bytes) -> bool:
        if key not in self.filter:
            return False
        if self._exact is None or key in self._exact:
            return True
        self.rescued += 1
        return False

    def add(self, key: bytes) -> bool:
        """Adds a key that was not seen; False if another crawl was faster."""
        at = self._clock()
        # What the disk refuses is not in the filter either, so the next link to it counts again.
        number = -1 if self._ledger is None else self._ledger.append(_RECORD.pack(key, at))
        if self._exact is not None:
            self._exact.add(key)
        if isinstance(self.filter, RecentFilter):
            self.filter.add(key, at)
            new = True
        else:
            new = self.filter.add(key) or self.options.shared is None
        if number >= self._full_at:
            self.save()
        return new

    def stats(self) -> Stats:
        """What the filter is like."""
        return self.filter.stats()

    # --- saving -------------------------------------------------------------------------------

    def save(self) -> None:
        """Makes a snapshot, which takes the place of all records."""
        if self._exact is not None:
            self._exact.flush()
        ledger = self._ledger
        if ledger is not None:
            ledger.rewrite(lambda directory: self.filter.save(directory / _FILE))
            self.snapshots += 1
            self._plan_snapshot(ledger)

    def _plan_snapshot(self, ledger: Ledger) -> None:
        """When the journal is as large as the last one: each byte is written about twice."""
        path = None if ledger.snapshot is None else ledger.snapshot / _FILE
        size = path.stat().st_size if path is not None and path.exists() else 0
        self._full_at = ledger.snapshot_sequence + max(_LEAST_LOG, size) // _BYTES

    def close(self) -> None:
        """Saves, and lets go of every file."""
        try:
            self.save()
        finally:
            self._release()

    def _release(self) -> None:
        if self._exact is not None:
            self._exact.close()
        if self._ledger is not None:
            self._ledger.close()
        if self.options.shared is not None and hasattr(self, "filter"):
            cast(BloomFilter, self.filter).close()
        if self._temporary is not None:
            self._temporary.cleanup()
