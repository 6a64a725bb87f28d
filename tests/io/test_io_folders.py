"""Folders `.ow` and `.zarr`: files alone are read, one write whole, and what a kill leaves is told and removed."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.io.containers import store, zarr_store
from openwork.io.shared import exchange as exchange_module
from openwork.io.shared import leftovers, replace
from openwork.io.shared.exchange import exchange
from openwork.io.shared.folder import Folder

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="asks for links and pipes")


def matrix(seed: int = 0, n: int = 60) -> ow.Tensor:
    return ow.random((n, n), 0.1, format="csr", rng=seed)


@pytest.fixture(params=[".ow", ".zarr", ".bsp.zarr"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param != ".ow":
        pytest.importorskip("zarr")
    return str(request.param)


def files_of(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file())


def link_to(target: str) -> Callable[[Path, Path], None]:
    return lambda place, copy: place.symlink_to(copy if target == "itself" else target)


SPECIAL: dict[str, Callable[[Path, Path], None]] = {
    "link to itself elsewhere": link_to("itself"),
    "link to zeros": link_to("/dev/zero"),
    "link to nothing": link_to("/nowhere/at/all"),
    "pipe": lambda place, copy: os.mkfifo(place),
    "link to a pipe": lambda place, copy: (os.mkfifo(copy.with_suffix(".fifo")), place.symlink_to(copy.with_suffix(".fifo")))[0],
}  # fmt: skip


@posix
@pytest.mark.parametrize("special", SPECIAL)
def test_nothing_but_regular_files_is_read(tmp_path: Path, kind: str, special: str) -> None:
    """Every file of a store in turn: the header, metadata, chunks."""
    ow.write(tmp_path / f"whole{kind}", matrix())
    for at, original in enumerate(files_of(tmp_path / f"whole{kind}")):
        path, copy = tmp_path / f"{at}{kind}", tmp_path / f"{at}.copy"
        shutil.copytree(tmp_path / f"whole{kind}", path)
        place = path / original.relative_to(tmp_path / f"whole{kind}")
        place.rename(copy)
        SPECIAL[special](place, copy)
        if kind == ".zarr" and place.relative_to(path).parts[0] not in ("X", "zarr.json"):
            continue  # what is not asked for is not looked at
        with pytest.raises(ow.FileFormatError, match="not a regular file"):
            ow.read(path)
        if kind == ".ow":
            with pytest.raises(ow.FileFormatError, match="not a regular file"):
                ow.open(path)


@posix
def test_folders_that_are_links_are_not_entered(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    for at, name in enumerate(("X", "X/data", "X/data/c", "X/indptr/c")):
        path = tmp_path / f"{at}.zarr"
        ow.write(path, matrix())
        (path / name).rename(tmp_path / f"{at}.moved")
        (path / name).symlink_to(tmp_path / f"{at}.moved")
        with pytest.raises(ow.FileFormatError, match="but a link"):
            ow.read(path)


@posix
def test_the_path_itself_may_be_a_link(tmp_path: Path, kind: str) -> None:
    ow.write(tmp_path / f"t{kind}", matrix())
    (tmp_path / f"link{kind}").symlink_to(tmp_path / f"t{kind}")
    np.testing.assert_array_equal(ow.read(tmp_path / f"link{kind}").to_numpy(), matrix().to_numpy())


# -- one write, whole ----------------------------------------------------------------------------------------------


@pytest.mark.thin(2)
def test_a_reader_sees_one_write(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is replaced once, before the n-th file that is read."""
    path, n, step = tmp_path / f"t{kind}", 0, 1 if kind == ".ow" else 5
    opened = Folder.open
    while True:
        n, calls = n + step, []
        ow.write(path, matrix(0))

        def replacing(folder: Folder, name: str, n: int = n, calls: list[str] = calls) -> Any:
            calls.append(name)
            if len(calls) == n:
                ow.write(path, matrix(1))
            return opened(folder, name)

        monkeypatch.setattr(Folder, "open", replacing)
        found = ow.read(path).to_numpy()
        monkeypatch.undo()
        if len(calls) < n:
            break
        np.testing.assert_array_equal(found, matrix(1).to_numpy())
    assert n > 3
    np.testing.assert_array_equal(found, matrix(0).to_numpy())


def test_a_store_that_is_mapped_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = tmp_path / "t.ow", store._file
    ow.write(path, matrix(0))
    calls: list[str] = []

    def replacing(folder: Folder, name: str, stored: Any) -> Any:
        calls.append(name)
        if len(calls) == 2:
            ow.write(path, matrix(1))
        return opened(folder, name, stored)

    monkeypatch.setattr(store, "_file", replacing)
    np.testing.assert_array_equal(ow.open(path).to_numpy(), matrix(1).to_numpy())


