"""Products in the graphs of torch.compile: without a break, and with their gradients."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from torch_matrix import LAYOUTS, STACKS, X, make

import openwork as ow
from openwork.masked import torch_nodes
from openwork.nn import GraphAttention, GraphConv, SparseLinear, normalized_adjacency
from openwork.torch import func, register_for_export

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

Y = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).reshape(3, 4)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


PRODUCTS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "function": lambda t, x: torch.relu(ow.matmul(t, x)) * 2,
    "from the left": lambda t, x: torch.matmul(Y, t) @ x,
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


@pytest.mark.thin(28)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_without_a_break(name: str, backend: str) -> None:
    check(PRODUCTS[name], "csr", backend)


FEW = ("coo", "ragged bsr", "dcsr")


@pytest.mark.thin(3)
@pytest.mark.parametrize("layout", [*FEW, *(pytest.param(x, marks=pytest.mark.slow) for x in LAYOUTS if x not in FEW)])
def test_every_layout(layout: str) -> None:
    check(PRODUCTS["function"], layout, "aot_eager")


@pytest.mark.thin(2)
@pytest.mark.parametrize("layout", ["batched csr", "csf"])
def test_stacks(layout: str) -> None:
    t = make(*STACKS[layout]).tensor.detach()
    x = torch.stack([X, 2 * X])
    torch.testing.assert_close(compiled(ow.matmul)(t, x), t @ x)


@pytest.mark.thin(4)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3), (0, 3)])
def test_layers_take_columns(shape: tuple[int, ...]) -> None:
    """The transposition of rows is torch's own, which its compiler fuses; copies inside the operator it cannot."""
    layer = SparseLinear(ow.asarray(torch.rand(5, 3) * (torch.rand(5, 3) < 0.5)).asformat("csr"), torch.ones(5))
    statements = []

    def backend(module: Any, inputs: Any) -> Any:
        statements.extend(n.args[7] for n in module.graph.nodes if n.target is torch.ops.openwork.product)
        return module

    x = torch.rand(shape, requires_grad=True)
    out = compiled(layer, backend)(x)
    torch.testing.assert_close(out, layer(x))
    assert statements == ["i,j|j|i" if len(shape) == 1 else "i,j|j,b|i,b"]
    (got,) = torch.autograd.grad(out.square().sum(), x)
    (want,) = torch.autograd.grad(layer(x).square().sum(), x)
    torch.testing.assert_close(got, want)


OPERATORS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "from the left": lambda t, x: torch.relu(t @ x) * 2,
    "from the right": lambda t, x: torch.relu(x @ t) * 2,
    "a method": lambda t, x: torch.relu(x.matmul(t)) * 2,
    "of two": lambda t, x: (t @ t.mT).to_dense() @ x,
    "masked": lambda t, x: (ow.as_masked_tensor(t) @ x).filled(0).to_dense() * 2,
}


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the tracer asks non-leaf tensors behind a break for theirs
@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", OPERATORS)
def test_the_operator_breaks_the_graph(name: str) -> None:
    """Of a square matrix the shapes do not tell the sides: the tracer makes one call of both, and Python is asked."""
    t = ow.asarray(torch.arange(16.0).reshape(4, 4)).asformat("csr").requires_grad_()
    x, function = torch.arange(16.0, 32.0).reshape(4, 4), OPERATORS[name]
    got, want = torch.compile(function, backend="aot_eager")(t, x), function(t, x)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(*[torch.autograd.grad(y.sum(), t.values) for y in (got, want)])
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="matmul"):
        compiled(function)(t, x)


def test_the_side_is_known() -> None:
    t = ow.asarray(torch.arange(16.0).reshape(4, 4)).asformat("csr")
    x = torch.arange(16.0, 32.0).reshape(4, 4)
    torch.testing.assert_close(compiled(ow.matmul)(t, x), t.to_dense() @ x)
    torch.testing.assert_close(compiled(lambda a, b: torch.matmul(b, a))(t, x), x @ t.to_dense())
    torch.testing.assert_close(compiled(lambda b: ow.matmul(t, b))(x), t.to_dense() @ x)


