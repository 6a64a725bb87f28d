"""Assembly plans: sums of values at known coordinates, against loops in Python."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, InvariantError, ShapeError

FORMATS = (
    "csr", "csc", "coo", "coo(nonunique, unordered)", "dcsr", "bsr(2, 3)", "bsc(3, 2)", "dia", "ell(7)", "bitmap",
    "dense", "csr(unordered)",
)  # fmt: skip


def elements(rng: np.random.Generator, n: int = 7, m: int = 9, k: int = 3) -> Any:
    return rng.integers(0, n, (m, k)), rng.integers(0, n, (m, k)), rng.standard_normal((m, k, k))


def summed(shape: tuple[int, ...], coordinates: Any, values: Any) -> Any:
    """The sums in the order of the values."""
    out = np.zeros(shape, values.dtype)
    for place in np.ndindex(values.shape):
        out[tuple(c[place[0], place[1 + d]] for d, c in enumerate(coordinates))] += values[place]
    return out


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32"])
def test_element_matrices_are_summed_in_every_format(format: str, dtype: str) -> None:
    rows, cols, values = elements(np.random.default_rng(0))
    values = (10 * values).astype(dtype)
    asm = ow.assembler((7, 7), rows, cols, format=format)
    K = asm(values)
    assert K.format == ow.format(format)
    assert K.dtype == dtype
    assert K.check() is K
    assert np.array_equal(K.to_numpy(), summed((7, 7), (rows, cols), values))
    again = asm(2 * values, out=K)
    assert again is K
    assert np.array_equal(K.to_numpy(), summed((7, 7), (rows, cols), 2 * values))
    assert (asm.nse, asm.shape) == (K.nse, K.shape)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("places", [1, 3, 1000])
def test_sums_have_the_same_bits_on_any_number_of_threads(places: int, library: str) -> None:
    rng = np.random.default_rng(places)
    rows = rng.integers(0, places, 200_000)
    values: Any = rng.standard_normal(len(rows))
    asm = ow.assembler((places, 2), rows, np.zeros(len(rows), int))
    given = values
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = torch.from_numpy(values)
    before, found = ow.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            ow.set_num_threads(threads)
            found.append(np.asarray(asm(given).values).tobytes())
    finally:
        ow.set_num_threads(before)
    assert len(set(found)) == 1
    assert np.allclose(np.frombuffer(found[0]), np.bincount(rows, values))
    if library == "numpy":  # one after the other
        assert found[0] == np.bincount(rows, values).tobytes()


def test_values_that_are_those_of_the_result() -> None:
    asm = ow.assembler((3, 3), [2, 0, 1, 1], [0, 1, 2, 2])
    K = asm([1.0, 2, 3, 4])
    held = np.concatenate([K.values, [5.0]])
    K = ow.with_values(K, held[:3])
    assert np.array_equal(asm(held, out=K).values, [7, 1 + 5, 2])
    held.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        asm(np.ones(4), out=ow.with_values(K, held[:3]))


def test_zeros_stay_and_structures_are_one() -> None:
    asm = ow.assembler((3, 3), [2, 0, 2], [1, 0, 1])
    A, B = asm(np.zeros(3)), asm([1.0, 2, 3])
    assert A.nse == 2
    assert np.shares_memory(A.pos(1), B.pos(1))
    assert np.shares_memory(A.crd(1), B.crd(1))
    assert B.to_numpy().tolist() == [[2, 0, 0], [0, 0, 0], [0, 4, 0]]
    F = ow.linalg.factorized(ow.assembler((2, 2), [0, 1, 0, 1], [0, 1, 1, 0])([4.0, 5, 1, 1]), kind="cholesky")
    F.update(ow.assembler((2, 2), [0, 1, 0, 1], [0, 1, 1, 0])([8.0, 10, 2, 2]))
    assert np.allclose(F(np.array([10.0, 12])), [1, 1])


def test_other_ranks_and_rectangles() -> None:
    rng = np.random.default_rng(2)
    i, j, k = (rng.integers(0, n, (5, m)) for n, m in ((4, 2), (5, 3), (6, 1)))
    values = rng.standard_normal((5, 2, 3, 1))
    A = ow.assembler((4, 5, 6), i, j, k)(values)
    assert A.format == ow.format("csf3")
    assert np.array_equal(A.to_numpy(), summed((4, 5, 6), (i, j, k), values))
    flat = ow.assembler((4, 5, 6), i, j, k[:, 0], format="coo")(values[..., 0])
    assert np.array_equal(flat.to_numpy(), A.to_numpy())
    b = ow.assembler((4,), i)(values[..., 0, 0])
    assert np.array_equal(b.to_numpy(), summed((4,), (i,), values[..., 0, 0]))
    assert ow.assembler((0, 3), [], [])(np.zeros(0)).shape == (0, 3)


def test_blocks_and_their_edges() -> None:
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, 3, 8), rng.integers(0, 3, 8)
    values = rng.standard_normal((8, 2, 3))
    K = ow.assembler((5, 8), rows, cols, blocks=(2, 3))(values)
    expected = np.zeros((6, 9))
    for r, c, v in zip(rows, cols, values, strict=True):
        expected[2 * r : 2 * r + 2, 3 * c : 3 * c + 3] += v
    assert K.format == ow.format("bsr(2, 3)")
    assert np.array_equal(K.to_numpy(), expected[:5, :8])
    nodes = rng.integers(0, 4, (5, 2))
    parts = rng.standard_normal((5, 2, 2, 2, 2))
    E = ow.assembler((8, 8), nodes, nodes, blocks=(2, 2))(parts).to_numpy()
    dofs = (2 * nodes[:, :, None] + np.arange(2)).reshape(5, 4)
    assert np.allclose(E, ow.assembler((8, 8), dofs, dofs)(parts.swapaxes(2, 3).reshape(5, 4, 4)).to_numpy())


def test_halves() -> None:
    rng = np.random.default_rng(4)
    i, j = rng.integers(0, 6, 40), rng.integers(0, 6, 40)
    values = rng.standard_normal(40)
    lower = np.zeros((6, 6))
    for a, b, v in zip(np.maximum(i, j), np.minimum(i, j), values, strict=True):
        lower[a, b] += v
    full = lower + np.tril(lower, -1).T
    asm = ow.assembler((6, 6), np.maximum(i, j), np.minimum(i, j), symmetric=True)
    assert np.array_equal(asm(values).to_numpy(), full)
    for half, expected in (("lower", np.tril(full)), ("upper", np.triu(full))):
        made = ow.assembler((6, 6), np.maximum(i, j), np.minimum(i, j), symmetric=True, half=half)(values)
        assert np.array_equal(made.to_numpy(), expected)
    blocks = ow.assembler((4, 4), [0, 1], [0, 0], blocks=(2, 2), symmetric=True)
    parts = np.arange(8.0).reshape(2, 2, 2)
    expected = np.zeros((4, 4))
    expected[:2, :2], expected[2:, :2], expected[:2, 2:] = parts[0], parts[1], parts[1].T
    assert np.array_equal(blocks(parts).to_numpy(), expected)


@pytest.mark.parametrize("format", ["csr", "csc", "bsr(2, 2)", "dia"])
def test_rows_left_out_and_dirichlet_rows(format: str) -> None:
    rows, cols, values = elements(np.random.default_rng(5))
    asm = ow.assembler((7, 7), rows, cols, format=format)
    dense = asm(values).to_numpy()
    kept = [0, 1, 3, 4, 5]
    assert np.array_equal(asm.without([6, 2])(values).to_numpy(), dense[np.ix_(kept, kept)])
    mask = np.isin(np.arange(7), [2, 6])
    assert np.array_equal(asm.without(mask, 0)(values).to_numpy(), dense[kept])
    coupling = asm.without([2, -1], 0).only([6, 2], 1)
    assert np.array_equal(coupling(values).to_numpy(), dense[np.ix_(kept, [6, 2])])
    fixed = asm.dirichlet([2, 6], 5.0)
    expected = np.where(mask[:, None], 5 * np.eye(7), dense)
    assert np.array_equal(fixed(values).to_numpy(), expected)
    both = asm.dirichlet([2, 6], columns=True)
    assert np.array_equal(both(values).to_numpy(), np.where(mask[:, None] | mask, np.eye(7), dense))
    assert np.array_equal(
        both.without([2])(values).to_numpy(), np.delete(np.delete(both(values).to_numpy(), 2, 0), 2, 1)
    )
    twice = fixed.dirichlet([2], 3.0)(values).to_numpy()
    assert np.array_equal(twice, np.where((np.arange(7) == 2)[:, None], 3 * np.eye(7), expected))


def test_gather_is_the_transpose_and_pickles_are_the_same() -> None:
    rows, cols, values = elements(np.random.default_rng(6))
    for asm in (
        ow.assembler((7, 7), rows, cols, format="bsr(2, 2)"),
        ow.assembler((7, 7), rows, cols).dirichlet([1]),
        ow.assembler((7, 7), np.maximum(rows, cols), np.minimum(rows, cols), symmetric=True).without([0]),
    ):
        data = values * (1 + 2j)
        K = asm(data)
        g = np.random.default_rng(7).standard_normal(len(K.values))
        constant = asm(np.zeros_like(data)).values
        assert np.isclose(np.sum(asm.gather(g) * data), np.sum(g * (K.values - constant)))
        copy = pickle.loads(pickle.dumps(asm))
        assert np.array_equal(copy(values).to_numpy(), asm(values).to_numpy())
        assert copy(values, out=asm(values)).shape == asm.shape
    asm = ow.assembler((7, 7), rows, cols)
    assert np.array_equal(asm.gather(asm(values)), asm(values).to_numpy()[rows[:, :, None], cols[:, None, :]])


def test_infinite_complex_values_stay_what_they_are() -> None:
    K = ow.assembler((2, 2), [0, 1], [0, 1])(np.array([complex(np.inf, 0), 1j]))
    assert K.values.tolist() == [complex(np.inf, 0), 1j]


@pytest.mark.ci
def test_gradients() -> None:
    torch = pytest.importorskip("torch")
    rows, cols, values = elements(np.random.default_rng(8), 5, 4, 2)
    base = ow.assembler((5, 5), rows, cols)
    for asm in (base, base.dirichlet([1], columns=True), base.without([0])):
        for dtype in (torch.float64, torch.complex128):
            x = torch.tensor(values).to(dtype).requires_grad_()
            assert torch.autograd.gradcheck(lambda x, asm=asm: asm(x**2).values, (x,))
            assert torch.autograd.gradgradcheck(lambda x, asm=asm: asm(x**2).values, (x,))
    x = torch.tensor(values, requires_grad=True)
    K = base(x)
    b = torch.ones(5, dtype=torch.float64)
    (grad,) = torch.autograd.grad((K @ b).square().sum(), x, retain_graph=True)
    (expected,) = torch.autograd.grad((K.to_dense() @ b).square().sum(), x)
    assert torch.allclose(grad, expected)
    with pytest.raises(ow.ReadOnlyError, match="out= has no gradients"):
        base(x, out=base(x.detach()))
    out = base(x.detach())
    assert base(2 * x.detach(), out=out) is out
    assert torch.allclose(out.values, 2 * K.values)
    assert torch.equal(torch.func.vmap(lambda v: base(v).values)(torch.stack([x, 2 * x]).detach())[1], 2 * K.values)


def test_what_is_refused() -> None:
    asm = ow.assembler((3, 3), [0, 1], [1, 2])
    with pytest.raises(ShapeError, match="coordinate 3 outside"):
        ow.assembler((3, 3), [0, 3], [0, 1])
    with pytest.raises(ShapeError, match="coordinate -1 outside"):
        ow.assembler((3, 3), [0, -1], [0, 1])
    with pytest.raises(DTypeError, match="expected: integers"):
        ow.assembler((3, 3), [0.5, 1], [0, 1])
    with pytest.raises(ShapeError, match="for 2 dimensions"):
        ow.assembler((3, 3), [0, 1])
    with pytest.raises(ShapeError, match="have shapes"):
        ow.assembler((3, 3), [0, 1], [0])
    with pytest.raises(ShapeError, match=r"expected values of shape \(2,\)"):
        asm(np.ones(3))
    with pytest.raises(InvariantError, match="not made by this assembler"):
        asm([1.0, 2], out=ow.assembler((3, 3), [0, 2], [1, 2])([1.0, 2]))
    with pytest.raises(DTypeError, match="out holds float32"):
        asm([1.0, 2], out=asm(np.ones(2, "float32")))
    with pytest.raises(ShapeError, match="differ"):
        ow.assembler((2, 3), [0], [0]).without([0])
    with pytest.raises(ShapeError, match="row 3 of 3 rows"):
        asm.without([3])
    with pytest.raises(ShapeError, match="named twice"):
        asm.only([1, 1])
    with pytest.raises(ShapeError, match="halves are those of square"):
        ow.assembler((2, 3), [0], [0], symmetric=True)
    with pytest.raises(ShapeError, match="square matrix"):
        ow.assembler((2, 3), [0], [0]).dirichlet([0])
    with pytest.raises(ValueError, match="half must be"):
        ow.assembler((2, 2), [0], [0], half="left")
    with pytest.raises(DTypeError, match="out is a ndarray"):
        asm([1.0, 2], out=np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="do not fit"):
        ow.assembler((2, 2), [0], [0], blocks=(0, 2))
    with pytest.raises(ShapeError, match="are not an array"):
        ow.assembler((2, 2), [[0], [0, 1]], [0, 1])
    with pytest.raises(DTypeError, match="diagonal is one number"):
        asm.dirichlet([0], "1")
    for diagonal, values in ((0.5, [1, 2]), (1j, [1.0, 2.0])):  # no dtype changes, and no number, without a word
        with pytest.raises(DTypeError, match="a diagonal of"):
            asm.dirichlet([0], diagonal)(np.array(values))
    assert asm.dirichlet([0], 1j)(np.array([1, 2j])).values.tolist() == [1j, 2j]
