"""Krylov methods, preconditioners, plans of assembly and colourings beside their peers -> tables of docs/linalg.md.

Those of `benchmarks/linalg.py`, which is the command; peers: SciPy, PyAMG and scikit-fem where they are installed. One
thread. Milliseconds of the processor, the least of interleaved rounds.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as scipys

import openwork as ow
from openwork import linalg

ROUNDS = 3
MOST = 3000


def least(calls: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """The least milliseconds of each, after one call of each; rounds are interleaved."""
    best = dict.fromkeys(calls, np.inf)
    for number in range(rounds + 1):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            if number:
                best[name] = min(best[name], 1e3 * (time.process_time() - begin))
    return best


def bricks(nx: int, ny: int, nz: int) -> tuple[ow.Tensor, Any]:
    """The stiffness of an elastic block of trilinear bricks that is clamped at one side, and its free points."""
    corner = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    stress = np.zeros((6, 6))
    stress[:3, :3] = 0.3 / 1.3 / 0.4
    stress[[0, 1, 2], [0, 1, 2]] += 1 / 1.3
    stress[[3, 4, 5], [3, 4, 5]] = 0.5 / 1.3
    local = np.zeros((24, 24))
    for at in corner / np.sqrt(3):
        half = (1 + corner * at) / 2
        slope = corner * half.prod(1)[:, None] / half
        strain = np.zeros((6, 24))
        for k in range(3):
            strain[k, k::3] = slope[:, k]
        for k, (i, j) in enumerate([(0, 1), (1, 2), (0, 2)]):
            strain[3 + k, i::3], strain[3 + k, j::3] = slope[:, j], slope[:, i]
        local += strain.T @ stress @ strain / 8
    counts = np.array([nx + 1, ny + 1, nz + 1])
    number = np.arange(counts.prod()).reshape(counts)
    nodes = np.stack([number[i : nx + i, j : ny + j, k : nz + k].ravel() for i, j, k in (corner + 1) // 2], 1)
    dofs = (3 * nodes[:, :, None] + np.arange(3)).reshape(-1, 24)
    points = np.stack(np.meshgrid(*(np.arange(float(c)) for c in counts), indexing="ij"), -1).reshape(-1, 3)
    clamped = np.repeat(points[:, 0] == 0, 3)
    asm = ow.assembler((3 * len(points),) * 2, dofs, dofs).without(clamped)
    return asm(np.broadcast_to(local, (len(nodes), 24, 24)).copy()), points[points[:, 0] > 0]


def elasticity() -> list[list[str]]:
    """Set-up, update and solution of an elastic block by each preconditioner."""
    sizes = [(40, 8, 8), (24, 24, 24)]
    names = ["jacobi", "block_jacobi", "chebyshev", "ic0, shift 0.1", "iluk, 0", "ilut", "amg, constants",
             "amg, rigid motions", "amg, rigid motions, chebyshev"]  # fmt: skip
    if find_spec("pyamg"):
        names += ["PyAMG, rigid motions, BSR"]
    table = [["", *(f"{np.prod(s):,} bricks" for s in sizes)], *([n] for n in names)]
    for size in sizes:
        a, points = bricks(*size)
        table[0][1 + sizes.index(size)] += f", {a.shape[0]:,} rows, {a.nse:,} elements"
        motions = linalg.rigid_motions(points)
        b = np.zeros(a.shape[0])
        b[2::3] = -1e-3
        blocked = sparse.csr_array(a.to_scipy()).tobsr((3, 3))
        make: dict[str, Callable[[], Any]] = {
            "jacobi": lambda a=a: linalg.jacobi(a),
            "block_jacobi": lambda a=a: linalg.block_jacobi(a, 3),
            "chebyshev": lambda a=a: linalg.chebyshev(a),
            "ic0, shift 0.1": lambda a=a: linalg.ic0(a, shift=0.1),
            "iluk, 0": lambda a=a: linalg.iluk(a, 0),
            "ilut": lambda a=a: linalg.ilut(a, 1e-2, 10),
            "amg, constants": lambda a=a: linalg.amg(a),
            "amg, rigid motions": lambda a=a, m=motions: linalg.amg(a, block=3, near_nullspace=m),
            "amg, rigid motions, chebyshev": lambda a=a, m=motions: linalg.amg(
                a, block=3, near_nullspace=m, smoother="chebyshev"
            ),
            "PyAMG, rigid motions, BSR": lambda h=blocked, m=motions: pyamg_solver(h, m),
        }
        for row in table[1:]:
            name = row[0]
            theirs = name.startswith("PyAMG")
            try:
                setup = least({"": make[name]}, 1)[""]
            except np.linalg.LinAlgError as error:
                row.append(f"refused: {str(error).partition(chr(10))[0]}")
                continue
            m = make[name]()
            update = "" if theirs else f" ({least({'': lambda m=m, a=a: m.update(a.values)}, 1)['']:.0f})"
            count, spent = iterations(a if not theirs else blocked, b, m, linalg.cg if not theirs else scipys.cg)
            outcome = f"{spent:.0f}, {count} it." if count < MOST else f"not in {MOST} it."
            row.append(f"{setup:.0f}{update} + {outcome}")
            print(row, file=sys.stderr)
    return table


def pyamg_solver(held: Any, motions: Any) -> Any:
    """PyAMG's smoothed aggregation."""
    import pyamg

    return pyamg.smoothed_aggregation_solver(held, B=motions).aspreconditioner()


