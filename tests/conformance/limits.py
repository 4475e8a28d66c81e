"""The limits of every parameter: what is refused and under which name, and what just works."""

from __future__ import annotations

import math
from typing import Any

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)

Case = tuple[set[str], dict[str, Any]]
GOAL: dict[str, Any] = {"capacity": 100, "error_rate": 0.01}
SIZE: dict[str, Any] = {"bits": 1024, "hashes": 3}
RATES = (0.0, 1e-16, 0.51, 1.0, -0.1, 1.5, math.nan, math.inf, -math.inf)


def refused(base: dict[str, Any], name: str, *values: Any) -> list[Case]:
    """`base` with one parameter out of its limits: the error must name it."""
    return [({name}, base | _given(name, value)) for value in values]


def _given(name: str, value: Any) -> dict[str, Any]:
    return {"paper": {name: value}} if name in ("derivation", "bind") else {name: value}


EVERYWHERE: list[Case] = [
    *refused(GOAL, "capacity", 0, -1, 1.5, "100", True),
    *refused(GOAL, "error_rate", *RATES),
    *refused(GOAL, "derivation", "triple", ""),
    *refused(GOAL, "hash", "md5", ""),
    *refused(GOAL, "seed", -1, 2**64),
    *refused(GOAL, "secret", bytes(16)),  # a secret without hash="keyed"
    *refused(GOAL | {"hash": "keyed"}, "secret", b"", bytes(15), bytes(17), "sixteen letters!"),
    *refused(GOAL | {"hash": "keyed"}, "seed", 1),
]


def sized(name: str) -> list[Case]:
    """Sizes instead of a goal: so many cells, called `name`, and `hashes` of them for a key."""
    size = {name: 1024, "hashes": 3}
    return [
        *refused(size, name, 0, -1),
        *refused(size, "hashes", 0, -1, 65, 2**32),
        ({"capacity"}, {}),
        ({"capacity", name, "hashes"}, {"hashes": 3}),
        ({"hashes"}, {name: 1024}),
        ({"capacity", name}, GOAL | size),
        ({"capacity"}, {"error_rate": 0.01}),
    ]


CELLS: dict[str, Any] = {"cells": 1024, "hashes": 3}
UNMEASURABLE = (math.nan, math.inf, -math.inf)

GROWING: list[Case] = [
    *EVERYWHERE,
    *refused(CELLS, "cells", 0, -1, 1.5, "9", True),
    *refused(CELLS, "hashes", 0, -1, 65, 2**32),
    *refused(GOAL, "hashes", 0, -1, 65, 2**32),
    *refused(GOAL, "total", 0, -1, 99, 1.5, "many", math.nan),
    *refused(GOAL, "policy", "liberal", ""),
    *refused(GOAL, "layout", "striped", "Blocked", ""),
    *refused(CELLS | {"layout": "blocked"}, "hashes", 3, 5, 7, 9, 16, 64),
    *refused(GOAL | {"layout": "blocked"}, "derivation", "double", "slices"),
    ({"cells", "derivation"}, {"cells": 1000, "hashes": 3, "paper": {"derivation": "slices"}}),
    ({"cells"}, GOAL | CELLS),
    ({"cells"}, CELLS | {"error_rate": 0.01}),
    ({"capacity"}, {}),
    ({"capacity"}, {"error_rate": 0.01}),
    ({"capacity"}, {"hashes": 3}),
    ({"hashes"}, {"cells": 1024}),
]
SPECTRAL: list[Case] = [
    *GROWING,
    *refused(GOAL, "slack", -0.1, *UNMEASURABLE),
]
DYNAMIC: list[Case] = [
    *GROWING,
    *refused(GOAL, "policy", "recurring_minimum"),
    *refused(GOAL, "counter_bits", 0, -1, 33, 64, 1.5, 2**40),
    *refused(GOAL, "shrink", -0.01, 1.01, *UNMEASURABLE),
]
CUTS: list[Case] = [
    *refused(GOAL, "partitions", 0, -1, 1.5, "many", "", True, math.nan, 2**64, 2**40),
    *refused(CELLS, "partitions", 1025),
]

