"""Types and widths -> kernels of attention over compressed rows of elements, as loop IR: forward, and backward.

    for r in range(begin, last):                     # a group of queries of a batch and head
        for p in range(pos[row], pos[row + 1]):      # w[p] = scale * q[r] . k[crd[p]], several p at a time
        w = exp(w - max(w)); total = sum(w)          # in vectors
        out[r] = sum of w[p] * v[crd[p]] / total     # in registers

The scores of a group stand in a workspace; nothing of nse elements is written. Loops over p go by tiles of columns,
whose keys or values stay in a cache for all queries of the group. Backward computes the weights again from the
logarithms of the rows' sums, and adds to the gradients of keys and values, which ranges of one place must not share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent

from ..codegen import cache as kernels
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from .attend_tiles import tiled
from .attend_vectors import cleared_place, folded, pieces, row_product, sum_of_lanes, windows

__all__ = ["kernel", "tile_kernel"]

_DOTS = 8
"""Scores that are computed in one loop."""
_TILE = 4
"""Vectors of a row that are summed in registers at a time."""


@planned("kernels of attention")
def kernel(kind: str, scalar: str, lanes: int, index: str, d: int, e: int, drop: bool) -> Executable:
    """The compiled kernel by rows: "forward" or "backward"."""
    w = _Rows(kind, lanes, d, e, drop)
    return kernels.of_text(w.forward() if kind == "forward" else w.backward(), reassociate=True, T=scalar, I=index)


@planned("kernels of attention in tiles")
def tile_kernel(kind: str, scalar: str, lanes: int, d: int, e: int) -> Executable:
    """The compiled kernel in register tiles: "forward" or "backward"."""
    return kernels.of_text(tiled(kind, scalar, lanes, d, e), reassociate=True, T=scalar)


_GROUPS = """for g in range(lo, hi):
    place = g // groups
    begin = place * n + (g - place * groups) * size
    last = min(begin + size, (place + 1) * n)
    ahead = place * n - place * n % rows
