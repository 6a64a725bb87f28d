"""Microseconds of calls on tensors that are new, and on one again and again; of programs of several lines.

    python benchmarks/new_tensors.py [--count 100] [--match "A @"] [--programs]

What a program does is mostly the first: each line takes the result of the line before. For every row so many
matrices are made outside the clock, for openwork and for the peer alike, over buffers of their own; one call on each is
timed, in turn, and the medians are printed. "New shape" are matrices that have another number of rows each, as slices,
mini-batches and choices of rows have. "Same" is one matrix, called as often. Kernels are compiled before. One thread.
The peer of NumPy buffers is SciPy, that of torch's buffers torch's own CSR; "limit" is three times SciPy's
`csr_array(S)`, below which a ratio says little.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import openwork as ow

Call = Callable[[Any, Any], Any]
Row = tuple[Call, Call]


def numpy_rows(shape: tuple[int, int]) -> dict[str, Row]:
    """Calls of two tensors over NumPy buffers, and SciPy's."""
    m, n = shape
    x, y, wide, few = np.ones(n), np.ones(m), np.ones((n, 5)), np.ones((5, m))
    full = np.random.default_rng(1).random(shape)
    rows, picked = [1, 5, 7], np.arange(0, m, 3)
    triplets = sp.random_array(shape, density=min(1.0, 240 / (m * n)), rng=np.random.default_rng(2))
    at, v = np.stack(triplets.coords), triplets.data
    return {
        "A @ x": (lambda a, b: a @ x, lambda s, t: s @ x),
        "A @ X": (lambda a, b: a @ wide, lambda s, t: s @ wide),
        "y @ A": (lambda a, b: y @ a, lambda s, t: y @ s),
        "Y @ A": (lambda a, b: few @ a, lambda s, t: few @ s),
        "A.T @ y": (lambda a, b: a.T @ y, lambda s, t: s.T @ y),
        "A @ B.T": (lambda a, b: a @ b.T, lambda s, t: s @ t.T),
        "A + B": (lambda a, b: a + b, lambda s, t: s + t),
        "A - B": (lambda a, b: a - b, lambda s, t: s - t),
        "A * B": (lambda a, b: a * b, lambda s, t: s * t),
        "A * 2": (lambda a, b: a * 2, lambda s, t: s * 2),
        "-A": (lambda a, b: -a, lambda s, t: -s),
        "abs": (lambda a, b: abs(a), lambda s, t: abs(s)),
        "np.sqrt": (lambda a, b: np.sqrt(a), lambda s, t: np.sqrt(s)),
        "A > 0.5": (lambda a, b: a > 0.5, lambda s, t: s > 0.5),
        "A * row": (lambda a, b: a * x, lambda s, t: s.multiply(x).tocsr()),
        "A * X": (lambda a, b: a * full, lambda s, t: s.multiply(full).tocsr()),
        "sum": (lambda a, b: a.sum(), lambda s, t: s.sum()),
        "sum(0)": (lambda a, b: a.sum(axis=0), lambda s, t: s.sum(axis=0)),
        "sum(1)": (lambda a, b: a.sum(axis=1), lambda s, t: s.sum(axis=1)),
        "max(1)": (lambda a, b: a.max(axis=1), lambda s, t: s.max(axis=1)),
        "mean(0)": (lambda a, b: a.mean(axis=0), lambda s, t: s.mean(axis=0)),
        "A[3:9]": (lambda a, b: a[3:9], lambda s, t: s[3:9]),
        "A[:, 3:9]": (lambda a, b: a[:, 3:9], lambda s, t: s[:, 3:9]),
        "A[list]": (lambda a, b: a[rows], lambda s, t: s[rows]),
        "A[:, list]": (lambda a, b: a[:, rows], lambda s, t: s[:, rows]),
        "A[array]": (lambda a, b: a[picked], lambda s, t: s[picked]),
        "A[3]": (lambda a, b: a[3], lambda s, t: s[3]),
        "A[3, 4]": (lambda a, b: a[3, 4], lambda s, t: s[3, 4]),
        "to_dense": (lambda a, b: a.to_dense(), lambda s, t: s.toarray()),
        "from dense": (lambda a, b: ow.asarray(full, format="csr"), lambda s, t: sp.csr_array(full)),
        "from triplets": (
            lambda a, b: ow.sparse_coo_tensor(at, v, shape).asformat("csr"),
            lambda s, t: sp.coo_array((v, tuple(at)), shape=shape).tocsr(),
        ),
        "to CSC": (lambda a, b: a.asformat("csc"), lambda s, t: s.tocsc()),
        "to COO": (lambda a, b: a.asformat("coo"), lambda s, t: s.tocoo()),
        "to SciPy": (lambda a, b: a.to_scipy(), lambda s, t: sp.csr_array((s.data, s.indices, s.indptr), s.shape)),
        "vstack": (lambda a, b: ow.vstack([a, b]), lambda s, t: sp.vstack([s, t])),
        "diagonal": (lambda a, b: ow.diagonal(a), lambda s, t: s.diagonal()),
        "tril": (lambda a, b: ow.tril(a), lambda s, t: sp.tril(s)),
    }


