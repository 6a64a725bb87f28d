"""Laplacians, elastic blocks, and the real matrices of the data folder -> seconds of direct solvers.

The tables "direct solvers", "growth", "least squares" and "real matrices" of `benchmarks/linalg.py`, which is the
command. Peers that are installed: SciPy's SuperLU, MKL PARDISO (pypardiso), qdldl, python-mumps. Each problem and
number of threads has a process of its own, in which all take turns; times are the least. Of one thread they are of the
processor, which others' work does not lengthen.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as scipys
from krylov import bricks

import openwork as ow
from openwork import linalg

DATA = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SUPERLU = 2e7
"""Elements of our factor from which a real matrix is not given to SuperLU, which takes minutes."""
Steps = dict[str, Callable[[], Any]]
Kept = Callable[[str, Callable[[], Any]], Any]
"""A name and what measures -> the result, kept in a file so that a run that was cut off goes on."""


def laplacian(*extents: int) -> Any:
    """The Laplacian of a grid, Dirichlet."""
    total = sp.csr_array((1, 1))
    for n in extents:
        line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
        total = sp.kron(total, sp.eye_array(n)) + sp.kron(sp.eye_array(total.shape[0]), line)
    return sp.csr_array(total)


PROBLEMS: dict[str, list[tuple[int, ...]]] = {
    "2-D Laplacian": [(100, 100), (316, 316), (1000, 1000)],
    "3-D Laplacian": [(22,) * 3, (46,) * 3, (100,) * 3],
    "3-D elasticity": [(14,) * 3, (31,) * 3, (45,) * 3],
}
"""Extents of grids, and of blocks of bricks."""
EXPONENTS = {"2-D Laplacian": (None, 1.5), "3-D Laplacian": (4 / 3, 2.0), "3-D elasticity": (4 / 3, 2.0)}
"""Growth of elements and operations by nested dissection: powers of n, None of n log2 n."""
PATIENCE = 40.0
"""Seconds above which a solver is left out, as its time at the size before predicts."""
COMPARED = ("openwork, cholesky", "MKL PARDISO, SPD")
BY_DISSECTION = "openwork, cholesky by nd"
"""Of grids of two dimensions, whose order is minimum degree by default."""
SEVERAL_THREADS = 2e5
"""Rows from which problems of three dimensions are measured on one thread alone."""
ALONE = 5e4
"""Rows from which solvers run one after the other, once, so that the memory holds one of them."""


def matrix(problem: str, extents: tuple[int, ...]) -> Any:
    """The matrix of a problem, as SciPy's."""
    return bricks(*extents)[0].to_scipy("csr") if "elastic" in problem else laplacian(*extents)


def ours(A: Any, kind: str, ordering: str) -> Steps:
    held: dict[str, Any] = {}

    def first() -> None:
        held.clear()
        held["F"] = linalg.factorized(ow.asarray(sp.csr_array(A)), kind, ordering=ordering)

    b = np.ones(A.shape[0])
    steps = {"first": first, "again": lambda: held["F"].update(A.data), "solve": lambda: held["F"](b)}
    return {**steps, "size": lambda: (held["F"].symbolic.nse, held["F"].symbolic.flops, held["F"].symbolic.method)}


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

    steps = {"first": lambda: phase(12), "again": lambda: phase(22), "solve": lambda: phase(33)}
    return {**steps, "free": lambda: solver.free_memory(everything=True)}


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
    BY_DISSECTION: lambda A: ours(A, "cholesky", "nd"),
    "openwork, ldl": lambda A: ours(A, "ldl", "auto"),
    "openwork, lu": lambda A: ours(A, "lu", "auto"),
    "MKL PARDISO, SPD": pardiso,
    "qdldl": qdldl,
    "MUMPS": mumps,
    "SuperLU, MMD_AT_PLUS_A": lambda A: superlu(A, **SYMMETRIC),
    "SuperLU, COLAMD": superlu,
}


