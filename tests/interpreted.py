"""Merges run by the interpreter in the place of machine code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from openwork.ir.interpret import run as interpret
from openwork.ir.verify import verify
from openwork.runtime.coiterate import run as merge_run
from openwork.runtime.coiterate.shaped import OneChain

__all__ = ["interpreted"]


@contextmanager
def interpreted() -> Iterator[list[str]]:
    """Kernels of merges are verified, and the interpreter runs them; the names of those that ran."""
    memory: dict[int, np.ndarray[Any, Any]] = {}
    real_address, real_run = merge_run.address, merge_run._run
    ran: list[str] = []

    def address(x: np.ndarray[Any, Any]) -> int:
        where = real_address(x)
        memory[where] = x
        return where

    def run_launch(plan: Any, launch: Any, storages: Any, *rest: Any) -> Any:
        for s in storages:
            memory.update(zip(s.addresses, s.buffers, strict=True))
        return real_run(plan, launch, storages, *rest)

    def run(executable: Any, words: Any, bounds: Any, work: int | None = None) -> None:
        kernel = executable.kernel
        verify(kernel)
        args = {p.name: memory.get(w, w) for p, w in zip(kernel.params, words, strict=True)}
        assert interpret(kernel, args, bounds[0], bounds[-1]) == 0
        ran.append(kernel.name)

    class Pool:
        parallel = staticmethod(run)

    with pytest.MonkeyPatch.context() as m:
        m.setattr(merge_run, "address", address)
        m.setattr(merge_run, "_run", run_launch)
        m.setattr(merge_run, "pool", Pool)
        m.setattr(OneChain, "run", lambda *_: None)
        yield ran
