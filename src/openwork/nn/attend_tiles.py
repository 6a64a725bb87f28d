"""A scalar type and widths -> kernels of attention in register tiles, as loop IR, over the union of neighbours' keys.

    for g in range(lo, hi):                          # 64 bytes of queries, of a batch and head
        for p in range(pos[g], pos[g + 1], 8):       # 8 keys that any of them sees, whatever the mask is
            s[p] = scale * q . k[crd[p]]             # in registers, a lane for each query
            s[p] = s[p] if bits[p] else -inf         # where not all of them see all 8
        for p in chunks of keys:                     # whose values stay in the first cache
            w = exp(s - max(s))
            out += w[p] * v[crd[p]]                  # 4 queries x 4 vectors in registers

Between these stand prefetches, a few cache lines for each key: rows of the next group, and of keys and values those
that it is the first of its place to read. Where the mask is sparse a group would wait for them as long as it computes.

A lane for each query makes maxima and sums those of vectors, and keys are read once for all queries of a group.
Where a query does not see all of a tile's keys, 0 times a value that is not finite is NaN: `flags` says for each group
whether anything was not finite. Backward has P and dS of a chunk in the same layout, of which dq are such sums too.
What a key gets, P.T @ grad and dS.T @ q, is a register tile of 4 keys, added to dv and dk, which ranges of one place
must not share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent

from .attend_vectors import cleared_place, pieces, row_product, size_of_a_group

__all__ = ["KEYS", "ROWS", "tiled"]

KEYS = 4
"""A group has a multiple of as many keys."""
_WIDE = 12
"""Keys of a register tile where 64 bytes are one vector, as long as a group has as many."""
_CHUNK = {"forward": 120, "backward": 36}
"""Keys whose values stay in the first cache; in backward with their gradients."""
ROWS = 4
"""Queries of a register tile of results, or keys of one of their gradients."""


def tiled(kind: str, scalar: str, lanes: int, d: int, e: int) -> str:
    """The text of the kernel "forward" or "backward"."""
    t = _Tiles(lanes, size_of_a_group(scalar), d, e, _CHUNK[kind])
    return t.forward() if kind == "forward" else t.backward()


_PARAMETERS = (
    "lo: i64, hi: i64, pos: i64[const], crd: i32[const], bits: i32[const], first_new: i64[const], new: i32[const],"
    " spans: i32[const], seers: i32[const], q: T[const], k: T[const], v: T[const], flags: T[mut]"
)
_NUMBERS = "n: i64, m: i64, rows: i64, longest: i64, groups: i64, scale: T"
_GROUPS = """for g in range(lo, hi):
    place = g // groups
    base = place * m
    begin = place * n + g % groups * {size}
    live = min({size}, (place + 1) * n - begin)
    row = g % rows
    first = pos[row]
    count = pos[row + 1] - first
    next_begin = (g + 1) // groups * n + (g + 1) % groups * {size}
    next_base = (g + 1) // groups * m
    first_next = first_new[(g + 1) % rows]
    news = first_new[(g + 1) % rows + 1] - first_next
    nonfinite: {vector} = {vector}(0.0)
