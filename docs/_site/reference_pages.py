"""Public names by chapter -> the sources of docs/reference: a page for each object, which autodoc and numpydoc fill.

The registry says which operations there are, the package and its modules which other names. A chapter lists its objects;
a tensor's members stand in groups, each on a page of its own, those of other classes on the page of the class.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

from operations import CHAPTERS, blocks
from operations import _numpy_names as numpy_names

import openwork as ow
from openwork.docstrings import compose
from openwork.lazy_docstring import Documentation
from openwork.runtime.operation import OPERATIONS, Operation

FOLDER = Path(__file__).resolve().parents[1] / "reference"
ROOT = FOLDER.parents[1]
MODULES = {
    "linalg": "Linear algebra", "graph": "Graphs", "nn": "Layers for torch", "torch": "Functions for torch", "torch.func": "Transforms of functions of Tensors",
    "masked": "Masked tensors", "decomposition": "Decompositions", "plot": "Pictures", "io": "Files", "dask": "Dask",
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
GROUPS = {
    "tensor": "Attributes, formats, copies", "operators": "Attributes, formats, copies",
    "python_protocol": "Attributes, formats, copies", "exports": "To other libraries", "arithmetic": "Elementwise",
    "autograd_mixin": "Gradients", "torch_names": "By torch's names", "torch_attributes": "By torch's names",
    "scipy_names": "By SciPy's names", "methods": "By torch's names",
}  # fmt: skip
"""The last word of the module that has a method which is no operation -> the group where it stands."""


@dataclass(frozen=True)
class Chapter:
    """A page that lists names."""

    title: str
    names: tuple[str, ...]
    module: str = ""
    dtypes: tuple[str, ...] = ()


@cache
def chapters() -> dict[str, Chapter]:
    """By the name of the page."""
    dtypes = tuple(
        n for n in ow._OTHERS["tensor.dtypes"] if n not in ("finfo", "iinfo", "isdtype")
    )
    found = {}
    for key, title in CHAPTERS.items():
        names = sorted(o.name for o in blocks() if key in o.module.split("."))
        more = ["finfo", "iinfo", "isdtype"] if key == "dtypes" else []
        found[key] = Chapter(
            title, _full("openwork", [*names, *more]), dtypes=dtypes if more else ()
        )
    found["tensor"] = Chapter("The tensor", ("openwork.Tensor",))
    for key, (title, homes) in OTHERS.items():
        found[key] = Chapter(title, _full("openwork", names_of(homes)))
    errors = [n for n in ow.__all__ if _kind(getattr(ow, n)) == "exception"]
    found["errors"] = Chapter("Errors", _full("openwork", sorted(errors)))
    found["formats"] = Chapter(
        "Formats: openwork.format", ("openwork.format", "openwork.Format")
    )
    for key, title in MODULES.items():
        found[key] = Chapter(
            f"{title}: openwork.{key}", tuple(_of_module(key)), module=f"openwork.{key}"
        )
    everywhere = {n for c in found.values() for n in c.names} | set(
        _full("openwork", [*dtypes, *MODULES])
    )
    rest = [n for n in ow.__all__ if f"openwork.{n}" not in everywhere]
    found["settings"] = Chapter(
        "Advice and settings", (*found["settings"].names, *_full("openwork", rest))
    )
    return {key: chapter for key, chapter in found.items() if chapter.names}


def names_of(homes: tuple[str, ...]) -> list[str]:
    """The public names of modules whose names are no operations."""
    return [name for home in homes for name in ow._OTHERS.get(home, ())]


def _full(module: str, names: list[str]) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names)


def _short(names: tuple[str, ...]) -> list[str]:
    return [name.removeprefix("openwork.") for name in names]


def _of_module(key: str) -> Iterator[str]:
    """The names of a public module, functions first; those which the package has too stand there by its name.

    A class of another public module has its page there.
    """
    module = import_module(f"openwork.{key}")
    names = [
        name for name in module.__all__ if not inspect.ismodule(getattr(module, name))
    ]
    for name in sorted(names, key=lambda n: (inspect.isclass(getattr(module, n)), n)):
        value = getattr(module, name)
        if inspect.isclass(value) and value.__module__.split(".")[1:2] in [
            [k] for k in MODULES if k != key
        ]:
            continue
        shared = name in ow.__all__ and inspect.unwrap(
            getattr(module, name)
        ) is inspect.unwrap(getattr(ow, name))
        if not shared:
            yield f"openwork.{key}.{name}"
        elif name not in OPERATIONS and not any(
            name in names_of(homes) for _, homes in OTHERS.values()
        ):
            yield f"openwork.{name}"


def value_of(name: str) -> Any:
    """What a full name stands for, also that of a class's member."""
    module, _, last = name.rpartition(".")
    home = value_of(module) if module in GROUPED else import_module(module)
    return getattr(home, last)


