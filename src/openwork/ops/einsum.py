"""`einsum` with one sparse operand, and the tensor products that are instances of it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..ir.index import Access, Apply, Assignment, Expression
from ..storage.buffers import is_array, library_of, to_numpy
from .contract import contract
from .promote import promote
from .strided import strided

if TYPE_CHECKING:
    pass

__all__ = ["einsum", "mttkrp", "ttm", "ttv"]


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Sums of products by index letters, with one sparse operand and dense ones.

    Parameters
    ----------
    subscripts : "ijk,jr,kr->ir"; without an arrow the letters that occur once make up the result, sorted
    operands : Tensors and dense arrays, one for each term; exactly one of them sparse

    Returns
    -------
    array of the dense operands' library; a dense Tensor where all operands are Tensors

    Guarantees: equal to `numpy.einsum` on the dense arrays up to the order of floating-point sums.
    Cost: O(nse * extents of the letters that the sparse operand lacks).
    Raises ShapeError if extents disagree, UnsupportedError for several sparse operands or a repeated letter in a term.
    Source: numpy.einsum's notation; Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.einsum("ij,j->i", A, np.array([10., 20.]))
    array([40., 10.])
    """
    from .tensor import Tensor

    inputs, output = parse_subscripts(subscripts, len(operands))
    dense = [x.to_dense() if isinstance(x, Tensor) and x.format.is_dense else x for x in operands]
    plain = all(isinstance(x, Tensor) for x in operands)
    if not any(isinstance(x, Tensor) for x in dense):
        result = np.einsum(f"{','.join(inputs)}->{output}", *(to_numpy(_array(x)) for x in dense))
        return Tensor._from_dense(np.asarray(result)) if plain else result
    sparse = [x for x in dense if isinstance(x, Tensor)]
    if len(sparse) > 1:
        raise UnsupportedError(
            f"einsum {subscripts!r} of {len(sparse)} sparse tensors is not there yet"
            "\n  supported: one sparse operand with dense ones\n  help: make all but one dense with .to_dense()"
        )
    result = _single(inputs, output, dense, subscripts)
    return Tensor._from_dense(result) if plain else result


def _array(x: Any) -> Any:
    return x if is_array(x) else np.asarray(x)


def _single(inputs: tuple[str, ...], output: str, operands: list[Any], text: str) -> Any:
    from .tensor import Tensor

    if any(len(set(term)) != len(term) for term in (*inputs, output)):
        raise UnsupportedError(
            f"einsum {text!r}: a letter repeated in one term (a diagonal) is not there yet\n  help: take it first"
        )
    values: dict[str, Any] = {}
    like: Any = None
    scalars = []
    for k, x in enumerate(operands):
        if isinstance(x, Tensor):
            if x.fill_value:
                raise UnsupportedError(
                    f"einsum of a tensor with fill value {x.fill_value!r}\n  supported: fill value 0"
                    "\n  help: subtract the fill value first"
                )
            values[f"T{k}"], sparse = x._storage, x._storage
            scalars.append(sparse.scalar)
        else:
            view = strided(_array(x))
            values[f"T{k}"], like = view, view.owner
            scalars.append(view.scalar)
    like = sparse.values if like is None else like
    for name, term in zip(values, inputs, strict=True):
        if len(values[name].shape) != len(term):
            raise ShapeError(
                f"einsum {text!r}: the term {term!r} has {len(term)} letters, its operand shape {values[name].shape}"
            )
    return contract(_statement(inputs, output), values, promote(tuple(scalars), library_of(like)), like)


@lru_cache(maxsize=256)
def _statement(inputs: tuple[str, ...], output: str) -> Assignment:
    rhs: Expression | None = None
    for k, term in enumerate(inputs):
        access = Access(f"T{k}", tuple(term))
        rhs = access if rhs is None else Apply("mul", (rhs, access))
    assert rhs is not None
    return Assignment(Access("out", tuple(output)), "+=", rhs)


@lru_cache(maxsize=256)
def parse_subscripts(text: str, operands: int) -> tuple[tuple[str, ...], str]:
    """The input terms and the output of an einsum's text."""
    left, arrow, right = text.replace(" ", "").partition("->")
    inputs = tuple(left.split(","))
    if "." in text:
        raise UnsupportedError(f"einsum {text!r}: the ellipsis is not there yet\n  help: write the letters out")
    if len(inputs) != operands:
        raise ShapeError(f"einsum {text!r} has {len(inputs)} terms, got {operands} operands")
    letters = "".join(inputs)
    bad = [c for c in letters + right if not c.isalpha()]
    if bad:
        raise ShapeError(f"einsum {text!r}: {bad[0]!r} is no index letter\n  help: write 'ij,jk->ik'")
    if not arrow:
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    unknown = [c for c in right if c not in letters]
    if unknown or len(set(right)) != len(right):
        raise ShapeError(
            f"einsum {text!r}: the output has {(unknown or [right])[0]!r}, which must stand once and on the left"
        )
    return inputs, right


def mttkrp(t: Any, factors: list[Any], dim: int) -> Any:
    """Matricised tensor times Khatri-Rao product: the kernel of alternating least squares for CP decompositions.

    Parameters
    ----------
    t : Tensor, shape (n_0, ..., n_{d-1})
    factors : one array (n_k, r) for each dimension; that of `dim` is not read and may be None
    dim : the dimension that stays

    Returns
    -------
    array (n_dim, r): out[i, r] = sum of t[..., i, ...] times the product over k != dim of factors[k][i_k, r]

    Cost: O(nse * r), less where factors are shared by a fibre.
    Source: Bader and Kolda, Efficient MATLAB computations with sparse and factored tensors, SISC 2007.
    """
    letters = "abcdefghijklmnop"[: t.ndim]
    others = [k for k in range(t.ndim) if k != dim % t.ndim]
    terms = ",".join(letters[k] + "r" for k in others).replace("rr", "r")
    text = f"{letters},{terms}->{letters[dim % t.ndim]}r"
    return einsum(text, t, *(factors[k] for k in others))


def ttv(t: Any, v: Any, dim: int) -> Any:
    """Tensor times vector: the sum over dimension `dim` of t times v, shape without that dimension."""
    letters = "abcdefghijklmnop"[: t.ndim]
    d = dim % t.ndim
    return einsum(f"{letters},{letters[d]}->{letters[:d]}{letters[d + 1 :]}", t, v)


def ttm(t: Any, m: Any, dim: int) -> Any:
    """Tensor times matrix (n_dim, r): dimension `dim` is replaced by one of extent r."""
    letters = "abcdefghijklmnop"[: t.ndim]
    d = dim % t.ndim
    return einsum(f"{letters},{letters[d]}z->{letters[:d]}z{letters[d + 1 :]}", t, m)
