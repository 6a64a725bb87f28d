"""From the blocks of operations to what lists them: `src/openwork/tables.py`, the methods' stub, the reference page.

python tools/operations.py            # write them
python tools/operations.py --check    # say which differ, exit with 1 where one does
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import openwork
import openwork.fusion
import openwork.ops
from openwork.runtime.operation import OPERATIONS, Operation

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openwork"
CHAPTERS = {
    "creation": "Creation", "random": "Random tensors", "elementwise": "Elementwise", "reductions": "Reductions",
    "products": "Products", "indexing": "Indexing", "manipulation": "Manipulation", "sorting": "Sorting and searching",
    "sets": "Sets", "namespace": "The namespace", "fusion": "Several operations in one",
}  # fmt: skip
KNOWN = {
    "Any",
    "Tensor",
    "Callable",
    "Sequence",
    "Mapping",
    "None",
    "int",
    "float",
    "bool",
    "str",
    "object",
    "tuple",
    "list",
}
ALIASES = {"Axis": "int | Sequence[int] | None"}


def blocks() -> list[Operation]:
    """All blocks, by module and name."""
    for package in (openwork.ops, openwork.fusion):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    return sorted(OPERATIONS.values(), key=lambda o: (o.module, o.name))


def _annotation(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "Any"
    text = str(value)
    text = ALIASES.get(text, text)
    names = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
    return text if names <= KNOWN else "Any"


def _signature(operation: Operation, *, method: bool, typed: bool) -> str:
    """The parameters in parentheses; a method's without its first, which is the tensor."""
    parameters = list(inspect.signature(operation.function).parameters.values())
    out: list[str] = ["self"] if method and typed else []
    parameters = parameters[method:]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    starred = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            out.append("*")
            starred = True
        starred = starred or p.kind is p.VAR_POSITIONAL
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = star + p.name + (f": {_annotation(p.annotation)}" if typed else "")
        if p.default is not p.empty:
            text += (" = " if typed else "=") + (
                repr(p.default) if isinstance(p.default, bool | int | float | str | None) else "..."
            )
        out.append(text)
        if positional and p is positional[-1]:
            out.append("/")
    return f"({', '.join(out)})"


def _table(name: str, entries: dict[str, str], doc: str) -> str:
    rows = "".join(f"    {json.dumps(key)}: {json.dumps(value)},\n" for key, value in entries.items())
    return f"{name}: dict[str, str] = {{\n{rows}}}\n" + f'"""{doc}"""\n'


def _set(name: str, entries: list[str], doc: str) -> str:
    rows = "".join(f"    {json.dumps(entry)},\n" for entry in entries)
    return f"{name}: frozenset[str] = frozenset((\n{rows}))\n" + f'"""{doc}"""\n'


def tables(all_: list[Operation]) -> str:
    """Where each name is: read before any operation is loaded."""
    numpy = {alias: o.name for o in all_ for alias in o.numpy if alias != o.name}
    torch = {alias: o.name for o in all_ for alias in o.torch}
    methods = {o.name: f"{o.name}{_signature(o, method=True, typed=False)}\n\n{o.summary}" for o in all_ if o.method}
    parts = [
        '"""Public operations by name: made by `python tools/operations.py` from their blocks; change those."""\n\n'
        "from __future__ import annotations\n",
        '__all__ = ["GRADIENTS", "HOMES", "LAZY", "MASKED", "METHODS", "NUMPY", "OPERANDS", "TORCH"]\n',
        _table("HOMES", {o.name: o.module for o in all_}, "The module of each operation of the namespace."),
        _table("METHODS", methods, "Operations that are methods too, and what they do."),
        _table("NUMPY", dict(sorted(numpy.items())), "NumPy's names that are not the namespace's: operations."),
        _table("TORCH", dict(sorted(torch.items())), "torch's names that no table of torch's has: operations."),
        _set("OPERANDS", [o.name for o in all_ if o.operands], "Operations that ask operands' types for the result."),
        _set("MASKED", [o.name for o in all_ if o.masked is not None], "Operations whose blocks take masked tensors."),
        _set("LAZY", [o.name for o in all_ if o.lazy], "Operations that are deferred on lazy tensors."),
        _set("GRADIENTS", [o.name for o in all_ if o.grad], "Operations that take `grad=`."),
    ]
    return "\n".join(parts)


def stub(all_: list[Operation]) -> str:
    """The methods that operations are, for type checkers."""
    body: list[str] = []
    lazy, masked = [o for o in all_ if o.lazy], [o for o in all_ if o.masked is not None]
    for name, mine in (("Methods", all_), ("LazyMethods", lazy), ("MaskedMethods", masked)):
        body += ["", f"class {name}:", "    __slots__ = ()"]
        wanted = name == "Methods"
        for o in mine:
            if o.method:
                result = _annotation(inspect.signature(o.function).return_annotation) if wanted else "Any"
                signature = _signature(o, method=True, typed=True) if wanted else "(self, *args: Any, **kwargs: Any)"
                body.append(f"    def {o.name}{signature} -> {result}: ...")
    used = [name for name in ("Callable", "Mapping", "Sequence") if any(name in line for line in body)]
    head = [
        "# Made by `python tools/operations.py` from the blocks of operations; change those.",
        f"from collections.abc import {', '.join(used)}",
        "from typing import Any",
        "",
        "from .tensor import Tensor",
    ]
    return "\n".join([*head, *body]) + "\n"


def reference(all_: list[Operation]) -> str:
    """The reference page: operations by chapter."""
    out = [
        "# Operations",
        "",
        "Made by `python tools/operations.py` from the blocks of operations. Every operation takes every format, and",
        "gives what NumPy gives for the dense arrays. *Method*: also `A.name(...)`, over NumPy and torch buffers alike",
        "(torch's function of that name over torch buffers, where it has one). *NumPy*: `np.name(A)` arrives here.",
        "*Masked*: takes masked tensors. *Lazy*: deferred on lazy tensors, which all others compute first.",
        "",
    ]
    for key, title in CHAPTERS.items():
        mine = [o for o in all_ if key in o.module.split(".")]
        if not mine:
            continue
        out += [
            f"## {title}",
            "",
            "| operation | what it is | method | NumPy | masked | lazy |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for o in mine:
            names = ", ".join(f"`{n}`" for n in _numpy_names(o))
            summary = o.summary.replace("|", "\\|")
            cells = (f"`{o.name}{_signature(o, method=False, typed=False)}`", summary, _mark(o.method), names)
            out.append(f"| {' | '.join((*cells, _mark(_masked(o)), _mark(o.lazy)))} |")
        out.append("")
    return "\n".join(out)


def _mark(value: bool) -> str:
    return "yes" if value else ""


def _numpy_names(o: Operation) -> list[str]:
    import numpy

    own = [o.name] if o.operands and callable(getattr(numpy, o.name, None)) else []
    return own + [n for n in o.numpy if n not in own]


def _masked(o: Operation) -> bool:
    from openwork.masked.namespace import FUNCTIONS

    return o.masked is not None or o.name in FUNCTIONS


def main(arguments: list[str]) -> int:
    """Write the files, or with --check compare them."""
    all_ = blocks()
    wanted = {
        PACKAGE / "tables.py": tables(all_),
        PACKAGE / "tensor" / "methods.pyi": stub(all_),
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
