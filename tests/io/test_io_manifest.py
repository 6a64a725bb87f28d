"""Every real file agrees with its line in the manifest: shape, stored entries, elements, duplicates, zeros."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import openwork.io as io
from openwork.errors import FileFormatError
from openwork.io.shared.compressed import coordinates

QUICK = 60_000
"""Bytes; larger files are slow tests."""
OPTIONS = {"tricky/tns/KG_JF17K_4_ids_1based.tns.gz": {"values": False}, "tfdp/EVA.mtx.gz": {"symmetry": "keep"}}


def rows(root: Path, small: bool) -> list[dict[str, str]]:
    with open(root / "MANIFEST.tsv", newline="") as file:
        found = list(csv.DictReader(file, delimiter="\t"))
    return [r for r in found if (int(r["bytes"]) <= QUICK) == small and r["parse"].startswith("ok")]


def disagreements(root: Path, row: dict[str, str]) -> list[str]:
    """What the file has that the manifest has otherwise."""
    name = row["file"]
    if name.startswith("tricky") and name not in OPTIONS:
        return []  # test_io_tricky has them one by one
    record = io.load(root / name, io.Options(**OPTIONS.get(name, {})))
    stored = coordinates(record) if isinstance(record, io.Buffers) else record
    full = io.expand(stored)
    dense = full.dense is not None
    got = {
        "shape": "x".join(map(str, full.shape)),
        "entries": str(math.prod(full.shape) if dense else stored.entries),
        "nnz": str(np.count_nonzero(full.dense) if dense else full.entries),
        "zeros": "" if dense else str(np.count_nonzero(full.values == 0)),
        "dups": "" if dense else str(full.entries - np.unique(np.stack(full.indices), axis=1).shape[1]),
    }
    first = {k: v.split(";")[0].split(":")[-1] for k, v in row.items() if v}
    return [f"{name}: {k} is {v}, manifest {first[k]}" for k, v in got.items() if v and k in first and first[k] != v]


def check(root: Path, small: bool) -> None:
    chosen = rows(root, small)
    assert len(chosen) > (300 if small else 20)
    skipped = [r for r in chosen if r["file"].endswith(".h5")]
    wrong = [d for r in chosen if r not in skipped for d in disagreements(root, r)]
    assert not wrong, "\n".join(wrong)


def test_small_files(data_dir: Path) -> None:
    check(data_dir, small=True)


@pytest.mark.slow
def test_large_files(data_dir: Path) -> None:
    check(data_dir, small=False)


def test_the_check_can_fail(data_dir: Path) -> None:
    row = next(r for r in rows(data_dir, True) if r["file"].endswith("1138_bus.mtx.gz"))
    assert not disagreements(data_dir, row)
    for key in ("shape", "entries", "nnz", "zeros", "dups"):
        assert len(disagreements(data_dir, {**row, key: "7"})) == 1


def test_headers_agree_without_reading_entries(data_dir: Path) -> None:
    text = [r for r in rows(data_dir, True) if ".mtx" in r["file"] and r["cls"] == "real"]
    for row in text:
        head = io.header(data_dir / row["file"])
        assert ("x".join(map(str, head.shape)), str(head.entries)) == (row["shape"], row["entries"]), row["file"]
        assert head.symmetry == row["format"].split()[2].lower()


@pytest.mark.parametrize("name", ["hb_suitesparse/bcsstk01.mtx", "lagraph/skew_fp64.mtx", "taco/rua_32.mtx"])
def test_elements_agree_with_scipy(data_dir: Path, name: str) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    ours = io.read(data_dir / name)
    np.testing.assert_array_equal(ours.to_numpy(), scipy_io.mmread(data_dir / name).toarray())


def test_the_same_matrix_in_four_formats(data_dir: Path) -> None:
    folder = data_dir / "suitesparse"
    expected = io.read(data_dir / "hb_suitesparse" / "bcsstk01.mtx").to_numpy()
    for name in ("hb/bcsstk01.rsa", "rb/bcsstk01.rb"):
        np.testing.assert_allclose(io.read(folder / name).to_numpy(), expected, rtol=1e-11)


def test_mat_variable(data_dir: Path) -> None:
    assert io.read(data_dir / "qp/QAFIRO.mat").shape == (59, 32)
    assert io.read(data_dir / "qp/QAFIRO.mat", variable="P").shape == (32, 32)
    with pytest.raises(FileFormatError, match="no variable 'Z'; variables: P, A"):
        io.read(data_dir / "qp/QAFIRO.mat", variable="Z")


def test_10x_hdf5(data_dir: Path) -> None:
    pytest.importorskip("h5py")
    folder = data_dir / "singlecell"
    for name, shape, nse in (
        ("10x_data__1.2.0__filtered_gene_bc_matrices_h5.h5", (343, 12), 12),
        ("10x_data__3.0.0__filtered_feature_bc_matrix.h5", (507, 1107), 23866),
        ("visium_data__1.0.0__filtered_feature_bc_matrix.h5", (100, 100), 656),
    ):
        t = io.read(folder / name)
        assert (t.shape, t.nse) == (shape, nse)
