"""The library, and the figures of docs/benchmarks.md -> the README's pictures, `docs/images/*.svg`.

Each is drawn four times: for light and dark pages, and for wide and narrow ones.

python tools/pictures.py [--png FOLDER]     # --png: also as .png, to look at
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import openwork as ow
from openwork.runtime.kernel_text import show_kernel

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BENCHMARKS = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Look:
    """Colours of a picture, and whether it is for a narrow page."""

    ink: str = "#1f2933"
    soft: str = "#5f6c7b"
    line: str = "#c9d2dc"
    card: str = "#f7f9fb"
    stored: str = "#dbe8f5"
    loops: str = "#22303c"
    colors: tuple[str, ...] = ("#2463a6", "#d9822b", "#2f8f5b", "#a13670")
    narrow: bool = False


DARK = Look(
    "#e6edf3", "#9aa7b4", "#44505c", "#1b232c", "#24405e", "#10161c", ("#6fb0f5", "#e8a04c", "#5cbf87", "#e07ab0")
)
LOOKS = {"": Look(), "-dark": DARK, "-narrow": replace(Look(), narrow=True), "-narrow-dark": replace(DARK, narrow=True)}
"""By the end of the file's name."""

PEERS = ("scipy", "torch", "graphblas")
SHOWN = {
    "U5": ("A @ x", "A + B", "A * B", "A + B + C + D", "A @ A", "M * (A @ A)", "A @ X, 32 columns", "SDDMM, rank 32",
           "sum of each row", "CSR to CSC", "shuffled COO to CSR", "A above B", "A * 100 elements"),
}  # fmt: skip
NAMES = {
    "M * (A @ A)": "(A @ A) where M is stored",
    "SDDMM, rank 32": "X @ Y where A is stored",
    "A above B": "A stacked on B",
    "A * 100 elements": "A times 100 elements",
}
FORMATS = (("csr", "rows one after the other", 134), ("bsr(2, 2)", "blocks of 2 x 2", 184), ("dia", "diagonals", 134))
"""Name, what it is, and its height in the picture."""

EXPRESSION = "y(i) += A(i,j) * x(j)"


def rows(text: str, section: str = "U5") -> dict[str, dict[str, float]]:
    """Operation -> library -> milliseconds, of one table of the page of benchmarks, where there is a time."""
    block = text.split("<!-- compare: 1 thread -->")[1].split(f"### {section}:")[1].split("\n### ")[0]
    lines = [re.split(r"\s*\|\s*", line.strip("| ")) for line in block.splitlines() if line.startswith("|")]
    libraries = lines[0][1:-1]
    return {
        cells[0]: {name: float(cell) for name, cell in zip(libraries, cells[1:-1], strict=True) if cell != "-"}
        for cells in lines[2:]
    }


def times_as_long(row: dict[str, float]) -> dict[str, float]:
    """How many times as long as ours each other library takes."""
    return {name: row[name] / row["openwork"] for name in PEERS if name in row}


def label(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def speed(text: str, look: Look) -> Any:
    """Bars: how many times as long as openwork the others take, by operation."""
    from matplotlib.figure import Figure

    table = rows(text)
    size, left = ((4.2, 7.4), 0.36) if look.narrow else ((8.6, 6.0), 0.245)
    figure = Figure(figsize=size)
    axes = figure.add_axes((left, 0.1, 0.97 - left, 0.78), facecolor="none")
    operations = SHOWN["U5"]
    for k, operation in enumerate(operations):
        ratios = times_as_long(table[operation])
        axes.axhspan(k - 0.5, k + 0.5, color=look.card if k % 2 else "none", zorder=0)
        for n, name in enumerate(PEERS):
            if name in ratios:
                at = k + (n - 1) * 0.26
                right = ratios[name] >= 1
                axes.barh(at, ratios[name] - 1, height=0.23, left=1, color=look.colors[1 + n], zorder=2)
                axes.plot([ratios[name]], [at], "|", color=look.colors[1 + n], zorder=4, markersize=6)  # seen at 1 too
                axes.annotate(
                    label(ratios[name]), (ratios[name], at), xytext=(5 if right else -5, 0), textcoords="offset points",
                    va="center", ha="left" if right else "right", fontsize=8, color=look.ink, zorder=4,
                )  # fmt: skip
    axes.axvline(1, color=look.colors[0], linewidth=2, zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(0.09, 28)
    axes.set_ylim(len(operations) - 0.5, -0.5)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20][:: 1 if not look.narrow else 3]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(operations)), [_wrapped(NAMES.get(o, o), look) for o in operations])
    axes.tick_params(length=0, labelsize=9, colors=look.ink)
    axes.set_xlabel(
        "time as a multiple of openwork's" + "; to the right of the blue line openwork is faster" * (not look.narrow),
        fontsize=9, color=look.ink, x=0.5 if not look.narrow else 0.3,
    )  # fmt: skip
    for side in axes.spines.values():
        side.set_visible(False)
    names = ("| openwork", "\u25a0 SciPy", "\u25a0 torch.sparse", "\u25a0 GraphBLAS")
    places = ((0.03, 0.94), (0.32, 0.94), (0.03, 0.905), (0.45, 0.905))
    if not look.narrow:
        places = ((0.03, 0.91), (0.17, 0.91), (0.275, 0.91), (0.45, 0.91))
    for name, (x, y), color in zip(names, places, look.colors, strict=True):
        figure.text(x, y, name, color=color, fontsize=10, fontweight="bold")
    figure.text(0.03, 0.99, "100,000 x 100,000, 1e6 elements, one thread", va="top", color=look.soft, fontsize=9)
    return figure


