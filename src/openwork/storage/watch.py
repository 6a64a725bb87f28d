"""Torch buffers that other code may change -> a record of them when they were checked, and whether it still holds.

`adopted(x)` is an alias of x without other references. Its version counter counts writes through any other alias; its
address and the bytes of its memory reveal `resize_` and `set_`. Of NumPy's arrays nothing is recorded: an array that is
referred to is not resized, unless its owner insists (`refcheck=False`), and writes into an index array are found by
`check`: see docs/ownership.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..errors import InvariantError
from .buffers import address, copied

__all__ = [
    "NOTHING", "Watch", "adopted", "bare_alias", "is_kept", "kept", "memory_of", "private", "read_only", "unkept",
    "watch", "watch_from", "watch_of_values",
]  # fmt: skip

Name: TypeAlias = tuple[str, int]
"""The name of a buffer: "pos", "crd" or "values", and the level."""
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


class Watch:
    """The records of a storage's torch buffers, to detect changes by other code. NOTHING where no other code has them.

    base : the watch of other buffers, which holds where this one does; None where there are none
    is_fresh : whether its own records were made for the question that comes now
    """

    __slots__ = ("base", "begun", "is_fresh", "private", "shared", "tensors")

    def __init__(self, tensors: list[tuple[Name, _Record]], base: Watch | None = None) -> None:
        self.begun: Callable[[], list[tuple[Name, _Record]]] | None = None
        """makes the records at the first question, of a watch that begins with less"""
        self.base, self.is_fresh = base, False
        self._record(tensors)

    def _record(self, tensors: list[tuple[Name, _Record]]) -> None:
        """Take the records of torch's tensors."""
        self.tensors = tensors
        self.private: list[Any] = []
        """what is asked of tensors that nobody else has, and the answers: addresses, bytes, versions"""
        self.shared: list[Any] = []
        """the same of other tensors, with their lengths and types"""
        for _, s in tensors:
            source = _Unversioned if s.version is None else s.source
            place = s.tensor.data_ptr, s.at, s.storage.nbytes, s.nbytes, source, s.version
            if s.is_private:
                self.private.append(place)
            else:
                self.shared.append((*place, s.tensor, s.numel, s.dtype))

    def holds(self) -> bool:
        """Whether nothing has changed."""
        if self.is_fresh:
            self.is_fresh = False
            return self.base is None or self.base.holds()
        if self.begun is not None:
            self._begin()
        if self.base is not None and not self.base.holds():
            return False
        for address_now, at, nbytes_now, nbytes, source, version in self.private:
            if address_now() != at or nbytes_now() != nbytes or source._version != version:
                return False
        for address_now, at, nbytes_now, nbytes, source, version, t, numel, dtype in self.shared:
            if address_now() != at or nbytes_now() != nbytes or source._version != version:
                return False
            if t.numel() != numel or t.ndim != 1 or t.dtype is not dtype or not t.is_contiguous():
                return False
        return True

    def _begin(self) -> None:
        """Make the records of a watch that began with less."""
        begun, self.begun = self.begun, None
        if begun is not None:
            self._record(begun())

    def changed(self) -> list[str]:
        """The torch buffers that have changed. Raises InvariantError where memory is gone."""
        self._begin()
        of_base = [] if self.base is None else self.base.changed()
        changed = [(name, seen) for name, seen in self.tensors if not seen.holds()]
        for name, seen in changed:
            if seen.lost():
                raise InvariantError(
                    f"{_spelled(name, True)}: the memory of the torch tensor was resized after the tensor was made\n"
                    f"  expected: {seen.nbytes} bytes; got: {seen.nbytes_now()}\n"
                    "  help: make the tensor anew, or of clones before storages are resized"
                )
            seen.forget()
        return [*of_base, *[_spelled(name) for name, _ in changed]]


NOTHING = Watch([])


_NUMBERS = {"pos": "3.8", "crd": "3.9", "values": "3.10"}


def _spelled(name: Name, numbered: bool = False) -> str:
    """A buffer's name, after the number of the invariant of its length."""
    kind, level = name
    text = kind if kind == "values" else f"{kind}[{level}]"
    return f"{_NUMBERS[kind]} {text}" if numbered else text


