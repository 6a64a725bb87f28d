from __future__ import annotations

import pytest

WHOLE = ("f64", "i64", "c64", "bf16")
"""One kind of scalar of each family. Kernels of others are compiled without passes: they are most of the time."""


@pytest.fixture(autouse=True)
def optimised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of these tests are compiled as users' are, with all passes, also those of subprocesses."""
    chosen = getattr(getattr(request.node, "callspec", None), "params", {})
    scalar = chosen.get("scalar", chosen.get("source", WHOLE[0]))
    if scalar in WHOLE:
        monkeypatch.delenv("OPENWORK_OPTIMIZE", raising=False)
