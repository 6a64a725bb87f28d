"""Coordinates of elements that are summed up, given once -> a plan that turns their values into a sparse tensor.

Assembly is a product: values of elements -> S @ v, where S has a row for each value that the tensor stores and a one
for each element that is summed there. S is made once, from a stable sort of the coordinates, and iso, so that a call
reads the values and their order and nothing else. Its gradient, S.T @ g, is a gather. NumPy's values are read as
they come and added up where they belong, by as many blocks of places as there are threads.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

import openwork as ow

from .. import DTypeError, Format, InvariantError, ReadOnlyError, ShapeError, Tensor
from ..integers import extents, integers
from ..storage.buffers import is_torch, numpy_dtype, scalar_of
from ..storage.equal_coordinates import same_structure
from .assembly_plan import AssemblyPlan, Blocks, assembly_plan, expanded_coordinates, row_numbers, scalar_places

__all__ = ["Assembler", "assembler"]

Array = np.ndarray[Any, Any]

_HALVES = ("full", "lower", "upper")
_DEFAULTS = {0: "coo", 1: "coo", 2: "csr"}
BY_BLOCKS = ("float64", "float32", "complex128", "complex64", "int64", "int32")
"""Types of values that are summed by blocks; others by a product."""


def assembler(
    shape: Sequence[int], *coordinates: Any, format: str | Format | None = None, blocks: tuple[int, int] | None = None,
    symmetric: bool = False, half: str = "full", ignore_negative: bool = False,
) -> Assembler:  # fmt: skip
    """A plan that sums values at coordinates given once into a sparse tensor, again and again.

    Parameters
    ----------
    shape : extents of the tensor, of any rank
    coordinates : for each dimension an array of integers of shape (elements,) or (elements, k), of rows, columns and so
        on. Values then have shape (elements,), with an axis of k for each array of two dimensions: rows and columns of
        shape (elements, 3) take element matrices, values of shape (elements, 3, 3)
    format : of the tensor; "csr" for matrices, "bsr(r, c)" with `blocks`, "csf" for more dimensions
    blocks : (r, c): coordinates number blocks of r x c elements, and values have two more axes, (..., r, c)
    symmetric : each element off the diagonal stands for its mirror image too: coordinates and values are one half
    half : "lower" or "upper": elements of the other half are left out
    ignore_negative : values of which a coordinate is negative are left out, as PETSc does; else they are an error

    Returns
    -------
    Assembler: `K = asm(values)`, `asm(values, out=K)`, over NumPy's arrays or torch's tensors, recorded ones too

    Guarantees: values of one place are summed in the order in which they come, with the same bits on any number of
    threads. All tensors share one structure, which stores each place that is named, whatever its value.
    Raises ShapeError for coordinates outside of the shape and shapes that do not fit together, DTypeError where
    coordinates are no integers.

    Cost: a sort of the coordinates; each call then reads the values once.
    Source: MatSetValuesCOO of PETSc.
    See also: assemble, sparse_coo_tensor, linalg.factorized.

    Examples
    --------
    >>> springs = np.array([[0, 1], [1, 2]])  # two elements of two nodes
    >>> asm = ow.assembler((3, 3), springs, springs)
    >>> asm(np.array([[[2.0, -2], [-2, 2]], [[5, -5], [-5, 5]]])).to_numpy()
    array([[ 2., -2.,  0.],
           [-2.,  7., -5.],
           [ 0., -5.,  5.]])
    >>> asm.without([0]).shape
    (2, 2)
    """
    sizes = extents(shape, "assembler")
    if half not in _HALVES:
        raise ValueError(f"assembler: half must be 'full', 'lower' or 'upper'; got {half!r}")
    square = len(sizes) == 2 and sizes[0] == sizes[1]
    if (symmetric or half != "full") and not square:
        raise ShapeError(f"assembler: halves are those of square matrices; got shape {sizes}")
    inner = () if blocks is None else integers(blocks, "assembler", "blocks", boolean=False)
    fits = len(sizes) == len(inner) == 2 and min(inner) > 0 and not (symmetric and inner[0] != inner[1])
    if blocks is not None and not fits:
        raise ShapeError(f"assembler: blocks {blocks} do not fit shape {sizes}\n  expected: two extents, of a matrix")
    limits = sizes if blocks is None else tuple(-(-n // b) for n, b in zip(sizes, inner, strict=True))
    places, lead = expanded_coordinates(limits, coordinates, ignore_negative)
    off = places[0] != places[1] if symmetric else None
    negative = np.logical_or.reduce([p < 0 for p in places]) if ignore_negative else None
    if blocks is not None:
        places = scalar_places(places, inner)
        negative = None if negative is None else np.repeat(negative, inner[0] * inner[1])
        off = None if off is None else np.repeat(off, inner[0] * inner[1])
    source = np.arange(len(places[0]))
    if negative is not None and negative.any():
        places, source = [p[~negative] for p in places], source[~negative]
        off = None if off is None else off[~negative]
    if off is not None:
        i, j = places
        places = [np.concatenate([i, j[off]]), np.concatenate([j, i[off]])]
        source = np.concatenate([source, source[off]])
        order = np.argsort(source, kind="stable")  # sums in the order of the values
        places, source = [p[order] for p in places], source[order]
    inside = np.logical_and.reduce([p < n for p, n in zip(places, sizes, strict=True)])  # edge blocks reach beyond
    if half != "full":
        inside &= places[0] >= places[1] if half == "lower" else places[0] <= places[1]
    if not inside.all():
        places, source = [p[inside] for p in places], source[inside]
    if format is None:
        format = _DEFAULTS.get(len(sizes), "csf") if blocks is None else f"bsr({inner[0]}, {inner[1]})"
    name = format if isinstance(format, ow.Format) else ow.format(str(format), ndim=len(sizes))
    return Assembler(sizes, name, places, source, lead + inner, np.empty(0))


class Assembler:
    """Sums values at coordinates that are known: made by `assembler`, pickled with its coordinates.

    shape, format   of the tensors
    values_shape    of the values that a call takes
    nse             elements that the tensors store
    pattern         a tensor of booleans of the structure of the results

    Examples
    --------
    >>> asm = ow.assembler((2, 2), [0, 1, 0], [0, 1, 0])
    >>> K = asm([1.0, 2.0, 3.0])
    >>> asm([2.0, 4.0, 6.0], out=K).to_numpy(), asm.dirichlet([0])([1.0, 2.0, 3.0]).values
    (array([[8., 0.],
           [0., 4.]]), array([1., 2.]))
    """

    def __init__(
        self, shape: tuple[int, ...], format: str | Format | None, places: list[Array], source: Array,
        values_shape: tuple[int, ...], constants: Array,
    ) -> None:  # fmt: skip
        """Coordinates by dimension, and the number of the value that stands there; -1 - k is constant k."""
        self.shape = shape
        self.format = format
        self.values_shape = values_shape
        self._state = places, source, constants
        self._maps: dict[Any, list[Tensor]] = {}
        self._blocks: dict[int, Blocks] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """What it was made of; the plan is made again when first used."""
        return Assembler, (self.shape, self.format, *self._state[:2], self.values_shape, self._state[2])

    def __repr__(self) -> str:
        """One line: values in, elements out."""
        return f"<assembler: values {self.values_shape} -> {self.nse} elements of {self.shape}, {self.format}>"

    @property
    def nse(self) -> int:
        """Elements that the tensors store, explicit zeros included."""
        return self.pattern.nse

    @property
    def pattern(self) -> Tensor:
        """A tensor of booleans of the structure of the results: True at each place."""
        return self._plan.pattern

    @cached_property
    def _plan(self) -> AssemblyPlan:
        return assembly_plan(self.shape, self.format, *self._state)

    def __call__(self, values: Any, *, out: Tensor | None = None, add: bool = False) -> Tensor:
        """The tensor whose elements are the sums of the values at its places.

        Parameters
        ----------
        values : shape `values_shape`, or flat; an array, a torch tensor, recorded or not
        out : a tensor that this assembler made, of the dtype and the library of the values: its values are written over
        add : add to the values of `out` instead

        Returns
        -------
        Tensor of `shape` and `format` of the dtype of the values; `out` where given

        Raises ShapeError for values of another shape, InvariantError for an `out` of another structure, ValueError for
        `add` without `out`.
        """
        if add and out is None:
            raise ValueError("assembler: add=True adds to the values of out\n  help: out=K")
        data = values.to_dense() if isinstance(values, Tensor) else values
        data = data if is_torch(data) else np.asarray(data)
        if tuple(data.shape) not in (self.values_shape, (math.prod(self.values_shape),)):
            raise ShapeError(f"assembler: expected values of shape {self.values_shape}; got {tuple(data.shape)}")
        if out is not None:
            self._check_structure(out, "out")
        places, numbers = self._plan.constants
        target = None if out is None or add or len(places) else out.values
        sums = self._sums(data.reshape(-1), target)
        if len(places) and not add:
            sums = _put(sums, places, numbers)
        if out is None:
            return ow.with_values(self._structure_like(sums), sums, fill_value=0)
        if sums is not target:
            _write(out.values, sums, add)
        return out

    def gather(self, K: Any) -> Any:
        """For each of the values the element it was added to: the transpose of assembly, which gradients go back by.

        Parameters
        ----------
        K : a tensor that this assembler made, or its `values`, a gradient say

        Returns
        -------
        array, shape `values_shape`, in the library of `K`; 0 for values that stand nowhere
        """
        if isinstance(K, Tensor):
            self._check_structure(K, "the operand of gather")
        data = K.values if isinstance(K, Tensor) else K if is_torch(K) else np.asarray(K)
        size = len(self._plan.pattern.values)
        if tuple(data.shape) != (size,):
            raise ShapeError(f"gather: expected {size} values, as `values` of the tensor has; got {tuple(data.shape)}")
        return self._product(data, True).reshape(self.values_shape)

    def without(self, dofs: Any, dim: int | None = None) -> Assembler:
        """The assembler that leaves out rows and columns, and numbers the others anew; it takes the same values.

        Parameters
        ----------
        dofs : numbers of rows, or a mask of booleans
        dim : the dimension, 0 for rows alone; None for all, which then have one extent

        Returns
        -------
        Assembler of a smaller shape: asm.without(d)(v) is asm(v) without these rows and columns
        """
        dims = self._dims(dim, "without")
        gone: Any = row_numbers(dofs, self.shape[dims[0]], "without") if dims else []
        return self._renumbered(np.delete(np.arange(self.shape[dims[0]]), gone), dims) if dims else self

    def only(self, dofs: Any, dim: int | None = None) -> Assembler:
        """The assembler of these rows and columns alone, in the order given; it takes the same values.

        With `without` it gives what boundary values u move to the right side:
        `asm.without(d, 0).only(d, 1)(values) @ u`. Parameters are those of `without`.
        """
        dims = self._dims(dim, "only")
        return self._renumbered(row_numbers(dofs, self.shape[dims[0]], "only"), dims) if dims else self

    def dirichlet(self, dofs: Any, diagonal: float = 1.0, *, columns: bool = False) -> Assembler:
        """The assembler whose rows `dofs` are those of the identity times `diagonal`; with `columns` columns too.

        Parameters
        ----------
        dofs : numbers of rows of a square matrix, or a mask of booleans
        diagonal : what stands on their diagonal
        columns : whether their columns are zero too, which keeps a matrix symmetric

        Returns
        -------
        Assembler of the same shape, which takes the same values; those of these rows have no gradients
        """
        if len(self.shape) != 2 or self.shape[0] != self.shape[1]:
            raise ShapeError(f"dirichlet: expected a square matrix; got shape {self.shape}\n  help: see without()")
        numbers = np.unique(row_numbers(dofs, self.shape[0], "dirichlet"))
        number = np.asarray(diagonal)
        if number.shape or number.dtype.kind not in "biufc":
            raise DTypeError(f"dirichlet: diagonal is one number; got: {diagonal!r}")
        places, source, constants = self._state
        fixed = np.zeros(self.shape[0], bool)
        fixed[numbers] = True
        kept = ~(fixed[places[0]] | fixed[places[1]]) if columns else ~fixed[places[0]]
        new = np.full(len(numbers), -1 - len(constants))
        return Assembler(
            self.shape, self.format, [np.concatenate([p[kept], numbers]) for p in places],
            np.concatenate([source[kept], new]), self.values_shape, np.append(constants, diagonal),
        )  # fmt: skip

    def _dims(self, dim: int | None, name: str) -> tuple[int, ...]:
        """The dimensions that are meant, which have one extent."""
        dims = tuple(range(len(self.shape))) if dim is None else (operator.index(dim),)
        if any(not -len(self.shape) <= d < len(self.shape) for d in dims):
            raise ShapeError(f"{name}: no dimension {dim} of shape {self.shape}")
        if len({self.shape[d] for d in dims}) > 1:
            raise ShapeError(f"{name}: extents of shape {self.shape} differ\n  help: one dimension at a time, dim=0")
        return tuple(d % len(self.shape) for d in dims)

    def _renumbered(self, kept: Array, dims: tuple[int, ...]) -> Assembler:
        places, source, constants = self._state
        number = np.full(self.shape[dims[0]], -1)
        number[kept] = np.arange(len(kept))
        if np.count_nonzero(number >= 0) != len(kept):
            raise ShapeError("only: a row is named twice\n  help: numbers that differ")
        moved = [number[p] if d in dims else p for d, p in enumerate(places)]
        inside = np.logical_and.reduce([p >= 0 for p in moved])
        shape = tuple(len(kept) if d in dims else n for d, n in enumerate(self.shape))
        moved = [p[inside] for p in moved]
        return Assembler(shape, self.format, moved, source[inside], self.values_shape, constants)

    def _sums(self, data: Any, target: Any) -> Any:
        """S @ data, into `target` where that can be: NumPy's by blocks of sums, torch's, which it may record, by S."""
        if is_torch(data) or str(data.dtype) not in BY_BLOCKS:
            return self._product(data, False)
        threads = ow.get_num_threads()
        blocks = self._blocks.get(threads)
        if blocks is None:
            blocks = self._blocks[threads] = self._plan.blocks(math.prod(self.values_shape), threads)
        fits = isinstance(target, np.ndarray) and target.dtype == data.dtype and target.flags.carray
        if not fits or np.may_share_memory(target, data):
            target = np.empty(blocks.total, data.dtype)
        real = np.ascontiguousarray(data).view(data.real.dtype)
        blocks.sums(real, target.view(real.dtype), 1 + (data.dtype.kind == "c"))
        return target

    def _product(self, data: Any, transposed: bool) -> Any:
        """S @ data, or S.T @ data; complex numbers go as pairs of real ones, so that inf stays inf."""
        pairs = data.is_complex() if is_torch(data) else data.dtype.kind == "c"
        if pairs:
            data = _real_pairs(data)
        key = (is_torch(data), str(data.dtype), str(getattr(data, "device", "")), transposed)
        stages = self._maps.get(key)
        if stages is None:
            factors = self._plan.stages(math.prod(self.values_shape))
            stages = self._maps[key] = [_stage(s, data, transposed) for s in factors]
        for s in reversed(stages) if transposed else stages:
            data = s @ data
        return _from_pairs(data) if pairs else data

    def _structure_like(self, sums: Any) -> Tensor:
        """The pattern over the library and device of the sums."""
        if not is_torch(sums):
            return self._plan.pattern
        key = str(sums.device)
        found = self._maps.get(key)
        if found is None:
            found = self._maps[key] = [ow.asarray(self._plan.pattern, like="torch").to(sums.device)]
        return found[0]

    def _check_structure(self, K: Tensor, what: str) -> None:
        """Raise InvariantError unless the tensor has the structure of this assembler's."""
        if not isinstance(K, Tensor):
            raise DTypeError(f"assembler: {what} is a {type(K).__name__}\n  expected: a Tensor that it made")
        if not same_structure(K._storage, self._structure_like(K.values)._storage):
            raise InvariantError(
                f"assembler: {what} was not made by this assembler\n  help: out=asm(values), made once"
            )


