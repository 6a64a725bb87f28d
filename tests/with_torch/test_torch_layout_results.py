"""Results in torch's layouts: in-place transposes, sparse products, blocks in any order, buffers that are not copied."""

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, InvariantError, ReadOnlyError, ShapeError, UnsupportedError

torch = pytest.importorskip("torch")
D = torch.tensor([[1.0, 0, 3], [0, 0, 0], [0, 5, 0], [2, 0, 0]])


def test_in_place_forms_that_change_the_shape() -> None:
    S = ow.asarray(D.to_sparse_csr())
    values = S.values
    for name, arguments in (
        ("t_", ()),
        ("transpose_", (0, 1)),
        ("swapaxes_", (0, 1)),
        ("unsqueeze_", (0,)),
        ("squeeze_", (0,)),
    ):
        expected = getattr(S.to_dense().clone(), name)(*arguments)
        assert getattr(S, name)(*arguments) is S
        assert torch.equal(S.to_dense(), expected)
        assert S.values.data_ptr() == values.data_ptr()
    with pytest.raises(ShapeError):
        S.cumsum_(0).addmm_(D, D.T)


def test_sparse_products_have_the_layouts_of_torchs() -> None:
    a, y = D.to_sparse_coo(), torch.arange(6.0).reshape(3, 2)
    i = torch.eye(4, 2).to_sparse_coo()
    for format in ("coo", "csr", "bsr(2, 1)"):
        A = ow.asarray(D, format=format)
        for function, others in ((torch.smm, (y,)), (torch.hspmm, (y,))):
            x, expected = function(A, *others), function(a, *others)
            assert x.layout == expected.layout
            assert (x.sparse_dim, x.dense_dim) == (expected.sparse_dim(), expected.dense_dim())
            assert torch.equal(x.to_dense(), expected.to_dense())
            assert x._nnz() == expected._nnz() or format.startswith("bsr")
        x = torch.sspaddmm(ow.asarray(i), A, y, beta=2, alpha=0.5)
        assert x.layout == torch.sparse_coo
        assert torch.equal(x.to_dense(), torch.sspaddmm(i, a, y, beta=2, alpha=0.5).to_dense())
    leaf = ow.asarray(D, format="csr").requires_grad_()
    torch.smm(leaf, y).sum().backward()
    assert torch.equal(leaf.grad.to_dense(), (D != 0) * y.sum(1))


def test_column_major_blocks_with_dense_dimensions_are_not_copied() -> None:
    values = torch.arange(2 * 2 * 3 * 4.0).reshape(2, 3, 2, 4).transpose(1, 2)
    pos, crd = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    for make, layout in (
        (ow.sparse_bsr_tensor, torch.sparse_bsr_tensor),
        (ow.sparse_bsc_tensor, torch.sparse_bsc_tensor),
    ):
        t = make(pos, crd, values, (4, 6, 4))
        reference = layout(pos, crd, values.contiguous(), (4, 6, 4))
        assert t.values.data_ptr() == values.data_ptr()
        assert torch.equal(t.to_dense(), reference.to_dense())
        assert torch.equal(t.to_torch().values(), reference.values())
        assert torch.equal(t.block_values, reference.values())


def test_coordinates_in_arrays_of_their_own_are_not_copied() -> None:
    rows, columns, values = torch.tensor([1, 0]), torch.tensor([0, 1]), torch.tensor([3.0, 4.0])
    t = ow.sparse_coo_tensor((rows, columns), values)
    assert [t.crd(k).data_ptr() for k in (0, 1)] == [rows.data_ptr(), columns.data_ptr()]
    assert t.shape == (2, 2)
    assert t.to_dense().tolist() == [[0, 4], [3, 0]]
    with pytest.raises(
        InvariantError, match=r"(?s)indices have one length\n  expected: 2 of each; got: 2, 1\n.*\(invariant 3\.9\)$"
    ):
        ow.sparse_coo_tensor((rows, columns[:1]), values)
    with pytest.raises(InvariantError, match=r"3\.10"):
        ow.sparse_coo_tensor((rows, columns), values[:1])
    with pytest.raises(InvariantError, match=r"indices\[1\]"):
        ow.sparse_coo_tensor((rows, columns * 1.0), values)
    with pytest.raises(InvariantError, match=r"indices\[1, 1\] == 1(.|\n)*\(invariant 5\.5\)$"):
        ow.sparse_coo_tensor((rows, columns), values, (2, 1))


def test_dense_arrays_take_the_elements() -> None:
    S, N = ow.asarray(D, format="csr"), ow.asarray(D.numpy(), format="csr")
    for t in (S, N):
        for out in (torch.empty(4, 3, dtype=torch.float64), np.empty((4, 3)), np.empty((3, 4)).T):
            assert t.to_dense(out=out) is out
            assert np.array_equal(np.asarray(out), D.numpy())
    out = torch.zeros(4, 3)
    out[...] = S
    assert torch.equal(out, D)
    out.zero_().copy_(S)
    assert torch.equal(out, D)
    out[:, 1:] = S[:, :2]
    assert torch.equal(out[:, 1:], D[:, :2])
    frozen = np.zeros((4, 3))
    frozen.flags.writeable = False
    for bad, error in (
        (np.empty((3, 4)), ShapeError),
        (np.empty((4, 3), int), DTypeError),
        (frozen, ReadOnlyError),
        ([1], UnsupportedError),
    ):
        with pytest.raises(error, match="to_dense"):
            N.to_dense(out=bad)


def test_a_buffer_that_blocks_lack_is_looked_for_in_blocks() -> None:
    for format, name in (("bsr(2, 1)", "ccol_indices"), ("bsc(2, 1)", "crow_indices"), ("csr", "ccol_indices")):
        remedy = {"b": "bs" + ("c" if "ccol" in name else "r") + r"\(2, 1\)", "c": "csc"}[format[0]]
        with pytest.raises(UnsupportedError, match=rf'asformat\("{remedy}"\)'):
            getattr(ow.asarray(D, format=format), name)()
