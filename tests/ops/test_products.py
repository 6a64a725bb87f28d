"""Products of one sparse operand with dense ones, on every format, against NumPy."""

from __future__ import annotations

import string
import sys
from typing import Any

import numpy as np
import pytest
from matrix import FORMATS, SHAPES, check, dense_array, same, tensor

import openwork as ow
from openwork.runtime import widths


def _case(spec: str, shape: tuple[int, int]) -> Any:
    """A format on a ragged shape by default, blocked ones on a whole shape too; the rest is slow."""
    by_default = shape == (7, 11) or (shape == (8, 12) and "//" in spec + str(ow.format(spec, 2)))
    marks = () if by_default or spec == "csr" else (pytest.mark.slow,)
    return pytest.param(spec, shape, marks=marks, id=f"{spec.replace(' ', '')}-{shape}")


TWO = [_case(spec, shape) for spec in FORMATS[2] for shape in SHAPES[2]]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("spec", "shape"), TWO)
class TestMatmul:
    @pytest.mark.thin(3)
    def test_vector_right(self, spec: str, shape: tuple[int, int]) -> None:
        x = dense_array((shape[1],), 1, density=1)
        check(lambda t: t @ x, lambda a: a @ x, dense_array(shape), spec)

    @pytest.mark.thin(3)
    def test_vector_left(self, spec: str, shape: tuple[int, int]) -> None:
        x = dense_array((shape[0],), 1, density=1)
        check(lambda t: x @ t, lambda a: x @ a, dense_array(shape), spec)

    @pytest.mark.thin(15)
    @pytest.mark.parametrize("columns", [0, 5, pytest.param(40, marks=pytest.mark.slow)])
    def test_matrix_right(self, spec: str, shape: tuple[int, int], columns: int) -> None:
        x = dense_array((shape[1], columns), 1, density=1)
        check(lambda t: t @ x, lambda a: a @ x, dense_array(shape), spec)
        check(lambda t: t @ np.asfortranarray(x), lambda a: a @ x, dense_array(shape), spec)

    @pytest.mark.thin(6)
    @pytest.mark.parametrize("rows", [5, pytest.param(300, marks=pytest.mark.slow)])
    def test_matrix_left(self, spec: str, shape: tuple[int, int], rows: int) -> None:
        x = dense_array((rows, shape[0]), 1, density=1)
        check(lambda t: x @ t, lambda a: x @ a, dense_array(shape), spec)
        check(lambda t: x[::-1] @ t, lambda a: x[::-1] @ a, dense_array(shape), spec)

    @pytest.mark.thin(3)
    def test_stacks(self, spec: str, shape: tuple[int, int]) -> None:
        x = dense_array((3, 2, shape[1], 4), 1, density=1)
        check(lambda t: t @ x, lambda a: a @ x, dense_array(shape), spec)
        y = dense_array((3, 4, shape[0]), 1, density=1)
        check(lambda t: y @ t, lambda a: y @ a, dense_array(shape), spec)

    @pytest.mark.thin(10)
    def test_sampled(self, spec: str, shape: tuple[int, int]) -> None:
        array = dense_array(shape)
        t = tensor(array, spec)
        for k in (3, 300):
            u, v = dense_array((shape[0], k), 1, density=1), dense_array((k, shape[1]), 2, density=1)
            stored = tensor(np.where(array != 0, 1.0, 0.0), spec)
            pattern = ow.sddmm(t, u, v)
            assert pattern.format == (t.format if t.format.is_unique else pattern.format)
            got = pattern.to_numpy()
            want = u @ v
            np.testing.assert_array_equal(got[array != 0], want[array != 0])
            assert pattern.nse == (t.nse if t.format.is_unique else t.coalesce().nse)
            assert set(got[array == 0]) <= {0.0, *want[array == 0]}
            assert stored.shape == pattern.shape

    @pytest.mark.thin(3)
    def test_sums(self, spec: str, shape: tuple[int, int]) -> None:
        for axis in (None, 0, 1, (0, 1), ()):
            check(
                lambda t, axis=axis: t.sum(axis=axis), lambda a, axis=axis: a.sum(axis=axis), dense_array(shape), spec
            )
        check(lambda t: t.sum(axis=0, keepdims=True), lambda a: a.sum(axis=0, keepdims=True), dense_array(shape), spec)

    @pytest.mark.thin(10)
    def test_elementwise_with_dense(self, spec: str, shape: tuple[int, int]) -> None:
        for other in (shape, (1, shape[1]), (shape[0], 1), (shape[1],)):
            d = dense_array(other, 3, density=1)
            array = dense_array(shape)
            check(lambda t, d=d: t * d, lambda a, d=d: a * d, array, spec)
            check(lambda t, d=d: d * t, lambda a, d=d: d * a, array, spec)
            check(lambda t, d=d: t + d, lambda a, d=d: a + d, array, spec)
            check(lambda t, d=d: d - t, lambda a, d=d: d - a, array, spec)
            check(lambda t, d=d: t / d, lambda a, d=d: a / d, array, spec)
            check(lambda t, d=d: t > d, lambda a, d=d: a > d, array, spec)

    @pytest.mark.thin(3)
    def test_unary_and_scalars(self, spec: str, shape: tuple[int, int]) -> None:
        array = dense_array(shape)
        check(lambda t: -t, lambda a: -a, array, spec)
        check(abs, abs, -array, spec)
        check(lambda t: t * 3.0, lambda a: a * 3.0, array, spec)
        check(lambda t: t + 1.0, lambda a: a + 1.0, array, spec)
        check(lambda t: 2.0 - t, lambda a: 2.0 - a, array, spec)
        check(lambda t: t == 2.0, lambda a: a == 2.0, array, spec)
        check(lambda t: (t + 1.0).sum(axis=0), lambda a: (a + 1.0).sum(axis=0), array, spec)
        x = dense_array((shape[1],), 1, density=1)
        check(lambda t: (t + 1.0) @ x, lambda a: (a + 1.0) @ x, array, spec)

    @pytest.mark.thin(3)
    def test_to_dense(self, spec: str, shape: tuple[int, int]) -> None:
        check(lambda t: t.to_dense(), lambda a: a, dense_array(shape), spec)
        check(lambda t: t.T.to_dense(), lambda a: a.T, dense_array(shape), spec)


