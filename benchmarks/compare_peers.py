"""Who takes part in `compare.py`: each peer that is installed, its version, and a matrix in its own type."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PEERS", "Matrix", "installed", "set_threads"]

PEERS = {
    "openwork": ("openwork", "openwork"),
    "scipy": ("scipy", "scipy"),
    "torch": ("torch", "torch"),
    "mkl": ("sparse_dot_mkl", "mkl"),
    "graphblas": ("graphblas", "suitesparse-graphblas"),
    "sparse": ("sparse", "sparse"),
}
"""Name in the table: (module, distribution whose version is shown)."""


def installed(threads: int) -> dict[str, str]:
    """The peers that can be imported, with their versions; MKL and OpenMP are told of the threads before they load."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENWORK_NUM_THREADS"):
        os.environ[name] = str(threads)
    for library in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")):
        os.environ.setdefault("MKL_RT", str(library))  # where pip puts it, which no loader looks into
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (module, distribution) in PEERS.items():
            try:
                if name == "graphblas":
                    _ = import_module(module).ss.config  # it is loaded at the first use: a missing backend shows then
                import_module(module)
                found[name] = metadata.version(distribution)
            except (ImportError, OSError, AttributeError, metadata.PackageNotFoundError):
                continue
    return found


def set_threads(peers: dict[str, str], threads: int) -> None:
    """The same number of threads for everybody (SciPy's and pydata's sparse operations use one)."""
    import openwork as ow

    ow.set_num_threads(threads)
    if "torch" in peers:
        import torch

        torch.set_num_threads(threads)
    if "mkl" in peers:
        import sparse_dot_mkl

        sparse_dot_mkl.set_debug_mode(False)
        getattr(sparse_dot_mkl, "mkl_set_num_threads", lambda _: None)(threads)
    if "graphblas" in peers:
        import graphblas

        graphblas.ss.config["nthreads"] = threads


@dataclass
class Matrix:
    """One SciPy CSR array, sorted and without duplicates, and the same in each peer's type, made when first asked."""

    csr: Any

    @cached_property
    def openwork(self) -> Any:
        import openwork as ow

        return ow.asarray(self.csr)

    @property
    def scipy(self) -> Any:
        return self.csr

    @cached_property
    def torch(self) -> Any:
        import torch

        buffers = [torch.from_numpy(b) for b in (self.csr.indptr, self.csr.indices, self.csr.data)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.sparse_csr_tensor(*buffers, size=self.csr.shape)

    @cached_property
    def mkl(self) -> Any:
        from scipy.sparse import csr_matrix

        return csr_matrix(self.csr)

    @cached_property
    def graphblas(self) -> Any:
        import graphblas

        c = self.csr
        parts = (c.indptr.astype(np.uint64), c.indices.astype(np.uint64), c.data)
        return graphblas.Matrix.from_csr(*parts, nrows=c.shape[0], ncols=c.shape[1])

    @cached_property
    def sparse(self) -> Any:
        import sparse

        c = self.csr
        return sparse.GCXS((c.data, c.indices, c.indptr), shape=c.shape, compressed_axes=[0])

    @cached_property
    def sparse_coo(self) -> Any:
        return self.sparse.tocoo()


def as_csr(result: Any) -> Any:
    """Anybody's matrix as a sorted SciPy CSR array."""
    from scipy.sparse import csr_array

    if hasattr(result, "to_csr"):
        indptr, indices, data = result.to_csr()
        parts = (data, indices.astype(np.int64), indptr.astype(np.int64))
        out = csr_array(parts, shape=(result.nrows, result.ncols))
    elif hasattr(result, "crow_indices") and not hasattr(result, "to_scipy"):
        parts = (result.values().numpy(), result.col_indices().numpy(), result.crow_indices().numpy())
        out = csr_array(parts, shape=tuple(result.shape))
    elif hasattr(result, "to_scipy"):
        return result.asformat("csr").to_scipy("csr")
    elif hasattr(result, "to_scipy_sparse"):
        out = csr_array(result.to_scipy_sparse())
    else:
        out = csr_array(result)
    out = out.copy() if not out.has_sorted_indices else out
    out.sort_indices()
    return out


def same(got: Any, want: Any) -> bool:
    """Whether two CSR arrays hold the same numbers up to rounding; explicit zeros play no part."""
    got, want = as_csr(got), as_csr(want)
    if got.shape != want.shape:
        return False
    if got.nnz == want.nnz and np.array_equal(got.indices, want.indices):
        scale = float(np.abs(want.data).max(initial=0.0))
        return bool(np.allclose(got.data, want.data, rtol=1e-9, atol=1e-12 * scale))
    difference = abs(got - want)
    return bool(difference.nnz == 0 or difference.max() <= 1e-9 * abs(want).max())


Run = Callable[[], object]
