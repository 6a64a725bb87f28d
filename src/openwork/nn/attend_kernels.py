"""Types and widths -> kernels of attention over compressed rows of elements, as loop IR: forward, and backward.

    for r in range(begin, last):                     # a group of queries of a batch and head
        for p in range(pos[row], pos[row + 1]):      # w[p] = scale * q[r] . k[crd[p]], several p at a time
        w = exp(w - max(w)); total = sum(w)          # in vectors
        out[r] = sum of w[p] * v[crd[p]] / total     # in registers

The scores of a group stand in a workspace; nothing of nse elements is written. Both loops over p go by tiles of
columns, whose keys or values stay in a cache for all queries of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent

from ..codegen import cache as kernels
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from .attend_tiles import LANES, tiled

__all__ = ["GROUP", "kernel", "tile_kernel"]

GROUP = 64
"""Queries whose scores stand in the workspace."""
_TILE = 8
"""Vectors of a result's row that are summed in registers at a time."""


@planned("kernels of attention")
def kernel(kind: str, scalar: str, index: str, d: int, e: int, drop: bool) -> Executable:
    """The compiled kernel by rows: "forward", "rows" or "columns"."""
    write = {"forward": _forward, "rows": _rows, "columns": _columns}[kind]
    return kernels.of_text(write(_Widths(scalar, d, e, drop)), reassociate=True, T=scalar, I=index)


@planned("kernels of attention in tiles")
def tile_kernel(kind: str, scalar: str) -> Executable:
    """The compiled kernel in register tiles: "forward", "rows" or "columns"."""
    return kernels.of_text(tiled(kind, scalar), reassociate=True, T=scalar)


class _Widths:
    """What the texts depend on."""

    def __init__(self, scalar: str, d: int, e: int, drop: bool) -> None:
        self.scalar, self.d, self.e, self.drop = scalar, d, e, drop
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
    last = f"{factor} if t == tiles - 1 else T(1.0)"
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
    return f"""for t in range(0, tiles):
    above = t > 0
    for r in range(begin, last):
        row = r % rows
        at = (r - begin) * longest - i64(pos[row])
        first = cuts[row * tiles + t]
        stop = cuts[row * tiles + t + 1]
{indent(body, " " * 8)}"""


def _text(w: _Widths, extra: str, results: str, workspaces: str, body: Sequence[str]) -> str:
    """A kernel over groups of rows."""
    spaces = "".join(f"    {name}: T[longest * {GROUP}] = empty\n" for name in workspaces)
    return (
        f"def attend(lo: i64, hi: i64, pos: I[const], crd: I[const], cuts: i64[const], q: T[const], k: T[const],"
        f" v: T[const],{extra} {results}, n: i64, m: i64, rows: i64, stride: i64, longest: i64, groups: i64,"
        f" tiles: i64, scale: T):\n{spaces}    best: T[{GROUP}] = empty\n"
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
        _vectors(w, f"z = exp(vload(w, u, {w.lanes}) - most)\nvstore(w, u, z)\nsums += z"),
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

    product = f"vstore(w, u, exp(vload(w, u, {w.lanes})) * vload(h, u, {w.lanes}))"
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
    product = f"z = exp(vload(w, u, {w.lanes}))\nvstore(w, u, {weight})\nvstore(h, u, z * vload(h, u, {w.lanes}))"
    both = _sums(w, "dv", "grad", "w", w.e, "T(1.0)"), _sums(w, "dk", "q", "h", w.d, "scale")
    body = [
        _tiles(_positions(scores)),
        _rows_of_group("\n".join([*clear, _vectors(w, product)])),
        *map(_tiles, both),
    ]
    extra = " keep: T[const], order: i64[const]," if w.drop else ""
    return _text(w, extra + _GRADIENT, "dk: T[mut], dv: T[mut]", spaces, body)
