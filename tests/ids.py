"""Names of parameters that are the same in every process, as tests in parallel need them."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """`repr` without the address of an object."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))[:30]
