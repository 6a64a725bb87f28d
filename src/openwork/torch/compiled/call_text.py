"""A call of Tensors -> text that torch.library takes: a function's name, constants, places for buffers; and back."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch

from ...errors import UnsupportedError
from ...format import format as parse
from ...format.format import Format

__all__ = ["Node", "decoded", "describe", "encoded", "constant", "format_of", "parsed"]

Node: TypeAlias = "tuple[Any, ...]"
"""An argument or result: its kind, then what that kind has.

    ("tensor", format, scalar, fill value, shape, held, dtypes, places)    held: "-p-c", a letter for each buffer
    ("masked", whether of rank 0, its tensor)    ("array", dtype, shape, place)    ("constant", x)
    ("tuple" | "list", nodes)    ("dict", keys, nodes)    ("named" | "sequence", type, nodes)

Places of arguments are places in `buffers`; of results, in `buffers` too where they are 0 or more, and -1 - k of the
k-th new one.
"""

_RANDOM = frozenset(
    (
        "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "bernoulli", "rrelu", "multinomial",
        "poisson", "normal", "rand_like", "randn_like", "randint_like", "random",
    )
)  # fmt: skip


def describe(name: str, arguments: Node) -> str:
    """A call as text: `name` and its arguments.

    Raises UnsupportedError for an argument that has no text, and for random numbers, which a gradient would draw anew.
    """
    if name.rpartition(".")[2].rstrip("_") in _RANDOM:
        raise UnsupportedError(f"{name} draws random numbers")
    return repr((name, encoded(arguments)))


def encoded(node: Node) -> Node:
    kind, *rest = node
    if kind in ("tuple", "list"):
        return kind, tuple(map(encoded, rest[0]))
    if kind == "dict":
        return kind, tuple(rest[0]), tuple(map(encoded, rest[1]))
    if kind == "masked":
        return kind, rest[0], encoded(rest[1])
    if kind == "tensor":
        text, scalar, fill, shape, held, dtypes, places = rest
        return kind, text, scalar, constant(fill), shape, held, tuple(map(constant, dtypes)), places
    if kind == "array":
        return kind, constant(rest[0]), tuple(rest[1]), rest[2]
    return kind, constant(rest[0])


def constant(x: Any) -> Any:
    """A constant as a literal of Python: itself, or a tuple of what it is and its parts."""
    if isinstance(x, np.generic) and not isinstance(x, float | complex):
        x = x.item()
    if x is None or type(x) in (bool, int, str):
        return x
    if isinstance(x, float):
        return ("float", repr(float(x)))
    if isinstance(x, complex):
        return ("complex", repr(float(x.real)), repr(float(x.imag)))
    if isinstance(x, torch.dtype | torch.layout):
        return ("torch", str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return ("device", str(x))
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return ("dtype", np.dtype(x).name)
    if x is Ellipsis:
        return ("ellipsis",)
    if isinstance(x, slice):
        return ("slice", *(constant(n) for n in (x.start, x.stop, x.step)))
    if isinstance(x, Format):
        return ("format", x.text)
    if isinstance(x, tuple | list):
        return ("tuple" if isinstance(x, tuple) else "list", *map(constant, x))
    raise UnsupportedError(f"an argument of type {type(x).__name__} in a graph of torch.compile")


_MADE: dict[str, Callable[..., Any]] = {
    "float": float,
    "complex": lambda a, b: complex(float(a), float(b)),
    "torch": lambda name: getattr(torch, name),
    "device": torch.device,
    "dtype": np.dtype,
    "ellipsis": lambda: Ellipsis,
    "format": parse,
}


def decoded(x: Any) -> Any:
    """The constant of a literal."""
    if type(x) is not tuple:
        return x
    kind, *parts = x
    if kind in ("slice", "tuple", "list"):
        of = map(decoded, parts)
        return slice(*of) if kind == "slice" else tuple(of) if kind == "tuple" else list(of)
    return _MADE[kind](*parts)


@lru_cache(maxsize=1024)
def parsed(text: str) -> tuple[str, Node]:
    name, node = ast.literal_eval(text)
    return name, node


def format_of(text: str) -> Format:
    """The format of a text."""
    return parse(text)
