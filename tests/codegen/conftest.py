from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of these tests are compiled as users' are, with all passes, also those of subprocesses."""
    monkeypatch.delenv("OPENWORK_OPTIMIZE", raising=False)
