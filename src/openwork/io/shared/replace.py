"""A path in, a binary file to write to out: the path keeps its old content until the new one is whole and on disk.

What is written goes to a temporary file `.openwork-*.tmp` of the same directory, which is flushed, synced and renamed
to the path; a folder changes places with the old one, which is removed then. Where anything fails on the way, an
interrupt too (also one that has left the writing to a helper), the temporary is removed and the path is as it was;
what a killed process leaves is removed by a later writer (`leftovers`). Links are followed; what is no regular file (a
pipe, a terminal, /dev/stdout) is written straight.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from ...errors import UnsupportedError
from ...faults import reach
from ...interruptible import here
from . import leftovers
from .exchange import exchange

__all__ = ["compressing", "replacing", "replacing_folder", "replacing_name"]

_BUFFER = 1 << 20
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_GZIP_LEVEL = 6
Path_ = str | os.PathLike[str]


@contextmanager
def replacing(path: Path_) -> Iterator[IO[bytes]]:
    """A file whose content is that of `path` once the block has ended without an exception.

    The mode is the old file's, or what the umask leaves of 0666. Raises OSError that names the path.
    """
    name = os.fspath(path)
    with _name_in_errors(name):
        target = _target(name)
        if target is None:
            with open(name, "wb") as straight:
                yield straight
            return
        with _replace_on_exit(target) as (descriptor, _):
            raw = _FaultPointFile(descriptor, "wb")
            with io.BufferedWriter(raw, _BUFFER) as file:
                try:
                    yield cast(IO[bytes], file)
                    file.flush()
                    reach("fsync")
                    os.fsync(descriptor)
                except BaseException:
                    raw.discards = True
                    raise


@contextmanager
def replacing_name(path: Path_) -> Iterator[str]:
    """The name of an empty file for a library that writes files by name; its content becomes that of `path`.

    Raises UnsupportedError where the path is no regular file.
    """
    name = os.fspath(path)
    with _name_in_errors(name):
        target = _target(name)
        if target is None:
            raise UnsupportedError(f"write: {name} is not a regular file\n  help: write to a file, and copy that")
        with _replace_on_exit(target) as (descriptor, temporary):
            os.close(descriptor)
            reach("write")
            yield temporary
            reach("fsync")
            reopened = os.open(temporary, os.O_RDWR)
            try:
                os.fsync(reopened)
            finally:
                os.close(reopened)


@contextmanager
def replacing_folder(path: Path_, is_ours: Callable[[str], bool], what: str) -> Iterator[str]:
    """The name of a new folder beside `path`, which takes its place once the block has ended without an exception.

    A folder that is replaced is one of which `is_ours` holds, with all that is in it: else UnsupportedError. The two
    change places in one step where the system has such a step, so that a process that is killed leaves the old one or
    the new one; else the old one is moved aside first (`leftovers.retired`), and back where that fails.
    """
    name = os.fspath(path)
    target = os.path.realpath(name)

    def refuse_foreign() -> None:
        if os.path.lexists(target) and not (os.path.isdir(target) and is_ours(target)):
            raise UnsupportedError(
                f"write: {name} is there, and no {what}, or with other files in it\n  help: another name, or remove it"
            )

    refuse_foreign()
    temporary = leftovers.temporary(target)
    with _name_in_errors(name, temporary):
        os.mkdir(temporary)
        try:
            yield temporary
            here().check()
            reach("rename")
            refuse_foreign()  # what has come there meanwhile
            old = _put_in_place(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    _sync_folder(os.path.dirname(target))


def _put_in_place(temporary: str, target: str) -> str | None:
    """A folder takes the target's place; the path of the old one, None where there was none."""
    if not os.path.exists(target):
        os.replace(temporary, target)
        return None
    if exchange(temporary, target):
        return temporary
    old = leftovers.retired(target)
    os.replace(target, old)
    try:
        os.replace(temporary, target)
    except BaseException:
        os.replace(old, target)
        raise
    return old


@contextmanager
def _replace_on_exit(target: str) -> Iterator[tuple[int, str]]:
    """A temporary file beside the target, open for writing: it takes the target's place, or goes where a step fails."""
    descriptor, temporary = _temporary(target)
    try:
        yield descriptor, temporary
        here().check()
        reach("rename")
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target))


@contextmanager
def compressing(path: Path_) -> Iterator[IO[bytes]]:
    """As `replacing`, compressed as the extension says: .gz, .bz2, .xz."""
    name = os.fspath(path).lower()
    packer = next((make for end, make in _PACKERS.items() if name.endswith(end)), None)
    with replacing(path) as file:
        if packer is None:
            yield file
            return
        packed = packer(file)
        try:
            yield packed
        except BaseException:
            with contextlib.suppress(BaseException):
                packed.close()
            raise
        packed.close()


def _open_gzip(file: IO[bytes]) -> IO[bytes]:
    """No name and no time in it: equal tensors give equal files."""
    return cast(IO[bytes], gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0))


_PACKERS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": _open_gzip,
    ".bz2": lambda file: cast(IO[bytes], bz2.BZ2File(file, "wb")),
    ".xz": lambda file: cast(IO[bytes], lzma.LZMAFile(file, "wb")),  # noqa: SIM115
}


class _FaultPointFile(io.FileIO):
    """A raw file whose writes are fault points; `discards` drops what a buffer still holds after a failure."""

    discards = False

    def write(self, data: Any, /) -> int:
        if self.discards:
            return len(memoryview(data).cast("B"))
        here().check()
        reach("write")
        return super().write(data) or 0


@contextmanager
def _name_in_errors(path: str, temporary: str | None = None) -> Iterator[None]:
    """Give an OSError that names no file, such as a full disk, or a temporary one, the path that was to be written."""
    try:
        yield
    except OSError as error:
        if temporary is not None and str(error.filename).startswith(temporary):
            error.filename = path
        if error.filename is None and error.errno is not None and error.strerror is not None:
            error.filename = path
        raise


def _target(path: str) -> str | None:
    """The file that a rename is to replace, links followed; None where the path has to be written straight."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return os.path.realpath(path)
    if not stat.S_ISREG(status.st_mode):
        return None
    link = os.path.abspath(path)
    for _ in range(40):
        if link.startswith(_STREAMS):
            return None
        if not os.path.islink(link):
            break
        link = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return os.path.realpath(path)


def _temporary(target: str) -> tuple[int, str]:
    """A new file beside `target`, with the mode (and the owner, where we may) that the target has or would get."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    temporary = leftovers.temporary(target)
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return os.open(temporary, flags, 0o666), temporary
    descriptor = os.open(temporary, flags, 0o600)
    if hasattr(os, "fchmod"):
        status = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (status.st_uid, status.st_gid):
            with contextlib.suppress(OSError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    return descriptor, temporary


def _sync_folder(folder: str) -> None:
    """Sync a folder, so that a rename in it is on disk, where the file system can; the file is whole in any case."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
