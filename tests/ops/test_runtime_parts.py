"""Parts of the runtime by themselves: what they say of formats, types and buffers that few calls give them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.compiler.packed_coordinates import coordinate_bits
from openwork.compiler.single.accumulators import _tree_sum
from openwork.errors import DTypeError, FormatError, ShapeError, SizeError, UnsupportedError
from openwork.format import format as parse
from openwork.format.expression import Dim, Div
from openwork.ir.index import Apply, Literal
from openwork.ir.index_text import parse as statement
from openwork.ir.loop import Const, Op
from openwork.ir.types import SCALARS, Type
from openwork.runtime import (
    contract,
    float_errors,
    full_sum,
    gradient_hook,
    kernel_text,
    layouts,
    leading_slice,
    library_errors,
    locate,
    outer_ranges,
    private_accumulators,
    promote,
    semirings,
    strided,
    values,
    widths,
    zero_annihilation,
)  # fmt: skip
from openwork.runtime.check import check
from openwork.runtime.coiterate import partition
from openwork.runtime.coiterate.types import typed
from openwork.runtime.contraction import matricize
from openwork.runtime.contraction.spgemm import Rows
from openwork.runtime.conversion import iso as conversion_iso
from openwork.runtime.conversion.radix_sort import distinct
from openwork.runtime.conversion.ranges import Ranges, first_positions
from openwork.runtime.conversion.remap import index_scalar
from openwork.runtime.formats import resolve_format
from openwork.runtime.kernel_text import show_kernel
from openwork.runtime.plan import extents_of, form_of
from openwork.storage import memory
from openwork.storage.buffers import numpy_dtype, scalar_name
from openwork.storage.specified import coordinates

rng = np.random.default_rng(16)
X = np.where(rng.random((7, 8)) < 0.4, rng.integers(1, 9, (7, 8)), 0).astype(float)
X[2] = 0


def test_types_of_operations_with_numbers() -> None:
    """As NumPy's of an array and a Python number, which never widens within its kind."""
    for scalar in SCALARS:
        for number in (True, 3, 0.5, 2j):
            if scalar == "bf16":
                expected = "c64" if number == 2j else "bf16"
            else:
                expected = scalar_name(np.result_type(numpy_dtype(scalar), number))
            assert promote.weak(scalar, type(number)) == expected, (scalar, number)


def test_constants_alone_have_types_too() -> None:
    for value, scalar in ((True, "bool"), (3, "i64"), (0.5, "f64"), (2j, "c128")):
        found = typed(Literal(value), {})
        assert isinstance(found, Const)
        assert (found.value, found.type.scalar) == (value, scalar)
    found = typed(Apply("add", (Literal(3), Apply("either", (Literal(0.5), Literal(1))))), {})
    assert isinstance(found, Const)
    assert (found.value, found.type.scalar) == (3.5, "f64")
    with pytest.raises(DTypeError, match="nothing is not an expression"):
        typed("nothing", {})  # type: ignore[arg-type]


def test_names_that_are_not_known() -> None:
    monoid = semirings.monoid("max")
    assert semirings.monoid(monoid) is monoid
    with pytest.raises(UnsupportedError, match="there is no elementwise operation 'frobnicate'"):
        values.function_of("frobnicate", False)
    with pytest.raises(UnsupportedError, match="frobnicate has no gradient"):
        gradient_hook.rule("frobnicate")
    with pytest.raises(UnsupportedError, match="show='words'"):
        show_kernel("y(i) += A(i,j) * x(j)", {"A": "csr"}, show="words")
    with pytest.raises(UnsupportedError, match="no operand is sparse"):
        show_kernel("y(i) += A(i,j) * x(j)", {})
    with pytest.raises(FormatError, match="expected: 2 dimensions; got: 1"):
        show_kernel("y(i) += A(i,j) * x(j)", {"A": "(i) -> (i : compressed)"})
    texts = {show: show_kernel("y(i) += A(i,j) * x(j)", {"A": "csr"}, show=show) for show in ("loops", "llvm", "asm")}
    assert "\ndef " in texts["loops"]
    assert "define " in texts["llvm"]
    assert ".text" in texts["asm"]
    assert "define " not in texts["asm"]


