"""`__array_ufunc__`: a ufunc, its method and its arguments -> NumPy's result for Tensors.

Every elementwise ufunc is taken, of NumPy, SciPy or anybody: by the operation of the namespace that it is, else
by its values (`by_elements`). `out=`, `where=`, `dtype=` and `casting=` are NumPy's; `.reduce` and `.accumulate` are
reductions of the namespace, `.outer` is the ufunc of operands that broadcast, `.at` changes elements in place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...errors import DTypeError, UnsupportedError
from ...interop.sources import asarray
from ...interruptible import whole
from ...runtime.gradient_hook import with_grad
from ...runtime.operation import namespace
from ...runtime.overrides import is_long
from ...tables import NUMPY
from ...tensor.casting import may_cast, plain_dtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..elementwise.blocks import NOT_COMPILED
from ..elementwise.by_elements import by_elements
from ..elementwise.maps import by_values, elementwise, unary
from ..indexing.assign import combine
from ..manipulation.shaping import expand_dims
from ..products.matmul import matmul
from .reduced import reduce_masked
from .registry import FUNCTIONS
from .results import cast_as, select, store

__all__ = ["call", "direct"]

_IGNORED = ("order", "subok")
"""Arguments that say how memory is laid out, which the format does."""


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of `getattr(ufunc, method)(*inputs, **kwargs)`; `out` is a tuple there.

    Raises UnsupportedError for methods that have no meaning for sparse tensors.
    """
    options = {k: v for k, v in kwargs.items() if k not in _IGNORED and (v is not None or k == "axis")}
    out = options.pop("out", ())
    run = _METHODS.get(method)
    if run is None:
        return _on_dense_arrays(ufunc, method, inputs, options, out)
    if is_long(inputs) and not out and method != "at":
        return whole(run, (ufunc, inputs, options, out), {})
    return run(ufunc, inputs, options, out)


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...]) -> Any:
    where, casting = options.pop("where", True), options.pop("casting", "same_kind")
    if ufunc.signature is not None:
        result = _product(ufunc, inputs, options)
    else:
        inputs = _cast_for_loop(ufunc, inputs, options, casting)
        result = _apply(ufunc, inputs)
    results = result if isinstance(result, tuple) else (result,)
    outs = out or (None,) * len(results)
    final = tuple(
        select(where, r, None) if o is None else store(ufunc.__name__, r, o, casting, where)
        for r, o in zip(results, outs, strict=True)
    )
    return final if isinstance(result, tuple) else final[0]


def _cast_for_loop(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any], casting: str) -> tuple[Any, ...]:
    """The operands in the dtypes of the loop that `dtype=` or `signature=` asks for."""
    dtype, signature = options.pop("dtype", None), options.pop("signature", None)
    if dtype is None and signature is None:
        return inputs
    if any(map(is_lazy, inputs)):
        inputs = tuple(x.compute() if is_lazy(x) else x for x in inputs)
    if isinstance(signature, str):
        signature = tuple(signature.replace("->", ""))
    loop_signature = signature if signature is not None else (*(None,) * ufunc.nin, *(dtype,) * ufunc.nout)
    python = (bool, int, float, complex)
    kinds = [
        type(x) if type(x) in python[1:] else plain_dtype(x if hasattr(x, "dtype") else asarray(x)) for x in inputs
    ]
    try:
        loop_dtypes = ufunc.resolve_dtypes(
            (*kinds, *(None,) * ufunc.nout),
            signature=tuple(None if d is None else np.dtype(d) for d in loop_signature),
            casting=casting,  # type: ignore[arg-type]
        )
    except TypeError as error:
        raise DTypeError(f"{ufunc.__name__}: {error}\n  help: casting='unsafe', or astype first") from None
    return tuple(cast_as(x, d) for x, d in zip(inputs, loop_dtypes, strict=False))


