"""Tensors whose stored elements are one value that takes no memory for each: what keeps it, what gives them their own."""

import copy
import pickle
import threading
import tracemalloc

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import cache
from openwork.errors import CompilerBug, DTypeError, ExportError, FormatError, InvariantError, UnsupportedError
from openwork.faults import injected, nth
from openwork.runtime.launch import OneLaunch
from openwork.runtime.program import memory_of
from openwork.storage import iso
from openwork.storage.buffers import numpy_dtype, torch_dtype

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


def test_memory_is_that_of_one_element() -> None:
    n = 3_000_000
    values = iso.repeated(np.array([0.5]), n)
    assert values.sum() == n / 2
    assert iso.is_iso(values[5:9][1:])
    assert not iso.is_iso(values[5:5])
    like = ow.iso(ow.asarray(D, format="csr"), 0.5)
    tracemalloc.start()
    many = [like.with_values(k).iso() for k in range(2000)]
    longest = iso.repeated(values, 1 << 40)
    assert tracemalloc.get_traced_memory()[0] < 16_000_000
    tracemalloc.stop()
    assert longest[-1] == 0.5
    assert all(t.is_iso and t.values[-1] == k for k, t in enumerate(many))
    with pytest.raises(MemoryError):
        iso.repeated(values, 1 << 60)
    with injected(nth("allocate", 1)), pytest.raises(MemoryError):
        iso.repeated(values, 10)


def test_every_type_has_such_values() -> None:
    torch = pytest.importorskip("torch")
    for scalar in ("bool", "i8", "u16", "i64", "f16", "f32", "c64", "c128"):
        x = iso.repeated(np.ones(1, numpy_dtype(scalar)), 20_001)
        assert len(x) == 20_001
        assert bool((x == 1).all())
        assert iso.is_iso(x)
    x = iso.repeated(torch.ones(1), 20_001)
    assert x.dtype == torch_dtype("f32")
    assert float(x.sum()) == 20_001
    assert iso.is_iso(x)
    for like in (np.zeros(1), torch.zeros(1)):
        y = iso.contiguous(iso.repeated(like + 3.25, 5))
        assert y.tolist() == [3.25] * 5
        assert not iso.is_iso(y)
        assert iso.contiguous(y) is y


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
    """torch heeds no flag of NumPy's."""
    torch = pytest.importorskip("torch")
    A = ow.iso(ow.asarray(D, format="csr"), 1.5)
    B, dense = A.T, ow.iso(ow.asarray(D), 1.5)
    doors = (
        A.values, A.block_values, np.asarray(dense), dense.to_numpy(), dense.to_dense(),
        ow.iso(ow.asarray(D, format="bsr(2, 3)"), 1.5).block_values,
    )  # fmt: skip
    own = A.to_scipy().data, A.asformat("coo").to_scipy().data
    for array in (*doors, *own):
        for taken in (torch.from_numpy, torch.from_dlpack, torch.as_tensor):
            taken(array)[(0,) * array.ndim] = 7
    for array in doors:
        assert not array.flags.writeable
        assert array.flat[0] == 7
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    for array in own:
        assert array.flags.carray
        assert array.tolist() == [7, *[1.5] * (len(array) - 1)]
    assert A.with_values(A.values).sum() == A.sum()
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


def test_threads_have_values_of_their_own() -> None:
    errors: list[BaseException] = []
    like = ow.asarray(D, format="csr")

    def work(first: int) -> None:
        try:
            for k in range(first, first + 50):
                A = ow.iso(like, k + 0.25)
                assert A.sum() == (k + 0.25) * A.nse
                assert (A.with_values(k + 0.25) @ E == A @ E).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_no_kernel_of_several_values_takes_one() -> None:
    """A kernel that is not compiled for one value would read behind it: it is refused, whichever way it is launched."""
    torch = pytest.importorskip("torch")
    for one in (np.ones(1), torch.ones(1)):
        x = iso.repeated(one, 5)
        kernel = cache.of_text("def f(x: f64[const], y: f64[mut]):\n    y[0] = x[4]\n")
        with pytest.raises(ValueError, match="not contiguous"):
            kernel.pack([x, np.ones(1)])
        with pytest.raises(ValueError, match="not contiguous"):
            OneLaunch(kernel, {}, ("x", "y"))([*memory_of([x]), np.ones(1)])
        with pytest.raises(CompilerBug, match="several"):
            iso.element(iso.contiguous(x))


def test_zeros_of_both_signs_are_two_values() -> None:
    torch = pytest.importorskip("torch")
    A = ow.sparse_coo_tensor([[0, 1], [1, 1]], [0.0, -0.0], (2, 2))
    with pytest.raises(InvariantError, match=r"expected: 0.0 .*got: -0.0 at position 1"):
        ow.iso(A)
    B = ow.iso(ow.asarray(D, format="csr", like="torch"), 0.0)
    B.values[1] = -0.0
    assert not B.is_iso
    with pytest.raises(InvariantError, match=r"got: -0.0 at position 1"):
        ow.iso(B)
    for scalar in ("bool", "bf16", "c128", "i8"):
        assert iso.is_iso(iso.repeated(torch.ones(1, dtype=torch_dtype(scalar)), 3))


def test_a_consumer_of_dlpack_may_write() -> None:
    torch = pytest.importorskip("torch")
    A = ow.iso(ow.asarray(np.ones((3, 3)), format="dense"), 2.0)
    x = torch.from_dlpack(A)
    x *= 2
    assert A.to_numpy()[0, 0] == 2
    with pytest.raises(ExportError, match="read-only"):
        A.__dlpack__(copy=False)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["ell(9)", "coo", "csr", "bsr(2, 3)", "dia", "dcsr"])
def test_padding_is_the_fill_value(format: str, library: str) -> None:
    A = ow.asarray(D, format=format, like=None if library == "numpy" else "torch")
    one, many = ow.iso(A, 2.5), A.with_values(2.5)
    for target in ("ell(9)", "bsr(2, 2)", "dia", "bitmap", "dense", "csc", "coo"):
        for select in (lambda t: t, lambda t: t[1:6, ::2], lambda t: t[[5, 0, 3]], lambda t: t[:, [7, 1]]):
            x, y = (select(t).asformat(target) for t in (one, many))
            assert np.array_equal(x.to_numpy(), y.to_numpy()), (target, x)
            assert x.nse == y.nse


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_elements_that_are_set_are_alone(library: str) -> None:
    for format in ("csr", "coo", "bsr(2, 3)", "dense"):
        A = ow.iso(ow.asarray(D, format=format, like=None if library == "numpy" else "torch"), 1)
        B, want = copy.copy(A), A.to_numpy().copy()
        i, j = np.argwhere(D)[1].tolist()
        A[i, j] = want[i, j] = 9
        assert not A.is_iso
        assert np.array_equal(A.to_numpy(), want)
        assert B.is_iso
        assert set(np.unique(B.to_numpy())) <= {0, 1}
