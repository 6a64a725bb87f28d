"""The calls that `tools/replay.py` runs: the golden ones, and a table of operations by formats and by dtypes.

Only public names are used, so that trees of any age can run them; what a tree refuses is recorded as refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "golden"))

import golden_calls

import openwork as ow

__all__ = ["calls"]

Function = Callable[..., Any]
FORMATS = {
    2: ("csr", "csc", "coo", "dcsr", "bsr(2, 3)", "dia", "ell(12)", "bitmap", "dense", golden_calls.UNCOALESCED),
    3: ("csf", "coo", "(i, j, k) -> (i : dense, j : compressed, k : dense)"),
}
DTYPES = ("float32", "int32", "complex128", "bool")
VECTOR, MATRIX = np.arange(1.0, 13.0), np.arange(48.0).reshape(12, 4)

SIMPLE = ("prod", "min", "max", "mean", "any", "all", "count_nonzero")
DERIVED = ("var", "argmax", "median", "logsumexp", "nansum")


def _reduction(name: str, axis: Any) -> Function:
    return lambda A, B: getattr(ow, name)(A, axis=axis)


OPERATIONS: dict[str, tuple[int, Function]] = {
    "A @ x": (2, lambda A, B: A @ VECTOR),
    "x @ A": (2, lambda A, B: VECTOR @ A),
    "A.T @ x": (2, lambda A, B: A.T @ VECTOR),
    "A @ X": (2, lambda A, B: A @ MATRIX),
    "A @ B": (2, lambda A, B: A @ B),
    "A + B": (2, lambda A, B: A + B),
    "A * B": (2, lambda A, B: A * B),
    "A - B.T": (2, lambda A, B: A - B.T),
    "A > B": (2, lambda A, B: A > B),
    "maximum(A, B)": (2, lambda A, B: ow.maximum(A, B)),
    "A * 2": (2, lambda A, B: A * 2),
    "A * x": (2, lambda A, B: A * VECTOR),
    "where(A, B, A)": (2, lambda A, B: ow.where(A > 2, B, A)),
    "sum": (2, lambda A, B: ow.sum(A)),
    "sum over 0": (2, lambda A, B: ow.sum(A, axis=0)),
    "sum over 1": (2, lambda A, B: ow.sum(A, axis=1)),
    **{f"{name} over 1": (2, _reduction(name, 1)) for name in (*SIMPLE, *DERIVED)},
    "max over 0": (2, _reduction("max", 0)),
    "max": (2, _reduction("max", None)),
    "norm over 1": (2, lambda A, B: ow.linalg.vector_norm(A, axis=1, ord=3)),
    "exp": (2, lambda A, B: ow.exp(A)),
    "A[2:9]": (2, lambda A, B: A[2:9]),
    "A[:, 2:9]": (2, lambda A, B: A[:, 2:9]),
    "A[[3, 1]]": (2, lambda A, B: A[[3, 1]]),
    "concat": (2, lambda A, B: ow.concat([A, B])),
    "sddmm": (2, lambda A, B: ow.sddmm(A, MATRIX, MATRIX.T.copy())),
    "A * B + A": (2, lambda A, B: ow.pointwise("A[i, j] * B[i, j] + A[j, i]", {"A": A, "B": B})),
    "softmax": (2, lambda A, B: ow.softmax(A, axis=1)),
    "to csr": (2, lambda A, B: A.asformat("csr")),
    "to csc": (2, lambda A, B: A.asformat("csc")),
    "to coo": (2, lambda A, B: A.asformat("coo")),
    "to bsr": (2, lambda A, B: A.asformat("bsr(2, 2)")),
    "to dense": (2, lambda A, B: A.asformat("dense")),
    "ttv": (3, lambda A, B: ow.einsum("ijk,k->ij", A, VECTOR[:6])),
    "mttkrp": (3, lambda A, B: ow.einsum("ijk,jr,kr->ir", A, MATRIX[:6], MATRIX[6:])),
    **{f"sum over {axis} of rank 3": (3, _reduction("sum", axis)) for axis in (0, 1, 2, (0, 2), None)},
    **{f"{name} over 2 of rank 3": (3, _reduction(name, 2)) for name in (*SIMPLE, *DERIVED)},
    "sum over 1, kept": (3, lambda A, B: ow.sum(A, axis=1, keepdims=True)),
    "einsum of one": (3, lambda A, B: ow.einsum("ijk->kj", A)),
    "einsum of one over max_plus": (3, lambda A, B: ow.einsum("ijk->ij", A, semiring="max_plus")),
    "reduction in index notation": (3, lambda A, B: ow.evaluate("C[i, j] max= A[i, j, k] * B[i, j, k]", A=A, B=B)),
    "A + B of rank 3": (3, lambda A, B: A + B),
    "contraction of rank 3": (3, lambda A, B: ow.einsum("ijk,ljk->il", A, B)),
    "transposed": (3, lambda A, B: A.transpose((2, 0, 1)).asformat("csf")),
}
SHAPES = {2: (12, 12), 3: (6, 6, 6)}
EVERY_DTYPE = ("csr", "coo", "csf")
"""Formats that are tried in every dtype; the others in float64."""


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and what to run: operands are made anew for each."""
    for kind, golden in golden_calls.CALLS.items():
        for name, call in golden.items():
            yield f"{kind}/{name}", lambda call=call: call.function(**call.tensors())  # type: ignore[misc]
    for name, (ndim, function) in OPERATIONS.items():
        for format in FORMATS[ndim]:
            for dtype in ("float64", *DTYPES) if format in EVERY_DTYPE else ("float64",):
                yield f"{name} of {format}, {dtype}", _call(function, format, dtype, SHAPES[ndim])


def _call(function: Function, format: str, dtype: str, shape: tuple[int, ...]) -> Callable[[], Any]:
    operand = golden_calls.Operand(format, shape, 0.3, dtype)
    return lambda: function(operand.tensor(1), operand.tensor(2))
