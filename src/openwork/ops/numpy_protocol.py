"""NumPy's functions and ufuncs on a Tensor, each handed to the function of this namespace that it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import signature
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..runtime.operation import OPERATIONS
from ..tables import NUMPY
from ..tensor.lazy import is_lazy
from ..tensor.operators import PRIORITY
from ..tensor.tensor import Tensor
from .elementwise.maps import by_values
from .products.tensor_products import dot, inner, vdot

__all__ = ["by_name", "call_function", "call_ufunc"]

_KEYWORDS = {"ddof": "correction"}
_OWN_ORDER = ("einsum", "where", "inner", "vdot")
"""Functions whose arguments are taken as they are given."""


def _namespace() -> Any:

    return Tensor.__array_namespace__(object.__new__(Tensor))


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_ufunc__` answers: the function of that name; other functions of one element by their values.

    Raises UnsupportedError for what has no counterpart: `where=`, `outer`, `at` and the like.
    """
    if any(not is_lazy(x) and getattr(x, "__array_priority__", 0.0) > PRIORITY for x in inputs):
        return NotImplemented
    given = {key: value for key, value in kwargs.items() if value is not None}
    out = given.pop("out", (None,))[0]
    if method == "reduce" and f"{ufunc.__name__}.reduce" in NUMPY and len(inputs) == 1:
        result = _reduce(ufunc.__name__, inputs[0], given)
    elif method != "__call__" or ufunc.nout != 1 or given:
        how = ufunc.__name__ + ("" if method == "__call__" else f".{method}") + "".join(f", {key}=" for key in given)
        raise UnsupportedError(f"numpy.{how} does not take a Tensor\n  help: a function of openwork, or to_numpy()")
    else:
        result = _apply(ufunc, inputs)
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        raise UnsupportedError(f"numpy.{ufunc.__name__}: out= is a Tensor\n  help: take the result instead")
    np.copyto(out, result.to_numpy() if hasattr(result, "to_numpy") else result, casting="same_kind")
    return out


def _reduce(name: str, x: Any, given: dict[str, Any]) -> Any:
    refused = set(given) - {"axis", "keepdims", "dtype"}
    if refused:
        raise UnsupportedError(f"numpy.{name}.reduce: {', '.join(sorted(refused))}= of a Tensor\n  help: leave it out")
    return getattr(_namespace(), NUMPY[f"{name}.reduce"])(x, **{"axis": 0, **given})


