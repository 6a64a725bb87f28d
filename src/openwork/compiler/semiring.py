"""Semirings and monoids: the addition and the multiplication of a product of sparse operands, as text of loop IR.

A semiring is a value; its operations are text of the loop IR over `x` and `y`, so that one that nobody has named yet
compiles like the others::

    Semiring("plus_max", PLUS, "max(x, y)")

Elements that are not specified take no part: they stand for the sum of nothing, the identity of "add".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..errors import CompilerBug, DTypeError, UnsupportedError
from ..ir.loop import Const
from ..ir.text import parse_expr
from ..ir.types import COMPLEX, FLOATS, Type
from ..ir.values import int_range
from ..storage.buffers import scalar_name

__all__ = ["MONOIDS", "SEMIRINGS", "Monoid", "Semiring"]


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative operation with an identity.

    Parameters
    ----------
    name : what it is called
    operation : text over x (the sum so far) and y, "min(x, y)"
    identity : a literal, or "lowest" or "highest" for the extreme values of the type

    Examples
    --------
    >>> least = ow.Monoid("least", "min(x, y)", "highest")
    >>> A = ow.asarray([[0, 2.0], [1.0, 5.0]], format="csr")
    >>> shortest = ow.Semiring("shortest", least, "x + y")
    >>> ow.spgemm(A, A, semiring=shortest).to_numpy()
    array([[3., 7.],
           [6., 3.]])
    """

    name: str
    operation: str
    identity: str

    def identity_of(self, scalar: str) -> bool | int | float | complex:
        """The identity as a value of a scalar type. Raises DTypeError where the type has none."""
        return _identity(self, scalar)

    def _identity(self, scalar: str) -> bool | int | float | complex:
        if self.identity in ("lowest", "highest"):
            return _extreme_value(self.identity == "highest", scalar)
        value = parse_expr(self.identity)
        if not isinstance(value, Const):
            raise CompilerBug(f"monoid {self.name}: the identity {self.identity!r} is no literal")
        if scalar in COMPLEX:
            return complex(value.value)
        if scalar in FLOATS:
            return float(value.value)  # type: ignore[arg-type]
        return bool(value.value) if scalar == "bool" else int(value.value)  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _identity(monoid: Monoid, scalar: str) -> bool | int | float | complex:
    return monoid._identity(scalar)


def _extreme_value(high: bool, scalar: str) -> bool | int | float:
    if scalar in COMPLEX:
        raise DTypeError(f"a semiring of min or max over complex numbers ({scalar})\n  help: take the real part first")
    if scalar == "bool":
        return high
    if scalar in FLOATS:
        return float("inf") if high else float("-inf")
    lo, hi = int_range(scalar)
    return hi if high else lo


@dataclass(frozen=True, slots=True)
class Semiring:
    """The addition and the multiplication of a product of sparse operands.

    Parameters
    ----------
    name : what it is called
    add : Monoid of the sum
    multiply : text over x (of the left operand) and y (of the right one), "x + y"
    dtype : the result's dtype, "promote" for that of the operands

    Text is that of the loop IR: operators of Python, min, max, abs, sqrt, `a if c else b`. Operands are cast to the
    result's type before they are multiplied.

    Examples
    --------
    >>> counts = ow.Semiring("counts", ow.monoid("plus"), "1", dtype="int64")
    >>> A = ow.asarray([[0, 2.0], [1.0, 5.0]], format="csr")
    >>> ow.spgemm(A, A, semiring=counts).to_numpy()
    array([[1, 1],
           [1, 2]])
    """

    name: str
    add: Monoid
    multiply: str
    dtype: str = "promote"

    def __post_init__(self) -> None:
        if self.dtype != "promote":
            object.__setattr__(self, "dtype", scalar_name(self.dtype))
        for what, text in (("add", self.add.operation), ("multiply", self.multiply)):
            problems = [problem for scalar in ("f64", "i64", "bool") if (problem := _problem(text, scalar))]
            if len(problems) == 3:
                raise UnsupportedError(
                    f"semiring {self.name!r}: {what}={text!r} does not compile\n  {problems[0]}"
                    "\n  help: write an expression over x and y, such as min(x, y)"
                )

    @property
    def text(self) -> str:
        """Everything that a kernel depends on."""
        return f"{self.add.operation} | {self.add.identity} | {self.multiply} | {self.dtype}"

    @property
    def distributes(self) -> bool:
        """Whether products distribute over sums on both sides, as far as is known."""
        return (self.add.operation, self.multiply) in _DISTRIBUTES

    def plus(self, x: str, y: str) -> str:
        """The text of the sum of two texts."""
        return _substitute(self.add.operation, x, y)

    def times(self, x: str, y: str) -> str:
        """The text of the product of two texts."""
        return _substitute(self.multiply, x, y)

    def result(self, promoted: str) -> str:
        """The result's scalar type for operands that promote to `promoted`."""
        return promoted if self.dtype == "promote" else self.dtype

    def swapped(self) -> Semiring:
        """The semiring of the transposed product: its factors change places."""
        return Semiring(f"{self.name}_swapped", self.add, _substitute(self.multiply, "y", "x"), self.dtype)

    def reducing(self) -> Semiring:
        """The semiring that only adds: its product is the left operand."""
        return Semiring(f"{self.add.name}_first", self.add, "x")


