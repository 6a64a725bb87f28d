"""Kernels on disk: only what this user alone can have written is run, and only files of ours are deleted."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from openwork import faults
from openwork.codegen import disk
from openwork.codegen import private_folder as private_folder_module
from openwork.codegen.target import host

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
ENTRY = disk.Entry("f", (), b"code" * 50)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@contextmanager
def bounded(seconds: int = 20) -> Iterator[None]:
    """Fail instead of hanging."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def written(folder: Path) -> Path:
    disk.write("key", ENTRY)
    (path,) = folder.glob("*.owk")
    assert disk.read("key") == ENTRY
    return path


def to_another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(path, 12345, -1)


FOLDERS: dict[str, Callable[[Path], None]] = {
    "mode 1777": lambda p: p.chmod(0o1777),
    "mode 0777": lambda p: p.chmod(0o777),
    "mode 0775": lambda p: p.chmod(0o775),
    "mode 0757": lambda p: p.chmod(0o757),
    "another user's": to_another_user,
    "a link": lambda p: p.symlink_to(p.rename(p.with_name("elsewhere"))),
}


@pytest.mark.parametrize("how", FOLDERS)
def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(folder: Path, how: str) -> None:
    path = written(folder)
    FOLDERS[how](folder)
    before = sorted(os.listdir(folder)), path.stat().st_mtime_ns
    assert disk.read("key") is None
    disk.write("key", ENTRY)
    disk.write("other", ENTRY)
    assert disk.clear() == 0
    assert (sorted(os.listdir(folder)), path.stat().st_mtime_ns) == before
    assert disk.why_not() is not None


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def linked_to(target: str) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return plant


def moved_behind_a_link(path: Path) -> None:
    path.symlink_to(path.rename(path.with_suffix(".moved")))


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def bound_socket(path: Path) -> None:
    path.unlink()
    there = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
    finally:
        os.chdir(there)


def sparse(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 40)


FILES: dict[str, Callable[[Path], None]] = {
    "a FIFO": fifo,
    "a link to /dev/zero": linked_to("/dev/zero"),
    "a link to itself": lambda p: linked_to(p.name)(p),
    "a link to a kernel": moved_behind_a_link,
    "a directory": directory,
    "a socket": bound_socket,
    "writable by the group": lambda p: p.chmod(0o660),
    "writable by the world": lambda p: p.chmod(0o602),
    "another user's": to_another_user,
}


@pytest.mark.parametrize("what", FILES)
def test_what_is_not_a_file_of_ours_is_passed_over_and_stays(folder: Path, what: str) -> None:
    path = written(folder)
    FILES[what](path)
    before = path.lstat()
    with bounded():
        assert disk.read("key") is None
        disk.write("key", ENTRY)
        assert disk.clear() == 0
    after = path.lstat()
    assert (stat.S_IFMT(after.st_mode), after.st_ino) == (stat.S_IFMT(before.st_mode), before.st_ino)
    assert not list(folder.glob("*.tmp"))


def test_a_file_of_any_size_is_not_read_whole(folder: Path) -> None:
    path = written(folder)
    sparse(path)
    with bounded():
        assert disk.read("key") is None
    disk.write("key", ENTRY)
    assert disk.read("key") == ENTRY


def test_a_device_under_a_kernels_name(folder: Path) -> None:
    path = written(folder)
    path.unlink()
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root can make devices")
    with bounded():
        assert disk.read("key") is None


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_what_is_made_is_this_users_alone(folder: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    deep = folder / "a" / "b"
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(deep))
    before = os.umask(umask)
    try:
        disk.write("key", ENTRY)
    finally:
        os.umask(before)
    (path,) = deep.glob("*.owk")
    assert [stat.S_IMODE(p.stat().st_mode) for p in (folder, folder / "a", deep, path)] == [0o700] * 3 + [0o600]
    assert disk.read("key") == ENTRY


