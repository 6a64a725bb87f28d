"""Index letters and masked tensors -> sums of products of specified elements, specified where a product was formed.

A product of sparse operands stores an element wherever a product was formed, zeros included: that is what is
specified. Where the result comes as a dense array, or an operand has a value everywhere, the same product of the
patterns tells. Strided operands take the array library's product of arrays with zeros for what is missing, where all
that is specified is finite: 0 * inf would be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

import openwork as ow

from .. import Format, Semiring, Tensor, UnsupportedError, sparse_mask, zeros_like
from ..compiler.schedule.product import prefers_sparse
from ..interop.operands import adopt_foreign
from ..ir.index import Access, Apply
from ..ops import mask_formats as forms
from ..ops.products.subscripts import parse_subscripts, subscripts_of
from ..provided import provides
from ..runtime.contraction.sparse import absent
from ..runtime.zero_annihilation import bounded
from ..storage.buffers import as_array, cast, is_array, is_torch, scalar_of, to_numpy
from ..tensor.lazy import is_lazy
from .construct import as_masked_tensor, strided_tensor
from .structure import in_one_library, merged, pattern, settled
from .tensor import MaskedTensor, wrap, zero

__all__ = ["einsum", "stored"]

LARGEST = 3.4e38


@provides("masked einsum")
def einsum(
    subscripts: Any, /, *operands: Any, format: str | Format | None = None, semiring: str | Semiring = "plus_times"
) -> MaskedTensor:
    """The sums of products that index letters name, of specified elements only.

    Parameters
    ----------
    subscripts : as for `openwork.einsum`
    operands : masked tensors, Tensors and dense arrays, one for each term
    format : of the result; without, that of the first masked operand, or one like it of the result's rank
    semiring : what sums and products are; unspecified elements of Tensors then take no part either

    Returns
    -------
    MaskedTensor, missing where no product of specified elements was summed

    Cost: that of `openwork.einsum`, and of the same product of the patterns where an operand is dense.
    Raises UnsupportedError where a sparse Tensor, which has a value everywhere, makes far more elements specified than
    the operands have.

    See also: matmul.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.einsum("i,i->i", m, m))
    MaskedTensor(
      [  1.0000,   4.0000,       --]
    )
    """
    ring = ow.semiring(semiring)
    if not isinstance(subscripts, str):
        subscripts, operands = subscripts_of((subscripts, *operands))
    factors = list(in_one_library(*(_factor(x, ring) for x in operands)))
    if not any(isinstance(x, MaskedTensor) for x in factors):
        raise UnsupportedError("einsum: no operand is masked\n  help: openwork.einsum")
    inputs, output, _ = parse_subscripts(subscripts, tuple(x.ndim for x in factors))
    found = _product(*_ranked(inputs, factors), output, ring)
    return found if format is None else found.asformat(format)


def stored(m: MaskedTensor) -> Tensor:
    """The specified elements as a Tensor whose other elements are 0."""
    s = m._tensor._storage
    return m._tensor if not s.fill_value else Tensor._from_storage(s.with_values(s.values, zero(s.scalar)))


def _factor(x: Any, ring: Semiring) -> Any:
    """A masked tensor, a sparse Tensor or an array; over a semiring that says so, what a Tensor stores."""
    if isinstance(x, MaskedTensor) or is_array(x):
        return x
    x = adopt_foreign(x.compute() if is_lazy(x) else x)
    if not isinstance(x, Tensor):
        return np.asarray(x)
    if x.format.is_dense:
        return x.to_dense()
    if ring.name == "plus_times":
        return x
    absent(x._storage, ring, x._storage.scalar, "einsum")
    return as_masked_tensor(x)


def _ranked(inputs: tuple[str, ...], factors: list[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """Numbers as vectors of one element, with an index of their own."""
    if all(inputs):
        return inputs, factors
    spare = iter([c for c in ascii_letters if not any(c in t for t in inputs)])
    wide = [
        x if t else wrap(x._tensor) if isinstance(x, MaskedTensor) else x.reshape(1) for t, x in _zip(inputs, factors)
    ]
    return tuple(t or next(spare) for t in inputs), wide


def _zip(inputs: Sequence[str], factors: Sequence[Any]) -> Any:
    return zip(inputs, factors, strict=True)


def _product(inputs: tuple[str, ...], factors: list[Any], output: str, ring: Semiring) -> MaskedTensor:
    """The product of operands of rank 1 and more."""
    text = f"{','.join(inputs)}->{output}"
    masked = [x for x in factors if isinstance(x, MaskedTensor)]
    if len(factors) == 1 and sorted(inputs[0]) == sorted(output):
        return masked[0].transpose(tuple(inputs[0].index(c) for c in output))
    if ring.name == "plus_times" and all(_is_plain(x) for x in factors):
        return _strided(text, factors)
    operands = [stored(x) if isinstance(x, MaskedTensor) else x for x in factors]
    semiring = ring if ring.name != "plus_times" else ring.name  # by its name, of which prepared calls are kept
    values = ow.einsum(text, *operands, semiring=semiring)
    terms = [t for t, x in _zip(inputs, factors) if isinstance(x, MaskedTensor)]
    if output and _is_missing(_apart(inputs, output), terms, masked):
        t = values if isinstance(values, Tensor) else Tensor._from_dense(values)
        return wrap(settled(sparse_mask(t, zeros_like(t, format="coo")), masked[0].format))
    if len(masked) == len(factors) > 1 and output:
        return wrap(settled(values, masked[0].format))
    if any(isinstance(x, Tensor) for x in factors):
        sizes = {c: n for t, x in _zip(inputs, factors) for c, n in zip(t, x.shape, strict=True)}
        return _everywhere(values, terms, output, masked, sizes)
    return _companion(values, terms, output, masked)


def _apart(inputs: Sequence[str], output: str) -> set[str]:
    """The letters that share no operand with a letter of the result, nor by way of other letters."""
    apart, reached = set("".join(inputs)), set(output)
    while reached:
        apart -= reached
        reached = {c for t in inputs if reached & set(t) for c in t} & apart
    return apart


def _is_missing(letters: set[str], terms: list[str], masked: list[MaskedTensor]) -> bool:
    """Whether the masked operands of these letters, which make a factor of the whole result, have no product."""
    parts = [(t, m) for t, m in _zip(terms, masked) if letters & set(t)]
    _, products = _counted([t for t, _ in parts], "", [m for _, m in parts]) if parts else ("", 1)
    return not bool(products > 0)


def _counted(
    terms: list[str], output: str, masked: list[MaskedTensor], sizes: dict[str, int] | None = None
) -> tuple[str, Any]:
    """The letters of the result that masked operands have, and how many products of their elements there are; sparse
    where extents are given and far more than the elements."""
    out = "".join(c for c in output if any(c in t for t in terms))
    held = sum(len(m.values) for m in masked)
    format = "coo" if out and sizes is not None and prefers_sparse(math.prod(sizes[c] for c in out), held) else None
    return out, ow.einsum(f"{','.join(terms)}->{out}", *(_ones(m) for m in masked), format=format)


def _companion(values: Any, terms: list[str], output: str, masked: list[MaskedTensor]) -> MaskedTensor:
    """A dense result, specified where the patterns of the masked operands have a product."""
    dense = values.to_dense() if isinstance(values, Tensor) else values
    out, products = _counted(terms, output, masked)
    bits = to_numpy(products.to_dense() if isinstance(products, Tensor) else products) > 0
    bits = bits.reshape([n if c in out else 1 for c, n in zip(output, dense.shape, strict=True)])
    result = strided_tensor(dense, as_array(np.broadcast_to(bits, tuple(dense.shape)).copy(), like=dense))
    if not output or forms.is_strided(masked[0].format):
        return result
    return result.asformat(forms.related(masked[0].format, result.ndim))


def _everywhere(
    values: Any, terms: list[str], output: str, masked: list[MaskedTensor], sizes: dict[str, int]
) -> MaskedTensor:
    """A product with sparse Tensors, whose unspecified elements are values: specified wherever the masked operands
    have a product, whatever the Tensors store.

    Raises UnsupportedError where these are far more than the operands' elements.
    """
    out, products = _counted(terms, output, masked, sizes)
    there = products if isinstance(products, Tensor) else Tensor._from_dense(products)
    marks = strided_tensor(there.to_dense(), (there > 0).to_dense()) if there.format.is_dense else wrap(there)
    count = marks.nse * math.prod(sizes[c] for c in output if c not in out)
    held = sum(len(m.values) for m in masked) + (len(values.values) if isinstance(values, Tensor) else count)
    if prefers_sparse(count, held):
        size = count * masked[0].dtype.itemsize
        raise UnsupportedError(
            "einsum: a masked tensor with a sparse Tensor, which has a value everywhere:"
            f" {count:,} elements, {size:,} bytes\n  help: as_masked_tensor(t), whose other elements are missing"
        )
    if not out:
        return _companion(values, terms, output, masked)
    tensor = values if isinstance(values, Tensor) else Tensor._from_dense(values)
    e = Apply("given", (Access("V", tuple(output)), Access("P", tuple(out))))
    return merged(e, {"V": tensor, "P": marks}, masked[0].format, tensor.shape)


def _ones(m: MaskedTensor) -> Tensor:
    """The pattern in numbers."""
    marks = pattern(m._tensor._storage)
    return Tensor._from_storage(marks._storage.with_values(cast(marks.values, "i64"), 0))


def _is_plain(x: Any) -> bool:
    """Whether an operand is row-major arrays, whose specified elements are finite."""
    if is_array(x):
        return scalar_of(x) == "bool" or bounded(to_numpy(x.detach() if is_torch(x) else x).reshape(-1), LARGEST)
    if isinstance(x, Tensor) or x.format != forms.strided(x.ndim) or scalar_of(x.values) in ("bool", "f16", "bf16"):
        return False
    return bounded(to_numpy(x.detach().filled(0).to_dense()).reshape(-1), LARGEST)


def _strided(text: str, given: list[Any]) -> MaskedTensor:
    """The array library's product, and that of the masks."""

    arrays = [x.filled(0).to_dense() if isinstance(x, MaskedTensor) else x for x in given]
    found = np.einsum(text, *(_marks(x) for x in given), optimize=True)
    if any(is_torch(a) for a in arrays):
        import torch

        values = torch.einsum(text, *(as_array(a, like=torch.empty(0)) for a in arrays))
    else:
        values = np.asarray(np.einsum(text, *arrays, optimize=True))
    return strided_tensor(values, as_array(np.asarray(found > 0), like=values))


def _marks(x: Any) -> Any:
    """1 where an operand is specified, 0 elsewhere."""
    if is_array(x):
        return np.ones(tuple(x.shape), np.float32)
    return to_numpy(x.get_mask().to_dense()).astype(np.float32)
