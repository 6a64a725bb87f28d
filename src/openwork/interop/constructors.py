"""Buffers -> Tensors: `assemble` for any format, and torch's constructors (`sparse_coo_tensor` and the others)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UnsupportedError
from ..format import coo
from ..format import format as parse
from ..format.format import Format
from ..integers import extents, integer
from ..runtime.block_order import block_format, flat_blocks
from ..runtime.check import check as check_storage
from ..runtime.dynamo import leave_alone
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.infer import infer_shape
from ..storage.invariants import violation
from ..storage.storage import Storage
from ..tensor.tensor import Tensor, python_scalar, resolve_format
from .buffer_arguments import (
    check_axes,
    check_compressed,
    check_integers,
    check_rows,
    check_size,
    index_array,
    renaming_buffers,
    value_array,
)
from .sources import asarray

__all__ = [
    "asarray", "assemble", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
    "sparse_csr_tensor",
]  # fmt: skip

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

    Examples
    --------
    >>> assemble("csr", (2, 3), pos={1: [0, 2, 3]}, crd={1: [0, 2, 1]}, values=[1.0, 2.0, 3.0]).nse
    3
    """
    sizes = None if shape is None else as_shape(shape, "assemble")
    parsed = resolve_format(format, len(sizes)) if sizes is not None else _parsed(format)
    data = value_array(values)
    positions = _index_arrays("pos", pos, parsed, data, {})
    groups = {"pos": positions, "crd": _index_arrays("crd", crd, parsed, data, positions)}
    return _assemble_arrays(parsed, sizes, groups, data, fill_value, check, {})


