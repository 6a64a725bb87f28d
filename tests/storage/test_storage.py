from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openwork as ow
from openwork.errors import DTypeError, InvariantError, ShapeError, UnsupportedError
from openwork.runtime.formats import promises_less
from openwork.storage import Storage, buffers
from openwork.storage import storage as storage_module
from openwork.storage.equal_coordinates import equal_coordinates
from openwork.storage.scalars import python_scalar
from openwork.storage.specified import coordinates, count

FORMATS = ("csr", "csc", "dcsr", "coo", "csf", "bitmap", "bsr(2, 3)", "bsr(4, 5)", "bsc(2, 3)", "dia", "ell(9)",
           "dense", "dense_f", "nm(4, 4)", "(i, j) -> (i : dense, j : loose_compressed)",
           "(i, j) -> (j - i : compressed, j : range)", "(i, j) -> (i + j : compressed, i : range)",
           "(i, j) -> (i - j : dense, j : range)",
           "(i, j) -> (i // 4 : compressed, j // 2 : compressed, i % 4 // 2 : dense, j % 2 : dense, i % 2 : dense)",
           "(i, j) -> (i // 3 : dense, j // 2 : dense, i % 3 : dense, j % 2 : dense)")  # fmt: skip


def scattered(storage: Storage) -> np.ndarray:
    out = np.full(storage.shape, storage.fill_value, buffers.to_numpy(storage.values).dtype)
    where, leaf = coordinates(storage)
    out[tuple(where)] = 0
    np.add.at(out, tuple(where), buffers.to_numpy(storage.values)[leaf])
    return out


@given(st.sampled_from(FORMATS), st.integers(0, 7), st.integers(0, 9), st.integers(0, 2**32), st.floats(0, 1))
def test_coordinates_and_count(format, rows, columns, seed, density):
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 9, (rows, columns)) * (rng.random((rows, columns)) < density)
    storage = ow.asarray(a, format=format)._storage
    np.testing.assert_array_equal(scattered(storage), a)
    assert count(storage) == coordinates(storage)[0].shape[1]
    assert storage.nse == count(storage)
    turned = storage.permute((1, 0))
    np.testing.assert_array_equal(scattered(turned), a.T)
    assert count(turned) == count(storage)


def test_batches():
    t = ow.sparse_csr_tensor([[0, 1, 2], [0, 0, 2]], [[0, 1], [1, 2]], [[1, 2], [3, 4]], (2, 2, 3))
    storage = t._storage
    assert storage.batches == 2
    assert storage.positions == (2, 4, 4)
    np.testing.assert_array_equal(scattered(storage), [[[1, 0, 0], [0, 2, 0]], [[0, 0, 0], [0, 3, 4]]])
    empty = ow.sparse_csr_tensor(np.zeros((0, 3), int), np.zeros((0, 2), int), np.zeros((0, 2)), (0, 2, 3))
    assert empty.nse == 0
    assert empty._storage.positions == (0, 0, 0)
    assert empty.to_numpy().shape == (0, 2, 3)


def test_signatures():
    a = np.eye(4)
    one, other = ow.asarray(a, format="csr")._storage, ow.asarray(2 * a[:3], format="csr")._storage
    assert one.signature == other.signature
    assert one.signature != ow.asarray(a, format="csc")._storage.signature
    assert one.signature != ow.asarray(a.astype("f4"), format="csr")._storage.signature
    wide = Storage(one.shape, one.format, "f64", 0.0, (None, one.pos[1].astype("i8")), one.crd, one.values)
    assert one.signature != wide.signature
    whole, ragged = ow.asarray(a, format="bsr(2, 2)")._storage, ow.asarray(a, format="bsr(3, 3)")._storage
    assert whole.signature != ragged.signature
    assert ow.asarray(a, format="bsr(3, 3)")._storage.signature == ragged.signature


def test_with_values_shares_structure():
    storage = ow.asarray(np.eye(3), format="csr")._storage
    out = storage.with_values(storage.values.astype("f4"))
    assert out.scalar == "f32"
    assert out.pos[1] is storage.pos[1]
    assert out.addresses[:2] == storage.addresses[:2]
    assert out.addresses[2] != storage.addresses[2]
    assert out.nse == 3


