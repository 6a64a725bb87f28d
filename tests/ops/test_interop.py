from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.errors import DTypeError, ShapeError, UnsupportedError
from openwork.storage.buffers import strided_address

torch = pytest.importorskip("torch")

FORMATS = ("csr", "csc", "bsr", "coo", "dia", "lil", "dok")
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128")  # fmt: skip


def dense(seed: int = 0, shape: tuple[int, ...] = (6, 8), dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 9, shape) * (rng.random(shape) < 0.4)
    return x.astype(dtype)


def same_memory(mine: object, theirs: object) -> bool:
    return strided_address(mine) == strided_address(theirs)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("format", FORMATS)
def test_every_scipy_format(format, kind):
    a = dense()
    given = kind(a).asformat(format)
    t = ow.asarray(given)
    np.testing.assert_array_equal(t.to_numpy(), a)
    for other in ("csr", "csc", "coo", "dense"):
        assert ow.asarray(given, format=other).format == ow.format(other)
    back = t.to_scipy(format)
    assert back.format == format
    assert isinstance(back, sp.sparray)
    np.testing.assert_array_equal(back.toarray(), a)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", ["csr", "coo", "bsr", "dia"])
def test_scipy_dtypes(format, dtype):
    a = dense(dtype=dtype)
    t = ow.asarray(sp.csr_array(a).asformat(format))
    assert t.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(t.to_numpy(), a)
    assert t.to_scipy(format).dtype == np.dtype(dtype)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
def test_scipy_compressed_shares_memory_both_ways(format, index):
    given = sp.csr_array(dense()).asformat(format)
    given.indptr, given.indices = given.indptr.astype(index), given.indices.astype(index)
    t = ow.asarray(given)
    assert same_memory(t.pos(1), given.indptr)
    assert same_memory(t.crd(1), given.indices)
    assert same_memory(t.values, given.data)
    assert t.crd(1).dtype == index
    back = t.to_scipy()
    assert back.format == format
    for name in ("indptr", "indices", "data"):
        assert same_memory(getattr(back, name), getattr(given, name)), name
        assert getattr(back, name).dtype == getattr(given, name).dtype


def test_scipy_coo_and_dia_share_memory():
    given = sp.coo_array(dense())
    given.sum_duplicates()
    t = ow.asarray(given)
    assert str(t.format) == str(ow.format("coo"))
    assert same_memory(t.crd(0), given.coords[0])
    assert same_memory(t.crd(1), given.coords[1])
    back = t.to_scipy()
    assert same_memory(back.coords[1], given.coords[1])
    assert same_memory(back.data, given.data)
    dia = sp.dia_array((np.arange(16.0).reshape(2, 8), [-1, 2]), shape=(6, 8))
    u = ow.asarray(dia)
    assert u.format == ow.format("(i, j) -> (j - i : compressed, j : range)")
    assert same_memory(u.values, dia.data)
    np.testing.assert_array_equal(u.to_numpy(), dia.toarray())
    assert u.nse == 5 + 6
    assert same_memory(u.to_scipy().data, dia.data)


@pytest.mark.parametrize("width", [3, 8, 12])
def test_dia_of_any_width(width):
    dia = sp.dia_array((np.arange(1.0, 1 + 3 * width).reshape(3, width), [5, -2, 0]), shape=(4, 8))
    t = ow.asarray(dia)
    np.testing.assert_array_equal(t.to_numpy(), dia.toarray())
    assert not t.format.is_ordered


def test_dia_offsets_outside():
    dia = sp.dia_array((np.ones((3, 8)), [9, 0, -7]), shape=(4, 8))
    t = ow.asarray(dia)
    np.testing.assert_array_equal(t.to_numpy(), dia.toarray())
    assert t.nse == 4


def test_scipy_nd_coo_and_vectors():
    a = dense(1, (3, 4, 5))
    t = ow.asarray(sp.coo_array(a))
    np.testing.assert_array_equal(t.to_numpy(), a)
    np.testing.assert_array_equal(t.to_scipy().toarray(), a)
    for kind in (sp.coo_array, sp.csr_array):
        v = ow.asarray(kind(a[0, 0]))
        np.testing.assert_array_equal(v.to_numpy(), a[0, 0])
        np.testing.assert_array_equal(v.to_scipy("csr").toarray(), a[0, 0])


