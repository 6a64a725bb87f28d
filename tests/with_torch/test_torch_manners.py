"""Manners of torch's own: what its constructors refuse and make of lists, its in-place functions, coalescing, devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.errors import FormatError, InvariantError, UnsupportedError

D = torch.tensor([[0.0, 0.25, 0.0], [-0.5, 0.0, 0.75], [0.0, 0.0, 1.0]])
POS, CRD = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
COMPRESSED = [ow.sparse_csr_tensor, ow.sparse_csc_tensor]


@pytest.mark.parametrize("make", [
    lambda v, **o: ow.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), v, (2, 2), **o),
    lambda v, **o: ow.sparse_coo_tensor([POS[:2], CRD], v, (2, 2), **o),
    lambda v, **o: ow.sparse_csr_tensor(POS, CRD, v, (2, 2), **o),
    lambda v, **o: ow.sparse_csc_tensor([0, 1, 2], CRD, v, (2, 2), **o),
    lambda v, **o: ow.sparse_bsr_tensor(POS, CRD, [[[x]] for x in v], (2, 2), **o),
    lambda v, **o: ow.sparse_compressed_tensor(POS, CRD, v, (2, 2), layout=torch.sparse_csr, **o),
])  # fmt: skip
def test_lists_of_values_are_torchs_where_indices_are(make: Callable[..., Any]) -> None:
    for values, dtype in (([1.0, 2.0], torch.float32), ([1, 2], torch.int64), ([1.0 + 1j, 2.0], torch.complex64)):
        assert make(values).values.dtype == dtype
    t = make([1.0, 2.0], requires_grad=True)
    assert t.requires_grad
    (t @ torch.ones(2)).sum().backward()
    assert t.grad is not None


def test_lists_of_values_in_assemble_and_of_numpy() -> None:
    t = ow.assemble("csr", (2, 2), pos={1: POS}, crd={1: CRD}, values=[1.0, 2.0])
    assert t.values.dtype == torch.float32
    assert isinstance(ow.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2)).values, np.ndarray)
    assert isinstance(ow.sparse_csr_tensor(POS.numpy(), [1, 0], [1.0, 2.0], (2, 2)).values, np.ndarray)


@pytest.mark.parametrize("make", COMPRESSED)
@pytest.mark.parametrize("library", [torch.from_numpy, np.asarray])
def test_index_arrays_of_two_types_or_with_strides_are_refused(make: Any, library: Any) -> None:
    """As torch's, by the numbers of its notes; lists and one type are taken."""
    pos, crd = (library(x.numpy()) for x in (POS, CRD))
    values = library(np.ones(2))
    narrow = library(CRD.numpy().astype(np.int32))
    with pytest.raises(InvariantError, match=r"(?s)^.*indices and .*indices have the same dtype.*\(invariant 1\.2\)$"):
        make(pos, narrow, values, (2, 2))
    assert make(pos, [1, 0], values, (2, 2)).nse == 2
    for number, given in (("3.5", (spread(pos), crd)), ("3.6", (pos, spread(crd)))):
        with pytest.raises(
            InvariantError, match=rf"(?s)^\w+ is contiguous along its last axis\n.*\(invariant {re.escape(number)}\)$"
        ):
            make(*given, values, (2, 2))
    assert make(spread(pos), narrow, values, (2, 2), check_invariants=False).nse == 2
    batched = make(pos[None], crd[None], values[None], (1, 2, 2))
    assert batched.shape == (1, 2, 2)


def spread(x: Any) -> Any:
    """The same elements, with others between."""
    return x[:, None].repeat(1, 2)[:, 0] if isinstance(x, torch.Tensor) else np.repeat(x[:, None], 2, 1)[:, 0]


IN_PLACE = ["relu_", "sin_", "neg_", "abs_", "square_", "tanh_", "sigmoid_", "round_", "nan_to_num_", "expm1_", "exp_"]


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", ["plain", "recorded", "dense gradients"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_functions_of_torch_in_place(name: str, kind: str) -> None:
    for format in ("csr", "coo", "bsr(2, 2)", "dense"):
        found = []
        for form in (format, None):
            a = D.clone().requires_grad_(kind != "plain")
            grad = "dense" if kind == "dense gradients" else None
            x = a.clone() if form is None else ow.asarray(a, format=form, grad=grad).clone()
            assert getattr(torch, name)(x) is x
            y = x.to_dense() if isinstance(x, ow.Tensor) else x
            if kind != "plain":
                (y * torch.arange(9.0).reshape(3, 3)).sum().backward()
            found.append((y.detach(), a.grad))
        torch.testing.assert_close(found[0][0], found[1][0])
        if kind == "dense gradients":
            torch.testing.assert_close(found[0][1], found[1][1])


