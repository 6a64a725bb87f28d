"""Details of the docstrings of Tensor's own methods, by name; loaded when one is read.

Parameters, results, what to see, and an example; `A` is `ow.asarray([[0, 2.0], [1.0, 0]], format="csr")` in those that
make none.
"""

from __future__ import annotations

from ..provided import provide
from .method_texts_of_torch import TEXTS as OF_TORCH

__all__ = ["TEXTS"]

TEXTS: dict[str, str] = {
    "asformat": """
See also: format, advise, Tensor.coalesce.

>>> A.asformat("coo").format.name
'coo'
""",
    "astype": """
dtype : NumPy's or torch's, or a name

Returns Tensor, the same structure with values of that dtype. See also: Tensor.to, result_type.

>>> A.astype("int64").values
array([2, 1])
""",
    "check": """
Returns Tensor, this one. Raises InvariantError where they break an invariant. Cost: O(nse). See also: assemble.

>>> A.check() is A
True
""",
    "clone": """
Returns Tensor over other buffers. See also: Tensor.copy, Tensor.detach.

>>> B = A.clone()
>>> B.values is A.values
False
""",
    "coalesce": """
Returns Tensor in COO, itself where it is coalesced. See also: Tensor.is_coalesced, Tensor.sum_duplicates.

>>> ow.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).coalesce().values
array([3.])
""",
    "copy_": """
other : a tensor or array of the same shape

Returns Tensor, this one. See also: Tensor.clone, Tensor.asformat.

>>> B = ow.zeros((2, 2), format="csr")
>>> B.copy_(A).nse
2
""",
    "crd": """
level : the number of the level, 0 for the outermost

Returns array of integers, which is not to be written to, or None. See also: Tensor.pos, Tensor.values.

>>> A.crd(1)
array([1, 0], dtype=int32)
""",
    "pos": """
level : the number of the level, 0 for the outermost

Returns array of integers, which is not to be written to, or None. See also: Tensor.crd, Tensor.values.

>>> A.pos(1)
array([0, 1, 2], dtype=int32)
""",
    "is_coalesced": """
Returns bool, which follows from the format alone. See also: Tensor.coalesce.

>>> A.is_coalesced()
True
""",
    "to": """
device : a device, a dtype, or a tensor or array that has both
dtype : of the result
non_blocking : whether a copy to a GPU may run beside the host
copy : whether buffers are copied in any case
memory_format : torch's, which means nothing here

Returns Tensor, itself where nothing changes and `copy` is False. See also: Tensor.astype, Tensor.to_torch.

>>> A.to("cpu").device, A.to(dtype="float32").dtype
('cpu', dtype('float32'))
""",
    "to_device": """
device : "cpu", or a device of torch
stream : None; no library here has another

Returns Tensor, itself where it is there. See also: Tensor.to.

>>> A.to_device("cpu").device
'cpu'
""",
    "transpose": """
Returns Tensor of the same elements. See also: permute_dims, Tensor.T, swapaxes.

>>> A.transpose().to_numpy()
array([[0., 1.],
       [2., 0.]])
""",
    "zero_": """
Returns Tensor, this one. See also: Tensor.mul_, zeros_like.

>>> B = A.clone()
>>> B.zero_().values
array([0., 0.])
""",
    "item": """
Returns a number of Python. See also: Tensor.tolist, Tensor.to_numpy.

>>> A.item(0, 1), A.sum().item()
(2.0, 3.0)
""",
    "to_arrow": """
Returns pyarrow.SparseCOOTensor, or the tensor of Arrow that has the format. See also: asarray, Tensor.to_scipy.

>>> A.to_arrow().shape  # doctest: +SKIP
(2, 2)
""",
    "to_dense": """
out : an array of the shape and dtype of the tensor, of its library

Returns array with all elements. See also: Tensor.to_numpy, Tensor.asformat.

>>> A.to_dense()
array([[0., 2.],
       [1., 0.]])
""",
    "to_networkx": """
create_using : the type of the graph

Returns networkx.DiGraph, or a graph of the type `create_using`. See also: asarray.

>>> sorted(A.to_networkx().edges)
[(0, 1), (1, 0)]
""",
    "to_numpy": """
Returns array of NumPy with all elements. See also: Tensor.to_dense, Tensor.to_scipy, Tensor.to_torch.

>>> A.to_numpy()
array([[0., 2.],
       [1., 0.]])
""",
    "toarray": """
Returns array of NumPy with all elements. See also: Tensor.to_numpy.

>>> A.toarray()
array([[0., 2.],
       [1., 0.]])
""",
    "todense": """
Returns array of NumPy with all elements. See also: Tensor.to_numpy.

>>> A.todense()
array([[0., 2.],
       [1., 0.]])
""",
    "to_pandas": """
index : labels of the rows
columns : labels of the columns

Returns pandas.DataFrame or pandas.Series, the latter of a vector. See also: to_triplets, asarray.

>>> A.to_pandas(columns=["a", "b"]).shape
(2, 2)
""",
    "to_scipy": """
format : SciPy's name of a format, "csr"; by default that of the tensor where SciPy has it

Returns scipy.sparse array over the same buffers where SciPy has the format.
See also: Tensor.tocsr, to_sklearn, asarray.

>>> A.to_scipy().format
'csr'
""",
    "to_torch": """
layout : torch's layout or its name; by default that of the format

Returns torch.Tensor over the same memory where torch has the layout. See also: Tensor.to, Tensor.to_numpy, asarray.

>>> A.to_torch().layout
torch.sparse_csr
""",
    "eliminate_zeros": """
See also: prune, Tensor.sum_duplicates.

>>> A.values[0] = 0
>>> A.eliminate_zeros()
>>> A.nse
1
""",
    "getnnz": """
axis : the axis over which elements are counted; all elements if left out

Returns int, or a dense Tensor of int64 over an axis. See also: Tensor.nse, count_nonzero.

>>> A.getnnz(), A.getnnz(axis=0).to_numpy()
(2, array([1, 1]))
""",
    "matmat": """
x : a matrix of shape (n, k)

Returns array of the library of `x`, shape (m, k). See also: matmul, Tensor.matvec.

>>> A.matmat(np.eye(2))
array([[0., 2.],
       [1., 0.]])
""",
    "matvec": """
x : a vector

Returns array of the library and rank of `x`. See also: matmul, Tensor.rmatvec.

>>> A.matvec(np.array([1.0, 10.0]))
array([20.,  1.])
""",
    "power": """
n : the exponent, a number that is not 0
dtype : of the powers; that of the tensor if left out

Returns Tensor in the structure of this one. See also: pow, linalg.matrix_power.

>>> A.power(2).values
array([4., 1.])
""",
    "reshape": """
extents : a sequence, or the extents one by one; one may be -1
order : "C" for row-major order of the elements, "F" for column-major
shape : the extents, by name

Returns Tensor of the new shape. See also: reshape, Tensor.resize.

>>> A.reshape(4).to_numpy()
array([0., 2., 1., 0.])
""",
    "resize": """
shape : a sequence, or the extents one by one

See also: Tensor.reshape, pad.

>>> A.resize(3, 1)
>>> A.to_numpy()
array([[0.],
       [1.],
       [0.]])
""",
    "rmatmat": """
x : a matrix of shape (m, k)

Returns array of the library of `x`, shape (n, k). See also: matmul, Tensor.rmatvec.

>>> A.rmatmat(np.eye(2))
array([[0., 1.],
       [2., 0.]])
""",
    "rmatvec": """
x : a vector

Returns array of the library and rank of `x`. See also: matmul, Tensor.matvec.

>>> A.rmatvec(np.array([1.0, 10.0]))
array([10.,  2.])
""",
    "setdiag": """
values : a number, or a vector

See also: diagonal, diags_array.

>>> A.setdiag(7.0)
>>> A.to_numpy()
array([[7., 2.],
       [1., 7.]])
""",
    "sort_indices": """
See also: Tensor.sum_duplicates, Tensor.coalesce.

>>> A.sort_indices()
>>> A.is_coalesced()
True
""",
    "sum_duplicates": """
See also: Tensor.coalesce, Tensor.sort_indices.

>>> B = ow.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
>>> B.sum_duplicates()
>>> B.values
array([3.])
""",
    "tobsr": """
blocksize : rows and columns of a block; (1, 1) for formats without blocks if left out
copy : whether the buffers are copied in any case

Returns scipy.sparse.bsr_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> A.tobsr((2, 1)).blocksize
(2, 1)
""",
    "tocoo": """
copy : whether the buffers are copied in any case

Returns scipy.sparse.coo_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> type(A.tocoo()).__name__
'coo_array'
""",
    "tocsc": """
copy : whether the buffers are copied in any case

Returns scipy.sparse.csc_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> type(A.tocsc()).__name__
'csc_array'
""",
    "tocsr": """
copy : whether the buffers are copied in any case

Returns scipy.sparse.csr_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> type(A.tocsr()).__name__
'csr_array'
""",
    "todia": """
copy : whether the buffers are copied in any case

Returns scipy.sparse.dia_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> type(A.todia()).__name__
'dia_array'
""",
    "todok": """
copy : whether the buffers are copied in any case

Returns scipy.sparse.dok_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> type(A.todok()).__name__
'dok_array'
""",
    "tolil": """
copy : whether the buffers are copied in any case

Returns scipy.sparse.lil_array with the elements of the tensor. See also: Tensor.to_scipy, Tensor.asformat.

>>> type(A.tolil()).__name__
'lil_array'
""",
    **OF_TORCH,
}

provide("method texts", TEXTS)
