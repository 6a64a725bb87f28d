"""Executables: calling them, and finding them again in memory and on disk."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from platform import machine

import numpy as np
import pytest

from openwork.codegen import cache, disk, engine, linker, llvm
from openwork.codegen.emit import emit
from openwork.codegen.executable import run
from openwork.errors import CompilerBug, UnsupportedError
from openwork.ir.loop import Kernel
from openwork.ir.text import parse

SCALE = """
def scale(lo: i64, hi: i64, a: f64, x: f64[const], y: f64[mut]):
    for i in range(lo, hi):
        y[i] = a * x[i]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    cache.clear_memory()
    return tmp_path


def scaled(executable: cache.Executable) -> np.ndarray:
    y = np.zeros(4)
    assert run(executable, {"a": 2.5, "x": np.arange(4.0), "y": y}, 1, 4) == 0
    return y


def forbidden() -> Kernel:
    raise AssertionError("built again")


def test_memory_then_disk_then_new(files: Path) -> None:
    first = cache.get("scale", lambda: parse(SCALE))
    np.testing.assert_array_equal(scaled(first), [0, 2.5, 5, 7.5])
    assert cache.get("scale", forbidden) is first
    assert len(list(files.glob("*.owk"))) == 1
    cache.clear_memory()
    again = cache.get("scale", forbidden)
    assert again is not first
    assert again.params == first.params
    np.testing.assert_array_equal(scaled(again), scaled(first))


@pytest.mark.thin(2)
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_a_broken_file_is_compiled_again(files: Path, damage: str) -> None:
    cache.get("scale", lambda: parse(SCALE))
    (path,) = files.glob("*.owk")
    raw = path.read_bytes()
    half = len(raw) // 2
    path.write_bytes(
        {
            "cut": raw[:half],
            "flip": raw[:half] + bytes([raw[half] ^ 1]) + raw[half + 1 :],
            "empty": b"",
            "foreign": b"\x7fELF" + bytes(5000),
        }[damage]
    )
    cache.clear_memory()
    assert disk.read("scale") is None
    np.testing.assert_array_equal(scaled(cache.get("scale", lambda: parse(SCALE))), [0, 2.5, 5, 7.5])
    assert path.read_bytes() == raw


def test_the_cache_can_be_off(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENWORK_CACHE", "0")
    cache.get("scale", lambda: parse(SCALE))
    assert not list(files.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path / "file" / "folder"))
    cache.clear_memory()
    scaled(cache.get("scale", lambda: parse(SCALE)))


def test_the_oldest_files_are_dropped(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_LIMIT", 5000)
    monkeypatch.setattr(disk, "_TRIM_EVERY", 1)
    for i in range(6):
        disk.write(f"key {i}", disk.Entry("f", (), bytes(1500)))
        for path in files.glob("*.owk"):
            os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10**9))
    assert [disk.read(f"key {i}") is not None for i in range(6)] == [False] * 3 + [True] * 3


def test_a_new_process_needs_neither_build_nor_llvm(files: Path) -> None:
    cache.get("scale", lambda: parse(SCALE))
    script = """
import sys
import numpy as np
from openwork.codegen import cache, executable
def build(): raise AssertionError("built again")
y = np.zeros(3)
executable.run(cache.get("scale", build), [3.0, np.ones(3), y], 0, 3)
assert y.tolist() == [3, 3, 3]
print("llvmlite" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    if sys.platform == "linux":
        assert out.strip() == "False"


def test_both_linkers_agree() -> None:
    kernel = parse("""
def f(n: i64, x: f64[const], y: f64[mut]):
    w: f64[n] = zeros
    for i in range(0, n):
        w[i] = exp(x[i]) + x[i] ** 1.5 + hypot(x[i], 2.0)
    for i in range(0, n):
        y[i] = w[n - 1 - i] + 0.125
