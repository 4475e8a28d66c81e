"""Types of the compiled core; `make lint` checks them against the built module."""

import os
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, disjoint_base

from bloomery.partitions import PartitionModel
from bloomery.records import Estimate, Plan, Stats

_Key: TypeAlias = str | Buffer | int
_Keys: TypeAlias = Iterable[_Key] | Any
_Layout: TypeAlias = Literal["blocked", "classic"]
_Derivation: TypeAlias = Literal["enhanced", "double", "slices"]
_HashName: TypeAlias = Literal["xxh3", "keyed"]
_Policy: TypeAlias = Literal["plain", "conservative"]
_Counts: TypeAlias = Iterable[int] | Any
_Partitions: TypeAlias = int | Literal["auto", "adaptive"] | PartitionModel
_Nulls: TypeAlias = Literal["refuse", "skip"]
_Path: TypeAlias = str | os.PathLike[str]

_Filter: TypeAlias = (
    BloomFilter
    | ScalableBloomFilter
    | CountingBloomFilter
    | SpectralBloomFilter
    | DynamicCountFilter
    | PartitionedSpectralBloomFilter
    | PartitionedDynamicCountFilter
)

__all__ = [
    "BloomFilter",
    "CountFilter",
    "CountingBloomFilter",
    "DynamicCountFilter",
    "PartitionedDynamicCountFilter",
    "PartitionedSpectralBloomFilter",
    "ScalableBloomFilter",
    "SpectralBloomFilter",
    "__version__",
    "digest",
    "from_bytes",
    "load",
]

__version__: str

def digest(
    key: _Key, *, hash: _HashName = "xxh3", seed: int = 0, secret: bytes | None = None
) -> int: ...
def load(path: _Path) -> _Filter: ...
def from_bytes(data: Buffer) -> _Filter: ...

