"""A docstring as the source has it -> one in numpydoc's form, composed when it is first read.

    The sum over `axis`.                          The sum over `axis`.

    Cost: O(nse). Raises AxisError for            Parameters
    an axis that is not there.                    ----------
    See also: mean.                               x : Tensor or array_like
                                                      The tensor.
                                          ->      axis : int or sequence of int, optional
                                                      ...
                                                  Returns, Raises, See Also, Notes

The source says what is particular to a function: paragraphs, of which some begin with a label, and sections
"Parameters", "Returns" and "Examples" with entries `name : text`. Types come from the signature, recurring parameters
from `openwork.parameters`, and what an operation returns from the rules in its block.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from inspect import Parameter, Signature
from typing import Any

from .classes import define
from .parameters import RESULTS, TYPES, recurring
from .provided import provides

__all__ = ["Parts", "compose", "parse"]

WIDTH = 88
_SECTION = re.compile(r"^(Parameters|Returns|Yields|Raises|Notes|See Also|References|Examples)\n-{3,}\n?", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:, \*{0,2}[A-Za-z_]\w*)*) ?: (.*)$", re.DOTALL)
_LABEL = re.compile(
    r"(?:^|(?<=[.;)\]`]) |(?<=\w\. )|\n)(?="
    r"(?:Guarantees|Cost(?: per iteration| of a batch)?|Cost and errors|Source|See also): "
    r"|Raises |Warns with |Returns )"
)
_ERROR = re.compile(
    r"(?:^|[,;.] (?:and )?| and )((?:torch's )?(?:[a-z]\w*\.)*[A-Z]\w*(?:Error|Warning|Interrupt))\b", re.DOTALL
)
_SENTENCE = re.compile(r"(?<=[a-z0-9)`\]\"A-Z][.!?])\s+(?=[A-Z`\"(])")
_NOUN = (
    r"(?:(?:dense|masked|torch|sparse|named|NumPy|SciPy) )*(?:Tensors?|MaskedTensor|arrays?|tensors?|LinearOperator"
    r"|bool|int|float|number|Format|Advice|Plan|Lazy|Assembler|Factorization|JacobianPlan|CP|Tucker|SVD|PCA|BlockMatrix|tuple|list|dict"
    r"|function of a vector|(?:[a-z]\w*\.)+\w+)"
)
_TYPE = re.compile(rf"(?:an? |the )?({_NOUN}(?:, {_NOUN})*(?:,? (?:or|and) {_NOUN})?)\b(?P<end>(?= ?[,;:(])|$)?")
"""A description that begins with a type; it ends there where what follows is a clause of its own."""


@define(slots=False)
class Parts:
    """What a docstring of the source says, by kind."""

    prose: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: list[tuple[str, str]] = field(default_factory=list)
    warns: list[tuple[str, str]] = field(default_factory=list)
    see: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    examples: str = ""


# -- from the source's form --------------------------------------------------------------------------------------------


def parse(text: str) -> Parts:
    """The parts of a docstring of the source."""
    parts = Parts()
    head, *rest = _SECTION.split(inspect.cleandoc(text))
    _paragraphs(head, parts)
    for name, body in zip(rest[::2], rest[1::2], strict=True):
        if name == "Examples":
            parts.examples = body.strip("\n")
        elif name == "Parameters":
            entries, _, after = body.strip("\n").partition("\n\n")
            _entries(entries, parts)
            _paragraphs(after, parts)
        elif name in ("Returns", "Yields"):
            returned, _, after = body.strip("\n").partition("\n\n")
            parts.returns, *labelled = _labelled(returned)
            for item in labelled:
                _paragraph(item, parts)
            _paragraphs(after, parts)
        else:
            raise ValueError(f"section {name} in a docstring of the source: write a paragraph with a label")
    return parts


def _entries(text: str, parts: Parts) -> None:
    """Notes the lines `name : text`, with lines of continuation that are indented."""
    for entry in re.split(r"\n(?=\S)", text):
        found = _ENTRY.match(entry)
        if found is None:
            raise ValueError(f"not an entry of parameters: {entry!r}")
        parts.parameters[found[1]] = _joined(found[2])


def _paragraphs(text: str, parts: Parts) -> None:
    for paragraph in filter(None, (p.strip("\n") for p in text.split("\n\n"))):
        lines = re.split(r"\n(?=\S)", paragraph)
        entries = [k for k, line in enumerate(lines) if _is_entry(line)]
        if entries:  # the other lines stand before
            if entries[0]:
                _paragraph("\n".join(lines[: entries[0]]), parts)
            _entries("\n".join(lines[entries[0] :]), parts)
        else:
            _paragraph(paragraph, parts)


def _is_entry(line: str) -> bool:
    found = _ENTRY.match(line)
    return found is not None and " : " in line.split("\n")[0] and not _LABEL.match(line)


def _labelled(paragraph: str) -> list[str]:
    """A paragraph cut before each label; the first piece has none."""
    pieces = _LABEL.split(paragraph)
    return [piece.strip() for piece in pieces] if not _LABEL.match(paragraph) else ["", *map(str.strip, pieces[1:])]


def _paragraph(paragraph: str, parts: Parts) -> None:
    plain, *labelled = _labelled(paragraph)
    if plain.startswith(_LABELS):
        plain, labelled = "", [plain, *labelled]
    if plain:
        parts.prose.append(plain)
    for item in labelled:
        _item(_joined(item), parts)


_LABELS = ("Guarantees: ", "Cost", "Source: ", "See also: ", "Raises ", "Warns with ", "Returns ")


def _item(item: str, parts: Parts) -> None:
    """Notes a piece that begins with a label."""
    label, _, text = item.partition(" ")
    if label == "Raises":
        _errors(text, parts)
    elif item.startswith("Warns with "):
        name, _, why = item.removeprefix("Warns with ").partition(" ")
        parts.warns.append((name, _sentence(why)))
    elif label == "Returns":
        parts.returns = text
    elif item.startswith("See also: "):
        parts.see += [name.strip() for name in item.removeprefix("See also: ").rstrip(". ").split(",")]
    elif label == "Source:":
        parts.references.append(_sentence(text))
    elif label.startswith(("Guarantees", "Cost")):
        parts.notes.append(_sentence(item))
    else:
        parts.prose.append(item)


def _errors(text: str, parts: Parts) -> None:
    """Notes the errors of "ShapeError where ..., DTypeError for ..."."""
    first, *rest = _ERROR.split(text)
    if first.strip(" .,;"):
        parts.notes.append(f"Raises {_sentence(first.strip(' ,;'))}")
    for name, why in zip(rest[::2], rest[1::2], strict=True):
        parts.raises.append(
            (name.removeprefix("torch's "), _sentence(re.sub(r"^that names\b", "names", why.strip(" ,;"))))
        )


def _joined(text: str) -> str:
    return " ".join(text.split())


def _sentence(text: str) -> str:
    """With a capital first letter and a full stop at the end."""
    text = text.strip()
    if not text:
        return text
    if not re.match(r"[\w']*[._]\w", text):
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", ":", "!", "?")) else f"{text}."


# -- to numpydoc's form ------------------------------------------------------------------------------------------------


@provides("compose docstring")
def compose(
    source: str,
    signature: Signature,
    *,
    package: str = "",
    result: tuple[str, str] | None = None,
    skipped: Iterable[str] = (),
    more: str = "",
    examples: Callable[[str], str] | None = None,
) -> str:
    """The docstring in numpydoc's form.

    package : of the function, whose recurring parameters are described
    result : the type and the description of what is returned, where the source does not say
    skipped : parameters that are not described, `self`
    more : a paragraph behind those of the source
    examples : from the examples of the source to those that are shown
    """
    parts = parse(source)
    first, *rest = parts.prose or [""]
    summary, *others = _SENTENCE.split(_joined(first), maxsplit=1)
    sections = [summary, *map(_wrapped, (*others, *rest)), _wrapped(more)]
    shown = [p for name, p in signature.parameters.items() if name not in skipped]
    sections += _section("Parameters", list(_described(shown, parts.parameters, package)))
    general = RESULTS.get((package, str(signature.return_annotation)))
    result = ("", general) if result is None and general is not None else result
    sections += _section("Returns", [_entry(*r) for r in _returned(parts.returns, signature.return_annotation, result)])
    sections += _section("Raises", [_entry(*pair) for pair in _merged(parts.raises)])
    sections += _section("Warns", [_entry(*pair) for pair in parts.warns])
    sections += _section("See Also", [_names(parts.see)] if parts.see else [])
    sections += _section("Notes", ["\n\n".join(map(_wrapped, parts.notes))] if parts.notes else [])
    sections += _section("References", ["\n\n".join(map(_wrapped, parts.references))] if parts.references else [])
    shown_examples = examples(parts.examples) if examples is not None else parts.examples
    sections += _section("Examples", [shown_examples] if shown_examples else [])
    return "\n\n".join(section for section in sections if section) + "\n"


def _section(title: str, entries: list[str]) -> list[str]:
    return ["\n".join((title, "-" * len(title), *entries))] if entries else []


def _merged(errors: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each error once, with all its reasons."""
    for name in dict.fromkeys(name for name, _ in errors):
        yield name, " ".join(why for other, why in errors if other == name)


