from __future__ import annotations

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, FormatError, InvariantError, ShapeError, UnsupportedError
from openwork.storage.buffers import strided_address


def test_assemble_shares_buffers():
    pos, crd, values = np.array([0, 2, 3], "i4"), np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0], "f4")
    t = ow.assemble("csr", (2, 3), pos={1: pos}, crd={1: crd}, values=values)
    assert [strided_address(b) for b in (t.pos(1), t.crd(1), t.values)] == [
        strided_address(b) for b in (pos, crd, values)
    ]
    assert t.pos(1).dtype == np.int32
    assert t.crd(1).dtype == np.int64
    assert t.pos(0) is None
    assert t.crd(0) is None
    np.testing.assert_array_equal(t.to_numpy(), [[1, 0, 2], [0, 3, 0]])


def test_assemble_takes_sequences_lists_and_a_root_pos():
    t = ow.assemble("coo", (2, 3), crd=[[0, 1], [2, 0]], values=[5, 6])
    np.testing.assert_array_equal(t.pos(0), [0, 2])
    assert t.dtype == np.int64
    u = ow.assemble("csr", (2, 3), pos=[None, [0, 0, 0]], crd=[None, []], values=[])
    assert u.nse == 0
    assert u.crd(1).dtype == np.int64


def test_scalar():
    t = ow.assemble("() -> ()", (), values=[4.0])
    assert t.shape == ()
    assert t.nse == 1
    assert float(t) == 4.0
    assert ow.assemble("dense", (), values=4.0).item() == 4.0


def test_non_contiguous_buffers_are_copied():
    wide = np.array([[0, 9], [1, 9], [3, 9]])
    crd = np.array([2, 1, 0])[::-1][[1, 0, 2]][::1]
    t = ow.assemble("csr", (2, 3), pos={1: wide[:, 0]}, crd={1: np.repeat(crd, 2)[::2]}, values=np.arange(6.0)[::2])
    np.testing.assert_array_equal(t.to_numpy(), [[0, 0, 0], [2, 0, 4]])
    assert all(b.flags.c_contiguous for b in (t.pos(1), t.crd(1), t.values))


HYBRID = "(i, j, k) -> (i : dense, j : compressed, k : dense)"
BATCHED = "(b, i, j) -> (b : batch, i : dense, j : compressed)"
REPEATED = "(i, j) -> (i : dense, j : compressed(nonunique))"
INFERRED = [
    ("csr", {"pos": {1: [0, 2, 3]}, "crd": {1: [0, 4, 1]}, "values": [1, 2, 3]}, (2, 5)),
    ("csr", {"pos": {1: [0]}, "crd": {1: []}, "values": []}, (0, 0)),
    ("csc", {"pos": {1: [0, 2, 3]}, "crd": {1: [0, 4, 1]}, "values": [1, 2, 3]}, (5, 2)),
    ("coo", {"crd": {0: [0, 3], 1: [7, 1]}, "values": [1, 2]}, (4, 8)),
    ("dcsr", {"pos": {1: [0, 2, 3]}, "crd": {0: [1, 6], 1: [0, 4, 1]}, "values": [1, 2, 3]}, (7, 5)),
    ("bsr(2, 3)", {"pos": {1: [0, 1, 2]}, "crd": {1: [1, 0]}, "values": np.ones((2, 2, 3))}, (4, 6)),
    ("bsc(2, 3)", {"pos": {1: [0, 1, 2]}, "crd": {1: [1, 0]}, "values": np.ones(12)}, (4, 6)),
    (REPEATED, {"pos": {1: [0, 3]}, "crd": {1: [0, 0, 0]}, "values": [1, 2, 3]}, (1, 1)),
    (HYBRID, {"pos": {1: [0, 2]}, "crd": {1: [0, 3]}, "values": np.ones((2, 5))}, (1, 4, 5)),
    (HYBRID, {"pos": {1: [0, 2]}, "crd": {1: [0, 3]}, "values": np.ones(10)}, (1, 4, 5)),
    (BATCHED, {"pos": {2: [[0, 1, 2], [0, 0, 2]]},
               "crd": {2: [[0, 1], [1, 3]]}, "values": np.ones((2, 2))}, (2, 2, 4)),
    ("dense", {"values": np.ones((3, 4))}, (3, 4)),
    ("ell(2)", {"crd": {1: [0, 5, 1, -1]}, "values": np.ones(4)}, (2, 6)),
    ("nm(2, 4)", {"crd": {2: [0, 1, 2, 3]}, "values": np.ones(4)}, None),
    ("bitmap", {"crd": {1: np.ones(6, bool)}, "values": np.ones(6)}, None),
    (BATCHED, {"pos": {2: [0, 1]}, "crd": {2: [0]}, "values": [1]}, None),
]  # fmt: skip


