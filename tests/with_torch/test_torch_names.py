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


D = torch.tensor([[1.0, 0.0, 2.5], [0.0, 3.0, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize("format", ["csr", "coo", "bsr(2, 2)", "dense"])
def test_where_of_a_tensor_is_torchs_method(format: str) -> None:
    """`t.where(condition, other)` is `torch.where(condition, t, other)`."""
    t, condition = ow.asarray(D, format=format), D > 1
    for other in (-1, 0.5, 2 * D):
        for of in (condition, ow.asarray(condition, format=format)):
            got = t.where(of, other)
            assert torch.equal(got.to_dense() if isinstance(got, ow.Tensor) else got, D.where(condition, other))
    assert torch.equal(t.where(condition=condition, other=0).to_dense(), D.where(condition, 0))
    got = D.where(ow.asarray(condition, format=format), 2 * t)
    assert torch.equal(got.to_dense() if isinstance(got, ow.Tensor) else got, D.where(condition, 2 * D))


def test_functions_that_are_methods() -> None:
    t = ow.asarray(D, format="csr").requires_grad_()
    out = torch.logaddexp(t, 2 * t)
    torch.testing.assert_close(torch.as_tensor(out.to_dense()), torch.logaddexp(D, 2 * D))
    out.sum().backward()
    assert t.grad is not None
    s = t.detach()
    empty = torch.empty_like(s, dtype=torch.float32)
    assert (empty.nse, empty.shape, empty.dtype) == (0, s.shape, torch.float32)
    assert torch.equal(torch.nextafter(s, 2 * s).to_dense(), torch.nextafter(D, 2 * D))


def test_masked_methods_by_torchs_spelling() -> None:
    mask = torch.tensor([[True, False, True], [True, True, False]])
    for name, args in (
        ("unsqueeze_", (0,)),
        ("unsqueeze_", (-1,)),
        ("t_", ()),
        ("transpose_", (0, 1)),
        ("squeeze_", ()),
    ):
        m = ow.masked_tensor(D.clone(), mask)
        assert getattr(m, name)(*args) is m
        want = getattr(mask.clone(), name)(*args)
        assert torch.equal(m.get_mask().to_dense(), want)
    m = ow.masked_tensor(D, mask)
    assert m.quantile(0.5).item() == m.nanquantile(0.5).item() == D[mask].quantile(0.5)
    assert m.quantile(0.5, 1).shape == (2,)


def test_optimizers_of_torch_say_what_to_hand_over() -> None:
    for leaf in (ow.asarray(D, format="csr"), ow.masked_tensor(D, D > 0)):
        with pytest.raises(TypeError, match=r"whose leaf is \w\.values"):
            torch.optim.SGD([leaf], lr=0.1)
