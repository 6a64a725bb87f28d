"""The CUDA adapter against a stand-in for cuda.core, which checks arguments, grids, streams and lifetimes, and runs
each kernel by the interpreter of the device form, or by OpenCL."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_cases import cases, compare, same
from matrix import FORMATS, dense_array, tensor

import openwork as ow
from openwork.device import adapter, cuda
from openwork.device.adapter import Memory, Program, adapter_of
from openwork.device.vector import gather
from openwork.errors import UnsupportedError
from openwork.ir.grid_interpret import run_grid
from openwork.ir.loop import Buffer, Grid, Kernel
from openwork.ir.text import parse
from openwork.storage.buffers import numpy_dtype

torch = pytest.importorskip("torch")
optim = import_module("openwork.torch.optim")
STREAM = 0x5EED


def _cubin(ptx: str) -> bytes:
    """What the stand-in makes of PTX."""
    return b"cubin " + hashlib.sha256(ptx.encode()).digest()


class Core:
    """cuda.core as the adapter uses it. kernels : by their cubin; run : executes one"""

    __version__ = "stand-in"

    def __init__(self, run: Callable[[Kernel, dict[str, Any], int], None]) -> None:
        self.kernels: dict[bytes, Kernel] = {}
        self.alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.launches: list[str] = []
        self.graph: list[tuple[Kernel, dict[str, Any], int]] | None = None
        """what is captured: a graph keeps its memory"""
        self.compiled = 0
        self.run = run
        core = self

        class ProgramOptions:
            def __init__(self, *, arch: str) -> None:
                assert arch == "sm_90"

        class Program:
            def __init__(self, code: str, code_type: str, options: Any) -> None:
                assert code_type == "ptx"
                assert isinstance(options, ProgramOptions)
                assert ".target sm_90" in code
                self.ptx = code

            def compile(self, target_type: str) -> Any:
                assert target_type == "cubin"
                core.compiled += 1
                return type("Compiled", (), {"code": _cubin(self.ptx)})

        class ObjectCode:
            def __init__(self, cubin: bytes) -> None:
                self.kernel = core.kernels[cubin]

            @staticmethod
            def from_cubin(module: bytes, *, name: str = "") -> Any:
                return ObjectCode(module)

            def get_kernel(self, name: str) -> Kernel:
                assert name == self.kernel.name
                return self.kernel

        class LaunchConfig:
            def __init__(self, *, grid: int, block: int) -> None:
                assert 0 < grid < 2**31
                self.grid, self.block = grid, block

        self.ObjectCode, self.LaunchConfig = ObjectCode, LaunchConfig
        self.Program, self.ProgramOptions = Program, ProgramOptions

    def launch(self, stream: Any, config: Any, kernel: Kernel, *values: Any) -> None:
        assert stream.__cuda_stream__() == (0, STREAM)
        assert kernel.grid is not None
        assert config.block == kernel.grid.items
        arguments: dict[str, Any] = {}
        assert len(values) == len(kernel.params)
        for p, value in zip(kernel.params, values, strict=True):
            if isinstance(p, Buffer):
                assert type(value) is int
                memory = self.alive[value]  # KeyError: a buffer that has been freed
                assert memory.nbytes % 8 == 0
                arguments[p.name] = memory.numpy()
                assert arguments[p.name].dtype == numpy_dtype(p.scalar)
            else:
                assert value.dtype == numpy_dtype(p.scalar)
                arguments[p.name] = value
        self.launches.append(kernel.name)
        if self.graph is not None:
            self.graph.append((kernel, arguments, config.grid))
        self.run(kernel, arguments, config.grid)


def _on_opencl(kernel: Kernel, arguments: dict[str, Any], groups: int) -> None:
    """Run a kernel on OpenCL: buffers are copied there and back."""
    device = adapter_of("opencl")
    moved = {
        p.name: device.of(arguments[p.name], p.scalar) if isinstance(p, Buffer) else arguments[p.name]
        for p in kernel.params
    }
    Program(kernel)(device, moved, groups)
    for p in kernel.params:
        if isinstance(p, Buffer) and p.mutable:
            arguments[p.name][:] = moved[p.name].to_numpy()


class Recorded(cuda.Cuda):
    """The adapter over torch's memory on the CPU, with small groups, and the stand-in as its driver."""

    def stream(self) -> Any:
        return cuda._Stream(STREAM)

    def is_capturing(self) -> bool:
        return self.core.graph is not None

    def allocate(self, n: int, scalar: str) -> Any:
        handle = super().allocate(n, scalar)
        self.core.alive[handle.data_ptr()] = handle
        return handle

    def given(self, x: object) -> Memory | None:
        memory = super().given(x)
        if memory is not None:
            self.core.alive[memory.handle.data_ptr()] = memory.handle
        return memory


