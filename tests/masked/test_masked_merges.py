"""Expressions of masked and ordinary tensors in one pass, against arrays of values beside arrays of bits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_cases import arrays, made

import openwork as ow
from openwork.ir.arithmetic import FUNCTIONS
from openwork.ir.index import Access, Apply, Expression, Literal
from openwork.ir.index_text import parse_expression

Pair = tuple[Any, Any]
FORMATS = ("dense", "csr", "coo", "csc", "bsr(2, 2)", "dia")


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "(i, j) -> (i : compressed, j : bitmap)", "coo", "bitmap"])
def test_functions_lifted_to_masks_that_differ(spec: str) -> None:
    (x, there), (y, here) = arrays((6, 9), seed=1), arrays((6, 9), seed=2)
    there[1], here[[0, 4]] = False, False
    m, n = made(x, there, "csr").asformat(ow.format(spec, 2)), made(y, here, "csr").asformat(ow.format(spec, 2))
    for how, bits in (("intersection", there & here), ("union", there | here)):
        got = ow.masked.lift(np.hypot, [m, n], "hypot", how)
        want = np.where(there & here, np.hypot(x, y), np.where(there, x, y))
        np.testing.assert_array_equal(got.get_mask().to_numpy(), bits)
        np.testing.assert_allclose(got.filled(-1).to_numpy(), np.where(bits, want, -1))


def reference(e: Expression, given: Mapping[str, Pair]) -> Pair:
    """The values and the bits of an expression."""
    if isinstance(e, Access):
        return given[e.tensor]
    if isinstance(e, Literal):
        return np.asarray(e.value), np.asarray(True)
    assert isinstance(e, Apply)
    parts = [reference(a, given) for a in e.args]
    (x, p), *others = parts
    if e.op == "either":
        return np.where(p, x, others[0][0]), p | others[0][1]
    if e.op == "given":
        return x, p & others[0][1]
    if e.op == "select":
        (a, q), (b, r) = others
        return np.where(x, a, b), p & np.where(x, q, r)
    with np.errstate(all="ignore"):
        return FUNCTIONS[e.op](*(v for v, _ in parts)), reduce(np.logical_and, [b for _, b in parts])


EXPRESSIONS = (
    "A * B + C",
    "either(A * B, C)",
    "either(A + B, either(A, B)) * D",
    "where(A > 1, B, C)",
    "where(A > 1, B + 1.0, D)",
    "where(D > 0, A, 2.0)",
    "where(A * D > 0, where(B > 0, A, C), 1.0) - 1.0",
    "given(D, A) + S * B",
    "A * S",
    "either(A, 0.0) + where(S > 0, B, C)",
    "either(where(A > 0, B, C), A)",
)


def check(text: str, specs: tuple[str, ...], masks: tuple[Any, ...], seed: int) -> None:
    """One expression over A, B, C masked, D dense, S sparse with zeros."""
    shape = (6, 7)
    pairs = {n: arrays(shape, seed + k, mask=masks[k]) for k, n in enumerate("ABC")}
    dense, some = arrays(shape, seed + 3)
    sparse = np.where(some, dense, 0)
    e = parse_expression(text)
    used = {n for n in "ABCDS" if n in text}
    tensors: dict[str, Any] = {n: made(*pairs[n], specs[k]).specified for k, n in enumerate("ABC") if n in used}
    tensors |= {n: t for n, t in {"D": ow.asarray(dense), "S": ow.asarray(sparse, format="csr")}.items() if n in used}
    format = next(t for n, t in tensors.items() if n in "ABC").format
    everywhere = np.ones(shape, np.bool_)
    want, bits = reference(e, {**pairs, "D": (dense, everywhere), "S": (sparse, everywhere)})
    got = ow.pointwise(e, tensors, format, missing=[n for n in "ABC" if n in used])
    there = ow.masked_tensor(got).to_masked_array()
    np.testing.assert_array_equal(~np.ma.getmaskarray(there), np.broadcast_to(bits, shape))
    np.testing.assert_array_equal(there.data[bits], np.broadcast_to(want, shape)[bits])


@pytest.mark.thin(10)
@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_expressions(text: str, spec: str) -> None:
    check(text, (spec,) * 3, (0.5, 0.5, 0.5), 0)
    check(text, (spec,) * 3, ("none", "all", "one"), 1)


@given(
    st.sampled_from(EXPRESSIONS),
    st.tuples(*[st.sampled_from(FORMATS)] * 3),
    st.tuples(*[st.sampled_from(("all", "none", "one", 0.5))] * 3),
    st.integers(0, 9),
)
@settings(max_examples=8)
def test_expressions_of_any_formats(text: str, specs: tuple[str, ...], masks: tuple[Any, ...], seed: int) -> None:
    check(text, specs, masks, seed)


BLOCKS = (
    "bsr(2, 2)",
    "dia",
    "(i, j) -> (j // 3 : dense, i : compressed, j % 3 : bitmap)",
    "(i, j) -> (i : compressed, j : dense)",
)


@pytest.mark.thin(15)
@pytest.mark.parametrize("wanted", [None, *BLOCKS])
@pytest.mark.parametrize(
    ("left", "right"), [("bsr(2, 2)", "dense"), ("csr", BLOCKS[2]), ("dia", "coo"), ("dense", "csc")]
)
def test_blocks_leave_out_what_is_missing(left: str, right: str, wanted: str | None) -> None:
    """An operand that is brought into the result's blocks, and a result whose blocks held all, tell what is not there."""
    pairs = {"A": arrays((6, 7), 0, mask=0.4), "B": arrays((6, 7), 1, mask=0.4)}
    tensors = {n: made(*pairs[n], spec).specified for n, spec in zip("AB", (left, right), strict=True)}
    for text in ("A * B", "either(A, B)"):
        want, bits = reference(parse_expression(text), pairs)
        got = ow.masked_tensor(
            ow.pointwise(text, tensors, wanted or tensors["A"].format, missing="AB")
        ).to_masked_array()
        np.testing.assert_array_equal(~np.ma.getmaskarray(got), bits)
        np.testing.assert_array_equal(got.data[bits], want[bits])


