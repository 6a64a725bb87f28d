"""`einsum`: index letters and sparse and dense operands -> their sum of products over any semiring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler.semiring import Semiring
from ...errors import ShapeError
from ...interop.operands import adopt_foreign
from ...provided import provided
from ...runtime.contraction.sparse import Term, alone
from ...runtime.formats import resolve_format
from ...runtime.operation import operation
from ...runtime.semirings import semiring as semiring_of
from ...storage.buffers import is_array
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from .product import product
from .subscripts import parse_subscripts, subscripts_of

if TYPE_CHECKING:
    from ...format.format import Format
    from ...tensor.tensor import Tensor

__all__ = ["einsum"]


@operation(
    masked=provided("masked einsum"),
    returns="product",
    shape="product",
    dtype="semiring",
    fill="zero",
    format="product",
)
def einsum(
    subscripts: Any, /, *operands: Any, format: str | Format | None = None, semiring: str | Semiring = "plus_times"
) -> Any:
    """The sums of products that index letters name, of any number of sparse and dense operands.

    Parameters
    ----------
    subscripts : "ijk,jr,kr->ir"; without an arrow the letters that occur once make up the result, sorted. Or, as in
        NumPy, operands and lists of numbers in turn: `einsum(A, [0, 1], B, [1, 2], [0, 2])`
    operands : Tensors and dense arrays, one for each term
    format : the result's format; without, that of the sparse operands where it is the same for all and has the
        result's rank, else "csr" or "coo" of its rank
    semiring : what sums and products are, a name or a Semiring; unspecified elements take no part

    Returns
    -------
    a sparse Tensor where all operands are sparse and there are several; with dense operands too where these scale
    elements alone (`ij,j,kj->ik`, as `(A * d) @ A.T`), or one sparse operand has the result's indices (`ij,ik,kj->ij`):
    nothing else can be there; with other dense operands an array of their library; a dense Tensor where all operands
    are Tensors, and one of them dense or all but one; of one operand what `sum` over the letters that the result lacks
    is

    Guarantees: equal to `numpy.einsum` on the dense arrays up to the order of floating-point sums, and but for infinity
    and NaN: what is unspecified takes no part, so that 0 times infinity is no NaN there. A sparse result is sorted and
    without duplicates, and the same for any number of threads.
    Cost: two operands at a time, in the order that is cheapest by estimates from numbers of elements; one sparse
    operand with dense ones is one kernel, O(nse * extents of the letters that it lacks), unless pairs are far fewer
    products. Of more than 8 operands opt_einsum's greedy order where it is installed.
    Raises ShapeError if extents disagree, UnsupportedError for fill values that are not the semiring's zero.
    Source: numpy.einsum's notation; Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    See also: evaluate, tensordot, matmul.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.einsum("ij,j->i", A, np.array([10., 20.]))
    array([40., 10.])
    >>> ow.einsum("ij,jk->ik", A, A, semiring="min_plus").to_numpy()
    array([[ 3., inf],
           [inf,  3.]])
    """
    ring = semiring_of(semiring)
    if not isinstance(subscripts, str):
        subscripts, operands = subscripts_of((subscripts, *operands))
    computed = [x.compute() if is_lazy(x) else x for x in operands]
    arrays = [x if isinstance(x, Tensor) else _array(x) for x in map(adopt_foreign, computed)]
    inputs, output, broadcast_letters = parse_subscripts(subscripts, tuple(x.ndim for x in arrays))
    all_tensors = all(isinstance(x, Tensor) for x in arrays)
    values = [x.to_dense() if isinstance(x, Tensor) and x.format.is_dense else x for x in arrays]
    inputs, values = _drop_unit_dims(subscripts, inputs, values, broadcast_letters)
    target = None if format is None else resolve_format(format, len(output))
    result = product(inputs, output, values, ring, target, f"einsum {subscripts!r}")
    if isinstance(result, Tensor):
        if target is not None:
            return result.asformat(target)
        return result if all_tensors or ring.name == "plus_times" else result.to_dense()
    if target is not None:
        return Tensor._from_dense(result).asformat(target)
    return Tensor._from_dense(result) if all_tensors else result


def _array(x: Any) -> Any:
    return x if is_array(x) else np.asarray(x)


def _drop_unit_dims(
    text: str, inputs: tuple[str, ...], values: list[Any], broadcast_letters: str
) -> tuple[tuple[str, ...], list[Any]]:
    """Terms and operands without the dimensions of extent one that broadcast; ShapeError where extents disagree."""
    extents: dict[str, int] = {}
    letters = "".join(inputs)
    sizes = [n for x in values for n in x.shape]
    if len(set(zip(letters, sizes, strict=True))) == len(set(letters)):
        return inputs, values
    for term, x in zip(inputs, values, strict=True):
        for c, n in zip(term, x.shape, strict=True):
            extent = extents.setdefault(c, n)
            if extent != n and not (1 in (extent, n) and c in broadcast_letters):
                shapes = "; ".join(f"{t} has shape {tuple(v.shape)}" for t, v in zip(inputs, values, strict=True))
                raise ShapeError(
                    f"einsum {text!r}: index {c} has extents {extent} and {n}\n  got: {shapes}"
                    "\n  help: make these dimensions equal, by slicing or transposing an operand"
                )
            extents[c] = max(extent, n) if extent != 0 and n != 0 else 0
    terms, out = [], []
    for term, x in zip(inputs, values, strict=True):
        unit_dims = [d for d, c in enumerate(term) if x.shape[d] != extents[c]]
        terms.append("".join(c for d, c in enumerate(term) if d not in unit_dims))
        out.append(_squeeze(x, unit_dims) if unit_dims else x)
    return tuple(terms), out


def _squeeze(x: Any, unit_dims: Sequence[int]) -> Any:
    """The operand without dimensions of extent one."""

    letters = "abcdefghijklmnopqrstuvwxyz"[: x.ndim]
    remaining = "".join(c for d, c in enumerate(letters) if d not in unit_dims)
    if not isinstance(x, Tensor):
        return x.reshape(tuple(n for d, n in enumerate(x.shape) if d not in unit_dims))
    return Tensor._from_storage(alone(Term(letters, x._storage), remaining, semiring_of("any_first")).storage)
