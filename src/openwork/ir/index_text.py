"""Text -> index notation: `C[i, k] += A[i, j] * B[j, k]`, `y(i) = A(i, j) * x(j)`, `C<M>[i, j] = max(A[i, j], 0)`.

Operators and their precedence are Python's: `or and not`, comparisons (chained ones too), `| ^ & << >>`,
`+ - * / // % **`, unary `- + ~`. A name before a parenthesis is a function where `ir.ops` has an operation of that
name (`where` is `select`), else an access. Literals: integers, floats, `2j`, `complex(re, im)`, `inf`, `nan`, `True`,
`False`. `y any= e` and `y all= e` are `y |= e != 0` and `y &= e != 0`. In a program, `sum(j, A[i, j])`, and `prod`,
`min`, `max`, `any`, `all` of indices and an expression, are inner reductions. Every error is a FormatError with a caret
under the offending place.
"""

from __future__ import annotations

import difflib
import math
import re
from functools import lru_cache
from typing import NamedTuple

from ..errors import FormatError, marked
from .einstein import separated
from .index import ASSIGNMENTS, PREFIX, PRESENCE, Access, Apply, Assignment, Expression, Literal, accesses
from .operations import INFIX, OPERATIONS
from .ops import OF_LANES, arity

__all__ = ["parse", "parse_expression", "parse_program", "pointed"]

_TOKEN = re.compile(
    r"\s*(?:(?P<assign>(?:min|max|any|all)=(?!=))|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[jJ]?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<op>\*\*|//|<<|>>|[=!<>]=|[-+*|&]=|[-+*/%()\[\],=<>|&^~]))"
)
_INFIX = {word: (op, binds) for op, (word, binds) in INFIX.items() if op != "pow"}
_COMPARISONS = {op for op, (_, binds) in INFIX.items() if binds == INFIX["eq"][1]}
_WORDS = {"True": True, "False": False, "inf": math.inf, "nan": math.nan}
_ALIASES = {"where": "select", "maximum": "max", "minimum": "min"}
_RESERVED = {"and", "or", "not", *_WORDS}
_LOGICAL = {"any=": "|=", "all=": "&="}
_INNER = {"sum": "+=", "prod": "*=", "min": "min=", "max": "max=", "any": "any=", "all": "all="}
_DEPTH, _OPERATIONS = 60, 200


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


@lru_cache(maxsize=4096)
def parse(text: str) -> Assignment:
    """Read an assignment. Raises FormatError with a caret under the fault."""
    parser = _Parser(text)
    result = parser.assignment()
    if parser.inner:
        raise parser.error(
            "a reduction inside an expression", 0, "expected one statement alone", "ow.evaluate takes several"
        )
    return result


@lru_cache(maxsize=1024)
def parse_program(text: str) -> tuple[tuple[str, tuple[Assignment, ...]], ...]:
    """Read statements separated by `;` or line ends, `#` begins a comment: for each its text and its assignments, those
    of inner reductions first.

    Raises FormatError with a caret under the fault.
    """
    lines = [part.strip() for line in text.split("\n") for part in line.partition("#")[0].split(";")]
    statements = []
    for number, line in enumerate(filter(None, lines)):
        parser = _Parser(line, f"'{number}.")
        stmt = parser.assignment()
        parts = separated(stmt, f"{stmt.lhs.tensor}'{number}.")
        if parts is None:
            raise parser.error(
                "what is summed depends on how the product is expanded", 0,
                "expected each factor of a product to have a reduced index in all of its terms or in none",
                "write the sums, as in sum(j, A[i, j] * x[j]), or use += to sum the whole right side",
            )  # fmt: skip
        statements.append((line, (*parser.inner, *parts)))
    return tuple(statements)


def pointed(text: str, access: Access | str) -> str:
    """A text with a caret under the first place of an access or a name."""
    name, indices = (access, ()) if isinstance(access, str) else (access.tensor, access.indices)
    indices_pattern = r"\s*,\s*".join(map(re.escape, indices))
    match = re.search(rf"(?<!\w){re.escape(name)}\s*[\[(]\s*{indices_pattern}\s*,?\s*[\])]", text) if indices else None
    match = match or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return marked(text, match.start() if match else 0)


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
            remedy = "\n  help: an index names a whole dimension: A[i, j]" if text[at] == ":" else ""
            raise _error(text, "unknown character", at, f"got {text[at]!r}{remedy}")
        kind = match.lastgroup
        assert kind is not None
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*tokens, _Token("end", "", len(text.rstrip()))]


