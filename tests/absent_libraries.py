"""Which optional libraries are not installed: an import in vain -> why the test that it is in is skipped, if it is."""

from __future__ import annotations

import traceback
from pathlib import Path

__all__ = ["OPTIONAL", "why_skipped"]

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = frozenset(
    [
        "torch",
        "torch_geometric",
        "pymetis",
        "matplotlib",
        "h5py",
        "pyarrow",
        "zarr",
        "dask",
        "distributed",
        "ml_dtypes",
        "networkx",
        "pandas",
        "sklearn",
        "xarray",
        "expecttest",
        "coverage",
    ]
)
"""What the extras of pyproject.toml install. Without one of them the tests that import it are skipped."""


def why_skipped(error: BaseException | None) -> str | None:
    """Why a test is skipped, where its own lines, or a page's, import an optional library that is not there.

    What openwork's lines import in vain is a failure, whatever the library: it promises to do without, but for the
    modules that say first what they need (`needs_torch.py`, `needs_dask.py`).
    """
    if not isinstance(error, ModuleNotFoundError) or (error.name or "").partition(".")[0] not in OPTIONAL:
        return None
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    last = Path(files[-1])
    if last.is_relative_to(ROOT / "src") and last.name.startswith("needs_"):
        return f"needs {error.name}"
    return f"needs {error.name}" if last.is_relative_to(ROOT) and not last.is_relative_to(ROOT / "src") else None
