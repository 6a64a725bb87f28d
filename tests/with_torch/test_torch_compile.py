"""Products in the graphs of torch.compile: without a break, and with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch_matrix import LAYOUTS, STACKS, X, make

import openwork as ow
from openwork.nn import GraphAttention, GraphConv, SparseLinear, normalized_adjacency

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

Y = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).reshape(3, 4)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


PRODUCTS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "operator": lambda t, x: torch.relu(t @ x) * 2,
    "from the left": lambda t, x: Y @ t @ x,
    "namespace": lambda t, x: ow.matmul(t, x[:, 0]),
    "mm": lambda t, x: torch.mm(t, x) + torch.mv(t, x[:, 1])[:, None],
    "linear": lambda t, x: torch.nn.functional.linear(x.T, t, Y[0]),
    "addmm": lambda t, x: torch.addmm(Y.T, t, x),
}


def compiled(function: Any, backend: Any = "aot_eager") -> Any:
    return torch.compile(function, backend=backend, fullgraph=True)


def check(function: Any, layout: str, backend: Any) -> None:
    t, x = make(*LAYOUTS[layout]).tensor, X.clone().requires_grad_()
    graph = compiled(function, backend)
    got, want = graph(t, x), function(t, x)
    torch.testing.assert_close(got, want)
    pairs = [torch.autograd.grad(y.square().sum(), [t.values, x]) for y in (got, want)]
    torch.testing.assert_close(*pairs)


@pytest.mark.thin(3)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_without_a_break(name: str, backend: str) -> None:
    check(PRODUCTS[name], "csr", backend)


FEW = ("coo", "ragged bsr", "dcsr")


@pytest.mark.parametrize("layout", [*FEW, *(pytest.param(x, marks=pytest.mark.slow) for x in LAYOUTS if x not in FEW)])
def test_every_layout(layout: str) -> None:
    check(PRODUCTS["operator"], layout, "aot_eager")


@pytest.mark.parametrize("layout", ["batched csr", "csf"])
def test_stacks(layout: str) -> None:
    t = make(*STACKS[layout]).tensor.detach()
    x = torch.stack([X, 2 * X])
    torch.testing.assert_close(compiled(lambda a, b: a @ b)(t, x), t @ x)


def test_the_side_is_known() -> None:
    """Of a square matrix the shapes do not tell."""
    t = ow.asarray(torch.arange(16.0).reshape(4, 4)).asformat("csr")
    x = torch.arange(16.0, 32.0).reshape(4, 4)
    torch.testing.assert_close(compiled(lambda a, b: a @ b)(t, x), t.to_dense() @ x)
    torch.testing.assert_close(compiled(lambda a, b: b @ a)(t, x), x @ t.to_dense())
    torch.testing.assert_close(compiled(lambda b: t @ b)(x), t.to_dense() @ x)


def test_a_format_has_its_graph() -> None:
    """Transposes have the same buffers; other values and structures of one format share a graph."""
    graphs = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module

    function = compiled(lambda a, b: a @ b, backend)
    dense = torch.rand(4, 4, dtype=torch.float64)
    for t in (dense, dense * (dense < 0.5), dense * (dense < 0.7)):
        for spec in ("csr", "coo"):
            a = ow.asarray(t.to_sparse(layout=getattr(torch, f"sparse_{spec}")))
            torch.testing.assert_close(function(a, dense), t @ dense)
            torch.testing.assert_close(function(a.T, dense), t.T @ dense)
    assert len(graphs) <= 8


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", ["csr", "coo", "dcsr", "bsr(2, 2)"])
def test_another_number_of_elements_is_no_other_graph(layout: str, backend: str) -> None:
    """torch raises where it would compile again; gradients are there too."""
    dense = torch.rand(8, 6, dtype=torch.float64)
    graph = compiled(lambda a, x: torch.relu(a @ x), backend)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for threshold in (0.2, 0.5, 0.7, 0.4):
            kept = (dense > threshold).double()
            a = ow.asarray(dense * kept, format=layout).requires_grad_()
            x = X[:6].clone().requires_grad_()
            want = torch.relu((dense * kept) @ x)
            out = graph(a, x)
            torch.testing.assert_close(out, want)
            gradients = torch.autograd.grad(out.sum(), [a.values, x])
            torch.testing.assert_close(gradients[1], torch.autograd.grad(want.sum(), x)[0])
            assert gradients[0].shape == a.values.shape


def test_the_operator() -> None:
    """What torch asks of operators: a schema that holds, a fake kernel that agrees, gradients through it."""
    t = make("csr", (4, 6)).tensor
    structure = [t.crow_indices(), t.col_indices()]
    x = X.clone().requires_grad_()
    held, shape, count = "--pc", [4, 6], len(t.values)
    for statement, dense in (("i,j|j,k|i,k", [x]), ("i,j|j,k;i,k|-", [x, X[:4]]), ("i,j||j", [])):
        args = (t.values, structure, dense, t.format.text, held, shape, count, statement, "f64")
        torch.library.opcheck(torch.ops.openwork.product, args)


def test_second_derivatives() -> None:
    t = make("csr", (4, 6)).tensor
    structure = [t.crow_indices(), t.col_indices()]

    def function(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rest = (t.format.text, "--pc", [4, 6], len(values), "i,j|j,k|i,k", "f64")
        found: torch.Tensor = torch.ops.openwork.product(values, structure, [x], *rest)
        return found

    inputs = (t.values.detach().requires_grad_(), X.clone().requires_grad_())
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_layers(backend: str) -> None:
    """A network of both layers, one step of training."""
    torch.manual_seed(0)
    adjacency = normalized_adjacency(ow.asarray(torch.ones(4, 4).triu().to_sparse_csr()))
    weight = ow.asarray(torch.rand(5, 3) * (torch.rand(5, 3) < 0.5)).asformat("csr")

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.last = GraphConv(2, 3), SparseLinear(weight, torch.zeros(5))

        def forward(self, a: ow.Tensor, x: torch.Tensor) -> Any:
            return self.last(torch.relu(self.conv(a, x)))

    net, x = Net(), torch.rand(4, 2)
    results = []
    for run in (net, compiled(net, backend)):
        net.zero_grad()
        y = run(adjacency, x)
        y.square().sum().backward()
        results.append([y.detach(), *(p.grad.clone() for p in net.parameters())])
    torch.testing.assert_close(*results)


def test_sparse_features() -> None:
    """Another number of elements is not another graph."""
    torch.manual_seed(0)
    adjacency = normalized_adjacency(ow.asarray(torch.ones(6, 6).triu().to_sparse_csr()))
    layers = [GraphConv(5, 3), GraphAttention(5, 4, heads=2)]
    dense = torch.rand(6, 5)
    for layer in layers:
        graphs = []

        def backend(module: Any, inputs: Any, graphs: list[Any] = graphs) -> Any:
            graphs.append(module)
            return module

        run = compiled(layer, backend)
        for threshold in (0.2, 0.5, 0.7):
            x = ow.asarray((dense * (dense > threshold)).to_sparse_csr())
            torch.testing.assert_close(run(adjacency, x), layer(adjacency, x))
        assert len(graphs) == 1
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(layers[0])(adjacency, x).dtype == torch.bfloat16


@pytest.mark.parametrize(
    "function", [lambda a, x: (a @ a.T) @ x[:4], lambda a, x: (a + a) @ x, lambda a, x: (a + 1) @ x]
)
@pytest.mark.unchecked  # torch's tracer goes into the bookkeeping of addresses, which checked kernels alone have
def test_the_rest_breaks_the_graph(function: Any) -> None:
    t = make("csr", (4, 6)).tensor.detach()
    torch.testing.assert_close(torch.compile(function, backend="eager")(t, X), function(t, X))
    with pytest.raises(Exception, match=r"skip|no compiled frames"):
        compiled(function)(t, X)
