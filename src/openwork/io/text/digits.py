"""Indices and values -> lines of text, by a compiled kernel.

Floats are the shortest decimals that read back exactly, by Schubfach (Raffaello Giulietti, "The Schubfach way to render
doubles", 2020): scale the rounding interval by a 128-bit power of ten, and pick the shortest decimal inside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ...codegen import cache as kernels
from ..shared.records import Array
from .scan import scan
from .scan_layout import Layout
from .source import Text

__all__ = ["table_lines", "table_lines_python"]

_MIN_EXPONENT, _MAX_EXPONENT = -292, 324
_MAX_FIELD = 26
"""The most characters of one field: sign, 17 digits, point, exponent, separator."""


def table_lines(indices: tuple[Array, ...], values: Array) -> bytes:
    """`index + 1` of each column and the value, blank-separated, one line per element; a complex value is two numbers.

    Guarantees: every float is the shortest text that reads back as it.
    """
    parts = 2 if values.dtype.kind == "c" else 1
    numbers = np.ascontiguousarray(values)
    numbers = numbers.view(numbers.real.dtype) if parts == 2 else numbers
    if numbers.dtype.kind in "iu":
        numbers = numbers.astype(np.uint64 if numbers.dtype == np.uint64 else np.int64, copy=False)
    columns = tuple(np.ascontiguousarray(c) for c in indices)
    run = _writer(tuple(c.dtype.name for c in columns), parts, numbers.dtype.name)
    out = np.empty(max(values.size, 1) * (len(columns) + parts) * _MAX_FIELD, np.uint8)
    text = out[: run(columns, numbers, out, values.size)].tobytes()
    if numbers.dtype == np.float32 and not _reads_back(text, len(columns), parts, numbers):
        return table_lines_python(indices, values.astype(np.complex128 if parts == 2 else np.float64))
    return text


def _reads_back(text: bytes, columns: int, parts: int, values: Array) -> bool:
    """Whether float32 values survive being read as float64 and rounded: the shortest text may, rarely, be a tie."""
    single = scan(Text.of(text), 0, Layout(columns, parts)).values.astype(np.float32)
    return bool(np.array_equal(single, values, equal_nan=True))


def table_lines_python(indices: tuple[Array, ...], values: Array) -> bytes:
    """`table_lines` through Python's own formatting: the reference, up to the layout of a number."""
    parts = [values.real, values.imag] if values.dtype.kind == "c" else [values]
    columns: list[list[object]] = [(c.astype(np.int64) + 1).tolist() for c in indices]
    columns += [[str(v) for v in p] if p.dtype == np.float32 else [repr(v) for v in p.tolist()] for p in parts]
    flat: list[object] = [None] * (len(columns) * values.size)
    for k, column in enumerate(columns):
        flat[k :: len(columns)] = column
    return (("%s " * (len(columns) - 1) + "%s\n") * values.size % tuple(flat)).encode("ascii")


@cache
def _powers() -> Array:
    """For each exponent the 128 leading bits of 10**e, rounded up, as two words: high, low."""
    words: list[int] = []
    for e in range(_MIN_EXPONENT, _MAX_EXPONENT + 1):
        power = 10 ** abs(e)
        bits = power.bit_length()
        if e >= 0:
            g = power << (128 - bits) if bits <= 128 else -(-power >> (bits - 128))
        else:
            g = (1 << (bits + 127)) // power + 1
        words += [g >> 64, g & (2**64 - 1)]
    return np.array(words, np.uint64)


@cache
def _writer(columns: tuple[str, ...], parts: int, dtype: str) -> Callable[[tuple[Array, ...], Array, Array, int], int]:
    """The compiled writer: fills the buffer, returns the number of bytes."""

    compiled = kernels.of_text(_source(columns, parts, dtype))

    def run(indices: tuple[Array, ...], values: Array, out: Array, rows: int) -> int:
        state = np.zeros(1, np.int64)
        words = values.view(np.uint32 if values.dtype == np.float32 else np.uint64)
        compiled.run_sized(len(out), compiled.pack((*indices, words, _powers(), out, state, rows)))
        return int(state[0])

    return run


