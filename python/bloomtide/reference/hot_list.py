"""The hot list in plain Python: decayed SpaceSaving with exact numbers.

SpaceSaving (Metwally et al. 2005) keeps k places. A listed key raises its count; any other takes
the place with the smallest count and starts from there, since that is the most it can have had.
Decay follows the specification, 10.2: a count never shrinks here, but an event of time t weighs
2**(t / half_life), and a question divides by the weight of its own instant. Weights are decimals of
60 digits, and exact fractions when there is no decay or all instants are whole half-lives.

Of equal weights the lowest place goes first, as in the core, so both evict the same keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

Key = str | bytes | int
_DIGITS = Context(prec=60)


@dataclass
class Place:
    """A listed key: its true weight is between `low` and `high`."""

    key: Key
    low: Fraction
    high: Fraction


class ReferenceHotList:
    """The k hottest keys, by exact arithmetic."""

    def __init__(self, k: int, half_life: float | None = None) -> None:
        self.k = k
        self.half_life = half_life
        self.places: list[Place] = []
        self.sum = Fraction(0)
        self.time = 0.0

    def weight(self, at: float) -> Fraction:
        """What one event of that instant weighs."""
        if self.half_life is None:
            return Fraction(1)
        return power_of_two(Fraction(at) / Fraction(self.half_life))

    def add(self, key: Key, count: int = 1, at: float = 0.0) -> None:
        """An event; one before the list's time just weighs less."""
        weight = count * self.weight(at)
        self.time = max(self.time, at)
        self.sum += weight
        place = self._find(key)
        if place is not None:
            place.low += weight
            place.high += weight
        elif len(self.places) < self.k:
            self.places.append(Place(key, weight, weight))
        else:
            smallest = min(self.places, key=lambda place: place.high)
            smallest.key, smallest.low = key, weight
            smallest.high += weight

    def _find(self, key: Key) -> Place | None:
        return next((place for place in self.places if _same(place.key, key)), None)

    def floor(self) -> Fraction:
        """The most that a key outside the list can weigh."""
        full = len(self.places) == self.k
        return (
            min((place.high for place in self.places), default=Fraction(0)) if full else Fraction(0)
        )

    def bounds(self, key: Key, at: float) -> tuple[Fraction, Fraction]:
        """The lower and upper bound of a key's decayed count."""
        place = self._find(key)
        low, high = (place.low, place.high) if place else (Fraction(0), self.floor())
        return low / self.weight(at), high / self.weight(at)

    def total(self, at: float) -> Fraction:
        """The decayed count of all events."""
        return self.sum / self.weight(at)

    def top(self) -> list[Key]:
        """The listed keys, the hottest first."""
        order = sorted(self.places, key=lambda place: (-place.high, -place.low))
        return [place.key for place in order]

    def merge(self, other: ReferenceHotList) -> None:
        """Adds what both lists say; one that lacks a key adds the most it can have missed."""
        missed, theirs = self.floor(), other.floor()
        merged = []
        for place in self.places:
            twin = other._find(place.key)
            low, high = (twin.low, twin.high) if twin else (Fraction(0), theirs)
            merged.append(Place(place.key, place.low + low, place.high + high))
        merged += [
            Place(place.key, place.low, place.high + missed)
            for place in other.places
            if self._find(place.key) is None
        ]
        merged.sort(key=lambda place: (-place.high, -place.low))
        self.places = merged[: self.k]
        self.sum += other.sum
        self.time = max(self.time, other.time)


def power_of_two(exponent: Fraction) -> Fraction:
    """2**exponent: exact for whole numbers, otherwise to 60 digits."""
    whole = exponent.numerator // exponent.denominator
    rest = exponent - whole
    if rest == 0:
        return Fraction(2) ** whole
    digits = _DIGITS.divide(Decimal(rest.numerator), Decimal(rest.denominator))
    return Fraction(2) ** whole * Fraction(_DIGITS.power(Decimal(2), digits))


def _same(a: Key, b: Key) -> bool:
    """Text and its UTF-8 bytes are one key; a number is never a text."""
    return _plain(a) == _plain(b)


def _plain(key: Key) -> bytes | int:
    return key.encode() if isinstance(key, str) else key
