"""Duplicates of COO tensors in small dtypes: summed in their own dtype, as torch's, at every rank."""

from __future__ import annotations

import pytest
import torch

import openwork as ow

SMALL = (torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32, torch.float16, torch.bfloat16, torch.float32)


@pytest.mark.thin(9)
@pytest.mark.parametrize("dtype", SMALL)
def test_as_torch(dtype: torch.dtype) -> None:
    values = torch.tensor([100, 100, 3, 90], dtype=torch.int32).to(dtype)
    at = torch.tensor([[1, 1, 0, 1], [0, 0, 1, 0]])
    for indices, v, shape in (
        (torch.zeros((0, 1), dtype=torch.int64), values[:1], ()),
        (torch.zeros((0, 4), dtype=torch.int64), values, ()),
        (torch.zeros((0, 2), dtype=torch.int64), values.reshape(2, 2), (2,)),
        (at[:1], values, (2,)),
        (at, values, (2, 2)),
        (at, values[:, None].repeat(1, 3), (2, 2, 3)),
        (at[:1], values[:, None].repeat(1, 3), (2, 3)),
    ):
        s = torch.sparse_coo_tensor(indices, v, shape)
        want = s.to_dense()
        for t in (ow.asarray(s), ow.sparse_coo_tensor(indices, v, shape) if indices.shape[0] else ow.asarray(s)):
            assert t.dtype == dtype
            for found in (
                t.to_dense(),
                t.coalesce().to_dense(),
                t.clone().to_dense(),
                ow.asarray(t, format="dense").to_dense(),
            ):
                assert found.dtype == dtype
                assert torch.equal(found, want), (tuple(shape), found, want)
    scalar = torch.tensor(True).to_sparse_coo()
    assert ow.asarray(scalar).dtype == torch.bool
