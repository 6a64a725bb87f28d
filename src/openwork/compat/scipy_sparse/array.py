"""SciPy's sparse array over a Tensor: SciPy's spelling and meanings in front, openwork's operations behind.

An array holds one Tensor. Arithmetic, products, comparisons, reductions, indexing, assignment and conversions are
operations on it; buffers, printing and whatever else SciPy's classes have come from SciPy's array over the same memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import GenericAlias
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as scipys

import openwork as ow

from ... import Tensor
from ...tables import NAMES, NUMPY
from .arithmetic import Arithmetic, tensor_of
from .buffers import BUFFERS, Buffers, apart, readable

__all__ = ["CLASSES", "Array", "unwrapped", "wrapped"]

CLASSES: dict[tuple[str, str], type[Array]] = {}
"""The classes by kind, "array" or "matrix", and format."""


_PLAIN = frozenset((bool, int, float, complex, str, slice, type(None), np.ndarray, np.float64, np.int64, np.int32))
"""Types of which nothing is an array of ours or holds one."""


def unwrapped(x: Any) -> Any:
    """SciPy's array for one of ours, also inside of lists, tuples and dicts."""
    if type(x) in _PLAIN or (type(x) is tuple and _PLAIN.issuperset(map(type, x))):
        return x
    if isinstance(x, Array):
        return x.to_scipy()
    if isinstance(x, Tensor):
        return x.to_numpy() if x.format.is_dense else readable(x.to_scipy())
    if type(x) in (list, tuple) and any(isinstance(y, Array | Tensor | list | tuple) for y in x):
        return type(x)(unwrapped(y) for y in x)
    return {key: unwrapped(value) for key, value in x.items()} if type(x) is dict else x


def wrapped(x: Any) -> Any:
    """The array of ours for one of SciPy's, also inside of tuples and lists."""
    if scipys.issparse(x) and not isinstance(x, Array):
        kind = "matrix" if isinstance(x, scipys.spmatrix) else "array"
        return CLASSES[kind, x.format]._of(None, x)
    return type(x)(wrapped(y) for y in x) if type(x) in (list, tuple) else x


