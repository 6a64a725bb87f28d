"""Details of the docstrings of MaskedTensor's own methods, by name; loaded when one is read."""

from __future__ import annotations

from ..provided import provide

__all__ = ["TEXTS"]

TEXTS: dict[str, str] = {
    "asformat": """
Returns MaskedTensor, the same elements in that format. See also: Tensor.asformat, MaskedTensor.to_dense.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.asformat("csr").nse
3
""",
    "astype": """
dtype : NumPy's or torch's, or a name

Returns MaskedTensor, the same structure with values of that dtype. See also: MaskedTensor.to.

>>> m.astype("int64").to_numpy(-1)
array([ 1,  4, -1])
""",
    "backward": """
gradient : of the shape of the tensor; may be left out where there is one element
retain_graph : whether the graph stays for another call
create_graph : whether the gradients are on a graph themselves
inputs : tensors whose gradients are accumulated, all without

See also: Tensor.backward, MaskedTensor.requires_grad_.

>>> m = ow.masked_tensor(torch.tensor([1.0, 4.0, 9.0]), torch.tensor([True, True, False]), requires_grad=True)
>>> (m * m).sum().backward()
>>> m.grad.to_tensor(0)
tensor([2., 8., 0.])
""",
    "clone": """
Returns MaskedTensor over other buffers. See also: MaskedTensor.detach, copy.

>>> m.clone().values is m.values
False
""",
    "compact": """
Returns MaskedTensor, the same elements. See also: MaskedTensor.compressed, MaskedTensor.asformat.

>>> m.to_sparse_coo().compact().nse
2
""",
    "compressed": """
Returns array of rank 1. See also: MaskedTensor.filled, MaskedTensor.unique.

>>> m.compressed()
array([1., 4.])
""",
    "count": """
axis : the axis or axes; all of them if left out
dim : torch's name of `axis`
keepdims : whether the axes stay, with extent 1

Returns MaskedTensor of int64, nowhere missing. See also: count_nonzero, MaskedTensor.compressed.

>>> m.count().item()
2
""",
    "data": """
Returns Tensor over the same values. See also: MaskedTensor.mask, MaskedTensor.get_data.

>>> m.data().to_numpy()
array([1., 4., 9.])
""",
    "get_data": """
Returns Tensor over the same values. See also: MaskedTensor.get_mask, MaskedTensor.filled.

>>> m.get_data().to_numpy()
array([1., 4., 9.])
""",
    "mask": """
Returns Tensor of bool. See also: MaskedTensor.data, MaskedTensor.get_mask.

>>> m.mask().to_numpy()
array([ True,  True, False])
""",
    "get_mask": """
Returns Tensor of bool. See also: MaskedTensor.get_data.

>>> m.get_mask().to_numpy()
array([ True,  True, False])
""",
    "detach": """
Returns MaskedTensor over the same buffers. See also: MaskedTensor.clone, MaskedTensor.requires_grad_.

>>> m = ow.masked_tensor(torch.tensor([1.0, 4.0, 9.0]), torch.tensor([True, True, False]), requires_grad=True)
>>> m.detach().requires_grad
False
""",
    "dim": """
Returns int, as `ndim`. See also: MaskedTensor.ndim.

>>> m.dim()
1
""",
    "ndimension": """
Returns int, as `ndim`. See also: MaskedTensor.ndim.

>>> m.ndimension()
1
""",
    "nelement": """
Returns int, as `size`. See also: MaskedTensor.size, MaskedTensor.count.

>>> m.nelement()
3
""",
    "numel": """
Returns int, as `size`. See also: MaskedTensor.size, MaskedTensor.count.

>>> m.numel()
3
""",
    "expand": """
sizes : a sequence, or the extents one by one

Returns MaskedTensor of that shape. See also: broadcast_to.

>>> m.expand(2, -1).shape
(2, 3)
""",
    "filled": """
value : a number

Returns Tensor, nothing missing. See also: MaskedTensor.to_numpy, MaskedTensor.get_data.

>>> m.filled(-1).to_numpy()
array([ 1.,  4., -1.])
""",
    "flatten": """
start_dim : the first dimension
end_dim : the last dimension

Returns MaskedTensor of fewer dimensions. See also: MaskedTensor.reshape.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.flatten().shape
(4,)
""",
    "gather": """
axis : the axis, counted from the end where negative
indices : integers, of the rank of the tensor
dim : torch's name of `axis`
index : torch's name of `indices`

Returns MaskedTensor of the shape of `indices`. See also: take_along_axis, take.

>>> m.gather(0, np.array([1, 1])).to_numpy(-1)
array([4., 4.])
""",
    "is_sparse_coo": """
Returns bool, whether they are. See also: MaskedTensor.layout.

>>> m.is_sparse_coo()
False
""",
    "is_sparse_csc": """
Returns bool, whether they are. See also: MaskedTensor.layout.

>>> m.is_sparse_csc()
False
""",
    "is_sparse_csr": """
Returns bool, whether they are. See also: MaskedTensor.layout.

>>> m.is_sparse_csr()
False
""",
    "item": """
Returns a number of Python. See also: MaskedTensor.to_numpy.

>>> m.sum().item()
5.0
""",
    "map": """
function : takes an array of values and gives one of the same length

Returns MaskedTensor in the structure of this one. See also: masked.lift.

>>> m.map(np.sqrt).to_numpy(-1)
array([ 1.,  2., -1.])
""",
    "mask_nan": """
Returns MaskedTensor in the structure of this one. See also: isnan, nan_to_num.

>>> ow.masked_tensor(np.array([1.0, np.nan]), np.array([True, True])).mask_nan().count().item()
1
""",
    "nonzero": """
Returns tuple of arrays of int64, one for each dimension. See also: nonzero, MaskedTensor.compressed.

>>> m.nonzero()
(array([0, 1]),)
""",
    "norm": """
ord : the order, a number, inf or -inf
axis : the axis or axes; all of them if left out
keepdims : whether the axes stay, with extent 1
p : torch's name of `ord`
dim : torch's name of `axis`
keepdim : torch's name of `keepdims`
dtype : of the result

Returns MaskedTensor, real, missing where no specified element takes part. See also: linalg.vector_norm, masked.norm.

>>> round(m.norm().item(), 3)
4.123
""",
    "permute": """
axes : every dimension once, in the order of the result
dims : the same, by name

Returns MaskedTensor, the same elements. See also: permute_dims, MaskedTensor.transpose.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.permute(1, 0).to_numpy(-1)
array([[ 1., -1.],
       [ 4.,  2.]])
""",
    "requires_grad_": """
requires_grad : False for no longer

Returns MaskedTensor, this one. See also: MaskedTensor.backward, MaskedTensor.detach.

>>> m = ow.masked_tensor(torch.tensor([1.0, 4.0, 9.0]), torch.tensor([True, True, False]))
>>> m.requires_grad_().requires_grad
True
""",
    "reshape": """
extents : a sequence, or the extents one by one; one may be -1
shape : the extents, by name

Returns MaskedTensor of the new shape. See also: MaskedTensor.flatten.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.reshape(4).to_numpy(-1)
array([ 1.,  4., -1.,  2.])
""",
    "split": """
sizes : the extent of each part along the axis, or the extents one by one
axis : the axis
dim : torch's name of `axis`

Returns tuple of masked tensors. See also: masked.concat, unstack.

>>> [part.shape for part in m.split(2)]
[(2,), (1,)]
""",
    "to": """
device : a device, or a dtype
dtype : of the result

Returns MaskedTensor, itself where nothing changes. See also: MaskedTensor.astype.

>>> m.to(dtype="float32").dtype
dtype('float32')
""",
    "to_dense": """
Returns MaskedTensor in the bitmap format. See also: MaskedTensor.to_sparse, MaskedTensor.filled.

>>> m.to_sparse_coo().to_dense().to_numpy(-1)
array([ 1.,  4., -1.])
""",
    "to_masked_array": """
Returns numpy.ma.MaskedArray with the same mask, inverted as there. See also: masked_tensor, MaskedTensor.to_numpy.

>>> m.to_masked_array().sum()
np.float64(5.0)
""",
    "to_numpy": """
value : a number

Returns array of NumPy, nothing missing. See also: MaskedTensor.filled, MaskedTensor.to_masked_array.

>>> m.to_numpy(np.nan)
array([ 1.,  4., nan])
""",
    "to_tensor": """
value : a number

Returns array of NumPy, or torch.Tensor over torch's buffers. See also: MaskedTensor.filled, MaskedTensor.to_numpy.

>>> m.to_tensor(0)
array([1., 4., 0.])
""",
    "to_torch_masked": """
Returns torch.masked.MaskedTensor over the same buffers where torch has the layout. See also: masked_tensor.

>>> type(ow.masked_tensor(torch.ones(2), torch.tensor([True, False])).to_torch_masked()).__name__
'MaskedTensor'
""",
    "to_sparse": """
layout : torch's layout or its name, "csr"; COO without
blocksize : rows and columns of a block, of "bsr"

Returns MaskedTensor, the same elements in that layout. See also: MaskedTensor.asformat, MaskedTensor.to_dense.

>>> m.to_sparse().nse
2
""",
    "to_sparse_bsr": """
blocksize : rows and columns of a block

Returns MaskedTensor, the same elements in BSR. See also: MaskedTensor.to_sparse.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.to_sparse_bsr((1, 2)).nse
3
""",
    "to_sparse_coo": """
Returns MaskedTensor, the same elements in COO. See also: MaskedTensor.to_sparse.

>>> m.to_sparse_coo().is_sparse_coo()
True
""",
    "to_sparse_csc": """
Returns MaskedTensor, the same elements in CSC. See also: MaskedTensor.to_sparse.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.to_sparse_csc().is_sparse_csc()
True
""",
    "to_sparse_csr": """
Returns MaskedTensor, the same elements in CSR. See also: MaskedTensor.to_sparse.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.to_sparse_csr().is_sparse_csr()
True
""",
    "transpose": """
axes : every dimension once, or two to exchange
dim0 : torch's name of the first of two
dim1 : torch's name of the second of two

Returns MaskedTensor, the same elements. See also: permute_dims, MaskedTensor.permute.

>>> m = ow.masked_tensor(np.array([[1.0, 4.0], [9.0, 2.0]]), np.array([[True, True], [False, True]]))
>>> m.transpose().to_numpy(-1)
array([[ 1., -1.],
       [ 4.,  2.]])
""",
    "unique": """
Returns MaskedTensor of rank 1. See also: unique_values, MaskedTensor.compressed.

>>> m.unique().to_numpy(-1)
array([ 1.,  4., -1.])
""",
    "where": """
condition : bool, an array or masked tensor
other : a number, array or masked tensor

Returns MaskedTensor of the same format. See also: where, masked.select.

>>> m.where(m.data() > 2, 0).to_numpy(-1)
array([ 0.,  4., -1.])
""",
}

provide("masked method texts", TEXTS)
