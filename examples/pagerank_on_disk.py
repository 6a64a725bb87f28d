"""PageRank of a web-scale-like graph larger than the memory that it is given: generated, sorted and read on disk.

    python examples/pagerank_on_disk.py --scale 20 --edges 6.5e7 --memory 256MiB --limit --folder FOLDER

Edges are drawn block by block by R-MAT (each bit of the two ends by the probabilities of a quarter of the matrix), as
`io.write_parts` asks for them, and sorted into columns, so that a step reads the file from front to back.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openwork as ow
from openwork.advice.units import bytes_of, bytes_text
from openwork.io import write_parts
from openwork.progress import at_terminal, ignore

BLOCK = 1 << 20
QUARTERS = (0.57, 0.19, 0.19, 0.05)
"""The probabilities of R-MAT: both ends in the first half, the first, the second, none."""


def edges(scale: int, count: int, seed: int = 0) -> Iterator[tuple[tuple[Any, Any], Any]]:
    """R-MAT edges among 2**scale nodes, block by block: (from, to), and ones; parallel edges add up when sorted."""
    a, b, c, _ = QUARTERS
    for first in range(0, count, BLOCK):
        rng = np.random.default_rng((seed, first))
        n = min(BLOCK, count - first)
        source, target = np.zeros(n, np.int32), np.zeros(n, np.int32)
        for _ in range(scale):
            x = rng.random(n, np.float32)
            source = 2 * source + (x >= a + b)
            target = 2 * target + (((x >= a) & (x < a + b)) | (x >= a + b + c))
        yield (source, target), np.ones(n, np.float32)


def pagerank(A: ow.Tensor, steps: int, damping: float = 0.85) -> NDArray[np.float64]:
    """The ranks after some steps of the power method; A[i, j] is the weight of the edge from i to j."""
    n = A.shape[0]
    out = np.asarray(A.sum(axis=1), np.float64)
    dangling = out == 0
    scale = 1 / np.where(dangling, 1, out)
    rank = np.full(n, 1 / n)
    with at_terminal() as passes:
        show = passes.begin("PageRank", "steps") or ignore
        for step in range(steps):
            show(step, steps)
            moved = A.T @ np.where(dangling, 0, rank * scale)
            rank = damping * moved + (damping * rank[dangling].sum() + 1 - damping) / n
    return rank


def run(scale: int, count: int, memory: str, folder: Path, steps: int) -> NDArray[np.float64]:
    """Generate, sort and rank; the figures are printed."""
    path = folder / "graph.ow"
    begun = time.perf_counter()
    with at_terminal() as passes:
        show, blocks = passes.begin("edges") or ignore, -(-count // BLOCK)
        parts = (part for k, part in enumerate(edges(scale, count)) if show(k, blocks) is None)
        write_parts(path, parts, (1 << scale, 1 << scale), format="csc", dtype="float32", memory=memory)
    sorted_at = time.perf_counter()
    A = ow.open(path, check=False)
    print(f"graph     {A.shape[0]:,} nodes, {A.nse:,} edges, {bytes_text(A.nbytes)} on disk; memory {memory}")
    print(f"sorted    {sorted_at - begun:.1f} s, generated too")
    rank = pagerank(A, steps)
    print(f"ranked    {(time.perf_counter() - sorted_at) / steps:.2f} s a step, {steps} steps, sum {rank.sum():.6f}")
    print("highest  ", ", ".join(f"node {k} {rank[k]:.5f}" for k in np.argsort(-rank, kind="stable")[:3]))
    return rank


def main(arguments: Sequence[str] = ()) -> NDArray[np.float64]:
    """A graph whose file is about twice the memory; a small one without arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scale", type=int, default=10, help="the graph has 2**scale nodes")
    parser.add_argument("--edges", type=float, default=2e4)
    parser.add_argument("--memory", default="512MiB", help="of the process, which gets no more")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the graph is kept; a temporary folder without")
    parser.add_argument("--limit", action="store_true", help="let the system refuse more memory (RLIMIT_DATA)")
    given = parser.parse_args(list(arguments))
    if given.limit:
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_of(given.memory, "limit", "memory"),) * 2)
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        return run(given.scale, int(given.edges), given.memory, given.folder or Path(temporary), given.steps)


if __name__ == "__main__":
    main(sys.argv[1:])
