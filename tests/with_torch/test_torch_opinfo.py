"""torch's own sample inputs of every operation on every layout: each cell is green, or listed with a reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing._internal needs it")

from torch_listed import LISTED, OUTSIDE, outside
from torch_opinfo import LAYOUTS, Verdict, cells, variant

import openwork.torch  # noqa: F401

PARTS = 40
"""In how many parts all cells are tried."""

SAMPLES = 3
"""Samples of each cell."""


@cache
def operations() -> dict[str, Any]:
    """Operations by name. torch's list takes seconds to import: only who runs these tests does."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {variant(op): op for op in op_db if torch.float64 in op.dtypes and not outside(variant(op))}


def findings(found: dict[str, Verdict]) -> dict[str, dict[str, str]]:
    """What is not green, by stage and layout."""
    stages = ("forward", "backward", "double")
    return {s: {k: getattr(v, s) for k, v in found.items() if getattr(v, s)} for s in stages}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_cell(part: int) -> None:
    for name in list(operations())[part::PARTS]:
        found = cells(operations()[name], torch.float64, list(LAYOUTS), SAMPLES)
        listed = LISTED.get(name)
        for stage, wrong in findings(found).items():
            assert all(w.startswith("refused") for w in wrong.values()), (name, wrong)
            expected = set() if listed is None else listed.layouts(stage, set(found))
            assert set(wrong) == expected, (name, stage, wrong)


TOLERANCES = {
    torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.complex64: 1e-2, torch.complex128: 1e-7,
    torch.int64: 1e-4, torch.int32: 1e-4, torch.uint8: 1e-4, torch.bool: 1e-4,
}  # fmt: skip
"""How far values may be away, of results that are not whole numbers."""

POLES = ("__rdiv__", "__rpow__", "pow", "addbmm")
"""Complex infinities and NaN at poles, and half precision rounded once more: other than torch's on dense tensors."""

WIDTHS = ("einsum", "all", "any")
"""Of small whole numbers: torch's einsum of one operand is int64, its all and any of uint8 are uint8; here as NumPy."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_values_in_every_dtype(dtype: torch.dtype) -> None:
    wrong = {}
    for name, op in operations().items():
        inexact = dtype.is_complex or dtype.is_floating_point
        if dtype in op.dtypes and not (name in POLES and inexact) and not (name in WIDTHS and not inexact):
            found = cells(op, dtype, ["coo", "csr"], 2, record=False, tolerance=TOLERANCES[dtype])
            wrong |= {
                (name, k): v.forward for k, v in found.items() if v.forward and not v.forward.startswith("refused")
            }
    assert not wrong


@pytest.mark.slow
def test_some_cells() -> None:
    """Every 64th operation on one layout, another one for each."""
    kinds = list(LAYOUTS)
    for k, name in list(enumerate(operations()))[5::64]:
        found = cells(operations()[name], torch.float64, [kinds[k % len(kinds)]], 1)
        listed = LISTED.get(name)
        for stage, wrong in findings(found).items():
            assert set(wrong) <= (set() if listed is None else listed.layouts(stage, set(found))), (name, wrong)


@pytest.mark.ci
def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: an operation that is wrong, one whose gradient is, and one that crashes."""
    from openwork.torch.functions import call as functions

    op = operations()["sin"]

    def verdict(broken: Any) -> Verdict:
        monkeypatch.setitem(functions.FUNCTIONS, "sin", broken)
        return cells(op, torch.float64, ["csr"], 1)["csr"]

    assert verdict(lambda t: t).forward.startswith("values differ")
    assert "torch.float32" in verdict(lambda t: t.float()).forward
    lost = verdict(lambda t: torch.sin(t.detach().to_dense()))
    assert (lost.forward, lost.backward) == ("", "wrong: the result is not recorded")
    assert verdict(lambda t: t.nothing).forward.startswith("crash: AttributeError")


def test_the_page_says_what_is_not_in_the_matrix() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "torch-functions.md").read_text()
    for reason in OUTSIDE:
        assert f"| {reason} | " in page
