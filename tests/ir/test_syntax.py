"""Text in Python's grammar, read again where Python mistakes two threads for one."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import pytest

from openwork.ir import syntax
from openwork.ir.text import parse_expr


def test_a_tree_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    original, failures = builtins.compile, [2]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=7, after=9)")
        return original(*args, **kwargs)

    monkeypatch.setattr(builtins, "compile", failing)
    assert ast.unparse(syntax.expression_tree("a + b * 2")) == "a + b * 2"
    failures[0] = 3
    assert len(syntax.statement_trees("x = 1\ny = 2")) == 2
    failures[0] = 1
    assert str(parse_expr("1 + 2")) == str(parse_expr("1 + 2"))


def test_what_is_no_python_is_still_refused() -> None:
    with pytest.raises(SyntaxError):
        syntax.expression_tree("a +")
