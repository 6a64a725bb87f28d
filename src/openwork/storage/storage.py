"""What a tensor consists of: shape, format, fill value and the buffers; everything else is derived from these."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InvariantError
from ..format.cached import cached
from ..format.format import Format
from . import sizes
from .buffers import (
    SCALARS,
    Array,
    address,
    copied,
    device_of,
    held,
    is_array,
    is_recorded,
    itemsize,
    length,
    library_of,
    scalar_of,
)
from .scalars import python_scalar
from .watch import Watch, adopted, bare_alias, watch

__all__ = ["LARGEST", "Storage", "unpickled"]

LARGEST = 2**63 - 1
"""The largest extent."""

_SET = object.__setattr__
_signatures: dict[object, int] = {}
_numbers = itertools.count()


@cached(1024)
def _permuted(format: Format, axes: tuple[int, ...]) -> Format:
    return format.permute(axes)


@dataclass(frozen=True, slots=True, eq=False)
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
    """

    shape: tuple[int, ...]
    format: Format
    scalar: str
    fill_value: Any
    pos: tuple[Array | None, ...]
    crd: tuple[Array | None, ...]
    values: Array
    plans: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """launches made ready for these buffers, kept by the operations"""
    _addresses: tuple[int, ...] | None = field(default=None, init=False, repr=False)
    _positions: tuple[int, ...] | None = field(default=None, init=False, repr=False)
    _nse: int | None = field(default=None, init=False, repr=False)
    _signature: int | None = field(default=None, init=False, repr=False)
    _watch: Watch | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for d, n in enumerate(self.shape):
            if n > LARGEST:
                raise InvariantError(
                    f"3.1 extent {d} of shape {self.shape}\n  expected: an integer from 0 to {LARGEST}; got: {n}"
                    "\n  help: coordinates are 64-bit: spread the elements over more dimensions"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles keep the data only, never addresses."""
        pos, crd = (tuple(map(bare_alias, group)) for group in (self.pos, self.crd))
        return unpickled, (self.shape, self.format, self.scalar, self.fill_value, pos, crd, self.values)

    @property
    def watch(self) -> Watch:
        """What is to hold of the buffers that others have too; noted when it is first asked for."""
        if self._watch is None:
            _SET(self, "_watch", watch(self.pos, self.crd, self.values))
        return self._watch  # type: ignore[return-value]

    def adopted(self) -> Storage:
        """The storage over the same memory, which others may have too: what they do to it is noticed from now on."""
        pos, crd = (tuple(None if b is None else adopted(b) for b in group) for group in (self.pos, self.crd))
        values = adopted(self.values) if self.library == "numpy" else self.values
        out = Storage(self.shape, self.format, self.scalar, self.fill_value, pos, crd, values)
        _SET(out, "_watch", watch(pos, crd, values))
        return out

    @property
    def like(self) -> Array:
        """A buffer that tells the library and the device."""
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
        return sizes.batches(self.format, self.shape) if self.format.batch_ndim else 1

    @property
    def addresses(self) -> tuple[int, ...]:
        """Addresses of the buffers that exist: pos and crd of each level in turn, then values."""
        if self._addresses is None:
            _SET(self, "_addresses", tuple(address(b) for b in self.buffers))
        return self._addresses  # type: ignore[return-value]

    @property
    def buffers(self) -> tuple[Array, ...]:
        """The buffers that exist, in the order of `addresses`."""
        pairs = itertools.chain.from_iterable(zip(self.pos, self.crd, strict=True))
        return (*(b for b in pairs if b is not None), self.values)

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of each level over all batch slices."""
        if self._positions is None:
            _SET(self, "_positions", sizes.positions(self.format, self.shape, self.crd))
        return self._positions  # type: ignore[return-value]

    @property
    def nse(self) -> int:
        """Specified elements: stored ones without padding (outside the shape, empty slots, gaps)."""
        if self._nse is None:
            from .specified import count

            _SET(self, "_nse", count(self))
        return self._nse  # type: ignore[return-value]

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(length(b) * itemsize(scalar_of(b)) for b in self.buffers)

    @property
    def signature(self) -> int:
        """A small number that two storages share exactly when one compiled kernel serves both.

        It stands for format, scalar type, index widths, library, device and whether the shape is ragged.
        """
        if self._signature is None:
            widths = tuple(None if b is None else scalar_of(b) for b in (*self.pos, *self.crd))
            ragged = self.format.ragged(self.shape)
            key = (self.format, self.scalar, widths, self.library, self.device, ragged)
            _SET(self, "_signature", _signatures.setdefault(key, next(_numbers)))
        return self._signature  # type: ignore[return-value]

    def permute(self, axes: Sequence[int]) -> Storage:
        """The transpose whose dimension k is dimension `axes[k]` of this one, over the same buffers."""
        axes = tuple(axes)
        shape = tuple(self.shape[a] for a in axes)
        format = _permuted(self.format, axes)
        out = Storage(shape, format, self.scalar, self.fill_value, self.pos, self.crd, self.values)
        for name in ("_addresses", "_positions", "_nse", "_watch"):
            _SET(out, name, getattr(self, name))
        return out

    def with_format(self, format: Format) -> Storage:
        """The same buffers under another format."""
        out = Storage(self.shape, format, self.scalar, self.fill_value, self.pos, self.crd, self.values)
        _SET(out, "_watch", self._watch)
        return out

    def mapped(self, visit: Callable[[Array], Array]) -> Storage:
        """The storage of the same structure over `visit(buffer)` of each buffer."""
        pos, crd = (tuple(None if b is None else visit(b) for b in group) for group in (self.pos, self.crd))
        return Storage(self.shape, self.format, self.scalar, self.fill_value, pos, crd, visit(self.values))

    def copied(self) -> Storage:
        """The storage over copies of all buffers."""
        return self.mapped(copied)

    def with_values(self, values: Array, fill_value: Any = None) -> Storage:
        """The same structure, sharing pos and crd, over other values; the fill value stays unless one is given."""
        fill = self.fill_value if fill_value is None else fill_value
        values = held(values)
        out = Storage(self.shape, self.format, scalar_of(values), fill, self.pos, self.crd, values)
        if self._addresses is not None and (library_of(values) == "numpy" or not is_recorded(values)):
            _SET(out, "_addresses", (*self._addresses[:-1], address(values)))
        _SET(out, "_positions", self._positions)
        _SET(out, "_nse", self._nse)
        return out


def unpickled(
    shape: tuple[int, ...], format: Format, scalar: str, fill_value: Any, pos: tuple[Any, ...], crd: tuple[Any, ...],
    values: Any,
) -> Storage:  # fmt: skip
    """The storage of a pickle, which may hold anything: here the kinds of its parts are checked, invariants by the
    tensor that it belongs to."""
    tuples = all(type(x) is tuple for x in (shape, pos, crd)) and all(type(n) is int for n in shape)
    arrays = all(b is None or is_array(b) for b in (*pos, *crd)) and is_array(values) if tuples else False
    if not tuples or not arrays or not isinstance(format, Format) or scalar not in SCALARS:
        what = f"shape {shape!r}, format {format!r}, values {type(values).__name__} of {scalar!r}"
        raise InvariantError(f"unpickling: these are no parts of a tensor\n  got: {what}\n  help: save it anew")
    try:
        fill = python_scalar(fill_value, scalar)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvariantError(f"1.4 fill value of {scalar}\n  got: {fill_value!r}\n  help: save it anew") from error
    pos, crd = (tuple(None if b is None else _plain(b) for b in group) for group in (pos, crd))
    return Storage(shape, format, scalar, fill, pos, crd, _plain(values))


def _plain(x: Any) -> Any:
    """An array of a pickle as a buffer: aligned, in this machine's byte order."""
    if not isinstance(x, np.ndarray) or (type(x) is np.ndarray and x.dtype.isnative and x.flags.aligned):
        return x
    return np.array(x, x.dtype.newbyteorder("="))