def test_formats_of_more_dimensions_than_their_name() -> None:
    batched = parse("csr", 3, batch=1)
    assert resolve_format("csr", 3, batched) == batched
    assert resolve_format("csr", 3, parse("coo", 3)) == parse("csr", 3, dense=1)
    assert resolve_format("csr", 4, batched) == parse("csr", 4, batch=1, dense=1)
    for name in ("frobnicate", "bsr(2, 2, 2)", "dense("):
        with pytest.raises(FormatError) as alone:
            resolve_format(name, 3)
        with pytest.raises(FormatError) as beside:
            resolve_format(name, 3, batched)
        assert str(beside.value) == str(alone.value)


def test_extents_of_statements() -> None:
    stmt = statement("y[i] += A[i,j] * x[j]")
    form = form_of(stmt, "A")
    assert extents_of(stmt, form, [(2, 3), (3,)]) == {"i": 2, "j": 3}
    with pytest.raises(ShapeError, match="A is used with 2 indices"):
        extents_of(stmt, form, [(2, 3, 4), (3,)])
    with pytest.raises(ShapeError, match="index j has extent 3 in A and 4 in x"):
        extents_of(stmt, form, [(2, 3), (4,)])
    stmt = statement("y[i] += x[j]")
    with pytest.raises(ShapeError, match="nothing on the right tells the extent of i"):
        extents_of(stmt, form_of(stmt, "x"), [(4,)])


def test_errors_of_libraries_say_how_many_bytes() -> None:
    t = ow.asarray(X, format="csr")
    for phrase in library_errors._PHRASES:
        for kind in (RuntimeError, ValueError, MemoryError):
            found = library_errors.library_error("f", kind(f"it is so: {phrase}"), [3.0])
            assert isinstance(found, SizeError)
            assert "help: ask for less" in str(found)
            found = library_errors.library_error("f", kind(f"it is so: {phrase}"), [t[0], t, 3.0])
            assert f"shape (7, 8) has {56 * 8} bytes" in str(found)
    assert library_errors.library_error("f", SizeError("known"), [t]) is None
    assert library_errors.library_error("f", ValueError("something else"), [t]) is None
    for phrase in library_errors._NO_KERNEL:
        for kind in (NotImplementedError, ValueError):
            assert "compute with float64" in str(library_errors.library_error("f", kind(phrase), [t]))
        assert library_errors.library_error("f", RuntimeError(phrase), [t]) is None
    with pytest.raises(MemoryError) as numpys:
        np.empty((1 << 40, 3), np.float32)
    assert f"shape (1099511627776, 3) has {12 << 40:,} bytes" in str(
        library_errors.library_error("f", numpys.value, [])
    )


@pytest.mark.parametrize("kinds", [(1, 0), (1, 1), (0, 1), (1, 2)])
def test_elements_are_located_or_said_to_be_several(kinds: tuple[int, int]) -> None:
    """Levels: 0 dense, 1 compressed, 2 singleton. Coordinates occur once, twice, or not at all on each."""
    rows = [0, 2, 2, 3] if kinds[0] else [0, 1, 2, 3]
    levels: list[tuple[int, int, int, Any, Any, bool]] = []
    levels.append((0, 0, 4, [0, 4], rows, False) if kinds[0] else (0, 0, 4, None, None, True))
    inner = [[1], [0, 1, 1], [2], [0, 2]]
    if kinds[1] == 0:
        levels.append((1, 0, 3, None, None, True))
        children = [[(c, 3 * p + c) for c in range(3)] for p in range(4)]
    elif kinds[1] == 1:
        edges = np.cumsum([0, *map(len, inner)]).tolist()
        levels.append((1, 0, 3, edges, [c for part in inner for c in part], False))
        children = [[(c, edges[p] + k) for k, c in enumerate(inner[p])] for p in range(4)]
    else:
        levels.append((1, 0, 3, None, [1, 0, 2, 2], False))
        children = [[(c, p)] for p, c in enumerate([1, 0, 2, 2])]
    pos, crd = ([None if x[k] is None else np.array(x[k]) for x in levels] for k in (3, 4))
    storage: Any = SimpleNamespace(pos=pos, crd=crd)
    find = locate.Locator([(*x[:3], x[5]) for x in levels])
    for i in range(5 if kinds[0] else 4):
        for j in range(3):
            parents = [p for p, row in enumerate(rows) if row == i]
            at = [q for p in parents for c, q in children[p] if c == j]
            found = find(storage, (i, j))
            if kinds[0] and kinds[1] < 2 and len(parents) > 1:
                assert found == locate.SEVERAL, "an element may be in either parent"
            else:
                assert found == (locate.ABSENT if not at else at[0] if len(at) == 1 else locate.SEVERAL), (i, j)


