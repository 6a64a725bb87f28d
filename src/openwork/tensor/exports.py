"""A Tensor -> what other libraries hold: arrays (SciPy, NumPy, torch, DLPack), frames (pandas), graphs (networkx)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..provided import provided
from ..runtime.library_errors import FAILURES, explain, sized
from ..storage import buffers
from ..storage.buffers import Array

if TYPE_CHECKING:
    from .tensor import Tensor

to_arrow = provided("to_arrow", __name__)
arrays_of: Callable[..., dict[str, Any]] = provided("arrays_of", __name__)
descriptor_of: Callable[..., dict[str, Any]] = provided("descriptor_of", __name__)
token = provided("dask token", __name__)
to_scipy = provided("to_scipy", __name__)
to_torch = provided("to_torch", __name__)
to_dense = provided("to_dense", __name__)
to_pandas = provided("to_pandas", __name__)
to_networkx = provided("to_networkx", __name__)
written = provided("written", __name__)
array: Callable[..., np.ndarray[Any, Any]] = provided("to array", __name__)
dlpack = provided("to dlpack", __name__)

__all__ = ["Exports"]


def _me(t: Exports) -> Tensor:
    return cast("Tensor", t)


class Exports:
    """The conversions of `Tensor` to other libraries' arrays, frames and graphs."""

    __slots__ = ()

    @sized
    def to_scipy(self, format: str | None = None) -> Any:
        """The tensor as a SciPy sparse array; see `interop.to_scipy`."""

        return to_scipy(_me(self), format)

    @sized
    def to_torch(self, layout: Any = None) -> Any:
        """The tensor as a torch tensor; see `interop.to_torch`."""

        return to_torch(_me(self), layout)

    def __dask_tokenize__(self) -> Any:
        """Dask's name for the contents, the same in every process; see `interop.dask`."""
        return token(_me(self))

    def __binsparse_descriptor__(self) -> dict[str, Any]:
        """The binsparse description of the tensor, parsed; see `interop.binsparse`."""
        return descriptor_of(_me(self))

    def __binsparse__(self, *, descriptor: Any = None, copy: bool | None = None) -> dict[str, Any]:
        """The arrays that the description names; see `interop.binsparse`."""
        return arrays_of(_me(self), descriptor, copy)

    def to_arrow(self) -> Any:
        """The tensor as a sparse tensor of pyarrow; see `interop.to_arrow`."""
        return to_arrow(_me(self))

    def to_pandas(self, index: Any = None, columns: Any = None) -> Any:
        """The matrix as a pandas frame of sparse columns, the vector as a sparse series; see `interop.to_pandas`."""
        return to_pandas(_me(self), index, columns)

    def to_networkx(self, create_using: Any = None) -> Any:
        """The square matrix as the graph whose adjacency it is; see `interop.to_networkx`."""
        return to_networkx(_me(self), create_using)

    def to_dense(self, *, out: Any = None) -> Array:
        """The dense array of the tensor's own library, written into `out` where it is given."""
        try:
            if out is not None:
                return written(self, out)
            return to_dense(self)
        except FAILURES as error:
            explain("to_dense", error, (self,))
            raise

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The dense NumPy array; a view where the format is dense."""
        try:
            dense: np.ndarray[Any, Any] = buffers.to_numpy(self.to_dense(), detach=True)
        except FAILURES as error:
            explain("to_numpy", error, (self,))
            raise
        return dense if dense.dtype.kind != "V" else dense.view(buffers.numpy_dtype("bf16"))  # or the error of that

    todense = to_numpy
    toarray = to_numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:

        return array(_me(self), dtype, copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:

        return dlpack(_me(self), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> Any:
        return _me(self)._storage.values.__dlpack_device__()