TIMED: dict[str, Any] = {"half_life": "1h"}
FADING: list[Case] = [
    *((names, TIMED | parameters) for names, parameters in EVERYWHERE),
    *refused(TIMED | CELLS, "cells", 0, -1, 1.5, "9", True),
    *refused(TIMED | CELLS, "hashes", 0, -1, 65, 2**32),
    *refused(TIMED | GOAL, "policy", "liberal", "recurring_minimum", ""),
    *refused(TIMED | GOAL, "layout", "striped", "Blocked", ""),
    *refused(TIMED | GOAL, "storage", "blocked", "Basic", ""),
    *refused(TIMED | GOAL, "rounding", "up", ""),
    *refused(TIMED | GOAL, "counter_bits", 0, 4, 8, 33, 64, 2**40),
    *refused(TIMED | GOAL, "fraction_bits", -1, 29, 1.5, "8", True, 2**40),
    *refused(TIMED | GOAL | {"counter_bits": 16}, "fraction_bits", 13),
    *refused(TIMED | CELLS | {"layout": "blocked"}, "hashes", 3, 5, 64),
    *refused(TIMED | GOAL | {"layout": "blocked"}, "derivation", "double", "slices"),
    *refused(GOAL, "half_life", 0, -1, "0s", "-1h", "soon", True, 1e12, *UNMEASURABLE),
    *refused(TIMED | GOAL, "epoch", 0, -1, 0.09, "99ms", "soon", True, 1e12, *UNMEASURABLE),
    *refused(GOAL | {"epoch": "1h"}, "decay", -0.1, 1.1, "half", *UNMEASURABLE),
    *refused(TIMED | GOAL, "origin", -1, 1e13, "2020-01-01", math.nan),
    *refused(TIMED | GOAL | {"epoch": "1h"}, "decay", 0.5),  # both
    ({"half_life"}, GOAL),
    ({"half_life"}, GOAL | {"epoch": "1h"}),
    ({"epoch"}, GOAL | {"decay": 0.5}),
    ({"capacity"}, TIMED),
    ({"capacity"}, TIMED | {"error_rate": 0.01}),
    ({"capacity", "cells"}, TIMED | {"hashes": 3}),
    ({"hashes"}, TIMED | {"cells": 1024}),
    ({"cells"}, TIMED | GOAL | CELLS),
    ({"cells"}, TIMED | CELLS | {"error_rate": 0.01}),
    (
        {"cells", "derivation"},
        TIMED | {"cells": 1000, "hashes": 3, "paper": {"derivation": "slices"}},
    ),
]

BAD: dict[Any, list[Case]] = {
    BloomFilter: [
        *EVERYWHERE,
        *sized("bits"),
        *refused(GOAL, "layout", "striped", ""),
        *refused(SIZE | {"layout": "blocked"}, "hashes", 9),
        ({"derivation", "layout"}, GOAL | {"layout": "blocked", "paper": {"derivation": "slices"}}),
        ({"bits", "derivation"}, {"bits": 1000, "hashes": 3, "paper": {"derivation": "slices"}}),
    ],
    ScalableBloomFilter: [
        *EVERYWHERE,
        *refused(GOAL, "growth", 0.0, 0.99, 32_768.5, -2.0, math.nan, math.inf),
        *refused(GOAL, "tightening", 0.0, 0.09, 0.96, 1.0, -0.5, math.nan),
        *refused({"capacity": 1000}, "error_rate", 1e-15, 1e-14),
    ],
    CountingBloomFilter: [
        *EVERYWHERE,
        *sized("cells"),
        *refused(GOAL, "counter_bits", 0, 1, 5, 64, -4),
        *refused(GOAL, "policy", "liberal", ""),
        *refused(GOAL, "layout", "striped", "Blocked", ""),
        *refused(CELLS | {"layout": "blocked"}, "hashes", 0, 3, 5, 7, 9, 16, 64),
        *refused(GOAL | {"layout": "blocked"}, "derivation", "double", "slices"),
        *refused({"hashes": 4, "layout": "blocked"}, "cells", 0),
        ({"cells", "derivation"}, {"cells": 1000, "hashes": 3, "paper": {"derivation": "slices"}}),
    ],
    SpectralBloomFilter: SPECTRAL,
    DynamicCountFilter: DYNAMIC,
    PartitionedSpectralBloomFilter: SPECTRAL + CUTS,
    PartitionedDynamicCountFilter: DYNAMIC + CUTS,
    TimeDecayingBloomFilter: FADING,
    UrlFilter: [
        *(case for case in EVERYWHERE if case[0] != {"derivation"}),
        *refused(GOAL, "max_layers", 0, -1, 65, 2**32, 1.5, "8", True),
        *refused(GOAL, "bind", "xxor", ""),
        *refused(GOAL, "layer_sizes", "measured", "", 5, [], [0], [-1], [2**49], ["many"], [1] * 9),
        *refused(GOAL | {"paper": {"bind": "xor"}}, "layer_sizes", [100]),
    ],
}

