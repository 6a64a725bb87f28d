"""Text in Python's grammar -> its syntax tree, from any thread."""

from __future__ import annotations

import ast

__all__ = ["expression_tree", "statement_trees", "syntax_tree"]

TRIES = 100


def syntax_tree(text: str, mode: str = "exec", name: str = "<text>") -> ast.AST:
    """The syntax tree: a Module of statements ("exec"), or an Expression ("eval").

    Raises SyntaxError. Python before 3.12 counts the depth of trees for all threads together, and raises SystemError
    where two threads make trees at once; the text is then read again.
    """
    for _ in range(TRIES):
        try:
            return compile(text, name, mode, ast.PyCF_ONLY_AST)
        except SystemError:
            continue
    return compile(text, name, mode, ast.PyCF_ONLY_AST)


def statement_trees(text: str) -> list[ast.stmt]:
    """The trees of some statements."""
    module = syntax_tree(text)
    assert isinstance(module, ast.Module)
    return module.body


def expression_tree(text: str) -> ast.expr:
    """The tree of one expression."""
    expression = syntax_tree(text, "eval")
    assert isinstance(expression, ast.Expression)
    return expression.body
