"""`bloomtide.memory_models`: the paper's bits, and the bits that its own streams really take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bloomtide.errors import ParameterError
from bloomtide.memory_models import (
    dynamic_count_bits,
    expected_base_bits,
    index_bits,
    mean_counter_bits,
    partitioned_dynamic_count_bits,
    partitioned_spectral_bits,
    skewed_counter_bits,
    spectral_bits,
)
from bloomtide.partitions import DYNAMIC_ENTRY_BYTES, SPECTRAL_ENTRY_BYTES

CELLS = 652_878
"""n = 100,000 keys, P = 0.05, d = 3."""


@pytest.mark.parametrize(
    ("total", "bits"), [(100, 1), (199, 1), (200, 2), (1_000, 4), (1_599, 4), (1_600, 5)]
)
def test_a_mean_counter_has_the_bits_of_m_over_n(total: int, bits: int) -> None:
    assert mean_counter_bits(100, total) == bits


def test_skew_1_doubles_the_largest_counter() -> None:
    assert skewed_counter_bits(7, 1.0) == 7
    assert skewed_counter_bits(7, 0.5) == 4
    assert skewed_counter_bits(7, 0.0) == 0


@pytest.mark.parametrize("base_bits", [10**5, 10**6, 10**7, 10**8, 10**9])
def test_the_index_takes_19_whole_bits_for_each_counter(base_bits: int) -> None:
    assert index_bits(CELLS, base_bits, whole=True) == 19 * CELLS
    assert 16 * CELLS < index_bits(CELLS, base_bits) < 19 * CELLS


def test_the_smallest_base_array_still_has_an_index() -> None:
    assert index_bits(1, 1) == index_bits(1, 4) == 4 + 3


@pytest.mark.parametrize(
    ("counter", "model"),
    [(2.1, 19.7), (1.5, 19.0), (1.0, 18.5)],
    ids=["even", "theta 1", "theta 2"],
)
def test_a_spectral_counter_costs_what_the_table_of_models_says(
    counter: float, model: float
) -> None:
    """n = 100,000, M = 10 n, slack 0.5: bits per counter, and how many of them hold the value."""
    assert spectral_bits(CELLS, counter * CELLS, slack=0.5) / CELLS == pytest.approx(model, abs=0.1)


def test_partitions_leave_a_spectral_filter_nearly_as_large_as_it_was() -> None:
    whole = spectral_bits(CELLS, 2 * CELLS, slack=0.1)
    in_one = partitioned_spectral_bits(CELLS, 2 * CELLS, 1, slack=0.1)
    assert in_one == whole + 8 * SPECTRAL_ENTRY_BYTES
    pieces = partitioned_spectral_bits(CELLS, 2 * CELLS, 1_000, slack=0.1)
    assert 0.8 * whole < pieces < whole


def test_a_partitioned_spectral_filter_is_its_pieces_and_the_vector() -> None:
    pieces = partitioned_spectral_bits(1_000, 3_000, 10, slack=0.2, entry_bytes=6)
    assert pieces == pytest.approx(10 * spectral_bits(100, 300, slack=0.2) + 8 * 6 * 10)


def test_one_hot_counter_widens_every_counter_of_a_dynamic_count_filter() -> None:
    assert dynamic_count_bits(1_000, 4, 0) == 4_000
    assert dynamic_count_bits(1_000, 4, 13) == 17_000


def test_partitions_save_what_their_untouched_share_would_waste() -> None:
    some = partial(partitioned_dynamic_count_bits, CELLS, 4, 13, 1_000, entry_bytes=10)
    assert some(oversized_share=0.0) == 4 * CELLS + 80_000
    assert some(oversized_share=0.25) == pytest.approx(7.25 * CELLS + 80_000)
    assert some(oversized_share=1.0) == dynamic_count_bits(CELLS, 4, 13) + 80_000, "more than DCF"
    ours = partitioned_dynamic_count_bits(CELLS, 4, 13, 1_000, oversized_share=0.0)
    assert ours == 4 * CELLS + 8_000 * DYNAMIC_ENTRY_BYTES


@pytest.mark.parametrize("multiplicity", [1, 10, 100, 5_000])
def test_the_expected_base_bits_are_those_of_a_stream(multiplicity: int) -> None:
    distinct, cells, hashes = 20_000, 100_000, 3
    draw = np.random.default_rng(4)
    keys = np.bincount(draw.integers(0, cells, distinct * hashes), minlength=cells)
    real = sum(max(1, int(count) * multiplicity).bit_length() for count in keys)
    model = expected_base_bits(cells, hashes, distinct, distinct * multiplicity)
    assert model == pytest.approx(real, rel=0.01)


def test_a_crowded_array_has_expected_bits_too() -> None:
    """The Poisson mean is 3,000 here: its first terms are too small for a float."""
    assert expected_base_bits(10, 3, 10_000, 10_000) == pytest.approx(10 * 12, rel=0.01)


GOOD: tuple[tuple[Callable[..., float], dict[str, Any]], ...] = (
    (mean_counter_bits, {"distinct": 10, "total": 20}),
    (skewed_counter_bits, {"counter_bits": 4, "skew": 1.0}),
    (expected_base_bits, {"cells": 10, "hashes": 3, "distinct": 5, "total": 9}),
    (index_bits, {"cells": 10, "base_bits": 20}),
    (spectral_bits, {"cells": 10, "base_bits": 20, "slack": 0.1}),
    (
        partitioned_spectral_bits,
        {"cells": 10, "base_bits": 20, "partitions": 3, "slack": 0.1, "entry_bytes": 6},
    ),
    (dynamic_count_bits, {"cells": 10, "counter_bits": 4, "extra_bits": 2}),
    (
        partitioned_dynamic_count_bits,
        {
            "cells": 10,
            "counter_bits": 4,
            "extra_bits": 2,
            "partitions": 3,
            "oversized_share": 0.5,
            "entry_bytes": 6,
        },
    ),
)
WRONG: dict[str, tuple[float, ...]] = {
    "cells": (0, float("nan"), float("inf")),
    "hashes": (0,),
    "distinct": (0, 21),
    "base_bits": (0, float("nan"), float("inf")),
    "slack": (-0.1, 1.1, float("nan")),
    "skew": (-1, float("nan"), float("inf")),
    "counter_bits": (0, float("nan")),
    "extra_bits": (-1, 61),
    "partitions": (0, 11),
    "oversized_share": (-0.1, 1.1, float("nan")),
    "entry_bytes": (0, float("nan"), float("inf")),
    "total": (4,),
}


@pytest.mark.parametrize(
    ("model", "good", "name", "value"),
    [(model, good, name, value) for model, good in GOOD for name in good for value in WRONG[name]],
)
def test_a_parameter_out_of_range_is_refused(
    model: Callable[..., float], good: dict[str, Any], name: str, value: float
) -> None:
    model(**good)
    with pytest.raises(ParameterError) as refused:
        model(**good | {name: value})
    # Too many distinct keys and too few occurrences are one mistake.
    assert refused.value.name == ("total" if (name, value) == ("distinct", 21) else name)
