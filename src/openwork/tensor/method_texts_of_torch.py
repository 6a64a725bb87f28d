"""As `method_texts`, of the methods by torch's names."""

from __future__ import annotations

__all__ = ["TEXTS"]

TEXTS: dict[str, str] = {
    "add_": """
other : what is added, of a shape that broadcasts
alpha : its factor

Returns Tensor, this one. See also: Tensor.add, Tensor.sub_.

>>> A.add_(A, alpha=2).to_numpy()
array([[0., 6.],
       [3., 0.]])
""",
    "cpu": """
Returns Tensor, itself where it is there. See also: Tensor.cuda, Tensor.to.

>>> A.cpu().device
'cpu'
""",
    "dim": """
Returns int, as `ndim`. See also: Tensor.ndim.

>>> A.dim()
2
""",
    "div_": """
other : the divisor, of a shape that broadcasts

Returns Tensor, this one. See also: Tensor.divide, Tensor.mul_.

>>> A.div_(2).values
array([1. , 0.5])
""",
    "index_select": """
index : a vector of coordinates

Returns Tensor with as many coordinates along `dim` as `index` has. See also: Tensor.take, Tensor.select.

>>> A.index_select(0, [1, 1]).to_numpy()
array([[1., 0.],
       [1., 0.]])
""",
    "mul_": """
other : the factor, of a shape that broadcasts

Returns Tensor, this one. See also: Tensor.multiply, Tensor.div_.

>>> A.mul_(2).values
array([4., 2.])
""",
    "narrow": """
start : the first coordinate
length : how many

Returns Tensor with extent `length` along `dim`. See also: Tensor.select, Tensor.index_select.

>>> A.narrow(1, 1, 1).to_numpy()
array([[2.],
       [0.]])
""",
    "numel": """
Returns int, as `size`. See also: Tensor.size, Tensor.nse.

>>> A.numel()
4
""",
    "select": """
index : the coordinate

Returns Tensor without that dimension. See also: Tensor.narrow, Tensor.index_select.

>>> A.select(0, 1).to_numpy()
array([1., 0.])
""",
    "sparse_resize_": """
size : the new extents
sparse_dim : how many dimensions are sparse
dense_dim : how many dimensions at the end are dense

Returns Tensor, this one. See also: Tensor.resize, Tensor.reshape.

>>> B = A.asformat("coo")
>>> B.sparse_resize_((3, 2), 2, 0).shape
(3, 2)
""",
    "sub_": """
other : what is subtracted, of a shape that broadcasts
alpha : its factor

Returns Tensor, this one. See also: Tensor.subtract, Tensor.add_.

>>> A.sub_(A, alpha=3).values
array([-4., -2.])
""",
    "t": """
Returns Tensor of the extents in reverse order. See also: Tensor.T, Tensor.transpose.

>>> A.t().to_numpy()
array([[0., 1.],
       [2., 0.]])
""",
    "to_sparse": """
Returns Tensor, the same elements in the format of the layout. See also: Tensor.asformat, Tensor.to_sparse_csr.

>>> A.to_sparse(layout="csc").format.name
'csc'
""",
    "to_sparse_bsc": """
blocksize : rows and columns of a block
dense_dim : dimensions at the end that are stored dense

Returns Tensor, the same elements in BSC. See also: Tensor.asformat, Tensor.to_sparse.

>>> A.to_sparse_bsc((2, 1)).format.name
'bsc(2, 1)'
""",
    "to_sparse_bsr": """
blocksize : rows and columns of a block
dense_dim : dimensions at the end that are stored dense

Returns Tensor, the same elements in BSR. See also: Tensor.asformat, Tensor.to_sparse.

>>> A.to_sparse_bsr((2, 1)).format.name
'bsr(2, 1)'
""",
    "to_sparse_coo": """
Returns Tensor, the same elements in COO. See also: Tensor.asformat, Tensor.coalesce.

>>> A.to_sparse_coo().format.name
'coo'
""",
    "to_sparse_csc": """
dense_dim : dimensions at the end that are stored dense

Returns Tensor, the same elements in CSC. See also: Tensor.asformat, Tensor.to_sparse.

>>> A.to_sparse_csc().format.name
'csc'
""",
    "to_sparse_csr": """
dense_dim : dimensions at the end that are stored dense

Returns Tensor, the same elements in CSR. See also: Tensor.asformat, Tensor.to_sparse.

>>> A.to_sparse_csr().format.name
'csr'
""",
    "tolist": """
Returns list of lists, a number for rank 0. See also: Tensor.to_numpy, Tensor.item.

>>> A.tolist()
[[0.0, 2.0], [1.0, 0.0]]
""",
    "transpose_": """
dim0 : the first dimension
dim1 : the second dimension

Returns Tensor, this one. See also: Tensor.transpose.

>>> B = A.asformat("csr", copy=True)
>>> B.transpose_(0, 1).to_numpy()
array([[0., 1.],
       [2., 0.]])
""",
    "type_as": """
other : the tensor or array that has the dtype

Returns Tensor of that dtype. See also: Tensor.astype, Tensor.to.

>>> A.type_as(ow.ones(1, dtype="float32")).dtype
dtype('float32')
""",
    "backward": """
retain_graph : whether the graph stays for another call
create_graph : whether the gradients are on a graph themselves

See also: Tensor.grad, Tensor.requires_grad_, Tensor.detach.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr").requires_grad_()
>>> (A * A).sum().backward()
>>> A.grad.values
tensor([4., 2.])
""",
    "detach": """
Returns Tensor over the same buffers. See also: Tensor.detach_, Tensor.clone.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr").requires_grad_()
>>> A.detach().requires_grad
False
""",
    "detach_": """
Returns Tensor, this one. See also: Tensor.detach.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr").requires_grad_()
>>> B = A * 2
>>> B.detach_().requires_grad
False
""",
    "is_shared": """
Returns bool, False over NumPy buffers. See also: Tensor.share_memory_.

>>> A.is_shared()
False
""",
    "register_hook": """
See also: Tensor.register_post_accumulate_grad_hook, Tensor.backward.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr").requires_grad_()
>>> handle = A.register_hook(lambda grad: grad * 10)
>>> A.sum().backward()
>>> A.grad.values
tensor([10., 10.])
""",
    "register_post_accumulate_grad_hook": """
hook : takes the tensor

Returns object, the handle that removes it. See also: Tensor.register_hook.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr").requires_grad_()
>>> seen = []
>>> handle = A.register_post_accumulate_grad_hook(seen.append)
>>> A.sum().backward()
>>> len(seen)
1
""",
    "requires_grad_": """
requires_grad : False for no longer

Returns Tensor, this one. Raises UnsupportedError for NumPy buffers. See also: Tensor.backward, Tensor.detach.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.requires_grad_().requires_grad
True
""",
    "retain_grad": """
See also: Tensor.retains_grad, Tensor.grad.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr").requires_grad_()
>>> B = A * 2
>>> B.retain_grad()
>>> B.sum().backward()
>>> B.grad.values
tensor([1., 1.])
""",
    "share_memory_": """
Returns Tensor, this one. See also: Tensor.is_shared.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.share_memory_().is_shared()
True
""",
    "ccol_indices": """
Returns array, the level's buffer without a copy. See also: Tensor.row_indices, Tensor.pos.

>>> A.asformat("csc").ccol_indices()
array([0, 1, 2], dtype=int32)
""",
    "col_indices": """
Returns array, the level's buffer without a copy. See also: Tensor.crow_indices, Tensor.crd.

>>> A.col_indices()
array([1, 0], dtype=int32)
""",
    "crow_indices": """
Returns array, the level's buffer without a copy. See also: Tensor.col_indices, Tensor.pos.

>>> A.crow_indices()
array([0, 1, 2], dtype=int32)
""",
    "row_indices": """
Returns array, the level's buffer without a copy. See also: Tensor.ccol_indices, Tensor.crd.

>>> A.asformat("csc").row_indices()
array([1, 0], dtype=int32)
""",
    "cuda": """
device : which GPU; the current one if left out
non_blocking : whether the copy may run beside the host

Returns Tensor over torch buffers of the GPU.
Raises UnsupportedError where there is no GPU.
See also: Tensor.cpu, Tensor.to.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.cuda().device  # doctest: +SKIP
'cuda:0'
""",
    "element_size": """
Returns int, as `itemsize`. See also: Tensor.nbytes, Tensor.itemsize.

>>> A.element_size()
8
""",
    "get_device": """
Returns int, -1 for the host. Raises AttributeError over NumPy buffers. See also: Tensor.device.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.get_device()
-1
""",
    "indices": """
Returns array of integers, without a copy where the coordinates lie so. See also: Tensor.crd, nonzero, find.

>>> A.asformat("coo").indices()
array([[0, 1],
       [1, 0]], dtype=int32)
""",
    "is_conj": """
Returns bool, always False. Raises AttributeError over NumPy buffers. See also: Tensor.conj.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.is_conj()
False
""",
    "is_inference": """
Returns bool. Raises AttributeError over NumPy buffers. See also: Tensor.detach.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.is_inference()
False
""",
    "is_neg": """
Returns bool, always False. Raises AttributeError over NumPy buffers. See also: Tensor.negative.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.is_neg()
False
""",
    "is_pinned": """
Returns bool. Raises AttributeError over NumPy buffers. See also: Tensor.pin_memory.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.is_pinned()
False
""",
    "is_signed": """
Returns bool, False for bool and unsigned integers. Raises AttributeError over NumPy buffers.
See also: Tensor.dtype, isdtype.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.is_signed()
True
""",
    "ndimension": """
Returns int, as `ndim`. See also: Tensor.ndim.

>>> A.ndimension()
2
""",
    "nelement": """
Returns int, as `size`. See also: Tensor.size.

>>> A.nelement()
4
""",
    "pin_memory": """
Returns Tensor over torch buffers. See also: Tensor.is_pinned, Tensor.cuda.

>>> A = ow.asarray(torch.tensor([[0, 2.0], [1.0, 0]]), format="csr")
>>> A.pin_memory().is_pinned()  # doctest: +SKIP
True
""",
    "stride": """
dim : the dimension; all of them if left out

Returns tuple of int, or an int for one dimension. See also: Tensor.layout.

>>> A.asformat("dense").stride()
(2, 1)
""",
}
