"""Tensors as chunks of Dask arrays, and sparse matrices and tensors in blocks that stay on Dask's workers.

For chunks there is nothing to call. Dask finds the sizes of Tensors by the entry point "dask.sizeof" of the installed
package, `x.to_backend("openwork", format="csr")` by "dask.array.backends"; the rest is registered when it first asks
for a Tensor's token, which is how Tensors get into its arrays; to import `openwork.dask` does it at once. Tensors are
sent as pickles, their buffers out of band.

`BlockMatrix` is a linear operator over blocks on workers, `BlockTensor` the same for more dimensions, `partition` says
how a tensor is cut and what products send. They need `distributed`, which is imported when they are first used.
`pagerank` and `cg` take arrays of Dask, and keep vectors on the workers too. `from_file` and `to_file` are arrays of
Dask over files in blocks of rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import needs_dask as _needs_dask  # noqa: F401
from ..interop.dask import register
from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from .backend import register_backend as _register_backend
from .partition import Partition, partition
from .vectors import cg, pagerank

if TYPE_CHECKING:
    from .files import from_file, to_file
    from .kept import BlockTensor
    from .matrix import BlockMatrix

__all__ = ["BlockMatrix", "BlockTensor", "Partition", "cg", "from_file", "pagerank", "partition", "register", "to_file"]

_HOMES = {"BlockMatrix": "matrix", "BlockTensor": "kept", "from_file": "files", "to_file": "files"}
_missing = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        return _missing(name)
    module = import_module(f"{__name__}.{_HOMES[name]}")
    _document_all(vars(module), __all__)
    return getattr(module, name)


register()
_register_backend()
_document_all(globals(), __all__)
