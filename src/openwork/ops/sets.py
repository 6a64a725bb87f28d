"""The distinct elements of a tensor: stored values, and the fill value where some element is unspecified."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..classes import frozen
from ..compiler.conversion.level_runs import unbatched
from ..errors import UnsupportedError
from ..format import coo
from ..provided import provided
from ..runtime.operation import operation
from ..storage.buffers import as_array, is_torch, length, to_numpy
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .axes import as_tensor
from .indexing.keys import Ints
from .result_format import to_result_format
from .sorting import plain_values

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


@operation(grad=False)
def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements, where each is first, which of them each element is, and how often each occurs.

    Parameters
    ----------
    x : Tensor of any format, dtype and fill value

    Returns
    -------
    values : Tensor, a dense vector, ascending (complex numbers by real parts first), NaN last; every NaN is one of its
        own
    indices : Tensor, a dense vector, int64, the row-major place of the first occurrence
    inverse_indices : Tensor, int64, shape of `x`, in its structure, the fill value's place in `values` as fill value;
        dense where unspecified elements are NaN and several, as they are all distinct then
    counts : Tensor, a dense vector, int64

    Guarantees: values[inverse_indices] == x; sum(counts) == x.size; x.reshape(-1)[indices] == values.
    Cost: O(nse log nse), and as many more as there are unspecified NaNs.
    Raises UnsupportedError where x.size has no 64-bit number.

    See also: unique_values, unique_counts.

    Examples
    --------
    >>> ow.unique_all(ow.asarray([3, 0, 3], format="coo")).counts.to_numpy()
    array([1, 2])
    """
    distinct = _distinct(as_tensor(x))
    return UniqueAll(
        distinct.values(), distinct.vector(distinct.indices()), distinct.inverse(), distinct.vector(distinct.counts())
    )


@operation(grad=False, shape="counted", fill="dense")
def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs: (values, counts), as of `unique_all`.

    Cost: O(nse log nse).
    See also: unique_all, unique_values.

    Examples
    --------
    >>> values, counts = ow.unique_counts(ow.asarray([3, 0, 3], format="coo"))
    >>> counts.to_numpy()
    array([1, 2])
    """
    distinct = _distinct(as_tensor(x))
    return UniqueCounts(distinct.values(), distinct.vector(distinct.counts()))


@operation(grad=False)
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is: (values, inverse_indices), as of `unique_all`.

    Returns
    -------
    values : Tensor, a dense vector
    inverse_indices : Tensor, int64, in the structure of `x`

    Cost: O(nse log nse).
    See also: unique_all, unique_values.

    Examples
    --------
    >>> ow.unique_inverse(ow.asarray([3, 0, 3], format="coo")).inverse_indices.to_numpy()
    array([1, 0, 1])
    """
    distinct = _distinct(as_tensor(x))
    return UniqueInverse(distinct.values(), distinct.inverse())


@operation(numpy="unique", grad=False, masked=provided("masked unique"), shape="counted", dtype="same", fill="dense")
def unique_values(x: Any, /) -> Tensor:
    """The distinct elements as a dense vector, ascending, NaN last and every NaN one of its own.

    Cost: O(nse log nse).
    See also: unique_all, isin.

    Examples
    --------
    >>> ow.unique_values(ow.asarray([3, 0, 3], format="coo")).to_numpy()
    array([0, 3])
    """
    return _distinct(as_tensor(x)).values()


@frozen
class _Distinct:
    """Distinct values of a tensor's elements: of the stored ones in row-major order, then of unspecified ones.

    One unspecified element stands for all of them, but where they are NaN: each stands for itself then.
    """

    t: Tensor
    stored: Storage
    first: np.ndarray[Any, Any]
    which: np.ndarray[Any, Any]
    many: np.ndarray[Any, Any]

    @property
    def absent(self) -> int:
        """How many elements are unspecified."""
        return self.t.size - length(self.stored.values)

    def values(self) -> Tensor:
        """The distinct values, in the tensor's library, with gradients to the first occurrences."""
        stored, absent = self.stored.values, len(self.which) - length(self.stored.values)
        fill = np.full(absent, self.t.fill_value)
        if not is_torch(stored):
            return Tensor._from_dense(np.concatenate([stored, fill.astype(stored.dtype)])[self.first])
        import torch

        elements = torch.cat([stored, torch.from_numpy(fill).to(stored.device, stored.dtype)])
        return Tensor._from_dense(elements[torch.from_numpy(self.first).to(stored.device)])

    def vector(self, array: np.ndarray[Any, Any]) -> Tensor:
        """Numbers as a dense tensor of the tensor's library."""
        return Tensor._from_dense(as_array(np.asarray(array, np.int64), like=self.t.values))

    def counts(self) -> Ints:
        """How often each value occurs."""
        counts, nse = self.many.astype(np.int64), length(self.stored.values)
        if len(self.which) == nse + 1:
            counts[self.which[-1]] += self.absent - 1
        return counts

    def indices(self) -> Ints:
        """The row-major place of the first occurrence of each value."""
        nse, absent = length(self.stored.values), len(self.which) - length(self.stored.values)
        linear = np.append(self._places(), self._gaps(absent))
        firsts: Ints = linear[self.first]
        if absent == 1:
            fill_value = self.which[-1]
            firsts[fill_value] = min(firsts[fill_value], linear[nse])
        return firsts

    def inverse(self) -> Tensor:
        """The number of each element's value."""
        t, nse = self.t, length(self.stored.values)
        which = self.which.astype(np.int64)
        if t.format.is_dense:
            return self.vector(which.reshape(t.shape)).asformat(unbatched(t.format))
        if len(which) > nse + 1:
            out = np.empty(t.size, np.int64)
            out[np.append(self._places(), self._gaps(len(which) - nse))] = which
            return self.vector(out.reshape(t.shape))
        fill = int(which[-1]) if len(which) > nse else 0
        s = self.stored.with_values(as_array(which[:nse].copy(), like=t.values), fill)
        return to_result_format(s, t.format)

    def _places(self) -> Ints:
        """The row-major places of the stored elements."""
        out = np.zeros(length(self.stored.values), np.int64)
        if self.t.format.is_dense:
            return np.arange(len(out), dtype=np.int64)
        for c, n in zip(self.stored.crd, self.t.shape, strict=True):
            out *= n
            out += to_numpy(c)
        return out

    def _gaps(self, count: int) -> Ints:
        """The first `count` places that are not stored."""
        linear = self._places()
        # Before stored element k there are places[k] - k gaps.
        before = linear - np.arange(len(linear))
        numbers = np.arange(count)
        gaps: Ints = numbers + np.searchsorted(before, numbers, "right")
        return gaps


def _distinct(t: Tensor) -> _Distinct:
    if t.size >= 2**63:
        raise UnsupportedError(
            f"unique: shape {t.shape} has more places than 64 bits number\n  help: unique of t.values"
        )
    dense = t.format.is_dense or not t.ndim
    stored = Tensor._from_dense(t.to_dense())._storage if dense else t.asformat(coo(t.ndim))._storage
    values, absent = plain_values(stored.values), t.size - length(stored.values)
    extra = min(absent, 1) if t.fill_value == t.fill_value else absent
    fill = np.full(extra, t.fill_value, values.dtype) if extra else values[:0]
    _, first, which, many = np.unique(
        np.concatenate([values, fill.astype(values.dtype)]),
        return_index=True, return_inverse=True, return_counts=True, equal_nan=False,
    )  # fmt: skip
    return _Distinct(t, stored, first, which.reshape(-1), many)
