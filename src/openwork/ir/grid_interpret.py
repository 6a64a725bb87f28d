"""A kernel with a grid, its arguments and a number of groups -> changed buffers: every item interpreted, races found.

The items of a group run one after the other from barrier to barrier, those of a subgroup from shuffle to shuffle. Every
access to a buffer is noted; CompilerBug names both lines where

- two items touch one element, one of them writes it, not both by an Atomic, and no Barrier stands between them (of
  two groups none ever does);
- an offset lies outside its buffer;
- items of a group come to different barriers, or some end without; or items of a subgroup to different shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from ..classes import define
from ..errors import CompilerBug
from .arithmetic import DTYPES, Value, apply
from .interpret import Machine, memory, number
from .loop import Atomic, Barrier, Buffer, Expr, For, If, Kernel, Load, Local, Shuffle, Stmt, Swap, While
from .printer import show
from .types import Type
from .values import fit

__all__ = ["run_grid"]

Array = np.ndarray[Any, Any]
_Run = Generator[Stmt, None, None]
_Step = Callable[[], _Run]
READ, ATOMIC, WRITE = 0, 1, 2


@define
class _Access:
    """What was done to an element since it was last safe: by which item, how, and at which statement."""

    item: tuple[int, int]
    epoch: int
    kind: int
    node: Expr | Stmt


def run_grid(kernel: Kernel, args: Mapping[str, Any], groups: int) -> None:
    """Run `kernel` on so many groups; the mutable arrays of `args` are changed in place.

    args : by parameter name, as `ir.interpret.run` takes them
    Raises CompilerBug for a race, an access out of bounds, or a barrier that not all items of a group reach.
    """
    if kernel.grid is None:
        raise CompilerBug(f"interpreter: {kernel.name} has no grid")
    machine = _GridMachine(kernel)
    for param in kernel.params:
        if isinstance(param, Buffer):
            machine.buffers[param.name] = memory(param, args[param.name])
        else:
            machine.scalars[param.name] = DTYPES[param.scalar](fit(number(args[param.name]), param.scalar))
    body = machine.steps(kernel.body)
    with np.errstate(all="ignore"):
        for group in range(groups):
            machine.run_group(group, groups, body)


class _GridMachine(Machine):
    """The interpreter of loop IR for one item at a time, whose statements are generators that stop at barriers."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.name)
        assert kernel.grid is not None
        self.grid = kernel.grid
        self.scalars: dict[str, Value] = {}
        self.item = (0, 0)
        self.epoch = 0
        self.accesses: dict[tuple[str, int], list[_Access]] = {}
        self.local: dict[str, Local] = {}
        self.shuffled: dict[int, Value] = {}

    # -- groups ------------------------------------------------------------------------------------------------------

    def run_group(self, group: int, groups: int, body: _Step) -> None:
        """All items of a group, each from barrier to barrier."""
        for name, declared in self.local.items():
            self.alloc(name, declared.scalar, declared.size, False)
            for key in [k for k in self.accesses if k[0] == name]:
                del self.accesses[key]
        self.epoch += 1
        items = range(self.grid.items)
        names = [self._names_of(group, groups, i) for i in items]
        running = [body() for _ in items]
        while True:
            stops = []
            for first in range(0, self.grid.items, self.grid.subgroup):
                stops += self._subgroup(group, range(first, first + self.grid.subgroup), names, running)
            if all(s is None for s in stops):
                return
            if any(s is not stops[0] for s in stops):
                self._diverged("barrier", stops)
            self.epoch += 1

    def _names_of(self, group: int, groups: int, item: int) -> dict[str, Value]:
        numbers = {"group": group, "groups": groups, "item": item}
        return {**self.scalars, **{name: np.int64(n) for name, n in numbers.items()}}

    def _subgroup(
        self, group: int, items: range, names: list[dict[str, Value]], running: list[_Run]
    ) -> list[Stmt | None]:
        """The items of a subgroup, to their next barriers: these, None of items that have ended."""
        while True:
            stops: list[Stmt | None] = []
            values = {}
            for i in items:
                self._enter(group, i, names[i])
                stops.append(next(running[i], None))
                names[i] = dict(self.names)
                if isinstance(stops[-1], Shuffle):
                    values[i] = self.shuffled.pop(i)
            if not values:
                return stops
            if any(s is not stops[0] for s in stops):
                self._diverged("shuffle", stops)
            shuffle = stops[0]
            assert isinstance(shuffle, Shuffle)
            for i in items:
                names[i][shuffle.name] = values[i ^ shuffle.mask]

    def _enter(self, group: int, item: int, names: dict[str, Value]) -> None:
        self.item = group, item
        self.names.clear()
        self.names.update(names)

    def _diverged(self, what: str, stops: list[Stmt | None]) -> None:
        lines = dict.fromkeys("the end" if s is None else show(s) for s in stops)
        raise CompilerBug(
            f"interpreter: kernel {self.kernel!r}: items that run together come to different places, a {what} and"
            f" another: {', '.join(lines)}"
        )

    # -- statements --------------------------------------------------------------------------------------------------

    def steps(self, body: tuple[Stmt, ...]) -> _Step:
        """A block as a generator function of the places where it waits for other items."""
        parts = [self.step(s) for s in body]

        def run() -> _Run:
            for waits, part in parts:
                if waits:
                    yield from part()
                else:
                    part()

        return run

    def step(self, stmt: Stmt) -> tuple[bool, Callable[[], Any]]:
        """A statement, and whether it may wait for other items."""
        match stmt:
            case Barrier():
                return True, lambda: iter((stmt,))
            case Shuffle(_, value, _):
                return True, self._shuffle(stmt, self.expr(value))
            case Local():
                self.local[stmt.buffer] = stmt
                return False, lambda: None
            case Atomic() | Swap():
                return False, self.stmt(stmt)
            case For() | While() | If() if not _waits(stmt):
                return False, self.stmt(stmt)
            case For(name, lo, hi, body, step, _):
                return True, self._loop(name, self.expr(lo), self.expr(hi), self.steps(body), step)
            case While(cond, body):
                return True, self._repeat(self.expr(cond), self.steps(body))
            case If(cond, then, orelse):
                return True, self._choose(self.expr(cond), self.steps(then), self.steps(orelse))
        return False, self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> Callable[[], int | None]:
        if isinstance(stmt, Atomic):
            return self._atomic(stmt)
        if isinstance(stmt, Swap):
            return self._swap(stmt)
        return super().stmt(stmt)

    def _shuffle(self, stmt: Shuffle, value: Callable[[], Value]) -> _Step:
        def run() -> _Run:
            self.shuffled[self.item[1]] = value()
            yield stmt

        return run

    def _loop(self, name: str, lo: Callable[[], Value], hi: Callable[[], Value], body: _Step, step: int) -> _Step:
        def run() -> _Run:
            for i in range(int(lo()), int(hi()), step):
                self.names[name] = np.int64(i)
                yield from body()

        return run

    def _repeat(self, test: Callable[[], Value], body: _Step) -> _Step:
        def run() -> _Run:
            while test():
                yield from body()

        return run

    def _choose(self, test: Callable[[], Value], then: _Step, orelse: _Step) -> _Step:
        def run() -> _Run:
            yield from then() if test() else orelse()

        return run

    def _atomic(self, stmt: Atomic) -> Callable[[], None]:
        index, value, kind = self.expr(stmt.index), self.expr(stmt.value), stmt.value.type

        def run() -> None:
            at = self._offsets(stmt.buffer, index(), 1, stmt)
            self._note(stmt.buffer, int(at), ATOMIC, stmt)
            old = Machine.load(self, stmt.buffer, at, kind, Load(stmt.buffer, stmt.index, kind))
            Machine.store(self, stmt.buffer, at, apply(stmt.op, (old, value()), kind), kind, stmt)

        return run

    def _swap(self, stmt: Swap) -> Callable[[], None]:
        index, expected, value = self.expr(stmt.index), self.expr(stmt.expected), self.expr(stmt.value)
        kind = stmt.value.type

        def run() -> None:
            at = self._offsets(stmt.buffer, index(), 1, stmt)
            self._note(stmt.buffer, int(at), ATOMIC, stmt)
            old = Machine.load(self, stmt.buffer, at, kind, Load(stmt.buffer, stmt.index, kind))
            if old == expected():
                Machine.store(self, stmt.buffer, at, value(), kind, stmt)
            self.names[stmt.name] = old

        return run

    # -- accesses ----------------------------------------------------------------------------------------------------

    def load(self, buffer: str, index: Value, type: Type, node: Expr) -> Value:
        value = super().load(buffer, index, type, node)
        for at in np.atleast_1d(index + np.arange(type.lanes) if type.lanes > 1 and not np.ndim(index) else index):
            self._note(buffer, int(at), READ, node)
        return value

    def store(self, buffer: str, index: Value, value: Value, type: Type, node: Stmt) -> None:
        super().store(buffer, index, value, type, node)
        for at in np.atleast_1d(index + np.arange(type.lanes) if type.lanes > 1 and not np.ndim(index) else index):
            self._note(buffer, int(at), WRITE, node)

    def _note(self, buffer: str, at: int, kind: int, node: Expr | Stmt) -> None:
        """Note an access; raise where it races with one before."""
        known = self.accesses.setdefault((buffer, at), [])
        for other in known:
            ordered = other.item[0] == self.item[0] and other.epoch < self.epoch
            if other.item == self.item or ordered or other.kind == kind != WRITE:
                continue
            lines = [show(n).split("\n", 1)[0] for n in (other.node, node)]
            places = [f"item {i} of group {g}" for g, i in (other.item, self.item)]
            raise CompilerBug(
                f"interpreter: kernel {self.kernel!r}: a race for element {at} of {buffer!r}"
                f"\n  {lines[0]}    ({places[0]})\n  {lines[1]}    ({places[1]})"
            )
        if not any(o.item == self.item and o.kind == kind and o.epoch == self.epoch for o in known):
            known.append(_Access(self.item, self.epoch, kind, node))


def _waits(stmt: Stmt) -> bool:
    """Whether a statement holds a place where items wait for each other."""
    match stmt:
        case Barrier() | Shuffle():
            return True
        case For(_, _, _, body, _, _) | While(_, body):
            return any(map(_waits, body))
        case If(_, then, orelse):
            return any(map(_waits, (*then, *orelse)))
    return False
