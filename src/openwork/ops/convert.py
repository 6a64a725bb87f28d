"""Conversion of any format to any other: the plan of `compiler.conversion`, run stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..compiler.conversion import Plan, Stage, Strategy, plan
from ..compiler.conversion.append import Pass, append_kernel
from ..compiler.conversion.scatter import scatter_kernel
from ..compiler.conversion.stream import Stream, Walked
from ..compiler.conversion.target import Kind, Run
from ..errors import FormatError
from ..format.format import Format, Level
from ..format.levels import Compressed
from ..storage.buffers import Array, length, to_numpy
from ..storage.storage import Storage
from .assembly import Assembly, SlotsFull, _is_zero, operand_of, run_kernel, source_arguments
from .batches import batched

__all__ = ["convert", "plan"]


def convert(storage: Storage, format: Format) -> Storage:
    """The same tensor in another format.

    Parameters
    ----------
    storage : any format, of the target's rank
    format : the target

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
    stages = plan(storage.format, format).stages
    result = storage
    try:
        for stage in stages:
            result = _STRATEGIES[stage.strategy](result, stage)
    except SlotsFull as error:
        raise _does_not_fit(storage, format, error) from None
    if format.batch_ndim:
        return batched(result, format)
    return replace_format(result, format)


def replace_format(s: Storage, format: Format) -> Storage:
    """The storage under an equal format, whose dimensions may have other names."""
    return Storage(s.shape, format, s.scalar, s.fill_value, s.pos, s.crd, s.values)


def _copy(storage: Storage, stage: Stage) -> Storage:
    """Both plain dense: a strided copy by the library."""

    def order(format: Format) -> list[int]:
        return [level.expression.index for level in format.levels]  # type: ignore[union-attr]

    mine, theirs = order(storage.format), order(stage.target)
    if mine == theirs:
        values = storage.values
    else:
        array = storage.values.reshape([storage.shape[d] for d in mine])
        axes = [mine.index(d) for d in theirs]
        if isinstance(array, np.ndarray):
            values = np.ascontiguousarray(array.transpose(axes)).reshape(-1)
        else:
            values = array.permute(axes).contiguous().view(-1)
    none = (None,) * stage.target.nlevels
    return Storage(storage.shape, stage.target, storage.scalar, storage.fill_value, none, none, values)


def _scatter(storage: Storage, stage: Stage) -> Storage:
    """Every position of the target is computed."""
    out = Assembly.begin(storage, stage)
    source = operand_of(storage)
    out.allocate({})
    arguments = source_arguments(storage) | out.arguments()
    for task in _passes(stage, out):
        key = out.key(f"scatter {task.value}", source)
        build = _builder(scatter_kernel, "scatter", Walked(source, stage.drop), out, task, unique=stage.unique)
        run_kernel(key, build, arguments)
    return out.finish({})


def _passes(stage: Stage, out: Assembly) -> tuple[Pass, ...]:
    """CLEAR goes first where elements are added to places that hold a fill value that is not zero."""
    adds = not stage.unique and out.runs and out.runs[-1].kind is Kind.LOCATED
    return (Pass.CLEAR, Pass.FILL) if adds and not _is_zero(out.fill_value) else (Pass.FILL,)


def _builder(kernel: Callable[..., Any], name: str, stream: Stream, out: Assembly, task: Pass, **flags: bool) -> Callable[[], Any]:
    return lambda: kernel(name, stream, out.operand, task, **flags)


def _append(storage: Storage, stage: Stage) -> Storage:
    """The walk is in the target's order."""
    out = Assembly.begin(storage, stage)
    source = operand_of(storage)
    count = None if stage.drop or _is_padded(source.format, source.ragged) else length(storage.values)
    return append(out, Walked(source, stage.drop), source_arguments(storage), out.key("append", source), count)


def _is_padded(format: Format | None, ragged: bool) -> bool:
    """Whether some values belong to no element."""
    assert format is not None
    return ragged or any(level.format.functions.padded for level in format.levels)


def append(out: Assembly, stream: Stream, arguments: dict[str, Any], key: str, count: int | None) -> Storage:
    """Assemble from elements in the target's order; `count` is their number where it is known."""
    stage = out.stage
    flags = {"unique": stage.unique, "keep": stage.keep}
    chains = [run for run in out.runs if run.kind is Kind.CHAIN]
    totals = np.zeros(max(len(out.runs), 1), np.int64)
    arguments = arguments | {"sizes": totals, **out.arguments()}
    sizes: dict[Run, int] = {}
    one_each = out.runs[-1].kind is Kind.CHAIN and (stage.unique or stage.keep)
    if len(chains) == 1 and one_each and count is not None:
        sizes[chains[0]] = count
    elif chains:
        build = _builder(append_kernel, "append_count", stream, out, Pass.COUNT, **flags)
        out.check(run_kernel(f"{key} count", build, arguments), totals)
        sizes = {run: int(totals[number]) for number, run in enumerate(out.runs) if run.kind is Kind.CHAIN}
    out.allocate(sizes)
    arguments |= out.arguments()
    for task in _passes(stage, out):
        build = _builder(append_kernel, f"append_{task.value}", stream, out, task, **flags)
        out.check(run_kernel(f"{key} {task.value}", build, arguments), totals)
    return out.finish(sizes)


def _does_not_fit(storage: Storage, format: Format, error: SlotsFull) -> Exception:
    """The error of a parent with too many elements: its place, and the width that would hold all."""
    level = format.levels[error.level]
    levels = [*format.levels[: error.level], Level(level.expression, Compressed()), *format.levels[error.level + 1 :]]
    loose = convert(storage, Format(format.dims, tuple(levels)))
    counts = np.diff(to_numpy(loose.pos[error.level]))
    most = int(counts.max())
    out = Assembly.begin(storage, plan(storage.format, format).stages[-1])
    run = next(r for r in out.runs if r.first == error.level)
    place = out.place(run, error.parent)
    name = level.format.name
    remedy = f"ell({most})" if name == "ell" else "compressed" if name == "singleton" else f"structured({most}, {level.format.arguments[-1]})"
    return FormatError(
        f"conversion to {format}: {place} has {int(counts[error.parent])} elements\n"
        f"  expected: at most {run.width}, as level {error.level} is {level.format}\n"
        f"  help: use {remedy}; the fullest has {most}"
    )


def _bucket(storage: Storage, stage: Stage) -> Storage:
    return _sort(storage, stage)


def _sort(storage: Storage, stage: Stage) -> Storage:
    from .sorting import sort

    return sort(storage, stage)


_STRATEGIES: dict[Strategy, Callable[[Storage, Stage], Storage]] = {
    Strategy.COPY: _copy,
    Strategy.SCATTER: _scatter,
    Strategy.APPEND: _append,
    Strategy.BUCKET: _bucket,
    Strategy.SORT: _sort,
}
_ = (Array, Plan, replace)
