"""A tensor of torch's -> the words of memory that change when it, its memory's place or size, or its version does.

torch's methods take 0.1 microseconds each to say so. Where its objects have these words is asked of torch itself, once:
two tensors that share what is looked for have the same word, others have not, and it follows what is done to them.
Where anything else is found there are no words, and the methods are asked.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

from .recorded import outside

__all__ = ["Pair", "tensor_pairs"]

Pair = tuple[int, int]
"""An address, and the word that is there."""
_SAMPLE = 10007
"""Elements, and bytes, of the tensor that is looked at: a number that nothing else is."""
_STORAGE_WORDS, _TENSOR_WORDS, _COUNTER_WORDS = 10, 22, 3
"""Words of torch's objects that are looked at, no more than they have."""


class _Places(NamedTuple):
    """The numbers of words in torch's objects."""

    data: int
    """of a storage: its address"""
    nbytes: int
    tensor: int
    """of Python's object: torch's tensor"""
    storage: int
    """of a tensor: its storage"""
    counter: int
    numel: int
    """the type and whether it is contiguous come next"""
    version: int
    """of a counter"""


def tensor_pairs(tensor: Any, storage: Any, versioned: Any, is_private: bool) -> list[Pair] | None:
    """The pairs of a tensor over a storage; None where they are not known.

    versioned : the tensor whose version counts too, or None; it must share the counter, which the tensor keeps alive
    is_private : whether nobody else has the tensor itself, so that its shape and type stay as they are
    """
    places = _places()
    if places is None or _word(tensor._cdata + 8 * places.storage) != storage._cdata:
        return None
    own = (places.storage, places.counter) if is_private else range(places.storage, places.numel + 2)
    pairs = [_pair(id(tensor) + 8 * places.tensor), *[_pair(tensor._cdata + 8 * k) for k in own]]
    pairs += _storage_pairs(storage, places)
    if versioned is not None:
        counter = _word(tensor._cdata + 8 * places.counter)
        if counter != _word(versioned._cdata + 8 * places.counter):
            return None
        pairs.append(_pair(counter + 8 * places.version))
    return pairs


def _storage_pairs(storage: Any, places: _Places) -> list[Pair]:
    """The address and the size of a storage's memory."""
    return [_pair(storage._cdata + 8 * k) for k in (places.data, places.nbytes)]


def _pair(address: int) -> Pair:
    return address, _word(address)


def _word(address: int) -> int:
    return int(ctypes.c_int64.from_address(address).value)


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address))


_known: list[_Places | None] = []
"""What was found, once."""


def _places() -> _Places | None:
    """Where the words are, in the torch that is installed; None where they are not where they should be, and as long
    as a mode decides what torch makes."""
    if _known:
        return _known[0]
    torch = sys.modules["torch"]
    if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack() or torch.compiler.is_compiling():
        return None
    try:
        with outside(), torch.inference_mode(False):
            _known.append(_searched(torch))
    except (AttributeError, RuntimeError, TypeError, ValueError):
        _known.append(None)
    return _known[0]


def _searched(torch: Any) -> _Places | None:
    """The places; None or ValueError where something is not where it should be."""
    x = torch.zeros(_SAMPLE, dtype=torch.uint8, device="cpu")
    storage = x.untyped_storage()
    in_storage, in_tensor = _words(storage._cdata, _STORAGE_WORDS), _words(x._cdata, _TENSOR_WORDS)
    at = in_tensor.index(storage._cdata)
    shared = set(range(_TENSOR_WORDS)) - {at}
    for rank in range(1, 6):  # words that are used by tensors of higher rank alone may be anything
        others = torch.zeros((2,) * rank, dtype=torch.uint8, device="cpu")
        trio = [_words(y._cdata, _TENSOR_WORDS) for y in (others, others.detach(), others.clone())]
        shared &= {k for k, (a, b, c) in enumerate(zip(*trio, strict=True)) if a == b != c}
    if len(shared) != 1:
        return None
    (counter_at,) = shared
    numel = max(k for k, w in enumerate(in_tensor[:-1]) if w == _SAMPLE)
    counter = in_tensor[counter_at]
    if counter % 8 or numel < at:
        return None
    in_object = _words(id(x), type(x).__basicsize__ // 8)
    places = _Places(
        in_storage.index(x.data_ptr()), in_storage.index(_SAMPLE), in_object.index(x._cdata), at, counter_at, numel,
        _version_word(x, counter),
    )  # fmt: skip
    return places if _follows(x, storage, places) else None


def _version_word(x: Any, counter: int) -> int:
    """The word of a counter that is a tensor's version, before and after it is written to."""
    found = set(range(_COUNTER_WORDS))
    for _ in range(3):
        x.zero_()
        words = _words(counter, _COUNTER_WORDS)
        found = {k for k in found if words[k] & 0xFFFFFFFF == x._version}
    (word,) = found
    return word


def _follows(x: Any, storage: Any, places: _Places) -> bool:
    """Whether the words are right after the memory has moved."""
    for size in (3 * _SAMPLE, 5 * _SAMPLE):
        storage.resize_(size)
        pairs = _storage_pairs(storage, places)
        if [word for _, word in pairs] != [storage.data_ptr(), size] or storage.data_ptr() != x.data_ptr():
            return False
    return True
