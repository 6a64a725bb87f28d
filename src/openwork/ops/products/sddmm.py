"""Sampled dense-dense matrix products, and elementwise products of a sparse and a dense operand: the structure of
the sparse operand is shared, only values are computed."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError, ShapeError
from ...interop.operands import adopt_foreign, sparse_or_array
from ...ir.index import Access, Apply, Assignment
from ...ir.index_text import parse_expression
from ...provided import provided
from ...runtime.operation import operation
from ...tensor.lazy import is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..indexing.taking import sparse_mask
from .product import sampled
from .spgemm import spgemm

__all__ = ["sddmm"]

_PRODUCT = parse_expression("A[i, k] * B[k, j]")
_SDDMM = Assignment(
    Access("C", ("i", "j")), "+=", Apply("mul", (Apply("pattern", (Access("M", ("i", "j")),)), _PRODUCT))
)
"""`pattern` is one at every stored element: the mask's values play no part."""


@operation(method=True, masked=provided("masked sddmm"), shape="same", fill="zero", format="same")
def sddmm(mask: Any, a: Any, b: Any) -> Any:
    """`a @ b` at the elements that `mask` specifies.

    Parameters
    ----------
    mask : Tensor, shape (m, n); its values play no part
    a, b : dense arrays or Tensors, shapes (m, k) and (k, n)

    Returns
    -------
    Tensor, shape (m, n), format and structure of `mask`; dtype that of `a @ b`

    Cost: O(nse * k). `b` is packed once where its columns are not contiguous. Of sparse factors: that of the masked
    product of sparse matrices.
    Raises ShapeError if the shapes do not fit, DTypeError for a dense mask.
    Source: the sampled product of Canny and Zhao, Big data analytics with small footprint, KDD 2013.

    See also: matmul, sparse_mask, nn.attend.

    Examples
    --------
    >>> S = ow.eye(2, format="csr")
    >>> ow.sddmm(S, np.ones((2, 3)), np.ones((3, 2))).to_numpy()
    array([[3., 0.],
           [0., 3.]])
    """
    mask, a, b = (x.compute() if is_lazy(x) else x for x in (mask, a, b))
    mask, a, b = one_library(adopt_foreign(mask), sparse_or_array(a), sparse_or_array(b))
    if not isinstance(mask, Tensor):
        raise DTypeError(
            f"sddmm: a mask of type {type(mask).__module__}.{type(mask).__name__}"
            "\n  expected: first a sparse Tensor, then the two factors"
            "\n  help: asarray(mask, format='csr') of a dense mask"
        )
    if (
        mask.ndim != 2
        or a.ndim != 2
        or b.ndim != 2
        or (a.shape[0], b.shape[1]) != mask.shape
        or a.shape[1] != b.shape[0]
    ):
        raise ShapeError(
            f"sddmm: mask {mask.shape}, a {tuple(a.shape)}, b {tuple(b.shape)}; expected (m, n), (m, k), (k, n)"
            "\n  help: the mask comes first: sddmm(mask, a, b)"
        )
    mask = mask if mask.format.is_unique else mask.coalesce()
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return _of_sparse(
            mask, *(x if isinstance(x, Tensor) else Tensor._from_dense(x).asformat("csr") for x in (a, b))
        )
    return sampled(_SDDMM, {"M": mask._storage, "A": a, "B": b})


def _of_sparse(mask: Any, a: Any, b: Any) -> Any:
    """The product of sparse factors, summed only where the mask specifies an element; zero where no product falls."""

    return sparse_mask(spgemm(a, b, mask=mask, format="csr"), mask)
