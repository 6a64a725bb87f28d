"""Attention at the elements of sparse masks beside torch's scaled_dot_product_attention without a mask, in one run.

    python benchmarks/attention.py [THREADS] [SIZE ...]

Prints the quotients of the least times, forward and with backward, divided by the mask's density: 1 is what the dense
one would take for the mask's share of the scores. 8 heads of 64 features in float32; everybody has three calls a round.
Results are compared before they are timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional as F

import openwork as ow
from openwork.nn import attend

ROUNDS, CALLS, HEADS, FEATURES = 9, 3, 8, 64


def masks(n: int) -> Iterator[tuple[str, torch.Tensor, str]]:
    """Name, dense mask and format."""
    generator = torch.Generator().manual_seed(0)
    for density in (0.05, 0.1, 0.3):
        yield f"random, density {density}", torch.rand(n, n, generator=generator) < density, "csr"
    for size, density in ((16, 0.1), (32, 0.28)):
        blocks = (torch.rand(n // size, n // size, generator=generator) < density) | torch.eye(n // size).bool()
        mask = blocks.repeat_interleave(size, 0).repeat_interleave(size, 1)
        yield f"{size} x {size} blocks, density {mask.float().mean():.2f}", mask, f"bsr({size}, {size})"
    i = torch.arange(n)
    yield "band, density 0.1", (i[:, None] - i).abs() <= n // 20, "csr"
    yield "causal", torch.ones(n, n, dtype=torch.bool).tril(), "csr"


def least(functions: list[Callable[[], object]]) -> list[float]:
    """The least time of each, taken in turns; CPU time on one thread, which a busy machine does not lengthen."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for place, function in enumerate(functions):
            for _ in range(CALLS):
                start = clock()
                function()
                best[place] = min(best[place], clock() - start)
    return best


def quotients(n: int, mask: torch.Tensor, format: str) -> list[float]:
    """Ours by torch's times the density, forward and with backward."""
    q, k, v, grad = (torch.randn(1, HEADS, n, FEATURES) for _ in range(4))
    recorded = [x.clone().requires_grad_() for x in (q, k, v)]
    t = ow.asarray(mask.float(), format=format)
    torch.testing.assert_close(attend(t, q, k, v), F.scaled_dot_product_attention(q, k, v, mask))

    def ours() -> torch.Tensor:
        return attend(t, *recorded)

    def theirs() -> torch.Tensor:
        return F.scaled_dot_product_attention(*recorded)

    times = least(
        [
            lambda: attend(t, q, k, v),
            lambda: F.scaled_dot_product_attention(q, k, v),
            lambda: torch.autograd.grad(ours(), recorded, grad),
            lambda: torch.autograd.grad(theirs(), recorded, grad),
        ]
    )
    density = float(mask.float().mean())
    return [times[at] / times[at + 1] / density for at in (0, 2)]


def main(threads: int, sizes: list[int]) -> None:
    """The table of these sizes."""
    torch.set_num_threads(threads)
    ow.set_num_threads(threads)
    for n in sizes:
        for name, mask, format in masks(n):
            found = " / ".join(f"{x:.1f}" for x in quotients(n, mask, format))
            print(f"{n:5}  {name:30} {found}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1, [int(x) for x in sys.argv[2:]] or [512, 1024, 2048])
