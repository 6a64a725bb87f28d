"""`openwork advise`: which format suits the matrix in a file for an operation."""

from __future__ import annotations

import argparse

import openwork as ow
from openwork.advice import Advice
from openwork.progress import at_terminal

from .load import read
from .output import heading, table

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    t = read(arguments.file)
    with at_terminal() as passes:
        advice: Advice = ow.advise(
            t, op=arguments.op, seconds=arguments.seconds, threads=arguments.threads, progress=passes
        )
    shape = " x ".join(map(str, t.shape))
    heading(f"{advice.operation} of {shape}, {advice.nse} elements: {advice.best}")
    table(list(advice.head()), advice.rows(), left=(0, 4))
    return 0
