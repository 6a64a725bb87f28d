"""Lazy expressions are graphs: what is shared is computed once, and depth costs time in proportion, no recursion."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matrix import dense_array, tensor

import openwork as ow
from openwork import tuning
from openwork.codegen import target
from openwork.compiler.coiterate.expression_tree import node_of, required_operands
from openwork.fusion.infer import metas_of
from openwork.fusion.partition import partition
from openwork.ir.loop import Expr, Var
from openwork.ir.ops import const, op
from openwork.ir.types import Type
from openwork.tensor.expression_graph import Graph

pytestmark = pytest.mark.timeout(120)

DEEP = 10_000
PAST_RECURSION = 2_500
Step = Callable[[Any, Any, int], Any]
a, b = dense_array((6, 7), 0), dense_array((6, 7), 1)

CHAINS: dict[str, Step] = {
    "y + B": lambda y, B, k: y + B,
    "y * 1.0001": lambda y, B, k: y * (1 + 1e-4 * (k % 3)),
    "float64": lambda y, B, k: np.float64(0.999) * y,
    "sqrt": lambda y, B, k: np.sqrt(y) if k % 2 else y + B,
    "where": lambda y, B, k: ow.where(B > 1, y, B) if k % 50 == 0 else y * 0.5,
    "transposes": lambda y, B, k: (y.T + y.T).T / 2 if k % 9 == 0 else y.T.T,
}


def chain(step: Step, x: Any, other: Any, n: int = DEEP) -> Any:
    y = x
    for k in range(n):
        y = step(y, other, k)
    return y


def ladder(first: Any, second: Any, n: int = DEEP) -> tuple[Any, Any]:
    """Each the mean of the two before."""
    for _ in range(n):
        first, second = second, (first + second) * 0.5
    return first, second


def values(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x)


# -- depth -------------------------------------------------------------------------------------------------------------


@pytest.mark.ci
@pytest.mark.thin(5)
@pytest.mark.parametrize("name", CHAINS)
def test_chains(name: str) -> None:
    A, B = tensor(a, "csr"), tensor(b, "csr")
    n = DEEP if name == "y + B" else PAST_RECURSION
    y = chain(CHAINS[name], ow.lazy(A), B, n)
    assert y.shape == (6, 7)
    assert y.dtype == np.float64
    want = a
    for k in range(n):
        want = np.where(b > 1, want, b) if name == "where" and k % 50 == 0 else CHAINS[name](want, b, k)
        if name == "where" and k % 50:
            want = want * 1.0
    np.testing.assert_allclose(ow.compute(y).to_numpy(), want, rtol=1e-9)


@pytest.mark.ci
@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("spec", "n"), [("csr", DEEP // 2), ("coo", 300), ("dense", PAST_RECURSION), ("bsr(2, 3)", 300)]
)
def test_ladders(spec: str, n: int) -> None:
    A, B = tensor(a, spec), tensor(b, spec)
    want = ladder(a, b, n)
    lazily = ow.compute(*ladder(ow.lazy(A), ow.lazy(B), n))
    in_a_function = ow.fused(lambda A, B: ladder(A, B, n))(A, B)
    for got in (lazily, in_a_function):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(values(one), other, rtol=1e-12)


@pytest.mark.ci
def test_products_and_sums_in_chains() -> None:
    A, x = tensor(a[:6, :6] / 100, "csr"), np.arange(6.0)
    y, want = ow.lazy(x), x
    for _ in range(1500):
        y, want = (ow.lazy(A) * 0.5) @ y + x, (a[:6, :6] / 200) @ want + x
    np.testing.assert_allclose(ow.compute(y), want, rtol=1e-12)
    sums = ow.lazy(A).sum(axis=0)
    for _ in range(1200):
        sums = sums * 0.5 + ow.lazy(A).sum(axis=0)
    np.testing.assert_allclose(values(ow.compute(sums)), (a[:6, :6] / 100).sum(axis=0) * 2, rtol=1e-12)


@pytest.mark.ci
def test_torch_leaves_record() -> None:
    torch = pytest.importorskip("torch")
    A = ow.asarray(torch.from_numpy(a).clone(), format="csr")
    leaf = A.values.detach().clone().requires_grad_()
    y = ow.lazy(A.with_values(leaf))
    for _ in range(1200):
        y = (y + y) * 0.5 + y * 0.001
    ow.compute(y).values.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.full(len(leaf), 1.001**1200), rtol=1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("spec", ["dense", "coo", "csr"])
def test_masked_leaves(spec: str) -> None:
    mask = a > 1
    m = ow.masked_tensor(tensor(a * mask, spec), tensor(mask, spec))
    y, want = ow.lazy(m), a * mask
    for k in range(1200):
        y, want = (y + m) * 0.5 if k % 3 else abs(y), (want + a * mask) * 0.5
    got = ow.compute(y)
    assert isinstance(got, type(m))
    np.testing.assert_allclose(got.filled(0.0).to_numpy(), want, rtol=1e-12)
    doubled = ow.lazy(m)
    for _ in range(60):
        doubled = doubled + doubled
    np.testing.assert_array_equal(ow.compute(doubled).filled(0.0).to_numpy(), a * mask * 2.0**60)


def test_masked_and_other_results_share_what_is_below() -> None:
    mask = a > 1
    m, A = ow.masked_tensor(tensor(a * mask, "dense"), tensor(mask, "dense")), tensor(a, "csr")
    both = ow.lazy(A) * 2.0 + A
    first, second, third = ow.compute(both, ow.lazy(m) * 3.0 - m, both * A)
    np.testing.assert_array_equal(first.to_numpy(), 3 * a)
    np.testing.assert_array_equal(second.filled(0.0).to_numpy(), 2 * a * mask)
    np.testing.assert_array_equal(third.to_numpy(), 3 * a * a)


# -- sharing -----------------------------------------------------------------------------------------------------------


def test_a_shared_operation_is_computed_once() -> None:
    y = ow.lazy(tensor(a, "csr"))
    for _ in range(60):
        y = y + y
    plan = ow.explain(y)
    np.testing.assert_array_equal(plan.result.to_numpy(), a * 2.0**60)
    assert sum(s.heads for s in plan.steps) <= 20
    calls = []

    def counted(x: Any, /) -> Any:
        calls.append(None)
        return x * 2.0

    z = ow.lazy(tensor(a, "csr"))
    for _ in range(30):
        z = type(z)("elementwise", "of no kernel", (z,), counted)
        z = z + z
    np.testing.assert_array_equal(ow.compute(z).to_numpy(), a * 4.0**30)
    assert len(calls) == 30


def test_equal_operations_of_separate_nodes_are_one() -> None:
    A, B = tensor(a, "csr"), tensor(b, "csr")
    graph = Graph((ow.lazy(A) * B + 1.5, ow.lazy(A) * B - 1.5))
    assert [node.name for node in graph.nodes] == ["mul", "add", "sub"]
    assert graph.args == [(-1, -2), (0, -3), (0, -3)]
    assert graph.results == (1, 2)


def test_a_product_that_is_needed_besides_is_not_formed_again_under_a_mask() -> None:
    A = tensor(a[:6, :6], "csr")
    product = ow.lazy(A) @ A
    plan = ow.explain(product * A, product + A)
    assert "formed where" not in str(plan)
    np.testing.assert_allclose(plan.result[0].to_numpy(), (a[:6, :6] @ a[:6, :6]) * a[:6, :6])


def test_results_are_freed_when_they_are_read() -> None:
    z = ow.lazy(np.ones((200, 200)))
    for _ in range(200):
        z = z * 0.5 + 1.0
    tracemalloc.start()
    ow.compute(z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 200 * 200 * 8


# -- cuts --------------------------------------------------------------------------------------------------------------


def planned(*roots: Any) -> tuple[Graph, list[Any]]:
    graph = Graph(roots)
    return graph, partition(graph, metas_of(graph), ())


@pytest.mark.thin(2)
@pytest.mark.parametrize("leaves", [1, 3, 30])
def test_kernels_are_of_bounded_size(leaves: int) -> None:
    many = [tensor(dense_array((6, 7), k), "csr") for k in range(leaves)]
    y = ow.lazy(many[0])
    for k in range(300):
        y = abs(y - many[k % leaves]) if k % 2 else y + y * many[(k + 1) % leaves]
    graph, steps = planned(y)
    groups = [s.group for s in steps if s.group is not None]
    assert all(len(g.inlined) <= tuning.FUSED_OPERATIONS for g in groups)
    assert all(len(g.operands) <= tuning.FUSED_OPERANDS for g in groups)
    assert all(str(g.expression).count("[") <= 3 * tuning.FUSED_OPERATIONS for g in groups)
    assert len(steps) <= len(graph) / 5


def test_cuts_are_where_results_are_small() -> None:
    """Five sums of matrices that grow, a product with one of them, and eleven operations of that."""
    many = [tensor(dense_array((6, 7), k), "csr") for k in range(5)]
    y = ow.lazy(many[0])
    for k in range(1, 5):
        y = abs(y + many[k])
    small = y * many[0]
    z = small
    for _ in range(6):
        z = abs(z + many[0])
    graph, steps = planned(z)
    assert len(steps) == 2
    assert graph.nodes[steps[0].number] is small


def test_what_a_part_of_an_expression_needs_is_found_in_linear_time() -> None:
    """It was asked for each case of an operation, which is exponential in the depth."""
    x, y = (Var(n, Type("f64")) for n in "xy")
    e: Expr = x
    for _ in range(60):
        e = op("add", op("abs", op("sub", e, y)), x)
    fills = {n: const(0.0) for n in "xy"}
    assert required_operands(node_of(e, fills, True), ("x", "y"), ("x", "y")) == frozenset()


def test_operands_that_are_repeated_are_merged_at_once() -> None:
    """Merged two at a time, a chain of operations of three operands took a row in memory for each."""
    A, B, C = (tensor(dense_array((6, 7), k), "csr") for k in range(3))
    plan = ow.explain(ow.fused(lambda A, B, C: abs(abs(abs(A - B) + C - A) + B - C) + A), A, B, C)
    assert "W_" not in plan.loops
    plan = ow.explain(ow.fused(lambda A, B, C: A - B + C), A, B, C)
    assert ("W_" in plan.loops) == target.expands()  # elsewhere unions are not merged in vectors


# -- as objects --------------------------------------------------------------------------------------------------------


@pytest.mark.ci
def test_pickles_and_copies() -> None:
    A, B = tensor(a, "csr"), tensor(b, "csr")
    y = chain(CHAINS["sqrt"], ow.lazy(A), B, PAST_RECURSION)
    for again in (pickle.loads(pickle.dumps(y)), copy.deepcopy(y), copy.copy(y)):
        assert repr(again) == repr(y)
        np.testing.assert_array_equal(ow.compute(again).to_numpy(), ow.compute(y).to_numpy())


def test_every_operation_is_pickled() -> None:
    A, B = ow.lazy(tensor(a, "csr")), tensor(b, "csr")
    for e in (
        A.T, A.mT, A.transpose((1, 0)), ow.permute_dims(A, (1, 0)), A.sum(axis=1), ow.sum(A), A.max(axis=0), A @ B.T,
        ow.where(A > 1, A, 0), ow.multiply(A, B, zero_annihilates=True), ow.round(A), -A, A**2, ow.atan2(A, B),
    ):  # fmt: skip
        got, want = ow.compute(pickle.loads(pickle.dumps(e))), ow.compute(e)
        np.testing.assert_array_equal(values(got), values(want))
    shared = A * B
    pair = pickle.loads(pickle.dumps((shared + shared) * 2.0))
    assert len(Graph((pair,))) == 3
    assert pickle.loads(pickle.dumps(A)).known


@pytest.mark.ci
def test_texts_are_short() -> None:
    A = tensor(a, "csr")
    y = ow.lazy(A)
    for _ in range(60):
        y = y + y
    assert repr(y).endswith("): 60 operations)")
    assert len(repr(y)) < 400
    assert repr(chain(CHAINS["y + B"], ow.lazy(A), A)).startswith("lazy(... + A + A")
    assert len(repr(chain(CHAINS["y + B"], ow.lazy(A), A))) < 400
    assert repr(ow.lazy(A) * 2.0 + A) == "lazy(A * 2.0 + A)"
    plan = str(ow.explain(chain(CHAINS["y + B"], ow.lazy(A), A, 200)))
    assert max(map(len, plan.splitlines())) < 1000


@pytest.mark.ci
def test_equality_is_an_operation_and_nothing_is_hashed() -> None:
    A = tensor(a, "csr")
    y = chain(CHAINS["y + B"], ow.lazy(A), A, PAST_RECURSION)
    assert ow.compute((y == y).all())
    assert type(y != A) is ow.Lazy
    with pytest.raises(TypeError, match="unhashable"):
        hash(y)
