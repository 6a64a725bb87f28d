"""Kernels of a merge whose elements' places in the operands are known, and of its gradients.

    for k: out[k] = A[p[k]] * B[q[k]]
    for k: dA[p[k]] = g[k] * B[q[k]];  dB[q[k]] = g[k] * A[p[k]]

An operand that has no value at an element is at place -1, and its fill value stands there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.loop import Expr, Kernel, Op, Var, map_expr
from ...ir.ops import const
from ...ir.printer import show
from ...ir.rewrite import free_variables
from ...ir.text import parse
from ..derivative import gradients_of

__all__ = ["LARGE", "Placed", "gradient_expressions", "gradient_kernel", "merge_kernel", "numbered", "used"]

LARGE = 1e300
"""The sum of all squares from which on the kernel does nothing: an infinity or NaN may meet a zero."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An operand of a merge.

    fill : its fill value where it has no value at some element, else None
    shared : whether a value stands at several elements, whose gradients are added
    """

    fill: Any = None
    shared: bool = False


def numbered(expr: Expr, names: Sequence[str]) -> Expr:
    """The expression of the operands v0, v1, ..., which have these names in it."""
    places = {name: k for k, name in enumerate(names)}

    def visit(e: Expr) -> Expr:
        return Var(f"v{places[e.name]}", e.type) if isinstance(e, Var) else map_expr(e, visit)

    return visit(expr)


def used(*exprs: Expr) -> frozenset[int]:
    """The numbers of the operands of numbered expressions."""
    return frozenset(int(v.name[1:]) for e in exprs for v in free_variables(e) if v.name != "g")


def gradient_expressions(expr: Expr) -> dict[int, Expr] | None:
    """The gradient of each operand of a numbered expression, of the gradient `g` of its value; None where an operation
    has no rule."""
    gradients = gradients_of(expr, Var("g", expr.type))
    return None if gradients is None else {int(name[1:]): e for name, e in gradients.items()}


def merge_kernel(expr: Expr, operands: Sequence[Placed], guarded: bool) -> Kernel:
    """`out[k]`, the numbered expression at the k-th of `count` elements.

    guarded : status 2 where the sum of the squares of an operand's `n` values is not below `limit`
    """
    scalar, numbers = expr.type.scalar, range(len(operands))
    lines, head = [], ["count: i64"]
    if guarded:
        head += ["limit: f64", *[f"n{k}: i64" for k in numbers]]
        for k in numbers:
            lines += [
                f"squares{k}: f64 = 0.0",
                f"for j in range(n{k}):",
                f"    squares{k} += f64(x{k}[j]) * f64(x{k}[j])",
            ]
            lines += [f"if squares{k} < limit:", "    pass", "else:", "    return 2"]  # NaN is not below
    lines += ["for k in range(count):", *_indented(_taken(scalar, operands, numbers)), f"    out[k] = {show(expr)}"]
    head += [*_places(numbers), *_values(scalar, numbers), f"out: {scalar}[mut]"]
    # sums of squares are of lanes; one operation has nothing to be regrouped
    is_single = isinstance(expr, Op) and all(isinstance(a, Var) for a in expr.args)
    return _kernel("merged", head, lines, reassociate=guarded and is_single)


def gradient_kernel(
    operands: Sequence[Placed], gradients: Mapping[int, Expr], begun: Collection[int], scalar: str
) -> Kernel:
    """The gradients `d` of the values of these operands, of that of the result, whose elements are `stride` apart.

    begun : the operands of which some values, of `n`, stand at no element: their gradients are zero
    """
    numbers, wanted = sorted(used(*gradients.values())), sorted(gradients)
    lines = [line for k in begun for line in (f"for j in range(n{k}):", f"    d{k}[j] = 0.0")]
    body = ["g = grad[k * stride]", *_taken(scalar, operands, numbers)]
    for k in wanted:
        line = f"d{k}[p{k}[k]] {'+=' if operands[k].shared else '='} {show(gradients[k])}"
        body += [line] if operands[k].fill is None else [f"if p{k}[k] >= 0:", f"    {line}"]
    head = ["count: i64", *[f"n{k}: i64" for k in begun], *_places(sorted({*numbers, *wanted})), "stride: i64"]
    head += [f"grad: {scalar}[const]", *_values(scalar, numbers), *[f"d{k}: {scalar}[mut]" for k in wanted]]
    return _kernel("gradients", head, [*lines, "for k in range(count):", *_indented(body)])


def _taken(scalar: str, operands: Sequence[Placed], numbers: Collection[int]) -> list[str]:
    """The lines that take the values of these operands at element k."""
    lines = []
    for k in numbers:
        fill = operands[k].fill
        if fill is None:
            lines.append(f"v{k} = x{k}[p{k}[k]]")
        else:
            lines += [f"v{k}: {scalar} = {show(const(fill, scalar))}", f"if p{k}[k] >= 0:", f"    v{k} = x{k}[p{k}[k]]"]
    return lines


def _places(numbers: Collection[int]) -> list[str]:
    return [f"p{k}: i64[const]" for k in numbers]


def _values(scalar: str, numbers: Collection[int]) -> list[str]:
    return [f"x{k}: {scalar}[const]" for k in numbers]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _kernel(name: str, head: Sequence[str], lines: Sequence[str], *, reassociate: bool = False) -> Kernel:
    text = "\n".join([f"def {name}({', '.join(head)}):", *_indented(lines)])
    return parse(text, reassociate=reassociate)
