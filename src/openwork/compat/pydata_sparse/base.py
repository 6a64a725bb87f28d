"""pydata/sparse's array over a Tensor: its spelling and its rules for results in front, openwork's operations behind.

An array holds the buffers that pydata/sparse's attributes name; `A.tensor` is a Tensor over the same values. What an
operation gives is an array of the operands' class: canonical, with no element stored that equals the fill value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as scipys
from numpy.lib.mixins import NDArrayOperatorsMixin

import openwork as ow

from ... import Tensor
from ...integers import common_shape
from .buffers import axes_of

__all__ = ["CLASSES", "SparseArray", "class_of", "elemwise", "is_sparse", "store", "unwrapped", "wrapped"]

CLASSES: dict[str, Any] = {}
"""The classes by format: coo, gcxs, dok, csr, csc."""


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array of this module or of SciPy."""
    return isinstance(x, SparseArray) or bool(scipys.issparse(x))


def unwrapped(x: Any) -> Any:
    """The Tensor of a sparse array, also inside of lists and tuples."""
    if isinstance(x, SparseArray):
        return x.tensor
    if scipys.issparse(x):
        return ow.asarray(x)
    return type(x)(unwrapped(y) for y in x) if type(x) in (list, tuple) else x


def wrapped(found: Any, kind: Any, like: Any = None) -> Any:
    """The sparse array of class `kind` for a Tensor, also inside of tuples and lists; anything else as it is."""
    if isinstance(found, Tensor):
        return kind._of(CLASSES["coo"]._of_tensor(found), like)
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(*(wrapped(y, kind, like) for y in found))
    return type(found)(wrapped(y, kind, like) for y in found) if type(found) in (list, tuple) else found


def class_of(operands: Any, mixed: str = "coo") -> Any:
    """The class of a result: that of all sparse operands, or the one called `mixed`."""
    kinds = {type(x) for x in operands if isinstance(x, SparseArray)}
    return kinds.pop() if len(kinds) == 1 else CLASSES[mixed]


def _like(operands: Any) -> Any:
    return next((x for x in operands if isinstance(x, SparseArray)), None)


def _is_operand(x: Any) -> bool:
    return is_sparse(x) or isinstance(x, np.ndarray) or np.isscalar(x) or isinstance(x, Tensor)


