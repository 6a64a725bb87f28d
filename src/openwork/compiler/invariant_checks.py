"""Types and properties of a level -> the kernel that checks its index invariants 5.x, in passes that vectorise.

A kernel sets `out[0]` to 1 where an invariant is broken, and stops; `storage.exact` then finds which one and where.
A level is checked together with the singletons directly below it, as one chain: coordinates are compared as tuples.

Order is checked by counting: elements that fall below the one before, anywhere in the buffer, against those at
the first element of a parent, which are allowed to. The counts are equal exactly where every parent is in order.
Sign bits are gathered with `|`: `(v - lo) | (hi - 1 - v)` is negative exactly where v is out of range.
"""

from __future__ import annotations

from textwrap import indent

from ..classes import frozen
from ..ir.loop import Kernel
from ..ir.text import parse

__all__ = ["Chain", "ChainLevel", "kernel", "out_of_order", "out_of_range", "values_of"]


@frozen
class ChainLevel:
    """One level's crd: its scalar type and the properties to hold."""

    scalar: str
    unique: bool
    ordered: bool


@frozen
class Chain:
    """A level and the singletons below it.

    kind : "edges" (pos of parents + 1), "pairs" (pos of 2 * parents), "slots" (`width` per parent),
        "sentinel" (the same, free ones hold -1), "bits", or "one" (nothing but the range of coordinates)
    """

    kind: str
    levels: tuple[ChainLevel, ...]
    pos: str | None = None

    @property
    def key(self) -> str:
        """The key of the chain's kernel."""
        return f"check {self.kind} {self.pos} " + " ".join(f"{x.scalar}{x.unique:d}{x.ordered:d}" for x in self.levels)

    @property
    def ordered(self) -> bool:
        """Whether there is an order to check."""
        return self.kind == "sentinel" or (self.kind not in ("bits", "one") and any(x.ordered for x in self.levels))


def kernel(chain: Chain) -> Kernel:
    """The kernel of a chain.

    Its parameters: pos (where the kind has one), crd0, crd1, ... in order, then `slices`, `parents` and `count`
    (stored coordinates) of one slice, `limit` (most children of a parent), `width`, lo0, hi0, lo1, hi1, ..., out.
    """
    count = len(chain.levels)
    params = [f"pos: {chain.pos}[const]"] if chain.pos else []
    params += [f"crd{k}: {level.scalar}[const]" for k, level in enumerate(chain.levels)]
    params += [f"{name}: i64" for name in ("slices", "parents", "count", "limit", "width")]
    params += [f"{end}{k}: i64" for k in range(count) for end in ("lo", "hi")]
    params.append("out: i64[mut]")
    body = {"edges": _compressed, "pairs": _loose_compressed, "bits": _bitmap}.get(chain.kind, _fixed)(chain)
    text = f"def check_{chain.kind}({', '.join(params)}):\n    for b in range(slices):\n"
    return parse(text + "        first = b * count\n" + indent(body, " " * 8))


_FAIL = "    out[0] = 1\n    return 0\n"


def values_of(chain: Chain, at: str, name: str) -> str:
    """Lines that load the coordinates at a place as v0, v1, ..."""
    return "".join(f"{name}{k} = i64(crd{k}[{at}])\n" for k in range(len(chain.levels)))


def out_of_range(chain: Chain) -> str:
    """A line that gathers the sign bits of coordinates v0, v1, ... that are out of range."""
    low = "v0 + 1" if chain.kind == "sentinel" else "v0 - lo0"
    terms = [f"({low}) | (hi0 - 1 - v0)"]
    terms += [f"(v{k} - lo{k}) | (hi{k} - 1 - v{k})" for k in range(1, len(chain.levels))]
    return f"bad |= {' | '.join(f'({t})' for t in terms)}\n"


