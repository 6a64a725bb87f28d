"""What files say before their elements: headers, shapes in comments, layouts that are chosen; and elements by ranges of
positions, for every format."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import openwork as ow
from openwork.io import header
from openwork.io.containers import mapped
from openwork.io.out_of_core.parts_of_file import open_source
from openwork.io.shared.records import Options
from openwork.io.shared.stored_range import of_storage, positions_are_elements, ranges, row_positions

X = np.where(np.arange(30).reshape(5, 6) % 4 == 1, np.arange(30.0).reshape(5, 6), 0)
FORMATS = ("csr", "csc", "coo", "dcsr", "dcsc", "bsr(2, 2)", "bsc(2, 3)", "bsr(5, 3)", "dia", "ell(3)", "bitmap", "nm(2, 4)",
           "(i, j) -> (i : dense, j : ell(4))", "(i, j) -> (j : compressed, i : bitmap)")  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_elements_by_ranges_of_positions(format: str) -> None:
    """Ranges of any length, from anywhere, are the elements of the whole; rows are ranges where they lie together."""
    x = X
    if format.startswith("nm"):  # groups of two elements, of one and of none
        x = np.where(np.arange(40).reshape(5, 8) % 4 < 2, X[:, :1] + 1, 0)
        x[1, :5], x[3, 4:] = 0, 0
    t = ow.asarray(x, format=format)
    stored = of_storage(t._storage)
    assert positions_are_elements(stored.format)

    def of(step: int, first: int = 0, last: int | None = None) -> list[tuple[int, ...]]:
        parts = [np.stack([*dims, values]) for dims, values in ranges(stored, step, first, last)]
        return [tuple(v.tolist()) for v in np.concatenate([np.empty((3, 0)), *parts], axis=1).T]

    whole = of(stored.size)
    dense = np.zeros(x.shape)
    for i, j, v in whole:
        dense[int(i), int(j)] = v
    np.testing.assert_array_equal(dense, x)
    assert len(whole) == len({e[:2] for e in whole})
    if format != "ell(3)" and "ell(4)" not in format:
        assert [e[2] for e in whole if e[2]] == [v for v in np.asarray(t.values).reshape(-1).tolist() if v]
    for step in (1, 3, 7):
        assert of(step) == whole
    for cut in (1, stored.size // 2):
        assert of(4, 0, cut) + of(5, cut) == whole
    begins = [row_positions(stored, row) for row in range(x.shape[0] + 1)]
    by_rows = format in ("csr", "coo", "dcsr", "ell(3)", "bitmap", "nm(2, 4)", FORMATS[-2])
    assert (begins[0] is not None) == by_rows
    for row in range(x.shape[0] if by_rows else 0):
        found = of(2, begins[row] or 0, begins[row + 1])
        assert {e[:1] for e in found} <= {(row,)}
        assert [e for e in found if e[2]] == [(row, j, x[row, j]) for j in np.flatnonzero(x[row])]


TENSORS = {
    "a.tns": ("1 1 2 5\n2 3 1 4\n", (-1, -1, -1), None),
    "shape.tns": ("# shape: 4 3 2\n1 1 2 5\n2 3 1 4\n", (4, 3, 2), None),
    "small.tns": ("# shape: 1 3 2\n1 1 2 5\n2 3 1 4\n", (2, 3, 2), None),
    "rank.tns": ("# shape: 9 9\n1 1 2 5\n2 3 1 4\n", (2, 3, 2), None),
    "sp.tns": ("sptensor\n3\n4 3 2\n2\n1 1 2 5\n2 3 1 4\n", (4, 3, 2), 2),
    "a.sptensor": ("sptensor\n3\n4 3 2\n2\n1 1 2 5\n2 3 1 4\n", (4, 3, 2), 2),
}


@pytest.mark.parametrize("name", TENSORS)
def test_layouts_of_tensors_read_and_convert_alike(name: str, tmp_path: Path) -> None:
    text, shape, entries = TENSORS[name]
    path = tmp_path / name
    path.write_text(text)
    t = ow.read(path)
    extents = tuple(max(n, m) for n, m in zip(shape, (2, 3, 2), strict=True))
    want = np.zeros(extents)
    want[0, 0, 1], want[1, 2, 0] = 5, 4
    np.testing.assert_array_equal(t.to_numpy(), want)
    found = header(path)
    assert found.entries == entries
    assert (open_source(path, Options()) is None) == (name != "a.tns")
    if entries is not None:
        assert found.shape == shape
    told: list[tuple[int, int]] = []
    ow.convert(path, tmp_path / "out.ow", progress=lambda done, total: told.append((done, total)))
    np.testing.assert_array_equal(ow.read(tmp_path / "out.ow").to_numpy(), want)
    if name in ("a.tns", "a.sptensor"):
        assert (len(text), len(text)) in told


def test_groups_are_read_in_parts(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    ow.write(tmp_path / "a.bsp.h5", ow.asarray(X, format="csr"))
    assert open_source(tmp_path / "a.bsp.h5", Options()) is not None


def test_headers_have_the_number_of_entries(tmp_path: Path) -> None:
    (tmp_path / "a.smtx").write_text("2, 3, 2\n0 1 2\n0 2\n")
    found = header(tmp_path / "a.smtx")
    assert (found.kind, found.shape, found.field, found.entries) == ("smtx", (2, 3), "pattern", 2)


def test_petsc_is_written_in_words_of_four_bytes(tmp_path: Path) -> None:
    t = ow.asarray(X, format="csr")
    ow.write(tmp_path / "a.petsc", t)
    s = t.to_scipy("csr")
    head = np.array([1211216, *X.shape, s.nnz], ">i4")
    parts = [head, np.diff(s.indptr).astype(">i4"), s.indices.astype(">i4"), s.data.astype(">f8")]
    assert (tmp_path / "a.petsc").read_bytes() == b"".join(p.tobytes() for p in parts)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("dtype", ["f8", "c16", "i4"])
def test_halves_become_whole(symmetry: str, dtype: str) -> None:
    value = np.array([2, 3, 4]).astype(dtype) * (1 + 2j if dtype == "c16" else 1)
    record = ow.io.Coordinates((3, 3), (np.array([1, 2, 2]), np.array([0, 1, 2])), value, symmetry)
    found = ow.io.expand(record)
    lower = np.zeros((3, 3), dtype)
    lower[record.indices] = value
    off = np.tril(lower, -1)
    want = lower + {"symmetric": off.T, "skew-symmetric": -off.T, "hermitian": off.T.conj()}[symmetry]
    dense = np.zeros((3, 3), dtype)
    dense[found.indices] = found.values
    np.testing.assert_array_equal(dense, want)
    assert (found.symmetry, found.values.dtype, found.values.size) == ("general", np.dtype(dtype), 5)


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric", "hermitian"])
def test_dense_triangles_become_whole(symmetry: str, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n)
    lower = np.tril(
        rng.integers(1, 9, (n, n)) + 1j * rng.integers(1, 9, (n, n)), -1 if symmetry == "skew-symmetric" else 0
    )
    if symmetry == "hermitian":
        lower -= 1j * np.diag(lower.diagonal().imag)
    skew = symmetry == "skew-symmetric"
    column = [lower[i, j] for j in range(n) for i in range(j + skew, n)]
    text = f"%%MatrixMarket matrix array complex {symmetry}\n{n} {n}\n"
    (tmp_path / "a.mtx").write_text(text + "".join(f"{v.real} {v.imag}\n" for v in column))
    off = np.tril(lower, -1)
    want = lower + {"symmetric": off.T, "skew-symmetric": -off.T, "hermitian": off.T.conj()}[symmetry]
    np.testing.assert_array_equal(ow.read(tmp_path / "a.mtx").to_numpy(), want)


def test_first_index_of_svmlight(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 0:2 3:1\n-1 2:5\n")
    np.testing.assert_array_equal(ow.read(tmp_path / "a.svm").to_numpy(), [[2, 0, 0, 1], [0, 0, 5, 0]])
    (tmp_path / "a.svm").write_text("1 1:2 3:1\n-1 2:5\n")
    np.testing.assert_array_equal(ow.read(tmp_path / "a.svm").to_numpy(), [[2, 0, 1], [0, 5, 0]])


def test_groups_of_10x(tmp_path: Path) -> None:
    """A genome's group is found where it is the only one, asked for by name where it is not; shapes are two extents."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"

    def write(shape: list[int], *names: str) -> None:
        with h5py.File(path, "w") as file:
            for k, name in enumerate(names):
                group = file.create_group(name)
                group["data"], group["indices"], group["indptr"] = (
                    np.array([1.0 + k, 2]),
                    np.array([0, 2]),
                    np.array([0, 1, 2]),
                )
                group["shape"] = np.array(shape)

    for names, variable, factor in (
        (("hg19",), None, 1), (("hg19", "mm10"), "mm10", 2), (("mm10", "matrix"), None, 2), (("matrix", "mm10"), None, 1),
    ):  # fmt: skip
        write([3, 2], *names)
        np.testing.assert_array_equal(ow.read(path, variable=variable).to_numpy(), [[factor, 0], [0, 0], [0, 2]])
    write([3, 2], "hg19", "mm10")
    with pytest.raises(
        ow.FileFormatError, match=re.escape("expected a group with data, indices, indptr, shape; got ['hg19', 'mm10']")
    ):
        ow.read(path)
    for shape in ([3], [3, 2, 1], [-3, 2], [3, 2**62 + 1]):
        write(shape, "matrix")
        with pytest.raises(ow.FileFormatError, match=re.escape(f"/matrix/shape is {shape}; expected two extents")):
            ow.read(path)


def test_truth_values_are_checked_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "_PIECE", 64)
    path = tmp_path / "a.npz"
    t = ow.asarray(np.ones((8, 20), bool), format="csr")
    for bad in (0, 63, 64, 159, None):
        values = np.ones(160, np.uint8)
        values[[] if bad is None else bad] = 7 if bad is not None else 1
        ow.write(path, ow.Tensor._from_storage(t._storage.with_values(values.view(bool))), compress=False)
        if bad is None:
            assert ow.open(path).to_numpy().all()
            continue
        with pytest.raises(ow.FileFormatError, match="truth values that are neither 0 nor 1"):
            ow.open(path)
