"""Masked tensors in every format of the matrix, and the comparison with numpy.ma."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from matrix import FORMATS, SHAPES

CASES = [(rank, spec) for rank in FORMATS for spec in FORMATS[rank] if rank]
"""(rank, format) of every format of the matrix."""
FEW = [
    (1, "csf"), (2, "dense"), (2, "dense_f"), (2, "csr"), (2, "csc"), (2, "coo"), (2, "bsr(2, 3)"), (2, "dia"),
    (2, "ell(12)"), (2, "nm(4, 4)"), (3, "(i, j, k) -> (i : dense, j : compressed, k : dense)"),
]  # fmt: skip
"""Those that stand for the others where every one would take long."""
MOST = [case if case in FEW else pytest.param(*case, marks=pytest.mark.slow) for case in CASES]
"""All of them, the others marked as slow."""


def arrays(shape: tuple[int, ...], seed: int = 0, dtype: str = "float64", mask: Any = 0.5) -> tuple[Any, Any]:
    """Small whole numbers and a mask: of a density, "all", "none" or "one"."""
    rng = np.random.default_rng(seed)
    data = np.asarray(rng.integers(1 if dtype[0] == "u" else -3, 5, shape)).astype(dtype)
    if mask == "one":
        bits = np.zeros(shape, np.bool_)
        bits.reshape(-1)[bits.size // 2 : bits.size // 2 + 1] = True
    else:
        bits = np.asarray(rng.random(shape) < {"all": 2.0, "none": -1.0}.get(mask, mask))
    return data, bits


def made(data: Any, bits: Any, spec: str = "dense") -> ow.MaskedTensor:
    """The masked tensor in a format."""
    return ow.masked_tensor(data, bits).asformat(ow.format(spec, data.ndim))


def reference(data: Any, bits: Any) -> Any:
    """The same for numpy.ma."""
    return np.ma.MaskedArray(data, mask=~bits)


def agree(got: ow.MaskedTensor, want: Any, exact: bool = True) -> None:
    """Equal shape, dtype, mask, and values where specified."""
    assert isinstance(got, ow.MaskedTensor)
    typed = want is not np.ma.masked
    want = np.ma.asarray(want)
    assert got.shape == want.shape
    assert not typed or str(got.dtype).removeprefix("torch.") == str(want.dtype)
    found = got.to_masked_array()
    bits = ~np.ma.getmaskarray(want)
    np.testing.assert_array_equal(~np.ma.getmaskarray(found), bits)
    mine, theirs = found.data[bits], want.data[bits]
    if exact:
        np.testing.assert_array_equal(mine, theirs)
    else:
        np.testing.assert_allclose(mine, theirs, rtol=1e-6 if mine.dtype.itemsize < 8 else 1e-12)


__all__ = ["CASES", "FEW", "MOST", "SHAPES", "agree", "arrays", "made", "reference"]
