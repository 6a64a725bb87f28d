"""The tables of docs/linalg.md -> measured again, each beside its peers that are installed.

python benchmarks/linalg.py [--write] [NAME...]     # all of them, or those by name; --write puts them into the page

What is measured is kept in build/linalg-tables.json until all is done: a run that was cut off goes on where it was, at
the same commit with the same libraries. --anew forgets it.

NAME: "direct solvers" (with "growth"), "least squares", "real matrices", "assembly", "colouring", "elasticity",
"several right sides", "preconditioners". --threads 1 2 and --longest SECONDS of one factorisation are of "direct
solvers", --part TEXT is of names of real matrices. OPENWORK_DATA is the folder of real matrices.

Peers: SciPy, MKL PARDISO by pypardiso, qdldl, python-mumps, PyAMG, scikit-fem. Times are seconds or milliseconds of the
processor, of one thread, except where the table says that it has two.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import direct_solvers
import krylov
import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as scipys

import openwork as ow
from openwork import linalg

ROOT = Path(__file__).resolve().parents[1]
PAGE, KEPT = ROOT / "docs" / "linalg.md", ROOT / "build" / "linalg-tables.json"
MATRICES = ("networkit/wave.mtx.gz", "tfdp/whitaker3.mtx.gz", "suitesparse/bcsstk16.mtx.gz",
            "hb_suitesparse/bcsstk09.mtx.gz", "hb_suitesparse/1138_bus.mtx.gz")  # fmt: skip
"""Of the table of preconditioners: graphs' Laplacians plus 1e-3, stiffness matrices, a power network's."""
ROUNDS = 3
MOST, SECONDS = 5000, 15.0
"""Iterations and seconds after which a method is given up."""


class Results:
    """What was measured, by names, in a file that is written after each."""

    def __init__(self, anew: bool) -> None:
        self.run = {"commit": commit(), "on": machine()}
        held = json.loads(KEPT.read_text()) if KEPT.exists() and not anew else {}
        if held.get("run") != self.run:
            held = {"run": self.run, "begun": time.strftime("%Y-%m-%d %H:%M"), "found": {}, "seconds": 0.0}
        self.held = held

    def __call__(self, name: str, measure: Callable[[], Any]) -> Any:
        """The result of a measurement, measured once."""
        if name not in self.held["found"]:
            begin = time.perf_counter()
            self.held["found"][name] = measure()
            self.held["seconds"] += time.perf_counter() - begin
            KEPT.parent.mkdir(exist_ok=True)
            part = KEPT.with_suffix(".part")
            part.write_text(json.dumps(self.held))
            part.replace(KEPT)
        return self.held["found"][name]

    def text(self) -> str:
        """When and where the tables were measured."""
        minutes = self.held["seconds"] / 60
        return (
            f"All tables of this page are of one run of that command, begun {self.held['begun']}, which measured for"
            f" {minutes:.0f} minutes: {self.run['on']}."
        )


def commit() -> str:
    """The commit of the working tree, and a mark where files have changed since; the page itself aside."""
    git = ["git", "-C", str(ROOT)]
    known = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = [*git, "status", "--porcelain", "--untracked-files=no", ":!docs"]
    return known + "+" * bool(subprocess.run(changed, capture_output=True, text=True, check=False).stdout)


def machine() -> str:
    """The processor and the versions of what is measured."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), cpu)
    known = []
    for name in ("numpy", "scipy", "mkl", "qdldl", "python-mumps", "pyamg", "scikit-fem"):
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(known)}"


class TooLong(Exception):
    """Ends a solver."""


