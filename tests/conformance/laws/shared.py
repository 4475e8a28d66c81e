"""Laws of a filter that is a file: closing seals it, whatever else goes on at that moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from threading import Barrier, Thread
from typing import Any

import bloomtide
from bloomtide.errors import ClosedError
from tests.conformance.law import law
from tests.conformance.registry import Subject
from tests.conformance.streams import words


@law("mapped")
def closing_inside_a_batch_leaves_a_sound_file(subject: Subject) -> None:
    filled = subject.new()
    filled.add("before")

    def keys() -> Iterator[str]:
        yield "first"
        filled.close()
        yield "second"

    with suppress(ClosedError):
        filled.add_many(keys())
    assert "before" in bloomtide.load(filled.path)


@law("mapped")
def every_add_that_returned_before_the_close_is_in_the_file(subject: Subject) -> None:
    for _ in range(5):
        close_under_load(subject.new())


def close_under_load(filled: Any) -> None:
    """Two threads add, singly and in batches, until they are told that the filter was closed."""
    returned: list[list[str]] = [[], []]
    busy = Barrier(3)

    def work(number: int) -> None:
        busy.wait()
        with suppress(ClosedError):
            for batch in count():
                mine = words(50, f"thread-{number}-{batch}")
                if number:
                    filled.add_many(iter(mine))
                else:
                    for key in mine:
                        filled.add(key)
                returned[number] += mine

    threads = [Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    busy.wait()
    filled.close()
    for thread in threads:
        thread.join()
    stored = bloomtide.load(filled.path)
    assert all(stored.contains_many(keys).all() for keys in returned)
