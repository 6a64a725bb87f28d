"""What the first call costs, with an empty cache and from the disk, and what a later call costs on a tiny matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from statistics import median

__all__ = ["latency_rows"]

PROBE = """
import json, time
import numpy as np
import scipy.sparse as sp
begun = time.perf_counter(); import openwork as ow; loaded = time.perf_counter() - begun
S = sp.csr_array(np.eye(4)); x = np.ones(4); X = np.ones((4, 32))
A = ow.asarray(S)
def clock(run):
    begun = time.perf_counter(); run(); return time.perf_counter() - begun
def often(run):
    run(); return min(clock(lambda: [run() for _ in range(200)]) / 200 for _ in range(25))
print(json.dumps({
    "import openwork": loaded,
    "first A @ x": clock(lambda: A @ x),
    "next kernel (A @ X)": clock(lambda: A @ X),
    "A @ x again": often(lambda: A @ x),
    "SciPy's A @ x": often(lambda: S @ x),
    "ow.asarray of a CSR array": often(lambda: ow.asarray(S)),
}))
"""
REPEATS = 5


def probe(cache: str, bytecode: str) -> dict[str, float]:
    """Run the probe in a new process that keeps its kernels and its Python bytecode in these folders."""
    folders = {"OPENWORK_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    environment = {**os.environ, **folders, "OPENWORK_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def latency_rows() -> list[tuple[str, float]]:
    """Medians over new processes: (what, seconds)."""
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as place:
        probe(f"{place}/unused", f"{place}/bytecode")
        for k in range(REPEATS):
            cold.append(probe(f"{place}/{k}", f"{place}/bytecode"))
            warm.append(probe(f"{place}/{k}", f"{place}/bytecode"))
    rows = [
        (f"{name}, nothing cached", median(run[name] for run in cold))
        for name in ("first A @ x", "next kernel (A @ X)")
    ]
    rows += [
        (f"{name}, from the disk", median(run[name] for run in warm)) for name in ("first A @ x", "next kernel (A @ X)")
    ]
    others = ("import openwork", "A @ x again", "SciPy's A @ x", "ow.asarray of a CSR array")
    return rows + [(name, median(run[name] for run in warm)) for name in others]
