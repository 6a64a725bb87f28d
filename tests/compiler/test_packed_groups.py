"""Products of n:m formats by packed coordinates: the same as of the dense matrix, by whatever instructions there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.compiler.operand import Operand
from openwork.compiler.packed_coordinates import PACK, WORD, coordinate_bits
from openwork.compiler.schedule import Facts, schedule
from openwork.compiler.schedule import single as schedules
from openwork.compiler.simplify import simplify
from openwork.compiler.single.lower import lower_single_operand
from openwork.format import format as parse_format
from openwork.ir import interpret
from openwork.ir.index_text import parse
from openwork.ir.text import parse as parse_loops
from openwork.nn import prune
from openwork.runtime import packed_coordinates, widths

KINDS = {"f64": "float64", "f32": "float32", "f16": "float16"}
TOLERANCE = {"float64": 1e-12, "float32": 1e-4, "float16": 1e-2, "complex64": 1e-4}


def groups(rows: int, count: int, n: int, m: int, seed: int = 0) -> np.ndarray:
    """n of m coordinates of each group, in order."""
    order = np.random.default_rng(seed).random((rows, count, m)).argsort(2)[..., :n]
    return np.sort(order, 2)


def matrix(
    rows: int, count: int, n: int, m: int, dtype: str, index: str = "uint8", format: str = "nm({n}, {m})"
) -> tuple[ow.Tensor, np.ndarray]:
    """A matrix of `count` groups in each row, and the dense array."""
    crd = groups(rows, count, n, m)
    values = np.random.default_rng(1).integers(-9, 10, crd.shape).astype(dtype)
    dense = np.zeros((rows, count, m), dtype)
    np.put_along_axis(dense, crd, values, 2)
    shape, buffers = (rows, count * m), {2: crd.reshape(-1).astype(index)}
    text = format.format(n=n, m=m)
    return ow.assemble(text, shape, crd=buffers, values=values.reshape(-1)), dense.reshape(shape)


def kernel(
    statement: str, n: int, m: int, scalar: str, permutes: int, extents: tuple[tuple[str, int], ...] = ()
) -> Any:
    """The loops of a statement on n:m by packed coordinates."""
    stmt, fmt = parse(statement), parse_format(f"nm({n}, {m})", 2)
    operands = {"A": Operand(scalar, 2, fmt, (None,) * 3, (None, None, "u8"))}
    for access in (stmt.lhs, *stmt.accesses):
        last = len(access.indices) - 1
        unit = access.indices.index("r") if "r" in access.indices else last
        compute = "f32" if scalar == "f16" and access == stmt.lhs else scalar
        operands.setdefault(access.tensor, Operand(compute, last + 1, unit=unit))
    plan = schedule(stmt, operands, Facts(extents, packed=True, permutes=permutes))
    return plan, simplify(lower_single_operand(stmt, operands, plan, operands[stmt.lhs.tensor].scalar))


def packed(crd: np.ndarray, m: int) -> np.ndarray:
    """The words, by the interpreter."""
    bits, (rows, row) = coordinate_bits(parse_format(f"nm(1, {m})", 2), False), (len(crd), crd[0].size)
    assert bits is not None
    words = -(-row * bits // WORD)
    out = np.zeros(rows * words, np.uint64)
    constants = {"PER": str(WORD // bits), "MASK": str((1 << bits) - 1), "BITS": str(bits)}
    loops = parse_loops(PACK, T="u8", **constants)
    arguments = {"parents": rows, "row": row, "words": words, "crd": crd.reshape(-1).astype("uint8"), "packed": out}
    assert interpret.run(loops, arguments) == 0
    return out


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("n", "m", "scalar", "vector"),
    [(2, 4, "f32", 64), (2, 4, "f64", 64), (4, 8, "f32", 64), (1, 4, "f32", 32), (2, 8, "f16", 64), (1, 8, "f64", 64)],
)
def test_lanes_by_the_interpreter(n: int, m: int, scalar: str, vector: int) -> None:
    lanes = vector // (8 if scalar == "f64" else 4)
    plan, loops = kernel("y[i] += A[i,j] * x[j]", n, m, scalar, vector)
    assert plan.packed == lanes
    count = 2 * (lanes // n) + 1
    crd = groups(3, count, n, m)
    values, x = (
        np.random.default_rng(k).integers(-4, 5, size).astype(KINDS[scalar])
        for k, size in ((1, crd.size), (2, count * m))
    )
    y = np.zeros(3, "float32" if scalar == "f16" else KINDS[scalar])
    unit = next(p.scalar for p in loops.params if p.name == "A_packed2")
    arguments = {
        "A_size0": 3, "A_size1": count, "A_packed2": packed(crd, m).view(f"uint{unit[1:]}"), "x": x, "A_vals": values,
        "A_crd2": crd.reshape(-1).astype("uint8"), "y": y,
    }  # fmt: skip
    assert interpret.run(loops, {p.name: arguments[p.name] for p in loops.params}, 0, 3) == 0
    dense = np.zeros((3, count, m))
    np.put_along_axis(dense, crd, values.reshape(crd.shape).astype(float), 2)
    np.testing.assert_array_equal(y, dense.reshape(3, -1) @ x.astype(float))


@pytest.mark.thin(2)
@pytest.mark.parametrize("count", [3, 16, 35])
def test_panels_of_blocks_by_the_interpreter(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows by panels of 4 and blocks of 8 groups, some of which remain, of tiles of 16 columns and of 3."""
    monkeypatch.setattr(schedules, "PANEL", 4)
    monkeypatch.setattr(schedules, "BLOCK_BYTES", 32 * 3 * 4)
    plan, loops = kernel("y[i,r] += A[i,j] * x[j,r]", 2, 4, "f32", 64, (("r", 3),))
    assert (plan.panel, plan.reads, plan.rows, plan.writes_all) == (4, 1, 4, False)
    crd, rng = groups(9, count, 2, 4), np.random.default_rng(1)
    values, x = (rng.integers(-4, 5, size).astype("float32") for size in (crd.shape, (4 * count, 3)))
    y = np.zeros((9, 3), "float32")
    arguments = {
        "A_size0": 9, "A_size1": count, "A_packed2": packed(crd, 4).view("uint32"), "x": x.reshape(-1), "x_stride0": 3,
        "A_vals": values.reshape(-1), "A_crd2": crd.reshape(-1).astype("uint8"), "y": y.reshape(-1), "y_stride0": 3,
    }  # fmt: skip
    assert interpret.run(loops, {p.name: arguments[p.name] for p in loops.params}, 0, 9) == 0
    dense = np.zeros((9, count, 4))
    np.put_along_axis(dense, crd, values.astype(float), 2)
    np.testing.assert_array_equal(y, dense.reshape(9, -1) @ x)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("columns", [24, *(pytest.param(n, marks=pytest.mark.slow) for n in (40, 130, 300))])
