"""From the blocks of operations to what lists them: `src/openwork/tables.py`, the methods' stub, the reference page.

python tools/operations.py            # write them
python tools/operations.py --check    # say which differ, exit with 1 where one does
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
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
    "interop": "What other libraries hold", "creation": "Creation", "random": "Random tensors",
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


def _signature(operation: Operation, *, method: bool) -> str:
    """The parameters in parentheses; a method's without its first, which is the tensor."""
    parameters = operation.parameters() if method else inspect.signature(operation.function).parameters.values()
    shown = [p.replace(annotation=p.empty) for p in parameters]
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
    """An operation as a row: its name, what it is, and the documentation of the method."""
    kinds = {
        "method": o.method, "places": bool(o.places), "attribute": o.attribute, "operands": o.operands,
        "masked": o.masked is not None, "lazy": o.lazy, "grad": o.grad,
    }  # fmt: skip
    text = f"{o.name}{_signature(o, method=True)}\n\n{o.summary}" if o.method else o.summary if o.attribute else ""
    return f"({', '.join(map(json.dumps, (o.name, ' '.join(k for k, v in kinds.items() if v), text)))}),"


OPERANDS = {
    "ints": ("[0, 6]", "[1, 3]"),
    "complex": ("[0, 1 + 2j]", ""),
    "limits": ("[0, np.nan, np.inf]", ""),
    "large": ("[1.0, 4.0]", "[2.0, 3.0]"),
    "signs": ("[0, -2.5]", "[1.0, 2.0]"),
    "": ("[0, 0.5]", "[1.0, 2.0]"),
}
KINDS = {
    "ints": "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift",
    "complex": "conj imag real",
    "limits": "isfinite isinf isnan",
    "large": "acosh log log10 log2 reciprocal sqrt nextafter",
    "signs": "abs ceil floor trunc sign signbit negative copysign round",
}
"""Operands of the examples, and the functions that take them; all others take the last ones."""


def examples(all_: list[Operation]) -> str:
    """Rows of each elementwise function with a call on small operands, run here."""
    rows = []
    for o in all_:
        if o.op is None or not hasattr(o.function, "op"):
            continue
        kind = next((k for k, names in KINDS.items() if o.name in names.split()), "")
        first, second = OPERANDS[kind]
        call = f"ow.{o.name}(A)" if o.arity == 1 else f"ow.{o.name}(A, B)"
        lines = [f'A = ow.asarray({first}, format="coo")']
        lines += [f'B = ow.asarray({second}, format="coo")'] if o.arity == 2 else []
        scope = {"np": np, "ow": openwork}
        for line in lines:
            exec(line, scope)
        result = eval(call, scope).to_numpy()
        shown = f"{call}.to_numpy()" + (".round(3)" if result.dtype.kind in "fc" else "")
        text = "\n".join([*(f">>> {line}" for line in (*lines, shown)), repr(eval(shown, scope))])
        rows.append(f"    {json.dumps(o.name)}: {json.dumps(text)},\n")
    return "".join(rows)


HEAD = '''"""Public operations by name: made by `python tools/operations.py` from their blocks; change those."""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES", "EXAMPLES", "GRADIENTS", "HOMES", "LAZY", "MASKED", "METHODS", "NUMPY", "OPERANDS", "OPERATORS",
    "PLACES", "SPOKEN", "TORCH",
]  # fmt: skip
'''

TAIL = '''

def _named(kind: str) -> frozenset[str]:
    return frozenset(name for rows in _ROWS.values() for name, kinds, _ in rows if kind in kinds.split())


HOMES: dict[str, str] = {name: home for home, rows in _ROWS.items() for name, _, _ in rows}
"""The module of each operation of the namespace."""
METHODS: dict[str, str] = {name: text for rows in _ROWS.values() for name, _, text in rows if text}
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
    homes: dict[str, list[str]] = {}
    for o in all_:
        homes.setdefault(o.module, []).append(f"        {_row(o)}\n")
    rows = "".join(f"    {json.dumps(home)}: (\n{''.join(lines)}    ),\n" for home, lines in homes.items())
    doc = '"""By module: names, kinds, and the documentation of methods."""\n'
    return "\n".join((
        HEAD,
        f"EXAMPLES: dict[str, str] = {{\n{examples(all_)}}}",
        '"""Elementwise functions, and one call of each with its result."""\n',
        f"_ROWS: dict[str, tuple[tuple[str, str, str], ...]] = {{\n{rows}}}\n{doc}",
        _wrapped("NUMPY", _pairs(numpy), "NumPy's names that the namespace has not, or that spell their arguments."),
        _wrapped("OPERATORS", _pairs(operators), "Python's operators, and the operation of the loop IR that each is."),
        _wrapped("SPOKEN", _pairs(spoken), "What users call operations of the loop IR, where that differs."),
        _wrapped("TORCH", _pairs(torch), "torch's names of operations.") + TAIL,
    ))  # fmt: skip


def _pairs(names: dict[str, str]) -> list[str]:
    return [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(names.items())]


def reference(all_: list[Operation]) -> str:
    """The reference page: operations by chapter."""
    out = [
        "# Operations",
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
            cells = (f"`{o.name}{_signature(o, method=False)}`", summary, _rules(o), method, names)
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
