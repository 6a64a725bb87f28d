"""torch's functions that are composed of operations: reductions, norms, distances, statistics, linear algebra."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from ... import linalg
from ...errors import DTypeError, ShapeError, UnsupportedError
from ...ops import creation
from ...ops.axes import axis_of
from ...ops.elementwise.maps import elementwise
from ...ops.manipulation import shaping, triangles
from ...ops.products import tensor_products
from ...ops.products.einsum import einsum
from ...ops.products.matmul import matmul
from ...ops.reductions import folds, softmax
from ...ops.reductions.moments import std, var
from ...ops.reductions.roots import power, presence, root
from ...storage.recorded import is_recorded
from ...tensor.tensor import Tensor
from ..gradients.nary import apply_dense, apply_nary, torch_storage
from .registry import FUNCTIONS, checked, torch_function
from .shapes import constant_tensor, narrow, shape_of

__all__ = ["norm"]

_HALVES = (torch.float16, torch.bfloat16)
_MUL, _SUB, _ADD = "mul", "sub", "add"


@torch_function("norm")
def norm(t: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
    """The p-norm of the elements over `dim`, all without."""
    t = t if dtype is None else t.astype(dtype)
    if t.dtype in _HALVES:  # squares leave its range
        return norm(t.astype(torch.float32), p, dim, keepdim).astype(t.dtype)
    if p == "nuc":
        raise UnsupportedError("norm: 'nuc' needs all singular values\n  supported: 'fro', numbers\n  help: to_dense()")
    dim = None if dim in ((), []) else dim
    order = 2 if p in ("fro", None) else p
    if order == 2:
        return apply_nary(root, folds.reduce("sum", apply_nary(_square, t), dim, keepdim), 2)
    magnitude = apply_nary(torch.abs, t)
    if order in (math.inf, -math.inf):
        return folds.reduce("max" if order > 0 else "min", magnitude, dim, keepdim)
    if order == 0:
        return folds.reduce("sum", apply_nary(presence, magnitude), dim, keepdim)
    sums = folds.reduce("sum", apply_nary(power, magnitude, order), dim, keepdim)
    return apply_nary(root, sums, order)


def _square(v: torch.Tensor) -> torch.Tensor:
    return (v * v.conj()).real if v.is_complex() else v * v


@torch_function("linalg_norm")
def linalg_norm(t: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """torch.linalg.norm: of vectors, and of matrices."""
    t = t if dtype is None else t.astype(dtype)
    if ord is None or t.ndim == 1 or isinstance(dim, int) or (isinstance(dim, tuple | list) and len(dim) == 1):
        if isinstance(ord, str):
            raise UnsupportedError(f"norm: {ord!r} of vectors\n  help: that of matrices takes two dimensions")
        return norm(t, 2 if ord is None else ord, dim, keepdim)
    if dim is None and t.ndim != 2:
        raise ShapeError(f"norm: {ord!r} of a tensor of shape {t.shape}\n  help: dim= says of what")
    return matrix_norm(t, ord, (-2, -1) if dim is None else dim, keepdim)


@torch_function("matrix_norm")
def matrix_norm(t: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    """torch.linalg.matrix_norm."""
    t = t if dtype is None else t.astype(dtype)
    if ord == "fro":
        return norm(t, 2, dim, keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise UnsupportedError(f"matrix_norm: {ord!r} needs all singular values\n  supported: 'fro', 1, -1, inf, -inf")
    rows, columns = (axis_of(d, t.ndim, "matrix_norm") for d in dim)
    if rows == columns:
        raise ShapeError(f"matrix_norm: dimensions {tuple(dim)}\n  expected: two different ones")
    first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = apply_nary(torch.abs, t).sum(first, keepdims=True)
    extreme = folds.reduce("max" if ord > 0 else "min", sums, second, True)
    return extreme if keepdim else shaping.squeeze(extreme, (rows, columns))


def _reducer(op: str) -> Callable[..., Any]:
    def function(t: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if op == "mean" and dtype is not None:
            t, dtype = t.astype(dtype), None
        if not t.ndim and dim is not None:
            dim = None
        return folds.reduce(op, t, None if dim in ((), []) else dim, keepdim and t.ndim > 0, dtype)

    return function


@torch_function("count_nonzero")
def count_nonzero(t: Tensor, *dims: Any, dim: Any = None) -> Any:
    """How many elements are not 0, over one dimension or several, one by one or in a sequence."""
    return _reducer("count_nonzero")(t, dim if not dims else dims[0] if len(dims) == 1 else dims)


def _moment(function: Callable[..., Any]) -> Callable[..., Any]:
    def call_it(t: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = 1) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = 1 if correction is None else correction
        dim = None if not t.ndim or dim in ((), []) else dim
        return function(t, dim, float(correction if unbiased is None else unbiased), keepdim and t.ndim > 0)

    return call_it


def _with_mean(function: Callable[..., Any]) -> Callable[..., Any]:
    moment, mean = _moment(function), _reducer("mean")

    def call_it(t: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = 1) -> Any:
        axes = None if isinstance(dim, bool) else dim
        return moment(t, dim, unbiased, keepdim, correction=correction), mean(t, axes, keepdim)

    return call_it


def _softmax(function: Callable[..., Any], negative: bool = False) -> Callable[..., Any]:
    def call_it(t: Tensor, dim: Any = -1, dtype: Any = None, *, _stacklevel: int = 3) -> Any:
        t = t if dtype is None or isinstance(dtype, int) else t.astype(dtype)
        return function(elementwise(_MUL, t, -1) if negative else t, axis=-1 if dim is None else dim)

    return call_it


def _as_floating(t: Tensor) -> Tensor:
    """The tensor, one of integers in torch's default dtype."""
    return t if t.dtype.is_floating_point or t.dtype.is_complex else t.astype(torch.get_default_dtype())


