"""Types and widths -> kernels of attention over compressed rows or blocks, as loop IR: forward, and backward.

    for r in range(begin, last):                     # a group of queries of a batch and head
        for p in range(pos[row], pos[row + 1]):      # w[p] = scale * q[r] . k[crd[p]], several p at a time
        w = exp(w - max(w)); total = sum(w)          # in vectors
        out[r] = sum of w[p] * v[crd[p]] / total     # in registers

The scores of a group stand in a workspace; nothing of nse elements is written. Both loops over p go by tiles of
columns, whose keys or values stay in the first cache for all queries of the group. Blocks whose sizes suit
(`suits_tiles`) compute scores and results of several queries at a time, in register tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Any

from ..codegen import cache as kernels
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from ..ir.text import parse

__all__ = ["GROUP", "LANES", "ROWS", "kernel", "suits_tiles"]

LANES = {"f32": 8, "f64": 4}
"""Lanes of the vectors: 32 bytes."""
GROUP = 32
"""Queries whose scores stand in the workspace."""
_TILE = 8
"""Vectors of a result's row that are summed in registers at a time."""
ROWS, _VECTORS = 4, 2
"""Queries, and vectors of keys or of values, of a register tile."""
_TERMS, _BITS, _LOWEST = {"f32": 8, "f64": 14}, {"f32": 7, "f64": 10}, {"f32": -87.0, "f64": -708.0}
_LN2_HIGH = {"f32": 0.693359375, "f64": 0.69314718036912381649}
"""The upper half of log(2)'s digits, of which few enough multiples are exact."""
_LN2_LOW = {"f32": -2.12194440054690582e-4, "f64": 1.9082149292705877e-10}


def suits_tiles(block: Sequence[int], scalar: str) -> bool:
    """Whether blocks of this size run on register tiles."""
    return block[0] % ROWS == 0 and block[1] % LANES[scalar] == 0


@planned("kernels of attention")
def kernel(kind: str, scalar: str, index: str, d: int, e: int, drop: bool, block: tuple[int, int]) -> Executable:
    """The compiled kernel: "forward", "rows" or "columns"; `block` is (1, 1) but for "forward" of blocks in tiles."""
    text = {"forward": _forward, "rows": _rows, "columns": _columns}[kind] if block == (1, 1) else _blocks
    name = f"attention {kind} {scalar} {index} {d} {e} {drop} {block}"

    def build() -> Any:
        return parse(text(_Widths(scalar, d, e, drop, block)), reassociate=True, T=scalar, I=index)

    return kernels.get(name, build)


class _Widths:
    """What the texts depend on."""

    def __init__(self, scalar: str, d: int, e: int, drop: bool, block: tuple[int, int]) -> None:
        self.scalar, self.d, self.e, self.drop, self.block = scalar, d, e, drop, block
        self.lanes = LANES[scalar]
        self.vector = f"Tx{self.lanes}"


def _dot(w: _Widths, to: str, pairs: Sequence[tuple[str, str, str, str]], width: int) -> str:
    """`to`k = x[i:i + width] . y[j:j + width] of each (x, i, y, j), all in one loop over the width."""
    lines, whole = [], width - width % w.lanes
    for k in range(len(pairs)):
        lines.append(f"{to}v{k}: {w.vector} = {w.vector}(0.0)")
    for c in range(0, whole, w.lanes):
        for k, (x, i, y, j) in enumerate(pairs):
            lines.append(
                f"{to}v{k} = fma(vload({x}, {i} + {c}, {w.lanes}), vload({y}, {j} + {c}, {w.lanes}), {to}v{k})"
            )
    for k, (x, i, y, j) in enumerate(pairs):
        rest = "".join(f" + {x}[{i} + {c}] * {y}[{j} + {c}]" for c in range(whole, width))
        lines.append(f"{to}{k} = hsum({to}v{k}){rest}")
    return "\n".join(lines)


