"""The registry of operations and the docstrings of public modules -> the Markdown of docs/reference/*.md."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from docstrings import markdown
from operations import CHAPTERS, blocks
from operations import _numpy_names as numpy_names

import openwork as ow
from openwork import errors
from openwork.runtime.operation import Operation
from openwork.runtime.result_rules import DTYPES, FILLS, FORMATS, SHAPES

FOLDER = Path(__file__).resolve().parents[1] / "reference"
MODULES = {
    "linalg": "Linear algebra", "graph": "Graphs", "nn": "Layers for torch", "masked": "Masked tensors",
    "decomposition": "Decompositions", "plot": "Pictures", "io": "Files", "dask": "Dask",
}  # fmt: skip
OTHERS = {
    "making": (
        "Tensors from buffers",
        ("interop.constructors", "interop.layouts", "interop.sklearn"),
    ),
    "formats": ("Formats: openwork.format", ()),
    "plans": (
        "Plans, lazy tensors, semirings",
        ("fusion.explain", "fusion.program", "tensor.lazy", "runtime.semirings"),
    ),
    "settings": ("Advice and settings", ("advice",)),
    "errors": ("Errors", ()),
}
_NOT_HERE = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Entry:
    """What a page has of a public name: `kind` is Sphinx's name of such things."""

    name: str
    kind: str
    signature: str
    doc: str
    facts: str = ""


Page = tuple[str, str, tuple[Entry, ...]]


@cache
def pages() -> dict[str, Page]:
    """By file: the title, what stands before the entries, and these."""
    dtypes = tuple(
        n for n in ow._OTHERS["tensor.dtypes"] if n not in ("finfo", "iinfo", "isdtype")
    )
    found = _pages_of_operations(dtypes)
    found |= _pages_of_other_names()
    for key, title in MODULES.items():
        public = {e.name for _, _, es in found.values() for e in es}
        found[key] = _page_of_module(
            key, f"{title}: openwork.{key}", public
        )  # the page that explains it has the plain title
    absent = set(ow.__all__) - {
        e.name.removeprefix("openwork.") for _, _, es in found.values() for e in es
    }
    absent -= {*dtypes, *MODULES}
    assert not absent, f"no page of the reference has {sorted(absent)}"
    return found


def _pages_of_operations(dtypes: tuple[str, ...]) -> dict[str, Page]:
    """A page for each chapter of operations, and that of the tensor."""
    found: dict[str, Page] = {}
    for key, title in CHAPTERS.items():
        mine = tuple(
            _operation(o)
            for o in sorted(blocks(), key=lambda o: o.name)
            if key in o.module.split(".")
        )
        if mine:
            found[key] = (title, "", mine)
    found["tensor"] = ("The tensor", "", _with_members("openwork.Tensor", ow.Tensor))
    title, _, entries = found["dtypes"]
    more = tuple(
        _entry(f"openwork.{n}", getattr(ow, n)) for n in ("finfo", "iinfo", "isdtype")
    )
    found["dtypes"] = (
        title,
        f"Dtypes and constants: {', '.join(f'`{n}`' for n in dtypes)}.",
        (*entries, *more),
    )
    return found


def _pages_of_other_names() -> dict[str, Page]:
    """The pages of public names that are no operations: readers, formats, errors, settings."""
    found: dict[str, Page] = {}
    elsewhere = {
        "io", "masked", "tensor.dtypes", "tensor.tensor", *(home for _, homes in OTHERS.values() for home in homes),
    }  # fmt: skip
    settings = tuple(home for home in ow._OTHERS if home not in elsewhere)
    for key, (title, homes) in OTHERS.items():
        homes = (*homes, *settings) if key == "settings" else homes
        names = [name for home in homes for name in ow._OTHERS[home]]
        names = {
            "errors": [
                n for n in errors.__all__ if getattr(ow, n, None) is getattr(errors, n)
            ],
            "formats": ["format", "Format"],
        }.get(key, names)
        entries = tuple(
            e for n in names for e in _with_members(f"openwork.{n}", getattr(ow, n))
        )
        found[key] = (title, "", entries)
    return found


