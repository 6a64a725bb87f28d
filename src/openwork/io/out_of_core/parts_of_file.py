"""A path -> the elements of its tensor in parts, and what is known of them before: shape, dtype, order, number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...advice.units import Size, bytes_of
from ...classes import frozen
from ...errors import FileFormatError, UnsupportedError
from ...format.format import Format
from ...format.named import coo
from ...runtime.leading_slice import outer_dim
from ...storage.buffers import to_numpy
from ...tensor.tensor import Tensor
from .. import files
from ..containers.mapped import open as open_mapped
from ..shared.records import Array, Options, Step
from ..shared.stored_range import Stored, of_storage, positions_are_elements, ranges
from ..text.source import suffix
from .dataset_parts import is_dataset_file, opened_group
from .text_parts import open_text

__all__ = ["Part", "Source", "open_source", "parts", "source_of_stored", "source_of_tensor"]

Part = tuple[list[Array], Array]
Path_ = str | os.PathLike[str]


@frozen
class Source:
    """Elements in parts: `parts(step, progress)` gives coordinates by dimension, and values, of about `step` elements.

    format : of the tensor in the file; of text, sorted coordinates
    entries : the number of elements, at most; None where it is not known
    order : the format in whose order they come, without repetition; None where they come in any
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any
    format: Format
    entries: int | None
    order: Format | None
    parts: Callable[[int, Step | None], Iterator[Part]]
    is_trusted: bool = True
    """whether the order need not be checked"""

    def is_in_order_of(self, format: Format) -> bool:
        """Whether the elements come in the order of the format's levels."""
        if self.order is None:
            return False
        own, other = ([level.expression for level in f.levels] for f in (self.order, format))
        return own == other


def parts(t: Tensor, memory: Size = "64MiB") -> Iterator[Part]:
    """The elements of a tensor in parts: coordinates, an array for each dimension, and values, in stored order.

    t : a Tensor, such as `ow.open` gives; its buffers are in memory of the processor
    memory : the bytes that a part takes, about

    Returns
    -------
    iterator of pairs (coordinates, values)

    Cost: O(nse) in all, and O(log of positions) for each part; nothing of the tensor is kept.
    See also: write_parts, open.

    Examples
    --------
    >>> from openwork.io import parts, write_parts
    >>> t = ow.asarray(np.eye(3), format="csr")
    >>> [(rows.tolist(), columns.tolist(), values.tolist()) for (rows, columns), values in parts(t)]
    [([0, 1, 2], [0, 1, 2], [1.0, 1.0, 1.0])]
    >>> roots = ((c, np.sqrt(v)) for c, v in parts(t))
    >>> write_parts("roots.ow", roots, t.shape, format="csr", ordered=True)
    """
    if not isinstance(t, Tensor):
        raise UnsupportedError(f"parts: a {type(t).__name__}\n  expected: a Tensor; help: ow.asarray, or filled(value)")
    if t._storage.library != "numpy":
        t = Tensor._from_storage(t._storage.mapped(to_numpy))
    item = 8 * t.ndim + t.dtype.itemsize
    step = max(1, bytes_of(memory, "parts", "memory") // (2 * item))
    return source_of_tensor(t if t.ndim else t.reshape(1)).parts(step, None)


def open_source(path: Path_, options: Options) -> Source | None:
    """The elements of a file; None where it has to be read as a whole."""
    kind = suffix(path)
    found: Any = None
    if is_dataset_file(path):
        return _dataset_source(path, options)
    if kind in (".ow", ".npz"):
        files.check_options(path, options)
        try:
            found = open_mapped(path, verify=True)
        except UnsupportedError:
            return None
    else:
        text = open_text(path, options, files.beginning)
        if text is not None:
            files.check_options(path, options)

            def text_parts(step: int, progress: Step | None) -> Iterator[Part]:
                return ((list(p.indices), p.values) for p in text.parts(options, progress))

            return Source(text.shape, text.dtype, 0, coo(len(text.shape)), None, None, text_parts)
    return source_of_tensor(found) if isinstance(found, Tensor) and found.ndim else None


def _dataset_source(path: Path_, options: Options) -> Source | None:
    """The elements of a binsparse file, which is opened anew when they are asked for."""
    with opened_group(path, options) as stored:
        if stored is None or not positions_are_elements(stored.format):
            return None
        known = source_of_stored(stored)

    def dataset_parts(step: int, progress: Step | None) -> Iterator[Part]:
        with opened_group(path, options) as stored:
            assert stored is not None
            for columns, values in source_of_stored(stored).parts(step, progress):
                for c, n in zip(columns, known.shape, strict=True):
                    if c.size and not 0 <= int(c.min()) <= int(c.max()) < n:
                        raise FileFormatError(f"{os.fspath(path)}: coordinates outside of the shape {known.shape}")
                yield columns, values

    return replace(known, parts=dataset_parts, is_trusted=False)


def source_of_tensor(t: Tensor) -> Source:
    """The elements of a tensor over NumPy's arrays."""
    stored = of_storage(t._storage)
    if positions_are_elements(t.format):
        return source_of_stored(stored)
    d = outer_dim(t.format)

    def block_parts(step: int, progress: Step | None) -> Iterator[Part]:
        n = 1 if d is None else t.shape[d]
        rows = n if d is None else max(1, n * step // max(stored.size, 1))
        for first in range(0, n, rows):
            block = t if d is None else t[(*[slice(None)] * d, slice(first, first + rows))]
            out = block.asformat(coo(t.ndim))._storage
            columns = [c for c in out.crd if c is not None]
            if d is not None:
                columns[d] = columns[d].astype(np.int64) + first
            yield columns, out.values
            if progress is not None:
                progress(min(first + rows, n), n)

    return Source(t.shape, stored.dtype, stored.fill_value, t.format, stored.size, None, block_parts)


def source_of_stored(stored: Stored) -> Source:
    """The elements of level buffers, each position of which is an element."""
    format = stored.format
    ordered = format.is_ordered and format.is_unique

    def range_parts(step: int, progress: Step | None) -> Iterator[Part]:
        done = 0
        for columns, values in ranges(stored, step):
            yield columns, values
            done = min(done + step, stored.size)
            if progress is not None:
                progress(done, stored.size)

    return Source(
        stored.shape, stored.dtype, stored.fill_value, format, stored.size, format if ordered else None, range_parts
    )
