"""A call and the error that it is to raise -> a failure unless it does, with a message that begins as it should."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Case = tuple[type[BaseException], Callable[[], object]]


def check_raised(case: Case, message: str) -> None:
    """Make the call of a case; its error's text is to begin with `message`."""
    error, call = case
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value).startswith(message)
