"""A tensor or an array of Dask -> blocks that stay on workers, and products of them with arrays of the client.

A product is one task for each block, which is sent the rows that it reads and gives back the rows that it writes. The
client adds what overlaps. Blocks of Dask's chunks are computed again by Dask where a worker is lost, blocks of a Tensor
are sent again by the client.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from itertools import pairwise
from itertools import product as cartesian
from typing import Any

import dask
import numpy as np
from distributed import Client, TimeoutError, default_client, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from ..errors import BlockError, ShapeError, UnsupportedError
from ..interop.sources import asarray
from ..storage.buffers import is_torch, numpy_dtype, to_numpy
from ..storage.recorded import refuse_recorded
from ..tensor.tensor import Tensor
from . import block as blocks
from .partition import Array, Indices, Partition, length, partition, sent_bytes

__all__ = ["BlockTensor"]

_ATTEMPTS = 3
_PATIENCE = 60
"""Seconds to wait for a worker where all are gone."""
_EMBEDDED = 1 << 22
"""Bytes of a product's arrays that go with the tasks, by the scheduler; more are sent to the workers at once."""


class BlockTensor:
    """A sparse tensor in blocks that stay on the workers of Dask.

    Parameters
    ----------
    source : an array of Dask, whose chunks are the blocks; or a Tensor, or what `asarray` takes, which is cut
    cut : a Partition, or how many blocks, by `partition`; without, one for each thread of the workers
    client : of `distributed`; without, the one that was made last
    timeout : seconds for a product; none by default

    `mttkrp` is the product of all decompositions, and `mttkrp([None, X], 0)` that of a matrix. `sent` counts the bytes
    of the arrays of all products, `predicted` says them of one.
    Raises BlockError, which names blocks, where they cannot be had.
    """

    def __init__(
        self, source: Any, cut: Partition | int | None = None, *, client: Client | None = None,
        timeout: float | None = None,
    ) -> None:  # fmt: skip
        self.client = client or _last_client()
        self.timeout = timeout
        self.sent = 0
        self._source: Tensor | None = None
        self._located: list[str | None] | None = None
        if dask.is_dask_collection(source):
            self._from_chunks(source)
        else:
            self._from_tensor(source if isinstance(source, Tensor) else asarray(source), cut)
        self.used = [[length(p) for p in place] for place in self.places]
        self.sent = 0

    def _from_chunks(self, source: Any) -> None:
        if source.ndim < 2 or any(n != n for sizes in source.chunks for n in sizes):
            raise ShapeError(
                f"BlockTensor: expected two dimensions or more, of known extents; got chunks {source.chunks}"
                "\n  help: compute_chunk_sizes()"
            )
        self.shape, self.dtype = tuple(source.shape), np.dtype(source.dtype)
        bounds = [np.concatenate([[0], np.cumsum(sizes)]).tolist() for sizes in source.chunks]
        parts = [[slice(lo, hi) for lo, hi in pairwise(ends)] for ends in bounds]
        self._grid = tuple(len(p) for p in parts)
        self._sets: list[tuple[Indices, ...]] = list(cartesian(*parts))
        self.names = [_name(k, sets) for k, sets in enumerate(self._sets)]
        chunks = source.to_delayed().ravel().tolist()
        make = dask.delayed(blocks.block, pure=True)
        made = [make(name, sets, c) for name, sets, c in zip(self.names, self._sets, chunks, strict=True)]
        self.futures = self.client.compute(made)
        self.places: list[tuple[Indices, ...]] = self.map(blocks.places, [()] * len(made))

    def _from_tensor(self, t: Tensor, cut: Partition | int | None) -> None:
        if t.fill_value:
            raise UnsupportedError(f"BlockTensor: unspecified elements are {t.fill_value}\n  help: subtract that first")
        refuse_recorded(t.values)
        if is_torch(t.values):
            t = Tensor._from_storage(t._storage.mapped(to_numpy))
        if not isinstance(cut, Partition):
            threads = sum(self.client.nthreads().values()) or 1
            cut = partition(t, min(threads, max(t.shape[0], 1)) if cut is None else cut)
        if cut.shape != t.shape:
            raise ShapeError(f"BlockTensor: a tensor of shape {t.shape}, and a partition of shape {cut.shape}")
        self.shape, self.dtype = t.shape, numpy_dtype(t._storage.scalar)
        self._source, self._sets = t, cut.blocks
        self._grid = tuple(len(p) for p in cut.parts)
        self.names = [_name(k, sets) for k, sets in enumerate(self._sets)]
        made = [self._make(k) for k in range(len(self._sets))]
        self.places = [b.places for b in made]
        self.futures = self._scatter(made, [None] * len(made))

    def _make(self, k: int) -> blocks.Block:
        assert self._source is not None
        return blocks.block(self.names[k], self._sets[k], blocks.cut(self._source, self._sets[k]))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def predicted(self, columns: int = 1) -> int:
        """The bytes of arrays that a product with factors of this many columns sends."""
        return sent_bytes(self.used, columns, self.dtype.itemsize)

    def mttkrp(self, factors: Sequence[Any], dim: int) -> Array:
        """Matricised tensor times Khatri-Rao product, `openwork.mttkrp`; of a matrix its product with the other factor.

        factors : an array (n_k, r) for each dimension, or (n_k,) of a matrix; that of `dim` is not read
        """
        arrays = [None if k == dim else np.asarray(f) for k, f in enumerate(factors)]
        for k, f in enumerate(arrays):
            if f is not None and (f.shape[:1] != (self.shape[k],) or f.ndim > 2):
                raise ShapeError(
                    f"a product with blocks of a tensor of shape {self.shape}\n  got: a factor of shape {f.shape}"
                )
        arguments = [
            (dim, [None if f is None else f[place] for f, place in zip(arrays, places, strict=True)])
            for places in self.places
        ]
        return self.assembled(self.map(blocks.product, arguments), dim)

    def assembled(self, parts: list[Array], dim: int) -> Array:
        """Rows that blocks gave at their places along a dimension -> all rows, added where several gave some."""
        alone = all(n == 1 for k, n in enumerate(self._grid) if k != dim)
        out = np.zeros((self.shape[dim], *parts[0].shape[1:]), np.result_type(*parts))
        for places, part in zip(self.places, parts, strict=True):
            if alone:
                out[places[dim]] = part
            else:
                out[places[dim]] += part
        return out

    def square_norm(self) -> float:
        """The sum of the squares of all elements."""
        return float(sum(self.map(blocks.square_sum, [()] * len(self.futures))))

    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(block, *arguments)` of every block, where it is; again where workers are lost meanwhile."""
        down = sum(_nbytes(a) for a in arguments)
        for attempt in range(_ATTEMPTS):
            try:
                found = self._run(function, arguments, down)
            except (CancelledError, KilledWorker, CommClosedError, OSError) as error:
                if attempt == _ATTEMPTS - 1:
                    lost = self._lost() or "a block"
                    raise BlockError(
                        f"{lost} could not be had in {_ATTEMPTS} attempts: {error}\n  help: the logs of the workers"
                    ) from error
                self._renew()
            else:
                self.sent += down + sum(_nbytes(x) for x in found)
                return found
        raise AssertionError

    def _run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], size: int = 0) -> list[Any]:
        """The tasks, and their results on the client."""
        sent = self._scatter(list(arguments), self._homes()) if size > _EMBEDDED else list(arguments)
        tasks = self.client.map(_apply, self.futures, sent, function=function, pure=False, retries=1)
        if self.timeout is not None:
            try:
                wait(tasks, timeout=self.timeout)
            except TimeoutError:
                late = ", ".join(name for name, t in zip(self.names, tasks, strict=True) if not t.done())
                self.client.cancel(tasks)
                raise BlockError(
                    f"{late}: no result in {self.timeout} s\n  help: timeout=, or fewer rows in it"
                ) from None
        found: list[Any] = self.client.gather(tasks, direct=True)
        return found

    def _scatter(self, objects: list[Any], homes: list[str | None]) -> list[Any]:
        """Futures of objects, each on the worker with this address; on one by turns without."""
        chosen = homes if all(homes) else self._by_turns(homes)

        async def send() -> list[Any]:
            options = {"direct": True, "hash": False, "asynchronous": True}
            waiting = [self.client.scatter([x], workers=[w], **options) for x, w in zip(objects, chosen, strict=True)]
            return list(await gather(*waiting))

        return [future for (future,) in self.client.sync(send)]

    def _by_turns(self, homes: list[str | None]) -> list[str | None]:
        if not self.client.nthreads():
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        workers = list(self.client.nthreads())
        return [home or workers[k % len(workers)] for k, home in enumerate(homes)]

    def _homes(self) -> list[str | None]:
        """A worker that has each block, None where there is none: asked for once, and again after a loss."""
        if self._located is None:
            located = self.client.who_has(self.futures)
            self._located = [next(iter(located.get(f.key, ())), None) for f in self.futures]
        return self._located

    def _lost(self) -> str:
        return ", ".join(
            name for name, f in zip(self.names, self.futures, strict=True) if f.status in ("cancelled", "lost")
        )

    def _renew(self) -> None:
        """Send the blocks again that no worker has; Dask is asked to compute those that are its own."""
        self._located = None
        gone = [k for k, f in enumerate(self.futures) if f.status in ("cancelled", "lost")]
        if gone and self._source is None:
            for k in gone:
                self.futures[k].retry()
        elif gone:
            made = self._scatter([self._make(k) for k in gone], [None] * len(gone))
            for k, future in zip(gone, made, strict=True):
                self.futures[k] = future

    def __repr__(self) -> str:
        workers = {w for homes in self.client.who_has(self.futures).values() for w in homes}
        parts = f"{len(self.futures)} blocks on {len(workers)} workers"
        return f"<{type(self).__name__} of shape {self.shape}, {self.dtype}, {parts}>"


def _last_client() -> Client:
    try:
        return default_client()
    except ValueError as error:
        raise UnsupportedError(
            "BlockTensor: there is no client of distributed\n  help: distributed.Client() before it, or client="
        ) from error


def _apply(b: blocks.Block, arguments: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    return function(b, *arguments)


def _name(number: int, sets: tuple[Indices, ...]) -> str:
    """ "block 3 (rows 10 to 19, columns 0 to 99)", what errors say."""
    words = ("rows", "columns") if len(sets) == 2 else tuple(f"dimension {k}" for k in range(len(sets)))
    spans = [
        f"{w} {s.start} to {s.stop - 1}" if isinstance(s, slice) else f"{len(s)} {w}"
        for w, s in zip(words, sets, strict=True)
    ]
    return f"block {number} ({', '.join(spans)})"


def _nbytes(x: Any) -> int:
    """Bytes of the arrays in what a task is given or gives."""
    if isinstance(x, tuple | list):
        return sum(map(_nbytes, x))
    return int(x.nbytes) if isinstance(x, np.ndarray | Tensor) else 0