""")
    code = engine.to_object(emit(kernel))
    x = np.linspace(0, 1, 33)
    results = []
    for load in (linker.link, engine._load_by_llvm):
        y = np.zeros(33)
        assert run(cache.Executable("f", kernel.params, load(code, ["f"]), lambda: kernel), [33, x, y]) == 0
        results.append(y)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], (np.exp(x) + x**1.5 + np.hypot(x, 2))[::-1] + 0.125)


def test_the_linker_refuses_what_it_does_not_know() -> None:
    code = engine.to_object(emit(parse(SCALE)))
    for bad in (b"", b"\x7fELF", b"MZ" + bytes(500), code[:100], code[:-200]):
        with pytest.raises(linker.Unlinkable):
            linker.link(bad, ["scale"])
    with pytest.raises(linker.Unlinkable, match="no elacs in the object"):
        linker.link(code, ["elacs"])


TABLE = """
declare double @cbrt(double)
@table = dso_local constant [3 x ptr] [ptr @twice, ptr @cbrt, ptr getelementptr (i8, ptr @numbers, i64 8)]
@numbers = internal constant [2 x double] [double 0.5, double 0.25]
@distance = dso_local constant i64 sub (i64 ptrtoint (ptr @twice to i64), i64 ptrtoint (ptr @distance to i64))
@written = internal global [600 x i64] zeroinitializer
define dso_local double @twice(double %x) noinline { %y = fmul double %x, 2.0 ret double %y }
define double @root(double %x) { %y = call double @cbrt(double %x) %z = call double @twice(double %y) ret double %z }
define double @pick(i64 %i, double %x) {
  %at = getelementptr [3 x ptr], ptr @table, i64 0, i64 %i
  %f = load ptr, ptr %at
  %y = call double %f(double %x)
  ret double %y
}
define double @quarter() {
  %at = getelementptr [3 x ptr], ptr @table, i64 0, i64 2
  %p = load volatile ptr, ptr %at
  %y = load double, ptr %p
  ret double %y
}
define i64 @apart() {
  %d = load volatile i64, ptr @distance
  %from = ptrtoint ptr @distance to i64
  %to = ptrtoint ptr @twice to i64
  %there = add i64 %from, %d
  %off = sub i64 %there, %to
  ret i64 %off
}
define i64 @count(i64 %k) {
  %at = getelementptr [600 x i64], ptr @written, i64 0, i64 %k
  %n = load i64, ptr %at
  %m = add i64 %n, 1
  store i64 %m, ptr %at
  ret i64 %m
}
"""
FUNCTIONS = ("root", "pick", "quarter", "apart", "count")


def use(code: linker.Code) -> list[object]:
    """What the functions of `TABLE` give."""
    number, real = ctypes.c_int64, ctypes.c_double
    kinds = ((real, real), (real, number, real), (real,), (number,), (number, number))
    root, pick, quarter, apart, count = (ctypes.CFUNCTYPE(*k)(at) for k, at in zip(kinds, code.addresses, strict=True))
    return [root(27.0), pick(0, 4.0), pick(1, 64.0), quarter(), apart(), count(0), count(599), count(599)]


@pytest.mark.skipif(sys.platform != "linux" or machine() != "x86_64", reason="objects of x86-64 Linux")
def test_what_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of own and foreign functions in tables, distances, constants, variables: by either linker."""
    code = engine.to_object(TABLE)
    assert {kind for *_, kind, _, _ in linker._Object(code).relocations()} >= {linker._ABS64, linker._PC64}
    expected = pytest.approx([6.0, 8.0, 4.0, 0.25, 0, 1, 1, 2])
    assert use(linker.link(code, FUNCTIONS)) == expected
    assert use(engine.load(code, *FUNCTIONS)) == expected

    def unlinkable(*args: object) -> None:
        raise linker.Unlinkable

    monkeypatch.setattr(linker, "link", unlinkable)
    assert use(engine.load(code, *FUNCTIONS)) == expected
    with pytest.raises(CompilerBug, match="are not all in the object file"):
        engine.load(code, "root", "stem")