@pytest.mark.ci
def test_a_format_has_its_graph() -> None:
    """Transposes have the same buffers; other values and structures of one format share a graph."""
    graphs = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module

    function = compiled(ow.matmul, backend)
    dense = torch.rand(4, 4, dtype=torch.float64)
    for t in (dense, dense * (dense < 0.5), dense * (dense < 0.7)):
        for spec in ("csr", "coo"):
            a = ow.asarray(t.to_sparse(layout=getattr(torch, f"sparse_{spec}")))
            torch.testing.assert_close(function(a, dense), t @ dense)
            torch.testing.assert_close(function(a.T, dense), t.T @ dense)
    assert len(graphs) <= 8


@pytest.mark.thin(12)
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", ["csr", "coo", "dcsr", "bsr(2, 2)"])
def test_another_number_of_elements_is_no_other_graph(layout: str, backend: str) -> None:
    """torch raises where it would compile again; gradients are there too."""
    dense = torch.rand(8, 6, dtype=torch.float64)
    graph = compiled(lambda a, x: torch.relu(ow.matmul(a, x)), backend)
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


@pytest.mark.thin(2)
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


@pytest.mark.ci
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


CALLS: dict[str, Callable[[Any], Any]] = {
    "torch.sum": lambda t: torch.sum(t, 1),
    "reductions": lambda t: (t.mean(0), torch.amax(t, 1), ow.max(t, axis=0), t.std(1)),
    "named tuples": lambda t: (torch.max(t, 1), t.min(0)),
    "softmax": lambda t: ow.softmax(t, axis=-1) + torch.softmax(t, -1),
    "relu": lambda t: torch.relu(t - 0.5) * 2,
    "two of one structure": lambda t: t + t,
    "two structures": lambda t: t * (t > 0.5) + t,
    "products": lambda t: ow.matmul(ow.matmul(t, t.mT), X[:4]),
    "moved": lambda t: torch.cat([t[1:3], t.mT.mT], 0).asformat("csc"),
    "one structure": lambda t: (t.with_values(t.values * 3), t.detach() * 2),
    "from dense": lambda t: ow.asarray(torch.relu(t.to_dense() - 0.5), format="coo"),
    "no tensors": lambda t: t.sum(1) * t.shape[0] + t.ndim,
}


def parts(x: Any) -> list[Any]:
    """The tensors of a result, dense ones as torch's."""
    if isinstance(x, tuple | list):
        return [p for part in x for p in parts(part)]
    return [x.filled(-1.0).to_dense() if isinstance(x, ow.MaskedTensor) else x.to_dense()]


def same_without_recompiling(function: Any, make_t: Any, backend: str, thresholds: tuple[float, ...]) -> None:
    """A compiled function gives what it gives, and its gradients, of tensors of other numbers of elements too."""
    graph = compiled(function, backend)
    for k, threshold in enumerate(thresholds):
        with torch._dynamo.config.patch(error_on_recompile=k > 0):
            results = []
            for run in (graph, function):
                t = make_t(threshold)
                out = parts(run(t))
                recorded = [y.square().sum() for y in out if y.requires_grad]
                results.append([*out, *torch.autograd.grad(recorded, [t.values] * bool(recorded))])
            torch.testing.assert_close(*results, equal_nan=True)


DENSE = torch.linspace(0.0, 1.0, 24, dtype=torch.float64).reshape(4, 6).flip(1)
ALL = [pytest.param(name, marks=[] if k % 6 == 0 else pytest.mark.slow) for k, name in enumerate(CALLS)]
FORMATS = ("csr", "coo", "bsr(2, 2)", "coo(nonunique, unordered)", "bitmap", "dense")


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ALL)
def test_calls_without_a_break(name: str) -> None:
    check_calls(name, "csr", "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", CALLS)
def test_calls_of_every_format(name: str, format: str, backend: str) -> None:
    if backend == "aot_eager" or format == "csr":
        check_calls(name, format, backend)


def check_calls(name: str, format: str, backend: str) -> None:
    def make_t(threshold: float) -> ow.Tensor:
        return ow.asarray(DENSE * (threshold < DENSE), format=format).detach().requires_grad_()

    same_without_recompiling(CALLS[name], make_t, backend, (0.3, 0.7, 0.1))


