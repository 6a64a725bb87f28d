"""A tensor and indices, a mask or a threshold -> the elements gathered along an axis, at the mask, or above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...compiler.remap import find_kernel
from ...errors import DTypeError, ShapeError
from ...format import coo
from ...reals import real
from ...runtime.conversion.assembly import full
from ...runtime.conversion.conversion_kernels import call
from ...runtime.conversion.remap import IndexMap, canonical, on_host, source_words
from ...runtime.gradient_hook import differentiable
from ...runtime.operand_type import operand_of
from ...runtime.operation import operation
from ...storage.buffers import Array, address, buffer_of, is_torch, length, to_numpy
from ...storage.recorded import is_recorded
from ...storage.storage import LARGEST, Storage, structure_of
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axis_of
from ..manipulation.shaping import reshape
from ..result_format import remap_one
from .index import index
from .keys import Ints

__all__ = ["prune", "sparse_mask", "take", "take_along_axis", "values_at"]


def _integers(indices: Any, operation: str) -> Ints:
    host = indices.to_numpy() if isinstance(indices, Tensor) else to_numpy(indices) if is_torch(indices) else indices
    array = np.asarray(host)
    if array.size == 0 and not hasattr(host, "dtype"):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{operation}: indices are integers; got dtype {array.dtype}\n  help: convert them")
    return array.astype(np.int64)


@operation(method=True, torch="take", masked="moves")
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The elements at `indices` along `axis`; negative ones count from the end, repeated ones are taken again.

    Parameters
    ----------
    indices : int, or a vector of them

    Raises IndexError for an index out of bounds.

    Cost: O(nse of what is taken) in compressed rows, else O(nse).
    See also: take_along_axis, Tensor.__getitem__.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 0]], format="csr")
    >>> ow.take(A, [1, 1], axis=0).to_numpy()
    array([[1, 0],
           [1, 0]])
    """
    t = as_tensor(x)
    if axis is None:
        return take(reshape(t, (-1,)), indices, axis=0)
    d = axis_of(axis, t.ndim, "take", boolean=False)
    return index(t, (*(slice(None),) * d, _integers(indices, "take")))


@operation(method=True, masked="moves")
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """For each place of `indices`, of the rank of `x`, the element whose coordinate along `axis` stands there.

    `indices` broadcasts with `x` beside `axis`.

    Parameters
    ----------
    indices : coordinates along `axis`

    Cost: O(size of the places).
    See also: take, argsort.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 0]], format="csr")
    >>> ow.take_along_axis(A, np.array([[1], [0]]), axis=1).to_numpy()
    array([[2],
           [1]])
    """
    t, crd = as_tensor(x), _integers(indices, "take_along_axis")
    d = axis_of(axis, t.ndim, "take_along_axis")
    if crd.ndim != t.ndim:
        raise ShapeError(
            f"take_along_axis: indices have {crd.ndim} dimensions, the tensor {t.ndim}\n  help: give as many"
        )
    key: list[Any] = []
    for k, n in enumerate(t.shape):
        shape = [1] * t.ndim
        shape[k] = -1
        extent = crd.shape[k] if n == 1 else n
        key.append(crd if k == d else (np.arange(n) if n != 1 else np.zeros(extent, np.int64)).reshape(shape))
    try:
        return index(t, tuple(key))
    except IndexError as error:
        if "broadcast" not in str(error):
            raise
        raise ShapeError(
            f"take_along_axis: indices of shape {crd.shape} do not broadcast with {t.shape} beside axis {d}"
            "\n  help: extents agree, or are 1"
        ) from None


@operation(method=True, shape="same", dtype="same", fill="same")
@differentiable(lambda x, *_: (buffer_of(x),))
def prune(x: Any, threshold: Any = 0, /) -> Tensor:
    """Without the elements that differ from the fill value by no more than `threshold`.

    Parameters
    ----------
    threshold : 0 leaves out what equals the fill value only, -0.0 where that is 0.0; NaN stays, unless the fill value
        is NaN

    Raises DTypeError for a threshold that is no number, ValueError for one that is negative or NaN.

    Guarantees: nse(out) <= nse(x), every kept value as it was.

    Cost: O(nse).
    See also: pattern, sparse_mask, Tensor.eliminate_zeros.

    Examples
    --------
    >>> A = ow.asarray([0, 0.1, 2.0], format="coo")
    >>> ow.prune(A, 0.5).to_numpy()
    array([0., 0., 2.])
    """
    t = as_tensor(x)
    if t.format.is_dense:
        return t.clone()
    if not (t.format.is_unique and t.format.is_ordered):
        t = t.asformat(canonical(t.format))
    scalar = t._storage.scalar
    limit = _type_of_distances(scalar)
    distance = _distance(threshold, limit)
    wraps = limit == "i64" and distance >= 1 << 63
    bound = full(1, limit, distance - (1 << 64) * wraps, t.values)
    fill = full(1, scalar, t.fill_value, t.values)

    def write(index_map: IndexMap) -> None:
        value, fill_text = "a_vals[leaf]", f"{index_map.array(fill)}[0]"
        bound_text = f"{index_map.array(bound)}[0]"
        if scalar == "bool":
            index_map.test(f"{value} != {fill_text} and {bound_text} == False")
        else:
            index_map.test(f"not ({_near_test(scalar, value, fill_text, bound_text, wraps)})")
        for d in range(t.ndim):
            index_map.keep(d)

    return remap_one(t, t.shape, "prune", write, lambda a: a)


