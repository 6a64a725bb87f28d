"""Buffers given by a caller -> arrays, their types and axes checked, with errors that name them as the caller does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import DTypeError, InvariantError
from ..format.expression import Mod
from ..format.format import Format
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.invariants import ElementTypeError, violation, violation_text
from ..tensor.tensor import Tensor
from .sources import is_sparse_source

__all__ = [
    "check_axes",
    "check_compressed",
    "check_integers",
    "check_rows",
    "check_size",
    "check_strided",
    "index_array",
    "renaming_buffers",
    "value_array",
]  # fmt: skip

Names = Mapping[str, str]
"""The caller's names of buffers by the storage's: {"pos[1]": "crow_indices"}."""


def check_strided(number: str, name: str, obj: object) -> None:
    """Raise InvariantError with this number where a buffer is itself sparse."""
    layout = getattr(obj, "layout", None) if buffers.is_torch(obj) else None
    if layout is not None:
        if str(layout) == "torch.strided":
            return
        got = str(layout)
    elif not isinstance(obj, np.ndarray) and (
        not obj.format.is_dense if isinstance(obj, Tensor) else is_sparse_source(obj)
    ):
        got = f"a sparse {type(obj).__name__}"
    else:
        return
    raise violation(
        number, f"{name} is a strided array", "a NumPy array or a strided torch tensor", got, "convert it to one"
    )


def value_array(obj: object, *indices: object) -> Array:
    """`obj` as values: an array whose dtype is supported; numbers in lists are torch's where indices are."""
    check_strided("2.3", "values", obj)
    try:
        out = buffers.as_array(obj)
        buffers.scalar_of(out)
        if not buffers.is_array(obj) and any(map(_is_of_torch, indices)):
            out = buffers.torch_module().tensor(obj)  # in torch's own dtype of numbers
    except DTypeError as error:
        supported = ", ".join(buffers.SCALARS)
        what = "values are of a supported dtype"
        raise _type_error("1.5", what, supported, error, "convert the values to one of these") from error
    return out


def _is_of_torch(x: Any) -> bool:
    """Whether an argument is a tensor of torch's, or a sequence or mapping with one."""
    if isinstance(x, Mapping):
        x = tuple(x.values())
    return bool(buffers.is_torch(x)) or (isinstance(x, tuple | list) and any(map(buffers.is_torch, x)))


def check_index_pair(names: tuple[str, str], given: Sequence[object], pos: Array, crd: Array) -> None:
    """Raise InvariantError where index arrays that a caller gave differ in dtype (1.2), or lie apart (3.5, 3.6)."""
    known = all(x.dtype.itemsize >= 4 and "uint" not in str(x.dtype) for x in (pos, crd))  # of others 1.3 is said
    if known and all(map(buffers.is_array, given)) and buffers.scalar_of(pos) != buffers.scalar_of(crd):
        what = f"{names[0]} and {names[1]} have the same dtype"
        raise violation("1.2", what, pos.dtype, crd.dtype, f"convert {names[1]} to {pos.dtype}")
    for number, name, x in zip(("3.5", "3.6"), names, (pos, crd), strict=True):
        step = x.strides[-1] // x.itemsize if isinstance(x, np.ndarray) else x.stride()[-1]
        if 0 not in x.shape and x.shape[-1] > 1 and step != 1:
            remedy = f"{name}.contiguous()" if buffers.is_torch(x) else f"np.ascontiguousarray({name})"
            raise violation(number, f"{name} is contiguous along its last axis", "stride 1", f"stride {step}", remedy)


def index_array(obj: object, like: Array, name: str, kind: str, has_other_index: bool) -> Array:
    """`obj` as an index buffer of integers; lists become int64, arrays keep their dtype.

    Parameters
    ----------
    obj : what the caller gave
    like : an array of the library and device that are wanted
    name : what the caller calls it
    kind : "pos" or "crd"
    below : whether its type is compared with that of another buffer of indices (1.2), or stands for itself (1.1)
    """
    check_strided("2.1" if kind == "pos" else "2.2", name, obj)
    number = "1.2" if has_other_index else "1.1"
    try:
        if not buffers.is_array(obj):
            host = buffers.as_array(obj)
            obj = host.astype(np.int64) if host.size == 0 or host.dtype.kind in "iu" else host
        return buffers.as_array(obj, like=like)
    except DTypeError as error:
        what = f"{name} is of integers"
        raise _type_error(number, what, "int32 or int64", error, f"convert {name} to int64") from error


