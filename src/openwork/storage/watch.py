"""Torch buffers that other code may change -> a record of them when they were checked, and whether it still holds.

`adopted(x)` is an alias of x without other references. Its version counter counts writes through any other alias; its
address reveals memory that was resized. Of NumPy's arrays nothing is recorded: an array that is
referred to is not resized, unless its owner insists (`refcheck=False`), and writes into an index array are found by
`check`: see docs/ownership.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InvariantError
from .buffers import address, copied

__all__ = [
    "NOTHING", "Watch", "adopted", "bare_alias", "is_kept", "kept", "memory_of", "private", "read_only", "unkept",
    "watch", "watch_from", "watch_of_values",
]  # fmt: skip

Name: TypeAlias = tuple[str, int]
"""The name of a buffer: "pos", "crd" or "values", and the level."""
_VALUES = "values", 0
_SOURCE = "_openwork_source"
"""The attribute of a torch alias that nobody else has: the tensor whose version counter is read, None for itself."""
_KEPT = "_openwork_kept"
"""The attribute that marks a torch tensor as kept for later results."""
_SEEN = "_openwork_seen"
"""The attribute of a torch alias: the record of when it was checked."""


def _owner(x: Any) -> Any:
    """The owner of a NumPy array's memory: an array, or an object of another library."""
    while isinstance(x, np.ndarray) and x.base is not None:
        x = x.base
    return x


class _Kept:
    """The base of a read-only view of an index array that is kept for later results, inside the package."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (address(array), True)}


def kept(x: Any) -> Any:
    """An index buffer marked as kept for later results: users get copies of it."""
    if isinstance(x, np.ndarray):
        return np.asarray(_Kept(x)) if x.flags.c_contiguous else x
    out = x.detach()
    setattr(out, _KEPT, True)
    return out


def is_kept(x: Any) -> bool:
    """Whether a buffer is one that `kept` returned, or a view of one."""
    return type(_owner(x)) is _Kept or hasattr(x, _KEPT)


def unkept(buffers: Sequence[Any]) -> list[Any]:
    """The buffers, with copies of those that are kept: for other libraries, whose methods may write to them."""
    return [copied(b) if b is not None and is_kept(b) else b for b in buffers]


def memory_of(x: Any) -> object:
    """The object that owns an array's allocation: the same for two NumPy arrays exactly where they share it."""
    return _owner(x)


def adopted(x: Any, source: Any = None) -> Any:
    """A torch buffer over memory that other code has too, watched; `source`: the tensor whose version is read."""
    if x.requires_grad or hasattr(x, _SEEN):
        return x
    out = x.detach()
    setattr(out, _SOURCE, x if source is None else source)
    return out


def private(*tensors: Any) -> None:
    """Mark aliases of torch's index buffers that were just made: nobody else has them, their versions are their own."""
    for x in tensors:
        setattr(x, _SOURCE, None)


def read_only(x: Any) -> Any:
    """A read-only view; of a torch tensor an alias, writes through which are detected."""
    if x is None or not isinstance(x, np.ndarray):
        return x if x is None else x.detach()
    out = x.view()
    out.flags.writeable = False
    return out


def bare_alias(x: Any) -> Any:
    """A buffer without the record of it, to be pickled."""
    return x if x is None or isinstance(x, np.ndarray) or not hasattr(x, _SEEN) else x.detach()


class _Unversioned:
    """The source of tensors whose writes are not counted: values, and those of inference mode."""

    _version = None


class Record(NamedTuple):
    """What a torch tensor was when it was checked.

    address_of, at : its address, asked and as it was: memory that is resized moves
    source, version : whose version counter is read, and what it was
    tensor, numel, dtype : the tensor, its length and its type, where others have the object itself and may change
        these; of an alias that nobody else has the length is None
    name : of the buffer
    """

    address_of: Callable[[], int]
    at: int
    source: Any
    version: int | None
    tensor: Any
    numel: int | None
    dtype: Any
    name: Name


_new = tuple.__new__
"""`Record(*parts)` of a tuple of them, in half the time."""


def _bytes_reached(t: Any) -> int:
    """The bytes of memory that a tensor reaches, from its begin on."""
    return int((t.storage_offset() + t.numel()) * t.element_size()) if t.numel() else 0


