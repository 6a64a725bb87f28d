"""Masked tensors in files: `.npz`, torch.save, and columns of pandas."""

from __future__ import annotations

import io
import pickle
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from masked_cases import agree, arrays, made

import openwork as ow


@pytest.mark.thin(14)
@pytest.mark.parametrize("spec", ["dense", "csr", "coo", "csc", "bsr(2, 2)", "dia", "dcsr"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "complex64"])
def test_round_trip(tmp_path: Path, spec: str, dtype: str) -> None:
    m = made(*arrays((6, 8), 2, dtype), spec)
    ow.write(tmp_path / "m.npz", m, compress=spec == "csr")
    back = ow.read(tmp_path / "m.npz")
    assert back.format == m.format
    agree(back, m.to_masked_array())
    agree(ow.read(tmp_path / "m.npz", format="coo"), m.to_masked_array())


def test_ranks_and_what_is_stored_and_masked_out(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    for m in (made(*arrays((5,))), made(*arrays((2, 3, 4))), made(*arrays((3, 0))), made(*arrays((4, 5))).sum()):
        ow.write(path, m)
        agree(ow.read(path), m.to_masked_array())
    bits = arrays((4, 5))[1]
    stored = ow.asarray(np.ones((4, 5)), format="csr")
    mask = ow.assemble("csr", (4, 5), pos={1: stored.pos(1)}, crd={1: stored.crd(1)}, values=bits.reshape(-1))
    held = ow.masked_tensor(stored, mask)
    ow.write(path, held)
    assert ow.read(path).get_data().nse == 20
    agree(ow.read(path), held.to_masked_array())


def test_hidden_values_stay_at_home(tmp_path: Path) -> None:
    ow.write(tmp_path / "m.npz", ow.masked_tensor(np.array([1.0, 12345.0]), np.array([True, False])))
    with np.load(tmp_path / "m.npz") as parts:
        assert parts["values"].tolist() == [1, 0]


def test_other_files_and_broken_ones(tmp_path: Path) -> None:
    m = made(*arrays((4, 5)), "csr")
    with pytest.raises(ow.UnsupportedError, match=r"masked tensors are written to \.npz; got '\.mtx'"):
        ow.write(tmp_path / "m.mtx", m)
    ow.write(tmp_path / "m.npz", m)
    with np.load(tmp_path / "m.npz") as parts:
        given = dict(parts)
    np.savez(tmp_path / "odd.npz", **{**given, "openwork_masked": np.array("maybe")})
    with pytest.raises(ow.FileFormatError, match="openwork_masked is 'maybe'"):
        ow.read(tmp_path / "odd.npz")
    np.savez(tmp_path / "number.npz", **{**given, "openwork_masked": np.array("number")})
    with pytest.raises(ow.FileFormatError, match="a masked number of shape"):
        ow.read(tmp_path / "number.npz")
    ow.write(tmp_path / "full.npz", ow.asarray(np.ones((2, 2)), format="dense"))
    with np.load(tmp_path / "full.npz") as parts:
        full = {**parts, "openwork_masked": np.array("tensor")}
    np.savez(tmp_path / "full.npz", **full)
    with pytest.raises(ow.FileFormatError, match="leaves no element out"):
        ow.read(tmp_path / "full.npz")


@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_torch_save(spec: str) -> None:
    torch = pytest.importorskip("torch")
    import_module("openwork.torch")  # torch.load reads masked tensors from now on

    data, bits = arrays((4, 5))
    m = ow.masked_tensor(torch.from_numpy(data), torch.from_numpy(bits)).asformat(spec)
    file = io.BytesIO()
    torch.save({"m": m, "sum": m.sum()}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    agree(loaded["m"], m.to_masked_array())
    agree(loaded["sum"], m.sum().to_masked_array())
    agree(pickle.loads(pickle.dumps(m)), m.to_masked_array())


@pytest.mark.parametrize("dtype", ["Int64", "Int8", "UInt16", "Float32", "Float64", "boolean"])
def test_nullable_columns_of_pandas(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([1, None, 0, 1, None], dtype=dtype)
    m = ow.masked_tensor(column)
    numpy_dtype = column.dtype.numpy_dtype
    want = np.ma.MaskedArray(np.array([1, 0, 0, 1, 0], numpy_dtype), mask=[0, 1, 0, 0, 1])
    agree(m, want)
    agree(ow.masked_tensor(column.array), want)
    assert m.sum().item() == column.sum()
    assert m.count().item() == column.count()
    agree(ow.masked_tensor(pandas.Series([], dtype=dtype)), want[:0])
