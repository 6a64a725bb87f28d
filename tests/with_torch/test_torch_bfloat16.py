"""bfloat16 over torch's memory where ml_dtypes is not installed, which NumPy's alone needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")


@pytest.mark.slow
def test_bfloat16_needs_nothing_but_torch() -> None:
    """In a process that cannot import ml_dtypes: values of all operations, printed, recorded or not."""
    script = Path(__file__).with_name("bfloat16_alone.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr
