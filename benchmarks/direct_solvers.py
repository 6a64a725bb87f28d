"""Laplacians, and the real matrices of the data folder -> seconds of direct solvers, as the tables of docs/linalg.md.

python benchmarks/direct_solvers.py [--threads 1 2] [--rounds 3] [--only NAME] # tables of Laplacians
python benchmarks/direct_solvers.py --real [--part TEXT]                       # square real matrices of the data folder

`--write docs/linalg.md` puts the table between its marks in that page.

Peers that are installed: SciPy's SuperLU, MKL PARDISO (pypardiso), qdldl, python-mumps. Each number of threads has a
process of its own, in which all take turns; times are the least.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as scipys

import openwork as ow
from openwork import linalg

DATA = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LARGEST = 400_000
"""Elements of a real matrix that is not left out."""
BEGIN, END = "<!-- direct solvers: begin -->", "<!-- direct solvers: end -->"
Steps = dict[str, Callable[[], Any]]


def laplacian(*extents: int) -> Any:
    """The Laplacian of a grid, Dirichlet."""
    total = sp.csr_array((1, 1))
    for n in extents:
        line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
        total = sp.kron(total, sp.eye_array(n)) + sp.kron(sp.eye_array(total.shape[0]), line)
    return sp.csr_array(total)


GRIDS = {"2-D 400^2": (400, 400), "3-D 24^3": (24,) * 3, "3-D 32^3": (32,) * 3}


def ours(A: Any, kind: str, ordering: str) -> Steps:
    held: dict[str, Any] = {}

    def first() -> None:
        held["F"] = linalg.factorized(ow.asarray(sp.csr_array(A)), kind, ordering=ordering)

    b = np.ones(A.shape[0])
    return {"first": first, "again": lambda: held["F"].update(A.data), "solve": lambda: held["F"](b)}


def superlu(A: Any, **options: Any) -> Steps:
    held: dict[str, Any] = {}
    b, C = np.ones(A.shape[0]), sp.csc_array(A)
    return {
        "first": lambda: held.update(F=scipys.splu(C, **options)),
        "solve": lambda: held["F"].solve(b),
    }


def pardiso(A: Any) -> Steps:
    import pypardiso

    U, b = sp.csr_matrix(sp.triu(A)), np.ones(A.shape[0])
    solver = pypardiso.PyPardisoSolver(mtype=2)

    def phase(number: int) -> Any:
        solver.set_phase(number)
        return solver._call_pardiso(U, b)

    return {"first": lambda: phase(12), "again": lambda: phase(22), "solve": lambda: phase(33)}


def qdldl(A: Any) -> Steps:
    import qdldl as library

    held: dict[str, Any] = {}
    C, b = sp.csc_matrix(A), np.ones(A.shape[0])
    return {
        "first": lambda: held.update(F=library.Solver(C)),
        "again": lambda: held["F"].update(C),
        "solve": lambda: held["F"].solve(b),
    }


def mumps(A: Any) -> Steps:
    import mumps as library

    context, b = library.Context(), np.ones(A.shape[0])

    def first() -> None:
        context.set_matrix(A.tocoo(), symmetric=True)
        context.analyze()
        context.factor()

    return {"first": first, "again": lambda: context.factor(reuse_analysis=True), "solve": lambda: context.solve(b)}


SYMMETRIC = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
SOLVERS: dict[str, Callable[[Any], Steps]] = {
    "openwork, cholesky": lambda A: ours(A, "cholesky", "auto"),
    "openwork, ldl": lambda A: ours(A, "ldl", "auto"),
    "openwork, lu": lambda A: ours(A, "lu", "auto"),
    "MKL PARDISO, SPD": pardiso,
    "qdldl": qdldl,
    "MUMPS": mumps,
    "SuperLU, MMD_AT_PLUS_A": lambda A: superlu(A, **SYMMETRIC),
    "SuperLU, COLAMD": superlu,
}


def measure(names: list[str], rounds: int) -> None:
    """Print one line for each solver: seconds of each grid."""
    cells: dict[str, list[str]] = {}
    for grid in names:
        A = laplacian(*GRIDS[grid])
        steps: dict[str, Steps] = {}
        for name, make in SOLVERS.items():
            try:
                steps[name] = make(A)
            except Exception:  # a peer that is not installed, or does not load
                continue
        best: dict[tuple[str, str], float] = {}
        for turn in range(rounds):
            for name, calls in steps.items():
                for step, call in calls.items():
                    if turn and best[name, step] > 5:
                        continue
                    begin = time.perf_counter()
                    call()
                    seconds = time.perf_counter() - begin
                    best[name, step] = min(seconds, best.get((name, step), np.inf))
        for name, calls in steps.items():
            texts = [f"{best[name, s]:.2f}" if s in calls else "-" for s in ("first", "again")]
            texts.append(f"{best[name, 'solve']:.3f}")
            cells.setdefault(name, []).append("; ".join(texts))
    for name, texts in cells.items():
        print(f"| {name} | {' | '.join(texts)} |")


def tables(threads: list[int], names: list[str], rounds: int) -> Iterator[str]:
    """The tables of Laplacians, each number of threads in a process of its own."""
    for count in threads:
        variables = ("OPENWORK_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(variables, str(count))}
        command = [sys.executable, __file__, "--inside", "--rounds", str(rounds), "--only", *names]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        yield f"\n{count} thread{'s' * (count > 1)}:\n\n| | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}"
        yield done.stdout.strip()


def squares(part: str) -> Iterator[tuple[str, Any]]:
    """The square real matrices of the data folder by name, and the KKT matrices [I, A.T; A, 0] of linear programs."""
    with (DATA / "MANIFEST.tsv").open() as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            name = row["file"]
            if part not in name or not name.endswith((".mtx", ".mtx.gz")) or "complex" in row["format"]:
                continue
            if name.startswith("tricky/"):
                continue
            try:
                t = ow.read(DATA / name)
                if not isinstance(t, ow.Tensor) or t.ndim != 2 or not 0 < t.nse <= LARGEST:
                    continue
                A = sp.csr_array(t.asformat("csr").astype("float64").to_scipy())
            except (ValueError, TypeError, NotImplementedError):
                continue
            if A.shape[0] == A.shape[1]:
                yield name, A
            elif name.startswith(("lp/", "qp/")):
                A = A.T if A.shape[0] > A.shape[1] else A
                yield name + " KKT", sp.csr_array(sp.block_array([[sp.eye_array(A.shape[1]), A.T], [A, None]]))


def backward_error(A: Any, x: Any, b: Any) -> float:
    size = abs(A).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    return float(np.abs(A @ x - b).max() / size)


def attempt(A: Any, kind: str) -> str:
    """The kind that was computed, the seconds and the backward error, or why it was refused."""
    b = A @ np.ones(A.shape[0])
    begin = time.perf_counter()
    try:
        F = linalg.factorized(ow.asarray(A), kind)
        x = F(b)
    except np.linalg.LinAlgError as error:
        text = str(error)
        return "refused: not definite" if "not positive definite" in text else "refused: singular"
    except MemoryError:
        return "refused: memory"
    seconds = time.perf_counter() - begin
    return f"{F.kind} {1e3 * seconds:.0f} ms, {backward_error(A, x, b):.0e}"


def real(part: str) -> Iterator[str]:
    """The table of real matrices."""
    yield "| matrix | rows | elements | symmetric | auto | own kinds | SuperLU |\n|" + " --- |" * 7
    refused: list[str] = []
    for name, A in squares(part):
        symmetric = bool(abs(A - A.T).max() == 0) if A.nnz else True
        kinds = ["ldl"] if symmetric else ["lu"]
        if symmetric and (A.diagonal() > 0).all():
            kinds.insert(0, "cholesky")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = [attempt(A, "auto"), "; ".join(attempt(A, kind) for kind in kinds), attempt(A, "superlu")]
        if all("refused" in cell and ", " not in cell for cell in cells):
            refused.append(name)
            continue
        yield f"| {name} | {A.shape[0]} | {A.nnz} | {'yes' if symmetric else 'no'} | {' | '.join(cells)} |"
    yield f"\nSingular, and refused by all, SuperLU included, {len(refused)} matrices: {', '.join(refused)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(GRIDS))
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--part", default="")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    if args.inside:
        measure(args.only, args.rounds)
        return
    lines: list[str] = []
    for line in real(args.part) if args.real else tables(args.threads, args.only, args.rounds):
        lines.append(line)
        print(line, flush=True)
    if args.write:
        text = args.write.read_text(encoding="utf-8")
        mark = " real" if args.real else ""
        begin, end = (m.replace(" solvers:", f" solvers{mark}:") for m in (BEGIN, END))
        before, _, rest = text.partition(begin)
        after = rest.partition(end)[2]
        args.write.write_text(before + begin + "\n" + "\n".join(lines).strip() + "\n" + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