@pytest.mark.parametrize("scalar", buffers.SCALARS)
def test_scalar_types(scalar):
    pytest.importorskip("ml_dtypes")
    torch = pytest.importorskip("torch")
    x = np.zeros(3, buffers.numpy_dtype(scalar))
    assert buffers.scalar_of(x) == scalar
    assert buffers.itemsize(scalar) == x.itemsize
    y = torch.zeros(3, dtype=buffers.torch_dtype(scalar))
    assert buffers.scalar_of(y) == scalar
    assert buffers.address(buffers.to_numpy(y)) == buffers.address(y)
    assert buffers.to_numpy(y).dtype == x.dtype
    assert buffers.address(buffers.as_array(x, like=y)) == buffers.address(x)
    assert buffers.scalar_of(buffers.as_array(x, like=y)) == scalar
    assert buffers.scalar_of(buffers.empty(2, scalar, x)) == scalar
    assert buffers.scalar_of(buffers.zeros(2, scalar, y)) == scalar
    assert buffers.scalar_name(scalar) == buffers.scalar_name(str(x.dtype)) == scalar
    assert buffers.scalar_name(y.dtype) == scalar
    assert type(python_scalar(0, scalar)) in (bool, int, float, complex)


def test_python_types_and_refusals():
    assert buffers.scalar_name(float) == "f64"
    assert buffers.scalar_name(bool) == "bool"
    for bad in ("no such", object, np.dtype("M8[s]"), None.__class__):
        with pytest.raises(DTypeError, match="not supported"):
            buffers.scalar_name(bad)


def test_lazy_conjugates_are_resolved():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1 + 2j, 3j]).conj()
    assert x.is_conj()
    t = ow.asarray(x)
    np.testing.assert_array_equal(t.to_numpy(), [1 - 2j, -3j])


@pytest.mark.ci
def test_torch_is_not_imported():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, openwork as ow; t = ow.asarray(np.eye(3), format='csr'); repr(t); t.T.nse;"
        "assert 'torch' not in sys.modules and 'scipy.sparse.linalg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.timeout(60)
def test_specified_elements_are_counted_as_they_are_walked() -> None:
    """Where trailing levels share dimensions, as skewed blocks do; the widest of them is an interval, not a loop."""
    texts = [
        "(a, b) -> ((a - b) // 4 : compressed, (a - b) % 4 // 2 : dense, (a - b) % 2 : dense, b : dense)",
        "(a, b) -> ((a + b) // 2 : dense, (a + b) % 2 : dense, b : dense)",
        "(a, b) -> (a // 2 : compressed, b // 3 : compressed, a % 2 : dense, b % 3 : dense)",
        "(a, b) -> (a // 4 : compressed, a % 4 // 2 : dense, a % 2 : dense, b : dense)",
    ]
    for shape in ((5, 7), (1, 9), (7, 2)):
        x = np.arange(shape[0] * shape[1]).reshape(shape) % 3 == 0
        for text in texts:
            t = ow.asarray(x * 1.0, format=ow.format(text))
            assert t.nse == len(coordinates(t._storage)[1]), (text, shape)
    wide = ow.sparse_coo_tensor([[0], [0]], [1.0], (1, 1 << 20)).asformat(ow.format(texts[0]))
    assert wide.nse == 1


def test_buffers_are_taken_as_they_are_where_less_is_promised() -> None:
    a, b, c, d = (
        f"(i, j) -> (i : dense, j : compressed{x})"
        for x in ("", "(unordered)", "(nonunique)", "(nonunique, unordered)")
    )
    formats = {x: ow.format(x) for x in (a, b, c, d)}
    less = {
        (target, source) for target in formats for source in formats if promises_less(formats[target], formats[source])
    }
    assert less == {(a, a), (b, b), (c, c), (d, d), (b, a), (c, a), (d, a), (d, b), (d, c)}
    t = ow.asarray(np.eye(3), format=a)
    assert np.shares_memory(t.asformat(b).crd(1), t.crd(1))
    assert not promises_less(ow.format("coo"), ow.format("csr"))
    assert not promises_less(ow.format("csc"), ow.format("csr"))
    assert not promises_less(ow.format("bsr(2, 2)"), ow.format("bsr(2, 3)"))


