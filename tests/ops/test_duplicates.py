"""Operations on tensors with duplicates equal those on the same tensor with its duplicates summed, in its own dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

INF = float("inf")
FORMATS = {"coo": None, "csr(nonunique, unordered)": "csr", "bsr(3, 1, nonunique)": "bsr(3, 1)"}
STORED = [
    ("float64", [-2, 1, 5, 4]), ("uint32", [2**32 - 1, 7, 5, 4]), ("int8", [100, 100, 5, 4]), ("bool", [1, 1, 0, 1]),
    ("int64", [2**62, 2**62, 1, 2]), ("float32", [3e38, 3e38, 1, 2]),
]  # fmt: skip
V, M = np.array([1.0, INF, 2.0]), np.full((3, 3), INF)

OPERATIONS = {
    "astype": lambda S, give: S.astype("float64"),
    "astype int64": lambda S, give: S.astype("int64") if S.values.dtype not in (torch.float32, np.float32) else S,
    "asarray": lambda S, give: ow.asarray(S, dtype="float64", format="csr"),
    "concat": lambda S, give: ow.concat([S, ow.asarray(give(np.eye(3)), format="coo")]),
    "stack": lambda S, give: ow.stack([S, ow.asarray(give(np.eye(3)), format="coo")]),
    "S * inf": lambda S, give: S * INF,
    "np.multiply": lambda S, give: np.multiply(INF, S),
    "S * 1.5": lambda S, give: S * 1.5,
    "S * 2": lambda S, give: S * 2,
    "S / 0.": lambda S, give: S / 0.0,
    "S * M": lambda S, give: S * give(M),
    "S / d": lambda S, give: S / give(np.array([1.0, 0.0, 2.0])),
    "scaled rows": lambda S, give: S * give(V[:, None]),
    "where": lambda S, give: ow.where(S > 0, S, 0.5),
    "conj": lambda S, give: S.conj(),
    "S @ v": lambda S, give: S @ give(V),
    "v @ S": lambda S, give: give(V) @ S,
    "S @ finite": lambda S, give: S @ give(np.array([1.5, 2.5, 2.0])),
    "S @ integers": lambda S, give: S @ give(np.array([1, 2, 3])),
    "S @ overflow": lambda S, give: S @ give(np.array([1.0, 1e308, 2.0])),
    "S @ M": lambda S, give: S @ give(M),
    "S @ E": lambda S, give: S @ ow.asarray(give(M), format="csr"),
    "einsum": lambda S, give: ow.einsum("ij,j->i", S, give(V)),
    "mttkrp": lambda S, give: ow.einsum("ij,jk,ik->k", S, give(M), give(M)),
    "tensordot": lambda S, give: ow.tensordot(S, give(V), axes=1),
    "evaluate": lambda S, give: ow.evaluate("y[i] += S[i,j] * x[j]", S=S, x=give(V)),
    "min_plus": lambda S, give: ow.spgemm(S, S, semiring="min_plus"),
    "addmm": lambda S, give: ow.addmm(give(np.zeros((3, 3))), S, give(M)),
    "lazy": lambda S, give: (ow.lazy(S) * INF).compute(),
    "lazy product": lambda S, give: (ow.lazy(S) @ give(V)).compute(),
    "fused": lambda S, give: ow.fused(lambda s, x: (s * 1.5) @ x)(S, give(V)),
    "sum": lambda S, give: S.sum(axis=1),
    "sum of all": lambda S, give: S.sum(dtype="float64"),
    "mean": lambda S, give: ow.mean(S, axis=0),
    "norm": lambda S, give: ow.linalg.norm(S, axis=1),
}

NOT_OF_TORCH = {"astype int64", "S * 2", "where", "S @ integers", "S @ E", "min_plus"}
"""Operations that torch lacks for unsigned integers."""


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.to_dense() if isinstance(x, ow.Tensor) else x)


@pytest.mark.thin(132)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("dtype", "stored"), STORED)
def test_duplicates_are_summed_in_the_dtype_of_the_tensor(
    dtype: str, stored: list[float], format: str, library: str
) -> None:
    give = {"numpy": np.asarray, "torch": torch.from_numpy}[library]
    places = np.array([[0, 0, 1, 2], [1, 1, 0, 2]])
    S = ow.sparse_coo_tensor(give(places), give(np.array(stored, dtype)), (3, 3))
    S, once = (S, S.coalesce()) if format == "coo" else (S.asformat(format), S.asformat(FORMATS[format]))
    assert not S.format.is_unique
    assert once.format.is_unique
    with np.errstate(all="ignore"):
        for name, operation in OPERATIONS.items():
            if library == "torch" and dtype == "uint32" and name in NOT_OF_TORCH:
                continue
            for _ in range(3):  # the second and third calls may be prepared ones
                got, want = _array(operation(S, give)), _array(operation(once, give))
                assert got.dtype == want.dtype, name
                np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)


def test_finite_products_leave_duplicates_as_they_are() -> None:
    S = ow.sparse_coo_tensor(np.array([[0, 0, 1], [1, 1, 0]]), np.array([-2.0, 1.0, 4.0]), (2, 2))
    for scaled in (S * 2, S / 4.0, -S, S * np.array([[1.0, 2.0], [3.0, 4.0]]), 3 * S):
        assert scaled.format == S.format
        assert scaled.nse == 3


@pytest.mark.parametrize("number", [2.0, INF])
def test_gradients_of_duplicates_are_those_of_their_sums(number: float) -> None:
    values = torch.tensor([-2.0, 1.0, 4.0], requires_grad=True)
    S = ow.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), values, (2, 2))
    x = torch.tensor([3.0, number])
    (gradient,) = torch.autograd.grad((S @ x)[0] + (S * number).sum(), values)
    assert gradient.tolist() == [2 * number, 2 * number, number]
    assert (S.detach() @ x).tolist() == [-number, 12]


@pytest.mark.ci
def test_compiled_products_of_duplicates_are_those_of_their_sums() -> None:
    S = ow.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([-2.0, 1.0, 4.0]), (2, 2))
    product = torch.compile(lambda s, x: s @ x, backend="eager")
    assert product(S, torch.tensor([3.0, INF])).tolist() == [-INF, 12]


@pytest.mark.parametrize("scale", [lambda S: S.mul_(INF), lambda S: S.__imul__(INF), lambda S: S.div_(0.0)])
def test_duplicates_scaled_in_place(scale: Any) -> None:
    S = ow.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([-2.0, 1.0, 4.0]), (2, 2))
    scale(S)
    assert S.to_dense()[0, 1] == -INF
