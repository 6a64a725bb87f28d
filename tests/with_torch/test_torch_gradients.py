"""Gradients of every operation on every layout, against torch on dense tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch_matrix import BINARY, LAYOUTS, PRODUCTS, REDUCTIONS, STACKS, STRUCTURAL, UNARY, X, check, make, plain

import openwork as ow
from openwork.storage.storage import Storage

BY_VALUE = ("mixed formats", "to dcsr or csf", "coalesce")
"""Operations that make a dense tensor sparse: only the elements that are stored have a gradient."""

EVERY = {**LAYOUTS, **{f"{name}, rank 3": spec for name, spec in STACKS.items()}}


def over(t: ow.Tensor, values: torch.Tensor) -> ow.Tensor:
    return t._from_storage(t._storage.with_values(values))


@pytest.mark.thin(12)
@pytest.mark.parametrize("layout", EVERY)
def test_unary(layout: str) -> None:
    for mine, theirs in UNARY.values():
        check(make(*EVERY[layout]), mine, theirs)


@pytest.mark.thin(6)
@pytest.mark.parametrize("layout", EVERY)
def test_binary(layout: str) -> None:
    for name, function in BINARY.items():
        if layout == "dense" and name in BY_VALUE:
            continue
        check(make(*EVERY[layout]), function, function)


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("layout", EVERY)
def test_products(layout: str) -> None:
    for function in PRODUCTS.values():
        check(make(*EVERY[layout]), function, function)


@pytest.mark.thin(12)
@pytest.mark.parametrize("layout", EVERY)
def test_structural(layout: str) -> None:
    for name, (mine, theirs) in STRUCTURAL.items():
        if layout == "dense" and name in BY_VALUE:
            continue
        check(make(*EVERY[layout]), mine, theirs)


@pytest.mark.thin(8, rest="ci")
@pytest.mark.parametrize("layout", EVERY)
def test_reductions(layout: str) -> None:
    for mine, theirs in REDUCTIONS.values():
        check(make(*EVERY[layout]), mine, theirs)


FAMILIES: dict[str, Any] = {
    "product": lambda t, x: t @ x,
    "product at": lambda t, x: ow.sddmm(t, x[:4], x.T) * x[0, 0],
    "spgemm": lambda t, x: t @ (2 * t).T * x[0, 0],
    "merge": lambda t, x: t * t[:, ::-1] + t,
    "dense": lambda t, x: t / (x[:, 0] + 3),
    "conversion": lambda t, x: t.asformat("csc"),
    "minimum": lambda t, x: t.min(axis=0),
    "product of all": lambda t, x: t.prod(1),
    "variance": lambda t, x: (t * x[:, 0]).var(1),
    "contraction": lambda t, x: ow.einsum("ij,jk,il->lk", t, x, t),
}


@pytest.mark.thin(21)
@pytest.mark.parametrize("layout", ["csr", "uncoalesced coo", "ragged bsr"])
@pytest.mark.parametrize("family", FAMILIES)
def test_double_backward(layout: str, family: str) -> None:
    t = make(*LAYOUTS[layout]).tensor
    generator = torch.Generator().manual_seed(1)
    values = torch.rand(len(t.values), generator=generator, dtype=torch.float64).add(0.1).requires_grad_()
    x = X.clone().requires_grad_()

    def function(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return plain(FAMILIES[family](over(t, values), x))

    assert gradcheck(function, (values, x), fast_mode=True)
    assert gradgradcheck(function, (values, x), fast_mode=True)


@pytest.mark.parametrize("reduce", ["mean", "amax"])
def test_double_backward_of_reduced_products(reduce: str) -> None:
    t = make(*LAYOUTS["csr"]).tensor
    values = torch.rand(len(t.values), generator=torch.Generator().manual_seed(1), dtype=torch.float64).add(0.1)
    given = values.requires_grad_(), X.clone().requires_grad_()
    assert gradgradcheck(lambda v, x: plain(torch.sparse.mm(over(t, v), x, reduce)), given, fast_mode=True)
    assert gradcheck(lambda v, x: plain(torch.sparse.mm(over(t, v), x, reduce)), given, fast_mode=True)
    once, to_go_on = (
        torch.autograd.grad(
            plain(torch.sparse.mm(over(t, values), given[1], reduce)).square().sum(), given, create_graph=more
        )
        for more in (False, True)
    )
    torch.testing.assert_close(once, to_go_on)


def test_the_gradient_of_a_product_is_sampled_never_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """No buffer of the size of the matrix is made, forward or backward."""
    n = 3000
    sizes: list[int] = []
    start = Storage.__init__

    def watch(self: Storage, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        sizes.append(len(self.values))

    monkeypatch.setattr(Storage, "__init__", watch)
    t = ow.random((n, n), 0.0005, format="csr", rng=0)
    t = ow.asarray(t.to_torch()).requires_grad_()
    x = torch.ones((n, 2), dtype=torch.float64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda v: (sizes.append(v.numel()), v)[1], lambda v: v):
        (t @ x).sum().backward()
    assert t.grad is not None
    assert t.grad.nse == t.nse
    assert max(sizes) <= max(2 * n, t.nse)


@pytest.mark.thin(14)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64, torch.complex128])
@pytest.mark.parametrize("layout", ["csr", "bsr", "coo"])
def test_dtypes(layout: str, dtype: torch.dtype) -> None:
    tolerance = {torch.float16: 5e-3, torch.bfloat16: 4e-2}.get(dtype, 1e-5)
    x = X.to(dtype)
    for function in (lambda t: t @ x, lambda t: t + t * t, lambda t: t.sum(0), lambda t: t[1:, ::2] * 3):
        check(make(*LAYOUTS[layout], dtype=dtype), function, function, tolerance)


def test_real_values_with_a_complex_operand() -> None:
    x = torch.complex(X, 2 * X)
    check(make("csr", (4, 6)), lambda t: t @ x, lambda d: d.to(x.dtype) @ x)


def test_numpy_operands_mix_in() -> None:
    case = make("csr", (4, 6))
    other = ow.asarray(X.numpy()).asformat("csr")
    check(case, lambda t: t @ other, lambda d: d @ X)
    check(make("csr", (4, 6)), lambda t: ow.kron(t, X.numpy()[:2]), lambda d: torch.kron(d, X[:2]))
    check(make("csr", (4, 6)), lambda t: t * X.numpy()[:, 0], lambda d: d * X[:, 0])
    both = ow.asarray(case.dense.detach().numpy()).asformat("coo")
    check(make("csr", (4, 6)), lambda t: t + both, lambda d: d + case.dense.detach())


def test_dense_operands_get_gradients_too() -> None:
    case = make("csr", (4, 6))
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    (case.tensor @ x).square().sum().backward()
    (case.dense @ y).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_a_dense_tensor_made_sparse_has_the_gradient_of_what_is_stored() -> None:
    case = make("dense", (4, 6))
    (case.tensor.asformat("csr") * 3).sum().backward()
    torch.testing.assert_close(
        case.own_gradient.reshape(4, 6), torch.where(case.dense.detach() != 0, 3.0, 0.0).double()
    )


def test_nothing_is_recorded_without_need() -> None:
    t = make("csr", (4, 6)).tensor
    with torch.no_grad():
        assert not (t @ X).requires_grad
        assert not (t + t).requires_grad
    assert not (t.detach() @ X).requires_grad
    assert (t @ X).requires_grad


CROW, COL, PLACES = torch.tensor([0, 1, 2, 3]), torch.tensor([1, 0, 2]), torch.tensor([[0, 1, 2], [1, 0, 2]])
STRUCTURE = ow.sparse_csr_tensor(CROW, COL, torch.ones(3, dtype=torch.float64), (3, 3))
MAKERS: dict[str, Any] = {
    "with_values": lambda p: STRUCTURE.with_values(p),
    "with_values of a transpose": lambda p: STRUCTURE.T.with_values(p),
    "assemble": lambda p: ow.assemble("csr", (3, 3), pos={1: CROW}, crd={1: COL}, values=p),
    "sparse_csr_tensor": lambda p: ow.sparse_csr_tensor(CROW, COL, p, (3, 3)),
    "sparse_coo_tensor": lambda p: ow.sparse_coo_tensor(PLACES, p, (3, 3)),
    "asarray of a vector": ow.asarray,
    "asarray of a matrix": lambda p: ow.asarray(p.reshape(3, 1)),
    "asarray of torch's CSR": lambda p: ow.asarray(torch.sparse_csr_tensor(CROW, COL, p, (3, 3))),
    "asarray of torch's COO": lambda p: ow.asarray(torch.sparse_coo_tensor(PLACES, p, (3, 3))),
    "DLPack": lambda p: ow.from_dlpack(p.view(3, 1)),
    "as_masked_tensor": lambda p: ow.as_masked_tensor(p, torch.tensor([True, False, True])),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize("maker", MAKERS)
def test_what_is_made_of_a_parameter_requires_a_gradient_just_where_one_reaches_it(maker: str) -> None:
    p = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    for unrecorded in (torch.no_grad, torch.inference_mode):
        with unrecorded():
            assert not MAKERS[maker](p).requires_grad
    made = MAKERS[maker](p)
    assert made.requires_grad
    made.sum().backward()
    assert p.grad is not None
    assert p.grad[0] == 1


def test_views_of_a_leaf_made_under_no_grad_require_no_gradient() -> None:
    p = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    t = STRUCTURE.with_values(p)
    dense = ow.asarray(torch.ones(3, 3, dtype=torch.float64)).requires_grad_()
    with torch.no_grad():
        views = [t[0], t[1:], t.with_values(t.values), *torch.split(t, 1), t.T[:, 1:], t.asformat("coo")[:2]]
        arrays = [t.block_values, t.asformat("coo")._values(), dense.to_dense(), dense.T.to_dense(), dense.to_torch()]
        same = t.T
    assert not any(x.requires_grad for x in (*views, *arrays))
    same.sum().backward()
    assert torch.equal(p.grad, torch.ones(3, dtype=torch.float64))
    views[0].values[0] = 5.0
    assert p[0] == 5.0


def test_tangents_stay_under_no_grad() -> None:
    p, tangent = torch.ones(3, dtype=torch.float64, requires_grad=True), torch.arange(3, dtype=torch.float64)
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        t = STRUCTURE.with_values(torch.autograd.forward_ad.make_dual(p, tangent))
        total = torch.autograd.forward_ad.unpack_dual(t.sum()).tangent
    assert total == 3


def test_what_has_no_gradient_is_refused() -> None:
    t = make("csr", (4, 6)).tensor
    with pytest.raises(ow.UnsupportedError, match=r"any_first has no gradient: its sum"):
        ow.spgemm(t, t.T, semiring="any_first")
    with pytest.raises(ow.UnsupportedError, match=r"leaf that requires a gradient\n.*at\[key\]"):
        t[0, 0] = 1.0


def test_attributes() -> None:
    t = make("csr", (4, 6)).tensor
    assert t.requires_grad
    assert t.is_leaf
    assert t.grad is None
    doubled = 2 * t
    assert not doubled.is_leaf
    assert doubled.grad_fn is not None
    doubled.retain_grad()
    seen: list[torch.Tensor] = []
    handle = t.register_hook(seen.append)
    doubled.sum().backward()
    handle.remove()
    assert doubled.grad is not None
    assert t.grad is not None
    assert t.grad.format == t.format
    torch.testing.assert_close(t.grad.values, torch.full_like(t.values, 2.0))
    assert len(seen) == 1
    assert not t.detach().requires_grad
    with pytest.raises(ow.UnsupportedError, match="needs torch values"):
        ow.asarray([1.0]).requires_grad_()


def test_backward_takes_a_tensor() -> None:
    t = make("csr", (4, 6)).tensor
    (3 * t).backward(t.detach())
    torch.testing.assert_close(t.grad.values, 3 * t.values.detach())


def test_which_elements_prune_keeps_is_constant() -> None:
    x = torch.tensor([[0.0, 2.0, -3.0], [0.5, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    (ow.prune(ow.asarray(x).asformat("csr"), 0.75) * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, 2.0, 2.0], [0.0, 0.0, 2.0]]


def test_sum_to_size_is_torchs() -> None:
    x = torch.arange(12.0).reshape(2, 2, 3)
    t = ow.asarray(x).asformat("coo")
    for size in ((1, 3), (2, 1, 3), (3,), (2, 2, 3)):
        assert torch.equal(t.sum_to_size(*size).to_dense(), x.sum_to_size(*size))


STATEMENTS: dict[str, Callable[..., torch.Tensor]] = {
    "y[l] += A[i,j] * W[k,l]": lambda A, x, z, W, Y: A.sum() * W.sum(0),
    "y[i,l] += A[i,j] * W[k,l] * x[j]": lambda A, x, z, W, Y: (A @ x)[:, None] * W.sum(0),
    "y[j] += A[i,j] * (x[j] - z[i])": lambda A, x, z, W, Y: (A * (x - z[:, None])).sum(0),
    "y += A[i,j] * A[i,j] * x[j]": lambda A, x, z, W, Y: (A * A * x).sum(),
    "R[i,j] = A[i,j] * A[i,j] / (x[j] + z[i])": lambda A, x, z, W, Y: A * A / (x + z[:, None]),
    "R[i,j] = A[i,j] * Y[j,k]": lambda A, x, z, W, Y: A * Y.sum(1),
    "y[i] max= A[i,j] * x[j]": lambda A, x, z, W, Y: (A * x).amax(1),
    "y[i] += sqrt(A[i,j] + x[j])": lambda A, x, z, W, Y: torch.sqrt(A + x).sum(1),
    "y[i] += exp(A[i,j]) * A[i,j] * (Y[j,k] + 1)": lambda A, x, z, W, Y: (torch.exp(A) * A @ (Y + 1)).sum(1),
}


@pytest.mark.parametrize("spec", ["csr", "bsr(2, 2)"])
def test_statements_of_one_sparse_operand(spec: str) -> None:
    """Products, what they sum of one dense operand alone, and expressions at single elements."""
    rng = np.random.default_rng(2)
    dense = torch.from_numpy(rng.random((3, 4)) * (rng.random((3, 4)) < 0.6))
    others = {
        n: torch.from_numpy(rng.random(shape)) for n, shape in zip("xzWY", ((4,), (3,), (5, 2), (4, 5)), strict=True)
    }
    a = ow.asarray(dense.clone(), format=spec).requires_grad_()
    stored = ow.Tensor._from_storage(a._storage.with_values(torch.ones_like(a.values.detach()), 0)).to_dense() > 0
    for text, theirs in STATEMENTS.items():
        leaves = {n: v.clone().requires_grad_() for n, v in others.items()}
        used = [n for n in others if f"{n}[" in text]
        got = plain(ow.evaluate(text, A=a, **{n: leaves[n] for n in used}))
        d = dense.clone().requires_grad_()
        want = theirs(d, *leaves.values())
        torch.testing.assert_close(got, want, msg=text)
        weights = torch.arange(1.0, 1 + want.numel(), dtype=want.dtype).reshape(want.shape)
        first, *found = torch.autograd.grad((got * weights).sum(), [a.values, *[leaves[n] for n in used]])
        own, *expected = torch.autograd.grad((want * weights).sum(), [d, *[leaves[n] for n in used]])
        torch.testing.assert_close(plain(over(a, first)), torch.where(stored, own, 0), msg=text)
        torch.testing.assert_close(found, expected, msg=text)


CONTRACTIONS = (
    "ijk,jl->il",
    "iij,jk->ik",
    "iji,i->j",
    "ij,kl->il",
    "ij,kl->",
    "ij,jk->k",
    "ij,jk->ijk",
    "ijk,ikj->i",
    "ijk,kl,j->il",
)


@pytest.mark.thin(2)
@pytest.mark.parametrize(("spec", "dtype"), [("coo", torch.float64), ("dcsr", torch.complex128)])
def test_contractions(spec: str, dtype: torch.dtype) -> None:
    """Of sparse operands: diagonals, sums of one operand alone, outer and batched products."""
    rng, extents = np.random.default_rng(4), {"i": 3, "j": 4, "k": 4, "l": 2}
    for text in CONTRACTIONS:
        ours, theirs = [], []
        for letters in text.partition("->")[0].split(","):
            shape = [extents[c] for c in letters]
            x = torch.from_numpy(rng.random(shape) * (rng.random(shape) < 0.6)).to(dtype)
            x = x * (1 + 2j) if dtype.is_complex else x
            format = {1: "coo", 2: spec}.get(len(shape), "coo" if spec == "coo" else "csf")
            ours.append(ow.asarray(x.clone(), format=format).requires_grad_())
            theirs.append(x.requires_grad_())
        got, want = plain(ow.einsum(text, *ours)), torch.einsum(text, *theirs)
        torch.testing.assert_close(got, want, msg=text)
        weights = torch.arange(1.0, 1 + want.numel(), dtype=torch.float64).reshape(want.shape)
        found = torch.autograd.grad((got * weights).sum().abs(), [t.values for t in ours])
        expected = torch.autograd.grad((want * weights).sum().abs(), theirs)
        for t, x, f, e in zip(ours, theirs, found, expected, strict=True):
            torch.testing.assert_close(plain(over(t, f)), torch.where(x != 0, e, 0), msg=text)
    for ring in ("any_pair", "lor_land", "plus_pair"):
        t = ow.asarray(theirs[0].detach().real[0], format="csr").requires_grad_()
        got = ow.einsum("ij,kj->ik", t, t, semiring=ring)
        assert not got.requires_grad
        meet = (plain(t) != 0).long() @ (plain(t) != 0).long().T
        torch.testing.assert_close(plain(got), meet if ring == "plus_pair" else meet > 0)