@pytest.mark.parametrize(("format", "buffers", "shape"), INFERRED)
def test_inferred_shapes(format, buffers, shape):
    if shape is None:
        with pytest.raises(ShapeError, match=r"help: give the shape"):
            ow.assemble(format, None, **buffers)
    else:
        t = ow.assemble(format, None, **buffers)
        assert t.shape == shape
        assert t.to_numpy().shape == shape


def test_columns_from_the_longest_row():
    """ncols = max(crd.max() + 1, diff(pos).max())."""
    with pytest.raises(InvariantError, match=r"5.6"):
        ow.sparse_csr_tensor([0, 3], [0, 0, 0], [1, 2, 3])
    t = ow.sparse_csr_tensor([0, 3], [0, 0, 0], [1, 2, 3], check_invariants=False)
    assert t.shape == (1, 3)


@pytest.mark.parametrize("index", ["i4", "i8"])
def test_torch_constructors(index):
    pos, crd, values = np.array([0, 1, 3], index), np.array([1, 0, 2], index), np.array([1.0, 2.0, 3.0])
    csr = ow.sparse_csr_tensor(pos, crd, values)
    assert csr.shape == (2, 3)
    assert csr.format == ow.format("csr")
    assert strided_address(csr.crow_indices()) == strided_address(pos)
    assert strided_address(csr.col_indices()) == strided_address(crd)
    csc = ow.sparse_csc_tensor(pos, crd, values, size=(4, 2))
    assert csc.shape == (4, 2)
    assert strided_address(csc.ccol_indices()) == strided_address(pos)
    assert strided_address(csc.row_indices()) == strided_address(crd)
    bsr = ow.sparse_bsr_tensor(pos, crd, np.ones((3, 2, 5)))
    assert bsr.shape == (4, 15)
    assert bsr.format == ow.format("bsr(2, 5)")
    bsc = ow.sparse_bsc_tensor(pos, crd, np.ones((3, 2, 5)))
    assert bsc.shape == (6, 10)
    coo = ow.sparse_coo_tensor(np.stack([crd, crd]), values)
    assert coo.shape == (3, 3)
    assert not coo.is_coalesced()
    assert ow.sparse_coo_tensor([[0, 1], [0, 1]], [1, 2], is_coalesced=True).is_coalesced()
    assert ow.sparse_coo_tensor([[0, 1]], np.ones((2, 3, 4))).shape == (2, 3, 4)


def test_agrees_with_torch():
    torch = pytest.importorskip("torch")
    for batch in ((), (2,), (2, 3)):
        for dense in ((), (4,)):
            pos = torch.tensor([0, 1, 3]).expand(*batch, 3).contiguous()
            crd = torch.tensor([1, 0, 2]).expand(*batch, 3).contiguous()
            for name in ("csr", "csc", "bsr", "bsc"):
                block = (2, 5) if name in ("bsr", "bsc") else ()
                values = torch.rand(*batch, 3, *block, *dense)
                theirs = getattr(torch, f"sparse_{name}_tensor")(pos, crd, values)
                mine = getattr(ow, f"sparse_{name}_tensor")(pos, crd, values)
                assert mine.shape == tuple(theirs.shape)
                if not (block and dense):
                    assert torch.equal(mine.to_dense(), theirs.to_dense())
                assert mine.values.data_ptr() == values.data_ptr()
                explicit = getattr(ow, f"sparse_{name}_tensor")(pos, crd, values, tuple(theirs.shape))
                assert explicit.format == mine.format


def test_column_major_blocks_are_recognised():
    values = np.arange(12.0).reshape(2, 3, 2).transpose(0, 2, 1)
    t = ow.sparse_bsr_tensor([0, 1, 2], [0, 1], values)
    assert strided_address(t.values) == strided_address(values)
    np.testing.assert_array_equal(t.to_numpy()[:2, :3], values[0])
    assert t.format != ow.format("bsr(2, 3)")


def test_options():
    torch = pytest.importorskip("torch")
    t = ow.sparse_csr_tensor([0, 1], [0], [1], (1, 2), dtype="float32")
    assert t.dtype == np.float32
    g = ow.sparse_csr_tensor([0, 1], [0], torch.tensor([1.0]), requires_grad=True)
    assert g.values.requires_grad
    with pytest.raises(UnsupportedError, match="requires_grad needs torch"):
        ow.sparse_csr_tensor([0, 1], [0], [1.0], requires_grad=True)
    assert ow.sparse_csr_tensor([0, 1], [0], [1.0], device="cpu").device == "cpu"
    with pytest.raises(UnsupportedError, match=r"device 'cuda': cuda.core is not installed"):
        ow.sparse_csr_tensor([0, 1], [0], [1.0], device="cuda" if not torch.cuda.is_available() else "xpu")


