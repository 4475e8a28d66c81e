"""The packages of an extra: checked where they are needed, named with the install line if missing.

    require("redis", "`bloomtide watch redis://`")          # installed, in a version that works?

    with require("guard", "`DatabaseGuard`"):               # and it can be imported
        from bloomtide.guard.guard import DatabaseGuard

Both raise `MissingExtraError`, which is an `ImportError`. The packages of an extra are read from
the metadata of the installed bloomtide, so only `pyproject.toml` lists them. In a source tree
without that metadata only the `with` form notices that something is missing.

Versions are read from the names of the `.dist-info` folders, where the packaging standard puts
them: one check takes a millisecond, and loading `importlib.metadata` alone takes twenty. Understood
is what `pyproject.toml` uses: `>=` and `<`, and markers for an extra or for `sys_platform`.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from bloomtide.errors import MissingExtraError

if TYPE_CHECKING:
    from types import TracebackType

# Distributions whose module is not called like them.
_MODULES = {"protobuf": "google.protobuf"}


class Requirement(NamedTuple):
    """One package that an extra declares: `sqlalchemy >=2.0,<2.2`."""

    package: str
    bounds: str

    def __str__(self) -> str:
        return f"{self.package} {self.bounds}".rstrip()


class Importing:
    """Turns what a broken package raises in its block into the error that names the extra."""

    def __init__(self, extra: str, what: str, instead: str) -> None:
        self.extra = extra
        self.what = what
        self.instead = instead

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, MissingExtraError) or not _is_broken_package(error):
            return
        # pip leaves alone what its metadata calls installed, so it has to be told.
        packages = [each.package for each in requirements(self.extra)]
        option = "--force-reinstall " if packages else ""
        raise MissingExtraError(
            f"{self.what} needs the extra `{self.extra}`, which cannot be imported: {error}",
            hint=f"pip install {option}{install_name(self.extra)}{self.instead}",
            extra=self.extra,
            packages=packages,
        ) from error


def _is_broken_package(error: BaseException | None) -> bool:
    """Whether somebody else's package is to blame; a mistake of ours is not mended by pip."""
    match error:
        case ImportError():
            blamed = error.name or ""
        case AttributeError(obj=ModuleType() as module):
            blamed = module.__name__
        case SyntaxError():
            return Path(__file__).parent not in Path(error.filename or "").parents
        case _:
            return False
    return blamed.partition(".")[0] != "bloomtide"


def require(extra: str, what: str, *, instead: str = "") -> Importing:
    """Refuse to go on unless every package of the extra is there in a version within its bounds.

    `what` begins the message: what the user asked for, such as "`DatabaseGuard`". `instead` goes
    behind the install line in the hint: a way to do without, such as "take --csv".
    """
    instead = instead and f", or {instead}"
    installed = _find_installed()
    faults = [
        (each, fault)
        for each in _read_requirements(extra, installed)
        if (fault := _find_fault(each, installed))
    ]
    if faults:
        raise MissingExtraError(
            f"{what} needs {', '.join(f'{each} ({fault})' for each, fault in faults)}",
            hint=f"pip install {install_name(extra)}{instead}",
            extra=extra,
            packages=[each.package for each, _ in faults],
        )
    return Importing(extra, what, instead)


def install_name(extra: str) -> str:
    """What to give to pip: `'bloomtide[guard]'`, quoted for a shell."""
    return f"'bloomtide[{extra}]'"


def requirements(extra: str) -> list[Requirement]:
    """The packages of an extra and of the extras it includes; none without metadata."""
    return _read_requirements(extra, _find_installed())


def satisfies(version: str, bounds: str) -> bool:
    """Whether a version is within bounds like `>=2.0,<2.2`; a pre-release counts as its release."""
    release = _read_release(version)
    for bound in filter(None, bounds.split(",")):
        if bound.startswith(">="):
            holds = release >= _read_release(bound[2:])
        elif bound[0] == "<" and bound[1] != "=":
            holds = release < _read_release(bound[1:])
        else:
            raise NotImplementedError(f"only >= and < are understood, got: {bound}")
        if not holds:
            return False
    return True


class _Metadata(NamedTuple):
    folder: str
    version: str  # empty if the folder's name does not say