@pytest.mark.parametrize(
    ("crd", "expected"),
    [
        ([0, 2, 1], "compressed"),
        ([2, 2, 1], "compressed(nonunique)"),
        ([2, 0, 1], "compressed(nonunique, unordered)"),
    ],
)
def test_the_buffers_decide_not_the_flags(crd, expected):
    given = sp.csr_array((2, 3))
    given.indptr, given.indices, given.data = np.array([0, 2, 3]), np.array(crd), np.array([1.0, 2.0, 3.0])
    given.has_sorted_indices = given.has_canonical_format = True
    t = ow.asarray(given)
    assert str(t.levels[1].format) == expected
    assert same_memory(t.crd(1), given.indices)
    assert t.nse == 3
    back = t.to_scipy()
    assert same_memory(back.indices, given.indices)
    wanted = np.zeros((2, 3))
    np.add.at(wanted, ([0, 0, 1], crd), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(t.to_numpy(), wanted)


def test_coo_order_decides_too():
    for row, column, expected in (
        ([0, 0, 1], [0, 2, 0], "(i : compressed(nonunique), j : singleton)"),
        ([0, 0, 1], [2, 2, 0], "(i : compressed(nonunique), j : singleton(nonunique))"),
        ([1, 0, 1], [0, 2, 0], "(i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"),
    ):
        t = ow.asarray(sp.coo_array((np.ones(3), (row, column)), shape=(2, 3)))
        assert str(t.format) == f"(i, j) -> {expected}"


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_functions_of_unsorted_arrays_keep_their_kind(kind):
    data, indices, indptr = np.array([1.0, 2, 3, 4]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])
    data = data[:, None, None] if kind == "bsr" else data
    given = getattr(sp, f"{kind}_array")((data, indices, indptr), shape=(3, 2) if kind == "csc" else (2, 3))
    t, dense = ow.asarray(given), given.toarray()
    name = "bsr(1, 1)" if kind == "bsr" else kind
    for result, expected in (
        (np.log1p(t), np.log1p(dense)),
        (t > 2, dense > 2),
        (ow.where(t > 2, t, 0), np.where(dense > 2, dense, 0)),
        (np.logaddexp(t, 1.0), np.logaddexp(dense, 1.0)),
    ):
        assert result.format.name == name
        np.testing.assert_allclose(result.to_numpy(), expected)


def test_malformed_scipy_raises():
    given = sp.csr_array((2, 3))
    given.indptr, given.indices, given.data = np.array([0, 2, 3]), np.array([0, 7, 1]), np.ones(3)
    with pytest.raises(ValueError, match=r"(?s).*crd\[1\]\[1\] == 7.*invariant 5.5"):
        ow.asarray(given)
    given.indptr = np.array([0, 5, 3])
    with pytest.raises(ValueError, match=r"5.3"):
        ow.asarray(given)
    given.indptr = np.array([0, 3])
    with pytest.raises(ValueError, match=r"(?s)length of pos\[1\].*invariant 3.8"):
        ow.asarray(given)


def test_longer_buffers_than_used():
    given = sp.csr_array(dense())
    given.indices, given.data = np.append(given.indices, [99, 99]), np.append(given.data, [0.0, 0.0])
    t = ow.asarray(given)
    assert t.nse == given.indptr[-1]
    assert same_memory(t.values, given.data)


def test_blocks_column_major():
    blocks = np.arange(24.0).reshape(2, 3, 4).transpose(0, 2, 1)
    given = sp.bsr_array((8, 6))
    given = sp.bsr_array((blocks.copy(), [1, 0], [0, 1, 2]), shape=(8, 6))
    given.data = blocks
    t = ow.asarray(given)
    assert same_memory(t.values, blocks)
    assert str(t.format) == "(i, j) -> (i // 4 : dense, j // 3 : compressed, j % 3 : dense, i % 4 : dense)"
    np.testing.assert_array_equal(t.to_numpy(), given.toarray())
    back = t.to_scipy()
    assert back.format == "bsr"
    assert same_memory(back.data, blocks)
    assert back.data.strides == blocks.strides
    np.testing.assert_array_equal(back.toarray(), given.toarray())
    assert ow.asarray(sp.bsr_array((blocks[:, ::2], [1, 0], [0, 1, 2]), shape=(4, 6))).nse == 12


