"""A key (signatures, statements, kinds of fill values) -> a plan, in tables that are bounded, counted, and emptied when
kernels are evicted.

A plan can be recomputed at any moment; a table only saves the time. Plans of one structure are kept with it
(`storage.structure.Plans`), those that serve all tensors of a kind here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["PlanCache", "forget_plans", "plan_counts", "planned"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])

LIMIT = 1024
"""The most entries of a table; the oldest are dropped first."""

_TABLES: list[PlanCache[Any, Any]] = []


class PlanCache(dict[K, V]):
    """A table of plans; looked up as a dict, filled by `keep`."""

    __slots__ = ("limit", "made", "name")

    def __init__(self, name: str, limit: int = LIMIT) -> None:
        super().__init__()
        self.name, self.limit, self.made = name, limit, 0
        _TABLES.append(self)

    def keep(self, key: K, plan: V) -> V:
        """Store a plan under its key; returns it."""
        if len(self) >= self.limit:
            for oldest in list(self)[: 1 + self.limit // 16]:
                self.pop(oldest, None)
        self[key] = plan
        self.made += 1
        return plan


def planned(name: str) -> Callable[[F], F]:
    """A function of hashable arguments whose results are kept in a table of plans."""

    def mark(function: F) -> F:
        table: PlanCache[Any, Any] = PlanCache(name)

        @wraps(function)
        def call(*key: Any) -> Any:
            plan = table.get(key)
            return table.keep(key, function(*key)) if plan is None else plan

        return cast("F", call)

    return mark


def forget_plans() -> None:
    """Empty all tables."""
    for table in _TABLES:
        table.clear()


def plan_counts() -> dict[str, tuple[int, int, int]]:
    """For each table by name: its number of plans, its limit, and how many plans were stored so far."""
    return {table.name: (len(table), table.limit, table.made) for table in _TABLES}
