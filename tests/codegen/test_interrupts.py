"""Interrupts and forks: a long job answers a signal while it runs, what it works on outlives it, and a child can compile."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import faults, interruptible
from openwork.codegen import cache, engine, pool
from openwork.codegen.emit import emit
from openwork.io import files
from openwork.ir.text import parse
from openwork.ops.numpy_names import ufuncs
from openwork.runtime import moves, values
from openwork.runtime import overrides as dispatch

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")

SPIN = """
def spin(n: i64, at: i64, flags: i64[mut]):
    flags[0] = 1
    i: i64 = 0
    while flags[at] == 0 and i < n:
        i = i + 1
        flags[2] = i
    flags[3] = 1
"""
"""Runs until somebody sets flags[at]; the limit is some minutes."""
LIMIT = 10**11


class Stopped(Exception):
    """What the handler of these tests raises."""


@contextmanager
def signalled(when: Callable[[], bool]) -> Iterator[None]:
    """Send this process a signal, whose handler raises Stopped, as soon as `when()` is true."""

    def handler(*_: object) -> None:
        raise Stopped

    def send() -> None:
        while not when():
            pause.wait(0.001)
        os.kill(os.getpid(), signal.SIGUSR1)

    pause = threading.Event()
    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def spin() -> Any:
    return cache.compile_kernel(parse(SPIN))


def run_until_stopped(spin: Any, flags: np.ndarray[Any, Any]) -> None:
    spin.run_sized(interruptible.LONG, spin.pack([LIMIT, 1, flags]))


def test_a_kernel_that_runs_answers_and_keeps_its_buffers(spin: Any) -> None:
    """The handler's exception comes while the kernel runs; what it writes to lives until it has ended."""
    flags = np.zeros(4, np.int64)
    views = [flags]

    def work() -> weakref.ref[Any]:
        mine = flags[:]  # a view that nobody else holds
        seen = weakref.ref(mine)
        with signalled(lambda: flags[0] == 1), pytest.raises(Stopped):
            run_until_stopped(spin, mine)
        return seen

    seen = work()
    assert flags[3] == 0  # it still runs
    gc.collect()
    assert seen() is not None
    np.testing.assert_array_equal(ow.asarray(np.eye(3), format="csr") @ np.ones(3), np.ones(3))
    views[0][1] = 1  # let it end
    while flags[3] == 0:
        pass
    while seen() is not None:
        gc.collect()
    assert flags[3] == 1


def test_what_ends_within_the_grace_is_not_left_behind(spin: Any) -> None:
    """After the exception the kernel has ended where it could end soon."""
    flags = np.zeros(4, np.int64)

    def work() -> None:
        flags[0] = 1
        while not interruptible.here().now:
            pass
        flags[3] = 1

    with signalled(lambda: flags[0] == 1), pytest.raises(Stopped):
        interruptible.call(work)
    assert flags[3] == 1


def test_a_signal_that_another_thread_receives_is_answered() -> None:
    """It does not wake the main thread: that looks for signals by itself."""
    flags = [False]

    def work() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGUSR1)
        stop = interruptible.here()
        for _ in range(5000):
            if stop.now:
                flags[0] = True
                break
            pause.wait(0.001)

    def handler(*_: object) -> None:
        raise Stopped

    pause = threading.Event()
    before = signal.signal(signal.SIGUSR1, handler)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        with pytest.raises(Stopped):
            interruptible.call(work)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGUSR1, before)
    assert flags == [True]


def test_no_range_begins_after_an_interrupt() -> None:
    """Of many ranges those that had not begun are not run."""
    count = cache.compile_kernel(
        parse("""
def claim(lo: i64, hi: i64, most: i64, at: i64, y: i64[mut], flags: i64[mut]):
    for i in range(lo, hi):
        y[i] = 1
    k: i64 = 0
    flags[0] = 1
    while flags[at] == 0 and k < most:
        k = k + 1
        flags[2] = k
""")
    )
    tasks = 64 * pool.get_num_threads()
    y, flags = np.zeros(tasks, np.int64), np.zeros(3, np.int64)

    def seen() -> bool:
        return bool(flags[0] == 1)

    words = count.pack([LIMIT, 1, y, flags])
    with pytest.raises(Stopped), signalled(seen):
        pool.parallel(count, words, range(tasks + 1))
    flags[1] = 1
    while pool.parallel(count, words, (0, 1), 0):
        pass
    assert 0 < y.sum() < tasks


