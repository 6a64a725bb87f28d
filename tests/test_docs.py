"""The site's sources: every page is in one list, links and pictures lead somewhere, docstrings become Markdown as they should."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WRITTEN = [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("coming-from/*.md"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *WRITTEN]
FENCE = re.compile(r"^(`{3,})(.*?)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
BUILT = (str(DOCS / "reference"), str(DOCS / "gallery"))
"""Folders of pages that are written when the site is built."""


def prose(page: Path) -> str:
    return re.sub(r"`[^`\n]*`", "`", FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """The ends of addresses that headings have, as GitHub and the site make them."""
    found = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in found}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"https?:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        built = str(target.parent) in BUILT and target.suffix == ".md"
        if not (built or target.exists()) or (anchor and not built and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken(page)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](#three) [c](other.md) `[d](e)`\n```\n[f](g)\n```\n")
    assert broken(page) == ["#three", "other.md"]


def test_every_page_is_in_one_list() -> None:
    listed = []
    for page in WRITTEN:
        for _, directive, body in FENCE.findall(page.read_text()):
            if directive == "{toctree}":
                listed += [page.parent / f"{line}.md" for line in body.splitlines() if line and line[0] != ":"]
    pages = set(WRITTEN) - {DOCS / "index.md", DOCS / "reference.md"}
    assert sorted(listed) == sorted({*pages, *(page for page in listed if str(page.parent) in BUILT)})


def test_docstrings_become_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DOCS / "_site"), *sys.path])
    from docstrings import markdown

    text = """The product `a @ b` of a * b and c_d.

Parameters
----------
a, b : Tensor, shape (m, n)
    or an array
axis : int

Returns
-------
Tensor of `a`

Cost: O(nse).
Raises ShapeError.

Examples
--------
>>> a * b
1
"""
    assert [line for line in markdown(text).splitlines() if line] == [
        "The product `a @ b` of a \\* b and c\\_d.",
        "**Parameters**",
        "- `a, b`: Tensor, shape (m, n) or an array",
        "- `axis`: int",
        "**Returns**",
        "Tensor of `a`",
        "**Cost**: O(nse).",
        "**Raises** ShapeError.",
        "**Examples**",
        "```pycon",
        ">>> a * b",
        "1",
        "```",
    ]
