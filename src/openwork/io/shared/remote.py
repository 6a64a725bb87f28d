"""URLs (`s3://`, `https://`, `memory://`, whatever fsspec knows) -> local copies to read, and local files to send.

A file is copied whole into a temporary folder and read there, under its own name, with all limits of files; one that is
written is sent when it is whole. Folders are read and not written: what stores objects cannot replace several in one
step.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from ...errors import FileFormatError, UnsupportedError
from ...faults import reach
from ...interruptible import here

__all__ = ["fetched", "is_url", "sending"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(::[^/]*)*://", re.ASCII)
_FOLDERS = (".ow", ".zarr")


def is_url(path: object) -> bool:
    """Whether a path is a URL: a scheme of two letters at least, and ://."""
    return isinstance(path, str) and _URL.match(path) is not None


@contextmanager
def fetched(url: str, operation: str) -> Iterator[str]:
    """The path of a local copy of a file or folder, as long as the block lasts; errors name the URL.

    Raises UnsupportedError where fsspec, or what it needs for the scheme, is missing; OSError of the file system.
    """
    files, path = _file_system(url, operation)
    with tempfile.TemporaryDirectory(prefix="openwork-") as folder:
        local = os.path.join(folder, _name(url))
        _copy(files, path, local, url)
        with _named(local, url):
            yield local


@contextmanager
def sending(url: str, operation: str) -> Iterator[str]:
    """The path of a local file, with the content of the one at the URL, that is sent there when the block has ended
    without an exception."""
    if _name(url).lower().endswith(_FOLDERS):
        raise UnsupportedError(
            f"{operation}: {url}: a folder is not replaced in one step there\n  help: .npz or .bsp.h5, or write it"
            " here, and copy it"
        )
    files, path = _file_system(url, operation)
    with tempfile.TemporaryDirectory(prefix="openwork-") as folder:
        local = os.path.join(folder, _name(url))
        if files.isfile(path):  # what else it holds stays, or is a reason to refuse
            _copy(files, path, local, url)
        with _named(local, url):
            yield local
        here().check()
        reach("rename")
        files.put_file(local, path)


def _file_system(url: str, operation: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UnsupportedError(f"{operation}: {url}: URLs need fsspec\n  help: pip install fsspec") from None
    try:
        files, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise UnsupportedError(f"{operation}: {url}: {error}") from None
    return files, str(path)


def _name(url: str) -> str:
    """The last part of a URL's path, which says the kind of file."""
    name = unquote(urlsplit(url.split("::")[-1]).path).rstrip("/").rpartition("/")[2]
    name = name or urlsplit(url).netloc
    return name if name not in ("", ".", "..") and os.sep not in name and "\0" not in name else "file"


def _copy(files: Any, path: str, local: str, url: str) -> None:
    """Copy a file, or the files of a folder, each under its own name below it."""
    if not files.isdir(path):
        here().check()
        files.get_file(path, local)
        return
    os.mkdir(local)
    for name in files.find(path):
        below = str(name)[len(path) :].lstrip("/").split("/")
        if not str(name).startswith(path) or any(part in ("", ".", "..") or "\0" in part for part in below):
            raise FileFormatError(f"{url}: a file of the name {str(name)[:80]!r}, which is none below the folder")
        place = os.path.join(local, *below)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        here().check()
        files.get_file(name, place)


@contextmanager
def _named(local: str, url: str) -> Iterator[None]:
    """Errors name the URL in place of the local copy."""
    try:
        yield
    except (FileFormatError, UnsupportedError) as error:
        raise type(error)(str(error).replace(local, url)) from None
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(local):
            error.filename = url
        raise
