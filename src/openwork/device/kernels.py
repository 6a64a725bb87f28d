"""Texts of loop IR -> programs for the items of a grid: one statement for each of n elements, and whole kernels.

    each(device, n, "y[t] = x[at[t]]", {"y": out}, x=x, at=at)

Item t runs the text for t < n. `T_x` is the type of the operand x, and integers are of 64 bits.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..compiler.simplify import simplify
from ..ir.loop import Grid
from ..ir.text import parse
from ..ir.verify import verify
from .adapter import Adapter, Argument, Memory, Program

__all__ = ["Number", "each", "groups_for", "whole"]


class Number:
    """A number of a scalar type, as an argument of a kernel."""

    __slots__ = ("scalar", "value")

    def __init__(self, value: int | float | complex, scalar: str) -> None:
        self.value, self.scalar = value, scalar


def groups_for(n: int, grid: Grid) -> int:
    """The groups that have n items."""
    return -(-n // grid.items)


def each(
    device: Adapter, n: int, body: str, writes: Mapping[str, Memory], /, **reads: Memory | Number | int
) -> None:  # fmt: skip
    """Run a text for t = 0, ..., n - 1, in any order. writes : memory that it changes."""
    whole(device, n, f"t = group * ITEMS + item\nif t < n:\n{textwrap.indent(body, '    ')}", writes, **reads)


def whole(
    device: Adapter, n: int, body: str, writes: Mapping[str, Memory], /, **reads: Memory | Number | int
) -> None:  # fmt: skip
    """Run a text by all items of as many groups as have n. ITEMS : the number of items of a group."""
    head = []
    arguments: dict[str, Argument] = {"n": n, **writes}
    for name, value in reads.items():
        kind = "const" if isinstance(value, Memory) else ""
        head.append((name, "i64" if isinstance(value, int) else value.scalar, kind))
        arguments[name] = value.value if isinstance(value, Number) else value
    head += [(name, value.scalar, "mut") for name, value in writes.items()]
    _program(body, tuple(head), device.grid)(device, arguments, groups_for(n, device.grid))


@lru_cache(maxsize=4096)
def _program(body: str, params: tuple[tuple[str, str, str], ...], grid: Grid) -> Program:
    texts = [f"{name}: {scalar}[{kind}]" if kind else f"{name}: {scalar}" for name, scalar, kind in params]
    head = f"def each({', '.join(('n: i64', *texts))}):  # grid of {grid.items}, subgroups of {grid.subgroup}"
    text = f"{head}\n{textwrap.indent(body.replace('ITEMS', str(grid.items)), '    ')}"
    types: dict[str, Any] = {f"T_{name}": scalar for name, scalar, _ in params}
    kernel = parse(text, **types)
    return Program(verify(simplify(kernel)))
