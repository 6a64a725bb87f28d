"""A compressed level -> the kernel that sorts the elements of each parent, and sums equal ones.

A key packs the coordinates of the chain. A bucket that is sorted already is read once; one of up to 64 elements is
sorted without branches, by counting the smaller keys of each element in a padded workspace; a longer one by radix
sort. All are stable. Summing shifts the elements that follow, so that the result has no gaps::

    bucket 0: 5 2 2   bucket 1: 1        2 5 1      (two summed)
"""

from __future__ import annotations

from ...ir.loop import Kernel
from ...ir.ops import const
from ..build import Block, Builder, Name
from ..operand import Operand
from .level_runs import Kind, runs
from .ranged import bind_range_number

__all__ = ["KEY_BITS", "NARROW_BITS", "join_kernel", "order_kernel"]

KEY_BITS = 56
"""Bits that the coordinates of a chain may take; the key's other bits number the elements of a short bucket."""
NARROW_BITS = 24
"""Bits that they take at most where keys are `narrow`: 32 bits instead of 64."""

_BUCKETS = """
ka: K[room] = empty
va: T[room] = empty
kb: K[room] = empty
vb: T[room] = empty
ends: i64[256] = empty
for s in range(0, 16):
    ka[s] = s
iota = vload(ka, 0, 16)
stop = b_pos[LAST]
begin: i64 = BEGIN
write: i64 = BEGIN
for p in range(FIRST, LAST):
    first = begin + 0
    end = b_pos[p + 1]
    begin = end
    n = end - first
    sorted: bool = True
    last: i64 = -1
    if n <= 16 and first + 16 <= stop:
        if n > 1:
            sorted = False
            SHORT
    else:
        for e in range(first, end):
            KEY
            sorted = sorted and last < key
            last = key
        if sorted == False:
            if n <= 64:
                RANK
            else:
                DIGITS
    MERGE
"""

_SHORT = """
mine = LANES
mine = select(iota < broadcast(K(n), 16), (mine << broadcast(K(6), 16)) | iota, broadcast(K(LARGEST), 16))
vstore(ka, 0, mine)
for s in range(0, 16):
    va[s] = out[first + s]
RANKED"""
"""Up to 16 elements: the same steps for any number of them, as branches on it would be mispredicted."""

_LOAD = """
for s in range(0, n):
    e = first + s
    KEY
    ka[s] = KEY_OF
    va[s] = out[e]
"""

_RANKED = """
ranks: K = broadcast(K(0), WIDTH)
for t in range(0, COUNT):
    ranks += K(broadcast(K(ka[t]), WIDTH) < mine)
vstore(kb, 0, ranks)
for s in range(0, n):
    e = first + kb[s]
    out[e] = va[s]
    k = ka[s] >> 6
    UNPACK
"""
"""Elements whose keys are `mine`, in vectors of so many: each goes to the place that its rank among them is."""


def _ranked(width: int, count: str) -> str:
    """The text of that for vectors of `width` keys, of which `count` are compared."""
    return _RANKED.lstrip("\n").replace("WIDTH", str(width)).replace("COUNT", count)


_DIGITS = """
shift: i64 = 0
while shift < bits:
    for d in range(0, 256):
        ends[d] = 0
    for s in range(0, n):
        x = (ka[s] >> shift) & 255
        ends[x] = ends[x] + 1
    total: i64 = 0
    for d in range(0, 256):
        total += ends[d]
        ends[d] = total - ends[d]
    for s in range(0, n):
        k = ka[s]
        x = (k >> shift) & 255
        at = ends[x]
        ends[x] = at + 1
        kb[at] = k
        vb[at] = va[s]
    for s in range(0, n):
        ka[s] = kb[s]
        va[s] = vb[s]
    shift += 8
for s in range(0, n):
    e = first + s
    k = ka[s]
    out[e] = va[s]
    UNPACK
"""

_MERGE = """
repeats: i64 = 0
if sorted == False:
    last = -1
    for e in range(first, end):
        KEY
        repeats += i64(key == last)
        last = key
if repeats == 0 and write == first:
    write = end
else:
    last = -1
    for e in range(first, end):
        KEY
        if key == last:
            out[write - 1] += out[e]
        else:
            out[write] = out[e]
            MOVE
            write += 1
        last = key
b_pos[p + 1] = write
"""


def order_kernel(name: str, target: Operand, *, merge: bool, narrow: bool, values: bool, ranged: bool) -> Kernel:
    """Sort each bucket; with `merge` sum equal elements, sizes[0] is then their number; without `values` only pos and
    crd are there yet. `narrow` says that keys have at most NARROW_BITS bits.

    Parameters `lo{l}`, `shift{l}`, `mask{l}` say how level l's coordinate lies in the key of `bits` bits, `room` is the
    longest bucket's length and at least 64. A range of parents, of number `part`, begins at starts[part]; stops[part]
    is where its elements end.
    """
    return _Order(name, target, merge, narrow, values, ranged).kernel()