def _exp(w: _Widths, to: str, x: str) -> str:
    """`to` = exp(x) of a vector of numbers that are at most 0 or so: 2**-m times a polynomial."""
    lowest = f"{w.vector}({_LOWEST[w.scalar]})"
    lines = [
        f"{to}x = {x} if {x} > {lowest} else {lowest}",
        f"{to}n = round({to}x * {w.vector}({1.4426950408889634}))",
        f"{to}f = fma({to}n, {w.vector}({-_LN2_LOW[w.scalar]}), fma({to}n, {w.vector}({-_LN2_HIGH[w.scalar]}), {to}x))",
        f"{to}m = i32x{w.lanes}(neg({to}n))",
    ]
    factorial, series = 1.0, [1.0]
    for k in range(1, _TERMS[w.scalar]):
        factorial *= k
        series.append(1 / factorial)
    polynomial = f"{w.vector}({series[-1]!r})"
    for c in reversed(series[:-1]):
        polynomial = f"fma({polynomial}, {to}f, {w.vector}({c!r}))"
    lines.append(f"{to}p0 = {polynomial}")
    for k in range(_BITS[w.scalar]):
        half = f"{w.vector}({2.0 ** -(2**k)!r})"
        lines.append(f"{to}p{k + 1} = {to}p{k} * {half} if bit({to}m, i32x{w.lanes}({k})) else {to}p{k}")
    lines.append(f"{to} = {to}p{_BITS[w.scalar]} if {x} > {lowest} else {w.vector}(0.0)")
    return "\n".join(lines)


def _vectors(w: _Widths, body: str) -> str:
    """`body` for every vector u of a row's workspace; what is behind the last element takes part."""
    return f"for u in range(base, base + count, {w.lanes}):\n" + indent(body, "    ")


def _positions(body: Callable[[int], str]) -> str:
    """`body(k)`, lines for the positions p + 0 to p + k - 1, for four positions at a time, then for one."""
    return (
        f"quads = first + (stop - first) // 4 * 4\nfor p in range(first, quads, 4):\n{indent(body(4), '    ')}\n"
        f"for p in range(quads, stop):\n{indent(body(1), '    ')}"
    )


def _sums(w: _Widths, to: str, source: str, weights: str, width: int, factor: str) -> str:
    """`to`[r] += sum of weights[p] * source[crd[p]] over a tile's p, in registers; times `factor` after the last."""
    lines, whole = [], width - width % w.lanes
    last = f"{factor} if limit >= m else T(1.0)"
    for start in range(0, whole, _TILE * w.lanes):
        columns = range(start, min(whole, start + _TILE * w.lanes), w.lanes)
        lines += [
            f"{to}{c}: {w.vector} = vload({to}, r * {width} + {c}, {w.lanes}) if above else {w.vector}(0.0)"
            for c in columns
        ]
        lines.append("for p in range(first, stop):")
        lines.append(f"    j = (place * m + i64(crd[p])) * {width}")
        lines.append(f"    b = {w.vector}({weights}[at + p])")
        lines += [f"    {to}{c} = fma(b, vload({source}, j + {c}, {w.lanes}), {to}{c})" for c in columns]
        lines += [f"vstore({to}, r * {width} + {c}, {to}{c} * {w.vector}({last}))" for c in columns]
    if whole < width:
        lines.append(f"for c in range({whole}, {width}):")
        lines.append(f"    rest: T = {to}[r * {width} + c] if above else T(0.0)")
        lines.append("    for p in range(first, stop):")
        lines.append(f"        rest += {weights}[at + p] * {source}[(place * m + i64(crd[p])) * {width} + c]")
        lines.append(f"    {to}[r * {width} + c] = rest * ({last})")
    return "\n".join(lines)


_GROUP = f"""
for g in range(lo, hi):
    place = g // groups
    begin = place * n + g % groups * {GROUP}
    last = min(begin + {GROUP}, (place + 1) * n)
"""


def _rows_of_group(body: str) -> str:
    """`body` for every row r of a group: its positions are first to end, its workspace begins at base."""
    return (
        "for r in range(begin, last):\n    row = r % rows\n    base = (r - begin) * longest\n"
        "    count = i64(pos[row + 1]) - i64(pos[row])\n" + indent(body, "    ")
    )


