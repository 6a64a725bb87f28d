"""From the blocks of operations to types: the stub of the namespace, and that of the methods and operators.

An operation's result follows from its operands: a Tensor of Tensors and numbers, lazy where one of them is and the
operation defers, masked where one of them is. What a dense array makes of it the block's `returns` says.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from openwork.ir.operations import OPERATIONS
from openwork.masked.arithmetic import Arithmetic
from openwork.masked.methods import Methods
from openwork.runtime.operation import Operation
from openwork.tables import OPERATORS
from openwork.tensor.lazy import FOLDS

__all__ = ["ALIASES", "methods", "namespace"]

ALIASES = {"builtins.bool": "bool", "Axis": "int | Sequence[int] | None"}
NUMBER = "bool | int | float | complex | np.generic[Any]"
ARRAY = "np.ndarray[Any, Any]"
KNOWN = {
    "Any", "Callable", "Format", "Mapping", "None", "Semiring", "Sequence", "Tensor", "TopK", "UniqueAll",
    "UniqueCounts", "UniqueInverse", "bool", "complex", "float", "int", "list", "np", "object", "str", "tuple",
}  # fmt: skip
MADE = "# Made by `python tools/operations.py` from the blocks of operations; change those.\n"


def annotation(value: object) -> str:
    """A parameter's or a result's type, as far as stubs know its names."""
    if value is inspect.Parameter.empty:
        return "Any"
    text = ALIASES.get(str(value), str(value))
    names = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
    return text if names <= KNOWN else "Any"


def signature(o: Operation, types: dict[str, str], *, method: bool, grad: bool, named: bool = False) -> str:
    """The parameters in parentheses, some of given types; a method's without its first, which is the tensor, or `named`
    as the function has them."""
    own = list(inspect.signature(o.function).parameters.values())[method:]
    parameters = o.parameters() if method and not named else own
    out = ["self"] if method else []
    positional = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    grads = ["grad: str | None = None"] if grad else []
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            out.append("*")
            starred = True
        if p.kind is p.VAR_KEYWORD:
            out += [*([] if starred else ["*"]), *grads]
            starred, grads = True, []
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f" = {default_text(p.default)}"
        out.append(f"{star}{p.name}: {types.get(p.name) or annotation(p.annotation)}{default}")
        if positional and p is positional[-1]:
            out.append("/")
    if grads:
        out += grads if starred else ["*", *grads]
    return f"({', '.join(out)})"


def default_text(value: object) -> str:
    """A default as an editor shows it: a plain value as it is, anything else as dots."""
    return repr(value) if value is None or type(value) in (bool, int, float, str) else "..."


def operands(o: Operation) -> list[str]:
    """The parameters that are tensors."""
    parameters = inspect.signature(o.function).parameters.values()
    several = [p.name for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if o.returns is None:
        return [p.name for p in placed][:1]
    return several or [p.name for p in placed if annotation(p.annotation) == "Any" and p.default is p.empty]


def masked(o: Operation, result: str) -> str:
    """The type of the result for masked tensors."""
    if o.name == "nonzero":
        return result
    return "MaskedTensor" if result == "Any" else result.replace("Tensor", "MaskedTensor")


def overloads(o: Operation, *, method: bool) -> Iterator[tuple[dict[str, str], str]]:
    """The types of operands and of the result, the most special first."""
    result = annotation(inspect.signature(o.function).return_annotation)
    named = operands(o)
    free = named[method:]
    if not o.operands:
        yield {}, result
        return
    for kind, takes in (("Lazy", o.lazy), ("MaskedTensor", o.masked is not None)):
        for name in free if takes else ():
            many = "Sequence[" in annotation(inspect.signature(o.function).parameters[name].annotation)
            type_ = f"Sequence[{kind}]" if many else kind
            yield {name: type_}, masked(o, result) if kind == "MaskedTensor" else kind
    if o.returns in (None, "any"):
        yield {}, "Tensor" if result == "Any" and o.returns is None else result
        return
    yield dict.fromkeys(free, "Tensor" if o.returns == "product" else "_Operand"), "Tensor"
    if o.returns == "product" and len(named) == 2:
        if not method:
            yield {named[0]: ARRAY, named[1]: "Tensor"}, ARRAY
        yield {**({} if method else {named[0]: "Tensor"}), named[1]: ARRAY}, ARRAY
    yield {}, "Any"


def definitions(
    o: Operation, rows: list[tuple[dict[str, str], str]], *, method: bool, grad: bool, doc: str = ""
) -> Iterator[str]:
    """A function's lines, one for each of its overloads; the first has the documentation, which editors show."""
    for k, (types, result) in enumerate(rows):
        if len(rows) > 1:
            yield "@overload"
        line = f"def {o.name}{signature(o, types, method=method, grad=grad)} -> {result}:"
        yield f"{line}\n{quoted(doc)}" if doc and not k else f"{line} ..."


