"""Conversion between formats: how it is done (`plan`), and the kernels that do it."""

from .plan import Plan, Stage, Strategy, plan

__all__ = ["Plan", "Stage", "Strategy", "plan"]
