"""The format matrix over renamed copies of all level formats: the same results, in the same formats, by the same kernels.

Nothing but `format/` may know a level format by its class or name (`tests/test_level_names.py` reads the sources for that);
here every operation meets level formats that it cannot know.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from level_copies import copied, original, registered
from matrix import FORMATS, dense_array

import openwork as ow
from openwork.codegen import cache
from openwork.storage.exact import check_indices

BATCHED = (
    "(b, i, j) -> (b : batch, i : dense, j : compressed)",
    "(b, i, j) -> (b : batch, i : dense, j : dense)",
    "(b, i, j) -> (b : batch, i : dense, j : ell(5))",
)
SHAPES = {0: (), 1: (12,), 2: (8, 12), 3: (4, 6, 5), 4: (3, 4, 2, 5)}
QUICK = {
    "() -> ()", "bitmap", "csr", "coo", "dcsr", "bsr(2, 3)", "dia", "ell(12)", "nm(4, 4)", "csf", BATCHED[0], BATCHED[2],
    "(i, j) -> (i : dense, j : loose_compressed)", "(i, j) -> (i : dense, j - i : compressed)",
    "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
}  # fmt: skip
"""Formats in which every level format stands, alone and under others; the rest of the matrix takes a minute."""
ALL = [(rank, spec) for rank in range(5) for spec in FORMATS[rank]] + [(3, spec) for spec in BATCHED]
CASES = [
    pytest.param(*c, marks=() if c[1] in QUICK and c[0] < 4 else pytest.mark.slow, id=f"{c[0]}-{c[1]}") for c in ALL
]


@pytest.fixture(autouse=True)
def _copies() -> Iterator[None]:
    with registered():
        yield


def assigned(a: ow.Tensor) -> ow.Tensor:
    b = a.clone()
    b[(0,) * a.ndim] = 7
    return b


def outer(a: ow.Tensor) -> list[Any]:
    """What takes ranges of the outermost level."""
    return [a[1:], a[:0], a[::-1], a[[1, 0, 1]], a[np.arange(a.shape[0]) % 2 == 0], ow.concat([a, a]), a[0]]


ANY: dict[str, Callable[[ow.Tensor], Any]] = {
    "dense": lambda a: a.to_numpy(),
    "itself": lambda a: [a.nse, a.clone(), a.T, a.asformat("coo"), a.asformat(a.format)],
    "sums": lambda a: [ow.sum(a), *(ow.sum(a, axis=d) for d in range(a.ndim)), ow.max(a)],
    "maps": lambda a: [abs(a), a * 2, ow.exp(a), a > 1],
    "merges": lambda a: [a + a, a * a, a - a.asformat("coo"), ow.maximum(a, a)],
    "moved": lambda a: [ow.flip(a), ow.reshape(a, (-1,)), ow.expand_dims(a, axis=0)],
    "assigned": assigned,
    "pickled": lambda a: pickle.loads(pickle.dumps(a)),
}
RANKED: dict[str, Callable[[ow.Tensor], Any]] = {"outer": outer, "element": lambda a: [a[(1,) * a.ndim], ow.roll(a, 1)]}
MATRICES: dict[str, Callable[[ow.Tensor], Any]] = {
    "products": lambda a: [a @ np.ones(12), np.ones(8) @ a, a @ np.ones((12, 3)), a.T @ np.ones(8)],
    "sparse products": lambda a: [a @ a.T, a.T @ a, ow.kron(a, a)],
    "masks": lambda a: [ow.sddmm(a, np.ones((8, 2)), np.ones((2, 12))), ow.sparse_mask(a, a), ow.tril(a)],
    "converted": lambda a: [a.asformat(f) for f in ("csr", "csc", "dcsr", "bsr(2, 3)", "dia", "bitmap", "ell(12)", "dense")],
    "foreign": lambda a: [a.to_scipy().toarray(), ow.softmax(a, 1), ow.argmax(a, axis=1), ow.diagonal(a)],
}  # fmt: skip


def outcome(operation: Callable[[ow.Tensor], Any], a: ow.Tensor) -> list[tuple[str, str, Any]]:
    """Kind, format and dense value of each result, or the error."""
    try:
        found = operation(a)
    except (ValueError, TypeError, NotImplementedError, IndexError) as error:
        return [(type(error).__name__, original(error).replace("Copy", ""), None)]
    out = []
    for x in found if isinstance(found, list) else [found]:
        if isinstance(x, ow.Tensor):
            check_indices(x._storage)
            out.append(("Tensor", original(x.format.canonical), x.to_numpy()))
        else:
            out.append((type(x).__name__, "", np.asarray(x)))
    return out


def same(got: list[tuple[str, str, Any]], want: list[tuple[str, str, Any]]) -> None:
    assert [x[:2] for x in got] == [x[:2] for x in want]
    for (_, _, x), (_, _, y) in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)


def pair(rank: int, spec: str) -> tuple[ow.Tensor, ow.Tensor]:
    format = ow.format(spec, rank)
    array = dense_array(SHAPES[rank])
    if "batch" in spec:
        array[:] = array[0]
    mine = ow.asarray(array).asformat(format)
    copy = ow.asarray(array).asformat(ow.format(copied(str(format))))
    assert original(copy.format) == str(format)
    assert rank == 0 or copy.format != format
    return copy, mine


@pytest.mark.thin(7)
@pytest.mark.parametrize(("rank", "spec"), CASES)
def test_every_operation_knows_levels_by_property_only(rank: int, spec: str) -> None:
    copy, mine = pair(rank, spec)
    for name, operation in (ANY | (RANKED if rank else {}) | (MATRICES if rank == 2 else {})).items():
        with np.errstate(all="ignore"):
            want, got = outcome(operation, mine), outcome(operation, copy)
        try:
            same(got, want)
        except AssertionError as error:
            raise AssertionError(f"{name} of {copy.format}: {error}") from error


def code(loops: str) -> str:
    """A kernel's text without its comments, which name dimensions as the first format did that was compiled."""
    return "\n".join(line for line in loops.split("\n") if not line.startswith("#"))


@pytest.mark.thin(4)
@pytest.mark.parametrize("spec", ["csr", "bsr(2, 3)", "coo", "dia", "ell(12)", "bitmap"])
def test_kernels_are_those_of_the_originals(spec: str) -> None:
    copy, mine = pair(2, spec)
    texts = []
    for a in (mine, copy):
        cache.clear_memory()
        for operation in (MATRICES["products"], ANY["sums"], lambda a: a + a, lambda a: a.asformat("csc")):
            operation(a)
        texts.append(sorted({code(x.loops) for x in cache._MEMORY.values()}))
    assert texts[0] == texts[1]