@pytest.mark.skipif(sys.platform != "linux" or machine() != "x86_64", reason="objects of x86-64 Linux")
def test_objects_that_the_linker_leaves_to_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    code = engine.to_object(TABLE)
    object_ = linker._Object(code)
    head = struct.unpack_from("<Q", code, 40)[0]
    symbols = next(s for s in object_.sections if s.kind == linker._SYMTAB)
    number = next(k for k, s in enumerate(object_.sections) if s.kind == linker._SYMTAB)
    names = [name for name, _, _ in object_.symbols]
    tables = [s for s in object_.sections if s.kind == linker._RELA and linker._loaded(object_.sections[s.info])]
    entries = [
        (table.offset + 24 * k, info & 0xFFFFFFFF, object_.symbols[info >> 32])
        for table in tables
        for k, (_, info, _) in enumerate(struct.iter_unpack("<QQq", code[table.offset : table.offset + table.size]))
    ]
    own = next(at for at, kind, (_, section, _) in entries if section and kind == linker._ABS64)

    def patched(form: str, at: int, value: int) -> bytes:
        out = bytearray(code)
        struct.pack_into(form, out, at, value)
        return bytes(out)

    cases = {
        "not a relocatable x86-64 object": patched("<H", 18, 183),
        "no symbol table": patched("<I", head + 64 * number + 4, 3),
        "symbol twice in the special section 0xfff1": patched(
            "<H", symbols.offset + 24 * names.index("twice") + 6, 0xFFF1
        ),
        "relocation 9 against a symbol of the object": patched("<I", own + 8, 9),
        "relocation of type 10": patched("<I", own + 8, 10),
        "no function cbrx in this process": code.replace(b"cbrt\0", b"cbrx\0"),
    }
    before = linker._unmap
    for message, changed in cases.items():
        freed: list[tuple[int, int]] = []
        monkeypatch.setattr(
            linker, "_unmap", lambda at, size, freed=freed: (freed.append((at, size)), before(at, size))
        )
        with pytest.raises(linker.Unlinkable, match=re.escape(message)):
            linker.link(changed, FUNCTIONS)
        assert len(freed) == (message[:3] not in ("not", "no ") or "cbrx" in message), message
    with pytest.raises(OSError, match="may not be made executable"):
        linker._protect(1, 4096, 0)
    with pytest.raises(OSError, match="no memory for code"):
        linker._map(1 << 60)
    map_ = linker._map
    monkeypatch.setattr(linker, "_map", lambda size: map_(size << 50))
    with pytest.raises(linker.Unlinkable, match="no memory for code"):
        linker.link(code, FUNCTIONS)


