"""`openwork doctor`: versions, processor, threads, cache, what is installed beside, and one product that is checked."""

from __future__ import annotations

import argparse
import platform
import time
from importlib import metadata
from typing import Any

import numpy as np

import openwork as ow
from openwork.codegen import target

from .output import bytes_text, count_text, heading, json_text, table, time_text

__all__ = ["BESIDE", "facts", "product", "run"]

BESIDE = (
    "numpy", "scipy", "llvmlite", "torch", "pandas", "xarray", "dask", "distributed", "h5py", "zarr", "pyarrow",
    "networkx", "scikit-learn", "sparse", "matplotlib", "rich", "ml_dtypes",
)  # fmt: skip
"""Distributions that openwork stands on, or works with where they are installed."""


def run(arguments: argparse.Namespace) -> int:
    cold, warm, error = product()
    right = error < 1e-12
    if arguments.json:
        print(json_text(report(cold, warm, error)))
        return 0 if right else 1
    heading("openwork")
    for name, text in facts():
        print(f"{name:<12}  {text}")
    heading("installed beside")
    table(["package", "version"], [[name, version(name) or "-"] for name in BESIDE], left=(0, 1))
    heading("a product")
    print(f"{'first call':<12}  {time_text(cold)}, with its kernel compiled or read from the cache")
    print(f"{'next calls':<12}  {time_text(warm)}")
    print(f"{'result':<12}  {'equal to NumPy' if right else f'WRONG: off by {error:.2g}; please report this'}")
    return 0 if right else 1


def report(cold: float, warm: float, error: float) -> dict[str, Any]:
    """What the command found, for programs."""
    return {
        "version": ow.__version__, "python": platform.python_version(), "platform": platform.platform(),
        "processor": target.host().cpu, "threads": ow.get_num_threads(), "cache": ow.cache_info(),
        "packages": {name: version(name) for name in BESIDE},
        "product": {"first_seconds": cold, "next_seconds": warm, "error": error, "equal": error < 1e-12},
    }  # fmt: skip


def version(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def facts() -> list[tuple[str, str]]:
    """What is known about this installation."""
    info, host = ow.cache_info(), target.host()
    where = str(info["folder"]) if info["folder"] else f"not used: {info['ignored']}"
    return [
        ("version", ow.__version__),
        ("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        ("processor", host.cpu),
        ("threads", str(ow.get_num_threads())),
        (
            "cache",
            f"{where}, {count_text(int(info['files'] or 0))} kernels, {bytes_text(float(info['file_bytes'] or 0))}",
        ),
    ]


def product() -> tuple[float, float, float]:
    """Seconds of the first and of a later sparse matrix-vector product, and its largest difference to NumPy's."""
    draw = np.random.default_rng(0)
    dense = np.where(draw.random((500, 400)) < 0.05, draw.standard_normal((500, 400)), 0.0)
    a, x = ow.asarray(dense, format="csr"), draw.standard_normal(400)
    begun = time.perf_counter()
    y = a @ x
    cold = time.perf_counter() - begun
    warm = float("inf")
    for _ in range(20):
        begun = time.perf_counter()
        y = a @ x
        warm = min(warm, time.perf_counter() - begun)
    return cold, warm, float(np.abs(np.asarray(y) - dense @ x).max())
