"""Fused expressions against the same operations one by one: values, types, formats, fill values, errors."""

from __future__ import annotations

import gc
import itertools
import operator
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from convert_cases import uncoalesced
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.errors import ShapeError
from openwork.fusion import program as programs
from openwork.fusion.explain import Plan
from openwork.ir.interpret import run as interpret
from openwork.ir.verify import verify
from openwork.runtime.coiterate import reduction as merge_sum
from openwork.storage.buffers import address

Function = Callable[..., Any]
RNG = np.random.default_rng(5)
X, Y, V, W = RNG.integers(1, 5, (8, 3)) * 1.0, RNG.integers(1, 5, (3, 12)) * 1.0, np.arange(12.0), np.arange(8.0)


def agree(got: Any, want: Any) -> None:
    """The same kind of result, and the same numbers."""
    assert type(got) is type(want)
    if isinstance(want, ow.Tensor):
        assert (got.dtype, got.format, repr(got.fill_value)) == (want.dtype, want.format, repr(want.fill_value))
        assert got.format.is_dense or (got.format.is_unique and got.format.is_ordered)
    else:
        assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(to_numpy(got)), np.asarray(to_numpy(want)), rtol=1e-12)


def to_numpy(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, ow.Tensor) else x


def both(function: Function, *args: Any) -> Plan:
    """Fused and one by one agree; the plan of the fused call."""
    with np.errstate(all="ignore"):
        want = function(*args)
        plan = ow.explain(ow.fused(function), *args)
        again = ow.fused(function)(*args)
    for got in (plan.result, again):
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
            agree(one, other)
    return plan


def one_nest(plan: Plan) -> None:
    """One kernel, nothing converted, and nothing allocated beside its result."""
    assert len(plan.executables) == 1
    assert not [s for s in plan.steps if "conversion" in s.title or "not fused" in dict(s.facts)]


def operands(spec: str = "csr", n: int = 3, dtype: str = "float64") -> list[ow.Tensor]:
    return [tensor(dense_array((8, 12), seed, dtype), spec) for seed in range(n)]


ONE_NEST: dict[str, Function] = {
    "A * B + C": lambda A, B, C: A * B + C,
    "A + B + C - A": lambda A, B, C: A + B + C - A,
    "sin(A) * 2 + 1": lambda A, B, C: ow.sin(A) * 2 + 1,
    "where": lambda A, B, C: ow.where(A > B, A, C),
    "max": lambda A, B, C: ow.maximum(A, B) - C / 2,
    "sum(A * B)": lambda A, B, C: ow.sum(A * B),
    "(A * B).sum(0)": lambda A, B, C: (A * B).sum(axis=0),
    "sum(A * B, 1)": lambda A, B, C: ow.sum(A * B, axis=1, keepdims=True),
    "max(A - B, 1)": lambda A, B, C: ow.max(A - B, axis=1),
    "min(A + 1)": lambda A, B, C: ow.min(A + 1),
    "prod(A + B + 1, 0)": lambda A, B, C: ow.prod(A + B + 1, axis=0),
    "mean(A * B + C, 1)": lambda A, B, C: ow.mean(A * B + C, axis=1),
    "any(A > B, 0)": lambda A, B, C: ow.any(A > B, axis=0),
    "all(A >= B, 1)": lambda A, B, C: ow.all(A >= B, axis=1),
    "count_nonzero(A - B)": lambda A, B, C: ow.count_nonzero(A - B, axis=1),
    "(A + B) @ V": lambda A, B, C: (A + B) @ V,
    "(A * B - C) @ Y.T": lambda A, B, C: (A * B - C) @ Y.T.copy(),
    "W @ (A + B)": lambda A, B, C: W @ (A + B),
    "(A + B).T @ X": lambda A, B, C: (A + B).T @ X,
    "(2 * A) @ V": lambda A, B, C: (2 * A) @ V,
}


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", ONE_NEST)
def test_one_loop_nest(name: str) -> None:
    one_nest(both(ONE_NEST[name], *operands()))


