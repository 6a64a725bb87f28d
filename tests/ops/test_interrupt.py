"""Ctrl-C during a long kernel: control returns between ranges, and nothing is harmed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import pool
from openwork.codegen.executable import Executable
from openwork.interruptible import here
from openwork.runtime import overrides, program
from openwork.runtime.contraction import small_product, spgemm

SIZE = 120
AFTER = 3
"""Launches after which the interrupt comes."""


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Work of a few elements counts as long; Ctrl-C raises KeyboardInterrupt, as in a program."""
    monkeypatch.setattr(program, "LONG_WORK", 8)
    monkeypatch.setattr(program, "PARALLEL_WORK", 1)
    monkeypatch.setattr(small_product, "PRODUCTS", 0)
    monkeypatch.setattr(spgemm, "WAVE", 8)
    monkeypatch.setattr(spgemm, "PARALLEL_WORK", 1)
    before = pool.get_num_threads(), signal.signal(signal.SIGINT, signal.default_int_handler)
    ow.set_num_threads(request.param)
    yield request.param
    ow.set_num_threads(before[0])
    signal.signal(signal.SIGINT, before[1])


class Launches:
    """Counts launches of machine code, on one thread or on the pool, and sends the signal in the midst of one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.limit = 10**9
        run = Executable.run
        monkeypatch.setattr(Executable, "run", lambda *args, **named: self._launch(run, *args, **named))
        native = pool._run or pool._start()
        if native is not None:
            monkeypatch.setattr(pool, "_run", lambda *args: self._launch(native, *args))
        apart = pool.parallel_private
        monkeypatch.setattr(pool, "parallel_private", lambda *args: self._launch(apart, *args))  # type: ignore[arg-type]

    def _launch(self, run: Callable[..., int], *args: Any, **named: Any) -> int:
        self.count += 1
        if self.count == self.limit:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(5000):  # work on a helper thread goes on until the main thread has told it to stop
                if here().now:
                    break
                time.sleep(0.001)
        return run(*args, **named)


def matrix() -> ow.Tensor:
    """A new one: launches are kept on the tensor."""
    return ow.random((SIZE, SIZE), 0.05, format="csr", rng=np.random.default_rng(1))


X = np.ones((SIZE, 3))
OPERATIONS: dict[str, Callable[[ow.Tensor], Any]] = {
    "spmv": lambda A: A @ X[:, 0],
    "spmm": lambda A: A @ X,
    "transposed": lambda A: A.T @ X,
    "columns": lambda A: ow.sum(A, axis=0).to_numpy(),
    "diagonals": lambda A: A.asformat("dia") @ X,
    "sddmm": lambda A: ow.sddmm(A, X, X.T).values,
    "spgemm": lambda A: (A @ A).to_numpy(),
    "masked": lambda A: ow.spgemm(A, A, mask=A).to_numpy(),
    "mttkrp": lambda A: ow.mttkrp(A, [None, X], 0),
}


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interrupt_is_answered_between_ranges(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    operation, A = OPERATIONS[name], matrix()
    want = operation(A)
    launches = Launches(monkeypatch)
    np.testing.assert_array_equal(operation(A), want)
    whole = launches.count
    assert whole > 2 * AFTER
    launches.count, launches.limit = 0, AFTER
    with pytest.raises(KeyboardInterrupt):
        operation(A)
    assert launches.count < whole
    launches.limit = 10**9
    np.testing.assert_array_equal(operation(A), want)


def test_short_work_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    A = ow.random((SIZE - 1, SIZE), 0.05, format="csr", rng=np.random.default_rng(1))
    launches = Launches(monkeypatch)
    monkeypatch.setattr(program, "launcher", lambda: None)  # which is not counted
    assert (A @ X).shape == A.shape[:1] + X.shape[1:]
    assert launches.count == 1


@pytest.mark.parametrize("count", [1, 2, 12, 13, 50])
def test_waves_run_every_range(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[int, int]] = []

    class Recorder:
        address = 0

        def run(self, words: Any, lo: int, hi: int) -> int:
            ran.append((lo, hi))
            return 0

        def words(self, *words: int) -> bytes:
            return b""

    def native(address: int, words: bytes, bounds: bytes, tasks: int, helpers: int) -> int:
        marks = np.frombuffer(bounds, np.int64).tolist()
        assert len(marks) == tasks + 1 <= 13
        ran.extend(pairwise(marks))
        return 0

    monkeypatch.setattr(pool, "threads", 3)
    monkeypatch.setattr(pool, "_run", native)
    recorder: Any = Recorder()
    pool.parallel(recorder, (), list(range(0, 10 * count + 1, 10)))
    assert ran == [(10 * t, 10 * t + 10) for t in range(count)]


def test_calls_of_lists_are_asked_whether_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(overrides, "is_long", lambda args: bool(asked.append(args)))
    t = ow.asarray(np.eye(2), format="csr")
    for call in (lambda: ow.concat([t, t]), lambda: ow.stack((t, t))):
        asked.clear()
        call()
        assert asked