def measure(problem: str, extents: tuple[int, ...], names: list[str], rounds: int) -> None:
    """Print, as JSON, the seconds of each solver's steps, and the size of our factor."""
    for name in names:  # kernels are compiled
        if name.startswith("openwork"):
            for call in SOLVERS[name](laplacian(12, 12, 12)).values():
                call()
    A = matrix(problem, extents)
    steps: dict[str, Steps] = {}
    for name in names:
        try:
            steps[name] = SOLVERS[name](A)
        except Exception:  # a peer that is not installed, or does not load
            continue
    best: dict[str, dict[str, float]] = {name: {} for name in steps}
    size: dict[str, Any] = {}
    clock = time.process_time if os.environ["OPENWORK_NUM_THREADS"] == "1" else time.perf_counter
    alone = A.shape[0] > ALONE
    for turn in range(1 if alone else rounds):
        for name, calls in list(steps.items()):
            for step in ("first", "again", "solve"):
                if step not in calls or (turn and best[name]["first"] > 10):
                    continue
                if step == "again" and best[name]["first"] > 100:
                    continue
                begin = clock()
                calls[step]()
                seconds = clock() - begin
                best[name][step] = min(seconds, best[name].get(step, np.inf))
            if "size" in calls:
                size[name] = calls["size"]()
            if alone:
                calls.get("free", int)()
                del steps[name], calls
    print(json.dumps({"rows": A.shape[0], "elements": int(A.nnz), "size": size, "seconds": best}))


