"""Buffers under torch's names -> a COO, CSR, CSC, BSR or BSC Tensor over them, as torch's constructors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..format import coo
from ..format import format as parse
from ..runtime.block_order import block_format, flat_blocks
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.invariants import violation
from ..tensor.tensor import Tensor
from .buffer_arguments import (
    check_compressed,
    check_index_pair,
    check_integers,
    check_rows,
    check_size,
    index_array,
    value_array,
)
from .constructors import as_shape, assemble_arrays
from .sources import asarray

__all__ = [
    "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
    "sparse_csr_tensor",
]  # fmt: skip


Options = tuple[object, object, bool, object]
"""dtype, device, requires_grad and pin_memory, as torch's constructors take them."""


def _with_options(t: Tensor, options: Options) -> Tensor:
    dtype, device, requires_grad, pin_memory = options
    result = t if dtype is None else t.astype(dtype, copy=False)
    result = result if device is None else result.to(device)
    for option, asked in (("pin_memory", pin_memory), ("requires_grad", requires_grad)):
        if asked and not buffers.is_torch(result.values):
            raise UnsupportedError(f"{option} needs torch values\n  help: give values as a torch tensor")
    result = result.pin_memory() if pin_memory else result
    if requires_grad:
        result = Tensor._from_storage(result._storage.with_values(result.values.detach().requires_grad_()))
    return result


def _check_layout(kind: str, layout: object) -> None:
    """Raises UnsupportedError where another layout is asked for."""
    if layout is not None and _layout_name(layout) != kind:
        raise UnsupportedError(
            f"sparse_{kind}_tensor: layout={layout}\n  expected: torch.sparse_{kind}"
            "\n  help: sparse_compressed_tensor takes a layout"
        )


def _layout_name(layout: object) -> str:
    return str(layout).removeprefix("torch.").removeprefix("sparse_")