SAMPLED: dict[str, Function] = {
    "A * (X @ Y)": lambda A, B, X, Y: A * (X @ Y),
    "(X @ Y) * A * -2": lambda A, B, X, Y: X @ Y * A * -2.0,
    "A * B * (X @ Y)": lambda A, B, X, Y: A * B * (X @ Y),
    "-(A * (X @ Y)) / 4": lambda A, B, X, Y: -(A * (X @ Y)) / 4.0,
    "sum(A * (X @ Y), 1)": lambda A, B, X, Y: ow.sum(A * (X @ Y), axis=1),
    "sum(A * B * (X @ Y))": lambda A, B, X, Y: ow.sum(A * B * (X @ Y)),
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("sparse", ["", "X", "Y"])
def test_sampled_products(name: str, sparse: str) -> None:
    """Nothing of the size of the product is made."""
    A, B, _ = operands()
    x = tensor(dense_array((8, 3), 7), "csr") if sparse == "X" else X
    y = tensor(dense_array((3, 12), 8), "csc") if sparse == "Y" else Y
    plan = both(SAMPLED[name], A, B, x, y)
    one_nest(plan)
    assert plan.nbytes <= A.values.nbytes + X.nbytes + Y.nbytes


def test_a_sampled_product_of_sparse_matrices_is_masked() -> None:
    A, B, C = operands()
    plan = both(lambda M, A, B: M * (A @ B.T) + M * 2, tensor(dense_array((8, 8), 9), "csr"), A, B)
    assert "accumulates" in dict(next(s for s in plan.steps if "sparse matrix product" in s.title).facts)
    assert C.nse


def chain(operations: list[Function], *ts: Any) -> Any:
    total = ts[0]
    for operation, t in zip(operations, ts[1:], strict=True):
        total = operation(total, t)
    return total


@pytest.mark.thin(3)
@pytest.mark.parametrize(("n", "spec"), [(2, "csr"), (3, "coo"), (4, "csr"), (5, "csr"), (6, "coo"), (7, "bsr(2, 3)"),
                                         (8, "bitmap"), (9, "dcsr"), (10, "csr")])  # fmt: skip
def test_chains_of_two_to_ten_operands(n: int, spec: str) -> None:
    """One loop nest each; of many operands presence is a value in the kernel, so that it grows with their number."""
    rng = np.random.default_rng(n)
    choice: list[Function] = [operator.add, operator.mul, operator.sub, ow.maximum]
    operations = [choice[k] for k in rng.integers(0, 4, n - 1)]
    many = [tensor(dense_array((7, 11), seed, density=0.6), spec) for seed in range(n)]
    if n > 2:
        one_nest(both(lambda *ts: chain(operations, *ts), *many))
    one_nest(both(lambda *ts: ow.sum(chain(operations, *ts), axis=0), *many))


def test_kernels_grow_with_the_operands_and_not_with_their_sets() -> None:
    sizes = []
    for n in (5, 7, 9):
        many = [tensor(dense_array((7, 11), seed), "csr") for seed in range(n)]
        plan = ow.explain(ow.fused(lambda *ts, n=n: chain([operator.add] * (n - 1), *ts)), *many)
        sizes.append(len(plan.loops.splitlines()))
    assert sizes[2] - sizes[1] <= 1.2 * (sizes[1] - sizes[0])


def test_more_than_ten_operands_are_several_parts() -> None:
    many = [tensor(dense_array((5, 6), seed), "csr") for seed in range(13)]
    plan = both(lambda *ts: chain([operator.add] * 12, *ts), *many)
    assert [s.title.split(":")[0] for s in plan.steps if s.heads] == ["part 1 of 2", "part 2 of 2"]
    assert all("fused" in dict(s.facts) for s in plan.steps if s.heads)


PAIRS = [(f, FORMATS[2][(k * 7 + 3) % len(FORMATS[2])]) for k, f in enumerate(FORMATS[2])]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("first", "second"), PAIRS[::3])
def test_formats(first: str, second: str) -> None:
    """At most one conversion for the operand whose order disagrees, and it is shown."""
    A, B = (tensor(dense_array((8, 12), k), f) for k, f in enumerate((first, second)))
    for function in (
        lambda A, B: ow.sum(A * B, axis=1),
        lambda A, B: (A - B) @ V,
        lambda A, B: ow.max(A + B, axis=0),
        lambda A, B: A * (ow.lazy(X) @ Y) + B,
    ):
        with np.errstate(all="ignore"):
            want = ow.compute(ow.lazy(tensor(A.to_numpy(), "csr"))), tensor(B.to_numpy(), "csr")
            got = ow.compute(function(ow.lazy(A), ow.lazy(B)))
            expected = ow.compute(function(*map(ow.lazy, want)))
        np.testing.assert_allclose(
            got.to_numpy() if isinstance(got, ow.Tensor) else got, np.asarray(to_numpy(expected))
        )


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), list(itertools.product(FORMATS[2], FORMATS[2])))
def test_every_pair_of_formats(first: str, second: str) -> None:
    for shape in ((8, 12), (7, 11), (0, 4)):
        a, b = dense_array(shape, 1), dense_array(shape, 2)
        A, B = ow.lazy(tensor(a, first)), ow.lazy(tensor(b, second))
        x = np.arange(shape[1]) * 1.0
        np.testing.assert_array_equal(to_numpy(ow.compute(ow.sum(A * B, axis=0))), (a * b).sum(0))
        np.testing.assert_array_equal(to_numpy(ow.compute(ow.sum(A * B + 1))), (a * b + 1).sum())
        np.testing.assert_array_equal(to_numpy(ow.compute((A - B) @ x)), (a - b) @ x)