@pytest.mark.parametrize("like", ["numpy", "torch"])
def test_storages_over_values_of_their_own(like: str) -> None:
    if like == "torch":
        pytest.importorskip("torch")
    s = ow.asarray(np.diag([1.0, 2, 3]), format="csr", like=like)._storage
    assert s.facts is not None
    values = buffers.zeros(3, "f64", s.values)
    fresh, own = (Storage(s.shape, s.format, s.scalar, s.fill_value, s.pos, s.crd, s.values) for _ in range(2))
    own.adopt()
    for source in (s, fresh, own):
        copy = source.with_own_values(values)
        assert copy.values is values
        assert copy.structure is source.structure
        assert copy._addresses is None
        assert copy._transposes is None
        assert (copy.shape, copy.format, copy.scalar, copy.fill_value) == (s.shape, s.format, "f64", s.fill_value)
        assert all(a is b for a, b in zip((*copy.pos, *copy.crd), (*source.pos, *source.crd), strict=True))
    made = Storage.maker(s.structure, "f64", 0.5)(values)
    assert (made.shape, made.scalar, made.fill_value, made.values) == (s.shape, "f64", 0.5, values)
    assert made.structure is s.structure


def test_extents_have_a_limit() -> None:
    largest = storage_module.LARGEST
    csr = ow.asarray(np.eye(3), format="csr")._storage
    parts = csr.format, "f64", 0.0, csr.pos, csr.crd, csr.values
    assert Storage((3, largest), *parts).shape == (3, largest)
    with pytest.raises(InvariantError, match=rf"(?s)extent 1 of shape \(3, {largest + 1}\).*invariant 3.1"):
        Storage((3, largest + 1), *parts)


def test_which_coordinates_are_equal() -> None:
    """The numbers decide, not the arrays that hold them: of any length, beside other values."""
    x = np.zeros((40, 50))
    x[np.arange(40), np.arange(40) * 7 % 50] = 1.5
    s = ow.asarray(x, format="csr")._storage

    def other(change: Callable[[np.ndarray], object]) -> Storage:
        crd = s.crd[1].copy()
        changed = change(crd)
        crd = changed if isinstance(changed, np.ndarray) else crd
        return Storage(s.shape, s.format, s.scalar, s.fill_value, s.pos, (None, crd), s.values)

    def swap(crd: np.ndarray) -> None:
        crd[[17, 18]] = crd[[18, 17]]

    assert equal_coordinates(s, s)
    assert equal_coordinates(s, other(lambda crd: None))
    assert equal_coordinates(s, ow.asarray(2 * x, format="csr")._storage)
    assert not equal_coordinates(s, ow.asarray(x, format="csc")._storage)
    assert not equal_coordinates(s, ow.asarray(x[:, :49], format="csr")._storage)
    assert not equal_coordinates(s, ow.asarray(x[:39], format="csr")._storage)
    assert not equal_coordinates(s, other(swap))
    assert not equal_coordinates(s, other(lambda crd: crd.__setitem__(-1, 49)))
    assert not equal_coordinates(s, other(lambda crd: crd.astype(np.int64)))
    assert not equal_coordinates(s, other(lambda crd: crd[:-1]))
    empty = [ow.zeros((4, 5), format="coo")._storage for _ in range(2)]
    assert equal_coordinates(*empty)


def test_what_libraries_lack_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(UnsupportedError, match="torch is not installed"):
            buffers.torch_module()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "ml_dtypes", None)
        with pytest.raises(DTypeError, match="NumPy has no bfloat16"):
            getattr(buffers.numpy_dtype, "__wrapped__", buffers.numpy_dtype)("bf16")
    for ragged in ([[1.0, 2.0], [3.0]], [[[1], [2]], [[3]]]):
        with pytest.raises(ShapeError, match="nested lists are not an array"):
            buffers.as_array(ragged)


def test_errors_of_torchs_memory_are_memory_errors() -> None:
    pytest.importorskip("torch")

    class OutOfMemoryError(RuntimeError):
        """torch's, of a GPU."""

    def fail(error: Exception) -> Callable[[], object]:
        def make() -> object:
            raise error

        return make

    for error in (OutOfMemoryError("CUDA"), RuntimeError("[enforce fail] can't allocate memory: you tried 9 bytes")):
        with pytest.raises(MemoryError, match="no memory for a torch tensor"):
            buffers._of_torch(fail(error))
    with pytest.raises(RuntimeError, match="something else"):
        buffers._of_torch(fail(RuntimeError("something else")))


