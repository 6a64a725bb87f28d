"""Index notation from text: `C[i, k] += A[i, j] * B[j, k]`, `y(i) += A(i, j) * x(j)`, `s += max(A[i, j], 0)`.

Operators and their precedence are Python's: `or and not`, comparisons (chained ones too), `| ^ & << >>`,
`+ - * / // % **`, unary `- + ~`. A name before a parenthesis is a function where `ir.ops` has an operation of that
name (`where` is `select`), else an access. Literals: integers, floats, `2j`, `complex(re, im)`, `inf`, `nan`, `True`,
`False`. Every error is a FormatError with a caret under the offending place.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from ..errors import FormatError
from .index import ASSIGNMENTS, PREFIX, PRESENCE, Access, Apply, Assignment, Expression, Literal, accesses
from .operations import INFIX
from .ops import OF_LANES, arity

__all__ = ["parse", "parse_expression"]

_TOKEN = re.compile(
    r"\s*(?:(?P<assign>(?:min|max)=(?!=))|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[jJ]?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<op>\*\*|//|<<|>>|[=!<>]=|[-+*|&]=|[-+*/%()\[\],=<>|&^~]))"
)
_INFIX = {word: (op, binds) for op, (word, binds) in INFIX.items() if op != "pow"}
_COMPARISONS = {op for op, (_, binds) in INFIX.items() if binds == INFIX["eq"][1]}
_WORDS = {"True": True, "False": False, "inf": math.inf, "nan": math.nan}
_ALIASES = {"where": "select", "maximum": "max", "minimum": "min"}
_RESERVED = {"and", "or", "not", *_WORDS}
_DEPTH, _OPERATIONS = 60, 200


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


@lru_cache(maxsize=4096)
def parse(text: str) -> Assignment:
    """Read an assignment. Raises FormatError with a caret under what is wrong."""
    parser = _Parser(text)
    lhs = parser.access()
    token = parser.take()
    if token.text not in ASSIGNMENTS:
        raise parser.error(
            "expected an assignment", token.at, f"expected one of {' '.join(ASSIGNMENTS)}; got {_got(token)}"
        )
    rhs = parser.expression()
    parser.end()
    result = Assignment(lhs, token.text, rhs)
    parser.check(result)
    return result


def parse_expression(text: str) -> Expression:
    """Read an expression alone."""
    parser = _Parser(text)
    result = parser.expression()
    parser.end()
    return result


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise _error(text, "unknown character", at, f"got {text[at]!r}")
        kind = match.lastgroup
        assert kind is not None
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*tokens, _Token("end", "", len(text.rstrip()))]


def _got(token: _Token) -> str:
    return repr(token.text) if token.text else "the end"


def _error(text: str, what: str, at: int, detail: str, remedy: str = "") -> FormatError:
    line = "".join(c if c.isprintable() else " " for c in text)
    start = max(0, at - 60)
    left = "..." if start else ""
    shown = left + line[start : start + 110] + ("..." if len(line) > start + 110 else "")
    tail = f"\n  help: {remedy}" if remedy else ""
    return FormatError(f"index notation: {what}\n  {shown}\n  {' ' * (at - start + len(left))}^\n  {detail}{tail}")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.position = 0
        self.depth = 0
        self.operations = 0
        self.places: dict[str, list[tuple[Access, int]]] = {}
        self.index_names: dict[str, int] = {}

    def error(self, what: str, at: int, detail: str, remedy: str = "") -> FormatError:
        return _error(self.text, what, at, detail, remedy)

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.next
        self.position += token.kind != "end"
        return token

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            raise self.error(f"expected {text!r}", token.at, f"expected {text!r}; got {_got(token)}")

    def end(self) -> None:
        token = self.next
        if token.kind != "end":
            raise self.error("unexpected text after the expression", token.at, f"expected the end; got {token.text!r}")

    def access(self) -> Access:
        token = self.take()
        if token.kind != "name" or token.text in _RESERVED:
            raise self.error("expected a tensor", token.at, f"expected a name; got {_got(token)}")
        return self._access(token)

    def _access(self, name: _Token) -> Access:
        indices: list[str] = []
        close = {"[": "]", "(": ")"}.get(self.next.text)
        if close is not None:
            self.take()
            while self.next.text != close:
                token = self.take()
                if token.kind != "name" or token.text in _RESERVED:
                    raise self.error(
                        "expected an index", token.at, f"expected the name of an index variable; got {_got(token)}"
                    )
                indices.append(token.text)
                self.index_names.setdefault(token.text, token.at)
                if self.next.text != close:
                    self.expect(",")
            self.take()
        found = Access(name.text, tuple(indices))
        self.places.setdefault(name.text, []).append((found, name.at))
        return found

    def expression(self) -> Expression:
        return self._climb(0)

    def _deeper(self, by: int) -> None:
        self.depth += by
        if self.depth > _DEPTH:
            raise self.error("nested too deeply", self.next.at, f"expected at most {_DEPTH} levels of nesting")

    def apply(self, op: str, *args: Expression) -> Apply:
        self.operations += 1
        if self.operations > _OPERATIONS:
            raise self.error("too long an expression", self.next.at, f"expected at most {_OPERATIONS} operations")
        return Apply(op, args)

    def _climb(self, least: int) -> Expression:
        """Everything that binds at least as tightly as `least`."""
        self._deeper(1)
        if self.next.text == "not" and least <= PREFIX["not"][1]:
            self.take()
            result: Expression = self.apply("not", self._climb(PREFIX["not"][1]))
        else:
            result = self._unary()
        while (found := _INFIX.get(self.next.text)) is not None and found[1] >= least:
            op, level = found
            if op in _COMPARISONS:
                result = self._comparison(result)
            else:
                self.take()
                result = self.apply(op, result, self._climb(level + 1))
        self.depth -= 1
        return result

    def _comparison(self, left: Expression) -> Expression:
        """A chain `left < b <= c`, which means `left < b and b <= c`."""
        result: Expression | None = None
        while (found := _INFIX.get(self.next.text, ("", 0)))[0] in _COMPARISONS:
            self.take()
            right = self._climb(found[1] + 1)
            term = self.apply(found[0], left, right)
            result = term if result is None else self.apply("and", result, term)
            left = right
        assert result is not None
        return result

    def _unary(self) -> Expression:
        signs: list[str] = []
        while self.next.text in ("-", "+", "~"):
            signs.append(self.take().text)
        first = self.position
        result = self._power()
        number = isinstance(result, Literal) and self.position == first + 1 and not isinstance(result.value, bool)
        for sign in reversed(signs):
            if sign == "-" and number and isinstance(result, Literal):
                result, number = Literal(-result.value), False
            elif sign != "+":
                result, number = self.apply("neg" if sign == "-" else "bnot", result), False
        return result

    def _power(self) -> Expression:
        base = self._atom()
        if self.next.text != "**":
            return base
        self.take()
        self._deeper(1)
        result = self.apply("pow", base, self._unary())
        self._deeper(-1)
        return result

    def _atom(self) -> Expression:
        token = self.take()
        if token.kind == "number":
            return Literal(_number(token.text))
        if token.text == "(":
            inside = self.expression()
            self.expect(")")
            return inside
        if token.text in _WORDS:
            return Literal(_WORDS[token.text])
        if token.kind != "name" or token.text in _RESERVED:
            raise self.error(
                "expected a value", token.at, f"expected a tensor, a number or a function; got {_got(token)}"
            )
        name = _ALIASES.get(token.text, token.text)
        if self.next.text == "(" and (name in ("complex", *PRESENCE) or arity(name) is not None):
            return self._call(name, token)
        return self._access(token)

    def _call(self, name: str, token: _Token) -> Expression:
        self.take()
        args: list[Expression] = []
        while self.next.text != ")":
            args.append(self.expression())
            if self.next.text != ")":
                self.expect(",")
        self.take()
        if name == "complex":
            return self._complex(args, token)
        count = 2 if name in PRESENCE else arity(name)
        while name in ("min", "max", "add", "mul") and len(args) > 2:
            args[:2] = [self.apply(name, args[0], args[1])]
        if len(args) != count or name in OF_LANES:
            raise self.error(f"{token.text} cannot take these operands", token.at, f"expected {count}; got {len(args)}")
        return self.apply(name, *args)

    def _complex(self, args: list[Expression], token: _Token) -> Literal:
        values = [a.value for a in args if isinstance(a, Literal) and not isinstance(a.value, complex)]
        if len(values) != 2 or len(args) != 2:
            raise self.error("complex() takes two real numbers", token.at, "expected complex(1.0, -2.0)")
        return Literal(complex(*values))

    def check(self, stmt: Assignment) -> None:
        """The rules beyond the grammar, each with its place."""
        lhs = stmt.lhs
        for i in lhs.indices:
            if lhs.indices.count(i) > 1:
                at = self.index_names[i]
                raise self.error("an index is repeated on the left", at, f"expected each index once; got {lhs}")
        for name, found in self.places.items():
            if name in self.index_names:
                remedy = "call one of the two differently"
                raise self.error("an index is used as a tensor", found[-1][1], f"{name!r} is both", remedy)
            for access, at in found:
                if len(access.indices) != len(found[0][0].indices):
                    detail = f"expected {len(found[0][0].indices)} indices, as in {found[0][0]}; got {access}"
                    raise self.error(f"{name} is used with different numbers of indices", at, detail)
        if any(a.tensor == lhs.tensor for a in accesses(stmt.rhs)):
            at = self.places[lhs.tensor][-1][1]
            remedy = "give the result a name of its own"
            raise self.error("the result is read on the right", at, f"{lhs.tensor} is being computed", remedy)


def _number(text: str) -> int | float | complex:
    if text[-1] in "jJ":
        return complex(0.0, float(text[:-1]))
    return int(text) if text.isdecimal() else float(text)
