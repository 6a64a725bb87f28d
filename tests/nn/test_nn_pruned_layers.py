"""Pruned attention, recurrent and convolution layers: equal to the dense layers of the same weights, and trained."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

import openwork as ow
from openwork.nn import SparseConv, SparseLinear, SparseMultiheadAttention, SparseRNN, densify, prune

STRICT = {"rtol": 1e-10, "atol": 1e-10}


def agree(layer: nn.Module, *arguments: Any, format: str = "csr", **options: Any) -> nn.Module:
    """A pruned layer, and what densify makes of it, give the same results and gradients; the pruned layer."""
    sparse = prune(copy.deepcopy(layer).double(), 0.5, format)
    assert type(sparse) is not type(layer)
    dense = densify(copy.deepcopy(sparse))
    assert type(dense) is type(layer)
    got, want = (flat(f(*arguments, **options)) for f in (sparse, dense))
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, **STRICT)
    inputs = [x for x in arguments if isinstance(x, torch.Tensor) and x.requires_grad]
    grads = [torch.autograd.grad(sum(x.square().sum() for x in out), inputs) for out in (got, want)]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, **STRICT)
    return sparse


def flat(out: Any) -> list[torch.Tensor]:
    if isinstance(out, torch.Tensor):
        return [out]
    return [x for part in out if part is not None for x in flat(part) if x.is_floating_point()]


def numbers(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(shape, dtype=torch.float64, generator=generator).sub_(0.5).requires_grad_()


def test_attention_with_every_option() -> None:
    torch.manual_seed(0)
    x, y = numbers(2, 5, 8), numbers(2, 4, 8)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    mask = torch.ones(5, 4).tril().bool().logical_not()
    for options in ({}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}):
        layer = nn.MultiheadAttention(8, 2, batch_first=True, **options)
        agree(layer, x, y, y)
        agree(layer, x, y, y, key_padding_mask=padding, attn_mask=mask, average_attn_weights=False)
        agree(layer, x, y, y, need_weights=False, attn_mask=mask.expand(4, 5, 4))
    first = nn.MultiheadAttention(8, 4, kdim=6, vdim=3)
    sparse = agree(first, x[:, :4], numbers(2, 4, 6), numbers(2, 4, 3), format="bsr(2, 2)")
    assert isinstance(sparse, SparseMultiheadAttention)
    agree(nn.MultiheadAttention(8, 2), x[0], y[0], y[0], key_padding_mask=padding[1])
    with pytest.raises(ow.UnsupportedError, match="is_causal without a mask"):
        sparse(x, y[..., :6], y[..., :3], is_causal=True)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_transformers_train_and_evaluate() -> None:
    torch.manual_seed(0)
    x, padding = numbers(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    for module in (layer, nn.TransformerEncoder(layer, 2)):
        sparse = prune(copy.deepcopy(module).double(), 0.5)
        dense = densify(copy.deepcopy(sparse))
        for net in (sparse, dense):
            net.train()
        torch.testing.assert_close(sparse(x), dense(x), **STRICT)
        sparse(x).square().sum().backward()
        sparse.eval(), dense.eval()  # here torch would read the weights past their modules
        with torch.no_grad():
            torch.testing.assert_close(sparse(x), dense(x), **STRICT)
            got, want = (net(x, src_key_padding_mask=padding) for net in (sparse, dense))
            torch.testing.assert_close(got[~padding], want[~padding], **STRICT)
    decoder = prune(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double(), 0.5)
    torch.testing.assert_close(decoder(x, x), densify(copy.deepcopy(decoder))(x, x), **STRICT)


@pytest.mark.ci
def test_recurrent() -> None:
    torch.manual_seed(0)
    x = numbers(4, 3, 6)
    for kind, options in (
        (nn.LSTM, {"num_layers": 2, "bidirectional": True, "proj_size": 2}),
        (nn.LSTM, {"bias": False, "batch_first": True}),
        (nn.GRU, {"num_layers": 2}),
        (nn.RNN, {"nonlinearity": "relu"}),
        (nn.RNN, {"bidirectional": True}),
    ):
        sparse = agree(kind(6, 4, **options), x)
        assert isinstance(sparse, SparseRNN)
        agree(kind(6, 4, **options), x[0])
    state = (numbers(1, 3, 4), numbers(1, 3, 4))
    agree(nn.LSTM(6, 4), x, state)
    agree(nn.LSTM(6, 4), x[:, 0], tuple(s[:, 0] for s in state))
    agree(nn.GRU(6, 4), x[:, 0], state[0][:, 0])
    for training in (True, False):  # dropout of all that goes from one layer to the next draws nothing
        agree(nn.LSTM(6, 4, num_layers=2, dropout=1.0).train(training), x)
    with pytest.raises(ow.ShapeError, match="initial states"):
        prune(nn.GRU(6, 4).double(), 0.5)(x[:, 0], state[0])
    ragged = pack_sequence([x[:2, 0], x[:, 1], x[:3, 2]], enforce_sorted=False)
    for kind in (nn.LSTM, nn.GRU):
        layer = prune(kind(6, 4, bidirectional=True, num_layers=2).double(), 0.5)
        got, want = (flat([*f(ragged)[0][:1], f(ragged)[1]]) for f in (layer, densify(copy.deepcopy(layer))))
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, **STRICT)


def test_convolutions() -> None:
    torch.manual_seed(0)
    cases: list[tuple[Any, dict[str, Any], torch.Tensor]] = [
        (nn.Conv1d(4, 6, 3, padding=1, stride=2), {}, numbers(2, 4, 9)),
        (nn.Conv1d(4, 6, 2, padding="same", dilation=2, padding_mode="circular"), {"format": "csc"}, numbers(4, 9)),
        (nn.Conv2d(4, 6, (3, 2), groups=2, bias=False), {}, numbers(2, 4, 5, 6)),
        (nn.Conv2d(4, 4, 2, padding=1), {"format": "nm(2, 4)"}, numbers(2, 4, 5, 6)),
        (nn.Conv2d(4, 4, 1), {"format": "bsr(2, 2)"}, numbers(2, 4, 3, 3)),
        (nn.Conv3d(2, 3, 2, padding=(1, 0, 1)), {}, numbers(1, 2, 3, 4, 3)),
        (nn.Conv2d(2, 4, (2, 3), dilation=(1, 2)), {}, numbers(1, 2, 2, 5)),  # kernels as large as what they go over
    ]
    for layer, options, x in cases:
        assert isinstance(agree(layer, x, **options), SparseConv)


def test_blocks_stay_in_their_group() -> None:
    """What a block would store of another group's columns would train: the layer was no grouped convolution then."""
    for format in ("bsr(2, 2)", "dia", "dense"):
        with pytest.raises(ow.FormatError, match=r"several of the 2 groups together\n.*3 rows and 18 columns"):
            prune(nn.Conv2d(4, 6, 3, groups=2), 0.5, format)
    layer = prune(nn.Conv2d(4, 6, 3, groups=2), 0.5, "bsr(3, 2)")
    layer(numbers(2, 4, 5, 5).float()).square().sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    x = numbers(2, 4, 5, 5).float()
    torch.testing.assert_close(layer(x), densify(layer)(x))


