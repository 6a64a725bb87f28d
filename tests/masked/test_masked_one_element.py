"""One element of a masked tensor, and masked tensors of one element: a specified zero is specified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

DATA = np.array([[0.0, 2.0], [1.0, 3.0], [4.0, 0.0]])
MASK = np.array([[True, False], [False, True], [True, True]])
FORMATS = ("dense", "bitmap", "coo", "csr", "csc", "dcsr", "ell(2)", "bsr(1, 2)", "dia")
ONE: dict[str, Callable[[Any], Any]] = {
    "reshape to ()": lambda m: m.reshape(()),
    "reshape to (1,)": lambda m: m.reshape((1,)),
    "reshape to (-1,)": lambda m: m.reshape((-1,)),
    "reshape to (1, 1, 1)": lambda m: m.reshape((1, 1, 1)),
    "flatten": lambda m: m.flatten(),
    "squeeze": lambda m: m.squeeze(),
    "m[0, 0]": lambda m: m[0, 0],
    "m[0]": lambda m: m[0],
    "m[None]": lambda m: m[None],
    "transpose": lambda m: m.transpose(0, 1),
}


def made(data: Any, mask: Any, format: str, over_torch: bool) -> Any:
    if over_torch:
        data, mask = torch.from_numpy(data), torch.from_numpy(mask)
    return ow.masked.masked_tensor(data, mask).asformat(format)


def mask_of(m: Any) -> Any:
    return np.asarray(m.get_mask().to_dense())


@pytest.mark.thin(9)
@pytest.mark.parametrize("over_torch", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_an_element_is_specified_or_not_whatever_its_value(format: str, over_torch: bool) -> None:
    m = made(DATA, MASK, format, over_torch)
    for place in np.ndindex(*DATA.shape):
        assert bool(mask_of(m[place])) == MASK[place], place
        assert float(m[place].to_tensor(-1.0)) == (DATA[place] if MASK[place] else -1.0)


@pytest.mark.thin(3)
@pytest.mark.parametrize("over_torch", [False, True])
@pytest.mark.parametrize("format", ["dense", "coo", "csr"])
@pytest.mark.parametrize("name", ONE)
def test_one_element_keeps_its_mask(name: str, format: str, over_torch: bool) -> None:
    for value in (0.0, 2.0):
        for specified in (True, False):
            m = made(np.full((1, 1), value), np.full((1, 1), specified), format, over_torch)
            found = mask_of(ONE[name](m))
            assert found.size == 1
            assert bool(found.reshape(())) == specified
