"""Tensor -> header and frames of `distributed`, and back: the frames are its buffers, with a checksum of their bytes.

Neither way copies a buffer; what has been received is writable where it was. Buffers are sent in the order of their
sizes: `distributed` reads the first frame of a message together with the header, at whatever address, and the others
each into memory of its own. A tensor whose buffers cannot be frames (on a device, of bfloat16) goes by pickle.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ..codegen import cache as kernels
from ..errors import BlockError
from ..storage.buffers import device_of, is_torch
from ..storage.storage import Storage
from ..storage.watch import bare_alias
from ..tensor.tensor import Tensor, unpickled

__all__ = ["checksum", "register_frames"]

_FLETCHER = """
def fletcher(words: u64[const], sums: u64[mut], n: i64):
    a: u64 = sums[0]
    b: u64 = sums[1]
    for i in range(0, n):
        a = a + words[i]
        b = b + a
    sums[0] = a
    sums[1] = b
"""


def register_frames(protocol: Any) -> None:
    """Register with `distributed.protocol.serialize`, whose module `protocol` is, how Tensors are sent."""
    protocol.dask_serialize.register(Tensor, lambda t: _frames(t, protocol.serialize))
    protocol.dask_deserialize.register(Tensor, lambda header, frames: _tensor(header, frames, protocol.deserialize))


def checksum(frames: list[Any]) -> list[int]:
    """Fletcher's two sums of the 64-bit words of some memory, the last one of each frame filled up with zeros.

    Cost: one pass, at the speed of memory. An error in one word is always found.
    """
    run = kernels.of_text(_FLETCHER)
    sums = np.zeros(2, np.uint64)
    for frame in frames:
        view = np.frombuffer(frame, np.uint8) if memoryview(frame).nbytes else np.empty(0, np.uint8)
        whole = len(view) // 8 * 8
        words = view[:whole].view(np.uint64)
        rest = np.zeros(8 if whole < len(view) else 0, np.uint8)
        rest[: len(view) - whole] = view[whole:]
        for part in (words if words.flags.aligned else words.copy(), rest.view(np.uint64)):
            run.run_sized(len(part), run.pack((part, sums, len(part))))
    return [int(x) for x in sums]


def _frames(t: Tensor, serialize: Any) -> tuple[dict[str, Any], list[Any]]:
    """The header and the frames. Raises NotImplementedError, after which `distributed` pickles the tensor."""
    s = t._storage
    if device_of(s.values) != "cpu" or s.scalar == "bf16" or (is_torch(s.values) and s.values.requires_grad):
        raise NotImplementedError
    buffers: list[Any] = [None if b is None else bare_alias(b) for b in (*s.pos, *s.crd, s.values)]
    order = sorted((i for i, b in enumerate(buffers) if b is not None), key=lambda i: int(buffers[i].nbytes))
    parts = [serialize(buffers[i]) for i in order]
    frames = [frame for _, part in parts for frame in part]
    header = {
        "tensor": pickle.dumps((s.shape, s.format, s.scalar, s.fill_value)),
        "order": order,
        "headers": [h for h, _ in parts],
        "counts": [len(part) for _, part in parts],
        "checksum": checksum(frames),
    }
    return header, frames


def _tensor(header: dict[str, Any], frames: list[Any], deserialize: Any) -> Tensor:
    """The tensor over the frames' memory. Raises BlockError where their bytes are not those that were sent."""
    shape, format, scalar, fill_value = pickle.loads(header["tensor"])
    found, sent = checksum(frames), list(header["checksum"])
    if found != sent:
        raise BlockError(
            f"a tensor of shape {shape}, {scalar}, format {format} is damaged on its way between processes or on disk"
            f"\n  expected checksum {_hex(sent)}; got {_hex(found)}"
            "\n  help: compute it anew; look at the disk of the workers' local directory where it was spilled"
        )
    buffers: list[Any] = [None] * (2 * len(format.levels) + 1)
    start = 0
    for i, part, count in zip(header["order"], header["headers"], header["counts"], strict=True):
        buffers[i] = deserialize(part, frames[start : start + count])
        start += count
    levels = len(format.levels)
    pos, crd = tuple(buffers[:levels]), tuple(buffers[levels:-1])
    return unpickled(Storage(shape, format, scalar, fill_value, pos, crd, buffers[-1]))


def _hex(sums: list[int]) -> str:
    return "".join(f"{x:016x}" for x in sums)