def _type_of_distances(scalar: str) -> str:
    """The type in which values are compared with the fill value."""
    if scalar in ("bool", "u64"):
        return scalar
    if scalar[0] in "iu":
        return "i64"
    return "f64" if scalar in ("f64", "c128") else "f32"


def _distance(threshold: Any, scalar: str) -> float | int:
    """The threshold of `prune` as a number of the type of distances; of i64, up to the largest distance of two."""
    distance = real(threshold, "prune", "the threshold") if not isinstance(threshold, int) else threshold
    if not distance >= 0:
        raise ValueError(f"prune: the threshold is {threshold!r}, expected 0 or more\n  help: it is a distance")
    if scalar in ("f32", "f64"):
        return float(min(distance, LARGEST)) if isinstance(distance, int) else distance
    largest = 1 if scalar == "bool" else (1 << 64) - 1
    return largest if distance >= largest else int(distance)


def _near_test(scalar: str, value: str, fill: str, threshold: str, wraps: bool) -> str:
    """The test that two values are not further apart than `threshold`; NaN is near NaN.

    `wraps`: the threshold is 2**63 or more, less 2**64; distances of int64 that are as large come out so, too.
    """
    if scalar == "u64":
        return f"max({value}, {fill}) - min({value}, {fill}) <= {threshold}"
    if scalar[0] in "iu":
        apart = f"i64(max({value}, {fill})) - i64(min({value}, {fill}))"
        return f"({apart} >= 0 {'or' if wraps else 'and'} {apart} <= {threshold})"
    pairs = [(value, fill)]
    if scalar[0] == "c":
        pairs = [(f"{part}({value})", f"{part}({fill})") for part in ("real", "imag")]
    same = " and ".join(f"((isnan({p}) and isnan({q})) or {p} == {q})" for p, q in pairs)
    return f"({same}) or ({threshold} > 0 and abs({value} - {fill}) <= {threshold})"


@operation(method=True, places="mask", torch="sparse_mask", shape="same", dtype="same", fill="same")
@differentiable(lambda x, mask: (buffer_of(x),))
def sparse_mask(x: Any, mask: Any, /) -> Tensor:
    """The elements of `x` that `mask` specifies, in the structure of `mask`; its values play no part.

    Parameters
    ----------
    x : tensor of any format, or array
    mask : Tensor of the same shape

    Returns
    -------
    Tensor over pos and crd of `mask`, with the dtype and fill value of `x`; what `x` does not specify is its fill
    value, stored. A mask that stores an element twice is coalesced first.

    Cost: O(nse of both) where they are walked in one order, a search per element of `mask` otherwise.
    Raises ShapeError where the shapes differ.

    See also: sddmm, pattern, prune.

    Examples
    --------
    >>> A = ow.asarray([[1, 2], [3, 4]])
    >>> ow.sparse_mask(A, ow.eye(2, format="csr")).to_numpy()
    array([[1, 0],
           [0, 4]])
    """
    t: Tensor
    m: Tensor
    t, m = one_library(as_tensor(x), as_tensor(mask))
    if t.shape != m.shape:
        raise ShapeError(f"sparse_mask: shape {t.shape} of the tensor, {m.shape} of the mask\n  help: make them equal")
    if not m.format.is_unique:
        m = m.asformat(canonical(m.format))
    on_host(m._storage, "sparse_mask")
    on_host(t._storage, "sparse_mask")
    if not m.ndim:
        return t
    return Tensor._from_storage(m._storage.with_values(values_at(t, m._storage), t.fill_value))


def values_at(t: Tensor, mask: Storage, dims: Sequence[int | None] | None = None) -> Array:
    """The element of `t` at the coordinates of every stored element of `mask`; the fill value where it stores none.

    dims: the dimension of the mask that each dimension of `t` is, None for one of extent 1 of which coordinate 0 is
    taken; without, both have the same dimensions. A mask may store an element several times.
    """
    mask = structure_of(mask) if is_torch(mask.values) and is_recorded(mask.values) else mask
    keys, values = _linear_keys(t)
    source, scalar = operand_of(mask), t._storage.scalar
    out = full(length(mask.values), scalar, t.fill_value, t.values)
    if not length(mask.values) or 0 in mask.shape:
        return out
    steps = [0] * len(mask.shape)
    stride = 1
    for d, n in reversed(list(enumerate(t.shape))):
        mask_dim = d if dims is None else dims[d]
        if mask_dim is not None:
            steps[mask_dim] += stride
        stride *= n
    key = f"find {source.format} {source.pos} {source.crd} {source.ragged} {scalar} {keys is None}"
    arguments: dict[str, Any] = source_words(mask) | {"vals": values, "b_vals": out, "a_vals": 0}
    arguments |= {f"step{d}": n for d, n in enumerate(steps)}
    if keys is not None:
        arguments |= {"keys": address(keys), "count": len(keys)}
    call(key, lambda: find_kernel(source, scalar, dense=keys is None), arguments)
    return out


def _linear_keys(t: Tensor) -> tuple[Ints | None, Any]:
    """The sorted row-major linear indices of the stored elements, and their values; None and all values if dense."""
    if t.format.is_dense:
        return None, t.asformat("dense").values
    coordinates = t.coalesce()._storage if t.dense_dim == 0 else t.asformat(coo(t.ndim))._storage
    keys = np.zeros(length(coordinates.values), np.int64)
    for d, n in enumerate(t.shape):
        keys *= n
        keys += to_numpy(coordinates.crd[d])
    return keys, coordinates.values