def test_what_stays_is_shared_and_is_chosen() -> None:
    tied = nn.Linear(4, 4)
    net = prune(nn.ModuleDict({"a": tied, "b": tied, "c": nn.Conv1d(2, 2, 1)}), 0.5, types=nn.Linear).eval()
    assert net["a"] is net["b"]
    assert isinstance(net["a"], SparseLinear)
    assert not net["a"].training or net.training
    assert type(net["c"]) is nn.Conv1d

    class Own(nn.MultiheadAttention):
        pass

    x = torch.rand(3, 4)
    own = prune(nn.ModuleList([Own(4, 2)]), 0.5)[0]
    assert own(x, x, x)[0].shape == (3, 4)  # torch reads out_proj's weight past it: left as it is
    frozen = nn.Linear(4, 4).requires_grad_(False)
    assert not any(p.requires_grad for p in densify(prune(frozen, 0.5)).parameters())


@pytest.mark.filterwarnings("ignore:.*jit.trace.*is deprecated:DeprecationWarning")
def test_export_and_trace() -> None:
    torch.manual_seed(0)
    net = prune(nn.Sequential(nn.Conv1d(2, 4, 3), nn.Flatten(), nn.Linear(12, 3)), 0.5).eval()
    x = torch.rand(2, 2, 5)
    program = torch.export.export(net, (x,))
    assert "openwork.product" in str(program.graph)
    torch.testing.assert_close(program.module()(x), net(x))
    middle = net[:2](x).detach()
    traced = torch.jit.trace(net[2], middle)
    torch.testing.assert_close(traced(middle), net(x))