class Array(Arithmetic):
    """SciPy's sparse array of one format; the classes of this base are `csr_array` and so on."""

    kind: ClassVar[str] = "array"
    format: ClassVar[str] = ""
    __slots__ = ("_buffers",)
    __array_priority__ = 10.1
    _buffers: Buffers

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """SciPy's class of this format to `isinstance`: who asks for SciPy's arrays takes this one.

        So SciPy's own operators compute with an array of this kind on their right as with their own.
        """
        return getattr(scipys, f"{self.format}_{self.kind}")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.format:
            CLASSES[cls.kind, cls.format] = cls

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: int | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        if maxprint is not None:
            options["maxprint"] = maxprint
        theirs = getattr(scipys, f"{self.format}_{self.kind}")
        made = theirs(
            arg1 if isinstance(arg1, tuple) else unwrapped(arg1), shape=shape, dtype=dtype, copy=copy, **options
        )
        self._hold(None, made)
        _ = self.tensor  # buffers are checked

    @classmethod
    def _of(cls, t: Tensor | None, view: Any = None) -> Any:
        """The array over a Tensor, whose format is that of the class, or over SciPy's array."""
        self = object.__new__(cls)
        self._hold(t, view)
        return self

    def _hold(self, t: Tensor | None, view: Any = None) -> None:
        object.__setattr__(self, "_buffers", Buffers(self.format, self.kind, t, view))

    @property
    def tensor(self) -> Tensor:  # type: ignore[override]
        """The Tensor over the buffers."""
        return self._buffers.tensor

    def to_scipy(self) -> Any:
        """SciPy's array: over the same buffers where its elements are in order and stored once, else a copy.

        SciPy's methods sort and sum in place what they read. Lists of lists and dictionaries are copied.
        """
        lent = self._lent()
        return lent.copy() if self.format in ("lil", "dok") else lent

    def _lent(self) -> Any:
        return self._buffers.lent()

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes of SciPy's array over the same buffers: `vars(A)` is what it is there."""
        self._buffers.give("__dict__")
        attributes: dict[str, Any] = vars(self._buffers.view)
        return attributes

    def __tensor__(self) -> Tensor:
        """What `openwork.asarray` takes of it."""
        return self.tensor

    def _like(self, t: Any, format: str | None = None) -> Any:
        """A result: an array of the kind of this one, a NumPy array where it is dense, a number where it is one."""
        if not isinstance(t, Tensor):
            return t
        if not t.ndim:
            return t.to_numpy()[()]
        if t.format.is_dense and format is None:
            return self._dense(t.to_numpy())
        format = self._compressed if format is None else format
        if t.ndim != 2 and format not in ("coo", "dok") and not (t.ndim == 1 and format == "csr"):
            format = "coo" if self.kind == "array" else format
        t = ow.asarray(t.to_numpy(), format="coo") if t.fill_value else apart(t, self.tensor)
        made = t.to_scipy("coo" if t.ndim > 2 else format)
        if self.kind == "matrix":
            made = getattr(scipys, f"{format}_matrix")(made)
        return CLASSES[self.kind, format]._of(None, made)

    def _dense(self, x: np.ndarray[Any, Any]) -> Any:
        return x

    @property
    def _compressed(self) -> str:
        """The format of results: CSR where this one's is none that SciPy computes in."""
        return self.format if self.format in ("csc", "bsr", "dia") else "csr"

    def __getattr__(self, name: str) -> Any:
        """SciPy's buffers and other attributes, and methods that change nothing."""
        if name.startswith("__") or name in Array.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in BUFFERS and hasattr(self._buffers.view, name):
            return self._buffers.give(name)
        found = getattr(self._buffers.view, name)
        if not callable(found) or isinstance(found, type):
            return wrapped(found)

        def method(*args: Any, **kwargs: Any) -> Any:
            return self._asked(name, *args, **kwargs)

        return method

    def _asked(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What a method of SciPy's array gives that changes nothing: this array for itself, else another of ours."""
        return self._ask(lambda lent: getattr(lent, name)(*unwrapped(args), **unwrapped(kwargs)))

    def _ask(self, call: Callable[[Any], Any]) -> Any:
        """What a call that reads SciPy's array gives."""
        lent = self._lent()
        found = call(lent)
        return self if found is lent else wrapped(found)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        self._buffers.put(name, value)

    def _in_place(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A method of SciPy's that changes the structure, of buffers of its own."""
        view = self._buffers.own()
        found = getattr(view, name)(*unwrapped(args), **unwrapped(kwargs))
        self._buffers.replace(view)
        return found

    def _changed(self, name: str, *args: Any) -> Any:
        """A method of SciPy's that changes lists or dictionaries, which are this array's own."""
        found = getattr(self._buffers.view, name)(*unwrapped(args))
        self._buffers.replace(self._buffers.view)
        return found

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the elements (i, i + k)."""
        self._in_place("setdiag", values, k)

    def resize(self, *shape: Any) -> None:
        """Change the extents; what lies outside goes."""
        self._in_place("resize", *shape)

    def eliminate_zeros(self) -> None:
        """Leave out stored zeros."""
        self._in_place("eliminate_zeros")

    def sum_duplicates(self) -> None:
        """Sum elements that are stored at one place."""
        self._in_place("sum_duplicates")

    def sort_indices(self) -> None:
        """Sort the stored elements."""
        self._in_place("sort_indices")

    def prune(self) -> None:
        """Give back memory behind the stored elements."""
        self._in_place("prune")

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.tensor.ndim

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return self.tensor.dtype

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The dimensions in reverse order, over the same buffers unless `copy`; CSR's is CSC."""
        view = self._buffers.shallow()
        if self.format == "dia":  # SciPy places data beyond the last column wrongly
            view.data = view.data[:, : self.shape[1]]
        return wrapped(view.transpose(axes=axes, copy=copy))

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The elements in another dtype."""
        return self._asked("astype", dtype, casting=casting, copy=copy)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The dense array."""
        if order is None and out is None:
            dense = self.tensor.to_numpy()
            return dense.copy() if self.tensor.format.is_dense else dense
        return self._buffers.shallow().toarray(order, out)

    def todense(self, order: Any = None, out: Any = None) -> Any:
        """The dense array; a matrix of a matrix."""
        return self._dense(self.toarray(order, out))

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in another of SciPy's formats."""
        if format is None or format == self.format:
            return self.copy() if copy else self
        if format in ("array", "dense"):
            return self.toarray() if format == "array" else self.todense()
        if (self.kind, format) not in CLASSES:
            raise ValueError(f"Format {format} is unknown.")
        return getattr(self, f"to{format}")(copy=copy)

    def copy(self) -> Any:
        """The array in buffers of its own."""
        return wrapped(self._buffers.own())

    def __len__(self) -> int:
        if self.format == "dok":  # a dict of its elements
            return int(self.nnz)
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0] (or .data)")

    def __bool__(self) -> bool:
        if self.shape == (1, 1):
            return bool(self.nnz != 0)
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all().")

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)
    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(self.shape[0]))

    def __repr__(self) -> str:
        return repr(self._buffers.view)

    def __str__(self) -> str:
        return str(self._buffers.shallow())

    def __reduce__(self) -> Any:
        buffers = self._buffers
        return wrapped, (buffers.own() if self.format in ("lil", "dok") else buffers.shallow(),)

    def __getitem__(self, key: Any) -> Any:
        plain = _key(key)
        try:
            found = self.tensor[plain] if self.format not in ("dia", "bsr") else None
        except (IndexError, TypeError, ValueError, NotImplementedError):
            found = None
        if found is None or (found.ndim > 2 and self.format != "coo"):
            return self._ask(lambda lent: lent[unwrapped(key)])  # what SciPy's classes take besides, or its error
        if found.ndim == 1 and found.size and self.ndim == 2 and self.format in ("csr", "csc") and _is_inner(plain):
            return found.to_numpy()
        return self._like(found, self.format if found.ndim == self.ndim else "coo")

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.format in ("lil", "dok"):
            self._buffers.assign(unwrapped(key), unwrapped(value))
            return
        with warnings.catch_warnings():  # rows are spliced here as there
            warnings.simplefilter("ignore", scipys.SparseEfficiencyWarning)
            if hasattr(getattr(scipys, f"{self.format}_{self.kind}"), "__setitem__") and self.format != "bsr":
                self._buffers.assign(unwrapped(key), unwrapped(value))
            else:
                self._assigned(unwrapped(key), unwrapped(value))

    def _assigned(self, key: Any, value: Any) -> None:
        """Set elements of a format that SciPy does not assign to, through one that it does."""
        view = self._lent()
        through = view.tocsr()
        try:
            through[key] = value
        except (IndexError, TypeError, ValueError, NotImplementedError):
            view[key] = value  # SciPy's error
        self._buffers.replace(through.tobsr(view.blocksize) if self.format == "bsr" else through.asformat(self.format))

    def _reduced(self, name: str, axis: Any, dtype: Any, out: Any) -> Any:
        if self.kind == "matrix" or out is not None or not self.shape or self.tensor._storage.scalar == "bool":
            return self._asked(name, axis=axis, dtype=dtype, out=out)
        axis = _axis(axis, self.ndim)
        found = getattr(ow, name)(self.tensor, axis=axis, dtype=dtype)
        return found.to_numpy()[()] if not found.ndim else found.to_numpy()

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum over `axis`, dense."""
        return self._reduced("sum", axis, dtype, out)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean over `axis`, dense."""
        return self._reduced("mean", axis, dtype, out)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        unknown = np.empty((), object)
        unknown[()] = self
        return unknown


