"""The format matrix: formats by rank, dense arrays to hold in them, and one comparison with NumPy for all operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import openwork as ow

FORMATS: dict[int, tuple[str, ...]] = {
    0: ("() -> ()",),
    1: (
        "dense", "bitmap", "coo", "csf",
        "(i) -> (i // 3 : compressed, i % 3 : dense)",
        "(i) -> (i // 4 : dense, i % 4 : bitmap)",
        "(i) -> (i : compressed(nonunique, unordered))",
    ),
    2: (
        "dense", "dense_f", "coo", "csr", "csc", "dcsr", "dcsc", "bsr(2, 3)", "bsc(2, 3)", "bsr(4, 4)", "bsr(1, 8)",
        "dia", "ell(12)", "csf", "bitmap", "nm(4, 4)",
        "(i, j) -> (j - i : compressed, j : range)",
        "(i, j) -> (i - j : compressed, j : range)",
        "(i, j) -> (i + j : compressed, i : range)",
        "(i, j) -> (j - i : dense, i : range)",
        "(i, j) -> (j - i : dense, i : dense)",
        "(i, j) -> (i : dense, j - i : compressed)",
        "(i, j) -> ((j - i) // 4 : compressed, i : dense, (j - i) % 4 : dense)",
        "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
        "(i, j) -> (j : compressed(nonunique), i : singleton)",
        "(i, j) -> (i : dense, j : compressed(nonunique, unordered))",
        "(i, j) -> (i // 4 : dense, j // 4 : compressed, i % 4 // 2 : dense, j % 4 // 2 : dense, i % 2 : dense, j % 2 : dense)",
        "(i, j) -> (i // 2 : compressed, j // 2 : compressed, j % 2 : dense, i % 2 : dense)",
        "(i, j) -> (i // 2 : dense, j // 2 : compressed, i % 2 : bitmap, j % 2 : dense)",
        "(i, j) -> (i : dense, j // 2 : compressed, j % 2 : dense)",
        "(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)",
        "(i, j) -> (i : dense, j : loose_compressed)",
        "(i, j) -> (i : compressed, j : dense)",
        "(i, j) -> (i // 16 : dense, j // 16 : compressed, i % 16 : dense, j % 16 : dense)",
    ),
    3: (
        "dense", "coo", "csf", "bitmap",
        "(i, j, k) -> (k : dense, i : compressed, j : compressed)",
        "(i, j, k) -> (j : compressed, i : dense, k : compressed)",
        "(i, j, k) -> (i : dense, j : compressed, k : dense)",
        "(i, j, k) -> (i : dense, j : dense, k : compressed)",
        "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : singleton)",
        "(i, j, k) -> (i // 2 : dense, j // 2 : compressed, k // 2 : compressed, i % 2 : dense, j % 2 : dense, k % 2 : dense)",
        "(i, j, k) -> (k - j : compressed, i : dense, j : range)",
    ),
    4: (
        "dense", "coo", "csf",
        "(a, b, c, d) -> (d : compressed, c : dense, b : compressed, a : compressed)",
        "(a, b, c, d) -> (a : dense, b : compressed, c : compressed, d : dense)",
    ),
}  # fmt: skip
"""What every operation is tried on, by rank."""

SHAPES = {
    0: ((),),
    1: ((12,), (7,), (0,)),
    2: ((8, 12), (7, 11), (1, 5), (0, 4)),
    3: ((4, 6, 5), (3, 1, 7)),
    4: ((3, 4, 2, 5),),
}


def dense_array(
    shape: tuple[int, ...], seed: int = 0, dtype: str = "float64", density: float = 0.3
) -> np.ndarray[Any, Any]:
    """Small whole numbers, so that sums in any order are exact."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 5, shape)
    return np.asarray(np.where(rng.random(shape) < density, values, 0)).astype(dtype)


def tensor(array: np.ndarray[Any, Any], spec: str) -> ow.Tensor:
    """The array in a format."""
    return ow.asarray(array).asformat(ow.format(spec, array.ndim))


def same(got: Any, want: Any) -> None:
    """Equal shape, dtype and values."""
    if isinstance(got, ow.Tensor):
        got = got.to_numpy()
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def check(
    operation: Callable[[Any], Any],
    oracle: Callable[[np.ndarray[Any, Any]], Any],
    array: np.ndarray[Any, Any],
    spec: str,
) -> None:
    """`operation` on the tensor equals `oracle` on the dense array."""
    same(operation(tensor(array, spec)), oracle(array))
