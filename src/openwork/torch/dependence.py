"""A function of torch tensors -> which elements of its result depend on which of its argument: the Jacobian's pattern.

The function runs once on tensors that carry, beside their values, a set of elements of x for each of theirs: rows of a
sparse matrix of booleans. Below autograd torch asks `__torch_dispatch__` for each operation: results depend on the
union of what their operands do, elements that are moved take their sets along, and what is written in place is
written to the sets of the memory that views share. What has no rule, or depends on the values themselves (`if x > 0`,
an index that was computed from x), is refused: nothing is guessed. Sets may be too large, never too small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map

import openwork as ow

from ..errors import UnsupportedError
from ..tensor.tensor import Tensor
from . import dependence_rules as rules
from .dependence_sets import Sets, identity, product_sets, replaced, taken
from .gradients.function import Rule, apply_rule

__all__ = ["Followed", "jacobian_pattern"]

_TABLE: dict[Any, Callable[..., Any]] = decomposition_table
_HELP = "\n  help: give the pattern, pattern=P, a matrix whose stored elements may differ from 0"


class Memory:
    """What views share: the sets of all elements, and whether their values depend on x."""

    def __init__(self, sets: Sets, varies: bool, value: torch.Tensor) -> None:
        self.sets, self.varies = sets, varies
        self.size, self.in_order = value.numel(), value.is_contiguous() and not value.storage_offset()


class Followed(torch.Tensor):  # type: ignore[misc]
    """A tensor that has no memory: its value, the memory that it views, and the numbers of its elements there."""

    __array_priority__ = 2000.0  # operators of Tensors leave products to this class
    value: torch.Tensor
    memory: Memory
    places: torch.Tensor | None

    @staticmethod
    def __new__(cls, value: torch.Tensor, memory: Memory, places: torch.Tensor | None = None) -> Followed:
        """The value with the sets of a memory; `places` None: all elements in their order."""
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, value.size(), strides=value.stride(), storage_offset=value.storage_offset(), dtype=value.dtype,
            device=value.device,
        )  # fmt: skip
        made.value, made.memory, made.places = value, memory, places
        return made  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        """Its shape."""
        return f"<{type(self).__name__} {tuple(self.shape)}>"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The function by its operations, but for those that leave torch."""
        name = getattr(func, "__name__", str(func))
        if name in ("numpy", "tolist", "__array__", "data_ptr") or any(issubclass(t, Tensor) for t in types):
            raise UnsupportedError(f"jacobian: what {name} does with its argument is not followed{_HELP}")
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The operation's result, with its sets."""
        return _dispatched(func, args, kwargs or {})

    @classmethod
    def __openwork_function__(cls, function: Any, args: Any, kwargs: Any) -> Any:
        """Products of a Tensor with what is followed."""
        name = getattr(function, "__name__", str(function))
        if name in ("matmul", "dot") and not kwargs and len(args) == 2:
            return _product(*args)
        raise UnsupportedError(f"jacobian: what openwork.{name} does with its argument is not followed{_HELP}")

    def __matmul__(self, other: Any) -> Any:
        """x @ A, of a Tensor too."""
        return _product(self, other) if isinstance(other, Tensor) else super().__matmul__(other)

    def __rmatmul__(self, other: Any) -> Any:
        """A @ x, of a Tensor too."""
        return _product(other, self) if isinstance(other, Tensor) else super().__rmatmul__(other)


class _Following(TorchDispatchMode):  # type: ignore[misc]
    """While the function runs, tensors that it makes are followed too, since it may write to them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _dispatched(func, args, kwargs or {})


def jacobian_pattern(f: Callable[..., Any], x: torch.Tensor, gradient: bool = False) -> Tensor:
    """The pattern (m, n) of the Jacobian of f at x, of its gradient's where `gradient`.

    Raises UnsupportedError that names the operation that cannot be followed.
    """
    given = x.detach()
    followed = Followed(given, Memory(identity(given.numel()), True, given))
    with _Following(), torch.set_grad_enabled(gradient):
        if gradient:
            followed = followed.requires_grad_()
        y = f(followed)
        if not isinstance(y, torch.Tensor):
            raise UnsupportedError(f"jacobian: f gave a {type(y).__name__}\n  expected: one tensor")
        if gradient:
            y = torch.autograd.grad(y, followed, allow_unused=True)[0] if y.requires_grad else None
    n = given.numel()
    shape = (n if gradient or y is None else y.numel(), n)
    sets = sets_of(y)
    return ow.zeros(shape, dtype=bool, format="csr") if sets is None else sets


def sets_of(t: Any) -> Sets:
    """The sets of a tensor's elements, in row-major order; None where all are empty."""
    if not isinstance(t, Followed) or t.memory.sets is None:
        return None
    return t.memory.sets if t.places is None else taken(t.memory.sets, _flat(t.places))


def _flat(places: torch.Tensor) -> np.ndarray[Any, Any]:
    flat: np.ndarray[Any, Any] = places.reshape(-1).numpy()
    return flat


def _places(t: Followed) -> torch.Tensor:
    return torch.arange(t.value.numel()).reshape(t.value.shape) if t.places is None else t.places


def _value(t: Any) -> Any:
    return t.value if isinstance(t, Followed) else t


def _refused(func: Any, why: str = "") -> UnsupportedError:
    return UnsupportedError(f"jacobian: {str(func).removesuffix('.default')} is not followed{why}{_HELP}")