def test_a_conversion_is_shown_with_its_bytes() -> None:
    A, B = operands("csr", 1)[0], operands("csc", 2)[1]
    plan = both(lambda A, B: ow.sum(A * B), A, B)
    (step,) = [s for s in plan.steps if "conversion" in s.title]
    assert dict(step.facts)["from"] in ("csr", "csc")
    assert step.nbytes > 0
    assert "conversion" in str(plan)


@pytest.mark.thin(2)
@pytest.mark.parametrize("fills", [(1.0, 0.0), (np.inf, 1.0), (np.nan, -2.0), (0.0, np.inf)])
def test_fill_values(fills: tuple[float, float]) -> None:
    """What all operands leave out counts as often as it is left out."""
    arrays = [np.where(RNG.random((6, 9)) < 0.3, RNG.integers(1, 5, (6, 9)), f) for f in fills]
    A, B = (ow.asarray(a, format="csr", fill_value=f) for a, f in zip(arrays, fills, strict=True))
    x = np.arange(9.0)
    for function in (
        lambda A, B: A * B + 1,
        lambda A, B: ow.sum(A + B + 1, axis=1),
        lambda A, B: ow.prod(A * B - 2, axis=0),
        lambda A, B: ow.min(A - B + 1, axis=1),
        lambda A, B: ow.mean(A * 2 + B),
        lambda A, B: ow.any(A > B, axis=1),
        lambda A, B: (A + B + 0) @ x,
    ):
        both(function, A, B)


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e200])
def test_an_unspecified_zero_meets_infinity(bad: float) -> None:
    """As one by one: NaN in a product, nothing in a matrix product."""
    A, B, C = operands()
    a, y = A.to_numpy(), Y.copy()
    a[1, 2] = y[0, 0] = bad
    A = tensor(a, "csr")
    both(lambda A, B, C: A * B + C, A, B, C)
    both(lambda A, B: ow.sum(A * B * 2, axis=0), A, B)
    both(lambda A, B: (A + B) @ np.where(V == 3, bad, V), A, B)
    both(lambda B, x, y: B * (x @ y), B, X, y)
    both(lambda A, B: ow.multiply(A, B, zero_annihilates=True) + B, A, B)


def test_torch_values_keep_their_graph() -> None:
    torch = pytest.importorskip("torch")
    A, B = (ow.asarray(torch.tensor(dense_array((5, 6), k))).asformat("csr") for k in (1, 2))
    both(lambda A, B: ow.sum(A * B + A, axis=1), A, B)
    leaf = A.values.clone().requires_grad_()
    recorded = ow.Tensor._from_storage(A._storage.with_values(leaf))
    total = ow.fused(lambda A, B: ow.sum(A * B + A, axis=1))(recorded, B)
    total.values.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.abs().sum() > 0


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128"])
def test_dtypes(dtype: str) -> None:
    A, B, _ = operands(dtype=dtype)
    other = operands(dtype="float32")[2]
    for function in (lambda A, B, C: ow.sum(A * B), lambda A, B, C: ow.sum(A * B + C, axis=1)):
        got, want = (to_numpy(f(A, B, other)) for f in (ow.fused(function), function))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "float16" else 1e-5)


# -- random expressions ------------------------------------------------------------------------------------------------

_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "max": ow.maximum, ">": ow.greater}
_UNARY = {"abs": ow.abs, "neg": operator.neg, "x2": lambda t: t * 2, "+1": lambda t: t + 1}
_TOP: dict[str, Function] = {
    "": lambda e, x, d: e,
    "sum": lambda e, x, d: ow.sum(e),
    "sum0": lambda e, x, d: ow.sum(e, axis=0),
    "max1": lambda e, x, d: ow.max(e, axis=1, keepdims=True),
    "@x": lambda e, x, d: e @ x,
    "@d": lambda e, x, d: e.T @ d,
    "two": lambda e, x, d: (e * 3, ow.sum(e, axis=1)),
}
TREES = st.recursive(
    st.integers(0, 3),
    lambda t: st.tuples(st.sampled_from(sorted(_BINARY)), t, t) | st.tuples(st.sampled_from(sorted(_UNARY)), t),
    max_leaves=5,
)


def grown(tree: Any, ts: list[Any]) -> Any:
    if isinstance(tree, int):
        return ts[tree]
    op, *parts = tree
    args = [grown(p, ts) for p in parts]
    return _UNARY[op](*args) if len(args) == 1 else _BINARY[op](*args)


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    TREES,
    st.sampled_from(sorted(_TOP)),
    st.lists(st.sampled_from(["csr", "coo", "dense", "csc"]), min_size=4, max_size=4),
)
def test_random_expressions(tree: Any, top: str, formats: list[str]) -> None:
    random_expression(tree, top, formats)


