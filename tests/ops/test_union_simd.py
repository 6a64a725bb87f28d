"""Unions of two rows by places, in vectors: rows of all lengths, types and formats, against NumPy and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted import interpreted
from matrix import same, tensor
from test_subexpression_order import built, narrow

import openwork as ow
from openwork.codegen import cache, target
from openwork.fusion import program as programs

COLUMNS = 90
rows_of = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 2**32 - 1)),
    min_size=1,
    max_size=5,
)


def matrices(rows: list[tuple[int, int, int, int]], dtype: Any = np.float64) -> list[Any]:
    """Three matrices with these numbers of elements in their rows; what is in the third is in the first too."""
    found = [np.zeros((len(rows), COLUMNS), dtype) for _ in range(3)]
    for i, (n, m, both, seed) in enumerate(rows):
        rng = np.random.default_rng(seed)
        order = rng.permutation(COLUMNS)
        found[0][i, order[:n]] = rng.integers(1, 9, n)
        found[1][i, rng.permutation(COLUMNS)[:m]] = rng.integers(1, 9, m)
        found[2][i, order[: min(n, both)]] = 1
    return found


def checked(got: Any, want: Any) -> None:
    """The same elements, in order and once, none for what is no element."""
    same(got, want)
    pos = {k: got.pos(k) for k in range(got.format.nlevels) if got._storage.pos[k] is not None}
    crd = {k: got.crd(k) for k in range(got.format.nlevels) if got._storage.crd[k] is not None}
    ow.assemble(got.format, got.shape, pos=pos, crd=crd, values=got.values)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows_of)
def test_rows_of_every_length(rows: list[tuple[int, int, int, int]]) -> None:
    """Blocks of one row within, behind and across those of the other; rows without a whole block behind them."""
    a, b, c = matrices(rows)
    for index in ("i32", "i64"):
        s, t, u = (narrow(tensor(x, "csr"), index) for x in (a, b, c))
        checked(s + t, a + b)
        checked(u - s, c - a)
        assert (s + t).nse == np.count_nonzero((a != 0) | (b != 0))
    mixed = narrow(tensor(a, "csr"), "i64") + tensor(b, "csr")
    checked(mixed, a + b)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows_of)
def test_several_rows(rows: list[tuple[int, int, int, int]]) -> None:
    """What is merged first is kept in a row, of which twice as much is compared at a time."""
    a, b, c = matrices(rows)
    s, t, u = (tensor(x, "csr") for x in (a, b, c))
    checked(ow.fused(lambda A, B, C: A + B - C)(s, t, u), a + b - c)
    checked(ow.fused(lambda A, B, C: C - (A + B) * 2)(s, t, u), c - (a + b) * 2)
    checked(ow.fused(lambda A, B, C: (A + B) * (A - C))(s, t, u), (a + b) * (a - c))


WHOLE = [(20, 30, 7, 1), (0, 25, 0, 2), (60, 60, 30, 3), (16, 8, 16, 4), (40, 0, 3, 5)]


@pytest.mark.thin(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "int8", "complex64", "bool"])
def test_types(dtype: str) -> None:
    """Vectors of 4 and 8 bytes; what has other elements goes the other way."""
    a, b, c = matrices(WHOLE, np.dtype(dtype))
    s, t, u = (tensor(x, "csr") for x in (a, b, c))
    got = s + t
    assert got.dtype == dtype
    checked(got, a + b)
    checked(ow.logical_or(s, u), np.logical_or(a, c))
    if dtype != "complex64":
        checked(s > t, a > b)
        checked(ow.maximum(u, t), np.maximum(c, b))


def test_processors_that_expand_no_vectors_go_by_fingers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "expands", lambda: False)
    monkeypatch.setenv("OPENWORK_CACHE", "0")
    kept = dict(cache._MEMORY)
    a, b, c = matrices(WHOLE, np.float32)
    s, t, u = (tensor(x, "dcsr") for x in (a, b, c))
    cache.clear_memory()
    try:
        got = ow.fused(lambda A, B, C: ow.maximum(A + B, C) - A)(s, t, u)
        checked(got, np.maximum(a + b, c) - a)
        checked(s + t, a + b)
    finally:
        cache.clear_memory()
        cache._MEMORY.update(kept)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dcsr", "bsr(1, 3)", "ell(60)"])
def test_formats_as_interpreted(spec: str) -> None:
    a, b, c = matrices(WHOLE)
    s, t, u = (tensor(x, spec) for x in (a, b, c))
    function = ow.fused(lambda A, B, C: A - B + 2 * C)
    got = function(s, t, u)
    checked(got, a - b + 2 * c)
    programs._programs.clear()
    with interpreted() as ran:
        again = function(s, t, u)
    programs._programs.clear()
    assert ran
    for one, other in zip(got._storage.buffers, again._storage.buffers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fill_values_take_the_place_of_what_is_not_there() -> None:
    a, b, _ = matrices(WHOLE)
    s = ow.asarray(np.where(a, a, 3.0), format="csr", fill_value=3.0)
    t = ow.asarray(np.where(b, b, np.nan), format="csr", fill_value=np.nan)
    want = np.where(a, a, 3.0) + 0.5
    checked(s + ow.asarray(np.full_like(a, 0.5) + b * 0, format="csr", fill_value=0.5), want)
    np.testing.assert_array_equal((s * t).to_numpy(), np.where(a, a, 3.0) * np.where(b, b, np.nan))


def test_threads() -> None:
    before = ow.get_num_threads()
    rng = np.random.default_rng(0)
    arrays = [(rng.random((4000, 200)) < 0.2) * rng.random((4000, 200)) for _ in range(3)]
    tensors = [tensor(x, "csr") for x in arrays]
    function = ow.fused(lambda A, B, C: A + B - C)
    try:
        for threads in (1, 2, 7):
            ow.set_num_threads(threads)
            checked(function(*tensors), arrays[0] + arrays[1] - arrays[2])
    finally:
        ow.set_num_threads(before)


@pytest.mark.parametrize(
    ("text", "unions"), [("A + B - C", 2), ("A * B + C", 1), ("A * B * C", 0), ("(A + B) * (C - D)", 2)]
)
def test_what_goes_by_places(text: str, unions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert repr(built(monkeypatch, text)).count("op='expand'") == 4 * unions
