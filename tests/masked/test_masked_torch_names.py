"""torch's names on masked tensors: each method and function of its masked tensors, against the same on dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

torch = pytest.importorskip("torch")

from torch.masked.maskedtensor import binary, reductions, unary  # noqa: E402

SCALARS = {"clamp": {"min": 0.3}, "clip": {"max": 0.6}, "pow": {"exponent": 2}}
HIDDEN = 7.0


def pair(names: str = "f", spec: str = "dense") -> tuple[Any, Any, Any]:
    """Values between 0 and 1, bits or integers, with a mask that hides some; and the masked tensor of them."""
    generator = torch.Generator().manual_seed(3)
    data = torch.rand(4, 5, dtype=torch.float64, generator=generator)
    data = (data * 9).long() + 1 if names == "i" else data * 0.8 + 0.1
    mask = torch.rand(4, 5, generator=generator) < 0.6
    hidden = data.masked_fill(~mask, int(HIDDEN) if names == "i" else HIDDEN)
    return data, mask, ow.masked_tensor(hidden, mask).asformat(spec)


def kind(name: str) -> str:
    return "i" if name.startswith("bitwise") else "f"


def agree(got: Any, want: Any, mask: Any) -> None:
    """Equal dtypes, and values where specified."""
    assert got.dtype == want.dtype
    assert torch.equal(got.get_mask().to_dense(), mask)
    assert torch.allclose(got.to_tensor(0)[mask].double(), want[mask].double(), equal_nan=True)


@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_every_unary_method_and_function_of_torchs_masked_tensors(spec: str) -> None:
    for name in unary.UNARY_NAMES:
        data, mask, m = pair(kind(name), spec)
        args = SCALARS.get(name, {})
        want = getattr(torch, name)(data, **args)
        agree(getattr(torch, name)(m, **args), want, mask)
        if hasattr(torch.Tensor, name):
            agree(getattr(m, name)(**args), want, mask)
        if f"{name}_" in unary.INPLACE_UNARY_NAMES and hasattr(torch.Tensor, f"{name}_"):
            assert getattr(m, f"{name}_")(**args) is m
            agree(m, want, mask)


@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_every_binary_method_and_function_of_torchs_masked_tensors(spec: str) -> None:
    for name in binary.BINARY_NAMES:
        data, mask, m = pair(kind(name), spec)
        want = getattr(torch, name)(data, data)
        agree(getattr(torch, name)(m, m), want, mask)
        agree(getattr(m, name)(m), want, mask)
        if f"{name}_" in binary.INPLACE_BINARY_NAMES and hasattr(torch.Tensor, f"{name}_"):
            held = m.clone()
            assert getattr(held, f"{name}_")(m) is held
            agree(held, want.to(data.dtype), mask)


def test_every_reduction_of_torchs_masked_tensors() -> None:
    data, mask, m = pair()
    for name in (*reductions.REDUCE_NAMES, "median", "logsumexp"):
        x, dense = (m > 0.4, data > 0.4) if name == "all" else (m, data)
        first = (2,) if name == "norm" else ()
        rows = [(dense[k][mask[k]], torch.nonzero(mask[k])[:, 0]) for k in range(4)]
        extra = (0,) if name == "logsumexp" else ()
        want = torch.stack([getattr(torch, name)(row, *extra) for row, _ in rows])
        if name.startswith("arg"):
            want = torch.stack([places[k] for k, (_, places) in zip(want, rows, strict=True)])
        for keep in (False, True):
            got = getattr(x, name)(*first, dim=1, keepdim=keep)
            got = got.values if name == "median" else got
            assert got.dtype == want.dtype
            assert torch.allclose(got.to_tensor(0), want.reshape(4, 1) if keep else want), name
        if name not in ("argmin", "argmax", "logsumexp"):
            assert torch.allclose(getattr(x, name)(*first).to_tensor(0), getattr(torch, name)(dense[mask]))


def test_keepdim_and_dim_are_torchs_over_either_library() -> None:
    data, mask, m = pair()
    n = ow.masked_tensor(data.numpy(), mask.numpy())
    for name in ("sum", "prod", "mean", "amin", "amax", "argmax", "logsumexp", "var", "norm"):
        for x in (m, n):
            assert getattr(x, name)(dim=1, keepdim=True).shape == (4, 1)
            assert getattr(x, name)(axis=1, keepdims=True).shape == (4, 1)
    assert m.var().item() == pytest.approx(data[mask].var().item())
    assert m.var(axis=None).item() == n.var().item() == pytest.approx(data[mask].var(correction=0).item())
    assert n.var(unbiased=True).item() == pytest.approx(data[mask].var().item())
    assert n.eq(n).compressed().all()
    assert (n.cumsum(dim=1) == n.cumsum(1)).all().item()


def test_what_torch_gives_in_pairs_is_a_pair_over_torch_buffers() -> None:
    m = pair()[2]
    for name, args in (("max", (1,)), ("min", (1,)), ("sort", (1,)), ("median", (1,)), ("topk", (2, 1))):
        values, indices = getattr(m, name)(*args)
        assert type(getattr(m, name)(*args)).__name__ == name
        assert values.shape == indices.shape
        assert indices.dtype == torch.int64
    assert m.max(axis=1).shape == m.max(axis=1, keepdims=False).shape == (4,)
    assert ow.sort(m, axis=1).shape == (4, 5)


def test_shapes_by_torchs_names() -> None:
    data, mask, m = pair()
    for name, args in (
        ("transpose", (0, 1)), ("view", (5, 4)), ("view", ((2, 10),)), ("unsqueeze", (0,)), ("expand_as", (data,)),
        ("narrow", (1, 1, 2)), ("select", (0, 1)), ("index_select", (1, torch.tensor([2, 0]))), ("t", ()),
        ("flatten", (0, 1)), ("unflatten", (1, (5, 1))), ("movedim", (0, 1)), ("flip", (0,)), ("roll", (1, 0)),
        ("repeat", (1, 2)), ("tile", ((2, 1),)), ("reshape_as", (data.T,)), ("contiguous", ()), ("diagonal", ()),
    ):  # fmt: skip
        for x in (m, m.to_sparse_csr()):
            got = getattr(x, name)(*args)
            assert torch.equal(got.get_mask().to_dense(), getattr(mask, name)(*args)), name
            assert torch.equal(got.to_tensor(0), getattr(data.masked_fill(~mask, 0), name)(*args)), name
    for name, args in (("unbind", ()), ("split", (2,)), ("chunk", (2, 1)), ("tensor_split", (2, 1))):
        for got, want in zip(getattr(m, name)(*args), getattr(mask, name)(*args), strict=True):
            assert torch.equal(got.get_mask().to_dense(), want)
    assert [len(torch.unbind(m, 1)), m.numel(), m.nelement(), m.dim(), m.ndimension()] == [5, 20, 20, 2, 2]
    assert m.size == 20
    assert m.size() == (4, 5)
    assert m.size(1) == 5


def test_data_mask_and_is_sparse_as_torch_documents_them() -> None:
    data, mask, m = pair()
    assert torch.equal(m.data().to_dense()[mask], data[mask])
    assert torch.equal(m.mask().to_dense(), mask)
    csr = m.to_sparse(layout=torch.sparse_csr)
    assert csr.is_sparse_csr()
    assert [m.is_sparse, m.is_sparse(), csr.is_sparse, csr.is_sparse()] == [False, False, True, True]
    assert repr(csr.is_sparse) == "True"
    assert m.to_sparse().is_sparse_coo()
    assert m.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 5)).nse == m.nse
    with pytest.raises(ow.FormatError, match="torch has no sparse layout"):
        m.to_sparse(layout="dia")
    with pytest.raises(ow.ShapeError, match="bsr needs blocksize"):
        m.to_sparse(layout="bsr")


def test_functions_of_torch_take_masked_tensors_over_numpy_buffers() -> None:
    data, mask, _ = pair()
    n = ow.masked_tensor(data.numpy(), mask.numpy())
    for got, want in (
        (torch.sin(n), torch.sin(data)),
        (torch.fmax(n, n * 2), data * 2),
        (torch.logaddexp2(n, n), torch.logaddexp2(data, data)),
        (torch.nextafter(n, n + 1), torch.nextafter(data, data + 1)),
        (torch.clamp(n, max=torch.tensor(0.5, dtype=torch.float64)), data.clamp(max=0.5)),
        (torch.pow(2.0, n), 2.0**data),
        (torch.sub(n, n, alpha=2), -data),
    ):
        agree(got, want, mask)
    held = n.clone()
    assert torch.sin_(held) is held
    np.testing.assert_allclose(held.compressed(), np.sin(n.compressed()))
    assert isinstance(held.mul_(2).values, np.ndarray)


def test_in_place_forms_keep_the_tensor() -> None:
    data, mask, m = pair()
    values = m.values
    m.mul_(2).add_(m, alpha=1).sub_(0.5)
    assert m.values is values
    agree(m, data * 4 - 0.5, mask)
    with pytest.raises(ow.DTypeError, match="div_: the result has dtype"):
        pair("i")[2].div_(2)
    with pytest.raises(ow.ShapeError, match="mul_: the result has shape"):
        m[0].mul_(data)
    leaf = ow.masked_tensor(data, mask, requires_grad=True)
    with pytest.raises(ow.UnsupportedError, match="leaf that requires a gradient"):
        leaf.sin_()
    root = leaf * 1
    root.exp_().sum().backward()
    agree(leaf.grad, data.exp(), mask)
    with pytest.raises(ow.UnsupportedError, match="out= of a masked tensor"):
        torch.sin(m, out=data)
    for name in ("frobnicate", "frexp"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(m, name)


def test_least_and_largest_along_a_dimension() -> None:
    m = ow.masked_tensor(torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [True, True, False]]))
    least, largest = torch.aminmax(m, dim=0)
    assert (least.to_tensor(-1).tolist(), largest.to_tensor(-1).tolist()) == ([0, 4, 2], [3, 4, 2])


def test_an_argument_by_two_names_is_refused() -> None:
    m = ow.masked_tensor(np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3) % 2 == 0)
    for call in (
        lambda: m.sum(axis=0, dim=1),
        lambda: m.sum(0, dim=1),
        lambda: m.max(0, axis=1),
        lambda: m.mean(keepdims=True, keepdim=False),
        lambda: m.std(unbiased=True, correction=0),
        lambda: m.norm(axis=0, dim=1),
    ):
        with pytest.raises(TypeError, match=r"(by two names|multiple values)"):
            call()


@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_spellings_that_torch_has_besides(spec: str) -> None:
    """Reflected operators of a dense tensor, arrays of NumPy among the arguments, arguments by place and in lists."""
    data, mask, m = pair("f", spec)
    other = torch.linspace(0.2, 2.0, 20, dtype=torch.float64).reshape(4, 5)
    held = ow.masked_tensor(other, mask).asformat(spec)
    hidden = data.masked_fill(~mask, 0)
    for got, want in (
        (other.__rpow__(m), data**other), (other.__rsub__(m), data - other), (other.__rdiv__(m), data / other),
        (other.__rfloordiv__(m), data // other), (torch.rsub(m, other), other - data),
        (m.lerp(other.numpy(), 0.5), (data + other) / 2), (m.addcmul(other.numpy(), other), data + other * other),
        (torch.max(m, other), torch.maximum(data, other)), (torch.min(m, other=held), torch.minimum(data, other)),
    ):  # fmt: skip
        agree(got, want, mask)
    if spec == "dense":
        agree(other.where(data > 0.5, m), torch.where(data > 0.5, other, data), mask | (data > 0.5))
    for got, want in (
        (m.var(False), data[mask].var(False)), (torch.std(m, True), data[mask].std()),
        (torch.var(m, correction=3), data[mask].var(correction=3)),
        (torch.var(m, 0, False, True), torch.stack([data[mask[:, k], k].var(False) for k in range(5)])[None]),
        (torch.norm(m, 3, 1, True), torch.norm(hidden, 3, 1, True)), (m.norm(1, 0), hidden.norm(1, 0)),
        (torch.linalg.vector_norm(m, float("inf"), dtype=torch.float32), hidden.float().abs().max()),
        (other.__rmatmul__(m.T), hidden.T @ other), (other.T.__rmatmul__(m), hidden @ other.T),
        (ow.masked.linear(m, other[:2], other[:2, 0]), hidden @ other[:2].T + other[:2, 0]),
        (torch.einsum("ij,kj->ik", m, held), hidden @ (other * mask).T), (torch.einsum("ij->i", [m]), hidden.sum(1)),
    ):  # fmt: skip
        agree(got, want, torch.ones_like(want, dtype=torch.bool))


def test_gradients_of_what_no_output_depends_on() -> None:
    data, mask, _ = pair()
    m, other = (ow.masked_tensor(data, mask, requires_grad=True) for _ in range(2))
    first, second = torch.autograd.grad((m * m).sum().to_tensor(0), [m, other], allow_unused=True)
    agree(first, 2 * data, mask)
    assert second is None


def test_what_is_recorded_of_data() -> None:
    data, mask, _ = pair()
    leaf = data.requires_grad_()
    assert not ow.masked_tensor(leaf, mask).requires_grad
    assert ow.as_masked_tensor(leaf, mask).requires_grad


def test_medians_of_nothing() -> None:
    m = ow.masked_tensor(torch.full((2, 3), torch.nan), torch.zeros(2, 3, dtype=torch.bool))
    for function in (torch.median, torch.nanmedian):
        for keepdim in (False, True):
            for dim in (0, 1):
                pair_found = function(m, dim, keepdim)
                assert type(pair_found).__name__ == function.__name__
                for got in pair_found:
                    assert (got.shape, got.nse) == (torch.median(m.to_tensor(0), dim, keepdim)[0].shape, 0)
        assert function(m).nse == 0
