"""The grid: expressions, the formats that each operand and the result may have, and one case of it run and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from matrix import dense_array, same

import openwork as ow
from openwork.storage.exact import check_indices
from openwork.storage.invariants import check_layout

__all__ = ["GRID", "Expression", "canonical", "run_case", "sample"]

FORMATS: dict[int, tuple[str, ...]] = {
    0: ("dense",),
    1: ("dense", "csf"),
    2: ("dense", "dense_f", "csr", "csc", "dcsr", "dcsc"),
    3: (
        "dense",
        "(i, j, k) -> (k : dense, j : dense, i : dense)",
        "csf",
        "(i, j, k) -> (k : compressed, j : compressed, i : compressed)",
        "(i, j, k) -> (j : compressed, i : compressed, k : compressed)",
        "(i, j, k) -> (i : dense, j : compressed, k : compressed)",
        "(i, j, k) -> (k : dense, i : compressed, j : compressed)",
    ),
}
"""Dense, compressed below a dense level, compressed throughout; by rows and by columns."""

EXTENTS = {"i": 6, "j": 7, "k": 5, "l": 4, "r": 3}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Expression:
    """What is computed: letters of each operand and of the result, on tensors and on dense arrays."""

    operands: tuple[str, ...]
    result: str
    compute: Callable[..., ow.Tensor]
    oracle: Callable[..., Array]

    @property
    def slots(self) -> tuple[tuple[str, ...], ...]:
        """The formats of each operand, then of the result."""
        return tuple(FORMATS[len(letters)] for letters in (*self.operands, self.result))

    def cases(self) -> Iterator[tuple[str, ...]]:
        """Every combination of formats."""
        return product(*self.slots)


def summed(text: str) -> Expression:
    """A sum of products, `einsum` on both sides."""
    terms, out = text.split("->")
    return Expression(
        tuple(terms.split(",")),
        out,
        lambda *operands, format: ow.einsum(text, *operands, format=format),
        lambda *operands: np.asarray(np.einsum(text, *operands)),
    )


def pointwise(text: str, operands: tuple[str, ...], oracle: Callable[..., Array]) -> Expression:
    """An elementwise expression over A, B, C, aligned at the last dimension."""
    return Expression(
        operands,
        max(operands, key=len),
        lambda *tensors, format: ow.pointwise(text, dict(zip("ABC", tensors, strict=False)), format=format),
        oracle,
    )


GRID: dict[str, Expression] = {
    "matmul": summed("ij,jk->ik"),
    "add": pointwise("A + B", ("ij", "ij"), lambda a, b: a + b),
    "mul": pointwise("A * B", ("ij", "ij"), lambda a, b: a * b),
    "mul and add": pointwise("A * B + C", ("ij",) * 3, lambda a, b, c: a * b + c),
    "spmv": summed("ij,j->i"),
    "broadcast add": pointwise("A + B", ("ij", "j"), lambda a, b: a + b),
    "ttv first": summed("ijk,i->jk"),
    "ttv last": summed("ijk,k->ij"),
    "ttm": summed("ijk,kr->ijr"),
    "mttkrp": summed("ijk,jr,kr->ir"),
    "sddmm": summed("ij,ik,kj->ij"),
    "inner": summed("ij,ij->"),
    "chain": summed("ij,jk,kl->il"),
    "masked difference": pointwise(
        "select(C != 0, A - B, 0)", ("ij",) * 3, lambda a, b, c: np.where(c != 0, a - b, 0.0)
    ),
    "triple sum": pointwise("A + B + C", ("ij",) * 3, lambda a, b, c: a + b + c),
}


@lru_cache(maxsize=512)
def operand(letters: str, seed: int, spec: str) -> tuple[Array, ow.Tensor]:
    """The array of these letters, with an empty row or two, and the tensor of it."""
    array = dense_array(tuple(EXTENTS[c] for c in letters), seed, density=0.35)
    array[1:2] = 0
    return array, ow.asarray(array).asformat(ow.format(spec, array.ndim))


def run_case(e: Expression, formats: tuple[str, ...]) -> ow.Tensor:
    """Compute one case and check it: value, dtype, format, canonical; of sparse operands nothing but what they give.

    Specified is at most what is not zero for other values of the same structure.
    """
    pairs = [operand(letters, 10 + k, spec) for k, (letters, spec) in enumerate(zip(e.operands, formats, strict=False))]
    wanted = ow.format(formats[-1], len(e.result))
    got = e.compute(*(tensor for _, tensor in pairs), format=wanted)
    want = e.oracle(*(array for array, _ in pairs))
    canonical(got, want, wanted)
    if not wanted.is_dense and not any(tensor.format.is_dense for _, tensor in pairs):
        bound = np.count_nonzero(e.oracle(*(array**k * 1.37**k for k, (array, _) in enumerate(pairs, 2))))
        assert np.count_nonzero(want) <= got.nse <= bound
    return got


def canonical(got: ow.Tensor, want: Array, wanted: ow.Format) -> None:
    """The tensor is of this format and holds this array; every invariant is kept, and no element is stored twice."""
    assert isinstance(got, ow.Tensor)
    assert got.format == wanted
    assert wanted.is_unique
    assert wanted.is_ordered
    check_layout(got._storage)
    check_indices(got._storage)
    same(got, want)


def sample(e: Expression, strength: int) -> list[tuple[str, ...]]:
    """Cases in which every format of each slot appears `strength` times or more, next to different ones."""
    slots = e.slots
    rows = max(map(len, slots)) * strength
    found = []
    for n in range(rows):
        turn = n // max(map(len, slots))
        found.append(tuple(slot[(n + at * (turn + 1) + (turn * at) // 2) % len(slot)] for at, slot in enumerate(slots)))
    return list(dict.fromkeys(found))
