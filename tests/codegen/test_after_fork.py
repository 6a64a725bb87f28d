"""What a forked child does first, done in this process: locks that a thread holds which the child has not are replaced."""

from __future__ import annotations

import sys
import threading
from _thread import get_ident
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import openwork as ow
from openwork import interruptible
from openwork.codegen import after_fork, cache, checked, llvm, pool
from openwork.ir.text import parse
from openwork.storage import memory

HOOKS = [
    (cache, "_LOCK", "_after_fork"), (checked, "_LOCK", "_after_fork"), (llvm, "_LOCK", "_after_fork_in_child"),
    (memory, "_lock", "_forked"), (pool, "_lock", "_forget"),
]  # fmt: skip


@pytest.fixture
def elsewhere() -> Iterator[SimpleNamespace]:
    """Runs a function on another thread, which stays until the end of the test."""
    end = threading.Event()
    threads: list[threading.Thread] = []

    def run(function: object, *args: object) -> threading.Thread:
        done = threading.Event()

        def work() -> None:
            function(*args)  # type: ignore[operator]
            done.set()
            end.wait(60)

        thread = threading.Thread(target=work, daemon=True)
        threads.append(thread)
        thread.start()
        assert done.wait(60)
        return thread

    yield SimpleNamespace(run=run)
    end.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("module", "lock", "hook"), HOOKS, ids=[m.__name__.rpartition(".")[2] for m, *_ in HOOKS])
def test_locks_that_another_thread_holds_are_replaced(
    module: ModuleType, lock: str, hook: str, monkeypatch: pytest.MonkeyPatch, elsewhere: SimpleNamespace
) -> None:
    for name in ("_no_fork", "_inside", "_run"):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(module, lock, threading.RLock())
    elsewhere.run(getattr(module, lock).acquire)
    if module is llvm:
        llvm._no_fork = threading.Event()  # another thread was about to fork
        llvm._inside = -1
    assert not getattr(module, lock).acquire(timeout=0.01)
    getattr(module, hook)()
    for _ in range(2):
        assert getattr(module, lock).acquire(timeout=1)
        getattr(module, lock).release()
    if module is llvm:
        assert (llvm._no_fork.is_set(), llvm._inside) == (True, None)
        assert llvm.by_llvm(lambda: llvm._inside) not in (None, get_ident())
        assert llvm._inside is None


def test_llvmlites_own_lock_is_replaced(monkeypatch: pytest.MonkeyPatch, elsewhere: SimpleNamespace) -> None:
    llvm.by_llvm(llvm.library)
    for name in ("_no_fork", "_inside", "_LOCK"):
        monkeypatch.setattr(llvm, name, getattr(llvm, name))
    lock = sys.modules["llvmlite.binding.ffi"].lib._lock
    monkeypatch.setattr(lock, "_lock", threading.RLock())
    elsewhere.run(lock._lock.acquire)
    assert not lock._lock.acquire(timeout=0.01)
    llvm._after_fork_in_child()
    assert lock._lock.acquire(timeout=1)
    lock._lock.release()
    kernel = cache.compile_kernel(parse("def f(y: i64[mut]):\n    y[0] = 51966"))
    y = np.zeros(1, np.int64)
    kernel.run(kernel.pack([y]))
    assert y[0] == 51966


def test_locks_of_cached_properties_are_replaced() -> None:
    def locks(package: str) -> dict[str, object]:
        found = {}
        for name, module in list(sys.modules.items()):
            if name.startswith(package):
                for kind in [v for v in list(vars(module).values()) if isinstance(v, type) and v.__module__ == name]:
                    for key, value in vars(kind).items():
                        if isinstance(value, cached_property):
                            found[f"{name}.{kind.__qualname__}.{key}"] = getattr(value, "lock", None)
        return found

    ours, others = locks("openwork."), locks("scipy.")
    assert len(ours) > 5
    after_fork.renew_locks()
    again = locks("openwork.")
    assert again.keys() == ours.keys()
    has_locks = sys.version_info < (3, 12)
    assert all((again[key] is not ours[key]) == has_locks for key in ours)
    assert locks("scipy.") == others
    assert ow.asarray(np.eye(3), format="csr").format == ow.format("csr")


def test_the_childs_one_thread_is_its_main_one(monkeypatch: pytest.MonkeyPatch, elsewhere: SimpleNamespace) -> None:
    for name in ("_main", "_local"):
        monkeypatch.setattr(interruptible, name, getattr(interruptible, name))
    monkeypatch.setattr(interruptible, "_idle", [object()])
    before = interruptible._local
    thread = elsewhere.run(interruptible._after_fork)
    assert interruptible._main == thread.ident != get_ident()
    assert interruptible._local is not before
    assert interruptible._idle == []  # their threads are gone


def test_a_pool_of_another_process_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool's functions say so where they find the number of another process."""
    count = cache.compile_kernel(
        parse("def count(lo: i64, hi: i64, y: i64[mut]):\n    for i in range(lo, hi):\n        y[i] += i + 1")
    )
    before = pool.get_num_threads()
    native = pool._native()
    if native is None:
        pytest.skip("no pool on this system")
    asked: list[int] = []
    answers: list[int] = []

    def foreign(number: int) -> object:
        def function(*args: object) -> int:
            asked.append(number)
            return answers.pop() if answers else native[number](*args)

        return function

    functions = (native[0], *(foreign(k) for k in (1, 2, 3)))
    monkeypatch.setattr(pool, "_native", lambda: functions)
    y = np.zeros(40, np.int64)
    words = count.pack([y])
    try:
        pool.set_num_threads(3)
        for answer, times in ((pool._FOREIGN, 2), (pool._BUSY, 1)):
            y[:] = 0
            answers[:], asked[:] = [answer], []
            lock = pool._lock
            pool.parallel(count, words, [0, 10, 20, 40], work=0)
            assert asked == [1] * times
            assert (pool._lock is lock) == (answer == pool._BUSY)
            np.testing.assert_array_equal(y, np.arange(1, 41))
            y[:] = 0
            answers[:], asked[:] = [answer], []
            pool.parallel_private(count, [words, words], [(0, 15), (15, 40)])
            assert asked == [3] * times
            np.testing.assert_array_equal(y, np.arange(1, 41))
            y[:] = 0
            answers[:], asked[:] = [answer], []
            counts, ends = np.zeros(2, np.int64), np.zeros(3, np.int64)
            args = (count, count, [words], [words], 2, counts.ctypes.data, ends.ctypes.data, 1)
            assert pool.ordered(*args) == (answer == pool._FOREIGN)
            assert asked == [2] * times
            np.testing.assert_array_equal(y[:3], [2, 4, 0] if answer == pool._FOREIGN else [0, 0, 0])
        answers[:] = [9]
        with pytest.raises(ow.errors.CompilerBug, match="returned status 9"):
            pool.ordered(*args)
        with pytest.raises(ow.errors.CompilerBug, match="count: 1 sets of words for 2 ranges"):
            pool.parallel_private(count, [words], [(0, 15), (15, 40)])
        pool.set_num_threads(1)
        asked.clear()
        assert not pool.ordered(*args)
        assert not asked
    finally:
        pool.set_num_threads(before)
