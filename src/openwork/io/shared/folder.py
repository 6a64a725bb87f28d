"""A folder that is read through one descriptor: its regular files and nothing else, and all of one write.

Links, pipes and devices below the folder are refused, whatever they lead to: a folder from elsewhere names no other
files of this machine. A writer puts a new folder in the place of the old one and removes that: what was read is whole
where the folder is at its path still, and is read again where another one has come there.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...errors import FileFormatError
from . import limits

__all__ = ["Folder", "read_whole"]

_TRIES = 1000
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and os.listdir in os.supports_fd
_GONE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
R = TypeVar("R")
Path_ = str | os.PathLike[str]


class Folder:
    """An open folder. Names of files in it are paths with `/`, relative to it."""

    def __init__(self, path: Path_) -> None:
        self.name = os.fspath(path)
        self._descriptor: int | None = None
        if _BY_DESCRIPTOR:
            self._descriptor = os.open(path, _FOLDER)
        elif not os.path.isdir(path):
            os.stat(path)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.name)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def place(self, name: str) -> str:
        """The path of a file in the folder, for messages."""
        return os.path.join(self.name, *name.split("/"))

    @property
    def is_current(self) -> bool:
        """Whether the folder is the one at its path: nobody has put another there since it was opened."""
        if self._descriptor is None:
            return True
        try:
            there, here = os.stat(self.name), os.fstat(self._descriptor)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def open(self, name: str) -> io.FileIO:
        """A regular file, unbuffered. Raises FileNotFoundError, FileFormatError for what is neither file nor folder."""
        with _Parent(self, name) as (parent, last):
            self._refuse_special(os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode, name)
            descriptor = os.open(last, _FILE, dir_fd=parent)
        try:
            self._refuse_special(os.fstat(descriptor).st_mode, name)
        except BaseException:
            os.close(descriptor)
            raise
        return io.FileIO(descriptor, "rb")

    def read(self, name: str, most: int) -> bytes:
        """The content of a regular file. Raises FileFormatError where it has more than `most` bytes."""
        with self.open(name) as file:
            if os.fstat(file.fileno()).st_size > most:
                raise FileFormatError(f"{self.place(name)}: more than {most} bytes")
            limits.refuse_holes(self.place(name), file.fileno())
            return file.readall()

    def size(self, name: str) -> int:
        """The bytes of a regular file."""
        with _Parent(self, name) as (parent, last):
            status = os.stat(last, dir_fd=parent, follow_symlinks=False)
        self._refuse_special(status.st_mode, name)
        return status.st_size

    def has(self, name: str) -> bool:
        """Whether there is a regular file of this name. Raises FileFormatError for what is neither file nor folder."""
        try:
            self.size(name)
        except _GONE:
            return False
        return True

    def names(self, name: str = "") -> list[str]:
        """The names in a folder below this one, sorted; none where there is no such folder."""
        try:
            with _Parent(self, f"{name}/." if name else ".") as (parent, _):
                return sorted(os.listdir(self.place(name) if parent is None else parent))
        except _GONE:
            return []

    def files(self, name: str = "") -> Iterator[str]:
        """The paths of all files in a folder below this one, and in those below that."""
        for each in self.names(name):
            path = f"{name}/{each}" if name else each
            try:
                self.size(path)
            except IsADirectoryError:
                yield from self.files(path)
            else:
                yield path

    def _refuse_special(self, mode: int, name: str) -> None:
        if stat.S_ISREG(mode):
            return
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.place(name))
        link = " but a link" if stat.S_ISLNK(mode) else ""
        raise FileFormatError(
            f"{self.place(name)}: not a regular file{link}\n  help: copy what it gives to one in its place"
        )

    def enter(self, parent: int | None, names: list[str], at: int) -> int | None:
        """The descriptor of the folder `names[at]`, whose own folder is open. Raises FileFormatError for a link."""
        name = "/".join(names[: at + 1])
        if self._descriptor is None:
            status = os.lstat(self.place(name))
        else:
            status = os.stat(names[at], dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            self._refuse_special(status.st_mode, name)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.place(name))
        if self._descriptor is None:
            return None
        return os.open(names[at], _FOLDER | _FILE, dir_fd=parent)

    @property
    def descriptor(self) -> int | None:
        return self._descriptor


class _Parent:
    """The folder that a file is in, open as long as a block lasts: its descriptor, and the file's name in it.

    Where the system has no descriptors of folders, None and the whole path.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        *self._parents, self._last = name.split("/")
        self._folder, self._open, self._name = folder, -1, name

    def __enter__(self) -> tuple[int | None, str]:
        names = [*self._parents, self._last]
        if any(part in ("", "..") or "\0" in part for part in names) or "." in self._parents:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._folder.place(self._name))
        parent = self._folder.descriptor
        try:
            for at in range(len(self._parents)):
                below = self._folder.enter(parent, names, at)
                self._close()
                if below is not None:
                    parent = self._open = below
        except BaseException:
            self._close()
            raise
        return parent, self._last if parent is not None else self._folder.place(self._name)

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self._close()
        if isinstance(error, OSError) and error.filename == self._last:
            error.filename = self._folder.place(self._name)

    def _close(self) -> None:
        if self._open >= 0:
            os.close(self._open)
            self._open = -1


def read_whole(path: Path_, read: Callable[[Folder], R]) -> R:
    """`read` of the folder at a path, all of one write: once more where another folder has come there meanwhile."""
    for _ in range(_TRIES):
        with Folder(path) as folder:
            try:
                found = read(folder)
            except (OSError, ValueError):
                if folder.is_current:
                    raise
                continue
            if folder.is_current:
                return found
    raise FileFormatError(
        f"{os.fspath(path)}: replaced by another one {_TRIES} times while it was read\n  help: read it when nobody"
        " writes it"
    )
