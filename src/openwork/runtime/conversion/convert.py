"""A storage and a format -> the storage in that format, by the plan of `compiler.conversion`, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, Literal

import numpy as np

from ... import tuning
from ...codegen.plan_cache import PlanCache
from ...compiler.conversion import Stage, Strategy, plan
from ...compiler.conversion.append import Pass
from ...compiler.conversion.scatter import scatter_kernel
from ...errors import FormatError
from ...format import build, coo
from ...format.expression import interval
from ...format.format import Format
from ...ir.loop import Kernel
from ...storage.buffers import itemsize, length, scalar_of, strided_address, to_numpy
from ...storage.storage import Storage
from .. import trace
from ..gradient_hook import differentiable
from ..moves import Moved, identity, moved, tested
from ..promote import HALF
from .append import append_walk, passes
from .assembly import Assembly, SlotsFull, full
from .batch import batched
from .bucket import bucket
from .conversion_kernels import stage_kernels
from .copy_blocks import move_blocks
from .group import group
from .iso import moved_iso
from .radix_sort import sort
from .ranges import of_walk
from .unit_dims import LIMIT, is_long, with_unit_dims, without_unit_dims

__all__ = ["convert", "describe", "plan"]

FEW = tuning.BUCKETS_FEW
SPARSE = tuning.BUCKETS_PER_ELEMENT


def convert(storage: Storage, format: Format, *, share: bool = False) -> Storage:
    """The same tensor in another format.

    Parameters
    ----------
    storage : any format, of the target's rank
    format : the target
    share : buffers that do not change (CSR and COO: crd of the columns, values) may be those of `storage`

    Returns
    -------
    Storage, shape, scalar type, fill value and library of `storage`; index buffers of its width, or int64 where that
    is too narrow. The storage itself where it has the format already.

    Guarantees: the same dense array; explicit zeros stay (of an all-dense source, the elements that differ from the
    fill value); duplicates are summed where the target is unique, and stay where it is nonunique.
    Cost: O(nse + positions of the target), O(nse * bits) where a sort is needed; see `plan(source, target)`.
    Raises FormatError where ell, structured or singleton levels cannot hold the elements, ShapeError where batches
    hold different numbers of them.
    """
    if storage.format == format:
        return storage
    if (storage._signature or storage.signature) < 0 and not format.is_dense:  # iso
        one = moved_iso(storage, lambda marks: convert(marks, format, share=share))
        if one is not None:
            return one
    statement = "convert", format, format.dims, storage.fill_value if storage.format.is_dense else None
    little = moved((storage,), statement, lambda: _conversion(storage, format))
    if little is not None:
        return _sharing(storage, little) if share else little
    result: Storage = _convert(storage, format, share=share)
    return result


def _conversion(storage: Storage, format: Format) -> Moved | None:
    """A conversion as a move, of a dense source of its elements that are not the fill value, where that is 0."""
    ndim = len(storage.shape)
    if storage.format.is_dense:
        if storage.fill_value or storage.scalar in (*HALF, "c64", "c128"):
            return None
        index_map = tested(ndim, "a_vals[leaf]" if storage.scalar == "bool" else "a_vals[leaf] != 0")
    else:
        index_map = identity(ndim)
    return Moved((index_map,), storage.shape, format) if len(format.dims) == ndim else None


def _sharing(storage: Storage, result: Storage) -> Storage:
    """A conversion's result over the buffers of its source that it has anew: where elements keep their positions."""
    key = storage.signature, result.format.number
    shared_levels = _shared.get(key)
    if shared_levels is None:
        shared_levels = _shared.keep(key, _shared_levels(storage, result.format))
    if shared_levels is False:
        return result
    crd = list(result.crd)
    for at, level in shared_levels.items():
        own, given = crd[at], storage.crd[level]
        crd[at] = given if scalar_of(own) == scalar_of(given) else own
    return Storage(
        result.shape, result.format, result.scalar, result.fill_value, result.pos, tuple(crd), storage.values
    )


def _shared_levels(storage: Storage, format: Format) -> dict[int, int] | Literal[False]:
    """The levels whose crd a conversion leaves as it is, and those of the source; False where elements move."""
    stages = plan(storage.format, format).stages
    if len(stages) != 1 or stages[0].strategy is not Strategy.APPEND:
        return False
    levels = stage_kernels(storage, stages[0])[0].shared_levels
    return False if levels is None else levels


_shared: PlanCache[Any, dict[int, int] | Literal[False]] = PlanCache("buffers that conversions share")


@differentiable(lambda storage, *_: (storage.values,))
def _convert(storage: Storage, format: Format, *, share: bool) -> Storage:
    if storage.format == format:
        return storage
    if trace.active():
        with trace.record():
            result = _converted(storage, format, share)
        describe("a tensor", storage, result)
        return result
    return _converted(storage, format, share)


def describe(name: str, s: Storage, result: Storage) -> None:
    """Add a conversion to the record that `explain` reads."""
    shared = {strided_address(b) for b in s.buffers}
    nbytes = sum(length(b) * itemsize(scalar_of(b)) for b in result.buffers if strided_address(b) not in shared)
    facts = (("from", trace.shown(s.format)), ("to", trace.shown(result.format)), ("moves", f"{s.nse:,} elements"))
    trace.note(trace.Step(f"conversion of {name}", facts, nbytes))


