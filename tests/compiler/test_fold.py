"""Folded index expressions have the value of the operation: every pair of constants, letters and small values."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import pytest

from openwork.compiler.fold import fold
from openwork.ir.loop import Const, Expr, Op, Var
from openwork.ir.ops import const
from openwork.ir.types import I64

VALUES: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "min": min, "max": max, "band": operator.and_, "shr": operator.rshift,
}  # fmt: skip
X, Y = Var("x", I64), Var("y", I64)


def value(e: Expr, names: dict[str, int]) -> int:
    match e:
        case Const():
            return int(e.value.real)
        case Var(name):
            return names[name]
        case Op(name, (a, b)):
            return VALUES[name](value(a, names), value(b, names))
    raise AssertionError(e)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "min", "max"])
def test_values_are_those_of_the_operation(name: str) -> None:
    operands = (X, Y, *map(const, range(-3, 10)))
    for a, b in itertools.product(operands, repeat=2):
        folded = fold(name, a, b)
        for x, y in itertools.product((-7, -1, 1, 2, 9), repeat=2):
            names = {"x": x, "y": y}
            if name not in ("floordiv", "mod") or value(b, names) > 0:
                assert value(folded, names) == VALUES[name](value(a, names), value(b, names)), (a, b, names)


def test_what_is_folded() -> None:
    """Zeros and ones go, and divisions by powers of two are shifts and masks."""
    zero, one, eight = const(0), const(1), const(8)
    for name, a, b, want in (
        ("add", zero, X, X), ("add", X, zero, X), ("sub", X, zero, X), ("mul", one, X, X), ("mul", X, one, X),
        ("mul", zero, X, zero), ("mul", X, zero, zero), ("floordiv", X, one, X), ("min", X, X, X), ("max", X, X, X),
        ("floordiv", const(17), eight, const(2)), ("mod", const(17), eight, one),
    ):  # fmt: skip
        assert fold(name, a, b) == want, (name, a, b)
    for name, how in (("floordiv", "shr"), ("mod", "band")):
        found = fold(name, X, eight)
        assert isinstance(found, Op)
        assert found.op == how
