"""`openwork convert`: read a file, change its format, write another."""

from __future__ import annotations

import argparse

import openwork as ow

from .load import read
from .main import CliError, one_line
from .output import bytes_text, count_text, progress

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    with progress("convert", 3) as step:
        step("read")
        t = read(arguments.input)
        if arguments.format is not None:
            step("convert")
            t = t.asformat(ow.format(arguments.format, ndim=t.ndim))
        step("write")
        try:
            ow.write(arguments.output, t)
        except ValueError as error:
            raise CliError(f"{arguments.output}: {one_line(error)}") from error
    print(f"{arguments.output}: {t.shape}, {count_text(t.nse)} elements, {bytes_text(t.nbytes)} as {t.format}")
    return 0
