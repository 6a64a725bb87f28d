"""`openwork advise`: which format suits the matrix in a file for an operation."""

from __future__ import annotations

import argparse
from dataclasses import asdict

import openwork as ow
from openwork.progress import at_terminal

from .load import read
from .output import heading, json_text, table

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    t = read(arguments.file)
    with at_terminal() as passes:
        advice: ow.Advice = ow.advise(
            t, op=arguments.op, seconds=arguments.seconds, threads=arguments.threads, progress=passes
        )
    if arguments.json:
        facts = {"file": arguments.file, "operation": advice.operation, "shape": advice.shape, "nse": advice.nse}
        facts |= {"given": advice.given, "best": advice.best, "candidates": [asdict(c) for c in advice]}
        print(json_text(facts))
        return 0
    heading(advice.title())
    table(advice.COLUMNS, advice.rows(), left=(0, 4))
    return 0
