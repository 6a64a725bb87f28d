"""Scalar types by name: what two of them come to, and the words that kernels take numbers as."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from openwork.runtime.launch import bits
from openwork.runtime.promote import promote


@pytest.mark.parametrize(
    ("other", "want"),
    [("bf16", "bf16"), ("bool", "bf16"), ("i8", "bf16"), ("u8", "bf16"), ("i16", "f32"), ("i64", "f32"), ("u32", "f32"),
     ("f16", "f32"), ("f32", "f32"), ("f64", "f64"), ("c64", "c64"), ("c128", "c128")],
)  # fmt: skip
def test_bfloat16_beside_the_types_of_numpy(other: str, want: str) -> None:
    assert promote(("bf16", other)) == promote((other, "bf16")) == want


@pytest.mark.parametrize("scalar", ["f64", "f32", "f16", "bf16", "i64", "u8"])
@pytest.mark.parametrize("value", [-2.5, 0.0, 1.0, np.inf])
def test_words_of_numbers(scalar: str, value: float) -> None:
    """Half precision travels as single precision."""
    if scalar[0] in "iu":
        assert bits(7.0, scalar) == 7
    else:
        code = "d" if scalar == "f64" else "f"
        assert bits(value, scalar) == int.from_bytes(struct.pack("<" + code, value), "little", signed=True)
