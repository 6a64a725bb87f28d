"""The range of a parallel call -> its number among the ranges, and its private slice of a buffer."""

from __future__ import annotations

from ..build import Array, Builder

__all__ = ["range_slice", "bind_range_number"]


def bind_range_number(builder: Builder) -> None:
    """Bind `part`, the number of the range [lo, hi) among those between the `ranges` + 1 numbers in `bounds`."""
    ranges = builder.scalar("ranges")
    bounds = builder.buffer("bounds", "i64")
    text = "part: i64 = 0\nwhile part + 1 < ranges and bounds[part + 1] <= lo:\n    part += 1"
    builder.top.run(text, ranges=ranges, bounds=bounds)


def range_slice(builder: Builder, name: str, scalar: str) -> Array:
    """The slice of buffer `name`, of parents + 1 elements, that belongs to this range."""
    array = builder.buffer(name, scalar, mutable=True, wide=True)
    top = builder.top
    begin = top.let("own", top.expr("part * (parents + 1)", parents=builder.scalar("parents")))
    return Array(array.name, scalar, wide=True, offset=begin)
