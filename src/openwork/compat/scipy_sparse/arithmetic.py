"""Operators of SciPy's sparse arrays: what each means there, computed by openwork's operations on the Tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as scipys

import openwork as ow

from ... import Tensor
from ...caller import warn
from ...integers import common_shape
from .buffers import readable

__all__ = ["Arithmetic", "dense_of", "is_scalar", "tensor_of"]


def is_scalar(x: Any) -> bool:
    """Whether SciPy takes `x` for a number."""
    return bool(np.isscalar(x)) or (isinstance(x, np.ndarray) and x.ndim == 0)


def tensor_of(x: Any) -> Any:
    """The Tensor of a sparse array of ours or SciPy's; None of anything else."""
    if hasattr(type(x), "__tensor__"):
        return x.__tensor__()
    if isinstance(x, Tensor):
        return x
    return ow.asarray(x) if scipys.issparse(x) else None


def dense_of(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, Tensor) else x


def _nonzero(t: Tensor) -> Tensor:
    """A result of two operands as SciPy has it: it stores no zeros."""
    if not t.fill_value:
        t.eliminate_zeros()
    return t


def _agree(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        common_shape("", (a, b))
    except ValueError:
        raise ValueError(f"inconsistent shapes {a} and {b}") from None


_SCALING: dict[Any, Any] = {operator.mul: operator.imul, operator.truediv: operator.itruediv}
"""Operators by a number that have an in-place form in SciPy's classes."""


class Arithmetic:
    """The operators; `Array` holds the Tensor."""

    __slots__ = ()
    tensor: Tensor
    format: ClassVar[str]
    shape: Any
    dtype: Any
    copy: Any
    _lent: Any
    _like: Any
    _hold: Any
    asformat: Any
    _dense: Any
    _ask: Any
    _buffers: Any
    _compressed: Any

    def _operand(self, other: Any) -> tuple[str, Any]:
        """What kind of operand: a "scalar", "sparse" with its Tensor, "dense", or "stranger"."""
        if is_scalar(other):
            return "scalar", other
        t = tensor_of(other)
        if t is not None:
            return "sparse", t
        if isinstance(other, np.ndarray):
            return "dense", np.asarray(other)
        given = np.asanyarray(other)
        if given.ndim == 0 and given.dtype == np.object_:
            return "stranger", None
        return ("scalar", given[()]) if not given.ndim else ("dense", given)

    def _sum(self, other: Any, run: Callable[[Any, Any], Any]) -> Any:
        kind, x = self._operand(other)
        if kind == "stranger":
            return NotImplemented
        if kind == "scalar":
            return self._ask(lambda lent: run(lent, x))
        if kind == "sparse" and x.shape != self.shape:
            raise ValueError(f"inconsistent shapes {self.shape} and {x.shape}")
        found = run(self.tensor, x)
        return self._like(_nonzero(found)) if kind == "sparse" else self._dense(dense_of(found))

    def __add__(self, other: Any) -> Any:
        return self._sum(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._sum(other, lambda a, b: b - a)

    def _in_its_place(self, run: Callable[[Any, Any], Any], other: Any) -> Any:
        """The in-place form of an operator, as SciPy has it: a list of lists becomes the result, others are scaled by a
        number where they are, and the rest is left to the operator."""
        if run in _SCALING and is_scalar(other):
            self._buffers.scale(_SCALING[run], other)
            return self
        found = run(self, other) if self.format == "lil" else NotImplemented
        if not isinstance(found, Arithmetic):
            return NotImplemented
        self._buffers.replace(found._lent().tolil(copy=True))
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._in_its_place(operator.add, other)

    def __isub__(self, other: Any) -> Any:
        return self._in_its_place(operator.sub, other)

    def __imul__(self, other: Any) -> Any:
        return self._in_its_place(operator.mul, other)

    def __itruediv__(self, other: Any) -> Any:
        return self._in_its_place(operator.truediv, other)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other)

    def multiply(self, other: Any) -> Any:
        """The product of elements, with broadcasting; an unspecified zero stays one, whatever it meets."""
        kind, x = self._operand(other)
        if kind == "stranger":
            return NotImplemented
        if kind == "scalar":
            s = self.tensor._storage
            return self._like(Tensor._from_storage(s.with_values(np.multiply(s.values, x), 0)), self.format)
        _agree(self.shape, x.shape)
        factor = x if kind == "sparse" else ow.asarray(x, format="coo")
        found = ow.multiply(self.tensor, factor, zero_annihilates=True)
        return self._like(_nonzero(found), "coo" if kind == "dense" and found.ndim < 3 else self._compressed)

    def __truediv__(self, other: Any) -> Any:
        kind, x = self._operand(other)
        if kind == "stranger":
            return NotImplemented
        if kind == "scalar":
            return self._ask(lambda lent: lent / x)
        other = x if kind == "dense" else readable(x.to_scipy())
        return self._ask(lambda lent: lent / other)

    __div__ = __truediv__

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented

    def __matmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product(other, reflected=False)

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product(other, reflected=True)

    def _product(self, other: Any, *, reflected: bool) -> Any:
        kind, x = self._operand(other)
        if kind == "stranger":
            return NotImplemented
        inner = (x.shape[-1:], self.shape[-2:][:1]) if reflected else (self.shape[-1:], x.shape[-2:][:1])
        if inner[0] != inner[1]:
            raise ValueError(f"matmul: dimension mismatch with signature (n,k={inner[0]}),(k={inner[1]},m)->(n,m)")
        if self.format == "dia" == getattr(other, "format", None):  # whose diagonals are SciPy's, stored zeros too
            theirs = other._lent() if isinstance(other, Arithmetic) else other
            return self._ask(lambda lent: theirs @ lent if reflected else lent @ theirs)
        try:
            found = ow.matmul(x, self.tensor) if reflected else ow.matmul(self.tensor, x)
        except ow.ShapeError:
            theirs = x if kind == "dense" else readable(x.to_scipy())  # SciPy's error
            return self._ask(lambda lent: theirs @ lent if reflected else lent @ theirs)
        if kind == "dense":
            return self._dense(dense_of(found)) if isinstance(other, np.matrix) else dense_of(found)
        made = found if isinstance(found, Tensor) else ow.asarray(found)
        return self._like(made) if made.ndim else made.to_numpy()

    def dot(self, other: Any) -> Any:
        """`self @ other`, or its multiple by a number; of more dimensions NumPy's `dot`."""
        if self._operand(other)[0] == "stranger":
            raise TypeError(f"argument not supported type: '{type(other)}'")
        t = tensor_of(other)
        if max(len(self.shape), np.ndim(other) if t is None else t.ndim) > 2:
            theirs = other if t is None else readable(t.to_scipy())
            return self._ask(lambda lent: lent.dot(theirs))
        return self * other if is_scalar(other) else self @ other

    def __pow__(self, other: Any) -> Any:
        return self.power(other)

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Every element to the power of a number other than 0."""
        if not is_scalar(n):
            raise NotImplementedError("input is not scalar")
        if not n:
            raise NotImplementedError("zero power is not supported: it would densify the matrix")
        return self._ask(lambda lent: lent.power(n, dtype))

    def __abs__(self) -> Any:
        return self._like(abs(self.tensor), "csr" if self.format in ("lil", "dok") else self.format)

    def __neg__(self) -> Any:
        if self.dtype == np.bool_:
            raise NotImplementedError("negating a boolean sparse array is not supported")
        return self._like(-self.tensor, "csr" if self.format == "lil" else self.format)

    def __round__(self, ndigits: int = 0) -> Any:
        return self._ask(lambda lent: round(lent, ndigits))

    def _compare(self, other: Any, run: Callable[[Any, Any], Any]) -> Any:
        kind, x = self._operand(other)
        if kind == "stranger":
            return NotImplemented
        if kind == "sparse" and x.shape != self.shape:
            if run is operator.eq or run is operator.ne:
                return run is operator.ne
            raise ValueError("inconsistent shape")
        if kind == "dense":
            found = dense_of(run(self.tensor.to_numpy(), x))
            return scipys._sputils.asmatrix(found) if isinstance(other, np.matrix) else self._dense(found)
        if run(0, 0 if kind == "sparse" else x):
            warn(f"Comparing sparse matrices using {run.__name__} is inefficient", scipys.SparseEfficiencyWarning)
        return self._like(_nonzero(ow.asarray(run(self.tensor, x))), "csc" if self.format == "csc" else "csr")

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)

    def _chosen(self, other: Any, run: Callable[[Any, Any], Any]) -> Any:
        kind, x = self._operand(other)
        if kind == "stranger":
            raise NotImplementedError("maximum or minimum with an unrecognized array type is not supported")
        if kind == "sparse" and x.shape != self.shape:
            raise ValueError(f"inconsistent shapes {self.shape} and {x.shape}")
        if kind == "dense":
            return self._dense(dense_of(run(self.tensor.to_numpy(), x)))
        found = run(self.tensor, x)
        if found.fill_value:
            warn("The result is dense.", scipys.SparseEfficiencyWarning)
        return self._like(_nonzero(found), self._compressed)

    def maximum(self, other: Any) -> Any:
        """The larger of two elements."""
        return self._chosen(other, ow.maximum)

    def minimum(self, other: Any) -> Any:
        """The smaller of two elements."""
        return self._chosen(other, ow.minimum)
