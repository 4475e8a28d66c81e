"""The directory of a `ShardedFilter`: a file for each shard, and a manifest that names them.

    directory/manifest.json               the recipe; number, size and digest of each shard
    directory/shard-00000-<digest>.bloom  ...
    directory/lock                        held by the process that saves

1. A file is called by what is in it, so the shards of a new build lie beside those of the old one,
   and a task that runs twice leaves what one run leaves.
2. The manifest is written last, by one rename: before it the directory is the old filter, after it
   the new one, whatever is killed. A directory without one is an unfinished build.
3. Files that the manifest does not name are left over. A save that fails removes its own; those of
   one that was killed go with the next save, before it writes.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bloomtide import system
from bloomtide._core import load, replace_file
from bloomtide.distributed.recipe import Recipe
from bloomtide.durable.disk import Disk, storage_errors
from bloomtide.durable.lock import WriterLock
from bloomtide.errors import LockedError, NotASnapshotError, SnapshotError, StorageError
from bloomtide.format import digest_of, pack_json, read_json, require_digest

MANIFEST = "manifest.json"
_OURS = re.compile(r"\.{0,2}shard-\d{5,}[-.][0-9a-f]+(\.bloom|\.unfinished(\.\d+\.unfinished)?)")


def shard_name(report: dict[str, Any]) -> str:
    """The file of a shard."""
    return f"shard-{report['number']:05d}-{report['digest']}.bloom"


@contextmanager
def saving(directory: Path) -> Iterator[None]:
    """One process saves at a time, if the file system has locks; others get a `LockedError`."""
    Disk().make_directory(directory)
    lock = None
    if system.POSIX:
        try:
            lock = WriterLock(directory / "lock", hint="wait until it is saved there")
        except LockedError:
            raise
        except StorageError as error:
            if error.operation != "lock":
                raise
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def write_filter(directory: Path, number: int, made: Any) -> dict[str, Any]:
    """Writes one shard beside those that are there; answers what the manifest says of it."""
    unfinished = directory / f".shard-{number:05d}.{secrets.token_hex(4)}.unfinished"
    try:
        made.save(unfinished)
        report = {
            "number": number,
            "bytes": unfinished.stat().st_size,
            "digest": digest_of(unfinished),
        }
        Disk().rename(unfinished, directory / shard_name(report))
    except BaseException:
        _remove(directory, {unfinished.name})
        raise
    Disk().sync_directory(directory)
    return report


def write_manifest(directory: Path, recipe: Recipe, reports: Iterable[dict[str, Any]]) -> None:
    """Makes the directory a filter of these shards, and removes what is none of it.

    The caller is `saving`.
    """
    ordered = sorted(reports, key=lambda report: int(report["number"]))
    for report in ordered:
        path = directory / shard_name(report)
        if not path.exists():
            raise StorageError(
                f"{path} is gone: another build writes to this directory",
                hint="give each build a directory of its own, and build it again",
                path=str(path), operation="save",
            )  # fmt: skip
    about = {"recipe": json.loads(recipe.to_json()), "shards": ordered}
    replace_file(directory / MANIFEST, pack_json("shards", about))
    _remove_others(directory, {shard_name(report) for report in ordered})


def _remove_others(directory: Path, named: set[str]) -> None:
    for found in directory.iterdir():
        if found.name not in named and _OURS.fullmatch(found.name) and found.is_file():
            Disk().unlink(found)


def remove_leftovers(directory: Path, needed: Iterable[dict[str, Any]]) -> None:
    """Removes what killed saves left, so that its space is free for the next one.

    Files that the manifest names stay, and those of the shards that are `needed`. The caller is
    `saving`.
    """
    named = _named(directory)
    # A manifest that cannot be read may name anything.
    if named is not None:
        _remove_others(directory, named | {shard_name(report) for report in needed})


@contextmanager
def undone_on_error(directory: Path, reports: list[dict[str, Any]]) -> Iterator[None]:
    """Removes the new files of these reports if the block fails, unless the manifest names them.

    The caller is `saving`.
    """
    before = {found.name for found in directory.iterdir()}
    try:
        yield
    except BaseException:
        new = {shard_name(report) for report in reports} - before
        _remove(directory, new - (_named(directory) or set()))
        raise


def _named(directory: Path) -> set[str] | None:
    """The files that the manifest names, none without one; None if it cannot be read."""
    path = directory / MANIFEST
    try:
        return {shard_name(report) for report in read_manifest(path)["shards"]}
    except StorageError:
        return set()
    except (SnapshotError, OSError, LookupError, TypeError, ValueError):
        return None


def _remove(directory: Path, names: Iterable[str]) -> None:
    """After an error, which is the one to report: what stays goes with the next save."""
    for name in names:
        with suppress(StorageError):
            Disk().unlink(directory / name)


def read_manifest(path: Path) -> dict[str, Any]:
    """The recipe, and what is said of each shard."""
    try:
        about = read_json(path.read_bytes(), "shards", path)
        shards, _ = about["shards"], about["recipe"]
        whole = [report["number"] for report in shards] == list(range(len(shards))) and shards
    except SnapshotError as error:
        error.hint = "build them again"
        raise
    except FileNotFoundError as error:
        raise StorageError(
            f"{path.parent} has no manifest",
            hint="the build was not finished, or this is no directory of shards",
            path=str(path), operation="open",
        ) from error  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise NotASnapshotError(
            f"{path} does not describe shards", hint="build them again",
            path=str(path), offset=None,
        ) from error  # fmt: skip
    if not whole:
        raise NotASnapshotError(
            f"{path} does not name every shard", hint="build them again",
            path=str(path), offset=None,
        )  # fmt: skip
    return about


def read_filter(directory: Path, report: dict[str, Any]) -> Any:
    """One shard, whose file is the one that the manifest names."""
    path = directory / shard_name(report)
    if not path.exists():
        raise StorageError(
            f"{path} is gone: the directory was saved again",
            hint="load the directory again", path=str(path), operation="read",
        )  # fmt: skip
    with storage_errors(path, "read"):
        made: Any = load(path)  # checks the file itself
        require_digest(path, report["digest"], "build the shards again")
    return made