MASKED: dict[str, Callable[[Any], Any]] = {
    "reductions": lambda m: (m.sum(1), torch.mean(m, 0), m.amax(1), torch.std(m), m.prod(0)),
    "elementwise": lambda m: torch.relu(m * 2 - 1) + m,
    "softmax": lambda m: (m.softmax(1), torch.logsumexp(m, 0)),
    "masked": lambda m: (
        ow.masked.softmax(m, 1, mask=DENSE > 0.2),
        ow.masked.var(m, 0, mask=DENSE < 0.9),
        ow.masked.mean(m, 1),
        torch.masked.sum(m.filled(0.0).to_dense(), 1, mask=DENSE > 0.5),
        ow.masked.median(m, 1),
    ),
    "made": lambda m: ow.as_masked_tensor(m.filled(0.0).to_dense() * 2, m.get_mask().to_dense()).sum(1),
}


@pytest.mark.ci
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", ["dense", pytest.param("csr", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["reductions", *(pytest.param(n, marks=pytest.mark.slow) for n in list(MASKED)[1:])])
def test_masked_tensors_without_a_break(name: str, layout: str, backend: str) -> None:
    def make_m(threshold: float) -> ow.MaskedTensor:
        m = ow.masked_tensor(DENSE, threshold < DENSE)
        return (m if layout == "dense" else m.asformat(layout)).requires_grad_()

    same_without_recompiling(MASKED[name], make_m, backend, (0.3, 0.7))


def test_masked_functions_of_torch_tensors_are_in_the_graph() -> None:
    ow.asarray(DENSE)
    sums = torch.compile(lambda x: torch.masked.sum(x, 1, mask=x > 0.5), backend="eager", fullgraph=True)
    assert sums(DENSE).equal(torch.masked.sum(DENSE, 1, mask=DENSE > 0.5))


@pytest.mark.ci
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_sparse_inputs_of_layers(backend: str) -> None:
    """SparseLinear of a sparse x, a module that has Tensors, and results that go in again."""
    torch.manual_seed(0)
    layer = SparseLinear(ow.asarray(torch.rand(5, 6, dtype=torch.float64), format="csr"), torch.ones(5).double())
    graph = compiled(layer, backend)
    for threshold in (0.3, 0.6):
        results = []
        for run in (layer, graph):
            layer.zero_grad()
            x = ow.asarray(DENSE * (threshold < DENSE), format="csr").detach().requires_grad_()
            y = run(x)
            y.square().sum().backward()
            results.append([y.detach(), x.values.grad, *(p.grad.clone() for p in layer.parameters())])
        torch.testing.assert_close(*results)

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a = ow.asarray(DENSE, format="csr")

        def forward(self, t: ow.Tensor) -> ow.Tensor:
            return torch.relu(self.a - t)

    net, t = Net(), ow.asarray(DENSE / 2, format="csr")
    graph = compiled(net, backend)
    torch.testing.assert_close(graph(graph(t)).to_dense(), net(net(t)).to_dense())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda t: t.nse, "depends on the data"),
        (lambda t: torch.nn.functional.dropout(t), "random"),
        (lambda t: t.mul_(2), "skip|inline"),
        (lambda t: ow.matmul(t, t), "inner extents differ"),
    ],
)
def test_what_no_graph_can_have_breaks_it(function: Any, says: str) -> None:
    t = ow.asarray(DENSE, format="csr")
    with pytest.raises(torch._dynamo.exc.Unsupported, match=says):
        compiled(function)(t)


@pytest.mark.slow
def test_outside_of_a_graph_it_is_as_without_one() -> None:
    def in_place(t: ow.Tensor) -> ow.Tensor:
        t = t * 1
        t *= 2
        return t.mul_(t.nse)

    t = ow.asarray(DENSE, format="csr")
    torch.testing.assert_close(torch.compile(in_place, backend="eager")(t).to_dense(), DENSE * 2 * t.nse)
    with pytest.raises(ow.ShapeError, match="inner extents"):
        torch.compile(lambda t: t @ t, backend="eager")(t)
    full = ow.asarray(DENSE, format="csr", grad="dense")
    torch.testing.assert_close(
        torch.compile(lambda t: (t * 2).sum(), backend="eager")(full).to_dense(), 2 * DENSE.sum()
    )
    sums = torch.tensor([1.0, 2.0])  # a fill value that is a number of the data
    with pytest.raises(ow.UnsupportedError, match="fill value or shape depends on data"):
        compiled(lambda t, s: t + s.sum())(t, sums)


