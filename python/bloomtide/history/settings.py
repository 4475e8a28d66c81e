"""What a store is made by, and what may be changed when it is opened again.

Fixed for ever, because the files depend on it: `window` or `arrivals`, the ladder, `rows`, the hash
and its seed or secret. Each may be left out when the store exists; one that differs is refused by
name. The rest holds from the next open on. Of a secret they hold a fingerprint; segment files hold
the secret itself, as those of filters do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from bloomtide._core import HistoryBuffer, digest
from bloomtide.durable.policy import Sync, require_sync
from bloomtide.errors import IncompatibleError, ParameterError, require
from bloomtide.history.ladder import (
    MICRO,
    Level,
    build_ladder,
    levels_of,
    micros,
    parse_retention,
)
from bloomtide.plain import all_plain

FIXED = ("window", "arrivals", "rows", "hash", "seed", "fingerprint", "location")
"""In the order in which a difference is reported."""

HashName = Literal["xxh3", "keyed"]
Nulls = Literal["refuse", "skip"]

GIVEN = (
    "window", "arrivals", "rows", "error_rate", "gate_error", "retention", "lateness",
    "sync", "names", "entries", "hash", "seed", "location",
)  # fmt: skip
"""What a caller may say when a store is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a store, times in microseconds."""

    window: int | None
    arrivals: int | None
    rows: int
    """Rows of a segment of level 0."""
    ladder: tuple[int, ...]
    """Windows of the levels; empty by arrivals."""
    hash: HashName
    seed: int
    fingerprint: int
    location: str | None
    error_rate: float
    gate_error: float
    lateness: int
    retention: str | None
    sync: Sync
    names: int
    entries: int
    """Pairs of key and row in memory that make the store seal what is open."""

    @classmethod
    def create(
        cls, given: dict[str, Any], secret: bytes | None, stored: dict[str, Any] | None
    ) -> Self:
        """From what a caller gave (None is not given), over what the store has, over defaults."""
        asked = _parse(given, secret)
        if stored is not None:
            for name in FIXED:
                if asked.get(name) is not None and asked[name] != stored[name]:
                    _refuse_difference(name, stored[name], asked[name])
            known = stored | {
                name: value
                for name, value in asked.items()
                if value is not None and name not in FIXED
            }
            if asked["fingerprint"] is None and stored["hash"] == "keyed":
                _refuse_difference("secret", "the store's secret", None)
            return cls(**known | {"ladder": tuple(known["ladder"])})
        if asked["window"] is None and asked["arrivals"] is None:
            asked["window"] = 60 * MICRO
        rules = parse_retention(asked["retention"])
        if asked["window"] is None and rules:
            _refuse_together("retention")
        ladder = build_ladder(asked["window"], rules) if asked["window"] else ()
        rows = ladder[1] // ladder[0] if ladder else (asked["rows"] or 10)
        words = {name: value for name, value in asked.items() if value is not None}
        made = {"window": None, "arrivals": None, "location": None, "retention": None} | _DEFAULTS
        made |= words | {"ladder": ladder, "rows": rows}
        made["fingerprint"] = _fingerprint(made["hash"], made["seed"], secret)
        made.setdefault("gate_error", made["error_rate"])
        return cls(**made)

    def error_of(self, level: int) -> float:
        """What a segment of a level is sized for. A range reads two segments of each level at its
        edges; all of these together keep `error_rate`."""
        return max(self.error_rate * 0.5 ** (level + 2), 1e-15)

    def levels(self) -> tuple[Level, ...]:
        """The levels by time; none by arrivals."""
        return levels_of(self.ladder, parse_retention(self.retention)) if self.ladder else ()

    def buffer(self, secret: bytes | None, *, journal: bool = False) -> HistoryBuffer:
        """An empty buffer for the open segments; `journal`: with the records of what is added."""
        return HistoryBuffer(
            window=self.window,
            arrivals=self.arrivals,
            rows=self.rows,
            hash=self.hash,
            seed=self.seed,
            secret=secret,
            names=self.names,
            journal=journal,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the catalogue."""
        return asdict(self) | {"ladder": list(self.ladder)}


_DEFAULTS: dict[str, Any] = {
    "hash": "xxh3",
    "seed": 0,
    "error_rate": 0.01,
    "lateness": 0,
    "sync": "everysec",
    "names": 256,
    "entries": 8_000_000,
}


def _parse(given: dict[str, Any], secret: bytes | None) -> dict[str, Any]:
    """Checks each word by itself, and makes microseconds of times."""
    asked = all_plain(given)
    if asked["window"] is not None and asked["arrivals"] is not None:
        _refuse_together("arrivals")
    if asked["window"] is not None:
        asked["window"] = micros(asked["window"], "window")
        if asked["rows"] is not None:
            _refuse_together("rows")
    if asked["lateness"] is not None:
        asked["lateness"] = micros(asked["lateness"], "lateness", zero=True)
    for name in ("arrivals", "rows", "entries"):
        value = asked[name]
        whole = value is None or (type(value) is int and 1 <= value < 2**62)
        require(name, value, "a whole number above zero", whole)
    # One row would be a segment, which would be the row of a segment, and so on without an end.
    require("rows", asked["rows"], "at least 2", asked["rows"] != 1)
    for name in ("error_rate", "gate_error"):
        value = asked[name]
        within = value is None or (isinstance(value, int | float) and 1e-12 <= value < 1)
        require(name, value, "between 1e-12 and 1", within)
    if asked["sync"] is not None:
        require_sync(asked["sync"])
    require("hash", asked["hash"], "xxh3 or keyed", asked["hash"] in (None, "xxh3", "keyed"))
    if secret is not None:
        asked["hash"] = asked["hash"] or "keyed"
    asked["fingerprint"] = None
    if secret is not None or asked["hash"] is not None or asked["seed"] is not None:
        hash_name = asked["hash"] or _DEFAULTS["hash"]
        asked["fingerprint"] = _fingerprint(hash_name, asked["seed"] or 0, secret)
    parse_retention(asked["retention"])
    return asked


def _fingerprint(hash_name: HashName, seed: int, secret: bytes | None) -> int:
    """What the hash makes of a fixed key: tells secrets apart and gives nothing away."""
    return digest("bloomtide history", hash=hash_name, seed=seed, secret=secret) % 2**63


def _refuse_difference(name: str, expected: object, got: object) -> None:
    name = "secret" if name == "fingerprint" else name
    raise IncompatibleError(
        f"the store was made with another `{name}`: {expected}, got: {got}",
        hint="leave it out to open the store as it is",
        field=name,
        expected=expected,
        got=got,
    )


def _refuse_together(name: str) -> None:
    raise ParameterError(
        f"`{name}` does not go with this mode: rows end either by `window` or by `arrivals`",
        hint="give one of them; `rows` goes with `arrivals`, `retention` with `window`",
        name=name,
        got=name,
        allowed="one of both",
    )
