"""Batches of seeds and their neighbours: with all neighbours, the results of the whole graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.nn import GraphConv, neighbor_batches


def test_all_neighbours_give_the_whole_graphs_results() -> None:
    torch.manual_seed(0)
    dense = torch.rand(9, 9, dtype=torch.float64).sub_(0.6).relu_()
    x, first, second = torch.rand(9, 4, dtype=torch.float64), GraphConv(4, 5).double(), GraphConv(5, 2).double()
    for A in (ow.asarray(dense, format="csr"), ow.asarray(dense.numpy(), format="coo")):
        whole = second(ow.asarray(dense, format="csr"), torch.relu(first(ow.asarray(dense, format="csr"), x)))
        seen = []
        for batch in neighbor_batches(A, torch.tensor([7, 2, 0, 5]), [-1, -1], batch_size=3, rng=0):
            assert torch.equal(batch.nodes[: len(batch.seeds)], batch.seeds)
            assert batch.blocks[0].shape[1] == len(batch.nodes)
            got = second(batch.blocks[1], torch.relu(first(batch.blocks[0], x[batch.nodes])))
            torch.testing.assert_close(got, whole[batch.seeds])
            seen += batch.seeds.tolist()
        assert sorted(seen) == [0, 2, 5, 7]


def test_samples_are_of_the_size_asked_for() -> None:
    A = ow.asarray(torch.ones(20, 20), format="csr")
    (batch,) = neighbor_batches(A, np.arange(4), [2, 3], batch_size=8, shuffle=False, rng=1)
    assert batch.seeds.tolist() == [0, 1, 2, 3]
    assert [block.nse for block in batch.blocks] == [2 * batch.blocks[1].shape[1], 12]
    (other,) = neighbor_batches(A, np.arange(4), [2, 3], batch_size=8, shuffle=False, rng=1)
    assert torch.equal(batch.nodes, other.nodes)
    (third,) = neighbor_batches(A, np.arange(4), [2, 3], batch_size=8, shuffle=False, rng=2)
    assert not torch.equal(batch.nodes, third.nodes)
    with pytest.raises(ow.ShapeError, match=r"sizes=\(-2,\)"):
        next(neighbor_batches(A, [0], [-2]))