def _kind(value: Any) -> str:
    """Sphinx's name of such things."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


# -- members of classes ------------------------------------------------------------------------------------------------


@cache
def members(cls: type) -> dict[str, str]:
    """Public members of a class that have documentation -> the group where each stands."""
    found = {}
    for name in sorted(dir(cls)):
        owner = next((c for c in cls.__mro__ if name in vars(c)), object)
        if (
            name.startswith("_")
            or not owner.__module__.startswith("openwork")
            or not inspect.getdoc(getattr(cls, name))
        ):
            continue
        operation = OPERATIONS.get(name)
        title = next(
            (
                t
                for k, t in CHAPTERS.items()
                if operation and k in operation.module.split(".")
            ),
            "",
        )
        member = inspect.getattr_static(cls, name)
        member = member.fget if isinstance(member, property) else member
        home = getattr(member, "__module__", owner.__module__).rpartition(".")[2]
        found[name] = title or GROUPS.get(home, "Others")
    return found


def own_members(cls: type) -> list[str]:
    """The members that stand on the page of a class: not those of a parent which has a page of its own."""
    public = {
        value_of(name)
        for chapter in chapters().values()
        for name in chapter.names
        if _kind(value_of(name)) == "class"
    }
    owner = {n: next(c for c in cls.__mro__ if n in vars(c)) for n in members(cls)}
    return [n for n, c in owner.items() if c is cls or c not in public]


def _in_groups(cls: type) -> dict[str, list[str]]:
    """Groups in their order, with their members."""
    found: dict[str, list[str]] = {
        title: [] for title in (*GROUPS.values(), *CHAPTERS.values(), "Others")
    }
    for name, title in members(cls).items():
        found[title].append(name)
    return {title: names for title, names in found.items() if names}


# -- the sources of the pages ------------------------------------------------------------------------------------------

GROUPED = ("openwork.Tensor", "openwork.MaskedTensor")
"""Classes whose members have pages of their own."""


def pages() -> dict[str, str]:
    """By file: the source of each page of the reference."""
    found = {}
    for key, chapter in chapters().items():
        names = list(chapter.names)
        head = [_title(chapter.title)]
        if chapter.module:
            said = _marked(inspect.getdoc(import_module(chapter.module)) or "")
            head.append(
                f".. py:module:: {chapter.module}\n\n{said}\n\n.. py:currentmodule:: None\n"
            )
        if chapter.dtypes:
            head.append(
                f"Dtypes and constants: {', '.join(f'``{n}``' for n in chapter.dtypes)}.\n"
            )
        found[f"{key}.rst"] = "\n".join([*head, _table(names), _tree(names)])
        for name in names:
            found |= _object(name)
    listed = "\n".join(f"   {key}" for key in chapters())
    found["index.rst"] = (
        f"{_title('API reference')}\nEvery public name has a page. :doc:`Operations at a glance <../reference>` has all\n"
        f"operations in one table.\n\n.. toctree::\n   :maxdepth: 1\n\n   ../reference\n{listed}\n"
    )
    return found


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _table(names: list[str]) -> str:
    """Names as links, each with the first paragraph of its documentation."""
    rows = "".join(
        f"   * - :py:obj:`~{name}`\n     - {_summary(name)}\n" for name in names
    )
    return f".. list-table::\n   :class: objects\n\n{rows}"


def _summary(name: str) -> str:
    text = inspect.getdoc(value_of(name)) or ""
    return _prose(" ".join(text.partition("\n\n")[0].split()))


def _tree(names: list[str]) -> str:
    rows = "\n".join(f"   {name.removeprefix('openwork.')} <{name}>" for name in names)
    return f".. toctree::\n   :hidden:\n\n{rows}\n"


Row = tuple[str, str, "list[Row]"]
"""A page of the site, its name, and the rows below it."""


def sidebar(page: str) -> list[Row]:
    """The chapters, with the objects of the one that a page belongs to, and the members of its group."""
    name = page.removeprefix("reference/")
    parent = next((c for c in GROUPED if name.startswith(f"{c}.")), name)
    rows: list[Row] = [("reference", "Operations at a glance", [])]
    for key, chapter in chapters().items():
        is_open = key == name or parent in chapter.names
        below = [_row(n, name) for n in chapter.names] if is_open else []
        rows.append((f"reference/{key}", chapter.title, below))
    return rows


def _row(name: str, shown: str) -> Row:
    """The row of an object, with the group that the page `shown` of a member belongs to."""
    group = next(
        (
            ms
            for ms in (_in_groups(value_of(name)) if name in GROUPED else {}).values()
            if shown.removeprefix(f"{name}.") in ms
        ),
        [],
    )
    below: list[Row] = [(f"reference/{name}.{m}", m, []) for m in group]
    return f"reference/{name}", name.removeprefix("openwork."), below


def _object(name: str) -> dict[str, str]:
    """The page of an object, with those of its members where these have some."""
    value = value_of(name)
    text = f"{_title(name)}\n.. auto{_kind(value)}:: {_address(name)}\n"
    examples = f"\n.. minigallery:: {name}\n   :add-heading: In the gallery\n   :heading-level: -\n"
    found = {}
    if name in GROUPED:
        groups = _in_groups(value)
        text += "".join(
            f"\n{title}\n{'-' * len(title)}\n\n{_table([f'{name}.{m}' for m in ms])}"
            for title, ms in groups.items()
        )
        text += "\n" + _tree([f"{name}.{m}" for ms in groups.values() for m in ms])
        for member in members(value):
            kind = "method" if callable(getattr(value, member)) else "attribute"
            full = f"{name}.{member}"
            found[f"{name}.{member}.rst"] = (
                f"{_title(full)}\n.. auto{kind}:: {_address(name)}.{member}\n"
            )
    elif _kind(value) == "class" and own_members(value):
        text += f"   :members: {', '.join(own_members(value))}\n"
    return found | {f"{name}.rst": text + examples}


def _address(name: str) -> str:
    """A full name as autodoc reads it where a module and its function are called alike."""
    module, _, last = name.rpartition(".")
    return f"{module}::{last}"


def write(folder: Path = FOLDER) -> None:
    """Write the pages; what is up to date stays untouched, so that Sphinx reads it no more."""
    folder.mkdir(exist_ok=True)
    texts = pages()
    for path in folder.iterdir():
        if path.is_file() and path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


@cache
def addresses() -> dict[str, str]:
    """By what pages write in backticks, without `ow.`: the full name of what they mean."""
    found: dict[str, str] = {}
    for chapter in chapters().values():
        for name in chapter.names:
            short, value = name.removeprefix("openwork."), value_of(name)
            found.setdefault(short, name)
            found.setdefault(short.rpartition(".")[2], name)
            if _kind(value) == "class":
                shown = members(value) if name in GROUPED else own_members(value)
                found |= {
                    f"{short}.{m}": f"{name}.{m}"
                    for m in shown
                    if f"{short}.{m}" not in found
                }
    return found


# -- docstrings, on their way to numpydoc ------------------------------------------------------------------------------

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_|])")
_ENTRY = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*(?:\([^()]*\))?) +: (.*)$")
_SEE = re.compile(r"(?<=See Also\n--------\n)(?:[^\n]+\n)+")
SIGNS = {
    "divide": "/", "floor_divide": "//", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "bitwise_and": "&",
    "bitwise_or": "|", "bitwise_xor": "^", "subtract": "-", "multiply": "*", "remainder": "%", "pow": "**", "add": "+",
    "matmul": "@",
}  # fmt: skip


def docstring(
    _app: Any, _what: str, name: str, value: Any, _options: Any, lines: list[str]
) -> None:
    """autodoc's hook: what stands in backticks stays code, all else is prose without marks."""
    text = "\n".join(lines).strip()
    if isinstance(value, FunctionType) and not isinstance(value.__doc__, Documentation):
        with suppress(ValueError):  # prose of another form stays as it is
            text = compose(
                value.__doc__ or "",
                inspect.signature(value),
                package=value.__module__.split(".")[1],
                skipped=("self",),
            )
    operation = OPERATIONS.get(name.removeprefix("openwork."))
    if operation is not None:
        text = text.replace(
            "\nExamples\n--------", f"\n{_also(operation)}\n\nExamples\n--------", 1
        )
    lines[:] = _SEE.sub(
        lambda found: f"{', '.join(_seen(found[0], name))}\n", _marked(text)
    ).splitlines()


