"""Attention as operators of torch.library, which torch.compile puts into its graphs, for masks of any format.

`openwork::attend` and `openwork::attend_backward` get the mask's own buffers and the text of its format, and convert it
where they run, once for a mask: sizes in a graph are those of buffers, so that a graph serves masks of any number of
elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import Tensor, assemble
from .attend_mask import Rows, rows_of
from .attend_operator import attend_backward, attend_forward
from .attend_structure import version

__all__ = ["traced_attention"]

_library = torch.library.Library("openwork", "FRAGMENT")
_MASK = "Tensor[] structure, str format, str held, SymInt[] shape, SymInt count, SymInt[] lead, bool is_causal"
_library.define(f"attend({_MASK}, Tensor q, Tensor k, Tensor v, Tensor? keep, float scale) -> (Tensor, Tensor)")
_library.define(
    f"attend_backward(Tensor grad, Tensor out, Tensor lse, {_MASK}, Tensor q, Tensor k, Tensor v, Tensor? keep,"
    " float scale) -> (Tensor, Tensor, Tensor)"
)


def traced_attention(
    mask: Tensor, lead: tuple[int, ...], is_causal: bool, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    dropout: float, scale: float,
) -> torch.Tensor:  # fmt: skip
    """Attention of stacks (places, n, d), (places, m, d) and (places, m, e), where torch.compile traces."""
    s = mask._raw_storage
    pairs = [(p, c) for p, c in zip(s.pos, s.crd, strict=True)]
    structure = [torch.as_tensor(b) for pair in pairs for b in pair if b is not None]
    held = "".join([("-" if p is None else "p") + ("-" if c is None else "c") for p, c in pairs])
    if s.scalar == "bool":  # of which values that are False are not seen
        structure, held = [*structure, torch.as_tensor(s.values)], held + "v"
    count = math.prod(s.values.shape)
    keep = None
    if dropout:
        drawn = torch.rand(*_drawn(s.shape, lead, count), dtype=q.dtype, device=q.device)
        keep = (drawn >= dropout).to(q.dtype) / (1 - dropout)
    described = (structure, s.format.text, held, s.shape, count, lead, is_causal)
    result: torch.Tensor = torch.ops.openwork.attend(*described, q, k, v, keep, scale)[0]
    return result


def _drawn(shape: Sequence[int], lead: Sequence[int], count: int) -> tuple[int, int]:
    """What dropout draws for: each place and element of one mask, each element of a stack's that are broadcast."""
    if len(shape) == 2:
        return math.prod(lead), count
    return 1, count * math.prod(lead) // max(math.prod(shape[:-2]), 1)


def _rows(
    structure: Sequence[torch.Tensor], format: str, held: str, shape: Sequence[int], count: int, lead: Sequence[int],
    is_causal: bool,
) -> Rows:  # fmt: skip
    """The mask's compressed rows; it is kept with the last of its buffers, and its rows with it."""
    cached = structure[-1].__dict__.setdefault("_openwork_masks", {}) if structure else {}
    key = (format, tuple(shape), *[(b.data_ptr(), version(b)) for b in structure])
    mask = cached.get(key)
    if mask is None:
        buffers = iter(structure)
        each = [None if x == "-" else next(buffers) for x in held.removesuffix("v")]
        values = structure[-1] if held.endswith("v") else torch.ones(count, dtype=torch.bool)
        pos, crd = ({n: b for n, b in enumerate(part) if b is not None} for part in (each[::2], each[1::2]))
        cached.clear()
        mask = cached[key] = assemble(format, tuple(shape), pos=pos, crd=crd, values=values, check=False)
    return rows_of(mask, tuple(lead), is_causal)


@torch.library.impl(_library, "attend", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _attend(
    structure: Sequence[torch.Tensor], format: str, held: str, shape: Sequence[int], count: int, lead: Sequence[int],
    is_causal: bool, *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    return attend_forward(*_rows(structure, format, held, shape, count, lead, is_causal), *arguments)


@torch.library.impl(_library, "attend_backward", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _attend_backward(
    grad: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, structure: Sequence[torch.Tensor], format: str, held: str,
    shape: Sequence[int], count: int, lead: Sequence[int], is_causal: bool, *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    return attend_backward(grad, out, lse, *_rows(structure, format, held, shape, count, lead, is_causal), *arguments)


@torch.library.register_fake("openwork::attend", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    q, _, v, _, _ = arguments[7:]
    return q.new_empty((*q.shape[:2], v.shape[2])), q.new_empty(q.shape[:2])


@torch.library.register_fake("openwork::attend_backward", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake_backward(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in arguments[10:13])
    return q, k, v


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    structure, *ctx.described, q, k, v, keep, ctx.scale = inputs
    ctx.save_for_backward(*structure, q, k, v, keep, *output)
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, grad: torch.Tensor, _: Any) -> Any:
    *structure, q, k, v, keep, out, lse = ctx.saved_tensors
    gradients = torch.ops.openwork.attend_backward(grad, out, lse, structure, *ctx.described, q, k, v, keep, ctx.scale)
    return [None] * len(structure), *[None] * 6, *gradients, None, None


torch.library.register_autograd("openwork::attend", _backward, setup_context=_setup, lib=_library)