@torch_function("cov")
def cov(t: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance of the rows: their products, less those of the means, so that no row is made dense."""
    if t.ndim < 2:
        rows = shaping.reshape(t, (1, -1))
        return cov(rows, correction=correction, fweights=fweights, aweights=aweights)
    t = _as_floating(t)
    factors = [_dense(w) for w in (fweights, aweights) if w is not None]
    for w, real in ((w, w is aweights) for w in (fweights, aweights) if w is not None):
        if tuple(w.shape) != t.shape[1:]:
            raise ShapeError(f"cov: weights of shape {tuple(w.shape)}\n  expected: {t.shape[1:]}, one for each column")
        if w.dtype.is_floating_point is not real or w.dtype == torch.bool:
            raise DTypeError(
                f"cov: {'a' if real else 'f'}weights of {w.dtype}\n  expected: {'real' if real else 'whole'} numbers"
            )
    for w in factors:
        if bool((w < 0).any()):
            raise ValueError(f"cov: a weight of {w.min().item()}\n  expected: none below 0")
    for w in factors:
        t = t.astype(torch.promote_types(t.dtype, w.dtype), copy=False)
    factors = [w.to(t.dtype.to_real()) for w in factors]
    weights = math.prod(factors[1:], start=factors[0]) if factors else None
    count = t.shape[1] if weights is None else weights.sum()
    scaled = t if weights is None else elementwise(_MUL, t, weights)
    mean = scaled.sum(1).to_dense() / count
    products = _dense(matmul(scaled, apply_nary(torch.conj_physical, t.mT)))
    correction_weight = correction if aweights is None else correction * (weights * factors[-1]).sum() / count
    divisor = torch.as_tensor(count - correction_weight).real.clamp(min=0)
    covariance = (products - count * torch.outer(mean, mean.conj())) / divisor
    return Tensor._from_dense(covariance.reshape(()) if t.shape[0] == 1 else covariance)


@torch_function("corrcoef")
def corrcoef(t: Tensor) -> Any:
    """The correlations of the rows."""
    correlation = cov(t).to_dense()
    if not correlation.ndim:
        return Tensor._from_dense(correlation / correlation)
    deviations = correlation.diagonal().real.sqrt() if correlation.is_complex() else correlation.diagonal().sqrt()
    correlation = correlation / deviations[:, None] / deviations[None, :]
    if correlation.is_complex():
        return Tensor._from_dense(torch.view_as_complex(torch.view_as_real(correlation).clip(-1, 1)))
    return Tensor._from_dense(correlation.clip(-1, 1))


@torch_function("cross")
def cross(input: Any, other: Any, dim: Any = None) -> Any:
    """The cross product of vectors of three elements along a dimension, the first of that extent without."""
    rank = max(input.ndim, other.ndim)
    if dim is None:
        dim = next(d for d in range(rank) if input.shape[d] == 3)
    axis = axis_of(dim, rank, "cross") - rank

    def turned(x: Any, k: int) -> Any:
        return shaping.roll(x, -k, axis=axis) if isinstance(x, Tensor) else x.roll(-k, axis)

    first = elementwise(_MUL, turned(input, 1), turned(other, 2))
    return elementwise(_SUB, first, elementwise(_MUL, turned(input, 2), turned(other, 1)))


@torch_function("normalize")
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """The vectors along a dimension divided by their norms."""
    size = norm(input, p, dim, True).to_dense().clamp_min(eps)
    return elementwise("div", input, size) if input.ndim else apply_dense(torch.div, input, size)


@torch_function("cosine_similarity")
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosines between vectors along a dimension."""
    x1, x2 = torch.broadcast_tensors(x1, x2)
    first, second = (_dense(torch.linalg.vector_norm(x, 2, dim)).clamp_min(eps) for x in (x1, x2))
    return _dense(elementwise(_MUL, x1, x2).sum(dim)) / (first * second)


def _dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, Tensor) else x


