"""The settings `BLOOMTIDE_...` of a Scrapy project, read and checked in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from bloomtide import BloomFilter
from bloomtide._core import parse_duration
from bloomtide.durable.policy import Sync
from bloomtide.errors import ParameterError, require

CAPACITY = 100_000
ERROR_RATE = 1e-6
VERIFIED_ERROR_RATE = 1e-3
"""With a second check an error costs a look at the disk, not a page, so memory is worth more."""

SETTINGS = (
    "BLOOMTIDE_CAPACITY",
    "BLOOMTIDE_ERROR_RATE",
    "BLOOMTIDE_VERIFY",
    "BLOOMTIDE_REVISIT",
    "BLOOMTIDE_SHARED",
    "BLOOMTIDE_SYNC",
    "BLOOMTIDE_DURABLE",
)

_WORDS = {"true": True, "1": True, "false": False, "0": False}
"""The command line gives every setting as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the settings say."""

    capacity: int = CAPACITY
    """Pages expected; more make the filter grow."""
    error_rate: float = ERROR_RATE
    """The chance that a new page is taken for a seen one."""
    verify: bool = False
    """Whether a set on disk has the last word on what was seen."""
    revisit: float | None = None
    """Seconds after which a page is new again."""
    shared: Path | None = None
    """A filter file that several crawls use at once."""
    sync: Sync = "everysec"
    """When the log is forced to the disk: see `durable/policy.py`."""
    stated: frozenset[str] = frozenset()
    """Which of `capacity` and `error_rate` the project has set itself."""


def read_options(settings: Mapping[str, Any], names: Iterable[str] = ()) -> Options:
    """The options of a project. `names` are those of all its settings, to find a misspelled one."""
    for name in names:
        if name.startswith("BLOOMTIDE_") and name not in SETTINGS:
            near = get_close_matches(name, SETTINGS, 1, 0.8)
            raise ParameterError(
                f"there is no setting `{name}`",
                hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(SETTINGS)}",
                name=name, got=settings.get(name), allowed=", ".join(SETTINGS),
            )  # fmt: skip
    verify = _choice(settings, "BLOOMTIDE_VERIFY", ("none", "exact")) == "exact"
    revisit = settings.get("BLOOMTIDE_REVISIT") or None
    shared = settings.get("BLOOMTIDE_SHARED") or None
    for name, given in (("BLOOMTIDE_VERIFY", verify), ("BLOOMTIDE_REVISIT", revisit)):
        require(
            name, settings.get(name), "unset beside BLOOMTIDE_SHARED", not (shared and given),
            hint="several crawls can share one plain filter; the set and the times are one crawl's",
        )  # fmt: skip
    default_rate = VERIFIED_ERROR_RATE if verify else ERROR_RATE
    capacity = _number(settings, "BLOOMTIDE_CAPACITY", CAPACITY)
    error_rate = _number(settings, "BLOOMTIDE_ERROR_RATE", default_rate)
    require(
        "BLOOMTIDE_CAPACITY", capacity, "a whole number of pages, at least 1",
        capacity >= 1 and capacity == int(capacity),
    )  # fmt: skip
    _planned(int(capacity), error_rate)
    return Options(
        capacity=int(capacity),
        error_rate=error_rate,
        verify=verify,
        revisit=None if revisit is None else parse_duration(revisit, "BLOOMTIDE_REVISIT"),
        shared=None if shared is None else Path(shared),
        sync=cast(Sync, _choice(settings, "BLOOMTIDE_SYNC", ("everysec", "always", "no"))),
        stated=frozenset(
            name
            for name in ("capacity", "error_rate")
            if settings.get(f"BLOOMTIDE_{name.upper()}") not in (None, "")
        ),
    )


def is_durable(settings: Mapping[str, Any]) -> bool:
    """Whether the add-on may set a scheduler that survives a kill; it may unless told not to."""
    got = settings.get("BLOOMTIDE_DURABLE")
    word = str(True if got is None else got).lower()
    require("BLOOMTIDE_DURABLE", repr(got), "True or False", word in _WORDS)
    return _WORDS[word]


def _choice(settings: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """One of the words, the first if none is given."""
    got = settings.get(name) or allowed[0]
    words = ", ".join(f'"{word}"' for word in allowed)
    require(name, repr(got), f"one of {words}", got in allowed)
    return str(got)


def _number(settings: Mapping[str, Any], name: str, default: float) -> float:
    """A number, which the command line gives as text."""
    got = settings.get(name)
    if got is None or got == "":
        return default
    try:
        number = float(got)
    except (TypeError, ValueError):
        number = float("nan")
    require(name, repr(got), "a finite number", abs(number) < float("inf"))
    return number


def _planned(capacity: int, error_rate: float) -> None:
    """Asks the planner, so that its limits are these settings' limits."""
    try:
        BloomFilter.plan(capacity, error_rate)
    except ParameterError as error:
        name = f"BLOOMTIDE_{error.name.upper()}"
        message = error.message.replace(f"`{error.name}`", f"`{name}`")
        raise ParameterError(
            message, hint=error.hint, name=name, got=error.got, allowed=error.allowed
        ) from None
