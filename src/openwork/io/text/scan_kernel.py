"""Text -> indices and numbers: the scanner as a loop-IR kernel, and its reference in Python (`scan_python`).

Decimal to binary follows Mushtak and Lemire, "Fast number parsing without fallback" (Software: Practice and Experience,
2023): the digits as one 64-bit integer times the 128 leading bits of a power of ten decide every normal double.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...codegen import cache as kernels
from ..shared.records import Array
from .scan_layout import Fault, Layout, Rest, Scanner

__all__ = ["powers_of_ten", "scan_python", "scanner", "source_text"]

_LEAST, _MOST = -342, 308

_HEAD = """
def scan_text(text: u8[const], most: i64[const], powers: u64[const], index: I[mut], words: u64[mut], slow: i64[mut],
              state: i64[mut], end: i64, capacity: i64, room: i64):
    p: i64 = state[0]
    row: i64 = state[1]
    fault: i64 = 0
    at: i64 = 0
    column: i64 = 0
    waiting: i64 = 0
    while p < end and fault == 0 and waiting < room:
        mark = i64(text[p])
        if mark == 32 or mark == 9 or mark == 10 or mark == 13 or mark == 26:
            p += 1
        elif mark == COMMENT:
            ch: i64 = mark
            while ch != 10 and ch != 13:
                p += 1
                ch = i64(text[p])
        elif row >= capacity:
            fault = 6
            at = p
        else:
            c: i64 = 0
"""

_INDICES = """
            k: i64 = 0
            while k < COLUMNS and fault == 0:
                c = i64(text[p])
                while c == 32 or c == 9:
                    p += 1
                    c = i64(text[p])
                at = p
                column = k
                x: i64 = 0
                while c >= 48 and c <= 57 and p - at < 18:
                    x = x * 10 + (c - 48)
                    p += 1
                    c = i64(text[p])
                if INK or p == at:
                    fault = 4 if c == 10 or c == 13 else 1
                elif x < BASE or x > most[k]:
                    fault = 3
                else:
                    index[k * capacity + row] = I(x - BASE)
                k += 1
"""

_VALUES = """
            v: i64 = 0
            while v < VALUES and fault == 0:
                c = i64(text[p])
                while c == 32 or c == 9:
                    p += 1
                    c = i64(text[p])
                at = p
                column = COLUMNS + v
                negative: u64 = 0
                if c == 45:
                    negative = u64(1)
                if c == 45 or c == 43:
                    p += 1
                    c = i64(text[p])
                w: u64 = 0
                first = p
                while c >= 48 and c <= 57:
                    w = w * u64(10) + u64(c - 48)
                    p += 1
                    c = i64(text[p])
                digits: i64 = p - first
"""

_INTEGER = """
                if INK or digits == 0 or digits > 18:
                    if p == at and BLANK:
                        fault = 4
                    else:
                        slow[2 * waiting] = at
                        slow[2 * waiting + 1] = row * VALUES + v
                        waiting += 1
                    while INK:
                        p += 1
                        c = i64(text[p])
                else:
                    words[row * VALUES + v] = u64(0) - w if negative == u64(1) else w
                v += 1
