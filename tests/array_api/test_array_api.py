"""The array API's own test suite, where a checkout of it is: see "The array API's tests" in CONTRIBUTING."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import openwork as ow

REVISION = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
"""Of github.com/data-apis/array-api-tests: what the expected failures are those of."""
EXPECTED = Path(__file__).parent / "expected_failures.txt"
EXPECTED_2025 = Path(__file__).parent / "expected_2025.txt"
EXPECTED_SPARSE = Path(__file__).parent / "expected_sparse.txt"
SKIPPED = Path(__file__).parent / "skipped.txt"
INPUTS = ("as they come", "coo", "csr", "csc", "csf", "bitmap", "dcsr", "bsr(2, 2)", "mixed")
"""The formats of what the tests make; "as they come" is `openwork` itself."""


def entries(text: str) -> dict[str, str]:
    """The reason of each expected failure: the comment above it, which holds until the next blank line."""
    found: dict[str, str] = {}
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip().splitlines()
        reason = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
        found |= {line: reason for line in lines if not line.startswith("#")}
    return found


@pytest.mark.parametrize("path", [EXPECTED, EXPECTED_2025, EXPECTED_SPARSE, SKIPPED], ids=lambda path: path.stem)
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


def test_a_namespace_that_makes_sparse_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("OPENWORK_INPUTS", "csr")
    namespace = importlib.import_module("sparse_inputs")
    assert namespace.asarray([[1.0, 0.0]]).format == ow.format("csr")
    assert namespace.asarray([1.0, 0.0]).format == ow.format("coo", 1)
    assert not namespace.linspace(0, 1, 3).format.is_dense
    assert namespace.add is ow.add


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ["2024.12", "2025.12"])
@pytest.mark.parametrize("inputs", INPUTS)
def test_the_array_apis_own_tests(inputs: str, version: str, tmp_path: Path) -> None:
    """Nothing fails that is not expected to, and everything that is expected to fails."""
    checkout = os.environ.get("ARRAY_API_TESTS")
    if not checkout:
        pytest.skip("no checkout of array-api-tests (set ARRAY_API_TESTS to its folder)")
    if (Path(checkout) / ".git").exists():
        asked = ["git", "-C", checkout, "rev-parse", "HEAD"]
        head = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        assert head == REVISION, f"expected array-api-tests at {REVISION}; got {head}"
    sparse = inputs != INPUTS[0]
    files = [EXPECTED, *[EXPECTED_2025] * (version == "2025.12"), *[EXPECTED_SPARSE] * sparse]
    listed = tmp_path / "expected.txt"
    listed.write_text("\n".join(path.read_text() for path in files))
    command = [
        sys.executable, "-m", "pytest", "array_api_tests", "-c", "pytest.ini", "-q", "--tb=short", "-p", "no:cacheprovider",
        "-o", "xfail_strict=true", "--derandomize", "--disable-deadline", "--disable-extension", "fft", "--xfails-file", str(listed),
        "--skips-file", str(SKIPPED), "--max-examples", os.environ.get("ARRAY_API_TESTS_EXAMPLES", "10"),
    ]  # fmt: skip
    path = os.pathsep.join((str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])))
    named = {
        "ARRAY_API_TESTS_MODULE": "sparse_inputs" if sparse else "openwork", "ARRAY_API_TESTS_VERSION": version,
        "OPENWORK_INPUTS": inputs, "PYTHONPATH": path,
    }  # fmt: skip
    done = subprocess.run(command, cwd=checkout, env=os.environ | named, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