def _source(columns: tuple[str, ...], parts: int, dtype: str) -> str:
    short = {"int32": "i32", "int64": "i64"}
    params = [f"index{k}: {short[c]}[const]" for k, c in enumerate(columns)]
    params += [f"words: {'u32' if dtype == 'float32' else 'u64'}[const]", "powers: u64[const]"]
    params += ["out: u8[mut]", "state: i64[mut]", "rows: i64"]
    lines = [f"def write_table({', '.join(params)}):", "    p: i64 = 0", "    for row in range(rows):"]
    for k in range(len(columns)):
        lines += _indent(f"m{k}: u64 = u64(i64(index{k}[row]) + 1)\n" + _digits(f"m{k}", f"c{k}") + _put(32), 8)
    body = _FLOAT if dtype.startswith("float") else _INTEGER
    names = _FLOAT32 if dtype == "float32" else _FLOAT64
    if dtype == "uint64":
        body = body.replace("word >> u64(63)", "u64(0)")
    lines += _indent(f"for part in range({parts}):", 8)
    lines += _indent(f"word = u64(words[row * {parts} + part])\n", 12)
    for name, text in names.items():
        body = body.replace(name, text)
    lines += _indent(body, 12)
    lines += _indent(f"out[p] = u8(10) if part == {parts - 1} else u8(32)\np += 1\n", 12)
    return "\n".join([*lines, "    state[0] = p"]) + "\n"


def _indent(text: str, by: int) -> list[str]:
    return [" " * by + line for line in text.splitlines()]


def _put(code: int) -> str:
    return f"out[p] = u8({code})\np += 1\n"


def _digits(value: str, tag: str) -> str:
    """Kernel text that writes the digits of the u64 variable `value`, which is consumed."""
    return f"""\
rest_{tag}: u64 = {value}
count_{tag}: i64 = 1
while rest_{tag} >= u64(10):
    rest_{tag} = rest_{tag} // u64(10)
    count_{tag} += 1
for step_{tag} in range(count_{tag}):
    out[p + count_{tag} - 1 - step_{tag}] = u8({value} % u64(10) + u64(48))
    {value} = {value} // u64(10)
p += count_{tag}
"""


def _product(a: str, b: str, high: str, low: str) -> str:
    """Kernel text of the 128-bit product of two u64 expressions."""
    t = high
    return f"""\
{t}_a0 = {a} & u64(4294967295)
{t}_a1 = {a} >> u64(32)
{t}_b0 = {b} & u64(4294967295)
{t}_b1 = {b} >> u64(32)
{t}_x = {t}_a1 * {t}_b0 + ({t}_a0 * {t}_b0 >> u64(32))
{t}_y = {t}_a0 * {t}_b1 + ({t}_x & u64(4294967295))
{high} = {t}_a1 * {t}_b1 + ({t}_x >> u64(32)) + ({t}_y >> u64(32))
{low} = {a} * {b}
"""


def _round_to_odd(name: str, value: str) -> str:
    """The product with the 128-bit power, its low half folded into a sticky bit."""
    return (
        f"{name}_c = ({value}) << shift\n"
        + _product("g0", f"{name}_c", f"{name}_xh", f"{name}_xl")
        + _product("g1", f"{name}_c", f"{name}_yh", f"{name}_yl")
        + f"{name}_low = {name}_yl + {name}_xh\n"
        + f"{name}_up = u64(1) if {name}_low < {name}_yl else u64(0)\n"
        + f"{name}_odd = u64(1) if {name}_low > u64(1) else u64(0)\n"
        + f"{name} = ({name}_yh + {name}_up) | {name}_odd\n"
    )


_INTEGER = (
    "minus = word >> u64(63)\nif minus == u64(1):\n    out[p] = u8(45)\n    p += 1\n"
    "size: u64 = u64(0) - word if minus == u64(1) else word\n" + _digits("size", "v")
)

