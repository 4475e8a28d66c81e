"""The keys that processes share: no committed key is ever called absent by any of them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from bloomtide.errors import IncompatibleError, NotASnapshotError, ParameterError, StorageError
from bloomtide.guard.columns import subject_of
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.stats import State
from bloomtide.guard.writes.transaction import Key
from tests.guard.databases import BASKET
from tests.guard.neighbours import SUBJECT, Pair, says_absent
from tests.guard.test_key_filter import ABSENT, KEYS, scan_of

# --- sharing ------------------------------------------------------------------------------------


def test_what_one_built_all_can_ask(pair: Pair) -> None:
    for keys in pair:
        assert keys.state is State.READY
        assert keys.may_exist_many(KEYS).all()
        assert not keys.may_exist(ABSENT)
        assert keys.may_exist_many([0, ABSENT]).tolist() == [True, False]


def test_before_the_first_build_everything_may_exist(attach: Callable[[], KeyFilter]) -> None:
    keys = attach()
    assert keys.state is State.UNKNOWN
    assert keys.may_exist(ABSENT)
    assert keys.may_exist_many([ABSENT]).all()
    assert keys.due() == "not built yet"


def test_what_one_writes_all_see_at_once(pair: Pair) -> None:
    for writer, reader in (pair, reversed(pair)):
        key = f"by {id(writer)}"
        assert not reader.may_exist(key)
        writer.begin().write([key])
        assert reader.may_exist(key)


def test_a_rebuild_reaches_everybody(pair: Pair) -> None:
    assert pair[1].rebuild(scan_of(["other"]))
    for keys in pair:
        assert keys.may_exist("other")
        assert not keys.may_exist(0), "the new filter is in use"
    assert [keys.stats().rebuilds for keys in pair] == [2, 2]


def test_unseen_writes_of_one_let_everything_pass_everywhere_until_anyone_rebuilds(
    pair: Pair,
) -> None:
    pair[1].distrust("text()")
    for keys in pair:
        assert (keys.state, keys.stats().reason) == (State.DEGRADED, "text()")
    assert says_absent(*pair) == [False, False]
    assert pair[1].rebuild(scan_of(KEYS))
    assert says_absent(*pair) == [True, True]


def test_keys_that_are_not_fresh_let_everything_pass_in_all_processes(pair: Pair) -> None:
    pair[0].place.fresh_until = time.monotonic() - 1
    assert [keys.state for keys in pair] == [State.DEGRADED, State.DEGRADED]
    assert [keys.trusted for keys in pair] == [False, False]
    assert "followed" in pair[1].stats().reason
    pair[1].place.fresh_until = time.monotonic() + 1000
    assert [keys.trusted for keys in pair] == [True, True]


def test_a_commit_that_nothing_follows_ends_for_others_as_well(pair: Pair) -> None:
    """Its connection is used no more, so the driver is asked."""
    builder, writer = pair
    driver = sqlite3.connect(":memory:", check_same_thread=False)
    driver.execute("CREATE TABLE t (k)")
    driver.execute("INSERT INTO t VALUES (1)")
    transaction = writer.begin(driver)
    transaction.write(["early"])
    writer.committing(transaction)
    assert writer._sections
    driver.commit()
    assert builder.rebuild(scan_of(KEYS)), "it has waited until that was noticed"
    driver.close()


# --- writes that overlap with a build -----------------------------------------------------------


def test_a_key_written_during_a_build_is_in_the_new_filter(writer_and_builder: Pair) -> None:
    writer, builder = writer_and_builder
    transaction = writer.begin()
    assert builder.rebuild(scan_of(KEYS, lambda: transaction.write(["late"])))
    assert builder.may_exist("late")


def test_a_key_written_before_a_build_and_committed_after_it_is_not_lost(
    writer_and_builder: Pair,
) -> None:
    writer, builder = writer_and_builder
    transaction = writer.begin()
    transaction.write(["early"])
    assert builder.rebuild(scan_of(KEYS))
    writer.committing(transaction)
    assert builder.may_exist("early"), "before the commit is sent"
    transaction.end()


def test_a_transaction_is_not_told_that_what_it_wrote_is_absent(writer_and_builder: Pair) -> None:
    writer, builder = writer_and_builder
    transaction = writer.begin()
    transaction.write(["mine"])
    assert builder.rebuild(scan_of(KEYS))
    assert writer.may_exist("mine")
    blind = writer.begin()
    blind.see_nothing("text()")
    assert not builder.rebuild(scan_of(KEYS))
    assert writer.may_exist("whatever it wrote")
    blind.end()
    transaction.end()


def test_later_keys_of_a_transaction_bring_the_earlier_ones_along(pair: Pair) -> None:
    builder, writer = pair
    transaction = writer.begin()
    transaction.write(["first"])
    assert builder.rebuild(scan_of(KEYS))
    transaction.write(["second"])
    assert builder.may_exist_many(["first", "second"]).all()


def test_a_build_waits_for_the_commits_of_others_before_it_scans(pair: Pair) -> None:
    """Whose key is not in the new filter is in the scan: the commit comes first."""
    builder, writer = pair
    table: list[Key] = []
    transaction = writer.begin()
    transaction.write(["early"])
    writer.committing(transaction)
    waited: list[float] = []

    def commit_now(seconds: float) -> None:
        if not waited:
            table.append("early")
            transaction.end()
        waited.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bloomtide.guard.filter.locks.time.sleep", commit_now)
        assert builder.rebuild(scan_of(table))
    assert waited, "the scan would have been too early"
    assert builder.may_exist("early")


def test_a_build_takes_along_the_commits_of_its_own_process(pair: Pair) -> None:
    """It does not wait for them: its own thread may be in the midst of one."""
    builder, neighbour = pair
    transaction = builder.begin()
    transaction.write(["early"])
    builder.committing(transaction)
    assert builder.rebuild(scan_of(KEYS))
    assert neighbour.may_exist("early")
    transaction.end()


def test_a_build_does_not_wait_for_ever(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, writer = pair
    transaction = writer.begin()
    transaction.write(["stuck"])
    writer.committing(transaction)
    monkeypatch.setattr("bloomtide.guard.filter.files._PATIENCE", 0.02)
    for _ in range(2):
        with pytest.raises(StorageError, match="does not end"):
            builder.rebuild(scan_of(KEYS))
        assert says_absent(*pair) == [True, True], "the filter in use is as good as before"
    transaction.end()
    assert builder.rebuild(scan_of([*KEYS, "stuck"]))
    assert builder.may_exist("stuck")


def test_an_unseen_write_during_a_build_makes_it_start_again(writer_and_builder: Pair) -> None:
    writer, builder = writer_and_builder
    table: list[Key] = []

    def unseen_write() -> None:
        if not table:
            writer.distrust("text()")
            table.append("unseen")

    assert builder.rebuild(scan_of(table, unseen_write))
    assert builder.may_exist("unseen")
    assert not builder.may_exist(ABSENT)


def test_unseen_writes_during_every_attempt_leave_the_guard_passing(
    writer_and_builder: Pair,
) -> None:
    writer, builder = writer_and_builder
    assert not builder.rebuild(scan_of(KEYS, lambda: writer.distrust("text()")))
    assert says_absent(writer, builder) == [False, False]


def test_no_build_is_valid_beside_an_unseen_write_of_another_process(pair: Pair) -> None:
    """However it is committed: by the driver itself, nobody hears of it."""
    builder, writer = pair
    transaction = writer.begin()
    transaction.see_nothing("text()")
    assert not builder.rebuild(scan_of(KEYS))
    assert says_absent(*pair) == [False, False]
    transaction.end()
    assert builder.rebuild(scan_of([*KEYS, "unseen"]))
    assert says_absent(*pair) == [True, True]


def test_a_transaction_of_too_many_keys_ends_the_trust_if_a_filter_came_in_between(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomtide.guard.writes.transaction.OpenTransaction.most", 10)
    builder, writer = pair
    transaction = writer.begin()
    transaction.write(list(range(5000, 5020)))
    assert says_absent(*pair) == [True, True], "the filter in use has all of its keys"
    assert builder.rebuild(scan_of(KEYS))
    assert says_absent(writer) == [False], "its own keys are not in the new one"
    writer.committing(transaction)
    assert says_absent(*pair) == [False, False]
    transaction.end()


def test_the_keys_of_a_commit_that_broke_off_are_in_every_later_filter(
    writer_and_builder: Pair,
) -> None:
    writer, builder = writer_and_builder
    perhaps: list[Key] = ["perhaps", 1 << 40, b"perhaps", '"\n']
    transaction = writer.begin()
    transaction.write(perhaps)
    writer.committing(transaction)
    transaction.end_uncertain()
    for _ in range(2):
        assert builder.rebuild(scan_of(KEYS))
        assert builder.may_exist_many(perhaps).all()
        assert not builder.may_exist(ABSENT)


def test_a_scan_that_fails_changes_nothing_and_leaves_no_file(pair: Pair, tmp_path: Path) -> None:
    def fail() -> None:
        raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        pair[0].rebuild(scan_of([], fail))
    assert pair[1].may_exist_many(KEYS).all()
    assert says_absent(*pair) == [True, True]
    assert not pair[1].stats().rebuilding
    assert [file.name for file in (tmp_path / "guard").glob("keys-*")] == ["keys-1"]


def test_who_waited_for_a_builder_takes_what_it_built(
    attach: Callable[[], KeyFilter],
) -> None:
    first, second = attach(), attach()
    scans: list[str] = []

    def scan(name: str, meanwhile: Callable[[], object] | None = None) -> object:
        scans.append(name)
        return scan_of(KEYS, meanwhile)()

    class Waits:
        """Lets the neighbour build while this one waits for its turn."""

        def __enter__(self) -> None:
            first.rebuild(lambda: scan("first"))  # type: ignore[arg-type, return-value]

        def __exit__(self, *exc: object) -> None: ...

    second._one_build = Waits()  # type: ignore[assignment]
    assert second.rebuild(lambda: scan("second"))  # type: ignore[arg-type, return-value]
    assert scans == ["first"]
    assert says_absent(second) == [True]


# --- what is worth a rebuild --------------------------------------------------------------------


def test_a_filter_that_became_too_small_is_due(pair: Pair) -> None:
    assert pair[0].due() == ""
    pair[1].add_many([f"more {number}" for number in range(20_000)])
    assert "error" in pair[0].due()


def test_deleted_rows_of_all_processes_are_counted(pair: Pair) -> None:
    pair[0].count_stale(150)
    pair[1].count_stale(150)
    assert pair[0].stats().stale == pair[1].stats().stale == 300
    assert "rows are gone" in pair[1].due()
    assert pair[0].rebuild(scan_of(KEYS))
    assert pair[1].stats().stale == 0


# --- whose directory it is ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error_rate", "subject", "field"),
    [
        (0.01, SUBJECT, "error_rate"),
        (1e-6, SUBJECT | {"table": "customer"}, "table"),
        (1e-6, SUBJECT | {"columns": ["customer", "shop"]}, "columns"),
        (1e-6, {"table": "basket"}, "columns"),
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_the_directory_of_another_guard_is_refused(
    pair: Pair, tmp_path: Path, error_rate: float, subject: dict[str, object], field: str,
    alone: bool,
) -> None:  # fmt: skip
    if alone:
        for keys in pair:
            keys.detach()
    with pytest.raises(IncompatibleError) as caught:
        KeyFilter(error_rate, shared=tmp_path / "guard", subject=subject)
    assert caught.value.field == field
    if not alone:
        assert says_absent(*pair) == [True, True], "and those who are there notice nothing"


def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as caught:
        KeyFilter(shared=tmp_path / "file" / "guard")
    assert "directory" in caught.value.hint


def test_a_header_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "header.json").write_text("basket")
    with pytest.raises(NotASnapshotError):
        KeyFilter(shared=tmp_path)


@pytest.mark.parametrize(("field", "value"), [("error_rate", 0), ("capacity", 0)])
def test_bad_parameters_are_refused_before_anything_is_made(
    tmp_path: Path, field: str, value: object
) -> None:
    with pytest.raises(ParameterError, match=field):
        KeyFilter(shared=tmp_path / "guard", **{field: value})  # type: ignore[arg-type]
    assert not (tmp_path / "guard").exists()


def test_the_header_says_whose_keys_these_are(pair: Pair, tmp_path: Path) -> None:
    header = json.loads((tmp_path / "guard" / "header.json").read_text())
    assert header.pop("crc32c")
    assert header == {**SUBJECT, "format": "shared guard", "version": 1, "error_rate": 1e-6}


def test_another_normal_is_told_by_its_name_and_its_code() -> None:
    engine, column = create_engine("sqlite:///shop.db"), BASKET.c.note
    normals: list[Any] = [str.lower, str.upper, lambda v: v.lower(), lambda v: v.upper()]
    normals += [lambda v: v + "a", lambda v: v + "b"]
    names = [subject_of(engine, [column], (), normal)["normal"] for normal in normals]
    assert len(set(names)) == len(normals)
    assert all("0x" not in name for name in names), "the same in every process"