"""

_FLOAT = """
                scale: i64 = 0
                if c == 46:
                    p += 1
                    point = p
                    c = i64(text[p])
                    while c >= 48 and c <= 57:
                        w = w * u64(10) + u64(c - 48)
                        p += 1
                        c = i64(text[p])
                    scale = point - p
                    digits += p - point
                if digits > 19:
                    q: i64 = first
                    z: i64 = i64(text[q])
                    while z == 48 or z == 46:
                        if z == 48:
                            digits -= 1
                        q += 1
                        z = i64(text[q])
                    if digits == 0:
                        digits = 1
                good: bool = digits > 0 and digits <= 19
                if c == 101 or c == 69 or c == 100 or c == 68:
                    p += 1
                    c = i64(text[p])
                    below: i64 = 0
                    if c == 45:
                        below = 1
                    if c == 45 or c == 43:
                        p += 1
                        c = i64(text[p])
                    e: i64 = 0
                    digit = p
                    while c >= 48 and c <= 57 and p - digit < 8:
                        e = e * 10 + (c - 48)
                        p += 1
                        c = i64(text[p])
                    good = good and p > digit
                    scale += 0 - e if below == 1 else e
                good = good and BLANK
                bits: u64 = 0
                if good and w != u64(0):
                    good = scale >= LEAST and scale <= MOST
                    if good:
                        zeros: i64 = 0
                        m: u64 = w
                        if m < u64(4294967296):
                            m = m << u64(32)
                            zeros += 32
                        if m < u64(281474976710656):
                            m = m << u64(16)
                            zeros += 16
                        if m < u64(72057594037927936):
                            m = m << u64(8)
                            zeros += 8
                        if m < u64(1152921504606846976):
                            m = m << u64(4)
                            zeros += 4
                        if m < u64(4611686018427387904):
                            m = m << u64(2)
                            zeros += 2
                        if m < u64(9223372036854775808):
                            m = m << u64(1)
                            zeros += 1
                        t = powers[2 * (scale - LEAST)]
                        m0 = m & u64(4294967295)
                        m1 = m >> u64(32)
                        t0 = t & u64(4294967295)
                        t1 = t >> u64(32)
                        cross = m1 * t0 + (m0 * t0 >> u64(32))
                        other = m0 * t1 + (cross & u64(4294967295))
                        high: u64 = m1 * t1 + (cross >> u64(32)) + (other >> u64(32))
                        low: u64 = m * t
                        if high & u64(511) == u64(511):
                            s = powers[2 * (scale - LEAST) + 1]
                            s0 = s & u64(4294967295)
                            s1 = s >> u64(32)
                            cross2 = m1 * s0 + (m0 * s0 >> u64(32))
                            other2 = m0 * s1 + (cross2 & u64(4294967295))
                            high2 = m1 * s1 + (cross2 >> u64(32)) + (other2 >> u64(32))
                            low += high2
                            if high2 > low:
                                high += u64(1)
                        top = high >> u64(63)
                        mantissa: u64 = high >> (top + u64(9))
                        power: i64 = (217706 * scale >> 16) + 1086 - zeros + i64(top)
                        if low <= u64(1) and scale >= -4 and scale <= 23 and mantissa & u64(3) == u64(1):
                            if mantissa << (top + u64(9)) == high:
                                mantissa = mantissa - u64(1)
                        mantissa = (mantissa + (mantissa & u64(1))) >> u64(1)
                        if mantissa >> u64(53) > u64(0):
                            mantissa = mantissa >> u64(1)
                            power += 1
                        good = good and power >= 1 and power <= 2046
                        bits = (u64(power) << u64(52)) | (mantissa & u64(4503599627370495))
                if good:
                    words[row * VALUES + v] = bits | (negative << u64(63))
                else:
                    if p == at and BLANK:
                        fault = 4
                    else:
                        slow[2 * waiting] = at
                        slow[2 * waiting + 1] = row * VALUES + v
                        waiting += 1
                    while INK:
                        p += 1
                        c = i64(text[p])
                v += 1
"""

_TAIL = """
            if fault == 0:
                c = i64(text[p])
                while c == 32 or c == 9:
                    p += 1
                    c = i64(text[p])
                if INK and c != COMMENT and REST == 0:
                    fault = 5
                    at = p
                else:
                    row += 1
                while REST == 1 and c != 10 and c != 13:
                    p += 1
                    c = i64(text[p])
    state[0] = p
    state[1] = row
    state[2] = fault
    state[3] = at
    state[4] = column
    state[5] = waiting
"""


_BLANK = "(c == 32 or c == 9 or c == 10 or c == 13)"
_INK = "(c > 32 or c < 9 or c > 10 and c < 32 and c != 13)"
"""What ends a number and what is a part of one: other control characters than tabs and line ends are no blanks."""


def source_text(layout: Layout) -> str:
    """The kernel's text for `layout`."""
    indices = _INDICES if layout.columns else ""
    number = _VALUES + (_FLOAT if layout.scalar == "f64" else _INTEGER) if layout.values else ""
    return (_HEAD + indices + number + _TAIL).replace("BLANK", _BLANK).replace("INK", _INK)


