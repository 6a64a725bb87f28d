"""The site's sources: every page is in one list, links and pictures lead somewhere, docstrings become Markdown as they should."""

from __future__ import annotations

import importlib.util
import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WRITTEN = [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("coming-from/*.md"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *WRITTEN]
CODE = [
    p for folder in ("src", "tests", "tools", "benchmarks", "examples", "docs") for p in (ROOT / folder).rglob("*.py*")
]
FENCE = re.compile(r"^(`{3,})(.*?)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
INCLUDED = re.compile(r"\A```{include} (\S+)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
BUILT = (str(DOCS / "reference"), str(DOCS / "gallery"))
"""Folders of pages that are written when the site is built."""


def prose(page: Path) -> str:
    return re.sub(r"`[^`\n]*`", "`", FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """The ends of addresses that headings have, as GitHub and the site make them; a page may be another file's."""
    whole = INCLUDED.search(page.read_text())
    page = page.parent / whole[1] if whole else page
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
        built = str(target.parent) in BUILT and target.suffix in (".md", ".rst")
        if not (built or target.exists()) or (anchor and not built and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken(page)


def absent_files(text: str) -> list[str]:
    """The files of code that a text names and that are not there, and names that these do not have: `a/b.py: name`."""
    wrong = []
    for file, name in re.findall(r"`([\w./]+\.pyi?)(?:: (\w+))?`", text):
        end = f"/{file.replace('../', '')}"
        found = [p for p in CODE if str(p).endswith(end)]
        if not any(
            not name or re.search(rf"^(?:def|class) {name}\b|^{name}\b", p.read_text(), re.MULTILINE) for p in found
        ):
            wrong.append(file if not name else f"{file}: {name}")
    return wrong


@pytest.mark.thin(5, rest="ci")
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    assert absent_files(FENCE.sub("", page.read_text())) == []


@pytest.mark.thin(10, rest="ci")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_code_are_closed(page: Path) -> None:
    """What follows an open block is code, up to the end of the page."""
    assert "```" not in FENCE.sub("", page.read_text())


def test_a_file_that_is_gone_is_found() -> None:
    assert absent_files("`test_docs.py`, `tests/test_docs.py: prose`, `gone.py`, `test_docs.py: gone`") == [
        "gone.py",
        "test_docs.py: gone",
    ]


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](#three) [c](other.md) `[d](e)`\n```\n[f](g)\n```\n")
    assert broken(page) == ["#three", "other.md"]


def test_every_page_is_in_one_list() -> None:
    listed = []
    for page in WRITTEN:
        for _, directive, body in FENCE.findall(page.read_text()):
            if directive == "{toctree}":
                names = re.findall(r"^(?!:)(?:.* <)?([\w/.-]+)>?$", body, re.MULTILINE)
                listed += [page.parent / f"{name}.md" for name in names]
    pages = set(WRITTEN) - {DOCS / "index.md", DOCS / "reference.md"}
    assert sorted(listed) == sorted({*pages, *(page for page in listed if str(page.parent) in BUILT)})


def test_every_extra_is_on_the_page_of_installation() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `([a-z]+)` \|", (DOCS / "install.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(extras)


def cells(page: Path) -> list[tuple[str, str]]:
    """The pairs of code in the tables of a page."""
    found = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", page.read_text(), re.MULTILINE)
    return [(theirs.replace("\\|", "|"), ours.replace("\\|", "|")) for theirs, ours in found]


def dense(x: Any, fill: Any = 0) -> Any:
    """What a cell gives, as something to compare; None where it is no number. `fill` is for peers that have none."""
    if isinstance(x, tuple | list):
        return [dense(part, fill) for part in x]
    if type(x).__module__.startswith("torch"):
        return x.detach().to_dense().numpy() if hasattr(x, "to_dense") else None
    for name in ("to_numpy", "toarray", "todense", "to_dense"):
        if hasattr(x, name):
            return np.asarray(x.to_dense(fill_value=fill) if name == "to_dense" else getattr(x, name)())
    array = np.asarray(x)
    return array if array.dtype.kind in "biufc" else None


def run_cell(code: str, names: dict[str, Any], state: str) -> Any:
    """The value of an expression, or what a statement has made of `state`."""
    try:
        return eval(code, names)
    except SyntaxError:
        exec(code, names)
        return names[state]


def same(got: Any, want: Any) -> bool:
    if got is None or want is None:
        return True
    if isinstance(want, list):
        return all(map(same, got, want))
    return np.shape(got) == np.shape(want) and np.allclose(got, want, rtol=1e-5, atol=1e-6)


PEERS = {"scipy": "scipy", "torch": "torch", "pydata": "sparse", "graphblas": "graphblas"}
"""The pages whose left side is Python, and what it is of."""


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", sorted((DOCS / "coming-from").glob("[!i]*.md")), ids=lambda page: page.stem)
def test_tables_of_spellings(page: Path) -> None:
    """Every right cell runs; every left one where the library is there, and then they are equal."""
    setup, more = (
        re.compile(f"^```{kind}\\n(.*?)^```$", re.M | re.S).search(page.read_text()) for kind in ("python", "py")
    )
    peer = PEERS.get(page.stem)
    there = peer is not None and importlib.util.find_spec(peer) is not None
    wrong = []
    pairs = cells(page)
    assert len(pairs) > 10
    for theirs, ours in pairs:
        names: dict[str, Any] = {}
        exec(setup[1] + (more[1] if more and there else ""), names)  # type: ignore[index]
        got = run_cell(ours, names, "A")
        if there and not same(dense(got), dense(run_cell(theirs, names, "S"), getattr(got, "fill_value", 0))):
            wrong.append((theirs, ours))
    assert not wrong


def test_the_loops_of_how_it_works_are_golden() -> None:
    """What the page shows of the stages is word for word in the golden kernel."""
    golden = (ROOT / "tests" / "golden" / "coiterate" / "union-two-fingers.txt").read_text()
    shown = [
        body
        for _, kind, body in FENCE.findall((DOCS / "how-it-works.md").read_text())
        if kind.startswith("{code-block}") and body.startswith(":class: golden")
    ]
    assert len(shown) == 2
    for body in shown:
        lines = body.removeprefix(":class: golden\n").strip("\n").splitlines()
        assert "\n".join(line.strip() for line in lines) in "\n".join(line.strip() for line in golden.splitlines())


GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))


def test_the_gallery_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every script has its place and an underlined title; those that run for long a picture of at most 40 kB and what they print."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "_site"), *sys.path])
    import gallery

    assert sorted(gallery.ORDER) == [path.stem for path in GALLERY]
    pictures = gallery.FOLDER / "pictures"
    recorded = gallery.recorded()
    assert sorted(p.name for p in pictures.iterdir()) == sorted(
        f"{n}.{end}" for n in recorded for end in ("png", "txt")
    )
    assert all(p.stat().st_size <= 40_000 for p in pictures.iterdir())
    runs = re.compile(gallery.settings()["filename_pattern"])
    for path in GALLERY:
        text = path.read_text()
        title, line = text.splitlines()[1:3]
        assert line == "=" * len(title), path.name
        assert (runs.search(str(path)) is None) == (path.stem in recorded)
        assert (f'_thumbnail_path = "../examples/gallery/pictures/{path.stem}.png"' in text) == (path.stem in recorded)


def test_a_record_stands_above_the_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DOCS / "_site"), *sys.path])
    import gallery

    text = gallery.with_record("field", "code\n\n.. _sphx_glr_download_gallery_field.py:\n\nfiles\n")
    printed = (gallery.FOLDER / "pictures" / "field.txt").read_text().splitlines()[0]
    assert [text.index(part) for part in ("code", "field.png", printed, ".. _sphx", "files")] == sorted(
        text.index(part) for part in ("code", "field.png", printed, ".. _sphx", "files")
    )


