"""Masked tensors with SciPy's sparse arrays on either side: what a Tensor of the same elements gives, or a typed error."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow

D = np.array([[1.0, 0, 2], [0, 3, 0]])
M = np.array([[True, False, True], [False, True, False]])
S = np.array([[1.0, 5, 0], [0, 2, 0]])
KINDS = ("csr_array", "coo_array", "csc_matrix", "dia_array", "dok_array")


def masked(spec: str) -> ow.MaskedTensor:
    if spec == "dense":
        return ow.masked_tensor(D, M)
    return ow.masked_tensor(ow.asarray(D, format=spec), ow.asarray(M, format=spec))


def same(got: object, want: np.ndarray) -> None:
    assert isinstance(got, ow.MaskedTensor)
    found = got.to_masked_array()
    np.testing.assert_array_equal(np.asarray(found.mask), ~M)
    np.testing.assert_allclose(found.filled(0), np.where(M, want, 0))


@pytest.mark.thin(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_elementwise_on_either_side(spec: str, kind: str) -> None:
    m, s = masked(spec), getattr(sp, kind)(S)
    for op in (operator.add, operator.sub, operator.truediv, operator.eq, operator.lt, operator.mul, operator.pow):
        with np.errstate(all="ignore"):
            same(op(m, s), op(D, S))
    for op in (operator.add, operator.sub):
        same(op(s, m), op(S, D))
    for op in (operator.eq, operator.lt, operator.mul):
        same(op(ow.asarray(s), m), op(S, D))
        with pytest.raises(ow.UnsupportedError, match=r"asarray\(S\) @ m"):
            op(s, m)
    same(ow.maximum(m, s), np.maximum(D, S))
    same(ow.add(s, m), S + D)
    same(np.add(m, s), D + S)
    same(ow.where(m > 1, m, s), np.where(D > 1, D, S))
    m += s
    same(m, D + S)


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", ["dense", "csr"])
def test_products_take_the_values_that_are_there(spec: str, kind: str) -> None:
    m, s = masked(spec), getattr(sp, kind)(S)
    for got in (m @ s.T, ow.matmul(m, s.T), ow.einsum("ij,kj->ik", m, s), (ow.asarray(s) @ m.T).T):
        np.testing.assert_allclose(got.to_numpy(-1), (D * M) @ S.T)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused_is_refused_by_a_typed_error(kind: str) -> None:
    with pytest.raises(ow.UnsupportedError, match="masked"):
        ow.concat([masked("csr"), getattr(sp, kind)(S)])


def test_moments_know_numpys_word() -> None:
    m = masked("csr")
    for name in ("var", "std"):
        want = getattr(np.ma, name)(np.ma.MaskedArray(D, ~M), ddof=1)
        np.testing.assert_allclose(float(getattr(ow, name)(m, ddof=1).to_masked_array()), want)
        np.testing.assert_allclose(float(getattr(np, name)(m, ddof=1).to_masked_array()), want)


def test_dlpack_of_a_sparse_tensor_is_a_buffer_error() -> None:
    with pytest.raises(BufferError, match="sparse tensor"):
        ow.asarray(D, format="csr").__dlpack__()