class _Record:
    """The record of a torch tensor: of values their address, size and type, of index buffers also their version."""

    __slots__ = ("at", "dtype", "is_private", "nbytes", "numel", "source", "storage", "tensor", "version")

    def __init__(self, tensor: Any, index: bool) -> None:
        self.tensor, self.numel, self.dtype = tensor, tensor.numel(), tensor.dtype
        self.storage = tensor.untyped_storage()
        source = getattr(tensor, _SOURCE, None)
        self.source = tensor if source is None else source
        self.is_private = index and (hasattr(tensor, _SOURCE) or hasattr(tensor, _KEPT))
        """whether no other code has the object itself, so that its shape and type cannot change"""
        record = getattr(tensor, _SEEN, None) if index else None
        if record is None:
            version = self.source._version if index and not self.source.is_inference() else None
            record = tensor.data_ptr(), self.storage.nbytes(), version
            if index:
                setattr(tensor, _SEEN, record)
        self.at: int = record[0]
        self.nbytes: int = record[1]
        self.version: int | None = record[2]

    def holds(self) -> bool:
        """Whether nothing has changed."""
        t = self.tensor
        if t.data_ptr() != self.at or self.storage.nbytes() != self.nbytes:
            return False
        if self.version is not None and self.source._version != self.version:
            return False
        if self.is_private:
            return True
        return t.numel() == self.numel and t.ndim == 1 and t.dtype is self.dtype and bool(t.is_contiguous())

    def nbytes_now(self) -> int:
        """Bytes of the tensor's memory now."""
        return int(self.tensor.untyped_storage().nbytes())

    def lost(self) -> bool:
        """Whether the tensor reaches beyond its memory."""
        t = self.tensor
        end = (t.storage_offset() + t.numel()) * t.element_size()
        return bool(t.numel() and end > self.nbytes_now())

    def forget(self) -> None:
        """Drop the tensor's record, so that the tensor is checked again."""
        if hasattr(self.tensor, _SEEN):
            delattr(self.tensor, _SEEN)


def names_of(pos: Any, crd: Any, values: Any) -> list[tuple[Name, Any]]:
    """The buffers that exist, by name: pos of each level, crd of each level, values."""
    index_buffers = [((kind, at), b) for kind, group in (("pos", pos), ("crd", crd)) for at, b in enumerate(group)]
    return [(name, b) for name, b in (*index_buffers, (("values", 0), values)) if b is not None]


def watch(pos: Any, crd: Any, values: Any = None) -> Watch:
    """The watch of these buffers, from now on; NOTHING of NumPy's."""
    like = values if values is not None else next((b for b in (*pos, *crd) if b is not None), None)
    if like is None or isinstance(like, np.ndarray):
        return NOTHING
    try:
        tensors = [(name, _Record(b, name[0] != "values")) for name, b in names_of(pos, crd, values)]
    except (RuntimeError, NotImplementedError):  # of a transform, or of a tracer: without memory of its own
        return NOTHING
    return Watch(tensors) if tensors else NOTHING


def watch_of_values(values: Any, base: Watch) -> Watch:
    """The watch of values of torch's, asked at once, beside the one of the index buffers, which serves all values.

    Its record is made at the second question: most results are asked once.
    """
    try:
        as_it_is = values.data_ptr(), values.untyped_storage().nbytes(), values.numel(), values.dtype
    except (RuntimeError, NotImplementedError):  # of a transform, or of a tracer
        return NOTHING
    out: Watch = object.__new__(Watch)
    out.tensors, out.private, out.shared = [], [], []
    out.base, out.is_fresh = None if base is NOTHING else base, True
    out.begun = partial(_record_of_values, values, as_it_is)
    return out


def _record_of_values(values: Any, as_it_was: tuple[int, int, int, Any]) -> list[tuple[Name, _Record]]:
    """The record of values, of when they were as this says."""
    record = _Record(values, False)
    record.at, record.nbytes, record.numel, record.dtype = as_it_was
    return [(("values", 0), record)]


def watch_from(
    index_buffers: Sequence[Any], first: int, seen: Sequence[tuple[int, int]], values: Any, count: int
) -> Watch:
    """The watch of torch buffers that were checked just now: pos of level `first` and crd from there on, which were at
    these addresses, of these versions, and so many values.

    Records, which take a third of the time of `asarray`, are made when they are asked for.
    """
    out = Watch([])
    out.begun = lambda: _records(index_buffers, first, seen, values, count)
    return out


def _records(
    index_buffers: Sequence[Any], first: int, seen: Sequence[tuple[int, int]], values: Any, count: int
) -> list[tuple[Name, _Record]]:
    """The records of `watch_from`; what does not hold any more has one that says so."""
    records: list[tuple[Name, _Record]] = []
    for k, (x, (at, version)) in enumerate(zip(index_buffers, seen, strict=True)):
        name = ("crd", first + k - 1) if k else ("pos", first)
        setattr(x, _SEEN, (at, int(x.untyped_storage().nbytes()), version))
        records.append((name, _Record(x, True)))
    records.append((("values", 0), _Record(values, False)))
    for _, record in records:
        if record.lost() or (record.tensor is values and (values.numel() != count or not values.is_contiguous())):
            record.nbytes = -1
    return records