def sparse_coo_tensor(
    indices: object = None,
    values: object = None,
    size: Sequence[int] | None = None,
    *,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
    layout: object = None,
    pin_memory: bool = False,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A COO tensor from coordinates, as torch's function of that name.

    Parameters
    ----------
    indices : coordinates, shape (sparse_dim, nse), or a sequence of an array for each dimension, which are not copied
    values : shape (nse, *dense extents)
    size : the shape; None infers it. Alone, by name or place, it gives a tensor that stores nothing, of float64 unless
        `dtype` is given
    layout : torch's own, which it is
    pin_memory : of torch buffers, see `Tensor.pin_memory`
    is_coalesced : True says that coordinates are sorted and distinct (and checks it); else duplicates are allowed

    Returns
    -------
    Tensor, format COO with as many dense dimensions as the values have axes behind the first

    Raises InvariantError where the buffers break an invariant.

    Cost: checks take O(nse); nothing is copied.
    See also: asarray, assemble, Tensor.coalesce.

    Examples
    --------
    >>> ow.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 1.0], (2, 2)).to_numpy()
    array([[0., 2.],
           [1., 0.]])
    """
    _check_layout("coo", layout)
    options = dtype, device, requires_grad, pin_memory
    if values is None:
        return _with_options(_without_elements(indices, size, dtype), options)
    data = value_array(values, indices)
    rows, nse = _coordinate_rows(indices, data)
    sparse = len(rows)
    if data.ndim < 1:
        raise violation("3.4", "values have an axis for elements", "1 axis or more", "none", "give a sequence")
    if int(data.shape[0]) != nse:
        turned = sparse == int(data.shape[0])
        remedy = "indices.T: it has a row for each dimension, a column for each value" if turned else "check both"
        raise violation("3.10", "values have one entry per column of indices", str(nse), str(tuple(data.shape)), remedy)
    if sparse == 0:
        return _with_options(_sum_of_all(data, size), options)
    dense = data.ndim - 1
    canonical = bool(is_coalesced)
    format = coo(sparse + dense, unique=canonical, ordered=canonical, dense=dense)
    shape = None if size is None else as_shape(size)
    if shape is not None:
        check_size(shape, 0, sparse, dense)
    else:
        shape = (*map(_smallest_extent, rows), *(int(x) for x in data.shape[1:]))
    levels = range(sparse)
    index_groups: dict[str, dict[int, Array]] = {"pos": {}, "crd": {k: rows[k] for k in levels}}
    names = {f"crd[{k}]": f"indices[{k}]" for k in levels}
    t = assemble_arrays(format, shape, index_groups, data, 0, check_invariants, names)
    return _with_options(t, options)


def _without_elements(indices: object, size: Sequence[int] | None, dtype: object) -> Tensor:
    """The COO tensor of a size, given alone, by name or in the place of the indices."""
    if (indices is None) == (size is None):
        raise ShapeError(
            "sparse_coo_tensor: expected indices and values, or a size alone\n  help: sparse_coo_tensor(size=(2, 3))"
        )
    shape = as_shape(indices if size is None else size)
    data = np.empty(0, np.float64 if dtype is None else buffers.numpy_dtype(buffers.scalar_name(dtype)))
    crd = {k: buffers.zeros(0, "i64", data) for k in range(len(shape))}
    return assemble_arrays(coo(len(shape)), shape, {"pos": {}, "crd": crd}, data, 0, True, {})


def _coordinate_rows(indices: Any, data: Array) -> tuple[Sequence[Array], int]:
    """The coordinates of each dimension, rows of one array or arrays of their own, and how many elements there are."""
    if isinstance(indices, tuple | list) and indices and all(buffers.is_array(x) and x.ndim == 1 for x in indices):
        rows = [index_array(x, data, f"indices[{k}]", "crd", k > 0) for k, x in enumerate(indices)]
        lengths = [buffers.length(x) for x in rows]
        if len({*lengths}) > 1:
            got = ", ".join(map(str, lengths))
            raise violation("3.9", "indices have one length", f"{lengths[0]} of each", got, "check the arrays")
        for k, x in enumerate(rows):
            check_integers(x, f"indices[{k}]", k > 0)
        return rows, lengths[0]
    if _is_pair_of_scipy(indices):
        raise ShapeError(
            "sparse_coo_tensor: expected indices and then values; got one pair of values and coordinates, as SciPy's"
            "\n  help: sparse_coo_tensor(coordinates, values, size)"
        )
    array = index_array(indices, data, "indices", "crd", False)
    check_integers(array, "indices", False)
    if array.ndim != 2:
        raise violation(
            "3.3", "indices have axes (sparse_dim, nse)", "2 axes", str(tuple(array.shape)), "nest them once more"
        )
    return [array[k] for k in range(len(array))], int(array.shape[1])


def _is_pair_of_scipy(indices: Any) -> bool:
    """Whether these are values and the coordinates of each dimension, `(values, (rows, columns))`."""
    if not (isinstance(indices, tuple | list) and len(indices) == 2):
        return False
    values, coordinates = ([x] if isinstance(x, int | float | complex) else x for x in indices)
    nested = isinstance(coordinates, tuple | list) and any(
        isinstance(x, tuple | list) or np.ndim(x) for x in coordinates
    )
    return nested and getattr(values, "ndim", 1) == 1 and not any(isinstance(x, tuple | list) for x in values)


def _smallest_extent(row: Array) -> int:
    host = buffers.to_numpy(row)
    return max(int(host.max()) + 1, 0) if host.size else 0


def _sum_of_all(values: Array, size: Sequence[int] | None) -> Tensor:
    """A COO tensor without sparse dimensions -> the dense Tensor of the sum of its values."""
    total = asarray(values.sum(0, dtype=values.dtype))
    if size is not None and as_shape(size) != total.shape:
        raise violation("3.1", "size has the dense extents", str(total.shape), str(as_shape(size)), "check size")
    return total


def _compressed(
    name: str, outer: object, inner: object, values: object, size: Sequence[int] | None, check: bool, layout: object,
    options: Options,
) -> Tensor:  # fmt: skip
    _check_layout(name, layout)
    names = ("crow_indices", "col_indices") if name in ("csr", "bsr") else ("ccol_indices", "row_indices")
    data = value_array(values, outer, inner)
    pos, crd = (
        index_array(outer, data, names[0], "pos", False),
        index_array(inner, data, names[1], "crd", True),
    )
    blocked = name in ("bsr", "bsc")
    check_compressed(names, pos, crd, data, blocked)
    if check:
        check_index_pair(names, (outer, inner), pos, crd)
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
        data, column_major = flat_blocks(data, batch)
        format = block_format(name, block, batch, dense, column_major)
    else:
        format = parse(name, 2 + batch + dense, batch=batch, dense=dense)
    level = batch + 1
    names_of_buffers = {f"pos[{level}]": names[0], f"crd[{level}]": names[1]}
    t = assemble_arrays(format, shape, {"pos": {level: pos}, "crd": {level: crd}}, data, 0, check, names_of_buffers)
    return _with_options(t, options)


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
    layout: object = None,
    pin_memory: bool = False,
) -> Tensor:
    """A CSR tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    crow_indices : positions, shape (*batch, rows + 1)
    col_indices : the column of each stored element, shape (*batch, nse)
    values : shape (*batch, nse, *dense)
    size : the shape; None infers it
    layout, pin_memory : as of `sparse_coo_tensor`

    Returns
    -------
    Tensor in CSR format with batch and dense dimensions as the buffers have them

    Raises InvariantError, with the number of the invariant, where the buffers break one.

    Cost: checks take O(nse); nothing is copied.
    See also: sparse_csc_tensor, assemble, asarray.

    Examples
    --------
    >>> ow.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 1.0], (2, 2)).to_numpy()
    array([[0., 2.],
           [1., 0.]])
    """
    options = dtype, device, requires_grad, pin_memory
    return _compressed("csr", crow_indices, col_indices, values, size, check_invariants, layout, options)


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
    layout: object = None,
    pin_memory: bool = False,
) -> Tensor:
    """A CSC tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    ccol_indices : positions, shape (*batch, columns + 1)
    row_indices : the row of each stored element, shape (*batch, nse)
    values : shape (*batch, nse, *dense)
    size : the shape; None infers it
    layout, pin_memory : as of `sparse_coo_tensor`

    Returns
    -------
    Tensor in CSC format with batch and dense dimensions as the buffers have them

    Raises InvariantError, with the number of the invariant, where the buffers break one.

    Cost: checks take O(nse); nothing is copied.
    See also: sparse_csr_tensor, assemble.

    Examples
    --------
    >>> ow.sparse_csc_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2)).to_numpy()
    array([[0., 2.],
           [1., 0.]])
    """
    options = dtype, device, requires_grad, pin_memory
    return _compressed("csc", ccol_indices, row_indices, values, size, check_invariants, layout, options)


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
    layout: object = None,
    pin_memory: bool = False,
) -> Tensor:
    """A BSR tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    crow_indices : positions, shape (*batch, block rows + 1)
    col_indices : the block column of each stored element, shape (*batch, blocks)
    values : shape (*batch, blocks, block rows, block columns, *dense)
        where blocks lie column-major in memory, the format says so and nothing is copied
    size : the shape; None infers it; it is a multiple of the block size
    layout, pin_memory : as of `sparse_coo_tensor`

    Returns
    -------
    Tensor in BSR format with batch and dense dimensions as the buffers have them

    Raises InvariantError, with the number of the invariant, where the buffers break one.

    Cost: checks take O(nse); nothing is copied.
    See also: sparse_csr_tensor, assemble.

    Examples
    --------
    >>> ow.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]], (2, 2)).to_numpy()
    array([[1., 2.],
           [3., 4.]])
    """
    options = dtype, device, requires_grad, pin_memory
    return _compressed("bsr", crow_indices, col_indices, values, size, check_invariants, layout, options)


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
    layout: object = None,
    pin_memory: bool = False,
) -> Tensor:
    """A BSC tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    ccol_indices : positions, shape (*batch, block columns + 1)
    row_indices : the block row of each stored element, shape (*batch, blocks)
    values : shape (*batch, blocks, block rows, block columns, *dense)
        where blocks lie column-major in memory, the format says so and nothing is copied
    size : the shape; None infers it; it is a multiple of the block size
    layout, pin_memory : as of `sparse_coo_tensor`

    Returns
    -------
    Tensor in BSC format with batch and dense dimensions as the buffers have them

    Raises InvariantError, with the number of the invariant, where the buffers break one.

    Cost: checks take O(nse); nothing is copied.
    See also: sparse_bsr_tensor, assemble.

    Examples
    --------
    >>> ow.sparse_bsc_tensor([0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]], (2, 2)).to_numpy()
    array([[1., 2.],
           [3., 4.]])
    """
    options = dtype, device, requires_grad, pin_memory
    return _compressed("bsc", ccol_indices, row_indices, values, size, check_invariants, layout, options)


def sparse_compressed_tensor(
    compressed_indices: object,
    plain_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    layout: object,
    dtype: object = None,
    device: object = None,
    requires_grad: bool = False,
    check_invariants: bool = True,
    pin_memory: bool = False,
) -> Tensor:
    """A CSR, CSC, BSR or BSC tensor from its buffers, as torch's function of that name.

    Parameters
    ----------
    compressed_indices, plain_indices, values, size : as of the function of the layout
    layout : a layout of torch, torch.sparse_csr say, or a name: "csr", "csc", "bsr", "bsc"
    dtype, device, requires_grad, check_invariants, pin_memory : as of the function of the layout

    Returns
    -------
    Tensor in the format of `layout`

    Raises InvariantError where the buffers break one, UnsupportedError for another layout.

    Cost: checks take O(nse); nothing is copied.
    See also: sparse_csr_tensor, assemble.

    Examples
    --------
    >>> ow.sparse_compressed_tensor([0, 1, 2], [1, 0], [2.0, 1.0], (2, 2), layout="csc").to_numpy()
    array([[0., 1.],
           [2., 0.]])
    """
    make = _COMPRESSED.get(_layout_name(layout))
    if make is None:
        raise UnsupportedError(
            f"sparse_compressed_tensor: layout={layout}\n  supported: {', '.join(_COMPRESSED)}"
            "\n  help: sparse_coo_tensor, or assemble for any format"
        )
    return make(
        compressed_indices, plain_indices, values, size, dtype=dtype, device=device, requires_grad=requires_grad,
        check_invariants=check_invariants, pin_memory=pin_memory,
    )  # fmt: skip


_COMPRESSED: dict[str, Callable[..., Tensor]] = {
    "csr": sparse_csr_tensor, "csc": sparse_csc_tensor, "bsr": sparse_bsr_tensor, "bsc": sparse_bsc_tensor,
}  # fmt: skip
