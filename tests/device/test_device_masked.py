"""Masked tensors on devices: the functions of the masked suite there, right or refused by name, beside the host's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_cases import opencl_or_skip, same

import openwork as ow
from openwork.errors import UnsupportedError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "masked"))
from masked_cases import CASES, SHAPES, agree, arrays, made
from test_masked_namespace import SAME

HERE = "interpreter"
MISSING = {
    "where", "cumulative_sum", "sort", "reshape", "expand_dims", "squeeze", "flip", "roll", "tile", "repeat", "take",
    "tril", "diagonal", "unstack", "concat", "stack", "diff", "logaddexp",
}  # fmt: skip
"""Functions of the masked suite that are refused there."""
Case = Callable[[Any, Any, Any, Callable[[Any], Any]], Any]
OWN: dict[str, Case] = {
    "intersection": lambda m, n, k, at: m.add(k, how="intersection"),
    "union": lambda m, n, k, at: m.add(k, how="union"),
    "T": lambda m, n, k, at: m.T,
    "T.T + m": lambda m, n, k, at: m.T.T + m,
    "2 / m": lambda m, n, k, at: 2 / m,
    "abs": lambda m, n, k, at: abs(m),
    "m[1]": lambda m, n, k, at: m[1],
    "m[::2]": lambda m, n, k, at: m[::2],
    "count": lambda m, n, k, at: m.count(0),
    "number": lambda m, n, k, at: ow.sum(m) + 1,
    "argmin": lambda m, n, k, at: ow.argmin(m, axis=0),
    "argmax": lambda m, n, k, at: ow.argmax(m),
    "std": lambda m, n, k, at: ow.std(m, axis=0, correction=1),
    "logsumexp": lambda m, n, k, at: ow.logsumexp(m, axis=0, keepdims=True),
    "softmax": lambda m, n, k, at: ow.softmax(m, 0),
    "log_softmax": lambda m, n, k, at: ow.log_softmax(m),
    "norm": lambda m, n, k, at: m.norm(axis=0),
    "norm of order 3": lambda m, n, k, at: m.norm(3),
    "norm of order 0": lambda m, n, k, at: m.norm(0, axis=0),
    "largest": lambda m, n, k, at: m.norm(np.inf, axis=0),
    "mean of integers": lambda m, n, k, at: m.astype("int32").mean(axis=0),
    "sum of float32": lambda m, n, k, at: m.astype("float32").sum(axis=0),
    "compact": lambda m, n, k, at: m.compact(),
    "to_dense": lambda m, n, k, at: m.to_dense(),
    "coo": lambda m, n, k, at: m.asformat("coo"),
    "einsum": lambda m, n, k, at: (
        ow.einsum("...i,...i->...", m, k) if m.ndim < 2 else ow.einsum("ij,ij->i", *_two(m, k))
    ),
}
"""Of two tensors of one mask and one of another, and what brings an array to where they are."""
MATRICES: dict[str, Case] = {
    "m * row": lambda m, n, k, at: m * at(np.arange(float(m.shape[1]))),
    "m - column": lambda m, n, k, at: m - at(np.arange(float(m.shape[0]))[:, None]),
    "m * sparse": lambda m, n, k, at: m * at(ow.eye(*m.shape, format="csr")),
    "m @ X": lambda m, n, k, at: m @ at(np.arange(3.0 * m.shape[1]).reshape(-1, 3)),
    "x @ m": lambda m, n, k, at: at(np.arange(float(m.shape[0]))) @ m,
    "m @ n.T": lambda m, n, k, at: m @ n.T,
    "m @ k.T": lambda m, n, k, at: m @ k.T,
    "sum of rows": lambda m, n, k, at: ow.einsum("ij->j", m),
    "scaled": lambda m, n, k, at: ow.einsum("ij,j->ij", m, at(np.arange(float(m.shape[1])))),
    "min_plus": lambda m, n, k, at: ow.einsum("ij,kj->ik", m, k, semiring="min_plus"),
}


def _two(*tensors: Any) -> list[Any]:
    """Matrices of the tensors: their first parts, where they are of rank 3 or more."""
    found = list(tensors)
    while found[0].ndim > 2:
        found = [m[0] for m in found]
    return found


def compared(rank: int, spec: str, names: set[str] | None, device: str) -> None:
    """Each case on the device gives what it gives on the host, or is refused by name where it is missing there."""
    shape = SHAPES[rank][0]
    data, bits = arrays(shape, mask=0.6)
    m, n, k = (
        made(data, bits, spec),
        made(arrays(shape, 1)[0], bits, spec),
        made(arrays(shape, 1)[0], arrays(shape, 5)[1], spec),
    )
    there = [x.to(device) for x in (m, n, k)]
    agree(there[0].to("cpu"), m.to_masked_array())
    tables: list[tuple[str, Case]] = [*OWN.items(), *(MATRICES.items() if rank == 2 else ())]
    if rank == 2:
        tables += [(name, lambda m, n, k, at, f=mine: f(m, n)) for name, (mine, _) in SAME.items()]
    for name, case in tables:
        if names is not None and name not in names:
            continue
        try:
            want = case(m, n, k, lambda x: x)
        except Exception:
            continue  # an argument of another shape than the table's: nothing to compare
        if name in MISSING:
            with pytest.raises(UnsupportedError, match=rf"^{name}\b"):
                case(*there, lambda x: ow.asarray(x, device=device))
            continue
        found = case(*there, lambda x: ow.asarray(x, device=device)).to("cpu")
        found.specified.check()
        assert found.format == want.format, f"{name} of {spec}"
        agree(found, want.to_masked_array(), exact=False)
    for part in ("get_data", "get_mask"):
        found, want = (getattr(x, part)() for x in (there[0].to(device), m))
        assert found.to("cpu").check().format == want.format
    same(there[0].get_mask(), m.get_mask(), "mask")
    same(there[0].filled(7), m.filled(7), "filled")


FEW = {"add", "union", "sum", "var", "m @ X", "flip"}


@pytest.mark.parametrize("spec", ["csr", "dense"])
def test_masked_tensors_on_the_interpreter(spec: str) -> None:
    compared(2, spec, FEW, HERE)


@pytest.mark.opencl
@pytest.mark.parametrize(("rank", "spec"), CASES)
def test_the_masked_suite_in_every_format_on_opencl(rank: int, spec: str) -> None:
    opencl_or_skip()
    compared(rank, spec, None, "opencl")


def test_masks_that_differ_are_named_with_the_first_place() -> None:
    a, b = (made(*arrays((3, 4), k), "csr") for k in (0, 1))
    with pytest.raises(ow.ShapeError, match="the masks differ") as host:
        a + b
    with pytest.raises(ow.ShapeError) as there:
        a.to(HERE) + b.to(HERE)
    assert str(there.value) == str(host.value)


def test_masked_tensors_are_made_of_tensors_there() -> None:
    data, bits = arrays((3, 4))
    there = [ow.asarray(x, device=HERE) for x in (data, bits)]
    agree(ow.masked_tensor(*there).to("cpu"), np.ma.MaskedArray(data, ~bits))
    A = ow.asarray(np.where(bits, data + 9, 0), format="csr")
    agree(ow.as_masked_tensor(A.to(HERE)).to("cpu"), ow.as_masked_tensor(A).to_masked_array())
    mask = ow.asarray(bits & (data > 0), format="csr")
    agree(ow.masked_tensor(A.to(HERE), mask.to(HERE)).to("cpu"), ow.masked_tensor(A, mask).to_masked_array())
    with pytest.raises(ValueError, match="which the data does not store"):
        ow.masked_tensor(mask.to(HERE), ow.asarray(np.ones((3, 4), bool), format="csr").to(HERE))
    with pytest.raises(UnsupportedError, match=r"masked_tensor on interpreter: dense data needs a mask"):
        ow.masked_tensor(there[0])
    with pytest.raises(ow.DTypeError, match="a mask of dtype bool"):
        ow.masked_tensor(there[0], there[0])


def test_what_masked_tensors_have_not_there_is_refused_by_name() -> None:
    m = made(*arrays((3, 4)), "csr").to(HERE)
    for name, run in {
        "median": lambda: ow.median(m),
        "a function of the host's masked tensors": lambda: ow.masked.layer_norm(m),
        "add: operands on interpreter and cpu": lambda: m + np.ones(4),
        "a NumPy array of a masked tensor": lambda: np.asarray(m),
        "masked_tensor with requires_grad": lambda: ow.masked_tensor(m, requires_grad=True),
    }.items():
        with pytest.raises(UnsupportedError, match=name):
            run()
    with pytest.raises(ValueError, match="the element is missing"):
        ow.masked_tensor(np.ones(2), np.zeros(2, bool)).to(HERE).sum().item()
    assert "MaskedDeviceTensor(3x4, float64, sparse_csr, device='interpreter')" in repr(m)
