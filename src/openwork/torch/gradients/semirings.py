"""Gradients of products over semirings: all scalar products are enumerated, and torch reduces those of each element.

A minimum or maximum hands its gradient to the products that have it, in equal parts. Only a call whose operands are
recorded pays for it: time and memory of one number for each product, as many as a multiplication does.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ...compiler.semiring import Semiring
from ...errors import UnsupportedError
from ...ir.text import parse_expr
from ...ir.types import Type
from ...runtime.contraction.sparse import Term
from ...storage.buffers import length
from ...storage.specified import coordinates
from ...storage.storage import structure_of
from .pointwise import evaluate

__all__ = ["by_products"]

REDUCTIONS = {"x + y": "sum", "x * y": "prod", "min(x, y)": "amin", "max(x, y)": "amax"}
"""What torch calls the sum of a semiring."""


def by_products(x: Term, y: Term, result: Term, semiring: Semiring) -> torch.Tensor:
    """The values of a contraction at the elements of its `result`; letters of one term alone are letters of the result.

    Raises UnsupportedError for a sum that torch cannot reduce by.
    """
    reduction = REDUCTIONS.get(semiring.add.operation)
    if reduction is None:
        raise UnsupportedError(
            f"a product over {semiring.name} has no gradient: its sum is {semiring.add.operation}"
            f"\n  supported: {', '.join(REDUCTIONS)}\n  help: detach() the operands"
        )
    first, second, element_of = _products(x, y, result)
    target, type = result.storage.values, Type(result.storage.scalar)
    factors = {"x": x.storage.values[first].to(target.dtype), "y": y.storage.values[second].to(target.dtype)}
    products = evaluate(parse_expr(semiring.multiply, {"x": type, "y": type}), factors)
    products = torch.as_tensor(products, dtype=target.dtype).expand(len(element_of))
    identity = torch.full((length(target),), semiring.add.identity_of(result.storage.scalar), dtype=target.dtype)
    return identity.scatter_reduce(0, element_of, products, reduction)


def _products(x: Term, y: Term, result: Term) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For each scalar product the positions of its factors' values and of the result's element."""
    contracted = [c for c in x.letters if c in y.letters]
    (at_x, leaf_x), (at_y, leaf_y), (at_result, leaf_result) = (_coordinates_of(t) for t in (x, y, result))
    keys_x, keys_y = (
        _linear_keys(at, contracted, x.extents, len(leaf)) for at, leaf in ((at_x, leaf_x), (at_y, leaf_y))
    )
    order = np.argsort(keys_y, kind="stable")
    begin, end = (np.searchsorted(keys_y[order], keys_x, side=side) for side in ("left", "right"))
    counts = end - begin
    first = np.repeat(np.arange(len(keys_x)), counts)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[begin[first] + offset]
    extents = {**x.extents, **y.extents}
    out = {c: at_x[c][first] if c in at_x else at_y[c][second] for c in result.letters}
    product_keys = _linear_keys(out, list(result.letters), extents, len(first))
    result_keys = _linear_keys(at_result, list(result.letters), extents, len(leaf_result))
    ranks = np.argsort(result_keys, kind="stable")
    slots = np.searchsorted(result_keys[ranks], product_keys).clip(max=max(len(result_keys) - 1, 0))
    is_stored = result_keys[ranks[slots]] == product_keys if len(result_keys) else np.zeros(len(product_keys), np.bool_)
    parts = (leaf_x[first[is_stored]], leaf_y[second[is_stored]], leaf_result[ranks[slots[is_stored]]])
    a, b, c = (torch.from_numpy(np.ascontiguousarray(p)).to(torch.int64) for p in parts)
    return a, b, c


def _coordinates_of(t: Term) -> tuple[dict[str, np.ndarray], np.ndarray]:
    crd, leaf = coordinates(structure_of(t.storage))
    return dict(zip(t.letters, crd, strict=True)), leaf


def _linear_keys(crd: dict[str, np.ndarray], letters: list[str], extents: dict[str, int], count: int) -> np.ndarray:
    """The row-major linear index of the coordinates of these letters."""
    if math.prod(extents[c] for c in letters) >= 2**62:
        raise UnsupportedError("a product over a semiring, of extents too large to number\n  help: detach() it")
    result = np.zeros(count, np.int64)
    for c in letters:
        result = result * extents[c] + crd[c]
    return result
