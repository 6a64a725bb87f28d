"""The ways onto torch's buffers and back, and operands over buffers of two libraries."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.tables import NAMES

ARRAY = np.array([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.5], [0.0, 0.0, 4.0, 0.0], [1.0, 0.0, 0.0, 2.5]])
OTHER = np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 3.0, 0.0, 5.0], [2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 7.0, 2.0]])


def of_numpy(format: str = "csr") -> ow.Tensor:
    return ow.asarray(ARRAY.copy(), format=format)


def over_torch(t: Any) -> bool:
    return isinstance(t.values, torch.Tensor) and all(
        b is None or isinstance(b, torch.Tensor) for k in range(len(t.levels)) for b in (t.pos(k), t.crd(k))
    )


WAYS: dict[str, Callable[[ow.Tensor], ow.Tensor]] = {
    "like torch": lambda t: ow.asarray(t, like=torch),
    "like its name": lambda t: ow.asarray(t, like="torch"),
    "like a tensor": lambda t: ow.asarray(t, like=torch.ones(2)),
    "like a Tensor": lambda t: ow.asarray(t, like=ow.asarray(torch.ones(2))),
    "device": lambda t: t.to(torch.device("cpu")),
    "device of asarray": lambda t: ow.asarray(t, device=torch.device("cpu")),
    "dtype": lambda t: t.to(torch.float64),
    "dtype by name": lambda t: t.to(dtype=torch.float64),
    "tensor": lambda t: t.to(torch.ones(1, dtype=torch.float64)),
    "astype": lambda t: t.astype(torch.float64, copy=False),
    "dtype of asarray": lambda t: ow.asarray(t, dtype=torch.float64),
    "type_as": lambda t: t.type_as(torch.ones(1, dtype=torch.float64)),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_onto_torch_share_memory(way: str) -> None:
    for format in ("csr", "coo", "bsr(2, 2)", "dense"):
        t = of_numpy(format)
        moved = WAYS[way](t)
        assert over_torch(moved)
        assert moved.dtype == torch.float64
        assert moved.format == t.format
        assert np.array_equal(moved.to_numpy(), ARRAY)
        assert moved.values.data_ptr() == t.values.ctypes.data
        assert WAYS[way](moved) is moved


def test_other_dtypes_and_the_way_back() -> None:
    t = of_numpy()
    for moved in (t.to(torch.float32), t.astype(torch.float32), ow.asarray(t, dtype=torch.float32)):
        assert over_torch(moved)
        assert moved.dtype == torch.float32
    back = ow.asarray(ow.asarray(t, like=torch), like=np)
    assert isinstance(back.values, np.ndarray)
    assert back.values.ctypes.data == t.values.ctypes.data
    assert ow.asarray(t, like="numpy") is t
    assert t.astype("float32").dtype == np.float32
    assert t.to("cpu") is t
    recorded = ow.asarray(t, like=torch).requires_grad_()
    with pytest.raises(ow.UnsupportedError, match="detach"):
        ow.asarray(recorded, like=np)
    with pytest.raises(ow.UnsupportedError, match="like="):
        ow.asarray(t, like="jax")
    with pytest.raises(ow.UnsupportedError):
        t.to(torch.device("meta"))
    assert ow.asarray(ARRAY.tolist(), like=torch).dtype == torch.float64


def test_files(tmp_path: Any) -> None:
    path = tmp_path / "a.mtx"
    ow.write(path, of_numpy())
    assert over_torch(ow.read(path, like="torch"))
    assert not over_torch(ow.read(path))
    masked = tmp_path / "m.npz"
    ow.write(masked, ow.masked_tensor(ARRAY, ARRAY > 0))
    assert over_torch(ow.read(masked, like=torch).specified)


def test_every_operation_with_a_dtype_moves_for_one_of_torch() -> None:
    vector = ow.asarray(ARRAY[0], format="coo")
    arguments = ((of_numpy(),), (vector,), ((3, 3),), ((3, 3), 2.0), (3,), ([of_numpy()],), ([[of_numpy()]],))
    tried = 0
    for name in sorted(NAMES):
        function = getattr(ow, name)
        if "dtype" not in signature(function).parameters or name in ("astype", "isdtype", "result_type", "can_cast"):
            continue
        for args in arguments:
            try:
                result = function(*args, dtype=torch.float32)
            except (TypeError, ow.ShapeError, ow.UnsupportedError, ow.InvariantError, AttributeError, IndexError):
                continue
            if isinstance(result, ow.Tensor):
                tried += 1
                assert isinstance(result.values, torch.Tensor), name
                break
    assert tried > 25


MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "radd": lambda a, b: b + a,
    "mul": lambda a, b: a * b,
    "pow": lambda a, b: a**b,
    "maximum": lambda a, b: ow.maximum(a, b),
    "where": lambda a, b: ow.where(a > 0.5, b, 0),
    "where otherwise": lambda a, b: ow.where(b > 0.5, a, b),
    "matmul": lambda a, b: a @ b,
    "rmatmul": lambda a, b: b @ a,
    "einsum": lambda a, b: ow.einsum("ij,ij->i", a, b),
    "concat": lambda a, b: ow.concat([a, b]),
    "stack": lambda a, b: ow.stack([a, b]),
    "kron": lambda a, b: ow.kron(a, b),
    "sddmm": lambda a, b: ow.sddmm(a, b, b),
    "sparse_mask": lambda a, b: ow.sparse_mask(b, a),
    "clip": lambda a, b: ow.clip(a, b - 1, b),
    "block_diag": lambda a, b: ow.block_diag([a, b]),
    "at": lambda a, b: a.at[0].set(b[0]),
    "at add": lambda a, b: a.at[0].add(b[0]),
    "torch.add": lambda a, b: torch.add(a, b),
    "torch.mm": lambda a, b: torch.mm(a, b),
    "vecdot": lambda a, b: ow.vecdot(a, b),
}
"""Operations of a Tensor and of an operand over torch's buffers."""


