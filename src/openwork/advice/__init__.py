"""A tensor and an operation -> formats with their bytes, measured times and reasons."""

from __future__ import annotations

from .advise import Advice, Candidate, advise

__all__ = ["Advice", "Candidate", "advise"]