def _recorded(monkeypatch: Any, run: Callable[[Kernel, dict[str, Any], int], None], grid: Grid) -> Recorded:
    core, plain = Core(run), cuda.ptx_of

    def ptx_of(kernel: Kernel, architecture: str) -> str:
        text = plain(kernel, architecture)
        assert f".visible .entry {kernel.name}(" in text
        core.kernels[_cubin(text)] = kernel
        return text

    monkeypatch.setattr(cuda, "ptx_of", ptx_of)
    device = Recorded(core, "cpu", "sm_90")
    device.grid = grid
    monkeypatch.setitem(adapter._adapters, "cuda", device)
    return device


@pytest.fixture
def recorded(monkeypatch: Any) -> Recorded:
    return _recorded(monkeypatch, run_grid, Grid(8, 4))


@pytest.mark.parametrize("spec", ["csr", "coo"])
def test_calls_of_the_driver_are_those_that_it_takes_and_give_what_the_host_gives(
    recorded: Recorded, spec: str
) -> None:
    wanted = {"csr": ("A @ x", "A * 2"), "coo": ("A @ x",)}[spec]
    host = tensor(dense_array((4, 6)), spec)
    there = host.to("cuda")
    assert there.adapter is recorded
    for name, function, shapes in cases((4, 6)):
        if name in wanted:
            dense = [np.arange(1.0, 1 + np.prod(s)).reshape(s) for s in shapes]
            operands = [ow.asarray(x, device="cuda") for x in dense]
            same(function(there, *operands), function(host, *dense), name)
    assert recorded.core.launches
    assert isinstance(there.values, torch.Tensor)


@pytest.mark.opencl
@pytest.mark.parametrize("spec", [s for s in FORMATS[2] if "nonunique" not in s])
def test_the_list_of_operations_by_the_driver_with_kernels_run_by_opencl(monkeypatch: Any, spec: str) -> None:
    recorded = _recorded(monkeypatch, _on_opencl, Grid(128, 32))
    for case in cases((8, 12)):
        if case[0] in ("A @ x", "x @ A", "A @ X", "sddmm", "A + B", "sum 0", "log_softmax 1"):
            compare(case, dense_array((8, 12)), spec, "cuda")
    assert recorded.core.launches


def test_cubins_are_kept_on_disk(recorded: Recorded, monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    kernel = parse("def twice(y: f32[mut]):  # grid of 8, subgroups of 4\n    y[item] += y[item]")
    for compiled in (1, 1):
        y = recorded.of(np.arange(8.0), "f32")
        Program(kernel)(recorded, {"y": y}, 1)
        np.testing.assert_array_equal(y.to_numpy(), 2 * np.arange(8.0))
        assert recorded.core.compiled == compiled


def test_tensors_over_torch_are_moved(recorded: Recorded) -> None:
    A = ow.asarray(torch.eye(3), format="csr")
    same(A.to("cuda"), ow.asarray(np.eye(3, dtype="float32"), format="csr"), "torch's values")


def test_a_buffer_that_was_freed_is_found(recorded: Recorded) -> None:
    x = recorded.of(np.arange(5), "i64")
    gone = Memory(recorded, "i64", 5, type("Gone", (), {"data_ptr": lambda self: 8})())
    with pytest.raises(KeyError):
        gather(gone, x)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"device 'cuda': (cuda.core is not installed|torch finds no CUDA)"):
        tensor(dense_array((4, 6)), "csr").to("cuda")


@pytest.mark.opencl
def test_the_benchmark_checks_and_times_what_it_lists(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    gpu = import_module("gpu")
    report = tmp_path / "gpu.md"
    assert gpu.main(["--device", "opencl", "--sizes", "1e3", "--formats", "bitmap", "--report", str(report)]) == 0
    lines = report.read_text(encoding="utf-8").splitlines()
    assert "0 are refused by name" in next(line for line in lines if "cells of formats" in line)
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| ")][2:] == [
        "SpMV", "SpMM 32", "SpMM 128", "SDDMM 32", "SpGEMM, a hundredth", "COO to CSR", "BSR 16 x 16 SpMM 32",
    ]  # fmt: skip


GRAPHS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    name: (function, shapes)
    for name, function, shapes in cases((4, 6))
    if name
    in ("A @ x", "x @ A", "A @ X", "sddmm", "A * 2", "sum 1", "max 0", "softmax 1", "einsum of three", "A * row")
}