@pytest.mark.parametrize("copy_", [True, False, None])
def test_copy_semantics(copy_):
    given = sp.csr_array(dense())
    t = ow.asarray(given, copy=copy_)
    assert same_memory(t.values, given.data) == (copy_ is not True)
    assert same_memory(t.crd(1), given.indices) == (copy_ is not True)
    x = dense()
    assert same_memory(ow.asarray(x, copy=copy_).values, x) == (copy_ is not True)
    for strided in (x.T, x[::2], x[:, ::-1], x.astype(">f8")):
        if copy_ is False:
            with pytest.raises(ValueError, match="copy=False"):
                ow.asarray(strided, copy=False)
        else:
            np.testing.assert_array_equal(ow.asarray(strided, copy=copy_).to_numpy(), strided)
    if copy_ is False:
        with pytest.raises(ValueError, match="copy=False"):
            ow.asarray(x, dtype="float32", copy=False)
        with pytest.raises(ValueError, match="moves data"):
            ow.asarray(given, format="csc", copy=False)


def test_read_only_and_unaligned():
    x = dense()
    x.flags.writeable = False
    t = ow.asarray(x)
    assert same_memory(t.values, x)
    np.testing.assert_array_equal(t.to_torch().numpy(), x)
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(x.shape)
    raw[...] = x
    assert not raw.flags.aligned
    u = ow.asarray(raw)
    assert u.values.flags.aligned
    np.testing.assert_array_equal(u.to_numpy(), x)


LAYOUTS = [torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def as_layout(x, layout, dense_dim: int = 0):
    if layout == torch.strided:
        return x
    blocks = {"blocksize": (2, 4)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}
    return x.to_sparse(layout=layout, dense_dim=dense_dim or None, **blocks)


def parts(x) -> list:
    if x.layout == torch.strided:
        return [x]
    if x.layout == torch.sparse_coo:
        return [*x._indices(), x._values()]
    outer = (
        [x.crow_indices(), x.col_indices()]
        if x.layout in (torch.sparse_csr, torch.sparse_bsr)
        else [x.ccol_indices(), x.row_indices()]
    )
    return [*outer, x.values()]


@pytest.mark.parametrize("case", ["plain", "batched", "hybrid", "both", "empty"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_torch_both_ways_without_a_copy(layout, case):
    shape = {"plain": (4, 8), "batched": (2, 3, 4, 8), "hybrid": (4, 8, 3), "both": (2, 4, 8, 3), "empty": (4, 8)}[case]
    if layout == torch.sparse_coo and case in ("batched", "both"):
        pytest.skip("torch has no batched COO")
    dense_dim = int(case in ("hybrid", "both"))
    x = torch.zeros(shape, dtype=torch.float64)
    if case != "empty":
        pattern = torch.zeros(shape[-2 - dense_dim :][:2] if dense_dim else shape[-2:], dtype=torch.bool)
        pattern[0, 1] = pattern[2, 3] = pattern[2, 7] = True
        x = (torch.rand(shape, dtype=torch.float64) + 1) * (pattern[..., None] if dense_dim else pattern)
    given = as_layout(x, layout, dense_dim)
    t = ow.asarray(given)
    assert t.dtype == torch.float64
    assert t.shape == shape
    assert torch.equal(t.to_dense(), x)
    back = t.to_torch()
    assert back.layout == layout
    assert back.shape == given.shape
    assert torch.equal(back.to_dense(), x)
    if layout != torch.strided:
        assert back.dense_dim() == given.dense_dim()
    for mine, theirs in zip(parts(back), parts(given), strict=True):
        assert mine.data_ptr() == theirs.data_ptr()
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape


def test_torch_uncoalesced():
    given = torch.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
    t = ow.asarray(given)
    assert not t.is_coalesced()
    assert t.nse == 3
    assert torch.equal(t.to_dense(), given.to_dense())
    assert t._indices().data_ptr() == given._indices().data_ptr()
    c = t.coalesce()
    assert c.is_coalesced()
    assert c.nse == 2
    assert c.to_torch().is_coalesced()
    assert torch.equal(c.to_dense(), given.to_dense())


def test_torch_flag_is_not_trusted():
    given = torch.sparse_coo_tensor([[1, 0], [2, 0]], [1.0, 2.0], (2, 3), is_coalesced=True, check_invariants=False)
    t = ow.asarray(given)
    assert not t.is_coalesced()
    assert torch.equal(t.to_dense(), given.to_dense())


def test_torch_bfloat16_and_half():
    for dtype in (torch.bfloat16, torch.float16, torch.bool, torch.complex64, torch.uint8):
        x = torch.tensor([[0, 1], [2, 0]]).to(dtype)
        t = ow.asarray(x)
        assert t.dtype == dtype
        assert torch.equal(t.to_torch(), x)
        assert t.to_numpy().shape == (2, 2)
    t = ow.sparse_csr_tensor([0, 1, 2], [1, 0], torch.tensor([1.5, 2.5], dtype=torch.bfloat16), (2, 2))
    assert t.dtype == torch.bfloat16
    with pytest.raises(DTypeError, match="no sparse"):
        t.to_scipy()


def test_torch_numpy_mix():
    t = ow.sparse_csr_tensor(np.array([0, 1, 2]), np.array([1, 0]), torch.tensor([1.0, 2.0]), (2, 2))
    assert isinstance(t.pos(1), torch.Tensor)
    u = ow.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), np.array([1.0, 2.0]), (2, 2))
    assert isinstance(u.pos(1), np.ndarray)
    assert u.to_torch().layout == torch.sparse_csr
    np.testing.assert_array_equal(t.to_numpy(), u.to_numpy())


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", ["csr", "csc", "dcsr", "bsr(2, 4)", "bsr(4, 3)", "bsc(2, 4)", "dia", "ell(8)", "coo",
                                    "bitmap", "dense", "dense_f", "csf"])  # fmt: skip
