"""Tensor -> Dask's dispatchers: bytes, tokens, and the functions of chunks that Dask has no NumPy function for."""

from __future__ import annotations

from typing import Any

from ..provided import provides
from ..storage import buffers
from ..tensor.tensor import Tensor

__all__ = ["register", "register_sizes", "token"]


def register_sizes(sizeof: Any) -> None:
    """Tell Dask's dispatcher of sizes the bytes of Tensors.

    Dask calls it at the entry point "dask.sizeof" while it is imported itself, when nothing else of it can be.
    """
    sizeof.register(Tensor, _nbytes)


def register() -> None:
    """Make Tensors chunks of Dask arrays; to do it twice changes nothing, and nobody has to.

    Raises ImportError where Dask or its arrays are not installed.
    Cost: that of importing Dask's arrays.
    See also: from_file, BlockMatrix.

    Examples
    --------
    >>> import dask.array as da
    >>> a = da.from_array(ow.eye_array(4, format="csr"), chunks=2)
    >>> type((a * 2).compute()).__name__
    'Tensor'
    """
    from dask.array import chunk_types, dispatch
    from dask.sizeof import sizeof

    if Tensor in chunk_types._HANDLED_CHUNK_TYPES:
        return
    chunk_types.register_chunk_type(Tensor)
    dispatch.to_numpy_dispatch.register(Tensor, _to_numpy)
    dispatch.percentile_lookup.register(Tensor, _percentile)
    dispatch.nannumel_lookup.register(Tensor, _nannumel)
    register_sizes(sizeof)


@provides("dask token")
def token(t: Tensor) -> tuple[Any, ...]:
    """What tells a tensor from others, the same in every process: shape, format, dtype, fill value, and its buffers.

    Tokens of torch's tensors differ from run to run; here they are those of NumPy's arrays over the same memory.
    Dask asks for it where a tensor gets into an array or a graph, by when it has to know the type.
    """
    from dask.tokenize import normalize_token

    register()
    s = t._storage
    arrays = (None if b is None else buffers.to_numpy(b, detach=True) for b in (*s.pos, *s.crd, s.values))
    return (
        "openwork.Tensor", buffers.library_of(s.values), s.shape, s.format.identity, s.scalar, repr(s.fill_value),
        *(normalize_token(a) for a in arrays),
    )  # fmt: skip


def _nbytes(t: Tensor) -> int:
    return int(t.nbytes)


def _to_numpy(t: Tensor, **kwargs: Any) -> Any:
    return t.to_numpy()


def _nannumel(t: Tensor, **kwargs: Any) -> Any:
    """How many elements are not NaN, dense: sparse counts of chunks of other extents have other fill values."""
    from dask.array import chunk

    count = chunk.sum(~t.isnan(), **kwargs)
    return count.asformat("dense") if isinstance(count, Tensor) else count


def _percentile(t: Tensor, q: Any, method: str = "linear") -> Any:
    """Dask's percentiles of one chunk, a vector, and how many elements it has: by a sort of all of its elements."""
    from dask.array.percentile import _percentile as of_array

    return of_array(t.to_numpy(), q, method)
