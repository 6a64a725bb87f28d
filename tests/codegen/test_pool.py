"""The thread pool: every range runs exactly once, whatever else goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from openwork.codegen import pool
from openwork.codegen.cache import Executable, compile_kernel
from openwork.errors import CompilerBug
from openwork.ir.text import parse


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = pool.get_num_threads()
    yield
    pool.set_num_threads(before)


def count() -> Executable:
    return compile_kernel(
        parse("""
def count(lo: i64, hi: i64, y: i64[mut]):
    for i in range(lo, hi):
        y[i] += i + 1
""")
    )


def cuts(rng: np.random.Generator, size: int, tasks: int) -> list[int]:
    return [0, *sorted(rng.integers(0, size + 1, tasks - 1).tolist()), size]


@pytest.mark.thin(2)
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_range_runs_once(threads: int) -> None:
    pool.set_num_threads(threads)
    assert pool.get_num_threads() == threads
    rng, executable = np.random.default_rng(0), count()
    y = np.zeros(500, np.int64)
    words = executable.pack([y])
    for turn in range(1, 2000):
        pool.parallel(executable, words, cuts(rng, 500, int(rng.integers(1, 12))))
        if turn % 100 == 0:
            np.testing.assert_array_equal(y, turn * np.arange(1, 501))


@pytest.mark.parametrize("machine", ["x86_64", "arm64", "aarch64"])
@pytest.mark.parametrize(("system", "block", "setmask"), [("linux", 0, 2), ("darwin", 1, 3)])
def test_the_text_is_of_the_system(
    machine: str, system: str, block: int, setmask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause of the processor, declared once, and the system's numbers of pthread_sigmask."""
    monkeypatch.setattr(pool.sys, "platform", system)
    monkeypatch.setattr(pool.os, "uname", lambda: SimpleNamespace(machine=machine))
    text = pool._text().partition("; Filled in by pool.py")[2].partition("\n")[2]
    assert "{" + "PAUSE" not in text
    assert text.count("declare void @llvm.") == 2  # and memset
    ours, other = ("aarch64.hint", "x86.sse2.pause") if machine != "x86_64" else ("x86.sse2.pause", "aarch64.hint")
    assert f"call void @llvm.{ours}" in text
    assert other not in text
    assert f"@pthread_sigmask(i32 {block}, ptr %all" in text
    assert f"@pthread_sigmask(i32 {setmask}, ptr %old" in text


def test_many_callers_at_a_time() -> None:
    pool.set_num_threads(4)
    executable = count()
    failures: list[str] = []

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        y = np.zeros(300, np.int64)
        words = executable.pack([y])
        for _ in range(500):
            pool.parallel(executable, words, cuts(rng, 300, 5))
        if not np.array_equal(y, 500 * np.arange(1, 301)):
            failures.append(f"caller {seed}")

    callers = [threading.Thread(target=call, args=(s,)) for s in range(6)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not failures


def test_changing_the_number_of_threads_between_calls() -> None:
    executable = count()
    y = np.zeros(64, np.int64)
    for turn in range(200):
        pool.set_num_threads(1 + turn % 7)
        pool.parallel(executable, executable.pack([y]), list(range(0, 65, 4)))
    np.testing.assert_array_equal(y, 200 * np.arange(1, 65))


def test_statuses_are_combined() -> None:
    pool.set_num_threads(3)
    fail = compile_kernel(
        parse("""
def fail(lo: i64, hi: i64, code: i64):
    for i in range(lo, hi):
        if i == 70:
            return code
""")
    )
    pool.parallel(fail, [0], [0, 30, 60, 100])
    with pytest.raises(MemoryError):
        pool.parallel(fail, [1], [0, 30, 60, 100])
    with pytest.raises(CompilerBug, match="kernel fail returned status 9"):
        pool.parallel(fail, [9], [0, 30, 60, 100])


def test_a_bad_number_of_threads_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 1 thread, got 0"):
        pool.set_num_threads(0)


SCRIPT = """
import os, sys
import numpy as np
from openwork.codegen import pool
from openwork.codegen.cache import compile_kernel
from openwork.ir.text import parse
count = compile_kernel(parse('''
def count(lo: i64, hi: i64, y: i64[mut]):
    for i in range(lo, hi):
        y[i] += 1
'''))
def use():
    y = np.zeros(400, np.int64)
    for _ in range(300):
        pool.parallel(count, count.pack([y]), [0, 100, 200, 300, 400])
    assert (y == 300).all()
"""


def run_script(tail: str, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", SCRIPT + tail], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_in_the_middle_of_work() -> None:
    tail = """
import threading, warnings
warnings.simplefilter("ignore")
pool.set_num_threads(4)
use()
other = threading.Thread(target=lambda: [use() for _ in range(5)])
other.start()
for _ in range(5):
    child = os.fork()
    if not child:
        use()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
other.join()
use()
"""
    run_script(tail)


@pytest.mark.ci
def test_the_environment_sets_the_number() -> None:
    assert run_script("print(pool.get_num_threads())", OPENWORK_NUM_THREADS="3") == "3\n"
    assert int(run_script("print(pool.get_num_threads())", OPENWORK_NUM_THREADS="many")) >= 1


def test_without_the_native_pool() -> None:
    out = run_script("pool.set_num_threads(4); use(); print(pool.available())", OPENWORK_POOL="0")
    assert out == "False\n"


@pytest.mark.ci
def test_leaving_right_after_a_parallel_call() -> None:
    for _ in range(3):
        run_script("pool.set_num_threads(4); use()")


def test_ranges_of_one_thread_can_be_stopped_between(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop:
        left = 2

        def check(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt

    launches: list[tuple[int, int]] = []

    class Counted:
        def run(self, words: object, lo: int, hi: int) -> None:
            launches.append((lo, hi))

    monkeypatch.setattr(pool, "here", Stop)
    with pytest.raises(KeyboardInterrupt):
        pool._sequential(Counted(), (), (0, 3, 5, 9, 12))  # type: ignore[arg-type]
    assert launches == [(0, 3), (3, 5)]
