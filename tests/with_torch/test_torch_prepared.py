"""Recorded products whose launches are kept: the gradients of the second step are those of the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import openwork as ow  # noqa: E402
from openwork.storage.specified import coordinates  # noqa: E402

RNG = np.random.default_rng(3)
X = np.where(RNG.random((6, 8)) < 0.4, RNG.random((6, 8)), 0.0)


def matrix(format: str, scale: float = 1.0) -> tuple[Any, Any]:
    """A leaf of ours, and the dense one of torch's."""
    theirs = torch.tensor(X * scale, requires_grad=True)
    ours = ow.asarray(torch.tensor(X * scale), format=format).requires_grad_()
    return ours, theirs


@pytest.mark.thin(15)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr(2, 2)", "ell(8)", "bitmap"])
@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("left", [True, False])
def test_steps(format: str, columns: int | None, left: bool) -> None:
    a, b = matrix(format)
    pattern = torch.zeros(6, 8, dtype=torch.bool)
    pattern[tuple(coordinates(a._storage)[0])] = True
    n = 8 if left else 6
    shape = (n,) if columns is None else ((n, columns) if left else (columns, n))
    for step in range(4):
        x, y = (torch.tensor(RNG.random(shape) * 0 + step + 1.5, requires_grad=True) for _ in range(2))
        weights = torch.tensor(RNG.random(tuple((a @ x if left else x @ a).shape)))
        ((a @ x if left else x @ a) * weights).sum().backward()
        ((b @ y if left else y @ b) * weights).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
        torch.testing.assert_close(torch.as_tensor(a.grad.to_numpy()), b.grad * pattern)
        with torch.no_grad():
            a.values.mul_(1.5), b.mul_(1.5)
        a.grad = b.grad = None


def test_operands_that_want_no_gradient() -> None:
    a, b = matrix("csr")
    for _ in range(3):
        (a @ torch.ones(8, dtype=torch.float64)).sum().backward()
    (3 * (b @ torch.ones(8, dtype=torch.float64)).sum()).backward()
    torch.testing.assert_close(torch.as_tensor(a.grad.to_numpy()), b.grad * (torch.as_tensor(X) != 0))
    plain = ow.asarray(torch.tensor(X), format="csr")
    for _ in range(3):
        x = torch.ones(8, dtype=torch.float64, requires_grad=True)
        (plain @ x).sum().backward()
        torch.testing.assert_close(x.grad, torch.as_tensor(X.sum(0)))
    with torch.no_grad():
        assert not (a @ torch.ones(8, dtype=torch.float64)).requires_grad


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_gradients_of_gradients_and_transforms() -> None:
    a, _ = matrix("csr")
    x = torch.ones(8, dtype=torch.float64, requires_grad=True)
    for _ in range(3):  # keeps all launches
        (a @ x).sum().backward()
    values = a.values.detach().clone().requires_grad_()

    def product(v: Any, y: Any) -> Any:
        return ow.Tensor._from_storage(a._storage.with_values(v)) @ y

    for _ in range(2):
        assert torch.autograd.gradcheck(product, (values, x))
        assert torch.autograd.gradgradcheck(product, (values, x))
    _, tangent = torch.func.jvp(lambda y: a.detach() @ y, (x.detach(),), (x.detach(),))
    torch.testing.assert_close(tangent, torch.as_tensor(X.sum(1)))
    batch = torch.func.vmap(lambda y: a.detach() @ y)(torch.ones(4, 8, dtype=torch.float64))
    torch.testing.assert_close(batch, torch.as_tensor(X.sum(1)).expand(4, 6))


def test_expanded_gradients_and_other_threads() -> None:
    kept = ow.get_num_threads()
    a, b = matrix("csr")
    y = torch.ones(8, 3, dtype=torch.float64)
    try:
        for threads in (1, 1, 2, 1):
            ow.set_num_threads(threads)
            a.grad = b.grad = None
            x = y.clone().requires_grad_()
            (a @ x).backward(torch.ones((), dtype=torch.float64).expand(6, 3))
            (b @ y).backward(torch.ones(6, 3, dtype=torch.float64))
            torch.testing.assert_close(torch.as_tensor(a.grad.to_numpy()), b.grad * (torch.as_tensor(X) != 0))
            torch.testing.assert_close(x.grad, torch.as_tensor(X.sum(0)[:, None] * np.ones(3)))
    finally:
        ow.set_num_threads(kept)


