"""What the tracer of torch.compile reads in place of functions, called as it is: it gives what the functions give."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch_matrix import STACKS, X, make

import openwork as ow
from openwork.nn.attend import attend
from openwork.nn.attend_traced import traced_attention
from openwork.storage.buffers import to_numpy
from openwork.torch.compiled import products, traced, traced_calls, traced_pytree
from openwork.torch.compiled.call_text import constant, decoded
from openwork.torch.rules import RULES

assert products  # its operators

DENSE = torch.linspace(0.0, 1.0, 24, dtype=torch.float64).reshape(4, 6).flip(1)
MASK = DENSE > 0.4


def sparse(dense: torch.Tensor, format: str = "csr") -> ow.Tensor:
    return ow.asarray(dense.detach(), format=format)


A = sparse(DENSE * (DENSE > 0.3)).requires_grad_()
LEFT = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).reshape(3, 4)
LIFTED = A.detach() + 1
WHOLE = sparse((DENSE * 9).long())
STACK = make(*STACKS["batched csr"]).tensor.detach()
COLUMNS = torch.stack([X, 2 * X])
V = sparse(DENSE[0], "coo")


def leaves(x: Any) -> Iterator[Any]:
    """Tensors as dense arrays, a masked one with its mask; numbers, types and formats as they are."""
    if isinstance(x, tuple | list):
        yield type(x) if type(x) in (tuple, list) else type(x).__name__
        for part in x:
            yield from leaves(part)
    elif isinstance(x, ow.MaskedTensor):
        yield from (x.shape, x.get_mask().to_dense(), x.filled(-1).to_dense())
    else:
        yield x.to_dense() if isinstance(x, ow.Tensor) else x


def agree(got: Any, want: Any) -> None:
    """Equal parts, types and structures; and the gradients of both by the values of `A`, where they have one."""
    for g, w in zip(leaves(got), leaves(want), strict=True):
        if not isinstance(w, torch.Tensor):
            assert g == w
            continue
        torch.testing.assert_close(g, w, equal_nan=True)
        assert g.requires_grad == w.requires_grad
        if w.requires_grad:
            pair = [torch.autograd.grad(y.abs().square().sum(), A.values, retain_graph=True)[0] for y in (g, w)]
            torch.testing.assert_close(*pair)
    if isinstance(want, ow.Tensor):
        assert (type(got), got.format, got.fill_value) == (type(want), want.format, want.fill_value)


PRODUCTS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "matrix": (torch.matmul, (A, X)),
    "vector": (torch.mv, (A, X[:, 0])),
    "from the left": (torch.mm, (LEFT, A)),
    "vector from the left": (operator.matmul, (LEFT[0], A)),
    "dense ones": (torch.matmul, (LEFT, DENSE)),
    "sparse ones": (torch.matmul, (A, A.detach().mT)),
    "a fill value": (torch.matmul, (LIFTED, X)),
    "whole numbers": (torch.matmul, (WHOLE, X.long())),
    "whole numbers by others": (torch.matmul, (WHOLE, X)),
    "others by whole numbers": (torch.matmul, (A, X.long())),
    "complex": (torch.matmul, (A.detach(), X + 1j)),
    "a stack": (torch.matmul, (STACK, COLUMNS)),
    "a stack from the left": (torch.matmul, (COLUMNS.mT[..., :4], STACK)),
    "a stack by one": (torch.matmul, (STACK, X)),
    "a matrix by a stack": (torch.matmul, (A, COLUMNS)),
    "a sparse vector": (torch.matmul, (V, X)),
    "an operator": (operator.matmul, (A, X)),
    "linear": (torch.nn.functional.linear, (X.mT, A)),
    "linear with a bias": (torch.nn.functional.linear, (X.mT, A, LEFT[0])),
    "linear without": (torch.nn.functional.linear, (X.mT, A, None)),
    "linear of a vector": (torch.nn.functional.linear, (X[:, 0], A, LEFT[0])),
    "linear of a stack": (torch.nn.functional.linear, (COLUMNS.mT, A)),
    "linear of a sparse x": (torch.nn.functional.linear, (sparse(X.mT), A)),
    "linear of whole numbers": (torch.nn.functional.linear, (X.mT.long(), WHOLE)),
    "addmm": (torch.addmm, (LEFT.mT[:, :1], A, X)),
    "addmm from the left": (torch.addmm, (DENSE[:3], LEFT, A)),
    "addmm of a sparse one": (torch.addmm, (sparse(DENSE[:, :3]), A, X[:, :3])),
    "add": (torch.add, (A, A)),
}


def test_products() -> None:
    rule = traced.rule("torch_function")
    for function, args in PRODUCTS.values():
        agree(rule(function, args, {}), function(*args))
        if function is torch.matmul:
            agree(traced.matmul(*args), ow.matmul(*args))
            agree(traced.matmul_of_namespace(*args), ow.matmul(*args))
    agree(rule(torch.mul, (A,), {"other": 2.0}), A * 2.0)
    assert traced.rule("fold") is RULES["fold"]


def plain(name: str) -> Callable[..., Any]:
    """A function by its name in `calls`."""
    if name[0] == ":":
        return operator.attrgetter(name[1:])
    if name[0] == ".":
        return lambda t, *args, **kwargs: getattr(t, name[1:])(*args, **kwargs)
    module, path = name.split(".", 1)
    function: Callable[..., Any] = operator.attrgetter(path)({"torch": torch, "openwork": ow}[module])
    return function


M = ow.masked_tensor(DENSE, MASK)
N = ow.masked_tensor(DENSE, MASK).asformat("csr")

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("torch.sum", (A, 1), {}),
    (".sum", (A,), {"dim": (0, 1)}),
    (".sum", (A,), {"dim": [0], "keepdim": True, "dtype": torch.float32}),
    ("torch.max", (A, 1), {}),
    (":T", (A,), {}),
    (":levels", (A,), {}),
    (".detach", (A,), {}),
    (".__getitem__", (A, (slice(1, None, 2), ...)), {}),
    (".__getitem__", (A, (None, 2)), {}),
    (".astype", (A, np.dtype("complex64")), {}),
    (".astype", (A, np.float32), {}),
    (".asformat", (A, ow.format("coo", 2)), {}),
    (".to", (A, torch.device("cpu"), torch.float32), {}),
    (".mul", (A.detach(), 2j), {}),
    (".add", (A, np.float64(2)), {}),
    (".pow", (A, np.int64(2)), {}),
    ("openwork.clip", (A, None, float("inf")), {}),
    ("openwork.concat", ([A, A],), {"axis": 1}),
    ("openwork.where", (LIFTED > 1.2, LIFTED, float("nan")), {}),
    ("torch.unbind", (A, 1), {}),
    ("torch.split", (A, [1, 3]), {}),
    ("openwork.asarray", (DENSE,), {"format": "csc"}),
    ("openwork.asarray", (STACK,), {}),
    ("torch.add", (A, V), {}),
    (".sum", (STACK, 2), {}),
    (".relu", (sparse(DENSE - 0.5, "coo(nonunique, unordered)"),), {}),
    (".sum", (M, 1), {}),
    (".sum", (N,), {}),
    (".exp", (N,), {}),
    (".filled", (M, 2.0), {}),
    (".__getitem__", (M.sum(), ()), {}),
    ("openwork.masked.softmax", (N, 1), {"mask": MASK}),
    ("torch.max", (M, 1), {}),
    ("openwork.broadcast_arrays", (A, V), {}),
    (".relu", (sparse(DENSE[:1] * (DENSE[0] > 0.9), "ell(1)"),), {}),
]


@pytest.mark.ci
def test_calls() -> None:
    for name, args, kwargs in CALLS:
        want = plain(name)(*args, **kwargs)
        agree(traced_calls.call(name, args, kwargs), want)
        if name[0] == "." and name[1] != "_":
            agree(traced_calls.getattr_of(args[0], name[1:])(*args[1:], **kwargs), want)
        agree(traced_calls.function(name)(*args, **kwargs), want)
    for t in (A, M, M.sum()):
        agree(traced_calls.of_torch(type(t), torch.add, (), (t, t)), torch.add(t, t))
        agree(traced_calls.of_torch(type(t), operator.mul, (), (t, 3), {}), t * 3)
    for name in ("_storage", "relu_"):
        with pytest.raises(AttributeError, match=name):
            traced_calls.getattr_of(A, name)


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        (":nse", (A,), "nse: a result of type int depends on the data"),
        ("torch.nn.functional.dropout", (A,), "torch.nn.functional.dropout: UnsupportedError: .* draws random numbers"),
        (".bernoulli_", (A,), "draws random numbers"),
        ("torch.matmul", (A, A), "torch.matmul: ShapeError"),
        ("openwork.with_values", (A, MASK.flatten()[: A.nse]), "openwork.with_values: ShapeError"),
        ("openwork.fold", (A, print), "an argument of type builtin_function_or_method"),
        ("openwork.asarray", ([1.0, 2.0],), "a result over NumPy buffers"),
    ],
)
def test_what_no_graph_can_have(name: str, args: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def graph_break(msg: str) -> None:
        raise RuntimeError(msg)

    monkeypatch.setitem(vars(torch), "_dynamo", SimpleNamespace(graph_break=graph_break))  # it takes long to import
    with pytest.raises(RuntimeError, match=says):
        traced_calls.MEMBERS.get(name.removeprefix("openwork."), traced_calls.function(name))(*args)


def test_a_product_whose_side_is_not_told_is_in_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def graph_break(msg: str) -> None:
        raise RuntimeError(msg)

    monkeypatch.setitem(vars(torch), "_dynamo", SimpleNamespace(graph_break=graph_break))
    for t in (A, M):
        with pytest.raises(RuntimeError, match=r"write ow\.matmul"):
            traced_calls.of_torch(type(t), torch.Tensor.matmul, (), (X, t))
    with pytest.raises(RuntimeError, match=r"write ow\.matmul"):
        traced.torch_function(torch.Tensor.matmul, (X, A), {})


def test_constants_are_read_again() -> None:
    for x in (
        None, True, 3, -1, "a'b", 0.1, -0.0, float("inf"), 1 - 2j, complex(float("inf"), -0.0), torch.float32,
        torch.sparse_csr, torch.device("cpu"), np.dtype("int8"), Ellipsis, slice(None, 3, -1), ow.format("csr", 2),
        (1, (2.5, None)), [slice(1, 2), [Ellipsis]], (), [],
    ):  # fmt: skip
        got = decoded(ast.literal_eval(repr(constant(x))))
        assert type(got) is type(x)
        assert repr(got) == repr(x)
    for scalar in (np.float32(0.1), np.float64(2), np.int8(3), np.bool_(True), np.complex128(1j), np.uint64(2**63)):
        got = decoded(ast.literal_eval(repr(constant(scalar))))
        assert got == scalar
        assert type(got) in (bool, int, float, complex)
    assert decoded(constant(np.float32)) == np.dtype("float32")
    with pytest.raises(ow.UnsupportedError, match="an argument of type object"):
        constant((1, [object()]))


def test_members() -> None:
    for t in (A, WHOLE, STACK, LIFTED, V, M, N, M.sum()):
        for name in ("shape", "ndim", "dtype", "format", "fill_value", "requires_grad"):
            if name != "fill_value" or isinstance(t, ow.Tensor):
                assert traced_calls.MEMBERS[name](t) == getattr(t, name)
        for name in ("dim", "ndimension", "numel", "nelement"):
            assert traced_calls.MEMBERS[name](t) == getattr(t, name)()


def test_values_of_their_own() -> None:
    for t in (A, STACK, LIFTED):
        values = t.values * 2
        agree(traced_calls.with_values(t, values), ow.with_values(t, values))
    with pytest.raises(RuntimeError):
        traced_calls.with_values(A, A.values[:-1])


def test_a_layer_of_a_sparse_x() -> None:
    s, x = A.mT.asformat("csr")._raw_storage, sparse(LEFT * (LEFT > 0))
    got = traced.sparse_linear((s.format, s.shape, s.pos, s.crd), s.values, x)
    agree(got, x.to_dense() @ A.to_dense())


def heads(*shape: int) -> torch.Tensor:
    return torch.sin(torch.arange(float(np.prod(shape)), dtype=torch.float64)).reshape(shape)


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("mask", "lead"),
    [(A, (1,)), (A, (2, 3)), (STACK, (2,)), (sparse(DENSE, "bsr(2, 3)"), (3,)), (sparse(DENSE, "coo"), (0,))],
)
def test_attention(mask: ow.Tensor, lead: tuple[int, ...]) -> None:
    """The operator of a graph against the function; what dropout keeps is scaled, and drawn for every element."""
    q, k, v = (heads(*lead, n, d).requires_grad_() for n, d in ((4, 5), (6, 5), (6, 2)))
    a, b, c = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    for is_causal in (False, True):
        want = attend(mask.detach(), q, k, v, is_causal=is_causal)
        got = traced_attention(mask, lead, is_causal, a, b, c, 0.0, 5**-0.5).reshape(want.shape)
        torch.testing.assert_close(got, want)
        if want.numel():
            torch.testing.assert_close(*[torch.autograd.grad(y.square().sum(), [q, k, v]) for y in (got, want)])
    for p in (0.25, 0.75):
        torch.manual_seed(0)
        want = attend(mask.detach(), q, k, v, dropout=p)
        torch.manual_seed(0)
        torch.testing.assert_close(traced_attention(mask, lead, False, a, b, c, p, 5**-0.5).reshape(want.shape), want)


def test_a_node_that_names_no_dtype_is_refused() -> None:
    """Contexts of pytrees are read from files of exported programs."""
    node = traced_calls.node_of(A)[1]
    text = traced_pytree._dumped(node)
    assert traced_pytree._loaded(text) == node
    with pytest.raises(ow.DTypeError, match=r"torch\.load"):
        traced_pytree._loaded(text.replace("torch.float64", "torch.load"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_without_memory_are_no_arrays(dtype: torch.dtype) -> None:
    with torch._subclasses.fake_tensor.FakeTensorMode():
        x = torch.ones(3, dtype=dtype)
        with pytest.raises(ow.UnsupportedError, match="without memory, FakeTensor"):
            to_numpy(x)
