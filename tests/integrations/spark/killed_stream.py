"""Run by a test: streams files into a history, and is killed at a chosen step of a chosen batch.

    python -m tests.integrations.spark.killed_stream FOLDER [before|after NUMBER]

`before` is when the batch's segments are written and not registered, `after` when they are
registered and Spark does not know yet.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from bloomtide import History
from bloomtide.history.state import State
from bloomtide.integrations.spark import history_sink
from tests.integrations.spark.conftest import start

register = State.register


def kill_at(when: str, number: int) -> None:
    """Lets this process be killed when the catalogue is to take that batch."""

    def dying(self: State, **words: Any) -> None:
        if when == "after":
            register(self, **words)
        if number in (words.get("positions") or {}).values():
            os.kill(os.getpid(), signal.SIGKILL)
        if when == "before":
            register(self, **words)

    State.register = dying  # type: ignore[method-assign]


def main(folder: Path, *kill: str) -> None:
    """Streams all files that are there, one a batch."""
    if kill:
        kill_at(kill[0], int(kill[1]))
    spark = start("local[1]", folder)
    source = spark.readStream.schema("url string, at double").option("maxFilesPerTrigger", 1)
    with History.open(folder / "store", "1m") as store:
        query = history_sink(
            source.json(str(folder / "in")), store, "url", at="at",
            checkpoint=folder / "checkpoint", trigger={"availableNow": True},
        )  # fmt: skip
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
