"""Extents and a density -> a sparse Tensor with uniformly distributed coordinates and random values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..format import coo
from ..format import format as parse
from ..format.format import Format
from ..integers import extents
from ..interruptible import LONG, whole
from ..reals import real
from ..runtime.library_errors import check_room, sized
from ..runtime.operation import operation
from ..storage import buffers
from ..storage.specified import Ints
from ..storage.storage import Storage, check_extents
from ..tensor.one_library import typed_like
from ..tensor.tensor import Tensor, python_scalar

__all__ = ["random", "random_array"]


@operation(operands=False)
@sized
def random(
    shape: Sequence[int],
    density: float = 0.01,
    *,
    format: str | Format = "coo",
    dtype: object | None = "float64",
    rng: np.random.Generator | int | None = None,
    values: Callable[[int], Any] | None = None,
) -> Tensor:
    """A tensor with specified elements at random places.

    Parameters
    ----------
    shape : extents of the dimensions
    density : fraction of elements that are specified; nse is its product with the size, rounded
    format : of the result
    dtype : of the values; None takes that of what `values` gives
    rng : NumPy generator or seed
    values : function of nse giving the values; default uniform in [0, 1), for integers from the dtype's range,
        for bool all true

    Returns
    -------
    Tensor; all sets of places are equally likely, no place is drawn twice

    Cost: O(nse log nse) time, O(nse) memory.

    See also: random_array, asarray.

    Examples
    --------
    >>> A = ow.random((100, 100), 0.05, format="csr", rng=0)
    >>> A.shape, A.nse
    ((100, 100), 500)
    """
    shape = extents(shape, "random")
    density = real(density, "random", "density")
    if not 0 <= density <= 1:
        raise ValueError(f"random: expected a density from 0 to 1; got: {density}\n  help: density is nse / size")
    check_extents(shape)
    if isinstance(format, str):
        format = parse(format, len(shape))  # of a matrix's format no batch is made, which would be padded
    if isinstance(rng, int) and rng < 0:
        raise ValueError(f"random: expected a seed of 0 or more; got: {rng}\n  help: give a generator, or None")
    generator = np.random.default_rng(rng)
    size = math.prod(shape)
    nse = _rounded_product(size, density)
    check_room("random", nse)
    coordinates = _random_coordinates(generator, shape, size, nse)
    data = None if values is None else np.asarray(values(nse))
    scalar = buffers.scalar_name((np.dtype(float) if data is None else data.dtype) if dtype is None else dtype)
    data = _random_values(generator, scalar, nse) if data is None else data
    if data.shape != (nse,):
        raise ShapeError(f"random: expected {nse} values; got shape {data.shape}\n  help: values(n) returns n of them")
    index = np.int32 if max(shape, default=0) < 2**31 else np.int64
    crd = tuple(np.ascontiguousarray(c, index) for c in coordinates)
    pos = tuple(np.array([0, nse], np.int32 if nse < 2**31 else np.int64) if k == 0 else None for k in range(len(crd)))
    data = buffers.cast(data, scalar)
    if not shape:
        data = data if nse else np.zeros(1, data.dtype)
    storage = Storage(shape, coo(len(shape)), scalar, python_scalar(0, scalar), pos, crd, data)
    return typed_like(Tensor._from_storage(storage), dtype).asformat(format)


@operation(operands=False)
@sized
def random_array(
    shape: Sequence[int],
    *,
    density: float = 0.01,
    format: str | Format = "coo",
    dtype: object = None,
    rng: np.random.Generator | int | None = None,
    data_sampler: Callable[..., Any] | None = None,
) -> Tensor:
    """`random` with SciPy's arguments: `data_sampler(size=n)`, or `data_sampler(size=n, dtype=dtype)`, gives values.

    dtype : of the values; what `data_sampler` gives without, or float64

    Parameters
    ----------
    density : the share of elements that are specified
    data_sampler : gives the values; by default they are uniform between 0 and 1

    Returns
    -------
    Tensor with specified elements at random places

    Cost: O(nse log nse).
    See also: random.

    Examples
    --------
    >>> ow.random_array((100, 100), density=0.05, rng=np.random.default_rng(0)).nse
    500
    """
    if data_sampler is None:
        return random(shape, density, format=format, dtype="float64" if dtype is None else dtype, rng=rng)
    typed = dtype is not None and "dtype" in signature(data_sampler).parameters
    options = {"dtype": dtype} if typed else {}
    values = partial(_call_sampler, data_sampler, options)
    return random(shape, density, format=format, dtype=dtype, rng=rng, values=values)


def _rounded_product(size: int, density: float) -> int:
    """`round(density * size)`, for sizes beyond the range of floats too."""
    return round(density * size) if size.bit_length() < 1000 else int(Fraction(density) * size)


def _call_sampler(sampler: Callable[..., Any], options: dict[str, Any], n: int) -> Any:
    return sampler(size=n, **options)


def _random_coordinates(rng: np.random.Generator, shape: tuple[int, ...], size: int, nse: int) -> list[Ints]:
    """`nse` distinct coordinates in row-major order, one array per dimension."""
    if size < 2**63:
        linear = whole(_distinct_integers, (rng, size, nse), {}) if nse >= LONG else _distinct_integers(rng, size, nse)
        columns = []
        for n in reversed(shape):
            columns.append(linear % n)
            linear = linear // n
        return columns[::-1]
    coordinates = np.empty((len(shape), 0), np.int64)
    while coordinates.shape[1] < nse:
        drawn = np.stack([rng.integers(0, n, nse - coordinates.shape[1]) for n in shape])
        coordinates = np.unique(np.concatenate([coordinates, drawn], axis=1), axis=1)
    return list(coordinates)


def _distinct_integers(rng: np.random.Generator, size: int, nse: int) -> Ints:
    """`nse` sorted distinct integers below `size`, all sets equally likely."""
    if 4 * nse > size:
        return np.sort(rng.permutation(size)[:nse])
    chosen = np.empty(0, np.int64)
    while len(chosen) < nse:
        missing = nse - len(chosen)
        clashes = missing * (missing + len(chosen)) // size
        drawn = rng.integers(0, size, missing + clashes + clashes // 8 + 16)
        chosen = np.sort(np.concatenate([chosen, drawn]))
        chosen = chosen[np.append(True, chosen[1:] != chosen[:-1])]
    surplus = len(chosen) - nse
    return np.delete(chosen, rng.choice(len(chosen), surplus, replace=False)) if surplus else chosen


def _random_values(rng: np.random.Generator, scalar: str, nse: int) -> np.ndarray[Any, Any]:
    dtype = buffers.numpy_dtype(scalar)
    if scalar == "bool":
        return np.ones(nse, np.bool_)
    if scalar[0] in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, nse, dtype=dtype, endpoint=True)
    if scalar in ("c64", "c128"):
        return (rng.random(nse) + 1j * rng.random(nse)).astype(dtype)
    return rng.random(nse).astype(dtype)