def test_clamp_in_place_and_leaves() -> None:
    t = ow.asarray(D, format="csr")
    assert torch.clamp_(t, -0.25, 0.5) is t
    assert torch.equal(t.to_dense(), D.clamp(-0.25, 0.5))
    with pytest.raises(UnsupportedError, match="leaf that requires a gradient"):
        torch.relu_(ow.asarray(D, format="csr").requires_grad_())


def test_coalescing() -> None:
    loose = ow.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (2, 2))
    with pytest.raises(RuntimeError, match="not coalesced"):
        loose.indices()
    assert loose._indices().tolist() == [[0, 0], [1, 1]]
    assert loose.coalesce().indices().tolist() == [[0], [1]]
    with pytest.raises(InvariantError):
        loose._coalesced_(True)
    sorted_pairs = ow.sparse_coo_tensor(torch.tensor([[0, 1], [1, 1]]), torch.ones(2), (2, 2))
    assert sorted_pairs._coalesced_(True) is sorted_pairs
    assert sorted_pairs.is_coalesced()
    assert not sorted_pairs._coalesced_(False).is_coalesced()
    assert sorted_pairs.to_dense().tolist() == [[0, 1], [0, 1]]
    over_numpy = ow.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
    assert over_numpy.indices().tolist() == [[0, 0], [1, 1]]


def test_masked_tensors() -> None:
    mask = torch.tensor([True, False, True])
    m = ow.masked_tensor(torch.tensor([1 + 1j, 2, 3 - 1j]), mask)
    assert torch.conj(m).filled(0).tolist() == [1 - 1j, 0, 3 + 1j]
    assert torch.conj(ow.masked_tensor(torch.arange(3.0), mask)).filled(0).tolist() == [0, 0, 2]
    ordered = torch.msort(ow.masked_tensor(torch.tensor([3.0, 1.0, 2.0]), mask))
    assert ordered.get_mask().tolist() == [True, True, False]
    assert ordered.filled(0).tolist() == [2, 3, 0]


@pytest.mark.skipif(find_spec("pyopencl") is not None, reason="pyopencl is installed")
@pytest.mark.parametrize("library", [torch.eye, np.eye])
def test_opencl_without_its_package(library: Any) -> None:
    t = ow.asarray(library(3), format="csr")
    for move in (t.to_device, t.to):
        with pytest.raises(UnsupportedError, match=r"^device 'opencl': pyopencl is not installed\n  help: pip install"):
            move("opencl")


@pytest.mark.parametrize("library", [torch.eye, np.eye])
@pytest.mark.parametrize("device", ["ideep", "vulkan", "mps", "xpu", "xla", "foo", "privateuseone"])
def test_devices_that_are_not_there(device: str, library: Any) -> None:
    """Without what torch says of itself."""
    t = ow.asarray(library(3), format="csr")
    for move in (t.to_device, t.to):
        with pytest.raises(UnsupportedError, match=f"device '{device}' is not available") as caught:
            move(device)
        for word in ("INTERNAL ASSERT", "aten::", "report a bug", ".cpp", ".h"):
            assert word not in str(caught.value)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("COO: map = (i, j) -> (i : compressed(nonunique), j : singleton)", ow.format("coo", 2)),
        ("CSR: (i, j) -> (i : dense, j : compressed)", ow.format("csr", 2)),
        ("format = (i, j) -> (i : dense, j : compressed)", ow.format("csr", 2)),
        ("map = (i, j) -> (i : dense, j : compressed)", ow.format("csr", 2)),
        ("coo3", ow.format("coo", 3)),
        ("CSF3", ow.format("csf", 3)),
        ("coo3(nonunique, unordered)", ow.format("coo(nonunique, unordered)", 3)),
        ("dense2", ow.format("dense", 2)),
        ("bitmap4", ow.format("bitmap", 4)),
    ],
)
def test_labels_and_ranks_in_names_of_formats(text: str, want: Any) -> None:
    assert ow.format(text) == want
    assert ow.format(text, want.ndim) == want
    assert ow.asarray(np.ones((2,) * want.ndim), format=text).format == want
    assert ow.format(str(want)) == want


def test_names_of_another_rank_are_refused() -> None:
    assert ow.format("coo3", batch=1) == ow.format("coo", 4, batch=1)
    with pytest.raises(FormatError, match="another number of dimensions than ndim"):
        ow.format("coo3", 2)
    with pytest.raises(FormatError, match="another number of dimensions than ndim"):
        ow.asarray(np.eye(3), format="csf3")
    for text in ("csr3", "coo0", "csf100", "bsr2"):
        with pytest.raises(FormatError, match="neither a named format"):
            ow.format(text)
    with pytest.raises(FormatError, match="expected: ->"):
        ow.format("CSR: map = (i, j) : (i : dense, j : compressed) -> ")
