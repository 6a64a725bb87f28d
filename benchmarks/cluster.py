"""Methods over blocks on 0, 1 and 2 workers -> seconds of the clock and of processors; constants for scale_model.py.

    python benchmarks/cluster.py [SIZE] [ROUNDS] [NAME] [SECONDS]

Of the methods those whose name has NAME in it, all in about so many seconds, 600 without: a method has an equal share
of what is left, and makes no more rounds where that is spent, but one; what runs is told on stderr. Zero workers is
openwork in this process, on one thread. Rounds are interleaved and the least of each is taken; on a machine that others
use the processors' seconds, of client, scheduler and workers together, say more than the clock. They are less what the
idle processes take in that time.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

os.environ.update(OPENWORK_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

import openwork as ow
from openwork import decomposition, graph, linalg
from openwork.dask import BlockMatrix, BlockTensor

Case = tuple[str, Callable[[], Any], Callable[[Any], Any]]


def cases(size: float) -> list[Case]:
    """(name, what makes the operand, method): each takes about a second where size is 1."""
    rng = np.random.default_rng(0)
    n, tall = int(1e5 * size) + 1000, int(1e6 * size) + 100
    g = int(500 * size**0.5) + 10
    wide, b, small = rng.random((n, 32)), rng.random(n), rng.random((1000, 16))

    def square() -> Any:
        return _regular(n, 200)

    def long() -> Any:
        return ow.random_array((tall, 1000), density=0.02, format="csr", rng=rng)

    return [
        ("A @ x, 500 elements a row", lambda: _regular(n, 500), lambda a: a @ np.ones(n)),
        ("A @ X, 32 columns", square, lambda a: a @ wide),
        ("A @ X, 32 columns, 1,000 elements a row", lambda: _regular(n // 5, 1000), lambda a: a @ wide[: n // 5]),
        ("A.H @ (A @ X), tall, 16 columns", long, lambda a: _normal(a, small)),
        ("gram, tall", long, lambda a: a.gram() if isinstance(a, BlockMatrix) else a.T @ a),
        ("cg, 10 iterations", lambda: _definite(n), lambda a: _ten_iterations(a, b)),
        ("randomized_svd, 8, tall", long, lambda a: linalg.randomized_svd(a, 8, oversample=8, iterations=2, rng=0)),
        ("pagerank, 1e-4", square, lambda a: graph.pagerank(a, tolerance=1e-4 / n)),
        ("components", square, graph.components),
        (
            "cp_als, 8, 2 iterations",
            lambda: ow.random_array((g, g, g), density=4e6 * size / g**3, format="csf", rng=rng),
            lambda a: decomposition.cp_als(a, 8, maxiter=2, tol=0.0, rng=0),
        ),
        ("graph convolutions, 2 layers", square, lambda a: _layers(a, wide)),
    ]


def _definite(n: int) -> ow.Tensor:
    A = _regular(n, 200)
    return (ow.diags_array(np.linspace(400, 800, n), format="csr") + A + A.T).asformat("csr")


def _ten_iterations(a: Any, b: Any) -> Any:
    """Conjugate gradients that do not converge before; a right side that is an eigenvector ends them after one."""
    x, info = linalg.cg(a, b, rtol=0.0, atol=0.0, maxiter=10)
    if info != 10:
        raise RuntimeError(f"cg ended after {info} iterations")
    return x


def _regular(n: int, each: int) -> ow.Tensor:
    """A matrix whose rows have as many elements each, at columns that are spread."""
    step = max(n // each, 1)
    each = n // step
    crd = (np.arange(each, dtype=np.int32) * step)[None, :] + (np.arange(n, dtype=np.int32) % step)[:, None]
    pos = np.arange(0, n * each + 1, each, dtype=np.int32)
    return ow.sparse_csr_tensor(pos, crd.ravel(), np.ones(n * each), (n, n), check_invariants=False)


def _normal(a: Any, x: Any) -> Any:
    return a.normal_matmat(x) if isinstance(a, BlockMatrix) else a.T @ (a @ x)


def _layers(a: Any, x: Any) -> Any:
    """What GraphConv computes without gradients, over NumPy's arrays."""
    weight = np.full((x.shape[1], 16), 0.01)
    hidden = np.maximum(a @ (x @ weight), 0)
    return a @ (hidden @ weight[:16])


