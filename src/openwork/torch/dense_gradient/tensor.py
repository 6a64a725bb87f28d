"""`grad="dense"`: Tensors whose gradient is a dense tensor of their shape, unspecified elements included.

The values of a sparse tensor can hold the gradient of its stored elements only. A `DenseGradientTensor` is a Tensor
that also has a *proxy*: a torch tensor of the whole shape, without memory of its own, which the gradients of all
elements go to.

An operation runs on the sparse operands as ever. Its gradient is that of the same operation on the same elements in
dense format, which is found when it is asked for: in backward, never before. As it consists of the rules of dense
tensors, it has gradients itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import wraps
from typing import Any

import torch

from ...errors import InvariantError, UnsupportedError
from ...interop.constructors import asarray
from ...ops.indexing.assign import AtKey
from ...runtime import gradient_hook
from ...runtime.conversion.remap import canonical
from ...storage.recorded import is_dual, is_recorded
from ...storage.storage import Storage
from ...tables import ATTRIBUTES, OPERATORS, PLACES
from ...tensor.tensor import Tensor
from ...tensor.tensor import unpickled as unpickled_tensor
from ..gradients.leaves import as_dense, check_backward, leaf_of
from ..gradients.nary import over_torch
from ..gradients.permutation import detached_storage
from ..gradients.pointwise import DIFFERENTIABLE, WithGradientOf
from .proxy import (
    ProxyOfLayout,
    ProxyOfStored,
    StoredOfProxy,
    no_memory_zeros,
    stored_values,
    to_dense_tensor,
)
from .rules import DENSE_RULES, STRUCTURE_OPERANDS

__all__ = ["DenseGradientTensor", "run", "unpickled"]


class _Operand:
    """A differentiated operand of a recorded call, as forward and backward take it.

    `source` is the tensor that its gradient goes to: a proxy, or the operand itself where that is a torch tensor.
    """

    __slots__ = ("needs_structure", "source", "structure", "value")

    def __init__(self, operand: Any, needs_structure: bool) -> None:
        self.needs_structure = needs_structure
        self.structure: Storage | None = None
        if isinstance(operand, Tensor):
            self.structure = detached_storage(operand._storage)
            self.value: Any = Tensor._from_storage(self.structure)
            self.source = proxy_of(operand)
        else:
            self.value, self.source = operand.detach(), operand

    def for_backward(self, source: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """A source -> the variable that backward differentiates by, and the operand made of it: dense, or sparse."""
        s = self.structure
        if s is None:
            return source, source
        elements = WithGradientOf.apply(to_dense_tensor(s, s.values), source)
        if not self.needs_structure:
            return elements, Tensor._from_dense(elements)
        return elements, Tensor._from_storage(s.with_values(stored_values(s, elements)))


class _RecordedCall:
    """A function with its arguments, of which the differentiated ones may be replaced."""

    def __init__(self, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.name = DENSE_RULES.get(name, function), name
        self.parts: list[_Operand] = []
        full_places = STRUCTURE_OPERANDS.get(name, ())
        self.args = tuple(self._mark(a, k in full_places or -1 in full_places) for k, a in enumerate(args))
        self.kwargs = {k: self._mark(a, False) for k, a in kwargs.items()}

    def _mark(self, x: Any, needs_structure: bool) -> Any:
        if isinstance(x, tuple | list) and any(isinstance(v, Tensor | torch.Tensor) for v in x):
            return type(x)(self._mark(v, needs_structure) for v in x)
        if _is_differentiated(x):
            self.parts.append(_Operand(x, needs_structure))
            return self.parts[-1]
        return _without_proxy(x)

    def without_graph(self, function: Callable[..., Any]) -> Any:
        """The call's result without a graph."""
        with torch.no_grad():
            return function(
                *_map_operands(self.args, _value), **{k: _map_operands(a, _value) for k, a in self.kwargs.items()}
            )

    def with_graph(self, operands: Sequence[Any]) -> list[torch.Tensor]:
        """The call's results on the graph of other operands, as dense tensors."""
        operand_of = dict(zip(map(id, self.parts), operands, strict=True))
        args = _map_operands(self.args, lambda p: operand_of[id(p)])
        kwargs = {k: _map_operands(a, lambda p: operand_of[id(p)]) for k, a in self.kwargs.items()}
        return [r.to_dense() if isinstance(r, Tensor) else r for r in _results(self.function(*args, **kwargs))]