@pytest.mark.thin(9)
@pytest.mark.parametrize("spec", FORMATS[3])
@pytest.mark.parametrize("shape", SHAPES[3], ids=str)
@pytest.mark.parametrize("r", [1, pytest.param(8, marks=pytest.mark.slow), 35])
def test_mttkrp(spec: str, shape: tuple[int, ...], r: int) -> None:
    factors = [dense_array((n, r), k, density=1) for k, n in enumerate(shape)]
    letters = "ijk"
    for d in range(3):
        others = [k for k in range(3) if k != d]
        text = f"ijk,{','.join(letters[k] + 'r' for k in others)}->{letters[d]}r"
        want = lambda a, text=text, others=others: np.einsum(text, a, *(factors[k] for k in others))  # noqa: E731
        check(lambda t, d=d: ow.mttkrp(t, factors, d), want, dense_array(shape), spec)


@pytest.mark.parametrize("spec", FORMATS[4])
def test_mttkrp_of_rank_four(spec: str) -> None:
    shape = SHAPES[4][0]
    factors = [dense_array((n, 16), k, density=1) for k, n in enumerate(shape)]
    want = np.einsum("abcd,ar,cr,dr->br", dense_array(shape), factors[0], factors[2], factors[3])
    same(ow.mttkrp(tensor(dense_array(shape), spec), factors, 1), want)


