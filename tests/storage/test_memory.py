"""Large buffers: memory is used again, and never while an array still looks into it."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import openwork as ow
from openwork.storage import memory
from openwork.storage.buffers import address, empty

SIZE = memory.LARGE // 8 + 1000
DTYPE = np.dtype(np.float64)
needs_pages = pytest.mark.skipif(not memory._HAS_PAGES, reason="no anonymous pages to advise on")


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LIMIT", 64 << 20)
    monkeypatch.setattr(memory, "_idle", [])


@needs_pages
def test_memory_is_used_again() -> None:
    x = memory.reserve(SIZE, DTYPE)
    place = address(x)
    assert memory.waiting() == 0
    del x
    assert memory.waiting() > 0
    again = memory.reserve(SIZE - 10, DTYPE)
    assert address(again) == place
    assert memory.waiting() == 0


@needs_pages
@pytest.mark.parametrize("view", [lambda x: x[5:], lambda x: x.view(np.uint8)[::2], lambda x: x.reshape(2, -1).T])
def test_a_view_keeps_its_memory(view: object) -> None:
    x = memory.reserve(SIZE, DTYPE)
    x[:] = 1.0
    kept = view(x)  # type: ignore[operator]
    expected = kept.copy()
    del x
    others = [memory.reserve(SIZE, DTYPE) for _ in range(3)]
    for other in others:
        other[:] = 2.0
        assert not np.shares_memory(other, kept)
    assert np.array_equal(kept, expected)


def test_torch_keeps_the_memory() -> None:
    torch = pytest.importorskip("torch")
    t = torch.from_numpy(memory.reserve(SIZE, DTYPE))
    t[:] = 1.0
    other = memory.reserve(SIZE, DTYPE)
    other[:] = 2.0
    assert float(t.sum()) == SIZE


def test_small_buffers_and_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.reserve(10, DTYPE).flags.owndata
    monkeypatch.setattr(memory, "LIMIT", 0)
    assert memory.reserve(SIZE, DTYPE).flags.owndata
    monkeypatch.setenv("OPENWORK_REUSE", "0")
    assert memory._limit() == 0
    monkeypatch.setenv("OPENWORK_REUSE", "3")
    assert memory._limit() == 3 << 20


@needs_pages
def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LIMIT", 8 << 20)
    many = [memory.reserve(k * SIZE, DTYPE) for k in (1, 2, 3, 4, 9)]
    many.clear()
    assert 0 < memory.waiting() <= 8 << 20


@needs_pages
def test_shrunk_arrays_keep_their_elements() -> None:
    for n in (0, 10, SIZE // 3, SIZE - 1, SIZE):
        x = memory.reserve(SIZE, DTYPE)
        x[:] = np.arange(SIZE)
        y = memory.shrink(x, n)
        del x
        assert np.array_equal(y, np.arange(n))
    owned = np.arange(100.0)
    assert np.array_equal(memory.shrink(owned, 7), np.arange(7.0))
    assert np.array_equal(memory.shrink(np.arange(100.0)[3:], 2), [3.0, 4.0])


@needs_pages
def test_blocks_that_come_back_during_a_reservation() -> None:
    """The garbage collector may run anywhere; a cycle of blocks comes back whenever it does."""
    for _ in range(30):
        cycle: list[object] = [memory.reserve(SIZE, DTYPE)]
        cycle.append(cycle)
        del cycle
        with memory._lock:
            gc.collect(1)  # the cycle is young; a walk over everything that a long run of tests holds takes seconds
        assert memory.reserve(SIZE, DTYPE).shape == (SIZE,)


def test_threads_never_share() -> None:
    wrong = []

    def work(number: int) -> None:
        for _ in range(20):
            x = memory.reserve(SIZE, DTYPE)
            x[:] = number
            y = x[::7]
            del x
            z = memory.reserve(SIZE, DTYPE)
            z[:] = -1.0
            if not (y == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_pages
def test_tracemalloc_sees_them() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        x = memory.reserve(SIZE, DTYPE)
        during, _ = tracemalloc.get_traced_memory()
        nbytes = x.nbytes
        del x
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert during - before >= nbytes
    assert after - before < nbytes // 8


@needs_pages
def test_results_are_of_such_memory() -> None:
    n = 400_000
    a = ow.random((n, 4), 0.1, format="csr", rng=np.random.default_rng(0))
    b = ow.random((n, 4), 0.1, format="csr", rng=np.random.default_rng(1))
    want = (a + b).to_numpy()
    first = a + b
    place = address(first.values)
    del first
    second = a + b
    assert address(second.values) == place
    assert np.array_equal(second.to_numpy(), want)
    assert empty(SIZE, "f64", np.empty(0)).base is not None


@needs_pages
def test_what_is_cut_off_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[int] = []
    monkeypatch.setattr(memory._Block, "forget", lambda block, used: forgotten.append(used))
    assert len(memory.shrink(memory.reserve(SIZE, DTYPE), SIZE - 10)) == SIZE - 10
    assert forgotten == []
    assert len(memory.shrink(memory.reserve(SIZE, DTYPE), SIZE // 2)) == SIZE // 2
    assert forgotten == [SIZE // 2 * 8]


def test_what_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENWORK_REUSE", raising=False)
    assert 0 < memory._limit() <= 512 << 20
    for error in (AttributeError, OSError, ValueError):
        monkeypatch.setattr(memory.os, "sysconf", lambda name, error=error: (_ for _ in ()).throw(error))
        assert memory._limit() == 0, "nothing waits where the memory's size is not known"
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 1 << 14)
    assert memory._limit() == (1 << 28) // 8


@needs_pages
def test_the_oldest_idle_blocks_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LIMIT", 3 * memory.LARGE)
    blocks = [memory._Block(memory.LARGE) for _ in range(5)]
    for block in blocks:
        memory._release(block)
    assert memory.waiting() == 3 * memory.LARGE
    assert memory._idle == blocks[2:]


@needs_pages
def test_idle_blocks_are_given_back_where_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(memory._Block):
        """A block for which there is memory as long as none is idle."""

        __slots__ = ()

        def __init__(self, size: int) -> None:
            if memory._idle or is_full:
                raise OSError("no memory")
            super().__init__(size)

    is_full = False
    memory._idle.append(memory._Block(memory.LARGE))
    monkeypatch.setattr(memory, "_Block", Full)
    assert memory._acquire(4 * memory.LARGE).size == 4 * memory.LARGE
    assert memory._idle == []
    is_full = True
    with pytest.raises(OSError, match="no memory"):
        memory._acquire(memory.LARGE)


def test_arrays_over_memory_of_others_are_cut_to_views() -> None:
    owner = bytearray(800)
    x = np.frombuffer(owner, np.float64)
    part = memory.shrink(x, 7)
    part[:] = 2.5
    assert len(part) == 7
    assert x[:8].tolist() == [2.5] * 7 + [0.0]
