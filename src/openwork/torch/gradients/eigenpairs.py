"""Gradient rules of eigenvalues and singular values, with their vectors, of a few pairs of a sparse matrix.

A v = w v, A symmetric      dw = v^T dA v      dv = -(A - w)^+ dA v

So the gradient for A, at its elements, is `gw v v^T - x v^T` where x = (A - w)^+ gv is the solution of a bordered
system, one for each pair whose vector has a gradient::

    | A - w  v | | x |   | gv |
    |  v^T   0 | | m | = | 0  |

which has gradients itself. Singular values and vectors are pairs of [[0, A], [A^T, 0]]: w = s, v = (u, v) / sqrt(2).

Of a matrix that is not symmetric (`eigs`) the adjoint of the bordered system has the solution p for (gv, -gw), and the
gradient is -p v^H. Vectors have norm 1; what depends on their phase has no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...errors import UnsupportedError
from ...linalg import direct, eigen
from ...ops.creation import eye
from ...ops.manipulation.blocks import block_array
from ...runtime.gradient_hook import tracked
from ...storage.buffers import scalar_of
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .function import Rule, apply_rule
from .permutation import detached_storage, without_duplicates
from .single_operand import Product, _conjugate, _like, product

__all__ = ["eigs", "eigsh", "lobpcg", "svds"]


class _Pairs(Rule):
    """Known eigenvalues and eigenvectors of a symmetric matrix, as functions of its values."""

    __slots__ = ("structure",)
    materializes = False

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return w.clone(), v.clone()  # tangents of views are lost

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return tensors[0], *output

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        (values, w, v), (of_w, of_v) = saved, grad
        left = torch.zeros_like(v) if of_w is None else v * of_w
        if of_v is not None:
            left = left - _complements(self.structure, values, w, v, of_v)
        spec = Product(self.structure, ("i", "j"), (("i", "k"), ("j", "k")), None, scalar_of(v))
        return product(spec, None, [left.contiguous(), v.contiguous()]), None, None

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> Any:
        values, w, v = saved
        spec = Product(self.structure, ("i", "j"), (("j", "k"),), ("i", "k"), scalar_of(v))
        moved = product(spec, tangents[0], [v.contiguous()])
        return (v * moved).sum(0), -_complements(self.structure, values, w, v, moved)


def _complements(
    s: Storage, values: torch.Tensor, w: torch.Tensor, v: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    """The columns `(A - w[k])^+ @ right[:, k]`; those whose right side is 0 are."""
    a, n = Tensor._from_storage(s.with_values(values)), s.shape[0]
    one = eye(n, dtype=v.dtype, format="coo")
    columns = []
    for k in range(len(w)):
        if not torch.is_grad_enabled() and not bool(right[:, k].any()):
            columns.append(torch.zeros_like(right[:, k]))
            continue
        border = v[:, k : k + 1]
        bordered = block_array([[a - one * w[k], border], [border.mT, None]], format="csc")
        padded = torch.cat([right[:, k], right.new_zeros(1)])
        columns.append(direct.solve(bordered, padded)[:n])
    return torch.stack(columns, 1) if columns else right


def _pairs(a: Tensor, w: Any, v: Any) -> tuple[torch.Tensor, torch.Tensor]:
    s = without_duplicates(a._storage)
    like = s.values
    parts = (torch.as_tensor(x.copy(), dtype=like.dtype) for x in (w, v))
    result: tuple[torch.Tensor, torch.Tensor] = apply_rule(_Pairs(detached_storage(s)), like, *parts)
    return result


def _check(a: Any, operation: str, options: dict[str, Any], scalars: tuple[str, ...] = ("f32", "f64")) -> Tensor:
    if not isinstance(a, Tensor) or a.ndim != 2 or a._storage.scalar not in scalars:
        what = f"dtype {a.dtype}" if isinstance(a, Tensor) and a.ndim == 2 else f"an operand {type(a).__name__}"
        raise UnsupportedError(f"{operation} of {what} has no gradient\n  supported: one real matrix\n  help: detach()")
    if any(options.get(name) is not None for name in ("M", "Minv", "OPinv")):
        raise UnsupportedError(f"{operation} with M has no gradient\n  help: detach() the matrix")
    return a


def eigsh(a: Any, k: int = 6, **options: Any) -> Any:
    """The rule of `linalg.eigsh`: torch tensors on the graph of `a`, which is taken as symmetric."""
    t = _check(a, "eigsh", options)
    alone = options.pop("return_eigenvectors", True) is False
    w, v = eigen._eigenvalues("eigsh", t.detach(), k, **options)
    pairs = _pairs(t, w, v)
    return pairs[0] if alone else pairs


def lobpcg(a: Any, x: Any, **options: Any) -> Any:
    """The rule of `linalg.lobpcg`: (w, v) on the graph of `a`, and the histories that were asked for."""
    t = _check(a, "lobpcg", options)
    if any(options.get(name) is not None for name in ("B", "Y")) or tracked([x]):
        raise UnsupportedError("lobpcg with B, Y or recorded vectors has no gradient\n  help: detach()")
    w, v, *histories = eigen.lobpcg(t.detach(), x, **options)
    return (*_pairs(t, np.asarray(w), np.asarray(v)), *histories)


class _GeneralPairs(Rule):
    """Known eigenvalues and right eigenvectors of a matrix, as functions of its values."""

    __slots__ = ("structure",)

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> Any:
        return w.clone(), v.clone()  # tangents of views are lost

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return tensors[0], *output

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        (values, w, v), (of_w, of_v), s = saved, grad, self.structure
        adjoint = Tensor._from_storage(s.with_values(_conjugate(values))).mT
        left = -_bordered(adjoint, w.conj().resolve_conj(), v, of_v, -of_w)[0]
        spec = Product(s, ("i", "j"), (("i", "k"), ("j", "k")), None, scalar_of(v))
        return _like(product(spec, None, [left.contiguous(), _conjugate(v).contiguous()]), values), None, None

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> Any:
        (values, w, v), change = saved, tangents[0]
        assert change is not None
        spec = Product(self.structure, ("i", "j"), (("j", "k"),), ("i", "k"), scalar_of(v))
        moved = product(spec, change.to(v.dtype), [v.contiguous()])
        a = Tensor._from_storage(self.structure.with_values(values))
        dv, dw = _bordered(a, w, v, -moved, torch.zeros_like(w))
        return -dw, dv


def _bordered(a: Tensor, w: Any, v: Any, right: torch.Tensor, last: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The solutions of [[a - w, v], [v^H, 0]] for each pair: their columns, and the last element of each."""
    n = v.shape[0]
    one, shifted = eye(n, dtype=v.dtype, format="coo"), a.astype(v.dtype)
    columns = []
    for k in range(len(w)):
        border = v[:, k : k + 1]
        matrix = block_array([[shifted - one * w[k], border], [border.mH.resolve_conj(), None]], format="csc")
        columns.append(direct.solve(matrix, torch.cat([right[:, k], last[k : k + 1]])))
    found = torch.stack(columns, 1)
    return found[:n], found[n]


