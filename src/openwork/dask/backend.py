"""Dask's name "openwork" of a library of arrays -> its functions: `x.to_backend`, and creation of arrays of Tensors."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import config
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.utils import Dispatch

from .. import Format, Tensor, asarray, full
from ..format import format as parse

__all__ = ["TensorBackend", "register_backend"]

NAME = "openwork"


def _chunk(data: Any, format: Any = None) -> Tensor:
    """A chunk of any library as a Tensor in the format; by default its own, sorted coordinates of a dense array."""
    t = asarray(data)
    if format is None:
        return t.asformat("coo") if t.format.is_dense and t.ndim and not isinstance(data, Tensor) else t
    return t.asformat(format)


to_tensor_dispatch = Dispatch("to_tensor_dispatch")
to_tensor_dispatch.register(object, _chunk)


class TensorBackend(ArrayBackendEntrypoint):  # type: ignore[misc]
    """Chunks that are Tensors, for Dask's option "array.backend" and `x.to_backend("openwork", format="csr")`.

    Arrays that are created store nothing: of `ones` and `full` the number is the fill value. Random numbers and
    `arange`, which are dense anyway, are in dense chunks: NumPy's arrays, and Tensors of dense format.
    """

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """The function of a chunk."""
        return to_tensor_dispatch

    @classmethod
    def to_backend(cls, data: Any, format: Any = None, **kwargs: Any) -> Any:
        """An array of Dask of any chunks -> of Tensors, in the format."""
        wanted = None if format is None or isinstance(format, Format) else parse(format, data.ndim)
        wanted = format if isinstance(format, Format) else wanted
        if isinstance(data._meta, Tensor) and wanted in (None, data._meta.format):
            return data
        return data.map_blocks(to_tensor_dispatch, format=wanted, meta=_chunk(data._meta, wanted), **kwargs)

    RandomState = property(lambda self: np.random.RandomState)
    default_bit_generator = property(lambda self: np.random.PCG64)

    @staticmethod
    def zeros(*args: Any, **kwargs: Any) -> Any:
        """`da.zeros`, in chunks of a format: `format=`, sorted coordinates by default."""
        return _created("zeros", *args, **kwargs)

    @staticmethod
    def empty(*args: Any, **kwargs: Any) -> Any:
        """`da.zeros`."""
        return _created("zeros", *args, **kwargs)

    @staticmethod
    def ones(*args: Any, **kwargs: Any) -> Any:
        """`da.ones`, whose fill value is 1."""
        return _created("ones", *args, **kwargs)

    @staticmethod
    def full(*args: Any, **kwargs: Any) -> Any:
        """`da.full`, whose fill value is the number."""
        return _created("full", *args, **kwargs)

    @staticmethod
    def arange(*args: Any, **kwargs: Any) -> Any:
        """`da.arange`, in chunks of dense format."""
        with config.set({"array.backend": "numpy"}):
            return da.arange(*args, **kwargs).map_blocks(asarray)


def _created(name: str, *args: Any, format: Any = "coo", **kwargs: Any) -> Any:
    """What Dask's function of this name makes, with a chunk that stores nothing for each of NumPy's."""
    with config.set({"array.backend": "numpy"}):
        plain = getattr(da, name)(*args, **kwargs)
    if kwargs.get("meta") is not None or not plain.ndim:
        return plain
    wanted = format if isinstance(format, Format) else parse(format, plain.ndim)
    return plain.map_blocks(
        _constant, wanted, dtype=plain.dtype, meta=_constant(np.zeros((0,) * plain.ndim, plain.dtype), wanted)
    )


def _constant(block: Any, format: Format) -> Tensor:
    """A chunk all of whose elements are those of the block, one number."""
    number = block.flat[0] if block.size else 0
    return full(block.shape, number, dtype=block.dtype, format=format)


def register_backend() -> None:
    """Tell Dask the name; to do it twice changes nothing."""
    if NAME not in array_creation_dispatch._lookup:
        array_creation_dispatch.register_backend(NAME, TensorBackend())