def _dispatched(func: Any, args: Any, kwargs: Any) -> Any:
    flat = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    followed = [t for t in flat if isinstance(t, Followed)]
    varies = any(t.memory.varies for t in followed)
    name = func.overloadpacket.__name__
    if rules.is_view(func) and isinstance(args[0], Followed):
        return _view(func, name, args, kwargs)
    real_args, real_kwargs = tree_map(_value, (args, kwargs))
    if func._schema.is_mutable:
        return _written(func, name, args, kwargs, varies)
    if not varies or name in rules.OF_SHAPE:
        return _wrapped(func(*real_args, **real_kwargs), None, False)
    rule = rules.rule_of(func, name)
    if rule is None:
        if func in _TABLE:
            return _TABLE[func](*args, **kwargs)
        result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        raise _refused(func, ": its result depends on values of x" if name in rules.OF_VALUES else "")
    result = func(*real_args, **real_kwargs)
    call = rules.Call(func, name, args, kwargs, sets_of, _varies, result)
    try:
        found = rule(call)
    except rules.NotFollowed as error:
        raise _refused(func, f": {error}") from None
    return _wrapped(result, found, True)


def _varies(t: Any) -> bool:
    return isinstance(t, Followed) and t.memory.varies


def _wrapped(result: Any, sets: Any, varies: bool) -> Any:
    """Results as followed tensors: the sets are those of each result, integers have none."""

    def wrap(t: Any) -> Any:
        if not isinstance(t, torch.Tensor) or t.layout is not torch.strided:
            return t
        mine = sets(t) if callable(sets) else sets
        smooth = t.is_floating_point() or t.is_complex()
        return Followed(t, Memory(mine if smooth else None, varies, t))

    return tree_map(wrap, result)


def _view(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A view of a followed tensor: the same memory at other places."""
    base = args[0]
    rest = tree_map(_value, args[1:])
    result = func(base.value, *rest, **kwargs)
    if name in ("as_strided", "_reshape_alias"):
        if not base.memory.in_order:
            raise _refused(func)
        every = torch.arange(base.memory.size)
        places = every.as_strided(result.size(), result.stride(), result.storage_offset())
    else:
        places = _places(base) if name in ("detach", "alias") else func(_places(base), *rest, **kwargs)
    if isinstance(result, list | tuple):
        return type(result)(Followed(r, base.memory, p) for r, p in zip(result, places, strict=True))
    return Followed(result, base.memory, places)


def _written(func: Any, name: str, args: Any, kwargs: Any, varies: bool) -> Any:
    """An operation in place: the sets that its functional form has are written to the memory."""
    target = args[0] if args else None
    if not name.endswith("_") or "out" in kwargs:
        if varies:
            raise _refused(func, ", which writes to an argument")
        return func(*tree_map(_value, args), **tree_map(_value, kwargs))
    if not isinstance(target, Followed):
        if varies:
            raise _refused(func, ": it writes to a tensor that f did not make")
        return func(*tree_map(_value, args), **tree_map(_value, kwargs))
    plain = getattr(getattr(torch.ops.aten, name[:-1], None), func._overloadname, None)
    sets: Any = None
    if varies and name not in ("zero_", "fill_", "uniform_", "normal_"):
        rule = rules.rule_of(plain, name[:-1]) if plain is not None else None
        if rule is None:
            raise _refused(func)
        try:
            sets = rule(rules.Call(plain, name[:-1], args, kwargs, sets_of, _varies, target.value))
        except rules.NotFollowed as error:
            raise _refused(func, f": {error}") from None
        sets = sets(target.value) if callable(sets) else sets
    func(*tree_map(_value, args), **tree_map(_value, kwargs))
    memory = target.memory
    memory.varies = memory.varies or varies
    if target.places is None:
        memory.sets = sets
    elif sets is not None or memory.sets is not None:
        memory.sets = replaced(memory.sets, sets, _flat(_places(target)), memory.size)
    return target


class _Product(Rule):
    """A Tensor times a followed tensor, whose gradient is such a product too."""

    __slots__ = ("A",)

    def __init__(self, A: Tensor) -> None:
        self.A = A

    def forward(self, x: Any) -> Any:
        with _disable_current_modes():
            if not isinstance(x, Followed):
                return torch.from_numpy(np.ascontiguousarray(self.A @ x.numpy()))
            value = torch.from_numpy(np.ascontiguousarray(self.A @ x.value.numpy()))
            sets = product_sets(self.A, sets_of(x), x.shape[1] if x.ndim > 1 else 1)
            return Followed(value, Memory(sets, x.memory.varies, value))

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return (apply_rule(_Product(self.A.T), grad),)


def _product(a: Any, b: Any) -> Any:
    """A @ x or x @ A of a matrix A that is a Tensor."""
    A, x = (a, b) if isinstance(a, Tensor) else (b, a)
    if not isinstance(A, Tensor) or A.ndim != 2 or x.ndim > 2 or A.fill_value != 0:
        raise UnsupportedError(f"jacobian: this product is not followed{_HELP}")
    with _disable_current_modes():
        values = A.values.detach() if isinstance(A.values, torch.Tensor) else A.values
        over = ow.asarray(ow.with_values(A, values), like="numpy").astype(np.dtype(str(x.dtype).removeprefix("torch.")))
    if A is a:
        return apply_rule(_Product(over), x)
    return apply_rule(_Product(over.T), x.T).T if x.ndim == 2 else apply_rule(_Product(over.T), x)