MERGES: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "-": lambda a, b: a - b,
    "largest": lambda a, b: torch.maximum(a, b),
    "more": lambda a, b: a > b,
}


@pytest.mark.thin(119)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "csf", "bitmap", "bsr(2, 2)", "ell(8)"])
@pytest.mark.parametrize("name", MERGES)
def test_merges(name: str, format: str) -> None:
    """Values of torch's, of several types, on structures of different sizes, with a gradient and without."""
    call = MERGES[name]
    for k, dtype in enumerate([torch.float64, torch.float64, torch.float32, torch.int64, torch.float64]):
        x, y = (torch.tensor(np.round(np.roll(X, n, 1) * 9) * (RNG.random(X.shape) < 0.8)).to(dtype) for n in (0, k))
        a, b = ow.asarray(x, format=format), ow.asarray(y, format=format)
        found = call(a, b)
        assert isinstance(found.values, torch.Tensor)
        torch.testing.assert_close(found.to_dense(), call(x, y))
        torch.testing.assert_close((found == found.T.T).to_dense(), torch.ones(6, 8, dtype=torch.bool))
        if dtype.is_floating_point and name in "+*-":
            a, p = a.requires_grad_(), x.clone().requires_grad_()
            (call(a, b).to_dense() * torch.arange(8.0)).sum().backward()
            (call(p, y) * torch.arange(8.0)).sum().backward()
            pattern = torch.zeros(6, 8, dtype=torch.bool)
            pattern[tuple(coordinates(a._storage)[0])] = True
            torch.testing.assert_close(torch.as_tensor(a.grad.to_numpy()), p.grad * pattern)
            with torch.no_grad():
                torch.testing.assert_close(call(a, b).to_dense(), call(x, y))
            with torch.inference_mode():
                torch.testing.assert_close(call(ow.asarray(x, format=format), b).to_dense(), call(x, y))


def test_merges_in_transforms() -> None:
    x, y = (torch.tensor(np.roll(X, n, 0)) for n in (0, 2))
    a, b = ow.asarray(x, format="csr"), ow.asarray(y, format="csr")
    for _ in range(3):
        a * b
        a + b
    _, tangent = torch.func.jvp(
        lambda v: ow.sum(a.with_values(v) * b).to_dense(), (a.values,), (torch.ones_like(a.values),)
    )
    torch.testing.assert_close(tangent, (y * (x != 0)).sum())
    grad = torch.func.grad(lambda v: ow.sum((a.with_values(v) + b) * (a + b)).to_dense())(a.values)
    torch.testing.assert_close(grad, (x + y)[x != 0])
    scales = torch.arange(3.0, dtype=torch.float64)
    found = torch.func.vmap(lambda s: (a.with_values(a.values * s) + b).to_dense())(scales)
    torch.testing.assert_close(found, x * scales[:, None, None] + y)


def test_results_of_merges_are_watched() -> None:
    a, b = (ow.asarray(torch.tensor(np.roll(X, n, 0)), format="coo") for n in (0, 2))
    for _ in range(3):
        found = a + b
    found.values.zero_()
    assert not found.to_dense().any()
    found = a + b
    found.crd(0).fill_(70)
    with pytest.raises(ow.InvariantError):
        found @ torch.ones(8, dtype=torch.float64)
    assert (a + b).to_dense().equal(torch.tensor(X + np.roll(X, 2, 0)))


def test_duplicates_of_coo() -> None:
    at, v = torch.tensor([[1, 1, 0], [2, 2, 1]]), torch.tensor([1.0, 2.0, 4.0])
    for scale in (1.0, 2.0, 3.0):
        t = ow.asarray(torch.sparse_coo_tensor(at, v * scale, (3, 3)))
        dense = torch.sparse_coo_tensor(at, v * scale, (3, 3)).to_dense()
        torch.testing.assert_close((t * t).to_dense(), dense * dense)
        torch.testing.assert_close((t + t.coalesce()).to_dense(), dense * 2)


@pytest.mark.thin(2)
@pytest.mark.parametrize("text", ["ij,j->i", "ij,i->j", "ij,jk->ki", "ij,jk->ik"])
def test_einsum(text: str) -> None:
    for step in range(4):
        a, b = matrix("csr", step + 1.0)
        shape = {"ij,i->j": (6,), "ij,j->i": (8,)}.get(text, (8, 3))
        x, y = (torch.full(shape, step + 1.5, dtype=torch.float64, requires_grad=True) for _ in range(2))
        (ow.einsum(text, a, x) ** 2).sum().backward()
        (torch.einsum(text, b, y) ** 2).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
        torch.testing.assert_close(torch.as_tensor(a.grad.to_numpy()), b.grad * (b != 0))


