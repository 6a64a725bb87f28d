"""Sparse linear layers: equal to dense ones, trained, pruned, saved."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.nn import SparseLinear, densify, prune

FORMATS = ["csr", "csc", "coo", "bsr(2, 4)", "bsr(3, 4)", "dia", "nm(2, 4)", "bitmap"]


def model() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 4, bias=False)).double()


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", FORMATS)
def test_prune_keeps_the_largest_and_densify_gives_them_back(format: str) -> None:
    dense, x = model(), torch.rand(5, 3, 8, dtype=torch.float64)
    before = [dense[k].weight.detach().clone() for k in (0, 2)]
    sparse = prune(copy.deepcopy(dense), 0.5, format)
    assert isinstance(sparse[0], SparseLinear)
    for layer, weight in zip((sparse[0], sparse[2]), before, strict=True):
        kept = ow.sparse_mask(torch.ones_like(weight), layer.weight.detach()).to_dense() > 0
        got = layer.weight.detach().to_dense()
        torch.testing.assert_close(got[kept], weight[kept])
        if format in ("csr", "csc", "coo", "bitmap"):
            assert layer.weight.nse == weight.numel() // 2
            assert weight[kept].abs().min() >= weight[~kept].abs().max()
        if format == "nm(2, 4)":
            assert (got.reshape(-1, 4) != 0).sum(1).tolist() == [2] * (weight.numel() // 4)
    again = densify(copy.deepcopy(sparse))
    assert isinstance(again[0], torch.nn.Linear)
    torch.testing.assert_close(sparse(x), again(x))


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", FORMATS)
def test_gradients_and_training(format: str) -> None:
    sparse = prune(model(), 0.5, format)
    dense = densify(copy.deepcopy(sparse))
    x, y = torch.rand(16, 8, dtype=torch.float64), torch.rand(16, 4, dtype=torch.float64)
    for net in (sparse, dense):
        (net(x) - y).square().sum().backward()
    for k in (0, 2):
        layer = sparse[k]
        want = ow.sparse_mask(dense[k].weight.grad, layer.weight.detach())
        got = layer.weight._from_storage(layer.weight._storage.with_values(layer.values.grad)).detach()
        torch.testing.assert_close(got.to_dense(), want.to_dense())
    optimizer = torch.optim.Adam(sparse.parameters(), 0.02)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (sparse(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_state_dict_round_trip() -> None:
    sparse = prune(model(), 0.75)
    other = copy.deepcopy(sparse)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    x = torch.rand(2, 8, dtype=torch.float64)
    other.load_state_dict(sparse.state_dict())
    torch.testing.assert_close(other(x), sparse(x))


def test_sparse_inputs() -> None:
    layer = prune(torch.nn.Linear(6, 3).double(), 0.3)
    x = ow.random((5, 6), 0.4, format="csr", rng=0)
    t = ow.asarray(x.to_torch())
    torch.testing.assert_close(layer(t), layer(t.to_dense()))
    assert "nse=" in repr(layer)


def test_refusals() -> None:
    with pytest.raises(ow.ShapeError, match="prune: amount 2"):
        prune(model(), 2)
    with pytest.raises(ow.ShapeError, match=r"layer '1', a Linear, does not fit the format\n  6 inputs in groups of 4"):
        prune(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(6, 3)), 0.5, "nm(2, 4)")
    with pytest.raises(ow.FormatError, match=r"the Linear does not fit the format\n  conversion to .* ell\(1\)"):
        prune(torch.nn.Linear(6, 3), 0.1, "ell(1)")
    with pytest.raises(TypeError, match="prune: amount is a real number; got: 'half'"):
        prune(model(), "half")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a torch.nn.Module; got Tensor\n  help: ow.prune"):
        prune(torch.ones(3))  # type: ignore[arg-type]
    with pytest.raises(ow.ShapeError, match=r"expected: \(out, in\)"):
        SparseLinear(ow.asarray(torch.eye(3).to_sparse_csr()), torch.ones(4))
    with pytest.raises(ow.ShapeError, match=r"weight \(2, 2, 2\), bias None"):
        SparseLinear(torch.ones(2, 2, 2))
    with pytest.raises(ow.ShapeError, match=r"weight \(\), bias \(\)"):
        SparseLinear(3, 4)  # type: ignore[arg-type]
    with pytest.raises(ow.DTypeError, match=r"a weight of torch.int64 has no gradient\n  help: weight.to"):
        SparseLinear(ow.asarray(np.eye(3, dtype=int), format="csr"))


def test_weights_of_other_libraries_keep_their_format() -> None:
    """A format that torch has not was CSR in the layer, where the weight was over NumPy's memory."""
    dense = np.eye(4, dtype=np.float32)
    strips = ow.asarray(dense, format="(i, j) -> (j // 2 : dense, i : compressed, j % 2 : dense)")
    for weight, format in (
        (strips, strips.format),
        (dense, ow.format("dense")),
        (torch.eye(4).to_sparse(), ow.format("coo")),
    ):
        layer = SparseLinear(weight, np.zeros(4, np.float32))
        assert layer.weight.format == format
        assert torch.equal(layer(torch.eye(4)), torch.eye(4))


def test_a_layer_keeps_the_storage_of_its_parameter() -> None:
    """What follows from it is found once; a parameter or an index buffer that changes is read anew."""
    layer = prune(torch.nn.Linear(8, 4), 0.5, format="nm(2, 4)")
    x = torch.randn(8)
    assert layer.weight._storage is layer.weight._storage
    assert layer.weight._storage.values is layer.values
    layer.values.data = torch.ones(16)
    torch.testing.assert_close(layer(x), layer.to_dense()(x))
    assert layer.weight.detach().sum() == 16
    layer.crd_2.copy_(torch.tensor([0, 3] * 8, dtype=torch.uint8))
    for _ in range(2):
        torch.testing.assert_close(layer(x), x.reshape(2, 4)[:, [0, 3]].sum() + layer.bias)
    layer.double()
    assert layer(x.double()).dtype == torch.float64
    again = copy.deepcopy(layer)
    assert again.weight._storage.values is again.values is not layer.values
    with torch.no_grad():
        layer.values.zero_()
    assert again.weight.detach().sum() == 16
    found = torch.func.functional_call(layer, {"values": torch.full((16,), 2.0).double()}, (x.double(),))
    torch.testing.assert_close(found, 2 * x.double().reshape(2, 4)[:, [0, 3]].sum() + layer.bias)
    assert layer.weight._storage.values is layer.values
