"""Functions of blocks -> their results, run where the blocks are: one message to a worker and one back, no task.

Dask's scheduler keeps the blocks, computes them again, spills and moves them; it costs some 10 ms for each round of
tasks. An actor on each worker looks the blocks up there, so that a product costs a message, about 1 ms.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask import config
from distributed import Client, get_worker, secede
from distributed.comm import CommClosedError
from distributed.protocol import pickle, to_serialize
from distributed.threadpoolexecutor import thread_state as pool_thread
from distributed.utils import truncate_exception
from distributed.worker import thread_state as task_thread

from .. import BlockError, Tensor

__all__ = [
    "SEPARATOR", "BlockRunner", "LostWorkerError", "RaisedError", "attended", "fetched", "in_own_thread", "named",
    "run_on_workers",
]  # fmt: skip


SEPARATOR = "; "
"""Between the names of several blocks."""
_LONGEST = 2000
"""Characters of an error's text."""
_FIRST_LOOK = 0.25
_LAST_LOOK = 5.0
"""Seconds of waiting after which the scheduler is asked for its workers: at first, and at most."""


class LostWorkerError(OSError):
    """A worker that does not answer, or has not got a block that it had."""

    def __init__(self, address: str, names: Sequence[str], text: object) -> None:
        self.address, self.names = address, ", ".join(names)
        super().__init__(
            f"{self.names or 'a block'}: the worker {address} is lost: {text}\n  help: the logs of the workers"
        )


class RaisedError(Exception):
    """What a function of a block raised, `error`; no fault of the cluster, so that nothing is tried again."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class Message:
    """What goes to a worker or comes back, as one pickle with the arrays' own buffers beside it.

    `distributed` would serialize each item of a collection by itself, and a call has a dozen: 0.25 ms there and as
    much back.
    """

    content: Any


class BlockRunner:
    """An actor of Dask: functions of the blocks that its worker has, each in a thread of the worker's own."""

    def __init__(self) -> None:
        self._worker = get_worker()

    async def run(self, message: Message) -> Message | list[Any] | None:
        """`function(block, *arguments)` of the blocks of these keys, `function(blocks, *arguments)` of a list of keys,
        whose names are one text; None where one is not there. The message has (function, keys, names, arguments).

        No more blocks are read from disk than threads compute. Raises BlockError for one that cannot be read, and what
        the function raises, with the name of its block.
        """
        function, keys, names, arguments = message.content
        data, threads = self._worker.data, self._worker.executors["default"]
        loop, room = asyncio.get_running_loop(), asyncio.Semaphore(self._worker.state.nthreads)

        async def one(key: Any, name: str, given: tuple[Any, ...]) -> Any:
            async with room:
                several = type(key) is list
                pairs = zip(key, name.split(SEPARATOR), strict=True) if several else ((key, name),)
                found = [_read(data, *pair) for pair in pairs]
                block = found if several else found[0]
                return await loop.run_in_executor(threads, named, name, function, block, *given)

        if not all(k in data for key in keys for k in (key if type(key) is list else [key])):
            return None
        calls = [asyncio.ensure_future(one(*each)) for each in zip(keys, names, arguments, strict=True)]
        try:
            found = list(await asyncio.gather(*calls))
        except _GoneError:
            return None
        finally:
            for call in calls:
                call.cancel()
        return found if any(isinstance(x, Tensor) for x in found) else Message(found)  # Tensors have checksums there


class _GoneError(Exception):
    """A block that was there has gone."""


def _read(data: Any, key: Any, name: str) -> Any:
    """A block of a worker, from its disk where it was spilled; damage is found by the block or by `distributed`."""
    try:
        return data[key]
    except BlockError:
        raise
    except Exception as error:
        if key not in data:
            raise _GoneError from None
        raise BlockError(
            f"{name} cannot be read where it was spilled: {type(error).__name__}: {error}"
            "\n  help: look at the disk of the workers' local directory"
        ) from None


def named(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """`function(*arguments)`; what it raises says of which block it was, on the way to the client too.

    Raises BlockError with the text of what does not keep its notes there: what cannot be pickled, or is too long.
    """
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"in {name}")
        if _travels(error):
            raise
        text = f"{name}: {type(error).__name__}: {str(error)[:_LONGEST]}"
    raise BlockError(text)  # here, as it would take the other along as its context


