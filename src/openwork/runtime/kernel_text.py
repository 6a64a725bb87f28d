"""Index notation, formats and dtypes as text -> the kernel that they compile to: loop IR, LLVM IR or assembly."""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.emit import emit
from ..codegen.engine import assembly
from ..compiler.operand import Operand
from ..compiler.schedule import Facts, schedule
from ..compiler.simplify import simplify
from ..compiler.single.lower import lower_single_operand
from ..errors import FormatError, UnsupportedError
from ..format import format as parse_format
from ..format.format import Format
from ..ir.index import Assignment
from ..ir.index_text import parse
from ..ir.loop import Kernel
from ..ir.printer import show as show_loops
from ..storage.buffers import scalar_name
from .promote import compute_scalar, promote

__all__ = ["build_kernel", "show_kernel"]

SHOWN_EXTENT = 32
"""The extent of the vector index in a kernel that is built from text alone."""


def show_kernel(
    expression: str, formats: Mapping[str, str], dtypes: Mapping[str, str] | None = None, show: str = "loops"
) -> str:
    """The kernel of a statement such as "y(i) += A(i,j) * x(j)".

    Parameters
    ----------
    expression : index notation; one operand sparse
    formats : format text or name by operand; what is not named is a dense array
    dtypes : dtype by operand, float64 without
    show : "loops" (loop IR), "llvm" (LLVM IR before optimisation) or "asm" (the host's assembly)

    Raises FormatError for text that does not parse or operands that are not there, UnsupportedError for what does
    not compile.
    """
    kernel = build_kernel(expression, formats, dtypes or {})
    if show == "loops":
        return show_loops(kernel)
    if show == "llvm":
        return emit(kernel)
    if show == "asm":
        return assembly(emit(kernel))
    raise UnsupportedError(f"show={show!r}\n  supported: loops, llvm, asm")


def build_kernel(expression: str, formats: Mapping[str, str], dtypes: Mapping[str, str]) -> Kernel:
    """The simplified loop IR of a statement, int32 indices, the vector index of extent 32."""
    stmt = parse(expression)
    names = [*stmt.tensors, stmt.lhs.tensor]
    for name_given in (*formats, *dtypes):
        if name_given not in names:
            raise FormatError(
                f"{expression!r} has no operand {name_given!r}\n  help: its operands are {', '.join(names)}"
            )
    scalars = {n: scalar_name(dtypes.get(n, "float64")) for n in stmt.tensors}
    out = scalar_name(dtypes[stmt.lhs.tensor]) if stmt.lhs.tensor in dtypes else promote(tuple(scalars.values()))
    operands = {a.tensor: _operand(formats.get(a.tensor), len(a.indices), scalars[a.tensor]) for a in stmt.accesses}
    operands[stmt.lhs.tensor] = _operand(formats.get(stmt.lhs.tensor), len(stmt.lhs.indices), out)
    driver = next((a for a in stmt.accesses if operands[a.tensor].format is not None), None)
    if driver is None:
        raise UnsupportedError(f"{stmt}: no operand is sparse\n  help: name a format, as in --formats A=csr")
    free = [i for i in (*stmt.lhs.indices, *stmt.reduction_indices) if i not in driver.indices]
    vector = next((i for i in free if i in stmt.lhs.indices), next(iter(free), None))
    laid = {n: _along(o, stmt, n, vector) for n, o in operands.items()}
    facts = Facts(((vector, SHOWN_EXTENT),) if vector else ())
    plan = schedule(stmt, laid, facts)
    return simplify(lower_single_operand(stmt, laid, plan, compute_scalar(out)))


def _operand(text: str | None, ndim: int, scalar: str) -> Operand:
    if text is None or (text.lower() == "dense" and ndim == 0):
        return Operand(scalar, ndim, unit=max(0, ndim - 1))
    fmt: Format = parse_format(text, ndim)
    pos, crd = (
        tuple(
            None if part not in level.format.buffers else "bool" if level.format.is_bitmap else "i32"
            for level in fmt.levels
        )
        for part in ("pos", "crd")
    )
    return Operand(scalar, ndim, fmt, pos, crd)


def _along(operand: Operand, stmt: Assignment, name: str, vector: str | None) -> Operand:
    """A dense operand laid out with the vector index contiguous, as the runtime would."""
    access = next(a for a in (stmt.lhs, *stmt.accesses) if a.tensor == name)
    if operand.format is not None or vector not in access.indices:
        return operand
    return Operand(operand.scalar, operand.ndim, unit=access.indices.index(vector))
