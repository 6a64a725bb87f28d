"""torch's autograd attributes of a Tensor (`grad`, `backward`, `detach`): those of `values`; structure is constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..errors import UnsupportedError
from ..runtime.gradient_hook import rule
from ..storage.buffers import is_torch
from ..storage.iso import contiguous

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["AutogradMixin"]


def _values(t: AutogradMixin, operation: str) -> Any:
    values = cast("Tensor", t)._storage.values
    if not is_torch(values):
        remedy = "ow.asarray(t, like='torch') is over torch's memory"
        raise UnsupportedError(f"{operation} needs torch values\n  help: {remedy}")
    return values


def _to_shared_memory(b: Any) -> Any:
    """A torch buffer -> one in shared memory; a copy, as prepared calls know the buffer by its address."""
    if b.is_shared():
        return b
    copy = b.detach().clone().share_memory_()
    if not b.requires_grad:
        return copy
    b.data = copy
    return b


class AutogradMixin:
    """The mixin of `Tensor` with torch's autograd attributes and methods."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the values are recorded; never for NumPy buffers."""
        return bool(getattr(cast("Tensor", self)._storage.values, "requires_grad", False))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Record operations on the values from now on."""
        me = cast("Tensor", self)
        if requires_grad or self.requires_grad:
            values = _values(self, "requires_grad_")
            own = contiguous(values).requires_grad_(requires_grad)
            me._storage = me._storage.mapped(lambda b: own if b is values else b)
        return me

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made the values."""
        return bool(getattr(cast("Tensor", self)._storage.values, "is_leaf", True))

    @property
    def grad_fn(self) -> Any:
        """The recorded operation that made the values, None for a leaf."""
        return getattr(cast("Tensor", self)._storage.values, "grad_fn", None)

    @property
    def grad(self) -> Tensor | None:
        """The gradient: a Tensor of the same structure; None before `backward`."""
        me = cast("Tensor", self)
        gradient = getattr(me._storage.values, "grad", None)
        return None if gradient is None else me._from_storage(me._storage.with_values(gradient, 0))

    @grad.setter
    def grad(self, grad: Any) -> None:
        me, values = cast("Tensor", self), _values(self, "grad")
        values.grad = None if grad is None else rule("on_structure")(me, grad, "grad", True)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate gradients of everything that the values depend on.

        Parameters
        ----------
        gradient : of the tensor's shape, any format or layout: Tensor, torch tensor, array; may be left out where
            there is one element. Elements are matched by coordinates, those that the tensor does not specify dropped.
            A vector of values, one for each that is stored, is taken too.
        inputs : tensors whose gradients are accumulated, all without

        Raises ShapeError, DTypeError, and UnsupportedError where the tensor is on no graph or the device is another.
        """
        _values(self, "backward")
        rule("backward")(cast("Tensor", self), gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same elements, over the same buffers, without a graph."""
        me = cast("Tensor", self)
        if not is_torch(me._storage.values):
            return me
        return me._from_storage(me._storage.with_values(me._storage.values.detach()))

    def detach_(self) -> Tensor:
        """Detach from the graph, in place."""
        me = cast("Tensor", self)
        me._storage = self.detach()._storage
        return me

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf too."""
        _values(self, "retain_grad").retain_grad()

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with the gradient, a Tensor of the same structure, whenever it is computed.

        hook : may return another gradient, which is passed on: a Tensor, tensor or array of the shape, or None

        Returns torch's handle to remove it.
        """
        values = _values(self, "register_hook")
        me = cast("Tensor", self)
        structure = me._storage

        def of_values(gradient: Any) -> Any:
            given = me._from_storage(structure.with_values(gradient, 0))
            found = hook(given)
            return None if found is None else rule("on_structure")(given, found, "register_hook")

        return values.register_hook(of_values)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with the tensor whenever `grad` has been accumulated; gives torch's handle to remove it."""
        return _values(self, "register_post_accumulate_grad_hook").register_post_accumulate_grad_hook(
            lambda _: hook(self)
        )

    @property
    def output_nr(self) -> int:
        """Which of the results of `grad_fn` the values are."""
        return int(getattr(cast("Tensor", self)._storage.values, "output_nr", 0))

    @property
    def _version(self) -> int:
        return int(_values(self, "_version")._version)

    def share_memory_(self) -> Tensor:
        """Move the buffers to memory that processes share; other tensors over the same buffers keep theirs."""
        me = cast("Tensor", self)
        _values(self, "share_memory_")
        me._storage = me._storage.mapped(_to_shared_memory)
        return me

    def is_shared(self) -> bool:
        """Whether the values are in memory that processes share."""
        return bool(getattr(cast("Tensor", self)._storage.values, "is_shared", bool)())
