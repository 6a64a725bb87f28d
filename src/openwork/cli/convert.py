"""`openwork convert`: a file in, its tensor in another format out; in parts where both kinds of file allow that."""

from __future__ import annotations

import argparse

import openwork as ow
from openwork.io import header
from openwork.progress import at_terminal

from .load import check_path
from .main import CliError, one_line
from .output import count_text

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    check_path(arguments.input)
    try:
        with at_terminal() as passes:
            ow.convert(
                arguments.input, arguments.output, format=arguments.format, memory=arguments.memory, progress=passes
            )
        found = header(arguments.output)
    except (ValueError, TypeError) as error:
        raise CliError(f"{arguments.input}: {one_line(error)}") from error
    print(f"{arguments.output}: {found.shape}, {count_text(found.entries or 0)} elements as {found.kind}")
    return 0