def seconds(client: Any, call: Callable[[], Any]) -> tuple[float, float]:
    """Of the wall clock, and of all processes' processors."""
    before, start = _processors(client), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    wall, busy = time.perf_counter() - start, _processors(client) - before
    asking, idle = _idle(client)
    return wall, busy - asking - idle * wall


@cache
def _idle(client: Any) -> tuple[float, float]:
    """Processors' seconds that asking for them takes, and those of a second in which nothing is done."""
    if client is None:
        return 0.0, 0.0
    asking = min(-(_processors(client) - _processors(client)) for _ in range(5))
    before, start = _processors(client), time.perf_counter()
    time.sleep(2)
    busy = _processors(client) - before - asking
    return asking, busy / (time.perf_counter() - start)


def _processors(client: Any) -> float:
    return time.process_time() + (sum(client.run(time.process_time).values()) if client else 0.0)


def constants(client: Any) -> None:
    """The client's seconds of a product, of one more block, and of a byte to or from a block."""
    empty = ow.random_array((64, 64), density=0.0, format="csr")
    times = {}
    for blocks in (1, 64):
        M = BlockMatrix(empty, blocks, client=client)
        times[blocks] = min(seconds(client, lambda: M @ np.ones(64))[0] for _ in range(8))  # noqa: B023
    n = 4_000_000
    line = ow.eye(n).asformat("csr")
    M, x = BlockMatrix(line, 1, client=client), np.ones(n)
    transfer = min(seconds(client, lambda: M @ x)[0] for _ in range(5)) - times[1]
    product = min(seconds(None, lambda: line @ x)[0] for _ in range(5))
    print(
        f"a product with one block {times[1] * 1e3:.1f} ms, with each more {(times[64] - times[1]) / 63 * 1e3:.2f} ms"
    )
    asking, idle = _idle(client)
    print(f"idle processes take {idle:.3f} of a processor, to ask for their time {asking * 1e3:.1f} ms")
    print(f"bytes of vectors {M.blocks.predicted() / max(transfer - product, 1e-9) / 1e9:.2f} GB/s")


def told(text: str, start: float) -> None:
    """Say on stderr what runs, and since when."""
    print(f"{time.perf_counter() - start:6.0f} s  {text}", file=sys.stderr, flush=True)


def main(size: float = 1.0, rounds: int = 3, name: str = "", limit: float = 600.0) -> None:
    """Print a row for each case."""
    start = time.perf_counter()
    todo = [case for case in cases(size) if name in case[0]]
    best: dict[tuple[str, int], tuple[float, float]] = {}
    with threadpool_limits(1):
        clusters = [LocalCluster(n_workers=k, threads_per_worker=1, dashboard_address=":0") for k in (1, 2)]
        clients = [Client(c) for c in clusters]
        for number, (name, make, method) in enumerate(todo):
            left = limit - (time.perf_counter() - start)
            end = time.perf_counter() + max(left, 0) / (len(todo) - number)
            told(f"{name}: the operand", start)
            operand = make()
            kept = BlockTensor if operand.ndim > 2 else BlockMatrix
            operands = [operand, *(kept(operand, k, client=c) for k, c in enumerate(clients, 1))]
            made = 0
            for turn in range(rounds + 1):  # the first compiles
                if turn > 1 and time.perf_counter() > end:
                    break
                told(f"{name}: round {turn} of {rounds}", start)
                for k, a in enumerate(operands):
                    found = seconds(clients[k - 1] if k else None, lambda: method(a))  # noqa: B023
                    old = best.get((name, k), found) if turn else found
                    best[name, k] = (min(found[0], old[0]), min(found[1], old[1])) if turn != 1 else found
                made = turn
            wall, cpu = zip(*(best[name, k] for k in range(3)), strict=True)
            times = " | ".join(f"{w:.2f}, {c:.3f}" for w, c in zip(wall, cpu, strict=True))
            ratios = f"{wall[1] / wall[0]:.2f}, {cpu[1] / cpu[0]:.2f} | {wall[0] / wall[2]:.2f}"
            print(f"| {name} | {operand.nse:,} | {times} | {ratios} | {made} rounds |", flush=True)
            del operand, operands
        constants(clients[0])
        for c, cluster in zip(clients, clusters, strict=True):
            c.close()
            cluster.close()


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((float, int, str, float), sys.argv[1:], strict=False)))
