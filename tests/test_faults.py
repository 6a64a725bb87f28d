"""The hook that makes allocations, writes and compiles fail."""

from __future__ import annotations

import pytest

from openwork.faults import KINDS, injected, nth, reach


@pytest.mark.parametrize("kind", KINDS)
def test_the_nth_call_of_a_kind_fails(kind) -> None:
    hook = nth(kind, 2)
    with injected(hook):
        for other in KINDS:
            reach(other)
        with pytest.raises((MemoryError, OSError), match=f"injected: {kind} number 2"):
            reach(kind)
        reach(kind)
    reach(kind)
    assert hook.calls == 3


def test_a_kind_that_nobody_reaches_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of: allocate, write"):
        nth("sneeze", 1)
