"""`addmm`: a product added to something, in one call."""

from __future__ import annotations

from typing import Any

from ...runtime.operation import operation
from ..elementwise.maps import elementwise
from .matmul import matmul

__all__ = ["addmm"]


@operation(returns="product", shape="same", dtype="promoted", fill="scaled", format="same")
def addmm(input: Any, a: Any, b: Any, /, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (a @ b)`.

    Parameters
    ----------
    input : Tensor, array or number that broadcasts to the shape of the product; not read where beta is 0
    a, b : Tensor or dense array, as for `matmul`
    beta : the factor of `input`
    alpha : the factor of the product

    Returns
    -------
    what `matmul` and the sum of its result with `input` give: sparse of sparse operands, else dense

    Guarantees: equal to the operations one by one; nothing sparse is made dense.
    Cost: that of `matmul`, and of the sum. Raises ShapeError for shapes that do not fit.
    Source: torch.addmm.

    See also: matmul, linalg.solve.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.eye(2), format="csr")
    >>> ow.addmm(np.ones((2, 2)), A, np.ones((2, 2)), beta=2, alpha=3)
    array([[5., 5.],
           [5., 5.]])
    """
    product = matmul(a, b)
    product = product if alpha == 1 else elementwise("mul", product, alpha)
    if beta == 0:
        return product
    return elementwise("add", input if beta == 1 else elementwise("mul", input, beta), product)
