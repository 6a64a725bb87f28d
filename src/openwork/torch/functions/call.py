"""`__torch_function__`: a torch function and its arguments, one of them a Tensor -> its result over torch buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch

from ...errors import DTypeError, ShapeError, UnsupportedError, broadcast_error
from ...interop.constructors import asarray
from ...interop.layouts import sparse_coo_tensor
from ...ops.elementwise.map_plans import map_recalled
from ...ops.elementwise.maps import elementwise
from ...ops.indexing.index import index
from ...ops.products import tensor_products
from ...ops.products.einsum import einsum
from ...ops.products.matmul import matmul
from ...ops.products.sddmm import sddmm
from ...runtime.library_errors import explain
from ...storage.recorded import refuse_tracer
from ...tables import TORCH
from ...tensor.tensor import Tensor
from ..gradients.nary import apply_nary, over_torch
from ..gradients.permutation import without_duplicates
from . import autograd, composed, indices, scatter, shapes, solvers, sorting
from . import elementwise as pointwise_functions
from .autocast_traced import LOWER_PRECISION, autocast
from .losses import LOSSES, loss
from .reduced_products import mm
from .refusals import refused
from .registry import CHECKED, FUNCTIONS, PREPARED, checked, operation_of, torch_function

__all__ = [
    "FUNCTIONS",
    "autograd",
    "call",
    "composed",
    "condition_first",
    "indices",
    "scatter",
    "shapes",
    "solvers",
    "sorting",
    "table_names",
]


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch's `function` of these arguments, of which one is a Tensor; the result is over torch buffers.

    Raises UnsupportedError for a function that is not in the table.
    """
    refuse_tracer(before_dispatch=True)
    if not kwargs:
        prepared = PREPARED.get(function)
        prepared_result = None
        if prepared is not None:
            prepared_result = prepared(*args)
        elif len(args) == 1 and type(args[0]) is Tensor:
            prepared_result = map_recalled(function, args[0])
        if prepared_result is not None:
            return prepared_result
    if (out := kwargs.get("out")) is not None:
        for x in out if isinstance(out, tuple | list) else (out,):
            if (device := str(x.device)) != "cpu":
                raise UnsupportedError(
                    f"out= is on device {device}\n  expected: cpu, as the operands\n  help: to('cpu')"
                )
        result = function(*args, **{**kwargs, "out": None})  # of torch's tensors alone where `out` is the only Tensor
        return _write(result, out)
    if function is torch.Tensor.where:
        function, args, kwargs = torch.where, condition_first(*args, **kwargs), {}
    names = table_names(function)
    if not names[0].endswith("_"):
        args = tuple([over_torch(x) for x in args])
        kwargs = {key: over_torch(value) for key, value in kwargs.items() if key != "out"} if kwargs else kwargs
    if names[0] in _INDEXED and isinstance(args[0], torch.Tensor):
        return function(*_dense(over_torch(args)), **{key: _dense(over_torch(x)) for key, x in kwargs.items()})
    if torch._C._is_any_autocast_enabled():
        if not LOWER_PRECISION.isdisjoint(names):
            args = autocast(*args)
            kwargs = dict(zip(kwargs, autocast(*kwargs.values()), strict=True))
        with torch._C._DisableAutocast():
            return call(function, args, kwargs)
    for name in names:
        if name in FUNCTIONS:
            operation = FUNCTIONS[name]
        elif name in LOSSES:
            operation = partial(loss, function)
        elif name in pointwise_functions.ELEMENTWISE:
            operation = partial(apply_nary, function)
        elif name in pointwise_functions.BINARY:
            operation = partial(_binary, pointwise_functions.BINARY[name])
        else:
            continue
        known = name in _ELEMENTS or operation in CHECKED
        error = None if known else refused(function, args, kwargs)
        if error is not None and name.endswith("_"):
            raise error
        try:
            result = operation(*args, **kwargs)
        except Exception as raised:
            explain(name, raised, args)
            if type(raised).__module__ == "builtins" and name not in _OF_GRAPHS:
                error = refused(function, args, kwargs) if error is None else error
                if error is not None:
                    raise error from None
            raise
        if error is not None:  # the operation's own, which has a remedy, goes first
            raise error
        return result
    name = names[0]
    if name[:1] == "r" and name[1:] in pointwise_functions.BINARY and len(args) == 2:
        return elementwise(pointwise_functions.BINARY[name[1:]], args[1], args[0])
    if name.endswith("_") and args and isinstance(args[0], torch.Tensor) and hasattr(torch, name[:-1]):
        before = args[0].clone() if torch.is_grad_enabled() else args[0]  # backward may ask what it was
        return args[0].copy_(_dense(getattr(torch, name[:-1])(before, *args[1:], **kwargs)))
    if name.endswith("_") and args and isinstance(args[0], Tensor) and hasattr(torch, name[:-1]):
        return args[0]._assign_result(name, getattr(torch, name[:-1])(*args, **kwargs))
    raise UnsupportedError(
        f"torch.{name} does not take an openwork Tensor\n  supported: {', '.join(sorted(_NAMES))}"
        f"\n  help: {_INSTEAD.get(name, 'hand it to_dense() or to_torch()')}"
    )


