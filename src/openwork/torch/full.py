"""`grad="dense"`: Tensors whose gradient is a dense tensor of their shape, unspecified elements included.

The values of a sparse tensor can hold the gradient of its stored elements only. A `Full` is a Tensor that also has a
*carrier*: a torch tensor of the whole shape, without memory of its own, through which gradients of all elements flow.
An operation runs on the sparse operands as ever. Its gradient is that of the same operation on the same elements in
dense format, which is found when it is asked for: in backward, never before. As it consists of the rules of dense
tensors, it has gradients itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import isfunction
from typing import Any

import torch

from ..errors import UnsupportedError
from ..interop.constructors import asarray
from ..ops.indexing.assign import AtKey
from ..runtime import gradient_hook as gradients
from ..runtime.conversion.remap import canonical
from ..storage.buffers import is_recorded
from ..storage.storage import Storage
from ..tensor.operators import Operators
from ..tensor.tensor import Tensor
from .dense_gradient_proxy import Elements, Layout, Spread, Stored, dense, nothing, taken
from .full_operations import DENSE, HELD
from .leaf_gradients import as_dense, leaf_of, ready
from .nary import over_torch
from .permutation_gradient import plain
from .pointwise import DIFFERENTIABLE

__all__ = ["Full", "run"]


class _Part:
    """An operand of a call: what forward and backward see of it.

    `source` is the tensor that its gradient goes to: a carrier, or the operand itself where that is a torch tensor.
    """

    __slots__ = ("holds", "source", "structure", "value")

    def __init__(self, operand: Any, holds: bool) -> None:
        self.holds = holds
        self.structure: Storage | None = None
        if isinstance(operand, Tensor):
            self.structure = plain(operand._storage)
            self.value: Any = Tensor._from_storage(self.structure)
            self.source = carrier_of(operand)
        else:
            self.value, self.source = operand.detach(), operand

    def again(self, source: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """What backward differentiates in, and the operand made of it: dense, or of its own structure."""
        s = self.structure
        if s is None:
            return source, source
        every = Elements.apply(dense(s, s.values), source)
        if not self.holds:
            return every, Tensor._from_dense(every)
        return every, Tensor._from_storage(s.with_values(taken(s, every)))


class _Call:
    """A function with its arguments, of which the recorded ones may be replaced."""

    def __init__(self, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.name = DENSE.get(name, function), name
        self.parts: list[_Part] = []
        full_places = HELD.get(name, ())
        self.args = tuple(self._mark(a, k in full_places or -1 in full_places) for k, a in enumerate(args))
        self.kwargs = {k: self._mark(a, False) for k, a in kwargs.items()}

    def _mark(self, x: Any, holds: bool) -> Any:
        if isinstance(x, tuple | list) and any(isinstance(v, Tensor | torch.Tensor) for v in x):
            return type(x)(self._mark(v, holds) for v in x)
        if _follows(x):
            self.parts.append(_Part(x, holds))
            return self.parts[-1]
        return _stripped(x)

    def plainly(self, function: Callable[..., Any]) -> Any:
        """The result without a graph."""
        with torch.no_grad():
            return function(*_replaced(self.args, _value), **{k: _replaced(a, _value) for k, a in self.kwargs.items()})

    def on(self, operands: Sequence[Any]) -> list[torch.Tensor]:
        """The results with a graph, of these operands, as dense tensors."""
        given = dict(zip(map(id, self.parts), operands, strict=True))
        args = _replaced(self.args, lambda p: given[id(p)])
        kwargs = {k: _replaced(a, lambda p: given[id(p)]) for k, a in self.kwargs.items()}
        return [r.to_dense() if isinstance(r, Tensor) else r for r in _results(self.function(*args, **kwargs))]


def _value(part: _Part) -> Any:
    return part.value


def _replaced(x: Any, visit: Callable[[_Part], Any]) -> Any:
    if isinstance(x, _Part):
        return visit(x)
    return type(x)(_replaced(v, visit) for v in x) if type(x) in (tuple, list) else x


def _results(x: Any) -> list[Any]:
    """The tensors of a result that may have gradients, in order."""
    if isinstance(x, tuple | list):
        return [r for v in x for r in _results(v)]
    if isinstance(x, Tensor):
        return [x] if x._storage.scalar in DIFFERENTIABLE else []
    return [x] if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()) else []


class _Run(torch.autograd.Function):  # type: ignore[misc]
    """A call: its results are known, its gradient is that of the call on dense tensors."""

    @staticmethod
    def forward(ctx: Any, call: _Call, known: Sequence[torch.Tensor], *sources: torch.Tensor) -> Any:
        ctx.call = call
        ctx.save_for_backward(*sources)
        return tuple(known)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        again = torch.is_grad_enabled()
        sources = ctx.saved_tensors
        if not again:
            sources = tuple(s.detach().requires_grad_(s.requires_grad) for s in sources)
        with torch.enable_grad():
            pairs = [p.again(s) for p, s in zip(ctx.call.parts, sources, strict=True)]
            results_on = ctx.call.on([operand for _, operand in pairs])
            used = [(r, g) for r, g in zip(results_on, grads, strict=True) if r.requires_grad]
            wanted = [k for k, needed in enumerate(ctx.needs_input_grad[2:]) if needed]
            given: Any = (None,) * len(wanted)
            if used and wanted:
                inputs = [pairs[k][0] for k in wanted]
                results, weights = zip(*used, strict=True)
                given = torch.autograd.grad(results, inputs, weights, create_graph=again, allow_unused=True)
        out: list[Any] = [None] * (2 + len(sources))
        for k, g in zip(wanted, given, strict=True):
            out[2 + k] = g
        return tuple(out)


def _follows(x: Any) -> bool:
    """Whether an operand has a gradient."""
    if isinstance(x, Full):
        return bool(torch.is_grad_enabled() and x._carrier.requires_grad)
    if isinstance(x, Tensor):
        x = x._storage.values
    return isinstance(x, torch.Tensor) and x.layout == torch.strided and is_recorded(x)


def carrier_of(t: Tensor) -> torch.Tensor:
    """The tensor through which the gradients of all elements of `t` flow."""
    if isinstance(t, Full):
        return t._carrier
    s = t._storage
    result: torch.Tensor = t.to_dense() if s.format.is_dense else Spread.apply(plain(s), s.values)
    return result


def run(
    function: Callable[..., Any], name: str, grad: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The rule of `grad=`: `function` of these arguments, with gradients at all elements or at the stored ones.

    Raises ValueError for another `grad` than "sparse" and "dense".
    """
    if grad not in (None, "sparse", "dense"):
        raise ValueError(f'{name}: grad={grad!r}\n  supported: "sparse", "dense"')
    if name == "asarray":
        return _held(function, args, kwargs) if grad == "dense" else function(*_stripped(args), **kwargs)
    if grad == "sparse" or name == "detach":
        return function(*_stripped(args), **{k: _stripped(v) for k, v in kwargs.items()})
    call = _Call(function, name, args, kwargs)
    if not call.parts:
        return function(*_stripped(args), **{k: _stripped(v) for k, v in kwargs.items()})
    if gradients.transformed(p.source for p in call.parts):
        raise UnsupportedError(
            f"{name} with gradients at every element, inside a transform of torch.func\n  supported: backward,"
            ' torch.autograd.grad\n  help: grad="sparse", or dense tensors'
        )
    result = over_torch(call.plainly(function))
    results = _results(result)
    known = [nothing(r.values, r.shape) if isinstance(r, Tensor) else r.view_as(r) for r in results]
    if not results:
        return result
    carriers = iter(_Run.apply(call, known, *(p.source for p in call.parts)))
    return _rebuilt(result, carriers)


