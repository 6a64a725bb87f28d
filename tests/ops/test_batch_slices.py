"""Slices of batched tensors: views in the format of a slice, with NumPy's elements, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

KEYS = [
    0, -1, slice(0, 1), slice(1, None), slice(1, 1), slice(None, None, -1), (0, slice(1, 3)), (1, 2), (1, [1, 0]),
    (0, slice(None), 3), (None, 0), (0, None), (..., 2), ([1, 0],), (slice(0, 1), slice(1, 3)), (1, None, slice(0, 1)),
]  # fmt: skip


def batched(name: str, shape: tuple[int, ...], library: str) -> tuple[Any, np.ndarray[Any, Any]]:
    """A tensor whose slices store elements at the same places, in a batched format, and the dense array."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random(shape[-2:]) < 0.5, rng.integers(1, 9, shape), 0).astype(float)
    format = ow.format(name, len(shape), batch=len(shape) - 2)
    return ow.asarray(dense if library == "numpy" else torch.tensor(dense), format=format), dense


@pytest.mark.thin(15)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["csr", "csc", "bsr(2, 3)", "bsc(2, 3)", "coo", "dcsr"])
@pytest.mark.parametrize("shape", [(2, 4, 6), (3, 2, 4, 6)])
def test_elements_are_numpys(name: str, shape: tuple[int, ...], library: str) -> None:
    t, dense = batched(name, shape, library)
    for key in KEYS:
        for source, right in ((t, dense), (t.mT, dense.swapaxes(-1, -2))):
            try:
                right = right[key]
            except IndexError:
                with pytest.raises(IndexError):
                    source[key]
                continue
            found = source[key]
            found.check()
            np.testing.assert_array_equal(np.asarray(found.to_dense()), right, err_msg=str(key))


@pytest.mark.parametrize("name", ["csr", "csc", "bsr(2, 3)", "bsc(2, 3)", "coo"])
def test_a_slice_is_a_view_in_the_format_of_a_slice(name: str) -> None:
    t, _ = batched(name, (2, 4, 6), "numpy")
    for found in (t[1], ow.unstack(t)[1]):
        assert found.format == ow.format(name, 2)
        assert np.shares_memory(found.values, t.values)
    assert t[0:1].format == t.format
    two, _ = batched(name, (3, 2, 4, 6), "numpy")
    assert two[1].format == t.format
    assert two[1, 0].format == ow.format(name, 2)


def test_layouts_of_torch_stay() -> None:
    dense = torch.ones(2, 4, 6)
    for layout in (torch.sparse_csr, torch.sparse_csc):
        t = ow.asarray(dense.to_sparse(layout=layout))
        assert {x.layout for x in (t[0], t[-1], torch.select(t, 0, 1), *torch.unbind(t))} == {layout}
    for layout in (torch.sparse_bsr, torch.sparse_bsc):
        t = ow.asarray(dense.to_sparse(layout=layout, blocksize=(2, 3)))
        assert {x.layout for x in (t[0], t[-1], torch.select(t, 0, 1), *torch.unbind(t))} == {layout}
        assert t[1].values.data_ptr() == t.values.data_ptr() + t.values.nbytes // 2


def test_gradients_reach_their_slice() -> None:
    t, _ = batched("bsr(2, 3)", (2, 4, 6), "torch")
    values = t.values.clone().requires_grad_()
    torch.autograd.gradcheck(lambda v: (t.with_values(v)[1] * 2).values, values)
    torch.autograd.gradgradcheck(lambda v: (t.with_values(v)[1] @ torch.ones(6, dtype=v.dtype)) ** 2, values)
