"""`openwork info`: what a file holds, and what it would take in each format."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import openwork as ow
from openwork.advice.sizes import block_count, bytes_of

from .load import read, to_csr
from .main import CliError
from .output import bars, bytes_text, count_text, heading, json_text, percent_text, progress, shape_text, table

__all__ = ["bandwidth", "degree_histogram", "describe", "run", "symmetry"]


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
    labels = [count_text(a) if a < 2 else f"{count_text(a)}-{count_text(2 * a - 1)}" for a in edges]
    return labels, [int(count) for count in counts]


def describe(t: Any) -> dict[str, Any]:
    """The facts of a tensor, by name: those of any rank, those of a matrix, the bytes in each format."""
    facts = {
        "shape": list(t.shape), "dtype": str(t.dtype), "nse": int(t.nse), "density": float(t.density),
        "format": str(t.format), "nbytes": int(t.nbytes),
    }  # fmt: skip
    with progress("info", 3) as step:
        if t.ndim == 2:
            step("structure")
            csr = to_csr(t)
            facts |= _matrix_facts(csr)
            step("blocks")
            facts["blocks"] = _blocks(csr)
            step("formats")
            facts["formats"] = dict(sorted(bytes_of(csr).items(), key=lambda item: item[1]))
        elif t.ndim:
            step("formats")
            facts["formats"] = {name: int(t.asformat(name).nbytes) for name in ("coo", "csf")}
    return facts


def _matrix_facts(csr: Any) -> dict[str, Any]:
    below, above = bandwidth(csr)
    lengths = np.diff(csr.indptr)
    labels, counts = degree_histogram(lengths)
    return {
        "symmetric": symmetry(csr), "bandwidth": {"below": below, "above": above},
        "row_lengths": {
            "mean": float(lengths.mean()) if len(lengths) else 0.0, "longest": int(lengths.max(initial=0)),
            "empty": int(np.count_nonzero(lengths == 0)), "histogram": dict(zip(labels, counts, strict=True)),
        },
        "explicit_zeros": int(np.count_nonzero(csr.data == 0)),
    }  # fmt: skip


def _blocks(csr: Any) -> list[dict[str, Any]]:
    """Blocks of each size: how many hold an element, and the share of their places that do."""
    counts = {b: block_count(csr, b, b) for b in (2, 3, 4, 8, 16)}
    return [
        {"size": b, "count": count, "filled": int(csr.indptr[-1]) / (count * b * b) if count else 0.0}
        for b, count in counts.items()
    ]


def cache_rows() -> list[tuple[str, str]]:
    """What the cache of kernels holds."""

    info = ow.cache_info()
    numbers = {name: value for name, value in info.items() if isinstance(value, int)}
    asked = ", ".join(
        f"{count_text(numbers[n])} {n.replace('_', ' ')}"
        for n in ("hits", "misses", "from_disk", "compiled", "evicted")
    )
    ignored = "" if info["ignored"] is None else f", not used: {info['ignored']}"
    return [
        ("folder", f"{info['folder'] or 'none'}{ignored}"),
        ("on disk", f"{count_text(numbers['files'])} kernels, {bytes_text(numbers['file_bytes'])}"),
        (
            "in memory",
            f"{count_text(numbers['kernels'])} of at most {count_text(numbers['limit'])} kernels,"
            f" {bytes_text(numbers['bytes'])}, {count_text(numbers['plans'])} plans",
        ),
        ("this process", asked),
    ]


def run(arguments: argparse.Namespace) -> int:
    if arguments.file is None and not arguments.cache:
        raise CliError("expected a file, or --cache (see openwork info --help)")
    found = {} if arguments.file is None else {"file": arguments.file, **describe(read(arguments.file))}
    if arguments.json:
        print(json_text(found | ({"cache": ow.cache_info()} if arguments.cache else {})))
        return 0
    if arguments.cache:
        print_facts(cache_rows())
    if found:
        print_tensor(found)
    return 0


def print_facts(rows: Sequence[tuple[str, str]]) -> None:
    """Names and what they are, one in a line."""
    wide = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:<{wide}}  {text}" for name, text in rows))


def print_tensor(found: dict[str, Any]) -> None:
    """Print the facts of a tensor as tables."""
    rows = [
        ("shape", shape_text(found["shape"])), ("dtype", found["dtype"]), ("elements", count_text(found["nse"])),
        ("density", percent_text(found["density"])), ("read as", found["format"]),
        ("bytes", bytes_text(found["nbytes"])),
    ]  # fmt: skip
    if "symmetric" in found:
        band, lengths = found["bandwidth"], found["row_lengths"]
        rows += [
            ("symmetric", found["symmetric"]),
            ("bandwidth", f"{count_text(band['below'])} below, {count_text(band['above'])} above the diagonal"),
            (
                "row lengths",
                f"mean {lengths['mean']:,.1f}, longest {count_text(lengths['longest'])},"
                f" empty {count_text(lengths['empty'])}",
            ),
            ("explicit zeros", count_text(found["explicit_zeros"])),
        ]
    print_facts(rows)
    if "symmetric" in found:
        heading("rows by their number of elements")
        print(bars(list(lengths["histogram"]), list(lengths["histogram"].values())))
    if "formats" in found:
        heading("bytes in each format")
        least = max(1, min(found["formats"].values()))
        sizes = [[name, bytes_text(count), f"{count / least:,.2f}"] for name, count in found["formats"].items()]
        table(["format", "bytes", "x smallest"], sizes)
    if "blocks" in found:
        heading("blocks")
        blocks = [
            [f"{b['size']} x {b['size']}", count_text(b["count"]), percent_text(b["filled"])] for b in found["blocks"]
        ]
        table(["size", "blocks", "filled"], blocks)
