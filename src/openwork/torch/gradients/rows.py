"""`rows_matmul`, `linear`: a sparse input times a dense weight, whose gradient is sparse by rows.

A product with a sparse input reads few rows of a weight, and the gradient has these rows only, as a `torch.sparse_coo`
tensor, which torch.optim's SGD, SparseAdam and Adagrad take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import ShapeError, UnsupportedError
from ...format import coo
from ...ops.elementwise.maps import elementwise
from ...ops.products.matmul import matmul
from ...storage.buffers import as_array, cast, scalar_of
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .function import Rule, apply_rule
from .permutation import detached_storage
from .single_operand import Product, _conjugate, _like, product

__all__ = ["linear", "rows_matmul"]


class _RowsProduct(Rule):
    """A matrix of this structure, by its values, times a weight."""

    __slots__ = ("structure",)

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = matmul(
            Tensor._from_storage(self.structure.with_values(values.detach())), weight.detach()
        )
        return result

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        (values, weight), s = saved, self.structure
        values_gradient = sparse = None
        if needed[0]:
            spec = Product(s, ("i", "j"), (("j", "k"), ("i", "k")), None, scalar_of(grad))
            values_gradient = _like(product(spec, None, [_conjugate(weight), grad]), values)
        if needed[1]:
            rows, compacted = _compact_columns(s.with_values(_conjugate(values)))
            dense = _like(matmul(Tensor._from_storage(compacted).T, grad), weight)
            sparse = torch.sparse_coo_tensor(rows[None], dense, weight.shape, is_coalesced=True, check_invariants=False)
        return values_gradient, sparse


def _compact_columns(s: Storage) -> tuple[torch.Tensor, Storage]:
    """A matrix -> its nonempty columns, and the matrix of these columns alone."""
    rows, columns = (c for c in s.crd if c is not None)
    used_columns, ranks = torch.unique(columns.to(torch.int64), return_inverse=True)
    shape = (s.shape[0], len(used_columns))
    crd = (rows, ranks.to(rows.dtype))
    return used_columns, Storage(shape, s.format, s.scalar, s.fill_value, s.pos, crd, s.values)


def rows_matmul(a: Any, weight: torch.Tensor) -> torch.Tensor:
    """`a @ weight`, where the gradient of `weight` is a sparse tensor of the rows that `a` reads.

    Parameters
    ----------
    a : Tensor, shape (m, n), any sparse format, fill value 0
    weight : torch tensor, shape (n, k)

    Returns
    -------
    torch tensor, shape (m, k)

    Guarantees: equal to `a @ weight`; the gradient, made dense, equal to the dense one, and so are second ones.
    Cost: O(nse * k), forward and backward; the backward never makes a tensor of the weight's size.
    Raises ShapeError where the shapes do not fit, UnsupportedError for a fill value other than 0.

    See also: linear, nn.SparseEmbedding.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2, dtype=torch.float64), format="csr").requires_grad_()
    >>> ow.torch.rows_matmul(S, torch.ones(2, 1, dtype=torch.float64))
    tensor([[1.],
            [1.]], dtype=torch.float64, grad_fn=<StatementBackward>)
    """
    if not isinstance(a, Tensor) or a.ndim != 2 or weight.ndim != 2 or a.shape[1] != weight.shape[0]:
        raise ShapeError(
            f"rows_matmul: shapes {tuple(a.shape)} and {tuple(weight.shape)}\n  expected: a Tensor (m, n), and (n, k)"
        )
    if a.fill_value:
        raise UnsupportedError(
            f"rows_matmul: unspecified elements are {a.fill_value}, so all rows are read\n  help: use a @ weight"
        )
    s = a.asformat(coo(2))._storage
    values = cast(as_array(s.values, like=weight.detach()), scalar_of(weight))
    structure = detached_storage(s).mapped(lambda b: as_array(b, like=weight.detach())).with_values(values.detach())
    result: torch.Tensor = apply_rule(_RowsProduct(structure), values, weight)
    return result


def linear(input: Any, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`input @ weight + bias` for a sparse input and a weight of shape (in, out), whose gradient is sparse by rows.

    Returns
    -------
    torch.Tensor of shape (m, out)

    Cost: O(nse * columns).
    See also: rows_matmul, nn.SparseLinear.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2, dtype=torch.float64), format="csr").requires_grad_()
    >>> ow.torch.linear(S, torch.ones(2, 1, dtype=torch.float64))
    tensor([[1.],
            [1.]], dtype=torch.float64, grad_fn=<StatementBackward>)
    """
    product = rows_matmul(input, weight)
    result: torch.Tensor = product if bias is None else elementwise("add", product, bias)
    return result
