"""Invalid buffers of torch's own simple inputs, on every layout: refused where torch refuses them, and only there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing._internal needs it")

from torch.testing._internal.common_utils import TestCase

import openwork as ow

KINDS = {
    "csr": (torch.sparse_csr, torch.sparse_csr_tensor, ow.sparse_csr_tensor),
    "csc": (torch.sparse_csc, torch.sparse_csc_tensor, ow.sparse_csc_tensor),
    "bsr": (torch.sparse_bsr, torch.sparse_bsr_tensor, ow.sparse_bsr_tensor),
    "bsc": (torch.sparse_bsc, torch.sparse_bsc_tensor, ow.sparse_bsc_tensor),
}
"""torch's layout and constructor, and openwork's."""

Buffers = tuple[torch.Tensor, torch.Tensor, torch.Tensor, tuple[int, ...]]


def inputs(layout: Any) -> Iterator[Buffers]:
    """torch's simple inputs: plain, batched, hybrid, and of extents 0."""
    case = TestCase()
    for (pos, crd, values), options in case.generate_simple_inputs(layout, dtype=torch.float64, output_tensor=False):
        yield pos, crd, values.to(torch.float64), tuple(options["size"])


def put(at: int, value: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def function(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x.view(-1)[at] = value
        return x

    return function


MUTATIONS: dict[str, Callable[[Buffers], tuple[Any, ...]]] = {
    "nothing": lambda b: b,
    "1.1 float positions": lambda b: (b[0].double(), *b[1:]),
    "1.1 float coordinates": lambda b: (b[0], b[1].double(), *b[2:]),
    "1.2 two integer types": lambda b: (b[0].int(), *b[1:]),
    "1.3 short integers": lambda b: (b[0].short(), b[1].short(), *b[2:]),
    "3.1 one more dimension": lambda b: (*b[:3], (*b[3], 1)),
    "3.1 one dimension less": lambda b: (*b[:3], b[3][:-1]),
    "3.2 positions of another rank": lambda b: (b[0][None], *b[1:]),
    "3.3 coordinates of another rank": lambda b: (b[0], b[1][None], *b[2:]),
    "3.4 values of another rank": lambda b: (*b[:2], b[2].flatten()[0], b[3]),
    "3.8 positions too short": lambda b: (b[0][..., :-1], *b[1:]),
    "3.9 coordinates too short": lambda b: (b[0], b[1][..., :-1], *b[2:]),
    "5.1 first position": lambda b: (put(0, 1)(b[0]), *b[1:]),
    "5.2 last position": lambda b: (put(-1, 9)(b[0]), *b[1:]),
    "5.3 positions fall": lambda b: (put(1, -1)(b[0]), *b[1:]),
    "5.3 positions rise too far": lambda b: (put(1, 9)(b[0]), *b[1:]),
    "5.4 negative coordinate": lambda b: (b[0], put(0, -1)(b[1]), *b[2:]),
    "5.5 coordinate beyond": lambda b: (b[0], put(-1, 99)(b[1]), *b[2:]),
    "5.6 coordinates out of order": lambda b: (b[0], b[1].flip(-1), *b[2:]),
    "5.6 coordinate twice": lambda b: (b[0], put(1, int(b[1].flatten()[0]))(b[1]), *b[2:]),
}
"""What is done to the buffers, by the number of the invariant that may break."""


def error(function: Callable[..., Any], buffers: tuple[Any, ...], **options: Any) -> Exception | None:
    *given, size = buffers
    try:
        function(*given, size, **options)
    except Exception as found:
        return found
    return None


@pytest.mark.thin(119)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_refused_where_torch_refuses(kind: str, mutation: str) -> None:
    layout, theirs, mine = KINDS[kind]
    refused = 0
    for b in inputs(layout):
        try:
            broken = MUTATIONS[mutation](b)
        except IndexError:  # too small for it
            continue
        want, got = error(theirs, broken, check_invariants=True), error(mine, broken)
        if want is None and got is not None and 0 in b[3]:
            continue  # torch does not look at the positions of tensors without rows
        assert (got is None) == (want is None), (b, broken, want, got)
        assert got is None or isinstance(got, ow.InvariantError | ow.ShapeError | ow.DTypeError), got
        refused += got is not None
    assert bool(refused) == (mutation != "nothing")
