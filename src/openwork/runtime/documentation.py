"""Public functions -> the same with docstrings in numpydoc's form, which say what the rules of operations say too."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any

from .. import lazy_docstring
from .operation import OPERATIONS

__all__ = ["document", "document_all"]


def document(function: FunctionType) -> None:
    """Have a function's docstring composed when it is read; that of an operation has the rules of its result."""
    lazy_docstring.document(function, lambda: _result(function))


def _result(function: FunctionType) -> tuple[str, str] | None:
    operation = OPERATIONS.get(function.__name__)
    return operation.result if operation is not None and _plain(operation.function) is _plain(function) else None


def _plain(function: Any) -> Any:
    return inspect.unwrap(function)


def document_all(names: Mapping[str, Any], public: Iterable[str]) -> None:
    """Have the docstrings of the public functions among the names of a module composed when they are read."""
    for name in public:
        value = names.get(name)
        if isinstance(value, FunctionType):
            document(value)
        elif isinstance(value, type):
            lazy_docstring.unquote_types(value)
