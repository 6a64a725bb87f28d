"""A function of tensors, decorated -> its block: the one record of where and how an operation is public.

    @operation(method=True, torch="roll(shifts: shift, dims: axis = None)", masked="moves")
    def roll(x, shift, /, *, axis=None): ...

Everything that lists operations reads these records: the namespace and its stub, the methods of Tensors of either
library, both NumPy protocols, torch's names, masked and lazy tensors, the reference page (`openwork.tables`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from ..classes import frozen
from ..errors import UnsupportedError
from ..lazy_docstring import unquote_types
from ..provided import loader, provide
from .result_rules import elementwise_rules, in_words

__all__ = ["OPERATIONS", "Operation", "Spelling", "block", "namespace", "operation"]

F = TypeVar("F", bound=Callable[..., Any])


@frozen(slots=False)
class Operation:
    """An operation, and where it is public.

    name : in the namespace
    function : computes it
    method : whether it is a method of Tensors too, the tensor first
    places : what the method takes by place where the function takes it by name, with the defaults that differ: "axis",
        "offset = 0, axis1 = 0". Such a method is ours over torch buffers too, unless its arguments are torch's
    otherwise : what torch's method of that name gives where it is called alike, which goes first over torch buffers:
        "pair", values and places; "unbiased", the same by another count; None where it gives the same
    attribute : whether it is an attribute of Tensors: `A.real`
    operator : Python's name of the operator that it is, "add" for `__add__`, `__radd__` and `__iadd__`
    numpy : names of NumPy's functions and ufuncs that it is, besides the one of its own name; "add.reduce" of a ufunc's
        method. One with other arguments is a `Spelling`
    torch : spellings of torch's functions that it is
    masked : what it does with masked tensors: "elements" maps the specified ones, "moves" only moves them, "reduces"
        combines them over axes; else a function of masked tensors, or None for a refusal
    lazy : whether it is deferred on tensors to be computed later; else they are computed first
    grad : whether it takes `grad=`, the elements that have gradients; what has operands does, unless it says otherwise
    operands : whether types of its operands may override it: not of functions that make tensors
    op : the elementwise operation of the loop IR, or of the array library, that it is
    arity : of `op`
    shape, dtype, fill, format : the rules of the result, words of `runtime.result_rules`; of elementwise operations
        they follow from `op`, of what only moves elements from `masked`, a format from `fill`; None where the
        documentation alone says
    returns : what a dense array among the operands makes of the result: None, a Tensor all the same; "product", a dense
        array; "mixed" or "any", that depends on the values
    """

    name: str
    function: Callable[..., Any]
    method: bool
    numpy: tuple[str, ...]
    torch: tuple[str, ...]
    masked: str | Callable[..., Any] | None
    lazy: bool
    grad: bool
    operands: bool
    op: str | None = None
    arity: int = 0
    returns: str | None = None
    shape: str | None = None
    dtype: str | None = None
    fill: str | None = None
    places: str = ""
    otherwise: str | None = None
    attribute: bool = False
    format: str | None = None
    operator: str | None = None

    @property
    def module(self) -> str:
        """The module of the block."""
        return self.function.__module__.removeprefix("openwork.")

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())

    def parameters(self) -> list[Parameter]:
        """The method's parameters after the tensor: those that it takes by place first."""
        own = {p.name: p for p in list(signature(self.function).parameters.values())[1:]}
        spelled = spelling(f"{self.name}({self.places})").signature if self.places else None
        first = {} if spelled is None else spelled.parameters
        placed = []
        for name, p in first.items():
            default = own[name].default if p.default is Parameter.empty else p.default
            placed.append(own[name].replace(kind=Parameter.POSITIONAL_OR_KEYWORD, default=default))
        return [*placed, *(p for name, p in own.items() if name not in first)]

    @property
    def result(self) -> tuple[str, str] | None:
        """The type of the result, and what the rules say of it; None where there are none."""
        rules = in_words(self.shape, self.dtype, self.fill, self.format)
        if not rules:
            return None
        other = "a MaskedTensor of masked operands" if self.masked is not None else ""
        lazy = "a Lazy of lazy ones" if self.lazy else ""
        also = ", ".join(filter(None, (other, lazy)))
        return (
            "Tensor" if self.returns is None else "Tensor or array",
            f"{rules} {also[:1].upper()}{also[1:]}{'.' * bool(also)}",
        )

    def spelled(self, library: str, name: str) -> Spelling:
        """How the function of this name of "numpy" or "torch" spells the call."""
        spellings = map(spelling, self.numpy if library == "numpy" else self.torch)
        return next((s for s in spellings if s.name == name), spelling(name))


_FORMATS = {"dense": "dense", "f(fill)": "same", "same": "same", "reduced": "reduced"}
"""The rule of the format that follows from that of the fill value."""

OPERATIONS: dict[str, Operation] = {}
"""The blocks of the modules that are loaded, by name."""