def _find_installed() -> dict[str, _Metadata]:
    """Every distribution by its normalized name; the first on the path counts."""
    found: dict[str, _Metadata] = {}
    for entry in sys.path:
        try:
            names = os.listdir(entry or ".")  # noqa: PTH208 - without an object for each name
        except OSError:  # an archive, or nothing at all
            continue
        for name in names:
            stem, _, ending = name.rpartition(".")
            if ending in ("dist-info", "egg-info"):
                package, _, rest = stem.partition("-")
                metadata = _Metadata(f"{entry or '.'}/{name}", rest.partition("-")[0])
                found.setdefault(_normalize(package), metadata)
    return found


def _normalize(package: str) -> str:
    return re.sub(r"[-_.]+", "_", package).lower()


def _read_requirements(extra: str, installed: dict[str, _Metadata]) -> list[Requirement]:
    found: dict[str, Requirement] = {}
    lines = _read_declarations(installed)
    waiting, seen = [extra], {extra}
    while waiting:
        wanted = waiting.pop()
        for line in lines:
            text, _, marker = line.partition(";")
            match = re.fullmatch(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?\s*\(?([^)]*?)\)?\s*", text)
            if match is None or not _holds(marker, wanted):
                continue
            name, extras, bounds = match.groups()
            if name == "bloomtide":
                more = {each.strip() for each in extras.split(",")} - seen
                seen |= more
                waiting += sorted(more)
            else:
                found[name] = Requirement(name, bounds.replace(" ", ""))
    return list(found.values())


def _read_declarations(installed: dict[str, _Metadata]) -> list[str]:
    """The requirements in the metadata of the installed bloomtide, as they are written there."""
    if "bloomtide" not in installed:
        return []
    try:
        text = Path(installed["bloomtide"].folder, "METADATA").read_text(encoding="utf-8")
    except OSError:
        return []
    return re.findall(r"^Requires-Dist: (.+)$", text.partition("\n\n")[0], flags=re.MULTILINE)


def _find_fault(requirement: Requirement, installed: dict[str, _Metadata]) -> str:
    """What is wrong with a package, in words; nothing if it will do."""
    package, bounds = requirement
    if (metadata := installed.get(_normalize(package))) is None:
        # Spark's own clusters bring PySpark as a folder, without metadata and without a version.
        module = _MODULES.get(package, _normalize(package))
        return "" if _can_find(module) else "not installed"
    if metadata.version and not satisfies(metadata.version, bounds):
        return f"{metadata.version} is installed"
    return ""


def _can_find(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # no parent package, or a module without a spec
        return False


def _holds(marker: str, extra: str) -> bool:
    """Whether a requirement is the extra's, on this platform."""
    if not re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", marker):
        return False
    platforms = re.findall(r"sys_platform ([!=])= ['\"](\w+)['\"]", marker)
    return all((sys.platform == name) == (sign == "=") for sign, name in platforms)


def _read_release(version: str) -> tuple[int, ...]:
    """The numbers of a version without trailing zeros: 2.1.0rc1 is (2, 1)."""
    numbers = re.match(r"\d+(?:\.\d+)*", version.strip())
    release = [int(number) for number in numbers[0].split(".")] if numbers else []
    while release and release[-1] == 0:
        release.pop()
    return tuple(release)


class _StandIn(type):
    """The type of a class whose extra is missing: all that can be done with it raises."""

    _error: MissingExtraError
    """The latest refusal."""

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> None:
        super().__init__(name, bases, body)
        if bases:
            cls._refuse()  # a subclass, to which the error has come down

    def __call__(cls, *arguments: object, **words: object) -> NoReturn:
        cls._refuse()

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):  # what `inspect`, `pydoc` and pickling look for
            raise AttributeError(name)
        cls._refuse()

    def _refuse(cls) -> NoReturn:
        error = cls._error
        raise MissingExtraError(error.message, hint=error.hint, **error.fields) from error


def stand_in(name: str, error: MissingExtraError) -> type:
    """A class to be imported instead of one whose extra is missing; it raises when it is used."""
    made = _make_stand_in(name, error.extra)
    made._error = error
    return made


@cache  # one class for each name: it can be compared and pickled
def _make_stand_in(name: str, extra: str) -> _StandIn:
    about = f"Needs the extra `{extra}`: pip install {install_name(extra)}."
    return _StandIn(name, (), {"__doc__": about, "__module__": "bloomtide"})
