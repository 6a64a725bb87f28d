"""The loop over rows -> the same loop several rows at a time, whose inner loops are shared (unroll and jam).

    for i: acc = 0                          for i by 2: acc = 0; acc_1 = 0
           for j: acc += A[i, j] * x[j]  ->             for j: acc += A[i, j] * x[j]
           y[i] = acc                                          acc_1 += A[i + 1, j] * x[j]
                                                        y[i] = acc; y[i + 1] = acc_1

Sums of several rows do not wait for each other, and rows are read side by side. A last loop takes the rows that remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.loop import Expr, For, If, Let, Mut, Stmt, Var
from ...ir.ops import const, op
from ...ir.rewrite import Body, substitute, walk
from ...ir.types import I64
from ..build import Builder

__all__ = ["jam_rows"]


def jam_rows(builder: Builder, body: Sequence[Stmt], rows: int) -> list[Stmt]:
    """`body`, whose last statement is a loop over rows that write to elements of their own, so many at a time."""
    *before, loop = body
    if not isinstance(loop, For) or loop.step != 1:
        return list(body)
    i = Var(loop.name, I64)
    copies = [loop.body]
    for k in range(1, rows):
        row = Var(builder.fresh(loop.name), I64)
        copies.append((Let(row.name, op("add", i, const(k))), *_renamed(builder, loop.body, {loop.name: row})))
    lets = [copy[0] for copy in copies[1:]]
    jammed = _jammed([copies[0], *(copy[1:] for copy in copies[1:])])
    rest = Var(builder.fresh("rest"), I64)
    whole = op("sub", loop.hi, op("mod", op("sub", loop.hi, loop.lo), const(rows)))
    last = builder.fresh(loop.name)
    return [
        *before,
        Let(rest.name, whole),
        replace(loop, hi=rest, body=(*lets, *jammed), step=rows),
        For(last, rest, loop.hi, _renamed(builder, loop.body, {loop.name: Var(last, I64)}), 1, loop.hints),
    ]


def _renamed(builder: Builder, body: Body, names: dict[str, Expr]) -> Body:
    """A copy of statements whose names are its own; `names` replace those from outside."""
    names = dict(names)
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(name, value) | Mut(name, value):
                fresh = Var(builder.fresh(name), value.type)
                result.append(replace(stmt, name=fresh.name, value=_in(names, value)))
                names[name] = fresh
            case For(name, lo, hi, inner, step, hints):
                fresh = Var(builder.fresh(name), I64)
                copy = _renamed(builder, inner, {**names, name: fresh})
                result.append(For(fresh.name, _in(names, lo), _in(names, hi), copy, step, hints))
            case If(cond, then, orelse):
                parts = (_renamed(builder, part, names) for part in (then, orelse))
                result.append(If(_in(names, cond), *parts))
            case _:
                result += substitute((stmt,), names)
    return tuple(result)


def _in(names: Mapping[str, Expr], expr: Expr) -> Expr:
    return walk(expr, lambda e: names.get(e.name) if isinstance(e, Var) else None)


def _jammed(copies: Sequence[Body]) -> Body:
    """Statements of each copy in turn; what all of them compute alike is computed once, and their loops are one."""
    result: list[Stmt] = []
    names: list[dict[str, Expr]] = [{} for _ in copies]
    for alike in zip(*copies, strict=True):
        now = [substitute((stmt,), own)[0] for stmt, own in zip(alike, names, strict=True)]
        first = now[0]
        if isinstance(first, Let) and all(isinstance(s, Let) and s.value == first.value for s in now):
            result.append(first)
            for own, stmt in zip(names, now, strict=True):
                assert isinstance(stmt, Let)
                own[stmt.name] = Var(first.name, first.value.type)
        elif isinstance(first, For) and all(
            isinstance(s, For) and (s.lo, s.hi, s.step) == (first.lo, first.hi, first.step) for s in now
        ):
            inner = []
            for stmt in now:
                assert isinstance(stmt, For)
                inner.append(substitute(stmt.body, {stmt.name: Var(first.name, I64)}))
            result.append(replace(first, body=_jammed(inner)))
        else:
            result += now
    return tuple(result)