@pytest.mark.nightly
@pytest.mark.timeout(14400)
@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(TREES, st.sampled_from(sorted(_TOP)), st.lists(st.sampled_from(FORMATS[2]), min_size=4, max_size=4))
def test_random_expressions_in_every_format(tree: Any, top: str, formats: list[str]) -> None:
    random_expression(tree, top, formats)


def random_expression(tree: Any, top: str, formats: list[str]) -> None:
    ts = [tensor(dense_array((5, 4), k), f) for k, f in enumerate(formats)]
    x, d = np.arange(4.0), np.arange(15.0).reshape(5, 3)

    def function(*ts: Any) -> Any:
        return _TOP[top](grown(tree, list(ts)), x, d)

    try:
        want = function(*ts)
    except Exception as error:
        with pytest.raises(type(error)):
            ow.fused(function)(*ts)
        return
    got = ow.fused(function)(*ts)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
        agree(one, other)


# -- what is shared, kept, refused -------------------------------------------------------------------------------------


def test_common_parts_are_computed_once() -> None:
    A, B, C = operands()

    def two(A: Any, B: Any, C: Any) -> Any:
        return (A * B + C) @ V, ow.sum(A * B + C, axis=1)

    plan = both(two, A, B, C)
    assert len(plan.executables) == 3
    assert sum("part1" in s.title for s in plan.steps) == 2
    S = ow.lazy(A) * B
    first, second = ow.compute(S, S + C)
    agree(first, A * B)
    agree(second, A * B + C)
    assert ow.compute(S) is first


def test_what_is_not_fused_says_why() -> None:
    A, B, C = operands()
    plan = both(lambda A, B, C: ow.tril(A * B + C) + A * 2, A, B, C)
    assert "fused" in str(plan)
    plan = both(lambda A, B: (A + B) @ (B.T @ X), A, B)
    assert [dict(s.facts)["not fused"] for s in plan.steps if "not fused" in dict(s.facts)][-1] == "one operation"
    plan = both(lambda A: A + W[:, None] + A, A)
    assert "the result is dense" in str(plan)