def test_every_format_to_scipy_and_torch(format):
    a = dense()
    t = ow.asarray(a, format=format)
    np.testing.assert_array_equal(t.to_scipy().toarray(), a)
    np.testing.assert_array_equal(t.to_torch().to_dense().numpy(), a)
    for target in FORMATS:
        np.testing.assert_array_equal(t.to_scipy(target).toarray(), a)
    for layout in ("strided", "coo", "csr", "csc", "bsr", "bsc", torch.sparse_csr):
        np.testing.assert_array_equal(t.to_torch(layout).to_dense().numpy(), a)


def test_dense_views():
    x = dense()
    t = ow.asarray(x)
    assert same_memory(t.to_numpy(), x)
    assert same_memory(np.asarray(t), x)
    assert same_memory(np.from_dlpack(t), x)
    f = ow.asarray(np.asfortranarray(x), format="dense_f", copy=False)
    np.testing.assert_array_equal(f.to_numpy(), x)
    assert same_memory(f.T.to_numpy(), f.values)
    assert f.T.format == ow.format("dense")
    y = torch.rand(3, 4)
    assert ow.asarray(y).to_dense().data_ptr() == y.data_ptr()


def test_sparse_is_never_densified_silently():
    t = ow.asarray(sp.csr_array(dense()))
    with pytest.raises(UnsupportedError, match="384 bytes as a dense array"):
        np.asarray(t)
    with pytest.raises(UnsupportedError, match="__dlpack__"):
        np.from_dlpack(t)


def test_fill_value():
    a = np.where(dense() == 0, 7.0, dense())
    t = ow.asarray(a, format="csr", fill_value=7.0)
    assert t.nse == np.count_nonzero(a != 7)
    np.testing.assert_array_equal(t.to_numpy(), a)
    with pytest.raises(UnsupportedError, match=r"unspecified elements are 7\.0"):
        t.to_scipy()
    with pytest.raises(UnsupportedError, match="to_torch"):
        t.to_torch()
    with pytest.raises(UnsupportedError, match="would change them"):
        ow.asarray(sp.csr_array(dense()), fill_value=3)


