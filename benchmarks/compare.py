"""openwork against every peer that is installed, in one run: co-iteration, products, reductions, conversions.

    python benchmarks/compare.py                              # uniform and power-law, 1e6 and 1e7 elements
    python benchmarks/compare.py --quick                      # 1e5 elements, a few seconds
    python benchmarks/compare.py matrix.mtx --threads 2
    python benchmarks/compare.py --write docs/benchmarks.md

Everybody has one turn per round; the table shows the median (or with --best the least) milliseconds of each, and the
fastest peer's time divided by ours. Every peer's result is compared with SciPy's. Peers that cannot do an operation,
or take over six seconds for it, have a dash.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import compare_peers
import numpy as np
from compare_peers import Matrix
from compare_rows import Row, matrix_rows, tensor_rows, tiny_rows

from openwork.advice.measure import once, samples
from openwork.cli.generate import rmat, uniform
from openwork.cli.output import count_text, ratio_text, shape_text, table_text

PATIENCE = 6.0
"""Seconds that one call may take; who is slower is left out."""


@dataclass
class Line:
    """A measured row: milliseconds and equality by name."""

    name: str
    milliseconds: dict[str, float]
    equal: dict[str, bool]
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The fastest peer's time over ours; peers with a wrong result do not count."""
        ours = self.milliseconds.get("openwork")
        rivals = [t for n, t in self.milliseconds.items() if n != "openwork" and self.equal.get(n)]
        return min(rivals) / ours if ours and rivals else None

    def cells(self, peers: Iterable[str]) -> list[str]:
        shown = [milliseconds_text(self.milliseconds.get(p), self.equal.get(p)) for p in peers]
        return [self.name, *shown, ratio_text(self.ratio)]


def milliseconds_text(value: float | None, equal: bool | None) -> str:
    if value is None:
        return "-"
    digits = f"{value:.4f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"
    return digits if equal else f"{digits} (differs)"


def measured(row: Row, peers: dict[str, str], seconds: float, best: bool) -> Line:
    """Try everybody once and compare; then time those that can do it, taking turns."""
    runs = {name: run for name, run in row.runs.items() if name in peers}
    equal: dict[str, bool] = {}
    if not runs:
        return Line(row.name, {}, {}, row.note)
    want = runs["scipy"]()
    for name in list(runs):
        try:
            took = once(partial(check, row, name, runs[name], want, equal), 1)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, MemoryError):
            took = np.inf
        if took > PATIENCE and name != "openwork":
            del runs[name]
    del want
    found = samples(runs, seconds)
    pick = min if best else np.median
    return Line(row.name, {n: 1e3 * float(pick(s)) for n, s in found.items()}, equal, row.note)  # type: ignore[operator]


def check(row: Row, name: str, run: Any, want: Any, equal: dict[str, bool]) -> None:
    equal[name] = bool(row.equal(run(), want))