BAD = [
    (lambda: ow.sparse_csr_tensor([0, 1], [0], [1.0], (1, -1)), InvariantError, "3.1"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], [1.0], (1, 2**70)), InvariantError, "3.1"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], [1.0], (2**62, 2**62)), InvariantError, "3.8"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], [1.0], "ab"), ShapeError, "tuple of integers"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], [1.0], (1.5, 2)), ShapeError, "tuple of integers"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], [1.0], (1, 2, 3)), InvariantError, "(?s)size agrees.*invariant 3.1"),
    (lambda: ow.sparse_csr_tensor([0.0, 1.0], [0], [1.0], (1, 2)), InvariantError, "1.1"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0.5], [1.0]), InvariantError, "1.2"),
    (lambda: ow.sparse_csr_tensor([0, 1], np.array([0], object), [1.0]), DTypeError, "object"),
    (lambda: ow.sparse_csr_tensor([0, 1], np.array([0], "u1"), [1.0]), InvariantError, "1.3"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], ["x"]), DTypeError, "not supported"),
    (lambda: ow.sparse_csr_tensor([0, 1], [0], 1.0), InvariantError, "3.4"),
    (lambda: ow.sparse_csr_tensor([0, 1], [[0]], [1.0]), InvariantError, "3.3"),
    (lambda: ow.sparse_csr_tensor([0, 2], [0, 1], [1.0]), InvariantError, "3.10"),
    (lambda: ow.sparse_csr_tensor([[0, 1]], [[0]], [1.0]), InvariantError, "3.4"),
    (lambda: ow.sparse_csr_tensor([[0, 1]], [[0]], [[1.0]], (2, 1, 1)), InvariantError, "(?s)batch axes of crow_indices.*invariant 3.8"),
    (lambda: ow.sparse_csr_tensor([[0, 1]] * 2, [[0]], [[1.0]] * 2), InvariantError, "(?s)batch axes of col_indices.*invariant 3.9"),
    (lambda: ow.sparse_csr_tensor([0, 1], [5], [1.0], (1, 3)), InvariantError, "5.5"),
    (lambda: ow.sparse_bsr_tensor([0, 1], [0], np.ones((1, 2, 3)), (3, 3)), InvariantError, "(?s)size.*invariant 3.1"),
    (lambda: ow.sparse_bsr_tensor([0, 1], [0], [1.0]), InvariantError, "3.4"),
    (lambda: ow.sparse_bsr_tensor([0, 1], [0], np.ones((1, 0, 3))), InvariantError, "(?s)blocks.*invariant 3.10"),
    (lambda: ow.sparse_coo_tensor([0, 1], [1.0, 2.0]), InvariantError, "(?s)indices.*invariant 3.3"),
    (lambda: ow.sparse_coo_tensor([[0, 1]], [1.0]), InvariantError, "3.10"),
    (lambda: ow.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2)), InvariantError, "(?s)size.*invariant 3.1"),
    (lambda: ow.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,)), InvariantError, "5.5"),
    (lambda: ow.sparse_coo_tensor([[0, -5]], [1.0, 2.0]), InvariantError, "5.4"),
    (lambda: ow.sparse_coo_tensor([[1, 0]], [1.0, 2.0], is_coalesced=True), InvariantError, "5.6"),
    (lambda: ow.assemble("csr", (2, 2), pos={7: [0]}, crd={1: []}, values=[]), InvariantError, "(?s)pos.7..*invariant 2.4"),
    (lambda: ow.assemble("csr", (2, 2), crd={1: []}, values=[]), InvariantError, "(?s)pos.1..*invariant 2.4"),
    (lambda: ow.assemble("csr", (2, 2, 2), values=[]), FormatError, "dimensions"),
    (lambda: ow.assemble("csr", None, pos={1: ["a"]}, crd={1: []}, values=[]), DTypeError, "not supported"),
    (lambda: ow.assemble("dense", (2, 2), values=np.ones((2, 3))), InvariantError, "3.10"),
    (lambda: ow.assemble("dense", (2**40, 2**40), values=[1.0]), InvariantError, "3.10"),
    (lambda: ow.assemble("(i, j) -> (i + j : compressed, i : range)", (2**63 - 1,) * 2, crd={0: []}, values=[]),
     InvariantError, "(?s)coordinates.*invariant 3.1"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_malformed_input(case):
    make, kind, says = BAD[case]
    with pytest.raises(kind, match=says):
        make()


def test_check_false_skips_the_indices_only():
    assert ow.assemble("csr", (1, 3), pos={1: [0, 2]}, crd={1: [2, 0]}, values=[1, 2], check=False).nse == 2
    with pytest.raises(InvariantError, match=r"3.8"):
        ow.assemble("csr", (9, 3), pos={1: [0, 2]}, crd={1: [2, 0]}, values=[1, 2], check=False)


def test_fill_values():
    t = ow.assemble("csr", (1, 3), pos={1: [0, 1]}, crd={1: [1]}, values=[5.0], fill_value=np.float32(2))
    assert t.fill_value == 2.0
    assert type(t.fill_value) is float
    np.testing.assert_array_equal(t.to_numpy(), [[2, 5, 2]])
    with pytest.raises(DTypeError, match="does not fit"):
        ow.assemble("csr", (1, 3), pos={1: [0, 1]}, crd={1: [1]}, values=[5], fill_value=float("nan"))
    with pytest.raises(DTypeError, match="does not fit"):
        ow.assemble("csr", (1, 3), pos={1: [0, 1]}, crd={1: [1]}, values=[5.0], fill_value=1j)


@pytest.mark.parametrize(
    ("dtype", "value", "says"),
    [
        ("int8", 1.5, "does not fit i8"), ("int8", 300, "does not fit i8"), ("uint8", -1, "does not fit u8"),
        ("int64", 1e300, "does not fit i64"), ("int64", 2**63, "does not fit i64"), ("int32", np.inf, "does not fit"),
        ("float64", 2**2000, "does not fit f64"), ("float32", 1e300, "does not fit f32"), ("float16", 65536, "does not fit f16"), ("complex64", 1e39j, "does not fit c64"),
        ("float64", None, "expected a number; got "), ("bool", 2, "does not fit bool"), ("bool", "a", "expected a number; got "), ("float64", np.zeros(2), "expected a number; got "),
    ],
)  # fmt: skip
def test_fill_values_that_a_dtype_does_not_hold(dtype, value, says):
    values = np.array([0, 1], dtype)
    for make in (
        lambda fill: ow.asarray(values, format="coo", fill_value=fill), lambda fill: ow.asarray(values, fill_value=fill),
        lambda fill: ow.assemble("coo", (3,), pos={0: [0, 1]}, crd={0: [1]}, values=values[1:], fill_value=fill),
    ):  # fmt: skip
        with pytest.raises(DTypeError, match=says):
            make(value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", 127),
        ("int8", -128),
        ("uint64", 2**64 - 1),
        ("int8", 2.0),
        ("float32", np.inf),
        ("float16", 65504),
        ("bool", 1),
        ("float32", np.array(0.5)),
        ("complex64", np.nan),
    ],
)
def test_fill_values_that_a_dtype_just_holds(dtype, value):
    t = ow.assemble("coo", (3,), pos={0: [0, 1]}, crd={0: [1]}, values=np.ones(1, dtype), fill_value=value)
    np.testing.assert_array_equal(t.to_numpy(), np.array([np.array(value, dtype), 1, np.array(value, dtype)], dtype))


