"""Writers leave the old file or the new one, whole, and nothing else: faults, interrupts, kills, links, modes."""

from __future__ import annotations

import errno
import importlib.util
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import openwork as ow
from openwork.faults import injected, nth
from openwork.io.shared.leftovers import PREFIX
from openwork.io.shared.replace import replacing

NAMES = ["t.mtx", "t.mtx.gz", "t.mtx.bz2", "t.mtx.xz", "t.tns", "t.tns.gz", "t.rb", "t.rb.gz", "t.npz"]


def matrix(n: int = 1000, seed: int = 0) -> ow.Tensor:
    rng = np.random.default_rng(seed)
    index = np.unique(rng.integers(0, 400 * 400, n))
    return ow.sparse_coo_tensor(np.stack([index // 400, index % 400]), rng.standard_normal(index.size), (400, 400))


def only(path: Path) -> None:
    """No temporary is left."""
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.thin(6)
@pytest.mark.parametrize("kind", ["write", "fsync", "rename"])
@pytest.mark.parametrize("name", NAMES)
def test_the_old_file_survives_every_fault(tmp_path: Path, name: str, kind: str) -> None:
    path, new = tmp_path / name, matrix(seed=1)
    ow.write(path, matrix())
    old = path.read_bytes()
    for n in range(1, 99):
        hook, failed = nth(kind, n), None
        with injected(hook):
            try:
                ow.write(path, new)
            except OSError as error:
                failed = error
        if failed is None:
            break
        assert (failed.errno, failed.filename) == (errno.ENOSPC, str(path))
        assert path.read_bytes() == old
        only(path)
    assert n > 1
    assert hook.calls == n - 1
    np.testing.assert_array_equal(ow.read(path).to_numpy(), new.to_numpy())
    only(path)


@pytest.mark.thin(2)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("name", ["t.mtx", "t.mtx.gz", "t.tns", "t.rb", "t.npz"])
def test_an_exception_in_progress_keeps_the_old_file(tmp_path: Path, name: str, error: type[BaseException]) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def stop(done: int, total: int) -> None:
        raise error("late" if done == total else "early")

    with pytest.raises(error):
        ow.write(path, matrix(), progress=stop)
    assert path.read_bytes() == b"old"
    only(path)


def test_masked_tensors_too(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    m = ow.masked_tensor(np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3) % 2 == 0)
    path.write_bytes(b"old")
    for kind in ("write", "fsync", "rename"):
        with injected(nth(kind, 1)), pytest.raises(OSError, match="injected"):
            ow.write(path, m)
        assert path.read_bytes() == b"old"
        only(path)
    ow.write(path, m)
    assert ow.read(path).shape == (2, 3)


def test_what_cannot_be_written_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    path.write_bytes(b"old")
    with pytest.raises(ow.UnsupportedError):
        ow.write(path, matrix() * 1j)
    assert path.read_bytes() == b"old"


def test_the_mode_is_kept_and_the_umask_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "t.mtx"
    before = os.umask(0o027)
    try:
        ow.write(path, matrix(9))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o664, 0o755):
            path.chmod(mode)
            ow.write(path, matrix(9))
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_links_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    for name, target in (("a.mtx", folder / "a.mtx"), ("b.mtx", folder / "new.mtx")):
        (tmp_path / name).symlink_to(target)
    (folder / "a.mtx").write_bytes(b"old")
    for name in ("a.mtx", "b.mtx"):
        ow.write(tmp_path / name, matrix(9))
        assert (tmp_path / name).is_symlink()
        assert ow.read(tmp_path / name).shape == (400, 400)
    assert sorted(p.name for p in folder.iterdir()) == ["a.mtx", "new.mtx"]


def test_a_pipe_is_written_straight(tmp_path: Path) -> None:
    path, found = tmp_path / "t.mtx", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    ow.write(path, matrix(9))
    reader.join(10)
    assert found[0].startswith(b"%%MatrixMarket")
    assert stat.S_ISFIFO(path.stat().st_mode)
    only(path)


@pytest.mark.ci
def test_standard_output_is_written_straight(tmp_path: Path) -> None:
    (tmp_path / "t.mtx").symlink_to("/dev/stdout")
    code = "import openwork as ow, sys; print('first', flush=True); ow.write(sys.argv[1], ow.eye(3))"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.mtx")], check=True, stdout=out)
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert any(line.startswith(b"%%MatrixMarket") for line in lines)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    names = ("a.mtx", "a.npz", "a.ow", "a.petsc")
    for _ in range(2):
        before = len(os.listdir("/dev/fd"))
        for name in names:
            ow.write(tmp_path / name, matrix(9))
            assert ow.read(tmp_path / name).shape == (400, 400)
        assert len(os.listdir("/dev/fd")) == before


def test_no_symmetry_of_files_that_say_none(tmp_path: Path) -> None:
    t = ow.asarray(np.array([[1.0, 2], [2, 0]]), format="csr")
    for name in ("a.npz", "a.tns", "a.ow"):
        with pytest.raises(ow.UnsupportedError, match="files say no symmetry; got 'symmetric'"):
            ow.write(tmp_path / name, t, symmetry="symmetric")
        ow.write(tmp_path / name, t, symmetry="auto")
    for name in ("a.mtx", "a.rb"):
        ow.write(tmp_path / name, t, symmetry="symmetric")
        assert ow.io.header(tmp_path / name).symmetry == "symmetric"
        for x in ([[1.0, 2], [3, 0]], [[0.0, 2], [0, 0]], [[0, 2], [2, 5.0]]):
            ow.write(tmp_path / name, ow.asarray(np.array(x), format="coo"), symmetry="auto")
            assert (ow.io.header(tmp_path / name).symmetry == "symmetric") == np.array_equal(x, np.transpose(x))
    for dtype in ("bool", "uint8"):  # of which none is its own negative but 0
        truth = ow.asarray(np.array([[0, 1], [1, 1]], dtype), format="coo")
        for symmetry in ("symmetric", "auto"):
            ow.write(tmp_path / "a.mtx", truth, symmetry=symmetry)
            assert ow.io.header(tmp_path / "a.mtx").symmetry == "symmetric"
        np.testing.assert_array_equal(ow.read(tmp_path / "a.mtx").to_numpy(), truth.to_numpy())
        for kind in ("skew-symmetric",) if dtype == "uint8" else ("skew-symmetric", "hermitian"):
            with pytest.raises(ow.ShapeError, match=f"is not {kind}"):
                ow.write(tmp_path / "a.mtx", truth, symmetry=kind)
            with pytest.raises(ow.ShapeError, match=f"is not {kind}"):  # of which `read` would ask for signs
                ow.write(tmp_path / "a.mtx", ow.zeros((2, 2), dtype=dtype, format="coo"), symmetry=kind)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.mtx"
    path.write_bytes(b"old")
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        ow.write(path, matrix(9))
    assert path.read_bytes() == b"old"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "t.mtx").mkdir()
    with pytest.raises(IsADirectoryError):
        ow.write(tmp_path / "t.mtx", matrix(9))
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "nowhere" / "t.mtx"):
        pass