def _converted(storage: Storage, format: Format, share: bool) -> Storage:
    """The plan's stages, one after the other."""
    if len(storage.shape) > LIMIT and is_long(storage.shape, storage.format, format) and not format.is_dense:
        fewer = without_unit_dims(storage)
        return with_unit_dims(_converted(fewer, coo(len(fewer.shape)), share), storage.shape)
    result = storage
    try:
        for stage in _stages(storage, format):
            if stage.strategy is Strategy.APPEND:
                result = _append(result, stage, owned=share or result is not storage)
            else:
                result = _STRATEGIES[stage.strategy](result, stage)
    except SlotsFull as error:
        raise _does_not_fit(storage, format, error) from None
    if format.batch_ndim:
        return batched(result, format)
    return result if result.format.dims == format.dims else replace_format(result, format)


def _stages(storage: Storage, format: Format) -> tuple[Stage, ...]:
    """The plan's stages for this tensor; the single wide stage where the first level has far more coordinates."""
    stages = plan(storage.format, format)
    if stages.wide is not None:
        lo, hi = interval(stages.wide.target.levels[0].expression, storage.shape)
        if hi - lo > max(FEW, SPARSE * length(storage.values)):
            return (stages.wide,)
    return stages.stages


def replace_format(s: Storage, format: Format) -> Storage:
    """The storage under an equal format, whose dimensions may have other names."""
    return Storage(s.shape, format, s.scalar, s.fill_value, s.pos, s.crd, s.values)


def _copy(storage: Storage, stage: Stage) -> Storage:
    """The values of a dense format in the order of another one: a strided copy by the array library."""

    def order(format: Format) -> list[int]:
        return [level.expression.index for level in format.levels]  # type: ignore[union-attr]

    source_order, target_order = order(storage.format), order(stage.target)
    if source_order == target_order:
        values = storage.values
    else:
        array = storage.values.reshape([storage.shape[d] for d in source_order])
        axes = [source_order.index(d) for d in target_order]
        if isinstance(array, np.ndarray):
            values = np.ascontiguousarray(array.transpose(axes)).reshape(-1)
        else:
            values = array.permute(axes).contiguous().view(-1)
    none = (None,) * stage.target.nlevels
    return Storage(storage.shape, stage.target, storage.scalar, storage.fill_value, none, none, values)


def _scatter(storage: Storage, stage: Stage) -> Storage:
    """A scatter into a target whose every position is computed."""
    out = Assembly.begin(storage, stage)
    kernels = out.kernels
    if plain := not any(part for level in stage.target.levels for part in level.format.buffers):
        size = prod([hi - lo for lo, hi in out.spans])
        out.put_values(full(size, out.scalar, out.fill_value, out.like))
    else:
        out.allocate({})

    ranges = of_walk(storage) if stage.unique else None
    ranged = ranges is not None

    def build(task: Pass) -> Callable[[], Kernel]:
        return lambda: scatter_kernel(
            "scatter", kernels.stream, kernels.target, task, unique=stage.unique, ranged=ranged
        )

    tasks = passes(out)
    for task in tasks:
        kernels.run(_SCATTER[task], build(task), out.words, ranges)
    return out.storage() if plain else out.finish({})


_SCATTER = {task: f"scatter {task.value}" for task in Pass}


def _append(storage: Storage, stage: Stage, owned: bool = False) -> Storage:
    """Append the elements, whose walk is in the target's order; buffers of an `owned` storage may be reused."""
    if stage.hoist and not length(storage.values):  # tile by tile of an extent that nothing bounds; no order is needed
        stage = replace(stage, hoist=False)
    out = Assembly.begin(storage, stage)
    count = None if stage.drop or out.kernels.padded else length(storage.values)
    return append_walk(out, storage, count, owned)


def _does_not_fit(storage: Storage, format: Format, error: SlotsFull) -> Exception:
    """The error of a parent with too many elements: its coordinates, and the width that would hold all."""
    level = format.levels[error.level]
    levels = [*format.levels[: error.level], build.compressed(level.expression), *format.levels[error.level + 1 :]]
    loose = _converted(storage, Format(format.dims, tuple(levels)), False)
    counts = np.diff(to_numpy(loose.pos[error.level]))
    longest = int(counts.max())
    out = Assembly.begin(storage, plan(storage.format, format).stages[-1])
    run = next(r for r in out.runs if r.first == error.level)
    place = out.place(run, error.parent)
    arguments = (longest, *level.format.arguments[1:])
    remedy = "compressed" if level.format.is_singleton else f"{level.format.name}({', '.join(map(str, arguments))})"
    return FormatError(
        f"conversion to {format}: {place} has {int(counts[error.parent])} elements\n"
        f"  expected: at most {run.width}, as level {error.level} is {level.format}\n"
        f"  help: use {remedy}; the fullest has {longest}"
    )


_STRATEGIES: dict[Strategy, Callable[[Storage, Stage], Storage]] = {
    Strategy.COPY: _copy,
    Strategy.SCATTER: _scatter,
    Strategy.BUCKET: bucket,
    Strategy.GROUP: group,
    Strategy.BLOCKS: lambda storage, stage: move_blocks(storage, stage, convert),
    Strategy.SORT: sort,
}
