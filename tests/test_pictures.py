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


@pytest.mark.parametrize("end", ["", "-dark", "-narrow", "-narrow-dark"])
def test_speed_shows_the_figures_of_the_page(pictures, end: str) -> None:
    table = pictures.rows(pictures.BENCHMARKS.read_text())
    wanted = [pictures.label(r) for o in pictures.SHOWN["U5"] for r in pictures.times_as_long(table[o]).values()]
    shown = words(f"speed{end}")
    assert len(wanted) > 20
    assert pictures.SHOWN["U5"][0] == "A @ x"  # the first example, whoever is faster
    assert "".join(wanted) in "".join(shown), "docs/benchmarks.md changed: python tools/pictures.py"
    assert pictures.label(0.163) == "0.16"
    assert pictures.label(12.2) == "12"


@pytest.mark.parametrize("end", ["", "-dark", "-narrow", "-narrow-dark"])
def test_overview_shows_the_loops_of_today(pictures, end: str) -> None:
    shown = words(f"openwork{end}")
    for name, *_ in pictures.FORMATS:
        lines = [line.strip().replace("--", "- -") for line in pictures.loops(name)]
        assert [line for line in lines if line not in [s.strip() for s in shown]] == [], "python tools/pictures.py"


def test_readme_shows_both(pictures) -> None:
    text = (ROOT / "README.md").read_text()
    named = findall(r'<img alt="[^"]{20,}" src="(docs/images/[\w-]+\.svg)">', text)
    assert sorted(named) == ["docs/images/openwork.svg", "docs/images/speed.svg"]
    variants = findall(r'<source media="[^"]+" srcset="(docs/images/[\w-]+\.svg)">', text)
    assert {*named, *variants} == {
        f"docs/images/{name}{end}.svg" for name in ("openwork", "speed") for end in pictures.LOOKS
    }
    assert all((ROOT / path).exists() for path in (*named, *variants))
    links = findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("end", ["", "-dark", "-narrow", "-narrow-dark"])
def test_plots_are_those_of_the_library(end: str) -> None:
    assert {"ow.plot.spy", "ow.plot.rows", "ow.plot.levels", "i : dense", "j : compressed"} <= set(words(f"plots{end}"))
