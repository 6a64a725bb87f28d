"""Two sparse matrices with compressed rows -> their product by Gustavson's algorithm, on chunks of rows of equal work.

bound      products per row, which bound the row's elements
count      elements per row, only where the bounds would reserve too much
product    every chunk writes its rows one after the other from where its bound says
close up   the gaps between chunks are closed, and unused memory is released
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import tuning
from ...classes import define, frozen
from ...codegen import cache, pool
from ...codegen.executable import Executable
from ...codegen.plan_cache import PlanCache
from ...compiler.semiring import Semiring
from ...compiler.simplify import simplify
from ...compiler.spgemm import FEW, ProductTypes, bound_kernel, count_kernel, masked_kernel, product_kernel
from ...ir.loop import Kernel
from ...ir.rewrite import with_one_element
from ...storage.buffers import Array, address, itemsize, length, numpy_dtype, scalar_of
from ...storage.iso import element, is_iso
from ...storage.memory import reserve, shrink
from .. import trace
from ..launch import launch
from ..promote import compute_scalar, promote

__all__ = ["BY_TYPES", "KEY_BITS", "SHORT", "Rows", "describe", "executable_of", "multiply", "types_of"]

PARALLEL_WORK = tuning.SPGEMM_PARALLEL
WAVE = tuning.SPGEMM_WAVE
ONE_PASS = tuning.SPGEMM_ONE_PASS
CACHE = tuning.SPGEMM_CACHE
SHORT, LONG = tuning.SPGEMM_SORTED, tuning.SPGEMM_SORTED_WIDE
KEY_BITS = 62

_EXECUTABLES: PlanCache[tuple[str, ProductTypes, str], Executable] = PlanCache("kernels of sparse products")
_FEW = np.zeros(2, np.int32)
BY_TYPES = "for operands of these formats and types"


@frozen
class Rows:
    """A matrix with compressed rows, sorted and without duplicates.

    keys: the number of each row among all rows that there could be, where only some are stored.
    """

    pos: Array
    crd: Array
    values: Array
    columns: int
    keys: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """Rows that are stored."""
        return length(self.pos) - 1

    @property
    def nse(self) -> int:
        return length(self.crd)

    @property
    def scalars(self) -> tuple[str, str, str]:
        """Scalar types of pos, crd and values."""
        return scalar_of(self.pos), scalar_of(self.crd), scalar_of(self.values)


@define
class _Job:
    """A product in progress: its operands, types, mask, and products per row."""

    a: Rows
    b: Rows
    semiring: Semiring
    types: ProductTypes
    mask: Rows | None
    complement: bool
    flops: NDArray[np.int64]
    recalled: bool = True
    """whether all kernels were there"""

    def words(self, **more: int) -> dict[str, int]:
        """The parameters of all kernels by name."""
        m = self.mask
        return {
            "apos": address(self.a.pos),
            "acrd": address(self.a.crd),
            "a": address(element(self.a.values) if self.types.iso[0] else self.a.values),
            "bpos": address(self.b.pos),
            "bcrd": address(self.b.crd),
            "b": address(element(self.b.values) if self.types.iso[1] else self.b.values),
            "mpos": address(_FEW if m is None else m.pos),
            "mcrd": address(_FEW if m is None else m.crd),
            "flops": address(self.flops),
            "columns": self.b.columns,
            "last": max(0, self.a.nse - 1),
            **more,
        }


def types_of(a: Rows, b: Rows, result: str) -> ProductTypes:
    """The types of a product whose values are of type `result`."""
    wide = "i64" in (a.scalars[1], b.scalars[1]) or b.columns >= 2**31
    index = "i64" if wide else "i32"
    return ProductTypes(a.scalars, b.scalars, (index, index), result, iso=(is_iso(a.values), is_iso(b.values)))


def multiply(
    a: Rows, b: Rows, semiring: Semiring, *, library: str = "numpy", mask: Rows | None = None, complement: bool = False
) -> Rows:
    """The product of `a` and `b`, whose rows are numbered as the columns of `a` are.

    mask: only elements that the mask has (its values play no part); complement: only those that it lacks.
    Guarantees: sorted, without duplicates; an element wherever some product was formed, zeros included. Bit for bit
    the same for any number of threads.
    Cost: O(products), and O(columns) of workspace per chunk; rows of the result are sorted in linear time.
    Source: Gustavson, Two fast algorithms for sparse matrices, TOMS 1978; Nagasaka et al., Performance optimization,
    modeling and analysis of sparse matrix-matrix products on multi-core and many-core processors, 2019.
    """
    result = compute_scalar(semiring.result(promote((a.scalars[2], b.scalars[2]), library)))
    types = types_of(a, b, result)
    if mask is not None:
        types = replace(types, mask=mask.scalars[:2])
    flops = np.empty(a.count, np.int64)
    job = _Job(a, b, semiring, types, mask, complement, flops)
    bound = _executable("bound", job)
    launch(bound, _pick(bound, job.words()), _even(a.pos, a.nse))
    if mask is not None and not complement:
        return _masked(job)
    return _product(job)


_KERNELS: dict[str, Callable[[ProductTypes, Semiring], Kernel]] = {
    "bound": lambda types, _: bound_kernel(types),
    "count": lambda types, _: count_kernel(types, False),
    "count complement": lambda types, _: count_kernel(types, True),
    "product": lambda types, semiring: product_kernel(types, semiring, False),
    "complement": lambda types, semiring: product_kernel(types, semiring, True),
    "masked": masked_kernel,
}


def _kernel(kind: str, types: ProductTypes, semiring: Semiring) -> Kernel:
    ones = [name for name, one in zip("ab", types.iso, strict=True) if one]
    return simplify(with_one_element(_KERNELS[kind](types, semiring), ones))


def executable_of(kind: str, types: ProductTypes, semiring: Semiring) -> Executable:
    """One of the kernels of a product."""
    text = semiring.text
    if kind in ("bound", "count", "count complement"):
        text, types = "", replace(types, iso=(False, False))
    key = kind, types, text
    executable = _EXECUTABLES.get(key)
    if executable is None:
        executable = cache.get(f"spgemm {kind} {types} {text}", lambda: _kernel(kind, types, semiring))
        _EXECUTABLES.keep(key, executable)
    return executable


def _executable(kind: str, job: _Job) -> Executable:
    count = _EXECUTABLES.made
    executable = executable_of(kind, job.types, job.semiring)
    job.recalled = job.recalled and _EXECUTABLES.made == count
    return executable


def _pick(executable: Executable, words: dict[str, int]) -> list[int]:
    return [words[p.name] for p in executable.params]


def _even(pos: Array, nse: int) -> tuple[int, ...]:
    """Ranges of rows of about equal numbers of elements."""
    rows, threads = length(pos) - 1, pool.get_num_threads()
    if threads == 1 or nse < PARALLEL_WORK:
        return (0, rows)
    cuts = np.searchsorted(np.asarray(pos), np.linspace(0, nse, threads + 1)[1:-1])
    return (0, *(min(rows, int(c)) for c in cuts), rows)


def _chunks(flops: NDArray[np.int64], heavy: bool) -> list[tuple[int, ...]]:
    """Bounds of chunks of rows by work, in waves; one wave is one launch."""
    rows, work = len(flops), int(flops.sum())
    threads = pool.get_num_threads() if work >= PARALLEL_WORK else 1
    waves = 1 + work // (WAVE * threads)
    if waves == threads == 1:
        return [(0, rows)]
    total = np.cumsum(flops)
    each = threads * (1 if heavy or threads == 1 else 4)
    cuts = np.searchsorted(total, np.linspace(0, work, waves * each + 1)[1:-1])
    marks = [0, *(min(rows, int(c)) for c in cuts), rows]
    return [tuple(marks[w * each : (w + 1) * each + 1]) for w in range(waves)]


def _product(job: _Job) -> Rows:
    plan = _accumulators(job)
    if plan is None:
        return _relabelled(job)
    key = "complement" if job.complement else "product"
    slots = np.zeros(job.a.count + 1, np.int64)
    np.cumsum(np.minimum(job.flops, job.b.columns), out=slots[1:])
    chunks = _chunks(job.flops, job.b.columns * itemsize(job.types.result) > 8 * CACHE)
    if int(slots[-1]) <= ONE_PASS:
        executable = _executable(key, job)
        try:
            return _fill(job, executable, plan, slots, chunks)
        except MemoryError:  # the bounds reserve more than the result takes
            pass
    slots = _counted(job, plan, chunks)
    if int(slots[-1]) >= 2**31:
        job.types = replace(job.types, out=("i64", "i64"))
    executable = _executable(key, job)
    return _fill(job, executable, plan, slots, chunks)


def _accumulators(job: _Job) -> dict[str, int] | None:
    """Which accumulator rows get, and the workspaces' sizes; None where columns must be numbered anew first."""
    columns, size = job.b.columns, itemsize(job.types.result)
    fits = columns * size <= CACHE
    sort_to = SHORT if fits else LONG
    dense_from = sort_to + 1 if fits else max(LONG + 1, columns >> 8)
    flops = job.flops
    most = int(flops.max(initial=0))
    dense = most >= dense_from
    if (dense or job.complement) and columns > 8 * job.b.nse + (1 << 16):
        return None
    others = int(flops.max(initial=0, where=flops < dense_from)) if dense else most
    hashed = min(others, columns) if others > sort_to else 0
    table = 1 << max(6, (2 * hashed - 1).bit_length()) if hashed else 1
    room = max(min(others, sort_to), hashed, 1)
    bits, digits = max(1, (columns - 1).bit_length()), (max(room, table) - 1).bit_length()
    if bits + digits > KEY_BITS:
        return None
    window = min(columns, CACHE // size)
    width = columns if dense else window
    return {
        "width": width, "room": room, "table": table, "bits": bits, "digits": digits,
        "sort_to": sort_to, "dense_from": dense_from, "window": window,
    }  # fmt: skip


def _counted(job: _Job, plan: dict[str, int], chunks: list[tuple[int, ...]]) -> NDArray[np.int64]:
    """pos of the result, by counting the elements of each row."""
    pos = np.zeros(job.a.count + 1, np.int64)
    types, job.types = job.types, replace(job.types, out=("i64", "i64"))
    kind = "count complement" if job.complement else "count"
    executable = _executable(kind, job)
    job.types = types
    words = _pick(executable, job.words(**plan, pos=address(pos), slots=address(pos)))
    for bounds in chunks:
        launch(executable, words, bounds)
    return np.cumsum(pos, out=pos)


def _masked(job: _Job) -> Rows:
    mask = job.mask
    assert mask is not None
    if job.b.columns > 8 * (job.b.nse + mask.nse) + (1 << 16):
        return _relabelled(job)
    slots = np.asarray(mask.pos).astype(np.int64)
    room = int(np.diff(slots).max(initial=0))
    executable = _executable("masked", job)
    chunks = _chunks(job.flops + np.diff(slots), job.b.columns * 8 > 8 * CACHE)
    return _fill(job, executable, {"room": room}, slots, chunks)


def _fill(
    job: _Job, executable: Executable, plan: dict[str, int], slots: NDArray[np.int64], chunks: list[tuple[int, ...]]
) -> Rows:
    """Run a kernel that writes rows from slots on, then close the gaps between chunks."""
    reserved = int(slots[-1])
    index, result = job.types.out[1], job.types.result
    pos = np.zeros(job.a.count + 1, numpy_dtype(index))
    crd, values = reserve(reserved, numpy_dtype(index)), reserve(reserved, numpy_dtype(result))
    words = job.words(pos=address(pos), crd=address(crd), v=address(values), slots=address(slots), **plan)
    packed = _pick(executable, words)
    end = 0
    for bounds in chunks:
        slots[bounds[0]] = end
        launch(executable, packed, bounds)
        end = _close_up(bounds, slots, pos, (crd, values), end)
    np.cumsum(pos, out=pos)
    if end < reserved:
        crd, values = shrink(crd, end), shrink(values, end)
    if trace.active():
        prepared = trace.prepared(BY_TYPES if job.recalled else "")
        nbytes, most = pos.nbytes + crd.nbytes + values.nbytes, max(len(bounds) - 1 for bounds in chunks)
        describe(job.semiring, job.types, job.flops, plan, most, executable, nbytes, prepared)
    return Rows(pos, crd, values, job.b.columns, job.a.keys)


def _close_up(
    bounds: Sequence[int],
    slots: NDArray[np.int64],
    counts: NDArray[Any],
    arrays: tuple[NDArray[Any], ...],
    end: int,
) -> int:
    """Move the rows of each chunk to where those of the one before end; returns where the last ends."""
    for lo, hi in pairwise(bounds):
        n = int(counts[lo + 1 : hi + 1].sum(dtype=np.int64))
        begin = int(slots[lo])
        if n and begin != end:
            for array in arrays:
                size = array.itemsize
                ctypes.memmove(address(array) + end * size, address(array) + begin * size, n * size)
        end += n
    return end


def _relabelled(job: _Job) -> Rows:
    """The product with the columns that occur numbered from 0: there are far fewer than there could be."""
    parts = [np.asarray(job.b.crd)] + ([] if job.mask is None else [np.asarray(job.mask.crd)])
    labels, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    index = numpy_dtype("i32" if len(labels) < 2**31 else "i64")
    split = np.split(numbers.reshape(-1).astype(index), [job.b.nse])
    b = replace(job.b, crd=split[0], columns=len(labels))
    mask = None if job.mask is None else replace(job.mask, crd=split[1], columns=len(labels))
    out = multiply(job.a, b, job.semiring, mask=mask, complement=job.complement)
    return replace(out, crd=labels[out.crd], columns=job.b.columns)


def describe(
    semiring: Semiring, types: ProductTypes, flops: NDArray[np.int64], plan: dict[str, int], chunks: int,
    executable: Executable, allocated: int, prepared: tuple[str, str],
) -> None:  # fmt: skip
    """Record a product for `explain`: on so many chunks of rows."""
    if "sort_to" in plan:
        how = f"up to {plan['sort_to']} products sorted"
        if plan["table"] > 1:
            how += f", up to {plan['dense_from'] - 1} hashed"
        if plan["width"] > plan["window"]:
            how += f", from {plan['dense_from']} on a dense row of {plan['width']:,} with a bitmap"
        how += f", more than {FEW} within {plan['window']:,} columns in a dense window"
    else:
        how = "the mask's row"
    size = itemsize(types.result)
    workspace = min(chunks, pool.get_num_threads()) * (
        plan.get("width", 0) * size + plan.get("room", 0) * (16 + size) + plan.get("table", 0) * (8 + size)
    )
    facts = (
        ("semiring", f"{semiring.name}: add {semiring.add.operation}, multiply {semiring.multiply}"),
        ("products", f"{int(flops.sum()):,} over {len(flops):,} rows"),
        ("accumulates", how),
        ("parallel", f"{chunks} chunk(s) of rows cut by products"),
        prepared,
    )
    trace.note(trace.Step("sparse matrix product, row by row", facts, allocated + workspace, executable))
