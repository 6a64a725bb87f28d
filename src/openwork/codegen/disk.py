"""A kernel's key -> its object code on disk: one checked, atomically written file per kernel, in a private folder.

A file's name is the digest of its kernel's key and of all that its code depends on. Its content begins with a magic
line and a digest of the rest, which detects damage; `private_folder` checks who may write. The least recently used
files are removed where there are too many, and files that were not used for long.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from .. import settings
from ..classes import frozen
from ..ir.loop import Buffer, Param, Scalar
from .private_folder import PrivateFolder, private_folder
from .target import host

__all__ = ["Entry", "clear", "folder", "read", "usage", "why_not", "write"]

_KIND = b"openwork object "
_MAGIC = _KIND + b"2\n"
_LIMIT = 256 << 20
"""Bytes of all files."""
_LARGEST = 32 << 20
"""The most bytes of a file; a larger one is not a kernel's."""
_TRIM_EVERY = 1024
"""The number of writes, on average, between two checks of the folder's size."""
_DAY = 86_400.0
_UNUSED = 180 * _DAY
"""Seconds after which a file that was not read is removed."""
_ABANDONED = _DAY / 24
"""Seconds after which a temporary file is removed."""
_NAME = re.compile(r"[0-9a-f]{64}\.owk")
_CPU_LINES = ("vendor_id", "cpu family", "model", "flags", "features", "cpu implementer", "cpu part")


@frozen
class Entry:
    """The content of a file: the entry point's name, the kernel's parameters, and the object code."""

    name: str
    params: tuple[Param, ...]
    code: bytes


def folder() -> Path | None:
    """The folder of the files; None when the cache is off, or there is no home folder."""
    if settings.is_off("OPENWORK_CACHE"):
        return None
    try:
        return _path()
    except (OSError, RuntimeError):  # no home folder, or no current one
        return None


def _path() -> Path | None:
    configured = os.environ.get("OPENWORK_CACHE_DIR")
    if configured:
        return Path(os.path.abspath(Path(configured).expanduser()))
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not base.is_absolute():  # the rule of the XDG specification; a relative one would follow the current folder
            base = Path.home() / ".cache"
    return base / "openwork" if base.is_absolute() else None


def read(key: str) -> Entry | None:
    """The entry of `key`, or None where there is no intact file of this user's."""
    path = folder()
    if path is None:
        return None
    try:
        with private_folder(path) as files:
            name = _name(key)
            raw = files.read(name, _LARGEST)
            entry = None if raw is None else _decode(raw, name)
            if entry is not None:
                _note_use(files, name)
            return entry
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(key: str, entry: Entry) -> None:
    """Keep `entry`; a folder that cannot be written, or that others can write to, is no error."""
    path = folder()
    if path is None or len(entry.code) > _LARGEST >> 1:
        return
    with suppress(OSError), private_folder(path, create=True) as files:
        name = _name(key)
        files.replace(name, _encode(entry, name))
        if int(name[:4], 16) % _TRIM_EVERY == 0:  # looking at every file of a full folder takes long
            _trim(files)


def why_not() -> str | None:
    """Why no kernels are kept on disk; None where they are, or will be when the folder is made."""
    path = folder()
    if path is None:
        return "OPENWORK_CACHE says no" if settings.is_off("OPENWORK_CACHE") else "there is no home folder"
    try:
        with private_folder(path):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)


def usage() -> tuple[int, int]:
    """How many kernels are on disk, and their bytes."""
    path, sizes = folder(), []
    if path is not None:
        with suppress(OSError), private_folder(path) as files:
            sizes = [info.st_size for name, info in files.files() if _NAME.fullmatch(name)]
    return len(sizes), sum(sizes)


def clear() -> int:
    """Delete every kernel on disk, and nothing else; how many there were."""
    path, count = folder(), 0
    if path is not None:
        with suppress(OSError), private_folder(path) as files:
            count = sum(_remove(files, name) for name, _ in list(files.files()))
    return count


def _name(key: str) -> str:
    return hashlib.sha256(f"{_stamp()}\n{key}".encode()).hexdigest() + ".owk"


def _note_use(files: PrivateFolder, name: str) -> None:
    """Update the modification time of a file, which records its last use to a day."""
    info = files.info(name)
    if info is not None and time.time() - info.st_mtime > _DAY:
        files.touch(name)


def _encode(entry: Entry, name: str) -> bytes:
    """The file's content; its checksum covers its name, so that one kernel's file is never taken for another's."""
    params = [
        ["b", p.name, p.scalar, p.mutable] if isinstance(p, Buffer) else ["s", p.name, p.scalar, False]
        for p in entry.params
    ]
    head = json.dumps({"name": entry.name, "params": params}).encode()
    payload = len(head).to_bytes(4, "little") + head + entry.code
    return _MAGIC + hashlib.sha256(name.encode() + payload).digest() + payload


def _decode(raw: bytes, name: str) -> Entry | None:
    start = len(_MAGIC) + 32
    payload = raw[start:]
    if raw[: len(_MAGIC)] != _MAGIC or hashlib.sha256(name.encode() + payload).digest() != raw[len(_MAGIC) : start]:
        return None
    size = int.from_bytes(payload[:4], "little")
    head = json.loads(payload[4 : 4 + size])
    params = tuple(Buffer(n, s, m) if kind == "b" else Scalar(n, s) for kind, n, s, m in head["params"])
    return Entry(head["name"], params, payload[4 + size :])


def _trim(files: PrivateFolder) -> None:
    """Remove files that were not used for long, and the least recently used while their sum is over the limit."""
    now, entries = time.time(), []
    for name, info in files.files():
        if files.is_temporary(name):
            if now - info.st_mtime > _ABANDONED:
                _remove(files, name)
        elif _NAME.fullmatch(name):
            entries.append((info.st_mtime, info.st_size, name))
    total = sum(size for _, size, _ in entries)
    for used, size, name in sorted(entries):
        if total <= _LIMIT and now - used <= _UNUSED:
            return
        if _remove(files, name):
            total -= size


def _remove(files: PrivateFolder, name: str) -> bool:
    """Delete a file if it is one of ours: by its name, and by how it begins."""
    with suppress(OSError):
        if files.is_temporary(name) or (_NAME.fullmatch(name) and files.head(name, len(_KIND)) in (_KIND, b"")):
            files.remove(name)
            return True
    return False


SOURCES = ("tuning.py", "ir", "compiler", "codegen", "device/kernels.py", "format")
"""What decides which code a key stands for; a kernel that is written as text elsewhere has its text as its key."""


@cache
def _stamp() -> str:
    """The versions that object code depends on: sources, CPU, LLVM."""
    root = Path(__file__).parent.parent
    sources = hashlib.sha256()
    for place in SOURCES:
        for path in (root / place, *sorted((root / place).rglob("*.*"))):
            if path.suffix in (".py", ".ll") and path.is_file():
                info = path.stat()
                sources.update(f"{path.name} {info.st_size} {info.st_mtime_ns}\n".encode())
    versions = [_version("openwork"), _version("llvmlite")]
    return "\n".join([*versions, _processor(), sources.hexdigest()])


def _version(package: str) -> str:
    """The version of an installed package; a checkout that is not installed has none, and is known by its sources."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The CPU as the system describes it (LLVM would say the same, but takes 50 ms to load)."""
    with suppress(OSError):
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        lines = [line for line in first.splitlines() if line.lower().startswith(_CPU_LINES)]
        if lines:
            return "\n".join([platform.machine(), *lines])

    target = host()
    return f"{target.triple} {target.cpu} {target.features}"
