"""Names of files and folders that are being written beside their place, and the removal of those that a kill has left.

    .openwork-0123456789abcdef.tmp          the new content, or the old one after the two have changed places
    .openwork-0123456789abcdef.old.NAME     the old folder NAME, where a system moves it aside first

A writer removes those of its folder in which nothing has changed for an hour, once an hour. One that is moved aside
goes where there is a NAME again: else it is all that is left.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
import time

__all__ = ["PREFIX", "remove_abandoned", "retired", "temporary", "temporary_folder"]

PREFIX = ".openwork-"
_NAME = re.compile(r"\.openwork-[0-9a-z_]+\.(tmp|old\.(.+))", re.DOTALL)
_ABANDONED = 3600.0
_MOST = 256
"""The most folders whose last removal is remembered."""
_removed: dict[str, float] = {}


def temporary(target: str) -> str:
    """A new name beside a path."""
    folder = os.path.dirname(target)
    remove_abandoned(folder)
    return os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}.tmp")


def retired(target: str) -> str:
    """A new name beside a folder that is moved aside."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}.old.{name}")


def temporary_folder(folder: str) -> str:
    """A new folder, for what is written before the result."""
    remove_abandoned(folder)
    return tempfile.mkdtemp(prefix=PREFIX, suffix=".tmp", dir=folder)


def remove_abandoned(folder: str) -> None:
    """Remove what writers that were killed have left in a folder; a scan in an hour."""
    now = time.time()
    if now - _removed.get(folder, 0.0) < _ABANDONED:
        return
    if len(_removed) >= _MOST:
        _removed.clear()
    _removed[folder] = now
    with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in list(entries):
            match = _NAME.fullmatch(entry.name)
            if match and (match[2] is None or os.path.lexists(os.path.join(folder, match[2]))):
                with contextlib.suppress(OSError):
                    if now - _changed(entry.path) > _ABANDONED:
                        _remove(entry.path, folder)


def _changed(path: str) -> float:
    """When a file, or anything in a folder, was last changed. Raises OSError for what is neither, or another user's."""
    status = os.lstat(path)
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise PermissionError(path)
    times = [status.st_mtime]
    if os.path.isdir(path) and not os.path.islink(path):
        for place, _, files in os.walk(path):
            times += [os.lstat(os.path.join(place, name)).st_mtime for name in ("", *files)]
    return max(times)


def _remove(path: str, folder: str) -> None:
    """Remove a file or folder, under another name: a writer that wakes up late finds nothing to put in place."""
    mine = os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}.tmp")
    os.replace(path, mine)
    if os.path.isdir(mine) and not os.path.islink(mine):
        shutil.rmtree(mine, ignore_errors=True)
    else:
        os.unlink(mine)
