"""SciPy's names for what a Tensor does: conversions to its arrays, products of an operator, in-place structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import ShapeError
from ..integers import extents, integer
from ..provided import provided
from ..runtime.conversion.assembly import full
from ..runtime.conversion.remap import canonical
from ..runtime.formats import promises_less
from ..storage.buffers import length
from .inplace import make_writable, replace_storage

if TYPE_CHECKING:
    from .tensor import Tensor

to_scipy = provided("to_scipy", __name__)
resize_structure = provided("resize_structure", __name__)
prune = provided("prune", __name__)
reshape = provided("reshape", __name__)
matmul = provided("matmul", __name__)
reduce = provided("reduce", __name__)


__all__ = ["ScipyNames"]


def _me(t: ScipyNames) -> Tensor:
    return cast("Tensor", t)


class ScipyNames:
    """The mixin of `Tensor` that holds SciPy's names."""

    __slots__ = ()

    def _scipys(self, kind: str, copy: bool) -> Any:
        array = to_scipy(_me(self), kind)
        return array.copy() if copy else array

    def tocsr(self, copy: bool = False) -> Any:
        """The tensor as SciPy's `csr_array`, over the same buffers where the format is CSR; see `to_scipy`."""
        return self._scipys("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        """The tensor as SciPy's `csc_array`, over the same buffers where the format is CSC; see `to_scipy`."""
        return self._scipys("csc", copy)

    def tocoo(self, copy: bool = False) -> Any:
        """The tensor as SciPy's `coo_array`, over the same buffers where the format is COO; see `to_scipy`."""
        return self._scipys("coo", copy)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """The tensor as SciPy's `bsr_array`, over the same buffers where the format is BSR."""
        if blocksize is None:
            return self._scipys("bsr", copy)
        block = extents(blocksize, "tobsr", "blocksize")
        if len(block) != 2:
            raise ShapeError(f"tobsr: blocksize is a pair of integers; got {blocksize!r}\n  help: (2, 2)")
        return to_scipy(_me(self).asformat(f"bsr({block[0]}, {block[1]})"), "bsr")

    def todia(self, copy: bool = False) -> Any:
        """The tensor as SciPy's `dia_array`, over the same buffers where the format is its; see `to_scipy`."""
        return self._scipys("dia", copy)

    def tolil(self, copy: bool = False) -> Any:
        """The tensor as SciPy's `lil_array`."""
        return self._scipys("lil", False)

    def todok(self, copy: bool = False) -> Any:
        """The tensor as SciPy's `dok_array`."""
        return self._scipys("dok", False)

    def reshape(self, *extents: Any, order: str = "C", copy: bool | None = None, shape: Any = None) -> Any:
        """The elements in another shape: a sequence, its extents one by one, or `shape=`; see `openwork.reshape`."""
        if (shape is None) is not bool(extents):
            raise TypeError(f"reshape() {'got multiple values for' if extents else 'missing'} argument 'shape'")
        if extents:
            shape = extents[0] if len(extents) == 1 else extents
        return reshape(_me(self), shape, order=order, copy=copy)

    def power(self, n: Any, dtype: Any = None) -> Any:
        """`A ** n`, every element by itself; in `dtype` where one is given."""
        return (_me(self) if dtype is None else _me(self).astype(dtype, copy=False)) ** n

    def getnnz(self, axis: int | None = None) -> Any:
        """The number of stored elements, zeros included: of all, an int, or over an axis, a dense Tensor."""
        s = _me(self)._storage
        if axis is None:
            return s.nse
        return reduce(
            "sum", _me(self)._from_storage(s.with_values(full(length(s.values), "i64", 1, s.values), 0)), axis
        )

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the elements (i, i + k) in place: to a number, or to as many numbers of a vector as there are."""
        me = _me(self)
        k = integer(k, "setdiag", "k")
        if me.ndim != 2:
            raise ShapeError(f"setdiag: expected a matrix; got shape {me.shape}\n  help: A[i, i] = values")
        array = values if hasattr(values, "ndim") else np.asarray(values)
        n = max(min(me.shape[0] + min(k, 0), me.shape[1] - max(k, 0)), 0)
        if not n:
            raise ShapeError(f"setdiag: k = {k} exceeds a shape of {me.shape}\n  help: -rows < k < columns")
        n = min(n, array.shape[0]) if array.ndim else n
        steps = np.arange(n)
        me[steps + max(-k, 0), steps + max(k, 0)] = array[:n] if array.ndim else array

    def eliminate_zeros(self) -> None:
        """Leave out the stored elements that equal the fill value, -0.0 for 0 too, in place."""
        me = _me(self)
        make_writable(me, "eliminate_zeros")
        fill, is_canonical = me.fill_value, me.format.is_unique and me.format.is_ordered
        if is_canonical and fill == fill and bool((me.values != fill).all()):
            return
        replace_storage(me, prune(me).asformat(me.format)._storage)

    def sum_duplicates(self) -> None:
        """Sum elements that are stored at one place, and sort them, in place: the format is the canonical one then."""
        me = _me(self)
        if not (me.format.is_unique and me.format.is_ordered):
            make_writable(me, "sum_duplicates")
            me._storage = me.asformat(canonical(me.format))._storage

    def sort_indices(self) -> None:
        """Sort stored elements in place; those at one place are summed."""
        self.sum_duplicates()

    def resize(self, *shape: Any) -> None:
        """Change the extents in place: what lies outside goes, what comes is unspecified."""
        me = _me(self)
        shape_ = extents(shape[0] if len(shape) == 1 else shape, "resize")
        if len(shape_) != me.ndim:
            raise ShapeError(f"resize: {len(shape_)} extents of {me.ndim} dimensions\n  help: reshape changes the rank")
        make_writable(me, "resize")
        resized = resize_structure(me, shape_)
        less = promises_less(me.format, resized.format)
        me._storage = (resized.asformat(me.format) if less else resized)._storage

    def matvec(self, x: Any) -> Any:
        """`A @ x` for a vector (n,) or a column (n, 1): what SciPy's linear operators and solvers call."""
        return _plain(matmul(_me(self), x))

    def rmatvec(self, x: Any) -> Any:
        """`A.H @ x` for a vector (m,) or a column (m, 1)."""
        return _adjoint(_me(self), x)

    def matmat(self, x: Any) -> Any:
        """`A @ x` for several columns."""
        return _plain(matmul(_me(self), x))

    def rmatmat(self, x: Any) -> Any:
        """`A.H @ x` for several columns."""
        return _adjoint(_me(self), x)


def _plain(x: Any) -> Any:
    """The array of a dense result."""
    return x.to_dense() if hasattr(x, "format") and x.format.is_dense else x


def _adjoint(t: Tensor, x: Any) -> Any:
    """`A.H @ x`: the conjugate of `A.T @ conj(x)`, which leaves the matrix as it is."""
    if t._storage.scalar not in ("c64", "c128"):
        return _plain(matmul(t.T, x))
    x = x if hasattr(x, "conj") else np.asarray(x)
    return _plain(matmul(t.T, x.conj())).conj()