def _assemble_arrays(
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
        fill = python_scalar(fill_value, scalar)
        storage = Storage(sizes, format, scalar, fill, groups[0], groups[1], buffers.flat(data))
        check_storage(storage, check)
    return Tensor._from_storage(storage.adopted())


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
        index_groups["pos"][0] = buffers.as_array([0, len(crd)], scalar, like)


def _with_options(t: Tensor, dtype: object, device: object, requires_grad: bool) -> Tensor:
    if buffers.is_torch(t.values):
        leave_alone()
    result = t if dtype is None else t.astype(dtype, copy=False)
    result = result if device is None else result.to(device)
    if requires_grad:
        if not buffers.is_torch(result.values):
            raise UnsupportedError("requires_grad needs torch values\n  help: give values as a torch tensor")
        result = Tensor._from_storage(result._storage.with_values(result.values.detach().requires_grad_()))
    return result


def sparse_coo_tensor(
    indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A COO tensor from coordinates, as torch's function of that name.

    Parameters
    ----------
    indices : coordinates, shape (sparse_dim, nse)
    values : shape (nse, *dense extents)
    size : the shape; None infers it
    is_coalesced : True says that coordinates are sorted and distinct (and checks it); else duplicates are allowed

    Returns
    -------
    Tensor, format COO with as many dense dimensions as the values have axes behind the first

    Raises InvariantError where the buffers break an invariant.
    """
    data = value_array(values)
    rows = index_array(indices, data, "indices", "crd", False)
    check_integers(rows, "indices", False)
    if rows.ndim != 2:
        raise violation(
            "3.3", "indices have axes (sparse_dim, nse)", "2 axes", str(tuple(rows.shape)), "nest them once more"
        )
    sparse, nse = (int(x) for x in rows.shape)
    if data.ndim < 1:
        raise violation("3.4", "values have an axis for elements", "1 axis or more", "none", "give a sequence")
    if int(data.shape[0]) != nse:
        raise violation(
            "3.10", "values have one entry per column of indices", str(nse), str(tuple(data.shape)), "check both"
        )
    if sparse == 0:
        return _with_options(_sum_of_all(data, size), dtype, device, requires_grad)
    dense = data.ndim - 1
    canonical = bool(is_coalesced)
    format = coo(sparse + dense, unique=canonical, ordered=canonical, dense=dense)
    shape = None if size is None else as_shape(size)
    if shape is not None:
        check_size(shape, 0, sparse, dense)
    else:
        shape = (*_smallest_extents(rows, sparse), *(int(x) for x in data.shape[1:]))
    levels = range(sparse)
    index_groups: dict[str, dict[int, Array]] = {"pos": {}, "crd": {k: rows[k] for k in levels}}
    names = {f"crd[{k}]": f"indices[{k}]" for k in levels}
    t = _assemble_arrays(format, shape, index_groups, data, 0, check_invariants, names)
    return _with_options(t, dtype, device, requires_grad)


def _smallest_extents(rows: Array, sparse: int) -> list[int]:
    host = buffers.to_numpy(rows)
    return [max(int(host[k].max()) + 1, 0) if host.shape[1] else 0 for k in range(sparse)]


def _sum_of_all(values: Array, size: Sequence[int] | None) -> Tensor:
    """A COO tensor without sparse dimensions -> the dense Tensor of the sum of its values."""
    total = asarray(values.sum(0) if len(values) else values.reshape(0, *values.shape[1:]).sum(0))
    if size is not None and as_shape(size) != total.shape:
        raise violation("3.1", "size has the dense extents", str(total.shape), str(as_shape(size)), "check size")
    return total


def _compressed(
    name: str, outer: object, inner: object, values: object, size: Sequence[int] | None, options: dict[str, Any]
) -> Tensor:
    names = ("crow_indices", "col_indices") if name in ("csr", "bsr") else ("ccol_indices", "row_indices")
    data = value_array(values)
    pos, crd = (
        index_array(outer, data, names[0], "pos", False),
        index_array(inner, data, names[1], "crd", True),
    )
    blocked = name in ("bsr", "bsc")
    check_compressed(names, pos, crd, data, blocked)
    batch = pos.ndim - 1
    dense = data.ndim - batch - 1 - 2 * blocked
    shape = None if size is None else as_shape(size)
    if shape is not None:
        check_size(shape, batch, 2, dense)
    block = (int(data.shape[batch + 1]), int(data.shape[batch + 2])) if blocked else (1, 1)
    if 0 in block:
        raise violation("3.10", "blocks have elements", "extents of 1 or more", str(block), "check the axes of values")
    if shape is not None:
        _check_compressed_size(name, names[0], shape, batch, block, pos)
    if blocked:
        data, column_major = flat_blocks(data, batch, dense)
        format = block_format(name, block, batch, dense, column_major)
    else:
        format = parse(name, 2 + batch + dense, batch=batch, dense=dense)
    check, level = options.pop("check_invariants"), batch + 1
    names_of_buffers = {f"pos[{level}]": names[0], f"crd[{level}]": names[1]}
    t = _assemble_arrays(format, shape, {"pos": {level: pos}, "crd": {level: crd}}, data, 0, check, names_of_buffers)
    return _with_options(t, **options)


def _check_compressed_size(
    name: str, outer: str, shape: tuple[int, ...], batch: int, block: tuple[int, int], pos: Array
) -> None:
    extents = shape[batch : batch + 2]
    if any(n % b for n, b in zip(extents, block, strict=True)):
        what = f"size {shape} is a multiple of the block size"
        raise violation("3.1", what, f"multiples of {block}", str(extents), "assemble() allows edge blocks")
    compressed = 0 if name in ("csr", "bsr") else 1
    if tuple(pos.shape[:batch]) == shape[:batch]:
        check_rows(outer, pos, extents[compressed] // block[compressed] + 1)


def sparse_csr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> Tensor:
    """A CSR tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    crow_indices : positions, shape (*batch, rows + 1)
    col_indices : the column of each stored element, shape (*batch, nse)
    values : shape (*batch, nse, *dense)
    size : the shape; None infers it

    Raises InvariantError, with the number of the invariant, where the buffers break one.
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "check_invariants": check_invariants}
    return _compressed("csr", crow_indices, col_indices, values, size, options)


def sparse_csc_tensor(
    ccol_indices: object,
    row_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> Tensor:
    """A CSC tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    ccol_indices : positions, shape (*batch, columns + 1)
    row_indices : the row of each stored element, shape (*batch, nse)
    values : shape (*batch, nse, *dense)
    size : the shape; None infers it

    Raises InvariantError, with the number of the invariant, where the buffers break one.
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "check_invariants": check_invariants}
    return _compressed("csc", ccol_indices, row_indices, values, size, options)


def sparse_bsr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> Tensor:
    """A BSR tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    crow_indices : positions, shape (*batch, block rows + 1)
    col_indices : the block column of each stored element, shape (*batch, blocks)
    values : shape (*batch, blocks, block rows, block columns, *dense)
        where blocks lie column-major in memory, the format says so and nothing is copied
    size : the shape; None infers it; it is a multiple of the block size

    Raises InvariantError, with the number of the invariant, where the buffers break one.
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "check_invariants": check_invariants}
    return _compressed("bsr", crow_indices, col_indices, values, size, options)


def sparse_bsc_tensor(
    ccol_indices: object,
    row_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
) -> Tensor:
    """A BSC tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    ccol_indices : positions, shape (*batch, block columns + 1)
    row_indices : the block row of each stored element, shape (*batch, blocks)
    values : shape (*batch, blocks, block rows, block columns, *dense)
        where blocks lie column-major in memory, the format says so and nothing is copied
    size : the shape; None infers it; it is a multiple of the block size

    Raises InvariantError, with the number of the invariant, where the buffers break one.
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "check_invariants": check_invariants}
    return _compressed("bsc", ccol_indices, row_indices, values, size, options)