EDGES_EVERYWHERE: list[dict[str, Any]] = [
    {"capacity": 1, "error_rate": 0.01},
    {"capacity": 1, "error_rate": 0.5},
    {"capacity": 100, "error_rate": 1e-15},
    GOAL | {"seed": 2**64 - 1},
    GOAL | {"hash": "keyed", "secret": b"\xff" * 16},
    *(GOAL | {"paper": {"derivation": how}} for how in ("enhanced", "double", "slices")),
]


def sized_edges(name: str) -> list[dict[str, Any]]:
    """Sizes that just work, as of `sized`."""
    return [
        {name: 64, "hashes": 1},
        {name: 65536, "hashes": 64},
        *(
            {name: 1024, "hashes": 25, "paper": {"derivation": how}}
            for how in ("enhanced", "double", "slices")
        ),
    ]


EDGES_GROWING: list[dict[str, Any]] = [
    *EDGES_EVERYWHERE,
    {"cells": 1, "hashes": 1},
    {"cells": 2, "hashes": 5},
    {"cells": 64, "hashes": 64},
    *(
        {"cells": 1024, "hashes": 25, "paper": {"derivation": how}}
        for how in ("enhanced", "double", "slices")
    ),
    *({"cells": 128, "hashes": k, "layout": "blocked"} for k in (1, 2, 4, 8)),
    GOAL | {"total": 100},
    GOAL | {"total": 2**63},
    GOAL | {"hashes": 3},
    {"cells": 1000, "hashes": 3, "capacity": 7, "total": 7},
]
EDGES_SPECTRAL: list[dict[str, Any]] = [
    *EDGES_GROWING,
    GOAL | {"slack": 0.0},
    *(
        {"cells": n, "hashes": 4, "layout": how}
        for n, how in ((1, "classic"), (3, "classic"), (128, "blocked"), (384, "blocked"))
    ),
]
EDGES_DYNAMIC: list[dict[str, Any]] = [
    *EDGES_GROWING,
    *(GOAL | {"counter_bits": bits} for bits in (1, 7, 31, 32)),
    *(GOAL | {"shrink": shrink} for shrink in (0.0, 1.0)),
]
EDGES_CUT: list[dict[str, Any]] = [
    *(
        {"cells": 1024, "hashes": 4, "layout": how, "partitions": cut}
        for how in ("blocked", "classic")
        for cut in (1, 2, 1000, 1023, 1024, "auto")
    ),
    *({"cells": 1, "hashes": 1, "partitions": cut} for cut in (1, "auto")),
]

EDGES_FADING: list[dict[str, Any]] = [
    *(TIMED | edge for edge in EDGES_EVERYWHERE),
    TIMED | {"cells": 1, "hashes": 1},
    TIMED | {"cells": 64, "hashes": 64},
    *(TIMED | {"cells": 128, "hashes": k, "layout": "blocked"} for k in (1, 2, 4, 8)),
    *(GOAL | {"decay": decay, "epoch": 10**9} for decay in (0, 0.0, 1e-300, 0.5, 1, 1.0)),
    *(GOAL | {"half_life": length} for length in (0.001, "1s", 10**11)),
    *(TIMED | GOAL | {"epoch": length} for length in (0.1, 10**11)),
    *(TIMED | GOAL | {"fraction_bits": bits} for bits in (0, 28)),
    *(
        TIMED | size | {"storage": storage, "fraction_bits": bits}
        for storage in ("basic", "optimized")
        for bits in (0, 3, 8)
        for size in (
            GOAL,
            {"cells": 1, "hashes": 1},
            {"cells": 16, "hashes": 3, "paper": {"derivation": "slices"}},
            {"cells": 5000, "hashes": 8, "layout": "blocked"},
        )
    ),
    TIMED | GOAL | {"counter_bits": 16, "fraction_bits": 12},
    TIMED | GOAL | {"origin": 0},
    TIMED | GOAL | {"origin": "9999-12-31T00:00:00Z"},
]

