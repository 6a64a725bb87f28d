"""Registers and spills of the kernels of the format matrix on NVIDIA's GPUs, as ptxas says: a table by statement.

    python tools/ptx.py                         every kernel for sm_80, sm_90 and sm_100
    python tools/ptx.py --arch sm_90 --each     a line for each kernel

ptxas is that of the path, or of the PyPI package nvidia-cuda-nvcc. Nothing is launched.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from matrix import FORMATS, SHAPES, dense_array, tensor  # noqa: E402

from openwork import linalg  # noqa: E402
from openwork.codegen.device_targets import device  # noqa: E402
from openwork.codegen.emit_device import emit_device  # noqa: E402
from openwork.codegen.engine import device_assembly  # noqa: E402
from openwork.compiler.operand import Operand  # noqa: E402
from openwork.device import hashed_products, vector  # noqa: E402
from openwork.device.coordinates import walk_of  # noqa: E402
from openwork.device.interpreter import Interpreter  # noqa: E402
from openwork.device.statements import LONG, SHARED, plan_of  # noqa: E402
from openwork.device.tensor import upload  # noqa: E402
from openwork.ir.index_text import parse  # noqa: E402
from openwork.ir.loop import Grid, Kernel  # noqa: E402
from openwork.runtime.operand_type import operand_of  # noqa: E402

GRID = Grid(128, 32)
STATEMENTS = {
    0: {"sum": "y[] += A[]"},
    1: {"dot": "y[] += A[i] * B[i]", "A * x": "C[i] += A[i] * B[i]"},
    2: {
        "SpMV": "y[i] += A[i,j] * B[j]", "SpMV, transposed": "y[j] += A[i,j] * B[i]",
        "SpMM": "D[i,k] += A[i,j] * B[j,k]", "SDDMM": "C[i,j] += A[i,j] * B[i,k] * E[k,j]",
        "row scaling": "C[i,j] += A[i,j] * B[i]", "sum": "y[] += A[i,j]", "max of rows": "y[i] max= A[i,j]",
        "to dense": "D[i,j] += A[i,j]", "chain": "y[i] += A[i,j] * B[j,k] * E[k,l]",
    },
    3: {
        "MTTKRP": "D[i,r] += A[i,j,k] * B[j,r] * E[k,r]", "TTV": "y[i,j] += A[i,j,k] * B[k]",
        "TTM": "D[i,j,r] += A[i,j,k] * B[k,r]", "sum": "y[k] += A[i,j,k]",
    },
    4: {"product": "D[a,r] += A[a,b,c,d] * B[d,r]", "sum": "y[b,d] += A[a,b,c,d]"},
}  # fmt: skip


class Recorder(Interpreter):
    """The interpreter with groups of a GPU's size, which keeps the kernels that it is asked to compile."""

    name = "recorder"
    grid = GRID

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []

    def compile(self, kernel: Kernel) -> None:
        self.kernels.append(kernel)


def kernels(scalar: str) -> Iterator[tuple[str, str, Kernel]]:
    """Statement, format and kernel of each cell of the matrix, by each mapping that differs, and of the vectors."""
    for rank, specs in FORMATS.items():
        for spec in specs:
            sparse = operand_of(tensor(dense_array(SHAPES[rank][0], dtype=scalar_dtype(scalar)), spec)._storage)
            for name, text in STATEMENTS[rank].items():
                stmt, seen = parse(text), set()
                types = {"A": sparse}
                for a in stmt.accesses:
                    types.setdefault(a.tensor, Operand(scalar, len(a.indices), unit=len(a.indices) - 1))
                out = stmt.lhs
                dense = Operand(scalar, len(out.indices), unit=max(0, len(out.indices) - 1))
                types[out.tensor] = replace(sparse, scalar=scalar) if out.tensor == "C" else dense
                for row in (0, SHARED, LONG):
                    kernel = plan_of(stmt, tuple(sorted(types.items())), row, scalar, GRID).program.kernel
                    if kernel not in seen:
                        seen.add(kernel)
                        yield name, spec, kernel
            for d in range(rank):
                yield "coordinates", spec, walk_of(sparse, d, GRID)[0].kernel
    recorder = Recorder()
    x = recorder.of(np.arange(200) % 7, "i64")
    vector.gather(x, vector.chosen(vector.heads([vector.gather(x, vector.order_of([(x, 7), (x, 7)]))])))
    vector.lower_bound(x, 0, 4)
    for kernel in recorder.kernels:
        yield "scan, sort, search", "vectors", kernel
    recorder.kernels.clear()
    matrix = upload(tensor((np.ones((6, 6)) + 9 * np.eye(6)).astype(scalar_dtype(scalar)), "csr"), recorder)
    b = upload(tensor(np.ones(6, scalar_dtype(scalar)), "dense"), recorder)
    linalg.solve_triangular(matrix, b)
    linalg.cg(matrix, b, maxiter=20)
    yield from (("systems", "csr", kernel) for kernel in dict.fromkeys(recorder.kernels))
    recorder.kernels.clear()
    matrix @ matrix
    hashed_products.LOCAL = 0
    matrix @ matrix
    yield from (("SpGEMM", "csr", kernel) for kernel in dict.fromkeys(recorder.kernels))


