"""The classes of `scipy.sparse`, one for each format and kind, over Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as scipys

import openwork as ow

from .arithmetic import is_scalar
from .array import CLASSES, Array

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
        self._hold(self.reshape(shape).tensor)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if is_scalar(other) else self._product(other, reflected=False)

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if is_scalar(other) else self._product(other, reflected=True)

    def __pow__(self, power: Any) -> Any:
        return CLASSES[self.kind, self.format](self.to_scipy() ** power)

    def dot(self, other: Any) -> Any:
        """The product of matrices, or the multiple by a number."""
        return self * other

    def __getitem__(self, key: Any) -> Any:
        found = self.to_scipy()[key if not isinstance(key, Array) else key.to_scipy()]
        if not scipys.issparse(found):
            return found
        return CLASSES[self.kind, found.format]._of(ow.asarray(found), found)


def _class(base: type[Array], name: str) -> Any:
    """A class of one format; for `isinstance` it has the buffers and methods of SciPy's of that name."""
    theirs = getattr(scipys, name)
    return type(name, (base,), {"__slots__": (), "format": name[:3], "__doc__": theirs.__doc__, "__module__": __name__})


csr_array, csc_array = _class(sparray, "csr_array"), _class(sparray, "csc_array")
coo_array, bsr_array = _class(sparray, "coo_array"), _class(sparray, "bsr_array")
dia_array, lil_array = _class(sparray, "dia_array"), _class(sparray, "lil_array")
dok_array = _class(sparray, "dok_array")
csr_matrix, csc_matrix = _class(spmatrix, "csr_matrix"), _class(spmatrix, "csc_matrix")
coo_matrix, bsr_matrix = _class(spmatrix, "coo_matrix"), _class(spmatrix, "bsr_matrix")
dia_matrix, lil_matrix = _class(spmatrix, "dia_matrix"), _class(spmatrix, "lil_matrix")
dok_matrix = _class(spmatrix, "dok_matrix")
