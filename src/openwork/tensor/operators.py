"""Tensor's operators (`+`, `@`, `A[key]`), reductions and NumPy and torch protocols, each handed to its operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

import numpy as np

from ..late import late
from ..runtime.gradient_hook import rule
from ..runtime.too_large import FAILURES, size_error, sized
from ..storage.buffers import is_torch
from .inplace import check_writable, replace_storage, store_result
from .numpy_names import by_numpy
from .python_protocol import PythonProtocol

if TYPE_CHECKING:
    from ..ops.indexing.assign import At
    from .tensor import Tensor

if TYPE_CHECKING:
    from ..interop.operands import is_operand
    from ..linalg.operator import compose
    from ..ops.elementwise.functions import positive
    from ..ops.elementwise.maps import elementwise, unary
    from ..ops.indexing.assign import At, assign
    from ..ops.indexing.index import index
    from ..ops.manipulation.triangles import diagonal
    from ..ops.numpy_protocol import call_function, call_ufunc
    from ..ops.products.matmul import matmul
    from ..ops.products.tensor_products import dot
    from ..ops.reductions.explicit import explicit_arg_extreme, explicit_extreme
    from ..ops.reductions.folds import reduce
    from ..ops.reductions.moments import std, var
    from ..ops.reductions.search import arg_reduce
    from .lazy import is_lazy
else:
    elementwise = late("ops.elementwise.maps", "elementwise")
    unary = late("ops.elementwise.maps", "unary")
    reduce = late("ops.reductions.folds", "reduce")
    explicit_extreme = late("ops.reductions.explicit", "explicit_extreme")
    explicit_arg_extreme = late("ops.reductions.explicit", "explicit_arg_extreme")
    matmul = late("ops.products.matmul", "matmul")
    compose = late("linalg.operator", "compose")
    is_operand = late("interop.operands", "is_operand")
    is_lazy = late("tensor.lazy", "is_lazy")
    call_ufunc = late("ops.numpy_protocol", "call_ufunc")
    call_function = late("ops.numpy_protocol", "call_function")
    diagonal = late("ops.manipulation.triangles", "diagonal")
    positive = late("ops.elementwise.functions", "positive")
    dot = late("ops.products.tensor_products", "dot")
    var = late("ops.reductions.moments", "var")
    std = late("ops.reductions.moments", "std")
    arg_reduce = late("ops.reductions.search", "arg_reduce")
    index = late("ops.indexing.index", "index")
    assign = late("ops.indexing.assign", "assign")
    At = late("ops.indexing.assign", "At")


__all__ = ["Operators"]

F = TypeVar("F", bound=Callable[..., Any])


def _elementwise(op: str, a: Any, b: Any) -> Any:

    try:
        return elementwise(op, a, b)
    except FAILURES as error:
        too_large = size_error("elementwise", error, (a, b))
        if too_large is None:
            raise
        raise too_large from None


def _unary(op: str, a: Any) -> Any:

    return unary(op, a)


@sized
def _reduce(op: str, a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:

    return reduce(op, a, axis, keepdims, dtype)


PRIORITY = 1000.0

_KNOWN_TYPES: set[type] = {bool, int, float, complex, list, tuple, np.ndarray}
"""Operand types that operators take, those met so far: numbers, arrays, tensors."""


_MATRIX_CLASSES = frozenset((("numpy", "matrix"), ("scipy", "spmatrix")))
_MATRIX_TYPES: set[type] = set()
"""Types met so far whose `*` is the matrix product: NumPy's matrix and SciPy's."""


def _defers_to(other: Any) -> bool:
    """Whether an operator gives NotImplemented: the other operand's operators go first, or its type is unknown."""
    return type(other) not in _KNOWN_TYPES and _is_foreign(other)


def _is_foreign(other: Any) -> bool:
    """`_defers_to` for a type that is met for the first time, which is remembered; see `operands.is_operand`."""

    cls = type(other)
    if isinstance(other, Operators):
        _KNOWN_TYPES.add(cls)
        return False
    if getattr(other, "__array_priority__", 0.0) > PRIORITY or getattr(cls, "__array_ufunc__", True) is None:
        return True
    if is_operand(other):
        if any((b.__module__.partition(".")[0], b.__name__) in _MATRIX_CLASSES for b in cls.__mro__):
            _MATRIX_TYPES.add(cls)
        _KNOWN_TYPES.add(cls)
        return False
    return True


