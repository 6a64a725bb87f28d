"""Products of two sparse matrices by hash tables: a group of items for each row, twice, to count and to write.

    C[i, k] = A[i, j] * B[j, k]      all elements of row i of A, one after the other; of the row j of B each item takes
                                     every so many; an item looks k up in the mask's row, where there is one, finds
                                     its place in the table by compare and swap, and adds there by an atomic

A row of at most `LOCAL` / 2 products has its table in local memory, a longer one in global memory, of the least power
of two that is twice its products. Between the passes a scan gives each row's place in the result; a row's elements are
written in the order of the table.
"""

from __future__ import annotations

import re
from textwrap import indent

from ..compiler.semiring import Semiring
from ..runtime.promote import compute_scalar
from .adapter import Memory
from .coordinates import Elements
from .kernels import Number, each, whole
from .tensor import DeviceTensor
from .vector import cast, chosen, fill, gather, joined, scan

__all__ = ["hashed_product", "takes"]

LOCAL = 512
_ATOMIC = {
    "x + y": "add", "x * y": "mul", "min(x, y)": "min", "max(x, y)": "max", "x | y": "bor", "x & y": "band",
    "x ^ y": "bxor",
}  # fmt: skip
_EITHER = ("x", "y")
"""Sums that are any one of the products: that of the item which finds the place."""


def takes(ring: Semiring, scalar: str) -> bool:
    """Whether a semiring's sums are atomics of a type, or any one product."""
    name = _ATOMIC.get(ring.add.operation)
    in_words = scalar != "c128" or name == "add"  # of 128 bits, parts are added
    return ring.add.operation in _EITHER or (name is not None and in_words)


_ROW = """
s: i64[ITEMS] = local
row = rows[group]
SETUP
k: i64 = item
while k < size:
    keys[base + k] = 0
    CLEAR
    k += ITEMS
barrier()
for p in range(a_pos[row], a_pos[row + 1]):
    j = i64(a_crd[p])
    q: i64 = b_pos[j] + item
    while q < b_pos[j + 1]:
        key = i64(b_crd[q]) + 1
        at: i64 = (key * 40503) & (size - 1)
        looking: i64 = 1
        new: i64 = 0
        WANTED
        while looking > 0:
            old = swap(keys[base + at], 0, key)
            if old == 0 or old == key:
                looking = 0
                new = i64(old == 0)
            else:
                at = (at + 1) & (size - 1)
        ADD
        q += ITEMS
barrier()
mine: i64 = 0
for c in range(item * (size // ITEMS), (item + 1) * (size // ITEMS)):
    mine += i64(keys[base + c] > 0)
s[item] = mine
barrier()
before: i64 = 0
for c in range(0, item):
    before += s[c]
FINISH
"""
_COUNTED = "if item == ITEMS - 1:\n    counts[group] = before + mine"
_WRITTEN = """
to: i64 = starts[group] + before
for c in range(item * (size // ITEMS), (item + 1) * (size // ITEMS)):
    if keys[base + c] > 0:
        i_out[to] = row
        k_out[to] = keys[base + c] - 1
        out[to] = sums[base + c]
        to += 1
""".strip("\n")


_WANTED = """
low: i64 = i64(m_pos[row])
high: i64 = i64(m_pos[row + 1])
while low < high:
    middle = (low + high) // 2
    if i64(m_crd[middle]) < key - 1:
        low = middle + 1
    else:
        high = middle
wanted: i64 = 0
if low < m_pos[row + 1]:
    wanted = i64(i64(m_crd[low]) == key - 1)
looking = WHERE
""".strip("\n")