WRITER = """
import sys
import openwork as ow
states = [ow.random((60, 60), 0.1, format="csr", rng=seed) for seed in range(2)]
for turn in range(int(sys.argv[2])):
    ow.write(sys.argv[1], states[turn % 2])
"""


@pytest.mark.ci
@pytest.mark.thin(2)
@posix
def test_readers_beside_a_writer(tmp_path: Path, kind: str) -> None:
    """Every read is one of the two tensors; none finds no store."""
    path, states = tmp_path / f"t{kind}", [matrix(seed).to_numpy() for seed in range(2)]
    ow.write(path, matrix(0))
    seen = set()
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), "60" if kind == ".ow" else "12"]) as writer:
        while writer.poll() is None:
            tensors = [ow.read(path)] if kind != ".ow" else [ow.read(path), ow.open(path)]
            for t in tensors:
                seen.add(next(k for k, state in enumerate(states) if np.array_equal(t.to_numpy(), state)))
    assert writer.returncode == 0
    assert seen <= {0, 1}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# -- what a kill leaves --------------------------------------------------------------------------------------------


def make_old(path: Path, seconds: float) -> None:
    for place in (path, *path.rglob("*")):
        os.utime(place, (time.time() - seconds,) * 2)


def leave(folder: Path, name: str, *, is_folder: bool) -> Path:
    place = folder / name
    if is_folder:
        place.mkdir()
        (place / "values.bin").write_bytes(b"half")
    else:
        place.write_bytes(b"half")
    return place