def elemwise(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`func` of every element, with broadcasting; dense operands only where one fill value comes out."""
    if not any(is_sparse(x) for x in args):
        raise ValueError(f"None of the args is sparse: {args}")
    if not all(_is_operand(x) for x in args):
        return NotImplemented
    kind, like = class_of(args), _like(args)
    with np.errstate(all="ignore"):
        found = func(*map(unwrapped, args), **kwargs)
        if any(isinstance(x, np.ndarray) and x.ndim for x in args):
            found = _uniform(found, func, args, kwargs)
    return wrapped(found, kind, like)


def _uniform(found: Any, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """A result of sparse and dense operands over its fill value. Raises ValueError where that differs by place."""
    fills = np.asarray(func(*(x if isinstance(x, np.ndarray) else _fill(x) for x in args), **kwargs))
    shape = common_shape("", [x.shape for x in args if isinstance(x, np.ndarray)])
    uniform = not fills.size or _equal(fills, fills.flat[0])
    if not uniform and shape != found.shape:
        raise ValueError("Performing a mixed sparse-dense operation that would result in a dense array.")
    keeps = not (fills.size and uniform) or _equal(fills.flat[0], getattr(found, "fill_value", 0))
    if isinstance(found, Tensor) and not found.format.is_dense and keeps:
        return found
    dense = found.to_numpy() if isinstance(found, Tensor) else np.asarray(found)
    return ow.asarray(dense, format="coo", fill_value=fills.flat[0].item() if fills.size and uniform else 0)


def _equal(a: Any, b: Any) -> bool:
    """Whether elements are equal: NaN is NaN, and -0.0 is 0.0, since a row of signs makes both of an unstored 0."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _fill(x: Any) -> Any:
    return x.fill_value if isinstance(x, SparseArray) else x.dtype.type(0) if scipys.issparse(x) else x


def store(found: Any, out: Any) -> Any:
    """A result put into `out=`, an array of this module."""
    target = out[0] if isinstance(out, tuple) else out
    if target.shape != found.shape:
        raise ValueError(f"non-broadcastable output operand with shape {target.shape}: the result has {found.shape}")
    if not np.can_cast(found.dtype, target.dtype, "same_kind"):
        raise TypeError(f"cannot cast the output from {found.dtype} to {target.dtype}")
    target._take(target._of(found.astype(target.dtype).tocoo(), target))
    return target


class SparseArray(NDArrayOperatorsMixin):
    """The base of the formats; no array is of this class itself."""

    format: ClassVar[str] = ""
    __array_priority__ = 12
    shape: tuple[int, ...]
    fill_value: Any
    data: Any
    tensor: Any
    _of: ClassVar[Callable[..., Any]]
    tocoo: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.format = cls.__name__.lower()
        CLASSES[cls.format] = cls

    def __tensor__(self) -> Tensor:
        """What `openwork.asarray` takes of it."""
        tensor: Tensor = self.tensor
        return tensor

    def _take(self, other: Any) -> None:
        """Become another array of this class."""
        self.__dict__ = other.__dict__.copy()

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """How many elements are stored."""
        return len(self.data)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def density(self) -> Any:
        """Stored elements per element."""
        with np.errstate(invalid="ignore"):
            return np.float64(self.nnz) / np.float64(self.size)

    @property
    def device(self) -> str:
        """Where the buffers are."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The array itself: pydata/sparse knows no device but the CPU."""
        if device != "cpu":
            raise ValueError("Only `device='cpu'` is supported.")
        return self

    def todense(self) -> Any:
        """The dense NumPy array."""
        dense = self.tensor.to_numpy()
        return dense.copy() if not dense.flags.owndata else dense

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: shape={self.shape!s}, dtype={self.dtype!s}, nnz={self.nnz:d}, "
            f"fill_value={self.fill_value!s}>"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Cannot convert a sparse array to dense automatically. To manually densify, use the todense method."
        )

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """This module."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f'"{api_version}" Array API version not supported.')
        return CLASSES["module"]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if out is not None and not all(isinstance(x, SparseArray) for x in out):
            return NotImplemented
        if ufunc.signature is not None:
            found = self.__array_function__(ufunc, (), inputs, kwargs)
        else:
            found = elemwise(ufunc if method == "__call__" else getattr(ufunc, method), *inputs, **kwargs)
        return found if out is None or found is NotImplemented else store(found, out)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if getattr(func, "__module__", "numpy") in (None, "numpy"):
            ours = getattr(CLASSES["module"], func.__name__, None)
            if ours is not None:
                return ours(*args, **kwargs)
        plain = {key: unwrapped(value) for key, value in kwargs.items()}
        return wrapped(func(*map(unwrapped, args), **plain), type(self), self)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(CLASSES["module"], name)(self, *args, **kwargs)

    def _number(self, kind: Any) -> Any:
        if self.shape:
            raise ValueError(f"{kind} can be computed for arrays of one element and no dimension only")
        return kind(self.todense()[()])

    def __bool__(self) -> bool:
        return bool(self._number(bool))

    def __float__(self) -> float:
        return float(self._number(float))

    def __int__(self) -> int:
        return int(self._number(int))

    __index__ = __int__

    def __complex__(self) -> complex:
        return complex(self._number(complex))

    def reduce(self, method: Any, axis: Any = (0,), keepdims: bool = False, **kwargs: Any) -> Any:
        """A ufunc's reduction over axes."""
        axes = axes_of(axis, self.ndim)
        return wrapped(method.reduce(self.tensor, axis=axes, keepdims=keepdims, **kwargs), type(self), self)

    def sum(self, axis: Any = None, keepdims: bool = False, dtype: Any = None, out: Any = None) -> Any:
        """The sum over axes."""
        return self._reduced("sum", axis, keepdims, out, dtype=dtype)

    def prod(self, axis: Any = None, keepdims: bool = False, dtype: Any = None, out: Any = None) -> Any:
        """The product over axes."""
        return self._reduced("prod", axis, keepdims, out, dtype=dtype)

    def mean(self, axis: Any = None, keepdims: bool = False, dtype: Any = None, out: Any = None) -> Any:
        """The mean over axes."""
        return self._reduced("mean", axis, keepdims, out, dtype=dtype)

    def max(self, axis: Any = None, keepdims: bool = False, out: Any = None) -> Any:
        """The largest over axes."""
        return self._reduced("max", axis, keepdims, out)

    def min(self, axis: Any = None, keepdims: bool = False, out: Any = None) -> Any:
        """The smallest over axes."""
        return self._reduced("min", axis, keepdims, out)

    def any(self, axis: Any = None, keepdims: bool = False, out: Any = None) -> Any:
        """Whether some element over axes is true."""
        return self._reduced("any", axis, keepdims, out)

    def all(self, axis: Any = None, keepdims: bool = False, out: Any = None) -> Any:
        """Whether all elements over axes are true."""
        return self._reduced("all", axis, keepdims, out)

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False
    ) -> Any:  # fmt: skip
        """The variance over axes."""
        return self._reduced("var", axis, keepdims, out, dtype=dtype, ddof=ddof)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False
    ) -> Any:  # fmt: skip
        """The standard deviation over axes."""
        return self._reduced("std", axis, keepdims, out, dtype=dtype, ddof=ddof)

    def _reduced(self, name: str, axis: Any, keepdims: bool, out: Any, **kwargs: Any) -> Any:
        found = self._call(name, axis=axis, keepdims=keepdims, **{k: v for k, v in kwargs.items() if v is not None})
        return found if out is None else store(found, out)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """The elements to so many decimals."""
        return self._call("round", decimals, out=out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """The elements moved into an interval."""
        return self._call("clip", min, max, out=out)

    def conj(self) -> Any:
        """The complex conjugates."""
        return np.conj(self)

    def isinf(self) -> Any:
        """Which elements are infinite."""
        return self._call("isinf")

    def isnan(self) -> Any:
        """Which elements are NaN."""
        return self._call("isnan")

    @property
    def real(self) -> Any:
        """The real parts."""
        return self._call("real")

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self._call("imag")

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The transpose of the last two dimensions."""
        if self.ndim < 2:
            raise ValueError("Cannot compute matrix transpose if `ndim < 2`.")
        return self.transpose((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def transpose(self, axes: Any = None) -> Any:
        """The dimensions in another order, reversed where none is given."""
        order = tuple(reversed(range(self.ndim))) if axes is None else axes_of(axes, self.ndim)
        if not isinstance(order, tuple) or sorted(order) != list(range(self.ndim)):
            raise ValueError(f"transpose: axes {axes} are not an order of {self.ndim} dimensions")
        return wrapped(ow.permute_dims(self.tensor, order), type(self))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Two dimensions exchanged."""
        axes = list(range(self.ndim))
        a, b = axes_of((axis1, axis2), self.ndim)
        axes[a], axes[b] = axes[b], axes[a]
        return self.transpose(tuple(axes))

    def reshape(self, shape: Any, order: str | None = "C") -> Any:
        """The elements, in row-major order, in another shape."""
        if order not in ("C", None):
            raise NotImplementedError("The `order` parameter is not supported")
        shape = tuple(shape) if np.iterable(shape) else (shape,)
        if shape == self.shape:
            return self
        if not self.shape:  # a Tensor of rank 0 has no fill value to keep
            coo, shape = self.tocoo(), np.zeros(()).reshape(shape).shape
            places = np.zeros((len(shape), coo.nnz), np.intp)
            return type(self)._of(CLASSES["coo"]._plain(places, coo.data, shape, coo.fill_value))
        return wrapped(ow.reshape(self.tensor, shape), type(self), self)

    def flatten(self, order: str | None = "C") -> Any:
        """The elements in one dimension, in row-major or column-major order."""
        if order not in ("C", "F", None):
            raise NotImplementedError("The `order` parameter is C, F or None")
        return (self.transpose() if order == "F" and self.ndim > 1 else self).reshape(-1)

    def squeeze(self, axis: Any = None) -> Any:
        """The array without dimensions of extent 1."""
        return self._call("squeeze", axis)

    def broadcast_to(self, shape: Any) -> Any:
        """The array repeated to a shape."""
        return self._call("broadcast_to", shape)

    def nonzero(self) -> Any:
        """The coordinates of the elements that are not 0, a NumPy array for each dimension."""
        return self._call("nonzero")

    def dot(self, other: Any) -> Any:
        """NumPy's `dot` with another array."""
        return self._call("dot", other)

    def __matmul__(self, other: Any) -> Any:
        return self._call("matmul", other) if _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return CLASSES["module"].matmul(other, self) if _is_operand(other) else NotImplemented

    def astype(self, dtype: Any, casting: Any = "unsafe", copy: bool = True) -> Any:
        """The elements in another dtype."""
        if not copy and self.dtype == dtype:
            return self
        if not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(f"Cannot cast array data from {self.dtype} to {np.dtype(dtype)} by the rule {casting!r}")
        coo = self.tocoo()
        with np.errstate(all="ignore"):
            fill = np.asarray(coo.fill_value).astype(dtype)[()]
            made = CLASSES["coo"]._plain(coo.coords.copy(), coo.data.astype(dtype), self.shape, fill)
        return type(self)._of(made._pruned(), self)

    def __getitem__(self, key: Any) -> Any:
        found = _taken(self.tensor, key)
        if not found.ndim and not any(k is Ellipsis for k in (key if isinstance(key, tuple) else (key,))):
            return found.to_numpy()[()]
        return wrapped(found, type(self), self)

    def maybe_densify(self, max_size: int = 1000, min_density: float = 0.25) -> Any:
        """The dense array, where it is small or would be a good part full."""
        if self.size > max_size and self.density < min_density:
            raise ValueError("Operation would require converting large sparse array to dense")
        return self.todense()

    def to_scipy_sparse(self, /, *, accept_fv: Any = None) -> Any:
        """SciPy's array of the stored elements; the fill value is among `accept_fv`, or 0."""
        wanted = [0] if accept_fv is None else accept_fv if np.iterable(accept_fv) else [accept_fv]
        if not any(self.fill_value == v or (self.fill_value != self.fill_value and v != v) for v in wanted):
            raise ValueError(f"x.fill_value={self.fill_value!r} but should be in {wanted}.")
        return self._scipy()

    def _scipy(self) -> Any:
        coo = self.tocoo()
        made = scipys.coo_array((coo.data, tuple(coo.coords)), shape=self.shape)
        made.has_canonical_format = True
        return made


def _taken(t: Tensor, key: Any) -> Tensor:
    """The elements at a key. Raises IndexError for what is no index."""
    try:
        return t[unwrapped(key)]
    except (TypeError, ValueError, NotImplementedError) as error:
        raise IndexError(str(error)) from None