def test_products_of_several_panels(columns: int, dtype: str) -> None:
    """Sums are exact, and rounded to half precision once."""
    A, dense = matrix(261, 53, 2, 4, dtype)
    x = np.random.default_rng(3).integers(-9, 10, (dense.shape[1], columns)).astype(dtype)
    expected = (dense.astype("float32") @ x.astype("float32")).astype(dtype)
    np.testing.assert_array_equal(A @ x, expected)
    np.testing.assert_array_equal(np.ascontiguousarray(x.T) @ A.T, expected.T)


def test_products_by_slices_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    A, dense = matrix(33, 40, 2, 4, "float32")
    x = np.random.default_rng(3).integers(-9, 10, (160, 16)).astype("float32")
    monkeypatch.setattr(widths, "WIDE", 32)
    np.testing.assert_array_equal(A @ x, dense @ x)


@pytest.mark.slow
def test_slices_of_any_operands_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    A, dense = matrix(33, 40, 2, 4, "float32")
    x = np.random.default_rng(3).integers(-9, 10, (160, 24)).astype("float32")
    monkeypatch.setattr(widths, "WIDE", 32)
    for layout in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2]):
        np.testing.assert_array_equal(A @ layout, dense @ x)
        np.testing.assert_array_equal(layout.T @ A.T, (dense @ x).T)
    t = ow.asarray(A, like=torch).with_values(torch.from_numpy(A.values).requires_grad_())
    given = torch.from_numpy(x).requires_grad_()
    for product, expected in ((t @ given, dense @ x), (given.T @ t.T, (dense @ x).T)):
        np.testing.assert_array_equal(product.detach(), expected)
        of_values, of_x = torch.autograd.grad(product.sum(), [t.values, given])
        np.testing.assert_array_equal(of_x, np.repeat(dense.sum(0)[:, None], 24, 1))
        assert of_values.shape == t.values.shape


