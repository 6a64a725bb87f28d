"""The package's source -> its size by package, its files in circles, and the internal names that front ends import.

python tools/house.py

A statement is one of Python's syntax tree; stubs are left out. Circles count imports that only type checkers see and
modules that are named by a text (`tests/test_layers.py`). An internal name is one that a front end takes from inside
another package, once however often it is imported; what all modules stand on (errors, warnings, classes of fields) is
counted apart, and `io`, `torch` and `device`, which make storages, rules and kernels, are listed and not in the sum.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openwork"
sys.path.insert(0, str(ROOT / "tests"))

from test_layers import LAYERS, circles, sources  # noqa: E402 - after the path

FRONT_ENDS = ("linalg", "graph", "decomposition", "nn", "dask", "compat", "masked", "plot", "advice", "cli")
LISTED = ("io", "torch", "device")
"""Packages that make storages, gradient rules or kernels of devices: their names are not in the sum."""
SUPPORT = LAYERS[0]
"""What all modules stand on."""


def sizes() -> dict[str, tuple[int, int]]:
    """The statements and files of each package."""
    statements: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        first, *rest = path.relative_to(PACKAGE).parts
        package = first if rest else "(modules)"
        files[package] += 1
        statements[package] += sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(path.read_text())))
    return {package: (n, files[package]) for package, n in statements.most_common()}


def internal_names(front_end: str) -> tuple[set[str], set[str]]:
    """The names that a front end imports from inside other packages, and those of what all modules stand on."""
    names, support = set(), set()
    for module, imports in sources(PACKAGE).items():
        if module.split(".")[1] != front_end:
            continue
        for _, name, _ in imports:
            parts = name.split(".")
            if len(parts) > 2 and parts[1] != front_end:
                (support if parts[1] in SUPPORT else names).add(name)
    return names, support


def main() -> None:
    """Print the three."""
    found = sizes()
    print(f"{'package':14} {'statements':>10} {'files':>6}")
    for package, (statements, files) in found.items():
        print(f"{package:14} {statements:10,} {files:6}")
    print(f"{'all':14} {sum(n for n, _ in found.values()):10,} {sum(n for _, n in found.values()):6}\n")
    rings = circles(PACKAGE, hidden_arrows=True)
    print(f"files in circles: {sum(map(len, rings))}")
    for ring in rings:
        print(f"  {', '.join(name.removeprefix('openwork.') for name in ring)}")
    print(f"\n{'front end':14} {'internal':>8} {'support':>8}")
    total: set[str] = set()
    for front_end in (*FRONT_ENDS, *LISTED):
        names, support = internal_names(front_end)
        total |= names if front_end in FRONT_ENDS else set()
        print(f"{front_end:14} {len(names):8} {len(support):8}")
    print(f"all but {', '.join(LISTED)}: {len(total)} distinct internal names")


if __name__ == "__main__":
    main()