def _tiles(body: str) -> str:
    """`body` for every tile of columns, which stays in the cache, and every row of a group: positions first to stop."""
    text = f"""
limit: i64 = 0
while limit < m:
    above = limit > 0
    limit += tile
    for r in range(begin, last):
        row = r % rows
        at = (r - begin) * longest - i64(pos[row])
        first = reached[r - begin] if above else i64(pos[row])
        end = i64(pos[row + 1])
        stop: i64 = end
        if limit < m:
            stop = first
            while stop < end and i64(crd[stop]) < limit:
                stop += 1
            reached[r - begin] = stop
{indent(body, " " * 8)}"""
    return "if m > 0:" + indent(text, "    ")


def _text(w: _Widths, extra: str, results: str, workspaces: str, body: Sequence[str]) -> str:
    """A kernel over groups of rows."""
    spaces = "".join(f"    {name}: T[longest * {GROUP}] = empty\n" for name in workspaces)
    return (
        f"def attend(lo: i64, hi: i64, pos: I[const], crd: I[const], q: T[const], k: T[const], v: T[const],{extra}"
        f" {results}, n: i64, m: i64, rows: i64, stride: i64, longest: i64, groups: i64, tile: i64, scale: T):\n"
        f"{spaces}    reached: i64[{GROUP}] = empty\n    best: T[{GROUP}] = empty\n"
        + indent(_GROUP.lstrip("\n") + indent("\n".join(body), "    "), "    ")
    )


def _forward(w: _Widths) -> str:
    def scores(k: int) -> str:
        lines = [f"j{c} = (place * m + i64(crd[p + {c}])) * {w.d}" for c in range(k)]
        lines.append(_dot(w, "s", [("q", f"r * {w.d}", "k", f"j{c}") for c in range(k)], w.d))
        for c in range(k):
            lines += [f"x{c} = s{c} * scale", f"w[at + p + {c}] = x{c}", f"most = x{c} if x{c} > most else most"]
        return "\n".join(lines)

    most = "most: T = best[r - begin] if above else -inf"
    normalize = [
        f"vstore(w, base + count, {w.vector}(-inf))",
        f"sums: {w.vector} = {w.vector}(0.0)",
        f"most = {w.vector}(best[r - begin])",
        _vectors(w, f"y = vload(w, u, {w.lanes}) - most\n{_exp(w, 'z', 'y')}\nvstore(w, u, z)\nsums += z"),
        "total = hsum(sums)",
        "lse[r] = best[r - begin] + log(total) if count > 0 else T(0.0)",
        "best[r - begin] = T(1.0) / total if count > 0 else T(0.0)",
    ]
    if w.drop:
        kept = "keep[place * stride + i64(pos[row]) + p]"
        normalize.append(f"for p in range(0, count):\n    w[base + p] = w[base + p] * {kept}")
    body = [
        _tiles(f"{most}\n{_positions(scores)}\nbest[r - begin] = most"),
        _rows_of_group("\n".join(normalize)),
        _tiles(_sums(w, "out", "v", "w", w.e, "best[r - begin]")),
    ]
    return _text(w, " keep: T[const]," if w.drop else "", "out: T[mut], lse: T[mut]", "w", body)


_GRADIENT = " lse: T[const], grad: T[const], delta: T[const],"


def _rows(w: _Widths) -> str:
    """dq[r] = scale * sum over p of dS[p] * k[crd[p]], where dS = P * (dP - delta)."""

    def scores(k: int) -> str:
        lines = [f"j{c} = place * m + i64(crd[p + {c}])" for c in range(k)]
        lines.append(_dot(w, "s", [("q", f"r * {w.d}", "k", f"j{c} * {w.d}") for c in range(k)], w.d))
        lines.append(_dot(w, "g", [("grad", f"r * {w.e}", "v", f"j{c} * {w.e}") for c in range(k)], w.e))
        for c in range(k):
            kept = f" * keep[place * stride + p + {c}]" if w.drop else ""
            lines += [f"w[at + p + {c}] = s{c} * scale - lse[r]", f"h[at + p + {c}] = g{c}{kept} - delta[r]"]
        return "\n".join(lines)

    product = f"y = vload(w, u, {w.lanes})\n{_exp(w, 'z', 'y')}\nvstore(w, u, z * vload(h, u, {w.lanes}))"
    clear = f"vstore(w, base + count, {w.vector}(-inf))\nvstore(h, base + count, {w.vector}(0.0))"
    body = [
        _tiles(_positions(scores)),
        _rows_of_group(f"{clear}\n{_vectors(w, product)}"),
        _tiles(_sums(w, "dq", "k", "w", w.d, "scale")),
    ]
    return _text(w, (" keep: T[const]," if w.drop else "") + _GRADIENT, "dq: T[mut]", "wh", body)


