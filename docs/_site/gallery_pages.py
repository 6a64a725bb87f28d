"""The scripts of docs/gallery with what they print and draw -> the Markdown of docs/gallery/*.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "gallery"
EXAMPLES = {
    "formats": "Formats", "poisson": "Differential equations", "mesh": "Meshes", "pagerank": "Graphs", "text": "Text",
    "cells": "Biology", "knowledge": "Knowledge, tensors", "gcn": "Graph networks", "pruned": "Pruned networks",
    "attention": "Transformers", "tomography": "Imaging", "circuit": "Circuits", "elasticity": "Elasticity",
    "reaction": "Chemistry", "flow": "Optimisation", "field": "Statistics",
}  # fmt: skip
"""The scripts in the order of the page, and the field of each."""

INDEX = """# Gallery

Examples from different fields. Each is a script of docs/gallery that you can run as it is; what it prints and draws
was made by `python tools/gallery.py`. Real data is read from the folder that `OPENWORK_DATA` names; without it, data of
the same kind is generated.

:::{container} cards
"""


def parts(source: str) -> tuple[str, str, list[tuple[str, str]]]:
    """A script -> its title, its introduction, and cells: the text of the `# %%` comment, the code below it."""
    tree = ast.parse(source)
    title, _, introduction = (ast.get_docstring(tree) or "").partition("\n")
    body = "\n".join(source.splitlines()[tree.body[0].end_lineno or 0 :]).strip()
    cells = [("", "")]
    for line in body.splitlines():
        text, code = cells[-1]
        if line.startswith("# %%"):
            cells.append((line[4:].strip(), ""))
        elif not code and line.startswith("# "):
            cells[-1] = (f"{text} {line[2:]}", "")
        else:
            cells[-1] = (text, f"{code}{line}\n")
    return title.strip(), introduction.strip(), cells


def page(name: str) -> str:
    """The page of a script."""
    title, introduction, cells = parts((FOLDER / f"{name}.py").read_text())
    printed = (FOLDER / "pictures" / f"{name}.txt").read_text()
    out = [f"# {title}", "", introduction, "", f"![{title}](pictures/{name}.png)", ""]
    for text, code in cells:
        code = re.sub(r"\n*plt\.show\(\)", "", code).strip("\n")
        out += [text, "", f"```python\n{code}\n```", ""] if code else [text, ""]
    out += ["It prints", "", f"```\n{printed}```", ""]
    return "\n".join(
        [
            *out,
            f"The whole script is `docs/gallery/{name}.py`; run it with `python`.",
            "",
        ]
    )


def index() -> str:
    """The page of all: a card for each."""
    cards = []
    for name, field in EXAMPLES.items():
        title = parts((FOLDER / f"{name}.py").read_text())[0]
        cards.append(
            f"[![{title}](pictures/{name}.png)]({name}.md)\n[**{title}**]({name}.md)\n{field}\n"
        )
    return "\n".join(
        (INDEX, *cards, ":::", "", "```{toctree}", ":hidden:", "", *EXAMPLES, "```", "")
    )


def write() -> None:
    """The pages; what is up to date stays untouched."""
    texts = {**{f"{name}.md": page(name) for name in EXAMPLES}, "index.md": index()}
    for name, text in texts.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