def test_more_operands_than_one_kernel_takes() -> None:
    names = "ABCDEF"
    pairs = {n: arrays((5, 6), k, mask=0.8) for k, n in enumerate(names)}
    tensors = {n: made(*pairs[n], "csr").specified for n in names}
    text = "A + B * C + either(D, E) * F"
    want, bits = reference(parse_expression(text), pairs)
    got = ow.masked_tensor(ow.pointwise(text, tensors, "csr", missing=names)).to_masked_array()
    np.testing.assert_array_equal(~np.ma.getmaskarray(got), bits)
    np.testing.assert_array_equal(got.data[bits], want[bits])


def test_ranges_beside_each_other() -> None:
    """Bits and values of strided results, one thread and several."""
    n = 1 << 18
    pairs = [arrays((n,), k) for k in range(2)]
    a, b = (made(*p) for p in pairs)
    before = ow.get_num_threads()
    try:
        for threads in (1, 3):
            ow.set_num_threads(threads)
            for how, bits in (("intersection", pairs[0][1] & pairs[1][1]), ("union", pairs[0][1] | pairs[1][1])):
                found = a.add(b, how=how).to_masked_array()
                np.testing.assert_array_equal(~found.mask, bits)
                want = sum(np.where(k, v, 0) for v, k in pairs)
                np.testing.assert_array_equal(found.data[bits], want[bits])
    finally:
        ow.set_num_threads(before)


def test_what_may_be_missing_is_given() -> None:
    a = ow.masked_tensor(np.arange(3.0), np.array([True, False, True])).specified
    with pytest.raises(ow.ShapeError, match=r"missing='AZ': no tensor Z\n  help: given are A"):
        ow.pointwise("A + A", {"A": a}, a.format, missing="AZ")
