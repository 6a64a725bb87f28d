"""Text in the format language -> a Format, or a FormatError that points into it.

    format     := [label (: | =)] [map =] [{ name, ... }] ( [dimension, ...] ) -> ( [level, ...] )
                                                                      also as an encoding's of MLIR's
    label      := name                                                what the format is called, which plays no part
    dimension  := name [= inverse]                                    from the names of levels; checked, as it follows
    inverse    := [-] term {(+ | -) term}
    term       := name [* integer] | integer * name
    level      := [name =] expression : level-format                  the name of a level, of MLIR's, is for inverses
    expression := product [(+ | -) product]
    product    := operand { (// | floordiv | div | % | mod) integer }
    operand    := name | ( expression )
    level-format := name [ ( [argument | property, ...] ) ]          also with [ ]
    property   := unique | nonunique | non-unique | ordered | unordered | nonordered | non-ordered | soa

`block2_4` is MLIR's older name of `structured(2, 4)`; its `soa`, an array for each singleton, is what all formats have.

A `#` begins a comment, to the end of its line. A `singleton` between a nonunique level and another singleton is
nonunique too where neither is given: in the coordinates (i, j, k) a pair (i, j) occurs once for each k.

Level formats and properties are read in any case.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import NamedTuple, NoReturn

from openwork.format.encoding import map_of
from openwork.format.expression import Add, Dim, Div, Expression, Mod, Sub
from openwork.format.format import Format, Level
from openwork.format.inverse import solve
from openwork.format.level import MAX_INTEGER, LevelFormat
from openwork.format.levels import LEVEL_FORMATS
from openwork.format.message import Place, Problem, refusal
from openwork.format.printer import repeats
from openwork.format.rules import MAX_DEPTH, MAX_DIMENSIONS, MAX_LEVELS, RESERVED, check

__all__ = ["MAX_TEXT", "parse"]

MAX_TEXT = 20_000
TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]+)|(?P<sign>->|//|[-(){}\[\],:+*/%=]))", re.ASCII
)
PROPERTIES = {
    "unique": {"unique": True},
    "nonunique": {"unique": False},
    "non_unique": {"unique": False},
    "ordered": {"ordered": True},
    "unordered": {"ordered": False},
    "nonordered": {"ordered": False},
    "non_ordered": {"ordered": False},
}
DIVISIONS: dict[str, type[Div] | type[Mod]] = {"//": Div, "floordiv": Div, "div": Div, "%": Mod, "mod": Mod}
OLDER: dict[str, tuple[str, list[int]]] = {"block2_4": ("structured", [2, 4])}
"""Names that level formats with these arguments had."""


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def parse(text: str) -> Format:
    """The format of a text in the format language."""
    return _Parser(text).format()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_TEXT:
            detail = f"expected: at most {MAX_TEXT} characters; got: {len(text)}"
            raise refusal("the text is too long", text, MAX_TEXT, detail, "use fewer dimensions and levels")
        map, self.explicit = map_of(text)
        self.tokens = self.scan(map)
        self.at = 0
        self.dims: list[str] = []
        self.spans: dict[Place, int] = {}
        self.unique_given: set[int] = set()
        self.level_names: list[str] = []
        self.inverses: dict[int, tuple[int, list[tuple[str, int, int]]]] = {}
        """of a dimension: where its inverse begins, and the terms: level name, coefficient, offset"""

    def scan(self, text: str) -> list[Token]:
        tokens, offset = [], 0
        while match := TOKEN.match(text, offset):
            kind = match.lastgroup or ""
            tokens.append(Token(kind, match[kind], match.start(kind)))
            offset = match.end()
        end = offset + len(text[offset:]) - len(text[offset:].lstrip(" \t\n\r\f\v"))
        if end < len(text):
            self.fail(
                "a character that the language does not have",
                end,
                f"expected: names, numbers, ( ) , : -> // % + -; got: {text[end]!r}",
                "leave it out",
            )
        return [*tokens, Token("end", "the end", len(text))]

    def fail(self, what: str, offset: int, detail: str, help: str) -> NoReturn:
        raise refusal(what, self.text, offset, detail, help)

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.token
        self.at += token.kind != "end"
        return token

    def accept(self, *signs: str) -> bool:
        is_next = self.token.text in signs and self.token.kind != "end"
        self.at += is_next
        return is_next

    def expect(self, sign: str, help: str) -> None:
        if not self.accept(sign):
            self.fail("the text does not parse", self.token.offset, f"expected: {sign}; got: {self.shown()}", help)

    def shown(self) -> str:
        return self.token.text if len(self.token.text) <= 40 else self.token.text[:40] + "..."

    def format(self) -> Format:
        example = "write (i, j) -> (i : dense, j : compressed)"
        if self.token.kind == "name" and self.token.text != "map" and self.tokens[self.at + 1].text in (":", "="):
            self.at += 2  # what the format is called, which plays no part
        if self.token.text == "map":
            self.next()
            self.expect("=", "write map = (i, j) -> (...)")
        declared = self.token.offset, self.declarations()
        self.expect("(", example)
        self.dims = self.names()
        self.expect("->", example)
        self.expect("(", example)
        levels: list[Level] = []
        while not self.accept(")"):
            if len(levels) >= MAX_LEVELS:
                detail = f"expected: at most {MAX_LEVELS}; got: more"
                self.fail("too many levels", self.token.offset, detail, "use fewer nested blocks")
            levels.append(self.level(len(levels)))
            if not self.accept(","):
                self.expect(")", "separate levels by commas and close them with )")
                break
        if self.token.kind != "end":
            detail = f"expected: the end; got: {self.shown()}"
            self.fail("text after the format", self.token.offset, detail, "leave it out")
        for at, level in enumerate(levels):
            if at not in self.unique_given and repeats(levels, at):
                levels[at] = Level(level.expression, replace(level.format, unique=False))
        if isinstance(problem := check(self.dims, levels), Problem):
            self.fail(problem.what, self.spans[problem.place], problem.detail, problem.help)
        self.check_inverses(levels, *declared)
        return Format(tuple(self.dims), tuple(levels), self.explicit)

    def names(self) -> list[str]:
        names: list[str] = []
        while not self.accept(")"):
            if len(names) >= MAX_DIMENSIONS:
                detail = f"expected: at most {MAX_DIMENSIONS}; got: more"
                self.fail("too many dimensions", self.token.offset, detail, "merge dimensions with reshape first")
            self.spans["dim", len(names)] = self.token.offset
            if self.token.kind != "name" or self.token.text in RESERVED:
                detail = f"expected: the name of a dimension; got: {self.shown()}"
                self.fail("the text does not parse", self.token.offset, detail, "write (i, j) -> (...)")
            names.append(self.next().text)
            if self.accept("="):
                self.inverses[len(names) - 1] = self.token.offset, self.inverse()
            if not self.accept(","):
                self.expect(")", "separate dimensions by commas and close them with )")
                break
        return names

    def declarations(self) -> list[str]:
        """The names of levels that MLIR has in front of a map with inverses."""
        names: list[str] = []
        if self.accept("{"):
            while not self.accept("}"):
                names.append(self.level_name())
                if not self.accept(","):
                    self.expect("}", "separate the names of levels by commas and close them with }")
                    break
        return names

    def level_name(self) -> str:
        if self.token.kind != "name" or self.token.text in RESERVED:
            detail = f"expected: the name of a level; got: {self.shown()}"
            self.fail("the text does not parse", self.token.offset, detail, "write {l0, l1} (i = l0, j = l1) -> (...)")
        return self.next().text

    def inverse(self) -> list[tuple[str, int, int]]:
        """A dimension as a sum of level coordinates times integers."""
        terms: list[tuple[str, int, int]] = []
        sign = -1 if self.accept("-") else 1
        while len(terms) < MAX_LEVELS:
            offset = self.token.offset
            factor = self.factor() if self.token.kind == "number" else None
            if factor is not None:
                self.expect("*", "write an integer times the name of a level, as in 2 * l0")
            name = self.level_name()
            if factor is None:
                factor = self.factor() if self.accept("*") else 1
            terms.append((name, sign * factor, offset))
            if not self.accept("+", "-"):
                break
            sign = 1 if self.tokens[self.at - 1].text == "+" else -1
        return terms

    def factor(self) -> int:
        offset, token = self.token.offset, self.next()
        value = self.integer(token.text, "") if token.kind == "number" else None
        if value is None:
            detail = f"expected: an integer up to {MAX_INTEGER}; got: {token.text[:40]}"
            self.fail("a coefficient is no integer", offset, detail, "use the size of the block, as in l0 * 2")
        return value

    def check_inverses(self, levels: list[Level], at: int, declared: list[str]) -> None:
        """Refuse declared names that are not those of the levels, and inverses that are not what the levels say."""
        names = self.level_names
        if declared and declared != names:
            detail = f"expected: {{{', '.join(n or '?' for n in names)}}}, the names of the levels; got: {declared}"
            self.fail("the names of levels differ", at, detail, "write {l0, l1} (...) -> (l0 = ..., l1 = ...)")
        if not self.inverses:
            return
        solution = solve([level.expression for level in levels]).forms
        for d, (offset, terms) in self.inverses.items():
            form: dict[str, int] = {}
            for name, factor, place in terms:
                if names.count(name) != 1:
                    named = ", ".join(filter(None, names)) or "a level's name, and none has one"
                    detail = f"expected: one of {named}, once among the levels; got: {name}"
                    self.fail("an inverse uses an unknown level", place, detail, f"name the level: {name} = ...")
                form[name] = form.get(name, 0) + factor
            expected = {names[level]: factor for level, factor in solution[d].items()}
            if {name: factor for name, factor in form.items() if factor} != expected:
                text = " + ".join(f"{name or '(a level)'} * {factor}" for name, factor in expected.items())
                detail = f"expected: {self.dims[d]} = {text}; got: {self.text[offset : offset + 40].split(',')[0]}"
                self.fail("a dimension is not what its inverse says", offset, detail, "leave it out: it follows")

    def level(self, index: int) -> Level:
        named = self.token.kind == "name" and self.tokens[self.at + 1].text == "="
        self.level_names.append(self.token.text if named else "")
        self.at += 2 * named
        self.spans["expression", index] = self.token.offset
        expression = self.expression(0)
        self.expect(":", "write expression : level format, as in i // 4 : dense")
        self.spans["format", index] = self.token.offset
        return Level(expression, self.level_format(index))

    def expression(self, depth: int) -> Expression:
        start = self.token.offset
        left = self.product(depth)
        if self.token.text not in ("+", "-"):
            return left
        kind = Add if self.next().text == "+" else Sub
        right = self.product(depth)
        if not isinstance(left, Dim) or not isinstance(right, Dim) or self.token.text in ("+", "-"):
            detail = f"expected: i + j or i - j; got: {self.between(start)}"
            help = "write (i + j) // 4 for blocks of diagonals"
            self.fail("a sum or difference of something else than two dimensions", start, detail, help)
        return kind(left, right)

    def between(self, start: int) -> str:
        text = self.text[start : self.tokens[self.at - 1].offset + len(self.tokens[self.at - 1].text)]
        return text if len(text) <= 40 else text[:40] + "..."

    def product(self, depth: int) -> Expression:
        e = self.operand(depth)
        count = 0
        while self.token.text in DIVISIONS:
            operator = self.next()
            count += 1
            if count > MAX_DEPTH:
                self.too_deep(operator.offset)
            e = DIVISIONS[operator.text](e, self.divisor(operator.text))
        if self.token.text in ("*", "/"):
            detail = f"expected: one of + - // %; got: {self.shown()}"
            self.fail("an operator that expressions do not have", self.token.offset, detail, "write i // 4 or i % 4")
        return e

    def too_deep(self, offset: int) -> NoReturn:
        self.fail(
            "an expression is nested too deep",
            offset,
            f"expected: at most {MAX_DEPTH} levels; got: more",
            "i // 4 // 4 is i // 16",
        )

    def divisor(self, operator: str) -> int:
        offset, sign = self.token.offset, "-" if self.accept("-") else ""
        if self.token.kind != "number":
            detail = f"expected: {operator} and a positive integer; got: {self.shown()}"
            self.fail("a divisor is not a positive integer", offset, detail, "use the size of the block, as in i // 4")
        digits = self.next().text
        value = self.integer(digits, sign)
        if value is None or value < 1:
            detail = f"expected: an integer from 1 to {MAX_INTEGER}; got: {sign}{digits[:40]}"
            self.fail("a divisor is not a positive integer", offset, detail, "use the size of the block")
        return value

    def integer(self, digits: str, sign: str) -> int | None:
        digits = digits.lstrip("0") or "0"
        if len(digits) > 10 or int(digits) > MAX_INTEGER:
            return None
        return -int(digits) if sign else int(digits)

    def operand(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            self.too_deep(self.token.offset)
        if self.accept("("):
            e = self.expression(depth + 1)
            self.expect(")", "close the parenthesis")
            return e
        if self.token.kind != "name" or self.token.text in RESERVED:
            detail = f"expected: a dimension or (; got: {self.shown()}"
            self.fail("the text does not parse", self.token.offset, detail, "write i, i + j, i - j, e // 4 or e % 4")
        name = self.next()
        if name.text not in self.dims:
            detail = f"known dimensions: {', '.join(self.dims) or 'none'}; got: {name.text}"
            other = f", or write {self.dims[-1]}" if self.dims else ""
            self.fail(
                "a level uses an unknown dimension", name.offset, detail, f"declare {name.text} on the left{other}"
            )
        return Dim(self.dims.index(name.text))

    def level_format(self, index: int) -> LevelFormat:
        name = self.next()
        known, arguments = OLDER.get(name.text.lower(), (name.text.lower(), []))
        cls = LEVEL_FORMATS.get(known) if name.kind == "name" else None
        if cls is None:
            close = difflib.get_close_matches(name.text.lower()[:40], LEVEL_FORMATS, 1)
            detail = f"expected: one of {', '.join(LEVEL_FORMATS)}; got: {name.text[:40]}"
            help = f"did you mean {close[0]}?" if close else "write i : dense or i : compressed"
            self.fail("not a level format", name.offset, detail, help)
        self.spans["properties", index] = name.offset
        arguments, properties = list(arguments), dict[str, bool]()
        opened = self.token.text
        if self.accept("(", "["):
            self.spans["properties", index] = self.token.offset
            close_sign = ")" if opened == "(" else "]"
            while not self.accept(close_sign):
                self.argument(index, arguments, properties)
                if not self.accept(","):
                    self.expect(close_sign, "separate arguments and properties by commas")
                    break
        return self.make_level_format(cls, index, arguments, properties)

    def argument(self, index: int, arguments: list[int], properties: dict[str, bool]) -> None:
        offset, sign = self.token.offset, "-" if self.accept("-") else ""
        token = self.next()
        if token.kind == "number":
            value = self.integer(token.text, sign)
            if value is None:
                detail = f"expected: an integer up to {MAX_INTEGER}; got: {sign}{token.text[:40]}"
                self.fail("an argument is out of range", offset, detail, "use a smaller number")
            arguments.append(value)
            return
        word = token.text.lower()
        if word == "non" and self.accept("-"):
            word += "_" + self.next().text.lower()
        if word == "soa" and token.kind == "name" and not sign:
            return
        flag = PROPERTIES.get(word) if token.kind == "name" and not sign else None
        if flag is None:
            close = difflib.get_close_matches(word[:40], PROPERTIES, 1)
            detail = f"expected: an integer, unique, nonunique, ordered or unordered; got: {sign}{word[:40]}"
            help = f"did you mean {close[0]}?" if close and not sign else "leave it out"
            self.fail("neither an argument nor a property", offset, detail, help)
        ((key, value),) = flag.items()
        if key in properties:
            got = "both" if properties[key] != value else f"{word} twice"
            detail = f"expected: {key} or its opposite, once; got: {got}"
            self.fail("a property is given twice", offset, detail, "leave one of them out")
        properties[key] = value
        self.unique_given |= {index} if key == "unique" else set()
        self.spans["nonunique" if key == "unique" else "unordered", index] = offset

    def make_level_format(
        self, cls: type[LevelFormat], index: int, arguments: list[int], properties: dict[str, bool]
    ) -> LevelFormat:
        unique, ordered = properties.get("unique", True), properties.get("ordered", True)
        named = ("nonunique",) * (not unique) + ("unordered",) * (not ordered)
        if problem := cls.problem(tuple(arguments), named):
            self.fail(problem.what, self.spans[problem.place[0], index], problem.detail, problem.help)
        return cls(*arguments, unique=unique, ordered=ordered)
