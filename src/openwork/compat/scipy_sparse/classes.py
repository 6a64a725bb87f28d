"""The classes of `scipy.sparse`, one for each format and kind, over Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as scipys

from .arithmetic import is_scalar
from .array import CLASSES, Array, unwrapped, wrapped

__all__ = [
    "bsr_array", "bsr_matrix", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array", "csr_matrix",
    "dia_array", "dia_matrix", "dok_array", "dok_matrix", "lil_array", "lil_matrix", "sparray", "spmatrix",
]  # fmt: skip


class sparray(Array):
    """The base of sparse arrays: `*` multiplies elements, one coordinate takes a dimension away."""

    __slots__ = ()


class spmatrix(Array):
    """The base of sparse matrices: two dimensions always, `*` and `**` are those of matrices."""

    __slots__ = ()
    kind = "matrix"

    def _dense(self, x: np.ndarray[Any, Any]) -> Any:
        return scipys._sputils.asmatrix(x)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents; those set are of a reshaped matrix."""
        return self.tensor.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._buffers.replace(self._buffers.own().reshape(shape))

    def set_shape(self, shape: Any) -> None:
        """Reshape the matrix in place."""
        self.shape = shape

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if is_scalar(other) else self._product(other, reflected=False)

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if is_scalar(other) else self._product(other, reflected=True)

    def __pow__(self, power: Any) -> Any:
        return CLASSES[self.kind, self.format](self._lent() ** power)

    def dot(self, other: Any) -> Any:
        """The product of matrices, or the multiple by a number."""
        return self * other

    def __getitem__(self, key: Any) -> Any:
        return self._ask(lambda lent: lent[unwrapped(key)])


class _Dictionary(Array):
    """A dictionary of elements by their coordinates, as SciPy's; `|` and `reversed` are those of matrices alone."""

    __slots__ = ()

    @classmethod
    def fromkeys(cls, iterable: Any, value: Any = 1, /) -> Any:
        """The array with one value at the coordinates that are given, as large as they ask."""
        return wrapped(getattr(scipys, f"{cls.format}_{cls.kind}").fromkeys(iterable, value))

    def __contains__(self, key: Any) -> bool:
        return key in self._buffers.view

    def __delitem__(self, key: Any, /) -> None:
        self._changed("__delitem__", key)

    def __reversed__(self) -> Any:
        return reversed(self._buffers.view)

    def __or__(self, other: Any) -> Any:
        return self._buffers.view.__or__(unwrapped(other))

    def __ror__(self, other: Any) -> Any:
        return self._buffers.view.__ror__(unwrapped(other))

    def __ior__(self, other: Any) -> Any:
        self._changed("__ior__", other)
        return self

    def clear(self) -> None:
        """Leave out all elements."""
        self._changed("clear")

    def pop(self, /, *args: Any) -> Any:
        """Leave out an element, and give it."""
        return self._changed("pop", *args)

    def popitem(self) -> Any:
        """Leave out the last element, and give its coordinates and value."""
        return self._changed("popitem")

    def setdefault(self, key: Any, default: Any = None, /) -> Any:
        """The element at `key`, which becomes `default` where there is none."""
        return self._changed("setdefault", key, default)

    def update(self, val: Any) -> None:
        """Set elements by a dictionary, a sparse array of this kind, or pairs."""
        self._changed("update", val)


def _class(base: type[Array], name: str) -> Any:
    """A class of one format; for `isinstance` it has the buffers and methods of SciPy's of that name."""
    theirs, format = getattr(scipys, name), name[:3]
    bases = (_Dictionary, base) if format == "dok" else (base,)
    return type(name, bases, {"__slots__": (), "format": format, "__doc__": theirs.__doc__, "__module__": __name__})


csr_array, csc_array = _class(sparray, "csr_array"), _class(sparray, "csc_array")
coo_array, bsr_array = _class(sparray, "coo_array"), _class(sparray, "bsr_array")
dia_array, lil_array = _class(sparray, "dia_array"), _class(sparray, "lil_array")
dok_array = _class(sparray, "dok_array")
csr_matrix, csc_matrix = _class(spmatrix, "csr_matrix"), _class(spmatrix, "csc_matrix")
coo_matrix, bsr_matrix = _class(spmatrix, "coo_matrix"), _class(spmatrix, "bsr_matrix")
dia_matrix, lil_matrix = _class(spmatrix, "dia_matrix"), _class(spmatrix, "lil_matrix")
dok_matrix = _class(spmatrix, "dok_matrix")
