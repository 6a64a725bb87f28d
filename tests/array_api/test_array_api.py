"""The array API's own test suite, where a checkout of it is: see "The array API's tests" in CONTRIBUTING."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REVISION = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
"""Of github.com/data-apis/array-api-tests: what the expected failures are those of."""
EXPECTED = Path(__file__).parent / "expected_failures.txt"
SKIPPED = Path(__file__).parent / "skipped.txt"
VERSION = "2024.12"


def entries(text: str) -> dict[str, str]:
    """The reason of each expected failure: the comment above it, which holds until the next blank line."""
    found: dict[str, str] = {}
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip().splitlines()
        reason = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
        found |= {line: reason for line in lines if not line.startswith("#")}
    return found


@pytest.mark.parametrize("path", [EXPECTED, SKIPPED], ids=lambda path: path.stem)
def test_every_expected_failure_has_a_reason(path: Path) -> None:
    text = path.read_text()
    assert REVISION in text
    found = entries(text)
    assert found
    listed = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(listed) == len(found), "an entry is there twice"
    for test, reason in found.items():
        assert test.startswith("array_api_tests/test_"), test
        assert "::" in test
        assert len(reason) > 20, f"{test} has no reason"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_array_apis_own_tests() -> None:
    """Nothing fails that is not expected to, and everything that is expected to fails."""
    checkout = os.environ.get("ARRAY_API_TESTS")
    if not checkout:
        pytest.skip("no checkout of array-api-tests (set ARRAY_API_TESTS to its folder)")
    if (Path(checkout) / ".git").exists():
        asked = ["git", "-C", checkout, "rev-parse", "HEAD"]
        head = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        assert head == REVISION, f"expected array-api-tests at {REVISION}; got {head}"
    command = [
        sys.executable, "-m", "pytest", "array_api_tests", "-c", "pytest.ini", "-q", "--tb=short", "-p", "no:cacheprovider",
        "-o", "xfail_strict=true", "--derandomize", "--disable-deadline", "--disable-extension", "fft", "--xfails-file", str(EXPECTED),
        "--skips-file", str(SKIPPED), "--max-examples", os.environ.get("ARRAY_API_TESTS_EXAMPLES", "10"),
    ]  # fmt: skip
    named = {"ARRAY_API_TESTS_MODULE": "openwork", "ARRAY_API_TESTS_VERSION": VERSION}
    done = subprocess.run(command, cwd=checkout, env=os.environ | named, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
