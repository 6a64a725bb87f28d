"""A storage -> the first violation of the invariants that cost O(1): types, layout, shape, devices, lengths.

Numbers are those of the PyTorch notes on sparse compressed tensors, generalised to every level format:

1.1 pos are integers, and crd of levels without pos      1.2 crd of levels with pos are integers; a singleton's crd has
the type of its parent's         1.3 int32 or int64; crd of a structured level
of at most 256 remainders uint8 too
1.4 values.dtype == dtype        1.5 the dtype is supported
2.1 pos, 2.2 crd, 2.3 values are strided arrays   2.4 the buffers are those of the format's levels
3.1 an extent >= 0 for each dimension             3.2 pos, 3.3 crd, 3.4 values have one dimension
3.5 pos, 3.6 crd, 3.7 values are contiguous       3.8 length of pos   3.9 length of crd   3.10 length of values
3.11 every batch slice is of one length           4.1 CPU or CUDA     4.2 pos, 4.3 crd and values on one device
4.4 all buffers of one library

The 5.x, which cost O(nse), are in `storage.exact` and `compiler.invariant_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import DTypeError, InvariantError
from ..format.level import LevelFormat
from . import buffers, sizes
from .buffers import Array
from .iso import is_iso
from .storage import Storage

__all__ = ["ElementTypeError", "check_layout", "violation", "violation_text"]

_LARGEST = 2**63 - 1
_STAGES: list[Callable[[Storage], None]] = []


class ElementTypeError(InvariantError, DTypeError):
    """A violation of an invariant of types by a dtype that no operation supports."""


def violation(number: str, what: str, expected: str, got: object, help: str) -> InvariantError:
    """The error for a broken invariant."""
    return InvariantError(violation_text(number, what, expected, got, help))


def violation_text(number: str, what: str, expected: str, got: object, help: str) -> str:
    """Its text: the place first, the number of the invariant last."""
    return f"{what}\n  expected: {expected}; got: {got}\n  help: {help} (invariant {number})"


def check_layout(storage: Storage) -> None:
    """Check all invariants but the 5.x.

    Raises InvariantError with the number, the buffer and its value.
    """
    for stage in _STAGES:
        stage(storage)


def _stage(check: Callable[[Storage], None]) -> Callable[[Storage], None]:
    _STAGES.append(check)
    return check


def _named(storage: Storage) -> Iterator[tuple[str, str, int, Array]]:
    """Kind, name, level and buffer of each index buffer that exists."""
    for kind, group in (("pos", storage.pos), ("crd", storage.crd)):
        for level, buffer in enumerate(group):
            if buffer is not None:
                yield kind, f"{kind}[{level}]", level, buffer


@_stage
def _presence(storage: Storage) -> None:
    levels = storage.format.levels
    for kind, group in (("pos", storage.pos), ("crd", storage.crd)):
        if len(group) != len(levels):
            raise violation(
                "2.4", f"{kind} has one entry per level", f"{len(levels)}", len(group), "use None where there is none"
            )
        for at, (level, buffer) in enumerate(zip(levels, group, strict=True)):
            is_stored = kind in level.format.buffers
            if is_stored and buffer is None:
                raise violation(
                    "2.4",
                    f"{kind}[{at}] of a {level.format.name} level",
                    "a buffer",
                    "None",
                    f"give {kind}={{{at}: ...}}",
                )
            if buffer is not None and not is_stored:
                stores = " and ".join(level.format.buffers) or "neither pos nor crd"
                raise violation(
                    "2.4",
                    f"{kind}[{at}] of a {level.format.name} level",
                    f"no buffer ({stores} stored)",
                    "one",
                    f"leave {kind}[{at}] out",
                )


@_stage
def _strided(storage: Storage) -> None:
    kinds = {"pos": "2.1", "crd": "2.2", "values": "2.3"}
    for kind, name, _, buffer in (*_named(storage), ("values", "values", -1, storage.values)):
        layout = getattr(buffer, "layout", None) if buffers.is_torch(buffer) else None
        if not buffers.is_array(buffer) or (layout is not None and str(layout) != "torch.strided"):
            got = layout or type(buffer).__name__
            raise violation(
                kinds[kind],
                f"{name} is a strided array",
                "a NumPy array or a strided torch tensor",
                got,
                "convert it to one",
            )


def _is_narrow(level: LevelFormat, dtype: str) -> bool:
    """Whether coordinates of a level may be of a type that is neither int32 nor int64."""
    return dtype == "uint8" and "u8" in level.index_scalars


@_stage
def _types(storage: Storage) -> None:
    for kind, name, at, buffer in _named(storage):
        dtype, text = buffer.dtype, str(buffer.dtype).removeprefix("torch.")
        level = storage.format.levels[at].format
        if kind == "crd" and level.is_bitmap:
            if text != "bool":
                raise violation("1.1", f"{name} of a bitmap level is bool", "bool", dtype, f"{name}.astype(bool)")
        elif "int" not in text:
            number = "1.2" if kind == "crd" and (storage.pos[at] is not None or (level.is_singleton and at)) else "1.1"
            raise violation(number, f"{name} is of integers", "int32 or int64", dtype, f"convert {name} to int64")
        elif text not in ("int32", "int64") and not (kind == "crd" and _is_narrow(level, text)):
            raise violation(
                "1.3", f"{name} is of int32 or int64", "int32 or int64", dtype, f"convert {name} to int32 or int64"
            )
        if kind == "crd" and level.is_singleton and at:
            parent_crd = storage.crd[at - 1]
            if (
                parent_crd is not None
                and not storage.format.levels[at - 1].format.is_bitmap
                and parent_crd.dtype != dtype
            ):
                raise violation(
                    "1.2", f"{name} has the type of crd[{at - 1}]", str(parent_crd.dtype), dtype, "convert one of them"
                )
    try:
        scalar = buffers.scalar_of(storage.values)
    except DTypeError as error:
        raise violation(
            "1.5", "values are of a supported dtype", ", ".join(buffers.SCALARS), storage.values.dtype, "convert them"
        ) from error
    if scalar != storage.scalar:
        raise violation(
            "1.4", "values have the tensor's dtype", storage.scalar, scalar, "convert the values, or say their dtype"
        )


@_stage
def _shape(storage: Storage) -> None:
    shape, ndim = storage.shape, storage.format.ndim
    if len(shape) != ndim:
        what = f"the shape has an extent for each dimension of {storage.format}"
        raise violation("3.1", what, f"{ndim} extents", f"{len(shape)}: {shape}", "give one extent per dimension")
    for at, extent in enumerate(shape):
        if not isinstance(extent, int) or not 0 <= extent <= _LARGEST:
            raise violation(
                "3.1",
                f"extent {at} of shape {shape}",
                f"an integer from 0 to {_LARGEST}",
                repr(extent),
                "give a valid shape",
            )
    for at, (lo, hi) in enumerate(storage.format.level_intervals(shape)):
        if lo < -_LARGEST or hi > _LARGEST:
            raise violation(
                "3.1", f"coordinates of level {at} for shape {shape}", "64 bits", f"{lo} to {hi}", "use smaller extents"
            )


@_stage
def _ranks(storage: Storage) -> None:
    ranks = {"pos": "3.2", "crd": "3.3", "values": "3.4"}
    gaps = {"pos": "3.5", "crd": "3.6", "values": "3.7"}
    for kind, name, _, buffer in (*_named(storage), ("values", "values", -1, storage.values)):
        if buffer.ndim != 1:
            raise violation(ranks[kind], f"{name} has one dimension", "1", buffer.ndim, f"{name}.reshape(-1)")
        if not buffers.is_contiguous(buffer) and not (kind == "values" and is_iso(buffer)):
            raise violation(
                gaps[kind], f"{name} is contiguous", "elements without gaps", "strides", f"make {name} contiguous"
            )


@_stage
def _devices(storage: Storage) -> None:
    device, library = storage.device, storage.library
    if device.split(":")[0] not in ("cpu", "cuda"):
        raise violation("4.1", "values are on a supported device", "cpu or cuda", device, "move them with .to('cpu')")
    for kind, name, _, buffer in _named(storage):
        if buffers.library_of(buffer) != library:
            raise violation(
                "4.4", f"{name} is of the values' library", library, buffers.library_of(buffer), f"convert {name}"
            )
        if buffers.device_of(buffer) != device:
            number = "4.2" if kind == "pos" else "4.3"
            raise violation(
                number,
                f"{name} is on the values' device",
                device,
                buffers.device_of(buffer),
                f"move {name} to {device}",
            )


@_stage
def _lengths(storage: Storage) -> None:
    slices, intervals = storage.batches, storage.format.level_intervals(storage.shape)
    parents = 1
    per = "" if storage.format.batch_ndim == 0 else f" for each of {slices} batch slices"
    for at in range(storage.format.batch_ndim, len(intervals)):
        level, (lo, hi) = storage.format.levels[at].format, intervals[at]
        functions, counts = level.functions, {"parents": parents, "N": hi - lo}
        pos, crd = storage.pos[at], storage.crd[at]
        if pos is not None and functions.pos_length is not None:
            expected = sizes.evaluate(functions.pos_length, level, counts)
            if buffers.length(pos) != expected * slices:
                what = f"length of pos[{at}]{per}: {functions.pos_length} with {parents} parents"
                raise violation(
                    "3.8", what, str(expected * slices), buffers.length(pos), "check the shape, or the buffer"
                )
        stored = _stored(functions.positions, crd)
        if stored is None:
            parents = sizes.evaluate(functions.positions, level, counts)
            if crd is not None and buffers.length(crd) != parents * slices:
                what = f"length of crd[{at}]{per}: {functions.positions} with {counts['parents']} parents"
                raise violation(
                    "3.9", what, str(parents * slices), buffers.length(crd), "check the shape, or the buffer"
                )
            continue
        if stored % slices if slices else stored:
            raise violation(
                "3.11", f"length of crd[{at}]{per}", f"a multiple of {slices}", stored, "give every slice the same nse"
            )
        parents = stored // slices if slices else 0
    if buffers.length(storage.values) != parents * slices:
        what = f"length of values: one per position of the last level{per}"
        raise violation(
            "3.10", what, str(parents * slices), buffers.length(storage.values), "check the shape, or the buffers"
        )


def _stored(text: str, crd: Any) -> int | None:
    """The number of a level's positions where it follows from its data alone, else None."""
    return buffers.length(crd) if crd is not None and ("pos[" in text or "len(" in text) else None
