"""`explain`: a call -> its Plan: the kernels that ran, with formats, loop orders, conversions and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import numpy as np

from ..codegen.executable import Executable
from ..errors import FormatError, ShapeError
from ..format import format
from ..interop.sources import asarray
from ..runtime import trace
from ..runtime.kernel_text import SHOWN_EXTENT
from ..storage.buffers import numpy_dtype, scalar_name
from ..tensor.lazy import is_lazy
from .notation import evaluate, program_of, read_by
from .program import compute

__all__ = ["Plan", "explain", "sampled_plan"]


ECHO = 24
"""Lines that the prompt shows of a plan."""


@dataclass(frozen=True, repr=False)
class Plan:
    """What an operation ran, step by step.

    At the prompt it shows its beginning; `print(plan)` shows all. `loops`, `llvm` and `asm` are the code of its
    kernels, one after the other.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> plan = ow.explain(ow.matmul, A, np.ones(2))
    >>> "for i in range" in plan.loops
    True
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
            converted = sum(s.nbytes for s in runs if s.title.startswith("conversion"))
            lines.append(
                f"in all {self.nbytes:,} bytes" + (f", {converted:,} of them for conversions" if converted else "")
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        """The printed form; of a long one the beginning."""
        lines = str(self).splitlines()
        if len(lines) <= ECHO:
            return "\n".join(lines)
        return "\n".join([*lines[: ECHO - 1], f"... {len(lines) - ECHO + 1} more lines: print(plan)"])

    def _repr_html_(self) -> str:
        """The printed form for a notebook, with the loops of each kernel folded below it."""
        kernels, number = [], 0
        for step in self.steps:
            number += not step.heads
            if step.executable is not None:
                title = f"{number}. {step.title}: loops"
                kernels.append(
                    f"<details><summary>{escape(title)}</summary><pre>{escape(step.executable.loops)}</pre></details>"
                )
        return f"<pre>{escape(str(self))}</pre>{''.join(kernels)}"


def explain(what: Any, /, *args: Any) -> Plan:
    """Run `what` on `args` and return the plan that was followed.

    Parameters
    ----------
    what : a function of the arguments (`ow.matmul`, `lambda A, x: A @ x`), or index notation as `ow.evaluate` takes it
        ("y[i] += A[i,j] * x[j]"), its operands given in order of appearance, or an expression of `ow.lazy`, with more
        of them as arguments

    Returns
    -------
    Plan; print it, or read `plan.loops`, `plan.llvm`, `plan.asm`; `plan.result` is what the call returned

    Raises TypeError for what is none of these, and whatever the call raises.

    Cost: that of the call, which is run.
    See also: lazy, fused.

    Examples
    --------
    >>> A = ow.eye(3, format="csr")
    >>> print(ow.explain(lambda A: A @ np.ones(3), A).loops.splitlines()[0])
    # y[i] += A[i, j] * B[j]
    """
    with trace.record() as steps:
        if is_lazy(what):
            result = compute(what, *args)
        elif isinstance(what, str):
            result = _run_statement(what, args)
        elif callable(what):
            result = what(*args)
        else:
            raise TypeError(
                f"explain: {type(what).__name__} is nothing to run"
                "\n  help: give a function and its arguments, index notation, or an expression of ow.lazy"
            )
    return Plan(tuple(steps), result)


def _run_statement(text: str, args: tuple[Any, ...]) -> Any:
    """Run statements with operands in order of appearance."""
    names = operands_of(text)
    if len(names) != len(args):
        raise ShapeError(
            f"explain: {text} has operands {', '.join(names)}; got {len(args)} values\n  help: give each one"
        )
    return evaluate(text, **dict(zip(names, args, strict=True)))


def operands_of(text: str) -> dict[str, int]:
    """The tensors that statements read and none of them assigns, in order of appearance, with their ranks."""
    ranks: dict[str, int] = {}
    assigned: set[str] = set()
    for _, parts in program_of(text):
        for stmt in parts:
            for access in read_by(stmt, False):
                if access.tensor not in assigned:
                    ranks.setdefault(access.tensor, len(access.indices))
            assigned.add(stmt.lhs.tensor)
    return ranks


def sampled_plan(text: str, formats: Mapping[str, str], dtypes: Mapping[str, str]) -> Plan:
    """The Plan of statements on random operands of these formats and dtypes: small ones, of density 0.2.

    formats : by operand, and by the last result; what is not named is a dense array of float64
    """
    ranks, last = operands_of(text), program_of(text)[-1][1][-1].lhs.tensor
    for operand in (*formats, *dtypes):
        if operand not in ranks and operand != last:
            raise FormatError(
                f"{text!r} has no operand {operand!r}\n  help: its operands are {', '.join((*ranks, last))}"
            )
    rng = np.random.default_rng(0)
    tensors: dict[str, Any] = {}
    for name, rank in ranks.items():
        values = (rng.random((SHOWN_EXTENT,) * rank) < 0.2).astype(
            numpy_dtype(scalar_name(dtypes.get(name, "float64")))
        )
        tensors[name] = asarray(values, format=format(formats[name], rank)) if name in formats else values
    return explain(partial(evaluate, text, format=formats.get(last), **tensors))