def measured(problem: str, extents: tuple[int, ...], names: list[str], threads: int, rounds: int) -> Any:
    """What `measure` prints in a process of so many threads."""
    variables = ("OPENWORK_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, str(threads))}
    command = [sys.executable, __file__, problem, json.dumps(extents), json.dumps(names), str(rounds)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def tables(threads: list[int], rounds: int, longest: float, kept: Kept) -> Iterator[tuple[str, list[list[str]]]]:
    """The table of each number of threads, and that of growth.

    longest : seconds above which those that are COMPARED at all sizes are left out
    """
    grown = [["", "rows", "order", "elements of the factor", "by n log2 n, n^(4/3)", "operations", "by n^1.5, n^2",
              "numeric phase, s"]]  # fmt: skip
    for count in threads:
        table = [[""], *([name] for name in SOLVERS)]
        for problem, cases in PROBLEMS.items():
            before: dict[str, tuple[float, float]] = {}
            for extents in cases:
                rows = float(np.prod(extents) * (3 if "elastic" in problem else 1))
                if count > 1 and rows > SEVERAL_THREADS and "3-D" in problem:
                    continue
                names = [
                    name for name in SOLVERS
                    if (name != BY_DISSECTION or "2-D" in problem) and (name not in before
                    or before[name][1] * (rows / before[name][0]) ** (EXPONENTS[problem][1])
                    < (longest if name in (*COMPARED, BY_DISSECTION) else PATIENCE))
                ]  # fmt: skip
                if not {*names} & {*COMPARED}:
                    continue
                key = f"{problem} {extents} on {count}"
                found = kept(key, lambda p=problem, e=extents, n=names, c=count: measured(p, e, n, c, rounds))
                if found is None:
                    print(f"{problem} {extents}: ended", file=sys.stderr)
                    continue
                table[0].append(f"{problem}, {found['rows']:,} rows")
                for line in table[1:]:
                    seconds = found["seconds"].get(line[0])
                    cell = "-"
                    if seconds:
                        before[line[0]] = found["rows"], seconds["first"]
                        cell = "; ".join(
                            f"{seconds[s]:.3g}" if s in seconds else "-" for s in ("first", "again", "solve")
                        )
                    elif line[0] not in names:
                        before[line[0]] = found["rows"], np.inf
                    line.append(cell)
                if count == threads[0]:
                    grown += [[problem, *growth(problem, found, n)] for n in (COMPARED[0], BY_DISSECTION) if n in names]
                print(key, found["seconds"], file=sys.stderr, flush=True)
        yield f"{count} thread{'s' * (count > 1)}", [line for line in table if len(line) == 1 or set(line[1:]) != {"-"}]
    yield "growth", grown


def growth(problem: str, found: Any, name: str) -> list[str]:
    """The cells of a row of growth."""
    n, (nse, flops, method) = float(found["rows"]), found["size"][name]
    power, work = EXPONENTS[problem]
    expected = n * np.log2(n) if power is None else n**power
    seconds = found["seconds"][name]
    again = f"{seconds['again']:.3g}" if "again" in seconds else f"{seconds['first']:.3g} with the order"
    return [f"{n:,.0f}", method, f"{nse:.3g}", f"{nse / expected:.2f}", f"{flops:.3g}", f"{flops / n**work:.1f}",
            again]  # fmt: skip


def squares(part: str) -> Iterator[tuple[str, Any]]:
    """The square matrices of the data folder by name, and the KKT matrices of its linear and quadratic programs.

    Of a linear program [I, A.T; A, 0]; of a quadratic one [P + 1e-6, A.T; A, -10], as ADMM and interior points have.
    """
    with (DATA / "MANIFEST.tsv").open() as lines:
        names = sorted({row["file"] for row in csv.DictReader(lines, delimiter="\t")})
    for name in names:
        if part not in name or not name.endswith((".mtx", ".mtx.gz", ".mat")) or name.startswith("tricky/"):
            continue
        if name.endswith(".mat"):
            held = scipy.io.loadmat(DATA / name)
            if {"P", "A"} <= held.keys():
                P, A = sp.csr_array(held["P"]), sp.csr_array(held["A"])
                m, n = A.shape
                blocks = [[P + 1e-6 * sp.eye_array(n), A.T], [A, -10 * sp.eye_array(m)]]
                yield name + " KKT", sp.csr_array(sp.block_array(blocks))
            continue
        try:
            t = ow.read(DATA / name)
        except (ValueError, TypeError, NotImplementedError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        if not isinstance(t, ow.Tensor) or t.ndim != 2 or not t.nse:
            continue
        A = sp.csr_array(t.asformat("csr").astype("complex128" if t.dtype.kind == "c" else "float64").to_scipy())
        if A.shape[0] == A.shape[1]:
            yield name, A
        elif name.startswith("lp/"):
            A = A.T if A.shape[0] > A.shape[1] else A
            yield name + " KKT", sp.csr_array(sp.block_array([[sp.eye_array(A.shape[1]), A.T], [A, None]]))


def backward_error(A: Any, x: Any, b: Any) -> float:
    """|A x - b| by the sizes of what it is computed from."""
    size = abs(A).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    return float(np.abs(A @ x - b).max() / size)


def attempt(A: Any, kind: str) -> tuple[str, Any]:
    """The kind that was computed, the seconds and the backward error, or why it was refused; the factorisation."""
    b = A @ np.ones(A.shape[0])
    begin = time.process_time()
    try:
        F = linalg.factorized(ow.asarray(A), kind)
        x = F(b)
    except np.linalg.LinAlgError as error:
        reasons = {"not positive definite": "not definite", "structurally singular": "structurally singular"}
        reason = next((new for old, new in reasons.items() if old in str(error)), "singular")
        return f"{kind} refused: {reason}", None
    except MemoryError:
        return f"{kind} refused: memory", None
    seconds = time.process_time() - begin
    return f"{F.kind} {1e3 * seconds:.0f} ms, {backward_error(A, x, b):.0e}", F


def solved(A: Any) -> tuple[bool, list[str], str, list[str], str]:
    """Whether a matrix is Hermitian, our kinds for it, and what comes of "auto", of these and of SuperLU."""
    hermitian = bool(abs(A - A.conj().T).max() == 0)
    kinds = ["ldl"] if hermitian else ["lu"]
    if hermitian and (A.diagonal().real > 0).all():
        kinds.insert(0, "cholesky")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, factors = zip(*(attempt(A, kind) for kind in kinds), strict=True)
        large = any(F is not None and F.nse > SUPERLU for F in factors)
        auto = attempt(A, "auto")[0]
        superlu = "not tried" if large else attempt(A, "superlu")[0]
    return hermitian, kinds, auto, list(own), superlu


def real(kept: Kept, part: str = "") -> Iterator[list[str]]:
    """The rows of the table of real matrices; last, those that all refuse, with the reasons of ours."""
    yield ["matrix", "rows", "elements", "Hermitian", "auto", "own kinds", "SuperLU"]
    refused: dict[str, list[str]] = {}
    for kind in ("cholesky", "ldl", "lu"):  # kernels are compiled
        for scalar in ("float64", "complex128"):
            attempt(laplacian(6, 6).astype(scalar), kind)
    for name, A in squares(part):
        hermitian, kinds, auto, own, superlu = kept(name, lambda A=A: solved(A))
        print(name, auto, own, superlu, file=sys.stderr, flush=True)
        if all("refused" in cell for cell in (auto, *own, superlu)):
            reason = own[-1].partition("refused: ")[2]
            refused.setdefault(f"{reason} for {kinds[-1]}", []).append(name)
            continue
        yield [name, f"{A.shape[0]}", f"{A.nnz}", "yes" if hermitian else "no", auto, "; ".join(own), superlu]
    for reason, names in refused.items():
        yield [f"\nRefused by all, SuperLU included, {reason}, {len(names)} matrices: {', '.join(names)}."]


def least_squares() -> list[list[str]]:
    """Milliseconds of QR: of random rows, of knots of splines, of transposes of linear programs."""
    rng = np.random.default_rng(0)
    cases: dict[str, Any] = {}
    rows, knots = np.repeat(np.arange(200_000), 4), rng.integers(0, 9_997, 200_000)
    cols = (knots[:, None] + np.arange(4)).ravel()
    cases["cubic splines"] = sp.csr_array((rng.random(800_000), (rows, cols)), (200_000, 10_000))
    grid = laplacian(300, 300)
    at = rng.integers(0, 300 * 300, 100_000)
    seen = sp.csr_array((np.ones(100_000), (np.arange(100_000), at)), (100_000, 300 * 300))
    cases["a smooth grid, observed"] = sp.csr_array(sp.vstack([0.1 * grid, seen]))
    for name in ("25FV47", "MAROS-R7", "FIT2P"):
        path = DATA / "lp" / f"{name}.mtx.gz"
        if path.exists():
            A = sp.csr_array(ow.read(path).asformat("csr").astype("float64").to_scipy())
            cases[name] = A if A.shape[0] > A.shape[1] else sp.csr_array(A.T)
    table = [["", "rows, columns, elements", "qr", "update", "solve", "cholesky of A.T @ A", "SciPy, lsqr to 1e-10",
              "errors: qr, normal equations, lsqr"]]  # fmt: skip
    linalg.factorized(ow.asarray(laplacian(6, 6)), "qr")
    for name, A in cases.items():
        t, x = ow.asarray(A), np.ones(A.shape[1])
        b = A @ x
        held: dict[str, Any] = {}

        def normal(A: Any = A, b: Any = b, held: dict[str, Any] = held) -> None:
            held["normal"] = linalg.factorized(ow.asarray(sp.csr_array(A.T @ A)), "cholesky")(A.T @ b)

        calls = {
            "qr": lambda t=t, h=held: h.update(F=linalg.factorized(t, "qr")),
            "update": lambda A=A, h=held: h["F"].update(A.data),
            "solve": lambda b=b, h=held: h.update(x=h["F"](b)),
            "normal": normal,
            "lsqr": lambda A=A, b=b, h=held: h.update(
                lsqr=scipys.lsqr(A, b, atol=1e-10, btol=1e-10, iter_lim=4 * A.shape[1])[0]
            ),
        }
        cells = []
        for call in calls.values():
            best = np.inf
            try:
                for _ in range(3):
                    begin = time.process_time()
                    call()
                    best = min(best, 1e3 * (time.process_time() - begin))
                    if best > 1000:
                        break
                cells.append(f"{best:.3g}")
            except np.linalg.LinAlgError:
                cells.append("refused")
        errors = [f"{np.abs(held[k] - x).max():.0e}" if k in held else "-" for k in ("x", "normal", "lsqr")]
        rank = "" if held["F"].rank == A.shape[1] else f", rank {held['F'].rank}"
        shape = f"{A.shape[0]:,}, {A.shape[1]:,}, {A.nnz:,}{rank}"
        table.append([name, shape, *cells, ", ".join(errors)])
        print(table[-1], file=sys.stderr, flush=True)
    return table


if __name__ == "__main__":
    problem, extents, names, rounds = sys.argv[1:]
    measure(problem, tuple(json.loads(extents)), json.loads(names), int(rounds))
