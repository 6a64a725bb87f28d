"""Setting elements: `A[key] = v`, and `A.at[key].set(v)`, `.add(v)`, ... which give a new tensor.

What the key names is taken out of the stored elements, what is set is put in: two remaps into one result. Values equal
to the fill value are not stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...format import format as parse
from ...interop.sources import asarray
from ...runtime.conversion.remap import Program, coordinates_format, remap
from ...runtime.gradient_hook import differentiable
from ...runtime.overrides import answering
from ...storage import buffers
from ...storage.buffers import itemsize, length
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..result_format import ROOM, from_host, library, settle
from .index import host_key, index_selection
from .key_join import keys_of, sorted_places, test_member
from .keys import Axis, Group, Ints, Selection, select

__all__ = ["At", "AtKey", "assign", "combine"]

_UFUNCS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@dataclass(frozen=True, slots=True)
class At:
    """`t.at`: index it, then say what happens there."""

    tensor: Tensor

    def __getitem__(self, key: Any) -> AtKey:
        return AtKey(self.tensor, key)


@dataclass(frozen=True, slots=True)
class AtKey:
    """`t.at[key]`. Each method gives a new tensor; places that the key names several times count several times."""

    tensor: Tensor
    key: Any

    def get(self) -> Any:
        """`t[key]`."""
        return self.tensor[self.key]

    def set(self, values: Any) -> Tensor:
        """With the elements set to `values`, broadcast; of places named several times the last one stays."""
        return assign(self.tensor, self.key, values)

    def add(self, values: Any) -> Tensor:
        """With `values` added."""
        return combine(self.tensor, self.key, values, "add")

    def mul(self, values: Any) -> Tensor:
        """With the elements multiplied by `values`."""
        return combine(self.tensor, self.key, values, "mul")

    multiply = mul

    def min(self, values: Any) -> Tensor:
        """With the smaller of the elements and `values`."""
        return combine(self.tensor, self.key, values, "min")

    def max(self, values: Any) -> Tensor:
        """With the larger of the elements and `values`."""
        return combine(self.tensor, self.key, values, "max")


@answering
@differentiable(lambda t, _, values: (t.values, getattr(values, "values", values)))
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
    selection = select(key, t.shape)
    given = _values(values, t, selection)
    if t.format.is_dense:
        host = np.array(library(t))
        host[host_key(key)] = given.to_numpy()
        return from_host(host, t)
    if 0 in selection.shape:
        return t.clone()
    return settle(
        remap(
            [(t._storage, _outside(t._storage, selection)), *_put(t, selection, given, True)],
            t.shape,
            "setting elements",
        ),
        t.format,
    )


@answering
@differentiable(lambda t, _, values, __: (t.values, getattr(values, "values", values)))
def combine(t: Tensor, key: Any, values: Any, op: str | np.ufunc) -> Tensor:
    """`t` with `op` of the elements at `key` and `values`, as a new tensor.

    op : add, mul, min or max, or any ufunc of one or two operands; that of one takes `values=None`
    """
    selection = select(key, t.shape)
    ufunc = op if isinstance(op, np.ufunc) else _UFUNCS[op]
    given = None if ufunc.nin == 1 else _values(values, t, selection)
    if t.format.is_dense:
        host = np.array(library(t))
        with np.errstate(all="ignore"):
            _apply_at(ufunc, host, host_key(key), () if given is None else (given.to_numpy(),))
        return from_host(host, t)
    if 0 in selection.shape:
        return t.clone()
    if ufunc is np.add and given is not None and not t.fill_value:
        program = Program()
        for d in range(t.ndim):
            program.keep(d)
        parts = [(t._storage, program), *_put(t, selection, given, False)]
        parts[-1][1].injective = False
        return settle(_summing(remap(parts, t.shape, "adding to elements")), t.format)
    return _combined(t, selection, given, ufunc)


def _apply_at(ufunc: np.ufunc, host: np.ndarray[Any, Any], key: Any, values: tuple[Any, ...]) -> None:
    try:
        ufunc.at(host, key, *values)
    except TypeError as error:
        raise DTypeError(f"{ufunc.__name__}.at: {error}\n  help: convert the tensor or the values first") from None


def _summing(found: Storage) -> Storage:
    """Elements of the two parts may meet: the format must say so."""

    order = tuple(range(len(found.shape)))
    return found.with_format(coordinates_format(order, False, False))


def _combined(t: Tensor, selection: Selection, given: Tensor | None, ufunc: np.ufunc) -> Tensor:
    """By the distinct places: their elements are taken, combined and set."""
    places = _places(selection, t.shape)
    distinct, group = np.unique(keys_of(places, t.shape), return_inverse=True)
    coordinates = {}
    for d in reversed(range(t.ndim)):
        distinct, coordinates[d] = np.divmod(distinct, max(t.shape[d], 1))
    count = len(coordinates[0])
    picked = Selection(broadcast=(count,), has_arrays=True, axes=[Axis(array=0)], shape=(count,))
    picked.groups = [Group(coordinates, (0,), (count,))]
    current = np.array(index_selection(t, picked).to_numpy())
    with np.errstate(all="ignore"):
        wide = () if given is None else (np.broadcast_to(given.to_numpy(), selection.shape).reshape(-1),)
        _apply_at(ufunc, current, group.reshape(-1), wide)
    return assign(t, tuple(coordinates[d] for d in range(t.ndim)), current)


def _places(selection: Selection, shape: tuple[int, ...]) -> dict[int, Ints]:
    """The coordinates of every place of the selection, row-major."""
    if math.prod(shape) >= 2**62:
        raise UnsupportedError(f"changing elements of a tensor of shape {shape}\n  help: use add, or set")
    rank = len(selection.shape)
    found: dict[int, Ints] = {}
    for d, k in selection.integers.items():
        found[d] = np.full(selection.shape, k, np.int64).reshape(-1)
    for group in selection.groups:
        extents = [
            n if axis.array in group.axes else 1 for axis, n in zip(selection.axes, selection.shape, strict=True)
        ]
        for d, array in group.arrays.items():
            found[d] = np.broadcast_to(array.reshape(extents), selection.shape).reshape(-1)
    for r, axis in enumerate(selection.axes):
        if axis.dim is not None:
            span = selection.spans[axis.dim]
            line = (np.arange(span.count) * span.step + span.start).reshape([-1 if k == r else 1 for k in range(rank)])
            found[axis.dim] = np.broadcast_to(line, selection.shape).reshape(-1)
    return found


def _values(values: Any, t: Tensor, selection: Selection) -> Tensor:
    """What is set, in the dtype and library of `t`, of at most the rank of the selection."""
    if not isinstance(values, Tensor):
        values = asarray(values)
    shape = selection.shape
    v: Tensor = values
    while v.ndim > len(shape) and v.shape[0] == 1:
        v = v[0]
    lead = len(shape) - v.ndim
    if lead < 0 or any(n not in (1, m) for n, m in zip(v.shape, shape[max(lead, 0) :], strict=False)):
        raise ShapeError(
            f"could not broadcast input array from shape {values.shape} into shape {shape}\n"
            "  help: the value's extents agree with those of the elements set, or are 1"
        )
    scalar = t._storage.scalar
    if v._storage.scalar != scalar:
        v = v.astype(buffers.dtype_of(scalar, v.values))
    if v._storage.library != t._storage.library:
        like = t.values
        v = Tensor._from_storage(v._storage.mapped(lambda b: buffers.as_array(b, like=like)))
    return v


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def _elements(v: Tensor, fill: Any, room: int) -> Storage | None:
    """The elements of v that differ from the fill value, or None where there are none.

    A sparse v of another fill value has to store all its elements: `room` of them at most.
    """
    if not v.ndim:
        value = v.to_numpy()[()].item()
        if _same(value, fill):
            return None
        return v._storage if v.format.is_dense else v.asformat(parse("() -> ()"))._storage
    if v.format.is_dense:
        dense = v.asformat("dense")._storage
        return Tensor._from_storage(dense.with_values(dense.values, fill)).asformat("coo")._storage
    if _same(v.fill_value, python_scalar(fill, v._storage.scalar)):
        return v._storage
    if v.size <= room:
        return _elements(v.asformat("dense"), fill, room)
    raise UnsupportedError(
        f"setting elements of fill value {fill} to a sparse tensor of fill value {v.fill_value} would store"
        f' {math.prod(v.shape) * itemsize(v._storage.scalar)} bytes of values\n  help: asformat("dense") it first'
    )


def _outside(s: Storage, selection: Selection) -> Program:
    """The stored elements that the selection does not name."""
    program = Program()
    tests = [f"x{d} == {program.number(k)}" for d, k in selection.integers.items()]
    for d, span in selection.spans.items():
        if span.covers(s.shape[d]):
            continue
        start, count = program.number(span.start), program.number(span.count)
        far = f"x{d} - {start}" if span.step > 0 else f"{start} - x{d}"
        if abs(span.step) == 1:
            tests += [f"{far} >= 0", f"{far} < {count}"]
        else:
            step = program.number(abs(span.step))
            tests += [f"{far} >= 0", f"({far}) // {step} < {count}", f"({far}) % {step} == 0"]
    for group in selection.groups:
        tests.append(f"{test_member(program, group.arrays, s.shape, length(s.values))} == 1")
    program.test(f"not ({' and '.join(tests)})" if tests else "False")
    for d in range(len(s.shape)):
        program.keep(d)
    return program


def _put(t: Tensor, selection: Selection, v: Tensor, last: bool) -> list[tuple[Storage, Program]]:
    """The elements of `v` at the places of the selection; `last`: of a place named several times the last one only."""
    source = _elements(v, t.fill_value, t.nse + v.nse + ROOM)
    if source is None:
        return [(t._storage, _nothing(t.ndim))]
    program = Program()
    lead = len(selection.shape) - v.ndim
    copies = 1
    at: list[str] = []
    for r, n in enumerate(selection.shape):
        if r < lead or (v.shape[r - lead] == 1 and n != 1):
            at.append(program.loop("0", program.number(n)) if n != 1 else "0")
            copies *= n
        else:
            at.append(f"x{r - lead}")
    program.copies = program.most = copies
    where = {d: program.number(k) for d, k in selection.integers.items()}
    for r, axis in enumerate(selection.axes):
        if axis.dim is not None:
            span = selection.spans[axis.dim]
            sign = "+" if span.step > 0 else "-"
            step = f"{at[r]}" if abs(span.step) == 1 else f"{at[r]} * {program.number(abs(span.step))}"
            where[axis.dim] = step if (span.start, sign) == (0, "+") else f"{program.number(span.start)} {sign} {step}"
    along = {axis.array: r for r, axis in enumerate(selection.axes) if axis.array is not None}
    for group in selection.groups:
        where |= _put_group(program, group, [at[along[k]] for k in group.axes], t.shape, last)
    program.coordinates = [where[d] for d in range(t.ndim)]
    return [(source, program)]


def _put_group(program: Program, group: Group, at: list[str], shape: tuple[int, ...], last: bool) -> dict[int, str]:
    """The coordinates that a group of index arrays names at `at`; with `last` only where no later place is the same."""
    text = "0"
    for here, extent in zip(at, group.shape, strict=True):
        text = here if text == "0" else f"({text}) * {program.number(extent)} + {here}"
    place = program.bind(text, "place")
    if last:
        in_order, order = sorted_places(keys_of(group.arrays, shape))
        stays = np.append(in_order[1:] != in_order[:-1], True)
        if not stays.all():
            wins = np.zeros(len(order), np.bool_)
            wins[order[stays]] = True
            program.test(f"{program.array(wins)}[{place}]")
    return {d: f"{program.array(array)}[{place}]" for d, array in group.arrays.items()}


def _nothing(ndim: int) -> Program:
    program = Program()
    program.test("False")
    for d in range(ndim):
        program.keep(d)
    return program
