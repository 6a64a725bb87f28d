"""No public function loses a gradient in silence: its result is recorded, or has no gradient, or it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch_matrix import LAYOUTS, make

import openwork as ow

CONSTANT = {
    "advise", "astype", "empty_like", "full_like", "ones_like", "zeros_like", "sddmm", "isdtype", "can_cast", "result_type",
    "from_dlpack", "explain", "compute", "imag", "lobpcg", "iso",
}  # fmt: skip
"""Functions whose result does not depend on the values, or that hand them over as they are."""

NAMES = sorted(n for n in dir(ow) if n not in CONSTANT and n[0].islower() and callable(getattr(ow, n)))
NAMES += [f"linalg.{n}" for n in ow.linalg.__all__ if n[0].islower() and n not in CONSTANT]


def results(x: Any) -> Iterator[Any]:
    if isinstance(x, tuple | list):
        for item in x:
            yield from results(item)
    elif isinstance(x, ow.Tensor):
        yield x.values
    elif isinstance(x, torch.Tensor) or (x is not None and not isinstance(x, bool | int)):
        yield x


def argument_lists(t: ow.Tensor) -> list[tuple[Any, ...]]:
    """One tensor, two, a list, and a further argument."""
    extra = torch.ones(6, 3, dtype=torch.float64)
    return [(t,), (t, t), (t, t.T), ([t, t],), (t, 1), (t, (3, 8)), (t, [0, 1]), (t, extra), (t > 0, t, t)]


def attempt(name: str, args: tuple[Any, ...], **options: Any) -> Any:
    """The function of these arguments; None where it does not take them."""
    function = getattr(ow.linalg, name[7:]) if name.startswith("linalg.") else getattr(ow, name)
    try:
        return function(*args, **options)
    except (TypeError, ValueError, IndexError, NotImplementedError, AttributeError, KeyError, OSError, RuntimeError):
        return None


@pytest.mark.ci
@pytest.mark.parametrize(
    ("layout", "step"),
    [
        ("csr", 2),
        ("ragged bsr", 5),
        ("dense", 5),
        *(pytest.param(x, 1, marks=pytest.mark.slow) for x in ("csr", "ragged bsr", "dense")),
    ],
)
def test_never_lost(layout: str, step: int) -> None:
    """Every name on every layout; by default some names on each."""
    seen, lost = set(), set()
    for name in NAMES[step // 2 :: step]:
        for args in argument_lists(make(*LAYOUTS[layout]).tensor):
            for x in results(attempt(name, args)):
                if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
                    seen.add(name)
                    lost |= set() if x.requires_grad or x.numel() == 0 else {name}
    assert lost == set()
    assert len(seen) > 60 // step, sorted(seen)


@pytest.mark.parametrize("layout", ["csr", "ragged bsr", "dense"])
def test_fused_expressions_are_recorded(layout: str) -> None:
    t = make(*LAYOUTS[layout]).tensor
    for function in (
        lambda a: ow.sum(a * a, axis=1),
        lambda a: a * a + ow.sin(a),
        lambda a: (a + a) @ torch.ones(6, 2, dtype=torch.float64),
    ):
        plain, fused = function(t), ow.fused(function)(t)
        one, other = (x.values if isinstance(x, ow.Tensor) else x for x in (plain, fused))
        assert other.requires_grad
        first, second = (torch.autograd.grad(x.sum(), t.values)[0] for x in (one, other))
        torch.testing.assert_close(first, second)
