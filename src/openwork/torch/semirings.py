"""Gradients of products over semirings: every product is written out, and torch reduces those of each element.

A minimum or maximum hands its gradient to the products that have it, in equal parts. Only a call whose operands are
recorded pays for it: time and memory of one number for each product, as many as a multiplication does.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ..compiler.semiring import Semiring
from ..errors import UnsupportedError
from ..ir.text import parse_expr
from ..ir.types import Type
from ..runtime.contraction.sparse import Term
from ..storage.buffers import length
from ..storage.specified import coordinates
from .permutation_gradient import structure
from .pointwise import evaluate

__all__ = ["by_products"]

REDUCTIONS = {"x + y": "sum", "x * y": "prod", "min(x, y)": "amin", "max(x, y)": "amax"}
"""What torch calls the sum of a semiring."""


def by_products(x: Term, y: Term, made: Term, semiring: Semiring) -> torch.Tensor:
    """The values of a contraction at the elements of `made`, its result; no letter goes that one term alone has.

    Raises UnsupportedError for a sum that torch cannot reduce by.
    """
    reduction = REDUCTIONS.get(semiring.add.operation)
    if reduction is None:
        raise UnsupportedError(
            f"a product over {semiring.name} has no gradient: its sum is {semiring.add.operation}"
            f"\n  supported: {', '.join(REDUCTIONS)}\n  help: detach() the operands"
        )
    first, second, places = _products(x, y, made)
    target, kind = made.storage.values, Type(made.storage.scalar)
    factors = {"x": x.storage.values[first].to(target.dtype), "y": y.storage.values[second].to(target.dtype)}
    products = evaluate(parse_expr(semiring.multiply, {"x": kind, "y": kind}), factors)
    products = torch.as_tensor(products, dtype=target.dtype).expand(len(places))
    start = torch.full((length(target),), semiring.add.identity_of(made.storage.scalar), dtype=target.dtype)
    return start.scatter_reduce(0, places, products, reduction)


def _products(x: Term, y: Term, made: Term) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For each product the places of its factors' values and of the element that it belongs to."""
    shared = [c for c in x.letters if c in y.letters]
    (at_x, leaf_x), (at_y, leaf_y), (at_made, leaf_made) = (_elements(t) for t in (x, y, made))
    keys_x, keys_y = (_keys(at, shared, x.extents, len(leaf)) for at, leaf in ((at_x, leaf_x), (at_y, leaf_y)))
    order = np.argsort(keys_y, kind="stable")
    begin, end = (np.searchsorted(keys_y[order], keys_x, side=side) for side in ("left", "right"))
    counts = end - begin
    first = np.repeat(np.arange(len(keys_x)), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[begin[first] + within]
    extents = {**x.extents, **y.extents}
    out = {c: at_x[c][first] if c in at_x else at_y[c][second] for c in made.letters}
    wanted = _keys(out, list(made.letters), extents, len(first))
    have = _keys(at_made, list(made.letters), extents, len(leaf_made))
    ranks = np.argsort(have, kind="stable")
    places = np.searchsorted(have[ranks], wanted).clip(max=max(len(have) - 1, 0))
    there = have[ranks[places]] == wanted if len(have) else np.zeros(len(wanted), np.bool_)
    parts = (leaf_x[first[there]], leaf_y[second[there]], leaf_made[ranks[places[there]]])
    a, b, c = (torch.from_numpy(np.ascontiguousarray(p)).to(torch.int64) for p in parts)
    return a, b, c


def _elements(t: Term) -> tuple[dict[str, np.ndarray], np.ndarray]:
    at, leaf = coordinates(structure(t.storage))
    return dict(zip(t.letters, at, strict=True)), leaf


def _keys(at: dict[str, np.ndarray], letters: list[str], extents: dict[str, int], count: int) -> np.ndarray:
    """A number for the coordinates of these letters, the same for the same."""
    if math.prod(extents[c] for c in letters) >= 2**62:
        raise UnsupportedError("a product over a semiring, of extents too large to number\n  help: detach() it")
    result = np.zeros(count, np.int64)
    for c in letters:
        result = result * extents[c] + at[c]
    return result
