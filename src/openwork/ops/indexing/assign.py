"""A tensor, an index key and values -> a new tensor with elements set or updated: `A[key] = v`, `A.at[key].add(v)`.

Stored elements that the key names are removed, the values set are inserted: two remaps into one result. Values equal
to the fill value are not stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...classes import frozen
from ...errors import DTypeError, ShapeError, UnsupportedError
from ...format import format as parse
from ...interop.constructors import assemble
from ...interop.sources import asarray
from ...provided import provides
from ...runtime.conversion.convert import convert
from ...runtime.conversion.remap import IndexMap, coordinates_format, remap
from ...runtime.gradient_hook import differentiable
from ...runtime.leading_slice import is_rows, join_outer, outer_dim, take_outer
from ...runtime.overrides import answering
from ...storage import buffers
from ...storage.buffers import buffer_of, itemsize, length
from ...storage.scalars import IntegerRangeError, python_scalar
from ...storage.storage import Storage
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..manipulation.shaping import reshape
from ..result_format import ROOM, dense_array, from_dense_array, to_result_format
from .index import host_key, index_selection, outermost_coordinates, position_of
from .key_join import keys_of, sorted_places, test_member
from .keys import Axis, Group, Ints, Selection, select
from .structure import pattern

__all__ = ["UFUNCS", "At", "AtKey", "assign", "combine"]

UFUNCS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@provides("places")
@frozen
class At:
    """`t.at`: `t.at[key]` is what to update, its methods say how."""

    tensor: Tensor

    def __getitem__(self, key: Any) -> AtKey:
        return AtKey(self.tensor, key)


@frozen
class AtKey:
    """`t.at[key]`. Each method gives a new tensor; places that the key names several times count several times."""

    tensor: Tensor
    key: Any

    def _of(self, function: Any, values: Any, *rest: Any) -> Tensor:
        """`function` of the tensor, the key and the values, which is torch's where either is."""
        t, operand = one_library(self.tensor, values)
        result: Tensor = function(t, self.key, operand, *rest)
        return result

    def get(self) -> Any:
        """`t[key]`."""
        return self.tensor[self.key]

    def set(self, values: Any) -> Tensor:
        """A new tensor with the elements set to `values`, broadcast; of duplicate places the last value counts."""
        return self._of(assign, values)

    def add(self, values: Any) -> Tensor:
        """A new tensor with `values` added to the elements."""
        return self._of(combine, values, "add")

    def mul(self, values: Any) -> Tensor:
        """A new tensor with the elements multiplied by `values`."""
        return self._of(combine, values, "mul")

    multiply = mul

    def min(self, values: Any) -> Tensor:
        """A new tensor with the minimum of the elements and `values`."""
        return self._of(combine, values, "min")

    def max(self, values: Any) -> Tensor:
        """A new tensor with the maximum of the elements and `values`."""
        return self._of(combine, values, "max")


@provides("assign")
@answering
@differentiable(lambda t, _, values: (t.values, buffer_of(values)))
def assign(t: Tensor, key: Any, values: Any) -> Tensor:
    """`t` with `t[key] = values`, as a new tensor.

    Parameters
    ----------
    key : as for `index`
    values : a scalar, array or Tensor that broadcasts to the shape of `t[key]`, cast to the dtype of `t`

    Returns
    -------
    Tensor, in the format of `t` where it can hold the elements; what equals the fill value is not stored.

    Cost: O(nse + elements set). Raises IndexError for the key, ShapeError where shapes do not broadcast,
    UnsupportedError where a sparse `values` has another fill value.
    """
    changed = _with_element(t._storage, key, values) if type(key) is tuple and type(t) is Tensor else None
    if changed is not None:
        return Tensor._from_storage(changed)
    selection = select(key, t.shape)
    operand = _broadcastable_values(values, t, selection)
    if t.format.is_dense:
        host = np.array(dense_array(t))
        host[host_key(key)] = buffers.to_numpy(operand.to_dense(), detach=True)
        return from_dense_array(host, t)
    if 0 in selection.shape:
        return t.clone()
    replaced = _with_rows(t, selection, operand)
    if replaced is not None:
        return Tensor._from_storage(replaced)
    return to_result_format(
        remap(
            [(t._storage, _complement_map(t._storage, selection)), *_put_parts(t, selection, operand, True)],
            t.shape,
            "setting elements",
        ),
        t.format,
    )


