"""Tensor -> header and frames of `distributed`, and back: the frames are its buffers, with a checksum of their bytes.

What the header says is pickled in one field, with a checksum too. Neither way copies a buffer; what has been received
is writable where it was. Buffers are sent in the order of their sizes: `distributed` reads the first frame of a message
together with the header, at whatever address, and the others each into memory of its own. A tensor whose buffers cannot
be frames (on a device, of bfloat16) goes by pickle.
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

__all__ = ["checksum", "joined", "opened", "register_frames", "sealed", "split"]

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
    protocol.dask_deserialize.register(Tensor, lambda h, f: joined(opened(h, f), f, protocol.deserialize))


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


def sealed(name: str, facts: Any, frames: list[Any]) -> dict[str, Any]:
    """The header of a message of facts, which are pickled, and frames, with checksums of both and a name for errors."""
    text = pickle.dumps((facts, checksum(frames), _sizes(frames)))
    return {"name": name.encode(), "facts": text, "checksum": _digest(text)}


def opened(header: dict[str, Any], frames: list[Any]) -> Any:
    """The facts of a message. Raises BlockError with its name where header or frames are not those that were sent."""
    text = header.get("facts")
    if not isinstance(text, bytes) or header.get("checksum") != _digest(text):
        raise BlockError(_damaged(header, "expected a header with its checksum; got another"))
    facts, sent, sizes = pickle.loads(text)
    found = checksum(frames)
    if (found, _sizes(frames)) != (sent, sizes):
        raise BlockError(_damaged(header, f"expected checksum {_hex(sent)}; got {_hex(found)}"))
    return facts


def split(t: Tensor, serialize: Any) -> tuple[Any, list[Any]]:
    """Facts of a tensor and its buffers as frames. Raises NotImplementedError where it has to be pickled."""
    s = t._storage
    if device_of(s.values) != "cpu" or s.scalar == "bf16" or (is_torch(s.values) and s.values.requires_grad):
        raise NotImplementedError
    buffers: list[Any] = [None if b is None else bare_alias(b) for b in (*s.pos, *s.crd, s.values)]
    order = sorted((i for i, b in enumerate(buffers) if b is not None), key=lambda i: int(buffers[i].nbytes))
    parts = [serialize(buffers[i]) for i in order]
    where = [(i, header, len(frames)) for i, (header, frames) in zip(order, parts, strict=True)]
    return (s.shape, s.format, s.scalar, s.fill_value, where), [frame for _, frames in parts for frame in frames]


def joined(facts: Any, frames: list[Any], deserialize: Any) -> Tensor:
    """The tensor over the frames' memory."""
    shape, format, scalar, fill_value, where = facts
    levels = len(format.levels)
    buffers: list[Any] = [None] * (2 * levels + 1)
    start = 0
    for i, header, count in where:
        buffers[i] = deserialize(header, frames[start : start + count])
        start += count
    pos, crd = tuple(buffers[:levels]), tuple(buffers[levels:-1])
    return unpickled(Storage(shape, format, scalar, fill_value, pos, crd, buffers[-1]))


def _frames(t: Tensor, serialize: Any) -> tuple[dict[str, Any], list[Any]]:
    """The header and the frames. Raises NotImplementedError, after which `distributed` pickles the tensor."""
    facts, frames = split(t, serialize)
    name = f"a tensor of shape {t.shape}, {t._storage.scalar}, format {t.format}"
    return sealed(name, facts, frames), frames


def _damaged(header: dict[str, Any], what: str) -> str:
    name = header.get("name")
    return (
        f"{name.decode(errors='replace') if isinstance(name, bytes) else 'a tensor'} is damaged on its way between"
        f" processes or on disk\n  {what}"
        "\n  help: compute it anew; look at the disk of the workers' local directory where it was spilled"
    )


def _sizes(frames: list[Any]) -> list[int]:
    return [memoryview(frame).nbytes for frame in frames]


def _digest(text: bytes) -> bytes:
    return _hex(checksum([text])).encode()


def _hex(sums: list[int]) -> str:
    return "".join(f"{x:016x}" for x in sums)
