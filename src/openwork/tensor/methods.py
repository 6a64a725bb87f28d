"""Adds the operations of the registry as methods to tensors: `A.log1p()` is `ow.log1p(A)`, for either library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from ..provided import provided, provides
from ..runtime.gradient_hook import rule, with_grad_parameter
from ..runtime.library_errors import FAILURES, explain
from ..runtime.operation import block
from ..storage.buffers import is_torch
from ..tables import ATTRIBUTES, LAZY, MASKED, METHODS, PLACES
from .documentation import of_operation
from .numpy_names import accepts, by_numpy, by_numpys_arguments, standard_arguments

__all__ = ["LazyMethods", "MaskedMethods", "Methods", "placed"]

masked_method = provided("masked torch method", __name__)
"""torch's method of a masked tensor: loaded with torch."""

masked_examples = provided("masked examples", __name__)
"""Examples of operations of masked tensors, by name."""

_PACKAGE = __name__.partition(".")[0]


class Methods:
    """The mixin of `Tensor` whose methods are operations.

    Over torch buffers torch's method of that name goes first, where no argument is ours alone.
    """

    __slots__ = ()


class LazyMethods:
    """The mixin of `Lazy`: methods without arguments are deferred, others compute the tensor first."""

    __slots__ = ()


class MaskedMethods:
    """The mixin of `MaskedTensor`: operations whose blocks say what they do with masked tensors."""

    __slots__ = ()


