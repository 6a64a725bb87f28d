"""The mixin of `MaskedTensor`: methods that are no operations of the namespace, and names of NumPy's and torch's.

Operations are methods by their blocks (`tensor.methods`). A name that no class has is, in this order: torch's method,
over torch buffers; an operation of the namespace that takes masked tensors; NumPy's function of that name; torch's,
where a block spells it, or any other method of torch's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..namespaces import NoAttribute
from ..ops.axes import axis_of, swapped_axes
from ..ops.products.matmul import matmul as product
from ..provided import provided
from ..storage.buffers import is_torch
from ..tables import MASKED, NUMPY, TORCH
from ..tensor.expression_graph import MATMUL
from ..tensor.lazy import defer, is_lazy
from ..tensor.numpy_names import by_numpys_arguments, standard_arguments
from ..tensor.one_library import in_library

if TYPE_CHECKING:
    from .tensor import MaskedTensor

reduce: Callable[..., MaskedTensor] = provided("masked reduce", __name__)
moved: Callable[..., MaskedTensor] = provided("masked moved", __name__)
mask_nan: Callable[..., MaskedTensor] = provided("masked mask_nan", __name__)
unique: Callable[..., MaskedTensor] = provided("masked unique", __name__)
nonzero: Callable[..., tuple[Any, ...]] = provided("masked coordinates", __name__)
item_at: Callable[..., MaskedTensor] = provided("masked item_at", __name__)
put = provided("masked put", __name__)
reshape: Callable[..., MaskedTensor] = provided("masked reshape", __name__)
transpose: Callable[..., MaskedTensor] = provided("masked transpose", __name__)
split: Callable[..., tuple[MaskedTensor, ...]] = provided("masked split", __name__)
matmul = provided("masked matmul", __name__)
bound = provided("masked torch method", __name__)
spelled = provided("masked spelled", __name__)


__all__ = ["Methods"]


def _me(x: Any) -> MaskedTensor:
    return cast("MaskedTensor", x)


def _sequence(values: tuple[Any, ...]) -> Any:
    """Numbers given one by one, or as one sequence."""
    return values[0] if len(values) == 1 and not isinstance(values[0], int | np.integer) else values


def _entries(method: str, entries: tuple[Any, ...], named: Any, name: str) -> tuple[Any, ...]:
    """What a method was given by place or by its name; TypeError for both or neither."""
    if (named is None) is not bool(entries):
        raise TypeError(f"{method}() {'got multiple values for' if entries else 'missing'} argument {name!r}")
    return entries or (named,)


class Methods:
    """The mixin of `MaskedTensor` that holds what needs coordinates. `dim` and `keepdim` are torch's names."""

    __slots__ = ()
    is_nested = False
    """What torch's modules ask of their arguments."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "__qualname__":  # as Tensor's: what torch.optim.SGD([m]) calls it
                return f"{type(self).__qualname__} m, whose leaf is m.values"
            found = None if name.startswith("_") else _named(self, name)
            if found is not None:
                return found
            raise NoAttribute(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

        def __matmul__(self, other: Any) -> MaskedTensor:

            return defer(MATMUL, "matmul", product, (self, other)) if is_lazy(other) else matmul(self, other)

        def __rmatmul__(self, other: Any) -> MaskedTensor:

            return defer(MATMUL, "matmul", product, (other, self)) if is_lazy(other) else matmul(other, self)

    def norm(
        self, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, p: Any = None, dim: Any = None,
        keepdim: bool | None = None, dtype: Any = None,
    ) -> MaskedTensor:  # fmt: skip
        """The vector norm of the specified elements; torch's `p`, `dim`, `keepdim`, `dtype` are taken too."""
        others = {"p": p, "dim": dim, "keepdim": keepdim, "dtype": dtype}
        standard = standard_arguments({key: value for key, value in others.items() if value is not None})
        if axis is not None and "axis" in standard:
            raise TypeError("norm() got multiple values for argument 'axis'")
        options = {"axis": axis, "keepdims": keepdims, "ord": standard.pop("p", ord), **standard}
        me, order = _me(self), options.pop("ord")
        options.pop("dtype", None)
        me = me if dtype is None else me.astype(dtype)
        return reduce("norm", me, ord=2 if order in (None, "fro") else order, **options)

    def count(self, axis: Any = None, *, dim: Any = None, keepdims: bool = False) -> MaskedTensor:
        """How many elements are specified, int64; never missing."""
        return reduce("count", _me(self), axis if dim is None else dim, keepdims)

    def mask_nan(self) -> MaskedTensor:
        """The elements that are not NaN; those that are become missing."""
        return mask_nan(_me(self))

    def unique(self) -> MaskedTensor:
        """The distinct specified elements in order, and one missing one behind them where any is missing."""

        return unique(_me(self))

    def nonzero(self) -> tuple[Any, ...]:
        """The coordinates, one array for each dimension, of the specified elements that are not zero, row-major."""

        return nonzero(_me(self))

    def __getitem__(self, key: Any) -> MaskedTensor:

        return item_at(_me(self), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set elements; None makes them missing. The tensor gets buffers of its own."""

        me = _me(self)
        me._tensor = put(me, key, value)._tensor

    def reshape(self, *extents: Any, shape: Any = None) -> MaskedTensor:
        """The elements in another shape, row-major: a sequence, its extents one by one, or `shape=`."""
        return reshape(_me(self), _sequence(_entries("reshape", extents, shape, "shape")))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> MaskedTensor:
        """The dimensions from `start_dim` to `end_dim` as one, row-major; all without."""
        shape = _me(self).shape
        first, last = (axis_of(dim, max(len(shape), 1), "flatten") for dim in (start_dim, end_dim))
        return self.reshape(_flat(shape, first, last))

    def transpose(self, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> MaskedTensor:
        """The dimensions in another order, reversed without one; two integers are exchanged: see `Tensor.transpose`."""

        me = _me(self)
        axes = (*axes, *(k for k in (dim0, dim1) if k is not None))
        if len(axes) == 2:
            axes = tuple(swapped_axes(me.ndim, *axes, "transpose"))
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return transpose(me, order or None)

    def permute(self, *axes: Any, dims: Any = None) -> MaskedTensor:
        """The dimensions in another order: a sequence, its entries, or `dims=`."""
        return self.transpose(tuple(_sequence(_entries("permute", axes, dims, "dims"))))

    @property
    def T(self) -> MaskedTensor:
        """The transpose, over the same buffers."""
        return self.transpose()

    @property
    def mT(self) -> MaskedTensor:
        """The transpose of the last two dimensions, over the same buffers."""
        n = _me(self).ndim
        return self.transpose((*range(n - 2), n - 1, n - 2))

    def expand(self, *sizes: Any) -> MaskedTensor:
        """Repeated to a shape, as NumPy broadcasts; -1 keeps an extent."""
        wanted, shape = tuple(_sequence(sizes)), _me(self).shape
        more = len(wanted) - len(shape)
        return moved("broadcast_to", _me(self), tuple(shape[d - more] if n == -1 else n for d, n in enumerate(wanted)))

    def gather(self, axis: int = -1, indices: Any = None, *, dim: int | None = None, index: Any = None) -> MaskedTensor:
        """For each place of `indices` the element whose coordinate along `axis` stands there."""
        places = indices if index is None else index
        return moved("take_along_axis", _me(self), places, axis=axis if dim is None else dim)

    def split(self, sizes: Any, axis: int = 0, *, dim: int | None = None) -> tuple[MaskedTensor, ...]:
        """The parts along an axis, of one size or of the sizes given."""

        return split(_me(self), sizes, axis if dim is None else dim)


def _flat(shape: tuple[int, ...], first: int, last: int) -> tuple[int, ...]:
    """The shape without elements of which some dimensions are one."""
    return (*shape[:first], int(np.prod(shape[first : last + 1])), *shape[last + 1 :])


def _named(m: Any, name: str) -> Callable[..., Any] | None:
    """The method of a name that no class has; None where there is none."""
    if is_torch(m.values):
        method: Callable[..., Any] | None = bound(m, name)
        if method is not None:
            return method
    if name in MASKED:
        return lambda *args, **kwargs: _operation(name, (m, *args), kwargs)
    if NUMPY.get(name) in MASKED and callable(getattr(np, name, None)):
        return lambda *args, **kwargs: getattr(np, name)(m, *args, **standard_arguments(kwargs))
    if TORCH.get(name) in MASKED:
        return partial(spelled, name, m)
    base = getattr(m, name[:-1], None) if name.endswith("_") and not name.endswith("__") else None
    if callable(base):
        return lambda *args, **kwargs: m._take_over(base(*args, **kwargs), name)
    return _of_torch(m, name) if not is_torch(m.values) else None


def _of_torch(m: Any, name: str) -> Callable[..., Any] | None:
    """torch's method of a masked tensor over NumPy buffers: computed over torch's, its results over NumPy's."""
    try:
        method = bound(m, name)
    except ModuleNotFoundError:
        return None
    return None if method is None else lambda *args, **kwargs: _in_numpy(method(*args, **kwargs))


def _in_numpy(x: Any) -> Any:
    """The masked tensors of a result, in a tuple too, over NumPy buffers; those changed in place stay what they are."""
    if hasattr(x, "_tensor"):
        me = _me(x)
        me._tensor = in_library(me._tensor, np, "a method of torch's")
    return type(x)(map(_in_numpy, x)) if isinstance(x, tuple) else x


def _operation(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the namespace, with NumPy's arguments by place where it has none there."""
    function = getattr(sys.modules[__name__.partition(".")[0]], name)
    return by_numpys_arguments(function, name, args, standard_arguments(kwargs))
