"""`openwork bench`: times against SciPy and torch in one run, and whether the results are equal."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from openwork.errors import DTypeError, FormatError, InvariantError, ShapeError, UnsupportedError

from .contests import DENSE_LIMIT, Problem, Skip, contest, parse_operation
from .load import read, split_outside, to_csr
from .main import CliError, one_line
from .measure import medians
from .output import bytes_text, count_text, progress, ratio_text, table, time_text
from .peers import set_threads
from .sizes import bytes_of

__all__ = ["Row", "check_request", "measure", "measure_all", "print_rows", "run"]

Step = Callable[[str], None]
REFUSALS = (FormatError, ShapeError, InvariantError, DTypeError, UnsupportedError)


@dataclass
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


def measure(problem: Problem, operation: str, budget: float) -> Row:
    """Compare once, then time, taking turns."""
    row = Row(operation, problem.format)
    try:
        what = contest(problem, operation)
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


def measure_all(csr: Any, formats: Sequence[str], operations: Sequence[str], budget: float, step: Step) -> list[Row]:
    """Every operation on every format; a format that would take over a gigabyte and ten times CSR is left out."""
    rows = []
    sizes = {name.replace(" ", ""): count for name, count in bytes_of(csr).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in formats:
            need = sizes.get(name.lower().replace(" ", ""), 0)
            if need > DENSE_LIMIT and need > 10 * sizes["csr"]:
                rows.append(Row("all", name, note=f"the format would take {bytes_text(need)}"))
                continue
            step(name)
            try:
                problem = Problem.of(csr, name)
            except REFUSALS as reason:
                rows.append(Row("all", name, note=one_line(reason)))
                continue
            for operation in operations:
                step(f"{operation} on {name}")
                rows.append(measure(problem, operation, budget))
    return rows


def print_rows(rows: Sequence[Row]) -> None:
    """One table; what was left out stands below it with its reason."""
    peers = [peer for peer in ("scipy", "torch") if any(peer in row.seconds for row in rows)]
    columns = ["operation", "format", "peer in", "openwork", *peers, *(f"{peer}/ours" for peer in peers), "equal"]
    body = [
        [row.op, row.format, row.peer_format, time_text(row.seconds["openwork"])]
        + [time_text(row.seconds.get(peer)) for peer in peers]
        + [ratio_text(row.ratios.get(peer)) for peer in peers]
        + ["yes" if row.equal else "NO"]
        for row in rows
        if row.seconds
    ]
    table(columns, body, left=(0, 1, 2))
    for row in rows:
        if not row.seconds:
            print(f"left out: {row.op} on {row.format}: {row.note}")


def check_request(formats: Sequence[str], operations: Sequence[str]) -> None:
    """Refuse what is not known before any work is done."""
    import openwork as ow

    if not formats or not operations:
        raise CliError("nothing to measure: --op and --formats each need at least one name")
    for operation in operations:
        parse_operation(operation)
    for name in formats:
        ow.format(name, ndim=2)


def run(arguments: argparse.Namespace) -> int:
    formats, operations = split_outside(arguments.formats), split_outside(arguments.op)
    check_request(formats, operations)
    set_threads(arguments.threads)
    with progress("bench", 1 + len(formats) * (1 + len(operations))) as step:
        step("read")
        csr = to_csr(read(arguments.file)).astype(np.dtype(arguments.dtype))
        rows = measure_all(csr, formats, operations, arguments.seconds, step)
    wrong = [row for row in rows if row.equal is False]
    if arguments.json:
        facts = {"file": arguments.file, "shape": list(csr.shape), "nse": int(csr.nnz), "dtype": arguments.dtype}
        print(json.dumps({**facts, "threads": arguments.threads, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        print(
            f"{arguments.file}: {csr.shape[0]} x {csr.shape[1]}, {count_text(int(csr.nnz))} elements, "
            f"{arguments.dtype}, {arguments.threads} thread{'s' * (arguments.threads > 1)}"
        )
        print_rows(rows)
    if wrong:
        print(f"openwork bench: {len(wrong)} results differ from SciPy's", file=sys.stderr)
    return 1 if wrong else 0
