"""Prepared calls of a recorded product of a sparse operand and dense ones: its launch and those of its gradients.

    y[i,k] += A[i,j] * X[j,k]        dA[i,j] += X[j,k] * dy[i,k] at the elements of A,   dX[j,k] += A[i,j] * dy[i,k]
    C[i,j] += pattern(A[i,j]) * X[i,k] * Y[k,j]          dX[i,k] += dC[i,j] * Y[k,j],   dY[k,j] += dC[i,j] * X[i,k]

The first call runs as any statement (`single_operand`), and keeps its launches with the structure. The next one finds
them by the shapes of the dense operands. Gradients of gradients run as any statement again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from ...ir.index import Assignment
from ...ir.types import COMPLEX
from ...runtime.prepared import remember
from ...storage.buffers import scalar_of
from ...storage.recorded import bare, is_transformed, structure_of
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ..gradients.launch import PreparedLaunch
from ..gradients.single_operand import (
    Indices,
    Product,
    factors_of,
    gradient_terms,
    gradients_of,
    has_memory,
    launch_key,
    plain_apply,
    run,
)

__all__ = ["PreparedStep", "keep_sampled", "prepared_step"]


class PreparedStep:
    """The prepared launches of a product and, from the first backward on, of its gradients.

    `apply(step, storage, values, *dense)` is the product, recorded; only where no transform of `torch.func` and no
    tangent takes part.

    at, dense, out : indices, as a `Product` has them
    """

    __slots__ = ("_gradients", "apply", "at", "dense", "forward", "out", "scalar")

    def __init__(self, at: Indices, dense: tuple[Indices, ...], out: Indices | None, forward: PreparedLaunch) -> None:
        self.at, self.dense, self.out = at, dense, out
        self.forward, self.scalar = forward, scalar_of(torch.empty(0, dtype=forward.dtype))
        self._gradients: dict[int, tuple[PreparedLaunch, tuple[int | None, ...]]] = {}
        """the launch of an operand's gradient, and the operands that it takes: values, dense ones, the gradient"""
        self.apply = _apply

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.forward.valid

    def gradients_of(
        self, s: Storage, operands: Sequence[torch.Tensor | None], grad: torch.Tensor, needed: Sequence[bool]
    ) -> Sequence[torch.Tensor | None]:
        """The gradients of the values and of the dense operands, where they are wanted."""
        if torch.is_grad_enabled() or not self.valid or torch._C._functorch.maybe_current_level() is not None:
            return self._run(s, operands, grad, needed)
        grad = grad.contiguous()
        all_operands = (*operands, grad, None)
        found: list[torch.Tensor | None] = []
        for wrt, is_needed in enumerate(needed):
            if not is_needed:
                found.append(None)
                continue
            prepared = self._gradients.get(wrt)
            if prepared is None or not has_memory(grad):
                gradients = self._run(s, operands, grad, needed)
                self._keep(s, all_operands, gradients)
                return gradients
            launch, taken = prepared
            found.append(launch(*[all_operands[-1 if k is None else k] for k in taken]))
        return found

    def _run(
        self, s: Storage, operands: Sequence[torch.Tensor | None], grad: torch.Tensor, needed: Sequence[bool]
    ) -> Sequence[torch.Tensor | None]:
        """The gradients as any statement."""
        values, *dense = operands
        spec = Product(structure_of(s), self.at, self.dense, self.out, self.scalar)
        of_values, of_dense = gradients_of(spec, values, dense, grad, needed)
        return of_values, *of_dense

    def _keep(
        self, s: Storage, operands: Sequence[torch.Tensor | None], gradients: Sequence[torch.Tensor | None]
    ) -> None:
        """Keep the launches of gradients, which have just run as statements."""
        valued = operands[0] is not None
        for wrt, gradient in enumerate(gradients):
            x = operands[wrt]
            if gradient is None or x is None or x.is_complex() or (wrt and valued and self.out is None):
                continue
            dense, out, sparse, others = gradient_terms(self.at, self.dense, self.out, valued, wrt)
            if wrt and out != self.dense[wrt - 1]:
                continue
            spec = Product(s, self.at, dense, out, self.scalar)
            launch = s.plans.products.get(launch_key(spec, sparse is not None, [operands[k] for k in others]))
            if type(launch) is PreparedLaunch and gradient.dtype is launch.dtype is x.dtype:
                self._gradients[wrt] = launch, (sparse, *others)