"""


def _rows_of_group(body: str) -> str:
    """`body` for every row r of a group: its positions are first to end, its workspace begins at base."""
    return (
        "for r in range(begin, last):\n    row = r - ahead\n    base = (r - begin) * longest\n"
        "    count = i64(pos[row + 1]) - i64(pos[row])\n" + indent(body, "    ")
    )


def _tiles(body: str) -> str:
    """`body` for every tile of columns, which stays in the cache, and every row of a group: positions first to stop."""
    return f"""for t in range(0, tiles):
    for r in range(begin, last):
        row = r - ahead
        at = (r - begin) * longest - i64(pos[row])
        first = cuts[row * tiles + t]
        stop = cuts[row * tiles + t + 1]
        above = first > cuts[row * tiles]
        if first < stop:
{indent(body, " " * 12)}"""


class _Rows:
    """The texts for widths d and e; a workspace's row has `longest` numbers, `lanes` of which are for no element."""

    def __init__(self, kind: str, lanes: int, d: int, e: int, drop: bool) -> None:
        widths = (d,) if kind == "forward" else (d, e)
        self.d, self.e, self.drop = d, e, drop
        self.lanes = lanes
        self.vector = f"Tx{self.lanes}"
        self.dots = min([_DOTS, *[windows(width, self.lanes)[0] for width in widths]])

    def text(self, operands: str, results: str, spaces: str, body: Sequence[str]) -> str:
        """A kernel over groups of rows."""
        allocated = "".join(f"    {name}: T[longest * size] = empty\n" for name in spaces)
        keep = " keep: T[const]," if self.drop else ""
        return (
            "def attend(lo: i64, hi: i64, pos: I[const], crd: I[const], cuts: i64[const], q: T[const], k: T[const],"
            f" v: T[const],{keep}{operands} {results}, n: i64, m: i64, rows: i64, stride: i64, longest: i64,"
            f" groups: i64, size: i64, tiles: i64, scale: T):\n{allocated}    best: T[size * {self.lanes}] = empty\n"
            + indent(_GROUPS + indent("\n".join(body), "    "), "    ")
        )

    def row(self, to: str, source: str, width: int, factor: str = "") -> list[str]:
        """Row r of an operand in registers; lanes that another vector has too are 0."""
        lanes, parts = windows(width, self.lanes)
        times = f" * Tx{lanes}({factor})" if factor else ""
        lines = []
        for c, shared in parts:
            lines.append(f"{to}{c} = {_masked(f'vload({source}, r * {width} + {c}, {lanes})', lanes, shared)}{times}")
        return lines

    def products(self, to: str, by: str, source: str, width: int, count: int) -> list[str]:
        """The vector `to`, whose lanes are those of row `by` times source[j0] to source[j(count - 1)], repeated."""
        lanes, parts = windows(width, self.lanes)
        if not width:
            return [f"{to} = T(0.0)"]
        lines = []
        for n, (c, shared) in enumerate(parts):
            for i in range(count):
                x = _masked(f"vload({source}, j{i} * {width} + {c}, {lanes})", lanes, shared)
                sum_, before = f"{to}{n}_{i}", f"{to}{n - 1}_{i}"
                lines.append(f"{sum_} = fma({by}{c}, {x}, {before})" if n else f"{sum_} = {by}{c} * {x}")
        names = [f"{to}{len(parts) - 1}_{i}" for i in range(count)]
        lines.append(f"{to} = {folded(lines, names, lanes, sum_of_lanes)}")
        return lines

    def positions(self, body: Callable[[int], Sequence[str]]) -> list[str]:
        """`body(k)` for the columns j0 to j(k - 1) of positions p to p + k - 1, the last again beyond the last."""
        whole, half = self.dots, max(1, self.dots // 2)
        lines = [f"whole = first + (stop - first) // {whole} * {whole}", f"for p in range(first, whole, {whole}):"]
        lines += [f"    j{i} = place * m + i64(crd[p + {i}])" for i in range(whole)]
        lines += [indent("\n".join(body(whole)), "    "), f"for p in range(whole, stop, {half}):"]
        lines += [f"    j{i} = place * m + i64(crd[min(p + {i}, stop - 1)])" for i in range(half)]
        return [*lines, indent("\n".join(body(half)), "    ")]

    def vectors(self, body: Sequence[str]) -> list[str]:
        """`body` for every vector u of a row's workspace; what is behind the last element takes part."""
        return [f"for u in range(base, base + count, {self.lanes}):", indent("\n".join(body), "    ")]

    def load(self, buffer: str, at: str) -> str:
        return f"vload({buffer}, {at}, {self.lanes})"

    def forward(self) -> str:
        """out and lse."""
        lanes = windows(self.d, self.lanes)[0]

        def scores(count: int) -> list[str]:
            lines = self.products("s", "q", "k", self.d, count)
            return [*lines, "vstore(w, at + p, s)", "most = s if s > most else most"]

        best = f"best, (r - begin) * {self.lanes}"
        start = f"most: Tx{lanes} = vload({best}, {lanes}) if above else Tx{lanes}(-inf)"
        every = [*self.row("q", "q", self.d, "scale"), start, *self.positions(scores), f"vstore({best}, most)"]
        normalize = [f"vstore(w, base + count, {self.vector}(-inf))", f"sums: {self.vector} = {self.vector}(0.0)"]
        normalize.append(f"lane = vload({best}, {lanes})")
        most = folded(normalize, ["lane"], lanes, lambda x, y: f"{x} if {x} > {y} else {y}")
        normalize += [f"vstore({best}, {most})", f"high = best[(r - begin) * {self.lanes}]"]
        exponentials = [f"z = exp({self.load('w', 'u')} - {self.vector}(high))", "vstore(w, u, z)", "sums += z"]
        normalize += [*self.vectors(exponentials), "total = hsum(sums)", "lse[r] = high + log(total)"]
        normalize.append(f"best[(r - begin) * {self.lanes}] = T(1.0) / total")
        if self.drop:
            normalize.append("kept = place * n // rows * stride + i64(pos[row])")
            normalize.append("for p in range(0, count):\n    w[base + p] = w[base + p] * keep[kept + p]")
        empty = ["lse[r] = T(0.0)", f"for c in range(0, {self.e}):\n    out[r * {self.e} + c] = T(0.0)"]
        factor = f"best[(r - begin) * {self.lanes}] if stop == cuts[row * tiles + tiles] else T(1.0)"
        body = [
            _tiles("\n".join(every)),
            _rows_of_group(_either("count > 0", normalize, empty)),
            _tiles("\n".join([f"factor = {factor}", *self.sums("out", "w", "v", self.e)])),
        ]
        return self.text("", "out: T[mut], lse: T[mut]", "w", body)

    def sums(self, to: str, weights: str, source: str, width: int) -> list[str]:
        """to[r] += sum of weights[p] * source[crd[p]], then times `factor`, in registers, of even and odd positions."""
        lines = ["pairs = first + (stop - first) // 2 * 2"]
        for columns in _batched(pieces(width, self.lanes)):
            one, other = [f"{to}{c}" for c, _ in columns], [f"{to}{c}_" for c, _ in columns]
            for x, y, (c, lanes) in zip(one, other, columns, strict=True):
                zero = f"Tx{lanes}(0.0)"
                lines.append(f"{x}: Tx{lanes} = vload({to}, r * {width} + {c}, {lanes}) if above else {zero}")
                lines.append(f"{y}: Tx{lanes} = {zero}")
            terms = [self.term(x, weights, source, width, columns, k) for k, x in enumerate((one, other))]
            lines += ["for p in range(first, pairs, 2):", *terms, "for p in range(pairs, stop):", terms[0]]
            for x, y, (c, lanes) in zip(one, other, columns, strict=True):
                lines.append(f"vstore({to}, r * {width} + {c}, ({x} + {y}) * Tx{lanes}(factor))")
        return lines

    def term(
        self, sums: Sequence[str], weights: str, source: str, width: int, columns: Sequence[tuple[int, int]], k: int
    ) -> str:
        """sums += weights[p + k] * the columns of source[crd[p + k]]."""
        lines = [f"j{k} = (place * m + i64(crd[p + {k}])) * {width}", f"b{k} = {weights}[at + p + {k}]"]
        for sum_, (c, lanes) in zip(sums, columns, strict=True):
            lines.append(f"{sum_} = fma(Tx{lanes}(b{k}), vload({source}, j{k} + {c}, {lanes}), {sum_})")
        return indent("\n".join(lines), "    ")

    def backward(self) -> str:
        """dq[r], and what is added to dk and dv: P = exp(scores - lse), dS = scale * P * grad[r] . (v - out[r])."""

        def scores(count: int) -> list[str]:
            lines = self.products("s", "q", "k", self.d, count) + self.products("slope", "grad", "v", self.e, count)
            shift = f"Tx{windows(self.d, self.lanes)[0]}(lse[r])"
            return [*lines, f"vstore(w, at + p, s - {shift})", "vstore(h, at + p, slope)"]

        every = [*self.row("q", "q", self.d, "scale"), *self.row("grad", "grad", self.e), *self.positions(scores)]
        clear = [f"vstore({x}, base + count, {self.vector}({y}))" for x, y in (("w", "-inf"), ("h", "0.0"))]
        slopes = [f"z = exp({self.load('w', 'u')})", "vstore(w, u, z)"]
        slopes.append(f"vstore(h, u, z * ({self.load('h', 'u')} - {self.vector}(total)) * {self.vector}(scale))")
        middle = [
            *row_product("total", "grad", "out", f"r * {self.e}", self.e, self.lanes),
            *clear,
            *self.vectors(slopes),
        ]
        if self.drop:
            kept = "kept = place * n // rows * stride + i64(pos[row])"
            times = "for p in range(0, count):\n    {0}[base + p] = {0}[base + p] * keep[kept + p]"
            middle = [kept, times.format("h"), *middle, times.format("w")]
        place = "\n".join([cleared_place("dk", self.d), cleared_place("dv", self.e)])
        body = [
            f"if g == lo or g == place * groups:\n{indent(place, '    ')}",
            f"for x in range(begin * {self.d}, last * {self.d}):\n    dq[x] = T(0.0)",
            _tiles("\n".join(every)),
            _rows_of_group("\n".join(middle)),
            _tiles(
                "\n".join(
                    [*self.updates("h", "q", "dk", self.d, ("dq", "k")), *self.updates("w", "grad", "dv", self.e)]
                )
            ),
        ]
        operands = " lse: T[const], grad: T[const], out: T[const],"
        return self.text(operands, "dq: T[mut], dk: T[mut], dv: T[mut]", "wh", body)

    def updates(self, weights: str, of_row: str, to: str, width: int, sum_: tuple[str, str] | None = None) -> list[str]:
        """to[crd[p]] += weights[p] * of_row[r]; with sum_ = (x, y) also x[r] += sum of weights[p] * y[crd[p]]."""
        lines = []
        for columns in _batched(pieces(width, self.lanes)):
            body = [f"j = (place * m + i64(crd[p])) * {width}", f"b = {weights}[at + p]"]
            after = []
            for c, lanes in columns:
                own, there = f"{to}{c}", f"vload({to}, j + {c}, {lanes})"
                lines.append(f"{own} = vload({of_row}, r * {width} + {c}, {lanes})")
                body.append(f"vstore({to}, j + {c}, fma(Tx{lanes}(b), {own}, {there}))")
                if sum_ is not None:
                    x, y = sum_
                    lines.append(f"{x}{c}: Tx{lanes} = vload({x}, r * {width} + {c}, {lanes})")
                    body.append(f"{x}{c} = fma(Tx{lanes}(b), vload({y}, j + {c}, {lanes}), {x}{c})")
                    after.append(f"vstore({x}, r * {width} + {c}, {x}{c})")
            lines += ["for p in range(first, stop):", indent("\n".join(body), "    "), *after]
        return lines


def _batched(columns: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The vectors of a row, `_TILE` at a time."""
    return [columns[i : i + _TILE] for i in range(0, len(columns), _TILE)]


def _masked(value: str, lanes: int, shared: int) -> str:
    """A vector whose first `shared` lanes are 0."""
    return f"({value} if ramp(i32x{lanes}(0)) >= {shared} else Tx{lanes}(0.0))" if shared else value


def _either(condition: str, yes: Sequence[str], no: Sequence[str]) -> str:
    return f"if {condition}:\n{indent(chr(10).join(yes), '    ')}\nelse:\n{indent(chr(10).join(no), '    ')}"
