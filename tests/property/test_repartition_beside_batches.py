"""Partitions are cut anew while a batch in threads adds: no occurrence is lost, and both end.

In a process of its own, which can be ended if it does not.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
import numpy as np
import bloomtide

sizes = dict(cells=128 * 64, hashes=4, layout="blocked", partitions=16, counter_bits=1)
filled, expected = (bloomtide.PartitionedDynamicCountFilter(**sizes) for _ in range(2))
keys = np.random.default_rng(1).integers(0, 3_000, 400_000)
cuts, ended = np.random.default_rng(2), threading.Event()

def cut():
    while not ended.is_set():
        filled.repartition(int(cuts.integers(1, 65)))

cutter = threading.Thread(target=cut, daemon=True)
cutter.start()
for _ in range(20):
    filled.add_many(keys, threads=2)
    expected.add_many(keys)
ended.set()
cutter.join()
assert (filled.cells() == expected.cells()).all()
filled.validate()
"""


def test_a_batch_in_threads_goes_on_beside_a_new_cut() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], timeout=15, check=False)
    assert done.returncode == 0