@pytest.mark.thin(10)
@pytest.mark.parametrize(("spec", "shape"), [(s, n) for d in (1, 3, 4) for s in FORMATS[d] for n in SHAPES[d]], ids=str)
def test_tensor_times_vector_and_matrix(spec: str, shape: tuple[int, ...]) -> None:
    letters = string.ascii_lowercase[: len(shape)]
    for d, n in enumerate(shape):
        v, m = dense_array((n,), 1, density=1), dense_array((n, 6), 2, density=1)
        rest = letters[:d] + letters[d + 1 :]
        check(
            lambda t, d=d, v=v: ow.ttv(t, v, d),
            lambda a, v=v, d=d, rest=rest: np.einsum(f"{letters},{letters[d]}->{rest}", a, v),
            dense_array(shape),
            spec,
        )
        into = letters[:d] + "z" + letters[d + 1 :]
        check(
            lambda t, d=d, m=m: ow.ttm(t, m, d),
            lambda a, m=m, d=d, into=into: np.einsum(f"{letters},{letters[d]}z->{into}", a, m),
            dense_array(shape),
            spec,
        )


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "spec", ["csr", "coo", "csc", "dense", "bsr(2,2)", "(i, j) -> (j - i : compressed, i : range)"]
)
@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_batched(spec: str, batch: tuple[int, ...]) -> None:
    one = dense_array((4, 6))
    array = np.stack(
        [
            one * (k + 1) if "range" in spec or "bsr" in spec else np.roll(one, k, axis=1)
            for k in range(int(np.prod(batch)))
        ]
    )
    array = array.reshape(*batch, 4, 6)
    fmt = _batched_format(spec, len(batch))
    t = ow.asarray(array).asformat(fmt)
    x = dense_array((*batch, 6, 5), 1, density=1)
    same(t @ x, array @ x)
    same(t @ x[0], array @ x[0])
    same(t.sum(axis=-1), array.sum(axis=-1))
    same(t.sum(axis=0), array.sum(axis=0))
    same(t * 2.0, array * 2.0)
    y = dense_array((*batch, 5, 4), 1, density=1)
    same(y @ t, y @ array)


def _batched_format(spec: str, batch: int) -> ow.Format:
    if not spec.startswith("("):
        return ow.format(spec, batch=batch) if spec not in ("coo", "dense") else ow.format(spec, batch + 2, batch=batch)
    names = [f"b{k}" for k in range(batch)]
    dims, levels = spec.split(" -> ")
    return ow.format(f"({', '.join(names)}, {dims[1:]} -> ({', '.join(n + ' : batch' for n in names)}, {levels[1:]}")


DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def _dtype_case(spec: str, dtype: str) -> Any:
    usual = spec == "csr" or dtype in ("float32", "complex64", "int8", "bool")
    return pytest.param(spec, dtype, marks=() if usual else (pytest.mark.slow,))


SPECS = ("csr", "csc", "coo", "bsr(2, 3)", "bsr(2, 2)", "dia", "ell(12)", "dcsr")


@pytest.mark.thin(6)
@pytest.mark.parametrize(("spec", "dtype"), [_dtype_case(spec, dtype) for spec in SPECS for dtype in DTYPES])
def test_dtypes(spec: str, dtype: str) -> None:
    array = dense_array((7, 12), dtype=dtype)
    for columns in (1, 9, 40) if spec == "csr" else (9, 40) if dtype == "float32" else (9,):
        x = dense_array((12, columns), 1, dtype=dtype, density=1)
        check(lambda t, x=x: t @ x, lambda a, x=x: a @ x, array, spec)
        check(lambda t, x=x: t @ x[:, 0], lambda a, x=x: a @ x[:, 0], array, spec)
    y = dense_array((3, 7), 2, dtype=dtype, density=1)
    check(lambda t: y @ t, lambda a: y @ a, array, spec)
    check(lambda t: t * x[:, 0], lambda a: a * x[:, 0], array, spec)
    check(lambda t: t.sum(axis=1), lambda a: a.sum(axis=1), array, spec)


@pytest.mark.parametrize(
    "pair",
    [
        ("float32", "float64"),
        ("int32", "float32"),
        ("int64", "int8"),
        ("float64", "complex64"),
        ("bool", "float32"),
        ("uint8", "int8"),
    ],
)
def test_mixed_dtypes(pair: tuple[str, str]) -> None:
    array, x = dense_array((7, 12), dtype=pair[0]), dense_array((12, 9), 1, dtype=pair[1], density=1)
    check(lambda t: t @ x, lambda a: a @ x, array, "csr")


@pytest.mark.parametrize("width", ["int32", "int64"])
def test_index_widths(width: str) -> None:
    array = dense_array((7, 12))
    t = tensor(array, "csr")
    s = ow.assemble("csr", (7, 12), pos={1: t.pos(1).astype(width)}, crd={1: t.crd(1).astype("int64")}, values=t.values)
    x = dense_array((12, 5), 1, density=1)
    same(s @ x, array @ x)


def test_duplicates_add_up() -> None:
    rows, cols, values = [2, 0, 2, 2], [1, 3, 1, 0], [1.0, 2.0, 5.0, 7.0]
    t = ow.sparse_coo_tensor([rows, cols], values, (3, 4))
    want = np.zeros((3, 4))
    np.add.at(want, (rows, cols), values)
    x = dense_array((4, 3), 1, density=1)
    same(t @ x, want @ x)
    same(t.sum(axis=0), want.sum(axis=0))
    same(t * t.to_numpy(), want * want)
    same(t + 1.0, want + 1.0)
    same((t + 1.0) @ x, (want + 1.0) @ x)