_INSTEAD = {"scaled_dot_product_attention": "openwork.nn.attend(mask, queries, keys, values) takes a sparse mask"}
"""Functions that have another name and order of arguments here."""


def _write(result: Any, out: Any) -> Any:
    """The result, or each of several, written to `out`, as torch does: resized, in a dtype that it can be cast to."""
    if isinstance(out, tuple | list):
        if not isinstance(result, tuple) or len(result) != len(out):
            raise ShapeError(f"out= has {len(out)} tensors\n  expected: one for each result")
        written = [_write(x, y) for x, y in zip(result, out, strict=True)]
        return type(result)(written) if hasattr(result, "n_sequence_fields") else tuple(written)
    dense = _dense(result)
    if not isinstance(dense, torch.Tensor) or not torch.can_cast(dense.dtype, out.dtype):
        raise DTypeError(f"out= has dtype {out.dtype}\n  expected: one that {getattr(dense, 'dtype', dense)} casts to")
    if not isinstance(out, Tensor):
        return torch.mul(dense, True, out=out)
    if out.shape != dense.shape:
        raise ShapeError(f"out= has shape {out.shape}\n  expected: {tuple(dense.shape)}, that of the result")
    return out.copy_(dense)


def condition_first(input: Any, condition: Any, other: Any) -> tuple[Any, ...]:
    """The arguments of the method `where` as those of the function."""
    return condition, input, other


_INDEXED = frozenset(
    f"{name}{end}"
    for name in ("copy", "getitem", "setitem", "fill", "put", "index_put", "index_copy", "scatter", "masked_scatter")
    for end in ("", "_")
)
"""Functions of a torch tensor that stay torch's own where Tensors say at which places, or what is written."""


@lru_cache(maxsize=1024)
def table_names(function: Any) -> list[str]:
    """A torch function -> its possible names in the tables, the closest first."""
    name: str = getattr(function, "__name__", str(function))
    if name.startswith("__"):
        return [name.strip("_")]
    name = name.removeprefix("_")
    names = [name]
    for prefix in ("linalg_", "special_"):
        names += [name.removeprefix(prefix).removeprefix("_")]
    names += [name.removesuffix("_copy"), name.removesuffix("_impl")]
    return list(dict.fromkeys(names))


def _dense(x: Any) -> Any:
    """What is given, with dense tensors in the place of Tensors, those within tuples and lists too."""
    if isinstance(x, Tensor):
        return x.to_dense()
    return type(x)(map(_dense, x)) if type(x) in (tuple, list) else x


def _binary(op: str, a: Any, b: Any = None, *, other: Any = None, alpha: Any = 1) -> Any:
    return pointwise_functions.scaled(op, a, other if b is None else b, alpha)


def _whole_factor(x: Any, dtype: Any) -> Any:
    """A factor of a product: of an integer dtype truncated, as in torch."""
    return int(x) if isinstance(x, float) and not (dtype.is_floating_point or dtype.is_complex) else x