def test_refusals():
    t = ow.asarray(sp.csr_array(dense()))
    with pytest.raises(UnsupportedError, match="no format 'xyz'"):
        t.to_scipy("xyz")
    with pytest.raises(UnsupportedError, match="no layout"):
        t.to_torch("xyz")
    with pytest.raises(UnsupportedError, match="rank 3"):
        ow.asarray(np.ones((2, 2, 2))).to_scipy("csr")
    with pytest.raises(UnsupportedError, match="is not an array"):
        ow.asarray(object())
    with pytest.raises(UnsupportedError, match="masked array"):
        ow.asarray(np.ma.masked_array([1.0, 2.0], [True, False]))
    for bad in (["a", "b"], np.array([object()]), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, np.longdouble)):
        with pytest.raises(DTypeError, match=r"supported|numbers"):
            ow.asarray(bad)


class Lent:
    """A tensor of torch that lies in memory of another kind, as its protocol says."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return (3, 0)  # memory of the host that a device reads

    def __dlpack__(self, **options):
        return self.x.__dlpack__()


def test_arrays_of_devices_are_torchs():
    t = ow.asarray(Lent(torch.arange(6.0).reshape(2, 3)))
    assert isinstance(t.values, torch.Tensor)
    np.testing.assert_array_equal(t.to_numpy(), np.arange(6).reshape(2, 3))
    assert type(ow.asarray(Host(np.arange(3.0))).values) is np.ndarray
    leaf = ow.asarray(torch.ones(2, 3, requires_grad=True))
    np.testing.assert_array_equal(np.asarray(leaf), np.ones((2, 3)))


class Host(Lent):
    def __dlpack_device__(self):
        return (1, 0)


def test_a_number_that_all_elements_are_is_held_to():
    for f in (
        "(d0, d1) -> (d0 : dense, d1 : dense)",
        "(d0, d1) -> (d1 : dense, d0 : dense)",
        "(d0, d1) -> (d0 : dense, d1 : compressed)",
    ):
        encoding = f"#sparse_tensor.encoding<{{ map = {f}, explicitVal = 3.0 : f64 }}>"
        t = ow.asarray(np.full((2, 2), 3.0), format=encoding)
        assert t.is_iso
        np.testing.assert_array_equal(t.to_numpy(), np.full((2, 2), 3))
        with pytest.raises(ValueError, match="3"):
            ow.asarray(np.full((2, 2), 4.0), format=encoding)


@pytest.mark.parametrize("part", ["indices", "data", "both"])
def test_one_buffer_of_scipys_is_longer(part):
    s = sp.csr_array(dense())
    want = s.toarray()
    if part != "data":
        s.indices = np.append(s.indices, s.indices[:2])
    if part != "indices":
        s.data = np.append(s.data, s.data[:2])
    np.testing.assert_array_equal(ow.asarray(s).to_numpy(), want)


def test_ragged_blocks_become_rows():
    x = dense(2, (5, 7))
    t = ow.asarray(x, format="bsr(2, 3)")
    assert t.to_scipy().format == "csr"
    for kind in ("csr", "bsr", "coo"):
        np.testing.assert_array_equal(t.to_scipy(kind).toarray(), x)
    for format, shape, blocksize in (
        ("bsc(2, 3)", (4, 6), (2, 3)),
        ("bsr(2, 3)", (5, 7), (1, 1)),
        ("csr", (4, 6), (1, 1)),
    ):
        assert ow.asarray(dense(2, shape), format=format).to_scipy("bsr").blocksize == blocksize


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), (2, 3, 2, 2), (0,), (0, 3, 2)])
def test_formats_that_scipy_has_not_become_coordinates(shape):
    x = dense(3, shape)
    for format in ("csf", "bitmap", "coo", "(nonunique, unordered)", "dense"):
        if format == "csf" and len(shape) == 1:
            continue
        t = ow.asarray(x, format="coo" + format if format[0] == "(" else format)
        for back in (t.to_scipy(), t.to_scipy("coo")):
            assert back.format == "coo"
            np.testing.assert_array_equal(back.toarray(), x)
        if len(shape) > 1:
            with pytest.raises(UnsupportedError, match="csr of rank"):
                t.to_scipy("csr")
        for layout in ("csr", "csc", "bsr", "bsc")[: 4 * (len(shape) == 1)]:
            with pytest.raises(UnsupportedError, match=f"{layout} of rank 1"):
                t.to_torch(layout)


def test_index_buffers_of_two_widths_become_one():
    for pos, crd in (("i4", "i8"), ("i8", "i4")):
        buffers = {"pos": {1: np.array([0, 1, 2], pos)}, "crd": {1: np.array([0, 2], crd)}}
        t = ow.assemble("csr", (2, 3), values=np.array([5.0, 7]), **buffers)
        for back in (t.to_scipy(), t.to_scipy("coo"), t.to_torch(), t.to_torch("coo"), t.to_torch("bsr")):
            found = back.toarray() if hasattr(back, "toarray") else back.to_dense().numpy()
            np.testing.assert_array_equal(found, [[5, 0, 0], [0, 0, 7]])
        assert t.to_torch().crow_indices().dtype == t.to_torch().col_indices().dtype == torch.int64


def test_values_with_axes_are_torchs():
    """`block_values`, of dense tensors and where no value tells how many are stored too."""
    rows = torch.tensor([[0, 2]])
    for x, want in (
        (torch.ones(2, 3), (2, 3)), (torch.sparse_coo_tensor(rows, torch.ones(2, 0), (3, 0)), (2, 0)),
        (torch.sparse_coo_tensor(rows, torch.ones(2, 4), (3, 4)), (2, 4)), (torch.ones(2, 3).to_sparse_csr(), (6,)),
        (torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.ones(0, 0), (3, 3, 0)), (0, 0)),
        (torch.ones(4, 6).to_sparse_bsr((2, 3)), (4, 2, 3)), (torch.ones(4, 6).to_sparse_bsc((2, 3)), (4, 2, 3)),
        (torch.ones(5, 4, 6).to_sparse_csr(), (5, 24)), (torch.ones(4, 6, 2).to_sparse_csr(dense_dim=1), (24, 2)),
    ):  # fmt: skip
        t = ow.asarray(x)
        assert tuple(t.block_values.shape) == want
        if x.layout is not torch.strided:
            theirs = x._values() if x.layout is torch.sparse_coo else x.values()
            assert torch.equal(t.block_values, theirs)


def test_buffers_with_axes_that_do_not_fit():
    pos, crd, one = np.array([0, 1, 2]), np.array([0, 2]), np.ones(2)
    for number, call in (
        ("3.2", lambda: ow.assemble("csr", (2, 3), pos={1: pos[None]}, crd={1: crd}, values=one)),
        ("3.3", lambda: ow.assemble("csr", (2, 3), pos={1: pos}, crd={1: crd[None]}, values=one)),
        ("3.4", lambda: ow.assemble("csr", (2, 3), pos={1: pos}, crd={1: crd}, values=one[:, None])),
        ("3.4", lambda: ow.assemble("bsr(1, 1)", (2, 3), pos={1: pos}, crd={1: crd}, values=one[:, None])),
        ("3.10", lambda: ow.assemble("bsr(1, 1)", (2, 3), pos={1: pos}, crd={1: crd}, values=np.ones((2, 1, 2)))),
        ("3.9", lambda: ow.sparse_csr_tensor([], [0, 1], [1.0], (0, 2))),
        ("3.10", lambda: ow.sparse_csr_tensor([0, 2], [0, 1], [1.0], (1, 2))),
        ("3.1", lambda: ow.sparse_coo_tensor(np.zeros((0, 2), int), np.ones((2, 3)), (4,))),
        ("3.1", lambda: ow.sparse_coo_tensor(np.zeros((0, 2), int), np.ones((2, 3)), (3, 1))),
    ):
        with pytest.raises(ow.InvariantError, match=rf"\(invariant {re.escape(number)}\)$"):
            call()
    with pytest.raises(
        ow.InvariantError,
        match=r"^rank of crow_indices\n  expected: 1 axis, or batch axes and 1(.|\n)*\(invariant 3\.2\)$",
    ):
        ow.sparse_csr_tensor(0, [0], [1.0], (1, 1))
    np.testing.assert_array_equal(
        ow.sparse_coo_tensor(np.zeros((0, 2), int), np.ones((2, 3)), (3,)).to_numpy(), [2, 2, 2]
    )


def test_more_refusals():
    with pytest.raises(ShapeError, match="equal length"):
        ow.asarray([[1, 2], [3]])
    assert ow.asarray([1, 2], copy=False).shape == (2,)
    with pytest.raises(DTypeError, match="no sparse float16"):
        ow.asarray(np.eye(2, dtype="float16"), format="csr").to_scipy()
    with pytest.raises(UnsupportedError, match="torch layout"):
        ow.asarray(torch.eye(2).to_mkldnn())


class FakeCOO:
    """The attributes of pydata's COO."""

    def __init__(self, coords, data, shape, fill_value=0.0):
        self.coords, self.data, self.shape, self.fill_value = coords, data, shape, fill_value