def _stage(s: Tensor, data: Any, transposed: bool) -> Tensor:
    """A factor, or its transpose by rows, with ones of the dtype and the library of the data."""
    if transposed:
        s = s.T.asformat("csr")
    if not is_torch(data):
        return ow.iso(s, 1, dtype=data.dtype)
    over = ow.asarray(s, like="torch").to(data.device)
    return ow.iso(over, 1, dtype=data.dtype)


def _put(sums: Any, places: Array, numbers: Array) -> Any:
    """The sums with constants at some places. Raises DTypeError for one that their dtype does not hold."""
    dtype = np.dtype(numpy_dtype(scalar_of(sums)))
    if (dtype.kind in "iub" and (numbers != numbers.real.round()).any()) or (dtype.kind != "c" and numbers.imag.any()):
        raise DTypeError(f"dirichlet: a diagonal of {numbers.max()} among values of {dtype}\n  help: values of floats")
    numbers = numbers if dtype.kind == "c" else numbers.real
    if not is_torch(sums):
        sums[places] = numbers
        return sums
    at = ow.asarray(places, like="torch").values.to(sums.device)
    return sums.index_put((at,), ow.asarray(numbers, like="torch").values.to(sums.device, sums.dtype))


def _write(target: Any, sums: Any, add: bool) -> None:
    """Write or add values to those of a tensor. Raises where these are of another kind, read-only or recorded."""
    if is_torch(target) != is_torch(sums) or target.dtype != sums.dtype:
        raise DTypeError(
            f"assembler: out holds {target.dtype}, the values are {sums.dtype}\n  help: give out of their dtype and"
            " library, or none"
        )
    if not is_torch(target):
        target[...] = target + sums if add else sums
        return
    if sums.requires_grad or target.requires_grad:
        raise ReadOnlyError("assembler: out= has no gradients\n  help: leave it out, or give values.detach()")
    target.add_(sums) if add else target.copy_(sums)


def _real_pairs(data: Any) -> Any:
    if not is_torch(data):
        return np.ascontiguousarray(data).view(data.real.dtype).reshape(-1, 2)
    import torch

    return torch.view_as_real(data.resolve_conj())


def _from_pairs(data: Any) -> Any:
    if not is_torch(data):
        return np.ascontiguousarray(data).view(np.result_type(data.dtype, np.complex64)).reshape(-1)
    import torch

    return torch.view_as_complex(data.contiguous())
