"""Embeddings with sparse gradients: equal to torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import openwork as ow
from openwork.nn import SparseEmbedding, SparseEmbeddingBag


def tables(padding: int | None = None, **options: Any) -> tuple[Any, Any]:
    """A table of ours and torch's with the same weight, not zero at the padding."""
    weight = torch.linspace(-1, 1, 21, dtype=torch.float64).reshape(7, 3)
    if not options:
        return SparseEmbedding(7, 3, padding, weight=weight), torch.nn.Embedding(7, 3, padding, _weight=weight.clone())
    theirs = torch.nn.EmbeddingBag(7, 3, padding_idx=padding, _weight=weight.clone(), **options)
    return SparseEmbeddingBag(7, 3, padding, weight=weight, **options), theirs


def agree(mine: Any, theirs: Any, got: torch.Tensor, want: torch.Tensor, rows: set[int]) -> None:
    torch.testing.assert_close(got, want)
    got.square().sum().backward()
    want.square().sum().backward()
    grad = mine.weight.grad
    assert grad.layout == torch.sparse_coo
    assert grad._indices()[0].tolist() == sorted(rows)
    torch.testing.assert_close(grad.to_dense(), theirs.weight.grad)


@pytest.mark.parametrize("padding", [None, 2, -1])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_embedding(padding: int | None, dtype: torch.dtype) -> None:
    indices = torch.tensor([[2, 4, 4], [6, 0, 2]], dtype=dtype)
    mine, theirs = tables(padding)
    rows = {0, 2, 4, 6} - ({padding % 7} if padding is not None else set())
    agree(mine, theirs, mine(indices), theirs(indices), rows)
    assert mine(indices[0, 0]).shape == (3,)
    assert mine(indices[:0]).shape == (0, 3, 3)


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str, padding: int | None) -> None:
    rows = {0, 2, 4, 6} - {padding}
    for arguments in (
        (torch.tensor([[2, 4, 4], [6, 0, 2]]),),
        (torch.tensor([2, 4, 4, 6, 0]), torch.tensor([0, 3, 3, 4])),
    ):
        mine, theirs = tables(padding, mode=mode)
        agree(mine, theirs, mine(*arguments), theirs(*arguments), rows)


def test_weighted_bags_and_bags_as_a_tensor() -> None:
    indices = torch.tensor([[2, 4, 4], [6, 0, 2]])
    mine, theirs = tables(mode="sum")
    first, second = (torch.linspace(1, 2, 6, dtype=torch.float64).reshape(2, 3).requires_grad_() for _ in range(2))
    agree(mine, theirs, mine(indices, None, first), theirs(indices, None, second), {0, 2, 4, 6})
    torch.testing.assert_close(first.grad, second.grad)
    for mode in ("sum", "mean"):
        mine, theirs = tables(mode=mode)
        counts = torch.zeros(3, 7, dtype=torch.float64)
        counts[0, 2], counts[0, 4], counts[1, [6, 0, 2]] = 1, 2, 1
        want = theirs(torch.tensor([2, 4, 4, 6, 0, 2]), torch.tensor([0, 3, 6]))
        agree(mine, theirs, mine(ow.asarray(counts).asformat("csr")), want, {0, 2, 4, 6})


def test_state_dicts_are_torchs_and_padding_starts_at_zero() -> None:
    mine = SparseEmbedding(7, 3, padding_idx=2)
    assert not mine.weight[2].any()
    other = torch.nn.Embedding(7, 3)
    mine.load_state_dict(other.state_dict())
    assert torch.equal(mine.weight, other.weight)
    assert repr(mine) == "SparseEmbedding(7, 3, padding_idx=2)"


def test_refusals() -> None:
    table, bag = SparseEmbedding(4, 2), SparseEmbeddingBag(4, 2)
    with pytest.raises(ow.ShapeError, match="SparseEmbedding: index 4\n  expected: 0 <= index < 4"):
        table(torch.tensor([1, 4]))
    with pytest.raises(ow.ShapeError, match="index -1"):
        bag(torch.tensor([[-1]]))
    with pytest.raises(ow.DTypeError, match=r"indices of torch.float32"):
        table(torch.ones(2))
    with pytest.raises(ow.ShapeError, match=r"expected: \(bags, k\), or \(n,\) with offsets"):
        bag(torch.tensor([1]))
    with pytest.raises(ow.ShapeError, match="from 0, rising"):
        bag(torch.tensor([1]), torch.tensor([0, 2]))
    for offsets in ([], [1], [0, 2, 1], [0, 1, 4]):
        with pytest.raises(ow.ShapeError, match="from 0, rising to at most 3"):
            bag(torch.tensor([1, 2, 3]), torch.tensor(offsets, dtype=torch.int64))
    with pytest.raises(ow.ShapeError, match="per_sample_weights"):
        bag(torch.tensor([[1]]), None, torch.ones(2))
    with pytest.raises(ow.ShapeError, match="padding_idx=9"):
        SparseEmbedding(4, 2, 9)
    with pytest.raises(ow.ShapeError, match=r"weight \(2, 4\)"):
        SparseEmbedding(4, 2, weight=torch.ones(2, 4))
    with pytest.raises(ow.UnsupportedError, match="mode='min'"):
        SparseEmbeddingBag(4, 2, mode="min")
    with pytest.raises(ow.UnsupportedError, match='weights with mode="max"'):
        SparseEmbeddingBag(4, 2, mode="max")(torch.tensor([[1]]), None, torch.ones(1, 1))