def _binary(op: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if type(other) not in _KNOWN_TYPES and _is_foreign(other):
            return NotImplemented
        return _elementwise(op, self, other)

    return operator


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if type(other) not in _KNOWN_TYPES and _is_foreign(other):
            return NotImplemented
        return _elementwise(op, other, self)

    return operator


def _inplace(method: str, operation: str) -> Callable[[Any, Any], Any]:
    """The in-place form of an operator; of a lazy tensor, the operator itself."""

    def apply(self: Any, other: Any) -> Any:

        if not hasattr(self, "_kept"):
            return NotImplemented
        check_writable(self, operation)
        result = getattr(self, method)(other)
        return result if result is NotImplemented or _is_deferred(result) else store_result(self, operation, result)

    return apply


def _is_deferred(result: Any) -> bool:

    return is_lazy(result)


_TORCH_OPTIONS = frozenset(("dim", "keepdim", "unbiased", "other"))
"""Arguments of torch's methods alone."""
_ARRAY_API_OPTIONS = frozenset(("axis", "explicit", "keepdims"))
"""Arguments of the array API's methods alone."""
_DIFFERENT_IN_TORCH = frozenset(("max", "min", "var", "std"))
"""Methods whose result differs between torch and the array API for the same arguments."""


def _values(x: Any) -> Any:
    """The buffer of values, None for a lazy expression."""
    storage = getattr(x, "_storage", None)
    return None if storage is None else storage.values


def _torch_over_torch_buffers(method: F) -> F:
    """The method, which over torch buffers is torch's unless arguments say that the array API's is meant.

    Where both give the same, torch's is taken only where arguments ask for it.
    """
    name = method.__name__
    differs = name in _DIFFERENT_IN_TORCH
    own_options = frozenset(method.__kwdefaults__ or ()) | {"axis"}

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        is_torch_call = (
            len(args) > 1
            or not _TORCH_OPTIONS.isdisjoint(options)
            or (differs and _ARRAY_API_OPTIONS.isdisjoint(options))
        )
        if is_torch_call and is_torch(_values(self)):
            function = rule("torch_method")(self, name)
            return function(*args, **options)
        if len(args) > 1 or not own_options.issuperset(options):
            return by_numpy(name, (self, *args), options)
        return method(self, *args, **options)

    return cast("F", call)


class Operators(PythonProtocol):
    """The mixin of `Tensor` that holds its operators."""

    __slots__ = ()
    __array_priority__ = PRIORITY

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs: `np.exp(t)`, `np.add(x, t)`, `np.add.reduce(t)`."""

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's functions, where there is one of that name here."""

        return call_function(func, args, kwargs)

    if not TYPE_CHECKING:  # the stub of `methods` has their types
        __add__, __radd__ = _binary("add"), _reflected("add")
        __sub__, __rsub__ = _binary("sub"), _reflected("sub")
        __mul__ = _binary("mul")
        __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
        __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
        __mod__, __rmod__ = _binary("mod"), _reflected("mod")
        __pow__, __rpow__ = _binary("pow"), _reflected("pow")
        __and__, __rand__ = _binary("band"), _reflected("band")
        __or__, __ror__ = _binary("bor"), _reflected("bor")
        __xor__, __rxor__ = _binary("bxor"), _reflected("bxor")
        __lshift__, __rlshift__ = _binary("shl"), _reflected("shl")
        __rshift__, __rrshift__ = _binary("shr"), _reflected("shr")
        __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")

        __iadd__, __isub__, __imul__ = _inplace("__add__", "+="), _inplace("__sub__", "-="), _inplace("__mul__", "*=")
        __itruediv__, __ifloordiv__ = _inplace("__truediv__", "/="), _inplace("__floordiv__", "//=")
        __imod__, __ipow__, __imatmul__ = (
            _inplace("__mod__", "%="),
            _inplace("__pow__", "**="),
            _inplace("__matmul__", "@="),
        )
        __iand__, __ior__, __ixor__ = _inplace("__and__", "&="), _inplace("__or__", "|="), _inplace("__xor__", "^=")
        __ilshift__, __irshift__ = _inplace("__lshift__", "<<="), _inplace("__rshift__", ">>=")

        def __rmul__(self, other: Any) -> Any:
            if type(other) not in _KNOWN_TYPES and _is_foreign(other):
                return NotImplemented
            return _elementwise("mul", other, self) if type(other) not in _MATRIX_TYPES else self.__rmatmul__(other)

        def __eq__(self, other: object) -> Any:
            return NotImplemented if _defers_to(other) else _elementwise("eq", self, other)

        def __ne__(self, other: object) -> Any:
            return NotImplemented if _defers_to(other) else _elementwise("ne", self, other)

        __hash__ = None  # type: ignore[assignment]

        def __neg__(self) -> Any:
            return _unary("neg", self)

        def __pos__(self) -> Any:

            return positive(self)

        def __abs__(self) -> Any:
            return _unary("abs", self)

        def __invert__(self) -> Any:
            return _unary("bnot", self)

        def __matmul__(self, other: Any) -> Any:
            if type(other) not in _KNOWN_TYPES and _is_foreign(other):
                return compose(self, other)
            try:
                return matmul(self, other)
            except FAILURES as error:
                refused = size_error("matmul", error, (self, other))
                if refused is None:
                    raise
                raise refused from None

        def __rmatmul__(self, other: Any) -> Any:
            if type(other) not in _KNOWN_TYPES and _is_foreign(other):
                return NotImplemented
            try:
                return matmul(other, self)
            except FAILURES as error:
                refused = size_error("matmul", error, (other, self))
                if refused is None:
                    raise
                raise refused from None

        def __getitem__(self, key: Any) -> Any:

            return index(cast("Tensor", self), key)

    @property
    def real(self) -> Self:
        """The real part of every element; of real tensors the tensor's own elements."""
        return cast("Self", _unary("real", self))

    @property
    def imag(self) -> Self:
        """The imaginary part of every element, 0 of real ones."""
        return cast("Self", _unary("imag", self))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1, **options: Any) -> Any:
        """NumPy's and torch's `diagonal`: elements (i, i + offset) of two dimensions, the first ones, as a last one.

        options : torch's `dim1` and `dim2`, over torch buffers
        """
        if is_torch(_values(self)):
            return rule("torch_method")(self, "diagonal")(offset, **{"dim1": axis1, "dim2": axis2, **options})
        return diagonal(self, offset=offset, axis1=axis1, axis2=axis2, **options)

    def dot(self, other: Any) -> Any:
        """NumPy's and SciPy's `dot`: `self @ other` for vectors and matrices, of more dimensions see `dot`."""

        return dot(self, other)

    @_torch_over_torch_buffers
    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Self:
        """The sum over `axis`, all dimensions without."""
        return cast("Self", _reduce("sum", self, axis, keepdims, dtype))

    @_torch_over_torch_buffers
    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Self:
        """The product over `axis`."""
        return cast("Self", _reduce("prod", self, axis, keepdims, dtype))

    @_torch_over_torch_buffers
    def mean(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Self:
        """The mean over `axis`."""
        return cast("Self", _reduce("mean", self, axis, keepdims, dtype))

    @overload
    def min(self, *, axis: Any = None, keepdims: bool = False, explicit: bool = False) -> Self: ...
    @overload
    def min(self, axis: Any, *, keepdims: bool = False, explicit: bool = False) -> Any: ...
    @_torch_over_torch_buffers
    def min(self, axis: Any = None, *, keepdims: bool = False, explicit: bool = False) -> Any:
        """The least element over `axis`, of the stored ones only where `explicit`."""
        if explicit:
            return explicit_extreme("min", cast("Tensor", self), axis, keepdims)
        return _reduce("min", self, axis, keepdims)

    @overload
    def max(self, *, axis: Any = None, keepdims: bool = False, explicit: bool = False) -> Self: ...
    @overload
    def max(self, axis: Any, *, keepdims: bool = False, explicit: bool = False) -> Any: ...
    @_torch_over_torch_buffers
    def max(self, axis: Any = None, *, keepdims: bool = False, explicit: bool = False) -> Any:
        """The largest element over `axis`, of the stored ones only where `explicit`."""
        if explicit:
            return explicit_extreme("max", cast("Tensor", self), axis, keepdims)
        return _reduce("max", self, axis, keepdims)

    @_torch_over_torch_buffers
    def any(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Whether any element over `axis` is true."""
        return cast("Self", _reduce("any", self, axis, keepdims))

    @_torch_over_torch_buffers
    def all(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Whether all elements over `axis` are true."""
        return cast("Self", _reduce("all", self, axis, keepdims))

    @_torch_over_torch_buffers
    def count_nonzero(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """How many elements over `axis` are not zero."""
        return cast("Self", _reduce("count_nonzero", self, axis, keepdims))

    @_torch_over_torch_buffers
    def var(self, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Self:
        """The variance over `axis`."""

        return cast("Self", var(cast("Tensor", self), axis, correction, keepdims))

    @_torch_over_torch_buffers
    def std(self, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Self:
        """The standard deviation over `axis`."""

        return cast("Self", std(cast("Tensor", self), axis, correction, keepdims))

    @_torch_over_torch_buffers
    def argmin(self, axis: int | None = None, *, keepdims: bool = False, explicit: bool = False) -> Self:
        """Where the least element over `axis` is first, of the stored ones only where `explicit`."""
        if explicit:
            return cast("Self", explicit_arg_extreme("min", cast("Tensor", self), axis, keepdims))
        return cast("Self", arg_reduce("min", cast("Tensor", self), axis, keepdims))

    @_torch_over_torch_buffers
    def argmax(self, axis: int | None = None, *, keepdims: bool = False, explicit: bool = False) -> Self:
        """Where the largest element over `axis` is first, of the stored ones only where `explicit`."""
        if explicit:
            return cast("Self", explicit_arg_extreme("max", cast("Tensor", self), axis, keepdims))
        return cast("Self", arg_reduce("max", cast("Tensor", self), axis, keepdims))

    def __setitem__(self, key: Any, values: Any) -> None:
        """Set elements. Tensors that share the values follow where the structure stays, and else stay as they are."""

        me = cast("Tensor", self)
        check_writable(me, "A[key] = value")
        replace_storage(me, assign(me, key, values)._storage)

    @property
    def at(self) -> At:
        """`t.at[key].set(v)`, `.add(v)`, `.mul(v)`, `.min(v)`, `.max(v)`: new tensors with elements changed."""

        return At(cast("Tensor", self))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch's functions and operators with a Tensor among their operands."""

        return rule("torch_function")(func, args, kwargs or {})
