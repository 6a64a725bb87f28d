"""Attributes of torch's tensors, values by blocks, and torch's constructors, beside those of torch's own tensors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

DENSE = torch.tensor([[1.0, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0], [4, 0, 0, 5]], dtype=torch.float64)
STACK = torch.stack([DENSE, DENSE.flip(0)])


def of_torch() -> dict[str, torch.Tensor]:
    """torch's tensors of every layout, batched and hybrid ones too."""
    hybrid = torch.stack([DENSE, 2 * DENSE], -1)
    return {
        "dense": DENSE,
        "coo": DENSE.to_sparse(),
        "hybrid coo": hybrid.to_sparse(2),
        "csr": DENSE.to_sparse_csr(),
        "csc": DENSE.to_sparse_csc(),
        "bsr": DENSE.to_sparse_bsr((2, 2)),
        "bsc": DENSE.to_sparse_bsc((2, 2)),
        "hybrid csr": hybrid.to_sparse_csr(dense_dim=1),
        "batched csr": STACK.to_sparse_csr(),
        "batched bsr": STACK.to_sparse_bsr((2, 2)),
    }


def test_attributes_are_those_of_torchs_tensors() -> None:
    for name, theirs in of_torch().items():
        t = ow.asarray(theirs)
        for attribute in ("layout", "is_sparse", "is_sparse_csr", "is_cuda", "is_cpu", "is_quantized", "is_meta"):
            assert getattr(t, attribute) == getattr(theirs, attribute), (name, attribute)
        assert t.nelement() == theirs.nelement(), name
        assert t.ndimension() == theirs.ndimension(), name
        assert t.element_size() == theirs.element_size(), name
        assert (t.is_pinned(), t.get_device()) == (False, -1), name
        assert t.data.requires_grad is False, name
        if name == "dense":
            assert (t.stride(), t.stride(-1)) == (theirs.stride(), 1)
            with pytest.raises(IndexError, match="stride: axis 9 is out of bounds"):
                t.stride(9)
            with pytest.raises(ow.DTypeError, match="stride: dim is an integer"):
                t.stride(0.5)
            continue
        assert t._nnz() == theirs._nnz(), name
        values = theirs._values() if theirs.is_sparse else theirs.values()
        assert t.block_values.shape == values.shape, name
        assert torch.equal(t.block_values, values), name
        assert t.block_values.data_ptr() == t.values.data_ptr(), name
        with pytest.raises(ow.UnsupportedError, match="strides"):
            t.stride()
    coo = of_torch()["hybrid coo"]
    assert torch.equal(ow.asarray(coo)._indices(), coo._indices())
    assert torch.equal(ow.asarray(coo)._values(), coo._values())
    assert (ow.asarray(coo)._dimI(), ow.asarray(coo)._dimV()) == (2, 1)


def test_blocks_that_lie_column_major_are_a_view() -> None:
    theirs = of_torch()["bsr"]
    blocks = theirs.values().transpose(1, 2).contiguous().transpose(1, 2)
    t = ow.sparse_bsr_tensor(theirs.crow_indices(), theirs.col_indices(), blocks, (4, 4))
    assert torch.equal(t.block_values, theirs.values())
    assert t.block_values.data_ptr() == blocks.data_ptr()


def test_formats_that_torch_has_not() -> None:
    for format in ("dcsr", "dia", "ell(2)"):
        t = ow.asarray(DENSE, format=format)
        assert t.layout is None
        assert (t.is_sparse, t.is_sparse_csr) == (False, False)
        assert t._nnz() == t.nse or format == "dia"
    assert (ow.asarray(DENSE, format="csr") + 1).layout is None  # unspecified elements are 1
    with pytest.raises(ow.UnsupportedError, match="block_values"):
        _ = ow.asarray(DENSE, format="dia").block_values
    empty = ow.asarray(torch.zeros(0, 4), format="csr")
    assert empty.block_values.shape == (0,)


def test_numpy_buffers_have_no_layout_of_torchs() -> None:
    t = ow.asarray(DENSE.numpy(), format="bsr(2, 2)")
    for name in ("layout", "is_sparse", "is_cuda", "data"):
        assert not hasattr(t, name)
        with pytest.raises(AttributeError, match="like=torch"):
            getattr(t, name)
    assert t.block_values.shape == (4, 2, 2)
    assert np.shares_memory(t.block_values, t.values)
    assert (t._nnz(), t.nse) == (4, 16)


def test_memory_that_is_not_there_is_refused() -> None:
    t = ow.asarray(DENSE, format="csr")
    if not torch.cuda.is_available():
        for refused in (t.cuda, lambda: t.cuda(0), t.pin_memory):
            with pytest.raises(ow.UnsupportedError):
                refused()
    assert t.cpu() is t


