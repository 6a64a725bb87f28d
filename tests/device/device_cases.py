"""Operations on a device beside the same on the host: a list of cases for a tensor of a rank, and one comparison."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from matrix import tensor

import openwork as ow
from openwork.device.adapter import adapter_of
from openwork.errors import UnsupportedError

Case = tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]
"""A name, a function of a tensor and dense operands, and the shapes of these."""
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "count_nonzero", "mean")


def cases(shape: tuple[int, ...]) -> Iterator[Case]:
    """What is tried on a tensor of a shape."""
    rank = len(shape)
    yield "sin", lambda A: ow.sin(A), ()
    yield "cos", lambda A: ow.cos(A), ()
    yield "A * 2", lambda A: A * 2, ()
    yield "2 - A", lambda A: 2 - A, ()
    yield "A > 1", lambda A: A > 1, ()
    yield "clip", lambda A: ow.clip(A, -1, 2), ()
    yield "abs", lambda A: abs(-A), ()
    yield "A + B", lambda A: A + A.asformat("coo" if A.ndim else A.format) * 2, ()
    yield "A * B", lambda A: ow.multiply(A, A * 3), ()
    for op in REDUCTIONS:
        for axis in (None, *range(min(rank, 3))):
            yield f"{op} {axis}", lambda A, op=op, axis=axis: getattr(ow, op)(A, axis=axis), ()
    yield "sum of A + 1", lambda A: ow.sum(A + 1, axis=0 if A.ndim else None), ()
    if rank:
        for op in ("softmax", "log_softmax", "logsumexp", "var", "std"):
            for axis in range(min(rank, 2)):
                yield f"{op} {axis}", lambda A, op=op, axis=axis: getattr(ow, op)(A, axis=axis), ()
        yield "logsumexp of A + 1", lambda A: ow.logsumexp(A + 1, axis=None), ()
        yield "var of A + 1", lambda A: ow.var(A + 1, axis=0, correction=1, keepdims=True), ()
        for key in (np.s_[1], np.s_[..., -1], np.s_[::2], np.s_[..., ::-1], np.s_[None], np.s_[[0, -1, 0]]):
            yield f"key {key}", lambda A, key=key: A[key], ()
    if rank > 1:
        yield "sum keepdims", lambda A: ow.sum(A, axis=0, keepdims=True), ()
    if rank in (1, 2):
        yield "A @ x", lambda A, x: A @ x, ((shape[-1],),)
    if rank == 2:
        m, n = shape
        yield "x @ A", lambda A, x: x @ A, ((m,),)
        yield "A.T @ x", lambda A, x: A.T @ x, ((m,),)
        yield "A @ X", lambda A, x: A @ x, ((n, 3),)
        yield "X @ A", lambda A, x: x @ A, ((3, m),)
        yield "A @ A.T", lambda A: A @ A.T, ()
        yield "sddmm", lambda A, x, y: ow.sddmm(A, x, y), ((m, 3), (3, n))
        yield "attend", attended, ((m, 3), (n, 3), (n, 2))
        yield "attend heads", attended, ((2, 4, m, 3), (2, 2, n, 3), (2, n, 2))
        yield "A * row", lambda A, x: A * x, ((n,),)
        yield "A + row", lambda A, x: A + x, ((n,),)
        yield "A - column", lambda A, x: A - x, ((m, 1),)
        yield "A * X", lambda A, x: A * x, ((m, n),)
        yield "einsum of three", lambda A, x, y: ow.einsum("ij,jk,kl->il", A, x, y), ((n, 2), (2, 3))
    if rank == 3:
        _, j, k = shape
        yield "mttkrp", lambda A, x, y: ow.mttkrp(A, [None, x, y], 0), ((j, 3), (k, 3))
        yield "ttv", lambda A, x: ow.ttv(A, x, 1), ((j,),)
        yield "ttm", lambda A, x: ow.ttm(A, x, 1), ((j, 2),)


def awkward(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A matrix with infinities, NaN, a zero with a sign and a half in places of its elements, but for those of the first
    row and column, which are 1."""
    rng = np.random.default_rng(4)
    special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.5], array.shape)
    result = np.where(rng.random(array.shape) < 0.2, special, array)
    result[0] = result[:, 0] = 1
    return result


def opencl_or_skip() -> Any:
    """pyopencl, with a runtime that takes SPIR-V; skips where there is none."""
    if importlib.util.find_spec("pyopencl") is None:
        pytest.skip("pyopencl is not installed: pip install 'openwork[opencl]' intel-opencl-rt, see docs/devices.md")
    import pyopencl.array

    try:
        ow.asarray([1.0], device="opencl")
    except UnsupportedError as error:
        pytest.skip(str(error))
    if not adapter_of("opencl").takes_spirv:  # type: ignore[attr-defined]
        pytest.skip("the runtime of OpenCL takes no SPIR-V")
    return pyopencl


def attended(mask: Any, *operands: Any) -> Any:
    """Attention of dense operands, of the host's by torch."""
    if not isinstance(operands[0], np.ndarray):
        return ow.nn.attend(mask, *operands, enable_gqa=operands[0].ndim > 2)
    torch = pytest.importorskip("torch")
    return ow.nn.attend(mask, *map(torch.from_numpy, operands), enable_gqa=operands[0].ndim > 2).numpy()


def compare(case: Case, array: np.ndarray[Any, Any], spec: str, device: str) -> None:
    """The case on the device gives what it gives on the host: format, dtype, fill value and elements, or the error."""
    name, function, shapes = case
    rng = np.random.default_rng(3)
    dense = [rng.integers(1, 4, s).astype(float) for s in shapes]
    host = tensor(array, spec)
    there = ow.asarray(host, device=device)
    operands = [ow.asarray(x, device=device) for x in dense]
    try:
        want = function(host, *dense)
    except Exception as error:
        try:
            function(there, *operands)
        except type(error):
            return
        raise AssertionError(f"{name} of {spec}: expected {error!r}") from error
    same(function(there, *operands), want, f"{name} of {spec}")


def same(found: Any, want: Any, what: str) -> None:
    """A tensor on a device equals a result of the host."""
    got = found.to("cpu").check()
    expected = want if isinstance(want, ow.Tensor) else ow.asarray(np.asarray(want))
    assert (got.shape, got.dtype, got.format) == (expected.shape, expected.dtype, expected.format), what
    if not got.format.is_dense:
        np.testing.assert_equal(got.fill_value, expected.fill_value, what)
        assert got.nse == found.nse, what
    np.testing.assert_allclose(got.to_numpy(), expected.to_numpy(), rtol=1e-12, err_msg=what)
