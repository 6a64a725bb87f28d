"""Everything of openwork.dask over a matrix, a tensor and a file: name -> (what a cluster computes, what one process does).

The operands are small; each result is an array, or a number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

import openwork as ow
from openwork import decomposition, graph, linalg
from openwork.dask import BlockMatrix, BlockTensor, cg, from_file, pagerank, partition, to_file

__all__ = ["methods"]

_OPTIONS: dict[str, Any] = {"damping": 0.3, "tolerance": 1e-6}


class Stored:
    """A file of doubles that every process may write a part of."""

    def __init__(self, path: str, shape: tuple[int, int]) -> None:
        self.path, self.shape = path, shape

    def __setitem__(self, key: Any, block: ow.Tensor) -> None:
        np.memmap(self.path, np.float64, "r+", shape=self.shape)[key] = block.to_numpy()


def methods(folder: Path, n: int = 60) -> dict[str, tuple[Callable[[], Any], Any]]:
    """Each is called as often as one likes; files are in the folder."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((n, n)) < 0.9, 0, rng.random((n, n)))
    t = ow.asarray(dense, format="csr")
    spd = ow.asarray(np.eye(n) * 0.2 * n + dense + dense.T, format="csr")
    cube = ow.asarray(np.where(rng.random((9, 8, 7)) < 0.6, 0, rng.random((9, 8, 7))), format="csf")
    x, wide = rng.random(n), rng.random((n, 3))
    path = str(folder / "t.ow")
    ow.write(path, t)
    blocks, chunks = BlockMatrix(t, 3), BlockMatrix(da.from_array(t, chunks=(n // 3, n)))
    grid, definite = BlockMatrix(t, partition(t, 4, by="grid")), BlockMatrix(spd, 2)
    kept = BlockTensor(cube, 2)
    single, alone = BlockMatrix(spd, 1), BlockTensor(cube, 1)
    array = da.from_array(t, chunks=(n // 3, n // 2))
    model = decomposition.cp_als(cube, 2, maxiter=2, rng=0)

    def copied() -> Any:
        to_file(from_file(path, rows=n // 4) * 2, folder / "u.ow", format="csr")
        return ow.read(folder / "u.ow").to_numpy()

    def stored() -> Any:
        np.zeros((n, n)).tofile(folder / "stored.bin")
        (array * 3).store(Stored(str(folder / "stored.bin"), (n, n)), lock=False)
        return np.fromfile(folder / "stored.bin").reshape(n, n)

    theirs = da.linalg.svd_compressed(da.from_array(dense, chunks=(n // 3, n // 2)), 3, n_power_iter=2, seed=0)[1]
    compressed = theirs.compute(scheduler="sync")

    return {
        "A @ x": (lambda: blocks @ x, dense @ x),
        "A @ X of Dask's chunks": (lambda: chunks @ wide, dense @ wide),
        "A.T @ X in a grid": (lambda: grid.T @ wide, dense.T @ wide),
        "normal_matmat": (lambda: blocks.normal_matmat(wide), dense.T @ (dense @ wide)),
        "gram": (lambda: blocks.gram().to_numpy(), dense.T @ dense),
        "components": (lambda: graph.components(grid)[1], graph.components(t)[1]),
        "graph.pagerank": (lambda: graph.pagerank(blocks, **_OPTIONS), graph.pagerank(t, **_OPTIONS)),
        "linalg.cg": (lambda: linalg.cg(definite, x, rtol=1e-9)[0], np.linalg.solve(spd.to_numpy(), x)),
        "linalg.cg where the block is": (lambda: linalg.cg(single, x, rtol=1e-9)[0], np.linalg.solve(spd.to_numpy(), x)),
        "cp_als where the block is": (lambda: decomposition.cp_als(alone, 2, maxiter=2, rng=0).fit, model.fit),
        "svd_compressed": (
            lambda: da.linalg.svd_compressed(array, 3, n_power_iter=2, seed=0)[1].compute(),
            compressed,
        ),
        "store": (stored, dense * 3),
        "randomized_svd": (
            lambda: linalg.randomized_svd(blocks, 3, rng=0).s, linalg.randomized_svd(t, 3, rng=0).s,
        ),
        "mttkrp": (
            lambda: kept.mttkrp([None, wide[:8], wide[:7]], 0),
            np.einsum("ijk,jr,kr->ir", cube.to_numpy(), wide[:8], wide[:7]),
        ),
        "cp_als": (lambda: decomposition.cp_als(kept, 2, maxiter=2, rng=0).fit, model.fit),
        "a @ x": (lambda: (array @ x).compute(), dense @ x),
        "a.T @ a": (lambda: (array.T @ array).compute().to_numpy(), dense.T @ dense),
        "cg": (
            lambda: cg(da.from_array(spd, chunks=n // 2), x, rtol=1e-7)[0].compute(),
            np.linalg.solve(spd.to_numpy(), x),
        ),
        "pagerank": (lambda: pagerank(array, **_OPTIONS).compute(), graph.pagerank(t, **_OPTIONS)),
        "from_file": (lambda: (from_file(path, rows=n // 4) @ x).compute(), dense @ x),
        "to_file": (copied, dense * 2),
    }  # fmt: skip
