"""Any elementwise function of arrays and its operands -> its results as Tensors.

The loop IR knows some sixty functions. Any other (`np.fmax`, `scipy.special.xlogy`, `np.modf`) is called on arrays: of
one sparse operand on the stored values and on the fill value; of several on their values at every element that one of
them specifies, and on their fill values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, UnsupportedError
from ...integers import common_shape
from ...interop.operands import adopt_foreign
from ...runtime.conversion.remap import canonical
from ...storage.buffers import as_array, is_array, is_torch, length, numpy_dtype, to_numpy
from ...storage.recorded import is_recorded
from ...tensor.tensor import Tensor
from ..indexing.taking import values_at
from ..manipulation.repetition import broadcast_to

__all__ = ["by_elements"]


def by_elements(function: Callable[..., Any], operands: Sequence[Any], name: str) -> Any:
    """`function` of the operands' elements, broadcast.

    Parameters
    ----------
    function : takes arrays or scalars of NumPy, gives one array or a tuple of them
    operands : Tensors of any formats, sparse tensors of other libraries, arrays, scalars
    name : of the function, for messages

    Returns
    -------
    what `function` gives, each result a Tensor: of the structure of the one sparse operand, or of all elements that
    one of several specifies; its fill value is that of the fill values. With an array among the operands, or a dense
    Tensor, every element is computed: an array, or a dense Tensor where all operands are Tensors or scalars.

    Raises ShapeError where shapes do not broadcast, DTypeError for dtypes that the function does not take.
    """
    arguments = [_operand(adopt_foreign(x)) for x in operands]
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    like = next((t.values for t in tensors if is_torch(t.values)), tensors[0].values)
    for t in tensors:
        _refuse_recorded(t.values, name)
    shape = common_shape(name, [tuple(getattr(x, "shape", ())) for x in arguments])
    arrays = any(is_array(x) and x.ndim for x in arguments)
    if arrays or any(t.format.is_dense and t.ndim for t in tensors) or not any(t.ndim for t in tensors):
        dense_results = _call(function, [_host(x) for x in arguments], name)
        return (
            dense_results
            if arrays
            else _map_results(dense_results, lambda x: Tensor._from_dense(_to_library(np.asarray(x), like)))
        )
    structure, values = _align(arguments, shape)
    results = _call(function, values, name)
    fills = _call(function, [_fill_of(x) for x in arguments], name)
    if not isinstance(results, tuple):
        return _with_structure(structure, results, fills, like)
    return tuple(_with_structure(structure, r, f, like) for r, f in zip(results, fills, strict=True))


def _operand(x: Any) -> Any:
    """An operand, an array of rank 0 as a NumPy scalar that keeps its dtype."""
    if isinstance(x, Tensor):
        return x
    if is_torch(x):
        _refuse_recorded(x, "a function of NumPy")
    if isinstance(x, list | tuple):
        x = np.asarray(x)
    return x if not is_array(x) or x.ndim else to_numpy(x)[()]


def _refuse_recorded(x: Any, name: str) -> None:
    if is_torch(x) and is_recorded(x):
        raise UnsupportedError(f"{name} has no gradient\n  help: detach() the operand, or use torch.no_grad()")


def _host(x: Any) -> Any:
    """An operand as an array of NumPy or a scalar."""
    if isinstance(x, Tensor):
        return x.to_numpy()
    return to_numpy(x) if is_array(x) else x


def _fill_of(x: Any) -> Any:
    """The fill value of an operand, as an array of one element; a scalar by itself."""
    if not isinstance(x, Tensor):
        return x
    if not x.ndim:
        return x.to_numpy()[()]
    return np.full(1, x.fill_value, numpy_dtype(x._storage.scalar))


def _align(arguments: Sequence[Any], shape: tuple[int, ...]) -> tuple[Tensor, list[Any]]:
    """The union of the operands' structures, and every operand's values at its elements."""
    broadcast = [broadcast_to(x, shape) if isinstance(x, Tensor) and x.ndim else x for x in arguments]
    tensors = [x for x in broadcast if isinstance(x, Tensor) and x.ndim]
    sparse = [x if x.format.is_unique else x.asformat(canonical(x.format)) for x in tensors]
    if len(sparse) == 1:
        structure = sparse[0]
        return structure, [to_numpy(structure.values) if _has_structure(x) else _fill_of(x) for x in broadcast]
    structure = _pattern(sparse[0])
    for t in sparse[1:]:
        structure = structure | _pattern(t)
    if not (structure.format.is_unique and structure.format.is_ordered):
        structure = structure.asformat(canonical(structure.format))
    return structure, [
        to_numpy(values_at(x, structure._storage)) if _has_structure(x) else _fill_of(x) for x in broadcast
    ]


def _has_structure(x: Any) -> bool:
    return isinstance(x, Tensor) and bool(x.ndim)


def _pattern(t: Tensor) -> Tensor:
    """True at every specified element, False elsewhere."""
    s = t._storage
    return Tensor._from_storage(s.with_values(as_array(np.ones(length(s.values), np.bool_), like=s.values), False))


def _call(function: Callable[..., Any], args: Sequence[Any], name: str) -> Any:
    try:
        return function(*args)
    except TypeError as error:
        kinds = ", ".join(str(getattr(a, "dtype", type(a).__name__)) for a in args)
        raise DTypeError(f"{name} does not take {kinds}\n  help: convert with .astype(...)") from error


def _map_results(results: Any, make: Callable[[Any], Any]) -> Any:
    return tuple(map(make, results)) if isinstance(results, tuple) else make(results)


def _with_structure(structure: Tensor, values: Any, fill: Any, like: Any) -> Tensor:
    values = np.broadcast_to(values, length(structure.values))
    return Tensor._from_storage(
        structure._storage.with_values(_to_library(values, like), np.asarray(fill).reshape(-1)[0].item())
    )


def _to_library(values: Any, like: Any) -> Any:
    return as_array(np.asarray(values, order="C"), like=like)
