"""Types and widths -> kernels of attention over compressed rows of elements, as loop IR: forward, and backward.

    for t in range(0, tiles):                        # columns whose keys or values stay in a cache
        for r in range(begin, last):                 # for a group of queries of a batch and head
            for p in range(first, stop, 8):          # w[p] = scale * q[r] . k[crd[p]], 8 at a time
    w = exp(w - max(w)); total = sum(w)              # in vectors
    out[r] = sum of w[p] * v[crd[p]] / total         # by tiles again, in registers

The scores of a group stand in a workspace; nothing of nse elements is written. A row has a multiple of 8 elements in
each tile: loops without remainders take half the time, as counts that vary are branches that nobody foresees. The last
element is there c times, each with a c-th of its weight: -log(c) is added to its scores. Keys and values of the next
place, which rows meet in no order, are prefetched in order, a few by each row. Backward computes the weights again from
the logarithms of the rows' sums; of P and dS, which stand in the workspace, it goes by rows for dq, and by keys for dk
and dv, whose sums stay in registers. To these it adds: ranges of one place must not share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from ..codegen import cache as kernels
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from .attend_packed import BLOCK
from .attend_tiles import tiled
from .attend_vectors import cleared_place, folded, pieces, row_product, size_of_a_group, sum_of_lanes, windows

__all__ = ["kernel", "tile_kernel"]

_TILE = 4
"""Vectors of a row that are summed in registers at a time."""
_KEY_TILE = 16
"""Vectors of the gradients of a key and its value that are summed in registers at a time."""
_SHARE = 4
"""Keys of the next place, at most, that are prefetched for each row."""


@planned("kernels of attention")
def kernel(kind: str, scalar: str, lanes: int, d: int, e: int, drop: bool) -> Executable:
    """The compiled kernel by rows: "forward" or "backward"."""
    w = _Rows(kind, lanes, size_of_a_group(scalar), d, e, drop)
    return kernels.of_text(w.forward() if kind == "forward" else w.backward(), reassociate=True, T=scalar)


@planned("kernels of attention in tiles")
def tile_kernel(kind: str, scalar: str, lanes: int, d: int, e: int) -> Executable:
    """The compiled kernel in register tiles: "forward" or "backward"."""
    return kernels.of_text(tiled(kind, scalar, lanes, d, e), reassociate=True, T=scalar)


_STRUCTURE = """crd: i32[const], cuts: i64[const], offsets: i32[const], copies: i32[const], counts: i64[const]"""
_GROUPS = """for g in range(lo, hi):
    place = g // groups
    begin = place * n + (g - place * groups) * size
    last = min(begin + size, (place + 1) * n)
    ahead = place * n - place * n % rows
    of_mask = g % (rows // n * groups)
    share = min((m + n - 1) // n, {most})
"""


def _rows_of_group(body: str) -> str:
    """`body` for every row r of a group: it has `count` elements in the workspace from `base` on."""
    return (
        "for r in range(begin, last):\n    row = r - ahead\n    base = (r - begin) * longest\n"
        "    count = counts[row]\n" + indent(body, "    ")
    )


def _tiles(body: str, ahead: Sequence[str] = ()) -> str:
    """`body` for every tile of columns, which stays in the cache, and every row of a group: positions first to stop.
    `ahead` once for every row."""
    once = f"        if t == 0:\n{indent(chr(10).join(ahead), ' ' * 12)}\n" if ahead else ""
    return f"""for t in range(0, tiles):
    for r in range(begin, last):
{once}\
        segment = (of_mask * tiles + t) * size + r - begin
        first = cuts[segment]
        stop = cuts[segment + 1]
        at = i64(offsets[segment]) - first
        above = at + first > (r - begin) * longest
        if first < stop:
{indent(body, " " * 12)}"""


class _Rows:
    """The texts for widths d and e; a workspace's row has `longest` numbers, `lanes` of which are for no element. A
    cache line has `line` numbers."""

    def __init__(self, kind: str, lanes: int, line: int, d: int, e: int, drop: bool) -> None:
        widths = (d,) if kind == "forward" else (d, e)
        self.d, self.e, self.drop = d, e, drop
        self.lanes, self.line = lanes, line
        self.vector = f"Tx{self.lanes}"
        self.dots = min([BLOCK, *[windows(width, self.lanes)[0] for width in widths]])

    def text(self, structure: str, operands: str, spaces: str, body: Sequence[str]) -> str:
        """A kernel over groups of rows."""
        allocated = "".join(f"    {name}: T[longest * size] = empty\n" for name in spaces)
        keep = " keep: T[const]," if self.drop else ""
        return (
            f"def attend(lo: i64, hi: i64, {_STRUCTURE}, bias: T[const],{structure} q: T[const],"
            f" k: T[const], v: T[const],{keep}{operands}, n: i64, m: i64, rows: i64, stride: i64, longest: i64,"
            f" groups: i64, size: i64, tiles: i64, scale: T):\n{allocated}    best: T[size * {self.lanes}] = empty\n"
            + indent(_GROUPS.format(most=_SHARE) + indent("\n".join(body), "    "), "    ")
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

    def positions(self, body: Sequence[str]) -> list[str]:
        """`body` for the columns j0, j1, ... of as many positions from p on."""
        columns = [f"    j{i} = place * m + i64(crd[p + {i}])" for i in range(self.dots)]
        return [f"for p in range(first, stop, {self.dots}):", *columns, indent("\n".join(body), "    ")]

    def ahead(self, rows: tuple[str, str, int], keys: tuple[str, int] | None = None) -> list[str]:
        """Prefetch of a row of (buffer, number, width) that comes later, and of this row's share of the next place's
        `keys`, which it will meet in no order."""
        lines = self.prefetched(*rows)
        if keys is not None and keys[1]:
            lines.append("for z in range(0, share):  # novector nounroll")
            each = self.prefetched(keys[0], "(place + 1) * m + (r - place * n) * share + z", keys[1])
            lines.append(indent("\n".join(each), "    "))
        return lines

    def prefetched(self, buffer: str, number: str, width: int) -> list[str]:
        """Prefetch of a row."""
        return [f"prefetch({buffer}, ({number}) * {width} + {c})" for c in range(0, width, self.line)]

    def shared(self) -> list[str]:
        """What is added to the scores of the last block, whose last element is there several times."""
        scores = f"vload(w, at + stop - {BLOCK}, {BLOCK})"
        return [f"vstore(w, at + stop - {BLOCK}, {scores} + vload(bias, i64(copies[segment]), {BLOCK}))"]

    def dropped(self, buffer: str) -> list[str]:
        """What dropout multiplies weights, or their slopes, with."""
        kept = "keep[place * n // rows * stride + p]"
        each = f"for p in range(first, stop):\n    {buffer}[at + p] = {buffer}[at + p] * {kept}"
        return [_tiles(each)] if self.drop else []

    def vectors(self, body: Sequence[str]) -> list[str]:
        """`body` for every vector u of a row's workspace; what is behind the last element takes part."""
        return [f"for u in range(base, base + count, {self.lanes}):", indent("\n".join(body), "    ")]

    def load(self, buffer: str, at: str) -> str:
        return f"vload({buffer}, {at}, {self.lanes})"

    def forward(self) -> str:
        """out and lse."""
        lanes = windows(self.d, self.lanes)[0]

        scores = [*self.products("s", "q", "k", self.d, self.dots), "vstore(w, at + p, s)"]
        scores.append("most = s if s > most else most")
        best = f"best, (r - begin) * {self.lanes}"
        start = f"most: Tx{lanes} = vload({best}, {lanes}) if above else Tx{lanes}(-inf)"
        every = [*self.row("q", "q", self.d, "scale"), start, *self.positions(scores), f"vstore({best}, most)"]
        every += self.shared()
        normalize = [f"vstore(w, base + count, {self.vector}(-inf))", f"sums: {self.vector} = {self.vector}(0.0)"]
        normalize.append(f"lane = vload({best}, {lanes})")
        most = folded(normalize, ["lane"], lanes, lambda x, y: f"{x} if {x} > {y} else {y}")
        normalize += [f"vstore({best}, {most})", f"high = best[(r - begin) * {self.lanes}]"]
        exponentials = [f"z = exp({self.load('w', 'u')} - {self.vector}(high))", "vstore(w, u, z)", "sums += z"]
        normalize += [*self.vectors(exponentials), "total = hsum(sums)", "lse[r] = high + log(total)"]
        normalize.append(f"best[(r - begin) * {self.lanes}] = T(1.0) / total")
        empty = ["lse[r] = T(0.0)", f"for c in range(0, {self.e}):\n    out[r * {self.e} + c] = T(0.0)"]
        ahead = self.ahead(("out", "r", self.e), ("v", self.e))
        is_last = "at + stop == (r - begin) * longest + counts[r - ahead]"
        factor = f"best[(r - begin) * {self.lanes}] if {is_last} else T(1.0)"
        body = [
            _tiles("\n".join(every), self.ahead(("q", "r + size", self.d), ("k", self.d))),
            _rows_of_group("\n".join([*ahead, _either("count > 0", normalize, empty)])),
            *self.dropped("w"),
            _tiles("\n".join([f"factor = {factor}", *self.sums("out", "w", "v", self.e)])),
        ]
        return self.text("", " out: T[mut], lse: T[mut]", "w", body)

    def sums(self, to: str, weights: str, source: str, width: int) -> list[str]:
        """to[r] += sum of weights[p] * source[crd[p]], then times `factor`, in registers, of even and odd positions."""
        lines = []
        for columns in _batched(pieces(width, self.lanes)):
            one, other = [f"{to}{c}" for c, _ in columns], [f"{to}{c}_" for c, _ in columns]
            for x, y, (c, lanes) in zip(one, other, columns, strict=True):
                zero = f"Tx{lanes}(0.0)"
                lines.append(f"{x}: Tx{lanes} = vload({to}, r * {width} + {c}, {lanes}) if above else {zero}")
                lines.append(f"{y}: Tx{lanes} = {zero}")
            lines.append(f"for p in range(first, stop, {BLOCK}):")
            lines += [self.term((one, other)[i % 2], weights, source, width, columns, i) for i in range(BLOCK)]
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

        lanes = windows(self.d, self.lanes)[0]
        scores = [*self.row("q", "q", self.d, "scale"), f"shift = Tx{lanes}(lse[r])"]
        scores += self.positions([*self.products("s", "q", "k", self.d, self.dots), "vstore(w, at + p, s - shift)"])
        scores += self.shared()
        slopes = [*self.row("grad", "grad", self.e)]
        slopes += self.positions([*self.products("slope", "grad", "v", self.e, self.dots), "vstore(h, at + p, slope)"])
        clear = [f"vstore({x}, base + count, {self.vector}({y}))" for x, y in (("w", "-inf"), ("h", "0.0"))]
        weights = [f"z = exp({self.load('w', 'u')})", "vstore(w, u, z)"]
        weights.append(f"vstore(h, u, z * ({self.load('h', 'u')} - {self.vector}(total)) * {self.vector}(scale))")
        middle = [
            *self.ahead(("out", "r + size", self.e)),
            *row_product("total", "grad", "out", f"r * {self.e}", self.e, self.lanes),
            *clear,
            *self.vectors(weights),
        ]
        place = "\n".join([cleared_place("dk", self.d), cleared_place("dv", self.e)])
        body = [
            f"if g == lo or g == place * groups:\n{indent(place, '    ')}",
            f"for x in range(begin * {self.d}, last * {self.d}):\n    dq[x] = T(0.0)",
            _tiles("\n".join(scores), self.ahead(("q", "r + size", self.d), ("k", self.d))),
            _tiles("\n".join(slopes), self.ahead(("grad", "r + size", self.e), ("v", self.e))),
            *self.dropped("h"),
            _rows_of_group("\n".join(middle)),
            *self.dropped("w"),
            _tiles("\n".join(["factor = T(1.0)", *self.sums("dq", "h", "k", self.d)])),
            *self.by_keys(),
        ]
        structure = (
            " first_key: i64[const], key: i32[const], first_at: i64[const], at_key: i32[const], of_row: i32[const],"
        )
        operands = " lse: T[const], grad: T[const], out: T[const], dq: T[mut], dk: T[mut], dv: T[mut]"
        return self.text(structure, operands, "wh", body)

    def by_keys(self) -> list[str]:
        """dk[j] += sum over the group's rows of h * q[row], and dv[j] += sum of w * grad[row], in registers."""
        every = [("dk", "h", "q", self.d, c, n) for c, n in pieces(self.d, self.lanes)]
        every += [("dv", "w", "grad", self.e, c, n) for c, n in pieces(self.e, self.lanes)]
        lines = ["for y in range(first_key[of_mask], first_key[of_mask + 1]):"]
        lines.append("    j = place * m + i64(key[y])")
        for start in range(0, len(every), _KEY_TILE):
            batch = every[start : start + _KEY_TILE]
            lines += [f"    {to}{c}: Tx{n} = vload({to}, j * {width} + {c}, {n})" for to, _, _, width, c, n in batch]
            lines.append("    for p in range(first_at[y], first_at[y + 1]):  # novector nounroll")
            lines += ["        r = begin + i64(of_row[p])", "        x = i64(at_key[p])"]
            lines += [f"        b{weight} = {weight}[x]" for weight in sorted({weight for _, weight, *_ in batch})]
            for to, weight, source, width, c, n in batch:
                term = f"Tx{n}(b{weight}), vload({source}, r * {width} + {c}, {n})"
                lines.append(f"        {to}{c} = fma({term}, {to}{c})")
            lines += [f"    vstore({to}, j * {width} + {c}, {to}{c})" for to, _, _, width, c, n in batch]
        return lines if every else []


def _batched(columns: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The vectors of a row, `_TILE` at a time."""
    return [columns[i : i + _TILE] for i in range(0, len(columns), _TILE)]


def _masked(value: str, lanes: int, shared: int) -> str:
    """A vector whose first `shared` lanes are 0."""
    return f"({value} if ramp(i32x{lanes}(0)) >= {shared} else Tx{lanes}(0.0))" if shared else value


def _either(condition: str, yes: Sequence[str], no: Sequence[str]) -> str:
    return f"if {condition}:\n{indent(chr(10).join(yes), '    ')}\nelse:\n{indent(chr(10).join(no), '    ')}"
