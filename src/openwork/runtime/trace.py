"""Steps that run inside `record()` -> a list of them, with facts and bytes, for `explain`; nothing is recorded else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ..classes import frozen
from ..codegen.executable import Executable
from ..format.format import Format
from ..ir.interpret import evaluate
from ..ir.loop import Alloc, Scalar
from ..storage.buffers import itemsize
from ..storage.storage import Storage

__all__ = ["Step", "active", "note", "record", "rows", "shown"]


@frozen(slots=False)
class Step:
    """One step that was run: a kernel, a conversion, a move of elements."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    nbytes: int = 0
    executable: Executable | None = None
    heads: bool = False
    """whether it is a heading of the steps after it"""


def shown(format: Format) -> str:
    """A format by its name where it has one that every reader knows, else its text."""
    return format.name or str(format)


def rows(executable: Executable, words: Sequence[int]) -> list[tuple[str, str]]:
    """The fact of a merge's workspaces: the number of its rows, and the bytes that they take."""

    workspaces = [s for s in executable.kernel.body if isinstance(s, Alloc)]
    if not workspaces:
        return []
    names = {p.name: w for p, w in zip(executable.params, words, strict=True) if isinstance(p, Scalar)}
    nbytes = sum(int(evaluate(s.size, names)) * itemsize(s.scalar) for s in workspaces)
    count = sum("_crd" in s.buffer for s in workspaces)
    return [("rows", f"{count} kept for a moment, in workspaces of at most {nbytes:,} bytes on each thread")]


def prepared(where: str) -> tuple[str, str]:
    """The fact of whether the call was prepared by an earlier one, and where that is kept; "" where it was not."""
    return "prepared", f"by an earlier call, kept {where}" if where else "by this call"


steps: list[list[Step]] = []
"""The records under construction, empty where none is wanted."""


def active() -> bool:
    """Whether a record is wanted."""
    return bool(steps)


def note(step: Step) -> None:
    """Add a step to the record."""
    if steps:
        steps[-1].append(step)


def moved(operation: str, sources: Iterable[Storage], result: Storage) -> None:
    """Add a step that gives the elements of some operands new coordinates."""
    storages = tuple(sources)
    facts = (
        ("from", ", ".join(shown(s.format) for s in storages)),
        ("to", shown(result.format)),
        ("moves", f"{result.nse:,} of {sum(s.nse for s in storages):,} elements"),
    )
    note(Step(f"elements moved: {operation}", facts, result.nbytes))


@contextmanager
def record() -> Iterator[list[Step]]:
    """Record the steps that run inside."""
    steps.append([])
    try:
        yield steps[-1]
    finally:
        steps.pop()
