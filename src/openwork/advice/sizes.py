"""A matrix's coordinates -> the bytes that it takes in each format; nothing is converted."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["block_count", "bytes_of", "diagonal_count", "format_table"]


def block_count(csr: Any, rows: int, cols: int) -> int:
    """The number of rows x cols blocks that hold an element."""
    i = np.repeat(np.arange(csr.shape[0], dtype=np.int64), np.diff(csr.indptr))
    wide = -(-csr.shape[1] // cols)
    return len(np.unique((i // rows) * wide + csr.indices // cols))


def diagonal_count(csr: Any) -> int:
    i = np.repeat(np.arange(csr.shape[0], dtype=np.int64), np.diff(csr.indptr))
    return len(np.unique(csr.indices - i))


def bytes_of(csr: Any, index: int = 4) -> dict[str, int]:
    """Format name -> bytes of all its buffers, with `index` bytes per pos and crd entry."""
    m, n = csr.shape
    nse, value = int(csr.indptr[-1]), csr.dtype.itemsize
    degrees = np.diff(csr.indptr)
    full_rows, longest = int(np.count_nonzero(degrees)), int(degrees.max(initial=0))
    full_cols = len(np.unique(csr.indices))
    element = index + value
    sizes = {
        "coo": 2 * index + nse * (index + element),
        "csr": (m + 1) * index + nse * element,
        "csc": (n + 1) * index + nse * element,
        "dcsr": (2 + full_rows + full_rows + 1) * index + nse * element,
        "dcsc": (2 + full_cols + full_cols + 1) * index + nse * element,
    }
    for b in (2, 4):
        sizes[f"bsr({b}, {b})"] = (-(-m // b) + 1) * index + block_count(csr, b, b) * (index + b * b * value)
    diagonals = diagonal_count(csr)
    sizes["dia"] = (2 + diagonals) * index + diagonals * m * value
    if longest:
        sizes[f"ell({longest})"] = m * longest * element
    sizes["bitmap"] = m * n * (1 + value)
    sizes["dense"] = m * n * value
    return sizes


def format_table(csr: Any) -> list[tuple[str, int, float]]:
    """Rows (format, bytes, bytes relative to the smallest), smallest first."""
    sizes = sorted(bytes_of(csr).items(), key=lambda item: item[1])
    least = max(1, sizes[0][1])
    return [(name, count, count / least) for name, count in sizes]