def _value(part: _Operand) -> Any:
    return part.value


def _map_operands(x: Any, visit: Callable[[_Operand], Any]) -> Any:
    if isinstance(x, _Operand):
        return visit(x)
    return type(x)(_map_operands(v, visit) for v in x) if type(x) in (tuple, list) else x


def _results(x: Any) -> list[Any]:
    """The tensors of a result that may have gradients, in order."""
    if isinstance(x, tuple | list):
        return [r for v in x for r in _results(v)]
    if isinstance(x, Tensor):
        return [x] if x._storage.scalar in DIFFERENTIABLE else []
    return [x] if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()) else []


class _DenseGradient(torch.autograd.Function):  # type: ignore[misc]
    """Known results of a call, with the gradient of the call on dense tensors."""

    @staticmethod
    def forward(ctx: Any, call: _RecordedCall, results: Sequence[torch.Tensor], *sources: torch.Tensor) -> Any:
        ctx.call = call
        ctx.save_for_backward(*sources)
        ctx.save_for_forward(*sources)
        return tuple(results)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: torch.Tensor | None) -> Any:
        """The results' tangents: the gradient of the operands is linear in a weight `u`; its own gradient by `u`."""
        given = [k for k, t in enumerate(tangents) if t is not None]
        with torch.enable_grad():
            sources = [s.detach().requires_grad_(k in given) for k, s in enumerate(ctx.saved_tensors)]
            pairs = [p.for_backward(s) for p, s in zip(ctx.call.parts, sources, strict=True)]
            results = ctx.call.with_graph([operand for _, operand in pairs])
            on_graph = [k for k, r in enumerate(results) if r.requires_grad]
            weights = [torch.zeros_like(results[k], requires_grad=True) for k in on_graph]
            found: dict[int, torch.Tensor | None] = {}
            if on_graph:
                inputs, outs = [pairs[k][0] for k in given], [results[k] for k in on_graph]
                gradients = torch.autograd.grad(outs, inputs, weights, create_graph=True, allow_unused=True)
                used = [(g, tangents[k]) for g, k in zip(gradients, given, strict=True) if g is not None]
                linear = torch.autograd.grad([g for g, _ in used], weights, [t for _, t in used], allow_unused=True)
                found = dict(zip(on_graph, linear, strict=True))
        return tuple([torch.zeros_like(r) if (t := found.get(k)) is None else t for k, r in enumerate(results)])

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        create_graph = torch.is_grad_enabled()
        sources = ctx.saved_tensors
        if not create_graph:
            sources = tuple(s.detach().requires_grad_(s.requires_grad) for s in sources)
        with torch.enable_grad():
            pairs = [p.for_backward(s) for p, s in zip(ctx.call.parts, sources, strict=True)]
            results_on = ctx.call.with_graph([operand for _, operand in pairs])
            differentiable = [(r, g) for r, g in zip(results_on, grads, strict=True) if r.requires_grad]
            input_numbers = [k for k, needed in enumerate(ctx.needs_input_grad[2:]) if needed]
            gradients: Any = (None,) * len(input_numbers)
            if differentiable and input_numbers:
                inputs = [pairs[k][0] for k in input_numbers]
                results, weights = zip(*differentiable, strict=True)
                gradients = torch.autograd.grad(results, inputs, weights, create_graph=create_graph, allow_unused=True)
        out: list[Any] = [None] * (2 + len(sources))
        for k, g in zip(input_numbers, gradients, strict=True):
            out[2 + k] = g
        return tuple(out)