def least(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the least time in milliseconds."""
    best, result = np.inf, None
    for _ in range(ROUNDS):
        begin = time.process_time()
        result = call()
        best = min(best, time.process_time() - begin)
        if best > 1:
            break
    return result, best * 1e3


def definite(path: str) -> Any:
    """The matrix of a file as SciPy's CSR; of a graph its Laplacian, shifted."""
    held = sparse.csr_array(ow.read(path).astype("float64").asformat("csr").to_scipy())
    if (held.diagonal() > 0).all():
        return held
    edges = sparse.csr_array(abs(held) + abs(held).T)
    edges.setdiag(0)
    edges.eliminate_zeros()
    edges.data[:] = 1
    return sparse.csr_array(sparse.diags_array(edges.sum(1) + 1e-3) - edges)


def preconditioners(held: Any, tensor: ow.Tensor) -> dict[str, tuple[Callable[[], Any], Any]]:
    """What makes each, and the cg that takes it."""
    ours: dict[str, tuple[Callable[[], Any], Any]] = {
        "none": (lambda: None, None),
        "jacobi": (lambda: linalg.jacobi(tensor), None),
        "ssor": (lambda: linalg.ssor(tensor), None),
        "ic0": (lambda: factored(tensor), None),
        "amg": (lambda: linalg.amg(tensor), None),
        "SciPy, spilu": (lambda: operator(scipys.spilu(held.tocsc())), held),
    }
    try:
        import pyamg
    except ImportError:
        return ours
    ours["SciPy, PyAMG"] = (lambda: pyamg.smoothed_aggregation_solver(held).aspreconditioner(), held)
    return ours


def operator(lu: Any) -> Any:
    """SuperLU's object as an operator."""
    return scipys.LinearOperator(lu.shape, lu.solve)


def factored(tensor: ow.Tensor) -> Any:
    """IC(0), of the matrix with the least shift that lets it exist."""
    for shift in (0.0, 1e-3, 1e-2, 1e-1):
        try:
            return linalg.ic0(tensor, shift=shift)
        except np.linalg.LinAlgError:
            continue
    return None


def solved(a: Any, b: Any, m: Any, cg: Any) -> str:
    """Iterations and milliseconds of a solution to 1e-8."""
    count, end = 0, np.inf

    def callback(_: Any) -> None:
        nonlocal count
        count += 1
        if time.process_time() > end:
            raise TooLong

    def run() -> int:
        nonlocal count, end
        count, end = 0, time.process_time() + SECONDS
        info: int = cg(a, b, M=m, rtol=1e-8, maxiter=MOST, callback=callback)[1]
        return info

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            info, spent = least(run)
        except TooLong:
            return f"not in {SECONDS:.0f} s"
    return f"{spent:.1f}, {count} it." if info == 0 else f"not in {count} it."


def row(path: str) -> dict[str, str]:
    """The cells of a matrix."""
    held = definite(path)
    tensor, b = ow.asarray(held), np.random.default_rng(0).standard_normal(held.shape[0])
    cells = {"": f"{Path(path).name.partition('.')[0]}, {held.shape[0]:,} rows, {held.nnz:,} elements"}
    for name, (make, other) in preconditioners(held, tensor).items():
        m, spent = least(make)
        cg = linalg.cg if other is None else scipys.cg
        cells[name] = (f"{spent:.1f} + " if m is not None else "") + solved(
            tensor if other is None else other, b, m, cg
        )
        if name == "ic0" and m is not None and m.shift:
            cells[name] += f" (shift {m.shift:g})"
    lower = sparse.csr_array(sparse.tril(held))
    triangle = ow.asarray(lower)
    mine, theirs = (
        least(call)[1]
        for call in (lambda: linalg.solve_triangular(triangle, b), lambda: scipys.spsolve_triangular(lower, b))
    )
    cells["solve_triangular"] = f"{mine:.2f}"
    cells["SciPy, spsolve_triangular"] = f"{theirs:.2f}"
    return cells


def preconditioned() -> list[list[str]]:
    """A table whose columns are the matrices."""
    warm = ow.asarray(sparse.csr_array(np.diag(np.full(400, 3.0)) - np.eye(400, k=1) - np.eye(400, k=-1)))
    for make, _ in preconditioners(warm.to_scipy("csr"), warm).values():
        linalg.cg(warm, np.ones(400), M=make())
    rows = [row(str(direct_solvers.DATA / name)) for name in MATRICES]
    return [[name, *(cells.get(name, "") for cells in rows)] for name in rows[0]]


def markdown(table: list[list[str]]) -> str:
    """A table; short rows are filled, but those of one cell are text."""
    width, lines = len(table[0]), []
    for number, cells in enumerate(table):
        text = cells[0] if len(cells) == 1 else "| " + " | ".join(cells + [""] * (width - len(cells))) + " |"
        lines += [text] if number else [text, "|" + " --- |" * width]
    return "\n".join(lines)


def tables(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The names and texts of the tables that are asked for."""
    ow.set_num_threads(1)
    kept = Results(args.anew)
    made: dict[str, Callable[[], list[list[str]]]] = {
        "least squares": direct_solvers.least_squares, "assembly": krylov.assembly, "colouring": krylov.colouring,
        "elasticity": krylov.elasticity, "several right sides": krylov.several, "preconditioners": preconditioned,
    }  # fmt: skip
    for name, make in made.items():
        if name in args.names:
            yield name, markdown(kept(name, make))
    if "real matrices" in args.names:
        yield "real matrices", markdown(list(direct_solvers.real(kept, args.part)))
    if "direct solvers" in args.names:
        *parts, growth = direct_solvers.tables(args.threads, args.rounds, args.longest, kept)
        yield "direct solvers", "\n\n".join(f"{title}:\n\n{markdown(table)}" for title, table in parts)
        yield "growth", markdown(growth[1])
    if {*args.names} >= {*NAMES} and not args.part:
        yield "run", kept.text()
        KEPT.unlink(missing_ok=True)


NAMES = ("direct solvers", "least squares", "assembly", "colouring", "elasticity", "several right sides",
         "preconditioners", "real matrices")  # fmt: skip


def main() -> None:
    """Print the tables, and write them between their marks in the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--longest", type=float, default=100.0)
    parser.add_argument("--part", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--anew", action="store_true")
    args = parser.parse_args()
    for name in args.names:
        if name not in NAMES:
            parser.error(f"no table {name!r}; there are {', '.join(NAMES)}")
    for name, text in tables(args):
        print(f"{name}\n\n{text}\n", flush=True)
        if args.write:
            page, begin, end = PAGE.read_text(encoding="utf-8"), f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
            before, _, rest = page.partition(begin)
            PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