def signature(
    _app: Any, what: str, _name: str, value: Any, _options: Any, text: str, result: str
) -> tuple[str | None, str | None]:
    """autodoc's hook: none of a class that functions make."""
    made = (
        what == "class"
        and "__init__" in vars(value)
        and (text or "").startswith("(*args")
    )
    return ("", None) if made else (text, result)


def _also(o: Operation) -> str:
    """Where an operation is public besides, and what it takes."""
    also = (
        [f"`A.{o.name}`" if o.attribute else f"`A.{o.name}(...)`"]
        if o.method or o.attribute
        else []
    )
    also += [f"`A {SIGNS[o.name]} B`"] if o.name in SIGNS else []
    also += [f"`np.{n}`" for n in numpy_names(o)]
    takes = [
        word
        for word, value in (
            ("masked tensors", o.masked is not None),
            ("lazy tensors", o.lazy),
        )
        if value
    ]
    found = [f"Also {', '.join(also)}."] * bool(also) + [
        f"Takes {' and '.join(takes)} too."
    ] * bool(takes)
    return " ".join(found)


def _seen(names: str, name: str) -> list[str]:
    """The full names of what a docstring's See Also lists, where these pages have them."""
    home = name.removeprefix("openwork.").rpartition(".")[0]
    found = []
    for one in " ".join(names.replace("\\", "").split()).split(", "):
        full = addresses().get(f"{home}.{one}".strip(".")) or addresses().get(one)
        found.append(full or one)
    return found


