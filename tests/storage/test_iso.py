"""Tensors whose stored elements are one value that takes no memory for each: what keeps it, what gives them their own."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, ExportError, FormatError, InvariantError, UnsupportedError
from openwork.faults import injected, nth
from openwork.storage import iso
from openwork.storage.buffers import torch_dtype

ENCODING = "#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed), explicitVal = %s }>"
rng = np.random.default_rng(7)
D = np.where(rng.random((7, 9)) < 0.3, rng.random((7, 9)), 0)
E = np.where(rng.random((9, 6)) < 0.3, rng.random((9, 6)), 0)
OPERATIONS = (
    lambda t: t @ E, lambda t: E.T @ t.T, lambda t: t @ ow.asarray(E, format="csr"), lambda t: t + ow.asarray(D, format="coo"),
    lambda t: t * D, ow.exp, lambda t: t * 3, lambda t: 1 - t, lambda t: t.sum(axis=0), lambda t: t.max(), lambda t: t[2:5],
    lambda t: t[:, [3, 1, 1]], lambda t: t.reshape(9, 7), lambda t: ow.concat([t, t]), lambda t: t > 1, ow.tril,
    lambda t: t.astype("float32"), lambda t: ow.softmax(t, 1), lambda t: t.T.asformat("dcsr"), lambda t: t.coalesce(),
)  # fmt: skip


def test_every_operation_is_that_of_as_many_values() -> None:
    for format in ("csr", "coo", "bsr(2, 3)", "dia", "bitmap"):
        A = ow.asarray(D, format=format)
        one, many = ow.iso(A, 2.5), A.with_values(2.5)
        assert one.is_iso
        assert not many.is_iso
        assert one.nbytes == many.nbytes - many.values.nbytes + 8
        for operation in OPERATIONS:
            x, y = operation(one), operation(many)
            assert np.array_equal(np.asarray(ow.asarray(x).to_numpy()), np.asarray(ow.asarray(y).to_numpy()))


def test_what_stays_iso() -> None:
    A = ow.iso(ow.asarray(D, format="csr"), 1)
    kept = (
        A.T, A[1:4], A[[3, 1]], A[:, 2:5], A * 2, -A, ow.sin(A), A > 0, A.astype("int8"), A.asformat("coo"), A.asformat("csc"),
        A.reshape(9, 7), ow.tril(A), copy.copy(A), copy.deepcopy(A), pickle.loads(pickle.dumps(A)), ow.iso(A.clone()),
        ow.asarray((D != 0) * 1.0, format=ENCODING % "1.0 : f64"),
    )  # fmt: skip
    for B in kept:
        assert B.is_iso
        assert "iso" in repr(B)
    assert len(pickle.dumps(ow.iso(ow.asarray(np.ones((500, 500)), format="dense"), 3))) < 2000
    for B in (A.clone(), A + A, A.asformat("dense"), A.asformat("bsr(2, 2)"), A.with_values(1.0)):
        assert not B.is_iso
    assert ow.iso(ow.asarray(np.zeros((3, 3)), format="csr"), 1).nse == 0


def test_in_place_forms_give_values_of_their_own() -> None:
    for change in (
        lambda t: t.__imul__(3),
        lambda t: t.__setitem__((0, 0), 7.0),
        lambda t: t.zero_(),
        lambda t: t.__iadd__(t),
    ):
        A = ow.iso(ow.asarray(D, format="csr"), 1)
        B, W = A.T, A.clone()
        change(A)
        change(W)
        assert np.array_equal(A.to_numpy(), W.to_numpy())
        assert not A.is_iso
        assert np.array_equal(B.to_numpy(), (D.T != 0) * 1.0)
        assert B.is_iso
    with pytest.raises(ValueError, match="read-only"):
        ow.iso(ow.asarray(D, format="csr"), 1).values[0] = 2
    with pytest.raises(ValueError, match="WRITEABLE"):
        ow.iso(ow.asarray(D, format="csr"), 1).values.flags.writeable = True


def test_memory_is_that_of_a_few_pages_and_given_back() -> None:
    like, n = np.zeros(1), 3_000_000
    values = iso.repeated(0.5, "f64", n, like)
    assert values.sum() == n / 2
    assert iso.is_iso(values[5:9][1:])
    assert iso.repeated(0.5, "f64", 10, like).ctypes.data == values.ctypes.data  # a view of the longest
    with open("/proc/self/smaps") as file:
        sizes, mapped = [], False
        for line in file:
            mapped = "openwork-iso" in line if "-" in line.split()[0] else mapped
            sizes += [int(line.split()[1])] if mapped and line.startswith("Pss:") else []
    assert sizes
    assert sum(sizes) < 2000
    del values
    gc.collect()
    assert not [key for key in iso._longest if key[0] == "f64" and key[1] == np.float64(0.5).tobytes()]
    with pytest.raises(MemoryError):
        iso.repeated(0.5, "f64", 1 << 60, like)
    with injected(nth("allocate", 1)), pytest.raises(MemoryError):
        iso.repeated(0.5, "f64", 10, like)


def test_every_type_has_such_values(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    for scalar in ("bool", "i8", "u16", "i64", "f16", "f32", "c64", "c128"):
        x = iso.repeated(1, scalar, 20_001, np.zeros(1))
        assert len(x) == 20_001
        assert bool((x == 1).all())
    x = iso.repeated(1, "f32", 20_001, torch.zeros(1))
    assert x.dtype == torch_dtype("f32")
    assert float(x.sum()) == 20_001
    assert iso.is_iso(x)
    monkeypatch.setattr(iso, "_libc", lambda: None)  # a system without mappings: ordinary arrays
    for like in (np.zeros(1), torch.zeros(1)):
        y = iso.repeated(3.25, "f64", 5, like)
        assert y.tolist() == [3.25] * 5
        assert not iso.is_iso(y)


def test_torch_values_that_are_written_to_become_their_own() -> None:
    torch = pytest.importorskip("torch")
    A = ow.iso(ow.asarray(D, format="csr", like="torch"), 1)
    assert A.is_iso
    assert A.asformat("coo").is_iso
    assert pickle.loads(pickle.dumps(A)).is_iso
    x = torch.ones(9, dtype=torch.float64)
    assert torch.equal(A @ x, torch.from_numpy((D != 0).sum(1) * 1.0))
    other = ow.iso(ow.asarray(D, format="csr", like="torch"), 1)
    A.values[0] = 5
    assert not A.is_iso
    assert other.is_iso
    assert A.values[1] == 1
    A *= 2
    assert A.values[0] == 10
    assert other.values[0] == 1
    for B in (
        ow.asarray(D, format="csr").iso(2, dtype=torch.float32),
        ow.asarray(D != 0, format="csr").iso(dtype=torch.float32),
    ):
        assert B.is_iso
        assert B.values.dtype == torch.float32
    leaf = ow.iso(A, 1).requires_grad_()
    (leaf @ x).sum().backward()
    assert not leaf.is_iso
    assert leaf.grad.nse == A.nse
    for arguments in ((leaf,), (A, torch.ones((), requires_grad=True))):
        with pytest.raises(UnsupportedError, match="no gradient"):
            ow.iso(*arguments)
    assert ow.iso(A, torch.tensor(3)).values[0] == 3


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writ")
def test_torch_writes_to_read_only_arrays_and_no_tensor_sees_it() -> None:
    """torch heeds no flag of NumPy's: pages that cannot be written to would end the process."""
    torch = pytest.importorskip("torch")
    A = ow.iso(ow.asarray(D, format="csr"), 1.5)
    B, dense = A.T, ow.iso(ow.asarray(D), 1.5)
    doors = (
        A.values, A.block_values, A.to_scipy().data, A.asformat("coo").to_scipy().data, np.asarray(dense), dense.to_numpy(),
        dense.to_dense(), ow.iso(ow.asarray(D, format="bsr(2, 3)"), 1.5).block_values,
    )  # fmt: skip
    for array in doors:
        for taken in (torch.from_numpy, torch.from_dlpack, torch.as_tensor):
            taken(array).flatten()[0] = 7
    for array in doors:
        assert not array.flags.writeable
        assert array.flat[0] == 7
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert not A.with_values(doors[0]).is_iso
    assert A.with_values(A.values).is_iso
    for t in (A, B, dense, ow.iso(A, 1.5)):
        assert t.is_iso
        assert (t.values == 1.5).all()
        assert t.sum() == 1.5 * t.nse
    torch.from_dlpack(dense)[0, 0] = 7
    assert float(dense[0, 0]) == 1.5