def _is_differentiated(x: Any) -> bool:
    """Whether an operand has a gradient."""
    if isinstance(x, DenseGradientTensor):
        return bool(is_recorded(x._proxy))
    if isinstance(x, Tensor):
        x = x._storage.values
    return isinstance(x, torch.Tensor) and x.layout == torch.strided and is_recorded(x)


def proxy_of(t: Tensor) -> torch.Tensor:
    """The torch tensor of the shape of `t` that the gradients of all its elements go to."""
    if isinstance(t, DenseGradientTensor):
        return t._proxy
    s = t._storage
    result: torch.Tensor = t.to_dense() if s.format.is_dense else ProxyOfStored.apply(detached_storage(s), s.values)
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
        if grad == "sparse":
            return function(*_without_proxy(args), **kwargs)
        return _as_dense_gradient(function, args, kwargs)
    call = None if grad == "sparse" or name == "detach" else _RecordedCall(function, name, args, kwargs)
    if call is None or not call.parts:
        result = function(*_without_proxy(args), **{k: _without_proxy(v) for k, v in kwargs.items()})
        return result if call is None else _unrecorded(result)
    if gradient_hook.transformed(p.source for p in call.parts):
        raise UnsupportedError(
            f"{name} with gradients at every element, inside a transform of torch.func\n  supported: backward,"
            ' torch.autograd.grad\n  help: grad="sparse", or dense tensors'
        )
    result = over_torch(call.without_graph(function))
    results = _results(result)
    values = [no_memory_zeros(r.values, r.shape) if isinstance(r, Tensor) else r.view_as(r) for r in results]
    if not results:
        return result
    proxies = iter(_DenseGradient.apply(call, values, *(p.source for p in call.parts)))
    return _with_proxies(result, proxies)


def _unrecorded(result: Any) -> Any:
    """A result that nothing records -> the same, with gradients at every element once it is recorded."""
    results = _results(result)
    if not all(isinstance(r.values, torch.Tensor) for r in results if isinstance(r, Tensor)):
        return result
    proxies = [no_memory_zeros(r.values, r.shape) if isinstance(r, Tensor) else r for r in results]
    return _with_proxies(result, iter(proxies))


