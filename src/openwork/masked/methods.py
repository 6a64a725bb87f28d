"""The mixin of `MaskedTensor`: its reductions, products, orders and structural operations as methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..late import late
from ..ops.axes import swapped_axes
from ..storage.buffers import is_torch

if TYPE_CHECKING:
    from ..ops.reductions.order_statistics import TopK
    from .tensor import MaskedTensor

if TYPE_CHECKING:
    from .order import argsort, cumulative, mask_nan, median, nonzero, sort, topk, unique
    from .products import log_softmax, matmul, softmax
    from .reductions import arg_reduce, reduce
    from .shaping import item_at, moved, put, reshape, split, transpose
    from .torch_functions import method as torch_method
else:
    reduce = late("masked.reductions", "reduce")
    moved = late("masked.shaping", "moved")
    arg_reduce = late("masked.reductions", "arg_reduce")
    cumulative = late("masked.order", "cumulative")
    sort = late("masked.order", "sort")
    argsort = late("masked.order", "argsort")
    topk = late("masked.order", "topk")
    median = late("masked.order", "median")
    mask_nan = late("masked.order", "mask_nan")
    unique = late("masked.order", "unique")
    nonzero = late("masked.order", "nonzero")
    item_at = late("masked.shaping", "item_at")
    put = late("masked.shaping", "put")
    reshape = late("masked.shaping", "reshape")
    transpose = late("masked.shaping", "transpose")
    split = late("masked.shaping", "split")
    matmul = late("masked.products", "matmul")
    softmax = late("masked.products", "softmax")
    log_softmax = late("masked.products", "log_softmax")
    torch_method = late("masked.torch_functions", "method")


__all__ = ["Methods"]

F = TypeVar("F", bound=Callable[..., Any])


def _me(x: Any) -> MaskedTensor:
    return cast("MaskedTensor", x)


def _reduce(op: str, m: Any, axis: Any, dim: Any, keep: bool, **options: Any) -> MaskedTensor:

    return reduce(op, _me(m), axis if dim is None else dim, keep, **options)


_TORCHS = frozenset(("keepdim", "unbiased", "other"))
_STANDARDS = frozenset(("axis", "keepdims"))
_OTHERWISE = frozenset(("max", "min", "var", "std"))


def _as_torch_too(method: F) -> F:
    """A method that is torch's on torch buffers, as those of Tensor are: see `tensor.operators`."""
    name = method.__name__
    differs = name in _OTHERWISE

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        theirs = len(args) > 1 or not _TORCHS.isdisjoint(options) or (differs and _STANDARDS.isdisjoint(options))
        if theirs and is_torch(self.values):
            return torch_method(name)(self, *args, **options)
        return method(self, *args, **options)

    return cast("F", call)


