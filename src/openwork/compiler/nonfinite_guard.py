"""An expression -> the largest operand values for which its sparse evaluation gives NumPy's infinities and NaN.

    A * B        0 * b is 0 for every finite b      finite values will do
    A * (B + C)  0 * (b + c)                        values so small that the sum does not overflow
    A * exp(B)   0 * exp(b)                         no bound is known

A sum or product of n values, each of size m >= 2 at most, has size m ** n at most; of complex ones (2m) ** n.
"""

from __future__ import annotations

import math

from .. import tuning
from ..ir.loop import Cast, Const, Expr, Op, Var
from ..ir.operations import OPERATIONS, with_trait
from ..ir.types import real_of
from .fill import Regions

__all__ = ["nonfinite_guard"]

_POLYNOMIAL = with_trait("polynomial")
_TRUTH = frozenset(name for name, o in OPERATIONS.items() if o.result == "bool" and o.kind != "bitwise")
_LARGEST = {"f16": 65504.0, "bf16": 3.3e38, "f32": 3.4e38, "f64": 1.79e308}
MAX_OPERANDS = tuning.NONFINITE_OPERANDS
_POWERS = (0, 1, 2, 3, 4)


def nonfinite_guard(regions: Regions) -> float | None:
    """None where the regions are the same whether or not an absent zero annihilates, or no zero does: where elements
    may be missing.

    Else the size up to which values of the operands give NumPy's result; 0 where no such bound is known.
    """
    if regions.masked:
        return None
    products = [e for e in _subexpressions(regions.expr) if isinstance(e, Op) and e.op == "mul" and _is_inexact(e)]
    if not products or not _differs(regions):
        return None
    return min(_bound(e, regions) for e in products)


def _differs(regions: Regions) -> bool:
    exact = Regions(regions.expr, regions.fills, regions.fill, annihilate=False)
    names = regions.names
    if len(names) > MAX_OPERANDS:
        return True
    subsets = [{n for k, n in enumerate(names) if bits >> k & 1} for bits in range(1 << len(names))]
    return any(regions.body(s) != exact.body(s) for s in subsets)


def _subexpressions(e: Expr) -> list[Expr]:
    children = e.args if isinstance(e, Op) else (e.arg,) if isinstance(e, Cast) else ()
    return [e, *(part for arg in children for part in _subexpressions(arg))]


def _is_inexact(e: Expr) -> bool:
    return e.type.is_float or e.type.is_complex


def _bound(product: Op, regions: Regions) -> float:
    """The largest size of values for which the factors of a product are finite."""
    variables, headroom = 0, min(_LARGEST[real_of(e.type.scalar)] for e in _subexpressions(product) if _is_inexact(e))
    worklist: list[Expr] = [product]
    while worklist:
        e = worklist.pop()
        match e:
            case Op(op) if op in _TRUTH or e.type.scalar == "bool":
                headroom /= 2
            case Op(op, args) if op in _POLYNOMIAL:
                worklist += args[1:] if op == "select" else args * 2 if op == "square" else args
            case Op("pow", (base, Const(k))) if k in _POWERS:
                worklist += [base] * int(k.real)
            case Const(value) if math.isnan(abs(value)):
                return 0.0
            case Op("div", (dividend, Const(divisor))) if divisor and not math.isnan(abs(divisor)):
                worklist.append(dividend)
                headroom /= max(2.0, 1 / abs(divisor))
            case Cast(arg):
                worklist.append(arg)
            case Const(value):
                headroom /= max(2.0, abs(value))
            case Var():
                variables += 1
            case _:
                return 0.0
    if any(e.type.is_complex for e in _subexpressions(product)):
        headroom /= 2.0**variables
    limit = headroom ** (1 / variables) if variables else 0.0
    are_plain = all(isinstance(a, Var) or (isinstance(a, Cast) and isinstance(a.arg, Var)) for a in product.args)
    if not are_plain and not all(abs(f.value) <= limit for f in regions.fills.values() if isinstance(f, Const)):
        return 0.0
    return limit if math.isfinite(limit) and limit >= 2 else 0.0
