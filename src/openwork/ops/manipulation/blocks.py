"""Blocks -> one matrix: side by side, one above the other, in a grid, along the diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ...errors import ShapeError, UnsupportedError
from ...format.format import Format
from ...provided import provided
from ...runtime.conversion.remap import IndexMap, on_host, remap
from ...runtime.gradient_hook import differentiable
from ...runtime.operation import operation
from ...runtime.promote import promote
from ...storage.buffers import dtype_of
from ...storage.storage import Storage
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..axes import as_tensor
from ..creation import zeros
from ..result_format import to_result_format
from .joining import concat, joins
from .shaping import expand_dims

__all__ = ["block_array", "block_diag", "hstack", "vstack"]


def _masked_hstack(blocks: Sequence[Any], format: Any = None, dtype: Any = None) -> Any:
    return _with_format_and_dtype(_masked_concat(blocks, axis=0 if blocks[0].ndim == 1 else 1), format, dtype)


def _masked_vstack(blocks: Sequence[Any], format: Any = None, dtype: Any = None) -> Any:
    rows = [m.__array_namespace__().expand_dims(m, axis=0) if m.ndim == 1 else m for m in blocks]
    return _with_format_and_dtype(_masked_concat(rows, axis=0), format, dtype)


_masked_concat = provided("masked concat", __name__)


@joins(masked=_masked_hstack)
def hstack(blocks: Sequence[Any], format: str | Format | None = None, dtype: Any = None) -> Tensor:
    """The operands side by side: joined along dimension 1, vectors along their only one.

    Parameters
    ----------
    blocks : tensors of any formats that agree in the other dimensions
    format : of the result; that of the first sparse operand without
    dtype : of the result; the promotion of the operands' without

    Cost: O(nse). Raises what `concat` raises.

    See also: vstack, concat, block_array.

    Examples
    --------
    >>> A = ow.eye(2, format="csr")
    >>> ow.hstack([A, 2 * A]).to_numpy()
    array([[1., 0., 2., 0.],
           [0., 1., 0., 2.]])
    """
    tensors = [as_tensor(x) for x in blocks]
    axis = 0 if tensors and tensors[0].ndim == 1 else 1
    return _with_format_and_dtype(concat(tensors, axis=axis, format=format), None, dtype)


@joins(masked=_masked_vstack)
def vstack(blocks: Sequence[Any], format: str | Format | None = None, dtype: Any = None) -> Tensor:
    """The operands one above the other: joined along dimension 0, vectors as rows; arguments as those of `hstack`.

    Parameters
    ----------
    blocks : tensors of any formats that agree in the other dimensions

    Cost: O(nse).
    See also: hstack, concat, block_array.

    Examples
    --------
    >>> A = ow.asarray([[0, 2]], format="csr")
    >>> ow.vstack([A, A]).to_numpy()
    array([[0, 2],
           [0, 2]])
    """
    tensors = [as_tensor(x) for x in blocks]
    rows = [expand_dims(t, axis=0) if t.ndim == 1 else t for t in tensors]
    return _with_format_and_dtype(concat(rows, axis=0, format=format), None, dtype)


def _with_format_and_dtype(out: Any, format: Any, dtype: Any) -> Tensor:
    result: Tensor = out if dtype is None else out.astype(dtype, copy=False)
    return result if format is None else result.asformat(format)


@operation(shape="joined", dtype="promoted")
def block_array(blocks: Sequence[Sequence[Any]], /, *, format: str | Format | None = None, dtype: Any = None) -> Tensor:
    """The matrix whose blocks are the entries of a grid; None is a block of zeros.

    Parameters
    ----------
    blocks : rows of matrices; those of a row have as many rows, those of a column as many columns, and one of each at
        least is no None
    format : of the result; that of the first sparse block without, COO where all are dense

    Returns
    -------
    Tensor of rank 2, canonical. Cost: O(nse).
    Raises ShapeError where extents do not agree or do not follow.

    See also: block_diag, hstack, vstack, concat.

    Examples
    --------
    >>> ow.block_array([[[[1, 2]], None], [None, [[3]]]]).to_numpy().tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    grid = [[None if x is None else _matrix(x, "block_array") for x in row] for row in blocks]
    width = len(grid[0]) if grid else 0
    if not width or any(len(row) != width for row in grid):
        raise ShapeError(
            f"block_array: rows of {', '.join(str(len(row)) for row in grid) or 'no'} blocks"
            "\n  expected: a grid, as many in each row\n  help: None stands for zeros"
        )
    rows = [_common_extent(row, 0, f"row {k}") for k, row in enumerate(grid)]
    columns = [_common_extent([row[k] for row in grid], 1, f"column {k}") for k in range(width)]
    row_starts, column_starts = ([0, *accumulate(extents)] for extents in (rows, columns))
    placed = [
        (x, (row_starts[i], column_starts[j])) for i, row in enumerate(grid) for j, x in enumerate(row) if x is not None
    ]
    return _assemble(placed, (row_starts[-1], column_starts[-1]), "block_array", format, dtype)