def scalar_dtype(scalar: str) -> str:
    """NumPy's name of a scalar type."""
    return {"f32": "float32", "f64": "float64"}[scalar]


def ptxas() -> str:
    """The assembler."""
    spec = importlib.util.find_spec("nvidia")
    homes = [Path(p) for p in spec.submodule_search_locations or ()] if spec else []
    found = shutil.which("ptxas") or next((str(p) for home in homes for p in home.glob("*/bin/ptxas")), None)
    if found is None:
        raise SystemExit("ptxas is not installed: pip install nvidia-cuda-nvcc")
    return found


def assembled(found: list[tuple[str, str, Kernel]], arch: str) -> dict[int, tuple[int, int]]:
    """Registers and bytes of spills of each kernel, all assembled as one module."""
    row = device("cuda", arch)
    head, bodies = "", []
    for number, (_, _, kernel) in enumerate(found):
        ptx = device_assembly(emit_device(replace(kernel, name=f"kernel_{number}"), row), row.target)
        at = ptx.index(".address_size 64") + len(".address_size 64")
        head = head or ptx[:at]
        bodies.append(ptx[at:])
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.ptx"
        source.write_text("\n".join([head, *bodies]))
        command = [ptxas(), "-v", f"-arch={arch}", "-o", str(source.with_suffix(".cubin")), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    out: dict[int, tuple[int, int]] = {}
    entry = re.compile(
        r"entry function 'kernel_(\d+)'[\s\S]*?(\d+) bytes spill stores, (\d+) bytes spill loads[\s\S]*?Used (\d+) reg"
    )
    for m in entry.finditer(done.stderr):
        out[int(m[1])] = int(m[4]), int(m[2]) + int(m[3])
    assert len(out) == len(found), f"{len(out)} of {len(found)} kernels"
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", help="sm_80, sm_90, ...; several times for several")
    parser.add_argument("--dtype", default="f32", choices=("f32", "f64"))
    parser.add_argument("--each", action="store_true", help="a line for each kernel")
    options = parser.parse_args()
    archs = options.arch or ["sm_80", "sm_90", "sm_100"]
    found = list(kernels(options.dtype))
    results = {arch: assembled(found, arch) for arch in archs}
    if options.each:
        for number, (name, spec, _) in enumerate(found):
            cells = ", ".join(f"{arch} {results[arch][number][0]} + {results[arch][number][1]}" for arch in archs)
            print(f"{name} | {spec} | {cells}")
        return
    print(f"| statement | kernels | {' | '.join(f'{arch}: registers, spilled bytes' for arch in archs)} |")
    print(f"| --- | --- |{' --- |' * len(archs)}")
    for name in dict.fromkeys(n for n, _, _ in found):
        numbers = [k for k, (n, _, _) in enumerate(found) if n == name]
        cells = []
        for arch in archs:
            used = [results[arch][k] for k in numbers]
            cells.append(f"{min(r for r, _ in used)} to {max(r for r, _ in used)}, {max(s for _, s in used)}")
        print(f"| {name} | {len(numbers)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
