"""The keys a guard holds: no committed key is ever called absent, whatever overlaps with a build.

Here a transaction is three calls, so each order of events that matters can be written down.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bloomtide.errors import ParameterError
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.filter.locks import FileLock
from bloomtide.guard.stats import State
from bloomtide.guard.writes.transaction import Key
from tests.waiting import until

KEYS: list[Key] = list(range(1000))
ABSENT = -1


def scan_of(
    keys: Sequence[Key], meanwhile: Callable[[], object] | None = None
) -> Callable[[], Iterator[Sequence[Key]]]:
    """Reads the keys as they are now, in two batches; something may happen in between."""

    def scan() -> Iterator[Sequence[Key]]:
        seen = list(keys)
        yield seen[: len(seen) // 2]
        if meanwhile is not None:
            meanwhile()
        yield seen[len(seen) // 2 :]

    return scan


def built(removals: str = "never") -> KeyFilter:
    keys = KeyFilter(1e-6, removals=removals)  # type: ignore[arg-type]
    assert keys.rebuild(scan_of(KEYS), expected=len(KEYS))
    return keys


def test_before_the_first_build_everything_may_exist() -> None:
    keys = KeyFilter()
    assert keys.state is State.UNKNOWN
    assert keys.may_exist(ABSENT)
    assert keys.may_exist_many([ABSENT, 1]).all()


def test_after_a_build_absent_keys_are_absent_and_the_others_are_not() -> None:
    keys = built()
    assert keys.state is State.READY
    assert not keys.may_exist(ABSENT)
    assert keys.may_exist_many(KEYS).all()
    assert keys.may_exist_many([0, ABSENT]).tolist() == [True, False]


def test_a_first_build_that_goes_on_answers_nothing() -> None:
    keys = KeyFilter(1e-6)
    seen: list[tuple[State, bool]] = []
    keys.rebuild(scan_of(KEYS, lambda: seen.append((keys.state, keys.may_exist(ABSENT)))))
    assert seen == [(State.BUILDING, True)]


def test_during_a_rebuild_the_old_filter_answers() -> None:
    keys = built()
    seen: list[tuple[State, bool]] = []
    keys.rebuild(scan_of(KEYS, lambda: seen.append((keys.state, keys.may_exist(ABSENT)))))
    assert seen == [(State.READY, False)]


def test_a_key_added_during_a_build_is_in_the_new_filter() -> None:
    keys = built()
    assert keys.rebuild(scan_of([], lambda: keys.add_many(["late"])))
    assert keys.may_exist("late")
    assert not keys.may_exist(0), "the new filter is in use"


def test_a_key_written_before_a_build_and_committed_after_its_scan_is_not_lost() -> None:
    keys = built()
    writer = keys.begin()
    writer.write(["early"])
    assert keys.rebuild(scan_of(KEYS))
    writer.end()
    assert keys.may_exist("early")


def test_a_key_whose_commit_runs_while_a_build_starts_is_not_lost() -> None:
    keys = built()
    writer = keys.begin()
    writer.write(["early"])
    assert keys.rebuild(scan_of(KEYS))
    writer.end()
    assert keys.may_exist("early")


class _Interrupted(KeyFilter):
    """Something happens just before a writer looks which filters there are, or one is shown."""

    before_look: Callable[[], object] | None = None
    before_show: Callable[[], object] | None = None

    def _live(self) -> set[int]:
        meanwhile, self.before_look = self.before_look, None
        if meanwhile is not None:
            meanwhile()
        return super()._live()

    def _show(self, number: int) -> None:
        meanwhile, self.before_show = self.before_show, None
        if meanwhile is not None:
            meanwhile()
        super()._show(number)


def test_a_whole_build_between_listing_a_key_and_adding_it_does_not_lose_it() -> None:
    keys = _Interrupted(1e-6)
    assert keys.rebuild(scan_of(KEYS))

    def build() -> None:
        assert keys.rebuild(scan_of(KEYS))
        assert keys.may_exist("listed"), "the build has looked at the list"

    keys.before_look = build
    keys.begin().write(["listed"])
    assert keys.stats().rebuilds == 2
    assert keys.may_exist("listed")


def test_a_build_that_ends_while_a_writer_looks_for_its_filters_does_not_lose_the_key() -> None:
    keys = _Interrupted(1e-6)
    assert keys.rebuild(scan_of(KEYS))
    reading, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reading.set()
        assert go_on.wait(10)

    build = threading.Thread(target=lambda: keys.rebuild(scan_of(KEYS, wait)))
    build.start()
    assert reading.wait(10)

    keys.before_look = go_on.set
    keys.begin().write(["late"])
    build.join(10)
    assert keys.stats().rebuilds == 2, "the new filter is in use"
    assert keys.may_exist("late")


def test_a_key_written_just_before_a_build_shows_its_filter_is_not_lost() -> None:
    keys = _Interrupted(1e-6)
    writer = keys.begin()
    keys.before_show = lambda: writer.write(["early"])
    assert keys.rebuild(scan_of(KEYS))
    assert keys.may_exist("early")
    assert not keys.may_exist(ABSENT)


@pytest.mark.parametrize("end", ["end", "end_uncertain"])
def test_what_ended_does_not_follow_into_the_next_transaction(end: str) -> None:
    keys = built()
    writer = keys.begin()
    writer.write(["first"])
    writer.see_nothing("text()")
    getattr(writer, end)()
    assert writer.keys == []
    assert keys.rebuild(scan_of(KEYS)), "it is blind no more"
    assert keys.may_exist("first") == (end == "end_uncertain")
    writer.write(["second"])
    assert keys.rebuild(scan_of(KEYS))
    assert keys.may_exist("second")


def test_a_forked_copy_that_hears_of_no_other_process_passes_everything_and_builds_no_more() -> (
    None
):
    keys = built()
    keys.after_fork()
    assert keys.state is State.DEGRADED
    assert keys.may_exist(ABSENT)
    assert keys.due() == ""
    with pytest.raises(ParameterError, match="made before a fork"):
        keys.refuse_orphan()


def test_after_a_fork_an_inherited_connection_begins_with_nothing_and_is_seen(
    tmp_path: Path,
) -> None:
    keys = KeyFilter(1e-6, shared=tmp_path / "guard")
    assert keys.rebuild(scan_of(KEYS))
    writer = keys.begin()
    writer.see_nothing("text()")
    keys.after_fork()
    assert keys.rebuild(scan_of(KEYS)), "what the parent wrote is up to the parent"
    writer.write(["child's"])
    assert keys.rebuild(scan_of(KEYS))
    assert keys.may_exist("child's")


def test_unseen_writes_let_everything_pass_until_a_rebuild() -> None:
    keys = built()
    keys.distrust("text()")
    assert (keys.state, keys.stats().reason) == (State.DEGRADED, "text()")
    assert keys.may_exist(ABSENT)
    assert keys.rebuild(scan_of(KEYS))
    assert not keys.may_exist(ABSENT)


def test_an_unseen_write_during_a_build_makes_it_start_again() -> None:
    keys = KeyFilter(1e-6)
    table: list[Key] = []
    happened: list[str] = []

    def unseen_write() -> None:
        if not happened:
            happened.append("once")
            keys.distrust("text()")
            table.append("unseen")

    assert keys.rebuild(scan_of(table, unseen_write))
    assert keys.may_exist("unseen")
    assert not keys.may_exist(ABSENT)


def test_unseen_writes_during_every_attempt_leave_the_guard_passing() -> None:
    keys = KeyFilter(1e-6)
    assert not keys.rebuild(scan_of(KEYS, lambda: keys.distrust("text()")))
    assert keys.state is State.UNKNOWN
    assert keys.may_exist(ABSENT)


def test_no_build_is_valid_while_an_unseen_write_is_not_committed() -> None:
    keys = built()
    writer = keys.begin()
    writer.see_nothing("text()")
    assert not keys.rebuild(scan_of(KEYS))
    assert keys.may_exist(ABSENT)
    writer.end()
    assert keys.rebuild(scan_of([*KEYS, "unseen"]))
    assert keys.may_exist("unseen")
    assert not keys.may_exist(ABSENT)


def test_a_key_written_after_an_end_that_nobody_has_noticed_is_added() -> None:
    keys = built()
    driver = sqlite3.connect(":memory:")
    writer = keys.begin(driver)
    writer.write(["before"])
    writer.see_nothing("text()")
    assert keys.rebuild(scan_of(KEYS)), "the driver says that it has ended"
    assert not keys.may_exist("next")
    driver.execute("BEGIN")
    assert keys.rebuild(scan_of(KEYS)) is False, "it may write unseen keys again"
    assert not keys.may_exist("next"), "the filter in use is as good as before"
    writer.write(["next"])
    assert keys.may_exist("next")
    driver.close()


def test_a_dropped_transaction_does_not_stand_in_the_way_for_ever() -> None:
    keys = built()
    keys.begin().see_nothing("text()")
    assert keys.rebuild(scan_of(KEYS))


def test_no_build_is_valid_beside_a_transaction_of_too_many_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bloomtide.guard.writes.transaction.OpenTransaction.most", 10)
    keys = built()
    writer = keys.begin()
    writer.write(list(range(5000, 5020)))
    assert keys.may_exist(5000)
    assert not keys.may_exist(ABSENT), "the filter in use has all of its keys"
    assert not keys.rebuild(scan_of(KEYS))
    assert not keys.may_exist(ABSENT), "and stays in use"
    writer.end()
    assert keys.rebuild(scan_of(KEYS))


def test_the_keys_of_a_commit_that_broke_off_are_in_every_later_filter() -> None:
    keys = built()
    writer = keys.begin()
    writer.write(["perhaps"])
    writer.end_uncertain()
    for _ in range(2):
        assert keys.rebuild(scan_of(KEYS))
        assert keys.may_exist("perhaps")


def test_while_held_everything_passes() -> None:
    keys = built()
    keys.hold(1)
    assert keys.may_exist(ABSENT)
    assert keys.rebuild(scan_of(KEYS))
    assert keys.may_exist(ABSENT), "a new filter does not end it"
    keys.hold(-1)
    assert not keys.may_exist(ABSENT)


def test_a_scan_that_fails_changes_nothing() -> None:
    keys = built()

    def fail() -> None:
        raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        keys.rebuild(scan_of([], fail))
    assert keys.may_exist_many(KEYS).all()
    assert not keys.may_exist(ABSENT)
    assert not keys.stats().rebuilding


def test_progress_is_told_after_each_batch() -> None:
    told: list[tuple[int, int | None]] = []
    KeyFilter().rebuild(
        scan_of(KEYS), expected=1000, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(500, 1000), (1000, 1000)]


# --- removals -----------------------------------------------------------------------------------


def remove(keys: KeyFilter, wanted: list[Key], gone: list[Key] | None = None) -> None:
    """The database is asked for the keys of deleted rows, and has no row of some."""
    asked = keys.removable(wanted)
    keys.remove_many(set(asked) if gone is None else gone, asked)


def test_a_key_of_which_the_database_has_no_row_is_absent() -> None:
    keys = built("commit")
    remove(keys, [5, 6], gone=[5])
    assert keys.may_exist_many([4, 5, 6]).tolist() == [True, False, True]
    assert not keys.may_exist(5)
    assert keys.stats().removed == 1


def test_a_key_that_an_open_transaction_has_written_is_not_removed() -> None:
    keys = built("commit")
    writer = keys.begin()
    writer.write([5])
    remove(keys, [5])
    assert keys.may_exist(5)
    writer.end()
    remove(keys, [5])
    assert not keys.may_exist(5)


def test_a_key_that_is_written_while_the_database_is_asked_is_not_removed() -> None:
    keys = built("commit")
    asked = keys.removable([5])
    keys.begin().write([5])
    keys.remove_many([5], asked)
    assert keys.may_exist(5)


def test_an_answer_is_too_late_if_the_key_was_written_since_even_if_somebody_asks_again() -> None:
    keys = built("commit")
    early = keys.removable([5])
    writer = keys.begin()
    writer.write([5])
    writer.end()
    late = keys.removable([5])
    keys.remove_many([5], early)
    assert keys.may_exist(5)
    keys.remove_many([], late)
    assert keys.may_exist(5)


def test_a_removed_key_that_is_written_again_is_there() -> None:
    keys = built("commit")
    remove(keys, [5, 6])
    keys.begin().write([5])
    keys.add_many([6])
    assert keys.may_exist_many([5, 6]).all()


@pytest.mark.parametrize("spoil", ["distrust", "rebuild"])
def test_an_answer_of_the_database_counts_only_for_the_filter_in_use(spoil: str) -> None:
    keys = built("commit")
    asked = keys.removable([5])
    if spoil == "distrust":
        keys.distrust("text()")
    assert keys.rebuild(scan_of(KEYS)), "somebody has written 5 again"
    keys.remove_many([5], asked)
    assert keys.may_exist(5)


def test_nothing_is_removed_beside_a_transaction_whose_keys_are_not_known() -> None:
    keys = built("commit")
    writer = keys.begin()
    writer.see_nothing("text()")
    assert keys.removable([5]) == set()


def test_the_keys_of_a_transaction_that_broke_off_are_not_removed() -> None:
    keys = built("commit")
    writer = keys.begin()
    writer.write([5])
    writer.end_uncertain()
    remove(keys, [5])
    assert keys.may_exist(5)


def test_rows_whose_keys_stay_are_counted_as_stale() -> None:
    keys = built()
    keys.count_stale(300)
    assert keys.may_exist_many(KEYS).all()
    assert keys.stats().stale == 300
    assert "rows are gone" in keys.due()
    keys.rebuild(scan_of(KEYS[300:]))
    assert keys.due() == ""
    assert keys.stats().stale == 0


def test_keys_that_are_not_fresh_are_not_trusted() -> None:
    keys = built()
    keys.place.fresh_until = time.monotonic() - 1
    assert [keys.trusted] == [False]
    assert (keys.state, keys.stats().state) == (State.DEGRADED, State.DEGRADED)
    assert "followed" in keys.stats().reason
    keys.place.fresh_until = time.monotonic() + 1000
    assert [keys.trusted] == [True]
    assert keys.state is State.READY


def test_a_filter_grows_and_keeps_its_error() -> None:
    keys = KeyFilter(0.01)
    keys.rebuild(scan_of([]))
    keys.add_many(list(range(50_000)))
    assert keys.due() == ""
    assert keys.stats().predicted_error <= 0.01


@pytest.mark.parametrize(
    ("field", "value"), [("error_rate", 0), ("error_rate", 2), ("capacity", 0), ("removals", "now")]
)
def test_bad_parameters_are_refused_at_once(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=field):
        KeyFilter(**{field: value})  # type: ignore[arg-type]


class Driver:
    """A connection of a driver, as far as a transaction looks at it."""

    in_transaction = False


def is_held(directory: Path) -> bool:
    """Whether a builder would wait for a commit."""
    locks = [FileLock(directory / f"epoch-{side}") for side in (0, 1)]
    try:
        return not all(lock.try_take() for lock in locks)
    finally:
        for lock in locks:
            lock.close()


def glance() -> None:
    """Long enough for the thread that looks for commits that are over, every two milliseconds."""
    threading.Event().wait(0.05)


def test_the_end_of_one_commit_does_not_end_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, driver, late = KeyFilter(shared=tmp_path, subject={}), Driver(), threading.Event()
    transaction, landed = keys.begin(driver), KeyFilter.landed

    def slowly(self: KeyFilter, ended: object) -> None:
        if threading.current_thread().name == "bloomtide sections":
            late.wait(5)  # the next commit has begun meanwhile
        landed(self, ended)  # type: ignore[arg-type]

    monkeypatch.setattr(KeyFilter, "landed", slowly)
    driver.in_transaction = True
    keys.write(transaction, ["first"])
    keys.committing(transaction)
    driver.in_transaction = False
    glance()
    transaction.end()
    driver.in_transaction = True
    keys.write(transaction, ["second"])
    keys.committing(transaction)
    late.set()
    glance()
    assert is_held(tmp_path)
    driver.in_transaction = False
    transaction.end()
    assert not is_held(tmp_path)
    keys.detach()


def test_a_commit_that_has_yet_to_come_back_is_not_over(tmp_path: Path) -> None:
    keys, driver = KeyFilter(shared=tmp_path, subject={}), Driver()
    transaction = keys.begin(driver)
    keys.write(transaction, ["key"])
    transaction.commits = lambda: True  # SQLite's driver calls it ended already
    keys.committing(transaction)
    glance()
    assert is_held(tmp_path)
    transaction.commits = lambda: False
    assert until(lambda: not is_held(tmp_path))
    keys.detach()
