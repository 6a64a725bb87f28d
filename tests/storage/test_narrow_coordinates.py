"""Coordinates of `structured(n, m)` in bytes: the same results as with words, in extents that no byte holds."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.errors import InvariantError
from openwork.interop.constructors import assemble
from openwork.nn import prune

N = 600


def structured(like: str, dtype: str) -> ow.Tensor:
    """2:4 of 4 x 600."""
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])[np.arange(N) * 7 % 6]  # of 4 * N / 4 groups
    crd, values = pairs.reshape(-1).astype(dtype), np.arange(1.0, 2 * N + 1)
    if like == "torch":
        crd, values = torch.from_numpy(crd), torch.from_numpy(values)
    return assemble("nm(2, 4)", (4, N), crd={2: crd}, values=values)


CASES: dict[str, Callable[[Any], Any]] = {
    "product": lambda t: t @ (t.T.to_dense()),
    "csr": lambda t: t.asformat("csr"),
    "transposed": lambda t: t.T.asformat("coo"),
    "sum": lambda t: t + t.asformat("csr"),
    "slice": lambda t: t[1:3, 300:597],
    "columns": lambda t: t[:, [3, 599, 2]],
    "by column": lambda t: t.sum(0),
    "pickled": lambda t: pickle.loads(pickle.dumps(t)),
}


@pytest.mark.parametrize("like", ["numpy", "torch"])
def test_same_results(like: str) -> None:
    u, t = structured(like, "uint8"), structured(like, "int64")
    assert str(u._storage.crd[2].dtype).endswith("uint8")
    for name, function in CASES.items():
        got, want = (np.asarray(x.to_dense() if isinstance(x, ow.Tensor) else x) for x in (function(u), function(t)))
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_where_bytes_are_refused() -> None:
    with pytest.raises(InvariantError, match=r"(?s)crd\[2\] is of int32 or int64.*invariant 1\.3"):
        structured("numpy", "uint16")
    one = np.zeros(1, "uint8")
    with pytest.raises(InvariantError, match=r"1\.3"):
        assemble("nm(1, 257)", (1, 257), crd={2: one}, values=np.ones(1))


def test_pruned_layers_have_bytes() -> None:
    layer = prune(torch.nn.Linear(8, 4), 0.5, format="nm(2, 4)")
    assert layer.weight._storage.crd[2].dtype == torch.uint8
    assert prune(torch.nn.Linear(8, 4), 0.5, format="csr").weight._storage.crd[1].dtype == torch.int32
    x = torch.rand(3, 8)
    torch.testing.assert_close(layer(x), layer.to_dense()(x))
