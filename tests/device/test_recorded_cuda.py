"""The CUDA adapter against a stand-in for cuda.core, which checks arguments, grids, streams and lifetimes, and runs
each kernel by the interpreter of the device form."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from device_cases import cases, same
from matrix import dense_array, tensor

from openwork.device import cuda
from openwork.device.adapter import Memory
from openwork.device.tensor import upload
from openwork.device.vector import gather
from openwork.errors import UnsupportedError
from openwork.ir.grid_interpret import run_grid
from openwork.ir.loop import Buffer, Grid, Kernel
from openwork.storage.buffers import numpy_dtype

torch = pytest.importorskip("torch")
STREAM = 0x5EED


class Core:
    """cuda.core as the adapter uses it. kernels : by their PTX"""

    def __init__(self) -> None:
        self.kernels: dict[bytes, Kernel] = {}
        self.alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.launches: list[str] = []
        core = self

        class ObjectCode:
            def __init__(self, ptx: bytes, name: str) -> None:
                assert f".visible .entry {name}(".encode() in ptx
                self.kernel = core.kernels[ptx]

            @staticmethod
            def from_ptx(module: bytes, *, name: str = "") -> Any:
                return ObjectCode(module, name)

            def get_kernel(self, name: str) -> Kernel:
                assert name == self.kernel.name
                return self.kernel

        class LaunchConfig:
            def __init__(self, *, grid: int, block: int) -> None:
                assert 0 < grid < 2**31
                self.grid, self.block = grid, block

        self.ObjectCode, self.LaunchConfig = ObjectCode, LaunchConfig

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
        run_grid(kernel, arguments, config.grid)


class Recorded(cuda.Cuda):
    """The adapter over torch's memory on the CPU, with small groups, and the stand-in as its driver."""

    grid = Grid(8, 4)

    def stream(self) -> Any:
        return cuda._Stream(STREAM)

    def allocate(self, n: int, scalar: str) -> Any:
        handle = super().allocate(n, scalar)
        self.core.alive[handle.data_ptr()] = handle
        return handle


@pytest.fixture
def recorded(monkeypatch: Any) -> Recorded:
    core = Core()
    plain = cuda.ptx_of

    def ptx_of(kernel: Kernel, architecture: str) -> str:
        text = plain(kernel, architecture)
        core.kernels[text.encode()] = kernel
        return text

    monkeypatch.setattr(cuda, "ptx_of", ptx_of)
    return Recorded(core, "cpu", "sm_90")


@pytest.mark.parametrize("spec", ["csr", "coo"])
def test_calls_of_the_driver_are_those_that_it_takes_and_give_what_the_host_gives(
    recorded: Recorded, spec: str
) -> None:
    wanted = {"csr": ("A @ x", "A * 2"), "coo": ("A @ x",)}[spec]
    host = tensor(dense_array((4, 6)), spec)
    there = upload(host, recorded)
    for name, function, shapes in cases((4, 6)):
        if name in wanted:
            dense = [np.arange(1.0, 1 + np.prod(s)).reshape(s) for s in shapes]
            operands = [upload(tensor(x, "dense"), recorded) for x in dense]
            same(function(there, *operands), function(host, *dense), name)
    assert recorded.core.launches
    assert isinstance(there.values, torch.Tensor)


def test_a_buffer_that_was_freed_is_found(recorded: Recorded) -> None:
    x = recorded.of(np.arange(5), "i64")
    gone = Memory(recorded, "i64", 5, type("Gone", (), {"data_ptr": lambda self: 8})())
    with pytest.raises(KeyError):
        gather(gone, x)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"device 'cuda.core': (cuda.core is not installed|torch finds no CUDA)"):
        tensor(dense_array((4, 6)), "csr").to("cuda.core")
