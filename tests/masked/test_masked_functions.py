"""The functions of torch.masked by our names, against torch's own on dense tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

torch = pytest.importorskip("torch")

NAMES = (
    "sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "median", "std", "var", "norm", "logsumexp", "cumsum",
    "cumprod", "softmax", "log_softmax", "softmin", "normalize",
)  # fmt: skip
KEEP = NAMES[:12]


def data() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    dense = torch.rand(5, 4, dtype=torch.float64, generator=generator)
    stored = torch.rand(5, 4, generator=generator) < 0.7
    stored[:, 0] = stored[0] = True
    return dense * stored, stored


def agree(got: Any, want: Any, kept: Any) -> None:
    """Equal where something took part."""
    assert isinstance(got, ow.MaskedTensor)
    bits = got.get_mask().to_dense()
    bits = torch.as_tensor(np.asarray(bits))
    assert bool((bits | ~torch.isfinite(want) | ~kept).all())
    values = torch.as_tensor(np.asarray(got.to_numpy(0)))
    assert torch.allclose(values[bits & kept].double(), want[bits & kept].double())


@pytest.mark.parametrize("spec", ["dense", "csr", "numpy"])
def test_numbers_are_torchs(spec: str) -> None:
    dense, stored = data()
    mask = stored & (dense < 0.8)
    for name in NAMES:
        extra = (2.0,) if name in ("norm", "normalize") else ()
        options = {"dim": 1, "keepdim": True} if name in KEEP else {"dim": 1}
        want = getattr(torch.masked, name)(dense, *extra, mask=mask, **options)
        x: Any = dense.numpy() if spec == "numpy" else ow.asarray(dense, format=spec)
        kept = mask if want.shape == mask.shape else mask.any(1, keepdim=True)
        for given in (mask, ow.asarray(mask, format="csr")):
            agree(getattr(ow.masked, name)(x, *extra, mask=given, **options), want, kept)
        held = ow.masked_tensor(dense, stored)
        agree(getattr(ow.masked, name)(held, *extra, mask=mask, **options), want, kept)
        if spec == "csr":
            want = getattr(torch.masked, name)(dense, *extra, mask=stored, **options)
            kept = stored if want.shape == stored.shape else stored.any(1, keepdim=True)
            agree(getattr(ow.masked, name)(x, *extra, **options), want, kept)


def test_masks_broadcast_and_what_no_element_takes_part_in_is_missing() -> None:
    dense, _ = data()
    row = torch.tensor([True, False, True, False])
    for x in (ow.asarray(dense, format="csr"), dense, ow.masked_tensor(dense, dense > -1)):
        agree(ow.masked.sum(x, 0, mask=row), torch.masked.sum(dense, 0, mask=row), row)
        assert ow.masked.sum(x, 0, mask=row).nse == 2
        with pytest.raises(ow.ShapeError, match="expected: it broadcasts to"):
            ow.masked.mean(x, mask=torch.ones(3, dtype=torch.bool))
    a, b = torch.tensor([-100.0, -200, -300]), torch.tensor([-1.0, -2, -3])
    part = torch.tensor([True, False, True])
    got = ow.masked.logaddexp(a, b, input_mask=part, other_mask=part)
    agree(got, torch.masked.logaddexp(a, b, input_mask=part, other_mask=part), part)
    assert ow.masked.sum(a, dtype=torch.float64).dtype == torch.float64


def test_gradients_reach_what_takes_part() -> None:
    dense, stored = data()
    leaf = dense.clone().requires_grad_()
    ow.masked.softmax(leaf, 1, mask=stored).filled(0).to_dense()[:, 0].sum().backward()
    other = dense.clone().requires_grad_()
    torch.masked.softmax(other, 1, mask=stored)[:, 0].sum().backward()
    assert torch.allclose(leaf.grad, other.grad.nan_to_num())
