"""Tensor's operators (`+`, `@`, `A[key]`), reductions and NumPy and torch protocols, each handed to its operation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..ir.operations import INFIX
from ..ir.ops import COMPARISONS, arity
from ..provided import provided
from ..runtime.gradient_hook import any_dense_gradient, rule
from ..runtime.library_errors import FAILURES, explain
from ..tables import OPERATORS
from .inplace import make_writable, refuse_dense_gradient, replace_storage
from .python_protocol import PythonProtocol

if TYPE_CHECKING:
    from .tensor import Tensor

elementwise = provided("elementwise", __name__)
unary = provided("unary", __name__)
write_scaled = provided("write_scaled", __name__)
matmul = provided("matmul", __name__)
compose = provided("linalg compose", __name__)
is_operand = provided("is_operand", __name__)
is_container: Callable[..., bool] = provided("is_container", __name__)
is_lazy = provided("is_lazy", __name__)
call_ufunc = provided("call_ufunc", __name__)
call_function = provided("call_function", __name__)
positive = provided("positive", __name__)
index = provided("index", __name__)
assign = provided("assign", __name__)
places_of = provided("places", __name__)


__all__ = ["UFUNCS", "Operators"]

UFUNCS: dict[tuple[Any, ...], Callable[..., Any]] = {}
"""A ufunc of NumPy's and its operands' types -> the operation that takes these as they are, once that was called."""


def _elementwise(op: str, a: Any, b: Any) -> Any:

    try:
        return elementwise(op, a, b)
    except FAILURES as error:
        explain("elementwise", error, (a, b))
        raise


PRIORITY = 1000.0

_KNOWN_TYPES: set[type] = {bool, int, float, complex, list, tuple, np.ndarray}
"""Operand types that operators take, those met so far: numbers, arrays, tensors."""


_MATRIX_CLASSES = frozenset((("numpy", "matrix"), ("scipy", "spmatrix")))
_MATRIX_TYPES: set[type] = set()
"""Types met so far whose `*` is the matrix product: NumPy's matrix and SciPy's."""


def _is_foreign(other: Any) -> bool:
    """`_defers_to` for a type that is met for the first time, which is remembered; see `operands.is_operand`."""

    cls = type(other)
    if getattr(cls, "__matmul__", None) is vars(Operators)["__matmul__"]:  # a tensor of ours, lazy or not
        _KNOWN_TYPES.add(cls)
        return False
    if getattr(other, "__array_priority__", 0.0) > PRIORITY or getattr(cls, "__array_ufunc__", True) is None:
        return True
    if is_operand(other):
        if any((b.__module__.partition(".")[0], b.__name__) in _MATRIX_CLASSES for b in cls.__mro__):
            _MATRIX_TYPES.add(cls)
        _KNOWN_TYPES.add(cls)
        return False
    return True


def _deferred(self: Any, other: Any, mirrored: str) -> Any:
    """What an array of arrays makes of its mirrored operator, which may have refused a type that it did not know yet;
    NotImplemented for other strangers."""
    return getattr(other, mirrored)(self) if is_container(type(other)) else NotImplemented


def _mirrored(op: str, reflected: bool = False) -> str:
    """The method of the other operand that computes the same."""
    name = next(name for name, known in OPERATORS.items() if known == op)
    if op in COMPARISONS:
        return f"__{_SWAPPED.get(name, name)}__"
    return f"__{name}__" if reflected else f"__r{name}__"


_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _binary(op: str) -> Callable[[Any, Any], Any]:
    mirrored = _mirrored(op)

    def operator(self: Any, other: Any) -> Any:
        if type(other) not in _KNOWN_TYPES and _is_foreign(other):
            return _deferred(self, other, mirrored)
        try:
            return elementwise(op, self, other)
        except FAILURES as error:
            explain("elementwise", error, (self, other))
            raise

    return operator


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    mirrored = _mirrored(op, reflected=True)

    def operator(self: Any, other: Any) -> Any:
        if type(other) not in _KNOWN_TYPES and _is_foreign(other):
            return _deferred(self, other, mirrored)
        return _elementwise(op, other, self)

    return operator


def _product_or(op: str) -> Callable[[Any, Any], Any]:
    """The reflected form of `*`, which is the matrix product of those whose `*` it is."""
    mirrored = _mirrored(op, reflected=True)

    def operator(self: Any, other: Any) -> Any:
        if type(other) not in _KNOWN_TYPES and _is_foreign(other):
            return _deferred(self, other, mirrored)
        return _elementwise(op, other, self) if type(other) not in _MATRIX_TYPES else self.__rmatmul__(other)

    return operator


def _prefix(op: str) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return unary(op, self)

    return operator


def _inplace(method: str, operation: str, op: str) -> Callable[[Any, Any], Any]:
    """The in-place form of an operator; of a lazy tensor, the operator itself."""

    def apply(self: Any, other: Any) -> Any:

        if not hasattr(self, "_raw_storage") or is_container(type(other)):
            return NotImplemented
        if (type(other) is float or type(other) is int) and write_scaled(op, self, other):
            return self
        if not any_dense_gradient((self,)):
            refuse_dense_gradient(operation, other)
        make_writable(self, operation)
        result = getattr(self, method)(other)
        return result if result is NotImplemented or _is_deferred(result) else self._assign_result(operation, result)

    return apply


def _is_deferred(result: Any) -> bool:

    return bool(is_lazy(result))


class Operators(PythonProtocol):
    """The mixin of `Tensor` that holds its operators."""

    __slots__ = ()
    __array_priority__ = PRIORITY

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs: `np.exp(t)`, `np.add(x, t)`, `np.add.reduce(t)`."""

        if method == "__call__" and not kwargs:
            operation = UFUNCS.get((ufunc, *map(type, inputs)))
            if operation is not None:
                try:
                    return operation(*inputs)
                except FAILURES as error:
                    explain(ufunc.__name__, error, inputs)
                    raise
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's functions, where there is one of that name here."""

        return call_function(func, types, args, kwargs)

    if not TYPE_CHECKING:  # the stub of `methods` has the types of these and of those below
        __hash__ = None  # type: ignore[assignment]

        def __pos__(self) -> Any:

            return positive(self)

        __imatmul__ = _inplace("__matmul__", "@=", "matmul")

        def __matmul__(self, other: Any) -> Any:
            if type(other) not in _KNOWN_TYPES and _is_foreign(other):
                return compose(self, other)
            torch = sys.modules.get("torch")  # in the middle of its import it has no _C yet
            if getattr(getattr(torch, "_C", None), "_is_any_autocast_enabled", bool)():
                self, other = rule("autocast")(self, other)
            try:
                return matmul(self, other)
            except FAILURES as error:
                explain("matmul", error, (self, other))
                raise

        def __rmatmul__(self, other: Any) -> Any:
            if type(other) not in _KNOWN_TYPES and _is_foreign(other):
                return _deferred(self, other, "__matmul__")
            torch = sys.modules.get("torch")  # in the middle of its import it has no _C yet
            if getattr(getattr(torch, "_C", None), "_is_any_autocast_enabled", bool)():
                self, other = rule("autocast")(self, other)
            try:
                return matmul(other, self)
            except FAILURES as error:
                explain("matmul", error, (other, self))
                raise

        def __getitem__(self, key: Any) -> Any:

            return index(cast("Tensor", self), key)

    def __setitem__(self, key: Any, values: Any) -> None:
        """Set elements. Tensors that share the values follow where the structure stays, and else stay as they are."""

        me = cast("Tensor", self)
        refuse_dense_gradient("A[key] = value", values)
        make_writable(me, "A[key] = value")
        replace_storage(me, assign(me, key, values).asformat(me.format)._storage)

    @property
    def at(self) -> Any:
        """`t.at[key].set(v)`, `.add(v)`, `.mul(v)`, `.min(v)`, `.max(v)`: new tensors with elements changed."""

        return places_of(cast("Tensor", self))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch's functions and operators with a Tensor among their operands."""

        return rule("torch_function")(func, args, kwargs or {})


def _of(op: str) -> dict[str, Callable[..., Any]]:
    """The forms of the operator that an operation is, by what stands before its name."""
    if arity(op) == 1:
        return {"": _prefix(op)}
    forms = {"": _binary(op)}
    if op not in COMPARISONS:
        forms |= {"r": _product_or(op) if op == "mul" else _reflected(op)}
    return forms


for _name, _op in OPERATORS.items():
    for _form, _operator in _of(_op).items():
        setattr(Operators, f"__{_form}{_name}__", _operator)
    if arity(_op) == 2 and _op not in COMPARISONS:
        setattr(Operators, f"__i{_name}__", _inplace(f"__{_name}__", f"{INFIX[_op][0]}=", _op))
