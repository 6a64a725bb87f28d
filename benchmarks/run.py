"""Times on generated matrices against SciPy and torch, in one run, and what compiling and calling cost.

    python benchmarks/run.py                          # 1e4 and 1e6 elements, every kind of matrix
    python benchmarks/run.py --nse 1e7 --kinds uniform,power-law --seconds 5
    python benchmarks/run.py --only latency

The table is that of `openwork bench`: medians of rounds in which everybody has one turn; `scipy/ours` is SciPy's time
divided by ours. Every result is compared with SciPy's.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from latency import latency_rows

from openwork.cli.bench import Row, check_request, measure_all, print_rows
from openwork.cli.generate import KINDS, by_nse
from openwork.cli.load import split_outside
from openwork.cli.output import count_text, heading, progress, table, time_text
from openwork.cli.peers import set_threads

PRODUCTS = ("spmv", "spmm:8", "spmm:32", "spmm:128", "sddmm:32")
OTHERS = ("to_coo", "to_csr", "to_csc", "to_dense", "sum", "sum:0", "sum:1")
PLAN = (
    (("csr",), (*PRODUCTS, "vecmat", *OTHERS)),
    (("coo",), ("spmv", "spmm:32", "to_csr", "to_csc", "to_dense", "sum:0", "sum:1")),
    (("csc",), ("spmv", "spmm:32", "to_csr", "sum:0", "sum:1")),
)
BLOCKED_PLAN = (
    (("bsr(4,4)",), ("spmv", "spmm:8", "spmm:32", "spmm:128", "to_csr", "to_dense")),
    (("csr",), ("to_bsr:4",)),
)


def numbers(text: str) -> list[int]:
    return [int(float(part)) for part in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nse", type=numbers, default=[10_000, 1_000_000], help="numbers of elements, default 1e4,1e6")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"default {','.join(KINDS)}")
    parser.add_argument("--op", default=None, help="only these operations, on --formats")
    parser.add_argument("--formats", default="csr", help="formats for --op, default csr")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="time to spend on each row, default 0.5")
    parser.add_argument("--only", choices=["matrices", "latency"], default=None)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    unknown = [kind for kind in arguments.kinds.split(",") if kind not in KINDS]
    if unknown:
        parser.error(f"unknown kind {unknown[0]!r}; known: {', '.join(KINDS)}")
    return arguments


def plan_of(kind: str, arguments: argparse.Namespace) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    if arguments.op is not None:
        return [(tuple(split_outside(arguments.formats)), tuple(split_outside(arguments.op)))]
    return [*PLAN, *(BLOCKED_PLAN if kind in ("stencil", "blocked") else ())]


def measure_matrix(csr: Any, kind: str, arguments: argparse.Namespace) -> list[Row]:
    plan = plan_of(kind, arguments)
    steps = sum(len(formats) * (1 + len(operations)) for formats, operations in plan)
    rows: list[Row] = []
    with progress(kind, steps) as step:
        for formats, operations in plan:
            rows += measure_all(csr, formats, operations, arguments.seconds, step)
    return rows


def main() -> int:
    arguments = parse()
    if arguments.op is not None:
        check_request(split_outside(arguments.formats), split_outside(arguments.op))
    set_threads(arguments.threads)
    found: list[dict[str, Any]] = []
    right = True
    for nse in arguments.nse if arguments.only != "latency" else []:
        for kind in arguments.kinds.split(","):
            csr = by_nse(nse)[kind]().tocsr()
            title = f"{kind}: {csr.shape[0]} x {csr.shape[1]}, {count_text(int(csr.nnz))} elements, float64"
            rows = measure_matrix(csr, kind, arguments)
            right &= all(row.equal is not False for row in rows)
            found.append({"matrix": title, "threads": arguments.threads, "rows": [asdict(row) for row in rows]})
            if not arguments.json:
                heading(f"{title}, {arguments.threads} threads")
                print_rows([row for row in rows if row.note != "it is in this format already"])
    latency = latency_rows() if arguments.only != "matrices" else []
    if arguments.json:
        print(json.dumps({"matrices": found, "latency": dict(latency)}, indent=2))
    elif latency:
        heading("compiling and calling (4 x 4, float64)")
        table(["what", "time"], [[name, time_text(value)] for name, value in latency])
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