def test_compressed_tensors_by_layout() -> None:
    for name in ("csr", "csc", "bsr", "bsc", "batched csr"):
        theirs = of_torch()[name]
        outer, inner = ("crow_indices", "col_indices") if "sr" in name else ("ccol_indices", "row_indices")
        parts: tuple[Any, ...] = (getattr(theirs, outer)(), getattr(theirs, inner)(), theirs.values(), theirs.shape)
        kind = name.split()[-1]
        t = ow.sparse_compressed_tensor(*parts, layout=theirs.layout, requires_grad=True)
        assert t.layout == theirs.layout
        assert torch.equal(t.detach().to_dense(), theirs.to_dense())
        assert ow.sparse_compressed_tensor(*parts, layout=kind).format == t.format
        make = getattr(ow, f"sparse_{kind}_tensor")
        assert make(*parts, layout=theirs.layout, pin_memory=False).format == t.format
        with pytest.raises(ow.UnsupportedError, match="expected"):
            make(*parts, layout=torch.sparse_coo)
    with pytest.raises(ow.UnsupportedError, match="supported"):
        ow.sparse_compressed_tensor(*parts, layout=torch.strided)


def test_a_size_alone() -> None:
    for t in (ow.sparse_coo_tensor(size=(3, 4)), ow.sparse_coo_tensor((3, 4))):
        assert (t.shape, t.nse, t.dtype) == ((3, 4), 0, np.float64)
    t = ow.sparse_coo_tensor(size=(3, 4), dtype=torch.float32, layout=torch.sparse_coo, requires_grad=True)
    assert (t.dtype, t.layout, t.requires_grad) == (torch.float32, torch.sparse_coo, True)
    for wrong in (lambda: ow.sparse_coo_tensor(), lambda: ow.sparse_coo_tensor([[0], [1]], size=(2, 2))):
        with pytest.raises(ow.ShapeError, match="size alone"):
            wrong()
    with pytest.raises(ow.UnsupportedError, match="torch values"):
        ow.sparse_coo_tensor(size=(3, 4), pin_memory=True)


def test_shared_memory_is_a_copy() -> None:
    values = torch.tensor([1.0, 2.0])
    t = ow.sparse_coo_tensor(torch.tensor([[0, 1]]), values, (3,))
    assert t.share_memory_().is_shared()
    assert not values.is_shared()
    held = t.values
    assert t.share_memory_().values is held
    t.requires_grad = True
    assert t.requires_grad
    assert t.values.requires_grad


def test_copies_on_the_same_device_are_own() -> None:
    t = ow.asarray(DENSE.to_sparse_csr())
    for copy in (t.to("cpu", copy=True), t.to(torch.float32, copy=True), t.to(torch.float64, copy=True)):
        assert copy.values.data_ptr() != t.values.data_ptr()
        assert torch.equal(copy.to_dense().double(), DENSE)
    assert t.to("cpu") is t


def test_flags_pickle_as_what_they_are() -> None:
    for flag in (ow.asarray(DENSE.to_sparse()).is_sparse, ow.asarray(DENSE).is_sparse):
        got = pickle.loads(pickle.dumps(flag))
        assert got is bool(flag)


def test_a_product_kept_for_dense_operands_is_not_that_of_sparse_ones() -> None:
    t, x = ow.asarray(DENSE.to_sparse_csr()), torch.arange(8.0, dtype=torch.float64).reshape(4, 2)
    want = DENSE @ x
    for operand in (x, x, x.to_sparse(), x.to_sparse_csr(), x.mT.contiguous().mT):
        got = t @ operand
        assert torch.equal(got.to_dense() if isinstance(got, ow.Tensor) else got, want)


def test_functions_of_dense_matrices_are_torchs() -> None:
    t = ow.asarray(DENSE)
    assert torch.allclose(ow.linalg.expm(t).to_dense(), torch.linalg.matrix_exp(DENSE))
    diagonal = torch.diag(torch.arange(1.0, 9)).to_sparse_csr()
    values = ow.linalg.eigsh(ow.asarray(diagonal), k=2, return_eigenvectors=False)
    assert torch.allclose(values.sort().values, torch.tensor([7.0, 8.0]))
    whole = torch.tensor([[1, 0]])
    assert torch.allclose(
        ow.logaddexp(ow.asarray(whole), torch.tensor([[2, 3]])),
        torch.logaddexp(whole.float(), torch.tensor([[2.0, 3.0]])),
    )