EDGE: dict[Any, list[dict[str, Any]]] = {
    BloomFilter: [
        *EDGES_EVERYWHERE,
        *sized_edges("bits"),
        {"bits": 1, "hashes": 1},
        {"bits": 1, "hashes": 3, "paper": {"derivation": "slices"}},
        {"bits": 2, "hashes": 5, "paper": {"derivation": "double"}},
        {"capacity": 100, "error_rate": 1e-9, "layout": "blocked"},
        {"bits": 1, "hashes": 8, "layout": "blocked"},
    ],
    ScalableBloomFilter: [
        *(edge for edge in EDGES_EVERYWHERE if edge["error_rate"] > 1e-15),
        {"capacity": 100, "error_rate": 1e-14},
        GOAL | {"capacity": 1, "growth": 16.0, "tightening": 0.95},
        GOAL | {"capacity": 3, "growth": 1.0, "tightening": 0.1},
    ],
    CountingBloomFilter: [
        *EDGES_EVERYWHERE,
        *sized_edges("cells"),
        *({"cells": 1, "hashes": 2, "counter_bits": width} for width in (4, 8, 16, 32)),
        *({"cells": 1, "hashes": k, "layout": "blocked"} for k in (1, 2, 4, 8)),
        {"capacity": 1, "error_rate": 0.5, "layout": "blocked"},
        {"capacity": 100, "error_rate": 1e-9, "layout": "blocked"},
    ],
    SpectralBloomFilter: EDGES_SPECTRAL,
    DynamicCountFilter: EDGES_DYNAMIC,
    PartitionedSpectralBloomFilter: EDGES_SPECTRAL + EDGES_CUT,
    PartitionedDynamicCountFilter: EDGES_DYNAMIC + EDGES_CUT,
    TimeDecayingBloomFilter: EDGES_FADING,
    UrlFilter: [
        *(edge for edge in EDGES_EVERYWHERE if "paper" not in edge),
        *(GOAL | {"max_layers": layers} for layers in (1, 2, 64)),
        *(GOAL | {"paper": {"bind": bind}} for bind in ("salted_xor", "ordered", "xor")),
        *(GOAL | {"layer_sizes": sizes} for sizes in ("uniform", [1], (5, 10), [10**6] * 8)),
        {"capacity": 1, "error_rate": 0.5, "paper": {"bind": "xor"}, "max_layers": 1},
    ],
}

ABSURD_GOALS: list[dict[str, Any]] = [
    {"capacity": 2**62, "error_rate": 0.01},
    {"capacity": 2**64 - 1, "error_rate": 1e-9},
    {"capacity": 2**200, "error_rate": 0.01},
]
ABSURD_SIZES: list[dict[str, Any]] = [
    {"bits": 2**62, "hashes": 3},
    {"bits": 2**64, "hashes": 3},
    {"bits": 2**200, "hashes": 3},
]
ABSURD_CELLS: list[dict[str, Any]] = [
    *ABSURD_GOALS,
    *({"cells": cells, "hashes": 3} for cells in (2**50, 2**62, 2**64 - 1, 2**64, 2**200)),
    *(goal | {"layout": "blocked"} for goal in ABSURD_GOALS),
]
ABSURD_COUNTS = [*ABSURD_CELLS, *(goal | {"total": 2**64 - 1} for goal in ABSURD_GOALS)]
ABSURD: dict[Any, list[dict[str, Any]]] = {
    BloomFilter: ABSURD_GOALS + ABSURD_SIZES,
    ScalableBloomFilter: ABSURD_GOALS,
    UrlFilter: [*ABSURD_GOALS, *(goal | {"paper": {"bind": "xor"}} for goal in ABSURD_GOALS)],
    CountingBloomFilter: [
        *ABSURD_CELLS,
        *(
            {"cells": cells, "hashes": 4, "layout": "blocked"}
            for cells in (2**50, 2**62, 2**64 - 1, 2**64)
        ),
    ],
    **dict.fromkeys(
        (
            SpectralBloomFilter,
            DynamicCountFilter,
            PartitionedSpectralBloomFilter,
            PartitionedDynamicCountFilter,
        ),
        ABSURD_COUNTS,
    ),
    TimeDecayingBloomFilter: [
        *(TIMED | goal for goal in ABSURD_GOALS),
        *(TIMED | {"cells": n, "hashes": 3} for n in (2**50, 2**62, 2**64 - 1, 2**64, 2**200)),
    ],
}
