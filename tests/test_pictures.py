"""The README's pictures hold what the library and docs/benchmarks.md say."""

from __future__ import annotations

import sys
from html import unescape
from pathlib import Path
from re import findall

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def pictures() -> object:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import pictures
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return pictures


def words(name: str) -> list[str]:
    """The texts of a picture, in the order in which they were drawn."""
    found = findall(r"<!-- (.*?) -->", (ROOT / "docs" / "images" / f"{name}.svg").read_text())
    return [unescape(word).replace("\u2212", "-") for word in found]


def test_speed_shows_the_figures_of_the_page(pictures) -> None:
    table = pictures.rows(pictures.BENCHMARKS.read_text())
    wanted = [pictures.label(r) for o in pictures.SHOWN["U5"] for r in pictures.times_as_long(table[o]).values()]
    shown = words("speed")
    assert len(wanted) > 20
    assert "".join(wanted) in "".join(shown), "docs/benchmarks.md changed: python tools/pictures.py"
    assert pictures.label(0.163) == "0.16"
    assert pictures.label(12.2) == "12"


def test_overview_shows_the_loops_of_today(pictures) -> None:
    shown = words("openwork")
    for name, *_ in pictures.FORMATS:
        lines = [line.strip().replace("--", "- -") for line in pictures.loops(name)]
        assert [line for line in lines if line not in [s.strip() for s in shown]] == [], "python tools/pictures.py"


def test_readme_shows_both() -> None:
    text = (ROOT / "README.md").read_text()
    named = findall(r"!\[[^\]]{20,}\]\((docs/images/\w+\.svg)\)", text)
    assert sorted(named) == ["docs/images/openwork.svg", "docs/images/speed.svg"]
    assert all((ROOT / path).exists() for path in named)
    links = findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
