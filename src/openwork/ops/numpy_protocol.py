"""`__array_function__` and `__array_ufunc__`: NumPy's function and arguments -> the result of the operation that it is.

`np.f(A, ...)` is, in this order: the function that `numpy_names` has for it, with NumPy's arguments; the operation
of the namespace that its block says, or that has its name; NumPy's own, where every Tensor is dense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from inspect import Signature, signature
from typing import Any

import numpy as np

from ..errors import UnsupportedError, argument_hint
from ..interop.operands import is_container
from ..provided import provides
from ..runtime.operation import OPERATIONS, namespace
from ..tables import NUMPY
from ..tensor.lazy import is_lazy
from ..tensor.operators import PRIORITY, UFUNCS
from ..tensor.tensor import Tensor
from .numpy_names import basics, created, elements, inplace, shapes, statistics, ufuncs, windows  # noqa: F401  (they register)
from .numpy_names.reduced import is_reduction, reduce_by_name
from .numpy_names.registry import FUNCTIONS
from .numpy_names.results import select, store

__all__ = ["by_name", "call_function", "call_ufunc"]

_KEYWORDS = {"ddof": "correction"}
_IGNORED = ("order", "subok", "kind", "overwrite_input", "optimize", "stable", "sorted", "like")
"""Arguments that say how memory lies, or how a result is computed: formats and plans do here."""
_POSITIONAL = ("einsum", "where", "inner", "vdot")
"""Functions whose arguments are taken as they are given."""


_PLAIN = (Tensor, np.ndarray, int, float)
_OPERANDS = (*_PLAIN, np.float64)
"""Types of operands that the operation of a ufunc takes as they are."""


@lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> Signature:
    """`inspect.signature`, which takes longer than a small operation."""
    return signature(function)


@lru_cache(maxsize=1024)
def _names(func: Callable[..., Any], positional: int, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """The parameter names of `positional` positional arguments, then those of keywords."""
    numpys = _signature(func)
    try:
        numpys.bind(*range(positional), **dict.fromkeys(keywords))
    except TypeError as error:
        unknown = next((key for key in keywords if key not in numpys.parameters), None)
        hint = "" if unknown is None else argument_hint(unknown, numpys.parameters)
        raise TypeError(f"{func.__name__}() {error}{hint}") from None
    return (*list(numpys.parameters)[:positional], *keywords)


@provides("call_ufunc")
def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of `__array_ufunc__`; see `numpy_names.ufuncs`."""
    container = _container_among(inputs)
    if container is not None:
        return container.__array_ufunc__(ufunc, method, *inputs, **kwargs)
    if any(_is_above(x) for x in inputs):
        return NotImplemented
    if method == "__call__" and not kwargs and all(type(x) in _OPERANDS for x in inputs):
        operation = ufuncs.direct(ufunc)
        if operation is not None:
            UFUNCS[ufunc, *map(type, inputs)] = operation
    return ufuncs.call(ufunc, method, inputs, kwargs)


def _is_above(x: Any) -> bool:
    """Whether an operand's own protocol is to be asked first."""
    if type(x) in _PLAIN:
        return False
    return not is_lazy(x) and getattr(x, "__array_priority__", 0.0) > PRIORITY


def _container_among(operands: Iterable[Any]) -> Any:
    """The first array of arrays among operands and lists of them, which computes; it may have refused a Tensor before
    it knew the type."""
    for x in operands:
        if type(x) in _PLAIN:
            continue
        found = _container_among(x) if isinstance(x, list | tuple) else x if is_container(type(x)) else None
        if found is not None:
            return found
    return None


@lru_cache(maxsize=1024)
def _key(func: Callable[..., Any]) -> str:
    """The name of NumPy's function, with its module where that is not NumPy itself."""
    module = func.__module__.removeprefix("numpy").removeprefix(".")
    return f"{module}.{func.__name__}" if module else func.__name__