REASONS: dict[str, tuple[Function, str]] = {
    "no operand has the structure of the result": (lambda A, X, Y: A.T * (Y.T @ X.T), "float64"),
    "half precision is summed in single": (lambda A, X, Y: (A * 2.0) @ V.astype("float16"), "float16"),
    "the fill value 2.0 takes part": (lambda A, X, Y: (A + 2.0) * 1.0 @ V, "float64"),
    "an operand is a value of rank 0": (lambda A, X, Y: A**A * A, "int64"),
    "its result is known only when it is run": (lambda A, X, Y: ow.where(A > 1, A, X @ Y) * A, "float64"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_not_to_fuse(reason: str) -> None:
    """The operations run one by one, with the same result."""
    function, dtype = REASONS[reason]
    assert reason in str(both(function, abs(operands(n=1, dtype=dtype)[0]), X, Y))


def test_powers_of_truths_and_sums_in_single() -> None:
    t, u = operands(n=2, dtype="bool")
    both(lambda A, B: A**B * A, t, u)
    both(lambda A: A**2 * A, t)
    negative = tensor(np.where(dense_array((8, 12), 4) > 2, -1, 1), "csr")
    for function in (lambda A, B: A**B * A, ow.fused(lambda A, B: A**B * A)):
        with pytest.raises(ValueError, match="integers to negative integer powers are not integers"):
            function(t, negative)
    for _ in range(20):  # fused, products of float32 are summed in double and rounded once; one by one, as NumPy sums
        x = np.where(RNG.random((40, 50)) < 0.5, RNG.random((40, 50)), 0).astype("float32")
        s, want = ow.asarray(x, format="csr"), (x * x).sum(dtype="float64")
        assert ow.fused(lambda A: ow.sum(A * A))(s) == np.float32(want)
        np.testing.assert_allclose(ow.sum(s * s), want, rtol=4 * np.finfo("float32").eps)
    for dtype, large in (("float32", 4096), ("float16", 64)):  # a sum in that type loses ones
        one = ow.asarray(np.array([[large] + [1] * 1000], dtype), format="csr")
        assert ow.fused(lambda A: ow.sum(A * A))(one) == large * large + 1000


def test_programs_hold_no_operands_and_are_kept_by_structure() -> None:
    ow.clear_caches()  # where kernels of other tests fill their limit the next one empties the table
    A, B, _ = operands()
    function = ow.fused(lambda A, B: A * B - A)
    function(A, B)
    before = len(programs._programs)
    D, E = (tensor(dense_array((8, 12), k), "csr") for k in (11, 12))
    agree(function(D, E), D * E - D)
    agree(function(D, D), D * D - D)
    kinds = []
    by_name = ow.fused(lambda A, B: kinds.append((type(A), type(B))) or A * B - D)  # type: ignore[func-returns-value]
    agree(by_name(D, B=E), D * E - D)
    assert kinds == [(ow.Lazy, ow.Lazy)]
    assert len(programs._programs) == before + 1
    kept = weakref.ref(E)
    del E
    gc.collect()
    assert kept() is None


def test_programs_tell_operands_from_what_was_computed() -> None:
    A, B, _ = operands()
    agree(ow.fused(lambda A, B: A * B - (A * B + A))(A, B), A * B - (A * B + A))
    agree(ow.fused(lambda A, B: A * B - (B + A))(A, B), A * B - (B + A))


AGAIN: dict[str, Function] = {
    "sum(A * B * v, 1)": lambda A, B, v, m: (A * B * v).sum(axis=1),
    "A * v - B": lambda A, B, v, m: A * v - B,
    "(A * B) @ m": lambda A, B, v, m: (A * B) @ m,
    "A * (m @ m.T)": lambda A, B, v, m: A * (m[:8] @ m.T),
}


@pytest.mark.parametrize("name", AGAIN)
def test_programs_again(name: str) -> None:
    """Of arrays of other strides and widths, and of one operand twice."""
    function = ow.fused(AGAIN[name])
    a, b = dense_array((8, 12), 0), dense_array((8, 12), 1)
    v, m = RNG.integers(1, 5, 24) * 1.0, RNG.integers(1, 5, (24, 6)) * 1.0
    for x, y in ((a, b), (b, a), (a, a)):
        A = tensor(x, "csr")
        B = A if x is y else tensor(y, "csr")
        for w, n in (
            (v[:12], m[:12, :3]), (v[::2], m[::2, ::2]), (v[11::-1], m[11::-1, :3]), (v[:12], m[:12, 3:0:-1]),
            (v[12:], np.asfortranarray(m[12:, :3])), (np.broadcast_to(v[3:4], 12), np.broadcast_to(m[:12, :1], (12, 3))),
            (v[:12], m[:12, :1]), (v[:12], m[:12, :0]), (v[:12], m[:12, :3]),
        ):  # fmt: skip
            np.testing.assert_allclose(to_numpy(function(A, B, w, n)), AGAIN[name](x, y, w, n), rtol=1e-12)


def test_what_a_function_reads_is_never_out_of_date() -> None:
    A, B, _ = operands()
    factor = [2.0]
    function = ow.fused(lambda A, B: A * factor[0] + B)
    agree(function(A, B), A * 2.0 + B)
    factor[0] = 3.0
    agree(function(A, B), A * 3.0 + B)


def test_operations_that_do_not_defer_compute_first() -> None:
    A, B, _ = operands()
    e = ow.lazy(A) + B
    assert e.shape == (8, 12)
    assert e.dtype == np.float64
    agree(ow.concat([e, A]), ow.concat([A + B, A]))
    agree(e[2:5], (A + B)[2:5])
    agree(ow.einsum("ij->j", e), ow.einsum("ij->j", A + B))
    assert repr(e) == "lazy(A + B)"


def test_broadcasting_and_vectors() -> None:
    A, B, _ = operands()
    v = tensor(dense_array((12,), 3), "csf")
    both(lambda A, B, v: ow.sum(A * v + B, axis=0), A, B, v)
    both(lambda A, B, v: (A + v) * B, A, B, v)
    both(lambda A, B: ow.sum(A * W[:, None] * B, axis=1), A, B)
    both(lambda A, B: (A * W[:, None] - B) @ V, A, B)


AXES: list[Any] = [
    0,
    True,
    np.int64(0),
    0.0,
    [0],
    (0,),
    [0, 1],
    (np.int8(1), 0),
    np.array(1),
    np.array([0]),
    "0",
    None,
    -2,
]


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_axes_of_any_kind_in_any_order(library: str) -> None:
    """What is an axis, one by one and fused: kept programs never mistake True, 1 and 1.0 for each other."""
    if library == "torch":
        torch = pytest.importorskip("torch")
        a = ow.asarray(torch.tensor(np.eye(3)).to_sparse_csr())
    else:
        a = ow.asarray(np.eye(3), format="csr")
    for axis in (*AXES, 1, *reversed(AXES), False, 1):
        results: list[Any] = []
        for t in (a, ow.lazy(a)):
            try:
                results.append(ow.compute(ow.sum(t * t, axis=axis)).to_numpy())
            except (TypeError, ValueError) as error:
                results.append(f"{type(error).__name__}: {error}")
        if isinstance(results[0], str):
            assert results[0] == results[1], repr(axis)
        else:
            np.testing.assert_array_equal(*results)


def test_wrong_operands_are_refused_as_one_by_one() -> None:
    A, B, _ = operands()
    wrong = tensor(dense_array((7, 12), 1), "csr")
    for function in (lambda A, B: A * B + A, lambda A, B: ow.sum(A + B), lambda A, B: (A + A) @ B):
        with pytest.raises(ShapeError) as one_by_one:
            function(A, wrong)
        with pytest.raises(ShapeError) as fused:
            ow.fused(function)(A, wrong)
        assert str(fused.value) == str(one_by_one.value)
    with pytest.raises(ShapeError, match="axis 5 of a tensor of rank 2"):
        ow.compute(ow.sum(ow.lazy(A) * B, axis=5))


def _memory() -> list[tuple[str, Function, tuple[Any, ...]]]:
    A, B, C = (ow.random((20000, 20000), 2e-4, format="csr", rng=k) for k in range(3))
    x, X = np.ones(20000), np.ones((20000, 8))
    chain, total = ow.fused(lambda A, B, C: A * B + C - A), ow.fused(lambda A, B: ow.sum(A * B, axis=1))
    return [
        ("SpMV", ow.matmul, (A, x)), ("SpMM", ow.matmul, (A, X)), ("A + B", ow.add, (A, B)),
        ("SpGEMM", ow.matmul, (A, B)), ("conversion", lambda A: A.asformat("csc"), (A,)),
        ("chain", chain, (A, B, C)), ("sum", total, (A, B)), ("sum, converted", total, (A, B.asformat("csc"))),
        ("sampled", ow.fused(lambda A, X, Y: A * (X @ Y)), (A, X, X.T)),
    ]  # fmt: skip


def test_the_bytes_of_a_plan_are_those_that_are_allocated() -> None:
    """What NumPy and the buffers' memory hold at the peak, up to the bookkeeping of rows."""
    before = ow.get_num_threads()
    ow.set_num_threads(1)
    try:
        for name, function, args in _memory():
            planned = ow.explain(function, *args).nbytes
            tracemalloc.start()
            function(*args)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert planned <= peak <= 1.08 * planned + 16384, name
    finally:
        ow.set_num_threads(before)


def test_empty_extents() -> None:
    A = tensor(np.zeros((0, 4)), "csr")
    both(lambda A: ow.sum(A * A + A, axis=0), A)
    both(lambda A: (A + A * 2) @ np.ones(4), A)
    assert "not fused    there are no elements" in str(ow.explain(ow.lazy(A) * A + A))


def test_kernels_verify_and_interpret_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    memory: dict[int, Any] = {}
    words_of, ran = merge_sum._arguments, []

    def recorded(made: Any, ready: Any, fixed: Any) -> Any:
        for x in ready.values():
            pairs = zip(x.addresses, x.buffers, strict=True) if hasattr(x, "addresses") else [(x.address, x.owner)]
            memory.update(pairs)
        return words_of(made, ready, fixed)

    def noted(array: Any) -> int:
        memory[address(array)] = array
        return address(array)

    def run(executable: Any, words: Any, bounds: Any, work: int = 0) -> None:
        verify(executable.kernel)
        args = {p.name: memory.get(w, w) for p, w in zip(executable.kernel.params, words, strict=True)}
        assert interpret(executable.kernel, args, bounds[0], bounds[-1]) == 0
        ran.append(executable)

    monkeypatch.setattr(merge_sum, "_arguments", recorded)
    monkeypatch.setattr(merge_sum, "address", noted)
    monkeypatch.setattr(merge_sum.pool, "parallel", run)
    for spec in ("csr", "dcsr", "bsr(2, 3)", "dia"):
        A, B, _ = operands(spec)
        a, b = A.to_numpy(), B.to_numpy()
        same(ow.compute(ow.sum(ow.lazy(A) * B + 1, axis=1)), (a * b + 1).sum(1))
        same(ow.compute((ow.lazy(A) + B) @ V), (a + b) @ V)
    assert len(ran) == 8


@pytest.mark.ci
@pytest.mark.thin(3)
@pytest.mark.parametrize("threads", [2, 7])
def test_threads(threads: int) -> None:
    """Integers are the same for any number of threads, however the loops are cut."""
    m = [sp.random(3000, 2000, 0.03, "csr", random_state=k) for k in range(2)]
    for s in m:
        s.data = np.arange(s.nnz, dtype=np.int64) % 7
    A, B = map(ow.asarray, m)
    functions = [lambda A, B, a=a: ow.sum(A * B + A, axis=a) for a in (None, 0, 1)] + [lambda A, B: A * B - A]
    before = ow.get_num_threads()
    try:
        ow.set_num_threads(1)
        want = [to_numpy(ow.fused(f)(A, B)) for f in functions]
        ow.set_num_threads(threads)
        for f, expected in zip(functions, want, strict=True):
            np.testing.assert_array_equal(to_numpy(ow.fused(f)(A, B)), expected)
    finally:
        ow.set_num_threads(before)


def test_plans_of_expressions_and_of_nothing() -> None:
    a = ow.asarray(np.eye(3), format="csr")
    plan = ow.explain(ow.lazy(a) + a * 2)
    assert "part 1 of 1" in str(plan)
    np.testing.assert_array_equal(plan.result.to_numpy(), 3 * np.eye(3))
    both = ow.explain(ow.lazy(a) + a, ow.sum(ow.lazy(a)))
    assert float(both.result[1]) == 3
    with pytest.raises(TypeError, match="explain: int is nothing to run\n  help: give a function"):
        ow.explain(3)
    with pytest.raises(TypeError, match="fused: expected a function, got int"):
        ow.fused(3)


def test_the_absolute_value_of_a_truth_is_itself() -> None:
    A = ow.asarray(np.array([[1.0, 0], [0, 2]]), format="csr")
    got = ow.compute(abs(ow.lazy(A) * 2 > 3))
    assert got.to_numpy().tolist() == [[False, False], [False, True]]
    assert ow.pointwise("abs(A > 1)", {"A": A}).dtype == np.bool_


def test_transposes_of_the_last_two_dimensions() -> None:
    a = dense_array((3, 4, 5))
    x, y = RNG.integers(1, 5, (3, 5, 4)) * 1.0, RNG.integers(1, 5, (5, 4, 3)) * 1.0
    A, T = tensor(a, "csf"), ow.lazy(tensor(a, "csf"))
    for lazy, eager, dense in ((T.mT * x, A.mT * x, a.swapaxes(1, 2) * x), (T.T * y, A.T * y, a.T * y)):
        got = ow.compute(lazy)
        np.testing.assert_array_equal(to_numpy(got), dense)
        assert got.format == eager.format
    for function in (lambda A: ow.sum((A + A).mT, axis=(0, 1)), lambda A: ow.sum((A + A).T, axis=(0, 2))):
        one_nest(both(function, A))
    v = tensor(a[0, 0], "coo")
    for f in (lambda t: t.mT, lambda t: (t + t).mT):
        with pytest.raises(ShapeError):
            ow.compute(f(ow.lazy(v)))


def test_a_dense_divisor_divides_what_is_not_stored() -> None:
    a, d = dense_array((6, 8)), np.ones((6, 8))
    d[0, :] = 0
    d[1, 1] = np.nan
    divided = (lambda t: t / d, lambda t: t // d, lambda t: t % d)
    for spec in ("csr", "bitmap"):
        A = tensor(a, spec)
        with np.errstate(all="ignore"):
            for f in (*divided, *(lambda t, g=g: ow.sum(g(t), axis=1) for g in divided)):
                got, want = ow.compute(f(ow.lazy(A)) * 2), f(A) * 2
                np.testing.assert_array_equal(to_numpy(got), to_numpy(want))
                assert got.nse == want.nse


def test_bytes_are_of_conversions_only_where_there_are_some() -> None:
    A, B = operands("csr", 1)[0], operands("csr", 2)[0]
    several = ow.explain(lambda A, B: ow.sum(A * B, axis=0) + ow.sum(A, axis=0), A, B)
    assert len([s for s in several.steps if not s.heads]) > 1
    assert "in all" in str(several)
    assert "for conversions" not in str(several)


def test_torch_functions_of_lazy_tensors_are_those_of_the_values() -> None:
    torch = pytest.importorskip("torch")
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    t = ow.asarray(dense, format="csr")
    for got, want in (
        (torch.sin(ow.lazy(t) * 2), torch.sin(dense * 2)),
        (torch.cat([ow.lazy(t), t]), torch.cat([dense, dense])),
        (torch.sin(ow.lazy(ow.asarray(dense.numpy(), format="csr"))), torch.sin(dense)),
        (torch.matmul(ow.lazy(t), dense), dense @ dense),
    ):
        assert torch.allclose(torch.as_tensor(np.asarray(got.to_dense())), want)


def test_lazy_tensors_are_not_assigned_to() -> None:
    x = ow.lazy(ow.eye(3, format="csr")) * 2
    with pytest.raises(ow.UnsupportedError, match=r"A\[key\] = value of a lazy expression, which has no memory"):
        x[0, 0] = 1
    assert x.at[0, 0].set(5).sum() == 9


@pytest.mark.parametrize("name", ["nextafter", "logaddexp", "copysign", "hypot", "atan2", "remainder"])
def test_operations_of_a_number_that_no_kernel_has(name: str) -> None:
    function = getattr(ow, name)
    a = ow.asarray(np.array([[0.0, 2.0], [-1.0, 0.0]]), format="csr")
    for number in (0.5, -2.0, np.inf):
        for args in ((a, number), (number, a)):
            got = ow.compute(function(*(ow.lazy(x) if x is a else x for x in args)))
            np.testing.assert_array_equal(got.to_numpy(), function(*args).to_numpy())


LINEAR: dict[str, Function] = {
    "scaled": lambda a, x: a * x * 2.0,
    "a sum": lambda a, x: -a * x + a,
    "conj": lambda a, x: np.conj(a) * x,
    "the same twice": lambda a, x: a * x - a / x,
    "a square": lambda a, x: a * a * x,
    "absolute": lambda a, x: abs(a - 0) * x,
    "truth": lambda a, x: (a > 3) * x,
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", LINEAR)
def test_duplicates_are_summed_before_what_is_not_linear(name: str, axis: int) -> None:
    a = ow.Tensor._from_storage(uncoalesced((6, 5), 40, seed=3))
    assert not a.format.is_unique
    x = np.arange(1, 6) / 4
    got = ow.compute(ow.sum(LINEAR[name](ow.lazy(a), x), axis=axis))
    np.testing.assert_allclose(to_numpy(got), LINEAR[name](a.to_numpy(), x).sum(axis))


@pytest.mark.parametrize("spec", ["csr", "csc", "coo"])
def test_masked_products_on_either_side(spec: str) -> None:
    """The product of two sparse matrices times a third one, which says where it is formed."""
    a, b, mask = (
        ow.asarray(np.where(RNG.random((6, 6)) < 0.4, RNG.random((6, 6)), 0.0), format=f) for f in ("csr", "csr", spec)
    )
    both(lambda m, x, y: (x @ y) * m, mask, a, b)
    both(lambda m, x, y: m * (x @ y), mask, a, b)


def test_parts_and_operations_of_one_operand_are_told_apart_one_by_one() -> None:
    """Infinities that meet unspecified zeros: the operations of a part run one after the other, on the right operands."""
    a, b = (tensor(np.where(RNG.random((6, 6)) < 0.5, RNG.random((6, 6)), 0.0), "csr") for _ in range(2))
    c = tensor(np.where(RNG.random((6, 6)) < 0.5, np.inf, 0.0), "csr")
    both(lambda a, b, c: (a @ b) + (a * c) * b, a, b, c)
    both(lambda a, b, c: (a * c) * b - (a @ b) * c, a, b, c)
    both(lambda a, b, c: ow.sum((a @ b) + (a * c) * b, axis=1), a, b, c)


def test_formats_of_unions_with_dense_operands() -> None:
    """That of the first dense operand with all dimensions, in the dimensions of the result; else that of a sparse one."""
    a = np.arange(12.0).reshape(3, 4)
    c = np.where(a % 3 == 0, a, 0)
    given = {"C": ow.asarray(c, format="csr"), "F": ow.asarray(a, format="dense_f"), "A": ow.asarray(a[0])}
    given |= {"T": ow.asarray(a.T.copy()), "S": ow.asarray(c.T.copy(), format="csc")}
    cases = {
        "F[i, j] + C[i, j]": ("dense_f", a + c),
        "C[i, j] + T[j, i]": ("dense_f", a + c),
        "A[j] + C[i, j] + F[i, j]": ("dense_f", a[0] + c + a),
        "A[j] + C[i, j]": ("dense", a[0] + c),
        "A[j] * C[i, j] * F[i, j]": ("csr", a[0] * c * a),
        "C[i, j] + S[j, i]": ("csr", c + c),
        "S[j, i] * A[j]": ("csc", (c * a[0]).T),
    }
    for text, (format, want) in cases.items():
        got = ow.pointwise(text, {n: t for n, t in given.items() if f"{n}[" in text})
        np.testing.assert_array_equal(got.to_numpy(), want)
        assert got.format == ow.format(format, 2), text


def test_what_is_planned_only_when_it_is_run() -> None:
    """Products of rank 3, numbers alone, and whole arrays: the operations run as they do at once."""
    A, B, _ = operands()
    cube = tensor(np.stack([A.to_numpy(), B.to_numpy()]), "coo")
    both(lambda C, Y: (C * 2.0) @ Y.T, cube, Y)
    both(lambda A, X, Y: ow.sum(X @ Y * 1.0, axis=0) + A, A, X, Y)
    both(lambda A, Z: (A * Z.T).sum(axis=0), A, np.arange(96.0).reshape(12, 8))
    both(lambda A, H: (A * 0.5 + H * 0.25) * H, *operands(n=2, dtype="float16"))
