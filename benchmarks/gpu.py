"""Kernels on a device: each checked against the CPU, then timed beside torch (cuSPARSE on CUDA), CuPy and a copy.

    python benchmarks/gpu.py                                        a CUDA device, 1e7 and 1e8 elements
    python benchmarks/gpu.py --device opencl --sizes 1e5            a runtime of OpenCL, beside torch on the CPU
    python benchmarks/gpu.py --formats csr coo --report gpu.md      checks of two formats, the table in a file

Times are least ones of rounds in turn, in milliseconds, until the device is done. GB/s counts each operand and the
result once; `copy` is what the device moves between two buffers of its own. Nothing is timed where a check fails.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "device")]

from device_cases import cases, compare  # noqa: E402
from matrix import FORMATS, SHAPES, dense_array  # noqa: E402

import openwork as ow  # noqa: E402
from openwork.errors import UnsupportedError  # noqa: E402

warnings.filterwarnings("ignore", message="Sparse ")
ROUNDS, ROW, BLOCK = 7, 16, 16
Run = Callable[[], Any]


@dataclass
class Contest:
    """One operation of one size, by name of who runs it. moved : bytes of operands and result"""

    name: str
    moved: int
    runs: dict[str, Run] = field(default_factory=dict)


def finish(device: str) -> None:
    """Wait until a device has done all that was launched."""
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "opencl":
        ow.asarray([0.0], device=device).adapter.queue.finish()


def checked(device: str, formats: list[str]) -> tuple[int, int, list[str]]:
    """Cells of formats and operations that are right, those refused by name, and what is wrong."""
    right, refused, wrong = 0, 0, []
    for rank, specs in FORMATS.items():
        for spec in (s for s in specs if not formats or s in formats):
            for case in cases(SHAPES[rank][0]):
                try:
                    compare(case, dense_array(SHAPES[rank][0]), spec, device)
                    right += 1
                except UnsupportedError:
                    refused += 1
                except Exception as error:
                    wrong.append(f"{case[0]} of {spec}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
    return right, refused, wrong


def pattern(nse: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """Rows and columns of about so many elements in order, of a square matrix of 16 a row, and its extent."""
    n = max(BLOCK, nse // ROW // BLOCK * BLOCK)
    drawn = np.random.default_rng(0).integers(0, n * n, nse)
    drawn.sort()
    keys = drawn[np.flatnonzero(np.diff(drawn, prepend=-1))]
    return (keys // n).astype(np.int32), (keys % n).astype(np.int32), n


def contests(device: str, nse: int, peer: str) -> Iterator[Contest]:
    """What is timed at a size; peers on torch's device `peer`."""
    rng = np.random.default_rng(1)
    rows, columns, n = pattern(nse)
    values = rng.standard_normal(len(rows)).astype(np.float32)
    coo = ow.assemble("coo", (n, n), crd={0: rows, 1: columns}, values=values)
    csr = coo.asformat("csr")
    A, A_coo = csr.to(device), coo.to(device)
    T = torch_csr(csr, peer)
    cupy = cupy_of(csr) if peer == "cuda" else None
    size = csr.nbytes

    def dense(*shape: int) -> tuple[Any, Any, Any]:
        x = rng.standard_normal(shape).astype(np.float32)
        there = None if cupy is None else import_module("cupy").asarray(x)
        return ow.asarray(x, device=device), torch.from_numpy(x).to(peer), there

    for name, shape in {"SpMV": (n,), "SpMM 32": (n, 32), "SpMM 128": (n, 128)}.items():
        x, tx, cx = dense(*shape)
        c = Contest(name, size + 8 * int(np.prod(shape)), {"ours": lambda x=x: A @ x, "torch": lambda tx=tx: T @ tx})
        if cupy is not None:
            c.runs["cupy"] = lambda cx=cx: cupy @ cx
        yield c
    (q, tq, _), (k, tk, _) = dense(n, 32), dense(32, n)
    runs: dict[str, Run] = {"ours": lambda: ow.sddmm(A, q, k)}
    runs["torch"] = lambda: torch.sparse.sampled_addmm(T, tq, tk, beta=0.0)
    yield Contest("SDDMM 32", 2 * size + 8 * 32 * n, runs)
    small = max(1, nse // 100)
    r, s, m = pattern(small)
    B_host = ow.assemble("coo", (m, m), crd={0: r, 1: s}, values=np.ones(len(r), np.float32)).asformat("csr")
    B = B_host.to(device)
    TB = torch_csr(B_host, peer)
    yield Contest("SpGEMM, a hundredth", 2 * B_host.nbytes, {"ours": lambda: B @ B, "torch": lambda: TB @ TB})
    TC = torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([rows, columns]).astype(np.int64)), torch.from_numpy(values), (n, n)
    ).to(peer)
    yield Contest(
        "COO to CSR", size + coo.nbytes, {"ours": lambda: A_coo.asformat("csr"), "torch": lambda: TC.to_sparse_csr()}
    )
    blocks = blocked(nse)
    D = blocks.to(device)
    TD = torch.sparse_bsr_tensor(
        *(torch.from_numpy(np.array(x)) for x in (blocks.pos(1), blocks.crd(1))),
        torch.from_numpy(np.array(blocks.values).reshape(-1, BLOCK, BLOCK)), blocks.shape,
    ).to(peer)  # fmt: skip
    x, tx, _ = dense(blocks.shape[1], 32)
    yield Contest(
        "BSR 16 x 16 SpMM 32", blocks.nbytes + 8 * 32 * blocks.shape[0],
        {"ours": lambda: D @ x, "torch": lambda: TD @ tx},
    )  # fmt: skip