def test_compiling_where_addresses_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is asked for before LLVM is, which would end the process: by the length of the text."""
    asked: list[int] = []

    class Pages:
        def __init__(self, fd: int, size: int) -> None:
            asked.append(size)
            if size > limit:
                raise refusal

        def close(self) -> None:
            asked.append(-asked[-1])

    monkeypatch.setattr(engine, "is_limited", lambda: True)
    monkeypatch.setattr(engine.mmap, "mmap", Pages)
    text = "define i64 @f(i64 %x) { ret i64 7 }\n"
    need = engine.ROOM + engine.BYTES * len(text)
    limit, refusal = need, OSError("no memory")
    code = engine.load(engine.to_object(text), "f")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses[0])(3) == 7
    assert asked == [need, -need]
    for refusal in (OSError("no memory"), ValueError("too large")):  # noqa: B007
        limit = need - 1
        with pytest.raises(MemoryError, match="no memory to compile a kernel"):
            engine.to_object(text)
    monkeypatch.setattr(engine, "is_limited", lambda: False)
    asked.clear()
    engine.to_object(text)
    assert asked == []


def test_llvm_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        """A finder of a library that the system's loader refuses."""

        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == "llvmlite.binding":
                try:
                    raise OSError(reason)
                except OSError:
                    raise OSError("Could not find/load shared object file") from None

    monkeypatch.delitem(sys.modules, "llvmlite.binding", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    cases = (
        ("cannot allocate memory in static TLS block", False, MemoryError, "no memory to load LLVM"),
        ("not there", True, MemoryError, "no memory to load LLVM"),
        ("not there", False, UnsupportedError, "LLVM cannot be loaded: Could not find"),
    )
    for reason, limited, error, message in cases:  # noqa: B007
        monkeypatch.setattr(llvm, "is_limited", lambda limited=limited: limited)
        with pytest.raises(error, match=message):
            llvm.library.__wrapped__()


def test_statuses(files: Path) -> None:
    leave = cache.compile_kernel(parse("def leave(code: i64):\n    return code"))
    leave.run([0])
    assert leave.run([7], status=True) == 7
    with pytest.raises(CompilerBug, match="kernel leave returned status 7"):
        leave.run([7])
    greedy = cache.compile_kernel(
        parse("def greedy(n: i64, y: i64[mut]):\n    w: i64[n] = empty\n    w[0] = 5\n    y[0] = w[0]")
    )
    for size in (1 << 57, 1 << 62, (1 << 63) - 1):
        with pytest.raises(MemoryError, match="kernel greedy: no memory for a workspace"):
            greedy.run(greedy.pack([size, np.zeros(1, np.int64)]))
    y = np.zeros(1, np.int64)
    greedy.run(greedy.pack([1, y]))
    assert y[0] == 5


def test_wrong_numbers_of_arguments_are_refused(files: Path) -> None:
    executable = cache.get("scale", lambda: parse(SCALE))
    with pytest.raises(CompilerBug, match=r"takes \(a, x, y\), got 1 arguments"):
        executable.pack([1.0])
    with pytest.raises(CompilerBug, match="takes 3 words, got 1"):
        executable.run([1])


def test_forms(files: Path) -> None:
    executable = cache.get("scale", lambda: parse(SCALE))
    assert executable.loops.startswith("def scale(lo: i64, hi: i64, a: f64")
    assert 'define i64 @"scale"' in executable.llvm
    assert "scale" in executable.asm
    assert repr(executable) == "<Executable scale(a, x, y)>"


def test_a_text_that_llvm_refuses_is_a_bug_of_ours() -> None:
    with pytest.raises(CompilerBug, match=r"LLVM refuses the text of a kernel(.|\n)*define i64 @f"):
        engine.to_object("define i64 @f() { ret i32 0 }")


def test_code_that_is_compiled_quickly_has_keys_of_its_own(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`OPENWORK_OPTIMIZE=0`: other code, the same results; neither is taken for the other, in memory or on disk."""
    whole = cache.get("scale", lambda: parse(SCALE))
    asm = whole.asm
    monkeypatch.setenv("OPENWORK_OPTIMIZE", "0")
    quick = cache.get("scale", lambda: parse(SCALE))
    assert quick is not whole
    assert len(list(files.glob("*.owk"))) == 2
    assert quick.asm != asm
    np.testing.assert_array_equal(scaled(quick), scaled(whole))
    cache.clear_memory()
    np.testing.assert_array_equal(scaled(cache.get("scale", forbidden)), scaled(whole))
    monkeypatch.delenv("OPENWORK_OPTIMIZE")
    np.testing.assert_array_equal(scaled(cache.get("scale", forbidden)), scaled(whole))


def test_the_stamp_is_of_sources_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python and editors write beside them asks for no new object code."""
    folder = tmp_path / "codegen"
    folder.mkdir()
    (folder / "emit.py").write_text("a = 1\n")
    monkeypatch.setattr(disk, "__file__", str(folder / "disk.py"))
    before = disk._stamp.__wrapped__()
    (folder / "emit.pyc").write_bytes(b"0")
    (folder / "folder.py").mkdir()
    assert disk._stamp.__wrapped__() == before
    (folder / "emit.py").write_text("a = 12\n")
    assert disk._stamp.__wrapped__() != before


def test_the_stamp_is_of_the_tuned_numbers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They decide schedules, and distances of prefetches in the code itself."""
    monkeypatch.setattr(disk, "__file__", str(tmp_path / "codegen" / "disk.py"))
    before = disk._stamp.__wrapped__()
    (tmp_path / "tuning.py").write_text("AHEAD = 8\n")
    assert disk._stamp.__wrapped__() != before


def test_the_key_of_a_kernel_that_is_written_as_text_is_the_text(files: Path) -> None:
    text = SCALE.replace("f64", "T")
    found = cache.of_text(text, T="f64")
    assert cache.of_text(text, T="f64") is found
    assert cache.of_text(text, T="f32") is not found
    other = cache.of_text(text.replace("*", "+"), T="f64")
    np.testing.assert_array_equal(scaled(other)[1:4] - scaled(found)[1:4], [1.0, -0.5, -2.0])
    assert len(list(files.glob("*.owk"))) == 3


def test_only_what_the_stamp_is_of_makes_kernels() -> None:
    """A module elsewhere that builds one, or reads its text, would be given what an earlier version of it has left."""
    package = Path(disk.__file__).parent.parent
    makers = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"ir\.text import (.*, )?parse\b|compiler\.build import", path.read_text())
    ]
    assert [path for path in makers if not path.startswith(disk.SOURCES)] == []
