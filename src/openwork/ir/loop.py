"""The loop IR: typed loops over buffers, between the lowering of statements and LLVM IR.

Grammar (the printed form is a subset of Python and parses back, see `ir.text`)::

    kernel := def NAME ( param , ... ) : stmt ...
    param  := NAME : scalar                          a scalar argument
            | NAME : scalar [ const ]                a buffer that is only read
            | NAME : scalar [ mut ]                  a buffer that is written
    stmt   := NAME = expr                            Let: bound once
            | NAME : type = expr                     Mut: a variable that Assign may change
            | NAME = expr    (NAME a Mut)            Assign
            | NAME [ expr ] = expr                   Store; a vector value fills consecutive elements
            | NAME : scalar [ expr ] = zeros|empty   Alloc: a workspace, at the kernel's top level only
            | for NAME in range(expr, expr, step):   For; hints in a trailing comment
            | while expr:                            While
            | if expr: ... else: ...                 If
            | prefetch(NAME, expr)                   Prefetch: a hint, never a fault
            | call(NAME, expr, ...)                  Call: a C function of pointers, as BLAS's are
            | return expr                            Return: leave with a status, 0 is success
            | NAME : scalar [ n ] = local            Local: memory that the items of a group share
            | atomic('OP', NAME [ expr ], expr)      Atomic: NAME[i] = OP(NAME[i], v) in one step
            | NAME = swap(NAME [ expr ], expr, expr) Swap: the old element; where it is the first, the second is written
            | NAME = shuffle(expr, n)                Shuffle: the value of the item n lanes away, by exclusive or
            | barrier()                              Barrier: every item of the group has come here
    expr   := Const | Var | NAME [ expr ] (Load) | vload(NAME, expr, lanes) | op(expr, ...) | type(expr) (Cast)

The last five, and the variables `group`, `groups` and `item`, are of the device form: a kernel with a grid, which runs
once for each item of each group (`# grid of 64, subgroups of 16` behind its head). It names no vendor.

Guarantees: offsets and loop variables are i64; a name is bound once per scope; nothing aliases. All mutable
buffers are distinct from all others, which is what lets the emitter say `noalias`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from operator import is_

from ..classes import frozen
from .types import I64, Type

__all__ = [
    "ATOMICS",
    "GRID_VARIABLES",
    "HI",
    "LO",
    "Alloc",
    "Assign",
    "Atomic",
    "Barrier",
    "Buffer",
    "Call",
    "Cast",
    "Const",
    "Expr",
    "For",
    "Grid",
    "If",
    "Kernel",
    "Let",
    "Load",
    "Local",
    "Mut",
    "Op",
    "Param",
    "Prefetch",
    "Return",
    "Scalar",
    "Shuffle",
    "Stmt",
    "Store",
    "Swap",
    "Var",
    "While",
    "map_expr",
]


@frozen(eq=False)
class Const:
    """A literal; `value` is a Python bool, int, float or complex that `type` can hold.

    Equal when the bits are: NaN equals NaN, 0.0 does not equal -0.0, nor 1 (i32) 1 (i64)."""

    value: bool | int | float | complex
    type: Type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self.type == other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((self.type, repr(self.value)))


@frozen
class Var:
    """A scalar parameter, a Let, a Mut or a loop variable."""

    name: str
    type: Type


@frozen
class Load:
    """`buffer[index]`; with a type of several lanes and a scalar index, that many consecutive elements;
    with an index of several lanes, a gather."""

    buffer: str
    index: Expr
    type: Type


@frozen
class Op:
    """An operation of the table in `ir.ops`, on operands of equal lanes."""

    op: str
    args: tuple[Expr, ...]
    type: Type


@frozen
class Cast:
    """`arg` converted as C converts; from a scalar to several lanes it broadcasts."""

    arg: Expr
    type: Type


Expr = Const | Var | Load | Op | Cast


@frozen
class Let:
    name: str
    value: Expr


@frozen
class Mut:
    name: str
    value: Expr


@frozen
class Assign:
    name: str
    value: Expr


@frozen
class Store:
    buffer: str
    index: Expr
    value: Expr


@frozen
class For:
    """`for name in range(lo, hi, step)`, step a positive constant.

    Hints: "novector", "vector", "unroll:N", "nounroll"; they change speed, never results beyond
    the order of floating-point sums.
    """

    name: str
    lo: Expr
    hi: Expr
    body: tuple[Stmt, ...]
    step: int = 1
    hints: tuple[str, ...] = ()


@frozen
class While:
    cond: Expr
    body: tuple[Stmt, ...]


@frozen
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@frozen
class Alloc:
    buffer: str
    scalar: str
    size: Expr
    zeroed: bool = False


@frozen
class Prefetch:
    buffer: str
    index: Expr


@frozen
class Call:
    """`function(&args[0], ...)` of a C function without a result, whose address the i64 `function` is.

    All arguments are pointers: of a Load that of the element in its buffer, of any other scalar that of a copy of it.
    The function may read any buffer that it gets, write those that are mutable, and keeps no pointer; what it reads and
    writes around an element is not checked.
    """

    function: str
    args: tuple[Expr, ...]


@frozen
class Return:
    status: Expr


@frozen
class Local:
    """A buffer of `size` elements for each group, at the kernel's top level, not initialised."""

    buffer: str
    scalar: str
    size: int


