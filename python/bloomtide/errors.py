"""Every error bloomtide raises, defined once; the compiled core raises these same classes.

    BloomtideError                      .code (stable slug)   .hint (what to do)
    ├── ParameterError (ValueError)        name, got, allowed
    ├── KeyTypeError (TypeError)           got, index, added
    ├── NullKeyError (ValueError)          index, added
    ├── AbsentKeyError (KeyError)          estimate, requested, added
    ├── CapacityError (MemoryError)        needed, limit
    ├── IncompatibleError (ValueError)     field, expected, got
    ├── UnsupportedError (TypeError)       verb, policy
    ├── ClosedError (ValueError)           path
    ├── ReadOnlyError (ValueError)         path
    ├── InvariantError (RuntimeError)      invariant
    ├── RequestError (ValueError)          status, field
    ├── MissingExtraError (ImportError)    extra, packages
    ├── SnapshotError (ValueError)         path, offset
    │   ├── NotASnapshotError              not our file at all
    │   ├── VersionError                   expected, got
    │   ├── KindError                      expected, got
    │   ├── TruncatedError                 expected, got
    │   ├── ChecksumError                  expected, got
    │   └── UnsealedError                  a shared file that nobody closed
    └── StorageError (OSError)             path, operation
        ├── LockedError                    pid of the process that writes, if known
        └── JournalError                   offset

Each class is also the natural built-in, so `except ValueError` keeps working. `OverfullWarning` is
no error: a `UserWarning` of a filter that holds more than twice the keys it was made for.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, TypeVar


class BloomtideError(Exception):
    """Base of every bloomtide error. `code` is a stable slug, `hint` says what to do next."""

    code: ClassVar[str] = "error"
    hint: str

    def __init__(self, message: str, *, hint: str = "", **fields: Any) -> None:
        # StorageError is an OSError, whose own __init__ would take two arguments for (errno, text).
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.fields)


def _rebuild(
    cls: type[BloomtideError], message: str, hint: str, fields: dict[str, Any]
) -> BloomtideError:
    return cls(message, hint=hint, **fields)


class ParameterError(BloomtideError, ValueError):
    """A parameter is out of range or does not go with another one."""

    code = "parameter"
    name: str
    got: object
    allowed: str


class KeyTypeError(BloomtideError, TypeError):
    """A key is neither `str`, bytes-like nor a 64-bit `int`."""

    code = "key-type"
    got: str
    index: int | None
    added: int | None


class NullKeyError(BloomtideError, ValueError):
    """A batch holds a null where a key should be."""

    code = "null-key"
    index: int
    added: int


class AbsentKeyError(BloomtideError, KeyError):
    """A key cannot be removed that often: some of its counters are too small."""

    code = "absent-key"
    estimate: int
    requested: int
    added: int | None = None


class CapacityError(BloomtideError, MemoryError):
    """It does not fit this machine's memory, or needs more cells than digests tell apart."""

    code = "capacity"
    needed: int
    limit: int
    added: int | None = None


class IncompatibleError(BloomtideError, ValueError):
    """Two filters, or a file and the parameters given, do not go together."""

    code = "incompatible"
    field: str
    expected: object
    got: object


class UnsupportedError(BloomtideError, TypeError):
    """The filter's policy forbids this verb, or this operating system cannot do it."""

    code = "unsupported"
    verb: str
    policy: str


class ClosedError(BloomtideError, ValueError):
    """The file or store was closed, or was opened before this process was forked."""

    code = "closed"
    path: str


class ReadOnlyError(BloomtideError, ValueError):
    """A change of something that is open for reading only."""

    code = "read-only"
    path: str


class InvariantError(BloomtideError, RuntimeError):
    """`validate()` found a broken invariant."""

    code = "invariant"
    invariant: str


class RequestError(BloomtideError, ValueError):
    """The server refuses a request over HTTP as such, whatever the structures would say."""

    code = "request"
    status: int
    field: str


class MissingExtraError(BloomtideError, ImportError):
    """A package of an extra is not installed, has a wrong version or cannot be imported."""

    code = "missing-extra"
    extra: str
    packages: list[str]


class SnapshotError(BloomtideError, ValueError):
    """A file or byte string is not what it should be, or cannot be trusted."""

    code = "snapshot"
    path: str | None
    offset: int | None


class NotASnapshotError(SnapshotError):
    """The bytes do not start with bloomtide's magic."""

    code = "not-a-snapshot"


class VersionError(SnapshotError):
    """The file was written in a newer version of its format."""

    code = "version"
    expected: int
    got: int