@lru_cache(maxsize=256)
def _operation_of(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """NumPy's function -> the operation of the namespace that it is, None where there is none."""
    home = namespace()
    if func.__module__ == "numpy.linalg":
        function: Callable[..., Any] | None = getattr(home.linalg, func.__name__, None)
        return function
    if func.__module__ != "numpy":
        return None
    name = NUMPY.get(func.__name__, func.__name__)
    function = getattr(home, name, None)
    return None if function is None else _with_spelling(name, func.__name__, function)


@lru_cache(maxsize=256)
def _with_spelling(name: str, numpys: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operation, with NumPy's signature where its block spells it."""
    block = OPERATIONS.get(name)
    spelling = None if block is None else block.spelled("numpy", numpys)
    if spelling is None or spelling.signature is None:
        return function
    return wraps(function)(lambda *args, **kwargs: spelling.call(function, args, kwargs))


@provides("call_function")
def call_function(func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of `__array_function__`, by an array of arrays where there is one among the operands.

    Raises UnsupportedError for a function that is not here, where an operand is sparse, and for arguments of
    NumPy's that it does not take.
    """
    if any(map(is_container, types)):
        container = _container_among((*args, *kwargs.values()))
        return NotImplemented if container is None else container.__array_function__(func, types, args, kwargs)
    override = FUNCTIONS.get(_key(func))
    if override is not None:
        return _call_override(func, override, args, kwargs)
    operation = _operation_of(func)
    if operation is not None:
        return (
            operation(*args, **kwargs)
            if func.__name__ in _POSITIONAL
            else _call_operation(func, operation, args, kwargs)
        )
    return func(*(_dense(func.__name__, x) for x in args), **{k: _dense(func.__name__, x) for k, x in kwargs.items()})


def by_name(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's `func` by the operation of the namespace that it is."""
    name = NUMPY.get(func.__name__, func.__name__)
    function = _with_spelling(name, func.__name__, getattr(namespace(), name))
    return function(*args, **kwargs) if func.__name__ in _POSITIONAL else _call_operation(func, function, args, kwargs)


def _call_override(func: Any, override: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function registered under NumPy's name with NumPy's arguments; the result goes into `out` where given."""
    parameters, numpys = _signature(override).parameters, _signature(func)
    if any(p.kind is p.VAR_POSITIONAL for p in numpys.parameters.values()):
        return override(*args, **kwargs)
    arguments = _arguments(func, args, kwargs)
    out = arguments.pop("out", None) if "out" not in parameters else None
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        arguments = _without_ignored(arguments, parameters)
    result = override(**arguments)
    return result if out is None else store(func.__name__, result, out)


@lru_cache(maxsize=1024)
def _places(func: Any, operation: Any) -> tuple[str, ...] | None:
    """The parameters of NumPy's function that an operation takes by place; None where NumPy's takes any number."""
    numpys = _signature(func).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in numpys.values()):
        return None
    parameters = _signature(operation).parameters.values()
    return tuple(numpys)[: sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)]


@lru_cache(maxsize=1024)
def _plain_names(
    func: Any, operation: Any, positional: int, keywords: tuple[str, ...]
) -> tuple[int, tuple[str, ...]] | None:
    """How many arguments an operation takes by place, and its names of the others; None where it lacks one of them."""
    places = _places(func, operation)
    names = () if places is None else _names(func, positional, keywords)
    if places is None or not positional:
        return None
    parameters = _signature(operation).parameters
    by_place = min(positional, len(places))
    named = tuple(_KEYWORDS.get(n, n) if n not in parameters else n for n in names[by_place:])
    return (by_place, named) if parameters.keys() >= set(named) and not {*places, "out"} & set(named) else None


def _call_operation(func: Any, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operation with NumPy's arguments renamed: positional parameters by place, the rest by keyword."""
    plain = _plain_names(func, operation, len(args), tuple(kwargs))
    if plain is not None:
        for x in (*args, *kwargs.values()):
            if x is None or x is np._NoValue:
                break
        else:
            by_place, named = plain
            return operation(*args[:by_place], **dict(zip(named, (*args[by_place:], *kwargs.values()), strict=True)))
    places = _places(func, operation)
    if places is None:
        return operation(*args, **kwargs)
    numpys = _signature(func)
    arguments = _arguments(func, args, kwargs)
    parameters = _signature(operation).parameters
    out = arguments.pop("out", None) if "out" not in parameters else None
    values = []
    for name in places:
        if name not in arguments:
            break
        values.append(arguments.pop(name))
    options = {
        key: value for key, value in arguments.items() if value is not None or _none_is_all_axes(key, numpys, operation)
    }
    keywords = {_KEYWORDS.get(key, key) if key not in parameters else key: value for key, value in options.items()}
    keywords = _without_ignored(keywords, parameters)
    where: Any = True
    if not is_reduction(NUMPY.get(func.__name__, func.__name__)) and "where" not in parameters:
        where = keywords.pop("where", True)
    result = _call_with_where(func.__name__, operation, values, keywords, parameters)
    return select(where, result, None) if out is None else store(func.__name__, result, out, where=where)


def _arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments -> by NumPy's parameter names, without those left at `numpy._NoValue`."""
    arguments = dict(zip(_names(func, len(args), tuple(kwargs)), (*args, *kwargs.values()), strict=True))
    return {key: value for key, value in arguments.items() if value is not np._NoValue}


def _without_ignored(keywords: dict[str, Any], parameters: Any) -> dict[str, Any]:
    """The keywords without those in `_IGNORED` that the operation does not take."""
    return {k: v for k, v in keywords.items() if k in parameters or k not in _IGNORED}


def _call_with_where(name: str, operation: Any, values: list[Any], keywords: dict[str, Any], parameters: Any) -> Any:
    """Call an operation, with `where=` and `initial=` of reductions."""
    reduction_only = [key for key in keywords if key in ("where", "initial") and key not in parameters]
    refused = [key for key in keywords if key not in parameters and key not in reduction_only]
    if refused:
        raise UnsupportedError(f"numpy.{name}: {refused[0]}= of a Tensor\n  help: leave it out")
    if reduction_only:
        return reduce_by_name(NUMPY.get(name, name), values[0], {"axis": None, **keywords})
    return operation(*values, **keywords)


def _none_is_all_axes(key: str, numpys: Any, operation: Any) -> bool:
    """Whether None of this argument is no default: `axis=None` of a function that has another axis without."""
    return key == "axis" and numpys.parameters[key].default is not None and "axis" in _signature(operation).parameters


def _dense(name: str, x: Any) -> Any:
    """An argument for NumPy's own function: dense Tensors as arrays, UnsupportedError for sparse ones."""

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