def _axis(axis: Any, ndim: int) -> Any:
    """An axis that SciPy takes. Raises its errors for others."""
    if axis is None or (isinstance(axis, tuple) and not axis):
        return None
    for a in axis if isinstance(axis, tuple) else (axis,):
        if not isinstance(a, int | np.integer):
            raise TypeError(f"axis must be an integer, not {type(a).__name__}")
        if not -ndim <= a < ndim:
            raise ValueError(f"axis out of range: {a} of {ndim} dimensions")
    return tuple(int(a) for a in axis) if isinstance(axis, tuple) else int(axis)


def _is_inner(key: Any) -> bool:
    """Whether rows and columns are named pair by pair, or by a mask of both."""
    if isinstance(key, tuple):
        return len(key) == 2 and all(isinstance(k, list) or getattr(k, "ndim", 0) > 0 for k in key)
    return getattr(key, "ndim", 1) == 2


def _key(key: Any) -> Any:
    """The key with Tensors for sparse arrays."""
    if isinstance(key, tuple):
        return tuple(_key(k) for k in key)
    found = tensor_of(key)
    if found is not None:
        return found
    return np.asarray(key) if isinstance(key, np.matrix) else key


def _elementwise(name: str, ours: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return self._like(getattr(ow, ours)(self.tensor), self.format)

    method.__name__, method.__doc__ = name, f"`{ours}` of every element."
    return method


for _name in dir(scipys.csr_array):
    _ufunc, _ours = getattr(np, _name, None), NUMPY.get(_name, _name)
    if isinstance(_ufunc, np.ufunc) and _ufunc.nin == 1 and _ours in NAMES:
        setattr(Array, _name, _elementwise(_name, _ours))
