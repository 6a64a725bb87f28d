"""Loop IR -> machine code: LLVM IR text, object code, its cache, and the threads that run it.

    source text -> ir.text.parse -> emit.emit -> engine.to_object -> linker.link -> executable.Executable

`cache.get` does all of it once per key and keeps the result in memory and on disk; `pool.parallel` runs an
executable's ranges on several threads; `emit_device` writes LLVM IR of kernels with a grid.
"""

from .cache import compile_kernel, get
from .executable import Executable, run

__all__ = ["Executable", "compile_kernel", "get", "run"]
