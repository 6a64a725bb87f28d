"""One meaning for every spelling: methods against torch's functions, on Tensors of all kinds of gradient and buffer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch_opinfo import dense, flat, same

import openwork as ow
from openwork.torch.functions.call import FUNCTIONS
from openwork.torch.functions.elementwise import BINARY, ELEMENTWISE

X = torch.tensor([[0.0, 0.5, 0, -0.25], [0.75, 0, 0.125, 0], [0.3, 0, 0, 0.9]], dtype=torch.float64)
Y = torch.tensor([[0.5, 0.0, 0, 0.5], [0.25, 0.5, 0, 0], [0, 0, 0.5, 0.7]], dtype=torch.float64)
NAMES = sorted(
    n
    for n in {*FUNCTIONS, *ELEMENTWISE, *BINARY}
    if hasattr(torch.Tensor, n) and hasattr(torch, n) and "_" not in (n[0], n[-1])
)
"""What is a function of torch and a method of its tensors."""
PLAIN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((0,), {}), ((1,), {}), ((-1,), {}), ((0, 1), {}), ((1, True), {}), ((0, True), {}), ((), {"dim": 1}),
    ((), {"dim": 0, "keepdim": True}), ((2, 1), {}), (((1, 0),), {}), ((0.5,), {}), ((0.1, 0.6), {}), ((2, 0, 1), {}),
    (((0, 1),), {}), ((False,), {}), ((), {"unbiased": False}), ((0, 0, 2), {}), (((2, 6),), {}), ((1, 0), {}),
]  # fmt: skip


WITH: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((Y,), {}), ((Y, Y), {}), ((Y.T,), {})]


def refused(function: Any, *args: Any, **options: Any) -> Any:
    """The result, or the class of error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **options)
    except Exception as error:
        return type(error)


def attribute(t: Any, name: str, *args: Any, **options: Any) -> Any:
    return getattr(t, name)(*args, **options)


def calls(name: str) -> Any:
    """Argument lists that torch takes on dense tensors."""
    yield from PLAIN
    yield from WITH


def given(args: tuple[Any, ...], format: str, **how: Any) -> tuple[Any, ...]:
    return tuple(ow.asarray(x.contiguous(), format=format, **how) if isinstance(x, torch.Tensor) else x for x in args)


@pytest.mark.ci
@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_methods_are_torchs_functions(step: int) -> None:
    """`t.f(args)` is `torch.f(t, args)`, and both are torch's of the dense tensor, for every name and argument list."""
    t = ow.asarray(X, format="csr")
    seen, wrong = set(), []
    for name in NAMES[1::step]:
        function = getattr(torch, name)
        for args, options in calls(name):
            want = refused(attribute, X.clone(), name, *args, **options)
            if isinstance(want, type):
                continue
            mine = given(args, "csr")
            method = refused(attribute, t.clone(), name, *mine, **options)
            called = refused(function, t.clone(), *mine, **options)
            if called is TypeError:  # several integers, which torch's methods take and its functions do not
                called = method
            if isinstance(method, type) and isinstance(called, type):
                continue
            seen.add(name)
            if isinstance(method, type) or isinstance(called, type):
                wrong.append((name, args, options, method, called))
            elif found := same(method, called, 1e-12):
                wrong.append((name, args, options, found))
            elif name not in ("softmax", "log_softmax", "dropout") and (found := same(called, want, 1e-9, False)):
                wrong.append((name, args, options, f"torch: {found}"))
            elif hasattr(want, "_fields") and name in ("max", "min") and not hasattr(method, "_fields"):
                wrong.append((name, args, "no fields"))
    assert wrong == []
    assert len(seen) > 200 // step, len(seen)


def test_where_the_array_apis_is_meant() -> None:
    t = ow.asarray(X, format="csr")
    n = X.numpy()
    for got, want in (
        (t.std(axis=1), n.std(1)), (t.var(axis=0), n.var(0)), (t.max(axis=1), n.max(1)), (t.min(axis=0), n.min(0)),
        (t.var(axis=None), n.var()), (t.max(axis=1, keepdims=True), n.max(1, keepdims=True)), (ow.std(t), n.std()),
        (ow.max(t, axis=1), n.max(1)), (np.var(t, 1), n.var(1)), (np.max(t, 0), n.max(0)), (np.std(t), n.std()),
    ):  # fmt: skip
        np.testing.assert_allclose(got.to_numpy(), want)
    over = ow.asarray(n, format="csr")
    for got, want in ((over.std(1), n.std(1)), (over.var(), n.var()), (over.max(1), n.max(1)), (over.min(), n.min())):
        np.testing.assert_allclose(got.to_numpy(), want)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("kind", ["tensor", "masked", "lazy"])
