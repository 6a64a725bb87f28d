"""Small products whose dense operand stands on the left, or in another order -> those of NumPy, prepared as others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

RNG = np.random.default_rng(5)
DENSE = np.round(RNG.normal(size=(6, 9)), 1) * (RNG.random((6, 9)) < 0.4)
LEFT, RIGHT = np.round(RNG.normal(size=(4, 6)), 1), np.round(RNG.normal(size=(9, 4)), 1)
ORDERS = {
    "rows": lambda x: x.copy(),
    "columns": lambda x: np.asfortranarray(x),
    "every other": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda x: np.broadcast_to(x[:1], x.shape),
    "misaligned": lambda x: np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr(2, 3)", "dense", "dia", "bitmap", "dcsr"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int16", "bool", "float16"])
def test_every_order_of_the_dense_operand(format: str, dtype: str) -> None:
    a, left, right = DENSE.astype(dtype), LEFT.astype(dtype), RIGHT.astype(dtype)
    t = ow.asarray(a, format=format)
    for order in ORDERS.values():
        x, y = order(left), order(right)
        for _ in range(2):
            for got, want in ((x @ t, x @ a), (t @ y, a @ y), (x @ t @ y, x @ a @ y)):
                assert got.dtype == want.dtype
                np.testing.assert_allclose(
                    got, want, rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-2 if dtype == "float16" else 1e-6
                )


def test_other_values_of_one_structure() -> None:
    """The prepared product takes the values that it is given, and arrays of another shape or dtype another way."""
    t = ow.asarray(DENSE, format="csr")
    for factor in (1.0, 2.0, -3.0):
        u = t.with_values(t.values * factor)
        np.testing.assert_allclose(LEFT @ u, factor * (LEFT @ DENSE))
        np.testing.assert_allclose(
            LEFT[:2].astype("float32") @ u, factor * (LEFT[:2].astype("float32") @ DENSE), rtol=1e-6
        )
        np.testing.assert_allclose(LEFT[:0] @ u, np.zeros((0, 9)))
    filled = ow.asarray(DENSE, format="csr", fill_value=2.0)
    np.testing.assert_allclose(LEFT @ filled, LEFT @ DENSE)
    with pytest.raises(ow.ShapeError, match="inner extents"):
        RIGHT @ t


@pytest.mark.parametrize("format", ["csr", "csc", "bsr(2, 3)"])
def test_gradients(format: str) -> None:
    torch = pytest.importorskip("torch")
    for order in ("rows", "columns"):
        for _ in range(2):
            t = ow.asarray(torch.from_numpy(DENSE.copy()), format=format).requires_grad_()
            a = torch.from_numpy(DENSE.copy()).requires_grad_()
            data = torch.from_numpy(LEFT.copy())
            x = (data if order == "rows" else data.T.contiguous().T).requires_grad_()
            z = torch.from_numpy(LEFT.copy()).requires_grad_()
            (torch.sin(x @ t)).sum().backward()
            (torch.sin(z @ a)).sum().backward()
            np.testing.assert_allclose(x.grad, z.grad)
            stored = ow.pattern(t.detach()).to_dense().numpy().astype(bool)
            np.testing.assert_allclose(t.grad.to_dense().numpy()[stored], a.grad.numpy()[stored])


def torch_tensors(kind: str) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(LEFT.copy())
    if kind == "conjugate":
        x = (x + 1j * x.flip(0)).conj()
    return {"rows": x, "columns": x.T.contiguous().T, "every other": x.repeat_interleave(2, 1)[:, ::2], "conjugate": x}[
        kind
    ], torch


@pytest.mark.parametrize("kind", ["rows", "columns", "every other", "conjugate"])
def test_torch_tensors_of_every_order(kind: str) -> None:
    x, torch = torch_tensors(kind)
    dense = torch.from_numpy(DENSE).to(x.dtype)
    t = ow.asarray(dense, format="csr")
    for _ in range(2):
        got = x @ t
        assert type(got) is torch.Tensor
        np.testing.assert_allclose(got.numpy(), (x @ dense).resolve_conj().numpy())
        np.testing.assert_allclose((t.T @ x.mT).numpy(), (dense.T @ x.mT).resolve_conj().numpy())
