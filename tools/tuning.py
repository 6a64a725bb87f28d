"""docs/tuning.md from `openwork.tuning`: the table of every tuned number, and where it is read.

python tools/tuning.py            # write it
python tools/tuning.py --check    # exit with 1 where it differs
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from openwork.tuning import TABLE

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tuning.md"
HEAD = """# Tuned numbers

These are the numbers that decide between two ways to compute the same result, for developers of openwork. The page is
written by `python tools/tuning.py` from `src/openwork/tuning.py`; change a number there. *Where from* says what the
value is on a machine (caches of 32 KiB and 1 MiB, cache lines of 64 bytes, AVX-512), what was measured, or which commit
set it; a value with a commit alone was not compared with others since. `python benchmarks/tuning.py NAME VALUE ...`
times other values of some; without arguments it lists these. Limits that make nothing faster (extents, depths, bytes of
a file) are in the modules that need them.

| name | value | of what | what it decides | where from | read in |
| --- | ---: | --- | --- | --- | --- |
"""


def readers() -> dict[str, str]:
    """For each name the modules that read it."""
    found: dict[str, list[str]] = {name: [] for name in TABLE}
    package = ROOT / "src" / "openwork"
    for path in sorted(package.rglob("*.py")):
        for name in set(re.findall(r"\btuning\.([A-Z][A-Z_]+)", path.read_text())):
            found[name].append(str(path.relative_to(package)))
    return {name: ", ".join(f"`{m}`" for m in modules) for name, modules in found.items()}


def page() -> str:
    """The text of docs/tuning.md."""
    read_in, rows = readers(), []
    for name, row in TABLE.items():
        value = f"{row.value:,}" if isinstance(row.value, int) else str(row.value)
        rows.append(f"| `{name}` | {value} | {row.unit} | {row.meaning} | {row.origin} | {read_in[name]} |\n")
    return HEAD + "".join(rows)


def main(arguments: list[str]) -> int:
    """Write the page, or with --check compare it."""
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
