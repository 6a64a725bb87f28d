"""The name of an operation of the loop IR -> its row: operands, NumPy's name, type of the result, traits for passes.

    "sqrt": _of("unary", 1, "sqrt", "same", "floating zero-at-zero")

Traits of operands
    floating        integers are cast to f64 first
    integers-only, no-bool, no-complex       what they may be
    own-type        an operand keeps its own type, whatever the result's
    tensors-only    torch's function takes no Python numbers
Traits of results
    zero-at-zero    0 where the operand is; zero-at-zeros: 0 where all operands are
    polynomial      finite and bounded in the size of finite operands
    silent          no NumPy warning can come of it
Traits of code
    costly          more than a mispredicted branch
    one-instruction of the processor, which sets flags as IEEE 754 has it
    fold            of the lanes of a vector to a scalar
"""

from __future__ import annotations

from ..classes import frozen

__all__ = ["COMMUTATIVE", "INFIX", "OPERATIONS", "Operation", "of_kind", "with_trait"]


@frozen
class Operation:
    """An operation of the loop IR.

    kind : "arithmetic", "bitwise", "comparison", "logical", "unary", "ternary", or "lanes", across a vector
    result : "same" as the operands' common type, "bool", or "real": the type of the parts of a complex number
    """

    kind: str
    arity: int
    numpy: str | None
    result: str
    traits: frozenset[str]


def _of(kind: str, arity: int, numpy: str | None, result: str, traits: str = "") -> Operation:
    return Operation(kind, arity, numpy, result, frozenset(traits.split()))