def torch_rows(torch: Any, shape: tuple[int, int]) -> dict[str, Row]:
    """Calls of two tensors over torch buffers, and those of torch's CSR."""
    n = shape[1]
    x, wide = torch.ones(n, dtype=torch.float64), torch.ones(n, 5, dtype=torch.float64)
    return {
        "torch: A @ x": (lambda a, b: a @ x, lambda s, t: s @ x),
        "torch: A @ X": (lambda a, b: a @ wide, lambda s, t: s @ wide),
        "torch: A + B": (lambda a, b: a + b, lambda s, t: s + t),
        "torch: A * B": (lambda a, b: a * b, lambda s, t: s * t),
        "torch: A * 2": (lambda a, b: a * 2, lambda s, t: s * 2),
        "torch: relu": (lambda a, b: torch.relu(a), lambda s, t: torch.relu(s)),
        "torch: sum": (lambda a, b: a.sum(), lambda s, t: s.sum()),
        "torch: to_dense": (lambda a, b: a.to_dense(), lambda s, t: s.to_dense()),
    }


def backward_rows(torch: Any, shape: tuple[int, int]) -> dict[str, Row]:
    """Forward and backward of what torch records."""
    x = torch.ones(shape[1], 1, dtype=torch.float64)

    def step(call: Call) -> Row:
        def ours(a: Any, b: Any) -> Any:
            y = call(a, b)
            return (y.values if isinstance(y, ow.Tensor) else y).sum().backward()

        return ours, lambda s, t: (lambda y: (y.sum() if y.layout is torch.strided else y.to_dense().sum()).backward())(
            call(s, t)
        )

    return {
        "both ways: A @ X": step(lambda a, b: a @ x),
        "both ways: A + B": step(lambda a, b: a + b),
        "both ways: A * 2": step(lambda a, b: a * 2),
        "both ways: to_dense": step(lambda a, b: a.to_dense()),
    }


def copied(s: Any) -> Any:
    """A SciPy matrix over buffers of its own."""
    return sp.csr_array((s.data.copy(), s.indices.copy(), s.indptr.copy()), shape=s.shape)


Operands = tuple[tuple[Any, Any], tuple[Any, Any]]


def median_each(each: Iterable[tuple[Row, Operands]]) -> tuple[float, ...]:
    """The median microseconds of our calls and the peer's, each on operands of its own, in turn."""
    taken: tuple[list[float], list[float]] = [], []
    for calls, operands in each:
        for times, call, (first, second) in zip(taken, calls, operands, strict=True):
            begun = time.perf_counter()
            call(first, second)
            times.append(time.perf_counter() - begun)
    return tuple(statistics.median(times) * 1e6 for times in taken)