def _marked(text: str) -> str:
    """A docstring as reStructuredText: before its sections, what is indented is code, and `name : text` an entry."""
    out: list[str] = []
    kind, in_sections = "", False
    prose, examples, rest = text.partition("\nExamples\n---")
    text = _CODE.sub(_on_one_line, prose) + examples + rest
    for line, after in pairwise([*text.splitlines(), ""]):
        in_sections |= after.startswith("---")
        last, entry = kind, None if in_sections else _ENTRY.match(line)
        if line.lstrip().startswith(">>> ") or (last == "doctest" and line):
            kind = "doctest"
            out.append(line)
        elif entry:
            kind = "entry"
            out += ["", f"`{entry[1]}`", f"    {_prose(entry[2])}"]
        elif last != "entry" and line.startswith("    ") and not in_sections:
            kind = "code"
            out += [*(["", "::", ""] if last != "code" else []), line]
        elif line or last != "code":
            kind = "entry" if last == "entry" and line.startswith(" ") else ""
            out += [
                *([""] if last in ("code", "entry") and not kind else []),
                _prose(line),
            ]
        else:
            out.append(line)
    return "\n".join(out)


def _on_one_line(code: re.Match[str]) -> str:
    """Code in backticks without the ends of lines in it."""
    return code[0] if "\n\n" in code[0] else " ".join(re.split(r"\s*\n\s*", code[0]))


def _prose(text: str) -> str:
    """A line with all but what stands in backticks taken literally."""
    parts = _CODE.split(text)
    return "".join(
        part if k % 2 else _SPECIAL.sub(r"\\\1", part) for k, part in enumerate(parts)
    )


def source_address(domain: str, info: dict[str, str], repository: str) -> str | None:
    """linkcode's hook: the address of the lines that define an object."""
    if domain != "py" or not info["module"]:
        return None
    value: Any = import_module(info["module"])
    for part in info["fullname"].split("."):
        value = (
            inspect.getattr_static(value, part, None)
            if inspect.isclass(value)
            else getattr(value, part, None)
        )
    value = inspect.unwrap(value.fget if isinstance(value, property) else value)
    value = (
        getattr(OPERATIONS.get(info["fullname"].rpartition(".")[2]), "function", value)
        if _is_made(value)
        else value
    )
    try:
        path, (lines, first) = (
            inspect.getsourcefile(inspect.unwrap(value)),
            inspect.getsourcelines(inspect.unwrap(value)),
        )
    except (TypeError, OSError):
        return None
    if path is None or not Path(path).is_relative_to(ROOT):
        return None
    return f"{repository}/blob/main/{Path(path).relative_to(ROOT)}#L{first}-L{first + len(lines) - 1}"


def _is_made(value: Any) -> bool:
    """Whether a method is made of the block of an operation."""
    return getattr(value, "__module__", "").endswith("tensor.methods")
