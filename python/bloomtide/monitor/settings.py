"""What a monitor is made by: fixed, so what is given for one that exists must be the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, TypedDict, get_args

from bloomtide._core import parse_duration
from bloomtide.errors import IncompatibleError, ParameterError, require
from bloomtide.plain import all_plain

Seen = Literal["bloom", "url"]


class Given(TypedDict, total=False):
    """What a caller may say; what is left out is as it was, or as `Settings` has it."""

    capacity: int
    error_rate: float
    seen: Seen | None
    counts: bool
    hot: int | None
    half_life: Any
    history: bool
    window: Any
    retention: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a monitor, durations in seconds."""

    capacity: int = 1_000_000
    error_rate: float = 0.01
    seen: Seen | None = "bloom"
    counts: bool = True
    hot: int | None = 1000
    half_life: float = 600.0
    history: bool = True
    window: float = 60.0
    retention: str | None = None

    @classmethod
    def create(cls, given: Given, stored: dict[str, Any] | None, *, on_disk: bool) -> Self:
        """From what a caller gave, over what the monitor has, over the defaults."""
        asked = all_plain(given)
        known = [field.name for field in fields(cls)]
        for name in asked:
            if name not in known:
                raise ParameterError(
                    f"a monitor has no setting `{name}`", hint=f"it has {', '.join(known)}",
                    name=name, got=name, allowed="one of its settings",
                )  # fmt: skip
        for name in ("half_life", "window"):
            if name in asked:
                asked[name] = parse_duration(asked[name], name)
        require("seen", asked.get("seen"), '"bloom", "url" or None',
                asked.get("seen") in (None, *get_args(Seen)))  # fmt: skip
        if stored is None:
            if not on_disk and asked.setdefault("history", False):
                require("history", True, "in a directory only", False, hint="give a path")
            return cls(**asked)
        for name, value in asked.items():
            if name != "retention" and value != stored[name]:
                raise IncompatibleError(
                    f"the monitor was made with {name}={stored[name]!r}, not {value!r}",
                    hint="leave it out to open the monitor as it is",
                    field=name, expected=stored[name], got=value,
                )  # fmt: skip
        return cls(**stored | asked)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)