@pytest.mark.parametrize("name", [*GRAPHS, "softmax of products"])
def test_a_call_of_fixed_structure_is_captured_and_replayed(recorded: Recorded, name: str) -> None:
    """A graph is the launches alone: run once more, they follow what the operands' memory holds then."""
    function, shapes = GRAPHS.get(name, (lambda A, x, y: ow.softmax(ow.sddmm(A, x, y), 1), ((4, 3), (3, 6))))
    host = tensor(dense_array((4, 6)), "csr")
    there, dense = host.to("cuda"), [np.arange(1.0, 1 + np.prod(s)).reshape(s) for s in shapes]
    operands = [ow.asarray(x, device="cuda") for x in dense]
    function(there, *operands)
    recorded.core.graph = graph = []
    found = function(there, *operands)
    recorded.core.graph = None
    assert graph
    there.memory.handle.mul_(2)
    for x in operands:
        x.memory.handle.add_(1)
    for kernel, arguments, grid in graph:
        run_grid(kernel, arguments, grid)
    same(found, function(host * 2, *(x + 1 for x in dense)), name)


def test_what_can_not_be_captured_is_refused_by_name(recorded: Recorded) -> None:
    A = tensor(dense_array((4, 6)), "csr").to("cuda")
    x = ow.asarray(np.ones(6), device="cuda")
    x[::2]  # so that all of its kernels are there
    B = A.asformat("coo")
    (A + B).asformat("csc")
    recorded.core.graph = []
    for match, run in {
        r"matmul on cpu: capture of a CUDA graph: a kernel is not compiled yet": lambda: A @ x,
        r"add on cpu: capture of a CUDA graph: the host reads a number": lambda: A + B,
        r"indexing on cpu: capture of a CUDA graph: ": lambda: x[::2],
        r"asformat on cpu: capture of a CUDA graph: the host reads a number": lambda: A.asformat("csc"),
        r"capture of a CUDA graph: elements come from the host": lambda: ow.asarray(np.ones(6), device="cuda"),
    }.items():
        with pytest.raises(UnsupportedError, match=match):
            run()


# -- gradients -------------------------------------------------------------------------------------------------------

RECORDED: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A @ x": (lambda A, x: A @ x, ((6,),)),
    "A @ X": (lambda A, x: A @ x, ((6, 3),)),
    "x @ A": (lambda A, x: x @ A, ((4,),)),
    "chain": (lambda A, x, y: ow.einsum("ij,jk,kl->il", A, x, y), ((6, 2), (2, 3))),
    "rows": (lambda A: ow.sum(A, axis=1), ()),
    "mean": (lambda A: ow.mean(A), ()),
    "softmax": (lambda A: ow.softmax(A * 2, 1), ()),
    "expm1": (lambda A: ow.expm1(A), ()),
    "A * row": (lambda A, x: A * x, ((6,),)),
    "sampled": (lambda A, x, y: ow.einsum("ij,j,i->ij", A, x, y), ((6,), (4,))),
    "sddmm": (lambda A, x, y: ow.multiply(A, ow.sddmm(A, x, y)), ((4, 3), (3, 6))),
}
SPARSE = ("softmax", "expm1", "A * row", "sampled", "sddmm")
"""Those whose result is as sparse as A: what it has in padding is nobody's."""


def derivatives(name: str, spec: str, device: str) -> list[Any]:
    """First and second derivatives of a function of the values and the dense operands."""
    function, shapes = RECORDED[name]
    generator = torch.Generator().manual_seed(0)
    A = ow.asarray(torch.from_numpy(dense_array((4, 6))), format=ow.format(spec, 2)).requires_grad_()
    x = [torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes]
    operands = [A, *x] if device == "cpu" else [A.to(device), *(ow.asarray(v).to(device) for v in x)]
    y = function(*operands)
    values = (y if isinstance(y, torch.Tensor) else y.values).reshape(-1)
    leaves = [A.values, *x]
    first = torch.autograd.grad((values**3).sum(), leaves, create_graph=True)
    return [*first, *torch.autograd.grad(sum((g**2).sum() for g in first), leaves)]


def test_gradients_of_products_are_products(recorded: Recorded) -> None:
    for found, want in zip(derivatives("A @ x", "csr", "cuda"), derivatives("A @ x", "csr", "cpu"), strict=True):
        torch.testing.assert_close(found, want)


@pytest.mark.opencl
@pytest.mark.parametrize("spec", ["csr", "coo", "csc", "bsr(2, 3)", "dcsr", "dia", "ell(6)", "bitmap", "dense"])
def test_gradients_of_both_orders_are_those_of_the_host(monkeypatch: Any, spec: str) -> None:
    _recorded(monkeypatch, _on_opencl, Grid(128, 32))
    for name in RECORDED:
        if not (name in SPARSE and spec in ("dia", "ell(6)", "bitmap")):
            for found, want in zip(derivatives(name, spec, "cuda"), derivatives(name, spec, "cpu"), strict=True):
                torch.testing.assert_close(found, want, msg=lambda text, name=name: f"{name} of {spec}: {text}")


