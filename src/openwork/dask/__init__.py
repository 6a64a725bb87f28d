"""Tensors as chunks of Dask arrays: what Dask asks of a type of chunks, registered with its dispatchers.

There is nothing to call. Dask finds the sizes of Tensors by the entry point "dask.sizeof" of the installed
package, and the rest is registered when it first asks for a Tensor's token, which is how Tensors get into its
arrays; to import `openwork.dask` does it at once. Chunks are sparse and stay so. A process has one pool of
threads, whose kernels use it by turns: a task that finds it busy runs its kernel by itself, so that threads do
not multiply.
"""

from __future__ import annotations

from ..interop.dask import register

__all__ = ["register"]

register()
