"""A scalar type -> kernels of attention in register tiles, as loop IR, over the union of neighbouring queries' keys.

    for g in range(lo, hi):                          # 2 vectors of queries, of a batch and head
        for p in range(pos[g], pos[g + 1], 4):       # 4 keys that any of them sees, whatever the mask is
            s[p] = scale * q . k[crd[p]]             # 4 x 2 vectors in registers, a lane for each query
            s[p] = s[p] if bits[p] else -inf         # where not all of them see all 4
        for p in chunks of keys:                     # whose values stay in the first cache
            w = exp(s - max(s))
            out += w[p] * v[crd[p]]                  # 4 queries x 2 vectors in registers

A lane for each query makes maxima and sums those of vectors, and keys are read once for all queries of a group. The
gradient of the queries has the same loops; those of keys and values too, of the transposed mask, a lane for each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

__all__ = ["KEYS", "LANES", "lanes_of_a_group", "tiled"]

LANES = {"f32": 8, "f64": 4}
"""Lanes of the vectors: 32 bytes."""
KEYS = 4
"""Keys of a register tile; a group has a multiple of as many."""
_CHUNK = 64
"""Keys whose values stay in the first cache."""
_ROWS = 4
"""Queries of a register tile of results."""


def lanes_of_a_group(scalar: str) -> int:
    """The queries whose keys are united: two vectors."""
    return 2 * LANES[scalar]


def tiled(kind: str, scalar: str) -> str:
    """The text of the kernel "forward", "rows" (the gradient of queries) or "columns" (of keys and values)."""
    t = _Tiles(LANES[scalar])
    if kind == "forward":
        return t.forward()
    if kind == "rows":
        return t.gradient("dq: T[mut]", ("q", "grad"), ("k", "v"), {"dq": ("h", "k", "d", "scale")})
    results = {"dk": ("h", "q", "d", "scale"), "dv": ("w", "grad", "e", "T(1.0)")}
    return t.gradient("dk: T[mut], dv: T[mut]", ("k", "v"), ("q", "grad"), results)


_PARAMETERS = (
    "lo: i64, hi: i64, pos: i64[const], crd: i32[const], bits: i32[const], q: T[const], k: T[const], v: T[const]"
)
_NUMBERS = "n: i64, m: i64, rows: i64, longest: i64, groups: i64, d: i64, e: i64, scale: T"
_GROUPS = """for g in range(lo, hi):
    place = g // groups
    base = place * m
    begin = place * n + g % groups * {size}
    live = min({size}, (place + 1) * n - begin)
    row = g % rows
    first = pos[row]
    count = pos[row + 1] - first
