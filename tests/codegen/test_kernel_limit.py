"""Kernels in memory: at most as many as asked for, their pages unmapped once nobody holds them, never while one runs."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import cache, linker, plan_cache, pool
from openwork.codegen.plan_cache import PlanCache
from openwork.ir.text import parse


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    before = ow.get_kernel_limit()
    ow.clear_caches()
    yield
    ow.set_kernel_limit(before)


def kernel(k: int) -> cache.Executable:
    return cache.compile_kernel(parse(f"def f(y: i64[mut]):\n    y[0] = {k}"))


def value(executable: cache.Executable) -> int:
    y = np.zeros(1, np.int64)
    executable.run(executable.pack([y]))
    return int(y[0])


def test_the_least_recently_asked_for_go(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    unmap = linker._unmap
    monkeypatch.setattr(linker, "_unmap", lambda address, size: (freed.append(address), unmap(address, size)))
    ow.set_kernel_limit(8)
    before = ow.cache_info()
    held = kernel(0)
    for k in range(1, 30):
        kernel(k)
        assert value(kernel(1)) == 1
    gc.collect()
    info = ow.cache_info()
    assert info["kernels"] <= 8
    assert info["evicted"] - before["evicted"] == 30 - info["kernels"]
    assert info["misses"] - before["misses"] == 30
    assert info["hits"] - before["hits"] == 29
    if sys.platform == "linux":
        assert len(freed) == 29 - info["kernels"]  # the one that is held stays
        assert held.address not in range(min(freed), min(freed) + 1)
    assert value(held) == 0
    ow.set_kernel_limit(3)
    assert ow.get_kernel_limit() == 3
    assert ow.cache_info()["kernels"] <= 3, "a lower limit holds at once"
    assert value(kernel(1)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="maps of Linux")
def test_the_memory_is_given_back() -> None:
    def maps() -> int:
        with open("/proc/self/maps") as lines:
            return sum(" r-xp " in line and line.endswith(" 0 \n") for line in lines)

    ow.set_kernel_limit(4)
    for k in range(8):
        kernel(k)
    gc.collect()
    before = maps()
    for k in range(8, 40):
        kernel(k)
    gc.collect()
    assert maps() <= before + 4


def test_results_do_not_depend_on_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operation with room for two kernels only: plans and kernels come and go in the middle of each."""
    monkeypatch.setenv("OPENWORK_OPTIMIZE", "0")
    ow.set_kernel_limit(2)
    rng = np.random.default_rng(0)
    a, b = (np.where(rng.random((9, 8)) < 0.4, rng.integers(1, 9, (9, 8)), 0).astype(float) for _ in range(2))
    for _ in range(2):
        for spec in ("csr",):
            s, t = ow.asarray(a, format=spec), ow.asarray(b, format=spec)
            np.testing.assert_array_equal((s + t).to_numpy(), a + b)
            np.testing.assert_array_equal((s * t).to_numpy(), a * b)
            np.testing.assert_array_equal((s @ t.T).to_numpy(), a @ b.T)
            np.testing.assert_array_equal(s @ np.ones(8), a @ np.ones(8))
            np.testing.assert_array_equal(s.asformat("csc").to_numpy(), a)
            np.testing.assert_array_equal(np.asarray(ow.sum(s, axis=0)), a.sum(0))
            np.testing.assert_array_equal(np.asarray(ow.argmax(s, axis=1)), a.argmax(1))
            np.testing.assert_array_equal(s[2:5].to_numpy(), a[2:5])
    assert ow.cache_info()["kernels"] <= 2


def test_calls_are_made_again_after_their_eviction() -> None:
    a = ow.asarray(np.diag([1.0, 2.0, 3.0]), format="csr")
    x = np.ones(3)
    a @ x, a @ x
    ow.clear_caches()
    gc.collect()
    assert (a @ x).tolist() == [1, 2, 3]
    assert ow.cache_info()["kernels"] == 1


def test_eviction_while_threads_run_kernels() -> None:
    ow.set_kernel_limit(1)
    wrong: list[int] = []

    def work(k: int) -> None:
        for turn in range(150):
            n = 7 * k + turn % 3
            if value(kernel(n)) != n:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_pool_outlives_everything() -> None:
    ow.clear_caches()
    gc.collect()
    count = cache.compile_kernel(
        parse("def g(lo: i64, hi: i64, y: i64[mut]):\n    for i in range(lo, hi):\n        y[i] += 1")
    )
    y = np.zeros(8, np.int64)
    pool.parallel(count, count.pack([y]), range(9))
    assert y.tolist() == [1] * 8


@pytest.mark.parametrize(
    ("n", "error"), [(0, ValueError), (-3, ValueError), (2.5, TypeError), ("8", TypeError), (True, TypeError)]
)
def test_a_bad_limit_is_refused(n: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="set_kernel_limit"):
        ow.set_kernel_limit(n)  # type: ignore[arg-type]


def test_clearing_the_disk_is_asked_for(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    kernel(123)
    assert ow.cache_info()["files"] == 1
    ow.clear_caches()
    assert (ow.cache_info()["files"], ow.cache_info()["kernels"]) == (1, 0)
    ow.clear_caches(disk=True)
    assert ow.cache_info()["files"] == 0


def test_a_full_table_of_plans_drops_its_oldest() -> None:
    table: PlanCache[int, int] = PlanCache("test", 32)
    try:
        for k in range(40):
            assert table.keep(k, -k) == -k
            assert k in table
            assert len(table) == k + 1 if k < 32 else 29 < len(table) <= 32
        assert list(table) == sorted(table)
    finally:
        plan_cache._TABLES.remove(table)