def check_integers(buffer: Array, name: str, has_other_index: bool) -> None:
    """Raise InvariantError 1.1, or 1.2 where it has another buffer's type, for indices that are no integers."""
    of_numpy = isinstance(buffer, np.ndarray)
    if (buffer.dtype.kind not in "iu") if of_numpy else ("int" not in str(buffer.dtype)):
        number = "1.2" if has_other_index else "1.1"
        remedy = "coordinates come first, then values" if name == "indices" else f"convert {name} to int64"
        raise violation(number, f"{name} is of integers", "int32 or int64", buffer.dtype, remedy)


def _type_error(number: str, what: str, expected: str, error: DTypeError, help: str) -> ElementTypeError:
    got = str(error).splitlines()[0]
    return ElementTypeError(violation_text(number, what, expected, got, help))


@contextmanager
def renaming_buffers(names: Names, arrays: Mapping[str, Array]) -> Iterator[None]:
    """A context whose InvariantErrors name buffers as the caller does, and positions with the batch's index."""
    try:
        yield
    except InvariantError as error:
        text = str(error)
        renamed_text = _PLACE.sub(lambda match: _callers_name(match, names, arrays), text)
        if renamed_text == text:
            raise
        raise type(error)(renamed_text) from None


_PLACE = re.compile(r"\b((?:pos|crd)\[\d+\])(?:\[(\d+)(?::(\d+))?\])?")


def _callers_name(match: re.Match[str], names: Names, arrays: Mapping[str, Array]) -> str:
    buffer, start, end = match.groups()
    name = names.get(buffer, buffer)
    if start is None:
        return name
    row_match = re.fullmatch(r"(\w+)\[(\d+)\]", name) if buffer in names else None
    leading = [row_match[2]] if row_match else []
    shape = tuple(arrays[buffer].shape) if buffer in arrays else ()
    if len(shape) > 1:
        *batch, index = np.unravel_index(int(start), shape)
        leading += [str(int(x)) for x in batch]
        start, end = str(int(index)), end and str(int(index) + int(end) - int(start))
    position = ", ".join([*leading, start if end is None else f"{start}:{end}"])
    return f"{row_match[1] if row_match else name}[{position}]"


def check_axes(
    format: Format, shape: tuple[int, ...], groups: Mapping[str, Mapping[int, Array]], values: Array
) -> None:
    """Raise InvariantError where buffers of more than one dimension have other axes than format and shape ask for."""
    if len(shape) != format.ndim or any(x < 0 for x in shape):
        return
    extents = [hi - lo for lo, hi in format.level_intervals(shape)]
    batch = tuple(extents[: format.batch_ndim])
    numbers = {"pos": ("3.2", "3.8"), "crd": ("3.3", "3.9")}
    for kind, group in groups.items():
        for level, buffer in group.items():
            got = tuple(buffer.shape)
            if len(got) not in (1, len(batch) + 1):
                what = f"{kind}[{level}] has the batch axes and one more, or one"
                raise violation(numbers[kind][0], what, f"{len(batch) + 1} axes", f"{len(got)}: {got}", "reshape it")
            if len(got) > 1 and got[:-1] != batch:
                what = f"batch axes of {kind}[{level}]"
                raise violation(numbers[kind][1], what, str(batch), str(got[:-1]), "check the shape, or the buffer")
    got = tuple(values.shape)
    stored = [position for position, level in enumerate(format.levels) if level.format.buffers]
    trailing_level = max(stored[-1] + 1 if stored else 0, len(batch))
    trailing = tuple(extents[trailing_level:])
    expected_axes = len(batch) + bool(stored) + len(trailing)
    if len(got) in (0, 1) and len(got) <= max(expected_axes, 1):
        return
    if len(got) != expected_axes:
        raise violation(
            "3.4",
            "values have batch, element, block and dense axes, or one",
            f"{expected_axes} axes",
            str(got),
            "reshape them",
        )
    blocked = [isinstance(level.expression, Mod) for level in format.levels[trailing_level:]]
    # a shape of extent 0 has no blocks, whatever their size
    trailing_got = tuple(
        0 if block and n == 0 and 0 in got else m
        for m, n, block in zip(got[expected_axes - len(trailing) :], trailing, blocked, strict=True)
    )
    if got[: len(batch)] != batch or trailing_got != trailing:
        expected = f"{batch} in front and {trailing} behind"
        raise violation("3.10", "axes of values", expected, str(got), "check the shape, or the values")