def quoted(doc: str) -> str:
    """A documentation as the body of a function."""
    text = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text += " "
    return "\n".join(f"    {line}".rstrip() for line in f'"""{text}"""'.split("\n"))


def of_tensors(o: Operation) -> Iterator[str]:
    """A method's lines; one that gives a pair over torch buffers, where it is called by place, does not say so."""
    if o.attribute:
        yield from attribute(o, "Tensor")
    elif o.otherwise == "pair":
        yield f"@overload\ndef {o.name}{signature(o, {}, method=True, grad=True, named=True)} -> Tensor: ..."
        yield f"@overload\ndef {o.name}{signature(o, {}, method=True, grad=True)} -> Any: ..."
    else:
        yield from definitions(o, list(overloads(o, method=True)), method=True, grad=True, doc=o.summary)


def attribute(o: Operation, result: str) -> Iterator[str]:
    yield "@property"
    yield f"def {o.name}(self) -> {result}: ..."


COMPARED = ("lt", "le", "gt", "ge")
ARITHMETIC = tuple(
    name for name, op in OPERATORS.items() if OPERATIONS[op].arity == 2 and name not in (*COMPARED, "eq", "ne")
)
INEXACT = ("add", "sub", "matmul")
"""Operators whose result is dense where one operand is a dense array."""