@torch_function("pairwise_distance")
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norms of the differences, each moved by eps."""
    shifted = elementwise(_ADD, elementwise(_SUB, x1, x2), eps)
    if not isinstance(shifted, Tensor):
        return torch.linalg.vector_norm(shifted, p, -1, keepdim)
    return norm(shifted, p, -1, keepdim)


@torch_function("dist")
def dist(input: Any, other: Any, p: Any = 2) -> Any:
    """The p-norm of the difference."""
    difference = elementwise(_SUB, input, other)
    return norm(difference, p) if isinstance(difference, Tensor) else torch.dist(difference, difference * 0, p)


@torch_function("renorm")
def renorm(t: Tensor, p: Any, dim: int, maxnorm: Any) -> Any:
    """The slices of a dimension, those of a larger p-norm than `maxnorm` scaled to it."""
    others = tuple(d for d in range(t.ndim) if d != axis_of(dim, t.ndim, "renorm"))
    sizes = norm(t, p, others, True).to_dense()
    return elementwise(_MUL, t, torch.where(sizes > maxnorm, maxnorm / (sizes + 1e-7), torch.ones_like(sizes)))


@torch_function("glu")
def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half along a dimension times the sigmoid of the second."""
    half = input.shape[dim] // 2
    if 2 * half != input.shape[dim]:
        raise ShapeError(f"glu: extent {input.shape[dim]} of dimension {dim} is odd\n  help: it is cut in halves")
    return elementwise(_MUL, narrow(input, dim, 0, half), apply_nary(torch.sigmoid, narrow(input, dim, half, half)))


@torch_function("prelu")
def prelu(input: Any, weight: Any) -> Any:
    """`input` where it is positive, else `weight` of its channel times it."""
    weight = _dense(weight)
    if weight.numel() > 1 and input.ndim > 2:
        weight = weight.reshape(-1, *(1,) * (input.ndim - 2))
    if not isinstance(input, Tensor):
        return F.prelu(input, weight.reshape(-1))
    weight = weight if weight.numel() > 1 else weight.reshape(())
    low = apply_nary(torch.clamp_max, input, 0)
    return elementwise(_ADD, apply_nary(torch.relu, input), elementwise(_MUL, low, weight))


@torch_function("rms_norm")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """The elements divided by the root of the mean of the squares of the last dimensions."""
    if input.dtype.is_complex:
        raise UnsupportedError(
            "rms_norm of complex numbers\n  supported: real ones\n  help: its real and imaginary part"
        )
    if input.dtype in _HALVES:
        return rms_norm(input.astype(torch.float32), normalized_shape, weight, eps).to(input.dtype)
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    means = folds.reduce("mean", apply_nary(_square, input), axes, True).to_dense()
    scaled = elementwise("div", input, torch.sqrt(means + (torch.finfo(means.dtype).eps if eps is None else eps)))
    return scaled if weight is None else elementwise(_MUL, scaled, weight)


@torch_function("addr")
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    product = elementwise(_MUL, tensor_products.outer(vec1, vec2), alpha)
    return product if beta == 0 else elementwise(_ADD, elementwise(_MUL, input, beta), product)


@torch_function("multi_dot")
def multi_dot(*tensors: Any) -> Any:
    """The product of a chain of matrices, of which the first and the last may be vectors."""
    matrices = tensors[0] if len(tensors) == 1 else tensors
    result = matrices[0]
    for x in matrices[1:]:
        result = matmul(result, x)
    return result