@pytest.mark.parametrize("target", ["t.ow", "t.npz", "t.mtx"])
def test_leftovers_are_removed_after_an_hour(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_removed", {})
    old = [leave(tmp_path, f".openwork-{k}{'0' * 15}.tmp", is_folder=bool(k)) for k in range(2)]
    new = [leave(tmp_path, f".openwork-{k}{'1' * 15}.tmp", is_folder=bool(k)) for k in range(2)]
    others = [leave(tmp_path, name, is_folder=False) for name in (".openwork-notes", "x.tmp", ".openwork-a.tmp.mine")]
    for place in (*old, *others):
        make_old(place, 3700)
    make_old(new[1], 3700)
    (new[1] / "values.bin").write_bytes(b"more")  # it is being written
    ow.write(tmp_path / target, matrix())
    assert not any(place.exists() for place in old)
    assert all(place.exists() for place in (*new, *others))
    for place in new:
        make_old(place, 3700)
    ow.write(tmp_path / target, matrix())
    assert all(place.exists() for place in new)  # a folder is looked at once an hour
    monkeypatch.setattr(leftovers, "_removed", {})
    ow.write(tmp_path / target, matrix())
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([target, *(p.name for p in others)])


def test_a_folder_that_was_moved_aside_goes_where_there_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an exchange in one step a kill between two steps leaves the old folder under this name alone."""
    kept = leave(tmp_path, ".openwork-00ff.old.a.ow", is_folder=True)
    gone = leave(tmp_path, ".openwork-00ff.old.b.ow", is_folder=True)
    for place in (kept, gone):
        make_old(place, 3700)
    ow.write(tmp_path / "b.ow", matrix())
    assert kept.exists()
    monkeypatch.setattr(leftovers, "_removed", {})
    ow.write(tmp_path / "b.ow", matrix(1))
    assert kept.exists()
    assert not gone.exists()


def test_a_step_that_fails_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing exchanges two folders in one step."""
    path = tmp_path / "t.ow"
    monkeypatch.setattr(replace, "exchange", lambda first, second: False)
    ow.write(path, matrix(0))
    ow.write(path, matrix(1))
    np.testing.assert_array_equal(ow.read(path).to_numpy(), matrix(1).to_numpy())
    moved = os.replace

    def failing(source: str, target: str) -> None:
        if source.endswith(".tmp") and target == str(path):
            raise OSError(5, "injected")
        moved(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="injected"):
        ow.write(path, matrix(2))
    monkeypatch.undo()
    np.testing.assert_array_equal(ow.read(path).to_numpy(), matrix(1).to_numpy())
    assert [p.name for p in tmp_path.iterdir()] == ["t.ow"]


@pytest.mark.skipif(sys.platform != "linux", reason="asks for renameat2")
def test_two_folders_change_places_in_one_step(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(str(tmp_path / "a"), str(tmp_path / "b")):
        pytest.skip("the file system has no exchange")
    assert (tmp_path / "a" / "b").exists()
    assert (tmp_path / "b" / "a").exists()
    with pytest.raises(FileNotFoundError):
        exchange(str(tmp_path / "a"), str(tmp_path / "none"))


@pytest.mark.parametrize("name", ["t.ow", "t.npz"])
def test_a_new_name_is_on_disk(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written comes first, the folder that has its name last, whether or not another had it."""
    synced: list[str] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        place = tmp_path / name
        synced.append("folder" if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path)) else "data")
        assert (synced[-1] == "folder") <= place.exists()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    for seed in range(2):
        synced.clear()
        ow.write(tmp_path / name, matrix(seed))
        assert synced[-1] == "folder"
        assert synced.count("folder") == 1 < len(synced)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EPERM])
def test_a_file_system_without_the_step(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are then moved one after the other."""

    def refusing(first: bytes, second: bytes) -> int:
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(exchange_module, "_swap", lambda: refusing)
    for seed in range(2):
        ow.write(tmp_path / "t.ow", matrix(seed))
        np.testing.assert_array_equal(ow.read(tmp_path / "t.ow").to_numpy(), matrix(seed).to_numpy())
        assert [p.name for p in tmp_path.iterdir()] == ["t.ow"]


def test_the_chunk_that_is_corrupt_is_named_in_both_dimensions(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        x = file.create_dataset("X", shape=(6, 5), chunks=(3, 2), dtype="f8", compression="gzip")
        x[...] = np.arange(30.0).reshape(6, 5)
        x.attrs["encoding-type"] = "array"
    np.testing.assert_array_equal(ow.read(path).to_numpy(), np.arange(30.0).reshape(6, 5))
    with h5py.File(path, "r+") as file:
        file["X"].id.write_direct_chunk((3, 4), b"no deflated data")
    with pytest.raises(ow.FileFormatError, match="chunk 1, 2"):
        ow.read(path)


# -- chunks that unpack to too much --------------------------------------------------------------------------------

BOMB = 96 << 20


def packed(codec: str, data: bytes) -> bytes:
    numcodecs = pytest.importorskip("numcodecs")
    made = {"gzip": numcodecs.GZip, "zstd": numcodecs.Zstd, "blosc": numcodecs.Blosc, "zlib": numcodecs.Zlib,
            "bz2": numcodecs.BZ2, "lzma": numcodecs.LZMA, "lz4": numcodecs.LZ4}  # fmt: skip
    return bytes(made[codec]().encode(data))


def store_with(path: Path, codec: str, version: int, shards: bool = False) -> None:
    """An AnnData store whose X is dense and packed by this codec."""
    zarr, numcodecs = pytest.importorskip("zarr"), pytest.importorskip("numcodecs")
    root = zarr.open_group(path, mode="w", zarr_format=version)
    root.attrs["encoding-type"] = "anndata"
    if version == 2:
        packers = {"gzip": numcodecs.GZip(), "zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc(), "zlib": numcodecs.Zlib(),
                   "bz2": numcodecs.BZ2(), "lzma": numcodecs.LZMA(), "lz4": numcodecs.LZ4()}  # fmt: skip
    else:
        packers = {"gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec(), "blosc": zarr.codecs.BloscCodec()}
    more = {"shards": (8, 4)} if shards else {}
    x = root.create_array("X", shape=(8, 4), chunks=(4, 4), dtype="f8", compressors=packers[codec], **more)
    x[...] = np.arange(32.0).reshape(8, 4)
    x.attrs["encoding-type"] = "array"


CODECS = [
    *((2, c) for c in ("gzip", "zstd", "blosc", "zlib", "bz2", "lzma", "lz4")),
    *((3, c) for c in ("gzip", "zstd", "blosc")),
]


@pytest.mark.parametrize(("version", "codec"), CODECS)
def test_a_chunk_unpacks_to_no_more_than_a_chunk(tmp_path: Path, version: int, codec: str) -> None:
    store_with(tmp_path / "t.zarr", codec, version)
    np.testing.assert_array_equal(ow.read(tmp_path / "t.zarr").to_numpy(), np.arange(32.0).reshape(8, 4))
    (tmp_path / "t.zarr" / "X" / ("1.0" if version == 2 else "c/1/0")).write_bytes(packed(codec, bytes(BOMB)))
    before = resident_peak()
    with pytest.raises(ow.FileFormatError, match="unpacks to more than"):
        ow.read(tmp_path / "t.zarr")
    assert resident_peak() - before < BOMB // 3


def resident_peak() -> int:
    """The most bytes that the process has had in memory since the last call."""
    if not Path("/proc/self/clear_refs").exists():
        return 0
    Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) << 10


def test_shards_and_codecs_that_nobody_knows(tmp_path: Path) -> None:
    zarr, numcodecs = pytest.importorskip("zarr"), pytest.importorskip("numcodecs")
    store_with(tmp_path / "s.zarr", "zstd", 3, shards=True)
    np.testing.assert_array_equal(ow.read(tmp_path / "s.zarr").to_numpy(), np.arange(32.0).reshape(8, 4))
    root = zarr.open_group(tmp_path / "p.zarr", mode="w", zarr_format=2)
    root.attrs["encoding-type"] = "anndata"
    root.create_array("X", shape=(4, 4), chunks=(4, 4), dtype="f8", filters=[numcodecs.Base64()])
    with pytest.raises(ow.UnsupportedError, match="codec 'base64'"):
        ow.read(tmp_path / "p.zarr")


def test_frames_of_zstd_without_a_size() -> None:
    """A frame of one block of 2**20 repeated bytes, of 8; one of a thousand; one that ends early; one to be skipped."""
    magic = (0xFD2FB528).to_bytes(4, "little") + bytes([0, 0x50])

    def frame(blocks: int) -> bytes:
        heads = [(at == blocks - 1) | 1 << 1 | (1 << 17) << 3 for at in range(blocks)]
        return magic + b"".join(head.to_bytes(3, "little") + b"\0" for head in heads)

    skipped = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    for data in (frame(1), frame(8), skipped + frame(8), frame(4) + skipped + frame(4)):
        assert zarr_store._check_zstd(data, 1 << 20, "place") is None
    with pytest.raises(ow.FileFormatError, match="unpacks to more than"):
        zarr_store._check_zstd(frame(1000), 1 << 20, "place")
    with pytest.raises(ow.FileFormatError, match="ends early"):
        zarr_store._check_zstd(frame(8)[:-3], 1 << 20, "place")
    with pytest.raises(ow.FileFormatError, match="not a stream of zstd"):
        zarr_store._check_zstd(b"PK\3\4abcdefgh", 1 << 20, "place")


@pytest.mark.ci
def test_a_deflated_chunk_of_hdf5_unpacks_to_no_more_than_a_chunk(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    import zlib

    for options in ({}, {"shuffle": True}, {"fletcher32": True}):
        path = tmp_path / f"{len(options)}{list(options)}.h5ad"
        with h5py.File(path, "w") as file:
            file.attrs["encoding-type"] = "anndata"
            x = file.create_dataset("X", shape=(8, 4), chunks=(4, 4), dtype="f8", compression="gzip", **options)
            x[...] = np.arange(32.0).reshape(8, 4)
            x.attrs["encoding-type"] = "array"
        np.testing.assert_array_equal(ow.read(path).to_numpy(), np.arange(32.0).reshape(8, 4))
        with h5py.File(path, "r+") as file:
            file["X"].id.write_direct_chunk((4, 0), zlib.compress(bytes(BOMB), 9))
        before = resident_peak()
        with pytest.raises(ow.FileFormatError, match=r"chunk 1, 0: .* unpack to more than"):
            ow.read(path)
        assert resident_peak() - before < BOMB // 3


def test_filters_of_hdf5_behind_one_that_packs(tmp_path: Path) -> None:
    """Deflate before shuffle: what is inflated would not be what was packed."""
    h5py = pytest.importorskip("h5py")
    for order in (("set_deflate", "set_shuffle"), ("set_deflate", "set_fletcher32"), ("set_shuffle", "set_deflate")):
        path = tmp_path / f"{order}.h5ad"
        with h5py.File(path, "w") as file:
            layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            layout.set_chunk((4, 4))
            for name in order:
                getattr(layout, name)(*([4] if name == "set_deflate" else []))
            space, kind = h5py.h5s.create_simple((4, 4)), h5py.h5t.py_create(np.dtype("f8"))
            h5py.Dataset(h5py.h5d.create(file.id, b"X", kind, space, layout))[...] = np.eye(4)
            file.attrs["encoding-type"] = "anndata"
        if order[1] == "set_shuffle":
            with pytest.raises(ow.FileFormatError, match="has the filters"):
                ow.read(path)
        else:
            np.testing.assert_array_equal(ow.read(path).to_numpy(), np.eye(4))
