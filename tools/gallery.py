"""The scripts of examples/gallery, run -> what each prints and its picture, in examples/gallery/pictures.

python tools/gallery.py              # all whose record the site shows, as they run for long
python tools/gallery.py field flow   # some; with real data where OPENWORK_DATA names its folder
python tools/gallery.py --check text # run, write nothing
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small steps of torch on several threads wait for each other

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_site"))  # before this folder, whose gallery is this file
from gallery import FOLDER, recorded, style  # noqa: E402

MOST = 40_000
"""Bytes of a picture."""


def run(path: Path, *, write: bool) -> float:
    """Run a script, and where `write` is true keep its output and its figure; the seconds it took."""
    start, printed = time.perf_counter(), io.StringIO()
    with mpl.rc_context(), contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        style()
        show, plt.show = plt.show, lambda: None
        try:
            figure = runpy.run_path(str(path))["figure"]
        finally:
            plt.show = show
        if figure.get_layout_engine() is None:
            figure.tight_layout()
        if write:
            _save(figure, FOLDER / "pictures" / f"{path.stem}.png")
            (FOLDER / "pictures" / f"{path.stem}.txt").write_text(printed.getvalue())
        plt.close("all")
    return time.perf_counter() - start


def _save(figure: plt.Figure, path: Path) -> None:
    """A PNG, transparent behind; of 256 colours where it is large otherwise."""
    figure.savefig(path, dpi=110, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.08)
    with Image.open(path) as image:
        image.save(path, optimize=True)
        if path.stat().st_size > MOST:
            image.quantize(256, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)


def main(arguments: list[str]) -> int:
    """Run the scripts that are named, all without."""
    names = [a for a in arguments if not a.startswith("-")]
    for name in names or recorded():
        path = FOLDER / f"{name}.py"
        print(f"{path.stem:12} {run(path, write='--check' not in arguments):5.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