@final
class BloomFilter:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __new__(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        layout: _Layout | None = None,
        bits: int | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        layout: _Layout | None = None,
        bits: int | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def open(
        cls,
        path: _Path,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        mode: Literal["r", "r+", "c"] = "r",
        layout: _Layout | None = None,
        bits: int | None = None,
        hashes: int | None = None,
        derivation: _Derivation | None = None,
        hash: _HashName | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, /) -> bool: ...
    def add_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def contains_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __or__(self, value: BloomFilter, /) -> BloomFilter: ...
    def __ror__(self, value: BloomFilter, /) -> BloomFilter: ...
    def __ior__(self, value: BloomFilter, /) -> Self: ...
    def __and__(self, value: BloomFilter, /) -> BloomFilter: ...
    def __rand__(self, value: BloomFilter, /) -> BloomFilter: ...
    def __iand__(self, value: BloomFilter, /) -> Self: ...
    def merge(self, other: BloomFilter) -> None: ...
    def copy(self) -> BloomFilter: ...
    def clear(self) -> None: ...
    def estimated_items(self) -> float: ...
    def stats(self) -> Stats: ...
    def validate(self) -> None: ...
    def positions(self, key: _Key) -> list[int]: ...
    def save(self, path: _Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> BloomFilter: ...
    def __deepcopy__(self, memo: Any) -> BloomFilter: ...
    @property
    def capacity(self) -> int | None: ...
    @property
    def error_rate(self) -> float | None: ...
    @property
    def layout(self) -> _Layout: ...
    @property
    def bits(self) -> int: ...
    @property
    def hashes(self) -> int: ...
    @property
    def derivation(self) -> _Derivation: ...
    @property
    def hash(self) -> _HashName: ...
    @property
    def seed(self) -> int: ...
    @property
    def path(self) -> str | None: ...
    @property
    def closed(self) -> bool: ...

@final
class ScalableBloomFilter:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __new__(
        cls,
        capacity: SupportsIndex = 1024,
        error_rate: float = 0.01,
        *,
        growth: float = 2.0,
        tightening: float = 0.5,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex = 1024,
        error_rate: float = 0.01,
        *,
        growth: float = 2.0,
        tightening: float = 0.5,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, /) -> bool: ...
    def add_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def contains_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def copy(self) -> ScalableBloomFilter: ...
    def clear(self) -> None: ...
    def estimated_items(self) -> float: ...
    def stats(self) -> Stats: ...
    def validate(self) -> None: ...
    def positions(self, key: _Key) -> list[list[int]]: ...
    def save(self, path: _Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> ScalableBloomFilter: ...
    def __deepcopy__(self, memo: Any) -> ScalableBloomFilter: ...
    @property
    def capacity(self) -> int: ...
    @property
    def error_rate(self) -> float: ...
    @property
    def growth(self) -> float: ...
    @property
    def tightening(self) -> float: ...
    @property
    def derivation(self) -> _Derivation: ...
    @property
    def hash(self) -> _HashName: ...
    @property
    def seed(self) -> int: ...

@disjoint_base
class CountFilter:
    """What the four filters of growing counters have in common."""

    __hash__: ClassVar[None]  # type: ignore[assignment]
    def add(self, key: _Key, count: SupportsIndex = 1) -> bool: ...
    def add_many(
        self,
        keys: _Keys,
        counts: _Counts | None = None,
        *,
        nulls: _Nulls = "refuse",
        threads: int = 1,
    ) -> npt.NDArray[np.bool_]: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def contains_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def count(self, key: _Key) -> int: ...
    def count_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.uint64]: ...
    def estimate(self, key: _Key, *, confidence: float = 0.95) -> Estimate: ...
    def remove(self, key: _Key, count: SupportsIndex = 1) -> None: ...
    def remove_many(
        self, keys: _Keys, counts: _Counts | None = None, *, nulls: _Nulls = "refuse"
    ) -> None: ...
    def __or__(self, value: Self, /) -> Self: ...
    def __ror__(self, value: Self, /) -> Self: ...
    def __ior__(self, value: Self, /) -> Self: ...
    def merge(self, other: Self) -> None: ...
    def copy(self) -> Self: ...
    def clear(self) -> None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def estimated_items(self) -> float: ...
    def stats(self) -> Stats: ...
    def validate(self) -> None: ...
    def positions(self, key: _Key) -> list[int]: ...
    def cells(self) -> npt.NDArray[np.uint64]: ...
    def save(self, path: _Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Self: ...
    @property
    def capacity(self) -> int | None: ...
    @property
    def error_rate(self) -> float | None: ...
    @property
    def total(self) -> int: ...
    @property
    def hashes(self) -> int: ...
    @property
    def partitions(self) -> int: ...
    @property
    def layout(self) -> _Layout: ...
    @property
    def policy(self) -> Literal["plain", "conservative", "recurring_minimum"]: ...
    @property
    def derivation(self) -> _Derivation: ...
    @property
    def hash(self) -> _HashName: ...
    @property
    def seed(self) -> int: ...

@final
class SpectralBloomFilter(CountFilter):
    def __new__(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        slack: float = 0.1,
        on_full: Literal["grow", "saturate"] = "grow",
        policy: Literal["plain", "conservative", "recurring_minimum"] = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        slack: float = 0.1,
        on_full: Literal["grow", "saturate"] = "grow",
        policy: Literal["plain", "conservative", "recurring_minimum"] = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, count: SupportsIndex = 1) -> bool: ...
    def count(self, key: _Key, /) -> int: ...

@final
class PartitionedSpectralBloomFilter(CountFilter):
    def __new__(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        partitions: _Partitions = "auto",
        slack: float = 0.1,
        on_full: Literal["grow", "saturate"] = "grow",
        policy: Literal["plain", "conservative", "recurring_minimum"] = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        partitions: _Partitions = "auto",
        slack: float = 0.1,
        on_full: Literal["grow", "saturate"] = "grow",
        policy: Literal["plain", "conservative", "recurring_minimum"] = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, count: SupportsIndex = 1) -> bool: ...
    def count(self, key: _Key, /) -> int: ...
    def repartition(self, partitions: _Partitions) -> None: ...

@final
class DynamicCountFilter(CountFilter):
    def __new__(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        counter_bits: int | None = None,
        shrink: float = 0.5,
        policy: _Policy = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        counter_bits: int | None = None,
        shrink: float = 0.5,
        policy: _Policy = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, count: SupportsIndex = 1) -> bool: ...
    def count(self, key: _Key, /) -> int: ...

@final
class PartitionedDynamicCountFilter(CountFilter):
    def __new__(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        partitions: _Partitions = "auto",
        counter_bits: int | None = None,
        shrink: float = 0.5,
        policy: _Policy = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        total: SupportsIndex | None = None,
        partitions: _Partitions = "auto",
        counter_bits: int | None = None,
        shrink: float = 0.5,
        policy: _Policy = "plain",
        layout: _Layout | None = None,
        cells: SupportsIndex | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, count: SupportsIndex = 1) -> bool: ...
    def count(self, key: _Key, /) -> int: ...
    def repartition(self, partitions: _Partitions) -> None: ...

@final
class CountingBloomFilter:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __new__(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        counter_bits: Literal[4, 8, 16, 32] = 4,
        policy: _Policy = "plain",
        layout: _Layout | None = None,
        bits: int | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def plan(
        cls,
        capacity: SupportsIndex | None = None,
        error_rate: float | None = None,
        *,
        counter_bits: Literal[4, 8, 16, 32] = 4,
        policy: _Policy = "plain",
        layout: _Layout | None = None,
        bits: int | None = None,
        hashes: int | None = None,
        derivation: _Derivation = "enhanced",
    ) -> Plan: ...
    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        hash: _HashName = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Self: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self: ...
    def add(self, key: _Key, count: SupportsIndex = 1) -> bool: ...
    def add_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def contains_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.bool_]: ...
    def count(self, key: _Key, /) -> int: ...
    def count_many(
        self, keys: _Keys, *, nulls: _Nulls = "refuse", threads: int = 1
    ) -> npt.NDArray[np.uint32]: ...
    def estimate(self, key: _Key, *, confidence: float = 0.95) -> Estimate: ...
    def remove(self, key: _Key, count: SupportsIndex = 1) -> None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __or__(self, value: CountingBloomFilter, /) -> CountingBloomFilter: ...
    def __ror__(self, value: CountingBloomFilter, /) -> CountingBloomFilter: ...
    def __ior__(self, value: CountingBloomFilter, /) -> Self: ...
    def merge(self, other: CountingBloomFilter) -> None: ...
    def copy(self) -> CountingBloomFilter: ...
    def clear(self) -> None: ...
    def estimated_items(self) -> float: ...
    def stats(self) -> Stats: ...
    def validate(self) -> None: ...
    def positions(self, key: _Key) -> list[int]: ...
    def cells(self) -> npt.NDArray[np.uint32]: ...
    def save(self, path: _Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> CountingBloomFilter: ...
    def __deepcopy__(self, memo: Any) -> CountingBloomFilter: ...
    @property
    def capacity(self) -> int | None: ...
    @property
    def error_rate(self) -> float | None: ...
    @property
    def bits(self) -> int: ...
    @property
    def hashes(self) -> int: ...
    @property
    def counter_bits(self) -> int: ...
    @property
    def layout(self) -> _Layout: ...
    @property
    def policy(self) -> _Policy: ...
    @property
    def derivation(self) -> _Derivation: ...
    @property
    def hash(self) -> _HashName: ...
    @property
    def seed(self) -> int: ...
