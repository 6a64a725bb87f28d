"""A selection and a storage -> the map of coordinates that takes its elements: tests, bindings and places of arrays."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from ...runtime.conversion.remap import IndexMap
from ...storage.buffers import length
from ...storage.storage import Storage
from .key_join import look_up
from .keys import Axis, Group, Selection, Span

__all__ = ["write_selection"]


def write_selection(index_map: IndexMap, selection: Selection, storage: Storage) -> None:
    """The steps of a selection: tests of integers and slices, then the places of index arrays."""
    shape = storage.shape
    for d, k in selection.integers.items():
        index_map.test(f"x{d} == {index_map.number(k)}")
        index_map.fixed.add(d)
    spans = {d: _span_map(index_map, d, span, shape[d]) for d, span in selection.spans.items()}
    array_crd: dict[int, str] = {}
    for group in selection.groups:
        array_crd |= _group_map(index_map, group, storage)
    for axis in selection.axes:
        r = len(index_map.coordinates)
        if axis.dim is not None:
            index_map.coordinates.append(spans[axis.dim])
            if selection.spans[axis.dim].step > 0:
                index_map.rises[axis.dim] = r
        elif axis.array is None or axis.array not in array_crd:
            index_map.coordinates.append("0")
            index_map.free.append(r)
        else:
            index_map.coordinates.append(array_crd[axis.array])
    _mark_monotone(index_map, selection)


def _group_map(index_map: IndexMap, group: Group, storage: Storage) -> dict[int, str]:
    """Test the dimensions of a group of index arrays, and give the coordinates along its axes."""
    if not group.axes:
        for d, array in group.arrays.items():
            index_map.test(f"x{d} == {index_map.number(array[0])}")
            index_map.fixed.add(d)
        return {}
    if 0 in group.shape:
        return dict.fromkeys(group.axes, "0")
    place = look_up(index_map, group.arrays, storage.shape, length(storage.values))
    strides = [*accumulate(group.shape[:0:-1], mul, initial=1)][::-1]
    crd = {}
    for k, (axis, stride, extent) in enumerate(zip(group.axes, strides, group.shape, strict=True)):
        quotient = place if stride == 1 else f"{place} // {index_map.number(stride)}"
        crd[axis] = quotient if k == 0 else f"({quotient}) % {index_map.number(extent)}"
    return crd


def _span_map(index_map: IndexMap, d: int, span: Span, extent: int) -> str:
    """Add the test that dimension d lies in the span; gives the text of its coordinate in the result."""
    if span.covers(extent):
        return f"x{d}"
    if span.step == 1:
        c = index_map.bind(f"x{d} - {index_map.number(span.start)}") if span.start else f"x{d}"
    elif span.step == -1:
        c = index_map.bind(f"{index_map.number(span.start)} - x{d}")
    else:
        step = index_map.number(abs(span.step))
        start = index_map.number(span.start)
        distance = f"x{d} - {start}" if span.step > 0 else f"{start} - x{d}"
        distance = index_map.bind(distance)
        index_map.test(f"{distance} >= 0")
        c = index_map.bind(f"{distance} // {step}")
        index_map.test(f"{c} * {step} == {distance}")
    bounded = span.step == -1 and span.count == extent
    if not bounded:
        index_map.test(f"{c} >= 0 and {c} < {index_map.number(span.count)}")
    return c


def _mark_monotone(index_map: IndexMap, selection: Selection) -> None:
    """Record which index arrays ascend, so that the remap keeps the order along their dimensions."""
    for group in selection.groups:
        if (single := group.single) is None:
            continue
        d, array = single
        axis = selection.axes.index(Axis(array=group.axes[0]))
        steps = array[1:] - array[:-1]
        if (steps > 0).all():
            index_map.rises[d] = axis
        elif (steps >= 0).all():
            index_map.rises_last[d] = axis
