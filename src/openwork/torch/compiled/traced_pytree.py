"""Tensors and masked tensors as nodes of torch's pytrees -> arguments and results of programs of `torch.export`.

The leaves are the buffers, pos and crd by level and then the values; the context is the node of `traced_calls`: format,
shape, fill value. Not so by default: `tree_map` of such a node is of coordinates too.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...masked.tensor import MaskedTensor
from ...storage.buffers import scalar_name, torch_dtype
from ...tensor.tensor import Tensor
from .traced_calls import _node, _result

__all__ = ["register_for_export"]


def _flatten(t: Any) -> tuple[list[Any], Any]:
    buffers: list[torch.Tensor] = []
    node = _node(t, buffers, [])
    return buffers, node


def _flatten_with_keys(t: Any) -> tuple[list[Any], Any]:
    buffers, node = _flatten(t)
    return [(pytree.SequenceKey(k), b) for k, b in enumerate(buffers)], node


def _unflatten(buffers: Any, node: Any) -> Any:
    return _result(node, list(buffers), [])


def _dumped(node: Any) -> str:
    """A node as JSON."""
    return json.dumps(node, default=lambda x: [x.real, x.imag] if isinstance(x, complex) else str(x))


def _loaded(text: str) -> Any:
    """The node that `_dumped` wrote."""
    node = json.loads(text)
    if node[0] == "masked":
        return "masked", node[1], _tensor_node(node[2])
    return _tensor_node(node)


def _tensor_node(node: list[Any]) -> Any:
    kind, format, scalar, fill, shape, held, dtypes, places = node
    fill = complex(*fill) if isinstance(fill, list) else fill
    of_torch = tuple(torch_dtype(scalar_name(name)) for name in dtypes)
    return kind, format, scalar, fill, tuple(shape), held, of_torch, tuple(places)


def register_for_export() -> None:
    """Let programs of `torch.export` take and give Tensors and masked tensors, over torch buffers, from now on.

    They are nodes of torch's pytrees then, in this process, whose leaves are their buffers: functions of
    `torch.utils._pytree` such as `tree_map` see coordinates too. Call it where programs are exported, loaded and run.

    Cost: O(1).
    See also: with_values.

    Examples
    --------
    >>> import openwork.torch
    >>> openwork.torch.register_for_export()  # doctest: +SKIP
    """
    for kind in (Tensor, MaskedTensor):
        if kind not in pytree.SUPPORTED_NODES:
            pytree.register_pytree_node(
                kind, _flatten, _unflatten,
                serialized_type_name=f"openwork.{kind.__name__}",
                to_dumpable_context=_dumped,
                from_dumpable_context=_loaded,
                flatten_with_keys_fn=_flatten_with_keys,
            )  # fmt: skip
