"""SPIR-V of LLVM's: every block has a number of its own, whatever was compiled before."""

from __future__ import annotations

import numpy as np
import pytest

from openwork.codegen.device_targets import DEVICES
from openwork.codegen.emit_device import emit_device
from openwork.codegen.engine import device_binary
from openwork.codegen.spirv import SharedNumber, renumbered
from openwork.ir.text import parse

LOOPS = """
def loops(n: i64, x: i64[const], y: i64[mut]):  # grid of 128, subgroups of 32
    at = group * 128 + item
    if at < n:
        low: i64 = 0
        high: i64 = n
        while low + 1 < high:
            mid = (low + high) // 2
            if x[mid] <= at:
                low = mid
            else:
                high = mid
        y[at] = low
"""


def instructions(binary: bytes) -> list[np.ndarray]:
    words, at, found = np.frombuffer(binary, "<u4"), 5, []
    while at < len(words):
        length = int(words[at]) >> 16
        found.append(words[at : at + length])
        at += length
    return found


def module(*body: tuple[int, ...]) -> bytes:
    words = [0x07230203, 0x10400, 0, 10, 0]
    for code, *operands in body:
        words += [(len(operands) + 1) << 16 | code, *operands]
    return np.array(words, "<u4").tobytes()


def test_blocks_have_numbers_of_their_own_in_every_compilation() -> None:
    text = emit_device(parse(LOOPS), DEVICES["opencl"])
    for _ in range(60):
        made = instructions(device_binary(text, DEVICES["opencl"].target))
        types = [int(w[1]) for w in made if w[0] & 0xFFFF in range(19, 34)]
        labels = [int(w[1]) for w in made if w[0] & 0xFFFF == 248]
        assert len(set(labels)) == len(labels) == 6
        assert not set(labels) & set(types)
        branched = {int(x) for w in made for x in w[1:] if w[0] & 0xFFFF == 249}
        assert branched <= set(labels)


def test_numbers_follow_from_their_places() -> None:
    """The number 3 is a type, a block, and the name of what is either."""
    before = module(
        (5, 3, 0x61), (21, 3, 64, 0), (54, 3, 4, 0, 5), (248, 3), (250, 6, 7, 3), (248, 7),
        (245, 3, 8, 3, 3, 4, 7), (251, 3, 7, 1, 3), (56,),
    )  # fmt: skip
    after = [[w[0] & 0xFFFF, *(int(x) for x in w[1:])] for w in instructions(renumbered(before))]
    assert after == [
        [21, 3, 64, 0], [54, 3, 4, 0, 5], [248, 10], [250, 6, 11, 10], [248, 11],
        [245, 3, 8, 3, 10, 4, 11], [251, 3, 11, 1, 10], [56],
    ]  # fmt: skip
    assert np.frombuffer(renumbered(before), "<u4")[3] == 12


def test_blocks_that_share_a_number_are_told_by_nothing() -> None:
    with pytest.raises(SharedNumber, match="one number"):
        renumbered(module((54, 1, 2, 0, 3), (248, 4), (249, 4), (248, 4), (56,)))


def test_blocks_that_share_a_number_are_told_by_another_compilation() -> None:
    once = module((54, 1, 2, 0, 3), (248, 4), (249, 6), (248, 4), (249, 4), (248, 6), (56,))
    again = module((54, 1, 2, 0, 3), (248, 5), (249, 5), (248, 7), (249, 7), (248, 5), (56,))
    with pytest.raises(SharedNumber):
        renumbered(again)
    found = [[int(x) for x in w[1:]] for w in instructions(renumbered(once, again))]
    assert found == [[1, 2, 0, 3], [10], [12], [11], [11], [12], []]