class KindError(SnapshotError):
    """The file is sound and of another kind: another filter, or no filter."""

    code = "kind"
    expected: str
    got: str


class TruncatedError(SnapshotError):
    """The bytes are cut short, or more follow their end; or a file was cut while it was mapped."""

    code = "truncated"
    expected: int
    got: int


class ChecksumError(SnapshotError):
    """The bytes were changed after they were written."""

    code = "checksum"
    expected: int
    got: int


class UnsealedError(SnapshotError):
    """A shared file that is open elsewhere or was not closed, so it has no valid checksums."""

    code = "unsealed"


class StorageError(BloomtideError, OSError):
    """The operating system refused a file operation."""

    code = "storage"
    path: str
    operation: str


class LockedError(StorageError):
    """Another process has the store, or the file that was to be replaced, open for writing."""

    code = "locked"
    pid: int | None


class JournalError(StorageError):
    """A journal is damaged before its end, or takes no more records after a write that failed."""

    code = "journal"
    offset: int | None


class OverfullWarning(UserWarning):
    """A filter holds more than twice the keys it was made for, and so errs far more often.

    Issued once by each filter. `items` is about how many keys are inside, `predicted_error` the
    chance that an absent one is called seen.
    """

    def __init__(
        self, message: str, items: float = 0.0, capacity: int = 0, predicted_error: float = 0.0
    ) -> None:
        super().__init__(message, items, capacity, predicted_error)
        self.items = items
        self.capacity = capacity
        self.predicted_error = predicted_error

    def __str__(self) -> str:
        return str(self.args[0])


def list_error_codes() -> dict[str, type[BloomtideError]]:
    """Every error class by its stable code."""
    found: dict[str, type[BloomtideError]] = {}
    queue: list[type[BloomtideError]] = [BloomtideError]
    while queue:
        cls = queue.pop()
        found[cls.code] = cls
        queue.extend(cls.__subclasses__())
    return dict(sorted(found.items()))


def refusal(name: str, got: object, allowed: str, hint: str = "") -> ParameterError:
    """The error of a parameter, worded as the compiled core words it."""
    message = f"`{name}` must be {allowed}, got: {got}"
    return ParameterError(message, hint=hint, name=name, got=got, allowed=allowed)


def require(name: str, got: object, allowed: str, holds: bool, *, hint: str = "") -> None:
    """Refuse a parameter unless the condition `holds`."""
    if not holds:
        raise refusal(name, got, allowed, hint)


# ---- what the compiled core raises: it says what happened, and here is what to do about it

_DAMAGED = "the bytes changed after they were written: restore them from a copy or build them again"
_UNCHANGED = "what was there before is unchanged"
_NO_SPACE = f"free some space; {_UNCHANGED}"

_HINTS = {
    "CapacityError": "lower `capacity`, or allow a larger `error_rate`",
    "IncompatibleError": "make both filters with the same parameters and the same seed",
    "AbsentKeyError": "remove only what was added, and no more often; this key is as it was",
    "UnsupportedError": 'use policy="plain" for filters that remove',
    "ReadOnlyError": 'open it with mode="r+" to add',
    "InvariantError": "build the filter again, and report how it came about",
    "NotASnapshotError": "check the path: this is some other program's file",
    "VersionError": "read it with a newer bloomtide",
    "TruncatedError": "it was cut or copied only in part: restore it from a copy or build it again",
    "ChecksumError": _DAMAGED,
    "SnapshotError": _DAMAGED,
    "UnsealedError": (
        'open it with BloomFilter.open(path, mode="r+"); closing it writes the checksums'
    ),
}

_STORAGE_HINTS = {
    "NotFound": "check the path, and that its directory exists",
    "PermissionDenied": "check the permissions of the file and of its directory",
    "IsADirectory": "give the path of a file, not of a directory",
    "InvalidInput": "give the path of a file",
    "StorageFull": _NO_SPACE,
    "QuotaExceeded": _NO_SPACE,
    "FileTooLarge": _NO_SPACE,
    "ReadOnlyFilesystem": "the file system is read-only: save somewhere else",
}
"""By Rust's names for what the operating system said."""

_KEY_HINTS = {
    "NoneType": 'leave missing values out; a batch skips them with nulls="skip"',
    "float": "convert it: int(key) or str(key)",
    "bool": "convert it: int(key) or str(key)",
    "int": "an int key has 64 bits, from -2**63 to 2**64 - 1; use str(key) for larger ones",
    "tuple": "join its parts into one str or bytes key",
    "list": "join its parts into one str or bytes key",
}


