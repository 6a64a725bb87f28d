"""Fault injection, in the manner of SQLite: an operation is run once for each n with the nth fault point of a kind failing.

    points = sweep("write", prepare, act, judge)

calls `act(prepare())` with the first write failing, then with the second, ... until none is left to fail. Whatever the
outcome, `judge(state, result, error)` looks at what is left behind. `points` is the number of points that were made to
fail. Kinds are those of `openwork.faults`; "allocate" is more than its calls of `reach`: NumPy's own allocator and the
malloc of kernels fail too, so that every array of an operation is a point, those of NumPy's expressions included.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from openwork import faults
from openwork.codegen import linker
from openwork.storage.storage import Storage

__all__ = ["ERRORS", "Allocator", "allocator", "leaks", "relink_kernels", "sweep"]

ERRORS = (MemoryError, OSError)
"""What an injected fault may end in, or an error of the package's own with one of these as its cause."""

_IR = """
@calls = global i64 0
@failing = global i64 0
@live = global i64 0
@workspaces = global i64 0
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
define i1 @hit() {
  %was = atomicrmw add ptr @calls, i64 1 seq_cst
  %n = add i64 %was, 1
  %f = load atomic i64, ptr @failing seq_cst, align 8
  %now = icmp eq i64 %n, %f
  ret i1 %now
}
define void @count(ptr %p, i64 %by) {
  %null = icmp eq ptr %p, null
  %step = select i1 %null, i64 0, i64 %by
  %x = atomicrmw add ptr @live, i64 %step seq_cst
  ret void
}
define ptr @any_malloc(i64 %size) {
  %now = call i1 @hit()
  br i1 %now, label %no, label %yes
no:
  ret ptr null
yes:
  %p = call ptr @malloc(i64 %size)
  call void @count(ptr %p, i64 1)
  ret ptr %p
}
define ptr @any_calloc(i64 %n, i64 %size) {
  %now = call i1 @hit()
  br i1 %now, label %no, label %yes
no:
  ret ptr null
yes:
  %p = call ptr @calloc(i64 %n, i64 %size)
  call void @count(ptr %p, i64 1)
  ret ptr %p
}
define ptr @kernel_malloc(i64 %size) {
  %x = atomicrmw add ptr @workspaces, i64 1 seq_cst
  %p = call ptr @any_malloc(i64 %size)
  ret ptr %p
}
define ptr @kernel_calloc(i64 %n, i64 %size) {
  %x = atomicrmw add ptr @workspaces, i64 1 seq_cst
  %p = call ptr @any_calloc(i64 %n, i64 %size)
  ret ptr %p
}
define void @kernel_free(ptr %p) {
  call void @count(ptr %p, i64 -1)
  call void @free(ptr %p)
  ret void
}
define ptr @array_malloc(ptr %context, i64 %size) {
  %p = call ptr @any_malloc(i64 %size)
  ret ptr %p
}
define ptr @array_calloc(ptr %context, i64 %n, i64 %size) {
  %p = call ptr @any_calloc(i64 %n, i64 %size)
  ret ptr %p
}
define ptr @array_realloc(ptr %context, ptr %p, i64 %size) {
  %now = call i1 @hit()
  br i1 %now, label %no, label %yes
no:
  ret ptr null
yes:
  %q = call ptr @realloc(ptr %p, i64 %size)
  ret ptr %q
}
define void @array_free(ptr %context, ptr %p, i64 %size) {
  call void @kernel_free(ptr %p)
  ret void
}
"""


class _Functions(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("context", "malloc", "calloc", "realloc", "free")]


class _Handler(ctypes.Structure):
    """NumPy's public struct PyDataMem_Handler."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _Functions)]


_SET_HANDLER = 304
"""Where NumPy's table of C functions has PyDataMem_SetHandler."""


