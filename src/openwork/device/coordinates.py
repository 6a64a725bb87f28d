"""A tensor in any format -> the coordinates of its elements, by the same walk as its products.

The walk `C[i, j] = A[i, j] * B[j]` stores B[j] at every element of A; with j in place of B[j], and 1 in place of
A[i, j], it stores coordinates. Slots that are no elements are not walked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ..compiler.grid import FIRST, LAST, map_grid
from ..compiler.operand import Operand, ParamRef, parse_ref
from ..compiler.schedule.grid import GridSchedule, grid_schedule
from ..compiler.simplify import simplify
from ..compiler.single.lower import lower_single_operand
from ..ir.index import Access, Apply, Assignment
from ..ir.loop import Expr, Grid, Load
from ..ir.ops import const
from ..ir.rewrite import walk_body
from ..provided import provides
from .adapter import Argument, Memory, Program
from .kernels import each
from .statements import argument_of, operand_of, outer_of
from .tensor import DeviceTensor
from .vector import chosen, fill, gather

__all__ = ["Elements", "coordinates", "count", "elements_of", "has_gaps", "stretched", "walk_of"]


@dataclass(slots=True, eq=False)
class Elements:
    """Elements by coordinates, in any order, some perhaps more than once.

    shape : the extents; coordinates : a vector in i64 for each dimension; values : theirs
    """

    shape: tuple[int, ...]
    coordinates: list[Memory]
    values: Memory

    def at(self, places: Memory) -> Elements:
        """The elements at these places."""
        return Elements(self.shape, [gather(c, places) for c in self.coordinates], gather(self.values, places))


@lru_cache(maxsize=1024)
def walk_of(operand: Operand, d: int, grid: Grid) -> tuple[Program, GridSchedule, tuple[ParamRef, ...]]:
    """The kernel that stores coordinate d of every element."""
    names = tuple(f"i{k}" for k in range(operand.ndim))
    product = Apply("mul", (Access("A", names), Access("B", (names[d],))))
    stmt = Assignment(Access("C", names), "+=", product)
    operand = replace(operand, scalar="i64")
    operands = {"A": operand, "B": Operand("i64", 1, unit=0), "C": operand}
    plan = replace(grid_schedule(stmt, operands), grid=grid)
    kernel = lower_single_operand(stmt, operands, plan.nest, "i64")

    def rule(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer == "B":
            return e.index
        return const(1) if isinstance(e, Load) and e.buffer == "A_vals" else None

    params = tuple(p for p in kernel.params if p.name not in ("B", "A_vals"))
    kernel = simplify(replace(kernel, params=params, body=walk_body(kernel.body, rule)))
    mapped, _ = map_grid(kernel, plan, "C_vals")
    refs = tuple(parse_ref(p.name, operands, ["B"]) for p in mapped.params if p.name not in (FIRST, LAST))
    return Program(mapped), plan, refs


def coordinates(t: DeviceTensor, d: int) -> Memory:
    """Coordinate d of each position, -1 where it is of no element."""
    out = fill(t.adapter, t.memory.length, -1, "i64")
    if 0 in t.shape or not out.length:
        return out
    program, plan, refs = walk_of(operand_of(t), d, t.adapter.grid)
    values = {"A": t, "C": t.with_values(out, 0)}
    extents = {f"i{k}": n for k, n in enumerate(t.shape)}
    arguments: dict[str, Argument] = {ref.name: argument_of(ref, values, extents) for ref in refs}
    first, last = outer_of(t) if plan.nest.sliced is None else (0, extents[plan.nest.sliced])
    arguments[FIRST], arguments[LAST] = first, last
    items = -(-(last - first) // plan.chunk)
    program(t.adapter, arguments, -(-items // t.adapter.grid.items))
    return out


def has_gaps(t: DeviceTensor) -> bool:
    """Whether a position may be of no element."""
    return t.format.is_padded or t.format.ragged(t.shape)


def elements_of(t: DeviceTensor, values: Memory | None = None) -> Elements:
    """The elements of a tensor, in the order of their positions. values : instead of its own, for each position"""
    values = t.memory if values is None else values
    if not t.ndim:
        return Elements((), [], values)
    found = Elements(t.shape, [coordinates(t, d) for d in range(t.ndim)], values)
    return found.at(chosen(_marks(found.coordinates[0]))) if has_gaps(t) else found


def stretched(e: Elements, shape: tuple[int, ...]) -> Elements:
    """The elements of a tensor that is broadcast to a shape: each as often as its dimensions of one element say."""
    if e.shape == shape:
        return e
    own = (*(0,) * (len(shape) - len(e.shape)), *e.shape)
    held = (*(None,) * (len(shape) - len(e.shape)), *e.coordinates)
    times, device = 1, e.values.device
    repeated: list[tuple[int, int] | None] = []
    for n, m in zip(shape, own, strict=True):
        repeated.append(None if n == m else (times, n))
        times *= 1 if n == m else n
    at, coordinates = device.memory(e.values.length * times, "i64"), []
    each(device, at.length, "y[t] = t // times", {"y": at}, times=times)
    for c, place in zip(held, repeated, strict=True):
        if place is None:
            assert c is not None
            coordinates.append(gather(c, at))
            continue
        out = device.memory(at.length, "i64")
        body = "y[t] = t % times // below % extent"
        each(device, at.length, body, {"y": out}, times=times, below=place[0], extent=place[1])
        coordinates.append(out)
    return Elements(shape, coordinates, gather(e.values, at))


def _marks(x: Memory) -> Memory:
    out = x.device.memory(x.length, "i64")
    each(x.device, x.length, "y[t] = i64(x[t] >= 0)", {"y": out}, x=x)
    return out


@provides("device count")
def count(t: DeviceTensor) -> int:
    """The number of specified elements."""
    return chosen(_marks(coordinates(t, 0))).length if t.ndim else 1
