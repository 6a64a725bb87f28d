"""From the blocks of operations to what lists them: `src/openwork/tables.py`, the methods' stub, the reference page.

python tools/operations.py            # write them
python tools/operations.py --check    # say which differ, exit with 1 where one does
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
from stubs import methods, namespace

import openwork
import openwork.fusion
import openwork.interop
import openwork.ops
import openwork.tensor
from openwork import errors
from openwork.runtime.operation import OPERATIONS, Operation
from openwork.runtime.result_rules import DTYPES, FILLS, FORMATS, SHAPES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openwork"
CHAPTERS = {
    "interop": "From NumPy, SciPy and torch", "creation": "Creation", "random": "Random tensors",
    "elementwise": "Elementwise", "reductions": "Reductions", "products": "Products", "indexing": "Indexing",
    "manipulation": "Manipulation", "sorting": "Sorting and searching", "sets": "Sets", "dtypes": "Dtypes",
    "namespace": "The namespace", "fusion": "Several operations in one",
}  # fmt: skip


def blocks() -> list[Operation]:
    """All blocks, by module and name."""
    for package in (openwork.tensor, openwork.interop, openwork.ops, openwork.fusion):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    return sorted(OPERATIONS.values(), key=lambda o: (o.module, o.name))


def _signature(operation: Operation) -> str:
    """The parameters in parentheses."""
    shown = [p.replace(annotation=p.empty) for p in inspect.signature(operation.function).parameters.values()]
    text = str(inspect.Signature([p.replace(default=Ellipsis) if _is_long(p.default) else p for p in shown]))
    return text.replace("Ellipsis", "...")


def _is_long(default: object) -> bool:
    return default is not inspect.Parameter.empty and not isinstance(default, bool | int | float | str | None)


def _errors() -> list[str]:
    return [n for n in errors.__all__ if n in openwork.__all__ and isinstance(getattr(errors, n), type)]


def _wrapped(name: str, entries: list[str], doc: str) -> str:
    """A table as many lines of entries."""
    lines = textwrap.wrap(", ".join(e.replace(" ", "\0") for e in entries), 112, break_long_words=False)
    rows = "".join(f"    {line}\n" for line in lines).replace("\0", " ")
    return f'{name}: dict[str, str] = {{\n{rows}}}\n"""{doc}"""\n'


def _row(o: Operation) -> str:
    """An operation as a row: its name, what it is, and the first sentence of the method."""
    kinds = {
        "method": o.method, "places": bool(o.places), "attribute": o.attribute, "operands": o.operands,
        "masked": o.masked is not None, "lazy": o.lazy, "grad": o.grad,
    }  # fmt: skip
    text = o.summary if o.method or o.attribute else ""
    return f"({', '.join(map(json.dumps, (o.name, ' '.join(k for k, v in kinds.items() if v), text)))}),"


EXAMPLES = {
    "abs": ["A = ow.asarray([0, -2.5, 3.0], format='coo')", "ow.abs(A).to_numpy()"],
    "acos": ["angles = ow.acos(ow.asarray([0, 1.0], format='coo'))", "angles.nse, round(angles.fill_value, 3)"],
    "acosh": ["ow.acosh(ow.asarray([1.0, 4.0])).to_numpy().round(3)"],
    "add": ["A = ow.eye(3, format='csr')", "ow.add(A, A.T).nse, ow.add(A, 1).fill_value"],
    "asin": ["ow.asin(ow.asarray([0, 0.5, 1.0], format='coo')).to_numpy().round(3)"],
    "asinh": ["ow.asinh(ow.asarray([0, 100.0], format='coo')).to_numpy().round(3)"],
    "atan": ["ow.atan(ow.asarray([0, 1.0, np.inf], format='coo')).to_numpy().round(3)"],
    "atan2": [
        "y, x = ow.asarray([1.0, 0, -1], format='coo'), ow.asarray([1.0, 0, 0], format='coo')",
        "ow.atan2(y, x).to_numpy().round(3)",
    ],
    "atanh": ["ow.atanh(ow.asarray([0, 0.5], format='coo')).to_numpy().round(3)"],
    "bitwise_and": ["flags = ow.asarray([0, 6, 7], format='coo')", "ow.bitwise_and(flags, 2).to_numpy()"],
    "bitwise_invert": ["flags = ow.asarray([0, 6], format='coo')", "(~flags).to_numpy(), (~flags).fill_value"],
    "bitwise_left_shift": ["ow.bitwise_left_shift(ow.asarray([0, 6, 1], format='coo'), 2).to_numpy()"],
    "bitwise_or": ["a, b = ow.asarray([0, 6], format='coo'), ow.asarray([1, 3], format='coo')", "(a | b).to_numpy()"],
    "bitwise_right_shift": ["ow.bitwise_right_shift(ow.asarray([0, 64, 9], format='coo'), 3).to_numpy()"],
    "bitwise_xor": ["a, b = ow.asarray([0, 6], format='coo'), ow.asarray([1, 3], format='coo')", "(a ^ b).to_numpy()"],
    "ceil": ["ow.ceil(ow.asarray([0, -2.5, 1.2], format='coo')).to_numpy()"],
    "conj": ["ow.conj(ow.asarray([1 + 2j, 3 - 1j])).to_numpy()"],
    "copysign": ["ow.copysign(ow.asarray([2.5, 3.0]), ow.asarray([-1.0, 4.0])).to_numpy()"],
    "cos": ["waves = ow.cos(ow.asarray([0, np.pi, 0], format='coo'))", "waves.nse, waves.fill_value"],
    "cosh": ["ow.cosh(ow.asarray([0, 1.0], format='coo')).to_numpy().round(3)"],
    "divide": [
        "counts = ow.asarray([[2, 0, 2], [0, 1, 0]], format='csr')",
        "ow.divide(counts, counts.sum(axis=1, keepdims=True)).to_numpy()",
    ],
    "equal": ["a, b = ow.eye(3, format='csr'), ow.eye(3, format='dia')", "bool(ow.equal(a, b).all())"],
    "erf": ["ow.erf(ow.asarray([0, 0.5, 2.0], format='coo')).to_numpy().round(3)"],
    "exp": ["grown = ow.exp(ow.asarray([0, 1.0], format='coo'))", "grown.nse, grown.fill_value"],
    "expm1": ["ow.expm1(ow.asarray([0, 1e-20, 1.0], format='coo')).to_numpy()"],
    "floor": ["ow.floor(ow.asarray([0, -2.5, 1.8], format='coo')).to_numpy()"],
    "floor_divide": ["ow.floor_divide(ow.asarray([0, 7, -7], format='coo'), 2).to_numpy()"],
    "greater": ["A = ow.asarray([0, 0.5, 2], format='coo')", "(A * ow.greater(A, 1)).prune().nse"],
    "greater_equal": ["A = ow.asarray([0, 5, -3], format='coo')", "ow.greater_equal(A, 5).to_numpy()"],
    "hypot": ["ow.hypot(ow.asarray([3.0, 0], format='coo'), ow.asarray([4.0, 0], format='coo')).to_numpy()"],
    "imag": ["ow.imag(ow.asarray([0, 1 + 2j], format='coo')).to_numpy()"],
    "isfinite": ["fine = ow.isfinite(ow.asarray([0, np.nan, 1.0], format='coo'))", "fine.to_numpy(), fine.fill_value"],
    "isinf": ["bool(ow.isinf(ow.asarray([0, -np.inf, 1.0], format='coo')).any())"],
    "isnan": ["int(ow.isnan(ow.asarray([0, np.nan, 1.0], format='coo')).sum())"],
    "less": ["A = ow.asarray([0, 5, -3], format='coo')", "ow.less(A, 0).to_numpy()"],
    "less_equal": ["within = ow.less_equal(ow.asarray([0, 5, -3], format='coo'), 0)", "within.nse, within.fill_value"],
    "log": ["ow.log(ow.asarray([1.0, np.e])).to_numpy()"],
    "log10": ["ow.log10(ow.asarray([1.0, 1000.0])).to_numpy()"],
    "log1p": ["counts = ow.asarray([[0, 9], [0, 99]], format='csr')", "ow.log1p(counts).values.round(3)"],
    "log2": ["ow.log2(ow.asarray([1.0, 8.0])).to_numpy()"],
    "logaddexp": ["ow.logaddexp(ow.asarray([-1000.0, 0]), ow.asarray([-1000.0, 1])).to_numpy().round(3)"],
    "logical_and": ["a, b = ow.asarray([0, 2, 3], format='coo'), ow.asarray([1, 0, 5], format='coo')",
                    "ow.logical_and(a, b).to_numpy()"],
    "logical_not": ["empty = ow.logical_not(ow.eye(1000, format='csr'))", "empty.nse, int(empty.sum())"],
    "logical_or": ["a, b = ow.asarray([0, 2, 0], format='coo'), ow.asarray([0, 1, 5], format='coo')",
                   "ow.logical_or(a, b).to_numpy()"],
    "logical_xor": ["a, b = ow.asarray([0, 2, 0], format='coo'), ow.asarray([0, 1, 5], format='coo')",
                    "ow.logical_xor(a, b).to_numpy()"],
    "maximum": ["A = ow.asarray([[0, 2], [5, 0]], format='csr')", "ow.maximum(A, A.T).to_numpy()  # symmetric"],
    "minimum": ["ow.minimum(ow.asarray([0, 5, -3], format='coo'), 2).to_numpy()"],
    "multiply": ["A = ow.asarray([[0, 2], [5, 1]], format='csr')", "ow.multiply(A, np.array([[10], [1]])).to_numpy()"],
    "negative": ["ow.negative(ow.asarray([0, -2, 3], format='coo')).to_numpy()"],
    "nextafter": ["float(ow.nextafter(ow.asarray(1.0), ow.asarray(2.0)) - 1.0)"],
    "not_equal": ["a, b = ow.asarray([0, 2, 3], format='coo'), ow.asarray([0, 2, 4], format='csf')",
                  "int(ow.not_equal(a, b).sum())"],
    "pow": ["A = ow.asarray([0, 2, 3], format='coo')", "ow.pow(A, 2).to_numpy()"],
    "real": ["ow.real(ow.asarray([0, 1 + 2j], format='coo')).to_numpy()"],
    "reciprocal": ["ow.reciprocal(ow.asarray([1.0, 4.0])).to_numpy()"],
    "remainder": ["ow.remainder(ow.asarray([0, 7, -7], format='coo'), 4).to_numpy()"],
    "sign": ["ow.sign(ow.asarray([0, -2.5, 7.0], format='coo')).to_numpy()"],
    "signbit": ["ow.signbit(ow.asarray([1.0, -0.0])).to_numpy()"],
    "sin": ["waves = ow.sin(ow.asarray([0, np.pi / 2, 0], format='coo'))", "waves.nse, waves.to_numpy()"],
    "sinh": ["ow.sinh(ow.asarray([0, 1.0], format='coo')).to_numpy().round(3)"],
    "sqrt": ["A = ow.asarray([[0, 4.0], [9.0, 0]], format='csr')", "ow.sqrt(A).values"],
    "square": ["A = ow.asarray([[0, 3.0], [4.0, 0]], format='csr')", "float(ow.square(A).sum()) ** 0.5"],
    "subtract": ["A = ow.asarray([[0, 2], [5, 1]], format='csr')", "ow.subtract(A, A.T).to_numpy()"],
    "tan": ["ow.tan(ow.asarray([0, np.pi / 4], format='coo')).to_numpy().round(3)"],
    "tanh": ["ow.tanh(ow.asarray([0, 0.5, 100.0], format='coo')).to_numpy().round(3)"],
    "trunc": ["ow.trunc(ow.asarray([0, -2.5, 1.8], format='coo')).to_numpy()"],
}  # fmt: skip
"""What the documentation of each elementwise function shows: statements, and an expression whose value is shown."""


def _plain(o: Operation) -> bool:
    """Whether the block is one of `ops.elementwise.functions` whose documentation is made."""
    return o.op is not None and hasattr(o.function, "op")


def examples(all_: list[Operation]) -> str:
    """Rows of each elementwise function with its example and what that gives, run here."""
    rows = []
    for o in filter(_plain, all_):
        *lines, shown = [line.replace("'", '"') for line in EXAMPLES[o.name]]
        scope = {"np": np, "ow": openwork}
        for line in lines:
            exec(line, scope)
        text = "\n".join([*(f">>> {line}" for line in (*lines, shown)), repr(eval(shown, scope))])
        rows.append(f"    {json.dumps(o.name)}: {json.dumps(text)},\n")
    return "".join(rows)


KINDS = {"bool": [False, True], "floats": [0.0, 2.5], "complex numbers": [0j, 1 + 2j]}
"""Operands of each kind that a function may refuse."""


def refused(all_: list[Operation]) -> str:
    """Rows of the elementwise functions that refuse kinds of operands, and these."""
    rows = []
    for o in filter(_plain, all_):
        kinds = []
        for kind, values in KINDS.items():
            operands = [openwork.asarray(values, format="coo")] * o.arity
            try:
                with np.errstate(all="ignore"):
                    o.function(*operands)
            except errors.DTypeError:
                kinds.append(kind)
        if kinds:
            rows.append(f"    {json.dumps(o.name)}: {json.dumps(' and '.join(kinds))},\n")
    return "".join(rows)


HEAD = '''"""Public operations by name: made by `python tools/operations.py` from their blocks; change those."""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES", "EXAMPLES", "GRADIENTS", "LAZY", "MASKED", "METHODS", "NAMES", "NUMPY", "OPERANDS", "OPERATORS",
    "PLACES", "REFUSED", "SPOKEN", "TORCH",
]  # fmt: skip
'''

HOMES = '''"""The module of each name that this package provides: made by `python tools/operations.py`."""

from __future__ import annotations

__all__ = ["HOMES"]

_ROWS: dict[str, tuple[str, ...]] = {
'''

TAIL = '''

def _named(kind: str) -> frozenset[str]:
    return frozenset(name for name, kinds, _ in _ROWS if kind in kinds.split())


NAMES = frozenset(name for name, _, _ in _ROWS)
"""The operations of the namespace."""
METHODS: dict[str, str] = {name: text for name, _, text in _ROWS if text}
"""Operations that are methods or attributes too, and what they do."""
PLACES = _named("places")
"""Those of them that take arguments by place which the function takes by name."""
ATTRIBUTES = _named("attribute")
"""Those of them that are attributes."""
OPERANDS = _named("operands")
"""Operations that ask operands' types for the result."""
MASKED = _named("masked")
"""Operations that take masked tensors."""
LAZY = _named("lazy")
"""Operations that are deferred on lazy tensors."""
GRADIENTS = _named("grad")
"""Operations that take `grad=`."""
'''


def tables(all_: list[Operation]) -> str:
    """Where each name is: read before any operation is loaded."""
    numpy = {alias.partition("(")[0]: o.name for o in all_ for alias in o.numpy}
    torch = {alias.partition("(")[0]: o.name for o in all_ for alias in o.torch}
    operators = {o.operator: o.op for o in all_ if o.operator is not None and o.op is not None}
    spoken = {o.op: o.name for o in all_ if o.op is not None and o.op != o.name}
    rows = "".join(f"    {_row(o)}\n" for o in all_)
    doc = '"""Names, kinds, and the documentation of methods."""\n'
    return "\n".join((
        HEAD,
        f"EXAMPLES: dict[str, str] = {{\n{examples(all_)}}}",
        '"""Elementwise functions, and a call of each with its result."""\n',
        f"REFUSED: dict[str, str] = {{\n{refused(all_)}}}",
        '"""Elementwise functions, and the kinds of operands that each refuses."""\n',
        f"_ROWS: tuple[tuple[str, str, str], ...] = (\n{rows})\n{doc}",
        _wrapped("NUMPY", _pairs(numpy), "NumPy's names that the namespace has not, or that spell their arguments."),
        _wrapped("OPERATORS", _pairs(operators), "Python's operators, and the operation of the loop IR that each is."),
        _wrapped("SPOKEN", _pairs(spoken), "What users call operations of the loop IR, where that differs."),
        _wrapped("TORCH", _pairs(torch), "torch's names of operations.") + TAIL,
    ))  # fmt: skip


def _provided() -> Iterator[tuple[str, str]]:
    """Names that are provided beside operations, by `@provides("name")` or `provide("name", value)`, and where."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in ("provide", "provides")
            if is_call and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, module


FRONT_ENDS = ("device", "linalg", "masked", "torch")
"""Packages above operations that provide something: each has a table of its own."""


def homes(all_: list[Operation]) -> dict[Path, str]:
    """The tables of modules: that of the package, and those of front ends, whose names begin with the package's."""
    by_name = {o.name: o.module for o in all_}
    for name, module in _provided():
        if by_name.setdefault(name, module) != module:
            raise SystemExit(f"{name!r} is provided by {module} and by {by_name[name]}")
    tables: dict[str, dict[str, list[str]]] = {package: {} for package in ("", *FRONT_ENDS)}
    for name, module in by_name.items():
        package, _, rest = module.partition(".")
        if package in FRONT_ENDS and name.partition(" ")[0] != package:
            raise SystemExit(f"{name!r}: what {module} provides has a name that begins with {package!r}")
        package, inside = (package, rest) if package in FRONT_ENDS else ("", module)
        tables[package].setdefault(inside, []).append(name)
    return {PACKAGE / package / "homes.py": _homes(modules) for package, modules in tables.items()}


def _homes(modules: dict[str, list[str]]) -> str:
    """The table of the names of each module."""
    rows = "".join(_home(module, sorted(names)) for module, names in sorted(modules.items()))
    return f"""{HOMES}{rows}}}

HOMES: dict[str, str] = {{name: module for module, names in _ROWS.items() for name in names}}
"""


def _home(module: str, names: list[str]) -> str:
    """A row of a module's names, on lines of their own where it is long."""
    quoted = [json.dumps(name) for name in names]
    row = f'    "{module}": ({", ".join(quoted)}{"," * (len(names) == 1)}),\n'
    lines = "".join(f"        {name},\n" for name in quoted)
    return row if len(row) <= 121 else f'    "{module}": (\n{lines}    ),\n'


def _pairs(names: dict[str, str]) -> list[str]:
    return [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(names.items())]


def reference(all_: list[Operation]) -> str:
    """The reference page: operations by chapter."""
    out = [
        "# Operations at a glance",
        "",
        "Made by `python tools/operations.py` from the blocks of operations. Every operation takes every format, and",
        "gives what NumPy gives for the dense arrays. *Method*: also `A.name(...)`, over NumPy and torch buffers alike",
        "(torch's function of that name over torch buffers, where it has one). *NumPy*: `np.name(A)` arrives here.",
        "*Masked*: takes masked tensors. *Lazy*: deferred on lazy tensors, which all others compute first.",
        "The result's shape, dtype, fill value and format, where a rule says them (`-`: the documentation does):",
        "",
        *(
            f"- {name}: {_words(table)}"
            for name, table in zip(
                ("shape", "dtype", "fill value", "format"), (SHAPES, DTYPES, FILLS, FORMATS), strict=True
            )
        ),
        "",
    ]
    for key, title in CHAPTERS.items():
        mine = [o for o in all_ if key in o.module.split(".")]
        if not mine:
            continue
        out += [
            f"## {title}",
            "",
            "| operation | what it is | shape, dtype, fill value, format | method | NumPy | masked | lazy |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for o in mine:
            names = ", ".join(f"`{n}`" for n in _numpy_names(o))
            summary = o.summary.replace("|", "\\|")
            method = "attribute" if o.attribute else _mark(o.method)
            cells = (f"`{o.name}{_signature(o)}`", summary, _rules(o), method, names)
            out.append(f"| {' | '.join((*cells, _mark(o.masked is not None), _mark(o.lazy)))} |")
        out.append("")
    return "\n".join(out)


def _words(table: dict[str, str]) -> str:
    return "; ".join(f"*{word}*, {meaning}" for word, meaning in table.items())


def _rules(o: Operation) -> str:
    rules = (o.shape, o.dtype, o.fill, o.format)
    return ", ".join(rule or "-" for rule in rules) if any(rules) else ""


def _mark(value: bool) -> str:
    return "yes" if value else ""


def _numpy_names(o: Operation) -> list[str]:
    import numpy

    own = [o.name] if o.operands and callable(getattr(numpy, o.name, None)) else []
    return own + [n for n in (text.partition("(")[0] for text in o.numpy) if n not in own]


def main(arguments: list[str]) -> int:
    """Write the files, or with --check compare them."""
    all_ = blocks()
    wanted = {
        PACKAGE / "tables.py": tables(all_),
        **homes(all_),
        PACKAGE / "tensor" / "methods.pyi": methods(all_),
        PACKAGE / "__init__.pyi": namespace(all_, openwork._OTHERS, _errors()),
        ROOT / "docs" / "reference.md": reference(all_),
    }
    different = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in different:
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is not what the blocks say: python tools/operations.py")
        else:
            path.write_text(wanted[path])
    return int("--check" in arguments and bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
