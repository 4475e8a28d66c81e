"""A process that feeds a monitor until it is killed: `python -m tests.monitor.writer`.

Batch n has fifty events of the key `batch n`, which lie seven minutes behind those of the batch
before; so the history seals an hour now and then. Every twenty batches the monitor is saved. After
each acknowledged batch its number is printed.
"""

from __future__ import annotations

import sys

from bloomtide import Monitor
from tests.monitor.streams import START

SIZE = 50
STEP = 420


def main() -> None:
    path, first = sys.argv[1], int(sys.argv[2])
    monitor = Monitor.open(
        path, capacity=20_000, error_rate=1e-7, hot=10, clock=lambda: START * 1.5
    )
    number = first
    while True:
        at = START + number * STEP
        monitor.add_many([f"batch {number}"] * SIZE, at=[at + i for i in range(SIZE)])
        # One write of a line is whole: the reader never sees a part of a number.
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1
        if number % 20 == 0:
            monitor.save()


if __name__ == "__main__":
    main()
