"""A Tensor -> its text: `repr` on one line, `str` with its buffers level by level, and HTML for a notebook."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..storage.buffers import Array, host_values, is_torch, length
from ..storage.specified import coordinates

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["html", "line", "text"]

_MAX_ITEMS = 20
_SPY_CELLS = 48
_SPY_ELEMENTS = 2_000_000
_CELL, _PICTURE = 4, 96
"""Pixels of a cell, and of the longer side of a picture, at least."""
_COLOUR = (64, 128, 208)
"""A blue that is seen on white and on black."""


def line(t: Tensor) -> str:
    """Shape, dtype, format, nse and bytes."""
    name = t.format.name or str(t.format)
    fill = "" if not t.fill_value else f", fill_value={t.fill_value}"
    fill += ", iso" if t.is_iso and t.nse else ""
    return f'Tensor(shape={t.shape}, dtype={t.dtype}, format="{name}", nse={t.nse}, nbytes={t.nbytes}{fill})'


def text(t: Tensor) -> str:
    """The line, the format, the sizes of levels, every buffer, the space; of rank 0 the element, on one line.

    Long buffers show their ends. The size of a level is the number of coordinates that it can have.
    """
    if not t.ndim:
        return str(t.item())
    sizes = [max(high - low, 0) for low, high in t.format.level_intervals(t.shape)]
    rows = [line(t), f"format = {t.format}", f"levels = ( {' '.join(map(str, sizes))} )"]
    rows += [f"{name} = {_buffer_text(buffer)}" for name, buffer in _buffers(t)]
    return "\n".join([*rows, f"space = {t.device}"])


def _buffers(t: Tensor) -> list[tuple[str, Array]]:
    storage = t._storage
    out: list[tuple[str, Array]] = []
    for level, (pos, crd) in enumerate(zip(storage.pos, storage.crd, strict=True)):
        out += [(f"{name}[{level}]", b) for name, b in (("pos", pos), ("crd", crd)) if b is not None]
    return [*out, ("values", storage.values)]


def _buffer_text(buffer: Array) -> str:
    n = length(buffer)
    if n <= _MAX_ITEMS:
        items = [_item_text(x) for x in _host(buffer).tolist()]
    else:
        half = _MAX_ITEMS // 2
        ends = (_host(buffer[:half]), _host(buffer[n - half :]))
        items = [_item_text(x) for x in ends[0].tolist()] + ["..."] + [_item_text(x) for x in ends[1].tolist()]
    return " ".join(["(", *items, ")"]) + (f"  [{n}]" if n > _MAX_ITEMS else "")


def _host(buffer: Array) -> np.ndarray[Any, Any]:
    return host_values(buffer.detach().cpu()) if is_torch(buffer) else buffer


def _item_text(x: Any) -> str:
    if isinstance(x, bool):
        return "1" if x else "0"
    if isinstance(x, float):
        return f"{x:.6g}"
    if isinstance(x, complex):
        return f"{x.real:.6g}{x.imag:+.6g}j"
    return str(x)


def html(t: Tensor) -> str:
    """A table of the facts beside a picture of a matrix, buffers folded below them; for light and dark pages."""
    facts = [
        ("format", f"{t.format.name or ''} <code>{escape(str(t.format))}</code>".strip()),
        ("shape", " &times; ".join(f"{n:,}" for n in t.shape) or "a scalar"),
        ("dtype", f"{t.dtype}, {t.device}"),
        ("elements", f"{t.nse:,} stored, {100 * t.density:.2g}% of {t.size:,}"),
        ("bytes", f"{t.nbytes:,}"),
    ]
    cell = "style='text-align:left;vertical-align:top;padding:2px 8px'"
    rows = "".join(f"<tr><th {cell}>{name}</th><td {cell}>{value}</td></tr>" for name, value in facts)
    buffers = "\n".join(f"{name} = {_buffer_text(buffer)}" for name, buffer in _buffers(t))
    folded = f"<details><summary>buffers</summary><pre style='white-space:pre-wrap'>{escape(buffers)}</pre></details>"
    return (
        "<div style='display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start'>"
        f"<div><table style='margin:0'>{rows}</table>{folded}</div>{_spy(t)}</div>"
    )


def _spy(t: Tensor) -> str:
    """A picture of at most 48 x 48 cells, each as opaque as it has elements, as an image in the page."""
    if t.ndim != 2 or 0 in t.shape or t.device != "cpu" or t._storage.positions[-1] > _SPY_ELEMENTS:
        return ""

    (rows, columns), _ = coordinates(t._storage)
    height, width = (min(_SPY_CELLS, n) for n in t.shape)
    cells = np.bincount(rows * height // t.shape[0] * width + columns * width // t.shape[1], minlength=height * width)
    opacity = np.ceil(cells * (155 / cells.max(initial=1))).astype(np.uint8) + 100 * (cells > 0).astype(np.uint8)
    image = b64encode(_png(opacity.reshape(height, width))).decode()
    side = max(_CELL, -(-_PICTURE // max(height, width)))
    style = f"width:{side * width}px;height:{side * height}px;image-rendering:pixelated;border:1px solid #8888"
    return f"<img alt='where the elements are' style='{style}' src='data:image/png;base64,{image}'>"


def _png(opacity: np.ndarray[Any, Any]) -> bytes:
    """A PNG file of cells of one colour, by opacity as uint8. (W3C, Portable Network Graphics, 3rd edition.)"""
    height, width = opacity.shape
    cells = np.empty((height, width, 4), np.uint8)
    cells[..., :3], cells[..., 3] = _COLOUR, opacity

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + row.tobytes() for row in cells)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