@pytest.mark.skipif(sys.platform != "linux", reason="XDG folders")
def test_the_folder_does_not_depend_on_the_current_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENWORK_CACHE_DIR", raising=False)
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/of/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert disk.folder() == Path("/home/of/somebody/.cache/openwork")
    for home in ("", "relative"):
        monkeypatch.setenv("HOME", home)
        where = disk.folder()
        assert where is None or where.is_absolute()
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # a user that the system does not know
    assert disk.folder() is None
    disk.write("key", ENTRY)
    assert disk.read("key") is None


def test_only_our_files_are_deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_LIMIT", 0)
    monkeypatch.setattr(disk, "_TRIM_EVERY", 1)
    folder.mkdir(mode=0o700)
    digest = "0" * 64
    foreign = {
        "thesis.txt": b"text", "notes.owk": b"openwork object 2\n", f"{digest}.owk": b"not ours",
        "a.tmp": b"", "tmpabcdefgh.tmp": b"", f"{digest}.tmp": b"", f"{digest}.owk.bak": b"openwork object 2\n",
    }  # fmt: skip
    for name, content in foreign.items():
        (folder / name).write_bytes(content)
    left = folder / f"{digest}.owk.{'1' * 16}.tmp"
    young = folder / f"{digest}.owk.{'2' * 16}.tmp"
    for path in (left, young):
        path.write_bytes(b"half")
    old = time.time() - 10**8
    for path in (*(folder / name for name in foreign), left):
        os.utime(path, (old, old))
    disk.write("key", ENTRY)
    assert disk.read("key") is None
    assert {p.name for p in folder.iterdir()} == {*foreign, young.name}
    disk.write("key", ENTRY)
    disk.clear()
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.name in foreign} == foreign


def test_what_nobody_has_used_for_long_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder)
    disk.write("used", ENTRY)
    for file in folder.iterdir():
        os.utime(file, (time.time() - 200 * 86400,) * 2)
    assert disk.read("used") == ENTRY
    monkeypatch.setattr(disk, "_TRIM_EVERY", 1)
    disk.write("new", ENTRY)
    assert not path.exists()
    assert disk.read("used") == disk.read("new") == ENTRY


@pytest.mark.parametrize("kind", ["write", "rename"])
def test_a_write_that_fails_leaves_what_was_there(folder: Path, kind: faults.Kind) -> None:
    path = written(folder)
    before = path.read_bytes()
    with faults.injected(faults.nth(kind, 1)):
        disk.write("key", disk.Entry("g", (), b"other"))
        disk.write("key", disk.Entry("g", (), b"other again"))
    assert disk.read("key") == disk.Entry("g", (), b"other again")
    path.write_bytes(before)
    with faults.injected(faults.nth(kind, 1)):
        disk.write("key", disk.Entry("g", (), b"other"))
    assert path.read_bytes() == before
    assert os.listdir(folder) == [path.name]


SETTINGS = {
    "OPENWORK_NUM_THREADS": ["²", "٣", "many", "-1", "0", "1.5", "1e3", "", " ", "9" * 5000, "0x10", "1_0"],
    "OPENWORK_REUSE": ["²", "٣", "-1", "", "9" * 5000, "0.5"],
    "OPENWORK_KERNELS": ["²", "0", "-1", "", "9" * 5000, "lots"],
    "OPENWORK_CACHE": ["²", "", "2", "OFF", "yes"],
    "OPENWORK_POOL": ["²", "", "2"],
    "OPENWORK_CACHE_DIR": ["", "/dev/null", "/proc/none", "relative", "~", "~nobody-of-that-name/x", "x" * 5000],
}
IMPORTS = """
import os, sys
for name in [n for n in sys.modules if n.partition(".")[0] == "openwork"]: del sys.modules[name]
from openwork.codegen import disk, pool
from openwork.storage import memory
assert 1 <= pool.get_num_threads() <= 257, pool.get_num_threads()
disk.write("key", disk.Entry("f", (), b""))
disk.read("key")
"""


