"""A docstring of openwork -> Markdown for the site: sections become headings, examples blocks; backticks stay code."""

from __future__ import annotations

import re

__all__ = ["markdown"]

_SECTION = re.compile(
    r"^(Parameters|Returns|Raises|Warns|Examples|Yields|Notes|References|See also|See Also)\n-{3,}$",
    re.MULTILINE,
)
_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_\[\]<>{}#|$~])")
_LABEL = re.compile(
    r"^(Guarantees|Cost|Raises|Source|Warns|See also)(:?) ", re.MULTILINE
)
_NAMES = re.compile(r"^See also: ([^`\n]+(?:\n[^`\n]+)?)\.$", re.MULTILINE)
_ATTRIBUTES = re.compile(r"[A-Za-z_][\w, ]*(\([^()]*\))? : ")
_ENTRY = re.compile(r"^(\S[^:\n]*?) : (.*)$")


def markdown(doc: str) -> str:
    """The docstring, without indentation, as Markdown."""
    first, *rest = _SECTION.split(doc.strip())
    out = [_prose(first)]
    for name, body in zip(rest[::2], rest[1::2], strict=True):
        lines, after = _section(body.strip("\n"))
        if name == "Examples":
            out += [f"**{name}**", f"```pycon\n{body.strip()}\n```"]
            continue
        if name == "See Also":
            names = " ".join(lines).split(", ")
            out.append(f"See also: {', '.join(f'`{one}`' for one in names)}.")
            continue
        if any(line.startswith("    ") for line in lines) and not after:
            out += [f"**{name}**", _items(lines)]
            continue
        out += [
            f"**{name}**",
            _entries(lines) if name == "Parameters" else _prose("\n".join(lines)),
        ]
        if after:
            out.append(_prose(after))
    return "\n\n".join(part for part in out if part) + "\n"


def _section(body: str) -> tuple[list[str], str]:
    """A section's own lines, and the paragraphs that follow it; parameters have no empty line among them."""
    own, _, after = body.partition("\n\n")
    return own.splitlines(), after


def _entries(lines: list[str]) -> str:
    """`name : text` with its continuation lines -> items of a list."""
    items: list[str] = []
    for line in lines:
        entry = _ENTRY.match(line)
        if entry:
            items.append(f"`{entry[1].strip()}`: {entry[2]}")
        elif items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line.strip())
    return "\n".join(f"- {_line(item)}" for item in items)


def _items(lines: list[str]) -> str:
    """numpydoc's entries, whose descriptions are indented -> items of a list."""
    items: list[str] = []
    for line in lines:
        if line.startswith(" "):
            items[-1] += f" {line.strip()}"
        else:
            name, colon, kind = line.partition(" : ")
            items.append(f"`{name}`: {kind}." if colon else f"{name}:")
    return "\n".join(f"- {_line(item)}" for item in items)


def _prose(text: str) -> str:
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.startswith(("    ", ">>> ")):
            paragraphs.append(f"```\n{paragraph}\n```")
        elif _ATTRIBUTES.match(paragraph):
            paragraphs.append(_entries(paragraph.splitlines()))
        elif paragraph.strip():
            paragraph = _NAMES.sub(_in_backticks, paragraph)
            marked = _LABEL.sub(r"\n\n\0\1\0\2 ", paragraph)
            paragraphs.append(_line(marked).replace("\0", "**").strip())
    return "\n\n".join(paragraphs)


def _in_backticks(names: re.Match[str]) -> str:
    """`See also: a, b.` -> the same with each name in backticks."""
    return (
        f"See also: {', '.join(f'`{name.strip()}`' for name in names[1].split(','))}."
    )


def _line(text: str) -> str:
    """Text with all but what stands in backticks taken literally."""
    parts = _CODE.split(text)
    return "".join(
        part if k % 2 else _SPECIAL.sub(r"\\\1", part) for k, part in enumerate(parts)
    )
