"""Where the segment files of a store lie: its own directory, or an object store through fsspec.

A file is written once, under a name that is never used again, and never changed. It is safe when
`write` returns. To be mapped it must be a local file: one from an object store is copied to a cache
directory first and stays there until the cache is too large; a mapped file may be removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from bloomtide import extras
from bloomtide.durable.disk import TEMPORARY, Disk, storage_errors
from bloomtide.errors import StorageError


class Directory:
    """Files in a local directory."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """The directory is made when the first file is written."""
        self._disk = disk
        self.path = path

    def write(self, name: str, data: bytes) -> None:
        """The file is whole and safe when this returns."""
        self._disk.make_directory(self.path)
        self._disk.write_file(self.path / name, data)

    def read(self, name: str, at: int, length: int) -> bytes:
        """So many of its bytes, or those that are there; FileNotFoundError if it is not."""
        with (self.path / name).open("rb") as file:
            file.seek(at)
            return file.read(length)

    def local(self, name: str) -> Path:
        """A local path of the file; FileNotFoundError if it is not there."""
        path = self.path / name
        if not path.is_file():
            raise FileNotFoundError(path)
        return path

    def remove(self, name: str) -> None:
        """The file is gone, also if it was gone before."""
        self._disk.unlink(self.path / name)

    def names(self) -> list[str]:
        """All files, finished or not."""
        if not self.path.is_dir():
            return []
        return sorted(file.name for file in self.path.iterdir())


class ObjectStore:
    """Files behind an fsspec URL, with a local cache for mapping."""

    def __init__(self, disk: Disk, url: str, cache: Path, cache_bytes: int) -> None:
        """Connects at once, so that a wrong URL is refused when the store is opened."""
        with extras.require("fsspec", "`location`"):
            import fsspec
        self._disk = disk
        self._url = url.rstrip("/")
        self._cache = cache
        self._cache_bytes = cache_bytes
        with storage_errors(url, "open"):
            try:
                self._files, self._root = fsspec.core.url_to_fs(self._url)
            except (ValueError, ImportError) as error:  # an unknown protocol, a missing driver
                raise StorageError(
                    f"cannot open {url}: {error}", hint="give a URL that fsspec knows, as s3://bucket/path",
                    path=url, operation="open",
                ) from error  # fmt: skip

    def write(self, name: str, data: bytes) -> None:
        """One upload, then its size is asked for: not every store says when a part is missing."""
        path = f"{self._root}/{name}"

        def upload() -> None:
            with storage_errors(f"{self._url}/{name}", "upload"):
                self._files.makedirs(self._root, exist_ok=True)
                self._files.pipe_file(path, data)
                size = self._files.info(path)["size"]
                if size != len(data):
                    raise OSError(f"{size} of {len(data)} bytes arrived")

        self._disk.put(upload)

    def read(self, name: str, at: int, length: int) -> bytes:
        """A part of it, from the object store itself."""
        data: bytes = self._files.cat_file(f"{self._root}/{name}", start=at, end=at + length)
        return data

    def local(self, name: str) -> Path:
        """Its copy in the cache, made now if it is not there."""
        path = self._cache / name
        if not path.is_file():
            data: bytes = self._files.cat_file(f"{self._root}/{name}")
            self._make_room(len(data))
            # Not durable: a cache may be lost, but a file in it must be whole.
            self._cache.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(path.name + TEMPORARY)
            with storage_errors(path, "write"):
                temporary.write_bytes(data)
                temporary.replace(path)
        return path

    def remove(self, name: str) -> None:
        """Deletes it there and here."""
        (self._cache / name).unlink(missing_ok=True)

        def delete() -> None:
            with storage_errors(f"{self._url}/{name}", "remove"):
                if self._files.exists(f"{self._root}/{name}"):
                    self._files.rm_file(f"{self._root}/{name}")

        self._disk.put(delete)

    def names(self) -> list[str]:
        """Whatever lies under the URL."""
        with storage_errors(self._url, "list"):
            self._files.invalidate_cache()
            if not self._files.exists(self._root):
                return []
            found: list[Any] = self._files.ls(self._root, detail=False)
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)

    def _make_room(self, wanted: int) -> None:
        """Removes what was used longest ago until the new file fits."""
        if not self._cache.is_dir():
            return
        files = sorted(
            ((file.stat().st_atime, file.stat().st_size, file) for file in self._cache.iterdir()),
            key=lambda entry: entry[0],
        )
        held = sum(size for _, size, _ in files)
        for _, size, file in files:
            if held + wanted <= self._cache_bytes:
                break
            file.unlink(missing_ok=True)
            held -= size


Place: TypeAlias = Directory | ObjectStore


def open_place(disk: Disk, directory: Path, location: str | None, store: str, cache: int) -> Place:
    """The place of a store's segments. Below a URL each store has a folder of its own."""
    if location is None:
        return Directory(disk, directory / "segments")
    parts = urlsplit(location)
    if parts.scheme in {"file", "local"}:
        from urllib.request import url2pathname  # brings an HTTP client: 35 ms of every start

        # Our own way of writing is durable, fsspec's is not.
        return Directory(disk, Path(url2pathname(parts.netloc + parts.path)) / store)
    return ObjectStore(disk, f"{location.rstrip('/')}/{store}", directory / "cache", cache)
