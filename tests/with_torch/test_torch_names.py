"""docs/torch-names.md answers every public name of torch's tensors, as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch_name_samples import OPTIONS, OTHERWISE, X, difference, samples

import openwork as ow
from openwork.torch.functions.registry import FUNCTIONS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))


def test_the_page_is_what_tensors_answer() -> None:
    import torch_names

    text = torch_names.PAGE.read_text()
    if f"torch {torch.__version__.partition('+')[0]}:" not in text:
        pytest.skip("the page is of another torch")
    assert text == torch_names.page(), "python tools/torch_names.py"


PARTS = 4
"""In how many parts the names are tried."""


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:index_reduce.. is in beta:UserWarning")
@pytest.mark.parametrize(
    ("format", "part"),
    [
        ("csr", 0),
        *(pytest.param(f, p, marks=pytest.mark.slow) for f in ("csr", "coo", "dcsr", "dense") for p in range(PARTS)),
    ],
)
def test_every_name_that_is_there_has_torchs_answer(format: str, part: int) -> None:
    import torch_names

    there = [name for name, answer in torch_names.tensor_names().items() if answer.startswith("there")]
    wrong = {}
    for name in there[part::PARTS]:
        if name in OTHERWISE:
            assert OTHERWISE[name](ow.asarray(X.clone(), format="csr")), name
            continue
        found = list(samples(name))
        assert found, f"{name} has no sample call in torch_name_samples.py"
        for x, arguments, want in found[: 1 if part == 0 else None]:
            t = ow.asarray(x.clone(), format=format if x.ndim == 2 else "coo")
            try:
                member = getattr(t, name)
                got = member(*arguments, **OPTIONS.get(name.removesuffix("_"), {})) if callable(member) else member
            except Exception as error:
                wrong[name, str(arguments)] = repr(error)
            else:
                wrong[name, str(arguments)] = difference(got, want)
    assert not {case: text for case, text in wrong.items() if text}


def test_every_method_that_torch_has_is_torchs() -> None:
    """None is NumPy's or the array API's, which give other numbers by the same name: `nanmedian` was."""
    from openwork.tensor.methods import Methods
    from openwork.torch.functions.methods import method

    t = ow.asarray(torch.eye(3), format="csr")
    names = [n for n in vars(Methods) if hasattr(torch.Tensor, n) and not n.startswith("_")]
    assert len(names) > 80
    assert [n for n in names if method(t, n) is None] == []


def test_medians_among_nan() -> None:
    d = torch.tensor([[4.0, torch.nan, 9, 0], [0, 25, 2, 1], [torch.nan, torch.nan, 0, torch.nan]])
    for format in ("csr", "coo", "dense"):
        for function in (torch.median, torch.nanmedian):
            t, leaf, other = ow.asarray(d, format=format), d.clone().requires_grad_(), d.clone().requires_grad_()
            for arguments in ((1,), (0, True)):
                got, want = function(t, *arguments), function(d, *arguments)
                assert type(got) is type(want)
                torch.testing.assert_close(got.values, want.values, equal_nan=True)
                at = got.indices if len(arguments) > 1 else got.indices.unsqueeze(1)
                torch.testing.assert_close(
                    d.gather(arguments[0], at).reshape(-1), want.values.reshape(-1), equal_nan=True
                )
            function(ow.asarray(leaf, format=format, grad="dense")).backward()
            function(other).backward()
            torch.testing.assert_close(leaf.grad, other.grad)
    m = ow.masked_tensor(d, torch.tensor([[True] * 4, [True, False, True, True], [True, True, False, True]]))
    assert m.nanmedian(1).values.compressed().tolist() == [4, 1]


def test_attributes_by_the_values() -> None:
    theirs = torch.eye(3)
    t = ow.asarray(theirs, format="csr")
    for name in ("is_inference", "is_signed", "is_conj", "is_neg"):
        assert getattr(t, name)() == getattr(theirs, name)()
    assert (t.itemsize, t.retains_grad) == (theirs.itemsize, False)


D = torch.tensor([[1.0, 0.0, 2.5], [0.0, 3.0, 0.0]], dtype=torch.float64)


@pytest.mark.thin(4)
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


def test_functions_that_torch_has_no_method_of_are_none() -> None:
    t = ow.asarray(torch.eye(3), format="csr")
    for name in FUNCTIONS:
        if not hasattr(torch.Tensor, name) and name not in dir(ow.Tensor):
            assert not hasattr(t, name), name
