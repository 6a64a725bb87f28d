"""The operations of `openwork bench`: for each, our call, the peers' calls, and the test that our result is right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

import openwork as ow
from openwork.errors import suggestion

from ..classes import define, frozen
from .main import CliError
from .output import bytes_text
from .peers import has_torch, in_scipy, in_torch, same_matrix

__all__ = ["OPERATIONS", "Contest", "Problem", "Skip", "close", "contest", "extent", "parse_operation"]

DENSE_LIMIT = 1 << 30
TOLERANCE = {"f": 2e-4, "d": 1e-10, "F": 2e-4, "D": 1e-10}
TORCH_CONVERSIONS = {"coo": "to_sparse_coo", "csr": "to_sparse_csr", "csc": "to_sparse_csc"}


class Skip(Exception):
    """A combination that is not measured; the message says why."""


@define(slots=False)
class Problem:
    """One matrix: as a SciPy CSR array, ours in one format, and the peers' in the nearest they have."""

    csr: Any
    format: str
    ours: Any
    torch: bool

    @classmethod
    def of(cls, csr: Any, format: str, torch: bool | None = None) -> Problem:
        """Convert to `format`; torch takes part where it is installed, unless said otherwise."""
        ours = ow.asarray(csr).asformat(ow.format(format, ndim=2))
        return cls(csr, format, ours, has_torch() if torch is None else torch)

    @cached_property
    def scipy(self) -> tuple[str, Any]:
        return in_scipy(self.csr, self.format)

    @cached_property
    def torch_side(self) -> tuple[str, Any]:
        return in_torch(self.csr, self.format)

    def dense(self, *shape: int) -> Any:
        """Random numbers, the same in every run."""
        values = np.random.default_rng(1).standard_normal(shape)
        return values.astype(self.csr.dtype)


def close(got: object, want: Any, scale: float = 0.0) -> bool:
    """Equal up to rounding in the dtype of `want`, relative to its largest element or to `scale`."""
    array = np.asarray(got.to_dense() if hasattr(got, "to_dense") else got)
    if array.shape != np.shape(want):
        return False
    tolerance = TOLERANCE[np.dtype(want.dtype).char]
    scale = max(scale, float(np.abs(want).max(initial=0.0)))
    return bool(np.allclose(array, want, rtol=tolerance, atol=tolerance * scale))


@frozen(slots=False)
class Contest:
    """What takes part (`runs`: openwork first, then peers), and whether our result is equal to SciPy's."""

    runs: dict[str, Callable[[], object]]
    equal: Callable[[object], bool]
    peer_format: str


Builder = Callable[[Problem, str], Contest]


def extent(text: str, default: int) -> int:
    if not text:
        return default
    if not text.isdigit() or int(text) < 1:
        raise CliError(f"--op: expected a positive number after the colon, got {text!r}")
    return int(text)


def as_torch(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)


def wider(x: Any, rows: int) -> Any:
    """x with zero rows below, for a peer whose matrix was padded to whole blocks."""
    return x if len(x) == rows else np.concatenate([x, np.zeros((rows - len(x), *x.shape[1:]), x.dtype)])


def product(problem: Problem, x: Any) -> Contest:
    ours, (name, theirs) = problem.ours, problem.scipy
    wide = wider(x, theirs.shape[1])
    runs: dict[str, Callable[[], object]] = {"openwork": lambda: ours @ x, "scipy": lambda: theirs @ wide}
    if problem.torch:
        side = problem.torch_side[1]
        wide_torch = as_torch(wider(x, side.shape[1]))
        runs["torch"] = lambda: side @ wide_torch
    want = problem.csr @ x
    return Contest(runs, lambda got: close(got, want), name)


def spmv(problem: Problem, text: str) -> Contest:
    return product(problem, problem.dense(problem.csr.shape[1]))


def spmm(problem: Problem, text: str) -> Contest:
    return product(problem, problem.dense(problem.csr.shape[1], extent(text, 32)))


def vecmat(problem: Problem, text: str) -> Contest:
    ours, (name, theirs) = problem.ours, problem.scipy
    x = problem.dense(problem.csr.shape[0])
    wide = wider(x, theirs.shape[0])
    runs: dict[str, Callable[[], object]] = {"openwork": lambda: x @ ours, "scipy": lambda: wide @ theirs}
    want = x @ problem.csr
    return Contest(runs, lambda got: close(got, want), name)


def sampled(csr: Any, a: Any, b: Any) -> Any:
    """(a @ b) at the elements of `csr`, in row order, a slice of elements at a time."""
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    out = np.empty(csr.nnz, csr.dtype)
    for begin in range(0, csr.nnz, 1 << 18):
        part = slice(begin, begin + (1 << 18))
        out[part] = np.einsum("ek,ek->e", a[rows[part]], b.T[csr.indices[part]])
    return out


def sddmm(problem: Problem, text: str) -> Contest:
    k = extent(text, 32)
    ours, csr = problem.ours, problem.csr
    a, b = problem.dense(csr.shape[0], k), problem.dense(k, csr.shape[1])
    runs: dict[str, Callable[[], object]] = {"openwork": lambda: ow.sddmm(ours, a, b)}
    if problem.torch and csr.dtype.kind == "f":
        import torch

        side, ta, tb = in_torch(csr, "csr")[1], as_torch(a), as_torch(b)
        runs["torch"] = lambda: torch.sparse.sampled_addmm(side, ta, tb, beta=0.0)
    want = ours.asformat("csr").to_scipy("csr").copy()
    want.data = sampled(want, a, b)

    def equal(got: Any) -> bool:
        back = got.asformat("csr").to_scipy("csr")
        structure = np.array_equal(back.indptr, want.indptr) and np.array_equal(back.indices, want.indices)
        return structure and close(back.data, want.data)

    return Contest(runs, equal, "csr")