def _with_element(s: Storage, key: tuple[Any, ...], value: Any) -> Storage | None:
    """The storage with one stored element changed, of the same structure; None for any other key or value."""
    if type(value) not in _NUMBERS_OF.get(s.scalar, ()) or type(s.values) is not np.ndarray:
        return None
    if value != value or value == s.fill_value or abs(value) > _LARGEST:
        return None
    position = position_of(s, key)
    if position is None or position < 0 or s.is_iso:
        return None
    values = s.values.copy()
    values[position] = value
    return s.with_values(values)


_NUMBERS_OF: dict[str, tuple[type, ...]] = {"f64": (int, float), "c128": (int, float, complex)}
"""The types of Python's numbers that an element may be set to as they are."""
_LARGEST = float(2**1000)


@answering
@differentiable(lambda t, _, values, __: (t.values, buffer_of(values)))
def combine(t: Tensor, key: Any, values: Any, op: str | np.ufunc) -> Tensor:
    """`t` with `op` of the elements at `key` and `values`, as a new tensor.

    op : add, mul, min or max, or any ufunc of one or two operands; that of one takes `values=None`
    """
    selection = select(key, t.shape)
    ufunc = op if isinstance(op, np.ufunc) else UFUNCS[op]
    operand = None if ufunc.nin == 1 else _broadcastable_values(values, t, selection)
    if t.format.is_dense:
        host = np.array(buffers.host_values(t.to_dense()))
        with np.errstate(all="ignore"):
            _apply_at(ufunc, host, host_key(key), () if operand is None else (buffers.host_values(operand.to_dense()),))
        return from_dense_array(host, t).astype(t.dtype, copy=False)
    if 0 in selection.shape:
        return t.clone()
    if ufunc is np.add and operand is not None and not t.fill_value:
        index_map = IndexMap()
        for d in range(t.ndim):
            index_map.keep(d)
        parts = [(t._storage, index_map), *_put_parts(t, selection, operand, False)]
        parts[-1][1].injective = False
        return to_result_format(_with_duplicates(remap(parts, t.shape, "adding to elements")), t.format)
    return _combine_by_elements(t, selection, operand, ufunc)


def _apply_at(ufunc: np.ufunc, host: np.ndarray[Any, Any], key: Any, values: tuple[Any, ...]) -> None:
    try:
        ufunc.at(host, key, *values)
    except TypeError as error:
        raise DTypeError(f"{ufunc.__name__}.at: {error}\n  help: convert the tensor or the values first") from None


def _with_duplicates(s: Storage) -> Storage:
    """The storage in unordered COO with duplicates, as elements of its two parts may have equal coordinates."""

    order = tuple(range(len(s.shape)))
    return s.with_format(coordinates_format(order, False, False))


def _combine_by_elements(t: Tensor, selection: Selection, operand: Tensor | None, ufunc: np.ufunc) -> Tensor:
    """A ufunc at the distinct elements that the selection names: gathered, updated by `ufunc.at`, assigned."""
    coordinates_named = _selected_coordinates(selection, t.shape)
    keys, group = np.unique(keys_of(coordinates_named, t.shape), return_inverse=True)
    coordinates = {}
    for d in reversed(range(t.ndim)):
        keys, coordinates[d] = np.divmod(keys, max(t.shape[d], 1))
    count = len(coordinates[0])
    selection_of_distinct = Selection(broadcast=(count,), has_arrays=True, axes=[Axis(array=0)], shape=(count,))
    selection_of_distinct.groups = [Group(coordinates, (0,), (count,))]
    gathered = index_selection(t, selection_of_distinct)
    current = np.array(buffers.host_values(gathered.to_dense()))
    with np.errstate(all="ignore"):
        values = [] if operand is None else [buffers.host_values(operand.to_dense())]
        arguments = tuple(np.broadcast_to(v, selection.shape).reshape(-1) for v in values)
        _apply_at(ufunc, current, group.reshape(-1), arguments)
    return assign(t, tuple(coordinates[d] for d in range(t.ndim)), _keeping_stored(current, gathered))


