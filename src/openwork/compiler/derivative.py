"""An elementwise expression and the gradient of its value -> the gradient of each of its operands, as expressions.

    A * B,  g    ->    A: g * B,  B: g * A

Where operands of `min` and `max` are equal each has half of the gradient, and all of it beside NaN, as torch has it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.loop import Cast, Const, Expr, Op, Var
from ..ir.ops import const, op

__all__ = ["gradients_of"]

_Rule = Callable[..., tuple[Expr, ...]]


def gradients_of(expr: Expr, seed: Expr) -> dict[str, Expr] | None:
    """The gradients by operands' names, of operands that the value depends on; None where an operation has no rule."""
    gradients: dict[str, Expr] = {}
    return gradients if _add_gradients(expr, seed, gradients) else None


def _add_gradients(expr: Expr, seed: Expr, gradients: dict[str, Expr]) -> bool:
    """Add what an expression, whose value has the gradient `seed`, gives its operands; False where there is no rule."""
    match expr:
        case Const():
            return True
        case Var(name, _):
            known = gradients.get(name)
            gradients[name] = seed if known is None else op("add", known, seed)
            return True
        case Cast(arg, type):
            return arg.type == type and _add_gradients(arg, seed, gradients)
        case Op(name, args, type) if name in _RULES and all(a.type == type for a in args):
            parts = _RULES[name](seed, expr, *args)
            return all(_add_gradients(a, part, gradients) for a, part in zip(args, parts, strict=True))
    return False


def _at_extreme(beyond: str) -> _Rule:
    """The rule of `min` (an operand is `gt` the other) and of `max` (`lt`): zero there, whatever the gradient is."""

    def share(g: Expr, a: Expr, b: Expr) -> Expr:
        zero, half = const(0.0, g.type), op("mul", g, const(0.5, g.type))
        return op("select", op(beyond, a, b), zero, op("select", op("eq", a, b), half, g))

    return lambda g, _, a, b: (share(g, a, b), share(g, b, a))


def _two(like: Expr) -> Const:
    return const(2.0, like.type)


_RULES: dict[str, _Rule] = {
    "add": lambda g, y, a, b: (g, g),
    "sub": lambda g, y, a, b: (g, op("neg", g)),
    "mul": lambda g, y, a, b: (op("mul", g, b), op("mul", g, a)),
    "div": lambda g, y, a, b: (op("div", g, b), op("mul", op("neg", g), op("div", y, b))),
    "min": _at_extreme("gt"),
    "max": _at_extreme("lt"),
    "neg": lambda g, y, a: (op("neg", g),),
    "square": lambda g, y, a: (op("mul", g, op("mul", _two(a), a)),),
    "sqrt": lambda g, y, a: (op("div", g, op("mul", _two(a), y)),),
    "exp": lambda g, y, a: (op("mul", g, y),),
    "log": lambda g, y, a: (op("div", g, a),),
    "sin": lambda g, y, a: (op("mul", g, op("cos", a)),),
    "cos": lambda g, y, a: (op("mul", g, op("neg", op("sin", a))),),
}
