"""`openwork kernel`: the generated code of index notation, for given formats and dtypes."""

from __future__ import annotations

import argparse

from openwork.errors import UnsupportedError
from openwork.fusion.explain import sampled_plan
from openwork.fusion.notation import program_of
from openwork.runtime.kernel_text import show_kernel

from .load import bindings
from .main import BAD_INPUT, CliError, shown

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    formats, dtypes = bindings(arguments.formats, "formats"), bindings(arguments.dtypes, "dtypes")
    try:
        text = _shown(arguments.expression, formats, dtypes, arguments.show)
    except BAD_INPUT:
        raise
    except (SyntaxError, KeyError, ValueError) as error:
        raise CliError(f"{arguments.expression!r}: {shown(error)}") from error
    print(text.rstrip())
    return 0


def _shown(text: str, formats: dict[str, str], dtypes: dict[str, str], show: str) -> str:
    """The kernel of a statement with one sparse operand; of any others, all that they run on small operands."""
    program = program_of(text)
    stmt = program[0][1][0]
    sparse = [name for name, given in formats.items() if given.lower() != "dense"]
    if len(program) == len(program[0][1]) == len(sparse) == 1 and stmt.mask is None and stmt.lhs.tensor not in sparse:
        return show_kernel(text, formats, dtypes, show)
    plan = sampled_plan(text, formats, dtypes)
    if not plan.executables:
        raise UnsupportedError(f"{text}: no kernel is compiled\n  help: name a sparse format, as in --formats A=csr")
    return str(getattr(plan, show))
