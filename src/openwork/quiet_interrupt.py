"""Ctrl-C while the command `openwork` still loads libraries -> one line, where Python prints a traceback through them.

Imported first by the package, and importing next to nothing itself. Later interrupts are `cli.main`'s.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

__all__: list[str] = []


def _is_command() -> bool:
    """Whether this process is the command: its script, or `python -m openwork`, whose argv[0] is "-m" so far."""
    name: str = (getattr(sys, "argv", None) or [""])[0]
    if name != "-m":
        return os.path.basename(name) == __package__
    return ("-m", __package__) in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)


def _in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print(f"{__package__}: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


if _is_command():
    sys.excepthook = _in_one_line
