"""Readers get their answers while a writer works, and a batch has no more threads than cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
)

WRITERS: dict[str, tuple[int, Callable[[], Any]]] = {
    "bloom": (20_000_000, lambda: BloomFilter(20_000_000, 0.01)),
    "scalable": (10_000_000, lambda: ScalableBloomFilter(1000, 0.01)),
    "counting": (10_000_000, lambda: CountingBloomFilter(10_000_000, 0.01)),
    "spectral": (900_000, lambda: SpectralBloomFilter(450_000, 0.01)),
    "dynamic": (3_000_000, lambda: DynamicCountFilter(1_000_000, 0.01)),
    "partitioned": (3_000_000, lambda: PartitionedDynamicCountFilter(1_000_000, 0.01)),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_readers_get_answers_while_a_writer_is_busy(kind: str) -> None:
    """One batch holds the filter all the time; a reader that waited would answer once at most."""
    rows, make = WRITERS[kind]
    tried, numbers = make(), np.arange(rows)
    tried.add("known")
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        tried.add_many(numbers)
        ended.set()

    answers = 0
    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    while not ended.is_set():
        assert "known" in tried
        answers += 1
    writer.join()
    assert answers > 50


TASKS = Path("/proc/self/task")


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted by Linux")
def test_a_batch_starts_no_more_threads_than_there_are_cores() -> None:
    rows = 5_000_000
    tried, numbers = BloomFilter(rows, 0.01), np.arange(rows)
    before, most, ended = len(list(TASKS.iterdir())), 0, threading.Event()

    def write() -> None:
        tried.add_many(numbers, threads=64)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not ended.is_set():
        most = max(most, len(list(TASKS.iterdir())))
    writer.join()
    cores = os.cpu_count() or 1
    # The writer is one of them.
    assert most <= before + max(cores, 1)
    assert most > before
