from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openwork as ow
from openwork.errors import DTypeError
from openwork.runtime.formats import promises_less
from openwork.storage import Storage, buffers
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