def _operator(name: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    for other, result in rows:
        if len(rows) > 1:
            yield "@overload"
        yield f"def __{name}__(self, other: {other}) -> {result}: ..."


def operators() -> Iterator[str]:
    """Python's operators of a Tensor: of tensors and numbers a Tensor, of dense arrays an array."""
    tensors = ("_Operand", "Tensor")
    others = [("Lazy", "Lazy"), ("MaskedTensor", "MaskedTensor"), ("Any", "Any")]
    for name in (*ARITHMETIC, "matmul"):
        own = ("Tensor", "Tensor") if name == "matmul" else tensors
        array = [(ARRAY, ARRAY)] if name in INEXACT else []
        yield from _operator(name, [own, *array, *others])
        yield from _operator(f"r{name}", [own, *array, ("Any", "Any")])
        if name not in ("lshift", "rshift"):
            yield f"def __i{name}__(self, other: Any) -> Self: ...  # type: ignore[misc]"
    for name in COMPARED:
        yield from _operator(name, [tensors, *others])
    for name in ("eq", "ne"):
        yield f"def __{name}__(self, other: object) -> Tensor: ...  # type: ignore[override]"
    for name in ("neg", "pos", "abs", "invert"):
        yield f"def __{name}__(self) -> Tensor: ..."
    yield "def __getitem__(self, key: Any) -> Tensor: ..."


def operators_of(kind: str) -> Iterator[str]:
    """Python's operators of a tensor whose kind every result has."""
    for name in (*ARITHMETIC, "matmul"):
        yield f"def __{name}__(self, other: Any) -> {kind}: ..."
        yield f"def __r{name}__(self, other: Any) -> {kind}: ..."
    for name in COMPARED:
        yield f"def __{name}__(self, other: Any) -> {kind}: ..."
    for name in ("eq", "ne"):
        yield f"def __{name}__(self, other: object) -> {kind}: ...  # type: ignore[override]"
    for name in ("neg", "pos", "abs", "invert"):
        yield f"def __{name}__(self) -> {kind}: ..."


def _class(name: str, lines: Iterator[str] | list[str]) -> list[str]:
    return ["", f"class {name}:", "    __slots__ = ()", *(f"    {line}" for line in lines)]


def methods(all_: list[Operation]) -> str:
    """The stub of `openwork.tensor.methods`: operators, and the methods that operations are."""
    mine = [o for o in all_ if o.method or o.attribute]
    tensors = [line for o in mine for lines in of_tensors(o) for line in lines.split("\n")]
    of_lazy = [line for o in mine if o.lazy for line in _of_kind(o, "Lazy" if _defers(o) else "Any")]
    of_masked = [
        line
        for o in mine if o.masked is not None and not any(o.name in vars(c) for c in (Arithmetic, Methods))
        for line in _of_kind(o, masked(o, _result(o)))
    ]  # fmt: skip
    return "\n".join([
        MADE + "from collections.abc import Mapping, Sequence",
        "from typing import Any, Self, TypeAlias, overload",
        "",
        "import numpy as np",
        "",
        "from ..format.format import Format",
        "from ..masked.tensor import MaskedTensor",
        "from ..ops.reductions.order_statistics import TopK",
        "from ..runtime.semirings import Semiring",
        "from .lazy import Lazy",
        "from .tensor import Tensor",
        "",
        f"_Operand: TypeAlias = Tensor | {NUMBER}",
        *_class("Methods", [*operators(), *tensors]),
        *_class("LazyMethods", [*operators_of("Lazy"), *of_lazy]),
        *_class("MaskedMethods", [*operators_of("MaskedTensor"), *of_masked]),
        "",
    ])  # fmt: skip


def _of_kind(o: Operation, result: str) -> Iterator[str]:
    """The lines of a method of lazy or masked tensors."""
    if o.attribute:
        return attribute(o, result)
    return definitions(o, [({}, result)], method=True, grad=False)


def _defers(o: Operation) -> bool:
    """Whether a lazy tensor's method is deferred whatever its arguments: it has none, or is a reduction."""
    return o.name in FOLDS or len(inspect.signature(o.function).parameters) == 1


def _result(o: Operation) -> str:
    return annotation(inspect.signature(o.function).return_annotation)


def namespace(all_: list[Operation], others: dict[str, tuple[str, ...]], errors: list[str]) -> str:
    """The stub of `openwork`: its functions with their overloads, and where its other names come from."""
    lines = [
        head.replace("bool", "_builtins.bool") + end + body
        for o in all_ if not o.name.startswith("__")
        for line in definitions(
            o, list(overloads(o, method=False)), method=False, grad=o.grad, doc=inspect.getdoc(o.function) or ""
        )
        for head, end, body in (line.partition(":\n"),)
    ]  # fmt: skip
    return "\n".join([
        MADE + "import builtins as _builtins",
        "from collections.abc import Callable, Mapping, Sequence",
        "from typing import Any, TypeAlias, overload",
        "",
        "import numpy as np",
        "",
        "from . import decomposition as decomposition",
        "from . import graph as graph",
        "from . import io as io",
        "from . import linalg as linalg",
        "from . import masked as masked",
        "from . import plot as plot",
        "from . import nn as nn",
        "from . import torch as torch",
        *(f"from .errors import {name} as {name}" for name in errors),
        *(f"from .{home} import {name} as {name}" for home, names in others.items() for name in names),
        "from .format import Format as Format",
        "from .format import format as format",
        "from .ops.namespace import __array_namespace_info__ as __array_namespace_info__",
        "from .ops.reductions.order_statistics import TopK",
        "from .ops.sets import UniqueAll, UniqueCounts, UniqueInverse",
        "",
        f"_Operand: TypeAlias = Tensor | {NUMBER}".replace("bool", "_builtins.bool"),
        "__version__: str",
        "__array_api_version__: str",
        "",
        *lines,
        "",
    ])  # fmt: skip