def _with_proxies(x: Any, proxies: Any) -> Any:
    """A result without a graph -> the same as a function of proxies."""
    if isinstance(x, tuple | list):
        parts = [_with_proxies(v, proxies) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if not _results(x):
        return x
    proxy = next(proxies)
    return DenseGradientTensor._from_proxy(x._storage, proxy) if isinstance(x, Tensor) else proxy


def _without_proxy(x: Any) -> Any:
    """An argument with gradients of stored elements only."""
    if isinstance(x, DenseGradientTensor):
        return Tensor._from_storage(x._storage)
    return type(x)(map(_without_proxy, x)) if type(x) in (tuple, list) else x


def _as_dense_gradient(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`asarray(obj, grad="dense")`: a Tensor of the elements of `obj` with a gradient at every element."""
    (obj,) = args
    if isinstance(obj, DenseGradientTensor):
        detached = obj.detach()
        if function(detached, **kwargs) is detached:  # it is what is asked for
            return obj
    if isinstance(obj, torch.Tensor) and obj.layout != torch.strided and is_recorded(obj):
        tensor = DenseGradientTensor._from_proxy(function(obj.detach())._storage, ProxyOfLayout.apply(obj))
        return run(function, "asarray of a tensor", "dense", (tensor,), kwargs)
    if _is_differentiated(obj):
        return run(function, "asarray of a tensor", "dense", args, kwargs)
    t = function(*_without_proxy(args), **kwargs)
    s = t._storage
    if not isinstance(s.values, torch.Tensor):
        return t
    return DenseGradientTensor._from_proxy(s, no_memory_zeros(s.values, s.shape))


class DenseGradientTensor(Tensor):
    """A Tensor whose operations have gradients at every element, specified or not; see `asarray(obj, grad="dense")`.

    Its results are such Tensors again, recorded or not; `detach()` gives an ordinary one.
    """

    __slots__ = ("_proxy",)
    _proxy: torch.Tensor

    @classmethod
    def _from_storage(cls, storage: Storage) -> DenseGradientTensor:
        self: DenseGradientTensor = object.__new__(cls)  # Tensor's may be native, and make one of its own
        self._raw_storage = storage
        return self

    @classmethod
    def _from_proxy(cls, s: Storage, proxy: torch.Tensor) -> DenseGradientTensor:
        if not s.format.is_unique:
            s = Tensor._from_storage(s).asformat(canonical(s.format))._storage
        self: DenseGradientTensor = object.__new__(cls)
        self._set_storage(s, proxy)
        return self

    def _set_storage(self, s: Storage, proxy: torch.Tensor) -> None:
        gradient_hook.dense_gradient_type = DenseGradientTensor  # from now on calls ask for it
        s, self._proxy = detached_storage(s), proxy
        is_on_graph = proxy.requires_grad or is_dual(proxy)
        self._storage = s.with_values(StoredOfProxy.apply(s, s.values, proxy)) if is_on_graph else s

    def __copy__(self) -> DenseGradientTensor:
        copied: DenseGradientTensor = object.__new__(type(self))
        copied._storage, copied._proxy = self._storage, self._proxy
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> DenseGradientTensor:
        storage = deepcopy(
            detached_storage(self._storage) if self.is_leaf else self._storage, memo
        )  # torch: leaves only
        proxy = no_memory_zeros(storage.values, storage.shape).requires_grad_(self.requires_grad)
        return self._from_proxy(storage, proxy)

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (detached_storage(self._storage), self.requires_grad)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the elements are recorded."""
        return bool(self._proxy.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Record operations on the elements from now on."""
        self._set_storage(self._storage, self._proxy.requires_grad_(requires_grad))
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made the elements."""
        return bool(self._proxy.is_leaf)

    @property
    def grad_fn(self) -> Any:
        """The recorded operation that made the elements, None for a leaf."""
        return self._proxy.grad_fn

    @property
    def grad(self) -> Tensor | None:
        """The gradient of every element, a Tensor of dense format; None before `backward`."""
        gradient = self._proxy.grad
        return None if gradient is None else Tensor._from_dense(gradient)

    @grad.setter
    def grad(self, grad: Any) -> None:
        self._proxy.grad = None if grad is None else as_dense(grad, self._proxy, "grad", True)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate gradients of everything that the elements depend on; `gradient` has the tensor's shape."""
        check_backward(self.requires_grad, gradient, self.shape)
        dense_gradient = None if gradient is None else as_dense(gradient, self._proxy, "backward")
        leaves = None if inputs is None else [leaf_of(x) for x in inputs]
        self._proxy.backward(dense_gradient, retain_graph=retain_graph, create_graph=create_graph, inputs=leaves)

    def _assign_result(self, operation: str, result: Any) -> Tensor:
        """Take the elements of a result, in the tensor's own format."""
        if self.requires_grad and self.is_leaf:
            return super()._assign_result(operation, result)
        converted = asarray(result).astype(self.dtype, copy=False).asformat(self.format)
        self._set_storage(converted._storage, proxy_of(converted))
        return self

    def _take_over(self, result: Tensor) -> Tensor:
        """Take the shape, format, elements and graph of a result."""
        self._set_storage(result._storage, proxy_of(result))
        return self

    def resize(self, *shape: Any) -> None:
        """Change the extents in place: what lies outside goes, what comes is unspecified."""

        def resized(t: Tensor) -> Tensor:
            t = t.clone()
            t.resize(*shape)
            return t

        self._take_over(run(resized, "resize", "dense", (self,), {}))

    def detach(self) -> Tensor:
        """The same elements, over the same buffers, without a graph: an ordinary Tensor."""
        return Tensor._from_storage(detached_storage(self._storage))

    def detach_(self) -> Tensor:
        """Detach from the graph, in place; operations have gradients at every element still, once they are recorded."""
        s = detached_storage(self._storage)
        self._set_storage(s, no_memory_zeros(s.values, s.shape))
        return self

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf too."""
        self._proxy.retain_grad()

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with the dense gradient whenever it is computed; gives torch's handle to remove it."""
        return self._proxy.register_hook(hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with the tensor whenever `grad` has been accumulated; gives torch's handle to remove it."""
        return self._proxy.register_post_accumulate_grad_hook(lambda _: hook(self))

    @property
    def output_nr(self) -> int:
        """Which of the results of `grad_fn` the elements are."""
        return int(self._proxy.output_nr)

    @property
    def at(self) -> Any:
        """`t.at[key].set(v)` and the others: new tensors with elements changed."""
        return _DenseGradientAt(self)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "").removeprefix("_")
        call: Callable[..., Any] = super().__torch_function__
        if name in ("grad", "backward", "make_dual", "unpack_dual"):
            return call(func, types, args, kwargs)
        return run(lambda *a, **k: call(func, types, a, k), name, "dense", args, kwargs or {})


def unpickled(storage: Storage, requires_grad: bool) -> DenseGradientTensor:
    """The tensor of a pickle, which may hold anything: a leaf. Raises InvariantError where it is none."""
    s = unpickled_tensor(storage)._storage
    if type(requires_grad) is not bool or s.library != "torch":
        raise InvariantError(f"unpickling: requires_grad={requires_grad!r} over {s.library}\n  help: save it anew")
    return DenseGradientTensor._from_proxy(s, no_memory_zeros(s.values, s.shape).requires_grad_(requires_grad))


class _DenseGradientAt:
    """`Tensor.at` of a DenseGradientTensor."""

    def __init__(self, tensor: DenseGradientTensor, key: Any = None) -> None:
        self.tensor, self.key = tensor, key

    def __getitem__(self, key: Any) -> _DenseGradientAt:
        return _DenseGradientAt(self.tensor, key)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def change(t: Tensor, *values: Any) -> Any:
            return getattr(t.at[self.key], name)(*values)

        getattr(AtKey, name)
        return lambda *values: run(change, f"at {name}", "dense", (self.tensor, *values), {})


def _method(name: str) -> Callable[..., Any]:
    base_method = getattr(Tensor, name)

    @wraps(base_method)
    def method(*args: Any, **kwargs: Any) -> Any:
        return run(base_method, name, "dense", args, kwargs)

    return method


def _property(name: str) -> property:
    def found(t: Tensor) -> Any:
        return getattr(t, name)

    return property(lambda self: run(found, name, "dense", (self,), {}))


def _in_place(name: str) -> Callable[..., Any]:
    base_method = getattr(Tensor, name)

    def changed(t: Tensor, *args: Any) -> Tensor:
        t = t.clone()
        base_method(t, *args)
        return t

    @wraps(base_method)
    def method(self: DenseGradientTensor, *args: Any) -> Any:
        return self._assign_result(name, run(changed, name, "dense", (self, *args), {}))

    return method


_METHODS = (
    *(f"__{x}{name}__" for name in (*OPERATORS, "matmul") for x in ("", "r") if hasattr(Tensor, f"__{x}{name}__")),
    "__getitem__",
    *sorted(PLACES),
    "index_select", "asformat", "astype", "to", "to_device", "transpose", "clone", "to_dense",
    "coalesce", "to_sparse", "reshape", "matvec", "matmat", "rmatvec", "rmatmat",
)  # fmt: skip
for _name in _METHODS:
    setattr(DenseGradientTensor, _name, _method(_name))
for _name in ["__setitem__", "zero_", "copy_", "transpose_", "sparse_resize_"]:
    setattr(DenseGradientTensor, _name, _in_place(_name))
for _name in ("T", "mT", "mH", *ATTRIBUTES):
    setattr(DenseGradientTensor, _name, _property(_name))
