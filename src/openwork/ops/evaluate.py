"""Index notation as a function: evaluate a statement with one sparse operand on given operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.index import Assignment
from ..storage.buffers import is_array, library_of
from .drive import contract
from .promote import promote
from .strided import strided

__all__ = ["evaluate"]


def evaluate(stmt: Assignment, operands: tuple[Any, ...]) -> Any:
    """The left side of `stmt`, a dense array, from its right side's operands in order of appearance."""
    from .tensor import Tensor

    if len(operands) != len(stmt.tensors):
        raise ShapeError(f"{stmt} has operands {', '.join(stmt.tensors)}; got {len(operands)} values")
    values: dict[str, Any] = {}
    like: Any = None
    for name, x in zip(stmt.tensors, operands, strict=True):
        if isinstance(x, Tensor) and not x.format.is_dense:
            values[name] = x._storage
        else:
            dense = x.to_dense() if isinstance(x, Tensor) else x if is_array(x) else np.asarray(x)
            values[name] = strided(dense)
            like = dense if like is None else like
    if like is None:
        like = next(iter(values.values())).values
    scalar = promote(tuple(v.scalar for v in values.values()), library_of(like))
    return contract(stmt, values, scalar, like)
