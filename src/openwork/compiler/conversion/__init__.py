"""Two formats -> the plan of a conversion (`plan`), and the kernels of its stages."""

from .plan import Plan, Stage, Strategy, plan

__all__ = ["Plan", "Stage", "Strategy", "plan"]
