"""docs/values.md: what a result specifies follows from what the operands specify, never from their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow

FORMATS = ("coo", "csr", "csc", "dcsr", "bitmap", "bsr(1, 2)", "dia")
SHAPE = (4, 4)
PLACES = (np.array([[0, 0, 1, 3], [0, 2, 1, 3]]), np.array([[0, 0, 1, 2], [0, 1, 1, 3]]))


def operand(k: int, values: Any, format: str) -> ow.Tensor:
    return ow.sparse_coo_tensor(PLACES[k], np.array(values, np.float64), SHAPE).asformat(format)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "negative": lambda a, b: -a,
    "times 0": lambda a, b: a * 0,
    "comparison": lambda a, b: a > 2,
    "floor": lambda a, b: ow.floor(a / 2),
    "sign": lambda a, b: ow.sign(a),
    "astype": lambda a, b: a.astype(np.int32),
    "round": lambda a, b: ow.round(a, 1),
    "nan_to_num": lambda a, b: ow.nan_to_num(a),
    "clip": lambda a, b: ow.clip(a, -1, 1),
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "subtract itself": lambda a, b: a - a,
    "multiply": lambda a, b: a * b,
    "maximum": lambda a, b: ow.maximum(a, b),
    "equal": lambda a, b: a != b,
    "and": lambda a, b: (a != 0) & (b != 0),
    "where": lambda a, b: ow.where(a > 2, a, b),
    "large ones": lambda a, b: a * (a > 2),
    "a ufunc": lambda a, b: np.fmax(a, b),
    "pointwise": lambda a, b: ow.pointwise("A * B - A", {"A": a, "B": b}),
    "lazy": lambda a, b: ow.compute(ow.lazy(a) + ow.lazy(b) * 2),
    "with a dense operand": lambda a, b: a * np.zeros(SHAPE),
    "sddmm": lambda a, b: ow.sddmm(a, np.zeros((4, 2)), np.zeros((2, 4))),
    "product": lambda a, b: a @ b.T,
    "einsum": lambda a, b: ow.einsum("ij,kj->ik", a, b, format="csr"),
    "kron": lambda a, b: ow.kron(a, b),
    "transpose": lambda a, b: a.T,
    "reshape": lambda a, b: ow.reshape(a, (2, 8)),
    "slice": lambda a, b: a[:3, 1:],
    "take": lambda a, b: ow.take(a, [0, 2, 0], axis=1),
    "concat": lambda a, b: ow.concat([a, b]),
    "flip": lambda a, b: ow.flip(a),
    "roll": lambda a, b: ow.roll(a, 1, axis=0),
    "tril": lambda a, b: ow.tril(a),
    "pad": lambda a, b: ow.pad(a, 1),
    "to csc": lambda a, b: a.asformat("csc"),
    "to blocks": lambda a, b: a.asformat("bsr(2, 2)"),
    "coalesce": lambda a, b: a.coalesce(),
    "copy": lambda a, b: ow.copy(a),
    "add at": lambda a, b: a.at[0, 0].add(-1.0),
    "multiply at": lambda a, b: a.at[0].mul(0.5),
    "least at": lambda a, b: a.at[[0, 0, 2], [0, 0, 1]].min(5.0),
    "sparse_mask": lambda a, b: ow.sparse_mask(a, b),
    "pattern": lambda a, b: ow.pattern(a),
}
VALUES = (([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]), ([0.0] * 4, [0.0] * 4), ([1.0, 0, -2, 3], [-1.0, 5, 2, 0]))


@pytest.mark.thin(153)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_structure_follows_from_structure(name: str, format: str) -> None:
    found = [OPERATIONS[name](operand(0, v, format), operand(1, w, format)) for v, w in VALUES]
    patterns = [ow.pattern(t).asformat("coo") for t in found]
    for t in patterns[1:]:
        assert t.nse == patterns[0].nse
        np.testing.assert_array_equal(t.to_numpy(), patterns[0].to_numpy())


@pytest.mark.parametrize("format", FORMATS)
def test_values_decide_where_something_is_read_or_asked_for(format: str) -> None:
    a = operand(0, [0.0, 2.0, -0.0, 4.0], format)
    dense = ow.asarray(a.to_numpy(), format=format)
    if format in ("coo", "csr", "csc", "dcsr"):
        assert dense.nse == 2  # -0.0 equals 0.0
        assert a.prune().nse == 2
    b = a.asformat("coo").clone()
    b.eliminate_zeros()
    assert b.nse == 2
    assert b.at[0, 2].set(0).nse == 1
    assert [getattr(b.at[:], op)(0).nse for op in ("add", "mul", "max")] == [2, 2, 2]
    b[3, 3] = 0
    assert b.nse == 1
    assert ow.sparse_mask(a, (a > 3).asformat("coo").prune()).nse == 1


def test_infinity_beside_an_unspecified_zero() -> None:
    a, b = operand(0, [1.0, 0.0, 3.0, 4.0], "csr"), operand(1, [1.0, np.inf, 0.0, 0.0], "csr")
    with np.errstate(all="ignore"):
        got, want = a * b, a.to_numpy() * b.to_numpy()
    np.testing.assert_array_equal(got.to_numpy(), want)
    assert got.nse == int((want != 0).sum())


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", [*FORMATS, "dense"])
def test_pattern_and_with_values(format: str, library: str) -> None:
    a = operand(0, [0.0, 2.0, 3.0, 4.0], format)
    if library == "torch":
        torch = pytest.importorskip("torch")
        a = ow.Tensor._from_storage(a._storage.mapped(lambda b: torch.from_numpy(b.copy())))
    p = ow.pattern(a)
    assert p.nse == a.nse
    assert p.format == a.format
    assert all(x is y for x, y in zip(p._storage.crd, a._storage.crd, strict=True))
    assert int(p.sum()) == a.nse
    np.testing.assert_array_equal((p & (a != 0)).to_numpy(), a.to_numpy() != 0)
    ones = a.with_values(1)
    assert str(ones.dtype).endswith("int64")
    np.testing.assert_array_equal(ones.to_numpy() != 0, p.to_numpy())
    np.testing.assert_array_equal(a.with_values(a.values * 2).to_numpy(), a.to_numpy() * 2)
    with pytest.raises(ow.ShapeError, match="with_values: expected"):
        a.with_values(np.ones(99))


def test_with_values_stays_on_the_graph() -> None:
    torch = pytest.importorskip("torch")
    v = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
    for t in (operand(0, [1.0, 1, 1, 1], "csr"), ow.asarray(torch.eye(4), format="csr")):
        v.grad = None
        (t.with_values(v) * 3).sum().backward()
        assert v.grad.tolist() == [3.0] * 4


def test_masked_tensors_have_a_pattern() -> None:
    m = ow.masked_tensor(np.zeros((2, 2)), np.array([[True, False], [False, True]]))
    assert isinstance(ow.pattern(m), ow.Tensor | np.ndarray)
    with pytest.raises(ow.UnsupportedError):
        ow.with_values(m, [1.0, 2.0])


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bitmap", "dcsr"])
def test_graphs_have_an_edge_where_an_element_is_specified(format: str) -> None:
    a = ow.sparse_coo_tensor(np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), np.array([0.0, 0.0, 1.0, 1.0]), (3, 3))
    graph = a.asformat(format)
    assert np.asarray(ow.graph.bfs(graph, 0)).tolist() == [0, 1, 2]
    assert np.asarray(ow.graph.shortest_paths(graph, 0)).tolist() == [0.0, 0.0, 1.0]
    assert np.asarray(ow.graph.bfs(graph.with_values(1.0), 0)).tolist() == [0, 1, 2]
    assert np.asarray(ow.graph.bfs(a.prune().asformat(format), 0))[0] == 0
    assert np.asarray(ow.graph.bfs(a.prune().asformat(format), 0))[1] != 1
