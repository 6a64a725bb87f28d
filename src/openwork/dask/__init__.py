"""Tensors as chunks of Dask arrays: what Dask asks of a type of chunks, registered with its dispatchers.

There is nothing to call. Dask finds `register` by the entry point "dask.sizeof" of the installed package when it is
imported, and `import openwork.dask` does the same. Chunks are sparse and stay so. A process has one pool of threads,
whose kernels use it by turns: a task that finds it busy runs its kernel by itself, so that threads do not multiply.
"""

from __future__ import annotations

from .registration import register

__all__ = ["register"]

register()
