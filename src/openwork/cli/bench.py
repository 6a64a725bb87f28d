"""`openwork bench`: times against SciPy and torch in one run, and whether the results are equal."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

import openwork as ow
from openwork.advice.measure import medians
from openwork.advice.sizes import bytes_of
from openwork.errors import DTypeError, FormatError, InvariantError, ShapeError, UnsupportedError

from ..classes import define
from .contests import DENSE_LIMIT, Problem, Skip, contest, parse_operation
from .contests_tensor import TensorProblem, parse_tensor_operation, tensor_contest
from .load import read, split_outside, to_csr
from .main import CliError, one_line
from .output import bytes_text, count_text, json_text, progress, ratio_text, shape_text, table, time_text
from .peers import set_threads

__all__ = ["Row", "check_request", "measure", "measure_all", "print_rows", "run"]

MATRIX = ("spmv,spmm:8,spmm:32,spmm:128,sddmm:32,to_csc,to_coo,to_coo:columns,sum,sum:0,sum:1", "csr,coo,csc,bsr(4,4)")
TENSOR = ("mttkrp:32,sum,sum:0", "coo,csf")
Step = Callable[[str], None]
REFUSALS = (FormatError, ShapeError, InvariantError, DTypeError, UnsupportedError)


@define(slots=False)
class Row:
    """One line of the table: median seconds of each, and the peers' time divided by ours."""

    op: str
    format: str
    peer_format: str = "-"
    equal: bool | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    note: str = ""


def works(run: Callable[[], object]) -> bool:
    """Whether a peer can do this at all (torch lacks some operations on some layouts)."""
    try:
        run()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return False
    return True


def measure(problem: Problem | TensorProblem, operation: str, budget: float) -> Row:
    """Compare once, then time, taking turns."""
    row = Row(operation, problem.format)
    try:
        what = contest(problem, operation) if isinstance(problem, Problem) else tensor_contest(problem, operation)
    except (Skip, UnsupportedError) as reason:
        row.note = one_line(reason)
        return row
    row.peer_format = what.peer_format
    runs = dict(what.runs)
    row.equal = what.equal(runs["openwork"]())
    for peer in [name for name in runs if name != "openwork"]:
        if not works(runs[peer]):
            del runs[peer]
    row.seconds = medians(runs, budget)
    ours = row.seconds["openwork"]
    row.ratios = {name: seconds / ours for name, seconds in row.seconds.items() if name != "openwork"}
    return row


def measure_all(
    subject: Any, formats: Sequence[str], operations: Sequence[str], budget: float, step: Step
) -> Iterator[Row]:
    """Rows of every operation on every format of `subject`, a SciPy CSR array or a tensor in COO, as they are measured.

    A format that would take over a gigabyte and ten times CSR is left out.
    """
    matrix = issparse(subject)
    sizes = {name.replace(" ", ""): count for name, count in bytes_of(subject).items()} if matrix else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in formats:
            need = sizes.get(name.lower().replace(" ", ""), 0)
            if need > DENSE_LIMIT and need > 10 * sizes["csr"]:
                yield Row("all", name, note=f"the format would take {bytes_text(need)}")
                continue
            step(name)
            try:
                problem = Problem.of(subject, name) if matrix else TensorProblem.of(subject, name)
            except REFUSALS as reason:
                yield Row("all", name, note=one_line(reason))
                continue
            for operation in operations:
                step(f"{operation} on {name}")
                yield measure(problem, operation, budget)


def print_rows(rows: Sequence[Row]) -> None:
    """One table of times, and of the peers' divided by ours; what was left out stands below it with its reason."""
    peers = [peer for peer in ("scipy", "torch") if any(peer in row.seconds for row in rows)]
    columns = ["operation", "format", "peer in", "openwork", *(text for peer in peers for text in (peer, "ratio"))]
    measured = [row for row in rows if row.seconds]
    body = [
        [row.op, row.format, row.peer_format, time_text(row.seconds["openwork"])]
        + [text for peer in peers for text in (time_text(row.seconds.get(peer)), ratio_text(row.ratios.get(peer)))]
        for row in measured
    ]
    table(columns, body, left=(0, 1, 2))
    wrong = [f"{row.op} on {row.format}" for row in measured if row.equal is False]
    if measured:
        print(f"DIFFERENT from SciPy's: {', '.join(wrong)}" if wrong else "every result is equal to SciPy's")
    for row in rows:
        if not row.seconds:
            print(f"left out: {row.op} on {row.format}: {row.note}")


def check_request(formats: Sequence[str], operations: Sequence[str], ndim: int = 2) -> None:
    """Refuse what is not known before any work is done."""
    if not formats or not operations:
        raise CliError("nothing to measure: --op and --formats each need at least one name")
    for operation in operations:
        (parse_operation if ndim == 2 else parse_tensor_operation)(operation)
    for name in formats:
        ow.format(name, ndim=ndim)


def canonical(t: Any, dtype: str) -> Any:
    """A matrix as a SciPy CSR array, another tensor as COO; no duplicates, of `dtype`."""
    return to_csr(t).astype(np.dtype(dtype)) if t.ndim == 2 else t.asformat("coo").astype(np.dtype(dtype))


def title(arguments: argparse.Namespace, t: Any) -> str:
    threads = f"{arguments.threads} thread{'s' * (arguments.threads > 1)}"
    return f"{arguments.file}: {shape_text(t.shape)}, {count_text(int(t.nnz))} elements, {arguments.dtype}, {threads}"


def run(arguments: argparse.Namespace) -> int:
    set_threads(arguments.threads)
    subject = canonical(read(arguments.file), arguments.dtype)
    usual = MATRIX if subject.ndim == 2 else TENSOR
    operations, formats = (
        split_outside(usual[k] if given is None else given) for k, given in enumerate((arguments.op, arguments.formats))
    )
    check_request(formats, operations, subject.ndim)
    rows: list[Row] = []
    try:
        with progress("bench", len(formats) * (1 + len(operations))) as step:
            rows.extend(measure_all(subject, formats, operations, arguments.seconds, step))
    except KeyboardInterrupt:
        if rows and not arguments.json:
            print_rows(rows)
        raise
    if arguments.json:
        facts = {"file": arguments.file, "shape": list(subject.shape), "nse": int(subject.nnz)}
        facts |= {"dtype": arguments.dtype, "threads": arguments.threads, "rows": [asdict(row) for row in rows]}
        print(json_text(facts))
    else:
        print(title(arguments, subject))
        print_rows(rows)
    wrong = [row for row in rows if row.equal is False]
    if wrong:
        print(f"openwork bench: {len(wrong)} results differ from SciPy's", file=sys.stderr)
    return 1 if wrong else 0
