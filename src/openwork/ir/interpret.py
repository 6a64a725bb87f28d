"""A kernel and its arguments -> its status and changed buffers, by interpretation: the reference of the machine code.

Every offset is checked; a new `empty` workspace is filled with values that no sound kernel may depend on (NaN, the
least or greatest integer), so that a use of them shows. Floating-point sums are in program order, and a fused
multiply-add rounds twice, where the emitter may choose.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import CompilerBug
from .arithmetic import DTYPES, Value, apply, convert
from .loop import (
    Alloc,
    Assign,
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
    Mut,
    Op,
    Prefetch,
    Return,
    Stmt,
    Store,
    Var,
    While,
)
from .printer import show
from .types import Type, itemsize
from .values import fit, int_range

__all__ = ["Machine", "evaluate", "memory", "number", "run"]

Array = np.ndarray[Any, Any]
_Code = Callable[[], Value]
_Step = Callable[[], "int | None"]


def run(kernel: Kernel, args: Mapping[str, Any], lo: int | None = None, hi: int | None = None) -> int:
    """Run `kernel` and return its status; the mutable arrays of `args` are changed in place.

    Parameters
    ----------
    args : by parameter name, a 1-D array of the buffer's type (bfloat16 as `ml_dtypes.bfloat16` or its bits in
        uint16, bool also as uint8), or a number
    lo, hi : the range of a ranged kernel

    Raises CompilerBug when an offset is out of bounds, or an argument has the wrong type.
    """
    machine = Machine(kernel.name)
    if set(args) != {p.name for p in kernel.params}:
        expected = ", ".join(p.name for p in kernel.params)
        raise CompilerBug(f"interpreter: {kernel.name} takes {expected}; got {', '.join(args)}")
    for param in kernel.params:
        if isinstance(param, Buffer):
            machine.buffers[param.name] = memory(param, args[param.name])
        else:
            machine.names[param.name] = DTYPES[param.scalar](fit(number(args[param.name]), param.scalar))
    if kernel.ranged:
        if lo is None or hi is None:
            raise CompilerBug(f"interpreter: {kernel.name} is ranged; give lo and hi")
        machine.names.update(lo=np.int64(lo), hi=np.int64(hi))
    with np.errstate(all="ignore"):
        status = machine.block(kernel.body)()
    return 0 if status is None else status


def evaluate(expr: Expr, names: Mapping[str, Any] | None = None) -> Value:
    """The value of an expression without loads; `names` gives the variables."""
    machine = Machine("expression")
    machine.names.update(names or {})
    with np.errstate(all="ignore"):
        return machine.expr(expr)()


def number(value: Any) -> Any:
    """A number of NumPy's as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value


def memory(param: Buffer, array: Any) -> Array:
    """The array as the interpreter keeps it: a view of the caller's memory."""
    if not isinstance(array, np.ndarray) or array.ndim != 1:
        raise CompilerBug(f"interpreter: buffer {param.name!r} needs a 1-D array, got {type(array).__name__}")
    if param.scalar in ("bf16", "bool") and array.dtype.itemsize == itemsize(param.scalar):
        return array.view(np.uint16 if param.scalar == "bf16" else np.bool_)
    expected = np.dtype(np.float16 if param.scalar == "f16" else DTYPES[param.scalar])
    if array.dtype != expected:
        raise CompilerBug(f"interpreter: buffer {param.name!r} holds {param.scalar}, got dtype {array.dtype}")
    return array


def _lazy(op: str, codes: list[_Code]) -> _Code:
    first, second, third = codes[0], codes[1], codes[-1]
    if op == "select":
        return lambda: second() if first() else third()
    if op == "and":
        return lambda: np.bool_(first() and second())
    return lambda: np.bool_(first() or second())


