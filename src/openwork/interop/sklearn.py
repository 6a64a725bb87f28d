"""Tensors -> what scikit-learn's estimators take: SciPy's CSR or CSC arrays and dense arrays, over the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..runtime.layouts import layout_of
from ..storage.buffers import is_torch, to_numpy
from ..tensor.tensor import Tensor
from .export import to_scipy

__all__ = ["to_sklearn"]


def to_sklearn(*arrays: Any) -> Any:
    """The operands as scikit-learn takes them.

    Parameters
    ----------
    arrays : Tensors, of which matrices may be sparse; an array of torch becomes NumPy's, anything else stays
        as it is

    Returns
    -------
    of each one, a tuple of several: a `scipy.sparse.csr_array`, or a `csc_array` of CSC, without duplicates and over
    the same values; a NumPy array of a tensor of dense format, or of rank 1, as targets are. Indices are made 32-bit
    where they fit, which many estimators ask for; they are shared where they are so already.

    Raises UnsupportedError for what torch records (detach it first), for a sparse matrix whose fill value is not zero;
    ShapeError for a sparse one of other rank.

    Cost: nothing is copied from CSR and CSC; else O(nse).
    See also: Tensor.to_scipy, linalg.pca.

    Examples
    --------
    >>> import openwork as ow
    >>> ow.to_sklearn(ow.asarray([[0, 2.0], [1, 0]], format="coo")).format
    'csr'
    """
    results = tuple(_convert(x) for x in arrays)
    return results[0] if len(results) == 1 else results


def _convert(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return to_numpy(x) if is_torch(x) else x
    to_numpy(x._storage.values)  # refuses what torch records, and another device's memory
    if x.format.is_dense or x.ndim == 1:
        return to_numpy(x.to_dense())
    if x.ndim != 2:
        raise ShapeError(
            f"to_sklearn: a sparse tensor of shape {x.shape}\n  expected: samples by features\n  help: reshape it"
        )
    layout = layout_of(x.format)
    array = to_scipy(x.asformat("csc" if layout is not None and layout.kind == "csc" else "csr"))
    if array.indices.dtype != np.int32 and max(*array.shape, array.nnz) < 2**31:
        array.indices, array.indptr = array.indices.astype(np.int32), array.indptr.astype(np.int32)
    return array
