"""Laws of many Python threads on one filter."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

from tests.conformance.law import law
from tests.conformance.registry import Subject

THREADS = 4
KEYS = 1500


def together(work: Callable[[int], None]) -> None:
    """Run `work(0)`, `work(1)`, ... at once; any exception comes out."""
    failures: list[BaseException] = []
    barrier = Barrier(THREADS)

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            failures.append(error)

    threads = [Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def hammer(subject: Subject, filled: Any) -> list[str]:
    """Every thread adds keys of its own, singly and in batches, and asks for them meanwhile."""
    shares = [subject.words(KEYS, f"thread-{number}") for number in range(THREADS)]

    def work(number: int) -> None:
        mine = shares[number]
        for key in mine[: KEYS // 3]:
            filled.add(key)
            assert key in filled
        filled.add_many(mine[KEYS // 3 : 2 * KEYS // 3])
        filled.add_many(mine[2 * KEYS // 3 :], threads=2)
        assert filled.contains_many(mine).all()

    together(work)
    return [key for share in shares for key in share]


@law()
def no_key_is_lost_when_threads_add_at_once(subject: Subject) -> None:
    filled = subject.new()
    keys = hammer(subject, filled)
    assert filled.contains_many(keys).all()
    filled.validate()


@law()
def batches_with_threads_of_their_own_may_run_at_once(subject: Subject) -> None:
    filled = subject.new()
    shares = [
        subject.words(17_000, f"crew-{number}") for number in range(THREADS)
    ]  # enough for two threads

    def work(number: int) -> None:
        filled.add_many(shares[number], threads=2)
        assert filled.contains_many(shares[number], threads=2).all()

    together(work)
    filled.validate()


@law("merge", unless=("conservative",))
def the_order_of_threads_leaves_no_trace(subject: Subject) -> None:
    filled, expected = subject.new(), subject.new()
    expected.add_many(hammer(subject, filled))
    assert filled.to_bytes() == expected.to_bytes()


@law("count")
def no_occurrence_is_lost_when_threads_count_one_key(subject: Subject) -> None:
    filled = subject.new()

    def work(number: int) -> None:
        for _ in range(1000):
            filled.add("shared")

    together(work)
    assert filled.count("shared") == min(THREADS * 1000, subject.limit)


@law("repartition")
def no_occurrence_is_lost_while_the_partitions_are_cut_anew(subject: Subject) -> None:
    filled = subject.new()
    keys = subject.words(200)

    def work(number: int) -> None:
        if number == 0:
            for cut in (3, 1, 20, "auto") * 5:
                filled.repartition(cut)
                filled.merge(subject.new(partitions=cut))
        else:
            for round in range(20):
                for key in keys:
                    filled.add(key, 3)
                filled.add_many(keys, [round + 1] * len(keys), threads=2)
                assert filled.count(keys[0]) >= 3 * round

    together(work)
    each = (THREADS - 1) * (20 * 3 + sum(range(1, 21)))
    assert (filled.count_many(keys) >= each).all()
    assert filled.cells()[filled.positions(keys[0])].min() >= each
    filled.validate()


@law(unless=("mapped",))  # other processes add to a shared file too, and no lock is taken for them
def exactly_one_thread_is_told_that_a_key_was_new(subject: Subject) -> None:
    filled = subject.new()
    keys = subject.words(300, "contested")
    told: list[list[bool]] = [[] for _ in range(THREADS)]
    together(lambda number: told[number].extend(filled.add(key) for key in keys))
    assert subject.new().add_many(keys).all()  # no false positive among these keys
    assert [sum(answers) for answers in zip(*told, strict=True)] == [1] * len(keys)


@law()
def threads_may_ask_everything_while_others_add(subject: Subject) -> None:
    filled = subject.new()
    keys = subject.words(KEYS)
    filled.add_many(keys)

    def work(number: int) -> None:
        if number % 2:
            filled.add_many(subject.words(KEYS, f"thread-{number}"))
        else:
            for _ in range(5):
                assert filled.contains_many(keys).all()
                filled.stats()
                repr(filled)
                twin = type(filled).from_bytes(filled.to_bytes())
                assert twin.contains_many(keys).all()

    together(work)
    filled.validate()