def blocked(nse: int) -> Any:
    """A matrix of about so many elements in blocks of 16 x 16, 16 of them in a row of blocks."""
    rows, columns, n = pattern(max(4, nse // BLOCK**2))
    pos = np.searchsorted(rows, np.arange(n + 1)).astype(np.int32)
    values = np.random.default_rng(2).standard_normal(len(columns) * BLOCK**2).astype(np.float32)
    shape = (n * BLOCK, n * BLOCK)
    return ow.assemble(f"bsr({BLOCK}, {BLOCK})", shape, pos={1: pos}, crd={1: columns}, values=values)


def torch_csr(csr: Any, peer: str) -> torch.Tensor:
    """The matrix as torch's."""
    parts = (torch.from_numpy(np.array(x)) for x in (csr.pos(1), csr.crd(1), csr.values))
    return torch.sparse_csr_tensor(*parts, csr.shape).to(peer)


def cupy_of(csr: Any) -> Any:
    """The matrix as CuPy's, None where it is not installed."""
    if find_spec("cupy") is None:
        return None
    cupy, sparse = import_module("cupy"), import_module("cupyx.scipy.sparse")
    parts = tuple(map(cupy.asarray, (csr.values, csr.crd(1), csr.pos(1))))
    return sparse.csr_matrix(parts, shape=csr.shape)


def copied(device: str, moved: int) -> float:
    """Bytes a second of a copy in the device's memory, read and written."""
    n = max(1, moved // 8)
    x = ow.asarray(np.zeros(n, np.float32), device=device)
    return 8 * n / timed(device, device, {"copy": lambda: x * 1})["copy"]


def timed(device: str, peer: str, runs: dict[str, Run]) -> dict[str, float]:
    """The least seconds of each, in turn; the first round compiles."""
    best = dict.fromkeys(runs, float("inf"))
    for round_ in range(ROUNDS + 1):
        for name, run in runs.items():
            where = device if name in ("ours", "copy") else peer
            finish(where)
            start = time.perf_counter()
            run()
            finish(where)
            if round_:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def table(device: str, sizes: list[int], peer: str) -> Iterator[str]:
    """Lines of the table in Markdown."""
    names = ["ours", "torch", *(["cupy"] if peer == "cuda" and find_spec("cupy") else [])]
    yield f"| operation | elements | {' | '.join(f'{n}, ms' for n in names)} | torch / ours | GB/s | copy, GB/s |"
    yield f"| --- | --- |{' --- |' * (len(names) + 3)}"
    for nse in sizes:
        bandwidth = copied(device, 8 * nse)
        for c in contests(device, nse, peer):
            best = timed(device, peer, c.runs)
            cells = [f"{1e3 * best[n]:.3g}" if n in best else "-" for n in names]
            rate = c.moved / best["ours"] / 1e9
            ratio = best["torch"] / best["ours"]
            yield f"| {c.name} | {nse:.0e} | {' | '.join(cells)} | {ratio:.2f} | {rate:.3g} | {bandwidth / 1e9:.3g} |"


def machine(device: str) -> str:
    """What it ran on."""
    adapter = ow.asarray([0.0], device=device).adapter
    name = {"cuda": lambda: torch.cuda.get_device_name(), "opencl": lambda: adapter.hardware.name.strip()}
    found = name.get(device, lambda: device)()
    return f"{found}; openwork {ow.__version__}, torch {torch.__version__}, Python {platform.python_version()}"


def main(arguments: list[str] | None = None) -> int:
    """Check, time, print and write; 1 where a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e7, 1e8], help="elements")
    parser.add_argument("--formats", nargs="*", default=[], help="that are checked; all without")
    parser.add_argument("--report", type=Path, help="a file for what is printed")
    options = parser.parse_args(arguments)
    lines = [f"# Kernels on {options.device}", "", machine(options.device), ""]
    right, refused, wrong = checked(options.device, options.formats)
    lines += [f"{right} cells of formats and operations are those of the CPU, {refused} are refused by name.", ""]
    lines += [f"- wrong: {text}" for text in wrong]
    if not wrong:
        peer = "cuda" if options.device == "cuda" else "cpu"
        lines += [f"torch on {peer}.", "", *table(options.device, [int(s) for s in options.sizes], peer)]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
