"""Loop IR as text, the types of its names and arrays -> a kernel, and its run: all that solvers ask of the compiler.

Types that texts name by custom: I of indices, T of elements, R of their absolute values. CONJ(x), REAL(x) and
SQUARE(x), the squared absolute value, are what they are for elements of type T.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen import cache
from ..codegen.executable import Executable
from ..codegen.plan_cache import PlanCache
from ..codegen.pool import parallel, parallel_private
from ..ir.text import inlined
from ..storage.buffers import numpy_dtype, scalar_of

__all__ = ["REALS", "Executable", "compiled", "numpy_dtype", "parallel", "parallel_private", "run", "scalar_of"]

REALS = {"c64": "f32", "c128": "f64"}
"""Complex types, and those of their absolute values."""
_SQUARE = re.compile(r"SQUARE\((\w+(?:\[\w+\])?)\)")
_NONE: Mapping[str, str] = {}
_KERNELS: PlanCache[tuple[Any, ...], Executable] = PlanCache("kernels of solvers")


def compiled(
    text: str, parts: Mapping[str, str] = _NONE, words: Mapping[str, str] = _NONE, one: bool = False, **types: Any
) -> Executable:
    """The kernel of a text.

    parts : for lines of its text that are their names; words : for words of it, in this order
    one : whether the m right sides are one, so that there is no loop over them
    types : of its names, each a scalar type, or an array of it
    """
    scalars = [t if type(t) is str else scalar_of(t) for t in types.values()]
    key: tuple[Any, ...] = (text, one, *types, *scalars)
    if parts or words:
        key += (*parts.items(), *words.items())
    found = _KERNELS.get(key)
    if found is None:
        found = _KERNELS.keep(key, _compiled(text, parts, words, one, dict(zip(types, scalars, strict=True))))
    return found


def _compiled(
    text: str, parts: Mapping[str, str], words: Mapping[str, str], one: bool, types: dict[str, Any]
) -> Executable:
    text = inlined(text, parts)
    if one:
        text = text.replace(" * m + c]", "]").replace("for c in range(0, m):", "if True:")
    for old, new in words.items():
        text = text.replace(old, new)
    if (scalar := types.get("T")) is not None:
        types.setdefault("R", REALS.get(scalar, scalar))
    text = _SQUARE.sub(r"REAL(\1 * CONJ(\1))", text)
    for old, new in (("CONJ", "conj"), ("REAL", "real")):
        text = text.replace(old, new if scalar in REALS else "")
    return cache.of_text(text, **types)


def run(
    text: str, work: int, args: Sequence[Any], one: bool = False, *, parts: Mapping[str, str] = _NONE,
    status: bool = False, **types: Any,
) -> int:  # fmt: skip
    """Run the kernel of a text on arrays and numbers; its status, 0 unless `status` allows others.

    work : elements that it reads or writes, about; where they are so many that it takes long, it can be interrupted
    """
    executable = compiled(text, parts, one=one, **types)
    return executable.run_sized(work, executable.pack(args), status=status)
