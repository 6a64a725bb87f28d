"""The rows of `compare.py`: for each operation everybody's call, and the test that the results are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from compare_peers import Matrix, Run, as_csr, same

__all__ = ["Row", "matrix_rows", "reduction_rows", "tensor_rows", "tiny_rows"]

RANK = 32
PRODUCTS = 400_000_000
"""Products up to which a matrix is multiplied by itself."""


@dataclass(frozen=True)
class Row:
    """One line: everybody's call by name, and whether a result is equal to SciPy's."""

    name: str
    runs: dict[str, Run]
    equal: Callable[[Any, Any], bool]
    note: str = ""


def close(got: Any, want: Any) -> bool:
    got = np.asarray(got.to_numpy() if hasattr(got, "to_numpy") else got)
    want = np.asarray(want)
    scale = float(np.abs(want).max(initial=0.0))
    return got.shape == want.shape and bool(np.allclose(got, want, rtol=1e-8, atol=1e-11 * scale))


def elementwise(a: Matrix, b: Matrix) -> Iterator[Row]:
    """A + B and A * B by everybody who has them."""
    for name, symbol in (("A + B", "plus"), ("A * B", "times")):
        runs: dict[str, Run] = {}
        for peer in ("openwork", "scipy", "torch", "sparse"):
            if symbol == "plus":
                runs[peer] = lambda peer=peer: getattr(a, peer) + getattr(b, peer)  # type: ignore[misc]
            else:
                runs[peer] = lambda peer=peer: getattr(a, peer) * getattr(b, peer)  # type: ignore[misc]
        runs["graphblas"] = lambda symbol=symbol: blas_elementwise(a.graphblas, b.graphblas, symbol)  # type: ignore[misc]
        yield Row(name, runs, same)


def blas_elementwise(a: Any, b: Any, symbol: str) -> Any:
    import graphblas as gb

    operator = getattr(gb.binary, symbol)
    out = (a.ewise_add(b, operator) if symbol == "plus" else a.ewise_mult(b, operator)).new()
    out.wait()
    return out


def chain(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Iterator[Row]:
    """Four operands at once; the peers take three steps."""
    import openwork as ow

    texts = {
        "A + B + C + D": lambda w, x, y, z: w + x + y + z,
        "A * B + C * D": lambda w, x, y, z: w * x + y * z,
        "A * B * C * D": lambda w, x, y, z: w * x * y * z,
    }
    for text, steps in texts.items():
        named = {n: m.openwork for n, m in zip("ABCD", (a, b, c, d), strict=True)}
        runs: dict[str, Run] = {"openwork": lambda text=text, named=named: ow.pointwise(text, named)}  # type: ignore[misc]
        for peer in ("scipy", "torch", "sparse"):
            runs[peer] = lambda peer=peer, steps=steps: steps(*(getattr(m, peer) for m in (a, b, c, d)))  # type: ignore[misc]
        yield Row(text, runs, same)


def product(a: Matrix) -> Iterator[Row]:
    """A @ A; ours and GraphBLAS's have sorted rows, SciPy's and MKL's do not."""
    work = int(np.diff(a.csr.indptr)[a.csr.indices].sum(dtype=np.int64))
    if work > PRODUCTS:
        yield Row("A @ A", {}, same, f"{work / 1e9:.1f}e9 products")
        return

    def by_mkl() -> Any:
        from sparse_dot_mkl import dot_product_mkl

        return dot_product_mkl(a.mkl, a.mkl)

    def by_graphblas() -> Any:
        import graphblas as gb

        out = a.graphblas.mxm(a.graphblas, gb.semiring.plus_times).new()
        out.wait()
        return out

    runs: dict[str, Run] = {
        "openwork": lambda: a.openwork @ a.openwork,
        "scipy": lambda: a.csr @ a.csr,
        "torch": lambda: a.torch @ a.torch,
        "mkl": by_mkl,
        "graphblas": by_graphblas,
        "sparse": lambda: a.sparse @ a.sparse,
    }
    yield Row("A @ A", runs, same)