class Watch:
    """The records of a storage's torch buffers, to detect changes by other code. NOTHING where no other code has them.

    base : the watch of other buffers, which holds where this one does; None where there are none
    begun : makes the records at the first question, of a watch that begins with less
    is_fresh : whether its own records were made for the question that comes now
    """

    __slots__ = ("base", "begun", "is_fresh", "records")

    def __init__(
        self, records: list[Record], base: Watch | None = None, begun: Callable[[], list[Record]] | None = None,
        is_fresh: bool = False,
    ) -> None:  # fmt: skip
        self.records, self.base, self.begun, self.is_fresh = records, base, begun, is_fresh

    def holds(self) -> bool:
        """Whether nothing has changed."""
        if self.is_fresh:
            self.is_fresh = False
            return self.base is None or self.base.holds()
        if self.begun is not None:
            self._begin()
        if self.base is not None and not self.base.holds():
            return False
        for address_of, at, source, version, t, numel, dtype, _ in self.records:
            if address_of() != at or source._version != version:
                return False
            if numel is not None and (t.numel() != numel or t.ndim != 1 or t.dtype is not dtype):
                return False
            if numel is not None and not t.is_contiguous():
                return False
        return True

    def _begin(self) -> None:
        """Make the records of a watch that began with less."""
        begun, self.begun = self.begun, None
        if begun is not None:
            self.records = begun()

    def changed(self) -> list[str]:
        """The torch buffers that have changed. Raises InvariantError where memory is gone."""
        self._begin()
        of_base = [] if self.base is None else self.base.changed()
        changed = [record for record in self.records if not Watch([record]).holds()]
        for record in changed:
            reached, nbytes = _bytes_reached(record.tensor), record.tensor.untyped_storage().nbytes()
            if reached > nbytes:
                raise InvariantError(
                    f"{_spelled(record.name, True)}: the memory of the torch tensor was resized after the tensor was"
                    f" made\n  expected: {reached} bytes; got: {nbytes}\n"
                    "  help: make the tensor anew, or of clones before storages are resized"
                )
            if hasattr(record.tensor, _SEEN):
                delattr(record.tensor, _SEEN)
        return [*of_base, *[_spelled(record.name) for record in changed]]


NOTHING = Watch([])


_NUMBERS = {"pos": "3.8", "crd": "3.9", "values": "3.10"}


def _spelled(name: Name, numbered: bool = False) -> str:
    """A buffer's name, after the number of the invariant of its length."""
    kind, level = name
    text = kind if kind == "values" else f"{kind}[{level}]"
    return f"{_NUMBERS[kind]} {text}" if numbered else text


def _index_record(x: Any, name: Name, seen: tuple[int, int | None] | None = None) -> Record:
    """The record of an index buffer, of when it was first checked: address and version, where they are given."""
    attributes = x.__dict__
    source = attributes.get(_SOURCE)
    source = x if source is None else source
    known = attributes.get(_SEEN) if seen is None else seen
    if known is None:
        known = x.data_ptr(), None if source.is_inference() else source._version
    attributes[_SEEN] = at, version = known
    numel = None if _SOURCE in attributes or _KEPT in attributes else x.numel()
    source = _Unversioned if version is None else source
    return _new(Record, (x.data_ptr, at, source, version, x, numel, x.dtype, name))


def _value_record(x: Any, at: int, numel: int, dtype: Any) -> Record:
    """The record of values, of when they were as this says."""
    return _new(Record, (x.data_ptr, at, _Unversioned, None, x, numel, dtype, _VALUES))


def names_of(pos: Any, crd: Any, values: Any) -> list[tuple[Name, Any]]:
    """The buffers that exist, by name: pos of each level, crd of each level, values."""
    index_buffers = [((kind, at), b) for kind, group in (("pos", pos), ("crd", crd)) for at, b in enumerate(group)]
    return [(name, b) for name, b in (*index_buffers, (_VALUES, values)) if b is not None]


def watch(pos: Any, crd: Any, values: Any = None) -> Watch:
    """The watch of these buffers, from now on; NOTHING of NumPy's."""
    like = values if values is not None else next((b for b in (*pos, *crd) if b is not None), None)
    if like is None or isinstance(like, np.ndarray):
        return NOTHING
    try:
        records = [
            _value_record(b, b.data_ptr(), b.numel(), b.dtype) if name is _VALUES else _index_record(b, name)
            for name, b in names_of(pos, crd, values)
        ]
    except (RuntimeError, NotImplementedError):  # of a transform, or of a tracer: without memory of its own
        return NOTHING
    return Watch(records) if records else NOTHING


def watch_of_values(values: Any, base: Watch) -> Watch:
    """The watch of values of torch's, asked at once, beside the one of the index buffers, which serves all values.

    Its record is made at the second question: most results are asked once.
    """
    try:
        as_it_is = values.data_ptr(), values.numel(), values.dtype
    except (RuntimeError, NotImplementedError):  # of a transform, or of a tracer
        return NOTHING
    return Watch([], None if base is NOTHING else base, lambda: [_value_record(values, *as_it_is)], is_fresh=True)


def watch_from(index_buffers: Sequence[Any], first: int, seen: Sequence[tuple[int, int]], values: Any) -> Watch:
    """The watch of torch buffers that were checked just now: pos of level `first` and crd from there on, which were at
    these addresses, of these versions, and values.

    Records, which take a third of the time of `asarray`, are made when they are asked for.
    """
    as_it_is = values.data_ptr(), values.numel(), values.dtype

    def records() -> list[Record]:
        found = [_value_record(values, *as_it_is)]
        for k, (x, known) in enumerate(zip(index_buffers, seen, strict=True)):
            found.append(_index_record(x, ("crd", first + k - 1) if k else ("pos", first), known))
        return found

    return Watch([], begun=records)
