"""Random buffers: a clean error or a right tensor, never a crash."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openwork as ow
from openwork.errors import DTypeError, FormatError, InvariantError, ShapeError
from openwork.runtime import check as checks
from openwork.storage.specified import coordinates

FORMATS = ("csr", "csc", "coo", "dcsr", "bsr(2, 2)", "dia", "ell(2)", "nm(2, 4)", "csf", "bitmap", "dense",
           "(i, j) -> (i : dense, j : loose_compressed)", "(i, j) -> (i : dense, j : compressed(unordered))",
           "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
           "(b, i, j) -> (b : batch, i : dense, j : compressed)",
           "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : singleton)",
           "(i, j, k) -> (i : dense, j : compressed, k : dense)")  # fmt: skip
CLEAN = (InvariantError, ShapeError, FormatError, DTypeError)

small = st.integers(-1, 5)
index = st.lists(small, max_size=9) | st.lists(small, max_size=6).map(sorted)
odd = st.sampled_from([2**31, -(2**31), 2**62, -(2**63), 2**63 - 1])
buffer = index | st.lists(small | odd, max_size=5)
strange = st.sampled_from(
    [None, "abc", 3, [[1, 2], [0, 1]], [0.5], [[]], np.array(["x"]), np.zeros((2, 2)), [1, [2]], {}, object(), b"\x00"]
)


@st.composite
def attempts(draw):
    made = ow.format(draw(st.sampled_from(FORMATS)))
    extent = st.integers(0, 6) | st.sampled_from([-1, 2**31, 2**62])
    shape = draw(st.none() | st.tuples(*[extent] * made.ndim))
    groups = {}
    for kind in ("pos", "crd"):
        groups[kind] = {
            at: draw(buffer if draw(st.integers(0, 9)) else strange)
            for at, level in enumerate(made.levels)
            if kind in level.format.buffers
        }
    n = draw(st.integers(0, 24))
    return made, shape, groups, np.arange(1.0, n + 1)


@pytest.fixture(params=[False, True], ids=["exact", "compiled"])
def way(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "SMALL", -1 if request.param else 2**62)
        patch.setattr(checks, "_is_wanted", lambda chain: request.param)
        yield request.param


def consistent(t: ow.Tensor) -> None:
    where, leaf = coordinates(t._storage)
    assert t.nse == len(leaf)
    assert repr(t)
    assert str(t)
    dense = np.zeros(t.shape)
    np.add.at(dense, tuple(where), np.asarray(t.values)[leaf])
    np.testing.assert_array_equal(t.to_numpy(), dense)


def test_random_buffers(way):
    @given(attempts())
    def attempt(case):
        format, shape, groups, values = case
        with contextlib.suppress(*CLEAN):
            t = ow.assemble(format, shape, values=values, **groups)
            assert repr(t)

    attempt()


MATRICES = tuple(f for f in FORMATS if "k" not in f and "b," not in f)


def assembled(format: str, seed: int, change) -> None:
    """Index buffers of a valid tensor, after `change` of those that hold anything: a right tensor, or a clean error."""
    made = ow.format(format, 2)
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, (4, 4)) * (np.indices((4, 4)).sum(0) % 2) * 1.0
    if made.levels[-1].format.name == "structured":
        a = np.ones((4, 4))
        a[:, 2:] = 0
    s = ow.asarray(a, format=made)._storage
    groups = {kind: {at: b.copy() for at, b in enumerate(getattr(s, kind)) if b is not None} for kind in ("pos", "crd")}
    change([b for group in groups.values() for b in group.values() if len(b)])
    consistent(ow.assemble(made, s.shape, values=s.values, **groups))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("format", MATRICES)
def test_buffers_as_they_were(way, format):
    for seed in (0, 1):
        assembled(format, seed, lambda buffers: None)


def test_changed_buffers(way):
    @given(st.data())
    def attempt(data):
        def change(buffers):
            for _ in range(data.draw(st.integers(1, 2)) if buffers else 0):
                b = buffers[data.draw(st.integers(0, len(buffers) - 1))]
                b[data.draw(st.integers(0, len(b) - 1))] = data.draw(small)

        with contextlib.suppress(*CLEAN):
            assembled(data.draw(st.sampled_from(MATRICES)), data.draw(st.integers(0, 99)), change)

    attempt()


def test_valid_tensors_survive_a_round_trip():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a = rng.integers(0, 3, (rng.integers(0, 6), rng.integers(0, 6)))
        for format in ("csr", "csc", "coo", "dcsr", "bsr(2, 2)", "dia", "csf", "bitmap", "dense"):
            t = ow.asarray(a, format=format)
            again = ow.assemble(t.format, t.shape, pos=t._storage.pos, crd=t._storage.crd, values=t.values)
            np.testing.assert_array_equal(again.to_numpy(), a)


def test_huge_shapes_are_errors_not_crashes():
    t = ow.assemble("coo", (2**40, 2**40), crd={0: [5], 1: [2**40 - 1]}, values=[1.0])
    assert t.size == 2**80
    assert repr(t)
    assert t.T.T.nse == 1
    with pytest.raises((MemoryError, ValueError)):
        t.to_numpy()
    with pytest.raises((MemoryError, ValueError)):
        t.asformat("csr")
