"""One valid storage per layout and one way to break each invariant of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from openwork.format import format as parse
from openwork.storage import Storage
from openwork.storage.buffers import scalar_of

Buffers = dict[str, np.ndarray]


def make(format: str, shape: tuple[int, ...], index: str = "i4", **buffers: object) -> Storage:
    """A storage from buffers named pos0, crd1, ...; values default to 1, 2, 3, ..."""
    made = parse(format, len(shape))
    levels = range(len(made.levels))
    arrays = {k: np.asarray(v, None if k == "values" else index) for k, v in buffers.items()}
    for at, level in enumerate(made.levels):
        if level.format.name == "bitmap":
            arrays[f"crd{at}"] = np.asarray(buffers[f"crd{at}"], bool)
    groups = [tuple(arrays.get(f"{kind}{at}") for at in levels) for kind in ("pos", "crd")]
    values = arrays.get("values")
    if values is None:
        empty = Storage(shape, made, "f64", 0.0, *groups, np.zeros(0))
        values = np.arange(1.0, 1 + (empty.positions[-1] if made.levels else 1))
    return Storage(shape, made, scalar_of(values), 0.0, *groups, values.reshape(-1))


LAYOUTS: dict[str, Callable[[str], Storage]] = {
    "dense": lambda w: make("dense", (2, 3)),
    "scalar": lambda w: make("dense", ()),
    "csr": lambda w: make("csr", (4, 8), w, pos1=[0, 2, 2, 4, 5], crd1=[0, 3, 1, 7, 2]),
    "csc": lambda w: make("csc", (8, 4), w, pos1=[0, 2, 2, 4, 5], crd1=[0, 3, 1, 7, 2]),
    "dcsr": lambda w: make("dcsr", (9, 8), w, pos0=[0, 3], crd0=[1, 4, 8], pos1=[0, 2, 3, 4], crd1=[0, 3, 7, 2]),
    "coo": lambda w: make("coo", (4, 8), w, pos0=[0, 4], crd0=[0, 0, 2, 3], crd1=[1, 5, 0, 0]),
    "coo3": lambda w: make("coo", (4, 3, 8), w, pos0=[0, 4], crd0=[0, 0, 0, 3], crd1=[1, 1, 2, 0], crd2=[0, 4, 0, 7]),
    "uncoalesced": lambda w: make(
        "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))", (4, 8), w,
        pos0=[0, 4], crd0=[3, 0, 0, 3], crd1=[1, 5, 5, 0]),
    "unordered": lambda w: make(
        "(i, j) -> (i : dense, j : compressed(unordered))", (2, 8), w, pos1=[0, 3, 5], crd1=[4, 1, 7, 3, 2]),
    "nonunique": lambda w: make(
        "(i, j) -> (i : dense, j : compressed(nonunique))", (2, 8), w, pos1=[0, 3, 5], crd1=[1, 1, 7, 2, 2]),
    "bsr": lambda w: make("bsr(2, 3)", (4, 9), w, pos1=[0, 2, 3], crd1=[0, 2, 1]),
    "bsr ragged": lambda w: make("bsr(2, 3)", (3, 8), w, pos1=[0, 2, 3], crd1=[0, 2, 1]),
    "bsc": lambda w: make("bsc(2, 3)", (4, 9), w, pos1=[0, 1, 2, 3], crd1=[0, 1, 1]),
    "dia": lambda w: make("dia", (4, 5), w, pos0=[0, 3], crd0=[-3, 0, 4]),
    "csf": lambda w: make("csf", (3, 4, 5), w, pos0=[0, 2], crd0=[0, 2], pos1=[0, 2, 3], crd1=[1, 3, 0],
                          pos2=[0, 1, 3, 5], crd2=[4, 0, 2, 1, 3]),
    "loose": lambda w: make("(i, j) -> (i : dense, j : loose_compressed)", (3, 8), w,
                            pos1=[4, 6, 0, 0, 1, 3], crd1=[9, 0, 5, -4, 1, 7, 2]),
    "nm": lambda w: make("nm(2, 4)", (2, 8), w, crd2=[0, 3, 1, 2, 2, 3, 0, 1]),
    "ell": lambda w: make("ell(3)", (3, 8), w, crd1=[1, 5, -1, -1, -1, -1, 0, 3, 7]),
    "bitmap": lambda w: make("bitmap", (2, 3), w, crd1=[1, 0, 1, 0, 0, 1]),
    "batched csr": lambda w: make(
        "(b, i, j) -> (b : batch, i : dense, j : compressed)", (2, 3, 4), w,
        pos2=[0, 1, 1, 3, 0, 0, 2, 3], crd2=[3, 0, 2, 1, 3, 0]),
    "batched bsr": lambda w: make(
        "(b, i, j) -> (b : batch, i // 2 : dense, j // 2 : compressed, i % 2 : dense, j % 2 : dense)", (2, 4, 4), w,
        pos2=[0, 1, 2, 0, 0, 2], crd2=[1, 0, 0, 1]),
    "hybrid csr": lambda w: make(
        "(i, j, k) -> (i : dense, j : compressed, k : dense)", (3, 4, 2), w, pos1=[0, 1, 1, 3], crd1=[3, 0, 2]),
    "hybrid coo": lambda w: make(
        "(i, j, k) -> (i : compressed(nonunique), j : singleton, k : dense)", (3, 4, 2), w,
        pos0=[0, 3], crd0=[0, 0, 2], crd1=[1, 3, 0]),
    "below ell": lambda w: make(
        "(i, j, k) -> (i : dense, j : ell(2), k : singleton)", (2, 4, 5), w, crd1=[1, 3, 2, -1], crd2=[4, 0, 2, 99]),
}  # fmt: skip


@dataclass(frozen=True)
class Break:
    """Set `buffer[at] = value` in a layout; the error has this number and text."""

    layout: str
    buffer: str
    at: int
    value: int
    number: str
    says: str


BREAKS = [
    Break("csr", "pos1", 0, 1, "5.1", "pos[1][0] == 1"),
    Break("csr", "pos1", 4, 4, "5.2", "pos[1][4] == 4"),
    Break("csr", "pos1", 1, 3, "5.3", "pos[1][2] == 2 after 3"),
    Break("csr", "pos1", 2, -7, "5.3", "pos[1][2] == -7 after 2"),
    Break("csr", "pos1", 2, 99, "5.3", "pos[1][2] == 99 after 2"),
    Break("csr", "crd1", 3, -1, "5.4", "crd[1][3] == -1"),
    Break("csr", "crd1", 1, 8, "5.5", "crd[1][1] == 8"),
    Break("csr", "crd1", 1, 0, "5.6", "crd[1][1] == 0 after crd[1][0] == 0"),
    Break("csr", "crd1", 3, 0, "5.6", "crd[1][3] == 0 after crd[1][2] == 1"),
    Break("csc", "crd1", 3, 0, "5.6", "crd[1][3] == 0 after crd[1][2] == 1"),
    Break("dcsr", "crd0", 1, 1, "5.6", "crd[0][1] == 1 after crd[0][0] == 1"),
    Break("dcsr", "pos0", 1, 2, "5.2", "pos[0][1] == 2"),
    Break("dcsr", "crd1", 2, 8, "5.5", "crd[1][2] == 8"),
    Break("coo", "crd0", 3, 1, "5.6", "crd[0][3] == 1 after crd[0][2] == 2"),
    Break("coo", "crd1", 1, 1, "5.6", "crd[1][1] == 1 after crd[1][0] == 1"),
    Break("coo", "crd1", 3, 9, "5.5", "crd[1][3] == 9"),
    Break("coo", "crd0", 0, -2, "5.4", "crd[0][0] == -2"),
    Break("coo3", "crd2", 1, 0, "5.6", "crd[2][1] == 0 after crd[2][0] == 0"),
    Break("coo3", "crd1", 2, 0, "5.6", "crd[1][2] == 0 after crd[1][1] == 1"),
    Break("uncoalesced", "crd1", 2, 8, "5.5", "crd[1][2] == 8"),
    Break("unordered", "crd1", 2, 4, "5.6", "crd[1][2] == 4 after crd[1][0] == 4"),
    Break("nonunique", "crd1", 2, 0, "5.6", "crd[1][2] == 0 after crd[1][1] == 1"),
    Break("bsr", "crd1", 1, 3, "5.5", "crd[1][1] == 3"),
    Break("bsr ragged", "crd1", 1, 0, "5.6", "crd[1][1] == 0 after crd[1][0] == 0"),
    Break("bsc", "crd1", 2, 2, "5.5", "crd[1][2] == 2"),
    Break("dia", "crd0", 0, -4, "5.4", "-3 <= crd < 5; got: crd[0][0] == -4"),
    Break("dia", "crd0", 2, 5, "5.5", "crd[0][2] == 5"),
    Break("dia", "crd0", 1, -3, "5.6", "crd[0][1] == -3 after crd[0][0] == -3"),
    Break("csf", "pos2", 1, 4, "5.3", "pos[2][2] == 3 after 4"),
    Break("csf", "crd2", 4, 1, "5.6", "crd[2][4] == 1 after crd[2][3] == 1"),
    Break("loose", "pos1", 0, -1, "5.3", "pos[1][0:2] == -1, 6"),
    Break("loose", "pos1", 1, 8, "5.3", "pos[1][0:2] == 4, 8"),
    Break("loose", "pos1", 4, 4, "5.3", "pos[1][4:6] == 4, 3"),
    Break("loose", "crd1", 5, 1, "5.6", "crd[1][5] == 1 after crd[1][4] == 1"),
    Break("loose", "crd1", 4, 8, "5.5", "crd[1][4] == 8"),
    Break("nm", "crd2", 1, 0, "5.6", "crd[2][1] == 0 after crd[2][0] == 0"),
    Break("nm", "crd2", 5, 4, "5.5", "crd[2][5] == 4"),
    Break("ell", "crd1", 0, -1, "5.6", "crd[1][1] == 5 after -1"),
    Break("ell", "crd1", 2, -2, "5.4", "crd[1][2] == -2"),
    Break("ell", "crd1", 8, 8, "5.5", "crd[1][8] == 8"),
    Break("ell", "crd1", 7, 0, "5.6", "crd[1][7] == 0 after crd[1][6] == 0"),
    Break("bitmap", "crd1", 4, 7, "5.5", "crd[1][4] == 7"),
    Break("batched csr", "pos2", 4, 1, "5.1", "pos[2][4] == 1"),
    Break("batched csr", "pos2", 3, 2, "5.2", "pos[2][3] == 2"),
    Break("batched csr", "pos2", 6, -1, "5.3", "pos[2][6] == -1 after 0"),
    Break("batched csr", "crd2", 4, 1, "5.6", "crd[2][4] == 1 after crd[2][3] == 1"),
    Break("batched csr", "crd2", 5, 4, "5.5", "crd[2][5] == 4"),
    Break("batched bsr", "crd2", 3, 0, "5.6", "crd[2][3] == 0 after crd[2][2] == 0"),
    Break("hybrid csr", "crd1", 2, 0, "5.6", "crd[1][2] == 0 after crd[1][1] == 0"),
    Break("hybrid coo", "crd1", 1, 1, "5.6", "crd[1][1] == 1 after crd[1][0] == 1"),
    Break("below ell", "crd2", 1, 5, "5.5", "crd[2][1] == 5"),
]