def test_products_of_known_structures() -> None:
    """Of two structures that have met: of other values, of infinities, of what torch records."""
    x = torch.tensor([[0.0, 2, 0, 3], [1, 0, 0, 4], [0, 5, 6, 0]], dtype=torch.float64)
    y = torch.tensor([[0.0, 1, 1, 0], [1, 0, 2, 0], [0, 3, 0, 1]], dtype=torch.float64)
    for formats in (("coo", "coo"), ("csr", "csc"), ("csr", "coo")):
        a, b = (ow.asarray(z.clone(), format=f) for z, f in zip((x, y), formats, strict=True))
        for k in range(4):
            c = a * b
            assert torch.equal(c.to_dense(), x * y), (formats, k)
        a.values[1], b.values[1] = torch.inf, -2.0
        dense = a.to_dense() * b.to_dense()
        assert torch.isnan(dense).any()
        assert torch.equal((a * b).to_dense().nan_to_num(7.0), dense.nan_to_num(7.0))
        a.values[1] = 8.0
        c = a * b
        assert torch.equal(c.to_dense(), a.to_dense() * b.to_dense())
        w = ow.asarray(a).requires_grad_()
        (w * b).sum().backward()
        assert torch.equal(w.grad.to_dense(), b.to_dense() * (a.to_dense() != 0))
        c.crd(1).zero_()  # later results have no part in it
        assert torch.equal((a * b).to_dense(), a.to_dense() * b.to_dense())


def test_products_of_other_fill_values_and_types() -> None:
    x = torch.eye(3, dtype=torch.float64)
    one = ow.asarray(x, format="csr")
    others = [ow.asarray(x + 1, format="csr", fill_value=1), ow.asarray(x.to(torch.int64), format="csc")]
    for other in others:
        for _ in range(4):
            assert torch.equal((one * other).to_dense(), x * other.to_dense())


@pytest.mark.thin(2)
@pytest.mark.parametrize("n", [20, 300])
def test_parameters_are_prepared_as_tensors_are(n: int) -> None:
    """Of any size: 300 rows of 240 columns are more elements than what is short."""
    rng = np.random.default_rng(n)
    dense = torch.as_tensor(np.where(rng.random((n, n)) < 0.9, rng.random((n, n)), 0))
    a, columns = ow.asarray(dense, format="csr"), n * 4 // 5
    weight, vector = (torch.nn.Parameter(torch.as_tensor(rng.random(s))) for s in ((n, columns), n))
    calls = [
        lambda m: m @ weight, lambda m: m @ vector, lambda m: vector @ m, lambda m: torch.mm(m, weight),
        lambda m: ow.sddmm(a, weight, weight.T).values if m is a else (weight @ weight.T)[dense != 0],
    ]  # fmt: skip
    for call in calls:
        for _ in range(3):
            result, expected = call(a), call(dense)
            torch.testing.assert_close(result, expected)
            weights = torch.as_tensor(rng.random(result.shape))
            both = [
                torch.autograd.grad((y * weights).sum(), (weight, vector), allow_unused=True)
                for y in (result, expected)
            ]
            for x, y in zip(*both, strict=True):
                assert (x is None) is (y is None)
                if x is not None:
                    torch.testing.assert_close(x, y)
        with torch.no_grad():
            torch.testing.assert_close(call(a), expected.detach())


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_a_sampled_product_in_any_order_of_memory(transposed: bool) -> None:
    dense = torch.as_tensor(X)
    a = ow.asarray(dense, format="csr")
    x = torch.as_tensor(RNG.random((6, 3))).requires_grad_()
    y = torch.as_tensor(RNG.random((8, 3) if transposed else (3, 8))).requires_grad_()
    for _ in range(3):
        columns = y.T if transposed else y
        weights = torch.as_tensor(RNG.random(a.nse))
        found = torch.autograd.grad((ow.sddmm(a, x, columns).values * weights).sum(), (x, y))
        expected = torch.autograd.grad(((x @ columns)[dense != 0] * weights).sum(), (x, y))
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)
