"""The library, and the figures of docs/benchmarks.md -> the README's pictures, `docs/images/*.svg`.

python tools/pictures.py [--png FOLDER]     # --png: also as .png, to look at
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import openwork as ow
from openwork.runtime.kernel_text import show_kernel

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BENCHMARKS = ROOT / "docs" / "benchmarks.md"

PAPER, INK, SOFT, LINE = "#ffffff", "#1f2933", "#5f6c7b", "#c9d2dc"
COLORS = ("#2463a6", "#d9822b", "#2f8f5b", "#a13670")
PEERS = ("scipy", "torch", "graphblas")
SHOWN = {
    "U5": ("A + B", "A * B", "A + B + C + D", "A @ A", "M * (A @ A)", "A @ X, 32 columns", "SDDMM, rank 32",
           "sum of each row", "CSR to CSC", "shuffled COO to CSR", "A above B", "A * 100 elements"),
}  # fmt: skip
NAMES = {
    "M * (A @ A)": "(A @ A) where M is stored",
    "SDDMM, rank 32": "X @ Y where A is stored",
    "A above B": "A stacked on B",
    "A * 100 elements": "A times 100 elements",
}
FORMATS = (
    ("csr", "rows one after the other", 62, 124),
    ("bsr(2, 2)", "blocks of 2 x 2", 198, 166),
    ("dia", "diagonals", 376, 124),
)
"""Name, what it is, and in the picture the upper edge and the height."""

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


def speed(text: str) -> Any:
    """Bars: how many times as long as openwork the others take, by operation."""
    from matplotlib.figure import Figure

    table = rows(text)
    figure = Figure(figsize=(9.6, 5.6), facecolor=PAPER)
    axes = figure.add_axes((0.235, 0.1, 0.735, 0.79))
    operations = SHOWN["U5"]
    for k, operation in enumerate(operations):
        ratios = times_as_long(table[operation])
        axes.axhspan(k - 0.5, k + 0.5, color="#f4f6f9" if k % 2 else PAPER, zorder=0)
        for n, name in enumerate(PEERS):
            if name in ratios:
                at = k + (n - 1) * 0.26
                axes.barh(at, ratios[name] - 1, height=0.23, left=1, color=COLORS[1 + n], zorder=2)
                right = ratios[name] >= 1
                axes.annotate(
                    label(ratios[name]), (ratios[name], at), xytext=(3 if right else -3, 0), textcoords="offset points",
                    va="center", ha="left" if right else "right", fontsize=7.5, color=INK,
                )  # fmt: skip
    axes.axvline(1, color=COLORS[0], linewidth=2, zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(0.1, 25)
    axes.set_ylim(len(operations) - 0.5, -0.5)
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10, 20], ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_yticks(range(len(operations)), [NAMES.get(o, o) for o in operations])
    axes.tick_params(length=0, labelsize=9, colors=INK)
    axes.set_xlabel(
        "time, as a multiple of openwork's (blue line); to the right of it openwork is faster", fontsize=9, color=INK
    )
    for side in axes.spines.values():
        side.set_visible(False)
    for n, (x, name) in enumerate(((0.24, "SciPy"), (0.335, "torch.sparse"), (0.5, "GraphBLAS"))):
        figure.text(x, 0.925, "\u25a0 " + name, color=COLORS[1 + n], fontsize=10, fontweight="bold")
    figure.text(0.97, 0.925, "100 000 x 100 000, 1e6 elements, one thread", ha="right", color=SOFT, fontsize=9)
    return figure


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


def overview() -> Any:
    """One matrix, three formats with what each stores, and the loops that are generated for each."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

    width, height = 1190, 568
    figure = Figure(figsize=(width / 100, height / 100), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")

    def text(
        x: float, y: float, words: str, size: float = 10, color: str = INK, mono: bool = False, **more: Any
    ) -> None:
        family = "DejaVu Sans Mono" if mono else "DejaVu Sans"
        axes.text(x, y, words, fontsize=size, color=color, family=family, va=more.pop("va", "center"), **more)

    def arrow(x0: float, y0: float, x1: float, y1: float) -> None:
        axes.add_patch(
            FancyArrowPatch((x0, y0), (x1, y1), arrowstyle="-|>", mutation_scale=13, color=SOFT, linewidth=1.3)
        )

    for x, words in (
        (28, "1  your numbers"),
        (270, "2  a storage format: a line of text"),
        (738, "3  loops written for it"),
    ):
        text(x, 34, words, 12.5, fontweight="bold")
    dense, side = example(), 30
    _grid(axes, Rectangle, dense, 28, 150, side, text)
    text(28, 76, "NumPy, SciPy, torch, pandas,", 9.5, SOFT)
    text(28, 96, "networkx, or a file", 9.5, SOFT)
    text(28, 124, "A", 11, mono=True, fontweight="bold")
    A = ow.asarray(dense, format="csr")
    for (name, about, top, tall), color in zip(FORMATS, COLORS, strict=False):
        t = A.asformat(name)
        axes.add_patch(
            FancyBboxPatch((270, top), 440, tall, boxstyle="round,pad=0,rounding_size=8", fc="#f7f9fb", ec=LINE)
        )
        axes.add_patch(Rectangle((270, top + 8), 5, tall - 16, color=color))
        text(288, top + 18, name, 11, color, mono=True, fontweight="bold")
        text(298 + 9.3 * len(name), top + 18, about, 9.5, SOFT)
        _format_text(text, str(t.format), 288, top + 39)
        _strips(axes, Rectangle, text, arrays(t), 288, top + (62 if len(str(t.format)) < 60 else 78), color)
        arrow(212, 240, 264, top + tall / 2)
        axes.add_patch(
            FancyBboxPatch((738, top), 424, tall, boxstyle="round,pad=0,rounding_size=8", fc="#22303c", ec="#22303c")
        )
        body = loops(name)
        step = min(16, (tall - 14) / len(body))
        for n, line in enumerate(body):
            text(752, top + (tall - step * (len(body) - 1)) / 2 + step * n, line, 7.1, "#e6edf3", mono=True)
        arrow(711, top + tall / 2, 735, top + tall / 2)
    text(28, 520, "A @ x   A + B   A[2:5]   ow.einsum(...)   gradients   solvers", 10.5, mono=True)
    text(
        28,
        544,
        "Every operation works on every format. Loops become machine code at the first call, and are kept on disk.",
        10,
        SOFT,
    )
    return figure


def _grid(axes: Any, rectangle: Any, dense: Any, x: float, y: float, side: float, text: Any) -> None:
    """The matrix as cells; those that are not 0 are coloured."""
    for (i, j), value in np.ndenumerate(dense):
        stored = value != 0
        corner = (x + side * j, y + side * i)
        axes.add_patch(rectangle(corner, side, side, fc="#dbe8f5" if stored else PAPER, ec=LINE, linewidth=0.8))
        if stored:
            text(corner[0] + side / 2, corner[1] + side / 2, f"{value:.0f}", 10, ha="center")


def _format_text(text: Any, words: str, x: float, y: float) -> None:
    """A format in the language, on one line or two."""
    lines = (
        [words]
        if len(words) < 60
        else [words[: words.index(", i %") + 1], " " * 10 + words[words.index(", i %") + 2 :]]
    )
    for n, line in enumerate(lines):
        text(x, y + 16 * n, line, 8.2, mono=True)


def _strips(
    axes: Any, rectangle: Any, text: Any, found: Sequence[tuple[str, list[str]]], x: float, y: float, color: str
) -> None:
    """Arrays as strips of cells, one below the other; long ones end in dots."""
    for n, (name, numbers) in enumerate(found):
        top = y + 20 * n
        text(x, top + 8, name, 8.5, SOFT)
        shown = numbers if len(numbers) <= 16 else [*numbers[:15], "\u2026"]
        for k, number in enumerate(shown):
            corner = (x + 62 + 22 * k, top)
            axes.add_patch(rectangle(corner, 22, 16, fc=PAPER, ec=color if name == "values" else LINE, linewidth=0.8))
            text(corner[0] + 11, top + 8.5, number, 8, ha="center")


def main() -> None:
    """Write both pictures."""
    import matplotlib

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", type=Path)
    folder = parser.parse_args().png
    matplotlib.rcParams["svg.hashsalt"] = "openwork"
    IMAGES.mkdir(exist_ok=True)
    for name, figure in (("openwork", overview()), ("speed", speed(BENCHMARKS.read_text()))):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, facecolor=PAPER)
        if folder is not None:
            figure.savefig(folder / f"{name}.png", dpi=100, facecolor=PAPER)


if __name__ == "__main__":
    main()
