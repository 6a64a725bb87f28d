"""Masked tensors -> products by NumPy's rules, softmax, norms, losses and attention, of what is specified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import openwork as ow

from .. import ShapeError, Tensor, UnsupportedError, broadcast_to, sddmm
from ..integers import common_shape
from ..provided import provides
from ..reals import real
from ..storage.buffers import Array, as_array, is_torch, to_numpy
from ..storage.specified import coordinates
from ..storage.storage import Storage
from .construct import strided_tensor
from .contraction import einsum
from .elementwise import binary, clip
from .reductions import reduce
from .shaping import item_at
from .structure import pattern
from .tensor import MaskedTensor, require_masked, wrap

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = [
    "attention", "cross_entropy", "einsum", "layer_norm", "linear", "log_softmax", "matmul", "mse_loss", "nll_loss",
    "normalize", "softmax",
]  # fmt: skip


@provides("masked matmul")
def matmul(a: Any, b: Any) -> MaskedTensor:
    """The matrix product with NumPy's rules for vectors and stacks: sums over pairs that are both specified.

    Raises ShapeError where the inner extents differ.

    Cost: that of `ow.matmul`.
    See also: einsum, linear.

    Examples
    --------
    >>> print(ow.masked.matmul(ow.masked_tensor(np.eye(2), np.eye(2) > 0), np.ones(2)))
    MaskedTensor(
      [  1.0000,   1.0000]
    )
    """
    ranks = [x.ndim if hasattr(x, "ndim") else np.ndim(x) for x in (a, b)]
    if 0 in ranks:
        raise ShapeError("matmul: an operand of rank 0\n  help: use *")
    if a.shape[-1] != b.shape[-2 if ranks[1] > 1 else 0]:
        raise ShapeError(
            f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit\n  help: transpose one with .T"
        )
    left = "j" if ranks[0] == 1 else "ij" if ranks == [2, 2] else "...ij"
    right = "j" if ranks[1] == 1 else "jk" if ranks == [2, 2] else "...jk"
    out = ("" if ranks == [2, 2] else "...") + ("i" if ranks[0] > 1 else "") + ("k" if ranks[1] > 1 else "")
    return einsum(f"{left},{right}->{out}", a, b)


def linear(x: Any, weight: Any, bias: Any = None) -> MaskedTensor:
    """`x @ weight.T`, and `bias` added to what is specified.

    Cost: O(nse * columns).
    See also: matmul.

    Examples
    --------
    >>> print(ow.masked.linear(ow.masked_tensor(np.eye(2), np.eye(2) > 0), np.ones((1, 2))))
    MaskedTensor(
      [
        [  1.0000],
        [  1.0000]
      ]
    )
    """
    product = matmul(x, weight.T if hasattr(weight, "get_mask") or isinstance(weight, np.ndarray) else weight.mT)
    return product if bias is None else binary("add", product, bias, "intersection")


@provides("masked softmax")
def softmax(m: MaskedTensor, axis: int = -1) -> MaskedTensor:
    """Exponentials along `axis`, divided by their sum, of specified elements; a row without any stays missing."""

    require_masked("softmax", m)
    return wrap(ow.softmax(m._tensor, axis=axis), m._scalar)


@provides("masked log_softmax")
def log_softmax(m: MaskedTensor, axis: int = -1) -> MaskedTensor:
    """The logarithm of `softmax`, more accurate than of its result."""

    require_masked("log_softmax", m)
    return wrap(ow.log_softmax(m._tensor, axis=axis), m._scalar)


def _against(op: str, m: MaskedTensor, reduced: MaskedTensor) -> MaskedTensor:
    """An operation with a reduction of the same tensor, which is specified wherever an element is."""
    return binary(op, m, reduced.filled(1).to_dense())


def normalize(m: MaskedTensor, p: float | None = 2, axis: int = -1, eps: float = 1e-12) -> MaskedTensor:
    """The elements divided by the norm of the specified ones along `axis`, no less than `eps`."""
    norms = reduce("norm", m, axis, True, ord=p)
    return _against("div", m, clip(norms, min=real(eps, "normalize", "eps")))


def layer_norm(
    m: MaskedTensor, axis: Any = -1, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> MaskedTensor:
    """Mean 0 and variance 1 of the specified elements along `axis`; then times `weight`, plus `bias`, dense arrays.

    Cost: O(nse).
    See also: normalize, mean, var.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.layer_norm(m))
    MaskedTensor(
      [ -1.0000,   1.0000,       --]
    )
    """
    eps = real(eps, "layer_norm", "eps")
    away = _against("sub", m, reduce("mean", m, axis, True))
    out = _against("div", away, (reduce("var", m, axis, True) + eps).sqrt())
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def mse_loss(input: Any, target: Any, reduction: str = "mean", how: str = "intersection") -> MaskedTensor:
    """Squared differences where both are specified; their mean, their sum, or themselves ("none").

    Cost: O(nse of both).
    See also: nll_loss.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> float(ow.masked.mse_loss(m, np.array([1.0, 1.0, 1.0])))
    0.5
    """
    return _reduced(binary("sub", input, target, how).square(), reduction)


def _reduced(m: MaskedTensor, reduction: str) -> MaskedTensor:
    if reduction not in ("mean", "sum", "none"):
        raise UnsupportedError(f"reduction {reduction!r}\n  supported: mean, sum, none")
    return m if reduction == "none" else reduce(reduction, m)


def _specified(x: Any) -> MaskedTensor:
    """A masked tensor itself; an array, or a Tensor, as one of which every element is specified."""
    if isinstance(x, MaskedTensor):
        return x
    array = x.to_dense() if isinstance(x, Tensor) else as_array(x)
    return strided_tensor(array, as_array(np.ones(tuple(array.shape), np.bool_), like=array))


def nll_loss(log_probabilities: Any, target: Any, reduction: str = "mean") -> MaskedTensor:
    """The negative log-probability of each target class; targets that are missing, or whose class is, take no part.

    log_probabilities : shape (n, classes), masked or dense
    target : class numbers, shape (n,), masked or dense

    Cost: O(targets).
    See also: cross_entropy.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([[-1.0, -2.0]]), np.array([[True, True]]))
    >>> target = ow.as_masked_tensor(np.array([1]), np.array([True]))
    >>> float(ow.masked.nll_loss(m, target))
    2.0
    """
    scores, target = _specified(log_probabilities), _specified(target)
    rows = np.flatnonzero(to_numpy(target.get_mask().to_dense()))
    classes = to_numpy(target.to_dense().compressed()).astype(np.int64)
    return _reduced(-item_at(scores, (rows, classes)).to_dense(), reduction)


def cross_entropy(logits: MaskedTensor, target: Any, reduction: str = "mean") -> MaskedTensor:
    """`nll_loss` of the log-softmax over the specified classes of each row.

    Cost: O(nse).
    See also: nll_loss, log_softmax.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([[1.0, 2.0]]), np.array([[True, True]]))
    >>> target = ow.as_masked_tensor(np.array([1]), np.array([True]))
    >>> round(float(ow.masked.cross_entropy(m, target)), 3)
    0.313
    """
    return nll_loss(log_softmax(logits, -1), target, reduction)


def attention(query: Array, key: Array, value: Array, mask: Any, scale: float | None = None) -> MaskedTensor:
    """Scaled dot-product attention at the elements of a sparse mask: SDDMM, softmax, SpMM.

    Parameters
    ----------
    query, key, value : dense arrays, shapes (..., n, d), (..., m, d), (..., m, e), leading dimensions broadcast
    mask : Tensor or masked tensor, shape (n, m) or (..., n, m), sparse: query i sees key j where it specifies (i, j);
        its values play no part
    scale : of the scores, 1 / sqrt(d) without

    Returns
    -------
    MaskedTensor, strided, shape (..., n, e); the rows of queries that see no key are missing

    Cost: O(nse(mask) * (d + e)) time and O(nse(mask)) memory beside the result, for each of the leading dimensions'
    places: the matrix of scores is never dense. Several places are the blocks of one block-diagonal matrix.
    Raises ShapeError where shapes do not fit.

    See also: matmul, softmax, nn.attend.

    Examples
    --------
    >>> ow.masked.attention(np.ones((2, 4)), np.ones((2, 4)), np.eye(2, 4), ow.eye(2, format="csr"))
    MaskedTensor(
      [
        [  1.0000,   0.0000,   0.0000,   0.0000],
        [  0.0000,   1.0000,   0.0000,   0.0000]
      ]
    )
    """

    pattern_tensor = mask._tensor if isinstance(mask, MaskedTensor) else mask
    lead = _leading(query, key, value, pattern_tensor)
    scale = query.shape[-1] ** -0.5 if scale is None else real(scale, "attention", "scale")
    if not lead:
        return _attended(query, key, value, pattern_tensor, scale)
    q, k, v = (_stacked(x, lead) for x in (query, key, value))
    blocks = _block_diagonal(broadcast_to(pattern_tensor, (*lead, *pattern_tensor.shape[-2:])), q)
    return _attended(q, k, v, blocks, scale).reshape(*lead, query.shape[-2], value.shape[-1])


def _leading(query: Array, key: Array, value: Array, mask: Tensor) -> tuple[int, ...]:
    """The extents of the leading dimensions."""
    shapes = [tuple(x.shape) for x in (query, key, value, mask)]
    listed = ", ".join(map(str, shapes))
    expected = "expected (..., n, d), (..., m, d), (..., m, e), (..., n, m)"
    if any(len(s) < 2 for s in shapes):
        raise ShapeError(f"attention: query, key, value, mask of shapes {listed}\n  {expected}")
    (n, d), (m, own), (also, _), held = (s[-2:] for s in shapes)
    if d != own or m != also or held != (n, m):
        raise ShapeError(f"attention: query, key, value, mask of shapes {listed}\n  {expected}")
    try:
        return common_shape("attention", [s[:-2] for s in shapes])
    except ValueError:
        raise ShapeError(f"attention: leading dimensions of {listed} do not broadcast\n  {expected}") from None


def _stacked(x: Array, lead: tuple[int, ...]) -> Array:
    """The matrices of a stack one above the other."""
    shape = (*lead, *x.shape[-2:])
    wide = x.expand(shape) if is_torch(x) else np.broadcast_to(x, shape)
    return wide.reshape(-1, x.shape[-1])


def _block_diagonal(t: Tensor, like: Array) -> Tensor:
    """The pattern of a stack of matrices as one matrix, each a block on its diagonal, in CSR."""
    *lead, n, m = t.shape
    count = math.prod(lead)
    at, _ = coordinates(t._storage)
    block = np.zeros(at.shape[1], np.int64)
    for c, extent in zip(at[:-2], lead, strict=True):
        block = block * extent + c
    rows, columns = block * n + at[-2], block * m + at[-1]
    order = np.lexsort((columns, rows))
    pos = np.zeros(count * n + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count * n), out=pos[1:])
    pos, crd, ones = (as_array(x, like=like) for x in (pos, columns[order], np.ones(len(rows), np.bool_)))
    s = Storage((count * n, count * m), ow.format("csr"), "bool", False, (None, pos), (None, crd), ones)
    return Tensor._from_storage(s)


def _attended(query: Array, key: Array, value: Array, mask: Tensor, scale: float) -> MaskedTensor:
    """Attention of matrices."""
    turned = key.T if isinstance(key, np.ndarray) else key.mT
    scores = sddmm(mask, query, turned) * scale
    weights = ow.softmax(scores)
    seen = reduce("count", _wrapped_pattern(mask), 1).values > 0
    out = weights @ value
    bits = seen[:, None] & as_array(np.ones(tuple(out.shape), np.bool_), like=seen)
    return strided_tensor(out, as_array(bits, like=out))


def _wrapped_pattern(t: Tensor) -> MaskedTensor:

    return wrap(pattern(t._storage))
