"""docs/glossary.md: its modules exist, each term stands once, and the pages link to it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openwork"
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([^`]+)` \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)


def test_every_term_stands_once_and_its_module_exists() -> None:
    terms = [part.strip() for term, _ in ROWS for part in term.split(",")]
    assert len(ROWS) > 60
    assert len(terms) == len(set(terms))
    assert [module for _, module in ROWS if not (PACKAGE / module).exists()] == []


def test_the_pages_link_to_it() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (ROOT / "docs" / "design.md").read_text()
    assert "(docs/glossary.md)" in (ROOT / "CONTRIBUTING.md").read_text()