def _keeping_stored(current: np.ndarray[Any, Any], before: Tensor) -> Tensor:
    """The values as a vector that stores what `before` stores, and what differs from the fill value."""
    dense = asarray(current, fill_value=before.fill_value)
    stored = pattern(before).to_numpy() | pattern(dense.asformat("coo")).to_numpy()
    places = np.flatnonzero(stored)
    ends = np.array([0, len(places)])
    return assemble(
        "coo",
        current.shape,
        pos={0: ends},
        crd={0: places},
        values=current[places],
        fill_value=before.fill_value,
        check=False,
    )


def _selected_coordinates(selection: Selection, shape: tuple[int, ...]) -> dict[int, Ints]:
    """The coordinates of every place of the selection, row-major."""
    if math.prod(shape) >= 2**62:
        raise UnsupportedError(f"changing elements of a tensor of shape {shape}\n  help: use add, or set")
    rank = len(selection.shape)
    coordinates: dict[int, Ints] = {}
    for d, k in selection.integers.items():
        coordinates[d] = np.full(selection.shape, k, np.int64).reshape(-1)
    for group in selection.groups:
        extents = [
            n if axis.array in group.axes else 1 for axis, n in zip(selection.axes, selection.shape, strict=True)
        ]
        for d, array in group.arrays.items():
            coordinates[d] = np.broadcast_to(array.reshape(extents), selection.shape).reshape(-1)
    for r, axis in enumerate(selection.axes):
        if axis.dim is not None:
            span = selection.spans[axis.dim]
            steps = (np.arange(span.count) * span.step + span.start).reshape([-1 if k == r else 1 for k in range(rank)])
            coordinates[axis.dim] = np.broadcast_to(steps, selection.shape).reshape(-1)
    return coordinates


def _broadcastable_values(values: Any, t: Tensor, selection: Selection) -> Tensor:
    """The values to set in the dtype and library of `t`; ShapeError where they do not broadcast to the selection."""
    scalar = t._storage.scalar
    if not isinstance(values, Tensor):
        if scalar[0] in "iu" and isinstance(values, int | float | np.integer | list | tuple):
            values = _integers(values, scalar)
        values = asarray(values)
    shape = selection.shape
    v: Tensor = values
    while v.ndim > len(shape) and v.shape[0] == 1:
        v = v[0]
    new_dims = len(shape) - v.ndim
    if new_dims < 0 or any(n not in (1, m) for n, m in zip(v.shape, shape[max(new_dims, 0) :], strict=False)):
        raise ShapeError(
            f"could not broadcast input array from shape {values.shape} into shape {shape}\n"
            "  help: the value's extents agree with those of the elements set, or are 1"
        )
    if v._storage.library != t._storage.library:
        like = t.values
        v = Tensor._from_storage(v._storage.mapped(lambda b: buffers.as_array(b, like=like)))
    if v._storage.scalar != scalar:
        v = v.astype(buffers.dtype_of(scalar, v.values))
    return v


def _integers(values: Any, scalar: str) -> Any:
    """Numbers, nested in lists or not, as an array of an integer type, and anything else as it is; IntegerRangeError
    for a number that the type does not hold, as in NumPy."""
    values = values.item() if isinstance(values, np.generic) else values
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # ragged lists, or other objects
        return values
    if array.dtype.kind not in "biuf" and not (array.dtype.kind == "O" and all(isinstance(x, int) for x in array.flat)):
        return values
    try:
        return np.asarray(values, buffers.numpy_dtype(scalar))
    except (OverflowError, ValueError) as error:
        raise IntegerRangeError(
            f"setting elements: a number does not fit {scalar}: {error}\n  help: convert with .astype(...)"
        ) from None