def _problem(text: str, scalar: str) -> str | None:
    """Why the text is no operation on values of a scalar type."""
    try:
        parse_expr(text, {"x": Type(scalar), "y": Type(scalar)})
    except CompilerBug as error:
        return str(error).splitlines()[0]
    return None


def _substitute(text: str, x: str, y: str) -> str:
    return "(" + re.sub(r"\b[xy]\b", lambda m: f"({x})" if m[0] == "x" else f"({y})", text) + ")"


PLUS = Monoid("plus", "x + y", "0")
TIMES = Monoid("times", "x * y", "1")
MIN = Monoid("min", "min(x, y)", "highest")
MAX = Monoid("max", "max(x, y)", "lowest")
ANY = Monoid("any", "y", "0")
LOR = Monoid("lor", "x | y", "False")
LAND = Monoid("land", "x & y", "True")
LXOR = Monoid("lxor", "x ^ y", "False")
MONOIDS = {m.name: m for m in (PLUS, TIMES, MIN, MAX, ANY, LOR, LAND, LXOR)}
"""Monoids by name. `any` keeps whichever came last; which one that is, is not promised."""

_MULTIPLY = {
    "plus": "x + y", "times": "x * y", "min": "min(x, y)", "max": "max(x, y)",
    "first": "x", "second": "y", "pair": "1",
}  # fmt: skip
_NAMES = (
    "plus_times", "plus_plus", "plus_min", "plus_max", "plus_first", "plus_second",
    "min_plus", "min_times", "min_max", "min_min", "min_first", "min_second",
    "max_plus", "max_times", "max_min", "max_max", "max_first", "max_second",
    "any_first", "any_second", "any_times", "times_times", "times_plus",
)  # fmt: skip


_DISTRIBUTES = {
    ("x + y", "x * y"), ("min(x, y)", "x + y"), ("max(x, y)", "x + y"), ("min(x, y)", "max(x, y)"),
    ("max(x, y)", "min(x, y)"), ("x | y", "x & y"), ("x & y", "x | y"), ("x ^ y", "x & y"),
}  # fmt: skip


def _table() -> dict[str, Semiring]:
    semirings = {n: Semiring(n, MONOIDS[n.split("_")[0]], _MULTIPLY[n.split("_")[1]]) for n in _NAMES}
    semirings["plus_pair"] = Semiring("plus_pair", PLUS, "1", "i64")
    semirings["any_pair"] = Semiring("any_pair", ANY, "True", "bool")
    for add in (LOR, LAND, LXOR):
        for name, text in (("land", "x & y"), ("lor", "x | y"), ("pair", "True")):
            key = f"{add.name}_{name}"
            semirings[key] = Semiring(key, add, text, "bool")
    return semirings


SEMIRINGS = _table()
"""Semirings by name."""