def test_two_integers_are_exchanged(kind: str, library: str) -> None:
    x = np.arange(24.0).reshape(2, 3, 4) % 5
    t: Any = ow.asarray(torch.from_numpy(x) if library == "torch" else x, format="coo")
    made = {"tensor": t, "masked": ow.masked_tensor(t), "lazy": ow.lazy(t) * 1}[kind]

    def plain(y: Any) -> Any:
        return y.to_numpy(0) if kind == "masked" else ow.compute(y).to_numpy() if kind == "lazy" else y.to_numpy()

    assert np.array_equal(plain(made.transpose(-2, -1)), x.swapaxes(1, 2))
    assert np.array_equal(plain(made.transpose(0, 2)), x.swapaxes(0, 2))
    assert np.array_equal(plain(made.transpose((1, 2, 0))), x.transpose(1, 2, 0))
    assert np.array_equal(plain(made.transpose(1, 2, 0)), x.transpose(1, 2, 0))
    assert np.array_equal(plain(made.transpose()), x.T)
    two = made[0] if kind != "lazy" else ow.lazy(t[0]) * 1
    for axes in ((0, 1), (1, 0), (-2, -1), (-1, 0)):
        assert np.array_equal(plain(two.transpose(*axes)), x[0].T), axes
    assert np.array_equal(plain(two.transpose((0, 1))), x[0])
    assert np.array_equal(plain(two.transpose((1, 0))), x[0].T)
    if kind == "tensor":
        assert np.array_equal(np.transpose(two, (0, 1)).to_numpy(), x[0])
        with pytest.raises(IndexError, match="axis 5 is out of bounds"):
            two.transpose(0, 5)
    if kind == "masked":
        assert np.array_equal(plain(two.permute(0, 1)), x[0])
        assert np.array_equal(plain(two.permute((1, 0))), x[0].T)


def gradient(result: Any, leaf: torch.Tensor) -> torch.Tensor | None:
    parts = [dense(x) for x in flat(result)]
    parts = [x for x in parts if isinstance(x, torch.Tensor) and x.requires_grad]
    if not parts:
        return None
    total = sum((x * torch.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape)).sum() for x in parts)
    return torch.autograd.grad(total, leaf, allow_unused=True)[0]


@pytest.mark.ci
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_dense_gradients_survive_every_method(step: int) -> None:
    """A method of a tensor with `grad="dense"` gives the gradients that torch's function of it gives, at every element."""
    lost, seen = [], set()
    for name in NAMES[::step]:
        if name in ("dropout", "softmax", "log_softmax", "clone"):
            continue
        for args, options in (*PLAIN[:5], *WITH):
            if isinstance(refused(attribute, X.clone(), name, *args, **options), type):
                continue
            a, b = (X.clone().requires_grad_() for _ in range(2))
            s, u = (ow.asarray(x, format="csr", grad="dense") for x in (a, b))
            mine = given(args, "csr", grad="dense")
            method = refused(attribute, s, name, *mine, **options)
            if isinstance(method, type):
                continue
            called = refused(getattr(torch, name), u, *mine, **options)
            one, other = refused(gradient, method, a), refused(gradient, called, b)
            if called is TypeError or isinstance(one, type) or isinstance(other, type):
                continue
            if (one is None) != (other is None):
                lost.append((name, args, options))
            elif one is not None:
                seen.add(name)
                if not torch.allclose(one, other, equal_nan=True):
                    lost.append((name, args, options, one, other))
    assert lost == []
    assert len(seen) > 100 // step, len(seen)


