"""torch.autograd's functions with Tensors among outputs, inputs and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import openwork as ow
from openwork.torch import gradcheck, gradgradcheck, optim

DENSE = torch.tensor([[1.0, 0, 2, 0], [0, 0, 0, 1], [0, 3, 0, 0]], dtype=torch.float64)
FORMATS = ("csr", "csc", "coo", "dcsr", "bsr(1, 2)", "dense")


def leaf(format: str = "csr") -> ow.Tensor:
    return ow.asarray(DENSE.clone(), format=format).requires_grad_()


def test_grad_gives_tensors_in_the_structure_of_the_inputs() -> None:
    for format in FORMATS:
        A, x = leaf(format), torch.ones(4, dtype=torch.float64, requires_grad=True)
        of_A, of_x = torch.autograd.grad((A * A @ x).sum(), [A, x])
        assert type(of_A) is ow.Tensor
        assert of_A.format == A.format
        assert torch.equal(of_A.to_dense(), 2 * DENSE)
        assert torch.equal(of_x, (DENSE**2).sum(0))
        g = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
        for handed in (g, g.to_sparse(), g.to_sparse_csr(), ow.asarray(g, format="csc"), [g]):
            (found,) = torch.autograd.grad(leaf_power(A), A, handed)
            assert torch.equal(found.to_dense(), 2 * g * DENSE), format


def leaf_power(A: Any) -> Any:
    return A * A


def test_second_gradients_unused_inputs_and_refusals() -> None:
    A = leaf()
    (first,) = torch.autograd.grad((A * A * A).sum(), A, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), A)
    assert torch.equal(second.to_dense(), 6 * DENSE)
    unused = leaf("csc")
    assert torch.autograd.grad((A * A).sum(), [A, unused], allow_unused=True)[1] is None
    zero = torch.autograd.grad((A * A).sum(), [A, unused], materialize_grads=True)[1]
    assert zero.nse == 4
    assert not zero.to_dense().any()
    with pytest.raises(ow.ShapeError, match="needs a gradient"):
        torch.autograd.grad(A * A, A)
    with pytest.raises(ow.ShapeError, match="expected"):
        torch.autograd.grad(A * A, A, torch.ones(4, 3, dtype=torch.float64))
    with pytest.raises(ow.UnsupportedError, match="gradients"):
        torch.autograd.grad([A * A, A * 2], A, [torch.ones(3, 4, dtype=torch.float64)])
    with pytest.raises(ow.UnsupportedError, match="requires"):
        torch.autograd.grad(A.detach() * 2, A, torch.ones(3, 4))
    with pytest.raises(ow.UnsupportedError, match="is_grads_batched"):
        torch.autograd.grad(A * A, A, torch.ones(2, 3, 4), is_grads_batched=True)


def test_backward_of_several_tensors_and_of_chosen_inputs() -> None:
    A, B = leaf(), leaf("coo")
    torch.autograd.backward([(A * A).sum(), B * B], [None, torch.ones(3, 4, dtype=torch.float64)])
    assert torch.equal(A.grad.to_dense(), 2 * DENSE)
    assert torch.equal(B.grad.to_dense(), 2 * DENSE)
    torch.autograd.backward((A * A).sum() + (B * B).sum(), inputs=[A])
    assert torch.equal(A.grad.to_dense(), 4 * DENSE)
    assert torch.equal(B.grad.to_dense(), 2 * DENSE)
    torch.Tensor.backward(A * A, gradient=DENSE)  # by torch's own class, as wrappers of it do
    assert torch.equal(A.grad.to_dense(), 4 * DENSE + 2 * DENSE**2)


def test_gradients_at_every_element() -> None:
    D = DENSE.clone().requires_grad_()
    S = ow.asarray(D, format="csr", grad="dense")
    (found,) = torch.autograd.grad(ow.log1p(S).sum(), S)
    assert found.format.is_dense
    assert torch.allclose(found.to_dense(), 1 / (1 + DENSE))
    torch.autograd.backward(ow.log1p(S), torch.ones(3, 4, dtype=torch.float64))
    assert torch.allclose(D.grad, 1 / (1 + DENSE))


def test_checks_of_derivatives() -> None:
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    for format in ("csr", "bsr(1, 2)", "coo"):
        for function in (lambda a, b: a * a * a @ b, lambda a, b: a * a * b, lambda a, b: (a * a @ b).sum()):
            assert gradcheck(function, (leaf(format), x)), format
            assert gradgradcheck(function, (leaf(format), x)), format
    assert gradcheck(lambda a: ow.exp(a), leaf(), check_forward_ad=True)
    wrong = gradcheck(lambda a: a * a.detach(), (leaf(),), raise_exception=False)
    assert not wrong


def test_checks_of_masked_tensors_and_by_place() -> None:
    """`gradcheck` and `gradgradcheck`, of Tensors, masked tensors and torch's own."""
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda a, b: a @ b, (leaf(), x))
    assert gradgradcheck(lambda a: a * a * a, leaf("coo"))
    assert gradcheck(lambda b: b * b, (x,))
    m = ow.masked_tensor(DENSE, DENSE > 0).asformat("csr").requires_grad_()
    assert gradcheck(lambda m: ow.exp(m).sum(1), (m,))
    assert not gradcheck(lambda m: m * m.detach(), (m,), raise_exception=False)


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning")
def test_training_by_hand_checkpoints_hooks_and_anomalies() -> None:
    A = leaf()
    seen: list[Any] = []
    A.register_hook(seen.append)
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        checkpoint(lambda a, b: (a * a @ b).sum(), A, x, use_reentrant=False).backward()
    assert len(seen) == 1
    A.grad = None
    (A * A).sum().backward()
    with torch.no_grad():
        A.sub_(0.1 * A.grad)
    assert torch.allclose(A.detach().to_dense(), 0.8 * DENSE)
    with pytest.raises(ow.ShapeError):
        A.grad = torch.ones(4, 3)


def test_optimizers_step_values() -> None:
    for make in (optim.SGD, optim.Adagrad, optim.SparseAdam):
        A, B = leaf(), leaf()
        first, second = make([A], lr=0.1), make([{"params": [B.values]}], lr=0.1)
        for t, optimizer in ((A, first), (B, second)):
            (t * t).sum().backward()
            optimizer.step()
        assert torch.equal(A.detach().to_dense(), B.detach().to_dense())
        assert not torch.equal(A.detach().to_dense(), DENSE)
    with pytest.raises(TypeError, match="openwork"):
        torch.optim.SGD([leaf()], lr=0.1)
    torch.optim.SGD([leaf().values], lr=0.1)
