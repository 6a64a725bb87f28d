"""The interpreter of the device form as a device: every item of every kernel is run, races and bounds are checked.

It needs no runtime, and takes a millisecond where a device takes a microsecond: for tests, and to look at kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.grid_interpret import run_grid
from ..ir.loop import Grid, Kernel
from ..storage.buffers import numpy_dtype
from .adapter import Adapter, Argument, Memory

__all__ = ["Interpreter"]


class Interpreter(Adapter):
    """Memory is NumPy's, groups are small, and kernels are run as they are."""

    name = "interpreter"
    grid = Grid(8, 4)

    def allocate(self, n: int, scalar: str) -> Any:
        return np.zeros(n, numpy_dtype(scalar))

    def upload(self, handle: Any, array: np.ndarray[Any, Any]) -> None:
        handle[: len(array)] = array

    def download(self, handle: Any, scalar: str, first: int, n: int) -> np.ndarray[Any, Any]:
        return np.array(handle[first : first + n])

    def compile(self, kernel: Kernel) -> Any:
        return None

    def launch(self, kernel: Kernel, code: Any, arguments: list[Argument], groups: int) -> None:
        values = [a.handle if isinstance(a, Memory) else a for a in arguments]
        run_grid(kernel, dict(zip([p.name for p in kernel.params], values, strict=True)), groups)