def _columns(w: _Widths) -> str:
    """dv[c] = sum of P[p] * grad[row], dk[c] = scale * sum of dS[p] * q[row], over the elements p of column c."""

    def scores(k: int) -> str:
        lines = [f"j{c} = place * m + i64(crd[p + {c}])" for c in range(k)]
        lines.append(_dot(w, "s", [("k", f"r * {w.d}", "q", f"j{c} * {w.d}") for c in range(k)], w.d))
        lines.append(_dot(w, "g", [("v", f"r * {w.e}", "grad", f"j{c} * {w.e}") for c in range(k)], w.e))
        for c in range(k):
            lines.append(f"w[at + p + {c}] = s{c} * scale - lse[j{c}]")
            if w.drop:
                lines.append(f"kept{c} = keep[place * stride + order[p + {c}]]")
                lines += [f"f[at + p + {c}] = kept{c}", f"h[at + p + {c}] = g{c} * kept{c} - delta[j{c}]"]
            else:
                lines.append(f"h[at + p + {c}] = g{c} - delta[j{c}]")
        return "\n".join(lines)

    spaces = "whf" if w.drop else "wh"
    clear = [f"vstore({x}, base + count, {w.vector}({'-inf' if x == 'w' else '0.0'}))" for x in spaces]
    weight = f"z * vload(f, u, {w.lanes})" if w.drop else "z"
    product = (
        f"y = vload(w, u, {w.lanes})\n{_exp(w, 'z', 'y')}\nvstore(w, u, {weight})\n"
        f"vstore(h, u, z * vload(h, u, {w.lanes}))"
    )
    both = _sums(w, "dv", "grad", "w", w.e, "T(1.0)"), _sums(w, "dk", "q", "h", w.d, "scale")
    body = [
        _tiles(_positions(scores)),
        _rows_of_group("\n".join([*clear, _vectors(w, product)])),
        *map(_tiles, both),
    ]
    extra = " keep: T[const], order: i64[const]," if w.drop else ""
    return _text(w, extra + _GRADIENT, "dk: T[mut], dv: T[mut]", spaces, body)


def _blocks(w: _Widths) -> str:
    """Forward of blocks, for `ROWS` queries at a time; kt has the keys of each block by columns (d, width)."""
    height, width = w.block
    body = [f"first = i64(pos[row])\nend = i64(pos[row + 1])\ncount = (end - first) * {width}"]
    body += [f"best{i}: {w.vector} = {w.vector}(-inf)" for i in range(ROWS)]
    body.append("for p in range(first, end):\n" + indent(_block_scores(w, width), "    "))
    body += [_block_weights(w, i) for i in range(ROWS)]
    body += [_block_sums(w, width, start) for start in range(0, w.e - w.e % w.lanes, _VECTORS * w.lanes)]
    body += [_block_rest(w, width, c) for c in range(w.e - w.e % w.lanes, w.e)]
    return (
        "def attend(lo: i64, hi: i64, pos: I[const], crd: I[const], q: T[const], kt: T[const], v: T[const],"
        " out: T[mut], lse: T[mut], n: i64, m: i64, rows: i64, stride: i64, longest: i64, groups: i64, tile: i64,"
        f" scale: T):\n    w: T[longest * {ROWS}] = empty\n    for g in range(lo, hi):\n"
        f"        place = g * {ROWS} // n\n        r = g * {ROWS}\n        row = r // {height} % rows\n"
    ) + indent("\n".join(body), " " * 8)


