"""NumPy's result and ours -> an assertion: the same kinds, shapes, dtypes and numbers, of each of several."""

from __future__ import annotations

from typing import Any

import numpy as np

import openwork as ow

__all__ = ["same"]


def same(got: Any, want: Any, single: float = 1e-12) -> None:
    """`single` is the relative difference that results in single precision may have."""
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b, single)
        return
    found = got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)
    assert found.shape == np.shape(want)
    assert found.dtype == np.asarray(want).dtype
    rtol = single if found.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, want, rtol=rtol, atol=1e-12)
