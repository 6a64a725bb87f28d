"""`openwork convert`: a file in, its tensor in another format out; in parts where both kinds of file allow that."""

from __future__ import annotations

import argparse

import openwork as ow
from openwork.io import header
from openwork.progress import at_terminal

from .load import about, check_path
from .main import CliError
from .output import count_text, shape_text

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
        raise CliError(about(arguments.input, error)) from error
    print(f"{arguments.output}: {shape_text(found.shape)}, {count_text(found.entries or 0)} elements as {found.kind}")
    return 0