def test_products_from_either_side_keep_their_own_launches() -> None:
    """Both are one statement, of which another operand is the sparse one."""
    t, x = ow.asarray(dense_array((4, 4)), format="csr"), dense_array((4, 4), 1, density=1)
    for _ in range(2):
        same(x @ t, x @ t.to_numpy())
        same(t @ x, t.to_numpy() @ x)


def test_nan_and_infinity_pass_through() -> None:
    array = dense_array((5, 6))
    array[array > 0] = [np.nan, np.inf, *np.ones(int((array > 0).sum()) - 2)]
    x = np.ones(6)
    got = tensor(array, "csr") @ x
    want = array @ x
    np.testing.assert_array_equal(got, want)


def test_wrong_shapes_say_both() -> None:
    t = tensor(dense_array((3, 4)), "csr")
    with pytest.raises(ow.ShapeError, match=r"inner extents differ, 4 and 3.*\(3, 4\) and \(3, 2\)"):
        t @ np.zeros((3, 2))
    with pytest.raises(ow.ShapeError, match="scalar has no matrix product"):
        t @ np.float64(3)
    with pytest.raises(ow.ShapeError, match="do not broadcast"):
        t * np.zeros((2, 4))


def test_results_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    array = dense_array((300, 200), density=0.5)
    array[17] = 1
    x = rng.integers(0, 9, (200, 40)).astype(float)
    results: list[Any] = []
    before = ow.get_num_threads()
    try:
        for n in (1, 2, 7):
            ow.set_num_threads(n)
            results.append(tensor(array, "csr") @ x)
    finally:
        ow.set_num_threads(before)
    for r in results:
        same(r, array @ x)


@pytest.mark.parametrize("offset", [0, 8, 16, 56])
@pytest.mark.parametrize("columns", [8, 16, 5])
def test_operands_off_a_cache_line(offset: int, columns: int) -> None:
    """A dense operand whose rows are read often is copied to the beginning of a cache line, and `explain` says so."""
    rng = np.random.default_rng(columns)
    array = dense_array((300, 40)) + 1.0
    a = tensor(array, "csr")
    room = np.empty(40 * columns * 8 + 128, np.uint8)
    begin = -room.ctypes.data % 64 + offset
    x = room[begin : begin + 40 * columns * 8].view(np.float64).reshape(40, columns)
    x[...] = rng.random(x.shape)
    for _ in range(3):
        np.testing.assert_allclose(a @ x, array @ x)
    copied = 40 * columns * 8 if offset and columns % 8 == 0 else 0
    assert ow.explain(ow.matmul, a, x).nbytes == 300 * columns * 8 + copied


@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "bsr(2, 2)"])
def test_launches_of_both_sides_are_kept_apart(spec: str) -> None:
    """One tensor, arrays of one shape, on its left and on its right: the statements are the same text."""
    rng = np.random.default_rng(0)
    dense, x = rng.random((6, 6)), rng.random((6, 6))
    t = ow.asarray(dense, format=spec)
    for _ in range(3):
        assert np.allclose(t @ x, dense @ x)
        assert np.allclose(x @ t, x @ dense)
        assert np.allclose(t @ x[0], dense @ x[0])
        assert np.allclose(x[0] @ t, x[0] @ dense)


@pytest.mark.parametrize("spec", ["csr", "coo", "bsr(2, 2)"])
@pytest.mark.parametrize("factors", [("csr", "csc"), ("coo", None), (None, "csr")])
def test_sddmm_of_sparse_factors(spec: str, factors: tuple[str | None, str | None]) -> None:
    rng = np.random.default_rng(0)
    m, a, b = (rng.random(s) * (rng.random(s) < 0.4) for s in ((5, 7), (5, 6), (6, 7)))
    mask = ow.asarray(m, format=spec)
    found = ow.sddmm(mask, *(x if f is None else ow.asarray(x, format=f) for x, f in zip((a, b), factors, strict=True)))
    want = ow.sddmm(mask, a, b)
    assert found.format == want.format
    assert found.nse == mask.nse
    assert np.allclose(found.to_numpy(), want.to_numpy())


