"""Uses an installed bloomtide once: import, BloomFilter, save, load."""

import platform
import sys
import tempfile
from pathlib import Path

import bloomtide

filter = bloomtide.BloomFilter(1000, 0.01)
assert filter.add("a"), "a new key is new"
filter.add_many([f"key {n}" for n in range(500)])
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "f.bloom"
    filter.save(file)
    again = bloomtide.load(file)
assert "a" in again, "a file holds the keys that were saved"
assert all(again.contains_many([f"key {n}" for n in range(500)]))
assert sum(f"other {n}" in again for n in range(1000)) < 50, "a file holds few other keys"

# A module that does not declare itself safe turns the lock on again.
if hasattr(sys, "_is_gil_enabled") and "free-threading" in sys.version:
    assert not sys._is_gil_enabled(), "importing bloomtide turned the global lock on"

sys.stdout.write(
    f"bloomtide {bloomtide.__version__} works: {sys.version.split()[0]} {platform.platform()}\n"
)