def test_random():
    t = ow.random((30, 40), 0.1, rng=3)
    assert t.nse == 120
    assert t.is_coalesced()
    assert t.format == ow.format("coo")
    np.testing.assert_array_equal(t.to_numpy(), ow.random((30, 40), 0.1, rng=3).to_numpy())
    assert ow.random((30, 40), 0.9, rng=3, format="csr").nse == 1080
    assert ow.random((4, 5, 6), 1.0, rng=0, dtype="int8").nse == 120
    assert ow.random((10**9, 10**9), 1e-15, rng=0).nse == 1000
    assert ow.random((2**40, 2**40), 1e-21, rng=0).nse == round(2**80 * 1e-21)
    assert ow.random((0, 5), 0.5).nse == 0
    assert ow.random((), 1.0).shape == ()
    for dtype in ("bool", "uint8", "float32", "complex64"):
        assert ow.random((5, 5), 0.5, dtype=dtype).dtype == np.dtype(dtype)
    ones = ow.random((5, 5), 0.2, rng=0, values=np.ones)
    np.testing.assert_array_equal(ones.values, np.ones(5))
    with pytest.raises(ValueError, match="density from 0 to 1"):
        ow.random((5, 5), 2)
    with pytest.raises(ShapeError, match="negative"):
        ow.random((5, -5))
    with pytest.raises(ShapeError, match="expected 5 values"):
        ow.random((5, 5), 0.2, values=lambda n: np.ones(n + 1))


def test_random_places_are_uniform():
    counts = np.zeros(6)
    for seed in range(600):
        counts += ow.random((2, 3), 1 / 3, rng=seed).to_numpy().reshape(-1) != 0
    assert counts.sum() == 1200
    assert abs(counts - 200).max() < 60


def test_asarray_of_a_tensor():
    t = ow.asarray(np.eye(3), format="csr")
    assert ow.asarray(t) is t
    assert ow.asarray(t, copy=True) is not t
    assert ow.asarray(t, dtype="float32").dtype == np.float32
    assert ow.asarray(t, format="csc").format == ow.format("csc")
    assert t.nse == 3
