"""What is written is read: every dtype, every number exactly, every format in .npz."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import formats, shapes

import openwork as ow
import openwork.io as io
from openwork.errors import ShapeError, UnsupportedError
from openwork.io import Coordinates
from openwork.io.shared.tensors import to_tensor
from openwork.tensor.tensor import Tensor

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]  # fmt: skip


def values(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
    """Values whose bits are random: every one is as likely, NaN and infinities too."""
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    kind = np.dtype(dtype)
    return np.frombuffer(rng.bytes(n * kind.itemsize), kind).copy()


def random_tensor(seed: int, shape: tuple[int, ...], dtype: str, n: int) -> Tensor:
    rng = np.random.default_rng(seed)
    n = 0 if 0 in shape else n
    indices = tuple(rng.integers(0, max(e, 1), n).astype(np.int32) for e in shape)
    return to_tensor("test", Coordinates(shape, indices, values(rng, dtype, n)), None, True)


def same(a: Tensor, b: Tensor) -> None:
    """Equal in shape, dtype and, element by element in stored order, to the bit (NaN is NaN)."""
    assert (a.shape, a.dtype, str(a.format)) == (b.shape, b.dtype, str(b.format))
    for x, y in zip(a._storage.buffers, b._storage.buffers, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.thin(21)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["t.mtx", "t.tns", "t.npz", "t.mtx.gz", "t.tns.bz2", "t.mtx.xz"])
def test_every_dtype(tmp_path: Path, dtype: str, name: str) -> None:
    t = random_tensor(1, (7, 11), dtype, 60)
    if ".tns" in name and dtype.startswith("complex"):
        with pytest.raises(UnsupportedError, match=r"\.tns cannot hold complex values"):
            io.write(tmp_path / name, t)
        return
    io.write(tmp_path / name, t)
    same(io.read(tmp_path / name), t)


@pytest.mark.ci
@given(st.integers(0, 99), st.integers(1, 4).flatmap(shapes), st.sampled_from(DTYPES), st.integers(0, 30))
def test_coordinates(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shape: tuple[int, ...], dtype: str, n: int
) -> None:
    t = random_tensor(seed, shape, dtype, n)
    for name in ("t.mtx", "t.npz"):
        path = tmp_path_factory.mktemp("trip") / name
        io.write(path, t)
        same(io.read(path), t)


@pytest.mark.ci
@settings(max_examples=60)
@given(st.data())
def test_npz_keeps_any_format(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    format = data.draw(formats(max_ndim=3))
    shape = data.draw(shapes(format.ndim, max_extent=5))
    t = random_tensor(data.draw(st.integers(0, 99)), shape, "int16", 6) if format.ndim else None
    if t is None:
        return
    try:
        t = t.asformat(format)
    except (UnsupportedError, ValueError):
        return  # a format that cannot hold these elements
    path = tmp_path_factory.mktemp("trip") / "t.npz"
    io.write(path, t, compress=data.draw(st.booleans()))
    back = io.read(path)
    same(back, t)
    assert back.format == t.format
    assert io.header(path).shape == shape


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr(2, 3)", "(i, j) -> (j - i : compressed, j : range)"])
def test_npz_is_scipys(tmp_path: Path, format: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    t = random_tensor(3, (6, 9), "float64", 20).asformat("coo").asformat(format)
    t._storage.values[:] = np.arange(t._storage.values.size)
    io.write(tmp_path / "t.npz", t)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "t.npz").toarray(), t.to_numpy())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [False, True])
def test_npz_of_scipy(tmp_path: Path, kind: str, compressed: bool) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.random_array((8, 6), density=0.3, rng=np.random.default_rng(0)).asformat(kind)
    sparse.save_npz(tmp_path / "a.npz", a, compressed=compressed)
    t = io.read(tmp_path / "a.npz")
    np.testing.assert_array_equal(t.to_numpy(), a.toarray())
    if kind in ("csr", "csc"):
        assert t.format.name == kind


def test_unsorted_and_duplicate_rows_of_scipy(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array((np.array([1.0, 2, 3]), np.array([2, 0, 0]), np.array([0, 2, 3])), shape=(2, 3))
    b = sparse.csr_array((np.array([1.0, 2, 3]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    for matrix, level in ((a, "compressed(unordered)"), (b, "compressed(nonunique)")):
        sparse.save_npz(tmp_path / "a.npz", matrix)
        t = io.read(tmp_path / "a.npz")
        assert str(t.format) == f"(i, j) -> (i : dense, j : {level})"
        np.testing.assert_array_equal(t.to_numpy(), matrix.toarray())


def mirrored(kind: str, dtype: str) -> Tensor:
    rng = np.random.default_rng(5)
    a = np.where(rng.random((6, 6)) < 0.4, rng.integers(1, 9, (6, 6)), 0).astype(dtype)
    if dtype.startswith("complex"):
        a = a * (1 + 2j)
    full = {"symmetric": a + a.T, "skew-symmetric": a - a.T, "hermitian": a + a.conj().T}[kind]
    index = np.nonzero(full)
    return to_tensor("test", Coordinates(full.shape, index, full[index]), None, True)


@pytest.mark.thin(21)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
@pytest.mark.parametrize("kind", ["symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("name", ["t.mtx", "t.rb"])
@pytest.mark.parametrize("format", ["coo", "dense"])
def test_symmetry(tmp_path: Path, kind: str, dtype: str, name: str, format: str) -> None:
    t = mirrored(kind, dtype)
    path = tmp_path / name
    io.write(path, t.asformat(format), symmetry=kind)
    assert io.header(path).symmetry == kind
    np.testing.assert_array_equal(io.read(path).to_numpy(), t.to_numpy())
    kept = io.read(path, symmetry="keep").to_numpy()
    np.testing.assert_array_equal(kept, np.tril(t.to_numpy()))


@pytest.mark.parametrize("format", ["coo", "dense"])
def test_symmetry_is_found_in_spite_of_nan(tmp_path: Path, format: str) -> None:
    x = mirrored("symmetric", "float64").to_numpy()
    x[1, 2] = x[2, 1] = np.nan
    io.write(tmp_path / "a.mtx", ow.asarray(x, format=format), symmetry="symmetric")
    np.testing.assert_array_equal(io.read(tmp_path / "a.mtx").to_numpy(), x)


def test_a_turn_of_coordinates_is_no_symmetry(tmp_path: Path) -> None:
    """As many elements in each row as in each column."""
    for turned in ([1, 2, 0], [2, 0, 1], [1, 2, 3, 0]):
        t, path = ow.asarray(np.eye(len(turned))[turned], format="csr"), tmp_path / "t.mtx"
        ow.write(path, t, symmetry="auto")
        assert "general" in path.read_text().partition("\n")[0]
        np.testing.assert_array_equal(ow.read(path).to_numpy(), t.to_numpy())
        with pytest.raises((ValueError, ow.UnsupportedError)):
            ow.write(path, t, symmetry="symmetric")


def test_symmetry_is_found_or_refused(tmp_path: Path) -> None:
    io.write(tmp_path / "a.mtx", mirrored("skew-symmetric", "float64"), symmetry="auto")
    assert io.header(tmp_path / "a.mtx").symmetry == "skew-symmetric"
    with pytest.raises(ShapeError, match=r"the tensor of shape \(6, 6\) is not hermitian"):
        io.write(tmp_path / "a.mtx", mirrored("skew-symmetric", "float64"), symmetry="hermitian")
    with pytest.raises(ValueError, match="symmetry must be"):
        io.write(tmp_path / "a.mtx", mirrored("symmetric", "float64"), symmetry="odd")


@pytest.mark.thin(15)
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (0, 4), (4, 0), (1, 1)])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_rutherford_boeing(tmp_path: Path, shape: tuple[int, int], dtype: str) -> None:
    t = random_tensor(2, shape, dtype, 12).asformat("csc")
    io.write(tmp_path / "t.rb", t)
    same(io.read(tmp_path / "t.rb"), t)


def test_dense(tmp_path: Path) -> None:
    t = random_tensor(4, (4, 3), "float64", 9).asformat("dense")
    io.write(tmp_path / "t.mtx", t)
    assert io.header(tmp_path / "t.mtx").entries == 12
    np.testing.assert_array_equal(io.read(tmp_path / "t.mtx").to_numpy(), t.to_numpy())


def test_empty_tns_keeps_its_shape(tmp_path: Path) -> None:
    t = random_tensor(4, (40, 30, 20), "float32", 1)
    io.write(tmp_path / "t.tns", t, comment="one element\nonly")
    assert io.header(tmp_path / "t.tns").shape == (40, 30, 20)
    same(io.read(tmp_path / "t.tns"), t)


def test_format_and_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    t = random_tensor(4, (40, 30), "float64", 50).asformat("coo")
    io.write(tmp_path / "t.mtx", t, progress=lambda *s: seen.append(s))
    assert seen == [(t.nse, t.nse)]
    back = io.read(tmp_path / "t.mtx", format="csr", progress=lambda *s: seen.append(s))
    assert back.format.name == "csr"
    assert seen[-1][0] == seen[-1][1] == (tmp_path / "t.mtx").stat().st_size


def test_equal_tensors_give_equal_files(tmp_path: Path) -> None:
    t = random_tensor(4, (40, 30), "float64", 50)
    for name in ("a.mtx.gz", "b.mtx.gz"):
        io.write(tmp_path / name, t)
    assert (tmp_path / "a.mtx.gz").read_bytes() == (tmp_path / "b.mtx.gz").read_bytes()


def test_fill_value_needs_npz(tmp_path: Path) -> None:
    from openwork.storage.storage import Storage

    s = random_tensor(4, (4, 3), "float64", 5).asformat("csr")._storage
    t = Tensor._from_storage(Storage(s.shape, s.format, s.scalar, 2.5, s.pos, s.crd, s.values))
    with pytest.raises(UnsupportedError, match=r"Matrix Market cannot hold the fill value 2\.5"):
        io.write(tmp_path / "t.mtx", t)
    io.write(tmp_path / "t.npz", t)
    assert io.read(tmp_path / "t.npz").fill_value == 2.5


def test_unknown_extension(tmp_path: Path) -> None:
    with pytest.raises(
        UnsupportedError, match=r"unknown extension '\.xyz'; written are \.mtx \.rb \.tns \.npz \.ow \.h5ad"
    ):
        io.write(tmp_path / "t.xyz", random_tensor(4, (4, 3), "float64", 5))
    with pytest.raises(UnsupportedError, match=r"\.mat files are read only; written are"):
        io.write(tmp_path / "t.mat", random_tensor(4, (4, 3), "float64", 5))


@pytest.mark.parametrize("name", ["t.npz.gz", "t.ow.xz", "t.bsp.h5.gz", "t.petsc.bz2", "t.zarr.gz"])
def test_only_text_is_packed_as_a_whole(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"{name.rsplit('.', 1)[0][1:]} files are not packed as a whole"):
        io.write(tmp_path / name, random_tensor(4, (4, 3), "float64", 5).asformat("csr"))
    assert not list(tmp_path.iterdir())


def test_the_path_comes_first(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"write: expected a path; got: Tensor"):
        io.write(random_tensor(4, (4, 3), "float64", 5), tmp_path / "t.mtx")  # type: ignore[arg-type]


@pytest.mark.parametrize("properties", ["nonunique", "nonunique, unordered"])
@pytest.mark.parametrize("columns", [[], [0, 2], [2, 0]])
def test_coordinates_keep_their_format(properties: str, columns: list[int], tmp_path: Path) -> None:
    """Also where those of an uncoalesced COO happen to be sorted and distinct."""
    inner = properties.partition(", ")[2]
    inner = f"({properties})" if inner else ""
    if not inner:
        columns = sorted(columns)
    crd = {0: np.zeros(len(columns), np.int64), 1: np.array(columns, np.int64)}
    text = f"(i, j) -> (i : compressed({properties}), j : singleton{inner})"
    t = ow.assemble(text, (2, 3), pos={0: [0, len(columns)]}, crd=crd, values=np.ones(len(columns)))
    ow.write(tmp_path / "a.npz", t)
    again = ow.read(tmp_path / "a.npz")
    assert again.format == t.format
    np.testing.assert_array_equal(again.crd(1), columns)
