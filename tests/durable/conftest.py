"""The disks here act power cuts (faults.py), so nothing has to wait for a real one."""

from tests.history_store.conftest import quick_disk

__all__ = ["quick_disk"]
