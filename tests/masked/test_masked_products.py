"""Products, softmax and what is made of them, on masked tensors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from masked_cases import FEW, SHAPES, agree, arrays, made, reference

import openwork as ow
from openwork import masked

MATRICES = [spec for rank, spec in FEW if rank == 2]


def product(text: str, *pairs: Any) -> Any:
    """The einsum of arrays with masks: zeros for what is missing, and how many products there were."""
    data = np.einsum(text, *(np.where(b, d, 0) for d, b in pairs))
    return reference(np.asarray(data), np.asarray(np.einsum(text, *(b.astype(int) for _, b in pairs)) > 0))


@pytest.mark.thin(15)
@pytest.mark.parametrize("spec", MATRICES)
@pytest.mark.parametrize("mask", [0.15, "none"])
def test_matmul(spec: str, mask: Any) -> None:
    a, b = arrays((8, 12), 0, mask=mask), arrays((12, 8), 1, mask=0.2)
    m, n = made(*a, spec), made(*b, spec)
    agree(m @ n, product("ij,jk->ik", a, b))
    v = arrays((12,), 2)
    agree(m @ made(*v), product("ij,j->i", a, v))
    dense = arrays((12, 3), 3, mask="all")
    agree(m @ dense[0], product("ij,jk->ik", a, dense))
    agree(dense[0].T @ n, product("kj,ji->ki", (dense[0].T, dense[1].T), b))
    agree(masked.linear(m, made(*arrays((5, 12), 6), spec)), product("ij,kj->ik", a, arrays((5, 12), 6)))


@pytest.mark.parametrize("spec", ["dense", "csr", "bsr(2, 3)"])
def test_infinite_elements_meet_no_missing_ones(spec: str) -> None:
    a = np.array([[np.inf, 1.0], [np.nan, 2.0]]), np.array([[True, True], [False, True]])
    b = np.array([[5.0, 1.0], [3.0, np.inf]]), np.array([[False, True], [True, False]])
    got = made(*a, spec) @ made(*b, spec)
    agree(got, reference(np.array([[3.0, np.inf], [6.0, 0.0]]), np.array([[True, True], [True, False]])))


@pytest.mark.parametrize("text", ["ij,ij->", "ij,kj->ik", "ij,jk,kl->il", "ij->j", "ij,ij->ij", "ij->"])
@pytest.mark.parametrize("spec", ["dense", "csr", "csc"])
def test_einsum(text: str, spec: str) -> None:
    pairs = [arrays((6, 6), k, mask=0.3) for k in range(text.count(",") + 1)]
    agree(masked.einsum(text, *(made(*p, spec) for p in pairs)), product(text, *pairs))


@pytest.mark.thin(2)
@pytest.mark.parametrize("mask", [0.4, "none"])
def test_einsum_with_operands_of_every_kind(mask: Any) -> None:
    """What shares no index with the result, not even by other operands, is a factor of all of it, and may be missing."""
    for text in (
        "ij,kl->kl",
        "ij,kl->",
        "ij,kl,j->l",
        "ij,->ij",
        ",ij->i",
        "ii,ij->j",
        "ij,kj->",
        "ij,kl->il",
        "i,j->ij",
    ):
        letters = text.partition("->")[0].split(",")
        for first, *rest in (("dense", "csr", "csr"), ("csr", "csr", "csr"), ("csr", "tensor", "csr"), ("tensor", "csr", "dense"),
                             ("csr", "array", "csr"), ("array", "dense", "tensor")):  # fmt: skip
            kinds = (first, *rest)[: len(letters)]
            pairs = [arrays((4,) * len(t), k, mask=mask if k < 2 else "all") for k, t in enumerate(letters)]
            pairs = [
                (d, b if k in ("dense", "csr") else np.ones_like(b)) for (d, b), k in zip(pairs, kinds, strict=True)
            ]
            operands = [
                np.asarray(d) if k == "array" or (k == "tensor" and not d.ndim) else ow.asarray(d, format="coo")
                if k == "tensor" else made(d, b, k if d.ndim == 2 else "dense") for (d, b), k in zip(pairs, kinds, strict=True)
            ]  # fmt: skip
            agree(masked.einsum(text, *operands), product(text, *pairs))


def test_gradients_of_a_product_that_is_missing() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(3, 3, requires_grad=True)
    m, number = ow.as_masked_tensor(x, x > 0).asformat("csr"), ow.as_masked_tensor(x[0, 0], torch.tensor(False))
    got = masked.einsum("ij,->ij", m, number)
    assert got.nse == 0
    assert torch.equal(torch.autograd.grad(got.sum().filled(0).to_dense(), x)[0], torch.zeros(3, 3))


def test_stacks_of_matrices() -> None:
    a, b = arrays((3, 4, 5), 0, mask=0.3), arrays((3, 5, 2), 1, mask=0.3)
    for spec in ("dense", "coo", "(i, j, k) -> (i : dense, j : compressed, k : dense)"):
        agree(made(*a, spec) @ made(*b, spec), product("bij,bjk->bik", a, b))
    with pytest.raises(ow.ShapeError, match="do not fit"):
        made(*a) @ made(*a)


@pytest.mark.thin(6)
@pytest.mark.parametrize(("rank", "spec"), FEW, ids=lambda x: str(x))
def test_softmax(rank: int, spec: str) -> None:
    data, bits = arrays(SHAPES[rank][0], mask=0.3)
    m = made(data, bits, spec)
    for axis in range(rank):
        powers = np.where(bits, np.exp(data), 0)
        total = powers.sum(axis, keepdims=True)
        want = reference(powers / np.where(total, total, 1), bits)
        agree(m.softmax(axis), want, exact=False)
        agree(np.exp(m.log_softmax(axis)), want, exact=False)
        assert m.softmax(axis).format == m.format


def test_normalisations_and_losses() -> None:
    data, bits = arrays((8, 12))
    bits[3] = False
    hidden = np.ma.MaskedArray(data, ~bits)
    for spec in ("dense", "csr"):
        m = made(data, bits, spec)
        norms = np.ma.sqrt((hidden**2).sum(1, keepdims=True))
        agree(masked.normalize(m), hidden / norms, exact=False)
        want = (hidden - hidden.mean(1, keepdims=True)) / np.ma.sqrt(hidden.var(1, keepdims=True) + 1e-5)
        agree(masked.layer_norm(m), want, exact=False)
        other, also = arrays((8, 12), 1)
        want = ((hidden - reference(other, also)) ** 2).mean()
        agree(masked.mse_loss(m, made(other, also, spec)), np.ma.asarray(want), exact=False)
        classes, known = np.arange(8) % 5, np.arange(8) % 3 > 0
        lost = -np.log(m.softmax(-1).to_numpy(1))[np.arange(8), classes]
        held = known & bits[np.arange(8), classes]
        agree(masked.cross_entropy(m, made(classes, known)), np.ma.asarray(lost[held].mean()), exact=False)


def test_attention_of_stacks() -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.random((2, 3, 5, 4)), rng.random((3, 6, 4)), rng.random((2, 1, 6, 2))
    for shape in ((5, 6), (3, 5, 6), (2, 1, 5, 6)):
        mask = ow.random(shape, 0.3, format="coo", rng=1)
        held = np.broadcast_to(mask.to_numpy() != 0, (2, 3, 5, 6))
        scores = np.where(held, np.exp(q @ np.swapaxes(k, -1, -2) / 2), 0)
        weights = scores / np.maximum(scores.sum(-1, keepdims=True), 1e-300)
        out = masked.attention(q, k, v, mask)
        bits = np.broadcast_to(held.any(-1, keepdims=True), (2, 3, 5, 2))
        agree(out, reference(weights @ v, bits), exact=False)
    one = masked.attention(q[1, 2], k[2], v[1, 0], ow.masked_tensor(mask[1, 0]))
    agree(one, out[1, 2].to_masked_array(), exact=False)
    for bad in ((q[0, 0, 0], k, v, mask), (q, k[:, :5], v, mask), (q, k[:2], v, mask)):
        with pytest.raises(ow.ShapeError, match="attention: "):
            masked.attention(*bad)


def test_gradients_of_attention_of_stacks() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (torch.rand(2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor(np.tri(4), dtype=torch.float64)
    got = masked.attention(q, k, v, ow.asarray(mask.numpy(), format="csr"))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask > 0)
    torch.testing.assert_close(got.to_tensor(0), want)
    mine = torch.autograd.grad((got.to_tensor(0) ** 2).sum(), (q, k, v))
    torch.testing.assert_close(mine, torch.autograd.grad((want**2).sum(), (q, k, v)))


def test_attention_has_no_dense_scores() -> None:
    n, d = 3000, 8
    rng = np.random.default_rng(0)
    q, k, v = (rng.random((n, d)) for _ in range(3))
    mask = ow.random((n, n), 0.001, format="csr", rng=1)
    masked.attention(q, k, v, mask)
    tracemalloc.start()
    out = masked.attention(q, k, v, mask)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * n  # bytes: an eighth of a dense matrix of scores
    held = mask.to_numpy() != 0
    scores = np.where(held, np.exp(q @ k.T / np.sqrt(d)), 0)
    seen = held.any(1)
    assert 0 < seen.sum() < n
    np.testing.assert_allclose(out.to_numpy(0)[seen], (scores @ v)[seen] / scores[seen].sum(1, keepdims=True))
    np.testing.assert_array_equal(out.get_mask().to_numpy().all(1), seen)
