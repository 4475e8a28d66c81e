"""The keys a guard holds: no committed key is ever called absent, whatever overlaps with a build.

Here a transaction is three calls, so each order of events that matters can be written down.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from bloomtide.errors import ParameterError
from bloomtide.guard.held import HeldKeys
from bloomtide.guard.pending import Key
from bloomtide.guard.state import State

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


def built(removals: str = "never") -> HeldKeys:
    held = HeldKeys(1e-6, removals=removals)  # type: ignore[arg-type]
    assert held.rebuild(scan_of(KEYS), expected=len(KEYS))
    return held


def test_before_the_first_build_everything_may_exist() -> None:
    held = HeldKeys()
    assert held.state is State.UNKNOWN
    assert held.may_exist(ABSENT)
    assert held.may_exist_many([ABSENT, 1]).all()


def test_after_a_build_absent_keys_are_absent_and_the_others_are_not() -> None:
    held = built()
    assert held.state is State.READY
    assert not held.may_exist(ABSENT)
    assert held.may_exist_many(KEYS).all()
    assert held.may_exist_many([0, ABSENT]).tolist() == [True, False]


def test_a_first_build_that_goes_on_answers_nothing() -> None:
    held = HeldKeys(1e-6)
    seen: list[tuple[State, bool]] = []
    held.rebuild(scan_of(KEYS, lambda: seen.append((held.state, held.may_exist(ABSENT)))))
    assert seen == [(State.BUILDING, True)]


def test_during_a_rebuild_the_old_filter_answers() -> None:
    held = built()
    seen: list[tuple[State, bool]] = []
    held.rebuild(scan_of(KEYS, lambda: seen.append((held.state, held.may_exist(ABSENT)))))
    assert seen == [(State.READY, False)]


def test_a_key_added_during_a_build_is_in_the_new_filter() -> None:
    held = built()
    assert held.rebuild(scan_of([], lambda: held.add_many(["late"])))
    assert held.may_exist("late")
    assert not held.may_exist(0), "the new filter is in use"


def test_a_key_written_before_a_build_and_committed_after_its_scan_is_not_lost() -> None:
    held = built()
    writer = held.begin()
    writer.add_many(["early"])
    assert held.rebuild(scan_of(KEYS))
    writer.committing()
    writer.committed()
    assert held.may_exist("early")


def test_a_key_whose_commit_runs_while_a_build_starts_is_not_lost() -> None:
    held = built()
    writer = held.begin()
    writer.add_many(["early"])
    writer.committing()
    assert held.rebuild(scan_of(KEYS))
    writer.committed()
    assert held.may_exist("early")


class _Interrupted(HeldKeys):
    """Something happens just before a writer looks which filters there are, or one is shown."""

    before_look: Callable[[], object] | None = None
    before_show: Callable[[], object] | None = None

    @property
    def _live(self) -> Any:
        meanwhile, self.before_look = self.before_look, None
        if meanwhile is not None:
            meanwhile()
        return vars(self)["live"]

    @_live.setter
    def _live(self, filters: Any) -> None:
        meanwhile, self.before_show = self.before_show, None
        if meanwhile is not None:
            meanwhile()
        vars(self)["live"] = filters


def test_a_whole_build_between_listing_a_key_and_adding_it_does_not_lose_it() -> None:
    held = _Interrupted(1e-6)
    assert held.rebuild(scan_of(KEYS))

    def build() -> None:
        assert held.rebuild(scan_of(KEYS))
        assert held.may_exist("listed"), "the build has looked at the list"

    held.before_look = build
    held.begin().add_many(["listed"])
    assert held.stats().rebuilds == 2
    assert held.may_exist("listed")


def test_a_build_that_ends_while_a_writer_looks_for_its_filters_does_not_lose_the_key() -> None:
    held = _Interrupted(1e-6)
    assert held.rebuild(scan_of(KEYS))
    reading, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reading.set()
        assert go_on.wait(10)

    build = threading.Thread(target=lambda: held.rebuild(scan_of(KEYS, wait)))
    build.start()
    assert reading.wait(10)

    def end_build() -> None:
        go_on.set()
        build.join(10)

    held.before_look = end_build
    held.begin().add_many(["late"])
    assert held.stats().rebuilds == 2, "the new filter is in use"
    assert held.may_exist("late")


def test_a_key_written_just_before_a_build_shows_its_filter_is_not_lost() -> None:
    held = _Interrupted(1e-6)
    writer = held.begin()
    held.before_show = lambda: writer.add_many(["early"])
    assert held.rebuild(scan_of(KEYS))
    assert held.may_exist("early")
    assert not held.may_exist(ABSENT)


@pytest.mark.parametrize("end", ["committed", "rolled_back", "uncertain"])
def test_what_ended_does_not_follow_into_the_next_transaction(end: str) -> None:
    held = built()
    writer = held.begin()
    writer.add_many(["first"])
    writer.see_nothing("text()")
    getattr(writer, end)()
    assert writer.keys == []
    assert held.rebuild(scan_of(KEYS)), "it is blind no more"
    assert held.may_exist("first") == (end == "uncertain")
    writer.add_many(["second"])
    assert held.rebuild(scan_of(KEYS))
    assert held.may_exist("second")


def test_after_a_fork_an_inherited_connection_begins_with_nothing_and_is_seen() -> None:
    held = built()
    writer = held.begin()
    writer.see_nothing("text()")
    held.after_fork()
    assert held.rebuild(scan_of(KEYS)), "what the parent wrote is up to the parent"
    writer.add_many(["child's"])
    assert held.rebuild(scan_of(KEYS))
    assert held.may_exist("child's")


def test_unseen_writes_let_everything_pass_until_a_rebuild() -> None:
    held = built()
    held.distrust("text()")
    assert (held.state, held.stats().reason) == (State.DEGRADED, "text()")
    assert held.may_exist(ABSENT)
    assert held.rebuild(scan_of(KEYS))
    assert not held.may_exist(ABSENT)


def test_an_unseen_write_during_a_build_makes_it_start_again() -> None:
    held = HeldKeys(1e-6)
    table: list[Key] = []
    happened: list[str] = []

    def unseen_write() -> None:
        if not happened:
            happened.append("once")
            held.distrust("text()")
            table.append("unseen")

    assert held.rebuild(scan_of(table, unseen_write))
    assert held.may_exist("unseen")
    assert not held.may_exist(ABSENT)


def test_unseen_writes_during_every_attempt_leave_the_guard_passing() -> None:
    held = HeldKeys(1e-6)
    assert not held.rebuild(scan_of(KEYS, lambda: held.distrust("text()")))
    assert held.state is State.UNKNOWN
    assert held.may_exist(ABSENT)


def test_no_build_is_valid_while_an_unseen_write_is_not_committed() -> None:
    held = built()
    writer = held.begin()
    writer.see_nothing("text()")
    assert not held.rebuild(scan_of(KEYS))
    assert held.may_exist(ABSENT)
    writer.committed()
    assert held.rebuild(scan_of([*KEYS, "unseen"]))
    assert held.may_exist("unseen")
    assert not held.may_exist(ABSENT)


def test_a_dropped_transaction_does_not_stand_in_the_way_for_ever() -> None:
    held = built()
    held.begin().see_nothing("text()")
    assert held.rebuild(scan_of(KEYS))


def test_no_build_is_valid_beside_a_transaction_of_too_many_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bloomtide.guard.pending.Pending.most", 10)
    held = built()
    writer = held.begin()
    writer.add_many(list(range(5000, 5020)))
    assert held.may_exist(5000)
    assert not held.may_exist(ABSENT), "the filter in use has all of its keys"
    assert not held.rebuild(scan_of(KEYS))
    assert not held.may_exist(ABSENT), "and stays in use"
    writer.committed()
    assert held.rebuild(scan_of(KEYS))


def test_the_keys_of_a_commit_that_broke_off_are_in_every_later_filter() -> None:
    held = built()
    writer = held.begin()
    writer.add_many(["perhaps"])
    writer.uncertain()
    for _ in range(2):
        assert held.rebuild(scan_of(KEYS))
        assert held.may_exist("perhaps")


def test_while_held_everything_passes() -> None:
    held = built()
    with held.hold():
        assert held.may_exist(ABSENT)
        assert held.rebuild(scan_of(KEYS))
        assert held.may_exist(ABSENT), "a new filter does not end it"
    assert not held.may_exist(ABSENT)


def test_a_scan_that_fails_changes_nothing() -> None:
    held = built()

    def fail() -> None:
        raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        held.rebuild(scan_of([], fail))
    assert held.may_exist_many(KEYS).all()
    assert not held.may_exist(ABSENT)
    assert not held.stats().rebuilding


def test_progress_is_told_after_each_batch() -> None:
    told: list[tuple[int, int | None]] = []
    HeldKeys().rebuild(
        scan_of(KEYS), expected=1000, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(500, 1000), (1000, 1000)]


# --- removals -----------------------------------------------------------------------------------


def test_a_key_is_taken_out_after_the_commit_and_not_before() -> None:
    held = built("commit")
    writer = held.begin()
    writer.remove_many([5])
    assert held.may_exist(5)
    writer.committed()
    assert not held.may_exist(5)
    assert held.stats().removed == 1


def test_a_rollback_takes_nothing_out() -> None:
    held = built("commit")
    writer = held.begin()
    writer.remove_many([5])
    writer.rolled_back()
    assert held.may_exist(5)


def test_a_rollback_to_a_savepoint_drops_only_what_came_after_it() -> None:
    held = built("commit")
    writer = held.begin()
    writer.remove_many([1])
    writer.savepoint("a")
    writer.remove_many([2])
    writer.savepoint("b")
    writer.remove_many([3])
    writer.rollback_to("a")
    writer.remove_many([4])
    writer.committed()
    assert held.may_exist_many([1, 2, 3, 4]).tolist() == [False, True, True, False]


def test_a_rollback_to_an_unknown_savepoint_takes_nothing_out() -> None:
    held = built("commit")
    writer = held.begin()
    writer.remove_many([1])
    writer.rollback_to("never set")
    writer.remove_many([2])
    writer.committed()
    assert held.may_exist_many([1, 2]).all()


def test_a_row_deleted_before_a_build_is_not_taken_out_of_the_new_filter() -> None:
    # The scan saw the row no more, so the key is not inside: taking it out would take others out.
    held = built("commit")
    writer = held.begin()
    writer.remove_many([5])
    assert held.rebuild(scan_of([key for key in KEYS if key != 5]), expected=len(KEYS))
    writer.committed()
    assert held.may_exist_many([key for key in KEYS if key != 5]).all()
    assert held.stats().stale == 1


def test_a_removal_that_makes_no_sense_ends_the_trust() -> None:
    held = built("commit")
    held.remove_many([ABSENT])
    assert held.state is State.DEGRADED
    assert held.may_exist(ABSENT)


def test_without_counters_removed_keys_stay_and_are_counted_as_stale() -> None:
    held = built()
    held.remove_many(KEYS[:300])
    assert held.may_exist_many(KEYS).all()
    assert held.stats().stale == 300
    assert "rows are gone" in held.due()
    held.rebuild(scan_of(KEYS[300:]))
    assert held.due() == ""
    assert held.stats().stale == 0


def test_a_filter_that_counts_is_due_when_it_holds_more_than_it_was_made_for() -> None:
    held = HeldKeys(0.01, removals="commit")
    held.rebuild(scan_of([]), expected=1000)
    assert held.due() == ""
    held.add_many(list(range(4000)))
    assert "error" in held.due()


def test_a_filter_without_counters_grows_and_keeps_its_error() -> None:
    held = HeldKeys(0.01)
    held.rebuild(scan_of([]))
    held.add_many(list(range(50_000)))
    assert held.due() == ""
    assert held.stats().predicted_error <= 0.01


@pytest.mark.parametrize(
    ("field", "value"), [("error_rate", 0), ("error_rate", 2), ("capacity", 0), ("removals", "now")]
)
def test_bad_parameters_are_refused_at_once(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=field):
        HeldKeys(**{field: value})  # type: ignore[arg-type]