def test_handlers_that_do_not_raise_change_nothing(spin: Any) -> None:
    flags = np.zeros(4, np.int64)
    calls = []

    def handler(*_: object) -> None:
        calls.append(threading.get_ident())
        flags[1] = 1

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=lambda: [None for _ in iter(lambda: flags[0] == 1, True)])
    try:
        sender.start()
        threading.Thread(target=lambda: (sender.join(), os.kill(os.getpid(), signal.SIGUSR1))).start()
        run_until_stopped(spin, flags)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert flags[3] == 1
    assert calls == [threading.main_thread().ident]


def test_errors_of_what_is_handed_over_arrive() -> None:
    leave = cache.compile_kernel(parse("def leave(code: i64):\n    return code"))
    assert leave.run_sized(interruptible.LONG, [7], status=True) == 7
    with pytest.raises(MemoryError):
        leave.run_sized(interruptible.LONG, [1])
    here = threading.get_ident()
    assert interruptible.call(threading.get_ident) != here
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend((interruptible.call(threading.get_ident), 0)))
    thread.start()
    thread.join()
    assert found[0] == thread.ident


@pytest.mark.thin(5)
@pytest.mark.parametrize(
    "work",
    [
        lambda a: a.asformat("bsr(8, 8)"),
        lambda a: a.asformat("csc"),
        lambda a: a + a.T,
        lambda a: ow.concat([a, a]).asformat("csr"),
        lambda a: ow.concat([a, a.T]).asformat("dcsc"),
    ],
)
def test_long_work_is_handed_over(work: Callable[[ow.Tensor], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of 0 every kernel of a conversion or a merge is."""
    a = ow.random((60, 60), 0.2, format="coo", rng=0)
    want = ow.asarray(work(a)).to_numpy()
    calls = []
    call = interruptible.call

    def counted(function: Any, *args: Any) -> Any:
        calls.append(function)
        return call(function, *args)

    monkeypatch.setattr(moves, "LITTLE", -1)
    monkeypatch.setattr(interruptible, "LONG", 0)
    monkeypatch.setattr(pool, "LONG", 0)
    monkeypatch.setattr(pool, "call", counted)
    monkeypatch.setattr(interruptible, "call", counted)
    np.testing.assert_array_equal(ow.asarray(work(a.clone())).to_numpy(), want)
    assert calls


def interrupted_inside(name: str, work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `work`, which calls NumPy's function of that name: a signal comes inside it, and is answered there."""
    seen: list[bool] = []
    function = getattr(np, name)

    def slow(*args: Any, **named: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and not seen:
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(5000):
                if interruptible.here().now:
                    break
                pause.wait(0.001)
            seen.append(interruptible.here().now)
        return function(*args, **named)

    def handler(*_: object) -> None:
        raise Stopped

    pause = threading.Event()
    monkeypatch.setattr(np, name, slow)
    monkeypatch.setattr(values, "function_of", values.function_of.__wrapped__)
    monkeypatch.setattr(dispatch, "LONG", 1)
    monkeypatch.setattr(files, "LONG", 1)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Stopped):
            work()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [True]


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("argsort", lambda a: ow.sort(a, axis=1)),
        ("argsort", lambda a: ow.argsort(a, axis=0)),
        ("flatnonzero", ow.nonzero),
        ("unique", ow.unique_counts),
        ("cumsum", lambda a: ow.cumulative_sum(a, axis=1)),
        ("searchsorted", lambda a: ow.searchsorted(ow.sort(ow.reshape(a, (-1,))), np.arange(3.0))),
        ("searchsorted", lambda a: ow.einsum("ijk,ijl->kl", *2 * (ow.reshape(a, (4, 5, 30)),))),
        ("exp", lambda a: ow.softmax(a, axis=0)),
        ("sin", lambda a: ow.sin(a)),
        ("flatnonzero", lambda a: a[a > 0.5]),
        ("where", lambda a: a.argmax(axis=0)),
    ],
)
def test_operations_answer_inside_numpy(
    name: str, work: Callable[[ow.Tensor], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long call of NumPy holds no signal up; afterwards the same call gives what it gave before."""
    a = ow.random((20, 30), 0.2, format="coo", rng=0)
    want = work(a)
    with monkeypatch.context() as patch:
        interrupted_inside(name, lambda: work(a), patch)
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (work(a), want)), strict=True):
        np.testing.assert_array_equal(ow.asarray(x).to_numpy(), ow.asarray(y).to_numpy())


def test_ufuncs_of_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long call of any ufunc leaves the main thread free."""
    special = pytest.importorskip("scipy.special")
    a = ow.random((20, 30), 0.2, format="coo", rng=0)
    threads = []
    monkeypatch.setattr(dispatch, "LONG", 1)
    inner = ufuncs._apply
    monkeypatch.setattr(ufuncs, "_apply", lambda *x: (threads.append(threading.current_thread()), inner(*x))[1])
    for call in (special.gamma, special.erfc, np.sin, lambda t: np.hypot(t, t)):
        call(a)
    assert len(threads) == 4
    assert threading.main_thread() not in threads


def test_operations_on_a_helper_see_the_callers_errstate(monkeypatch: pytest.MonkeyPatch) -> None:
    a = ow.asarray(np.array([[1.0, 0.0], [0.0, 0.0]]), format="csr")
    monkeypatch.setattr(dispatch, "LONG", 1)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        ow.divide(1.0, a)
    with np.errstate(divide="ignore"):
        assert np.isinf(ow.divide(1.0, a).to_numpy()).sum() == 3


def test_reading_and_writing_answer_inside_numpy(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupt has left replaces no file."""
    path = tmp_path / "a.rb"
    a = ow.random((20, 30), 0.2, format="csc", rng=0)
    ow.write(path, a)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        interrupted_inside("lexsort", lambda: ow.write(path, a + a), patch)
    with monkeypatch.context() as patch:
        interrupted_inside("diff", lambda: ow.read(path), patch)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(ow.read(path).to_numpy(), a.to_numpy())


def test_an_interrupt_during_a_compile_then_a_collection() -> None:
    """LLVM's objects are freed in their order, by the thread that made them: the collector finds none."""
    text = emit(parse(SPIN))
    entered = threading.Event()
    module = engine._module

    @contextmanager
    def noticed(text: str) -> Iterator[Any]:
        with module(text) as found:
            entered.set()
            yield found

    engine._module = noticed
    try:
        for _ in range(6):
            entered.clear()
            try:
                with signalled(entered.is_set):
                    engine.to_object(text)
            except Stopped:
                pass
            gc.collect()
    finally:
        engine._module = module
    assert engine.to_object(text) == engine.to_object(text)


def test_a_compile_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENWORK_CACHE", "0")
    cache.clear_memory()
    kernel = parse("def once(n: i64, y: i64[mut]):\n    y[0] = n + 123456")
    with faults.injected(faults.nth("compile", 1)), pytest.raises(MemoryError, match="injected"):
        cache.get("a kernel whose compile fails", lambda: kernel)
    y = np.zeros(1, np.int64)
    found = cache.get("a kernel whose compile fails", lambda: kernel)
    found.run(found.pack([1, y]))
    assert y[0] == 123457


FORKS = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np, openwork as ow
from openwork.codegen import cache, engine
from openwork.codegen.emit import emit
from openwork.ir.text import parse
def kernel(k):
    lines = "".join(f"        y[i] = y[i] * {k + n} + exp(1.0 / (i + {n + 1}))\\n" for n in range(3))
    return parse(f"def f(lo: i64, hi: i64, y: f64[mut]):\\n    for i in range(lo, hi):\\n{lines}")
end = False
def compile_always(k):
    while not end:
        k += 10
        engine.to_object(emit(kernel(k)))
def child():
    engine.to_object(emit(kernel(7)))
    a = ow.asarray(np.eye(3), format="csr")
    assert ((a @ np.ones(3)) == 1).all()
others = [threading.Thread(target=compile_always, args=(k,), daemon=True) for k in range(WHO)]
for t in others: t.start()
def forks():
    for _ in range(2):
        pid = os.fork()
        if not pid:
            try:
                child()
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
if THREAD:
    t = threading.Thread(target=forks); t.start(); t.join()
else:
    forks()
end = True
for t in others: t.join()
print("done")
"""


@pytest.mark.ci
@pytest.mark.parametrize("thread", [False, True])
def test_a_child_born_while_others_compile_can_compile(thread: bool, tmp_path: Any) -> None:
    script = FORKS.replace("WHO", "2").replace("THREAD", str(thread))
    env = {**os.environ, "OPENWORK_CACHE_DIR": str(tmp_path), "OPENWORK_OPTIMIZE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, env=env)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.ci
def test_a_child_born_while_a_lock_is_held_gets_its_own() -> None:
    """Whatever lock another thread holds: those of the cache, of LLVM, of a cached property."""
    script = """
import os, threading
import numpy as np, openwork as ow
from openwork.codegen import cache, llvm
from openwork.format.format import Format
import llvmlite.binding.ffi as ffi
llvm.LAST = 0.1
held, end = threading.Event(), threading.Event()
def hold():
    lock = getattr(vars(Format)["canonical"], "lock", cache._LOCK)
    with cache._LOCK, llvm._LOCK, ffi.lib._lock, lock:
        held.set()
        end.wait()
t = threading.Thread(target=hold); t.start(); held.wait()
pid = os.fork()
if not pid:
    a = ow.asarray(np.eye(3), format="(i, j) -> (i : dense, j : compressed)")
    os._exit(0 if (a @ np.ones(3) == 1).all() else 1)
print(os.waitpid(pid, 0)[1])
end.set()
"""
    env = {**os.environ, "OPENWORK_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout == "0\n", done.stderr


@pytest.mark.slow
def test_no_lock_of_ours_stays_held_in_a_child() -> None:
    """All locks of all modules are held by another thread; in the child each can be had."""
    pytest.importorskip("torch")
    script = """
import importlib, os, pathlib, sys, threading
import openwork
root = pathlib.Path(openwork.__file__).parent
for path in root.rglob("*.py"):
    parts = path.relative_to(root).with_suffix("").parts
    if parts[0] not in ("torch", "nn", "cli", "linalg") and parts[-1] not in ("__init__", "__main__"):
        importlib.import_module(".".join(("openwork", *parts)))
from openwork.codegen import llvm
llvm.LAST = 0.1
kinds = type(threading.Lock()), type(threading.RLock())
def locks():
    names = sorted(name for name in sys.modules if name.startswith("openwork."))
    return [(name, key) for name in names for key, value in vars(sys.modules[name]).items() if isinstance(value, kinds)]
names = locks()
held, end = threading.Event(), threading.Event()
def hold():
    for name, key in names:
        vars(sys.modules[name])[key].acquire()
    held.set()
    end.wait()
t = threading.Thread(target=hold, daemon=True); t.start(); held.wait()
pid = os.fork()
if not pid:
    stuck = [pair for pair in names if not vars(sys.modules[pair[0]])[pair[1]].acquire(timeout=1)]
    print(len(names) > 4, stuck, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
end.set()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True []\n", done.stderr


@pytest.mark.ci
def test_a_child_born_while_another_thread_imports_llvmlite_is_told() -> None:
    """For longer than a fork waits: Python frees no module's lock in a child, where the import would wait for ever."""
    script = """
import importlib.abc, importlib.machinery, os, sys, threading
import numpy as np, openwork as ow
from openwork.codegen import llvm
llvm.LAST = 0.1
held, end, me = threading.Event(), threading.Event(), os.getpid()
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "llvmlite.binding.ffi" and os.getpid() == me:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (held.set(), end.wait(), run(module))
            return spec
t = threading.Thread(target=lambda: ow.asarray(np.eye(4), format="csr") @ np.ones(4))
sys.meta_path.insert(0, Slow())
t.start(); held.wait()
pid = os.fork()
if not pid:
    try:
        ow.asarray(np.eye(3), format="csr") @ np.ones(3)
    except ow.UnsupportedError as error:
        os._exit(0 if "forked while another thread was loading LLVM" in str(error) else 1)
    os._exit(2)
for _ in range(300):
    found, status = os.waitpid(pid, os.WNOHANG)
    if found:
        break
    end.wait(0.1)
else:
    os.kill(pid, 9)
print(found == pid, status)
end.set(); t.join()
"""
    env = {**os.environ, "OPENWORK_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=90, env=env)
    assert done.stdout == "True 0\n", done.stderr


@pytest.mark.ci
def test_what_runs_at_the_end_of_a_process_can_compile() -> None:
    script = """
import atexit
import numpy as np, openwork as ow
a = ow.asarray(np.eye(3), format="csr")
atexit.register(lambda: print((a @ np.ones((3, 2))).sum()))
a @ np.ones(3)
"""
    env = {**os.environ, "OPENWORK_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout == "6.0\n", done.stderr


@pytest.mark.ci
def test_too_little_address_space_is_a_memory_error(tmp_path: Any) -> None:
    """To load LLVM, and to compile: LLVM itself would end the process. Some 400 MiB in all are enough."""
    script = """
import resource, sys
import numpy as np, openwork as ow
from openwork.codegen import llvm
one = np.ones(3)
a = ow.assemble("csr", (3, 3), pos=[None, np.arange(4)], crd=[None, np.arange(3)], values=one, check=False)
assert llvm.library.cache_info().currsize == 0
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for more in (20, 60, 100, 140, 180, 220, 260):
    resource.setrlimit(resource.RLIMIT_AS, (used + (more << 20), resource.RLIM_INFINITY))
    try:
        a @ np.ones(3)
        print("compiled")
        break
    except MemoryError as error:
        assert "address space" in str(error), error
        print("refused")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print((a @ np.ones(3)).tolist())
"""
    if sys.platform != "linux":
        pytest.skip("limits of Linux")
    env = {**os.environ, "OPENWORK_CACHE_DIR": str(tmp_path), "OPENWORK_NUM_THREADS": "1", "OPENWORK_REUSE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=env)
    lines = done.stdout.splitlines()
    assert lines[:1] == ["refused"], done.stderr
    assert lines[-2:] == ["compiled", "[1.0, 1.0, 1.0]"], done.stderr
