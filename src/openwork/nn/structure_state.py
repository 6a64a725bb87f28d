"""Format, shape and fill value of a weight <-> a tensor of bytes, and the buffers of a state dict -> the weight again.

A state dict holds a weight as its values, its `pos` and `crd` by level, and these bytes. All are torch tensors, so that
whatever keeps state dicts (`torch.save`, safetensors) keeps them, and the weight is rebuilt from them alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .. import InvariantError, Tensor, assemble
from ..storage.storage import Storage

__all__ = ["STATE", "bytes_of", "index_buffers", "is_sparse_state", "weight_of"]

STATE = "_extra_state"
"""What torch calls the entry of a state dict that a module's `get_extra_state` gives."""


def bytes_of(s: Storage) -> torch.Tensor:
    """Shape, format and fill value of a storage as a tensor of bytes."""
    fill = str(s.fill_value) if isinstance(s.fill_value, complex) else s.fill_value
    text = json.dumps({"shape": s.shape, "format": s.format.text, "fill_value": fill})
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def index_buffers(s: Storage) -> Iterator[tuple[str, torch.Tensor]]:
    """The index buffers of a storage, by their names in a state dict: `pos_1`, `crd_1`."""
    for group in ("pos", "crd"):
        for level, buffer in enumerate(getattr(s, group)):
            if buffer is not None:
                yield f"{group}_{level}", buffer


def is_sparse_state(state: Mapping[str, Any], prefix: str) -> bool:
    """Whether a state dict has a sparse weight at this prefix."""
    kept = state.get(f"{prefix}{STATE}")
    return f"{prefix}values" in state and isinstance(kept, torch.Tensor) and kept.dtype == torch.uint8


def weight_of(state: Mapping[str, Any], prefix: str) -> Tensor:
    """The weight at a prefix of a state dict: a Tensor over copies of its buffers.

    Raises InvariantError where the entries are not those of a tensor.
    """
    if not is_sparse_state(state, prefix):
        raise InvariantError(
            f"a state dict without a sparse weight at {prefix!r}\n  expected: {prefix}values and {prefix}{STATE}"
            "\n  got: " + (", ".join(k for k in state if k.startswith(prefix)) or "nothing")
        )
    try:
        kept = json.loads(bytes(state[f"{prefix}{STATE}"].tolist()))
        shape, format, fill = kept["shape"], kept["format"], kept["fill_value"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvariantError(f"a state dict's {prefix}{STATE}\n  expected: shape, format and fill value") from error
    groups: dict[str, dict[int, torch.Tensor]] = {"pos": {}, "crd": {}}
    for name, buffer in state.items():
        kind, _, level = name.removeprefix(prefix).partition("_")
        if name.startswith(prefix) and kind in groups and level.isdecimal():
            groups[kind][int(level)] = buffer.detach().clone()
    values = state[f"{prefix}values"].detach().clone()
    fill = complex(fill) if isinstance(fill, str) else fill
    return assemble(format, tuple(shape), pos=groups["pos"], crd=groups["crd"], values=values, fill_value=fill)