class Allocator:
    """Memory for NumPy's arrays and for workspaces of kernels, which counts its calls and fails at the nth."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_IR), machine)
        self._engine.finalize_object()
        self._calls, self._failing, self._live, self._workspaces = (
            ctypes.c_int64.from_address(self._engine.get_global_value_address(n))
            for n in ("calls", "failing", "live", "workspaces")
        )
        self.workspaces = 0
        """Calls that kernels made, of the last block of `failing`."""
        self.hit = ctypes.CFUNCTYPE(ctypes.c_bool)(self._engine.get_function_address("hit"))
        where = [self._engine.get_function_address(f"array_{n}") for n in ("malloc", "calloc", "realloc", "free")]
        self._handler = _Handler(b"failing", 1, _Functions(None, *where))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._capsule = new(ctypes.addressof(self._handler), b"mem_handler", None)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        table = pointer(np._core._multiarray_umath._ARRAY_API, None)
        entry = ctypes.c_void_p.from_address(table + _SET_HANDLER * ctypes.sizeof(ctypes.c_void_p)).value
        self._set = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)

    @property
    def calls(self) -> int:
        """Allocations asked for since `failing` began."""
        return self._calls.value

    @property
    def live(self) -> int:
        """Blocks that were got and not given back."""
        return self._live.value

    def address(self, name: str) -> int:
        """The address of `kernel_malloc`, `kernel_calloc` or `kernel_free`."""
        return int(self._engine.get_function_address(f"kernel_{name}"))

    @contextmanager
    def failing(self, n: int) -> Iterator[None]:
        """Have the nth allocation inside the block fail; none where n is 0."""
        self._calls.value, self._workspaces.value, self._failing.value = 0, 0, n
        before = self._set(self._capsule)
        try:
            with faults.injected(self._reached):
                yield
        finally:
            self._failing.value = 0
            self.workspaces = self._workspaces.value
            self._set(before)

    def _reached(self, kind: str) -> None:
        if kind == "allocate" and self.hit():
            raise MemoryError(f"injected: allocate number {self._failing.value}")


@cache
def allocator() -> Allocator:
    """The allocator of this process; arrays may outlive a test, so that there is one, for good."""
    return Allocator()


def relink_kernels(patch: Any) -> None:
    """Have kernels that are linked from now on take their workspaces from the allocator.

    Kernels that the process has linked before keep libc's: for a process of its own.
    """
    real, own = linker._address, allocator()

    def address(name: str) -> int:
        return own.address(name) if name in ("malloc", "calloc", "free") else real(name)

    patch.setattr(linker, "_address", address)


@contextmanager
def _injected(kind: faults.Kind, n: int) -> Iterator[Callable[[], int]]:
    """Inside, the nth point of the kind fails; gives how many were reached."""
    if kind == "allocate":
        with allocator().failing(n):
            yield lambda: allocator().calls
    else:
        hook = faults.nth(kind, n)
        with faults.injected(hook):
            yield lambda: hook.calls


def _typed(error: BaseException | None) -> bool:
    """Whether an error is one of those that a fault may end in, or says that it was caused by one."""
    while error is not None:
        if isinstance(error, ERRORS):
            return True
        error = error.__cause__
    return False


def sweep(
    kind: faults.Kind,
    prepare: Callable[[], Any],
    act: Callable[[Any], Any],
    judge: Callable[[Any, Any, BaseException | None], None],
    limit: int = 5000,
) -> int:
    """How many points of the kind were made to fail, one in each run of `act(prepare())`.

    judge(state, result, error): what a run left; error is None where the fault was borne, or none was left to fail.
    Raises AssertionError for an outcome that is neither a result nor a typed error.
    """
    for n in range(1, limit):
        state, result, error = prepare(), None, None
        with _injected(kind, n) as reached:
            try:
                result = act(state)
            except Exception as raised:
                error = raised
            calls = reached()
        assert error is None or calls >= n, f"{kind}: failed without a fault: {error!r}"
        if error is not None and not _typed(error):
            raise AssertionError(f"{kind} number {n} ended in {error!r}") from error
        error = error if error is None else error.with_traceback(None)
        judge(state, result, error)
        if calls < n:
            return n - 1
    raise AssertionError(f"{kind}: more than {limit} points")


def leaks(run: Callable[[], Any]) -> tuple[int, int]:
    """Blocks of arrays and workspaces, and storages, that `run` leaves behind.

    What was there before is frozen: the collector walks over what is new only.
    """
    gc.freeze()
    before = allocator().live
    run()
    gc.collect()
    return allocator().live - before, sum(type(x) is Storage for x in gc.get_objects())
