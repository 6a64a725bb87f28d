"""Every allocation of an operation fails in turn: a MemoryError, operands as they were, no leak, the next call right.

`PYTHONPATH=src python tests/test_fault_injection.py` prints how many points there are of each operation.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from faulty import allocator, leaks, relink_kernels, sweep

import openwork as ow
from openwork.faults import reach
from openwork.runtime.check import check
from openwork.storage import buffers

Operation = Callable[[dict[str, Any]], Any]


def operands(n: int = 12, density: float = 0.2) -> dict[str, Any]:
    """Tensors and arrays that every operation below takes what it needs of."""
    rng = np.random.default_rng(5)
    A, B = (ow.random((n, n), density, format="csr", rng=rng) for _ in range(2))
    return {
        "A": A, "B": B, "C": A.asformat("csc"), "O": B.asformat("coo"), "D": A.asformat("bsr(2, 2)"),
        "G": A.asformat("dia"), "x": rng.random(n), "X": rng.random((n, 3)),
        "T": ow.random((n, 4, 5), density, format="csf", rng=rng), "dense": A.to_numpy(), "scipy": A.to_scipy(),
    }  # fmt: skip


OPERATIONS: dict[str, Operation] = {
    "product csr": lambda o: o["A"] @ o["x"],
    "product from the left": lambda o: o["x"] @ o["A"],
    "product coo": lambda o: o["O"] @ o["X"],
    "product csc": lambda o: o["C"] @ o["X"],
    "product bsr": lambda o: o["D"] @ o["X"],
    "product dia": lambda o: o["G"] @ o["x"],
    "spgemm": lambda o: o["A"] @ o["B"],
    "spgemm csc coo": lambda o: o["C"] @ o["O"],
    "spgemm min_plus": lambda o: ow.spgemm(o["A"], o["B"], semiring="min_plus", mask=o["A"]),
    "sddmm": lambda o: ow.sddmm(o["A"], o["X"], o["X"].T),
    "merge +": lambda o: o["A"] + o["B"],
    "merge *": lambda o: o["A"] * o["B"],
    "merge of two formats": lambda o: o["A"] - o["C"],
    "merge of three": lambda o: ow.pointwise("A * B + C", {"A": o["A"], "B": o["B"], "C": o["C"]}),
    "merge csf": lambda o: o["T"] * o["T"] + o["T"],
    "merge with a dense array": lambda o: o["A"] * o["x"],
    "unary": lambda o: ow.sin(o["A"]),
    "comparison": lambda o: o["A"] > 0.5,
    "convert csr csc": lambda o: o["A"].asformat("csc"),
    "convert coo csr": lambda o: o["O"].asformat("csr"),
    "convert csr bsr": lambda o: o["A"].asformat("bsr(3, 2)"),
    "convert csr dia": lambda o: o["A"].asformat("dia"),
    "convert csr dcsr": lambda o: o["A"].asformat("dcsr"),
    "convert csr ell": lambda o: o["A"].asformat(f"ell({o['A'].shape[1]})"),
    "convert csr bitmap": lambda o: o["A"].asformat("bitmap"),
    "convert csr dense": lambda o: o["A"].to_numpy(),
    "convert csf": lambda o: o["T"].asformat("(i, j, k) -> (k : compressed, i : compressed, j : compressed)"),
    "slice": lambda o: o["A"][2:9, ::2],
    "index with arrays": lambda o: o["A"][[0, 3, 3], :],
    "index with a mask": lambda o: o["A"][o["A"] > 0.5],
    "set elements": lambda o: o["A"].at[1:4, 2].set(7.0),
    "set in place": lambda o: _set(o["A"].clone()),
    "multiply in place": lambda o: _multiply(o["A"].clone()),
    "sum over an axis": lambda o: ow.sum(o["A"], axis=0),
    "sum of all": lambda o: ow.sum(o["T"]),
    "largest": lambda o: ow.max(o["C"], axis=1),
    "variance": lambda o: ow.var(o["A"], axis=0),
    "argmax": lambda o: ow.argmax(o["A"], axis=1),
    "einsum": lambda o: ow.einsum("ij,jk,k->i", o["A"], o["B"], o["x"]),
    "einsum of rank 3": lambda o: ow.einsum("ijk,k->ij", o["T"], np.ones(5)),
    "fused": lambda o: ow.compute(ow.lazy(o["A"]) * 2 + ow.lazy(o["B"])),
    "sort": lambda o: ow.sort(o["A"], axis=1),
    "unique": lambda o: ow.unique_values(o["A"]),
    "concat": lambda o: ow.concat([o["A"], o["B"]], axis=1),
    "reshape": lambda o: ow.reshape(o["A"], (6, 24)),
    "kron": lambda o: ow.kron(o["A"], o["B"]),
    "roll": lambda o: ow.roll(o["A"], 3, axis=0),
    "softmax": lambda o: ow.softmax(o["A"], axis=1),
    "triangle": lambda o: ow.tril(o["A"]),
    "asarray of an array": lambda o: ow.asarray(o["dense"], format="csr"),
    "asarray of scipy": lambda o: ow.asarray(o["scipy"], format="coo", copy=True),
    "assemble": lambda o: ow.assemble("csr", None, pos={1: [0, 1, 2]}, crd={1: [0, 1]}, values=[1.0, 2.0]),
    "sparse_coo_tensor": lambda o: ow.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [1.0, 2.0, 3.0], (3, 4)).coalesce(),
    "random": lambda o: ow.random((9, 9), 0.3, format="csr", rng=np.random.default_rng(3)),
    "to scipy": lambda o: o["D"].to_scipy(),
    "print": lambda o: str(o["A"]),
    "masked sum": lambda o: _masked(o).sum(0).filled(-1.0),
    "masked product": lambda o: (_masked(o) * _masked(o)).filled(-1.0),
}  # fmt: skip
LARGE = ("product csc", "spgemm", "merge +", "convert csr csc", "convert csr bsr", "sum over an axis")
"""Those that also run on operands large enough for several threads and blocks of pages."""


WITH_WORKSPACES = ("spgemm", "spgemm min_plus", "merge +", "convert csr csc", "convert csr bsr", "einsum", "sort")
"""Those whose kernels allocate, which are linked anew, in a process of its own."""


def _set(A: ow.Tensor) -> ow.Tensor:
    A[3, 4:7] = 2.0
    return A


def _multiply(A: ow.Tensor) -> ow.Tensor:
    A *= 3
    return A


def _masked(o: dict[str, Any]) -> Any:
    return ow.masked_tensor(o["A"], o["A"] != 0)


def plain(x: Any) -> Any:
    """What a result consists of, as arrays that can be compared."""
    x = getattr(x, "_tensor", x)
    if isinstance(x, ow.Tensor):
        s = x._storage
        return [s.shape, str(s.format), s.fill_value, *(np.array(buffers.to_numpy(b, detach=True)) for b in s.buffers)]
    if scipy.sparse.issparse(x):
        return [x.format, x.toarray()]
    return [x if isinstance(x, str) else np.array(buffers.to_numpy(x) if buffers.is_array(x) else x)]


def same(a: Any, b: Any) -> None:
    a, b = plain(a), plain(b)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def tried(act: Operation, given: dict[str, Any], forget: Callable[[], None] = lambda: None) -> int:
    """Points of an operation that were made to fail."""
    wanted = act(given)
    kept = {name: plain(x) for name, x in given.items()}

    def judge(state: None, result: Any, error: BaseException | None) -> None:
        if error is None:
            same(result, wanted)
        for name, x in given.items():
            for before, now in zip(kept[name], plain(x), strict=True):
                np.testing.assert_array_equal(before, now)
        same(act(given), wanted)
        forget()

    forget()
    points = sweep("allocate", lambda: None, lambda _: act(given), judge)
    for x in given.values():
        if isinstance(x, ow.Tensor):
            check(x._storage)
    return points


@pytest.mark.thin(21)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_allocation_of_an_operation(name: str) -> None:
    given = operands()

    def forget() -> None:
        for x in given.values():
            if isinstance(x, ow.Tensor):
                x._storage._facts = x._storage._structure = None

    points = tried(OPERATIONS[name], given, forget)
    assert points > 0 or name == "print"
    assert max(leaks(lambda: tried(OPERATIONS[name], given, forget))) <= 0


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = ow.get_num_threads()
    ow.set_num_threads(n)
    try:
        yield
    finally:
        ow.set_num_threads(before)


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", LARGE)
def test_every_allocation_of_a_large_operation(name: str) -> None:
    with threads(2):
        assert tried(OPERATIONS[name], operands(500, 0.04)) > 0


@pytest.mark.ci
def test_every_workspace_of_a_kernel() -> None:
    run = subprocess.run(
        [sys.executable, __file__, *WITH_WORKSPACES], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found = {line[:40].strip(): int(line.split()[-1]) for line in run.stdout.splitlines()}
    assert found.keys() == set(WITH_WORKSPACES)
    assert sum(n > 0 for n in found.values()) >= 3, run.stdout


def torch_operands() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    A, B = (ow.random((9, 9), 0.3, format="csr", rng=np.random.default_rng(k)).to_torch() for k in (1, 2))
    return {"A": ow.asarray(A), "B": ow.asarray(B), "X": torch.ones(9, 2, dtype=torch.float64)}


def _backward(o: dict[str, Any], act: Operation) -> Any:
    A = o["A"].clone().requires_grad_()
    found = act({**o, "A": A})
    (found.values if isinstance(found, ow.Tensor) else found).sum().backward()
    return A.grad


TORCH_OPERATIONS: dict[str, Operation] = {
    "product": lambda o: o["A"] @ o["X"],
    "spgemm": lambda o: o["A"] @ o["B"],
    "merge": lambda o: o["A"] + o["B"],
    "convert": lambda o: o["A"].asformat("csc"),
    "index": lambda o: o["A"][1:5, [0, 2]],
    "sum": lambda o: ow.sum(o["A"], axis=0),
    "multiply in place": lambda o: _multiply(o["A"].clone()),
    "backward of a product": lambda o: _backward(o, lambda o: o["A"] @ o["X"]),
    "backward of a product of two": lambda o: _backward(o, lambda o: o["A"] @ o["B"]),
    "backward of a sum": lambda o: _backward(o, lambda o: o["A"] * o["B"] + o["A"]),
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", TORCH_OPERATIONS)
def test_every_allocation_over_torch_buffers(name: str) -> None:
    """Whatever torch is asked to do fails too, its own backward steps included: each is an allocation."""
    given = torch_operands()
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reaching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if not func.is_view:
                reach("allocate")
            return func(*args, **(kwargs or {}))

    def act(o: dict[str, Any]) -> Any:
        with Reaching():
            return TORCH_OPERATIONS[name](o)

    assert tried(act, given) > 0


def main(names: list[str]) -> None:
    """Print the points of each operation, and how many of them are workspaces of kernels."""
    relink_kernels(pytest.MonkeyPatch())
    for name in names:
        with threads(1):
            points = tried(OPERATIONS[name], operands())
        print(f"{name:40} {points:6} {allocator().workspaces:6}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(OPERATIONS))
