"""Matrices of a kind that was taken over before are checked by one kernel, each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import InvariantError
from openwork.runtime.check import check_plan

X = (np.arange(48).reshape(6, 8) % 5 == 0) * np.arange(1.0, 49).reshape(6, 8)


def often(make: Any) -> Any:
    """The last of as many Tensors as it takes until checks are prepared."""
    for _ in range(20):
        t = ow.asarray(make())
    return t


def test_scipys_matrices_again() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    for make in (scipy.csr_array, scipy.csc_array, scipy.csr_matrix):
        for dtype in ("f8", "f4", "i8"):
            s = make(X.astype(dtype))
            a = often(lambda: s)  # noqa: B023
            assert a.dtype == dtype
            assert str(a.format) == str(ow.format(s.format))
            np.testing.assert_array_equal(a.to_numpy(), X)
            assert np.shares_memory(a.values, s.data)
            for wide in ("i8", "i4"):
                t = s.copy()
                t.indices, t.indptr = t.indices.astype(wide), t.indptr.astype(wide)
                np.testing.assert_array_equal(ow.asarray(t).to_numpy(), X)
            t = s.copy()
            t.indices = t.indices.astype(">i4")
            np.testing.assert_array_equal(ow.asarray(t).to_numpy(), X)
            t = s.copy()
            t.indices[:2] = t.indices[:2][::-1].copy()
            t.data[:2] = t.data[:2][::-1].copy()
            assert not ow.asarray(t).format.is_ordered
            np.testing.assert_array_equal(ow.asarray(t).to_numpy(), X)
            t.indices[1] = t.indices[0]
            assert not ow.asarray(t).format.is_unique
            t.indices[1] = 99
            with pytest.raises(InvariantError):
                ow.asarray(t)
            t = s.copy()
            t.data = np.append(t.data, t.data[:3])
            t.indices = np.append(t.indices, t.indices[:3])
            np.testing.assert_array_equal(ow.asarray(t).to_numpy(), X)
            t = s.copy()
            t.data.flags.writeable = False
            assert not ow.asarray(t).values.flags.writeable
            assert ow.asarray(s, copy=True).values is not s.data
            assert ow.asarray(s, dtype="c16").dtype == np.complex128
    block = scipy.bsr_array(X, blocksize=(1, 1))
    assert str(often(lambda: block).format) != str(ow.format("csr"))


def test_torchs_tensors_again() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X)
    for make in (lambda v: v.to_sparse_csr(), lambda v: v.to_sparse_coo().coalesce()):
        for dtype in (torch.float64, torch.float32, torch.int64):
            m = make(x.to(dtype))
            a = often(lambda: m)  # noqa: B023
            assert check_plan(a._storage) is not None
            assert a.dtype == dtype
            assert torch.equal(a.to_dense(), x.to(dtype))
            assert a.values.data_ptr() == (m._values() if m.layout is torch.sparse_coo else m.values()).data_ptr()
            if dtype.is_floating_point:
                w = m.clone().requires_grad_()
                assert ow.asarray(w).requires_grad
                batch = torch.func.vmap(lambda v: ow.asarray(m).to_dense() * v)(torch.ones(2, dtype=dtype))  # noqa: B023
                assert torch.equal(batch[1], x.to(dtype))
        indices = (lambda t: t.indices()[1]) if m.layout is torch.sparse_coo else (lambda t: t.col_indices())
        a = ow.asarray(m)
        column = int(indices(m)[0])
        indices(m)[0] += 90  # who writes to indices is seen, by a Tensor that is there and by the next one
        for refused in (lambda: a.to_dense(), lambda: ow.asarray(m)):  # noqa: B023
            with pytest.raises(InvariantError):
                refused()
        indices(m)[0] = column
        assert torch.equal(ow.asarray(m).to_dense(), x)
        b = ow.asarray(m)
        b.crd(1)[0] += 90
        with pytest.raises(InvariantError):
            b @ torch.ones(8, dtype=torch.float64)
        indices(m)[0] = column
    for make in (lambda v: v.to_sparse_csr(), lambda v: v.to_sparse_coo().coalesce()):  # others of a kind that is kept
        m = make(x)
        often(lambda: m)  # noqa: B023
        twice = torch.stack([_values(m), _values(m)], 1)[:, 0]  # every other number of memory
        if m.layout is torch.sparse_csr:
            pos, crd = m.crow_indices(), m.col_indices()
            others = [
                torch.sparse_csr_tensor(pos, crd, twice, m.shape),
                torch.sparse_csr_tensor(pos.int(), crd.int(), _values(m), m.shape),
            ]
            others += [
                torch.sparse_csr_tensor(
                    torch.stack([pos, pos], 1)[:, 0], torch.stack([crd, crd], 1)[:, 0], _values(m), m.shape
                )
            ]
        else:
            others = [
                torch.sparse_coo_tensor(m.indices().t().contiguous().t(), v, m.shape, is_coalesced=True)
                for v in (twice, _values(m))
            ]
        for other in others:
            assert torch.equal(ow.asarray(other).to_dense(), x)
        with torch.inference_mode():
            assert torch.equal(ow.asarray(m).to_dense(), x)
            assert torch.equal(ow.asarray(make(x)).to_dense(), x)
    c = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.ones(3), (6, 8), check_invariants=True)
    assert not often(lambda: c).format.is_unique
    false = torch.sparse_coo_tensor(torch.tensor([[1, 0], [0, 1]]), torch.ones(2), (6, 8), is_coalesced=True)
    assert torch.equal(often(lambda: false).to_dense(), false.to_dense())
    a = often(lambda: x.to_sparse_csr())
    a.values.untyped_storage().resize_(0)
    with pytest.raises(InvariantError):
        a.to_dense()


def test_changes_before_a_tensor_is_used_are_noticed() -> None:
    """Records of torch's buffers begin at the first question; what they are compared with is of when they were checked."""
    torch = pytest.importorskip("torch")
    changes = {
        "indices": lambda t: _indices(t)[-1].fill_(2),
        "resized": lambda t: _values(t).untyped_storage().resize_(8),
        "gone": lambda t: _indices(t)[0].untyped_storage().resize_(0),
    }
    for layout in (torch.sparse_csr, torch.sparse_coo):
        t = _of(torch, layout)
        often(lambda: t)  # noqa: B023
        for name, change in changes.items():
            t = _of(torch, layout)
            a = ow.asarray(t)
            assert check_plan(a._storage) is not None
            change(t)
            with pytest.raises(InvariantError, match=r"changed after|was resized"):
                a.to_dense()
            b = ow.asarray(_of(torch, layout))
            for _ in range(5):
                np.testing.assert_array_equal(b.to_numpy(), X, err_msg=name)
        a = ow.asarray(_of(torch, layout))
        a.values.data = a.values[:2].clone()
        with pytest.raises(InvariantError):
            a.to_dense()


def _of(torch: Any, layout: Any) -> Any:
    return torch.from_numpy(X.copy()).to_sparse(layout=layout)


def _indices(t: Any) -> list[Any]:
    return list(t.indices()) if str(t.layout) == "torch.sparse_coo" else [t.crow_indices(), t.col_indices()]


def _values(t: Any) -> Any:
    return t.values()