def eigs(a: Any, k: int = 6, **options: Any) -> Any:
    """The rule of `linalg.eigs`: complex values and vectors on the graph of `a`."""
    t = _check(a, "eigs", options, ("f32", "f64", "c64", "c128"))
    alone = options.pop("return_eigenvectors", True) is False
    w, v = eigen._eigenvalues("eigs", t.detach(), k, **options)
    s = without_duplicates(t._storage)
    values = s.values
    scalar = torch.complex64 if t._storage.scalar in ("f32", "c64") else torch.complex128
    parts = (torch.as_tensor(np.array(x), dtype=scalar) for x in (w, v))
    pairs: tuple[torch.Tensor, torch.Tensor] = apply_rule(_GeneralPairs(detached_storage(s)), values, *parts)
    return pairs[0] if alone else pairs


def svds(a: Any, k: int = 6, **options: Any) -> Any:
    """The rule of `linalg.svds`."""
    t = _check(a, "svds", options)
    wanted = options.pop("return_singular_vectors", True)
    u, s, vh = (np.asarray(x) for x in eigen._singular_values(t.detach(), k, **options))
    twice = block_array([[None, t], [t.T, None]], format="csr")
    values, vectors = _pairs(twice, s, np.concatenate([u, vh.T]) / math.sqrt(2))
    if wanted is False:
        return values
    vectors = vectors * math.sqrt(2)
    rows = t.shape[0]
    left, right = vectors[:rows], vectors[rows:].mT
    return (None if wanted == "vh" else left), values, (None if wanted == "u" else right)