def test_which_products_take_packed_coordinates() -> None:
    spmv, spmm = "y[i] += A[i,j] * x[j]", "y[i,r] += A[i,j] * x[j,r]"
    assert kernel(spmv, 2, 4, "f32", 64)[0].packed == 16
    assert kernel(spmv, 2, 4, "f32", 32)[0].packed == 8
    assert kernel(spmv, 2, 4, "f64", 32)[0].packed == 0  # no such instruction for words of 64 bits
    assert kernel(spmv, 2, 4, "f32", 0)[0].packed == 0
    assert kernel(spmv, 3, 4, "f32", 64)[0].packed == 0  # 16 are no whole groups
    assert kernel(spmv, 1, 16, "f32", 64)[0].packed == 0  # of too many vectors
    assert kernel(spmv, 2, 4, "i32", 64)[0].packed == 0
    assert kernel(spmm, 2, 4, "i32", 0, (("r", 8),))[0].packed == 16
    assert kernel("y[j] += A[i,j] * x[i]", 2, 4, "f32", 64)[0].packed == 0  # the output is scattered to


@pytest.mark.thin(3)
@pytest.mark.parametrize(("n", "m", "dtype"), [(2, 4, "float32"), (4, 8, "float64"), (1, 4, "int8")])
def test_products(n: int, m: int, dtype: str) -> None:
    A, dense = matrix(6, 2 * (32 // n) + 3, n, m, dtype)
    assert len(A.values) >= packed_coordinates.SMALLEST
    rng = np.random.default_rng(5)
    for shape in ((dense.shape[1],), (dense.shape[1], 5)):
        x = rng.integers(-9, 10, shape).astype(dtype)
        wide = dtype if dtype[0] == "i" else complex if dtype[0] == "c" else float
        expected = (dense.astype(wide) @ x.astype(wide)).astype(dtype)
        tolerance = TOLERANCE.get(dtype, 0)
        np.testing.assert_allclose(A @ x, expected, tolerance, tolerance)
        np.testing.assert_allclose(np.ascontiguousarray(x.T) @ A.T, expected.T, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "complex64"])
@pytest.mark.parametrize(
    ("n", "m"), [(2, 4), (1, 4), (1, 2), (4, 8), (2, 8), (1, 8), (3, 4), (8, 16), (2, 16), (1, 16), (4, 4), (2, 3)]
)
def test_products_of_all_kinds(n: int, m: int, dtype: str, index: str) -> None:
    for rows, count in ((7, 64), (5, 61), (1, 256), (8, 33)):
        A, dense = matrix(rows, count, n, m, dtype, index)
        for shape in ((dense.shape[1],), (dense.shape[1], 1), (dense.shape[1], 40)):
            x = np.random.default_rng(3).integers(-9, 10, shape).astype(dtype)
            wide = dtype if dtype[0] == "i" else complex if dtype[0] == "c" else float
            tolerance = TOLERANCE.get(dtype, 0)
            expected = (dense.astype(wide) @ x.astype(wide)).astype(dtype)
            np.testing.assert_allclose(A @ x, expected, tolerance, tolerance)
            np.testing.assert_allclose(np.ascontiguousarray(x.T) @ A.T, expected.T, tolerance, tolerance)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_pruned_layers(dtype: torch.dtype) -> None:
    """A layer on a vector and on a batch, and its gradients, are those of torch.nn.Linear."""
    layer = prune(torch.nn.Linear(72, 16).to(dtype), format="nm(2, 4)")
    dense = layer.to_dense()
    for shape in ((72,), (1, 72), (3, 72)):
        x = torch.randn(shape).to(dtype)
        torch.testing.assert_close(layer(x), dense(x), rtol=2e-2, atol=2e-2)
        layer(x).sum().backward()
    with torch.no_grad():
        torch.testing.assert_close(layer(x), layer(x), rtol=0, atol=0)


FORMATS = {
    "columns of columns": "(i, j) -> (j : dense, i // 4 : dense, i % 4 : structured(2, 4))",
    "some rows": "(i, j) -> (i : compressed, j // 4 : dense, j % 4 : structured(2, 4))",
}


@pytest.mark.parametrize("name", FORMATS)
def test_other_levels_above(name: str) -> None:
    A, dense = matrix(8, 34, 2, 4, "float32")
    other = (A.T if name == "columns of columns" else A).asformat(FORMATS[name])
    dense = dense.T if name == "columns of columns" else dense
    for x in (np.arange(dense.shape[1], dtype="f4"), np.ones((dense.shape[1], 3), "f4")):
        np.testing.assert_allclose(other @ x, dense @ x, 1e-4)
        np.testing.assert_allclose(
            np.ones((2, dense.shape[0]), "f4") @ other, np.ones((2, dense.shape[0])) @ dense, 1e-4
        )


def test_operands_that_do_not_lie_side_by_side() -> None:
    A, dense = matrix(5, 40, 2, 4, "float32")
    x = np.random.default_rng(0).random((160, 3)).astype("f4")
    np.testing.assert_allclose(A @ x[:, 1], dense @ x[:, 1], 1e-5, 1e-4)
    np.testing.assert_allclose(A @ x[::-1, 0], dense @ x[::-1, 0], 1e-5, 1e-4)
    d = np.arange(5, dtype="f4")
    scaled = ow.einsum("ij,j,i->i", A, x[:, 0].copy(), d)
    np.testing.assert_allclose(np.asarray(scaled), dense @ x[:, 0] * d, 1e-5, 1e-4)
    least = ow.evaluate("y(i) min= A(i,j) + x(j)", A=A, x=x[:, 0].copy())
    stored = ow.evaluate("y(i) min= B(i,j) + x(j)", B=A.asformat("csr"), x=x[:, 0].copy())
    np.testing.assert_array_equal(np.asarray(least), np.asarray(stored))


def test_a_processor_without_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers, so that every order of the sums gives the same."""
    A, dense = matrix(6, 70, 2, 4, "float64")
    monkeypatch.setattr("openwork.runtime.plan.permutes", lambda: 0)
    x = np.arange(280.0)
    np.testing.assert_array_equal(A @ x, dense @ x)


def count_packs(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> int:
    """How often coordinates are packed in a call."""
    calls = []
    of_text = packed_coordinates.cache.of_text
    monkeypatch.setattr(packed_coordinates.cache, "of_text", lambda *a, **k: calls.append(a) or of_text(*a, **k))
    function()
    monkeypatch.undo()
    return len(calls)


def test_coordinates_are_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    A, _ = matrix(6, 70, 2, 4, "float32")
    x = np.ones(280, "f4")

    def products() -> None:
        A @ x
        (A * 2) @ x
        A @ np.ones((280, 3), "f4")
        np.ones((3, 280), "f4") @ A.T

    assert count_packs(monkeypatch, products) == 1
    assert A._storage.structure.packed[2].nbytes <= A.crd(2).nbytes // 4 + 6 * 8


def test_coordinates_that_change_are_packed_again() -> None:
    A, dense = matrix(6, 70, 2, 4, "float32")
    crd, values, x = torch.from_numpy(A.crd(2).copy()), torch.from_numpy(A.values), torch.arange(280.0)
    t = ow.assemble("nm(2, 4)", A.shape, crd={2: crd}, values=values)
    torch.testing.assert_close(t @ x, torch.from_numpy(dense) @ x)
    crd.reshape(-1, 2).copy_(torch.tensor([0, 3], dtype=torch.uint8).expand(len(crd) // 2, 2))
    moved = np.zeros((6, 70, 4), "f4")
    moved[..., [0, 3]] = A.values.reshape(6, 70, 2)
    torch.testing.assert_close(t @ x, torch.from_numpy(moved.reshape(6, 280)) @ x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize("shape", [(4, 8), (0, 8), (4, 0)])
def test_products_of_no_columns_are_empty(shape: tuple[int, int], dtype: str) -> None:
    dense = np.zeros(shape, dtype)
    dense[:, ::4] = 1
    t = ow.asarray(dense, format="nm(2, 4)")
    for _ in range(2):
        assert (t @ np.ones((shape[1], 0), dtype)).shape == (shape[0], 0)
        assert (np.ones((0, shape[0]), dtype) @ t).shape == (0, shape[1])
        assert (t.T @ np.ones((shape[0], 0), dtype)).shape == (shape[1], 0)


@pytest.mark.ci
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_wide_rows_of_torch_go_by_slices(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(2)
    dense = torch.from_numpy(rng.integers(-3, 4, (32, 64)) * np.tile([1, 0, 0, 1], (32, 16))).to(dtype)
    a = ow.asarray(dense, format="nm(2,4)")
    for width in (300, 513):
        x = torch.from_numpy(rng.integers(-3, 4, (64, width))).to(dtype)
        assert torch.equal(a @ x, (dense.double() @ x.double()).to(dtype))
        assert torch.equal(x[:32].T.contiguous() @ a, (x[:32].T.double() @ dense.double()).to(dtype))
