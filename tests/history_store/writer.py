"""A process that writes into a store until it is killed: `python -m tests.history_store.writer`.

After each acknowledged event it prints the event's number. Event n has the key `key n%7` and comes
n * 20 seconds after the start, so that a segment is sealed now and then and days are rolled up.
"""

from __future__ import annotations

import sys
from typing import cast

from bloomtide.durable.policy import Sync
from bloomtide.history import History

START = 1_483_228_800
"""Long ago: two hundred kills are a year of events, and nothing is sealed before its time."""
STEP = 20


def main() -> None:
    path, sync, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
    store = History.open(path, "1m", sync=cast(Sync, sync), error_rate=1e-4)
    number = first
    while True:
        store.add(f"key {number % 7}", at=START + number * STEP)
        # One write of a line is whole: the reader never sees a part of a number.
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    main()
