"""`openwork kernel`: the generated code of one expression."""

from __future__ import annotations

import argparse

from .load import bindings
from .main import CliError

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    from openwork.ops.kernel import show_kernel

    formats, dtypes = bindings(arguments.formats, "formats"), bindings(arguments.dtypes, "dtypes")
    try:
        text = show_kernel(arguments.expression, formats, dtypes, arguments.show)
    except (SyntaxError, KeyError) as error:
        raise CliError(f"{arguments.expression!r}: {error}") from error
    print(text.rstrip())
    return 0