@torch_function("linalg_diagonal")
def linalg_diagonal(t: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices."""
    return triangles.diagonal(t, offset=offset, axis1=dim1, axis2=dim2)


@torch_function("full_like")
def full_like(t: Tensor, fill_value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """A Tensor of one value, of the shape of another one, with no element stored."""
    return creation.full_like(t, _python_number(fill_value), dtype=dtype)


@torch_function("fill")
def fill(t: Tensor, value: Any) -> Any:
    """One value everywhere: no element is stored, unless the value is recorded."""
    if isinstance(value, torch.Tensor) and is_recorded(value):
        return Tensor._from_dense(value.to(t.dtype).expand(t.shape))
    return full_like(t, value)


def _python_number(x: Any) -> Any:
    return x.item() if isinstance(x, torch.Tensor | Tensor) else x


def _of_torch(t: Tensor) -> Tensor:
    return Tensor._from_storage(torch_storage(t))


@torch_function("solve")
def _solve(a: Any, b: Any, *, left: bool = True) -> Any:
    if 1 < b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape[:-1]):  # a stack of vectors
        return linalg.solve(a, b[..., None])[..., 0]
    return linalg.solve(a, b) if left else linalg.solve(a.mT, b.mT).mT


@torch_function("solve_triangular")
def _solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        return _solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    return linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unitriangular)


def _new_constant(value: Any) -> Callable[..., Tensor]:
    return lambda t, *size, dtype=None, **_: constant_tensor(t, shape_of(size), value, dtype)


@torch_function("new_full")
def new_full(t: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """A Tensor of one value, with no element stored."""
    return constant_tensor(t, size, _python_number(fill_value), dtype)


@torch_function("logsumexp")
def logsumexp(t: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials; of whole numbers in torch's default dtype."""
    return softmax.logsumexp(_as_floating(t), dim if t.ndim else None, keepdims=keepdim)


@torch_function("zeros_like", "empty_like")
def zeros_like(t: Tensor, **options: Any) -> Tensor:
    """A Tensor of zeros, of the shape of another one, with no element stored: torch's empty sparse tensor too."""
    return full_like(t, 0, **options)


@torch_function("ones_like")
def ones_like(t: Tensor, **options: Any) -> Tensor:
    """A Tensor of ones, of the shape of another one, with no element stored."""
    return full_like(t, 1, **options)


def _det(t: Tensor) -> Any:
    return _of_torch(linalg.det(t))


def _slogdet(t: Tensor) -> list[Any]:
    return [*map(_of_torch, linalg.slogdet(t))]


FUNCTIONS.update(
    {
        "sparse_sum": _reducer("sum"),
        "amax": _reducer("max"),
        "amin": _reducer("min"),
        "var": _moment(var),
        "std": _moment(std),
        "var_mean": _with_mean(var),
        "std_mean": _with_mean(std),
        "softmax": checked(_softmax(softmax.softmax)),
        "sparse_softmax": _softmax(softmax.softmax),
        "softmin": _softmax(softmax.softmax, True),
        "log_softmax": checked(_softmax(softmax.log_softmax)),
        "sparse_log_softmax": _softmax(softmax.log_softmax),
        "vector_norm": lambda t, ord=2, dim=None, keepdim=False, *, dtype=None: norm(t, ord, dim, keepdim, dtype),
        "linalg_cross": lambda a, b, *, dim=-1: cross(a, b, dim),
        "matrix_power": lambda a, n: linalg.matrix_power(a, n),
        "vander": lambda x, N=None: apply_dense(torch.linalg.vander, x, N=N),
        "det": _det,
        "inv": lambda a: linalg.inv(a),
        "slogdet": lambda a: torch.return_types.slogdet(_slogdet(a)),
        "linalg_slogdet": lambda a: torch.return_types.linalg_slogdet(_slogdet(a)),
        "bilinear": lambda a, b, weight, bias=None: _bilinear(a, b, weight, bias),
        "zero_": lambda t: t.zero_(),
        "new_zeros": _new_constant(0),
        "new_ones": _new_constant(1),
    }
)
torch_function("mean")(_reducer("mean"))  # of whole numbers torch has none
for _name in ("sum", "prod", "any", "all"):
    torch_function(_name)(checked(_reducer(_name)))


def _bilinear(a: Any, b: Any, weight: Any, bias: Any) -> Any:
    product = einsum("...i,kij,...j->...k", a, weight, b)
    return product if bias is None else elementwise(_ADD, product, bias)