class Machine:
    """A tree of loop IR -> closures over the names and buffers, made once, then run."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.names: dict[str, Value] = {}
        self.buffers: dict[str, Array] = {}

    def expr(self, expr: Expr) -> _Code:
        match expr:
            case Const(value, type):
                element = DTYPES[type.scalar](value)
                constant = np.full(type.lanes, element) if type.lanes > 1 else element
                return lambda: constant
            case Var(name, _):
                names = self.names
                return lambda: names[name]
            case Load(buffer, index, type):
                offset = self.expr(index)
                return lambda: self.load(buffer, offset(), type, expr)
            case Cast(arg, type):
                inner, source = self.expr(arg), arg.type
                if type.scalar == "i64" and type.lanes == 1 and source.is_integer:
                    return lambda: inner().astype(np.int64)
                return lambda: convert(inner(), source, type)
            case Op(op, args, type):
                codes = [self.expr(a) for a in args]
                if type.lanes == 1 and op in ("and", "or", "select"):
                    return _lazy(op, codes)
                if len(codes) == 2:
                    left, right = codes
                    return lambda: apply(op, (left(), right()), type)
                return lambda: apply(op, [c() for c in codes], type)

    def _offsets(self, buffer: str, index: Value, lanes: int, node: Expr | Stmt) -> Value:
        size = len(self.buffers[buffer])
        if lanes == 1:
            if 0 <= index < size:
                return index
            offsets = index
        else:
            offsets = index if index.ndim else index + np.arange(lanes)
        if np.any(offsets < 0) or np.any(offsets >= size):
            text = show(node).split("\n", 1)[0]
            raise CompilerBug(
                f"interpreter: kernel {self.kernel!r}: offset {index} into {buffer!r} of {size} elements\n  {text}"
            )
        return offsets

    def load(self, buffer: str, index: Value, type: Type, node: Expr) -> Value:
        raw = self.buffers[buffer][self._offsets(buffer, index, type.lanes, node)]
        if type.scalar == "f16":
            return raw.astype(np.float32)
        if type.scalar == "bf16":
            return (np.asarray(raw, np.uint32) << np.uint32(16)).view(np.float32)[()]
        return raw

    def store(self, buffer: str, index: Value, value: Value, type: Type, node: Stmt) -> None:
        offsets = self._offsets(buffer, index, type.lanes, node)
        if type.scalar == "bf16":
            rounded: Array = np.atleast_1d(convert(value, type, type))
            value = (rounded.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
            value = value if np.ndim(offsets) else value[0]
        self.buffers[buffer][offsets] = value

    def block(self, body: tuple[Stmt, ...]) -> _Step:
        steps = [self.stmt(s) for s in body]

        def code() -> int | None:
            for step in steps:
                if (status := step()) is not None:
                    return status
            return None

        return code

    def stmt(self, stmt: Stmt) -> _Step:
        match stmt:
            case Let(name, value) | Mut(name, value) | Assign(name, value):
                return self._bind(name, self.expr(value))
            case Store(buffer, index, value):
                offset, stored, type = self.expr(index), self.expr(value), value.type
                return lambda: self.store(buffer, offset(), stored(), type, stmt)
            case For():
                return self._for(stmt)
            case While(cond, body):
                return self._while(self.expr(cond), self.block(body))
            case If(cond, then, orelse):
                test, then_body, else_body = self.expr(cond), self.block(then), self.block(orelse)
                return lambda: then_body() if test() else else_body()
            case Alloc(buffer, scalar, size, zeroed):
                length = self.expr(size)
                return lambda: self.alloc(buffer, scalar, int(length()), zeroed)
            case Prefetch(_, index):
                offset = self.expr(index)

                def touch() -> None:
                    offset()

                return touch
            case Call(function, args):
                return self._call(function, args, stmt)
            case Return(status):
                code = self.expr(status)
                return lambda: int(code())
        raise CompilerBug(f"interpreter: kernel {self.kernel!r} has no grid, and says\n  {show(stmt)}")

    def _call(self, function: str, args: tuple[Expr, ...], node: Stmt) -> _Step:
        codes = [self.expr(a.index if isinstance(a, Load) else a) for a in args]
        names = self.names

        def call() -> None:
            copies, pointers = [], []
            for arg, code in zip(args, codes, strict=True):
                value = code()
                if isinstance(arg, Load):
                    memory = self.buffers[arg.buffer]
                    place = int(self._offsets(arg.buffer, value, 1, node))
                else:
                    memory, place = np.array([value], DTYPES[arg.type.scalar]), 0
                    copies.append(memory)
                pointers.append(ctypes.c_void_p(memory.ctypes.data + place * memory.itemsize))
            ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(args))(int(names[function]))(*pointers)

        return call

    def _bind(self, name: str, code: _Code) -> _Step:
        names = self.names

        def bind() -> None:
            names[name] = code()

        return bind

    def _for(self, loop: For) -> _Step:
        lo, hi, body, names = self.expr(loop.lo), self.expr(loop.hi), self.block(loop.body), self.names

        def code() -> int | None:
            for i in range(int(lo()), int(hi()), loop.step):
                names[loop.name] = np.int64(i)
                if (status := body()) is not None:
                    return status
            return None

        return code

    def _while(self, test: _Code, body: _Step) -> _Step:
        def code() -> int | None:
            while test():
                if (status := body()) is not None:
                    return status
            return None

        return code

    def alloc(self, buffer: str, scalar: str, size: int, zeroed: bool) -> None:
        if size < 0:
            raise CompilerBug(f"interpreter: kernel {self.kernel!r}: workspace {buffer!r} of {size} elements")
        dtype = {"bf16": np.uint16, "f16": np.float16}.get(scalar, DTYPES[scalar])
        if zeroed:
            self.buffers[buffer] = np.zeros(size, dtype)
        elif scalar == "bf16":
            self.buffers[buffer] = np.full(size, 0x7FC0, dtype)
        elif np.dtype(dtype).kind in "iu":
            self.buffers[buffer] = np.full(size, int_range(scalar)[0 if scalar[0] == "i" else 1], dtype)
        else:
            self.buffers[buffer] = np.full(size, np.nan if scalar != "bool" else True, dtype)
