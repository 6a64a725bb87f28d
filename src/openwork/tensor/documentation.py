"""The docstrings of methods: those of operations from their functions', others with what tables add to them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from inspect import Signature
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, TypeVar

from ..lazy_docstring import Documentation, unquote_types
from ..provided import provided
from ..runtime.operation import block

__all__ = ["document_class", "of_operation", "one_class"]

C = TypeVar("C", bound=type)

_compose = provided("compose docstring", __name__)


def of_operation(kind: str, name: str, summary: str, signature: Signature, shown: Any = None) -> Documentation:
    """The docstring of a method of `kind` that an operation is, composed when it is read.

    shown : a table of examples by name; without it those of the function, written as calls of the method
    """

    def composed() -> str:
        o = block(name)
        parameters = list(inspect.signature(o.function).parameters.values())
        others = ", ".join(p.name for p in parameters[1:] if p.default is p.empty and p.kind is not p.KEYWORD_ONLY)
        call = ", ".join(filter(None, (parameters[0].name, others)))
        return str(
            _compose(
                source_of(o.function),
                _returning(signature, o.function, kind),
                package="ops",
                result=o.result if kind == "Tensor" or o.result is None else (kind, o.result[1]),
                skipped=("self",),
                more=f"The same as `openwork.{name}({call})`, where the tensor is `{parameters[0].name}`.",
                examples=(lambda text: as_method(text, name)) if shown is None else lambda _: shown[name],
            )
        )

    return Documentation(summary, composed)


def source_of(function: Any) -> str:
    """The docstring of a function as its source has it."""
    doc = function.__doc__ or ""
    return doc.source if isinstance(doc, Documentation) else doc


def _returning(signature: Signature, function: Any, kind: str) -> Signature:
    """The signature of the method with what the function returns; of other kinds of tensors theirs."""
    returned = inspect.signature(function).return_annotation
    if isinstance(returned, str):
        returned = returned.replace("Tensor", kind)
    return Signature(list(signature.parameters.values()), return_annotation=returned)


def one_class(cls: C) -> C:
    """A class that is written in several -> one with all their members and no base, as `help` then shows it."""
    slots = MemberDescriptorType | GetSetDescriptorType
    members = {
        name: member
        for base in cls.__mro__[-2::-1]
        for name, member in vars(base).items()
        if not isinstance(member, slots)
    }
    return type(cls)(cls.__name__, (), members | {"__hash__": cls.__hash__})


def document_class(cls: type, texts: Mapping[str, str], first: str) -> None:
    """Have the docstrings of a class's own methods composed when they are read, with what a table says of each.

    first : a statement that makes the tensor of examples that make none, "A = ..."
    """
    unquote_types(cls)
    for base in cls.__mro__:
        for name, method in vars(base).items():
            if isinstance(method, FunctionType) and not name.startswith("_"):
                _document(method, name, texts, first)


def _document(method: FunctionType, name: str, texts: Mapping[str, str], first: str) -> None:
    source = method.__doc__
    if source is None or isinstance(source, Documentation):
        return

    def composed() -> str:
        text, _, example = texts[name].strip().partition(">>> ")
        if f"{first.partition(' =')[0]} = " not in example:
            example = f"{first}\n>>> {example}"
        whole = f"{inspect.cleandoc(source)}\n\n{text}\n\nExamples\n--------\n>>> {example}"
        return str(_compose(whole, inspect.signature(method), package="tensor", skipped=("self",)))

    method.__doc__ = Documentation(source, composed)


# -- examples of functions as examples of methods ----------------------------------------------------------------------


def as_method(text: str, name: str) -> str:
    """Examples whose calls `ow.name(A, ...)` are `A.name(...)`."""
    return re.sub(r"(?m)^>>> (.*)$", lambda line: f">>> {_rewritten(line[1], name)}", text)


def _rewritten(code: str, name: str) -> str:
    """A statement whose calls of the function, of what may be a tensor, are calls of the method."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a line of a longer statement
        return code
    call = next((node for node in ast.walk(tree) if _is_call(node, name)), None)
    if not isinstance(call, ast.Call) or call.end_col_offset is None:
        return code
    first, *rest = call.args
    operand = ast.get_source_segment(code, first) or ""
    if not isinstance(first, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
        operand = f"({operand})"
    starts = [x.col_offset for x in rest] + [k.col_offset for k in call.keywords] or [call.end_col_offset - 1]
    return _rewritten(f"{code[: call.col_offset]}{operand}.{name}({code[starts[0] :]}", name)


def _is_call(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == f"ow.{name}"
        and len(node.args) > 0
        and not isinstance(node.args[0], ast.List | ast.Constant | ast.Starred)
    )
