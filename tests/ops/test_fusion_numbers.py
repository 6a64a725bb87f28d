"""Numbers in expressions: kernels are passed them, so that another number compiles nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interpreted import interpreted
from matrix import dense_array, tensor

import openwork as ow
from openwork.codegen import cache
from openwork.compiler.scalar_arguments import passes, value_by_sign
from openwork.fusion import program as programs
from openwork.ir.loop import Cast, Var
from openwork.ir.ops import const
from openwork.ir.types import Type

A, B, X = dense_array((9, 12), 0, density=0.5), dense_array((9, 12), 1, density=0.5), np.arange(12.0)
U, V = np.arange(36.0).reshape(9, 4), np.ones((4, 12))

CHAINS: dict[str, Callable[..., Any]] = {
    "p * A + q * B": lambda a, b, p, q: p * a + q * b,
    "A / p - B * q": lambda a, b, p, q: a / p - b * q,
    "(p * A + q * B) @ x": lambda a, b, p, q: (p * a + q * b) @ X,
    "sum(p * A * B, axis=1) * q": lambda a, b, p, q: (p * a * b).sum(axis=1) * q,
    "p * M * (U @ V)": lambda a, b, p, q: p * a * ((U if isinstance(a, np.ndarray) else ow.lazy(U)) @ V) * q,
    "(A > p) * B * q": lambda a, b, p, q: (a > p) * b * q,
    "(A + p) * B - (A + p)": lambda a, b, p, q: (a + p) * b - (a + p),
}
FIXED = "(A + p) * B - (A + p)"
NUMBERS = [(2.5, 0.75), (1.5, 3.25), (0.125, 2.0)]
OTHERS = [(3.0, 3.0), (-2.5, 4.0), (-0.5, 0.5), (0.0, 2.0), (1e40, 1.5), (math.inf, -1.0), (2, 0.5)]


def value(chain: str, p: Any, q: Any, specs: tuple[str, str] = ("csr", "csr")) -> Any:
    got = ow.compute(CHAINS[chain](ow.lazy(tensor(A, specs[0])), ow.lazy(tensor(B, specs[1])), p, q))
    return np.asarray(got.to_numpy() if hasattr(got, "to_numpy") else got)


@pytest.mark.thin(2)
@pytest.mark.parametrize("chain", CHAINS)
def test_another_number_compiles_nothing(chain: str) -> None:
    """But where the fill value depends on it."""
    with np.errstate(all="ignore"):
        for k, (p, q) in enumerate(NUMBERS):
            before = len(cache._MEMORY)
            np.testing.assert_allclose(value(chain, p, q), CHAINS[chain](A, B, p, q), rtol=1e-13)
            assert (len(cache._MEMORY) == before) == (chain != FIXED) or not k
        for p, q in OTHERS if chain != FIXED else ():
            np.testing.assert_allclose(value(chain, p, q), CHAINS[chain](A, B, p, q), rtol=1e-13)


@pytest.mark.parametrize("specs", [("coo", "csr"), ("csc", "csr"), ("dcsr", "bsr(3, 2)"), ("dia", "ell(12)")])
def test_formats(specs: tuple[str, str]) -> None:
    for chain in ("p * A + q * B", "(p * A + q * B) @ x"):
        for p, q in NUMBERS:
            np.testing.assert_allclose(value(chain, p, q, specs), CHAINS[chain](A, B, p, q), rtol=1e-13)


def test_the_interpreter_agrees() -> None:
    with interpreted() as ran:
        programs._programs.clear()
        for p, q in NUMBERS[:2]:
            np.testing.assert_array_equal(value("p * A + q * B", p, q), p * A + q * B)
    programs._programs.clear()
    assert ran == ["merge", "merge"]


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64", "bool"])
def test_numbers_are_weak(dtype: str) -> None:
    """A number never widens a floating-point type; integers become what NumPy makes of them."""
    a, b = A.astype(dtype), (B + 1).astype(dtype)
    s, t = ow.lazy(tensor(a, "csr")), ow.lazy(tensor(b, "csr"))
    for p, q in NUMBERS:
        got = ow.compute(s * p + t * q)
        want = a * p + b * q
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-6)


def test_values_for_which_one_pass_is_not_the_same() -> None:
    """An infinity that meets an unspecified zero: the operations run one by one, with the same numbers."""
    big = np.where(A == 2, np.inf, A)
    with np.errstate(all="ignore"):
        for p, q in NUMBERS[:2]:
            got = ow.compute(p * ow.lazy(tensor(big, "csr")) * tensor(B, "csr") * q)
            np.testing.assert_array_equal(got.to_numpy(), p * big * B * q)


@pytest.mark.parametrize("number", [math.nan, -math.inf, complex(0, math.nan), complex(math.inf, 0)])
def test_a_number_that_is_not_finite_meets_what_is_not_stored(number: Any) -> None:
    chains: list[Callable[..., Any]] = [
        lambda a, b, n: a * (b * n),
        lambda a, b, n: a * (b / n),
        lambda a, b, n: a * (b + n),
        lambda a, b, n: (a + b) * (a * n) - b,
    ]
    with np.errstate(all="ignore"):
        for chain in chains:
            got = ow.compute(chain(ow.lazy(tensor(A, "csr")), tensor(B, "csr"), number))
            np.testing.assert_array_equal(got.to_numpy(), chain(A, B, number))


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(12.0, dtype=torch.float32)
    t = ow.asarray(torch.tensor(A, dtype=torch.float32).to_sparse_csr())
    for p, q in NUMBERS:
        got = ow.compute((p * ow.lazy(t) + q * ow.lazy(t)) @ x)
        assert got.dtype == torch.float32
        want = (p * A + q * A) @ X
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_numbers_of_numpy() -> None:
    """As what dot products give: passed like any other where they widen nothing."""
    a, b = tensor(A, "csr"), tensor(B, "csr")
    value("p * A + q * B", 2.5, 0.5)
    for p, q in NUMBERS:
        before = len(cache._MEMORY)
        got = ow.compute(np.float64(p) * ow.lazy(a) + np.float64(q) * ow.lazy(b))
        assert len(cache._MEMORY) == before
        np.testing.assert_allclose(got.to_numpy(), p * A + q * B, rtol=1e-13)
    narrow = ow.compute(np.float64(2.5) * ow.lazy(a.astype("float32")) + b.astype("float32"))
    assert narrow.dtype == np.float64


def test_explain_says_the_numbers_of_the_call() -> None:
    a, b = tensor(A, "csr"), tensor(B, "csr")
    for p, q in NUMBERS[:2]:
        text = str(ow.explain(p * ow.lazy(a) + q * ow.lazy(b)))
        assert f"part 1 of 1: {p} * A + {q} * B" in text
        assert f"{p} * A0[i0, i1] + {q} * A1[i0, i1], one loop nest" in text


def test_what_a_zero_comes_to_with_a_number() -> None:
    zero, positive, negative = const(0.0, "f64"), Var("num0_pos", Type("f64")), Var("num1_neg", Type("f64"))
    found = {
        ("mul", zero, negative): -0.0, ("mul", positive, zero): 0.0, ("div", zero, positive): 0.0, ("pow", zero, positive): 0.0,
        ("lt", zero, positive): True, ("gt", positive, zero): True, ("eq", zero, negative): False,
        ("min", zero, positive): 0.0, ("max", negative, zero): 0.0,
    }  # fmt: skip
    for (op, a, b), want in found.items():
        assert repr(getattr(value_by_sign(op, (a, b)), "value", None)) == repr(want), op
    narrow = Cast(positive, Type("f32"))
    assert value_by_sign("mul", (const(0.0, "f32"), narrow)) == const(0.0, "f32")
    unknown = [("add", zero, positive), ("max", zero, positive), ("pow", zero, negative), ("div", positive, zero)]
    unknown += [("mul", const(1.0, "f64"), positive), ("mul", zero, Var("A", Type("f64")))]
    assert all(value_by_sign(op, (a, b)) is None for op, a, b in unknown)


def test_which_numbers_are_passed() -> None:
    assert all(map(passes, (0.5, -3e20)))
    assert not any(map(passes, (0.0, -0.0, math.nan, math.inf, 1e31, 1e-31, 2, True, 1j, np.float64(2))))
