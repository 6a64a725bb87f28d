"""Conversion on several threads, its memory, and buffers that it shares."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from convert_cases import NAMED, UNCOALESCED, buffers_equal, uncoalesced

from openwork.codegen import pool
from openwork.format import format as fmt
from openwork.runtime.conversion import bucket, ranges
from openwork.runtime.conversion.convert import convert
from openwork.storage.storage import Storage


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three threads, however small the tensor."""
    before = pool.get_num_threads()
    monkeypatch.setattr(ranges, "PARALLEL", 1)
    pool.set_num_threads(3)
    yield
    pool.set_num_threads(before)


BLOCKED = "(i, j) -> (i // 2 : dense, j : compressed(nonunique, unordered), i % 2 : singleton(nonunique, unordered))"


@pytest.mark.thin(5)
@pytest.mark.parametrize("source", [*NAMED, "bsr(2,2)", UNCOALESCED[2], BLOCKED])
def test_threads_change_nothing(threads: None, source: str) -> None:
    for shape, n in (((40, 37), 300), ((3, 200), 400), ((64, 64), 40)):
        pool.set_num_threads(1)
        start = uncoalesced(shape, n, seed=len(source))
        if source.startswith("ell"):
            source = "ell(200)"
        x = convert(start, fmt(source, 2))
        for target in (*NAMED, "bsr(2,2)", UNCOALESCED[2], BLOCKED):
            if target in ("ell(9)", "nm(4,4)") and shape[0] < shape[1]:
                continue
            target = "ell(200)" if target == "ell(9)" else target
            pool.set_num_threads(1)
            one = convert(x, fmt(target, 2))
            pool.set_num_threads(3)
            assert buffers_equal(convert(x, fmt(target, 2)), one), target


def test_rows_of_blocks_that_are_walked_before_the_compressed_level(threads: None) -> None:
    """Ranges of that level are no ranges of the result then."""
    pool.set_num_threads(1)
    x = convert(uncoalesced((20, 9), 150, seed=1), fmt("(i, j) -> (i : compressed, j : dense)"))
    target = fmt("(i, j) -> (j : compressed(nonunique), i : singleton)")
    one = convert(x, target)
    pool.set_num_threads(3)
    assert buffers_equal(convert(x, target), one)


DIRECT = [
    ("csr", "csc"), ("csr", "coo"), ("coo", "csr"), ("coo", "csc"), ("csc", "coo"), ("csr", "dcsr"), ("csc", "dcsr"),
    ("csr", "dense"), ("csr", "bsr(2,2)"), ("csr", "dia"), ("bsr(2,2)", "csr"), ("bsr(2,2)", "coo"), ("dense", "csr"),
    ("dense", "coo"), ("csr", "ell(70)"), ("csr", "bitmap"), (UNCOALESCED[2], "csr"), (UNCOALESCED[2], "csc"),
]  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("source", "target"), DIRECT)
def test_memory_is_that_of_the_result(threads: None, source: str, target: str, count: int) -> None:
    """Direct routes need the result, the buffers that they hand over, and O(rows + columns)."""
    pool.set_num_threads(count)
    x = convert(uncoalesced((700, 600), 30_000, seed=1), fmt(source, 2))
    convert(x, fmt(target, 2))
    again = Storage(x.shape, x.format, x.scalar, x.fill_value, x.pos, x.crd, x.values)
    tracemalloc.start()
    try:
        result = convert(again, fmt(target, 2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    held = sum(b.nbytes if b.base is None else b.base.nbytes for b in result.buffers)
    assert peak <= held + 32 * count * sum(x.shape) + 20_000, f"{peak - held} bytes beside the result"


def test_buffers_that_stay_are_shared_where_that_is_allowed() -> None:
    x = convert(uncoalesced((9, 8), 30), fmt("csr", 2))
    y = convert(x, fmt("coo", 2), share=True)
    assert y.values is x.values
    assert y.crd[1] is x.crd[1]
    z = convert(x, fmt("coo", 2))
    assert not np.shares_memory(z.values, x.values)
    assert not np.shares_memory(z.crd[1], x.crd[1])
    assert buffers_equal(y, z)
    back = convert(y, fmt("csr", 2), share=True)
    assert back.values is x.values
    assert buffers_equal(back, x)


@pytest.mark.parametrize("target", ["csc", "dense", "dense_f", "(i, j) -> (j : dense, i : compressed(unordered))"])
@pytest.mark.parametrize("source", ["csr", "coo", "bsr(2,3)", "dia", UNCOALESCED[2]])
def test_a_conversion_again(source: str, target: str) -> None:
    """The second time kernels are launched as they were; values may have changed, threads too."""
    x = convert(uncoalesced((40, 37), 300, seed=3), fmt(source, 2))
    first = convert(x, fmt(target, 2))
    assert buffers_equal(convert(x, fmt(target, 2)), first)
    x.values[...] *= 3
    tripled = convert(x, fmt(target, 2))
    assert buffers_equal(tripled, first.with_values(first.values * 3))
    assert not any(np.shares_memory(a, b) for a, b in zip(tripled.buffers, first.buffers, strict=True))
    before = pool.get_num_threads()
    pool.set_num_threads(before + 1)
    try:
        assert buffers_equal(convert(x, fmt(target, 2)), tripled)
    finally:
        pool.set_num_threads(before)


@pytest.mark.parametrize("source", ["csr", "csc", "bsc(4,4)", "dia", UNCOALESCED[2]])
def test_a_conversion_does_not_depend_on_those_before(source: str) -> None:
    x = convert(uncoalesced((40, 37), 300, seed=8), fmt(source, 2))
    for _ in range(2):
        for target in ("bsr(2,2)", BLOCKED, "dcsr", "coo", UNCOALESCED[2], "csc", "csr", "dense"):
            fresh = Storage(x.shape, x.format, x.scalar, x.fill_value, x.pos, x.crd, x.values)
            assert buffers_equal(convert(x, fmt(target, 2)), convert(fresh, fmt(target, 2))), target


@pytest.mark.parametrize(("shape", "n"), [((3, 200_000), 300), ((40, 37), 900), ((3, 70_000), 220_000)])
def test_scatters_in_two_passes(monkeypatch: pytest.MonkeyPatch, threads: None, shape: tuple[int, int], n: int) -> None:
    """As those of large tensors whose elements are far apart; neighbourhoods of 2**16 parents are the largest, and
    threads take part where each parent has some elements for every one."""
    monkeypatch.setattr(bucket, "NEIGHBOURHOODS", 1)
    x = uncoalesced(shape, n, seed=4)
    for target in ("csc", "(i, j) -> (j : dense, i : compressed(nonunique))"):
        want = convert(x, fmt(target, 2))
        with monkeypatch.context() as context:
            context.setattr(bucket, "_needs_two_passes", lambda out: True)
            for count in (1, 3):
                pool.set_num_threads(count)
                assert buffers_equal(convert(x, fmt(target, 2)), want), target
