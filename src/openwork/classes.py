"""A class with annotated fields -> a dataclass with slots whose methods are made when they are first called.

    @frozen
    class Access:
        tensor: str
        indices: tuple[str, ...] = ()

`dataclasses` compiles six functions for each class when it is defined, which was a third of the time that the first
lines of a program took; most of the classes have no instance in it. Here `__init__` is compiled at the first instance,
and the other methods are shared. Fields, `replace`, `fields` and patterns are those of `dataclasses`; the names are
those of attrs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

__all__ = ["define", "frozen"]

T = TypeVar("T")


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(*, eq: bool = True, slots: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Any] | None = None, /, *, eq: bool = True, slots: bool = True) -> Any:
    """A class with annotated fields as a dataclass whose fields are not assigned to. Methods that it defines stay.

    eq : whether instances of equal fields are equal, and have a hash
    slots : whether instances have no other attributes
    """
    return (lambda c: _made(c, True, eq, slots)) if cls is None else _made(cls, True, eq, slots)


@overload
def define(cls: type[T], /) -> type[T]: ...
@overload
def define(*, eq: bool = True, slots: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(field_specifiers=(field,))
def define(cls: type[Any] | None = None, /, *, eq: bool = True, slots: bool = True) -> Any:
    """A class with annotated fields as a dataclass whose fields are assigned to, see `frozen`; it has no hash."""
    return (lambda c: _made(c, False, eq, slots)) if cls is None else _made(cls, False, eq, slots)


def _made(cls: type[Any], is_frozen: bool, eq: bool, slots: bool) -> type[Any]:
    own = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}  # None comes with __eq__
    made = dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    methods: dict[str, Any] = {"__init__": _first_init(made), "__repr__": _repr}
    if eq:
        methods |= _comparison(made)
        if not is_frozen:
            methods["__hash__"] = None
    if is_frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _first_init(cls: type[Any]) -> Callable[..., None]:
    """The `__init__` that compiles the class's own, which takes its place."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _init(cls)
        cls.__init__(self, *args, **kwargs)

    return __init__


def _init(cls: type[Any]) -> Callable[..., None]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, body = ["self"], []
    for f in fields(cls):
        default, value = "", f.name
        if f.default is not MISSING:
            names[f"_default_{f.name}"] = f.default
            default = f" = _default_{f.name}"
        elif f.default_factory is not MISSING:
            names[f"_make_{f.name}"] = f.default_factory
            default, value = " = _missing", f"_make_{f.name}() if {f.name} is _missing else {f.name}"
        if f.init:
            parameters.append(f.name + default)
        elif default:
            value = default.removeprefix(" = ") if f.default is not MISSING else f"_make_{f.name}()"
        else:
            continue
        body.append(f"    _set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or ["    pass"]), names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _comparison(cls: type[Any]) -> dict[str, Any]:
    """`__eq__` and `__hash__` by the fields that are compared."""
    compared = _getter([f.name for f in fields(cls) if f.compare])
    hashed = _getter([f.name for f in fields(cls) if (f.compare if f.hash is None else f.hash)])

    def __eq__(self: Any, other: object) -> bool:
        return bool(compared(self) == compared(other)) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda x: (getattr(x, names[0]),)) if names else (lambda x: ())


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_assignment(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
