"""Microseconds of calls on 50 x 50 tensors, one thread: openwork's, the peer's, and their ratio.

    python benchmarks/small_calls.py [--rounds 60] [--match "A @"]

The peer of NumPy buffers is SciPy, that of torch's buffers torch's own CSR. Calls of both are timed in turn, in rounds
of twenty calls, by the thread's own time; the least of all rounds counts, so that what else the machine does matters
little.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

import openwork as ow

Call = Callable[[], Any]
CALLS = 20


def numpy_rows() -> dict[str, tuple[Call, Call]]:
    """Calls on NumPy buffers, and SciPy's."""
    rng = np.random.default_rng(0)
    s, t = (sp.random_array((50, 50), density=0.1, format="csr", rng=rng) for _ in range(2))
    a, b = ow.asarray(s), ow.asarray(t)
    x, mask, rows, few = np.ones(50), np.arange(50) % 3 == 0, [1, 2], rng.random((8, 50))
    full, factor = rng.random((50, 50)), np.float64(2)
    return {
        "A @ x": (lambda: a @ x, lambda: s @ x),
        "A.T @ x": (lambda: a.T @ x, lambda: s.T @ x),
        "X @ A": (lambda: few @ a, lambda: few @ s),
        "A @ X.T": (lambda: a @ few.T, lambda: s @ few.T),
        "A @ B": (lambda: a @ b, lambda: s @ t),
        "A + A": (lambda: a + a, lambda: s + s),
        "A + B": (lambda: a + b, lambda: s + t),
        "A * B": (lambda: a * b, lambda: s * t),
        "A * 2": (lambda: a * 2, lambda: s * 2),
        "A * float64": (lambda: a * factor, lambda: s * factor),
        "A * X": (lambda: a * full, lambda: s * full),
        "X + A": (lambda: full + a, lambda: full + s),
        "np.add(A, B)": (lambda: np.add(a, b), lambda: s + t),
        "np.sqrt(A)": (lambda: np.sqrt(a), lambda: np.sqrt(s)),
        "full sum": (lambda: ow.sum(a), lambda: s.sum()),
        "row sums": (lambda: ow.sum(a, axis=1), lambda: s.sum(axis=1)),
        "max of rows": (lambda: ow.max(a, axis=1), lambda: s.max(axis=1)),
        "A[3, 4]": (lambda: a[3, 4], lambda: s[3, 4]),
        "A[[1, 2]]": (lambda: a[rows], lambda: s[rows]),
        "A[mask]": (lambda: a[mask], lambda: s[mask]),
        "A[3]": (lambda: a[3], lambda: s[3]),
        "A[:, 3]": (lambda: a[:, 3], lambda: s[:, 3]),
        "A[2:9]": (lambda: a[2:9], lambda: s[2:9]),
        "A[:, 2:9]": (lambda: a[:, 2:9], lambda: s[:, 2:9]),
        "A[:, [1, 2]]": (lambda: a[:, rows], lambda: s[:, rows]),
        "tril": (lambda: ow.tril(a), lambda: sp.tril(s)),
        "reshape": (lambda: ow.reshape(a, (25, 100)), lambda: s.reshape((25, 100))),
        "kron": (lambda: ow.kron(a, b), lambda: sp.kron(s, t)),
        "to_dense": (lambda: a.to_dense(), lambda: s.toarray()),
        "to CSC": (lambda: a.asformat("csc"), lambda: s.tocsc()),
        "to COO": (lambda: a.asformat("coo"), lambda: s.tocoo()),
        "-A": (lambda: -a, lambda: -s),
        "A == B": (lambda: a == b, lambda: s == t),
        "max": (lambda: a.max(), lambda: s.max()),
        "mean of columns": (lambda: a.mean(axis=0), lambda: s.mean(axis=0)),
        "concat": (lambda: ow.concat([a, b]), lambda: sp.vstack([s, t])),
        "diagonal": (lambda: ow.diagonal(a), lambda: s.diagonal()),
        "transpose": (lambda: a.T, lambda: s.T),
        "A *= 1": (lambda: _scaled(a), lambda: _scaled(s)),
        "norm": (lambda: ow.linalg.norm(a), lambda: scipy.sparse.linalg.norm(s)),
        'einsum("ij,j->i")': (lambda: ow.einsum("ij,j->i", a, x), lambda: s @ x),
        "np.sum(A)": (lambda: np.sum(a), lambda: np.sum(s)),
        "asarray(SciPy)": (lambda: ow.asarray(s), lambda: sp.csr_array((s.data, s.indices, s.indptr), s.shape)),
    }


