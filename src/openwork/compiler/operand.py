"""Types of operands, and references from kernel parameters to their parts; never extents or addresses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..classes import frozen
from ..errors import CompilerBug
from ..format.format import Format
from ..ir.loop import Kernel
from ..ir.rewrite import with_one_element

__all__ = ["Operand", "ParamRef", "parse_ref", "reading_one"]


@frozen
class Operand:
    """An operand of a kernel.

    format is None for a strided array: element (i, j) lies at i * stride0 + j * stride1, and the stride of
    dimension `unit` is known to be one; a scalar has rank 0 and unit 0.

    `ragged` says that some level coordinates fall outside the shape, `iso` that all values are the first one, which is
    all that the kernel is given of them.
    """

    scalar: str
    ndim: int
    format: Format | None = None
    pos: tuple[str | None, ...] = ()
    crd: tuple[str | None, ...] = ()
    ragged: bool = False
    unit: int | None = None
    iso: bool = False

    def __repr__(self) -> str:
        """The fields, the format by its identity: an operand's text is part of the keys of its kernels."""
        layout = None if self.format is None else self.format.identity
        kind = f"{self.scalar}{' iso' * self.iso}"
        return f"Operand({kind}, {self.ndim}, {layout}, {self.pos}, {self.crd}, {self.ragged}, {self.unit})"


def reading_one(kernel: Kernel, operands: Mapping[str, Operand]) -> Kernel:
    """A kernel over these operands, by name, reading of the values of those that are iso the first, once."""
    return with_one_element(kernel, {ParamRef("vals", name).name for name, o in operands.items() if o.iso})


class ParamRef(NamedTuple):
    """The part of an operand that a kernel parameter stands for.

    kind is one of
    "pos", "crd": buffer of `level` of `tensor`;  "vals": its values;  "data": the strided array;
    "packed": the coordinates of `level`, see `packed_coordinates`;
    "size", "lower": extent and lowest coordinate of `level`;  "last": its last position;
    "slice": elements per batch of the buffer `part` ("pos", "crd" or "vals") of `level`;
    "extent": the extent of the index variable `tensor`;  "stride": of dimension `level`.
    """

    kind: str
    tensor: str
    level: int = 0
    part: str = ""

    @property
    def name(self) -> str:
        """The parameter's name in the kernel."""
        match self.kind:
            case "vals":
                return f"{self.tensor}_vals"
            case "data":
                return self.tensor
            case "extent":
                return f"n_{self.tensor}"
            case "slice":
                return f"{self.tensor}_{self.part}{self.level}_slice"
        return f"{self.tensor}_{self.kind}{self.level}"


_SLICE = re.compile(r"(.+)_(pos|crd|vals)(\d+)_slice")
_LEVEL = re.compile(r"(.+)_(pos|crd|packed|size|lower|stride|last)(\d+)")


def parse_ref(name: str, tensors: Collection[str], strided: Collection[str]) -> ParamRef:
    """The reference that a parameter's name stands for: the inverse of `ParamRef.name`.

    tensors: all operand names; strided: those that are arrays, so that a plain name is their data.
    """
    if name in strided:
        return ParamRef("data", name)
    if name.endswith("_vals") and name[:-5] in tensors:
        return ParamRef("vals", name[:-5])
    if (m := _SLICE.fullmatch(name)) and m[1] in tensors:
        return ParamRef("slice", m[1], int(m[3]), m[2])
    if (m := _LEVEL.fullmatch(name)) and m[1] in tensors:
        return ParamRef(m[2], m[1], int(m[3]))
    if name.startswith("n_"):
        return ParamRef("extent", name[2:])
    raise CompilerBug(f"parameter {name!r} stands for nothing; operands: {', '.join(tensors)}")