_SPECIAL = """\
if word >> SIGN == u64(1):
    out[p] = u8(45)
    p += 1
exponent = (word >> FRACTION) & EXPONENT_MASK
fraction = word & FRACTION_MASK
if exponent == EXPONENT_MASK:
    out[p] = u8(105) if fraction == u64(0) else u8(110)
    out[p + 1] = u8(110) if fraction == u64(0) else u8(97)
    out[p + 2] = u8(102) if fraction == u64(0) else u8(110)
    p += 3
elif exponent == u64(0) and fraction == u64(0):
    out[p] = u8(48)
    p += 1
else:
    c = fraction | HIDDEN if exponent != u64(0) else fraction
    q = (i64(exponent) if exponent != u64(0) else 1) - BIAS
    s: u64 = 0
    k: i64 = 0
    if q <= 0 and 0 - q <= i64(FRACTION) and c & ((u64(1) << u64(0 - q)) - u64(1)) == u64(0):
        s = c >> u64(0 - q)
    else:
"""

_SHORTEST = (
    """\
closer = fraction == u64(0) and exponent > u64(1)
k = (q * 1262611 - (524031 if closer else 0)) >> 22
shift = u64(q + ((0 - k) * 1741647 >> 19) + 1)
g1 = powers[2 * (0 - k - LEAST)]
g0 = powers[2 * (0 - k - LEAST) + 1]
"""
    + _round_to_odd("vl", "u64(4) * c - (u64(1) if closer else u64(2))")
    + _round_to_odd("vb", "u64(4) * c")
    + _round_to_odd("vr", "u64(4) * c + u64(2)")
    + """\
lower = vl + (c & u64(1))
upper = vr - (c & u64(1))
near = vb >> u64(2)
tenth = near // u64(10)
up10 = lower <= u64(40) * tenth
wp10 = u64(40) * tenth + u64(40) <= upper
if near >= u64(10) and up10 != wp10:
    s = tenth + (u64(1) if wp10 else u64(0))
    k += 1
else:
    up = lower <= u64(4) * near
    wp = u64(4) * near + u64(4) <= upper
    middle = u64(4) * near + u64(2)
    half = vb > middle or (vb == middle and near & u64(1) == u64(1))
    s = near + (u64(1) if (wp if up != wp else half) else u64(0))
"""
)

_LAYOUT = """\
    while s % u64(10) == u64(0) and k < 0:
        s = s // u64(10)
        k += 1
    if s > u64(100000):
        while s % u64(10) == u64(0):
            s = s // u64(10)
            k += 1
    n: i64 = 1
    left: u64 = s
    while left >= u64(10):
        left = left // u64(10)
        n += 1
    e = n + k
    plain = e > -5 and e <= 17
    zeros: i64 = 0 - e if plain and e <= 0 else 0
    point: i64 = (0 if e <= 0 else e) if plain else 1
    if plain and e <= 0:
        out[p] = u8(48)
        out[p + 1] = u8(46)
        p += 2
        for z in range(zeros):
            out[p + z] = u8(48)
        p += zeros
        point = n
    if point < n:
        out[p + point] = u8(46)
    for d in range(n):
        i = n - 1 - d
        out[p + i + (1 if i >= point else 0)] = u8(s % u64(10) + u64(48))
        s = s // u64(10)
    p += n + (1 if point < n else 0)
    if plain:
        for z in range(k if k > 0 else 0):
            out[p + z] = u8(48)
        p += k if k > 0 else 0
    else:
        out[p] = u8(101)
        p += 1
        if e < 1:
            out[p] = u8(45)
            p += 1
        power: u64 = u64(1 - e if e < 1 else e - 1)
""" + "\n".join(_indent(_digits("power", "e"), 8))

_FLOAT = _SPECIAL + "\n".join(_indent(_SHORTEST, 8)) + "\n" + _LAYOUT + "\n"

_FLOAT64 = {
    "SIGN": "u64(63)",
    "FRACTION_MASK": f"u64({2**52 - 1})",
    "EXPONENT_MASK": "u64(2047)",
    "FRACTION": "u64(52)",
    "HIDDEN": f"u64({2**52})",
    "BIAS": "1075",
    "LEAST": str(_MIN_EXPONENT),
}
_FLOAT32 = {
    "SIGN": "u64(31)",
    "FRACTION_MASK": f"u64({2**23 - 1})",
    "EXPONENT_MASK": "u64(255)",
    "FRACTION": "u64(23)",
    "HIDDEN": f"u64({2**23})",
    "BIAS": "150",
    "LEAST": str(_MIN_EXPONENT),
}