def test_addresses() -> None:
    torch = pytest.importorskip("torch")

    class Sub(np.ndarray):
        """A class of somebody's."""

    for x in (np.arange(5.0), np.arange(5.0)[2:], np.arange(6.0)[::-2], np.zeros(0), np.eye(3).T):
        find = buffers.address if x.flags.forc else buffers.strided_address
        assert find(x) == find(x.view(Sub)) == x.ctypes.data
    for find in (buffers.address, lambda x: buffers._address_by_interface(x, buffers.PACKED)):
        with pytest.raises(ValueError, match="not contiguous"):
            find(np.broadcast_to(1.0, 5))
    with pytest.raises(ValueError, match="not contiguous"):
        buffers.address(torch.ones(1).expand(5))
    y = torch.arange(5.0)
    assert buffers.address(y[2:]) == y.data_ptr() + 8
    with pytest.raises(UnsupportedError, match="a torch tensor without memory, Tensor"):
        buffers.address(torch.eye(2).to_sparse())
    with pytest.raises(UnsupportedError, match="without memory, on device meta"):
        buffers.address(torch.zeros(3, device="meta"))


def test_values_of_zeros_that_take_no_memory() -> None:
    """torch's zero tensors, gradients mostly, become ordinary ones, and strided values contiguous."""
    torch = pytest.importorskip("torch")
    s = ow.asarray(np.diag([1.0, 2, 3]), format="csr", like="torch")._storage
    zeros = s.with_values(torch._efficientzerotensor(3, dtype=torch.float64))
    assert zeros.values.data_ptr()
    assert zeros.values.tolist() == [0, 0, 0]
    spread = s.with_values(torch.ones((), dtype=torch.float64).expand(3))
    assert spread.values.is_contiguous()
    assert spread.values.tolist() == [1, 1, 1]


def test_which_tensors_are_plain() -> None:
    torch = pytest.importorskip("torch")

    class Sub(torch.Tensor):
        """A class of somebody's."""

    x = torch.arange(3.0)
    cases = {
        "plain": (x, True), "a parameter": (torch.nn.Parameter(x), False), "recorded": (x.clone().requires_grad_(), False),
        "without memory": (torch.zeros(3, device="meta"), False), "zeros": (torch._efficientzerotensor(3), False),
        "somebody's": (x.as_subclass(Sub), False), "a part": (x[1:], True),
    }  # fmt: skip
    for name, (y, expected) in cases.items():
        assert buffers.is_unrecorded(y) == expected, name
    with torch.autograd.forward_ad.dual_level():
        assert not buffers.is_unrecorded(x)
    seen: list[bool] = []
    torch.func.vmap(lambda y: (seen.append(buffers.is_unrecorded(y)), y)[1])(x)
    assert seen == [False]


def test_arrays_are_taken_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    for x in (torch.arange(3.0), torch.arange(3.0).requires_grad_(), np.arange(3.0), np.arange(6.0)[::-2]):
        assert buffers.as_array(x) is x
        assert buffers.as_array(x, like=x) is x
    z = torch.tensor([1 + 2j, 3j])
    for lazy, expected in ((z.conj(), [1 - 2j, -3j]), (z.conj().imag, [-2, -3])):
        found = buffers.as_array(lazy)
        assert not found.is_conj()
        assert not found.is_neg()
        assert found.tolist() == expected
    big = np.arange(3.0).astype(">f8")
    assert buffers.as_array(big).dtype.isnative
    assert buffers.as_array(big).tolist() == [0, 1, 2]
    odd = np.frombuffer(bytes(1) + np.arange(3.0).tobytes(), np.float64, 3, 1)
    assert not odd.flags.aligned
    assert buffers.as_array(odd).flags.aligned
    assert buffers.as_array(odd).tolist() == [0, 1, 2]
    read_only = np.arange(3.0)
    read_only.flags.writeable = False
    for x in (read_only, np.arange(3.0)):
        t = ow.asarray(np.eye(3), format="csr")._storage
        adopted = type(t)(t.shape, t.format, "f64", 0.0, t.pos, t.crd, x)
        adopted.adopt()
        assert adopted.values is not x
        assert adopted.values.flags.writeable == x.flags.writeable
        assert np.shares_memory(adopted.values, x)
