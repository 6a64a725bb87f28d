"""Functions of Dask arrays and NumPy's of their names: `name -> f(a, b, xp)` over two matrices of 8 x 6 and a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CASES"]

_EVEN = np.arange(8) % 2 == 0


def _on(xp: Any, numpys: Callable[[], Any], dasks: Callable[[], Any]) -> Any:
    """What differs in spelling between NumPy and Dask."""
    return numpys() if xp is np else dasks()


CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "from_array": lambda a, b, xp: a,
    "map_blocks": lambda a, b, xp: _on(xp, lambda: a * 2, lambda: a.map_blocks(lambda c: c * 2)),
    "map_overlap": lambda a, b, xp: _on(xp, lambda: a, lambda: a.map_overlap(lambda c: c, depth=1, boundary="none")),
    "persist": lambda a, b, xp: _on(xp, lambda: a, lambda: a.persist()),
    "rechunk": lambda a, b, xp: _on(xp, lambda: a, lambda: a.rechunk((3, 6))),
    "astype": lambda a, b, xp: a.astype("f4"),
    # elementwise
    "a + b": lambda a, b, xp: a + b,
    "a - 1": lambda a, b, xp: a - 1,
    "a * b": lambda a, b, xp: a * b,
    "a / 2": lambda a, b, xp: a / 2,
    "a ** 2": lambda a, b, xp: a**2,
    "-a": lambda a, b, xp: -a,
    "abs(a)": lambda a, b, xp: abs(a),
    "a > b": lambda a, b, xp: a > b,
    "a == b": lambda a, b, xp: a == b,
    "a + array": lambda a, b, xp: a + np.ones((8, 6)),
    "array * a": lambda a, b, xp: np.ones((8, 6)) * a,
    "a * row": lambda a, b, xp: a * np.arange(6.0),
    "a * column": lambda a, b, xp: a * np.arange(8.0)[:, None],
    "sin": lambda a, b, xp: xp.sin(a),
    "exp": lambda a, b, xp: xp.exp(a),
    "sqrt": lambda a, b, xp: xp.sqrt(a),
    "log1p": lambda a, b, xp: xp.log1p(a),
    "maximum": lambda a, b, xp: xp.maximum(a, b),
    "logical_and": lambda a, b, xp: xp.logical_and(a, b),
    "isnan": lambda a, b, xp: xp.isnan(a),
    "isclose": lambda a, b, xp: xp.isclose(a, b),
    "clip": lambda a, b, xp: xp.clip(a, 0, 0.7),
    "round": lambda a, b, xp: xp.round(a, 1),
    "nan_to_num": lambda a, b, xp: xp.nan_to_num(a),
    "real": lambda a, b, xp: xp.real(a),
    "angle": lambda a, b, xp: xp.angle(a),
    "where": lambda a, b, xp: xp.where(a > 0.7, a, b),
    "where with a number": lambda a, b, xp: xp.where(a > 0.7, a, 0),
    "isin": lambda a, b, xp: xp.isin(a, [0.0]),
    "add, dtype": lambda a, b, xp: xp.add(a, b, dtype="f4"),
    "digitize": lambda a, b, xp: xp.digitize(a, np.array([0.3, 0.7])),
    "zeros_like": lambda a, b, xp: xp.zeros_like(a),
    "ones_like": lambda a, b, xp: xp.ones_like(a),
    "full_like": lambda a, b, xp: xp.full_like(a, 3.0),
    # joining and shape
    "concatenate": lambda a, b, xp: xp.concatenate([a, b], 1),
    "stack": lambda a, b, xp: xp.stack([a, b]),
    "block": lambda a, b, xp: xp.block([[a, b], [b, a]]),
    "vstack": lambda a, b, xp: xp.vstack([a, b]),
    "transpose": lambda a, b, xp: a.T,
    "moveaxis": lambda a, b, xp: xp.moveaxis(a, 0, 1),
    "swapaxes": lambda a, b, xp: xp.swapaxes(a, 0, 1),
    "reshape": lambda a, b, xp: a.reshape(48),
    "ravel": lambda a, b, xp: a.ravel(),
    "squeeze": lambda a, b, xp: xp.squeeze(a[None], 0),
    "broadcast_to": lambda a, b, xp: xp.broadcast_to(a, (2, 8, 6)),
    "flip": lambda a, b, xp: xp.flip(a, 0),
    "roll": lambda a, b, xp: xp.roll(a, 1, 0),
    "repeat": lambda a, b, xp: xp.repeat(a, 2, 0),
    "tile": lambda a, b, xp: xp.tile(a, (2, 1)),
    "pad": lambda a, b, xp: xp.pad(a, 1),
    "insert": lambda a, b, xp: xp.insert(a, 1, 0.0, axis=0),
    "delete": lambda a, b, xp: xp.delete(a, [1], axis=0),
    "diag": lambda a, b, xp: xp.diag(a[:6]),
    "tril": lambda a, b, xp: xp.tril(a),
    "triu": lambda a, b, xp: xp.triu(a),
    "diff": lambda a, b, xp: xp.diff(a, axis=1),
    # products
    "a @ b.T": lambda a, b, xp: a @ b.T,
    "a.T @ a": lambda a, b, xp: a.T @ a,
    "a @ array": lambda a, b, xp: a @ np.ones((6, 3)),
    "a @ vector": lambda a, b, xp: a @ np.ones(6),
    "a.T @ array": lambda a, b, xp: a.T @ np.ones((8, 2)),
    "dot": lambda a, b, xp: xp.dot(a, b.T),
    "vdot": lambda a, b, xp: xp.vdot(a, b),
    "outer": lambda a, b, xp: xp.outer(a[0], b[0]),
    "tensordot": lambda a, b, xp: xp.tensordot(a, b, axes=((1,), (1,))),
    "einsum": lambda a, b, xp: xp.einsum("ij,kj->ik", a, b),
    "einsum of rows": lambda a, b, xp: xp.einsum("ij,ij->i", a, b),
    "linalg.norm": lambda a, b, xp: xp.linalg.norm(a),
    "linalg.svd_compressed": lambda a, b, xp: _on(
        xp, lambda: np.linalg.svd(a)[1][:2],
        lambda: xp.linalg.svd_compressed(a.rechunk((4, 6)), 2, n_power_iter=5, seed=0)[1],
    ),
    # selections
    "a[1:5]": lambda a, b, xp: a[1:5],
    "a[::2, 1:]": lambda a, b, xp: a[::2, 1:],
    "a[::-1]": lambda a, b, xp: a[::-1],
    "a[3]": lambda a, b, xp: a[3],
    "a[3, 2]": lambda a, b, xp: a[3, 2],
    "a[[1, 3]]": lambda a, b, xp: a[[1, 3]],
    "a[:, [0, 5]]": lambda a, b, xp: a[:, [0, 5]],
    "a[mask]": lambda a, b, xp: a[_EVEN],
    "a[None]": lambda a, b, xp: a[None],
    "a[a.sum(1) > 1]": lambda a, b, xp: a[a.sum(1) > 1],
    "a[a > 0.5]": lambda a, b, xp: a[a > 0.5],
    "vindex": lambda a, b, xp: _on(xp, lambda: a[[1, 2], [3, 4]], lambda: a.vindex[[1, 2], [3, 4]]),
    "take": lambda a, b, xp: xp.take(a, [1, 2], axis=0),
    # order
    "topk": lambda a, b, xp: _on(xp, lambda: np.sort(a, 1)[:, ::-1][:, :2], lambda: a.topk(2, axis=1)),
    "median": lambda a, b, xp: xp.median(a, axis=1),
    "percentile": lambda a, b, xp: xp.percentile(a[:, 0].rechunk(8) if xp is not np else a[:, 0], [50]),
    "unique": lambda a, b, xp: xp.unique(a),
    "histogram": lambda a, b, xp: xp.histogram(a, bins=4, range=(0, 1))[0],
    "bincount": lambda a, b, xp: xp.bincount((a > 0).sum(1).astype(int), minlength=7),
    # reductions
    "count_nonzero": lambda a, b, xp: xp.count_nonzero(a, axis=1),
    "trace": lambda a, b, xp: xp.trace(a),
    "cov": lambda a, b, xp: xp.cov(a),
    "average": lambda a, b, xp: xp.average(a, axis=0),
    "ptp": lambda a, b, xp: xp.ptp(a, 0),
    "allclose": lambda a, b, xp: xp.allclose(a, a),
}  # fmt: skip
_REDUCTIONS = [
    "sum",
    "mean",
    "var",
    "std",
    "min",
    "max",
    "prod",
    "any",
    "all",
    "nansum",
    "nanmean",
    "nanvar",
    "nanstd",
    "nanmin",
    "nanmax",
    "nanprod",
]


def _reduction(name: str, **options: Any) -> Callable[[Any, Any, Any], Any]:
    return lambda a, b, xp: getattr(xp, name)(a, **options)


for _name in _REDUCTIONS:
    CASES[_name] = _reduction(_name)
    CASES[f"{_name}, axis=0"] = _reduction(_name, axis=0)
    CASES[f"{_name}, axis=1, keepdims"] = _reduction(_name, axis=1, keepdims=True)
for _name in ("argmin", "argmax", "nanargmin", "nanargmax", "cumsum", "cumprod", "nancumsum", "nancumprod"):
    CASES[f"{_name}, axis=0"] = _reduction(_name, axis=0)