@pytest.mark.opencl
@pytest.mark.parametrize("lead", [(), (2, 4)])
def test_gradients_of_attention_are_those_of_the_host(monkeypatch: Any, lead: tuple[int, ...]) -> None:
    _recorded(monkeypatch, _on_opencl, Grid(128, 32))
    mask, pair = ow.asarray(dense_array((8, 12)), format="csr"), (2, 2) if lead else ()
    q, k, v = (
        torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((*lead, 8, 4), (*pair, 12, 4), (12, 4))
    )
    options = {"is_causal": True, "enable_gqa": bool(lead)}
    v = v.expand(*pair, 12, 4).clone().detach().requires_grad_()
    want = torch.autograd.grad((ow.nn.attend(mask, q, k, v, **options) ** 3).sum(), [q, k, v])
    there = ow.nn.attend(mask.to("cuda"), *(ow.asarray(x).to("cuda") for x in (q, k, v)), **options)
    for found, expected in zip(torch.autograd.grad((there.values**3).sum(), [q, k, v]), want, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("device", ["interpreter", "cuda"])
def test_dropout_of_attention_is_drawn_on_the_device(recorded: Recorded, device: str) -> None:
    """Of equal scores the result is the part of the keys that are kept, over the part that is to be."""
    mask = ow.asarray(np.ones((2, 200)), format="csr").to(device)
    operands = [ow.asarray(np.ones(s), device=device) for s in ((2, 1), (200, 1), (200, 1))]
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(ow.nn.attend(mask, *operands, dropout=0.25).to_numpy())
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    np.testing.assert_allclose(found[0], 1, atol=0.2)
    kept = found[0] * 0.75 * 200
    np.testing.assert_allclose(kept, np.round(kept), rtol=1e-12)


@pytest.mark.ci
def test_no_gradient_is_lost_in_silence(recorded: Recorded) -> None:
    A = ow.asarray(torch.eye(3), format="csr").requires_grad_().to("cuda")
    for name, run in {
        "var": lambda: ow.var(A, axis=0), "matmul": lambda: A @ A, "indexing": lambda: A[0],
        "asformat": lambda: A.asformat("csc"), "to 'cpu'": lambda: A.to("cpu"), "max": lambda: ow.max(A, axis=1),
    }.items():  # fmt: skip
        with pytest.raises(UnsupportedError, match=rf"{name}[\s\S]*torch records"):
            run()
    assert A.detach().asformat("csc").format == ow.format("csc", 2)
    with torch.no_grad():
        assert ow.max(A, axis=1).graph is None
    with pytest.raises(UnsupportedError, match=r"to 'interpreter': torch records the values[\s\S]*detach"):
        ow.asarray(torch.eye(3), format="csr").requires_grad_().to("interpreter")


# -- optimizers ------------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "SparseAdam": lambda p: optim.SparseAdam(p, lr=0.1),
    "SparseAdam by all": lambda p: optim.SparseAdam(p, lr=0.1, steps="all"),
    "Adagrad by rows": lambda p: optim.Adagrad(p, lr=0.1, rowwise=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_parameters_there_are_those_of_the_host(recorded: Recorded, name: str) -> None:
    """A parameter of a product on the device, and values of the sparse tensor; rows by a sparse gradient too."""
    trained = []
    for device in ("cpu", "cuda"):
        X = torch.ones(6, 2, dtype=torch.float64, requires_grad=True)
        A = ow.asarray(torch.from_numpy(dense_array((4, 6))), format="csr").requires_grad_()
        optimizer = OPTIMIZERS[name]([X, A.values])
        for step in range(3):
            operands = (A, X) if device == "cpu" else (A.to("cuda"), ow.asarray(X).to("cuda"))
            y = operands[0] @ operands[1]
            optimizer.zero_grad()
            ((y if device == "cpu" else y.values).reshape(-1) ** 2).sum().backward()
            if step:
                X.grad = X.grad[:2].to_sparse(1).coalesce().sparse_resize_((6, 2), 1, 1)
            optimizer.step()
        trained += [X.detach().clone(), A.values.detach().clone()]
    for found, want in zip(trained[2:], trained[:2], strict=True):
        torch.testing.assert_close(found, want)


def test_a_parameter_that_torch_can_not_hold_is_refused_by_name() -> None:
    for parameters in (there := ow.asarray(np.ones((3, 2)), device="interpreter"), [there]):
        with pytest.raises(UnsupportedError, match=r"a parameter on interpreter\n  got: \(i, j\)"):
            optim.SGD(parameters)
