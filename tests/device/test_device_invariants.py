"""Invariants of tensors on devices: what the host's check finds in damaged buffers is found there too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from device_cases import opencl_or_skip
from matrix import FORMATS, SHAPES, dense_array, tensor

import openwork as ow
from openwork.device.tensor import DeviceTensor
from openwork.errors import InvariantError, UnsupportedError
from openwork.runtime.check import holds
from openwork.storage.storage import Storage


def damaged(t: ow.Tensor) -> Iterator[tuple[str, int, np.ndarray[Any, Any]]]:
    """Each index buffer with one number far outside, two exchanged, and one repeated: kind, level and buffer."""
    s = t._storage
    for kind, group in (("pos", s.pos), ("crd", s.crd)):
        for level, buffer in enumerate(group):
            if buffer is None or buffer.dtype == bool or len(buffer) < 2:
                continue
            at = len(buffer) // 2
            for value in (10**6, None, buffer[at - 1]):
                x = np.array(buffer)
                if value is None:
                    x[[at - 1, at]] = x[[at, at - 1]]
                else:
                    x[at] = value
                if (x != buffer).any():
                    yield kind, level, x


def compared(t: ow.Tensor, device: str) -> int:
    """The faults that were found, by the host and on the device."""
    there, s, faults = t.to(device).check(), t._storage, 0
    for kind, level, x in damaged(t):
        pos, crd = list(s.pos), list(s.crd)
        (pos if kind == "pos" else crd)[level] = x
        broken = not holds(Storage(s.shape, s.format, s.scalar, s.fill_value, tuple(pos), tuple(crd), s.values))
        buffers = {"pos": list(there.pos_buffers), "crd": list(there.crd_buffers)}
        buffers[kind][level] = there.adapter.of(x, buffers[kind][level].scalar)
        other = DeviceTensor(
            there.shape, there.format, there.fill_value, tuple(buffers["pos"]), tuple(buffers["crd"]), there.memory
        )  # fmt: skip
        if broken:
            with pytest.raises(InvariantError, match=r"(pos|crd)\[\d+\][\s\S]*places break an invariant"):
                other.check()
        else:
            assert other.check() is other
        faults += broken
    return faults


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "coo", "ell(3)", "(i, j) -> (i : dense, j : loose_compressed)"])
def test_damaged_buffers_are_found_on_the_interpreter(spec: str) -> None:
    array = np.array([[1.0, 0, 2.0, 0], [0, 0, 0, 0], [3.0, 4.0, 0, 5.0]])
    assert compared(tensor(array, spec), "interpreter")


def test_batches_are_refused() -> None:
    t = ow.asarray(np.ones((2, 2, 2))).asformat(ow.format("csr", 3, batch=1))
    with pytest.raises(UnsupportedError, match="check on interpreter: batches"):
        t.to("interpreter").check()


@pytest.mark.opencl
def test_damaged_buffers_of_every_format_are_found_on_opencl() -> None:
    opencl_or_skip()
    found = 0
    for rank, specs in FORMATS.items():
        for spec in specs:
            for number, shape in enumerate(SHAPES[rank]):
                if not (number and spec.startswith("nm")):
                    found += compared(tensor(dense_array(shape), spec), "opencl")
    assert found > 350