def out_of_order(chain: Chain) -> str:
    """A condition: whether (v0, v1, ...) may not follow (u0, u1, ...) inside one parent."""
    if chain.kind == "sentinel":
        violation = "u0 == -1 or v0 <= u0" if chain.levels[0].ordered else "u0 == -1"
        return f"v0 != -1 and ({violation})"
    cases = []
    for k, level in enumerate(chain.levels):
        if level.ordered:
            equal = [f"v{j} == u{j}" for j in range(k)]
            cases.append(" and ".join([*equal, f"v{k} {'<=' if level.unique else '<'} u{k}"]))
    return " or ".join(f"({case})" for case in cases)


def _whole_slice(chain: Chain, starts: str) -> str:
    """All coordinates of a slice as one run, then the starts of parents."""
    if not chain.ordered:
        return (
            "bad: i64 = 0\nfor q in range(count):\n"
            + indent(values_of(chain, "first + q", "v") + out_of_range(chain), "    ")
            + f"if bad < 0:\n{_FAIL}"
        )
    falls = f"total += i64({out_of_order(chain)})\n"
    pair = values_of(chain, "first + q", "v") + values_of(chain, "first + q - 1", "u")
    allowed = pair + falls.replace("total +=", "total -=")
    return (
        "bad: i64 = 0\ntotal: i64 = 0\nfor q in range(min(count, 1)):\n"
        + indent(values_of(chain, "first + q", "v") + out_of_range(chain), "    ")
        + "for q in range(1, count):\n"
        + indent(pair + out_of_range(chain) + falls, "    ")
        + f"if bad < 0:\n{_FAIL}"
        + starts.format(allowed=indent(allowed, " " * 8).lstrip())
        + f"if total != 0:\n{_FAIL}"
    )


def _compressed(chain: Chain) -> str:
    pos = (
        "base = b * (parents + 1)\n"
        f"if i64(pos[base]) != 0 or i64(pos[base + parents]) != count:\n{_FAIL}"
        "wrong: i64 = 0\n"
        "for p in range(parents):\n"
        "    end = i64(pos[base + p + 1])\n"
        "    many = end - i64(pos[base + p])\n"
        "    wrong |= (end | (count - end)) | (many | (limit - many))\n"
        f"if wrong < 0:\n{_FAIL}"
    )
    starts = (
        "for p in range(1, parents):\n"
        "    q = i64(pos[base + p])\n"
        "    if q > 0 and q < i64(pos[base + p + 1]):\n"
        "        {allowed}"
    )
    return pos + _whole_slice(chain, starts)


def _fixed(chain: Chain) -> str:
    starts = "for p in range(1, parents):\n    q = p * width\n    if q < count:\n        {allowed}"
    return _whole_slice(chain, starts)


def _bitmap(chain: Chain) -> str:
    return f"bad: i64 = 0\nfor q in range(count):\n    bad |= 1 - i64(crd0[first + q])\nif bad < 0:\n{_FAIL}"


def _loose_compressed(chain: Chain) -> str:
    rows = (
        "base = b * 2 * parents\n"
        "wrong: i64 = 0\n"
        "for p in range(parents):\n"
        "    begin = i64(pos[base + 2 * p])\n"
        "    end = i64(pos[base + 2 * p + 1])\n"
        "    wrong |= (begin | (count - end)) | ((end - begin) | (limit - (end - begin)))\n"
        "    wrong |= end | (count - begin)\n"
        f"if wrong < 0:\n{_FAIL}"
        "bad: i64 = 0\ntotal: i64 = 0\n"
        "for p in range(parents):\n"
        "    begin = i64(pos[base + 2 * p])\n"
        "    end = i64(pos[base + 2 * p + 1])\n"
        "    for q in range(begin, end):\n"
    )
    rows += indent(values_of(chain, "first + q", "v") + out_of_range(chain), " " * 8)
    if chain.ordered:
        pair = values_of(chain, "first + q", "v") + values_of(chain, "first + q - 1", "u")
        rows += "    for q in range(begin + 1, end):\n"
        rows += indent(pair + f"total += i64({out_of_order(chain)})\n", " " * 8)
    return rows + f"if bad < 0 or total != 0:\n{_FAIL}"