def _got(token: _Token) -> str:
    return repr(token.text) if token.text else "the end"


def _error(text: str, what: str, at: int, detail: str, remedy: str = "") -> FormatError:
    tail = f"\n  help: {remedy}" if remedy else ""
    return FormatError(f"index notation: {what}\n{marked(text, at)}\n  {detail}{tail}")


class _Parser:
    def __init__(self, text: str, prefix: str = "'") -> None:
        self.text = text
        self.prefix, self.program = prefix, prefix != "'"
        self.inner: list[Assignment] = []
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

    def expect(self, text: str, remedy: str = "") -> None:
        token = self.take()
        if token.text != text:
            raise self.error(f"expected {text!r}", token.at, f"expected {text!r}; got {_got(token)}", remedy)

    def _function_hint(self, name: str) -> str:
        """The help for a name before parentheses that is no function."""
        close = difflib.get_close_matches(name, [*OPERATIONS, *_ALIASES, *_INNER], 1)
        return f"there is no function {name}" + (f"; did you mean {close[0]}?" if close else "")

    def end(self) -> None:
        token = self.next
        if token.kind != "end":
            raise self.error("unexpected text after the expression", token.at, f"expected the end; got {token.text!r}")

    def assignment(self) -> Assignment:
        lhs, mask, complement = self.target()
        token = self.take()
        if token.text not in ASSIGNMENTS and token.text not in _LOGICAL:
            names = (*ASSIGNMENTS, *(_LOGICAL if self.program else ()))
            close = difflib.get_close_matches(f"{token.text}=", names, 1, 0.7)
            detail = f"expected one of {' '.join(names)}; got {_got(token)}"
            hint = f"did you mean {close[0]}?" if close else ""
            raise self.error("expected an assignment", token.at, detail, hint)
        rhs = self.expression()
        self.end()
        if token.text in _LOGICAL:
            rhs = Apply("ne", (rhs, Literal(0)))
        result = Assignment(lhs, _LOGICAL.get(token.text, token.text), rhs, mask, complement)
        self.check(result)
        return result

    def target(self) -> tuple[Access, Access | None, bool]:
        """The left side, its mask, and whether the mask is complemented."""
        if len(self.tokens) < 2 or self.tokens[1].text != "<":
            return self.access(), None, False
        name = self.take()
        self.take()
        complement = self.next.text in ("~", "not")
        if complement:
            self.take()
        mask = self.access()
        self.expect(">")
        self.places.setdefault(name.text, [])
        lhs = self._access(name)
        full = mask if mask.indices else Access(mask.tensor, lhs.indices)
        self.places[mask.tensor][-1] = full, self.places[mask.tensor][-1][1]
        return lhs, full, complement

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
                    self.expect(",", self._function_hint(name.text) if close == ")" and self.next.kind == "op" else "")
            self.take()
        access = Access(name.text, tuple(indices))
        self.places.setdefault(name.text, []).append((access, name.at))
        return access

    def expression(self) -> Expression:
        return self._climb(0)

    def _nest(self, by: int) -> None:
        self.depth += by
        if self.depth > _DEPTH:
            raise self.error("nested too deeply", self.next.at, f"expected at most {_DEPTH} levels of nesting")

    def apply(self, op: str, *args: Expression) -> Apply:
        self.operations += 1
        if self.operations > _OPERATIONS:
            raise self.error("too long an expression", self.next.at, f"expected at most {_OPERATIONS} operations")
        return Apply(op, args)

    def _climb(self, least: int) -> Expression:
        """An expression whose operators bind at least as tightly as `least` (precedence climbing)."""
        self._nest(1)
        if self.next.text == "not" and least <= PREFIX["not"][1]:
            self.take()
            result: Expression = self.apply("not", self._climb(PREFIX["not"][1]))
        else:
            result = self._unary()
        while (operator := _INFIX.get(self.next.text)) is not None and operator[1] >= least:
            op, level = operator
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
        while (operator := _INFIX.get(self.next.text, ("", 0)))[0] in _COMPARISONS:
            self.take()
            right = self._climb(operator[1] + 1)
            term = self.apply(operator[0], left, right)
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
        self._nest(1)
        result = self.apply("pow", base, self._unary())
        self._nest(-1)
        return result

    def _atom(self) -> Expression:
        token = self.take()
        if token.kind == "number":
            if len(token.text) > MOST_DIGITS:
                detail = f"expected at most {MOST_DIGITS} digits; got {len(token.text)}"
                raise self.error("a number is too long", token.at, detail, "give it as a tensor of rank 0")
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
        if self.next.text == "(" and token.text in _INNER:
            return self._reduction_or_call(token)
        if self.next.text == "(" and (name in ("complex", *PRESENCE) or arity(name) is not None):
            return self._call(name, token, self._arguments())
        return self._access(token)

    def _arguments(self) -> list[Expression]:
        self.take()
        args: list[Expression] = []
        while self.next.text != ")":
            args.append(self.expression())
            if self.next.text != ")":
                self.expect(",")
        self.take()
        return args

    def _reduction_or_call(self, token: _Token) -> Expression:
        """`sum(j, A[i, j] * x[j])`, which becomes a statement in `inner`; or `max(a, b)`, an operation."""
        args = self._arguments()
        *leading, last = args or [Literal(0)]
        index_names = {i for a in accesses(last) for i in a.indices}
        names = [a.tensor for a in leading if isinstance(a, Access) and not a.indices and a.tensor in index_names]
        if not names or len(names) != len(leading):
            if arity(token.text) is not None:
                return self._call(token.text, token, args)
            detail = f"expected {token.text}(j, A[i, j]), with the indices that are reduced first"
            raise self.error(f"{token.text} lacks its indices", token.at, detail)
        for name in names:
            self.places[name].pop()
            if not self.places[name]:
                del self.places[name]
        free = tuple(i for i in dict.fromkeys(i for a in accesses(last) for i in a.indices) if i not in names)
        target = Access(f"{token.text}{self.prefix}{len(self.inner) + 1}", free)
        op = _INNER[token.text]
        body = Apply("ne", (last, Literal(0))) if op in _LOGICAL else last
        self.inner.append(Assignment(target, _LOGICAL.get(op, op), body))
        return target

    def _call(self, name: str, token: _Token, args: list[Expression]) -> Expression:
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
        """Check the rules beyond the grammar; each error points at its place."""
        lhs = stmt.lhs
        for i in lhs.indices:
            if lhs.indices.count(i) > 1:
                at = self.index_names[i]
                raise self.error("an index is repeated on the left", at, f"expected each index once; got {lhs}")
        if stmt.mask is not None and (extra := set(stmt.mask.indices) ^ set(lhs.indices)):
            at = self.places[stmt.mask.tensor][0][1]
            detail = f"expected the indices of {lhs} in {stmt.mask}; {', '.join(sorted(extra))} is in one of them only"
            raise self.error("a mask has the indices of the left side", at, detail)
        for name, uses in self.places.items():
            if name in self.index_names:
                remedy = "call one of the two differently"
                raise self.error("an index is used as a tensor", uses[-1][1], f"{name!r} is both", remedy)
            for access, at in uses:
                if len(access.indices) != len(uses[0][0].indices):
                    detail = f"expected {len(uses[0][0].indices)} indices, as in {uses[0][0]}; got {access}"
                    raise self.error(f"{name} is used with different numbers of indices", at, detail)
        right = [*accesses(stmt.rhs), *(a for s in self.inner for a in accesses(s.rhs))]
        if any(a.tensor == lhs.tensor for a in (*right, *filter(None, [stmt.mask]))):
            at = self.places[lhs.tensor][-1][1]
            remedy = "give the result a name of its own"
            raise self.error("the result is read on the right", at, f"{lhs.tensor} is being computed", remedy)


MOST_DIGITS = 4000
"""Digits of a number: Python converts no integers of more than 4,300."""


def _number(text: str) -> int | float | complex:
    if text[-1] in "jJ":
        return complex(0.0, float(text[:-1]))
    return int(text) if text.isdecimal() else float(text)
