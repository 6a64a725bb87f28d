"""A tensor -> the formats that may suit it, with the bytes that each takes and what its structure says about it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import Tensor
from ..classes import frozen
from .sizes import block_count, bytes_of, diagonal_count
from .units import percent_text

__all__ = ["Facts", "facts_of"]


@frozen
class Facts:
    """The format that the tensor has, bytes by format, and a reason by format."""

    given: str
    nbytes: dict[str, int]
    why: dict[str, str]


def facts_of(t: Tensor) -> Facts:
    """The facts of a tensor of two dimensions or more."""
    given = t.format.name or str(t.format)
    nbytes, why = _of_matrix(t) if t.ndim == 2 else _of_tensor(t)
    nbytes[given] = int(t.nbytes)
    why[given] = "as it is" + (f"; {why[given]}" if given in why else "")
    return Facts(given, nbytes, why)


def _of_matrix(t: Tensor) -> tuple[dict[str, int], dict[str, str]]:
    csr = t.asformat("csr").to_scipy("csr")
    nbytes = bytes_of(csr, 4 if max(*t.shape, csr.nnz) < 2**31 else 8)
    m, n = t.shape
    lengths = np.diff(csr.indptr)
    nse, mean, longest = int(csr.nnz), float(lengths.mean()) if m else 0.0, int(lengths.max(initial=0))
    density = nse / max(1, m * n)
    why = {
        "coo": "two coordinates for each element",
        "csr": f"rows of {mean:.1f} elements, the longest {longest:,}",
        "csc": "columns lie together, rows do not",
        "dcsr": _share(int(np.count_nonzero(lengths == 0)), m, "rows are empty, and left out"),
        "dcsc": _share(n - len(np.unique(csr.indices)), n, "columns are empty, and left out"),
        "dia": _full(nse, diagonal_count(csr) * m, f"of {diagonal_count(csr):,} diagonals are elements"),
        "bitmap": f"a bit for each place, {percent_text(density)} of which are elements",
        "dense": f"{percent_text(density)} of all places are elements",
    }
    for b in (2, 4):
        blocks = block_count(csr, b, b)
        why[f"bsr({b}, {b})"] = _full(nse, blocks * b * b, f"of {blocks:,} blocks are elements")
    if longest:
        why[f"ell({longest})"] = _full(nse, m * longest, f"of rows of {longest:,} places are elements")
    return nbytes, why


def _of_tensor(t: Tensor) -> tuple[dict[str, int], dict[str, str]]:
    size, nse = math.prod(t.shape), int(t.nse)
    nbytes: dict[str, int] = {}
    for name in ("coo", "csf"):
        nbytes[name] = int(t.asformat(name).nbytes)
    nbytes["dense"] = size * np.dtype(_numpy(t.dtype)).itemsize
    return nbytes, {
        "coo": f"{t.ndim} coordinates for each element", "csf": "a tree of coordinates, shared where they begin alike",
        "dense": f"{percent_text(nse / max(1, size))} of all places are elements",
    }  # fmt: skip


def _numpy(dtype: Any) -> Any:
    return str(dtype).removeprefix("torch.").replace("bfloat16", "float16")


def _share(count: int, of: int, what: str) -> str:
    return f"{percent_text(count / max(1, of))} of the {what}"


def _full(nse: int, places: int, what: str) -> str:
    return f"{percent_text(nse / max(1, places))} {what}"