def _page_of_module(key: str, title: str, public: set[str]) -> Page:
    """The page of a public module; names that other pages have stand in its first lines only."""
    try:
        module = import_module(f"openwork.{key}")
    except ImportError as error:
        return (
            title,
            f"This page was built without a library that it describes: {error}",
            (),
        )
    head = (module.__doc__ or "").strip()
    own = [n for n in module.__all__ if n not in ow.__all__ or not _same(module, n)]
    shared = [n for n in module.__all__ if n not in own]
    here = [n for n in shared if f"openwork.{n}" not in public]
    if set(shared) - set(here):
        head += (
            f"\n\nAlso here: {', '.join(f'`{n}`' for n in shared if n not in here)}."
        )
    named = [
        *((f"openwork.{n}", n) for n in here),
        *((f"openwork.{key}.{n}", n) for n in own),
    ]
    named.sort(key=lambda pair: inspect.isclass(getattr(module, pair[1])))
    return (
        title,
        head,
        tuple(e for name, n in named for e in _with_members(name, getattr(module, n))),
    )


def _operation(o: Operation) -> Entry:
    """An operation, with what its block says of results and of where it is public."""
    rules = [
        f"{word} {_rule(table, value, o)}"
        for word, value, table in zip(
            ("shape:", "dtype:", "fill value:", "format:"), (o.shape, o.dtype, o.fill, o.format),
            (SHAPES, DTYPES, FILLS, FORMATS), strict=True,
        )
        if value
    ]  # fmt: skip
    also = (
        [f"`A.{o.name}`" if o.attribute else f"`A.{o.name}(...)`"]
        if o.method or o.attribute
        else []
    )
    also += [f"`A {SIGNS[o.operator]} B`"] if o.operator in SIGNS else []
    also += [f"`np.{n}`" for n in numpy_names(o)]
    takes = [
        word
        for word, value in (
            ("masked tensors", o.masked is not None),
            ("lazy tensors, deferred", o.lazy),
        )
        if value
    ]
    facts = [
        ("The result", "; ".join(rules)),
        ("Also", ", ".join(also)),
        ("Takes", ", ".join(takes)),
    ]
    entry = _entry(f"openwork.{o.name}", o.function)
    return Entry(
        entry.name,
        entry.kind,
        entry.signature,
        entry.doc,
        "\n".join(f"- {a}: {b}" for a, b in facts if b),
    )


SIGNS = {
    "truediv": "/", "floordiv": "//", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^", "sub": "-", "mul": "*", "mod": "%", "pow": "**",
    "add": "+",
}  # fmt: skip
"""Python's names of operators of two operands, and how they are written."""


def _rule(table: dict[str, str], value: str, o: Operation) -> str:
    """A rule of the result in words; what it says of several operands is left out where there is one."""
    words = table.get(value, value)
    one = o.arity == 1 or o.shape in ("same", "reduced", "moved")
    return words.partition("; of several")[0] if one else words


def _same(module: Any, name: str) -> bool:
    """Whether the package has the module's function under the same name."""
    return inspect.unwrap(getattr(module, name)) is inspect.unwrap(getattr(ow, name))


def _with_members(name: str, value: Any) -> tuple[Entry, ...]:
    """What it is, and of a class of ours its attributes and methods that have documentation.

    What a class has from one that has a place of its own on these pages stands there.
    """
    entries = [_entry(name, value)]
    home = import_module(name.rpartition(".")[0])
    shown = []
    for member in sorted(dir(value)) if entries[0].kind == "class" else ():
        owner = next((c for c in value.__mro__ if member in vars(c)), object)
        if member.startswith("_") or not owner.__module__.startswith("openwork"):
            continue
        if owner is not value and getattr(home, owner.__name__, None) is owner:
            shown += [owner.__name__] * (owner.__name__ not in shown)
            continue
        found = inspect.getattr_static(value, member)
        if isinstance(found, property) or not callable(getattr(value, member)):
            text = _first(found) if isinstance(found, property) else ""
            entries.append(Entry(f"{name}.{member}", "attribute", "", text))
        else:
            entries.append(_method(f"{name}.{member}", getattr(value, member)))
    if shown:
        more = f"Also what `{'`, `'.join(shown)}` has."
        entries[0] = replace(entries[0], facts=more)
    return tuple(entry for k, entry in enumerate(entries) if entry.doc or k == 0)


def _method(name: str, value: Any) -> Entry:
    """A method; one made from a block begins its documentation with its signature."""
    entry = _entry(name, value, kind="method")
    head, _, rest = entry.doc.partition("\n\n")
    short = name.rpartition(".")[2]
    if not head.startswith(f"{short}("):
        return entry
    return replace(entry, signature=head.removeprefix(short), doc=rest)


