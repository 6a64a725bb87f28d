"""torch's functions on Tensors, by name: what `__torch_function__` looks up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import linalg
from ..errors import ShapeError, UnsupportedError
from ..ops import creation, joining, reduce, shaping, softmax, tensor_products, triangles
from ..ops.einsum import einsum
from ..ops.elementwise import elementwise
from ..ops.indexing import index
from ..ops.moments import std, var
from ..ops.products import matmul
from ..ops.sddmm import sddmm
from ..ops.search import arg_reduce, cumulative
from ..ops.taking import sparse_mask, take, take_along_axis
from ..ops.tensor import Tensor
from . import pointwise_functions as single

__all__ = ["FUNCTIONS", "call"]


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch's `function` of these arguments, of which one is a Tensor.

    Raises UnsupportedError for a function that is not in the table.
    """
    if (out := kwargs.get("out")) is not None:
        return out.copy_(_dense(call(function, args, {**kwargs, "out": None})))
    kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    name = _name(function)
    if name in FUNCTIONS:
        return FUNCTIONS[name](*args, **kwargs)
    if name in single.UNARY and args and isinstance(args[0], Tensor):
        return single.mapped(function, *args, **kwargs)
    if name in single.BINARY:
        return _binary(single.BINARY[name], *args, **kwargs)
    if name[:1] == "r" and name[1:] in single.BINARY and len(args) == 2:
        return elementwise(single.BINARY[name[1:]], args[1], args[0])
    if name.endswith("_") and args and isinstance(args[0], torch.Tensor):
        return args[0].copy_(_dense(call(getattr(torch, name[:-1]), args, kwargs)))
    raise UnsupportedError(
        f"torch.{name} does not take an openwork Tensor\n  supported: {', '.join(sorted(_NAMES))}"
        "\n  help: hand it to_dense() or to_torch()"
    )


def _name(function: Any) -> str:
    name: str = getattr(function, "__name__", str(function))
    if name.startswith("__"):
        return name.strip("_")
    return name.removeprefix("_").removeprefix("linalg_").removeprefix("_")


def _dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, Tensor) else x


def _binary(op: str, a: Any, b: Any = None, *, other: Any = None, alpha: Any = 1) -> Any:
    return single.scaled(op, a, other if b is None else b, alpha)


