"""`explain`: run something and say what was run: kernels, formats, loop orders, conversions, bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..codegen.executable import Executable
from . import trace

__all__ = ["Plan", "explain"]


@dataclass(frozen=True)
class Plan:
    """What an operation ran, step by step.

    `loops`, `llvm` and `asm` are the code of its kernels, one after the other.
    """

    steps: tuple[trace.Step, ...]
    result: Any = None

    @property
    def executables(self) -> tuple[Executable, ...]:
        """The compiled kernels, in order."""
        return tuple(s.executable for s in self.steps if s.executable is not None)

    @property
    def loops(self) -> str:
        """The kernels' loop IR."""
        return "\n".join(e.loops for e in self.executables)

    @property
    def llvm(self) -> str:
        """The kernels' LLVM IR, before optimisation."""
        return "\n".join(e.llvm for e in self.executables)

    @property
    def asm(self) -> str:
        """The kernels' assembly on this machine."""
        return "\n".join(e.asm for e in self.executables)

    @property
    def nbytes(self) -> int:
        """Bytes that the steps allocate, the result included."""
        return sum(s.nbytes for s in self.steps)

    def __str__(self) -> str:
        lines = []
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {step.title}")
            lines += [f"   {name:<12} {text}" for name, text in step.facts]
            lines.append(f"   {'allocates':<12} {step.nbytes:,} bytes")
        return "\n".join(lines) or "nothing was compiled: the array library does this on the values alone"


def explain(what: Callable[..., Any] | str, /, *args: Any) -> Plan:
    """Run `what` on `args` and return the plan that was followed.

    Parameters
    ----------
    what : a function of the arguments (`ow.matmul`, `lambda A, x: A @ x`), or index notation with one sparse operand
        ("y[i] += A[i,j] * x[j]"), its operands given in order of appearance

    Returns
    -------
    Plan; print it, or read `plan.loops`, `plan.llvm`, `plan.asm`; `plan.result` is what the call returned
    """
    with trace.record() as steps:
        result = _statement(what, args) if isinstance(what, str) else what(*args)
    return Plan(tuple(steps), result)


def _statement(text: str, args: tuple[Any, ...]) -> Any:
    from ..ir.index_text import parse
    from .evaluate import evaluate

    return evaluate(parse(text), args)
