"""NumPy's functions and ufuncs on Tensors: a function and its arguments -> what the one here that it is gives.

`np.f(A, ...)` is, in this order: the function that `numpy_names` has for it, with NumPy's arguments; the operation
of the namespace that its block says, or that has its name; NumPy's own, where every Tensor is dense.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import Signature, signature
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..runtime.operation import OPERATIONS, namespace
from ..tables import NUMPY
from ..tensor.lazy import is_lazy
from ..tensor.operators import PRIORITY
from ..tensor.tensor import Tensor
from .numpy_names import basics, elements, inplace, shapes, statistics, ufuncs, windows  # noqa: F401  (they register)
from .numpy_names.reduced import reduce_chosen
from .numpy_names.registry import FUNCTIONS
from .numpy_names.results import store

__all__ = ["by_name", "call_function", "call_ufunc"]

_KEYWORDS = {"ddof": "correction"}
_IGNORED = ("order", "subok", "kind", "overwrite_input", "optimize", "stable", "sorted", "like")
"""Arguments that say how memory lies, or how a result is computed: formats and plans do here."""
_OWN_ORDER = ("einsum", "where", "inner", "vdot")
"""Functions whose arguments are taken as they are given."""


@lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> Signature:
    """`inspect.signature`, which takes longer than a small operation."""
    return signature(function)


@lru_cache(maxsize=1024)
def _names(func: Callable[..., Any], places: int, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """The names of arguments given by place, then those of keywords, of a function that takes them."""
    asked = _signature(func)
    asked.bind(*range(places), **dict.fromkeys(keywords))
    return (*list(asked.parameters)[:places], *keywords)


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_ufunc__` answers; see `numpy_names.ufuncs`."""
    if any(not is_lazy(x) and getattr(x, "__array_priority__", 0.0) > PRIORITY for x in inputs):
        return NotImplemented
    return ufuncs.call(ufunc, method, inputs, kwargs)


def _key(func: Callable[..., Any]) -> str:
    """The name of NumPy's function, with its module where that is not NumPy itself."""
    module = func.__module__.removeprefix("numpy").removeprefix(".")
    return f"{module}.{func.__name__}" if module else func.__name__


@lru_cache(maxsize=256)
def _named(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The operation here that is NumPy's `func`."""
    home = namespace()
    if func.__module__ == "numpy.linalg":
        function: Callable[..., Any] | None = getattr(home.linalg, func.__name__, None)
        return function
    if func.__module__ != "numpy":
        return None
    name = NUMPY.get(func.__name__, func.__name__)
    function = getattr(home, name, None)
    return None if function is None else _spelled(name, func.__name__, function)


@lru_cache(maxsize=256)
def _spelled(name: str, numpys: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operation, which takes NumPy's arguments where its block spells them."""
    block = OPERATIONS.get(name)
    spelling = None if block is None else block.spelled("numpy", numpys)
    if spelling is None or spelling.signature is None:
        return function
    return wraps(function)(lambda *args, **kwargs: spelling.call(function, args, kwargs))


def call_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_function__` answers.

    Raises UnsupportedError for a function that is not here, where an operand is sparse, and for arguments of
    NumPy's that it does not take.
    """
    own = FUNCTIONS.get(_key(func))
    if own is not None:
        return _own(func, own, args, kwargs)
    found = _named(func)
    if found is not None:
        return found(*args, **kwargs) if func.__name__ in _OWN_ORDER else _bound(func, found, args, kwargs)
    return func(*(_dense(func.__name__, x) for x in args), **{k: _dense(func.__name__, x) for k, x in kwargs.items()})


def by_name(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's `func` by the operation of the namespace that it is."""
    name = NUMPY.get(func.__name__, func.__name__)
    function = _spelled(name, func.__name__, getattr(namespace(), name))
    return function(*args, **kwargs) if func.__name__ in _OWN_ORDER else _bound(func, function, args, kwargs)


def _own(func: Any, own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that takes NumPy's arguments, and the result in `out` where it is given."""
    parameters, asked = _signature(own).parameters, _signature(func)
    if any(p.kind is p.VAR_POSITIONAL for p in asked.parameters.values()):
        return own(*args, **kwargs)
    named = _arguments(func, args, kwargs)
    out = named.pop("out", None) if "out" not in parameters else None
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        named = _known(named, parameters)
        refused = [key for key in named if key not in parameters]
        if refused:
            raise UnsupportedError(f"numpy.{func.__name__}: {refused[0]}= of a Tensor\n  help: leave it out")
    result = own(**named)
    return result if out is None else store(func.__name__, result, out)


def _bound(func: Any, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`found` with the arguments by its own names: the first ones by place, the rest by keyword."""
    asked = _signature(func)
    if any(p.kind is p.VAR_POSITIONAL for p in asked.parameters.values()):
        return found(*args, **kwargs)
    named = _arguments(func, args, kwargs)
    parameters = _signature(found).parameters
    out = named.pop("out", None) if "out" not in parameters else None
    places = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
    by_place = []
    for name in list(asked.parameters)[:places]:
        if name not in named:
            break
        by_place.append(named.pop(name))
    left = {key: value for key, value in named.items() if value is not None or _means_all(key, asked, found)}
    taken = {_KEYWORDS.get(key, key) if key not in parameters else key: value for key, value in left.items()}
    result = _with(func.__name__, found, by_place, _known(taken, parameters), parameters)
    return result if out is None else store(func.__name__, result, out)


def _arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by NumPy's names, those of `**kwargs` among them."""
    named = dict(zip(_names(func, len(args), tuple(kwargs)), (*args, *kwargs.values()), strict=True))
    return {key: value for key, value in named.items() if value is not np._NoValue}


def _known(taken: dict[str, Any], parameters: Any) -> dict[str, Any]:
    """Without what is at NumPy's default or says nothing here."""
    return {k: v for k, v in taken.items() if k in parameters or k not in _IGNORED}


def _with(name: str, found: Any, by_place: list[Any], taken: dict[str, Any], parameters: Any) -> Any:
    """The call, with `where=` and `initial=` of reductions, and `dtype=` of those that have none."""
    if "dtype" in taken and "dtype" not in parameters and "correction" in parameters:
        dtype = taken.pop("dtype")
        if not namespace().isdtype(dtype, "real floating"):
            raise UnsupportedError(f"numpy.{name}: dtype={dtype!r} of a Tensor\n  supported: floating-point dtypes")
        by_place[0] = namespace().asarray(by_place[0]).astype(dtype)
    chosen = [key for key in taken if key in ("where", "initial") and key not in parameters]
    refused = [key for key in taken if key not in parameters and key not in chosen]
    if refused:
        raise UnsupportedError(f"numpy.{name}: {refused[0]}= of a Tensor\n  help: leave it out")
    if chosen:
        return reduce_chosen(NUMPY.get(name, name), by_place[0], {"axis": None, **taken})
    return found(*by_place, **taken)


def _means_all(key: str, asked: Any, found: Any) -> bool:
    """Whether None of this argument is no default: `axis=None` of a function that has another axis without."""
    return key == "axis" and asked.parameters[key].default is not None and "axis" in _signature(found).parameters


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
