"""Settings of sphinx-gallery: the order of the scripts, the look of their figures, and what those print that run for long.

A script with a picture in examples/gallery/pictures is not run when the site is built: its picture and its output are shown as
`python tools/gallery.py NAME` recorded them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gallery"
ORDER = (
    "formats", "poisson", "mesh", "pagerank", "text", "cells", "knowledge", "gcn", "pruned", "attention", "tomography",
    "circuit", "elasticity", "reaction", "flow", "field",
)  # fmt: skip
INK = "#808388"
"""Text and axes: to be read on white and on black."""
STYLE = {
    "savefig.transparent": True, "figure.facecolor": "none", "axes.facecolor": "none", "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "font.size": 11, "image.interpolation": "nearest",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
    "svg.hashsalt": "openwork",
}  # fmt: skip
COLOURS = ["#3f86d6", "#e08a2e", "#35a06a", "#c9506a"]


class Order:
    """Scripts in the order of `ORDER`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        return ORDER.index(Path(name).stem)


def style(_settings: Any = None, _script: Any = None) -> None:
    """Figures that can be read on light and dark pages."""
    import matplotlib as mpl

    mpl.rcParams.update({**STYLE, "axes.prop_cycle": mpl.cycler(color=COLOURS)})


def recorded() -> list[str]:
    """The scripts that are not run when the site is built."""
    return sorted(path.stem for path in (FOLDER / "pictures").glob("*.png"))


def settings() -> dict[str, Any]:
    """sphinx-gallery's own."""
    long = "|".join(recorded())
    return {
        "examples_dirs": "../examples/gallery",
        "gallery_dirs": "gallery",
        "filename_pattern": rf"/(?!(?:{long})\.py$)\w+\.py$",
        "within_subsection_order": "gallery.Order",
        "reset_modules": ("matplotlib", "gallery.style"),
        "doc_module": ("openwork",),
        "reference_url": {"openwork": None},
        "backreferences_dir": "gallery/backreferences",
        "capture_repr": (),
        "remove_config_comments": True,
        "show_signature": False,
        "write_computation_times": False,
        "nested_sections": False,
        "abort_on_example_error": True,
    }


def with_record(name: str, text: str) -> str:
    """The page of a script that was not run, with its recorded picture and output above the downloads."""
    page, footer, downloads = text.partition(
        f".. _sphx_glr_download_gallery_{name}.py:"
    )
    printed = (FOLDER / "pictures" / f"{name}.txt").read_text().rstrip()
    lines = "\n".join(f"    {line}".rstrip() for line in printed.splitlines())
    return f"""{page}
This script runs for a minute or more. ``python tools/gallery.py {name}`` ran it before the site was built:

.. image:: ../../examples/gallery/pictures/{name}.png
   :alt: The figure that the script draws

.. rst-class:: sphx-glr-script-out

.. code-block:: none

{lines}

{footer}{downloads}"""


def read(_app: Any, page: str, source: list[str]) -> None:
    """Sphinx's hook before it reads a page."""
    folder, _, name = page.rpartition("/")
    if folder == "gallery" and name in recorded():
        source[0] = with_record(name, source[0])
