"""Prepared calls of a recorded product of a matrix with a dense operand: its forward launch and both of its gradient.

    y[i,k] += A[i,j] * X[j,k]        dA[i,j] += X[j,k] * dy[i,k] at the elements of A,   dX[j,k] += A[i,j] * dy[i,k]

The first call runs as any statement (`single_operand`), and keeps its three launches with the structure. The next one
finds them by the shape of X. Gradients of gradients run as any statement again.
"""

from __future__ import annotations

from typing import Any

import torch

from ..ir.index import Assignment
from ..runtime.prepared import PreparedCall, key_of, recall
from ..runtime.strided import strided
from ..storage.buffers import scalar_of
from ..storage.storage import Storage
from .prepared_launch import PreparedLaunch
from .single_operand import Product, gradients_of, plain_apply, statement_of

__all__ = ["PreparedStep", "prepared_step"]


class PreparedStep:
    """The prepared launches of a product and, from the first backward on, of its gradients.

    `apply(step, storage, values, dense)` is the product, recorded; only where no transform of `torch.func` and no
    tangent takes part.
    """

    __slots__ = ("apply", "at", "dense", "forward", "gradients", "out", "scalar")

    def __init__(self, stmt: Assignment, sparse: str, other: str, forward: PreparedLaunch) -> None:
        indices = {a.tensor: a.indices for a in stmt.accesses}
        self.at, self.dense, self.out = indices[sparse], indices[other], stmt.lhs.indices
        self.forward, self.scalar = forward, scalar_of(torch.empty(0, dtype=forward.dtype))
        self.gradients: dict[str, PreparedLaunch] = {}
        self.apply = _apply

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.forward.prepared_call.valid

    def spec(self, s: Storage) -> Product:
        """The product as a statement."""
        return Product(s.with_values(s.values.detach()), self.at, (self.dense,), self.out, self.scalar)

    def gradients_of(
        self, s: Storage, values: torch.Tensor, b: torch.Tensor, grad: torch.Tensor, needed: tuple[bool, bool]
    ) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The gradients of the values and of the dense operand, where they are wanted."""
        grad = grad.contiguous()
        first, second = self.gradients.get("values"), self.gradients.get("dense")
        if (first is None and needed[0]) or (second is None and needed[1]):
            of_values, (of_dense,) = gradients_of(self.spec(s), values, [b], grad, needed)
            self._keep(s, values, b, grad, of_values, of_dense)
            return of_values, of_dense
        return (
            first(values, b, grad) if first is not None and needed[0] else None,
            second(values, grad) if second is not None and needed[1] else None,
        )

    def _keep(
        self, s: Storage, values: torch.Tensor, b: torch.Tensor, grad: torch.Tensor, first: Any, second: Any
    ) -> None:
        """Keep the launches of the gradients, which have just run as statements."""
        if first is not None:
            stmt = statement_of(self.at, (self.dense, self.out), None, False)
            views = {"A": s, "D0": strided(b.detach()), "D1": strided(grad.detach())}
            has_padding = s.format.blocksize is not None or s.format.is_dense or s.nse != values.shape[0]
            prepared = recall(s, key_of(stmt, f"{self.scalar} shared", views))
            if prepared is not None and _needs_no_copies(prepared, first):
                zero = has_padding or not prepared.prepared.schedule.no_alias
                self.gradients["values"] = PreparedLaunch(prepared, first, zero=zero)
        if second is not None:
            stmt = statement_of(self.at, (self.out,), self.dense, True)
            prepared = recall(s, key_of(stmt, self.scalar, {"A": s, "D0": strided(grad.detach())}))
            if prepared is not None and _needs_no_copies(prepared, second):
                self.gradients["dense"] = PreparedLaunch(
                    prepared, second, zero=not prepared.prepared.schedule.writes_all
                )


def _needs_no_copies(prepared: PreparedCall, result: torch.Tensor) -> bool:
    """Whether a launch copies no operand and its result is contiguous."""
    packs = bool(prepared.problem.copies) or any(lined for _, _, lined in prepared.inputs)
    return not packs and result.is_contiguous()


class _RecordedProduct(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, step: PreparedStep, s: Storage, values: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.step, ctx.s = step, s
        ctx.save_for_backward(values, b)
        return step.forward(values, b)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (grad,), (values, b), step = grads, ctx.saved_tensors, ctx.step
        needed = ctx.needs_input_grad[2:]
        if torch.is_grad_enabled() or not step.valid or torch._C._functorch.maybe_current_level() is not None:
            first, (second,) = gradients_of(step.spec(ctx.s), values, [b], grad, needed)
        else:
            first, second = step.gradients_of(ctx.s, values, b, grad, needed)
        return None, None, first, second


_apply = plain_apply(_RecordedProduct)


def prepared_step(
    stmt: Assignment, sparse: str, other: str, prepared: PreparedCall, result: torch.Tensor
) -> PreparedStep:
    """The rule of a prepared product: its launch -> the step that torch records."""
    return PreparedStep(
        stmt, sparse, other, PreparedLaunch(prepared, result, zero=not prepared.prepared.schedule.writes_all)
    )
