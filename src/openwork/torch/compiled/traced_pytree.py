"""Programs of `torch.export` that take and give Tensors and masked tensors: all buffers are leaves of torch's pytrees.

pos and crd by level and then the values; the context is the node of `traced_calls`: format, shape, fill value.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from ...masked import torch_nodes
from ...storage.buffers import scalar_name, torch_dtype
from .traced_calls import node_of, tensor_of

__all__ = ["register_for_export", "traced_node", "traced_whole"]


def traced_node(t: Any) -> tuple[list[Any], Any]:
    """The stand-in of `torch_nodes`' function that takes a node apart, where a program is exported."""
    if torch_nodes.all_buffers is None:
        torch._dynamo.graph_break(msg="a Tensor as a node of a pytree\n  help: openwork.torch.register_for_export()")
    return node_of(t)


def traced_whole(buffers: Any, node: Any) -> Any:
    """The stand-in of `torch_nodes`' function that puts a node together."""
    if torch_nodes.all_buffers is None:
        torch._dynamo.graph_break(msg="a Tensor as a node of a pytree\n  help: openwork.torch.register_for_export()")
    return tensor_of(list(buffers), node)


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

    As nodes of torch's pytrees they have all their buffers as leaves then, in this process, where it was the values:
    functions of `torch.utils._pytree` such as `tree_map` see coordinates too, and torch.func's own transforms refuse
    them (those of `openwork.torch.func` do not). Call it where programs are exported, loaded and run.

    Cost: O(1).
    See also: with_values.

    Examples
    --------
    >>> import openwork.torch
    >>> openwork.torch.register_for_export()  # doctest: +SKIP
    """
    torch_nodes.all_buffers = torch_nodes.AllBuffers(node_of, tensor_of, _dumped, _loaded)