"""


class _Tiles:
    """The texts for vectors of so many lanes; a group has two of them."""

    def __init__(self, lanes: int) -> None:
        self.lanes, self.size = lanes, 2 * lanes
        self.halves = (0, lanes)
        self.vector, self.bits = f"Tx{lanes}", f"i32x{lanes}"

    def text(self, parameters: str, spaces: dict[str, str], body: Sequence[str]) -> str:
        """A kernel over groups of rows."""
        allocated = "".join(f"    {name}: T[{extent}] = empty\n" for name, extent in spaces.items())
        groups = _GROUPS.format(size=self.size) + indent("\n".join(body), "    ")
        return f"def attend({_PARAMETERS}, {parameters}, {_NUMBERS}):\n{allocated}" + indent(groups, "    ")

    def tile(self, name: str) -> list[tuple[str, int, int]]:
        """The vectors of a register tile by name, key and first lane."""
        return [(f"{name}{i}_{c}", i, c) for i in range(KEYS) for c in self.halves]

    def load(self, buffer: str, index: str) -> str:
        return f"vload({buffer}, {index}, {self.lanes})"

    def forward(self) -> str:
        """out and lse of groups of queries."""
        size = str(self.size)
        spaces = {"w": f"longest * {size}", "a": f"d * {size}", "o": f"e * {size}", "part": size, "total": size}
        body = [self.transposed("a", "q", "d", "scale"), *self.scores(), *self.weights()]
        return self.text("out: T[mut], lse: T[mut]", spaces, body)

    def transposed(self, to: str, source: str, width: str, factor: str) -> str:
        """`to` = factor * the group's rows of `source`, a vector of rows for each column."""
        return f"""for i in range(0, {self.size}):
    at = (begin + min(i, live - 1)) * {width}
    for x in range(0, {width}):  # nounroll novector
        {to}[x * {self.size} + i] = {source}[at + x] * {factor}"""

    def products(self, to: str, source: str, by_lane: str, width: str) -> list[str]:
        """`to`{key}_{lane} = source[crd[p + key]] . by_lane[lane], in registers."""
        lines = [f"{to}j{i} = (base + i64(crd[first + p + {i}])) * {width}" for i in range(KEYS)]
        lines += [f"{name}: {self.vector} = {self.vector}(0.0)" for name, _, _ in self.tile(to)]
        lines.append(f"for x in range(0, {width}):  # novector nounroll")
        lines += [f"    y{c} = {self.load(by_lane, f'x * {self.size} + {c}')}" for c in self.halves]
        for i in range(KEYS):
            lines.append(f"    x{i} = {self.vector}({source}[{to}j{i} + x])")
            lines += [f"    {to}{i}_{c} = fma(x{i}, y{c}, {to}{i}_{c})" for c in self.halves]
        return lines

    def sees(self, bits: str, c: int) -> str:
        """Which of the lanes from c on have their bit."""
        return f"bit({self.bits}(({bits}) >> {c}), ramp({self.bits}(0)))"

    def masked(self) -> list[str]:
        """-inf for the scores of keys that a lane does not see."""
        of_all = " & ".join(f"bits[first + p + {i}]" for i in range(KEYS))
        lines = [f"if ({of_all}) != {(1 << self.size) - 1}:"]
        for name, i, c in self.tile("s"):
            seen = self.sees(f"bits[first + p + {i}]", c)
            lines.append(f"    {name} = {name} if {seen} else {self.vector}(-inf)")
        return lines

    def scores(self) -> list[str]:
        """The scores of all the group's keys, the largest of each query, and which queries see any key."""
        body = [*self.products("s", "k", "a", "d"), *self.masked()]
        body.append("seen = seen | " + " | ".join(f"bits[first + p + {i}]" for i in range(KEYS)))
        for name, i, c in self.tile("s"):
            body.append(f"best{c} = {name} if {name} > best{c} else best{c}")
            body.append(f"vstore(w, (p + {i}) * {self.size} + {c}, {name})")
        start = [f"best{c}: {self.vector} = {self.vector}(-inf)" for c in self.halves]
        return ["seen: i32 = 0", *start, f"for p in range(0, count, {KEYS}):", indent("\n".join(body), "    ")]

    def weights(self) -> list[str]:
        """The exponentials and the weighted sums of values by chunks of keys, then the results of the queries."""
        zero, one, lines = f"{self.vector}(0.0)", f"{self.vector}(1.0)", []
        for c in self.halves:
            lines.append(f"any{c} = {self.sees('seen', c)}")
            lines += [f"most{c} = best{c} if any{c} else {zero}", f"sums{c}: {self.vector} = {zero}"]
        chunk = [f"for u in range(start * {self.size}, stop * {self.size}, {self.size}):"]
        for c in self.halves:
            chunk.append(f"    y{c} = exp({self.load('w', f'u + {c}')} - most{c})")
            chunk += [f"    vstore(w, u + {c}, y{c})", f"    sums{c} += y{c}"]
        chunk += self.sums("o", "w", "v", "e", "p")
        lines += [self.cleared("o", "e"), *_chunks(chunk)]
        for c in self.halves:
            lines.append(f"vstore(part, {c}, {one} / sums{c} if any{c} else {zero})")
            lines.append(f"vstore(total, {c}, most{c} + log(sums{c}) if any{c} else {zero})")
        lines.append("for i in range(0, live):\n    lse[begin + i] = total[i]")
        return [*lines, _stored("out", "o", "e", "part[i]")]

    def gradient(
        self, names: str, lanes: tuple[str, str], keys: tuple[str, str], results: dict[str, tuple[str, str, str, str]]
    ) -> str:
        """P = exp(scale * q . k - lse), dS = P * (grad . v - delta) and their products with other operands.

        lanes, keys : the operands, of d features and of e, whose rows are the group's and those united
        results : name -> P ("w") or dS ("h"), the operand it is multiplied with, its width, what the sum is times
        """
        spaces = dict.fromkeys("wh", f"{_CHUNK * self.size}") | {"a": f"d * {self.size}", "b": f"e * {self.size}"}
        spaces |= {f"o{name}": f"{width} * {self.size}" for name, (_, _, width, _) in results.items()}
        body = [self.transposed("a", lanes[0], "d", "scale"), self.transposed("b", lanes[1], "e", "T(1.0)")]
        is_by_lane = lanes[0] == "q"
        if is_by_lane:
            spaces |= {"shift": str(self.size), "less": str(self.size)}
            body.append(f"for i in range(0, {self.size}):\n    shift[i] = lse[begin + min(i, live - 1)]")
            body.append("    less[i] = delta[begin + min(i, live - 1)]")
        chunk = [f"for p in range(start, stop, {KEYS}):", indent("\n".join(self.slopes(keys, is_by_lane)), "    ")]
        for name, (weights, source, width, _) in results.items():
            chunk += self.sums(f"o{name}", weights, source, width, "(p - start)")
            body.append(self.cleared(f"o{name}", width))
        body += _chunks(chunk)
        body += [_stored(name, f"o{name}", width, factor) for name, (_, _, width, factor) in results.items()]
        parameters = f"lse: T[const], grad: T[const], delta: T[const], {names}"
        return self.text(parameters, spaces, body)

    def slopes(self, keys: tuple[str, str], is_by_lane: bool) -> list[str]:
        """P and dS of a register tile, into the workspaces w and h."""

        def of(by_lane: str, by_key: str, i: int, c: int) -> str:
            return self.load(by_lane, str(c)) if is_by_lane else f"{by_key}[base + i64(crd[first + p + {i}])]"

        lines = [*self.products("s", keys[0], "a", "d"), *self.masked()]
        for name, i, c in self.tile("s"):
            lines.append(f"p{i}_{c} = exp({name} - {of('shift', 'lse', i, c)})")
            lines.append(f"vstore(w, (p - start + {i}) * {self.size} + {c}, p{i}_{c})")
        lines += self.products("g", keys[1], "b", "e")
        for name, i, c in self.tile("g"):
            slope = f"p{i}_{c} * ({name} - {of('less', 'delta', i, c)})"
            lines.append(f"vstore(h, (p - start + {i}) * {self.size} + {c}, {slope})")
        return lines

    def cleared(self, name: str, width: str) -> str:
        return f"for i in range(0, {width} * {self.size}):\n    {name}[i] = T(0.0)"

    def sums(self, to: str, weights: str, source: str, width: str, at: str) -> list[str]:
        """to[lane] += weights[at, lane] * source[crd[p]] over a chunk's p, `_ROWS` lanes and two vectors at once."""
        rest = f"""for c in range({width} - {width} % {self.lanes}, {width}):
    for lane in range(i, i + {_ROWS}):
        z: T = {to}[lane * {width} + c]
        for p in range(start, stop):  # novector nounroll
            z += {weights}[{at} * {self.size} + lane] * {source}[(base + i64(crd[first + p])) * {width} + c]
        {to}[lane * {width} + c] = z"""
        pairs, last = f"{width} - {width} % {self.size}", f"{width} - {width} % {self.lanes}"
        texts = [
            f"for c in range(0, {pairs}, {self.size}):",
            self.sum_tile((to, weights, source, width), at, self.halves),
            f"for c in range({pairs}, {last}, {self.lanes}):",
            self.sum_tile((to, weights, source, width), at, (0,)),
            rest,
        ]
        return [f"for i in range(0, {self.size}, {_ROWS}):", indent("\n".join(texts), "    ")]

    def sum_tile(self, names: tuple[str, str, str, str], at: str, columns: tuple[int, ...]) -> str:
        """Columns c and on of the sums for lanes i to i + 3, in registers."""
        to, weights, source, width = names
        tile = [(h, c, f"(i + {h}) * {width} + c + {c}") for h in range(_ROWS) for c in columns]
        lines = [f"o{h}_{c}: {self.vector} = {self.load(to, place)}" for h, c, place in tile]
        lines += [
            "for p in range(start, stop):  # novector nounroll",
            f"    j = (base + i64(crd[first + p])) * {width} + c",
        ]
        lines += [f"    b{c} = {self.load(source, f'j + {c}')}" for c in columns]
        for h in range(_ROWS):
            lines.append(f"    w{h} = {self.vector}({weights}[{at} * {self.size} + i + {h}])")
            lines += [f"    o{h}_{c} = fma(w{h}, b{c}, o{h}_{c})" for c in columns]
        lines += [f"vstore({to}, {place}, o{h}_{c})" for h, c, place in tile]
        return indent("\n".join(lines), "    ")


def _chunks(body: Sequence[str]) -> list[str]:
    """`body` for every chunk of keys, start to stop."""
    inner = [f"stop = min(start + {_CHUNK}, count)", *body]
    return [f"for start in range(0, count, {_CHUNK}):", indent("\n".join(inner), "    ")]


def _stored(to: str, source: str, width: str, factor: str) -> str:
    """The group's rows of a result, of the queries or keys there are."""
    value = f"{source}[i * {width} + c] * {factor}"
    return (
        f"for i in range(0, live):\n    for c in range(0, {width}):\n        {to}[(begin + i) * {width} + c] = {value}"
    )
