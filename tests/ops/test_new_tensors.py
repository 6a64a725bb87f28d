"""A call on a new tensor, its kernels compiled, enters few Python functions: what every line of a program costs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.checked import CHECKED

X = np.where(np.random.default_rng(0).random((30, 40)) < 0.2, 1.5, 0.0)
ONES, BLOCK = np.ones(40), np.ones((40, 5))

MOST: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "A @ x": (40, lambda a: a @ ONES),
    "A @ X": (50, lambda a: a @ BLOCK),
    "X @ A": (84, lambda a: BLOCK.T @ a.T),
    "A.sum()": (48, lambda a: a.sum()),
    "A.sum(0)": (52, lambda a: a.sum(0)),
    "A.sum(1)": (52, lambda a: a.sum(1)),
}
"""The most functions that a call may enter, and the call. A number may go down."""


def new_tensors(library: Callable[[Any], Any] = np.asarray) -> Iterator[ow.Tensor]:
    """Tensors of other buffers each time, as the lines of a program make them."""
    while True:
        yield ow.asarray(library(X.copy()), format="csr")


def functions_entered(call: Callable[[Any], Any], tensor: Any) -> int:
    """The Python functions that a call enters, its own left out."""
    count = 0

    def visit(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # a collection that falls into the call enters finalisers
    sys.setprofile(visit)
    try:
        call(tensor)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count - 1


@pytest.mark.skipif(CHECKED, reason="addresses take calls of their own")
@pytest.mark.parametrize("name", MOST)
def test_functions_entered(name: str) -> None:
    most, call = MOST[name]
    tensors = new_tensors()
    for _ in range(3):
        call(next(tensors))
    assert functions_entered(call, next(tensors)) <= most


def test_the_measure_counts() -> None:
    assert functions_entered(lambda t: (lambda: (lambda: t)())(), None) == 2