def test_layouts_of_other_formats() -> None:
    for text in (
        "(a, b, i, j) -> (b : batch, a : batch, i : dense, j : compressed)",
        "(i, j) -> (i // 4 : dense, j : compressed, i % 4 // 2 : dense, i % 2 : dense)",
        "(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)",
        "(i, j) -> (i + j : compressed, j : range)",
        "(i, j) -> (j - i : compressed, i : range)",
        "(i, j) -> (j : compressed(nonunique), i : singleton)",
        "(i, j) -> (i : compressed, j : compressed)",
        "(i, j) -> ((j - i) // 2 : dense, j // 2 : compressed, (j - i) % 2 : dense, j % 2 : dense)",
        "(i, j) -> (i // 4 : dense, (i + j) // 2 : compressed, i % 4 : dense, (i + j) % 2 : dense)",
    ):
        assert layouts.layout_of(parse(text)) is None, text
    for text, kind, block, column_major in (
        ("(i, j) -> (i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)", "bsr", (2, 3), False),
        ("(i, j) -> (j // 3 : dense, i // 2 : compressed, j % 3 : dense, i % 2 : dense)", "bsc", (2, 3), True),
        ("(i, j) -> (j - i : compressed, j : range)", "dia", (1, 1), False),
    ):
        found = layouts.layout_of(parse(text))
        assert found is not None
        assert (found.kind, found.block, found.column_major) == (kind, block, column_major)


def test_distinct_elements() -> None:
    for x in ([], [2.5], [np.nan], [np.nan, 1, np.nan, -0.0, 0.0, 1], [3, 1, 3, 2, np.inf, -np.inf, np.inf]):
        found = distinct(np.array(x, float))
        np.testing.assert_array_equal(found, np.unique(np.array(x, float)))


@pytest.mark.parametrize("fill", [0.0, 2.5])
def test_elements_at_places(fill: float) -> None:
    """Those of one coordinate are summed, those that are not stored are the fill value."""
    t = ow.sparse_coo_tensor([[3, 0, 3, 1, 3], [1, 2, 1, 0, 1]], [1.0, 2, 4, 8, 16], (4, 3))
    s = replace_fill(t._storage, fill)
    places = np.array([[3, 0, 1, 1, 3, 2, 0], [1, 2, 0, 1, 1, 2, 0]])
    np.testing.assert_array_equal(float_errors._values(s, (0, 1), places), [21, 2, 8, fill, 21, fill, fill])
    np.testing.assert_array_equal(float_errors._values(s, (1, None), places), [8, fill, fill, 8, 8, fill, fill])
    dense = np.arange(3.0)
    np.testing.assert_array_equal(float_errors._values(dense, (1,), places), dense[places[1]])
    np.testing.assert_array_equal(float_errors._values(np.asarray(4.0), (), places), [4.0] * 7)


def replace_fill(s: Any, fill: float) -> Any:
    return type(s)(s.shape, s.format, s.scalar, fill, s.pos, s.crd, s.values)


FORMATS = (
    "csr", "dcsr", "coo", "(i, j) -> (i : dense, j // 2 : compressed, j % 2 : dense)", "bitmap", "ell(8)",
    "(i, j) -> (i : compressed, j : dense)", "(i, j) -> (i : compressed, j : bitmap)",
    "(i, j) -> (i : loose_compressed, j : dense)", "bsr(2, 2)", "csc", "dcsc", "dense_f",
)  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_where_the_values_of_a_range_begin(format: str) -> None:
    s = ow.asarray(X, format=format)._storage
    first = s.format.levels[0].format
    count = s.format.level_intervals(s.shape)[0] if not first.is_compressed else (0, len(s.crd[0]))  # type: ignore[arg-type]
    bounds = (count[0], count[0] + 2, count[0] + 3, count[1])
    found = first_positions(s, Ranges(bounds))
    if found is None:
        assert format in ("bitmap", "ell(8)") or "bitmap" in format or "loose" in format
        return
    where, leaf = coordinates(s)
    expression = s.format.levels[0].expression
    if isinstance(expression, Div):
        outer = where[expression.base.index] // expression.divisor  # type: ignore[union-attr]
    else:
        assert isinstance(expression, Dim)
        outer = where[expression.index]
    if not first.unique:
        outer = leaf
    elif s.crd[0] is not None:
        outer = np.searchsorted(s.crd[0], outer)  # type: ignore[call-overload]
    for bound, position in zip(bounds, found, strict=True):
        np.testing.assert_array_equal(leaf < position, outer < bound)