def _entry(name: str, value: Any, kind: str = "") -> Entry:
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
    kind = kind or ("function" if callable(value) else "data")
    return Entry(
        name,
        kind,
        _signature(value) if kind in ("function", "method", "class") else "",
        _first(value),
    )


def _first(value: Any) -> str:
    """The documentation, without what is said alike of every function's `grad=`."""
    return re.split(r"\n\ngrad : \"sparse\"", inspect.getdoc(value) or "")[0].strip()


def _signature(value: Any) -> str:
    """The parameters in parentheses and the result, with types where these say something, without long defaults."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    types = [str(p.annotation) for p in signature.parameters.values()]
    if inspect.isclass(value) and any(t.startswith("_") for t in types):
        return ""  # made by a function, from parts that are nobody's business
    shown = [
        p.replace(annotation=_type(p.annotation))
        for p in signature.parameters.values()
        if p.name not in ("self", "grad")
    ]
    result = signature.empty
    if not inspect.isclass(value):
        result = _type(signature.return_annotation)
    text = str(signature.replace(parameters=shown, return_annotation=result))
    return _NOT_HERE.sub("...", text)


_ALIASES = {
    "Axis": "int | Sequence[int] | None",
    "Path_": "str | PathLike",
    "Progress": "Callable[..., None]",
    "Factor": "np.ndarray",
    "trace.Step": "Step",
}
"""Short names of types in the code -> what a reader knows."""


class _Type:
    """A type that prints as the source has it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _type(annotation: Any) -> Any:
    """An annotation as text, Tensor by its full name; none where it says nothing."""
    text = (
        inspect.formatannotation(annotation)
        if annotation is not inspect.Parameter.empty
        else ""
    )
    text = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", text.strip("'\""))
    for alias, meaning in _ALIASES.items():
        text = re.sub(rf"(?<![\w.]){alias}\b", meaning, text)
    if text in ("", "Any", "object", "None"):
        return inspect.Parameter.empty
    return _Type(
        re.sub(r"(?<![\w.])Tensor\b", "openwork.Tensor", text.replace("typing.", ""))
    )


@cache
def addresses() -> dict[str, str]:
    """By what pages write in backticks, without `ow.`: the full name of what they mean."""
    found: dict[str, str] = {}
    for _, _, entries in pages().values():
        for entry in entries:
            short = entry.name.removeprefix("openwork.")
            found.setdefault(short, entry.name)
            if entry.kind in ("function", "class"):
                found.setdefault(short.rpartition(".")[2], entry.name)
    return found


def page(title: str, head: str, entries: tuple[Entry, ...]) -> str:
    """The Markdown of a page: a list of all names with their first sentence, then each in full.

    What a class has is in the list where the page is about that class alone.
    """
    out = [f"# {title}", "", markdown(head) if head else ""]
    classes = {e.name for e in entries if e.kind in ("class", "exception")}
    listed = [
        e
        for e in entries
        if len(classes) == 1 or e.name.rpartition(".")[0] not in classes
    ]
    if len(listed) > 4:
        out += ["| name | what it is |", "| --- | --- |"]
        for entry in listed:
            summary = (
                markdown(" ".join(entry.doc.split("\n\n")[0].split()))
                .strip()
                .replace("\n", " ")
                .replace("|", "\\|")
            )
            out.append(f"| `{entry.name.removeprefix('openwork.')}` | {summary} |")
        out.append("")
    for entry in entries:
        fence = "````"
        out += [
            f"{fence}{{py:{entry.kind}}} {entry.name}{entry.signature}",
            "",
            markdown(entry.doc),
            entry.facts,
            fence,
            "",
        ]
    return "\n".join(out)


def write(folder: Path = FOLDER) -> None:
    """The pages, and the list of them; what is up to date stays untouched, so that Sphinx reads it no more."""
    folder.mkdir(exist_ok=True)
    texts = {f"{key}.md": page(*content) for key, content in pages().items()}
    listed = "\n".join(f"{name.removesuffix('.md')}" for name in texts)
    texts["index.md"] = (
        "# Reference\n\nEvery public name, from the documentation in the code. "
        "[Operations at a glance](../reference.md) has all operations in one table.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n../reference\n{listed}\n```\n"
    )
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