def _apply(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    function = _operation(ufunc)
    if function is not None:
        return function(*inputs)
    inputs = tuple(x.compute() if is_lazy(x) else x for x in inputs)
    if not any(isinstance(x, Tensor) for x in inputs):
        return ufunc(*inputs)
    if len(inputs) == 1 and ufunc.nout == 1 and isinstance(inputs[0].values, np.ndarray):
        return by_values(inputs[0], ufunc)
    return by_elements(ufunc, inputs, ufunc.__name__)


def _operation(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """NumPy's ufunc -> the function of the namespace that it is; None for another library's ufunc of that name."""
    if np.__dict__.get(ufunc.__name__) is not ufunc:
        return None
    override = FUNCTIONS.get(ufunc.__name__)
    return override or getattr(namespace(), NUMPY.get(ufunc.__name__, ufunc.__name__), None)


@lru_cache(maxsize=256)
def direct(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """What a ufunc is of Tensors, arrays and numbers as they are: an operation of the loop IR, or `matmul`."""
    if ufunc is np.matmul:
        return matmul
    op = getattr(_operation(ufunc), "op", None)
    if op is None or op in NOT_COMPILED or ufunc.__name__ in FUNCTIONS or ufunc.nout != 1:
        return None
    return partial(unary if ufunc.nin == 1 else elementwise, op)


def _product(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A generalized ufunc, of vectors or matrices."""
    function = _operation(ufunc)
    dtype = options.pop("dtype", None)
    refused = [key for key in options if key not in ("axis", "keepdims")]
    if function is None or refused or (options and ufunc is np.matmul):
        what = f", {next(iter(options))}=" if options else ""
        raise UnsupportedError(f"numpy.{ufunc.__name__}{what} does not take a Tensor\n  help: einsum, or to_numpy()")
    keepdims = options.pop("keepdims", False)
    result = function(*inputs, **options)
    result = result if dtype is None else result.astype(dtype)
    return namespace().expand_dims(result, axis=options.get("axis", -1)) if keepdims else result


def _reduce(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...]) -> Any:
    name = NUMPY.get(f"{ufunc.__name__}.reduce")
    x, options = inputs[0], {"axis": 0, **options}
    if name is None:
        return _on_dense_arrays(ufunc, "reduce", inputs, options, out)
    result = reduce_masked(name, ufunc, x, options)
    return result if not out else store(ufunc.__name__, result, out[0])


def _accumulate(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...]) -> Any:
    name = NUMPY.get(f"{ufunc.__name__}.accumulate")
    if name is None:
        return _on_dense_arrays(ufunc, "accumulate", inputs, options, out)
    result = getattr(namespace(), name)(inputs[0], **{"axis": 0, **options})
    return result if not out else store(ufunc.__name__, result, out[0])


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...]) -> Any:
    a, b = (x if isinstance(x, Tensor) else asarray(x) for x in inputs)
    expanded = expand_dims(a, axis=tuple(range(a.ndim, a.ndim + b.ndim))) if b.ndim else a
    return _call(ufunc, (expanded, b), options, out)


def _at(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...]) -> None:
    """Each element that the key names, once for each time that it names it, in place."""
    t, key, *values = inputs
    if not isinstance(t, Tensor):
        arrays = [x.to_numpy() if isinstance(x, Tensor) else x for x in (key, *values)]
        ufunc.at(t, *arrays)
        return
    if values:
        may_cast(namespace().result_type(t, _result_type_operand(values[0])), t, "same_kind", f"{ufunc.__name__}.at")
    combined = with_grad(combine)(t, key, values[0] if values else None, ufunc)
    t._assign_result(f"{ufunc.__name__}.at", combined.asformat(t.format))


def _result_type_operand(x: Any) -> Any:
    """An operand for `result_type`: a Python scalar as it is, anything else as a Tensor."""
    return x if type(x) in (bool, int, float, complex) else asarray(x)


def _on_dense_arrays(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...]
) -> Any:
    """NumPy's own ufunc on arrays, where every Tensor is dense. Raises UnsupportedError for a sparse one."""
    tensors = [x for x in (*inputs, *options.values()) if isinstance(x, Tensor)]
    if any(not t.format.is_dense and t.ndim for t in tensors) or not tensors:
        supported_ufuncs = [n.removesuffix(f".{method}") for n in NUMPY if n.endswith(f".{method}")]
        supported = f"\n  supported: {', '.join(sorted(supported_ufuncs))}" if supported_ufuncs else ""
        raise UnsupportedError(
            f"numpy.{ufunc.__name__}.{method} does not take a sparse tensor{supported}\n  help: to_numpy() first"
        )
    arrays = [x.to_numpy() if isinstance(x, Tensor) else x for x in inputs]
    result = asarray(getattr(ufunc, method)(*arrays, **options))
    return result if not out else store(ufunc.__name__, result, out[0])


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
}