@pytest.mark.parametrize("format", [*FORMATS, "csf", "(i, j) -> (j : compressed, i : compressed)"])
def test_an_outermost_dimension_of_one_goes(format: str) -> None:
    for shape in ((1, 8), (7, 1), (1, 1), (1, 8, 3), (1, 0), (7, 1, 3)):
        try:
            text = parse(format, len(shape))
        except FormatError:
            continue
        x = np.resize(X, shape)
        t = ow.asarray(x, format=text)
        d = leading_slice.outer_dim(t.format)
        if d is None or shape[d] != 1:
            continue
        out = leading_slice.drop_outer(t._storage)
        if out is not None:
            found = type(t)._from_storage(out)
            check(out)
            np.testing.assert_array_equal(found.to_numpy(), np.take(x, 0, d))
    assert leading_slice.drop_outer(ow.asarray(np.ones(1), format="coo")._storage) is None


def test_one_element_in_each_row() -> None:
    x = np.zeros((6, 8))
    x[np.arange(6), [3, 0, 7, 7, 2, 3]] = np.arange(1.0, 7)
    t = ow.asarray(x, format="(i, j) -> (i : dense, j : singleton)")
    assert t.nse == 6
    for found, wanted in (
        (t[2], x[2]), (t[-6:1], x[:1]), (t[0:1][0], x[0]), (t[1:4], x[1:4]), (t[:, 3], x[:, 3]), (t[2, 7], x[2, 7]),
        (t[[4, 1, 4]], x[[4, 1, 4]]), (t[::-2], x[::-2]), (t.T, x.T), (t + t.T.T, x + x), (t.sum(0), x.sum(0)),
        (t.sum(axis=1), x.sum(1)), (t @ x.T, x @ x.T), (ow.concat([t, t]), np.concatenate([x, x])),
        (ow.concat([t, t], axis=1), np.concatenate([x, x], 1)), (ow.min(t, axis=0), x.min(0)), (t * t[:1], x * x[:1]),
    ):  # fmt: skip
        np.testing.assert_array_equal(found.to_numpy() if isinstance(found, ow.Tensor) else found, wanted)
    for k in range(6):
        row = t[k : k + 1]
        np.testing.assert_array_equal(row[0].to_numpy(), x[k])
        np.testing.assert_array_equal(ow.squeeze(row, axis=0).to_numpy(), x[k])


def test_sums_over_a_wide_index_of_dense_factors() -> None:
    """In lanes: several vectors a step, the rest in narrower ones."""
    for n in (1, 40, 100, 203):
        b, c = rng.integers(-4, 5, (8, n)) * 1.0, rng.integers(-4, 5, (7, n)) * 1.0
        a = ow.asarray(X, format="csr")
        np.testing.assert_array_equal(ow.einsum("ij,jk,ik->i", a, b, c), np.einsum("ij,jk,ik->i", X, b, c))
        np.testing.assert_array_equal(ow.einsum("ij,jk,ik->", a, b, c), np.einsum("ij,jk,ik->", X, b, c))


def test_trees_of_any_number_of_vectors() -> None:
    terms = [Const(float(2**k), Type("f64")) for k in range(7)]
    for count in range(1, 8):
        tree, total = [_tree_sum("add", list(terms[:count]))], 0.0
        while tree:
            e = tree.pop()
            total += e.value if isinstance(e, Const) else 0
            tree += e.args if isinstance(e, Op) else ()
        assert total == 2**count - 1


@pytest.mark.parametrize(("text", "shape", "bits"), [
    ("nm(2, 4)", (4, 8), 2), ("nm(1, 2)", (4, 8), 2), ("nm(4, 8)", (4, 8), 4), ("nm(2, 16)", (4, 16), 4),
    ("nm(2, 32)", (4, 32), None), ("nm(2, 6)", (4, 12), None), ("nm(4, 4)", (4, 8), None), ("nm(2, 4)", (4, 7), None),
    ("csr", (4, 8), None), ("ell(2)", (4, 8), None),
])  # fmt: skip
def test_bits_of_packed_coordinates(text: str, shape: tuple[int, int], bits: int | None) -> None:
    fmt = parse(text)
    assert coordinate_bits(fmt, fmt.ragged(shape)) == bits


