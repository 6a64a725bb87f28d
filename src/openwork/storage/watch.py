"""Torch's index buffers, which other code may write to -> a watch of them, and whether they are as they were checked.

`adopted(x)` is an alias of x that nobody else has: `set_` and `resize_` of x do not reach it. Its version counter
counts writes through any other alias; its address reveals memory that was resized. A structure's watch begins when it
is made. Of NumPy's arrays nothing is recorded: an array that is referred to is not resized, unless its owner insists
(`refcheck=False`), and writes into an index array are found by `check`: see docs/ownership.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import InvariantError
from .buffers import PLAIN_TENSORS, address, copied

__all__ = [
    "NOTHING", "Seen", "Watch", "adopted", "bare_alias", "is_kept", "kept", "memory_of", "read_only", "refuse_resized",
    "seen", "unkept", "watch",
]  # fmt: skip

Seen: TypeAlias = tuple[int, Any, Any, Any]
"""The address, shape, dtype and strides of torch's values when they were checked."""
_KEPT = "_openwork_kept"
"""The attribute that marks a torch tensor as kept for later results."""


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


def adopted(x: Any) -> Any:
    """An alias of an index buffer that nobody else has; of torch's in inference mode, where no version is counted, a
    copy.
    """
    if isinstance(x, np.ndarray):
        return x.view()
    return copied(x) if x.is_inference() else x if x.requires_grad else x.detach()


def read_only(x: Any) -> Any:
    """A read-only view; of a torch tensor an alias, writes through which are detected."""
    if x is None or not isinstance(x, np.ndarray):
        return x if x is None else x.detach()
    out = x.view()
    out.flags.writeable = False
    return out


def bare_alias(x: Any) -> Any:
    """A buffer without the mark of `kept`, to be pickled."""
    return x if x is None or isinstance(x, np.ndarray) or not hasattr(x, _KEPT) else x.detach()


class Watch:
    """Torch's index buffers, each with its version and address when it was checked, and its name, "crd[1]"."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[tuple[Any, int | None, int, str]]) -> None:
        self.records = records

    def holds(self) -> bool:
        """Whether nothing has changed."""
        for x, version, at, _ in self.records:
            if (version is not None and x._version != version) or x.data_ptr() != at:
                return False
        return True

    def changed(self) -> list[str]:
        """The names of buffers that have changed. Raises InvariantError where memory is gone."""
        names = [record[3] for record in self.records if not Watch([record]).holds()]
        for x, _, _, name in self.records:
            if name in names:
                refuse_resized(x, name)
        return names


NOTHING = Watch(())
"""The watch of buffers that are not torch's."""
_NUMBERS = {"pos": "3.8", "crd": "3.9", "values": "3.10"}


def refuse_resized(x: Any, name: str) -> None:
    """Raise InvariantError for a torch buffer that reaches beyond its memory. name : "crd[1]" """
    reached = (x.storage_offset() + x.numel()) * x.element_size() if x.numel() else 0
    nbytes = x.untyped_storage().nbytes()
    if reached > nbytes:
        raise InvariantError(
            f"{name}: the memory of the torch tensor was resized after the tensor"
            f" was made\n  expected: {reached} bytes; got: {nbytes}\n"
            "  help: make the tensor anew, or of clones before storages are resized"
            f" (invariant {_NUMBERS[name.partition('[')[0]]})"
        )


def watch(pos: Sequence[Any], crd: Sequence[Any]) -> Watch:
    """The watch of these index buffers, from now on; NOTHING of NumPy's, and of tensors without memory of their own."""
    records = []
    for kind, group in (("pos", pos), ("crd", crd)):
        for level, x in enumerate(group):
            if x is None:
                continue
            if type(x) not in PLAIN_TENSORS:
                return NOTHING
            try:
                records.append((x, None if x.is_inference() else x._version, x.data_ptr(), f"{kind}[{level}]"))
            except RuntimeError:  # of a transform: without memory of its own
                return NOTHING
    return Watch(records) if records else NOTHING


def seen(values: Any) -> Seen | None:
    """What torch's values are now; None of a tensor without memory of its own, as inside a transform."""
    if type(values) not in PLAIN_TENSORS:
        return None
    try:
        return values.data_ptr(), values.shape, values.dtype, values.stride()
    except RuntimeError:
        return None
