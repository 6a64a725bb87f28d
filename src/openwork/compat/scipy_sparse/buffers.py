"""A Tensor and SciPy's array over the same buffers, each made of the other when it is asked for.

Two kinds of writes reach buffers. SciPy's methods that read sort and sum elements in place where these are out of
order or stored twice: they get such an array as a copy (`lent`). Callers write to `A.data`, `A.indices` and so on: they
are handed the buffers of SciPy's array (`give`). Its values are the Tensor's too, its index buffers are not, since
results share those; once handed out, they are compared before the Tensor is used again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as scipys

import openwork as ow

from ... import Tensor

__all__ = ["BUFFERS", "Buffers", "apart", "readable"]

_INDICES = dict.fromkeys(("csr", "csc", "bsr"), ("indptr", "indices")) | {"coo": ("coords",), "dia": ("offsets",)}
"""Attributes that are the structure, by format; a Tensor is over no buffers of lists of lists and dictionaries."""
BUFFERS = frozenset(("data", "indices", "indptr", "row", "col", "coords", "offsets", "rows", "_dict"))
"""Attributes that callers may write to."""
_SORTED = ("csr", "csc", "bsr", "coo")
"""Formats whose elements SciPy sorts and sums in place."""
_FLAGS = ("_has_canonical_format", "_has_sorted_indices")


def apart(t: Tensor, *operands: Tensor) -> Tensor:
    """The Tensor `t`, its values copied where an operand has them too: SciPy's results have data of their own."""
    values = t._storage.values
    shared = any(np.may_share_memory(values, x._storage.values) for x in operands)
    return t.clone() if shared else t


def readable(view: Any) -> Any:
    """SciPy's array, copied where its methods that read would sort and sum its elements in place."""
    return copy.deepcopy(view) if view.format in _SORTED and not view.has_canonical_format else view


class Buffers:
    """What one array holds: a Tensor, SciPy's array, or both over the same values."""

    __slots__ = ("_data_given", "_kind", "_read_from", "_structure_given", "_tensor", "_view", "format")

    def __init__(self, format: str, kind: str, tensor: Tensor | None, view: Any = None) -> None:
        self.format, self._kind, self._tensor, self._view = format, kind, tensor, view
        self._data_given = self._structure_given = False
        self._read_from: Any = None
        """SciPy's array that the Tensor is over, where that is not the view."""

    @property
    def tensor(self) -> Tensor:
        """The Tensor, made anew where what callers have been handed is no longer what it is over."""
        if (self._data_given or self._structure_given) and self._tensor is not None and self._is_stale():
            self._tensor = None
        if self._tensor is None:
            self._tensor = self._read()
        return self._tensor

    def _read(self) -> Tensor:
        if self._structure_given and self.format in _INDICES:
            self._read_from = self._unflagged()
            self._own_indices(self._read_from)
            return ow.asarray(self._read_from)
        return ow.asarray(self._view)

    def _is_stale(self) -> bool:
        view, t = self._view, self._tensor
        assert t is not None
        if self.format not in _INDICES or not np.may_share_memory(view.data, t._storage.values):
            return True
        if not self._structure_given:
            return False
        now, then = self._indices(view), self._indices(self._read_from)
        return len(now) != len(then) or not all(map(np.array_equal, now, then))

    def _indices(self, view: Any) -> tuple[Any, ...]:
        names = _INDICES[self.format]
        return tuple(view.coords) if names == ("coords",) else tuple(getattr(view, name) for name in names)

    def _own_indices(self, view: Any) -> None:
        """Replace the index buffers of the view by copies."""
        copies = [x.copy() for x in self._indices(view)]
        if self.format == "coo":
            view.coords = tuple(copies)
        else:
            for name, x in zip(_INDICES[self.format], copies, strict=True):
                setattr(view, name, x)

    def _unflagged(self) -> Any:
        """The view as another object, which does not know whether its elements are in order."""
        view = copy.copy(self._view)
        for name in _FLAGS:
            vars(view).pop(name, None)
        if self.format == "coo":
            view.has_canonical_format = False
        return view

    @property
    def view(self) -> Any:
        """SciPy's array, for what neither writes to buffers nor hands them out."""
        if self._view is None:
            assert self._tensor is not None
            made = self._tensor.to_scipy(self.format)
            self._view = made if self._kind == "array" else getattr(scipys, f"{self.format}_matrix")(made)
        return self._view

    def give(self, name: str) -> Any:
        """A buffer of SciPy's array by its attribute, for a caller who may write to it."""
        view = self.view
        if name == "data":
            self._data_given = True
            return view.data
        if not self._structure_given and self.format in _INDICES:
            self._read_from = copy.copy(view)  # what the Tensor is over, if there is one
            self._own_indices(view)
        self._structure_given = self._data_given = True
        return getattr(view, name, None)

    def put(self, name: str, value: Any) -> None:
        """Replace an attribute of SciPy's array; the Tensor follows when it is asked for."""
        flag = isinstance(value, bool)
        if not flag:
            self.give(name)
        setattr(self.view, name, value)
        if not flag:
            self._tensor = None

    def shallow(self) -> Any:
        """SciPy's array over the same buffers as an object of its own, for what writes to none."""
        return copy.copy(self.view) if self.format in _INDICES else self.view

    def lent(self) -> Any:
        """SciPy's array for any method that reads: over the same buffers, or copies where it would sort in place."""
        if self.format not in _INDICES:
            return self.view
        if not self._structure_given:
            return readable(copy.copy(self.view))
        _ = self.tensor  # what a caller wrote is checked: SciPy reads beyond buffers
        return readable(self._unflagged())

    def own(self) -> Any:
        """SciPy's array in buffers of its own."""
        return copy.deepcopy(self.view) if self.format in _INDICES else self.view.copy()

    def assign(self, key: Any, value: Any) -> None:
        """Set elements: in place where all are stored, as SciPy does, else in buffers of their own."""
        if self.format not in _INDICES:
            self.view[key] = value
            self._tensor = None
            return
        in_place = self.format != "coo" and self.view.has_canonical_format and self.view.data.flags.writeable
        view = copy.copy(self.view) if in_place else self.own()
        view[key] = value
        self._data_given = True
        if view.data is not self.view.data:
            self._view, self._tensor = view, None

    def scale(self, operator: Callable[[Any, Any], Any], number: Any) -> None:
        """Multiply or divide all elements in place."""
        if self.format in _INDICES and not self.view.data.flags.writeable:
            self.replace(self.own())
        operator(self.view, number)
        self._data_given = True
        if self.format not in _INDICES:
            self._tensor = None

    def replace(self, view: Any) -> None:
        """Hold another of SciPy's arrays, which nobody else has."""
        self._view, self._tensor = view, None