@pytest.mark.ci
def test_no_setting_makes_the_import_fail(tmp_path: Path) -> None:
    script = f"import os\nfor k in range({max(map(len, SETTINGS.values()))}):\n"
    script += f"    os.environ.update((name, values[k % len(values)]) for name, values in {SETTINGS!r}.items())\n"
    script += "".join(f"    {line}\n" for line in IMPORTS.splitlines())
    env = {**os.environ, "OPENWORK_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_a_checkout_that_is_not_installed_works(tmp_path: Path) -> None:
    script = """
from importlib import metadata
def version(name): raise metadata.PackageNotFoundError(name)
metadata.version = version
import numpy as np, openwork as ow
print((ow.asarray(np.eye(3), format="csr") @ np.arange(3.0)).tolist())
"""
    env = {**os.environ, "OPENWORK_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert done.stdout == "[0.0, 1.0, 2.0]\n", done.stderr
    assert list(tmp_path.glob("*.owk"))


def test_systems_without_descriptors_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are found by the folder's path there: read, replaced, listed, dated and removed as elsewhere."""
    monkeypatch.setattr(private_folder_module, "_POSIX", False)
    path = tmp_path / "made" / "here"
    with private_folder_module.private_folder(path, create=True) as files:
        assert path.is_dir()
        assert files.read("name", 10) is None
        files.replace("name", b"before")
        files.replace("name", b"content")
        assert (files.read("name", 7), files.read("name", 6), files.head("name", 3)) == (b"content", None, b"con")
        os.utime(path / "name", (5, 5))
        files.touch("name")
        files.touch("absent")
        assert (path / "name").stat().st_mtime > 1e9
        (path / "folder").mkdir()
        assert [name for name, _ in files.files()] == ["name"]
        info = files.info("name")
        assert info is not None
        assert info.st_size == 7
        files.replace("folder", b"no file")
        assert (path / "folder").is_dir()
        monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
        with pytest.raises(OSError, match="disk"):
            files.replace("name", b"after")
        assert sorted(p.name for p in path.iterdir()) == ["folder", "name"]
        files.remove("name")
        assert files.info("name") is None
        with pytest.raises(FileNotFoundError):
            files.remove("name")
    monkeypatch.undo()
    monkeypatch.setattr(private_folder_module, "_POSIX", False)
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(path))
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    disk.write("key", ENTRY)
    assert disk.read("key") == ENTRY


@pytest.mark.parametrize(
    ("system", "environment", "expected"),
    [
        ("win32", {"LOCALAPPDATA": "/data"}, "/data/openwork"),
        ("win32", {}, "/home/of/somebody/AppData/Local/openwork"),
        ("darwin", {"XDG_CACHE_HOME": "/other"}, "/home/of/somebody/Library/Caches/openwork"),
        ("linux", {"XDG_CACHE_HOME": "/other"}, "/other/openwork"),
        ("linux", {"OPENWORK_CACHE_DIR": "~/mine"}, "/home/of/somebody/mine"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="paths of POSIX")
def test_the_folder_of_each_system(
    system: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENWORK_CACHE", "OPENWORK_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/of/somebody", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(disk.sys, "platform", system)
    assert disk.folder() == Path(expected)


def test_why_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    assert disk.why_not() is None, "it will be made"
    folder.mkdir(mode=0o700)
    assert disk.why_not() is None
    folder.chmod(0o777)
    assert str(folder) in str(disk.why_not())
    monkeypatch.setenv("OPENWORK_CACHE", "0")
    assert disk.why_not() == "OPENWORK_CACHE says no"
    monkeypatch.delenv("OPENWORK_CACHE")
    monkeypatch.setattr(disk, "_path", lambda: (_ for _ in ()).throw(RuntimeError))
    assert disk.why_not() == "there is no home folder"


def test_the_processor_where_the_system_does_not_describe_it(monkeypatch: pytest.MonkeyPatch) -> None:
    described = disk._processor()
    assert described == disk._processor()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "")
    target = host()
    assert disk._processor() == f"{target.triple} {target.cpu} {target.features}"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "Flags: sse2\nbogomips: 3\n\nflags: avx\n")
    assert disk._processor().splitlines()[1:] == ["Flags: sse2"]
