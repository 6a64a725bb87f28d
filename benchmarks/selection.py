"""Selection, semirings, index arrays, contractions, eigenpairs and layers beside their peers: least CPU times, one run.

python benchmarks/selection.py [ROUNDS] [--write]     # --write: into docs/benchmarks.md; layers with torch_geometric

Operands of the rows of index arrays are made anew for each call, as programs have them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from measure import ROWS, Calls, least, least_of_new, show
from products import PARTS

import openwork as ow

SEMIRINGS = ("min_plus", "max_times", "plus_first", "plus_second", "plus_pair", "any_pair", "min_second", "lor_land")


PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- selection: made by benchmarks/selection.py -->", "<!-- end of selection -->"


def selection(rounds: int) -> None:
    """Rows against a loop of np.partition, on one thread by CPU time and on as many as there are cores by the clock."""
    before, cores = ow.get_num_threads(), os.cpu_count() or 1
    for rows, columns, density in ((20_000, 100_000, 5e-4), (200, 500_000, 1e-2), (2_000, 500_000, 2.5e-2)):
        a = ow.random((rows, columns), density, format="csr", rng=0)
        s = a.to_scipy()

        def loop(s: Any = s, k: int = 10) -> None:
            for lo, hi in zip(s.indptr[:-1], s.indptr[1:], strict=True):
                if hi - lo > k:
                    np.partition(s.data[lo:hi], -k)

        calls: Calls = {
            "loop": loop, "topk(A, 10)": lambda a=a: ow.topk(a, 10),
            "median": lambda a=a: ow.median(a, axis=1), "quantile 0.999": lambda a=a: ow.quantile(a, 0.999, axis=1),
            "np.partition(A, -10)": lambda a=a: np.partition(a, -10, axis=1),
        }  # fmt: skip
        for threads, clock in {1: time.process_time, cores: time.perf_counter}.items():
            ow.set_num_threads(threads)
            times = least(calls, rounds, clock)
            for name in list(calls)[1:]:
                of = f"{name}, {rows} rows of {a.nse // rows}" + (f", {threads} threads" if threads > 1 else "")
                show(of, times["loop"], times[name], "loop of np.partition")
        if rows * columns < 1 << 28:  # its result has all places
            some = a[:10].to_numpy()
            dense = (
                least({"loop": lambda some=some: [np.argpartition(row, -10) for row in some]}, 3)["loop"] * rows / 10
            )
            ow.set_num_threads(1)
            ours = least({"ours": lambda a=a: np.argpartition(a, -10, axis=1)}, 3)["ours"]
            show(f"np.argpartition(A, -10), {rows} rows of {columns}", dense, ours, "loop, dense rows")
    ow.set_num_threads(before)


def semirings(rounds: int) -> None:
    """Products with dense arrays against plus_times."""
    n, rng = 100_000, np.random.default_rng(0)
    a = ow.random((n, n), 10 / n, format="csr", rng=0)
    x, block = rng.random(n), rng.random((n, 8))
    for text, dense in (("ij,j->i", x), ("i,ij->j", x), ("ij,jk->ik", block)):
        operands = (dense, a) if text.startswith("i,") else (a, dense)

        def product(name: str, text: str = text, operands: Any = operands) -> Callable[[], object]:
            return lambda: ow.einsum(text, *operands, semiring=name)

        times = least({name: product(name) for name in ("plus_times", *SEMIRINGS)}, rounds)
        for name in SEMIRINGS:
            show(f"{name}, {text}", times["plus_times"], times[name], "plus_times")


def index_arrays(rounds: int) -> None:
    """A stiffness matrix of 1e6 elements against SciPy's."""
    n, rng = 335, np.random.default_rng(0)
    one = np.ones(n)
    t = sp.diags_array([one[1:], one, one[1:]], offsets=[-1, 0, 1])
    k = sp.csr_array(sp.kron(t, t))
    k.sort_indices()
    size = k.shape[0]
    some = rng.permutation(size)[: size // 2]
    more = sp.random_array((2000, size), density=5 / size, format="csr", rng=rng)
    few, few_rows = more[:20], np.sort(some[:20])

    def scipys() -> Any:
        return sp.csr_array((k.data.copy(), k.indices.copy(), k.indptr.copy()), shape=k.shape)

    def ours() -> Any:
        return ow.asarray(scipys())

    more_ours, few_ours = ow.asarray(more), ow.asarray(few)
    ordered = np.sort(some)
    rows: dict[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
        "K[I]": (lambda a: a[some],) * 2, "K[:, I]": (lambda a: a[:, some],) * 2,
        "K[:, I], I sorted": (lambda a: a[:, ordered],) * 2, "K[I][:, I]": (lambda a: a[some][:, some],) * 2,
        "2,000 rows appended": (
            lambda a: sp.vstack([a, more], format="csr"), lambda a: ow.concat([a, more_ours], axis=0),
        ),
        "20 rows set, sparse": (
            lambda a: a.__setitem__(few_rows, few), lambda a: a.__setitem__(few_rows, few_ours),
        ),
        "20 rows set to 0": (lambda a: a.__setitem__(few_rows, 0),) * 2,
    }  # fmt: skip
    for name, (theirs, own) in rows.items():
        times = least_of_new({"peer": (scipys, theirs), "ours": (ours, own)}, rounds)
        show(name, times["peer"], times["ours"], "SciPy")


def edge_softmax(rounds: int) -> None:
    """Softmax over the edges of each node, 320,000 edges, against PyTorch Geometric's."""
    try:
        from torch_geometric.utils import softmax
    except ImportError:
        return
    n = 20_000
    s = ow.random((n, n), 16 / n, format="csr", rng=0).to_scipy()
    values = torch.randn(s.nnz, generator=torch.Generator().manual_seed(0)).requires_grad_()
    pos, rows = torch.from_numpy(s.indptr.astype(np.int64)), torch.from_numpy(s.tocoo().row.astype(np.int64))
    structure = ow.sparse_csr_tensor(pos, torch.from_numpy(s.indices.astype(np.int64)), values.detach(), (n, n))
    weights = torch.rand(s.nnz, generator=torch.Generator().manual_seed(1))

    def ours(v: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = ow.softmax(structure.with_values(v), axis=1).values
        return result

    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "ours": ours, "PyG, index": lambda v: softmax(v, rows, num_nodes=n), "PyG, ptr": lambda v: softmax(v, ptr=pos),
    }  # fmt: skip
    forward = least({name: lambda f=f: f(values.detach()) for name, f in ways.items()}, rounds)
    both = least(
        {name: lambda f=f: torch.autograd.grad((f(values) * weights).sum(), values) for name, f in ways.items()}, rounds
    )
    for peer in list(ways)[1:]:
        show("edge softmax", forward[peer], forward["ours"], peer)
        show("edge softmax, forward and backward", both[peer], both["ours"], peer)


if __name__ == "__main__":
    given = [x for x in sys.argv[1:] if x != "--write"]
    ROWS += ["| call | openwork ms | peer ms | peer | openwork / peer |", "| --- | ---: | ---: | --- | ---: |"]
    print(*ROWS, sep="\n")
    for part in (selection, semirings, index_arrays, edge_softmax, *PARTS):
        part(int(given[0]) if given else 15)
    if "--write" in sys.argv:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text("\n".join((f"{head}{BEGIN}", *ROWS, f"{END}{rest.partition(END)[2]}")))