@pytest.mark.parametrize("large", [1, 1 << 40])
def test_accumulators_begin_with_the_identity(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_accumulators, "LARGE", large)
    for op, scalar, start in (
        ("min", "f64", np.inf),
        ("max", "i32", np.iinfo("i4").min),
        ("mul", "f32", 1),
        ("add", "i64", 0),
    ):
        parts = SimpleNamespace(parts=3, step=4, scalar=scalar, op=op)
        found = private_accumulators.PrivateAccumulators._initialised(parts)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, np.full(8, start, numpy_dtype(scalar)))
        assert found.dtype == numpy_dtype(scalar)


def test_the_vector_index_of_a_shown_kernel_is_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    plan = kernel_text.schedule
    monkeypatch.setattr(
        kernel_text, "schedule", lambda stmt, laid, facts: (seen.append(facts.extents), plan(stmt, laid, facts))[1]
    )
    for text, vector in (
        ("C(i,k) += A(i,j) * D(j,l) * B(l,k)", "k"),
        ("C(i,k) += A(i,j) * B(j,k) * D(j,l)", "k"),
        ("y(i) += A(i,j) * D(j,l)", "l"),
    ):
        show_kernel(text, {"A": "csr"})
        assert seen.pop()[0][0] == vector, text
    show_kernel("y(i) += A(i,j) * x(j)", {"A": "csr"})
    assert not seen.pop()


def test_reads_of_slices_cover_what_the_slice_is_made_of() -> None:
    s = ow.asarray(X, format="(i, j) -> (i : dense, j : loose_compressed)")._storage
    reads = list(leading_slice.slice_reads(s, 2, 5))
    assert reads == [("pos_1", 4, 10), ("pos_1", 0, 14), ("crd_1", 0, len(s.crd[1])), ("values", 0, len(s.values))]  # type: ignore[arg-type]
    s = ow.asarray(X, format="csr")._storage
    first, last = int(s.pos[1][2]), int(s.pos[1][5])  # type: ignore[index]
    assert list(leading_slice.slice_reads(s, 2, 5)) == [
        ("pos_1", 2, 6),
        ("crd_1", first, last),
        ("values", first, last),
    ]
    s = ow.asarray(X, format="ell(8)")._storage
    assert list(leading_slice.slice_reads(s, 2, 5)) == [("crd_1", 16, 40), ("values", 16, 40)]
    s = ow.asarray(X, format="bsr(7, 2)")._storage
    count = int(s.pos[1][1])  # type: ignore[index]
    assert list(leading_slice.slice_reads(s, 2, 5)) == [("pos_1", 0, 2), ("crd_1", 0, count), ("values", 0, 14 * count)]


def test_joined_indices_that_do_not_fit_are_none() -> None:
    part = (
        ow.sparse_coo_tensor(np.array([[0, 5], [1, 0]], np.int32), np.ones(2), (1 << 30, 2)).asformat("dcsr")._storage
    )
    joined = leading_slice.join_outer([part])
    assert joined is not None
    assert scalar_name(part.crd[0].dtype) == "i32"  # type: ignore[union-attr]
    assert leading_slice.join_outer([part, part]) is None
    assert leading_slice.join_outer([part] * 3) is None


def test_small_tensors_are_one_range() -> None:
    s = ow.asarray(X, format="csr")._storage
    assert list(outer_ranges.outer_ranges(s)) == [(0, 0, s)]
    assert not private_accumulators.has_long_run(s, 2)


def test_the_width_of_a_results_indices() -> None:
    """The operands', or 64 bits where coordinates or positions need them."""
    narrow = ow.asarray(X, format="csr")._storage
    s = ow.asarray(X, format="csr")._storage
    wide = type(s)(s.shape, s.format, s.scalar, 0.0, s.pos, (None, s.crd[1].astype(np.int64)), s.values)  # type: ignore[union-attr]
    bits = ow.asarray(X, format="bitmap")._storage
    most = 2**31
    for storages, shape, count, expected in (
        ([narrow], (7, 8), 20, "i32"), ([narrow, wide], (7, 8), 20, "i64"), ([wide], (), 0, "i64"), ([bits], (7, 8), 20, "i32"),
        ([narrow], (7, most), 20, "i64"), ([narrow], (7, most - 1), most - 1, "i32"), ([narrow], (7, 8), most, "i64"),
        ([], (), 0, "i32"),
    ):  # fmt: skip
        assert index_scalar(storages, shape, count) == expected


