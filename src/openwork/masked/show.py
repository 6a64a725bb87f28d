"""A masked tensor -> its text, nested lists with `--` for missing elements as torch prints them, and its HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops.mask_formats import layout_name
from ..provided import provides
from ..storage.buffers import host_values, to_numpy
from .structure import pattern

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = ["html", "text"]

MOST = 1000
"""Elements that are shown in full."""
EDGE = 3
"""Elements that are shown of each end of a dimension that is not."""


@provides("masked text")
def text(m: MaskedTensor) -> str:
    """The elements, `--` for what is missing."""
    if m._scalar:
        bits, data = _arrays(m, None)
        shown = _item(data.item()) if bits.item() else "--"
        return f"MaskedTensor({shown}, {bool(bits.item())})"
    keep = [_edges(n) if m.size > MOST else None for n in m.shape]
    bits, data = _arrays(m, keep)
    rows = _rows(data, bits, [k is not None and len(k) < n for k, n in zip(keep, m.shape, strict=True)])
    return "MaskedTensor(\n" + _indented(rows) + "\n)"


def _edges(n: int) -> list[int] | None:
    return None if n <= 2 * EDGE else [*range(EDGE), *range(n - EDGE, n)]


def _arrays(m: MaskedTensor, keep: list[list[int] | None] | None) -> tuple[Any, Any]:
    """The bits and the data of what is shown, as dense arrays."""

    t = m._tensor.detach()
    for d, places in enumerate(keep or ()):
        if places is not None:
            t = t[(*(slice(None),) * d, np.array(places))]
    marks = pattern(t._storage)
    return to_numpy(marks.to_dense()).reshape(_shape(t, m)), host_values(t.to_dense()).reshape(_shape(t, m))


def _shape(t: Any, m: MaskedTensor) -> tuple[int, ...]:
    return () if m._scalar else tuple(t.shape)


def _item(x: Any) -> str:
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _rows(data: Any, bits: Any, cut: list[bool]) -> str:
    if data.ndim == 1:
        shown = [_item(x) for x in data.tolist()]
        width = max((len(s) if b else 8 for s, b in zip(shown, bits, strict=True)), default=0)
        cells = [s if b else "--".rjust(width) for s, b in zip(shown, bits, strict=True)]
        if cut[0]:
            cells.insert(EDGE, "...")
        return "[" + ", ".join(cells) + "]"
    if not len(data):
        return "[]"
    rows = [_indented(_rows(d, b, cut[1:])) for d, b in zip(data, bits, strict=True)]
    if cut[0]:
        rows.insert(EDGE, "  ...")
    return "[\n" + ",\n".join(rows) + "\n]"


def _indented(rows: str) -> str:
    return "\n".join("  " + row for row in rows.split("\n"))


@provides("masked html")
def html(m: MaskedTensor) -> str:
    """A table of the facts, and the elements."""
    facts = [
        ("shape", str(m.shape)), ("dtype", str(m.dtype)), ("layout", layout_name(m.format)), ("format", str(m.format)),
        ("specified", f"{m.nse:,} of {m.size:,}"),
    ]  # fmt: skip
    rows = "".join(f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts)
    return f"<table>{rows}</table><pre>{escape(text(m))}</pre>"
