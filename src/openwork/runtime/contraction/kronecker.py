"""Two matrices -> their Kronecker product as CSR, row by row in order, without a sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.kronecker import kronecker_kernel
from ...format import format as parse
from ...storage.buffers import as_array, cast, empty, is_unrecorded, length, scalar_of, to_numpy
from ...storage.storage import Storage
from ..conversion.conversion_kernels import call
from ..conversion.convert import convert
from ..conversion.ranges import Ranges, of_numbers
from ..promote import promote

__all__ = ["kronecker"]

CSR = parse("csr")
_COMPUTED = frozenset(("f32", "f64", "c64", "c128", "i32", "i64", "u32", "u64"))


def kronecker(x: Storage, y: Storage) -> Storage | None:
    """The product of two sparse matrices of fill value 0; None for gradients, other ranks, formats without stored
    coordinates and small types."""
    if len(x.shape) != 2 or len(y.shape) != 2 or x.format.is_dense or y.format.is_dense:
        return None
    scalar = promote((x.scalar, y.scalar), x.library)
    if scalar not in _COMPUTED or x.library != y.library or not x.device == y.device == "cpu":
        return None
    if x.library == "torch" and not (is_unrecorded(x.values) and is_unrecorded(y.values)):
        return None
    a, b = (convert(s, CSR) for s in (x, y))
    shape = x.shape[0] * y.shape[0], x.shape[1] * y.shape[1]
    count = length(a.values) * length(b.values)
    index = "i32" if max(*shape, count) < 2**31 - 1 and x.library == "numpy" else "i64"
    sizes = [np.diff(to_numpy(s.pos[1])).astype(np.int64) for s in (a, b)]
    ends = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.multiply.outer(*sizes).ravel(), out=ends[1:])
    pos = cast(as_array(ends, like=x.values), index)
    crd, values = empty(count, index, x.values), empty(count, scalar, x.values)
    arguments: dict[str, Any] = {
        "rows": y.shape[0],
        "columns": y.shape[1],
        "pos": pos,
        "crd": crd,
        "vals": values,
    }
    for name, s in (("a", a), ("b", b)):
        arguments |= {f"{name}_pos": s.pos[1], f"{name}_crd": s.crd[1], f"{name}_vals": cast(s.values, scalar)}
    types = scalar_of(a.crd[1]), scalar_of(b.crd[1]), index, scalar
    if any(scalar_of(s.pos[1]) != t for s, t in zip((a, b), types, strict=False)):
        return None
    ranges = of_numbers(x.shape[0], count) or Ranges((0, x.shape[0]))
    if count:
        call(f"kronecker {' '.join(types)}", lambda: kronecker_kernel(*types), arguments, ranges)
    return Storage(shape, CSR, scalar, 0, (None, pos), (None, crd), values)
