"""The name of a routine of BLAS or LAPACK and a scalar type -> its address, which kernels of the loop IR call.

SciPy exports the routines that it is built with as C functions of pointers: the capsules in `__pyx_capi__` of
`scipy.linalg.cython_blas` and `cython_lapack`, which its documentation gives to Numba, Cython and C callers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

from ..compiled import REALS, Executable, compiled

__all__ = ["blas_kernel", "one_thread"]

_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_REAL_NAMES = {"herk": "syrk", "hetrf": "sytrf", "unmqr": "ormqr", "unm2r": "orm2r"}


@cache
def address(routine: str, scalar: str) -> int:
    """The address of a routine without its letter: ("gemm", "f64"). Real types have other names of some (syrk)."""
    letter = _LETTERS[scalar]
    if scalar in ("f32", "f64"):
        routine = _REAL_NAMES.get(routine, routine)
    name = letter + routine
    for module in ("cython_blas", "cython_lapack"):
        capsules = import_module(f"scipy.linalg.{module}").__pyx_capi__
        if name in capsules:
            return _pointer(capsules[name])
    raise KeyError(name)


def _char(letter: str) -> str:
    """A character as an argument of a call in a kernel's text."""
    return f"i8({ord(letter)})"


_CHARACTERS = {
    "LOWER": _char("L"), "UPPER": _char("U"), "RIGHT": _char("R"), "LEFT": _char("L"), "PLAIN": _char("N"),
    "NONUNIT": _char("N"), "UNIT": _char("U"), "TRANSPOSED": _char("T"), "CONVERT": _char("C"), "FORWARD": _char("F"),
    "COLUMNWISE": _char("C"),
}  # fmt: skip


def blas_kernel(
    text: str, parts: Mapping[str, str], words: Mapping[str, str], routines: Sequence[str], scalar: str, **types: Any
) -> tuple[Executable, list[int]]:
    """The kernel of a text that calls routines, for elements of a type, and the addresses that are its last arguments.

    ADDRESSES are parameters for these, ADJOINT and the words of `_CHARACTERS` arguments of the routines; for the rest
    see `compiled`.
    """
    addresses = ", ".join(f"{name}: i64" for name in routines)
    adjoint = _char("C" if scalar in REALS else "T")
    words = {**words, "ADDRESSES": addresses, "ADJOINT": adjoint, **_CHARACTERS}
    return compiled(text, parts, words, T=scalar, **types), [address(name, scalar) for name in routines]


def _pointer(capsule: object) -> int:
    api = ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    out = pointer(capsule, name(capsule))
    assert isinstance(out, int)
    return out


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread: for kernels that call it from several threads of their own.

    Of OpenBLAS, which SciPy's wheels have, by its public functions; another library keeps its threads.
    """
    functions = _thread_functions()
    before = functions[0]() if functions is not None else 1
    if functions is None or before == 1:
        yield
        return
    functions[1](1)
    try:
        yield
    finally:
        functions[1](before)


@cache
def _thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    library = ctypes.CDLL(import_module("scipy.linalg.cython_blas").__file__)
    for prefix, suffix in product(("scipy_", ""), ("", "64_")):
        get, put = (getattr(library, f"{prefix}openblas_{v}_num_threads{suffix}", None) for v in ("get", "set"))
        if get is not None and put is not None:
            get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
            return get, put
    return None
