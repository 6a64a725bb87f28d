"""Every format under mutation: an error of ours, or a tensor that keeps its invariants; never another exception."""

from __future__ import annotations

import contextlib
import gzip
import io as streams
import random
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import openwork as ow
import openwork.io as io
from openwork.errors import FileFormatError, UnsupportedError
from openwork.runtime.check import check

FORMATS = [
    "csr",
    "csc",
    "coo",
    "bsr(2, 2)",
    "dia",
    "csf",
    "bitmap",
    "dense",
    "(i, j) -> (i : compressed, j : compressed)",
]
TEXTS = {
    "t.tri": b"3 3 2 -1\n0 0 1\n2 1 5\n",
    "t.sptensor": b"sptensor\n2\n3 3\n2\n0 1 5\n1 1 2\n",
    "t.svm": b"1 1:2 3:4\n-1 2:1\n",
    "t.smtx": b"2, 3, 2\n0 1 2\n0 2\n",
    "t.edges": b"0 1 5\n2 3\n",
    "docword.t.txt": b"2\n3\n2\n1 3 4\n2 1 5\n",
    "t.rsa": b"t\n 3 1 1 1\nrsa 2 2 2 0\n(26I3) (40I2) (26I3)\n  1  2  3\n 1 2\n  5  6\n",
    "u.mtx": b"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n",
    "v.mtx": b"%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 1 6\n",
    "u.tns": b"# extended FROSTT format\n2 2\n3 3\n1 1 5\n3 2 6\n",
}
WORDS = [
    b"0",
    b"-1",
    b"9" * 19,
    b"9" * 40,
    b"1e99",
    b"nan",
    b".5",
    b"\0",
    b"\xff",
    b"\n",
    b" ",
    b"%",
    b"#",
    b"(",
    b":",
    b"\xb2",
]


def files(folder: Path) -> dict[str, bytes]:
    """Good files by name, of every kind that is read."""
    dense = np.array([[1.5, 0, -2, 0], [0, 0, 0, 7], [0, 3, 0, 0], [4, 0, 0, 5]])
    t = ow.asarray(dense, format="coo")
    for name in ("t.mtx", "t.tns", "t.rb", "t.mtx.gz", "t.tns.xz"):
        ow.write(folder / name, t)
    ow.write(folder / "s.mtx", t + t.T, symmetry="symmetric")
    ow.write(folder / "s.rb", t + t.T, symmetry="symmetric")
    for k, format in enumerate(FORMATS):
        ow.write(folder / f"{k}.npz", t.asformat(format), compress=k % 2 == 1)
    ow.write(folder / "m.npz", ow.masked_tensor(dense, dense > 0))
    ow.write(folder / "c.npz", ow.asarray(np.arange(8.0).reshape(2, 2, 2), format="coo") * 1j)
    return {p.name: p.read_bytes() for p in folder.iterdir()} | TEXTS


def of_text(raw: bytes, chance: random.Random) -> bytes:
    out = bytearray(raw)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(out) + 1)
        if chance.random() < 0.15:
            lines = bytes(out).splitlines(keepends=True) or [b""]
            k = chance.randrange(len(lines))
            lines[k : k + 1] = [lines[k]] * chance.choice((0, 2))
            out = bytearray(b"".join(lines))
        else:
            out[at : at + chance.randint(0, 3)] = chance.choice(WORDS) if chance.random() < 0.7 else chance.randbytes(2)
    return bytes(out)


def of_array(array: np.ndarray, chance: random.Random) -> np.ndarray:
    """Another dtype, another shape, other values."""
    kind = chance.randrange(7)
    if kind == 0:
        kinds = ["f8", "i1", "u8", ">i8", "bool", "c16"] if array.dtype.kind in "biufc" else ["U3", "S2", "U40"]
        with np.errstate(all="ignore"):
            return (array.real if array.dtype.kind == "c" else array).astype(chance.choice(kinds))
    if kind == 1:
        return array.reshape(chance.choice([(-1, 1), (1, -1), (1, 1, -1)]))
    if kind == 2:
        return array.reshape(-1)[: chance.randrange(array.size + 1)]
    if kind == 3:
        return np.concatenate([array.reshape(-1), array.reshape(-1)])
    out = array.reshape(-1).copy()
    if out.size and out.dtype.kind in "biufc":
        out[chance.randrange(out.size)] = chance.choice([0, 1, 2, 3, 5, 100, 127])
        if out.dtype.kind in "if" and chance.random() < 0.5:
            out[chance.randrange(out.size)] *= -1
    return out.reshape(array.shape)


def of_archive(raw: bytes, chance: random.Random) -> bytes:
    """The archive with an array changed, left out or exchanged, and right checksums."""
    with np.load(streams.BytesIO(raw)) as found:
        parts = dict(found)
    key, other = chance.choice(sorted(parts)), chance.choice(sorted(parts))
    kind = chance.randrange(8)
    if kind == 0:
        del parts[key]
    elif kind == 1:
        parts[key] = parts[other]
    elif kind == 2:
        parts[chance.choice(["pos_x", "crd_9", "openwork_masked", "coords", "openwork"])] = parts[other]
    else:
        parts[key] = of_array(parts[key], chance)
    out = streams.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in parts.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array))
    return out.getvalue()


def of_bytes(raw: bytes, chance: random.Random) -> bytes:
    out = bytearray(raw)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(out) + 1)
        out[at : at + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 4))
    return bytes(out)


def mutated(name: str, raw: bytes, chance: random.Random) -> bytes:
    if name.endswith(".npz"):
        return of_archive(raw, chance) if chance.random() < 0.8 else of_bytes(raw, chance)
    if name.endswith(".gz"):
        return gzip.compress(of_text(gzip.decompress(raw), chance)) if chance.random() < 0.5 else of_bytes(raw, chance)
    return of_bytes(raw, chance) if name.endswith(".xz") else of_text(raw, chance)


def outcome(path: Path) -> str:
    with contextlib.suppress(FileFormatError, UnsupportedError):
        io.header(path)
    try:
        t = ow.read(path)
    except (FileFormatError, UnsupportedError) as error:
        return "refused" if str(path) in str(error) else f"refused, with no path in it: {error}"
    check((t.specified if hasattr(t, "get_mask") else t)._storage)
    return "read"


def fuzz(folder: Path, count: int, seed: int) -> Counter[str]:
    good, chance, found = files(folder), random.Random(seed), Counter[str]()
    names = sorted(good)
    for turn in range(count):
        name = names[turn % len(names)]
        path = folder / name
        path.write_bytes(mutated(name, good[name], chance))
        try:
            found[outcome(path)] += 1
        except Exception as error:
            path.with_name(f"found-{name}").write_bytes(path.read_bytes())
            raise AssertionError(f"{turn}: {path}: {path.read_bytes()[:300]!r}") from error
    return found


def test_good_files_are_read(tmp_path: Path) -> None:
    for name, raw in files(tmp_path).items():
        (tmp_path / name).write_bytes(raw)
        assert outcome(tmp_path / name) == "read", name


@pytest.mark.ci
def test_mutations(tmp_path: Path) -> None:
    assert set(fuzz(tmp_path, 400, seed=0)) == {"read", "refused"}


@pytest.mark.slow
def test_many_mutations(tmp_path: Path) -> None:
    assert set(fuzz(tmp_path, 20_000, seed=1)) == {"read", "refused"}
