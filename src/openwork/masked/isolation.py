"""A function of single elements on masked values that torch records: missing elements have no part in any gradient.

torch multiplies what arrives at a result by the derivative there, and 0 * inf is NaN: one element that nobody sees, or
that a later `where` left out, would spoil the gradient of everything it was computed from. Each element of the result
depends on the elements of its own place only, so

    values of missing elements are 1 while the function runs, and what flows back to them is dropped
    where nothing (exactly 0) arrives at an element of the result, nothing leaves for those it was computed from
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..provided import provides
from ..storage.buffers import is_torch
from ..storage.storage import Storage
from ..torch.gradients.permutation import element_mask

__all__ = ["isolated", "running"]


@provides("masked isolated")
def isolated(function: Callable[..., Any], values: list[Any], s: Storage) -> torch.Tensor:
    """The function of values in the places of a structure, and numbers."""
    here = element_mask(s)
    nothing: list[torch.Tensor] = []

    def arrives(g: Any) -> None:
        nothing[:] = [] if g is None else [g.detach() == 0]

    def leaves(g: Any) -> Any:
        return torch.where(nothing[0], 0, g) if nothing and g is not None and g.ndim else None

    def seen(v: Any) -> Any:
        if not is_torch(v):
            return v
        if here is not None and v.ndim:
            v = torch.where(here, v, torch.ones((), dtype=v.dtype, device=v.device))
        if v.requires_grad:
            v = v.expand(s.values.shape) if v.dtype == s.values.dtype else v.view_as(v)
            v.register_hook(leaves)
        return v

    out: torch.Tensor = function(*(seen(v) for v in values))
    if out.requires_grad:
        out.register_hook(arrives)
    return out


@provides("masked running")
def running(op: str, values: torch.Tensor, place: Any) -> torch.Tensor:
    """Running sums or products within fibres, `place` being where in its own each value stands.

    Each step takes in what a value twice as far before has: as many steps as the longest fibre has digits.
    """
    at = torch.as_tensor(place, device=values.device)
    start = values.new_full((), 0 if op == "sum" else 1)
    longest = int(at.max()) if len(at) else 0
    step = 1
    while step <= longest:
        before = torch.cat([start.expand(step), values[:-step]])
        taken = torch.where(at >= step, before, start)
        values = values + taken if op == "sum" else values * taken
        step *= 2
    return values