OPERATIONS: dict[str, Operation] = {
    "add": _of("arithmetic", 2, "add", "same", "zero-at-zeros polynomial one-instruction"),
    "sub": _of("arithmetic", 2, "subtract", "same", "no-bool zero-at-zeros polynomial one-instruction"),
    "mul": _of("arithmetic", 2, "multiply", "same", "polynomial one-instruction"),
    "div": _of("arithmetic", 2, "true_divide", "same", "floating one-instruction"),
    "floordiv": _of("arithmetic", 2, "floor_divide", "same", "no-complex no-bool costly"),
    "mod": _of("arithmetic", 2, "remainder", "same", "no-complex no-bool costly"),
    "pow": _of("arithmetic", 2, "power", "same", "no-bool costly"),
    "min": _of("arithmetic", 2, "minimum", "same", "zero-at-zeros polynomial silent tensors-only"),
    "max": _of("arithmetic", 2, "maximum", "same", "zero-at-zeros polynomial silent tensors-only"),
    "atan2": _of("arithmetic", 2, "arctan2", "same", "floating no-complex costly tensors-only"),
    "hypot": _of("arithmetic", 2, "hypot", "same", "floating no-complex zero-at-zeros costly tensors-only"),
    "copysign": _of("arithmetic", 2, "copysign", "same", "floating no-complex silent tensors-only"),
    "band": _of("bitwise", 2, "bitwise_and", "same", "silent"),
    "bor": _of("bitwise", 2, "bitwise_or", "same", "zero-at-zeros silent"),
    "bxor": _of("bitwise", 2, "bitwise_xor", "same", "zero-at-zeros silent"),
    "shl": _of("bitwise", 2, "left_shift", "same", "no-bool"),
    "shr": _of("bitwise", 2, "right_shift", "same", "no-bool"),
    "bit": _of("bitwise", 2, None, "bool", "no-bool"),
    "eq": _of("comparison", 2, "equal", "bool", "silent"),
    "ne": _of("comparison", 2, "not_equal", "bool", "zero-at-zeros silent"),
    "lt": _of("comparison", 2, "less", "bool", "zero-at-zeros silent"),
    "le": _of("comparison", 2, "less_equal", "bool", "silent"),
    "gt": _of("comparison", 2, "greater", "bool", "zero-at-zeros silent"),
    "ge": _of("comparison", 2, "greater_equal", "bool", "silent"),
    "and": _of("logical", 2, "logical_and", "bool", "silent tensors-only"),
    "or": _of("logical", 2, "logical_or", "bool", "zero-at-zeros silent tensors-only"),
    "xor": _of("logical", 2, "logical_xor", "bool", "zero-at-zeros silent tensors-only"),
    "not": _of("logical", 1, "logical_not", "bool", "silent"),
    "neg": _of("unary", 1, "negative", "same", "no-bool zero-at-zero polynomial silent one-instruction"),
    "abs": _of("unary", 1, "absolute", "real", "no-bool zero-at-zero polynomial silent own-type"),
    "sign": _of("unary", 1, "sign", "same", "no-bool zero-at-zero own-type"),
    "sqrt": _of("unary", 1, "sqrt", "same", "floating zero-at-zero"),
    "exp": _of("unary", 1, "exp", "same", "floating costly"),
    "expm1": _of("unary", 1, "expm1", "same", "floating zero-at-zero costly"),
    "exp2": _of("unary", 1, "exp2", "same", "floating costly"),
    "log": _of("unary", 1, "log", "same", "floating costly"),
    "log1p": _of("unary", 1, "log1p", "same", "floating zero-at-zero costly"),
    "log2": _of("unary", 1, "log2", "same", "floating costly"),
    "log10": _of("unary", 1, "log10", "same", "floating costly"),
    "sin": _of("unary", 1, "sin", "same", "floating zero-at-zero costly"),
    "cos": _of("unary", 1, "cos", "same", "floating costly"),
    "tan": _of("unary", 1, "tan", "same", "floating zero-at-zero costly"),
    "asin": _of("unary", 1, "arcsin", "same", "floating zero-at-zero costly"),
    "acos": _of("unary", 1, "arccos", "same", "floating costly"),
    "atan": _of("unary", 1, "arctan", "same", "floating zero-at-zero costly"),
    "sinh": _of("unary", 1, "sinh", "same", "floating zero-at-zero costly"),
    "cosh": _of("unary", 1, "cosh", "same", "floating costly"),
    "tanh": _of("unary", 1, "tanh", "same", "floating zero-at-zero costly"),
    "asinh": _of("unary", 1, "arcsinh", "same", "floating zero-at-zero costly"),
    "acosh": _of("unary", 1, "arccosh", "same", "floating costly"),
    "atanh": _of("unary", 1, "arctanh", "same", "floating zero-at-zero costly"),
    "erf": _of("unary", 1, "erf", "same", "floating no-complex zero-at-zero costly"),
    "floor": _of("unary", 1, "floor", "same", "no-complex zero-at-zero"),
    "ceil": _of("unary", 1, "ceil", "same", "no-complex zero-at-zero"),
    "trunc": _of("unary", 1, "trunc", "same", "no-complex zero-at-zero"),
    "round": _of("unary", 1, "rint", "same", "zero-at-zero"),
    "isnan": _of("unary", 1, "isnan", "bool", "zero-at-zero silent own-type"),
    "isinf": _of("unary", 1, "isinf", "bool", "zero-at-zero silent own-type"),
    "isfinite": _of("unary", 1, "isfinite", "bool", "silent own-type"),
    "bnot": _of("unary", 1, "invert", "same"),
    "real": _of("unary", 1, "real", "real", "zero-at-zero polynomial own-type"),
    "imag": _of("unary", 1, "imag", "real", "zero-at-zero polynomial own-type"),
    "conj": _of("unary", 1, "conjugate", "same", "zero-at-zero polynomial own-type"),
    "square": _of("unary", 1, "square", "same", "no-bool zero-at-zero polynomial"),
    "reciprocal": _of("unary", 1, "reciprocal", "same", "floating"),
    "signbit": _of("unary", 1, "signbit", "bool", "no-complex silent own-type"),
    "ctz": _of("unary", 1, None, "same", "integers-only"),
    "popcount": _of("unary", 1, None, "same", "integers-only"),
    "hsum": _of("lanes", 1, None, "same", "fold"),
    "hprod": _of("lanes", 1, None, "same", "fold"),
    "hmin": _of("lanes", 1, None, "same", "fold"),
    "hmax": _of("lanes", 1, None, "same", "fold"),
    "ramp": _of("lanes", 1, None, "same", "integers-only"),
    "expand": _of("lanes", 2, None, "same"),
    "bits": _of("lanes", 1, None, "same"),
    "evens": _of("lanes", 2, None, "same"),
    "odds": _of("lanes", 2, None, "same"),
    "permute": _of("lanes", 2, None, "same"),
    "select": _of("ternary", 3, None, "same", "polynomial"),
    "fma": _of("ternary", 3, None, "same", "no-bool"),
}
"""The operations by name; their semantics are in `ir.ops`."""


def of_kind(*kinds: str) -> tuple[str, ...]:
    """The operations of these kinds."""
    return tuple(name for name, o in OPERATIONS.items() if o.kind in kinds)


def with_trait(trait: str) -> frozenset[str]:
    """The operations that have a trait."""
    return frozenset(name for name, o in OPERATIONS.items() if trait in o.traits)


_COMPARE = 5
INFIX = {
    "or": ("or", 2),
    "and": ("and", 3),
    "eq": ("==", _COMPARE),
    "ne": ("!=", _COMPARE),
    "lt": ("<", _COMPARE),
    "le": ("<=", _COMPARE),
    "gt": (">", _COMPARE),
    "ge": (">=", _COMPARE),
    "bor": ("|", 6),
    "bxor": ("^", 7),
    "band": ("&", 8),
    "shl": ("<<", 9),
    "shr": (">>", 9),
    "add": ("+", 10),
    "sub": ("-", 10),
    "mul": ("*", 11),
    "div": ("/", 11),
    "floordiv": ("//", 11),
    "mod": ("%", 11),
    "pow": ("**", 13),
}
"""Operations with an operator between their operands, and how tightly it binds, as Python's."""
COMMUTATIVE = frozenset(("add", "mul", "min", "max", "band", "bor", "bxor", "eq", "ne", "and", "or", "xor"))
"""Operations whose operands may be exchanged."""
