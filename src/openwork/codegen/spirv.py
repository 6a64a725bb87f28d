"""A SPIR-V binary of LLVM's -> the same with a number of its own for each block.

LLVM's SPIR-V target keeps the numbers of blocks by their addresses and never forgets them: where a block of a later
module lies at the address of an earlier one's, it gets that one's number, which may be the number of something else.
What a number stands for follows from the place where it is written, so that blocks can be numbered anew. Two blocks of
one number are told apart by binaries of further compilations of the same text, in which addresses differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import CompilerBug

__all__ = ["SharedNumber", "renumbered"]

_HEADER, _BOUND = 5, 3
_NAME, _FUNCTION_END, _PHI, _LOOP_MERGE, _MERGE, _LABEL, _BRANCH, _CHOICE, _SWITCH = (
    5,
    56,
    245,
    246,
    247,
    248,
    249,
    250,
    251,
)
_PLACES = {_LABEL: (1,), _BRANCH: (1,), _CHOICE: (2, 3), _LOOP_MERGE: (1, 2), _MERGE: (1,)}
"""The words of an instruction that are numbers of blocks."""


class SharedNumber(CompilerBug):
    """Two blocks of one function have one number in every binary: nothing tells them apart."""


def renumbered(binary: bytes, *others: bytes) -> bytes:
    """The binary with fresh numbers for all blocks. others : of the same text, which differ in numbers alone

    Raises SharedNumber where two blocks of a function share their numbers in all of them.
    """
    every = [np.frombuffer(b, "<u4").astype(np.int64) for b in (binary, *others)]
    words = every[0].copy()
    spans = list(_instructions(words))
    fresh, kept = int(words[_BOUND]), [words[:_HEADER]]
    labels = {int(words[at + 1]) for at, _, code in spans if code == _LABEL}
    inside: list[tuple[int, int, int]] = []
    for at, length, code in spans:
        if code == _NAME and int(words[at + 1]) in labels:
            continue
        kept.append(words[at : at + length])
        inside.append((at, length, code))
        if code == _FUNCTION_END:
            fresh = _function(words, every, inside, fresh)
            inside = []
    words[_BOUND] = fresh
    return np.concatenate(kept).astype("<u4").tobytes()


def _instructions(words: np.ndarray[Any, Any]) -> Iterator[tuple[int, int, int]]:
    """The place, length and code of each instruction."""
    at = _HEADER
    while at < len(words):
        length, code = int(words[at]) >> 16, int(words[at]) & 0xFFFF
        yield at, length, code
        at += length


def _function(
    words: np.ndarray[Any, Any], every: Sequence[np.ndarray[Any, Any]], inside: list[tuple[int, int, int]], fresh: int
) -> int:
    """Number the blocks of a function anew, in place, by what they are called in every binary; the next number."""

    def name(place: int) -> tuple[int, ...]:
        return tuple(int(w[place]) for w in every)

    old = [name(at + 1) for at, _, code in inside if code == _LABEL]
    if len(set(old)) < len(old):
        raise SharedNumber("code generation: LLVM gave two blocks of a SPIR-V function one number")
    numbers = {number: fresh + n for n, number in enumerate(old)}
    for at, length, code in inside:
        places: Sequence[int] = _PLACES.get(code, ())
        if code == _PHI:
            places = range(4, length, 2)
        elif code == _SWITCH:
            of_one_word = all(name(place) in numbers for place in range(at + 4, at + length, 2))
            width = 2 if (length - 3) % 2 == 0 and of_one_word else 3
            places = (2, *range(2 + width, length, width))
        for place in places:
            words[at + place] = numbers[name(at + place)]
    return fresh + len(old)
