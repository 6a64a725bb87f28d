"""Lazy expressions: `lazy(x)` and the graph of nodes that operators and functions build of it, run by `compute`.

A node has two descriptions of its operation: what it computes, for `fusion` to put several into one kernel, and the
function that does it alone, which is always right. Operations that do not defer compute what they are given first.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

from ..errors import UnsupportedError
from ..provided import provided, provides
from ..runtime.gradient_hook import any_dense_gradient
from ..runtime.overrides import takes_over
from ..runtime.values import BINARY, UNARY
from ..storage.buffers import is_array
from ..tables import METHODS
from .expression_graph import LEAF, REDUCE, TRANSPOSE, Node, flat, of_flat
from .expression_text import show
from .methods import LazyMethods
from .operators import Operators
from .tensor import Tensor

matmul = provided("matmul", __name__)
asarray = provided("asarray", __name__)
meta_of = provided("meta_of", __name__)
elementwise = provided("elementwise", __name__)
unary = provided("unary", __name__)
compute = provided("compute", __name__)
swapped_axes = provided("swapped_axes", __name__)


__all__ = ["Lazy", "as_number", "defer", "is_lazy", "lazy", "leaf"]


class Lazy(Node, Operators, LazyMethods):
    """A tensor that is not computed yet; `ow.compute` computes it, alone or with others.

    It takes the operators, the array API's elementwise functions, `where`, `@`, reductions and transposes. Anything
    else computes it first, and goes on with the result.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> sums = (ow.lazy(A) * 3 + A).sum(axis=1)
    >>> ow.compute(sums).to_numpy()
    array([8., 4.])
    """

    __slots__ = ()

    def compute(self) -> Any:
        """The value, a Tensor or array as the operations give it one by one."""
        if not self.known:
            self._value = compute(self)
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the dimensions; nothing is computed where the operations' rules tell them."""

        meta = meta_of(self)
        return tuple(self.compute().shape if meta is None else meta.shape)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""

        meta = meta_of(self)
        return self.compute().dtype if meta is None else meta.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> Lazy:
        """The transpose: all dimensions in reverse order."""
        return Lazy(TRANSPOSE, "T", (self,), attrgetter("T"))

    @property
    def mT(self) -> Lazy:
        """The transpose of the last two dimensions."""
        return Lazy(TRANSPOSE, "mT", (self,), attrgetter("mT"))

    def transpose(self, *axes: Any) -> Lazy:
        """The dimensions in another order, as `Tensor.transpose` takes them."""
        if len(axes) == 2:
            axes = (tuple(swapped_axes(self.ndim, *axes, "transpose")),)
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        return Lazy(TRANSPOSE, "transpose", (self,), methodcaller("transpose", *axes), order)

    def __getattr__(self, name: str) -> Any:
        """Anything else is asked of the value."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.compute(), name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        import numpy as np

        return np.asarray(self.compute(), *args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        op = _ufuncs().get(ufunc.__name__)
        if method != "__call__" or kwargs or op is None:
            return getattr(ufunc, method)(*(x.compute() if is_lazy(x) else x for x in inputs), **kwargs)
        if op == "matmul":
            return _matmul(*inputs)

        return unary(op, inputs[0]) if len(inputs) == 1 else elementwise(op, inputs[0], inputs[1])

    def __getitem__(self, key: Any) -> Tensor:
        result: Tensor = self.compute()[key]
        return result

    def __setitem__(self, key: Any, values: Any) -> None:
        raise UnsupportedError(
            "A[key] = value of a lazy expression, which has no memory\n  help: ow.compute(A).at[key].set(value)"
        )

    @property
    def at(self) -> Any:
        """As of the value."""
        return self.compute().at

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch's functions, of the values."""
        return func(*_computed(args), **_computed(kwargs or {}))

    def __repr__(self) -> str:
        return f"lazy({show(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """As a table of operations, so that pickles and copies of deep expressions need no recursion."""
        return _of_flat, flat(self)


def _computed(x: Any) -> Any:
    """An argument, with the values of the lazy tensors in it."""
    if isinstance(x, dict):
        return {key: _computed(value) for key, value in x.items()}
    if type(x) in (tuple, list):
        return type(x)(map(_computed, x))
    return x.compute() if is_lazy(x) else x


def _of_flat(*table: Any) -> Lazy:
    expression: Lazy = of_flat(Lazy, leaf, table)
    return expression


FOLDS = {
    "sum": "add", "prod": "mul", "mean": "add", "min": "min", "max": "max", "any": "max", "all": "min",
    "count_nonzero": "add",
}  # fmt: skip
"""Reductions that are deferred, and the operation of the loop IR that combines the elements of each."""


def _method(name: str) -> Callable[..., Any]:
    def method(self: Lazy, axis: Any = None, *, keepdims: bool = False, dtype: Any = None) -> Lazy:
        options = {"axis": axis, "keepdims": keepdims} | ({} if dtype is None else {"dtype": dtype})
        return Lazy(REDUCE, name, (self,), methodcaller(name, **options), ("method", axis, keepdims, dtype))

    method.__name__, method.__doc__ = name, METHODS.get(name, "")
    return method


for _name in FOLDS:
    setattr(Lazy, _name, _method(_name))


def _matmul(a: Any, b: Any) -> Any:

    return matmul(a, b)


def _ufuncs() -> dict[str, str]:
    """NumPy's ufuncs by name, and the operations that they are."""

    return {numpy: op for op, numpy in (UNARY | BINARY).items()} | {"matmul": "matmul"}


@provides("is_lazy")
def is_lazy(x: object) -> bool:
    """Whether `x` is an expression that is not computed yet."""
    return type(x) is Lazy


def lazy(x: Any, /) -> Lazy:
    """`x` as the operand of an expression that is run by `ow.compute`.

    Parameters
    ----------
    x : Tensor, masked tensor, array, or what `ow.asarray` takes; a Lazy is returned as it is

    Returns
    -------
    Lazy; nothing is copied or computed

    Cost: O(1); nothing is computed.
    See also: compute, fused, explain.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A, x = ow.asarray(np.eye(3), format="csr"), np.ones(3)
    >>> y = (ow.lazy(A) + A) @ x
    >>> y
    lazy((A + A) @ x)
    >>> ow.compute(y)
    array([2., 2., 2.])
    """
    if isinstance(x, Lazy):
        return x
    if any_dense_gradient((x,)):
        raise UnsupportedError(
            "lazy: an expression has no gradients at every element\n  help: ow.fused(function)(x), or x.detach()"
        )
    return leaf(x if isinstance(x, Tensor) or is_array(x) or takes_over(x) else asarray(x))


def leaf(value: Any) -> Lazy:
    """The node of a Tensor or array."""
    return Lazy(LEAF, "", (value,), _no_call)


def _no_call() -> Any:
    raise AssertionError("a leaf has its value")


def defer(kind: str, name: str, call: Callable[..., Any], args: tuple[Any, ...], options: tuple[Any, ...] = ()) -> Lazy:
    """The node of an operation one of whose operands is lazy."""
    return Lazy(kind, name, args, call, options)


def as_number(x: Any, other: Any) -> Any:
    """NumPy's float64 as a Python float, where it promotes nothing: fused kernels take such numbers as arguments."""
    if type(x).__name__ != "float64" or not is_lazy(other) or not isinstance(x, float):
        return x

    meta = meta_of(other)
    return float(x) if meta is not None and meta.library == "numpy" and meta.scalar in ("f64", "c128") else x
