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
        ├── LockedError                    pid of the process that writes
        └── JournalError                   offset

Each class is also the natural built-in, so `except ValueError` keeps working.
"""

from __future__ import annotations

from typing import Any, ClassVar


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
    """What was asked for does not fit this machine's memory."""

    code = "capacity"
    needed: int
    limit: int


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
    """The bytes are cut short, or more follow their end."""

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
    """Another process has the store open for writing."""

    code = "locked"
    pid: int | None


class JournalError(StorageError):
    """A journal is damaged before its end, or takes no more records after a write that failed."""

    code = "journal"
    offset: int | None


def list_error_codes() -> dict[str, type[BloomtideError]]:
    """Every error class by its stable code."""
    found: dict[str, type[BloomtideError]] = {}
    queue: list[type[BloomtideError]] = [BloomtideError]
    while queue:
        cls = queue.pop()
        found[cls.code] = cls
        queue.extend(cls.__subclasses__())
    return dict(sorted(found.items()))


def require(name: str, got: object, allowed: str, holds: bool, *, hint: str = "") -> None:
    """Refuse a parameter unless the condition `holds`; worded as the compiled core words it."""
    if not holds:
        raise ParameterError(
            f"`{name}` must be {allowed}, got: {got}",
            hint=hint,
            name=name,
            got=got,
            allowed=allowed,
        )
