"""`openwork plot`: a picture of the matrix in a file, as PNG, SVG or PDF."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import openwork as ow

from .load import read
from .main import CliError
from .output import count_text, shape_text

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    out = Path(arguments.out)
    if not out.suffix:
        raise CliError(f"{out}: what kind of picture?; help: end the name in .png, .svg or .pdf")
    if not out.parent.is_dir():
        raise CliError(f"{out.parent}: no such folder")
    try:
        import matplotlib
    except ImportError:
        raise CliError("matplotlib is not installed; help: pip install matplotlib") from None
    matplotlib.use("agg")
    from matplotlib.figure import Figure

    if out.suffix[1:].lower() not in Figure().canvas.get_supported_filetypes():
        raise CliError(f"{out}: {out.suffix} is not a kind of picture; help: .png, .svg or .pdf")
    t = read(arguments.file)
    axes = getattr(ow.plot, arguments.kind)(t)
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, dpi=150, format=out.suffix[1:].lower())
    out.write_bytes(buffer.getbuffer())
    print(f"{out}: {arguments.kind} of {shape_text(t.shape)}, {count_text(int(t.nse))} elements")
    return 0