@frozen
class Atomic:
    """`buffer[index] = op(buffer[index], value)`, which no other item's atomic on the element comes between."""

    op: str
    buffer: str
    index: Expr
    value: Expr


@frozen
class Swap:
    """Bind `name` to `buffer[index]`, a whole number of 32 or 64 bits; where that is `expected`, write `value` there.

    No other item's atomic on the element comes between."""

    name: str
    buffer: str
    index: Expr
    expected: Expr
    value: Expr


@frozen
class Shuffle:
    """Bind `name` to the value in the item of the same subgroup whose lane is this one's, exclusive or `mask`.

    All items of the subgroup come here together."""

    name: str
    value: Expr
    mask: int


@frozen
class Barrier:
    """A place that all items of a group reach before any goes on; what they wrote before is seen after it."""


OfDevice = Local | Atomic | Swap | Shuffle | Barrier
Stmt = Let | Mut | Assign | Store | For | While | If | Alloc | Prefetch | Call | Return | OfDevice


@frozen
class Buffer:
    """A pointer parameter to elements of one scalar type."""

    name: str
    scalar: str
    mutable: bool = False


@frozen
class Scalar:
    """A scalar parameter, passed in one 64-bit word (c128 is passed as a buffer of one)."""

    name: str
    scalar: str = "i64"


Param = Buffer | Scalar


@frozen
class Grid:
    """The items of each group, and of each subgroup, whose items run together; both powers of two."""

    items: int
    subgroup: int


@frozen
class Kernel:
    """A function over buffers. When `ranged`, the variables `lo` and `hi` (i64) bound its outermost loop
    and the caller may run disjoint ranges in parallel. `reassociate` allows floating-point sums and products
    in any order. One with a `grid` is in the device form."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    ranged: bool = False
    reassociate: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)
    grid: Grid | None = None


def map_expr(expr: Expr, visit: Callable[[Expr], Expr]) -> Expr:
    """Rebuild `expr` with `visit` applied to each child; the node itself is not visited."""
    if isinstance(expr, Op):
        fresh = tuple([visit(a) for a in expr.args])
        return expr if all(map(is_, expr.args, fresh)) else Op(expr.op, fresh, expr.type)
    if isinstance(expr, Load):
        new = visit(expr.index)
        return expr if new is expr.index else Load(expr.buffer, new, expr.type)
    if isinstance(expr, Cast):
        new = visit(expr.arg)
        return expr if new is expr.arg else Cast(new, expr.type)
    return expr


LO = Var("lo", I64)
HI = Var("hi", I64)
GRID_VARIABLES = ("group", "groups", "item")
"""The number of the group, that of all groups, and of the item in its group: visible in a kernel with a grid."""
ATOMICS = ("add", "mul", "min", "max", "and", "or", "band", "bor", "bxor")
"""The operations of an Atomic, which commute."""
SWAPPED = ("i32", "u32", "i64", "u64")
"""The types of elements of a Swap."""
