"""Fragments of loop IR, level functions and names of parameters: what they stand for, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.codegen.emit import emit
from openwork.compiler.build import Builder, Parameters
from openwork.compiler.derivative import gradients_of
from openwork.compiler.level_functions import Level, evaluate
from openwork.compiler.operand import Operand, ParamRef, parse_ref
from openwork.compiler.semiring import MONOIDS, Monoid
from openwork.compiler.single.jam_rows import jam_rows
from openwork.compiler.vanishing import linear, vanishes
from openwork.errors import CompilerBug
from openwork.ir import ops
from openwork.ir.index_evaluate import evaluate as oracle
from openwork.ir.index_text import parse as index_notation
from openwork.ir.index_text import parse_expression
from openwork.ir.interpret import run
from openwork.ir.loop import Buffer, Kernel, Store, Var
from openwork.ir.printer import show
from openwork.ir.text import parse, parse_expr
from openwork.ir.types import Type
from openwork.ir.verify import verify


def fragment(text: str, **names: Any) -> Kernel:
    builder = Builder("f")
    names = {"n": builder.scalar("n"), "A": builder.buffer("A", "i32", mutable=True, wide=True)} | names
    builder.top.run(text, **names)
    kernel = builder.kernel()
    verify(kernel)
    return kernel


def test_fragments_are_what_python_computes() -> None:
    text = """
    w: i64[n] = zeros
    v: i32[n] = empty
    prefetch(A, n - 1)
    total: i64 = 0
    i = 0
    while total < 100 and not total == 55:
        total += A[0] * A[1] + n
    for k in range(0, n):
        w[k] = A[k] if k % 2 == 0 else -A[k]
        w[k] += k
        v[k] = w[k] + i
        if v[k] < 0:
            HOLE
        elif v[k] > 3:
            A[k] = +3
        else:
            pass
    return total
    """
    A, n = np.array([2, 3, 5, -7, 11, 13], np.int32), 6
    kernel = fragment(text, HOLE=lambda b: b.run("A[k] = i64(TWO) * STEP", TWO=2, STEP=True))
    assert run(kernel, {"n": n, "A": A}) == 108  # 9 times 6 + 6
    assert list(A) == [2, 2, 3, 3, 3, 2]  # of 2, -2, 7, 10, 15, -8


def test_numbers_of_python_in_fragments_keep_their_kind() -> None:
    block = Builder("f").top
    for value, kind in ((True, "bool"), (2, "i64")):
        assert block.expr("N", N=value) == ops.const(value, kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n", "fragment: n is no hole"),
        ("n[0] = 1", "fragment: n is no buffer"),
        ("x = n[0]", "fragment: n is no buffer"),
        ("prefetch(n, 0)", "fragment: n is no buffer"),
        ("import os", "fragment: import os is not in the language"),
        ("x = m", "fragment: unknown name m; known: n, A"),
        ("x = A + 1", "fragment: A is no value"),
        ("x = n + T", "fragment: T is no value"),
        ("x = n + HOLE", "fragment: HOLE is no value"),
        ("x = n + [n]", "'[n]' is not in the syntax"),
    ],
)
def test_fragments_that_say_nothing(text: str, message: str) -> None:
    with pytest.raises(CompilerBug) as caught:
        fragment(text, T="f64", HOLE=lambda block: None)
    assert message in str(caught.value)


def level(spec: str, index: int) -> Level:
    format = ow.format(spec, 2)
    stored = [x.format.is_compressed for x in format.levels]
    scalars = tuple("i32" if s else None for s in stored)
    return Level("A", index, Operand("f64", 2, format, scalars, scalars), Parameters())


def test_level_functions_read_what_the_level_has() -> None:
    assert show(evaluate("pos[p + 1] - pos[p]", level("csr", 1), {"p": Var("p", Type("i64"))})) == (
        "i64(A_pos1[p + 1]) - i64(A_pos1[p])"
    )
    for text, message in {
        "q": "level function of compressed uses the unknown name 'q'",
        "[p]": "level function '[p]' of compressed: '[p]' is not in the syntax",
    }.items():
        with pytest.raises(CompilerBug) as caught:
            evaluate(text, level("csr", 1), {})
        assert message in str(caught.value)
    with pytest.raises(CompilerBug, match=r"level 0 of A \(dense\) stores no crd"):
        evaluate("crd[0]", level("csr", 0), {})


def test_names_of_parameters_read_back() -> None:
    level_refs = [
        ParamRef(kind, t, 2) for kind in ("pos", "crd", "packed", "size", "lower", "last") for t in ("A", "A_pos1")
    ]
    refs = [
        *level_refs,
        ParamRef("vals", "A"),
        ParamRef("extent", "i"),
        ParamRef("stride", "x", 1),
        ParamRef("data", "x"),
    ]
    refs += [ParamRef("slice", "A", 1, part) for part in ("pos", "crd", "vals")]
    for ref in refs:
        assert parse_ref(ref.name, ("A", "A_pos1", "x"), ("x",)) == ref
    for name in ("B_vals", "A_pos", "B_pos1", "A_other1", "A"):
        with pytest.raises(CompilerBug, match=f"parameter '{name}' stands for nothing; operands: A"):
            parse_ref(name, ("A",), ())


def test_identities_are_literals() -> None:
    for name, values in {"min": (True, 127), "max": (False, -128), "land": (True, 1), "lor": (False, 0)}.items():
        assert tuple(MONOIDS[name].identity_of(s) for s in ("bool", "i8")) == values
    with pytest.raises(CompilerBug, match=r"monoid odd: the identity '1 \+ 2' is no literal"):
        Monoid("odd", "x + y", "1 + 2").identity_of("f64")


VANISHING = {
    "A": "AL", "B": "B", "0": "AB", "1.5": "", "A * B": "ABL", "A + B": "", "A - A": "AL", "-A": "AL", "A / B": "AL", "B / A": "B",
    "A // B": "A", "A % B": "A", "A << B": "A", "A >> B": "A", "A & B": "AB", "A | A": "A", "A | B": "", "A * A": "A",
    "A + 1": "", "2 * A - A * B": "AL", "A * 2 / B": "AL", "A / (A + 1)": "A", "conj(A)": "AL", "real(A * B)": "ABL", "abs(A)": "A",
    "sqrt(A)": "A", "exp(A)": "", "sin(A) * B": "AB", "where(B, A, 0)": "A", "where(B, A, 1)": "", "where(A, B, 0)": "B",
    "A < B": "", "A ** 2": "", "A + A * 0": "AL", "(A + B) * 2": "", "(A + A) * B": "ABL",
}  # fmt: skip
"""By expression: A, B where it is 0 where that operand is, L where it is linear in A."""


@pytest.mark.parametrize("text", VANISHING)
def test_where_expressions_vanish_and_which_are_linear(text: str) -> None:
    e = parse_expression(text)
    assert "".join(n for n in "AB" if vanishes(e, n)) + "L" * linear(e, "A") == VANISHING[text]
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(1, 6, 20) for _ in range(3))
    statement = index_notation("y[i] = " + re.sub(r"\b[AB]\b", r"\g<0>[i]", text))

    def value(a: Any, b: Any) -> Any:
        return np.broadcast_to(oracle(statement, {"A": a, "B": b}, {"i": 20}), (20,))

    for name in set(VANISHING[text]) & set("AB"):
        assert not value(*(np.zeros_like(x) if n == name else x for n, x in (("A", a), ("B", b)))).any()
    if "L" in VANISHING[text]:
        np.testing.assert_allclose(value(a + c, b), value(a, b) + value(c, b))


def test_gradients_of_what_has_no_rule() -> None:
    env = {"x": Type("f64"), "y": Type("f64"), "h": Type("f32")}
    seed = Var("g", Type("f64"))
    known = {
        "x * y + 2.0": {"x": "g * y", "y": "g * x"},
        "3.0": {},
        "x + x": {"x": "g + g"},
        "x - y": {"x": "g", "y": "-g"},
        "floor(x)": None,
        "x * f64(h)": None,
        "x * floor(y)": None,
    }
    for text, want in known.items():
        found = gradients_of(parse_expr(text, env), seed)
        assert (None if found is None else {n: show(g) for n, g in found.items()}) == want, text


def test_rows_side_by_side_whatever_their_bodies_are() -> None:
    text = """
    def f(n: i64, x: i64[const], y: i64[mut]):
        for i in range(1, n):
            t: i64 = x[i]
            for k in range(x[i]):
                t += k
                if t % 2 == 0:
                    u = t + i
                    t = u * 3
                elif t > 50:
                    t -= 40
            y[i] = t
    """
    kernel = parse(text)
    x = np.arange(1, 14) % 7
    for rows in (2, 3, 4):
        builder = Builder("f")
        for name in "nxyitk":
            builder.fresh(name)
        jammed = replace(kernel, body=tuple(jam_rows(builder, kernel.body, rows)))
        verify(jammed)
        for n in (1, 2, 4, 5, 13):
            results = [np.zeros(13, np.int64) for _ in range(2)]
            for k, y in zip((kernel, jammed), results, strict=True):
                run(k, {"n": n, "x": x, "y": y})
            np.testing.assert_array_equal(*results)
    strided = parse("def f(n: i64, y: i64[mut]):\n    for i in range(0, n, 2):\n        y[i] = i").body
    assert tuple(jam_rows(Builder("f"), strided, 2)) == strided
    assert tuple(jam_rows(Builder("f"), strided[0].body, 2)) == strided[0].body


def test_lanes_are_permuted_by_integers_in_powers_of_two() -> None:
    v, w, index = (Var("v", Type("f64", n)) for n in (4, 3, 4))
    with pytest.raises(CompilerBug, match=r"permute of f64x4 by f64x4: expected 2\^k lanes, by integers"):
        ops.op("permute", v, index)
    index = Var("i", Type("i64", 2))
    with pytest.raises(CompilerBug, match="permute of f64x3 by i64x2"):
        ops.op("permute", w, index)
    assert ops.op("permute", v, index).type == Type("f64", 2)


def test_buffers_that_are_only_read_are_not_stored_to() -> None:
    """LLVM takes a buffer to stay as it is where no parameter says that it changes."""
    stored = Store("x", ops.const(0), ops.const(1.0, "f64"))
    with pytest.raises(CompilerBug, match="code generation: f stores to x, which is only read"):
        emit(Kernel("f", (Buffer("x", "f64"),), (stored,)))