def join_kernel(name: str, target: Operand) -> Kernel:
    """Close the gaps that summing left between ranges of parents; sizes[0] is the number of elements."""
    assert target.format is not None
    builder = Builder(name)
    chain = next(run for run in runs(target.format) if run.kind is Kind.CHAIN)
    pos = target.pos[chain.first]
    assert pos is not None
    names: dict[str, Name] = {"pos": builder.buffer(f"b_pos{chain.first}", pos, mutable=True, wide=True)}
    names["ranges"] = builder.scalar("ranges")
    for buffer in ("bounds", "starts", "stops"):
        names[buffer] = builder.buffer(buffer, "i64")
    builder.buffer("sizes", "i64", mutable=True)
    arrays = [builder.buffer("b_vals", target.scalar, mutable=True)]
    for at in chain.levels:
        crd = target.crd[at]
        assert crd is not None
        arrays.append(builder.buffer(f"b_crd{at}", crd, mutable=True))

    def move(block: Block) -> None:
        for array in arrays:
            block.run("for e in range(first, stops[r]):\n    x[e - gap] = x[e]", x=array)

    text = """
    end: i64 = stops[0]
    for r in range(1, ranges):
        first = starts[r]
        gap = first - end
        if gap > 0:
            MOVE
            for p in range(bounds[r], bounds[r + 1]):
                pos[p + 1] -= gap
        end = stops[r] - gap
    sizes[0] = end
    """
    builder.top.run(text, MOVE=move, **names)
    return builder.kernel()


class _Order:
    def __init__(self, name: str, target: Operand, merge: bool, narrow: bool, values: bool, ranged: bool) -> None:
        assert target.format is not None
        self.builder, self.ranged = Builder(name, ranged=ranged), ranged
        self.target, self.merge, self.values = target, merge, values
        self.word, self.largest = ("i32", 2**31 - 1) if narrow else ("i64", 2**63 - 1)
        self.chain = next(run for run in runs(target.format) if run.kind is Kind.CHAIN)
        for scalar in ("parents", "room", "bits"):
            self.builder.scalar(scalar)
        for at in self.chain.levels:
            for scalar in ("lo", "shift", "mask"):
                self.builder.scalar(f"{scalar}{at}")
            crd = target.crd[at]
            assert crd is not None
            self.builder.buffer(f"b_crd{at}", crd, mutable=True, wide=True)
        pos = target.pos[self.chain.first]
        assert pos is not None
        self.builder.top.env["b_pos"] = self.builder.buffer(f"b_pos{self.chain.first}", pos, mutable=True, wide=True)
        if values:
            self.builder.top.env["out"] = self.builder.buffer("b_vals", target.scalar, mutable=True)

    def kernel(self) -> Kernel:
        top = self.builder.top
        text = _BUCKETS.replace("BEGIN", "starts[part]" if self.ranged else "0")
        if self.ranged:
            bind_range_number(self.builder)
            self.builder.buffer("starts", "i64")
        top.run(
            self._text(
                text.replace("FIRST", "lo" if self.ranged else "0").replace("LAST", "hi" if self.ranged else "parents")
            ),
            T=self.target.scalar,
            K=self.word,
            KEY=self._key,
            SHORT=self._short,
            RANK=self._rank,
            DIGITS=self._digits,
            MERGE=self._merge,
        )
        if self.ranged:
            top.run("stops[part] = write", stops=self.builder.buffer("stops", "i64", mutable=True))
        elif self.merge:
            top.store(self.builder.buffer("sizes", "i64", mutable=True), const(0), top.expr("write"))
        return self.builder.kernel()

    def _text(self, text: str) -> str:
        """The fragment, without its lines on values where there are none."""
        if self.values:
            return text
        return "\n".join(x for x in text.splitlines() if not any(v in x for v in ("out[", "va[", "vb[", "va:", "vb:")))

    def _key(self, block: Block) -> None:
        """key = the coordinates of element e, packed."""
        text = " | ".join(f"((b_crd{at}[e] - lo{at}) << shift{at})" for at in self.chain.levels)
        block.run(f"key = {text}")

    def _unpack(self, block: Block) -> None:
        """The coordinates of element e, from k."""
        for at in self.chain.levels:
            block.run(f"b_crd{at}[e] = ((k >> shift{at}) & mask{at}) + lo{at}")

    def _short(self, block: Block) -> None:
        lanes = " | ".join(
            f"((K(vload(b_crd{at}, first, 16)) - broadcast(K(lo{at}), 16)) << broadcast(K(shift{at}), 16))"
            for at in self.chain.levels
        )
        text = (
            self._text(_SHORT.replace("RANKED", _ranked(16, "16")))
            .replace("LANES", lanes)
            .replace("LARGEST", str(self.largest))
        )
        if not self.values:
            text = text.replace("for s in range(0, 16):\nranks", "ranks")
        block.run(text, K=self.word, UNPACK=self._unpack)

    def _rank(self, block: Block) -> None:
        block.run(self._text(_LOAD).replace("KEY_OF", "(key << 6) | s"), KEY=self._key)
        for test, width in (("n <= 16", 16), ("16 < n and n <= 32", 32), ("n > 32", 64)):
            text = f"for s in range(n, {width}):\n    ka[s] = {self.largest}\nmine = vload(ka, 0, {width})\n"
            text += self._text(_ranked(width, "n"))
            indented = "\n".join("    " + line for line in text.splitlines())
            block.run(f"if {test}:\n{indented}", UNPACK=self._unpack)

    def _digits(self, block: Block) -> None:
        block.run(self._text(_LOAD).replace("KEY_OF", "key"), KEY=self._key)
        block.run(self._text(_DIGITS), UNPACK=self._unpack)

    def _merge(self, block: Block) -> None:
        def move(inner: Block) -> None:
            for at in self.chain.levels:
                inner.run(f"b_crd{at}[write] = b_crd{at}[e]")

        if self.merge:
            block.run(_MERGE, KEY=self._key, MOVE=move)
