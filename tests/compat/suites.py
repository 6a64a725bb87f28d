"""What the tests of another library's own suite share: outcomes of pytest's report, expected failures, the page's table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import openwork

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
SETTINGS = """[pytest]
python_files = suite_*.py
addopts = -p no:randomly
markers =
    fail_slow
    thread_unsafe
    slow
    xslow
    xfail_on_32bit
    parallel_threads_limit
    iterations
"""


class Outcomes(dict[str, str]):
    """By test "passed", or "failed" or "error" with the error's last line; `skipped` is how many the suite skips itself."""

    skipped = 0


def parsed(report: str) -> Outcomes:
    """What a report of pytest's says."""
    found = re.findall(r"^(PASSED|FAILED|ERROR) (.*)$", report, re.MULTILINE)
    out = Outcomes(
        (rest.partition(" - ")[0], f"{kind.lower()} {rest.partition(' - ')[2]}".strip()) for kind, rest in found
    )
    summary = report.rstrip().rpartition("\n")[2]
    out.skipped = sum(int(n) for n in re.findall(r"(\d+) (?:skipped|xfailed|xpassed)", summary))
    return out


def run(name: str, root: Path, files: tuple[str, ...], selection: tuple[str, ...], timeout: int) -> Outcomes:
    """The tests of `files` in a folder, run by pytest in a process of its own."""
    (root / "pytest.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
    settings = {"COLUMNS": "400", "PYTEST_ADDOPTS": "", "PYTHONPATH": f"{Path(openwork.__file__).parents[1]}:{root}"}
    settings["OPENWORK_OPTIMIZE"] = "0"  # many kernels that each run once
    done = subprocess.run(
        [*command, "-c", str(root / "pytest.ini"), "--rootdir", str(root), *selection, *(str(root / f) for f in files)],
        cwd=root, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    out = parsed(done.stdout)
    if not any(x == "passed" for x in out.values()):
        raise RuntimeError(f"{name}'s suite did not run\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
    return out


def counts(outcomes: dict[str, str]) -> Counter[str]:
    """How many tests of each outcome."""
    return Counter(x.partition(" ")[0] for x in outcomes.values())


def failures(listed: Path) -> dict[str, str]:
    """The tests that a file lists as failing (`*` for any text in a name), with their reasons."""
    pairs = (x.rpartition(" | ") for x in listed.read_text().splitlines() if x[:1] not in ("", "#"))
    return {test.strip(): reason.strip() for test, _, reason in pairs}


def reason(test: str, expected: dict[str, str]) -> str | None:
    """Why a test is expected to fail; None where it is not."""
    if test in expected:
        return expected[test]
    for pattern, why in expected.items():
        if "*" in pattern and re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), test):
            return why
    return None


def unexpected(outcomes: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The tests whose outcome is not what is listed, and what is listed and fails nowhere."""
    failed = [test for test, outcome in outcomes.items() if not outcome.startswith("passed")]
    wrong = [f"{test} | {outcomes[test]}" for test in failed if reason(test, expected) is None]
    return wrong + [
        f"{p} | does not fail" for p in expected if not any(reason(test, {p: "x"}) is not None for test in failed)
    ]


def table(outcomes: Outcomes, groups: dict[str, str], expected: dict[str, str], left_out: dict[str, str]) -> list[str]:
    """The lines of a table: how many tests of each group pass and fail, which and why, and which files are not run."""
    tests: dict[str, Counter[str]] = {}
    for test, outcome in outcomes.items():
        tests.setdefault(groups[test], Counter())[outcome.partition(" ")[0]] += 1
    failed = [test for test, outcome in outcomes.items() if not outcome.startswith("passed")]
    reasons = Counter(reason(test, expected) or "not listed" for test in failed)
    return [
        "| tests | pass | fail |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {n['passed']} | {n['failed'] + n['error']} |" for name, n in sorted(tests.items())),
        "",
        *((*failing(reasons, expected), "") if failed else ()),
        "| not run | why |",
        "| --- | --- |",
        *(f"| {name} | {why} |" for name, why in left_out.items()),
    ]  # fmt: skip


def failing(reasons: Counter[str], expected: dict[str, str]) -> list[str]:
    """The lines of a table of the tests that fail, by reason; `*` is any text in a name."""
    names: dict[str, list[str]] = {}
    for test, why in expected.items():
        names.setdefault(why, []).append(f"`{test.removeprefix('suite_').replace('.py::', '::')}`")
    rows = (f"| {why} | {', '.join(names.get(why, ['see the run']))} | {n} |" for why, n in reasons.most_common())
    return ["| why they fail | which | tests |", "| --- | --- | ---: |", *rows]


def write(lines: list[str], begin: str, end: str) -> None:
    """Put a section into the page, between its two marks."""
    head, _, rest = PAGE.read_text().partition(begin)
    PAGE.write_text("\n".join((f"{head}{begin}", *lines, f"{end}{rest.partition(end)[2]}")))