class _RecordedProduct(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, step: PreparedStep, s: Storage, values: torch.Tensor | None, *dense: torch.Tensor
    ) -> torch.Tensor:
        ctx.step, ctx.s = step, s
        ctx.save_for_backward(values, *dense)
        return step.forward(values, *dense)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, *ctx.step.gradients_of(ctx.s, ctx.saved_tensors, grads[0], ctx.needs_input_grad[2:])


_apply = plain_apply(_RecordedProduct)


def prepared_step(
    stmt: Assignment, sparse: str, other: str, scalar: str, s: Storage, array: torch.Tensor
) -> PreparedStep | None:
    """The rule of a prepared product, which has just run: the step of its launch; None where none was kept."""
    indices = {a.tensor: a.indices for a in stmt.accesses}
    spec = Product(s, indices[sparse], (indices[other],), stmt.lhs.indices, scalar)
    launch = s.plans.products.get(launch_key(spec, True, [array]))
    return PreparedStep(spec.at, spec.dense, spec.out, launch) if type(launch) is PreparedLaunch else None


# -- products at the elements of a pattern -----------------------------------------------------------------------------


class _Sampled:
    """A sampled product of a pattern and tensors of known shapes, strides and dtype: a launch, or its recorded form.

    None where a transform or a tangent takes part, or the launch holds no more.
    """

    __slots__ = ("_forward", "_level", "fill", "is_own_kind", "is_plain", "itemsize", "launch", "scalar", "step")

    def __init__(self, step: PreparedStep, s: Storage) -> None:
        self.step, self.launch, self.scalar = step, step.forward, step.scalar
        self.fill, self.itemsize = python_scalar(0, step.scalar), step.forward.like.element_size()
        self.is_own_kind = step.scalar == s.scalar and repr(s.fill_value) == repr(self.fill)
        """whether the product has the pattern's type and fill value"""
        self.is_plain: Callable[[torch.Tensor], bool] = has_memory if self.scalar in COMPLEX else self._is_plain
        self._forward, self._level = torch.autograd.forward_ad, torch._C._functorch.maybe_current_level

    def __call__(self, s: Storage, a: torch.Tensor, b: torch.Tensor) -> Storage | None:
        """The product at the elements of a storage, over its structure."""
        if self._forward._current_level >= 0 or self._level() is not None or not self.launch.valid:
            return None
        if not (self.is_plain(a) and self.is_plain(b)):
            return None
        if (a.requires_grad or b.requires_grad) and torch.is_grad_enabled():
            values = _apply(self.step, s, None, a, b)
        else:
            values = self.launch(None, a, b)
        if self.is_own_kind:
            return s.with_own_values(values)
        return Storage.over(s._structure or s.structure, self.scalar, self.fill, values)

    def _is_plain(self, x: torch.Tensor) -> bool:
        """`has_memory` of real numbers of this size."""
        at = x.data_ptr()
        return not (not at or at % self.itemsize or x.is_neg())


def keep_sampled(key: Any, stmt: Assignment, s: Storage, a: torch.Tensor, b: torch.Tensor, scalar: str) -> None:
    """Keep a sampled product of a pattern with two plain tensors, of this scalar type, under this key of the
    structure's products."""
    if scalar_of(a) != scalar or a.dtype is not b.dtype or is_transformed(a) or is_transformed(b):
        return
    if 0 in (*a.shape, *b.shape):
        return
    at, dense = _parts(stmt)
    spec, operands = Product(structure_of(s), at, dense, None, scalar), (bare(a), bare(b))
    run(spec, None, operands)
    launch = spec.structure.plans.products.get(launch_key(spec, False, operands))
    if launch is not None:
        remember(s, key, _Sampled(PreparedStep(at, dense, None, launch), s))


@lru_cache(maxsize=64)
def _parts(stmt: Assignment) -> tuple[Indices, tuple[Indices, ...]]:
    """The indices of the pattern, and those of the dense operands."""
    factors = factors_of(stmt.rhs)
    assert factors is not None
    (at,) = (access.indices for access, valued in factors if not valued)
    return at, tuple(access.indices for access, valued in factors if valued)
