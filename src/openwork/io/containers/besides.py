"""An AnnData or 10x file that is there -> whether what is written is added to it, since it holds more than that.

A write replaces what it names. Tables of observations and variables, other elements and groups stay: the file is
written anew where it has none of them, else a copy is changed, and takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NoReturn

import numpy as np

from ...errors import UnsupportedError

__all__ = ["has_numbers_as_names", "lost", "refuse_loss"]

_OWN_ATTRIBUTES = frozenset(("encoding-type", "encoding-version", "openwork"))
_PIECE = 1 << 16


def lost(file: Any, elements: Collection[str], groups: Collection[str]) -> Iterator[str]:
    """The names of what a file has besides `elements`, X and members of `groups`, and tables that name nothing."""
    members = file.members(file.root)
    yield from (f"attribute {name}" for name in file.root.attrs if name not in _OWN_ATTRIBUTES)
    yield from (name for name in file.root if name not in members)
    for name, item in members.items():
        if name in ("obs", "var"):
            if not _names_nothing(file, item):
                yield name
        elif name in groups and file.is_group(item):
            yield from (f"{name}/{key}" for key in item if f"{name}/{key}" not in elements)
        elif name not in elements:
            yield name


def _names_nothing(file: Any, table: Any) -> bool:
    """Whether a table has no columns, and its rows are named 0, 1, ..."""
    if not file.is_group(table) or table.attrs.get("_index") != "_index" or list(table) != ["_index"]:
        return False
    index = table["_index"]
    no_more = set(table.attrs) <= {*_OWN_ATTRIBUTES, "_index", "column-order"} and not file.is_group(index)
    return no_more and has_numbers_as_names(index)


def has_numbers_as_names(item: Any) -> bool:
    """Whether an array of texts is "0", "1", ..."""
    if len(item.shape) != 1:
        return False
    for first in range(0, item.shape[0], _PIECE):
        last = min(first + _PIECE, item.shape[0])
        texts = [t.decode("utf-8", "replace") if isinstance(t, bytes) else str(t) for t in np.asarray(item[first:last])]
        if texts != [str(k) for k in range(first, last)]:
            return False
    return True


def refuse_loss(path: str, names: Collection[str]) -> NoReturn:
    """Raise UnsupportedError for a file of another kind than is written."""
    listed = ", ".join(map(repr, list(names)[:5]))
    raise UnsupportedError(
        f"write: {path}: the file has {listed} besides, which would be lost\n  help: another path, or remove the"
        " file first"
    )
