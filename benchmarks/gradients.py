"""Forward and backward times against torch's own sparse tensors, interleaved in one run.

    python benchmarks/gradients.py [THREADS]

Prints the least time of each side and the ratio torch / openwork. Results are compared before they are timed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

import openwork as ow

SIZE, STORED, COLUMNS, RUNS = 2000, 40000, 64, 25


def least(functions: dict[str, Callable[[], Any]], leaves: list[torch.Tensor]) -> dict[str, float]:
    """The least time of each function, in milliseconds, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(RUNS):
        for name, function in functions.items():
            for leaf in leaves:
                leaf.grad = None
            start = time.perf_counter()
            function()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: min(found) for name, found in times.items()}


def cases() -> dict[str, tuple[Callable[[], Any], Callable[[], Any], list[torch.Tensor]]]:
    """Name -> openwork's way, torch's way, and the leaves whose gradients are dropped between runs."""
    places = torch.randint(0, SIZE, (2, STORED))
    coo = torch.sparse_coo_tensor(places, torch.rand(STORED), (SIZE, SIZE), check_invariants=True).coalesce()
    csr, x = coo.to_sparse_csr(), torch.rand(SIZE, COLUMNS)
    mine, plain = ow.asarray(csr.clone()).requires_grad_(), ow.asarray(csr)
    coordinates = ow.asarray(coo)
    theirs, theirs_coo, dense = csr.clone().requires_grad_(), coo.clone().requires_grad_(), x.clone().requires_grad_()
    leaves = [mine.values, theirs, theirs_coo, dense]

    def step(product: Any) -> None:
        product.sum().backward()

    torch.testing.assert_close(mine @ dense, theirs @ dense)
    torch.testing.assert_close((coordinates @ coordinates).to_dense(), torch.sparse.mm(coo, coo).to_dense())
    return {
        "csr @ dense": (lambda: plain @ x, lambda: csr @ x, leaves),
        "csr @ dense, backward": (lambda: step(mine @ dense), lambda: step(theirs @ dense), leaves),
        "torch.sparse.mm of csr, backward": (
            lambda: step(mine @ dense), lambda: step(torch.sparse.mm(theirs, dense)), leaves,
        ),
        "torch.sparse.mm of coo, backward": (
            lambda: step(mine @ dense), lambda: step(torch.sparse.mm(theirs_coo, dense)), leaves,
        ),
        "coo @ coo": (lambda: coordinates @ coordinates, lambda: torch.sparse.mm(coo, coo), leaves),
        "csr to csc": (lambda: plain.asformat("csc"), lambda: csr.to_sparse_csc(), leaves),
        "softmax, backward": (
            lambda: step(ow.softmax(mine, 1)), lambda: step(torch.sparse.softmax(theirs_coo, 1).to_dense()), leaves,
        ),
    }  # fmt: skip


def main(threads: int = 1) -> None:
    """Print the table."""
    warnings.filterwarnings("ignore", ".*beta.*")
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    ow.set_num_threads(threads)
    print(f"torch {torch.__version__}, {threads} thread(s), {SIZE} x {SIZE}, {STORED} elements, {COLUMNS} columns")
    for name, (mine, theirs, leaves) in cases().items():
        found = least({"openwork": mine, "torch": theirs}, leaves)
        ratio = found["torch"] / found["openwork"]
        print(f"{name:34s} {found['openwork']:8.3f} ms   torch {found['torch']:8.3f} ms   ratio {ratio:6.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