def check_compressed(names: Sequence[str], outer: Array, inner: Array, values: Array, blocked: bool) -> None:
    """Raise InvariantError where types, ranks or lengths of a compressed layout's buffers do not agree."""
    check_integers(outer, names[0], False)
    check_integers(inner, names[1], True)
    if outer.ndim < 1:
        raise violation(
            "3.2", f"rank of {names[0]}", "1 axis, or batch axes and 1", "0", "give a sequence of positions"
        )
    if inner.ndim != outer.ndim:
        agree = _same_element_axes(inner, values)
        number, name, expected, got = (
            ("3.2", names[0], inner.ndim, outer.ndim) if agree else ("3.3", names[1], outer.ndim, inner.ndim)
        )
        other = f"{names[1]} and values" if agree else names[0]
        raise violation(number, f"rank of {name}", f"{expected} axes, as {other}", f"{got}", "check both")
    batch = outer.ndim - 1
    fewest_axes = batch + 1 + 2 * blocked
    if values.ndim < fewest_axes:
        what = f"values have {batch} batch axes, one for elements" + (" and two for blocks" if blocked else "")
        raise violation("3.4", what, f"at least {fewest_axes} axes", str(tuple(values.shape)), "check values")
    if tuple(inner.shape[:batch]) != tuple(values.shape[:batch]):
        return  # which of them breaks the batch's extents is found with the size
    count, values_count = int(inner.shape[batch]), int(values.shape[batch])
    if count == values_count:
        return
    unit = "blocks" if blocked else "elements"
    if _last_position(outer) == count:
        what = f"length of values: one entry for each of {names[1]}"
        raise violation("3.10", what, f"{count} {unit}", f"{values_count}", "check the values")
    what = f"length of {names[1]}: one for each of the {unit} of values"
    raise violation("3.9", what, str(values_count), str(count), f"check {names[1]}, or the values")


def _same_element_axes(inner: Array, values: Array) -> bool:
    """Whether coordinates and values have the same batch axes and as many elements."""
    return 0 < inner.ndim <= values.ndim and tuple(inner.shape) == tuple(values.shape[: inner.ndim])


def _last_position(outer: Array) -> int | None:
    """The last position, which is the number of stored elements, where it can be read."""
    if buffers.device_of(outer) != "cpu" or 0 in outer.shape:
        return None
    return int(outer.reshape(-1)[-1])


def check_size(size: tuple[int, ...], batch: int, sparse: int, dense: int) -> None:
    """Raise InvariantError where a size has another rank than the buffers: 3.4 where values have too many axes."""
    if len(size) == batch + sparse + dense:
        return
    expected = f"{batch} batch, {sparse} sparse and {dense} dense extents"
    if batch + sparse <= len(size) < batch + sparse + dense:
        allowed = len(size) - batch - sparse
        what = f"values have as many dense axes as size {size}"
        raise violation("3.4", what, f"{allowed} dense axes", str(dense), "check the values, or size")
    raise violation("3.1", "size agrees with the axes of the buffers", expected, str(size), "check size")


def check_rows(name: str, outer: Array, expected: int) -> None:
    """Raise InvariantError 3.8 where there are not as many positions in each batch."""
    if 0 < expected <= 2**62 and int(outer.shape[-1]) != expected:
        what = f"length of {name}: one more than it has parents"
        raise violation("3.8", what, str(expected), str(int(outer.shape[-1])), f"check size, or {name}")
