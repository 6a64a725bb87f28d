"""docs/torch-names.md answers every public name of torch's tensors, as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import openwork as ow

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))


def test_the_page_is_what_tensors_answer() -> None:
    import torch_names

    text = torch_names.PAGE.read_text()
    if f"torch {torch.__version__.partition('+')[0]}:" not in text:
        pytest.skip("the page is of another torch")
    assert text == torch_names.page(), "python tools/torch_names.py"


def test_attributes_by_the_values() -> None:
    theirs = torch.eye(3)
    t = ow.asarray(theirs, format="csr")
    for name in ("is_inference", "is_signed", "is_conj", "is_neg"):
        assert getattr(t, name)() == getattr(theirs, name)()
    assert (t.itemsize, t.retains_grad) == (theirs.itemsize, False)