def _wrapped(words: str, look: Look) -> str:
    """A name on two lines where the page is narrow."""
    return textwrap.fill(words, 18) if look.narrow else words


def example() -> np.ndarray[Any, Any]:
    """The matrix of the picture, 6 x 6."""
    dense = np.zeros((6, 6))
    dense[0, :2], dense[1, :2] = (1, 2), (3, 4)
    dense[2:4, 2:4] = [[5, 6], [7, 8]]
    dense[4:, 4:] = [[1, 2], [3, 4]]
    dense[0, 3] = 9
    return dense


def loops(name: str) -> list[str]:
    """The body of the kernel that is generated for a format, without the list of its arguments."""
    text = show_kernel(EXPRESSION, {"A": name})
    body = re.split(r"\):(?:  # \w+)?\n", text, maxsplit=1)[1]
    return (
        textwrap.dedent(re.sub(r"  # novector|i64\((A_crd\d\[\w+\])\)", lambda m: m[1] or "", body))
        .rstrip()
        .splitlines()
    )


def arrays(t: ow.Tensor) -> list[tuple[str, list[str]]]:
    """What a tensor stores: (name, numbers) of each array."""
    found = []
    for level in range(t.format.nlevels if hasattr(t.format, "nlevels") else len(t.format.levels)):
        for kind, array in (("starts", t.pos(level)), ("indices", t.crd(level))):
            if array is not None:
                found.append((kind, [str(n) for n in np.asarray(array).tolist()]))
    return [*found, ("values", [f"{v:.0f}" for v in np.asarray(t.values).tolist()])]


