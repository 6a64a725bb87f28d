"""A complex quotient, reciprocal, sign or power -> LLVM IR, with NumPy's values where a part is 0, infinite or NaN.

x / y       Smith's: scaled by the larger part of y; x / 0 is each part of x over +0
x ** 0      1, for every x
0 ** y      0 where y has a positive real part, else NaN
x ** n      products for whole n from -99 to 99, C's cpow otherwise
sign(x)     x / |x|; 1, -1, i or -i where one part alone is infinite
"""

from __future__ import annotations

from ..ir.types import Type
from .emit_builder import Builder, Parts, register_type
from .emit_float import float_op

__all__ = ["divide", "power", "reciprocal", "sign"]

_HELPER = "ow.complex_power"
_PAIR = "{ double, double }"


def divide(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
    """x / y; `r` is the type of a part."""
    t, mask = b.type(r), register_type("bool", r.lanes)

    def f(op: str, p: str, q: str) -> str:
        return float_op(b, op, r, p, q)

    flat = b.ins(f"fcmp oge {t} {b.intrinsic('fabs', r, y[0])}, {b.intrinsic('fabs', r, y[1])}")
    big, small = b.select(flat, y[0], y[1], r), b.select(flat, y[1], y[0], r)
    p, q = b.select(flat, x[0], x[1], r), b.select(flat, x[1], x[0], r)
    zero = b.ins(f"and {mask} {flat}, {b.ins(f'fcmp oeq {t} {big}, {b.const(0.0, r)}')}")
    ratio = f("div", small, big)
    size = b.select(zero, b.intrinsic("fabs", r, big), f("add", big, f("mul", small, ratio)), r)
    scale = f("div", b.const(1.0, r), size)
    scaled = f("mul", p, ratio)
    re = f("add", p, f("mul", q, ratio))
    im = f("sub", b.select(flat, q, scaled, r), b.select(flat, scaled, q, r))
    return f("mul", b.select(zero, p, re, r), scale), f("mul", b.select(zero, q, im, r), scale)


def reciprocal(b: Builder, r: Type, x: Parts) -> Parts:
    """1 / x; NaN of both parts for 0."""
    t = b.type(r)

    def f(op: str, p: str, q: str) -> str:
        return float_op(b, op, r, p, q)

    flat = b.ins(f"fcmp ole {t} {b.intrinsic('fabs', r, x[1])}, {b.intrinsic('fabs', r, x[0])}")
    big, small = b.select(flat, x[0], x[1], r), b.select(flat, x[1], x[0], r)
    ratio = f("div", small, big)
    size = f("add", big, f("mul", small, ratio))
    one, part = f("div", b.const(1.0, r), size), f("div", ratio, size)
    im = b.ins(f"fneg {t} {b.select(flat, part, one, r)}")
    return b.select(flat, one, part, r), im


def sign(b: Builder, r: Type, x: Parts) -> Parts:
    """x / |x|, 0 for 0; NaN where |x| is, and where both parts are infinite."""
    t, mask = b.type(r), register_type("bool", r.lanes)
    zero, one, nan = b.const(0.0, r), b.const(1.0, r), b.const(float("nan"), r)
    ends = [float_op(b, "isinf", r, p) for p in x]
    any_infinite, both = b.ins(f"or {mask} {ends[0]}, {ends[1]}"), b.ins(f"and {mask} {ends[0]}, {ends[1]}")
    size = float_op(b, "hypot", r, *x)
    is_zero = b.ins(f"fcmp oeq {t} {size}, {zero}")
    safe = b.select(is_zero, one, size, r)
    parts = []
    for p, end in zip(x, ends, strict=True):
        finite = b.select(is_zero, zero, float_op(b, "div", r, p, safe), r)
        infinite = b.select(end, b.intrinsic("copysign", r, one, p), zero, r)
        parts.append(b.select(both, nan, b.select(any_infinite, infinite, finite, r), r))
    re, im = parts
    size_is_nan = float_op(b, "isnan", r, size)
    return b.select(size_is_nan, nan, re, r), b.select(size_is_nan, nan, im, r)


def power(b: Builder, r: Type, x: Parts, y: Parts) -> Parts:
    """x ** y in double precision, lane by lane."""
    if _HELPER not in b.helpers:
        b.helpers[_HELPER] = _helper(b)
    wide = Type("f64")
    out: list[Parts] = []
    for i in range(r.lanes):
        words = [("double", _widened(b, b.lane(p, r, i), r)) for p in (*x, *y)]
        pair = b.call(_PAIR, _HELPER, *words)
        lanes = [b.ins(f"extractvalue {_PAIR} {pair}, {k}") for k in range(2)]
        out.append(tuple(b.ins(f"fptrunc {b.type(wide)} {p} to float") if r.scalar == "f32" else p for p in lanes))
    return tuple(b.gather_lanes([p[k] for p in out], r) for k in range(2))


def _widened(b: Builder, p: str, r: Type) -> str:
    return b.ins(f"fpext float {p} to double") if r.scalar == "f32" else p


def _helper(outer: Builder) -> str:
    """The text of the function of four doubles that returns the power."""
    b = Builder(outer.target)
    one, zero = b.const(1.0, Type("f64")), b.const(0.0, Type("f64"))
    for test, value in ((("br", "bi"), one), (("ar", "ai"), "%case")):
        flat = [b.ins(f"fcmp oeq double %{p}, {zero}") for p in test]
        where = b.fresh("zero")
        b.branch(b.ins(f"and i1 {flat[0]}, {flat[1]}"), where, f"{where}.no")
        b.start(where)
        if value == "%case":
            up = b.ins(f"fcmp ogt double %br, {zero}")
            value_at_zero = b.select(up, zero, b.const(float("nan"), Type("f64")), Type("f64"))
            _return(b, value_at_zero, value_at_zero)
        else:
            _return(b, value, zero)
        b.start(f"{where}.no")
    n = b.call("i64", "llvm.fptosi.sat.i64.f64", ("double", "%br"))
    is_integer = b.ins(f"fcmp oeq double {b.ins(f'sitofp i64 {n} to double')}, %br")
    count = b.call("i64", "llvm.abs.i64", ("i64", n), ("i1", "false"))
    small = b.ins(f"icmp ult i64 {count}, 100")
    real = b.ins(f"fcmp oeq double %bi, {zero}")
    b.branch(b.ins(f"and i1 {b.ins(f'and i1 {is_integer}, {small}')}, {real}"), "products", "general")
    _products(b, count)
    b.start("general")
    pair = b.call(_PAIR, "cpow", *(("double", f"%{p}") for p in ("ar", "ai", "br", "bi")))
    b.do(f"ret {_PAIR} {pair}")
    outer.declarations |= b.declarations
    head = f"define internal {_PAIR} @{_HELPER}(double %ar, double %ai, double %br, double %bi) nounwind {{"
    return "\n".join([head, "entry:", *b.lines, "}"])


def _products(b: Builder, count: str) -> None:
    """Repeated squaring; the first three powers as x, x * x and x * (x * x), a negative one as a quotient."""
    one, zero = b.const(1.0, Type("f64")), b.const(0.0, Type("f64"))
    b.start("products")
    square = _times(b, ("%ar", "%ai"), ("%ar", "%ai"))
    cube = _times(b, ("%ar", "%ai"), square)
    up = b.ins(f"fcmp ogt double %br, {zero}")
    at_most_three = b.ins(f"icmp ult i64 {count}, 4")
    b.branch(b.ins(f"and i1 {up}, {at_most_three}"), "few", "many")
    b.start("few")
    is_one, is_two = b.ins(f"icmp eq i64 {count}, 1"), b.ins(f"icmp eq i64 {count}, 2")
    t = Type("f64")
    _return(
        b,
        *(
            b.select(is_one, a, b.select(is_two, p, q, t), t)
            for a, p, q in zip(("%ar", "%ai"), square, cube, strict=True)
        ),
    )
    b.start("many")
    b.jump("bit")
    b.start("bit")
    b.do(f"%left = phi i64 [ {count}, %many ], [ %rest, %again ]")
    for k, (start, base) in enumerate(((one, "%ar"), (zero, "%ai"))):
        b.do(f"%r{k} = phi double [ {start}, %many ], [ %s{k}, %again ]")
        b.do(f"%p{k} = phi double [ {base}, %many ], [ %q{k}, %again ]")
    odd = b.ins("trunc i64 %left to i1")
    product = _times(b, ("%r0", "%r1"), ("%p0", "%p1"))
    for k in range(2):
        b.do(f"%s{k} = select i1 {odd}, double {product[k]}, double %r{k}")
    b.do("%rest = lshr i64 %left, 1")
    b.branch(b.ins("icmp eq i64 %rest, 0"), "all", "again")
    b.start("again")
    squared = _times(b, ("%p0", "%p1"), ("%p0", "%p1"))
    for k in range(2):
        b.do(f"%q{k} = fadd double {squared[k]}, -0.0")
    b.jump("bit")
    b.start("all")
    below = divide(b, t, (one, zero), ("%s0", "%s1"))
    _return(b, *(b.select(up, f"%s{k}", below[k], t) for k in range(2)))


def _times(b: Builder, x: Parts, y: Parts) -> Parts:
    ac, bd = b.ins(f"fmul double {x[0]}, {y[0]}"), b.ins(f"fmul double {x[1]}, {y[1]}")
    ad, bc = b.ins(f"fmul double {x[0]}, {y[1]}"), b.ins(f"fmul double {x[1]}, {y[0]}")
    return b.ins(f"fsub double {ac}, {bd}"), b.ins(f"fadd double {ad}, {bc}")


def _return(b: Builder, re: str, im: str) -> None:
    pair = b.ins(f"insertvalue {_PAIR} poison, double {re}, 0")
    b.do(f"ret {_PAIR} {b.ins(f'insertvalue {_PAIR} {pair}, double {im}, 1')}")
