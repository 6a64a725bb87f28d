"""A tensor's storage: shape, format, fill value and the buffers; everything else is derived from these."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..errors import InvariantError
from ..format.format import Format
from . import sizes
from .buffers import (
    SCALARS,
    Array,
    address,
    copied,
    device_of,
    is_array,
    itemsize,
    length,
    library_of,
    scalar_of,
)
from .iso import ONE_PLACE, element, is_iso, repeated
from .recorded import bare, with_memory
from .scalars import python_scalar
from .specified import count
from .structure import Structure, keep
from .watch import Seen, adopted, bare_alias, refuse_resized, seen

__all__ = ["LARGEST", "Storage", "check_extents", "structure_of", "unpickled"]

LARGEST = 2**63 - 1
"""The largest extent."""

_signatures: dict[tuple[Any, ...], int] = {}
_numbers = itertools.count(1)
TRANSPOSES = 8
"""Transposes that a storage keeps."""


@dataclass(slots=True, eq=False, init=False)
class Storage:
    """A sparse tensor's data.

    Parameters
    ----------
    shape : extents of the dimensions
    format : Format of as many dimensions
    scalar : scalar type of the values, "f64"
    fill_value : value of every unspecified element, a Python scalar
    pos, crd : a 1-D contiguous buffer or None for each level
    values : 1-D contiguous buffer, one element per position of the last level

    With batch levels every deeper buffer holds one equal slice per batch, one after the other; positions count
    from the slice's begin. Nothing is checked here: see `storage.invariants`.

    No field is assigned to from outside: make another storage instead. It is not `frozen`, which took half of the time
    of construction, and a third of that of a small operation.
    """

    shape: tuple[int, ...]
    format: Format
    scalar: str
    fill_value: Any
    pos: tuple[Array | None, ...]
    crd: tuple[Array | None, ...]
    values: Array
    _structure: Structure | None = field(repr=False)
    _facts: dict[Any, Any] | None = field(repr=False)
    _addresses: tuple[int, ...] | None = field(repr=False)
    _signature: int | None = field(repr=False)
    _kind: tuple[int, Any] | None = field(repr=False)
    _seen: Seen | None = field(repr=False)
    """what torch's values were when they were checked"""
    _transposes: dict[tuple[int, ...], Storage] | None = field(repr=False)
    """transposes over the same buffers, by axes"""

    def __init__(
        self,
        shape: tuple[int, ...],
        format: Format,
        scalar: str,
        fill_value: Any,
        pos: tuple[Array | None, ...],
        crd: tuple[Array | None, ...],
        values: Array,
    ) -> None:
        self.shape = shape
        self.format = format
        self.scalar = scalar
        self.fill_value = fill_value
        self.pos = pos
        self.crd = crd
        self.values = values
        self._facts = self._addresses = self._signature = self._kind = self._seen = self._transposes = None
        self._structure = None
        if type(values) is not np.ndarray and not format.is_dense:
            self._structure = Structure(shape, format, pos, crd)
            self._structure.watch  # noqa: B018  begins now
        for n in shape:
            if n > LARGEST:
                _refuse(shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles keep the data only, never addresses; one value where all are that one."""
        pos, crd = (tuple(map(bare_alias, group)) for group in (self.pos, self.crd))
        parts = (self.shape, self.format, self.scalar, self.fill_value, pos, crd)
        n = length(self.values)
        if n > 1 and self.is_iso:
            return unpickled, (*parts, copied(self.values[:1]), n)
        return unpickled, (*parts, self.values)

    def holds(self) -> bool:
        """Whether torch's buffers are as they were when they were checked: values from the first question on."""
        v, known = self.values, self._seen
        if known is None:
            self._seen = seen(v)
        elif v.data_ptr() != known[0] or v.shape != known[1] or v.dtype is not known[2] or v.stride() != known[3]:
            return False
        structure = self._structure or self.structure
        return (structure._watch or structure.watch).holds()

    def changed(self) -> list[str]:
        """The names of torch's buffers that have changed since they were checked.

        Raises InvariantError where memory is gone.
        """
        names = self.structure.watch.changed()
        if self._seen != seen(self.values):
            refuse_resized(self.values, "values")
            names.append("values")
        return names

    def adopt(self) -> None:
        """Take array objects of its own over the same memory, which others may have too; nobody has the storage yet.

        Of torch's buffers changes by others are detected from now on.
        """
        array = np.ndarray
        self.pos = tuple([b if b is None else b.view() if type(b) is array else adopted(b) for b in self.pos])
        self.crd = tuple([b if b is None else b.view() if type(b) is array else adopted(b) for b in self.crd])
        if isinstance(self.values, array):
            self.values = self.values.view()
            return
        self._seen = seen(self.values)
        if self._structure is not None:
            self._structure = Structure(self.shape, self.format, self.pos, self.crd)
            self._structure.watch  # noqa: B018  begins now

    @property
    def like(self) -> Array:
        """A buffer of the storage's library and device."""
        return self.values

    @property
    def library(self) -> str:
        """ "numpy" or "torch"."""
        return library_of(self.values)

    @property
    def device(self) -> str:
        """ "cpu" or torch's name of the device."""
        return device_of(self.values)

    @property
    def batches(self) -> int:
        """Batch slices; 1 without batch levels."""
        return sizes.batches(self.format, self.structure.intervals) if self.format.batch_ndim else 1

    @property
    def addresses(self) -> tuple[int, ...]:
        """Addresses of the buffers that exist: pos and crd of each level in turn, then values, of which a kernel for
        iso operands reads the first alone; of NumPy's kept."""
        if self._addresses is None:
            *indices, values = self.buffers
            one = self.is_iso
            found = *map(address, indices), address(element(values) if one else values)
            if one or type(self.values) is not np.ndarray:
                return found
            self._addresses = found
        return self._addresses

    @property
    def buffers(self) -> tuple[Array, ...]:
        """The buffers that exist, in the order of `addresses`."""
        pairs = itertools.chain.from_iterable(zip(self.pos, self.crd, strict=True))
        return (*(b for b in pairs if b is not None), self.values)

    @property
    def structure(self) -> Structure:
        """Shape, format and index buffers, shared with all storages that differ in their values alone."""
        if self._structure is None:
            self._structure = Structure(self.shape, self.format, self.pos, self.crd)
        return self._structure

    @property
    def is_new(self) -> bool:
        """Whether nobody has asked for the kind of a storage of this structure: most results are used once."""
        return self._structure is None or self._structure.type_parts is None

    @property
    def facts(self) -> dict[Any, Any]:
        """What was found out of storages of this structure and kind of values, by name; `structure.keep` adds to it."""
        if self._facts is None:
            self._facts = self.structure.facts(self.kind)
        return self._facts

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of each level over all batch slices."""
        structure = self._structure or self.structure
        return structure.position_counts or structure.positions

    @property
    def nse(self) -> int:
        """Specified elements: stored ones without padding (outside the shape, empty slots, gaps)."""
        structure = self._structure or self.structure
        if structure.nse is None:
            structure.nse = count(self)
        return structure.nse

    @property
    def is_iso(self) -> bool:
        """Whether the stored elements are one value that takes no memory for each; see `iso`."""
        return (self._signature or self.signature) < 0

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers; values that are iso are one."""
        sizes = [length(b) * itemsize(scalar_of(b)) for b in self.buffers]
        if self.is_iso:
            sizes[-1] = min(sizes[-1], itemsize(self.scalar))
        return sum(sizes)

    @property
    def signature(self) -> int:
        """A small number that two storages share exactly when one compiled kernel serves both.

        It stands for format, scalar type, index widths, library, device and whether the shape is ragged; it is negative
        where the values are one.
        """
        if self._signature is None:
            x = self.values
            is_numpy = isinstance(x, np.ndarray)
            one = (x.strides if is_numpy else x.stride()) == ONE_PLACE and bool(x.shape[0])
            device = None if is_numpy else "cpu" if x.is_cpu else device_of(x)
            structure = self._structure or self.structure
            key = self.scalar, device, one, structure.type_parts or structure.typed()
            known = _signatures.get(key)
            self._signature = known or _signatures.setdefault(key, next(_numbers) * (-1 if one else 1))
        return self._signature

    @property
    def kind(self) -> tuple[int, Any]:
        """Signature and fill value, the key of plans; -0.0 and NaN are distinct fill values."""
        if self._kind is None:
            fill = self.fill_value
            self._kind = self.signature, fill if fill and fill == fill else repr(fill)
        return self._kind

    def permute(self, axes: Sequence[int]) -> Storage:
        """The transpose whose dimension k is dimension `axes[k]` of this one, over the same buffers.

        The same object each time, so that its prepared calls are found again.
        """
        axes = tuple(axes)
        if self._transposes is None:
            self._transposes = {}
        out = self._transposes.get(axes)
        if out is None:
            structure = self.structure.permute(axes)
            out = self.over(structure, self.scalar, self.fill_value, self.values)
            out._addresses, out._seen = self._addresses, self._seen
            keep(self._transposes, axes, out, TRANSPOSES)
        return out

    @staticmethod
    def over(structure: Structure, scalar: str, fill_value: Any, values: Array) -> Storage:
        """The storage of a structure and values."""
        out: Storage = object.__new__(Storage)  # the extents of a structure are no larger than they may be
        out.shape, out.format, out.scalar, out.fill_value = structure.shape, structure.format, scalar, fill_value
        out.pos, out.crd, out.values, out._structure = structure.pos, structure.crd, values, structure
        out._facts = out._addresses = out._signature = out._kind = out._seen = out._transposes = None
        return out

    @staticmethod
    def maker(structure: Structure, scalar: str, fill_value: Any) -> Callable[[Array], Storage]:
        """`over` as a function of values. A structure that keeps it, in its plans, is freed late."""
        return partial(Storage.over, structure, scalar, fill_value)

    def with_own_values(self, values: Array) -> Storage:
        """The same structure and fill value over other values of the same type, library and length, just made."""
        out: Storage = object.__new__(Storage)
        out.shape, out.format, out.scalar, out.fill_value = self.shape, self.format, self.scalar, self.fill_value
        out.pos, out.crd, out.values, out._structure = self.pos, self.crd, values, self._structure or self.structure
        signature = self._signature
        if signature is None or signature > 0:
            out._facts, out._signature, out._kind = self._facts, signature, self._kind
        else:  # one value was the type of another operand
            out._facts = out._signature = out._kind = None
        out._seen = out._addresses = out._transposes = None
        return out

    def with_format(self, format: Format) -> Storage:
        """The same buffers under another format."""
        out = Storage(self.shape, format, self.scalar, self.fill_value, self.pos, self.crd, self.values)
        out._seen = self._seen
        return out

    def mapped(self, visit: Callable[[Array], Array]) -> Storage:
        """The storage of the same structure over `visit(buffer)` of each buffer."""
        pos, crd = (tuple(None if b is None else visit(b) for b in group) for group in (self.pos, self.crd))
        return Storage(self.shape, self.format, self.scalar, self.fill_value, pos, crd, visit(self.values))

    def copied(self) -> Storage:
        """The storage over copies of all buffers."""
        return self.mapped(copied)

    def with_one_value(self, x: Array, fill_value: Any) -> Storage:
        """The same structure over the first element of an array, which all elements are, at one place in memory."""
        scalar, values = scalar_of(x), repeated(x, length(self.values))
        return self.over(self._structure or self.structure, scalar, python_scalar(fill_value, scalar), values)

    def with_values(self, values: Array, fill_value: Any = None) -> Storage:
        """The same structure, sharing pos and crd, over other values; the fill value stays unless one is given.

        A given one is of the kind of the values: 0 beside floats is 0.0.
        """
        numpy = type(values) is np.ndarray
        if not numpy and not isinstance(values, np.ndarray):
            if values._is_zerotensor():
                values = with_memory(values)
            if not values.is_contiguous():  # torch's gradient of a sum
                values = values.contiguous()
        scalar = scalar_of(values)
        fill = self.fill_value if fill_value is None else fill_value
        if fill_value is not None and (scalar != self.scalar or type(fill) is not type(self.fill_value)):
            fill = python_scalar(fill, scalar)
        out = self.over(self._structure or self.structure, scalar, fill, values)
        if not numpy or is_iso(values):
            return out
        if self._addresses is not None:
            out._addresses = (*self._addresses[:-1], address(values))
        signature = self._signature
        if type(self.values) is np.ndarray and scalar == self.scalar and (signature is None or signature > 0):
            out._signature = signature
            if fill_value is None:
                out._kind, out._facts = self._kind, self._facts
        return out


def check_extents(shape: tuple[int, ...]) -> None:
    """Raise InvariantError where an extent is larger than coordinates can be."""
    if max(shape, default=0) > LARGEST:
        _refuse(shape)


def _refuse(shape: tuple[int, ...]) -> None:
    """Raise InvariantError for the first extent that is too large."""
    d, n = next((d, n) for d, n in enumerate(shape) if n > LARGEST)
    raise InvariantError(
        f"extent {d} of shape {shape}\n  expected: an integer from 0 to {LARGEST}; got: {n}"
        "\n  help: coordinates are 64-bit: spread the elements over more dimensions (invariant 3.1)"
    )


def unpickled(
    shape: tuple[int, ...], format: Format, scalar: str, fill_value: Any, pos: tuple[Any, ...], crd: tuple[Any, ...],
    values: Any, count: int | None = None,
) -> Storage:  # fmt: skip
    """The storage of a pickle, which may hold anything: types of its parts are checked here, invariants by the tensor
    that it belongs to.

    count : the elements that all are the one of `values`, None of others
    """
    tuples = all(type(x) is tuple for x in (shape, pos, crd)) and all(type(n) is int for n in shape)
    arrays = all(b is None or is_array(b) for b in (*pos, *crd)) and is_array(values) if tuples else False
    if not tuples or not arrays or not isinstance(format, Format) or scalar not in SCALARS:
        parts = f"shape {shape!r}, format {format!r}, values {type(values).__name__} of {scalar!r}"
        raise InvariantError(f"unpickling: these are not parts of a tensor\n  got: {parts}\n  help: save it anew")
    try:
        fill = python_scalar(fill_value, scalar)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvariantError(
            f"fill value of {scalar}\n  got: {fill_value!r}\n  help: save it anew (invariant 1.4)"
        ) from error
    pos, crd = (tuple(None if b is None else _plain(b) for b in group) for group in (pos, crd))
    values = _plain(values)
    if count is not None:
        if type(count) is not int or count < 0 or tuple(values.shape) != (1,) or scalar_of(values) != scalar:
            raise InvariantError(f"unpickling: {count!r} times values of {tuple(values.shape)}\n  help: save it anew")
        values = repeated(values, count)
    return Storage(shape, format, scalar, fill, pos, crd, values)


def _plain(x: Any) -> Any:
    """An array of a pickle as a buffer: aligned, in this machine's byte order."""
    if not isinstance(x, np.ndarray) or (type(x) is np.ndarray and x.dtype.isnative and x.flags.aligned):
        return x
    return np.array(x, x.dtype.newbyteorder("="))


def structure_of(s: Storage) -> Storage:
    """A storage of this one's structure, whose values are not to be read: bare, of a batch any item's."""
    return s if isinstance(s.values, np.ndarray) else s.with_values(bare(s.values, any_of_batch=True))