def core_error(name: str, message: str, fields: dict[str, Any]) -> BloomtideError:
    """An error of that class, with the usual hint unless the fields have one."""
    hint = fields.pop("hint", None)
    if name == "StorageError":
        hint = _STORAGE_HINTS.get(fields.pop("reason"), f"see errno; {_UNCHANGED}")
    cls: type[BloomtideError] = globals()[name]
    if issubclass(cls, SnapshotError):
        fields = {"path": None, "offset": None} | fields
    return cls(message, hint=_HINTS.get(name, "") if hint is None else hint, **fields)


def warn_overfull(text: str, items: float, capacity: int, predicted_error: float) -> None:
    """Issue the warning of an overfull filter, in the name of who called it."""
    found = OverfullWarning(
        f"{text}; make it larger, or use a ScalableBloomFilter", items, capacity, predicted_error
    )
    warnings.warn(found, stacklevel=2)


def key_type(key: object, row: int | None, surrogate: bool) -> KeyTypeError:
    """A key of a type that has no digest; `row` is its place in a batch."""
    got = type(key).__qualname__
    if surrogate:
        problem = "a `str` with a lone surrogate has no UTF-8 form"
        hint = 'encode it yourself, for example key.encode("utf-8", "surrogatepass")'
        return _no_key(got, row, problem, hint)
    hint = _KEY_HINTS.get(got, "convert it to str, bytes or int")
    if row is not None and got in {"tuple", "list"}:
        hint = "give counts as counts=[...] or as a mapping {key: count}; join the parts of one key"
    problem = f"a key must be `str`, bytes-like or a 64-bit `int`, got: `{got}`"
    return _no_key(got, row, problem, hint)


def text_type(key: object, row: int | None) -> KeyTypeError:
    """An integer where keys are texts."""
    got = type(key).__qualname__
    problem = f"a URL must be `str` or bytes-like, got: `{got}`"
    return _no_key(got, row, problem, "give the URL itself, with its scheme")


def _no_key(got: str, row: int | None, problem: str, hint: str) -> KeyTypeError:
    message = problem if row is None else f"keys[{row}]: {problem}"
    return KeyTypeError(message, hint=hint, got=got, index=row, added=None)


def null_key(row: int, whole: bool) -> NullKeyError:
    """A row without a key, in a batch that goes in up to there, or `whole` or not at all."""
    if whole:
        message = f"keys[{row}] is null; nothing was added"
        hint = 'nulls="skip" leaves such rows out'
    else:
        message = f"keys[{row}] is null; the {row} keys before it were processed"
        hint = 'nulls="skip" answers False (or 0) for such rows'
    return NullKeyError(message, hint=hint, index=row, added=0 if whole else row)


def in_row(error: BloomtideError, row: int) -> BloomtideError:
    """Tell on an error which row of its batch it is about."""
    error.message = f"keys[{row}]: {error.message}"
    return with_fields(error, index=row)


def with_added(error: BaseException, added: int) -> BaseException:
    """Tell on an error how many keys of its batch went in before it."""
    # An interrupt or the interpreter's own lack of memory is not the batch's to explain.
    if isinstance(error, KeyboardInterrupt) or type(error) is MemoryError:
        return error
    error.add_note(f"{added} keys of the batch were processed before this")
    return with_fields(error, added=added)


def nothing_added(error: BaseException) -> BaseException:
    """Tell on an error that its batch changed nothing, whatever was said of it before."""
    error.__dict__.pop("__notes__", None)
    if isinstance(error, NullKeyError):
        error.message = f"keys[{error.index}] is null; nothing was added"
    return with_added(error, 0)


def with_path(error: BaseException, path: str) -> BaseException:
    """Name the file in a snapshot error, which knows only bytes."""
    if not isinstance(error, SnapshotError) or error.path is not None:
        return error
    error.message = f"{path}: {error.message}"
    return with_fields(error, path=path)


def in_segment(error: BaseException, segment: int) -> BaseException:
    """Say which segment of a history is damaged."""
    return with_fields(error, segment=segment)


_Error = TypeVar("_Error", bound=BaseException)


def with_fields(error: _Error, **fields: Any) -> _Error:
    """Set fields on an error, also among those that a pickled one is made of again."""
    for name, value in fields.items():
        setattr(error, name, value)
    if isinstance(error, BloomtideError):
        error.fields.update(fields)
    return error
