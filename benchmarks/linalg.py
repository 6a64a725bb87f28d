"""Symmetric positive definite matrices -> iterations and times of cg with each preconditioner, and of substitution.

python benchmarks/linalg.py MATRIX.mtx...      # one column each, as in docs/linalg.md; peers: SciPy, PyAMG if installed

A graph's matrix is made its Laplacian plus 1e-3. Times are milliseconds of one thread: set-up + solution to 1e-8.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as scipys

import openwork as ow
from openwork import linalg

ROUNDS = 3
MOST, SECONDS = 5000, 15.0
"""Iterations and seconds after which a method is given up."""


class TooLong(Exception):
    """Ends a solver."""


def least(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the least time in milliseconds."""
    best, result = np.inf, None
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - begin)
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
        if time.perf_counter() > end:
            raise TooLong

    def run() -> int:
        nonlocal count, end
        count, end = 0, time.perf_counter() + SECONDS
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


def main(paths: list[str]) -> None:
    """A table whose columns are the files."""
    ow.set_num_threads(1)
    warm = ow.asarray(sparse.csr_array(np.diag(np.full(400, 3.0)) - np.eye(400, k=1) - np.eye(400, k=-1)))
    for make, _ in preconditioners(warm.to_scipy("csr"), warm).values():
        linalg.cg(warm, np.ones(400), M=make())
    rows = [row(path) for path in paths]
    for k, name in enumerate(rows[0]):
        print("| " + " | ".join([name, *(cells.get(name, "") for cells in rows)]) + " |")
        if k == 0:
            print("|" + " --- |" * (len(rows) + 1))


if __name__ == "__main__":
    main(sys.argv[1:])