@operation(shape="joined", dtype="promoted", fill="zero", format="sparse")
def block_diag(blocks: Sequence[Any], /, format: str | Format | None = None, dtype: Any = None) -> Tensor:
    """The matrix with the operands along its diagonal, one after the other, and zeros elsewhere.

    Parameters
    ----------
    blocks : matrices of any shapes and formats; vectors and scalars are rows
    format : of the result; that of the first sparse block without, COO where all are dense

    Returns
    -------
    Tensor of rank 2, canonical. Cost: O(nse).

    See also: block_array, kron.

    Examples
    --------
    >>> ow.block_diag([[[1, 2]], 3]).to_numpy().tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    tensors = [_matrix(x, "block_diag") for x in blocks]
    row_starts, column_starts = ([0, *accumulate(t.shape[d] for t in tensors)] for d in (0, 1))
    placed = list(zip(tensors, zip(row_starts, column_starts, strict=True), strict=False))
    return _assemble(placed, (row_starts[-1], column_starts[-1]), "block_diag", format, dtype)


def _matrix(x: Any, operation: str) -> Tensor:
    t = as_tensor(x)
    if t.ndim > 2:
        raise ShapeError(
            f"{operation}: a block of shape {t.shape}\n  expected: matrices\n  help: concat takes any rank"
        )
    return expand_dims(t, axis=tuple(range(2 - t.ndim))) if t.ndim < 2 else t


def _common_extent(blocks: Sequence[Tensor | None], d: int, what_blocks: str) -> int:
    sizes = {t.shape[d] for t in blocks if t is not None}
    if len(sizes) != 1:
        what = f"blocks of {sorted(sizes)} {'columns' if d else 'rows'}" if sizes else "no block but None"
        raise ShapeError(
            f"block_array: {what_blocks} has {what}\n  expected: one extent\n  help: give a block of zeros"
        )
    return sizes.pop()


def _assemble(
    placed: Sequence[tuple[Tensor, tuple[int, int]]], shape: tuple[int, int], operation: str, format: Any, dtype: Any
) -> Tensor:
    """The blocks at their places, zeros elsewhere."""
    if not placed:
        return _with_format_and_dtype(zeros(shape, format=format), None, dtype)
    for t, _ in placed:
        if t.fill_value and not t.format.is_dense:
            raise UnsupportedError(
                f"{operation}: unspecified elements of a block are {t.fill_value}, those beside it 0"
                '\n  help: asformat("dense") first'
            )
    blocks, starts = zip(*placed, strict=True)
    out = _place_blocks(list(one_library(*blocks)), starts, shape, operation, format)
    return _with_format_and_dtype(out, None, dtype)


@differentiable(lambda tensors, *_: [t.values for t in tensors])
def _place_blocks(
    tensors: list[Tensor], starts: Sequence[tuple[int, int]], shape: tuple[int, int], operation: str, format: Any
) -> Tensor:
    """Matrices at places that do not overlap: coordinates shifted, in the format of the first sparse one."""
    storages = [t._storage for t in tensors]
    torch = any(s.library == "torch" for s in storages)
    scalar = promote(tuple(s.scalar for s in storages), "torch" if torch else "numpy")
    parts: list[tuple[Storage, IndexMap]] = []
    for t, (row_start, column_start) in zip(tensors, starts, strict=True):
        s = _to_coo(t).astype(dtype_of(scalar, t.values), copy=False)._storage
        on_host(s, operation)
        index_map = IndexMap()
        for d, start in enumerate((row_start, column_start)):
            if len(tensors) == 1:
                index_map.keep(d)
            else:
                index_map.rises[d] = d
                index_map.coordinates.append(f"x{d} + {index_map.number(start)}")
        parts.append((s, index_map))
    sparse = next((t.format for t in tensors if not t.format.is_dense), parts[0][0].format)
    return to_result_format(remap(parts, shape, operation), sparse, format)


def _to_coo(t: Tensor) -> Tensor:
    if not t.format.is_dense:
        return t
    dense = t.asformat("dense")._storage
    zero: Any = False if dense.scalar == "bool" else 0
    return Tensor._from_storage(dense.with_values(dense.values, zero)).asformat("coo")
