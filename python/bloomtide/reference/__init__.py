"""Every structure in short plain Python, written to be read beside its paper.

Lists of bools and ints, one small file per structure, no NumPy, nothing clever. The tests run each
model next to the compiled filter and compare the two cell by cell. A model shares with the core
only the `positions` callable it is given; `positions` models that callable too, starting from
nothing but the 128-bit digest of a key.

    bloom.py          the Bloom filter           cells: list[bool]
    counting.py       the counting Bloom filter  cells: list[int]
    scalable.py       the scalable Bloom filter  layers: list of Bloom filters
    spectral.py       the spectral Bloom filter  values and field widths: two list[int]
    dynamic_count.py  the dynamic count filter   CBFV and OFV: two list[int], and the level table
    partitioned.py    both of them in pieces     parts: list of either
    decaying.py       the time-decaying filter   cells: list[int], a stamp for each block of them
    hot_list.py       the hot list               places: list of keys with two fractions
    url.py            the multi-layer filter     layers and X: to the letter, and repaired
    history.py        multi-Bloom filters        a gate, and rows: list of list[int]
    logs.py           lines of web logs          regular expressions, json and datetime
    policies.py       the verbs of these four: plain, conservative
    positions.py      digest -> cells: the three derivations and the blocked layouts
    siphash.py        SipHash-c-d with a 128-bit result: the digest of `hash="keyed"`
"""

from bloomtide.reference.bloom import ReferenceBloomFilter
from bloomtide.reference.counting import ReferenceCountingBloomFilter
from bloomtide.reference.decaying import (
    DecayedSum,
    ReferenceTimeDecayingBloomFilter,
)
from bloomtide.reference.dynamic_count import ReferenceDynamicCountFilter
from bloomtide.reference.history import ReferenceHistory, ReferenceMultiBloomFilter
from bloomtide.reference.hot_list import ReferenceHotList
from bloomtide.reference.partitioned import (
    ReferencePartitionedDynamicCountFilter,
    ReferencePartitionedSpectralBloomFilter,
)
from bloomtide.reference.scalable import ReferenceScalableBloomFilter
from bloomtide.reference.spectral import ReferenceSpectralBloomFilter
from bloomtide.reference.url import ReferenceMultiLayerBloomFilter, ReferenceUrlFilter

__all__ = [
    "DecayedSum",
    "ReferenceBloomFilter",
    "ReferenceCountingBloomFilter",
    "ReferenceDynamicCountFilter",
    "ReferenceHistory",
    "ReferenceHotList",
    "ReferenceMultiBloomFilter",
    "ReferenceMultiLayerBloomFilter",
    "ReferencePartitionedDynamicCountFilter",
    "ReferencePartitionedSpectralBloomFilter",
    "ReferenceScalableBloomFilter",
    "ReferenceSpectralBloomFilter",
    "ReferenceTimeDecayingBloomFilter",
    "ReferenceUrlFilter",
]