def _equal_or_both_nan(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def _elements_to_store(v: Tensor, fill: Any, limit: int) -> Storage | None:
    """The elements of v that differ from the fill value, or None where there are none.

    A sparse v of another fill value has to store all its elements: `limit` of them at most.
    """
    if not v.ndim:
        value = v.item()
        if _equal_or_both_nan(value, fill):
            return None
        return v._storage if v.format.is_dense else v.asformat(parse("() -> ()"))._storage
    if v.format.is_dense:
        dense = v.asformat("dense")._storage
        return Tensor._from_storage(dense.with_values(dense.values, fill)).asformat("coo")._storage
    if _equal_or_both_nan(v.fill_value, python_scalar(fill, v._storage.scalar)):
        return v._storage
    if v.size <= limit:
        return _elements_to_store(v.asformat("dense"), fill, limit)
    raise UnsupportedError(
        f"setting elements of fill value {fill} to a sparse tensor of fill value {v.fill_value} would store"
        f' {math.prod(v.shape) * itemsize(v._storage.scalar)} bytes of values\n  help: asformat("dense") it first'
    )


def _complement_map(s: Storage, selection: Selection) -> IndexMap:
    """The index map that keeps the stored elements that the selection does not name."""
    index_map = IndexMap()
    tests = [f"x{d} == {index_map.number(k)}" for d, k in selection.integers.items()]
    for d, span in selection.spans.items():
        if span.covers(s.shape[d]):
            continue
        start, count = index_map.number(span.start), index_map.number(span.count)
        distance = f"x{d} - {start}" if span.step > 0 else f"{start} - x{d}"
        if abs(span.step) == 1:
            tests += [f"{distance} >= 0", f"{distance} < {count}"]
        else:
            step = index_map.number(abs(span.step))
            tests += [f"{distance} >= 0", f"({distance}) // {step} < {count}", f"({distance}) % {step} == 0"]
    for group in selection.groups:
        tests.append(f"{test_member(index_map, group.arrays, s.shape, length(s.values))} == 1")
    index_map.test(f"not ({' and '.join(tests)})" if tests else "False")
    for d in range(len(s.shape)):
        index_map.keep(d)
    return index_map


def _with_rows(t: Tensor, selection: Selection, v: Tensor) -> Storage | None:
    """Compressed rows with some of them replaced by those of v, or by its one row; None for all else."""
    s, d = t._storage, outer_dim(t.format)
    rows = outermost_coordinates(selection, d, s.shape, length(s.values))
    shape = (1,) * (len(s.shape) - v.ndim) + v.shape
    if d is None or rows is None or not is_rows(s.format) or len(shape) != len(s.shape):
        return None
    if not v.ndim and _equal_or_both_nan(v.to_numpy()[()].item(), s.fill_value):
        source = _empty_row(s, d)
    else:
        if shape[d] not in (1, len(rows)) or any(n != s.shape[k] for k, n in enumerate(shape) if k != d):
            return None
        stored = _elements_to_store(v if v.shape == shape else reshape(v, shape), s.fill_value, t.nse + v.nse + ROOM)
        assert stored is not None
        source = _with_widths(convert(stored, s.format), s)
    order = np.arange(s.shape[d])
    order[rows] = s.shape[d] + (np.arange(len(rows)) if source.shape[d] == len(rows) else 0)
    joined = join_outer([s, source])
    return None if joined is None else take_outer(joined, order)


def _empty_row(s: Storage, d: int) -> Storage:
    """One row that stores nothing, of the same format and extents."""
    pos = buffers.zeros(2, buffers.scalar_of(s.pos[1]), s.values)
    shape = tuple(1 if k == d else n for k, n in enumerate(s.shape))
    crd = (None, s.crd[1][:0], *s.crd[2:])  # type: ignore[index]
    return Storage(shape, s.format, s.scalar, s.fill_value, (None, pos, *s.pos[2:]), crd, s.values[:0])


def _with_widths(s: Storage, like: Storage) -> Storage:
    """Rows with indices as wide as those of others, whose coordinates are as large."""
    (pos, crd), widths = (s.pos[1], s.crd[1]), [buffers.scalar_of(x) for x in (like.pos[1], like.crd[1])]
    if widths[0] == "i32" and length(s.values) >= 2**31:
        return s
    pos, crd = (buffers.cast(x, width) for x, width in zip((pos, crd), widths, strict=True))
    all_pos, all_crd = (None, pos, *s.pos[2:]), (None, crd, *s.crd[2:])
    return Storage(s.shape, s.format, s.scalar, s.fill_value, all_pos, all_crd, s.values)


def _put_parts(t: Tensor, selection: Selection, v: Tensor, last: bool) -> list[tuple[Storage, IndexMap]]:
    """The remap of `v` to the selection's coordinates; `last`: of a place named several times the last one only."""
    source = _elements_to_store(v, t.fill_value, t.nse + v.nse + ROOM)
    if source is None:
        return [(t._storage, _empty_map(t.ndim))]
    index_map = IndexMap()
    new_dims = len(selection.shape) - v.ndim
    copies = 1
    result_crd: list[str] = []
    for r, n in enumerate(selection.shape):
        if r < new_dims or (v.shape[r - new_dims] == 1 and n != 1):
            result_crd.append(index_map.loop("0", index_map.number(n)) if n != 1 else "0")
            copies *= n
        else:
            result_crd.append(f"x{r - new_dims}")
    index_map.copies = index_map.most = copies
    crd = {d: index_map.number(k) for d, k in selection.integers.items()}
    for r, axis in enumerate(selection.axes):
        if axis.dim is not None:
            span = selection.spans[axis.dim]
            sign = "+" if span.step > 0 else "-"
            step = (
                f"{result_crd[r]}" if abs(span.step) == 1 else f"{result_crd[r]} * {index_map.number(abs(span.step))}"
            )
            crd[axis.dim] = step if (span.start, sign) == (0, "+") else f"{index_map.number(span.start)} {sign} {step}"
    axis_of_array = {axis.array: r for r, axis in enumerate(selection.axes) if axis.array is not None}
    for group in selection.groups:
        crd |= _put_group(index_map, group, [result_crd[axis_of_array[k]] for k in group.axes], t.shape, last)
    index_map.coordinates = [crd[d] for d in range(t.ndim)]
    return [(source, index_map)]


def _put_group(
    index_map: IndexMap, group: Group, axis_crd: list[str], shape: tuple[int, ...], last: bool
) -> dict[int, str]:
    """The coordinates that a group of index arrays names at `axis_crd`; with `last` unless a later place is equal."""
    text = "0"
    for c, extent in zip(axis_crd, group.shape, strict=True):
        text = c if text == "0" else f"({text}) * {index_map.number(extent)} + {c}"
    place = index_map.bind(text, "place")
    if last:
        sorted_keys, order = sorted_places(keys_of(group.arrays, shape))
        is_last = np.append(sorted_keys[1:] != sorted_keys[:-1], True)
        if not is_last.all():
            keeps = np.zeros(len(order), np.bool_)
            keeps[order[is_last]] = True
            index_map.test(f"{index_map.array(keeps)}[{place}]")
    return {d: f"{index_map.array(array)}[{place}]" for d, array in group.arrays.items()}


def _empty_map(ndim: int) -> IndexMap:
    index_map = IndexMap()
    index_map.test("False")
    for d in range(ndim):
        index_map.keep(d)
    return index_map
