"""The four filters of growing counters, `CountingBloomFilter` and their models."""

from __future__ import annotations

from typing import Any

from bloomtide import (
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from bloomtide.reference import (
    ReferenceDynamicCountFilter,
    ReferencePartitionedDynamicCountFilter,
    ReferencePartitionedSpectralBloomFilter,
    ReferenceSpectralBloomFilter,
)

SIZES: list[dict[str, Any]] = [
    {"cells": 61, "hashes": 3, "layout": "classic"},
    {"cells": 3, "hashes": 5, "layout": "classic"},
    {"cells": 64, "hashes": 4, "layout": "classic", "paper": {"derivation": "double"}},
    {"cells": 16, "hashes": 9, "layout": "classic", "paper": {"derivation": "slices"}},
    {"cells": 128, "hashes": 8, "layout": "blocked"},
    {"cells": 640, "hashes": 4, "layout": "blocked"},
    {"cells": 384, "hashes": 2, "layout": "blocked", "hash": "keyed", "secret": bytes(16)},
]


def filters(
    size: dict[str, Any],
    policy: str,
    *,
    partitions: Any = 3,
    counter_bits: int = 2,
    shrink: float = 0.5,
    slack: float = 0.1,
) -> dict[str, Any]:
    """One of each, compiled."""
    dynamic: Any = {"policy": policy, "counter_bits": counter_bits, "shrink": shrink}
    spectral: Any = {"policy": policy, "slack": slack}
    cut: Any = {"partitions": partitions}
    same = {name: value for name, value in size.items() if name != "cells"}
    counting: Any = {"cells": size["cells"], "counter_bits": 32, "policy": policy}
    return {
        "dcf": DynamicCountFilter(**size, **dynamic),
        "sbf": SpectralBloomFilter(**size, **spectral),
        "pdcf": PartitionedDynamicCountFilter(**size, **dynamic, **cut),
        "psbf": PartitionedSpectralBloomFilter(**size, **spectral, **cut),
        "counting": CountingBloomFilter(**same, **counting),
    }


def models(made: dict[str, Any], counter_bits: int, shrink: float, slack: float) -> dict[str, Any]:
    """The model of each, with its positions."""
    dcf = made["dcf"]
    common: tuple[Any, ...] = (dcf.positions, dcf.stats().cells, dcf.hashes)
    dynamic: Any = {"policy": dcf.policy, "counter_bits": counter_bits, "shrink": shrink}
    spectral: Any = {"policy": dcf.policy, "slack": slack}
    count: int = made["pdcf"].partitions
    return {
        "dcf": ReferenceDynamicCountFilter(*common, **dynamic),
        "sbf": ReferenceSpectralBloomFilter(*common, **spectral),
        "pdcf": ReferencePartitionedDynamicCountFilter(*common, partitions=count, **dynamic),
        "psbf": ReferencePartitionedSpectralBloomFilter(*common, partitions=count, **spectral),
    }