@pytest.mark.slow
def test_export_of_a_module_with_a_tensor() -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a = ow.asarray(DENSE, format="csr")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.a @ x) + (self.a * self.a).sum(1).to_dense()[:, None]

    net = Net()
    program = torch.export.export(net, (X[:6],), strict=True)
    torch.testing.assert_close(program.module()(X[:6]), net(X[:6]))
    with pytest.raises(ow.UnsupportedError, match="strict=True"):
        torch.export.export(net, (X[:6],), strict=False)


class Applied(torch.nn.Module):  # type: ignore[misc]
    """A function of tensors as a module, which torch.export takes."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


@pytest.mark.parametrize("function", [lambda t, x: t @ x, lambda t, x: x.T @ t, lambda t, x: t * x, lambda t, x: t + x])
def test_what_export_cannot_trace_names_the_way_that_can(function: Any) -> None:
    t = ow.asarray(torch.eye(4, dtype=torch.float64), format="csr")
    net, auto = Applied(lambda x: function(t, x)), torch.export.Dim.AUTO
    for shapes in (None, (({0: auto, 1: auto},),)):
        with pytest.raises(ow.UnsupportedError, match="strict=True"):
            torch.export.export(net, (torch.ones(4, 4, dtype=torch.float64),), strict=False, dynamic_shapes=shapes)


@pytest.fixture
def registered() -> Iterator[None]:
    """Tensors as nodes of torch's pytrees whose leaves are all buffers, for one test."""
    register_for_export()
    yield
    torch_nodes.all_buffers = None


@pytest.mark.usefixtures("registered")
def test_tensors_as_nodes_of_pytrees() -> None:
    t = ow.asarray(DENSE, format="csr")
    for x in (t, t.asformat("coo"), t.astype(torch.complex128) + 1j, ow.as_masked_tensor(t)):
        leaves, spec = pytree.tree_flatten({"x": x})
        assert all(isinstance(leaf, torch.Tensor) for leaf in leaves)
        again = pytree.tree_unflatten(leaves, pytree.treespec_loads(pytree.treespec_dumps(spec)))["x"]
        assert type(again) is type(x)
        assert again.format == x.format
        torch.testing.assert_close(_filled(again), _filled(x))
    gradient, value = func.grad_and_value(lambda a: (a["t"] * a["t"]).sum())({"t": t})
    torch.testing.assert_close(gradient["t"].to_dense(), 2 * DENSE)
    assert value == (DENSE * DENSE).sum()
    many = func.vmap(lambda a, s: a * s, in_dims=(None, 0))(t, torch.tensor([1.0, 2.0], dtype=DENSE.dtype))
    torch.testing.assert_close(many.to_dense(), torch.stack([DENSE, 2 * DENSE]))
    assert pytree.tree_map(lambda b: b, t).format == t.format


def _filled(x: Any) -> Any:
    return (x.filled(0) if isinstance(x, ow.MaskedTensor) else x).to_dense()


@pytest.mark.slow
@pytest.mark.usefixtures("registered")
def test_tensors_as_arguments_and_results_of_exported_programs() -> None:
    t, x = ow.asarray(DENSE, format="csr"), X[: DENSE.shape[1]]
    auto, file = torch.export.Dim.AUTO, io.BytesIO()
    shapes = ([None, {0: auto}, {0: auto}], None)
    net = Applied(lambda t, x: (t * 2, t @ x))
    torch.export.save(torch.export.export(net, (t, x), strict=True, dynamic_shapes=(shapes,)), file)
    file.seek(0)
    program = torch.export.load(file).module()
    for each in (t, t.with_values(t.values + 1), ow.asarray(torch.ones_like(DENSE), format="csr")):
        doubled, product = program(each, x)
        assert doubled.format == t.format
        torch.testing.assert_close(doubled.to_dense(), 2 * each.to_dense())
        torch.testing.assert_close(product, each.to_dense() @ x)
    with pytest.raises(ValueError, match="input tree spec"):
        program(t.asformat("csc"), x)
    masked = ow.as_masked_tensor(t)
    result = torch.export.export(Applied(lambda m: m * 2), (masked,), strict=True).module()(masked)
    torch.testing.assert_close(_filled(result), 2 * DENSE)
