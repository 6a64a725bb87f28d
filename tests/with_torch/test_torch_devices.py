"""Tensors of another device beside those of the CPU: refused with a typed error before an address is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_torch_never_lost import NAMES

import openwork as ow
from openwork.storage import buffers

DENSE = torch.tensor([[0, 1.0, 0], [2, 0, 3], [0, 4, 0]])
S = ow.asarray(DENSE, format="csr")
FAR = {"matrix": DENSE.to("meta"), "vector": DENSE[0].to("meta")}
TYPED = (ow.UnsupportedError, ow.InvariantError, ow.DTypeError, ow.ShapeError, ow.FormatError)

CALLS: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda m: ow.asarray(m),
    "asarray, a format": lambda m: ow.asarray(m, format="csr"),
    "matmul": lambda m: S @ m,
    "matmul from the left": lambda m: m @ S,
    "spmv": lambda m: S @ m[0],
    "torch.mm": lambda m: torch.mm(S, m),
    "torch.add": lambda m: torch.add(S, m),
    "torch.lerp": lambda m: torch.lerp(S, m, m),
    "torch.where": lambda m: torch.where(m > 0, S, S),
    "torch.cat": lambda m: torch.cat([S, m]),
    "linear": lambda m: torch.nn.functional.linear(m, S),
    "addmm": lambda m: torch.addmm(m, S, DENSE),
    "plus": lambda m: S + m,
    "plus from the left": lambda m: m + S,
    "times": lambda m: S * m,
    "times a dense tensor": lambda m: ow.asarray(DENSE) * m,
    "einsum": lambda m: ow.einsum("ij,jk->ik", S, m),
    "einsum of three": lambda m: ow.einsum("ij,jk,kl->il", S, DENSE, m),
    "sddmm": lambda m: ow.sddmm(S, m, DENSE),
    "sparse_mask": lambda m: ow.sparse_mask(m, S),
    "the mask": lambda m: ow.sparse_mask(S, m),
    "index": lambda m: S[m.long()],
    "bool index": lambda m: S[m > 0],
    "take": lambda m: ow.take(S, m.long().reshape(-1), axis=0),
    "set": lambda m: S.clone().__setitem__(slice(None), m),
    "at": lambda m: S.at[:].set(m),
    "copy_": lambda m: S.clone().copy_(m),
    "add_": lambda m: S.clone().add_(m),
    "out": lambda m: torch.mm(S, DENSE, out=m),
    "concat": lambda m: ow.concat([S, m]),
    "stack": lambda m: ow.stack([S, m]),
    "lazy": lambda m: ow.compute(ow.lazy(S) + m),
    "fused": lambda m: ow.fused(lambda a, b: a * b + a)(S, m),
    "masked data": lambda m: ow.masked_tensor(m, DENSE > 0),
    "mask": lambda m: ow.masked_tensor(DENSE, m > 0),
    "both": lambda m: ow.masked_tensor(m, m > 0),
    "masked plus": lambda m: ow.masked_tensor(DENSE, DENSE > 0) + m,
    "masked matmul": lambda m: ow.masked_tensor(DENSE, DENSE > 0) @ m,
    "solve": lambda m: ow.linalg.solve(S, m),
    "solve_triangular": lambda m: ow.linalg.solve_triangular(ow.asarray(DENSE + torch.eye(3), format="csr"), m),
    "backward": lambda m: (ow.asarray(DENSE, format="csr").requires_grad_() * 1).backward(m),
    "csr values": lambda m: ow.sparse_csr_tensor([0, 1, 3, 4], [1, 0, 2, 1], torch.empty(4, device=m.device), (3, 3)),
    "csr columns": lambda m: ow.sparse_csr_tensor(
        torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1]).to(m.device), torch.ones(4), (3, 3)
    ),
    "coo indices": lambda m: ow.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]).to(m.device), torch.ones(2), (3, 3)),
    "assemble": lambda m: ow.assemble(
        "csr", (3, 3), pos={1: torch.tensor([0, 1, 3, 4]).to(m.device)}, crd={1: torch.tensor([1, 0, 2, 1])},
        values=torch.ones(4),
    ),
    "to": lambda m: S.to(m.device),
    "to a tensor": lambda m: S.to(m),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_typed_error(name: str) -> None:
    with pytest.raises(TYPED):
        CALLS[name](FAR["matrix"])


def test_no_public_function_takes_one_beside_a_tensor() -> None:
    """Whatever the function and the place: refused, or an argument that is no tensor there (a list, to `to_sklearn`)."""
    taken = set()
    for name in NAMES:
        function = getattr(ow.linalg, name[7:]) if name.startswith("linalg.") else getattr(ow, name)
        for m in FAR.values():
            for args in ((S, m), (m, S), ([S, m],), (S, m, S), (S, S, m), (m,)):
                try:
                    function(*args)
                except (*TYPED, TypeError, ValueError, AttributeError, RuntimeError):
                    continue
                taken.add(name)
    assert taken <= {"finfo", "lazy", "broadcast_arrays", "linalg.aslinearoperator", "to_sklearn"}, taken


def test_no_address_of_another_device() -> None:
    """The one door to a kernel: memory of another device, or none, is no address; without elements too."""

    class Elsewhere(torch.Tensor):
        is_cpu = False
        is_meta = False
        device = torch.device("cuda", 0)

    x = torch.ones(3)
    assert buffers.address(x) == x.data_ptr()
    for far, text in (
        (x.as_subclass(Elsewhere), "on device cuda:0"),
        (x.to("meta"), "without memory, on device meta"),
        (x[:0].to("meta"), "on device meta"),
    ):
        with pytest.raises(ow.UnsupportedError, match=text):
            buffers.address(far)


def test_memory_of_other_devices_is_no_view() -> None:
    t, elsewhere = ow.asarray([[0.0, 2.0], [1.0, 0.0]], format="csr"), torch.empty(0, device="meta")
    for copy in (None, True):
        assert ow.asarray(t, like=elsewhere, copy=copy).device == "meta"
    with pytest.raises(ValueError, match="copy=False, but another device's memory is copied"):
        ow.asarray(t, like=elsewhere, copy=False)


def test_elementwise_operands_on_other_devices() -> None:
    t, elsewhere = ow.asarray(torch.eye(3), format="csr"), torch.ones(3, 3, device="meta")
    m = ow.masked_tensor(torch.eye(3), torch.eye(3) > 0)
    here = torch.ones(3, 3)
    for known in (t * here, t.requires_grad_() * here, t @ here):  # kernels and scalar types, from now on
        assert str(known.device) == "cpu"
    for call in (
        lambda: t @ elsewhere,
        lambda: t * elsewhere, lambda: ow.maximum(t, elsewhere), lambda: torch.lerp(t, elsewhere, 0.5),
        lambda: t.requires_grad_() * elsewhere, lambda: m * elsewhere, lambda: ow.clip(t, elsewhere, elsewhere),
    ):  # fmt: skip
        with pytest.raises(ow.UnsupportedError, match=r"operands on (cpu and meta|meta and cpu)"):
            call()