def test_refusals() -> None:
    A = ow.asarray(D, format="csr")
    for call, error, match in (
        (lambda: ow.iso(A), InvariantError, "at every position; got: .* at position 1"),
        (lambda: ow.iso(A, [1, 2]), DTypeError, "expected a number; got list"),
        (lambda: ow.iso(A, 1j), DTypeError, "1j does not fit f64"),
        (lambda: ow.iso(A, 0.5, dtype="int32"), DTypeError, "0.5 does not fit i32"),
        (lambda: ow.iso(A, 300, dtype="int8"), DTypeError, "300 does not fit i8"),
        (lambda: A.asformat(ENCODING % "1.0 : f64"), InvariantError, "asformat: .*\n.*expected: 1.0"),
        (lambda: ow.einsum("ij->ij", A, format=ENCODING % "1.0 : f64"), FormatError, "about the values"),
    ):
        with pytest.raises(error, match=match):
            call()
    for dtype in ("int8", "uint64", "bool", "int64"):
        limits = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        for number in (*limits, 1.0):
            assert (ow.iso(A, number, dtype=dtype).values == np.dtype(dtype).type(number)).all()
        for number in (limits[0] - 1, limits[1] + 1, np.nan, np.inf, 0.5):
            with pytest.raises(DTypeError, match="does not fit"):
                ow.iso(A, number, dtype=dtype)
    restored, parts = ow.iso(A, 1)._storage.__reduce__()
    for count in (-1, 2.0, "3"):
        with pytest.raises(InvariantError, match="times values"):
            restored(*parts[:-1], count)