def _operation(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(sys.modules[_PACKAGE], name)(self, *args, **kwargs)


def _torch_method_or_operation(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    storage = getattr(self, "_raw_storage", None)
    if storage is not None and is_torch(storage.values) and _STANDARDS.isdisjoint(kwargs):
        torch_method = rule("torch_method")(self, name)
        if torch_method is not None:
            return torch_method(*args, **kwargs)
    try:
        return _operation(self, name, args, kwargs)
    except TypeError:
        if accepts(getattr(sys.modules[_PACKAGE], name), self, args, kwargs) or not callable(getattr(np, name, None)):
            raise
    return by_numpy(name, (self, *args), kwargs)


def _of_masked(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The method of a masked tensor: torch's over torch buffers, unless an argument is ours."""
    if is_torch(self.values) and _OURS.isdisjoint(kwargs):
        torch_method = masked_method(self, name)
        if torch_method is not None:
            return torch_method(*args, **kwargs)
    kwargs = standard_arguments(kwargs)
    if name in PLACES:
        return placed(self, name, args, kwargs)
    return by_numpys_arguments(getattr(sys.modules[_PACKAGE], name), name, (self, *args), kwargs)


def _deferred(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(self.compute(), name)(*args, **kwargs) if args or kwargs else _operation(self, name, args, kwargs)


def _method(run: Callable[..., Any], kind: str, name: str, summary: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(self, name, args, kwargs)

    return _called(call, kind, name, summary)


def _called(call: Callable[..., Any], kind: str, name: str, summary: str) -> Callable[..., Any]:
    signature = _SignatureOfMethod(name)
    call.__name__, call.__qualname__ = name, f"{kind}.{name}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = of_operation(kind, name, summary, signature, masked_examples if kind == "MaskedTensor" else None)
    return call


class _SignatureOfMethod(Signature):
    """What `help` and editors show of a method; its block is loaded when they ask, not with the class."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _found(self) -> Signature:
        own = [Parameter("self", Parameter.POSITIONAL_ONLY), *block(self._name).parameters()]
        return with_grad_parameter(Signature(own))

    @property
    def parameters(self) -> Any:
        return self._found.parameters

    @property
    def return_annotation(self) -> Any:
        return Signature.empty

    def replace(self, **changes: Any) -> Signature:
        return self._found.replace(**changes)


# -- methods that go to the function by themselves ---------------------------------------------------------------------


_TORCHS = frozenset(("dim", "dim1", "dim2", "keepdim", "unbiased", "other"))
"""Arguments that only torch's methods have."""
_STANDARDS = frozenset(("axis", "axis1", "axis2", "explicit", "keepdims", "offset", "shift"))
"""Arguments that only the array API's have, and ours of their kind."""
_OURS = _STANDARDS | {"how"}
"""Arguments that only methods of masked tensors have beside torch's."""


@cache
def _bound(name: str) -> Callable[..., Any]:
    """The method of an operation whose block names what it takes by place: one call of its function."""
    o = block(name)
    function, own, parameters = o.function, signature(o.function).parameters, o.parameters()
    places = tuple(p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD)
    defaults = {p.name: p.default for p in parameters if p.default != own[p.name].default}
    first, otherwise, known = places[0], o.otherwise is not None, frozenset(p.name for p in parameters)
    elsewhere = _elsewhere(name, places, known, otherwise)

    def by_name(self: Any, *args: Any, **options: Any) -> Any:
        if otherwise and type(self._raw_storage.values) is not np.ndarray:
            asked = True
        elif options:
            asked = len(args) > 0 or not known.issuperset(options)
        else:
            asked = len(args) > 1
        if asked:
            found = elsewhere(self, args, options)
            if found is not _NOT_FOUND:
                return found
        elif args:
            options = {first: args[0]}
        if defaults:
            options = {**defaults, **options}
        try:
            return function(self, **options)
        except FAILURES as error:
            explain(name, error, (self, *options.values()))
            raise

    def by_place(self: Any, operand: Any, /, **options: Any) -> Any:
        return function(self, operand) if not options else by_numpy(name, (self, operand), options)

    return by_place if own[first].kind is Parameter.POSITIONAL_ONLY else by_name


_NOT_FOUND = object()


def _elsewhere(name: str, places: tuple[str, ...], known: frozenset[str], otherwise: bool) -> Callable[..., Any]:
    """A call that is another library's, or takes `grad=`; else the arguments by place are added to those by name.

    Over torch buffers torch's method goes first where arguments are torch's, or where it gives something else and none
    is ours. What neither has goes to NumPy's function of that name.
    """

    def call(self: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        theirs = len(args) > len(places) or not _TORCHS.isdisjoint(options)
        if (theirs or (otherwise and _STANDARDS.isdisjoint(options))) and is_torch(self._storage.values):
            return rule("torch_method")(self, name)(*args, **options)
        if len(args) > len(places) or not known.issuperset(options):
            return (placed if "grad" in options else _numpys)(self, name, args, options)
        for key, value in zip(places, args, strict=False):
            if key in options:
                raise TypeError(f"{name}() got multiple values for argument {key!r}")
            options[key] = value
        return _NOT_FOUND

    return call


def _numpys(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return by_numpy(name, (self, *args), kwargs)


def _owner(cls: type, name: str) -> type:
    """The class that has a member of this name."""
    return next(base for base in cls.__mro__ if name in vars(base))


def _by_place(name: str, summary: str) -> Callable[..., Any]:
    """The method, which at its first call takes the place of this one."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        method = _bound(name)
        owner = _owner(type(self), name)
        if vars(owner)[name] is call:
            setattr(owner, name, _called(method, "Tensor", name, summary))
            method.__dict__.update(call.__dict__)  # what the tracer of torch.compile reads in its place
        return method(self, *args, **kwargs)

    return _called(call, "Tensor", name, summary)


@provides("placed")
def placed(self: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operation of another kind of tensor, of arguments by place."""
    places = _places(name)
    if len(args) > len(places):
        raise TypeError(f"{name}() takes {len(places)} arguments by place; got {len(args)}")
    by_place = dict(zip(places, args, strict=False))
    twice = next((key for key in kwargs if key in by_place), None)
    if twice is not None:
        raise TypeError(f"{name}() got multiple values for argument '{twice}'")
    return _operation(self, name, (), places | by_place | kwargs)


@cache
def _places(name: str) -> dict[str, Any]:
    """The arguments that a method takes by place, and their defaults."""
    return {p.name: p.default for p in block(name).parameters() if p.kind is Parameter.POSITIONAL_OR_KEYWORD}


def _attribute(kind: type, name: str, summary: str) -> property:
    """The attribute, in whose place the function itself stands from its first use on."""

    def found(self: Any) -> Any:
        if kind is not Methods:
            return _operation(self, name, (), {})
        function = block(name).function
        setattr(_owner(type(self), name), name, property(function, doc=summary))
        return function(self)

    return property(found, doc=summary)


for _class, _kind, _run, _names in (
    (Methods, "Tensor", _torch_method_or_operation, METHODS.keys()),
    (LazyMethods, "Lazy", _deferred, LAZY),
    (MaskedMethods, "MaskedTensor", _of_masked, MASKED),
):
    for _name in METHODS.keys() & _names:
        _summary = METHODS[_name]
        if _name in ATTRIBUTES:
            setattr(_class, _name, _attribute(_class, _name, _summary))
        elif _name in PLACES and _class is Methods:
            setattr(_class, _name, _by_place(_name, _summary))
        else:
            setattr(_class, _name, _method(_run, _kind, _name, _summary))
