"""`openwork info`: what a file holds, and what it would take in each format."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from openwork.advice.sizes import block_count, format_table
from openwork.codegen.cache import cache_info

from .load import read, to_csr
from .output import bars, bytes_text, count_text, heading, progress, table

__all__ = ["degree_histogram", "describe", "run", "symmetry"]


def symmetry(csr: Any) -> str:
    """One of: not square, symmetric, skew-symmetric, Hermitian, symmetric structure only, no."""
    if csr.shape[0] != csr.shape[1]:
        return "not square"
    other = csr.T.tocsr()
    other.sort_indices()
    if not (np.array_equal(csr.indptr, other.indptr) and np.array_equal(csr.indices, other.indices)):
        return "no"
    if np.array_equal(csr.data, other.data):
        return "symmetric"
    if csr.dtype.kind not in "bu" and np.array_equal(csr.data, -other.data):
        return "skew-symmetric"
    if np.array_equal(csr.data, other.data.conj()):
        return "Hermitian"
    return "symmetric structure, not values"


def bandwidth(csr: Any) -> tuple[int, int]:
    """(below, above): how far elements reach from the main diagonal."""
    i = np.repeat(np.arange(csr.shape[0], dtype=np.int64), np.diff(csr.indptr))
    offset = csr.indices - i
    return int(max(0, -offset.min(initial=0))), int(max(0, offset.max(initial=0)))


def degree_histogram(degrees: Any) -> tuple[list[str], list[int]]:
    """Rows by their number of elements: 0, 1, 2-3, 4-7, ... up to the longest row."""
    top = int(degrees.max(initial=0))
    edges = [0, 1, *(1 << k for k in range(1, top.bit_length()))]
    edges = [edge for edge in edges if edge <= top]
    counts = np.bincount(np.searchsorted(edges, degrees, side="right") - 1, minlength=len(edges))
    labels = [str(a) if a < 2 else f"{a}-{2 * a - 1}" for a in edges]
    return labels, [int(count) for count in counts]


def density_text(density: float) -> str:
    return f"{100 * density:.3g} %"


def describe(t: Any) -> list[tuple[str, str]]:
    """The facts that hold for a tensor of any rank."""
    shape = " x ".join(map(str, t.shape)) or "a scalar"
    return [
        ("shape", shape),
        ("dtype", str(t.dtype)),
        ("elements", count_text(int(t.nse))),
        ("density", density_text(float(t.density))),
        ("read as", f"{t.format}, {bytes_text(t.nbytes)}"),
    ]


def describe_matrix(csr: Any) -> list[tuple[str, str]]:
    below, above = bandwidth(csr)
    degrees = np.diff(csr.indptr)
    mean = float(degrees.mean()) if len(degrees) else 0.0
    empty = int(np.count_nonzero(degrees == 0))
    return [
        ("symmetric", symmetry(csr)),
        ("bandwidth", f"{count_text(below)} below, {count_text(above)} above the diagonal"),
        (
            "row lengths",
            f"mean {mean:.1f}, longest {count_text(int(degrees.max(initial=0)))}, empty {count_text(empty)}",
        ),
        ("explicit zeros", count_text(int(np.count_nonzero(csr.data == 0)))),
    ]


def block_rows(csr: Any) -> list[list[str]]:
    rows = []
    for b in (2, 3, 4, 8, 16):
        blocks = block_count(csr, b, b)
        fill = csr.indptr[-1] / (blocks * b * b) if blocks else 0.0
        rows.append([f"{b} x {b}", count_text(blocks), f"{100 * fill:.0f} %"])
    return rows


def tensor_sizes(t: Any) -> list[list[str]]:
    return [[name, bytes_text(t.asformat(name).nbytes)] for name in ("coo", "csf")]


def cache_rows() -> list[tuple[str, str]]:
    """What the cache of kernels holds."""

    info = cache_info()
    numbers = {name: value for name, value in info.items() if isinstance(value, int)}
    asked = ", ".join(
        f"{numbers[n]:,} {n.replace('_', ' ')}" for n in ("hits", "misses", "from_disk", "compiled", "evicted")
    )
    ignored = "" if info["ignored"] is None else f", not used: {info['ignored']}"
    return [
        ("folder", f"{info['folder'] or 'none'}{ignored}"),
        ("on disk", f"{numbers['files']:,} kernels, {bytes_text(numbers['file_bytes'])}"),
        (
            "in memory",
            f"{numbers['kernels']:,} of at most {numbers['limit']:,} kernels, {bytes_text(numbers['bytes'])},"
            f" {numbers['plans']:,} plans",
        ),
        ("this process", asked),
    ]


def run(arguments: argparse.Namespace) -> int:
    if arguments.cache:
        for name, text in cache_rows():
            print(f"{name:<12}  {text}")
        if arguments.file is None:
            return 0
    t = read(arguments.file)
    facts = describe(t)
    with progress("info", 2) as step:
        if t.ndim == 2:
            step("structure")
            csr = to_csr(t)
            facts += describe_matrix(csr)
            step("blocks")
            blocks, sizes = block_rows(csr), format_table(csr)
        elif t.ndim:
            step("convert")
            tensor_rows = tensor_sizes(t)
    wide = max(len(name) for name, _ in facts)
    for name, text in facts:
        print(f"{name:<{wide}}  {text}")
    if t.ndim == 2:
        heading("rows by their number of elements")
        print(bars(*degree_histogram(np.diff(csr.indptr))))
        heading("bytes in each format")
        table(["format", "bytes", "x smallest"], [[name, bytes_text(count), f"{x:.2f}"] for name, count, x in sizes])
        heading("blocks")
        table(["size", "blocks", "filled"], blocks)
    elif t.ndim:
        heading("bytes in each format")
        table(["format", "bytes"], tensor_rows)
    return 0
