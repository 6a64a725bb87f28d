"""Products over semirings of a sparse tensor and a dense array, from either side, against loops in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.compiler.semiring import SEMIRINGS

SPECS = ("csr", "csc", "coo", "dcsr", "ell(8)")
NAMES = [name for name in SEMIRINGS if not name.startswith("lxor")]
TIMES: dict[str, Any] = {
    "x * y": lambda x, y: x * y, "x + y": lambda x, y: x + y, "min(x, y)": min, "max(x, y)": max,
    "x & y": lambda x, y: x & y, "x | y": lambda x, y: x | y, "x": lambda x, y: x, "y": lambda x, y: y,
    "1": lambda x, y: 1, "True": lambda x, y: True,
}  # fmt: skip
SCALARS = {"float64": "f64", "int64": "i64", "bool": "bool"}


def terms(a: Any, b: Any, stored: Any, name: str) -> list[list[list[Any]]]:
    """The products of each element of the result, of those elements where `stored` says so."""
    ring = SEMIRINGS[name]
    kind = {"bool": np.bool_, "i64": np.int64}.get(ring.dtype)
    if kind is not None:
        a, b = a.astype(kind), b.astype(kind)
    times = TIMES[ring.multiply]
    return [
        [[times(a[i, j], b[j, k]) for j in range(a.shape[1]) if stored(i, j, k)] for k in range(b.shape[1])]
        for i in range(a.shape[0])
    ]


def check(got: Any, products: list[list[list[Any]]], name: str, dtype: str) -> None:
    ring = SEMIRINGS[name]
    kind = {"bool": "bool", "i64": "int64"}.get(ring.dtype, dtype)
    identity = ring.add.identity_of(SCALARS[kind])
    assert isinstance(got, np.ndarray)
    assert got.dtype == kind
    for i, row in enumerate(products):
        for k, values in enumerate(row):
            if not values:
                assert got[i, k] == identity
            elif ring.add.operation == "y":
                assert got[i, k] in values
            else:
                total = values[0]
                for value in values[1:]:
                    total = TIMES[ring.add.operation](total, value)
                assert got[i, k] == total


@pytest.mark.thin(133)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spec", SPECS)
def test_every_semiring_on_both_sides(spec: str, name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (6, 8)) * (rng.random((6, 8)) < 0.35)
    a[2] = 0
    a = a.astype(dtype)
    t = ow.asarray(a, format="csr").asformat(spec)
    for k in (1, 3, 17):
        x, y = rng.integers(-4, 5, (8, k)).astype(dtype), rng.integers(-4, 5, (k, 6)).astype(dtype)
        right = ow.einsum("ij,jk->ik", t, x, semiring=name)
        check(right, terms(a, x, lambda i, j, k: a[i, j] != 0, name), name, dtype)
        left = ow.einsum("ij,jk->ik", y, t, semiring=name)
        check(left, terms(y, a, lambda i, j, k: a[j, k] != 0, name), name, dtype)
        vector = ow.einsum("ij,j->i", t, np.ascontiguousarray(x[:, 0]), semiring=name)
        check(vector[:, None], terms(a, x[:, :1], lambda i, j, k: a[i, j] != 0, name), name, dtype)


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["plus_first", "plus_second", "plus_pair", "max_first", "min_pair"])
def test_what_is_summed_of_a_dense_operand_alone_counts_each_element(name: str) -> None:
    if name == "min_pair":
        ring: Any = ow.Semiring("min_pair", ow.monoid("min"), "1")
    else:
        ring = name
    rng = np.random.default_rng(1)
    a = rng.integers(1, 5, (6, 8)) * (rng.random((6, 8)) < 0.4)
    t = ow.asarray(a.astype(float), format="csr")
    for k in (2, 5, 8, 16, 19, 33):  # widths that share a kernel, too
        x = rng.integers(1, 5, (8, k)).astype(float)
        got = ow.einsum("ij,jk->i", t, x, semiring=ring)
        for i in range(6):
            of_row = [(a[i, j], x[j, c]) for j in range(8) if a[i, j] for c in range(k)]
            values = {
                "plus_first": sum(p for p, _ in of_row), "plus_second": sum(q for _, q in of_row),
                "plus_pair": len(of_row), "max_first": max((p for p, _ in of_row), default=-np.inf),
                "min_pair": 1 if of_row else np.inf,
            }  # fmt: skip
            assert got[i] == values[name]


def test_any_of_complex_numbers_and_of_nothing() -> None:
    t = ow.asarray(np.array([[0, 1 + 2j], [0, 0]]), format="csr")
    got = ow.einsum("ij,jk->ik", t, np.ones((2, 3)), semiring="any_first")
    np.testing.assert_array_equal(got, [[1 + 2j] * 3, [0] * 3])
    nothing = ow.einsum("ij,jk->ik", t.real, np.ones((2, 0)), semiring="any_first")
    assert nothing.shape == (2, 0)
    below = ow.einsum("ij,j->i", ow.asarray([[0, -3.0], [0, 0]], format="csr"), np.ones(2), semiring="any_first")
    np.testing.assert_array_equal(below, [-3.0, 0.0])


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", ["plus_first", "plus_second", "plus_max", "min_first", "max_second", "min_plus"])
@pytest.mark.parametrize("spec", ["csr", "csc", "coo"])
def test_gradients(spec: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    dense = torch.rand(4, 5, dtype=torch.float64) + 0.5
    dense[dense < 0.9] = 0
    t = ow.asarray(dense).asformat(spec).requires_grad_()
    x = torch.rand(5, 3, dtype=torch.float64).requires_grad_()
    got = ow.einsum("ij,jk->ik", t, x, semiring=name)
    assert isinstance(got, torch.Tensor)
    leaf, y = dense.clone().requires_grad_(), x.detach().clone().requires_grad_()
    a, b = leaf[:, :, None].expand(4, 5, 3), y[None].expand(4, 5, 3)
    sum_of, product_of = name.split("_")
    products = {"first": a + 0 * b, "second": b + 0 * a, "max": torch.maximum(a, b), "plus": a + b}[product_of]
    absent = {"plus": 0.0, "min": np.inf, "max": -np.inf}[sum_of]
    products = torch.where(dense[:, :, None] != 0, products, absent)
    want = {"plus": lambda p: p.sum(1), "min": lambda p: p.amin(1), "max": lambda p: p.amax(1)}[sum_of](products)
    torch.testing.assert_close(got, want)
    finite = want.isfinite()
    got[finite].square().sum().backward()
    want[finite].square().sum().backward()
    of_x = torch.zeros_like(x) if x.grad is None else x.grad  # of what plays no part
    torch.testing.assert_close(of_x, y.grad)
    of_t = torch.zeros_like(dense) if t.grad is None else t.detach().with_values(t.grad.values).to_dense()
    torch.testing.assert_close(of_t, torch.where(dense != 0, leaf.grad, 0.0))


@pytest.mark.parametrize("subscripts", ["i,ij->j", "ij,j->i", "ij,jk->ik"])
def test_truth_values_are_combined_without_branches(subscripts: str) -> None:
    """Branches by the elements' values cannot be foreseen: scatters took 1.7 of the time of sums of products."""
    t = ow.random((12, 12), 0.3, format="csr", rng=0) != 0
    dense = np.ones((12, 4) if "k" in subscripts else 12, bool)
    operands = (dense, t) if subscripts.startswith("i,") else (t, dense)
    loops = ow.explain(lambda: ow.einsum(subscripts, *operands, semiring="lor_land")).loops.split("def ")[1]
    assert "|=" in loops
    assert " or " not in loops
