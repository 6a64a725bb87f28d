"""`openwork tour`: what openwork does, on two matrices that are made on the spot."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np

import openwork as ow
from openwork.runtime.kernel_text import show_kernel

from .bench import Row, measure, print_rows
from .contests import Problem
from .generate import rmat, stencil
from .output import bytes_text, count_text, heading, progress, shape_text, table, time_text
from .peers import set_threads

__all__ = ["run"]

GRID_FORMATS = ("coo", "csr", "csc", "dcsr", "bsr(2,2)", "dia")
GRAPH_FORMATS = ("coo", "csr", "csc", "dcsr", "dcsc", "bsr(2,2)")
TIMED = (("csr", "spmv"), ("csr", "spmm:32"), ("csr", "sddmm:32"), ("bsr(2,2)", "spmv"), ("bsr(2,2)", "spmm:32"))
MOVED = (("coo", "to_csr"), ("csr", "to_csc"), ("csr", "sum:1"))
EXPRESSION = "y(i) += A(i,j) * x(j)"


def show_formats(csr: Any, formats: tuple[str, ...], step: Any) -> tuple[list[list[str]], bool]:
    """Rows (format, bytes, conversion time, SpMV equal to SciPy's, in the language), and whether all are equal."""
    x = np.random.default_rng(0).standard_normal(csr.shape[1])
    want = csr @ x
    source = ow.asarray(csr)
    rows, right = [], True
    for name in formats:
        step(name)
        source.asformat(name)
        begun = time.perf_counter()
        t = source.asformat(name)
        spent = time.perf_counter() - begun
        equal = bool(np.allclose(t @ x, want, rtol=1e-10, atol=1e-10 * np.abs(want).max(initial=0.0)))
        right &= equal
        language = str(t.format).replace(" : ", "\u00a0:\u00a0")  # a line breaks between levels alone
        rows.append([name, bytes_text(t.nbytes), time_text(spent), "yes" if equal else "NO", language])
    return rows, right


def run(arguments: argparse.Namespace) -> int:
    begun = time.perf_counter()
    set_threads(1)
    side = arguments.scale
    timed = TIMED + MOVED
    with (
        progress("tour", 2 + len(GRID_FORMATS) + len(GRAPH_FORMATS) + 2 * len(timed)) as step,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        step("make")
        grid = stencil(side).tocsr()
        graph = rmat(max(4, (side * side).bit_length()), 20 * side * side).tocsr()
        matrices = (("grid", grid, GRID_FORMATS), ("graph", graph, GRAPH_FORMATS))
        shown = [(label, csr, *show_formats(csr, formats, step)) for label, csr, formats in matrices]
        step("kernel")
        loops = show_kernel(EXPRESSION, {"A": "csr"}).rstrip()
        times: list[tuple[str, list[Row]]] = []
        for label, csr, _ in matrices:
            rows = []
            for name, operation in timed:
                step(f"{operation} on {label}")
                rows.append(measure(Problem.of(csr, name, torch=False), operation, 0.3))
            times.append((label, rows))
    right = all(equal for *_, equal in shown) and all(row.equal is not False for _, rows in times for row in rows)
    report(shown, loops, times)
    print(f"\n{time.perf_counter() - begun:.1f} s in all; every result was compared with SciPy's.")
    if not right:
        print("openwork tour: a result differs from SciPy's", file=sys.stderr)
    return 0 if right else 1


def report(shown: list[Any], loops: str, times: list[tuple[str, list[Row]]]) -> None:
    """Print it all, in the order of a story."""
    about = {
        "grid": "a finite-element grid with two unknowns per point",
        "graph": "a power-law graph",
    }
    for label, csr, rows, _ in shown:
        heading(f"the {label}: {about[label]}, {shape_text(csr.shape)}, {count_text(int(csr.nnz))} elements")
        table(["format", "bytes", "conversion", "equal", "in the language"], rows, left=(0, 4))
    heading(f"the loops generated for {EXPRESSION} with A in CSR")
    print(loops)
    for label, rows in times:
        heading(f"times on the {label}, one thread; a ratio above 1 means that openwork is faster")
        print_rows(rows)