def _check_ranks(name: str, operands: Sequence[Any], ranks: Sequence[int]) -> None:
    for x, rank in zip(operands, ranks, strict=True):
        if x.ndim != rank:
            raise ShapeError(f"{name}: an operand of shape {tuple(x.shape)}\n  expected: {rank} dimensions")


def _as_large(product: Any, input: Any) -> Any:
    """The product, unless `input` is no tensor that is broadcast to it: ShapeError."""
    shape, added = tuple(product.shape), tuple(input.shape)
    if len(added) > len(shape) or any(n not in (1, m) for n, m in zip(added[::-1], shape[::-1], strict=False)):
        raise broadcast_error("addmm", [added, shape])
    return product


@torch_function("smm")
def smm(input: Tensor, mat: Any) -> Tensor:
    """`input @ mat` of a sparse and a dense matrix, as coordinates: all of the rows that `input` has elements in."""
    return hspmm(input, mat).asformat("coo")


@torch_function("hspmm")
def hspmm(mat1: Tensor, mat2: Any) -> Tensor:
    """`mat1 @ mat2` of a sparse and a dense matrix: the rows that `mat1` has elements in, dense, by coordinates."""
    rows = mat1.asformat("csr")
    stored = torch.nonzero(rows.crow_indices().diff())[:, 0]
    product = matmul(rows[stored], mat2)
    return sparse_coo_tensor(stored[None], _dense(product), (mat1.shape[0], mat2.shape[1]), is_coalesced=True)