def like(csr: Any, seed: int) -> Matrix:
    """A matrix of the same shape: half of the elements of `csr`, and as many in the other rows' places."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    coo = csr.tocoo()
    keep = rng.random(len(coo.data)) < 0.5
    rows = np.where(keep, coo.row, rng.permutation(coo.row))
    out = csr_array((rng.random(len(rows)), (rows, coo.col)), shape=csr.shape)
    out.sum_duplicates()
    return Matrix(out)


def subjects(arguments: argparse.Namespace) -> Iterable[tuple[str, Any, list[Any]]]:
    """Title, matrix and the other operands of each part."""
    for nse in (100_000,) if arguments.quick else (1_000_000, 10_000_000):
        if nse > arguments.largest:
            continue
        label = str(len(str(nse)) - 2)
        n = nse // 10
        generators = {
            f"U{label}": lambda seed, n=n, nse=nse: uniform(n, n, nse, seed),
            f"P{label}": lambda seed, n=n, nse=nse: rmat((n - 1).bit_length(), nse, seed),
        }
        for name, make in generators.items():
            if arguments.kinds and name not in arguments.kinds.split(","):
                continue
            a, *others = (make(seed).tocsr() for seed in range(4))
            kind = "uniform" if name[0] == "U" else "R-MAT"
            yield f"{name}: {kind}, {shape_text(a.shape)}, {count_text(a.nnz)} elements", a, others
    for path in arguments.files:
        yield (*from_file(path), [])


def from_file(path: str) -> tuple[str, Any]:
    from openwork.cli.load import read, to_csr

    csr = to_csr(read(path)).astype(np.float64)
    return f"{Path(path).name}: {shape_text(csr.shape)}, {count_text(csr.nnz)} elements", csr


def parts(arguments: argparse.Namespace, peers: dict[str, str]) -> Iterable[tuple[str, list[Line]]]:
    """The measured table of every subject."""
    time = partial(measured, peers=peers, seconds=arguments.seconds, best=arguments.best)
    wanted = arguments.only.split(",") if arguments.only else []

    def lines(rows: Iterable[Row]) -> list[Line]:
        return [time(row) for row in rows if not wanted or any(w in row.name for w in wanted)]

    for title, csr, given in subjects(arguments):
        csr.sort_indices()
        others = [Matrix(m) for m in given] or [like(csr, seed) for seed in (1, 2, 3)]
        yield title, lines(matrix_rows(Matrix(csr), *others))
    nse = 100_000 if arguments.quick else 1_000_000
    rng = np.random.default_rng(0)
    shape = (1000, 1000, 1000)
    indices = np.stack([rng.integers(0, n, nse) for n in shape])
    yield (
        f"tensor: uniform, 1,000 x 1,000 x 1,000, {count_text(nse)} elements",
        lines(tensor_rows(indices, rng.random(nse), shape)),
    )
    yield "tiny: 10 x 10, 20 elements", lines(tiny_rows())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="matrices to measure beside the generated ones")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="1e5 elements")
    parser.add_argument("--largest", type=float, default=1e7, help="no generated matrix with more elements")
    parser.add_argument("--kinds", default="", help="of U5,P5,U6,P6: only these")
    parser.add_argument("--only", default="", help="only rows whose names hold one of these, separated by commas")
    parser.add_argument("--peers", default="", help="only these peers, separated by commas")
    parser.add_argument("--seconds", type=float, default=2.0, help="time to spend on each row, default 2")
    parser.add_argument("--best", action="store_true", help="the least of the times instead of the median")
    parser.add_argument("--write", metavar="PATH", default=None, help="write the table as Markdown too")
    return parser.parse_args()


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(path: str, head: list[str], tables: list[tuple[str, list[str], list[list[str]], list[str]]]) -> None:
    """Replace what is between the markers of this number of threads, or make the page."""
    place = Path(path)
    begin, end = f"<!-- compare: {head[0]} -->", "<!-- end -->"
    body = [begin, f"## {head[0]}", "", *head[1:], ""]
    for title, columns, rows, notes in tables:
        body += [f"### {title}", "", markdown(columns, rows), "", *notes, *([""] if notes else [])]
    text = "\n".join([*body, end]) + "\n"
    old = place.read_text(encoding="utf-8") if place.exists() else "# Benchmarks\n\n"
    if begin in old:
        before, rest = old.split(begin, 1)
        text = before + text + rest.partition(end + "\n")[2]
    else:
        text = old + ("" if old.endswith("\n\n") else "\n") + text
    place.write_text(text, encoding="utf-8")


def main() -> int:
    arguments = parse()
    warnings.simplefilter("ignore")
    peers = compare_peers.installed(arguments.threads)
    if arguments.peers:
        kept = {"openwork", "scipy", *arguments.peers.split(",")}
        peers = {name: version for name, version in peers.items() if name in kept}
    compare_peers.set_threads(peers, arguments.threads)
    statistic = "least" if arguments.best else "median"
    head = [
        f"{arguments.threads} thread{'s' * (arguments.threads > 1)}",
        ", ".join(f"{name} {version}" for name, version in peers.items()) + f", NumPy {np.__version__}.",
        f"{processor()}, {os.cpu_count()} processors; Python {platform.python_version()}; milliseconds, {statistic} of"
        " interleaved rounds; ratio: the fastest peer's time divided by ours.",
    ]
    print("\n".join(head))
    tables = []
    right = True
    for title, lines in parts(arguments, peers):
        if not lines:
            continue
        shown = [p for p in peers if any(p in line.milliseconds for line in lines)]
        columns = [title.split(":")[0], *shown, "ratio"]
        rows = [line.cells(shown) for line in lines if line.milliseconds]
        notes = [f"{line.name}: {line.note}." for line in lines if line.note]
        right &= all(line.equal.get("openwork", True) for line in lines)
        print(f"\n{title}\n{table_text(columns, rows)}", flush=True)
        print("\n".join(notes))
        tables.append((title, columns, rows, notes))
    if arguments.write:
        written(arguments.write, head, tables)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