def torch_rows() -> dict[str, tuple[Call, Call]]:
    """Calls on torch buffers, and those of torch's sparse CSR; nothing where torch is not there."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    values = torch.from_numpy(np.where(rng.random((50, 50)) < 0.1, rng.random((50, 50)), 0.0))
    t = values.to_sparse_csr()
    a, x = ow.asarray(t), torch.ones(50, dtype=torch.float64)
    w, v = ow.asarray(values.to_sparse_csr()).requires_grad_(), values.to_sparse_csr().requires_grad_()
    y = torch.ones(50, 1, dtype=torch.float64, requires_grad=True)
    p, q = (z.to_sparse_coo().coalesce() for z in (values.clone(), values.roll(1, 0)))
    c, d = ow.asarray(p), ow.asarray(q)
    r = p.clone()
    e = ow.asarray(p.clone())
    g = values.reshape(10, 5, 50).to_sparse_coo().coalesce()
    f = ow.asarray(g)

    b, m = ow.asarray(q), ow.asarray(p)
    left, right = (torch.rand(*shape, dtype=torch.float64) for shape in ((50, 1), (1, 50)))
    g1, g2 = (z.clone().requires_grad_() for z in (left, right))
    pc, pd, oc, od = (z.requires_grad_() for z in (p.clone(), q.clone(), m, b))

    def step(matrix: Any) -> None:
        matrix.grad = y.grad = None
        (matrix @ y).sum().backward()

    def ours(call: Call) -> Call:
        """A step of what a call gives, whose gradients are those of the values."""
        return lambda: torch.autograd.grad(call().values.sum(), (oc.values, od.values), allow_unused=True)

    def theirs(call: Call) -> Call:
        """The same of torch's sparse tensors."""
        return lambda: torch.autograd.grad(torch.sparse.sum(call()), (pc, pd), allow_unused=True)

    return {
        "torch: A @ x": (lambda: a @ x, lambda: t @ x),
        "torch: A * 2": (lambda: a * 2, lambda: t * 2),
        "torch: A + A": (lambda: a + a, lambda: t + t),
        "torch: sin": (lambda: torch.sin(a), lambda: torch.sin(t)),
        "torch: full sum": (lambda: a.sum(), lambda: t.sum()),
        "torch: row sums": (lambda: a.sum(1), lambda: t.sum(1, keepdim=True)),
        "torch: sums of fibres": (lambda: f.sum(2), lambda: torch.sparse.sum(g, 2)),
        "torch: to_dense": (lambda: a.to_dense(), lambda: t.to_dense()),
        "torch: to COO": (lambda: a.asformat("coo"), lambda: t.to_sparse_coo()),
        "torch: A[3]": (lambda: a[3], lambda: t[3]),
        "torch: asarray(CSR)": (lambda: ow.asarray(t), lambda: _taken(torch, t)),
        "torch: COO + COO": (lambda: c + d, lambda: p + q),
        "torch: COO * COO": (lambda: c * d, lambda: p * q),
        "torch: softmax of COO": (lambda: torch.softmax(c, 1), lambda: torch.sparse.softmax(p, 1)),
        "torch: cat of COO": (lambda: torch.cat([c, d]), lambda: torch.cat([p, q])),
        "torch: COO *= 1": (lambda: _scaled(e), lambda: _scaled(r)),
        "torch: asarray(COO)": (lambda: ow.asarray(p), lambda: _coordinates(torch, p)),
        "torch: forward": (lambda: w @ y, lambda: v @ y),
        "torch: forward and backward": (lambda: step(w), lambda: step(v)),
        "torch: A @ B": (lambda: a @ a, lambda: t @ t),
        "torch: SDDMM": (
            lambda: ow.sddmm(a, left, right),
            lambda: torch.sparse.sampled_addmm(t, left, right, beta=0.0),
        ),
        "both ways: SDDMM": (
            lambda: torch.autograd.grad(ow.sddmm(a, g1, g2).values.sum(), (g1, g2)),
            lambda: torch.autograd.grad(torch.sparse.sampled_addmm(t, g1, g2, beta=0.0), (g1, g2), t),
        ),
        "both ways: COO + COO": (ours(lambda: oc + od), theirs(lambda: pc + pd)),
        "both ways: COO * COO": (ours(lambda: oc * od), theirs(lambda: pc * pd)),
        "both ways: COO @ COO": (ours(lambda: oc @ od), theirs(lambda: torch.sparse.mm(pc, pd))),
        "both ways: COO * 2": (ours(lambda: oc * 2), theirs(lambda: pc * 2)),
        "both ways: softmax of COO": (
            lambda: torch.autograd.grad(torch.softmax(oc, 1).values, oc.values, m.values.detach()),
            lambda: torch.autograd.grad(torch.sparse.softmax(pc, 1), pc, p),
        ),
        "both ways: row sums": (ours(lambda: oc.sum(1)), theirs(lambda: torch.sparse.sum(pc, 1))),
    }


def _taken(torch: Any, t: Any) -> Any:
    """torch's own CSR over the buffers of another one, checked."""
    buffers = t.crow_indices(), t.col_indices(), t.values()
    return torch.sparse_csr_tensor(*buffers, t.shape, check_invariants=True)


def _coordinates(torch: Any, t: Any) -> Any:
    """The same of COO."""
    return torch.sparse_coo_tensor(t.indices(), t.values(), t.shape, check_invariants=True, is_coalesced=True)


def _scaled(matrix: Any) -> None:
    """The values of a matrix written anew, in place."""
    matrix *= 1.0


def least(pair: tuple[Call, Call], rounds: int) -> tuple[float, float]:
    """The least microseconds of both calls, in turn."""
    best = [float("inf")] * 2
    for call in pair * 3:
        call()
    for _ in range(rounds):
        for k, call in enumerate(pair):
            start = time.thread_time()
            for _ in range(CALLS):
                call()
            best[k] = min(best[k], (time.thread_time() - start) / CALLS)
    return best[0] * 1e6, best[1] * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--match", default="", help="only rows whose name contains this regular expression")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ow.set_num_threads(1)
    print("| call | openwork | peer | ours / peer |\n| --- | --- | --- | --- |")
    for name, pair in (numpy_rows() | torch_rows()).items():
        if re.search(options.match, name):
            ours, theirs = least(pair, options.rounds)
            print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