def test_sddmm_of_sparse_factors_densifies_nothing() -> None:
    a = ow.random((10**6, 10**6), 1e-6, format="csr", rng=0)
    mask = ow.random((10**6, 10**6), 1e-8, format="coo", rng=1)
    assert ow.sddmm(mask, a, a.T).nse == mask.nse


@pytest.mark.thin(2)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_batches_of_changing_width_share_kernels(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Widths beyond the first ones are rounded up, those that come back get kernels of their own: the same results."""
    like = (lambda x: x) if library == "numpy" else pytest.importorskip("torch").from_numpy
    rng = np.random.default_rng(0)
    x = np.where(rng.random((9, 7)) < 0.4, rng.integers(1, 9, (9, 7)), 0).astype(float)
    a = ow.asarray(like(x), format="csr")
    right, left = (rng.integers(-9, 9, shape).astype(float) for shape in ((7, 300), (300, 9)))
    monkeypatch.setattr(widths, "OWN", 2)
    ow.clear_caches()
    before = ow.cache_info()["kernels"]
    for n in (*range(17, 40, 2), 257, 300, 33, 33, 59, 59, 59):
        np.testing.assert_array_equal(np.asarray(a @ like(right[:, :n])), x @ right[:, :n])  # not contiguous
        found = a @ like(right[:, :n].copy())
        assert found.flags.c_contiguous if library == "numpy" else found.is_contiguous()
        np.testing.assert_array_equal(np.asarray(found), x @ right[:, :n])
    assert ow.cache_info()["kernels"] - before < 16
    for n in (18, 21, 24, 27, 30):
        np.testing.assert_array_equal(np.asarray(like(left[:n].copy()) @ a), left[:n] @ x)
        np.testing.assert_array_equal(
            np.asarray(ow.einsum("ij,jk->ki", a, like(right[:, :n].copy()))), (x @ right[:, :n]).T
        )
        with np.errstate(all="ignore"):
            wide = np.where(right[:, :n] > 7, np.inf, right[:, :n])
            np.testing.assert_array_equal(
                np.asarray(ow.einsum("ij,jk->ik", a, like(wide), semiring="min_plus")).shape, (9, n)
            )
    v = rng.random((40, 7))
    wild = np.where(x == 1, np.inf, x)
    for n in (17, 19, 21, 23, 25):  # zeros in the place of an index that is summed do not meet infinities
        got = ow.sddmm(a, like(left[:9, :9] @ np.ones((9, n))), like(v[:n].copy())).to_numpy()
        np.testing.assert_allclose(got, np.where(x != 0, left[:9, :9] @ np.ones((9, n)) @ v[:n], 0))
        with np.errstate(all="ignore"):
            b = ow.asarray(like(wild), format="csr")
            got = np.asarray(ow.einsum("ij,ik,jk->", b, like(np.ones((9, n))), like(np.ones((7, n)))))
            assert np.isposinf(got)
    if library == "torch":
        torch = pytest.importorskip("torch")
        for n in (18, 19, 21, 31, 31, 31, 31):
            w = ow.asarray(torch.tensor(x), format="csr").requires_grad_()
            y, z = (torch.tensor(right[:, :n], requires_grad=True) for _ in range(2))
            ((w @ y) ** 2).sum().backward()
            ((torch.tensor(x) @ z) ** 2).sum().backward()
            torch.testing.assert_close(y.grad, z.grad)
            dense = 2 * (torch.tensor(x) @ z).detach() @ z.detach().T
            torch.testing.assert_close(torch.as_tensor(w.grad.to_numpy()), dense * (torch.tensor(x) != 0))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_numbers_leave_a_zero_that_annihilates(library: str) -> None:
    like = np.asarray if library == "numpy" else pytest.importorskip("torch").from_numpy
    a = ow.asarray(like(np.eye(2)), format="csr")
    for call, kept in (
        (lambda t, **how: ow.multiply(t, np.nan, **how), [np.nan, np.nan]),
        (lambda t, **how: ow.multiply(np.inf, t, **how), [np.inf, np.inf]),
        (lambda t, **how: ow.multiply(t, np.float64(np.nan), **how), [np.nan, np.nan]),
        (lambda t, **how: ow.multiply(t, np.array(np.inf), **how), [np.inf, np.inf]),
        (lambda t, **how: ow.multiply(ow.asarray(np.nan), t, **how), [np.nan, np.nan]),
        (lambda t, **how: ow.divide(t, 0.0, **how), [np.inf, np.inf]),
    ):
        with np.errstate(all="ignore"):
            for t in (a, a * 1.0):
                found = call(t, zero_annihilates=True)
                assert (found.fill_value, found.nse) == (0, 2)
                np.testing.assert_array_equal(np.asarray(found.values), kept)
            assert np.isnan(call(a).fill_value)
            lazy = call(ow.lazy(a), zero_annihilates=True).compute()
            assert lazy.fill_value == 0
            assert np.isnan(ow.divide(0.0, a, zero_annihilates=True).fill_value)  # the zero is the divisor


@pytest.mark.thin(10)
@pytest.mark.parametrize("shapes", [((4, 5), (3, 2)), ((0, 3), (2, 2)), ((3, 4), (2, 0)), ((1, 1), (6, 7))])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.complex128, np.int8, bool])
def test_kronecker_products_in_order(shapes: Any, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = ((rng.integers(1, 5, s) * (rng.random(s) < 0.5)).astype(dtype) for s in shapes)
    for format in ("csr", "csc", "coo", "dcsr", "bitmap", "bsr(1, 1)", "ell(7)"):
        a, b = ow.asarray(x, format=format), ow.asarray(y, format="csr")
        found = ow.kron(a, b)
        assert (found.format, found.dtype) == (ow.format("csr"), dtype)
        assert found.nse == a.nse * b.nse
        np.testing.assert_array_equal(found.to_numpy(), np.kron(x, y))
    same = ow.kron(ow.asarray(x, format="coo"), ow.asarray(y, format="coo"))
    assert same.format == ow.format("coo")
    np.testing.assert_array_equal(same.to_numpy(), np.kron(x, y))
    if dtype is np.float64:
        np.testing.assert_array_equal(ow.kron(a, a.astype(np.float32)).to_numpy(), np.kron(x, x))
        torch = pytest.importorskip("torch")
        a, b = (ow.asarray(torch.tensor(z), format="csr") for z in (x, y))
        assert isinstance(ow.kron(a, b).values, torch.Tensor)
        np.testing.assert_array_equal(ow.kron(a, b).to_numpy(), np.kron(x, y))
        a = a.requires_grad_()
        ow.sum(ow.kron(a, b)).to_dense().backward()
        np.testing.assert_array_equal(a.grad.to_numpy(), (x != 0) * y.sum())


def test_kronecker_products_of_duplicates_and_infinities() -> None:
    twice = ow.sparse_coo_tensor(np.array([[0, 0], [1, 1]]), np.array([1.0, 2.0]), (2, 2))
    np.testing.assert_array_equal(ow.kron(twice, twice).to_numpy(), np.kron(twice.to_numpy(), twice.to_numpy()))
    wild = np.array([[0.0, np.inf], [1.0, 0.0]])
    with np.errstate(all="ignore"):
        found = ow.kron(ow.asarray(wild, format="csr"), ow.asarray(np.eye(2), format="csr"))
        np.testing.assert_array_equal(found.to_numpy(), np.kron(wild, np.eye(2)))


def test_fill_values_from_either_side() -> None:
    """The fill value meets the sums of a dense operand: of its columns on the right, of its rows on the left."""
    rng = np.random.default_rng(8)
    d = np.where(rng.random((4, 6)) < 0.4, rng.integers(1, 5, (4, 6)), 0) + 2.0
    v = np.where([True, False, True, False], 3.0, 2)
    for spec in ("csr", "csc", "coo", "dcsr"):
        A = ow.asarray(d, format="coo", fill_value=2.0).asformat(spec)
        for x in (np.arange(6.0), rng.integers(1, 5, (6, 3)) * 1.0, rng.integers(1, 5, (2, 6, 3)) * 1.0):
            same(A @ x, d @ x)
        for x in (np.arange(4.0), rng.integers(1, 5, (3, 4)) * 1.0, rng.integers(1, 5, (2, 3, 4)) * 1.0):
            same(x @ A, x @ d)
    a = ow.asarray(v, format="coo", fill_value=2.0)
    x = rng.integers(1, 5, (4, 3)) * 1.0
    same(a @ x, v @ x)
    same(x.T @ a, x.T @ v)
    same(a @ x[:, 0], v @ x[:, 0])


def test_a_semirings_dtype_is_named_as_dtypes_are():
    counts = ow.Semiring("counts", ow.monoid("plus"), "1", dtype="int64")
    assert counts == ow.Semiring("counts", ow.monoid("plus"), "1", dtype="i64")
    a = ow.asarray(np.array([[0, 2.0], [1, 5]]), format="csr")
    assert ow.spgemm(a, a, semiring=counts).to_numpy().tolist() == [[1, 1], [1, 2]]
    with pytest.raises(ow.DTypeError, match="int65"):
        ow.Semiring("wrong", ow.monoid("plus"), "1", dtype="int65")


@pytest.mark.thin(2)
@pytest.mark.parametrize("like", ["numpy", "torch"])
@pytest.mark.parametrize(
    "dtypes", [("bool", "bool"), ("uint8", "uint8"), ("uint8", "float32"), ("bool", "int64"), ("int64", "int64")]
)
@pytest.mark.parametrize("other", ["array", "Tensor", "vector", "left"])
def test_products_with_a_fill_value_are_in_the_dtype_of_the_result(
    like: str, dtypes: tuple[str, str], other: str
) -> None:
    """Values less the fill value may not be in the dtype of the operand, nor are sums in that of the result."""
    a = np.array([[1, 1, 0], [1, 2, 1]]).astype(dtypes[0])
    x = np.array([[1, 0], [2, 1], [0, 3]]).astype(dtypes[1])
    t = ow.asarray(ow.asarray(a, format="csr", fill_value=a.dtype.type(1)), like=like)
    dense = ow.asarray(ow.asarray(x), like=like)
    got, want = {
        "array": lambda: (t @ dense.to_dense(), a @ x), "Tensor": lambda: (t @ dense, a @ x),
        "vector": lambda: (t @ dense.to_dense()[:, 0], a @ x[:, 0]), "left": lambda: (dense.to_dense().T @ t.T, x.T @ a.T),
    }[other]()  # fmt: skip
    assert str(got.dtype).removeprefix("torch.") == want.dtype.name
    np.testing.assert_array_equal(np.asarray(got.to_numpy() if isinstance(got, ow.Tensor) else got), want)


@pytest.mark.thin(6)
@pytest.mark.parametrize("like", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("fill", "format"), [
    (np.inf, "csr"), (-np.inf, "coo"), (np.nan, "csc"), (1e30, "csr"), (-1e20, "bsr(2, 1)"), (1e20, "bitmap"),
])  # fmt: skip
def test_values_are_not_lost_beside_a_fill_value(
    fill: float, format: str, dtype: str, like: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored elements less such a number are it: a row of numbers alone was NaN, or 0."""
    monkeypatch.setattr(sys.modules["openwork.ops.products.matmul"], "STEP", 4)
    a = np.array([[1.0, fill, 2.0], [2.0, 3.0, 4.0], [fill, fill, 1.0], [3.0, 4.0, 5.0]], dtype)
    x = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 1.0]], dtype)
    t = ow.asarray(ow.asarray(a, format=format, fill_value=a.dtype.type(fill)), like=like)
    dense = ow.asarray(ow.asarray(x), like=like).to_dense()
    with np.errstate(all="ignore"):
        for got, want in (
            (t @ dense, a @ x), (t @ dense[:, 0], a @ x[:, 0]), (dense.T @ t.T, x.T @ a.T), (dense[:, 1] @ t.T, x[:, 1] @ a.T),
            (ow.stack([t, t]) @ dense, np.stack([a, a]) @ x), (t[:0] @ dense, a[:0] @ x),
        ):  # fmt: skip
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_strides_that_are_no_multiple_of_the_element() -> None:
    """Of a field of records, say: aligned to its parts, 16 bytes wide, 24 bytes apart."""
    records = np.zeros(5, np.dtype({"names": ["x"], "formats": ["c16"], "itemsize": 24, "offsets": [0]}))
    x = records["x"]
    x[:] = np.arange(5) + 1j
    dense = np.eye(4, 5, k=1) * 3
    a = ow.asarray(dense, format="csr")
    assert x.strides[0] % x.itemsize
    for got, want in ((a @ x, dense @ x), ((a * x).to_numpy(), dense * x), (ow.asarray(x).to_numpy(), x)):
        np.testing.assert_array_equal(got, want)