def _apply(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    found = getattr(_namespace(), NUMPY.get(ufunc.__name__, ufunc.__name__), None)
    if found is not None and ufunc.__name__ in np.__dict__:
        return found(*inputs)

    tensors = [x for x in inputs if isinstance(x, Tensor)]
    if len(tensors) != 1 or any(not isinstance(x, Tensor) and np.ndim(x) for x in inputs):
        raise UnsupportedError(f"{ufunc.__name__} of a Tensor and an array\n  help: to_numpy() them first")
    at = next(k for k, x in enumerate(inputs) if x is tensors[0])
    return by_values(tensors[0], lambda v: ufunc(*inputs[:at], v, *inputs[at + 1 :]))


@lru_cache(maxsize=256)
def _named(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function here that is NumPy's `func`."""
    home = _namespace()
    if func.__module__ == "numpy.linalg":
        home = home.linalg
    elif func.__module__ != "numpy":
        return None
    elif func.__name__ in _OWN:
        return _OWN[func.__name__]
    name = NUMPY.get(func.__name__, func.__name__)
    function: Callable[..., Any] | None = getattr(home, name, None)
    if function is None or func.__module__ != "numpy":
        return function
    return _spelled(name, func.__name__, function)


def _spelled(name: str, numpys: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operation, which takes NumPy's arguments where its block spells them."""
    block = OPERATIONS.get(name)
    spelling = None if block is None else block.spelled("numpy", numpys)
    if spelling is None or spelling.signature is None:
        return function
    return wraps(function)(lambda *args, **kwargs: spelling.call(function, args, kwargs))


def call_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_function__` answers: the function here of that name, else NumPy's on dense tensors.

    Raises UnsupportedError for a function that is not here, where an operand is sparse, and for arguments of
    NumPy's that it does not take.
    """
    found = _named(func)
    if found is not None:
        return found(*args, **kwargs) if func.__name__ in _OWN_ORDER else _bound(func, found, args, kwargs)
    return func(*(_dense(func.__name__, x) for x in args), **{k: _dense(func.__name__, x) for k, x in kwargs.items()})


def by_name(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's `func` by the operation of the namespace that it is."""
    name = NUMPY.get(func.__name__, func.__name__)
    function = _spelled(name, func.__name__, getattr(_namespace(), name))
    return function(*args, **kwargs) if func.__name__ in _OWN_ORDER else _bound(func, function, args, kwargs)


def _bound(func: Any, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`found` with the arguments by its own names: the first ones by place, the rest by keyword."""
    asked = signature(func)
    if any(p.kind is p.VAR_POSITIONAL for p in asked.parameters.values()):
        return found(*args, **kwargs)
    named = asked.bind(*args, **kwargs).arguments
    parameters = signature(found).parameters
    places = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
    by_place = []
    for name in list(asked.parameters)[:places]:
        if name not in named:
            break
        by_place.append(named.pop(name))
    left = {key: value for key, value in named.items() if value is not None or _means_all(key, asked, found)}
    taken = {_KEYWORDS.get(key, key) if key not in parameters else key: value for key, value in left.items()}
    refused = [key for key in taken if key not in parameters]
    if refused:
        raise UnsupportedError(f"numpy.{func.__name__}: {refused[0]}= of a Tensor\n  help: leave it out")
    return found(*by_place, **taken)


def _means_all(key: str, asked: Any, found: Any) -> bool:
    """Whether None of this argument is no default: `axis=None` of a function that has another axis without."""
    return key == "axis" and asked.parameters[key].default is not None and "axis" in signature(found).parameters


def _dense(name: str, x: Any) -> Any:
    """An argument of a function that is not here: dense Tensors as arrays."""

    if isinstance(x, list | tuple):
        return type(x)(_dense(name, item) for item in x) if any(isinstance(i, Tensor) for i in x) else x
    if isinstance(x, Tensor):
        if not x.format.is_dense:
            raise UnsupportedError(
                f"numpy.{name} does not take a sparse tensor"
                "\n  help: to_numpy() first, or openwork.write(path, t) for a file"
            )
        return x.to_numpy()
    return x


def _array_equal(a: Any, b: Any) -> bool:
    a, b = _namespace().asarray(a), _namespace().asarray(b)
    return a.shape == b.shape and bool((a == b).all())


def _isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08) -> Any:
    ow = _namespace()
    a, b = ow.asarray(a), ow.asarray(b)
    return (a == b) | (ow.isfinite(b) & (abs(a - b) <= atol + rtol * abs(b)))


def _allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    return bool(_isclose(a, b, rtol, atol).all())


def _along(name: str, default: int | None) -> Callable[..., Any]:
    """The function here of that name with NumPy's meaning of `axis=None`: all elements in row-major order."""

    def function(a: Any, axis: Any = default, dtype: Any = None) -> Any:
        ow = _namespace()
        a = ow.asarray(a)
        if axis is None:
            a, axis = ow.reshape(a, (-1,)), 0
        return getattr(ow, name)(a, axis=axis, **({} if dtype is None else {"dtype": dtype}))

    return function


def _spread(name: str) -> Callable[..., Any]:
    """`var` or `std`, in a floating-point dtype where one is given."""

    def function(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: bool = False
    ) -> Any:
        if out is not None:
            raise UnsupportedError(f"numpy.{name}: out= of a Tensor\n  help: leave it out, and use the result")
        ow = _namespace()
        if dtype is not None and not ow.isdtype(dtype, "real floating"):
            raise UnsupportedError(f"numpy.{name}: dtype={dtype!r} of a Tensor\n  supported: floating-point dtypes")
        found = getattr(ow, name)(a, axis=axis, correction=ddof, keepdims=keepdims)
        return found if dtype is None else found.astype(dtype)

    return function


def _einsum(*operands: Any, optimize: Any = False, **options: Any) -> Any:
    """The order of contraction is found here, whatever `optimize` says."""
    return _namespace().einsum(*operands, **options)


_OWN: dict[str, Callable[..., Any]] = {
    "array_equal": _array_equal,
    "allclose": _allclose,
    "isclose": _isclose,
    "shape": lambda a: tuple(a.shape),
    "ndim": lambda a: len(a.shape),
    "size": lambda a: int(a.size),
    "vstack": lambda tup: _namespace().concat(tup, axis=0),
    "hstack": lambda tup: _namespace().concat(tup, axis=min(tup[0].ndim - 1, 1)),
    "transpose": lambda a, axes=None: a.transpose() if axes is None else a.transpose(axes),
    "ravel": lambda a: _namespace().reshape(a, (-1,)),
    **{name: _along(name, -1) for name in ("sort", "argsort")},
    "cumsum": _along("cumulative_sum", None),
    "cumprod": _along("cumulative_prod", None),
    **{name: _spread(name) for name in ("var", "std")},
    "dot": dot,
    "inner": inner,
    "vdot": vdot,
    "einsum": _einsum,
}
"""NumPy's functions that the array API has not, or has with other defaults."""
