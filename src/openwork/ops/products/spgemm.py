"""The product of two sparse tensors: matrices, stacks of them, under a mask, over any semiring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compiler.semiring import Semiring
from ...errors import ShapeError
from ...interop.operands import adopt_foreign
from ...runtime.contraction.sparse import Term, absent, in_format, masked, pair, result_format
from ...runtime.formats import resolve_format
from ...runtime.operation import operation
from ...runtime.promote import promote
from ...runtime.semirings import semiring as semiring_of
from ...storage.storage import Storage
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from .einsum import einsum

if TYPE_CHECKING:
    from ...format.format import Format
    from ...tensor.tensor import Tensor

__all__ = ["sparse_matmul", "spgemm"]


def sparse_matmul(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` of two sparse tensors whose shapes are known to fit, NumPy's rules for vectors and stacks."""
    if a.ndim == b.ndim == 2:
        return spgemm(a, b)
    left = "j" if a.ndim == 1 else "...ij"
    right = "j" if b.ndim == 1 else "...jk"
    out = "..." + ("i" if a.ndim > 1 else "") + ("k" if b.ndim > 1 else "")
    return einsum(f"{left},{right}->{out}", a, b)  # type: ignore[no-any-return]


@operation(shape="product", dtype="semiring", fill="zero", format="sparse")
def spgemm(
    a: Tensor,
    b: Tensor,
    /,
    *,
    semiring: str | Semiring = "plus_times",
    mask: Tensor | None = None,
    complement: bool = False,
    format: str | Format | None = None,
) -> Tensor:
    """The product of two sparse matrices over a semiring, at the elements of a mask where there is one.

    Parameters
    ----------
    a, b : Tensors, shapes (m, k) and (k, n), any formats
    semiring : a name ("min_plus", "any_pair", ...) or a Semiring
    mask : Tensor, shape (m, n); only the elements that it specifies are computed, its values play no part
    complement : only the elements that the mask does not specify
    format : the result's; without, that of the operands where it is the same, else "csr"

    Returns
    -------
    Tensor, shape (m, n); its fill value is the identity of the semiring's sum; sorted and without duplicates

    Guarantees: what is not specified takes no part; an element is specified wherever a product was formed, zeros
    included; bit for bit the same for any number of threads.
    Cost: O(products + nse), after one conversion of each operand that is not CSR (of both not CSC: none).
    Raises ShapeError if the shapes do not fit, UnsupportedError for fill values that are not the semiring's zero.
    Source: Gustavson, Two fast algorithms for sparse matrices, TOMS 1978; Davis, SuiteSparse:GraphBLAS, TOMS 2019.

    See also: matmul, einsum, semiring.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 1.], [1., 0.]]), format="csr")
    >>> ow.spgemm(A, A, semiring="plus_pair").to_numpy()
    array([[1, 0],
           [0, 1]])
    """
    ring = semiring_of(semiring)
    a, b, mask = one_library(adopt_foreign(a), adopt_foreign(b), adopt_foreign(mask))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"spgemm: matrices of shapes {a.shape} and {b.shape}\n  expected: (m, k) and (k, n)"
            "\n  help: transpose an operand with .T, or use einsum"
        )
    shape = (a.shape[0], b.shape[1])
    if mask is not None and mask.shape != shape:
        raise ShapeError(f"spgemm: expected a mask of shape {shape}, got {mask.shape}\n  help: slice or transpose it")
    scalar = ring.result(promote((a._storage.scalar, b._storage.scalar), a._storage.library))
    x, y = (Term(k, absent(t._storage, ring, scalar, "spgemm")) for k, t in (("ij", a), ("jk", b)))
    m = None if mask is None else Term("ik", mask._storage)
    result = pair(x, y, "ik", ring) if m is None else masked(x, y, m, ring, complement)
    target = result_format((a._storage, b._storage), shape) if format is None else resolve_format(format, 2)
    return _tensor(in_format(result, "ik", target))


def _tensor(s: Storage) -> Tensor:

    return Tensor._from_storage(s)