def _travels(error: Exception) -> bool:
    """Whether `distributed` makes an error of the same type and notes of what it sends of one."""
    try:
        again = pickle.loads(pickle.dumps(truncate_exception(error, config.get("distributed.admin.max-error-length"))))
    except Exception:
        return False
    return type(again).__name__ == type(error).__name__ and getattr(again, "__notes__", None) == error.__notes__


def in_own_thread() -> None:
    """Take the thread of a task that waits for blocks out of its worker's, which compute them: `distributed.secede`."""
    if getattr(pool_thread, "proceed", False) and hasattr(task_thread, "key"):
        secede()


async def attended(
    client: Client, calls: Mapping[str, asyncio.Future[Any]], names: Mapping[str, Sequence[str]], timeout: float | None
) -> str:
    """Wait for calls to the workers at these addresses, at most so many seconds -> the names of blocks that are late.

    A worker that has died is asked for its connection for half a minute; the scheduler knows at once. So it is asked,
    after a while and then ever more rarely. Raises LostWorkerError, and what a call raises.
    """
    clock = asyncio.get_running_loop().time
    end, look = math.inf if timeout is None else clock() + timeout, _FIRST_LOOK
    while True:
        done, _ = await asyncio.wait(
            calls.values(), timeout=min(look, max(end - clock(), 0)), return_when=asyncio.FIRST_EXCEPTION
        )
        for one in done:
            one.result()
        waiting = [home for home, one in calls.items() if not one.done()]
        if not waiting:
            return ""
        if clock() >= end:
            return ", ".join(name for home in waiting for name in names[home])
        there = await client.scheduler.ncores()
        for home in waiting:
            if home not in there and not calls[home].done():
                raise LostWorkerError(home, names[home], "it is not a worker of the scheduler any more")
        look = min(2 * look, _LAST_LOOK)


def fetched(client: Client, future: Any) -> Any:
    """The result of a future that is done. Raises LostWorkerError where its worker dies meanwhile."""

    async def fetch() -> Any:
        homes = (await client.scheduler.who_has(keys=[future.key])).get(future.key) or [""]
        call = asyncio.ensure_future(client.gather(future, direct=True, asynchronous=True))
        try:
            await attended(client, {homes[0]: call}, {homes[0]: [str(future.key)]}, None)
        finally:
            call.cancel()
        return call.result()

    return client.sync(fetch)


def run_on_workers(
    client: Client, runners: dict[str, Any], homes: Sequence[str], keys: Sequence[Any], names: Sequence[str],
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], timeout: float | None,
) -> list[Any]:  # fmt: skip
    """`function(block, *arguments)` of every block, by the runners of the workers at `homes`.

    Raises LostWorkerError, BlockError with the names of blocks that take longer than the timeout, and RaisedError of
    what the function raises.
    """
    groups: dict[str, list[int]] = {}
    for k, home in enumerate(homes):
        groups.setdefault(home, []).append(k)

    async def call(home: str, numbers: list[int]) -> list[Any]:
        message = function, [keys[k] for k in numbers], [names[k] for k in numbers], [arguments[k] for k in numbers]
        try:
            reply = await client.rpc(home).actor_execute(
                actor=runners[home].key, function="run", args=[to_serialize(Message(message))], kwargs={}
            )
        except (OSError, CommClosedError, KeyError) as error:  # KeyError: a worker at this address without the actor
            raise LostWorkerError(home, message[2], error) from error
        if reply["status"] != "OK":
            raise RaisedError(reply["exception"])
        if reply["result"] is None:
            raise LostWorkerError(home, message[2], "blocks have gone")
        found: list[Any] = result.content if isinstance(result := reply["result"], Message) else result
        return found

    async def all_calls() -> list[Any]:
        calls = {home: asyncio.ensure_future(call(home, numbers)) for home, numbers in groups.items()}
        try:
            late = await attended(client, calls, {home: [names[k] for k in groups[home]] for home in groups}, timeout)
            if late:
                raise BlockError(f"{late}: no result in {timeout} s\n  help: timeout=, or fewer rows in it")
        finally:
            for one in calls.values():
                one.cancel()
        out: list[Any] = [None] * len(keys)
        for home, numbers in groups.items():
            for k, found in zip(numbers, calls[home].result(), strict=True):
                out[k] = found
        return out

    found: list[Any] = client.sync(all_calls)
    return found
