"""A large tensor and a reduction of its elements -> the same, range by range of the outermost dimension.

A reduction that computes something of each element first, such as a norm, has it of one range at a time in memory, and
so has one whose result is sparse, of which coordinates are computed. Results of ranges are concatenated where the
outermost dimension stays, and else folded, those of like size first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from ...runtime.outer_ranges import outer_ranges, ranges_of
from ...tensor.tensor import Tensor
from ..axes import axes_of
from ..stored_fibres import in_kept_format

__all__ = ["by_ranges", "folded", "folds_ranges", "keeps_ranges", "merged_moments", "parts_of"]

T = TypeVar("T")


def folds_ranges(t: Tensor, axes: tuple[int, ...]) -> bool:
    """Whether a tensor is so large that it is walked in ranges of a dimension that the axes reduce."""
    found = ranges_of(t._storage)
    return found is not None and found[0] in axes


def keeps_ranges(t: Tensor, axes: tuple[int, ...]) -> bool:
    """Whether a tensor is so large that it is walked in ranges of the one dimension that the axes leave."""
    found = ranges_of(t._storage)
    return found is not None and set(range(t.ndim)).difference(axes) == {found[0]}


def parts_of(t: Tensor) -> Iterator[Tensor]:
    """The ranges of the outermost dimension of a tensor for which `ranges_of` has some, else the tensor."""
    return (Tensor._from_storage(s) for _, _, s in outer_ranges(t._storage))


def by_ranges(
    t: Tensor, axis: Any, keepdims: bool, fold: Callable[..., Any] | None, reduction: Callable[[Tensor], Tensor]
) -> Tensor:
    """`reduction(t)` over the axes, range by range where `t` is large.

    fold : NumPy's function of the results of two ranges that gives that of both; None where the outermost dimension
        is not reduced
    """
    found = ranges_of(t._storage) if type(t) is Tensor else None
    if found is None:
        return reduction(t)
    axes = tuple(range(t.ndim)) if axis is None else axes_of(axis, t.ndim, "reduce")
    parts = (x.to_numpy() if x.format.is_dense else x for x in map(reduction, parts_of(t)))
    if found[0] in axes:
        assert fold is not None
        out = folded(parts, lambda one, other: _fold(fold, one, other), _size)
    else:
        kept = found[0] if keepdims else found[0] - sum(a < found[0] for a in axes)
        out = np.concatenate(list(parts), axis=kept)
    return in_kept_format(out, t, axes, keepdims) if isinstance(out, Tensor) else Tensor._from_dense(np.asarray(out))


def _fold(fold: Callable[..., Any], one: Any, other: Any) -> Any:
    return fold(one, other) if isinstance(one, Tensor) else fold(one, other, dtype=one.dtype)


def _size(x: Any) -> int:
    return int(x.nse if isinstance(x, Tensor) else 0)


def folded(parts: Iterable[T], fold: Callable[[T, T], T], size: Callable[[T], int]) -> T:
    """All parts folded, each with one that is about as large: of results that grow none is merged with many small."""
    stack: list[T] = []
    for part in parts:
        stack.append(part)
        while len(stack) > 1 and size(stack[-2]) <= 2 * size(stack[-1]):
            last = stack.pop()
            stack[-1] = fold(stack[-1], last)
    while len(stack) > 1:
        last = stack.pop()
        stack[-1] = fold(stack[-1], last)
    return stack[0]


Moments = tuple[Any, Any, Any]


def merged_moments(parts: Iterable[Moments]) -> Moments:
    """Counts, means and sums of squared distances from these, of parts -> those of all.

    Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
    """

    def merged(one: Moments, other: Moments) -> Moments:
        (n, mean, squares), (m, other_mean, other_squares) = one, other
        total = n + m
        share, delta = m / np.maximum(total, 1), other_mean - mean
        return total, mean + delta * share, squares + other_squares + abs(delta) ** 2 * (n * share)

    with np.errstate(all="ignore"):
        return folded(parts, merged, lambda x: _size(x[2]))
