"""A kernel with a grid -> OpenCL C: for runtimes that take no SPIR-V, and for oclgrind, which reads sources.

Names get a prefix, as C has words of its own. Both operands of a choice are computed, as on other devices, so that a
checker sees what they read. Half precision, complex numbers and shuffles are refused by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ..errors import CompilerBug, UnsupportedError
from ..ir.loop import (
    Assign,
    Atomic,
    Barrier,
    Buffer,
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
    Stmt,
    Store,
    Swap,
    Var,
    While,
)  # fmt: skip
from ..ir.ops import COMPARISONS
from ..ir.rewrite import statements
from ..ir.types import Type, itemsize

__all__ = ["emit_opencl_c"]

_C = {
    "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint", "i64": "long",
    "u64": "ulong", "f32": "float", "f64": "double", "bool": "bool",
}  # fmt: skip
_INFIX = {"add": "+", "sub": "-", "mul": "*", "band": "&", "bor": "|", "bxor": "^"} | {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_OF_BOOLS = {
    "and": "&", "or": "|", "xor": "^", "band": "&", "bor": "|", "bxor": "^", "add": "|", "mul": "&", "min": "&",
    "max": "|", "sub": "^",
}  # fmt: skip
_OF_FLOATS = {
    "abs": "fabs", "round": "rint", **{name: name for name in (
        "sqrt", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc", "copysign", "atan2",
        "hypot", "fma", "pow",
    )},
}  # fmt: skip
_SAME = ("real", "conj", "floor", "ceil", "trunc", "round")
_HEAD = "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
_HEAD += "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
_HELPERS = {
    "choose": "T choose_T(bool c, T x, T y) { return c ? x : y; }",
    "least": "T least_T(T x, T y) { return x < y || x != x ? x : y; }",
    "most": "T most_T(T x, T y) { return x > y || x != x ? x : y; }",
    "over": "T over_T(T x, T y) {\n  if (y == 0) return 0;\n  if (y == (T)-1 && (T)-1 < 0) return 0 - x;\n"
    "  T q = x / y;\n  return q - (x % y != 0 && (x < 0) != (y < 0));\n}",
    "rest": "T rest_T(T x, T y) {\n  if (y == 0 || (y == (T)-1 && (T)-1 < 0)) return 0;\n  T r = x % y;\n"
    "  return r != 0 && (r < 0) != (y < 0) ? r + y : r;\n}",
    "up": "T up_T(T x, T n) { return n < 0 || n >= (T)(8 * sizeof(T)) ? 0 : x << n; }",
    "down": "T down_T(T x, T n) { return n < 0 || n >= (T)(8 * sizeof(T)) ? (T)(x < 0 ? -1 : 0) : x >> n; }",
    "sign": "T sign_T(T x) { return x > 0 ? 1 : x < 0 ? -1 : x; }",
    "size": "T size_T(T x) { return x < 0 ? 0 - x : x; }",
}
"""Functions of a type T."""


def emit_opencl_c(kernel: Kernel) -> str:
    """The source of a kernel with a grid. Raises UnsupportedError, by name, for what it does not print."""
    return _Printer(kernel).text()


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        if kernel.grid is None:
            raise CompilerBug(f"code generation: {kernel.name} has no grid")
        self.kernel, self.helpers = kernel, dict[str, str]()
        self.scalars = {p.name: p.scalar for p in kernel.params if isinstance(p, Buffer)}
        self.spaces = dict.fromkeys(self.scalars, "__global")
        self.count = 0

    def text(self) -> str:
        k = self.kernel
        assert k.grid is not None
        memory = [s for s in statements(k.body) if isinstance(s, Local)]
        for s in memory:
            self.scalars[s.buffer], self.spaces[s.buffer] = s.scalar, "__local"
        params = []
        for p in k.params:
            space = f"__global {'' if p.mutable else 'const '}" if isinstance(p, Buffer) else ""
            params.append(f"{space}{self.element(p.scalar)}{'*' if space else ''} {_named(p.name)}")
        lines = [f"__local {self.element(s.scalar)} {_named(s.buffer)}[{s.size}];" for s in memory]
        for name, call in (("group", "get_group_id"), ("item", "get_local_id"), ("groups", "get_num_groups")):
            lines.append(f"const long {_named(name)} = {call}(0);")
        lines += self.block(k.body)
        head = f"__kernel __attribute__((reqd_work_group_size({k.grid.items}, 1, 1)))"
        body = "\n".join(f"  {line}" for line in lines)
        return "\n".join(
            [_HEAD, *self.helpers.values(), f"{head} void {k.name}({', '.join(params)}) {{", body, "}", ""]
        )

    def type(self, t: Type) -> str:
        if t.lanes > 1 or t.scalar not in _C:
            raise UnsupportedError(f"OpenCL C of values of {t}\n  supported: {', '.join(_C)}")
        return _C[t.scalar]

    def element(self, scalar: str) -> str:
        """The type of an element in memory, and of an argument, which no bool is."""
        return "uchar" if scalar == "bool" else self.type(Type(scalar))

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, body: Iterable[Stmt]) -> list[str]:
        return [line for s in body for line in self.statement(s)]

    def inner(self, head: str, body: Iterable[Stmt]) -> list[str]:
        return [f"{head} {{", *(f"  {line}" for line in self.block(body)), "}"]

    def statement(self, s: Stmt) -> list[str]:
        match s:
            case Let(name, value) | Mut(name, value):
                return [f"{self.type(value.type)} {_named(name)} = {self.expr(value)};"]
            case Assign(name, value):
                return [f"{_named(name)} = {self.expr(value)};"]
            case Store(buffer, index, value):
                return [f"{self.place(buffer, index)} = {self.expr(value)};"]
            case For(name, lo, hi, body, step):
                i = _named(name)
                head = f"for (long {i} = {self.expr(lo)}, {i}_end = {self.expr(hi)}; {i} < {i}_end; {i} += {step})"
                return self.inner(head, body)
            case While(cond, body):
                return self.inner(f"while ({self.expr(cond)})", body)
            case If(cond, then, orelse):
                lines = self.inner(f"if ({self.expr(cond)})", then)
                return [*lines, *self.inner("else", orelse)] if orelse else lines
            case Local():
                return []
            case Barrier():
                return ["barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"]
            case Atomic():
                return self.atomic(s)
            case Swap(name, buffer, index, expected, value):
                scalar = self.scalars[buffer]
                call = f"{_prefix(scalar)}_cmpxchg({self.address(buffer, index, _C[scalar])}"
                return [f"{_C[scalar]} {_named(name)} = {call}, {self.expr(expected)}, {self.expr(value)});"]
        raise UnsupportedError(f"OpenCL C of {type(s).__name__}\n  supported: kernels without it, of short rows say")

    def place(self, buffer: str, index: Expr) -> str:
        return f"{_named(buffer)}[{self.expr(index)}]"

    def address(self, buffer: str, index: Expr, word: str) -> str:
        return f"(volatile {self.spaces[buffer]} {word}*)&{self.place(buffer, index)}"

    def atomic(self, s: Atomic) -> list[str]:
        """An atomic function, or a loop of compare and swap on the word that holds the element."""
        scalar, t = self.scalars[s.buffer], s.value.type
        kind = {"add": "add", "min": "min", "max": "max", "band": "and", "bor": "or", "bxor": "xor"}.get(s.op)
        if kind is not None and scalar in ("i32", "u32", "i64", "u64"):
            address = self.address(s.buffer, s.index, _C[scalar])
            return [f"{_prefix(scalar)}_{kind}({address}, {self.expr(s.value)});"]
        size = itemsize(scalar)
        word, name = ("ulong", "atom") if size == 8 else ("uint", "atomic")
        self.count += 1
        n, c, space = self.count, self.element(scalar), self.spaces[s.buffer]
        place = self.place(s.buffer, s.index)
        old, new = Var(f"old of {n}", t), Var(f"new of {n}", t)
        result = self.expr(Op(s.op, (old, new), t))
        if size < 4:
            shift, mask = f"8 * (at{n} & 3)", f"{(1 << 8 * size) - 1}u"
            read = f"({c})((was{n} >> ({shift})) & {mask})"
            made = f"(was{n} & ~({mask} << ({shift}))) | (({mask} & (uint)({result})) << ({shift}))"
            pointer, head = f"(volatile {space} uint*)(at{n} & ~3ul)", f"ulong at{n} = (ulong)&{place};"
        else:
            read, made = f"as_{c}(was{n})", f"as_{word}({result})"
            pointer, head = f"(volatile {space} {word}*)&{place}", ""
        swap = f"{name}_cmpxchg({pointer}"
        return [
            f"{{ {head}",
            f"  {self.type(t)} {_named(new.name)} = {self.expr(s.value)};",
            f"  {word} seen{n} = {swap}, 0, 0), was{n};",
            "  do {",
            f"    was{n} = seen{n};",
            f"    {self.type(t)} {_named(old.name)} = {read};",
            f"    seen{n} = {swap}, was{n}, {made});",
            f"  }} while (seen{n} != was{n});",
            "}",
        ]

    # -- expressions -------------------------------------------------------------------------------------------------

    def expr(self, e: Expr) -> str:
        match e:
            case Const():
                return self.const(e)
            case Var(name, _):
                return _named(name)
            case Load(buffer, index, t):
                self.type(t)
                place = self.place(buffer, index)
                return f"({place} != 0)" if t.scalar == "bool" else place
            case Cast(arg, t):
                return self.cast(self.expr(arg), arg.type, t)
        return self.op(e)

    def const(self, e: Const) -> str:
        scalar, value = e.type.scalar, e.value
        c = self.type(e.type)
        assert not isinstance(value, complex)
        if scalar in ("f32", "f64"):
            text = "NAN" if math.isnan(value) else ("-" if value < 0 else "") + "INFINITY" if math.isinf(value) else ""
            return f"(({c}){text or float(value).hex()})"
        if scalar == "i64" and value == -(2**63):
            return "LONG_MIN"
        return f"(({c}){int(value)}{'ul' if scalar[0] == 'u' else 'l'})"

    def cast(self, x: str, src: Type, dst: Type) -> str:
        c = self.type(dst)
        if dst.scalar == "bool":
            return f"({x} != 0)"
        if src.is_float and dst.is_integer:
            return f"convert_{c}_sat({x})"
        return f"(({c}){x})"

    def op(self, e: Op) -> str:
        args, name = [self.expr(a) for a in e.args], e.op
        t, c = e.args[0].type, self.type(e.type)
        if name == "select":
            return self.helped("choose", e.type, *args)
        if name == "not":
            return f"(!{args[0]})"
        if name in ("and", "or", "xor") or (t.scalar == "bool" and name in _OF_BOOLS):
            return f"((bool)({args[0]} {_OF_BOOLS[name]} {args[1]}))"
        if name in COMPARISONS:
            return f"({args[0]} {_INFIX[name]} {args[1]})"
        if name in _INFIX:
            if t.scalar in ("i32", "i64"):  # which wrap around
                return f"(({c})((u{c}){args[0]} {_INFIX[name]} (u{c}){args[1]}))"
            return f"(({c})({args[0]} {_INFIX[name]} {args[1]}))"
        if name in ("min", "max"):
            return self.helped("least" if name == "min" else "most", t, *args)
        if name == "square":
            return self.op(Op("mul", (e.args[0], e.args[0]), e.type))
        if name == "sign":
            return self.helped("sign", t, *args)
        if name == "neg":
            return f"(({c})(0 - (ulong){args[0]}))" if t.is_integer else f"(-{args[0]})"
        if name == "signbit" and t.is_integer:
            return f"({args[0]} < 0)"
        if name in ("isnan", "isinf", "isfinite", "signbit"):
            return f"((bool){name}({args[0]}))" if t.is_float else "true" if name == "isfinite" else "false"
        return self.of_floats(e, t, args) if t.is_float else self.of_integers(e, t, args)

    def of_floats(self, e: Op, t: Type, args: list[str]) -> str:
        if e.op in _OF_FLOATS:
            return f"{_OF_FLOATS[e.op]}({', '.join(args)})"
        match e.op:
            case "div":
                return f"({args[0]} / {args[1]})"
            case "reciprocal":
                return f"(1 / {args[0]})"
            case "real" | "conj":
                return args[0]
        raise UnsupportedError(f"{e.op} of {t} in OpenCL C\n  supported: {', '.join(_OF_FLOATS)}, arithmetic")

    def of_integers(self, e: Op, t: Type, args: list[str]) -> str:
        helper = {"floordiv": "over", "mod": "rest", "shl": "up", "shr": "down", "abs": "size"}.get(e.op)
        if helper is not None and t.scalar != "bool":
            return self.helped(helper, t, *args)
        match e.op:
            case "fma":
                return f"(({self.type(t)})({args[0]} * {args[1]} + {args[2]}))"
            case "bnot":
                return f"(({self.type(t)})~{args[0]})" if t.scalar != "bool" else f"(!{args[0]})"
            case "popcount":
                return f"popcount({args[0]})"
            case "bit":
                return f"((bool)(({args[0]} >> {args[1]}) & 1))"
            case name if name in _SAME:
                return args[0]
        raise UnsupportedError(f"{e.op} of {t} in OpenCL C\n  supported: arithmetic of integers")

    def helped(self, name: str, t: Type, *args: str) -> str:
        """A call of a helper, of a type."""
        c = self.type(t)
        self.helpers.setdefault(f"{name} {c}", re.sub(r"\bT\b|(?<=_)T\b", c, _HELPERS[name]))
        return f"{name}_{c}({', '.join(args)})"


def _prefix(scalar: str) -> str:
    """What atomic functions of a type are called."""
    return "atom" if itemsize(scalar) == 8 else "atomic"


def _named(name: str) -> str:
    return "v_" + re.sub(r"\W", "_", name)