def measure(
    name: str, rows: Callable[[tuple[int, int]], dict[str, Row]], make: Callable[[tuple[int, int]], Operands],
    shape: tuple[int, int], count: int,
) -> list[float]:  # fmt: skip
    """New tensors: ours and the peer's; those of new shapes; the same ones."""
    row = rows(shape)[name]
    shapes = [(shape[0] + k, shape[1]) for k in range(1, count + 1)]
    median_each([(row, make(shape)) for _ in range(3)])
    new = median_each([(row, make(shape)) for _ in range(count)])
    shaped = median_each([(rows(other)[name], make(other)) for other in shapes])
    same = make(shape)
    median_each([(row, same)] * 20)
    return [*new, *shaped, *median_each([(row, same)] * count)]


def table(shape: tuple[int, int], density: float, count: int, match: str) -> None:
    """Print the rows of one shape."""
    rng = np.random.default_rng(0)

    def matrices(shape: tuple[int, int]) -> tuple[Any, Any]:
        s, t = (sp.random_array(shape, density=density, format="csr", rng=rng) for _ in range(2))
        return s, t

    def of_numpy(shape: tuple[int, int]) -> Operands:
        pair = matrices(shape)
        ours, theirs = [ow.asarray(copied(s)) for s in pair], [copied(s) for s in pair]
        return (ours[0], ours[1]), (theirs[0], theirs[1])

    construct = (lambda s, t: sp.csr_array(s),) * 2
    limit = 3 * median_each([(construct, (matrices(shape),) * 2) for _ in range(count)])[0]
    print(f"\n{shape[0]} x {shape[1]}, {density:.0%}; limit {limit:.0f} us\n")
    print("| call | new: openwork | peer | ours / peer | new shape: openwork | ours / peer | same: openwork", end=" ")
    print("| ours / peer |\n" + "| --- " * 8 + "|")
    found: list[list[float]] = []

    def run(rows: Callable[[tuple[int, int]], dict[str, Row]], make: Callable[[tuple[int, int]], Operands]) -> None:
        for name in rows(shape):
            if re.search(match, name):
                times = new, peer, shaped, its_peer, again, peer_again = measure(name, rows, make, shape, count)
                print(
                    f"| {name} | {new:.1f} | {peer:.1f} | {new / peer:.2f} | {shaped:.1f} | {shaped / its_peer:.2f} |"
                    f" {again:.1f} | {again / peer_again:.2f} |"
                )
                found.append(times)

    run(numpy_rows, of_numpy)
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        torch.set_num_threads(1)

        def of_torch(shape: tuple[int, int], recorded: bool = False) -> Operands:
            pair = [torch.from_numpy(s.toarray()) for s in matrices(shape)]
            ours = [ow.asarray(x.to_sparse_csr()) for x in pair]
            theirs = [x.to_sparse_csr() for x in pair]
            if recorded:
                ours, theirs = ([x.requires_grad_() for x in xs] for xs in (ours, theirs))
            return (ours[0], ours[1]), (theirs[0], theirs[1])

        def recorded(shape: tuple[int, int]) -> dict[str, Row]:
            return {f"recorded {name}": row for name, row in torch_rows(torch, shape).items()}

        run(lambda shape: torch_rows(torch, shape), of_torch)
        run(recorded, lambda shape: of_torch(shape, True))
        run(lambda shape: backward_rows(torch, shape), lambda shape: of_torch(shape, True))
    for at, what in enumerate(("new", "new shape", "same")) if found else ():
        pairs = [times[2 * at : 2 * at + 2] for times in found]
        ratios = [ours / peer for ours, peer in pairs]
        fine = sum(ours <= max(1.5 * peer, limit) for ours, peer in pairs)
        print(f"\n{what}: {fine} of {len(pairs)} rows at most 1.5 of the peer's time or the limit,", end=" ")
        print(f"mean {statistics.mean(ratios):.2f}, worst {max(ratios):.1f}", end="")
    print()