def hashed_product(
    a: DeviceTensor, b: DeviceTensor, ring: Semiring, scalar: str, mask: DeviceTensor | None = None,
    complement: bool = False,
) -> Elements:  # fmt: skip
    """The product of two matrices in CSR over a semiring that `takes`, in the order of rows by tables.

    mask : in CSR, whose elements alone, or with `complement` all others, are computed
    """
    device, compute = a.adapter, compute_scalar(scalar)
    sizes = fill(device, a.shape[0], 0, "i64")
    parts = {"a_pos": a.pos_buffers[1], "a_crd": a.crd_buffers[1], "b_pos": b.pos_buffers[1]}
    reads: dict[str, Memory | Number | int] = {name: m for name, m in parts.items() if m is not None}
    least = max(2, device.grid.items)
    body = """
many: i64 = 0
for p in range(a_pos[t], a_pos[t + 1]):
    j = i64(a_crd[p])
    many += i64(b_pos[j + 1]) - i64(b_pos[j])
LIMIT
size: i64 = least
while size < 2 * many:
    size = size * 2
y[t] = size if many > 0 else 0
""".strip("\n")
    masked: dict[str, Memory | Number | int] = {}
    if mask is not None:
        masked = {"m_pos": _stored(mask.pos_buffers[1]), "m_crd": _stored(mask.crd_buffers[1])}
    limit = masked.get("m_pos") if not complement else None
    body = body.replace("LIMIT", "many = min(many, i64(m_pos[t + 1]) - i64(m_pos[t]))" if limit else "")
    each(device, a.shape[0], body, {"y": sizes}, least=least, **reads, **({"m_pos": limit} if limit else {}))
    reads |= {"b_crd": _stored(b.crd_buffers[1]), **masked}
    wanted = "" if mask is None else _WANTED.replace("WHERE", "1 - wanted" if complement else "wanted")
    local = max(LOCAL, least)
    found = [
        _rows(a, b, ring, compute, sizes, reads, local, text, wanted)
        for text in ("i64(x[t] > 0) & i64(x[t] <= local)", "i64(x[t] > local)")
    ]
    i, k, values = (joined([part[n] for part in found]) for n in range(3))
    return Elements((a.shape[0], b.shape[1]), [i, k], cast(values, scalar))


def _stored(buffer: Memory | None) -> Memory:
    assert buffer is not None
    return buffer


def _rows(
    a: DeviceTensor, b: DeviceTensor, ring: Semiring, compute: str, sizes: Memory,
    reads: dict[str, Memory | Number | int], local: int, which: str, wanted: str,
) -> tuple[Memory, Memory, Memory]:  # fmt: skip
    """Rows, columns and values of the rows whose tables' sizes are so."""
    device = a.adapter
    marks = device.memory(sizes.length, "i64")
    each(device, sizes.length, f"y[t] = {which}", {"y": marks}, x=sizes, local=local)
    rows = chosen(marks)
    reads = {**reads, "rows": rows, "sizes": sizes}
    spills = which.endswith("> local)")
    tables: dict[str, Memory] = {}
    setup = f"keys: i64[{local}] = local\nsums: T_zero[{local}] = local\nbase: i64 = 0\nsize = sizes[row]"
    if spills:
        places, total = scan(gather(sizes, rows))
        tables = {"keys": device.memory(total, "i64"), "sums": device.memory(total, compute)}
        reads |= {"places": places}
        setup = "base = places[group]\nsize = sizes[row]"
    counts = device.memory(rows.length, "i64")
    n = rows.length * device.grid.items
    counting = setup.replace(f"sums: T_zero[{local}] = local\n", "")
    keys = {name: m for name, m in tables.items() if name == "keys"}
    whole(device, n, _text(counting, "", wanted, "", _COUNTED), {"counts": counts, **keys}, **reads)
    starts, total = scan(counts)
    i, k, out = device.memory(total, "i64"), device.memory(total, "i64"), device.memory(total, compute)
    product = ring.times("T_out(a_values[p])", "T_out(b_values[q])")
    if ring.add.operation in _EITHER:
        add = f"if new > 0:\n    sums[base + at] = T_out({product})"
    else:
        add = f"atomic('{_ATOMIC[ring.add.operation]}', sums[base + at], T_out({product}))"
        add = f"if wanted == {int('1 - wanted' not in wanted)}:\n    {add}" if wanted else add
    reads |= {"starts": starts, "zero": Number(ring.add.identity_of(compute), compute)}
    used = {"a_values": a.memory, "b_values": b.memory}
    reads |= {name: m for name, m in used.items() if name in product}
    text = _text(setup, "sums[base + k] = zero", wanted, add, _WRITTEN)
    whole(device, n, text, {"i_out": i, "k_out": k, "out": out, **tables}, **reads)
    return i, k, out


def _text(setup: str, clear: str, wanted: str, add: str, finish: str) -> str:
    lines = {"SETUP": setup, "CLEAR": clear, "WANTED": wanted, "ADD": add, "FINISH": finish}
    text = _ROW.strip("\n")
    for word, part in lines.items():
        at = re.search(rf"^( *){word}$", text, re.MULTILINE)
        assert at is not None
        text = text.replace(at[0], indent(part or "pass", at[1]))
    return text