@torch_function("sspaddmm")
def sspaddmm(input: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`addmm` of a sparse `input`, as coordinates."""
    return asarray(addmm(input, mat1, mat2, beta=beta, alpha=alpha)).asformat("coo")


@torch_function("addmm", "addmv", "baddbmm", "sparse_addmm")
@checked
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)`, of any mixture of Tensors and torch tensors."""
    stacked = int(mat1.ndim == mat2.ndim == 3)
    _check_ranks("addmm", (mat1, mat2), (2 + stacked, (2 + stacked) if mat2.ndim > 1 else 1))
    product = _as_large(matmul(mat1, mat2), input)
    alpha, beta = (_whole_factor(x, product.dtype) for x in (alpha, beta))
    product = product if alpha == 1 else elementwise("mul", product, alpha)
    if beta == 0:
        return product
    return elementwise("add", input if beta == 1 else elementwise("mul", input, beta), product)


@torch_function("addbmm")
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * sum of batch1[b] @ batch2[b]`."""
    product = _as_large(einsum("bij,bjk->ik", batch1, batch2), input)
    alpha, beta = (_whole_factor(x, product.dtype) for x in (alpha, beta))
    return elementwise("add", elementwise("mul", input, beta), elementwise("mul", product, alpha))


@torch_function("sparse_sampled_addmm", "sampled_addmm")
def sampled_addmm(input: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`alpha * (mat1 @ mat2)` at the elements of `input`, of any format, plus `beta * input`."""
    product = elementwise("mul", sddmm(input.detach(), mat1, mat2), alpha)
    if beta:
        product = elementwise("add", product, elementwise("mul", input, beta))
    result: Tensor = product
    return result


@torch_function("dropout")
def dropout(t: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The stored elements, each 0 with probability `p` and the others larger by 1 / (1 - p); not where not training.

    Raises UnsupportedError for another fill value than 0, each of which would be drawn, and for `inplace`.
    """
    if t.fill_value or inplace:
        raise UnsupportedError(
            f"dropout: fill value {t.fill_value}, inplace={inplace}\n  supported: fill value 0, a new tensor"
        )
    s = without_duplicates(t._storage)
    return Tensor._from_storage(s.with_values(torch.nn.functional.dropout(s.values, p, training), 0))


@torch_function("linear")
@checked
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`; input, weight or both may be Tensors."""
    if weight.ndim > 2:
        raise ShapeError(f"linear: a weight of shape {tuple(weight.shape)}\n  expected: a matrix, or a vector")
    product = matmul(input, weight.mT if isinstance(weight, Tensor) else weight.t())
    return product if bias is None else elementwise("add", product, bias)


@torch_function("embedding")
def embedding(
    input: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """The rows `input` of a Tensor.

    Raises UnsupportedError where a row is to have no gradient, or another one than that of the function.
    """
    if max_norm is not None or scale_grad_by_freq or (padding_idx is not None and weight.requires_grad):
        raise UnsupportedError(
            "embedding: padding_idx, max_norm and scale_grad_by_freq of a Tensor\n  supported: the rows as they are"
            "\n  help: openwork.nn.SparseEmbedding"
        )
    return index(weight, input)


@torch_function("dot")
def _dot(a: Any, b: Any) -> Any:
    return einsum("i,i->", a, b)


@torch_function("einsum")
def _einsum(equation: str, *operands: Any) -> Any:
    factors = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return einsum(equation, *factors)


@torch_function("tensordot")
def _tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    dims = dims.tolist() if isinstance(dims, torch.Tensor) else dims
    if not isinstance(dims, int):
        for i, j in zip(*dims, strict=False):  # an extent of 1 meets any other
            a = a.sum(i, keepdims=True) if a.shape[i] != 1 == b.shape[j] else a
            b = b.sum(j, keepdims=True) if b.shape[j] != 1 == a.shape[i] else b
    return tensor_products.tensordot(a, b, axes=dims)


@torch_function("allclose")
def _allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(torch.allclose(_dense(a), _dense(b), rtol, atol, equal_nan))


FUNCTIONS.update(
    {
        "rmatmul": lambda a, b: matmul(b, a),
        "sparse_mm": mm,
        "sparse_mm_reduce_impl": mm,
        "inner": lambda a, b: matmul(a, _mt(b)),
        "add": checked(lambda a, b=None, *, other=None, alpha=1: _binary("add", a, b, other=other, alpha=alpha)),
        "rsub": checked(lambda a, b, alpha=1: pointwise_functions.scaled("sub", b, a, alpha)),
        "conj": lambda t: apply_nary(torch.conj_physical, t),
        "adjoint": lambda t: apply_nary(torch.conj_physical, t.mT),
        "equal": lambda a, b: tuple(a.shape) == tuple(b.shape) and torch.equal(_dense(a), _dense(b)),
        "numel": lambda t: t.size,
        "is_complex": lambda t: t.dtype.is_complex,
        "is_floating_point": lambda t: t.dtype.is_floating_point,
        "is_nonzero": bool,
        "is_same_size": lambda a, b: tuple(a.shape) == tuple(b.shape),
    }
)

_OPERATIONS = TORCH.keys() - FUNCTIONS.keys() - pointwise_functions.ELEMENTWISE - pointwise_functions.BINARY.keys()
for _name in sorted(_OPERATIONS):
    FUNCTIONS[_name] = checked(operation_of(_name))

_OF_GRAPHS = frozenset(name for name, f in FUNCTIONS.items() if f.__module__ == autograd.__name__)
"""Functions of what is recorded, which meta tensors are not."""

CHECKED.update(FUNCTIONS[_name] for _name in _OF_GRAPHS)

_ELEMENTS = pointwise_functions.ELEMENTWISE | pointwise_functions.BINARY.keys()
"""Functions of elements, which check their operands in one place."""


def _of_ranks(name: str, ranks: tuple[int, ...]) -> Callable[..., Any]:
    """A product of operands of these ranks alone, where the operation takes stacks too."""
    product = FUNCTIONS[name]

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == len(ranks):
            _check_ranks(name, args, ranks)
        return product(*args, **kwargs)

    return checked(function) if product in CHECKED else function


FUNCTIONS.update(
    {name: _of_ranks(name, ranks) for name, ranks in
     {"mm": (2, 2), "mv": (2, 1), "bmm": (3, 3), "dot": (1, 1), "vdot": (1, 1), "outer": (1, 1), "trace": (2,)}.items()}
)  # fmt: skip

_NAMES = {*FUNCTIONS, *pointwise_functions.ELEMENTWISE, *pointwise_functions.BINARY, *LOSSES}


def _mt(x: Any) -> Any:
    return x.mT if x.ndim > 1 else x