@cache
def powers_of_ten() -> Array:
    """For each exponent the 128 leading bits of 10**e, rounded down (up where e < 0), as two words: high, low."""
    words: list[int] = []
    for e in range(_LEAST, _MOST + 1):
        five = 5 ** abs(e)
        bits = five.bit_length()
        if e >= 0:
            leading = five << (128 - bits) if bits <= 128 else five >> (bits - 128)
        elif e >= -27:
            leading = (1 << (bits + 127)) // five + 1
        else:
            leading = (1 << (2 * bits + 128)) // five + 1
            leading >>= leading.bit_length() - 128
        words += [leading >> 64, leading & (2**64 - 1)]
    return np.array(words, np.uint64)


@cache
def scanner(layout: Layout, dtype: np.dtype[Any]) -> Scanner:
    """The compiled scanner for `layout` with indices of `dtype`."""

    names: dict[str, Any] = {
        "I": "i32" if dtype.itemsize == 4 else "i64",
        "COLUMNS": str(layout.columns),
        "VALUES": str(layout.values),
        "BASE": str(layout.base),
        "COMMENT": str(ord(layout.comment) if layout.comment else 256),
        "REST": str(int(layout.rest)),
        "LEAST": str(_LEAST),
        "MOST": str(_MOST),
    }
    compiled = kernels.of_text(source_text(layout), **names)

    def run(
        text: Array, end: int, capacity: int, most: Array, index: Array, words: Array, slow: Array, state: Array
    ) -> None:
        room = slow.size // 2 - layout.values
        args = (text, most, powers_of_ten(), index, words, slow, state, end, capacity, room)
        compiled.run_sized(end - int(state[0]), compiled.pack(args))

    return run


def scan_python(
    layout: Layout,
    text: Array,
    end: int,
    capacity: int,
    most: Array,
    index: Array,
    words: Array,
    slow: Array,
    state: Array,
) -> None:
    """The reference scanner in Python, one field at a time; every number is left to the caller. See `scan.Scanner`."""
    raw = text.tobytes()
    p, row = int(state[0]), int(state[1])
    fault, at, column, waiting = Fault.NONE, 0, 0, 0
    blank, blanks, stop = b" \t", b" \t\r\n", b"\r\n"
    while p < end and not fault and waiting < slow.size // 2 - layout.values:
        if raw[p] in blanks or raw[p] == 26:  # the end of a file of DOS
            p += 1
            continue
        if layout.comment and raw[p] == ord(layout.comment):
            while raw[p] not in stop:
                p += 1
            continue
        if row >= capacity:
            fault, at = Fault.MANY, p
            break
        for column in range(layout.columns + layout.values):
            while raw[p] in blank:
                p += 1
            at = p
            while raw[p] not in blanks:
                p += 1
            token = raw[at:p]
            if not token:
                fault = Fault.MISSING
            elif column >= layout.columns:
                slow[2 * waiting : 2 * waiting + 2] = at, row * layout.values + column - layout.columns
                waiting += 1
            elif not token.isdigit() or len(token) > 18:
                fault = Fault.INTEGER
            elif not layout.base <= int(token) <= most[column]:
                fault = Fault.RANGE
            else:
                index[column * capacity + row] = int(token) - layout.base
            if fault:
                break
        else:
            while raw[p] in blank:
                p += 1
            comment = ord(layout.comment) if layout.comment else 256
            if raw[p] not in blanks and raw[p] != comment and layout.rest is Rest.REFUSE:
                fault, at = Fault.EXTRA, p
            else:
                row += 1
            while layout.rest is Rest.IGNORE and raw[p] not in stop:
                p += 1
    state[:6] = p, row, fault, at, column, waiting
