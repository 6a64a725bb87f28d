"""Tuned numbers stand in one table, which the page shows and the modules read."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from openwork.tuning import TABLE

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
PACKAGE = ROOT / "src" / "openwork"
NUMBER = re.compile(r"^(_?[A-Z][A-Z0-9_]*(?:, _?[A-Z][A-Z0-9_]*)*)(?: *: [\w\[\], ]+)? = -?\d(?! if )", re.MULTILINE)
LIMITS = {
    "ops/elementwise/maps.py": {"_LEAST"},
    "runtime/values.py": {"_EXACT"},
    "runtime/check.py": {"_WIDE"},
    "codegen/disk.py": {"_LIMIT", "_LARGEST", "_TRIM_EVERY", "_DAY", "_UNUSED"},
    "codegen/emit_checked.py": {"VIOLATION"},
    "codegen/emit_complex.py": {"_LN2, _LN10"},
    "fusion/explain.py": {"ECHO"},
    "codegen/engine.py": {"ROOM, BYTES", "SPEED", "REPEATS"},
    "codegen/executable.py": {"_MASK"},
    "codegen/float_flags.py": {"_LARGE"},
    "codegen/linker.py": {"_ALLOC, _WRITE, _EXEC", "_NOBITS, _SYMTAB, _RELA", "_ABS64, _PC32, _PLT32, _PC64", "_GOT", "_STUB"},
    "codegen/llvm.py": {"_ARENA_MAX", "LAST"},
    "codegen/notice.py": {"SECONDS", "PAUSE"},
    "codegen/plan_cache.py": {"LIMIT"},
    "codegen/spirv.py": {"_HEADER, _BOUND"},
    "compiler/packed_coordinates.py": {"WORD"},
    "codegen/pool.py": {"_LIMIT", "_FOREIGN, _BUSY"},
    "compiler/coiterate/code_size.py": {"SLACK"},
    "compiler/conversion/append.py": {"STATUS_SLOTS", "STATUS_UNIQUE"},
    "compiler/conversion/segment_sort.py": {"KEY_BITS", "NARROW_BITS"},
    "compiler/nonfinite_guard.py": {"_POWERS"},
    "compiler/scalar_arguments.py": {"_SMALLEST, _LARGEST"},
    "compiler/schedule/coiterate.py": {"_FILLS"},
    "compiler/simplify.py": {"_ROUNDS"},
    "compiler/selection.py": {"STACK"},
    "storage/buffers.py": {"PACKED, STRIDED"},
    "storage/iso.py": {"CHUNK"},
}  # fmt: skip
"""Numbers that nothing was tuned by: limits, codes, constants of mathematics and of file formats."""
UNTUNED = {
    "PAIRS", "LIMIT", "LEAST", "LARGEST", "_LARGEST", "TRANSPOSES", "PREPARED", "EMPTY_SLOT", "KEY_BITS", "LINE", "FINITE", "ROOM", "KINDS",
    "_FEW", "SHOWN_EXTENT", "ABSENT, SEVERAL", "_SAMPLE",
    "_STORAGE_WORDS, _TENSOR_WORDS, _COUNTER_WORDS",
}  # fmt: skip
"""Names of such numbers in runtime/, ops/, fusion/ and storage/: bounds of tables of plans, the ends of ranges of integers."""


def test_the_page_is_the_table() -> None:
    import tuning

    assert tuning.PAGE.read_text() == tuning.page(), "python tools/tuning.py"


def test_every_row_says_what_it_is_and_is_read() -> None:
    import tuning

    read_in = tuning.readers()
    for name, row in TABLE.items():
        assert row.value > 0, name
        assert row.meaning and row.origin, name  # noqa: PT018
        assert read_in[name], f"nothing reads {name}"


def test_no_other_module_has_numbers_of_its_own() -> None:
    others = []
    for path in sorted(PACKAGE.rglob("*.py")):
        file = str(path.relative_to(PACKAGE))
        if file.split("/")[0] in ("compiler", "codegen", "runtime", "ops", "fusion", "storage"):
            names = {m[1] for m in NUMBER.finditer(path.read_text())}
            known = LIMITS.get(file, set()) | (set() if file.split("/")[0] in ("compiler", "codegen") else UNTUNED)
            others += [f"{file}: {name}" for name in names - known]
    assert not others, "a tuned number goes into tuning.py, another into the lists here"
