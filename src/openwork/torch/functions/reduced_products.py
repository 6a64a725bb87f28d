"""`mm(a, b, reduce)`: a sparse matrix times a dense one, the terms of each row reduced by mean, maximum or minimum.

Each is a compiled statement, and so is its gradient: terms that equal their row's extreme share it. No array of all
terms is allocated, but for second gradients, which torch computes through one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import ShapeError, UnsupportedError
from ...ir.index import Access, Apply, Assignment, Expression, Literal
from ...ops.products.matmul import matmul
from ...runtime.contract import contract, sample
from ...runtime.strided import strided
from ...storage.buffers import as_array, scalar_of
from ...storage.recorded import is_recorded
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..gradients.function import Rule, apply_rule
from ..gradients.nary import torch_storage
from ..gradients.permutation import detached_storage, element_mask, without_duplicates

__all__ = ["mm"]

_A, _B = Access("A", ("i", "j")), Access("B", ("j", "k"))
_TERM = Apply("mul", (_A, _B))
_ROWS = Assignment(Access("n", ("i",)), "+=", Apply("pattern", (_A,)))
_EXTREME = {op: Assignment(Access("y", ("i", "k")), f"{op}=", _TERM) for op in ("max", "min")}


def _sum_at_extreme(out: Access, value: Expression) -> Assignment:
    """The sum of a value over the terms that are their row's extreme."""
    hit = Apply("eq", (_TERM, Access("Y", ("i", "k"))))
    return Assignment(out, "+=", Apply("select", (hit, value, Literal(0.0))))


_SHARE = Access("H", ("i", "k"))
_COUNT = _sum_at_extreme(Access("c", ("i", "k")), Literal(1.0))
_VALUES_GRADIENT = _sum_at_extreme(Access("C", ("i", "j")), Apply("mul", (_SHARE, _B)))
_DENSE_GRADIENT = _sum_at_extreme(Access("d", ("j", "k")), Apply("mul", (_SHARE, _A)))


def mm(a: Any, b: Any, reduce: str = "sum") -> Any:
    """`a @ b`, the terms of a row reduced by "sum", "mean", "amax" or "amin".

    Parameters
    ----------
    a : Tensor of two dimensions, any format; only its specified elements take part, and rows without any give 0
    b : dense torch tensor of two dimensions
    reduce : the gradient of an extreme goes in equal parts to the terms that have it

    Cost: O(nse * columns) time and no more memory than the operands and the result; second gradients of extremes hold
    nse * columns terms.
    Raises UnsupportedError for other reductions and operands.
    """
    if reduce == "sum":
        return matmul(a, b)
    if not isinstance(a, Tensor) or isinstance(b, Tensor) or reduce not in ("mean", "amax", "amin"):
        raise UnsupportedError(
            f"mm: reduce={reduce!r} of {type(a).__name__} and {type(b).__name__}"
            "\n  supported: sum, mean, amax and amin of a sparse Tensor and a dense torch tensor"
        )
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ShapeError(f"mm: shapes {a.shape} and {tuple(b.shape)}\n  expected: (m, n) and (n, k)")
    s = without_duplicates(torch_storage(a))
    dtype = torch.promote_types(s.values.dtype, b.dtype)
    if dtype.is_complex and reduce != "mean":
        raise UnsupportedError(f"mm: {reduce} of complex numbers\n  supported: mean\n  help: they are not ordered")
    if reduce == "mean":
        counts = contract(_ROWS, {"A": detached_storage(s)}, "f64", s.values).clamp(min=1)[:, None]
        total = matmul(Tensor._from_storage(s), b)
        return (
            (total / counts.to(total.dtype)).to(dtype)
            if dtype.is_floating_point or dtype.is_complex
            else total // counts
        )
    compute_dtype = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    values, dense = s.values.to(compute_dtype), b.to(compute_dtype)
    if is_recorded(values) or is_recorded(dense):
        result: torch.Tensor = apply_rule(_Extreme(detached_storage(s), reduce[1:]), values, dense)
    else:
        result = _extreme(detached_storage(s).with_values(values), reduce[1:], dense)
    return result.to(dtype)


def _extreme(s: Storage, op: str, dense: torch.Tensor) -> torch.Tensor:
    best: torch.Tensor = contract(_EXTREME[op], {"A": s, "B": strided(dense)}, scalar_of(dense), s.values)
    nonempty = contract(_ROWS, {"A": s}, "i64", s.values) > 0
    return torch.where(nonempty[:, None], best, torch.zeros((), dtype=best.dtype))


class _Extreme(Rule):
    """The least or largest of the products of each row with each column."""

    __slots__ = ("op", "structure")

    def __init__(self, s: Storage, op: str) -> None:
        self.structure, self.op = s, op

    def forward(self, values: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        return _extreme(self.structure.with_values(values.detach().contiguous()), self.op, dense.detach())

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return *tensors, output

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        values, dense, best = saved
        if torch.is_grad_enabled():
            return _gradients_by_terms(self.structure, values, dense, best.detach(), grad)
        s = self.structure.with_values(values.contiguous())
        views = {"A": s, "B": strided(dense), "Y": strided(best)}
        scalar = scalar_of(best)
        counts = contract(_COUNT, views, scalar, s.values)
        views["H"] = strided(grad / counts.clamp(min=1))
        first = sample(_VALUES_GRADIENT, views, scalar).values if needed[0] else None
        return first, contract(_DENSE_GRADIENT, views, scalar, s.values) if needed[1] else None


def _gradients_by_terms(
    s: Storage, values: torch.Tensor, dense: torch.Tensor, best: torch.Tensor, grad: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients as torch's operations on all terms, which have gradients themselves."""
    numbers = [torch.arange(n) for n in s.shape]
    rows, columns = (
        sample(Assignment(Access("C", ("i", "j")), "=", Apply("mul", (Apply("pattern", (_A,)), Access("N", (index,))))),
               {"A": s, "N": strided(as_array(n, like=best))}, "i64").values
        for index, n in zip("ij", numbers, strict=True)
    )  # fmt: skip
    elements = element_mask(s)
    hits = (values.detach()[:, None] * dense.detach()[columns] == best[rows]).to(best.dtype)
    hits = hits if elements is None else hits * elements[:, None]
    counts = torch.zeros_like(best).index_add(0, rows, hits).clamp(min=1)
    share = hits * (grad / counts)[rows]
    return (share * dense[columns]).sum(1), torch.zeros_like(dense).index_add(0, columns, share * values[:, None])
