"""Two elements in extents up to 2**62: cost in proportion to what is stored, or an error that names the bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow

N = 2**62 - 2
WIDE = 2**31


def pair(shape: tuple[int, ...], spec: str = "coo") -> ow.Tensor:
    """1.5 near the first corner, -2 near the last one."""
    crd = np.array([[min(1, n - 1), max(n - 2, 0)] for n in shape])
    return ow.sparse_coo_tensor(crd, np.array([1.5, -2.0]), shape).asformat(spec)


def elements(t: ow.Tensor) -> dict[tuple[int, ...], float]:
    c = t.coalesce()
    places = zip(*(np.asarray(c.crd(d)).tolist() for d in range(t.ndim)), strict=True)
    return {p: v for p, v in zip(places, np.asarray(c.values).tolist(), strict=True) if v}


SHAPES = [
    ((N,), "coo"),
    ((N,), "csf"),
    ((WIDE, WIDE), "coo"),
    ((WIDE, WIDE), "dcsr"),
    ((N, 3, 3), "csf"),
    ((3, N), "csr"),
]


@pytest.mark.parametrize(("shape", "spec"), SHAPES)
def test_slices_with_steps(shape: tuple[int, ...], spec: str) -> None:
    a = pair(shape, spec)
    d = int(np.argmax(shape))
    n = shape[d]
    before = (slice(None),) * d
    for s in (
        slice(None, None, -1),
        slice(None, None, -3),
        slice(None, None, 2),
        slice(n - 1, 0, -1),
        slice(1, n, n // 3),
    ):
        want = {}
        steps = range(*s.indices(n))
        for p, v in elements(a).items():
            if p[d] in steps:
                want[(*p[:d], steps.index(p[d]), *p[d + 1 :])] = v
        got = a[(*before, s)]
        assert got.shape[d] == len(steps)
        assert elements(got) == want
    assert elements(ow.flip(a)) == {
        tuple(m - 1 - c for m, c in zip(shape, p, strict=True)): v for p, v in elements(a).items()
    }


@pytest.mark.parametrize(("shape", "spec"), [((2**60,), "coo"), ((WIDE, 5), "coo"), ((WIDE, WIDE), "dcsr")])
def test_repeats_and_differences(shape: tuple[int, ...], spec: str) -> None:
    a = pair(shape, spec)
    got = elements(ow.repeat(a, 3, axis=0))
    assert got == {(3 * p[0] + k, *p[1:]): v for p, v in elements(a).items() for k in range(3)}
    want: dict[tuple[int, ...], float] = {}
    for p, v in elements(a).items():
        for c, x in ((p[0] - 1, v), (p[0], -v)):
            if 0 <= c < shape[0] - 1:
                want[(c, *p[1:])] = want.get((c, *p[1:]), 0) + x
    assert elements(ow.diff(a, axis=0)) == want


@pytest.mark.parametrize(("shape", "spec"), [((2**60, 3, 3), "csf"), ((2**60, 2**60), "dcsr"), ((2**60, 2**60), "coo")])
def test_merges(shape: tuple[int, ...], spec: str) -> None:
    a = pair(shape, spec)
    b = pair(tuple(n - 1 for n in shape), "coo")
    b = ow.sparse_coo_tensor(np.array([np.asarray(b.crd(d)) for d in range(a.ndim)]), b.values, shape)
    both = elements(a + b)
    assert both == {p: elements(a).get(p, 0) + elements(b).get(p, 0) for p in elements(a) | elements(b)}
    here, there = elements(a), elements(b)
    want = {p: here[p] if here.get(p, 0) > 0 else there.get(p, 0) for p in here | there}
    assert elements(ow.where(a > 0, a, b)) == {p: v for p, v in want.items() if v}
    assert elements(a * a) == {p: v * v for p, v in elements(a).items()}


def test_diagonals() -> None:
    assert elements(ow.diagonal(pair((WIDE, WIDE)))) == {(1,): 1.5, (WIDE - 2,): -2.0}
    assert elements(ow.diagonal(pair((WIDE, WIDE), "dcsr"), offset=1)) == {}


REFUSED: dict[str, Callable[[ow.Tensor], Any]] = {
    "cumulative_sum": lambda a: ow.cumulative_sum(a, axis=0),
    "argsort": lambda a: ow.argsort(a, axis=0),
    "bitmap": lambda a: a.asformat("bitmap"),
    "dense": lambda a: a.asformat("dense"),
    "to_numpy": lambda a: a.to_numpy(),
    "to_dense": lambda a: a.to_dense(),
    "sum": lambda a: ow.sum(a, axis=-1),
    "method": lambda a: a.max(axis=-1),
    "argmax": lambda a: ow.argmax(a, axis=-1),
    "softmax": lambda a: ow.softmax(a, axis=0),
    "where": lambda a: a[0, :] + np.zeros(3) if a.ndim > 1 else a + np.zeros(3),
    "dense operand": lambda a: a + 1.0 + pair(a.shape, "coo").asformat("dense"),
    "repeat": lambda a: ow.repeat(a, 2**40),
    "mean": lambda a: ow.mean(a, axis=-1),
    "lazy sum": lambda a: ow.compute(ow.sum(ow.lazy(a) * 2, axis=-1)),
    "lazy prod": lambda a: ow.compute(ow.prod(ow.lazy(a) * 2, axis=-1)),
    "lazy max": lambda a: ow.compute(ow.max(ow.lazy(a) * 2, axis=-1)),
    "asarray": lambda a: np.asarray(a),
    "scipy": lambda a: a.to_scipy("csr"),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("shape", [(2**60,), (2**46, 2**46)])
@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_dense_is_refused_by_a_typed_error(name: str, shape: tuple[int, ...]) -> None:
    made = None
    try:
        made = REFUSED[name](pair(shape))
    except (ow.ShapeError, ow.UnsupportedError, ow.FormatError, ow.InvariantError) as error:
        sized = not isinstance(error, ow.SizeError) or re.search(r"[\d,]{15,} bytes", str(error))
        assert sized, error  # noqa: PT017
    assert made is None or (len(shape) == 1 and getattr(made, "nbytes", 0) < 10_000)


@pytest.mark.parametrize("source", ["bsc(2, 3)", "bsr(2, 3)"])
@pytest.mark.parametrize("target", ["coo", "dcsr", "dcsc"])
def test_blocks_turned(source: str, target: str) -> None:
    """A few blocks of another order are sorted: no array is as long as the extent, which the source stores none of."""
    shape = (2**40, 1) if source.startswith("bsc") else (1, 2**40)
    a = pair(shape, source)
    b = a.asformat(target)
    assert b.format == ow.format(target, 2)
    assert elements(b) == elements(pair(shape))
    assert elements(a * pair(shape)) == {p: v * v for p, v in elements(pair(shape)).items()}


def test_no_elements_of_a_huge_dense_level_are_walked() -> None:
    t = ow.sparse_coo_tensor(np.zeros((2, 0), int), np.zeros(0), (2**62, 1)).asformat(
        "(a, b) -> (b : compressed, a : dense)"
    )
    assert t.nse == 0
    assert t.asformat("coo").nse == t.asformat("(a, b) -> (a : compressed, b : compressed)").nse == 0


def test_shapes_of_any_size_broadcast() -> None:
    """NumPy's own rule ends at 2**63 elements."""
    n = 2**40
    A = ow.sparse_coo_tensor(np.array([[5, 7], [9, n - 1]]), np.array([1.0, 2.0]), (n, n))
    row = A[5:6]
    assert (ow.lazy(A) * A + A).compute().values.tolist() == [2.0, 6.0]
    assert (ow.lazy(A) * row).compute().nnz == 1
    assert np.array_equiv(A, A)
    assert not np.array_equiv(A, A[:2])
    m = ow.masked_tensor(A, A != 0)
    assert (m * m).sum() == 5
    assert ow.broadcast_shapes((n, 1), (1, n), (n,)) == (n, n)
    assert np.copysign(A, A).nnz == 2