def block(name: str) -> Operation:
    """The block of an operation, whose module is loaded first."""
    if name not in OPERATIONS:
        loader[0](name)
    return OPERATIONS[name]


def namespace() -> Any:
    """The package: its functions are the operations, wrapped for other types of operands."""
    return sys.modules[__name__.partition(".")[0]]


@frozen(slots=False)
class Spelling:
    """How another library calls an operation: its name, and its arguments after the operands.

    "roll(shifts: shift, dims: axis = None)" has `shifts`, which is `shift` here, and `dims`, which is `axis` and may be
    left out. "vecdot(a, b, /, dim: axis = -1)" has two operands. A bare name takes the arguments as they are.
    """

    name: str
    signature: Signature | None
    ours: Mapping[str, str]
    operands: int = 1
    bound: dict[tuple[int, tuple[str, ...]], tuple[tuple[str, int, Any], ...]] = field(
        default_factory=dict, compare=False
    )
    """how many arguments by place, and the names of others -> ours, the place of each among them or -1, its default"""

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """`function` of operands, and of the other library's arguments after them, by its names or by ours.

        Raises UnsupportedError for arguments that the spelling has not.
        """
        if self.signature is None:
            return function(*args, **kwargs)
        operands, rest = args[: self.operands], (*args[self.operands :], *kwargs.values())
        call = len(rest) - len(kwargs), tuple(kwargs)
        bound = self.bound.get(call)
        if bound is None:
            bound = self.bound[call] = self._bind(*call)
        return function(*operands, **{ours: rest[k] if k >= 0 else default for ours, k, default in bound})

    def _bind(self, count: int, keywords: tuple[str, ...]) -> tuple[tuple[str, int, Any], ...]:
        """What `bound` keeps of a call."""
        assert self.signature is not None
        their_names = {ours: key for key, ours in self.ours.items()}
        names = {key if key in self.ours else their_names.get(key, key): count + k for k, key in enumerate(keywords)}
        try:
            places = self.signature.bind(*range(count), **names).arguments
        except TypeError as error:
            raise UnsupportedError(
                f"{self.name}: {error}\n  supported: {self.name}{self.signature}\n  help: leave it out"
            ) from None
        return tuple((self.ours[key], places.get(key, -1), p.default) for key, p in self.signature.parameters.items())


@cache
def spelling(text: str) -> Spelling:
    """The spelling of "name" or "name(theirs: ours = default, ...)"."""
    name, parenthesis, _ = text.partition("(")
    if not parenthesis:
        return Spelling(text, None, {})
    definition = ast.parse(f"def {text}: ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments, parameters, ours = definition.args, [], {}
    for kind, argument, default in _arguments(arguments):
        ours[argument.arg] = argument.arg if argument.annotation is None else ast.unparse(argument.annotation)
        parameters.append(Parameter(argument.arg, kind, default=default))
    return Spelling(name, Signature(parameters), ours, len(arguments.posonlyargs) or 1)


def _arguments(arguments: ast.arguments) -> Iterator[tuple[Any, ast.arg, Any]]:
    """Each argument with its kind and its default value."""
    required = len(arguments.args) - len(arguments.defaults)
    for k, argument in enumerate(arguments.args):
        value = arguments.defaults[k - required] if k >= required else None
        yield Parameter.POSITIONAL_OR_KEYWORD, argument, _value(value)
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield Parameter.KEYWORD_ONLY, argument, _value(value)


def _value(node: ast.expr | None) -> Any:
    return Parameter.empty if node is None else ast.literal_eval(node)


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def operation(
    name: str | None = None,
    *,
    method: bool = False,
    numpy: str | tuple[str, ...] = (),
    torch: str | tuple[str, ...] = (),
    masked: str | Callable[..., Any] | None = None,
    lazy: bool = False,
    grad: bool | None = None,
    operands: bool = True,
    op: str | None = None,
    arity: int = 0,
    returns: str | None = None,
    shape: str | None = None,
    dtype: str | None = None,
    fill: str | None = None,
    places: str = "",
    otherwise: str | None = None,
    attribute: bool = False,
    format: str | None = None,
    operator: str | None = None,
) -> Callable[[F], F]:
    """Register a function as the operation of its name; see `Operation`."""

    def register(function: F) -> F:
        unquote_types(function)
        operation_name = name or function.__name__
        rules = (shape, dtype, fill)
        if op is not None:
            rules = elementwise_rules(op, arity)
        elif masked == "moves":
            rules = (shape or "moved", dtype or "same", fill or "same")
        OPERATIONS[operation_name] = Operation(
            operation_name, function, method, _texts(numpy), _texts(torch), masked, lazy,
            operands if grad is None else grad, operands, op, arity, returns, *rules,
            places, otherwise, attribute,
            format or ("like" if masked == "moves" else _FORMATS.get(rules[2] or "")), operator,
        )  # fmt: skip
        return provide(operation_name, function)

    return register
