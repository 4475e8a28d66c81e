"""The benchmarks run, check what they time, and hide nothing. Tiny sizes; no speed is asserted."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import platform
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the benchmarks need pyarrow")

from benchmarks import (
    answers,
    counting,
    dedup,
    documents,
    engines,
    formula,
    membership,
    process,
    proof,
    starts,
)
from benchmarks.__main__ import main
from benchmarks.answers import WrongAnswerError
from benchmarks.binomial import interval
from benchmarks.engines import Engine
from benchmarks.engines.contract import Batch, Filter
from benchmarks.floors import Floor
from benchmarks.measure import Op, Timings, turns
from benchmarks.report import must_be
from benchmarks.run import QUICK
from benchmarks.workload import ABSENT_SET, KeySet, zipf_stream

# --- the keys


def test_key_sets_are_distinct_and_share_no_key() -> None:
    sets = [set(KeySet.of(number, 1000).fresh()) for number in (0, 1, ABSENT_SET)]
    assert [len(keys) for keys in sets] == [1000, 1000, 1000]
    assert not any(a & b for a, b in itertools.combinations(sets, 2))


def test_every_pass_gets_new_string_objects() -> None:
    keys = KeySet.of(0, 100)
    first, second = keys.fresh(), keys.fresh()
    assert first == second
    assert not {id(key) for key in first} & {id(key) for key in second}
    assert keys.arrow.to_pylist() == first


def test_the_stream_is_skewed_and_the_same_every_time() -> None:
    stream = zipf_stream(5000)
    assert stream.text == zipf_stream(5000).text
    (_, top), (_, second) = Counter(stream.fresh()).most_common(2)
    # The first two ranks have 1 / H and 2**-1.2 / H of the events, H the sum over 5,000 ranks.
    total = sum(rank**-1.2 for rank in range(1, 5001))
    for count, share in ((top, 1 / total), (second, 2**-1.2 / total)):
        low, high = interval(5000, share, 1e-9)
        assert low <= count <= high


# --- the statistics


@pytest.mark.parametrize(
    ("trials", "rate", "alpha"),
    [(50, 0.1, 0.05), (200, 0.01, 1e-3), (30, 0.7, 1e-4), (5, 0.5, 0.9)],
)
def test_the_binomial_interval_is_the_exact_one(trials: int, rate: float, alpha: float) -> None:
    p = Fraction(rate)
    chance = [math.comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)]
    half = Fraction(alpha) / 2
    low, high = interval(trials, rate, alpha)
    assert sum(chance[:low]) <= half < sum(chance[: low + 1])
    assert sum(chance[high + 1 :]) <= half < sum(chance[high:])


def test_the_interval_of_a_billion_trials_is_centred_and_narrow() -> None:
    low, high = interval(10**9, 0.01, 1e-6)
    sigma = math.sqrt(10**9 * 0.01 * 0.99)
    # 4.8916 standard deviations hold all but 1e-6 of a normal law, its limit here.
    assert low == pytest.approx(10**7 - 4.8916 * sigma, abs=10)
    assert high == pytest.approx(10**7 + 4.8916 * sigma, abs=10)


def test_the_blocked_formula_agrees_with_a_simulated_table() -> None:
    lines, hashes, bits_per_key = 4096, 8, 10.5
    random = np.random.default_rng(7)
    keys = int(lines * 512 / bits_per_key)
    table = np.zeros((lines, 8, 64), dtype=bool)
    words = np.arange(8)
    for line, bits in zip(
        random.integers(lines, size=keys), random.integers(64, size=(keys, 8)), strict=True
    ):
        table[line, words, bits] = True
    # Given the table, the error is known exactly: the mean over lines of the words' fills.
    error = float(np.prod(table.mean(axis=2), axis=1).mean())
    assert error == pytest.approx(formula.blocked_error(bits_per_key, hashes), rel=0.05)


def test_the_least_bits_meet_the_rate_and_no_fewer_do() -> None:
    for rate in (0.05, 0.01, 1e-3, 1e-4):
        least = formula.blocked_bits_per_key(rate)
        assert min(formula.blocked_error(least, k) for k in range(1, 9)) <= rate
        assert min(formula.blocked_error(least * 0.999, k) for k in range(1, 9)) > rate
        assert least > formula.classic_bits_per_key(rate)


# --- the engines


@pytest.mark.parametrize("name", engines.MEMBERSHIP)
def test_every_membership_engine_adds_and_finds(name: str) -> None:
    engine = _engine(engines.MEMBERSHIP, name)
    keys, absent = KeySet.of(0, 500), KeySet.of(ABSENT_SET, 500)
    adders: list[Callable[[Filter], object]] = [lambda t: engine.add_each(t, keys.fresh())]
    for threads in (1, 2):
        if engine.add_list is not None:
            adders.append(partial(_batch, engine.add_list, keys.fresh(), threads))
        if engine.add_arrow is not None:
            adders.append(partial(_batch, engine.add_arrow, keys.arrow, threads))
    for add in adders:
        target = engine.build(500, 0.01)
        assert sum(key in target for key in keys.fresh()) == 0
        add(target)
        answers.no_false_negative(engine, target, keys)
        assert sum(key in target for key in absent.fresh()) < 50
        assert engine.bits(target) >= 500 * 8
        if engine.query_list is not None:
            for given in (keys, absent):
                found = engine.query_list(target, given.fresh(), 2)
                answers.batch_equals_one_by_one(engine, target, given, found)


@pytest.mark.parametrize("name", engines.COUNTING)
def test_every_counting_engine_counts(name: str) -> None:
    engine = _engine(engines.COUNTING, name)
    keys = KeySet.of(0, 100).fresh()
    target = engine.build(100, 0.01)
    engine.add_each(target, keys * 2)
    if engine.add_list is not None:
        engine.add_list(target, keys, 1)
    least = 3 if engine.add_list is not None else 2
    assert min(engine.count(target, key) for key in keys) == least


# --- the checks have teeth


def test_a_filter_that_loses_keys_stops_the_run() -> None:
    honest = _engine(engines.MEMBERSHIP, "bloomtide")

    # Ten keys: a single one could be found all the same, as a false positive.
    def forgetful(target: Filter, keys: list[str]) -> None:
        honest.add_each(target, keys[10:])

    broken = dataclasses.replace(honest, add_each=forgetful)
    with pytest.raises(WrongAnswerError, match=r"lost \d+ of 2000 keys"):
        membership.measure([broken], QUICK.small, None, Timings())


def test_a_batch_that_answers_otherwise_stops_the_run() -> None:
    honest = _engine(engines.MEMBERSHIP, "bloomtide")
    broken = dataclasses.replace(
        honest, query_list=lambda target, keys, threads: [True] * len(keys)
    )
    with pytest.raises(WrongAnswerError, match="as single queries do"):
        membership.measure([broken], QUICK.small, None, Timings())


def test_a_filter_that_errs_too_often_stops_the_run() -> None:
    honest = _engine(engines.MEMBERSHIP, "bloomtide")
    broken = dataclasses.replace(honest, build=lambda capacity, rate: honest.build(capacity, 0.05))
    with pytest.raises(WrongAnswerError, match="false positives"):
        membership.measure([broken], QUICK.small, None, Timings())


def test_a_counter_below_the_truth_stops_the_run() -> None:
    honest = _engine(engines.COUNTING, "bloomtide, 32-bit counters")

    # Half of the events: a single one could hide behind a collision, which may only count up.
    def lazy(target: Filter, keys: list[str]) -> None:
        honest.add_each(target, keys[::2])

    broken = dataclasses.replace(honest, add_each=lazy)
    with pytest.raises(WrongAnswerError, match="the truth is"):
        counting.measure([broken], QUICK.events, 1, Timings())


@pytest.mark.parametrize(
    ("side", "bound", "ratio", "verdict"),
    [
        ("at least", 1.5, 1.5, "ok"),
        ("at least", 1.5, 1.49, "short"),
        ("at least", 1.0, 0.996, "ok"),  # shown as 1.00
        ("at most", 1.3, 1.31, "short"),
        ("at most", 1.3, 0.5, "ok"),
        ("at least", 3.0, None, "not measured"),
    ],
)
def test_a_missed_floor_is_called_short(
    side: str, bound: float, ratio: float | None, verdict: str
) -> None:
    floor = Floor("work", side, bound, ratio)  # type: ignore[arg-type]
    assert floor.verdict == verdict
    assert f"**{verdict}**" in must_be([floor])


def test_engines_take_turns() -> None:
    assert [turns("abc", i)[0] for i in range(4)] == ["a", "b", "c", "a"]
    assert sorted(turns("abc", 2)) == ["a", "b", "c"]


# --- the documents


def test_only_the_marked_section_is_replaced() -> None:
    text = "above\n<!-- bench:start -->\nold\n<!-- bench:end -->\nbelow\n"
    once = documents.replace_between(text, "bench", "new")
    assert once.startswith("above\n<!-- bench:start -->")
    assert once.endswith("<!-- bench:end -->\nbelow\n")
    assert "old" not in once
    assert documents.replace_between(once, "bench", "new") == once


@pytest.mark.parametrize(
    "text", ["", "<!-- bench:start -->", "<!-- bench:end --> <!-- bench:start -->"]
)
def test_a_document_without_its_markers_is_refused(text: str) -> None:
    with pytest.raises(documents.MarkerError):
        documents.replace_between(text, "bench", "new")


@pytest.mark.parametrize(("document", "name"), [("benchmarks.md", "bench"), ("proof.md", "proof")])
def test_the_docs_have_their_markers(document: str, name: str) -> None:
    text = (Path(__file__).parent.parent / "docs" / document).read_text()
    assert "new body" in documents.replace_between(text, name, "new body")


# --- the whole thing


@pytest.mark.slow
def test_the_quick_run_measures_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("bloomtide._core", reason="bloomtide is not built")
    assert main(["--quick", "--results", str(tmp_path)]) == 0
    (file,) = tmp_path.iterdir()
    assert file.name.endswith(".quick.json")
    written = json.loads(file.read_text())
    measured = {
        (row["capacity"], row["verb"], row["form"], row["threads"]) for row in written["membership"]
    }
    for scale in (QUICK.small, QUICK.large):
        for verb in membership.VERBS:
            for form, threads in membership.FORMS:
                assert Op(scale.capacity, verb, form, threads) in measured
    assert {row["form"] for row in written["counting"]} == set(counting.FORMS)
    assert all(row["ns_best"] > 0 for row in written["membership"] + written["counting"])
    assert len(written["floors"]) == len({row["work"] for row in written["floors"]})
    printed = capsys.readouterr().out
    assert all(row["work"] in printed for row in written["floors"])
    for secret in (platform.node(), str(Path.home()), str(Path.cwd())):
        assert secret not in file.read_text() + printed


def test_the_quick_proof_holds(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("bloomtide._core", reason="bloomtide is not built")
    assert proof.main(["--quick"]) == 0
    assert "Everything holds." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"false_positives": 1_200}, "outside"),
        ({"false_positives": 800}, "outside"),
        ({"predicted": 0.011}, "misses"),
        ({"bytes": 1_030}, "times the formula"),
        ({"bytes": 970}, "times the formula"),
        ({"lost": 1}, "not found"),
    ],
)
def test_a_proof_that_fails_says_so(
    change: dict[str, float], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def faked(case: proof.Case) -> proof.Proof:
        held = proof.Proof(
            case=dataclasses.replace(case, error_rate=0.01),
            layout="blocked",
            predicted=0.01,
            false_positives=1_000,
            low=900,
            high=1_100,
            bytes=1_000,
            least_bytes=1_000.0,
            resident_bytes=None,
            lost=0,
            add_seconds=1.0,
            query_seconds=1.0,
        )
        assert held.failures == []
        return dataclasses.replace(held, **change)  # type: ignore[arg-type]

    assert proof.main(["--quick"], faked) == 1
    assert complaint in capsys.readouterr().out


def _batch(batch: Batch, keys: object, threads: int, target: Filter) -> object:
    return batch(target, keys, threads)


def _engine(offered: dict[str, Callable[[], Engine]], name: str) -> Engine:
    ready, missing = engines.load({name: offered[name]})
    if missing:
        pytest.skip(f"{name} is not installed: {missing[0].reason}")
    return ready[0]


def test_lines_that_dedup_lost_are_counted_and_wrong_ones_stop_the_run() -> None:
    assert dedup.compare([b"a", b"c"], [b"a", b"b", b"c", b"d"]) == (2, 4)
    for wrong in ([b"a", b"x"], [b"c", b"a"], [b"a", b"a"]):
        with pytest.raises(SystemExit, match="in order"):
            dedup.compare(wrong, [b"a", b"b", b"c"])


def test_a_dedup_that_loses_too_much_stops_the_run(tmp_path: Path) -> None:
    ours, exact = tmp_path / "ours", tmp_path / "exact"
    lines = [b"%d\n" % number for number in range(100_000)]
    exact.write_bytes(b"".join(lines))
    ours.write_bytes(b"".join(lines[:-20]))
    dedup.check(ours, exact)
    ours.write_bytes(b"".join(lines[:-60]))
    with pytest.raises(SystemExit, match="lost 60"):
        dedup.check(ours, exact)


def test_memory_of_a_command_is_its_own(tmp_path: Path) -> None:
    out = tmp_path / "out"
    mine = b"x" * (256 << 20)
    small = process.run([sys.executable, "-I", "-c", "print(1)"], output=out)
    assert out.read_bytes() == b"1\n"
    assert 1 << 20 < small.peak_bytes < len(mine)
    large = process.run([sys.executable, "-I", "-c", "print(len(b'x' * (64 << 20)))"])
    assert large.peak_bytes > small.peak_bytes + (60 << 20)
    with pytest.raises(SystemExit, match="ended with 3"):
        process.run([sys.executable, "-c", "raise SystemExit(3)"])


def test_starts_are_timed_beside_numpy_and_their_answers_checked() -> None:
    right = starts.Case(("dedup",), b"a\nb\n", b"a\nb\na\n")
    base, start = starts.measure(1, (right,))
    assert start.ratio == pytest.approx(start.seconds / base.seconds)  # one round, one pair
    assert "| `bloomtide dedup` |" in starts.table([base, start])
    wrong = starts.Case(("dedup",), b"a\na\n", b"a\na\n")
    with pytest.raises(WrongAnswerError, match="bloomtide dedup"):
        starts.measure(1, (wrong,))
