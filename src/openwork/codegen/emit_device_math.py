"""Mathematical functions -> LLVM IR for devices whose LLVM target has no intrinsic for them and links no library."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UnsupportedError
from ..ir.types import Type
from .emit_builder import Builder

__all__ = ["own_function"]


def own_function(b: Builder, op: str, t: Type, *args: str) -> str:
    """A function of real values in line. Raises UnsupportedError, by name, for one that is not there."""
    build = _OWN.get(op)
    if build is None:
        raise UnsupportedError(
            f"{op} of {t} on {b.target.kind}\n  supported there: arithmetic, exp, exp2, expm1, tanh, sqrt, rounding"
            "\n  help: move the tensor with .to('cpu') first"
        )
    return build(b, t, *args)


def _remainder(b: Builder, t: Type, x: str, y: str) -> str:
    return b.ins(f"frem {b.type(t)} {x}, {y}")


def _hypot(b: Builder, t: Type, x: str, y: str) -> str:
    """sqrt(x^2 + y^2) = m sqrt(1 + (n / m)^2), m the larger in size: no square overflows."""
    text = b.type(t)
    first, second = b.intrinsic("fabs", t, x), b.intrinsic("fabs", t, y)
    larger, smaller = b.intrinsic("maxnum", t, first, second), b.intrinsic("minnum", t, first, second)
    ratio = b.ins(f"fdiv {text} {smaller}, {larger}")
    root = b.intrinsic("sqrt", t, b.intrinsic("fma", t, ratio, ratio, b.const(1.0, t)))
    scaled = b.ins(f"fmul {text} {larger}, {root}")
    plain = b.ins(f"or i1 {_is(b, t, larger, 0.0)}, {_is(b, t, larger, float('inf'))}")
    value = b.select(plain, larger, scaled, t)
    unordered = b.ins(f"fcmp uno {text} {x}, {y}")
    infinite = _is(b, t, larger, float("inf"))
    nan = b.ins(f"fadd {text} {x}, {y}")
    return b.select(infinite, b.const(float("inf"), t), b.select(unordered, nan, value, t), t)


def _is(b: Builder, t: Type, x: str, value: float) -> str:
    return b.ins(f"fcmp oeq {b.type(t)} {x}, {b.const(value, t)}")


_OWN: dict[str, Callable[..., str]] = {"fmod": _remainder, "hypot": _hypot}
