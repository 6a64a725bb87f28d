"""A tensor or an array of Dask -> blocks that stay on workers, and products of them with arrays of the client.

A product is one message to each worker, with the rows that its blocks read, and one back with the rows that they
write. The client adds what overlaps. Blocks of Dask's chunks are computed again by Dask where a worker is lost, blocks
of a Tensor are sent again by the client.
"""

from __future__ import annotations

import math
import time
from asyncio import gather, sleep
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import pairwise
from itertools import product as cartesian
from typing import Any

import dask
import numpy as np
from distributed import Client, TimeoutError, get_client, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from .. import BlockError, ShapeError, Tensor, UnsupportedError, asarray
from ..caller import warn
from ..storage.recorded import refuse_recorded
from . import block as blocks
from .local import run_method
from .partition import Indices, Partition, length, partition
from .products import BlockProducts
from .runner import SEPARATOR, BlockRunner, LostWorkerError, RaisedError, fetched, in_own_thread, named, run_on_workers

__all__ = ["BlockTensor"]

_ATTEMPTS = 3
_PATIENCE = 60
"""Seconds to wait for a worker where all are gone."""
_NOTICE = 5
"""Seconds in which the scheduler notices that a worker has gone."""
_LOOK = 0.5
"""Seconds of waiting for tasks after which workers and blocks are looked at."""


