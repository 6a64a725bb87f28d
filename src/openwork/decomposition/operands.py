"""Arguments of a decomposition -> the tensor in floating point, ranks and factors to start from, all checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import DTypeError, ShapeError, Tensor, UnsupportedError, asarray, isdtype
from ..integers import integer
from ..storage.recorded import is_recorded

__all__ = ["Factor", "host", "is_kept", "operand", "positive", "square_norm", "start", "summary"]

Factor = np.ndarray[Any, Any]


def operand(x: Any, operation: str, kept: bool = False) -> Any:
    """The tensor in float32 or float64, over NumPy's buffers, stored once; with `kept` one on workers as it is."""
    if kept and is_kept(x):
        if x.ndim < 2 or str(x.dtype) not in ("float32", "float64"):
            raise DTypeError(f"{operation} of blocks of shape {x.shape}, {x.dtype}\n  help: astype('float64') before")
        return x
    t = asarray(x)
    if t.ndim < 2:
        raise ShapeError(f"{operation}: expected two dimensions or more; got shape {t.shape}\n  help: reshape it")
    if isdtype(t.dtype, "complex floating"):
        raise DTypeError(f"{operation} of a complex tensor\n  help: its real and imaginary parts one by one")
    if not isinstance(t.values, np.ndarray) and is_recorded(t.values):
        raise UnsupportedError(f"{operation} has no gradient\n  help: detach() the tensor")
    if t.fill_value and not t.format.is_dense:
        raise UnsupportedError(
            f"{operation}: unspecified elements are {t.fill_value}, expected 0\n  help: subtract the fill value first"
        )
    t = asarray(t, like="numpy")
    if str(t.dtype) not in ("float32", "float64"):
        t = t.astype(np.float64)
    return t if t.format.is_unique else t.coalesce()


def is_kept(x: Any) -> bool:
    """Whether `x` has products of its own, as an `openwork.dask.BlockTensor`."""
    return hasattr(x, "square_norm")


def host(x: Any) -> Factor:
    """An array of NumPy of what a product gave."""
    return x.to_numpy() if isinstance(x, Tensor) else np.asarray(x)


def square_norm(t: Any) -> float:
    """The sum of the squares of all elements, in float64."""
    if is_kept(t):
        return float(t.square_norm())
    return float((t.astype(np.float64) ** 2).sum())


def start(t: Any, ranks: Sequence[int], init: Any, rng: Any, operation: str) -> list[Factor]:
    """Factors to start from: uniform random ones, or copies of those that are given, shapes (n_k, ranks[k])."""
    wanted = list(zip(t.shape, ranks, strict=True))
    if isinstance(init, str):
        if init != "random":
            raise UnsupportedError(f"{operation}: init={init!r}\n  supported: 'random', or a list of factors")
        generator = np.random.default_rng(rng)
        return [generator.random(shape).astype(t.dtype) for shape in wanted]
    factors = [np.array(host(f), dtype=t.dtype) for f in init]
    if [f.shape for f in factors] != wanted:
        raise ShapeError(
            f"{operation}: factors of shapes {', '.join(str(f.shape) for f in factors)}"
            f"\n  expected: {', '.join(map(str, wanted))}"
        )
    return factors


def positive(value: Any, operation: str, name: str) -> int:
    """A number of 1 or more."""
    n = integer(value, operation, name, boolean=False)
    if n < 1:
        raise ShapeError(f"{operation}: {name}={n}\n  help: it is 1 or more")
    return n


def summary(head: str, factors: Sequence[Factor], fit: float, fits: Sequence[float], converged: bool) -> str:
    """One line about a model: what it is, the tensor's shape, its fit, and whether it converged."""
    shape = tuple(len(factor) for factor in factors)
    end = "converged" if converged else "not converged"
    return f"{head}, shape={shape}, fit={fit:.4f}, {len(fits)} iterations, {end})"
