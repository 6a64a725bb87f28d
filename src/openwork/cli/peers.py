"""The same matrix in SciPy and in torch, for comparison. torch only where it is installed."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

import openwork as ow
from openwork.advice.sizes import diagonal_count

__all__ = ["blocks_of", "has_torch", "in_scipy", "in_torch", "same_matrix", "set_threads"]

BLOCKED = re.compile(r"bs[rc]\(\s*(\d+)\s*,\s*(\d+)\s*\)")
DIA_LIMIT = 4


def has_torch() -> bool:
    return find_spec("torch") is not None


def set_threads(threads: int) -> None:
    """The same number of threads for openwork and torch (SciPy's sparse products use one)."""
    ow.set_num_threads(threads)
    if has_torch():
        import torch

        torch.set_num_threads(threads)


def blocks_of(format: str) -> tuple[int, int] | None:
    """`blocks_of("bsr(2, 3)") == (2, 3)`; None where the format has no blocks."""
    match = BLOCKED.fullmatch(format.strip().lower())
    return (int(match[1]), int(match[2])) if match else None


def padded(csr: Any, blocks: tuple[int, int]) -> Any:
    """The matrix with its extents rounded up to whole blocks, which SciPy and torch ask for."""
    shape = tuple(-(-extent // b) * b for extent, b in zip(csr.shape, blocks, strict=True))
    if shape == csr.shape:
        return csr
    wider = csr.tocsr(copy=True)  # which takes any extents; SciPy goes over CSR to blocks itself
    wider.resize(shape)
    return wider


def in_scipy(csr: Any, format: str) -> tuple[str, Any]:
    """(the format used, the matrix): the same format where SciPy has it, otherwise CSR."""
    name = format.strip().lower()
    if name in ("csc", "coo"):
        return name, csr.asformat(name)
    if name == "dia" and diagonal_count(csr) * csr.shape[1] <= DIA_LIMIT * max(1, csr.nnz):
        return name, csr.todia()
    blocks = blocks_of(name)
    if blocks and name.startswith("bsr"):
        return name, padded(csr, blocks).tobsr(blocks)
    return "csr", csr


def in_torch(csr: Any, format: str) -> tuple[str, Any]:
    """(the layout used, the tensor): the same layout where torch has it, otherwise CSR."""
    import torch

    name = format.strip().lower()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = blocks_of(name)
        if blocks and name.startswith("bsr"):
            bsr = padded(csr, blocks).tobsr(blocks)
            buffers = [torch.from_numpy(b) for b in (bsr.indptr, bsr.indices, bsr.data)]
            return name, torch.sparse_bsr_tensor(*buffers, size=bsr.shape)
        if name == "coo":
            coo = csr.tocoo()
            indices = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
            return name, torch.sparse_coo_tensor(indices, torch.from_numpy(coo.data), coo.shape, is_coalesced=True)
        if name == "csc":
            csc = csr.tocsc()
            buffers = [torch.from_numpy(b) for b in (csc.indptr, csc.indices, csc.data)]
            return name, torch.sparse_csc_tensor(*buffers, size=csc.shape)
        buffers = [torch.from_numpy(b) for b in (csr.indptr, csr.indices, csr.data)]
        return "csr", torch.sparse_csr_tensor(*buffers, size=csr.shape)


def same_matrix(got: Any, want: Any) -> bool:
    """Two SciPy matrices with the same values everywhere, explicit zeros or not."""
    if got.shape != want.shape:
        return False
    return not (got.tocsr() - want.tocsr()).count_nonzero()
