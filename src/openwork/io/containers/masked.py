"""Masked tensors -> `.npz` files of their one Tensor, marked as masked, and back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FileFormatError, UnsupportedError
from ...masked.tensor import MaskedTensor, bits_of, wrap
from ...ops import mask_formats as forms
from ...storage.buffers import to_numpy
from ...tensor.one_library import in_library
from ..shared.tensors import to_tensor
from . import npz

if TYPE_CHECKING:
    from ..shared.records import Buffers, Step

__all__ = ["masked_in_library", "read_masked", "write_masked"]


def write_masked(
    path: str | os.PathLike[str], m: MaskedTensor, kind: str, compress: bool, progress: Step | None
) -> None:
    """`ow.write` of a masked tensor; what stands in the places of missing elements is 0 in the file.

    Raises UnsupportedError for another kind of file than .npz.
    """
    if kind != ".npz":
        raise UnsupportedError(
            f"write: {os.fspath(path)}: masked tensors are written to .npz; got {kind!r}"
            "\n  help: filled(value) is a Tensor, which any kind of file takes"
        )
    s = m.detach().specified._storage
    bits = bits_of(s)
    if bits is not None:
        values = to_numpy(s.values)
        s = s.mapped(to_numpy).with_values(np.where(to_numpy(bits), values, values.dtype.type(0)))
    mark = {"openwork_masked": np.array("number" if m._scalar else "tensor")}
    npz.write(path, {**npz.parts_of(s, always_ours=True), **mark}, compress, progress)


def read_masked(path: str | os.PathLike[str], record: Buffers, format: Any) -> MaskedTensor:
    """The masked tensor of a file. Raises FileFormatError for a format that cannot leave any element out."""
    t = to_tensor(path, record, None, False)
    number = record.masked == "number"
    if forms.fitting(t.format) != t.format and not forms.loose(t.format):
        raise FileFormatError(f"{os.fspath(path)}: a masked tensor in format {t.format}, which leaves no element out")
    if number and (t.format != forms.strided(0) or t.shape != (1,)):
        raise FileFormatError(f"{os.fspath(path)}: a masked number of shape {t.shape}, in format {t.format}")
    m = wrap(t, number)
    return m if format is None else m.asformat(format)


def masked_in_library(m: MaskedTensor, like: Any) -> MaskedTensor:
    """The masked tensor over buffers of a library, see `tensor.one_library.in_library`."""
    return wrap(in_library(m.specified, like, "read"), m._scalar)
