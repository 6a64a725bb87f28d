"""Golden kernels of merges: the loop IR of an elementwise expression, word for word. See `tests/golden/test_golden.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from openwork.compiler.coiterate import lower_merge
from openwork.compiler.coiterate.merge import Input, Merge
from openwork.compiler.coiterate.merge_formats import levels_in_order
from openwork.compiler.fill import Regions
from openwork.compiler.operand import Operand
from openwork.compiler.simplify import simplify
from openwork.format import format as parse_format
from openwork.ir.index_text import parse_expression
from openwork.ir.ops import const
from openwork.ir.printer import show
from openwork.ir.text import parse as parse_loops
from openwork.ir.verify import verify
from openwork.runtime.coiterate.types import typed

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """An expression over operands in these formats; the result has the first one's. `drivers`: see `Merge`."""

    text: str
    formats: tuple[str, ...]
    drivers: tuple[str | None, ...] = ()


CASES = {
    "times-csr": Case("A * B", ("csr", "csr")),
    "plus-csr": Case("A + B", ("csr", "csr")),
    "times-csr-led": Case("A * B", ("csr", "csr"), ("B", "B")),
    "times-csr-dcsr-led": Case("A * B", ("csr", "dcsr"), ("B", "B")),
    "times-coo-led": Case("A * B", ("coo", "coo"), ("B", "B")),
}


def kernel_text(case: Case) -> str:
    names = "ABC"[: len(case.formats)]
    formats = [parse_format(f, 2) for f in case.formats]
    operands = [
        Operand(
            "f64", 2, f, *(tuple("i32" if p in k.format.buffers else None for k in f.levels) for p in ("pos", "crd"))
        )
        for f in formats
    ]
    order = [level.expression for level in formats[0].levels]
    inputs = tuple(
        Input(n, x, levels_in_order(f, (0, 1), order) or ()) for n, f, x in zip(names, formats, operands, strict=True)
    )
    expr = typed(parse_expression(case.text), dict.fromkeys(names, "f64"))
    regions = Regions(expr, {n: const(0.0, "f64") for n in names})
    kernel = verify(simplify(lower_merge("merge", Merge(inputs, regions, operands[0], drivers=case.drivers))))
    text = show(kernel)
    assert parse_loops(text) == kernel
    return text.rstrip("\n") + "\n"


@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, update_golden: bool) -> None:
    path = FOLDER / f"{name}.txt"
    text = kernel_text(CASES[name])
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no golden kernel {name}: run pytest --update-golden"
    assert text == path.read_text(encoding="utf-8")


def test_no_file_is_left_over() -> None:
    assert {p.stem for p in FOLDER.glob("*.txt")} == set(CASES)
