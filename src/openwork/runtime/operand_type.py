"""A storage -> its type as an operand: what decides a kernel, made once for a structure and a dtype of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tuning
from ..classes import frozen
from ..codegen.plan_cache import PlanCache
from ..compiler.operand import Operand
from ..storage.buffers import scalar_of, to_numpy
from ..storage.iso import ONE_PLACE
from ..storage.storage import Storage
from .packed_coordinates import packs

__all__ = ["OperandType", "operand_of", "operand_type"]

LONG_FIBRE, MEDIUM_FIBRE = tuning.LONG_FIBRE, tuning.MEDIUM_FIBRE
STRIDE, COSTLY = tuning.FIBRES_SAMPLED, tuning.LANES_COST
SHORT_FIBRE, SHORT_WORK = tuning.SHORT_FIBRE, tuning.SHORT_WORK
WINDOW, WINDOWS, ALIKE = tuning.FIBRE_WINDOW, tuning.FIBRE_WINDOWS, tuning.FIBRES_ALIKE


@frozen
class Fibres:
    """The lengths of a structure's innermost fibres, as far as a schedule asks.

    long, medium : whether they have so many elements: on average, or most are in such ones and others few
    short : whether they are short and of many lengths, so that branches at their ends are mispredicted
    """

    long: bool = False
    medium: bool = False
    short: bool = False


@frozen(eq=False)
class OperandType:
    """The type of a sparse operand. Equal types are one object.

    operand : format, scalar types and whether the shape is ragged, as the compiler sees them
    packed : whether an n:m level's coordinates are there as packed words too
    """

    operand: Operand
    fibres: Fibres
    packed: bool


_operands: PlanCache[int, Operand] = PlanCache("operands", 1 << 14)
_types: PlanCache[Any, OperandType] = PlanCache("operand types", 1 << 14)


def operand_of(s: Storage) -> Operand:
    """The operand that a storage is to the compiler, whatever the lengths of its fibres."""
    operand = _operands.get(s.signature)
    if operand is None:
        pos, crd = (tuple(None if b is None else scalar_of(b) for b in buffers) for buffers in (s.pos, s.crd))
        operand = Operand(s.scalar, len(s.shape), s.format, pos, crd, s.format.ragged(s.shape), iso=s.is_iso)
        _operands.keep(s.signature, operand)
    return operand


def operand_type(s: Storage) -> OperandType:
    """The type of a storage as an operand, kept with its structure."""
    structure, values = s._structure or s.structure, s.values
    dtype = values.dtype
    if (values.strides if type(values) is np.ndarray else values.stride()) == ONE_PLACE:
        dtype = (dtype,)
    known: OperandType | None = structure.types.get(dtype)
    if known is None:
        fibres, packed = _fibres(s), s.format.is_structured and packs(s)
        key = (s.signature, fibres.long, fibres.medium, fibres.short, packed)
        known = _types.get(key) or _types.keep(key, OperandType(operand_of(s), fibres, packed))
        structure.types[dtype] = known
    return known


_ORDINARY, _MEDIUM, _LONG = Fibres(), Fibres(medium=True), Fibres(long=True)


def _fibres(s: Storage) -> Fibres:
    """What a schedule asks of the innermost fibres."""
    positions = (s._structure or s.structure).positions
    if not positions:
        return _ORDINARY
    in_rows, n = len(positions) > 1 and not s.format.ends_in_singleton, positions[-1]
    above = max(1, positions[-2] if in_rows else s.shape[0] if s.shape else 1)
    if n >= LONG_FIBRE * above:
        return _LONG
    if n < SHORT_WORK:  # a kernel takes less time than to look at fibres
        return _MEDIUM if n >= MEDIUM_FIBRE * above else _ORDINARY
    counts = _sampled_lengths(s, above)
    medium = n >= MEDIUM_FIBRE * above or _are_long(counts, MEDIUM_FIBRE)
    return Fibres(_are_long(counts, LONG_FIBRE), medium, _are_short(s))


def _sampled_lengths(s: Storage, above: int) -> np.ndarray[Any, Any] | None:
    """The elements of every `STRIDE` fibres together; None where no pos says it, or fibres are few."""
    pos = s.pos[-1]
    if pos is None or s.batches != 1 or not s.format.levels[-1].format.is_compressed or above < STRIDE:
        return None
    ends = to_numpy(pos)[::STRIDE]
    lengths: np.ndarray[Any, Any] = ends[1:] - ends[:-1]
    return lengths


def _are_long(counts: np.ndarray[Any, Any] | None, least: int) -> bool:
    """Whether most elements are in fibres of at least so many, and the other fibres are few."""
    if counts is None:
        return False
    long = counts >= least * STRIDE
    number = np.count_nonzero(long)
    return bool(number and counts[long].sum() > COSTLY * STRIDE * (len(counts) - number))


def _are_short(s: Storage) -> bool:
    if len(s.positions) < 2 or s.positions[-1] < SHORT_WORK or s.batches != 1:
        return False
    pos, (above, n) = s.pos[-1], s.positions[-2:]
    if pos is None or s.format.levels[-1].format.functions.passed is None or not above // 2 <= n <= SHORT_FIBRE * above:
        return False
    if len(s.positions) > 2 and above < 2 * WINDOW * s.positions[-3]:
        return False
    step = max(WINDOW + 1, (above + 1) // WINDOWS)
    windows = (above + 1) // step
    ends = to_numpy(pos)[: windows * step].reshape(windows, step)[:, : WINDOW + 1]
    lengths = ends[:, 1:] - ends[:, :-1]
    alike = np.count_nonzero(lengths[:, 1:] == lengths[:, :-1])
    return bool(alike < ALIKE * windows * (WINDOW - 1))
