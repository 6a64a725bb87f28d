"""Random cases that are called again: with the same operands, with values changed in place, of other dtypes, recorded or not.

What a call leaves behind, as a prepared call does, serves the next one or is noticed to be old.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from search_oracle import Case, Failed, run
from search_routes import is_torch, name_of

import openwork as ow

__all__ = ["repeated"]

Array = np.ndarray[Any, Any]
CHANGES = ("same", "same", "negate", "zero", "dtype", "recorded", "no_grad", "other operands")
NARROWER = {"float64": "float32", "float32": "float64", "int64": "int32", "int32": "int64", "complex128": "complex64"}


def _redrawn(draw: type[Any]) -> type[Any]:
    """Draws as `draw` does, and gives, for what was drawn before, operands of another dtype over the same structures."""

    class Redrawn(draw):  # type: ignore[misc]
        def __init__(self, rng: random.Random, before: Sequence[tuple[Any, Array]]) -> None:
            super().__init__(rng)
            self.before = list(before)

        def operand(self, *args: Any, **options: Any) -> tuple[Any, Array]:
            return self._converted(*super().operand(*args, **options))

        def plain(self, *args: Any, **options: Any) -> tuple[Any, Array]:
            return self._converted(*super().plain(*args, **options))

        def _converted(self, x: Any, a: Array) -> tuple[Any, Array]:
            """The operand that was drawn in this place before, in another dtype; what was drawn where it differs."""
            k, to = len(self.pairs) - 1, NARROWER.get(name_of(x))
            old, array = self.before[k] if k < len(self.before) else (None, a)
            if to is None or type(old) is not type(x) or tuple(old.shape) != tuple(x.shape):
                return x, a
            dtype = getattr(torch, to) if is_torch(x) else to
            self.pairs[k] = old.to(dtype) if isinstance(old, torch.Tensor) else old.astype(dtype), array.astype(to)
            return self.pairs[k]

    return Redrawn


def repeated(d: Any, kinds: Sequence[Callable[[Any], Case]]) -> Case:
    """A case of another kind three times or four, with changes between the calls."""
    rng: random.Random = d.rng
    kind, seed, other_seed = rng.choice(kinds), rng.random(), rng.random()
    changes = [rng.choice(CHANGES) for _ in range(rng.choice((2, 3)))]
    first = type(d)(random.Random(seed))
    case = kind(first)
    d.inputs += [*case.inputs, changes]
    d.dimensions += [*case.dimensions, *(f"between calls: {c}" for c in changes)]
    stored = [_stored(t) for t, _ in first.pairs]

    def call(made: Case, when: str, recording: Any = nullcontext) -> None:
        with recording():
            difference = run(made)
        if difference is not None:
            raise Failed(f"{when}: {difference}")

    def ours() -> None:
        call(case, "first call")
        for change in changes:
            recording: Any = nullcontext
            if change == "dtype":
                call(kind(_redrawn(type(d))(random.Random(seed), first.pairs)), f"of another dtype, {changes}")
            elif change == "other operands":
                call(kind(type(d)(random.Random(other_seed))), f"other operands, {changes}")
            elif change == "recorded":
                _record(first.pairs)
            elif change == "no_grad":
                recording = torch.no_grad
            elif change != "same":
                for (t, a), there in zip(first.pairs, stored, strict=True):
                    _change(change, t, a, there)
            call(case, f"after {change}, {changes}", recording)

    return d.case(f"{case.label}, repeated", ours, lambda: None, library=None)


def _stored(t: Any) -> Array | None:
    """Where a Tensor stores elements; None for what is no Tensor."""
    return np.asarray(ow.pattern(t).to_numpy()) if isinstance(t, ow.Tensor) else None


def _record(pairs: Sequence[tuple[Any, Array]]) -> None:
    """Have torch record operations of operands that it can."""
    for t, _ in pairs:
        if is_torch(t) and (t.dtype.is_floating_point or t.dtype.is_complex):
            t.requires_grad_()


def _may_be_written(buffer: Any) -> bool:
    """Whether elements of a buffer can be set: neither of one that is read-only, nor of a view that repeats them."""
    if isinstance(buffer, np.ndarray):
        return buffer.flags.writeable
    return all(step for n, step in zip(buffer.shape, buffer.stride(), strict=True) if n > 1)


def _change(change: str, t: Any, a: Array, there: Array | None) -> None:
    """Change an operand's stored values in place, and the array as they are."""
    buffer, where = (t, ...) if there is None else (t.values, there)
    if not _may_be_written(buffer):
        return
    negate = change == "negate" and a.dtype.kind != "b"
    with torch.no_grad():
        buffer[...] = -buffer if negate else 0
    a[where] = -a[where] if negate else 0
