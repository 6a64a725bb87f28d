"""Every reader, under an address-space limit that grows with the bytes on disk: docs/files.md has the factors."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import openwork as ow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "files.md"
BASE = 96 << 20
"""Bytes that may be needed beside: what a stream may unpack to whatever its size, blocks of work, arenas."""
ROW = re.compile(r"^\| `(\.\w+(?:\.\w+)?)` \|.*\| (\d+) \| (\d+) \|$", re.MULTILINE)

READER = """
import resource, sys, openwork as ow
from openwork.errors import FileFormatError
for line in sys.stdin.read().splitlines():
    small, path, factor, base, size = line.split("\\t")
    try:
        ow.read(small)  # compiles what the large one needs
    except FileFormatError:
        pass
    now = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmSize")) << 10
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (now + int(base) + int(factor) * int(size), hard))
    try:
        ow.read(path)
        print("read", flush=True)
    except FileFormatError:
        print("refused", flush=True)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
"""


def factors() -> dict[str, tuple[int, int]]:
    """By extension: the bytes of memory per byte of an ordinary file, and of any file."""
    return {m[1]: (int(m[2]), int(m[3])) for m in ROW.finditer(PAGE.read_text())}


def outcomes(jobs: list[tuple[Path, Path, int]]) -> list[str]:
    text = "\n".join(f"{small}\t{path}\t{factor}\t{BASE}\t{size(path)}" for small, path, factor in jobs)
    done = subprocess.run([sys.executable, "-c", READER], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def size(path: Path) -> int:
    """The bytes of a file, of a folder those of its files."""
    return sum(p.stat().st_size for p in (path.iterdir() if path.is_dir() else (path,)))


def honest(folder: Path, entries: int) -> dict[str, Path]:
    """Files of ordinary content, by extension."""
    rng = np.random.default_rng(0)
    row, column = np.sort(rng.integers(1, 10**6, entries)), rng.integers(1, 10**6, entries)
    t = ow.sparse_coo_tensor(np.stack([row, column]), rng.standard_normal(entries), (10**6, 10**6))
    names = [".mtx", ".tns", ".rb", ".npz", ".ow", ".petsc", ".mtx.gz", ".tns.gz", ".rb.gz"]
    names += [".parquet"] if importlib.util.find_spec("pyarrow") else []
    for name in names:
        ow.write(folder / f"t{name}", t)
    if importlib.util.find_spec("h5py"):
        cells = ow.sparse_coo_tensor(np.stack([np.arange(entries) // 1000, column % 9999]), row, (entries, 10**4))
        for name in (".bsp.h5", ".h5ad", ".h5"):
            ow.write(folder / f"t{name}", cells)
            names.append(name)
    pairs = [f"{i} {j}" for i, j in zip(row.tolist(), column.tolist(), strict=True)]
    texts = {
        ".tri": f"1000000 1000000 {entries} 0\n" + "".join(f"{p} 1.5\n" for p in pairs),
        ".sptensor": f"sptensor\n2\n1000000 1000000\n{entries + 1}\n0 0 1\n" + "".join(f"{p} 1.5\n" for p in pairs),
        ".edges": "".join(f"{p}\n" for p in pairs),
        ".svm": "".join(f"1 {j}:0.5 {j + 1}:2\n" for j in column.tolist()),
        ".smtx": f"{entries}, 1000000, {entries}\n" + " ".join(map(str, range(entries + 1))) + "\n"
        + " ".join(map(str, column.tolist())) + "\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / f"t{name}").write_text(text)
    if io := pytest.importorskip("scipy.io"):
        io.savemat(folder / "t.mat", {"A": t.to_scipy("csc")}, do_compression=True)
    return {name: folder / f"t{name}" for name in (*names, *texts, ".mat")}


def hostile(folder: Path, count: int) -> dict[str, Path]:
    """Files whose bytes are the cheapest that a reader keeps something for."""
    head = "%%MatrixMarket matrix coordinate pattern general\n9 9 999999999\n"
    texts = {
        ".mtx": head + "1 1\n" * (count // 4),
        ".tns": "1 1 1\n" * (count // 6),
        ".tri": "9 9 999999999 0\n" + "1 1\n" * (count // 4),
        ".sptensor": "sptensor\n2\n9 9\n999999999\n" + "1 1 1\n" * (count // 6),
        ".edges": "1 1\n" * (count // 4),
        ".svm": "1\n" * (count // 2),
        ".smtx": f"{count // 2}, 9, 0\n" + "0 " * (count // 2) + "\n",
        ".rb": f"t\n9 9 9 9\nrua 9 {count // 2} 0 0\n(1I1) (1I1) (1I1)\n" + "1\n" * (count // 2),
    }
    for name, text in texts.items():
        (folder / f"h{name}").write_text(text)
    (folder / "h.petsc").write_bytes(np.array([1211216, count // 4, 9, 0], ">i4").tobytes() + bytes(count // 4 * 4))
    found = {name: folder / f"h{name}" for name in (*texts, ".petsc")}
    rng = np.random.default_rng(0)
    places = np.stack([np.sort(rng.integers(0, count, count // 24)), np.arange(count // 24)])
    rows = ow.sparse_coo_tensor(places, rng.standard_normal(count // 24), (count, count))
    for name in (".npz", *([".bsp.h5"] if importlib.util.find_spec("h5py") else ())):
        found[name] = folder / f"h{name}"
        ow.write(found[name], rows.asformat("csr"), compress=True)
    found[".ow"] = folder / "h.ow"
    ow.write(found[".ow"], rows[:1])
    header = json.loads((found[".ow"] / "header.json").read_text())
    header["buffers"]["values"]["crc32"] = [0] * (count // 2)
    (found[".ow"] / "header.json").write_text(json.dumps(header, separators=(",", ":")))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space are Linux's")
def test_readers_under_a_limit(tmp_path: Path) -> None:
    stated = factors()
    for name in ("small", "large", "hostile", "tiny"):
        os.mkdir(tmp_path / name)
    small, large, bad = (
        honest(tmp_path / "small", 10),
        honest(tmp_path / "large", 10_000),
        hostile(tmp_path / "hostile", 1 << 20),
    )
    assert set(large) <= set(stated)
    jobs = [(small[name], path, stated[name][0]) for name, path in large.items()]
    tiny = hostile(tmp_path / "tiny", 60)
    jobs += [(tiny[name], path, stated[name][1]) for name, path in bad.items()]
    found = outcomes(jobs)
    names = [str(path) for _, path, _ in jobs]
    wrong = [(n, o) for n, o in zip(names, found, strict=True) if o not in ("read", "refused")]
    assert not wrong
    assert found[: len(large)] == ["read"] * len(large)


def measure(folder: Path) -> None:
    """Print the bytes of memory per byte of file: the table of docs/files.md is this, rounded up by a half."""
    import tracemalloc

    for name in ("small", "large", "hostile"):
        (folder / name).mkdir()
    small = honest(folder / "small", 10)
    for kind, files in (
        ("ordinary", honest(folder / "large", 400_000)),
        ("hostile", hostile(folder / "hostile", 8 << 20)),
    ):
        for name, path in files.items():
            ow.read(small[name])
            tracemalloc.start()
            try:
                ow.read(path)
                done = "read"
            except ow.FileFormatError:
                done = "refused"
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(kind, name, size(path), f"{peak / size(path):.1f}", done)


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
