"""The mutation command: what it changes, and what it reports of a package with a hole in its tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("coverage")
if sys.platform == "win32":
    pytest.skip("mutants run in forks", allow_module_level=True)

from mutation.changes import changes, makes_sense
from mutation.in_process import changed_code

ROOT = Path(__file__).parent.parent
TEXT = '''"""Not changed: 1 + 1."""
__all__ = ["sign"]
LIMIT = 3


def sign(x: int, scale: int = 2) -> int:
    """Not changed: x < 0."""
    if x < 0 and scale:
        raise ValueError(f"not {x + 1} changed")
    done = min(x, scale, key=abs)
    done += 1
    return done
'''
PACKAGE = """def small(x):
    if x == 3:
        return 0
    return x


def never(x):
    return -x


def told(x):
    return x // 2


def served(x):
    return x * 7
"""
TESTS = """import _thread
import subprocess
import sys
import time

from toy.small import served, small


def test_other():
    assert small(5) == 5


def test_of_a_process():
    program = "from toy.small import told; print(told(9))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "4\\n"


def test_of_a_thread():
    found = []
    _thread.start_new_thread(lambda: found.append(served(3)), ())
    end = time.monotonic() + 5
    while not found and time.monotonic() < end:
        time.sleep(0.01)
    assert found == [21]
"""


def test_what_is_changed() -> None:
    found = {f"{c.line} {c.before} -> {c.after}" for c in changes(TEXT) if makes_sense(c, TEXT)}
    for expected in (
        "3 3 -> (4)", "6 2 -> (1)", "8 x < 0 -> (x <= 0)", "8 x < 0 and scale -> (x < 0 or scale)",
        "8 x < 0 and scale -> True", "8 x < 0 and scale -> (x < 0)", "10 x -> done", "11 done += 1 -> pass",
        "10 min(x, scale, key=abs) -> (min(scale, x, key=abs))", "10 min(x, scale, key=abs) -> (min(x, scale))",
        "11 done += 1 -> done -= 1", "12 return done -> return None",
    ):  # fmt: skip
        assert expected in found, sorted(found)
    assert {c.line for c in changes(TEXT)} == {3, 6, 8, 9, 10, 11, 12}
    assert [str(c) for c in changes(TEXT) if c.line == 9] == [
        '9 [statement dropped]: raise ValueError(f"not {x + 1} changed") -> pass'
    ]


def test_code_that_a_fork_gives_its_functions() -> None:
    """The changed function alone, under its name and first line, lines after the change where they were."""
    text = "def one(x):\n    return max(\n        x,\n        2,\n    )\n\n\ndef two(x):\n    return lambda: x + 1\n"
    (taken,) = [c for c in changes(text) if c.kind == "result dropped" and c.line == 2]
    ((name, code),) = changed_code(text, taken, "file.py").items()
    assert name == ("one", 1)
    assert code.co_consts == (None,)
    (added,) = [c for c in changes(text) if c.kind == "operator"]
    assert set(changed_code(text, added, "file.py")) == {("two", 8), ("two.<locals>.<lambda>", 9)}


def test_changes_of_texts_that_are_not_ascii() -> None:
    text = 'a = "äöü"; b = 1 + 2\n'
    assert "b = (1 - 2)" in {c.apply(text).split("; ")[1].strip() for c in changes(text)}


def run(root: Path, *more: str) -> tuple[int, list[str]]:
    command = [
        sys.executable, "-m", "tests.mutants", "--root", str(root), "--source", "src/toy", "--modules", "pytest", "--count",
        "99", "--jobs", "1", "--limit", "2", "--state", str(root / "state"), *more,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.slow
def test_a_hole_is_reported(tmp_path: Path) -> None:
    """The tests never reach 3, and never call `never`; nothing is written in the tree; a second run has nothing to do."""
    (tmp_path / "src/toy").mkdir(parents=True)
    (tmp_path / "src/toy/__init__.py").write_text("")
    (tmp_path / "src/toy/small.py").write_text(PACKAGE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_small.py").write_text(TESTS)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.py")}
    status, lines = run(tmp_path)
    assert status == 1
    verdicts = {line.split("small.py:")[1].split(":")[0]: line.split()[0] for line in lines if " s  small.py:" in line}
    assert verdicts["2 [constant]"] == "survived"
    assert verdicts["2 [comparison]"] == verdicts["4 [result dropped]"] == "killed"
    assert verdicts["12 [operator]"] == verdicts["16 [operator]"] == "killed", "lines of processes and threads are seen"
    assert {verdicts[k] for k in verdicts if k[:2] in ("3 ", "8 ")} == {"not"}
    assert [line for line in lines if line.startswith("survived: src/toy/small.py:2 [constant]: 3 -> (")]
    assert "not executed: src/toy/small.py:8 [operator]: -x -> (x)  (0 of 0 tests)" in lines
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.py")} == before
    status, again = run(tmp_path)
    assert not [line for line in again if " s  small.py:" in line]
    assert again[-5:] == lines[-5:]