def mm(a: Any, b: Any, reduce: str = "sum") -> Any:
    """`a @ b`, the products of a row reduced by "sum", "mean", "amax" or "amin" instead of summed.

    `a` is a Tensor of two dimensions; only its specified elements take part, and rows without any give 0. Other
    reductions than sums make nse * columns products, one for each.
    """
    if reduce == "sum":
        return matmul(a, b)
    if not isinstance(a, Tensor) or isinstance(b, Tensor) or reduce not in ("mean", "amax", "amin"):
        raise UnsupportedError(
            f"mm: reduce={reduce!r} of {type(a).__name__} and {type(b).__name__}"
            "\n  supported: sum, mean, amax and amin of a sparse Tensor and a dense torch tensor"
        )
    plain = a.coalesce() if a.dense_dim == 0 else a.asformat("coo")
    rows, columns = (c.to(torch.int64) for c in plain.indices())
    products = plain.values[:, None] * b[columns]
    out = products.new_zeros((a.shape[0], b.shape[1]))
    places = rows[:, None].expand_as(products)
    return out.scatter_reduce(0, places, products, reduce, include_self=False)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)`, of any mixture of Tensors and torch tensors."""
    product = matmul(mat1, mat2)
    product = product if alpha == 1 else elementwise("mul", product, alpha)
    if beta == 0:
        return product
    return elementwise("add", input if beta == 1 else elementwise("mul", input, beta), product)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * sum of batch1[b] @ batch2[b]`."""
    product = einsum("bij,bjk->ik", batch1, batch2)
    return elementwise("add", elementwise("mul", input, beta), elementwise("mul", product, alpha))


def sampled_addmm(input: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`alpha * (mat1 @ mat2)` at the elements of `input`, of any format, plus `beta * input`."""
    product = elementwise("mul", sddmm(input.detach(), mat1, mat2), alpha)
    if beta:
        product = elementwise("add", product, elementwise("mul", input, beta))
    found: Tensor = product
    return found


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`; input, weight or both may be Tensors."""
    product = matmul(input, weight.mT if isinstance(weight, Tensor) else weight.t())
    return product if bias is None else elementwise("add", product, bias)


def embedding(input: Any, weight: Any, *_: Any, **__: Any) -> Any:
    """The rows `input` of a Tensor."""
    return index(weight, input)


def norm(t: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm of the elements over `dim`, all without."""
    t = t if dtype is None else t.astype(dtype)
    order = 2 if p in ("fro", None) else p
    if order == 2:
        squares = reduce.reduce("sum", single.mapped(lambda v: (v * v.conj()).real, t), dim, keepdim)
        return single.mapped(torch.sqrt, squares)
    size = single.mapped(torch.abs, t)
    if order in (float("inf"), float("-inf")):
        return reduce.reduce("max" if order > 0 else "min", size, dim, keepdim)
    if order == 0:
        return reduce.reduce("sum", single.mapped(lambda v: (v != 0).to(size.dtype), t), dim, keepdim)
    return single.mapped(
        torch.pow, reduce.reduce("sum", single.mapped(torch.pow, size, order), dim, keepdim), 1 / order
    )


def _linalg_norm(t: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    if ord in (None, "fro") or t.ndim == 1 or isinstance(dim, int):
        return norm(t, "fro" if ord is None else ord, dim, keepdim)
    return linalg.norm(t, ord, dim, keepdim)


def _reducer(op: str) -> Callable[..., Any]:
    def function(t: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if op == "mean" and dtype is not None:
            t, dtype = t.astype(dtype), None
        return reduce.reduce(op, t, None if dim == () else dim, keepdim, dtype)

    return function


def _extreme(op: str) -> Callable[..., Any]:
    """torch's `max` and `min`: of all elements, along a dimension with the places, or of two tensors."""

    def function(t: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor | torch.Tensor) or not isinstance(t, Tensor):
            return elementwise(op, t, dim)
        if dim is None:
            return reduce.reduce(op, t)
        places = arg_reduce(op, t.detach(), dim, True)
        found = take_along_axis(t, _dense(places), axis=dim)
        kind: Any = torch.return_types.max if op == "max" else torch.return_types.min
        pair = [_dense(found), _dense(places)]
        return kind(pair if keepdim else [x.squeeze(dim) for x in pair])

    return function


def _moment(function: Callable[..., Any]) -> Callable[..., Any]:
    def call_it(t: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = 1) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        return function(t, dim, float(correction if unbiased is None else unbiased), keepdim)

    return call_it


def _softmax(function: Callable[..., Any]) -> Callable[..., Any]:
    def call_it(t: Tensor, dim: Any = -1, dtype: Any = None, _stacklevel: int = 3) -> Any:
        return function(t if dtype is None else t.astype(dtype), axis=-1 if dim is None else dim)

    return call_it


def _running(op: str) -> Callable[..., Any]:
    return lambda t, dim, *, dtype=None: cumulative(op, t, dim, dtype, False)


def narrow(t: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The coordinates from `start`, `length` of them, of a dimension."""
    return index(t, (*(slice(None),) * (dim % t.ndim), slice(start, start + length)))


def select(t: Tensor, dim: int, index_: int) -> Tensor:
    """One coordinate of a dimension, which goes."""
    return index(t, (*(slice(None),) * (dim % t.ndim), index_))


def index_select(t: Tensor, dim: int, index: Any) -> Tensor:
    """The coordinates that `index` names of a dimension."""
    return take(t, index, axis=dim)


def split(t: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a dimension: of one size, or of the sizes given."""
    extent, sizes = t.shape[dim], split_size_or_sections
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - at) for at in range(0, extent, sizes)] or [0]
    if sum(sizes) != extent:
        raise ShapeError(f"split: parts of sizes {tuple(sizes)} of an extent of {extent}\n  help: sizes sum to it")
    begins = [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(narrow(t, dim, at, n) for at, n in zip(begins, sizes, strict=True))


def chunk(t: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of a dimension, of equal size but for the last."""
    return split(t, max(1, -(-t.shape[dim] // chunks)), dim)


def transpose(t: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged, over the same buffers."""
    order = list(range(t.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return t.transpose(order)


def turned(t: Tensor) -> Tensor:
    """The transpose of a matrix; a vector itself."""
    if t.ndim > 2:
        raise ShapeError(f"t: expected one or two dimensions; got shape {t.shape}\n  help: use transpose or mT")
    return t.T


def _shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], Sequence) else tuple(sizes)


def flatten(t: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one."""
    first, last = start_dim % max(t.ndim, 1), end_dim % max(t.ndim, 1)
    return shaping.reshape(t, (*t.shape[:first], -1, *t.shape[last + 1 :]))


def expand(t: Tensor, *sizes: Any) -> Tensor:
    """Dimensions of extent 1 repeated to the sizes given; -1 keeps one."""
    wanted = _shape(sizes)
    lead = len(wanted) - t.ndim
    return shaping.broadcast_to(t, tuple(t.shape[d - lead] if n == -1 else n for d, n in enumerate(wanted)))


def gather(t: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """For each place of `index`, the element whose coordinate along `dim` stands there."""
    cut = tuple(slice(None) if d == dim % t.ndim else slice(n) for d, n in enumerate(index.shape))
    return take_along_axis(t[cut], index, axis=dim)


def nonzero(t: Tensor, *, as_tuple: bool = False) -> Any:
    """The coordinates of the elements that are not zero, row-major."""
    found = (t != 0).detach()
    if found.fill_value:
        found = found.asformat("dense")
    coordinates = torch.nonzero(found.to_dense()) if found.format.is_dense else _true(found)
    return coordinates.unbind(1) if as_tuple else coordinates


def _true(t: Tensor) -> torch.Tensor:
    plain = t.coalesce() if t.dense_dim == 0 else t.asformat("coo")
    return plain.indices().to(torch.int64)[:, plain.values].T


def _dot(a: Any, b: Any) -> Any:
    return einsum("i,i->", a, b)


def _einsum(equation: str, *operands: Any) -> Any:
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return einsum(equation, *given)


def _stacked(axis: int) -> Callable[..., Any]:
    def function(tensors: Sequence[Any]) -> Tensor:
        least = 2 if axis == 0 else 1
        up = [t if t.ndim >= least else shaping.reshape(t, (1,) * (least - t.ndim) + tuple(t.shape)) for t in tensors]
        return joining.concat(up, axis=min(axis, up[0].ndim - 1))

    return function


def _allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(torch.allclose(_dense(a), _dense(b), rtol, atol, equal_nan))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul": matmul, "mm": matmul, "mv": matmul, "bmm": matmul, "rmatmul": lambda a, b: matmul(b, a),
    "smm": matmul, "sparse_mm": mm, "sparse_mm_reduce_impl": mm, "hspmm": matmul, "dot": _dot,
    "vdot": lambda a, b: tensor_products.vecdot(a, b),
    "vecdot": lambda a, b, dim=-1: tensor_products.vecdot(a, b, axis=dim), "inner": lambda a, b: matmul(a, _mt(b)),
    "outer": tensor_products.outer, "kron": tensor_products.kron, "einsum": _einsum,
    "tensordot": lambda a, b, dims=2: tensor_products.tensordot(a, b, axes=dims),
    "addmm": addmm, "addmv": addmm, "baddbmm": addmm, "sspaddmm": addmm, "sparse_addmm": addmm, "addbmm": addbmm,
    "sparse_sampled_addmm": sampled_addmm, "sampled_addmm": sampled_addmm, "linear": linear, "embedding": embedding,
    "add": lambda a, b=None, *, other=None, alpha=1: _binary("add", a, b, other=other, alpha=alpha),
    "rsub": lambda a, b, alpha=1: single.scaled("sub", b, a, alpha), "div": single.div, "divide": single.div,
    "clamp": single.clamp, "clip": single.clamp, "clamp_min": lambda t, min: single.clamp(t, min),
    "clamp_max": lambda t, max: single.clamp(t, None, max), "where": single.where,
    "conj": lambda t: single.mapped(torch.conj_physical, t), "resolve_conj": lambda t: t,
    **{op: _reducer(op) for op in ("sum", "prod", "mean", "any", "all", "count_nonzero")},
    "sparse_sum": _reducer("sum"), "amax": _reducer("max"), "amin": _reducer("min"),
    "max": _extreme("max"), "min": _extreme("min"), "var": _moment(var), "std": _moment(std),
    "argmax": lambda t, dim=None, keepdim=False: arg_reduce("max", t.detach(), dim, keepdim),
    "argmin": lambda t, dim=None, keepdim=False: arg_reduce("min", t.detach(), dim, keepdim),
    "logsumexp": lambda t, dim=None, keepdim=False: softmax.logsumexp(t, dim, keepdims=keepdim),
    "softmax": _softmax(softmax.softmax), "sparse_softmax": _softmax(softmax.softmax),
    "log_softmax": _softmax(softmax.log_softmax), "sparse_log_softmax": _softmax(softmax.log_softmax),
    "cumsum": _running("sum"), "cumprod": _running("prod"), "norm": norm, "vector_norm": norm,
    "trace": lambda t: reduce.reduce("sum", triangles.diagonal(t)), "nonzero": nonzero,
    "t": turned, "adjoint": lambda t: single.mapped(torch.conj_physical, t.mT), "transpose": transpose,
    "swapaxes": transpose, "swapdims": transpose, "permute": lambda t, *dims: shaping.permute_dims(t, _shape(dims)),
    "movedim": shaping.moveaxis, "moveaxis": shaping.moveaxis, "reshape": lambda t, *n: shaping.reshape(t, _shape(n)),
    "flatten": flatten, "ravel": flatten, "squeeze": lambda t, dim=None: _squeeze(t, dim),
    "unsqueeze": lambda t, dim: shaping.expand_dims(t, axis=dim), "flip": lambda t, *dims: _flip(t, dims),
    "fliplr": lambda t: _flip(t, (1,)), "flipud": lambda t: _flip(t, (0,)),
    "roll": lambda t, shifts, dims=None: shaping.roll(t, shifts, axis=dims),
    "broadcast_to": lambda t, size: shaping.broadcast_to(t, tuple(size)), "expand": expand,
    "repeat_interleave": lambda t, repeats, dim=None: shaping.repeat(t, repeats, axis=dim),
    "tile": lambda t, *dims: shaping.tile(t, _shape(dims)),
    "cat": lambda tensors, dim=0: joining.concat(tensors, axis=dim),
    "concat": lambda tensors, dim=0: joining.concat(tensors, axis=dim),
    "concatenate": lambda tensors, dim=0: joining.concat(tensors, axis=dim),
    "stack": lambda tensors, dim=0: joining.stack(tensors, axis=dim), "hstack": _stacked(1), "vstack": _stacked(0),
    "unbind": lambda t, dim=0: joining.unstack(t, axis=dim), "split": split, "chunk": chunk, "narrow": narrow,
    "select": select, "index_select": index_select, "gather": gather, "getitem": index,
    "take_along_dim": lambda t, indices, dim: take_along_axis(t, indices, axis=dim),
    "tril": lambda t, diagonal=0: triangles.tril(t, k=diagonal),
    "triu": lambda t, diagonal=0: triangles.triu(t, k=diagonal),
    "diagonal": lambda t, offset=0, dim1=0, dim2=1: triangles.diagonal(t, offset=offset, axis1=dim1, axis2=dim2),
    "diag": lambda t, diagonal=0: triangles.diag(t, k=diagonal), "clone": lambda t, **_: t.clone(),
    "detach": lambda t: t.detach(), "sparse_mask": sparse_mask, "allclose": _allclose,
    "equal": lambda a, b: tuple(a.shape) == tuple(b.shape) and torch.equal(_dense(a), _dense(b)),
    "zeros_like": lambda t, **_: creation.zeros_like(t), "numel": lambda t: t.size,
    "is_complex": lambda t: t.dtype.is_complex, "is_floating_point": lambda t: t.dtype.is_floating_point,
    "is_nonzero": bool, "is_same_size": lambda a, b: tuple(a.shape) == tuple(b.shape),
}  # fmt: skip
"""What stands for each of torch's functions."""

_NAMES = {*FUNCTIONS, *single.UNARY, *single.BINARY}


def _mt(x: Any) -> Any:
    return x.mT if x.ndim > 1 else x


def _squeeze(t: Tensor, dim: Any) -> Tensor:
    if dim is None:
        return shaping.squeeze(t)
    dims = [d for d in ((dim,) if isinstance(dim, int) else dim) if t.shape[d] == 1]
    return shaping.squeeze(t, tuple(dims)) if dims else t


def _flip(t: Tensor, dims: Sequence[Any]) -> Tensor:
    return shaping.flip(t, axis=_shape(dims))