def counts(library: Any, a: Any) -> Any:
    """Ten lines of single-cell counts: normalise, log1p, choose columns, centre implicitly, project."""
    depth = np.asarray(a.sum(axis=1)).reshape(-1)
    scale = 1e4 / np.maximum(depth, 1)
    b = library.diagonal(scale) @ a
    b = np.log1p(b)
    mean = np.asarray(b.mean(axis=0)).reshape(-1)
    chosen = np.sort(np.argsort(mean)[-50:])
    c = b[:, chosen]
    centre = np.asarray(c.mean(axis=0)).reshape(-1)
    basis = np.ones((50, 8)) / 50
    return c @ basis - centre @ basis


def newton(library: Any, a: Any) -> Any:
    """Steps of Newton's method: assemble from triplets, factor, solve."""
    n = a.shape[0]
    x = np.zeros(n)
    i = np.arange(n)
    for _ in range(3):
        rows, cols = np.concatenate([i, i[1:], i[:-1]]), np.concatenate([i, i[:-1], i[1:]])
        values = np.concatenate([4 + x**2, -np.ones(n - 1), -np.ones(n - 1)])
        k = library.assembled(rows, cols, values, n)
        x = x + library.solve(k, np.ones(n) - np.asarray(k @ x).reshape(-1))
    return x


class Ours:
    """What the programs call, of openwork."""

    @staticmethod
    def diagonal(x: Any) -> Any:
        return ow.diags_array(x, format="csr")

    @staticmethod
    def assembled(rows: Any, cols: Any, values: Any, n: int) -> Any:
        return ow.sparse_coo_tensor(np.stack([rows, cols]), values, (n, n)).asformat("csr")

    @staticmethod
    def solve(k: Any, b: Any) -> Any:
        return np.asarray(ow.linalg.solve(k, b))


class Theirs:
    """The same of SciPy."""

    @staticmethod
    def diagonal(x: Any) -> Any:
        return sp.diags_array(x, format="csr")

    @staticmethod
    def assembled(rows: Any, cols: Any, values: Any, n: int) -> Any:
        return sp.coo_array((values, (rows, cols)), shape=(n, n)).tocsr()

    @staticmethod
    def solve(k: Any, b: Any) -> Any:
        return spla.spsolve(k.tocsc(), b)


def programs(count: int) -> None:
    """Print the programs, each on new matrices of a shape of their own."""
    rng = np.random.default_rng(0)
    print("\n| program | openwork, us | SciPy, us | ours / SciPy |\n| --- | --- | --- | --- |")
    for name, function, shape, density in (
        ("counts 200 x 400", counts, (200, 400), 0.1), ("Newton of 200", newton, (200, 200), 0.02),
        ("counts 3,000 x 2,000", counts, (3000, 2000), 0.05), ("Newton of 20,000", newton, (20_000, 20_000), 1e-6),
    ):  # fmt: skip
        pairs = []
        for k in range(max(12, count // 4)):
            s = sp.random_array((shape[0] + k, shape[1]), density=density, format="csr", rng=rng)
            pairs.append(((ow.asarray(copied(s)), None), (copied(s), None)))
        row = (lambda a, _, f=function: f(Ours, a)), (lambda s, _, f=function: f(Theirs, s))
        first = [call(operands[0], None) for call, operands in zip(row, pairs[0], strict=True)]
        np.testing.assert_allclose(*first, rtol=1e-6, atol=1e-8)
        ours, theirs = median_each([(row, pair) for pair in pairs[1:]])
        print(f"| {name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="matrices for each row")
    parser.add_argument("--match", default="", help="only rows whose name contains this regular expression")
    parser.add_argument("--programs", action="store_true", help="the programs alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ow.set_num_threads(1)
    if not options.programs:
        table((30, 40), 0.2, options.count, options.match)
        table((1000, 1000), 0.01, options.count, options.match)
    if not options.match:
        programs(options.count)


if __name__ == "__main__":
    main()