def write_without_end(folder: Path, states: list[ow.Tensor], ready: int) -> None:
    for turn in range(10**9):
        for name in KILLED:
            ow.write(folder / name, states[turn % 2])
        if not turn:
            os.write(ready, b"!")


KILLED = ["t.mtx", "t.mtx.gz", "t.tns", "t.rb", "t.npz", "t.ow"]


def kill_while_writing(folder: Path, kills: int, seed: int) -> int:
    """Kill a process that writes files without end, `kills` times; returns how many files were then looked at."""
    chance, checked = random.Random(seed), 0
    states = [matrix(8000, seed=k).asformat("csc") for k in range(2)]
    whole = [t.to_numpy() for t in states]
    for name in KILLED:
        ow.write(folder / name, states[0])
    for _ in range(kills):
        listen, ready = os.pipe()
        child = os.fork()
        if not child:
            try:
                write_without_end(folder, states, ready)
            finally:
                os._exit(1)
        os.read(listen, 1)
        threading.Event().wait(chance.random() * 0.1)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        os.close(listen)
        os.close(ready)
        for name in KILLED:
            found = ow.read(folder / name).to_numpy()
            assert any(np.array_equal(found, state) for state in whole), name
            checked += 1
    assert all(p.name.startswith(PREFIX) or p.name in KILLED for p in folder.iterdir())
    return checked


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_killed_while_writing(tmp_path: Path) -> None:
    assert kill_while_writing(tmp_path, 4, seed=0) == 24


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_killed_a_hundred_times_while_writing(tmp_path: Path) -> None:
    assert kill_while_writing(tmp_path, 100, seed=1) == 600


FULL_DISK = """
import os, resource, signal, sys
import numpy as np, openwork as ow
from openwork.faults import injected, nth
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
t, small = ow.random_array((300, 300), density=0.3, format="csr", rng=0), ow.eye_array(3, format="csr")
ow.write("a.ow", t)
for name in sys.argv[1:]:
    ow.write(name, small)
    kind = "csr" if name.endswith((".h5", ".h5ad", ".zarr", ".npz", ".ow")) else "coo"
    for call in (lambda: ow.write(name, t), lambda: ow.convert("a.ow", name, format=kind)):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, limits[1]))
        try:
            call()
        except OSError as error:
            assert error.filename == name, error.filename
        else:
            raise AssertionError(name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        for k in (1, 3, 6):
            try:
                with injected(nth("write", k)):
                    call()
                ow.write(name, small)  # there were fewer writes
            except OSError as error:
                assert error.filename == name, error.filename
        assert (ow.read(name).to_numpy() == np.eye(3)).all(), name
        assert not [x for x in os.listdir(".") if x.startswith(".openwork")], os.listdir(".")
print("right")
"""


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="asks for limits of a file's size")
def test_a_full_disk_is_an_error_with_the_path_whatever_library_writes(tmp_path: Path) -> None:
    """In a process of its own: libhdf5 ends one where a write fails."""
    needs = {"b.bsp.h5": "h5py", "b.h5ad": "h5py", "b.h5": "h5py", "b.bsp.zarr": "zarr", "b.parquet": "pyarrow"}
    names = ["b.ow", "b.npz", "b.mtx", *(name for name, needed in needs.items() if importlib.util.find_spec(needed))]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FULL_DISK, *names], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == "right", done.stderr[-2000:]
