"""A record of what is run, for `explain`: off unless somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..codegen.executable import Executable
from ..format.format import Format
from ..ir.interpret import evaluate
from ..ir.loop import Alloc, Scalar
from ..storage.buffers import itemsize
from ..storage.storage import Storage

__all__ = ["Step", "active", "note", "record", "rows", "shown"]


@dataclass(frozen=True)
class Step:
    """One thing that was run."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    nbytes: int = 0
    executable: Executable | None = None
    heads: bool = False
    """whether it only says what the steps behind it are for"""


def shown(format: Format) -> str:
    """A format by its name where it has one that every reader knows, else its text."""
    return format.name or str(format)


def rows(executable: Executable, words: Sequence[int]) -> list[tuple[str, str]]:
    """What to say of the rows that a merge keeps for a moment, in memory of its kernel: how many, and their bytes."""

    found = [s for s in executable.kernel.body if isinstance(s, Alloc)]
    if not found:
        return []
    names = {p.name: w for p, w in zip(executable.params, words, strict=True) if isinstance(p, Scalar)}
    nbytes = sum(int(evaluate(s.size, names)) * itemsize(s.scalar) for s in found)
    count = sum("_crd" in s.buffer for s in found)
    return [("rows", f"{count} kept for a moment, in workspaces of at most {nbytes:,} bytes on each thread")]


def prepared(again: bool, where: str) -> tuple[str, str]:
    """The fact that says whether an earlier call had prepared this one, and where that is kept."""
    return "prepared", f"by an earlier call, kept {where}" if again else "by this call"


steps: list[list[Step]] = []
"""The records that are being made, empty where nobody listens."""


def active() -> bool:
    """Whether somebody listens."""
    return bool(steps)


def note(step: Step) -> None:
    """Add a step to the record."""
    if steps:
        steps[-1].append(step)


def moved(operation: str, sources: Iterable[Storage], found: Storage) -> None:
    """Add a step that gives the elements of some operands new coordinates."""
    every = tuple(sources)
    facts = (
        ("from", ", ".join(shown(s.format) for s in every)),
        ("to", shown(found.format)),
        ("moves", f"{found.nse:,} of {sum(s.nse for s in every):,} elements"),
    )
    note(Step(f"elements moved: {operation}", facts, found.nbytes))


@contextmanager
def record() -> Iterator[list[Step]]:
    """Record the steps that run inside."""
    steps.append([])
    try:
        yield steps[-1]
    finally:
        steps.pop()