def to_dense(problem: Problem, text: str) -> Contest:
    need = problem.csr.shape[0] * problem.csr.shape[1] * problem.csr.dtype.itemsize
    if need > DENSE_LIMIT:
        raise Skip(f"the dense array would take {bytes_text(need)}")
    ours, (name, theirs) = problem.ours, problem.scipy
    runs: dict[str, Callable[[], object]] = {"openwork": ours.to_dense, "scipy": theirs.toarray}
    if problem.torch:
        runs["torch"] = problem.torch_side[1].to_dense
    want = problem.csr.toarray()
    return Contest(runs, lambda got: bool(np.array_equal(np.asarray(got), want)), name)


def total(problem: Problem, text: str) -> Contest:
    if text not in ("", "0", "1"):
        raise CliError(f"--op: sum takes a dimension, 0 or 1, got {text!r}")
    axis = int(text) if text else None
    ours, (name, theirs) = problem.ours, problem.scipy
    runs: dict[str, Callable[[], object]] = {
        "openwork": lambda: ours.sum(axis=axis),
        "scipy": lambda: theirs.sum(axis=axis),
    }
    if problem.torch:
        import torch

        layout, side = problem.torch_side
        if axis is None:
            runs["torch"] = lambda: torch.sum(side)
        elif layout == "coo":
            runs["torch"] = lambda: torch.sparse.sum(side, dim=axis)
        elif layout in ("csr", "csc"):
            runs["torch"] = lambda: torch.sum(side, dim=axis, keepdim=True)
    want = np.asarray(problem.csr.sum(axis=axis))
    scale = float(np.asarray(abs(problem.csr).sum(axis=axis)).max(initial=0.0))
    return Contest(runs, lambda got: close(got, want, scale), name)


COLUMN_COO = "(i, j) -> (j : compressed(nonunique), i : singleton)"


def conversion(target: str) -> Builder:
    def build(problem: Problem, text: str) -> Contest:
        full = f"bsr({text or '4'},{text or '4'})" if target == "bsr" else target
        if ow.format(full, ndim=2) == ow.format(problem.format, ndim=2):
            raise Skip("it is in this format already")
        ours, wanted, (name, theirs) = problem.ours, ow.format(full, ndim=2), problem.scipy
        runs: dict[str, Callable[[], object]] = {"openwork": lambda: ours.asformat(wanted)}
        if target == "bsr":
            runs["scipy"] = lambda: in_scipy(theirs, full)
        elif name != target:
            runs["scipy"] = lambda: theirs.asformat(target)
        if problem.torch and target in TORCH_CONVERSIONS and problem.torch_side[0] != target:
            runs["torch"] = getattr(problem.torch_side[1], TORCH_CONVERSIONS[target])
        return Contest(runs, lambda got: same_matrix(in_csr(got), problem.csr), name)

    return build


def to_coo(problem: Problem, text: str) -> Contest:
    """To coordinates ordered by rows, or by columns. Peers whose way does not order the elements go over CSR or CSC,
    or coalesce: all make the same."""
    if text not in ("", "columns"):
        raise CliError(f"--op: to_coo takes nothing, or columns, got {text!r}")
    wanted = ow.format(COLUMN_COO if text else "coo", ndim=2)
    if wanted == ow.format(problem.format, ndim=2):
        raise Skip("it is in this format already")
    ours, (name, theirs) = problem.ours, problem.scipy
    over = "csc" if text else "csr"
    ordered = {"csr": ("csr", "coo"), "csc": ("csc",)}[over]
    runs: dict[str, Callable[[], object]] = {
        "openwork": lambda: ours.asformat(wanted),
        "scipy": theirs.tocoo if name in ordered else lambda: theirs.asformat(over).tocoo(),
    }
    if problem.torch:
        layout, side = problem.torch_side
        if layout in ordered and layout != "coo":
            runs["torch"] = side.to_sparse_coo
        elif not text:
            runs["torch"] = lambda: side.to_sparse_coo().coalesce()
    return Contest(runs, lambda got: same_matrix(in_csr(got), problem.csr), name)


def in_csr(got: Any) -> Any:
    return got.asformat("csr").to_scipy("csr")


OPERATIONS: dict[str, Builder] = {
    "spmv": spmv,
    "spmm": spmm,
    "vecmat": vecmat,
    "sddmm": sddmm,
    "sum": total,
    "to_dense": to_dense,
    "to_coo": to_coo,
    "to_csr": conversion("csr"),
    "to_csc": conversion("csc"),
    "to_bsr": conversion("bsr"),
}


def parse_operation(text: str) -> tuple[str, str]:
    """`"spmm:32" -> ("spmm", "32")`, refusing what is not known."""
    name, _, argument = text.partition(":")
    if name not in OPERATIONS:
        known = f"known: {', '.join(OPERATIONS)}"
        raise CliError(f"--op: unknown operation {name!r}; {known}{suggestion(name, OPERATIONS)}")
    return name, argument


def contest(problem: Problem, operation: str) -> Contest:
    """The contest of `"spmm:32"` on a problem; Skip where it does not apply."""
    name, argument = parse_operation(operation)
    return OPERATIONS[name](problem, argument)
