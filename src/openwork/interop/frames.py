"""A Tensor -> what is sent of it to another process: its buffers, uncopied, with checksums; and back.

A pickle of protocol 5 takes the buffers out of band, so that `distributed` sends and spills them as they are, and
nothing has to be registered with it. Blocks of matrices on workers (`openwork.dask`) are frames of one message: sent in
the order of their sizes, since `distributed` reads the first frame together with the header, at whatever address, and
the others each into memory of its own. What has been received is writable where it was.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ..codegen import cache as kernels
from ..errors import BlockError
from ..provided import provides
from ..storage.buffers import device_of, is_torch, to_numpy, torch_module
from ..storage.storage import Storage
from ..storage.watch import bare_alias
from ..tensor.tensor import Tensor, unpickled

__all__ = ["checksum", "joined", "opened", "received", "reduced", "sealed", "split"]

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


@provides("reduced")
def reduced(t: Tensor) -> tuple[Any, ...]:
    """What a pickle of protocol 5 holds of a tensor: facts, and its buffers as arrays, with checksums of both.

    A tensor on a device, of bfloat16, that requires a gradient or is one value repeated goes without checksums.
    """
    s = t._storage
    if not _has_bytes(s) or s.is_iso:
        return unpickled, (s,)
    arrays = [None if b is None else to_numpy(bare_alias(b)) for b in (*s.pos, *s.crd, s.values)]
    facts = s.shape, s.format, s.scalar, s.fill_value, is_torch(s.values), _kinds(arrays)
    return received, (sealed(_name(t), facts, _present(arrays)), arrays)


def received(header: dict[str, Any], arrays: list[Any]) -> Tensor:
    """The tensor of a pickle. Raises BlockError, with its name, where it is not what was sent."""
    shape, format, scalar, fill_value, over_torch, kinds = opened(header, _present(arrays))
    if _kinds(arrays) != kinds:
        raise BlockError(_damaged(header, f"expected arrays {kinds}; got {_kinds(arrays)}"))
    if over_torch:
        from_numpy = torch_module().from_numpy
        arrays = [None if x is None else from_numpy(x if x.flags.writeable else x.copy()) for x in arrays]
    levels = len(format.levels)
    pos, crd = tuple(arrays[:levels]), tuple(arrays[levels:-1])
    return unpickled(Storage(shape, format, scalar, fill_value, pos, crd, arrays[-1]))


def _kinds(arrays: list[Any]) -> list[Any]:
    return [None if x is None else (x.dtype.str, x.shape) for x in arrays]


def _present(arrays: list[Any]) -> list[Any]:
    """The buffers that are there, of the row-major arrays that they are."""
    return [np.ascontiguousarray(x) for x in arrays if x is not None]


def _has_bytes(s: Storage) -> bool:
    """Whether buffers are nothing but their bytes."""
    return device_of(s.values) == "cpu" and s.scalar != "bf16" and not (is_torch(s.values) and s.values.requires_grad)


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
    if not _has_bytes(s):
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


def _name(t: Tensor) -> str:
    return f"a tensor of shape {t.shape}, {t._raw_storage.scalar}, format {t._raw_storage.format}"


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
