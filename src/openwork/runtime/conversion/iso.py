"""A storage whose elements are one value, and a move of them -> the moved storage, its elements one value too.

A byte is moved in the place of each, so that what the move adds as padding is told from what it moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InvariantError
from ...storage.buffers import Array, empty, length, to_numpy
from ...storage.iso import has_one_value
from ...storage.recorded import refuse_recorded
from ...storage.storage import Storage

__all__ = ["marks_of", "moved_iso", "own_value", "shared_value"]


def own_value(s: Storage, operation: str, expected: Any = None) -> Storage:
    """The storage over the one value that its elements have, which takes no memory for each.

    expected : what that value has to be; None takes any
    Raises InvariantError where an element has another.
    """
    refuse_recorded(s.values)
    n = length(s.values)
    values = to_numpy(s.values, detach=True)
    is_other = bool(n) and expected is not None and values[0] != expected
    if is_other or not has_one_value(values):
        bits = values.view(f"V{values.itemsize}")
        at = 0 if is_other else int(np.argmax(bits != bits[0]))
        expected = values[0] if expected is None else expected
        raise InvariantError(
            f"{operation}: the elements have several values, or another\n  expected: {expected} at every position;"
            f" got: {values[at]} at position {at}\n  help: iso(x, value) gives all of them one"
        )
    if s.is_iso or not n:
        return s
    return s.with_one_value(s.values, s.fill_value)


def shared_value(storages: list[Storage]) -> Array | None:
    """The first element of storages whose elements all are one value, of no recorded one; None of others."""
    first = storages[0].values[:1]
    if not all(length(s.values) and s.is_iso for s in storages):
        return None
    bits = to_numpy(first).tobytes()
    return first if all(to_numpy(s.values[:1]).tobytes() == bits for s in storages) else None


def marks_of(s: Storage) -> Storage:
    """True in the place of every value, False for what is not specified."""
    marks = empty(length(s.values), "bool", s.values)
    marks[...] = True
    return s.with_values(marks, False)


def moved_iso(s: Storage, move: Callable[[Storage], Storage]) -> Storage | None:
    """`move(s)`; None where it may sum elements or leave some out by their value, so that it has to see them."""
    if not s.format.is_unique or s.format.is_dense or not length(s.values):
        return None
    out = move(marks_of(s))
    n, marks = length(out.values), out.values
    if not n or (has_one_value(marks) and marks[0]):
        return out.with_one_value(s.values, s.fill_value)
    values: Any = empty(n, s.scalar, s.values)
    values[...] = s.fill_value
    values[marks] = s.values[0]
    return out.with_values(values, s.fill_value)