@pytest.mark.ci
def test_training_of_a_pruned_transformer() -> None:
    torch.manual_seed(0)
    x = torch.rand(4, 6, 8)
    net = prune(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 0.7)
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = (net(x) - x.flip(1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_layers_are_pruned_again() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(2, 4, 3), nn.Flatten(), nn.Linear(12, 8), nn.LSTM(8, 4), nn.MultiheadAttention(8, 2))
    at_once = prune(copy.deepcopy(net), 0.75).state_dict()
    for amount in (0.25, 0.5, 0.75, 0.6):  # what is gone stays so
        prune(net, amount)
    torch.testing.assert_close(net.state_dict(), at_once)
    layer = prune(nn.Linear(8, 8), 0.5, "bsr(2, 2)")
    assert prune(layer, 0.75, "bsr(2, 2)").weight.nse == 16
    assert prune(layer, 0.25, "csr").weight.nse == 32
    assert prune(layer, 0, "nm(2, 4)").weight.nse == 32
    chosen = prune(prune(nn.Sequential(nn.Linear(4, 4), nn.Conv1d(2, 2, 2)), 0.5), 1, types=nn.Linear)
    assert (chosen[0].weight.nse, chosen[1].linear.weight.nse) == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_small_and_large_weights_are_told_apart(dtype: torch.dtype) -> None:
    """Their squares are 0 or infinite in their own dtype; NaN is no weight that is gone."""
    for scale in (1e-5, 6e4) if dtype == torch.float16 else (1e-25, 1e25):
        layer = nn.Linear(8, 8).to(dtype)
        weights = (torch.randperm(64).reshape(8, 8) + 1).to(dtype) * (scale / 64)
        layer.weight.data = weights
        for format in ("csr", "bsr(1, 1)"):
            pruned = prune(prune(copy.deepcopy(layer), 0.5, format), 0.75, format)
            kept = torch.where(weights >= weights.flatten().sort().values[48], weights, 0)
            assert torch.equal(pruned.weight.detach().to_dense(), kept)
    layer.weight.data = torch.full((8, 8), torch.nan, dtype=dtype)
    assert prune(prune(layer, 0.5), 0.75).weight.nse == 16


def test_inputs_beyond_32_bits_are_numbered_in_64() -> None:
    with pytest.warns(UserWarning, match="no-op"):
        wide = nn.Linear(2**31, 0)
    for layer, dtype in ((wide, torch.int64), (nn.Linear(8, 2), torch.int32)):
        weight = prune(layer, 0.5).weight
        assert [b.dtype for b in (weight.pos(1), weight.crd(1))] == [dtype, dtype]


def test_frozen_layers_stay_frozen() -> None:
    layers = [
        nn.Linear(4, 4), nn.Conv2d(2, 2, 1), nn.Conv1d(4, 4, 2, groups=2), nn.LSTM(4, 4, proj_size=2), nn.GRU(2, 2, bias=False),
        nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2, kdim=4, vdim=6),
    ]  # fmt: skip
    for layer in layers:
        for is_trained in (False, True):
            sparse = prune(copy.deepcopy(layer).requires_grad_(is_trained), 0.5)
            dense = densify(copy.deepcopy(sparse))
            assert {p.requires_grad for net in (sparse, dense) for p in net.parameters()} == {is_trained}
    part = nn.MultiheadAttention(8, 2)
    part.in_proj_weight.requires_grad_(False)
    sparse = prune(part, 0.5)
    assert [name for name, p in sparse.named_parameters() if not p.requires_grad] == [f"{k}_proj.values" for k in "qkv"]
    assert not densify(sparse).in_proj_weight.requires_grad


def test_what_does_not_fit_is_refused() -> None:
    linear, conv, rnn = prune(nn.Linear(8, 4), 0.5), prune(nn.Conv2d(4, 6, 3), 0.5), prune(nn.LSTM(6, 4, 2), 0.5)
    gru, state = prune(nn.GRU(6, 4), 0.5), torch.zeros(2, 3, 4)
    cases: list[tuple[nn.Module, tuple[Any, ...], type[Exception], str]] = [
        (linear, (torch.ones(2, 7),), ow.ShapeError, "expected: .*8"),
        (linear, (torch.ones(()),), ow.ShapeError, "expected: .*8"),
        (linear, ([1.0] * 8,), ow.DTypeError, "input list"),
        (conv, (torch.ones(2, 3, 8, 8),), ow.ShapeError, "expected: .batch, 4"),
        (conv, (torch.ones(8, 8),), ow.ShapeError, "expected: .batch, 4"),
        (conv, (torch.ones(2, 4, 2, 8),), ow.ShapeError, "kernel of 3"),
        (rnn, (torch.ones(5, 3, 7),), ow.ShapeError, "6 features"),
        (rnn, (torch.ones(6),), ow.ShapeError, "6 features"),
        (rnn, (torch.ones(0, 3, 6),), ow.ShapeError, "6 features"),
        (rnn, (torch.ones(5, 3, 6), state), ow.ShapeError, "initial states"),
        (rnn, (torch.ones(5, 3, 6), (state[:, :1], state[:, :1])), ow.ShapeError, "initial states"),
        (gru, (torch.ones(5, 3, 6), (state,)), ow.ShapeError, "initial states"),
    ]
    for layer, arguments, error, text in cases:
        with pytest.raises(error, match=text):
            layer(*arguments)
    for call, error, text in (
        (lambda: prune(nn.Linear(8, 4), "0.5"), TypeError, "amount is a real number; got: '0.5'"),  # type: ignore[arg-type]
        (lambda: densify(torch.ones(3, 3)), ow.DTypeError, "not a module"),
        (lambda: prune(nn.Linear(8, 4), types=nn.Embedding), ow.UnsupportedError, "supported: torch.nn.Linear"),
        (lambda: prune(nn.Linear(8, 4), types="Linear"), ow.UnsupportedError, "types with 'Linear'"),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match=text):
            call()
    with torch.no_grad():
        assert rnn(torch.ones(5, 0, 6))[0].shape == (5, 0, 4)
        assert linear(torch.ones(0, 8)).shape == (0, 4)
