"""How much memory the four filters for skewed counts need, by the paper's models; all in bits.

Paper    J. Aguilar-Saborit et al., Data & Knowledge Engineering 66, 2008, section 6.1, put together
         again from a damaged text. m counters (`cells`), N bits of counters (`base_bits`), x bits
         of each for the mean and y for the largest, c partitions with an entry each in the
         partition vector (PV).

    SBF    N + 4m + 3m loglog N                             N, then CV1, CV2 and OV
    PSBF   c [N/c + 4 m/c + 3 m/c loglog(N/c)] + 8 PV c     the same in pieces
    DCF    m (x + y)                                        one hot counter widens all
    PDCF   (1-occ) m x + occ m (x + y) + 8 PV c             only the partitions that have one

PV is an entry of our filters unless `entry_bytes` says another: `bloomtide.partitions` has the
paper's 10.

Models, not measurements: `bytes` of a plan and of `stats()` say what a filter really takes. "DCF
always needs more than PDCF" (6.1) is wrong where every partition has a hot counter (occ = 1), by
just the PV.
"""

from __future__ import annotations

from math import ceil, exp, inf, lgamma, log, log2

from bloomtide.errors import require
from bloomtide.partitions import DYNAMIC_ENTRY_BYTES, SPECTRAL_ENTRY_BYTES
from bloomtide.plain import with_plain


@with_plain
def mean_counter_bits(distinct: int, total: int) -> int:
    """x = floor(log(M/n)) + 1: the bits of a counter that one average key uses alone."""
    _require_stream(distinct, total)
    return (total // distinct).bit_length()


@with_plain
def skewed_counter_bits(counter_bits: int, skew: float) -> int:
    """y = ceil(alpha x): the largest counter is that much longer (alpha = 1: twice as long)."""
    _at_least_one(counter_bits=counter_bits)
    require("skew", skew, "a finite number of 0 or more", 0 <= skew < inf)
    return ceil(skew * counter_bits)


@with_plain
def expected_base_bits(cells: int, hashes: int, distinct: int, total: int) -> float:
    """The bits that the counters of an even stream need, without slack.

    As many keys share a cell as a Poisson variable of mean dn/m says, each worth M/n. An empty
    counter still takes one bit.
    """
    _at_least_one(cells=cells, hashes=hashes)
    _require_stream(distinct, total)
    mean = hashes * distinct / cells
    bits = 0.0
    # Nothing worth counting lies beyond twelve deviations.
    for keys in range(ceil(mean + 12 * mean**0.5) + 12):
        chance = exp(keys * log(mean) - mean - lgamma(keys + 1))
        bits += chance * max(1, (keys * total // distinct).bit_length())
    return cells * bits


@with_plain
def index_bits(cells: float, base_bits: float, *, whole: bool = False) -> float:
    """CV1 with m bits, CV2 with 3m, OV with 3m loglog N.

    The model has logarithms as they are; a field has whole bits (`whole`): then it is 19 bits for
    each counter of every N between 65,537 and 2^32, more than most counters.
    """
    _at_least_one(cells=cells, base_bits=base_bits)
    loglog = max(1.0, log2(max(2.0, log2(base_bits)))) if base_bits > 1 else 1.0
    return 4 * cells + 3 * cells * (ceil(loglog) if whole else loglog)


@with_plain
def spectral_bits(cells: int, base_bits: float, *, slack: float = 0.0) -> float:
    """Mem_SBF = N + 4m + 3m loglog N with N = `base_bits` + slack m."""
    require("slack", slack, "from 0 to 1", 0 <= slack <= 1)
    _at_least_one(cells=cells, base_bits=base_bits)
    laid_out = base_bits + slack * cells
    return laid_out + index_bits(cells, laid_out)


@with_plain
def partitioned_spectral_bits(
    cells: int,
    base_bits: float,
    partitions: int,
    *,
    slack: float = 0.0,
    entry_bytes: float = SPECTRAL_ENTRY_BYTES,
) -> float:
    """Mem_PSBF: c times an SBF of m/c counters in N/c bits, and the PV (a pointer and metadata)."""
    vector = _vector_bits(cells, partitions, entry_bytes)
    require("slack", slack, "from 0 to 1", 0 <= slack <= 1)
    _at_least_one(base_bits=base_bits)
    laid_out = base_bits + slack * cells
    return laid_out + partitions * index_bits(cells / partitions, laid_out / partitions) + vector


@with_plain
def dynamic_count_bits(cells: int, counter_bits: int, extra_bits: int) -> int:
    """Mem_DCF = m (x + y)."""
    _at_least_one(cells=cells, counter_bits=counter_bits)
    allowed = "0 or more, and at most 64 together with `counter_bits`"
    require("extra_bits", extra_bits, allowed, 0 <= extra_bits <= 64 - counter_bits)
    return cells * (counter_bits + extra_bits)


@with_plain
def partitioned_dynamic_count_bits(
    cells: int,
    counter_bits: int,
    extra_bits: int,
    partitions: int,
    *,
    oversized_share: float,
    entry_bytes: float = DYNAMIC_ENTRY_BYTES,
) -> float:
    """Mem_PDCF = (1 - occ) m x + occ m (x + y) + 8 PV c; less where the y of partitions differ."""
    require("oversized_share", oversized_share, "from 0 to 1", 0 <= oversized_share <= 1)
    vector = _vector_bits(cells, partitions, entry_bytes)
    narrow = dynamic_count_bits(cells, counter_bits, 0)
    wide = dynamic_count_bits(cells, counter_bits, extra_bits)
    return (1 - oversized_share) * narrow + oversized_share * wide + vector


def _vector_bits(cells: int, partitions: int, entry_bytes: float) -> float:
    """8 PV c."""
    _at_least_one(cells=cells)
    require("partitions", partitions, "from 1 to the number of cells", 1 <= partitions <= cells)
    require("entry_bytes", entry_bytes, "a finite number over 0", 0 < entry_bytes < inf)
    return 8 * entry_bytes * partitions


def _require_stream(distinct: int, total: int) -> None:
    for name, value in (("distinct", distinct), ("total", total)):
        require(name, value, "a whole number, 1 or more", type(value) is int and value >= 1)
    require("total", total, "at least `distinct`", total >= distinct)


def _at_least_one(**parameters: float) -> None:
    for name, value in parameters.items():
        require(name, value, "a finite number of 1 or more", 1 <= value < inf)
