"""URLs through fsspec's file system in memory: read, written, converted; folders, errors, hostile names."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.faults import injected, nth
from openwork.io import header
from openwork.io.shared.remote import fetched, is_url

fsspec = pytest.importorskip("fsspec")

A = ow.random((30, 20), 0.1, format="csr", rng=0)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fsspec's memory, empty; and a folder of temporary files that is empty after the test, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.tns", "a.npz", "b/c/a.rb", "a.petsc", "a.bsp.h5", "a.h5ad"])
def test_a_file_is_written_and_read(name: str) -> None:
    if name.endswith(("h5", "h5ad")):
        pytest.importorskip("h5py")
    url = f"memory://{name}"
    ow.write(url, A)
    np.testing.assert_array_equal(ow.read(url).to_numpy(), A.to_numpy())
    assert ow.read(url, format="csc").format == ow.format("csc")
    assert header(url).shape == (30, 20)
    ow.write(url, A * 2)
    np.testing.assert_array_equal(ow.read(url).to_numpy(), A.to_numpy() * 2)


def test_conversions_from_to_and_between(tmp_path: Path) -> None:
    ow.write("memory://a.mtx", A)
    ow.convert("memory://a.mtx", "memory://b.npz", format="csc")
    assert ow.read("memory://b.npz").format == ow.format("csc")
    local = tmp_path / "c.ow"
    ow.convert("memory://b.npz", local)
    ow.convert(local, "memory://d.tns")
    np.testing.assert_array_equal(ow.read("memory://d.tns", shape=(30, 20)).to_numpy(), A.to_numpy())
    shutil.rmtree(local)


def test_what_else_a_file_holds_stays(store: Any) -> None:
    pytest.importorskip("h5py")
    ow.write("memory://a.h5ad", {"X": A, "layers/two": A * 2})
    ow.write("memory://a.h5ad", {"layers/log": A * 3})
    for name, times in (("X", 1), ("layers/two", 2), ("layers/log", 3)):
        np.testing.assert_array_equal(ow.read("memory://a.h5ad", variable=name).to_numpy(), A.to_numpy() * times)
    np.testing.assert_array_equal(ow.read("memory://a.h5ad", rows=[3, 1]).to_numpy(), A.to_numpy()[[3, 1]])


def test_folders_are_read_and_not_written(tmp_path: Path, store: Any) -> None:
    local = tmp_path / "t.ow"
    ow.write(local, A)
    store.put(str(local), "/t.ow", recursive=True)
    for place in (*local.iterdir(), local):
        place.unlink() if place.is_file() else place.rmdir()
    np.testing.assert_array_equal(ow.read("memory://t.ow").to_numpy(), A.to_numpy())
    with pytest.raises(ow.UnsupportedError, match="a folder is not replaced in one step there"):
        ow.write("memory://t.ow", A)


def test_a_write_that_fails_sends_nothing(store: Any) -> None:
    ow.write("memory://a.mtx", A)
    old = store.cat("/a.mtx")
    for kind in ("write", "fsync", "rename"):
        with injected(nth(kind, 1)), pytest.raises(OSError, match="injected"):
            ow.write("memory://a.mtx", A * 2)
        assert store.cat("/a.mtx") == old


def test_errors_name_the_url(store: Any) -> None:
    with pytest.raises(FileNotFoundError):
        ow.read("memory://nobody.mtx")
    store.pipe("/bad.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 5\n")
    with pytest.raises(ow.FileFormatError, match=r"^memory://bad\.mtx, line 3: index 3"):
        ow.read("memory://bad.mtx")
    with pytest.raises(ow.UnsupportedError, match=r"nosuchscheme://a\.mtx: Protocol not known"):
        ow.read("nosuchscheme://a.mtx")
    with pytest.raises(ow.UnsupportedError, match=r"memory://a\.svm: \.svm files are read only"):
        ow.write("memory://a.svm", A)
    for call in (lambda: ow.open("memory://a.ow"), lambda: ow.io.write_parts("memory://a.ow", [], (2, 2))):
        with pytest.raises(ow.UnsupportedError, match=r"is a URL\n  supported: ow.read, ow.write and ow.convert"):
            call()


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ow.UnsupportedError, match="URLs need fsspec"):
        ow.read("memory://a.mtx")


@pytest.mark.parametrize("name", ["/t.ow/../../evil", "/t.ow/a//b", "/elsewhere/x", "/t.ow/./x"])
def test_names_that_lead_out_of_the_folder(store: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    store.pipe("/t.ow/header.json", b"{}")
    monkeypatch.setattr(type(store), "find", lambda self, path: [name])
    with pytest.raises(ow.FileFormatError, match="which is none below the folder"):
        ow.read("memory://t.ow")


def test_what_is_a_url() -> None:
    for text in ("s3://bucket/a.mtx", "memory://a", "https://host/a.npz?x=1", "simplecache::s3://b/a.mtx"):
        assert is_url(text)
    for text in ("a.mtx", "/a/b.mtx", "C://a.mtx", "a:b.mtx", "://a", 3, Path("s3://x")):
        assert not is_url(text)
    fsspec.filesystem("memory").pipe("/a.npz", b"x")
    with fetched("memory://a.npz", "read") as local:
        assert Path(local).name == "a.npz"
        assert Path(local).read_bytes() == b"x"
