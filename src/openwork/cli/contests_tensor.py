"""The operations of `openwork bench` on tensors of other ranks than 2, against SciPy's matrices and torch's COO."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import openwork as ow

from ..classes import define
from .contests import Contest, close, extent
from .main import CliError
from .peers import has_torch

__all__ = ["TENSOR_OPERATIONS", "TensorProblem", "parse_tensor_operation", "tensor_contest"]


@define(slots=False)
class TensorProblem:
    """One tensor: its coordinates (one column per element) and values, and ours in one format."""

    indices: Any
    values: Any
    shape: tuple[int, ...]
    format: str
    ours: Any

    @classmethod
    def of(cls, coo: Any, format: str) -> TensorProblem:
        """Convert a tensor in COO without duplicates to `format`."""
        ours = coo.asformat(ow.format(format, ndim=coo.ndim))
        return cls(np.asarray(coo.indices()), np.asarray(coo.values), coo.shape, format, ours)


def incidence(problem: TensorProblem, dims: tuple[int, ...], weights: Any) -> Any:
    """The SciPy CSR array that adds up elements by their coordinates in `dims`."""
    from scipy.sparse import csr_array

    extents = [problem.shape[d] for d in dims]
    keys = np.ravel_multi_index([problem.indices[d] for d in dims], extents)
    count = len(weights)
    return csr_array((weights, (keys, np.arange(count))), shape=(math.prod(extents), count))


def mttkrp(problem: TensorProblem, text: str) -> Contest:
    """out[i, r] = sum of t[i, j, ...] * B[j, r] * ...; SciPy adds up the products of rows by a matrix."""
    rank, rng = extent(text, 32), np.random.default_rng(1)
    factors = [rng.standard_normal((n, rank)).astype(problem.values.dtype) for n in problem.shape]
    adder = incidence(problem, (0,), problem.values)

    def by_scipy() -> Any:
        rows = factors[1][problem.indices[1]]
        for factor, index in zip(factors[2:], problem.indices[2:], strict=True):
            rows = rows * factor[index]
        return adder @ rows

    want = by_scipy()
    runs: dict[str, Callable[[], object]] = {
        "openwork": lambda: ow.mttkrp(problem.ours, factors, 0),
        "scipy": by_scipy,
    }
    return Contest(runs, lambda got: close(got, want), "coo")


def total(problem: TensorProblem, text: str) -> Contest:
    axis = int(text) if text.isdigit() else None
    if text and (axis is None or axis >= len(problem.shape)):
        raise CliError(f"--op: sum takes a dimension below {len(problem.shape)}, got {text!r}")
    runs: dict[str, Callable[[], object]] = {"openwork": lambda: problem.ours.sum(axis=axis)}
    kept_dims = () if axis is None else tuple(d for d in range(len(problem.shape)) if d != axis)
    want = problem.values.sum()
    if kept_dims:
        adder = incidence(problem, kept_dims, problem.values)
        want = (adder @ np.ones(adder.shape[1], problem.values.dtype)).reshape([problem.shape[d] for d in kept_dims])
    if has_torch():
        import torch

        t = torch.sparse_coo_tensor(*map(torch.from_numpy, (problem.indices, problem.values)), problem.shape).coalesce()
        runs["torch"] = (lambda: torch.sparse.sum(t)) if axis is None else (lambda: torch.sparse.sum(t, dim=axis))
    scale = float(np.abs(problem.values).sum())
    return Contest(runs, lambda got: close(got, want, scale), "coo")


TENSOR_OPERATIONS: dict[str, Callable[[TensorProblem, str], Contest]] = {"mttkrp": mttkrp, "sum": total}


def parse_tensor_operation(text: str) -> tuple[str, str]:
    """`"mttkrp:32" -> ("mttkrp", "32")`, refusing what is not known."""
    name, _, argument = text.partition(":")
    if name not in TENSOR_OPERATIONS:
        raise CliError(
            f"--op: {name!r} is not there for tensors of a rank other than 2; there: {', '.join(TENSOR_OPERATIONS)}"
        )
    return name, argument


def tensor_contest(problem: TensorProblem, operation: str) -> Contest:
    """The contest of `"mttkrp:32"` on a tensor."""
    name, argument = parse_tensor_operation(operation)
    return TENSOR_OPERATIONS[name](problem, argument)
