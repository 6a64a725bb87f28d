"""Gradients of elements that are set, and of products over semirings, determinants and stacks of systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch_matrix import LAYOUTS, X, make, plain

import openwork as ow
from openwork.torch.functions.call import mm

GIVEN = torch.tensor([1.5, -2.0, 0.25], dtype=torch.float64)
KEY = ([0, 2, 2], [1, 3, 3])
"""Two places, of which one is named twice."""


def put(d: torch.Tensor, key: Any, x: Any) -> torch.Tensor:
    d = d.clone()
    d[key] = x
    return d


def reduced(op: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    at = torch.tensor([1, 15, 15])
    return lambda d, x: d.reshape(-1).scatter_reduce(0, at, x, op).reshape(d.shape)


CHANGES: dict[str, tuple[Any, Any]] = {
    "element": (lambda t, x: t.at[1, 2].set(x[0]), lambda d, x: put(d, (1, 2), x[0])),
    "row": (lambda t, x: t.at[1, :3].set(x), lambda d, x: put(d, (1, slice(0, 3)), x)),
    "column": (lambda t, x: t.at[:, 1].set(x[0] * 2), lambda d, x: put(d, (slice(None), 1), x[0] * 2)),
    "number": (lambda t, x: t.at[0].set(3.0) * x[0], lambda d, x: put(d, 0, 3.0) * x[0]),
    "sparse": (lambda t, x: t.at[1:3].set(t[2:4] * x[0]), lambda d, x: put(d, slice(1, 3), d[2:4] * x[0])),
    "add": (lambda t, x: t.at[KEY].add(x), reduced("sum")),
    "mul": (lambda t, x: t.at[KEY].mul(x), reduced("prod")),
    "min": (lambda t, x: t.at[KEY].min(x), reduced("amin")),
    "max": (lambda t, x: t.at[KEY].max(x), reduced("amax")),
}


@pytest.mark.parametrize("layout", ["csr", "ragged bsr", "dense", "uncoalesced coo"])
def test_elements_that_are_set(layout: str) -> None:
    for mine, theirs in CHANGES.values():
        case = make(*LAYOUTS[layout])
        x, y = GIVEN.clone().requires_grad_(), GIVEN.clone().requires_grad_()
        got, want = plain(mine(case.tensor, x)), theirs(case.dense, y)
        torch.testing.assert_close(got, want)
        got.square().sum().backward()
        want.square().sum().backward()
        torch.testing.assert_close(case.own_gradient, case.dense_gradient)
        torch.testing.assert_close(x.grad, y.grad)


def test_products_with_elements_at_several_places() -> None:
    """Coordinates are columns of one array: each of them was read as if it were all of it."""
    key = ([3, 0, 2], [1, 3, 5])
    case = make("csr", (4, 6))
    x, y = GIVEN.clone().requires_grad_(), GIVEN.clone().requires_grad_()
    got, want = case.tensor.at[key].mul(x), put(case.dense, key, case.dense[key] * y)
    torch.testing.assert_close(plain(got), want)
    plain(got).sum().backward()
    want.sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_assignment_in_place_and_at_every_element() -> None:
    t = make("csr", (4, 6)).tensor * 1
    x = GIVEN.clone().requires_grad_()
    t[0, :3] = x
    t.sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(3, dtype=torch.float64))
    dense = torch.eye(3).requires_grad_()
    (ow.asarray(dense, format="csr", grad="dense").at[0, 1].set(5.0) * 2).sum().backward()
    torch.testing.assert_close(dense.grad, put(torch.full((3, 3), 2.0), (0, 1), 0.0))


SEMIRINGS = {
    "min_plus": ("amin", torch.add), "max_plus": ("amax", torch.add), "max_times": ("amax", torch.mul),
    "plus_max": ("sum", torch.maximum), "min_max": ("amin", torch.maximum),
}  # fmt: skip


def over_semiring(a: torch.Tensor, b: torch.Tensor, reduction: str, times: Any) -> torch.Tensor:
    """The product of dense matrices in which zeros take no part, and 0 where nothing does."""
    there = (a.detach() != 0)[:, :, None] & (b.detach() != 0)[None]
    nothing = {"amin": float("inf"), "amax": -float("inf"), "sum": 0.0}[reduction]
    products = torch.where(there, times(a[:, :, None], b[None]), nothing)
    found: torch.Tensor = getattr(products, reduction)(1)
    return torch.where(there.any(1), found, 0.0)


@pytest.mark.parametrize("layout", ["csr", "uncoalesced coo"])
@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_semirings(semiring: str, layout: str) -> None:
    one, other = make(*LAYOUTS[layout]), make("csr", (4, 6), seed=3)
    made = ow.spgemm(one.tensor, other.tensor.T, semiring=semiring).to_dense()
    got = torch.where(torch.isinf(made), 0.0, made)
    want = over_semiring(one.dense, other.dense.T, *SEMIRINGS[semiring])
    torch.testing.assert_close(got, want)
    weights = torch.linspace(0.5, 1.5, 16, dtype=torch.float64).reshape(4, 4)
    (got * weights).sum().backward()
    (want * weights).sum().backward()
    for case in (one, other):
        torch.testing.assert_close(case.own_gradient, case.dense_gradient)


@pytest.mark.parametrize("mask", ["M", "~M"])
@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_semirings_under_a_mask(semiring: str, mask: str) -> None:
    one, other = make("csr", (4, 6)), make("csr", (4, 6), seed=3)
    where = (torch.arange(16).reshape(4, 4) % 3 == 0) == (mask == "M")
    held = ow.asarray((torch.arange(16).reshape(4, 4) % 3 == 0).numpy(), format="csr")
    statement = f"C<{mask}>[i, k] += A[i, j] * B[k, j]"
    made = plain(ow.evaluate(statement, A=one.tensor, B=other.tensor, M=held, semiring=semiring))
    got = torch.where(torch.isinf(made), 0.0, made)
    want = torch.where(where, over_semiring(one.dense, other.dense.T, *SEMIRINGS[semiring]), 0.0)
    torch.testing.assert_close(got, want)
    got.square().sum().backward()
    want.square().sum().backward()
    for case in (one, other):
        torch.testing.assert_close(case.own_gradient, case.dense_gradient)


@pytest.mark.parametrize(("subscripts", "kept"), [("ij->i", 0), ("ij->j", 1), ("iij->j", 2), ("ij->", ())])
def test_the_gradient_of_any_element(subscripts: str, kept: Any) -> None:
    shape = (4,) * subscripts.index("-")
    t = ow.asarray(torch.linspace(1, 2, 4 ** len(shape), dtype=torch.float64).reshape(shape), format="coo")
    got = plain(ow.einsum(subscripts, t.requires_grad_(), semiring="any_first"))
    (got * torch.arange(1.0, got.numel() + 1)).sum().backward()
    gradient = plain(t.grad)
    chosen = gradient.sum(tuple({*range(len(shape))} - {*([kept] if kept != () else [])}))
    torch.testing.assert_close(chosen, torch.arange(1.0, got.numel() + 1, dtype=torch.float64).reshape(got.shape))
    picked = gradient != 0
    assert int(picked.sum()) == got.numel()  # one element for each result, the one whose value it has
    values = plain(t.detach())[picked]
    torch.testing.assert_close(values.sort().values, got.detach().flatten().sort().values)


def test_a_largest_product_of_zero_has_its_whole_gradient() -> None:
    t = make("csr", (4, 6)).tensor
    x = torch.zeros(6, 2, dtype=torch.float64, requires_grad=True)
    mm(t, x, "amax").sum().backward()
    assert x.grad is not None
    rows = torch.zeros(4, dtype=torch.float64)
    rows[t.coalesce().indices()[0].unique()] = 1
    shares = torch.autograd.grad(mm(t, x + 1, "amax").sum(), x)[0]
    assert x.grad[:, 0].abs().sum() > 0
    assert torch.isfinite(shares).all()
    single = ow.asarray(torch.tensor([[0.0, 2.0]])).asformat("csr").requires_grad_()
    y = torch.zeros(2, 1, requires_grad=True)
    mm(single, y, "amax").sum().backward()
    torch.testing.assert_close(y.grad, torch.tensor([[0.0], [2.0]]))


def system(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    elements = torch.rand(n, n, generator=generator, dtype=torch.float64)
    keep = torch.rand(n, n, generator=generator) < 0.1
    return elements * keep + 2 * torch.eye(n, dtype=torch.float64)


def over(t: ow.Tensor, values: torch.Tensor) -> ow.Tensor:
    return t._from_storage(t._storage.with_values(values))


def test_determinants() -> None:
    dense = system(70).requires_grad_()
    t = ow.asarray(dense.detach()).asformat("csr").requires_grad_()
    got, want = ow.linalg.slogdet(t), torch.linalg.slogdet(dense)
    torch.testing.assert_close(got[1].to_dense(), want[1])
    got[1].to_dense().backward()
    want[1].backward()
    assert t.grad is not None
    assert dense.grad is not None
    torch.testing.assert_close(t.grad.to_dense(), dense.grad * (dense.detach() != 0))
    small = ow.asarray(system(4)).asformat("coo")
    values = small.values.clone().requires_grad_()
    assert gradcheck(lambda v: ow.linalg.det(over(small, v)).to_dense(), (values,))
    assert gradgradcheck(lambda v: ow.linalg.det(over(small, v)).to_dense(), (values,))
    with pytest.raises(ow.UnsupportedError, match="complex"):
        ow.linalg.det(t * (1 + 1j))
    single = t.detach().to(torch.float32).requires_grad_()
    ow.linalg.slogdet(single)[1].to_dense().backward()
    torch.testing.assert_close(single.grad.to_dense(), t.grad.to_dense().float(), rtol=1e-3, atol=1e-4)


def test_stacks_of_systems() -> None:
    t = ow.asarray(torch.stack([system(5), system(5, 1)])).asformat("csf")
    values, b = t.values.clone().requires_grad_(), torch.linspace(1, 2, 20, dtype=torch.float64).reshape(2, 5, 2)
    torch.testing.assert_close(ow.linalg.solve(over(t, values), b), torch.linalg.solve(t.to_dense(), b))
    assert gradcheck(lambda v, r: ow.linalg.solve(over(t, v), r), (values, b.requires_grad_()), fast_mode=True)
    for matrix, sides in (
        (over(t, values), b),
        (over(t, values), b[0, :, 0]),
        (over(t, values)[0], b[0]),
    ):  # of Tensors alone a Tensor
        found, plain = ow.linalg.solve(matrix, ow.asarray(sides)), ow.linalg.solve(matrix, sides)
        assert (type(found), type(plain)) == (ow.Tensor, torch.Tensor)
        torch.testing.assert_close(found.to_dense(), plain)
        one_by_one = torch.linalg.solve(matrix.to_dense(), sides[:, None])[..., 0] if sides.ndim == 1 else plain
        torch.testing.assert_close(plain, one_by_one)


def test_dropout() -> None:
    t = make("csr", (4, 6)).tensor
    torch.manual_seed(1)
    found = torch.nn.functional.dropout(t, 0.5)
    assert found.fill_value == 0
    found.sum().backward()
    assert t.grad is not None
    kept = found.values.detach() != 0
    assert 0 < int(kept.sum()) < len(kept)
    torch.testing.assert_close(t.grad.values, 2 * kept.double())
    torch.testing.assert_close(torch.nn.functional.dropout(t, 0.5, training=False).values, t.values)
    with pytest.raises(ow.UnsupportedError, match="fill value 1"):
        torch.nn.functional.dropout(t.detach() + 1)


def test_addmm() -> None:
    t, y = make("csr", (4, 6)).tensor, torch.ones(4, 3, dtype=torch.float64)
    want = torch.addmm(y, t.detach().to_dense(), X, beta=2, alpha=0.5)
    torch.testing.assert_close(ow.addmm(y, t, X, beta=2, alpha=0.5), want)
    torch.testing.assert_close(ow.addmm(y, t, X, beta=0), t @ X)
    assert ow.addmm(t.T, t.T, t[:, :4]).format == t.T.format


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")  # torch's, of a short sequence, before it asks us
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_torch_tensors_are_indexed_by_tensors(library: str) -> None:
    A = ow.asarray([[1.0, 0, 2], [0, 0, 3]], format="csr")
    A = ow.asarray(A, like=torch) if library == "torch" else A
    x, places, mask = torch.arange(6.0).reshape(2, 3), ow.nonzero(A), A != 0
    at = tuple(torch.tensor(k) for k in ([0, 0, 1], [0, 2, 2]))
    for got in (x[places], x[mask], x[places[0], places[1]]):
        assert type(got) is torch.Tensor
        assert got.tolist() == [0, 2, 5]
    for key in (places, mask):
        y = x.clone()
        y[key] = -1
        assert torch.equal(y, x.index_put(at, torch.tensor(-1.0)))
        y[key] = ow.asarray([7.0, 8, 9], dtype="float32")
        assert torch.equal(y, x.index_put(at, torch.tensor([7.0, 8, 9])))
    assert torch.equal(x.index_put(places, torch.tensor(5.0)), x.index_put(at, torch.tensor(5.0)))
    assert torch.equal(x.clone().index_put_(places, torch.tensor(5.0)), x.index_put(at, torch.tensor(5.0)))
    leaf = x.clone().requires_grad_()
    leaf[places].sum().backward()
    assert leaf.grad.tolist() == [[1, 0, 1], [0, 0, 1]]


def test_elements_that_are_set_where_torch_records_are_stored() -> None:
    """A gradient reaches them; where nothing is recorded what equals the fill value is left out."""
    t = ow.asarray(torch.tensor([[5.0, 0, 2], [0, 4, 1]]), format="csr")
    assert [t.at[0, 0].set(0).nse, t.at[0, 1].mul(3).nse, t.at[0, 0].mul(0).nse] == [3, 4, 4]
    t.values.requires_grad_()
    assert [t.at[0, 0].set(0).nse, t.at[0, 1].mul(3).nse] == [4, 5]


@pytest.mark.parametrize("name", ["sign", "logabsdet"])
def test_results_with_names_of_a_batch(name: str) -> None:
    dense = torch.diag(torch.arange(1.0, 5.0, dtype=torch.float64)) + torch.eye(4, dtype=torch.float64).roll(1, 0)
    t = ow.asarray(dense, format="csr")

    def one(values: torch.Tensor) -> torch.Tensor:
        return plain(getattr(ow.linalg.slogdet(t.with_values(values)), name))

    got = torch.func.vmap(one)(torch.stack([t.values, -2 * t.values]))
    want = getattr(torch.linalg.slogdet(torch.stack([dense, -2 * dense])), name)
    torch.testing.assert_close(got, want)


def test_systems_from_the_right_and_with_vectors() -> None:
    dense = torch.eye(4, dtype=torch.float64) * 3 + torch.eye(4, dtype=torch.float64).roll(1, 0)
    t, b = ow.asarray(dense, format="csr"), torch.linspace(1, 2, 8, dtype=torch.float64).reshape(4, 2)
    torch.testing.assert_close(torch.sparse.spsolve(t, b[:, 0]), torch.linalg.solve(dense, b[:, 0]))
    torch.testing.assert_close(torch.sparse.spsolve(t, b[:, 0], left=False), torch.linalg.solve(dense.T, b[:, 0]))
    torch.testing.assert_close(plain(torch.linalg.solve(t, b.T, left=False)), b.T @ torch.linalg.inv(dense))
    stack, vectors = torch.stack([dense, 2 * dense]), b.T
    got = plain(torch.linalg.solve(ow.asarray(stack, format="coo"), vectors))
    torch.testing.assert_close(got, torch.linalg.solve(stack, vectors))


@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize("options", [{"size_average": False}, {"reduce": False}, {"size_average": True}])
def test_the_old_arguments_of_losses(options: dict[str, bool]) -> None:
    dense, classes = torch.eye(4).roll(1, 0) * 2, torch.tensor([0, 1, 2, 0])
    t, other = ow.asarray(dense, format="csr"), torch.linspace(0, 1, 16).reshape(4, 4)
    for name, target in (("mse_loss", other), ("l1_loss", other), ("cross_entropy", classes), ("nll_loss", classes)):
        loss = getattr(torch.nn.functional, name)
        torch.testing.assert_close(plain(loss(t, target, **options)), loss(dense, target, **options), msg=name)
    loss = torch.nn.functional.triplet_margin_loss
    torch.testing.assert_close(plain(loss(t, other, other.T, **options)), loss(dense, other, other.T, **options))