class Renewed:
    """A torch tensor whose in-place methods take a new one: torch refuses to change what a gradient needs."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def __getattr__(self, name: str) -> Any:
        def change(*args: Any, **options: Any) -> Renewed:
            given = [a.x if isinstance(a, Renewed) else a for a in args]
            self.x = getattr(self.x, name.removesuffix("_"))(*given, **options)
            return self

        return change

    def __mul__(self, other: Renewed) -> torch.Tensor:
        return self.x * other.x


def test_dense_gradients_survive_in_place_and_by_numpy() -> None:
    for change in (
        lambda t: t.mul_(t), lambda t: t.add_(t, alpha=2), lambda t: t.exp_(), lambda t: t.log1p_(), lambda t: t.sin_(),
        lambda t: t.sigmoid_(), lambda t: t.div_(2), lambda t: t.clamp_(-0.1, 0.4), lambda t: t.addcmul_(t, t),
        lambda t: t.pow_(2), lambda t: t.sub_(t * t),
    ):  # fmt: skip
        leaf, plain = X.clone().requires_grad_(), X.clone().requires_grad_()
        s = ow.asarray(leaf, format="csr", grad="dense") * 1
        assert change(s) is s
        start = plain * 1
        want = change(Renewed(start)).x
        torch.testing.assert_close(gradient(s, leaf), gradient(want, plain))
    for function, same_by_torch in (
        (np.exp, torch.exp), (np.sin, torch.sin), (np.log1p, torch.log1p), (lambda t: np.multiply(t, t), lambda d: d * d),
        (lambda t: np.sum(t, 1), lambda d: d.sum(1)), (lambda t: np.add.reduce(t), lambda d: d.sum(0)),
        (np.diagonal, torch.diagonal), (np.trace, torch.trace), (np.transpose, torch.t),
        (lambda t: np.swapaxes(t, 0, 1), lambda d: d.swapaxes(0, 1)),
        (torch.nn.functional.relu, torch.relu), (torch.nn.functional.softplus, torch.nn.functional.softplus),
        (lambda t: t.mH, lambda d: d.mH), (lambda t: t.narrow(1, 1, 2), lambda d: d.narrow(1, 1, 2)),
    ):  # fmt: skip
        leaf, plain = X.clone().requires_grad_(), X.clone().requires_grad_()
        got = gradient(function(ow.asarray(leaf, format="csr", grad="dense")), leaf)
        want = same_by_torch(plain)
        torch.testing.assert_close(got, gradient(want, plain))


def test_several_results_with_dense_gradients() -> None:
    """`torch.return_types` of tensors with `grad="dense"`."""
    for name, args in (
        ("max", (1,)), ("min", (0,)), ("sort", ()), ("sort", (0, True)), ("topk", (2,)), ("median", (1,)), ("aminmax", ()),
        ("kthvalue", (2,)), ("mode", ()), ("cummax", (1,)), ("cummin", (0,)), ("std_mean", (1,)), ("frexp", ()),
        ("unbind", ()), ("split", (2,)), ("chunk", (2,)),
    ):  # fmt: skip
        leaf, plain = X.clone().requires_grad_(), X.clone().requires_grad_()
        s = ow.asarray(leaf, format="csr", grad="dense")
        options = {"dim": 1} if name == "aminmax" else {}
        want = getattr(torch, name)(plain, *args, **options)
        try:
            got = getattr(torch, name)(s, *args, **options)
        except ow.UnsupportedError:
            assert name in ("mode", "frexp"), name
            continue
        assert type(got) is type(want) or not hasattr(want, "_fields"), name
        one, other = gradient(got, leaf), gradient(want, plain)
        torch.testing.assert_close(torch.where(X != 0, one, 0), torch.where(X != 0, other, 0), msg=name)


def dense_of(x: Any) -> Any:
    if isinstance(x, list):
        return [dense_of(y) for y in x]
    return x.to_numpy() if isinstance(x, ow.Tensor) else x


def test_numpys_functions_by_place_and_by_name() -> None:
    t, n = ow.asarray(X.numpy(), format="csr"), X.numpy()
    for function, args, options in (
        (np.concatenate, ([t, t], 1), {"axis": 1}), (np.stack, ([t, t], 1), {"axis": 1}), (np.tensordot, (t, t, 2), {"b": t, "axes": 2}),
        (np.tensordot, (t, t, ([0], [0])), {"b": t, "axes": ([0], [0])}), (np.dot, (t, t.T), {"b": t.T}), (np.kron, (t, t), {"b": t}),
        (np.sum, (t, 1), {"axis": 1}), (np.max, (t, 1), {"axis": 1}), (np.argmax, (t, 1), {"axis": 1}), (np.roll, (t, 1, 1), {"shift": 1, "axis": 1}),
        (np.mean, (t, 0), {"axis": 0}), (np.flip, (t, 1), {"axis": 1}), (np.take, (t, [1, 0], 1), {"indices": [1, 0], "axis": 1}),
        (np.repeat, (t, 2, 1), {"repeats": 2, "axis": 1}), (np.expand_dims, (t, 1), {"axis": 1}), (np.diff, (t, 1, 0), {"n": 1, "axis": 0}),
        (np.cumsum, (t, 1), {"axis": 1}), (np.sort, (t, 0), {"axis": 0}), (np.argsort, (t, 0), {"axis": 0}), (np.transpose, (t, (1, 0)), {"axes": (1, 0)}),
        (np.moveaxis, (t, 0, 1), {"source": 0, "destination": 1}), (np.swapaxes, (t, 0, 1), {"axis1": 0, "axis2": 1}), (np.tril, (t, 1), {"k": 1}),
        (np.clip, (t, 0, 0.5), {"a_min": 0, "a_max": 0.5}), (np.reshape, (t, (4, 3)), {"shape": (4, 3)}), (np.tile, (t, 2), {"reps": 2}),
        (np.var, (t, 1, None, None, 1), {"axis": 1, "ddof": 1}), (np.std, (t, 0), {"axis": 0}), (np.outer, (t, t), {"b": t}),
    ):  # fmt: skip
        plainly = [
            [n, n]
            if isinstance(a, list) and a and a[0] is t
            else n
            if a is t
            else n.T
            if isinstance(a, ow.Tensor)
            else a
            for a in args
        ]
        want = function(*plainly)
        for by in (args, None):
            try:
                got = function(*args) if by else function(args[0], **options)
            except ow.UnsupportedError:
                if function is np.outer or (by is None and function in (np.clip, np.reshape)):
                    continue
                raise
            np.testing.assert_allclose(ow.asarray(got).to_numpy(), want, err_msg=function.__name__)


@pytest.mark.ci
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_torchs_functions_of_numpy_buffers(step: int) -> None:
    """One rule: results are over torch buffers, as of the torch tensor of the same memory; masked ones too."""
    n = X.numpy()
    t, theirs = ow.asarray(n, format="csr"), ow.asarray(X, format="csr")
    m = ow.masked_tensor(n, n != 0)
    other = ow.masked_tensor(X, X != 0)
    wrong, seen, masked = [], set(), set()
    for name in NAMES[2::step]:
        for args, options in (((), {}), ((1,), {}), ((0,), {}), ((0.5,), {}), ((2, 1), {})):
            function = getattr(torch, name)
            want = refused(function, theirs.clone(), *args, **options)
            got = refused(function, t.clone(), *args, **options)
            if isinstance(want, type) or isinstance(got, type):
                if want is not got:
                    wrong.append((name, args, want, got))
            elif found := same(got, want, 1e-12):
                wrong.append((name, args, found))
            else:
                seen.add(name)
            want, got = (refused(function, x.clone(), *args, **options) for x in (other, m))
            if isinstance(want, type) or isinstance(got, type):
                if want is not got:
                    wrong.append((name, args, "masked", want, got))
                continue
            masked.add(name)
            for x, y in zip(flat(got), flat(want), strict=True):
                if isinstance(y, ow.MaskedTensor) and (str(x) != str(y) or x.dtype != y.dtype):
                    wrong.append((name, args, "masked", x, y))
    assert wrong == []
    assert len(seen) > 150 // step, len(seen)
    assert len(masked) > 100 // step, len(masked)
    total = torch.add(t, t)
    assert isinstance(total.values, torch.Tensor)
    assert isinstance(torch.sin(m).values, torch.Tensor)


def test_masked_methods_are_torchs_over_torch() -> None:
    x = torch.tensor([[1.0, 5, 2], [4, 3, 6]])
    m = ow.masked_tensor(x, x > 0)
    assert str(m.var()) == str(torch.var(m))
    assert m.var().item() == pytest.approx(x.var().item())
    assert m.std(1).compressed().tolist() == pytest.approx(x.std(1).tolist())
    assert m.var(axis=None).item() == pytest.approx(x.var(correction=0).item())
    assert m.var(0, correction=0).compressed().tolist() == pytest.approx(x.var(0, correction=0).tolist())
    values, places = m.max(1)
    assert (values.compressed().tolist(), places.compressed().tolist()) == ([5, 6], [1, 2])
    assert m.max(axis=1).compressed().tolist() == [5, 6]
    assert m.sum(1, True).shape == m.sum(1, keepdim=True).shape == m.mean(dim=1, keepdim=True).shape == (2, 1)
    assert m.max().item() == 6
    n = ow.masked_tensor(x.numpy(), x.numpy() > 0)
    assert n.var().item() == pytest.approx(x.numpy().var())
    assert n.max(1).compressed().tolist() == np.max(m, 1).compressed().tolist() == [5, 6]
    assert ow.var(m).item() == np.var(m).item() == pytest.approx(x.numpy().var())
    assert ow.max(m, axis=0).compressed().tolist() == [4, 5, 6]
