"""Tensors and masked tensors as nodes of torch's pytrees: the values are the leaf, all else is the context.

So torch.func's transforms, DistributedDataParallel and what else takes arguments apart by `torch.utils._pytree` takes
Tensors too. Programs of torch.export may work on other structures: after `register_for_export` all buffers are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from torch.utils import _pytree as pytree

from .. import Tensor, UnsupportedError
from ..provided import provides
from ..storage.buffers import is_array, scalar_of
from ..storage.recorded import in_transform, outside
from ..storage.storage import Storage
from .tensor import MaskedTensor, wrap

__all__ = ["AllBuffers", "Context", "all_buffers", "flatten", "register", "unflatten"]


class AllBuffers(NamedTuple):
    """Functions of a node whose leaves are all buffers: to take it apart and put it together, its context as text."""

    flattened: Callable[[Any], tuple[list[Any], Any]]
    whole: Callable[[list[Any], Any], Any]
    dumped: Callable[[Any], str]
    loaded: Callable[[str], Any]


all_buffers: AllBuffers | None = None
"""Set by `register_for_export`."""


class Context:
    """What a Tensor or masked tensor is besides its values."""

    __slots__ = ("fill_value", "masked", "stored", "structure")

    def __init__(self, s: Storage, masked: bool | None) -> None:
        self.structure, self.fill_value, self.stored, self.masked = s.structure, s.fill_value, len(s.values), masked

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        a, b, fills = self.structure, other.structure, (self.fill_value, other.fill_value)
        return (
            (self.masked, a.shape, a.format) == (other.masked, b.shape, b.format)
            and (fills[0] == fills[1] or (fills[0] != fills[0] and fills[1] != fills[1]))
            and all(map(_are_equal, (*a.pos, *a.crd), (*b.pos, *b.crd)))
        )

    def __hash__(self) -> int:
        return hash((self.structure.shape, self.structure.format, self.masked))

    def __repr__(self) -> str:
        kind = "Tensor" if self.masked is None else "MaskedTensor"
        return f"{kind} {self.structure.format.text} of shape {self.structure.shape}, fill value {self.fill_value}"


def _are_equal(x: Any, y: Any) -> bool:
    if x is y or x is None or y is None or isinstance(x, np.ndarray) is not isinstance(y, np.ndarray):
        return x is y
    with outside():
        return bool(x.shape == y.shape and (x == y).all())


def flatten(t: Any) -> tuple[list[Any], Any]:
    """A Tensor or masked tensor -> its leaves, and its context."""
    if all_buffers is not None:
        return all_buffers.flattened(t)
    masked = t._scalar if isinstance(t, MaskedTensor) else None
    s = (t if masked is None else t._tensor)._storage
    context = Context(s, masked)
    _refuse_fill(context)
    return [s.values], context


def _refuse_fill(context: Context) -> None:
    """Raise UnsupportedError for a fill value that a gradient, which a transform makes of this context, has not."""
    fill = context.fill_value
    if context.masked is None and (fill != 0 and isinstance(fill, int | float | complex)) and in_transform():
        raise UnsupportedError(
            f"torch.func: a Tensor whose fill value is {fill!r}: its derivative's is 0"
            "\n  help: openwork.torch.func has the same transforms for any fill value"
        )


def _flatten_with_keys(t: Any) -> tuple[list[Any], Any]:
    buffers, node = flatten(t)
    return [(pytree.SequenceKey(k), b) for k, b in enumerate(buffers)], node


def unflatten(leaves: Iterable[Any], context: Any) -> Any:
    """The reverse of `flatten`."""
    if all_buffers is not None and not isinstance(context, Context):
        return all_buffers.whole(list(leaves), context)
    (values,) = leaves
    if not is_array(values):
        return values  # a number in each leaf's place, as torch.vmap counts them
    if tuple(values.shape) != (context.stored,):
        raise UnsupportedError(
            f"a Tensor with {context.stored} stored elements as a node of a pytree: its values became ones of shape"
            f" {tuple(values.shape)}\n  help: openwork.torch.func has vmap, jacrev, jacfwd and hessian for Tensors"
        )
    _refuse_fill(context)
    s = Storage.over(context.structure, scalar_of(values), context.fill_value, values)
    t = Tensor._from_storage(s)
    return t if context.masked is None else wrap(t, context.masked)


def _dumped(node: Any) -> str:
    if all_buffers is None or isinstance(node, Context):
        raise UnsupportedError(
            "a file of a program whose arguments or results are Tensors"
            "\n  help: openwork.torch.register_for_export() before it is exported"
        )
    return all_buffers.dumped(node)


def _loaded(text: str) -> Any:
    if all_buffers is None:
        raise UnsupportedError(
            "a file of a program whose arguments or results are Tensors"
            "\n  help: openwork.torch.register_for_export() before it is loaded"
        )
    return all_buffers.loaded(text)


@provides("masked register_nodes")
def register() -> None:
    """Register both types with torch's pytrees, once."""
    for kind in (Tensor, MaskedTensor):
        pytree.register_pytree_node(
            kind, flatten, unflatten,
            serialized_type_name=f"openwork.{kind.__name__}",
            to_dumpable_context=_dumped,
            from_dumpable_context=_loaded,
            flatten_with_keys_fn=_flatten_with_keys,
        )  # fmt: skip
