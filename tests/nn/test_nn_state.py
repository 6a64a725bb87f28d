"""State dicts of sparse layers: loaded over another structure, rebuilt from, kept by torch.save and safetensors."""

from __future__ import annotations

import copy
import io
from pathlib import Path

import pytest
import torch
from torch import nn

import openwork as ow
from openwork.nn import SparseLinear, densify, from_state_dict, prune


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 12), nn.TransformerEncoderLayer(12, 2, 8, dropout=0.0, batch_first=True)).eval()


def test_a_state_of_another_structure_is_loaded() -> None:
    x = torch.rand(2, 8)
    for format in ("csr", "csc", "coo", "bsr(2, 4)", "nm(2, 4)", "dia"):
        source = prune(nn.Linear(8, 12), 0.5, format)
        layer = prune(nn.Linear(8, 12), 0.8)
        parameter = layer.values
        assert not layer.load_state_dict(source.state_dict()).missing_keys
        assert layer.values is parameter  # which optimizers hold
        torch.testing.assert_close(layer(x), source(x))
        layer(x).sum().backward()
        assert layer.values.grad.shape == source.values.shape
        with torch.no_grad():
            layer.values.zero_()
        assert source.values.any()


def test_loading_does_not_write_into_other_layers_structures() -> None:
    weight = ow.asarray(torch.eye(4).to_sparse_csr())
    layer, other = SparseLinear(weight), SparseLinear(ow.asarray(torch.eye(4).flip(0).to_sparse_csr()))
    layer.load_state_dict(other.state_dict())
    assert torch.equal(weight.to_dense(), torch.eye(4))
    assert torch.equal(layer.weight.detach().to_dense(), torch.eye(4).flip(0))


def test_modules_are_rebuilt_from_what_was_saved() -> None:
    sparse, x = prune(model(), 0.6, "csr"), torch.rand(2, 3, 8)
    sparse[0] = prune(nn.Linear(8, 12), 0.5, "bsr(4, 4)")
    file = io.BytesIO()
    torch.save(sparse.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    again = from_state_dict(model(), state)
    torch.testing.assert_close(again(x), sparse(x))
    assert again[0].weight.format == ow.format("bsr(4, 4)")
    alone = SparseLinear.from_state_dict(state, "1.linear1.")
    assert alone.weight.nse == sparse[1].linear1.weight.nse
    torch.testing.assert_close(alone(torch.ones(12)), sparse[1].linear1(torch.ones(12)))
    torch.testing.assert_close(from_state_dict(nn.Linear(8, 12), sparse[0].state_dict())(x), sparse[0](x))
    whole = nn.Sequential(model()[0], model()[1])
    whole.load_state_dict(densify(copy.deepcopy(sparse)).state_dict())  # what densify gives is torch's
    torch.testing.assert_close(whole.eval()(x), sparse(x))


def test_layers_that_are_dense_beside_sparse_ones_stay_dense() -> None:
    net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(11)])
    net[10], x = prune(net[10], 0.5), torch.rand(3, 4)
    again = from_state_dict(nn.Sequential(*[nn.Linear(4, 4) for _ in range(11)]), net.state_dict())
    assert [type(layer) for layer in again] == [type(layer) for layer in net]
    assert torch.equal(again(x), net(x))
    attention = prune(nn.MultiheadAttention(4, 2), 0.5)
    attention.out_proj, attention.k_proj = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 4)
    dense = densify(copy.deepcopy(attention))
    torch.testing.assert_close(dense(x, x, x)[0], attention(x, x, x)[0])
    assert [dense.out_proj.weight.requires_grad, dense.in_proj_weight.requires_grad] == [False, True]


def test_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    sparse, x = prune(model(), 0.6), torch.rand(2, 3, 8)
    safetensors.save_file(sparse.state_dict(), tmp_path / "net.safetensors")
    again = from_state_dict(model(), safetensors.load_file(tmp_path / "net.safetensors"))
    torch.testing.assert_close(again(x), sparse(x))


def test_refusals() -> None:
    layer = prune(nn.Linear(4, 4), 0.5)
    with pytest.raises(ow.ShapeError, match=r"a state at '' of shape \(4, 2\)\n  expected: \(4, 4\)"):
        layer.load_state_dict(prune(nn.Linear(2, 4), 0.5).state_dict())
    broken = layer.state_dict()
    broken["crd_1"] = broken["crd_1"] + 9
    with pytest.raises(ow.InvariantError, match=r"5\.5"):
        layer.load_state_dict(broken)
    with pytest.raises(ow.InvariantError, match="no sparse weights"):
        from_state_dict(model(), model().state_dict())
    with pytest.raises(ow.InvariantError, match=r"without a sparse weight at 'a\.'"):
        SparseLinear.from_state_dict(layer.state_dict(), "a.")
    for text in (b"\0\0\0", b"3", b"{}", b"[" * 100_000):
        broken = layer.state_dict() | {"_extra_state": torch.tensor(list(text), dtype=torch.uint8)}
        with pytest.raises(ow.InvariantError, match="expected: shape, format and fill value"):
            layer.load_state_dict(broken)