def operand(kind: str, recorded: bool) -> Any:
    x = torch.tensor(OTHER)
    x = x if kind == "tensor" else ow.asarray(x, format=kind)
    return x.requires_grad_() if recorded else x


def result_and_gradient(run: Any, a: Any, kind: str) -> tuple[Any, Any]:
    x = operand(kind, True)
    result = run(a, x)
    assert result.requires_grad
    dense = result if isinstance(result, torch.Tensor) else result.to_dense()
    (dense * torch.arange(1.0, dense.numel() + 1, dtype=torch.float64).reshape(dense.shape)).sum().backward()
    return dense.detach(), x.grad if isinstance(x.grad, torch.Tensor) else x.grad.to_dense()


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize("name", MIXED)
def test_results_of_two_libraries_are_over_torch_and_recorded(name: str) -> None:
    run = MIXED[name]
    for format in ("csr", "dense"):
        for kind in ("tensor", "csr"):
            both = ow.asarray(of_numpy(format), like=torch)
            try:
                expected = result_and_gradient(run, both, kind)
            except (ow.UnsupportedError, ow.ShapeError, AttributeError):
                continue  # not an operation of these formats
            found = result_and_gradient(run, of_numpy(format), kind)
            assert all(torch.allclose(x, y) for x, y in zip(found, expected, strict=True)), (format, kind)
            plain = run(of_numpy(format), operand(kind, False))
            assert type(plain) is type(run(both, operand(kind, False)))
            assert isinstance(plain, torch.Tensor) or isinstance(plain.values, torch.Tensor)


def test_numbers_of_torch_and_elements_in_place() -> None:
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (of_numpy() * x).sum().backward()
    assert x.grad is not None
    assert float(x.grad) == ARRAY.sum()
    assert over_torch(of_numpy() * torch.tensor(2.0))
    t = of_numpy()
    with pytest.raises(ow.UnsupportedError):
        t += operand("csr", True)
    assert not over_torch(t)
    v = torch.tensor([5.0, 6, 7, 8], dtype=torch.float64, requires_grad=True)
    dense = ow.asarray(torch.tensor(ARRAY)).at[0].set(v)
    dense.sum().to_dense().backward()
    assert v.grad is not None
    assert bool((v.grad == 1).all())


def test_memory_that_may_not_be_copied_is_shared() -> None:
    A = ow.asarray(np.eye(3), format="csr")
    assert np.shares_memory(ow.asarray(A, like=torch, copy=False).values.numpy(), A.values)


def test_kinds_of_results() -> None:
    t = ow.asarray(torch.eye(2, dtype=torch.float64).to_sparse_coo())
    assert isinstance(torch.unique(t), ow.Tensor)
    assert [len(torch.unique(t, return_counts=True)), len(torch.unique(t, return_inverse=True))] == [2, 2]
    for x in (t, ow.sparse_coo_tensor(torch.tensor([[1, 0], [0, 1]]), torch.ones(2), (2, 2))):
        s = ow.kron(x, x)._storage
        assert all(isinstance(b, torch.Tensor) for b in (*s.pos, *s.crd) if b is not None)
    (line,) = torch.meshgrid(t[0], indexing="xy")
    assert line.shape == (2,)
