"""Tracers of torch below Python, operands without memory, and index tensors whose writes nothing counts."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

import openwork as ow
from openwork.errors import UnsupportedError
from openwork.nn import SparseLinear

D = torch.diag(torch.arange(1.0, 4.0)) + torch.eye(3).roll(1, 0)
A = {name: ow.asarray(D, format=name) for name in ("csr", "coo", "bsr(2, 2)", "dense")}
RECORDED = ow.asarray(D, format="csr").requires_grad_()
STACK = ow.asarray(torch.ones(3, 3, 3), format="csf")

TAKING: dict[str, Callable[[Any], Any]] = {
    **{f"{name} @ x": lambda x, t=t: t @ x for name, t in A.items()},
    "recorded @ x": lambda x: RECORDED @ x,
    "x @ A": lambda x: x @ A["csr"],
    "NumPy's @ x": lambda x: ow.asarray(D.numpy(), format="csr") @ x,
    "A * x": lambda x: A["csr"] * x,
    "A + x": lambda x: A["coo"] + x,
    "x - A": lambda x: x - A["csr"],
    "maximum": lambda x: ow.maximum(A["csr"], x),
    "A *= x": lambda x: A["csr"].clone().__imul__(x),
    "asarray": lambda x: ow.asarray(x, format="csr"),
    "asarray, dense": lambda x: ow.asarray(x).sum(),
    "matmul": lambda x: ow.matmul(A["csr"], x),
    "torch.mm": lambda x: torch.mm(A["csr"], x),
    "torch.sparse.mm": lambda x: torch.sparse.mm(A["csr"], x),
    "linear": lambda x: torch.nn.functional.linear(x, A["csr"]),
    "SparseLinear": lambda x: SparseLinear(A["csr"])(x),
    "sddmm": lambda x: ow.sddmm(A["csr"], x, x),
    "einsum": lambda x: ow.einsum("ij,jk->ik", A["csr"], x),
    "evaluate": lambda x: ow.evaluate("y[i] += A[i,j] * x[j]", A=A["csr"], x=x[0]),
    "lazy": lambda x: (ow.lazy(A["csr"]) @ x).compute(),
    "with_values": lambda x: ow.with_values(A["csr"], x.reshape(-1)[:6]) @ D,
    "where": lambda x: ow.where(A["csr"] > 0, x, 0.0),
    "mttkrp": lambda x: ow.mttkrp(STACK, [x, x, x], 0),
    "take": lambda x: ow.take(A["csr"], x.long()[0], axis=0),
    "A[x]": lambda x: A["csr"][x.long()[0]],
    "A[0] = x": lambda x: A["csr"].clone().__setitem__(0, x[0]),
    "gmres": lambda x: ow.linalg.gmres(A["csr"], x[0]),
    "x += A": lambda x: x.__iadd__(A["csr"]),
}

OWN: dict[str, Callable[[], Any]] = {
    "asarray": lambda: ow.asarray(torch.eye(3), format="csr"),
    "@": lambda: A["csr"] @ D,
    "@ of two": lambda: A["csr"] @ A["coo"],
    "+": lambda: A["csr"] + A["csr"],
    "sum": lambda: A["csr"].sum(0),
    "asformat": lambda: A["coo"].asformat("csc"),
    "A[1:]": lambda: A["csr"][1:],
    "to_dense": lambda: A["csr"].to_dense(),
    "sin": lambda: torch.sin(A["csr"]),
    "softmax": lambda: ow.softmax(A["csr"]),
    "*=": lambda: A["csr"].clone().__imul__(2.0),
}


def in_mode(mode: Any, function: Callable[[], Any]) -> Any:
    with mode:
        return function()


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("name", TAKING)
def test_operands_without_memory_are_refused(name: str) -> None:
    TAKING[name](torch.ones(3, 3))
    with FakeTensorMode():
        fake = torch.ones(3, 3)
    for x in (fake, fake[:, 0:3]):
        with pytest.raises(UnsupportedError, match="without memory"):
            TAKING[name](x)


@pytest.mark.parametrize("name", ["csr @ x", "coo @ x", "asarray", "sddmm", "take", "A[0] = x"])
def test_wrappers_of_tensors_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="without memory, TwoTensor"):
        TAKING[name](TwoTensor(torch.ones(3, 3), torch.ones(3, 3)))


@pytest.mark.parametrize("name", OWN)
def test_fake_tensors_are_made_of_no_tensor(name: str) -> None:
    OWN[name]()
    want = OWN[name]()
    for mode in (FakeTensorMode(allow_non_fake_inputs=True), FunctionalTensorMode()):
        with pytest.raises(UnsupportedError, match=r"a call of Tensors inside F|without memory, F"):
            in_mode(mode, OWN[name])
    got = OWN[name]()  # nothing of the mode was kept
    for x, y in ((got, want),):
        a, b = (v.to_dense() if isinstance(v, ow.Tensor) else v for v in (x, y))
        torch.testing.assert_close(a, b)


@pytest.mark.thin(15)
@pytest.mark.parametrize("tracing_mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("pre_dispatch", [False, True])
@pytest.mark.parametrize("name", [n for n in TAKING if n not in ("gmres", "x += A")])
def test_graphs_have_no_memory_of_results(name: str, pre_dispatch: bool, tracing_mode: str) -> None:
    if name == "NumPy's @ x" and tracing_mode != "real":
        pytest.skip("torch's own error of an array inside its mode")
    x = torch.ones(3, 3)
    for _ in range(3):
        TAKING[name](x)  # calls that are met again take other ways
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UnsupportedError, match=r"torch\.compile"):
            make_fx(lambda x: dense(TAKING[name](x)), tracing_mode=tracing_mode, pre_dispatch=pre_dispatch)(x)


def dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, ow.Tensor) else x


def test_modes_that_only_look_on_are_no_tracers() -> None:
    with FlopCounterMode(display=False):
        torch.testing.assert_close(A["csr"] @ D, D @ D)
        torch.testing.assert_close((A["csr"] + A["csr"]).to_dense(), 2 * D)


@pytest.mark.parametrize("make", ["csr", "coo", "assemble", "sparse_csr_tensor", "sparse_coo_tensor"])
def test_index_tensors_of_inference_mode_are_copied(make: str) -> None:
    with torch.inference_mode():
        crow, col, values = torch.arange(0, 7, 2), torch.tensor([0, 1, 1, 2, 0, 2]), torch.ones(6)
        rows = torch.stack([torch.arange(3).repeat_interleave(2), col])
        with torch.sparse.check_sparse_tensor_invariants(enable=True):
            t = {
                "csr": lambda: ow.asarray(torch.sparse_csr_tensor(crow, col, values, (3, 3))),
                "coo": lambda: ow.asarray(torch.sparse_coo_tensor(rows, values, (3, 3), is_coalesced=True)),
                "assemble": lambda: ow.assemble("csr", (3, 3), pos=(None, crow), crd=(None, col), values=values),
                "sparse_csr_tensor": lambda: ow.sparse_csr_tensor(crow, col, values, (3, 3)),
                "sparse_coo_tensor": lambda: ow.sparse_coo_tensor(rows, values, (3, 3)),
            }[make]()
        x = torch.arange(3.0)
        want = t @ x
        for index in (crow, col, rows):
            index.fill_(2**40)
        for _ in range(3):
            assert torch.equal(t @ x, want)
        assert torch.equal(t.sum(0).to_dense(), torch.full((3,), 2.0))


def test_values_of_inference_mode_are_shared() -> None:
    with torch.inference_mode():
        given = torch.eye(3).to_sparse_csr()
        t = ow.asarray(given)
        given.values().mul_(2)
    assert np.array_equal(t.to_numpy(), 2 * np.eye(3))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.filterwarnings("ignore")  # torch.jit's own
@pytest.mark.parametrize("name", [n for n in TAKING if n not in ("SparseLinear", "x += A", "asarray, dense")])
def test_what_torch_jit_traces_is_refused(name: str) -> None:
    """It took results for constants; a layer is an operator there."""
    x = torch.ones(3, 3)
    for _ in range(3):
        TAKING[name](x)
    with pytest.raises(UnsupportedError, match=r"inside torch\.jit\.trace"):
        torch.jit.trace(lambda x: dense(TAKING[name](x)), x, check_trace=False)


@pytest.mark.slow
def test_pruned_networks_are_traced_in_a_fresh_process() -> None:
    program = """
import torch
from openwork.nn import prune
net = prune(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)), 0.5)
traced = torch.jit.trace(net, torch.ones(2, 4))
x = torch.arange(12.0).reshape(3, 4)
torch.testing.assert_close(traced(x), net(x))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