"""


class _Tiles:
    """The texts for groups of `size` queries, in vectors of so many lanes, and widths d and e."""

    def __init__(self, lanes: int, size: int, d: int, e: int, chunk: int) -> None:
        self.lanes, self.size, self.d, self.e, self.chunk = lanes, size, d, e, chunk
        self.halves = tuple(range(0, size, lanes))
        self.key_tiles = (_WIDE, KEYS) if lanes == size else (KEYS,)
        self.across = 4 // len(self.halves)
        self.vector, self.bits = f"Tx{lanes}", f"i32x{lanes}"

    def text(self, parameters: str, spaces: dict[str, str], body: Sequence[str]) -> str:
        """A kernel over groups of rows."""
        allocated = "".join(f"    {name}: T[{extent}] = empty\n" for name, extent in spaces.items())
        groups = _GROUPS.format(size=self.size, vector=self.vector) + indent("\n".join(body), "    ")
        return f"def attend({_PARAMETERS}, {parameters}, {_NUMBERS}):\n{allocated}" + indent(groups, "    ")

    def tile(self, name: str, keys: int) -> list[tuple[str, int, int]]:
        """The vectors of a register tile by name, key and first lane."""
        return [(f"{name}{i}_{c}", i, c) for i in range(keys) for c in self.halves]

    def by_keys(self, begin: str, end: str, body: Callable[[int], Sequence[str]]) -> list[str]:
        """`body(keys)` for the keys p to p + keys - 1 of every register tile between two positions."""
        lines = []
        for keys in self.key_tiles:
            name = f"tiled{keys}"
            lines.append(f"{name} = {begin} + ({end} - {begin}) // {keys} * {keys}")
            lines += [f"for p in range({begin}, {name}, {keys}):", indent("\n".join(body(keys)), "    ")]
            begin = name
        return lines

    def lines(self, width: int) -> int:
        """The cache lines of a row, which is as long as a line is for `size` queries."""
        return -(-width // self.size)

    def ahead_of_rows(self, buffer: str, width: int, z: str) -> str:
        """Prefetch a cache line of the next group's rows."""
        return f"prefetch({buffer}, next_begin * {width} + ({z}) * {self.size})"

    def ahead_of_keys(self, buffer: str, width: int, z: str) -> str:
        """Prefetch a cache line of what the next group is the first of its place to read of keys."""
        key = f"next_base + i64(new[first_next + ({z}) // {self.lines(width)}])"
        return f"prefetch({buffer}, ({key}) * {width} + ({z}) % {self.lines(width)} * {self.size})"

    def ahead(self, keys: int, width: int, of_rows: Sequence[str], of_keys: Sequence[str]) -> list[str]:
        """Prefetch of buffers with rows of `width` as many cache lines as a register tile has keys, from p on."""
        if not width:
            return []
        of_place = {f"{self.size * self.lines(width)}": [self.ahead_of_rows(x, width, "z") for x in of_rows]}
        of_place[f"news * {self.lines(width)}"] = [self.ahead_of_keys(x, width, "z") for x in of_keys]
        lines = []
        for end, body in of_place.items():
            if body:
                lines.append(f"for z in range(p, min(p + {keys}, {end})):  # novector nounroll")
                lines.append(indent("\n".join(body), "    "))
        return lines

    def load(self, buffer: str, index: str) -> str:
        return f"vload({buffer}, {index}, {self.lanes})"

    def forward(self) -> str:
        """out and lse of groups of queries."""
        size = str(self.size)
        spaces = {"w": f"longest * {size}", "a": f"{self.d} * {size}", "o": f"{self.e} * {size}"}
        spaces |= {"part": size, "total": size}
        body = [*self.transposed("a", "q", self.d, "scale"), *self.scores(), *self.weights()]
        return self.text("out: T[mut], lse: T[mut]", spaces, body)

    def transposed(self, to: str, source: str, width: int, factor: str = "") -> list[str]:
        """`to` = factor * the group's rows of `source`, a vector of rows for each column."""
        lanes, whole = self.lanes, width - width % self.lanes
        body = []
        for c in self.halves:
            names = [f"{to}{c}_{i}" for i in range(lanes)]
            body += [f"{x} = {self.load(source, f'{to}at{c + i} + x')}" for i, x in enumerate(names)]
            bit = 1
            while (
                bit < lanes
            ):  # the bit of a vector's number becomes the first of its lanes', whose last is its number's
                old, names = names, [f"{x}_" for x in names]
                for i in range(lanes):
                    x, y = old[i & ~bit], old[i | bit]
                    body.append(f"{names[i]} = {'odds' if i & bit else 'evens'}({x}, {y})")
                bit *= 2
            times = f" * {self.vector}({factor})" if factor else ""
            body += [f"vstore({to}, (x + {i}) * {self.size} + {c}, {x}{times})" for i, x in enumerate(names)]
            body += [f"nonfinite = fma({x}, {self.vector}(0.0), nonfinite)" for x in names]
        lines = [f"{to}at{i} = (begin + min({i}, live - 1)) * {width}" for i in range(self.size)] if whole else []
        lines += [f"for x in range(0, {whole}, {lanes}):", indent("\n".join(body), "    ")] if whole else []
        times = f" * {factor}" if factor else ""
        rest = f"""for i in range(0, {self.size}):
    for x in range({whole}, {width}):
        {to}[x * {self.size} + i] = {source}[(begin + min(i, live - 1)) * {width} + x]{times}
        nonfinite += {self.vector}({to}[x * {self.size} + i] * 0.0)"""
        return [*lines, *([rest] if whole < width else [])]

    def products(self, to: str, source: str, by_lane: str, width: int, keys: int) -> list[str]:
        """`to`{key}_{lane} = source[crd[p + key]] . by_lane[lane], in registers."""
        lines = [f"{to}j{i} = (base + i64(crd[first + p + {i}])) * {width}" for i in range(keys)]
        lines += [f"{name}: {self.vector} = {self.vector}(0.0)" for name, _, _ in self.tile(to, keys)]
        lines.append(f"for x in range(0, {width}):  # novector nounroll")
        lines += [f"    y{c} = {self.load(by_lane, f'x * {self.size} + {c}')}" for c in self.halves]
        for i in range(keys):
            lines.append(f"    x{i} = {self.vector}({source}[{to}j{i} + x])")
            lines += [f"    {to}{i}_{c} = fma(x{i}, y{c}, {to}{i}_{c})" for c in self.halves]
        return lines

    def sees(self, bits: str, c: int) -> str:
        """Which of the lanes from c on have their bit."""
        return f"bit({self.bits}(({bits}) >> {c}), ramp({self.bits}(0)))"

    def masked(self, keys: int) -> list[str]:
        """-inf for the scores of keys that a lane does not see."""
        of_all = " & ".join(f"bits[first + p + {i}]" for i in range(keys))
        lines = [f"if ({of_all}) != {(1 << self.size) - 1}:"]
        for name, i, c in self.tile("s", keys):
            seen = self.sees(f"bits[first + p + {i}]", c)
            lines.append(f"    {name} = {name} if {seen} else {self.vector}(-inf)")
        return lines

    def scores(self) -> list[str]:
        """The scores of all the group's keys, the largest of each query, and which queries see any key."""

        def body(keys: int) -> list[str]:
            lines = [*self.ahead(keys, self.d, "q", "k"), *self.products("s", "k", "a", self.d, keys)]
            lines += self.masked(keys)
            lines.append("seen = seen | " + " | ".join(f"bits[first + p + {i}]" for i in range(keys)))
            for name, i, c in self.tile("s", keys):
                lines.append(f"best{c} = {name} if {name} > best{c} else best{c}")
                lines.append(f"vstore(w, (p + {i}) * {self.size} + {c}, {name})")
            return lines

        start = [f"best{c}: {self.vector} = {self.vector}(-inf)" for c in self.halves]
        return ["seen: i32 = 0", *start, *self.by_keys("0", "count", body)]

    def weights(self) -> list[str]:
        """The exponentials and the weighted sums of values by chunks of keys, then the results of the queries."""
        zero, one, lines = f"{self.vector}(0.0)", f"{self.vector}(1.0)", []
        for c in self.halves:
            lines.append(f"any{c} = {self.sees('seen', c)}")
            lines += [f"most{c} = best{c} if any{c} else {zero}", f"sums{c}: {self.vector} = {zero}"]
        chunk = [f"for u in range(start * {self.size}, stop * {self.size}, {self.size}):"]
        if self.e:
            rows, keys = self.size * self.lines(self.e), f"news * {self.lines(self.e)}"
            chunk.append("    " + self.ahead_of_rows("out", self.e, f"min(u // {self.size}, {rows - 1})"))
            chunk.append("    " + self.ahead_of_keys("v", self.e, f"max(min(u // {self.size}, {keys} - 1), 0)"))
        for c in self.halves:
            chunk.append(f"    y{c} = exp({self.load('w', f'u + {c}')} - most{c})")
            chunk += [f"    vstore(w, u + {c}, y{c})", f"    sums{c} += y{c}"]
        chunk += self.sums("o", "w", "v", self.e, "p")
        lines += [self.cleared("o", self.e), *self.chunks(chunk)]
        for c in self.halves:
            lines.append(f"vstore(part, {c}, {one} / sums{c} if any{c} else {zero})")
            lines.append(f"vstore(total, {c}, most{c} + log(sums{c}) if any{c} else {zero})")
        lines.append("for i in range(0, live):\n    lse[begin + i] = total[i]")
        return [*lines, *self.stored("out", "o", self.e, "part[i]")]

    def backward(self) -> str:
        """dq, and what is added to dk and dv: P = exp(scale * q . k - lse), dS = scale * P * grad . (v - out)."""
        spaces = dict.fromkeys("wh", f"{self.chunk * self.size}")
        spaces |= {"a": f"{self.d} * {self.size}", "b": f"{self.e} * {self.size}", "o": f"{self.d} * {self.size}"}
        spaces |= {"shift": str(self.size), "less": str(self.size)}
        clear = "\n".join([cleared_place("dk", self.d), cleared_place("dv", self.e)])
        body = [f"if g == lo or g == place * groups:\n{indent(clear, '    ')}"]
        body += [*self.transposed("a", "q", self.d, "scale"), *self.transposed("b", "grad", self.e)]
        body.append(f"for i in range(0, {self.size}):\n    shift[i] = lse[begin + min(i, live - 1)]")
        at = f"(begin + min(i, live - 1)) * {self.e}"
        body += [
            indent("\n".join(row_product("total", "grad", "out", at, self.e, self.lanes)), "    "),
            "    less[i] = total",
        ]
        body.append("there = counts[row]")
        chunk = self.by_keys("start", "stop", self.slopes)
        chunk += self.sums("o", "h", "k", self.d, "(p - start)")
        chunk += [*self.added("dk", "h", "q", self.d), *self.added("dv", "w", "grad", self.e)]
        body += [self.cleared("o", self.d), *self.chunks(chunk), *self.stored("dq", "o", self.d, "T(1.0)")]
        parameters = "counts: i64[const], lse: T[const], grad: T[const], out: T[const]"
        return self.text(f"{parameters}, dq: T[mut], dk: T[mut], dv: T[mut]", spaces, body)

    def slopes(self, keys: int) -> list[str]:
        """P and dS of a register tile, into the workspaces w and h."""
        lines = [*self.ahead(keys, self.d, ("q", "dq"), ("k", "dk")), *self.products("s", "k", "a", self.d, keys)]
        lines += self.masked(keys)
        for name, i, c in self.tile("s", keys):
            lines.append(
                f"vstore(w, (p - start + {i}) * {self.size} + {c}, exp({name} - {self.load('shift', str(c))}))"
            )
        lines += [*self.ahead(keys, self.e, ("grad", "out"), ("v", "dv")), *self.products("g", "v", "b", self.e, keys)]
        for name, i, c in self.tile("g", keys):
            at = f"(p - start + {i}) * {self.size} + {c}"
            slope = f"{self.load('w', at)} * ({name} - {self.load('less', str(c))}) * {self.vector}(scale)"
            lines.append(f"vstore(h, {at}, {slope})")
        return lines

    def cleared(self, name: str, width: int) -> str:
        return f"for i in range(0, {width * self.size}):\n    {name}[i] = T(0.0)"

    def batches(self, width: int) -> list[list[tuple[int, int]]]:
        """The vectors of a row, those of a register tile at a time."""
        every = pieces(width, self.lanes)
        return [every[i : i + self.across] for i in range(0, len(every), self.across)]

    def sums(self, to: str, weights: str, source: str, width: int, at: str) -> list[str]:
        """to[lane] += weights[at, lane] * source[crd[p]] over a chunk's p, `ROWS` lanes and a few vectors at once; from
        the first key that these lanes see to the last."""
        if not width:
            return []
        span = f"(row * {self.size // ROWS} + i // {ROWS}) * 2"
        lines = [f"lower = max(start, i64(spans[{span}]))", f"upper = min(stop, i64(spans[{span} + 1]))"]
        for columns in self.batches(width):
            tile = [(h, c, n) for h in range(ROWS) for c, n in columns]
            lines += [f"{to}{h}_{c}: Tx{n} = vload({to}, (i + {h}) * {width} + {c}, {n})" for h, c, n in tile]
            lines.append("for p in range(lower, upper):  # novector nounroll")
            lines.append(f"    j = (base + i64(crd[first + p])) * {width}")
            lines += [f"    b{c} = vload({source}, j + {c}, {n})" for c, n in columns]
            lines += [f"    w{h} = {weights}[{at} * {self.size} + i + {h}]" for h in range(ROWS)]
            lines += [f"    {to}{h}_{c} = fma(Tx{n}(w{h}), b{c}, {to}{h}_{c})" for h, c, n in tile]
            lines += [f"vstore({to}, (i + {h}) * {width} + {c}, {to}{h}_{c})" for h, c, _ in tile]
        return [f"for i in range(0, {self.size}, {ROWS}):", indent("\n".join(lines), "    ")]

    def added(self, to: str, weights: str, source: str, width: int) -> list[str]:
        """to[crd[p]] += sum over lanes of weights[p, lane] * source[lane], of a chunk's keys, not of those that pad;
        from the first lane that sees any of `KEYS` keys to the last."""
        if not width:
            return []
        inside = f"quads{to} = start + (min(stop, there) - start) // {ROWS} * {ROWS}"
        loops = []
        for head, rows in (
            (f"for p in range(start, quads{to}, {ROWS}):", ROWS),
            (f"for p in range(quads{to}, min(stop, there)):", 1),
        ):
            lines = [f"j{h} = (base + i64(crd[first + p + {h}])) * {width}" for h in range(rows)]
            lines += [f"quad = (first + p) // {KEYS} * 2", "lower = i64(seers[quad])", "upper = i64(seers[quad + 1])"]
            for columns in self.batches(width):
                tile = [(h, c, n) for h in range(rows) for c, n in columns]
                lines += [f"{to}{h}_{c}: Tx{n} = vload({to}, j{h} + {c}, {n})" for h, c, n in tile]
                lines.append("for i in range(lower, upper):  # novector nounroll")
                lines += [f"    b{c} = vload({source}, (begin + i) * {width} + {c}, {n})" for c, n in columns]
                lines += [f"    w{h} = {weights}[(p - start + {h}) * {self.size} + i]" for h in range(rows)]
                lines += [f"    {to}{h}_{c} = fma(Tx{n}(w{h}), b{c}, {to}{h}_{c})" for h, c, n in tile]
                lines += [f"vstore({to}, j{h} + {c}, {to}{h}_{c})" for h, c, _ in tile]
            loops += [head, indent("\n".join(lines), "    ")]
        return [inside, *loops]

    def stored(self, to: str, source: str, width: int, factor: str) -> list[str]:
        """The group's rows of a result, of the queries there are, and whether what was computed is finite."""
        lines = [f"f = {factor}"]
        for c, n in pieces(width, self.lanes):
            lines.append(f"x{c} = vload({source}, i * {width} + {c}, {n}) * Tx{n}(f)")
            lines.append(f"vstore({to}, (begin + i) * {width} + {c}, x{c})")
            term = f"x{c}" if n == self.lanes else f"{self.vector}(hsum(x{c}))"
            lines.append(f"nonfinite = fma({term}, {self.vector}(0.0), nonfinite)")
        return ["for i in range(0, live):", indent("\n".join(lines), "    "), "flags[g] = hsum(nonfinite)"]

    def chunks(self, body: Sequence[str]) -> list[str]:
        """`body` for every chunk of keys, start to stop."""
        inner = [f"stop = min(start + {self.chunk}, count)", *body]
        return [f"for start in range(0, count, {self.chunk}):", indent("\n".join(inner), "    ")]
