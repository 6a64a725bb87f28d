"""`openwork formats`: the named formats, written in the language."""

from __future__ import annotations

import argparse

import openwork as ow

from .output import bold

__all__ = ["run"]

EXAMPLES = (
    ("dense", 2, "every element, row by row"),
    ("dense_f", 2, "every element, column by column"),
    ("coo", 2, "a list of coordinates, sorted"),
    ("csr", 2, "compressed rows"),
    ("csc", 2, "compressed columns"),
    ("dcsr", 2, "compressed rows, empty ones left out"),
    ("dcsc", 2, "compressed columns, empty ones left out"),
    ("bsr(2, 3)", 2, "blocks of 2 x 3, by rows"),
    ("bsc(2, 3)", 2, "blocks of 2 x 3, by columns"),
    ("dia", 2, "diagonals"),
    ("ell(4)", 2, "at most 4 elements in a row, padded"),
    ("nm(2, 4)", 2, "2 of every 4 elements in a row"),
    ("bitmap", 2, "every element, and a bit that says whether it is there"),
    ("csf", 3, "a tree of coordinates, any rank"),
)


def run(arguments: argparse.Namespace) -> int:
    wide = max(len(name) for name, _, _ in EXAMPLES)
    for name, ndim, note in EXAMPLES:
        print(f"{bold(name.ljust(wide))}  {note}\n{'':{wide}}  {ow.format(name, ndim=ndim)}")
    return 0