def _register_tile(w: _Widths, start: int, width: int) -> tuple[range, list[tuple[int, int]]]:
    """The first columns of a register tile's vectors, and all its (query, column)."""
    columns = range(start, min(width - width % w.lanes, start + _VECTORS * w.lanes), w.lanes)
    return columns, [(i, c) for i in range(ROWS) for c in columns]


def _block_scores(w: _Widths, width: int) -> str:
    lines = [
        "j = i64(crd[p])",
        f"t = (p - first) * {width}",
        f"block = (place * (m // {width}) + j) * {w.d * width}",
    ]
    for start in range(0, width, _VECTORS * w.lanes):
        columns, tile = _register_tile(w, start, width)
        lines += [f"a{i}_{c}: {w.vector} = {w.vector}(0.0)" for i, c in tile]
        lines.append(f"for x in range(0, {w.d}):")
        lines += [f"    b{c} = vload(kt, block + x * {width} + {c}, {w.lanes})" for c in columns]
        lines += [f"    q{i} = {w.vector}(q[(r + {i}) * {w.d} + x])" for i in range(ROWS)]
        lines += [f"    a{i}_{c} = fma(q{i}, b{c}, a{i}_{c})" for i, c in tile]
        for i, c in tile:
            lines += [
                f"y{i}_{c} = a{i}_{c} * {w.vector}(scale)",
                f"vstore(w, {i} * longest + t + {c}, y{i}_{c})",
                f"best{i} = y{i}_{c} if y{i}_{c} > best{i} else best{i}",
            ]
    return "\n".join(lines)


def _block_weights(w: _Widths, i: int) -> str:
    """The exponentials of query i's scores, the logarithm of their sum, and 1 / the sum."""
    inner = f"y = vload(w, {i} * longest + u, {w.lanes}) - {w.vector}(most{i})\n{_exp(w, 'z', 'y')}\n"
    inner += f"vstore(w, {i} * longest + u, z)\nsums{i} += z"
    return "\n".join(
        [
            f"most{i} = hmax(best{i})",
            f"sums{i}: {w.vector} = {w.vector}(0.0)",
            f"for u in range(0, count, {w.lanes}):\n{indent(inner, '    ')}",
            f"total{i} = hsum(sums{i})",
            f"lse[r + {i}] = most{i} + log(total{i}) if count > 0 else T(0.0)",
            f"part{i} = T(1.0) / total{i} if count > 0 else T(0.0)",
        ]
    )


def _block_sums(w: _Widths, width: int, start: int) -> str:
    columns, tile = _register_tile(w, start, w.e)
    lines = [f"o{i}_{c}: {w.vector} = {w.vector}(0.0)" for i, c in tile]
    lines += ["for p in range(first, end):", f"    j = (place * m + i64(crd[p]) * {width}) * {w.e}"]
    lines.append(f"    for x in range(0, {width}):")
    lines += [f"        b{c} = vload(v, j + x * {w.e} + {c}, {w.lanes})" for c in columns]
    lines += [f"        w{i} = {w.vector}(w[{i} * longest + (p - first) * {width} + x])" for i in range(ROWS)]
    lines += [f"        o{i}_{c} = fma(w{i}, b{c}, o{i}_{c})" for i, c in tile]
    lines += [f"vstore(out, (r + {i}) * {w.e} + {c}, o{i}_{c} * {w.vector}(part{i}))" for i, c in tile]
    return "\n".join(lines)


def _block_rest(w: _Widths, width: int, c: int) -> str:
    """A column of the results that no vector has."""
    lines = [f"z{i}_{c}: T = 0.0" for i in range(ROWS)]
    lines += ["for p in range(first, end):", f"    j = (place * m + i64(crd[p]) * {width}) * {w.e} + {c}"]
    lines.append(f"    for x in range(0, {width}):")
    weight = f"w[{{i}} * longest + (p - first) * {width} + x]"
    lines += [f"        z{i}_{c} += {weight.format(i=i)} * v[j + x * {w.e}]" for i in range(ROWS)]
    lines += [f"out[(r + {i}) * {w.e} + {c}] = z{i}_{c} * part{i}" for i in range(ROWS)]
    return "\n".join(lines)
