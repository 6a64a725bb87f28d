"""Object code on disk: one checked, atomically written file per kernel."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from ..ir.loop import Buffer, Param, Scalar

__all__ = ["Entry", "folder", "read", "write"]

_MAGIC = b"openwork object 2\n"
_LIMIT = 256 << 20
_TRIM_EVERY = 256
"""Writes, about, between two looks at the folder's size."""
_SUFFIX = ".owk"
_CPU_LINES = ("vendor_id", "cpu family", "model", "flags", "features", "cpu implementer", "cpu part")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a file holds: the entry point's name, the kernel's parameters, and the object code."""

    name: str
    params: tuple[Param, ...]
    code: bytes


def folder() -> Path | None:
    """Where the files are; None when the cache is off."""
    if os.environ.get("OPENWORK_CACHE", "1") in ("0", "off", "no"):
        return None
    chosen = os.environ.get("OPENWORK_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "openwork"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "openwork"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "openwork"


def read(key: str) -> Entry | None:
    """The entry of `key`, or None where there is none that is whole and ours."""
    where = folder()
    if where is None:
        return None
    try:
        path = _path(where, key)
        return _decode(path.read_bytes(), path.name)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(key: str, entry: Entry) -> None:
    """Keep `entry`; a folder that cannot be written is no error."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(OSError):
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=where, suffix=".tmp")
        try:
            path = _path(where, key)
            with os.fdopen(handle, "wb") as file:
                file.write(_encode(entry, path.name))
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        if int(path.name[:2], 16) % _TRIM_EVERY == 0:  # looking at every file of a full folder takes long
            _trim(where)


def _path(where: Path, key: str) -> Path:
    return where / (hashlib.sha256(f"{_stamp()}\n{key}".encode()).hexdigest() + _SUFFIX)


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


def _trim(where: Path) -> None:
    """Drop the oldest files while the folder is over its limit."""
    files = []
    with os.scandir(where) as entries:
        for e in entries:
            with contextlib.suppress(OSError):
                info = e.stat()
                files.append((info.st_mtime, info.st_size, e.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= _LIMIT:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size


@cache
def _stamp() -> str:
    """What makes code of another build or machine useless here: sources, CPU, LLVM."""
    root = Path(__file__).parent.parent
    sources = hashlib.sha256()
    for package in ("ir", "compiler", "codegen", "format"):
        for path in sorted((root / package).rglob("*.*")):
            if path.suffix in (".py", ".ll"):
                info = path.stat()
                sources.update(f"{path.name} {info.st_size} {info.st_mtime_ns}\n".encode())
    versions = [metadata.version("openwork"), metadata.version("llvmlite")]
    return "\n".join([*versions, _processor(), sources.hexdigest()])


def _processor() -> str:
    """The CPU as the system describes it (LLVM would say the same, but takes 50 ms to load)."""
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        kept = [line for line in first.splitlines() if line.lower().startswith(_CPU_LINES)]
        if kept:
            return "\n".join([platform.machine(), *kept])
    from .target import host

    target = host()
    return f"{target.triple} {target.cpu} {target.features}"
