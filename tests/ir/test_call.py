"""Calls of C functions in the loop IR: read, printed, verified, interpreted, compiled and checked."""

from __future__ import annotations

import numpy as np
import pytest

from openwork.codegen.cache import compile_kernel
from openwork.codegen.checked import compile_checked
from openwork.compiler.simplify import simplify
from openwork.errors import CompilerBug
from openwork.ir import interpret
from openwork.ir.loop import Call
from openwork.ir.printer import show
from openwork.ir.rewrite import assigned, free_variables, substitute
from openwork.ir.text import parse
from openwork.ir.verify import verify
from openwork.linalg.direct_solver.blas import address

AXPY = """
def twice_axpy(axpy: i64, x: T[const], y: T[mut], n: i64):
    for i in range(2):
        call(axpy, i32(n), T(3.0), x[i], i32(1), y[n * i], i32(1))
"""
SCALARS = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


@pytest.mark.parametrize("scalar", SCALARS)
def test_compiled_and_interpreted_calls_agree(scalar: str) -> None:
    kernel = verify(parse(AXPY, T=scalar))
    assert verify(parse(show(kernel))) == kernel
    x = np.arange(1, 5).astype(SCALARS[scalar])
    expected = np.ones(6, x.dtype) + 3 * np.concatenate([x[:3], x[1:]])
    words = {"axpy": address("axpy", scalar), "x": x, "n": 3}
    for k in (kernel, simplify(kernel)):
        out = np.ones(6, x.dtype)
        assert interpret.run(k, words | {"y": out}) == 0
        assert np.array_equal(out, expected)
        for executable in (compile_kernel(k), compile_checked(k)):
            out = np.ones(6, x.dtype)
            executable.run(executable.pack([words["axpy"], x, out, 3]))
            assert np.array_equal(out, expected)


def test_workspaces_are_passed_and_kept() -> None:
    text = """
    def f(copy: i64, x: f64[const], y: f64[mut], n: i64):
        w: f64[n] = zeros
        call(copy, i32(n), x[0], i32(1), w[0], i32(1))
        for i in range(n):
            y[i] = w[i] + 1.0
    """
    x, y = np.arange(4.0), np.zeros(4)
    executable = compile_kernel(simplify(parse(text)))
    executable.run(executable.pack([address("copy", "f64"), x, y, 4]))
    assert y.tolist() == [1, 2, 3, 4]


def test_offsets_of_calls_are_checked() -> None:
    kernel = parse("def f(copy: i64, x: f64[mut], i: i64):\n    call(copy, i32(0), x[i], i32(1), x[i], i32(1))")
    x, at = np.zeros(3), address("copy", "f64")
    with pytest.raises(CompilerBug, match="offset 3 into 'x' of 3 elements"):
        interpret.run(kernel, {"copy": at, "x": x, "i": 3})
    checked = compile_checked(kernel)
    with pytest.raises(CompilerBug, match="index 3 of x, which has 3 elements"):
        checked.run(checked.pack([at, x, 3]))


def test_what_is_not_an_address_is_refused() -> None:
    with pytest.raises(CompilerBug, match="not the address of a function"):
        parse("def f(g: f64, x: f64[mut]):\n    call(g, x[0])")
    with pytest.raises(CompilerBug, match="a pointer to f64x4"):
        verify(parse("def f(g: i64, x: f64[mut]):\n    call(g, vload(x, 0, 4))"))


def test_passes_know_what_calls_read_and_write() -> None:
    (stmt,) = parse("def f(g: i64, x: f64[mut], n: i64):\n    call(g, x[n], i32(n))").body
    assert assigned([stmt]) == {"x"}
    assert [v.name for v in free_variables([stmt])] == ["g", "n"]
    renamed = parse("def f(h: i64, z: f64[mut], n: i64):\n    call(h, z[n], i32(n))")
    address_ = renamed.body[0]
    assert isinstance(address_, Call)
    assert substitute([stmt], {"g": free_variables(renamed.body)[0]}, {"x": "z"}) == renamed.body
