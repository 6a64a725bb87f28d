"""Elementwise operations on several sparse tensors against NumPy on the dense arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from interpreted import interpreted
from matrix import FORMATS, SHAPES, dense_array, tensor

import openwork as ow
import openwork.ops.elementwise.pointwise as merge_module
from openwork.errors import DTypeError, ShapeError, UnsupportedError
from openwork.ops.elementwise.pointwise import merge, pointwise
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import program, shaped
from openwork.storage import equal_coordinates as equal_module
from openwork.storage.exact import check_indices

Array = np.ndarray[Any, Any]
OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "pow": np.power,
    "div": np.divide, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip


def agrees(got: ow.Tensor, want: Array) -> None:
    """Equal shape, dtype and values; sorted, unique, and every invariant kept."""
    dense = got.to_numpy()
    assert dense.shape == want.shape
    assert dense.dtype == want.dtype
    np.testing.assert_array_equal(dense, want)
    assert got.format.is_unique
    assert got.format.is_ordered
    check_indices(got._storage)


def filled(
    shape: tuple[int, ...], spec: str, seed: int, fill: Any = 0, dtype: str = "float64"
) -> tuple[Array, ow.Tensor]:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < 0.3, rng.integers(1, 5, shape), fill).astype(dtype)
    return dense, ow.asarray(dense, format=ow.format(spec, len(shape)), fill_value=fill)


def pair(op: str, shape: tuple[int, ...], first: str, second: str) -> None:
    a, b = dense_array(shape, 1), dense_array(shape, 2)
    with np.errstate(all="ignore"):
        agrees(merge(op, tensor(a, first), tensor(b, second)), OPS[op](a, b))


NEIGHBOURS = [
    (rank, specs[k], specs[(k + 1) % len(specs)], ("add", "mul")[k % 2])
    for rank, specs in FORMATS.items()
    for k in range(0, len(specs), 1 + 2 * (rank == 2))
]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("rank", "first", "second", "op"), NEIGHBOURS)
def test_formats_that_differ(rank: int, first: str, second: str, op: str) -> None:
    pair(op, SHAPES[rank][0], first, second)


@pytest.mark.parametrize(("rank", "spec"), [(r, s) for r in (1, 2, 3) for s in FORMATS[r][::4]])
def test_formats_that_agree(rank: int, spec: str) -> None:
    pair("add", SHAPES[rank][1], spec, spec)


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "first"), [(r, s) for r, specs in FORMATS.items() for s in specs])
def test_every_pair_of_formats(rank: int, first: str) -> None:
    for second, shape, op in itertools.product(FORMATS[rank], SHAPES[rank], ("add", "mul", "lt")):
        pair(op, shape, first, second)


@pytest.mark.parametrize("op", OPS)
def test_operations(op: str) -> None:
    pair(op, (8, 12), "csr", "csr")


@pytest.mark.parametrize("op", ["add", "mul", "gt", "pow"])
@pytest.mark.parametrize(("fa", "fb"), [(1.0, 0.0), (np.inf, 1.0), (np.nan, -2.0)])
def test_fill_values(op: str, fa: float, fb: float) -> None:
    (a, s), (b, t) = filled((6, 9), "csr", 1, fa), filled((6, 9), "csr", 2, fb)
    with np.errstate(all="ignore"):
        agrees(merge(op, s, t), OPS[op](a, b))


def test_an_absent_zero_times_an_unknown_infinity_is_zero_where_asked() -> None:
    s = ow.asarray(np.array([0.0, 1.0]), format="csf")
    t = ow.asarray(np.array([np.inf, 2.0]), format="csf")
    got = merge("mul", s, t, zero_annihilates=True)
    assert got.nse == 1
    np.testing.assert_array_equal(got.to_numpy(), [0.0, 2.0])


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128", "bfloat16"]  # fmt: skip


@pytest.mark.parametrize(("k", "dtype"), list(enumerate(DTYPES)))
def test_dtypes_promote_as_numpy_does(k: int, dtype: str) -> None:
    other = DTYPES[(k * 4 + 5) % 14]
    if "bfloat16" in (dtype, other):
        pytest.importorskip("ml_dtypes")
    a, b = (ow.asarray(dense_array((5, 6), n)).asformat("csr").astype(d) for n, d in ((1, dtype), (2, other)))
    x, y = a.to_numpy(), b.to_numpy()
    if dtype == "bfloat16":
        assert merge("add", a, a).dtype == a.dtype
        return
    agrees(merge("add", a, b), np.add(x, y))
    agrees(merge("lt", a, b), np.less(x, y))


def test_what_numpy_refuses_is_refused() -> None:
    a = ow.asarray(dense_array((5, 6), 1)).asformat("csr").astype("bool")
    with pytest.raises(DTypeError, match="subtract does not take bool, bool"):
        merge("sub", a, a)


BROADCAST = [
    ((6, 9), "csr", (1, 9), "csr"),
    ((6, 1), "csr", (6, 9), "csr"),
    ((6, 9), "csr", (9,), "csf"),
    ((6, 9), "dcsr", (9,), "csf"),
    ((6, 1), "coo", (1, 9), "dcsr"),
    ((6, 1), "csc", (1, 9), "csr"),
    ((4, 1, 9), "csf", (6, 1), "csf"),
    ((6, 9), "bsr(2, 2)", (1, 9), "csr"),
    ((6, 9), "dia", (1, 9), "csr"),
    ((9,), "dense", (6, 9), "csr"),
    ((6, 9), "dense_f", (6, 9), "csr"),
    ((6, 9), "csr", (), "() -> ()"),
]


@pytest.mark.parametrize(("sa", "fa", "sb", "fb"), BROADCAST)
def test_broadcasting(sa: tuple[int, ...], fa: str, sb: tuple[int, ...], fb: str) -> None:
    a, b = dense_array(sa, 1), dense_array(sb, 2)
    tensors = {"A": tensor(a, fa), "B": tensor(b, fb)}
    agrees(pointwise("A + B", tensors), a + b)
    agrees(pointwise("A * B", tensors), a * b)


EXPRESSIONS = {
    "A * B + C * D": lambda a, b, c, d: a * b + c * d,
    "A * B * C": lambda a, b, c, d: a * b * c,
    "select(A > 1, B, C)": lambda a, b, c, d: np.where(a > 1, b, c),
    "A * (B == 0)": lambda a, b, c, d: a * (b == 0),
    "A != 0 and not B != 0": lambda a, b, c, d: (a != 0) & ~(b != 0),
    "A ** 2 + 2 * A * B": lambda a, b, c, d: a**2 + 2 * a * b,
    "exp(A) - max(B, C)": lambda a, b, c, d: np.exp(a) - np.maximum(b, c),
    "A + B * C - D + A * (B + 1) * D": lambda a, b, c, d: a + b * c - d + a * (b + 1) * d,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize(
    "formats", [pytest.param(("csr",) * 4, marks=pytest.mark.slow), ("csr", "coo", "dcsr", "bitmap")]
)
def test_expressions(text: str, formats: tuple[str, ...]) -> None:
    dense = [dense_array((6, 9), k) for k in range(4)]
    tensors = {n: tensor(x, f) for n, x, f in zip("ABCD", dense, formats, strict=True)}
    got, want = pointwise(text, tensors), EXPRESSIONS[text](*dense)
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-14)
    assert got.dtype == want.dtype


def test_more_operands_than_one_kernel_takes() -> None:
    dense = {n: dense_array((6, 9), k) for k, n in enumerate("ABCDEFG")}
    tensors = {n: tensor(x, "csr") for n, x in dense.items()}
    text = "(A + B + C) * (D + E + F) + G * A"
    agrees(pointwise(text, tensors), eval(text, {}, dense))


@pytest.mark.parametrize("text", ["A * B * C + D", "(A - B) * C * D", "A * B // C"])
def test_many_operands_without_elements(text: str) -> None:
    dense = {n: dense_array((3, 0), k) for k, n in enumerate("ABCD")}
    agrees(pointwise(text, {n: tensor(x, "csr") for n, x in dense.items()}), eval(text, {}, dense))


def test_room_for_what_is_kept_though_it_is_the_fill_value() -> None:
    """Where presence is a value, `C != C` is kept wherever C is, which every row of the result then has."""
    zeros = tensor(np.zeros((5, 4), int), "coo")
    wide = pointwise("(C != C) + A + B + D", {**dict.fromkeys("ABD", zeros), "C": tensor(np.ones((5, 1), int), "coo")})
    check_indices(wide._storage)
    agrees(wide, np.zeros((5, 4), int))


def test_indices_name_the_dimensions() -> None:
    a, b = dense_array((6, 9), 1), dense_array((9, 6), 2)
    got = pointwise("C[i, j] = A[i, j] + B[j, i]", {"A": tensor(a, "csr"), "B": tensor(b, "csr")})
    agrees(got, a + b.T)


@pytest.mark.parametrize("spec", ["coo", "csc", "bsr(2, 3)", "bitmap", "dense", "ell(9)", "dia", "csf"])
def test_the_result_in_a_format_that_is_asked_for(spec: str) -> None:
    a, b = dense_array((6, 9), 1), dense_array((6, 9), 2)
    got = pointwise("A + B", {"A": tensor(a, "csr"), "B": tensor(b, "csr")}, format=spec)
    assert got.format == ow.format(spec, 2)
    np.testing.assert_array_equal(got.to_numpy(), a + b)


def test_default_formats() -> None:
    a, b = dense_array((6, 9), 1), dense_array((6, 9), 2)

    def of(first: str, second: str, op: str = "add") -> str | None:
        return merge(op, tensor(a, first), tensor(b, second)).format.name

    assert [of(f, f) for f in ("csr", "csc", "coo", "dcsr", "bsr(2, 3)", "dia", "bitmap")] == [
        "csr", "csc", "coo", "dcsr", "bsr(2, 3)", "dia", "bitmap",
    ]  # fmt: skip
    assert of("csr", "coo") == "csr"
    assert of("ell(9)", "ell(9)") == "csr"


def test_batches() -> None:
    a = np.stack([np.eye(4), 2 * np.eye(4)])
    t = ow.asarray(a).asformat(ow.format("csr", 3, batch=1))
    got = merge("add", t, t.clone())
    assert got.format == t.format
    np.testing.assert_array_equal(got.to_numpy(), 2 * a)
    ones = ow.asarray(np.stack([np.ones((4, 4)), np.eye(4)])).asformat(
        "(b, i, j) -> (b : dense, i : dense, j : compressed)"
    )
    uneven = merge("add", t, ones)
    assert [str(level.format) for level in uneven.format.levels] == ["dense", "dense", "compressed"]
    np.testing.assert_array_equal(uneven.to_numpy(), a + ones.to_numpy())


def test_structure_is_shared_where_it_is_the_same() -> None:
    a = tensor(dense_array((6, 9), 1), "csr")
    b = a._from_storage(a._storage.with_values(a.values * 3.0))
    for other in (b, b.clone()):
        got = merge("mul", a, other)
        assert np.shares_memory(got.crd(1), a.crd(1))
        agrees(got, a.to_numpy() ** 2 * 3.0)


@pytest.mark.thin(2)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dcsr", "bsr(2, 2)", "bitmap", "dia"])
def test_equal_coordinates_in_other_buffers(monkeypatch: pytest.MonkeyPatch, spec: str, library: str) -> None:
    """Values are taken pairwise where all coordinates agree, and are not where one of them is another."""
    monkeypatch.setattr(program, "COMPARED", 1)
    monkeypatch.setattr(equal_module, "BLOCK", 8)
    if library == "torch":
        pytest.importorskip("torch")
    x = np.where(np.random.default_rng(0).random((40, 40)) < 0.2, 2.0, 0)
    x[0, 1], x[5, 6], x[5, 7], x[38, 38] = np.nan, np.inf, 0, 4
    y = np.where(x != 0, 3 - x, 0)
    moved = y.copy()
    moved[5, 6], moved[5, 7] = 0, 1.0
    a, b, c = (ow.asarray(z, format=spec) for z in (x, y, moved))
    if library == "torch":
        a, b, c = (
            (ow.asarray(t.to_torch()) for t in (a, b, c)) if spec in ("csr", "csc", "coo", "bsr(2, 2)") else (a, b, c)
        )
    for op in ("add", "mul", "max", "sub"):
        with np.errstate(all="ignore"):
            same = merge(op, a, b)
            np.testing.assert_array_equal(same.to_numpy(), OPS[op](x, y))
            np.testing.assert_array_equal(merge(op, a, c).to_numpy(), OPS[op](x, moved))
        if spec in ("csr", "csc", "coo", "dcsr"):
            assert same._storage.crd is a._storage.crd


def test_shapes_that_do_not_broadcast() -> None:
    a, b = tensor(dense_array((6, 9), 1), "csr"), tensor(dense_array((6, 8), 1), "csr")
    with pytest.raises(ShapeError, match="do not broadcast"):
        merge("add", a, b)
    with pytest.raises(UnsupportedError, match="reduces"):
        pointwise("y[i] = A[i, j]", {"A": a})


def test_explain_tells_conversions_and_regions() -> None:
    a, b = tensor(dense_array((6, 9), 1), "csr"), tensor(dense_array((6, 9), 2), "csc")
    text = str(ow.explain(lambda x, y: merge("mul", x, y), a, b))
    assert "1. conversion of B" in text
    assert "from         csc" in text
    assert "computes     where these are present: {A, B}" in text


@pytest.fixture
def chunks() -> Iterator[None]:
    """Chunks even for little work."""
    kept = merge_chunks.MINIMUM, shaped.MINIMUM, ow.get_num_threads()
    merge_chunks.MINIMUM = shaped.MINIMUM = 0
    yield
    merge_chunks.MINIMUM, shaped.MINIMUM = kept[:2]
    ow.set_num_threads(kept[2])


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("spec", ["csr", "coo", "dcsr", "bsr(2, 3)", "dia", "bitmap"])
def test_threads_make_no_difference(spec: str) -> None:
    a, b = dense_array((40, 30), 1), dense_array((40, 30), 2)
    found = []
    for threads in (1, 2, 7):
        ow.set_num_threads(threads)
        got = merge("add", tensor(a, spec), tensor(b, spec))
        agrees(got, a + b)
        found.append([np.asarray(x) for x in got._storage.buffers])
    for one, other in itertools.pairwise(found):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("spec", ["csf", "(i, j, k) -> (i : compressed, j : dense, k : compressed)"])
def test_threads_on_nested_chains(spec: str) -> None:
    ow.set_num_threads(3)
    a, b = dense_array((20, 7, 9), 1), dense_array((20, 7, 9), 2)
    agrees(merge("mul", tensor(a, spec), tensor(b, spec)), a * b)


STRETCHED = [
    *BROADCAST,
    ((5, 1), "(i, j) -> (i // 2 : dense, j // 2 : compressed, i % 2 : bitmap, j % 2 : dense)", (5, 5), "dia"),
    ((7, 1), "csr", (7, 9), "csc"),
    ((7, 1), "csc", (7, 9), "csr"),
    ((4, 1, 9), "csf", (4, 6, 9), "csf"),
]


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize(("sa", "fa", "sb", "fb"), STRETCHED)
def test_threads_on_stretched_operands(sa: tuple[int, ...], fa: str, sb: tuple[int, ...], fb: str) -> None:
    a, b = dense_array(sa, 1, density=0.8), dense_array(sb, 2, density=0.8)
    tensors = {"A": tensor(a, fa), "B": tensor(b, fb)}
    for threads in (2, 7):
        ow.set_num_threads(threads)
        agrees(pointwise("A * B", tensors), a * b)
        agrees(pointwise("A + B", tensors), a + b)


@pytest.mark.thin(3)
@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("specs", [("csr", "csr"), ("coo", "csr"), ("bitmap", "dcsr"), ("ell(12)", "bsr(2, 3)")])
@pytest.mark.parametrize("text", ["A + B", "A * B", "select(A > 1, B, A)"])
def test_the_interpreter_agrees(specs: tuple[str, str], text: str) -> None:
    a, b = dense_array((6, 9), 1), dense_array((6, 9), 2)
    tensors = {"A": tensor(a, specs[0]), "B": tensor(b, specs[1])}
    ow.set_num_threads(1)
    want = {"A + B": a + b, "A * B": a * b, "select(A > 1, B, A)": np.where(a > 1, b, a)}[text]
    with interpreted() as ran:
        agrees(pointwise(text, tensors), want)
    assert ran == ["merge"]


# -- products that leave few elements ----------------------------------------------------------------------------------


def test_thin_products_are_computed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of "A * B + C * D" are far thinner than their operands; those of "A * A" and "(A + B) * C" are not."""
    rng = np.random.default_rng(0)
    arrays = {n: (rng.random((80, 90)) < 0.05) * rng.integers(1, 9, (80, 90)).astype(float) for n in "ABCD"}
    tensors = {n: ow.asarray(x).asformat("csr") for n, x in arrays.items()}
    ran: list[str] = []
    real = merge_module.run_merge
    monkeypatch.setattr(
        merge_module, "run_merge", lambda call, *rest: (ran.append(call.plan.schedule.text), real(call, *rest))[1]
    )
    a, b, c, d = arrays.values()
    cases = {
        "A * B + C * D": (a * b + c * d, 3),
        "A * B * C * D": (a * b * c * d, 3),
        "(A + B) * (C - D)": ((a + b) * (c - d), 1),
        "A + B + C": (a + b + c, 1),
        "max(A * B, C)": (np.maximum(a * b, c), 2),
    }
    for text, (want, steps) in cases.items():
        ran.clear()
        agrees(pointwise(text, tensors), want)
        assert len(ran) == steps, text
