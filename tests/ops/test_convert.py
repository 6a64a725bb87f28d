"""Conversion of every format to every format, against NumPy on the dense array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from convert_cases import NAMED, buffers_equal, checked, dense, same, uncoalesced
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import formats, shapes

from openwork.codegen.executable import Executable
from openwork.codegen.plan_cache import PlanCache
from openwork.errors import FormatError, ShapeError
from openwork.format import format as fmt
from openwork.format.levels import Batch, Dense, Range
from openwork.ir import interpret
from openwork.ir.loop import Buffer, Kernel
from openwork.ir.verify import verify
from openwork.runtime import launch as launching
from openwork.runtime import moves
from openwork.runtime.conversion import assembly
from openwork.runtime.conversion import conversion_kernels as recipe
from openwork.runtime.conversion import radix_sort as sorting
from openwork.runtime.conversion.convert import convert, plan
from openwork.storage import storage as storage_module
from openwork.storage.buffers import SCALARS, as_array, numpy_dtype, to_numpy
from openwork.storage.specified import coordinates
from openwork.storage.storage import Storage


class Interpreted:
    """Stands in for an executable: runs the kernel's IR on the arrays whose addresses it is given."""

    def __init__(self, kernel: Kernel, arrays: dict[int, Any]) -> None:
        verify(kernel)
        self.name, self.kernel, self.params, self.arrays = kernel.name, kernel, kernel.params, arrays
        self.address = 0  # of machine code, which nothing calls

    def run(self, words: Any, lo: int = 0, hi: int = 0, status: bool = False) -> int:
        named = zip(self.params, words, strict=True)
        args = {p.name: to_numpy(self.arrays[w]) if isinstance(p, Buffer) else w for p, w in named}
        bounds = {"lo": lo, "hi": hi} if self.kernel.ranged else {}
        return interpret.run(self.kernel, args, **bounds)

    def run_sized(self, work: int, words: Any, lo: int = 0, hi: int = 0, status: bool = False) -> int:
        """The work says only whether a signal may come in between."""
        return self.run(words, lo, hi, status)


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Conversions run in the interpreter."""
    arrays: dict[int, Any] = {}
    kernels: dict[str, Interpreted] = {}
    real = assembly.address

    def address(x: Any) -> int:
        arrays[real(x)] = x
        return real(x)

    class Cache:
        @staticmethod
        def get(key: str, build: Any) -> Interpreted:
            if key not in kernels:
                kernels[key] = Interpreted(build(), arrays)
            return kernels[key]

    for module in (launching, assembly, recipe, sorting, storage_module):
        monkeypatch.setattr(module, "address", address)
    monkeypatch.setattr(recipe, "cache", Cache)
    monkeypatch.setattr(recipe, "_KERNELS", PlanCache("of a test"))
    monkeypatch.setattr(recipe, "_SHARED", PlanCache("of a test"))
    monkeypatch.setattr(moves, "cache", Cache)
    monkeypatch.setattr(launching, "launcher", lambda: None)
    monkeypatch.setattr(moves, "_plans", PlanCache("of a test"))
    monkeypatch.setattr(moves, "_shaped", PlanCache("of a test"))
    yield
    arrays.clear()


@pytest.mark.thin(6)
@pytest.mark.parametrize("source", NAMED)
def test_every_named_format_to_every_named_format(source: str) -> None:
    start = uncoalesced((6, 9), 25, seed=len(source))
    expected = dense(start)
    for origin in (start, convert(start, fmt("dense", 2))):
        x = checked(convert(origin, fmt(source, 2)))
        assert same(dense(x), expected)
        for target in NAMED:
            y = checked(convert(x, fmt(target, 2)))
            assert y.format == fmt(target, 2)
            assert same(dense(y), expected), (source, target)


LOOSE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]


def drawn(data: st.DataObject, ndim: int | None = None) -> Any:
    try:
        return data.draw(formats(ndim))
    except FormatError:
        assume(False)


def fits(s: Storage, format: Any) -> Storage:
    """The conversion, unless the format cannot hold the elements."""
    try:
        return checked(convert(s, format))
    except (FormatError, ShapeError) as error:
        if "help:" not in str(error):
            raise
        assume(False)
        raise


@pytest.mark.ci
@settings(max_examples=70, suppress_health_check=LOOSE)
@given(st.data())
def test_any_format_to_any_format(interpreter: None, data: st.DataObject) -> None:
    f = drawn(data)
    g = drawn(data, f.ndim)
    shape = data.draw(shapes(f.ndim, max_extent=5))
    fill = data.draw(st.sampled_from([0.0, 0.0, 2.0, float("nan")]))
    s = uncoalesced(shape, data.draw(st.integers(0, 12)), data.draw(st.integers(0, 99)), fill)
    if data.draw(st.booleans()):
        s = convert(s, fmt("dense", f.ndim))
    expected = dense(s)
    x = fits(s, f)
    assert same(dense(x), expected)
    y = fits(x, g)
    assert same(dense(y), expected)
    if g.is_unique and f.nlevels and not any(type(level.format) in (Dense, Batch, Range) for level in f.levels):
        assert y.nse >= fits(s, g).nse


@pytest.mark.ci
@settings(max_examples=60, suppress_health_check=LOOSE)
@given(st.data())
def test_conversion_and_transposition_commute(interpreter: None, data: st.DataObject) -> None:
    f = drawn(data)
    axes = data.draw(st.permutations(range(f.ndim)))
    s = uncoalesced(data.draw(shapes(f.ndim, max_extent=4)), 9, data.draw(st.integers(0, 99)))
    s = convert(s, fmt("coo", f.ndim)) if f.ndim else s
    x, y = fits(s, f).permute(axes), fits(s.permute(axes), f.permute(axes))
    assert x.format == y.format
    assert same(dense(x), dense(y))
    if f.is_ordered and f.is_unique and not f.batch_ndim:
        assert buffers_equal(x, y)


@settings(max_examples=8, suppress_health_check=LOOSE)
@given(st.data())
def test_compiled_equals_dense_on_random_formats(data: st.DataObject) -> None:
    f = drawn(data)
    g = drawn(data, f.ndim)
    s = uncoalesced(data.draw(shapes(f.ndim, max_extent=5)), 10, data.draw(st.integers(0, 99)))
    assert same(dense(fits(fits(s, f), g)), dense(s))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(
    "target", ["csr", "csc", "coo", "bsr(2,2)", "dia", "csf", "ell(8)", "dense", "bitmap", "nm(3,4)"]
)
def test_interpreter_equals_compiled(target: str, request: pytest.FixtureRequest) -> None:
    s = uncoalesced((7, 8), 14, seed=3)
    compiled = convert(s, fmt(target, 2))
    request.getfixturevalue("interpreter")
    again = Storage(s.shape, s.format, s.scalar, s.fill_value, s.pos, s.crd, s.values)
    assert buffers_equal(convert(again, fmt(target, 2)), compiled)


@pytest.mark.thin(15)
@pytest.mark.parametrize("scalar", SCALARS)
def test_every_scalar_type(interpreter: None, scalar: str) -> None:
    if scalar == "bf16":
        pytest.importorskip("ml_dtypes")
    s = uncoalesced((5, 6), 20, scalar=scalar, fill=numpy_dtype(scalar).type(0))
    expected = dense(s)
    for name in ("csr", "coo", "bsr(2,2)", "dia", "dense", "bitmap", "nm(4,4)", "dcsc"):
        x = checked(convert(s, fmt(name, 2)))
        assert x.values.dtype == s.values.dtype
        assert same(dense(x), expected)
        back = convert(convert(x, fmt("dense", 2)), fmt("csr", 2))
        assert same(dense(back), expected)


@pytest.mark.parametrize("scalar", SCALARS)
def test_duplicates_are_summed_in_the_value_type(scalar: str) -> None:
    if scalar == "bf16":
        pytest.importorskip("ml_dtypes")
    s = uncoalesced((3, 4), 30, scalar=scalar, fill=numpy_dtype(scalar).type(0))
    x = checked(convert(s, fmt("csr", 2)))
    assert same(dense(x), dense(s))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_width_is_kept(index: type) -> None:
    s = uncoalesced((6, 5), 12, index=index)
    for name in ("csr", "coo", "bsr(2,2)", "dia", "dcsr", "ell(5)"):
        x = convert(s, fmt(name, 2))
        assert all(b.dtype == index for b in (*x.pos, *x.crd) if b is not None)


def test_index_width_grows_where_coordinates_need_it() -> None:
    s = uncoalesced((2**31 - 1, 3), 5)
    x = convert(s, fmt("(i, j) -> (j - i : compressed, i : compressed)"))
    assert x.crd[0].dtype == np.int32
    y = convert(uncoalesced((2**31 - 1, 2**31 - 1), 5), fmt("(i, j) -> (i + j : compressed, i : compressed)"))
    assert y.crd[0].dtype == np.int64


def test_coordinates_of_more_than_one_word() -> None:
    shape = (2**31 - 1,) * 4
    s = uncoalesced(shape, 200, seed=1)
    x = convert(s, fmt("csf", 4))
    at, leaf = coordinates(x)
    order = np.lexsort(tuple(to_numpy(c) for c in reversed(s.crd)))
    assert np.array_equal(at, np.array([to_numpy(c)[order] for c in s.crd]))
    assert np.array_equal(to_numpy(x.values)[leaf], to_numpy(s.values)[order])


def test_duplicates_stay_where_the_target_is_nonunique() -> None:
    s = uncoalesced((4, 4), 30)
    for text in (
        "(i, j) -> (i : dense, j : compressed(nonunique))",
        "(i, j) -> (i : compressed(nonunique), j : singleton(nonunique))",
        "(i, j) -> (j : dense, i : compressed(nonunique, unordered))",
    ):
        x = checked(convert(s, fmt(text)))
        assert x.nse == 30
        assert same(dense(x), dense(s))


def test_explicit_zeros_stay_and_fill_of_dense_goes() -> None:
    s = convert(uncoalesced((5, 5), 15, seed=2), fmt("coo", 2))
    assert convert(s, fmt("csr", 2)).nse == s.nse
    d = convert(s, fmt("dense", 2))
    assert convert(d, fmt("csr", 2)).nse == np.count_nonzero(d.values)
    nan = Storage(d.shape, d.format, "f64", float("nan"), d.pos, d.crd, np.where(d.values == 0, np.nan, d.values))
    assert convert(nan, fmt("csr", 2)).nse == np.count_nonzero(d.values)


def test_long_buckets_are_sorted() -> None:
    s = uncoalesced((3, 5000), 4000, seed=5)
    for name in ("csr", "csc"):
        assert same(dense(checked(convert(s, fmt(name, 2)))), dense(s))
    medium = uncoalesced((3, 60), 120, seed=5)
    assert same(dense(checked(convert(medium, fmt("csr", 2)))), dense(medium))


def test_torch_stays_torch() -> None:
    torch = pytest.importorskip("torch")
    s = uncoalesced((6, 7), 20)
    like = torch.zeros(1)

    def tensor(x: Any) -> Any:
        return None if x is None else as_array(x, like=like)

    t = Storage(s.shape, s.format, "f64", 0.0, tuple(map(tensor, s.pos)), tuple(map(tensor, s.crd)), tensor(s.values))
    for name in ("csr", "dense", "dia", "dense_f", "bsr(2,2)", "nm(4,4)"):
        x = convert(t, fmt(name, 2))
        assert all(b is None or isinstance(b, torch.Tensor) for b in (*x.pos, *x.crd, x.values))
        assert same(dense(x), dense(s))


def diagonal(n: int, per_row: int) -> Storage:
    d = np.zeros((n, n))
    d[0, :per_row] = 1
    d[1, 0] = 1
    return Storage((n, n), fmt("dense", 2), "f64", 0.0, (None, None), (None, None), d.reshape(-1))


def test_ell_that_is_too_narrow_says_which_row_and_what_would_do() -> None:
    with pytest.raises(FormatError) as error:
        convert(diagonal(4, 3), fmt("ell(2)", 2))
    assert "i = 0 has 3 elements" in str(error.value)
    assert "expected: at most 2, as level 1 is ell(2)" in str(error.value)
    assert "help: use ell(3)" in str(error.value)


def test_structured_that_is_too_narrow_says_which_group() -> None:
    with pytest.raises(FormatError) as error:
        convert(diagonal(4, 3), fmt("nm(2, 4)", 2))
    assert "i = 0, j // 4 = 0 has 3 elements" in str(error.value)
    assert "help: use structured(3, 4)" in str(error.value)


def test_singleton_below_located_levels_needs_one_element_each() -> None:
    for i, j in ("ij", "ab"):
        with pytest.raises(FormatError, match=f"{i} = 2 has no element"):
            convert(diagonal(4, 1), fmt(f"({i}, {j}) -> ({i} : dense, {j} : singleton)"))
    with pytest.raises(FormatError, match="level 0 is unique"):
        convert(diagonal(4, 2), fmt("(i, j) -> (i : compressed, j : singleton)"))


def test_batches_of_different_numbers_are_refused() -> None:
    with pytest.raises(ShapeError, match="batch 1 has 1 elements in level 1, batch 0 has 3"):
        convert(diagonal(4, 3), fmt("(b, i) -> (b : batch, i : compressed)"))


def test_the_same_format_is_the_same_storage() -> None:
    s = convert(uncoalesced((4, 5), 9), fmt("csr", 2))
    assert convert(s, fmt("csr", 2)) is s
    assert str(plan(s.format, s.format)) == "nothing to do"


def filled(d: np.ndarray[Any, Any]) -> Storage:
    """The elements of an array that are not zero, as COO."""
    crd = tuple(map(np.ascontiguousarray, np.nonzero(d)))
    levels = ", ".join(f"i{k} : {'singleton' if k else 'compressed'}(nonunique)" for k in range(d.ndim - 1))
    names = ", ".join(f"i{k}" for k in range(d.ndim))
    form = fmt(f"({names}) -> ({levels}, i{d.ndim - 1} : singleton)")
    pos = (np.array([0, len(crd[0])]), *[None] * (d.ndim - 1))
    return Storage(d.shape, form, "f64", 0.0, pos, crd, d[crd])


def test_batches_of_levels_with_room() -> None:
    """pos of a loose level has pairs, counted inside each slice."""
    d = np.zeros((3, 4, 5))
    d[:, [0, 2, 2, 3], [1, 0, 4, 2]] = np.arange(1.0, 13).reshape(3, 4)
    d[1] = d[1][::-1]
    loose = fmt("(b, i, j) -> (b : batch, i : dense, j : loose_compressed)")
    x = checked(convert(filled(d), loose))
    np.testing.assert_array_equal(dense(x), d)
    first = to_numpy(x.pos[2]).reshape(3, 4, 2)
    assert first.max() == 4
    assert (first[:, :, 1] - first[:, :, 0]).sum() == 12
    d[2, 0] = 0
    with pytest.raises(ShapeError, match="batch 2 has 3 elements"):
        convert(filled(d), loose)


def test_the_work_of_a_conversion_is_that_of_its_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long ones go to a thread of their own, so that signals are answered."""
    works: list[int] = []
    run = Executable.run_sized
    monkeypatch.setattr(
        Executable,
        "run_sized",
        lambda self, work, *args, **named: works.append(work) or run(self, work, *args, **named),
    )
    monkeypatch.setattr(moves, "LITTLE", -1)  # few go in one launch
    convert(uncoalesced((3, 4), 300), fmt("csr"))
    assert max(works) >= 300
