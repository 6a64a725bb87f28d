"""SciPy's names for what a Tensor does: conversions to its arrays, and the products of a linear operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..late import late

if TYPE_CHECKING:
    from .tensor import Tensor

if TYPE_CHECKING:
    from ..interop.export import to_scipy
    from ..ops.products.matmul import matmul
else:
    to_scipy = late("interop.export", "to_scipy")
    matmul = late("ops.products.matmul", "matmul")


__all__ = ["ScipyNames"]


def _me(t: ScipyNames) -> Tensor:
    return cast("Tensor", t)


class ScipyNames:
    """The mixin of `Tensor` that holds SciPy's names."""

    __slots__ = ()

    def _scipys(self, kind: str, copy: bool) -> Any:
        found = to_scipy(_me(self), kind)
        return found.copy() if copy else found

    def tocsr(self, copy: bool = False) -> Any:
        """SciPy's `csr_array`, over the same buffers where the format is CSR; see `to_scipy`."""
        return self._scipys("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        """SciPy's `csc_array`, over the same buffers where the format is CSC; see `to_scipy`."""
        return self._scipys("csc", copy)

    def tocoo(self, copy: bool = False) -> Any:
        """SciPy's `coo_array` of any rank, over the same buffers where the format is COO; see `to_scipy`."""
        return self._scipys("coo", copy)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """SciPy's `bsr_array`, over the same buffers where the format is BSR; `blocksize` (1, 1) for others."""
        if blocksize is None:
            return self._scipys("bsr", copy)
        return to_scipy(_me(self).asformat(f"bsr({blocksize[0]}, {blocksize[1]})"), "bsr")

    def todia(self, copy: bool = False) -> Any:
        """SciPy's `dia_array`, over the same buffers where the format is its; see `to_scipy`."""
        return self._scipys("dia", copy)

    def tolil(self, copy: bool = False) -> Any:
        """SciPy's `lil_array`."""
        return self._scipys("lil", False)

    def todok(self, copy: bool = False) -> Any:
        """SciPy's `dok_array`."""
        return self._scipys("dok", False)

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
    return x.to_dense() if hasattr(x, "to_dense") and x.format.is_dense else x


def _adjoint(t: Tensor, x: Any) -> Any:
    """`A.H @ x`: the conjugate of `A.T @ conj(x)`, which leaves the matrix as it is."""
    if t._storage.scalar not in ("c64", "c128"):
        return _plain(matmul(t.T, x))
    return np.conj(_plain(matmul(t.T, np.conj(x))))