def _names(names: list[str]) -> str:
    return textwrap.fill(", ".join(names), WIDTH, break_long_words=False, break_on_hyphens=False)


def _wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines; one with lines that are indented stays as it is."""
    if re.search(r"\n\s", text):
        return textwrap.indent(text, indent)
    return textwrap.fill(
        _joined(text), WIDTH, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _entry(head: str, text: str) -> str:
    return f"{head}\n{_wrapped(text, '    ')}" if text else head


def _described(parameters: list[Parameter], said: Mapping[str, str], package: str) -> Iterator[str]:
    """An entry for each parameter, or for several that the source describes together."""
    by_name = {name.strip("* "): (key, text) for key, text in said.items() for name in key.split(",")}
    done: set[str] = set()
    for p in parameters:
        if p.name in done:
            continue
        key, text = by_name.get(p.name, (p.name, ""))
        together = [q for q in parameters if q.name in [n.strip("* ") for n in key.split(",")]]
        if not _adjacent(together, parameters):
            together = [p]
        done.update(q.name for q in together)
        type_, description = _type_and_text(p, text or recurring(_key(p), package))
        if description:
            if description.startswith("of "):
                description = f"The {p.name} {description}"
            yield _entry(f"{', '.join(map(_starred, together))} : {type_}{_default(p)}", _sentence(description))


def _key(p: Parameter) -> str:
    return p.name if p.default is None else f"{p.name}="


def _adjacent(some: list[Parameter], parameters: list[Parameter]) -> bool:
    """Whether they stand one after the other, with one default."""
    at = [parameters.index(p) for p in some]
    return at == list(range(at[0], at[0] + len(at))) and len({str(p.default) + str(p.annotation) for p in some}) == 1


def _starred(p: Parameter) -> str:
    return "*" * (p.kind is Parameter.VAR_POSITIONAL) + "**" * (p.kind is Parameter.VAR_KEYWORD) + p.name


def _default(p: Parameter) -> str:
    if p.default is Parameter.empty:
        return ""
    if p.default is None or not isinstance(p.default, bool | int | float | str | tuple):
        return ", optional"
    return f", default {p.default!r}"


def _type_and_text(p: Parameter, text: str) -> tuple[str, str]:
    """The type of a parameter, by its annotation, else by its description, else by its name; and the description."""
    type_ = _type(p.annotation)
    if type_:
        return type_, text
    found = _TYPE.match(text)
    if found is not None:
        return found[1], _after(found, text)
    return TYPES.get(p.name, "object"), text


def _after(found: re.Match[str], text: str) -> str:
    """What a description says behind its type; all of it where that goes on, but for the name of a class."""
    ends = found["end"] is not None or "." in found[1]
    return (text[found.end() :].lstrip(",;: ") if ends else "") or text


_NAMES = {
    "Any": "", "object": "", "Axis": "int or sequence of int", "Path_": "str or path-like", "Size": "int or str",
    "Progress": "bool or callable", "Callback": "callable", "np.random.Generator": "numpy.random.Generator",
    "Buffers": "mapping of int to array_like", "_t.Tensor": "torch.Tensor", "Array": "array",
}  # fmt: skip
_GENERIC = {
    "Sequence": "sequence", "Mapping": "mapping", "Iterable": "iterable", "Iterator": "iterator",
    "Collection": "collection", "list": "list", "tuple": "tuple", "Callable": "callable", "dict": "dict",
    "type": "type",
}  # fmt: skip


def _type(annotation: Any) -> str:
    """An annotation in words: "int or sequence of int". Empty for one that says nothing."""
    if annotation is Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = text.replace("builtins.", "")
    words = [_word(part) for part in _split(text, "|")]
    known = [word for word in dict.fromkeys(words) if word != "None"]
    return "" if "" in known else " or ".join(known)


def _split(text: str, at: str) -> list[str]:
    """The text cut where a character stands outside of brackets."""
    pieces, depth = [""], 0
    for c in text:
        depth += (c in "[(") - (c in "])")
        if c == at and not depth:
            pieces.append("")
        else:
            pieces[-1] += c
    return [piece.strip() for piece in pieces]


def _word(text: str) -> str:
    name, bracket, inside = text.partition("[")
    if name in _NAMES:
        return _NAMES[name]
    if bracket and name in _GENERIC:
        if name in ("Callable", "type", "dict", "Mapping"):
            return _GENERIC[name]
        inner = _type(_split(inside.removesuffix("]"), ",")[0])
        return f"{_GENERIC[name]} of {inner}" if inner else _GENERIC[name]
    return _GENERIC.get(name, text)


def _returned(text: str, annotation: Any, result: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
    """The type and the description of what is returned; with a name before the type where it is several things."""
    type_ = _type(annotation)
    if annotation in (None, "None") or not (text or result):
        return
    lines = re.split(r"\n(?=\S)", text)
    if len(lines) > 1 and all(map(_is_entry, lines)):
        for name, _, one in (line.partition(" : ") for line in lines):
            kind, description = _result_type(_joined(one))
            yield f"{name} : {kind or 'object'}", _sentence(description)
    elif text:
        kind, description = _result_type(_joined(text))
        yield type_ or kind or "Tensor or array", _sentence(description)
    elif result is not None:
        yield type_ or result[0], result[1]


def _result_type(text: str) -> tuple[str, str]:
    """The type that a description of a result begins with, or those that it names; and the description."""
    several = "Tensor or array" if re.search(r"\barray", text) and re.search(r"\bTensor", text) else ""
    found = _TYPE.match(text)
    return (several, text) if found is None else (several or found[1], _after(found, text))
