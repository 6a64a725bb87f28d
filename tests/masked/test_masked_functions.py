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


@pytest.mark.thin(3)
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
    assert (got.dtype, ow.masked.logaddexp(a, b, dtype=torch.float64).dtype) == (torch.float32, torch.float64)
    held = ow.masked_tensor(a, part)
    assert held.expand(2, -1).filled(0).to_dense().tolist() == [[-100.0, 0.0, -300.0]] * 2
    for reduction in ("mean", "sum", "none"):
        loss = ow.masked.mse_loss(held, b, reduction=reduction)
        want = torch.nn.functional.mse_loss(a[part], b[part], reduction=reduction)
        assert torch.equal(loss.filled(0).to_dense()[part] if reduction == "none" else loss.filled(0).to_dense(), want)
    with pytest.raises(ow.UnsupportedError, match="reduction 'median'"):
        ow.masked.mse_loss(held, b, reduction="median")


def test_gradients_reach_what_takes_part() -> None:
    dense, stored = data()
    leaf = dense.clone().requires_grad_()
    ow.masked.softmax(leaf, 1, mask=stored).filled(0).to_dense()[:, 0].sum().backward()
    other = dense.clone().requires_grad_()
    torch.masked.softmax(other, 1, mask=stored)[:, 0].sum().backward()
    assert torch.allclose(leaf.grad, other.grad.nan_to_num())


@pytest.mark.ci
@pytest.mark.parametrize(
    "spec", ["bsr(2, 1)", *(pytest.param(f, marks=pytest.mark.slow) for f in ("dense", "csr", "dia"))]
)
def test_functions_by_the_names_of_torch_masked(spec: str) -> None:
    """`ow.masked.sum(A, 1, mask=M)` is torch.masked's of a dense one, of blocks that store more than the mask too."""
    dense, stored = data()
    mask = stored & (dense < 0.8)
    a = ow.asarray(dense, format=spec)
    for name in NAMES:
        function = getattr(torch.masked, name)
        arguments = (2.0, 1) if name in ("norm", "normalize") else (1,)
        want = function(dense, *arguments, mask=mask)
        assert type(want) is torch.Tensor
        kept = mask if want.shape == mask.shape else mask.any(1)
        for x, part in ((a, mask), (a, ow.asarray(mask, format="csr")), (dense, ow.asarray(mask, format="coo"))):
            agree(getattr(ow.masked, name)(x, *arguments, mask=part), want, kept)


@pytest.mark.parametrize("layout", ["dense", "csr", pytest.param("coo", marks=pytest.mark.slow)])
@pytest.mark.parametrize("correction", [1, 2])
def test_a_variance_of_few_elements_is_not_missing(layout: str, correction: int) -> None:
    """Of no more elements than the correction it is NaN or infinite, as torch's; missing where there are none."""
    dense = torch.tensor([[1.0, 2.0, 5.0], [3.0, 4.0, 7.0], [1.0, 1.0, 1.0]])
    mask = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])
    for array, bits in ((dense, mask), (dense.numpy(), mask.numpy())):
        m = ow.masked_tensor(array, bits).asformat("bitmap" if layout == "dense" else layout)
        for dim in (0, 1):
            want = torch.masked.std(dense, dim, correction=correction, mask=mask)
            for got in (ow.masked.std(m, dim, correction=correction), ow.std(m, axis=dim, correction=correction)):
                assert torch.as_tensor(np.asarray(got.get_mask().to_dense())).equal(mask.any(dim))
                values = torch.as_tensor(got.to_numpy(0))[mask.any(dim)].float()
                torch.testing.assert_close(values, want[mask.any(dim)], equal_nan=True)


OF_TWO_LIBRARIES = {
    "add": lambda m, w: m + w,
    "power": lambda m, w: m**w,
    "where": lambda m, w: ow.where(m > 1, m, w),
    "matmul": lambda m, w: m @ w,
    "rmatmul": lambda m, w: w @ m,
    "einsum": lambda m, w: ow.masked.einsum("ij,ij->i", m, w),
    "concat": lambda m, w: ow.masked.concat([m, ow.as_masked_tensor(w, w > 0)]),
    "union": lambda m, w: m.add(ow.as_masked_tensor(w, w > 0), how="union"),
    "evaluate": lambda m, w: ow.evaluate("y[i,j] = A[i,j] * x[i,j]", A=m, x=w),
    "lazy": lambda m, w: ow.compute(ow.lazy(m) * w + 1),
    "ufunc": lambda m, w: np.add(m, w),
    "sparse": lambda m, w: m + ow.asarray(w, format="csr"),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("layout", ["bitmap", "csr"])
def test_a_recorded_torch_operand_makes_the_result_recorded(layout: str) -> None:
    for name, function in OF_TWO_LIBRARIES.items():
        array, bits = np.eye(3) + 1, np.tri(3) > 0
        w, other = (torch.full((3, 3), 2.0, dtype=torch.float64, requires_grad=True) for _ in range(2))
        got = function(ow.masked_tensor(array, bits).asformat(layout), w)
        want = function(ow.masked_tensor(torch.as_tensor(array), torch.as_tensor(bits)).asformat(layout), other)
        assert (got.requires_grad, want.requires_grad) == (True, True), name
        assert str(got) == str(want), name
        for x in (got, want):
            x.filled(0).sum().backward()
        torch.testing.assert_close(w.grad, other.grad)
