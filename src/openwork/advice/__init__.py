"""A tensor and an operation -> formats with their bytes, measured times and reasons."""

from __future__ import annotations

from ..namespaces import listing as _listing
from .advise import Advice, Candidate, advise

__all__ = ["Advice", "Candidate", "advise"]

__dir__ = _listing(__name__, __all__)
