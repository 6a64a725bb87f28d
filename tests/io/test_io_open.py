"""`open`: mapped files give the tensor that `read` gives, read-only, in little memory; what is corrupt is an error."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.faults import injected, nth
from openwork.io import header
from openwork.io.containers import npz, store


@pytest.fixture(autouse=True)
def without_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost by a crash of the machine here; to sync a file takes milliseconds."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


FORMATS = ("csr", "coo", "bsr(2, 3)", "bitmap", "dia", "ell(4)")
DENSE = np.arange(42.0).reshape(6, 7) * (np.arange(42).reshape(6, 7) % 4 == 1)


def matrix() -> ow.Tensor:
    return ow.asarray(DENSE, format="csr")


def test_every_format(tmp_path: Path) -> None:
    for format in FORMATS:
        t = matrix().asformat(format)
        for name in ("t.ow", "t.npz"):
            path = tmp_path / name
            ow.write(path, t)
            assert ow.read(path).format == t.format
            if (name, format) == ("t.npz", "dia"):
                with pytest.raises(ow.UnsupportedError, match=r"help: ow.read"):
                    ow.open(path)
                continue
            for options in ({}, {"verify": True}, {"check": False}):
                o = ow.open(path, **options)
                assert (o.format, o.dtype, o.shape) == (t.format, t.dtype, t.shape)
                np.testing.assert_array_equal(o.to_numpy(), DENSE)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64"])
def test_dtypes_and_fill_values(tmp_path: Path, dtype: str) -> None:
    values = np.array([1, 0, 1]).astype(dtype)
    fills: list[Any] = [0, 1] if values.dtype.kind in "bui" else [0, np.inf, -0.0, np.nan]
    for fill in [*fills, *([complex(np.nan, -np.inf)] if dtype == "complex64" else [])]:
        t = ow.assemble("coo", (2, 3), pos={}, crd={0: [0, 0, 1], 1: [0, 2, 1]}, values=values, fill_value=fill)
        ow.write(tmp_path / "t.ow", t)
        for back in (ow.open(tmp_path / "t.ow"), ow.read(tmp_path / "t.ow")):
            assert repr(back.fill_value) == repr(t.fill_value)
            np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())


def test_other_ranks_and_no_elements(tmp_path: Path) -> None:
    for t in (ow.asarray(3.0), ow.zeros((2, 0, 3), format="csf"), ow.asarray(np.eye(4).reshape(2, 2, 4), format="coo")):
        for name in ("t.ow", "t.npz"):
            ow.write(tmp_path / name, t)
            np.testing.assert_array_equal(ow.open(tmp_path / name, verify=True).to_numpy(), t.to_numpy())


def test_bfloat16(tmp_path: Path) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    t = ow.asarray(np.array([[1.5, 0, 2]], bfloat16), format="csr")
    ow.write(tmp_path / "t.ow", t)
    assert ow.open(tmp_path / "t.ow").values.tolist() == [1.5, 2]


def test_masked_tensors(tmp_path: Path) -> None:
    m = ow.masked_tensor(DENSE, DENSE > 3)
    ow.write(tmp_path / "m.npz", m)
    assert (ow.open(tmp_path / "m.npz").get_mask().to_numpy() == (DENSE > 3)).all()
    with pytest.raises(ow.UnsupportedError, match=r"masked tensors are written to .npz"):
        ow.write(tmp_path / "m.ow", m)


def test_what_is_mapped_is_read_only(tmp_path: Path) -> None:
    ow.write(tmp_path / "t.ow", matrix())
    t = ow.open(tmp_path / "t.ow")
    changes: tuple[Callable[[], Any], ...] = (
        lambda: t.__imul__(2), lambda: t.zero_(), lambda: t.__setitem__((0, 1), 3.0), lambda: t.eliminate_zeros(),
        lambda: t.copy_(t * 2),
    )  # fmt: skip
    for change in changes:
        with pytest.raises(ow.ReadOnlyError):
            change()
    np.testing.assert_array_equal(ow.read(tmp_path / "t.ow").to_numpy(), DENSE)
    ow.write(tmp_path / "t.ow", matrix() * 2)  # replaced: what is open keeps the old file
    np.testing.assert_array_equal(t.to_numpy(), DENSE)


def test_scipy_files(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    s = sp.csr_array(DENSE)
    for m in (s, s.tocsc(), s.tocoo(), s.tobsr((2, 7)), sp.csr_array(([1.0, 2, 3], [2, 0, 2], [0, 3]), shape=(1, 3))):
        sp.save_npz(path, m, compressed=False)
        try:
            t = ow.open(path)
        except ow.UnsupportedError as error:
            assert "no multiple of" in str(error)  # noqa: PT017
            continue
        np.testing.assert_array_equal(t.to_numpy(), m.toarray())
        ow.write(path, t)
        np.testing.assert_array_equal(sp.load_npz(path).toarray(), m.toarray())
    sp.save_npz(path, s)
    with pytest.raises(ow.UnsupportedError, match=r"data.npy cannot be mapped, it is compressed\n  help: ow.read"):
        ow.open(path)


def test_what_can_be_read_and_not_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.npz"
    good = {
        "format": np.array(b"csr"),
        "shape": np.array([2, 3]),
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([0, 2]),
    }
    good["data"] = np.ones(2)
    for change, words in (
        ({"indices": np.array([0, 2], np.uint64)}, "holds uint64; index buffers are int32 or int64"),
        ({"indptr": np.array([0, 1, 2], np.int16)}, "holds int16; index buffers are int32 or int64"),
        ({"indices": np.array([0, 2], ">i8")}, "of another byte order|holds >i8"),
        ({"data": np.ones(2, ">f8")}, "of another byte order"),
    ):
        npz.write(path, {**good, **change}, False)
        np.testing.assert_array_equal(ow.read(path).to_numpy(), [[1, 0, 0], [0, 0, 1]])
        with pytest.raises(ow.UnsupportedError, match=words):
            ow.open(path)
    for change in ({"shape": np.array([2, 3, 1])}, {"data": np.ones((2, 1))}):
        npz.write(path, {**good, **change}, False)
        for get in (ow.read, ow.open):
            with pytest.raises(ow.FileFormatError):
                get(path)
    npz.write(path, good, False)
    assert ow.open(path).nse == 2

    def without_memory(*args: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("openwork.io.containers.mapped.to_tensor", without_memory)
    with pytest.raises(ow.FileFormatError, match="memory does not suffice to say where"):
        ow.open(path)


def test_truth_values_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.ow"
    ow.write(path, matrix() != 0)
    whole = (path / "values.bin").read_bytes()
    (path / "values.bin").write_bytes(whole[:-1] + b"\2")
    with pytest.raises(ow.FileFormatError, match=r"values.bin holds truth values that are neither 0 nor 1"):
        ow.open(path)
    (path / "values.bin").write_bytes(whole)
    monkeypatch.setattr("sys.byteorder", "big")
    for get in (ow.open, ow.read):
        with pytest.raises(ow.UnsupportedError, match="stores are little-endian, this machine is not"):
            get(path)


def test_members_begin_at_multiples_of_64_bytes(tmp_path: Path) -> None:
    ow.write(tmp_path / "t.npz", matrix())
    t = ow.open(tmp_path / "t.npz")
    assert all(x.__array_interface__["data"][0] % 64 == 0 for x in t._storage.buffers)
    with np.load(tmp_path / "t.npz") as arrays:
        np.testing.assert_array_equal(arrays["data"], t.values)


def test_corrupt_blocks_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("store", "store_header"):
        monkeypatch.setattr(f"openwork.io.containers.{name}.BLOCK", 16)
    path = tmp_path / "t.ow"
    ow.write(path, ow.asarray(np.eye(8), format="csr"))
    place = path / "values.bin"
    whole = place.read_bytes()
    place.write_bytes(whole[:37] + b"x" + whole[38:])
    for get in (lambda: ow.open(path, verify=True), lambda: ow.read(path)):
        with pytest.raises(ow.FileFormatError, match=r"values.bin, block 2 \(bytes 32 to 48\): the data is corrupt"):
            get()
    place.write_bytes(whole[:-1])
    for get in (lambda: ow.open(path), lambda: ow.read(path)):
        with pytest.raises(ow.FileFormatError, match=r"values.bin: 63 bytes; header.json says 64"):
            get()
    place.unlink()
    with pytest.raises(ow.FileFormatError, match=r"values.bin: the file is missing"):
        ow.open(path)
    (tmp_path / "other").write_bytes(whole)
    place.symlink_to(tmp_path / "other")
    with pytest.raises(ow.FileFormatError, match="not a regular file"):
        ow.open(path)


def test_corrupt_members_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    ow.write(path, matrix())
    data = path.read_bytes()
    at = data.index(np.float64(5.0).tobytes())
    path.write_bytes(data[:at] + b"\7" + data[at + 1 :])
    with pytest.raises(ow.FileFormatError, match=r"t.npz: data.npy is truncated or corrupt \(Bad CRC-32"):
        ow.open(path, verify=True)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ow.FileFormatError):
        ow.open(path)


def test_broken_invariants(tmp_path: Path) -> None:
    path = tmp_path / "t.ow"
    ow.write(path, matrix())
    crd = np.fromfile(path / "crd_1.bin", matrix().crd(1).dtype)
    crd[3] = 7
    crd.tofile(path / "crd_1.bin")
    with pytest.raises(ow.FileFormatError, match=r"5.5"):
        ow.open(path)


def with_header(path: Path, **changes: Any) -> None:
    """Change a header, and its checksum with it."""
    body = json.loads((path / "header.json").read_text())
    del body["crc32"]
    text = json.dumps(body | changes, separators=(",", ":")).encode()
    body = {**body, **changes, "crc32": zlib.crc32(text)}
    (path / "header.json").write_text(json.dumps(body))


def stored(scalar: str, dtype: str, **changes: Any) -> dict[str, Any]:
    """The header's entries of empty buffers of compressed rows, and its scalar."""
    empty = {key: {"dtype": "i8", "length": 0, "crc32": []} for key in ("pos_1", "crd_1")}
    values = {"dtype": dtype, "length": 0, "crc32": []}
    return {"scalar": scalar, "buffers": {**empty, "values": values, **changes}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"openwork": 2}, "read are 1 to 1"),
        ({"openwork": "1"}, "version of the layout"),
        ({"shape": [6, -7]}, "expected at most 64 extents"),
        ({"shape": [6, 10**30]}, "expected at most 64 extents"),
        ({"shape": [6]}, "dimensions"),
        ({"shape": [5, 7]}, "3.8"),
        ({"format": "(i, j) -> (i : dense)"}, "->"),
        ({"format": 3}, "expected a text"),
        ({"format": "coo"}, r"buffers are pos_1, crd_1, values; those of .* are pos_0, crd_0, crd_1, values"),
        ({"scalar": "f63"}, "known: bool"),
        ({"scalar": "f32"}, "values has the dtype 'f8'; expected f4"),
        ({"fill_value": "x"}, "not of f64"),
        ({"fill_value": [0.0, 0.0]}, "not of f64"),
        ({"buffers": []}, "buffers are"),
        ({"block": 5}, "blocks of 5 bytes"),
        ({"fill_value": float("nan")}, "no JSON"),
        ({"fill_value": float("-inf")}, "no JSON"),
        ({"fill_value": 300, **stored("i8", "i1")}, "fill_value is 300, which is not of i8"),
        ({"fill_value": -129, **stored("i8", "i1")}, "fill_value is -129, which is not of i8"),
        ({"fill_value": True, **stored("i8", "i1")}, "fill_value is True, which is not of i8"),
        ({"fill_value": 0, **stored("bool", "b1")}, "fill_value is 0, which is not of bool"),
        ({"fill_value": [0.0], **stored("c64", "c8")}, "fill_value is .0.0., which is not of c64"),
        (stored("f64", "f8", values=3), "values is 3; expected dtype, length and crc32"),
        (stored("f64", "f8", values={"dtype": "f8", "length": -1, "crc32": []}), "values has the length -1"),
        (stored("f64", "f8", values={"dtype": "f8", "length": 2**60, "crc32": []}), "values has the length"),
        (stored("f64", "f8", values={"dtype": "f8", "length": 2.0, "crc32": [1]}), "values has the length 2.0"),
        (stored("f64", "f8", values={"dtype": "f8", "length": 2, "crc32": []}), "not the checksums of 1 blocks"),
        (stored("f64", "f8", values={"dtype": "f8", "length": 2, "crc32": [1.0]}), "not the checksums of 1 blocks"),
        (stored("f64", "f8", values={"dtype": "f8", "length": 0, "crc32": [1]}), "not the checksums of 0 blocks"),
        (
            stored("f64", "f8", crd_1={"dtype": "f8", "length": 0, "crc32": []}),
            "crd_1 has the dtype 'f8'; expected i4 or i8 or b1",
        ),
        (stored("f64", "f8", crd_1=None), "crd_1 is None; expected dtype"),
    ],
)
def test_headers_that_do_not_fit(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "t.ow"
    ow.write(path, matrix())
    with_header(path, **changes)
    for get in (ow.open, ow.read):
        with pytest.raises((ow.FileFormatError, ow.UnsupportedError), match=message):
            get(path)


def test_headers_that_were_changed(tmp_path: Path) -> None:
    path = tmp_path / "t.ow"
    ow.write(path, matrix())
    header = path / "header.json"
    text = header.read_text()
    cases = {
        text.replace('"shape":[6,7]', '"shape":[7,6]'): "it was changed", text[:50]: "no JSON", "[]": "no header",
        "[" * 10**5: "no JSON",
    }  # fmt: skip
    for changed, message in cases.items():
        header.write_text(changed)
        with pytest.raises(ow.FileFormatError, match=message):
            ow.open(path)
    header.unlink()
    with pytest.raises(ow.FileFormatError, match=r"no store, there is no header.json"):
        ow.open(path)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for name in ("absent.ow", "absent.npz", "absent.mtx"):
        with pytest.raises(FileNotFoundError):
            ow.open(tmp_path / name)
    ow.write(tmp_path / "t.mtx", matrix())
    with pytest.raises(ow.UnsupportedError, match=r"only .ow and .npz files can be mapped, got '.mtx'"):
        ow.open(tmp_path / "t.mtx")
    (tmp_path / "file.ow").write_text("")
    with pytest.raises(ow.FileFormatError, match="is a folder, this is a file"):
        ow.read(tmp_path / "file.ow")
    (tmp_path / "folder.ow").mkdir()
    with pytest.raises(ow.UnsupportedError, match="is there, and no openwork store"):
        ow.write(tmp_path / "folder.ow", matrix())
    for wrong in ({"verify": 1}, {"check": None}):
        with pytest.raises(TypeError, match="must be True or False"):
            ow.open(tmp_path / "t.ow", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["write", "fsync", "rename"])
def test_the_old_store_survives_every_fault(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "t.ow"
    ow.write(path, matrix())
    for n in range(1, 99):
        hook = nth(kind, n)
        failed = None
        try:
            with injected(hook):
                ow.write(path, matrix() * 2)
        except OSError as error:
            failed = error
        if failed is not None:
            assert failed.filename == str(path)
            np.testing.assert_array_equal(ow.read(path).to_numpy(), DENSE)
            assert os.listdir(tmp_path) == ["t.ow"]
        else:
            break
    assert n > 1
    np.testing.assert_array_equal(ow.read(path).to_numpy(), DENSE * 2)
    assert os.listdir(tmp_path) == ["t.ow"]


def test_progress(tmp_path: Path) -> None:
    path, calls = tmp_path / "t.ow", []
    ow.write(path, matrix(), progress=lambda *x: calls.append(x))
    assert calls[-1] == (29, 29)
    ow.read(path, progress=lambda *x: calls.append(x))
    assert calls[-1][0] == calls[-1][1]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ow.write(path, matrix() * 2, progress=stop)
    np.testing.assert_array_equal(ow.read(path).to_numpy(), DENSE)
    assert os.listdir(tmp_path) == ["t.ow"]


@pytest.mark.parametrize("compress", [False, True])
def test_progress_of_archives(tmp_path: Path, compress: bool) -> None:
    """Told of blocks within an array, never backwards, to the end: written, read, copied after a conversion."""
    path, calls = tmp_path / "t.npz", []
    values = np.zeros(20 << 20, np.int8)
    ow.write(path, ow.asarray(values), compress=compress, progress=lambda *x: calls.append(x))
    assert calls == sorted(calls)
    assert len([done for done, _ in calls if 1000 < done < values.size]) > 0
    assert calls[-1][0] == calls[-1][1] >= values.size
    calls.clear()
    ow.read(path, max_ratio=2000, progress=lambda *x: calls.append(x))
    assert calls == sorted(calls)
    assert len(calls) > 10
    assert calls[-1][0] == calls[-1][1]
    ow.write(tmp_path / "t.mtx", matrix())
    calls.clear()
    ow.convert(tmp_path / "t.mtx", path, format="csr", progress=lambda *x: calls.append(x))
    totals = list(dict.fromkeys(total for _, total in calls))
    assert totals[0] == (tmp_path / "t.mtx").stat().st_size
    assert len(totals) == 2
    assert calls[-1] == (totals[1], totals[1])

    def stop(done: int, total: int) -> None:
        if total == totals[1]:
            raise KeyboardInterrupt

    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        ow.convert(tmp_path / "t.mtx", path, format="csr", progress=stop)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["t.mtx", "t.npz"]


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_operations_take_memory_for_their_results_alone(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 1000)
    n, k = 1000, 250
    crd = (np.arange(k) * (n // k) + np.random.default_rng(0).integers(0, n // k, (n, k))).ravel()
    A = ow.assemble("csr", (n, n), pos={1: np.arange(0, n * k + 1, k)}, crd={1: crd}, values=np.ones(n * k))
    ow.write(tmp_path / "t.ow", A)
    nbytes, x, X = A.nbytes, np.ones(n), np.ones((n, 3))
    del A, crd
    t = ow.open(tmp_path / "t.ow")
    calls: dict[str, Callable[[], Any]] = {
        "open": lambda: ow.open(tmp_path / "t.ow", verify=True), "A @ x": lambda: t @ x, "A.T @ x": lambda: t.T @ x,
        "A @ X": lambda: t @ X, "A.T @ X": lambda: t.T @ X, "sum": lambda: t.sum(), "sum 0": lambda: t.sum(axis=0),
        "mean 1": lambda: t.mean(axis=1), "max 0": lambda: t.max(axis=0), "min 1": lambda: t.min(axis=1),
        "var": lambda: t.var(axis=0), "rows": lambda: t[10:600], "row": lambda: t[7], "nse": lambda: t.nse,
        "norm": lambda: ow.linalg.norm(t), "norm 1": lambda: ow.linalg.norm(t, 1),
        "norm 3 of columns": lambda: ow.linalg.norm(t, 3, axis=0), "argmax": lambda: ow.argmax(t),
        "argmin 0": lambda: ow.argmin(t, axis=0), "argmax 1": lambda: ow.argmax(t.T, axis=1),
        "nansum": lambda: ow.nansum(t, axis=0), "nanmax": lambda: ow.nanmax(t, axis=1),
        "nanmean": lambda: ow.nanmean(t), "column": lambda: t[:, 7], "columns": lambda: t[:, 7:20],
        "list of columns": lambda: t[:, [3, 1, 70]], "rows of the transpose": lambda: t.T[100:110],
        "trace": lambda: ow.trace(t), "diagonal": lambda: ow.diagonal(t, offset=3), "median": lambda: ow.median(t, axis=1),
        "quantiles": lambda: ow.quantile(t, [0.2, 0.7], axis=1), "nanmedian": lambda: ow.nanmedian(t.T, axis=0),
    }  # fmt: skip
    for name, call in list(calls.items())[::step]:
        call()
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < nbytes / 8, (name, peak, nbytes)


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", ["coo", "dia", "csf"])
def test_other_formats_take_memory_for_a_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    rng = np.random.default_rng(0)
    band = np.triu(np.tril(rng.integers(1, 9, (600, 600)), 30), -30).astype(float)
    cube = np.where(rng.random((60, 20, 30)) < 0.5, 0.0, rng.integers(1, 9, (60, 20, 30)))
    X = cube if format == "csf" else band
    calls: dict[str, Callable[[Any], Any]] = {
        "trace": lambda t: ow.trace(t, offset=2), "diagonal": lambda t: ow.diagonal(t, offset=-5),
        "rows": lambda t: t[10:40], "every 50th row": lambda t: t[::-50], "a row": lambda t: t[7],
    }  # fmt: skip
    if format == "csf":
        calls |= {
            "trace of others": lambda t: ow.trace(t, axis1=1, axis2=2),
            "diagonal of others": lambda t: ow.diagonal(t, offset=4, axis1=2, axis2=1),
            **{f"ttv {d}": lambda t, d=d: ow.ttv(t, np.arange(t.shape[d]) + 1.0, d) for d in range(3)},
            "ttm": lambda t: ow.ttm(t, np.ones((30, 2)), 2), "median": lambda t: ow.median(t, axis=(1, 2)),
        }  # fmt: skip
    ow.write(tmp_path / "t.ow", ow.asarray(X, format=format))
    expected = [call(ow.asarray(X, format=format)) for call in calls.values()]
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 1000)
    t = ow.open(tmp_path / "t.ow")
    for (name, call), right in zip(calls.items(), expected, strict=True):
        found = call(t)
        assert found.format == right.format, name
        np.testing.assert_allclose(found.to_numpy(), right.to_numpy(), err_msg=name)
        tracemalloc.start()
        found = call(t)
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - 3 * now < t.nbytes / 4, (name, now, peak, t.nbytes)


def test_verify_in_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("store", "store_header"):
        monkeypatch.setattr(f"openwork.io.containers.{name}.BLOCK", 16)
    ow.write(tmp_path / "t.ow", ow.asarray(np.eye(20), format="coo"))
    assert ow.open(tmp_path / "t.ow", verify=True).nse == 20
    with (tmp_path / "t.ow" / "values.bin").open("r+b") as file:
        file.write(b"x")
    with pytest.raises(ow.FileFormatError, match=r"values.bin, block 0"):
        ow.open(tmp_path / "t.ow", verify=True)
    assert store.is_store(tmp_path / "t.ow")


def aligned(path: Path, arrays: dict[str, Any]) -> None:
    """An archive that is not packed, whose arrays begin at multiples of 64 bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            begin = archive.fp.tell() + 30 + len(member.filename) + 4  # type: ignore[union-attr]
            member.extra = b"OW" + (-begin % 64).to_bytes(2, "little") + bytes(-begin % 64)
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(member, buffer.getvalue())


@pytest.mark.parametrize("kind", ["csr", "bsr", "coo"])
@pytest.mark.parametrize("loose", [False, True])
def test_arrays_of_scipys_layout_are_mapped_in_the_format_that_they_keep(
    tmp_path: Path, kind: str, loose: bool
) -> None:
    arrays: dict[str, Any] = {
        "shape": np.array([2, 4]),
        "format": np.array(kind.encode()),
        "data": np.array([1.0, 2.0, 3.0]),
    }
    columns = np.array([2, 0, 3] if loose else [0, 2, 3], np.int32)
    if kind == "coo":
        arrays |= {"row": np.array([0, 0, 1], np.int32), "col": columns}
    else:
        arrays |= {"indices": columns, "indptr": np.array([0, 2, 3], np.int32)}
    if kind == "bsr":
        arrays["data"] = arrays["data"].reshape(3, 1, 1)
    aligned(tmp_path / "a.npz", arrays)
    t = ow.open(tmp_path / "a.npz")
    assert ("unordered" in str(t.format)) == loose
    np.testing.assert_array_equal(t.to_numpy(), ow.read(tmp_path / "a.npz").to_numpy())
    assert "unordered" in str(ow.open(tmp_path / "a.npz", check=False).format)


def test_the_header_of_a_store(tmp_path: Path) -> None:
    ow.write(tmp_path / "t.ow", ow.asarray(np.eye(3), format="csr"))
    found = header(tmp_path / "t.ow")
    assert (found.kind, found.shape, found.field, found.entries) == (
        "ow, (i, j) -> (i : dense, j : compressed)",
        (3, 3),
        "float64",
        3,
    )


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="pages are looked up as Linux tells them")
def test_pages_are_no_memory_of_the_process_where_that_is_limited(tmp_path: Path) -> None:
    """Pages that are copied when they are written to count in RLIMIT_DATA, whole: under it they can only be read."""
    import resource

    path = tmp_path / "a.ow"
    ow.write(path, ow.asarray(np.eye(5), format="csr"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    for limit, pages in ((1 << 40, {"r--s"}), (soft, {"rw-p"})):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        try:
            t = ow.open(path)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        lines = Path("/proc/self/maps").read_text().splitlines()
        assert {line.split()[1] for line in lines if str(path) in line} == pages
        np.testing.assert_array_equal(t.to_numpy(), np.eye(5))
        del t


def test_a_file_named_as_a_store(tmp_path: Path) -> None:
    (tmp_path / "a.ow").write_bytes(b"text")
    for load in (ow.open, ow.read):
        with pytest.raises(ow.FileFormatError, match=r"a\.ow: a store \.ow is a folder, this is a file"):
            load(tmp_path / "a.ow")
