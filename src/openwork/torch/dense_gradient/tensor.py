"""`grad="dense"`: Tensors whose gradient is a dense tensor of their shape, unspecified elements included.

The values of a sparse tensor can hold the gradient of its stored elements only. A `DenseGradientTensor` is a Tensor
that also has a *proxy*: a torch tensor of the whole shape, without memory of its own, which the gradients of all
elements go to.

An operation runs on the sparse operands as ever. Its gradient is that of the same operation on the same elements in
dense format, which is found when it is asked for: in backward, never before. As it consists of the rules of dense
tensors, it has gradients itself.
"""

from __future__ import annotations

from collections.abc import Callable
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
from ...tensor.inplace import assign_result, make_writable
from ...tensor.tensor import Tensor
from ...tensor.tensor import unpickled as unpickled_tensor
from ..gradients.leaves import as_dense, check_backward, leaf_of
from ..gradients.nary import over_torch
from ..gradients.permutation import detached_storage
from .proxy import no_memory_zeros, proxy_of_layout, stored_of_proxy
from .recorded_call import (
    RecordedCall,
    is_differentiated,
    proxy_of,
    recorded_results,
    results_of,
    without_proxy,
)

__all__ = ["DenseGradientTensor", "run", "unpickled"]


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
            return function(*without_proxy(args), **kwargs)
        return _as_dense_gradient(function, args, kwargs)
    call = None if grad == "sparse" or name == "detach" else RecordedCall(function, name, args, kwargs)
    if call is None or not call.parts:
        result = function(*without_proxy(args), **{k: without_proxy(v) for k, v in kwargs.items()})
        return result if call is None else _unrecorded(result)
    if gradient_hook.transformed(p.source for p in call.parts):
        raise UnsupportedError(
            f"{name} with gradients at every element, inside a transform of torch.func\n  supported: backward,"
            ' torch.autograd.grad\n  help: grad="sparse", or dense tensors'
        )
    result = over_torch(call.without_graph(function))
    results = results_of(result)
    values = [no_memory_zeros(r.values, r.shape) if isinstance(r, Tensor) else r.view_as(r) for r in results]
    if not results:
        return result
    proxies = iter(recorded_results(call, values))
    return _with_proxies(result, proxies)


def _unrecorded(result: Any) -> Any:
    """A result that nothing records -> the same, with gradients at every element once it is recorded."""
    results = results_of(result)
    if not all(isinstance(r.values, torch.Tensor) for r in results if isinstance(r, Tensor)):
        return result
    proxies = [no_memory_zeros(r.values, r.shape) if isinstance(r, Tensor) else r for r in results]
    return _with_proxies(result, iter(proxies))


def _with_proxies(x: Any, proxies: Any) -> Any:
    """A result without a graph -> the same as a function of proxies."""
    if isinstance(x, tuple | list):
        parts = [_with_proxies(v, proxies) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if not results_of(x):
        return x
    proxy = next(proxies)
    return DenseGradientTensor._from_proxy(x._storage, proxy) if isinstance(x, Tensor) else proxy


def _as_dense_gradient(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`asarray(obj, grad="dense")`: a Tensor of the elements of `obj` with a gradient at every element."""
    (obj,) = args
    if isinstance(obj, DenseGradientTensor):
        detached = obj.detach()
        if function(detached, **kwargs) is detached:  # it is what is asked for
            return obj
    if isinstance(obj, torch.Tensor) and obj.layout != torch.strided and is_recorded(obj):
        tensor = DenseGradientTensor._from_proxy(function(obj.detach())._storage, proxy_of_layout(obj))
        return run(function, "asarray of a tensor", "dense", (tensor,), kwargs)
    if is_differentiated(obj):
        return run(function, "asarray of a tensor", "dense", args, kwargs)
    t = function(*without_proxy(args), **kwargs)
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
        self._storage = s.with_values(stored_of_proxy(s, s.values, proxy)) if is_on_graph else s

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
        """Take the elements and the graph of a result, in the tensor's own format.

        Where torch records nothing the values are written to, as an ordinary tensor's are, and the graph stays.
        """
        make_writable(self, operation)
        result, proxy = asarray(result), self._proxy
        holder = self.detach()
        if is_recorded(proxy) or is_differentiated(result):
            holder = holder.clone()
            proxy = proxy_of(result.astype(self.dtype, copy=False))
        assign_result(holder, operation, result.detach())
        with torch.enable_grad():
            self._set_storage(holder._storage, proxy)
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
        own_name = getattr(func, "__name__", "")
        name = own_name.removeprefix("_")
        call: Callable[..., Any] = super().__torch_function__
        writes = own_name == "__setitem__" or (own_name.endswith("_") and not own_name.endswith("__"))
        writes = (writes and isinstance(args[0], torch.Tensor | Tensor)) or (kwargs or {}).get("out") is not None
        if writes or name in ("grad", "backward", "make_dual", "unpack_dual"):  # never called again in backward
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


def _in_place(name: str, keeps_shape: bool) -> Callable[..., Any]:
    base_method = getattr(Tensor, name)

    def changed(t: Tensor, *args: Any) -> Tensor:
        t = t.clone()
        base_method(t, *args)
        return t

    @wraps(base_method)
    def method(self: DenseGradientTensor, *args: Any) -> Any:
        make_writable(self, name)
        result = run(changed, name, "dense", (self, *args), {})
        return self._assign_result(name, result) if keeps_shape else self._take_over(result)

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
for _name in ["__setitem__", "zero_", "copy_", "transpose_", "sparse_resize_", "eliminate_zeros"]:
    setattr(DenseGradientTensor, _name, _in_place(_name, _name not in ("transpose_", "sparse_resize_")))
for _name in ("T", "mT", "mH", *ATTRIBUTES):
    setattr(DenseGradientTensor, _name, _property(_name))
