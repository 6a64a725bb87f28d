"""`openwork kernel`: the generated code of one expression."""

from __future__ import annotations

import argparse

from openwork.runtime.kernel_text import show_kernel

from .load import bindings
from .main import BAD_INPUT, CliError, one_line

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:

    formats, dtypes = bindings(arguments.formats, "formats"), bindings(arguments.dtypes, "dtypes")
    try:
        text = show_kernel(arguments.expression, formats, dtypes, arguments.show)
    except BAD_INPUT:
        raise
    except (SyntaxError, KeyError, ValueError) as error:
        raise CliError(f"{arguments.expression!r}: {one_line(error)}") from error
    print(text.rstrip())
    return 0
