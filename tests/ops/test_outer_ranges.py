"""What walks large tensors range by range gives the same as of a small one at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import linalg
from openwork.runtime import outer_ranges
from openwork.runtime.leading_slice import outer_block, slice_outer

_draw = np.random.default_rng(0)
X = np.where(_draw.random((31, 26)) < 0.7, 0, _draw.standard_normal((31, 26)).round(1))
X[5] = X[6, 3] = X[30, 25] = np.nan
CALLS: dict[str, Callable[[Any], Any]] = {
    **{f"norm {p}, {a}": lambda t, p=p, a=a: linalg.norm(t, p, axis=a) for p in (1, 2.5, -np.inf) for a in (0, 1)},
    **{f"matrix norm {p}": lambda t, p=p: linalg.matrix_norm(t.asformat("dense") if t.fill_value else t, ord=p) for p in (1, -1, np.inf, -np.inf)},
    "norm": linalg.vector_norm, "norm inf": lambda t: linalg.vector_norm(t, ord=np.inf), "argmax": ow.argmax,
    "argmin": lambda t: ow.argmin(ow.nan_to_num(t)), "argmax 0": lambda t: ow.argmax(t, axis=0, keepdims=True),
    "argmin 1": lambda t: ow.argmin(t, axis=1), "argmax of stored": lambda t: t.argmax(axis=1, explicit=True),
    "nansum": lambda t: ow.nansum(t, axis=0, keepdims=True), "nanprod": lambda t: ow.nanprod(t, axis=1),
    "nanmax": lambda t: ow.nanmax(t, axis=0), "nanmean": ow.nanmean,
    "columns": lambda t: t[:, 7:20], "column": lambda t: t[:, 7], "backwards": lambda t: t[:, 20:2:-3],
    "list": lambda t: t[:, [3, 1, 3]], "part": lambda t: t[3:29, 5:9], "row": lambda t: t.T[3:29, 7],
    "rows": lambda t: t[[3, 1, 1]], "new": lambda t: t[:, None, 3:9],
}  # fmt: skip
FORMATS = (
    "csr",
    "csc",
    "coo",
    "dcsr",
    "bsr(2, 3)",
    "bsc(7, 2)",
    "ell(26)",
    "bitmap",
    "dia",
    "csr(nonunique, unordered)",
)


@pytest.mark.thin(132)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("format", FORMATS)
def test_ranges_give_what_the_whole_gives(format: str, fill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, call in CALLS.items():
        results = []
        for step in (1 << 60, 40):
            monkeypatch.setattr(outer_ranges, "STEP", step)
            t = ow.asarray(X, format=format)
            results.append(call(ow.add(t, fill) if fill else t))
        whole, ranges = results
        assert (whole.format, whole.dtype, whole.nse) == (ranges.format, ranges.dtype, ranges.nse), name
        np.testing.assert_allclose(whole.to_numpy(), ranges.to_numpy(), atol=1e-12, err_msg=name)


@pytest.mark.parametrize("format", ["csr", "csc", "dcsr", "coo", "bsr(2, 3)", "bsc(7, 2)", "bitmap"])
def test_ranges_cover_the_tensor_once_and_are_slices_of_it(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outer_ranges, "STEP", 40)
    s = ow.asarray(X, format=format)._storage
    found = outer_ranges.ranges_of(s)
    assert found is not None
    d, ranges = found
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges[:-1])]
    assert ranges[-1][1] == X.shape[d]
    assert len(ranges) > 3
    block = outer_block(s.format)
    assert block is not None
    assert all(first % block[1] == 0 for first, _ in ranges)
    for first, last in ranges:
        part = ow.Tensor._from_storage(slice_outer(s, first, last))
        np.testing.assert_array_equal(part.to_numpy(), X[first:last] if d == 0 else X[:, first:last])
    monkeypatch.setattr(outer_ranges, "STEP", 1 << 60)
    assert outer_ranges.ranges_of(s) is None