def iterations(a: Any, b: Any, m: Any, cg: Any) -> tuple[int, float]:
    """Iterations and milliseconds of a solution to 1e-8, the less of two."""
    best, count = np.inf, 0
    for _ in range(2):
        seen: list[int] = []
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cg(a, b, M=m, rtol=1e-8, maxiter=MOST, callback=lambda _, seen=seen: seen.append(0))
        best, count = min(best, 1e3 * (time.process_time() - begin)), len(seen)
        if best > 3000:
            break
    return count, best


def several() -> list[list[str]]:
    """Sixteen right sides together and one after the other."""
    table = [["", "together, it.", "each, it.", "SciPy, each"]]
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(200, 200))
    grid = sparse.csr_array(sparse.kron(line, sparse.eye_array(200)) + sparse.kron(sparse.eye_array(200), line))
    for label, a in (("2-D Laplacian 200^2", ow.asarray(grid)), ("3-D elasticity, 2,560 bricks", bricks(40, 8, 8)[0])):
        b = np.random.default_rng(0).standard_normal((a.shape[0], 16))
        held = a.to_scipy()
        for name in (None, "ic0"):
            m = None if name is None else linalg.ic0(a, shift=0.1 if "elastic" in label else 0.0)
            count, together = iterations(a, b, m, linalg.cg)
            alone = [iterations(a, b[:, k], m, linalg.cg) for k in range(16)]
            theirs = [iterations(held, b[:, k], m, scipys.cg) for k in range(16)]
            mean = np.mean([c for c, _ in alone])
            each, scipy = sum(t for _, t in alone), sum(t for _, t in theirs)
            table.append(
                [f"{label}, {name or 'nothing'}", f"{together:.0f}, {count}", f"{each:.0f}, {mean:.0f}", f"{scipy:.0f}"]
            )
            print(table[-1], file=sys.stderr)
    return table


def assembly() -> list[list[str]]:
    """Sums of triplets by a plan, by a kept map, by SciPy, by scikit-fem."""
    table = [
        ["", "values, elements", "openwork", "values.sum()", "np.bincount, kept map", "SciPy, coo to csr", "scikit-fem"]
    ]
    rng = np.random.default_rng(0)
    cases: dict[str, Any] = {}
    corner = (np.arange(333)[:, None] * 334 + np.arange(333)).ravel()
    mesh = np.concatenate([corner[:, None] + [0, 1, 334], corner[:, None] + [1, 334, 335]])[:111_112]
    cases["triangles, 3 x 3"] = np.repeat(mesh, 3, 1).ravel(), np.tile(mesh, (1, 3)).ravel(), 334 * 334, None
    cases["random places"] = (*rng.integers(0, 200_000, (2, 10**6)), 200_000, None)
    if find_spec("skfem"):
        import skfem
        from skfem.models.elasticity import linear_elasticity

        basis = skfem.Basis(skfem.MeshTet().refined(4), skfem.ElementVector(skfem.ElementTetP1()))
        coo = linear_elasticity(1.0, 1.0).coo_data(basis)
        cases["scikit-fem, tetrahedra, elasticity"] = (*coo.indices, coo.shape[0], coo)
    for name, (rows, cols, n, coo) in cases.items():
        values = rng.standard_normal(len(rows)) if coo is None else coo.data
        asm = ow.assembler((n, n), rows, cols)
        key, place = np.unique(np.asarray(rows, np.int64) * n + cols, return_inverse=True)
        stored = len(key)
        calls: dict[str, Callable[[], Any]] = {
            "openwork": lambda asm=asm, v=values: asm(v),
            "sum": lambda v=values: v.sum(),
            "bincount": lambda p=place, v=values, k=stored: np.bincount(p, v, k),
            "SciPy": lambda v=values, r=rows, c=cols, n=n: sparse.coo_array((v, (r, c)), (n, n)).tocsr(),
        }
        if coo is not None:
            calls["scikit-fem"] = coo.tocsr
        best = least(calls, 7)
        table.append([name, f"{len(rows):,}, {len(key):,}", *(f"{t:.1f}" for t in best.values())])
        print(table[-1], file=sys.stderr)
    return table


def colouring() -> list[list[str]]:
    """Plans of Jacobians and Hessians of 10^6 rows."""
    table = [["pattern", "rows, elements", "jacobian_plan", "evaluations", "hessian_plan", "evaluations"]]
    n = 10**6
    line = sparse.diags_array([1.0, 1, 1], offsets=[-1, 0, 1], shape=(1000, 1000))
    eye = sparse.eye_array(1000)
    wide = sparse.diags_array([1.0, 1, 1], offsets=[-1, 0, 1], shape=(100, 100))
    every, first = np.arange(n), np.zeros(n - 1, np.int64)
    places = np.concatenate([every, first, every[1:]]), np.concatenate([every, every[1:], first])
    arrow = sparse.coo_array((np.ones(len(places[0])), places), (n, n))
    cases = {
        "five points": sparse.kron(line, eye) + sparse.kron(eye, line),
        "nine points": sparse.kron(line, line),
        "twenty-seven points": sparse.kron(wide, sparse.kron(wide, wide)),
        "arrow": arrow,
    }
    for name, matrix in cases.items():
        pattern = ow.asarray(sparse.csr_array(matrix))
        cells = []
        calls = {"jacobian_plan": lambda p=pattern: linalg.jacobian_plan(p),
                 "hessian_plan": lambda p=pattern: linalg.hessian_plan(p)}  # fmt: skip
        for what, milliseconds in least(calls, 2).items():
            cells += [f"{milliseconds:.0f}", f"{calls[what]().evaluations}"]
        table.append([name, f"{n:,}, {pattern.nse:,}", *cells])
        print(table[-1], file=sys.stderr)
    return table