@pytest.mark.ci
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_the_gallery_runs(path: Path) -> None:
    """Each script runs, and its own assertions hold, with real data where it is given and generated data where not."""
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, "tools/gallery.py", path.stem, "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture
def reference_pages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that writes the sources of the reference."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "_site"), str(ROOT / "tools"), *sys.path])
    return importlib.import_module("reference_pages")


def test_every_public_object_has_a_page(reference_pages: Any) -> None:
    pages = reference_pages.pages()
    shown = {name for chapter in reference_pages.chapters().values() for name in (*chapter.names, *chapter.dtypes)}
    names = {name.removeprefix("openwork.") for name in shown} | reference_pages.MODULES.keys()
    assert set(ow.__all__) <= names
    assert {f"{name}.rst" for name in shown if name.startswith("openwork.")} <= pages.keys()
    assert "automethod:: openwork::Tensor.sum" in pages["openwork.Tensor.sum.rst"]
    listed = [line.strip().partition(" <")[0] for line in pages["linalg.rst"].splitlines() if " <openwork" in line]
    assert {"linalg.cg", "linalg.LU"} <= set(listed)


def test_members_of_a_tensor_stand_in_groups(reference_pages: Any) -> None:
    page = reference_pages.pages()["openwork.Tensor.rst"]
    groups = [title for title, line in itertools.pairwise(page.splitlines()) if line.startswith("---")]
    assert len(groups) > 10
    assert {"Reductions", "Gradients", "By torch's names", "To other libraries"} <= set(groups)
    assert page.count("~openwork.Tensor.") == len(reference_pages.members(ow.Tensor)) > 250