def test_cuts_of_results() -> None:
    x = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    assert widths.cut(x, -1, 2) is x
    for dim in range(3):
        found = widths.cut(x, dim, 1)
        np.testing.assert_array_equal(found, x.take([0], dim))
        assert found.base is None
        part = x[(*(slice(None),) * dim, slice(0, 1))]
        assert found.strides == part.copy(order="K").strides


@pytest.mark.parametrize("count", [24, 6 * (memory.LARGE // 48 + 4)])
def test_arrays_of_any_length_are_aligned(count: int) -> None:
    x = np.arange(count + 2.0)[1:]
    x = x[x.ctypes.data % strided.LINE == 0 :][:count].reshape(2, 3, -1).transpose(1, 2, 0)
    found = strided.on_lines(strided.strided(x))
    assert found.address % strided.LINE == 0 or (count > 24 and not memory._HAS_PAGES)
    np.testing.assert_array_equal(found.owner, x)
    assert found.strides == tuple(n // 8 for n in x.strides)


def test_sums_of_half_precision_are_single_ones() -> None:
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    x = np.array([256.0] + [1.0] * 64).astype(bf16)
    assert full_sum._library_sum(x, "bf16") == np.float32(320).astype(bf16)
    assert full_sum._library_sum(x, "bf16").dtype == bf16
    assert full_sum._library_sum(x.astype(np.float32), "bf16").dtype == bf16


def test_operands_of_half_precision_that_are_read_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[1, 2, 0, 0], [0, 3, 4, 0]], np.float16)
    a, b = ow.asarray(x, format="nm(2, 4)"), (rng.random((4, 5)) * 8).astype(np.float16)
    plain = a @ b
    for read in (0, 1 << 40):
        monkeypatch.setattr(contract, "REREAD", read)
        again = ow.asarray(x, format="nm(2, 4)") @ b
        assert again.dtype == np.float16
        np.testing.assert_array_equal(again, plain)
    np.testing.assert_allclose(plain.astype(float), x.astype(float) @ b.astype(float), rtol=2e-3)


def test_rows_of_two_widths_become_a_matrix_of_one() -> None:
    crd, held = np.array([1, 0, 2]), np.array([1.0, 2, 3])
    for one, other in ((np.int64, np.int32), (np.int32, np.int64), (np.int32, np.int32)):
        m = Rows(np.array([0, 1, 3], one), crd.astype(other), held, 3, None)
        s = matricize.as_csr(m, (2, 3), "f64", 0.0, held)
        assert s is not None
        assert s.pos[1].dtype == s.crd[1].dtype == np.promote_types(one, other)  # type: ignore[union-attr]
        assert (s.pos[1].tolist(), s.crd[1].tolist()) == ([0, 1, 3], [1, 0, 2])  # type: ignore[union-attr]
        assert matricize.as_csr(m, (3, 3), "f64", 0.0, held) is None
        assert matricize.as_csr(replace(m, keys=np.array([0, 4])), (2, 3), "f64", 0.0, held) is None


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_kronecker_products_of_two_widths(library: str) -> None:
    if library == "torch":
        pytest.importorskip("torch")
    y = np.array([[0, 2.0], [3, 0], [0, 0]])
    for pos, crd in ((np.int64, np.int32), (np.int32, np.int64), (np.int64, np.int64)):
        t = ow.asarray(y, format="csr")
        s = t._storage
        parts = [None, s.pos[1].astype(pos)], [None, s.crd[1].astype(crd)]  # type: ignore[union-attr]
        mixed = type(t)._from_storage(type(s)(s.shape, s.format, "f64", 0.0, *map(tuple, parts), s.values))
        mixed = ow.asarray(mixed, like=library)
        other = ow.asarray(X, format="coo", like=library)
        for a, b, expected in (
            (mixed, other, np.kron(y, X)),
            (other, mixed, np.kron(X, y)),
            (mixed, mixed, np.kron(y, y)),
        ):
            np.testing.assert_array_equal(ow.kron(a, b).to_numpy(), expected)


def test_moves_that_have_to_see_the_elements() -> None:
    def move(s: Any) -> Any:
        raise AssertionError("moved")

    for t in (
        ow.asarray(X, format="dense"), ow.zeros((3, 4), format="csr"), ow.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 1], (2, 2)),
    ):  # fmt: skip
        assert conversion_iso.moved_iso(t._storage, move) is None
    t = ow.iso(ow.asarray(X, format="csr"), 2.5)
    assert conversion_iso.moved_iso(t._storage, lambda s: s) is not None
    empty = ow.iso(ow.zeros((2, 4), format="csr"), 2.5)
    for moved in (ow.roll(empty, 1, axis=1), ow.flip(empty), ow.pad(empty, 1), t[:0].reshape((0, 2))):
        assert moved.nse == 0
        assert not moved.to_numpy().any()


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_coordinates_that_cut_work_evenly(parts: int) -> None:
    n, low = 5000, 7
    spread = rng.integers(0, 5, n)
    first, last, two = (np.zeros(n, np.int64) for _ in range(3))
    first[0] = last[-1] = 900
    two[[1234, 1235]] = 500, 400
    for weights in (spread, first, last, two, 100 * (np.arange(n) == 4321) + spread, np.arange(n) // 100):
        prefix = np.concatenate([[0], np.cumsum(weights)])
        total = int(prefix[-1])
        found = partition._search(lambda c, prefix=prefix: prefix[c - low], low, low + n, parts)
        shares = total * np.arange(1, parts) // parts
        exact = (low + np.searchsorted(prefix, shares)).tolist()
        assert all(low <= c <= low + n for c in found)
        assert (
            found == exact or (np.abs(prefix[np.array(found) - low] - shares) <= total / parts / partition.COARSE).all()
        )


def test_pairs_of_positions_count_from_each_slice() -> None:
    x = np.zeros((3, 4, 5))
    for b, at in enumerate(([(0, 1), (2, 3), (2, 4)], [(3, 0), (3, 1), (3, 2)], [(1, 1), (2, 2), (3, 4)])):
        for k, (i, j) in enumerate(at):
            x[b, i, j] = 10 * b + k + 1
    for level in ("loose_compressed", "compressed"):
        linear = ow.asarray(x, format=f"(b, i, j) -> (b : dense, i : dense, j : {level})")
        batched = linear.asformat(f"(b, i, j) -> (b : batch, i : dense, j : {level})")
        check(batched._storage)
        np.testing.assert_array_equal(batched.to_numpy(), x)
        np.testing.assert_array_equal(batched.asformat(linear.format).to_numpy(), x)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_values_within_a_limit(library: str) -> None:
    """Of every type and length, with NaN and infinity anywhere."""
    torch = pytest.importorskip("torch") if library == "torch" else None
    few = zero_annihilation.FEW
    for scalar in ("f16", "f32", "f64", "c64", "c128", "i32", "bf16"):
        if scalar == "bf16" and torch is None:
            continue
        for n in (0, 1, 5, few, few + 1, 3 * few + 7):
            x = ((np.arange(n) % 7) - 3.0).astype(numpy_dtype("f32" if scalar == "bf16" else scalar))
            for value in (None, 9, -9, np.nan, np.inf):
                if n and value is not None:
                    if scalar == "i32" and not np.isfinite(value):
                        continue
                    x = x.copy()
                    x[n * 2 // 3] = value
                y: Any = x
                if torch is not None:
                    y = torch.as_tensor(x, dtype=torch.bfloat16 if scalar == "bf16" else None)
                for limit in (-1.0, 0.0, 3.0, 8.0, 10.0):
                    expected = (not n and limit == 0) or (limit > 0 and bool((np.abs(x) <= limit).all()))
                    assert zero_annihilation.bounded(y, limit) == expected, (scalar, n, value, limit)
                    if torch is not None and y.is_floating_point():
                        assert zero_annihilation.bounded(y.detach().requires_grad_(), limit) == expected
    if torch is not None:
        seen: list[bool] = []
        batch = torch.tensor([[1.0, 2.0], [3.0, 50.0]])
        torch.func.vmap(lambda y: (seen.append(zero_annihilation.bounded(y, 40.0)), y)[1])(batch)
        torch.func.vmap(lambda y: (seen.append(zero_annihilation.bounded(y, 50.0)), y)[1])(batch)
        assert seen == [False, True]
