"""Random cases of dense operands that are views, of operations on operands of hundreds of rows."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from search_formats import laid, random_format
from search_oracle import Case
from view_cases import CUBE, CUBES, MATRICES, K, N

import openwork as ow

__all__ = ["views"]

SOLID = ("dense", "compressed", "compressed", "singleton", "bitmap", "ell(7)", "loose_compressed")


def views(d: Any) -> Case:
    """An operation of `view_cases` on a tensor of some forty elements a row, arrays that lie anyhow in memory."""
    rng: random.Random = d.rng
    rank = rng.choice((2, 2, 3))
    name, (ours, theirs, shapes) = rng.choice(tuple((MATRICES if rank == 2 else CUBES).items()))
    sizes = {N: rng.choice((72, 100, 128, 160)), K: rng.choice((1, 4, 8, 16, 20)) if name != "at" else K}
    shape = (sizes[N], sizes[N]) if rank == 2 else CUBE
    dtype = rng.choice(("float64", "float64", "float32"))
    drawn = np.random.default_rng(rng.randrange(1 << 30))
    a = drawn.uniform(0.5, 2, shape) * (drawn.random(shape) < rng.choice((0.3, 0.4, 0.6)))
    a = a.astype(dtype)
    over_torch = d.library == "torch"
    t = ow.asarray(torch.from_numpy(a) if over_torch else a, format=rng.choice(("coo", "csf")))
    with suppress(ow.FormatError, ow.UnsupportedError, ow.ShapeError):
        t = t.asformat(random_format(rng, rank, SOLID))
    operands = []
    for shape in shapes:
        x = drawn.uniform(0.5, 2, tuple(sizes.get(n, n) for n in shape)).astype(dtype)
        operands.append(laid(rng, torch.from_numpy(x) if over_torch else x, 1, repeated=True))
    arrays = [np.asarray(x).astype(dtype) for x in operands]
    d.inputs += [t, name, *(getattr(x, "strides", None) or x.stride() for x in operands)]
    d.dimensions += [f"operation: {name}", "operands: views"]
    times = rng.choice((1, 2, 3))

    def again() -> Any:
        return [ours(t, *operands) for _ in range(times)][-1]

    library = "torch" if over_torch else "numpy"
    return d.case(f"{name} of views", again, lambda: theirs(a, *arrays), close=True, library=library)
