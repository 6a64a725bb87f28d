"""Masked tensors against plain NumPy arrays, numpy.ma and torch.masked, and sparse ones against Tensors, in one run.

    python benchmarks/masked.py [THREADS] [ELEMENTS]

Prints the least time of each side, ours divided by plain NumPy's, and the others' divided by ours. Half of the elements
are specified; `c` has a mask of its own. Results are compared with numpy.ma before they are timed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.masked import as_masked_tensor

import openwork as ow
from openwork.advice.measure import samples

BUDGET = 2.0
Way = Callable[[], Any]


def least(ways: dict[str, Way]) -> dict[str, float]:
    """The least time of each, in milliseconds, taken in turns."""
    return {name: 1e3 * min(found) for name, found in samples(ways, BUDGET).items()}


def dense_rows(n: int) -> None:
    """Elementwise operations and reductions of n elements."""
    rng = np.random.default_rng(0)
    x, y, bits = rng.random(n), rng.random(n), rng.random(n) < 0.5
    m, k = ow.as_masked_tensor(x, bits), ow.as_masked_tensor(y, bits.copy())
    a, b = np.ma.MaskedArray(x, ~bits), np.ma.MaskedArray(y, ~bits)
    t, u = (as_masked_tensor(torch.from_numpy(v), torch.from_numpy(bits)) for v in (x, y))
    other = rng.random(n) < 0.5
    p, c = ow.as_masked_tensor(y, other), np.ma.MaskedArray(y, ~other)
    rows: dict[str, tuple[Way, ...]] = {
        "a + b": (lambda: m + k, lambda: x + y, lambda: a + b, lambda: t + u),
        "a < b": (lambda: m < k, lambda: x < y, lambda: a < b),
        "a + c": (lambda: m.add(p, how="intersection"), lambda: x + y, lambda: a + c),
        "union": (
            lambda: m.add(p, how="union"),
            lambda: x + y,
            lambda: np.ma.where(a.mask, c, np.ma.where(c.mask, a, a.data + c.data)),
        ),
        "where": (lambda: ow.where(m > 0.3, m, p), lambda: np.where(x > 0.3, x, y), lambda: np.ma.where(a > 0.3, a, c)),
        "2 * a": (lambda: 2.0 * m, lambda: 2.0 * x, lambda: 2.0 * a, lambda: t * 2.0),
        "exp(a)": (lambda: m.exp(), lambda: np.exp(x), lambda: np.ma.exp(a), lambda: torch.exp(t)),
        "sum": (lambda: m.sum(), lambda: x.sum(), lambda: a.sum(), lambda: t.sum()),
        "mean": (lambda: m.mean(), lambda: x.mean(), lambda: a.mean(), lambda: t.mean()),
        "max": (lambda: m.amax(), lambda: x.max(), lambda: a.max(), lambda: t.amax()),
        "prod": (lambda: m.prod(), lambda: x.prod(), lambda: a.prod(), lambda: t.prod()),
    }
    for name, ways in rows.items():
        got, want = ways[0](), ways[2]()
        np.testing.assert_allclose(got.compressed(), np.ma.compressed(np.ma.atleast_1d(want)), rtol=1e-10)
        found = least(dict(zip(("mine", "plain", "ma", "torch"), ways, strict=False)))
        own = found["mine"]
        against = f"   torch.masked {found['torch'] / own:6.1f} x" if "torch" in found else ""
        print(
            f"{name:8} {own:8.2f} ms   {own / found['plain']:5.2f} of plain NumPy   "
            f"numpy.ma {found['ma'] / own:6.1f} x{against}"
        )


def later_rows(n: int) -> None:
    """Four operations as one kernel, against one by one."""
    rng = np.random.default_rng(0)
    x, y, bits = rng.random(n), rng.random(n), rng.random(n) < 0.5
    m, k = ow.masked_tensor(x, bits), ow.masked_tensor(y, bits.copy())
    rows: dict[str, Callable[[Any, Any], Any]] = {
        "a*b+a-2*b": lambda a, b: a * b + a - 2 * b,
        "exp(a)*b+1": lambda a, b: ow.exp(a) * b + 1,
    }
    for name, compute in rows.items():
        fused = ow.fused(compute)
        found = least({"fused": lambda fused=fused: fused(m, k), "each": lambda compute=compute: compute(m, k)})
        print(f"fused {name:12} {found['fused']:8.2f} ms   {found['fused'] / found['each']:5.2f} of one by one")


def sparse_rows(n: int) -> None:
    """The same operations on CSR, masked and not."""
    size = max(10, int((n / 10) ** 0.5 * 10))
    s = ow.random((size, size), 0.01, format="csr", rng=0)
    m, k = ow.masked_tensor(s), ow.masked_tensor(s)
    twice = s.clone()
    rows: dict[str, tuple[Way, Way]] = {
        "a + b": (lambda: m + k, lambda: s + twice),
        "sin(a)": (lambda: m.sin(), lambda: ow.sin(s)),
        "sum": (lambda: m.sum(), lambda: s.sum()),
        "row sums": (lambda: m.sum(1), lambda: s.sum(1)),
        "a @ b": (lambda: m @ k, lambda: s @ twice),
    }
    for name, (mine, tensor) in rows.items():
        found = least({"mine": mine, "tensor": tensor})
        print(f"CSR {name:8} {found['mine']:8.3f} ms   {found['mine'] / found['tensor']:5.2f} of the Tensor")


if __name__ == "__main__":
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    elements = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10_000_000
    ow.set_num_threads(threads)
    torch.set_num_threads(threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense_rows(elements)
        later_rows(elements // 10)
        sparse_rows(elements // 10)
