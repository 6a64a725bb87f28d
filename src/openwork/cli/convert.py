"""`openwork convert`: a file in, its tensor in another format out; in parts where both kinds of file allow that."""

from __future__ import annotations

import argparse

import openwork as ow
from openwork.io import header

from .load import check_path
from .main import CliError, one_line
from .output import Show, count_text, counter

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    check_path(arguments.input)
    try:
        with counter("convert") as show:
            progress = _Passes(show)
            ow.convert(
                arguments.input, arguments.output, format=arguments.format, memory=arguments.memory, progress=progress
            )
        found = header(arguments.output)
    except (ValueError, TypeError) as error:
        raise CliError(f"{arguments.input}: {one_line(error)}") from error
    print(f"{arguments.output}: {found.shape}, {count_text(found.entries or 0)} elements as {found.kind}")
    return 0


class _Passes:
    """Called with (done, total): shows the part that is done, of reading, and from a second total on of writing."""

    def __init__(self, show: Show) -> None:
        self._show, self._totals = show, [0]

    def __call__(self, done: int, total: int) -> None:
        if total != self._totals[-1]:
            self._totals.append(total)
        name = "read" if len(self._totals) == 2 else "write"
        self._show(100 * done // max(total, 1), 100, f"{name}, of a hundred")
