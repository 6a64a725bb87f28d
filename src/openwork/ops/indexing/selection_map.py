"""A selection and a storage -> the map of coordinates that takes its elements: tests, bindings and places of arrays."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from ...runtime.conversion.remap import Program
from ...storage.buffers import length
from ...storage.storage import Storage
from .key_join import look_up
from .keys import Axis, Group, Selection, Span

__all__ = ["write_selection"]


def write_selection(program: Program, selection: Selection, storage: Storage) -> None:
    """The steps of a selection: tests of integers and slices, then the places of index arrays."""
    shape = storage.shape
    for d, k in selection.integers.items():
        program.test(f"x{d} == {program.number(k)}")
        program.fixed.add(d)
    spans = {d: _span_program(program, d, span, shape[d]) for d, span in selection.spans.items()}
    array_crd: dict[int, str] = {}
    for group in selection.groups:
        array_crd |= _group_program(program, group, storage)
    for axis in selection.axes:
        r = len(program.coordinates)
        if axis.dim is not None:
            program.coordinates.append(spans[axis.dim])
            if selection.spans[axis.dim].step > 0:
                program.rises[axis.dim] = r
        elif axis.array is None or axis.array not in array_crd:
            program.coordinates.append("0")
            program.free.append(r)
        else:
            program.coordinates.append(array_crd[axis.array])
    _mark_monotone(program, selection)


def _group_program(program: Program, group: Group, storage: Storage) -> dict[int, str]:
    """Test the dimensions of a group of index arrays, and give the coordinates along its axes."""
    if not group.axes:
        for d, array in group.arrays.items():
            program.test(f"x{d} == {program.number(array[0])}")
            program.fixed.add(d)
        return {}
    if 0 in group.shape:
        return dict.fromkeys(group.axes, "0")
    place = look_up(program, group.arrays, storage.shape, length(storage.values))
    strides = [*accumulate(group.shape[:0:-1], mul, initial=1)][::-1]
    crd = {}
    for k, (axis, stride, extent) in enumerate(zip(group.axes, strides, group.shape, strict=True)):
        quotient = place if stride == 1 else f"{place} // {program.number(stride)}"
        crd[axis] = quotient if k == 0 else f"({quotient}) % {program.number(extent)}"
    return crd


def _span_program(program: Program, d: int, span: Span, extent: int) -> str:
    """Add the test that dimension d lies in the span; gives the text of its coordinate in the result."""
    if span.covers(extent):
        return f"x{d}"
    if span.step == 1:
        c = program.bind(f"x{d} - {program.number(span.start)}") if span.start else f"x{d}"
    elif span.step == -1:
        c = program.bind(f"{program.number(span.start)} - x{d}")
    else:
        step = program.number(abs(span.step))
        distance = f"x{d} - {program.number(span.start)}" if span.step > 0 else f"{program.number(span.start)} - x{d}"
        distance = program.bind(distance)
        program.test(f"{distance} >= 0")
        c = program.bind(f"{distance} // {step}")
        program.test(f"{c} * {step} == {distance}")
    bounded = span.step == -1 and span.count == extent
    if not bounded:
        program.test(f"{c} >= 0 and {c} < {program.number(span.count)}")
    return c


def _mark_monotone(program: Program, selection: Selection) -> None:
    """Record which index arrays ascend, so that the remap keeps the order along their dimensions."""
    for group in selection.groups:
        if (single := group.single) is None:
            continue
        d, array = single
        axis = selection.axes.index(Axis(array=group.axes[0]))
        steps = array[1:] - array[:-1]
        if (steps > 0).all():
            program.rises[d] = axis
        elif (steps >= 0).all():
            program.rises_last[d] = axis