def overview(look: Look) -> Any:
    """One matrix, three formats with what each stores, and the loops that are generated for each."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, Rectangle

    width, gap = (420, 8) if look.narrow else (860, 14)
    step = sum(tall for *_, tall in FORMATS) * (2 if look.narrow else 1)
    height = 236 + step + gap * (len(FORMATS) * (2 if look.narrow else 1) + 1) + 20
    figure = Figure(figsize=(width / 100, height / 100))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")

    def text(
        x: float, y: float, words: str, size: float = 10, color: str = look.ink, mono: bool = False, **more: Any
    ) -> None:
        family = "DejaVu Sans Mono" if mono else "DejaVu Sans"
        axes.text(x, y, words, fontsize=size, color=color, family=family, va=more.pop("va", "center"), **more)

    def card(x: float, y: float, wide: float, tall: float, fill: str) -> None:
        axes.add_patch(
            FancyBboxPatch((x, y), wide, tall, boxstyle="round,pad=0,rounding_size=8", fc=fill, ec=look.line)
        )

    dense = example()
    text(10, 20, "1  your numbers", 11, fontweight="bold")
    _grid(axes, Rectangle, dense, 10, 42, 25, text, look)
    beside = 184
    for n, line in enumerate(("From NumPy, SciPy, torch, pandas,", "networkx, or a file.")):
        text(beside, 54 + 20 * n, line, 8.8, look.soft)
    for n, line in enumerate(("A @ x   A + B   A[2:5]", "ow.einsum(...)   gradients", "solvers")):
        text(beside, 108 + 20 * n, line, 8.8, mono=True)
    text(beside, 176, "Every operation, every format.", 8.8, look.soft)
    text(10, 216, "2  a format: one line of text", 11, fontweight="bold")
    text(
        10 if look.narrow else 424,
        236 if look.narrow else 216,
        "3  the loops that openwork compiles for it",
        11,
        fontweight="bold",
    )
    top = 252 if look.narrow else 236
    A = ow.asarray(dense, format="csr")
    for (name, about, tall), color in zip(FORMATS, look.colors, strict=False):
        t = A.asformat(name)
        card(8, top, 404, tall, look.card)
        axes.add_patch(Rectangle((8, top + 8), 5, tall - 16, color=color))
        text(24, top + 20, name, 10.5, color, mono=True, fontweight="bold")
        text(36 + 9.3 * len(name), top + 20, about, 9, look.soft)
        _format_text(text, str(t.format), 24, top + 43)
        _strips(axes, Rectangle, text, arrays(t), 24, top + (66 if len(str(t.format)) < 60 else 84), color, look)
        x = 8 if look.narrow else 422
        top += tall + gap if look.narrow else 0
        card(x, top, width - x - 8, tall, look.loops)
        body = loops(name)
        apart = min(17, (tall - 12) / len(body))
        for n, line in enumerate(body):
            text(x + 10, top + (tall - apart * (len(body) - 1)) / 2 + apart * n, line, 7.3, "#e6edf3", mono=True)
        top += tall + gap
    return figure


def _grid(axes: Any, rectangle: Any, dense: Any, x: float, y: float, side: float, text: Any, look: Look) -> None:
    """The matrix as cells; those that are not 0 are coloured."""
    for (i, j), value in np.ndenumerate(dense):
        stored = value != 0
        corner = (x + side * j, y + side * i)
        axes.add_patch(rectangle(corner, side, side, fc=look.stored if stored else "none", ec=look.line, linewidth=0.8))
        if stored:
            text(corner[0] + side / 2, corner[1] + side / 2, f"{value:.0f}", 9, ha="center")


def _format_text(text: Any, words: str, x: float, y: float) -> None:
    """A format in the language, on one line or two."""
    lines = (
        [words]
        if len(words) < 60
        else [words[: words.index(", i %") + 1], " " * 10 + words[words.index(", i %") + 2 :]]
    )
    for n, line in enumerate(lines):
        text(x, y + 17 * n, line, 8.2, mono=True)


def _strips(
    axes: Any,
    rectangle: Any,
    text: Any,
    found: Sequence[tuple[str, list[str]]],
    x: float,
    y: float,
    color: str,
    look: Look,
) -> None:
    """Arrays as strips of cells, one below the other; long ones end in dots."""
    for n, (name, numbers) in enumerate(found):
        top = y + 21 * n
        text(x, top + 8, name, 8.5, look.soft)
        shown = numbers if len(numbers) <= 14 else [*numbers[:13], "\u2026"]
        for k, number in enumerate(shown):
            corner = (x + 60 + 22 * k, top)
            edge = color if name == "values" else look.line
            axes.add_patch(rectangle(corner, 22, 17, fc="none", ec=edge, linewidth=0.8))
            text(corner[0] + 11, top + 9, number, 8, ha="center")


def plots(look: Look) -> Any:
    """What `ow.plot` draws: where elements are, how long rows are, and how a small matrix is stored."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = ("text.", "axes.edge", "axes.label", "axes.title", "xtick.", "ytick.")
    ink = {f"{name}color": look.ink for name in names}
    with mpl.rc_context({**ink, "axes.facecolor": "none", "font.size": 9, "axes.titlesize": 9}):
        figure = Figure(figsize=(4.2, 9.5) if look.narrow else (9.6, 3.4), layout="constrained")
        axes = figure.subplots(3, 1) if look.narrow else figure.subplots(1, 3)
        x = np.arange(8)
        mesh = ow.kronsum(*[np.eye(8) * 2 - (abs(x[:, None] - x) == 1)] * 2, format="csr")
        ow.plot.spy(mesh, ax=axes[0], color=look.colors[0])
        ow.plot.rows(ow.random((400, 400), 0.02, format="csr", rng=0), ax=axes[1], color=look.colors[0])
        ow.plot.levels(ow.asarray(example(), format="csr"), ax=axes[2], color=look.colors[0])
        for axis, title in zip(axes, ("ow.plot.spy", "ow.plot.rows", "ow.plot.levels"), strict=True):
            axis.set_title(title, fontfamily="monospace", fontweight="bold")
    return figure


def main() -> None:
    """Write the pictures, each for every kind of page."""
    import matplotlib

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", type=Path)
    folder = parser.parse_args().png
    matplotlib.rcParams["svg.hashsalt"] = "openwork"
    IMAGES.mkdir(exist_ok=True)
    for end, look in LOOKS.items():
        for name, figure in (
            ("openwork", overview(look)), ("speed", speed(BENCHMARKS.read_text(), look)), ("plots", plots(look)),
        ):  # fmt: skip
            figure.savefig(IMAGES / f"{name}{end}.svg", metadata={"Date": None}, transparent=True)
            if folder is not None:
                paper = "#0d1117" if "dark" in end else "#ffffff"
                figure.savefig(folder / f"{name}{end}.png", dpi=100, facecolor=paper)


if __name__ == "__main__":
    main()
