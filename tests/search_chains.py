"""Random chains of products, sums and reductions whose operands lie in n:m groups, blocks and diagonals, with any fill value."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from search_oracle import Case
from search_routes import Want, promoted

import openwork as ow

__all__ = ["chains"]

Array = np.ndarray[Any, Any]
PACKED: tuple[tuple[str, int, int, int], ...] = (
    ("nm(2, 4)", 1, 2, 4),
    ("nm(2, 4)", 1, 2, 4),
    ("nm(1, 4)", 1, 1, 4),
    ("nm(1, 2)", 1, 1, 2),
    ("nm(4, 4)", 1, 4, 4),
    ("(i, j) -> (j : dense, i // 4 : dense, i % 4 : structured(2, 4))", 0, 2, 4),
    ("(i, j) -> (i : compressed, j // 4 : compressed, j % 4 : structured(2, 4))", 1, 2, 4),
    ("(i, j) -> (i // 2 : dense, j // 4 : compressed, i % 2 : dense, j % 4 : structured(1, 4))", 1, 1, 4),
    ("(i, j) -> (i : dense, j // 2 // 2 : dense, j // 2 % 2 : structured(1, 2), j % 2 : dense)", 1, 1, 4),
)
"""Formats of n:m groups; the dimension in which groups lie, and how many elements of how many one may hold."""
OTHERS = (
    "bsr(2, 2)", "bsr(2, 3)", "bsc(2, 2)", "bsr(1, 4)", "bsr(4, 4)", "csr", "csc", "coo", "dcsr", "dia", "ell(7)", "bitmap", "dense",
    "(i, j) -> (i // 4 : dense, j // 4 : compressed, i % 4 // 2 : dense, j % 4 // 2 : dense, i % 2 : dense, j % 2 : dense)",
    "(i, j) -> (i // 2 : compressed, j // 2 : compressed, j % 2 : dense, i % 2 : dense)",
    "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
)  # fmt: skip
CHAINS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("A @ B", "A:ij B:jk", lambda A, B: A @ B),
    ("A @ B @ C", "A:ij B:jk C:kl", lambda A, B, C: A @ B @ C),
    ("A @ (B + C)", "A:ij B:jk C:jk", lambda A, B, C: A @ (B + C)),
    ("(A + B) @ C", "A:ij B:ij C:jk", lambda A, B, C: (A + B) @ C),
    ("(A * B) @ C", "A:ij B:ij C:jk", lambda A, B, C: (A * B) @ C),
    ("A @ B + C", "A:ij B:jk C:ik", lambda A, B, C: A @ B + C),
    ("A * (B @ C)", "A:ik B:ij C:jk", lambda A, B, C: A * (B @ C)),
    ("A.T @ B", "A:ji B:jk", lambda A, B: A.T @ B),
    ("A @ B.T - C", "A:ij B:kj C:ik", lambda A, B, C: A @ B.T - C),
    ("(A * 2) @ x", "A:ij x:j", lambda A, x: (A * 2) @ x),
    ("x @ (A - B)", "x:i A:ij B:ij", lambda x, A, B: x @ (A - B)),
    ("A @ x * A", "A:ij x:j", lambda A, x: (A @ x)[:, None] * A),
    ("(A * B).sum(0)", "A:ij B:ij", lambda A, B: (A * B).sum(axis=0)),
    ("(A + B).prod(1)", "A:ij B:ij", lambda A, B: (A + B).prod(axis=1)),
    ("A + B - C", "A:ij B:ij C:ij", lambda A, B, C: A + B - C),
    ("A[::2] @ B", "A:ij B:jk", lambda A, B: A[::2] @ B),
    ("(A @ B)[1:] + 1", "A:ij B:jk", lambda A, B: (A @ B)[1:] + 1),
)


def packed(a: Array, fill: Any, dimension: int, held: int, group: int) -> Array:
    """The array with the fill value instead of all but the first few other elements of each group."""
    rows = np.moveaxis(a.copy(), dimension, -1)
    for begin in range(0, rows.shape[-1], group):
        part = rows[..., begin : begin + group]
        part[np.cumsum(part != fill, axis=-1) > held] = fill
    return np.moveaxis(rows, -1, dimension)


def chains(d: Any) -> Case:
    """A chain of operators, as they stand or computed together, the first operand in n:m groups or blocks."""
    rng: random.Random = d.rng
    d.tame, d.dtype = True, rng.choice(("float64", "float64", "float32", "float16", "int64", "int32", "complex128"))
    text, operands, chain = rng.choice(CHAINS)
    sizes = {i: rng.choice((0, 1, 3, 4, 4, 8, 8, 12)) for i in "ijkl"}
    if "prod" in text:
        sizes["j"] = 4
    lazy = rng.random() < 0.3
    for k, (_, letters) in enumerate(o.split(":") for o in operands.split()):
        shape = tuple(sizes[i] for i in letters)
        if len(shape) == 1 or (k and rng.random() < 0.2):
            d.plain(shape)
        else:
            format, *groups = rng.choice(PACKED) if rng.random() < 0.6 - 0.2 * k else (rng.choice(OTHERS),)
            d.operand(
                shape, format=ow.format(format, 2), shaped=lambda a, fill, g=groups: packed(a, fill, *g) if g else a
            )
    tensors = [t for t, _ in d.pairs]
    groups = sum("structured" in str(t.format) for t in tensors if isinstance(t, ow.Tensor))
    d.dimensions += [
        f"operands in n:m groups: {groups}",
        f"operation: {text}",
        f"spelling: {'lazy' if lazy else 'operator'}",
    ]

    def ours() -> Any:
        if lazy:
            return ow.compute(chain(*(ow.lazy(t) if isinstance(t, ow.Tensor) else t for t in tensors)))
        return chain(*tensors)

    def wanted() -> Any:
        arrays, dtype = promoted(d.pairs)
        found = chain(*arrays)
        return (
            found
            if dtype is None
            else Want(found.astype("int64") if found.dtype.kind == "u" else found, _of(found, dtype))
        )

    return d.case(f"{text}{' (lazy)' if lazy else ''}", ours, wanted, close=True)


def _of(found: Array, dtype: str) -> str:
    """The dtype of torch's result; sums of integers are wide."""
    return "int64" if found.dtype == np.int64 else dtype
