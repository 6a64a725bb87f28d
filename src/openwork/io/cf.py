"""xarray Datasets with sparse variables -> Datasets of dense ones by CF's compression by gathering, and back.

A sparse variable v(t, x) becomes v(v_place), its stored values, with a variable v_place(v_place) of their row-major
places, whose attribute `compress` is "t x". The attributes `sparse_fill_value`, `sparse_format` and `sparse_shape` of v
hold the rest. Any library that writes netCDF or zarr writes these. Source: CF conventions 1.11, section 8.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DTypeError, FileFormatError, FormatError, UnsupportedError
from ..interop.constructors import assemble
from ..namespaces import listing as _listing
from ..storage.buffers import to_numpy
from ..tensor.tensor import Tensor

__all__ = ["decode", "encode"]

__dir__ = _listing(__name__, __all__)

_ATTRIBUTES = ("sparse_fill_value", "sparse_format", "sparse_shape")


def encode(dataset: Any) -> Any:
    """The Dataset (or a DataArray's) with every sparse variable gathered; others stay as they are.

    Raises UnsupportedError for a complex fill value, and where a name is taken.
    """
    ds = _dataset(dataset, "encode")
    for name, v in ds.variables.items():
        t = v._data  # of a variable of a file, which is none, nothing is loaded
        if not isinstance(t, Tensor) or not t.ndim:
            continue
        if t.format.is_dense:
            ds = ds.assign({name: (v.dims, t.to_numpy(), v.attrs)})
            continue
        places_name = f"{name}_place"
        if places_name in ds.variables or places_name in ds.dims:
            raise UnsupportedError(f"encode: there is a variable {places_name!r}\n  help: rename it")
        if isinstance(t.fill_value, complex):
            raise UnsupportedError(f"encode: {name!r} has the fill value {t.fill_value}\n  help: encode parts")
        coo = t.asformat("coo")
        crd = [np.asarray(to_numpy(c), np.int64) for k in range(t.ndim) if (c := coo.crd(k)) is not None]
        places = np.ravel_multi_index(tuple(crd), t.shape) if t.size else np.zeros(0, np.int64)
        fill = np.asarray(t.fill_value, t.dtype)
        attributes = {
            "sparse_fill_value": int(fill) if fill.dtype.kind == "b" else fill[()], "sparse_format": str(t.format),
            "sparse_shape": np.array(t.shape, np.int64),
        }  # fmt: skip
        places_variable = (places_name, places.astype(np.int64), {"compress": " ".join(map(str, v.dims))})
        ds = ds.drop_vars(name).assign_coords({places_name: places_variable})
        ds = ds.assign({name: (places_name, np.asarray(to_numpy(coo.values)), {**v.attrs, **attributes})})
    return ds


def decode(dataset: Any) -> Any:
    """The Dataset with every gathered variable as a sparse one, in its format.

    Raises FileFormatError where places, shape and dimensions do not fit each other.
    """
    ds, places_names = _dataset(dataset, "decode"), set()
    dataset = ds
    for name, v in dataset.variables.items():
        if not all(a in v.attrs for a in _ATTRIBUTES) or len(v.dims) != 1:
            continue
        places_name = v.dims[0]
        places = np.asarray(dataset.variables[places_name].values)
        dims = str(dataset.variables[places_name].attrs.get("compress", "")).split()
        values = np.ascontiguousarray(v.values)
        shape, fill = _described(name, v.attrs, values.dtype)
        size = math.prod(shape)
        if len(dims) != len(shape) or places.dtype.kind not in "iu":
            raise FileFormatError(f"decode: {name!r}: `compress` of {places_name!r} is {dims} for the shape {shape}")
        if places.size and not (places.min() >= 0 and places.max() < size):
            raise FileFormatError(f"decode: {name!r}: places from {places.min()} to {places.max()} of {size} elements")
        crd = dict(enumerate(np.ascontiguousarray(c) for c in np.unravel_index(places.astype(np.int64), shape)))
        t = assemble(
            _coo(len(shape)), shape, pos={0: np.array([0, len(values)])}, crd=crd, values=values, fill_value=fill
        )
        try:
            t = t.asformat(str(v.attrs["sparse_format"]))
        except FormatError as error:
            raise FileFormatError(
                f"decode: {name!r}: sparse_format is not a format of {t.ndim} dimensions: {error}"
            ) from error
        attrs = {k: a for k, a in v.attrs.items() if k not in _ATTRIBUTES}
        places_names.add(places_name)
        ds = ds.drop_vars(name).assign({name: (tuple(dims), t, attrs)})
    return ds.drop_vars(places_names)


def _described(name: Any, attributes: Any, dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
    """The shape and the fill value that a gathered variable's attributes say. Raises FileFormatError for others."""
    shape, fill = (np.asarray(attributes[key]) for key in ("sparse_shape", "sparse_fill_value"))
    extents = tuple(int(n) for n in shape.ravel()) if shape.dtype.kind in "iu" else ()
    if not extents or min(extents) < 0 or math.prod(extents) >= 1 << 63:
        raise FileFormatError(f"decode: {name!r}: sparse_shape is {attributes['sparse_shape']!r}\n  expected: extents")
    if fill.size != 1 or fill.dtype.kind not in "biuf":
        raise FileFormatError(
            f"decode: {name!r}: sparse_fill_value is {attributes['sparse_fill_value']!r}\n  expected: a number"
        )
    return extents, fill.astype(dtype).item()


def _dataset(dataset: Any, operation: str) -> Any:
    """The Dataset, which a DataArray is made one of."""
    if hasattr(dataset, "data_vars"):
        return dataset
    if not hasattr(dataset, "to_dataset"):
        raise DTypeError(
            f"{operation}: expected an xarray Dataset or DataArray; got {type(dataset).__name__}"
            "\n  help: xarray.DataArray(A, dims=...) of a Tensor"
        )
    return dataset.to_dataset(name=dataset.name or "data")


def _coo(ndim: int) -> str:
    """Coordinates in no order, several at one place allowed: what a file may hold."""
    names = [f"i{k}" for k in range(ndim)]
    levels = [f"{n} : {'singleton' if k else 'compressed'}(nonunique, unordered)" for k, n in enumerate(names)]
    return f"({', '.join(names)}) -> ({', '.join(levels)})"