class BlockTensor(BlockProducts):
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

    Examples
    --------
    >>> from distributed import Client
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> K = ow.dask.BlockTensor(ow.asarray(np.ones((2, 2, 2)), format="csf"), 2)
    >>> K.mttkrp([None, np.ones((2, 1)), np.ones((2, 1))], 0)
    array([[4.],
           [4.]])
    >>> round(ow.decomposition.cp_als(K, 1, rng=0).fit, 3)
    1.0
    >>> client.close()
    """

    def __init__(
        self, source: Any, cut: Partition | int | None = None, *, client: Client | None = None,
        timeout: float | None = None,
    ) -> None:  # fmt: skip
        self.client = _last_client() if client is None else _checked(client)
        self.timeout = _seconds(timeout)
        self.sent = 0
        self._source: Tensor | None = None
        self._computed: list[Any] = []
        self._located: list[str] | None = None
        self._runners: dict[str, Any] = {}
        if dask.is_dask_collection(source):
            self._from_chunks(source)
        else:
            self._from_tensor(source if isinstance(source, Tensor) else asarray(source), cut)
        self.used = [[length(p) for p in place] for place in self.places]
        self.sent = 0

    @staticmethod
    def over(found: BlockProducts) -> BlockProducts:
        """Blocks in this process, which have the products themselves."""
        return found

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
        self._computed = made
        self.futures = self.client.compute(made)
        self.places: list[tuple[Indices, ...]] = self.map(blocks.places, [()] * len(made))

    def _from_tensor(self, t: Tensor, cut: Partition | int | None) -> None:
        if t.fill_value:
            raise UnsupportedError(f"BlockTensor: unspecified elements are {t.fill_value}\n  help: subtract that first")
        refuse_recorded(t.values)
        t = asarray(t, like="numpy")
        if not isinstance(cut, Partition):
            threads = sum(self.client.nthreads().values()) or 1
            cut = partition(t, min(threads, max(t.shape[0], 1)) if cut is None else cut)
        if cut.shape != t.shape:
            raise ShapeError(f"BlockTensor: a tensor of shape {t.shape}, and a partition of shape {cut.shape}")
        self.shape, self.dtype = t.shape, np.dtype(t.dtype)
        self._source, self._sets = t, cut.blocks
        self._grid = tuple(len(p) for p in cut.parts)
        self.names = [_name(k, sets) for k, sets in enumerate(self._sets)]
        made = [self._make(k) for k in range(len(self._sets))]
        self.places = [b.places for b in made]
        self.futures = self._scatter(made)

    def _make(self, k: int) -> blocks.Block:
        assert self._source is not None
        return blocks.block(self.names[k], self._sets[k], blocks.cut(self._source, self._sets[k]))

    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(block, *arguments)` of every block, where it is; again where workers are lost meanwhile."""
        found: list[Any] = self._attempted(lambda: self._run(function, arguments))
        self.sent += sum(map(_nbytes, arguments)) + sum(map(_nbytes, found))
        return found

    def run(self, operand: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`function(operand, *args, **kwargs)`, where the operand is these blocks or a matrix of them, in one message.

        NotImplemented where blocks are on several workers, or of one with several threads, or in this process, and
        where an argument is no number, text or array: callbacks and generators are the client's. Its warnings are given
        here.
        """
        if self.timeout is not None or not all(map(_is_plain, (*args, *kwargs.values()))) or kwargs.get("progress"):
            return NotImplemented
        made_of = self.shape, self.dtype, self._grid, type(operand)

        def call() -> Any:
            homes = set(self._homes())
            if (
                len(homes) != 1
                or next(iter(homes)).startswith("inproc")
                or (len(self.futures) > 1 and self.client.nthreads().get(next(iter(homes))) != 1)
            ):
                return NotImplemented
            names, home = [SEPARATOR.join(self.names)], [next(iter(homes))]
            arguments = [(made_of, function.__module__, function.__name__, args, kwargs)]
            keys = [[f.key for f in self.futures]]
            return run_on_workers(self.client, self._runners, home, keys, names, run_method, arguments, None)[0]

        found = self._attempted(call)
        if found is NotImplemented:
            return found
        result, warnings = found
        self.sent += _nbytes(args) + _nbytes(tuple(kwargs.values())) + _nbytes(result)
        for message, category in warnings:
            warn(message, category)
        return result

    def reduced(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], merge: Callable[[Any, Any], Any]
    ) -> Any:
        """`merge` of `function(block, *arguments)` of all blocks, a tree on the workers: its root."""
        if len(self.futures) == 1:
            return self.map(function, [arguments])[0]

        def tree() -> Any:
            self._located = None  # tasks that read a block which has gone would never run
            self._homes()
            leaves = parts = self.client.map(_apply, self.futures, function=function, arguments=arguments, pure=False)
            while len(parts) > 1:
                pairs = [
                    self.client.submit(merge, parts[k], parts[k + 1], pure=False) for k in range(0, len(parts) - 1, 2)
                ]
                parts = pairs + parts[2 * len(pairs) :]
            try:
                self._wait(parts, leaves, "no result")
                return fetched(self.client, parts[0])
            finally:
                parts[0].release()  # else an error that it has keeps these frames, and they keep it

        try:
            found = self._attempted(tree)
        except BlockError:
            raise
        except Exception:
            self.map(blocks.places, [()] * len(self.futures))  # names a block that cannot be read
            raise
        self.sent += _nbytes(found)
        return found

    def _attempted(self, call: Callable[[], Any]) -> Any:
        """The result of a call; what was lost with a worker is made again before the next attempt."""
        in_own_thread()
        try:
            return self._attempts(call)
        except Exception as error:
            if _is_closed(self.client):
                raise BlockError(
                    f"the client of {len(self.names)} blocks of a tensor of shape {self.shape} is closed"
                    "\n  help: make the blocks anew with another client"
                ) from error
            raise

    def _attempts(self, call: Callable[[], Any]) -> Any:
        error: BaseException | None = None
        for _ in range(_ATTEMPTS):
            try:
                if error is not None:
                    self._renew(error)
                return call()
            except RaisedError as raised:
                raise raised.error from None
            except (CancelledError, KilledWorker, CommClosedError, TimeoutError, OSError) as found:
                error = found
        try:
            lost = ", ".join(self.names[k] for k in self._gone())
        except OSError:  # the scheduler has gone too
            lost = ""
        lost = lost or getattr(error, "names", "") or f"one of {len(self.names)} blocks from {self.names[0]} on"
        raise BlockError(
            f"{lost} could not be had in {_ATTEMPTS} attempts: {error}\n  help: the logs of the workers"
        ) from error

    def _run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        homes = self._homes()
        keys = [f.key for f in self.futures]
        return run_on_workers(self.client, self._runners, homes, keys, self.names, function, arguments, self.timeout)

    def _scatter(self, objects: list[Any]) -> list[Any]:
        """Futures of objects, which are sent to the workers by turns."""
        if not self.client.nthreads():
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        workers = list(self.client.nthreads())

        async def send() -> list[Any]:
            options = {"direct": True, "hash": False, "asynchronous": True}
            homes = (workers[k % len(workers)] for k in range(len(objects)))
            waiting = [self.client.scatter([x], workers=[w], **options) for x, w in zip(objects, homes, strict=True)]
            return list(await gather(*waiting))

        return [future for (future,) in self.client.sync(send)]

    def _homes(self) -> list[str]:
        """A worker that has each block, and a runner there: asked for once, and again after a loss."""
        if self._located is None:
            self._wait_for_blocks()
            located = self.client.who_has(self.futures)
            homes = [next(iter(located.get(f.key, ())), "") for f in self.futures]
            if not all(homes):
                raise CommClosedError(f"no worker has {self.names[homes.index('')]}")
            for home in set(homes) - set(self._runners):
                self._runners[home] = self.client.submit(BlockRunner, actor=True, workers=[home], pure=False)
            for home in set(homes):
                self._wait_for_runner(home, [n for n, h in zip(self.names, homes, strict=True) if h == home])
            self._located = homes
        return self._located

    def _wait_for_blocks(self) -> None:
        """Until all blocks are made. Raises what went wrong with one."""
        self._wait(self.futures, self.futures, "not there")
        for f in self.futures:
            if f.status == "error":
                f.result()

    def _wait(self, futures: Sequence[Any], of_blocks: Sequence[Any], what: str) -> None:
        """Until all futures are done. Raises BlockError with the blocks that are late, of which each has a future, or
        for which there is no worker; CommClosedError where blocks are lost meanwhile."""
        start, alone = time.monotonic(), 0.0
        while waiting := [f for f in futures if not f.done()]:
            end = math.inf if self.timeout is None else start + self.timeout
            with suppress(TimeoutError):
                wait(waiting, timeout=max(min(_LOOK, end - time.monotonic()), 0))
                continue
            lost = [n for n, f in zip(self.names, self.futures, strict=True) if f.status in ("cancelled", "lost")]
            if lost:
                raise CommClosedError(f"{', '.join(lost)} gone")
            alone = 0.0 if self.client.nthreads() else alone or time.monotonic()
            late = ", ".join(name for name, f in zip(self.names, of_blocks, strict=True) if not f.done())
            if time.monotonic() >= end:
                raise BlockError(f"{late}: {what} in {self.timeout} s\n  help: timeout=, or smaller chunks")
            if alone and time.monotonic() > alone + _PATIENCE:
                raise BlockError(f"{late}: no worker in {_PATIENCE} s\n  help: start workers for {self.client}")

    def _wait_for_runner(self, home: str, names: list[str]) -> None:
        """Until a worker has its actor. Raises LostWorkerError where it goes before that."""
        end = time.monotonic() + _PATIENCE
        while not self._runners[home].done():
            with suppress(TimeoutError):
                wait(self._runners[home], timeout=_LOOK)
                break
            if home not in self.client.nthreads() or time.monotonic() > end:
                raise LostWorkerError(home, names, "it takes no tasks")

    def _gone(self) -> list[int]:
        """The blocks that no worker has."""
        located = self.client.who_has([f for f in self.futures if not f.cancelled()])
        return [k for k, f in enumerate(self.futures) if not located.get(f.key)]

    def _renew(self, error: BaseException) -> None:
        """Send the blocks again that no worker has; Dask is asked to compute those that are its own."""
        self._located = None
        self._runners.clear()
        if isinstance(error, LostWorkerError):
            self._wait_for_loss(error.address)
        gone = self._gone()
        if gone and self._source is None:
            for k in gone:
                if self.futures[k].status == "error":
                    self.futures[k].retry()
            self._compute_anew([k for k in gone if self.futures[k].status in ("cancelled", "lost")])
        elif gone:
            made = self._scatter([self._make(k) for k in gone])
            for k, future in zip(gone, made, strict=True):
                self.futures[k] = future

    def _compute_anew(self, forgotten: list[int]) -> None:
        """Have Dask compute blocks that the scheduler has forgotten, as by a restart.

        A new future of a key shares the state of an older one, cancelled for ever: those are released first.
        """
        if not forgotten:
            return
        for k in forgotten:
            self.futures[k].release()
        self.client.sync(sleep, 0)  # until the client's loop has released them
        for k in forgotten:
            self.futures[k] = self.client.compute(self._computed[k])

    def _wait_for_loss(self, address: str) -> None:
        """Until the scheduler knows what the client saw first, that a worker has gone; a while where it has not."""
        end = time.monotonic() + _NOTICE
        while address in self.client.nthreads() and time.monotonic() < end:
            time.sleep(0.02)

    def __openwork_run__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.run(self, function, args[1:], kwargs)

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            f"{type(self).__name__} cannot be copied or pickled: its blocks are its client's\n  help: make it there"
        )

    def __repr__(self) -> str:
        if _is_closed(self.client):
            return f"<{type(self).__name__} of shape {self.shape}, {self.dtype}, its client is closed>"
        workers = {w for homes in self.client.who_has(self.futures).values() for w in homes}
        parts = f"{len(self.futures)} blocks on {len(workers)} workers"
        return f"<{type(self).__name__} of shape {self.shape}, {self.dtype}, {parts}>"


def _last_client() -> Client:
    """The client that was made last; in a task its worker's."""
    try:
        return _checked(get_client())
    except ValueError as error:
        raise UnsupportedError(
            "BlockTensor: there is no client of distributed\n  help: distributed.Client() before it, or client="
        ) from error


def _checked(client: Any) -> Client:
    if not isinstance(client, Client):
        what = type(client).__name__
    elif client.asynchronous:
        what = "one with asynchronous=True"
    elif _is_closed(client):
        what = "one that is closed"
    else:
        return client
    raise UnsupportedError(f"BlockTensor: expected a client of distributed; got: {what}\n  help: Client(address)")


def _is_closed(client: Client) -> bool:
    return client.status in ("closed", "closing")


def _seconds(timeout: Any) -> float | None:
    if timeout is None or (isinstance(timeout, float | int) and timeout >= 0):
        return timeout
    raise ValueError(f"BlockTensor: timeout is a number of seconds from 0; got: {timeout!r}\n  help: leave timeout out")


def _apply(b: blocks.Block, *, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return named(b.name, function, b, *arguments)
    except Exception as error:
        raise RaisedError(error) from None


def _name(number: int, sets: tuple[Indices, ...]) -> str:
    """ "block 3 (rows 10 to 19, columns 0 to 99)", what errors say."""
    words = ("rows", "columns") if len(sets) == 2 else tuple(f"dimension {k}" for k in range(len(sets)))
    spans = [
        f"{w} {s.start} to {s.stop - 1}" if isinstance(s, slice) else f"{len(s)} {w}"
        for w, s in zip(words, sets, strict=True)
    ]
    return f"block {number} ({', '.join(spans)})"


def _is_plain(x: Any) -> bool:
    """Whether an argument of a method is the same in another process."""
    return x is None or type(x) in (bool, int, float, complex, str, np.ndarray) or isinstance(x, np.generic)


def _nbytes(x: Any) -> int:
    """Bytes of the arrays in what a task is given or gives."""
    if isinstance(x, tuple | list):
        return sum(map(_nbytes, x))
    return int(x.nbytes) if isinstance(x, np.ndarray | Tensor) else 0