def test_explicit_values_of_an_encoding() -> None:
    for text, value in (
        ("1.0 : f64", 1.0),
        ("3 : i32", 3),
        ("-2", -2),
        ("true", True),
        ("(1.0, 2.0) : complex<f64>", 1 + 2j),
        ("1 : f32", 1.0),
    ):
        f = ow.format(ENCODING % text)
        assert f.explicit == value
        assert type(f.explicit) is type(value)
        assert f == ow.format("csr")
        again = ow.format(str(f))
        assert again.explicit == value
        assert pickle.loads(pickle.dumps(f)).explicit == value
        assert f.permute((1, 0)).explicit == value
        B = ow.asarray(np.array([[0, value], [value, 0]]), format=f)
        assert B.is_iso
        assert B.format.explicit is None
        assert B.asformat(f).is_iso


def test_values_that_differ_far_behind_are_not_one() -> None:
    x = np.ones(iso.CHUNK + 1, np.int8)
    assert iso.has_one_value(x)
    x[-1] = 2
    assert not iso.has_one_value(x)


def test_binsparse_files_keep_one_value(tmp_path) -> None:
    pytest.importorskip("h5py")
    for dtype in ("float64", "bool", "complex64"):
        A = ow.iso(ow.asarray(D, format="csr"), 1, dtype=dtype)
        ow.write(tmp_path / "a.bsp.h5", A)
        B = ow.read(tmp_path / "a.bsp.h5")
        assert B.is_iso
        assert B.dtype == A.dtype
        assert np.array_equal(B.to_numpy(), A.to_numpy())


