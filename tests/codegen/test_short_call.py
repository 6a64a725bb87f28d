"""Short calls: a kernel's launch as a function of some of its words, and what stands in where there are none."""

from __future__ import annotations

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import engine, short_call
from openwork.codegen.executable import Executable
from openwork.errors import CompilerBug
from openwork.ir.loop import Scalar

pytestmark = pytest.mark.skipif(not short_call.ready(), reason="there are none, in checked mode for one")

TEXT = """
define i64 @f(ptr %words, i64 %lo, i64 %hi) {
  %at = getelementptr i64, ptr %words, i64 2
  %to = load ptr, ptr %at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %words, i64 32, i1 false)
  %last.at = getelementptr i64, ptr %words, i64 3
  %last = load i64, ptr %last.at
  %ends = mul i64 %lo, %hi
  %out = add i64 %last, %ends
  ret i64 %out
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
"""Copies its words to the third, and returns the fourth and the product of the bounds."""


def copier() -> Executable:
    params = tuple(Scalar(name, "i64") for name in "abcd")
    code = engine.load(engine.to_object(TEXT), "f")
    return Executable("f", params, code, lambda: pytest.fail("no loop IR"))


def test_words_and_bounds_are_those_of_the_call() -> None:
    f, out = copier(), np.zeros(4, np.int64)
    address = out.__array_interface__["data"][0]
    start = short_call.bound(f, [5, -6, 0, 0], [2, 0, 3], 3, 4)
    assert start is not None
    for first, status in ((2**62, 0), (-1, 7), (-(2**63), -20)):
        assert start(out, first, status) == status + 12
        assert out.tolist() == [first, -6, address, status]
    assert start(address, 8, 9) == 21
    every = short_call.bound(f, [2**64 - 1, 2, address, 4], [])
    assert every is not None
    assert every() == 4
    assert out.tolist() == [-1, 2, address, 4]


def test_as_many_words_as_parameters() -> None:
    with pytest.raises(CompilerBug, match="takes 4 words, got 3"):
        short_call.bound(copier(), [0] * 3, [1])


def test_there_are_none_for_a_word_without_a_slot_or_another_kind_of_kernel() -> None:
    assert short_call.bound(copier(), [0] * 4, [2, -1]) is None
    assert short_call.bound(object(), [], []) is None


def test_the_same_numbers_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.arange(12.0).reshape(3, 4) % 5, np.arange(4.0)
    results = []
    for available in (True, False):
        if not available:
            monkeypatch.setattr(short_call, "_method", lambda: None)
        a = ow.asarray(x, format="csr")
        for _ in range(3):
            out = (
                a @ y,
                ow.sum(a, axis=0).to_numpy(),
                a.to_dense(),
                ow.softmax(a, 1).to_numpy(),
                a.asformat("csc").values,
            )
        results.append(out)
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