def dense_products(a: Matrix) -> Iterator[Row]:
    """Products with a vector, SpMM and SDDMM of rank 32, and the product under a mask."""
    import openwork as ow

    rows, cols = a.csr.shape
    rng = np.random.default_rng(1)
    x, left, right = (rng.standard_normal(s) for s in ((cols, RANK), (rows, RANK), (RANK, cols)))

    def torch_of(array: Any) -> Any:
        import torch

        return torch.from_numpy(array)

    def by_mkl() -> Any:
        from sparse_dot_mkl import dot_product_mkl

        return dot_product_mkl(a.mkl, x)

    def sampled() -> Any:
        import torch

        return torch.sparse.sampled_addmm(a.torch, torch_of(left), torch_of(right), beta=0.0)

    def by_scipy() -> Any:
        """The dense products at the elements only: two gathers and an einsum, in pieces that stay in the cache."""
        csr = a.csr
        i, j = np.repeat(np.arange(rows), np.diff(csr.indptr)), csr.indices
        across = np.ascontiguousarray(right.T)
        out = np.empty(csr.nnz)
        for begin in range(0, csr.nnz, 1 << 14):
            part = slice(begin, begin + (1 << 14))
            out[part] = np.einsum("ek,ek->e", left[i[part]], across[j[part]])
        found = csr.copy()
        found.data = out
        return found

    y, z = rng.standard_normal(cols), rng.standard_normal(rows)
    runs: dict[str, Run] = {
        "openwork": lambda: a.openwork @ y,
        "scipy": lambda: a.csr @ y,
        "torch": lambda: a.torch @ torch_of(y),
    }
    yield Row("A @ x", runs, close)
    yield Row("A.T @ x", {"openwork": lambda: a.openwork.T @ z, "scipy": lambda: a.csr.T @ z}, close)
    yield Row(
        f"A @ X, {RANK} columns",
        {
            "openwork": lambda: a.openwork @ x,
            "scipy": lambda: a.csr @ x,
            "torch": lambda: a.torch @ torch_of(x),
            "mkl": by_mkl,
            "sparse": lambda: a.sparse @ x,
        },
        close,
    )
    runs: dict[str, Run] = {"openwork": lambda: ow.sddmm(a.openwork, left, right), "scipy": by_scipy, "torch": sampled}
    yield Row(f"SDDMM, rank {RANK}", runs, same)


def masked(a: Matrix, b: Matrix) -> Iterator[Row]:
    """M * (A @ A): in one step where openwork has `fused`, else as a masked product; SciPy takes two steps."""
    import openwork as ow

    work = int(np.diff(a.csr.indptr)[a.csr.indices].sum(dtype=np.int64))
    if work > PRODUCTS:
        return
    fused = getattr(ow, "fused", None)
    if fused is not None:
        function = fused(lambda m, x, y: m * (x @ y))
        ours: Run = lambda: function(b.openwork, a.openwork, a.openwork)  # noqa: E731
    else:
        ours = lambda: b.openwork * ow.spgemm(a.openwork, a.openwork, mask=b.openwork)  # noqa: E731

    def by_graphblas() -> Any:
        import graphblas as gb

        product = a.graphblas.mxm(a.graphblas, gb.semiring.plus_times).new(mask=b.graphblas.S)
        return blas_elementwise(b.graphblas, product, "times")

    runs: dict[str, Run] = {"openwork": ours, "scipy": lambda: b.csr * (a.csr @ a.csr), "graphblas": by_graphblas}
    yield Row("M * (A @ A)", runs, same)


def reduction_rows(a: Matrix) -> Iterator[Row]:
    """Sums over rows and over columns."""

    def by_graphblas(rowwise: bool) -> Any:
        import graphblas as gb

        reduce = a.graphblas.reduce_rowwise if rowwise else a.graphblas.reduce_columnwise
        return reduce(gb.monoid.plus).new().to_dense(fill_value=0.0)

    for axis, name in ((1, "sum of each row"), (0, "sum of each column")):
        runs: dict[str, Run] = {
            "openwork": lambda axis=axis: a.openwork.sum(axis=axis),  # type: ignore[misc]
            "scipy": lambda axis=axis: a.csr.sum(axis=axis),  # type: ignore[misc]
            "graphblas": lambda axis=axis: by_graphblas(axis == 1),  # type: ignore[misc]
        }
        yield Row(name, runs, close)


