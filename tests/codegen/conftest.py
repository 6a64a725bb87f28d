from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels of these tests go to a folder of their own, also those of subprocesses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENWORK_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
