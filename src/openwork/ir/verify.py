"""A kernel -> itself, if it is well formed; else CompilerBug with the position: the specification of the loop IR.

1. Names are identifiers, and each is bound once: no name is bound where it is visible already.
2. A Var is bound where it is used, with that type; Assign goes to a Mut, of its type.
3. A buffer is a parameter or an Alloc before it; Store goes to a mutable one, Load and Store have its scalar type.
4. An Op equals `ops.op` of its operands; a Const is representable in its type.
5. Offsets, loop bounds and sizes are i64; loop steps positive; conditions a single bool.
6. Alloc is at the kernel's top level only.
7. The function of a Call is an i64 in scope, its arguments scalars.
8. Local, Atomic, Swap, Shuffle and Barrier are in a kernel with a grid, which has no Alloc, Call or Return, nor a
   range. That all items of a group come to a Barrier, and all of a subgroup to a Shuffle, `grid_interpret` checks.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable

from ..errors import CompilerBug
from . import ops
from .loop import (
    ATOMICS,
    GRID_VARIABLES,
    SWAPPED,
    Alloc,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Mut,
    Op,
    Prefetch,
    Return,
    Scalar,
    Shuffle,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from .printer import show
from .types import BOOL, I64, SCALARS, Type
from .values import fit

__all__ = ["verify"]

_RESERVED = {"inf", "nan"}
_HINTS = ("vector", "novector", "nounroll")


def verify(kernel: Kernel) -> Kernel:
    """`kernel` itself, if it is well formed. Raises CompilerBug that names the statement otherwise."""
    checker = _Checker(kernel)
    checker.params()
    checker.block(kernel.body, _Scope(checker.names, checker.muts), top=True)
    return kernel


class _Scope:
    def __init__(self, names: dict[str, Type], muts: frozenset[str]) -> None:
        self.names, self.muts = names, muts

    def child(self) -> _Scope:
        return _Scope(dict(self.names), self.muts)


class _Checker:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[str, Type] = {}
        self.muts: frozenset[str] = frozenset()
        self.buffers: dict[str, Buffer] = {}
        self.path: list[Stmt] = []

    def require(self, truth: bool, message: str | Callable[[], str]) -> None:
        if not truth:
            text = message if isinstance(message, str) else message()
            where = "".join(f"\n  {'  ' * n}{show(s).split(chr(10), 1)[0]}" for n, s in enumerate(self.path))
            raise CompilerBug(f"verify: kernel {self.kernel.name!r}: {text}{where}")

    def params(self) -> None:
        grid = self.kernel.grid
        if grid is not None:
            sizes = (grid.items, grid.subgroup)
            self.require(all(n > 0 and n & (n - 1) == 0 for n in sizes), f"{grid}: sizes are powers of two")
            self.require(grid.subgroup <= grid.items, f"{grid}: a subgroup is of items of one group")
            self.require(not self.kernel.ranged, "a kernel with a grid is not ranged")
            self.names.update(dict.fromkeys(GRID_VARIABLES, I64))
        if self.kernel.ranged:
            self.names.update(lo=I64, hi=I64)
        else:
            self.require(self.kernel.params[:2] != (Scalar("lo"), Scalar("hi")), "lo, hi lead a kernel not ranged")
        for param in self.kernel.params:
            self.require(param.scalar in SCALARS, f"parameter {param.name!r} has unknown type {param.scalar!r}")
            self.fresh(param.name, self.names)
            if isinstance(param, Buffer):
                self.buffers[param.name] = param
            else:
                self.names[param.name] = Type(param.scalar)

    def fresh(self, name: str, names: dict[str, Type]) -> None:
        is_name = name.isidentifier() and not keyword.iskeyword(name) and name not in _RESERVED
        self.require(is_name, lambda: f"{name!r} is not a name")
        self.require(name not in names and name not in self.buffers, lambda: f"{name!r} is bound already")

    def block(self, body: tuple[Stmt, ...], scope: _Scope, top: bool = False) -> None:
        for stmt in body:
            self.path.append(stmt)
            self.stmt(stmt, scope, top)
            self.path.pop()

    def stmt(self, stmt: Stmt, scope: _Scope, top: bool) -> None:
        of_device = isinstance(stmt, Local | Atomic | Swap | Shuffle | Barrier)
        of_host = isinstance(stmt, Alloc | Call | Return)
        fits = not of_device if self.kernel.grid is None else not of_host
        self.require(fits, lambda: f"not in a kernel {'without' if of_device else 'with'} a grid")
        match stmt:
            case Let(name, value) | Mut(name, value):
                self.expr(value, scope)
                self.fresh(name, scope.names)
                scope.names[name] = value.type
                if isinstance(stmt, Mut):
                    scope.muts |= {name}
            case Assign(name, value):
                self.expr(value, scope)
                self.require(name in scope.muts, lambda: f"{name!r} is not a Mut")
                kind = scope.names[name]
                self.require(value.type == kind, lambda: f"{name!r} is {kind}, got {value.type}")
            case Store(buffer, index, value):
                self._store(buffer, index, value, scope)
            case For(name, lo, hi, body, step, hints):
                self.offset(lo, scope)
                self.offset(hi, scope)
                self.require(step > 0, lambda: f"step {step}, expected a positive one")
                are_known = all(h in _HINTS or (h.startswith("unroll:") and h[7:].isdecimal()) for h in hints)
                self.require(are_known, lambda: f"unknown hint in {hints}")
                inner = scope.child()
                self.fresh(name, inner.names)
                inner.names[name] = I64
                self.block(body, inner)
            case While(cond, body):
                self.condition(cond, scope)
                self.block(body, scope.child())
            case If(cond, then, orelse):
                self.condition(cond, scope)
                self.block(then, scope.child())
                self.block(orelse, scope.child())
            case Alloc(buffer, scalar, size, _):
                self.require(top, "a workspace is allocated at the kernel's top level only")
                self.require(scalar in SCALARS, lambda: f"unknown type {scalar!r}")
                self.offset(size, scope)
                self.fresh(buffer, scope.names)
                self.buffers[buffer] = Buffer(buffer, scalar, mutable=True)
            case Prefetch(buffer, index):
                self.declared(buffer)
                self.offset(index, scope)
            case Call(function, args):
                found = scope.names.get(function)
                self.require(found == I64, lambda: f"{function!r} is {found or 'not bound here'}, not an address")
                for arg in args:
                    self.expr(arg, scope)
                    self.require(arg.type.lanes == 1, f"a pointer to {arg.type}: {show(arg)}")
            case Return(status):
                self.offset(status, scope)
            case Local(buffer, scalar, size):
                self.require(top, "local memory is declared at the kernel's top level only")
                self.require(scalar in SCALARS and size > 0, lambda: f"{size} elements of type {scalar!r}")
                self.fresh(buffer, scope.names)
                self.buffers[buffer] = Buffer(buffer, scalar, mutable=True)
            case Atomic(name, buffer, index, value):
                self._store(buffer, index, value, scope)
                kept = name in ATOMICS and value.type.lanes == 1 and ops.op(name, value, value).type == value.type
                self.require(kept, lambda: f"no atomic {name} of {value.type}")
            case Swap(name, buffer, index, expected, value):
                for written in (expected, value):
                    self._store(buffer, index, written, scope)
                whole = value.type.lanes == 1 and value.type.scalar in SWAPPED
                self.require(whole, lambda: f"no swap of {value.type}")
                self.fresh(name, scope.names)
                scope.names[name] = value.type
            case Shuffle(name, value, mask):
                self.expr(value, scope)
                width = 1 if self.kernel.grid is None else self.kernel.grid.subgroup
                self.require(0 < mask < width, lambda: f"lane {mask} away in a subgroup of {width}")
                self.fresh(name, scope.names)
                scope.names[name] = value.type

    def _store(self, buffer: str, index: Expr, value: Expr, scope: _Scope) -> None:
        target = self.declared(buffer)
        self.require(target.mutable, lambda: f"store to {buffer!r}, which is only read")
        self.expr(value, scope)
        self.require(value.type.scalar == target.scalar, lambda: f"{buffer!r} holds {target.scalar}, got {value.type}")
        self.index(index, value.type, scope)

    def declared(self, name: str) -> Buffer:
        self.require(name in self.buffers, lambda: f"unknown buffer {name!r}")
        return self.buffers[name]

    def offset(self, expr: Expr, scope: _Scope) -> None:
        self.expr(expr, scope)
        self.require(expr.type == I64, lambda: f"expected i64, got {expr.type}: {show(expr)}")

    def condition(self, expr: Expr, scope: _Scope) -> None:
        self.expr(expr, scope)
        self.require(expr.type == BOOL, lambda: f"expected bool, got {expr.type}: {show(expr)}")

    def index(self, index: Expr, accessed: Type, scope: _Scope) -> None:
        self.expr(index, scope)
        is_index = index.type.scalar == "i64" and index.type.lanes in (1, accessed.lanes)
        self.require(is_index, lambda: f"index of type {index.type} for {accessed}: {show(index)}")

    def expr(self, expr: Expr, scope: _Scope) -> None:
        self.require(expr.type.scalar in SCALARS and expr.type.lanes > 0, lambda: f"unknown type {expr.type}")
        match expr:
            case Const(value, type):
                is_representable = repr(fit(value, type.scalar)) == repr(value)
                self.require(is_representable, lambda: f"{type} cannot hold {value!r}")
            case Var(name, type):
                bound = scope.names.get(name)
                self.require(bound == type, lambda: f"{name!r} is {bound or 'not bound here'}, used as {type}")
            case Load(buffer, index, type):
                element = self.declared(buffer).scalar
                self.require(element == type.scalar, lambda: f"{buffer!r} holds {element}, loaded as {type}")
                self.index(index, type, scope)
            case Op():
                self._op(expr, scope)
            case Cast(arg, type):
                self.expr(arg, scope)
                lanes_fit = arg.type.lanes in (1, type.lanes)
                self.require(lanes_fit, lambda: f"cast of {arg.type} to {type}: {show(expr)}")

    def _op(self, expr: Op, scope: _Scope) -> None:
        for arg in expr.args:
            self.expr(arg, scope)
        try:
            expected = ops.op(expr.op, *expr.args)
        except CompilerBug as problem:
            self.require(False, f"{problem}: {show(expr)}")
        if expected != expr:
            operands = ", ".join(str(a.type) for a in expr.args)
            self.require(False, f"{expr.op}({operands}) as {expr.type}: {show(expr)}")
