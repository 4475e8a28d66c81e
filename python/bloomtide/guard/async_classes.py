"""The classes of `sqlalchemy.ext.asyncio`, looked up without importing it.

SQLAlchemy 2.1 cannot import that module without greenlet, which only programs with an async engine
need. Nothing can be an instance of these classes before somebody has imported them.
"""

from __future__ import annotations

import sys


def async_classes(*names: str) -> tuple[type, ...]:
    """The classes of these names for `isinstance`; none while the module is not imported."""
    module = sys.modules.get("sqlalchemy.ext.asyncio")
    return tuple(getattr(module, name) for name in names) if module else ()
