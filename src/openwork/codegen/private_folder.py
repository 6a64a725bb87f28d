"""A folder that only this user can write to: names in it -> contents, read and replaced atomically.

Its files are executed, so nothing is trusted for its name. The folder is opened once for each use, without following a
link, and the open descriptor is checked: a directory of this user's that neither group nor world may write to. Files
are opened relative to it, so it does not matter who can rename the folders above. A file must be regular, this user's,
writable by nobody else, and not larger than a limit; it is opened without following links and without waiting, so that
a FIFO, a device or a link under its name is ignored, neither read nor replaced.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import faults

__all__ = ["NotPrivate", "PrivateFolder", "private_folder"]

_POSIX = os.name == "posix"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_TEMPORARY = re.compile(r"[0-9a-f]{64}\.owk\.[0-9a-f]{16}\.tmp")


class NotPrivate(OSError):
    """The folder is not one that only this user can write to; the message says why."""


class PrivateFolder:
    """An open folder. `handle` is its descriptor; systems without such use its path."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self._path, self._handle = path, handle

    def read(self, name: str, limit: int) -> bytes | None:
        """The content of a file; None where there is no trusted file of at most `limit` bytes."""
        content = self.head(name, limit + 1)
        return content if content is not None and len(content) <= limit else None

    def head(self, name: str, size: int) -> bytes | None:
        """The first `size` bytes of a trusted file; None where there is none."""
        try:
            handle = self._open(name, os.O_RDONLY | _NO_LINK | _NO_WAIT)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)
            return file.read(min(size, info.st_size + 1)) if _is_private_file(info) else None

    def replace(self, name: str, content: bytes) -> None:
        """Replace the file `name` by `content`, atomically. Raises OSError.

        Anything of that name that is no regular file of this user's is left alone.
        """
        info = self.info(name)
        if info is not None and not _is_private_file(info):
            return
        temporary = f"{name}.{secrets.token_hex(8)}.tmp"
        handle = self._open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK)
        try:
            with os.fdopen(handle, "wb") as file:
                if _POSIX:
                    os.fchmod(handle, 0o600)
                faults.reach("write")
                file.write(content)
            faults.reach("rename")
            if self._handle is None:
                os.replace(self._path / temporary, self._path / name)
            else:
                os.replace(temporary, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            with suppress(OSError):
                self.remove(temporary)
            raise

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """(name, stat) of the regular files of this user's."""
        with os.scandir(self._path if self._handle is None else self._handle) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            info = self.info(name)
            if info is not None and _is_private_file(info):
                yield name, info

    def remove(self, name: str) -> None:
        """Delete a file. Raises OSError."""
        if self._handle is None:
            os.unlink(self._path / name)
        else:
            os.unlink(name, dir_fd=self._handle)

    def touch(self, name: str) -> None:
        """Set a file's modification time to now."""
        with suppress(OSError):
            if self._handle is None:
                os.utime(self._path / name)
            else:
                os.utime(name, dir_fd=self._handle, follow_symlinks=False)

    @staticmethod
    def is_temporary(name: str) -> bool:
        """Whether a name is that of a temporary file of `replace`."""
        return _TEMPORARY.fullmatch(name) is not None

    def _open(self, name: str, flags: int) -> int:
        if self._handle is None:
            return os.open(self._path / name, flags | _CLOSED, 0o600)
        return os.open(name, flags | _CLOSED, 0o600, dir_fd=self._handle)

    def info(self, name: str) -> os.stat_result | None:
        """The stat of a name, links not followed; None where there is no such file."""
        try:
            if self._handle is None:
                return os.lstat(self._path / name)
            return os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except OSError:
            return None


@contextmanager
def private_folder(path: Path, create: bool = False) -> Iterator[PrivateFolder]:
    """Open the folder, made with those above it where asked, for this user alone. Raises NotPrivate or OSError."""
    if create:
        _make(path)
    if not _POSIX:
        yield PrivateFolder(path, None)
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK | _CLOSED)
    try:
        info = os.fstat(handle)
        if info.st_uid != os.geteuid():
            raise NotPrivate(f"{path} belongs to user {info.st_uid}, expected {os.geteuid()}")
        if info.st_mode & _OTHERS:
            raise NotPrivate(f"{path} has mode {stat.S_IMODE(info.st_mode):o}: others can write to it")
        yield PrivateFolder(path, handle)
    finally:
        os.close(handle)


def _make(path: Path) -> None:
    """Make a folder and those above it, whatever the umask says, for this user alone."""
    if path.is_dir():
        return
    for folder in (*reversed(path.parents), path):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _is_private_file(info: os.stat_result) -> bool:
    if not stat.S_ISREG(info.st_mode):
        return False
    return not _POSIX or (info.st_uid == os.geteuid() and not info.st_mode & _OTHERS)
