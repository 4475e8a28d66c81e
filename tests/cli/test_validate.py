"""`bloomtide validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bloomtide import BloomFilter
from tests.cli.command import filter_of, run


@pytest.mark.parametrize("kind", ["bloom", "scalable", "counting"])
def test_good_files_are_ok(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", kind)
    result = run("validate", file)
    assert result.stdout == f"{file}: ok, {kind}\n"
    assert result.stderr == ""


def test_every_bad_file_is_named_and_the_good_ones_too(tmp_path: Path) -> None:
    good = filter_of(tmp_path, ["a"], name="good")
    flipped = tmp_path / "flipped"
    data = bytearray(good.read_bytes())
    data[-20] ^= 1
    flipped.write_bytes(data)
    cut = tmp_path / "cut"
    cut.write_bytes(good.read_bytes()[:-1])
    result = run("validate", flipped, good, cut, tmp_path / "missing", code=2)
    assert result.stdout == f"{good}: ok, bloom\n"
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert [line.split(": ")[1] for line in errors] == [
        str(file) for file in (flipped, cut, tmp_path / "missing")
    ]
    assert all(line.count(str(flipped)) <= 1 for line in errors)


def test_json_is_one_report_for_each_file(tmp_path: Path) -> None:
    good = filter_of(tmp_path, ["a"], name="good")
    result = run("validate", good, tmp_path / "missing", "--json", code=2)
    first, second = json.loads(result.stdout)
    assert first == {"file": str(good), "ok": True, "kind": "bloom"}
    assert (second["ok"], second["code"]) == (False, "storage")


def test_a_file_that_is_open_for_writing_has_no_checksums_to_trust(tmp_path: Path) -> None:
    file = tmp_path / "f"
    with BloomFilter.open(file, 1000, 0.01, mode="c") as shared:
        shared.add("a")
        report = json.loads(run("validate", file, "--json", code=2).stdout)
        assert report[0]["code"] == "unsealed"
    run("validate", file)


def test_the_set_of_an_exact_state_is_named_as_what_it_is(tmp_path: Path) -> None:
    run("dedup", "--exact", "--state", tmp_path / "s", stdin=b"a\nb\n")
    assert "ok" in run("validate", tmp_path / "s").stdout
    result = run("validate", tmp_path / "s.exact", code=2)
    assert "the set of lines of a `dedup --exact` state" in result.stderr
    assert f"dedup --exact --state {tmp_path / 's'}" in result.stderr
    assert "other program" not in result.stderr
    (tmp_path / "other").write_bytes(b"SQLite format 3" + bytes(100))
    assert "other program" in run("validate", tmp_path / "other", code=2).stderr