class FakeGCXS:
    def __init__(self, data, indices, indptr, compressed_axes, shape, fill_value=0.0):
        self.data, self.indices, self.indptr = data, indices, indptr
        self.compressed_axes, self.shape, self.fill_value = compressed_axes, shape, fill_value


FakeCOO.__module__ = FakeGCXS.__module__ = "sparse._fake"


def test_pydata_coo():
    a = dense(2, (3, 4, 5))
    coords = np.array(np.nonzero(a))
    data = a[tuple(coords)]
    t = ow.asarray(FakeCOO(coords, data, a.shape, np.float64(0)))
    np.testing.assert_array_equal(t.to_numpy(), a)
    assert same_memory(t.indices(), coords)
    assert same_memory(t.values, data)
    assert t.is_coalesced()
    u = ow.asarray(FakeCOO(coords.astype(np.uint8), data, a.shape, np.float64(3)))
    assert u.fill_value == 3.0
    np.testing.assert_array_equal(u.to_numpy(), np.where(a == 0, 3.0, a))
    assert ow.asarray(FakeCOO(np.zeros((0, 1), int), np.array([4.0]), ())).item() == 4.0


def test_pydata_gcxs():
    a = dense(3, (6, 8))
    for axes, kind in (((0,), "csr"), ((1,), "csc")):
        s = sp.csr_array(a).asformat(kind)
        t = ow.asarray(FakeGCXS(s.data, s.indices, s.indptr, axes, a.shape))
        assert t.format == ow.format(kind)
        assert same_memory(t.crd(1), s.indices)
        np.testing.assert_array_equal(t.to_numpy(), a)
    b = dense(4, (3, 4, 5))
    for axes in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2)):
        rest = tuple(x for x in range(3) if x not in axes)
        s = sp.csr_array(b.transpose(axes + rest).reshape(int(np.prod([b.shape[x] for x in axes])), -1))
        t = ow.asarray(FakeGCXS(s.data, s.indices, s.indptr, axes, b.shape))
        np.testing.assert_array_equal(t.to_numpy(), b)
        assert same_memory(t.values, s.data)


class Exporter:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **kwargs):
        return self.x.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack_objects():
    x = np.arange(6.0).reshape(2, 3)
    t = ow.asarray(Exporter(x))
    assert same_memory(t.values, x)


def test_scalars_and_lists():
    for obj in (3, 2.5, 1j, True, [1, 2], [[1.0], [2.0]], np.float32(2), (), [[]], range(3)):
        t = ow.asarray(obj)
        np.testing.assert_array_equal(t.to_numpy(), np.asarray(obj))
        assert t.shape == np.shape(obj)
        assert t.format == ow.format("dense", t.ndim)


def test_copies_and_pickles_keep_no_addresses():
    t = ow.asarray(sp.csr_array(dense()))
    assert t._storage.addresses
    for other in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), t.clone()):
        np.testing.assert_array_equal(other.to_numpy(), t.to_numpy())
        assert other._storage.addresses != t._storage.addresses
        assert other.format == t.format


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
def test_diagonals_of_nothing(shape: tuple[int, int]) -> None:
    back = ow.asarray(np.zeros(shape, np.float32), format="dia").to_scipy()
    assert (back.format, back.shape, back.dtype) == ("dia", shape, np.float32)
