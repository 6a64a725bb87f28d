"""Buffers of any format -> a Tensor over them: `assemble`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..format import format as parse
from ..format.format import Format
from ..integers import extents, integer
from ..runtime.check import check as check_storage
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.infer import infer_shape
from ..storage.invariants import violation
from ..storage.scalars import given_number
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, resolve_format
from .buffer_arguments import (
    check_axes,
    check_integers,
    index_array,
    renaming_buffers,
    value_array,
)
from .sources import asarray

__all__ = ["as_shape", "asarray", "assemble", "assemble_arrays"]

Buffers = Mapping[int, object] | Sequence[object | None]


def as_shape(shape: object, operation: str = "size") -> tuple[int, ...]:
    """`shape` as a tuple of Python integers, whatever their sign.

    Raises ExtentError, a ShapeError, where it is no sequence of integers.
    """
    return extents(shape, operation, negative=True)


def assemble(
    format: str | Format,
    shape: Sequence[int] | None,
    *,
    pos: Buffers | None = None,
    crd: Buffers | None = None,
    values: object,
    fill_value: object = 0,
    check: bool = True,
) -> Tensor:
    """A tensor over given buffers.

    Parameters
    ----------
    format : the format, its text, or its name
    shape : extents of the dimensions; None infers the smallest that the buffers fit
    pos, crd : index buffers by level, int32 or int64; `pos` of an outermost compressed level may be left out
    values : the values; one dimension, or with batch, block and dense axes
    fill_value : the value of every unspecified element
    check : False skips the checks that cost O(nse)

    Returns
    -------
    Tensor over these buffers: nothing is copied that is contiguous and of one library

    Raises InvariantError, with the number of the invariant, where the buffers do not fit together; ShapeError where
    a shape that was left out does not follow.

    Cost: checks take O(nse); nothing is copied.
    See also: asarray, sparse_csr_tensor.

    Examples
    --------
    >>> ow.assemble("csr", (2, 3), pos={1: [0, 2, 3]}, crd={1: [0, 2, 1]}, values=[1.0, 2.0, 3.0]).nse
    3
    """
    sizes = None if shape is None else as_shape(shape, "assemble")
    parsed = resolve_format(format, len(sizes)) if sizes is not None else _parsed(format)
    data = value_array(values, pos, crd)
    positions = _index_arrays("pos", pos, parsed, data, {})
    groups = {"pos": positions, "crd": _index_arrays("crd", crd, parsed, data, positions)}
    return assemble_arrays(parsed, sizes, groups, data, fill_value, check, {})


def assemble_arrays(
    format: Format,
    sizes: tuple[int, ...] | None,
    index_groups: dict[str, dict[int, Array]],
    data: Array,
    fill_value: object,
    check: bool,
    names: dict[str, str],
) -> Tensor:
    """Arrays of one library -> the Tensor over them; errors name the buffers by `names`."""
    arrays = {f"{kind}[{level}]": buffer for kind, group in index_groups.items() for level, buffer in group.items()}
    with renaming_buffers(names, arrays):
        _add_root_pos(format, index_groups, data)
        if sizes is None:
            sizes = infer_shape(format, index_groups["pos"], index_groups["crd"], data)
        check_axes(format, sizes, index_groups, data)
        groups = [
            tuple(None if k not in g else buffers.flat(g[k]) for k in range(len(format.levels)))
            for g in index_groups.values()
        ]
        scalar = buffers.scalar_of(data)
        fill = given_number(fill_value, scalar, "assemble: fill_value", "give one number that the dtype holds")
        storage = Storage(sizes, format, scalar, fill, groups[0], groups[1], buffers.flat(data))
        storage.adopt()
        check_storage(storage, check)
    return Tensor._from_storage(storage)


def _parsed(format: str | Format) -> Format:
    return format if isinstance(format, Format) else parse(format)


def _index_arrays(
    kind: str, buffers_given: Buffers | None, format: Format, like: Array, positions: dict[int, Array]
) -> dict[int, Array]:
    pairs = buffers_given.items() if isinstance(buffers_given, Mapping) else enumerate(buffers_given or ())
    out: dict[int, Array] = {}
    for level, buffer in pairs:
        level = integer(level, "assemble", f"a level of {kind}")
        if not 0 <= level < len(format.levels):
            what = f"{kind}[{level!r}] belongs to a level of {format}"
            raise violation(
                "2.4", what, f"a level from 0 to {len(format.levels) - 1}", repr(level), "number levels from 0"
            )
        if buffer is not None:
            name, level_format = f"{kind}[{level}]", format.levels[level].format
            has_other_index = kind == "crd" and (level in positions or (level_format.is_singleton and level > 0))
            out[level] = index_array(buffer, like, name, kind, has_other_index)
            if not level_format.is_bitmap:
                check_integers(out[level], name, has_other_index)
    return out


def _add_root_pos(format: Format, index_groups: dict[str, dict[int, Array]], like: Array) -> None:
    """Add the pos of an outermost compressed level, [0, nse], where it was left out."""
    if (
        format.levels
        and format.levels[0].format.is_compressed
        and 0 not in index_groups["pos"]
        and 0 in index_groups["crd"]
    ):
        crd = index_groups["crd"][0]
        scalar = "i32" if str(crd.dtype).endswith("int32") else "i64"
        edges = np.array((0, len(crd)), np.int32 if scalar == "i32" else np.int64)
        index_groups["pos"][0] = buffers.as_array(edges, like=like)