def test_pages_are_given_back_after_their_last_reference() -> None:
    """Another thread that takes the pages of a number while they die gets new ones, never addresses without pages."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for k in range(150):
                assert (iso.repeated(k % 3 + 0.25, "f64", 5, np.zeros(1)) == k % 3 + 0.25).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    pages = iso.repeated(0.375, "f64", 5, np.zeros(1)).base
    while isinstance(pages, np.ndarray):
        pages = pages.base
    assert not hasattr(type(pages), "__del__")  # it would run while weak references still hold the pages
    address = pages.address
    assert address in iso.alive
    del pages
    gc.collect()
    assert address not in iso.alive


def test_mappings_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    before = iso._mappings.count
    monkeypatch.setattr(iso, "_MOST_MAPPINGS", before + 3)
    arrays = [iso.repeated(0.5 + k, "f64", 5, np.zeros(1)) for k in range(1000, 1005)]
    assert [iso.is_iso(x) for x in arrays] == [True] * 3 + [False] * 2
    assert [x[4] for x in arrays] == [1000.5, 1001.5, 1002.5, 1003.5, 1004.5]
    assert iso._mappings.count == before + 3
    del arrays
    gc.collect()
    assert iso._mappings.count == before
    assert iso.is_iso(iso.repeated(1003.5, "f64", 5, np.zeros(1)))


def test_zeros_of_both_signs_are_two_values() -> None:
    torch = pytest.importorskip("torch")
    A = ow.sparse_coo_tensor([[0, 1], [1, 1]], [0.0, -0.0], (2, 2))
    with pytest.raises(InvariantError, match=r"expected: 0.0 .*got: -0.0 at position 1"):
        ow.iso(A)
    B = ow.iso(ow.asarray(D, format="csr", like="torch"), 0.0)
    B.values[1] = -0.0
    assert not B.is_iso
    for scalar in ("bool", "bf16", "c128", "i8"):
        assert iso.is_iso(iso.repeated(1, scalar, 3, torch.zeros(1)))


def test_a_consumer_of_dlpack_may_write() -> None:
    torch = pytest.importorskip("torch")
    A = ow.iso(ow.asarray(np.ones((3, 3)), format="dense"), 2.0)
    x = torch.from_dlpack(A)
    x *= 2
    assert A.to_numpy()[0, 0] == 2
    with pytest.raises(ExportError, match="read-only"):
        A.__dlpack__(copy=False)


@pytest.mark.parametrize("fault", ["no library", "no file", "no addresses", "another address"])
def test_without_pages_that_are_shared_there_are_ordinary_arrays(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    like = np.zeros(1)
    owner = iso.repeated(77.5, "f64", 9, like)
    assert iso.is_iso(owner)
    unmapped: list[tuple[int, int]] = []
    libc = iso._libc()

    class Libc:
        """The C library, in part."""

        def __init__(self) -> None:
            self.mmap = self._mmap
            self.munmap = lambda at, size: (unmapped.append((at, size)), libc.munmap(at, size))
            self.calls = 0

        def _mmap(self, *args: object) -> int | None:
            self.calls += 1
            if fault == "no addresses":
                return iso._FAILED
            return libc.mmap(*args) if self.calls == 1 else 4096

    if fault == "no library":
        monkeypatch.setattr(iso.os, "name", "other")
        assert iso._libc() is None
        monkeypatch.undo()
        monkeypatch.setattr(iso, "_libc", lambda: None)
    elif fault == "no file":
        monkeypatch.setattr(iso, "_memory_file", lambda: (_ for _ in ()).throw(OSError("no files left")))
    else:
        monkeypatch.setattr(iso, "_libc", Libc)
    before = iso._mappings.count
    x = iso.repeated(1234.25, "f64", 7, like)
    assert not iso.is_iso(x)
    assert x.tolist() == [1234.25] * 7
    copy = iso.lent(owner)
    assert not iso.is_iso(copy)
    assert not copy.flags.writeable
    assert copy.tolist() == [77.5] * 9
    assert iso._mappings.count == before, "what could not be mapped is not counted"
    assert len(unmapped) == 2 * (fault == "another address")


def test_pages_of_a_file_where_the_system_has_none_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(iso.os, "memfd_create", raising=False)
    x = iso.repeated(4321.5, "f64", 100_000, np.zeros(1))
    assert iso.is_iso(x)
    assert (x == 4321.5).all()
