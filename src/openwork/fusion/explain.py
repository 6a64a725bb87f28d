"""`explain`: run something and say what was run: kernels, formats, loop orders, conversions, bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..codegen.executable import Executable
from ..ir.index_text import parse
from ..ops.elementwise.single_statement import evaluate
from ..runtime import trace
from ..tensor.lazy import is_lazy
from .program import compute

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
        runs = [s for s in self.steps if not s.heads]
        number = 0
        for step in self.steps:
            number += not step.heads
            lines.append(step.title if step.heads else f"{number}. {step.title}")
            lines += [f"   {name:<12} {text}" for name, text in step.facts]
            if not step.heads:
                lines.append(f"   {'allocates':<12} {step.nbytes:,} bytes")
        if not runs:
            lines.append("no kernel: buffers are shared or cut, or the array library works on the values alone")
        elif len(runs) > 1:
            moved = sum(s.nbytes for s in runs if s.title.startswith("conversion"))
            lines.append(f"in all {self.nbytes:,} bytes" + (f", {moved:,} of them for conversions" if moved else ""))
        return "\n".join(lines)


def explain(what: Any, /, *args: Any) -> Plan:
    """Run `what` on `args` and return the plan that was followed.

    Parameters
    ----------
    what : a function of the arguments (`ow.matmul`, `lambda A, x: A @ x`), or index notation with one sparse operand
        ("y[i] += A[i,j] * x[j]"), its operands given in order of appearance, or an expression of `ow.lazy`, with more
        of them as arguments

    Returns
    -------
    Plan; print it, or read `plan.loops`, `plan.llvm`, `plan.asm`; `plan.result` is what the call returned

    Raises TypeError for what is none of these, and whatever the call raises.
    """
    with trace.record() as steps:
        if is_lazy(what):
            result = compute(what, *args)
        elif isinstance(what, str):
            result = _statement(what, args)
        elif callable(what):
            result = what(*args)
        else:
            raise TypeError(
                f"explain: {type(what).__name__} is nothing to run"
                "\n  help: give a function and its arguments, index notation, or an expression of ow.lazy"
            )
    return Plan(tuple(steps), result)


def _statement(text: str, args: tuple[Any, ...]) -> Any:

    return evaluate(parse(text), args)