def _rebuilt(x: Any, carriers: Any) -> Any:
    """The result with a graph in place of the one without."""
    if isinstance(x, tuple | list):
        parts = [_rebuilt(v, carriers) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if not _results(x):
        return x
    carrier = next(carriers)
    return Full._over(x._storage, carrier) if isinstance(x, Tensor) else carrier


def _stripped(x: Any) -> Any:
    """An argument with gradients of stored elements only."""
    if isinstance(x, Full):
        return Tensor._from_storage(x._storage)
    return type(x)(map(_stripped, x)) if type(x) in (tuple, list) else x


def _held(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`asarray(obj, grad="dense")`: the elements are those of `obj`, and so is the gradient of each."""
    (obj,) = args
    if isinstance(obj, torch.Tensor) and obj.layout != torch.strided and is_recorded(obj):
        held = Full._over(function(obj.detach())._storage, Layout.apply(obj))
        return run(function, "asarray of a tensor", "dense", (held,), kwargs)
    if _follows(obj):
        return run(function, "asarray of a tensor", "dense", args, kwargs)
    t = function(*_stripped(args), **kwargs)
    s = t._storage
    if not isinstance(s.values, torch.Tensor):
        return t
    return Full._over(s, nothing(s.values, s.shape))


class Full(Tensor):
    """A Tensor whose operations have gradients at every element, specified or not; see `asarray(obj, grad="dense")`.

    Its results are such Tensors again; `detach()` gives an ordinary one.
    """

    __slots__ = ("_carrier",)
    _carrier: torch.Tensor

    @classmethod
    def _over(cls, s: Storage, carrier: torch.Tensor) -> Full:
        if not s.format.is_unique:
            s = Tensor._from_storage(s).asformat(canonical(s.format))._storage
        self: Full = object.__new__(cls)
        self._settle(s, carrier)
        return self

    def _settle(self, s: Storage, carrier: torch.Tensor) -> None:
        s, self._carrier = plain(s), carrier
        self._storage = s.with_values(Stored.apply(s, s.values, carrier)) if carrier.requires_grad else s

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the elements are recorded."""
        return bool(self._carrier.requires_grad)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Record operations on the elements from now on."""
        self._settle(self._storage, self._carrier.requires_grad_(requires_grad))
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made the elements."""
        return bool(self._carrier.is_leaf)

    @property
    def grad_fn(self) -> Any:
        """The recorded operation that made the elements, None for a leaf."""
        return self._carrier.grad_fn

    @property
    def grad(self) -> Tensor | None:
        """The gradient of every element, a Tensor of dense format; None before `backward`."""
        gradient = self._carrier.grad
        return None if gradient is None else Tensor._from_dense(gradient)

    @grad.setter
    def grad(self, grad: Any) -> None:
        self._carrier.grad = None if grad is None else as_dense(grad, self._carrier, "grad", True)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate gradients of everything that the elements depend on; `gradient` has the tensor's shape."""
        ready(self.requires_grad, gradient, self.shape)
        given = None if gradient is None else as_dense(gradient, self._carrier, "backward")
        chosen = None if inputs is None else [leaf_of(x) for x in inputs]
        self._carrier.backward(given, retain_graph=retain_graph, create_graph=create_graph, inputs=chosen)

    def _becomes(self, operation: str, result: Any) -> Tensor:
        """Take the elements of a result, in the tensor's own format."""
        if self.requires_grad and self.is_leaf:
            return super()._becomes(operation, result)
        converted = asarray(result).astype(self.dtype, copy=False).asformat(self.format)
        self._settle(converted._storage, carrier_of(converted))
        return self

    def detach(self) -> Tensor:
        """The same elements, over the same buffers, without a graph: an ordinary Tensor."""
        return Tensor._from_storage(plain(self._storage))

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf too."""
        self._carrier.retain_grad()

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with the dense gradient whenever it is computed; gives torch's handle to remove it."""
        return self._carrier.register_hook(hook)

    @property
    def at(self) -> Any:
        """`t.at[key].set(v)` and the others: new tensors with elements changed."""
        return _FullAt(self)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "").removeprefix("_")
        call: Callable[..., Any] = super().__torch_function__
        return run(lambda *a, **k: call(func, types, a, k), name, "dense", args, kwargs or {})


class _FullAt:
    """`Tensor.at` of a Full."""

    def __init__(self, tensor: Full, key: Any = None) -> None:
        self.tensor, self.key = tensor, key

    def __getitem__(self, key: Any) -> _FullAt:
        return _FullAt(self.tensor, key)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def change(t: Tensor, *values: Any) -> Any:
            return getattr(t.at[self.key], name)(*values)

        getattr(AtKey, name)
        return lambda *values: run(change, f"at {name}", "dense", (self.tensor, *values), {})


def _method(name: str) -> Callable[..., Any]:
    plainly = getattr(Tensor, name)

    @wraps(plainly)
    def method(*args: Any, **kwargs: Any) -> Any:
        return run(plainly, name, "dense", args, kwargs)

    return method


def _property(name: str) -> property:
    def found(t: Tensor) -> Any:
        return getattr(t, name)

    return property(lambda self: run(found, name, "dense", (self,), {}))


def _in_place(name: str) -> Callable[..., Any]:
    plainly = getattr(Tensor, name)

    def changed(t: Tensor, *args: Any) -> Tensor:
        t = t.clone()
        plainly(t, *args)
        return t

    @wraps(plainly)
    def method(self: Full, *args: Any) -> Any:
        return self._becomes(name, run(changed, name, "dense", (self, *args), {}))

    return method


_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
)  # fmt: skip
_METHODS = (
    *(f"__{x}{name}__" for name in _OPERATORS for x in ("", "r")),
    "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__neg__", "__abs__", "__invert__", "__getitem__",
    *(name for name, f in vars(Operators).items() if isfunction(f) and name[0] != "_" and name != "diagonal"),
    "index_select", "sparse_mask", "asformat", "astype", "to", "to_device", "transpose", "clone", "to_dense",
    "coalesce", "to_sparse",
)  # fmt: skip
for _name in _METHODS:
    setattr(Full, _name, _method(_name))
for _name in ["__setitem__", "zero_", "copy_", "transpose_", "sparse_resize_"]:
    setattr(Full, _name, _in_place(_name))
for _name in ("T", "mT", "mH"):
    setattr(Full, _name, _property(_name))
gradients.full = Full