def test_docstrings_become_restructured_text(reference_pages: Any) -> None:
    lines = """A product `a @
b` of a * b and c_d.

name : of |x|
    and more

As follows:
    code_of * it

Parameters
----------
c_d : Tensor
    Shape (m, n).

See Also
--------
zeros_like, eye

Examples
--------
>>> a * b
[x_1]""".splitlines()
    reference_pages.docstring(None, "class", "openwork.Tensor", ow.Tensor, None, lines)
    assert [line for line in lines if line] == [
        "A product `a @ b` of a \\* b and c\\_d.",
        "`name`",
        "    of \\|x\\|",
        "    and more",
        "As follows:",
        "::",
        "    code_of * it",
        "Parameters",
        "----------",
        "c\\_d : Tensor",
        "    Shape (m, n).",
        "See Also",
        "--------",
        "openwork.zeros_like, openwork.eye",
        "Examples",
        "--------",
        ">>> a * b",
        "[x_1]",
    ]


def test_an_object_is_linked_to_its_source(reference_pages: Any) -> None:
    for module, name, file in (
        ("openwork", "write", "io/files.py"),
        ("openwork", "Tensor.sum", "ops/reductions/"),
        ("openwork", "Tensor.values", "tensor/tensor.py"),
        ("openwork.linalg", "cg", "linalg/iterative.py"),
    ):
        found = reference_pages.source_address("py", {"module": module, "fullname": name}, "SITE")
        assert re.fullmatch(rf"SITE/blob/main/src/openwork/{file}.*#L\d+-L\d+", found), found


def test_the_model_of_many_machines_is_the_pages() -> None:
    """The table of docs/scale-times.md is what its command prints."""
    done = subprocess.run(
        [sys.executable, "benchmarks/scale_model.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 9
    assert done.stdout in (DOCS / "scale-times.md").read_text()


def test_tables_of_benchmarks_can_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compare.py --write docs/benchmarks.md` replaces its section, and nothing else of the page."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import compare

    text = (DOCS / "benchmarks.md").read_text()
    begin, end = "<!-- compare: 1 thread -->", "<!-- end -->"
    assert text.count("<!-- compare:") == text.count(end)
    copy = tmp_path / "benchmarks.md"
    copy.write_text(text + "after\n")
    compare.written(str(copy), ["1 thread", "today"], [("U5", ["U5", "ratio"], [["A + B", "2"]], [])])
    found = copy.read_text()
    assert found.startswith(text.split(begin)[0])
    assert found.endswith(text.split(end + "\n")[1] + "after\n")
    assert found.count("| A + B | 2 |") == 1


def test_names_of_the_namespace_are_there() -> None:
    """What the pages call `ow.name` or `ow.module.name` is a public name."""
    for needed in ("torch", "dask", "distributed"):
        pytest.importorskip(needed)
    wrong = []
    for page in (ROOT / "README.md", *WRITTEN):
        for name in sorted(set(re.findall(r"(?<![\w./])ow\.([a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)?)", page.read_text()))):
            found: Any = ow
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is None:
                wrong.append(f"{page.name}: ow.{name}")
    assert wrong == []