def conversions(a: Matrix) -> Iterator[Row]:
    """CSR to CSC, to COO, and COO in no order to CSR."""
    from scipy.sparse import coo_array

    import openwork as ow

    assert a.openwork is not None  # made before anybody is timed
    yield Row(
        "CSR to CSC",
        {
            "openwork": lambda: a.openwork.asformat("csc"),
            "scipy": lambda: a.csr.tocsc(),
            "torch": lambda: a.torch.to_sparse_csc(),
        },
        lambda got, want: same(as_csr(back(got)), want),
    )
    yield Row(
        "CSR to COO, a copy",
        {"openwork": lambda: a.openwork.asformat("coo", copy=True), "scipy": lambda: a.csr.tocoo(copy=True)},
        same,
    )
    order = np.random.default_rng(2).permutation(a.csr.nnz)
    coo = a.csr.tocoo()
    shuffled = coo_array((coo.data[order], (coo.row[order], coo.col[order])), shape=coo.shape)
    ours = ow.asarray(shuffled)

    def by_scipy() -> Any:
        fresh = coo_array((shuffled.data, (shuffled.row, shuffled.col)), shape=shuffled.shape)
        out = fresh.tocsr()
        out.sort_indices()
        return out

    yield Row("shuffled COO to CSR", {"openwork": lambda: ours.asformat("csr"), "scipy": by_scipy}, same)


def back(result: Any) -> Any:
    """CSC of torch as SciPy's."""
    if hasattr(result, "ccol_indices") and not hasattr(result, "to_scipy"):
        from scipy.sparse import csc_array

        parts = (result.values().numpy(), result.row_indices().numpy(), result.ccol_indices().numpy())
        return csc_array(parts, shape=tuple(result.shape))
    return result


def structure(a: Matrix, b: Matrix) -> Iterator[Row]:
    """Rows of two matrices in one, and a few elements against many."""
    import scipy.sparse as sp

    import openwork as ow

    yield Row(
        "A above B",
        {
            "openwork": lambda: ow.concat([a.openwork, b.openwork], axis=0),
            "scipy": lambda: sp.vstack([a.csr, b.csr], format="csr"),
        },
        same,
    )
    rng = np.random.default_rng(3)
    picked = np.sort(rng.choice(a.csr.nnz, min(a.csr.nnz, 100), replace=False))
    rows = np.searchsorted(a.csr.indptr, picked, side="right") - 1
    few = sp.coo_array((rng.random(len(picked)), (rows, a.csr.indices[picked])), shape=a.csr.shape).tocsr()
    yield from (Row("A * 100 elements", row.runs, same) for row in elementwise(a, Matrix(few)) if row.name == "A * B")


def matrix_rows(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Iterator[Row]:
    """All rows of a matrix A, with others of its shape."""
    yield from elementwise(a, b)
    yield from chain(a, b, c, d)
    yield from product(a)
    yield from masked(a, b)
    yield from dense_products(a)
    yield from reduction_rows(a)
    yield from conversions(a)
    yield from structure(a, b)


def tensor_rows(indices: Any, values: Any, shape: tuple[int, int, int]) -> Iterator[Row]:
    """MTTKRP and TTV on CSF; SciPy multiplies by the matricized tensor's incidence."""
    from scipy.sparse import csr_array

    import openwork as ow

    coo = ow.sparse_coo_tensor(indices, values, shape).coalesce()
    t = coo.asformat("csf")
    rng = np.random.default_rng(1)
    factors = [rng.standard_normal((n, RANK)) for n in shape]
    i, j, k = np.asarray(coo.indices())
    held = np.asarray(coo.values)
    at = np.arange(len(held))
    rows = csr_array((held, (i, at)), shape=(shape[0], len(held)))
    x = rng.standard_normal(shape[2])
    pairs = csr_array((held, (i.astype(np.int64) * shape[1] + j, k)), shape=(shape[0] * shape[1], shape[2]))
    yield Row(
        f"MTTKRP, rank {RANK}, CSF",
        {"openwork": lambda: ow.mttkrp(t, factors, 0), "scipy": lambda: rows @ (factors[1][j] * factors[2][k])},
        close,
    )
    yield Row(
        "TTV, CSF",
        {"openwork": lambda: ow.einsum("ijk,k->ij", t, x), "scipy": lambda: (pairs @ x).reshape(shape[:2])},
        close,
    )


def tiny_rows() -> Iterator[Row]:
    """10 x 10: nearly all overhead."""
    from scipy.sparse import random_array

    a, b = (Matrix(random_array((10, 10), density=0.2, rng=k, format="csr")) for k in (0, 1))
    for m in (a, b):
        m.csr.sort_indices()
    yield from (r for r in (*elementwise(a, b), *product(a)))
