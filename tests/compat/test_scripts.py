"""Scripts written for scipy.sparse run with their import changed, and give the same numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPTS = Path(__file__).parent / "scripts"


def ran(name: str, *, ours: bool) -> list[Any]:
    text = (SCRIPTS / f"{name}.py").read_text()
    if ours:
        text, changes = re.subn(r"\bimport scipy\.sparse\b|\bfrom scipy\.sparse\b", _changed, text)
        assert changes == text.count("openwork.compat.scipy_sparse")
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, f"{name}.py", "exec"), names)
    module = "openwork" if ours else "scipy"
    assert type(names.get("A", names.get("X"))).__module__.startswith(module)
    return names["results"]


def _changed(found: re.Match[str]) -> str:
    return found.group().replace("scipy.sparse", "openwork.compat.scipy_sparse")


@pytest.mark.parametrize("name", ["fem", "text"])
def test_a_script_for_scipy_runs_with_its_import_changed(name):
    pairs = list(zip(ran(name, ours=True), ran(name, ours=False), strict=True))
    assert len(pairs) > 10
    for k, (got, want) in enumerate(pairs):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10, err_msg=f"result {k}")