class Methods:
    """The mixin of `MaskedTensor` that holds what needs coordinates. `dim` and `keepdim` are torch's names."""

    __slots__ = ()

    @_as_torch_too
    def sum(self, axis: Any = None, *, dim: Any = None, dtype: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The sum of the specified elements over `axis`, all dimensions without; missing where there are none."""
        return _reduce("sum", self, axis, dim, keepdims, dtype=dtype)

    @_as_torch_too
    def prod(self, axis: Any = None, *, dim: Any = None, dtype: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The product of the specified elements."""
        return _reduce("prod", self, axis, dim, keepdims, dtype=dtype)

    @_as_torch_too
    def mean(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The mean of the specified elements, each counted once."""
        return _reduce("mean", self, axis, dim, keepdims)

    @_as_torch_too
    def amin(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The least specified element."""
        return _reduce("min", self, axis, dim, keepdims)

    @_as_torch_too
    def amax(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The largest specified element."""
        return _reduce("max", self, axis, dim, keepdims)

    @_as_torch_too
    def min(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """`amin`; over torch buffers torch's, with the places too where a dimension is named, but for `axis=`."""
        return _reduce("min", self, axis, dim, keepdims)

    @_as_torch_too
    def max(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """`amax`; see `min`."""
        return _reduce("max", self, axis, dim, keepdims)

    @_as_torch_too
    def var(
        self, axis: Any = None, *, dim: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> MaskedTensor:
        """The variance of the specified elements; missing where there are no more than `correction`.

        Over torch buffers `correction` is 1 without, as torch has it, unless `axis=` or `keepdims=` says otherwise.
        """
        return _reduce("var", self, axis, dim, keepdims, correction=correction)

    @_as_torch_too
    def std(
        self, axis: Any = None, *, dim: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> MaskedTensor:
        """The standard deviation of the specified elements; see `var`."""
        return _reduce("std", self, axis, dim, keepdims, correction=correction)

    @_as_torch_too
    def norm(self, ord: float = 2, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The vector norm of the specified elements."""
        return _reduce("norm", self, axis, dim, keepdims, ord=ord)

    @_as_torch_too
    def any(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """Whether any specified element is true."""
        return _reduce("any", self, axis, dim, keepdims)

    @_as_torch_too
    def all(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """Whether all specified elements are true."""
        return _reduce("all", self, axis, dim, keepdims)

    @_as_torch_too
    def logsumexp(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """The logarithm of the sum of exponentials of the specified elements, without overflow."""
        return _reduce("logsumexp", self, axis, dim, keepdims)

    def count(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """How many elements are specified, int64; never missing."""
        return _reduce("count", self, axis, dim, keepdims)

    @_as_torch_too
    def argmin(self, axis: int | None = None, *, dim: int | None = None, keepdims: bool = False) -> MaskedTensor:
        """Where the first least specified element is."""

        return arg_reduce("min", _me(self), axis if dim is None else dim, keepdims)

    @_as_torch_too
    def argmax(self, axis: int | None = None, *, dim: int | None = None, keepdims: bool = False) -> MaskedTensor:
        """Where the first largest specified element is."""

        return arg_reduce("max", _me(self), axis if dim is None else dim, keepdims)

    def cumsum(self, axis: int | None = None, *, dim: int | None = None, dtype: Any = None) -> MaskedTensor:
        """Running sums along an axis, past missing elements, which stay missing; in `dtype` where one is given."""
        me = _me(self) if dtype is None else _me(self).astype(dtype)
        return cumulative("sum", me, axis if dim is None else dim)

    def cumprod(self, axis: int | None = None, *, dim: int | None = None, dtype: Any = None) -> MaskedTensor:
        """Running products along an axis, past missing elements, which stay missing; in `dtype` where one is given."""
        me = _me(self) if dtype is None else _me(self).astype(dtype)
        return cumulative("prod", me, axis if dim is None else dim)

    def sort(
        self, axis: int = -1, *, dim: int | None = None, descending: bool = False, stable: bool = True
    ) -> MaskedTensor:
        """Sorted along an axis, missing elements last; always stable."""

        return sort(_me(self), axis if dim is None else dim, descending)

    def argsort(
        self, axis: int = -1, *, dim: int | None = None, descending: bool = False, stable: bool = True
    ) -> MaskedTensor:
        """Where the elements of `sort` stand, int64; missing where these are."""

        return argsort(_me(self), axis if dim is None else dim, descending)

    def topk(self, k: int, axis: int = -1, *, dim: int | None = None, largest: bool = True) -> TopK[MaskedTensor]:
        """The `k` largest or least elements along an axis, in order, and their places; missing where too few."""

        return topk(_me(self), k, axis if dim is None else dim, largest)

    def median(self, axis: int | None = None, *, dim: int | None = None, keepdims: bool = False) -> MaskedTensor:
        """The median of the specified elements: the mean of the middle two for an even number."""

        return median(_me(self), axis if dim is None else dim, keepdims)

    def mask_nan(self) -> MaskedTensor:
        """The elements that are not NaN; those that are become missing."""
        return mask_nan(_me(self))

    def unique(self) -> MaskedTensor:
        """The distinct specified elements in order, and one missing one behind them where any is missing."""

        return unique(_me(self))

    def nonzero(self) -> tuple[Any, ...]:
        """Coordinates, one array for each dimension, of the specified elements that are not zero, row-major."""

        return nonzero(_me(self))

    def __getitem__(self, key: Any) -> MaskedTensor:

        return item_at(_me(self), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set elements; None makes them missing. The tensor gets buffers of its own."""

        me = _me(self)
        me._tensor = put(me, key, value)._tensor

    def reshape(self, *shape: Any) -> MaskedTensor:
        """The elements in another shape, row-major."""

        return reshape(_me(self), shape[0] if len(shape) == 1 else shape)

    def flatten(self) -> MaskedTensor:
        """The elements in one dimension, row-major."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> MaskedTensor:
        """The dimensions in another order, reversed without one; two integers are exchanged: see `Tensor.transpose`."""

        me = _me(self)
        if len(axes) == 2:
            axes = tuple(swapped_axes(me.ndim, *axes, "transpose"))
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return transpose(me, order or None)

    def permute(self, *axes: Any) -> MaskedTensor:
        """The dimensions in another order: a sequence, or its entries."""
        return self.transpose(tuple(axes[0]) if len(axes) == 1 and not isinstance(axes[0], int) else axes)

    @property
    def T(self) -> MaskedTensor:
        """The transpose, over the same buffers."""
        return self.transpose()

    @property
    def mT(self) -> MaskedTensor:
        """The transpose of the last two dimensions, over the same buffers."""
        n = _me(self).ndim
        return self.transpose((*range(n - 2), n - 1, n - 2))

    def flip(self, axis: Any = None) -> MaskedTensor:
        """The elements in reverse order along `axis`, all without."""
        return moved("flip", _me(self), axis=axis)

    def roll(self, shift: Any, axis: Any = None) -> MaskedTensor:
        """The elements moved along `axis`, those that leave coming in on the other side."""
        return moved("roll", _me(self), shift, axis=axis)

    def squeeze(self, axis: Any = None) -> MaskedTensor:
        """Without the dimensions of extent 1, or those of `axis`."""
        return moved("squeeze", _me(self), axis)

    def unsqueeze(self, axis: int) -> MaskedTensor:
        """With a dimension of extent 1 more."""
        return moved("expand_dims", _me(self), axis=axis)

    def broadcast_to(self, shape: Any) -> MaskedTensor:
        """Repeated to a shape, as NumPy broadcasts."""
        return moved("broadcast_to", _me(self), tuple(shape))

    expand = broadcast_to

    def take(self, indices: Any, axis: int | None = None) -> MaskedTensor:
        """The elements at `indices` along `axis`."""
        return moved("take", _me(self), indices, axis=axis)

    def gather(self, axis: int, indices: Any) -> MaskedTensor:
        """For each place of `indices` the element whose coordinate along `axis` stands there."""
        return moved("take_along_axis", _me(self), indices, axis=axis)

    def tril(self, k: int = 0) -> MaskedTensor:
        """Without what lies above the diagonal `k`, which is missing then."""
        return moved("tril", _me(self), k=k)

    def triu(self, k: int = 0) -> MaskedTensor:
        """Without what lies below the diagonal `k`, which is missing then."""
        return moved("triu", _me(self), k=k)

    def split(self, sizes: Any, axis: int = 0) -> tuple[MaskedTensor, ...]:
        """Parts along an axis, of one size or of the sizes given."""

        return split(_me(self), sizes, axis)

    if not TYPE_CHECKING:

        def __matmul__(self, other: Any) -> MaskedTensor:

            return matmul(self, other)

        def __rmatmul__(self, other: Any) -> MaskedTensor:

            return matmul(other, self)

    def softmax(self, axis: int = -1, *, dim: int | None = None) -> MaskedTensor:
        """Exponentials along `axis`, divided by their sum; a row without specified elements stays missing."""

        return softmax(_me(self), axis if dim is None else dim)

    def log_softmax(self, axis: int = -1, *, dim: int | None = None) -> MaskedTensor:
        """The logarithm of `softmax`."""

        return log_softmax(_me(self), axis if dim is None else dim)
